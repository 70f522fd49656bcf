//! Rate and latency of commits on the real file system.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lithify::fs::World;
use lithify::stats::Counter;

use super::writers::{Witness, run};
use super::{CommitFigures, DurabilitySpec, Mode, open};
use crate::latency::LatencySummary;
use crate::meter::process::ProcessCpu;
use crate::run::RunError;

/// Threads of flush and compaction.
const BACKGROUND_THREADS: usize = 2;

impl CommitFigures {
    /// Commits per second.
    pub fn rate(&self) -> f64 {
        self.commits as f64 / self.seconds.max(1e-9)
    }
}

/// Lets so many writers commit in that mode for the time, in an empty database in `directory`. `tick`
/// hears of every second.
///
/// # Errors
/// The engine's.
pub fn measure(
    spec: &DurabilitySpec,
    mode: Mode,
    writers: u64,
    directory: &Path,
    tick: &dyn Fn(u64),
) -> Result<CommitFigures, RunError> {
    let (db, family) = open(directory, World::system(), mode, BACKGROUND_THREADS)?;
    let witness = Witness::new(&vec![0; writers as usize], false);
    let stop = AtomicBool::new(false);
    let (cpu, start) = (ProcessCpu::of_self(), Instant::now());
    let latencies = thread::scope(|scope| {
        let work = scope.spawn(|| run(&family, &witness, spec.value_bytes, false, &stop));
        let end = Duration::from_secs_f64(spec.seconds);
        let mut told_s = 0;
        while start.elapsed() < end && !stop.load(Ordering::SeqCst) {
            if start.elapsed().as_secs() > told_s {
                told_s = start.elapsed().as_secs();
                tick(told_s);
            }
            thread::sleep(Duration::from_millis(5).min(end.saturating_sub(start.elapsed())));
        }
        stop.store(true, Ordering::SeqCst);
        work.join().unwrap_or_else(|_| Err(RunError::new("the workload failed")))
    })?;
    let seconds = start.elapsed().as_secs_f64();
    let cpu_us = ProcessCpu::of_self().since(&cpu).total_us();
    let statistics = db.stats();
    drop(family);
    db.close().map_err(|error| RunError::new(format!("close: {error}")))?;
    let count = |counter| statistics.figures.counter(counter);
    Ok(CommitFigures {
        mode,
        writers,
        seconds,
        commits: latencies.count(),
        groups: count(Counter::CommitGroups),
        syncs: count(Counter::WalSyncs),
        cpu_us,
        latency: LatencySummary::new("commit", &latencies),
    })
}
