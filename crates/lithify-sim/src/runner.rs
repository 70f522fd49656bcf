//! Drives a check: cases one after the other or several at once, until it has done enough, was
//! told to stop, or has found enough.
//!
//! Cases are handed out in order, and every one that was begun is ended: a run that was stopped
//! goes on at [`Report::next_case`].

use crate::check::{Check, Finding, Goal, Tally, run_case};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How often a run says how far it is.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// When to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// At the goal.
    Goal(Goal),
    /// After so many seconds.
    Seconds(u64),
}

/// What is to be run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// When to stop, if nothing is found.
    pub limit: Limit,
    /// The first case.
    pub first_case: u64,
    /// Cases at once.
    pub jobs: usize,
    /// After so many findings no case is begun any more.
    pub findings_max: usize,
}

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// What is done of `total`.
    pub done: u64,
    /// What there is to do.
    pub total: u64,
    /// What is counted: cases, seconds, or a counter of the tally.
    pub unit: &'static str,
    /// Since the run began.
    pub elapsed: Duration,
    /// Findings so far.
    pub findings: usize,
    /// The case that has been running longest, and since when.
    pub oldest: Option<(u64, Duration)>,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// The name of the check.
    pub check: &'static str,
    /// The first case.
    pub first_case: u64,
    /// All cases before this one were run.
    pub next_case: u64,
    /// What was done.
    pub tally: Tally,
    /// What was found, by case.
    pub findings: Vec<Finding>,
    /// How long it took.
    pub elapsed: Duration,
    /// Whether it was told to stop before it had done enough.
    pub was_stopped: bool,
}

struct Shared {
    next_case: u64,
    /// The cases under way, by worker.
    running: Vec<Option<(u64, Instant)>>,
    tally: Tally,
    findings: Vec<Finding>,
    workers: usize,
}

struct Run<'c> {
    check: &'c dyn Check,
    plan: Plan,
    stop: &'c AtomicBool,
    started: Instant,
    shared: Mutex<Shared>,
    /// Notified when a worker ends.
    ended: Condvar,
}

/// Runs a check; `watch` hears how far it is.
pub fn run(
    check: &dyn Check,
    plan: Plan,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(Progress),
) -> Report {
    let jobs = plan.jobs.max(1);
    let shared = Shared {
        next_case: plan.first_case,
        running: vec![None; jobs],
        tally: Tally::default(),
        findings: Vec::new(),
        workers: jobs,
    };
    let run = Run {
        check,
        plan,
        stop,
        started: Instant::now(),
        shared: Mutex::new(shared),
        ended: Condvar::new(),
    };
    thread::scope(|scope| {
        let run = &run;
        (0..jobs).for_each(|worker| drop(scope.spawn(move || run.work(worker))));
        run.look_on(watch);
    });
    let is_enough = run.is_enough(&run.shared());
    let elapsed = run.started.elapsed();
    let mut shared = run.shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    shared.findings.sort_by_key(|finding| finding.case);
    Report {
        check: check.name(),
        first_case: plan.first_case,
        next_case: shared.next_case,
        tally: shared.tally,
        findings: shared.findings,
        elapsed,
        was_stopped: !is_enough && stop.load(Ordering::Relaxed),
    }
}

/// Runs the first cases of a check on all processors, unwatched, until so much is found.
pub fn run_first(check: &dyn Check, cases: u64, findings_max: usize) -> Report {
    let jobs = thread::available_parallelism().map_or(1, usize::from);
    let plan = Plan { limit: Limit::Goal(Goal::Cases(cases)), first_case: 0, jobs, findings_max };
    run(check, plan, &AtomicBool::new(false), &mut |_| {})
}

