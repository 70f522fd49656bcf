//! The range tombstones of all runs that a read looks at.

use crate::base::SequenceNumber;
use crate::table::FragmentedTombstones;
use std::sync::Arc;

/// Range tombstones by run. Empty in most databases: the check is then one branch.
#[derive(Clone, Default)]
pub(crate) struct TombstoneSet {
    runs: Vec<Arc<FragmentedTombstones>>,
}

impl TombstoneSet {
    /// Adds the tombstones of one run.
    pub(crate) fn push(&mut self, run: Arc<FragmentedTombstones>) {
        if !run.is_empty() {
            self.runs.push(run);
        }
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
