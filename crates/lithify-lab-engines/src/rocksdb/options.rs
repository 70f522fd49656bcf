//! The settings that engines share, as options of RocksDB.
//!
//! Owns: every option that is set, each with its reason. What is not set here stays as RocksDB
//! ships it. `docs/engines.md` tells a reader the same.

#![expect(unsafe_code, reason = "options of a C library are set by calling it")]

use std::ffi::{c_int, c_uchar};

use lithify_lab::adapter::settings::DurabilityMode;
use lithify_lab::adapter::settings::EngineSettings;
use lithify_lab::adapter::{EngineError, EngineResult, SpaceSpec};
use lithify_lab::meter::machine::allocator_in_force;
use serde_json::json;

use super::functions::{self as raw, Functions};
use super::policy::{LEVELS, NativeCodec, Policy};
use super::tuning::{LEVEL0_TRIGGER, Sizes, Tuning};
use crate::library::Owned;

/// Bits of the filter per key, as Lithify's default.
const FILTER_BITS_PER_KEY: f64 = 10.0;

/// Written data go to the device in strides of this size, as Lithify's.
const SYNC_STRIDE_BYTES: u64 = 1 << 20;

/// More log than this makes a family flush, as Lithify's default.
const WAL_BYTES_MAX: u64 = 256 << 20;

/// How long a lock is waited for, as Lithify's default.
const LOCK_TIMEOUT_MS: i64 = 1000;

/// What is chosen beside the settings that engines share.
#[derive(Clone, Copy, Debug)]
pub struct Mode {
    /// Sessions will begin transactions.
    pub transactions: bool,
    /// Writers that wait for the leader of their group yield in a loop before they sleep.
    pub adaptive_yield: bool,
    /// Who chose the rest.
    pub tuning: Tuning,
}

/// Points in a block are found by a hash beside the binary search (`kDataBlockBinaryAndHash`), with
/// entries so full: RocksDB's default ratio.
const BINARY_AND_HASH: c_int = 1;
const HASH_RATIO: f64 = 0.75;

/// All index and filter blocks stay in the cache while their table is open (`PinningTier::kAll`).
const PIN_ALL: c_int = 3;

/// All option objects of a database. They live as long as it does.
pub struct DatabaseOptions {
    /// Of the database; holds its counters.
    pub database: Owned<raw::Options>,
    /// Of the families in the order of their spaces, and of the library's own one at the end.
    pub families: Vec<Owned<raw::Options>>,
    /// Of every write.
    pub write: Owned<raw::WriteOptions>,
    /// Of the locks.
    pub transactions: Owned<raw::TransactionDbOptions>,
    /// Of a transaction.
    pub transaction: Owned<raw::TransactionOptions>,
    memory: Memory,
    mode: Mode,
    sizes: Sizes,
    functions: &'static Functions,
}

/// The memory of the engine: one cache, in which memtables are charged where the library can.
struct Memory {
    cache: Owned<raw::Cache>,
    cache_kind: &'static str,
    cache_bytes: u64,
    buffers: Option<Owned<raw::WriteBufferManager>>,
}

impl Memory {
    fn new(
        functions: &Functions,
        settings: &EngineSettings,
        sizes: &Sizes,
    ) -> EngineResult<Memory> {
        let budget_bytes = settings.memory_budget_bytes;
        let manager = functions
            .write_buffer_manager_create_with_cache
            .zip(functions.write_buffer_manager_destroy);
        // Without a charge for memtables the cache has to leave room for them.
        let memtables_bytes = sizes.write_buffer_bytes * 2;
        let cache_bytes = match manager {
            Some(_) => budget_bytes,
            None => budget_bytes.saturating_sub(memtables_bytes).max(budget_bytes / 2),
        };
        // The kind that newer versions make by default; entries are estimated by the library.
        let (cache, cache_kind) = match functions.cache_create_hyper_clock {
            // SAFETY: takes numbers, gives an object of ours.
            Some(create) => (unsafe { create(cache_bytes as usize, 0) }, "hyper clock"),
            // SAFETY: as above.
            None => (unsafe { (functions.cache_create_lru)(cache_bytes as usize) }, "lru"),
        };
        // SAFETY: made by the call above.
        let cache = unsafe { Owned::new(cache, functions.cache_destroy) }?;
        let buffers = match manager {
            // SAFETY: the cache is live, and the manager shares its ownership from then on.
            // Memtables may have half of the budget, as Lithify's; writers are not stopped for it.
            Some((create, destroy)) => Some(unsafe {
                Owned::new(create((budget_bytes / 2) as usize, cache.get(), false), destroy)
            }?),
            None => None,
        };
        Ok(Memory { cache, cache_kind, cache_bytes, buffers })
    }
}

