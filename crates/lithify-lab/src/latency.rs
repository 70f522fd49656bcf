//! Latencies of one kind of operation: recording, percentiles, and the lines the field prints.
//!
//! The primary store is a high-dynamic-range histogram of nanoseconds with three digits. The
//! classic bucket line (tenths of milliseconds below 1 ms, milliseconds below 100 ms, and so on)
//! is derived from it; a sample within one thousandth of a bucket's bound may count on the
//! neighbouring side. Mean and maximum are exact.
//!
//! A [`Latencies`] belongs to one thread; threads' recordings are merged afterwards.

use std::fmt;
use std::fmt::Write as _;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Recorded samples of one operation.
#[derive(Clone, Debug)]
pub struct Latencies {
    histogram: Histogram<u64>,
    sum: u64,
    max: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        // One hour: beyond it the histogram saturates, the exact maximum does not. Three digits
        // are within the documented bounds, so construction cannot fail; should it ever, the
        // growing histogram records the same.
        let histogram = Histogram::new_with_max(3_600_000_000_000, 3)
            .or_else(|_| Histogram::new(3))
            .unwrap_or_else(|_| unreachable!("three significant digits are supported"));
        Latencies { histogram, sum: 0, max: 0 }
    }
}

impl Latencies {
    /// Records one sample: nanoseconds for latencies, a plain number for other sizes.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.histogram.saturating_record(value);
        self.sum = self.sum.saturating_add(value);
        self.max = self.max.max(value);
    }

    /// Adds the samples of `other`.
    pub fn merge(&mut self, other: &Latencies) {
        // Both have the same bounds, for which adding cannot fail.
        let added = self.histogram.add(&other.histogram);
        debug_assert!(added.is_ok());
        self.sum = self.sum.saturating_add(other.sum);
        self.max = self.max.max(other.max);
    }

    /// Number of samples.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Largest sample, exact.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Smallest sample within three digits; 0 without samples.
    pub fn min(&self) -> u64 {
        self.histogram.min()
    }

    /// Mean, exact; 0 without samples.
    pub fn mean(&self) -> f64 {
        if self.count() == 0 { 0.0 } else { self.sum as f64 / self.count() as f64 }
    }

    /// The sample below or at which `percent` of the samples lie, within three digits.
    pub fn percentile(&self, percent: f64) -> u64 {
        self.histogram.value_at_quantile(percent / 100.0).min(self.max)
    }

    /// Forgets all samples.
    pub fn clear(&mut self) {
        self.histogram.reset();
        self.sum = 0;
        self.max = 0;
    }

    /// The recorded values, ascending, within three digits, with how often each was recorded.
    pub fn recorded(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.histogram.iter_recorded().map(|step| {
            let value = self.histogram.lowest_equivalent(step.value_iterated_to());
            (value, step.count_since_last_iteration())
        })
    }

    /// Counts per classic bucket.
    fn bucket_counts(&self) -> [u64; BUCKETS] {
        let mut counts = [0; BUCKETS];
        for (value_ns, count) in self.recorded() {
            counts[bucket_of_us(value_ns / 1000)] += count;
        }
        counts
    }
}

/// 10 of 0.1 ms, 99 of 1 ms, 9 of 100 ms, 9 of 1 s, 1 for all that is longer.
const BUCKETS: usize = 128;

/// The classic bucket of a latency in microseconds.
fn bucket_of_us(us: u64) -> usize {
    let index = match us {
        0..1_000 => us / 100,
        1_000..100_000 => 10 + (us - 1_000) / 1_000,
        100_000..1_000_000 => 109 + (us - 100_000) / 100_000,
        1_000_000..10_000_000 => 118 + (us - 1_000_000) / 1_000_000,
        _ => 127,
    };
    index as usize
}

/// A classic bucket, `[low_ms, high_ms]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bucket {
    /// Lower bound, milliseconds.
    pub low_ms: f64,
    /// Upper bound, milliseconds.
    pub high_ms: f64,
}

impl Bucket {
    fn at(index: usize) -> Bucket {
        let i = index as f64;
        let (low_ms, width_ms) = match index {
            0..10 => (i / 10.0, 0.1),
            10..109 => (i - 9.0, 1.0),
            109..118 => ((i - 108.0) * 100.0, 100.0),
            118..127 => ((i - 117.0) * 1_000.0, 1_000.0),
            _ => (10_000.0, 90_000.0),
        };
        // Sums of tenths are rounded back to tenths.
        Bucket { low_ms, high_ms: ((low_ms + width_ms) * 10.0).round() / 10.0 }
    }
}

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{},{}]", self.low_ms, self.high_ms)
    }
}

/// The percentiles of the classic line.
pub const CLASSIC_PERCENTILES: [u64; 5] = [25, 50, 75, 95, 99];

/// The figures of one operation at the end of a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencySummary {
    /// Name of the operation.
    pub op: String,
    /// Number of samples.
    pub count: u64,
    /// Buckets of the [`CLASSIC_PERCENTILES`].
    pub buckets: [Bucket; 5],
    /// Median, microseconds, three digits.
    pub p50_us: f64,
    /// 95th percentile, microseconds, three digits.
    pub p95_us: f64,
    /// 99th percentile, microseconds, three digits.
    pub p99_us: f64,
    /// 99.9th percentile, microseconds, three digits.
    pub p999_us: f64,
    /// 99.99th percentile, microseconds, three digits.
    pub p9999_us: f64,
    /// Longest, milliseconds, exact.
    pub max_ms: f64,
    /// Mean, milliseconds.
    pub mean_ms: f64,
}

