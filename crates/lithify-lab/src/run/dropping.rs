//! What it costs to get rid of data, and what others see meanwhile.
//!
//! Owns: the measurement ([`measure`]) of any call that drops something, beside a client that has
//! nothing to do with it ([`Neighbour`]).
//!
//! 1. The neighbour works alone for a moment: what it sees then is the machine's.
//! 2. The call is made, and the time counts until it has returned, and until the space is back.
//! 3. The neighbour works on until then.
//!
//! Threads: one that drops, one that is the neighbour.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::RunError;
use crate::adapter::{EngineError, EngineResult, Neighbour};
use crate::latency::Latencies;
use crate::meter::process::thread_cpu_us;
use crate::run::failed;

/// How long the neighbour works alone.
const ALONE: Duration = Duration::from_millis(500);

/// Between two operations of the neighbour.
const PAUSE: Duration = Duration::from_micros(500);

/// Between two looks at the space, each of which writes everything out: some file systems give
/// nothing back before.
const LOOK_PAUSE: Duration = Duration::from_millis(10);

/// The space counts as back when less than this part of it is missing.
const BACK_DIVISOR: u64 = 20;

/// A file system that has not freed the space by then is not waited for any longer.
const BACK_TIME_MAX: Duration = Duration::from_secs(120);

/// What the neighbour saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beside {
    /// Operations.
    pub operations: u64,
    /// The middle one, microseconds.
    pub p50_us: u64,
    /// 99th percentile, microseconds.
    pub p99_us: u64,
    /// The longest, microseconds.
    pub longest_us: u64,
}

impl Beside {
    fn of(latencies: &Latencies) -> Beside {
        Beside {
            operations: latencies.count(),
            p50_us: latencies.percentile(50.0) / 1000,
            p99_us: latencies.percentile(99.0) / 1000,
            longest_us: latencies.max() / 1000,
        }
    }
}

/// What a call cost that dropped something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DropFigures {
    /// Seconds until it returned.
    pub call_seconds: f64,
    /// CPU of the calling thread, microseconds.
    pub cpu_us: u64,
    /// Seconds until the space was back.
    pub back_seconds: f64,
    /// True when it was not back in time.
    pub is_not_back: bool,
    /// The neighbour before.
    pub alone: Beside,
    /// The neighbour from the call until the space was back.
    pub beside: Beside,
}

/// The space that is to come back.
pub struct Space<'a> {
    /// Bytes that are used now, without what was written since.
    pub used: &'a dyn Fn() -> u64,
    /// Bytes that are used before the call.
    pub before_bytes: u64,
    /// Bytes of them that go with what is dropped.
    pub dropped_bytes: u64,
}

impl Space<'_> {
    fn is_back(&self) -> bool {
        let dropped_bytes = self.dropped_bytes.min(self.before_bytes);
        let still_bytes = dropped_bytes / BACK_DIVISOR;
        (self.used)() <= self.before_bytes - dropped_bytes + still_bytes
    }
}

/// Makes `call`, which drops something, beside `neighbour`.
///
/// # Errors
/// Of the call, or else of the neighbour.
pub fn measure(
    neighbour: &mut dyn Neighbour,
    space: &Space<'_>,
    call: impl FnOnce() -> Result<(), RunError>,
) -> Result<DropFigures, RunError> {
    let (stop, seen) = (AtomicBool::new(false), Mutex::new(Latencies::default()));
    let take = || {
        let mut seen = seen.lock().unwrap_or_else(|poison| poison.into_inner());
        let beside = Beside::of(&seen);
        *seen = Latencies::default();
        beside
    };
    thread::scope(|scope| {
        let worker = scope.spawn(|| work_beside(neighbour, &stop, &seen));
        thread::sleep(ALONE);
        let alone = take();
        let dropped = drop_and_wait(space, call);
        stop.store(true, Ordering::Relaxed);
        let worked = worker.join().unwrap_or_else(|_| Err(EngineError::fatal("it panicked")));
        let figures = dropped?;
        worked.map_err(|error| failed("the client beside the drop", &error))?;
        Ok(DropFigures { alone, beside: take(), ..figures })
    })
}

