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

use crate::base::ColumnFamilyId;
use crate::db::inner::DbInner;
use crate::db::jobs::Jobs;
use crate::db::tree::family::Family;
use crate::stats::{Counter, DelayCause};
use crate::{Error, ErrorKind, Result};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a failed piece of work was to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Work {
    /// Writing memtables to tables: memory that writers wait for.
    Flush,
    /// Merging or moving tables.
    Compaction,
}

/// So many refusals there were since the database was opened; compared with how many later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Refusals(u64);

/// The last refusal of its kind, with its number.
type Last = (Refusals, Error);

/// What was refused so far.
#[derive(Default)]
pub(crate) struct RefusalLog {
    count: Refusals,
    last: Option<Error>,
    /// Of a family's work.
    of_families: BTreeMap<(Work, ColumnFamilyId), Last>,
    last_flush: Option<Last>,
    last_for_space: Option<Last>,
}

impl RefusalLog {
    /// Work for these families was refused.
    pub(crate) fn note(
        &mut self,
        work: Work,
        families: impl IntoIterator<Item = ColumnFamilyId>,
        error: &Error,
    ) {
        self.count.0 += 1;
        self.last = Some(error.clone());
        let last = (self.count, error.clone());
        for family in families {
            self.of_families.insert((work, family), last.clone());
        }
        if work == Work::Flush {
            self.last_flush = Some(last.clone());
        }
        if error.kind() == ErrorKind::NoSpace {
            self.last_for_space = Some(last);
        }
    }

    /// The last refusal since `before` of such work for one of the families.
    fn of(&self, work: Work, families: &[Arc<Family>], before: Refusals) -> Option<&Error> {
        let last = families.iter().filter_map(|family| self.of_families.get(&(work, family.id)));
        since(last.max_by_key(|(count, _)| *count), before)
    }
}

fn since(last: Option<&Last>, before: Refusals) -> Option<&Error> {
    last.filter(|(count, _)| *count > before).map(|(_, error)| error)
}

impl DbInner {
    /// Whether background work that failed so was refused, see the module: the caller notes it. Where
    /// the state on disk is unknown writing stops; a database that is being closed, or has stopped
    /// writing already, takes no note.
    pub(crate) fn is_refusal(&self, error: &Error) -> bool {
        let mut is_unknown = error.kind() == ErrorKind::Poisoned;
        if planted!(RefusalStopsWriting) && error.kind() != ErrorKind::NoSpace {
            is_unknown = true;
        }
        if is_unknown {
            self.lifecycle.poison(error);
        }
        let is_refusal =
            !is_unknown && error.kind() != ErrorKind::Closed && !self.lifecycle.has_failed();
        if is_refusal {
            self.ledger.count(Counter::BackgroundRefusals, 1);
        }
        is_refusal
    }
}

impl Jobs {
    /// How much was refused so far, to be compared later.
    pub(crate) fn refusals(&self) -> Refusals {
        self.state().refusals.count
    }

    /// Whether such work for one of these families was refused since `before`.
    pub(crate) fn is_refused(
        &self,
        work: Work,
        families: &[Arc<Family>],
        before: Refusals,
    ) -> bool {
        self.state().refusals.of(work, families, before).is_some()
    }

    /// The last refusal since `before` of such work for one of these families, as an error.
    pub(crate) fn check_refused(
        &self,
        work: Work,
        families: &[Arc<Family>],
        before: Refusals,
    ) -> Result<()> {
        refused(self.state().refusals.of(work, families, before))
    }

    /// The last refusal of any work since `before`, as an error.
    pub(crate) fn check_refusals(&self, before: Refusals) -> Result<()> {
        let background = self.state();
        let RefusalLog { count, last, .. } = &background.refusals;
        refused(last.as_ref().filter(|_| *count > before))
    }

    /// The last refusal since `before` that keeps a writer waiting, as an error: of any work for want
    /// of space; where writers wait for memory, of a flush.
    pub(crate) fn check_drained(&self, cause: DelayCause, before: Refusals) -> Result<()> {
        let background = self.state();
        let RefusalLog { last_flush, last_for_space, .. } = &background.refusals;
        let is_for_memory = matches!(cause, DelayCause::Memtable | DelayCause::MemoryBudget);
        refused(since(last_flush.as_ref().filter(|_| is_for_memory), before))?;
        refused(since(last_for_space.as_ref(), before))
    }

    /// What the last refusal said; empty if there was none.
    pub(crate) fn last_refusal(&self) -> String {
        self.state().refusals.last.as_ref().map(Error::to_string).unwrap_or_default()
    }
}

fn refused(error: Option<&Error>) -> Result<()> {
    if planted!(RefusalNotReported) {
        return Ok(());
    }
    error.cloned().map_or(Ok(()), Err)
}
