//! Where a call leaves the text of its failure.

#![expect(unsafe_code, reason = "texts that the caller frees")]

use crate::status::Status;
use lithify_ffi::memory;
use std::ffi::c_char;

/// The caller's `char **errptr`. A caller that gives none is told nothing.
#[repr(transparent)]
pub struct Failures<'a>(Option<&'a mut *mut c_char>);

impl Failures<'_> {
    /// Puts a text there. One of an earlier call is freed.
    pub fn tell(self, status: &Status) {
        let Some(slot) = self.0 else { return };
        // SAFETY: what stands there is NULL or a text of an earlier call, by the interface's rule that
        // callers begin with NULL; it is freed once, for it is replaced at once.
        unsafe { memory::release(slot.cast()) };
        *slot = memory::copy_text(&status.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;
    use std::ptr::null_mut;

    #[test]
    fn a_later_text_replaces_an_earlier_one() {
        Failures(None).tell(&Status::io("nobody hears"));
        let mut text = null_mut();
        Failures(Some(&mut text)).tell(&Status::io("first"));
        Failures(Some(&mut text)).tell(&Status::invalid("second\0and hidden"));
        // SAFETY: both texts were just made; the second is freed once.
        unsafe {
            assert_eq!(CStr::from_ptr(text), c"Invalid argument: second");
            memory::release(text.cast());
        }
    }
}
