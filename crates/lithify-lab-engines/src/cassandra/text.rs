//! A table of text on a node of its own: rows, flushes, figures.
//!
//! Promises: after [`TextEngine::rest`] the table is one file with the codec and the chunk that were
//! asked for, as the file itself says; anything else is an error. What is put is there when its
//! batch is answered, in the way of the durability that was asked for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use lithify_lab::adapter::text::{TextEngine, TextRow, TextSession, TextVisitor};
use lithify_lab::adapter::{
    Capabilities, EngineError, EngineResult, EngineStatistics, LevelStatistics,
};

use super::capabilities;
use super::configuration::Configuration;
use super::node::{Installation, Node};
use super::protocol::{Batch, Connection, Statement, Values};
use super::table_files::{TableFile, codec_name, table_files};

/// Bytes after which rows are written.
const BATCH_BYTES: usize = 64 << 10;

/// How long files of rows that are gone may stay.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);

/// Text on a node.
#[derive(Debug)]
pub struct CassandraText {
    node: Node,
    configuration: Configuration,
    version: String,
    /// Of the table's files.
    keyspace: PathBuf,
}

impl CassandraText {
    /// Starts a node in `directory`, and makes the table if it is not there.
    ///
    /// # Errors
    /// The node's own, or a table that is compressed in another way.
    pub fn open(
        installation: &Installation,
        directory: &Path,
        configuration: Configuration,
    ) -> EngineResult<CassandraText> {
        let node = Node::start(installation, directory, &configuration)?;
        let mut connection = node.connect()?;
        for statement in configuration.statements()? {
            connection.run(&statement).map_err(|error| node.explain(error))?;
        }
        let version = version(&mut connection).map_err(|error| node.explain(error))?;
        let (codec, chunk) = table_compression(&mut connection)?;
        expect_compression(&configuration, "its table", &codec, chunk)?;
        let keyspace = directory.join("data").join("lab");
        Ok(CassandraText { node, configuration, version, keyspace })
    }

    /// The version that the node names.
    pub fn version(&self) -> &str {
        &self.version
    }

    fn files(&self) -> EngineResult<Vec<TableFile>> {
        table_files(&self.keyspace)
    }
}

fn version(connection: &mut Connection) -> EngineResult<String> {
    let select = connection.prepare("SELECT release_version FROM system.local")?;
    let mut version = String::new();
    connection.select(&select, &Values::new(), &mut |row| {
        version = String::from_utf8_lossy(row.column()?).into_owned();
        Ok(())
    })?;
    Ok(version)
}

/// Codec and chunk of the table, as the node's own tables say.
fn table_compression(connection: &mut Connection) -> EngineResult<(String, Option<u64>)> {
    let select = connection.prepare(
        "SELECT compression FROM system_schema.tables \
         WHERE keyspace_name = 'lab' AND table_name = 'lines'",
    )?;
    let mut options = BTreeMap::new();
    connection.select(&select, &Values::new(), &mut |row| {
        options.extend(row.column_map()?);
        Ok(())
    })?;
    let Some(class) = options.get("class") else { return Ok(("none".to_owned(), None)) };
    let chunk_kib: Option<u64> =
        options.get("chunk_length_in_kb").and_then(|chunk| chunk.parse().ok());
    Ok((codec_name(class, &options), chunk_kib.map(|kib| kib << 10)))
}

/// Refuses another codec or chunk than the one that was asked for; one of no codec is any.
fn expect_compression(
    configuration: &Configuration,
    what: &str,
    codec: &str,
    chunk_bytes: Option<u64>,
) -> EngineResult<()> {
    let wanted = configuration.codec().to_string();
    let asked = configuration.chunk_bytes();
    if codec == wanted && chunk_bytes.is_none_or(|chunk| chunk == asked) {
        return Ok(());
    }
    let of = |codec: &str, chunk: Option<u64>| match chunk {
        None => codec.to_owned(),
        Some(bytes) => format!("{codec} in chunks of {bytes} bytes"),
    };
    Err(EngineError::fatal(format!(
        "cassandra was asked for {} and {what} has {}",
        of(&wanted, chunk_bytes.and(Some(asked))),
        of(codec, chunk_bytes)
    )))
}

impl TextEngine for CassandraText {
    fn name(&self) -> String {
        format!("Cassandra {}", self.version)
    }

    fn capabilities(&self) -> Capabilities {
        capabilities()
    }

