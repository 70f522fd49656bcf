use super::*;
use crate::base::MemoryUse;

const BLOCK_BYTES: usize = 4096;

/// What one block of the tests is charged with.
const CHARGED_BYTES: usize = BLOCK_BYTES + frame::FRAME_OVERHEAD_BYTES;

fn block(file_id: u64, offset: u64) -> Vec<u8> {
    let mut buffer = Vec::with_capacity(BLOCK_BYTES);
    buffer.extend_from_slice(&file_id.to_le_bytes());
    buffer.extend_from_slice(&offset.to_le_bytes());
    buffer.resize(BLOCK_BYTES, offset as u8);
    buffer
}

fn cache_of(blocks: usize) -> (Arc<MemoryBudget>, Arc<BlockCache>) {
    let budget = MemoryBudget::new(blocks * CHARGED_BYTES);
    (Arc::clone(&budget), BlockCache::new(budget, 0))
}

/// Looks a block up, and inserts it if it is missed; returns whether it was found.
fn read(cache: &BlockCache, file_id: u64, offset: u64, kind: BlockKind) -> bool {
    let found = cache.get(file_id, offset);
    let was_found = found.is_some();
    let bytes =
        found.unwrap_or_else(|| cache.insert(file_id, offset, kind, &block(file_id, offset)));
    assert!(*bytes == *block(file_id, offset));
    was_found
}

/// Reads data blocks one after the other.
fn read_data(cache: &BlockCache, file_id: u64, offsets: std::ops::Range<u64>) {
    for offset in offsets {
        read(cache, file_id, offset, BlockKind::Data);
    }
}

fn assert_within_budget(budget: &MemoryBudget, bytes_min: usize) {
    let beside = budget.used_beside_cache_bytes();
    let capacity = budget.limit_bytes().saturating_sub(beside).max(bytes_min);
    let used = budget.used_bytes(MemoryUse::Cache);
    assert!(used <= capacity, "{used} of {capacity}");
}

#[test]
fn blocks_are_found_by_file_and_offset() {
    let (budget, cache) = cache_of(100);
    let (one, two) = (cache.new_file_id(), cache.new_file_id());
    assert_ne!(one, two);
    for (file_id, offset) in [(one, 0), (two, 0), (one, 4096), (one, u64::MAX)] {
        assert!(!read(&cache, file_id, offset, BlockKind::Data));
        assert!(read(&cache, file_id, offset, BlockKind::Data));
    }
    assert!(cache.get(two, 4096).is_none());
    let statistics = cache.statistics();
    assert_eq!((statistics.hits, statistics.misses, statistics.inserted), (4, 5, 4));
    assert_eq!(statistics.inserted_bytes, 4 * CHARGED_BYTES as u64);
    assert_eq!(statistics.evicted, 0);
    assert_eq!(statistics.used_bytes, 4 * CHARGED_BYTES as u64);
    assert_eq!(budget.used_bytes(MemoryUse::Cache), 4 * CHARGED_BYTES);
    assert_eq!(statistics.by_kind[BlockKind::Data as usize].count, 4);
    assert_eq!(statistics.by_kind[BlockKind::Index as usize], CachedBlocks::default());
    assert_eq!(statistics.capacity_bytes, 100 * CHARGED_BYTES as u64);
    drop(cache);
    assert_eq!(budget.used_bytes(MemoryUse::Cache), 0);
}

#[test]
fn the_first_of_two_readers_wins() {
    let (budget, cache) = cache_of(10);
    let first = cache.insert(0, 0, BlockKind::Data, b"first");
    let second = cache.insert(0, 0, BlockKind::Data, b"again");
    assert_eq!((&first[..], &second[..]), (&b"first"[..], &b"first"[..]));
    assert_eq!(cache.statistics().inserted, 1);
    assert_eq!(budget.used_bytes(MemoryUse::Cache), 5 + frame::FRAME_OVERHEAD_BYTES);
    assert_eq!(budget.used_bytes(MemoryUse::Pinned), 0);
}

