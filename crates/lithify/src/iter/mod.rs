//! Floor 5: reading many ordered runs as one.
//!
//! Owns: the merge of memtables and tables ([`MergingCursor`]), the set of range tombstones that
//! cover a read ([`TombstoneSet`]), the cursor over visible rows ([`RowCursor`]), which knows
//! snapshots, bounds, direction and merge operands, and what the cursors of a family share
//! ([`FamilyRows`]), the ranges that hold no row among it ([`DeadRanges`]). A cursor may be used from
//! one thread at a time, and can be sent. Does not know locks or the database.

mod dead_ranges;
mod family_rows;
mod level;
mod merging;
mod rows;
mod tombstones;

#[cfg(all(test, shuttle))]
pub(crate) use dead_ranges::shuttle as dead_ranges_shuttle;
pub(crate) use dead_ranges::{Announced, DeadRanges};
pub(crate) use family_rows::FamilyRows;
pub(crate) use level::LevelCursor;
pub(crate) use merging::{MergingCursor, Source};
pub(crate) use rows::{Bounds, OWN_SEQUENCE_MIN, RowCursor};
pub(crate) use tombstones::{Cover, TombstoneSet};
