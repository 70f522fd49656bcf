//! The measuring process, seen from inside: one sequence of steps over one database.
//!
//! 1. A fill closes the engine, removes its data and opens it anew; every other step takes the
//!    database as it is, opened again where the step before read it in another way.
//! 2. Each step with clients is metered on its own: counters of the engine before and after, the
//!    most resident memory counted anew, a thread that samples every second.
//! 3. After a step that writes, everything is flushed and background work is waited for, and that
//!    is metered apart: work that an engine puts off is not work that it saves.
//! 4. At the end, outside all meters, everything is read and compared with what was written.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::clients::{ClientEnd, Ends, Loop, client_seed, key_stream, threads};
use super::histogram::Distribution;
use super::oracle::{self, Presence};
use super::spec::{
    CallResult, DbCell, DbJob, DbResult, DbSpec, Interval, OperationLatency, Step, StepResult,
    ThreadCpu,
};
use super::step::StepSpec;
use crate::adapter::provider::Transactions;
use crate::adapter::settings::DurabilityMode;
use crate::adapter::{Engine, EngineName, EngineStatistics};
use crate::engines::null::{NullEngine, NullSpace};
use crate::engines::registry::{open_spaces, stores, uses_disk};
use crate::keyvalue::SPACES;
use crate::keyvalue::benchmark::Benchmark;
use crate::keyvalue::samples::{Sample, Sampler, sum};
use crate::keyvalue::timeline::{Throughput, Trace};
use crate::latency::{Latencies, LatencySummary};
use crate::meter::machine::Machine;
use crate::meter::process::release_free_memory;
use crate::meter::{Meter, PhaseUsage};
use crate::run::phase::{settle, statistics};
use crate::run::process::end_with_parent;
use crate::run::progress::{Listener, ProgressLine};
use crate::run::store::write_json;
use crate::run::{RunError, failed};

/// Does a job and writes its result. Asks the kernel to end this process with its parent.
///
/// # Errors
/// The engine's, or the result cannot be written.
pub fn run_job(job: &DbJob, listener: Listener<'_>) -> Result<(), RunError> {
    end_with_parent(job.parent)?;
    let result = measure(&job.cell, &job.data_directory, listener)?;
    write_json(&job.result_path, &result)
}

/// Measures in this process, with the engine's data in `directory`, which exists.
///
/// # Errors
/// The engine's.
pub fn measure(
    cell: &DbCell,
    directory: &Path,
    listener: Listener<'_>,
) -> Result<DbResult, RunError> {
    let started = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let spec = &cell.spec;
    let machine = Machine::describe(directory);
    spec.allocator.verify(&machine.allocator)?;
    let mut engine = open(spec, directory)?;
    let mut sequence = Sequence {
        spec,
        directory,
        meter: Meter::new(directory),
        listener,
        next_seed: spec.seed + 1,
        open_as: OpenAs::of(spec),
        presence: None,
        contents: spec.use_existing.then(|| recall(directory)).flatten(),
    };
    let mut steps = Vec::new();
    for step in &spec.benchmarks {
        let own = step.of(spec);
        engine = match step.benchmark {
            fill if fill.is_fill() && !spec.use_existing => sequence.empty(engine, &own)?,
            _ => sequence.opened_for(engine, *step, &own)?,
        };
        steps.push(sequence.step(&*engine, *step, &own)?);
    }
    let verification = sequence.verify(&*engine)?;
    let result = DbResult {
        hash: cell.hash(),
        cell: cell.clone(),
        started_unix_s: started,
        machine,
        engine_name: engine.name(),
        capabilities: engine.capabilities(),
        engine_options: engine.options(),
        steps,
        verification,
    };
    engine.close().map_err(|error| failed("close", &error))?;
    remember(directory, sequence.contents)?;
    Ok(result)
}

/// What the engine had in memory goes back to the system: the next one is not to be charged with it.
fn close(engine: Box<dyn Engine>) -> Result<(), RunError> {
    engine.close().map_err(|error| failed("close", &error))?;
    release_free_memory();
    Ok(())
}

/// The engine that stores nothing finds every key, so that the driver does all it does elsewhere.
fn open(spec: &DbSpec, directory: &Path) -> Result<Box<dyn Engine>, RunError> {
    if spec.engine == EngineName::null() {
        let sample = NullSpace {
            key_bytes: spec.key_bytes as usize,
            value: vec![b'v'; spec.value_bytes as usize],
            hits_of_256: 256,
            scan_rows: spec.seek_nexts.max(1),
        };
        return Ok(Box::new(NullEngine::new(vec![sample])));
    }
    open_spaces(&spec.engine, directory, &spec.settings, &SPACES, Transactions::Unneeded)
        .map_err(|error| failed("open", &error))
}

