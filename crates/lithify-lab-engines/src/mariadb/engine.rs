//! A server as an engine: what it is, what it says of itself, and its background work.
//!
//! Owns: the server, a connection for everything but the workload, and the database `lab` with the
//! tables of the workload. Rows are those of [`super::keys`] and [`super::graph`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use lithify_lab::adapter::table::PageAccount;
use lithify_lab::adapter::{
    Capabilities, Engine, EngineError, EngineResult, EngineStatistics, LevelStatistics, Session,
};
use serde_json::{Value, json};

use super::connection::Connection;
use super::keys::KeysSession;
use super::options::{Compression, Kind, Setup};
use super::server::{Installation, Server};
use super::statistics::{self, Counters, FileSizes};
use crate::rocksdb::policy::LEVEL0_EMPTIED;

/// The database of the tables.
pub const DATABASE: &str = "lab";

/// Time between two looks at background work.
const POLL: Duration = Duration::from_millis(100);

/// Background work that has not got on for so long is over, or will never be.
const STANDSTILL: Duration = Duration::from_secs(3);

/// Algorithms of compressed pages by the number that a tablespace carries.
const PAGE_ALGORITHMS: [&str; 7] = ["none", "zlib", "lz4", "lzo", "lzma", "bzip2", "snappy"];

/// In the flags of a tablespace: the algorithm stands above these bits, and is there at all.
const FLAGS_ALGORITHM_SHIFT: u64 = 5;
const FLAGS_HAVE_ALGORITHM: u64 = 1 << 4;

/// A server with one storage engine under test.
#[derive(Debug)]
pub struct MariaEngine {
    server: Server,
    admin: Mutex<Connection>,
    data: PathBuf,
    setup: Setup,
    version: String,
    /// Tables of ordered keys.
    spaces: usize,
}

impl MariaEngine {
    /// Starts a server in `directory` and makes those of `tables`, statements that create one
    /// each, which are not there.
    ///
    /// # Errors
    /// The server's own, and data that are not compressed as `setup` asks for.
    pub fn open(
        installation: &Installation,
        directory: &Path,
        setup: Setup,
        tables: &[String],
        spaces: usize,
    ) -> EngineResult<MariaEngine> {
        let mut started = Vec::new();
        for plugin in &setup.plugins {
            installation.plugin(plugin)?;
            started.push(format!("--plugin-load-add={plugin}"));
        }
        started.extend_from_slice(&setup.started);
        let server = Server::start(installation, directory, &setup.made, &started)?;
        let mut admin = server.connect()?;
        admin.run(&format!("CREATE DATABASE IF NOT EXISTS {DATABASE}"))?;
        admin.run(&format!("USE {DATABASE}"))?;
        for table in tables {
            admin.run(table)?;
        }
        let version = admin.query("SELECT VERSION()")?.into_iter().flatten().next();
        let engine = MariaEngine {
            server,
            admin: Mutex::new(admin),
            data: directory.join("data"),
            setup,
            version: version.unwrap_or_default(),
            spaces,
        };
        engine.verify_compression()?;
        Ok(engine)
    }

    /// What was asked for.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// A connection to the database.
    ///
    /// # Errors
    /// The server's own.
    pub fn connect(&self) -> EngineResult<Connection> {
        let connected = self.server.connect().and_then(|mut connection| {
            connection.run(&format!("USE {DATABASE}"))?;
            Ok(connection)
        });
        connected.map_err(|error| self.explain(error))
    }

    /// An error with its reason, when that is that the server has ended.
    #[cold]
    pub fn explain(&self, error: EngineError) -> EngineError {
        self.server.explain(error)
    }

    /// Does a statement beside the workload.
    ///
    /// # Errors
    /// The server's own.
    pub fn run(&self, sql: &str) -> EngineResult<()> {
        let done = self.admin().run(sql);
        done.map(|_| ()).map_err(|error| self.explain(error))
    }

    /// Drops the database of the tables. Gives the statement.
    ///
    /// # Errors
    /// The server's own.
    pub fn drop_database(&self) -> EngineResult<String> {
        self.run(&format!("DROP DATABASE {DATABASE}"))?;
        Ok("DROP DATABASE".to_owned())
    }

    /// The rows of a query beside the workload, as text.
    ///
    /// # Errors
    /// The server's own.
    pub fn query(&self, sql: &str) -> EngineResult<Vec<Vec<String>>> {
        let rows = self.admin().query(sql);
        rows.map_err(|error| self.explain(error))
    }

