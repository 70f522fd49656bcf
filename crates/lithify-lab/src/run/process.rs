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
use serde::de::DeserializeOwned;

use super::RunError;
use super::cell::{CellDevice, CellJob, CellMemory, CellResult, CellSpec, ProgressLine};
use super::device_limit::{DeviceController, DeviceGroup, DeviceLimit};
use super::memory_limit::{Controller, MemoryGroup, MemoryLimit};
use super::stillness::Stillness;
use super::store::{Stored, read_result};

/// A program with the arguments that make it run one cell.
#[derive(Clone, Debug)]
pub struct Program {
    /// The executable.
    pub path: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Variables of its environment beside those of this process.
    pub environment: Vec<(&'static str, &'static str)>,
}

/// The C library keeps freed blocks of a cache in one arena per thread, and its memory grows to
/// two or three times what is in use. Under a limit that would be memory that nobody can use.
const ONE_ARENA: [(&str, &str); 1] = [("MALLOC_ARENA_MAX", "1")];

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

/// How a cell ended.
#[derive(Debug)]
pub enum CellEnd {
    /// With a result, which is on disk.
    Finished(Box<CellResult>),
    /// Its process failed; how, and its last words.
    Failed(String),
    /// The run was stopped.
    Interrupted,
}

/// How often the parent looks for an interrupt and for the end of the child.
const POLL: Duration = Duration::from_millis(100);

/// Lines of the log that an error quotes.
const LAST_LINES: usize = 5;

/// Bytes at the end of the log in which they are looked for.
const LOG_TAIL_BYTES: usize = 16 << 10;

/// Marks a data directory as ours: another one is never removed.
const MARKER: &str = "LITHIFY-CELL";

/// How the device of a cell is slowed that asks for it, and the group that does it, where one can
/// be made.
fn slowed_device(
    spec: &CellSpec,
    data: &Path,
) -> Result<Option<(DeviceLimit, Option<DeviceGroup>)>, RunError> {
    if spec.device.is_fast() {
        return Ok(None);
    }
    let group = DeviceController::find(data).and_then(|controller| {
        // Those that a killed run left and that are still in use hold back nobody but their own.
        controller.remove_stale();
        controller.create(spec.device)
    });
    Ok(Some(match group {
        Ok(group) => (group.limit().clone(), Some(group)),
        Err(why) => (DeviceLimit::by_files(spec, why)?, None),
    }))
}

/// The program of a cell: with its allocator, and under a limit with one arena.
fn program_of(program: &Program, spec: &CellSpec, limited: bool) -> Result<Program, RunError> {
    spec.allocator.require(&program.path)?;
    let mut own = program.clone();
    own.environment.extend(spec.allocator.environment());
    if limited {
        own.environment.extend(ONE_ARENA);
    }
    Ok(own)
}

