//! SQLite through its crate `rusqlite`, which carries the library's source.
//!
//! Owns: one database file with a write-ahead log, one table without row ids per space, a
//! connection with its prepared statements per session, and one more for checkpoints and figures.
//!
//! Promises: a batch is one transaction. SQLite has one writer at a time and lets others sleep and
//! try again; sessions queue at a lock of this adapter before they ask, so that none has to.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lithify_lab::adapter::codec::Codec;
use lithify_lab::adapter::plain::{Plain, PlainSession};
use lithify_lab::adapter::settings::DurabilityMode;
use lithify_lab::adapter::settings::EngineSettings;
use lithify_lab::adapter::window::Window;
use lithify_lab::adapter::{
    BatchOp, Capabilities, Engine, EngineError, EngineResult, EngineStatistics, RowVisitor,
    ScanRange, Session, SpaceId, SpaceSpec, WriteBatch,
};
use lithify_lab::engines::elsewhere::{self, Elsewhere};
use rusqlite::{Connection, ErrorCode, Statement};
use self_cell::self_cell;
use serde_json::json;

use crate::provider::Embedded;

const FILE: &str = "data.sqlite";
const LOG_FILE: &str = "data.sqlite-wal";

/// The option that only SQLite knows.
const PAGE_KIB: &str = "page_kib";

/// How long a checkpoint waits for readers and a session for a checkpoint.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// An open database.
pub struct SqliteEngine {
    path: PathBuf,
    spaces: Vec<SpaceSpec>,
    tuning: Tuning,
    /// Held by whoever writes.
    writer: Mutex<()>,
    /// Sessions there are; they share the cache's bytes.
    sessions: AtomicU64,
    own: Mutex<Connection>,
}

/// What every connection is told.
struct Tuning {
    page_bytes: u64,
    log_pages: u64,
    cache_bytes: u64,
    synchronous: &'static str,
}

fn failed(error: rusqlite::Error) -> EngineError {
    let text = format!("SQLite: {error}");
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => EngineError::retryable(text),
        _ => EngineError::fatal(text),
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What it can do without an external lock.
fn capabilities() -> Capabilities {
    Capabilities {
        ordered_scan: true,
        codecs: vec![Codec::NONE.kind().to_owned()],
        block_size: true,
        durability: crate::names_of(&DurabilityMode::ALL),
        labels: vec!["one writer".to_owned()],
        ..Capabilities::default()
    }
}

/// The size of a page: the option's, else that of a block.
fn page_bytes(settings: &EngineSettings) -> EngineResult<u64> {
    let page_bytes = match settings.options.get(PAGE_KIB) {
        Some(text) => text.parse::<u64>().ok().and_then(|kib| kib.checked_mul(1024)),
        None => Some(settings.block_bytes),
    };
    let possible =
        page_bytes.filter(|bytes| (512..=65_536).contains(bytes) && bytes.is_power_of_two());
    possible.ok_or_else(|| match settings.options.get(PAGE_KIB) {
        Some(text) => EngineError::fatal(format!(
            "sqlite: options.{PAGE_KIB} is \"{text}\"; allowed: powers of two from 1 to 64"
        )),
        None => EngineError::fatal(format!(
            "sqlite: a page of {} bytes is impossible; allowed: powers of two from 512 to 65536",
            settings.block_bytes
        )),
    })
}

impl Tuning {
    fn of(settings: &EngineSettings) -> EngineResult<Tuning> {
        let page_bytes = page_bytes(settings)?;
        Ok(Tuning {
            page_bytes,
            log_pages: (settings.memtable_bytes / page_bytes).max(1),
            cache_bytes: settings.memory_budget_bytes,
            synchronous: match settings.durability {
                DurabilityMode::Sync => "FULL",
                DurabilityMode::Buffered => "NORMAL",
                DurabilityMode::None => "OFF",
            },
        })
    }

    /// A connection to the database, which is made if there is none.
    fn connect(&self, path: &Path) -> rusqlite::Result<Connection> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.execute_batch(&format!(
            "PRAGMA page_size = {}; PRAGMA journal_mode = WAL; PRAGMA synchronous = {}; \
             PRAGMA wal_autocheckpoint = {}; PRAGMA mmap_size = 0",
            self.page_bytes, self.synchronous, self.log_pages
        ))?;
        Ok(connection)
    }

    /// Gives a connection its part of the cache.
    fn share_cache(&self, connection: &Connection, sessions: u64) -> rusqlite::Result<()> {
        let kib = (self.cache_bytes / sessions.max(1) / 1024).max(1);
        connection.execute_batch(&format!("PRAGMA cache_size = -{kib}"))
    }
}

