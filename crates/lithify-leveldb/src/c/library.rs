//! Memory and versions.

#![expect(unsafe_code, reason = "names that go to C; memory that comes back")]

use super::exported;
use lithify_ffi::memory;
use std::ffi::{c_char, c_int, c_void};

exported! {
    /// Frees what the library has handed out; NULL is allowed.
    fn leveldb_free(memory: *mut c_void) {
        // SAFETY: the caller gives back what it has from this library, which is of the C library, once.
        unsafe { memory::release(memory) }
    }

    /// The version of LevelDB whose interface this is.
    fn leveldb_major_version() -> c_int {
        1
    }

    /// The version of LevelDB whose interface this is.
    fn leveldb_minor_version() -> c_int {
        23
    }

    /// The version of Lithify, a text that lives as long as the library.
    fn lithify_leveldb_version() -> *const c_char {
        concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
    }
}
