//! Sizes and threads of RocksDB: as they are matched with other engines, or as its experts set them.
//!
//! Owns: the arithmetic from the settings that engines share to the numbers that differ between
//! the two. Pure. `docs/engines.md` tells a reader every option and why.

use lithify_lab::adapter::settings::EngineSettings;

/// Who chose the options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tuning {
    /// The same settings as Lithify has, and RocksDB's defaults for the rest.
    Matched,
    /// RocksDB's tuning guide, within the same memory, durability and codecs.
    Expert,
}

/// Numbers that [`Tuning`] decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// `write_buffer_size`.
    pub write_buffer_bytes: u64,
    /// `max_write_buffer_number`.
    pub write_buffers_max: u64,
    /// `target_file_size_base`.
    pub table_bytes: u64,
    /// `max_bytes_for_level_base`.
    pub base_level_bytes: u64,
    /// `max_background_jobs`.
    pub background_jobs: u64,
    /// `max_subcompactions`.
    pub subcompactions: u64,
}

/// Fewest and most memtables of a family that may be in memory.
const MEMTABLES: std::ops::RangeInclusive<u64> = 2..=8;

/// RocksDB's own default, beyond which the guide goes for large machines only.
const WRITE_BUFFER_BYTES_MAX: u64 = 64 << 20;

/// Write buffers of a family of the expert at least: writers go on while some are flushed. What they
/// take beyond half of the budget is charged to the cache.
const WRITE_BUFFERS_MIN: u64 = 4;

/// The library's own rule (`OptimizeLevelStyleCompaction`) makes a write buffer a quarter of the memory.
const WRITE_BUFFERS_OF_BUDGET: u64 = 4;

/// Runs of level 0 that start a compaction: RocksDB's default.
pub const LEVEL0_TRIGGER: u64 = 4;

/// The guide's share of the base level that is one table.
const TABLES_OF_BASE_LEVEL: u64 = 10;

impl Sizes {
    /// The numbers for a database with these settings.
    pub fn new(tuning: Tuning, settings: &EngineSettings) -> Sizes {
        match tuning {
            Tuning::Matched => Sizes::matched(settings),
            Tuning::Expert => Sizes::expert(settings),
        }
    }

    fn matched(settings: &EngineSettings) -> Sizes {
        Sizes {
            write_buffer_bytes: settings.memtable_bytes,
            write_buffers_max: memtables_max(settings, settings.memtable_bytes),
            table_bytes: settings.table_bytes,
            base_level_bytes: settings.base_level_bytes,
            background_jobs: settings.background_threads.max(1),
            subcompactions: 1,
        }
    }

    fn expert(settings: &EngineSettings) -> Sizes {
        // Per family: the write buffer manager holds the sum of all at half of the budget.
        let share_bytes = settings.memory_budget_bytes / WRITE_BUFFERS_OF_BUDGET;
        let write_buffer_bytes =
            share_bytes.min(WRITE_BUFFER_BYTES_MAX).max(settings.memtable_bytes);
        // A base level of the size of level 0: neither waits for the other.
        let base_level_bytes = (write_buffer_bytes * LEVEL0_TRIGGER).max(settings.base_level_bytes);
        let threads = settings.background_threads.max(1);
        Sizes {
            write_buffer_bytes,
            write_buffers_max: memtables_max(settings, write_buffer_bytes).max(WRITE_BUFFERS_MIN),
            table_bytes: (base_level_bytes / TABLES_OF_BASE_LEVEL).max(settings.table_bytes),
            base_level_bytes,
            background_jobs: jobs_with_compactions(threads),
            subcompactions: threads,
        }
    }
}

/// Memtables of a family that may be in memory: as many as half of the budget holds.
fn memtables_max(settings: &EngineSettings, write_buffer_bytes: u64) -> u64 {
    let fit = settings.memory_budget_bytes / 2 / write_buffer_bytes.max(1);
    fit.clamp(*MEMTABLES.start(), *MEMTABLES.end())
}

