//! What one cell of an experiment is told to do, and what it answers.
//!
//! A [`CellSpec`] holds everything that can change a figure, so its hash names the measurement: a
//! result with the same hash need not be measured again, and results with different hashes are
//! never put into one table.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::adapter::allocator::Allocator;
use crate::adapter::settings::EngineSettings;
use crate::adapter::{Capabilities, EngineName, EngineStatistics};
use crate::experiment::{DeviceSpeed, Phase, Profile};
use crate::keyvalue::samples::Sample;
use crate::latency::LatencySummary;
use crate::linkbench::control::ObservedStalls;
use crate::linkbench::dropping::DropResult;
use crate::linkbench::second_log::SecondLogUsage;
use crate::linkbench::{self, arrivals::OpenLoop};
use crate::meter::machine::Machine;
use crate::meter::space::DirectorySize;
use crate::meter::{IoUsage, PhaseUsage};
use crate::run::device_limit::DeviceLimit;
use crate::run::file_system::{CellFileSystem, FileSystemRequest};
use crate::run::memory_limit::{GroupUsage, MemoryLimit};

/// Version of the JSON of specs and results.
pub const SCHEMA: u32 = 1;

/// What a cell is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// One repeat of one arm.
    Measure,
    /// The same once more in the same repeat, for the A/A control: what the two differ by is noise.
    Control,
    /// A load with another number of threads, and nothing after it.
    Load,
    /// The driver's own cost, over the null engine.
    Calibrate,
}

impl Purpose {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Purpose::Measure => "measure",
            Purpose::Control => "control",
            Purpose::Load => "load",
            Purpose::Calibrate => "calibrate",
        }
    }
}

/// Everything that can change the figures of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellSpec {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Name of the cell, unique in its plan; also of its files.
    pub id: String,
    /// What it is for.
    pub purpose: Purpose,
    /// The arm, or `driver`.
    pub arm: String,
    /// Repeat, from 0.
    pub repeat: u64,
    /// On which engine.
    pub engine: EngineName,
    /// With which settings.
    pub settings: EngineSettings,
    /// Profile of the workload.
    pub profile: Profile,
    /// Seed of everything random.
    pub seed: u64,
    /// Nodes of the graph.
    pub nodes: u64,
    /// Threads that load links.
    pub loaders: u64,
    /// Threads of the query phase.
    pub requesters: u64,
    /// Threads of one query phase after another, the last with `requesters`; empty for that one
    /// alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<u64>,
    /// Queries before the measured ones, seconds.
    pub warmup_seconds: u64,
    /// Measured queries, seconds; at most, where they end by turnover.
    pub query_seconds: u64,
    /// Write operations per loaded node, since the load, at which ages are taken; the queries end
    /// at the last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turnovers: Vec<f64>,
    /// What the engine may use, page cache of its files included, bytes; `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit_bytes: Option<u64>,
    /// Rates of the open-loop phases after the queries, in percent of the queries' rate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open_loop_percent: Vec<u64>,
    /// How fast the device is.
    #[serde(default, skip_serializing_if = "DeviceSpeed::is_fast")]
    pub device: DeviceSpeed,
    /// The driver writes every change into a log of its own too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub second_log: bool,
    /// Every delete is a plain tombstone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub plain_deletes: bool,
    /// The file system that its data lie on, when it is not the one that is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_system: Option<FileSystemRequest>,
    /// At the end the database is dropped, beside other clients.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drop_database: bool,
    /// Where the process gets its memory from.
    #[serde(default, skip_serializing_if = "Allocator::is_system")]
    pub allocator: Allocator,
    /// Hash of the program: figures of different builds are not mixed.
    pub build: String,
}

impl CellSpec {
    /// The profile of its workload.
    pub fn workload(&self) -> linkbench::Profile {
        match self.profile {
            Profile::Lb2013 => linkbench::Profile::lb2013(),
            Profile::Lb2013Clean => linkbench::Profile::lb2013_clean(),
            Profile::Lb2020 => linkbench::Profile::lb2020(),
        }
    }

    /// The numbers of clients of its query phases, in order; none for a cell that only loads.
    pub fn client_counts(&self) -> &[u64] {
        match self.purpose {
            Purpose::Load => &[],
            _ if self.clients.is_empty() => std::slice::from_ref(&self.requesters),
            _ => &self.clients,
        }
    }

    /// The name of this measurement: a hash of the whole description.
    pub fn hash(&self) -> String {
        // The fields are written in declaration order, so equal specs give equal text.
        let text = serde_json::to_string(self).unwrap_or_default();
        format!("{:016x}", twox_hash::XxHash3_64::oneshot(text.as_bytes()))
    }
}

