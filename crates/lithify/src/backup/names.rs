//! The names of the files in a backup store, in one place.

use super::BackupId;
use crate::base::{FileNumber, TableId};
use crate::manifest::FileMetadata;
use std::fmt;
use std::path::{Path, PathBuf};

/// The name of a file of a store. Its `Display` is the name in the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum StoreName {
    /// `STORE`: what the directory is.
    Store,
    /// `LOCK`.
    Lock,
    /// `BBBBBB.backup`: a backup.
    Backup(BackupId),
    /// `NNNNNN-TTTT-SSSS.sst`: a table.
    Table { number: FileNumber, table_id: TableId, size_bytes: u64 },
    /// `BBBBBB-NNNNNN.wal`: a log segment of a backup.
    Wal { backup: BackupId, number: FileNumber },
}

/// What stands behind the name of a file that is being written.
const TEMPORARY: &str = ".tmp";

impl StoreName {
    /// The name under which a table is kept.
    pub(super) fn of_table(metadata: &FileMetadata) -> Self {
        let FileMetadata { number, table_id, size_bytes, .. } = *metadata;
        StoreName::Table { number, table_id, size_bytes }
    }

    /// The file with that name; `None` for a name that no store gives.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let parsed = match name.rsplit_once('.') {
            None if name == "STORE" => StoreName::Store,
            None if name == "LOCK" => StoreName::Lock,
            Some((digits, "backup")) => StoreName::Backup(digits.parse().ok()?),
            Some((stem, "wal")) => {
                let (backup, number) = stem.split_once('-')?;
                StoreName::Wal { backup: backup.parse().ok()?, number: number.parse().ok()? }
            }
            Some((stem, "sst")) => {
                let mut parts = stem.split('-');
                let (number, id, size) = (parts.next()?, parts.next()?, parts.next()?);
                StoreName::Table {
                    number: number.parse().ok()?,
                    table_id: u128::from_str_radix(id, 16).ok()?.to_be_bytes(),
                    size_bytes: size.parse().ok()?,
                }
            }
            _ => return None,
        };
        if matches!(parsed, StoreName::Backup(0) | StoreName::Wal { backup: 0, .. }) {
            return None;
        }
        // Only the form that is written: two names must never mean one file.
        (parsed.to_string() == name).then_some(parsed)
    }

    /// The file at that path, and whether it is still being written.
    pub(super) fn of_path(path: &Path) -> Option<(Self, bool)> {
        let name = path.file_name()?.to_str()?;
        match name.strip_suffix(TEMPORARY) {
            Some(name) => Some((StoreName::parse(name)?, true)),
            None => Some((StoreName::parse(name)?, false)),
        }
    }

    /// The path of the file.
    pub(super) fn path(self, directory: &Path) -> PathBuf {
        directory.join(self.to_string())
    }

    /// Where it is written before it gets its name.
    pub(super) fn temporary_path(self, directory: &Path) -> PathBuf {
        directory.join(format!("{self}{TEMPORARY}"))
    }
}

impl fmt::Display for StoreName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreName::Store => f.write_str("STORE"),
            StoreName::Lock => f.write_str("LOCK"),
            StoreName::Backup(backup) => write!(f, "{backup:06}.backup"),
            StoreName::Table { number, table_id, size_bytes } => {
                write!(f, "{number:06}-{:032x}-{size_bytes}.sst", u128::from_be_bytes(*table_id))
            }
            StoreName::Wal { backup, number } => write!(f, "{backup:06}-{number:06}.wal"),
        }
    }
}