/// The name of a database's contents, kept beside it for the runs that go on with it.
#[derive(Serialize, Deserialize)]
struct Remembered {
    contents: Option<u64>,
}

const CONTENTS_FILE: &str = "contents.json";

fn recall(directory: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(directory.parent()?.join(CONTENTS_FILE)).ok()?;
    serde_json::from_str::<Remembered>(&text).ok()?.contents
}

fn remember(directory: &Path, contents: Option<u64>) -> Result<(), RunError> {
    match directory.parent() {
        Some(parent) => write_json(&parent.join(CONTENTS_FILE), &Remembered { contents }),
        None => Ok(()),
    }
}

/// The settings of an open database that a step may have for itself.
#[derive(Clone, Copy, PartialEq)]
struct OpenAs {
    direct_reads: bool,
    durability: DurabilityMode,
}

impl OpenAs {
    fn of(spec: &DbSpec) -> OpenAs {
        let settings = &spec.settings;
        OpenAs { direct_reads: settings.direct_reads, durability: settings.durability }
    }
}

/// A sequence on its way.
struct Sequence<'a> {
    spec: &'a DbSpec,
    directory: &'a Path,
    meter: Meter,
    listener: Listener<'a>,
    /// Threads are numbered through the whole process, so that no two steps draw the same keys.
    next_seed: u64,
    /// How the database is open: what a step may want otherwise.
    open_as: OpenAs,
    /// The keys that are there; `None` when that is not known.
    presence: Option<Presence>,
    /// The name of the contents; `None` when they depend on speed or order.
    contents: Option<u64>,
}

/// Clients' results put together.
struct Merged {
    operations: u64,
    found: u64,
    bytes: u64,
    elapsed_s: f64,
    client_seconds: f64,
    cpu_us: u64,
    latency: OperationLatency,
}

/// What the meters saw of a step.
struct Metered {
    usage: PhaseUsage,
    sampler_us: u64,
    statistics: EngineStatistics,
    settle: Option<PhaseUsage>,
    settle_sampler_us: u64,
    statistics_settled: EngineStatistics,
}

