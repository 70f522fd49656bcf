//! Reading: gets, multi-gets and cursors over a family's view at one sequence number.
//!
//! Owns: which commits are visible, which sequence numbers snapshots read at, and the numbers of
//! cursors ([`Visibility`]). Any thread may read; whoever holds the writer publishes. Readers take no
//! lock; the list of snapshots has one, a leaf.

pub(crate) mod cursor;
pub(crate) mod extent;
pub(crate) mod iter;
pub(crate) mod multi_get;
pub(crate) mod read;
pub(crate) mod snapshot;

use crate::base::SequenceNumber;
use snapshot::SnapshotList;
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

    /// Registers a snapshot of the present, to be given back. `now_us` says how old it is later.
    pub(crate) fn register_snapshot(&self, now_us: u64) -> SequenceNumber {
        let mut early = None;
        if planted!(SnapshotRegisteredLate) {
            early = Some(self.last());
            crate::planted::let_a_flush_in();
        }
        self.snapshots.register(now_us, || {
            let mut sequence = early.unwrap_or_else(|| self.last());
            if planted!(SnapshotTooNew) {
                sequence += 1;
            }
            sequence
        })
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

    /// Everything that somebody may read at from now on: the snapshots and the present, ascending.
    pub(crate) fn sequences(&self) -> Vec<SequenceNumber> {
        self.snapshots.all_and(|| self.last())
    }

    /// The oldest of [`Visibility::sequences`].
    pub(crate) fn oldest(&self) -> SequenceNumber {
        self.sequences().first().copied().unwrap_or(0)
    }

    /// The number of a new cursor.
    pub(crate) fn number_cursor(&self) -> u64 {
        self.cursors.fetch_add(1, Ordering::Relaxed)
    }
}
