//! The ways in which a call to the file system fails.

use lithify::ErrorKind;
use lithify::fs::{FileCall, FileCallKind, FileSystem as _, MemoryFileSystem, short_write};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A run that makes so many calls more than without a failure hangs.
const CALLS_MORE_MAX: u64 = 50_000;

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// With an input/output error, this once. Of a sync it is the failed sync, after which what
    /// was not synced never reaches the medium.
    IoOnce,
    /// With an input/output error, and so does every call from then on.
    IoForever,
    /// For want of space, this once.
    FullOnce,
    /// For want of space, and so does every call that takes space, until there is some again.
    FullForever,
    /// An input/output error after a part was written.
    ShortWrite,
    /// No space after a part was written.
    ShortWriteFull,
    /// A file that is to be removed is gone: somebody else was first.
    Gone,
}

/// All of them.
pub const FAILURES: [Failure; 7] = [
    Failure::IoOnce,
    Failure::IoForever,
    Failure::FullOnce,
    Failure::FullForever,
    Failure::ShortWrite,
    Failure::ShortWriteFull,
    Failure::Gone,
];

/// Whether a call takes space on the disk.
fn takes_space(kind: FileCallKind) -> bool {
    use FileCallKind as K;
    matches!(kind, K::Create | K::Write | K::Append | K::Preallocate | K::Link | K::CreateDirectory)
}

impl Failure {
    /// Its name in figures.
    pub fn name(self) -> &'static str {
        match self {
            Failure::IoOnce => "EIO once",
            Failure::IoForever => "EIO for ever",
            Failure::FullOnce => "ENOSPC once",
            Failure::FullForever => "ENOSPC until space comes back",
            Failure::ShortWrite => "short write, EIO",
            Failure::ShortWriteFull => "short write, ENOSPC",
            Failure::Gone => "removed by somebody else",
        }
    }

    /// Whether a call can fail so.
    pub fn is_of(self, kind: FileCallKind) -> bool {
        match self {
            Failure::IoOnce | Failure::IoForever => true,
            Failure::FullOnce => takes_space(kind) || is_sync(kind),
            Failure::FullForever => takes_space(kind),
            Failure::ShortWrite | Failure::ShortWriteFull => {
                matches!(kind, FileCallKind::Write | FileCallKind::Append)
            }
            Failure::Gone => kind == FileCallKind::Remove,
        }
    }

    /// Whether an error of that kind tells of it.
    pub fn explains(self, kind: ErrorKind) -> bool {
        match self {
            Failure::IoOnce | Failure::IoForever | Failure::ShortWrite => {
                matches!(kind, ErrorKind::Io | ErrorKind::Poisoned)
            }
            Failure::FullOnce | Failure::FullForever | Failure::ShortWriteFull => {
                matches!(kind, ErrorKind::NoSpace | ErrorKind::Poisoned)
            }
            Failure::Gone => false,
        }
    }

    /// Whether the database has to go on without being opened again: a full disk changes nothing,
    /// and of a table nothing is live before the manifest names it. A sync of log, manifest or names
    /// that fails is another matter, whatever it says.
    pub fn must_go_on(self, call: NotedCall) -> bool {
        match self {
            Failure::FullOnce | Failure::FullForever | Failure::ShortWriteFull => {
                call.is_of_table || !is_sync(call.kind)
            }
            Failure::IoOnce | Failure::ShortWrite => call.is_of_table,
            Failure::IoForever => false,
            Failure::Gone => true,
        }
    }

    fn error(self, call: &FileCall<'_>) -> io::Error {
        let part = call.length / 3;
        match self {
            Failure::IoOnce | Failure::IoForever => io::Error::from_raw_os_error(5),
            Failure::FullOnce | Failure::FullForever => io::ErrorKind::StorageFull.into(),
            Failure::ShortWrite => short_write(part, io::ErrorKind::Other),
            Failure::ShortWriteFull => short_write(part, io::ErrorKind::StorageFull),
            Failure::Gone => io::ErrorKind::NotFound.into(),
        }
    }
}

/// Whether a call makes something durable.
pub fn is_sync(kind: FileCallKind) -> bool {
    use FileCallKind as K;
    matches!(kind, K::SyncData | K::SyncDataEnd | K::SyncDirectory | K::SyncDirectoryEnd)
}

/// A failure that waits for its call.
pub struct Fault {
    files: MemoryFileSystem,
    is_mended: Arc<AtomicBool>,
}

impl Fault {
    /// Lets the call of that number fail, of a run that makes so many without a failure.
    pub fn set(files: &MemoryFileSystem, failure: Failure, at: u64, calls: u64) -> Fault {
        let is_mended = Arc::new(AtomicBool::new(false));
        let (mended, disk) = (Arc::clone(&is_mended), files.clone());
        files.set_fault(Box::new(move |call| {
            assert!(call.index < calls + CALLS_MORE_MAX, "a hang: {} calls", call.index);
            let is_due = match failure {
                Failure::IoForever => call.index >= at,
                Failure::FullForever => call.index >= at && takes_space(call.kind),
                _ => call.index == at,
            };
            if !is_due || mended.load(Ordering::SeqCst) {
                return None;
            }
            if failure == Failure::Gone {
                // Whether it was there is for the call to say.
                let _ = disk.remove(call.path);
            }
            Some(failure.error(call))
        }));
        Fault { files: files.clone(), is_mended }
    }

    /// Whether the call has come.
    pub fn has_struck(&self, at: u64) -> bool {
        self.files.call_count() > at
    }

    /// From now on nothing fails.
    pub fn mend(&self) {
        self.is_mended.store(true, Ordering::SeqCst);
    }
}

impl Drop for Fault {
    fn drop(&mut self) {
        self.files.clear_fault();
    }
}

/// A call of a run without a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotedCall {
    /// What it does.
    pub kind: FileCallKind,
    /// Whether it is made to a table, not to the log, the manifest or the directory.
    pub is_of_table: bool,
}

impl NotedCall {
    fn of(call: &FileCall<'_>) -> NotedCall {
        let is_of_table = call.path.extension().is_some_and(|extension| extension == "sst");
        NotedCall { kind: call.kind, is_of_table }
    }
}

/// The calls of a run, in order.
pub struct Calls {
    files: MemoryFileSystem,
    noted: Arc<Mutex<Vec<NotedCall>>>,
}

impl Calls {
    /// Begins to note them.
    pub fn note(files: &MemoryFileSystem) -> Calls {
        let noted: Arc<Mutex<Vec<NotedCall>>> = Arc::default();
        let shared = Arc::clone(&noted);
        files.set_fault(Box::new(move |call| {
            let mut noted = shared.lock().unwrap_or_else(PoisonError::into_inner);
            noted.push(NotedCall::of(call));
            None
        }));
        Calls { files: files.clone(), noted }
    }

    /// Ends, and gives them.
    pub fn finish(self) -> Vec<NotedCall> {
        self.files.clear_fault();
        std::mem::take(&mut self.noted.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