/// The figures of one phase.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PhaseResult {
    /// Links inserted, or operations done.
    pub operations: u64,
    /// Wall time of the driver for them, seconds.
    pub seconds: f64,
    /// Further rates per second, by name: `ips_link_count`, `ips_all`.
    pub rates: BTreeMap<String, f64>,
    /// What it cost.
    pub usage: PhaseUsage,
    /// What the background work cost that the phase left behind; its memory and directory are
    /// those when nothing was due any more.
    pub settle: PhaseUsage,
    /// Operations of every second.
    pub per_second: Vec<u64>,
    /// Whether the throughput was steady; `None` when it was too short to say.
    pub steady: Option<bool>,
    /// Latencies by operation.
    pub latencies: Vec<LatencySummary>,
    /// What the engine said before the phase, since it was opened.
    pub statistics_before: EngineStatistics,
    /// What the engine said at the end of the phase, since it was opened.
    pub statistics: EngineStatistics,
    /// What the engine said when nothing was due any more, since it was opened.
    pub statistics_settled: EngineStatistics,
    /// Windows of 100 ms in which no write completed.
    pub observed_stalls: ObservedStalls,
    /// What was read and written in the second half of the queries; `None` for the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_half: Option<HalfUsage>,
    /// The group that limited the memory, at the end; `None` without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupUsage>,
    /// Every second until nothing was due any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<Sample>,
    /// CPU of the thread that took them, in the phase, microseconds: no work of the engine.
    #[serde(default)]
    pub sampler_us: u64,
    /// The same while it settled.
    #[serde(default)]
    pub settle_sampler_us: u64,
    /// Write operations since the load, until the end of this phase, those of warm-ups included.
    #[serde(default)]
    pub write_operations: u64,
    /// What the driver's own log took of the phase; `None` without such a log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_log: Option<SecondLogUsage>,
    /// How far it was at each turnover, and at its end; empty for a phase that ends by time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ages: Vec<Age>,
    /// The driver's own summary.
    pub driver: serde_json::Value,
}

/// How far a phase was when the data had aged so much.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Age {
    /// Write operations per loaded node since the load.
    pub turnover: f64,
    /// Seconds since the phase began.
    pub seconds: f64,
    /// Operations since then.
    pub operations: u64,
    /// The data directory then.
    pub directory: DirectorySize,
    /// What the file system used by its own account; `None` when it is not the cell's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_system_bytes: Option<u64>,
}

/// The figures of a query phase with its number of clients.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClientsResult {
    /// Threads of the phase.
    pub clients: u64,
    /// Its figures.
    pub phase: PhaseResult,
}

/// The figures of a phase in which requests arrived at a fixed rate.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OpenLoopResult {
    /// The rate in percent of that of the queries, which went as fast as they could.
    pub percent: u64,
    /// How the arrivals went.
    pub arrivals: OpenLoop,
    /// Wall time, seconds.
    pub seconds: f64,
    /// Requests answered in every second.
    pub per_second: Vec<u64>,
    /// Latencies from the intended start, by operation.
    pub latencies: Vec<LatencySummary>,
    /// Windows of 100 ms in which no write completed.
    pub observed_stalls: ObservedStalls,
    /// What it cost.
    pub usage: PhaseUsage,
}

/// The second half of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HalfUsage {
    /// Operations in it.
    pub operations: u64,
    /// What they read and wrote.
    pub io: IoUsage,
}

impl PhaseResult {
    /// Operations per second.
    pub fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.operations as f64 / self.seconds } else { 0.0 }
    }

    /// Most live bytes of any second of the phase and of what it left behind.
    pub fn peak_live_bytes(&self) -> u64 {
        let samples = self.samples.iter().map(|sample| sample.live_bytes);
        samples.chain([self.statistics.live_bytes]).max().unwrap_or(0)
    }
}

/// The consistency check after the phases.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OracleResult {
    /// After which phase.
    pub phase: Phase,
    /// False voids the cell.
    pub passed: bool,
    /// What was checked, or what is wrong.
    pub summary: String,
}

/// The result of a cell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CellResult {
    /// [`CellSpec::hash`] of `spec`.
    pub hash: String,
    /// What was done.
    pub spec: CellSpec,
    /// When it began, seconds since 1970.
    pub started_unix_s: u64,
    /// On which machine.
    pub machine: Machine,
    /// Name and version of the engine.
    pub engine_name: String,
    /// What the engine can do by itself.
    pub capabilities: Capabilities,
    /// The options that the engine really ran with.
    pub engine_options: serde_json::Value,
    /// The block cache as the engine sized it, bytes; the setting when the engine does not tell.
    pub block_cache_bytes: u64,
    /// Name and version of the library behind each codec of the settings.
    pub codec_libraries: BTreeMap<String, String>,
    /// The graph: rank rule, links per node.
    pub graph: serde_json::Value,
    /// The load.
    pub load: PhaseResult,
    /// The queries; with the most clients, where there are several phases. Without any operation
    /// when the cell only loads.
    pub query: PhaseResult,
    /// The query phases before it, with fewer clients.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sweep: Vec<ClientsResult>,
    /// How the device was slowed; `None` when it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_limit: Option<DeviceLimit>,
    /// How memory was limited; `None` when it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit: Option<MemoryLimit>,
    /// Phases after the queries in which requests arrived at fixed rates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open_loop: Vec<OpenLoopResult>,
    /// The consistency checks; empty for an engine that stores nothing.
    pub oracle: Vec<OracleResult>,
    /// The file system of its own that the data were on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_system: Option<CellFileSystem>,
    /// What it cost to drop the database; `None` where it was not dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<DropResult>,
}

impl CellResult {
    /// The figures of a phase.
    pub fn phase(&self, phase: Phase) -> &PhaseResult {
        match phase {
            Phase::Load => &self.load,
            Phase::Query => &self.query,
        }
    }

    /// The query phases with their numbers of clients, in the order in which they ran.
    pub fn queries(&self) -> impl Iterator<Item = (u64, &PhaseResult)> {
        let earlier = self.sweep.iter().map(|point| (point.clients, &point.phase));
        let last = self.spec.client_counts().last().map(|clients| (*clients, &self.query));
        earlier.chain(last)
    }

    /// Write operations since the load per loaded node, at the end of a phase.
    pub fn turnover(&self, phase: &PhaseResult) -> f64 {
        phase.write_operations as f64 / self.spec.nodes as f64
    }

    /// The first check that failed: it voids the cell.
    pub fn violation(&self) -> Option<&OracleResult> {
        self.oracle.iter().find(|check| !check.passed)
    }
}
