//! Holding writers back: flow control asks how long, the environment waits.

use super::inner::DbInner;
use crate::Result;

/// Runs of level 0 at which writers stop.
const LEVEL0_STOP: usize = 36;

impl DbInner {
    /// Waits as long as a group of so many bytes has to be held back.
    pub(crate) fn hold_back(&self, _bytes: usize) -> Result<()> {
        let must_stop = || {
            let families = self.families.load();
            let immutable: usize = families
                .values()
                .flat_map(|family| family.view().immutable.clone())
                .map(|memory| memory.table.memory_bytes())
                .sum();
            let runs = families.values().map(|family| family.view().version.level(0).len()).max();
            immutable > self.options.memory_budget_bytes / 2 || runs.unwrap_or(0) >= LEVEL0_STOP
        };
        self.wait(&self.state_changed, None, || self.check_writable().is_err() || !must_stop());
        self.check_writable()
    }

    /// Waits until nothing is left to flush or compact.
    pub(crate) fn wait_until_settled(&self) -> Result<()> {
        self.wait(&self.state_changed, None, || {
            let background = self.background();
            self.check_writable().is_err()
                || (background.flushing.is_empty() && background.compaction_count == 0)
        });
        self.check_writable()
    }
}
