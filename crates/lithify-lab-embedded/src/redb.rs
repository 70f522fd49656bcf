//! redb.
//!
//! Owns: one database file, one table per space. Promises: a read sees the newest commit; a batch
//! is one write transaction, of which there is one at a time. Durability `buffered` is redb's own
//! commit over a file whose syncs are left out, see `Unsynced`.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};

use ::redb::backends::FileBackend;
use ::redb::{
    BackendError, Builder, Database, Durability, ReadOnlyTable, ReadTransaction,
    ReadableDatabase as _, StorageBackend, Table, TableDefinition, WriteTransaction,
};
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
use serde_json::json;

use crate::provider::Embedded;

/// The version of the crate.
pub(crate) const VERSION: &str = "4.5.0";

const FILE: &str = "data.redb";

type Definition = TableDefinition<'static, &'static [u8], &'static [u8]>;
type Reading = ReadOnlyTable<&'static [u8], &'static [u8]>;
type Writing<'a> = Table<'a, &'static [u8], &'static [u8]>;

/// An open database.
pub struct RedbEngine {
    database: Database,
    tables: Vec<Definition>,
    durability: DurabilityMode,
    path: PathBuf,
    cache_bytes: u64,
}

fn failed(error: impl Into<::redb::Error>) -> EngineError {
    EngineError::fatal(format!("redb: {}", error.into()))
}

fn failed_io(path: &Path, error: io::Error) -> EngineError {
    EngineError::fatal(format!("{}: {error}", path.display()))
}

/// What it can do without an external lock.
fn capabilities() -> Capabilities {
    Capabilities {
        ordered_scan: true,
        codecs: vec![Codec::NONE.kind().to_owned()],
        durability: crate::names_of(&DurabilityMode::ALL),
        labels: vec!["one writer".to_owned()],
        ..Capabilities::default()
    }
}

/// A file whose syncs do nothing: what is committed has been written to the operating system, in
/// order, and survives the death of the process, not that of the machine. redb itself has no such
/// mode: it syncs each commit, or keeps commits in memory.
#[derive(Debug)]
struct Unsynced(FileBackend);

impl StorageBackend for Unsynced {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.0.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.try_lock_range(start, end)
    }

    fn try_lock_shared_range(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
    ) -> Result<bool, BackendError> {
        self.0.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.query_lock_range(start, end)
    }
}

impl RedbEngine {
    /// Opens or makes a database.
    ///
    /// # Errors
    /// Settings that it cannot follow, and what the library refuses.
    pub fn open(
        directory: &Path,
        settings: &EngineSettings,
        spaces: &[SpaceSpec],
    ) -> EngineResult<RedbEngine> {
        Self::can_follow(settings)?;
        let path = directory.join(FILE);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file: File = options.open(&path).map_err(|error| failed_io(&path, error))?;
        let backend = FileBackend::new(file).map_err(failed)?;
        let mut builder = Builder::new();
        builder.set_cache_size(settings.memory_budget_bytes as usize);
        let database = match settings.durability {
            DurabilityMode::Buffered => builder.create_with_backend(Unsynced(backend)),
            DurabilityMode::Sync | DurabilityMode::None => builder.create_with_backend(backend),
        };
        let engine = RedbEngine {
            database: database.map_err(failed)?,
            tables: spaces.iter().map(|space| Definition::new(space.name)).collect(),
            durability: settings.durability,
            path,
            cache_bytes: settings.memory_budget_bytes,
        };
        let transaction = engine.begin(Durability::Immediate)?;
        for table in &engine.tables {
            transaction.open_table(*table).map_err(failed)?;
        }
        transaction.commit().map_err(failed)?;
        Ok(engine)
    }

    fn begin(&self, durability: Durability) -> EngineResult<WriteTransaction> {
        let mut transaction = self.database.begin_write().map_err(failed)?;
        transaction.set_durability(durability).map_err(failed)?;
        Ok(transaction)
    }

    /// The table of a space as of now.
    fn read(&self, space: SpaceId) -> EngineResult<Reading> {
        let table = self.table(space)?;
        let transaction: ReadTransaction = self.database.begin_read().map_err(failed)?;
        transaction.open_table(table).map_err(failed)
    }

    fn table(&self, space: SpaceId) -> EngineResult<Definition> {
        self.tables.get(space.index()).copied().ok_or_else(|| EngineError::no_space(space))
    }

    /// Makes commits durable that were not.
    fn persist(&self) -> EngineResult<()> {
        match self.durability {
            DurabilityMode::None => self.begin(Durability::Immediate)?.commit().map_err(failed),
            DurabilityMode::Sync | DurabilityMode::Buffered => Ok(()),
        }
    }
}

impl Engine for RedbEngine {
    fn name(&self) -> String {
        format!("redb {VERSION}")
    }

    fn capabilities(&self) -> Capabilities {
        capabilities()
    }

