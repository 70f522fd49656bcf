//! What advice is wanted for: rows from files, read where they are needed.
//!
//! Owns: what a format of rows is, finding out which one a file has, files one behind the other as one
//! piece of data ([`Files`]), Lithify's databases ([`Database`]), rows in memory ([`Memory`]), tables of SQLite and of servers, files
//! with columns, and keys. Knows nothing of targets.
//!
//! A [`Source`] gives rows from any place of the data, and all of them in their order. It is only
//! read. Whatever is wrong is an error that names the file and the line.

#[cfg(feature = "parquet")]
mod columnar;
mod container;
mod delimited;
mod detect;
mod files;
mod format;
mod key;
mod lithify;
mod mariadb;
mod memory;
mod positions;
mod record;
mod size;
mod spool;
#[cfg(feature = "sqlite")]
mod sqlite;
mod stamp;
mod starts;

use std::fs::File;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

pub use ::lithify::Compression;

use crate::error::{AdviseError, Result};
use crate::rows::{Row, Rows};
use crate::targets::Setting;
use crate::watch::Watch;

#[cfg(feature = "parquet")]
pub use columnar::{ColumnarContent, ContentError, columnar_name};
pub use container::container;
pub use detect::Format;
pub use files::Files;
pub use lithify::Database;
pub use memory::Memory;
pub use record::{Record, Value};
pub use size::user_bytes;
pub use starts::Starts;

/// What is behind a path: a database, a table of one, a file, or a directory of files. `table` names a
/// table or column family.
///
/// # Errors
/// Those of the source; files have no tables; this was built without the format.
pub fn open(
    path: &Path,
    format: Option<Format>,
    key: &[String],
    table: Option<&str>,
    watch: &dyn Watch,
) -> Result<Box<dyn Source>> {
    if mariadb::is_address(path) && format.is_some() {
        return Err(AdviseError::usage("a table of a server has its format: leave --format out"));
    }
    if mariadb::is_address(path) {
        return Ok(Box::new(mariadb::MariaDb::open(path, table, key, watch)?));
    }
    if path == Path::new("-") && !path.exists() {
        let what = "- is no file: places of a pipe cannot be read; write it to a file first";
        return Err(AdviseError::usage(what));
    }
    if path.to_str().is_some_and(|path| path.contains("://")) && !path.exists() {
        let what = "servers are asked by mariadb://… or mysql://… alone";
        return Err(AdviseError::usage(format_args!("{}: {what}", path.display())));
    }
    if format.is_none() && lithify::is_database(path) {
        if !key.is_empty() {
            return Err(AdviseError::usage("a Lithify database has its keys: leave --key out"));
        }
        return Ok(Box::new(Database::open(path, table)?));
    }
    if format.is_none()
        && let Some(source) = open_typed(path, key, table, watch)?
    {
        return Ok(source);
    }
    match table {
        None => Ok(Box::new(Files::open(path, format, key)?)),
        Some(_) => {
            let what = format!("{} has no tables to choose from", path.display());
            Err(AdviseError::usage(what))
        }
    }
}

/// What it is called in answers: an address without its password.
pub fn shown(path: &Path) -> String {
    match mariadb::is_address(path) {
        true => mariadb::without_password(path),
        false => path.display().to_string(),
    }
}

/// Files whose columns have types; nothing if the first one is of another kind.
fn open_typed(
    path: &Path,
    key: &[String],
    table: Option<&str>,
    watch: &dyn Watch,
) -> Result<Option<Box<dyn Source>>> {
    let paths = files::list(path)?.files;
    let Some(first) = paths.first() else { return Ok(None) };
    let head = head(first)?;
    if is_sqlite(&head) && paths.len() == 1 {
        return open_sqlite(first, key, table, watch).map(Some);
    }
    if table.is_none() {
        return open_columnar(&head, &paths, key);
    }
    Ok(None)
}

/// The first bytes of a file.
fn head(path: &Path) -> Result<Vec<u8>> {
    let file = File::open(path).map_err(|error| AdviseError::of_file(path, &error))?;
    let mut head = Vec::new();
    file.take(16).read_to_end(&mut head).map_err(|error| AdviseError::of_file(path, &error))?;
    Ok(head)
}

/// How every file of SQLite begins.
fn is_sqlite(head: &[u8]) -> bool {
    head == b"SQLite format 3\0"
}

#[cfg(feature = "sqlite")]
fn open_sqlite(
    path: &Path,
    key: &[String],
    table: Option<&str>,
    watch: &dyn Watch,
) -> Result<Box<dyn Source>> {
    Ok(Box::new(sqlite::Sqlite::open(path, table, key, watch)?))
}

#[cfg(not(feature = "sqlite"))]
fn open_sqlite(
    path: &Path,
    _key: &[String],
    _table: Option<&str>,
    _watch: &dyn Watch,
) -> Result<Box<dyn Source>> {
    Err(left_out(path, "SQLite", "sqlite"))
}

#[cfg(feature = "parquet")]
fn open_columnar(
    head: &[u8],
    paths: &[PathBuf],
    key: &[String],
) -> Result<Option<Box<dyn Source>>> {
    let Some(kind) = columnar::Kind::of(head) else { return Ok(None) };
    Ok(Some(Box::new(columnar::Columnar::open(kind, paths, key)?)))
}