impl SqliteEngine {
    /// Opens or makes a database.
    ///
    /// # Errors
    /// Settings that it cannot follow, and what the library refuses.
    pub fn open(
        directory: &Path,
        settings: &EngineSettings,
        spaces: &[SpaceSpec],
    ) -> EngineResult<SqliteEngine> {
        Self::can_follow(settings)?;
        let tuning = Tuning::of(settings)?;
        let path = directory.join(FILE);
        let own = tuning.connect(&path).map_err(failed)?;
        for space in spaces {
            let table = format!(
                "CREATE TABLE IF NOT EXISTS \"{}\" (k BLOB PRIMARY KEY, v BLOB NOT NULL) \
                 WITHOUT ROWID",
                space.name
            );
            own.execute_batch(&table).map_err(failed)?;
        }
        Ok(SqliteEngine {
            path,
            spaces: spaces.to_vec(),
            tuning,
            writer: Mutex::new(()),
            sessions: AtomicU64::new(0),
            own: Mutex::new(own),
        })
    }

    /// Moves the log into the database and empties it.
    fn checkpoint(&self) -> EngineResult<()> {
        let _writer = locked(&self.writer);
        let own = locked(&self.own);
        let busy: i64 = own
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
            .map_err(failed)?;
        match busy {
            0 => Ok(()),
            _ => Err(EngineError::retryable("SQLite: readers kept a checkpoint from its end")),
        }
    }

    fn log_bytes(&self) -> u64 {
        self.path.with_file_name(LOG_FILE).metadata().map_or(0, |metadata| metadata.len())
    }
}

impl Engine for SqliteEngine {
    fn name(&self) -> String {
        format!("SQLite {}", rusqlite::version())
    }

    fn capabilities(&self) -> Capabilities {
        capabilities()
    }

    fn options(&self) -> serde_json::Value {
        json!({
            "page_bytes": self.tuning.page_bytes,
            "cache_bytes_of_all_connections": self.tuning.cache_bytes,
            "wal_autocheckpoint_pages": self.tuning.log_pages,
            "synchronous": self.tuning.synchronous,
            "journal_mode": "WAL",
            "mmap_size": 0,
        })
    }

    fn session(&self) -> EngineResult<Box<dyn Session + '_>> {
        Ok(Box::new(Plain(SqliteSession::new(self)?)))
    }

    fn flush(&self) -> EngineResult<()> {
        self.checkpoint()
    }

    fn wait_for_compaction(&self) -> EngineResult<()> {
        self.checkpoint()
    }

    fn statistics(&self) -> EngineResult<EngineStatistics> {
        let own = locked(&self.own);
        let pragma = |name: &str| {
            let answer = own.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i64>(0));
            answer.map(i64::unsigned_abs).map_err(failed)
        };
        let (pages, free_pages) = (pragma("page_count")?, pragma("freelist_count")?);
        let log_bytes = self.log_bytes();
        Ok(EngineStatistics {
            live_bytes: pages * self.tuning.page_bytes + log_bytes,
            raw: json!({
                "pages": pages,
                "free_pages": free_pages,
                "wal_live_bytes": log_bytes,
            }),
            ..EngineStatistics::default()
        })
    }

    fn close(self: Box<Self>) -> EngineResult<()> {
        self.checkpoint()?;
        let own = self.own.into_inner().unwrap_or_else(PoisonError::into_inner);
        own.close().map_err(|(_, error)| failed(error))
    }
}

/// The statements of one space.
struct SpaceStatements<'c> {
    get: Statement<'c>,
    scan: Statement<'c>,
    scan_back: Statement<'c>,
    put: Statement<'c>,
    delete: Statement<'c>,
}

/// The statements of a connection.
struct Statements<'c> {
    spaces: Vec<SpaceStatements<'c>>,
    begin_read: Statement<'c>,
    begin_write: Statement<'c>,
    commit: Statement<'c>,
    rollback: Statement<'c>,
}

