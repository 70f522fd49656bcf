//! A run: a cell for every mode, and its record.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{CommitFigures, DurabilityRecord, DurabilitySpec, LossFigures, Mode, NAME, report};
use crate::adapter::EngineName;
use crate::meter::machine::Machine;
use crate::run::RunError;
use crate::run::cells::{Cell, Entries, Entry, RunPlan};
use crate::run::estimate::Effort;

/// Free disk that a mode needs.
const NEEDED_BYTES: u64 = 4 << 30;

/// Everything in one mode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModeCell {
    /// What is done.
    pub spec: DurabilitySpec,
    /// When commits return.
    pub mode: Mode,
}

/// What was found in one mode, kept beside the run's report.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ModeResult {
    /// What was done.
    pub spec: DurabilitySpec,
    /// When it began, seconds since 1970.
    pub started_unix_s: u64,
    /// On which machine; `None` where that was not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// By number of writers.
    pub commits: Vec<CommitFigures>,
    /// By crash.
    pub losses: Vec<LossFigures>,
}

impl Cell for ModeCell {
    type Outcome = ModeResult;

    fn id(&self) -> String {
        self.mode.name().to_owned()
    }

    fn engine(&self) -> EngineName {
        EngineName::lithify()
    }

    /// Commits; crashes come beyond them.
    fn effort(&self) -> Effort {
        Effort::declared(self.spec.writers.len() as f64 * self.spec.seconds)
    }

    fn is_result(&self, result: &ModeResult) -> bool {
        result.spec == self.spec
    }

    fn faults(_result: &ModeResult) -> Vec<String> {
        Vec::new()
    }

    fn summary(result: &ModeResult) -> String {
        let rates = result.commits.iter().map(|figures| format!("{:.0} commits/s", figures.rate()));
        let losses = result.losses.iter().map(report::line);
        rates.chain(losses).collect::<Vec<_>>().join(", ")
    }
}

/// What is measured: every mode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DurabilityPlan {
    /// What is done.
    pub spec: DurabilitySpec,
    /// The cells in the order in which they run.
    pub cells: Vec<ModeCell>,
}

impl DurabilityPlan {
    /// Every mode, the least durable first.
    pub fn new(spec: DurabilitySpec) -> DurabilityPlan {
        let cells = Mode::ALL.map(|mode| ModeCell { spec: spec.clone(), mode });
        DurabilityPlan { spec, cells: cells.into() }
    }
}

impl RunPlan for DurabilityPlan {
    type Cell = ModeCell;
    const SMALLER: &'static str = "take another --data";

    fn name(&self) -> String {
        NAME.to_owned()
    }

    fn scale(&self) -> Option<&str> {
        None
    }

    fn cells(&self) -> &[ModeCell] {
        &self.cells
    }

    fn needed_bytes(&self, _cell: &ModeCell) -> u64 {
        NEEDED_BYTES
    }
}

impl DurabilityRecord {
    /// A run with what became of its cells.
    ///
    /// # Errors
    /// A mode failed: nothing is said of some promises then.
    pub fn new(
        plan: DurabilityPlan,
        entries: Entries<ModeCell>,
    ) -> Result<DurabilityRecord, RunError> {
        let (mut machine, mut started_unix_s) = (None, None::<u64>);
        let (mut commits, mut losses) = (Vec::new(), Vec::new());
        for Entry { cell, result, failure } in entries.cells {
            let result = result.ok_or_else(|| {
                let why = failure.unwrap_or_default();
                RunError::new(format!("{}: {why}", cell.mode.name()))
            })?;
            machine = machine.or(result.machine);
            let first = started_unix_s.get_or_insert(result.started_unix_s);
            *first = result.started_unix_s.min(*first);
            commits.extend(result.commits);
            losses.extend(result.losses);
        }
        Ok(DurabilityRecord {
            spec: plan.spec,
            started_unix_s,
            machine: machine.unwrap_or_else(|| Machine::describe(Path::new("."))),
            engine_name: format!("lithify {}", env!("CARGO_PKG_VERSION")),
            commits,
            losses,
        })
    }
}
