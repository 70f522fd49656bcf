//! A process that commits is killed at a random moment, again and again over one database.
//!
//! 1. The child opens the database, writes what was acknowledged and seen into a file beside it,
//!    and says on its standard output that it is at work.
//! 2. The parent kills it by SIGKILL a random time after that. What the file held then the
//!    operating system still has.
//! 3. The parent opens the database, counts, and starts the next child behind what survived.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lithify::fs::World;
use serde::{Deserialize, Serialize};

use super::writers::{self, Counts, Witness};
use super::{Crash, DurabilitySpec, LossFigures, Mode, open};
use crate::random::Random;
use crate::report::figures::Spread;
use crate::run::RunError;
use crate::run::memory_limit::{self, Controller};
use crate::run::process::{JobEnd, Program, absolute, end_with_parent, run_job as run_process};
use crate::run::progress::{Listener, ProgressLine};

/// Threads that commit.
pub const WRITERS: usize = 4;

/// Threads of flush and compaction.
const BACKGROUND_THREADS: usize = 1;

/// A child is killed after a time up to this, milliseconds.
const LIFE_MS_MAX: u64 = 300;

/// A child that nobody kills ends by itself after this.
const LIFE_MAX: Duration = Duration::from_secs(60);

/// What the child reads on its standard input.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KillJob {
    /// When commits return.
    pub mode: Mode,
    /// Length of a value, bytes.
    pub value_bytes: u64,
    /// Rows of each writer that are there.
    pub first: Vec<u64>,
    /// The database.
    pub directory: PathBuf,
    /// Where the counts go.
    pub witness_path: PathBuf,
    /// The control group that limits the memory of this process and of its page cache, if any.
    pub memory_group: Option<PathBuf>,
    /// The process that kills this one.
    pub parent: u32,
}

/// The child: commits until it is killed.
///
/// # Errors
/// The engine's; nobody killed it.
pub fn run_job(job: &KillJob, listener: Listener<'_>) -> Result<(), RunError> {
    end_with_parent(job.parent)?;
    job.memory_group.as_deref().map_or(Ok(()), memory_limit::join)?;
    let (_db, family) = open(&job.directory, World::system(), job.mode, BACKGROUND_THREADS)?;
    let witness = Witness::in_file(&job.witness_path, &job.first)?;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let work = scope.spawn(|| writers::run(&family, &witness, job.value_bytes, true, &stop));
        let start = Instant::now();
        while start.elapsed() < LIFE_MAX && !stop.load(Ordering::SeqCst) {
            listener(&ProgressLine::of_stage("at work"));
            thread::sleep(Duration::from_millis(1));
        }
        stop.store(true, Ordering::SeqCst);
        work.join().unwrap_or_else(|_| Err(RunError::new("the workload failed")))
    })?;
    Err(RunError::new("nobody killed this process"))
}

/// The kills of one mode. `directory` exists and is empty.
///
/// # Errors
/// The engine's, memory that cannot be limited, a process that ended by itself.
pub(super) fn measure(
    spec: &DurabilitySpec,
    mode: Mode,
    program: &Program,
    directory: &Path,
    listener: Listener<'_>,
) -> Result<LossFigures, RunError> {
    let group = match spec.memory_limit_mib {
        Some(limit_mib) => Some(Controller::find()?.create(limit_mib << 20)?),
        None => None,
    };
    let mut job = KillJob {
        mode,
        value_bytes: spec.value_bytes,
        first: vec![0; WRITERS],
        witness_path: absolute(&directory.join("witness"))?,
        directory: absolute(&directory.join("db"))?,
        memory_group: group.as_ref().map(|group| group.path().to_owned()),
        parent: std::process::id(),
    };
    std::fs::create_dir(&job.directory).map_err(|error| RunError::io(&job.directory, error))?;
    let mut random = Random::new(spec.seed, mode as u64);
    let mut tally = Tally::new(LossFigures::new(mode, Crash::ProcessEnd));
    for kill in 0..spec.kills {
        let life = Duration::from_millis(1 + random.below(LIFE_MS_MAX));
        live_and_die(program, &job, life)?;
        let before = Witness::read(&job.witness_path)?;
        let first = std::mem::take(&mut job.first);
        job.first = tally.count(&job, &first, &before)?;
        let done = [kill + 1, spec.kills];
        listener(&ProgressLine::of_progress("kills", done, "kills", 0));
    }
    Ok(tally.finish())
}

