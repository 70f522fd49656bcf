//! Text by name, as lines: generated, fetched, or any file.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::actors::Actors;
use super::{DataError, packages};

/// The longest line; a longer one is cut into several. A file need not be text.
const LINE_BYTES_MAX: u64 = 32 << 10;

/// Lines, one after the other.
pub trait Lines {
    /// Reads the next line into `line` (cleared first), with its end. False when there is none.
    ///
    /// # Errors
    /// The file's.
    fn next(&mut self, line: &mut Vec<u8>) -> io::Result<bool>;
}

/// Where text comes from: the name of a data set, or the path of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum TextData {
    /// A generated list of actors.
    Actors,
    /// A package's data set, by its name.
    Package(String),
    /// A file of the user's.
    File(PathBuf),
}

impl From<String> for TextData {
    fn from(text: String) -> TextData {
        match packages::find(&text) {
            _ if text == "actors" => TextData::Actors,
            Some(package) => TextData::Package(package.name.to_owned()),
            None => TextData::File(text.into()),
        }
    }
}

impl From<TextData> for String {
    fn from(data: TextData) -> String {
        data.to_string()
    }
}

impl fmt::Display for TextData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TextData::Actors => f.write_str("actors"),
            TextData::Package(name) => f.write_str(name),
            TextData::File(path) => write!(f, "{}", path.display()),
        }
    }
}

impl TextData {
    /// Whether it can be opened here, and how many bytes of `bytes` it has.
    ///
    /// # Errors
    /// It was not fetched, or there is no such file, or nothing in it.
    pub fn available_bytes(&self, bytes: u64) -> Result<u64, DataError> {
        let path = match self {
            TextData::Actors => return Ok(bytes),
            TextData::Package(name) => packages::require(name)?.path()?,
            TextData::File(path) => path.clone(),
        };
        let metadata =
            std::fs::metadata(&path).map_err(|error| DataError::of(path.display(), error))?;
        if !metadata.is_file() {
            return Err(DataError::of(path.display(), "is no file"));
        }
        match metadata.len().min(bytes) {
            0 => Err(DataError::of(path.display(), "is empty")),
            bytes => Ok(bytes),
        }
    }

    /// Its lines, up to so many bytes of them; the last one may go beyond.
    ///
    /// # Errors
    /// As [`TextData::available_bytes`].
    pub fn open(&self, bytes: u64, seed: u64) -> Result<Box<dyn Lines>, DataError> {
        let bytes = self.available_bytes(bytes)?;
        let file = |path: &Path| -> Result<Box<dyn Lines>, DataError> {
            let file = File::open(path).map_err(|error| DataError::of(path.display(), error))?;
            Ok(Box::new(FileLines { file: BufReader::new(file), left: bytes }))
        };
        match self {
            TextData::Actors => Ok(Box::new(Actors::new(bytes, seed))),
            TextData::Package(name) => file(&packages::require(name)?.path()?),
            TextData::File(path) => file(path),
        }
    }
}

/// The lines of a file.
struct FileLines {
    file: BufReader<File>,
    left: u64,
}

impl Lines for FileLines {
    fn next(&mut self, line: &mut Vec<u8>) -> io::Result<bool> {
        line.clear();
        if self.left == 0 {
            return Ok(false);
        }
        let read = self.file.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', line)?;
        self.left = self.left.saturating_sub(read as u64);
        Ok(read > 0)
    }
}
