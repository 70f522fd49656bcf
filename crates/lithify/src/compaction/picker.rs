//! Which tables are merged next. Pure: a version and what is already running in, a compaction out.
//!
//! 1. Every level has a score (see [`LevelTargets::scores`]); levels that are due are tried in the
//!    order of their score over that of the level below: it is no use to pour into a level that
//!    overflows itself.
//! 2. From level 0 the oldest table is taken with every table that it overlaps, and theirs, but of
//!    these only the oldest up to a bound: the longer a compaction of level 0, the more runs gather
//!    meanwhile. From a deeper level the table that drags the fewest bytes of the next level along per byte of its
//!    own, and among equals the first behind the level's cursor, so that all keys get their turn.
//! 3. What the next level holds in that range joins in; then neighbours from the source level that
//!    come for free.
//! 4. A table that overlaps nothing is moved instead of rewritten, unless it would lie across too
//!    much of the level after that, or the rewrite would free its tombstones.
//! 5. A table whose rows have all expired goes as a whole, before all else, where nothing lies under it:
//!    older entries, or those that its tombstones hide, would show again.
//! 6. If nothing is due: tables of which half has expired; then tables full of tombstones that everyone
//!    sees; then tables that scans have paid for; then tables of which released snapshots would free a
//!    part; and if the database is idle, tables in a codec that is not their level's. Each of these
//!    leaves the tree with less of it, so they come to an end; or it was paid for.
//!
//! Two compactions never share a table, and never write overlapping ranges of one level; the
//! [`BusySet`] sees to that. At most one runs from level 0 at a time, so that no run overtakes an
//! older one while the base level shifts.

pub use super::busy::BusySet;
use super::levels::LevelTargets;
use crate::base::{FileNumber, Level, SequenceNumber, price_of_rewrite};
use crate::manifest::{KeyRange, TableFile, Version};
use crate::retention::Expiry;
use crate::{Error, Result};
use std::ops::Range;
use std::sync::Arc;

/// Whether data are rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionKind {
    /// The inputs are merged into new tables.
    Merge,
    /// The one input goes to the target level as it is.
    TrivialMove,
    /// The one input goes: nobody sees a row of it any more.
    Drop,
}

/// Why a compaction was picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Too many runs or bytes in level 0.
    Level0,
    /// A level over its target.
    LevelSize,
    /// A user asked for it.
    Manual,
    /// The table is full of tombstones: scans pass over what they hide, and over them.
    Tombstones,
    /// Scans have passed so many dead entries of the table that they have paid for the compaction.
    DeadEntries,
    /// No snapshot needs the table's obsolete entries any more.
    SnapshotRelease,
    /// The table's codec is not the one of its level.
    CodecDebt,
    /// Rows of the table have expired.
    Expired,
}

/// A table with fewer tombstones is left alone: nobody feels them.
const TOMBSTONES_MIN: u64 = 32;

/// More than one entry in so many is a tombstone in a table that is full of them. An index whose rows
/// are taken out and put again has a tombstone for every row by nature, and scans pass over one dead
/// entry for each that they want: at one in four such tables were rewritten all the time, and LinkBench
/// wrote 0.42 KB a transaction where it writes 0.26 without the rule.
const TOMBSTONE_PERIOD: u64 = 2;

/// A range delete counts as so many deletes; what it covers nobody has counted.
const RANGE_TOMBSTONE_WEIGHT: u64 = 64;

/// The limits of a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PickOptions {
    /// Inputs beyond the necessary ones are added up to this size.
    pub compaction_bytes_max: u64,
    /// Of level 0 so many bytes are taken at once, and one run more.
    pub level0_bytes_max: u64,
    /// A table that overlaps more than this of the level after the target is not moved.
    pub grandparent_bytes_max: u64,
    /// Nothing else is going on: codec debt may be repaid.
    pub idle: bool,
    /// Which rows have expired for all readers; `None` if none ever does.
    pub expiry: Option<Expiry>,
    /// Tables may be moved as they are. Off where a filter has to see their rows.
    pub moves: bool,
    /// Neighbours that come for free are added. Off after a compaction was refused: the next try
    /// takes what is necessary and no more.
    pub grows: bool,
}

/// A place where an output table may well end: a table of the level after the target begins here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boundary {
    /// The smallest user key of that table.
    pub key: Box<[u8]>,
    /// Its stored bytes.
    pub bytes: u64,
}

