//! Where tables go that come from outside the tree: a flush, or an ingest. Pure: a version and
//! what is running in, a level out.
//!
//! Tables that share no key with any table of their level and of those above it may go there at
//! once: nothing older lies above them and nothing newer below. So rows that come in order are
//! written once, in the codec of the level where they stay.

use super::picker::BusySet;
use crate::base::Level;
use crate::manifest::{KeyRange, Version};

/// The deepest level that keys of `range` may go to at once; 0 if they overlap what is there.
/// Levels between 0 and `base_level` stay empty.
pub fn deepest_free_level(
    version: &Version,
    base_level: Level,
    busy: &BusySet,
    range: &KeyRange,
) -> Level {
    let level_count = version.level_count();
    let overlapped = (0..level_count).find(|level| version.has_overlap(*level, range));
    let free = base_level.max(1)..overlapped.unwrap_or(level_count);
    free.rev().find(|level| !busy.writes(*level, range)).unwrap_or(0)
}

/// The first key behind `key` that a table of the levels down to `level` begins with: a table
/// that starts at `key` and ends before it fits between the live ones.
pub fn end_of_gap<'v>(version: &'v Version, level: Level, key: &[u8]) -> Option<&'v [u8]> {
    (0..=level.min(version.level_count().saturating_sub(1)))
        .flat_map(|level| {
            let tables = version.level(level);
            let first = match level {
                0 => 0,
                _ => tables.partition_point(|table| table.metadata.range.smallest[..] <= *key),
            };
            let count = if level == 0 { tables.len() } else { 1 };
            tables.iter().skip(first).take(count)
        })
        .map(|table| &table.metadata.range.smallest[..])
        .filter(|smallest| *smallest > key)
        .min()
}