#[test]
fn the_budget_holds_after_every_insertion() {
    // Once with one shard and once with several, with blocks of many sizes.
    for limit_bytes in [300_000, 20 << 20] {
        let budget = MemoryBudget::new(limit_bytes);
        let cache = BlockCache::new(Arc::clone(&budget), 50_000);
        let mut random = 1_u64;
        let mut memtable = budget.charge(MemoryUse::Memtable, 0);
        for step in 0..6000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let size = (random >> 40) as usize % 30_000;
            let kind = BlockKind::ALL[step % 3];
            let bytes = match step % 5 {
                0 => cache.insert_scan(1, step as u64, kind, &vec![1; size]),
                _ => cache.insert(1, step as u64, kind, &vec![1; size]),
            };
            assert_eq!(bytes.len(), size);
            drop(bytes);
            assert_within_budget(&budget, 50_000);
            // One slab may be larger than a smaller cache.
            if cache.capacity_bytes() >= 1 << 20 {
                assert_takes_what_it_may(&cache);
            }
            if step % 100 == 0 {
                memtable.resize((random >> 33) as usize % (limit_bytes + limit_bytes / 8));
                cache.shrink_to_budget();
                assert_within_budget(&budget, 50_000);
            }
        }
        assert!(cache.statistics().evicted > 1000);
        let used = cache.statistics().used_bytes;
        assert_eq!(budget.used_bytes(MemoryUse::Cache) as u64, used);
        assert_eq!(budget.used_bytes(MemoryUse::Pinned), 0);
    }
}

/// The cache holds as many blocks as it may, but for the stock of buffers for those to come.
#[track_caller]
fn assert_holds(budget: &MemoryBudget, capacity_bytes: usize) {
    let used = budget.used_bytes(MemoryUse::Cache);
    let stock = capacity_bytes / frame_pool::STOCK_DIVISOR + CHARGED_BYTES;
    assert!(
        (capacity_bytes - stock..=capacity_bytes).contains(&used),
        "{used} of {capacity_bytes}"
    );
}

#[test]
fn the_budget_is_used_up_and_not_wasted() {
    let budget = MemoryBudget::new(32 << 20);
    let cache = BlockCache::new(Arc::clone(&budget), 0);
    read_data(&cache, 1, 0..20_000);
    assert_holds(&budget, budget.limit_bytes());
}

#[test]
fn what_a_shrinking_cache_gives_up_goes_back_and_hot_blocks_stay() {
    let budget = MemoryBudget::new(32 << 20);
    let cache = BlockCache::new(Arc::clone(&budget), 0);
    let hot = 2500;
    warm_up(&cache, hot, 3);
    read_data(&cache, 2, 0..20_000);
    warm_up(&cache, hot, 1);
    let held = cache.get(2, 19_999).unwrap();
    for round in 0..20 {
        let memtable = budget.charge(MemoryUse::Memtable, 16 << 20);
        cache.shrink_to_budget();
        assert_within_budget(&budget, 0);
        let slabs_bytes = cache.home.held_bytes() + budget.used_bytes(MemoryUse::Cache);
        assert!(slabs_bytes <= 16 << 20, "{slabs_bytes} bytes of 16 MiB");
        drop(memtable);
        let found = warm_up(&cache, hot, 1);
        assert!(found * 100 >= hot as usize * 97, "{found} of {hot} in round {round}");
        read_data(&cache, 3 + round, 0..3000);
    }
    assert!(*held == *block(2, 19_999));
}

/// Slabs and blocks take what the cache may hold, and what is free beside blocks that somebody reads.
#[track_caller]
fn assert_takes_what_it_may(cache: &BlockCache) {
    let (capacity, stuck) = (cache.capacity_bytes(), cache.home.pool.stuck_bytes());
    let taken = taken_bytes(cache);
    assert!(taken <= capacity + stuck, "{taken} of {capacity} and {stuck} stuck");
}

/// What slabs and blocks take together.
fn taken_bytes(cache: &BlockCache) -> usize {
    cache.cache_bytes()
}

