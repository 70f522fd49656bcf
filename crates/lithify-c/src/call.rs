//! The border between C and the engine: codes, messages, and the macro [`c_functions`] that makes a C
//! function of a body that answers a [`Answer`]. No panic crosses it.

#![expect(unsafe_code, reason = "every function of a C interface takes the caller's word")]

use libc::{c_char, c_int};
use lithify::{Error, ErrorKind};
use lithify_ffi::arguments::Refused;
use lithify_ffi::guard::guarded;
use lithify_ffi::memory;

/// Codes that are no failures.
pub(crate) const OK: c_int = 0;
pub(crate) const ABSENT: c_int = 1;
pub(crate) const SHORT: c_int = 2;

const INVALID_ARGUMENT: c_int = -1;
const CLOSED: c_int = -13;
const INTERNAL: c_int = -100;

/// Grows when a function or code changes its meaning: `LITHIFY_INTERFACE` of the header.
const INTERFACE: c_int = 1;

/// Failures with their codes and names; the header has the codes.
const FAILURES: &[(ErrorKind, c_int, &[u8])] = &[
    (ErrorKind::InvalidArgument, INVALID_ARGUMENT, b"invalid argument\0"),
    (ErrorKind::LimitExceeded, -2, b"limit exceeded\0"),
    (ErrorKind::NotFound, -3, b"not found\0"),
    (ErrorKind::AlreadyExists, -4, b"already exists\0"),
    (ErrorKind::Corruption, -5, b"corruption\0"),
    (ErrorKind::Unsupported, -6, b"unsupported\0"),
    (ErrorKind::Io, -7, b"io\0"),
    (ErrorKind::NoSpace, -8, b"no space\0"),
    (ErrorKind::Locked, -9, b"locked\0"),
    (ErrorKind::LockTimeout, -10, b"lock timeout\0"),
    (ErrorKind::Deadlock, -11, b"deadlock\0"),
    (ErrorKind::Conflict, -12, b"conflict\0"),
    (ErrorKind::Closed, CLOSED, b"closed\0"),
    (ErrorKind::ReadOnly, -14, b"read only\0"),
    (ErrorKind::Poisoned, -15, b"poisoned\0"),
    (ErrorKind::TryAgain, -16, b"try again\0"),
    (ErrorKind::Cancelled, -17, b"cancelled\0"),
    (ErrorKind::Merge, -18, b"merge\0"),
    (ErrorKind::CompactionFilter, -19, b"compaction filter\0"),
];

/// What a call answers: a code that is no failure, or a failure with its text.
pub(crate) type Answer = Result<c_int, Failure>;

/// A failure on its way to C.
pub(crate) struct Failure {
    code: c_int,
    text: String,
}

impl Failure {
    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        Failure { code: INVALID_ARGUMENT, text: text.into() }
    }

    pub(crate) fn closed(text: impl Into<String>) -> Self {
        Failure { code: CLOSED, text: text.into() }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let known = FAILURES.iter().find(|(kind, _, _)| *kind == error.kind());
        Failure { code: known.map_or(INTERNAL, |(_, code, _)| *code), text: error.to_string() }
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        Failure::invalid(match refused {
            Refused::Missing => "invalid argument: a pointer is NULL that must not be",
            Refused::NotText => "invalid argument: a text is not UTF-8",
            Refused::TooLong => "invalid argument: a length is over that of all memory",
        })
    }
}

/// Runs the body of a call, and tells C how it went.
///
/// # Safety
/// `message` is NULL, or points at a pointer that may be written.
pub(crate) unsafe fn call(message: *mut *mut c_char, body: impl FnOnce() -> Answer) -> c_int {
    let failure = match guarded(body) {
        Ok(Ok(code)) => return code,
        Ok(Err(failure)) => failure,
        Err(text) => Failure { code: INTERNAL, text },
    };
    if !message.is_null() {
        // SAFETY: the caller promises that a message that is not NULL may be written.
        unsafe { message.write(memory::copy_text(&failure.text)) };
    }
    failure.code
}

