//! Nanoseconds of thread-CPU time per lookup in the block cache and per key of a filter.
//!
//! `cargo bench --bench cache`

use lithify::base::MemoryBudget;
use lithify::cache::{BlockCache, BlockKind};
use lithify::fs::{Clock, SystemEnvironment};
use lithify::table::{FilterBuilder, FilterReader, hash_key};
use std::hint::black_box;

const LOOKUPS: u64 = 1_000_000;

fn main() -> lithify::Result<()> {
    for blocks in [100_u64, 4000, 60_000] {
        measure_cache(blocks);
    }
    for keys in [10_000_u64, 100_000, 1_000_000] {
        measure_filter(keys)?;
    }
    Ok(())
}

fn measure_cache(blocks: u64) {
    let budget = MemoryBudget::new(blocks as usize * 2048);
    let cache = BlockCache::new(budget, 0);
    for offset in 0..blocks {
        cache.insert(1, offset << 14, BlockKind::Data, &[0; 1024]);
    }
    let hit_ns = best_of_three(LOOKUPS, |step| {
        let offset = scattered(step) % blocks;
        black_box(cache.get(1, offset << 14));
    });
    let miss_ns = best_of_three(LOOKUPS, |step| {
        black_box(cache.get(2, scattered(step)));
    });
    let mut fresh = blocks;
    let insert_ns = best_of_three(LOOKUPS / 4, |_| {
        fresh += 1;
        black_box(cache.insert(1, fresh << 14, BlockKind::Data, &[0; 1024]));
    });
    println!(
        "cache of {blocks:6} blocks: hit {hit_ns:5.1} ns, miss {miss_ns:5.1} ns, \
         insert {insert_ns:5.1} ns (with an eviction)"
    );
}

fn measure_filter(keys: u64) -> lithify::Result<()> {
    let hashes: Vec<u64> = (0..keys).map(|key| hash_key(&key.to_be_bytes())).collect();
    let mut stored = Vec::new();
    let mut builder = FilterBuilder::new(10);
    let mut add_ns = f64::INFINITY;
    let mut finish_ns = f64::INFINITY;
    for _ in 0..3 {
        let start = thread_cpu_ns();
        hashes.iter().for_each(|hash| builder.add_hash(*hash));
        let added = thread_cpu_ns();
        stored.clear();
        builder.finish(&mut stored);
        add_ns = (added - start).min(add_ns);
        finish_ns = (thread_cpu_ns() - added).min(finish_ns);
    }
    let filter = FilterReader::parse(&stored)?;
    let ask_ns = best_of_three(LOOKUPS, |step| {
        black_box(filter.may_contain(scattered(step)));
    });
    println!(
        "filter of {keys:7} keys: add {:4.1} ns, finish {:4.1} ns per key, question {ask_ns:4.1} ns",
        add_ns / keys as f64,
        finish_ns / keys as f64,
    );
    Ok(())
}

/// Nanoseconds of thread-CPU time per call, the fastest of three runs.
fn best_of_three(count: u64, mut work: impl FnMut(u64)) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        let start = thread_cpu_ns();
        (0..count).for_each(&mut work);
        best = best.min((thread_cpu_ns() - start) / count as f64);
    }
    best
}

fn thread_cpu_ns() -> f64 {
    SystemEnvironment.thread_cpu_ns() as f64
}

/// Numbers without order from numbers in order.
fn scattered(step: u64) -> u64 {
    let mixed = step.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}