impl<'c> Statements<'c> {
    fn prepare(connection: &'c Connection, spaces: &[SpaceSpec]) -> rusqlite::Result<Self> {
        let of_space = |space: &SpaceSpec| -> rusqlite::Result<SpaceStatements<'c>> {
            let table = format!("\"{}\"", space.name);
            Ok(SpaceStatements {
                get: connection.prepare(&format!("SELECT v FROM {table} WHERE k = ?1"))?,
                scan: connection
                    .prepare(&format!("SELECT k, v FROM {table} WHERE k >= ?1 ORDER BY k"))?,
                scan_back: connection
                    .prepare(&format!("SELECT k, v FROM {table} WHERE k <= ?1 ORDER BY k DESC"))?,
                put: connection.prepare(&format!("REPLACE INTO {table} (k, v) VALUES (?1, ?2)"))?,
                delete: connection.prepare(&format!("DELETE FROM {table} WHERE k = ?1"))?,
            })
        };
        Ok(Statements {
            spaces: spaces.iter().map(of_space).collect::<rusqlite::Result<_>>()?,
            begin_read: connection.prepare("BEGIN")?,
            begin_write: connection.prepare("BEGIN IMMEDIATE")?,
            commit: connection.prepare("COMMIT")?,
            rollback: connection.prepare("ROLLBACK")?,
        })
    }

    fn of(&mut self, space: SpaceId) -> EngineResult<&mut SpaceStatements<'c>> {
        self.spaces.get_mut(space.index()).ok_or_else(|| EngineError::no_space(space))
    }

    fn change(&mut self, op: BatchOp<'_>) -> EngineResult<()> {
        let statements = self.of(op.row().0)?;
        match op {
            BatchOp::Put(_, key, value) => execute(&mut statements.put, &[key, value]),
            BatchOp::Delete(_, key) | BatchOp::SingleDelete(_, key) => {
                execute(&mut statements.delete, &[key])
            }
        }
        .map_err(failed)
    }

    /// Runs `work` between `begin` and a commit; what fails is rolled back.
    fn within(
        &mut self,
        begin: fn(&mut Self) -> &mut Statement<'c>,
        work: impl FnOnce(&mut Self) -> EngineResult<()>,
    ) -> EngineResult<()> {
        execute(begin(self), &[]).map_err(failed)?;
        let outcome = work(self).and_then(|()| execute(&mut self.commit, &[]).map_err(failed));
        if outcome.is_err() {
            // The first error says more than one of this.
            let _ = execute(&mut self.rollback, &[]);
        }
        outcome
    }
}

fn bind(statement: &mut Statement<'_>, values: &[&[u8]]) -> rusqlite::Result<()> {
    let mut numbered = values.iter().zip(1usize..);
    numbered.try_for_each(|(value, number)| statement.raw_bind_parameter(number, *value))
}

fn execute(statement: &mut Statement<'_>, values: &[&[u8]]) -> rusqlite::Result<()> {
    bind(statement, values)?;
    statement.raw_execute().map(drop)
}

/// Offers the rows that `statement` finds from `first` on, in its order, to a window over `range`.
fn visit(
    statement: &mut Statement<'_>,
    first: &[u8],
    range: &ScanRange<'_>,
    row: &mut RowVisitor<'_>,
) -> EngineResult<u64> {
    let Some(mut window) = Window::new(range, row) else { return Ok(0) };
    let mut offer = || -> rusqlite::Result<()> {
        bind(statement, &[first])?;
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next()? {
            let (key, value) = (row.get_ref(0)?.as_bytes()?, row.get_ref(1)?.as_bytes()?);
            if window.offer(key, value).is_break() {
                break;
            }
        }
        Ok(())
    };
    offer().map_err(failed)?;
    Ok(window.visited())
}

/// Reads the row that `statement` finds for `key`, if there is one.
fn read(
    statement: &mut Statement<'_>,
    key: &[u8],
    found: &mut dyn FnMut(&[u8]),
) -> rusqlite::Result<bool> {
    bind(statement, &[key])?;
    let mut rows = statement.raw_query();
    let Some(row) = rows.next()? else { return Ok(false) };
    found(row.get_ref(0)?.as_bytes()?);
    Ok(true)
}

self_cell!(
    /// A connection with the statements that are prepared on it.
    struct Prepared {
        owner: Connection,
        #[not_covariant]
        dependent: Statements,
    }
);

