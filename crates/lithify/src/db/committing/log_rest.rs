//! What the log takes beyond its records, given back when nobody writes any more.
//!
//! 1. While space is reserved or files are kept for later, idle workers check once a second whether the
//!    log has grown ([`DbInner::watch_log`]). Once it has not for [`REST_US`], it rests.
//! 2. A log at rest gives back the space behind the records of its segments, the file of the next
//!    segment, and those that wait to be used again. If no memtable holds a write, its last segment ends, and
//!    an edit of the manifest says that none is needed.
//! 3. The next write begins as in a new database: it reserves little, and more as more is written.
//!
//! A clean close does the same, its end of the log in the same edit. With no background threads only
//! the close does it.

use crate::Result;
use crate::base::{FileNumber, Level};
use crate::compaction::scheduler::{Ending, Job, Spent, Step, StepContext, Urgency};
use crate::db::committing::commit::Writer;
use crate::db::committing::wal_set::WalSet;
use crate::db::inner::DbInner;
use crate::fs::OpenMode;
use crate::manifest::{Change, FileName, ManifestState};
use crate::options::Durability;
use crate::stats::Cause;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A log that has not grown for so long rests.
const REST_US: u64 = 1_000_000;

impl WalSet {
    /// Whether nothing was logged for a while, by the environment's clock.
    fn is_at_rest(&mut self, now_us: u64) -> bool {
        let current = self.current.as_ref();
        let (number, end) = current.map_or((0, 0), |wal| (wal.log_number(), wal.end_offset()));
        let (seen_number, seen_end, since_us) = self.seen;
        if (number, end) != (seen_number, seen_end) {
            self.seen = (number, end, now_us);
            return false;
        }
        now_us.saturating_sub(since_us) >= REST_US
    }

    /// Whether there are segments, and nobody copies them.
    fn may_be_let_go(&self) -> bool {
        (self.current.is_some() || !self.closed.is_empty()) && self.pins.is_empty()
    }

    /// Gives back the space behind the records. What fails stays as it was.
    pub(crate) fn cut(&mut self, inner: &DbInner) {
        self.ended_bytes = 0;
        if let Some(wal) = &mut self.current {
            wal.give_back();
        }
        // A segment of no bytes was being created when the machine stopped.
        for segment in self.closed.iter_mut().filter(|s| !s.is_cut && s.bytes > 0) {
            let path = FileName::Wal(segment.number).path(&inner.path);
            let file = inner.world.files.open(&path, OpenMode::ReadWrite);
            segment.is_cut = file.and_then(|file| file.truncate(segment.bytes)).is_ok();
        }
    }
}

impl DbInner {
    /// Has idle workers check whether the log rests.
    pub(crate) fn watch_log(&self) {
        if self.options.durability == Durability::None {
            return;
        }
        self.jobs.log_is_watched.store(true, Ordering::Release);
        self.update_ticking();
    }

    /// Once a second while workers are idle.
    pub(crate) fn check_log(self: &Arc<Self>) {
        let is_watched = self.jobs.log_is_watched.load(Ordering::Acquire);
        if !is_watched || self.lifecycle.check_writable().is_err() {
            return;
        }
        let now_us = self.world.environment.now_us();
        // Who holds it writes.
        let is_at_rest = self.commits.try_writer().is_some_and(|mut w| w.wal.is_at_rest(now_us));
        if is_at_rest && self.jobs.log_is_watched.swap(false, Ordering::AcqRel) {
            self.update_ticking();
            self.jobs.submit(Box::new(LogRest { inner: Arc::clone(self) }));
        }
    }

    /// Gives back what the log does not need, while nobody writes.
    fn rest_log(self: &Arc<Self>) -> Result<()> {
        // Files that are removed here are none of a close any more.
        let Ok(_call) = self.lifecycle.enter() else { return Ok(()) };
        let (mut unneeded, unneeded_below) = {
            let mut writer = self.commits.writer();
            if self.lifecycle.check_writable().is_err() {
                return Ok(());
            }
            let unneeded_below = self.end_flushed_log(&mut writer)?;
            writer.wal.cut(self);
            (writer.wal.pool.take_recyclable(), unneeded_below)
        };
        if let Some(number) = unneeded_below {
            let mut manifest = self.tree.manifest();
            let changes = log_begins_at(number, manifest.state());
            let state = self.append_edit(&mut manifest, changes)?;
            drop(manifest);
            self.release_segments(state.oldest_log_needed());
            unneeded.append(&mut self.commits.writer().wal.pool.take_recyclable());
        }
        self.remove_files(unneeded);
        Ok(())
    }

    /// Ends a log of which all is in tables. Gives the number below which no segment is needed.
    fn end_flushed_log(&self, writer: &mut Writer) -> Result<Option<FileNumber>> {
        let number = writer.wal.pool.discard_next(self);
        if !writer.wal.may_be_let_go() || self.tree.has_writes_in_memory() {
            return Ok(None);
        }
        writer.wal.finish(self).inspect_err(|error| self.lifecycle.poison(error))?;
        self.commits.set_newest_segment(number);
        Ok(Some(number))
    }

    /// For a close, with the writer held: the changes that say that no segment is needed, if all that
    /// was logged is in tables.
    pub(crate) fn log_changes_at_close(
        &self,
        writer: &mut Writer,
        state: &ManifestState,
    ) -> Vec<Change> {
        let number = writer.wal.pool.discard_next(self);
        match writer.wal.may_be_let_go() && !self.tree.has_writes_in_memory() {
            true => log_begins_at(number, state),
            false => Vec::new(),
        }
    }
}

/// What no family has in memory needs no segment below a number.
fn log_begins_at(number: FileNumber, state: &ManifestState) -> Vec<Change> {
    let families = state.families.iter().filter(|(_, family)| family.log_number < number);
    let change = |(id, family): (&u32, &crate::manifest::FamilyState)| Change::FlushedThrough {
        family: *id,
        sequence: family.flushed_through,
        log_number: number,
    };
    families.map(change).collect()
}

/// See the module.
struct LogRest {
    inner: Arc<DbInner>,
}

impl Job for LogRest {
    fn name(&self) -> String {
        "rest of the log".to_string()
    }

    fn cause(&self) -> Cause {
        Cause::Wal
    }

    fn level(&self) -> Level {
        0
    }

    fn urgency(&self) -> Urgency {
        Urgency::Idle
    }

    fn step(&mut self, _: &mut StepContext<'_>) -> Step {
        Step::Done(self.inner.rest_log())
    }

    fn end(self: Box<Self>, _: Ending, _: Spent) {}
}
