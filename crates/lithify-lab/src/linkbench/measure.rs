//! The process of a cell, seen from inside: open, load, settle, check, query, check, settle.
//!
//! 1. The engine is opened on an empty directory.
//! 2. Each phase is metered from a synced file system to a synced file system, so that the device
//!    is charged for all that the phase wrote and for nothing else.
//! 3. After the load all background work is waited for and metered on its own: work that an arm
//!    puts off is not work that it saves.
//! 4. The oracle reads everything after each phase; a disagreement voids the cell.
//! 5. The warm-up is a request phase of its own, before the meters are read. Where queries are
//!    asked for with several numbers of clients, each number has a warm-up and a phase, in order,
//!    over the same data, and its background work is waited for before the next one.
//! 6. Where queries end by turnover, rate and size are taken at each turnover on the way.
//! 7. Where the database is to be dropped, that is done last ([`crate::run::dropping`]).
//! 8. A thread of its own samples sizes and memory every second of a phase and of its settling; its
//!    CPU is counted apart.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::json;

use super::dropping;
use crate::adapter::EngineStatistics;
use crate::adapter::graph::GraphEngine;
use crate::experiment::Phase;
use crate::keyvalue::samples::{Sample, Sampler};
use crate::linkbench::cell::{
    CellResult, CellSpec, ClientsResult, HalfUsage, OpenLoopResult, OracleResult, PhaseResult,
};
use crate::linkbench::control::{LoadProgress, RequestProgress};
use crate::linkbench::expected::Expected;
use crate::linkbench::load::LoadConfig;
use crate::linkbench::request::{RequestConfig, RequestOutcome};
use crate::linkbench::second_log::{Opened, SecondLogUsage};
use crate::linkbench::turnover::Ages;
use crate::linkbench::{Control, Graph, GraphConfig, Progress, load, oracle, request};
use crate::meter::machine::Machine;
use crate::meter::process::release_free_memory;
use crate::meter::steady::is_steady;
use crate::meter::{Meter, PhaseUsage, Reading};
use crate::run::cells::Job;
use crate::run::device_limit::DeviceLimit;
use crate::run::file_system::CellFileSystem;
use crate::run::memory_limit::{CellMemory, GroupUsage};
use crate::run::phase::{settle, statistics};
use crate::run::process::end_with_parent;
use crate::run::progress::{Listener, ProgressLine};
use crate::run::store::write_json;
use crate::run::{RunError, device_limit, failed, memory_limit};

/// Does a job and writes its result. Asks the kernel to end this process with its parent.
///
/// # Errors
/// The engine's, or the result cannot be written.
pub fn run_job(job: &Job<CellSpec>, listener: Listener<'_>) -> Result<(), RunError> {
    end_with_parent(job.parent)?;
    if let Some(memory) = &job.memory {
        memory_limit::join(&memory.group)?;
    }
    if let Some(group) = job.device.as_ref().and_then(|device| device.group.as_ref()) {
        device_limit::join(group)?;
    }
    let limits = Limits {
        memory: job.memory.as_ref(),
        device: job.device.as_ref().map(|device| &device.limit),
        file_system: job.file_system.as_ref(),
    };
    let result = measure(&job.cell, &job.data_directory, limits, listener)?;
    write_json(&job.result_path, &result)
}

/// What a process is held to, and what it has for itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits<'a> {
    /// On its memory.
    pub memory: Option<&'a CellMemory>,
    /// On its device.
    pub device: Option<&'a DeviceLimit>,
    /// The file system that its data have for themselves.
    pub file_system: Option<&'a CellFileSystem>,
}

