//! How a caller watches and stops a phase: progress callbacks, the cancellation flag, and
//! throughput per second.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How far the load phase is.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoadProgress {
    /// Since the phase began.
    pub elapsed: Duration,
    /// Nodes inserted.
    pub nodes: u64,
    /// Links inserted.
    pub links: u64,
    /// Count rows inserted.
    pub counts: u64,
    /// Source ids whose links are generated.
    pub ids: u64,
    /// Source ids in all.
    pub ids_total: u64,
    /// Rows put into the secondary index by a build of its own.
    pub secondary_rows: u64,
}

/// How far the request phase is.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestProgress {
    /// Since the phase began, warm-up included.
    pub elapsed: Duration,
    /// True while nothing is recorded yet.
    pub warming_up: bool,
    /// Requests done, warm-up included.
    pub requests: u64,
}

/// One operation of one requester over one display interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IntervalSample {
    /// Number of the requester.
    pub requester: u64,
    /// End of the interval, milliseconds since the phase began.
    pub at_ms: u64,
    /// Name of the operation.
    pub op: String,
    /// Requests of all kinds that this requester has done so far.
    pub requests_done: u64,
    /// Of them failed.
    pub failures: u64,
    /// Length of the interval, milliseconds.
    pub interval_ms: u64,
    /// Samples in the interval: all of its operations, none left out.
    pub samples: u64,
    /// Mean, microseconds.
    pub mean_us: f64,
    /// Shortest, microseconds.
    pub min_us: f64,
    /// 25th, 50th, 75th, 90th, 95th and 99th percentile, microseconds.
    pub percentiles_us: [f64; 6],
    /// Longest, microseconds.
    pub max_us: f64,
}

impl IntervalSample {
    /// The columns of [`IntervalSample::csv_row`].
    pub const CSV_HEADER: &str = "threadID,timestamp,op,totalops,totalerrors,ops,sampleDuration,\
        sampleOps,mean_us,min_us,p25_us,p50_us,p75_us,p90_us,p95_us,p99_us,max_us";

    /// One line of comma-separated values.
    pub fn csv_row(&self) -> String {
        let [p25, p50, p75, p90, p95, p99] = self.percentiles_us;
        format!(
            "{},{},{},{},{},{},{},{},{:.3},{},{p25},{p50},{p75},{p90},{p95},{p99},{}",
            self.requester,
            self.at_ms,
            self.op,
            self.requests_done,
            self.failures,
            self.samples,
            self.interval_ms,
            self.samples,
            self.mean_us,
            self.min_us,
            self.max_us
        )
    }
}

/// Hears how a phase goes on. Called from the phase's coordinating thread, except
/// [`Progress::interval`], which requesters call.
pub trait Progress: Sync {
    /// The load phase, once per [`Control::interval`] and at its end.
    fn load(&self, _progress: &LoadProgress) {}

    /// The request phase, once per [`Control::interval`] and at its end.
    fn request(&self, _progress: &RequestProgress) {}

    /// One operation of one requester in one display interval, if such intervals are asked for.
    fn interval(&self, _sample: &IntervalSample) {}
}

/// Says nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {}

/// The caller's hold on a running phase.
#[derive(Clone, Copy)]
pub struct Control<'a> {
    /// Set to true, it ends the phase at the next batch or operation.
    pub cancel: &'a AtomicBool,
    /// Hears how it goes on.
    pub progress: &'a dyn Progress,
    /// Time between two progress calls.
    pub interval: Duration,
}

static NEVER: AtomicBool = AtomicBool::new(false);

impl Control<'static> {
    /// Nobody watches, nobody stops.
    pub fn silent() -> Self {
        Control { cancel: &NEVER, progress: &Silent, interval: Duration::from_secs(1) }
    }
}

impl Control<'_> {
    /// True once the caller wants the phase to end.
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    /// Calls `tick` once per interval until every sender of `workers` is gone.
    pub(super) fn tick_until_done(&self, workers: &Receiver<()>, mut tick: impl FnMut()) {
        while let Err(RecvTimeoutError::Timeout) = workers.recv_timeout(self.interval) {
            tick();
        }
    }
}

/// Things done in each second of a phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PerSecond(pub Vec<u64>);

impl PerSecond {
    /// Books `amount` at `elapsed`.
    #[inline]
    pub fn record(&mut self, elapsed: Duration, amount: u64) {
        let second = elapsed.as_secs() as usize;
        if second >= self.0.len() {
            self.0.resize(second + 1, 0);
        }
        self.0[second] += amount;
    }

    /// Adds what another thread booked.
    pub fn merge(&mut self, other: &PerSecond) {
        if other.0.len() > self.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (sum, amount) in self.0.iter_mut().zip(&other.0) {
            *sum += amount;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn per_second_merges_series_of_different_length() {
        let (mut a, mut b) = (PerSecond::default(), PerSecond::default());
        a.record(Duration::from_millis(999), 2);
        b.record(Duration::from_millis(2000), 3);
        a.merge(&b);
        assert_eq!(a.0, [2, 0, 3]);
    }

    #[test]
    fn csv_columns() {
        let sample = IntervalSample {
            requester: 1,
            at_ms: 10_000,
            op: "GET_NODE".to_owned(),
            requests_done: 5,
            failures: 0,
            interval_ms: 10_000,
            samples: 4,
            mean_us: 1.5,
            min_us: 1.0,
            percentiles_us: [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
            max_us: 7.0,
        };
        assert_eq!(sample.csv_row(), "1,10000,GET_NODE,5,0,4,10000,4,1.500,1,1,2,3,4,5,6,7");
        assert_eq!(
            sample.csv_row().split(',').count(),
            IntervalSample::CSV_HEADER.split(',').count()
        );
    }
}