#[cfg(not(feature = "parquet"))]
fn open_columnar(
    head: &[u8],
    paths: &[PathBuf],
    _key: &[String],
) -> Result<Option<Box<dyn Source>>> {
    match head.starts_with(b"PAR1") || head.starts_with(b"ARROW1") {
        true => Err(left_out(&paths[0], "Parquet and Arrow", "parquet")),
        false => Ok(None),
    }
}

/// A format that costs time to build is a feature.
#[cfg(not(all(feature = "sqlite", feature = "parquet")))]
fn left_out(path: &Path, name: &str, feature: &str) -> AdviseError {
    let path = path.display();
    AdviseError::data(format_args!(
        "{path}: this was built without {name}; the feature '{feature}' has it"
    ))
}

/// Names that an error lists.
const LISTED: usize = 8;
/// Signs of each.
const LISTED_SIGNS: usize = 40;

/// The first names of a list, and how many more there are: "a, b and 37 more".
pub fn listed<T: AsRef<str>>(names: &[T]) -> String {
    let shown = |name: &T| match name.as_ref().char_indices().nth(LISTED_SIGNS) {
        None => name.as_ref().to_owned(),
        Some((end, _)) => format!("{}…", &name.as_ref()[..end]),
    };
    let text = names.iter().take(LISTED).map(shown).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(LISTED) {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}

/// The number of a column by its number from 1, or by its name. A column whose name is such a number goes
/// by its own number.
fn column_of(path: &Path, names: &[&str], name: &str) -> Result<usize> {
    let by_number = name.parse().ok().filter(|number| (1..=names.len()).contains(number));
    let by_name = || names.iter().position(|column| *column == name);
    by_number.map(|number: usize| number - 1).or_else(by_name).ok_or_else(|| {
        let (path, names) = (path.display(), listed(names));
        AdviseError::usage(format_args!("{path}: no column '{name}'; there are: {names}"))
    })
}

/// What a database says of its key, whose parts have no names.
pub const OWN_KEYS: &str = "its keys";

/// What stands between the names of a key.
pub(crate) const KEY_SEPARATOR: &str = ", ";

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
    /// Whether files are its bytes as they are: what a file system would store.
    pub has_bytes: bool,
    /// The key that was named, or nothing.
    pub key: String,
    /// The targets that the data are in already; advice is for these where none is named.
    pub native: &'static [&'static str],
}

/// How a database has its rows now, where advice is for the same database.
#[derive(Clone, Debug, PartialEq)]
pub struct Present {
    /// The target whose settings it has.
    pub target: &'static str,
    /// Its settings, as they are written.
    pub settings: String,
    /// What its bottom level is set to; where that is decided by cost, what most of the lowest level has.
    /// `None` if there is no table to tell.
    pub bottom: Option<Stored>,
    /// The codecs of the level above the bottom and of those above that, where they are set.
    pub upper: Option<[Compression; 2]>,
    /// Whether `bottom` is set, and not decided by cost.
    pub is_set: bool,
    /// What its tables have, the one of most bytes first.
    pub found: Vec<Stored>,
    /// Bytes of its tables.
    pub stored_bytes: u64,
    /// How many there are.
    pub tables: u64,
    /// Rows that are in no table yet.
    pub rows_in_log: u64,
}

/// How blocks are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Codec and effort.
    pub compression: Compression,
    /// The size of blocks before compression.
    pub block_size_bytes: usize,
    /// Whether there is a dictionary.
    pub has_dictionary: bool,
}

impl Stored {
    /// Whether it is what a setting asks for.
    pub(crate) fn is(&self, setting: &Setting) -> bool {
        // Whoever encoded: the bytes are of the same format and effort.
        let [a, b] = [self.compression, setting.compression].map(|one| (one.codec, one.effort));
        a == b
            && self.block_size_bytes == setting.size_bytes
            && self.has_dictionary == (setting.dictionary_bytes > 0)
    }
}

impl std::fmt::Display for Stored {
    /// As settings are called: "zstd-1 16k".
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let dictionary = if self.has_dictionary { ", dictionary" } else { "" };
        let (codec, size_bytes) = (self.compression, self.block_size_bytes);
        match size_bytes % 1024 {
            0 => write!(f, "{codec} {}k{dictionary}", size_bytes >> 10),
            _ => write!(f, "{codec} {size_bytes}{dictionary}"),
        }
    }
}

/// Data to be read.
pub trait Source {
    /// What it is.
    fn facts(&self) -> &Facts;

    /// Finds out what places of it need, which may take reading all rows. Called once before places are asked
    /// for, by whoever asks for many of them.
    ///
    /// # Errors
    /// Those of reading, and of `watch`.
    fn prepare(&mut self, _watch: &dyn Watch) -> Result<()> {
        Ok(())
    }

    /// How it is stored now, if it is a database that advice can be for.
    fn present(&self) -> Option<Present> {
        None
    }

    /// What was noticed so far while rows were read, each with its file and line.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Neighbouring rows from about a share (0 to 1) of the data on, until they hold so many bytes or
    /// the data end.
    ///
    /// # Errors
    /// The file cannot be read, or a row there is not what the format asks for.
    fn place(&mut self, share: f64, wanted_bytes: u64) -> Result<Rows>;

    /// How many places there are at most.
    fn places_max(&self) -> usize {
        usize::MAX
    }

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
