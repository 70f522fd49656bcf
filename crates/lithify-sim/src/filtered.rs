//! A family with a compaction filter that changes and removes rows while they live, and how its model
//! keeps up with it.
//!
//! A filter is asked whenever a compaction comes by, so the model cannot know when. It is told of the end of
//! each compaction, reads the family, and takes over what has changed, if the rule makes that of what was
//! there ([`outcomes`]). From then on the model is exact again: what was once filtered must stay so until it
//! is written anew. Before a snapshot is taken nothing must be under way, for what runs already does not
//! know of it.
//!
//! After a compaction of everything that no snapshot holds back, every row must be one that the rule leaves
//! ([`check_all`]).

use crate::model::Rows;
use crate::operation::{FAMILIES, FAMILY_COUNT, filtering};
use lithify::stats::{JobKind, JobOutcome};
use lithify::{
    ColumnFamily, CompactionFilter, ErrorKind, Event, EventListener, FilterDecision, Options,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

/// What the filter and the listener have seen, and what the filter is to do.
#[derive(Default)]
pub(crate) struct Probe {
    /// The filter is in force.
    is_supplied: AtomicBool,
    /// A compaction has ended since the model was compared.
    has_worked: AtomicBool,
    /// A table was moved past the filter. With threads one may be whose move was begun before.
    pub(crate) has_moved: AtomicBool,
    /// At how many rows from now on the filter fails; 0 for never.
    pub(crate) fails_in_rows: AtomicU64,
    /// How often it has failed.
    pub(crate) failures: AtomicU64,
    /// Jobs that ended because of that.
    pub(crate) failed_jobs: AtomicU64,
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

/// The filter of a case, which may have none.
#[derive(Default)]
pub(crate) struct Filtered {
    slot: Option<usize>,
    pub(crate) probe: Arc<Probe>,
}

impl Filtered {
    /// That of the family in a slot.
    pub(crate) fn new(slot: Option<usize>) -> Filtered {
        Filtered { slot, ..Filtered::default() }
    }

    /// The slot of half of the cases that are numbered so; the others have no filter.
    pub(crate) fn slot_of(number: u64) -> Option<usize> {
        let slot = (number % (2 * FAMILY_COUNT as u64)) as usize;
        (slot < FAMILY_COUNT).then_some(slot)
    }

    /// The slot of the family that has it.
    pub(crate) fn slot(&self) -> Option<usize> {
        self.slot
    }

    /// Whether the family in a slot has it.
    pub(crate) fn is_of(&self, slot: usize) -> bool {
        self.slot == Some(slot)
    }

    /// Who has to hear of the jobs of an opening. The filter is not in force yet.
    pub(crate) fn hearer(&self) -> impl Fn(&Event) + Send + Sync + 'static {
        self.probe.is_supplied.store(false, SeqCst);
        let (probe, slot) = (Arc::clone(&self.probe), self.slot);
        move |event| {
            if let Some(slot) = slot {
                probe.hear(FAMILIES[slot], event);
            }
        }
    }

    /// Options of an opening, with who has to hear of its jobs, if there is a filter.
    pub(crate) fn listening(&self, options: Options) -> Options {
        match self.slot {
            Some(_) => Options { event_listener: EventListener::new(self.hearer()), ..options },
            None => options,
        }
    }

    /// Gives the family of a slot the filter, if it is its own; whether it is.
    pub(crate) fn supply(&self, family: &ColumnFamily, slot: usize) -> bool {
        if self.is_of(slot) {
            family.supply_compaction_filter(self.probe.filter());
            self.probe.is_supplied.store(true, SeqCst);
        }
        self.is_of(slot)
    }

    /// The slot, if a compaction of its family has ended since the last time.
    pub(crate) fn worked(&self) -> Option<usize> {
        self.slot.filter(|_| self.probe.has_worked.swap(false, SeqCst))
    }
}

/// The rows of a family, without a snapshot: there would be work to do at its release.
pub(crate) fn all_rows(family: &ColumnFamily) -> lithify::Result<Rows> {
    let mut cursor = family.cursor(..)?;
    let mut rows = Rows::new();
    while cursor.next()? {
        rows.insert(cursor.key().into(), cursor.value().into());
    }
    Ok(rows)
}

/// What the filter has made of a row.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) key: Arc<[u8]>,
    pub(crate) before: Arc<[u8]>,
    pub(crate) after: Option<Arc<[u8]>>,
}

/// The rows of a family in a slot that are found otherwise than they were before.
///
/// # Errors
/// The rule makes no such rows of those.
pub(crate) fn outcomes(slot: usize, before: &Rows, found: &Rows) -> Result<Vec<Outcome>, String> {
    let mut outcomes = Vec::new();
    let mut found_before = 0;
    for (key, value) in before {
        let after = found.get(key);
        found_before += usize::from(after.is_some());
        if after == Some(value) {
            continue;
        }
        if !filtering::may_become(slot, key, value, after.map(|after| &after[..])) {
            let key = key.escape_ascii();
            return Err(format!("a filter makes no {after:x?} of \"{key}\", {value:x?}"));
        }
        let (key, before) = (Arc::clone(key), Arc::clone(value));
        outcomes.push(Outcome { key, before, after: after.cloned() });
    }
    match found_before == found.len() {
        true => Ok(outcomes),
        false => Err("a compaction with a filter has brought rows back".to_string()),
    }
}

/// Every row has been shown to the filter.
///
/// # Errors
/// One was not.
pub(crate) fn check_all(rows: &Rows) -> Result<(), String> {
    let is_left = |(key, value): &(&Arc<[u8]>, &Arc<[u8]>)| {
        filtering::decide(key, value) != FilterDecision::Keep
    };
    match rows.iter().find(is_left) {
        Some((key, _)) => Err(format!("the filter was not asked of \"{}\"", key.escape_ascii())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_back_is_found() {
        let keys = (0..40_u8).map(|byte| vec![byte]);
        let rows: Rows = keys.map(|key| (key.into(), [1_u8, 3].as_slice().into())).collect();
        let made = |(key, value): (&Arc<[u8]>, &Arc<[u8]>)| match filtering::decide(key, value) {
            FilterDecision::Keep => Some((Arc::clone(key), Arc::clone(value))),
            FilterDecision::Remove => None,
            FilterDecision::Change(value) => Some((Arc::clone(key), value.into())),
        };
        let filtered: Rows = rows.iter().filter_map(made).collect();
        let slot = FAMILY_COUNT - 1;
        assert!(outcomes(slot, &rows, &rows).unwrap().is_empty());
        assert!(outcomes(slot, &rows, &filtered).unwrap().len() > 10);
        assert!(outcomes(slot, &filtered, &rows).is_err());
        assert!(check_all(&rows).is_err() && check_all(&filtered).is_ok());
        let removed = rows.iter().find(|(key, _)| !filtered.contains_key(*key)).unwrap();
        let back = filtered.iter().chain([removed]);
        let back: Rows = back.map(|(key, value)| (Arc::clone(key), Arc::clone(value))).collect();
        assert!(outcomes(slot, &filtered, &back).unwrap_err().contains("brought rows back"));
    }
}
