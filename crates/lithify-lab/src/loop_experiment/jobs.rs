//! Jobs by the level that they wrote into: how many, how long, how much.
//!
//! Engines count since they were opened; a test's jobs are the difference of two of their answers.
//! Levels have numbers that depend on the size of the tree, and roles that do not: level 0, the
//! base level, the next one, and those deeper.

use std::collections::BTreeMap;

use crate::adapter::{EngineStatistics, LevelStatistics};

/// The jobs that wrote into one level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelJobs {
    /// How many.
    pub jobs: u64,
    /// Their wall time, microseconds.
    pub wall_us: u64,
    /// Their CPU, microseconds.
    pub cpu_us: u64,
    /// What they read, bytes.
    pub read_bytes: u64,
    /// What they wrote, bytes.
    pub written_bytes: u64,
}

impl LevelJobs {
    fn of(level: &LevelStatistics) -> LevelJobs {
        LevelJobs {
            jobs: level.compactions,
            wall_us: level.compaction_wall_us,
            cpu_us: level.compaction_cpu_us,
            read_bytes: level.compaction_read_bytes,
            written_bytes: level.compaction_write_bytes,
        }
    }

    /// What was added since `before`.
    fn since(&self, before: &LevelJobs) -> LevelJobs {
        LevelJobs {
            jobs: self.jobs.saturating_sub(before.jobs),
            wall_us: self.wall_us.saturating_sub(before.wall_us),
            cpu_us: self.cpu_us.saturating_sub(before.cpu_us),
            read_bytes: self.read_bytes.saturating_sub(before.read_bytes),
            written_bytes: self.written_bytes.saturating_sub(before.written_bytes),
        }
    }

    /// Both together.
    pub fn plus(&self, other: &LevelJobs) -> LevelJobs {
        LevelJobs {
            jobs: self.jobs + other.jobs,
            wall_us: self.wall_us + other.wall_us,
            cpu_us: self.cpu_us + other.cpu_us,
            read_bytes: self.read_bytes + other.read_bytes,
            written_bytes: self.written_bytes + other.written_bytes,
        }
    }

    /// Wall seconds of a job on average; `None` without any.
    pub fn wall_s_per_job(&self) -> Option<f64> {
        (self.jobs > 0).then(|| self.wall_us as f64 / 1e6 / self.jobs as f64)
    }

    /// CPU seconds of a job on average; `None` without any.
    pub fn cpu_s_per_job(&self) -> Option<f64> {
        (self.jobs > 0).then(|| self.cpu_us as f64 / 1e6 / self.jobs as f64)
    }
}

/// The place of a level in its tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LevelRole {
    /// Where flushes go.
    Level0,
    /// What level 0 is compacted into.
    Base,
    /// The level below that.
    Next,
    /// All others.
    Deeper,
}

impl LevelRole {
    /// Its name in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            LevelRole::Level0 => "L0",
            LevelRole::Base => "base",
            LevelRole::Next => "next",
            LevelRole::Deeper => "deeper",
        }
    }
}

/// A level below level 0 takes part in the tree when at least this share of the bytes that were
/// flushed was written into it: a base level that has just moved leaves others behind.
const SHARE_MIN: f64 = 0.1;

/// The jobs of a span by level, those levels left out that had none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Jobs {
    /// By physical level.
    pub levels: BTreeMap<u32, LevelJobs>,
}

impl Jobs {
    /// Between two answers of an engine.
    pub fn between(before: &EngineStatistics, after: &EngineStatistics) -> Jobs {
        let earlier: BTreeMap<u32, LevelJobs> =
            before.levels.iter().map(|level| (level.level, LevelJobs::of(level))).collect();
        let levels = after.levels.iter().map(|level| {
            let before = earlier.get(&level.level).copied().unwrap_or_default();
            (level.level, LevelJobs::of(level).since(&before))
        });
        Jobs { levels: levels.filter(|(_, jobs)| jobs.jobs > 0).collect() }
    }

    /// All levels together.
    pub fn total(&self) -> LevelJobs {
        self.levels.values().fold(LevelJobs::default(), |sum, jobs| sum.plus(jobs))
    }

