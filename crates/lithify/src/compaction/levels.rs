//! How large every level should be, and how much work is left to make it so.
//!
//! The targets follow from the bottom up: the last level is as large as its data, every level
//! above is `fanout` times smaller, and the first that is no larger than `base_level_bytes_max`
//! is the base level, into which level 0 is compacted. So nine tenths of the data are in the last
//! level whatever the size of the database, and the levels above the base level stay empty.
//!
//! Everything here is arithmetic on sizes, and continuous in them while the base level stays
//! where it is: a byte more is a byte's worth of debt more, never a jump.

use crate::base::Level;
use crate::manifest::Version;

/// The settings of a tree's shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeShape {
    /// The base level is kept at or below this size.
    pub base_level_bytes_max: u64,
    /// A level's target is this many times that of the level above.
    pub fanout: u64,
    /// So many runs of level 0 make a compaction due.
    pub level0_trigger: usize,
}

/// The base level and the target size of every level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelTargets {
    /// The level that level 0 is compacted into; no table lies between the two.
    pub base_level: Level,
    /// Per level; 0 for level 0 and for levels that should hold nothing.
    pub target_bytes: Vec<u64>,
    shape: TreeShape,
}

/// Stored bytes of every level.
pub fn level_sizes(version: &Version) -> Vec<u64> {
    (0..version.level_count()).map(|level| version.level_bytes(level)).collect()
}

impl LevelTargets {
    /// The targets for a version.
    pub fn new(version: &Version, shape: &TreeShape) -> Self {
        LevelTargets::of_sizes(&level_sizes(version), shape)
    }

    /// The targets for levels of these sizes.
    pub fn of_sizes(level_bytes: &[u64], shape: &TreeShape) -> Self {
        let bottom = level_bytes.len().saturating_sub(1);
        let base_max = shape.base_level_bytes_max.max(1);
        let fanout = shape.fanout.max(2);
        let mut target_bytes = vec![0; level_bytes.len()];
        let mut base_level = bottom;
        if bottom > 0 {
            // A deep level that has outgrown the bottom will be there soon: plan for it.
            let largest = level_bytes[1..].iter().copied().max().unwrap_or(0);
            target_bytes[bottom] = largest.max(base_max);
            while target_bytes[base_level] > base_max && base_level > 1 {
                target_bytes[base_level - 1] = target_bytes[base_level] / fanout;
                base_level -= 1;
            }
            // Data in a level above must be passed by, not overtaken: it stays the base level.
            // It is let go (target 0) only once the levels below are clearly enough, so that the
            // base level does not go to and fro with every deleted table.
            while level_bytes[1..base_level].iter().any(|bytes| *bytes > 0) {
                let below = target_bytes[base_level];
                base_level -= 1;
                target_bytes[base_level] = if below > base_max / 2 { below / fanout } else { 0 };
            }
        }
        LevelTargets { base_level, target_bytes, shape: *shape }
    }

    /// The need for compaction of each level; from 1 on it is due. Level 0 counts by its runs, or
    /// by its bytes against the largest base level if that is more. The last level has none.
    /// `level0_runs` and `level_bytes` leave out what running compactions are about to take away.
    pub fn scores(&self, level0_runs: usize, level_bytes: &[u64]) -> Vec<f64> {
        let mut scores = vec![0.0; level_bytes.len()];
        let bottom = level_bytes.len().saturating_sub(1);
        if bottom == 0 {
            return scores;
        }
        let trigger = self.shape.level0_trigger.max(1) as f64;
        let base_max = self.shape.base_level_bytes_max.max(1);
        let by_runs = level0_runs as f64 / trigger;
        // Few large runs are no trouble to readers: bytes count only beside a second run.
        let by_bytes = if level0_runs > 1 { level_bytes[0] as f64 / base_max as f64 } else { 0.0 };
        scores[0] = by_runs.max(by_bytes);
        for level in self.base_level..bottom {
            scores[level] = match (level_bytes[level], self.target_bytes[level]) {
                (0, _) => 0.0,
                // To be emptied: due, but not before levels that are far over their target.
                (_, 0) => 1.0 + 1.0 / trigger,
                (bytes, target) => bytes as f64 / target as f64,
            };
        }
        scores
    }

    /// Whether a level is due for compaction: a tree in which none is owes nothing.
    pub fn is_due(&self, level0_runs: usize, level_bytes: &[u64]) -> bool {
        self.scores(level0_runs, level_bytes).iter().any(|score| *score >= 1.0)
    }

    /// Bytes that compactions still have to rewrite until level 0 is empty and every level at
    /// its target; nobody is about to do it unless [`LevelTargets::is_due`].
    pub fn pending_compaction_bytes(&self, level_bytes: &[u64]) -> u64 {
        let bottom = level_bytes.len().saturating_sub(1);
        if bottom == 0 {
            return 0;
        }
        let mut incoming = level_bytes[0] as f64;
        // As much of the base level is merged in as level 0 can be expected to overlap.
        let base_target = self.target_bytes[self.base_level].max(1) as f64;
        let overlap = (incoming / base_target).min(1.0);
        let mut pending = incoming + level_bytes[self.base_level] as f64 * overlap;
        for level in self.base_level..bottom {
            let size = level_bytes[level] as f64 + incoming;
            incoming = (size - self.target_bytes[level] as f64).max(0.0);
            pending += incoming * rewrite_factor(size, level_bytes[level + 1] as f64);
        }
        pending as u64
    }

    /// Bytes of level 0, and of the levels above the last one as far as they are over their
    /// targets: what compaction will have merged into the levels below once it has come to rest.
    pub fn excess_bytes(&self, level_bytes: &[u64]) -> u64 {
        let above_last = level_bytes.len().saturating_sub(1);
        let levels = level_bytes.iter().zip(&self.target_bytes).take(above_last);
        levels.map(|(bytes, target)| bytes.saturating_sub(*target)).sum()
    }

    /// Bytes that compactions rewrite in the end for each byte that is flushed, in a tree of
    /// these sizes. Turns a rate of compaction into a rate of writing that it can keep up with.
    pub fn work_per_flushed_byte(&self, level_bytes: &[u64]) -> f64 {
        let bottom = level_bytes.len().saturating_sub(1);
        if bottom == 0 {
            return 1.0;
        }
        let bytes = |level: Level| level_bytes[level] as f64;
        let base_target = self.target_bytes[self.base_level].max(1) as f64;
        let mut work = 1.0 + (bytes(self.base_level) / base_target).min(1.0);
        for level in self.base_level..bottom {
            let size = bytes(level).max(self.target_bytes[level] as f64);
            work += rewrite_factor(size, bytes(level + 1));
        }
        work
    }
}

/// Bytes rewritten for one byte that moves from a level of `size` into one of `next`.
fn rewrite_factor(size: f64, next: f64) -> f64 {
    if size > 0.0 { 1.0 + next / size } else { 1.0 }
}