struct SqliteSession<'a> {
    engine: &'a SqliteEngine,
    prepared: Prepared,
    /// Number of sessions that this one's part of the cache was made for.
    shared_by: u64,
}

impl<'a> SqliteSession<'a> {
    fn new(engine: &'a SqliteEngine) -> EngineResult<Self> {
        let connection = engine.tuning.connect(&engine.path).map_err(failed)?;
        let prepared = Prepared::try_new(connection, |connection| {
            Statements::prepare(connection, &engine.spaces)
        });
        let prepared = prepared.map_err(failed)?;
        engine.sessions.fetch_add(1, Ordering::Relaxed);
        Ok(SqliteSession { engine, prepared, shared_by: 0 })
    }

    /// The statements, after a look whether sessions came or went.
    fn with<R>(
        &mut self,
        call: impl FnOnce(&mut Statements<'_>) -> EngineResult<R>,
    ) -> EngineResult<R> {
        let sessions = self.engine.sessions.load(Ordering::Relaxed);
        if sessions != self.shared_by {
            let connection = self.prepared.borrow_owner();
            self.engine.tuning.share_cache(connection, sessions).map_err(failed)?;
            self.shared_by = sessions;
        }
        self.prepared.with_dependent_mut(|_, statements| call(statements))
    }
}

impl Drop for SqliteSession<'_> {
    fn drop(&mut self) {
        self.engine.sessions.fetch_sub(1, Ordering::Relaxed);
    }
}

impl PlainSession for SqliteSession<'_> {
    fn get(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> EngineResult<bool> {
        value.clear();
        self.with(|statements| {
            let get = &mut statements.of(space)?.get;
            read(get, key, &mut |found| value.extend_from_slice(found)).map_err(failed)
        })
    }

    fn multi_get(
        &mut self,
        space: SpaceId,
        keys: &[&[u8]],
        found: &mut dyn FnMut(usize, &[u8]),
    ) -> EngineResult<()> {
        self.with(|statements| {
            // One transaction sees one moment.
            statements.within(
                |statements| &mut statements.begin_read,
                |statements| {
                    let get = &mut statements.of(space)?.get;
                    for (index, key) in keys.iter().enumerate() {
                        read(get, key, &mut |value| found(index, value)).map_err(failed)?;
                    }
                    Ok(())
                },
            )
        })
    }

    fn scan(
        &mut self,
        space: SpaceId,
        range: &ScanRange<'_>,
        row: &mut RowVisitor<'_>,
    ) -> EngineResult<u64> {
        self.with(|statements| {
            let scan = &mut statements.of(space)?.scan;
            visit(scan, range.first(), range, row)
        })
    }

    fn scan_back(
        &mut self,
        space: SpaceId,
        from: &[u8],
        limit: u64,
        row: &mut RowVisitor<'_>,
    ) -> EngineResult<u64> {
        self.with(|statements| {
            let scan = &mut statements.of(space)?.scan_back;
            let range = ScanRange::first_rows(limit);
            visit(scan, from, &range, row)
        })
    }

    fn write_batch(&mut self, batch: &WriteBatch) -> EngineResult<()> {
        let engine = self.engine;
        self.with(|statements| {
            let _writer = locked(&engine.writer);
            let mut ops = batch.ops();
            // A statement is a transaction by itself.
            if let (1, Some(op)) = (batch.len(), ops.next()) {
                return statements.change(op);
            }
            statements.within(
                |statements| &mut statements.begin_write,
                |statements| batch.ops().try_for_each(|op| statements.change(op)),
            )
        })
    }
}

impl Embedded for SqliteEngine {
    const ABOUT: &'static Elsewhere = &elsewhere::SQLITE;

    fn version() -> String {
        rusqlite::version().to_owned()
    }

    fn can() -> Capabilities {
        capabilities()
    }

    fn codec_library(_codec: Codec) -> String {
        "none".to_owned()
    }

    fn can_follow(settings: &EngineSettings) -> EngineResult<()> {
        settings.expect_options("sqlite", &[PAGE_KIB])?;
        settings.expect_buffered_reads("sqlite")?;
        Tuning::of(settings).map(|_| ())
    }

    fn open(
        directory: &Path,
        settings: &EngineSettings,
        spaces: &[SpaceSpec],
    ) -> EngineResult<Self> {
        SqliteEngine::open(directory, settings, spaces)
    }
}