    /// The base level; `None` when nothing was compacted into any.
    pub fn base_level(&self) -> Option<u32> {
        let flushed = self.levels.get(&0).map_or(0, |jobs| jobs.written_bytes) as f64;
        let written = |jobs: &LevelJobs| jobs.written_bytes as f64;
        let mut below = self.levels.iter().filter(|(level, _)| **level > 0);
        below.find(|(_, jobs)| written(jobs) >= SHARE_MIN * flushed).map(|(level, _)| *level)
    }

    /// The role of a physical level.
    pub fn role(&self, level: u32) -> Option<LevelRole> {
        if level == 0 {
            return Some(LevelRole::Level0);
        }
        Some(match level.checked_sub(self.base_level()?)? {
            0 => LevelRole::Base,
            1 => LevelRole::Next,
            _ => LevelRole::Deeper,
        })
    }

    /// The jobs of all levels in a role; `None` when there were none.
    pub fn of_role(&self, role: LevelRole) -> Option<LevelJobs> {
        let levels = self.levels.iter().filter(|(level, _)| self.role(**level) == Some(role));
        levels.map(|(_, jobs)| *jobs).reduce(|sum, jobs| sum.plus(&jobs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statistics(levels: &[(u32, u64, u64, u64)]) -> EngineStatistics {
        let level = |(level, jobs, wall_us, written): &(u32, u64, u64, u64)| LevelStatistics {
            level: *level,
            compactions: *jobs,
            compaction_wall_us: *wall_us,
            compaction_cpu_us: wall_us / 2,
            compaction_write_bytes: *written,
            ..LevelStatistics::default()
        };
        EngineStatistics { levels: levels.iter().map(level).collect(), ..Default::default() }
    }

    #[test]
    fn a_test_has_the_difference_of_two_answers() {
        let before = statistics(&[(0, 10, 1_000_000, 100), (6, 1, 5_000_000, 900)]);
        let after =
            statistics(&[(0, 14, 3_000_000, 300), (3, 2, 8_000_000, 250), (6, 1, 5_000_000, 900)]);
        let jobs = Jobs::between(&before, &after);
        assert_eq!(jobs.levels.keys().copied().collect::<Vec<_>>(), [0, 3], "no jobs, no level");
        assert_eq!(jobs.levels[&0].wall_s_per_job(), Some(0.5));
        assert_eq!(jobs.levels[&0].cpu_s_per_job(), Some(0.25));
        assert_eq!(jobs.levels[&3].wall_s_per_job(), Some(4.0));
        let total = jobs.total();
        assert_eq!((total.jobs, total.wall_us, total.written_bytes), (6, 10_000_000, 450));
        assert_eq!(LevelJobs::default().wall_s_per_job(), None);
    }

    #[test]
    fn roles_count_from_the_first_level_that_takes_part() {
        let none = statistics(&[]);
        let jobs = Jobs::between(
            &none,
            &statistics(&[
                (0, 9, 9, 1_000),
                (2, 1, 1, 99),
                (3, 8, 80, 2_000),
                (4, 7, 70, 3_000),
                (5, 6, 60, 4_000),
                (6, 5, 50, 5_000),
            ]),
        );
        assert_eq!(jobs.base_level(), Some(3), "level 2 got less than a tenth of the flushes");
        let role = |level| jobs.role(level).map(LevelRole::name);
        assert_eq!(
            [0, 2, 3, 4, 5, 6].map(role),
            [Some("L0"), None, Some("base"), Some("next"), Some("deeper"), Some("deeper")]
        );
        let deeper = jobs.of_role(LevelRole::Deeper).expect("two levels");
        assert_eq!((deeper.jobs, deeper.wall_us), (11, 110));
        let flushes_only = Jobs::between(&none, &statistics(&[(0, 1, 1, 10)]));
        assert_eq!((flushes_only.base_level(), flushes_only.role(5)), (None, None));
        assert_eq!(flushes_only.of_role(LevelRole::Base), None);
    }
}
