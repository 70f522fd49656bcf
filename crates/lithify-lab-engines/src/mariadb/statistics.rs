//! What the server says about its engines, read from its counters and texts.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use lithify_lab::adapter::cross_count::{CrossCount, CrossCounts};
use lithify_lab::adapter::table::PageAccount;
use lithify_lab::adapter::{EngineStatistics, LevelStatistics};
use serde_json::{Value, json};

use super::options::{Kind, Setup};
use super::tally::Asked;
use crate::rocksdb::statistics::parse_levels;

/// The server's counters by their names in lower case.
#[derive(Clone, Debug, Default)]
pub struct Counters(BTreeMap<String, u64>);

impl Counters {
    /// Those of the rows of `SHOW GLOBAL STATUS`; what is no number is left out.
    pub fn of(rows: &[Vec<String>]) -> Counters {
        let numbers = rows.iter().filter_map(|row| match &row[..] {
            [name, value] => Some((name.to_lowercase(), value.parse().ok()?)),
            _ => None,
        });
        Counters(numbers.collect())
    }

    /// A counter; 0 when there is none of that name.
    pub fn value(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Those of an engine that are not 0, for the raw results.
    fn of_engine(&self, kind: Kind) -> Value {
        let prefixes: &[&str] = match kind {
            Kind::InnoDb => &["innodb_", "binlog_"],
            Kind::MyRocks => &["rocksdb_", "binlog_"],
            Kind::MyIsam => &["key_", "binlog_"],
            Kind::Aria => &["aria_", "binlog_"],
        };
        let wanted = |name: &str| prefixes.iter().any(|prefix| name.starts_with(prefix));
        let numbers = self.0.iter().filter(|(name, value)| **value > 0 && wanted(name));
        numbers.map(|(name, value)| (name.clone(), Value::from(*value))).collect()
    }

    /// Bytes that an engine has written, by cause.
    fn written(&self, setup: &Setup) -> BTreeMap<String, u64> {
        let mut causes = match setup.kind {
            Kind::InnoDb => {
                let doublewrite = self.value("innodb_dblwr_pages_written") * setup.page_bytes;
                let all = self.value("innodb_data_written");
                let log = self.value("innodb_os_log_written");
                vec![
                    ("redo log", log),
                    ("doublewrite", doublewrite),
                    ("pages", all.saturating_sub(doublewrite)),
                ]
            }
            Kind::MyRocks => vec![
                ("wal", self.value("rocksdb_wal_bytes")),
                ("flush", self.value("rocksdb_flush_write_bytes")),
                ("compaction", self.value("rocksdb_compact_write_bytes")),
            ],
            Kind::MyIsam | Kind::Aria => Vec::new(),
        };
        causes.push(("binlog", self.value("binlog_bytes_written")));
        causes
            .into_iter()
            .filter(|(_, bytes)| *bytes > 0)
            .map(|(cause, bytes)| (cause.to_owned(), bytes))
            .collect()
    }

    /// Adds what InnoDB counts of pages; those of key blocks are in a table of their own.
    pub fn count_pages(&self, account: &mut PageAccount) {
        account.written = self.value("innodb_pages_written");
        account.doublewritten = self.value("innodb_dblwr_pages_written");
        account.compressed = self.value("innodb_num_pages_page_compressed");
        account.failed = self.value("innodb_num_pages_page_compression_error");
        account.decompressed = self.value("innodb_num_pages_page_decompressed");
    }

    /// What the server counts of what it was asked for. MyRocks counts rows itself; those of the
    /// others are counted where the server calls them, twice for a table in partitions, which is
    /// an engine over engines.
    pub fn beside(&self, setup: &Setup, asked: &Asked) -> CrossCounts {
        let calls = |name: &str| self.value(name) / if setup.partitions > 1 { 2 } else { 1 };
        let mut counts = vec![
            ("selects", asked.selects, self.value("com_select")),
            ("inserts", asked.inserts, self.value("com_insert")),
            ("updates", asked.updates, self.value("com_update")),
            ("deletes", asked.deletes, self.value("com_delete")),
        ];
        let of_rows = |name: &str| match setup.kind {
            Kind::MyRocks => self.value(&format!("rocksdb_rows_{name}d")),
            Kind::InnoDb | Kind::MyIsam | Kind::Aria => calls(&format!("handler_{name}")),
        };
        if let Some([inserted, updated]) = asked.inserted_and_updated_rows {
            if setup.kind == Kind::MyRocks {
                counts.push(("rows inserted", inserted, self.value("rocksdb_rows_inserted")));
            }
            counts.push(("rows updated", updated, of_rows("update")));
        }
        if setup.kind != Kind::MyRocks {
            counts.push(("rows written", asked.written_rows, calls("handler_write")));
        }
        counts.push(("rows deleted", asked.deleted_rows, of_rows("delete")));
        let count = |(what, asked, counted): (&str, u64, u64)| {
            (what.to_owned(), CrossCount { asked, counted })
        };
        counts.into_iter().map(count).collect()
    }

    /// Bytes that an engine has read, by cause.
    fn read(&self, kind: Kind) -> BTreeMap<String, u64> {
        let cause = match kind {
            Kind::InnoDb => ("pages", self.value("innodb_data_read")),
            Kind::MyRocks => ("compaction", self.value("rocksdb_compact_read_bytes")),
            Kind::MyIsam | Kind::Aria => return BTreeMap::new(),
        };
        [(cause.0.to_owned(), cause.1)].into()
    }
}

/// The sizes of an engine's files, as blocks that are allocated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileSizes {
    /// Files of tables and indexes.
    pub tables_bytes: u64,
    /// Lengths of the files of tables and indexes, and of those that all tables share.
    pub length_bytes: u64,
    /// Files of the log that are still needed; 0 where the log is a ring of fixed size.
    pub log_bytes: u64,
}

