//! The settings that engines share, and those of MariaDB alone, as arguments of the server and as
//! options of its tables.
//!
//! Owns: every option that is set, each with its reason, and what is refused. What is not set here
//! stays as MariaDB ships it. `docs/engines/mariadb.md` tells a reader the same.

use std::fmt::Write as _;

use lithify_lab::adapter::codec::Codec;
use lithify_lab::adapter::settings::DurabilityMode;
use lithify_lab::adapter::settings::EngineSettings;
use lithify_lab::adapter::{EngineError, EngineResult};

use crate::rocksdb::policy::{LEVELS, Policy};

/// A storage engine of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// B-trees with a log, pages that may be compressed.
    InnoDb,
    /// RocksDB below SQL.
    MyRocks,
    /// Tables in files without a log.
    MyIsam,
    /// MyISAM's successor, with a log where tables are asked to be safe from crashes.
    Aria,
}

impl Kind {
    /// As statements name it.
    pub fn sql_name(self) -> &'static str {
        match self {
            Kind::InnoDb => "InnoDB",
            Kind::MyRocks => "ROCKSDB",
            Kind::MyIsam => "MyISAM",
            Kind::Aria => "Aria",
        }
    }

    /// As people name it.
    pub fn title(self) -> &'static str {
        if self == Kind::MyRocks { "MyRocks" } else { self.sql_name() }
    }

    /// True when several statements can be one transaction.
    pub fn has_transactions(self) -> bool {
        matches!(self, Kind::InnoDb | Kind::MyRocks)
    }

    /// The options that it alone knows.
    fn known_options(self) -> &'static [&'static str] {
        match self {
            Kind::InnoDb => {
                &["page_kib", "key_block_kib", "page_codec", "partitions", "doublewrite", "binlog"]
            }
            Kind::MyIsam => &["packed", "partitions", "binlog"],
            Kind::MyRocks | Kind::Aria => &["partitions", "binlog"],
        }
    }
}

/// Codecs of compressed pages that settings of other engines do not have.
pub const PAGE_CODECS: [&str; 6] = ["zlib", "lz4", "lzo", "lzma", "bzip2", "snappy"];

/// The plugin that is MyRocks.
pub const MYROCKS_PLUGIN: &str = "ha_rocksdb";

/// The plugin of a codec of pages; the server itself has zlib.
pub fn codec_plugin(codec: &str) -> Option<String> {
    (codec != "zlib").then(|| format!("provider_{codec}"))
}

/// Sizes of pages, KiB; the first is MariaDB's own choice.
const PAGES_KIB: [u64; 3] = [16, 32, 64];

/// Sizes of blocks of tables of the older compressed format, KiB.
const KEY_BLOCKS_KIB: [u64; 2] = [8, 4];

const PARTITIONS_MAX: u64 = 1024;

const MIB: u64 = 1 << 20;

/// Most log of InnoDB and of MyRocks, as Lithify's default.
const LOG_BYTES_MAX: u64 = 256 * MIB;

/// Least log of InnoDB: it must hold more than its buffer.
const LOG_BYTES_MIN: u64 = 32 * MIB;

/// Pages that InnoDB may write in a second beside those that it must: what the device here can do,
/// not the 200 that it takes a disk for.
const IO_CAPACITY: u64 = 4000;

/// How long a lock is waited for, as Lithify's default.
const LOCK_TIMEOUT_S: u64 = 1;

/// Written data go to the device in strides of this size, as Lithify's.
const SYNC_STRIDE_BYTES: u64 = MIB;

/// Bits of MyRocks' filters per key, as Lithify's.
const FILTER_BITS_PER_KEY: u64 = 10;

/// Fewest and most memtables of a family that may be in memory.
const MEMTABLES: std::ops::RangeInclusive<u64> = 2..=8;

/// How pages or blocks are compressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// Pages that leave holes in their files, by an algorithm.
    Pages(String),
    /// The older format: a page is compressed into a block of so many KiB by zlib.
    KeyBlocks(u64),
    /// By level, as MyRocks does.
    Levels,
}

