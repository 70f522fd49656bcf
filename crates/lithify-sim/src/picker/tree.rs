//! A tree that lives: tables come, compactions are picked, run and end.

use super::judge::{self, Order};
use crate::check::Tally;
use crate::random::Random;
use lithify::Compression;
use lithify::base::Level;
use lithify::compaction::levels::{LevelTargets, TreeShape};
use lithify::compaction::picker::{
    BusySet, Compaction, CompactionKind, Cursors, ManualPick, PickOptions, Picker,
};
use lithify::compaction::placement::deepest_free_level;
use lithify::manifest::{Change, FileMetadata, KeyRange, ManifestState, Version, VersionEdit};
use lithify::retention::{Expiry, WriteTimes};
use std::sync::Arc;

/// The one column family.
const FAMILY: u32 = 0;

const MIB: u64 = 1 << 20;

/// Compactions that run at once.
const RUNNING_MAX: usize = 3;

/// What a tree did.
#[derive(Default)]
pub(super) struct Counts {
    picked: u64,
    by_hand: u64,
    ended_beside: u64,
    ingests: u64,
}

impl Counts {
    pub(super) fn add_to(&self, tally: &mut Tally) {
        tally.count("picked by themselves", self.picked);
        tally.count("picked by hand", self.by_hand);
        tally.count("ended beside others", self.ended_beside);
        tally.count("ingests", self.ingests);
    }
}

/// See the module.
pub(super) struct Tree {
    random: Random,
    level_count: usize,
    state: ManifestState,
    shape: TreeShape,
    options: PickOptions,
    busy: BusySet,
    cursors: Cursors,
    running: Vec<Compaction>,
    last_sequence: u64,
    /// Keys are numbers below this.
    keys: u64,
    pub(super) counts: Counts,
}

fn key(number: u64) -> Box<[u8]> {
    format!("{number:04}").into_bytes().into()
}

/// A manifest's error, as a finding.
fn refused(what: &str, error: &lithify::Error) -> String {
    format!("the manifest refuses {what}: {error}")
}

impl Tree {
    /// A tree that holds nothing yet.
    pub(super) fn new(mut random: Random) -> Tree {
        let level_count = random.between(2, 5) as usize;
        let shape = TreeShape {
            base_level_bytes_max: MIB << random.below(5),
            fanout: random.between(2, 6),
            level0_trigger: random.between(1, 4) as usize,
        };
        let options = PickOptions {
            compaction_bytes_max: MIB << random.between(1, 6),
            level0_bytes_max: MIB << random.below(4),
            grandparent_bytes_max: MIB << random.below(5),
            idle: false,
            grows: !random.one_in(8),
            moves: !random.one_in(8),
            expiry: None,
        };
        Tree {
            state: ManifestState::default(),
            shape,
            options,
            busy: BusySet::new(),
            cursors: Cursors::new(level_count),
            running: Vec::new(),
            last_sequence: 0,
            keys: *random.pick(&[30, 80, 200, 1000]),
            counts: Counts::default(),
            level_count,
            random,
        }
    }

    fn fill(&mut self) -> Result<(), String> {
        let level_count = self.level_count;
        let mut changes = vec![Change::CreateFamily {
            id: FAMILY,
            name: "tree".to_string(),
            level_count,
            log_number: 0,
            options: Vec::new(),
        }];
        for level in (1..level_count).rev() {
            if self.random.one_in(4) {
                continue;
            }
            let (width, gap) =
                (self.random.between(1, self.keys / 6), self.random.between(1, self.keys / 10));
            let mut next = self.random.below(gap);
            for _ in 0..self.random.below(8 << level) {
                let smallest = next;
                let largest = smallest + self.random.below(width);
                next = largest + 1 + self.random.below(gap);
                if largest >= self.keys {
                    break;
                }
                let metadata = self.metadata(smallest, largest);
                changes.push(Change::AddFile { family: FAMILY, level, metadata });
            }
        }
        let widths = [1, self.keys / 8, self.keys / 4, self.keys];
        for _ in 0..self.random.below(16) {
            let metadata = self.run(&widths);
            changes.push(Change::AddFile { family: FAMILY, level: 0, metadata });
        }
        self.apply("the tables that a tree begins with", changes)
    }

    /// A run for level 0, newer than everything.
    fn run(&mut self, widths: &[u64]) -> FileMetadata {
        let smallest = self.random.below(self.keys);
        let width = (*self.random.pick(widths)).max(1);
        let largest = (smallest + self.random.below(width)).min(self.keys - 1);
        self.metadata(smallest, largest)
    }

