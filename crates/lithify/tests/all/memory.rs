//! What the engine holds in memory against its budget, while it is under load.

use crate::support::{PATH, Parts, Random};
use lithify::base::MemoryUse;
use lithify::stats::StatisticsSnapshot;
use lithify::{CfOptions, ColumnFamily, Db, Options};

const BUDGET_BYTES: usize = 16 << 20;

fn options() -> Options {
    Options {
        memory_budget_bytes: BUDGET_BYTES,
        memtable_bytes: 512 << 10,
        wal_bytes_max: 4 << 20,
        background_threads: 0,
        ..Options::default()
    }
}

fn family_options() -> CfOptions {
    CfOptions {
        table_bytes: 512 << 10,
        base_level_bytes_max: 512 << 10,
        fanout: 4,
        compression: "lz4,lz4,zstd-1".parse().unwrap(),
        ..CfOptions::default()
    }
}

fn used(stats: &StatisticsSnapshot, memory_use: MemoryUse) -> u64 {
    let of_use = stats.memory.iter().find(|figure| figure.memory_use == memory_use);
    of_use.map_or(0, |figure| figure.used_bytes)
}

fn all_used(stats: &StatisticsSnapshot) -> u64 {
    stats.memory.iter().map(|figure| figure.used_bytes).sum()
}

fn key(number: u64) -> Vec<u8> {
    format!("key{number:08}").into_bytes()
}

/// Writes and reads at random; looks at the budget after every few.
fn load(db: &Db, family: &ColumnFamily, random: &mut Random, mut look: impl FnMut(&Db)) {
    for number in 0..150_000u64 {
        family.put(key(random.below(40_000)), random.bytes(200)).unwrap();
        if number % 4 == 0 {
            family.get(key(random.below(40_000))).unwrap();
        }
        if number % 64 == 0 {
            look(db);
        }
        if number % 1000 == 0 {
            let mut cursor = family.cursor(&key(random.below(40_000))[..]..).unwrap();
            for _ in 0..400 {
                cursor.next().unwrap();
            }
            look(db);
        }
    }
}

/// The budget is kept at every moment but for what a single step or insertion takes before the
/// cache makes room for it: the slack of a sixteenth.
#[test]
fn a_load_keeps_within_the_budget() {
    let parts = Parts::new(1);
    let db = Db::open_in(PATH, options(), parts.world()).unwrap();
    let family = db.column_family("rows", family_options()).unwrap();
    let mut peaks = [0u64; MemoryUse::ALL.len()];
    load(&db, &family, &mut Random(1), |db| {
        let stats = db.stats();
        assert_eq!(stats.memory_limit_bytes, BUDGET_BYTES as u64);
        for (peak, memory_use) in peaks.iter_mut().zip(MemoryUse::ALL) {
            *peak = (*peak).max(used(&stats, memory_use));
        }
        let all = all_used(&stats);
        let limit = (BUDGET_BYTES + BUDGET_BYTES / 16) as u64;
        assert!(all <= limit, "{all} bytes in use, {limit} allowed: {:?}", stats.memory);
    });
    // Every use has had a part, or the test would prove little; nothing was pinned.
    for memory_use in MemoryUse::ALL {
        let peak = peaks[memory_use as usize];
        assert!(memory_use == MemoryUse::Pinned || peak > 0, "no bytes for {memory_use:?}");
    }
    assert!(peaks[MemoryUse::Memtable as usize] <= 6 * (512 << 10) + (64 << 10), "{peaks:?}");
    db.wait_for_compaction().unwrap();
    let stats = db.stats();
    assert_eq!(used(&stats, MemoryUse::Compaction), 0, "an idle database compacts nothing");
}

/// 4 MB of rows of 200 bytes in tables, with a budget of half of that.
fn rows_beyond_the_budget(seed: u64) -> (Db, ColumnFamily) {
    let parts = Parts::new(seed);
    let options = Options { memory_budget_bytes: 2 << 20, memtable_bytes: 64 << 10, ..options() };
    let db = Db::open_in(PATH, options, parts.world()).unwrap();
    let family = db.column_family("rows", family_options()).unwrap();
    let mut random = Random(seed);
    for number in 0..20_000 {
        family.put(key(number), random.bytes(200)).unwrap();
    }
    family.compact_range(..).unwrap();
    (db, family)
}