/// Starts a child and kills it so long after it began to work.
fn live_and_die(program: &Program, job: &KillJob, life: Duration) -> Result<(), RunError> {
    let log = job.witness_path.with_file_name("log");
    let killed = AtomicBool::new(false);
    let mut began: Option<Instant> = None;
    let mut listen = |_: &ProgressLine| {
        if began.get_or_insert_with(Instant::now).elapsed() >= life {
            killed.store(true, Ordering::Relaxed);
        }
    };
    match run_process(program, job, &log, &killed, &mut listen)? {
        JobEnd::Interrupted => Ok(()),
        JobEnd::Failed(why) => Err(RunError::new(format!("the process to be killed: {why}"))),
        JobEnd::Succeeded => Err(RunError::new("the process to be killed ended by itself")),
    }
}

/// Adds up what crashes took.
pub(super) struct Tally {
    figures: LossFigures,
    recoveries_ms: Vec<f64>,
}

impl Tally {
    pub(super) fn new(figures: LossFigures) -> Tally {
        Tally { figures, recoveries_ms: Vec::new() }
    }

    /// Opens what a kill left and counts; gives the rows of each writer that survived.
    fn count(
        &mut self,
        job: &KillJob,
        first: &[u64],
        before: &[Counts],
    ) -> Result<Vec<u64>, RunError> {
        let start = Instant::now();
        let (db, family) = open(&job.directory, World::system(), job.mode, BACKGROUND_THREADS)?;
        self.recovered(start.elapsed());
        let rows = self.compare(&family, first, before)?;
        drop(family);
        db.close().map_err(|error| RunError::new(format!("close: {error}")))?;
        Ok(rows)
    }

    pub(super) fn recovered(&mut self, time: Duration) {
        self.recoveries_ms.push(time.as_secs_f64() * 1e3);
    }

    /// Compares what survived a crash with what was acknowledged and seen before it. `first` are
    /// the rows that were there when the writers began.
    pub(super) fn compare(
        &mut self,
        family: &lithify::ColumnFamily,
        first: &[u64],
        before: &[Counts],
    ) -> Result<Vec<u64>, RunError> {
        let (mut acknowledged_lost, mut visible_lost, mut has_hole) = (0, 0, false);
        let mut survivors = Vec::with_capacity(before.len());
        for (writer, (counts, first)) in before.iter().zip(first).enumerate() {
            let survived = writers::survived(family, writer, *first)?;
            self.figures.acknowledged += counts.acknowledged.saturating_sub(*first);
            acknowledged_lost += counts.acknowledged.saturating_sub(survived.rows);
            visible_lost += counts.seen.saturating_sub(survived.rows);
            has_hole |= survived.has_hole;
            survivors.push(survived.rows);
        }
        self.figures.crashes += 1;
        self.figures.acknowledged_lost.add(acknowledged_lost);
        self.figures.visible_lost.add(visible_lost);
        self.figures.holes += u64::from(has_hole);
        Ok(survivors)
    }

    /// A lost commit had returned so long before the crash.
    pub(super) fn lost_ms(&mut self, age_ms: f64) {
        self.figures.oldest_lost_ms = self.figures.oldest_lost_ms.max(age_ms);
    }

    pub(super) fn finish(mut self) -> LossFigures {
        if let Some(spread) = Spread::of(self.recoveries_ms) {
            self.figures.recovery_ms = [spread.median, spread.max];
        }
        self.figures
    }
}
