//! What the clients see over time: completed writes per window, gaps, latencies.
//!
//! A `Trace` belongs to one client; a client is always writing, so every window in which no
//! client completed a write is one in which a writer wanted to and could not.

use serde::{Deserialize, Serialize};

use crate::latency::{Latencies, LatencySummary};

/// Length of a window.
const WINDOW_NS: u64 = 100_000_000;
/// Windows in a second.
const WINDOWS_PER_SECOND: usize = 10;
/// Shorter times between two writes of a client are no gaps that anybody lists.
const GAP_NS_MIN: u64 = 1_000_000;

/// The completed writes of one client.
pub(crate) struct Trace {
    windows: Vec<u32>,
    /// Most windows that are kept; what comes later has none.
    windows_max: usize,
    /// Windows in which the client did not want to write for some time, ascending.
    idle_windows: Vec<usize>,
    /// Starts and ends of the client's own gaps, nanoseconds since the start.
    gaps_ns: Vec<(u64, u64)>,
    latencies: Latencies,
    last_ns: u64,
}

impl Trace {
    /// Nothing written yet, for a run of so many seconds: all its windows count.
    pub(crate) fn of_seconds(seconds: u64) -> Trace {
        let windows_max = seconds as usize * WINDOWS_PER_SECOND;
        Trace { windows: vec![0; windows_max], windows_max, ..Trace::open_ended() }
    }

    /// Nothing written yet, for a run that ends by itself: windows count until its last write.
    pub(crate) fn open_ended() -> Trace {
        Trace {
            windows: Vec::new(),
            windows_max: usize::MAX,
            idle_windows: Vec::new(),
            gaps_ns: Vec::new(),
            latencies: Latencies::default(),
            last_ns: 0,
        }
    }

    /// The client's first write begins at `now_ns`.
    pub(crate) fn begin(&mut self, now_ns: u64) {
        self.last_ns = now_ns;
    }

    /// A write was completed at `now_ns`; it began when the one before was completed.
    #[inline]
    pub(crate) fn completed(&mut self, now_ns: u64) {
        let latency_ns = now_ns.saturating_sub(self.last_ns);
        self.latencies.record(latency_ns);
        if latency_ns >= GAP_NS_MIN {
            self.gaps_ns.push((self.last_ns, now_ns));
        }
        self.last_ns = now_ns;
        let index = (now_ns / WINDOW_NS) as usize;
        if index >= self.windows.len() && index < self.windows_max {
            self.windows.resize(index + 1, 0);
        }
        if let Some(window) = self.windows.get_mut(index) {
            *window += 1;
        }
    }

    /// The client waited until `now_ns` because its rate is limited: neither a gap nor part of the
    /// next write.
    pub(crate) fn waited(&mut self, now_ns: u64) {
        let (first, last) = (self.last_ns / WINDOW_NS, now_ns / WINDOW_NS);
        for window in first..=last {
            if self.idle_windows.last() != Some(&(window as usize)) {
                self.idle_windows.push(window as usize);
            }
        }
        self.last_ns = now_ns;
    }

    /// Writes so far.
    pub(crate) fn count(&self) -> u64 {
        self.latencies.count()
    }

    /// Times of the writes.
    pub(crate) fn latencies(&self) -> &Latencies {
        &self.latencies
    }
}

/// What all clients together saw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Throughput {
    /// Writes that were completed in each whole second.
    pub per_second: Vec<u64>,
    /// Windows of 100 ms in which no client completed a write.
    pub gap_windows: u64,
    /// Runs of such windows.
    pub gap_runs: u64,
    /// All windows of 100 ms.
    pub windows: u64,
    /// The longest time in which no client completed a write, milliseconds.
    pub longest_gap_ms: f64,
    /// When it began, seconds since the start.
    pub longest_gap_at_s: f64,
    /// Times between two writes of a client, its own work included.
    pub latency: LatencySummary,
}

impl Throughput {
    /// Merges the clients' traces. A window in which a client waited because of its rate is no
    /// gap, whatever the others did.
    pub(crate) fn of(operation: &str, traces: &[&Trace]) -> Throughput {
        let count = traces.iter().map(|trace| trace.windows.len()).min().unwrap_or(0);
        let window = |index: usize| -> u64 {
            traces.iter().map(|trace| u64::from(trace.windows[index])).sum()
        };
        let windows: Vec<u64> = (0..count).map(window).collect();
        let idle = |index: &usize| {
            traces.iter().any(|trace| trace.idle_windows.binary_search(index).is_ok())
        };
        let is_gap = |index: usize| windows[index] == 0 && !idle(&index);
        let gaps = (0..count).filter(|index| is_gap(*index));
        let (from_ns, to_ns) = longest_common_gap(traces);
        let mut latencies = Latencies::default();
        traces.iter().for_each(|trace| latencies.merge(&trace.latencies));
        Throughput {
            per_second: windows.chunks_exact(WINDOWS_PER_SECOND).map(|w| w.iter().sum()).collect(),
            gap_windows: gaps.clone().count() as u64,
            gap_runs: gaps.filter(|index| *index == 0 || !is_gap(index - 1)).count() as u64,
            windows: count as u64,
            longest_gap_ms: (to_ns - from_ns) as f64 / 1e6,
            longest_gap_at_s: from_ns as f64 / 1e9,
            latency: LatencySummary::new(operation, &latencies),
        }
    }

    /// Share of the windows in which nothing was completed, 0 to 1.
    pub fn gap_share(&self) -> f64 {
        if self.windows == 0 { 0.0 } else { self.gap_windows as f64 / self.windows as f64 }
    }
}

