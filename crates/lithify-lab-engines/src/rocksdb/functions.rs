//! The C functions of RocksDB that are used, found by name in a shared library.
//!
//! Owns: their types, declared by hand after the library's documented C interface. Functions that
//! older versions lack are optional; who uses them has another way.
//!
//! Calling any of them is unsafe: `objects` and `database` prove each call.

#![expect(unsafe_code, reason = "symbols of a library that is loaded while the program runs")]

use std::ffi::{c_char, c_int, c_uchar, c_uint, c_void};

use lithify_lab::adapter::{EngineError, EngineResult};

use crate::library::{functions, opaque};

opaque! {
    Batch BlockOptions Cache Db FamilyHandle FilterPolicy FlushOptions Iter LiveFiles Options
    Pinned ReadOptions SliceTransform Transaction TransactionDb TransactionDbOptions
    TransactionOptions WaitOptions WriteBufferManager WriteOptions
}

/// Where a function leaves the text of its error; null when there is none.
pub type ErrorText = *mut *mut c_char;

functions! {
    prefix "rocksdb_";
    required {
        approximate_sizes_cf(*mut Db, *mut FamilyHandle, c_int, *const *const c_char, *const usize,
            *const *const c_char, *const usize, *mut u64, ErrorText);
        batched_multi_get_cf(*mut Db, *const ReadOptions, *mut FamilyHandle, usize,
            *const *const c_char, *const usize, *mut *mut Pinned, *mut *mut c_char, bool);
        block_based_options_create() -> *mut BlockOptions;
        block_based_options_destroy(*mut BlockOptions);
        block_based_options_set_block_cache(*mut BlockOptions, *mut Cache);
        block_based_options_set_block_size(*mut BlockOptions, usize);
        block_based_options_set_cache_index_and_filter_blocks(*mut BlockOptions, c_uchar);
        block_based_options_set_filter_policy(*mut BlockOptions, *mut FilterPolicy);
        block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(
            *mut BlockOptions, c_uchar);
        cache_create_lru(usize) -> *mut Cache;
        cache_destroy(*mut Cache);
        cache_get_usage(*mut Cache) -> usize;
        close(*mut Db);
        column_family_handle_destroy(*mut FamilyHandle);
        create_iterator_cf(*mut Db, *const ReadOptions, *mut FamilyHandle) -> *mut Iter;
        filterpolicy_create_bloom_full(f64) -> *mut FilterPolicy;
        flush_cf(*mut Db, *const FlushOptions, *mut FamilyHandle, ErrorText);
        flushoptions_create() -> *mut FlushOptions;
        flushoptions_destroy(*mut FlushOptions);
        free(*mut c_void);
        get_options_from_string(*const Options, *const c_char, *mut Options, ErrorText);
        get_pinned_cf(*mut Db, *const ReadOptions, *mut FamilyHandle, *const c_char, usize,
            ErrorText) -> *mut Pinned;
        iter_destroy(*mut Iter);
        iter_get_error(*const Iter, ErrorText);
        iter_key(*const Iter, *mut usize) -> *const c_char;
        iter_next(*mut Iter);
        iter_prev(*mut Iter);
        iter_seek(*mut Iter, *const c_char, usize);
        iter_seek_to_last(*mut Iter);
        iter_seek_for_prev(*mut Iter, *const c_char, usize);
        iter_valid(*const Iter) -> c_uchar;
        iter_value(*const Iter, *mut usize) -> *const c_char;
        list_column_families(*const Options, *const c_char, *mut usize, ErrorText)
            -> *mut *mut c_char;
        list_column_families_destroy(*mut *mut c_char, usize);
        livefiles(*mut Db) -> *const LiveFiles;
        livefiles_column_family_name(*const LiveFiles, c_int) -> *const c_char;
        livefiles_count(*const LiveFiles) -> c_int;
        livefiles_destroy(*const LiveFiles);
        livefiles_level(*const LiveFiles, c_int) -> c_int;
        livefiles_name(*const LiveFiles, c_int) -> *const c_char;
        livefiles_size(*const LiveFiles, c_int) -> usize;
        open(*const Options, *const c_char, ErrorText) -> *mut Db;
        open_for_read_only_column_families(*const Options, *const c_char, c_int,
            *const *const c_char, *const *const Options, *mut *mut FamilyHandle, c_uchar,
            ErrorText) -> *mut Db;
        open_column_families(*const Options, *const c_char, c_int, *const *const c_char,
            *const *const Options, *mut *mut FamilyHandle, ErrorText) -> *mut Db;
        options_create() -> *mut Options;
        options_destroy(*mut Options);
        options_enable_statistics(*mut Options);
        options_set_block_based_table_factory(*mut Options, *mut BlockOptions);
        options_set_bottommost_compression(*mut Options, c_int);
        options_set_bottommost_compression_options(*mut Options, c_int, c_int, c_int, c_int,
            c_uchar);
        options_set_bytes_per_sync(*mut Options, u64);
        options_set_compression_options(*mut Options, c_int, c_int, c_int, c_int);
        options_set_compression_per_level(*mut Options, *const c_int, usize);
        options_set_create_if_missing(*mut Options, c_uchar);
        options_set_create_missing_column_families(*mut Options, c_uchar);
        options_set_db_log_dir(*mut Options, *const c_char);
        options_set_enable_write_thread_adaptive_yield(*mut Options, c_uchar);
        options_set_level_compaction_dynamic_level_bytes(*mut Options, c_uchar);
        options_set_max_background_jobs(*mut Options, c_int);
        options_set_max_bytes_for_level_base(*mut Options, u64);
        options_set_max_bytes_for_level_multiplier(*mut Options, f64);
        options_set_max_open_files(*mut Options, c_int);
        options_set_max_total_wal_size(*mut Options, u64);
        options_set_max_write_buffer_number(*mut Options, c_int);
        options_set_max_write_buffer_size_to_maintain(*mut Options, i64);
        options_set_num_levels(*mut Options, c_int);
        options_set_prefix_extractor(*mut Options, *mut SliceTransform);
        options_set_stats_dump_period_sec(*mut Options, c_uint);
        options_set_target_file_size_base(*mut Options, u64);
        options_set_use_direct_reads(*mut Options, c_uchar);
        options_set_max_subcompactions(*mut Options, u32);
        options_set_wal_bytes_per_sync(*mut Options, u64);
        options_set_write_buffer_size(*mut Options, usize);
        options_statistics_get_string(*mut Options) -> *mut c_char;
        pinnableslice_destroy(*mut Pinned);
        pinnableslice_value(*const Pinned, *mut usize) -> *const c_char;
        property_value_cf(*mut Db, *mut FamilyHandle, *const c_char) -> *mut c_char;
        readoptions_create() -> *mut ReadOptions;
        readoptions_destroy(*mut ReadOptions);
        readoptions_set_iterate_upper_bound(*mut ReadOptions, *const c_char, usize);
        readoptions_set_prefix_same_as_start(*mut ReadOptions, c_uchar);
        readoptions_set_total_order_seek(*mut ReadOptions, c_uchar);
        set_options_cf(*mut Db, *mut FamilyHandle, c_int, *const *const c_char,
            *const *const c_char, ErrorText);
        slicetransform_create_fixed_prefix(usize) -> *mut SliceTransform;
        transaction_begin(*mut TransactionDb, *const WriteOptions, *const TransactionOptions,
            *mut Transaction) -> *mut Transaction;
        transaction_commit(*mut Transaction, ErrorText);
        transaction_delete_cf(*mut Transaction, *mut FamilyHandle, *const c_char, usize,
            ErrorText);
        transaction_destroy(*mut Transaction);
        transaction_get_pinned_for_update_cf(*mut Transaction, *const ReadOptions,
            *mut FamilyHandle, *const c_char, usize, c_uchar, ErrorText) -> *mut Pinned;
        transaction_get_writebatch_wi(*mut Transaction) -> *mut c_void;
        transaction_options_create() -> *mut TransactionOptions;
        transaction_options_destroy(*mut TransactionOptions);
        transaction_put_cf(*mut Transaction, *mut FamilyHandle, *const c_char, usize,
            *const c_char, usize, ErrorText);
        transaction_rollback(*mut Transaction, ErrorText);
        transactiondb_close(*mut TransactionDb);
        transactiondb_open_column_families(*const Options, *const TransactionDbOptions,
            *const c_char, c_int, *const *const c_char, *const *const Options,
            *mut *mut FamilyHandle, ErrorText) -> *mut TransactionDb;
        transactiondb_options_create() -> *mut TransactionDbOptions;
        transactiondb_options_destroy(*mut TransactionDbOptions);
        transactiondb_options_set_default_lock_timeout(*mut TransactionDbOptions, i64);
        transactiondb_options_set_transaction_lock_timeout(*mut TransactionDbOptions, i64);
        transactiondb_write(*mut TransactionDb, *const WriteOptions, *mut Batch, ErrorText);
        write(*mut Db, *const WriteOptions, *mut Batch, ErrorText);
        writebatch_clear(*mut Batch);
        writebatch_create() -> *mut Batch;
        writebatch_delete_cf(*mut Batch, *mut FamilyHandle, *const c_char, usize);
        writebatch_destroy(*mut Batch);
        writebatch_put_cf(*mut Batch, *mut FamilyHandle, *const c_char, usize, *const c_char,
            usize);
        writebatch_singledelete_cf(*mut Batch, *mut FamilyHandle, *const c_char, usize);
        writebatch_wi_singledelete_cf(*mut c_void, *mut FamilyHandle, *const c_char, usize);
        writeoptions_create() -> *mut WriteOptions;
        writeoptions_destroy(*mut WriteOptions);
        writeoptions_disable_WAL(*mut WriteOptions, c_int);
        writeoptions_set_sync(*mut WriteOptions, c_uchar);
    }
    optional {
        approximate_sizes_cf_with_flags(*mut Db, *mut FamilyHandle, c_int, *const *const c_char,
            *const usize, *const *const c_char, *const usize, u8, *mut u64, ErrorText);
        block_based_options_set_data_block_hash_ratio(*mut BlockOptions, f64);
        block_based_options_set_data_block_index_type(*mut BlockOptions, c_int);
        block_based_options_set_unpartitioned_pinning_tier(*mut BlockOptions, c_int);
        cache_create_hyper_clock(usize, usize) -> *mut Cache;
        flush_cfs(*mut Db, *const FlushOptions, *mut *mut FamilyHandle, c_int, ErrorText);
        options_set_write_buffer_manager(*mut Options, *mut WriteBufferManager);
        transactiondb_close_base_db(*mut Db);
        transactiondb_get_base_db(*mut TransactionDb) -> *mut Db;
        wait_for_compact(*mut Db, *mut WaitOptions, ErrorText);
        wait_for_compact_options_create() -> *mut WaitOptions;
        wait_for_compact_options_destroy(*mut WaitOptions);
        write_buffer_manager_create_with_cache(usize, *mut Cache, bool)
            -> *mut WriteBufferManager;
        write_buffer_manager_destroy(*mut WriteBufferManager);
        write_buffer_manager_memory_usage(*mut WriteBufferManager) -> usize;
    }
}
