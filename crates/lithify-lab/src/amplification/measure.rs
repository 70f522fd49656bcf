//! The measuring process, seen from inside: fill, settle, write, settle, then queries.
//!
//! 1. Every row is put once, in random order (the graph: its load); background work is waited for.
//! 2. Meters are read, one client writes; another thread samples sizes every second until the end
//!    of step 3.
//! 3. Background work is waited for and metered on its own: what is put off is written too.
//! 4. What is there is added up; the graph's oracle reads all of it.
//! 5. For each kind of query the engine is closed, the pages of its files are dropped from the page
//!    cache, and it is opened again; the queries run once, and once more.

use std::fs::File;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};

use super::counted::Counted;
use super::{AmplificationResult, AmplificationSpec, QueryCost, QueryKind, Workload};
use crate::adapter::graph::schema;
use crate::adapter::graph::schema::{
    LINK, LINK_SECONDARY, LINK_TYPE_FIRST, NODE, VISIBILITY_DEFAULT, link_key, list_prefix,
    node_key,
};
use crate::adapter::provider::Transactions;
use crate::adapter::{Engine, EngineError, EngineResult, ScanRange, Session, WriteBatch};
use crate::engines::registry;
use crate::engines::registry::open_spaces;
use crate::keyvalue::entries::{HALF, Key, Permutation, Values};
use crate::keyvalue::samples::Sampler;
use crate::keyvalue::{SPACE, SPACES};
use crate::linkbench::access::Zipf;
use crate::linkbench::control::RequestProgress;
use crate::linkbench::expected::Expected;
use crate::linkbench::load::{self, LoadConfig};
use crate::linkbench::request::{self, RequestConfig};
use crate::linkbench::{Control, Graph, GraphConfig, Profile, Progress, oracle};
use crate::meter::machine::Machine;
use crate::meter::process::ProcessCpu;
use crate::meter::{Meter, PhaseUsage, unix_seconds};
use crate::random::Random;
use crate::run::cells::Job;
use crate::run::phase::{settle, statistics};
use crate::run::process::end_with_parent;
use crate::run::progress::{Listener, ProgressLine};
use crate::run::store::write_json;
use crate::run::{RunError, failed};

/// Exponent of the skewed workload.
const ZIPF: f64 = 0.8;

/// Rows in one batch of the fill.
const FILL_BATCH: u64 = 100;

/// Most rows of a range.
const RANGE_ROWS: u64 = 20;

/// Requests of the graph's mix per write: somewhat less than a third of them write.
const REQUESTS_PER_WRITE: u64 = 3;

/// Does a job and writes its result. Asks the kernel to end this process with its parent.
///
/// # Errors
/// The engine's, or the result cannot be written.
pub fn run_job(job: &Job<AmplificationSpec>, listener: Listener<'_>) -> Result<(), RunError> {
    end_with_parent(job.parent)?;
    let result = measure(&job.cell, &job.data_directory, listener)?;
    write_json(&job.result_path, &result)
}

/// Measures in this process, with the engine's data in `directory`.
///
/// # Errors
/// The engine's, and rows that are not as they should be.
pub fn measure(
    spec: &AmplificationSpec,
    directory: &Path,
    listener: Listener<'_>,
) -> Result<AmplificationResult, RunError> {
    let started_unix_s = unix_seconds();
    let (meter, expected) = (Meter::new(directory), Mutex::default());
    let run = Run { spec, directory, meter, listener, graph: graph(spec)?, expected };
    let engine = Counted::above(run.open()?);
    run.fill(&engine)?;
    run.say("settle");
    settle(&engine)?;
    let statistics_before = statistics(&engine)?;
    let before = engine.totals();
    let written = run.write_sampled(&engine)?;
    let after = engine.totals();
    let settled = statistics(&engine)?;
    let live_bytes = run.live_bytes(&engine)?;
    let (engine_name, capabilities) = (engine.name(), engine.capabilities());
    let mut engine: Box<dyn Engine> = Box::new(engine);
    let mut queries = Vec::new();
    for kind in QueryKind::ALL {
        run.say(kind.name());
        engine = run.reopened_cold(engine)?;
        for cold in [true, false] {
            queries.push(run.query(&*engine, kind, cold)?);
        }
    }
    engine.close().map_err(|error| failed("close", &error))?;
    Ok(AmplificationResult {
        spec: spec.clone(),
        started_unix_s: Some(started_unix_s),
        machine: Machine::describe(directory),
        engine_name,
        capabilities,
        changes: after.0 - before.0,
        user_bytes: after.1 - before.1,
        seconds: written.seconds,
        usage: written.usage,
        settle: written.settle,
        statistics_before,
        statistics: settled,
        live_bytes,
        directory_peak_bytes: written.peak_bytes,
        queries,
    })
}

