//! LMDB through its crate `heed`.
//!
//! Owns: one environment, one named database per space. Promises: a read sees the newest commit;
//! a batch is one write transaction. LMDB has one writer at a time, who waits for nobody but the
//! writer before; readers never wait.
//!
//! LMDB maps its file into memory and leaves caching to the operating system: the memory budget of
//! the settings does not bind it.

use std::ops::Bound;
use std::path::Path;

use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, MdbError};
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

type Table = Database<'static, Bytes, Bytes>;

/// Address space for the file when nothing else is asked for. The file grows by what is written.
const MAP_MIB_DEFAULT: usize = 256 << 10;
/// An eighth of the address space that a process has.
const MAP_MIB_MAX: usize = 16 << 20;

/// More than clients of any workload: each that reads has a slot.
const READERS_MAX: u32 = 4096;

/// The options that only LMDB knows.
const OPTIONS: [&str; 2] = ["map_mib", "read_ahead"];

/// An open environment.
pub struct LmdbEngine {
    env: Env,
    tables: Vec<Table>,
    options: serde_json::Value,
}

fn failed(error: heed::Error) -> EngineError {
    match error {
        heed::Error::Mdb(MdbError::MapFull) => EngineError::fatal(
            "LMDB: the map is full; give the arm more address space with options.map_mib",
        ),
        other => EngineError::fatal(format!("LMDB: {other}")),
    }
}

/// What it can do without an external lock.
fn capabilities() -> Capabilities {
    Capabilities {
        ordered_scan: true,
        codecs: vec![Codec::NONE.kind().to_owned()],
        durability: crate::names_of(&[DurabilityMode::Sync, DurabilityMode::Buffered]),
        labels: vec!["one writer".to_owned(), "the system's page cache".to_owned()],
        ..Capabilities::default()
    }
}

/// The value of an option, or what it is without one.
fn map_mib(settings: &EngineSettings) -> EngineResult<usize> {
    let Some(text) = settings.options.get("map_mib") else { return Ok(MAP_MIB_DEFAULT) };
    match text.parse() {
        Ok(number @ 1..=MAP_MIB_MAX) => Ok(number),
        _ => Err(EngineError::fatal(format!(
            "lmdb: options.map_mib is \"{text}\"; allowed: 1 to {MAP_MIB_MAX}"
        ))),
    }
}

fn reads_ahead(settings: &EngineSettings) -> EngineResult<bool> {
    match settings.options.get("read_ahead").map_or("on", String::as_str) {
        "on" => Ok(true),
        "off" => Ok(false),
        other => Err(EngineError::fatal(format!(
            "lmdb: options.read_ahead is \"{other}\"; allowed: on, off"
        ))),
    }
}

impl LmdbEngine {
    /// Opens or makes an environment.
    ///
    /// # Errors
    /// Settings that it cannot follow, and what the library refuses.
    pub fn open(
        directory: &Path,
        settings: &EngineSettings,
        spaces: &[SpaceSpec],
    ) -> EngineResult<LmdbEngine> {
        Self::can_follow(settings)?;
        let mut flags = EnvFlags::empty();
        flags.set(EnvFlags::NO_SYNC, settings.durability != DurabilityMode::Sync);
        flags.set(EnvFlags::NO_READ_AHEAD, !reads_ahead(settings)?);
        let map_mib = map_mib(settings)?;
        let env = environment(directory, map_mib << 20, spaces.len(), flags).map_err(failed)?;
        let tables: heed::Result<_> = spaces.iter().map(|space| table(&env, space.name)).collect();
        let options = json!({ "map_mib": map_mib, "flags": format!("{flags:?}") });
        Ok(LmdbEngine { tables: tables.map_err(failed)?, env, options })
    }

    fn table(&self, space: SpaceId) -> EngineResult<&Table> {
        self.tables.get(space.index()).ok_or_else(|| EngineError::no_space(space))
    }
}

/// A named database, which is made if there is none.
fn table(env: &Env, name: &str) -> heed::Result<Table> {
    let transaction = env.write_txn()?;
    let made = env.create_databases_and_commit(transaction, |opener, transaction| {
        let table = opener.create_database::<Bytes, Bytes>(transaction, Some(name));
        table.map(CommitOrAbort::<_, ()>::Commit)
    });
    Ok(made?.unwrap_commit())
}

#[expect(unsafe_code, reason = "LMDB maps a file, which others could change")]
fn environment(
    directory: &Path,
    map_bytes: usize,
    tables: usize,
    flags: EnvFlags,
) -> heed::Result<Env> {
    let mut options = EnvOpenOptions::new();
    options.map_size(map_bytes).max_readers(READERS_MAX).max_dbs(tables as u32);
    // SAFETY: of the flags without a sync the library asks that nobody relies on the data after a
    // crash of the machine, which is what the durability mode says.
    unsafe { options.flags(flags) };
    // SAFETY: the directory was made for this engine: nothing but LMDB writes into it.
    unsafe { options.open(directory) }
}

impl Engine for LmdbEngine {
    fn name(&self) -> String {
        format!("LMDB {}", version())
    }

    fn capabilities(&self) -> Capabilities {
        capabilities()
    }

    fn options(&self) -> serde_json::Value {
        self.options.clone()
    }

