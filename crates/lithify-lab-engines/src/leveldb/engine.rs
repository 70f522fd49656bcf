//! LevelDB as an engine of the lab.
//!
//! Owns: an open database and its figures. Promises: codecs in the figures are those found in the
//! files.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use lithify_lab::adapter::codec::Codec;
use lithify_lab::adapter::plain::Plain;
use lithify_lab::adapter::settings::DurabilityMode;
use lithify_lab::adapter::settings::EngineSettings;
use lithify_lab::adapter::{
    Capabilities, Engine, EngineError, EngineResult, EngineStatistics, LevelStatistics, Session,
};
use serde_json::json;

use super::database::{Database, OpenOptions, library_version};
use super::functions::Functions;
use super::session::LevelDbSession;
use super::statistics::{TableFile, parse_tables, parse_work};
use super::table_file::{self, TableBlocks};

/// Bits of the filter per key, as Lithify's default.
const FILTER_BITS_PER_KEY: u32 = 10;

/// Memtables at a time: the one that is written, and the one that is flushed.
const MEMTABLES: u64 = 2;

/// A key above all keys: no space has this byte.
const UNUSED_KEY: [u8; 1] = [u8::MAX];

/// Files in level 0, and bytes in level 1 and their factor from there on, at which the library
/// compacts.
const LEVEL0_FILES: u64 = 4;
const LEVEL1_BYTES: u64 = 10 << 20;
const FANOUT: u64 = 10;

/// How often it is asked whether anything is due, and how often it has to say no.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
const POLLS_QUIET: u32 = 4;

/// One compaction does not take longer than this.
const PATIENCE: Duration = Duration::from_secs(120);

/// An open database of LevelDB.
pub struct LevelDbEngine {
    database: Database,
    spaces: usize,
    directory: PathBuf,
    options: OpenOptions,
    version: String,
    /// What was found in table files by number: a file never changes.
    tables: Mutex<HashMap<u64, TableBlocks>>,
}

/// The settings as LevelDB's options. Codecs and modes that it does not have were refused before.
///
/// # Errors
/// An option or a way to read that LevelDB does not have.
pub fn options_of(settings: &EngineSettings) -> EngineResult<OpenOptions> {
    settings.expect_options("leveldb", &[])?;
    settings.expect_buffered_reads("leveldb")?;
    let budget_bytes = settings.memory_budget_bytes;
    let memtables_bytes = settings.memtable_bytes.saturating_mul(MEMTABLES);
    Ok(OpenOptions {
        cache_bytes: budget_bytes.saturating_sub(memtables_bytes).max(budget_bytes / 2),
        memtable_bytes: settings.memtable_bytes,
        table_bytes: settings.table_bytes,
        block_bytes: settings.block_bytes,
        filter_bits_per_key: FILTER_BITS_PER_KEY,
        snappy: settings.codec_bottom == Codec::SNAPPY,
        sync: settings.durability == DurabilityMode::Sync,
    })
}

impl LevelDbEngine {
    /// Opens or makes a database with so many spaces.
    ///
    /// # Errors
    /// More spaces than there are bytes, and what the library refuses.
    pub fn open(
        functions: &'static Functions,
        directory: &Path,
        options: OpenOptions,
        spaces: usize,
    ) -> EngineResult<LevelDbEngine> {
        if spaces > usize::from(UNUSED_KEY[0]) {
            return Err(EngineError::fatal(format!("{spaces} spaces are too many for LevelDB")));
        }
        Ok(LevelDbEngine {
            database: Database::open(functions, directory, &options)?,
            spaces,
            directory: directory.to_owned(),
            options,
            version: library_version(functions),
            tables: Mutex::default(),
        })
    }

    fn live_tables(&self) -> Vec<TableFile> {
        parse_tables(&self.database.property(c"leveldb.sstables").unwrap_or_default())
    }