#[test]
fn blocks_between_those_of_a_file_that_is_gone_move_and_stay() {
    let budget = MemoryBudget::new(32 << 20);
    let cache = BlockCache::new(Arc::clone(&budget), 0);
    for round in 0..3 {
        for offset in 0..3000 {
            assert_eq!(read(&cache, 1, offset, BlockKind::Data), round > 0);
            assert_eq!(read(&cache, 2, offset, BlockKind::Data), round > 0);
        }
    }
    cache.erase_file(2);
    assert!(cache.home.held_bytes() >= 3000 * BLOCK_BYTES);
    let memtable = budget.charge(MemoryUse::Memtable, 17 << 20);
    cache.shrink_to_budget();
    assert!(taken_bytes(&cache) <= 15 << 20);
    let left = (0..3000).filter(|offset| cache.get(1, *offset).is_some()).count();
    assert!(left >= 2950, "{left} of 3000 blocks are left");
    drop(memtable);
    assert!((0..3000).all(|offset| read(&cache, 1, offset, BlockKind::Data) || left < 3000));
}

#[test]
fn memory_of_tables_that_are_closed_goes() {
    let budget = MemoryBudget::new(64 << 20);
    let cache = BlockCache::new(Arc::clone(&budget), 0);
    for size in [120_000, 60_000, 30_000, 14_000, 7000, 3400, 1700, 800] {
        let block = vec![1; size];
        let keep = || cache.keep(&block, KeptShare::Whole);
        let kept: Vec<_> = std::iter::from_fn(keep).collect();
        let tables_bytes = budget.used_bytes(MemoryUse::Tables);
        assert!((15 << 20..=16 << 20).contains(&tables_bytes), "{tables_bytes} for {size}");
        drop(kept);
        assert_eq!(cache.home.kept.held_bytes(), 0);
    }
    read_data(&cache, 1, 0..20_000);
    assert_holds(&budget, 64 << 20);
}

#[test]
fn slabs_of_tables_leave_the_cache_its_least() {
    let budget = MemoryBudget::new(64 << 20);
    let cache = BlockCache::new(Arc::clone(&budget), 4 << 20);
    let block = vec![1; 8300];
    let keep = || cache.keep(&block, KeptShare::Whole);
    let kept: Vec<_> = std::iter::from_fn(keep).collect();
    // Two of three tables are closed, and their blocks lay between the others'.
    let kept: Vec<_> = kept.into_iter().step_by(3).collect();
    assert!(cache.home.kept.held_bytes() > 8 << 20);
    let memtable = budget.charge(MemoryUse::Memtable, 64 << 20);
    read_data(&cache, 1, 0..5000);
    assert_holds(&budget, 4 << 20);
    drop((kept, memtable));
}

#[test]
fn blocks_that_are_read_for_long_cost_their_slabs_and_not_the_cache() {
    let cases = [(8300, 64 << 20, 8, 65), (4200, 256 << 20, 8, 65), (4200, 256 << 20, 4, 50)];
    for (size, limit_bytes, divisor, left_percent) in cases {
        let budget = MemoryBudget::new(limit_bytes);
        let cache = BlockCache::new(Arc::clone(&budget), 0);
        let block = vec![1; size];
        let insert = |offset| cache.insert(1, offset, BlockKind::Data, &block);
        let count = (limit_bytes / size) as u64;
        // Three in a hundred of those there are still read, and lie in many slabs.
        let held: Vec<_> = (0..2 * count)
            .map(|offset| (offset, insert(offset)))
            .filter(|(offset, _)| *offset > count && offset % 33 == 0)
            .collect();
        let memtable = budget.charge(MemoryUse::Memtable, limit_bytes / divisor);
        cache.shrink_to_budget();
        let blocks = cache.statistics().by_kind[BlockKind::Data as usize].count;
        assert!(blocks * 100 >= count * left_percent, "{blocks} of {count} blocks are left");
        assert_takes_what_it_may(&cache);
        assert!(divisor == 4 || taken_bytes(&cache) <= cache.capacity_bytes() * 9 / 8);
        (0..count).for_each(|offset| drop(cache.insert(2, offset, BlockKind::Data, &block)));
        assert_takes_what_it_may(&cache);
        assert!(divisor == 4 || taken_bytes(&cache) <= cache.capacity_bytes() * 9 / 8);
        let blocks = cache.statistics().by_kind[BlockKind::Data as usize].count;
        assert!(blocks * 100 >= count * left_percent / 2, "{blocks} of {count} blocks come in");
        drop(held);
        cache.shrink_to_budget();
        assert!(taken_bytes(&cache) <= cache.capacity_bytes());
        drop(memtable);
    }
}

