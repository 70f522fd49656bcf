//! Read, write and space amplification: what the formulas predict and what is measured.
//!
//! Owns: the formulas ([`formulas`]); what is measured of one engine under one workload, in a
//! process of its own ([`measure`]); the plan over engines and workloads; the tables ([`report`]).
//!
//! A cell fills a database, waits until nothing is due, changes every row several times, waits
//! again, and then reads: keys that are there, short ranges, keys that are not; each kind once with
//! nothing in any cache and once more, the same queries, right after it.
//!
//! Promises: bytes of users are counted above the engine, in one place for all of them; a cell that
//! fails costs its row only; a run that was stopped keeps its cells and goes on.
//!
//! Threads: one client writes and reads.

pub mod compared;
mod counted;
pub mod formulas;
pub mod kind;
pub mod measure;
pub mod page;
pub mod report;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::adapter::settings::EngineSettings;
use crate::adapter::{Capabilities, EngineName, EngineStatistics};
use crate::meter::PhaseUsage;
use crate::meter::machine::Machine;
use crate::run::cells::{Cell, Entries, Entry, Part, RunPlan};

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

impl AmplificationSpec {
    /// Name of the cell and of its files.
    pub fn id(&self) -> String {
        format!("{}-{}", self.engine.name(), self.workload.name())
    }
}

impl Cell for AmplificationSpec {
    type Outcome = AmplificationResult;

    fn id(&self) -> String {
        AmplificationSpec::id(self)
    }

    fn engine(&self) -> EngineName {
        self.engine.clone()
    }

    fn part(&self) -> Part {
        Part::Row(format!("{} under {}", self.engine, self.workload.name()))
    }

    fn is_result(&self, result: &AmplificationResult) -> bool {
        result.spec == *self
    }

    fn faults(_result: &AmplificationResult) -> Vec<String> {
        Vec::new()
    }

    fn summary(result: &AmplificationResult) -> String {
        format!("{} rows written", result.changes)
    }
}

/// What is measured: engines under workloads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AmplificationPlan {
    /// The cells in the order in which they run.
    pub cells: Vec<AmplificationSpec>,
}

impl RunPlan for AmplificationPlan {
    type Cell = AmplificationSpec;
    const SMALLER: &'static str = "take fewer --keys";

    fn name(&self) -> String {
        NAME.to_owned()
    }

    fn scale(&self) -> Option<&str> {
        None
    }

    fn cells(&self) -> &[AmplificationSpec] {
        &self.cells
    }

    /// An upper estimate.
    fn needed_bytes(&self, cell: &AmplificationSpec) -> u64 {
        // A node with its links and counts has about 700 bytes.
        let row_bytes = match cell.workload {
            Workload::LinkBench => 700,
            Workload::Uniform | Workload::Zipf => cell.key_bytes + cell.value_bytes,
        };
        cell.rows * row_bytes * 6 + (256 << 20)
    }
}

impl AmplificationPlan {
    /// Whatever was measured into `directory`, in the order of the names; nothing where that is none.
    pub(crate) fn measured(directory: &Path) -> Option<AmplificationPlan> {
        let files = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = files.map(|entry| entry.path()).collect();
        paths.sort();
        let cell = |path: PathBuf| {
            let text = std::fs::read_to_string(path).ok()?;
            let result: AmplificationResult = serde_json::from_str(&text).ok()?;
            Some(result.spec)
        };
        let cells: Vec<AmplificationSpec> = paths.into_iter().filter_map(cell).collect();
        (!cells.is_empty()).then_some(AmplificationPlan { cells })
    }
}

impl AmplificationRecord {
    /// A run with what became of its cells.
    pub fn new(entries: Entries<AmplificationSpec>) -> AmplificationRecord {
        let cell =
            |Entry { cell, result, failure }| AmplificationCell { spec: cell, result, failure };
        AmplificationRecord { cells: entries.cells.into_iter().map(cell).collect() }
    }
}
