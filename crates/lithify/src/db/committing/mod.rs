//! Committing: batches, groups under one leader, the log, and when memtables are full.
//!
//! Owns: the queue of commits, what only the leader touches ([`Writer`]: the log, the last sequence
//! number, the sizes of active memtables), ingests that hold writers back, and the thread that syncs
//! the log. Any thread may commit; [`Commits::writer`] is for the leader and for whoever stands in
//! for it: a flush, an ingest, a change of families, a close. The order of its locks, before all but
//! the sync turn of the log, stands in `db/mod.rs`; the queue's own lock is a leaf.

pub(crate) mod batch;
pub(crate) mod commit;
pub(crate) mod durability;
pub(crate) mod group;
mod log_rest;
pub(crate) mod memtables;
pub(crate) mod reads;
pub(crate) mod recent;
pub(crate) mod wal_set;

use crate::base::{FileNumber, MemoryBudget, lock};
use crate::db::jobs::Jobs;
use crate::fs::{Environment, Event, Thread};
use crate::options::Options;
use commit::{CommitQueue, Writer};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

/// A spinning waiter looks so often before it sleeps, 20 to 40 microseconds in all: a commit group
/// takes a few, and a sleep with its wake-up costs ten. LinkBench's requests switch context a
/// seventh as often with it (0.0045 instead of 0.032 times an operation), and p99.9 of their
/// writes halves.
const LOOKS: u32 = 64;

/// So often it rests between two looks.
const SPINS_PER_LOOK: u32 = 16;

/// See the module.
pub(crate) struct Commits {
    queue: CommitQueue,
    writer: Mutex<Writer>,
    /// Log segments from this number on are to come; the number of the current one, if any.
    newest_segment: AtomicU64,
    segment_bytes: u64,
    /// Ingests that hold writers back.
    closed_gates: AtomicUsize,
    /// Optimistic transactions that are open, and whether the writer notes what is written for them.
    optimists: AtomicUsize,
    notes_recent: AtomicBool,
    /// The thread that syncs the log at intervals, and what ends it.
    syncer: Mutex<Option<Box<dyn Thread>>>,
    stop_syncing: Arc<dyn Event>,
}

impl Commits {
    /// No commit yet; the first log segment will have `next_segment` or a later number.
    pub(crate) fn new(
        options: &Options,
        next_segment: FileNumber,
        environment: &dyn Environment,
    ) -> Self {
        let memtable_bytes = options.memtable_bytes as u64;
        Commits {
            queue: CommitQueue::default(),
            writer: Mutex::default(),
            newest_segment: AtomicU64::new(next_segment),
            segment_bytes: memtable_bytes.min(options.wal_bytes_max / 2).max(1 << 16),
            closed_gates: AtomicUsize::new(0),
            optimists: AtomicUsize::new(0),
            notes_recent: AtomicBool::new(false),
            syncer: Mutex::new(None),
            stop_syncing: environment.new_event(),
        }
    }

    /// What only the leader touches.
    pub(crate) fn writer(&self) -> MutexGuard<'_, Writer> {
        lock(&self.writer)
    }

    /// As [`Commits::writer`], unless somebody has it.
    pub(crate) fn try_writer(&self) -> Option<MutexGuard<'_, Writer>> {
        match self.writer.try_lock() {
            Ok(writer) => Some(writer),
            Err(TryLockError::Poisoned(held)) => Some(held.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// A write that comes later is in this log segment or in a later one.
    pub(crate) fn newest_segment(&self) -> FileNumber {
        self.newest_segment.load(Ordering::Acquire)
    }

    /// As [`Commits::newest_segment`], for a log that has ended and will continue at a later number.
    fn set_newest_segment(&self, number: FileNumber) {
        self.newest_segment.fetch_max(number, Ordering::AcqRel);
    }

    /// A new log segment is started at this size, so that flushed ones can be recycled.
    pub(crate) fn segment_bytes(&self) -> u64 {
        self.segment_bytes
    }

    /// What the leader does while the next groups take longer than it is worth looking for them.
    pub(crate) fn rest<R>(&self, wait: impl FnOnce() -> R) -> R {
        self.queue.rest(wait)
    }

    /// As [`Jobs::wait`], for what another writer mostly brings about within microseconds: looks
    /// for it a while before it sleeps.
    pub(crate) fn wait_spinning(
        &self,
        jobs: &Jobs,
        event: &Arc<dyn Event>,
        deadline_us: Option<u64>,
        mut condition: impl FnMut() -> bool,
    ) -> bool {
        for _ in 0..LOOKS {
            if condition() {
                return true;
            }
            if self.queue.leader_rests() {
                break;
            }
            (0..SPINS_PER_LOOK).for_each(|_| std::hint::spin_loop());
        }
        jobs.wait(event, deadline_us, condition)
    }

    /// Before an optimistic transaction takes its snapshot: what is written from then on is noted.
    pub(crate) fn begin_optimistic(&self, budget: &Arc<MemoryBudget>) {
        self.optimists.fetch_add(1, Ordering::SeqCst);
        if !self.notes_recent.load(Ordering::SeqCst) {
            let mut writer = self.writer();
            let last_sequence = writer.last_sequence;
            writer.recent.begin(last_sequence, budget);
            self.notes_recent.store(true, Ordering::SeqCst);
        }
    }

    /// An optimistic transaction has ended.
    pub(crate) fn end_optimistic(&self) {
        self.optimists.fetch_sub(1, Ordering::SeqCst);
    }

    /// Whether what is written is noted: if nobody needs it, no more from here on.
    #[inline]
    fn notes_recent(&self, writer: &mut Writer) -> bool {
        if !self.notes_recent.load(Ordering::Relaxed) {
            return false;
        }
        if self.optimists.load(Ordering::SeqCst) > 0 {
            return true;
        }
        // Who begins now either sees this, and waits for the writer, or is seen.
        self.notes_recent.store(false, Ordering::SeqCst);
        if self.optimists.load(Ordering::SeqCst) > 0 {
            self.notes_recent.store(true, Ordering::SeqCst);
            return true;
        }
        writer.recent.end();
        false
    }

    /// Holds writers back until as many calls of [`Commits::open_gate`].
    pub(crate) fn close_gate(&self) {
        self.closed_gates.fetch_add(1, Ordering::AcqRel);
    }

    /// See [`Commits::close_gate`].
    pub(crate) fn open_gate(&self) {
        self.closed_gates.fetch_sub(1, Ordering::AcqRel);
    }

    /// Whether nobody holds writers back.
    pub(crate) fn gate_is_open(&self) -> bool {
        self.closed_gates.load(Ordering::Acquire) == 0
    }

    /// Ends the thread that syncs the log, if there is one.
    pub(crate) fn stop_syncing(&self) {
        self.stop_syncing.notify_all();
        if let Some(thread) = lock(&self.syncer).take() {
            thread.join();
        }
    }
}
