//! Random overwrites as fast as they go: what an engine's writers see when nothing holds them.
//!
//! Owns: the workload (keys and values of the classic key-value benchmark; every key is put once
//! in random order, then random keys are put again for a time, then background work is waited
//! for), what the engine and the process cost ([`measure`]), and the report ([`report`]). Entries,
//! timeline and samples are those of [`crate::keyvalue`].
//!
//! Promises: the engine runs in a process of its own, opened anew between fill and overwrites, so
//! that its counters are those of the overwrites; the same driver runs over the engine that stores
//! nothing, so that its own cost is known. No latency leaves out a wait.
//!
//! Threads: the measuring process has one thread per client and one that samples every second. Does not know experiments, arms or repeats.

pub mod compared;
pub mod figures;
pub mod kind;
pub mod measure;
pub mod page;
pub mod report;

use serde::{Deserialize, Serialize};

use crate::adapter::settings::EngineSettings;
use crate::adapter::{EngineName, EngineStatistics};
use crate::engines::registry;
use crate::keyvalue::samples::Sample;
use crate::keyvalue::timeline::{Evenness, Throughput};
use crate::meter::PhaseUsage;
use crate::meter::machine::Machine;
use crate::run::RunError;
use crate::run::cells::{Cell, Entries, Entry, RunPlan};

/// What is done, on what. Everything that can change a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OverwriteSpec {
    /// On which engine.
    pub engine: EngineName,
    /// With which settings.
    pub settings: EngineSettings,
    /// Number of keys.
    pub keys: u64,
    /// Length of a key, bytes; at least 8.
    pub key_bytes: u64,
    /// Length of a value, bytes.
    pub value_bytes: u64,
    /// Threads that write.
    pub clients: u64,
    /// How long keys are overwritten, seconds.
    pub seconds: u64,
    /// Seed of everything random.
    pub seed: u64,
    /// Hash of the program.
    pub build: String,
}

impl OverwriteSpec {
    /// Key and value bytes of the whole database.
    pub fn logical_bytes(&self) -> u64 {
        self.keys * (self.key_bytes + self.value_bytes)
    }
}

/// What the measuring process found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OverwriteResult {
    /// What was done.
    pub spec: OverwriteSpec,
    /// When it began, seconds since 1970; `None` where that was not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_unix_s: Option<u64>,
    /// On which machine.
    pub machine: Machine,
    /// Name and version of the engine.
    pub engine_name: String,
    /// The options that it really ran with.
    pub engine_options: serde_json::Value,
    /// Keys put per second by the fill.
    pub fill_rate: f64,
    /// What the fill cost, background work that it left behind included.
    pub fill: PhaseUsage,
    /// What the clients saw.
    pub throughput: Throughput,
    /// What the overwrites cost.
    pub usage: PhaseUsage,
    /// What the background work cost that they left behind.
    pub settle: PhaseUsage,
    /// Every second, from the first overwrite until nothing was due.
    pub samples: Vec<Sample>,
    /// What the engine said when it was opened for the overwrites.
    pub statistics_before: EngineStatistics,
    /// When they were over.
    pub statistics: EngineStatistics,
    /// When nothing was due any more.
    pub statistics_settled: EngineStatistics,
}

/// The result of a run with that of its driver.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OverwriteRecord {
    /// Over the engine; nothing when only the driver was measured.
    pub result: Option<OverwriteResult>,
    /// Over the engine that stores nothing.
    pub driver: OverwriteResult,
}

/// The driver is measured for so long at most: its figures do not change.
const DRIVER_SECONDS_MAX: u64 = 10;

impl Cell for OverwriteSpec {
    type Outcome = OverwriteResult;

    fn id(&self) -> String {
        format!("overwrite-{}", self.engine.name())
    }

    fn engine(&self) -> EngineName {
        self.engine.clone()
    }

    fn is_result(&self, result: &OverwriteResult) -> bool {
        result.spec == *self
    }

    fn faults(_result: &OverwriteResult) -> Vec<String> {
        Vec::new()
    }

    fn summary(result: &OverwriteResult) -> String {
        format!("{:.0} writes/s", Evenness::of(&result.throughput.per_second).mean)
    }
}

/// What is measured: the driver, then the engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OverwritePlan {
    /// The cells in the order in which they run.
    pub cells: Vec<OverwriteSpec>,
}

impl OverwritePlan {
    /// An engine that stores nothing is measured as the driver alone.
    pub fn new(spec: OverwriteSpec) -> OverwritePlan {
        let driver = OverwriteSpec {
            engine: EngineName::null(),
            seconds: spec.seconds.min(DRIVER_SECONDS_MAX),
            ..spec.clone()
        };
        let engine = registry::stores(&spec.engine).then_some(spec);
        OverwritePlan { cells: std::iter::once(driver).chain(engine).collect() }
    }
}

impl RunPlan for OverwritePlan {
    type Cell = OverwriteSpec;
    const SMALLER: &'static str = "take fewer --keys";

    fn name(&self) -> String {
        self.cells.last().map(Cell::id).unwrap_or_default()
    }

    fn scale(&self) -> Option<&str> {
        None
    }

    fn cells(&self) -> &[OverwriteSpec] {
        &self.cells
    }

    /// Twice the logical size is more than the engine needs at its peak.
    fn needed_bytes(&self, cell: &OverwriteSpec) -> u64 {
        cell.logical_bytes() * 2 + (256 << 20)
    }
}

impl OverwriteRecord {
    /// A run with what became of its cells.
    ///
    /// # Errors
    /// One of them failed, or was not measured.
    pub fn new(
        plan: &OverwritePlan,
        entries: Entries<OverwriteSpec>,
    ) -> Result<OverwriteRecord, RunError> {
        let cells = plan.cells.len();
        let outcome = |Entry { cell, result, failure }: Entry<OverwriteSpec>| {
            result.ok_or_else(|| {
                RunError::new(format!("{}: {}", cell.id(), failure.unwrap_or_default()))
            })
        };
        let mut outcomes = entries.cells.into_iter().map(outcome);
        let missing = || RunError::new("the run was stopped before its end");
        let driver = outcomes.next().ok_or_else(missing)??;
        let result = outcomes.next().transpose()?;
        if usize::from(result.is_some()) + 1 < cells {
            return Err(missing());
        }
        Ok(OverwriteRecord { result, driver })
    }
}
