//! What RocksDB itself makes of a text of options.

#![expect(unsafe_code, reason = "options of a C library are made and read by calling it")]

use std::ffi::CString;
use std::path::Path;

use lithify_lab::adapter::{EngineError, EngineResult};

use super::functions::Functions;
use super::objects::checked;
use crate::library::Owned;

/// The options file of an empty database that was made in `directory` with a text of options.
///
/// # Errors
/// The library does not take the text, or makes no database with it.
pub(super) fn understood(
    functions: &Functions,
    text: &str,
    directory: &Path,
) -> EngineResult<String> {
    let fatal = |what: String| EngineError::fatal(what);
    let text = CString::new(text).map_err(|error| fatal(error.to_string()))?;
    let name =
        CString::new(directory.display().to_string()).map_err(|error| fatal(error.to_string()))?;
    // SAFETY: takes nothing, gives an object of ours; twice.
    let [base, options] = unsafe {
        [
            Owned::new((functions.options_create)(), functions.options_destroy)?,
            Owned::new((functions.options_create)(), functions.options_destroy)?,
        ]
    };
    // SAFETY: both objects and the text are live.
    checked(functions, |error| unsafe {
        (functions.get_options_from_string)(base.get(), text.as_ptr(), options.get(), error);
    })?;
    // SAFETY: the options are live.
    unsafe { (functions.options_set_create_if_missing)(options.get(), 1) };
    // SAFETY: the options and the name are live.
    let database = checked(functions, |error| unsafe {
        (functions.open)(options.get(), name.as_ptr(), error)
    })?;
    // SAFETY: the call above succeeded, so the database is ours, and nobody else has it.
    unsafe { (functions.close)(database) };
    super::options_file(directory)
}
