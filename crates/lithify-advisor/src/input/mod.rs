//! What advice is wanted for: rows from files, read where they are needed.
//!
//! Owns: what a format of rows is, finding out which one a file has, files one behind the other as one
//! piece of data ([`Files`]), Lithify's databases ([`Database`]), and keys. Knows nothing of targets.
//!
//! A [`Source`] gives rows from any place of the data, and all of them in their order. It is only
//! read. Whatever is wrong is an error that names the file and the line.

mod delimited;
mod detect;
mod files;
mod format;
mod key;
mod lithify;

use std::ops::ControlFlow;
use std::path::Path;

use crate::error::{AdviseError, Result};
use crate::rows::{Row, Rows};

pub use detect::Format;
pub use files::Files;
pub use lithify::Database;

/// What is behind a path: a database, a file, or a directory of files. `table` names a column family.
///
/// # Errors
/// Those of [`Files::open`] and [`Database::open`]; files have no tables.
pub fn open(
    path: &Path,
    format: Option<Format>,
    key: &[String],
    table: Option<&str>,
) -> Result<Box<dyn Source>> {
    if format.is_none() && lithify::is_database(path) {
        return match key {
            [] => Ok(Box::new(Database::open(path, table)?)),
            _ => Err(AdviseError::usage("a Lithify database has its keys: leave --key out")),
        };
    }
    match table {
        None => Ok(Box::new(Files::open(path, format, key)?)),
        Some(_) => {
            let what = format!("{} has no tables to choose from", path.display());
            Err(AdviseError::usage(what))
        }
    }
}

/// What is known of the data before anything is measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// What it is: "CSV, 7 columns, header".
    pub format: String,
    /// Bytes in all.
    pub data_bytes: u64,
    /// Files in all.
    pub files: u64,
    /// Whether it has rows, or is bytes without any structure that is known here.
    pub has_rows: bool,
    /// The key that was named, or nothing.
    pub key: String,
}

/// Data to be read.
pub trait Source {
    /// What it is.
    fn facts(&self) -> &Facts;

    /// Neighbouring rows from about a share (0 to 1) of the data on, until they hold so many bytes or
    /// the data end.
    ///
    /// # Errors
    /// The file cannot be read, or a row there is not what the format asks for.
    fn place(&mut self, share: f64, wanted_bytes: u64) -> Result<Rows>;

    /// All rows in their order with the bytes read so far, until `each` has had enough.
    ///
    /// # Errors
    /// As for a place.
    fn scan(&mut self, each: &mut dyn FnMut(Row<'_>, u64) -> ControlFlow<()>) -> Result<()>;

    /// Whether the data are still what they were when they were opened.
    ///
    /// # Errors
    /// They changed while they were read.
    fn check_unchanged(&self) -> Result<()>;
}
