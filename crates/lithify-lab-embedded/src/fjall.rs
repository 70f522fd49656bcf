//! fjall.
//!
//! Owns: one database, one keyspace (a tree of its own) per space. Promises: scans and reads of
//! several keys see one moment; a batch is one entry of the journal; codecs in the figures are
//! those found in the tables.
//!
//! fjall counts levels from the top, and a keyspace keeps the codecs that it was made with.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ::fjall::compaction::Leveled;
use ::fjall::config::{
    BlockSizePolicy, BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry,
};
use ::fjall::{
    AbstractTree as _, CompressionType, Database, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch,
    PersistMode, Readable as _,
};
use lithify_lab::adapter::codec::Codec;
use lithify_lab::adapter::plain::{Plain, PlainSession};
use lithify_lab::adapter::settings::DurabilityMode;
use lithify_lab::adapter::settings::EngineSettings;
use lithify_lab::adapter::window::Window;
use lithify_lab::adapter::{
    BatchOp, Capabilities, Engine, EngineError, EngineResult, EngineStatistics, LevelStatistics,
    RowVisitor, ScanRange, Session, SpaceId, SpaceSpec, WriteBatch,
};
use lithify_lab::engines::elsewhere::{self, Elsewhere};
use serde_json::json;

use crate::fjall_error::said;
use crate::provider::Embedded;

/// The version of the crate.
pub(crate) const VERSION: &str = "3.1.13";
/// The version of the crate that compresses for it.
pub(crate) const LZ4_FLEX_VERSION: &str = "0.13.1";

/// Tables in level 0 that begin a compaction; level 1 is as large as so many tables.
const LEVEL0_TABLES: u8 = 4;

/// Journals are at most so large together, as the logs of the other engines.
const JOURNAL_BYTES_MAX: u64 = 256 << 20;

/// Bits of a filter per key, as of the other engines.
const FILTER_BITS: f32 = 10.0;

/// The option that only fjall knows.
const WORKERS: &str = "workers";
const WORKERS_MAX: usize = 64;

/// How often the engine is asked whether it works, and how often it has to say no.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
const POLLS_QUIET: u32 = 4;

/// An open database.
pub struct FjallEngine {
    keyspaces: Vec<Keyspace>,
    database: Database,
    durability: DurabilityMode,
    directory: PathBuf,
    options: serde_json::Value,
}

fn failed(error: ::fjall::Error) -> EngineError {
    EngineError::fatal(format!("fjall: {}", said(&error)))
}

/// What it can do without an external lock.
fn capabilities() -> Capabilities {
    Capabilities {
        ordered_scan: true,
        multi_get: false,
        codec_per_level: true,
        codecs: vec![Codec::NONE.kind().to_owned(), Codec::LZ4.kind().to_owned()],
        block_size: true,
        durability: crate::names_of(&DurabilityMode::ALL),
        labels: vec!["codecs from the top".to_owned()],
        ..Capabilities::default()
    }
}

fn native(codec: Codec) -> EngineResult<CompressionType> {
    match codec {
        Codec::NONE => Ok(CompressionType::None),
        Codec::LZ4 => Ok(CompressionType::Lz4),
        other => Err(EngineError::fatal(format!("fjall has no codec {other}; it has: none, lz4"))),
    }
}

/// Threads of flush and compaction: the option's, else as many as the settings say.
fn workers(settings: &EngineSettings) -> EngineResult<usize> {
    let Some(text) = settings.options.get(WORKERS) else {
        // One alone can wait for itself for ever: docs/engines/fjall.md.
        return Ok(settings.background_threads.clamp(2, WORKERS_MAX as u64) as usize);
    };
    match text.parse() {
        Ok(number @ 1..=WORKERS_MAX) => Ok(number),
        _ => Err(EngineError::fatal(format!(
            "fjall: options.{WORKERS} is \"{text}\"; allowed: 1 to {WORKERS_MAX}"
        ))),
    }
}