fn drop_and_wait(
    space: &Space<'_>,
    call: impl FnOnce() -> Result<(), RunError>,
) -> Result<DropFigures, RunError> {
    let (began, cpu_before) = (Instant::now(), thread_cpu_us());
    call()?;
    let mut figures = DropFigures {
        call_seconds: began.elapsed().as_secs_f64(),
        cpu_us: thread_cpu_us() - cpu_before,
        ..DropFigures::default()
    };
    while !space.is_back() {
        if began.elapsed() > BACK_TIME_MAX {
            figures.is_not_back = true;
            break;
        }
        thread::sleep(LOOK_PAUSE);
    }
    figures.back_seconds = began.elapsed().as_secs_f64();
    Ok(figures)
}

fn work_beside(
    neighbour: &mut dyn Neighbour,
    stop: &AtomicBool,
    seen: &Mutex<Latencies>,
) -> EngineResult<()> {
    while !stop.load(Ordering::Relaxed) {
        let began = Instant::now();
        neighbour.step()?;
        let taken_ns = began.elapsed().as_nanos() as u64;
        seen.lock().unwrap_or_else(|poison| poison.into_inner()).record(taken_ns);
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// Who writes and syncs a block of a file of its own, again and again.
pub struct FileWriter {
    path: PathBuf,
    file: File,
}

/// What it writes.
const BLOCK: [u8; 4096] = [0xa5; 4096];

impl FileWriter {
    /// The file is made in `directory`.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new(directory: &Path) -> Result<FileWriter, RunError> {
        let path = directory.join("beside");
        let opened = OpenOptions::new().write(true).create(true).truncate(true).open(&path);
        let file = opened.map_err(|error| RunError::io(&path, error))?;
        Ok(FileWriter { path, file })
    }
}

impl Neighbour for FileWriter {
    fn step(&mut self) -> EngineResult<()> {
        let written = self.file.write_all_at(&BLOCK, 0).and_then(|()| self.file.sync_data());
        written.map_err(|error| EngineError::fatal(format!("{}: {error}", self.path.display())))
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        // It may be gone with the directory.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::space;
    use std::sync::atomic::AtomicU64;

    /// Counts; fails at a step.
    struct Counter(u64, u64);

    impl Neighbour for Counter {
        fn step(&mut self) -> EngineResult<()> {
            self.0 += 1;
            if self.0 > self.1 { Err(EngineError::fatal("no more")) } else { Ok(()) }
        }
    }

    #[test]
    fn the_space_comes_back_behind_the_call() {
        // Of 1,000 bytes 800 are dropped; the last go one by one, whenever somebody looks.
        let left = AtomicU64::new(1_000);
        let used =
            || left.fetch_sub(u64::from(left.load(Ordering::Relaxed) < 1_000), Ordering::Relaxed);
        let space = Space { used: &used, before_bytes: 1_000, dropped_bytes: 800 };
        let call = || {
            left.store(245, Ordering::Relaxed);
            Ok(())
        };
        let figures = measure(&mut Counter(0, u64::MAX), &space, call).expect("drops");
        assert!(!figures.is_not_back && figures.back_seconds >= figures.call_seconds);
        // 200 and a twentieth of the 800 stay.
        assert!(left.load(Ordering::Relaxed) <= 240);
        assert!(figures.alone.operations > 0 && figures.alone.p99_us <= figures.alone.longest_us);
    }

    #[test]
    fn what_fails_beside_or_in_the_call_is_said() {
        let used = || 0;
        let space = Space { used: &used, before_bytes: 0, dropped_bytes: 0 };
        let error = measure(&mut Counter(0, 3), &space, || Ok(())).expect_err("the fourth fails");
        assert_eq!(error.to_string(), "the client beside the drop: no more");
        // The call's own error is the one to tell: the other may be its consequence.
        let gone = || Err(RunError::new("the server is gone"));
        let error = measure(&mut Counter(0, 3), &space, gone).expect_err("fails");
        assert_eq!(error.to_string(), "the server is gone");
    }

    #[test]
    fn a_writer_leaves_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut writer = FileWriter::new(directory.path()).expect("is made");
        writer.step().expect("writes");
        assert_eq!(space::directory_size(directory.path()).apparent_bytes, BLOCK.len() as u64);
        drop(writer);
        assert_eq!(space::directory_size(directory.path()).files, 0);
        assert!(FileWriter::new(&directory.path().join("none")).is_err());
    }
}