#[test]
fn small_caches_waste_little() {
    for mib in [1, 2, 4, 8, 16, 64] {
        for size in [700, 4200, 5500, 8300, 17_000] {
            let budget = MemoryBudget::new(mib << 20);
            let cache = BlockCache::new(Arc::clone(&budget), 0);
            let block = vec![1; size];
            for offset in 0..(3 * budget.limit_bytes() / size) as u64 {
                cache.insert(1, offset, BlockKind::Data, &block);
            }
            let held = cache.home.held_bytes();
            assert!(
                held * 12 <= budget.limit_bytes(),
                "{held} of {mib} MiB held, blocks of {size}"
            );
        }
    }
}

#[test]
fn blocks_of_another_size_take_the_memory_over() {
    let budget = MemoryBudget::new(32 << 20);
    let cache = BlockCache::new(Arc::clone(&budget), 0);
    read_data(&cache, 1, 0..10_000);
    for (file_id, size) in [(2, 1500), (3, 20_000), (4, 700), (5, 9000)] {
        for offset in 0..100_000_000 / size as u64 {
            let bytes = cache.insert(file_id, offset, BlockKind::Data, &vec![file_id as u8; size]);
            assert!(bytes.iter().all(|byte| *byte == file_id as u8));
        }
        let held = cache.home.held_bytes();
        let stock = budget.limit_bytes() / frame_pool::STOCK_DIVISOR;
        assert!(held <= stock + (256 << 10), "{held} held after blocks of {size}");
        assert_within_budget(&budget, 0);
        let blocks = cache.statistics().by_kind[BlockKind::Data as usize];
        let raw_bytes = blocks.count as usize * size;
        assert!(
            raw_bytes * 10 >= budget.limit_bytes() * 6,
            "{raw_bytes} bytes of blocks of {size}"
        );
    }
}

#[test]
fn evicted_bytes_stay_valid_and_count_as_pinned() {
    let (budget, cache) = cache_of(20);
    let held = cache.insert(1, 0, BlockKind::Data, &block(1, 0));
    let part = held.slice(100..200);
    assert_eq!(budget.used_bytes(MemoryUse::Pinned), 0);
    read_data(&cache, 1, 1..200);
    assert!(cache.get(1, 0).is_none());
    assert_eq!(budget.used_bytes(MemoryUse::Pinned), CHARGED_BYTES);
    assert_eq!(cache.statistics().pinned_bytes, CHARGED_BYTES as u64);
    assert_eq!(cache.statistics().capacity_bytes, 19 * CHARGED_BYTES as u64);
    assert_within_budget(&budget, 0);
    drop(held);
    assert_eq!(*part, block(1, 0)[100..200]);
    assert_eq!(budget.used_bytes(MemoryUse::Pinned), CHARGED_BYTES, "a part holds the whole");
    drop(part);
    assert_eq!(budget.used_bytes(MemoryUse::Pinned), 0);
}

#[test]
fn bytes_outlive_the_cache() {
    let (budget, cache) = cache_of(20);
    let held = cache.insert(1, 0, BlockKind::Filter, &block(1, 0));
    cache.insert(1, 1, BlockKind::Data, &block(1, 1));
    drop(cache);
    assert_eq!(budget.used_bytes(MemoryUse::Cache), 0);
    assert_eq!(budget.used_bytes(MemoryUse::Pinned), CHARGED_BYTES);
    assert_eq!(*held, *block(1, 0));
    drop(held);
    assert_eq!(budget.used_bytes(MemoryUse::Pinned), 0);
}

