//! Snapshots: sequence numbers that compactions must keep readable.

use crate::base::SequenceNumber;
use crate::db::inner::{DbInner, lock};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

/// The sequence numbers in use by snapshots, with the number of snapshots at each.
#[derive(Default)]
pub(crate) struct SnapshotList {
    counts: Mutex<BTreeMap<SequenceNumber, Held>>,
}

/// Snapshots at one sequence number.
struct Held {
    count: usize,
    /// When the first of them was taken.
    since_us: u64,
}

impl SnapshotList {
    /// Registers a snapshot at the sequence that `current` gives. The list is locked meanwhile,
    /// so that a compaction that reads the list afterwards knows of it.
    pub(crate) fn register(
        &self,
        now_us: u64,
        current: impl FnOnce() -> SequenceNumber,
    ) -> SequenceNumber {
        let mut counts = lock(&self.counts);
        let sequence = current();
        counts.entry(sequence).or_insert(Held { count: 0, since_us: now_us }).count += 1;
        sequence
    }

    /// When the oldest snapshot was taken, in the clock of [`SnapshotList::register`].
    pub(crate) fn oldest_since_us(&self) -> Option<u64> {
        lock(&self.counts).values().next().map(|held| held.since_us)
    }

    /// The number of snapshots held.
    pub(crate) fn len(&self) -> usize {
        lock(&self.counts).values().map(|held| held.count).sum()
    }

    /// Gives one back; true if it was the oldest.
    pub(crate) fn release(&self, sequence: SequenceNumber) -> bool {
        let mut counts = lock(&self.counts);
        let was_oldest = counts.keys().next() == Some(&sequence);
        if let Some(held) = counts.get_mut(&sequence) {
            held.count -= 1;
            if planted!(TwinSnapshotReleased) {
                held.count = 0;
            }
            if held.count == 0 {
                counts.remove(&sequence);
                return was_oldest;
            }
        }
        false
    }

    /// All sequence numbers in use, ascending, followed by `current`: what a compaction that
    /// starts now has to keep readable.
    pub(crate) fn all_and(&self, current: impl FnOnce() -> SequenceNumber) -> Vec<SequenceNumber> {
        let counts = lock(&self.counts);
        let mut sequences: Vec<_> = counts.keys().copied().collect();
        let current = current();
        if sequences.last() != Some(&current) {
            sequences.push(current);
        }
        sequences
    }
}

/// A point in time over all column families. Reads at it see exactly what was committed before
/// it was taken, until it is dropped. A held snapshot keeps obsolete entries on disk.
///
/// ```
/// # let directory = tempfile::tempdir().unwrap();
/// let db = lithify::Db::open(directory.path(), lithify::Options::default())?;
/// let rocks = db.column_family("rocks", lithify::CfOptions::default())?;
/// rocks.put(b"basalt", b"igneous")?;
/// let snapshot = db.snapshot();
/// rocks.delete(b"basalt")?;
/// assert_eq!(rocks.get(b"basalt")?, None);
/// assert_eq!(rocks.get_at(b"basalt", &snapshot)?.as_deref(), Some(&b"igneous"[..]));
/// # Ok::<(), lithify::Error>(())
/// ```
pub struct Snapshot {
    pub(crate) inner: Arc<DbInner>,
    pub(crate) sequence: SequenceNumber,
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("sequence", &self.sequence).finish_non_exhaustive()
    }
}

impl Snapshot {
    /// The sequence number that it reads at.
    pub fn sequence(&self) -> SequenceNumber {
        self.sequence
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.inner.release_snapshot(self.sequence);
    }
}
