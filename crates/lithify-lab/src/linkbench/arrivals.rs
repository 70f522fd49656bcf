//! Requests that arrive at a fixed rate, whether or not earlier ones were answered.
//!
//! Arrival `k` (from 0) is due `k / rate` seconds after the phase opens. All requesters take
//! arrivals from one queue in the order in which they are due; one that is taken late was waiting,
//! and its latency counts from when it was due. A slow answer therefore delays, and is seen by,
//! everything that arrives meanwhile, as it would be by users who do not wait for each other.
//!
//! Threads: an `Arrivals` is shared by the requesters.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// When arrivals are due.
#[derive(Clone, Copy, Debug)]
struct Schedule {
    per_second: f64,
}

impl Schedule {
    /// When arrival `number` is due, since the phase opened.
    fn due(self, number: u64) -> Duration {
        Duration::from_secs_f64(number as f64 / self.per_second)
    }

    /// Arrivals that are due before `elapsed`.
    fn due_before(self, elapsed: Duration) -> u64 {
        (elapsed.as_secs_f64() * self.per_second).ceil() as u64
    }
}

/// An arrival that a requester has taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// When it is due.
    pub(super) due: Instant,
    number: u64,
}

/// The queue of a phase.
#[derive(Debug)]
pub(super) struct Arrivals {
    schedule: Schedule,
    length: Duration,
    opened: OnceLock<Instant>,
    next: AtomicU64,
}

impl Arrivals {
    /// `per_second` arrivals over `length` from the first call of [`Arrivals::take`] on; `None`
    /// for a rate of 0: nobody waits for arrivals.
    pub(super) fn new(per_second: f64, length: Duration) -> Option<Arrivals> {
        (per_second > 0.0).then(|| Arrivals {
            schedule: Schedule { per_second },
            length,
            opened: OnceLock::new(),
            next: AtomicU64::new(0),
        })
    }

    fn opened(&self) -> Instant {
        *self.opened.get_or_init(Instant::now)
    }

    /// The next arrival; `None` when all that fall into the phase are taken.
    pub(super) fn take(&self) -> Option<Arrival> {
        let opened = self.opened();
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        (number < self.schedule.due_before(self.length))
            .then(|| Arrival { due: opened + self.schedule.due(number), number })
    }

    /// Arrivals that wait behind `arrival` at `now`.
    pub(super) fn waiting(&self, arrival: Arrival, now: Instant) -> u64 {
        let elapsed = now.saturating_duration_since(self.opened()).min(self.length);
        self.schedule.due_before(elapsed).saturating_sub(arrival.number + 1)
    }

    /// What came of it: `served` arrivals were answered, the longest queue was `queue_max`.
    pub(super) fn outcome(&self, served: u64, queue_max: u64) -> OpenLoop {
        let due = self.schedule.due_before(self.length);
        OpenLoop {
            per_second: self.schedule.per_second,
            due,
            served,
            queue_max,
            queue_at_end: due.saturating_sub(served),
        }
    }
}

/// How a phase with a fixed rate of arrivals went.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenLoop {
    /// Arrivals per second, as intended.
    pub per_second: f64,
    /// Arrivals that were due within the phase.
    pub due: u64,
    /// Of them answered within the phase.
    pub served: u64,
    /// Most arrivals that waited at once.
    pub queue_max: u64,
    /// Arrivals that were due and not answered when the phase ended.
    pub queue_at_end: u64,
}

/// Least share of the arrivals that must be answered for the rate to count as reached.
const REACHED_MIN: f64 = 0.99;

impl OpenLoop {
    /// True when practically all that arrived was answered: otherwise the queue grew without end
    /// and the latencies are those of a phase of this length only.
    pub fn reached(&self) -> bool {
        self.served as f64 >= REACHED_MIN * self.due as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_are_evenly_spaced_and_end_with_the_phase() {
        assert!(Arrivals::new(0.0, Duration::from_secs(1)).is_none());
        let arrivals = Arrivals::new(250.0, Duration::from_secs(2)).expect("a rate");
        let taken: Vec<Arrival> = std::iter::from_fn(|| arrivals.take()).collect();
        assert_eq!(taken.len(), 500);
        let opened = taken[0].due;
        assert!((0..).zip(&taken).all(|(k, a)| a.due - opened == Duration::from_millis(4 * k)));
        assert!(arrivals.take().is_none());
    }

    #[test]
    fn the_queue_is_what_is_due_and_not_taken() {
        let arrivals = Arrivals::new(1000.0, Duration::from_secs(1)).expect("a rate");
        let first = arrivals.take().expect("an arrival");
        assert_eq!(arrivals.waiting(first, first.due), 0);
        // At 100 ms those of 1 ms to 99 ms wait: the one of 100 ms is not late yet.
        assert_eq!(arrivals.waiting(first, first.due + Duration::from_millis(100)), 99);
        assert_eq!(arrivals.waiting(first, first.due + Duration::from_secs(60)), 999);
    }

    #[test]
    fn a_rate_is_reached_when_practically_all_is_answered() {
        let arrivals = Arrivals::new(1000.0, Duration::from_secs(1)).expect("a rate");
        let outcome = arrivals.outcome(990, 7);
        assert_eq!((outcome.due, outcome.queue_at_end, outcome.queue_max), (1000, 10, 7));
        assert!(outcome.reached() && !arrivals.outcome(989, 0).reached());
    }
}
