//! What the process has resident follows what is booked, whichever threads read and evict blocks.
//! A process of its own: nothing else is to be resident.

#![cfg(target_os = "linux")]

use lithify::base::{MemoryBudget, MemoryUse};
use lithify::cache::{BlockCache, BlockKind};

const BUDGET_BYTES: usize = 64 << 20;

fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<usize>().unwrap() << 10
}

/// Reads `bytes` of blocks into the cache: most of one size, some of any.
fn read(cache: &BlockCache, file_id: u64, bytes: usize) {
    let block = [1; 16 << 10];
    let (mut offset, mut random) = (0, file_id);
    while offset < bytes {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let size = match random >> 60 {
            0 => (random >> 40) as usize % (16 << 10),
            _ => 16 << 10,
        };
        cache.insert(file_id, offset as u64, BlockKind::Data, &block[..size]);
        offset += size.max(1);
    }
}

#[test]
fn resident_memory_follows_the_budget() {
    let at_start = resident_bytes();
    let budget = MemoryBudget::new(BUDGET_BYTES);
    let cache = BlockCache::new(budget.clone(), 0);
    // One thread fills the cache.
    read(&cache, 1, 2 * BUDGET_BYTES);
    let filled = resident_bytes() - at_start;
    assert!(filled >= BUDGET_BYTES * 9 / 10, "{filled} bytes are resident");
    // Others read while memtables come and go.
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (cache, budget) = (&cache, &budget);
            scope.spawn(move || {
                for round in 0..40 {
                    let memtable = budget.charge(MemoryUse::Memtable, BUDGET_BYTES / 8);
                    cache.shrink_to_budget();
                    read(cache, 2 + 2 * round + thread, BUDGET_BYTES / 64);
                    drop(memtable);
                    read(cache, 1000 + 2 * round + thread, BUDGET_BYTES / 8);
                }
            });
        }
    });
    let used = budget.used_bytes(MemoryUse::Cache);
    let resident = resident_bytes() - at_start;
    assert!(used <= BUDGET_BYTES && resident <= used + BUDGET_BYTES / 10, "{resident} for {used}");
}
