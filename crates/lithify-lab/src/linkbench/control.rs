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
    /// Write operations recorded, in a phase that ends after so many; 0 in others.
    pub writes: u64,
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

/// Things done in each second of a phase: the usual record of throughput.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PerSecond {
    amounts: Vec<u64>,
}

impl PerSecond {
    /// Books `amount` at `elapsed`.
    #[inline]
    pub fn record(&mut self, elapsed: Duration, amount: u64) {
        let second = elapsed.as_secs() as usize;
        if second >= self.amounts.len() {
            self.amounts.resize(second + 1, 0);
        }
        self.amounts[second] += amount;
    }

    /// Adds what another thread booked.
    pub fn merge(&mut self, other: &PerSecond) {
        if other.amounts.len() > self.amounts.len() {
            self.amounts.resize(other.amounts.len(), 0);
        }
        for (sum, amount) in self.amounts.iter_mut().zip(&other.amounts) {
            *sum += amount;
        }
    }

    /// The amount of every second.
    pub fn amounts(&self) -> &[u64] {
        &self.amounts
    }
}

/// Length of the windows by which stalls are told, nanoseconds.
const WINDOW_NS: u64 = 100_000_000;

/// When writes were completed: the first and the last in each window of 100 ms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completions {
    /// Nanoseconds since the phase began; `None` for a window without any.
    windows: Vec<Option<(u64, u64)>>,
}

impl Completions {
    /// A write was completed at `elapsed`.
    #[inline]
    pub fn record(&mut self, elapsed: Duration) {
        let at_ns = elapsed.as_nanos() as u64;
        let window = (at_ns / WINDOW_NS) as usize;
        if window >= self.windows.len() {
            self.windows.resize(window + 1, None);
        }
        let (first_ns, last_ns) = self.windows[window].get_or_insert((at_ns, at_ns));
        *first_ns = at_ns.min(*first_ns);
        *last_ns = at_ns.max(*last_ns);
    }

    /// Adds what another thread completed.
    pub fn merge(&mut self, other: &Completions) {
        if other.windows.len() > self.windows.len() {
            self.windows.resize(other.windows.len(), None);
        }
        for (own, other) in self.windows.iter_mut().zip(&other.windows) {
            *own = match (*own, *other) {
                (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
                (own, other) => own.or(other),
            };
        }
    }

    /// The longest time between two completed writes of any thread, or before the first one,
    /// nanoseconds. Between two writes of one window it is not looked for: it would be shorter
    /// than the window.
    fn longest_gap_ns(&self) -> u64 {
        let mut last_seen_ns = 0;
        let gaps = self.windows.iter().flatten().map(|(first_ns, last_ns)| {
            first_ns.saturating_sub(std::mem::replace(&mut last_seen_ns, *last_ns))
        });
        gaps.max().unwrap_or(0)
    }
}

/// Windows of 100 ms in which no write completed: how any engine's stalls look from outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedStalls {
    /// Windows in all.
    pub windows: u64,
    /// Windows without a completed write.
    pub empty_windows: u64,
    /// Unbroken runs of such windows.
    pub runs: u64,
    /// Windows in the longest run.
    pub longest_run: u64,
    /// The longest time in which no write completed, microseconds; below 100 ms it may be longer
    /// than told, and is below 100 ms all the same. `None` in results of before it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_gap_us: Option<u64>,
}

impl ObservedStalls {
    /// Counts the empty windows of `writes`; the last window, which the phase's end cut short, is
    /// left out.
    pub fn of(writes: &Completions) -> Self {
        let mut stalls = ObservedStalls {
            longest_gap_us: Some(writes.longest_gap_ns() / 1000),
            ..ObservedStalls::default()
        };
        let mut run = 0;
        for window in writes.windows.iter().rev().skip(1) {
            stalls.windows += 1;
            run = if window.is_none() { run + 1 } else { 0 };
            stalls.empty_windows += u64::from(run > 0);
            stalls.runs += u64::from(run == 1);
            stalls.longest_run = stalls.longest_run.max(run);
        }
        stalls
    }

    /// Share of the windows without a completed write.
    pub fn share(&self) -> f64 {
        self.empty_windows as f64 / self.windows.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_of_different_threads_merge() {
        let (mut a, mut b) = (PerSecond::default(), PerSecond::default());
        a.record(Duration::from_millis(999), 2);
        b.record(Duration::from_millis(2000), 3);
        a.merge(&b);
        assert_eq!(a.amounts(), [2, 0, 3]);
    }

    fn completions(at_ms: &[u64]) -> Completions {
        let mut writes = Completions::default();
        at_ms.iter().for_each(|at_ms| writes.record(Duration::from_millis(*at_ms)));
        writes
    }

    #[test]
    fn empty_windows_are_stalls() {
        // Windows: 2 1 0 0 1 0 1 0 0 | 1; the last one is cut short.
        let stalls = ObservedStalls::of(&completions(&[0, 99, 100, 450, 620, 905]));
        let expected = ObservedStalls {
            windows: 9,
            empty_windows: 5,
            runs: 3,
            longest_run: 2,
            longest_gap_us: Some(350_000),
        };
        assert_eq!(stalls, expected);
        assert!((stalls.share() - 5.0 / 9.0).abs() < 1e-9);
        let nothing = ObservedStalls { longest_gap_us: Some(0), ..ObservedStalls::default() };
        assert_eq!(ObservedStalls::of(&Completions::default()), nothing);
    }

    #[test]
    fn a_gap_is_over_when_any_thread_completes() {
        let mut writes = completions(&[10, 190, 700]);
        writes.merge(&completions(&[110, 350, 360, 1300]));
        // From 700 to 1300; what one thread did alone does not count.
        assert_eq!(writes.longest_gap_ns(), 600_000_000);
        let mut late = completions(&[400, 410]);
        late.merge(&completions(&[390]));
        assert_eq!(late.longest_gap_ns(), 390_000_000, "before the first one");
        assert_eq!(completions(&[10, 20, 95]).longest_gap_ns(), 10_000_000);
    }
}