/// The codecs from the top: level 0, the first level below it, and all that are deeper.
fn codecs_from_the_top(settings: &EngineSettings) -> EngineResult<[Codec; 3]> {
    if settings.codec_middle != settings.codec_bottom {
        return Err(EngineError::fatal(format!(
            "fjall counts levels from the top: the codecs above the bottom ({}) and of the bottom \
             ({}) have to be one",
            settings.codec_middle, settings.codec_bottom
        )));
    }
    let level0 = settings.codec_level0.unwrap_or(settings.codec_small);
    Ok([level0, settings.codec_small, settings.codec_bottom])
}

/// The sizes that fjall is told.
struct Sizes {
    cache_bytes: u64,
    table_bytes: u64,
}

impl Sizes {
    fn of(settings: &EngineSettings, spaces: usize) -> Sizes {
        let budget = settings.memory_budget_bytes;
        // Memtables are not charged to the cache: it leaves room for one per keyspace and one that
        // is flushed, but keeps half of the budget.
        let memtables = settings.memtable_bytes.saturating_mul(spaces as u64 + 1);
        Sizes {
            cache_bytes: budget - memtables.min(budget / 2),
            // The size of level 1 follows from that of a table.
            table_bytes: settings.base_level_bytes / u64::from(LEVEL0_TABLES),
        }
    }
}

fn keyspace_options(
    settings: &EngineSettings,
    sizes: &Sizes,
    codecs: [Codec; 3],
) -> EngineResult<KeyspaceCreateOptions> {
    let native: Vec<_> = codecs.into_iter().map(native).collect::<EngineResult<_>>()?;
    let block_bytes = u32::try_from(settings.block_bytes)
        .map_err(|_| EngineError::fatal("fjall: blocks are smaller than 4 GiB"))?;
    let strategy = Leveled::default()
        .with_l0_threshold(LEVEL0_TABLES)
        .with_table_target_size(sizes.table_bytes)
        .with_level_ratio_policy(vec![settings.fanout as f32]);
    let filter = FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(FILTER_BITS));
    Ok(KeyspaceCreateOptions::default()
        .max_memtable_size(settings.memtable_bytes)
        .data_block_size_policy(BlockSizePolicy::all(block_bytes))
        .data_block_compression_policy(CompressionPolicy::new(native))
        .filter_policy(FilterPolicy::all(filter))
        .manual_journal_persist(settings.durability == DurabilityMode::None)
        .compaction_strategy(Arc::new(strategy)))
}

impl FjallEngine {
    /// Opens or makes a database.
    ///
    /// # Errors
    /// Settings that it cannot follow, and what the library refuses.
    pub fn open(
        directory: &Path,
        settings: &EngineSettings,
        spaces: &[SpaceSpec],
    ) -> EngineResult<FjallEngine> {
        Self::can_follow(settings)?;
        let codecs = codecs_from_the_top(settings)?;
        let sizes = Sizes::of(settings, spaces.len());
        let options = keyspace_options(settings, &sizes, codecs)?;
        let workers = workers(settings)?;
        let database = Database::builder(directory)
            .cache_size(sizes.cache_bytes)
            .worker_threads(workers)
            .max_journaling_size(JOURNAL_BYTES_MAX)
            .manual_journal_persist(settings.durability == DurabilityMode::None)
            .open()
            .map_err(failed)?;
        let keyspace = |space: &SpaceSpec| database.keyspace(space.name, || options.clone());
        let keyspaces = spaces.iter().map(keyspace).collect::<Result<_, _>>().map_err(failed)?;
        Ok(FjallEngine {
            keyspaces,
            durability: settings.durability,
            directory: directory.to_owned(),
            options: json!({
                "cache_bytes": sizes.cache_bytes,
                "workers": workers,
                "memtable_bytes": settings.memtable_bytes,
                "table_bytes": sizes.table_bytes,
                "level0_tables": LEVEL0_TABLES,
                "fanout": settings.fanout,
                "block_bytes": settings.block_bytes,
                "codecs_from_the_top": codecs.map(|codec| codec.to_string()),
                "filter_bits_per_key": FILTER_BITS,
                "journal_bytes_max": JOURNAL_BYTES_MAX,
            }),
            database,
        })
    }