/// A decision of the picker.
#[derive(Clone, Debug)]
pub struct Compaction {
    /// Merge or move.
    pub kind: CompactionKind,
    /// Why.
    pub reason: Reason,
    /// Where the data come from.
    pub source_level: Level,
    /// Where they go; the source level itself when a table is rewritten in place.
    pub target_level: Level,
    /// The input tables by level, the source level first; level 0 newest first, others by key.
    pub inputs: Vec<(Level, Vec<Arc<TableFile>>)>,
    /// The user keys that all inputs cover together.
    pub range: KeyRange,
    /// Where the tables of the level after the target begin, within the range, by key.
    pub boundaries: Vec<Boundary>,
    /// The source level's score when it was picked.
    pub score: f64,
    /// That score over the score of the level below, which orders compactions of one tree and of
    /// several; 0 for what can wait for ever.
    pub priority: f64,
}

/// A piece of a compaction's keys: from `start` (included) to `end` (not included); `None` is
/// without bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubRange {
    /// The first user key.
    pub start: Option<Box<[u8]>>,
    /// The first user key after it.
    pub end: Option<Box<[u8]>>,
}

/// What a manual pick came to.
#[derive(Clone, Debug)]
pub enum ManualPick {
    /// The level holds nothing in the range.
    Nothing,
    /// A running compaction has to end first.
    Busy,
    /// To be run.
    Compact(Compaction),
}

impl Compaction {
    /// All input tables with their levels.
    pub fn input_tables(&self) -> impl Iterator<Item = (Level, &Arc<TableFile>)> {
        self.inputs
            .iter()
            .flat_map(|(level, tables)| tables.iter().map(move |table| (*level, table)))
    }

    /// Checks what installing the outcome relies on, before any work is done: nothing that stays in
    /// the target level lies within the range, and no older run of level 0 stays above a source.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidArgument`] for a wrong pick; it must not run.
    pub fn check(&self, version: &Version) -> Result<()> {
        let is_input = |table: &Arc<TableFile>| {
            self.input_tables().any(|(_, input)| Arc::ptr_eq(input, table))
        };
        let stays_inside = overlapping(version, self.target_level, &self.range)
            .iter()
            .find(|table| !is_input(table));
        if let Some(table) = stays_inside {
            let range = &table.metadata.range;
            return Err(self.wrong("would overlap", table.metadata.number, range));
        }
        let sources = self.input_tables().filter(|(level, _)| *level == 0);
        for source in sources.map(|(_, table)| &table.metadata) {
            let older = version.level(0).iter().rev().find(|table| {
                let metadata = &table.metadata;
                let is_older = (metadata.largest_sequence, metadata.number)
                    < (source.largest_sequence, source.number);
                is_older && metadata.range.overlaps(&source.range) && !is_input(table)
            });
            if let Some(table) = older {
                return Err(self.wrong("would overtake", table.metadata.number, &source.range));
            }
        }
        Ok(())
    }

    #[cold]
    fn wrong(&self, what: &str, number: FileNumber, range: &KeyRange) -> Error {
        Error::invalid(format!(
            "a compaction from level {} into level {} {what} table {number}, which is not part of \
             it, in \"{}\" to \"{}\"",
            self.source_level,
            self.target_level,
            range.smallest.escape_ascii(),
            range.largest.escape_ascii()
        ))
    }

    /// Stored bytes of the inputs.
    pub fn input_bytes(&self) -> u64 {
        self.input_tables().map(|(_, table)| table.metadata.size_bytes).sum()
    }

    /// Cuts the keys into at most `parts` ranges of about equal input bytes, at table boundaries,
    /// that together cover all keys. They may be merged in parallel and installed by one edit.
    pub fn split(&self, parts: usize) -> Vec<SubRange> {
        // Runs of level 0 span everything, so their ends say nothing about the middle: look at
        // the sorted levels, and if there are none among the inputs, at the level after.
        let mut points: Vec<(&[u8], u64)> = self
            .input_tables()
            .filter(|(level, _)| *level > 0)
            .map(|(_, table)| (&table.metadata.range.smallest[..], table.metadata.size_bytes))
            .collect();
        if points.is_empty() {
            points = self.boundaries.iter().map(|at| (&at.key[..], at.bytes)).collect();
        }
        points.sort_unstable();
        let total: u128 = points.iter().map(|(_, bytes)| u128::from(*bytes)).sum();
        let (mut before, mut cuts) = (0_u128, Vec::<&[u8]>::new());
        for (key, bytes) in points {
            let due = before * parts as u128 >= total * (cuts.len() as u128 + 1);
            let is_new = cuts.last().is_none_or(|last| *last < key);
            if before > 0 && due && is_new && cuts.len() + 1 < parts {
                cuts.push(key);
            }
            before += u128::from(bytes);
        }
        let starts = std::iter::once(None).chain(cuts.iter().copied().map(Some));
        let ends = cuts.iter().copied().map(Some).chain(std::iter::once(None));
        starts
            .zip(ends)
            .map(|(start, end)| SubRange { start: start.map(Box::from), end: end.map(Box::from) })
            .collect()
    }
}