/// What settings ask for.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The storage engine.
    pub kind: Kind,
    /// Bytes of a page of InnoDB.
    pub page_bytes: u64,
    /// How data are compressed.
    pub compression: Compression,
    /// Partitions of each table; 1 for tables without.
    pub partitions: u64,
    /// A table is packed after its load, and read only from then on.
    pub packed: bool,
    /// Arguments of the making of a server and of the server.
    pub made: Vec<String>,
    /// Arguments of the server alone.
    pub started: Vec<String>,
    /// Plugins that it loads.
    pub plugins: Vec<String>,
    /// Behind the columns of a table.
    pub table_options: String,
    /// For the report.
    pub labels: Vec<String>,
}

impl Setup {
    /// What `settings` ask `kind` for, under the name `engine`.
    ///
    /// # Errors
    /// An option, a codec or a mode of durability that it does not have.
    pub fn new(kind: Kind, engine: &str, settings: &EngineSettings) -> EngineResult<Setup> {
        settings.expect_options(engine, kind.known_options())?;
        let options = Options { engine, settings };
        let mut setup = Setup {
            kind,
            page_bytes: 0,
            compression: Compression::None,
            partitions: options.number("partitions", 1, |n| (1..=PARTITIONS_MAX).contains(&n))?,
            packed: false,
            made: Vec::new(),
            started: Vec::new(),
            plugins: Vec::new(),
            table_options: format!("ENGINE={}", kind.sql_name()),
            labels: Vec::new(),
        };
        setup.common(settings, options.switch("binlog", false)?);
        match kind {
            Kind::InnoDb => setup.innodb(&options)?,
            Kind::MyRocks => setup.myrocks(settings)?,
            Kind::MyIsam => setup.myisam(&options)?,
            Kind::Aria => setup.aria(settings)?,
        }
        if kind != Kind::InnoDb {
            // Its pool and its files would stand beside those of the engine under test.
            setup.made.push("--skip-innodb".to_owned());
            // A server has to have its default engine, which is InnoDB until another one is loaded.
            setup.made.push("--default-storage-engine=Aria".to_owned());
        }
        if setup.partitions > 1 {
            setup.labels.push(format!("{} partitions", setup.partitions));
        }
        Ok(setup)
    }

    /// Refuses tables that are packed, for a workload that goes on writing to them.
    ///
    /// # Errors
    /// They are.
    pub fn expect_unpacked(&self) -> EngineResult<()> {
        if !self.packed {
            return Ok(());
        }
        Err(EngineError::fatal(
            "packed tables are read only: option packed is for workloads over tables",
        ))
    }

    /// Has every byte pass by a write call: the kernel does not charge a process for what it writes
    /// by asynchronous requests, and an account by cause is compared with what it charges.
    pub fn count_writes(&mut self) {
        if self.kind == Kind::InnoDb {
            self.start_with("innodb-use-native-aio", "OFF");
        }
    }

    /// The clause that spreads a table over the partitions by the hash of a column.
    pub fn partition_clause(&self, column: &str) -> String {
        if self.partitions == 1 {
            return String::new();
        }
        format!(" PARTITION BY KEY ({column}) PARTITIONS {}", self.partitions)
    }

    fn start_with(&mut self, name: &str, value: impl std::fmt::Display) {
        self.started.push(format!("--{name}={value}"));
    }

    fn common(&mut self, settings: &EngineSettings, binlog: bool) {
        self.start_with("default-storage-engine", self.kind.sql_name());
        self.start_with("character-set-server", "latin1");
        self.start_with("collation-server", "latin1_bin");
        // What the published runs of both engines used; a list of changes then has rows.
        self.start_with("transaction-isolation", "READ-COMMITTED");
        self.start_with("performance-schema", "OFF");
        self.start_with("query-cache-type", "OFF");
        self.start_with("query-cache-size", 0);
        self.start_with("max-connections", 2000);
        self.start_with("max-prepared-stmt-count", 1_000_000);
        self.start_with("max-allowed-packet", 256 * MIB);
        self.start_with("table-open-cache", 4000);
        // Threads stay for the next connection, and with them what they have counted.
        self.start_with("thread-cache-size", 256);
        // The oracle reads several tables side by side and may let one wait for long.
        self.start_with("net-write-timeout", 24 * 3600);
        if binlog {
            self.start_with("log-bin", "binlog");
            self.start_with("server-id", 1);
            self.start_with("binlog-format", "ROW");
            let sync = u8::from(settings.durability == DurabilityMode::Sync);
            self.start_with("sync-binlog", sync);
            self.labels.push("second log (binlog)".to_owned());
        }
        // Caches of engines that are not under test.
        if self.kind != Kind::MyIsam {
            self.start_with("key-buffer-size", MIB);
        }
        if self.kind != Kind::Aria {
            self.start_with("aria-pagecache-buffer-size", 8 * MIB);
        }
    }

