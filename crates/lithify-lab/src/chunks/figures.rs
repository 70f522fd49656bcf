//! The figures of an engine over the matrix of codecs and chunks: medians over the repeats.

use super::plan::ChunkPlan;
use super::spec::{ChunkCell, ChunkOutcome};
use crate::adapter::EngineName;
use crate::experiment::chunks::ChunkArm;
use crate::report::figures::Spread;
use crate::run::cells::Run;

/// Mean and standard deviation of times.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MeanAndDeviation {
    /// The mean.
    pub mean: f64,
    /// The standard deviation of the sample; 0 for one value.
    pub deviation: f64,
}

impl MeanAndDeviation {
    /// Of all values; zeros without any.
    pub fn of(values: &[f64]) -> MeanAndDeviation {
        let count = values.len() as f64;
        if values.is_empty() {
            return MeanAndDeviation::default();
        }
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = if count > 1.0 { (squares / (count - 1.0)).sqrt() } else { 0.0 };
        MeanAndDeviation { mean, deviation }
    }
}

/// What was measured of one arm on one engine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArmFigures {
    /// Codec and chunk.
    pub arm: ChunkArm,
    /// Stored bytes.
    pub stored_bytes: f64,
    /// Stored bytes per byte of the text.
    pub stored_share: f64,
    /// Bytes of the text per stored byte.
    pub ratio: f64,
    /// Milliseconds of a flush.
    pub flush_ms: MeanAndDeviation,
    /// Text flushed per second, MB (10^6).
    pub flush_mb_per_s: f64,
    /// Milliseconds of a scan with empty caches.
    pub cold_ms: MeanAndDeviation,
    /// Milliseconds of a scan with the files in the page cache.
    pub warm_ms: MeanAndDeviation,
    /// Median microseconds of a read of one row.
    pub row_p50_us: f64,
    /// The 99th percentile of the same.
    pub row_p99_us: f64,
    /// Calls of the codec of a millisecond and more.
    pub long_calls: f64,
    /// Those together, milliseconds.
    pub long_sum_ms: f64,
    /// The longest call, milliseconds.
    pub longest_call_ms: f64,
    /// The longest unit of background work on the caller's thread, milliseconds; 0 when none took
    /// one; `None` for an engine that always has threads of its own.
    pub longest_unit_ms: Option<f64>,
    /// Repeats that count.
    pub repeats: usize,
}

impl ArmFigures {
    /// Of all repeats of an arm together; `None` without any.
    fn of(arm: ChunkArm, outcomes: &[&ChunkOutcome]) -> Option<ArmFigures> {
        let median = |value: &dyn Fn(&ChunkOutcome) -> f64| {
            Spread::of(outcomes.iter().map(|outcome| value(outcome)).collect())
                .map(|spread| spread.median)
        };
        let times = |of: fn(&ChunkOutcome) -> &Vec<f64>| {
            let all: Vec<f64> = outcomes.iter().flat_map(|o| of(o).iter().copied()).collect();
            MeanAndDeviation::of(&all)
        };
        let flush_ms = times(|outcome| &outcome.flush_ms);
        let text_bytes = median(&|outcome| outcome.text_bytes as f64)?;
        let stored_bytes = median(&|outcome| outcome.stored_bytes() as f64)?;
        let held = outcomes.iter().filter_map(|outcome| outcome.held_thread);
        Some(ArmFigures {
            arm,
            stored_bytes,
            stored_share: stored_bytes / text_bytes.max(1.0),
            ratio: text_bytes / stored_bytes.max(1.0),
            flush_ms,
            flush_mb_per_s: text_bytes / 1e3 / flush_ms.mean.max(1e-6),
            cold_ms: times(|outcome| &outcome.cold_scan_ms),
            warm_ms: times(|outcome| &outcome.warm_scan_ms),
            row_p50_us: median(&|outcome| outcome.row_reads.p50_us)?,
            row_p99_us: median(&|outcome| outcome.row_reads.p99_us)?,
            long_calls: median(&|outcome| outcome.calls.long_calls as f64)?,
            long_sum_ms: median(&|outcome| outcome.calls.long_sum_us as f64 / 1e3)?,
            longest_call_ms: median(&|outcome| outcome.calls.longest_us as f64 / 1e3)?,
            longest_unit_ms: Spread::of(held.map(|held| held.longest_us as f64 / 1e3).collect())
                .map(|spread| spread.median),
            repeats: outcomes.len(),
        })
    }
}

/// The arms of an engine that were measured and count, in the order of the tables.
pub fn of_engine(run: &Run<ChunkPlan>, engine: &EngineName) -> Vec<ArmFigures> {
    arms(run, |cell| cell.engine == *engine)
}

/// The same, in one repeat alone.
pub fn of_repeat(run: &Run<ChunkPlan>, engine: &EngineName, repeat: u64) -> Vec<ArmFigures> {
    arms(run, |cell| cell.engine == *engine && cell.repeat == repeat)
}

fn arms(run: &Run<ChunkPlan>, is_wanted: impl Fn(&ChunkCell) -> bool) -> Vec<ArmFigures> {
    let arms = run.plan.experiment.arms().into_iter();
    arms.filter_map(|arm| {
        let is = |cell: &ChunkCell| is_wanted(cell) && cell.arm() == arm;
        let outcomes: Vec<&ChunkOutcome> =
            run.entries.results().filter(|outcome| is(&outcome.cell)).collect();
        ArmFigures::of(arm, &outcomes)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deviation_is_that_of_a_sample() {
        let of = |values: &[f64]| {
            let MeanAndDeviation { mean, deviation } = MeanAndDeviation::of(values);
            (mean, deviation)
        };
        assert_eq!(of(&[2.0, 4.0, 4.0, 6.0]), (4.0, (8.0_f64 / 3.0).sqrt()));
        assert_eq!((of(&[3.0]), of(&[])), ((3.0, 0.0), (0.0, 0.0)));
    }
}
