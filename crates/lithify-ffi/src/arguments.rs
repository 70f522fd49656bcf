//! Arguments that come from C: bytes with a length, texts ended by a zero.
//!
//! Unsafe, because what a caller in C promises cannot be checked: that a pointer has so many bytes
//! behind it. A missing pointer is checked.

#![expect(unsafe_code, reason = "pointers that come from C")]

use std::ffi::{CStr, c_char, c_void};

/// Why an argument is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// A pointer that must not be NULL is.
    Missing,
    /// A text is not UTF-8.
    NotText,
    /// More bytes than a process can have.
    TooLong,
}

/// Bytes that the caller lends for `'a`. A pointer may be NULL if the length is 0.
///
/// # Errors
/// A NULL pointer with a length, or a length over `isize::MAX`.
///
/// # Safety
/// A pointer that is not NULL has `length` readable bytes behind it, which nobody changes during `'a`.
pub unsafe fn bytes<'a>(pointer: *const c_void, length: usize) -> Result<&'a [u8], Refused> {
    if length == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() {
        return Err(Refused::Missing);
    }
    if isize::try_from(length).is_err() {
        return Err(Refused::TooLong);
    }
    // SAFETY: the caller promises `length` readable bytes that nobody changes; the length fits.
    Ok(unsafe { std::slice::from_raw_parts(pointer.cast(), length) })
}

/// A text that the caller lends for `'a`.
///
/// # Errors
/// A NULL pointer; bytes that are not UTF-8.
///
/// # Safety
/// A pointer that is not NULL points at bytes that end with a zero, which nobody changes during `'a`.
pub unsafe fn text<'a>(pointer: *const c_char) -> Result<&'a str, Refused> {
    if pointer.is_null() {
        return Err(Refused::Missing);
    }
    // SAFETY: the caller promises bytes that end with a zero and that nobody changes.
    unsafe { CStr::from_ptr(pointer) }.to_str().map_err(|_| Refused::NotText)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::null;

    #[test]
    fn what_can_be_checked_is_checked() {
        // SAFETY: pointers are NULL, or those of live literals with their lengths.
        unsafe {
            assert_eq!(bytes(null(), 0), Ok(&[][..]));
            assert_eq!(bytes(null(), 1), Err(Refused::Missing));
            assert_eq!(bytes(b"abc".as_ptr().cast(), usize::MAX), Err(Refused::TooLong));
            assert_eq!(bytes(b"abc".as_ptr().cast(), 2), Ok(&b"ab"[..]));
            assert_eq!(text(null()), Err(Refused::Missing));
            assert_eq!(text(c"basalt".as_ptr()), Ok("basalt"));
            assert_eq!(text(c"\xff".as_ptr()), Err(Refused::NotText));
        }
    }
}