    fn innodb(&mut self, options: &Options<'_>) -> EngineResult<()> {
        let settings = options.settings;
        let page_kib = options.number("page_kib", PAGES_KIB[0], |n| PAGES_KIB.contains(&n))?;
        self.page_bytes = page_kib << 10;
        self.made.push(format!("--innodb-page-size={page_kib}k"));
        let log_bytes = (2 * settings.memory_budget_bytes).clamp(LOG_BYTES_MIN, LOG_BYTES_MAX);
        self.made.push(format!("--innodb-log-file-size={log_bytes}"));
        self.start_with("innodb-buffer-pool-size", settings.memory_budget_bytes);
        self.start_with("innodb-flush-log-at-trx-commit", flush_log(settings.durability));
        let method = if settings.direct_reads { "O_DIRECT" } else { "fsync" };
        self.start_with("innodb-flush-method", method);
        let doublewrite = options.switch("doublewrite", true)?;
        self.start_with("innodb-doublewrite", if doublewrite { "ON" } else { "OFF" });
        if !doublewrite {
            self.labels.push("no doublewrite".to_owned());
        }
        self.start_with("innodb-io-capacity", IO_CAPACITY);
        self.start_with("innodb-io-capacity-max", 2 * IO_CAPACITY);
        self.start_with("innodb-flush-neighbors", 0);
        // A database that is opened anew has nothing in its cache, as those of other engines.
        self.start_with("innodb-buffer-pool-dump-at-shutdown", "OFF");
        self.start_with("innodb-buffer-pool-load-at-startup", "OFF");
        self.start_with("innodb-purge-threads", settings.background_threads.clamp(1, 32));
        self.start_with("innodb-lock-wait-timeout", LOCK_TIMEOUT_S);
        if settings.durability == DurabilityMode::None {
            self.labels.push("the log is written once a second".to_owned());
        }
        self.labels.push(format!("pages of {page_kib} KiB"));
        self.page_compression(options, page_kib)
    }

    fn page_compression(&mut self, options: &Options<'_>, page_kib: u64) -> EngineResult<()> {
        let codec = options.settings.codec_bottom;
        let key_block_kib = options.number("key_block_kib", 0, |n| KEY_BLOCKS_KIB.contains(&n))?;
        let page_codec = options.choice("page_codec", &PAGE_CODECS)?;
        if key_block_kib > 0 {
            if codec.kind() != "zlib" {
                return Err(options.refuse(&format!(
                    "key_block_kib compresses by zlib, not by {codec}: set bottom = \"zlib-6\""
                )));
            }
            if page_kib != PAGES_KIB[0] || page_codec.is_some() {
                return Err(options.refuse(
                    "key_block_kib goes with pages of 16 KiB only, and with no page_codec",
                ));
            }
            self.start_with("innodb-compression-level", codec.effort());
            // Writing to a String cannot fail.
            let _ =
                write!(self.table_options, " ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE={key_block_kib}");
            self.compression = Compression::KeyBlocks(key_block_kib);
            return Ok(());
        }
        let algorithm = match (page_codec, codec.kind()) {
            (None, "none") => return Ok(()),
            (Some(named), "none") => named.to_owned(),
            (Some(_), _) => {
                return Err(options.refuse(&format!(
                    "page_codec and bottom = \"{codec}\" both name a codec: set bottom = \"none\""
                )));
            }
            (None, "zlib") => {
                self.start_with("innodb-compression-level", codec.effort());
                "zlib".to_owned()
            }
            (None, "lz4") if codec == Codec::LZ4 => "lz4".to_owned(),
            (None, "snappy") => "snappy".to_owned(),
            (None, _) => {
                return Err(options.refuse(&format!(
                    "InnoDB has no codec {codec}; it has none, zlib-N, lz4, snappy, and by \
                     page_codec {}",
                    PAGE_CODECS.join(", ")
                )));
            }
        };
        self.plugins.extend(codec_plugin(&algorithm));
        self.start_with("innodb-compression-algorithm", &algorithm);
        self.table_options.push_str(" PAGE_COMPRESSED=1");
        self.compression = Compression::Pages(algorithm);
        Ok(())
    }

