//! The calls to a memory file system: counted, and failed on demand.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(usize)]
pub enum FileCallKind {
    /// Opens an existing file.
    Open,
    /// Makes a file, or cuts one to nothing.
    Create,
    /// Looks whether a name exists.
    Exists,
    /// Looks whether a name is a directory.
    IsDirectory,
    /// Reads the length of a file, by name or by handle.
    Length,
    /// Renames a file or a directory.
    Rename,
    /// Removes a file.
    Remove,
    /// Makes a hard link.
    Link,
    /// Lists a directory.
    List,
    /// Makes a directory.
    CreateDirectory,
    /// Removes an empty directory.
    RemoveDirectory,
    /// Syncs a directory.
    SyncDirectory,
    /// Takes a lock.
    Lock,
    /// Asks for the free space.
    FreeSpace,
    /// Reads from a file.
    Read,
    /// Writes into a file at an offset.
    Write,
    /// Writes to the end of a file.
    Append,
    /// Syncs a file. Failing it gives up the writes it was for: no later sync saves them.
    SyncData,
    /// Starts writing back.
    SyncRange,
    /// Reserves space.
    Preallocate,
    /// Sets the length of a file.
    Truncate,
    /// Gives advice.
    Advise,
    /// No call but the moment before a sync of a file ends that has something to do: a part of
    /// what it covers is durable. Failing it fails the sync, which gives up the other part.
    SyncDataEnd,
    /// The same of a sync of a directory, which gives up nothing.
    SyncDirectoryEnd,
}

const KIND_COUNT: usize = FileCallKind::SyncDirectoryEnd as usize + 1;

impl FileCallKind {
    /// All kinds.
    pub const ALL: [FileCallKind; KIND_COUNT] = {
        use FileCallKind as K;
        [
            K::Open,
            K::Create,
            K::Exists,
            K::IsDirectory,
            K::Length,
            K::Rename,
            K::Remove,
            K::Link,
            K::List,
            K::CreateDirectory,
            K::RemoveDirectory,
            K::SyncDirectory,
            K::Lock,
            K::FreeSpace,
            K::Read,
            K::Write,
            K::Append,
            K::SyncData,
            K::SyncRange,
            K::Preallocate,
            K::Truncate,
            K::Advise,
            K::SyncDataEnd,
            K::SyncDirectoryEnd,
        ]
    };

    /// Whether the call is refused on a read-only disk.
    fn changes(self) -> bool {
        use FileCallKind as K;
        matches!(
            self,
            K::Create
                | K::Rename
                | K::Remove
                | K::Link
                | K::CreateDirectory
                | K::RemoveDirectory
                | K::Lock
                | K::Write
                | K::Append
                | K::Preallocate
                | K::Truncate
        )
    }
}

/// A call that is about to be made.
#[derive(Clone, Copy, Debug)]
pub struct FileCall<'a> {
    /// What it does.
    pub kind: FileCallKind,
    /// The path it names, or at which the file was opened; the old name of a rename or link.
    pub path: &'a Path,
    /// Where in the file, in bytes; 0 where it makes no sense.
    pub offset: u64,
    /// How much, in bytes; 0 where it makes no sense. The new length of a truncation.
    pub length: u64,
    /// The number of the call since the file system was made, from 0.
    pub index: u64,
}

/// Decides whether a call fails, and with what error.
pub type FileFault = dyn Fn(&FileCall<'_>) -> Option<io::Error> + Send + Sync;

/// An error for a hook to return of a write or append: so many of its bytes, from the start, are
/// written before it fails. Of another call it is an ordinary error.
pub fn short_write(bytes: u64, kind: io::ErrorKind) -> io::Error {
    io::Error::new(kind, ShortWrite { bytes })
}

#[derive(Debug)]
struct ShortWrite {
    bytes: u64,
}

impl fmt::Display for ShortWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the write ended after {} bytes", self.bytes)
    }
}

impl std::error::Error for ShortWrite {}

/// How many bytes are written before a call fails.
pub(super) fn written_before(error: &io::Error) -> u64 {
    let short = error.get_ref().and_then(|inner| inner.downcast_ref::<ShortWrite>());
    short.map_or(0, |short| short.bytes)
}

/// Counts, the fault hook and the read-only switch.
#[derive(Default)]
pub(super) struct Calls {
    next_index: AtomicU64,
    counts: [AtomicU64; KIND_COUNT],
    fault: RwLock<Option<Arc<FileFault>>>,
    read_only: AtomicBool,
}

impl Calls {
    pub(super) fn set_fault(&self, fault: Option<Arc<FileFault>>) {
        *self.fault.write().unwrap_or_else(|poisoned| poisoned.into_inner()) = fault;
    }

    pub(super) fn set_read_only(&self, read_only: bool) {
        self.read_only.store(read_only, Ordering::SeqCst);
    }

    pub(super) fn refuse_if_read_only(&self) -> io::Result<()> {
        if self.read_only.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        Ok(())
    }

    pub(super) fn count(&self, kind: FileCallKind) -> u64 {
        self.counts[kind as usize].load(Ordering::SeqCst)
    }

    pub(super) fn total(&self) -> u64 {
        self.next_index.load(Ordering::SeqCst)
    }

    /// Counts a call and says whether it may go on. No lock is held while the hook runs, so it
    /// may itself take a crash clone.
    pub(super) fn begin(
        &self,
        kind: FileCallKind,
        path: &Path,
        offset: u64,
        length: u64,
    ) -> io::Result<()> {
        let index = self.next_index.fetch_add(1, Ordering::SeqCst);
        self.counts[kind as usize].fetch_add(1, Ordering::SeqCst);
        if kind.changes() {
            self.refuse_if_read_only()?;
        }
        let fault = self.fault.read().unwrap_or_else(|poisoned| poisoned.into_inner()).clone();
        match fault.and_then(|fault| fault(&FileCall { kind, path, offset, length, index })) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}
