//! The functions of `flat.c`, found by name in the library that the setup builds with it.
//!
//! Owns: their types. Calling any of them is unsafe: `connection` and `cursors` prove each call.

#![expect(unsafe_code, reason = "symbols of a library that is loaded while the program runs")]

use std::ffi::{c_char, c_int, c_void};

use lithify_lab::adapter::{EngineError, EngineResult};

use crate::library::{functions, opaque};

/// Version of the functions that are declared here: `FLAT_VERSION` of `flat.c`.
pub const FLAT_VERSION: c_int = 2;

/// What a call returns: done.
pub const OK: c_int = 0;
/// There is no such row, or no further one.
pub const NOT_FOUND: c_int = 1;
/// A conflict: the transaction may be tried again.
pub const RETRY: c_int = 2;

opaque! { Connection Session }

/// Takes a name and a number.
pub type Each = unsafe extern "C" fn(*mut c_void, *const c_char, i64);

functions! {
    prefix "flat_";
    required {
        begin(*mut Session) -> c_int;
        checkpoint(*mut Connection) -> c_int;
        close(*mut Connection) -> c_int;
        codec_version(*const c_char) -> *const c_char;
        commit(*mut Session) -> c_int;
        create(*mut Connection, *const c_char, *const c_char) -> c_int;
        get(*mut Session, usize, *const u8, usize, *mut *const u8, *mut usize) -> c_int;
        library_version() -> *const c_char;
        message() -> *const c_char;
        metadata(*mut Connection, *const c_char, Each, *mut c_void) -> c_int;
        next(*mut Session, usize) -> c_int;
        open(*const c_char, *const c_char, *mut *mut Connection) -> c_int;
        prev(*mut Session, usize) -> c_int;
        put(*mut Session, usize, *const u8, usize, *const u8, usize) -> c_int;
        remove(*mut Session, usize, *const u8, usize) -> c_int;
        reserve(*mut Session, usize, *const u8, usize, *mut *const u8, *mut usize) -> c_int;
        reset(*mut Session, usize) -> c_int;
        rollback(*mut Session) -> c_int;
        row(*mut Session, usize, *mut *const u8, *mut usize, *mut *const u8, *mut usize) -> c_int;
        seek(*mut Session, usize, *const u8, usize) -> c_int;
        seek_back(*mut Session, usize, *const u8, usize) -> c_int;
        session_close(*mut Session);
        session_open(*mut Connection, *const *const c_char, usize, *mut *mut Session) -> c_int;
        statistics(*mut Connection, *const c_char, Each, *mut c_void) -> c_int;
        version() -> c_int;
    }
    optional {}
}
