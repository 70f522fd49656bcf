//! What must hold of a pick, and of what a compaction or an ingest leaves.

use lithify::base::{FileNumber, Level};
use lithify::compaction::picker::{Compaction, CompactionKind};
use lithify::manifest::{KeyRange, TableFile, Version};
use std::sync::Arc;

/// A table, for people.
pub(super) fn table_text(table: &TableFile) -> String {
    let metadata = &table.metadata;
    let text = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
    let (smallest, largest) = (text(&metadata.range.smallest), text(&metadata.range.largest));
    let end = if metadata.range.largest_exclusive { ")" } else { "" };
    format!("{}:{smallest}-{largest}{end}({})", metadata.number, metadata.size_bytes)
}

/// A compaction, for people.
pub(super) fn text(compaction: &Compaction) -> String {
    let Compaction { kind, reason, source_level, target_level, .. } = compaction;
    let inputs = compaction.input_tables().map(|(level, table)| {
        format!("L{level} {}", table_text(table)) //
    });
    let inputs = inputs.collect::<Vec<_>>().join(", ");
    format!("{kind:?} L{source_level} to L{target_level} ({reason:?}): {inputs}")
}

fn union<'a>(mut tables: impl Iterator<Item = &'a Arc<TableFile>>) -> Option<KeyRange> {
    let first = tables.next()?.metadata.range.clone();
    Some(tables.fold(first, |range, table| range.union(&table.metadata.range)))
}

fn numbers<'a>(tables: impl Iterator<Item = &'a Arc<TableFile>>) -> Vec<FileNumber> {
    let mut numbers: Vec<_> = tables.map(|table| table.metadata.number).collect();
    numbers.sort_unstable();
    numbers
}

/// A pick takes what its sources overlap, is in nobody's way, and keeps the order. Tables move as they are
/// only if they may.
pub(super) fn pick(
    version: &Version,
    picked: &Compaction,
    running: &[Compaction],
    moves: bool,
) -> Result<(), String> {
    if picked.kind == CompactionKind::TrivialMove && !moves {
        return Err("a table is moved past a filter".to_string());
    }
    let of = |wanted: Level| {
        picked.input_tables().filter(move |(level, _)| *level == wanted).map(|(_, table)| table)
    };
    let (source, target) = (picked.source_level, picked.target_level);
    let Some(range) = union(of(source)) else { return Err("a pick without sources".to_string()) };
    if picked.input_tables().any(|(level, _)| level != source && level != target) {
        return Err("a pick takes tables of a third level".to_string());
    }
    let is_live = |(level, table): (Level, &Arc<TableFile>)| {
        version.level(level).iter().any(|live| Arc::ptr_eq(live, table))
    };
    if !picked.input_tables().all(is_live) {
        return Err("a pick takes a table that is not there".to_string());
    }
    if source != target {
        let overlapped = numbers(version.overlapping(target, &range).iter());
        let taken = numbers(of(target));
        if overlapped != taken {
            return Err(format!(
                "the sources overlap {overlapped:?} of the target level, {taken:?} are taken"
            ));
        }
    }
    if union(picked.input_tables().map(|(_, table)| table)).as_ref() != Some(&picked.range) {
        return Err("the range of a pick is not that of its inputs".to_string());
    }
    let is_in_the_way = |other: &&Compaction| {
        let taken = numbers(other.input_tables().map(|(_, table)| table));
        let shares = |(_, table): (Level, &Arc<TableFile>)| taken.contains(&table.metadata.number);
        picked.input_tables().any(shares)
            || other.target_level == target && other.range.overlaps(&picked.range)
    };
    if let Some(other) = running.iter().find(is_in_the_way) {
        return Err(format!("a pick is in the way of {}", text(other)));
    }
    Order::of(version).check(picked)
}

/// An ingested table is newer than everything: nothing that it shares a key with lies above it.
pub(super) fn ingest(version: &Version, level: Level, range: &KeyRange) -> Result<(), String> {
    match (1..=level).find(|above| version.has_overlap(*above, range)) {
        None if level == 0 || !version.has_overlap(0, range) => Ok(()),
        above => Err(format!("an ingest goes to level {level}, below older rows of {above:?}")),
    }
}

/// The tables from the newest place to the oldest.
pub(super) struct Order<'v> {
    tables: Vec<(Level, &'v Arc<TableFile>)>,
}

impl<'v> Order<'v> {
    pub(super) fn of(version: &'v Version) -> Order<'v> {
        Order { tables: version.tables().collect() }
    }

    /// Whether no table that stays changes sides with an input that it shares a key with, when the
    /// inputs go to the target level.
    pub(super) fn check(&self, compaction: &Compaction) -> Result<(), String> {
        let inputs = numbers(compaction.input_tables().map(|(_, table)| table));
        let is_input = |table: &TableFile| inputs.binary_search(&table.metadata.number).is_ok();
        let target = compaction.target_level;
        for (place, (_, input)) in self.tables.iter().enumerate() {
            if !is_input(input) {
                continue;
            }
            let stay = self.tables.iter().enumerate().filter(|(_, (_, table))| {
                !is_input(table) && table.metadata.range.overlaps(&input.metadata.range)
            });
            for (other, (level, table)) in stay {
                if compaction.kind == CompactionKind::Drop {
                    if other < place {
                        continue;
                    }
                    let (input, table) = (table_text(input), table_text(table));
                    return Err(format!("{input} goes, and {table} of level {level} is uncovered"));
                }
                let stays_older = other > place && *level > target;
                let stays_newer = other < place && *level < target;
                if !stays_older && !stays_newer {
                    return Err(format!(
                        "{} goes to level {target} past {} of level {level}",
                        table_text(input),
                        table_text(table)
                    ));
                }
            }
        }
        Ok(())
    }
}
