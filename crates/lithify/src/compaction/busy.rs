//! What compactions under way hold, and what rests after one was refused. Pure.

use super::picker::Compaction;
use crate::base::{FileNumber, Level};
use crate::manifest::{KeyRange, TableFile};
use std::collections::{BTreeMap, BTreeSet};

/// A refused compaction's tables rest so long at first, and twice as long each time again.
const REST_US_MIN: u64 = 100_000;

/// At most this long.
const REST_US_MAX: u64 = 60_000_000;

/// What running compactions hold: their inputs, and where they write. Tables whose compaction was
/// refused rest for a while, so that others get their turn and the next try finds another tree.
#[derive(Debug, Default)]
pub struct BusySet {
    tables: BTreeSet<FileNumber>,
    outputs: Vec<BusyOutput>,
    refused: BTreeMap<FileNumber, Rest>,
}

/// A table after its compaction was refused.
#[derive(Clone, Copy, Debug)]
struct Rest {
    times: u32,
    until_us: u64,
    is_over: bool,
}

#[derive(Debug, PartialEq, Eq)]
struct BusyOutput {
    source_level: Level,
    target_level: Level,
    range: KeyRange,
}

impl BusyOutput {
    fn of(compaction: &Compaction) -> Self {
        BusyOutput {
            source_level: compaction.source_level,
            target_level: compaction.target_level,
            range: compaction.range.clone(),
        }
    }

    /// A place that is written without reading any level: the source is the target.
    fn reserved(level: Level, range: &KeyRange) -> Self {
        BusyOutput { source_level: level, target_level: level, range: range.clone() }
    }
}

impl BusySet {
    /// Nothing is running.
    pub fn new() -> Self {
        BusySet::default()
    }

    /// A compaction starts.
    pub fn add(&mut self, compaction: &Compaction) {
        self.tables.extend(compaction.input_tables().map(|(_, table)| table.metadata.number));
        self.outputs.push(BusyOutput::of(compaction));
    }

    /// A compaction has ended, installed or not.
    pub fn remove(&mut self, compaction: &Compaction) {
        for (_, table) in compaction.input_tables() {
            self.tables.remove(&table.metadata.number);
        }
        self.end(&BusyOutput::of(compaction));
    }

    /// A compaction was installed: what was refused of its tables is forgotten.
    pub fn forget_refusals(&mut self, compaction: &Compaction) {
        for (_, table) in compaction.input_tables() {
            self.refused.remove(&table.metadata.number);
        }
    }

    /// A compaction was refused: its tables rest.
    pub fn rest(&mut self, compaction: &Compaction, now_us: u64) {
        for (_, table) in compaction.input_tables() {
            let before = self.refused.get(&table.metadata.number).map_or(0, |rest| rest.times);
            let rest_us = REST_US_MIN.saturating_mul(1 << before.min(16)).min(REST_US_MAX);
            let until_us = now_us.saturating_add(rest_us);
            let rest = Rest { times: before.saturating_add(1), until_us, is_over: false };
            self.refused.insert(table.metadata.number, rest);
        }
    }

    /// Ends the rest of those whose time has come.
    pub fn wake(&mut self, now_us: u64) {
        for rest in self.refused.values_mut() {
            rest.is_over |= rest.until_us <= now_us;
        }
    }

    /// Ends the rest of all: a user asks for them.
    pub fn wake_all(&mut self) {
        self.refused.values_mut().for_each(|rest| rest.is_over = true);
    }

    /// Whether a compaction of tables that are still there was refused.
    pub fn has_refusals(&self) -> bool {
        !self.refused.is_empty()
    }

    /// Whether the table is an input of a running compaction.
    pub fn is_running(&self, table: &TableFile) -> bool {
        self.tables.contains(&table.metadata.number)
    }

    /// Whether the table is an input of a running compaction, or rests.
    pub fn is_busy(&self, table: &TableFile) -> bool {
        let number = &table.metadata.number;
        self.is_running(table) || self.refused.get(number).is_some_and(|rest| !rest.is_over)
    }

    /// Compactions that are running.
    pub fn running(&self) -> usize {
        self.outputs.len()
    }

    /// Something other than a compaction is about to put tables with keys of `range` into a level.
    pub fn reserve(&mut self, level: Level, range: &KeyRange) {
        self.outputs.push(BusyOutput::reserved(level, range));
    }

    /// It has done so, or has given up.
    pub fn release(&mut self, level: Level, range: &KeyRange) {
        self.end(&BusyOutput::reserved(level, range));
    }

    fn end(&mut self, ended: &BusyOutput) {
        if let Some(index) = self.outputs.iter().position(|output| output == ended) {
            self.outputs.swap_remove(index);
        }
    }

    /// Whether a running compaction, or a reservation, may put keys of `range` into a level.
    pub fn writes(&self, level: Level, range: &KeyRange) -> bool {
        self.outputs
            .iter()
            .any(|output| output.target_level == level && output.range.overlaps(range))
    }

    pub(super) fn reads_level0(&self) -> bool {
        self.outputs.iter().any(|output| output.source_level == 0)
    }
}
