//! Buffers that blocks have left, for the blocks that come after them.
//!
//! Blocks are read by many threads, live long, and are freed by whichever thread evicts them. A
//! general allocator with an arena per thread keeps what each arena once held: with eight threads
//! a database of 192 MiB budget was resident with 590 MB. Here whatever a block leaves is taken by
//! the next block, of any thread.
//!
//! What the budget has no room for is not freed either: the buffer stays, *hollow*, and its pages
//! go back to the system. What the cache may hold goes up and down with every memtable; a buffer
//! that was freed each time would stay with the thread that once asked for it, while the thread
//! that reads the next block asks for another one. So there are never more buffers of a size than
//! there once were blocks, and no more memory in them than blocks have now.
//!
//! Buffers come in sizes of whole [`GRAIN_BYTES`], so that blocks of about one size fit each
//! other's. What lies here counts against the budget, of hollow ones the parts of pages at both
//! ends. The cache keeps a stock of buffers that have their pages: with many sizes at hand a block
//! nearly always finds one, where giving pages back and faulting them in again for every one that
//! did not fit took a tenth of the CPU time of LinkBench's queries.
//!
//! Threads: any thread may call anything; one mutex, held for a push or a pop.

use crate::base::pages;
use crate::base::sync::{AtomicUsize, Mutex, lock};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

/// Capacities are multiples of this.
const GRAIN_BYTES: usize = 1 << 10;

/// Larger buffers are not kept: they are few, and their pages go back to the system at once.
pub(super) const POOLED_BYTES_MAX: usize = 128 << 10;

/// A block takes a buffer that is larger than it needs by up to one in so many bytes.
const SURPLUS_DIVISOR: usize = 8;

/// Hollow buffers keep up to one in so many bytes of the budget resident.
const HOLLOW_DIVISOR: usize = 16;

/// The stock is one in so many bytes of what the cache may hold.
pub(super) const STOCK_DIVISOR: usize = 32;

/// Buffers by capacity.
type Shelves<B> = BTreeMap<usize, Vec<B>>;

/// An empty buffer that has lost its pages.
struct Hollow {
    buffer: Vec<u8>,
    /// What of its capacity is still there, at most.
    resident_bytes: usize,
}

#[derive(Default)]
struct Free {
    full: Shelves<Vec<u8>>,
    hollow: Shelves<Hollow>,
}

/// Free buffers.
pub(super) struct FramePool {
    free: Mutex<Free>,
    /// What buffers that have their pages take.
    full_bytes: AtomicUsize,
    /// What hollow buffers keep resident.
    hollow_bytes: AtomicUsize,
    /// What hollow buffers may keep resident.
    hollow_bytes_max: usize,
}

/// The capacity of a buffer for so many bytes, if such buffers are pooled.
pub(super) fn pooled_capacity(bytes: usize) -> Option<usize> {
    let capacity = bytes.max(1).checked_next_multiple_of(GRAIN_BYTES)?;
    (capacity <= POOLED_BYTES_MAX).then_some(capacity)
}

/// Takes a buffer of that capacity or a little more.
fn take_fitting<B>(shelves: &mut Shelves<B>, capacity: usize) -> Option<B> {
    let fitting = capacity..=capacity + capacity / SURPLUS_DIVISOR;
    shelves.range_mut(fitting).find_map(|(_, shelf)| shelf.pop())
}

/// Takes one of the largest buffers.
fn take_largest<B>(shelves: &mut Shelves<B>) -> Option<B> {
    while let Some(mut largest) = shelves.last_entry() {
        match largest.get_mut().pop() {
            Some(buffer) => return Some(buffer),
            None => drop(largest.remove()),
        }
    }
    None
}

impl FramePool {
    /// An empty pool for a cache within a budget.
    pub(super) fn new(budget_bytes: usize) -> Self {
        FramePool {
            free: Mutex::default(),
            full_bytes: AtomicUsize::new(0),
            hollow_bytes: AtomicUsize::new(0),
            hollow_bytes_max: budget_bytes / HOLLOW_DIVISOR,
        }
    }

    /// What the free buffers take of the budget.
    pub(super) fn held_bytes(&self) -> usize {
        self.full_bytes.load(Ordering::Relaxed) + self.hollow_bytes.load(Ordering::Relaxed)
    }

    /// Whether there is more than the stock of a cache that may hold so many bytes.
    pub(super) fn is_stocked(&self, capacity_bytes: usize) -> bool {
        self.full_bytes.load(Ordering::Relaxed) > capacity_bytes / STOCK_DIVISOR
    }

    /// A buffer of that capacity or a little more, if there is one that has its pages. It has the bytes
    /// of the block that left it.
    pub(super) fn take(&self, capacity: usize) -> Option<Vec<u8>> {
        let buffer = take_fitting(&mut lock(&self.free).full, capacity)?;
        self.full_bytes.fetch_sub(buffer.capacity(), Ordering::Relaxed);
        Some(buffer)
    }

    /// An empty buffer of that capacity or a little more: a hollow one if there is one, else the
    /// allocator's.
    pub(super) fn grow(&self, capacity: usize) -> Vec<u8> {
        let found = take_fitting(&mut lock(&self.free).hollow, capacity);
        let Some(hollow) = found else { return Vec::with_capacity(capacity) };
        self.hollow_bytes.fetch_sub(hollow.resident_bytes, Ordering::Relaxed);
        hollow.buffer
    }