/// Measures one cell in this process, which is under `limits` already, with the engine's data in
/// `directory`.
///
/// # Errors
/// The engine's, or requests that failed.
pub fn measure(
    spec: &CellSpec,
    directory: &Path,
    limits: Limits<'_>,
    listener: Listener<'_>,
) -> Result<CellResult, RunError> {
    let started = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let graph = graph(spec)?;
    let (opened, directory) = Opened::open(spec, limits.device, directory)?;
    let engine = opened.engine();
    let mut meter = Meter::new(&directory);
    meter.watch(engine.below().process_ids());
    limits.file_system.iter().for_each(|own| own.tell(&mut meter));
    let log = &|| opened.log_usage();
    let Limits { memory, device, file_system } = limits;
    let expected = Mutex::default();
    let cell =
        Cell { spec, graph: &graph, directory: &directory, meter, memory, log, listener, expected };
    let load = cell.load(engine)?;
    let mut checks = Vec::new();
    checks.extend(cell.check(engine, Phase::Load)?);
    let mut queries = cell.queries(engine)?;
    if !queries.phases.is_empty() {
        checks.extend(cell.check(engine, Phase::Query)?);
    }
    let query = queries.phases.pop().map(|point| point.phase).unwrap_or_default();
    let mut result = CellResult {
        hash: spec.hash(),
        spec: spec.clone(),
        started_unix_s: started,
        machine: Machine::describe(&directory),
        engine_name: engine.below().name(),
        capabilities: engine.below().capabilities(),
        engine_options: engine.below().options(),
        block_cache_bytes: query
            .statistics
            .raw
            .pointer("/cache/capacity_bytes")
            .and_then(serde_json::Value::as_u64)
            .unwrap_or(spec.settings.block_cache_bytes),
        codec_libraries: crate::engines::registry::codec_libraries(&spec.engine, &spec.settings)
            .map_err(|error| failed("codecs", &error))?,
        graph: json!({
            "nodes": spec.nodes,
            "rank_rule": graph.rank_rule(),
            "links_per_node": graph.expected_links() as f64 / spec.nodes as f64,
        }),
        load,
        query,
        sweep: queries.phases,
        device_limit: device.cloned(),
        memory_limit: memory.map(|memory| memory.limit.clone()),
        open_loop: queries.open_loop,
        oracle: checks,
        file_system: file_system.cloned(),
        dropped: None,
    };
    spec.allocator.verify(&result.machine.allocator)?;
    if spec.drop_database {
        listener(&ProgressLine::of_stage("drop"));
        result.dropped = Some(dropping::drop_database(opened, &directory, file_system)?);
    } else {
        opened.close()?;
    }
    Ok(result)
}

fn graph(spec: &CellSpec) -> Result<Graph, RunError> {
    let config = GraphConfig { seed: spec.seed, ..GraphConfig::with_nodes(spec.nodes) };
    Graph::new(spec.workload(), config).map_err(|error| RunError::new(format!("graph: {error}")))
}

/// A cell under way.
struct Cell<'a> {
    spec: &'a CellSpec,
    graph: &'a Graph,
    directory: &'a Path,
    meter: Meter,
    memory: Option<&'a CellMemory>,
    /// What the driver's own log took so far.
    log: &'a (dyn Fn() -> Option<SecondLogUsage> + Sync),
    listener: Listener<'a>,
    /// See [`Cell::expected`].
    expected: Mutex<Option<Expected>>,
}

/// What came of the queries.
struct Queries {
    /// One phase per number of clients.
    phases: Vec<ClientsResult>,
    open_loop: Vec<OpenLoopResult>,
}

/// How the next request phase goes on.
struct Course {
    config: RequestConfig,
    /// Write operations since the load.
    write_operations: u64,
}

impl Course {
    /// Goes on behind a phase.
    fn follow(&mut self, outcome: &RequestOutcome) {
        self.config.start_time_ms = outcome.next_time_ms;
        self.config.first_new_node_id = outcome.next_node_id;
        self.write_operations += outcome.writes;
    }
}

/// The readings at the start of a phase.
struct Before {
    statistics: EngineStatistics,
    log: Option<SecondLogUsage>,
    reading: Reading,
}

/// What the meters and the engine say at the end of a phase and of what it left behind.
struct End {
    reading: Reading,
    usage: PhaseUsage,
    sampler_us: u64,
    group: Option<GroupUsage>,
    statistics: EngineStatistics,
    settle: PhaseUsage,
    settle_sampler_us: u64,
    statistics_settled: EngineStatistics,
    second_log: Option<SecondLogUsage>,
}

