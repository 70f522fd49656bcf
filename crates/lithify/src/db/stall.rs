//! Holding writers back: flow control asks how long, the environment waits.

use super::inner::DbInner;
use crate::Result;
use std::sync::Arc;

/// Runs of level 0 at which writers stop.
const LEVEL0_STOP: usize = 36;

impl DbInner {
    /// Waits as long as a group of so many bytes has to be held back.
    pub(crate) fn hold_back(self: &Arc<Self>, _bytes: usize) -> Result<()> {
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
        if !must_stop() {
            return Ok(());
        }
        // What a full disk refused is tried once more for this writer.
        let refusals = self.refusals();
        self.schedule_all_flushes();
        self.schedule_all_compactions();
        self.wait(&self.state_changed, None, || {
            self.check_writable().is_err() || !must_stop() || self.refusals() != refusals
        });
        self.check_writable()?;
        if must_stop() { self.check_refusals(refusals) } else { Ok(()) }
    }

    /// Waits until nothing is left to flush or compact, and the files that took are removed.
    pub(crate) fn wait_until_settled(self: &Arc<Self>) -> Result<()> {
        let refusals = self.refusals();
        self.schedule_all_flushes();
        self.schedule_all_compactions();
        self.wait(&self.state_changed, None, || {
            let background = self.background();
            self.check_writable().is_err()
                || (background.flushing.is_empty()
                    && background.compaction_count == 0
                    && background.receivers == 0
                    && background.deletions == 0)
        });
        self.check_writable()?;
        self.check_refusals(refusals)
    }
}