    fn myrocks(&mut self, settings: &EngineSettings) -> EngineResult<()> {
        self.plugins.push(MYROCKS_PLUGIN.to_owned());
        self.compression = Compression::Levels;
        let policy = Policy::new(settings)?;
        let budget_bytes = settings.memory_budget_bytes;
        // Memtables are not charged to the cache: it leaves room for two.
        let memtables_bytes = settings.memtable_bytes * MEMTABLES.start();
        let cache_bytes = budget_bytes.saturating_sub(memtables_bytes).max(budget_bytes / 2);
        self.start_with("rocksdb-block-cache-size", cache_bytes);
        self.start_with("rocksdb-db-write-buffer-size", budget_bytes / 2);
        self.start_with("rocksdb-block-size", settings.block_bytes);
        self.start_with("rocksdb-flush-log-at-trx-commit", flush_log(settings.durability));
        // As shipped, the log of commits that are not synced stays in the server's own memory for up
        // to a second: a server that is killed loses what it has acknowledged.
        self.start_with("rocksdb-manual-wal-flush", "OFF");
        if settings.durability == DurabilityMode::None {
            self.start_with("rocksdb-write-disable-wal", "ON");
        }
        self.start_with("rocksdb-max-total-wal-size", LOG_BYTES_MAX);
        self.start_with("rocksdb-max-background-jobs", settings.background_threads.max(1));
        self.start_with("rocksdb-bytes-per-sync", SYNC_STRIDE_BYTES);
        self.start_with("rocksdb-wal-bytes-per-sync", SYNC_STRIDE_BYTES);
        let direct = if settings.direct_reads { "ON" } else { "OFF" };
        self.start_with("rocksdb-use-direct-reads", direct);
        self.start_with("rocksdb-lock-wait-timeout", LOCK_TIMEOUT_S);
        self.start_with("rocksdb-default-cf-options", family_options(settings, &policy));
        // Lists are read by their source and type, behind the number of the index.
        self.start_with(
            "rocksdb-override-cf-options",
            "cf_link_pk={prefix_extractor=capped:20};\
             rev:cf_link_id1_type={prefix_extractor=capped:20}",
        );
        Ok(())
    }

    fn myisam(&mut self, options: &Options<'_>) -> EngineResult<()> {
        let settings = options.settings;
        without_codec(self.kind, settings)?;
        if settings.durability == DurabilityMode::Sync {
            return Err(EngineError::fatal(
                "MyISAM has no durability sync, for it has no log: set durability = \"none\"",
            ));
        }
        self.start_with("key-buffer-size", settings.memory_budget_bytes);
        self.labels.push("no log".to_owned());
        self.packed = options.switch("packed", false)?;
        if self.packed {
            if self.partitions > 1 {
                return Err(options.refuse("packed tables have no partitions here"));
            }
            self.labels.push("packed after the load".to_owned());
        }
        Ok(())
    }

    fn aria(&mut self, settings: &EngineSettings) -> EngineResult<()> {
        without_codec(self.kind, settings)?;
        self.start_with("aria-pagecache-buffer-size", settings.memory_budget_bytes);
        let is_safe = settings.durability == DurabilityMode::Sync;
        let _ = write!(self.table_options, " TRANSACTIONAL={}", u8::from(is_safe));
        if !is_safe {
            self.labels.push("no log".to_owned());
        }
        Ok(())
    }
}

fn without_codec(kind: Kind, settings: &EngineSettings) -> EngineResult<()> {
    if settings.codec_bottom == Codec::NONE {
        return Ok(());
    }
    Err(EngineError::fatal(format!(
        "{} has no codec {}: set bottom = \"none\"",
        kind.title(),
        settings.codec_bottom
    )))
}

/// What is done with the log at a commit: synced, written, left to the next second.
fn flush_log(durability: DurabilityMode) -> u8 {
    match durability {
        DurabilityMode::Sync => 1,
        DurabilityMode::Buffered => 2,
        DurabilityMode::None => 0,
    }
}