    fn keyspace(&self, space: SpaceId) -> EngineResult<&Keyspace> {
        self.keyspaces.get(space.index()).ok_or_else(|| EngineError::no_space(space))
    }

    /// What the journals take on the device: they are made larger than what is in them.
    fn journal_bytes(&self) -> u64 {
        let Ok(entries) = std::fs::read_dir(&self.directory) else { return 0 };
        let is_journal = |path: &Path| path.extension().is_some_and(|kind| kind == "jnl");
        entries
            .flatten()
            .filter(|entry| is_journal(&entry.path()))
            .filter_map(|entry| entry.metadata().ok())
            .map(|metadata| metadata.len().min(metadata.blocks() * 512))
            .sum()
    }

    fn levels(&self) -> Vec<LevelStatistics> {
        let mut levels: BTreeMap<usize, LevelStatistics> = BTreeMap::new();
        let mut codecs: BTreeMap<usize, BTreeMap<String, u64>> = BTreeMap::new();
        for keyspace in &self.keyspaces {
            let version = keyspace.tree.current_version();
            for (number, level) in version.iter_levels().enumerate() {
                for table in level.iter().flat_map(|run| run.iter()) {
                    let figures = levels.entry(number).or_default();
                    figures.files += 1;
                    figures.stored_bytes += table.metadata.file_size;
                    let codec = table.metadata.data_block_compression.to_string();
                    *codecs.entry(number).or_default().entry(codec).or_default() += 1;
                }
            }
        }
        for (number, level) in &mut levels {
            level.level = *number as u32;
            level.codec =
                codecs.get(number).map(LevelStatistics::describe_codecs).unwrap_or_default();
        }
        levels.into_values().collect()
    }

    fn is_at_work(&self) -> bool {
        self.database.outstanding_flushes() > 0
            || self.database.active_compactions() > 0
            || self.keyspaces.iter().any(|keyspace| keyspace.sealed_memtable_count() > 0)
    }

    /// When a commit is acknowledged.
    fn persist_mode(&self) -> Option<PersistMode> {
        match self.durability {
            DurabilityMode::Sync => Some(PersistMode::SyncData),
            DurabilityMode::Buffered => Some(PersistMode::Buffer),
            DurabilityMode::None => None,
        }
    }
}

impl Engine for FjallEngine {
    fn name(&self) -> String {
        format!("fjall {VERSION}")
    }

    fn capabilities(&self) -> Capabilities {
        capabilities()
    }

    fn options(&self) -> serde_json::Value {
        self.options.clone()
    }

    fn session(&self) -> EngineResult<Box<dyn Session + '_>> {
        Ok(Box::new(Plain(FjallSession { engine: self, end: Vec::new() })))
    }

    fn flush(&self) -> EngineResult<()> {
        self.keyspaces.iter().try_for_each(Keyspace::rotate_memtable_and_wait).map_err(failed)
    }

    fn wait_for_compaction(&self) -> EngineResult<()> {
        let mut quiet = 0;
        while quiet < POLLS_QUIET {
            quiet = if self.is_at_work() { 0 } else { quiet + 1 };
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    fn statistics(&self) -> EngineResult<EngineStatistics> {
        let levels = self.levels();
        let tables: u64 = levels.iter().map(|level| level.stored_bytes).sum();
        let journals = self.journal_bytes();
        Ok(EngineStatistics {
            live_bytes: tables + journals,
            levels,
            raw: json!({
                "wal_live_bytes": journals,
                "compacting_us": self.database.time_compacting().as_micros() as u64,
                "compactions": self.database.compactions_completed(),
                "memtable_bytes": self.database.write_buffer_size(),
                "cache": {
                    "capacity_bytes": self.database.cache_capacity(),
                    "usage_bytes": self.database.cache_size(),
                },
            }),
            ..EngineStatistics::default()
        })
    }

    fn close(self: Box<Self>) -> EngineResult<()> {
        // Dropping ends the workers.
        self.database.persist(PersistMode::SyncAll).map_err(failed)
    }
}

struct FjallSession<'a> {
    engine: &'a FjallEngine,
    end: Vec<u8>,
}

