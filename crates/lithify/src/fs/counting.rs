//! A file system that counts what passes through it, for the ledger, and for checking the ledger.
//!
//! Owns: bytes, calls and syncs per class of file. It changes nothing and holds nothing back;
//! counts are exact once the calls have returned. Only what succeeded counts.

use super::{Advice, File, FileLock, FileSystem, IoOutcome, IoRequest, OpenMode, Submission};
use crate::Result;
use std::collections::BTreeMap;
use std::io::IoSlice;
use std::iter::Sum;
use std::ops::{Add, Sub};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What happened to the files of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileCounts {
    /// Reads that succeeded.
    pub reads: u64,
    /// Bytes that they returned.
    pub read_bytes: u64,
    /// Writes and appends that succeeded.
    pub writes: u64,
    /// Bytes that they wrote.
    pub written_bytes: u64,
    /// Data syncs that succeeded.
    pub syncs: u64,
    /// Bytes that were reserved.
    pub preallocated_bytes: u64,
}

impl FileCounts {
    fn combined(self, other: FileCounts, combine: fn(u64, u64) -> u64) -> FileCounts {
        FileCounts {
            reads: combine(self.reads, other.reads),
            read_bytes: combine(self.read_bytes, other.read_bytes),
            writes: combine(self.writes, other.writes),
            written_bytes: combine(self.written_bytes, other.written_bytes),
            syncs: combine(self.syncs, other.syncs),
            preallocated_bytes: combine(self.preallocated_bytes, other.preallocated_bytes),
        }
    }
}

impl Add for FileCounts {
    type Output = FileCounts;

    fn add(self, other: FileCounts) -> FileCounts {
        self.combined(other, u64::wrapping_add)
    }
}

/// What was counted since an earlier count.
impl Sub for FileCounts {
    type Output = FileCounts;

    fn sub(self, earlier: FileCounts) -> FileCounts {
        self.combined(earlier, u64::saturating_sub)
    }
}

impl Sum for FileCounts {
    fn sum<I: Iterator<Item = FileCounts>>(counts: I) -> FileCounts {
        counts.fold(FileCounts::default(), FileCounts::add)
    }
}

#[derive(Default)]
struct Counters {
    reads: AtomicU64,
    read_bytes: AtomicU64,
    writes: AtomicU64,
    written_bytes: AtomicU64,
    syncs: AtomicU64,
    preallocated_bytes: AtomicU64,
}

impl Counters {
    fn read(&self, bytes: usize) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.read_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn wrote(&self, bytes: usize) {
        self.writes.fetch_add(1, Ordering::Relaxed);
        self.written_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn synced(&self) {
        self.syncs.fetch_add(1, Ordering::Relaxed);
    }

    fn counts(&self) -> FileCounts {
        FileCounts {
            reads: self.reads.load(Ordering::Relaxed),
            read_bytes: self.read_bytes.load(Ordering::Relaxed),
            writes: self.writes.load(Ordering::Relaxed),
            written_bytes: self.written_bytes.load(Ordering::Relaxed),
            syncs: self.syncs.load(Ordering::Relaxed),
            preallocated_bytes: self.preallocated_bytes.load(Ordering::Relaxed),
        }
    }
}

/// The class of a file: its extension, or without one its name up to the first `-`, lower-cased:
/// `000007.sst` is `sst`, `MANIFEST-000003` is `manifest`.
fn class_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let class = match name.rsplit_once('.') {
        Some((_, extension)) => extension,
        None => name.split('-').next().unwrap_or_default(),
    };
    class.to_string()
}

/// Counts the bytes, calls and syncs on their way to another file system, by class of file: the
/// extension of the name under which it was opened, or without one the name up to the first
/// `-`, in lower case. A clone counts into the same place.
#[derive(Clone)]
pub struct CountingFileSystem {
    inner: Arc<dyn FileSystem>,
    classes: Arc<Mutex<BTreeMap<String, Arc<Counters>>>>,
    directory_syncs: Arc<AtomicU64>,
}

impl CountingFileSystem {
    /// Counts what goes to `inner`.
    pub fn new(inner: Arc<dyn FileSystem>) -> Self {
        CountingFileSystem { inner, classes: Arc::default(), directory_syncs: Arc::default() }
    }

    /// The counts of one class (`wal`, `sst`, `manifest`, ...); zeros if no such file was opened.
    pub fn counts(&self, class: &str) -> FileCounts {
        let classes = self.classes.lock().unwrap_or_else(PoisonError::into_inner);
        classes.get(class).map(|counters| counters.counts()).unwrap_or_default()
    }

    /// The counts of all classes of which a file was opened.
    pub fn all_counts(&self) -> BTreeMap<String, FileCounts> {
        let classes = self.classes.lock().unwrap_or_else(PoisonError::into_inner);
        classes.iter().map(|(class, counters)| (class.clone(), counters.counts())).collect()
    }

    /// The counts of all classes together.
    pub fn total(&self) -> FileCounts {
        self.all_counts().into_values().sum()
    }

    /// Directory syncs that succeeded.
    pub fn directory_syncs(&self) -> u64 {
        self.directory_syncs.load(Ordering::Relaxed)
    }

