//! Rows that a compaction filter changes and removes while others write and read them.
//!
//! Each writer has rows of its own here. Its steps put them all, and now and then delete them by range. A row
//! of a step is as it was put or as the filter makes it. Once anybody has seen it filtered it stays so until the
//! next step, for readers that begin then and after any crash: a compaction shows nothing that is not durable.
//!
//! What a snapshot sees stays as it is, but for compactions that had begun before it. Those have ended
//! behind a compaction of everything, so rows that were read then must not change by the next one.

use super::WRITERS;
use super::bench::{Bench, Group, ROWS, text};
use crate::digest;
use crate::operation::{Value, filtering};
use lithify::{ColumnFamily, CompactionFilter, Db, FilterDecision, Slice, Snapshot};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

/// The column family of these rows.
pub(super) const FAMILY: &str = "filtered";

/// A slot whose families have no merge operator.
const PLAIN: usize = 2;

/// One step of so many deletes the rows.
const ROUND: u64 = 5;

const VALUE_BYTES: u32 = 120;

/// Between two compactions.
const REST: Duration = Duration::from_millis(1);

/// The rows of a writer, as they are found.
type Rows = Vec<Option<Slice>>;

/// The rows of all writers.
pub(super) struct FilteredRows {
    family: ColumnFamily,
    writers: Vec<Known>,
}

/// What is known of the rows of a writer.
#[derive(Default)]
struct Known {
    /// Its steps.
    steps: Group,
    /// Of each row the newest step of which it was seen filtered.
    filtered: [AtomicU64; ROWS as usize],
}

/// What a read that begins now must show.
struct Floor {
    step: u64,
    filtered: [u64; ROWS as usize],
}

/// What a crash must leave, by writer.
pub(super) struct Promise(Vec<Floor>);

impl Known {
    /// `step` is the first that is promised; what was seen filtered is there in any case.
    fn floor(&self, step: u64) -> Floor {
        let filtered = std::array::from_fn(|row| self.filtered[row].load(SeqCst));
        Floor { step: filtered.iter().fold(step, |step, seen| step.max(*seen)), filtered }
    }
}

fn key(writer: u64, row: u64) -> Vec<u8> {
    format!("filtered{writer}-{row:04}").into_bytes()
}

/// What a step puts, if it does not delete.
fn written(writer: u64, row: u64, step: u64) -> Option<Vec<u8>> {
    let seed = digest::mix(digest::mix(writer, row), step);
    (!step.is_multiple_of(ROUND)).then(|| Value { seed, length: VALUE_BYTES }.bytes())
}

/// Whether a row is what a step left, or what the filter makes of that; only this if it `is_filtered`.
fn fits(key: &[u8], written: Option<&[u8]>, found: Option<&[u8]>, is_filtered: bool) -> bool {
    let Some(written) = written else { return found.is_none() };
    match filtering::decide(key, written) {
        FilterDecision::Keep => found == Some(written),
        _ if found == Some(written) => !is_filtered,
        _ => filtering::may_become(PLAIN, key, written, found),
    }
}

impl FilteredRows {
    pub(super) fn new(family: ColumnFamily) -> FilteredRows {
        family.supply_compaction_filter(CompactionFilter::new("rule", |row| {
            Ok(filtering::decide(row.key, row.value))
        }));
        FilteredRows { family, writers: (0..WRITERS).map(|_| Known::default()).collect() }
    }

    /// Makes the next step of a writer.
    pub(super) fn step(&self, bench: &Bench, writer: u64) -> Result<(), String> {
        let steps = &self.writers[writer as usize].steps;
        let next = steps.begun.load(SeqCst) + 1;
        steps.begun.store(next, SeqCst);
        let mut batch = bench.db.batch();
        for row in 0..ROWS {
            if let Some(value) = written(writer, row, next) {
                batch.put(&self.family, key(writer, row), value);
            }
        }
        if next.is_multiple_of(ROUND) {
            batch.delete_range(&self.family, key(writer, 0), key(writer, ROWS));
        }
        batch.commit().map_err(text)?;
        steps.done.store(next, SeqCst);
        Ok(())
    }

    /// Reads all rows of a writer at one moment, and again at a snapshot.
    pub(super) fn look(&self, bench: &Bench, writer: u64) -> Result<(), String> {
        let known = &self.writers[writer as usize];
        let floor = || known.floor(known.steps.done.load(SeqCst));
        let before = floor();
        let found = rows(&self.family, writer, None)?;
        self.judge(writer, &found, &before)?;
        let before = floor();
        let snapshot = bench.db.snapshot();
        let step = self.judge(writer, &rows(&self.family, writer, Some(&snapshot))?, &before)?;
        let before = Floor { step, ..known.floor(0) };
        let again = self.judge(writer, &rows(&self.family, writer, Some(&snapshot))?, &before)?;
        match again == step {
            true => Ok(()),
            false => Err(format!("a snapshot shows step {step} of writer {writer}, then {again}")),
        }
    }

