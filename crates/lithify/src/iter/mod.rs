//! Floor 5: reading many ordered runs as one.
//!
//! Owns: the merge of memtables and tables ([`MergingCursor`]), the set of range tombstones that
//! cover a read ([`TombstoneSet`]), the cursor over visible rows ([`RowCursor`]), which knows
//! snapshots, bounds and direction, and the ranges that hold no row ([`DeadRanges`]). May be used from one thread at a time; a cursor can be sent.
//! Does not know column families, locks or the database.

mod dead_ranges;
mod level;
mod merging;
mod rows;
mod tombstones;

#[cfg(all(test, shuttle))]
pub(crate) use dead_ranges::shuttle as dead_ranges_shuttle;
pub(crate) use dead_ranges::{Announced, DeadRanges};
pub(crate) use level::LevelCursor;
pub(crate) use merging::{MergingCursor, Source};
pub(crate) use rows::{Bounds, DeadWatch, OWN_SEQUENCE_MIN, RowCursor};
pub(crate) use tombstones::TombstoneSet;