impl FileSizes {
    /// Those of the tables in `database`, or of MyRocks in `data`.
    pub fn read(kind: Kind, data: &Path, database: &Path) -> FileSizes {
        let rows = if kind == Kind::MyRocks { data.join("#rocksdb") } else { database.to_owned() };
        let mut sizes = FileSizes::default();
        for entry in fs::read_dir(rows).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            let bytes = metadata.blocks() * 512;
            let path = entry.path();
            match path.extension().and_then(|kind| kind.to_str()) {
                Some("ibd" | "sst" | "MYD" | "MYI" | "MAD" | "MAI") => {
                    sizes.tables_bytes += bytes;
                    sizes.length_bytes += metadata.len();
                }
                Some("log") => sizes.log_bytes += bytes,
                _ => {}
            }
        }
        if kind == Kind::InnoDb {
            // Undo logs and the dictionary.
            let shared = fs::metadata(data.join("ibdata1"));
            sizes.length_bytes += shared.map_or(0, |metadata| metadata.len());
        }
        sizes
    }
}

/// The levels of MyRocks: the sums over its families, from their texts of compactions. `codecs` says
/// how many files have which codec; the server does not tell their levels.
pub fn levels(families: &[&str], codecs: &BTreeMap<String, u64>) -> Vec<LevelStatistics> {
    let mut levels: BTreeMap<u32, LevelStatistics> = BTreeMap::new();
    for text in families {
        for (level, (files, bytes)) in parse_sizes(text) {
            let sum = levels.entry(level).or_insert_with(|| LevelStatistics {
                level,
                codec: LevelStatistics::describe_codecs(codecs),
                ..LevelStatistics::default()
            });
            sum.files += files;
            sum.stored_bytes += bytes;
        }
        for (level, work) in parse_levels(text) {
            let Some(sum) = levels.get_mut(&level) else { continue };
            sum.compaction_read_bytes += work.read_bytes;
            sum.compaction_write_bytes += work.written_bytes;
            sum.compaction_cpu_us += work.cpu_us;
            sum.compaction_wall_us += work.wall_us;
            sum.compactions += work.jobs;
        }
    }
    levels.into_values().collect()
}

