//! What is left of acknowledged writes when the process is killed, and how often a commit syncs.
//!
//! The child is this same program, started with one test to run, which calls [`child`].
//!
//! 1. Two threads commit rows in both spaces, by batches and by transactions in turn, and write the
//!    number of the last acknowledged commit into a file: what a killed process wrote the operating
//!    system still has.
//! 2. When both have done enough the parent kills the child by SIGKILL and opens the database. In
//!    the modes `sync` and `buffered` everything that was acknowledged is there, and what comes
//!    behind it is there whole or not at all. Mode `none` may lose, but opens, and holds nothing
//!    that was never written.
//! 3. Another child commits a fixed number of times under `strace`, which counts calls that make
//!    files durable: with `sync` there is at least one for each commit, with `buffered` there are
//!    far fewer. A tracer sees what no counter of the process or of the device tells: the kernel
//!    counts bytes by process and flushes by device. Where there is no `strace`, or tracing is not
//!    allowed, the case prints a line and passes.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::{Failures, LISTS, PLAIN, SPACES, Subject, Verdict, same, text, value};
use crate::adapter::provider::Transactions;
use crate::adapter::settings::DurabilityMode;
use crate::adapter::settings::EngineSettings;
use crate::adapter::{Engine, EngineError, EngineName, EngineResult, Session, WriteBatch};
use crate::engines::registry;
use crate::run::process::end_with_parent;

/// Where the child finds what to do.
const JOB: &str = "LITHIFY_CONFORMANCE_JOB";

/// Threads that commit until they are killed.
const WRITERS: u64 = 2;

/// Acknowledged commits of each thread before the kill.
const ACKNOWLEDGED: u64 = 400;
/// The same when each waits for the device.
const ACKNOWLEDGED_SYNCED: u64 = 100;

/// Commits whose syncs are counted; opening and closing sync a few dozen times at most.
const COUNTED: u64 = 200;

/// A child that does not get on in so long is at fault.
const PATIENCE: Duration = Duration::from_secs(120);

/// What the child does.
#[derive(Serialize, Deserialize)]
struct Job {
    engine: EngineName,
    settings: EngineSettings,
    directory: PathBuf,
    witness: PathBuf,
    /// One thread and so many commits; without end by [`WRITERS`] when `None`.
    commits: Option<u64>,
    /// Ends the child with it; `None` where a tracer stands between.
    parent: Option<u32>,
}

/// The child's side: does nothing unless the parent started this process for it.
///
/// # Panics
/// When the engine fails, so that the child's test does.
pub fn child() {
    let Ok(job) = std::env::var(JOB) else { return };
    let done =
        serde_json::from_str(&job).map_err(|error| error.to_string()).and_then(|job| work(&job));
    assert!(done.is_ok(), "{done:?}");
}

fn work(job: &Job) -> Verdict {
    job.parent.map_or(Ok(()), end_with_parent).map_err(|error| error.to_string())?;
    let witness = File::create(&job.witness).map_err(|error| error.to_string())?;
    let engine = registry::open_spaces(
        &job.engine,
        &job.directory,
        &job.settings,
        &SPACES,
        Transactions::Needed,
    );
    let engine = engine.map_err(text)?;
    let (writers, commits) = match job.commits {
        Some(commits) => (1, commits),
        None => (WRITERS, u64::MAX),
    };
    thread::scope(|scope| {
        let write = |writer| write_rows(&*engine, &witness, writer, commits);
        let threads: Vec<_> =
            (0..writers).map(|writer| scope.spawn(move || write(writer))).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err(EngineError::fatal("a thread failed")))
        })
    })
    .map_err(text)?;
    engine.close().map_err(text)
}

fn write_rows(engine: &dyn Engine, witness: &File, writer: u64, commits: u64) -> EngineResult<()> {
    let mut session = engine.session()?;
    let mut batch = WriteBatch::new();
    for number in 1..=commits {
        while let Err(error) = commit(&mut *session, &mut batch, writer, number) {
            session.rollback()?;
            if !error.is_retryable() {
                return Err(error);
            }
        }
        witness
            .write_all_at(&number.to_le_bytes(), writer * 8)
            .map_err(|error| EngineError::fatal(format!("the witness: {error}")))?;
    }
    Ok(())
}