    fn admin(&self) -> MutexGuard<'_, Connection> {
        self.admin.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn counters(&self) -> EngineResult<Counters> {
        Ok(Counters::of(&self.query("SHOW GLOBAL STATUS")?))
    }

    /// Tablespaces of InnoDB with what they say of themselves.
    fn tablespaces(&self) -> EngineResult<Vec<Vec<String>>> {
        self.query(&format!(
            "SELECT NAME, FLAG, ROW_FORMAT, PAGE_SIZE, FILE_SIZE, ALLOCATED_SIZE \
             FROM information_schema.INNODB_SYS_TABLESPACES WHERE NAME LIKE '{DATABASE}/%'"
        ))
    }

    /// The codecs that the tablespaces really have.
    fn tablespace_codecs(&self) -> EngineResult<BTreeMap<String, u64>> {
        let mut codecs = BTreeMap::new();
        for row in self.tablespaces()? {
            let [_, flags, format, ..] = &row[..] else { continue };
            let flags: u64 = flags.parse().unwrap_or(0);
            let codec = if format == "Compressed" {
                "zlib in key blocks"
            } else if flags & FLAGS_HAVE_ALGORITHM != 0 {
                let number = (flags >> FLAGS_ALGORITHM_SHIFT) & 7;
                PAGE_ALGORITHMS.get(number as usize).copied().unwrap_or("unknown")
            } else {
                "none"
            };
            *codecs.entry(codec.to_owned()).or_default() += 1;
        }
        Ok(codecs)
    }

    /// Refuses tables that are not compressed as they should be: a server without an algorithm
    /// would store them as they are.
    fn verify_compression(&self) -> EngineResult<()> {
        let wanted = match &self.setup.compression {
            Compression::Levels => return Ok(()),
            _ if self.setup.kind != Kind::InnoDb => return Ok(()),
            Compression::None => "none",
            Compression::Pages(algorithm) => algorithm,
            Compression::KeyBlocks(_) => "zlib in key blocks",
        };
        let found = self.tablespace_codecs()?;
        match found.keys().find(|codec| *codec != wanted) {
            None => Ok(()),
            Some(other) => Err(EngineError::fatal(format!(
                "InnoDB was asked for the codec {wanted} and its tables have: {other}"
            ))),
        }
    }

    /// How many table files of MyRocks have which codec.
    fn table_file_codecs(&self) -> EngineResult<BTreeMap<String, u64>> {
        let rows = self.query(
            "SELECT COMPRESSION_ALGO, COUNT(*) FROM information_schema.ROCKSDB_SST_PROPS \
             GROUP BY COMPRESSION_ALGO",
        )?;
        let pairs = rows.into_iter().filter_map(|row| {
            let [codec, files] = <[String; 2]>::try_from(row).ok()?;
            Some((codec, files.parse().ok()?))
        });
        Ok(pairs.collect())
    }

    fn levels(&self) -> EngineResult<Vec<LevelStatistics>> {
        if self.setup.kind != Kind::MyRocks {
            return Ok(Vec::new());
        }
        let rows = self.query("SHOW ENGINE ROCKSDB STATUS")?;
        let families: Vec<&str> = rows
            .iter()
            .filter_map(|row| match &row[..] {
                [kind, _, text] if kind == "CF_COMPACTION" => Some(text.as_str()),
                _ => None,
            })
            .collect();
        Ok(statistics::levels(&families, &self.table_file_codecs()?))
    }

    /// The account of pages and files; `None` of MyRocks, which has neither.
    ///
    /// # Errors
    /// The server's own.
    pub fn pages(&self) -> EngineResult<Option<PageAccount>> {
        let kind = self.setup.kind;
        if kind == Kind::MyRocks {
            return Ok(None);
        }
        let sizes = FileSizes::read(kind, &self.data, &self.data.join(DATABASE));
        let mut account = PageAccount {
            file_bytes: sizes.length_bytes,
            table_bytes: sizes.tables_bytes,
            ..PageAccount::default()
        };
        if kind == Kind::InnoDb {
            self.counters()?.count_pages(&mut account);
        }
        if matches!(self.setup.compression, Compression::KeyBlocks(_)) {
            let sums = self.query(
                "SELECT SUM(compress_ops), SUM(compress_ops_ok), SUM(uncompress_ops) \
                 FROM information_schema.INNODB_CMP",
            )?;
            let mut sums = sums.into_iter().flatten().map(|sum| sum.parse::<u64>().unwrap_or(0));
            let mut next = || sums.next().unwrap_or(0);
            account.compressed = next();
            account.failed = account.compressed.saturating_sub(next());
            account.decompressed = next();
        }
        Ok(Some(account))
    }