impl DatabaseOptions {
    /// The options for a database with these spaces.
    ///
    /// # Errors
    /// Codecs that RocksDB does not have, objects that the library does not make.
    pub fn new(
        functions: &'static Functions,
        settings: &EngineSettings,
        spaces: &[SpaceSpec],
        policy: &Policy,
        mode: Mode,
    ) -> EngineResult<DatabaseOptions> {
        let sizes = Sizes::new(mode.tuning, settings);
        let memory = Memory::new(functions, settings, &sizes)?;
        let database = database_options(functions, settings, &memory, mode, &sizes)?;
        let shared = FamilyOptions { functions, settings, policy, memory: &memory, mode, sizes };
        let prefixes = spaces.iter().map(|space| space.prefix_bytes).chain([None]);
        let families =
            prefixes.map(|prefix| shared.make(prefix)).collect::<EngineResult<Vec<_>>>()?;
        if mode.transactions {
            for family in &families {
                // A database with locks keeps flushed memtables for checks that nobody here asks
                // for (transactions without snapshots); one byte lets them go.
                // SAFETY: the options are live and nobody else's yet.
                unsafe {
                    (functions.options_set_max_write_buffer_size_to_maintain)(family.get(), 1);
                }
            }
        }
        // SAFETY: each call takes nothing or numbers and gives or changes an object of ours.
        unsafe {
            let write =
                Owned::new((functions.writeoptions_create)(), functions.writeoptions_destroy)?;
            let durability = settings.durability;
            let sync = u8::from(durability == DurabilityMode::Sync);
            (functions.writeoptions_set_sync)(write.get(), sync);
            let without_log = c_int::from(durability == DurabilityMode::None);
            (functions.writeoptions_disable_WAL)(write.get(), without_log);
            let transactions = Owned::new(
                (functions.transactiondb_options_create)(),
                functions.transactiondb_options_destroy,
            )?;
            let locks = transactions.get();
            (functions.transactiondb_options_set_transaction_lock_timeout)(locks, LOCK_TIMEOUT_MS);
            (functions.transactiondb_options_set_default_lock_timeout)(locks, LOCK_TIMEOUT_MS);
            let transaction = Owned::new(
                (functions.transaction_options_create)(),
                functions.transaction_options_destroy,
            )?;
            Ok(DatabaseOptions {
                database,
                families,
                write,
                transactions,
                transaction,
                memory,
                mode,
                sizes,
                functions,
            })
        }
    }

    /// Size of the cache, bytes.
    pub fn cache_bytes(&self) -> u64 {
        self.memory.cache_bytes
    }

    /// Bytes in the cache, the charge for memtables included.
    pub fn cache_usage_bytes(&self) -> u64 {
        // SAFETY: the cache is live.
        unsafe { (self.functions.cache_get_usage)(self.memory.cache.get()) as u64 }
    }

    /// Bytes of all memtables, where the library counts them.
    pub fn memtable_bytes(&self) -> Option<u64> {
        let usage = self.functions.write_buffer_manager_memory_usage?;
        let buffers = self.memory.buffers.as_ref()?;
        // SAFETY: the manager is live.
        Some(unsafe { usage(buffers.get()) } as u64)
    }