    pub(super) fn counted(&self, file: Arc<dyn File>) -> Arc<dyn File> {
        let mut classes = self.classes.lock().unwrap_or_else(PoisonError::into_inner);
        let counters = Arc::clone(classes.entry(class_of(file.path())).or_default());
        Arc::new(CountingFile { file, counters })
    }
}

impl FileSystem for CountingFileSystem {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        Ok(self.counted(self.inner.open(path, mode)?))
    }

    fn open_direct(&self, path: &Path) -> Result<Arc<dyn File>> {
        Ok(self.counted(self.inner.open_direct(path)?))
    }

    fn absolute(&self, path: &Path) -> Result<PathBuf> {
        self.inner.absolute(path)
    }

    fn kind_name(&self, path: &Path) -> String {
        self.inner.kind_name(path)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.inner.exists(path)
    }

    fn is_directory(&self, path: &Path) -> Result<bool> {
        self.inner.is_directory(path)
    }

    fn length(&self, path: &Path) -> Result<u64> {
        self.inner.length(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.inner.remove(path)
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.link(from, to)
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>> {
        self.inner.list(directory)
    }

    fn create_directory(&self, path: &Path) -> Result<()> {
        self.inner.create_directory(path)
    }

    fn remove_directory(&self, path: &Path) -> Result<()> {
        self.inner.remove_directory(path)
    }

    fn sync_directory(&self, path: &Path) -> Result<()> {
        self.inner.sync_directory(path)?;
        self.directory_syncs.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        self.inner.lock(path)
    }

    fn lock_directory(&self, file: &Path) -> Result<Box<dyn FileLock>> {
        self.inner.lock_directory(file)
    }

    fn is_locked(&self, path: &Path) -> Result<bool> {
        self.inner.is_locked(path)
    }

    fn is_directory_locked(&self, file: &Path) -> Result<bool> {
        self.inner.is_directory_locked(file)
    }

    fn free_space(&self, path: &Path) -> Result<u64> {
        self.inner.free_space(path)
    }
}

struct CountingFile {
    file: Arc<dyn File>,
    counters: Arc<Counters>,
}

fn total_length(buffers: &[IoSlice<'_>]) -> usize {
    buffers.iter().map(|buffer| buffer.len()).sum()
}

/// What a request was, remembered while its buffers are away.
#[derive(Clone, Copy)]
enum Submitted {
    Read,
    Write,
    Sync,
}

impl CountingFile {
    fn count_outcome(&self, submitted: Submitted, outcome: &IoOutcome) {
        if outcome.result.is_ok() {
            self.count(submitted, outcome.buffer.len());
        }
    }

    fn count(&self, submitted: Submitted, bytes: usize) {
        match submitted {
            Submitted::Read => self.counters.read(bytes),
            Submitted::Write => self.counters.wrote(bytes),
            Submitted::Sync => self.counters.synced(),
        }
    }
}

impl File for CountingFile {
    fn path(&self) -> &Path {
        self.file.path()
    }

    fn length(&self) -> Result<u64> {
        self.file.length()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let count = self.file.read_at(buffer, offset)?;
        self.counters.read(count);
        Ok(count)
    }

    fn read_vectored_at(&self, buffers: &mut [&mut [u8]], offset: u64) -> Result<usize> {
        let count = self.file.read_vectored_at(buffers, offset)?;
        self.counters.read(count);
        Ok(count)
    }

    fn write_at(&self, buffers: &[IoSlice<'_>], offset: u64) -> Result<()> {
        self.file.write_at(buffers, offset)?;
        self.counters.wrote(total_length(buffers));
        Ok(())
    }

    fn append(&self, buffers: &[IoSlice<'_>]) -> Result<u64> {
        let offset = self.file.append(buffers)?;
        self.counters.wrote(total_length(buffers));
        Ok(offset)
    }

    fn sync_data(&self) -> Result<()> {
        self.file.sync_data()?;
        self.counters.synced();
        Ok(())
    }

    fn sync_range(&self, offset: u64, length: u64) -> Result<()> {
        self.file.sync_range(offset, length)
    }

    fn preallocate(&self, offset: u64, length: u64) -> Result<()> {
        self.file.preallocate(offset, length)?;
        self.counters.preallocated_bytes.fetch_add(length, Ordering::Relaxed);
        Ok(())
    }

    fn truncate(&self, length: u64) -> Result<()> {
        self.file.truncate(length)
    }

    fn advise(&self, offset: u64, length: u64, advice: Advice) -> Result<()> {
        self.file.advise(offset, length, advice)
    }

    fn direct_io_alignment(&self) -> Option<usize> {
        self.file.direct_io_alignment()
    }

    /// Counts what has been done at once by its outcome. An operation that is still in flight
    /// counts as asked for, since only the caller sees how it ends.
    fn submit(&self, request: IoRequest) -> Submission {
        let (submitted, bytes) = match &request {
            IoRequest::Read { buffer, .. } => (Submitted::Read, buffer.len()),
            IoRequest::Write { data, .. } => (Submitted::Write, data.len()),
            IoRequest::SyncData => (Submitted::Sync, 0),
        };
        let submission = self.file.submit(request);
        match &submission {
            Submission::Done(outcome) => self.count_outcome(submitted, outcome),
            Submission::Pending(_) => self.count(submitted, bytes),
        }
        submission
    }
}
