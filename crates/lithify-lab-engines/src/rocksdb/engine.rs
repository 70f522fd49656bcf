//! RocksDB as an engine of the lab.
//!
//! Owns: an open database, the thread that keeps its codecs by distance from the bottom (see
//! `policy`), and its figures. Promises: codecs in the figures are those found in the files.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use lithify_lab::adapter::cross_count::CrossCounts;
use lithify_lab::adapter::settings::DurabilityMode;
use lithify_lab::adapter::settings::EngineSettings;
use lithify_lab::adapter::{
    Capabilities, Engine, EngineError, EngineResult, EngineStatistics, LevelStatistics, Session,
    SpaceId, SpaceSpec, StallStatistics,
};
use serde_json::json;

use super::database::{Database, LiveFile};
use super::functions::Functions;
use super::options::{DatabaseOptions, Mode};
use super::policy::{LEVEL0_EMPTIED, LEVELS, Policy};
use super::session::RocksSession;
use super::statistics::{Counters, parse_levels, parse_stalls};
use super::table_file::{self, TableProperties};
use super::tuning::LEVEL0_TRIGGER;

/// An open database of RocksDB, one column family per space.
pub struct RocksEngine {
    shared: Arc<Shared>,
    spaces: Vec<SpaceSpec>,
    settings: EngineSettings,
    directory: PathBuf,
    version: String,
    has_transactions: bool,
    /// Properties of table files by name: a file never changes.
    tables: Mutex<HashMap<String, TableProperties>>,
    watch: Option<JoinHandle<()>>,
}

/// What the watching thread needs too.
struct Shared {
    functions: &'static Functions,
    database: Database,
    policy: Policy,
    closing: AtomicBool,
}

/// How often the base levels are looked at.
const WATCH_INTERVAL: Duration = Duration::from_millis(100);

/// How often a library that cannot wait by itself is asked, and how often it has to say that
/// nothing is due.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
const POLLS_QUIET: u32 = 4;

/// How often level 0 is looked at before it is given up.
const LEVEL0_TRIES: u32 = 200;

impl Shared {
    fn number(&self, space: SpaceId, name: &std::ffi::CStr) -> u64 {
        let text = self.database.property(space, name);
        text.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
    }

    fn sum(&self, name: &std::ffi::CStr) -> u64 {
        self.database.spaces().map(|space| self.number(space, name)).sum()
    }

    /// Gives physical levels their codecs where the base level has moved since the last look.
    fn follow_base_levels(&self, known: &mut [u64]) -> EngineResult<()> {
        for (space, known) in self.database.spaces().zip(known) {
            let base_level = self.number(space, c"rocksdb.base-level");
            if base_level != *known {
                let list = self.policy.per_level_text(base_level as usize);
                self.database.set_option(space, c"compression_per_level", &list)?;
                *known = base_level;
            }
        }
        Ok(())
    }

    fn watch(&self, mut known: Vec<u64>) {
        while !self.closing.load(Ordering::Acquire) {
            std::thread::park_timeout(WATCH_INTERVAL);
            // What could not be set now is tried again: it is known only when it was set.
            let _ = self.follow_base_levels(&mut known);
        }
    }
}

impl RocksEngine {
    /// Opens or makes a database.
    ///
    /// # Errors
    /// Codecs that RocksDB does not have, and what the library refuses.
    pub fn open(
        functions: &'static Functions,
        directory: &Path,
        settings: &EngineSettings,
        spaces: &[SpaceSpec],
        mode: Mode,
    ) -> EngineResult<RocksEngine> {
        let policy = Policy::new(settings)?;
        let options = DatabaseOptions::new(functions, settings, spaces, &policy, mode)?;
        let names: Vec<&str> = spaces.iter().map(|space| space.name).collect();
        let database = Database::open(functions, directory, &names, options, mode.transactions)?;
        let version = super::version_in(directory)?;
        let closing = AtomicBool::new(false);
        let shared = Arc::new(Shared { functions, database, policy, closing });
        let mut known = vec![LEVELS as u64 - 1; spaces.len()];
        let mut watch = None;
        if !policy.is_uniform() {
            shared.follow_base_levels(&mut known)?;
            let watched = Arc::clone(&shared);
            let thread = std::thread::Builder::new().name("codec-watch".to_owned());
            let started = thread.spawn(move || watched.watch(known));
            watch = Some(started.map_err(|error| {
                EngineError::fatal(format!("the thread that follows base levels: {error}"))
            })?);
        }
        Ok(RocksEngine {
            shared,
            spaces: spaces.to_vec(),
            settings: settings.clone(),
            directory: directory.to_owned(),
            version,
            has_transactions: mode.transactions,
            tables: Mutex::default(),
            watch,
        })
    }

