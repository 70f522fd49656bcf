//! The C functions of LevelDB that are used, found by name in a shared library.
//!
//! Owns: their types, declared by hand after the library's documented C interface.
//!
//! Calling any of them is unsafe: `database` proves each call.

#![expect(unsafe_code, reason = "symbols of a library that is loaded while the program runs")]

use std::ffi::{c_char, c_int, c_void};

use lithify_lab::adapter::{EngineError, EngineResult};

use crate::library::{functions, opaque};

opaque! {
    Batch Cache Db FilterPolicy Iter Options ReadOptions Snapshot WriteOptions
}

/// Where a function leaves the text of its error; null when there is none.
pub type ErrorText = *mut *mut c_char;

functions! {
    prefix "leveldb_";
    required {
        approximate_sizes(*mut Db, c_int, *const *const u8, *const usize, *const *const u8,
            *const usize, *mut u64);
        cache_create_lru(usize) -> *mut Cache;
        cache_destroy(*mut Cache);
        close(*mut Db);
        compact_range(*mut Db, *const u8, usize, *const u8, usize);
        create_iterator(*mut Db, *const ReadOptions) -> *mut Iter;
        create_snapshot(*mut Db) -> *const Snapshot;
        filterpolicy_create_bloom(c_int) -> *mut FilterPolicy;
        filterpolicy_destroy(*mut FilterPolicy);
        free(*mut c_void);
        get(*mut Db, *const ReadOptions, *const u8, usize, *mut usize, ErrorText) -> *mut u8;
        iter_destroy(*mut Iter);
        iter_get_error(*const Iter, ErrorText);
        iter_key(*const Iter, *mut usize) -> *const u8;
        iter_next(*mut Iter);
        iter_prev(*mut Iter);
        iter_seek(*mut Iter, *const u8, usize);
        iter_seek_to_last(*mut Iter);
        iter_valid(*const Iter) -> u8;
        iter_value(*const Iter, *mut usize) -> *const u8;
        major_version() -> c_int;
        minor_version() -> c_int;
        open(*const Options, *const c_char, ErrorText) -> *mut Db;
        options_create() -> *mut Options;
        options_destroy(*mut Options);
        options_set_block_size(*mut Options, usize);
        options_set_cache(*mut Options, *mut Cache);
        options_set_compression(*mut Options, c_int);
        options_set_create_if_missing(*mut Options, u8);
        options_set_filter_policy(*mut Options, *mut FilterPolicy);
        options_set_max_file_size(*mut Options, usize);
        options_set_write_buffer_size(*mut Options, usize);
        property_value(*mut Db, *const c_char) -> *mut c_char;
        readoptions_create() -> *mut ReadOptions;
        readoptions_destroy(*mut ReadOptions);
        readoptions_set_snapshot(*mut ReadOptions, *const Snapshot);
        readoptions_set_verify_checksums(*mut ReadOptions, u8);
        release_snapshot(*mut Db, *const Snapshot);
        write(*mut Db, *const WriteOptions, *mut Batch, ErrorText);
        writebatch_clear(*mut Batch);
        writebatch_create() -> *mut Batch;
        writebatch_delete(*mut Batch, *const u8, usize);
        writebatch_destroy(*mut Batch);
        writebatch_put(*mut Batch, *const u8, usize, *const u8, usize);
        writeoptions_create() -> *mut WriteOptions;
        writeoptions_destroy(*mut WriteOptions);
        writeoptions_set_sync(*mut WriteOptions, u8);
    }
    optional {}
}