impl FjallSession<'_> {
    /// A batch of one change; the journal takes it without the frame of a batch. Its sync is not
    /// part of that call, so synced changes go as batches.
    fn write_one(&self, op: BatchOp<'_>) -> EngineResult<()> {
        let keyspace = self.engine.keyspace(op.row().0)?;
        match op {
            BatchOp::Put(_, key, value) => keyspace.insert(key, value),
            BatchOp::Delete(_, key) | BatchOp::SingleDelete(_, key) => keyspace.remove(key),
        }
        .map_err(failed)
    }
}

impl PlainSession for FjallSession<'_> {
    fn get(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> EngineResult<bool> {
        value.clear();
        let found = self.engine.keyspace(space)?.get(key).map_err(failed)?;
        value.extend_from_slice(found.as_deref().unwrap_or_default());
        Ok(found.is_some())
    }

    fn multi_get(
        &mut self,
        space: SpaceId,
        keys: &[&[u8]],
        found: &mut dyn FnMut(usize, &[u8]),
    ) -> EngineResult<()> {
        let keyspace = self.engine.keyspace(space)?;
        let snapshot = self.engine.database.snapshot();
        for (index, key) in keys.iter().enumerate() {
            if let Some(value) = snapshot.get(keyspace, key).map_err(failed)? {
                found(index, &value);
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
        let keyspace = self.engine.keyspace(space)?;
        let Some(mut window) = Window::new(range, row) else { return Ok(0) };
        range.bound(&mut self.end);
        let end = match self.end.as_slice() {
            [] => Bound::Unbounded,
            end => Bound::Excluded(end),
        };
        for entry in keyspace.range::<&[u8], _>((Bound::Included(range.first()), end)) {
            let (key, value) = entry.into_inner().map_err(failed)?;
            if window.offer(&key, &value).is_break() {
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
        let keyspace = self.engine.keyspace(space)?;
        let range = ScanRange::first_rows(limit);
        let Some(mut window) = Window::new(&range, row) else { return Ok(0) };
        for entry in keyspace.range::<&[u8], _>((Bound::Unbounded, Bound::Included(from))).rev() {
            let (key, value) = entry.into_inner().map_err(failed)?;
            if window.offer(&key, &value).is_break() {
                break;
            }
        }
        Ok(window.visited())
    }

    fn write_batch(&mut self, batch: &WriteBatch) -> EngineResult<()> {
        let mut ops = batch.ops();
        if let (1, Some(op)) = (batch.len(), ops.next())
            && self.engine.durability != DurabilityMode::Sync
        {
            return self.write_one(op);
        }
        let mut own = OwnedWriteBatch::with_capacity(self.engine.database.clone(), batch.len())
            .durability(self.engine.persist_mode());
        for op in batch.ops() {
            let keyspace = self.engine.keyspace(op.row().0)?;
            match op {
                BatchOp::Put(_, key, value) => own.insert(keyspace, key, value),
                BatchOp::Delete(_, key) | BatchOp::SingleDelete(_, key) => {
                    own.remove(keyspace, key);
                }
            }
        }
        own.commit().map_err(failed)
    }
}

impl Embedded for FjallEngine {
    const ABOUT: &'static Elsewhere = &elsewhere::FJALL;

    fn version() -> String {
        VERSION.to_owned()
    }

    fn can() -> Capabilities {
        capabilities()
    }

    fn codec_library(codec: Codec) -> String {
        match codec {
            Codec::NONE => "none".to_owned(),
            _ => format!("lz4_flex {LZ4_FLEX_VERSION}"),
        }
    }

    fn can_follow(settings: &EngineSettings) -> EngineResult<()> {
        settings.expect_options("fjall", &[WORKERS])?;
        settings.expect_buffered_reads("fjall")?;
        codecs_from_the_top(settings)?;
        workers(settings).map(|_| ())
    }

    fn open(
        directory: &Path,
        settings: &EngineSettings,
        spaces: &[SpaceSpec],
    ) -> EngineResult<Self> {
        FjallEngine::open(directory, settings, spaces)
    }
}