    /// Waits until level 0 is empty, which compactions that are due bring about.
    fn empty_level0(&self) -> EngineResult<()> {
        for _ in 0..LEVEL0_TRIES {
            self.wait_for_compaction()?;
            let files = self.shared.sum(c"rocksdb.num-files-at-level0");
            if files == 0 {
                return Ok(());
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Err(EngineError::fatal(
            "RocksDB: level 0 still has files after all compactions that were due: no tree to \
             measure reads on",
        ))
    }

    /// Bytes of the log files.
    fn log_bytes(&self) -> u64 {
        let Ok(entries) = std::fs::read_dir(&self.directory) else { return 0 };
        let is_log = |path: &Path| path.extension().is_some_and(|kind| kind == "log");
        entries
            .flatten()
            .filter(|entry| is_log(&entry.path()))
            .filter_map(|entry| entry.metadata().ok())
            .map(|metadata| metadata.len())
            .sum()
    }

    /// The properties of the live files, each read once; nothing for a file that is gone already.
    fn properties(&self, files: &[LiveFile]) -> Vec<Option<TableProperties>> {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        tables.retain(|name, _| files.iter().any(|file| file.name == *name));
        let mut properties = Vec::new();
        for file in files {
            if !tables.contains_key(&file.name) {
                let path = self.directory.join(file.name.trim_start_matches('/'));
                if let Ok(read) = table_file::read(&path) {
                    tables.insert(file.name.clone(), read);
                }
            }
            properties.push(tables.get(&file.name).cloned());
        }
        properties
    }

    fn levels(&self, files: &[LiveFile]) -> Vec<LevelStatistics> {
        let properties = self.properties(files);
        let mut levels: BTreeMap<u32, LevelStatistics> = BTreeMap::new();
        let mut codecs: BTreeMap<u32, BTreeMap<String, u64>> = BTreeMap::new();
        for (file, properties) in files.iter().zip(properties) {
            let level = levels.entry(file.level).or_default();
            level.files += 1;
            level.stored_bytes += file.size_bytes;
            if let Some(properties) = properties {
                level.raw_bytes += properties.raw_bytes;
                level.user_bytes += properties.user_bytes();
                let codec = codec_name(&properties.codec);
                *codecs.entry(file.level).or_default().entry(codec).or_default() += 1;
            }
        }
        for space in self.shared.database.spaces() {
            let text = self.shared.database.property(space, c"rocksdb.cfstats-no-file-histogram");
            for (number, work) in parse_levels(&text.unwrap_or_default()) {
                let level = levels.entry(number).or_default();
                level.compaction_cpu_us += work.cpu_us;
                level.compaction_wall_us += work.wall_us;
                level.compaction_read_bytes += work.read_bytes;
                level.compaction_write_bytes += work.written_bytes;
                level.compactions += work.jobs;
            }
        }
        for (number, level) in &mut levels {
            level.level = *number;
            level.codec =
                codecs.get(number).map(LevelStatistics::describe_codecs).unwrap_or_default();
        }
        levels.into_values().collect()
    }

    /// What all families' work together came to.
    fn work(&self, levels: &[LevelStatistics]) -> Work {
        if self.shared.database.options().has_statistics() {
            let counters = Counters::parse(&self.shared.database.statistics());
            let level0 = levels.first().filter(|level| level.level == 0);
            return Work {
                wal_bytes: Some(counters.value("rocksdb.wal.bytes")),
                flushed_bytes: counters.value("rocksdb.flush.write.bytes"),
                compacted_bytes: counters.value("rocksdb.compact.write.bytes"),
                compaction_read_bytes: counters.value("rocksdb.compact.read.bytes"),
                flush_cpu_us: level0.map_or(0, |level| level.compaction_cpu_us),
                compaction_cpu_us: counters.sum("rocksdb.compaction.times.cpu_micros"),
                stall_us: Some(counters.value("rocksdb.stall.micros")),
                counters: Some(counters),
            };
        }
        // Without counters the tables of compactions tell, in coarser steps. The row of level 0 is
        // that of flushes; a compaction within level 0 would be in it too. Nothing tells the bytes of
        // the log and the time of stalls: the texts of the whole database have zeros then.
        let sum = |is_flush: bool, figure: fn(&LevelStatistics) -> u64| {
            levels.iter().filter(|level| (level.level == 0) == is_flush).map(figure).sum()
        };
        Work {
            wal_bytes: None,
            flushed_bytes: sum(true, |level| level.compaction_write_bytes),
            compacted_bytes: sum(false, |level| level.compaction_write_bytes),
            compaction_read_bytes: sum(false, |level| level.compaction_read_bytes),
            flush_cpu_us: sum(true, |level| level.compaction_cpu_us),
            compaction_cpu_us: sum(false, |level| level.compaction_cpu_us),
            stall_us: None,
            counters: None,
        }
    }

    fn stalls(&self, work: &Work) -> StallStatistics {
        let mut by_cause = BTreeMap::new();
        for space in self.shared.database.spaces() {
            let text = self.shared.database.property(space, c"rocksdb.cf-write-stall-stats");
            for (cause, count) in parse_stalls(&text.unwrap_or_default()) {
                *by_cause.entry(cause).or_default() += count;
            }
        }
        // RocksDB has one counter for slowed and stopped writers together.
        StallStatistics {
            delayed_us: work.stall_us.unwrap_or(0),
            is_timed: work.stall_us.is_some(),
            stopped_us: 0,
            by_cause,
        }
    }

    fn raw(&self, work: &Work, wal_bytes: u64) -> serde_json::Value {
        let options = self.shared.database.options();
        let base_levels: serde_json::Map<_, _> = self
            .spaces
            .iter()
            .zip(self.shared.database.spaces())
            .map(|(spec, space)| {
                let level = self.shared.number(space, c"rocksdb.base-level");
                (spec.name.to_owned(), level.into())
            })
            .collect();
        json!({
            "engine": work.counters.as_ref().map(Counters::to_json),
            "wal_live_bytes": wal_bytes,
            "pending_compaction_bytes":
                self.shared.sum(c"rocksdb.estimate-pending-compaction-bytes"),
            "base_levels": base_levels,
            "cache": {
                "capacity_bytes": options.cache_bytes(),
                "usage_bytes": options.cache_usage_bytes(),
                "inserted_bytes": work
                    .counters
                    .as_ref()
                    .map(|counters| counters.value("rocksdb.block.cache.bytes.write")),
            },
            "memory": {
                "cache_and_memtables": options.cache_usage_bytes(),
                "memtables_in_it": options.memtable_bytes(),
            },
        })
    }

    fn stop_watching(&mut self) {
        self.shared.closing.store(true, Ordering::Release);
        if let Some(watch) = self.watch.take() {
            watch.thread().unpark();
            // It has nothing to return.
            let _ = watch.join();
        }
    }
}

/// What an engine's work came to since it was opened.
struct Work {
    /// `None` where nobody counts.
    wal_bytes: Option<u64>,
    flushed_bytes: u64,
    compacted_bytes: u64,
    compaction_read_bytes: u64,
    flush_cpu_us: u64,
    compaction_cpu_us: u64,
    stall_us: Option<u64>,
    /// All that the library counts, where it does.
    counters: Option<Counters>,
}

impl Drop for RocksEngine {
    fn drop(&mut self) {
        self.stop_watching();
    }
}

/// RocksDB's name of a codec in the words of the lab.
fn codec_name(found: &str) -> String {
    let (name, level) = match found.split_once(" level=") {
        Some((name, level)) => (name, Some(level)),
        None => (found, None),
    };
    // From table format 7 on: who compresses, then the codecs' numbers in hexadecimal, each
    // ended by a semicolon; nobody and nothing where nothing is compressed.
    let numbers = name.split_once(';').map(|(_, rest)| rest.trim_end_matches(';'));
    let name = match numbers.unwrap_or(name) {
        "NoCompression" | "00" => return "none".to_owned(),
        "" if numbers.is_some() => return "none".to_owned(),
        "LZ4" | "04" => return "lz4".to_owned(),
        "Snappy" | "01" => return "snappy".to_owned(),
        "ZSTD" | "07" => "zstd",
        "Zlib" | "02" => "zlib",
        // Its efforts are those of lz4 from 2 on.
        "LZ4HC" | "05" => "lz4",
        "" => "unknown",
        other => other,
    };
    level.map_or_else(|| name.to_owned(), |level| format!("{name}-{level}"))
}

/// What it can do, opened with or without transactions.
pub fn capabilities(transactions: bool) -> Capabilities {
    let mode = if transactions { "TransactionDB" } else { "plain DB" };
    Capabilities {
        transactions,
        prefix_filter: true,
        single_delete: true,
        multi_get: true,
        ordered_scan: true,
        codec_per_level: true,
        codecs: ["none", "snappy", "lz4", "zlib", "zstd"].map(str::to_owned).into(),
        block_size: true,
        durability: DurabilityMode::ALL.map(|mode| mode.name().to_owned()).into(),
        own_statistics: true,
        labels: vec![mode.to_owned()],
    }
}

impl Engine for RocksEngine {
    fn name(&self) -> String {
        format!("RocksDB {}", self.version)
    }

    fn capabilities(&self) -> Capabilities {
        capabilities(self.has_transactions)
    }

    fn options(&self) -> serde_json::Value {
        self.shared.database.options().describe(&self.settings, &self.shared.policy)
    }

    fn session(&self) -> EngineResult<Box<dyn Session + '_>> {
        let shared = &self.shared;
        Ok(Box::new(RocksSession::new(shared.functions, &shared.database, &self.spaces)?))
    }

    fn flush(&self) -> EngineResult<()> {
        self.shared.database.flush()
    }

    fn wait_for_compaction(&self) -> EngineResult<()> {
        if self.shared.database.wait_for_compaction()? {
            return Ok(());
        }
        let mut quiet = 0;
        while quiet < POLLS_QUIET {
            let due = [
                c"rocksdb.num-running-flushes",
                c"rocksdb.mem-table-flush-pending",
                c"rocksdb.num-running-compactions",
                c"rocksdb.compaction-pending",
            ];
            let is_due = due.iter().any(|name| self.shared.sum(name) > 0);
            quiet = if is_due { 0 } else { quiet + 1 };
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    fn settle_tree(&self) -> EngineResult<String> {
        self.flush()?;
        self.wait_for_compaction()?;
        // The C interface compacts ranges down to the bottom only. With a trigger of one run the
        // library's own picker takes all of level 0 to the base level, and nothing else.
        let set = |runs: u64| {
            let set_one = |space| {
                let name = c"level0_file_num_compaction_trigger";
                self.shared.database.set_option(space, name, &runs.to_string())
            };
            self.shared.database.spaces().try_for_each(set_one)
        };
        set(1)?;
        let emptied = self.empty_level0();
        set(LEVEL0_TRIGGER)?;
        emptied?;
        self.wait_for_compaction()?;
        Ok(LEVEL0_EMPTIED.to_owned())
    }

    fn statistics(&self) -> EngineResult<EngineStatistics> {
        let files = self.shared.database.live_files();
        let levels = self.levels(&files);
        let wal_bytes = self.log_bytes();
        let work = self.work(&levels);
        let named = |figures: &[(&str, u64)]| {
            let present = figures.iter().filter(|(_, value)| *value > 0);
            present.map(|(cause, value)| ((*cause).to_owned(), *value)).collect()
        };
        Ok(EngineStatistics {
            live_bytes: files.iter().map(|file| file.size_bytes).sum::<u64>() + wal_bytes,
            written_bytes_by_cause: named(&[
                ("wal", work.wal_bytes.unwrap_or(0)),
                ("flush", work.flushed_bytes),
                ("compaction", work.compacted_bytes),
            ]),
            read_bytes_by_cause: named(&[("compaction", work.compaction_read_bytes)]),
            cpu_us_by_cause: named(&[
                ("flush", work.flush_cpu_us),
                ("compaction", work.compaction_cpu_us),
            ]),
            stalls: self.stalls(&work),
            cross_counts: CrossCounts::new(),
            raw: self.raw(&work, wal_bytes),
            levels,
        })
    }

    fn close(self: Box<Self>) -> EngineResult<()> {
        // Dropping closes; the library reports nothing.
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codecs_in_the_words_of_the_lab() {
        let names = ["NoCompression", "LZ4", "ZSTD level=1", "LZ4HC level=9", "ZSTD", "", "New"];
        let found: Vec<String> = names.iter().map(|name| codec_name(name)).collect();
        assert_eq!(found, ["none", "lz4", "zstd-1", "lz4-9", "zstd", "unknown", "New"]);
        let names = [";;", "BuiltinV2;04;", "BuiltinV2;07; level=1", "BuiltinV2;0407;"];
        let found: Vec<String> = names.iter().map(|name| codec_name(name)).collect();
        assert_eq!(found, ["none", "lz4", "zstd-1", "0407"]);
        let one = [("lz4".to_owned(), 3)].into();
        let two = [("lz4".to_owned(), 3), ("none".to_owned(), 1)].into();
        assert_eq!(LevelStatistics::describe_codecs(&one), "lz4");
        assert_eq!(LevelStatistics::describe_codecs(&two), "lz4 in 3, none in 1");
    }
}
