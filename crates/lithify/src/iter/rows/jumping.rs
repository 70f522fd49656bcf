//! Keys that a move need not pass one by one: ranges that are known to hold no row, and what a range
//! tombstone covers.
//!
//! A move asks after every few dead entries, so that scans without any pay nothing. Known ranges hold for all
//! sources at once. A range tombstone holds for those sources whose entries are all older than it; a source
//! that has newer ones is passed entry by entry. Old data lies deep, where levels have no newer entry, and
//! entries that nobody else has to see have sequence number 0.

use super::{PASSED_PER_LOOK, RowCursor};
use crate::Result;
use crate::base::{Trailer, key_behind};
use crate::table::ReadContext;

impl RowCursor {
    /// Past the dead entries at the merge's entry, as far as they are known; false if none is.
    #[cold]
    pub(super) fn jump_on(&mut self, passed: u32) -> Result<bool> {
        self.mark_walk(passed);
        let known = self.known_dead();
        let end =
            known.and_then(|(ranges, watch)| ranges.end_behind(self.merge.key(), watch.horizon));
        let Some(end) = end else { return self.leave_covered() };
        self.merge.seek(&end, Trailer(u64::MAX), context!(self))?;
        Ok(true)
    }

    /// The same going back.
    #[cold]
    pub(super) fn jump_back_on(&mut self, passed: u32) -> Result<bool> {
        self.mark_walk(passed);
        self.book_sample(passed);
        let limit = key_behind(self.merge.key());
        Ok(self.jump_back(&limit)? || self.leave_covered()?)
    }

    /// Before the dead range that ends at `limit` or continues behind it; false if there is none.
    pub(super) fn jump_back(&mut self, limit: &[u8]) -> Result<bool> {
        let Some((ranges, watch)) = self.known_dead() else { return Ok(false) };
        let Some(start) = ranges.start_before(limit, watch.horizon) else { return Ok(false) };
        self.merge.seek_for_prev(&start, Trailer(u64::MAX), context!(self))?;
        Ok(true)
    }

    /// Past what the range tombstone over the merge's entry covers, where the entry's source has nothing newer.
    fn leave_covered(&mut self) -> Result<bool> {
        let cover = self.tombstones.newest_over(self.merge.key(), self.snapshot);
        let Some(cover) = cover.filter(|cover| self.merge.trailer().sequence() < cover.sequence)
        else {
            return Ok(false);
        };
        self.merge.leave(&cover, context!(self))
    }

    /// Remembers where a move is that has passed some dead entries.
    fn mark_walk(&mut self, passed: u32) {
        if passed == PASSED_PER_LOOK {
            self.walk_start.clear();
            self.walk_start.extend_from_slice(self.merge.key());
        }
    }
}