#[test]
fn a_cache_of_nothing_pins_everything() {
    let budget = MemoryBudget::new(0);
    let cache = BlockCache::new(Arc::clone(&budget), 0);
    let held = cache.insert(1, 0, BlockKind::Data, &block(1, 0));
    let scanned = cache.insert_scan(1, 1, BlockKind::Data, &block(1, 1));
    assert!(cache.get(1, 0).is_none());
    assert_eq!(budget.used_bytes(MemoryUse::Pinned), 2 * CHARGED_BYTES);
    assert_eq!((cache.statistics().too_large, cache.statistics().used_bytes), (2, 0));
    drop((held, scanned));
    assert_eq!(budget.used_bytes(MemoryUse::Pinned), 0);
    cache.shrink_to_budget();
    cache.erase_file(1);
}

#[test]
fn a_block_larger_than_the_cache_displaces_nothing() {
    let (budget, cache) = cache_of(10);
    read_data(&cache, 1, 0..8);
    let large = cache.insert(2, 0, BlockKind::Data, &vec![0; 20 * CHARGED_BYTES]);
    assert_eq!(
        budget.used_bytes(MemoryUse::Pinned),
        20 * CHARGED_BYTES + frame::FRAME_OVERHEAD_BYTES
    );
    assert_eq!(cache.statistics().used_bytes, 8 * CHARGED_BYTES as u64);
    drop(large);
    assert!((0..8).all(|offset| cache.get(1, offset).is_some()));
}

#[test]
fn the_floor_holds_when_others_use_the_whole_budget() {
    let budget = MemoryBudget::new(100 * CHARGED_BYTES);
    let cache = BlockCache::new(Arc::clone(&budget), 5 * CHARGED_BYTES);
    read_data(&cache, 1, 0..200);
    assert_holds(&budget, 100 * CHARGED_BYTES);
    let memtable = budget.charge(MemoryUse::Memtable, 40 * CHARGED_BYTES);
    cache.shrink_to_budget();
    assert_holds(&budget, 60 * CHARGED_BYTES);
    let more = budget.charge(MemoryUse::Memtable, 200 * CHARGED_BYTES);
    cache.shrink_to_budget();
    assert_eq!(budget.used_bytes(MemoryUse::Cache), 5 * CHARGED_BYTES);
    drop((memtable, more));
    read_data(&cache, 2, 0..200);
    assert_holds(&budget, 100 * CHARGED_BYTES);
}

/// Reads a hot set over and over; returns how often it was found in the last of `rounds`.
fn warm_up(cache: &BlockCache, hot: u64, rounds: usize) -> usize {
    let mut found = 0;
    for _ in 0..rounds {
        found = (0..hot).filter(|offset| read(cache, 1, *offset, BlockKind::Data)).count();
    }
    found
}

#[test]
fn one_pass_over_cold_blocks_leaves_the_hot_ones() {
    for blocks in [200, 8000] {
        let (_, cache) = cache_of(blocks);
        let hot = blocks as u64 * 7 / 10;
        assert_eq!(warm_up(&cache, hot, 3), hot as usize);
        read_data(&cache, 2, 0..20 * hot);
        let found = warm_up(&cache, hot, 1);
        assert!(found * 100 >= hot as usize * 95, "{found} of {hot} blocks left");
    }
}

#[test]
fn a_scan_displaces_itself() {
    let (_, cache) = cache_of(8000);
    // Blocks that were never found again have no protection but that the others came by a scan.
    read_data(&cache, 1, 0..8000);
    (0..30_000)
        .for_each(|offset| drop(cache.insert_scan(2, offset, BlockKind::Data, &block(2, 0))));
    let left = (0..8000).filter(|offset| cache.get(1, *offset).is_some()).count();
    let stock = 8000 / frame_pool::STOCK_DIVISOR;
    assert!(left >= 8000 - stock - 2 * SHARD_COUNT_MAX, "{left} of 8000 blocks left");
    // One that is found while it is there is a block like others.
    let (_, cache) = cache_of(20);
    drop(cache.insert_scan(2, 0, BlockKind::Data, &block(2, 0)));
    assert!(cache.get(2, 0).is_some());
    (1..100).for_each(|offset| drop(cache.insert_scan(2, offset, BlockKind::Data, &block(2, 0))));
    assert!(cache.get(2, 0).is_some());
}