impl Cell<'_> {
    /// What the graph must hold by now; nothing before it was loaded.
    fn expected(&self) -> MutexGuard<'_, Option<Expected>> {
        self.expected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn say(&self, stage: &str) {
        (self.listener)(&ProgressLine::of_stage(stage));
    }

    fn begin(&self, engine: &dyn GraphEngine) -> Result<Before, RunError> {
        let statistics = statistics(engine.below())?;
        self.meter.sync();
        // Where it cannot be reset, the most resident memory is that of all phases so far.
        self.meter.reset_resident_max();
        Ok(Before { statistics, log: (self.log)(), reading: self.meter.read() })
    }

    /// What the driver's own log took since a phase began.
    fn log_since(&self, before: &Before) -> Option<SecondLogUsage> {
        Some((self.log)()?.since(&before.log?))
    }

    fn end(&self, before: &Before) -> PhaseUsage {
        let after = self.meter.read();
        self.meter.sync();
        self.meter.usage(&before.reading, &after)
    }

    fn load(&self, engine: &dyn GraphEngine) -> Result<PhaseResult, RunError> {
        let reporter = Reporter::new(self, "load");
        let before = self.begin(engine)?;
        let config = LoadConfig { loaders: self.spec.loaders, ..LoadConfig::default() };
        let ((outcome, end), samples) = self.sampled(engine, |sampler| {
            let outcome = load::run(self.graph, engine, &config, &reporter.control())
                .map_err(|error| failed("load", &error))?;
            Ok((outcome, self.end_and_settle(engine, &before, sampler)?))
        })?;
        let expected = Expected::after_load(self.graph, &outcome, config.nodes);
        *self.expected() = Some(expected);
        let per_second = whole_seconds(outcome.per_second.clone(), outcome.seconds);
        Ok(PhaseResult {
            operations: outcome.links,
            seconds: outcome.seconds,
            rates: [("ips_link_count", outcome.ips_link_count), ("ips_all", outcome.ips_all)]
                .map(|(name, rate)| (name.to_owned(), rate))
                .into(),
            usage: end.usage,
            settle: end.settle,
            steady: is_steady(&per_second),
            per_second,
            latencies: outcome.latencies.clone(),
            statistics_before: before.statistics,
            statistics: end.statistics,
            statistics_settled: end.statistics_settled,
            observed_stalls: outcome.observed_stalls,
            second_half: None,
            group: end.group,
            samples,
            sampler_us: end.sampler_us,
            settle_sampler_us: end.settle_sampler_us,
            write_operations: 0,
            second_log: end.second_log,
            ages: Vec::new(),
            driver: summary(&outcome),
        })
    }

    /// The group that limits the memory, as it is now.
    fn group(&self) -> Option<GroupUsage> {
        self.memory.map(|memory| GroupUsage::read(&memory.group))
    }

    /// The queries with each number of clients, and the open loops at shares of the last one's rate.
    fn queries(&self, engine: &dyn GraphEngine) -> Result<Queries, RunError> {
        let mut course = Course {
            config: RequestConfig {
                requests_per_requester: u64::MAX,
                ..RequestConfig::after_load(self.graph)
            },
            write_operations: 0,
        };
        let mut phases = Vec::new();
        for clients in self.spec.client_counts() {
            course.config.requesters = *clients;
            let phase = self.query(engine, &mut course)?;
            phases.push(ClientsResult { clients: *clients, phase });
        }
        let open_loop = match phases.last() {
            Some(last) => self.open_loop(engine, last.phase.rate(), course)?,
            None => Vec::new(),
        };
        Ok(Queries { phases, open_loop })
    }

    /// Queries as fast as they go, after a warm-up.
    fn query(
        &self,
        engine: &dyn GraphEngine,
        course: &mut Course,
    ) -> Result<PhaseResult, RunError> {
        if self.spec.warmup_seconds > 0 {
            course.config.max_seconds = self.spec.warmup_seconds as f64;
            let ages = Ages::new(self.spec, course.write_operations);
            course.config.max_writes = ages.writes_of_warm_up();
            let warmup = self.requests(engine, &course.config, "warm-up", Watch::default())?;
            course.follow(&warmup);
        }
        course.config.max_seconds = self.spec.query_seconds as f64;
        let ages = Ages::new(self.spec, course.write_operations);
        course.config.max_writes = ages.writes_until_end();
        let before = self.begin(engine)?;
        let half = Mutex::default();
        let ((outcome, end), samples) = self.sampled(engine, |sampler| {
            let watch = Watch { half: Some(&half), ages: Some(&ages) };
            let outcome = self.requests(engine, &course.config, "query", watch)?;
            ages.finish(&outcome, &|| self.meter.sizes());
            Ok((outcome, self.end_and_settle(engine, &before, sampler)?))
        })?;
        course.config.max_writes = None;
        let half: Option<Halfway> = half.into_inner().unwrap_or_else(PoisonError::into_inner);
        let per_second = whole_seconds(outcome.per_second.clone(), outcome.seconds);
        course.follow(&outcome);
        Ok(PhaseResult {
            operations: outcome.requests,
            seconds: outcome.seconds,
            rates: std::collections::BTreeMap::new(),
            usage: end.usage,
            settle: end.settle,
            steady: is_steady(&per_second),
            per_second,
            latencies: outcome.latencies.clone(),
            statistics_before: before.statistics,
            statistics: end.statistics,
            statistics_settled: end.statistics_settled,
            observed_stalls: outcome.observed_stalls,
            second_half: half.map(|half| HalfUsage {
                operations: outcome.requests.saturating_sub(half.requests),
                io: end.reading.io_since(&half.reading),
            }),
            group: end.group,
            samples,
            sampler_us: end.sampler_us,
            settle_sampler_us: end.settle_sampler_us,
            write_operations: course.write_operations,
            second_log: end.second_log,
            ages: ages.into_taken(),
            driver: summary(&outcome),
        })
    }

    /// The open-loop phases, at the spec's percentages of `rate`, each as long as the queries.
    fn open_loop(
        &self,
        engine: &dyn GraphEngine,
        rate: f64,
        mut course: Course,
    ) -> Result<Vec<OpenLoopResult>, RunError> {
        let mut results = Vec::new();
        for percent in &self.spec.open_loop_percent {
            course.config.arrivals_per_second = rate * *percent as f64 / 100.0;
            let before = self.begin(engine)?;
            let outcome = self.requests(engine, &course.config, "open loop", Watch::default())?;
            let usage = self.end(&before);
            course.follow(&outcome);
            let Some(arrivals) = outcome.open_loop else { continue };
            results.push(OpenLoopResult {
                percent: *percent,
                arrivals,
                seconds: outcome.seconds,
                per_second: whole_seconds(outcome.per_second, outcome.seconds),
                latencies: outcome.latencies,
                observed_stalls: outcome.observed_stalls,
                usage,
            });
            self.settle(engine, Duration::ZERO)?;
        }
        Ok(results)
    }

    fn requests(
        &self,
        engine: &dyn GraphEngine,
        config: &RequestConfig,
        stage: &'static str,
        watch: Watch<'_>,
    ) -> Result<RequestOutcome, RunError> {
        let reporter =
            Reporter { seconds: config.max_seconds as u64, watch, ..Reporter::new(self, stage) };
        let outcome = request::run(self.graph, engine, config, &reporter.control())
            .map_err(|error| failed(stage, &error))?;
        if outcome.failures > 0 {
            let first = outcome.first_error.as_deref().unwrap_or("without a reason");
            return Err(RunError::new(format!(
                "{stage}: {} requests failed, the first one: {first}",
                outcome.failures
            )));
        }
        if let Some(expected) = &mut *self.expected() {
            expected.follow(&outcome);
        }
        Ok(outcome)
    }

    /// Does `work` while a thread of its own takes a sample of the engine every second.
    fn sampled<R>(
        &self,
        engine: &dyn GraphEngine,
        work: impl FnOnce(&Sampler<'_>) -> Result<R, RunError>,
    ) -> Result<(R, Vec<Sample>), RunError> {
        let sampler = Sampler::new(self.directory, Instant::now());
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| sampler.run(engine.below(), &mut |_| ()));
            let result = work(&sampler);
            sampler.finish(thread.thread());
            let samples = thread.join().map_err(|_| RunError::new("the sampling thread failed"))?;
            Ok((result?, samples))
        })
    }

    /// Reads the meters at the end of a phase, then waits for the work that it left behind.
    fn end_and_settle(
        &self,
        engine: &dyn GraphEngine,
        before: &Before,
        sampler: &Sampler<'_>,
    ) -> Result<End, RunError> {
        let reading = self.meter.read();
        let sampler_us = sampler.cpu_us();
        self.meter.sync();
        let usage = self.meter.usage(&before.reading, &reading);
        let group = self.group();
        let statistics = statistics(engine.below())?;
        let second_log = self.log_since(before);
        let phase = Duration::from_secs_f64(usage.seconds);
        let (settle, statistics_settled) = self.settle(engine, phase)?;
        let settle_sampler_us = sampler.cpu_us().saturating_sub(sampler_us);
        Ok(End {
            reading,
            usage,
            sampler_us,
            group,
            statistics,
            settle,
            settle_sampler_us,
            statistics_settled,
            second_log,
        })
    }

    /// Waits for all background work that a phase of some length left behind, and meters it.
    fn settle(
        &self,
        engine: &dyn GraphEngine,
        phase: Duration,
    ) -> Result<(PhaseUsage, EngineStatistics), RunError> {
        self.say("settle");
        let before = self.begin(engine)?;
        settle(engine.below())?;
        let after = self.meter.read();
        self.meter.sync();
        self.meter.wait_for_quiet_directory(phase);
        let usage = self.meter.usage(&before.reading, &after);
        Ok((usage, statistics(engine.below())?))
    }

    fn check(
        &self,
        engine: &dyn GraphEngine,
        phase: Phase,
    ) -> Result<Option<OracleResult>, RunError> {
        if !crate::engines::registry::stores(&self.spec.engine) {
            return Ok(None);
        }
        self.say("check");
        let reporter = Reporter::new(self, "check");
        let report = match &*self.expected() {
            Some(expected) => oracle::check_expected(engine, &reporter.control(), expected),
            None => oracle::check(engine, &reporter.control()),
        };
        let report = report.map_err(|error| failed("oracle", &error))?;
        release_free_memory();
        let summary = if report.passed() {
            format!(
                "{} nodes, {} links, {} of them visible, {} counts, {} MB of keys and values",
                report.nodes,
                report.links,
                report.visible_links,
                report.counts,
                report.live_bytes / 1_000_000
            )
        } else {
            format!("{} differences: {}", report.differences, report.described.join("; "))
        };
        Ok(Some(OracleResult { phase, passed: report.passed(), summary }))
    }
}

