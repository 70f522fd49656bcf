//! What is done with a whole database at its user's word, copies and verification: what it costs
//! is in the ledger under causes of its own.
//!
//! 1. The files of such an activity are opened through a file system that counts.
//! 2. Whenever a file is done, and in the end, whatever that is, the bytes since the last time and
//!    the CPU time of the thread are booked.
//!
//! What the engine itself does beside it, such as a flush before a copy, is booked where it always
//! is: an activity begins after that. One thread; the work on other threads is not seen.

use crate::db::inner::DbInner;
use crate::fs::{CountingFileSystem, FileCounts, FileSystem, World};
use crate::stats::{Cause, UserSample, WorkMeter};
use std::sync::Arc;

/// See the module.
pub(crate) struct Activity {
    inner: Arc<DbInner>,
    cause: Cause,
    counting: Vec<CountingFileSystem>,
    booked: FileCounts,
    sample: Option<UserSample>,
    /// What is read through files that were open before.
    pub(crate) meter: WorkMeter,
}

impl Activity {
    /// Begins here.
    pub(crate) fn begin(inner: &Arc<DbInner>, cause: Cause) -> Self {
        let sample = inner.ledger.time_call(cause, &*inner.world.environment);
        Activity {
            inner: Arc::clone(inner),
            cause,
            counting: Vec::new(),
            booked: FileCounts::default(),
            sample: Some(sample),
            meter: WorkMeter::default(),
        }
    }

    /// A file system whose bytes are the activity's.
    pub(crate) fn counted(&mut self, files: &Arc<dyn FileSystem>) -> Arc<dyn FileSystem> {
        let counting = CountingFileSystem::new(Arc::clone(files));
        self.counting.push(counting.clone());
        Arc::new(counting)
    }

    /// The world of the database with such a file system.
    pub(crate) fn world(&mut self) -> World {
        let world = self.inner.world.clone();
        World { files: self.counted(&world.files), ..world }
    }

    /// Books what was done since the last time.
    pub(crate) fn book(&mut self) {
        let total = self.counting.iter().map(CountingFileSystem::total).sum::<FileCounts>();
        let FileCounts { reads, read_bytes, written_bytes, .. } = total - self.booked;
        self.booked = total;
        self.meter.reads += reads;
        self.meter.read_bytes += read_bytes;
        let (ledger, clock) = (&self.inner.ledger, &*self.inner.world.environment);
        if written_bytes > 0 {
            ledger.book_written(self.cause, 0, 0, written_bytes);
        }
        ledger.end_user_call(self.sample.take(), self.cause, 0, clock, &mut self.meter);
        self.sample = Some(ledger.time_call(self.cause, clock));
    }
}

impl Drop for Activity {
    fn drop(&mut self) {
        self.book();
    }
}
