//! Who reads a database beside its writer, and which states they hold; the protocol is described in
//! docs/format/readers.md.
//!
//! A reader registers by a locked file whose name says which state it holds. The writer looks at the
//! registrations before it removes a file or writes over one.

use crate::base::FileNumber;
use crate::fs::{FileLock, FileSystem, Origin, World};
use crate::{Error, ErrorKind, Result};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The directory of the registrations.
pub(crate) const DIRECTORY: &str = "READERS";

/// So many ids are tried: another one is only needed when a writer comes across a registration at
/// the moment when it is made.
const ATTEMPTS: usize = 100;

/// So often are registrations listed again because one has come to.
const LISTINGS_MAX: usize = 100;

/// How far a manifest has been written or read: what comes later has a larger one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ManifestPosition {
    /// The manifest.
    pub number: FileNumber,
    /// The offset behind its last edit.
    pub offset: u64,
}

/// The registration of one reader, until it is dropped.
pub(crate) struct ReaderRegistration {
    files: Arc<dyn FileSystem>,
    directory: PathBuf,
    id: u64,
    path: PathBuf,
    /// Who registered: a child of a fork leaves the file to its parent.
    origin: Origin,
    /// Given up after the file is removed.
    _lock: Box<dyn FileLock>,
}

impl ReaderRegistration {
    /// Registers a reader that does not know its state yet: from now on everything is kept that a
    /// state read later needs. `None` where nothing can be written.
    pub(crate) fn join(world: &World, directory: &Path) -> Result<Option<Self>> {
        let files = &world.files;
        let readers = directory.join(DIRECTORY);
        match files.create_directory(&readers) {
            Err(error) if error.kind() == ErrorKind::ReadOnly => return Ok(None),
            made => made?,
        }
        for _ in 0..ATTEMPTS {
            let id = world.environment.random_u128() as u64;
            let path = readers.join(name_of(id, None));
            let lock = match files.lock(&path) {
                Ok(lock) => lock,
                Err(error) if error.kind() == ErrorKind::ReadOnly => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Locked => continue,
                Err(error) => return Err(error),
            };
            if files.exists(&path)? {
                let files = Arc::clone(files);
                return Ok(Some(ReaderRegistration {
                    files,
                    directory: readers,
                    id,
                    path,
                    origin: Origin::here(),
                    _lock: lock,
                }));
            }
        }
        Err(Error::new(ErrorKind::Locked, "a reader could not be registered: try again")
            .in_file(readers))
    }

    /// Says which state the reader holds.
    pub(crate) fn hold(&mut self, position: ManifestPosition) -> Result<()> {
        let path = self.directory.join(name_of(self.id, Some(position)));
        self.files.rename(&self.path, &path)?;
        self.path = path;
        Ok(())
    }
}

impl Drop for ReaderRegistration {
    fn drop(&mut self) {
        if self.origin.is_here() {
            // A file that stays is one that nobody has locked: the writer removes it.
            let _ = self.files.remove(&self.path);
        }
    }
}

/// The readers that a writer found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Readers {
    /// How many there are.
    pub(crate) count: u64,
    /// The oldest state that one of them holds.
    pub(crate) oldest: Option<ManifestPosition>,
}

impl Readers {
    /// Looks at all registrations, and removes those of dead processes.
    pub(crate) fn look(files: &dyn FileSystem, directory: &Path) -> Result<Readers> {
        let directory = directory.join(DIRECTORY);
        if !files.exists(&directory)? {
            return Ok(Readers::default());
        }
        let mut known = BTreeSet::new();
        let mut living = BTreeSet::new();
        for _ in 0..LISTINGS_MAX {
            let names: BTreeSet<PathBuf> = files.list(&directory)?.into_iter().collect();
            let new: Vec<_> = names.difference(&known).cloned().collect();
            if new.is_empty() {
                break;
            }
            for name in new {
                if let Some(position) = name.to_str().and_then(position_of)
                    && is_living(files, &directory.join(&name))?
                {
                    living.insert((name.clone(), position));
                }
                known.insert(name);
            }
        }
        let positions = living.iter().map(|(_, position)| *position);
        Ok(Readers { count: living.len() as u64, oldest: positions.min() })
    }

    /// Whether a reader may need a file that was let go at a position.
    pub(crate) fn hold(&self, released: ManifestPosition) -> bool {
        self.oldest.is_some_and(|oldest| oldest < released)
    }
}

