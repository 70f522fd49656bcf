//! A family with a compaction filter that changes and removes rows while they live ([`crate::filtered`]).
//! Every other read, commit and copy is compared as in any family.
//!
//! Every other compaction by hand is made to fail before: that it failed must be said by its error, by
//! the job's end and by the statistics, and nothing else may come of it.
//!
//! With background threads rows change at any moment, so those cases have no such filter.

use super::session::{Session, text};
use crate::filtered::{Filtered, all_rows, check_all, outcomes};
use crate::operation::{Ending, Key, lifetimes, vary_dictionaries};
use lithify::stats::{Counter, JobFigure};
use lithify::{ColumnFamily, ErrorKind, Event};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

/// A filter that is to fail does so at one of the first so many rows.
const FAILS_WITHIN_ROWS: u64 = 40;

/// The filter of a case.
pub(super) struct Filtering {
    filter: Filtered,
    /// Compactions of the family by hand.
    compactions: u64,
}

impl Filtering {
    /// That of a case with this seed.
    pub(super) fn new(seed: u64, has_threads: bool) -> Filtering {
        // The digits below are of dictionaries and expiry.
        let slot = Filtered::slot_of(seed / 12).filter(|_| !has_threads);
        Filtering { filter: Filtered::new(slot), compactions: 0 }
    }

    /// As [`Filtered::hearer`].
    pub(super) fn hearer(&self) -> impl Fn(&Event) + Send + Sync + 'static {
        self.filter.hearer()
    }
}

impl Session<'_> {
    /// Gives a family what its options do not hold.
    pub(super) fn supply(&self, family: &ColumnFamily, slot: usize) -> lithify::Result<()> {
        vary_dictionaries(family, self.seed)?;
        if !self.filtering.filter.supply(family, slot) {
            lifetimes::supply_filter(family, slot, self.seed);
        }
        Ok(())
    }

    /// Takes over what the filter has made of rows since the last time.
    pub(super) fn follow_filter(&mut self) -> Result<(), String> {
        let Some(slot) = self.filtering.filter.worked() else { return Ok(()) };
        if self.filtering.filter.probe.has_moved.load(SeqCst) {
            return Err("a table was moved past the filter".to_string());
        }
        let (Some((handle, _)), Some(content)) = (self.handle(slot), self.state.family(slot))
        else {
            return Ok(());
        };
        let found = all_rows(&handle).map_err(text)?;
        self.rows_compared += content.rows().len() as u64;
        let outcomes = outcomes(slot, content.rows(), &found)?;
        self.tally.count("rows filtered", outcomes.len() as u64);
        for outcome in &outcomes {
            self.state.refilter(slot, &outcome.key, outcome.after.as_ref());
        }
        Ok(())
    }

    /// Lets nothing be under way that does not know of a snapshot from now on.
    pub(super) fn settle_filter(&mut self) -> Result<(), String> {
        if self.filtering.filter.slot().is_some() {
            self.db().wait_for_compaction().map_err(text)?;
        }
        self.follow_filter()
    }

    /// Compacts keys of a family by hand.
    pub(super) fn compact(
        &mut self,
        slot: usize,
        range: Option<&(Key, Key)>,
    ) -> Result<(), String> {
        let Some((handle, _)) = self.handle(slot) else { return Ok(()) };
        let compact = || handle.compact_range(range.cloned().unzip());
        if !self.filtering.filter.is_of(slot) {
            return compact().map_err(text);
        }
        // What was begun before the filter was there may still copy blocks.
        self.settle_filter()?;
        let copied = || handle.stats().figures.job_total(JobFigure::CopiedBlocks);
        let copied_before = copied();
        self.filtering.compactions += 1;
        if self.filtering.compactions.is_multiple_of(2) {
            self.fail_to_compact(compact)?;
        }
        compact().map_err(text)?;
        if copied() != copied_before {
            return Err("blocks were copied past the filter".to_string());
        }
        self.follow_filter()?;
        let is_held_back = self.snapshots.iter().any(Option::is_some)
            || self.transactions.iter().any(Option::is_some);
        match range {
            None if !is_held_back => self.check_filtered(slot),
            _ => Ok(()),
        }
    }

    /// Brings the filter to all rows of a database that is opened again: what its life came to is counted
    /// at its end.
    pub(super) fn filter_all(&mut self) -> Result<(), String> {
        let Some(slot) = self.filtering.filter.slot() else { return Ok(()) };
        self.reopen(Ending::Close, &self.settings.clone())?;
        self.compact(slot, None)
    }

    /// Compacts with a filter that fails, if it is asked of rows enough.
    fn fail_to_compact(&mut self, compact: impl Fn() -> lithify::Result<()>) -> Result<(), String> {
        // What the flush calls for, or runs already, would meet the failure in its place.
        self.db().flush().map_err(text)?;
        self.settle_filter()?;
        let probe = Arc::clone(&self.filtering.filter.probe);
        let refusals =
            |session: &Self| session.db().stats().figures.counter(Counter::BackgroundRefusals);
        let (refused, failed) = (refusals(self), probe.failed_jobs.load(SeqCst));
        let row = 1 + (self.seed ^ self.filtering.compactions) % FAILS_WITHIN_ROWS;
        probe.fails_in_rows.store(row, SeqCst);
        let result = compact();
        probe.fails_in_rows.store(0, SeqCst);
        let failures = probe.failures.swap(0, SeqCst);
        let said = (refusals(self) - refused, probe.failed_jobs.load(SeqCst) - failed);
        self.tally.count("filters that failed", failures);
        match result {
            Ok(()) if failures == 0 => {}
            Err(error) if failures > 0 && error.kind() == ErrorKind::CompactionFilter => {}
            result => return Err(format!("a filter failed {failures} times: {result:?}")),
        }
        if said != (failures, failures) {
            return Err(format!("a filter failed {failures} times, and {said:?} were told"));
        }
        self.follow_filter()
    }

    fn check_filtered(&mut self, slot: usize) -> Result<(), String> {
        self.tally.count("families filtered as a whole", 1);
        self.state.family(slot).map_or(Ok(()), |content| check_all(content.rows()))
    }
}
