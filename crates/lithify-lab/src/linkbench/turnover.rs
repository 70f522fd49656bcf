//! Ages of the data: rate and size of a query phase at each turnover on its way.
//!
//! The turnover is the number of write operations since the load, those of warm-ups included, per
//! loaded node. Ages are taken when progress is told, about once a second, so that each has the
//! turnover that it was really taken at; the phase itself ends at the last one to the operation.
//! Nothing is flushed or waited for in between: the data age as they would.
//!
//! Threads: told by the phase's coordinating thread; read when the phase is over.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::linkbench::cell::{Age, CellSpec};
use crate::linkbench::control::RequestProgress;
use crate::linkbench::request::RequestOutcome;
use crate::meter::space::DirectorySize;

/// Directory and used bytes of a file system of its own, as they are now.
pub(super) type Sizes<'a> = dyn Fn() -> (DirectorySize, Option<u64>) + 'a;

/// The ages of one phase.
pub(super) struct Ages<'a> {
    turnovers: &'a [f64],
    nodes: u64,
    /// Write operations before the phase.
    writes_before: u64,
    taken: Mutex<Vec<Age>>,
}

impl<'a> Ages<'a> {
    /// Those of a phase of `spec` that begins after so many write operations.
    pub(super) fn new(spec: &'a CellSpec, writes_before: u64) -> Ages<'a> {
        Ages {
            turnovers: &spec.turnovers,
            nodes: spec.nodes,
            writes_before,
            taken: Mutex::default(),
        }
    }

    /// Write operations after which the phase ends; `None` when it ends by time alone.
    pub(super) fn writes_until_end(&self) -> Option<u64> {
        let writes = (self.turnovers.last()? * self.nodes as f64).ceil() as u64;
        Some(writes.saturating_sub(self.writes_before).max(1))
    }

    /// Write operations after which a warm-up before the phase ends: half of the way to the first
    /// age, or there might be none left. `None` when it ends by time alone.
    pub(super) fn writes_of_warm_up(&self) -> Option<u64> {
        let half = self.turnovers.first()? / 2.0;
        Some(((half * self.nodes as f64) as u64).max(1))
    }

    /// How much of the phase is over by its writes, from 0; 0 for one that ends by time alone.
    pub(super) fn share(&self, progress: &RequestProgress) -> f64 {
        self.writes_until_end().map_or(0.0, |all| progress.writes as f64 / all as f64)
    }

    /// Takes an age when the next turnover is reached.
    pub(super) fn tell(&self, progress: &RequestProgress, sizes: &Sizes<'_>) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let last = taken.last().map_or(0.0, |age| age.turnover);
        let turnover = (self.writes_before + progress.writes) as f64 / self.nodes as f64;
        let is_due = self.turnovers.iter().any(|due| last < *due && *due <= turnover);
        if is_due {
            taken.push(age(turnover, progress.elapsed, progress.requests, sizes));
        }
    }

    /// Takes the age at the end, when that was not the last turnover.
    pub(super) fn finish(&self, outcome: &RequestOutcome, sizes: &Sizes<'_>) {
        let Some(end) = self.turnovers.last() else { return };
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let turnover = (self.writes_before + outcome.writes) as f64 / self.nodes as f64;
        if taken.last().is_none_or(|age| age.turnover < turnover.min(*end)) {
            let seconds = Duration::from_secs_f64(outcome.seconds);
            taken.push(age(turnover, seconds, outcome.requests, sizes));
        }
    }

    /// What was taken, youngest first.
    pub(super) fn into_taken(self) -> Vec<Age> {
        self.taken.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

fn age(turnover: f64, elapsed: Duration, operations: u64, sizes: &Sizes<'_>) -> Age {
    let (directory, file_system_bytes) = sizes();
    Age { turnover, seconds: elapsed.as_secs_f64(), operations, directory, file_system_bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODES: u64 = 1_000;

    fn ages<'a>(turnovers: &'a [f64], writes_before: u64) -> Ages<'a> {
        Ages { turnovers, nodes: NODES, writes_before, taken: Mutex::default() }
    }

    fn at(seconds: u64, writes: u64) -> RequestProgress {
        let elapsed = Duration::from_secs(seconds);
        RequestProgress { elapsed, requests: 3 * writes, writes, warming_up: false }
    }

    fn sizes() -> (DirectorySize, Option<u64>) {
        (DirectorySize { allocated_bytes: 4096, ..DirectorySize::default() }, Some(2048))
    }

    #[test]
    fn every_turnover_is_taken_once_where_it_was_reached() {
        // A hundred writes of the warm-up.
        let phase = ages(&[0.1, 0.3, 0.6], 50);
        assert_eq!((phase.writes_of_warm_up(), phase.writes_until_end()), (Some(50), Some(550)));
        for (second, writes) in [(1, 20), (2, 60), (3, 90), (4, 260), (5, 270), (6, 551)] {
            phase.tell(&at(second, writes), &sizes);
        }
        assert!((phase.share(&at(3, 275)) - 0.5).abs() < 1e-9);
        let taken = phase.into_taken();
        let seen: Vec<_> = taken.iter().map(|age| (age.turnover, age.seconds)).collect();
        assert_eq!(seen, [(0.11, 2.0), (0.31, 4.0), (0.601, 6.0)]);
        assert_eq!((taken[1].operations, taken[1].file_system_bytes), (780, Some(2048)));
    }

    /// Two turnovers within a second are one age.
    #[test]
    fn what_is_passed_at_once_is_one_age() {
        let phase = ages(&[0.1, 0.3], 0);
        phase.tell(&at(1, 400), &sizes);
        phase.tell(&at(2, 500), &sizes);
        assert_eq!(phase.into_taken().len(), 1);
    }

    #[test]
    fn an_end_before_the_last_turnover_is_an_age_too() {
        let mut outcome: RequestOutcome = serde_json::from_value(serde_json::json!({
            "requests": 900, "seconds": 9.5, "requests_per_second": 94.7, "writes": 200,
            "retries": 0, "failures": 0, "first_error": null, "aborted": false, "cancelled": false,
            "latencies": [], "operations": [], "per_second": [], "rows_read": 0, "bytes_read": 0,
            "range_sizes": {"reads": 0, "from_history": 0, "mean": 0.0, "p50": 0, "p99": 0,
                            "max": 0},
            "observed_stalls": {"windows": 0, "empty_windows": 0, "runs": 0, "longest_run": 0},
            "read_hash": 0, "next_node_id": 1, "next_time_ms": 1,
        }))
        .expect("is an outcome");
        let phase = ages(&[0.1, 0.6], 0);
        phase.tell(&at(4, 100), &sizes);
        phase.finish(&outcome, &sizes);
        let taken = phase.into_taken();
        let seen: Vec<_> = taken.iter().map(|age| (age.turnover, age.seconds)).collect();
        assert_eq!(seen, [(0.1, 4.0), (0.2, 9.5)]);

        let reached = ages(&[0.2], 0);
        reached.tell(&at(9, 200), &sizes);
        reached.finish(&outcome, &sizes);
        assert_eq!(reached.into_taken().len(), 1);

        outcome.writes = 0;
        let by_time = ages(&[], 0);
        by_time.finish(&outcome, &sizes);
        assert_eq!((by_time.writes_of_warm_up(), by_time.writes_until_end()), (None, None));
        assert_eq!(by_time.share(&at(1, 1)), 0.0);
        assert!(by_time.into_taken().is_empty());
    }
}