impl LatencySummary {
    /// Summarises the nanoseconds in `latencies`.
    pub fn new(op: &str, latencies: &Latencies) -> Self {
        let counts = latencies.bucket_counts();
        let total = latencies.count();
        let us = |percent| latencies.percentile(percent) as f64 / 1e3;
        LatencySummary {
            op: op.to_owned(),
            count: total,
            buckets: CLASSIC_PERCENTILES.map(|percent| bucket_reaching(&counts, percent, total)),
            p50_us: us(50.0),
            p95_us: us(95.0),
            p99_us: us(99.0),
            p999_us: us(99.9),
            p9999_us: us(99.99),
            max_ms: latencies.max() as f64 / 1e6,
            mean_ms: latencies.mean() / 1e6,
        }
    }

    /// The figure that published tables call "p99": the upper bound of its bucket, milliseconds.
    pub fn p99_bucket_ms(&self) -> f64 {
        self.buckets[4].high_ms
    }

    /// The end-of-run line.
    pub fn line(&self) -> String {
        let mut line = format!("{} count = {} ", self.op, self.count);
        for (percent, bucket) in CLASSIC_PERCENTILES.iter().zip(&self.buckets) {
            // Writing to a String cannot fail.
            let _ = write!(line, " p{percent} = {bucket}ms ");
        }
        let _ = write!(
            line,
            " max = {}ms  mean = {}ms  p99.9 = {}ms  p99.99 = {}ms",
            decimals(self.max_ms, 3),
            decimals(self.mean_ms, 3),
            decimals(self.p999_us / 1e3, 3),
            decimals(self.p9999_us / 1e3, 3)
        );
        line
    }
}

/// The first bucket with at least `floor(percent / 100 * total)` samples up to its end.
fn bucket_reaching(counts: &[u64; BUCKETS], percent: u64, total: u64) -> Bucket {
    let needed = (u128::from(total) * u128::from(percent) / 100) as u64;
    let mut seen = 0;
    let reached = counts.iter().position(|count| {
        seen += count;
        seen >= needed
    });
    Bucket::at(reached.unwrap_or(BUCKETS - 1))
}

/// `value` with at most `digits` decimals and no trailing zeros.
fn decimals(value: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_cover_every_latency_without_gaps() {
        for index in 0..BUCKETS - 1 {
            let (bucket, next) = (Bucket::at(index), Bucket::at(index + 1));
            assert_eq!(bucket.high_ms, next.low_ms, "after bucket {index}");
            let low_us = (bucket.low_ms * 1e3).round() as u64;
            let high_us = (bucket.high_ms * 1e3).round() as u64;
            assert_eq!(bucket_of_us(low_us), index);
            assert_eq!(bucket_of_us(high_us - 1), index);
        }
        assert_eq!(bucket_of_us(u64::MAX), BUCKETS - 1);
        assert_eq!(Bucket::at(127).to_string(), "[10000,100000]");
    }

    #[test]
    fn summary_of_known_samples() {
        let mut latencies = Latencies::default();
        // Not on the bounds of buckets, where three digits decide the side.
        for us in 0..1000u64 {
            latencies.record(us * 1000 + 500);
        }
        let mut other = Latencies::default();
        other.record(15_000_000_000);
        latencies.merge(&other);
        let summary = LatencySummary::new("GET_NODE", &latencies);
        assert_eq!(summary.count, 1001);
        // needed = floor(.25 * 1001) = 250; 300 samples lie below 0.3 ms, 200 below 0.2 ms.
        assert_eq!(summary.buckets[0], Bucket { low_ms: 0.2, high_ms: 0.3 });
        assert_eq!(summary.buckets[4], Bucket { low_ms: 0.9, high_ms: 1.0 });
        assert_eq!(summary.p99_bucket_ms(), 1.0);
        assert_eq!(summary.max_ms, 15_000.0);
        assert!((summary.p50_us - 500.5).abs() < 1.0);
        let mean_ms = (500.0 + 15_000.0) / 1001.0;
        assert!((summary.mean_ms - mean_ms).abs() < 1e-9);
        assert_eq!(
            summary.line(),
            "GET_NODE count = 1001  p25 = [0.2,0.3]ms  p50 = [0.4,0.5]ms  p75 = [0.7,0.8]ms  \
             p95 = [0.9,1]ms  p99 = [0.9,1]ms  max = 15000ms  mean = 15.485ms  p99.9 = 1ms  \
             p99.99 = 15000ms"
        );
    }

    #[test]
    fn nothing_recorded() {
        let latencies = Latencies::default();
        let summary = LatencySummary::new("X", &latencies);
        assert_eq!((summary.count, summary.max_ms, summary.mean_ms), (0, 0.0, 0.0));
        assert_eq!(summary.buckets[0], Bucket { low_ms: 0.0, high_ms: 0.1 });
    }
}
