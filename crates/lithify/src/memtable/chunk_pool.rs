//! The memory that dropped memtables leave, for the memtables that come after them.
//!
//! A memtable grows while others are flushed. Were its memory given back and asked for anew each
//! time, the block cache would grow and shrink with every memtable: under LinkBench's queries that
//! cost a tenth of all CPU time, for pages given back, faults, and interrupts to other processors.
//! What lies here counts as memory of memtables, one memtable's worth at most.
//!
//! Threads: any; one mutex, held for a push or a pop.

use crate::base::{Charge, MemoryBudget, MemoryUse, lock};
use crate::fs::MappedPages;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Free chunks of mapped memory.
pub(crate) struct ChunkPool {
    budget: Arc<MemoryBudget>,
    bytes_max: usize,
    free: Mutex<Free>,
}

struct Free {
    by_size: BTreeMap<usize, Vec<MappedPages>>,
    charge: Charge,
}

impl ChunkPool {
    /// An empty pool that keeps up to `bytes_max` bytes, charged to `budget`.
    pub(crate) fn new(budget: &Arc<MemoryBudget>, bytes_max: usize) -> Arc<Self> {
        let charge = budget.charge(MemoryUse::Memtable, 0);
        Arc::new(ChunkPool {
            budget: Arc::clone(budget),
            bytes_max,
            free: Mutex::new(Free { by_size: BTreeMap::new(), charge }),
        })
    }

    /// What memtables are charged to.
    pub(crate) fn budget(&self) -> &Arc<MemoryBudget> {
        &self.budget
    }

    /// Pages of exactly that size, with anything in them. The taker charges them.
    pub(super) fn take(&self, size_bytes: usize) -> Option<MappedPages> {
        let mut free = lock(&self.free);
        let pages = free.by_size.get_mut(&size_bytes)?.pop()?;
        let left_bytes = free.charge.bytes() - size_bytes;
        free.charge.resize(left_bytes);
        Some(pages)
    }

    /// Keeps pages that a memtable has left, or gives them back to the system. A chunk of an odd
    /// size was for one large value, and nobody would ask for it again.
    pub(super) fn give(&self, pages: MappedPages) {
        let size_bytes = pages.size_bytes();
        if !size_bytes.is_power_of_two() {
            return;
        }
        let mut free = lock(&self.free);
        let bytes = free.charge.bytes() + size_bytes;
        if bytes > self.bytes_max {
            // Unmapping takes a while.
            drop(free);
            return;
        }
        free.charge.resize(bytes);
        free.by_size.entry(size_bytes).or_default().push(pages);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_memtable_leaves_the_next_one_takes() {
        let budget = MemoryBudget::new(1 << 30);
        let used_bytes = || budget.used_bytes(MemoryUse::Memtable);
        let pool = ChunkPool::new(&budget, 600 << 10);
        assert!(pool.take(256 << 10).is_none());
        let pages = |kib: usize| MappedPages::of_size(kib << 10).expect("the system has memory");
        let first = pages(256);
        let place = first.start();
        pool.give(first);
        pool.give(pages(256));
        pool.give(pages(128));
        assert_eq!(used_bytes(), 512 << 10, "the third was too much");
        pool.give(pages(20));
        assert!(pool.take(128 << 10).is_none() && pool.take(20 << 10).is_none());
        let places = [pool.take(256 << 10), pool.take(256 << 10)];
        assert!(places.iter().flatten().any(|pages| pages.start() == place));
        assert!(pool.take(256 << 10).is_none());
        assert_eq!(used_bytes(), 0);
        pool.give(pages(128));
        drop(pool);
        assert_eq!(used_bytes(), 0);
    }
}