/// The options of a column family of MyRocks.
fn family_options(settings: &EngineSettings, policy: &Policy) -> String {
    const DEFAULT_EFFORT: i32 = 32_767;
    let fit = settings.memory_budget_bytes / 2 / settings.memtable_bytes.max(1);
    let memtables = fit.clamp(*MEMTABLES.start(), *MEMTABLES.end());
    // The base level moves while the tree grows and the list stays: it is that of a tree with two
    // levels below the base level.
    let per_level = policy.per_level_text(LEVELS - 3);
    let upper_effort = policy.upper_effort().unwrap_or(DEFAULT_EFFORT);
    let bottom = policy.bottom;
    let bottom_effort = bottom.effort.unwrap_or(DEFAULT_EFFORT);
    [
        format!("write_buffer_size={}", settings.memtable_bytes),
        format!("max_write_buffer_number={memtables}"),
        format!("target_file_size_base={}", settings.table_bytes),
        format!("max_bytes_for_level_base={}", settings.base_level_bytes),
        format!("max_bytes_for_level_multiplier={}", settings.fanout),
        "level_compaction_dynamic_level_bytes=true".to_owned(),
        format!("compression_per_level={per_level}"),
        format!("compression_opts=-15:{upper_effort}:0:0"),
        format!("bottommost_compression={}", bottom.option_name),
        format!(
            "bottommost_compression_opts={{window_bits=-15;level={bottom_effort};strategy=0;\
             max_dict_bytes=0;enabled=true}}"
        ),
        format!(
            "block_based_table_factory={{cache_index_and_filter_blocks=1;\
             pin_l0_filter_and_index_blocks_in_cache=1;\
             filter_policy=bloomfilter:{FILTER_BITS_PER_KEY}:false;whole_key_filtering=1}}"
        ),
    ]
    .join(";")
}

/// The options that one engine knows, read with what they may be.
struct Options<'a> {
    engine: &'a str,
    settings: &'a EngineSettings,
}

