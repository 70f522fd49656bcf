//! A run of LinkBench with its results: kept, read again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::cell::{self, CellResult, CellSpec};
use super::plan::Plan;
use crate::run::RunError;

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

    /// True when every cell was measured and passed its checks.
    pub fn is_complete(&self) -> bool {
        !self.interrupted && self.valid_cells() == self.cells.len()
    }
}

/// Reads a run again from its directory (`results/runs/NAME`) or from its report's JSON.
///
/// # Errors
/// A path that holds no run, a file that cannot be read.
pub fn read_record(path: &Path) -> Result<LinkBenchRecord, RunError> {
    let read = |path: &Path| std::fs::read_to_string(path).map_err(|e| RunError::io(path, e));
    let parsed = |path: &Path, error: serde_json::Error| {
        RunError::new(format!("{} is no record of a run: {error}", path.display()))
    };
    if !path.is_dir() {
        let text = read(path)?;
        return serde_json::from_str(&text).map_err(|error| parsed(path, error));
    }
    let plan_path: PathBuf = path.join("plan.json");
    if !plan_path.exists() {
        return Err(RunError::new(format!("{} holds no run: no plan.json", path.display())));
    }
    let plan: Plan =
        serde_json::from_str(&read(&plan_path)?).map_err(|error| parsed(&plan_path, error))?;
    let mut cells = Vec::new();
    for spec in &plan.cells {
        let file = path.join(format!("{}.json", spec.id));
        let (result, failure) = match read_result(&file, &spec.hash()) {
            Stored::Finished(result) => (Some(*result), None),
            Stored::Unusable(why) => (None, Some(why)),
            Stored::Absent => continue,
        };
        cells.push(CellRecord { spec: spec.clone(), result, failure });
    }
    let interrupted = cells.len() < plan.cells.len();
    Ok(LinkBenchRecord { schema: cell::SCHEMA, plan, interrupted, cells })
}

/// What is known about a cell before it runs.
pub enum Stored {
    /// Measured already: the same description.
    Finished(Box<CellResult>),
    /// Not measured.
    Absent,
    /// There is a result of another description or one that cannot be read; why it is not used.
    Unusable(String),
}

/// Reads the result of a cell whose description has `hash`.
pub fn read_result(path: &Path, hash: &str) -> Stored {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Stored::Absent,
        Err(error) => return Stored::Unusable(format!("{}: {error}", path.display())),
    };
    match serde_json::from_str::<CellResult>(&text) {
        Ok(result) if result.hash == hash && result.spec.hash() == hash => {
            Stored::Finished(Box::new(result))
        }
        Ok(_) => Stored::Unusable("it was measured with other settings or another build".into()),
        Err(error) => Stored::Unusable(format!("{} is no result: {error}", path.display())),
    }
}
