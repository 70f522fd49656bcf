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