/// The longest time in which every client was in a gap. Without one of a listed length it is the
/// longest latency of a single client, or nothing.
fn longest_common_gap(traces: &[&Trace]) -> (u64, u64) {
    let Some((first, others)) = traces.split_first() else { return (0, 0) };
    let mut common = first.gaps_ns.clone();
    for trace in others {
        common = intersection(&common, &trace.gaps_ns);
    }
    let longest = common.into_iter().max_by_key(|(from, to)| to - from);
    let short = if others.is_empty() { first.latencies.max() } else { 0 };
    longest.unwrap_or((0, short))
}

/// Where two ascending lists of intervals overlap.
fn intersection(left: &[(u64, u64)], right: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let (mut l, mut r) = (0, 0);
    let mut common = Vec::new();
    while let (Some(a), Some(b)) = (left.get(l), right.get(r)) {
        let (from, to) = (a.0.max(b.0), a.1.min(b.1));
        if from < to {
            common.push((from, to));
        }
        if a.1 < b.1 { l += 1 } else { r += 1 }
    }
    common
}

/// How even a series of figures per second is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evenness {
    /// The smallest.
    pub min: u64,
    /// The one that 1 % of the seconds do not exceed.
    pub p1: u64,
    /// The middle one.
    pub median: u64,
    /// The largest.
    pub max: u64,
    /// The mean.
    pub mean: f64,
    /// Standard deviation in units of the mean.
    pub variation: f64,
}

impl Evenness {
    /// The figures of a series; zeros without any.
    pub fn of(per_second: &[u64]) -> Evenness {
        let mut sorted = per_second.to_vec();
        sorted.sort_unstable();
        let count = sorted.len().max(1) as f64;
        let at = |share: f64| sorted.get((share * count) as usize).copied().unwrap_or(0);
        let mean = sorted.iter().sum::<u64>() as f64 / count;
        let variance = sorted.iter().map(|n| (*n as f64 - mean).powi(2)).sum::<f64>() / count;
        Evenness {
            min: at(0.0),
            p1: at(0.01),
            median: at(0.5),
            max: sorted.last().copied().unwrap_or(0),
            mean,
            variation: if mean > 0.0 { variance.sqrt() / mean } else { 0.0 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn trace(seconds: u64, completions_ms: &[u64]) -> Trace {
        let mut trace = Trace::of_seconds(seconds);
        completions_ms.iter().for_each(|ms| trace.completed(ms * MS));
        trace
    }

    #[test]
    fn windows_gaps_and_latencies_of_one_client() {
        // Windows 0, 4 and 9 of the first second, all of the second one but the last.
        let mut times: Vec<u64> = vec![10, 20, 410, 950];
        times.extend((0..9).map(|window| 1_050 + window * 100));
        times.push(2_001);
        let throughput = Throughput::of("overwrite", &[&trace(2, &times)]);
        assert_eq!(throughput.per_second, [4, 9]);
        assert_eq!((throughput.gap_windows, throughput.windows), (8, 20));
        assert_eq!(throughput.gap_runs, 3);
        assert_eq!(throughput.longest_gap_ms, 540.0);
        assert_eq!(throughput.longest_gap_at_s, 0.41);
        assert_eq!(throughput.latency.count, 14);
        assert_eq!(throughput.gap_share(), 0.4);
    }

    #[test]
    fn a_run_that_ends_by_itself_has_no_windows_after_its_end() {
        let mut trace = Trace::open_ended();
        [10, 20, 1_250].iter().for_each(|ms| trace.completed(ms * MS));
        let throughput = Throughput::of("put", &[&trace]);
        assert_eq!((throughput.windows, throughput.gap_windows), (13, 11));
        assert_eq!(throughput.per_second, [2]);
    }

    #[test]
    fn a_limited_client_that_waits_makes_no_gap() {
        let mut trace = Trace::of_seconds(1);
        trace.completed(10 * MS);
        trace.waited(350 * MS);
        trace.completed(352 * MS);
        trace.completed(752 * MS);
        trace.waited(995 * MS);
        let throughput = Throughput::of("put", &[&trace]);
        // Windows 4, 5 and 6: the write that ended at 752 took 400 ms.
        assert_eq!((throughput.gap_windows, throughput.gap_runs), (3, 1));
        assert_eq!((throughput.longest_gap_ms, throughput.longest_gap_at_s), (400.0, 0.352));
        assert_eq!(throughput.latency.max_ms, 400.0);
    }

    #[test]
    fn another_client_fills_a_gap() {
        let first = [100, 700, 800];
        let second = [90, 300, 650, 810];
        let throughput = Throughput::of("overwrite", &[&trace(1, &first), &trace(1, &second)]);
        // Nobody completed anything between 300 and 650.
        assert_eq!((throughput.longest_gap_ms, throughput.longest_gap_at_s), (350.0, 0.3));
        assert_eq!(throughput.per_second, [7]);
        assert_eq!(Throughput::of("overwrite", &[]).longest_gap_ms, 0.0);
    }

    #[test]
    fn evenness_of_seconds() {
        let even = Evenness::of(&[100; 50]);
        assert_eq!((even.min, even.p1, even.median, even.max), (100, 100, 100, 100));
        assert_eq!(even.variation, 0.0);
        let uneven = Evenness::of(&[0, 200, 0, 200]);
        assert_eq!((uneven.min, uneven.median, uneven.mean), (0, 200, 100.0));
        assert_eq!(uneven.variation, 1.0);
        assert_eq!(Evenness::of(&[]).mean, 0.0);
    }
}
