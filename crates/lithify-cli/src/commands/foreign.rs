//! Databases of other engines, as rows to measure or to import.
//!
//! Owns: asking each engine that can be had whether a directory is its own. Their libraries are loaded or
//! linked by the laboratory's crates.

use std::path::Path;

use lithify_advisor::AdviseError;
use lithify_advisor::input::Source;
use lithify_lab_engines::stores;

/// The database in a directory, if it is one of another engine.
///
/// # Errors
/// Its library is not here, or refuses it.
pub fn open(
    path: &Path,
    key: &[String],
    table: Option<&str>,
) -> Option<Result<Box<dyn Source>, AdviseError>> {
    stores::open(path, key, table).or_else(|| open_fjall(path, key, table))
}

#[cfg(feature = "embedded-engines")]
fn open_fjall(
    path: &Path,
    key: &[String],
    table: Option<&str>,
) -> Option<Result<Box<dyn Source>, AdviseError>> {
    lithify_lab_embedded::stores::open(path, key, table)
}

/// This program was built without it.
#[cfg(not(feature = "embedded-engines"))]
fn open_fjall(
    path: &Path,
    _: &[String],
    _: Option<&str>,
) -> Option<Result<Box<dyn Source>, AdviseError>> {
    use lithify_lab::engines::elsewhere::{FJALL, fjall_format};
    fjall_format(path)?;
    let what = format!("{}: a database of fjall: {}", path.display(), FJALL.missing());
    Some(Err(AdviseError::usage(what)))
}