/// Per level, the key from which on the next table is looked for.
#[derive(Clone, Debug, Default)]
pub struct Cursors {
    keys: Vec<Box<[u8]>>,
}

impl Cursors {
    /// All at the first key.
    pub fn new(level_count: usize) -> Self {
        Cursors { keys: vec![Box::default(); level_count] }
    }

    /// Moves the cursor of the compaction's source level behind its range.
    pub fn advance(&mut self, compaction: &Compaction) {
        let Some(key) = self.keys.get_mut(compaction.source_level) else { return };
        if let Some((_, tables)) = compaction.inputs.first()
            && let Some(last) = tables.last()
        {
            *key = last.metadata.range.largest.clone();
        }
    }

    /// Where a level goes on.
    pub fn key(&self, level: Level) -> Option<&[u8]> {
        self.keys.get(level).map(|key| &**key)
    }

    /// Whether a range lies behind the cursor already passed.
    fn has_passed(&self, level: Level, range: &KeyRange) -> bool {
        self.keys.get(level).is_some_and(|key| range.smallest < *key)
    }
}

/// What a pick is made from.
#[derive(Clone, Copy)]
pub struct Picker<'a> {
    /// The live tables.
    pub version: &'a Version,
    /// The targets for that version.
    pub targets: &'a LevelTargets,
    /// What is running.
    pub busy: &'a BusySet,
    /// Where each level was last compacted.
    pub cursors: &'a Cursors,
    /// The oldest sequence number that a snapshot, or a read from now on, may look at.
    pub oldest_snapshot: SequenceNumber,
    /// The limits.
    pub options: PickOptions,
}

fn size_bytes(tables: &[Arc<TableFile>]) -> u64 {
    tables.iter().map(|table| table.metadata.size_bytes).sum()
}

fn contains(tables: &[Arc<TableFile>], table: &Arc<TableFile>) -> bool {
    tables.iter().any(|other| Arc::ptr_eq(other, table))
}

/// The smallest range that covers all tables; `None` for none.
fn union_of<'a>(mut tables: impl Iterator<Item = &'a Arc<TableFile>>) -> Option<KeyRange> {
    let first = tables.next()?.metadata.range.clone();
    Some(tables.fold(first, |range, table| range.union(&table.metadata.range)))
}

/// The tables of a sorted level that share a key with `range`, without a look at the others.
fn overlapping<'a>(version: &'a Version, level: Level, range: &KeyRange) -> &'a [Arc<TableFile>] {
    if level == 0 || level >= version.level_count() {
        return &[];
    }
    let tables = version.level(level);
    let start = tables.partition_point(|table| table.metadata.range.ends_before(&range.smallest));
    let rest = &tables[start..];
    let count = rest.partition_point(|table| !range.ends_before(&table.metadata.range.smallest));
    &rest[..count]
}

/// Whether scans have paid for a compaction. A move costs nothing.
fn is_paid_for(compaction: &Compaction) -> bool {
    let tables = || compaction.input_tables().map(|(_, table)| table);
    let passes: u64 = tables().map(|table| table.dead_passes()).sum();
    let entries = tables().map(|table| table.metadata.entries).sum();
    compaction.kind == CompactionKind::TrivialMove || passes >= price_of_rewrite(entries)
}

