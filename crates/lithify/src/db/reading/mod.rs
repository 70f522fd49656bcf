//! Reading: gets, multi-gets and cursors over a family's view at one sequence number.
//!
//! Owns: which commits are visible, which sequence numbers snapshots read at, and the numbers of
//! cursors ([`Visibility`]). Any thread may read; whoever holds the writer publishes. Readers take no
//! lock; the list of snapshots has one, a leaf.

mod approximate;
pub(crate) mod cursor;
pub(crate) mod extent;
pub(crate) mod iter;
pub(crate) mod multi_get;
pub(crate) mod read;
pub(crate) mod snapshot;

pub use approximate::Approximation;

use crate::base::{Clock, SequenceNumber};
use snapshot::{Moment, Readers, SnapshotList};
use std::sync::atomic::{AtomicU64, Ordering};

/// See the module.
#[derive(Default)]
pub(crate) struct Visibility {
    /// What is committed: reads without a snapshot read here.
    visible: AtomicU64,
    snapshots: SnapshotList,
    /// Cursors made so far; their samples begin at different moves.
    cursors: AtomicU64,
}

impl Visibility {
    /// The last commit that reads see.
    #[inline]
    pub(crate) fn last(&self) -> SequenceNumber {
        self.visible.load(Ordering::Acquire)
    }

    /// Makes everything up to here visible, with the writer held.
    pub(crate) fn publish(&self, sequence: SequenceNumber) {
        self.visible.store(sequence, Ordering::Release);
    }

    /// Registers a snapshot of the present, to be given back.
    pub(crate) fn register_snapshot(&self, clock: &dyn Clock) -> Moment {
        let mut early = None;
        if planted!(SnapshotRegisteredLate) {
            early = Some(self.last());
            crate::planted::let_a_flush_in();
        }
        self.snapshots.register(clock, || {
            let mut sequence = early.unwrap_or_else(|| self.last());
            if planted!(SnapshotTooNew) {
                sequence += 1;
            }
            sequence
        })
    }

    /// Registers another snapshot of a moment that one holds.
    pub(crate) fn register_snapshot_again(&self, moment: Moment, clock: &dyn Clock) {
        self.snapshots.register_again(moment, clock);
    }

    /// Gives a snapshot back; true if it was the oldest.
    pub(crate) fn release_snapshot(&self, sequence: SequenceNumber) -> bool {
        self.snapshots.release(sequence)
    }

    /// The number of snapshots held.
    pub(crate) fn snapshots_held(&self) -> usize {
        self.snapshots.len()
    }

    /// When the oldest snapshot that is held was taken.
    pub(crate) fn oldest_snapshot_since_us(&self) -> Option<u64> {
        self.snapshots.oldest_since_us()
    }

    /// The oldest sequence number that somebody may read at from now on.
    pub(crate) fn oldest(&self) -> SequenceNumber {
        self.snapshots.oldest_or(|| self.last())
    }

    /// What somebody may read at from now on.
    pub(crate) fn readers(&self, clock: &dyn Clock) -> Readers {
        self.snapshots.all_and(clock, || self.last())
    }

    /// The number of a new cursor.
    pub(crate) fn number_cursor(&self) -> u64 {
        self.cursors.fetch_add(1, Ordering::Relaxed)
    }
}
