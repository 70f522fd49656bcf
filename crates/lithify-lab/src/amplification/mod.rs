//! Read, write and space amplification: what the formulas predict and what is measured.
//!
//! Owns: the formulas ([`formulas`]); what is measured of one engine under one workload, in a
//! process of its own ([`measure`]); the runner over engines and workloads; the tables ([`report`]).
//!
//! A cell fills a database, waits until nothing is due, changes every row several times, waits
//! again, and then reads: keys that are there, short ranges, keys that are not; each kind once with
//! nothing in any cache and once more, the same queries, right after it.
//!
//! Promises: bytes of users are counted above the engine, in one place for all of them; a cell that
//! fails costs its row only; a run that was stopped keeps its cells and goes on.
//!
//! Threads: [`Runner::run`] belongs to one thread; one client writes and reads.

pub mod compared;
mod counted;
pub mod formulas;
pub mod kind;
pub mod measure;
pub mod page;
pub mod report;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::adapter::settings::EngineSettings;
use crate::adapter::{Capabilities, EngineName, EngineStatistics};
use crate::engines::registry;
use crate::meter::PhaseUsage;
use crate::meter::machine::Machine;
use crate::run::process::{Answer, DataDirectory, JobFiles, Program, absolute, run_for_result};
use crate::run::progress::Announcer;
use crate::run::progress::ProgressLine;
use crate::run::store::note_seconds;
use crate::run::{RunError, require_free};

/// What rows are changed how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Workload {
    /// Any key is as likely as another.
    Uniform,
    /// Keys by Zipf's law with exponent 0.8, scattered.
    Zipf,
    /// The mix of the social graph.
    LinkBench,
}

impl Workload {
    /// All of them.
    pub const ALL: [Workload; 3] = [Workload::Uniform, Workload::Zipf, Workload::LinkBench];

    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Workload::Uniform => "uniform",
            Workload::Zipf => "zipf",
            Workload::LinkBench => "linkbench",
        }
    }
}

/// What is done, on what. Everything that can change a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AmplificationSpec {
    /// On which engine.
    pub engine: EngineName,
    /// With which settings.
    pub settings: EngineSettings,
    /// With which workload.
    pub workload: Workload,
    /// Keys, or nodes of the graph.
    pub rows: u64,
    /// Length of a key, bytes; of no meaning to the graph.
    pub key_bytes: u64,
    /// Length of a value, bytes; of no meaning to the graph.
    pub value_bytes: u64,
    /// Writes per row after the fill, in percent.
    pub writes_percent: u64,
    /// The writes end after so many seconds at the latest.
    pub seconds_max: u64,
    /// Queries of each kind.
    pub queries: u64,
    /// Seed of everything random.
    pub seed: u64,
    /// Hash of the program.
    pub build: String,
}

impl AmplificationSpec {
    /// Name of the cell and of its files.
    pub fn id(&self) -> String {
        format!("{}-{}", self.engine.name(), self.workload.name())
    }

    /// An upper estimate of what it needs on the disk, bytes.
    pub fn disk_bytes(&self) -> u64 {
        // A node with its links and counts has about 700 bytes.
        let row_bytes = match self.workload {
            Workload::LinkBench => 700,
            Workload::Uniform | Workload::Zipf => self.key_bytes + self.value_bytes,
        };
        self.rows * row_bytes * 6 + (256 << 20)
    }
}

/// What the measuring process is handed on its standard input.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AmplificationJob {
    /// What to do.
    pub spec: AmplificationSpec,
    /// Where the engine may write; exists and is empty.
    pub data_directory: PathBuf,
    /// Where the result goes.
    pub result_path: PathBuf,
    /// The process that waits for it.
    pub parent: u32,
}

/// A kind of query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueryKind {
    /// One row that is there.
    Point,
    /// Up to twenty rows from one that is there.
    Range,
    /// One row that is not there, between rows that are.
    Absent,
}

impl QueryKind {
    /// All of them.
    pub const ALL: [QueryKind; 3] = [QueryKind::Point, QueryKind::Range, QueryKind::Absent];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            QueryKind::Point => "point",
            QueryKind::Range => "range",
            QueryKind::Absent => "absent",
        }
    }
}

/// What queries of one kind cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueryCost {
    /// Which kind.
    pub kind: QueryKind,
    /// True when nothing was in any cache before them.
    pub cold: bool,
    /// How many.
    pub queries: u64,
    /// Rows that they found.
    pub rows: u64,
    /// Reads of the device; `None` when it does not count.
    pub device_reads: Option<f64>,
    /// Bytes that came from the device.
    pub device_bytes: u64,
    /// CPU, microseconds.
    pub cpu_us: u64,
}

/// What the measuring process found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AmplificationResult {
    /// What was done.
    pub spec: AmplificationSpec,
    /// When it began, seconds since 1970; `None` where that was not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_unix_s: Option<u64>,
    /// On which machine.
    pub machine: Machine,
    /// Name and version of the engine.
    pub engine_name: String,
    /// What it can do by itself.
    pub capabilities: Capabilities,
    /// Rows put or deleted by the writes after the fill, secondary ones included.
    pub changes: u64,
    /// Bytes of their keys and values.
    pub user_bytes: u64,
    /// Wall time of the writes, seconds.
    pub seconds: f64,
    /// What the writes cost.
    pub usage: PhaseUsage,
    /// What the background work cost that they left behind.
    pub settle: PhaseUsage,
    /// What the engine said when the fill was settled.
    pub statistics_before: EngineStatistics,
    /// When the writes were settled.
    pub statistics: EngineStatistics,
    /// Bytes of the keys and values of all rows that are there at the end.
    pub live_bytes: u64,
    /// Most bytes that the directory had while rows were written.
    pub directory_peak_bytes: u64,
    /// What queries cost, each kind cold and then warm.
    pub queries: Vec<QueryCost>,
}

