//! The settings that engines share as those of a node and of its table, and what is refused.
//!
//! Owns: every option that is set, each with its reason. What is not set here stays as Cassandra
//! ships it. `docs/engines/cassandra.md` tells a reader the same.

use std::path::Path;

use lithify_lab::adapter::codec::Codec;
use lithify_lab::adapter::settings::DurabilityMode;
use lithify_lab::adapter::settings::EngineSettings;
use lithify_lab::adapter::{EngineError, EngineResult};
use serde_json::{Value, json};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Rows in memory are objects: short ones take several times their bytes. A memtable is flushed
/// when it has half of this.
const MEMTABLE_SPACE: u64 = 4;
const MEMTABLE_SPACE_MIN_MIB: u64 = 32;

/// What a node needs of the heap beside memtables, MiB.
const HEAP_MIB: u64 = 768;

/// The largest heap that is asked for, MiB.
const HEAP_MIB_MAX: u64 = 16 << 10;

/// Longer than any request takes, seconds: a slow machine is no error here.
const TIMEOUT_S: u64 = 120;

/// The largest chunk that is tried, KiB.
const CHUNK_KIB_MAX: u64 = 4096;

/// What a node is told.
#[derive(Clone, Debug)]
pub struct Configuration {
    codec: Codec,
    chunk_bytes: u64,
    durability: DurabilityMode,
    memtable_mib: u64,
    threads: u64,
}

impl Configuration {
    /// From the settings that engines share.
    ///
    /// # Errors
    /// What a node cannot do, in one line.
    pub fn new(settings: &EngineSettings) -> EngineResult<Configuration> {
        settings.expect_options("cassandra", &[])?;
        settings.expect_buffered_reads("cassandra")?;
        let configuration = Configuration {
            codec: settings.codec_bottom,
            chunk_bytes: settings.block_bytes,
            durability: settings.durability,
            memtable_mib: settings.memtable_bytes.div_ceil(MIB),
            threads: settings.background_threads.max(1),
        };
        configuration.compression()?;
        if configuration.heap_mib() > HEAP_MIB_MAX {
            return Err(EngineError::fatal(format!(
                "cassandra keeps a memtable of {} MiB in a heap of {} MiB; at most {HEAP_MIB_MAX} \
                 are asked for",
                configuration.memtable_mib,
                configuration.heap_mib()
            )));
        }
        Ok(configuration)
    }

    /// The codec of the table.
    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// Raw bytes that are compressed at once.
    pub fn chunk_bytes(&self) -> u64 {
        self.chunk_bytes
    }

    fn memtable_space_mib(&self) -> u64 {
        self.memtable_mib.saturating_mul(MEMTABLE_SPACE).saturating_add(MEMTABLE_SPACE_MIN_MIB)
    }

    /// The heap of the node, MiB.
    pub fn heap_mib(&self) -> u64 {
        self.memtable_space_mib().saturating_add(HEAP_MIB)
    }

    /// The compression of the table, as CQL has it.
    fn compression(&self) -> EngineResult<String> {
        let chunk_kib = self.chunk_bytes / KIB;
        let class = match (self.codec.kind(), self.codec.effort()) {
            ("none", _) => return Ok("{'enabled': 'false'}".to_owned()),
            ("snappy", _) => "'SnappyCompressor'".to_owned(),
            ("lz4", 1) => "'LZ4Compressor'".to_owned(),
            ("lz4", effort @ 2..=12) => format!(
                "'LZ4Compressor', 'lz4_compressor_type': 'high', 'lz4_high_compressor_level': \
                 '{effort}'"
            ),
            ("zlib", 6) => "'DeflateCompressor'".to_owned(),
            ("zstd", effort @ 1..=22) => {
                format!("'ZstdCompressor', 'compression_level': '{effort}'")
            }
            _ => {
                let other = self.codec;
                return Err(EngineError::fatal(format!(
                    "cassandra has no codec {other}; it has: none, snappy, lz4, lz4-2 to lz4-12, \
                     zlib-6, zstd-1 to zstd-22"
                )));
            }
        };
        let fits = chunk_kib.is_power_of_two() && chunk_kib <= CHUNK_KIB_MAX;
        if !fits || !self.chunk_bytes.is_multiple_of(KIB) {
            return Err(EngineError::fatal(format!(
                "cassandra has no chunks of {} bytes; it has: 1, 2, 4 ... {CHUNK_KIB_MAX} KiB",
                self.chunk_bytes
            )));
        }
        Ok(format!("{{'class': {class}, 'chunk_length_in_kb': '{chunk_kib}'}}"))
    }