    fn session(&self) -> EngineResult<Box<dyn Session + '_>> {
        Ok(Box::new(Plain(LmdbSession { engine: self })))
    }

    fn flush(&self) -> EngineResult<()> {
        self.env.force_sync().map_err(failed)
    }

    fn wait_for_compaction(&self) -> EngineResult<()> {
        Ok(())
    }

    fn statistics(&self) -> EngineResult<EngineStatistics> {
        let transaction = self.env.read_txn().map_err(failed)?;
        let mut tables = Vec::new();
        let mut page_bytes = 0;
        for table in &self.tables {
            let stat = table.stat(&transaction).map_err(failed)?;
            page_bytes = u64::from(stat.page_size);
            tables.push(json!({
                "rows": stat.entries,
                "depth": stat.depth,
                "branch_pages": stat.branch_pages,
                "leaf_pages": stat.leaf_pages,
                "overflow_pages": stat.overflow_pages,
            }));
        }
        let info = self.env.info();
        let pages = info.last_page_number as u64 + 1;
        Ok(EngineStatistics {
            live_bytes: pages * page_bytes,
            raw: json!({
                "pages": pages,
                "page_bytes": page_bytes,
                "transactions": info.last_txn_id,
                "tables": tables,
            }),
            ..EngineStatistics::default()
        })
    }

    fn close(self: Box<Self>) -> EngineResult<()> {
        // The next one to open it in this process must not find it half closed.
        self.env.prepare_for_closing().wait();
        Ok(())
    }
}

fn version() -> String {
    let version = heed::lmdb_version();
    format!("{}.{}.{}", version.major, version.minor, version.patch)
}

struct LmdbSession<'a> {
    engine: &'a LmdbEngine,
}

impl PlainSession for LmdbSession<'_> {
    fn get(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> EngineResult<bool> {
        value.clear();
        let table = self.engine.table(space)?;
        let transaction = self.engine.env.read_txn().map_err(failed)?;
        let found = table.get(&transaction, key).map_err(failed)?;
        value.extend_from_slice(found.unwrap_or_default());
        Ok(found.is_some())
    }

    fn multi_get(
        &mut self,
        space: SpaceId,
        keys: &[&[u8]],
        found: &mut dyn FnMut(usize, &[u8]),
    ) -> EngineResult<()> {
        let table = self.engine.table(space)?;
        let transaction = self.engine.env.read_txn().map_err(failed)?;
        for (index, key) in keys.iter().enumerate() {
            if let Some(value) = table.get(&transaction, key).map_err(failed)? {
                found(index, value);
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
        let table = self.engine.table(space)?;
        let Some(mut window) = Window::new(range, row) else { return Ok(0) };
        let transaction = self.engine.env.read_txn().map_err(failed)?;
        let first = match range.first() {
            // No key is empty, and LMDB seeks none that is.
            [] => Bound::Unbounded,
            first => Bound::Included(first),
        };
        let bounds: (Bound<&[u8]>, Bound<&[u8]>) = (first, Bound::Unbounded);
        for entry in table.range(&transaction, &bounds).map_err(failed)? {
            let (key, value) = entry.map_err(failed)?;
            if window.offer(key, value).is_break() {
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
        let table = self.engine.table(space)?;
        let transaction = self.engine.env.read_txn().map_err(failed)?;
        if from.is_empty() {
            // No key is empty, and LMDB seeks none that is.
            return Ok(0);
        }
        let bounds: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Unbounded, Bound::Included(from));
        let range = ScanRange::first_rows(limit);
        let Some(mut window) = Window::new(&range, row) else { return Ok(0) };
        for entry in table.rev_range(&transaction, &bounds).map_err(failed)? {
            let (key, value) = entry.map_err(failed)?;
            if window.offer(key, value).is_break() {
                break;
            }
        }
        Ok(window.visited())
    }

    fn write_batch(&mut self, batch: &WriteBatch) -> EngineResult<()> {
        let mut transaction = self.engine.env.write_txn().map_err(failed)?;
        for op in batch.ops() {
            // A transaction that is dropped leaves nothing.
            let table = self.engine.table(op.row().0)?;
            match op {
                BatchOp::Put(_, key, value) => table.put(&mut transaction, key, value),
                BatchOp::Delete(_, key) | BatchOp::SingleDelete(_, key) => {
                    table.delete(&mut transaction, key).map(drop)
                }
            }
            .map_err(failed)?;
        }
        transaction.commit().map_err(failed)
    }
}

impl Embedded for LmdbEngine {
    const ABOUT: &'static Elsewhere = &elsewhere::LMDB;

    fn version() -> String {
        version()
    }

    fn can() -> Capabilities {
        capabilities()
    }

    fn codec_library(_codec: Codec) -> String {
        "none".to_owned()
    }

    fn can_follow(settings: &EngineSettings) -> EngineResult<()> {
        settings.expect_options("lmdb", &OPTIONS)?;
        settings.expect_buffered_reads("lmdb")?;
        reads_ahead(settings)?;
        map_mib(settings).map(|_| ())
    }

    fn open(
        directory: &Path,
        settings: &EngineSettings,
        spaces: &[SpaceSpec],
    ) -> EngineResult<Self> {
        LmdbEngine::open(directory, settings, spaces)
    }
}
