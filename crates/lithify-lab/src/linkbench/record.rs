//! A run of LinkBench with its results.

use serde::{Deserialize, Serialize};

use super::cell::{self, CellResult, CellSpec};
use super::plan::Plan;
use crate::kind::incomplete::{self, CellEnd};
use crate::run::cells::{Entries, Entry};

/// A cell of a run with what became of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CellRecord {
    /// What was to be done.
    pub spec: CellSpec,
    /// The result, when it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<CellResult>,
    /// Why there is none, when its process failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// A run with all its results: what a report is made of.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LinkBenchRecord {
    /// Version of this JSON: [`cell::SCHEMA`].
    pub schema: u32,
    /// What was to be measured.
    pub plan: Plan,
    /// True when the run was stopped before its last cell.
    pub interrupted: bool,
    /// The cells in the order in which they ran.
    pub cells: Vec<CellRecord>,
}

impl LinkBenchRecord {
    /// Number of cells that were measured and passed their checks.
    pub fn valid_cells(&self) -> usize {
        self.cells
            .iter()
            .filter_map(|cell| cell.result.as_ref())
            .filter(|result| result.violation().is_none())
            .count()
    }

    /// Without what engines say about themselves beyond the report: that stays in the results of the
    /// cells.
    pub(crate) fn shortened(&self) -> LinkBenchRecord {
        let mut short = self.clone();
        let results = short.cells.iter_mut().filter_map(|cell| cell.result.as_mut());
        for phase in results.flat_map(|result| {
            let sweep = result.sweep.iter_mut().map(|point| &mut point.phase);
            [&mut result.load, &mut result.query].into_iter().chain(sweep)
        }) {
            phase.statistics.raw = serde_json::Value::Null;
            phase.statistics_before.raw = serde_json::Value::Null;
            phase.statistics_settled.raw = serde_json::Value::Null;
        }
        short
    }

    /// The planned cells with how they ended.
    pub(crate) fn ends(&self) -> Vec<CellEnd> {
        let measured = self
            .cells
            .iter()
            .map(|cell| CellEnd::new(&cell.spec, cell.result.as_ref(), cell.failure.as_deref()));
        incomplete::with_planned(measured.collect(), &self.plan.cells)
    }

    /// True when every cell was measured and passed its checks.
    pub fn is_complete(&self) -> bool {
        !self.interrupted && self.valid_cells() == self.cells.len()
    }
}

impl LinkBenchRecord {
    /// A run with what became of its cells.
    pub fn new(plan: Plan, entries: Entries<CellSpec>) -> LinkBenchRecord {
        let record = |entry: Entry<CellSpec>| {
            let Entry { cell, result, failure } = entry;
            CellRecord { spec: cell, result, failure }
        };
        let cells = entries.cells.into_iter().map(record).collect();
        LinkBenchRecord { schema: cell::SCHEMA, plan, interrupted: entries.interrupted, cells }
    }
}