    fn metadata(&mut self, smallest: u64, largest: u64) -> FileMetadata {
        let largest_exclusive = smallest < largest && self.random.one_in(6);
        let range = KeyRange { smallest: key(smallest), largest: key(largest), largest_exclusive };
        self.last_sequence += 1;
        let sequence = self.last_sequence;
        let tombstones = if self.random.one_in(6) { 60 } else { 0 };
        // Sequence numbers are the seconds; a deeper table may be the younger one.
        let newest_s = (sequence + self.random.below(10)) as u32;
        let oldest_s = newest_s.saturating_sub(self.random.below(20) as u32);
        let has_times = self.random.one_in(2);
        FileMetadata {
            number: sequence,
            table_id: [0; 16],
            size_bytes: self.random.between(1, 8) * MIB / 4,
            raw_bytes: MIB,
            range,
            smallest_sequence: sequence,
            largest_sequence: sequence,
            entries: 100,
            tombstones,
            range_tombstones: u64::from(largest_exclusive),
            compression: Compression::NONE,
            block_size_bytes: 0,
            dictionary: None,
            codec_debt: self.random.one_in(6),
            write_times: has_times.then_some(WriteTimes { oldest_s, newest_s }),
            ingested: false,
            newest_obsolete_sequence: if self.random.one_in(6) { 1 } else { 0 },
        }
    }

    fn apply(&mut self, what: &str, mut changes: Vec<Change>) -> Result<(), String> {
        changes.insert(0, Change::NextFileNumber(self.last_sequence + 1));
        let applied = self.state.apply(&VersionEdit::from(changes));
        self.state = applied.map_err(|error| refused(what, &error))?.state;
        Ok(())
    }

    fn version(&self) -> Arc<Version> {
        Arc::clone(&self.state.families[&FAMILY].version)
    }

    /// Gets a backlog and lives for a while.
    pub(super) fn live(&mut self) -> Result<(), String> {
        self.fill()?;
        for _ in 0..self.random.between(4, 16) {
            match self.random.below(16) {
                0..=6 => self.pick()?,
                7..=9 => self.pick_by_hand()?,
                10..=13 => self.end_one()?,
                14 => self.flush()?,
                _ => self.ingest()?,
            }
        }
        while !self.running.is_empty() {
            self.end_one()?;
        }
        Ok(())
    }