/// The graph, where the workload has one.
fn graph(spec: &AmplificationSpec) -> Result<Option<Graph>, RunError> {
    if spec.workload != Workload::LinkBench {
        return Ok(None);
    }
    let config = GraphConfig { seed: spec.seed, ..GraphConfig::with_nodes(spec.rows) };
    let made = Graph::new(Profile::lb2013(), config);
    made.map(Some).map_err(|error| RunError::new(format!("graph: {error}")))
}

struct Run<'a> {
    spec: &'a AmplificationSpec,
    directory: &'a Path,
    meter: Meter,
    listener: Listener<'a>,
    graph: Option<Graph>,
    /// What the graph must hold.
    expected: Mutex<Option<Expected>>,
}

/// What came of the writes and of the work that they left behind.
struct Written {
    seconds: f64,
    usage: PhaseUsage,
    settle: PhaseUsage,
    peak_bytes: u64,
}

impl Run<'_> {
    fn say(&self, stage: &str) {
        (self.listener)(&ProgressLine::of_stage(stage));
    }

    fn progress(&self, stage: &str, done: u64, total: u64) {
        let line = ProgressLine::of_progress(stage, [done, total], "rows", 0);
        (self.listener)(&line);
    }

    fn open(&self) -> Result<Box<dyn Engine>, RunError> {
        let AmplificationSpec { engine, settings, .. } = self.spec;
        let opened = match &self.graph {
            Some(_) => {
                let (spaces, needed) = (&schema::SPACES, Transactions::Needed);
                open_spaces(engine, self.directory, settings, spaces, needed)
            }
            None => {
                let plain = Transactions::Unneeded;
                open_spaces(engine, self.directory, settings, &SPACES, plain)
            }
        };
        opened.map_err(|error| failed("open", &error))
    }

    fn fill(&self, engine: &dyn Engine) -> Result<(), RunError> {
        self.say("fill");
        let filled = match &self.graph {
            Some(graph) => {
                let config = LoadConfig { loaders: 1, ..LoadConfig::default() };
                load::run(graph, &engine, &config, &Control::silent()).map(|loaded| {
                    *self.expected() = Some(Expected::after_load(graph, &loaded, config.nodes));
                })
            }
            None => self.fill_keys(engine),
        };
        filled.map_err(|error| failed("fill", &error))
    }

    fn expected(&self) -> MutexGuard<'_, Option<Expected>> {
        self.expected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fill_keys(&self, engine: &dyn Engine) -> EngineResult<()> {
        let spec = self.spec;
        let order = Permutation::new(spec.rows, spec.seed);
        let mut session = engine.session()?;
        let mut rows = Rows::new(spec);
        for first in (0..spec.rows).step_by(FILL_BATCH as usize) {
            rows.batch.clear();
            for place in first..(first + FILL_BATCH).min(spec.rows) {
                rows.add(order.at(place));
            }
            session.write_batch(&rows.batch)?;
            if first % (FILL_BATCH * 100) == 0 {
                self.progress("fill", first, spec.rows);
            }
        }
        Ok(())
    }

    /// Writes and waits for what that leaves behind, while another thread samples sizes.
    fn write_sampled(&self, engine: &dyn Engine) -> Result<Written, RunError> {
        let sampler = Sampler::new(self.directory, Instant::now());
        thread::scope(|scope| {
            let thread = scope.spawn(|| sampler.run(engine, &mut |_| ()));
            let written = self.write(engine);
            sampler.finish(thread.thread());
            let samples = thread.join().map_err(|_| RunError::new("the sampling thread failed"))?;
            let mut written = written?;
            let sizes = samples.iter().map(|sample| sample.directory.allocated_bytes);
            let settled = written.settle.directory.allocated_bytes;
            written.peak_bytes = sizes.chain([settled]).max().unwrap_or(0);
            Ok(written)
        })
    }

    fn write(&self, engine: &dyn Engine) -> Result<Written, RunError> {
        self.meter.sync();
        let before = self.meter.read();
        let start = Instant::now();
        let result = match &self.graph {
            Some(graph) => self.write_graph(graph, engine),
            None => self.write_keys(engine),
        };
        result.map_err(|error| failed("write", &error))?;
        let seconds = start.elapsed().as_secs_f64();
        let after = self.meter.read();
        self.meter.sync();
        let usage = self.meter.usage(&before, &after);
        self.say("settle");
        let before = self.meter.read();
        settle(engine)?;
        let after = self.meter.read();
        self.meter.sync();
        let settle = self.meter.usage(&before, &after);
        Ok(Written { seconds, usage, settle, peak_bytes: 0 })
    }

    /// How many writes there are at most.
    fn writes(&self) -> u64 {
        self.spec.rows * self.spec.writes_percent / 100
    }

    fn write_keys(&self, engine: &dyn Engine) -> EngineResult<()> {
        let spec = self.spec;
        let (order, zipf) = (Permutation::new(spec.rows, spec.seed), Zipf::new(spec.rows, ZIPF));
        // Stream 0 is that of the fill.
        let mut random = Random::new(spec.seed, 1);
        let mut session = engine.session()?;
        let mut rows = Rows::new(spec);
        let (start, end) = (Instant::now(), Duration::from_secs(spec.seconds_max));
        for done in 0..self.writes() {
            let number = match spec.workload {
                Workload::Zipf => order.at(zipf.rank(random.unit())),
                Workload::Uniform | Workload::LinkBench => random.below(spec.rows),
            };
            rows.batch.clear();
            rows.add(number);
            session.write_batch(&rows.batch)?;
            if done % 1024 == 0 {
                self.progress("write", done, self.writes());
                if start.elapsed() > end {
                    break;
                }
            }
        }
        Ok(())
    }

    fn write_graph(&self, graph: &Graph, engine: &dyn Engine) -> EngineResult<()> {
        let requests = self.writes() * REQUESTS_PER_WRITE;
        let config = RequestConfig {
            requesters: 1,
            requests_per_requester: requests,
            max_seconds: self.spec.seconds_max as f64,
            ..RequestConfig::after_load(graph)
        };
        let watch = Watch { run: self, requests };
        let control =
            Control { cancel: &NEVER, progress: &watch, interval: Duration::from_secs(1) };
        let outcome = request::run(graph, &engine, &config, &control)?;
        if let Some(expected) = &mut *self.expected() {
            expected.follow(&outcome);
        }
        match outcome.first_error {
            Some(error) => Err(EngineError::fatal(error)),
            None => Ok(()),
        }
    }

    /// Bytes of all keys and values that are there.
    fn live_bytes(&self, engine: &dyn Engine) -> Result<u64, RunError> {
        let spec = self.spec;
        let expected = self.expected();
        let Some(expected) = expected.as_ref().filter(|_| registry::stores(&spec.engine)) else {
            return Ok(spec.rows * (spec.key_bytes + spec.value_bytes));
        };
        self.say("check");
        let report = oracle::check_expected(&engine, &Control::silent(), expected)
            .map_err(|error| failed("oracle", &error))?;
        if !report.passed() {
            let described = report.described.join("; ");
            return Err(RunError::new(format!("{} differences: {described}", report.differences)));
        }
        Ok(report.live_bytes)
    }

    /// Closes the engine, drops the pages of its files, and opens it again. One that has no files
    /// stays as it is.
    fn reopened_cold(&self, engine: Box<dyn Engine>) -> Result<Box<dyn Engine>, RunError> {
        if !registry::uses_disk(&self.spec.engine) {
            return Ok(engine);
        }
        engine.close().map_err(|error| failed("close", &error))?;
        // Only clean pages can be dropped.
        self.meter.sync();
        drop_pages(self.directory);
        self.open()
    }

    fn query(
        &self,
        engine: &dyn Engine,
        kind: QueryKind,
        cold: bool,
    ) -> Result<QueryCost, RunError> {
        let (before, cpu) = (self.meter.read(), ProcessCpu::of_self());
        let rows = self.queries(engine, kind).map_err(|error| failed(kind.name(), &error))?;
        let cpu_us = ProcessCpu::of_self().since(&cpu).total_us();
        let io = self.meter.read().io_since(&before);
        let queries = self.spec.queries;
        let is_wrong = match kind {
            QueryKind::Absent => rows > 0,
            // Nodes of the graph are deleted too.
            QueryKind::Point => self.graph.is_none() && rows != queries,
            QueryKind::Range => false,
        };
        if is_wrong && registry::stores(&self.spec.engine) {
            let kind = kind.name();
            return Err(RunError::new(format!("{kind}: {queries} queries found {rows} rows")));
        }
        Ok(QueryCost {
            kind,
            cold,
            queries,
            rows,
            device_reads: io.device_reads(),
            device_bytes: io.process.read_device_bytes,
            cpu_us,
        })
    }

    /// Runs the queries of a kind, the same every time; gives the rows that they found.
    fn queries(&self, engine: &dyn Engine, kind: QueryKind) -> EngineResult<u64> {
        let mut session = engine.session()?;
        let mut random = Random::new(self.spec.seed, 2);
        let mut key = Key::new(self.spec.key_bytes as usize);
        let mut value = Vec::new();
        let mut rows = 0;
        for _ in 0..self.spec.queries {
            let number = random.below(self.spec.rows);
            rows += match &self.graph {
                Some(graph) => {
                    let id = graph.config().start_id + number;
                    query_graph(&mut *session, kind, id, &mut value)?
                }
                None => query_keys(&mut *session, kind, key.of(number), &mut value)?,
            };
        }
        Ok(rows)
    }
}

