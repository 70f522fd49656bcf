//! Background work that failed without having touched anything.
//!
//! A flush or compaction changes nothing before its edit of the manifest: until then its files are
//! its own and the inputs stay live. Whatever fails before the edit, or is refused by the manifest,
//! is a *refusal*: it is counted, the last one is kept for the statistics, those who wait for the
//! work are told, and the database goes on. The work is tried again at the next occasion: a flush
//! with new files; a compaction after its tables have rested, and without the neighbours that it
//! took along (see [`crate::compaction::picker::BusySet::rest`]).
//!
//! Writing stops only where the state on disk is unknown: an edit or a sync of the log that failed
//! halfway, a sync of the directory, a job that panicked.

use super::inner::DbInner;
use crate::compaction::picker::Compaction;
use crate::stats::Counter;
use crate::{Error, ErrorKind, Result};

/// What a failed piece of work was to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Writing memtables to tables: memory that writers wait for.
    Flush,
    /// Merging or moving tables.
    Compaction,
}

/// Refusals since the database was opened; compared with what they were before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Refusals {
    /// Of any work.
    all: u64,
    /// Of what writers wait for: of flushes, and of any work for want of space.
    blocking: u64,
}

/// What was refused so far.
#[derive(Default)]
pub(crate) struct RefusalLog {
    counts: Refusals,
    last: Option<Error>,
    last_blocking: Option<Error>,
}

impl RefusalLog {
    fn note(&mut self, work: Work, error: &Error) {
        self.counts.all += 1;
        self.last = Some(error.clone());
        if work == Work::Flush || error.kind() == ErrorKind::NoSpace {
            self.counts.blocking += 1;
            self.last_blocking = Some(error.clone());
        }
    }
}

impl DbInner {
    /// Takes note that background work failed; see the module. A database that is being closed, or
    /// has stopped writing already, takes no note.
    pub(crate) fn background_failed(&self, work: Work, error: &Error) {
        if planted!(RefusalStopsWriting) && error.kind() != ErrorKind::NoSpace {
            return self.poison(error);
        }
        match error.kind() {
            ErrorKind::Poisoned => self.poison(error),
            ErrorKind::Closed => {}
            _ if self.has_failed() => {}
            _ => {
                self.ledger.count(Counter::BackgroundRefusals, 1);
                self.background().refusals.note(work, error);
            }
        }
    }

    /// A compaction was refused: its tables rest, unless only space was wanting.
    pub(crate) fn compaction_refused(
        &self,
        family: crate::base::ColumnFamilyId,
        compaction: &Compaction,
        error: &Error,
    ) {
        if error.kind() != ErrorKind::NoSpace {
            let now_us = self.world.environment.now_us();
            let mut background = self.background();
            background.compacting.entry(family).or_default().rest(compaction, now_us);
        }
        self.background_failed(Work::Compaction, error);
    }

    /// What was refused so far, to be compared later.
    pub(crate) fn refusals(&self) -> Refusals {
        self.background().refusals.counts
    }

    /// Whether something that writers wait for was refused since `before`.
    pub(crate) fn is_blocked_since(&self, before: Refusals) -> bool {
        self.background().refusals.counts.blocking != before.blocking
    }

    /// The last refusal of any work since `before`, as an error.
    pub(crate) fn check_refusals(&self, before: Refusals) -> Result<()> {
        let background = self.background();
        let refusals = &background.refusals;
        refused(refusals.counts.all != before.all, &refusals.last)
    }

    /// The last refusal since `before` of what writers wait for, as an error.
    pub(crate) fn check_blocking_refusals(&self, before: Refusals) -> Result<()> {
        let background = self.background();
        let refusals = &background.refusals;
        refused(refusals.counts.blocking != before.blocking, &refusals.last_blocking)
    }

    /// What the last refusal said; empty if there was none.
    pub(crate) fn last_refusal(&self) -> String {
        self.background().refusals.last.as_ref().map(Error::to_string).unwrap_or_default()
    }

    /// Makes new names in the directory durable. After a failure it is unknown which are, log
    /// segments among them: writing stops.
    pub(crate) fn sync_names(&self) -> Result<()> {
        self.world.files.sync_directory(&self.path).inspect_err(|error| self.poison(error))
    }
}

fn refused(is_new: bool, last: &Option<Error>) -> Result<()> {
    match last {
        _ if planted!(RefusalNotReported) => Ok(()),
        Some(error) if is_new => Err(error.clone()),
        _ => Ok(()),
    }
}
