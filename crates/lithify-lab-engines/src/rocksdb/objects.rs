//! Objects of the library with an owner: freed once, when it goes.
//!
//! Owns: [`Owned`], and texts and errors that the library hands over. Promises: an object is
//! destroyed by the function that belongs to it, and a text of the library is copied and freed.

#![expect(unsafe_code, reason = "objects of a C library are freed by calling it")]

use std::ffi::{CStr, c_char};
use std::ptr::{self, NonNull};

use lithify_lab::adapter::{EngineError, EngineResult};

use super::functions::Functions;

/// An object of the library, destroyed when dropped.
pub struct Owned<T> {
    object: NonNull<T>,
    destroy: unsafe extern "C" fn(*mut T),
}

// SAFETY: the library's objects are bound to no thread. Those that are shared here (options, read
// and write options, caches) are only read by the calls that they are lent to.
unsafe impl<T> Send for Owned<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Owned<T> {}

impl<T> Owned<T> {
    /// Takes an object over.
    ///
    /// # Errors
    /// The library gave none.
    ///
    /// # Safety
    /// `object` is null or belongs to the caller alone, and `destroy` is the function of the
    /// library that frees such objects.
    pub unsafe fn new(
        object: *mut T,
        destroy: unsafe extern "C" fn(*mut T),
    ) -> EngineResult<Owned<T>> {
        match NonNull::new(object) {
            Some(object) => Ok(Owned { object, destroy }),
            None => Err(EngineError::fatal("the library of RocksDB made no object")),
        }
    }

    /// The object, to lend it to a call.
    pub fn get(&self) -> *mut T {
        self.object.as_ptr()
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: `new` was promised a live object of its own and the function that frees it;
        // it is freed here and nowhere else.
        unsafe { (self.destroy)(self.object.as_ptr()) }
    }
}

/// Copies and frees a text of the library; `None` for null.
///
/// # Safety
/// `text` is null or a text that the library handed over, not freed yet.
pub unsafe fn take_text(functions: &Functions, text: *mut c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: a text of the library ends with a zero byte, and is ours until it is freed below.
    let copy = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
    // SAFETY: handed over by the library and freed once; the copy does not point into it.
    unsafe { (functions.free)(text.cast()) };
    Some(copy)
}

/// Makes a call that may leave an error.
///
/// # Errors
/// What the library says; retryable when another try may succeed.
pub fn checked<R>(
    functions: &Functions,
    call: impl FnOnce(*mut *mut c_char) -> R,
) -> EngineResult<R> {
    let mut text: *mut c_char = ptr::null_mut();
    let result = call(&raw mut text);
    // SAFETY: the library left the place alone, which is null then, or put a text of its own there.
    match unsafe { take_text(functions, text) } {
        None => Ok(result),
        Some(text) => Err(error_of(&text)),
    }
}

/// An error by its text, which begins with the name of its kind.
pub fn error_of(text: &str) -> EngineError {
    // A lock that was not had in time, a deadlock, a conflict: the transaction may be tried again.
    const TRANSIENT: [&str; 3] = ["Operation timed out", "Resource busy", "Operation failed. Try"];
    let text_of_engine = format!("RocksDB: {text}");
    if TRANSIENT.iter().any(|kind| text.starts_with(kind)) {
        EngineError::retryable(text_of_engine)
    } else {
        EngineError::fatal(text_of_engine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_errors_may_be_tried_again() {
        assert!(error_of("Operation timed out: Timeout waiting to lock key").is_retryable());
        assert!(error_of("Resource busy: Deadlock").is_retryable());
        assert!(!error_of("IO error: No space left on device").is_retryable());
    }
}
