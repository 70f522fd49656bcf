//! Buffers that blocks have left, for the blocks that come after them.
//!
//! Blocks are read by many threads, live long, and are freed by whichever thread evicts them. A
//! general allocator with an arena per thread keeps what each arena once held: with eight threads
//! a database of 192 MiB budget was resident with 590 MB. Here whatever a block leaves is taken by
//! the next block, of any thread.
//!
//! Buffers come in sizes of whole [`GRAIN_BYTES`], so that blocks of about one size fit each
//! other's. What lies here counts against the budget; the cache drops it before it evicts.
//!
//! Threads: any thread may call anything; one mutex, held for a push or a pop.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Capacities are multiples of this.
const GRAIN_BYTES: usize = 1 << 10;

/// Larger buffers are not kept: allocators give memory of their size back by themselves.
pub(super) const POOLED_BYTES_MAX: usize = 128 << 10;

/// Free buffers by capacity.
#[derive(Default)]
pub(super) struct FramePool {
    free: Mutex<BTreeMap<usize, Vec<Vec<u8>>>>,
    held_bytes: AtomicUsize,
}

/// The capacity of a buffer for so many bytes, if such buffers are pooled.
pub(super) fn pooled_capacity(bytes: usize) -> Option<usize> {
    let capacity = bytes.max(1).checked_next_multiple_of(GRAIN_BYTES)?;
    (capacity <= POOLED_BYTES_MAX).then_some(capacity)
}

impl FramePool {
    fn free(&self) -> MutexGuard<'_, BTreeMap<usize, Vec<Vec<u8>>>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The capacities of all free buffers.
    pub(super) fn held_bytes(&self) -> usize {
        self.held_bytes.load(Ordering::Relaxed)
    }

    /// An empty buffer of exactly that capacity, if there is one.
    pub(super) fn take(&self, capacity: usize) -> Option<Vec<u8>> {
        let buffer = self.free().get_mut(&capacity)?.pop()?;
        self.held_bytes.fetch_sub(capacity, Ordering::Relaxed);
        Some(buffer)
    }

    /// Takes back what a block has left; frees what is of no pooled capacity.
    pub(super) fn give(&self, mut buffer: Vec<u8>) {
        let capacity = buffer.capacity();
        if pooled_capacity(capacity) == Some(capacity) {
            buffer.clear();
            self.held_bytes.fetch_add(capacity, Ordering::Relaxed);
            self.free().entry(capacity).or_default().push(buffer);
        }
    }

    /// Frees one of the largest buffers; false if there are none.
    pub(super) fn drop_one(&self) -> bool {
        let mut free = self.free();
        while let Some(mut largest) = free.last_entry() {
            match largest.get_mut().pop() {
                Some(buffer) => {
                    self.held_bytes.fetch_sub(buffer.capacity(), Ordering::Relaxed);
                    return true;
                }
                None => drop(largest.remove()),
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_back_by_capacity() {
        let pool = FramePool::default();
        assert_eq!(pooled_capacity(0), Some(1024));
        assert_eq!(pooled_capacity(1024), Some(1024));
        assert_eq!(pooled_capacity(1025), Some(2048));
        assert_eq!(pooled_capacity(POOLED_BYTES_MAX + 1), None);
        assert_eq!(pooled_capacity(usize::MAX), None);
        for capacity in [2048, 1024, 2048] {
            pool.give([&[7; 10][..], &Vec::with_capacity(capacity)].concat());
            let mut buffer = Vec::with_capacity(capacity);
            buffer.push(1);
            pool.give(buffer);
        }
        // Those of other capacities are freed at once.
        assert_eq!(pool.held_bytes(), 5120);
        assert!(pool.take(3072).is_none());
        let buffer = pool.take(2048).expect("two are there");
        assert_eq!((buffer.len(), buffer.capacity()), (0, 2048));
        assert_eq!(pool.held_bytes(), 3072);
        assert!(pool.drop_one() && pool.drop_one() && !pool.drop_one());
        assert_eq!(pool.held_bytes(), 0);
    }
}