impl Options<'_> {
    fn value(&self, name: &str) -> Option<&str> {
        self.settings.options.get(name).map(String::as_str)
    }

    #[cold]
    fn refuse(&self, why: &str) -> EngineError {
        EngineError::fatal(format!("{}: {why}", self.engine))
    }

    #[cold]
    fn refuse_value(&self, name: &str, value: &str) -> EngineError {
        let takes = match name {
            "page_kib" => "16, 32 or 64".to_owned(),
            "key_block_kib" => "8 or 4".to_owned(),
            "partitions" => format!("1 to {PARTITIONS_MAX}"),
            "page_codec" => PAGE_CODECS.join(", "),
            _ => "on or off".to_owned(),
        };
        self.refuse(&format!("option {name} = \"{value}\": it takes {takes}"))
    }

    fn number(&self, name: &str, default: u64, may: impl Fn(u64) -> bool) -> EngineResult<u64> {
        let Some(value) = self.value(name) else { return Ok(default) };
        let number = value.parse().ok().filter(|number| may(*number));
        number.ok_or_else(|| self.refuse_value(name, value))
    }

    fn switch(&self, name: &str, default: bool) -> EngineResult<bool> {
        match self.value(name) {
            None => Ok(default),
            Some("on") => Ok(true),
            Some("off") => Ok(false),
            Some(other) => Err(self.refuse_value(name, other)),
        }
    }

    fn choice<'k>(&self, name: &str, known: &[&'k str]) -> EngineResult<Option<&'k str>> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let found = known.iter().copied().find(|known| *known == value);
        found.map(Some).ok_or_else(|| self.refuse_value(name, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(bottom: Codec, options: &[(&str, &str)]) -> EngineSettings {
        let options = options.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        EngineSettings {
            codec_bottom: bottom,
            options: options.collect(),
            ..EngineSettings::small()
        }
    }

    fn setup(kind: Kind, bottom: Codec, options: &[(&str, &str)]) -> Result<Setup, String> {
        Setup::new(kind, "it", &settings(bottom, options)).map_err(|error| error.to_string())
    }

    #[test]
    fn pages_and_their_codecs() {
        let plain = setup(Kind::InnoDb, Codec::NONE, &[]).expect("is possible");
        assert_eq!((plain.page_bytes, &*plain.table_options), (16 << 10, "ENGINE=InnoDB"));
        assert!(plain.plugins.is_empty());
        let lz4 = setup(Kind::InnoDb, Codec::LZ4, &[("page_kib", "64")]).expect("is possible");
        assert_eq!(lz4.table_options, "ENGINE=InnoDB PAGE_COMPRESSED=1");
        assert_eq!(lz4.plugins, ["provider_lz4"]);
        assert!(lz4.started.contains(&"--innodb-compression-algorithm=lz4".to_owned()));
        assert!(lz4.made.contains(&"--innodb-page-size=64k".to_owned()));
        let lzma =
            setup(Kind::InnoDb, Codec::NONE, &[("page_codec", "lzma")]).expect("is possible");
        assert_eq!(lzma.compression, Compression::Pages("lzma".to_owned()));
        let blocks =
            setup(Kind::InnoDb, Codec::zlib(9), &[("key_block_kib", "4")]).expect("is possible");
        assert_eq!(blocks.table_options, "ENGINE=InnoDB ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=4");
        assert!(blocks.started.contains(&"--innodb-compression-level=9".to_owned()));
    }

    #[test]
    fn what_cannot_be_is_refused_in_one_line() {
        let refuse =
            |kind, bottom, options: &[_]| setup(kind, bottom, options).expect_err("refused");
        let innodb = |bottom, options: &[_]| refuse(Kind::InnoDb, bottom, options);
        assert!(innodb(Codec::zstd(1), &[]).contains("InnoDB has no codec zstd-1"));
        assert!(innodb(Codec::LZ4, &[("key_block_kib", "8")]).contains("by zlib, not by lz4"));
        let large = [("key_block_kib", "8"), ("page_kib", "32")];
        assert!(innodb(Codec::zlib(6), &large).contains("pages of 16 KiB only"));
        assert!(innodb(Codec::LZ4, &[("page_codec", "lzo")]).contains("both name a codec"));
        assert_eq!(
            innodb(Codec::NONE, &[("page_kib", "8")]),
            "it: option page_kib = \"8\": it takes 16, 32 or 64"
        );
        assert!(innodb(Codec::NONE, &[("doublewrite", "no")]).ends_with("it takes on or off"));
        assert!(innodb(Codec::NONE, &[("pages", "8")]).contains("no option \"pages\""));
        assert!(refuse(Kind::Aria, Codec::LZ4, &[]).contains("Aria has no codec lz4"));
        assert!(refuse(Kind::MyRocks, Codec::NONE, &[("page_kib", "16")]).contains("no option"));
        assert!(refuse(Kind::MyRocks, Codec::NONE, &[("partitions", "0")]).contains("1 to 1024"));
        assert!(refuse(Kind::Aria, Codec::NONE, &[("packed", "on")]).contains("no option"));
        let parts = [("packed", "on"), ("partitions", "4")];
        assert!(refuse(Kind::MyIsam, Codec::NONE, &parts).contains("have no partitions"));
        let packed = setup(Kind::MyIsam, Codec::NONE, &parts[..1]).expect("is possible");
        assert!(packed.expect_unpacked().is_err());
        let synced =
            EngineSettings { durability: DurabilityMode::Sync, ..settings(Codec::NONE, &[]) };
        let error = Setup::new(Kind::MyIsam, "it", &synced).expect_err("refused").to_string();
        assert!(error.contains("no log"), "{error}");
    }

    #[test]
    fn durability_logs_and_partitions() {
        for (durability, flush) in
            [(DurabilityMode::Sync, 1), (DurabilityMode::Buffered, 2), (DurabilityMode::None, 0)]
        {
            let settings =
                EngineSettings { durability, ..settings(Codec::NONE, &[("binlog", "on")]) };
            let setup = Setup::new(Kind::InnoDb, "it", &settings).expect("is possible");
            let has = |argument: String| setup.started.contains(&argument);
            assert!(has(format!("--innodb-flush-log-at-trx-commit={flush}")));
            assert!(has(format!("--sync-binlog={}", u8::from(flush == 1))));
        }
        let parts = setup(Kind::MyRocks, Codec::NONE, &[("partitions", "16")]).expect("possible");
        assert_eq!(parts.partition_clause("id1"), " PARTITION BY KEY (id1) PARTITIONS 16");
        let one = setup(Kind::MyRocks, Codec::NONE, &[]).expect("is possible");
        assert_eq!(one.partition_clause("id1"), "");
        assert!(one.made.contains(&"--skip-innodb".to_owned()));
    }
}