    /// What the files have, each looked at once; nothing for a file that is gone already.
    fn blocks(&self, files: &[TableFile]) -> Vec<Option<TableBlocks>> {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        tables.retain(|number, _| files.iter().any(|file| file.number == *number));
        let mut found = Vec::new();
        for file in files {
            if let Entry::Vacant(place) = tables.entry(file.number) {
                let path = self.directory.join(format!("{:06}.ldb", file.number));
                if let Ok(blocks) = table_file::read(&path) {
                    place.insert(blocks);
                }
            }
            found.push(tables.get(&file.number).copied());
        }
        found
    }

    fn levels(&self, files: &[TableFile]) -> Vec<LevelStatistics> {
        let mut levels: BTreeMap<u32, LevelStatistics> = BTreeMap::new();
        let mut codecs: BTreeMap<u32, BTreeMap<String, u64>> = BTreeMap::new();
        for (file, blocks) in files.iter().zip(self.blocks(files)) {
            let level = levels.entry(file.level).or_default();
            level.files += 1;
            level.stored_bytes += file.size_bytes;
            if let Some(blocks) = blocks {
                let ratio = blocks.raw_bytes as f64 / blocks.stored_bytes.max(1) as f64;
                level.raw_bytes += (file.size_bytes as f64 * ratio) as u64;
                let codec = blocks.codec().to_owned();
                *codecs.entry(file.level).or_default().entry(codec).or_default() += 1;
            }
        }
        let work = parse_work(&self.database.property(c"leveldb.stats").unwrap_or_default());
        for (number, work) in work {
            let level = levels.entry(number).or_default();
            level.compaction_wall_us = work.wall_us;
            level.compaction_read_bytes = work.read_bytes;
            level.compaction_write_bytes = work.written_bytes;
        }
        for (number, level) in &mut levels {
            level.level = *number;
            level.codec =
                codecs.get(number).map(LevelStatistics::describe_codecs).unwrap_or_default();
        }
        levels.into_values().collect()
    }

    /// Bytes of the log files.
    fn log_bytes(&self) -> u64 {
        let Ok(entries) = std::fs::read_dir(&self.directory) else { return 0 };
        let is_log = |path: &Path| path.extension().is_some_and(|kind| kind == "log");
        let logs = entries.flatten().filter(|entry| is_log(&entry.path()));
        logs.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.len()).sum()
    }
}

/// Whether the library has a reason to compact.
fn is_due(files: &[TableFile]) -> bool {
    let mut levels: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for file in files {
        let (count, bytes) = levels.entry(file.level).or_default();
        *count += 1;
        *bytes += file.size_bytes;
    }
    levels.iter().any(|(level, (count, bytes))| match level.checked_sub(1) {
        None => *count >= LEVEL0_FILES,
        // Nothing is below the last level.
        Some(below) => below < 5 && *bytes >= LEVEL1_BYTES.saturating_mul(FANOUT.pow(below)),
    })
}

/// What it can do; transactions are those of the lock around it.
pub fn capabilities() -> Capabilities {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Capabilities {
        ordered_scan: true,
        codecs: owned(&["none", "snappy"]),
        block_size: true,
        durability: owned(&["sync", "buffered"]),
        own_statistics: true,
        labels: owned(&["one codec for all data"]),
        ..Capabilities::default()
    }
}

impl Engine for LevelDbEngine {
    fn name(&self) -> String {
        format!("LevelDB {}", self.version)
    }

    fn capabilities(&self) -> Capabilities {
        capabilities()
    }

    fn options(&self) -> serde_json::Value {
        json!({
            "block_cache": self.options.cache_bytes,
            "write_buffer_size": self.options.memtable_bytes,
            "max_file_size": self.options.table_bytes,
            "block_size": self.options.block_bytes,
            "filter_bits_per_key": self.options.filter_bits_per_key,
            "compression": if self.options.snappy { "snappy" } else { "none" },
            "sync": self.options.sync,
        })
    }

