//! The distribution of one kind of operation as the original prints it: whole microseconds in
//! buckets that grow by half, percentiles interpolated inside a bucket.
//!
//! It is derived at the end from [`Latencies`], whose three digits are what the report of this
//! laboratory quotes: near the bounds of wide buckets the two differ.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::latency::Latencies;

/// One bucket: above the limit of the one before, up to its own.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bar {
    /// Bound below, microseconds, exclusive (inclusive in the first bucket).
    pub above_us: u64,
    /// Bound above, microseconds, inclusive.
    pub limit_us: u64,
    /// Samples.
    pub count: u64,
}

/// A distribution in classic buckets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Samples.
    pub count: u64,
    /// Mean of the whole microseconds.
    pub average_us: f64,
    /// Standard deviation of them.
    pub deviation_us: f64,
    /// The smallest.
    pub min_us: u64,
    /// The largest.
    pub max_us: u64,
    /// Buckets that hold something, ascending.
    pub bars: Vec<Bar>,
}

/// Upper limits of the buckets: from 2 on half as much again, cut to two digits from 110 on.
fn limits() -> Vec<u64> {
    let mut limits = vec![1, 2];
    let mut exact = 2.0f64;
    loop {
        exact *= 1.5;
        if exact >= u64::MAX as f64 {
            return limits;
        }
        let mut limit = exact as u64;
        let mut scale = 1;
        while limit / 10 > 10 {
            limit /= 10;
            scale *= 10;
        }
        limit *= scale;
        limits.push(limit);
    }
}

impl Distribution {
    /// The distribution of nanoseconds.
    pub(super) fn of(latencies: &Latencies) -> Distribution {
        let limits = limits();
        let mut counts = vec![0u64; limits.len()];
        let (mut sum, mut squares) = (0.0, 0.0);
        for (value_ns, count) in latencies.recorded() {
            let us = value_ns / 1_000;
            let index = limits.partition_point(|limit| *limit < us).min(limits.len() - 1);
            counts[index] += count;
            sum += us as f64 * count as f64;
            squares += (us as f64).powi(2) * count as f64;
        }
        let count = latencies.count();
        let divisor = count.max(1) as f64;
        let average_us = sum / divisor;
        let bars = (0..limits.len()).filter(|index| counts[*index] > 0).map(|index| Bar {
            above_us: if index == 0 { 0 } else { limits[index - 1] },
            limit_us: limits[index],
            count: counts[index],
        });
        Distribution {
            count,
            average_us,
            deviation_us: (squares / divisor - average_us.powi(2)).max(0.0).sqrt(),
            min_us: latencies.min() / 1_000,
            max_us: latencies.max() / 1_000,
            bars: bars.collect(),
        }
    }

    /// The value that `percent` of the samples do not exceed, microseconds.
    pub fn percentile_us(&self, percent: f64) -> f64 {
        let threshold = self.count as f64 * percent / 100.0;
        let mut seen = 0.0;
        for bar in &self.bars {
            let count = bar.count as f64;
            if seen + count >= threshold {
                let share = (threshold - seen) / count;
                let width = (bar.limit_us - bar.above_us) as f64;
                let value = bar.above_us as f64 + width * share;
                return value.clamp(self.min_us as f64, self.max_us as f64);
            }
            seen += count;
        }
        self.max_us as f64
    }

    /// The lines that follow a result line: figures, percentiles, buckets.
    pub fn render(&self, operation: &str) -> String {
        let at = |percent| self.percentile_us(percent);
        let mut text = format!(
            "Microseconds per {operation}:\nCount: {} Average: {:.4}  StdDev: {:.2}\n\
             Min: {}  Median: {:.4}  Max: {}\n\
             Percentiles: P50: {:.2} P75: {:.2} P99: {:.2} P99.9: {:.2} P99.99: {:.2}\n{}\n",
            self.count,
            self.average_us,
            self.deviation_us,
            self.min_us,
            at(50.0),
            self.max_us,
            at(50.0),
            at(75.0),
            at(99.0),
            at(99.9),
            at(99.99),
            "-".repeat(54),
        );
        let mut seen = 0;
        for bar in &self.bars {
            seen += bar.count;
            let percent = |count: u64| 100.0 * count as f64 / self.count.max(1) as f64;
            let open = if bar.above_us == 0 { '[' } else { '(' };
            let marks = "#".repeat((percent(bar.count) / 5.0).round() as usize);
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "{open} {:7}, {:7} ] {:8} {:7.3}% {:7.3}% {marks}",
                bar.above_us,
                bar.limit_us,
                bar.count,
                percent(bar.count),
                percent(seen),
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_of_the_original() {
        let limits = limits();
        let expected = [
            1, 2, 3, 4, 6, 10, 15, 22, 34, 51, 76, 110, 170, 250, 380, 580, 870, 1_300, 1_900,
            2_900, 4_400, 6_600, 9_900, 14_000, 22_000, 33_000, 50_000, 75_000, 110_000, 170_000,
            250_000, 380_000, 570_000, 860_000, 1_200_000, 1_900_000, 2_900_000, 4_300_000,
            6_500_000, 9_800_000,
        ];
        assert_eq!(limits[..expected.len()], expected);
        assert_eq!(limits.len(), 109);
    }

    #[test]
    fn percentiles_are_interpolated_and_printed() {
        let mut latencies = Latencies::default();
        (0..90).for_each(|_| latencies.record(3_500));
        (0..10).for_each(|_| latencies.record(12_900));
        let distribution = Distribution::of(&latencies);
        // 50 of the 90 in (2, 3]: 3.5 us are 3 whole ones.
        assert!((distribution.percentile_us(50.0) - 3.0).abs() < 1e-9, "{distribution:?}");
        assert!((distribution.percentile_us(95.0) - 12.0).abs() < 0.6);
        assert_eq!((distribution.min_us, distribution.max_us), (3, 12));
        assert!((distribution.average_us - 3.9).abs() < 1e-9);
        assert!((distribution.deviation_us - 2.7).abs() < 1e-9);
        let text = distribution.render("write");
        let first = "Microseconds per write:\nCount: 100 Average: 3.9000  StdDev: 2.70\n";
        assert!(text.starts_with(first), "{text}");
        let bar = "(       2,       3 ]       90  90.000%  90.000% ##################\n";
        assert!(text.contains(bar), "{text}");
        assert_eq!(Distribution::of(&Latencies::default()).percentile_us(99.0), 0.0);
    }
}
