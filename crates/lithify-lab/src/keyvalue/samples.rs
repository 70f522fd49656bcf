//! What is seen every second beside the clients: sizes, debt, memory.
//!
//! A `Sampler` runs on a thread of its own from the first operation until nothing is due any
//! more. Its own CPU is counted, so that it can be taken off the engine's.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::adapter::{Engine, EngineResult};
use crate::meter::process::{ProcessMemory, thread_cpu_us};
use crate::meter::space::{self, DirectorySize};

/// Time between two samples.
pub(crate) const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);

/// What was seen in one second.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Sample {
    /// Seconds since the first operation.
    pub at_s: f64,
    /// Bytes of live tables and of the log.
    pub live_bytes: u64,
    /// The log in it.
    pub wal_bytes: u64,
    /// Bytes that compactions have still to rewrite.
    pub pending_compaction_bytes: u64,
    /// Tables in level 0.
    pub level0_files: u64,
    /// The data directory.
    pub directory: DirectorySize,
    /// Resident memory of the process and of those of the engine.
    pub resident_bytes: u64,
    /// Virtual memory of these processes.
    #[serde(default)]
    pub virtual_bytes: u64,
    /// Bytes of blocks that were put into the engine's cache since it was opened; 0 where it does
    /// not tell.
    #[serde(default)]
    pub cache_inserted_bytes: u64,
    /// Memory of the engine by purpose.
    pub memory: BTreeMap<String, u64>,
}

impl Sample {
    fn take(engine: &dyn Engine, directory: &Path, at_s: f64) -> EngineResult<Sample> {
        let statistics = engine.statistics()?;
        let number = |name| statistics.raw.get(name).and_then(serde_json::Value::as_u64);
        let inserted = statistics.raw.pointer("/cache/inserted_bytes");
        let process = engine
            .process_ids()
            .into_iter()
            .map(ProcessMemory::of)
            .fold(ProcessMemory::of_self(), |sum, memory| sum.plus(&memory));
        let memory = statistics.raw.get("memory").and_then(serde_json::Value::as_object);
        let memory = memory.into_iter().flatten().filter(|(name, _)| *name != "limit_bytes");
        Ok(Sample {
            at_s,
            live_bytes: statistics.live_bytes,
            wal_bytes: number("wal_live_bytes").unwrap_or(0),
            pending_compaction_bytes: number("pending_compaction_bytes").unwrap_or(0),
            level0_files: statistics.levels.first().map_or(0, |level| level.files),
            directory: space::directory_size(directory),
            resident_bytes: process.resident_bytes,
            virtual_bytes: process.virtual_bytes,
            cache_inserted_bytes: inserted.and_then(serde_json::Value::as_u64).unwrap_or(0),
            memory: memory
                .filter_map(|(name, bytes)| Some((name.clone(), bytes.as_u64()?)))
                .collect(),
        })
    }
}

/// Samples every second until it is told to stop.
pub(crate) struct Sampler<'a> {
    directory: &'a Path,
    start: Instant,
    finished: AtomicBool,
    cpu_us: AtomicU64,
}

impl<'a> Sampler<'a> {
    /// A sampler of an engine's `directory` whose seconds count from `start`.
    pub(crate) fn new(directory: &'a Path, start: Instant) -> Sampler<'a> {
        Sampler { directory, start, finished: AtomicBool::new(false), cpu_us: AtomicU64::new(0) }
    }

    /// Samples until [`Sampler::finish`], and once more then. `tick` hears the seconds since the
    /// start before each sample.
    pub(crate) fn run(&self, engine: &dyn Engine, tick: &mut dyn FnMut(f64)) -> Vec<Sample> {
        let mut samples = Vec::new();
        let mut due = SAMPLE_INTERVAL;
        while !self.finished.load(Ordering::Relaxed) {
            thread::park_timeout(due.saturating_sub(self.start.elapsed()));
            if self.start.elapsed() < due && !self.finished.load(Ordering::Relaxed) {
                continue;
            }
            due += SAMPLE_INTERVAL;
            let at_s = self.start.elapsed().as_secs_f64();
            tick(at_s);
            // An engine that cannot tell now may tell a second later.
            if let Ok(sample) = Sample::take(engine, self.directory, at_s) {
                samples.push(sample);
            }
            self.cpu_us.store(thread_cpu_us(), Ordering::Relaxed);
        }
        samples
    }

    /// Ends [`Sampler::run`], which runs on `thread`.
    pub(crate) fn finish(&self, thread: &Thread) {
        self.finished.store(true, Ordering::Relaxed);
        thread.unpark();
    }

    /// CPU of the sampling thread until its last sample, microseconds.
    pub(crate) fn cpu_us(&self) -> u64 {
        self.cpu_us.load(Ordering::Relaxed)
    }
}

/// A client's number of operations, on a cache line of its own.
#[repr(align(64))]
#[derive(Debug, Default)]
pub(crate) struct Count(pub(crate) AtomicU64);

/// One for each of `clients`.
pub(crate) fn counts(clients: u64) -> Vec<Count> {
    (0..clients).map(|_| Count::default()).collect()
}

/// All operations so far.
pub(crate) fn sum(counts: &[Count]) -> u64 {
    counts.iter().map(|count| count.0.load(Ordering::Relaxed)).sum()
}
