//! Memory that a caller in C frees: always of the C library's allocator, whatever Rust uses, because
//! callers free it with plain `free`.

#![expect(unsafe_code, reason = "memory of the C library")]

use std::ffi::{c_char, c_void};

/// A copy of `bytes`, with a zero behind them that is not counted; never NULL but where memory is out.
/// The caller frees it with [`release`] or `free`.
pub fn copy(bytes: &[u8]) -> *mut c_char {
    let Some(size) = bytes.len().checked_add(1) else { return std::ptr::null_mut() };
    // SAFETY: malloc takes any size; it answers NULL or `size` bytes that nobody else has.
    let memory: *mut c_char = unsafe { libc::malloc(size) }.cast();
    if !memory.is_null() {
        // SAFETY: `memory` is fresh and has `bytes.len() + 1` bytes, so it overlaps nothing.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr().cast(), memory, bytes.len());
            memory.add(bytes.len()).write(0);
        }
    }
    memory
}

/// A copy of a text, up to its first zero byte if it has one inside.
pub fn copy_text(text: &str) -> *mut c_char {
    copy(text.split('\0').next().unwrap_or_default().as_bytes())
}

/// Frees what [`copy`] and [`copy_text`] made; NULL is allowed.
///
/// # Safety
/// `memory` is NULL, or memory of the C library that was not freed before.
pub unsafe fn release(memory: *mut c_void) {
    // SAFETY: the caller promises memory of the C library, or NULL.
    unsafe { libc::free(memory) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    #[test]
    fn copies_end_with_a_zero_and_can_be_freed() {
        let copied = copy(b"");
        assert!(!copied.is_null());
        let text = copy_text("one\0two");
        // SAFETY: both were just made, end with a zero, and are freed once.
        unsafe {
            assert_eq!(CStr::from_ptr(copied), c"");
            assert_eq!(CStr::from_ptr(text), c"one");
            release(copied.cast());
            release(text.cast());
            release(std::ptr::null_mut());
        }
    }
}