fn query_keys(
    session: &mut dyn Session,
    kind: QueryKind,
    key: &[u8],
    value: &mut Vec<u8>,
) -> EngineResult<u64> {
    match kind {
        QueryKind::Point => session.get(SPACE, key, value).map(u64::from),
        QueryKind::Range => {
            let range = ScanRange { start: key, limit: RANGE_ROWS, ..ScanRange::default() };
            session.scan(SPACE, &range, &mut |_, _| ControlFlow::Continue(()))
        }
        QueryKind::Absent => {
            // Right behind a key that is there, and before the next one.
            let mut absent = key.to_vec();
            absent.push(0);
            session.get(SPACE, &absent, value).map(u64::from)
        }
    }
}

fn query_graph(
    session: &mut dyn Session,
    kind: QueryKind,
    id: u64,
    value: &mut Vec<u8>,
) -> EngineResult<u64> {
    match kind {
        QueryKind::Point => session.get(NODE, &node_key(id), value).map(u64::from),
        QueryKind::Range => {
            let prefix = list_prefix(id, LINK_TYPE_FIRST, VISIBILITY_DEFAULT);
            let range = ScanRange { limit: RANGE_ROWS, ..ScanRange::prefix(&prefix) };
            session.scan(LINK_SECONDARY, &range, &mut |_, _| ControlFlow::Continue(()))
        }
        // No node has this id.
        QueryKind::Absent => {
            session.get(LINK, &link_key(LINK_TYPE_FIRST, id, u64::MAX), value).map(u64::from)
        }
    }
}

/// The rows of a batch under way.
struct Rows {
    key: Key,
    values: Values,
    batch: WriteBatch,
}

impl Rows {
    fn new(spec: &AmplificationSpec) -> Rows {
        Rows {
            key: Key::new(spec.key_bytes as usize),
            values: Values::new(spec.value_bytes as usize, HALF),
            batch: WriteBatch::new(),
        }
    }

    fn add(&mut self, number: u64) {
        self.batch.put(SPACE, self.key.of(number), self.values.next());
    }
}

/// Drops the clean pages of all files below `directory` from the page cache. A file that does not
/// let its pages go is warm, which its figures show.
fn drop_pages(directory: &Path) {
    for path in std::fs::read_dir(directory).into_iter().flatten().flatten().map(|e| e.path()) {
        if path.is_dir() {
            drop_pages(&path);
        } else if let Ok(file) = File::open(&path) {
            let _ = posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED);
        }
    }
}

static NEVER: AtomicBool = AtomicBool::new(false);

/// Tells how far the requests are.
struct Watch<'a> {
    run: &'a Run<'a>,
    requests: u64,
}

impl Progress for Watch<'_> {
    fn request(&self, progress: &RequestProgress) {
        self.run.progress("write", progress.requests, self.requests);
    }
}
