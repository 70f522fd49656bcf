//! Syncing the log at intervals, for [`Durability::Interval`].
//!
//! A thread of its own, so that no writer waits for the disk: it notes how far the log is, syncs
//! beside the appends, and reports how far the log is durable then. With no background threads
//! the commit that finds the interval over syncs itself.

use crate::Result;
use crate::db::committing::commit::Writer;
use crate::db::inner::{DbInner, lock};
use crate::options::Durability;
use crate::stats::Counter;
use std::sync::{Arc, Weak};

impl DbInner {
    /// Makes the log durable before an edit of the manifest that must not overtake it: a table of
    /// one family, or a family made or dropped, would otherwise survive a power cut that takes
    /// earlier writes of the others, or the other half of a batch.
    pub(crate) fn sync_log(&self, writer: &mut Writer) -> Result<()> {
        if planted!(LogUnsyncedBeforeFamilyEdit) {
            return Ok(());
        }
        writer.wal.sync(self).inspect_err(|error| self.lifecycle.poison(error))
    }

    /// Whether a commit has to sync because the interval is over and no thread does it.
    pub(crate) fn interval_is_over(&self, writer: &Writer) -> bool {
        let Durability::Interval { milliseconds } = self.options.durability else { return false };
        if planted!(IntervalSyncSkipped) {
            return false;
        }
        let age_us = self.world.environment.now_us().saturating_sub(writer.wal.synced_at_us());
        self.options.background_threads == 0 && age_us >= u64::from(milliseconds) * 1000
    }

    /// Starts what runs beside the calls: the syncing thread, due flushes and compactions.
    pub(crate) fn start_background(self: &Arc<Self>) -> Result<()> {
        if let Durability::Interval { milliseconds } = self.options.durability
            && self.options.background_threads > 0
        {
            let resources = lock(&self.resources).clone();
            if let Some(resources) = resources {
                resources.sync_at_intervals(self, u64::from(milliseconds) * 1000)?;
                self.schedule_all_flushes();
                self.schedule_all_compactions();
                return Ok(());
            }
            let inner = Arc::downgrade(self);
            let stop = Arc::clone(&self.commits.stop_syncing);
            // Only a close notifies. Read before the thread begins, and never again: a close that comes
            // while it syncs must not be slept through.
            let seen = stop.generation();
            let body = move || {
                while !stop.wait(seen, Some(u64::from(milliseconds) * 1000)) {
                    if !Weak::upgrade(&inner).is_some_and(|inner| inner.sync_at_interval()) {
                        return;
                    }
                }
            };
            let thread = self.world.environment.spawn("lithify-sync", Box::new(body))?;
            *lock(&self.commits.syncer) = Some(thread);
        }
        self.schedule_all_flushes();
        self.schedule_all_compactions();
        Ok(())
    }

    /// Syncs what is in the log now; false once there is nothing more to do.
    pub(crate) fn sync_at_interval(&self) -> bool {
        if self.lifecycle.check_open().is_err() || self.lifecycle.has_failed() {
            return false;
        }
        if planted!(IntervalThreadIdle) {
            return true;
        }
        self.sync_log_beside_appends().is_ok()
    }

    /// As [`DbInner::sync_log`], for what is in the log by now, while writers go on.
    pub(crate) fn sync_log_beside_appends(&self) -> Result<()> {
        let (number, pending) = match self.commits.writer().wal.current_mut() {
            Some(wal) if wal.synced_through() < wal.end_offset() => {
                (wal.log_number(), wal.start_sync())
            }
            _ => return Ok(()),
        };
        let synced = pending.and_then(|pending| {
            self.ledger.count(Counter::WalSyncs, 1);
            let result = pending.run();
            match self.commits.writer().wal.current_mut() {
                Some(wal) if wal.log_number() == number => wal.finish_sync(&pending, result),
                // The segment was finished meanwhile, that is synced to its end.
                _ => result,
            }
        });
        synced.inspect_err(|error| {
            self.lifecycle.poison(error);
            self.tell_failure();
        })
    }
}
