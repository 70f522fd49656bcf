//! What a database says of itself: LevelDB's four properties, and the engine's own pages.
//!
//! | property | text |
//! |---|---|
//! | `leveldb.num-files-at-level<N>` | tables of level N, 0 to 6 |
//! | `leveldb.stats` | LevelDB's table of compactions, since the database was opened |
//! | `leveldb.sstables` | a line per level with tables: their number and bytes |
//! | `leveldb.approximate-memory-usage` | bytes of cached blocks and memtables |
//! | `lithify.stats`, `lithify.stats-json` | the engine's statistics, as a page and as JSON |
//! | `lithify.options` | the options in force, and those that have no effect |

use crate::settings::Settings;
use lithify::stats::{FamilyStatistics, JobFigure, MemoryUse};
use lithify::{ColumnFamily, Db};
use std::fmt::Write;

const MIB: f64 = 1_048_576.0;

/// The text of a property; nothing for a name that there is not.
pub fn property(db: &Db, rows: &ColumnFamily, settings: &Settings, name: &[u8]) -> Option<String> {
    let name = str::from_utf8(name).ok()?;
    if let Some(level) = name.strip_prefix("leveldb.num-files-at-level") {
        return files_at_level(&rows.stats(), level);
    }
    match name {
        "leveldb.stats" => Some(compactions(&rows.stats())),
        "leveldb.sstables" => Some(tables(&rows.stats())),
        "leveldb.approximate-memory-usage" => Some(memory_bytes(db).to_string()),
        "lithify.stats" => Some(db.stats().to_string()),
        "lithify.stats-json" => Some(db.stats().to_json()),
        "lithify.options" => Some(options(db, rows, settings)),
        _ => None,
    }
}

fn files_at_level(statistics: &FamilyStatistics, level: &str) -> Option<String> {
    let is_number = !level.is_empty() && level.bytes().all(|byte| byte.is_ascii_digit());
    let level: usize = is_number.then(|| level.parse().ok()).flatten()?;
    Some(statistics.levels.get(level)?.files.to_string())
}

/// In LevelDB's own columns: programs read them.
fn compactions(statistics: &FamilyStatistics) -> String {
    let mut text = String::from(
        "                               Compactions\n\
         Level  Files Size(MB) Time(sec) Read(MB) Write(MB)\n\
         --------------------------------------------------\n",
    );
    for (level, shape) in statistics.levels.iter().enumerate() {
        let job = |figure| statistics.figures.job(level, figure) as f64;
        let seconds = job(JobFigure::WallUs) / 1e6;
        if shape.files == 0 && seconds == 0.0 {
            continue;
        }
        let read = job(JobFigure::ReadSourceBytes) + job(JobFigure::ReadTargetBytes);
        let (size, written) = (shape.size_bytes as f64, job(JobFigure::WrittenBytes));
        let (size, read, written) = (size / MIB, read / MIB, written / MIB);
        let files = shape.files;
        let _ =
            writeln!(text, "{level:3} {files:8} {size:8.0} {seconds:9.0} {read:8.0} {written:9.0}");
    }
    text
}

fn tables(statistics: &FamilyStatistics) -> String {
    let mut text = String::new();
    for (level, shape) in statistics.levels.iter().enumerate() {
        let _ = writeln!(text, "--- level {level} ---");
        if shape.files > 0 {
            let _ = writeln!(text, " {} tables, {} bytes", shape.files, shape.size_bytes);
        }
    }
    text
}

fn memory_bytes(db: &Db) -> u64 {
    let used = db.stats().memory;
    let counts = |memory_use| matches!(memory_use, MemoryUse::Cache | MemoryUse::Memtable);
    used.iter().filter(|figure| counts(figure.memory_use)).map(|figure| figure.used_bytes).sum()
}

fn options(db: &Db, rows: &ColumnFamily, settings: &Settings) -> String {
    let mut text = format!("{}\n{}\n", db.options(), rows.options());
    for (name, value) in &settings.without_effect {
        let _ = writeln!(text, "without effect: {name}={value}");
    }
    text
}
