//! Floor 1: the only room that touches files, clocks, threads and pages of memory.
//!
//! Owns: the [`FileSystem`], [`File`], [`Environment`] and [`Event`] traits and their
//! implementations; copying whole files, directories that appear whole or not at all, and memory in
//! whole pages. In what systems differ is in `system` and `pages` alone.
//! Everything above reads, writes, waits, sleeps and starts threads through them, so that a
//! simulator can own every one of these.
//!
//! Promises: calls are safe from any thread; errors name the path. It never maps files into
//! memory (an I/O error would arrive as a signal) and never retries.

mod counting;
mod directory;
mod exact_read;
#[cfg(feature = "internals")]
mod memory;
mod pages;
mod rate;
mod system;
mod transfer;

#[cfg(test)]
mod tests;

internal_use!(counting::{CountingFileSystem, FileCounts});
pub(crate) use directory::{StagedDirectory, make_directory, sync_name};
internal_use!(exact_read::read_exact_at);
#[cfg(feature = "internals")]
#[doc(hidden)]
pub use memory::{
    CrashKeep, FileCall, FileCallKind, FileFault, MemoryEnvironment, MemoryFileSystem, Survives,
    SyncPause, Unsynced, UnsyncedChange, WaitWatch, short_write,
};
pub(crate) use pages::{HUGE_PAGE_BYTES, MappedPages};
pub(crate) use rate::RateLimit;
pub(crate) use std::thread::ThreadId;
pub(crate) use system::Origin;
pub use system::{SystemEnvironment, SystemFileSystem};
pub(crate) use transfer::{Pieces, Transfer};
pub use transfer::{TransferListener, TransferOptions, TransferProgress};
internal_use!(transfer::PIECE_BYTES);

use crate::Result;
pub use crate::base::Clock;
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// What a file is opened for. Every write mode also reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Reading only; the file must exist.
    Read,
    /// A new file; it must not exist.
    CreateNew,
    /// A new file, or an existing one cut to nothing.
    CreateOrTruncate,
    /// An existing file, for overwriting in place (a recycled WAL segment).
    ReadWrite,
}

/// How a file will be used; a hint, never needed for correctness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Read once from front to back.
    Sequential,
    /// Read at random places.
    Random,
    /// The range is about to be read: the system may start to.
    WillNeed,
    /// The cached pages of the range are not needed any more.
    DontNeed,
}

/// One operation of a background job, with buffers that it owns while in flight.
#[derive(Debug)]
pub enum IoRequest {
    /// Fill `buffer` (its length says how much) from `offset`; ends short only at the end of file.
    Read {
        /// Where to read.
        offset: u64,
        /// What to fill.
        buffer: Vec<u8>,
    },
    /// Write all of `data` at `offset`.
    Write {
        /// Where to write.
        offset: u64,
        /// What to write.
        data: Vec<u8>,
    },
    /// Make everything written so far durable.
    SyncData,
}

/// What became of an [`IoRequest`]: the buffer comes back, cut to what was read.
#[derive(Debug)]
pub struct IoOutcome {
    /// The request's buffer (empty for a sync); after a read cut to the bytes read.
    pub buffer: Vec<u8>,
    /// Whether it worked.
    pub result: Result<()>,
}

/// An operation in flight. `take` gives the outcome once, when it is there.
#[derive(Clone)]
pub struct Ticket {
    slot: Arc<Mutex<Option<IoOutcome>>>,
}

impl Ticket {
    /// A ticket and nothing in it yet.
    pub fn new() -> Self {
        Ticket { slot: Arc::new(Mutex::new(None)) }
    }

    /// Puts the outcome in; called by the file system, which then notifies its event.
    pub fn complete(&self, outcome: IoOutcome) {
        *self.slot.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(outcome);
    }

    /// The outcome, if the operation has ended and nobody took it yet.
    pub fn take(&self) -> Option<IoOutcome> {
        self.slot.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take()
    }

    /// Whether the outcome is there.
    pub fn is_complete(&self) -> bool {
        self.slot.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).is_some()
    }
}

impl Default for Ticket {
    fn default() -> Self {
        Ticket::new()
    }
}

/// The answer to a submission: done at once (system), or later (a ring, a simulator).
pub enum Submission {
    /// It has been done.
    Done(IoOutcome),
    /// It will be done; poll the ticket.
    Pending(Ticket),
}

