//! Reading ahead of a cursor that goes from block to block.
//!
//! A seek and the block behind it are read as they are wanted: most scans are short. From the
//! third block in a row that the cache does not have, a read takes more than that block, twice as
//! much each time. Past the page cache it begins with the second one: there a read costs ten times
//! its bytes. What it brings waits here, as it is stored and charged to the budget, for the
//! cursor to come by; a scan that ends has read at most about as much again as it used.

use super::block::BlockHandle;
use crate::base::{Charge, MemoryBudget, MemoryUse};
use std::ops::Range;
use std::sync::Arc;

/// What the first read ahead takes, in stored bytes.
const SIZE_MIN: u64 = 32 << 10;
/// What a read takes at most.
const SIZE_MAX: u64 = 256 << 10;
/// Blocks in a row that are missing before reading ahead starts.
const MISSES_BEFORE: u32 = 2;

/// The same past the page cache. There a read of 4 KiB takes 20 µs of CPU, and one of 16 KiB hardly
/// more: scans of ten rows in blocks of 2 KiB took 4.8 reads instead of 2.2 with blocks of 16 KiB.
const DIRECT_SIZE_MIN: u64 = 16 << 10;
const DIRECT_MISSES_BEFORE: u32 = 1;

/// The stored bytes that one cursor has read ahead, and what it knows of its way.
#[derive(Default)]
pub(super) struct ReadAhead {
    /// Starts at `offset` of the file.
    buffer: Vec<u8>,
    /// For `buffer`, where there is a budget.
    charge: Option<Charge>,
    offset: u64,
    /// The bytes of `buffer` that are known to be the file's.
    filled: usize,
    /// Where the last block lies.
    last: Option<Range<u64>>,
    /// Whether the last block is a neighbour of the one before it.
    is_on_its_way: bool,
    /// Missing blocks on a way that leads forward, with those between that the cache had left out.
    misses: u32,
    /// What the last read ahead took.
    size: u64,
}

/// What to read, and where to put it.
pub(super) struct Wanted<'b> {
    pub(super) offset: u64,
    pub(super) buffer: &'b mut [u8],
}

impl ReadAhead {
    /// Forgets the way: the cursor was placed anew. The buffer is given back.
    pub(super) fn reset(&mut self) {
        *self = ReadAhead::default();
    }

    /// Notes a block that the cache had.
    pub(super) fn pass(&mut self, handle: BlockHandle) {
        self.come_to(handle);
    }

    /// Whether the block follows the last one.
    fn come_to(&mut self, handle: BlockHandle) -> bool {
        // A handle without an end is refused by whoever reads the block.
        let here = handle.offset..handle.end().unwrap_or(handle.offset);
        let last = self.last.replace(here.clone());
        let follows = last.as_ref().is_some_and(|last| last.end == here.start);
        self.is_on_its_way = follows || last.is_some_and(|last| last.start == here.end);
        follows
    }

    /// Notes a block that the cache did not have, of a file that is read past the page cache or not;
    /// gives what to read from its start on, 0 for the block alone.
    pub(super) fn miss(&mut self, handle: BlockHandle, is_direct: bool) -> u64 {
        let follows = self.come_to(handle);
        self.misses = if follows { self.misses.saturating_add(1) } else { 1 };
        let (misses_before, size_min) = match is_direct {
            true => (DIRECT_MISSES_BEFORE, DIRECT_SIZE_MIN),
            false => (MISSES_BEFORE, SIZE_MIN),
        };
        if self.misses <= misses_before || self.holds(handle) {
            return 0;
        }
        self.size = (2 * self.size).clamp(size_min, SIZE_MAX);
        self.size
    }

    /// Whether the cursor came to the last block from a neighbour, in either direction: no lookup would
    /// have asked for it.
    pub(super) fn is_on_its_way(&self) -> bool {
        self.is_on_its_way
    }

    /// Whether the whole block waits here.
    pub(super) fn holds(&self, handle: BlockHandle) -> bool {
        let start = handle.offset.checked_sub(self.offset);
        let end = start.and_then(|start| start.checked_add(handle.stored_size.into()));
        end.is_some_and(|end| end <= self.filled as u64)
    }

    /// The stored bytes of a block; none if they are not here.
    pub(super) fn stored(&self, handle: BlockHandle) -> &[u8] {
        if !self.holds(handle) {
            return &[];
        }
        let start = (handle.offset - self.offset) as usize;
        &self.buffer[start..start + handle.stored_size as usize]
    }

