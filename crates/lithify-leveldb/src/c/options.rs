//! Options of databases, reads and writes; caches and environments.

#![expect(unsafe_code, reason = "names that go to C")]

use super::callbacks::{ComparatorHandle, FilterPolicyHandle};
use super::database::SnapshotHandle;
use super::{exported, quietly};
use crate::directory;
use crate::settings::Settings;
use lithify_ffi::memory;
use std::ffi::{c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::ptr::null;

/// `leveldb_readoptions_t`
pub struct ReadOptions {
    /// NULL for the present.
    pub snapshot: *const SnapshotHandle,
}

/// `leveldb_writeoptions_t`
#[derive(Default)]
pub struct WriteOptions {
    /// A write is durable before it is acknowledged.
    pub is_synced: bool,
}

/// `leveldb_cache_t`: memory that a database may use for blocks.
pub struct Cache {
    bytes: usize,
}

/// `leveldb_env_t`: the system, which is the only one there is.
pub struct Environment {
    _is_default: bool,
}

/// Changes options.
fn set(options: Option<&mut Settings>, change: impl FnOnce(&mut Settings)) {
    quietly(|| options.map(change));
}

fn note(options: Option<&mut Settings>, name: &'static str, value: i64) {
    set(options, |settings| {
        settings.without_effect.insert(name, value);
    });
}

exported! {
    /// Options with LevelDB's defaults.
    fn leveldb_options_create() -> Option<Box<Settings>> {
        quietly(|| Some(Some(Box::default())))
    }

    /// Ends options.
    fn leveldb_options_destroy(options: Option<Box<Settings>>) {
        drop(options);
    }

    /// The comparator; NULL for the bytewise one.
    fn leveldb_options_set_comparator(
        options: Option<&mut Settings>,
        comparator: Option<&ComparatorHandle>,
    ) {
        set(options, |settings| settings.order = comparator.map(ComparatorHandle::order));
    }

    /// The filter policy; NULL for none set.
    fn leveldb_options_set_filter_policy(
        options: Option<&mut Settings>,
        policy: Option<&FilterPolicyHandle>,
    ) {
        set(options, |settings| settings.filter = policy.map(FilterPolicyHandle::filter));
    }

    /// A database that is not there is made.
    fn leveldb_options_set_create_if_missing(options: Option<&mut Settings>, value: u8) {
        set(options, |settings| settings.create_if_missing = value != 0);
    }

    /// A database that is there is refused.
    fn leveldb_options_set_error_if_exists(options: Option<&mut Settings>, value: u8) {
        set(options, |settings| settings.error_if_exists = value != 0);
    }

    /// Without effect: everything that is read is checked.
    fn leveldb_options_set_paranoid_checks(options: Option<&mut Settings>, value: u8) {
        note(options, "paranoid_checks", i64::from(value));
    }

    /// Without effect: there is one environment.
    fn leveldb_options_set_env(_options: Option<&mut Settings>, _environment: *const c_void) {}

    /// Without effect: the interface has no logger that it could be.
    fn leveldb_options_set_info_log(_options: Option<&mut Settings>, _logger: *const c_void) {}

    /// A memtable of this size is flushed.
    fn leveldb_options_set_write_buffer_size(options: Option<&mut Settings>, bytes: usize) {
        set(options, |settings| settings.write_buffer_bytes = Some(bytes));
    }

    /// Without effect: tables stay open.
    fn leveldb_options_set_max_open_files(options: Option<&mut Settings>, count: c_int) {
        note(options, "max_open_files", i64::from(count));
    }

    /// Memory for blocks: so much of it, not shared with other databases; NULL for none set.
    fn leveldb_options_set_cache(options: Option<&mut Settings>, cache: Option<&Cache>) {
        set(options, |settings| settings.cache_bytes = cache.map(|cache| cache.bytes));
    }

    /// A data block before compression.
    fn leveldb_options_set_block_size(options: Option<&mut Settings>, bytes: usize) {
        set(options, |settings| settings.block_bytes = Some(bytes));
    }

    /// Without effect: blocks are laid out otherwise.
    fn leveldb_options_set_block_restart_interval(options: Option<&mut Settings>, count: c_int) {
        note(options, "block_restart_interval", i64::from(count));
    }

    /// Tables are cut at this size.
    fn leveldb_options_set_max_file_size(options: Option<&mut Settings>, bytes: usize) {
        set(options, |settings| settings.table_bytes = Some(bytes));
    }

    /// 0 is none; any other number is compression, by the codecs that the database has for it.
    fn leveldb_options_set_compression(options: Option<&mut Settings>, compression: c_int) {
        set(options, |settings| settings.is_compressed = Some(compression != 0));
    }

    /// Reads of the present.
    fn leveldb_readoptions_create() -> Option<Box<ReadOptions>> {
        quietly(|| Some(Some(Box::new(ReadOptions { snapshot: null() }))))
    }

    /// Ends options of reads.
    fn leveldb_readoptions_destroy(options: Option<Box<ReadOptions>>) {
        drop(options);
    }

    /// Without effect: everything that is read is checked.
    fn leveldb_readoptions_set_verify_checksums(_options: Option<&mut ReadOptions>, _value: u8) {}

    /// Without effect: the cache resists scans by itself.
    fn leveldb_readoptions_set_fill_cache(_options: Option<&mut ReadOptions>, _value: u8) {}

    /// Reads of a snapshot; NULL for the present.
    fn leveldb_readoptions_set_snapshot(
        options: Option<&mut ReadOptions>,
        snapshot: *const SnapshotHandle,
    ) {
        if let Some(options) = options {
            options.snapshot = snapshot;
        }
    }

    /// Writes that survive the process.
    fn leveldb_writeoptions_create() -> Option<Box<WriteOptions>> {
        quietly(|| Some(Some(Box::default())))
    }

    /// Ends options of writes.
    fn leveldb_writeoptions_destroy(options: Option<Box<WriteOptions>>) {
        drop(options);
    }

    /// Writes that survive the machine.
    fn leveldb_writeoptions_set_sync(options: Option<&mut WriteOptions>, value: u8) {
        if let Some(options) = options {
            options.is_synced = value != 0;
        }
    }

    /// A cache of so many bytes.
    fn leveldb_cache_create_lru(bytes: usize) -> Option<Box<Cache>> {
        quietly(|| Some(Some(Box::new(Cache { bytes }))))
    }

    /// Ends a cache.
    fn leveldb_cache_destroy(cache: Option<Box<Cache>>) {
        drop(cache);
    }

    /// The environment.
    fn leveldb_create_default_env() -> Option<Box<Environment>> {
        quietly(|| Some(Some(Box::new(Environment { _is_default: true }))))
    }

    /// Gives the environment back.
    fn leveldb_env_destroy(environment: Option<Box<Environment>>) {
        drop(environment);
    }

    /// A directory for tests, which is there afterwards; the caller frees its path. NULL if it cannot be
    /// made.
    fn leveldb_env_get_test_directory(environment: Option<&Environment>) -> *mut c_char {
        quietly(|| {
            environment?;
            Some(memory::copy(directory::for_tests()?.as_os_str().as_bytes()))
        })
    }
}
