//! Texts and errors of RocksDB.
//!
//! Owns: which errors may be tried again.

#![expect(unsafe_code, reason = "texts of a C library are freed by calling it")]

use std::ffi::c_char;

use lithify_lab::adapter::{EngineError, EngineResult};

use super::functions::Functions;
use crate::library;

/// Copies and frees a text of the library; `None` for null.
///
/// # Safety
/// `text` is null or a text that the library handed over, not freed yet.
pub unsafe fn take_text(functions: &Functions, text: *mut c_char) -> Option<String> {
    // SAFETY: promised by the caller.
    unsafe { library::take_text(functions.free, text) }
}

/// Makes a call that may leave an error.
///
/// # Errors
/// What the library says; retryable when another try may succeed.
pub fn checked<R>(
    functions: &Functions,
    call: impl FnOnce(*mut *mut c_char) -> R,
) -> EngineResult<R> {
    // SAFETY: calls of the library leave the place alone or put a text of its own there.
    unsafe { library::checked(functions.free, error_of, call) }
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