/// Files and bytes of each level, from the lines `L6  12/0  34.56 MB ...` of the first table.
fn parse_sizes(text: &str) -> BTreeMap<u32, (u64, u64)> {
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let levels = lines.take_while(|words| words.first() != Some(&"Priority"));
    levels
        .filter_map(|words| {
            let [level, files, size, unit, ..] = words[..] else { return None };
            let level = level.strip_prefix('L')?.parse().ok()?;
            let files = files.split('/').next()?.parse().ok()?;
            let unit_bytes = match unit {
                "B" => 1.0,
                "KB" => 1024.0,
                "MB" => 1024.0 * 1024.0,
                "GB" => 1024.0 * 1024.0 * 1024.0,
                "TB" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
                _ => return None,
            };
            Some((level, (files, (size.parse::<f64>().ok()? * unit_bytes) as u64)))
        })
        .collect()
}

/// Everything together. `tree` are the levels of MyRocks; `details` go into the raw results.
pub fn statistics(
    setup: &Setup,
    counters: &Counters,
    sizes: FileSizes,
    tree: Vec<LevelStatistics>,
    details: Value,
) -> EngineStatistics {
    let mut cpu_us_by_cause = BTreeMap::new();
    if let Some((level0, deeper)) = tree.split_first() {
        cpu_us_by_cause.insert("flush".to_owned(), level0.compaction_cpu_us);
        let deeper_us = deeper.iter().map(|level| level.compaction_cpu_us).sum();
        cpu_us_by_cause.insert("compaction".to_owned(), deeper_us);
    }
    let mut statistics = EngineStatistics {
        live_bytes: sizes.tables_bytes + sizes.log_bytes,
        levels: tree,
        written_bytes_by_cause: counters.written(setup),
        read_bytes_by_cause: counters.read(setup.kind),
        cpu_us_by_cause,
        raw: json!({
            "wal_live_bytes": sizes.log_bytes,
            "memory": memory(setup.kind, counters),
            "counters": counters.of_engine(setup.kind),
            "details": details,
        }),
        ..EngineStatistics::default()
    };
    if setup.kind == Kind::MyRocks {
        statistics.stalls.delayed_us = counters.value("rocksdb_stall_micros");
    }
    statistics
}