/// What the driver says beside what has a place of its own in the result.
fn summary(outcome: &impl serde::Serialize) -> serde_json::Value {
    let mut summary = json!(outcome);
    if let Some(fields) = summary.as_object_mut() {
        fields.remove("latencies");
        fields.remove("per_second");
        fields.remove("observed_stalls");
    }
    summary
}

/// Leaves out the second in which the phase ended.
fn whole_seconds(mut per_second: Vec<u64>, seconds: f64) -> Vec<u64> {
    per_second.truncate(seconds as usize);
    per_second
}

static NEVER: AtomicBool = AtomicBool::new(false);

/// The counters in the middle of a phase.
struct Halfway {
    requests: u64,
    reading: Reading,
}

/// Who wants to know how far a phase is.
#[derive(Clone, Copy, Default)]
struct Watch<'a> {
    /// Gets the counters when half of the seconds are over, or of the writes.
    half: Option<&'a Mutex<Option<Halfway>>>,
    /// Hears of every turnover.
    ages: Option<&'a Ages<'a>>,
}

/// Turns the workload's progress into lines.
struct Reporter<'a> {
    cell: &'a Cell<'a>,
    stage: &'static str,
    links: u64,
    seconds: u64,
    watch: Watch<'a>,
    /// When the last line was printed and how much had been done.
    last: Mutex<(Duration, u64)>,
}

