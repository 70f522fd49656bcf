//! Closing.
//!
//! 1. With the writer held the database is closing: later calls are refused, earlier ones are in the
//!    memtables and the log ([`crate::db::lifecycle`]). Without a log the memtables are switched in the
//!    same moment.
//! 2. Without a log they are flushed.
//! 3. Calls that touch files are waited for, background work ends where it stands.
//! 4. The log is synced and its end made known by the last edit of the manifest. If all of it is in
//!    tables, that edit says so too. Then its files are cut behind their last records.
//! 5. Files that nothing refers to are removed: outputs of jobs that were cut short, unfinished
//!    ingests, tables that cursors held, log segments. What readers beside the database may need stays.
//! 6. The lock is given up. Whoever else has called for a close is told how it went.

use crate::Result;
use crate::db::inner::{DbInner, lock};
use crate::db::lifecycle::closed_error;
use crate::manifest::{Change, CleanClose, DirectoryListing, FileName, Readers};
use crate::options::Durability;
use std::sync::Arc;

/// The last flush is tried so often.
const LAST_FLUSHES_MAX: u32 = 3;

impl DbInner {
    /// See the module. A second call waits for the end of the first one, and gives what that gives.
    pub(crate) fn close(self: &Arc<Self>) -> Result<()> {
        self.lifecycle.check_here()?;
        if planted!(ClosedAfterFlush) && self.options.durability == Durability::None {
            let _ = self.flush_all();
            crate::planted::let_others_in();
        }
        {
            let mut writer = self.commits.writer();
            if !self.lifecycle.begin_close() {
                drop(writer);
                return self.wait_for_close();
            }
            if self.is_flushed_at_close() {
                self.tree.switch_all_memtables(&mut writer);
            }
        }
        self.jobs.notify();
        let flushed = match self.is_flushed_at_close() {
            true => self.flush_at_close(),
            false => Ok(()),
        };
        self.commits.stop_syncing();
        if !planted!(CloseLeavesCallsIn) {
            self.jobs.wait(self.lifecycle.left(), None, || self.lifecycle.is_empty());
        }
        self.jobs.shutdown();
        if self.lifecycle.check_works().is_ok() && !self.lifecycle.is_read_only() {
            self.keep_read_heat(0);
        }
        let ended = self.end_log();
        self.lifecycle.end_close();
        self.tell_failure();
        if ended.is_ok() {
            self.remove_unnamed_files();
        }
        self.lifecycle.unlock();
        // The last one ends the threads: not with the lock held.
        let resources = lock(&self.resources).take();
        drop(resources);
        let outcome = flushed.and(ended);
        self.lifecycle.tell_outcome(outcome.clone());
        outcome
    }

    /// Waits for the close that another call has begun. The thread of that call, which comes here from
    /// an event listener, is refused: it would wait for itself.
    fn wait_for_close(&self) -> Result<()> {
        if self.lifecycle.outcome().is_none() && self.lifecycle.is_closed_by_this_thread() {
            return Err(closed_error());
        }
        self.jobs.wait(self.lifecycle.left(), None, || self.lifecycle.outcome().is_some());
        self.lifecycle.outcome().unwrap_or(Ok(()))
    }

    /// Without a log nothing is durable but what is in tables.
    fn is_flushed_at_close(&self) -> bool {
        if planted!(CloseWithoutFlush) {
            return false;
        }
        if planted!(ClosedAfterFlush) {
            return false;
        }
        self.options.durability == Durability::None && self.lifecycle.check_works().is_ok()
    }

    /// Flushes what is in memory: it has no other place. A flush that began before may be refused, and
    /// what refuses one may pass: it is tried more than once.
    fn flush_at_close(self: &Arc<Self>) -> Result<()> {
        let families: Vec<_> = self.tree.all_families();
        let mut tries = 0;
        loop {
            tries += 1;
            self.jobs.wait_for_change(None, || {
                self.lifecycle.check_works().is_err() || !self.jobs.state().is_flushing()
            });
            let refusals = self.jobs.refusals();
            self.schedule_all_flushes();
            let flushed =
                self.wait_until_flushed(&families, refusals, || self.lifecycle.check_works());
            if flushed.is_ok() || self.lifecycle.check_works().is_err() || tries == LAST_FLUSHES_MAX
            {
                return flushed;
            }
        }
    }

    fn end_log(&self) -> Result<()> {
        if self.lifecycle.is_read_only() {
            self.lifecycle.end_registration();
            return Ok(());
        }
        let mut writer = self.commits.writer();
        let mut manifest = self.tree.manifest();
        if self.lifecycle.has_failed() {
            manifest.seal();
            return self.lifecycle.failure().map_or(Ok(()), Err);
        }
        let last_sequence = writer.last_sequence;
        let closed_before = manifest.state().clean_close.map(|close| close.log_end);
        let mut changes = self.log_changes_at_close(&mut writer, manifest.state());
        let appended = writer.wal.finish(self).and_then(|log_end| {
            // Without a log the end is the one of the last close.
            changes.push(match log_end.or(closed_before) {
                Some(log_end) => Change::CleanClose(CleanClose { log_end, last_sequence }),
                None => Change::LastSequence(last_sequence),
            });
            self.tree.append(&mut manifest, changes)
        });
        if appended.is_ok() {
            writer.wal.cut(self);
        }
        if !planted!(IngestIntoClosing) {
            manifest.seal();
        }
        appended.map(drop)
    }

    /// Removes the tables that the last state does not name and the log segments that it does not need.
    /// One that cannot be removed goes at the next opening.
    fn remove_unnamed_files(&self) {
        if planted!(CloseLeavesTables) {
            return;
        }
        if self.lifecycle.is_read_only() {
            return;
        }
        let (state, number, position) = {
            let manifest = self.tree.manifest();
            (Arc::clone(manifest.state()), manifest.number(), manifest.position())
        };
        let Ok(listing) = DirectoryListing::read(&*self.world.files, &self.path) else { return };
        let mut unnamed = listing.orphans(&state, number);
        unnamed.retain(|name| matches!(name, FileName::Table(_) | FileName::Wal(_)));
        if unnamed.is_empty() {
            return;
        }
        let readers = Readers::look(&*self.world.files, &self.path);
        if readers.map_or(true, |readers| readers.hold(position)) {
            return;
        }
        for name in unnamed {
            let _ = self.world.files.remove(&name.path(&self.path));
        }
    }
}