#[test]
fn a_block_wanted_again_soon_comes_to_stay() {
    let (_, cache) = cache_of(100);
    read_data(&cache, 1, 0..130);
    assert!(!read(&cache, 1, 20, BlockKind::Data), "it has been evicted");
    // Its ghost let it in at the better end: colder blocks go first, though it is not used again.
    read_data(&cache, 1, 1000..1300);
    assert!(cache.get(1, 20).is_some());
    assert!(cache.get(1, 1000).is_none());
}

/// Reads as a table does for one entry: what the cache does not want goes past it. Whether it was
/// found.
fn read_if_wanted(cache: &BlockCache, file_id: u64, offset: u64) -> bool {
    match cache.get(file_id, offset) {
        Some(_) => true,
        None if !cache.wants(file_id, offset, BLOCK_BYTES) => false,
        None => {
            drop(cache.insert(file_id, offset, BlockKind::Data, &block(file_id, offset)));
            false
        }
    }
}

/// How many of these blocks were found.
fn found_of(cache: &BlockCache, file_id: u64, offsets: impl Iterator<Item = u64>) -> usize {
    offsets.filter(|offset| read_if_wanted(cache, file_id, *offset)).count()
}

/// `count` numbers below `limit`, the same in every run.
fn random(count: usize, limit: u64) -> impl Iterator<Item = u64> {
    let mut state = limit;
    std::iter::repeat_with(move || split_mix(&mut state) % limit).take(count)
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed ^ (mixed >> 31)
}

/// Looks a block of `raw_bytes` up, and takes it in as a table does.
fn read_sized(cache: &BlockCache, offset: u64, kind: BlockKind, raw_bytes: usize) -> bool {
    let was_found = cache.get(1, offset).is_some();
    if !was_found && (kind != BlockKind::Data || cache.wants(1, offset, raw_bytes)) {
        drop(cache.insert(1, offset, kind, &vec![1; raw_bytes]));
    }
    was_found
}

#[test]
fn shards_hold_the_same_whatever_sizes_blocks_have() {
    let cache = BlockCache::new(MemoryBudget::new(64 << 20), 0);
    let (data_blocks, partitions) = (100_000, 400);
    let mut found = 0;
    for (turn, block) in random(100_000, data_blocks).enumerate() {
        let partition = data_blocks + block % partitions;
        let was_found = read_sized(&cache, partition, BlockKind::Index, 16_500);
        found += usize::from(was_found && turn >= 50_000);
        read_sized(&cache, block, BlockKind::Data, 8_300);
    }
    let held_bytes = || cache.parts.iter().map(|part| lock(&part.shard).held_bytes());
    let (least, most) = (held_bytes().min().unwrap_or(0), held_bytes().max().unwrap_or(0));
    assert!(least > most / 4 * 3, "{least} to {most} bytes");
    assert!(found > 49_000, "{found} of 50,000 partitions");
}

#[test]
fn blocks_that_nobody_uses_again_are_not_wanted_until_somebody_does() {
    let (budget, cache) = cache_of(1000);
    // Far more blocks than it holds, any of them at random.
    found_of(&cache, 1, random(20_000, 100_000));
    let before = cache.statistics();
    found_of(&cache, 1, random(10_000, 99_999));
    let after = cache.statistics();
    let unwanted = after.unwanted - before.unwanted;
    assert!(unwanted > 7_500, "{unwanted} of 10,000 went past the cache");
    assert_eq!(after.misses - before.misses, unwanted + after.inserted - before.inserted);
    // One that is wanted again soon gets in all the same.
    assert!(!read_if_wanted(&cache, 2, 7));
    read_if_wanted(&cache, 2, 7);
    assert!(read_if_wanted(&cache, 2, 7));
    // Reads that keep to half of what it holds are found before long.
    found_of(&cache, 3, random(4_000, 500));
    let found = found_of(&cache, 3, random(1_000, 500));
    assert!(found > 950, "{found} of 1,000");
    assert_within_budget(&budget, 0);
}

