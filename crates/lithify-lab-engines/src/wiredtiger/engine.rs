//! WiredTiger as an engine of the lab.
//!
//! Owns: an open database and its figures. Promises: the codec in the figures is the one that the
//! database keeps for its files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lithify_lab::adapter::settings::DurabilityMode;
use lithify_lab::adapter::settings::EngineSettings;
use lithify_lab::adapter::{
    Capabilities, Engine, EngineResult, EngineStatistics, LevelStatistics, Session, SpaceSpec,
    StallStatistics,
};
use serde_json::json;

use super::connection::{Database, library_version};
use super::functions::Functions;
use super::options::Options;
use super::session::WiredTigerSession;

/// An open database of WiredTiger, one table per space.
pub struct WiredTigerEngine {
    database: Database,
    directory: PathBuf,
    names: Vec<&'static str>,
    options: Options,
    version: String,
}

/// Figures by the names that the library gives them.
type Figures = BTreeMap<String, u64>;

/// The figures of a table that the raw results keep.
const OF_TABLES: [&str; 3] = ["block-manager: ", "cache: bytes ", "compression: "];

/// The figures of the database that the raw results keep: the others are hundreds.
const OF_DATABASE: [&str; 8] = [
    "block-manager: ",
    "cache: application ",
    "cache: bytes ",
    "cache: tracked ",
    "checkpoint: ",
    "log: ",
    "thread-yield: application ",
    "transaction: ",
];

impl WiredTigerEngine {
    /// Opens or makes a database.
    ///
    /// # Errors
    /// Settings that WiredTiger cannot follow, and what the library refuses.
    pub fn open(
        functions: &'static Functions,
        directory: &Path,
        settings: &EngineSettings,
        spaces: &[SpaceSpec],
    ) -> EngineResult<WiredTigerEngine> {
        let options = Options::new(settings)?;
        let names: Vec<&'static str> = spaces.iter().map(|space| space.name).collect();
        let database =
            Database::open(functions, directory, &options.database, &names, &options.table)?;
        let version = library_version(functions);
        Ok(WiredTigerEngine { database, directory: directory.to_owned(), names, options, version })
    }

    /// All figures of the database, or of one table.
    fn figures(&self, table: Option<&str>) -> EngineResult<Figures> {
        let mut figures = Figures::new();
        self.database.statistics(table, |name, value| {
            // What has gone below zero is an estimate of nothing.
            figures.insert(name.trim_end().to_owned(), u64::try_from(value).unwrap_or(0));
        })?;
        Ok(figures)
    }

    /// What the database stores: its tables' files, and all its files.
    fn stored(&self) -> StoredBytes {
        let mut stored = StoredBytes::default();
        let Ok(entries) = std::fs::read_dir(&self.directory) else { return stored };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let bytes = entry.metadata().map_or(0, |metadata| metadata.len());
            let table = name.strip_suffix(".wt").filter(|name| self.names.contains(name));
            if name.starts_with("WiredTigerLog.") {
                stored.log += bytes;
            }
            // Logs made beforehand hold nothing.
            if !name.starts_with("WiredTigerPreplog.") && !name.starts_with("WiredTigerTmplog.") {
                stored.all += bytes;
            }
            if table.is_some() {
                stored.tables += bytes;
                stored.files += 1;
            }
        }
        stored
    }

    /// All tables as one level: a tree of pages has no others.
    fn level(&self, stored: &StoredBytes, figures: &Figures) -> EngineResult<LevelStatistics> {
        let mut codecs = BTreeMap::new();
        for name in &self.names {
            let config = self.database.file_config(&format!("{name}.wt"))?;
            let codec = self.options.codec_name(compressor_in(&config));
            *codecs.entry(codec).or_insert(0) += 1;
        }
        Ok(LevelStatistics {
            level: 0,
            files: stored.files,
            stored_bytes: stored.tables,
            codec: LevelStatistics::describe_codecs(&codecs),
            compaction_write_bytes: value(figures, "block-manager: bytes written"),
            ..LevelStatistics::default()
        })
    }
}

/// Sizes of files, bytes.
#[derive(Default)]
struct StoredBytes {
    /// Number of tables' files.
    files: u64,
    tables: u64,
    log: u64,
    all: u64,
}

fn value(figures: &Figures, name: &str) -> u64 {
    figures.get(name).copied().unwrap_or(0)
}

/// Those that are not zero and begin with one of `prefixes`.
fn kept(figures: &Figures, prefixes: &[&str]) -> serde_json::Map<String, serde_json::Value> {
    figures
        .iter()
        .filter(|(name, value)| {
            **value > 0 && prefixes.iter().any(|prefix| name.starts_with(prefix))
        })
        .map(|(name, value)| (name.clone(), (*value).into()))
        .collect()
}