#[test]
fn pinned_bytes_show_and_go_back_to_nothing() {
    let (db, family) = rows_beyond_the_budget(2);
    assert_eq!(used(&db.stats(), MemoryUse::Pinned), 0);
    // One slice per block or so, over more blocks than the cache can hold.
    let slices: Vec<_> =
        (0..20_000).step_by(50).map(|n| family.get(key(n)).unwrap().unwrap()).collect();
    let stats = db.stats();
    let pinned = used(&stats, MemoryUse::Pinned);
    assert!(pinned > 1 << 20, "{pinned} bytes: {:?}", stats.memory);
    for slice in &slices {
        assert_eq!(slice.len(), 200);
    }
    drop(slices);
    assert_eq!(used(&db.stats(), MemoryUse::Pinned), 0);
    // A cursor pins what it stands on and no more.
    let mut cursor = family.cursor(..).unwrap();
    for _ in 0..10_000 {
        assert!(cursor.next().unwrap());
    }
    for number in (0..20_000).step_by(10) {
        family.get(key(number)).unwrap();
    }
    let pinned = used(&db.stats(), MemoryUse::Pinned);
    assert!(pinned <= 4 * (20 << 10), "{pinned} bytes for one cursor");
    drop(cursor);
    assert_eq!(used(&db.stats(), MemoryUse::Pinned), 0);
}

#[test]
fn values_that_are_held_do_not_hold_every_block() {
    let (db, family) = rows_beyond_the_budget(3);
    let bound = 2 * (2 << 20);
    let pinned = || used(&db.stats(), MemoryUse::Pinned);
    // In an order in which neighbours are far from each other: a block for each of them would be 100 MiB.
    let order: Vec<_> = (0..20_000).map(|number| number * 7_919 % 20_000).collect();
    let one_by_one: Vec<_> =
        order.iter().map(|number| family.get(key(*number)).unwrap().unwrap()).collect();
    assert!(pinned() <= bound, "{}", pinned());
    let mut together = Vec::new();
    for numbers in order.chunks(100) {
        let keys: Vec<_> = numbers.iter().map(|number| key(*number)).collect();
        together.extend(family.multi_get(&keys).unwrap().into_iter().map(Option::unwrap));
        assert!(pinned() <= bound, "{}", pinned());
    }
    assert!(one_by_one == together && together.iter().all(|value| value.len() == 200));
    drop((one_by_one, together));
    assert_eq!(pinned(), 0);
}

#[test]
fn small_memtables_are_small() {
    let parts = Parts::new(3);
    let memtable_bytes = 64 << 10;
    let options = Options { memory_budget_bytes: 2 << 20, memtable_bytes, ..options() };
    let db = Db::open_in(PATH, options, parts.world()).unwrap();
    let families: Vec<_> = (0..4)
        .map(|number| db.column_family(&format!("f{number}"), family_options()).unwrap())
        .collect();
    let empty = used(&db.stats(), MemoryUse::Memtable);
    assert!(empty <= 4 * (16 << 10), "{empty} bytes for four empty memtables");
    let mut random = Random(3);
    let mut written = 0;
    let mut flushed_at = Vec::new();
    for number in 0..2000u64 {
        // Not in order: keys in order would skip level 0.
        families[0].put(key(number * 7919 % 2000), random.bytes(100)).unwrap();
        written += 111;
        let used = used(&db.stats(), MemoryUse::Memtable);
        // The active one, one that waits for its flush, the empty ones.
        assert!(used <= 2 * (memtable_bytes as u64 + 16_384) + empty, "{used} bytes");
        if db.wait_for_compaction().is_ok() && !parts.names_ending(".sst").is_empty() {
            let tables = db.stats().figures.job(0, lithify::stats::JobFigure::Jobs);
            if tables as usize > flushed_at.len() {
                flushed_at.push(written);
                written = 0;
            }
        }
    }
    assert!(flushed_at.len() >= 3, "{flushed_at:?}");
    // In random order half of the memory of a memtable, nearly, is not of keys and values.
    for bytes in flushed_at {
        assert!(bytes >= memtable_bytes * 2 / 5, "a memtable was flushed after {bytes} bytes");
    }
}
