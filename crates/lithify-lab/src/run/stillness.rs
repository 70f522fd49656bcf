//! When a measuring process is given up: nothing moved in it for a long time.
//!
//! A line of progress that tells the same stage and the same amount as the one before is no
//! progress, nor is a phase that should have been over: an engine whose calls do not return is
//! still sampled every second. Pure: the time comes from the caller.

use std::time::{Duration, Instant};

use crate::run::progress::ProgressLine;

/// Longer than any settling or checking of a database that a run makes has taken: a slow cell is
/// not ended for being slow.
const STILL_MAX: Duration = Duration::from_secs(30 * 60);

/// Watches one process.
pub(super) struct Stillness {
    stage: String,
    done: u64,
    since: Instant,
}

impl Stillness {
    /// Of a process that was just started.
    pub(super) fn new(now: Instant) -> Stillness {
        Stillness { stage: "start".to_owned(), done: 0, since: now }
    }

    /// The process has told of its progress.
    pub(super) fn heard(&mut self, line: &ProgressLine, now: Instant) {
        let is_overdue = line.total > 0 && line.done > line.total;
        let moved = line.stage != self.stage || (line.done != self.done && !is_overdue);
        if moved {
            *self = Stillness { stage: line.stage.clone(), done: line.done, since: now };
        }
    }

    /// Why the process is given up, if it is.
    pub(super) fn verdict(&self, now: Instant) -> Option<String> {
        let still = now.saturating_duration_since(self.since);
        (still >= STILL_MAX).then(|| {
            format!(
                "it stood still for {} minutes in \"{}\" and was ended",
                still.as_secs() / 60,
                self.stage
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn silence_is_stillness() {
        let start = Instant::now();
        let mut stillness = Stillness::new(start);
        stillness.heard(&ProgressLine::of_stage("settle"), start + MINUTE);
        assert_eq!(stillness.verdict(start + 30 * MINUTE), None);
        let verdict = stillness.verdict(start + 31 * MINUTE);
        assert_eq!(
            verdict.as_deref(),
            Some("it stood still for 30 minutes in \"settle\" and was ended")
        );
    }

    #[test]
    fn the_same_amount_again_and_overtime_are_stillness() {
        let start = Instant::now();
        let mut stillness = Stillness::new(start);
        let load = |done| ProgressLine::of_progress("load", [done, 100], "links", 0);
        stillness.heard(&load(7), start);
        stillness.heard(&load(7), start + 20 * MINUTE);
        assert!(stillness.verdict(start + 30 * MINUTE).is_some());
        stillness.heard(&load(8), start + 30 * MINUTE);
        assert_eq!(stillness.verdict(start + 59 * MINUTE), None);
        let query = |done| ProgressLine::of_progress("query", [done, 10], "seconds", 0);
        stillness.heard(&query(10), start + 40 * MINUTE);
        (11..1000).for_each(|second| stillness.heard(&query(second), start + 60 * MINUTE));
        assert!(stillness.verdict(start + 70 * MINUTE).is_some());
    }
}