    /// What the raw results have beside counters: how often compression worked and how often not.
    fn details(&self) -> EngineResult<Value> {
        match &self.setup.compression {
            Compression::KeyBlocks(_) => {
                let rows = self.query(
                    "SELECT page_size, compress_ops, compress_ops_ok, uncompress_ops \
                     FROM information_schema.INNODB_CMP WHERE compress_ops > 0",
                )?;
                Ok(json!({ "page_size, compressed, of it fitted, decompressed": rows }))
            }
            Compression::Pages(_) => Ok(json!({
                "name, flags, row format, page size, file size, allocated": self.tablespaces()?,
            })),
            Compression::None | Compression::Levels => Ok(Value::Null),
        }
    }

    /// Polls `left`, the work that is left, until there is none or it does not get less any more.
    fn wait_for(&self, left: &mut dyn FnMut() -> EngineResult<u64>) -> EngineResult<()> {
        let mut least = u64::MAX;
        let mut since = Instant::now();
        loop {
            let now = left()?;
            if now == 0 || since.elapsed() > STANDSTILL {
                return Ok(());
            }
            if now < least {
                (least, since) = (now, Instant::now());
            }
            thread::sleep(POLL);
        }
    }

    /// Compactions are over when none is pending and none has written for a while.
    fn wait_for_myrocks(&self) -> EngineResult<()> {
        const QUIET: Duration = Duration::from_millis(500);
        let (mut written, mut since) = (0, Instant::now());
        loop {
            let pending = self.query(
                "SELECT SUM(VALUE) FROM information_schema.ROCKSDB_CFSTATS \
                 WHERE STAT_TYPE IN ('COMPACTION_PENDING', 'MEM_TABLE_FLUSH_PENDING')",
            )?;
            let is_pending = pending.into_iter().flatten().any(|sum| sum != "0");
            let now = self.counters()?.value("rocksdb_compact_write_bytes");
            if is_pending || now != written {
                (written, since) = (now, Instant::now());
            } else if since.elapsed() > QUIET {
                return Ok(());
            }
            thread::sleep(POLL);
        }
    }

    /// Takes all of level 0 to the base level: with a trigger of one run MyRocks's own picker does, with
    /// the codec of the level that it writes to.
    fn empty_level0(&self) -> EngineResult<()> {
        let families = self.query(
            "SELECT CF_NAME, VALUE FROM information_schema.ROCKSDB_CF_OPTIONS \
             WHERE OPTION_TYPE = 'LEVEL0_FILE_NUM_COMPACTION_TRIGGER'",
        )?;
        let set = |trigger: &dyn Fn(&[String]) -> String| {
            let option = |row: &Vec<String>| {
                format!("{}={{level0_file_num_compaction_trigger={}}};", row[0], trigger(row))
            };
            let options: String =
                families.iter().filter(|row| row.len() == 2).map(option).collect();
            self.run(&format!("SET GLOBAL rocksdb_update_cf_options = '{options}'"))
        };
        set(&|_| "1".to_owned())?;
        let emptied = self.wait_for_myrocks();
        set(&|row| row[1].clone())?;
        emptied
    }

    /// The codecs that data really have, each with the number of tables or of table files; none of
    /// an engine without codecs.
    ///
    /// # Errors
    /// The server's own.
    pub fn codecs(&self) -> EngineResult<BTreeMap<String, u64>> {
        match self.setup.kind {
            Kind::InnoDb => self.tablespace_codecs(),
            Kind::MyRocks => self.table_file_codecs(),
            Kind::MyIsam | Kind::Aria => Ok(BTreeMap::new()),
        }
    }

    /// The same for the report.
    fn codec_label(&self) -> Option<String> {
        let of = match self.setup.kind {
            Kind::InnoDb => "tables",
            Kind::MyRocks => "table files",
            Kind::MyIsam | Kind::Aria => return None,
        };
        let codecs = self.codecs().ok()?;
        let codecs = codecs.iter().map(|(codec, count)| format!("{codec} in {count} {of}"));
        Some(format!("found: {}", codecs.collect::<Vec<_>>().join(", ")))
    }
}

