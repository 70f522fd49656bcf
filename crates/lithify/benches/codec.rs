//! What each codec costs and gains on 16 KiB blocks of rows like LinkBench's: megabytes of raw
//! data per second of thread-CPU time, best of three passes over the same blocks, with reused
//! contexts. Also what a checkout from the context pool costs.
//!
//! `cargo bench --bench codec [name ...]`: with names, only those compressions.

use lithify::base::MemoryBudget;
use lithify::codec::{
    Compression, Compressor, ContextPool, Decompressor, library_name_and_version,
};
use lithify::fs::{Clock, SystemEnvironment};
use std::hint::black_box;

const BLOCK_BYTES: usize = 16 << 10;
const BLOCK_COUNT: usize = 128;

const COMPRESSIONS: [&str; 17] = [
    "none",
    "snappy",
    "lz4--8",
    "lz4",
    "lz4-2",
    "lz4-9",
    "zlib-1",
    "zlib-6",
    "zlib-9",
    "libdeflate-1",
    "libdeflate-6",
    "zstd--5",
    "zstd-1",
    "zstd-3",
    "zstd-6",
    "zstd-9",
    "zstd-19",
];

fn main() -> lithify::Result<()> {
    let names: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let blocks = link_blocks();
    println!("{BLOCK_COUNT} blocks of {BLOCK_BYTES} bytes, MB/s of raw data per thread-CPU second");
    println!(
        "{:14} {:18} {:>9} {:>9} {:>9} {:>7} {:>9}",
        "compression", "library", "in", "out", "out fast", "stored", "context"
    );
    for name in COMPRESSIONS {
        if names.is_empty() || names.iter().any(|wanted| wanted == name) {
            measure(name, &blocks)?;
        }
    }
    measure_checkout()
}

fn measure(name: &str, blocks: &[Vec<u8>]) -> lithify::Result<()> {
    let compression: Compression = name.parse()?;
    let mut compressor = Compressor::new(compression)?;
    let mut stored: Vec<Vec<u8>> = vec![Vec::with_capacity(2 * BLOCK_BYTES); blocks.len()];
    let raw_bytes = (blocks.len() * BLOCK_BYTES) as f64;
    let in_seconds = best_of_three(|| {
        for (raw, target) in blocks.iter().zip(&mut stored) {
            target.clear();
            compressor.compress(black_box(raw), target)?;
        }
        Ok(())
    })?;
    let mut out_seconds = [0.0; 2];
    for (fast_zlib, seconds) in [false, true].into_iter().zip(&mut out_seconds) {
        let mut decompressor = Decompressor::with_fast_zlib(fast_zlib);
        let mut raw = Vec::with_capacity(BLOCK_BYTES);
        *seconds = best_of_three(|| {
            for stored in &stored {
                raw.clear();
                decompressor.decompress_into(
                    compression.codec,
                    black_box(stored),
                    BLOCK_BYTES,
                    &mut raw,
                )?;
                black_box(&raw);
            }
            Ok(())
        })?;
    }
    let stored_bytes: usize = stored.iter().map(Vec::len).sum();
    println!(
        "{name:14} {:18} {:9.1} {:9.1} {:9.1} {:6.1}% {:7} KB",
        library_name_and_version(compression),
        raw_bytes / in_seconds / 1e6,
        raw_bytes / out_seconds[0] / 1e6,
        raw_bytes / out_seconds[1] / 1e6,
        100.0 * stored_bytes as f64 / raw_bytes,
        compressor.memory_bytes() / 1000,
    );
    Ok(())
}

fn measure_checkout() -> lithify::Result<()> {
    const COUNT: usize = 200_000;
    let pool = ContextPool::new(MemoryBudget::new(64 << 20));
    let zstd: Compression = "zstd-1".parse()?;
    drop((pool.compressor(Compression::LZ4)?, pool.compressor(zstd)?, pool.decompressor()));
    let seconds = best_of_three(|| {
        for _ in 0..COUNT {
            black_box(pool.decompressor());
        }
        Ok(())
    })?;
    println!("decompressor from the pool and back: {:.0} ns", seconds * 1e9 / COUNT as f64);
    let seconds = best_of_three(|| {
        for _ in 0..COUNT {
            black_box(pool.compressor(zstd)?);
        }
        Ok(())
    })?;
    println!("zstd compressor from the pool and back: {:.0} ns", seconds * 1e9 / COUNT as f64);
    Ok(())
}

/// Seconds of thread-CPU time of the fastest of three runs.
fn best_of_three(mut work: impl FnMut() -> lithify::Result<()>) -> lithify::Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        let start = thread_cpu_seconds();
        work()?;
        best = best.min(thread_cpu_seconds() - start);
    }
    Ok(best)
}

fn thread_cpu_seconds() -> f64 {
    SystemEnvironment.thread_cpu_ns() as f64 / 1e9
}

/// Rows of a 24-byte key (id, type, id) and a 176-byte value of which half is random.
fn link_blocks() -> Vec<Vec<u8>> {
    let mut random = 88_172_645_463_325_252_u64;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let mut rows = Vec::new();
    for row in 0_u64.. {
        if rows.len() >= BLOCK_BYTES * BLOCK_COUNT {
            break;
        }
        rows.extend_from_slice(&(row / 9).to_be_bytes());
        rows.extend_from_slice(&123_456_789_u64.to_be_bytes());
        rows.extend_from_slice(&(next() % (1 << 24)).to_be_bytes());
        rows.extend((0..88).map(|_| b'a' + (next() >> 33) as u8 % 64));
        rows.extend([b'x'; 88]);
    }
    rows.chunks_exact(BLOCK_BYTES).take(BLOCK_COUNT).map(<[u8]>::to_vec).collect()
}