impl Picker<'_> {
    /// The scores of the levels, leaving out what running compactions are about to take away.
    pub fn scores(&self) -> Vec<f64> {
        let free = |level: Level| {
            self.version.level(level).iter().filter(|table| !self.busy.is_busy(table))
        };
        let sizes: Vec<u64> = (0..self.version.level_count())
            .map(|level| free(level).map(|table| table.metadata.size_bytes).sum())
            .collect();
        self.targets.scores(free(0).count(), &sizes)
    }

    /// The next compaction, if one is due and nothing that runs stands in its way.
    pub fn pick(&self) -> Option<Compaction> {
        if let Some(drop) = self.options.expiry.and_then(|expiry| self.pick_expired(expiry)) {
            return Some(drop);
        }
        let scores = self.scores();
        let score_of_next = |level: Level| match level {
            0 => scores[self.targets.base_level],
            _ => scores.get(level + 1).copied().unwrap_or(0.0),
        };
        let mut due: Vec<(f64, Level)> = scores
            .iter()
            .enumerate()
            .filter(|(_, score)| **score >= 1.0)
            .map(|(level, score)| (score / score_of_next(level).max(1.0), level))
            .collect();
        due.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        for (priority, level) in due {
            let picked = if level == 0 { self.pick_level0() } else { self.pick_level(level) };
            if let Some(compaction) = picked {
                return Some(Compaction { score: scores[level], priority, ..compaction });
            }
        }
        self.pick_half_expired()
            .or_else(|| self.pick_tombstones())
            .or_else(|| self.pick_dead_entries())
            .or_else(|| self.pick_snapshot_release())
            .or_else(|| self.pick_codec_debt())
    }

    /// Where level 0 goes: the base level, or a shallower one that holds data (targets that were
    /// made for an earlier version must not let level 0 overtake it).
    fn level0_target(&self) -> Level {
        let shallowest = (1..self.version.level_count())
            .find(|level| !self.version.level(*level).is_empty())
            .unwrap_or(self.targets.base_level);
        shallowest.min(self.targets.base_level)
    }

    /// The tables of level 0 that overlap the range, and those that overlap them, newest first.
    fn level0_closure(&self, mut range: KeyRange) -> Vec<Arc<TableFile>> {
        loop {
            let tables = self.version.overlapping(0, &range);
            let Some(union) = union_of(tables.iter()) else { return tables };
            let grown = range.union(&union);
            if grown == range {
                return tables;
            }
            range = grown;
        }
    }

    fn pick_level0(&self) -> Option<Compaction> {
        if self.busy.reads_level0() {
            return None;
        }
        let oldest = self.version.level(0).last()?;
        let tables = self.oldest_of(self.level0_closure(oldest.metadata.range.clone()));
        self.complete(Reason::Level0, 0, tables)
    }

    /// The oldest of these tables of level 0, up to the bound. Whatever is older than one of them
    /// and overlaps it is among them.
    fn oldest_of(&self, mut tables: Vec<Arc<TableFile>>) -> Vec<Arc<TableFile>> {
        let mut bytes = 0;
        let fits = |table: &&Arc<TableFile>| {
            let fits = bytes < self.options.level0_bytes_max;
            bytes += table.metadata.size_bytes;
            fits
        };
        let taken = tables.iter().rev().take_while(fits).count();
        tables.split_off(tables.len() - taken)
    }

    fn pick_level(&self, level: Level) -> Option<Compaction> {
        let mut best: Option<((u128, bool), &Arc<TableFile>)> = None;
        for table in self.version.level(level) {
            let metadata = &table.metadata;
            let below = overlapping(self.version, level + 1, &metadata.range);
            if self.is_blocked(level + 1, std::slice::from_ref(table), below) {
                continue;
            }
            // Bytes dragged along per byte moved, in 1/1024.
            let ratio =
                u128::from(size_bytes(below)) * 1024 / u128::from(metadata.size_bytes.max(1));
            let rank = (ratio, self.cursors.has_passed(level, &metadata.range));
            if best.as_ref().is_none_or(|(best, _)| rank < *best) {
                best = Some((rank, table));
            }
        }
        self.complete(Reason::LevelSize, level, vec![Arc::clone(best?.1)])
    }

    /// Whether merging these two lots would get in the way of what is running.
    fn is_blocked(
        &self,
        target_level: Level,
        sources: &[Arc<TableFile>],
        targets: &[Arc<TableFile>],
    ) -> bool {
        let mut all = sources.iter().chain(targets);
        if all.any(|table| self.busy.is_busy(table)) {
            return true;
        }
        let range = union_of(sources.iter().chain(targets));
        range.is_some_and(|range| self.busy.writes(target_level, &range))
    }

    /// Adds what the target level holds, and what comes for free. `None` if something is running
    /// there.
    fn complete(
        &self,
        reason: Reason,
        source_level: Level,
        mut sources: Vec<Arc<TableFile>>,
    ) -> Option<Compaction> {
        let target_level = if source_level == 0 { self.level0_target() } else { source_level + 1 };
        let source_range = union_of(sources.iter())?;
        let targets = overlapping(self.version, target_level, &source_range);
        if self.is_blocked(target_level, &sources, targets) {
            return None;
        }
        if let Some(grown) = self.grow(source_level, target_level, &sources, targets) {
            sources = grown;
        }
        let kind = match &sources[..] {
            [only] if targets.is_empty() && self.may_move(only, target_level) => {
                CompactionKind::TrivialMove
            }
            _ => CompactionKind::Merge,
        };
        let mut inputs = vec![(source_level, sources)];
        if !targets.is_empty() {
            inputs.push((target_level, targets.to_vec()));
        }
        self.compaction(kind, reason, source_level, target_level, inputs)
    }

    fn compaction(
        &self,
        kind: CompactionKind,
        reason: Reason,
        source_level: Level,
        target_level: Level,
        inputs: Vec<(Level, Vec<Arc<TableFile>>)>,
    ) -> Option<Compaction> {
        let range = union_of(inputs.iter().flat_map(|(_, tables)| tables))?;
        let boundaries = overlapping(self.version, target_level + 1, &range)
            .iter()
            .map(|table| Boundary {
                key: table.metadata.range.smallest.clone(),
                bytes: table.metadata.size_bytes,
            })
            .collect();
        Some(Compaction {
            kind,
            reason,
            source_level,
            target_level,
            inputs,
            range,
            boundaries,
            score: 0.0,
            priority: 0.0,
        })
    }

    /// More tables of the source level that do not bring in more of the target level.
    fn grow(
        &self,
        source_level: Level,
        target_level: Level,
        sources: &[Arc<TableFile>],
        targets: &[Arc<TableFile>],
    ) -> Option<Vec<Arc<TableFile>>> {
        if targets.is_empty() || !self.options.grows {
            return None;
        }
        let range = union_of(sources.iter().chain(targets))?;
        let grown = match source_level {
            0 => self.oldest_of(self.level0_closure(range)),
            _ => overlapping(self.version, source_level, &range).to_vec(),
        };
        // Bounded to the oldest, the closure of level 0 may be without some of the sources, and
        // then reach other targets, perhaps as many as before.
        let has_sources = sources.iter().all(|source| contains(&grown, source));
        let grown_range = union_of(grown.iter())?;
        let grown_targets = overlapping(self.version, target_level, &grown_range);
        let same_targets = grown_targets.len() == targets.len()
            && grown_targets.iter().zip(targets).all(|(grown, target)| Arc::ptr_eq(grown, target));
        let mut is_free = has_sources && same_targets;
        if planted!(GrownWithoutSources) {
            is_free = grown_targets.len() == targets.len();
        }
        let fits =
            size_bytes(&grown) + size_bytes(grown_targets) <= self.options.compaction_bytes_max;
        let is_larger = grown.len() > sources.len();
        let is_blocked = self.is_blocked(target_level, &grown, grown_targets);
        (is_larger && is_free && fits && !is_blocked).then_some(grown)
    }

    /// Whether a table that overlaps nothing in the target level may go there as it is.
    fn may_move(&self, table: &TableFile, target_level: Level) -> bool {
        let mut moves = self.options.moves;
        if planted!(MovedPastFilter) {
            moves = true;
        }
        if !moves {
            return false;
        }
        let metadata = &table.metadata;
        let grandparents = overlapping(self.version, target_level + 1, &metadata.range);
        if size_bytes(grandparents) > self.options.grandparent_bytes_max {
            return false;
        }
        // Tombstones with nothing below them have done their work: a rewrite drops them.
        let has_tombstones = metadata.tombstones + metadata.range_tombstones > 0;
        !has_tombstones || self.reaches_below(target_level, &metadata.range)
    }

    /// Whether a level below this one has a table that shares a key with a range.
    fn reaches_below(&self, level: Level, range: &KeyRange) -> bool {
        let mut deeper = level + 1..self.version.level_count();
        deeper.any(|deeper| !overlapping(self.version, deeper, range).is_empty())
    }

    /// A table that may go as a whole: the deepest first, as those above may follow.
    fn pick_expired(&self, expiry: Expiry) -> Option<Compaction> {
        for level in (0..self.version.level_count()).rev() {
            let is_over = |table: &&Arc<TableFile>| {
                table.metadata.write_times.is_some_and(|times| times.are_expired(expiry))
            };
            // Of level 0 the oldest first.
            for table in self.version.level(level).iter().rev().filter(is_over) {
                let mut uncovers = self.lies_over_others(level, table);
                if planted!(ExpiredTableUncovers) {
                    uncovers = false;
                }
                if self.busy.is_busy(table) || uncovers {
                    continue;
                }
                let inputs = vec![(level, vec![Arc::clone(table)])];
                let (kind, reason) = (CompactionKind::Drop, Reason::Expired);
                return self.compaction(kind, reason, level, level, inputs);
            }
        }
        None
    }

    /// Whether older entries of keys within a table's range may lie under it.
    fn lies_over_others(&self, level: Level, table: &Arc<TableFile>) -> bool {
        let range = &table.metadata.range;
        let older_runs = match level {
            0 => self.version.level(0),
            _ => &[],
        };
        let mut older_runs = older_runs.iter().rev().take_while(|older| !Arc::ptr_eq(older, table));
        older_runs.any(|older| older.metadata.range.overlaps(range))
            || self.reaches_below(level, range)
    }

    /// A table of which half has expired, where a rewrite makes it smaller: nothing lies under it.
    fn pick_half_expired(&self) -> Option<Compaction> {
        let expiry = self.options.expiry?;
        let levels = 1..self.version.level_count();
        self.pick_in_place(levels, Reason::Expired, |level, table| {
            table.metadata.write_times.is_some_and(|times| times.are_half_expired(expiry))
                && !self.lies_over_others(level, table)
        })
    }

    /// Whether a table is full of tombstones, and no snapshot is so old that they would stay.
    fn is_full_of_tombstones(&self, table: &TableFile) -> bool {
        let metadata = &table.metadata;
        let of_ranges = metadata.range_tombstones.saturating_mul(RANGE_TOMBSTONE_WEIGHT);
        let tombstones = metadata.tombstones.saturating_add(of_ranges);
        tombstones >= TOMBSTONES_MIN
            && tombstones.saturating_mul(TOMBSTONE_PERIOD) > metadata.entries
            && metadata.largest_sequence <= self.oldest_snapshot
    }

    /// A table full of tombstones, into the next level; in the last level in place, where that
    /// drops all of them. The shallowest first, as it gathers others on its way. Level 0 only if
    /// the database is idle: under writes it is compacted soon enough.
    fn pick_tombstones(&self) -> Option<Compaction> {
        let bottom = self.version.level_count().saturating_sub(1);
        for level in 0..bottom {
            if level == 0 && (!self.options.idle || self.busy.reads_level0()) {
                continue;
            }
            for table in self.version.level(level) {
                if !self.is_full_of_tombstones(table) {
                    continue;
                }
                let sources = match level {
                    0 => self.level0_closure(table.metadata.range.clone()),
                    _ => vec![Arc::clone(table)],
                };
                let picked = self.complete(Reason::Tombstones, level, sources);
                if picked.is_some() {
                    return picked;
                }
            }
        }
        let wanted = |_, table: &Arc<TableFile>| self.is_full_of_tombstones(table);
        self.pick_in_place(bottom.max(1)..bottom + 1, Reason::Tombstones, wanted)
    }

    /// A table in which scans have passed many dead entries: into the next level, to meet what it
    /// hides; where nothing lies under it in place, if that frees something. A table that is in the
    /// way of running ones, or not yet paid for with what the next level adds, keeps its account.
    ///
    /// *Bound.* A compaction reads no more entries than scans have paid for in its inputs. Their
    /// accounts end with them, and new tables begin at zero. So all of this work together stays below
    /// what readers have spent, even where a snapshot needs all that is dead.
    fn pick_dead_entries(&self) -> Option<Compaction> {
        // What comes for free at other times would have to be paid here.
        let options = PickOptions { grows: false, ..self.options };
        let picker = Picker { options, ..*self };
        for (level, table) in self.version.tables() {
            if table.dead_passes() < price_of_rewrite(table.metadata.entries) {
                continue;
            }
            let alone = || vec![Arc::clone(table)];
            let reason = Reason::DeadEntries;
            let picked = match level {
                0 if self.busy.reads_level0() => None,
                0 => {
                    let sources = self.level0_closure(table.metadata.range.clone());
                    picker.complete(reason, level, sources)
                }
                _ if self.reaches_below(level, &table.metadata.range) => {
                    picker.complete(reason, level, alone())
                }
                _ => self.pick_in_place(level..level + 1, reason, |_, other| {
                    Arc::ptr_eq(other, table) && self.frees_dead_entries(table)
                }),
            };
            if picked.as_ref().is_some_and(is_paid_for) {
                return picked;
            }
        }
        None
    }

    /// Whether a rewrite of a table with nothing under it lets dead entries go. Else its scans would
    /// pay for the next rewrite, and that would be in vain too, as long as the snapshot lives.
    fn frees_dead_entries(&self, table: &TableFile) -> bool {
        if planted!(RewrittenInVain) {
            return true;
        }
        let metadata = &table.metadata;
        let times = self.options.expiry.zip(metadata.write_times);
        let has_expired = times.is_some_and(|(expiry, times)| expiry.is_expired(times.oldest_s));
        let has_dead = metadata.tombstones > 0 || metadata.newest_obsolete_sequence > 0;
        (has_dead || has_expired) && metadata.largest_sequence <= self.oldest_snapshot
    }

    fn pick_snapshot_release(&self) -> Option<Compaction> {
        self.pick_in_place(1..self.version.level_count(), Reason::SnapshotRelease, |_, table| {
            let obsolete = table.metadata.newest_obsolete_sequence;
            obsolete > 0 && obsolete <= self.oldest_snapshot
        })
    }

    fn pick_codec_debt(&self) -> Option<Compaction> {
        let nothing_runs = self.busy.running() == 0;
        if !self.options.idle || !nothing_runs {
            return None;
        }
        let levels = 1..self.version.level_count();
        self.pick_in_place(levels, Reason::CodecDebt, |_, table| table.metadata.codec_debt)
    }

    /// Rewrites one table where it is: the largest of the deepest of the levels that has one.
    fn pick_in_place(
        &self,
        levels: Range<Level>,
        reason: Reason,
        wanted: impl Fn(Level, &Arc<TableFile>) -> bool,
    ) -> Option<Compaction> {
        for level in levels.rev() {
            let candidates = self.version.level(level).iter().filter(|table| wanted(level, table));
            let free = candidates
                .filter(|table| !self.is_blocked(level, std::slice::from_ref(*table), &[]));
            if let Some(table) = free.max_by_key(|table| table.metadata.size_bytes) {
                let inputs = vec![(level, vec![Arc::clone(table)])];
                return self.compaction(CompactionKind::Merge, reason, level, level, inputs);
            }
        }
        None
    }

    /// The next piece of compacting the keys of `range` out of `level` by hand; the last level
    /// is rewritten in place. One piece is at most about `compaction_bytes_max` large: pick again
    /// until there is nothing, in the last level each time behind the range just rewritten.
    pub fn pick_manual(&self, level: Level, range: &KeyRange) -> ManualPick {
        if level >= self.version.level_count() {
            return ManualPick::Nothing;
        }
        let mut tables = self.version.overlapping(level, range);
        if tables.is_empty() {
            return ManualPick::Nothing;
        }
        let bottom = self.version.level_count() - 1;
        let picked = if level == 0 {
            if self.busy.reads_level0() {
                return ManualPick::Busy;
            }
            let Some(union) = union_of(tables.iter()) else { return ManualPick::Nothing };
            self.complete(Reason::Manual, 0, self.level0_closure(union))
        } else {
            let mut bytes = 0;
            let fitting = tables.iter().take_while(|table| {
                bytes += table.metadata.size_bytes;
                bytes <= self.options.compaction_bytes_max
            });
            let count = fitting.count().max(1);
            tables.truncate(count);
            if level == bottom {
                self.in_place(tables)
            } else {
                self.complete(Reason::Manual, level, tables)
            }
        };
        picked.map_or(ManualPick::Busy, ManualPick::Compact)
    }

    /// Rewrites tables of the last level where they are.
    fn in_place(&self, tables: Vec<Arc<TableFile>>) -> Option<Compaction> {
        let bottom = self.version.level_count() - 1;
        if self.is_blocked(bottom, &tables, &[]) {
            return None;
        }
        let inputs = vec![(bottom, tables)];
        self.compaction(CompactionKind::Merge, Reason::Manual, bottom, bottom, inputs)
    }
}