/// What a storage engine can do by itself.
pub fn capabilities(kind: Kind) -> Capabilities {
    let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
    Capabilities {
        transactions: kind.has_transactions(),
        prefix_filter: kind == Kind::MyRocks,
        single_delete: false,
        multi_get: true,
        ordered_scan: true,
        codec_per_level: kind == Kind::MyRocks,
        codecs: texts(match kind {
            Kind::InnoDb => &["none", "zlib", "lz4", "snappy"],
            Kind::MyRocks => &["none", "snappy", "lz4", "zlib", "zstd"],
            Kind::MyIsam | Kind::Aria => &["none"],
        }),
        block_size: kind == Kind::MyRocks,
        durability: texts(match kind {
            Kind::MyIsam => &["buffered", "none"],
            Kind::InnoDb | Kind::MyRocks | Kind::Aria => &["sync", "buffered", "none"],
        }),
        own_statistics: matches!(kind, Kind::InnoDb | Kind::MyRocks),
        labels: texts(match kind {
            Kind::InnoDb => &["one codec for all data"],
            Kind::MyRocks => &["codecs count from the base level"],
            Kind::MyIsam | Kind::Aria => &["no transactions"],
        }),
    }
}

impl Engine for MariaEngine {
    fn name(&self) -> String {
        format!("MariaDB {} {}", self.version, self.setup.kind.title())
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = capabilities(self.setup.kind);
        // An engine of ordered keys says what it said before it was opened. A report of a graph has
        // what is in force as well.
        if self.spaces == 0 {
            capabilities.labels.extend_from_slice(&self.setup.labels);
            capabilities.labels.extend(self.codec_label());
        }
        capabilities
    }

    fn options(&self) -> Value {
        let pattern = match self.setup.kind {
            Kind::InnoDb => "innodb%",
            Kind::MyRocks => "rocksdb%",
            Kind::MyIsam => "%key_buffer%",
            Kind::Aria => "aria%",
        };
        let variables = self.query(&format!("SHOW GLOBAL VARIABLES LIKE '{pattern}'"));
        let variables: BTreeMap<String, String> = variables
            .unwrap_or_default()
            .into_iter()
            .filter_map(|row| <[String; 2]>::try_from(row).ok().map(<(String, String)>::from))
            .collect();
        let arguments = [&self.setup.made[..], &self.setup.started[..]].concat();
        json!({
            "arguments": arguments,
            "tables": self.setup.table_options,
            "partitions": self.setup.partitions,
            "variables": variables,
        })
    }

    fn session(&self) -> EngineResult<Box<dyn Session + '_>> {
        Ok(Box::new(KeysSession::new(self, self.spaces)?))
    }

    fn flush(&self) -> EngineResult<()> {
        match self.setup.kind {
            Kind::InnoDb => {
                self.run("SET GLOBAL innodb_max_dirty_pages_pct_lwm = 0")?;
                self.run("SET GLOBAL innodb_max_dirty_pages_pct = 0")?;
                let mut left = || Ok(self.counters()?.value("innodb_buffer_pool_pages_dirty"));
                self.wait_for(&mut left)?;
                self.run("SET GLOBAL innodb_max_dirty_pages_pct = DEFAULT")
            }
            Kind::MyRocks => self.run("SET GLOBAL rocksdb_force_flush_memtable_now = ON"),
            Kind::MyIsam | Kind::Aria => self.run("FLUSH TABLES"),
        }
    }

    fn wait_for_compaction(&self) -> EngineResult<()> {
        match self.setup.kind {
            // Rows that nobody can see any more, and then the pages that were changed for it.
            Kind::InnoDb => {
                let mut left = || Ok(self.counters()?.value("innodb_history_list_length"));
                self.wait_for(&mut left)?;
                self.flush()
            }
            Kind::MyRocks => self.wait_for_myrocks(),
            Kind::MyIsam | Kind::Aria => Ok(()),
        }
    }

    fn settle_tree(&self) -> EngineResult<String> {
        self.flush()?;
        self.wait_for_compaction()?;
        if self.setup.kind != Kind::MyRocks {
            return Ok("flushed, background work waited for".to_owned());
        }
        self.empty_level0()?;
        Ok(LEVEL0_EMPTIED.to_owned())
    }

    fn statistics(&self) -> EngineResult<EngineStatistics> {
        let database = self.data.join(DATABASE);
        let sizes = FileSizes::read(self.setup.kind, &self.data, &database);
        // Nothing is asked for between the two but the counters.
        let (asked, counters) = (self.server.asked(), self.counters()?);
        let (levels, details) = (self.levels()?, self.details()?);
        let cross_counts = counters.beside(&self.setup, &asked);
        let statistics = statistics::statistics(&self.setup, &counters, sizes, levels, details);
        Ok(EngineStatistics { cross_counts, ..statistics })
    }

    fn process_ids(&self) -> Vec<u32> {
        vec![self.server.pid()]
    }

    fn close(self: Box<Self>) -> EngineResult<()> {
        self.server.stop()
    }
}