    /// What matters of them, for the raw results. The database's own list is in its directory.
    pub fn describe(&self, settings: &EngineSettings, policy: &Policy) -> serde_json::Value {
        let Sizes { write_buffer_bytes, write_buffers_max, table_bytes, .. } = self.sizes;
        let is_expert = self.mode.tuning == Tuning::Expert;
        json!({
            "tuning": if is_expert { "as RocksDB's experts set it" } else { "matched with Lithify" },
            "cache": self.memory.cache_kind,
            "cache_bytes": self.memory.cache_bytes,
            "memtables_charged_to_cache": self.memory.buffers.is_some(),
            "index_and_filter_in_cache": true,
            "pin_l0_filter_and_index": true,
            "pin_all_filter_and_index": is_expert,
            "data_block_index": match is_expert {
                true => format!("binary search and hash, ratio {HASH_RATIO}"),
                false => "binary search".to_owned(),
            },
            "filter_bits_per_key": FILTER_BITS_PER_KEY,
            "write_buffer_size": write_buffer_bytes,
            "max_write_buffer_number": write_buffers_max,
            "target_file_size_base": table_bytes,
            "max_bytes_for_level_base": self.sizes.base_level_bytes,
            "max_bytes_for_level_multiplier": settings.fanout,
            "level0_file_num_compaction_trigger": LEVEL0_TRIGGER,
            "block_size": settings.block_bytes,
            "max_background_jobs": self.sizes.background_jobs,
            "max_subcompactions": self.sizes.subcompactions,
            "bytes_per_sync": SYNC_STRIDE_BYTES,
            "wal_bytes_per_sync": SYNC_STRIDE_BYTES,
            "max_total_wal_size": WAL_BYTES_MAX,
            "lock_timeout_ms": LOCK_TIMEOUT_MS,
            "level_compaction_dynamic_level_bytes": true,
            "use_direct_reads": settings.direct_reads,
            "enable_write_thread_adaptive_yield": self.mode.adaptive_yield,
            "checksum": "the version's default (xxh3)",
            "format_version": "the version's default",
            "statistics": if is_expert { "off" } else { "on, at the version's default level" },
            "allocator": allocator_in_force(),
            "compression_at_base_level_5": policy.per_level_text(LEVELS - 2),
            "durability": settings.durability.name(),
        })
    }

    /// True when the library counts at all.
    pub fn has_statistics(&self) -> bool {
        self.mode.tuning == Tuning::Matched
    }
}

fn database_options(
    functions: &Functions,
    settings: &EngineSettings,
    memory: &Memory,
    mode: Mode,
    sizes: &Sizes,
) -> EngineResult<Owned<raw::Options>> {
    // SAFETY: every call takes numbers or live objects; what is lent to an option is shared by
    // the library from then on.
    unsafe {
        let options = Owned::new((functions.options_create)(), functions.options_destroy)?;
        let object = options.get();
        (functions.options_set_create_if_missing)(object, 1);
        (functions.options_set_create_missing_column_families)(object, 1);
        if mode.tuning == Tuning::Matched {
            // Lithify always counts, and so does this one.
            (functions.options_enable_statistics)(object);
        }
        // Statistics are asked for; nobody reads them in the log.
        (functions.options_set_stats_dump_period_sec)(object, 0);
        (functions.options_set_max_background_jobs)(object, sizes.background_jobs as c_int);
        (functions.options_set_max_subcompactions)(object, sizes.subcompactions as u32);
        (functions.options_set_bytes_per_sync)(object, SYNC_STRIDE_BYTES);
        (functions.options_set_wal_bytes_per_sync)(object, SYNC_STRIDE_BYTES);
        (functions.options_set_max_total_wal_size)(object, WAL_BYTES_MAX);
        let set_yield = functions.options_set_enable_write_thread_adaptive_yield;
        set_yield(object, c_uchar::from(mode.adaptive_yield));
        (functions.options_set_use_direct_reads)(object, c_uchar::from(settings.direct_reads));
        if let (Some(set), Some(buffers)) =
            (functions.options_set_write_buffer_manager, &memory.buffers)
        {
            set(object, buffers.get());
        }
        Ok(options)
    }
}

/// What the effort of a codec without one is set to: the library's own default.
const DEFAULT_EFFORT: c_int = 32_767;

/// The largest window of zlib, as zlib's default, in raw streams.
const ZLIB_WINDOW_BITS: c_int = -15;

/// What the options of all families are made from.
struct FamilyOptions<'a> {
    functions: &'a Functions,
    settings: &'a EngineSettings,
    policy: &'a Policy,
    memory: &'a Memory,
    mode: Mode,
    sizes: Sizes,
}

