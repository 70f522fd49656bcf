//! The world of a case: files in memory, counted on their way, with a virtual clock; or, with
//! background threads, the real clock. What it was called for can be recorded as a fingerprint.

use super::direct::DirectFileSystem;
use crate::digest;
use lithify::base::Clock;
use lithify::fs::{
    CountingFileSystem, CrashKeep, Environment, FileCall, FileCounts, MemoryEnvironment,
    MemoryFileSystem, SystemEnvironment, World,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where the database is: two levels deep, so that a new directory's parent is new too.
pub(super) const DIRECTORY: &str = "/data/base";

/// A fingerprint of all calls to the file system, in order.
#[derive(Clone, Default)]
pub(super) struct CallRecord(Arc<AtomicU64>);

impl CallRecord {
    pub(super) fn digest(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    fn attach(&self, files: &MemoryFileSystem) {
        let record = self.clone();
        files.set_fault(Box::new(move |call: &FileCall<'_>| {
            let name = digest::of_bytes(call.kind as u64, call.path.as_os_str().as_encoded_bytes());
            let call = digest::mix(digest::mix(name, call.offset), call.length);
            record.0.store(digest::mix(record.digest(), call), Ordering::SeqCst);
            None
        }));
    }
}

/// A disk with what runs on it.
pub(super) struct Disk {
    pub(super) files: MemoryFileSystem,
    counting: CountingFileSystem,
    clock: MemoryEnvironment,
    has_threads: bool,
    record: Option<CallRecord>,
}

impl Disk {
    /// A disk; with threads the clock is the real one.
    pub(super) fn new(
        files: MemoryFileSystem,
        seed: u64,
        has_threads: bool,
        record: Option<CallRecord>,
    ) -> Disk {
        if let Some(record) = &record {
            record.attach(&files);
        }
        let counting = CountingFileSystem::new(Arc::new(DirectFileSystem(files.clone())));
        Disk { files, counting, clock: MemoryEnvironment::new(seed), has_threads, record }
    }

    /// The disk after the end of the process; this one goes on beside it.
    pub(super) fn after_process_end(&self, seed: u64) -> Disk {
        let files = self.files.crash_clone(seed, CrashKeep::Everything);
        let next = Disk::new(files, seed, self.has_threads, self.record.clone());
        next.advance_us(self.now_us());
        next
    }

    /// Whether time passes as it is told to.
    pub(super) fn has_virtual_time(&self) -> bool {
        !self.has_threads
    }

    /// What the engine is given: every byte of a file is counted.
    pub(super) fn world(&self) -> World {
        World { files: Arc::new(self.counting.clone()), environment: self.environment() }
    }

    /// The same without counts, for files that others make.
    pub(super) fn world_of_others(&self) -> World {
        World { files: Arc::new(self.files.clone()), environment: self.environment() }
    }

    fn environment(&self) -> Arc<dyn Environment> {
        match self.has_threads {
            true => Arc::new(SystemEnvironment),
            false => Arc::new(self.clock.clone()),
        }
    }

    /// Lets time pass, on a virtual clock.
    pub(super) fn advance_us(&self, by_us: u64) {
        self.clock.advance_us(by_us);
    }

    /// The time of the virtual clock.
    pub(super) fn now_us(&self) -> u64 {
        self.clock.now_us()
    }

    /// Waits that would never have ended: a hang.
    pub(super) fn endless_waits(&self) -> u64 {
        self.clock.endless_waits()
    }

    /// What was read and written so far, by class of file.
    pub(super) fn counts(&self) -> BTreeMap<String, FileCounts> {
        self.counting.all_counts()
    }

    /// A fingerprint of all files of the database.
    pub(super) fn digest(&self) -> u64 {
        self.files.clear_fault();
        self.files.fingerprint()
    }
}
