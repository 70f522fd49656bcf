//! Damage to whole files: cut, zeroed, gone, longer, or another file in their place.

use super::sample::{PATH, Sample, read, stranger, write};
use super::structure::Anatomy;
use lithify::Result;
use lithify::fs::{FileSystem, MemoryFileSystem, OpenMode};
use std::io::IoSlice;
use std::path::{Path, PathBuf};

/// Sizes of pages that a disk or a file system may lose.
const PAGE_SIZES: [u64; 2] = [512, 4096];

/// What is done to a file of a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It ends here.
    Cut(u64),
    /// A page of it reads as zeros: its size and number.
    ZeroPage(u64, u64),
    /// It is gone.
    Missing,
    /// So many bytes of something else follow.
    Longer(usize),
    /// It is the file of that name of another database.
    Foreign(String),
    /// It and another file have changed names.
    Exchanged(String),
    /// It is a copy of another file.
    CopyOf(String),
}

macro_rules! counters {
    ($name:literal) => {
        [concat!("tried: ", $name), concat!("detected: ", $name), concat!("harmless: ", $name)]
    };
}

impl Change {
    /// The names of its counters: tried, detected, harmless.
    pub fn counters(&self) -> [&'static str; 3] {
        match self {
            Change::Cut(_) => counters!("cut"),
            Change::ZeroPage(..) => counters!("a page of zeros"),
            Change::Missing => counters!("missing"),
            Change::Longer(_) => counters!("longer"),
            Change::Foreign(_) => counters!("from another database"),
            Change::Exchanged(_) => counters!("names exchanged"),
            Change::CopyOf(_) => counters!("a copy of another"),
        }
    }

    /// Does it.
    ///
    /// # Errors
    /// What the file system refuses.
    pub fn apply(&self, files: &MemoryFileSystem, name: &str) -> Result<()> {
        let path = path_of(name);
        match self {
            Change::Cut(length) => files.open(&path, OpenMode::ReadWrite)?.truncate(*length),
            Change::ZeroPage(size, number) => {
                let file = files.open(&path, OpenMode::ReadWrite)?;
                let start = size * number;
                let length = (*size).min(file.length()? - start) as usize;
                file.write_at(&[IoSlice::new(&vec![0; length])], start)
            }
            Change::Missing => files.remove(&path),
            Change::Longer(count) => {
                let garbage: Vec<u8> = (0..*count).map(|at| (at * 89 + 17) as u8).collect();
                let file = files.open(&path, OpenMode::ReadWrite)?;
                file.append(&[IoSlice::new(&garbage)]).map(drop)
            }
            Change::Foreign(other) => write(files, &path, &stranger().content(other)),
            Change::Exchanged(other) => {
                let (mine, other_path) = (read(files, &path)?, path_of(other));
                let others = read(files, &other_path)?;
                write(files, &path, &others)?;
                write(files, &other_path, &mine)
            }
            Change::CopyOf(other) => {
                let others = read(files, &path_of(other))?;
                write(files, &path, &others)
            }
        }
    }
}

/// The path of a file of a sample.
pub fn path_of(name: &str) -> PathBuf {
    Path::new(PATH).join(name)
}

/// Everything that is done to one file.
pub fn changes(sample: &Sample, anatomies: &[Anatomy], file: &Anatomy) -> Vec<Change> {
    let mut changes = vec![Change::Missing];
    changes.extend([1, 7, 8, 40, 5000].map(Change::Longer));
    changes.extend((0..file.size).map(Change::Cut));
    let content = sample.content(&file.name);
    for size in PAGE_SIZES {
        for (number, page) in content.chunks(size as usize).enumerate() {
            if page.iter().any(|byte| *byte != 0) {
                changes.push(Change::ZeroPage(size, number as u64));
            }
        }
    }
    let is_alike = |name: &str| kind_of(name) == kind_of(&file.name);
    let foreign = stranger().names().into_iter().filter(|name| is_alike(name));
    changes.extend(foreign.map(Change::Foreign));
    for other in anatomies {
        if other.name != file.name && is_alike(&other.name) {
            changes.push(Change::Exchanged(other.name.clone()));
            changes.push(Change::CopyOf(other.name.clone()));
        }
    }
    changes
}

/// What the name says that the file is.
fn kind_of(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((_, kind)) => kind,
        None => name.split('-').next().unwrap_or(name),
    }
}