fn key(writer: u64, number: u64) -> String {
    format!("w{writer:03}-{number:09}")
}

/// A value of about half a kibibyte that says whose it is.
fn content(writer: u64, number: u64) -> String {
    format!("{}.", key(writer, number)).repeat(32)
}

/// One row in each space: together, by a batch or by a transaction.
fn commit(
    session: &mut dyn Session,
    batch: &mut WriteBatch,
    writer: u64,
    number: u64,
) -> EngineResult<()> {
    let (key, content) = (key(writer, number), content(writer, number));
    if number.is_multiple_of(2) {
        batch.clear();
        batch.put(PLAIN, key.as_bytes(), content.as_bytes());
        batch.put(LISTS, key.as_bytes(), content.as_bytes());
        return session.write_batch(batch);
    }
    session.begin(writer)?;
    session.put(PLAIN, key.as_bytes(), content.as_bytes())?;
    session.put(LISTS, key.as_bytes(), content.as_bytes())?;
    session.commit()
}

// The parent.

/// Runs the cases in every durability mode that the engine has; gives a line for each that failed.
pub fn check(subject: &Subject<'_>, root: &Path) -> Vec<String> {
    let mut failures = Failures::default();
    let has = registry::find(subject.engine).map(|provider| provider.capabilities().durability);
    let has = has.unwrap_or_default();
    let tracer = tracer();
    if tracer.is_none() {
        println!("{}: syncs are not counted: there is no strace that may trace", subject.engine);
    }
    for durability in DurabilityMode::ALL {
        let name = durability.name();
        if !has.iter().any(|had| had == name) {
            continue;
        }
        let settings = EngineSettings { durability, ..subject.settings.clone() };
        let killed = killed(subject, &root.join(name), &settings);
        failures.note(&format!("killed in mode {name}"), killed);
        if let (Some(tracer), true) = (&tracer, durability != DurabilityMode::None) {
            let counted = counted(subject, &root.join(format!("{name}-traced")), &settings, tracer);
            failures.note(&format!("syncs in mode {name}"), counted);
        }
    }
    failures.0
}

/// What starts a traced process, if one may be.
fn tracer() -> Option<&'static [&'static str]> {
    const TRACER: &[&str] = &["strace", "-f", "-qq", "-e", "trace=fsync,fdatasync,msync", "-o"];
    let mut trial = Command::new(TRACER[0]);
    trial.args(&TRACER[1..]).args(["/dev/null", "true"]);
    let status = trial.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success()).then_some(TRACER)
}

impl Subject<'_> {
    fn job(
        &self,
        root: &Path,
        settings: &EngineSettings,
        commits: Option<u64>,
    ) -> Result<Job, String> {
        let job = Job {
            engine: self.engine.clone(),
            settings: settings.clone(),
            directory: root.join("database"),
            witness: root.join("witness"),
            commits,
            parent: Some(std::process::id()),
        };
        std::fs::create_dir_all(&job.directory).map_err(|error| error.to_string())?;
        File::create(&job.witness).map_err(|error| error.to_string())?;
        Ok(job)
    }

    /// This program, told to run the child's test; what it says goes to `log`.
    fn command(&self, before: &[&str], job: &Job, log: &Path) -> Result<Command, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = match before {
            [] => Command::new(&program),
            [tracer, arguments @ ..] => {
                let mut command = Command::new(tracer);
                command.args(arguments).arg(&program);
                command
            }
        };
        let log = File::create(log).map_err(|error| error.to_string())?;
        let also = log.try_clone().map_err(|error| error.to_string())?;
        let job = serde_json::to_string(job).map_err(|error| error.to_string())?;
        command.args(["--exact", self.child_test, "--nocapture"]).env(JOB, job);
        command.stdin(Stdio::null()).stdout(log).stderr(also);
        Ok(command)
    }
}

/// What a child said, as far as it matters.
fn last_words(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let about = text.lines().filter(|line| line.contains("Err(") || line.contains("panicked"));
    about.collect::<Vec<_>>().join("; ")
}

