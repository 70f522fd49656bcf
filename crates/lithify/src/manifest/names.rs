//! The names of a database's files, in one place.

use crate::base::FileNumber;
use std::fmt;
use std::path::{Path, PathBuf};

/// A file of this name marks a directory as one that does not hold a database yet: somebody is
/// making one there, or did not end.
pub(crate) const INCOMPLETE: &str = "INCOMPLETE";

/// The name of a file of the engine. Its `Display` is the name in the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FileName {
    /// `NNNNNN.sst`: a table.
    Table(FileNumber),
    /// `NNNNNN.wal`: a segment of the write-ahead log.
    Wal(FileNumber),
    /// `MANIFEST-NNNNNN`: a manifest.
    Manifest(FileNumber),
    /// `CURRENT`: which manifest is in force.
    Current,
    /// `CURRENT.tmp`: the next `CURRENT`, being written.
    CurrentTemporary,
    /// `WITNESS`: how far manifest and log were known to be durable.
    Witness,
    /// `HEAT`: what policies that decide have observed of their levels.
    Heat,
    /// `LOCK`: held by the process that has the database open.
    Lock,
}

impl FileName {
    /// The file with that name; `None` for a name that the engine does not give.
    pub fn parse(name: &str) -> Option<FileName> {
        let parsed = match name {
            "CURRENT" => FileName::Current,
            "CURRENT.tmp" => FileName::CurrentTemporary,
            "WITNESS" => FileName::Witness,
            "HEAT" => FileName::Heat,
            "LOCK" => FileName::Lock,
            _ => match (name.strip_prefix("MANIFEST-"), name.rsplit_once('.')) {
                (Some(digits), _) => FileName::Manifest(parse_number(digits)?),
                (None, Some((digits, "sst"))) => FileName::Table(parse_number(digits)?),
                (None, Some((digits, "wal"))) => FileName::Wal(parse_number(digits)?),
                _ => return None,
            },
        };
        Some(parsed)
    }

    /// The file at that path.
    pub fn of_path(path: &Path) -> Option<FileName> {
        FileName::parse(path.file_name()?.to_str()?)
    }

    /// The path of the file in `directory`.
    pub fn path(self, directory: &Path) -> PathBuf {
        directory.join(self.to_string())
    }

    /// The number in the name.
    pub fn number(self) -> Option<FileNumber> {
        match self {
            FileName::Table(number) | FileName::Wal(number) | FileName::Manifest(number) => {
                Some(number)
            }
            FileName::Current
            | FileName::CurrentTemporary
            | FileName::Witness
            | FileName::Heat
            | FileName::Lock => None,
        }
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileName::Table(number) => write!(f, "{number:06}.sst"),
            FileName::Wal(number) => write!(f, "{number:06}.wal"),
            FileName::Manifest(number) => write!(f, "MANIFEST-{number:06}"),
            FileName::Current => f.write_str("CURRENT"),
            FileName::CurrentTemporary => f.write_str("CURRENT.tmp"),
            FileName::Witness => f.write_str("WITNESS"),
            FileName::Heat => f.write_str("HEAT"),
            FileName::Lock => f.write_str("LOCK"),
        }
    }
}

/// Only the form that is written: two names must never mean one file.
fn parse_number(digits: &str) -> Option<FileNumber> {
    let number = digits.parse().ok()?;
    (number > 0 && digits == format!("{number:06}")).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::FileName;

    #[test]
    fn names_round_trip_and_strangers_are_left_alone() {
        let names = [
            "000001.sst",
            "1234567.wal",
            "MANIFEST-000042",
            "CURRENT",
            "CURRENT.tmp",
            "WITNESS",
            "HEAT",
            "LOCK",
        ];
        for name in names {
            assert_eq!(FileName::parse(name).map(|file| file.to_string()).as_deref(), Some(name));
        }
        let strangers = [
            "",
            "1.sst",
            "0000001.sst",
            "000000.sst",
            "+00001.sst",
            "000001.log",
            "000001",
            "sst",
            "MANIFEST-",
            "MANIFEST-1",
            "MANIFEST-000001.tmp",
            "current",
            "99999999999999999999.sst",
        ];
        for name in strangers {
            assert_eq!(FileName::parse(name), None, "{name}");
        }
    }
}