    /// Asks the picker of the tree as it is.
    fn ask<R>(&mut self, ask: impl FnOnce(&Picker<'_>) -> R) -> R {
        let version = self.version();
        let targets = LevelTargets::new(&version, &self.shape);
        let time_to_live_s = *self.random.pick(&[10, 50, 1_000, 1_000]);
        let expiry = self.random.one_in(2).then(|| Expiry::at(self.last_sequence, time_to_live_s));
        let options = PickOptions { idle: self.random.one_in(3), expiry, ..self.options };
        let oldest_snapshot = *self.random.pick(&[0, self.last_sequence]);
        ask(&Picker {
            version: &version,
            targets: &targets,
            busy: &self.busy,
            cursors: &self.cursors,
            oldest_snapshot,
            options,
        })
    }

    fn pick(&mut self) -> Result<(), String> {
        if self.running.len() == RUNNING_MAX {
            return Ok(());
        }
        let Some(compaction) = self.ask(|picker| picker.pick()) else { return Ok(()) };
        self.counts.picked += 1;
        self.begin(compaction)
    }

    fn pick_by_hand(&mut self) -> Result<(), String> {
        let level = self.random.below(self.version().level_count() as u64) as Level;
        let (one, other) = (self.random.below(self.keys), self.random.below(self.keys));
        let range = KeyRange::inclusive(&key(one.min(other)), &key(one.max(other)));
        let ManualPick::Compact(compaction) = self.ask(|picker| picker.pick_manual(level, &range))
        else {
            return Ok(());
        };
        self.counts.by_hand += 1;
        self.begin(compaction)
    }

    fn begin(&mut self, compaction: Compaction) -> Result<(), String> {
        judge::pick(&self.version(), &compaction, &self.running, self.options.moves)
            .map_err(|wrong| format!("{wrong}\n{}", judge::text(&compaction)))?;
        self.busy.add(&compaction);
        self.running.push(compaction);
        match self.running.last().map(|compaction| compaction.kind) {
            // As in the engine, a move is done at once.
            Some(CompactionKind::TrivialMove | CompactionKind::Drop) => {
                self.end(self.running.len() - 1)
            }
            _ => Ok(()),
        }
    }

    fn end_one(&mut self) -> Result<(), String> {
        match self.running.len() as u64 {
            0 => Ok(()),
            count => {
                self.counts.ended_beside += u64::from(count > 1);
                let index = self.random.below(count) as usize;
                self.end(index)
            }
        }
    }

    /// A compaction ends and its outcome goes live.
    fn end(&mut self, index: usize) -> Result<(), String> {
        let compaction = self.running.remove(index);
        let version = self.version();
        let order = Order::of(&version);
        let mut changes = Vec::new();
        let to = compaction.target_level;
        for (from, table) in compaction.input_tables() {
            let number = table.metadata.number;
            changes.push(match compaction.kind {
                CompactionKind::TrivialMove => {
                    Change::MoveFile { family: FAMILY, number, from, to, codec_debt: false }
                }
                CompactionKind::Merge | CompactionKind::Drop => {
                    Change::RemoveFile { family: FAMILY, level: from, number }
                }
            });
        }
        if compaction.kind == CompactionKind::Merge {
            let outputs = self.outputs(&compaction);
            let added = outputs.into_iter().map(|metadata| Change::AddFile {
                family: FAMILY,
                level: to,
                metadata,
            });
            changes.extend(added);
        }
        let wrong = |wrong: String| format!("{wrong}\n{}", judge::text(&compaction));
        order.check(&compaction).map_err(wrong)?;
        self.apply("the edit of a compaction", changes).map_err(wrong)?;
        self.cursors.advance(&compaction);
        self.busy.remove(&compaction);
        Ok(())
    }

    /// The tables that come out: what the inputs cover together, cut behind any key.
    fn outputs(&mut self, compaction: &Compaction) -> Vec<FileMetadata> {
        let ranges = || compaction.input_tables().map(|(_, table)| &table.metadata.range);
        let ends = ranges().flat_map(|range| [&range.smallest, &range.largest]);
        let mut keys: Vec<&Box<[u8]>> = ends.collect();
        keys.sort();
        keys.dedup();
        let newest =
            compaction.input_tables().map(|(_, table)| table.metadata.largest_sequence).max();
        let part = *self.random.pick(&[1, 2, 8, 1000]);
        let mut outputs = Vec::new();
        let mut first = 0;
        for index in 0..keys.len() {
            let is_last = index + 1 == keys.len();
            // Behind the last key of an open end lies only what a range tombstone covers.
            let is_before_open = index + 2 == keys.len() && compaction.range.largest_exclusive;
            if !is_last && (is_before_open || !self.random.one_in(part)) {
                continue;
            }
            let mut metadata = self.metadata(0, 0);
            let is_open = is_last && compaction.range.largest_exclusive;
            metadata.range = KeyRange {
                smallest: keys[first].clone(),
                largest: keys[index].clone(),
                largest_exclusive: is_open,
            };
            metadata.range_tombstones = u64::from(is_open);
            // The largest sequence decides about the order in level 0 alone.
            metadata.smallest_sequence = 0;
            metadata.largest_sequence = newest.unwrap_or(0);
            outputs.push(metadata);
            first = index + 1;
        }
        outputs
    }

    fn flush(&mut self) -> Result<(), String> {
        let metadata = self.run(&[1, 20, 1000]);
        let added = Change::AddFile { family: FAMILY, level: 0, metadata };
        self.apply("a flushed table", vec![added])
    }

    /// A table comes from outside and goes as deep as it may.
    fn ingest(&mut self) -> Result<(), String> {
        let mut metadata = self.run(&[1, 20]);
        (metadata.range_tombstones, metadata.ingested) = (0, true);
        let version = self.version();
        let base_level = LevelTargets::new(&version, &self.shape).base_level;
        let level = deepest_free_level(&version, base_level, &self.busy, &metadata.range);
        self.counts.ingests += 1;
        judge::ingest(&version, level, &metadata.range)?;
        self.apply("an ingest", vec![Change::AddFile { family: FAMILY, level, metadata }])
    }

    /// The tree as it is, for people.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("{:?}, {:?}", self.shape, self.options)];
        let Some(family) = self.state.families.get(&FAMILY) else { return lines };
        let version = &family.version;
        for level in 0..version.level_count() {
            let tables = version.level(level).iter().map(|table| judge::table_text(table));
            lines.push(format!("L{level} {}", tables.collect::<Vec<_>>().join(" ")));
        }
        lines.extend(self.running.iter().map(|running| format!("runs: {}", judge::text(running))));
        lines
    }
}
