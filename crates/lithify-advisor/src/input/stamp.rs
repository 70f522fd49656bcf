//! Whether a file is still what it was when it was opened.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::{AdviseError, Result};

/// A file as it was at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) path: PathBuf,
    pub(super) size: u64,
    modified: (i64, i64),
}

impl Stamp {
    pub(super) fn of(path: &Path) -> Result<Stamp> {
        let metadata =
            std::fs::metadata(path).map_err(|error| AdviseError::of_file(path, &error))?;
        let modified = (metadata.mtime(), metadata.mtime_nsec());
        Ok(Stamp { path: path.to_owned(), size: metadata.len(), modified })
    }

    /// An error if the file is another one now.
    pub(super) fn check(&self) -> Result<()> {
        if Stamp::of(&self.path)? == *self {
            return Ok(());
        }
        let path = self.path.display();
        let what = format!("{path} changed while it was read; copy it and try again");
        Err(AdviseError::data(what))
    }
}