    fn options(&self) -> serde_json::Value {
        json!({
            "cache_bytes": self.cache_bytes,
            "commit": match self.durability {
                DurabilityMode::Sync => "Immediate",
                DurabilityMode::Buffered => "Immediate, syncs left out",
                DurabilityMode::None => "None; Immediate at a flush",
            },
            "page_bytes": 4096,
        })
    }

    fn session(&self) -> EngineResult<Box<dyn Session + '_>> {
        Ok(Box::new(Plain(RedbSession { engine: self })))
    }

    fn flush(&self) -> EngineResult<()> {
        self.persist()
    }

    fn wait_for_compaction(&self) -> EngineResult<()> {
        self.persist()
    }

    fn statistics(&self) -> EngineResult<EngineStatistics> {
        let metadata = self.path.metadata().map_err(|error| failed_io(&self.path, error))?;
        Ok(EngineStatistics { live_bytes: metadata.len(), ..EngineStatistics::default() })
    }

    fn close(self: Box<Self>) -> EngineResult<()> {
        self.persist()?;
        self.database.close().map_err(failed)
    }
}

struct RedbSession<'a> {
    engine: &'a RedbEngine,
}

/// The table of an operation: opened by the first one on its space, kept for the next.
fn opened<'t, 'a>(
    open: &'t mut Vec<(SpaceId, Writing<'a>)>,
    engine: &RedbEngine,
    transaction: &'a WriteTransaction,
    space: SpaceId,
) -> EngineResult<&'t mut Writing<'a>> {
    let index = match open.iter().position(|(of, _)| *of == space) {
        Some(index) => index,
        None => {
            let table = transaction.open_table(engine.table(space)?).map_err(failed)?;
            open.push((space, table));
            open.len() - 1
        }
    };
    Ok(&mut open[index].1)
}

impl PlainSession for RedbSession<'_> {
    fn get(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> EngineResult<bool> {
        value.clear();
        let found = self.engine.read(space)?.get(key).map_err(failed)?;
        let Some(found) = found else { return Ok(false) };
        value.extend_from_slice(found.value());
        Ok(true)
    }

    fn multi_get(
        &mut self,
        space: SpaceId,
        keys: &[&[u8]],
        found: &mut dyn FnMut(usize, &[u8]),
    ) -> EngineResult<()> {
        let table = self.engine.read(space)?;
        for (index, key) in keys.iter().enumerate() {
            if let Some(value) = table.get(*key).map_err(failed)? {
                found(index, value.value());
            }
        }
        Ok(())
    }

    fn scan(
        &mut self,
        space: SpaceId,
        range: &ScanRange<'_>,
        row: &mut RowVisitor<'_>,
    ) -> EngineResult<u64> {
        let table = self.engine.read(space)?;
        let Some(mut window) = Window::new(range, row) else { return Ok(0) };
        for entry in table.range(range.first()..).map_err(failed)? {
            let (key, value) = entry.map_err(failed)?;
            if window.offer(key.value(), value.value()).is_break() {
                break;
            }
        }
        Ok(window.visited())
    }

    fn scan_back(
        &mut self,
        space: SpaceId,
        from: &[u8],
        limit: u64,
        row: &mut RowVisitor<'_>,
    ) -> EngineResult<u64> {
        let table = self.engine.read(space)?;
        let range = ScanRange::first_rows(limit);
        let Some(mut window) = Window::new(&range, row) else { return Ok(0) };
        for entry in table.range(..=from).map_err(failed)?.rev() {
            let (key, value) = entry.map_err(failed)?;
            if window.offer(key.value(), value.value()).is_break() {
                break;
            }
        }
        Ok(window.visited())
    }

    fn write_batch(&mut self, batch: &WriteBatch) -> EngineResult<()> {
        let durability = match self.engine.durability {
            DurabilityMode::Sync | DurabilityMode::Buffered => Durability::Immediate,
            DurabilityMode::None => Durability::None,
        };
        let transaction = self.engine.begin(durability)?;
        let mut open = Vec::new();
        for op in batch.ops() {
            // A transaction that is dropped leaves nothing.
            let table = opened(&mut open, self.engine, &transaction, op.row().0)?;
            match op {
                BatchOp::Put(_, key, value) => table.insert(key, value).map(drop),
                BatchOp::Delete(_, key) | BatchOp::SingleDelete(_, key) => {
                    table.remove(key).map(drop)
                }
            }
            .map_err(failed)?;
        }
        drop(open);
        transaction.commit().map_err(failed)
    }
}

impl Embedded for RedbEngine {
    const ABOUT: &'static Elsewhere = &elsewhere::REDB;

    fn version() -> String {
        VERSION.to_owned()
    }

    fn can() -> Capabilities {
        capabilities()
    }

    fn codec_library(_codec: Codec) -> String {
        "none".to_owned()
    }

    fn can_follow(settings: &EngineSettings) -> EngineResult<()> {
        settings.expect_options("redb", &[])?;
        settings.expect_buffered_reads("redb")
    }

    fn open(
        directory: &Path,
        settings: &EngineSettings,
        spaces: &[SpaceSpec],
    ) -> EngineResult<Self> {
        RedbEngine::open(directory, settings, spaces)
    }
}