impl Sequence<'_> {
    /// Removes the database and makes an empty one with the settings of `own`.
    fn empty(
        &mut self,
        engine: Box<dyn Engine>,
        own: &DbSpec,
    ) -> Result<Box<dyn Engine>, RunError> {
        close(engine)?;
        let io = |error| RunError::io(self.directory, error);
        std::fs::remove_dir_all(self.directory).map_err(io)?;
        std::fs::create_dir(self.directory).map_err(io)?;
        self.presence = stores(&self.spec.engine).then(|| Presence::none_of(self.spec.num));
        self.contents = Some(0);
        self.open_as = OpenAs::of(own);
        open(own, self.directory)
    }

    /// Opens the database again where the step wants it open in another way than it is.
    fn opened_for(
        &mut self,
        engine: Box<dyn Engine>,
        step: StepSpec,
        own: &DbSpec,
    ) -> Result<Box<dyn Engine>, RunError> {
        let wanted = OpenAs::of(own);
        let same = self.open_as == wanted || !step.benchmark.is_loop();
        if same || !uses_disk(&own.engine) {
            return Ok(engine);
        }
        self.say("open");
        if self.open_as.durability == DurabilityMode::None {
            // What no log holds must be in tables before it is closed.
            engine.flush().map_err(|error| failed("flush", &error))?;
        }
        close(engine)?;
        self.open_as = wanted;
        open(own, self.directory)
    }

    /// Does a step; `own` is the spec with its settings.
    fn step(
        &mut self,
        engine: &dyn Engine,
        step: StepSpec,
        own: &DbSpec,
    ) -> Result<Step, RunError> {
        let benchmark = step.benchmark;
        if benchmark.is_loop() {
            return Ok(Step::Loop(Box::new(self.clients(engine, step, own)?)));
        }
        self.say(benchmark.name());
        let before = self.meter.read();
        let done = match benchmark {
            Benchmark::Flush => engine.flush().map(|()| String::new()),
            Benchmark::Settle => engine.settle_tree(),
            _ => engine.wait_for_compaction().map(|()| String::new()),
        }
        .map_err(|error| failed(benchmark.name(), &error))?;
        let after = self.meter.read();
        let usage = self.meter.usage(&before, &after);
        Ok(Step::Call(Box::new(CallResult { benchmark, usage, done })))
    }

    /// A step with clients.
    fn clients(
        &mut self,
        engine: &dyn Engine,
        step: StepSpec,
        own: &DbSpec,
    ) -> Result<StepResult, RunError> {
        let benchmark = step.benchmark;
        let first_seed = self.next_seed;
        self.next_seed += threads(own, benchmark);
        let contents = (!benchmark.changes_database()).then_some(self.contents).flatten();
        let statistics_before = statistics(engine)?;
        self.meter.watch(engine.process_ids());
        self.meter.sync();
        self.meter.reset_resident_max();
        let start = Instant::now();
        let clients = Loop::new(own, benchmark, first_seed, start);
        let sampler = Sampler::new(self.directory, start);
        let mut intervals = Intervals::default();
        let (outcome, samples) = thread::scope(|scope| {
            let thread = scope.spawn(|| {
                sampler.run(engine, &mut |at_s| self.tick(&clients, &mut intervals, at_s))
            });
            let outcome = self.metered(engine, benchmark, &clients, &sampler);
            sampler.finish(thread.thread());
            (outcome, thread.join())
        });
        let (ends, metered) = outcome?;
        let samples: Vec<Sample> =
            samples.map_err(|_| RunError::new("the sampling thread failed"))?;
        let found_expected = self.account(own, benchmark, first_seed, &ends);
        let merged = merge(benchmark, &ends.clients);
        let background = ends.background.as_ref();
        let background_writes = background.map_or(0, |end| end.operations);
        let writes = if benchmark.is_write() { merged.operations } else { background_writes };
        Ok(StepResult {
            spec: step,
            operations: merged.operations,
            found: merged.found,
            found_expected,
            bytes: merged.bytes,
            elapsed_s: merged.elapsed_s,
            client_seconds: merged.client_seconds,
            background_writes,
            ingested_bytes: writes * self.spec.entry_bytes(),
            latency: merged.latency,
            background_latency: background.map(|end| operation("write", &end.latencies)),
            thread_cpu: ThreadCpu {
                clients_us: merged.cpu_us,
                background_us: background.map_or(0, |end| end.cpu_us),
                sampler_us: metered.sampler_us,
            },
            intervals: intervals.list,
            contents,
            usage: metered.usage,
            settle: metered.settle,
            settle_sampler_us: metered.settle_sampler_us,
            samples,
            statistics_before,
            statistics: metered.statistics,
            statistics_settled: metered.statistics_settled,
            throughput: throughput(&ends),
            checkpoints: ends.clients.into_iter().map(|end| end.checkpoints).collect(),
        })
    }

    /// Runs the clients between two readings of the meters, then settles between two others.
    fn metered(
        &self,
        engine: &dyn Engine,
        benchmark: Benchmark,
        clients: &Loop<'_>,
        sampler: &Sampler<'_>,
    ) -> Result<(Ends, Metered), RunError> {
        let before = self.meter.read();
        let ends = clients.run(engine).map_err(|error| failed(benchmark.name(), &error))?;
        let after = self.meter.read();
        let sampler_us = sampler.cpu_us();
        let usage = self.meter.usage(&before, &after);
        let statistics_after = statistics(engine)?;
        if !(self.spec.settle && benchmark.changes_database()) {
            let statistics_settled = statistics_after.clone();
            let metered = Metered {
                usage,
                sampler_us,
                statistics: statistics_after,
                settle: None,
                settle_sampler_us: 0,
                statistics_settled,
            };
            return Ok((ends, metered));
        }
        self.say("settle");
        let before = self.meter.read();
        settle(engine)?;
        let after = self.meter.read();
        let settle_sampler_us = sampler.cpu_us() - sampler_us;
        self.meter.sync();
        self.meter.wait_for_quiet_directory(Duration::from_secs_f64(usage.seconds));
        let metered = Metered {
            usage,
            sampler_us,
            statistics: statistics_after,
            settle: Some(self.meter.usage(&before, &after)),
            settle_sampler_us,
            statistics_settled: statistics(engine)?,
        };
        Ok((ends, metered))
    }

    /// Takes what the clients wrote into the books, and tells how many reads must have found
    /// their key.
    fn account(
        &mut self,
        own: &DbSpec,
        benchmark: Benchmark,
        first_seed: u64,
        ends: &Ends,
    ) -> Option<u64> {
        if benchmark.changes_database() {
            self.contents = oracle::contents_after(self.contents, benchmark, own, first_seed);
        }
        let presence = self.presence.as_mut()?;
        let seeds = client_seed(benchmark, first_seed)..;
        let clients = seeds
            .zip(&ends.clients)
            .map(|(seed, end)| (key_stream(own, benchmark, seed), end.operations));
        if benchmark.is_write() {
            clients.for_each(|(keys, count)| presence.add(keys, count));
            return None;
        }
        if let Some(end) = &ends.background {
            // Which of them a reader met depends on the moment.
            presence.add(key_stream(own, Benchmark::Overwrite, first_seed), end.operations);
            return None;
        }
        Some(clients.map(|(keys, count)| presence.hits(keys, count)).sum())
    }

    fn verify(&self, engine: &dyn Engine) -> Result<Option<oracle::Verification>, RunError> {
        if !stores(&self.spec.engine) {
            return Ok(None);
        }
        self.say("verify");
        oracle::verify(engine, self.spec, self.presence.as_ref(), self.contents)
            .map(Some)
            .map_err(|error| failed("verify", &error))
    }

    /// Reports the operations of the last second.
    fn tick(&self, clients: &Loop<'_>, intervals: &mut Intervals, at_s: f64) {
        let done = sum(&clients.counts);
        if intervals.closed {
            return;
        }
        intervals.closed = clients.are_done();
        let interval = intervals.next(at_s, done, sum(std::slice::from_ref(&clients.background)));
        let rate = (interval.operations as f64 / interval.seconds.max(1e-9)) as u64;
        let own = clients.spec;
        let (amount, unit) = match own.operations(clients.benchmark) {
            Some(limit) => ([done, limit * own.threads], "operations"),
            None => ([at_s as u64, own.duration_seconds], "seconds"),
        };
        if interval.operations > 0 && amount[0] <= amount[1] {
            let stage = clients.benchmark.name();
            (self.listener)(&ProgressLine::of_progress(stage, amount, unit, rate));
        }
    }

    fn say(&self, stage: &str) {
        (self.listener)(&ProgressLine::of_stage(stage));
    }
}

