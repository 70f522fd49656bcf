//! Readers that miss, evict and hold blocks of a cache that is too small for them, under a
//! concurrency checker; how it is run: `base/orders.rs`.

use super::*;
use crate::base::orders::{check, join_all};
use ::shuttle::thread;

/// What a block of the model takes.
const BLOCK_BYTES: usize = 1000;

/// Blocks that the cache has room for.
const ROOM: usize = 2;

fn block(file_id: u64, offset: u64) -> Vec<u8> {
    thread::yield_now();
    vec![(16 * file_id + offset) as u8; BLOCK_BYTES]
}

fn read(cache: &BlockCache, file_id: u64, offset: u64) -> Bytes {
    let found = cache.get(file_id, offset);
    found.unwrap_or_else(|| {
        let block = block(file_id, offset);
        cache.insert(file_id, offset, BlockKind::Data, &block)
    })
}

fn is_right(bytes: &Bytes, file_id: u64, offset: u64) -> bool {
    bytes.len() == BLOCK_BYTES && bytes.iter().all(|byte| u64::from(*byte) == 16 * file_id + offset)
}

/// Two readers of the same blocks, who hold one each while they read the others; a file that is
/// erased; and a use of memory that takes the room of a block.
fn readers() {
    let budget = MemoryBudget::new(ROOM * (BLOCK_BYTES + frame::FRAME_OVERHEAD_BYTES));
    let cache = BlockCache::new(Arc::clone(&budget), 0);
    let reader = |first: u64| {
        let cache = Arc::clone(&cache);
        thread::spawn(move || {
            let held = read(&cache, 1, first);
            for offset in [0, 1, 2] {
                let bytes = read(&cache, 1 + offset % 2, offset);
                assert!(is_right(&bytes, 1 + offset % 2, offset), "a block of others");
            }
            assert!(is_right(&held, 1, first), "what is held was given to another block");
        })
    };
    let eraser = {
        let cache = Arc::clone(&cache);
        thread::spawn(move || cache.erase_file(1))
    };
    let writer = {
        let (budget, cache) = (Arc::clone(&budget), Arc::clone(&cache));
        thread::spawn(move || {
            let charge = budget.charge(MemoryUse::Memtable, 1024);
            cache.shrink_to_budget();
            drop(charge);
        })
    };
    join_all(vec![reader(0), reader(2), eraser, writer]);
    assert_eq!(budget.used_bytes(MemoryUse::Pinned), 0, "nobody holds anything");
    cache.shrink_to_budget();
    let used = budget.used_bytes(MemoryUse::Cache);
    assert_eq!(used, cache.statistics().used_bytes as usize, "every charge has its block");
    assert!(used + cache.home.held_bytes() <= budget.limit_bytes());
    drop(cache);
    assert_eq!(budget.used_bytes(MemoryUse::Cache), 0);
}

/// Two readers of the same blocks, with room for all of them.
pub(crate) fn twins() {
    let budget = MemoryBudget::new(8 * (1024 + frame::FRAME_OVERHEAD_BYTES));
    let cache = BlockCache::new(Arc::clone(&budget), 0);
    let reader = || {
        let cache = Arc::clone(&cache);
        thread::spawn(move || {
            for offset in [0, 1] {
                assert!(is_right(&read(&cache, 1, offset), 1, offset));
            }
        })
    };
    join_all(vec![reader(), reader()]);
    let blocks = cache.statistics().by_kind[BlockKind::Data as usize];
    assert_eq!((blocks.count, blocks.inserted), (2, 2), "a block is there once");
    cache.erase_file(1);
    assert_eq!(budget.used_bytes(MemoryUse::Cache), 0);
}

/// What a cache of slabs has room for: four slabs of four blocks, with what is charged beside.
const SLABS_BYTES: usize = 16 * (1024 + frame::FRAME_OVERHEAD_BYTES);

/// Readers of blocks that move from slab to slab or leave, while a use of memory takes the half of the
/// cache; one holds a block meanwhile, so that its slab cannot go.
fn movers() {
    let budget = MemoryBudget::new(SLABS_BYTES);
    let cache = BlockCache::new(Arc::clone(&budget), 0);
    // Every second one has been used, and is worth a move.
    (0..14).for_each(|offset| drop(read(&cache, 1, offset)));
    (0..14).step_by(2).for_each(|offset| drop(read(&cache, 1, offset)));
    let reader = |offsets: [u64; 3]| {
        let cache = Arc::clone(&cache);
        thread::spawn(move || {
            let held = read(&cache, 1, offsets[0]);
            for offset in offsets {
                assert!(is_right(&read(&cache, 1, offset), 1, offset), "a block of others");
            }
            assert!(is_right(&held, 1, offsets[0]), "what is held was given to another block");
        })
    };
    let taker = || {
        let (budget, cache) = (Arc::clone(&budget), Arc::clone(&cache));
        thread::spawn(move || {
            let charge = budget.charge(MemoryUse::Memtable, SLABS_BYTES / 2);
            cache.shrink_to_budget();
            drop(charge);
        })
    };
    join_all(vec![reader([2, 4, 14]), reader([9, 2, 15]), taker(), taker()]);
    assert_eq!(budget.used_bytes(MemoryUse::Pinned), 0, "nobody holds anything");
    cache.shrink_to_budget();
    let used = budget.used_bytes(MemoryUse::Cache);
    assert_eq!(used, cache.statistics().used_bytes as usize, "every charge has its block");
    assert!(used + cache.home.held_bytes() <= SLABS_BYTES);
    drop(cache);
    assert_eq!(budget.used_bytes(MemoryUse::Cache), 0);
}

#[test]
fn blocks_that_move_are_right_and_charged_once_in_whatever_order() {
    check(movers);
}

#[test]
fn of_two_readers_that_miss_a_block_one_puts_it_in() {
    check(twins);
}

#[test]
fn blocks_are_right_and_charged_once_in_whatever_order() {
    check(readers);
}