/// Whether a process holds the registration; removes it if none does.
fn is_living(files: &dyn FileSystem, path: &Path) -> Result<bool> {
    if files.is_locked(path)? {
        return Ok(true);
    }
    if !files.exists(path)? {
        return Ok(false);
    }
    match files.lock(path) {
        Ok(lock) => {
            let removed = files.remove(path);
            drop(lock);
            match removed {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
                _ => Ok(false),
            }
        }
        Err(error) if error.kind() == ErrorKind::Locked => Ok(true),
        Err(error) => Err(error),
    }
}

fn name_of(id: u64, position: Option<ManifestPosition>) -> String {
    match position {
        None => format!("{id:016x}.lock"),
        Some(ManifestPosition { number, offset }) => format!("{id:016x}-{number}-{offset}.lock"),
    }
}

/// The state that a registration holds by its name; `None` for another file.
fn position_of(name: &str) -> Option<ManifestPosition> {
    let mut parts = name.strip_suffix(".lock")?.split('-');
    let id = u64::from_str_radix(parts.next()?, 16).ok()?;
    let position = match (parts.next(), parts.next(), parts.next()) {
        (None, ..) => None,
        (Some(number), Some(offset), None) => {
            Some(ManifestPosition { number: number.parse().ok()?, offset: offset.parse().ok()? })
        }
        _ => return None,
    };
    (name == name_of(id, position)).then(|| position.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::{CrashKeep, MemoryEnvironment, MemoryFileSystem};

    fn world() -> (MemoryFileSystem, World) {
        let files = MemoryFileSystem::new();
        let environment = Arc::new(MemoryEnvironment::new(1));
        files.create_directory(Path::new("/db")).unwrap();
        (files.clone(), World { files: Arc::new(files), environment })
    }

    fn at(number: FileNumber, offset: u64) -> ManifestPosition {
        ManifestPosition { number, offset }
    }

    #[test]
    fn the_oldest_reader_counts_and_a_joining_one_holds_everything() {
        let (_, world) = world();
        let directory = Path::new("/db");
        let look = || Readers::look(&*world.files, directory).unwrap();
        assert_eq!(look(), Readers::default());
        let mut first = ReaderRegistration::join(&world, directory).unwrap().unwrap();
        assert!(look().hold(at(1, 1)));
        first.hold(at(7, 300)).unwrap();
        assert!(!look().hold(at(7, 300)) && look().hold(at(7, 301)) && look().hold(at(8, 0)));
        assert!(!look().hold(at(6, 900)));
        let mut second = ReaderRegistration::join(&world, directory).unwrap().unwrap();
        assert!(look().hold(at(2, 2)));
        second.hold(at(9, 5)).unwrap();
        assert_eq!(look(), Readers { count: 2, oldest: Some(at(7, 300)) });
        drop(first);
        assert_eq!(look(), Readers { count: 1, oldest: Some(at(9, 5)) });
        drop(second);
        assert_eq!(look(), Readers::default());
    }

    #[test]
    fn the_dead_are_removed_and_strangers_left_alone() {
        let (files, world) = world();
        let directory = Path::new("/db");
        let mut reader = ReaderRegistration::join(&world, directory).unwrap().unwrap();
        reader.hold(at(7, 300)).unwrap();
        files.lock(&directory.join("READERS/notes.txt")).unwrap();
        // The end of the process: its files stay and its locks go.
        let after = files.crash_clone(0, CrashKeep::Everything);
        assert_eq!(after.list(&directory.join("READERS")).unwrap().len(), 2);
        assert_eq!(Readers::look(&after, directory).unwrap(), Readers::default());
        let left = after.list(&directory.join("READERS")).unwrap();
        assert_eq!(left, [PathBuf::from("notes.txt")]);
        assert_eq!(Readers::look(&files, directory).unwrap().count, 1);
    }

    #[test]
    fn only_names_that_are_written_are_registrations() {
        assert_eq!(position_of("00000000000000ff.lock"), Some(at(0, 0)));
        assert_eq!(position_of("00000000000000ff-12-3456.lock"), Some(at(12, 3456)));
        for name in ["ff.lock", "00000000000000FF.lock", "00000000000000ff-1.lock", "LOCK", ""] {
            assert_eq!(position_of(name), None, "{name}");
        }
        for name in
            ["00000000000000ff-01-2.lock", "00000000000000ff-1-2-3.lock", "00000000000000ff"]
        {
            assert_eq!(position_of(name), None, "{name}");
        }
    }

    #[test]
    fn nothing_is_registered_where_nothing_can_be_written() {
        let (files, world) = world();
        files.set_read_only(true);
        assert!(ReaderRegistration::join(&world, Path::new("/db")).unwrap().is_none());
        assert_eq!(Readers::look(&files, Path::new("/db")).unwrap(), Readers::default());
    }
}
