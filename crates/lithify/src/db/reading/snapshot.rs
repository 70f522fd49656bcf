//! Snapshots: sequence numbers that compactions must keep readable.

use crate::base::{Clock, SequenceNumber};
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
    /// The earliest time that one of them judges by, in seconds since 1970.
    unix_time_s: u64,
}

/// What a snapshot reads at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) sequence: SequenceNumber,
    /// When it was taken, in seconds since 1970: rows that were over then are not there.
    pub(crate) unix_time_s: u64,
}

/// What compactions that start now have to keep readable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Readers {
    /// Everything that somebody may read at from now on: snapshots and the present, ascending.
    pub(crate) sequences: Vec<SequenceNumber>,
    /// The newest snapshot.
    pub(crate) newest_snapshot: Option<SequenceNumber>,
    /// The time by which the reader judges that was there first, in seconds since 1970.
    pub(crate) oldest_unix_time_s: u64,
    /// The present, likewise.
    pub(crate) now_s: u64,
}

impl SnapshotList {
    /// Registers a snapshot at the sequence that `current` gives. The list is locked meanwhile,
    /// so that a compaction that reads the list afterwards knows of it.
    pub(crate) fn register(
        &self,
        clock: &dyn Clock,
        current: impl FnOnce() -> SequenceNumber,
    ) -> Moment {
        let mut counts = lock(&self.counts);
        let sequence = current();
        let moment = Moment { sequence, unix_time_s: clock.unix_time_s() };
        hold(&mut counts, moment, clock);
        moment
    }

    /// Registers another snapshot at a sequence that one holds.
    pub(crate) fn register_again(&self, moment: Moment, clock: &dyn Clock) {
        hold(&mut lock(&self.counts), moment, clock);
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

    /// The oldest sequence number in use, `current` if there is no snapshot.
    pub(crate) fn oldest_or(&self, current: impl FnOnce() -> SequenceNumber) -> SequenceNumber {
        lock(&self.counts).keys().next().copied().unwrap_or_else(current)
    }

    /// The snapshots in use and `current`.
    pub(crate) fn all_and(
        &self,
        clock: &dyn Clock,
        current: impl FnOnce() -> SequenceNumber,
    ) -> Readers {
        let counts = lock(&self.counts);
        let mut sequences: Vec<_> = counts.keys().copied().collect();
        let newest_snapshot = sequences.last().copied();
        let current = current();
        if newest_snapshot != Some(current) {
            sequences.push(current);
        }
        // With the list locked: a snapshot that is not in it yet judges by no earlier time.
        let now_s = clock.unix_time_s();
        let mut oldest_unix_time_s =
            counts.values().map(|held| held.unix_time_s).fold(now_s, u64::min);
        if planted!(ExpiryForgetsSnapshots) {
            oldest_unix_time_s = now_s;
        }
        Readers { sequences, newest_snapshot, oldest_unix_time_s, now_s }
    }
}

/// Counts one more snapshot of a moment.
fn hold(counts: &mut BTreeMap<SequenceNumber, Held>, moment: Moment, clock: &dyn Clock) {
    let Moment { sequence, unix_time_s } = moment;
    let new = || Held { count: 0, since_us: clock.now_us(), unix_time_s };
    let held = counts.entry(sequence).or_insert_with(new);
    held.count += 1;
    // Of two at one number the clock may have been set back between.
    held.unix_time_s = held.unix_time_s.min(unix_time_s);
}

/// A point in time over all column families. Reads at it see exactly what was committed before
/// it was taken, until it is dropped. A held snapshot keeps obsolete entries on disk. Clones read at the
/// same point. Its own calls read the default family.
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
    pub(crate) moment: Moment,
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("sequence", &self.moment.sequence).finish_non_exhaustive()
    }
}

impl Clone for Snapshot {
    fn clone(&self) -> Self {
        let inner = Arc::clone(&self.inner);
        inner.visibility.register_snapshot_again(self.moment, &*inner.world.environment);
        Snapshot { inner, moment: self.moment }
    }
}

impl Snapshot {
    /// The sequence number that it reads at.
    pub fn sequence(&self) -> SequenceNumber {
        self.moment.sequence
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.inner.release_snapshot(self.moment.sequence);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::MemoryEnvironment;

    /// The clock was set back between them, and both are at one number.
    #[test]
    fn the_earliest_time_of_snapshots_at_one_number_counts() {
        let (list, clock) = (SnapshotList::default(), MemoryEnvironment::new(1));
        clock.advance_us(20_000_000);
        let first = list.register(&clock, || 7);
        list.register_again(Moment { unix_time_s: first.unix_time_s - 10, ..first }, &clock);
        list.register_again(first, &clock);
        let readers = list.all_and(&clock, || 9);
        assert_eq!(readers.oldest_unix_time_s, first.unix_time_s - 10);
        assert_eq!((readers.sequences, list.len()), (vec![7, 9], 3));
    }
}