/// Makes C functions of bodies that answer an [`Answer`]: each gets a `message` behind its arguments,
/// and a border that no panic crosses.
macro_rules! c_functions {
    ($($(#[$attribute:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)*) => {$(
        $(#[$attribute])*
        ///
        /// # Safety
        /// The header's rules: each pointer is NULL, or points at what its type and length say, alive
        /// and used by nobody else who may not; `message` is NULL or may be written.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            $($argument: $type,)*
            message: *mut *mut libc::c_char,
        ) -> libc::c_int {
            // SAFETY: the body reads pointers as the header's rules allow, which the caller keeps.
            unsafe { $crate::call::call(message, || -> $crate::call::Answer { $body }) }
        }
    )*};
}

/// The name of a code, a constant text.
// SAFETY: the name belongs to the header, and nothing else has it.
#[unsafe(no_mangle)]
pub extern "C" fn lithify_code_name(code: c_int) -> *const c_char {
    let known = FAILURES.iter().find(|(_, known, _)| *known == code);
    let name: &[u8] = match (known, code) {
        (Some((_, _, name)), _) => name,
        (None, OK) => b"ok\0",
        (None, ABSENT) => b"absent\0",
        (None, SHORT) => b"short\0",
        (None, INTERNAL) => b"internal\0",
        _ => b"unknown\0",
    };
    name.as_ptr().cast()
}

/// Whether the same work may succeed when it is tried again.
// SAFETY: the name belongs to the header, and nothing else has it.
#[unsafe(no_mangle)]
pub extern "C" fn lithify_code_is_retryable(code: c_int) -> c_int {
    let known = FAILURES.iter().find(|(_, known, _)| *known == code);
    known.is_some_and(|(kind, _, _)| kind.is_retryable()).into()
}

/// The version of the library, a constant text.
// SAFETY: the name belongs to the header, and nothing else has it.
#[unsafe(no_mangle)]
pub extern "C" fn lithify_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// The version of the interface.
// SAFETY: the name belongs to the header, and nothing else has it.
#[unsafe(no_mangle)]
pub extern "C" fn lithify_interface() -> c_int {
    INTERFACE
}

/// Frees what the library allocated for its caller.
///
/// # Safety
/// `pointer` is NULL, or came from this library as memory to be freed, and was not freed before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lithify_free(pointer: *mut libc::c_void) {
    // SAFETY: the caller promises memory of the C library, or NULL.
    unsafe { memory::release(pointer) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    #[test]
    fn codes_are_those_of_the_header() {
        let header = include_str!("../include/lithify.h");
        for (_, code, name) in FAILURES {
            let name = CStr::from_bytes_with_nul(name).unwrap().to_str().unwrap();
            let name = name.to_uppercase().replace(' ', "_");
            let line = format!("#define LITHIFY_{name} ({code})\n");
            assert!(header.contains(&line), "the header lacks {line}");
        }
        let defined = header.lines().filter(|line| line.ends_with(')') && line.contains(" (-"));
        assert_eq!(defined.count(), FAILURES.len() + 1);
        assert!(header.contains(&format!("#define LITHIFY_INTERFACE {INTERFACE}\n")));
        assert!(header.contains(&format!("#define LITHIFY_INTERNAL ({INTERNAL})\n")));
    }

    #[test]
    fn a_panic_is_an_answer() {
        let mut message = std::ptr::null_mut();
        // SAFETY: `message` is a live pointer; what it is set to is read and freed once.
        unsafe {
            assert_eq!(call(&raw mut message, || panic!("seven")), INTERNAL);
            assert_eq!(CStr::from_ptr(message), c"a defect of the library: seven");
            lithify_free(message.cast());
            assert_eq!(call(std::ptr::null_mut(), || Ok(ABSENT)), ABSENT);
        }
    }
}
