//! Floor 5: reading many ordered runs as one.
//!
//! Owns: the merge of memtables and tables ([`MergingCursor`]), the set of range tombstones that
//! cover a read ([`TombstoneSet`]), and the cursor over visible rows ([`RowCursor`]), which knows
//! snapshots, bounds and direction. May be used from one thread at a time; a cursor can be sent.
//! Does not know column families, locks or the database.

mod level;
mod merging;
mod rows;
mod tombstones;

pub(crate) use level::LevelCursor;
pub(crate) use merging::{MergingCursor, Source};
pub(crate) use rows::{Bounds, OWN_SEQUENCE_MIN, RowCursor};
pub(crate) use tombstones::TombstoneSet;