fn acknowledged(witness: &Path) -> Result<Vec<u64>, String> {
    let bytes = std::fs::read(witness).map_err(|error| error.to_string())?;
    let mut numbers: Vec<u64> = bytes
        .chunks_exact(8)
        .map(|chunk| chunk.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
        .collect();
    numbers.resize(WRITERS as usize, 0);
    Ok(numbers)
}

fn killed(subject: &Subject<'_>, root: &Path, settings: &EngineSettings) -> Verdict {
    let job = subject.job(root, settings, None)?;
    let log = root.join("log");
    let enough = match settings.durability {
        DurabilityMode::Sync => ACKNOWLEDGED_SYNCED,
        DurabilityMode::Buffered | DurabilityMode::None => ACKNOWLEDGED,
    };
    let mut child = subject.command(&[], &job, &log)?.spawn().map_err(|error| error.to_string())?;
    let deadline = Instant::now() + PATIENCE;
    while acknowledged(&job.witness)?.iter().any(|number| *number < enough) {
        let ended = child.try_wait().map_err(|error| error.to_string())?.is_some();
        if ended || Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("the child did not get on: {}", last_words(&log)));
        }
        thread::sleep(Duration::from_millis(1));
    }
    child.kill().map_err(|error| error.to_string())?;
    child.wait().map_err(|error| error.to_string())?;
    let numbers = acknowledged(&job.witness)?;
    let engine = subject.open(&job.directory, settings).map_err(text)?;
    let may_lose = settings.durability == DurabilityMode::None;
    let mut session = engine.session().map_err(text)?;
    for (writer, number) in (0..).zip(numbers) {
        survived(&mut *session, writer, number, may_lose)?;
    }
    drop(session);
    engine.close().map_err(text)
}

/// Compares what is there of a writer with what it was told.
fn survived(session: &mut dyn Session, writer: u64, last: u64, may_lose: bool) -> Verdict {
    // One commit was under way; behind it there is nothing.
    for number in 1..=last + 2 {
        let (key, expected) = (key(writer, number), content(writer, number));
        let found = [value(session, PLAIN, &key)?, value(session, LISTS, &key)?];
        let is_right = |row: &Option<String>| row.as_ref().is_none_or(|row| *row == expected);
        same(&format!("rows of {key} are what was written"), found.iter().all(is_right), true)?;
        if may_lose {
            continue;
        }
        let here = found.map(|row| row.is_some());
        let possible: &[[bool; 2]] = match number {
            number if number <= last => &[[true; 2]],
            number if number == last + 1 => &[[true; 2], [false; 2]],
            _ => &[[false; 2]],
        };
        if !possible.contains(&here) {
            return Err(format!(
                "of {last} acknowledged commits of a writer number {number} is there in both \
                 spaces: {here:?}"
            ));
        }
    }
    Ok(())
}

fn counted(
    subject: &Subject<'_>,
    root: &Path,
    settings: &EngineSettings,
    tracer: &[&str],
) -> Verdict {
    let job = subject.job(root, settings, Some(COUNTED))?;
    let (log, trace) = (root.join("log"), root.join("trace"));
    let path = trace.display().to_string();
    let before: Vec<&str> = tracer.iter().copied().chain([path.as_str()]).collect();
    let job = Job { parent: None, ..job };
    let status = subject.command(&before, &job, &log)?.status();
    if !status.map_err(|error| error.to_string())?.success() {
        return Err(format!("the traced child failed: {}", last_words(&log)));
    }
    same("commits", acknowledged(&job.witness)?[0], COUNTED)?;
    let trace = std::fs::read_to_string(&trace).map_err(|error| error.to_string())?;
    let calls = ["fsync(", "fdatasync(", "msync("];
    let is_sync = |line: &&str| calls.iter().any(|call| line.contains(call));
    let syncs = trace.lines().filter(is_sync).count() as u64;
    let is_right = match settings.durability {
        DurabilityMode::Sync => syncs >= COUNTED,
        DurabilityMode::Buffered | DurabilityMode::None => syncs < COUNTED / 2,
    };
    if is_right { Ok(()) } else { Err(format!("{COUNTED} commits made {syncs} syncs")) }
}