/// An open file. All methods may be called from any thread at once, except that two overlapping
/// writes are the caller's mistake.
pub trait File: Send + Sync {
    /// The path it was opened at (for errors; a rename does not change it).
    fn path(&self) -> &Path;
    /// The current length in bytes.
    fn length(&self) -> Result<u64>;
    /// The length when it was opened, for a file that nobody writes any more.
    fn opened_length(&self) -> Result<u64> {
        self.length()
    }
    /// Reads at `offset` until `buffer` is full or the file ends; returns the bytes read.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize>;
    /// Reads one stretch at `offset` into several buffers; returns the bytes read in all.
    fn read_vectored_at(&self, buffers: &mut [&mut [u8]], offset: u64) -> Result<usize> {
        read_each_at(self, buffers, offset)
    }
    /// Writes all of the buffers, one after the other, at `offset`.
    fn write_at(&self, buffers: &[IoSlice<'_>], offset: u64) -> Result<()>;
    /// Writes all of the buffers at the end; returns the offset at which they start.
    fn append(&self, buffers: &[IoSlice<'_>]) -> Result<u64>;
    /// Makes all written bytes, and the length, durable.
    fn sync_data(&self) -> Result<()>;
    /// Starts writing back a range; a pacing hint that promises nothing.
    fn sync_range(&self, offset: u64, length: u64) -> Result<()>;
    /// Reserves space without changing the length that readers see where the system can.
    fn preallocate(&self, offset: u64, length: u64) -> Result<()>;
    /// Sets the length.
    fn truncate(&self, length: u64) -> Result<()>;
    /// Says how a range will be used; `length` 0 means to the end.
    fn advise(&self, offset: u64, length: u64, advice: Advice) -> Result<()>;
    /// The alignment that direct I/O on this file needs; `None` where it is not to be had.
    fn direct_io_alignment(&self) -> Option<usize>;
    /// Starts an operation. The default does it at once.
    fn submit(&self, request: IoRequest) -> Submission {
        Submission::Done(perform(self, request))
    }
}

/// Reads one stretch into several buffers by a call for each; returns the bytes read in all.
fn read_each_at<F: File + ?Sized>(
    file: &F,
    buffers: &mut [&mut [u8]],
    offset: u64,
) -> Result<usize> {
    let mut total = 0;
    for buffer in buffers {
        let count = file.read_at(buffer, offset + total as u64)?;
        total += count;
        if count < buffer.len() {
            break;
        }
    }
    Ok(total)
}

/// Does a request at once through the blocking calls.
pub(crate) fn perform<F: File + ?Sized>(file: &F, request: IoRequest) -> IoOutcome {
    match request {
        IoRequest::Read { offset, mut buffer } => match file.read_at(&mut buffer, offset) {
            Ok(count) => {
                buffer.truncate(count);
                IoOutcome { buffer, result: Ok(()) }
            }
            Err(error) => IoOutcome { buffer, result: Err(error) },
        },
        IoRequest::Write { offset, data } => {
            let result = file.write_at(&[IoSlice::new(&data)], offset);
            IoOutcome { buffer: data, result }
        }
        IoRequest::SyncData => IoOutcome { buffer: Vec::new(), result: file.sync_data() },
    }
}

/// A lock on a path, held until it is dropped.
pub trait FileLock: Send + Sync {}

/// A file system. Names that a call creates, renames or removes are durable only after
/// [`FileSystem::sync_directory`] of their directory.
pub trait FileSystem: Send + Sync {
    /// Opens a file.
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>>;
    /// Opens a file for reading past the page cache where the file system can, else like `open`.
    fn open_direct(&self, path: &Path) -> Result<Arc<dyn File>> {
        self.open(path, OpenMode::Read)
    }
    /// `path` in a form that still means the same after the process has changed its working directory. As it is
    /// where there is no such directory.
    fn absolute(&self, path: &Path) -> Result<PathBuf> {
        Ok(path.to_path_buf())
    }
    /// The name of the kind of file system that holds `path`, for messages: "ext4", "tmpfs".
    fn kind_name(&self, path: &Path) -> String;
    /// Whether there is a file or directory.
    fn exists(&self, path: &Path) -> Result<bool>;
    /// Whether it is a directory; an error if there is nothing.
    fn is_directory(&self, path: &Path) -> Result<bool>;
    /// The length of a file in bytes.
    fn length(&self, path: &Path) -> Result<u64>;
    /// Renames a file, replacing a file that was there; or a directory with all that is in it,
    /// whose new name must be free.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> Result<()>;
    /// Makes a hard link.
    fn link(&self, from: &Path, to: &Path) -> Result<()>;
    /// The names in a directory, sorted.
    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>>;
    /// Makes a directory and its parents; fine if it is there.
    fn create_directory(&self, path: &Path) -> Result<()>;
    /// Removes an empty directory.
    fn remove_directory(&self, path: &Path) -> Result<()>;
    /// Makes the names in a directory durable.
    fn sync_directory(&self, path: &Path) -> Result<()>;
    /// Takes an exclusive lock on a file, made if absent. [`crate::ErrorKind::Locked`] if held.
    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>>;
    /// Takes an exclusive lock on the directory that `file` is in, by that file. As [`FileSystem::lock`], and where
    /// the file system can, it keeps others out even if the file is removed.
    fn lock_directory(&self, file: &Path) -> Result<Box<dyn FileLock>> {
        self.lock(file)
    }
    /// Whether somebody holds the lock on a file. Changes nothing, so it works on a read-only file
    /// system too; a file that is not there is not locked. For a moment it may keep another one
    /// from taking the lock.
    fn is_locked(&self, path: &Path) -> Result<bool>;
    /// Whether somebody holds the lock on the directory that `file` is in, even if the file was removed. Changes
    /// nothing, as [`FileSystem::is_locked`].
    fn is_directory_locked(&self, file: &Path) -> Result<bool> {
        self.is_locked(file)
    }
    /// Bytes that can still be written to the file system that holds `path`.
    fn free_space(&self, path: &Path) -> Result<u64>;
}

/// A point to wait at. A waiter reads the generation, checks its condition, and waits for the
/// generation to move on: a notification in between is not lost.
pub trait Event: Send + Sync {
    /// The number of notifications so far.
    fn generation(&self) -> u64;
    /// Moves the generation on and wakes all waiters.
    fn notify_all(&self);
    /// Returns when the generation is no longer `seen` (true) or after `timeout_us` (false).
    fn wait(&self, seen: u64, timeout_us: Option<u64>) -> bool;
}

/// A started thread; `join` waits for its end.
pub trait Thread: Send + Sync {
    /// Waits for the end of the thread.
    fn join(self: Box<Self>);
}

/// Clocks, threads, waiting and randomness. The system's is the real thing; a simulator drives
/// a virtual clock and may have no threads at all.
pub trait Environment: Clock {
    /// A new point to wait at.
    fn new_event(&self) -> Arc<dyn Event>;
    /// Starts a named thread.
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> Result<Box<dyn Thread>>;
    /// Has the calling thread give way to others by so many nice levels more; a hint.
    fn give_way(&self, _nice: u32) {}
    /// 128 random bits, for table and database ids.
    fn random_u128(&self) -> u128;

    /// Does `work`, which is that call, and gives its CPU time in nanoseconds. A world in memory
    /// charges what a table says, so that what depends on it is a function of the seed.
    fn codec_cpu_ns(&self, _call: &CodecCall, work: &mut dyn FnMut()) -> u64 {
        let before = self.thread_cpu_ns();
        let start = self.thread_cpu_ns();
        work();
        let end = self.thread_cpu_ns();
        // Less what reading the clock takes.
        end.saturating_sub(start).saturating_sub(start.saturating_sub(before))
    }

    /// What the process has read so far; `None` where the system does not tell.
    fn bytes_read(&self) -> Option<BytesRead> {
        None
    }
}

/// A call of a codec.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CodecCall {
    /// The number of the codec.
    pub codec: u8,
    /// Its effort.
    pub effort: i32,
    /// Whether with a dictionary.
    pub has_dictionary: bool,
    /// Whether it encodes; else it decodes.
    pub encodes: bool,
    /// Bytes before encoding.
    pub raw_bytes: u64,
}

/// Bytes that a process has read of files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BytesRead {
    /// By calls.
    pub by_calls: u64,
    /// From devices.
    pub from_devices: u64,
}

/// The calling thread, to be told from others.
pub(crate) fn this_thread() -> ThreadId {
    std::thread::current().id()
}

/// The outside world, as the engine sees it.
#[derive(Clone)]
pub struct World {
    /// Files.
    pub files: Arc<dyn FileSystem>,
    /// Clocks, threads, waiting.
    pub environment: Arc<dyn Environment>,
}