/// Looks a scan's block up, and inserts it if it is missed and wanted; returns whether it was found.
fn scan_if_wanted(cache: &BlockCache, file_id: u64, offset: u64) -> bool {
    let found = cache.get(file_id, offset).is_some();
    if !found && cache.wants_scan(file_id, offset, BLOCK_BYTES) {
        drop(cache.insert_scan(file_id, offset, BlockKind::Data, &block(file_id, offset)));
    }
    found
}

#[test]
fn scans_pass_by_until_somebody_scans_the_same_again() {
    let (budget, cache) = cache_of(1000);
    // There is room at first: the second pass finds all.
    let scanned = |file_id, offsets: std::ops::Range<u64>| {
        offsets.filter(|offset| scan_if_wanted(&cache, file_id, *offset)).count()
    };
    assert_eq!((scanned(1, 0..500), scanned(1, 0..500)), (0, 500));
    // Scans over far more than it holds, none of it twice.
    scanned(2, 0..50_000);
    let before = cache.statistics();
    assert_eq!(scanned(2, 50_000..60_000), 0);
    let after = cache.statistics();
    let unwanted = after.unwanted - before.unwanted;
    assert!(unwanted > 8_000, "{unwanted} of 10,000 went past the cache");
    assert_eq!(after.misses - before.misses, unwanted + after.inserted - before.inserted);
    assert!(scanned(1, 0..500) > 450, "what was found before is still there");
    // A short scan that comes again and again is found before long.
    for _ in 0..50 {
        scanned(3, 0..6);
    }
    assert_eq!(scanned(3, 0..6), 6);
    assert_within_budget(&budget, 0);
}

#[test]
fn whatever_there_is_room_for_is_wanted() {
    let (budget, cache) = cache_of(1000);
    let beside = budget.charge(MemoryUse::Tables, 800 * CHARGED_BYTES);
    found_of(&cache, 1, random(20_000, 100_000));
    assert!(cache.statistics().unwanted > 10_000);
    drop(beside);
    let before = cache.statistics();
    found_of(&cache, 2, 0..500);
    assert_eq!(cache.statistics().inserted - before.inserted, 500);
}

#[test]
fn index_and_filter_blocks_outlast_data_blocks() {
    let (_, cache) = cache_of(400);
    for kind in [BlockKind::Index, BlockKind::Filter] {
        (0..50).for_each(|offset| assert!(!read(&cache, kind as u64, offset, kind)));
    }
    // Data blocks that are used again, so that they press into the same queue.
    for start in (0..1400).step_by(100) {
        for _ in 0..2 {
            read_data(&cache, 9, start..start + 100);
        }
    }
    let statistics = cache.statistics();
    assert!(statistics.by_kind[BlockKind::Data as usize].evicted > 1000);
    for kind in [BlockKind::Index, BlockKind::Filter] {
        let left = statistics.by_kind[kind as usize].count;
        assert!(left >= 45, "{left} of 50 {} blocks left", kind.name());
    }
    // They are not there for ever: enough used data in a row has them out.
    for start in (10_000..60_000).step_by(100) {
        for _ in 0..3 {
            read_data(&cache, 9, start..start + 100);
        }
    }
    assert!(cache.statistics().by_kind[BlockKind::Index as usize].count < 5);
}

#[test]
fn a_skewed_load_is_served_as_well_as_can_be() {
    // Half of the reads go to a tenth of the blocks, and so on within it: the best 1000 of 10,000
    // blocks take a known share of the reads, which the cache must come close to.
    let (_, cache) = cache_of(1000);
    let mut random = 99_u64;
    let (mut hits, mut best_hits, reads) = (0, 0, 60_000);
    for step in 0..2 * reads {
        let mut range = 10_000;
        loop {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if random >> 63 == 0 || range < 10 {
                break;
            }
            range /= 10;
        }
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let offset = (random >> 33) % range;
        let found = read(&cache, 1, offset, BlockKind::Data);
        if step >= reads {
            hits += usize::from(found);
            best_hits += usize::from(offset < 1000);
        }
    }
    assert!(hits * 100 > best_hits * 85, "{hits} of {best_hits}");
}