fn memory(kind: Kind, counters: &Counters) -> Value {
    match kind {
        Kind::InnoDb => json!({
            "buffer pool": counters.value("innodb_buffer_pool_bytes_data"),
            "dirty pages": counters.value("innodb_buffer_pool_bytes_dirty"),
        }),
        Kind::MyRocks => json!({ "memtables": counters.value("rocksdb_memtable_total") }),
        Kind::MyIsam | Kind::Aria => json!({}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lithify_lab::adapter::codec::Codec;
    use lithify_lab::adapter::settings::EngineSettings;

    fn row(name: &str, value: &str) -> Vec<String> {
        vec![name.to_owned(), value.to_owned()]
    }

    #[test]
    fn counters_are_found_in_any_case() {
        let counters = Counters::of(&[
            row("Innodb_os_log_written", "512"),
            row("Rocksdb_WAL_bytes", "7"),
            row("Uptime_words", "long"),
        ]);
        assert_eq!(counters.value("innodb_os_log_written"), 512);
        assert_eq!((counters.value("rocksdb_wal_bytes"), counters.value("uptime_words")), (7, 0));
        assert_eq!(counters.of_engine(Kind::MyRocks), json!({"rocksdb_wal_bytes": 7}));
    }

    #[test]
    fn pages_are_counted_and_files_measured() {
        let counters = Counters::of(&[
            row("Innodb_pages_written", "9"),
            row("Innodb_dblwr_pages_written", "8"),
            row("Innodb_num_pages_page_compressed", "5"),
            row("Innodb_num_pages_page_compression_error", "2"),
        ]);
        let mut account = PageAccount { file_bytes: 3, ..PageAccount::default() };
        counters.count_pages(&mut account);
        let seen = [account.written, account.doublewritten, account.compressed, account.failed];
        assert_eq!((seen, account.file_bytes), ([9, 8, 5, 2], 3));
        let root = tempfile::tempdir().expect("a directory");
        let database = root.path().join("lab");
        fs::create_dir(&database).expect("is made");
        for (name, bytes) in [("lab/t.ibd", 10_000), ("ibdata1", 500), ("lab/t.frm", 70)] {
            fs::write(root.path().join(name), vec![1; bytes]).expect("is written");
        }
        let sizes = FileSizes::read(Kind::InnoDb, root.path(), &database);
        assert_eq!(sizes.length_bytes, 10_500);
        assert_eq!(FileSizes::read(Kind::MyIsam, root.path(), &database).length_bytes, 10_000);
    }

    #[test]
    fn what_was_asked_for_stands_beside_what_was_counted() {
        let setup = |kind, options: &[(&str, &str)]| {
            let mut settings =
                EngineSettings { codec_bottom: Codec::NONE, ..EngineSettings::small() };
            let owned = options.iter().map(|(name, value)| ((*name).into(), (*value).into()));
            settings.options = owned.collect();
            Setup::new(kind, "e", &settings).expect("is possible")
        };
        let counters = Counters::of(&[
            row("Com_insert", "3"),
            row("Handler_write", "8"),
            row("Handler_update", "2"),
            row("Rocksdb_rows_inserted", "4"),
            row("Rocksdb_rows_updated", "1"),
        ]);
        let asked = Asked {
            inserts: 3,
            written_rows: 4,
            inserted_and_updated_rows: Some([4, 1]),
            ..Asked::default()
        };
        let seen = |setup: &Setup, asked: &Asked| -> Vec<(String, u64, u64)> {
            let counts = counters.beside(setup, asked).into_iter();
            let counts = counts.filter(|(_, count)| count.asked + count.counted > 0);
            counts.map(|(what, count)| (what, count.asked, count.counted)).collect()
        };
        let told = |what: &str, asked, counted| (what.to_owned(), asked, counted);
        let partitioned = setup(Kind::InnoDb, &[("partitions", "4")]);
        let wanted =
            [told("inserts", 3, 3), told("rows updated", 1, 1), told("rows written", 4, 4)];
        assert_eq!(seen(&partitioned, &asked), wanted);
        let rocks = setup(Kind::MyRocks, &[("partitions", "4")]);
        let wanted =
            [told("inserts", 3, 3), told("rows inserted", 4, 4), told("rows updated", 1, 1)];
        assert_eq!(seen(&rocks, &asked), wanted);
        let vague = Asked { inserted_and_updated_rows: None, ..asked };
        let wanted = [told("inserts", 3, 3), told("rows written", 4, 8)];
        assert_eq!(seen(&setup(Kind::InnoDb, &[]), &vague), wanted);
    }

    #[test]
    fn levels_are_the_sums_of_families() {
        let family = "** Compaction Stats [cf] **\n\
             Level    Files   Size     Score Read(GB)  Rd(MB/s) Wr(MB/s) Comp(sec) \
             CompMergeCPU(sec) Comp(cnt)\n----\n\
             \x20 L0      2/0   64.00 KB   0.5      0.0      0.0     10.0      0.50  0.20  3\n\
             \x20 L6      5/1    2.00 MB   0.0      0.0      4.0      4.0      1.00  0.90  2\n\
             \x20Sum      7/1    2.06 MB   0.0      0.0      2.0      4.0      1.50  1.10  5\n\
             Priority    Files   Size\n L6 9/0 9.00 MB\n";
        let codecs = [("ZSTD".to_owned(), 7)].into();
        let levels = levels(&[family, family], &codecs);
        let seen: Vec<_> = levels.iter().map(|l| (l.level, l.files, l.stored_bytes)).collect();
        assert_eq!(seen, [(0, 4, 128 << 10), (6, 10, 4 << 20)]);
        assert_eq!((levels[0].compaction_cpu_us, levels[1].compactions), (400_000, 4));
        assert_eq!(levels[1].codec, "ZSTD");
    }
}
