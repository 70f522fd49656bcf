//! The process of a cell, seen from outside: start it, listen, end it, clean up after it.
//!
//! The job goes to the child's standard input, progress comes as JSON lines on its standard
//! output, and what it has to complain about goes to a log file. The child is in a process group
//! of its own, so that an interrupt from the terminal reaches the parent alone, which then ends
//! the child; and it asks the kernel to be ended when the parent is.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde::Serialize;

use super::RunError;
use super::file_system::{CellFileSystem, FileSystemRequest, Mounted};
use super::stillness::Stillness;
use crate::run::progress::ProgressLine;

/// A program with the arguments that make it run one cell.
#[derive(Clone, Debug)]
pub struct Program {
    /// The executable.
    pub path: PathBuf,
    /// The kind of run that its jobs are of.
    pub kind: &'static str,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Variables of its environment beside those of this process.
    pub environment: Vec<(&'static str, &'static str)>,
}

impl Program {
    /// A hash of the executable: figures of different builds are not mixed.
    ///
    /// # Errors
    /// The executable cannot be read.
    pub fn build(&self) -> Result<String, RunError> {
        let bytes = fs::read(&self.path).map_err(|error| RunError::io(&self.path, error))?;
        Ok(format!("{:016x}", twox_hash::XxHash3_64::oneshot(&bytes)))
    }
}

/// How often the parent looks for an interrupt and for the end of the child.
const POLL: Duration = Duration::from_millis(100);

/// Lines of the log that an error quotes.
const LAST_LINES: usize = 5;

/// Bytes at the end of the log in which they are looked for.
const LOG_TAIL_BYTES: usize = 16 << 10;

/// Marks a data directory as ours: another one is never removed.
const MARKER: &str = "LITHIFY-CELL";

/// How a process ended that was given a job.
#[derive(Debug)]
pub(crate) enum JobEnd {
    /// As it should.
    Succeeded,
    /// How else, and its last words.
    Failed(String),
    /// The run was stopped, and the process with it.
    Interrupted,
}

/// Runs `program` on one job, which it reads as JSON on its standard input, until it ends.
pub(crate) fn run_job(
    program: &Program,
    job: &impl Serialize,
    log_path: &Path,
    interrupt: &AtomicBool,
    progress: &mut dyn FnMut(&ProgressLine),
) -> Result<JobEnd, RunError> {
    let child = start(program, job, log_path)?;
    let mut stage = None;
    let mut heard = |line: &ProgressLine| {
        stage = Some(line.stage.clone());
        progress(line);
    };
    let end = listen(child, interrupt, &mut heard);
    Ok(match end {
        ChildEnd::Interrupted => JobEnd::Interrupted,
        ChildEnd::Ended(status) if status.success() => JobEnd::Succeeded,
        ChildEnd::Ended(status) => {
            let stage = stage.map_or_else(String::new, |stage| format!(" in {stage}"));
            JobEnd::Failed(format!("{}{stage}{}", describe(status), last_words(log_path)))
        }
        ChildEnd::GivenUp(why) => JobEnd::Failed(format!("{why}{}", last_words(log_path))),
    })
}

pub(crate) fn absolute(path: &Path) -> Result<PathBuf, RunError> {
    std::path::absolute(path).map_err(|error| RunError::io(path, error))
}

/// A job with the kind of run that it is of.
#[derive(Serialize)]
struct NamedJob<'a, J> {
    kind: &'a str,
    #[serde(flatten)]
    job: &'a J,
}

fn start(program: &Program, job: &impl Serialize, log_path: &Path) -> Result<Child, RunError> {
    let text = serde_json::to_string(&NamedJob { kind: program.kind, job })
        .map_err(|error| RunError::new(format!("a job is no JSON: {error}")))?;
    let log = File::create(log_path).map_err(|error| RunError::io(log_path, error))?;
    let mut child = Command::new(&program.path)
        .args(&program.arguments)
        .envs(program.environment.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(log)
        .process_group(0)
        .spawn()
        .map_err(|error| RunError::io(&program.path, error))?;
    if let Some(mut input) = child.stdin.take() {
        // A child that died already says why in its log; that is the error to report.
        let _ = input.write_all(text.as_bytes());
    }
    Ok(child)
}

/// How a child ended.
enum ChildEnd {
    /// By itself.
    Ended(ExitStatus),
    /// By us, because the run was stopped.
    Interrupted,
    /// By us, because nothing moved in it.
    GivenUp(String),
}

/// Passes progress on until the child ends, or is ended.
fn listen(
    mut child: Child,
    interrupt: &AtomicBool,
    progress: &mut dyn FnMut(&ProgressLine),
) -> ChildEnd {
    let (sender, lines) = mpsc::channel();
    let reader = child.stdout.take().map(|output| {
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if let Ok(line) = serde_json::from_str::<ProgressLine>(&line)
                    && sender.send(line).is_err()
                {
                    return;
                }
            }
        })
    });
    let mut open = true;
    let mut stillness = Stillness::new(Instant::now());
    let end = loop {
        if interrupt.load(Ordering::Relaxed) {
            kill(&mut child);
            break ChildEnd::Interrupted;
        }
        if let Some(why) = stillness.verdict(Instant::now()) {
            kill(&mut child);
            break ChildEnd::GivenUp(why);
        }
        if open {
            match lines.recv_timeout(POLL) {
                Ok(line) => {
                    stillness.heard(&line, Instant::now());
                    progress(&line);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => open = false,
            }
        } else {
            std::thread::sleep(POLL / 10);
        }
        if !open && let Ok(Some(status)) = child.try_wait() {
            break ChildEnd::Ended(status);
        }
    };
    if let Some(reader) = reader {
        // The reader ends with the child's output; it has nothing to return.
        let _ = reader.join();
    }
    end
}

