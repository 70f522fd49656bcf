//! The range tombstones of all runs that a read looks at.

use crate::base::SequenceNumber;
use crate::table::{FragmentedTombstones, TombstoneMap};
use std::sync::Arc;

/// The range tombstones of one run.
#[derive(Clone)]
enum Run {
    Table(Arc<FragmentedTombstones>),
    Memory(TombstoneMap),
}

impl Run {
    fn covering_sequence(&self, key: &[u8], snapshot: SequenceNumber) -> SequenceNumber {
        match self {
            Run::Table(fragments) => fragments.covering_sequence(key, snapshot),
            Run::Memory(map) => map.covering_sequence(key, snapshot),
        }
    }

    fn covering(&self, key: &[u8], snapshot: SequenceNumber) -> Option<Cover<'_>> {
        let (sequence, [start, end]) = match self {
            Run::Table(fragments) => {
                let fragment = fragments.covering(key)?;
                (fragment.newest_visible(snapshot), [fragment.start, fragment.end])
            }
            Run::Memory(map) => map.covering(key, snapshot)?,
        };
        (sequence > 0).then_some(Cover { sequence, start, end })
    }
}

/// What removes all entries that are older than `sequence` of the keys from `start` to before `end`.
pub(crate) struct Cover<'a> {
    pub(crate) sequence: SequenceNumber,
    pub(crate) start: &'a [u8],
    pub(crate) end: &'a [u8],
}

/// Range tombstones by run. Empty in most databases: the check is then one branch.
#[derive(Clone, Default)]
pub(crate) struct TombstoneSet {
    runs: Vec<Run>,
}

impl TombstoneSet {
    /// Adds the tombstones of a table.
    pub(crate) fn push(&mut self, run: Arc<FragmentedTombstones>) {
        if !run.is_empty() {
            self.runs.push(Run::Table(run));
        }
    }

    /// Adds the tombstones of a memtable.
    pub(crate) fn push_memory(&mut self, run: TombstoneMap) {
        self.runs.push(Run::Memory(run));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The largest sequence number, at most `snapshot`, of a tombstone over `key`; 0 if none.
    pub(crate) fn covering_sequence(&self, key: &[u8], snapshot: SequenceNumber) -> SequenceNumber {
        self.runs.iter().map(|run| run.covering_sequence(key, snapshot)).max().unwrap_or(0)
    }

    /// The newest tombstone over `key` that `snapshot` sees.
    pub(crate) fn newest_over(&self, key: &[u8], snapshot: SequenceNumber) -> Option<Cover<'_>> {
        let covers = self.runs.iter().filter_map(|run| run.covering(key, snapshot));
        covers.max_by_key(|cover| cover.sequence)
    }

    /// Whether a tombstone that `snapshot` sees removes an entry of `key` at `sequence`.
    pub(crate) fn covers(
        &self,
        key: &[u8],
        sequence: SequenceNumber,
        snapshot: SequenceNumber,
    ) -> bool {
        !self.is_empty() && self.covering_sequence(key, snapshot) > sequence
    }
}