/// The operations of every second.
#[derive(Default)]
struct Intervals {
    /// True when the clients were done at the end of the last one.
    closed: bool,
    list: Vec<Interval>,
    operations: u64,
    background_writes: u64,
}

impl Intervals {
    /// Closes the interval that ends at `at_s`.
    fn next(&mut self, at_s: f64, operations: u64, background_writes: u64) -> Interval {
        let last_s = self.list.last().map_or(0.0, |interval| interval.elapsed_s);
        let interval = Interval {
            elapsed_s: at_s,
            seconds: at_s - last_s,
            operations: operations - std::mem::replace(&mut self.operations, operations),
            background_writes: background_writes
                - std::mem::replace(&mut self.background_writes, background_writes),
        };
        self.list.push(interval);
        interval
    }
}

fn operation(name: &str, latencies: &Latencies) -> OperationLatency {
    OperationLatency {
        summary: LatencySummary::new(name, latencies),
        distribution: Distribution::of(latencies),
    }
}

fn merge(benchmark: Benchmark, ends: &[ClientEnd]) -> Merged {
    let mut latencies = Latencies::default();
    ends.iter().for_each(|end| latencies.merge(&end.latencies));
    let first_ns = ends.iter().map(|end| end.began_ns).min().unwrap_or(0);
    let last_ns = ends.iter().map(|end| end.ended_ns).max().unwrap_or(0);
    let client_ns: u64 = ends.iter().map(|end| end.ended_ns - end.began_ns).sum();
    Merged {
        operations: ends.iter().map(|end| end.operations).sum(),
        found: ends.iter().map(|end| end.found).sum(),
        bytes: ends.iter().map(|end| end.bytes).sum(),
        elapsed_s: (last_ns - first_ns) as f64 / 1e9,
        client_seconds: client_ns as f64 / 1e9,
        cpu_us: ends.iter().map(|end| end.cpu_us).sum(),
        latency: operation(benchmark.operation(), &latencies),
    }
}

/// What all who wrote saw.
fn throughput(ends: &Ends) -> Option<Throughput> {
    let writers: Vec<&Trace> =
        ends.clients.iter().chain(&ends.background).filter_map(|end| end.trace.as_ref()).collect();
    (!writers.is_empty()).then(|| Throughput::of("write", &writers))
}