    fn session(&self) -> EngineResult<Box<dyn Session + '_>> {
        Ok(Box::new(Plain(LevelDbSession::new(&self.database, self.spaces)?)))
    }

    fn flush(&self) -> EngineResult<()> {
        self.database.flush(&UNUSED_KEY);
        Ok(())
    }

    fn wait_for_compaction(&self) -> EngineResult<()> {
        let (mut quiet, mut before, mut changed) = (0, Vec::new(), Instant::now());
        while quiet < POLLS_QUIET {
            let files = self.live_tables();
            if files != before {
                (quiet, changed) = (0, Instant::now());
            } else if !is_due(&files) {
                quiet += 1;
            } else if changed.elapsed() > PATIENCE {
                // It stops for good after an error in the background, and tells nobody.
                return Err(EngineError::fatal(format!(
                    "LevelDB has compactions to do and has done none for {} s; its LOG in {} says \
                     why",
                    PATIENCE.as_secs(),
                    self.directory.display()
                )));
            }
            before = files;
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    fn statistics(&self) -> EngineResult<EngineStatistics> {
        let files = self.live_tables();
        let levels = self.levels(&files);
        let log_bytes = self.log_bytes();
        let (top, below): (Vec<_>, Vec<_>) = levels.iter().partition(|level| level.level == 0);
        let written = |levels: &[&LevelStatistics]| -> u64 {
            levels.iter().map(|level| level.compaction_write_bytes).sum()
        };
        let read = below.iter().map(|level| level.compaction_read_bytes).sum();
        let named = |figures: &[(&str, u64)]| {
            let present = figures.iter().filter(|(_, value)| *value > 0);
            present.map(|(cause, value)| ((*cause).to_owned(), *value)).collect()
        };
        let memory = self.database.property(c"leveldb.approximate-memory-usage");
        let memory: u64 = memory.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        Ok(EngineStatistics {
            live_bytes: files.iter().map(|file| file.size_bytes).sum::<u64>() + log_bytes,
            written_bytes_by_cause: named(&[
                ("flush", written(&top)),
                ("compaction", written(&below)),
            ]),
            read_bytes_by_cause: named(&[("compaction", read)]),
            raw: json!({
                "wal_live_bytes": log_bytes,
                "cache": { "capacity_bytes": self.options.cache_bytes },
                "memory": { "cache_and_memtables": memory },
            }),
            levels,
            ..EngineStatistics::default()
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

    fn file(level: u32, size_bytes: u64) -> TableFile {
        TableFile { level, number: 1, size_bytes }
    }

    #[test]
    fn work_is_due_at_the_limits_of_the_library() {
        assert!(!is_due(&[]));
        assert!(!is_due(&[file(0, 1 << 40), file(0, 1), file(0, 1)]));
        assert!(is_due(&[file(0, 1), file(0, 1), file(0, 1), file(0, 1)]));
        assert!(!is_due(&[file(1, (10 << 20) - 1), file(2, (100 << 20) - 1), file(6, 1 << 50)]));
        assert!(is_due(&[file(1, 10 << 20)]) && is_due(&[file(2, 100 << 20)]));
    }

    #[test]
    fn settings_that_it_cannot_follow() {
        let plain = || EngineSettings { codec_bottom: Codec::SNAPPY, ..EngineSettings::small() };
        let options = options_of(&plain()).expect("is possible");
        assert!(options.snappy && !options.sync);
        assert_eq!(options.cache_bytes, (8 << 20) - (512 << 10));
        let refused = |settings| options_of(&settings).expect_err("is refused").to_string();
        let error = refused(EngineSettings { direct_reads: true, ..plain() });
        assert!(error.contains("no direct reads"), "{error}");
        let mut settings = plain();
        settings.options.insert("page_kib".to_owned(), "4".to_owned());
        assert!(refused(settings).contains("it takes: none"));
    }
}