/// A cell with what became of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AmplificationCell {
    /// What was to be done.
    pub spec: AmplificationSpec,
    /// The result, when it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<AmplificationResult>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// A run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AmplificationRecord {
    /// The cells in the order in which they ran.
    pub cells: Vec<AmplificationCell>,
}

/// Name of the run, and of its files.
pub const NAME: &str = "amplification";

/// Where the results of the cells are.
fn run_directory(results: &Path) -> PathBuf {
    results.join("runs").join(NAME)
}

fn result_path(results: &Path, spec: &AmplificationSpec) -> PathBuf {
    run_directory(results).join(format!("{}.json", spec.id()))
}

/// The result of an earlier run with the same description.
pub fn find(results: &Path, spec: &AmplificationSpec) -> Option<AmplificationResult> {
    let text = std::fs::read_to_string(result_path(results, spec)).ok()?;
    let result: AmplificationResult = serde_json::from_str(&text).ok()?;
    (result.spec == *spec).then_some(result)
}

/// Whatever was measured into `directory`, in the order of the names.
pub(crate) fn collect(directory: &Path) -> AmplificationRecord {
    let files = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = files.map(|entry| entry.path()).collect();
    paths.sort();
    let cell = |path: PathBuf| {
        let text = std::fs::read_to_string(path).ok()?;
        let result: AmplificationResult = serde_json::from_str(&text).ok()?;
        let spec = result.spec.clone();
        Some(AmplificationCell { spec, result: Some(result), failure: None })
    };
    AmplificationRecord { cells: paths.into_iter().filter_map(cell).collect() }
}

/// How a run is done.
pub struct Runner<'a> {
    /// The cells.
    pub specs: &'a [AmplificationSpec],
    /// The program that measures one, with the arguments that make it the measuring process.
    pub program: Program,
    /// Where results go.
    pub results: &'a Path,
    /// Where engines keep their data meanwhile; beside the results when not given.
    pub data: Option<&'a Path>,
    /// Measure again what was measured.
    pub fresh: bool,
    /// Set to true, it stops the run.
    pub interrupt: &'a AtomicBool,
}

impl Runner<'_> {
    /// Measures every cell that was not measured yet; `None` when it was stopped.
    ///
    /// # Errors
    /// Too little room on the disk, results that cannot be written. A cell that fails is no error.
    pub fn run(
        &self,
        announcer: &mut dyn Announcer,
    ) -> Result<Option<AmplificationRecord>, RunError> {
        let directory = run_directory(self.results);
        for path in [directory.as_path()].into_iter().chain(self.data) {
            std::fs::create_dir_all(path).map_err(|error| RunError::io(path, error))?;
        }
        let mut cells = Vec::new();
        for spec in self.specs {
            if self.interrupt.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let path = absolute(&result_path(self.results, spec))?;
            let kept = find(self.results, spec).filter(|_| !self.fresh);
            let cell = match kept {
                Some(result) => {
                    announcer.say(&format!("{}: measured already, kept", spec.id()));
                    announcer.done(&spec.id(), None);
                    AmplificationCell { spec: spec.clone(), result: Some(result), failure: None }
                }
                None => match self.measure(spec, &path, announcer)? {
                    Some(cell) => cell,
                    None => return Ok(None),
                },
            };
            cells.push(cell);
        }
        Ok(Some(AmplificationRecord { cells }))
    }

    fn measure(
        &self,
        spec: &AmplificationSpec,
        result_path: &Path,
        announcer: &mut dyn Announcer,
    ) -> Result<Option<AmplificationCell>, RunError> {
        let id = spec.id();
        let data = self.data.unwrap_or(self.results);
        if registry::uses_disk(&spec.engine) {
            require_free(data, spec.disk_bytes(), ", or take fewer --keys")?;
        }
        announcer.begin(&format!("{id}, {} rows", spec.rows));
        let began = Instant::now();
        let directory = DataDirectory::create(&data.join(format!("amp-{id}.data")))?;
        let log_path = result_path.with_extension("log");
        let job = AmplificationJob {
            spec: spec.clone(),
            data_directory: directory.engine_directory()?,
            result_path: result_path.to_owned(),
            parent: std::process::id(),
        };
        let mut progress = |line: &ProgressLine| announcer.progress(line);
        let files = JobFiles { result: result_path, log: &log_path };
        let answer: Answer<AmplificationResult> =
            run_for_result(&self.program, &job, &files, self.interrupt, &mut progress)?;
        let (result, failure, end) = match answer {
            Answer::Interrupted => {
                announcer.end(&format!("{id}: stopped"));
                return Ok(None);
            }
            Answer::Failed(why) => (None, Some(why.clone()), format!("{id}: failed: {why}")),
            Answer::Result(result) => {
                let end = format!("{id}: {} rows written", result.changes);
                (Some(*result), None, end)
            }
        };
        announcer.end(&end);
        let seconds = began.elapsed().as_secs_f64();
        if result.is_some() {
            note_seconds(&run_directory(self.results), &id, seconds);
        }
        announcer.done(&id, Some(seconds));
        Ok(Some(AmplificationCell { spec: spec.clone(), result, failure }))
    }
}