    fn session(&self) -> EngineResult<Box<dyn TextSession + '_>> {
        let open = || {
            let mut connection = self.node.connect()?;
            let mut prepare = |cql| connection.prepare(cql);
            let insert = prepare("INSERT INTO lab.lines (a, b, c) VALUES (?, ?, ?)")?;
            let parts = prepare("SELECT DISTINCT a FROM lab.lines")?;
            let rows = prepare("SELECT b, c FROM lab.lines WHERE a = ?")?;
            let row = prepare("SELECT c FROM lab.lines WHERE a = ? AND b = ?")?;
            let statements = Statements { insert, parts, rows, row };
            let (batch, partition) = (Batch::default(), 0);
            Ok(CassandraSession { node: &self.node, connection, statements, batch, partition })
        };
        let session = open().map_err(|error| self.node.explain(error))?;
        Ok(Box::new(session))
    }

    fn flush(&self) -> EngineResult<()> {
        self.node.order("flush")
    }

    /// Nothing is due by itself; several files become one.
    fn rest(&self) -> EngineResult<()> {
        if self.files()?.len() > 1 {
            self.node.order("compact")?;
            self.wait_for_files(1)?;
        }
        self.files()?.iter().try_for_each(|file| {
            let chunk = file.compression.as_ref().map(|compression| compression.chunk_bytes);
            expect_compression(&self.configuration, "a file", file.codec(), chunk)
        })
    }

    fn statistics(&self) -> EngineResult<EngineStatistics> {
        let files = self.files()?;
        let mut codecs = BTreeMap::new();
        let mut level = LevelStatistics::default();
        for file in &files {
            level.files += 1;
            level.stored_bytes += file.stored_bytes;
            level.raw_bytes += file.raw_bytes;
            *codecs.entry(file.codec().to_owned()).or_default() += 1;
        }
        level.codec = LevelStatistics::describe_codecs(&codecs);
        Ok(EngineStatistics {
            live_bytes: level.stored_bytes,
            levels: vec![level],
            ..EngineStatistics::default()
        })
    }

    fn process_ids(&self) -> Vec<u32> {
        vec![self.node.pid()]
    }

    fn stays_open(&self) -> bool {
        true
    }

    fn clear(&self) -> EngineResult<()> {
        let truncated = self.node.connect()?.run("TRUNCATE lab.lines");
        truncated.map_err(|error| self.node.explain(error))?;
        self.wait_for_files(0)
    }

    fn close(self: Box<Self>) -> EngineResult<()> {
        self.node.stop()
    }
}

impl CassandraText {
    /// Files are removed when nobody reads them any more, a moment after what made them useless.
    fn wait_for_files(&self, most: usize) -> EngineResult<()> {
        let deadline = Instant::now() + REMOVAL_TIMEOUT;
        loop {
            let files = self.files()?.len();
            if files <= most {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(EngineError::fatal(format!(
                    "cassandra still has {files} table files, and should have {most}"
                )));
            }
            thread::sleep(POLL);
        }
    }
}

/// What a session does, parsed.
struct Statements {
    insert: Statement,
    parts: Statement,
    rows: Statement,
    row: Statement,
}

struct CassandraSession<'a> {
    node: &'a Node,
    connection: Connection,
    statements: Statements,
    batch: Batch,
    /// Of the rows in the batch.
    partition: u32,
}

/// A number as CQL has it.
fn int(number: u32) -> EngineResult<i32> {
    i32::try_from(number)
        .map_err(|_| EngineError::fatal(format!("{number} is more than CQL's int holds")))
}

fn number(int: i32) -> EngineResult<u32> {
    u32::try_from(int).map_err(|_| EngineError::fatal("a stored key is none of the text"))
}

impl TextSession for CassandraSession<'_> {
    fn insert(&mut self, (partition, number, line): TextRow<'_>) -> EngineResult<()> {
        // Rows of one partition are written at once; of several, one by one.
        if self.partition != partition {
            self.finish()?;
            self.partition = partition;
        }
        self.batch.add(&self.statements.insert, [int(partition)?, int(number)?], line);
        if self.batch.is_full(BATCH_BYTES) { self.finish() } else { Ok(()) }
    }

    fn finish(&mut self) -> EngineResult<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let written = self.connection.write(&self.batch);
        self.batch.clear();
        written.map_err(|error| self.node.explain(error))
    }

    fn scan(&mut self, row: &mut TextVisitor<'_>) -> EngineResult<()> {
        let CassandraSession { node, connection, statements, .. } = self;
        let mut read = || {
            // Partitions are stored by a hash of their number.
            let mut parts = Vec::new();
            connection.select(&statements.parts, &Values::new(), &mut |fields| {
                parts.push(fields.column_int()?);
                Ok(())
            })?;
            parts.sort_unstable();
            for part in parts {
                let partition = number(part)?;
                let of_part = Values::new().int(part);
                connection.select(&statements.rows, &of_part, &mut |fields| {
                    let own = number(fields.column_int()?)?;
                    row((partition, own, fields.column()?));
                    Ok(())
                })?;
            }
            Ok(())
        };
        read().map_err(|error| node.explain(error))
    }

    fn get(&mut self, partition: u32, number: u32, line: &mut Vec<u8>) -> EngineResult<bool> {
        line.clear();
        let key = Values::new().int(int(partition)?).int(int(number)?);
        let found = self.connection.select(&self.statements.row, &key, &mut |fields| {
            line.extend_from_slice(fields.column()?);
            Ok(())
        });
        found.map(|rows| rows > 0).map_err(|error| self.node.explain(error))
    }
}

#[cfg(test)]
mod tests {
    use lithify_lab::adapter::codec::Codec;
    use lithify_lab::adapter::settings::EngineSettings;

    use super::*;

    #[test]
    fn another_codec_or_chunk_than_asked_for_is_refused() {
        let settings = EngineSettings {
            codec_bottom: Codec::zstd(3),
            block_bytes: 16 << 10,
            ..EngineSettings::small()
        };
        let configuration = Configuration::new(&settings).expect("fits");
        let check = |codec, chunk| {
            expect_compression(&configuration, "a file", codec, chunk).map_err(|e| e.to_string())
        };
        assert_eq!(check("zstd-3", Some(16 << 10)), Ok(()));
        let asked = "cassandra was asked for zstd-3 in chunks of 16384 bytes and a file has ";
        assert_eq!(
            check("lz4", Some(16 << 10)),
            Err(format!("{asked}lz4 in chunks of 16384 bytes"))
        );
        assert_eq!(
            check("zstd-3", Some(4096)),
            Err(format!("{asked}zstd-3 in chunks of 4096 bytes"))
        );
        assert_eq!(
            check("none", None),
            Err("cassandra was asked for zstd-3 and a file has none".to_owned())
        );
        assert!(int(1 << 31).is_err() && number(-1).is_err());
    }
}
