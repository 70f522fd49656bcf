//! What background work is under way, and what has come of a job so far.

use crate::Error;
use crate::base::{ColumnFamilyId, Level};
use crate::compaction::picker::BusySet;
use crate::compaction::{NewTable, PartOutput};
use crate::db::jobs::refusal::RefusalLog;
use crate::options::CfOptions;
use crate::stats::{JobOutcome, JobRecord};
use crate::table::{TableOptions, TableOrigin};
use std::collections::{BTreeMap, BTreeSet};

/// What background work is under way.
#[derive(Default)]
pub(crate) struct Background {
    /// Families whose immutable memtables are being flushed.
    pub(super) flushing: BTreeSet<ColumnFamilyId>,
    /// Tables and ranges that compactions work on, by family.
    pub(super) compacting: BTreeMap<ColumnFamilyId, BusySet>,
    /// Compactions under way.
    pub(super) compaction_count: usize,
    /// Families whose automatic compactions rest because a manual one runs.
    pub(super) manual: BTreeSet<ColumnFamilyId>,
    /// Whether removed tables wait to be collected.
    pub(super) garbage_is_held: bool,
    /// Compactions that still hold their input tables.
    pub(super) receivers: usize,
    /// Jobs under way that remove files.
    pub(super) deletions: usize,
    /// Work that failed and left everything as it was.
    pub(super) refusals: RefusalLog,
}

impl Background {
    /// Whether a flush is under way.
    pub(crate) fn is_flushing(&self) -> bool {
        !self.flushing.is_empty()
    }

    /// Removed tables, or files that readers hold, wait to be collected.
    pub(crate) fn hold_garbage(&mut self) {
        self.garbage_is_held = true;
    }

    /// What works on the tables of a family, if anything ever did.
    pub(crate) fn busy(&self, family: ColumnFamilyId) -> Option<&BusySet> {
        self.compacting.get(&family)
    }

    /// As [`Background::busy`], to let something go.
    pub(crate) fn busy_mut(&mut self, family: ColumnFamilyId) -> Option<&mut BusySet> {
        self.compacting.get_mut(&family)
    }

    /// What works on the tables of a family, to add to it.
    pub(crate) fn busy_or_new(&mut self, family: ColumnFamilyId) -> &mut BusySet {
        self.compacting.entry(family).or_default()
    }
}

/// What a job did for a family.
pub(crate) type FamilyRecord = (ColumnFamilyId, JobRecord);

/// What has come of a job's parts so far.
pub(crate) struct Gathered {
    pub(crate) remaining: usize,
    pub(crate) tables: Vec<(ColumnFamilyId, NewTable)>,
    records: BTreeMap<(ColumnFamilyId, Level), JobRecord>,
    pub(crate) is_failed: bool,
}

impl Gathered {
    pub(crate) fn new(parts: usize) -> Self {
        Gathered {
            remaining: parts,
            tables: Vec::new(),
            records: BTreeMap::new(),
            is_failed: false,
        }
    }

    /// Takes in one part, which wrote into `level`; true if it was the last.
    pub(crate) fn add(&mut self, family: ColumnFamilyId, level: Level, output: PartOutput) -> bool {
        let record = self.records.entry((family, level)).or_default();
        record.target_level = level;
        for table in output.tables {
            record.written_bytes += table.metadata.size_bytes;
            record.written_raw_bytes += table.metadata.raw_bytes;
            self.tables.push((family, table));
        }
        record.entries_in += output.entries_in;
        record.entries_dropped += output.entries_in.saturating_sub(output.entries_out);
        record.copied_blocks += output.copied.blocks;
        record.copied_bytes += output.copied.bytes;
        record.wall_us += output.spent.wall_us;
        record.cpu_ns += output.spent.cpu_ns;
        self.remaining -= 1;
        self.remaining == 0
    }

    /// Notes that a part failed; true if it was the last.
    pub(crate) fn fail(&mut self) -> bool {
        self.is_failed = true;
        self.remaining -= 1;
        self.remaining == 0
    }

    /// Takes everything out, to be installed or thrown away, with one record per family and level.
    pub(crate) fn take(&mut self) -> (Vec<(ColumnFamilyId, NewTable)>, Vec<FamilyRecord>) {
        let records = std::mem::take(&mut self.records);
        let records = records.into_iter().map(|((family, _), record)| (family, record));
        (std::mem::take(&mut self.tables), records.collect())
    }
}

/// How a job ended: parts that failed without an error were aborted.
pub(crate) fn outcome_of(is_failed: bool, failure: Option<&Error>) -> JobOutcome {
    match failure {
        Some(error) => JobOutcome::of_error(error),
        None if is_failed => JobOutcome::Aborted,
        None => JobOutcome::Done,
    }
}

/// The shape of a table, but for the size of its blocks: that is part of its format. `origin` is the
/// column family that the table is made for, if that is known.
pub(crate) fn table_options(
    options: &CfOptions,
    level: usize,
    origin: Option<TableOrigin>,
) -> TableOptions {
    TableOptions {
        origin,
        filter_bits_per_key: options.filter_bits_per_key,
        prefix_length: (options.prefix_length_bytes > 0).then_some(options.prefix_length_bytes),
        level,
        time_to_live_s: options.time_to_live_s,
        ..TableOptions::default()
    }
}