/// Runs one cell in a process of its own; its data directory is under `data` and gone afterwards,
/// and so are the groups that limit its memory, when `memory` says that it gets one, and slow its
/// device.
///
/// # Errors
/// The data directory or the log cannot be made, the program cannot be started. What goes wrong
/// in the child is [`CellEnd::Failed`], and so is a condition that cannot be had here.
pub fn run_cell(
    program: &Program,
    spec: &CellSpec,
    data: &Path,
    memory: Option<(&Controller, MemoryLimit)>,
    [result_path, log_path]: [&Path; 2],
    interrupt: &AtomicBool,
    progress: &mut dyn FnMut(&ProgressLine),
) -> Result<CellEnd, RunError> {
    let group = match &memory {
        Some((controller, limit)) => Some(controller.create(limit.limit_bytes())?),
        None => None,
    };
    let conditions = slowed_device(spec, data)
        .and_then(|device| Ok((device, program_of(program, spec, group.is_some())?)));
    let (device, program) = match conditions {
        Ok(conditions) => conditions,
        Err(why) => return Ok(CellEnd::Failed(why.to_string())),
    };
    let directory = DataDirectory::create(&data.join(format!("{}.data", spec.id)))?;
    let job = CellJob {
        spec: spec.clone(),
        data_directory: directory.engine_directory()?,
        result_path: absolute(result_path)?,
        parent: std::process::id(),
        memory: memory
            .zip(group.as_ref())
            .map(|((_, limit), group)| CellMemory { limit, group: group.path().to_owned() }),
        device: device.as_ref().map(|(limit, group)| CellDevice {
            limit: limit.clone(),
            group: group.as_ref().map(|group| group.path().to_owned()),
        }),
    };
    let end = run_job(&program, &job, log_path, interrupt, progress)?;
    let kills = group.as_ref().map_or(0, MemoryGroup::out_of_memory_kills);
    Ok(match end {
        JobEnd::Interrupted => CellEnd::Interrupted,
        JobEnd::Failed(why) if kills > 0 => CellEnd::Failed(format!(
            "{why}; its memory was full: nothing could be reclaimed under the limit of {} MiB",
            group.map_or(0, |group| group.limit_bytes()) >> 20
        )),
        JobEnd::Failed(why) => CellEnd::Failed(why),
        JobEnd::Succeeded => match read_result(result_path, &spec.hash()) {
            Stored::Finished(result) => CellEnd::Finished(result),
            Stored::Absent => CellEnd::Failed("it left no result".to_owned()),
            Stored::Unusable(why) => CellEnd::Failed(why),
        },
    })
}

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
    Ok(match listen(child, interrupt, progress) {
        ChildEnd::Interrupted => JobEnd::Interrupted,
        ChildEnd::Ended(status) if status.success() => JobEnd::Succeeded,
        ChildEnd::Ended(status) => {
            JobEnd::Failed(format!("{}{}", describe(status), last_words(log_path)))
        }
        ChildEnd::GivenUp(why) => JobEnd::Failed(format!("{why}{}", last_words(log_path))),
    })
}

/// Where a job's result goes, and what its process has to complain about.
pub(crate) struct JobFiles<'a> {
    /// The result, as JSON.
    pub(crate) result: &'a Path,
    /// The complaints.
    pub(crate) log: &'a Path,
}

/// What came of a job that leaves a result.
#[derive(Debug)]
pub(crate) enum Answer<R> {
    /// The result, which stays on disk.
    Result(Box<R>),
    /// Why there is none.
    Failed(String),
    /// The run was stopped.
    Interrupted,
}

/// Runs `program` on one job and reads the result that it leaves.
pub(crate) fn run_for_result<R: DeserializeOwned>(
    program: &Program,
    job: &impl Serialize,
    files: &JobFiles<'_>,
    interrupt: &AtomicBool,
    progress: &mut dyn FnMut(&ProgressLine),
) -> Result<Answer<R>, RunError> {
    match run_job(program, job, files.log, interrupt, progress)? {
        JobEnd::Interrupted => return Ok(Answer::Interrupted),
        JobEnd::Failed(why) => return Ok(Answer::Failed(why)),
        JobEnd::Succeeded => {}
    }
    // A process that leaves nothing, or something else, costs its own row only.
    let text = match fs::read_to_string(files.result) {
        Ok(text) => text,
        Err(error) => return Ok(Answer::Failed(format!("it left no result: {error}"))),
    };
    Ok(match serde_json::from_str(&text) {
        Ok(result) => Answer::Result(Box::new(result)),
        Err(error) => Answer::Failed(format!("{} is no result: {error}", files.result.display())),
    })
}

pub(crate) fn absolute(path: &Path) -> Result<PathBuf, RunError> {
    std::path::absolute(path).map_err(|error| RunError::io(path, error))
}

fn start(program: &Program, job: &impl Serialize, log_path: &Path) -> Result<Child, RunError> {
    let text = serde_json::to_string(job)
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

/// A directory for the data of one cell, removed when dropped unless it is to be kept.
pub(crate) struct DataDirectory {
    path: PathBuf,
    keep: bool,
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
        let directory = DataDirectory { path: path.to_owned(), keep: false };
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
        Ok((DataDirectory { path: path.to_owned(), keep: true }, database))
    }

    /// Makes the empty directory in it that the engine gets.
    pub(crate) fn engine_directory(&self) -> Result<PathBuf, RunError> {
        let path = absolute(&self.path.join("db"))?;
        fs::create_dir(&path).map_err(|error| RunError::io(&path, error))?;
        Ok(path)
    }
}

impl Drop for DataDirectory {
    fn drop(&mut self) {
        if self.keep {
            return;
        }
        // A directory that cannot be removed now is removed by the next run, by its marker.
        let _ = fs::remove_dir_all(&self.path);
    }
}