/// The fewest background jobs of which so many may be compactions: RocksDB keeps a quarter of them,
/// one at least, for flushes. Lithify's threads do both.
fn jobs_with_compactions(threads: u64) -> u64 {
    let compactions = |jobs: u64| jobs - (jobs / 4).max(1);
    (2..).find(|jobs| compactions(*jobs) >= threads).unwrap_or(threads + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn settings(budget_mib: u64, memtable_mib: u64, threads: u64) -> EngineSettings {
        EngineSettings {
            memory_budget_bytes: budget_mib * MIB,
            memtable_bytes: memtable_mib * MIB,
            table_bytes: 16 * MIB,
            base_level_bytes: 64 * MIB,
            background_threads: threads,
            ..EngineSettings::small()
        }
    }

    #[test]
    fn matched_sizes_are_those_of_the_settings() {
        let sizes = Sizes::new(Tuning::Matched, &settings(256, 16, 2));
        let expected = Sizes {
            write_buffer_bytes: 16 * MIB,
            write_buffers_max: 8,
            table_bytes: 16 * MIB,
            base_level_bytes: 64 * MIB,
            background_jobs: 2,
            subcompactions: 1,
        };
        assert_eq!(sizes, expected);
    }

    #[test]
    fn an_expert_follows_the_guide_within_the_budget() {
        let sizes = Sizes::new(Tuning::Expert, &settings(256, 16, 2));
        let expected = Sizes {
            write_buffer_bytes: 64 * MIB,
            write_buffers_max: 4,
            table_bytes: 256 * MIB / 10,
            base_level_bytes: 256 * MIB,
            background_jobs: 3,
            subcompactions: 2,
        };
        assert_eq!(sizes, expected);
        let sizes = Sizes::new(Tuning::Expert, &settings(128, 16, 1));
        assert_eq!((sizes.write_buffer_bytes, sizes.background_jobs), (32 * MIB, 2));
    }

    #[test]
    fn an_experts_write_buffers_stay_within_bounds() {
        // Never smaller than what others have, at most 64 MiB, and four of them or more. The sum over
        // all families is bounded by the write buffer manager, not here.
        for budget_mib in [24, 64, 192, 256, 1024, 65_536] {
            let settings = settings(budget_mib, 8, 2);
            let sizes = Sizes::new(Tuning::Expert, &settings);
            let quarter = settings.memory_budget_bytes / 4;
            let expected = quarter.clamp(8 * MIB, 64 * MIB);
            assert_eq!(sizes.write_buffer_bytes, expected, "{budget_mib} MiB");
            assert!((4..=8).contains(&sizes.write_buffers_max), "{sizes:?}");
            let fitting = settings.memory_budget_bytes / 2 / sizes.write_buffer_bytes;
            assert!(sizes.write_buffers_max <= fitting.max(4), "{sizes:?}");
        }
        // A memtable that everybody was given counts more than the cap.
        let sizes = Sizes::new(Tuning::Expert, &settings(1024, 128, 2));
        assert_eq!(sizes.write_buffer_bytes, 128 * MIB);
    }

    /// Levels below level 0 that hold something, as RocksDB counts them with sizes that follow the
    /// bottom one.
    fn levels(sizes: &Sizes, fanout: u64, bottom_bytes: u64) -> u32 {
        let mut levels = 1;
        let mut target_bytes = bottom_bytes;
        while target_bytes > sizes.base_level_bytes {
            target_bytes /= fanout;
            levels += 1;
        }
        levels
    }

    /// The headline's 128 MiB of memory, base level of 128 MiB and fanout of 3. The bottom level was found
    /// to store 1.67 GiB with zstd-1.
    #[test]
    fn the_headlines_tree_has_four_levels_by_a_margin() {
        let settings = EngineSettings { base_level_bytes: 128 * MIB, ..settings(128, 16, 2) };
        for tuning in [Tuning::Matched, Tuning::Expert] {
            let sizes = Sizes::new(tuning, &settings);
            for bottom_mib in [1300, 1600, 2400, 3400] {
                assert_eq!(levels(&sizes, 3, bottom_mib * MIB), 4, "{tuning:?} {bottom_mib} MiB");
            }
        }
    }

    #[test]
    fn as_many_threads_can_compact_as_lithify_has() {
        let jobs: Vec<u64> = [1, 2, 3, 4, 6, 7, 12].map(jobs_with_compactions).into();
        assert_eq!(jobs, [2, 3, 4, 5, 7, 9, 15]);
    }
}