    /// The statements that make the table, where there is none.
    ///
    /// # Errors
    /// None after [`Configuration::new`].
    pub fn statements(&self) -> EngineResult<[String; 2]> {
        // Without a commit log where nothing has to be found again.
        let durable = self.durability != DurabilityMode::None;
        let keyspace = format!(
            "CREATE KEYSPACE IF NOT EXISTS lab WITH replication = {{'class': 'SimpleStrategy', \
             'replication_factor': 1}} AND durable_writes = {durable}"
        );
        // A line may be any bytes; they are stored as a text is. Nothing is cached, nothing is
        // compacted unless it is told to be, and no read is tried twice.
        let table = format!(
            "CREATE TABLE IF NOT EXISTS lab.lines (a int, b int, c blob, PRIMARY KEY (a, b)) \
             WITH compression = {} \
             AND caching = {{'keys': 'NONE', 'rows_per_partition': 'NONE'}} \
             AND compaction = {{'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'}} \
             AND speculative_retry = 'NONE' AND gc_grace_seconds = 0",
            self.compression()?
        );
        Ok([keyspace, table])
    }

    /// `cassandra.yaml` for a node whose files are below `home`, on these ports of this machine.
    /// It is written as JSON, which every reader of YAML takes: no path needs a thought about
    /// quotes.
    pub fn yaml(&self, home: &Path, ports: Ports) -> String {
        let place = |name: &str| home.join(name).to_string_lossy().into_owned();
        let mut yaml = json!({
            "cluster_name": "lab",
            "partitioner": "org.apache.cassandra.dht.Murmur3Partitioner",
            "endpoint_snitch": "SimpleSnitch",
            "num_tokens": 1,
            "initial_token": "0",
            "auto_bootstrap": false,
            "seed_provider": [{
                "class_name": "org.apache.cassandra.locator.SimpleSeedProvider",
                "parameters": [{ "seeds": format!("127.0.0.1:{}", ports.storage) }],
            }],
            "listen_address": "127.0.0.1",
            "storage_port": ports.storage,
            "rpc_address": "127.0.0.1",
            "native_transport_port": ports.client,
            "data_file_directories": [place("data")],
            "commitlog_directory": place("commitlog"),
            "saved_caches_directory": place("saved_caches"),
            "hints_directory": place("hints"),
            "disk_failure_policy": "die",
            "commit_failure_policy": "die",
            // Files as the version writes them, not as the one before could read them.
            "storage_compatibility_mode": "NONE",
            // Otherwise a flush uses LZ4 for every codec that is slower, and a compaction the
            // table's own.
            "flush_compression": "table",
            // Reads through the page cache, as the other engines': mapped files cannot be dropped
            // from it.
            "disk_access_mode": "standard",
            "memtable_heap_space": format!("{}MiB", self.memtable_space_mib()),
            "memtable_offheap_space": format!("{}MiB", self.memtable_space_mib()),
            "memtable_flush_writers": self.threads,
            "memtable_cleanup_threshold": 0.5,
            "concurrent_compactors": self.threads,
            "compaction_throughput": "0MiB/s",
            // Caches of rows, keys and chunks: none, so that there is nothing that opening anew
            // would empty.
            "key_cache_size": "0MiB",
            "row_cache_size": "0MiB",
            "counter_cache_size": "0MiB",
            "file_cache_enabled": false,
            "hinted_handoff_enabled": false,
            "auto_snapshot": false,
            "snapshot_before_compaction": false,
            "incremental_backups": false,
            "batch_size_warn_threshold": "16MiB",
            "batch_size_fail_threshold": "16MiB",
            "commitlog_segment_size": "64MiB",
        });
        let timeouts =
            ["request", "read_request", "range_request", "write_request", "truncate_request"];
        if let Value::Object(keys) = &mut yaml {
            keys.extend(commit_log(self.durability));
            for timeout in timeouts {
                keys.insert(format!("{timeout}_timeout"), json!(format!("{TIMEOUT_S}s")));
            }
        }
        format!("{yaml:#}\n")
    }
}

/// When the commit log is synced. Without a sync before the answer its rows are in mapped segments,
/// but a replay ends at the last mark, and marks are made now and then: a killed node has lost the
/// rows behind it.
fn commit_log(durability: DurabilityMode) -> serde_json::Map<String, Value> {
    let keys = match durability {
        DurabilityMode::Sync => json!({ "commitlog_sync": "batch" }),
        DurabilityMode::Buffered | DurabilityMode::None => {
            json!({ "commitlog_sync": "periodic", "commitlog_sync_period": "10000ms" })
        }
    };
    keys.as_object().cloned().unwrap_or_default()
}

/// Ports of this machine that a node listens on.
#[derive(Clone, Copy, Debug)]
pub struct Ports {
    /// For other nodes, of which there are none.
    pub storage: u16,
    /// For clients.
    pub client: u16,
}