    /// Makes room for a stretch of the file, at the cost of `budget`. What is here of its start
    /// stays, so that a block of which a part was read is not read twice.
    pub(super) fn prepare(
        &mut self,
        stretch: Range<u64>,
        budget: Option<&Arc<MemoryBudget>>,
    ) -> Wanted<'_> {
        let kept = match stretch.start.checked_sub(self.offset) {
            Some(skip) if skip < self.filled as u64 => {
                self.buffer.copy_within(skip as usize..self.filled, 0);
                self.filled - skip as usize
            }
            _ => 0,
        };
        self.offset = stretch.start;
        self.filled = kept;
        let size = ((stretch.end - stretch.start) as usize).max(kept);
        self.buffer.resize(size, 0);
        self.recharge(budget);
        Wanted { offset: stretch.start + kept as u64, buffer: &mut self.buffer[kept..] }
    }

    fn recharge(&mut self, budget: Option<&Arc<MemoryBudget>>) {
        let bytes = self.buffer.capacity();
        match &mut self.charge {
            Some(charge) => charge.resize(bytes),
            None => {
                self.charge = budget.map(|budget| budget.charge(MemoryUse::ReadAhead, bytes));
            }
        }
    }

    /// What was wanted has been read.
    pub(super) fn arrived(&mut self) {
        self.filled = self.buffer.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(offset: u64) -> BlockHandle {
        BlockHandle { offset, stored_size: 10_000 }
    }

    /// Passes blocks in a row that are all missing; gives what was read for each.
    fn pass(ahead: &mut ReadAhead, blocks: Range<u64>) -> Vec<usize> {
        let mut reads = Vec::new();
        for number in blocks {
            let handle = block(10_000 * number);
            let size = ahead.miss(handle, false);
            if size == 0 {
                reads.push(if ahead.holds(handle) { 0 } else { 10_000 });
                continue;
            }
            let wanted = ahead.prepare(handle.offset..handle.offset + size, None);
            for (at, byte) in (wanted.offset..).zip(wanted.buffer.iter_mut()) {
                *byte = (at / 10_000) as u8;
            }
            reads.push(wanted.buffer.len());
            ahead.arrived();
            assert!(ahead.stored(handle).iter().all(|byte| *byte == number as u8));
        }
        reads
    }

    #[test]
    fn reads_grow_while_blocks_are_missing_in_a_row() {
        let mut ahead = ReadAhead::default();
        let reads = pass(&mut ahead, 0..200);
        assert_eq!(reads[..3], [10_000, 10_000, 32 << 10]);
        let largest = reads.iter().copied().max();
        assert!(largest.is_some_and(|largest| largest as u64 <= SIZE_MAX));
        // 1.95 million bytes in reads of up to 256 KiB; nothing is read twice.
        assert!(reads.iter().filter(|read| **read > 0).count() <= 14, "{reads:?}");
        let total: usize = reads.iter().sum();
        assert!((2_000_000..2_000_000 + SIZE_MAX as usize).contains(&total), "{total}");
    }

    #[test]
    fn past_the_page_cache_the_second_block_brings_those_behind_it() {
        let mut ahead = ReadAhead::default();
        let sizes: Vec<u64> =
            (0..4).map(|number| ahead.miss(block(10_000 * number), true)).collect();
        assert_eq!(sizes, [0, 16 << 10, 32 << 10, 64 << 10]);
        assert!(ahead.is_on_its_way());
        assert_eq!(ahead.miss(block(900_000), true), 0);
        assert!(!ahead.is_on_its_way());
    }

    #[test]
    fn a_neighbour_is_on_the_way_whether_it_was_cached_and_in_which_direction() {
        let mut ahead = ReadAhead::default();
        let mut comes_to = |number: u64, is_cached: bool| {
            match is_cached {
                true => ahead.pass(block(10_000 * number)),
                false => assert_eq!(ahead.miss(block(10_000 * number), false), 0),
            }
            ahead.is_on_its_way()
        };
        assert!(!comes_to(50, true), "a seek");
        assert!(comes_to(51, false), "behind one that the cache had");
        assert!(comes_to(50, false) && comes_to(49, true) && comes_to(48, false), "back");
        assert!(!comes_to(60, false), "a jump");
    }

    #[test]
    fn a_jump_starts_over() {
        let mut ahead = ReadAhead::default();
        pass(&mut ahead, 0..50);
        assert_eq!(pass(&mut ahead, 900..902), [10_000, 10_000]);
        ahead.reset();
        assert_eq!(pass(&mut ahead, 902..904), [10_000, 10_000]);
        assert!(!ahead.holds(block(0)) && ahead.stored(block(0)).is_empty());
    }

    #[test]
    fn the_buffer_is_charged_until_the_cursor_is_placed_anew() {
        let budget = MemoryBudget::new(1 << 20);
        let used = || budget.used_bytes(MemoryUse::ReadAhead);
        let mut ahead = ReadAhead::default();
        ahead.prepare(0..100_000, Some(&budget));
        assert!((100_000..200_001).contains(&used()), "{}", used());
        ahead.prepare(0..200_000, Some(&budget));
        assert!((200_000..400_001).contains(&used()), "{}", used());
        ahead.reset();
        assert_eq!(used(), 0);
        ahead.prepare(0..100_000, Some(&budget));
        drop(ahead);
        assert_eq!(used(), 0);
    }

    #[test]
    fn what_was_not_read_is_not_believed() {
        let mut ahead = ReadAhead::default();
        ahead.prepare(0..100_000, None);
        // The read failed: nothing arrived.
        assert!(!ahead.holds(block(0)));
        ahead.prepare(0..100_000, None);
        ahead.arrived();
        assert!(ahead.holds(block(0)) && ahead.holds(block(90_000)) && !ahead.holds(block(90_001)));
    }
}
