//! The border to C: the 68 functions by their group, and how each call is made.
//!
//! | module | functions |
//! |---|---|
//! | `database` | open databases, snapshots, whole databases |
//! | `iterator`, `batch` | iterators; write batches |
//! | `options` | options of databases, reads and writes; caches, environments |
//! | `callbacks` | comparators, filter policies |
//! | `library` | memory, versions |
//!
//! 1. A handle is a box. Functions take it as `Option<&T>`, `Option<&mut T>` or `Option<Box<T>>`, which
//!    are pointers to C, with NULL for none. That a handle is live, and used by one thread where it is
//!    `&mut`, is the caller's promise, as LevelDB's header asks it.
//! 2. NULL where a handle must be is a failure, or nothing is done where none can be told.
//! 3. No panic leaves: it becomes a failure, or nothing.
//! 4. In a child of a fork, what the parent opened is refused, and closing it does nothing.

#![expect(unsafe_code, reason = "pointers that come from C, and names that go there")]

mod batch;
mod callbacks;
mod database;
mod failures;
mod iterator;
mod library;
mod options;

use crate::status::Status;
use failures::Failures;
use lithify_ffi::arguments;
use lithify_ffi::guard::guarded;
use std::ffi::{c_char, c_void};
use std::ptr::{null, null_mut};

/// Declares functions of the interface, which no panic leaves.
macro_rules! exported {
    ($($(#[doc = $doc:literal])+
    fn $name:ident($($argument:ident: $kind:ty),* $(,)?) $(-> $answer:ty)? $body:block)+) => {$(
        $(#[doc = $doc])+
        // SAFETY: the name is one of the interface that this library is, and is declared here alone.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($argument: $kind),*) $(-> $answer)? $body
    )+};
}
use exported;

/// What a function answers that cannot do its work.
trait Nothing {
    fn nothing() -> Self;
}

impl Nothing for () {
    fn nothing() -> Self {}
}

impl Nothing for u8 {
    fn nothing() -> Self {
        0
    }
}

impl<T> Nothing for *mut T {
    fn nothing() -> Self {
        null_mut()
    }
}

impl<T> Nothing for *const T {
    fn nothing() -> Self {
        null()
    }
}

impl<T> Nothing for Option<Box<T>> {
    fn nothing() -> Self {
        None
    }
}

/// Makes a call that has no way to tell a failure.
fn quietly<T: Nothing>(call: impl FnOnce() -> Option<T>) -> T {
    guarded(call).ok().flatten().unwrap_or_else(T::nothing)
}

/// Makes a call and tells its failure.
fn telling<T: Nothing>(failures: Failures<'_>, call: impl FnOnce() -> Result<T, Status>) -> T {
    let status = match guarded(call) {
        Ok(Ok(answer)) => return answer,
        Ok(Err(status)) => status,
        Err(panic) => Status::io(panic),
    };
    failures.tell(&status);
    T::nothing()
}

/// A handle that has to be there.
fn given<T>(handle: Option<T>) -> Result<T, Status> {
    handle.ok_or_else(|| Status::invalid("a pointer that must not be NULL is"))
}

/// What belongs to the process that made it.
fn at_home<T>(value: Option<T>) -> Result<T, Status> {
    value.ok_or_else(|| {
        Status::io("opened before a fork, in the parent: a child opens the database itself")
    })
}

/// Bytes that the caller lends for the call.
///
/// # Safety
/// As [`arguments::bytes`].
unsafe fn lent<'a>(pointer: *const c_char, length: usize) -> Result<&'a [u8], Status> {
    // SAFETY: promised by the caller.
    unsafe { arguments::bytes(pointer.cast::<c_void>(), length) }
        .map_err(|refused| Status::invalid(format!("bytes of the caller: {refused:?}")))
}
