//! A family with a compaction filter that changes and removes rows while they live.
//!
//! A filter is asked whenever a compaction comes by, so the model cannot know when. It is told of the end of
//! each compaction, reads the family, and takes over what has changed, if the rule makes that of what was
//! there. From then on the model is exact again: what was once filtered must stay so until it is
//! written anew, and every other read, commit and copy is compared as in any family. Before a
//! snapshot is taken nothing must be under way, for what runs already does not know of it.
//!
//! After a compaction of everything that no snapshot holds back, every row must be one that the rule leaves.
//! Every other compaction by hand is made to fail before: that it failed must be said by its error, by
//! the job's end and by the statistics, and nothing else may come of it.
//!
//! With background threads rows change at any moment, so those cases have no such filter.

use super::session::{Session, text};
use crate::operation::{
    Ending, FAMILIES, FAMILY_COUNT, Key, filtering, lifetimes, vary_dictionaries,
};
use lithify::stats::{Counter, JobFigure, JobKind, JobOutcome};
use lithify::{
    ColumnFamily, CompactionFilter, ErrorKind, Event, EventListener, FilterDecision, Options,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

/// A filter that is to fail does so at one of the first so many rows.
const FAILS_WITHIN_ROWS: u64 = 40;

/// What the filter and the listener have seen, and what the filter is to do.
#[derive(Default)]
struct Probe {
    /// The filter is in force.
    is_supplied: AtomicBool,
    /// A compaction has ended since the model was compared.
    has_worked: AtomicBool,
    /// A table was moved past the filter.
    has_moved: AtomicBool,
    /// At how many rows from now on the filter fails; 0 for never.
    fails_in_rows: AtomicU64,
    /// How often it has failed.
    failures: AtomicU64,
    /// Jobs that ended because of that.
    failed_jobs: AtomicU64,
}

impl Probe {
    fn hear(&self, family: &str, event: &Event) {
        let Event::JobEnded(end) = event else { return };
        if end.job.family != family || end.job.kind == JobKind::Flush {
            return;
        }
        self.has_worked.store(true, SeqCst);
        if end.job.kind == JobKind::Move && self.is_supplied.load(SeqCst) {
            self.has_moved.store(true, SeqCst);
        }
        if let JobOutcome::Failed { kind: ErrorKind::CompactionFilter, .. } = end.outcome {
            self.failed_jobs.fetch_add(1, SeqCst);
        }
    }

    /// Whether the filter fails at the next row.
    fn fails(&self) -> bool {
        let left = self.fails_in_rows.load(SeqCst);
        self.fails_in_rows.store(left.saturating_sub(1), SeqCst);
        self.failures.fetch_add(u64::from(left == 1), SeqCst);
        left == 1
    }

    fn filter(self: &Arc<Self>) -> CompactionFilter {
        let probe = Arc::clone(self);
        CompactionFilter::new("rule", move |row| match probe.fails() {
            true => Err("on purpose".into()),
            false if row.level == 0 => Err("a row of level 0".into()),
            false => Ok(filtering::decide(row.key, row.value)),
        })
    }
}

/// The filter of a case.
#[derive(Default)]
pub(super) struct Filtering {
    /// The slot of the family that has it; in half of the cases there is none.
    slot: Option<usize>,
    probe: Arc<Probe>,
    /// Compactions of the family by hand.
    compactions: u64,
}

impl Filtering {
    /// That of a case with this seed.
    pub(super) fn new(seed: u64, has_threads: bool) -> Filtering {
        // The digits below are of dictionaries and expiry.
        let slot = (seed / 12) as usize % (2 * FAMILY_COUNT);
        let slot = (slot < FAMILY_COUNT && !has_threads).then_some(slot);
        Filtering { slot, ..Filtering::default() }
    }

    /// Options of an opening, with who has to hear of its jobs. The filter is not in force yet.
    pub(super) fn listening(&self, options: Options) -> Options {
        let Some(slot) = self.slot else { return options };
        self.probe.is_supplied.store(false, SeqCst);
        let probe = Arc::clone(&self.probe);
        let event_listener = EventListener::new(move |event| probe.hear(FAMILIES[slot], event));
        Options { event_listener, ..options }
    }

    fn is_of(&self, slot: usize) -> bool {
        self.slot == Some(slot)
    }
}

/// The rows of a family, without a snapshot: there would be work to do at its release.
fn all_rows(family: &ColumnFamily) -> lithify::Result<BTreeMap<Vec<u8>, Vec<u8>>> {
    let mut cursor = family.cursor(..)?;
    let mut rows = BTreeMap::new();
    while cursor.next()? {
        rows.insert(cursor.key().to_vec(), cursor.value().to_vec());
    }
    Ok(rows)
}

impl Session<'_> {
    /// Gives a family what its options do not hold.
    pub(super) fn supply(&self, family: &ColumnFamily, slot: usize) -> lithify::Result<()> {
        vary_dictionaries(family, self.seed)?;
        if self.filtering.is_of(slot) {
            family.supply_compaction_filter(self.filtering.probe.filter());
            self.filtering.probe.is_supplied.store(true, SeqCst);
        } else {
            lifetimes::supply_filter(family, slot, self.seed);
        }
        Ok(())
    }

    /// Takes over what the filter has made of rows since the last time.
    pub(super) fn follow_filter(&mut self) -> Result<(), String> {
        let probe = &self.filtering.probe;
        let Some(slot) = self.filtering.slot.filter(|_| probe.has_worked.swap(false, SeqCst))
        else {
            return Ok(());
        };
        if probe.has_moved.load(SeqCst) {
            return Err("a table was moved past the filter".to_string());
        }
        let (Some((handle, _)), Some(content)) = (self.handle(slot), self.state.family(slot))
        else {
            return Ok(());
        };
        let found = all_rows(&handle).map_err(text)?;
        let rows = Arc::clone(content.rows());
        for (key, before) in rows.iter() {
            let after = found.get(&key[..]).map(|value| &value[..]);
            if after == Some(before) {
                continue;
            }
            if !filtering::may_become(slot, key, before, after) {
                let key = key.escape_ascii();
                return Err(format!("a filter makes no {after:x?} of \"{key}\", {before:x?}"));
            }
            self.tally.count("rows filtered", 1);
            self.state.refilter(slot, key, after);
        }
        self.rows_compared += rows.len() as u64;
        match self.state.family(slot) {
            Some(content) if content.rows().len() != found.len() => {
                Err("a compaction with a filter has brought rows back".to_string())
            }
            _ => Ok(()),
        }
    }

    /// Lets nothing be under way that does not know of a snapshot from now on.
    pub(super) fn settle_filter(&mut self) -> Result<(), String> {
        if self.filtering.slot.is_some() {
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
        let start = range.map(|(start, _)| &start[..]);
        let end = range.map(|(_, end)| &end[..]);
        let compact = || handle.compact_range(start, end);
        if !self.filtering.is_of(slot) {
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
        let Some(slot) = self.filtering.slot else { return Ok(()) };
        self.reopen(Ending::Close, &self.settings.clone())?;
        self.compact(slot, None)
    }

    /// Compacts with a filter that fails, if it is asked of rows enough.
    fn fail_to_compact(&mut self, compact: impl Fn() -> lithify::Result<()>) -> Result<(), String> {
        // What the flush calls for, or runs already, would meet the failure in its place.
        self.db().flush().map_err(text)?;
        self.settle_filter()?;
        let probe = Arc::clone(&self.filtering.probe);
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

    /// Every row has been shown to the filter.
    fn check_filtered(&mut self, slot: usize) -> Result<(), String> {
        self.tally.count("families filtered as a whole", 1);
        let Some(content) = self.state.family(slot) else { return Ok(()) };
        let is_left = |(key, value): &(&Arc<[u8]>, &Arc<[u8]>)| {
            filtering::decide(key, value) != FilterDecision::Keep
        };
        match content.rows().iter().find(is_left) {
            Some((key, _)) => {
                Err(format!("the filter was not asked of \"{}\"", key.escape_ascii()))
            }
            None => Ok(()),
        }
    }
}