impl<'a> Reporter<'a> {
    fn new(cell: &'a Cell<'a>, stage: &'static str) -> Self {
        let links = cell.graph.expected_links();
        Reporter { cell, stage, links, seconds: 0, watch: Watch::default(), last: Mutex::default() }
    }

    fn control(&self) -> Control<'_> {
        Control { cancel: &NEVER, progress: self, interval: Duration::from_secs(1) }
    }

    /// Things per second since the last call.
    fn rate(&self, elapsed: Duration, count: u64) -> u64 {
        let Ok(mut last) = self.last.lock() else { return 0 };
        let seconds = elapsed.saturating_sub(last.0).as_secs_f64();
        let rate = if seconds > 0.0 { count.saturating_sub(last.1) as f64 / seconds } else { 0.0 };
        *last = (elapsed, count);
        rate as u64
    }

    fn line(&self, done: u64, total: u64, unit: &str, rate: u64) {
        let line = ProgressLine::of_progress(self.stage, [done, total], unit, rate);
        (self.cell.listener)(&line);
    }
}

impl Progress for Reporter<'_> {
    fn load(&self, progress: &LoadProgress) {
        let rate = self.rate(progress.elapsed, progress.links);
        self.line(progress.links, self.links, "links", rate);
    }

    fn request(&self, progress: &RequestProgress) {
        let rate = self.rate(progress.elapsed, progress.requests);
        self.line(progress.elapsed.as_secs(), self.seconds, "seconds", rate);
        let Watch { half, ages } = self.watch;
        let meter = &self.cell.meter;
        if let Some(ages) = ages {
            ages.tell(progress, &|| meter.sizes());
        }
        let share = ages.map_or(0.0, |ages| ages.share(progress));
        let is_halfway = share >= 0.5 || 2 * progress.elapsed.as_secs() >= self.seconds;
        if is_halfway && let Some(Ok(mut half)) = half.map(Mutex::lock) {
            let requests = progress.requests;
            half.get_or_insert_with(|| Halfway { requests, reading: meter.read() });
        }
    }
}