    /// Takes back what a block has left. What is of no pooled capacity is freed, after its pages.
    pub(super) fn give(&self, mut buffer: Vec<u8>) {
        let capacity = buffer.capacity();
        if pooled_capacity(capacity) == Some(capacity) {
            self.full_bytes.fetch_add(capacity, Ordering::Relaxed);
            lock(&self.free).full.entry(capacity).or_default().push(buffer);
        } else if capacity > POOLED_BYTES_MAX {
            buffer.clear();
            pages::discard(buffer.spare_capacity_mut());
        }
    }

    /// Gives the pages of one of the largest buffers back to the system; false if none has any.
    pub(super) fn hollow_one(&self) -> bool {
        let Some(mut buffer) = take_largest(&mut lock(&self.free).full) else { return false };
        let capacity = buffer.capacity();
        buffer.clear();
        let resident_bytes = capacity - pages::discard(buffer.spare_capacity_mut());
        self.full_bytes.fetch_sub(capacity, Ordering::Relaxed);
        let hollow_bytes = self.hollow_bytes.load(Ordering::Relaxed) + resident_bytes;
        // One that is small, or of which the system takes nothing back, is not worth keeping; nor
        // is one of many: blocks have other sizes by now.
        if resident_bytes > capacity / 2 || hollow_bytes > self.hollow_bytes_max {
            return true;
        }
        self.hollow_bytes.fetch_add(resident_bytes, Ordering::Relaxed);
        let hollow = Hollow { buffer, resident_bytes };
        lock(&self.free).hollow.entry(capacity).or_default().push(hollow);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer_of(capacity: usize) -> Vec<u8> {
        let mut buffer = Vec::with_capacity(capacity);
        buffer.resize(capacity, 1);
        buffer
    }

    #[test]
    fn buffers_come_back_by_capacity() {
        let pool = FramePool::new(1 << 20);
        assert_eq!(pooled_capacity(0), Some(1024));
        assert_eq!(pooled_capacity(1024), Some(1024));
        assert_eq!(pooled_capacity(1025), Some(2048));
        assert_eq!(pooled_capacity(POOLED_BYTES_MAX + 1), None);
        assert_eq!(pooled_capacity(usize::MAX), None);
        for capacity in [2048, 1024, 2048] {
            pool.give([&[7; 10][..], &Vec::with_capacity(capacity)].concat());
            pool.give(buffer_of(capacity));
        }
        // Those of other capacities are freed at once.
        assert_eq!(pool.held_bytes(), 5120);
        pool.give(buffer_of(POOLED_BYTES_MAX + GRAIN_BYTES));
        assert_eq!(pool.held_bytes(), 5120);
        assert!(pool.take(3072).is_none());
        let buffer = pool.take(2048).expect("two are there");
        assert_eq!(buffer, [1; 2048], "as it was given");
        assert_eq!(pool.held_bytes(), 3072);
        assert!(pool.hollow_one() && pool.hollow_one() && !pool.hollow_one());
        assert_eq!(pool.held_bytes(), 0, "buffers of less than a page are freed");
    }

    #[test]
    fn a_block_takes_a_buffer_that_is_a_little_larger() {
        let pool = FramePool::new(1 << 20);
        pool.give(buffer_of(18 << 10));
        assert!(pool.take(15 << 10).is_none());
        assert_eq!(pool.take(16 << 10).map(|buffer| buffer.capacity()), Some(18 << 10));
        assert!(pool.take(16 << 10).is_none());
    }

    #[cfg(all(target_os = "linux", not(lithify_portable)))]
    #[test]
    fn hollow_buffers_are_used_again_before_there_are_new_ones() {
        let pool = FramePool::new(1 << 20);
        let capacity = 64 << 10;
        let buffers: Vec<_> = (0..4).map(|_| buffer_of(capacity)).collect();
        let places: Vec<_> = buffers.iter().map(|buffer| buffer.as_ptr()).collect();
        buffers.into_iter().for_each(|buffer| pool.give(buffer));
        assert_eq!(pool.held_bytes(), 4 * capacity);
        while pool.hollow_one() {}
        let hollow_bytes = pool.held_bytes();
        assert!(hollow_bytes > 0 && hollow_bytes <= 4 * capacity / 4, "{hollow_bytes}");
        assert!(pool.take(capacity).is_none(), "none has its pages");
        let mut buffers: Vec<_> = (0..3).map(|_| pool.grow(capacity)).collect();
        for buffer in &mut buffers {
            assert!(buffer.is_empty() && places.contains(&buffer.as_ptr()));
            buffer.resize(capacity, 9);
            assert!(buffer.iter().all(|byte| *byte == 9));
        }
        assert_eq!(pool.grow(8 << 10).capacity(), 8 << 10);
        assert_eq!(4 * pool.held_bytes(), hollow_bytes, "one is left");
    }

    #[cfg(all(target_os = "linux", not(lithify_portable)))]
    #[test]
    fn hollow_buffers_are_not_kept_without_bound() {
        let pool = FramePool::new(1 << 20);
        (0..100).for_each(|_| pool.give(buffer_of(64 << 10)));
        while pool.hollow_one() {}
        let held_bytes = pool.held_bytes();
        assert!(held_bytes > 0 && held_bytes <= (1 << 20) / HOLLOW_DIVISOR, "{held_bytes}");
    }
}