/// The block compressor in a file's configuration; empty when there is none.
fn compressor_in(config: &str) -> &str {
    let after = config.split("block_compressor=").nth(1).unwrap_or_default();
    after.split([',', ')']).next().unwrap_or_default().trim_matches('"')
}

/// What it can do.
pub fn capabilities() -> Capabilities {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Capabilities {
        transactions: true,
        ordered_scan: true,
        codecs: owned(&["none", "snappy", "lz4", "zlib", "zstd"]),
        block_size: true,
        durability: DurabilityMode::ALL.map(|mode| mode.name().to_owned()).into(),
        own_statistics: true,
        labels: owned(&["one codec for all data", "conflicts are tried again"]),
        ..Capabilities::default()
    }
}

impl Engine for WiredTigerEngine {
    fn name(&self) -> String {
        format!("WiredTiger {}", self.version)
    }

    fn capabilities(&self) -> Capabilities {
        capabilities()
    }

    fn options(&self) -> serde_json::Value {
        json!({
            "database": self.options.database,
            "table": self.options.table,
            "eviction_threads": self.options.eviction,
        })
    }

    fn session(&self) -> EngineResult<Box<dyn Session + '_>> {
        Ok(Box::new(WiredTigerSession::new(&self.database)?))
    }

    fn flush(&self) -> EngineResult<()> {
        self.database.checkpoint()
    }

    fn wait_for_compaction(&self) -> EngineResult<()> {
        // Nothing is due when every change is in the tables. A checkpoint that is running is
        // waited for by the next one.
        self.database.checkpoint()
    }

    fn statistics(&self) -> EngineResult<EngineStatistics> {
        let figures = self.figures(None)?;
        let stored = self.stored();
        let of = |name| value(&figures, name);
        let written = of("block-manager: bytes written");
        let checkpoint = of("block-manager: bytes written for checkpoint");
        let named = |figures: &[(&str, u64)]| {
            let present = figures.iter().filter(|(_, value)| *value > 0);
            present.map(|(cause, value)| ((*cause).to_owned(), *value)).collect()
        };
        let mut tables = serde_json::Map::new();
        for name in &self.names {
            let figures = self.figures(Some(&format!("table:{name}")))?;
            tables.insert((*name).to_owned(), kept(&figures, &OF_TABLES).into());
        }
        Ok(EngineStatistics {
            live_bytes: stored.all,
            levels: vec![self.level(&stored, &figures)?],
            written_bytes_by_cause: named(&[
                ("wal", of("log: log bytes written")),
                ("checkpoint", checkpoint),
                ("eviction", written.saturating_sub(checkpoint)),
            ]),
            read_bytes_by_cause: named(&[("pages", of("block-manager: bytes read"))]),
            stalls: StallStatistics {
                is_timed: true,
                delayed_us: of("thread-yield: application thread time waiting for cache (usecs)"),
                stopped_us: 0,
                by_cause: named(&[
                    (
                        "room in the cache",
                        of("thread-yield: application thread operations waiting for cache"),
                    ),
                    ("conflicts", of("transaction: update conflicts")),
                ]),
            },
            raw: json!({
                "database": kept(&figures, &OF_DATABASE),
                "tables": tables,
                "wal_live_bytes": stored.log,
                "cache": {
                    "capacity_bytes": of("cache: maximum bytes configured"),
                    "usage_bytes": of("cache: bytes currently in the cache"),
                },
                "memory": { "cache": of("cache: bytes currently in the cache") },
            }),
            ..EngineStatistics::default()
        })
    }

    fn close(self: Box<Self>) -> EngineResult<()> {
        self.database.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compressor_of_a_file() {
        let config = "access_pattern_hint=none,block_compressor=zstd,cache_resident=false";
        assert_eq!(compressor_in(config), "zstd");
        assert_eq!(compressor_in("a=b,block_compressor=\"\",c=d"), "");
        assert_eq!(compressor_in("block_compressor=none"), "none");
        assert_eq!(compressor_in(""), "");
    }

    #[test]
    fn figures_that_are_kept() {
        let figures: Figures =
            [("log: a".to_owned(), 3), ("log: b".to_owned(), 0), ("cursor: c".to_owned(), 4)]
                .into();
        let kept = kept(&figures, &["log: "]);
        assert_eq!(serde_json::Value::from(kept), json!({ "log: a": 3 }));
        assert_eq!((value(&figures, "cursor: c"), value(&figures, "none")), (4, 0));
    }
}
