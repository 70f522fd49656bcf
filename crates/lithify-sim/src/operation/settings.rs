//! Random settings, of databases and of column families: small, so that little data makes many
//! tables and levels, and contradicting nothing.

use crate::random::Random;
use lithify::{
    CfOptions, CompressionPolicy, Durability, EventListener, MergeOperator, Objective, Options,
};

const KIB: usize = 1 << 10;

/// The settings of a database with so many background threads.
pub fn database_options(random: &mut Random, background_threads: usize) -> Options {
    // At 1 MiB the memtables take all of it, and next to nothing is left for the cache.
    let memory_budget_bytes = KIB << random.between(10, 13);
    let memtable_bytes = ((64 * KIB) << random.below(4)).min(memory_budget_bytes / 2);
    Options {
        create_if_missing: true,
        memory_budget_bytes,
        memtable_bytes,
        wal_bytes_max: (memtable_bytes as u64) << random.below(5),
        manifest_bytes_max: 1024 << random.below(13),
        background_threads,
        durability: match random.below(4) {
            0 => Durability::Sync,
            1 => Durability::Buffered,
            2 => Durability::Interval { milliseconds: random.between(1, 10) as u32 },
            _ => Durability::None,
        },
        // With threads the clock is a real one.
        row_lock_timeout_ms: if background_threads == 0 { random.below(20) } else { 0 },
        deadlock_detection: random.one_in(2),
        // The world in memory has none by itself.
        direct_reads: false,
        background_nice: 0,
        space_slack_percent: *random.pick(&[5, 30, 100, 10_000]),
        event_listener: EventListener::none(),
    }
}

/// The settings of a column family.
pub fn family_options(random: &mut Random) -> CfOptions {
    let table_bytes = 64 << 10 << random.below(3);
    let filter_bits_per_key = *random.pick(&[0, 1, 5, 10, 10, 20]);
    let prefix_length_bytes = match filter_bits_per_key {
        0 => 0,
        _ => *random.pick(&[0, 0, 1, 4, 6, 12]),
    };
    let compression = compression_policy(random);
    // Of a ladder the engine fills in what is left open.
    let is_open = matches!(compression, CompressionPolicy::Decided(_)) && random.one_in(2);
    CfOptions {
        compression,
        block_size_bytes: if is_open { 0 } else { 512 << random.below(7) },
        table_bytes,
        base_level_bytes_max: 64 << 10 << random.below(3),
        fanout: *random.pick(&[2, 2, 3, 4, 8]),
        filter_bits_per_key,
        prefix_length_bytes,
        // By slot: see `operators`.
        merge_operator: MergeOperator::none(),
        time_to_live_s: 0,
    }
}

/// A codec for each place, each with any effort, or one for all; or one decided by measured costs.
fn compression_policy(random: &mut Random) -> CompressionPolicy {
    if random.below(4) == 0 {
        return random.pick(&Objective::NAMED).0.into();
    }
    let places = *random.pick(&[1, 3, 4]);
    let codecs: Vec<String> = (0..places).map(|_| codec(random)).collect();
    codecs.join(",").parse().unwrap_or_default()
}

/// A codec with an effort; the slow ones are rare.
fn codec(random: &mut Random) -> String {
    let is_slow = random.one_in(40);
    match random.below(12) {
        0 | 1 => "none".to_string(),
        2 | 3 => "snappy".to_string(),
        4 | 5 => "lz4".to_string(),
        6 => format!("lz4-{}", if is_slow { 12 } else { random.between(2, 6) }),
        7 => format!("lz4--{}", random.between(1, 64)),
        8 => format!("zlib-{}", if is_slow { 9 } else { random.between(1, 6) }),
        9 => format!("libdeflate-{}", if is_slow { 12 } else { random.between(1, 7) }),
        10 => format!("zstd--{}", random.between(1, 20)),
        _ => format!("zstd-{}", if is_slow { random.between(7, 19) } else { random.between(1, 4) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn settings_are_valid_and_every_codec_comes_up() {
        let random = &mut Random::new(1);
        let mut codecs = BTreeSet::new();
        for _ in 0..2000 {
            database_options(random, 0).validate().unwrap();
            let options = family_options(random);
            options.validate().unwrap();
            codecs.extend(options.compression.to_string().split(',').map(str::to_owned));
            codec(random).parse::<lithify::Compression>().unwrap();
        }
        for start in
            ["none", "snappy", "lz4--", "lz4-", "zlib-", "libdeflate-", "zstd--", "zstd-", "auto"]
        {
            assert!(codecs.iter().any(|codec| codec.starts_with(start)), "{start} never comes up");
        }
    }
}