/// Ends a child and all that it started.
fn kill(child: &mut Child) {
    // Both fail only when the child has ended by itself.
    let _ = killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL);
    let _ = child.wait();
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => match Signal::try_from(signal) {
            Ok(signal) => format!("killed by {signal}"),
            Err(_) => format!("killed by signal {signal}"),
        },
        (None, None) => "it ended in an unknown way".to_owned(),
    }
}

/// The last lines of a log, as part of a one-line error.
fn last_words(log_path: &Path) -> String {
    let bytes = fs::read(log_path).unwrap_or_default();
    let tail = &bytes[bytes.len().saturating_sub(LOG_TAIL_BYTES)..];
    let text = String::from_utf8_lossy(tail);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
    if last.is_empty() { String::new() } else { format!(": {}", last.join(" | ")) }
}

/// Asks the kernel to end this process with its parent.
pub(crate) fn end_with_parent(parent: u32) -> Result<(), RunError> {
    use nix::sys::{prctl::set_pdeathsig, signal::Signal};
    set_pdeathsig(Signal::SIGKILL)
        .map_err(|error| RunError::new(format!("cannot follow the parent process: {error}")))?;
    // It may have ended before the call.
    if nix::unistd::getppid().as_raw().cast_unsigned() != parent {
        return Err(RunError::new("the parent process is gone"));
    }
    Ok(())
}

/// A directory for the data of one cell, removed when dropped unless it is to be kept.
pub(crate) struct DataDirectory {
    path: PathBuf,
    keep: bool,
    /// The file system that the engine's directory lies on, where it has one of its own.
    mounted: Option<Mounted>,
}

impl DataDirectory {
    /// Makes it, in place of one that an earlier run left.
    pub(crate) fn create(path: &Path) -> Result<DataDirectory, RunError> {
        if path.exists() {
            // A parent that was killed could not clean up.
            if !path.join(MARKER).is_file() {
                return Err(RunError::new(format!(
                    "{} exists and was not made by a run; remove it or choose another --data",
                    path.display()
                )));
            }
            fs::remove_dir_all(path).map_err(|error| RunError::io(path, error))?;
        }
        fs::create_dir_all(path).map_err(|error| RunError::io(path, error))?;
        let directory = DataDirectory { path: path.to_owned(), keep: false, mounted: None };
        let marker = path.join(MARKER);
        fs::write(&marker, "data of one benchmark cell; may be removed\n")
            .map_err(|error| RunError::io(&marker, error))?;
        Ok(directory)
    }

    /// Keeps it: for runs that go on with the database.
    pub(crate) fn keep(mut self) -> DataDirectory {
        self.keep = true;
        self
    }

    /// Opens one that was kept; gives the directory of the engine too.
    pub(crate) fn open(path: &Path) -> Result<(DataDirectory, PathBuf), RunError> {
        let database = absolute(&path.join("db"))?;
        if !path.join(MARKER).is_file() || !database.is_dir() {
            return Err(RunError::new(format!(
                "{} holds no database that a run has kept",
                path.display()
            )));
        }
        Ok((DataDirectory { path: path.to_owned(), keep: true, mounted: None }, database))
    }

    /// Puts what it will hold on a file system of its own, if one is asked for. Goes before
    /// [`DataDirectory::engine_directory`]; what is removed with the directory is unmounted, too.
    ///
    /// # Errors
    /// It cannot be made here; why, in one line.
    pub(crate) fn mount(&mut self, wanted: Option<&FileSystemRequest>) -> Result<(), RunError> {
        let Some(wanted) = wanted else { return Ok(()) };
        // Beside and not in it: what a killed run has left is looked for there.
        let place = self.path.parent().unwrap_or(&self.path);
        self.mounted = Some(Mounted::make(wanted, place)?);
        Ok(())
    }

    /// The file system of its own, if it has one.
    pub(crate) fn file_system(&self) -> Option<&CellFileSystem> {
        self.mounted.as_ref().map(Mounted::file_system)
    }

    /// Makes the empty directory in it that the engine gets.
    pub(crate) fn engine_directory(&self) -> Result<PathBuf, RunError> {
        let above = self.mounted.as_ref().map_or(&*self.path, Mounted::directory);
        let path = absolute(&above.join("db"))?;
        fs::create_dir(&path).map_err(|error| RunError::io(&path, error))?;
        Ok(path)
    }
}

impl Drop for DataDirectory {
    fn drop(&mut self) {
        if self.keep {
            return;
        }
        drop(self.mounted.take());
        // A directory that cannot be removed now is removed by the next run, by its marker.
        let _ = fs::remove_dir_all(&self.path);
    }
}
