//! Published experiments over the loops of the classic key-value benchmark: arms of codecs, on
//! several engines, with the published columns and the times of jobs by level.
//!
//! Owns: the plan ([`plan`]), the record of a run with its files ([`LoopRecord`]), jobs by the
//! level that they wrote into ([`jobs`]), the published figures ([`figures`]), the report
//! ([`report`]) and its CSV ([`csv`]). The loops, the measuring process, the results of cells and
//! going on where a run was stopped are `dbbench`'s; what an experiment file may say is
//! `experiment::loops`.
//!
//! Promises: a run is a run of `dbbench`, cell by cell; the same record gives the same text; a cell
//! that failed or whose reads found the wrong rows is named and counts in no figure.
//!
//! Threads: everything belongs to the caller's. Does not measure.

pub mod compared;
pub mod csv;
pub mod digest;
pub mod digest_page;
pub mod figures;
pub mod jobs;
pub mod kind;
pub mod page;
pub mod plan;
pub mod report;
#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::dbbench::oracle;
use crate::dbbench::runner::{DbRecord, collect as collect_cells};
use crate::experiment::WorkloadKind;
use crate::run::RunError;
use crate::run::store::write_json;
use plan::LoopPlan;

/// A run with all its results: what a report is made of.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LoopRecord {
    /// What was to be measured.
    pub plan: LoopPlan,
    /// What was measured.
    pub run: DbRecord,
}

/// The plan of a run, beside its cells.
const PLAN_FILE: &str = "experiment.json";

impl LoopRecord {
    /// Cells that were measured and passed their checks.
    pub fn valid_cells(&self) -> usize {
        self.run.results().count()
    }

    /// True when every cell was measured and passed its checks.
    pub fn is_complete(&self) -> bool {
        !self.run.interrupted && self.valid_cells() == self.plan.cells.cells.len()
    }
}

fn run_directory(results: &Path, plan: &LoopPlan) -> PathBuf {
    results.join("runs").join(&plan.cells.name)
}

/// Writes down what a run is about to measure, beside its cells.
///
/// # Errors
/// The operating system's.
pub fn write_plan(results: &Path, plan: &LoopPlan) -> Result<(), RunError> {
    let directory = run_directory(results, plan);
    std::fs::create_dir_all(&directory).map_err(|error| RunError::io(&directory, error))?;
    write_json(&directory.join(PLAN_FILE), plan)
}

/// Reads a run of this kind again, from its directory (`results/runs/NAME`) or from the JSON of its
/// report; `None` when it is one of another kind, or none.
///
/// # Errors
/// A run of this kind that cannot be read.
pub fn read_record(path: &Path) -> Result<Option<LoopRecord>, RunError> {
    /// Enough to tell the kind.
    #[derive(Deserialize)]
    struct Head {
        plan: HeadPlan,
    }
    #[derive(Deserialize)]
    struct HeadPlan {
        kind: WorkloadKind,
    }
    let read = |path: &Path| std::fs::read_to_string(path).map_err(|e| RunError::io(path, e));
    let broken = |path: &Path, error: serde_json::Error| {
        RunError::new(format!("{} is no record of a run: {error}", path.display()))
    };
    if path.is_dir() {
        let plan_path = path.join(PLAN_FILE);
        if !plan_path.exists() {
            return Ok(None);
        }
        let plan: LoopPlan =
            serde_json::from_str(&read(&plan_path)?).map_err(|error| broken(&plan_path, error))?;
        return Ok(Some(collect(path, plan)));
    }
    let text = read(path)?;
    let is_ours = serde_json::from_str::<Head>(&text)
        .is_ok_and(|head| head.plan.kind == WorkloadKind::DbBench);
    if !is_ours {
        return Ok(None);
    }
    serde_json::from_str(&text).map(Some).map_err(|error| broken(path, error))
}

/// The results of a plan that are in its directory.
fn collect(directory: &Path, plan: LoopPlan) -> LoopRecord {
    let run = collect_cells(directory, plan.cells.clone());
    LoopRecord { plan, run }
}

/// What is wrong with the cells of a run, line by line.
fn problems(record: &LoopRecord) -> Vec<String> {
    let mut lines = Vec::new();
    for cell in &record.run.cells {
        if let Some(why) = &cell.failure {
            lines.push(format!("{}: FAILED: {why}", cell.cell.id));
        }
        let faults = cell.result.iter().flat_map(oracle::faults);
        lines.extend(faults.map(|fault| format!("WRONG, row void: {fault}")));
    }
    lines
}