#[test]
fn an_erased_file_is_forgotten() {
    let (budget, cache) = cache_of(20_000);
    for offset in 0..6000 {
        read(&cache, 1, offset, BlockKind::Data);
        read(&cache, 2, offset, BlockKind::ALL[offset as usize % 3]);
    }
    let held = cache.get(1, 17).unwrap();
    cache.erase_file(1);
    assert!((0..6000).all(|offset| cache.get(1, offset).is_none()));
    assert!((0..6000).all(|offset| cache.get(2, offset).is_some()));
    assert_eq!(budget.used_bytes(MemoryUse::Cache), 6000 * CHARGED_BYTES);
    assert_eq!(budget.used_bytes(MemoryUse::Pinned), CHARGED_BYTES);
    assert_eq!(*held, *block(1, 17));
    assert_eq!(cache.statistics().evicted, 0);
    // The places are used again.
    read_data(&cache, 3, 0..6000);
    assert!((0..6000).all(|offset| cache.get(3, offset).is_some()));
}

#[test]
fn threads_share_the_cache() {
    let budget = MemoryBudget::new(9 << 20);
    let cache = BlockCache::new(Arc::clone(&budget), 0);
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (cache, budget) = (&cache, &budget);
            scope.spawn(move || {
                let mut random = thread + 1;
                let mut held = Vec::new();
                for step in 0..15_000 {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let (file_id, offset) = (random >> 60, (random >> 40) % 400);
                    let kind = BlockKind::ALL[offset as usize % 3];
                    let bytes = cache.get(file_id, offset).unwrap_or_else(|| {
                        cache.insert(file_id, offset, kind, &block(file_id, offset))
                    });
                    assert!(*bytes == *block(file_id, offset));
                    match step % 500 {
                        0 => held.clear(),
                        1..=99 => held.push(bytes),
                        100 => cache.erase_file(file_id),
                        101 => drop(budget.charge(MemoryUse::Memtable, 1 << 20)),
                        102 => cache.shrink_to_budget(),
                        _ => {}
                    }
                }
            });
        }
    });
    cache.shrink_to_budget();
    assert_within_budget(&budget, 0);
    let statistics = cache.statistics();
    assert_eq!(statistics.used_bytes, budget.used_bytes(MemoryUse::Cache) as u64);
    assert_eq!(statistics.pinned_bytes, 0);
    assert_eq!(statistics.hits + statistics.misses, 4 * 15_000);
    drop(cache);
    assert_eq!(budget.used_bytes(MemoryUse::Cache), 0);
}

#[test]
fn tables_keep_at_most_a_quarter_of_the_budget() {
    let (budget, cache) = cache_of(16);
    let file_id = cache.new_file_id();
    read_data(&cache, file_id, 0..16);
    let mut kept = Vec::new();
    for number in 0..4 {
        kept.push(cache.keep(&block(file_id, number), KeptShare::Whole).unwrap());
        assert_eq!(budget.used_bytes(MemoryUse::Tables), kept.len() * CHARGED_BYTES);
        assert_within_budget(&budget, 0);
    }
    // The fifth is not kept, and data keep the rest.
    assert!(cache.keep(&block(file_id, 4), KeptShare::Whole).is_none());
    assert_eq!(budget.used_bytes(MemoryUse::Cache), 12 * CHARGED_BYTES);
    // What somebody still reads stays charged when the table is closed.
    let bytes = kept[0].bytes();
    assert!(**kept.last().unwrap() == *block(file_id, 3));
    drop(kept);
    assert_eq!(budget.used_bytes(MemoryUse::Tables), CHARGED_BYTES);
    assert!(*bytes == *block(file_id, 0));
    drop(bytes);
    assert_eq!(budget.used_bytes(MemoryUse::Tables), 0);
    // What only some reads need leaves the second half to the others.
    let halves = [0, 1].map(|number| cache.keep(&block(file_id, number), KeptShare::Half));
    assert!(halves.iter().all(|kept| kept.is_some()));
    assert!(cache.keep(&block(file_id, 2), KeptShare::Half).is_none());
    assert!(cache.keep(&block(file_id, 2), KeptShare::Whole).is_some());
}
