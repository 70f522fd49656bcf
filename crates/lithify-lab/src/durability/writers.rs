//! The workload: every writer commits rows of its own, numbered from 0, and one reader looks for
//! the newest row of each.
//!
//! A row's key is its writer's number and its own, so that what survived a crash is a count, and
//! a hole is seen. What was acknowledged and what was seen goes to a [`Witness`], which outlives
//! the crash.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use lithify::{ColumnFamily, ScanRange};

use crate::keyvalue::entries::{HALF, Values};
use crate::latency::Latencies;
use crate::run::RunError;

/// How many rows of each writer were acknowledged and seen.
pub struct Witness {
    writers: Vec<Watched>,
    /// Where the counts also go, for a process that will be killed.
    file: Option<File>,
    start: Instant,
}

/// The counts of one writer.
#[derive(Default)]
struct Watched {
    acknowledged: AtomicU64,
    seen: AtomicU64,
    /// When each row since the start was acknowledged, where that is asked for.
    times_us: Option<Mutex<Vec<u64>>>,
}

/// Both counts of one writer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rows whose commit had returned.
    pub acknowledged: u64,
    /// Rows that the reader had found.
    pub seen: u64,
}

/// Bytes of a writer's counts in the file.
const COUNTS_BYTES: usize = 16;

impl Witness {
    /// Counts in memory; each writer goes on behind `first` rows. `with_times` keeps the time of
    /// every acknowledgement.
    pub fn new(first: &[u64], with_times: bool) -> Witness {
        let watched = |first: &u64| Watched {
            acknowledged: AtomicU64::new(*first),
            seen: AtomicU64::new(*first),
            times_us: with_times.then(Mutex::default),
        };
        Witness { writers: first.iter().map(watched).collect(), file: None, start: Instant::now() }
    }

    /// Counts that a new file at `path` holds too: it outlives the process.
    ///
    /// # Errors
    /// The operating system's.
    pub fn in_file(path: &Path, first: &[u64]) -> Result<Witness, RunError> {
        let failed = |error| RunError::io(path, error);
        let file = File::create(path).map_err(failed)?;
        for (place, first) in first.iter().enumerate() {
            let counts = [first.to_le_bytes(), first.to_le_bytes()].concat();
            file.write_all_at(&counts, (place * COUNTS_BYTES) as u64).map_err(failed)?;
        }
        Ok(Witness { file: Some(file), ..Witness::new(first, false) })
    }

    /// What a file says that a killed process left.
    ///
    /// # Errors
    /// It cannot be read, or is no such file.
    pub fn read(path: &Path) -> Result<Vec<Counts>, RunError> {
        let bytes = std::fs::read(path).map_err(|error| RunError::io(path, error))?;
        let (pairs, rest) = bytes.as_chunks::<COUNTS_BYTES>();
        if !rest.is_empty() {
            return Err(RunError::new(format!("{} is cut off", path.display())));
        }
        let number = |half: &[u8]| half.iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte));
        Ok(pairs
            .iter()
            .map(|pair| Counts { acknowledged: number(&pair[..8]), seen: number(&pair[8..]) })
            .collect())
    }

    /// The counts at this moment.
    pub fn counts(&self) -> Vec<Counts> {
        let count = |watched: &Watched| Counts {
            acknowledged: watched.acknowledged.load(Ordering::SeqCst),
            seen: watched.seen.load(Ordering::SeqCst),
        };
        self.writers.iter().map(count).collect()
    }

    /// Since when times count.
    pub fn start(&self) -> Instant {
        self.start
    }

    /// When the row of that writer was acknowledged, microseconds since the start.
    pub fn acknowledged_at_us(&self, writer: usize, row: u64) -> Option<u64> {
        let times_us = self.writers.get(writer)?.times_us.as_ref()?;
        let times_us = times_us.lock().unwrap_or_else(PoisonError::into_inner);
        times_us.get(usize::try_from(row).ok()?).copied()
    }

    fn acknowledge(&self, writer: usize, count: u64) -> Result<(), RunError> {
        let watched = &self.writers[writer];
        if let Some(times_us) = &watched.times_us {
            let now_us = self.start.elapsed().as_micros() as u64;
            times_us.lock().unwrap_or_else(PoisonError::into_inner).push(now_us);
        }
        watched.acknowledged.store(count, Ordering::SeqCst);
        self.keep(writer * COUNTS_BYTES, count)
    }

    fn see(&self, writer: usize, count: u64) -> Result<(), RunError> {
        self.writers[writer].seen.store(count, Ordering::SeqCst);
        self.keep(writer * COUNTS_BYTES + COUNTS_BYTES / 2, count)
    }

    fn keep(&self, offset: usize, count: u64) -> Result<(), RunError> {
        let Some(file) = &self.file else { return Ok(()) };
        file.write_all_at(&count.to_le_bytes(), offset as u64)
            .map_err(|error| RunError::new(format!("the witness cannot be written: {error}")))
    }
}