    /// The step that rows are of, which follows the floor; notes which of them are filtered.
    fn judge(&self, writer: u64, found: &Rows, floor: &Floor) -> Result<u64, String> {
        let known = &self.writers[writer as usize];
        let last = known.steps.begun.load(SeqCst);
        let is_of = |step: &u64| {
            (0..ROWS).zip(found).all(|(row, found)| {
                let (key, written) = (key(writer, row), written(writer, row, *step));
                let is_filtered = *step == floor.filtered[row as usize];
                fits(&key, written.as_deref(), found.as_deref(), is_filtered)
            })
        };
        let Some(step) = (floor.step..=last).find(is_of) else {
            return Err(format!(
                "the filtered rows of writer {writer} are of none of its steps {} to {last}, or no \
                 longer filtered",
                floor.step
            ));
        };
        for (row, found) in (0..ROWS).zip(found) {
            if found.as_deref() != written(writer, row, step).as_deref() {
                known.filtered[row as usize].fetch_max(step, SeqCst);
            }
        }
        Ok(step)
    }

    /// Compacts until the writers are done, every other time beside a snapshot; gives how often.
    pub(super) fn keep(&self, bench: &Bench) -> Result<u64, String> {
        let mut compactions = 0_u64;
        while !bench.is_over() {
            match compactions.is_multiple_of(2) {
                true => self.compact()?,
                false => self.check_protection(bench)?,
            }
            compactions += 1;
            std::thread::sleep(REST);
        }
        Ok(compactions)
    }

    /// Shows the filter all rows that no snapshot sees.
    fn compact(&self) -> Result<(), String> {
        self.family.compact_range(..).map_err(text)
    }

    /// What a snapshot sees is kept for it.
    fn check_protection(&self, bench: &Bench) -> Result<(), String> {
        let snapshot = bench.db.snapshot();
        let compacted = || -> Result<Vec<Rows>, String> {
            self.compact()?;
            (0..WRITERS).map(|writer| rows(&self.family, writer, Some(&snapshot))).collect()
        };
        match compacted()? == compacted()? {
            true => Ok(()),
            false => Err("rows were filtered that a snapshot sees".to_string()),
        }
    }

    /// What a crash must leave of these rows, from now on: what is filtered now stays so.
    pub(super) fn promise(&self, is_promised: bool) -> Result<Promise, String> {
        let floor = |known: &Known| {
            let done = known.steps.done.load(SeqCst);
            known.floor(if is_promised { done } else { 0 })
        };
        for (writer, known) in (0..).zip(&self.writers) {
            let before = known.floor(known.steps.done.load(SeqCst));
            self.judge(writer, &rows(&self.family, writer, None)?, &before)?;
        }
        Ok(Promise(self.writers.iter().map(floor).collect()))
    }

    /// Whether it is what was promised.
    pub(super) fn check_crashed(&self, db: &Db, promise: &Promise) -> Result<(), String> {
        let family = db.existing_column_family(FAMILY).map_err(text)?;
        let family = family.ok_or("the family of filtered rows is gone")?;
        for (writer, floor) in (0..).zip(&promise.0) {
            self.judge(writer, &rows(&family, writer, None)?, floor)?;
        }
        Ok(())
    }

    /// With nobody left, a compaction of everything shows the filter every row.
    pub(super) fn check_end(&self) -> Result<(), String> {
        self.compact()?;
        for (writer, known) in (0..).zip(&self.writers) {
            let done = known.steps.done.load(SeqCst);
            let floor = Floor { step: done, filtered: [done; ROWS as usize] };
            let found = rows(&self.family, writer, None)?;
            self.judge(writer, &found, &floor).map_err(|what| format!("in the end {what}"))?;
        }
        Ok(())
    }
}

/// The rows of a writer at one moment.
fn rows(family: &ColumnFamily, writer: u64, at: Option<&Snapshot>) -> Result<Rows, String> {
    let keys: Vec<_> = (0..ROWS).map(|row| key(writer, row)).collect();
    let rows = match at {
        Some(snapshot) => family.multi_get_at(&keys, snapshot),
        None => family.multi_get(&keys),
    };
    rows.map_err(text)
}