/// What the node's log has: what went wrong, and what it does at the start and at the end.
pub const LOG_CONFIGURATION: &str = "\
<configuration>
  <appender name=\"LOG\" class=\"ch.qos.logback.core.ConsoleAppender\">
    <target>System.err</target>
    <encoder><pattern>%date %level %logger{0} %msg%n</pattern></encoder>
  </appender>
  <root level=\"WARN\"><appender-ref ref=\"LOG\"/></root>
</configuration>
";

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(codec: Codec, block_bytes: u64) -> EngineSettings {
        EngineSettings { codec_bottom: codec, block_bytes, ..EngineSettings::small() }
    }

    fn refused(settings: &EngineSettings) -> String {
        Configuration::new(settings).expect_err("is refused").to_string()
    }

    #[test]
    fn a_table_has_the_codec_in_the_chunk() {
        let table = |codec, kib: u64| {
            let configuration = Configuration::new(&settings(codec, kib << 10)).expect("fits");
            let [_, table] = configuration.statements().expect("fits");
            let (_, rest) = table.split_once("WITH compression = ").expect("is there");
            rest.split_once(" AND").expect("goes on").0.to_owned()
        };
        assert_eq!(table(Codec::NONE, 3), "{'enabled': 'false'}");
        let lz4 = "{'class': 'LZ4Compressor', 'chunk_length_in_kb': '4'}";
        assert_eq!(table(Codec::LZ4, 4), lz4);
        assert!(table(Codec::lz4(9), 4).contains("'lz4_high_compressor_level': '9'"));
        assert!(table(Codec::zlib(6), 64).contains("Deflate"));
        assert!(table(Codec::SNAPPY, 64).contains("'SnappyCompressor'"));
        let zstd = table(Codec::zstd(5), 256);
        assert!(zstd.contains("'compression_level': '5', 'chunk_length_in_kb': '256'"), "{zstd}");
    }

    #[test]
    fn what_a_node_cannot_do_is_refused() {
        for codec in [Codec::zlib(9), Codec::lz4(-1), Codec::zstd(-5), Codec::libdeflate(6)] {
            let error = refused(&settings(codec, 4096));
            assert!(error.starts_with(&format!("cassandra has no codec {codec}; ")), "{error}");
        }
        for bytes in [0_u64, 1000, 3 << 10, 8 << 20, 4097] {
            let error = refused(&settings(Codec::LZ4, bytes));
            assert!(error.starts_with("cassandra has no chunks of"), "{error}");
        }
        let direct = EngineSettings { direct_reads: true, ..settings(Codec::LZ4, 4096) };
        assert_eq!(refused(&direct), "cassandra has no direct reads");
        let large = EngineSettings { memtable_bytes: 8 << 30, ..settings(Codec::LZ4, 4096) };
        assert!(refused(&large).contains("in a heap of"), "{}", refused(&large));
        let endless = EngineSettings { memtable_bytes: u64::MAX, ..settings(Codec::LZ4, 4096) };
        assert!(refused(&endless).contains("in a heap of"));
        let option = [("x".to_owned(), "y".to_owned())].into();
        let option = EngineSettings { options: option, ..settings(Codec::LZ4, 4096) };
        assert!(refused(&option).contains("has no option \"x\""));
    }

    #[test]
    fn the_node_listens_on_loopback_and_flushes_with_the_codec() {
        let yaml = |durability| {
            let settings = EngineSettings { durability, ..settings(Codec::LZ4, 4096) };
            let configuration = Configuration::new(&settings).expect("fits");
            let home = Path::new("/a \"quoted\": place");
            let text = configuration.yaml(home, Ports { storage: 1, client: 2 });
            serde_json::from_str::<Value>(&text).expect("is JSON")
        };
        let buffered = yaml(DurabilityMode::Buffered);
        assert_eq!(buffered["listen_address"], "127.0.0.1");
        assert_eq!(buffered["rpc_address"], "127.0.0.1");
        assert_eq!(
            (&buffered["storage_port"], &buffered["native_transport_port"]),
            (&json!(1), &json!(2))
        );
        assert_eq!(buffered["data_file_directories"][0], "/a \"quoted\": place/data");
        assert_eq!(buffered["flush_compression"], "table");
        assert_eq!(buffered["commitlog_sync"], "periodic");
        let sync = yaml(DurabilityMode::Sync);
        assert_eq!(
            (&sync["commitlog_sync"], sync.get("commitlog_sync_period")),
            (&json!("batch"), None)
        );
        let none =
            EngineSettings { durability: DurabilityMode::None, ..settings(Codec::LZ4, 4096) };
        let [keyspace, _] = Configuration::new(&none).expect("fits").statements().expect("fits");
        assert!(keyspace.ends_with("durable_writes = false"), "{keyspace}");
    }
}