/// The key of a row: writers and rows in order.
fn key(writer: usize, row: u64) -> [u8; 9] {
    let mut key = [writer as u8; 9];
    key[1..].copy_from_slice(&row.to_be_bytes());
    key
}

fn failed(what: &str, error: &lithify::Error) -> RunError {
    RunError::new(format!("{what}: {error}"))
}

/// Writers commit and, if asked for, a reader looks on, until `stop` is true or one of them fails;
/// gives the latencies of all commits in nanoseconds.
///
/// # Errors
/// The engine's; a witness that cannot be written.
pub fn run(
    family: &ColumnFamily,
    witness: &Witness,
    value_bytes: u64,
    has_reader: bool,
    stop: &AtomicBool,
) -> Result<Latencies, RunError> {
    let guarded = |outcome: Result<Latencies, RunError>| {
        outcome.inspect_err(|_| stop.store(true, Ordering::SeqCst))
    };
    thread::scope(|scope| {
        let mut threads: Vec<_> = (0..witness.writers.len())
            .map(|writer| {
                scope.spawn(move || guarded(write(family, witness, writer, value_bytes, stop)))
            })
            .collect();
        if has_reader {
            threads.push(scope.spawn(move || guarded(look(family, witness, stop))));
        }
        let mut all = Latencies::default();
        for thread in threads {
            let panicked = |_| Err(RunError::new("a thread of the workload failed"));
            all.merge(&thread.join().unwrap_or_else(panicked)?);
        }
        Ok(all)
    })
}

fn write(
    family: &ColumnFamily,
    witness: &Witness,
    writer: usize,
    value_bytes: u64,
    stop: &AtomicBool,
) -> Result<Latencies, RunError> {
    let mut latencies = Latencies::default();
    let mut values = Values::new(value_bytes as usize, HALF);
    let mut row = witness.counts()[writer].acknowledged;
    while !stop.load(Ordering::Relaxed) {
        let start = Instant::now();
        family.put(key(writer, row), values.next()).map_err(|error| failed("a commit", &error))?;
        latencies.record(start.elapsed().as_nanos() as u64);
        row += 1;
        witness.acknowledge(writer, row)?;
    }
    Ok(latencies)
}

/// Looks for each writer's newest row, acknowledged or not yet.
fn look(
    family: &ColumnFamily,
    witness: &Witness,
    stop: &AtomicBool,
) -> Result<Latencies, RunError> {
    let is_there =
        |writer, row| family.contains(key(writer, row)).map_err(|error| failed("a read", &error));
    while !stop.load(Ordering::Relaxed) {
        for (writer, counts) in witness.counts().into_iter().enumerate() {
            let next = counts.acknowledged.max(counts.seen);
            if is_there(writer, next)? {
                witness.see(writer, next + 1)?;
            } else if next > counts.seen {
                if !is_there(writer, next - 1)? {
                    return Err(RunError::new(format!(
                        "row {} of writer {writer} is acknowledged and not visible",
                        next - 1
                    )));
                }
                witness.see(writer, next)?;
            }
        }
    }
    Ok(Latencies::default())
}

/// What is there after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Survived {
    /// Rows of the writer, without a gap from row 0 on.
    pub rows: u64,
    /// Whether there is a row behind a missing one.
    pub has_hole: bool,
}

/// Counts the rows of a writer; those below `known` are taken for there if the last of them is.
///
/// # Errors
/// The engine's.
pub fn survived(family: &ColumnFamily, writer: usize, known: u64) -> Result<Survived, RunError> {
    let unreadable = |error: lithify::Error| failed("reading what survived", &error);
    let first = known.saturating_sub(1);
    let mut cursor = family.cursor(ScanRange::prefix([writer as u8])).map_err(unreadable)?;
    let mut rows = first;
    let mut valid = cursor.seek(key(writer, first)).map_err(unreadable)?;
    while valid && cursor.key() == key(writer, rows) {
        rows += 1;
        valid = cursor.next().map_err(unreadable)?;
    }
    // Nothing of what was known is there: count from the start.
    if rows == first && first > 0 {
        return survived(family, writer, 0);
    }
    Ok(Survived { rows, has_hole: valid })
}