impl Run<'_> {
    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self, worker: usize) {
        while let Some(case) = self.begin_case(worker) {
            let mut tally = Tally::default();
            let outcome = run_case(self.check, case, &mut tally);
            let mut shared = self.shared();
            shared.tally.merge(tally);
            shared.findings.extend(outcome.err());
            shared.running[worker] = None;
        }
        self.shared().workers -= 1;
        self.ended.notify_all();
    }

    fn begin_case(&self, worker: usize) -> Option<u64> {
        let mut shared = self.shared();
        let is_over = self.stop.load(Ordering::Relaxed)
            || shared.findings.len() >= self.plan.findings_max
            || self.is_enough(&shared);
        if is_over {
            return None;
        }
        let case = shared.next_case;
        shared.next_case += 1;
        shared.running[worker] = Some((case, Instant::now()));
        Some(case)
    }

    /// Whether no case has to be begun any more.
    fn is_enough(&self, shared: &Shared) -> bool {
        let is_behind_last = self.check.cases().is_some_and(|cases| shared.next_case >= cases);
        is_behind_last || {
            let (done, total, _) = self.measure(shared, shared.next_case);
            done >= total
        }
    }

    /// What is done, of how much, and what is counted.
    fn measure(&self, shared: &Shared, cases_until: u64) -> (u64, u64, &'static str) {
        let first = self.plan.first_case;
        match self.plan.limit {
            Limit::Goal(Goal::Cases(wanted)) => {
                let last = first.saturating_add(wanted);
                let last = self.check.cases().map_or(last, |cases| last.min(cases));
                (cases_until - first, last.saturating_sub(first), "cases")
            }
            Limit::Goal(Goal::Count(name, wanted)) => (shared.tally.get(name), wanted, name),
            Limit::Seconds(seconds) => (self.started.elapsed().as_secs(), seconds, "seconds"),
        }
    }

    /// Says how far the run is until all workers have ended.
    fn look_on(&self, watch: &mut dyn FnMut(Progress)) {
        let mut shared = self.shared();
        while shared.workers > 0 {
            let running = shared.running.iter().flatten().count() as u64;
            let (done, total, unit) = self.measure(&shared, shared.next_case - running);
            let oldest = shared.running.iter().flatten().min_by_key(|(_, since)| *since);
            let progress = Progress {
                done,
                total,
                unit,
                elapsed: self.started.elapsed(),
                findings: shared.findings.len(),
                oldest: oldest.map(|(case, since)| (*case, since.elapsed())),
            };
            drop(shared);
            watch(progress);
            let waited = self.ended.wait_timeout(self.shared(), LOOK_INTERVAL);
            shared = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Finds multiples of ten.
    struct Tens(Option<u64>);

    impl Check for Tens {
        fn name(&self) -> &'static str {
            "tens"
        }

        fn about(&self) -> &'static str {
            "finds multiples of ten"
        }

        fn cases(&self) -> Option<u64> {
            self.0
        }

        fn run_case(&self, case: u64, tally: &mut Tally) -> Result<(), Finding> {
            tally.count("sum", case);
            tally.distinct("ends", case % 5);
            match case % 10 {
                0 => Err(Finding::new(self, case, "a ten")),
                _ => Ok(()),
            }
        }
    }

    fn run_tens(cases: Option<u64>, goal: Goal, first_case: u64, jobs: usize) -> Report {
        let plan = Plan { limit: Limit::Goal(goal), first_case, jobs, findings_max: 3 };
        run(&Tens(cases), plan, &AtomicBool::new(false), &mut |progress| {
            assert!(progress.done <= progress.total || progress.unit != "cases");
        })
    }

    #[test]
    fn a_run_ends_at_its_goal_its_last_case_or_its_findings() {
        let report = run_tens(None, Goal::Cases(9), 1, 2);
        assert_eq!((report.next_case, report.findings.len()), (10, 0));
        assert_eq!((report.tally.get("cases"), report.tally.get("sum")), (9, 45));
        assert!(!report.was_stopped);
        let report = run_tens(Some(7), Goal::Cases(100), 2, 1);
        assert_eq!((report.next_case, report.tally.get("cases")), (7, 5));
        let report = run_tens(None, Goal::Count("ends", 3), 1, 1);
        assert_eq!(report.next_case, 4);
        let report = run_tens(None, Goal::Cases(1000), 0, 1);
        let cases: Vec<u64> = report.findings.iter().map(|finding| finding.case).collect();
        assert_eq!((cases, report.next_case), (vec![0, 10, 20], 21));
        assert_eq!(run_tens(Some(5), Goal::Cases(9), 8, 1).tally.get("cases"), 0);
    }

    #[test]
    fn a_run_that_is_stopped_says_where_it_goes_on() {
        let limit = Limit::Goal(Goal::Cases(u64::MAX));
        let plan = Plan { limit, first_case: 1, jobs: 2, findings_max: usize::MAX };
        let stop = AtomicBool::new(false);
        let report = run(&Tens(None), plan, &stop, &mut |_| stop.store(true, Ordering::Relaxed));
        assert!(report.was_stopped);
        assert_eq!(report.next_case - report.first_case, report.tally.get("cases"));
        let plan = Plan { limit: Limit::Seconds(0), ..plan };
        let report = run(&Tens(None), plan, &AtomicBool::new(false), &mut |_| {});
        assert_eq!(report.tally.get("cases"), 0);
    }
}
