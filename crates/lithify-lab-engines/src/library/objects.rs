//! Objects of a library with an owner, and what else it hands over.
//!
//! Owns: [`Owned`], texts and errors. Promises: an object is destroyed once, by the function that
//! belongs to it; a text of the library is copied and freed.

#![expect(unsafe_code, reason = "objects of a C library are freed by calling it")]

use std::ffi::{CStr, c_char, c_void};
use std::ptr::{self, NonNull};

use lithify_lab::adapter::{EngineError, EngineResult};

/// Frees memory that a library has handed over.
pub type Free = unsafe extern "C" fn(*mut c_void);

/// An object of a library, destroyed when dropped.
pub struct Owned<T> {
    object: NonNull<T>,
    destroy: unsafe extern "C" fn(*mut T),
}

// SAFETY: the objects are bound to no thread (`new` is promised so). Those that are shared
// (options, read and write options, caches) are only read by the calls that they are lent to.
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
    /// `object` is null or belongs to the caller alone and to no thread, and `destroy` is the
    /// function of the library that frees such objects.
    pub unsafe fn new(
        object: *mut T,
        destroy: unsafe extern "C" fn(*mut T),
    ) -> EngineResult<Owned<T>> {
        match NonNull::new(object) {
            Some(object) => Ok(Owned { object, destroy }),
            None => Err(EngineError::fatal("the engine's library made no object")),
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

/// Copies and frees a text of a library; `None` for null.
///
/// # Safety
/// `text` is null or a text that the library of `free` handed over, not freed yet.
pub unsafe fn take_text(free: Free, text: *mut c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: a text of the library ends with a zero byte, and is ours until it is freed below.
    let copy = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
    // SAFETY: handed over by the library and freed once; the copy does not point into it.
    unsafe { free(text.cast()) };
    Some(copy)
}

/// Makes a call that may leave the text of an error, which `error_of` makes an error.
///
/// # Errors
/// What the library says.
///
/// # Safety
/// The call leaves the place alone, or puts a text there that the library of `free` hands over.
pub unsafe fn checked<R>(
    free: Free,
    error_of: fn(&str) -> EngineError,
    call: impl FnOnce(*mut *mut c_char) -> R,
) -> EngineResult<R> {
    let mut text: *mut c_char = ptr::null_mut();
    let result = call(&raw mut text);
    // SAFETY: promised by the caller.
    match unsafe { take_text(free, text) } {
        None => Ok(result),
        Some(text) => Err(error_of(&text)),
    }
}

/// Bytes of a library.
///
/// # Safety
/// `start` is null or points to `size` bytes that stay as they are for `'a`.
pub unsafe fn bytes<'a, T>(start: *const T, size: usize) -> &'a [u8] {
    if start.is_null() {
        return &[];
    }
    // SAFETY: promised by the caller.
    unsafe { std::slice::from_raw_parts(start.cast(), size) }
}
