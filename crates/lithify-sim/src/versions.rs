//! Files of later versions: whatever has a feature that this version does not know is refused, and
//! nothing of it is read or written.
//!
//! A small database has a file of every kind that carries feature bits. A case sets one bit in one
//! of them, with the checksum put right, and opens the database.

use crate::check::{Check, Finding, Tally};
use lithify::format::Checksum;
use lithify::fs::{
    FileSystem, MemoryEnvironment, MemoryFileSystem, OpenMode, World, read_exact_at,
};
use lithify::{CfOptions, Db, ErrorKind, Options};
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const DIRECTORY: &str = "/base";

/// Bits of a word of features.
const BITS: u64 = 32;

/// The check; see the module.
pub struct Versions;

/// Where a kind of file has its features.
struct Kind {
    magic: &'static [u8],
    /// The bytes that the checksum covers, counted from the start of the file or back from its end;
    /// the checksum follows them.
    covered: (From, usize, usize),
    /// From the start of those to the incompatible bits.
    incompatible: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum From {
    Start,
    End,
}

const KINDS: [Kind; 3] = [
    Kind { magic: b"LITHMAN\n", covered: (From::Start, 0, 68), incompatible: 20 },
    Kind { magic: b"LITHWAL\n", covered: (From::Start, 0, 68), incompatible: 20 },
    Kind { magic: b"lithtabl", covered: (From::End, 104, 92), incompatible: 80 },
];

impl Kind {
    fn is_of(&self, bytes: &[u8]) -> bool {
        match self.covered.0 {
            From::Start => bytes.starts_with(self.magic),
            From::End => bytes.ends_with(self.magic),
        }
    }

    /// Sets an incompatible bit and puts the checksum right.
    fn set_bit(&self, bytes: &mut [u8], bit: u64) {
        let (from, offset, size) = self.covered;
        let start = if from == From::Start { offset } else { bytes.len() - offset };
        bytes[start + self.incompatible + bit as usize / 8] |= 1 << (bit % 8);
        let checksum = Checksum::of(&bytes[start..start + size]);
        bytes[start + size..start + size + 4].copy_from_slice(&checksum.to_le_bytes());
    }
}

fn open(files: &MemoryFileSystem) -> lithify::Result<Db> {
    let options = Options { background_threads: 0, ..Options::default() };
    let (files, environment) = (Arc::new(files.clone()), Arc::new(MemoryEnvironment::new(1)));
    Db::open_in(DIRECTORY, options, World { files, environment })
}

/// A database with a table, a log segment and a manifest.
fn database() -> lithify::Result<MemoryFileSystem> {
    let files = MemoryFileSystem::new();
    let db = open(&files)?;
    let family = db.column_family("rocks", CfOptions::default())?;
    family.put(b"basalt", b"igneous")?;
    family.flush()?;
    family.put(b"chalk", b"sedimentary")?;
    db.close()?;
    Ok(files)
}

/// The file of a kind, and its bytes.
fn file_of(files: &MemoryFileSystem, kind: &Kind) -> lithify::Result<Option<(PathBuf, Vec<u8>)>> {
    for name in files.list(Path::new(DIRECTORY))? {
        let path = Path::new(DIRECTORY).join(name);
        let file = files.open(&path, OpenMode::Read)?;
        let bytes = read_exact_at(&*file, 0, file.length()? as usize)?;
        if kind.is_of(&bytes) {
            return Ok(Some((path, bytes)));
        }
    }
    Ok(None)
}

fn run(kind: &Kind, bit: u64) -> lithify::Result<Result<(), String>> {
    let files = database()?;
    let magic = kind.magic.escape_ascii();
    let Some((path, mut bytes)) = file_of(&files, kind)? else {
        return Ok(Err(format!("there is no file of kind {magic}")));
    };
    kind.set_bit(&mut bytes, bit);
    files.open(&path, OpenMode::ReadWrite)?.write_at(&[IoSlice::new(&bytes)], 0)?;
    Ok(match open(&files) {
        Ok(_) => Err(format!("a file of kind {magic} with the unknown bit {bit} was read")),
        Err(error) if error.kind() == ErrorKind::Unsupported => Ok(()),
        Err(error) => Err(format!("{magic} with the unknown bit {bit}: {error}")),
    })
}

impl Check for Versions {
    fn name(&self) -> &'static str {
        "versions"
    }

    fn about(&self) -> &'static str {
        "files with features of later versions are refused, whatever kind they are of"
    }

    fn cases(&self) -> Option<u64> {
        // Bits 0 and 1 are known for tables.
        Some(KINDS.len() as u64 * (BITS - 2))
    }

    fn run_case(&self, case: u64, tally: &mut Tally) -> Result<(), Finding> {
        let kind = &KINDS[case as usize % KINDS.len()];
        let bit = 2 + case / KINDS.len() as u64;
        tally.count("unknown features", 1);
        let outcome = run(kind, bit).unwrap_or_else(|error| Err(error.to_string()));
        outcome.map_err(|what| Finding::new(self, case, what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::run_case;

    #[test]
    fn unknown_features_of_every_kind_of_file_are_refused() {
        let mut tally = Tally::default();
        for case in 0..Versions.cases().unwrap() {
            run_case(&Versions, case, &mut tally).unwrap();
        }
    }
}