impl FamilyOptions<'_> {
    /// The options of one family.
    fn make(&self, prefix_bytes: Option<usize>) -> EngineResult<Owned<raw::Options>> {
        let FamilyOptions { functions, settings, sizes, .. } = self;
        // SAFETY: every call takes numbers or live objects; the slice transform is given away, and
        // what the tables' options hold is shared by the library from then on.
        unsafe {
            let options = Owned::new((functions.options_create)(), functions.options_destroy)?;
            let object = options.get();
            (functions.options_set_write_buffer_size)(object, sizes.write_buffer_bytes as usize);
            let write_buffers = sizes.write_buffers_max as c_int;
            (functions.options_set_max_write_buffer_number)(object, write_buffers);
            (functions.options_set_num_levels)(object, LEVELS as c_int);
            (functions.options_set_level_compaction_dynamic_level_bytes)(object, 1);
            (functions.options_set_target_file_size_base)(object, sizes.table_bytes);
            (functions.options_set_max_bytes_for_level_base)(object, sizes.base_level_bytes);
            let fanout = settings.fanout as f64;
            (functions.options_set_max_bytes_for_level_multiplier)(object, fanout);
            self.set_codecs(object);
            if let Some(prefix_bytes) = prefix_bytes {
                let transform = (functions.slicetransform_create_fixed_prefix)(prefix_bytes);
                (functions.options_set_prefix_extractor)(object, transform);
            }
            let tables = self.tables()?;
            (functions.options_set_block_based_table_factory)(object, tables.get());
            Ok(options)
        }
    }

    /// # Safety
    /// `object` is a live object of options.
    unsafe fn set_codecs(&self, object: *mut raw::Options) {
        let FamilyOptions { functions, policy, .. } = self;
        // An empty tree has its base level at the bottom.
        let codecs = policy.per_level(LEVELS - 1);
        let numbers: Vec<c_int> = codecs.iter().map(|codec: &NativeCodec| codec.number).collect();
        let upper = policy.upper_effort().unwrap_or(DEFAULT_EFFORT);
        let bottom = policy.bottom.effort.unwrap_or(DEFAULT_EFFORT);
        // SAFETY: the object is live, and the list of codecs is copied.
        unsafe {
            (functions.options_set_compression_per_level)(object, numbers.as_ptr(), numbers.len());
            (functions.options_set_compression_options)(object, ZLIB_WINDOW_BITS, upper, 0, 0);
            (functions.options_set_bottommost_compression)(object, policy.bottom.number);
            let set = functions.options_set_bottommost_compression_options;
            set(object, ZLIB_WINDOW_BITS, bottom, 0, 0, 1);
        }
    }

    /// The options of tables.
    fn tables(&self) -> EngineResult<Owned<raw::BlockOptions>> {
        let FamilyOptions { functions, settings, memory, .. } = self;
        // SAFETY: every call takes numbers or live objects; the filter policy is given away, the
        // cache is shared.
        unsafe {
            let blocks = Owned::new(
                (functions.block_based_options_create)(),
                functions.block_based_options_destroy,
            )?;
            let tables = blocks.get();
            (functions.block_based_options_set_block_size)(tables, settings.block_bytes as usize);
            (functions.block_based_options_set_block_cache)(tables, memory.cache.get());
            (functions.block_based_options_set_cache_index_and_filter_blocks)(tables, 1);
            (functions.block_based_options_set_pin_l0_filter_and_index_blocks_in_cache)(tables, 1);
            let filter = (functions.filterpolicy_create_bloom_full)(FILTER_BITS_PER_KEY);
            (functions.block_based_options_set_filter_policy)(tables, filter);
            if self.mode.tuning == Tuning::Expert {
                let (Some(set_index), Some(set_ratio), Some(set_pinning)) = (
                    functions.block_based_options_set_data_block_index_type,
                    functions.block_based_options_set_data_block_hash_ratio,
                    functions.block_based_options_set_unpartitioned_pinning_tier,
                ) else {
                    return Err(EngineError::fatal(
                        "this version of RocksDB cannot be set as its experts set it: its C \
                         interface has no hash index or no pinning; take the engine \"rocksdb\"",
                    ));
                };
                set_index(tables, BINARY_AND_HASH);
                set_ratio(tables, HASH_RATIO);
                set_pinning(tables, PIN_ALL);
            }
            Ok(blocks)
        }
    }
}

/// Options of reads: of points, of scans within one prefix, and of scans over everything.
pub struct ReadView {
    /// Of point reads.
    pub(super) point: Owned<raw::ReadOptions>,
    /// Of scans of rows that share the prefix that filters hold.
    pub(super) prefix: Owned<raw::ReadOptions>,
    /// Of all other scans.
    pub(super) total: Owned<raw::ReadOptions>,
    /// The end of the current scan: scan options point here.
    pub(super) bound: Vec<u8>,
}

impl ReadView {
    pub(super) fn new(functions: &Functions) -> EngineResult<ReadView> {
        // SAFETY: takes nothing, gives an object of ours.
        let make = || unsafe {
            Owned::new((functions.readoptions_create)(), functions.readoptions_destroy)
        };
        let view = ReadView { point: make()?, prefix: make()?, total: make()?, bound: Vec::new() };
        // SAFETY: the objects are live and nobody else's.
        unsafe {
            (functions.readoptions_set_prefix_same_as_start)(view.prefix.get(), 1);
            (functions.readoptions_set_total_order_seek)(view.total.get(), 1);
        }
        Ok(view)
    }
}
