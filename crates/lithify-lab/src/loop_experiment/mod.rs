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

use serde::{Deserialize, Serialize};

use crate::dbbench::oracle;
use crate::dbbench::plan::DbRecord;
use plan::LoopPlan;

/// A run with all its results: what a report is made of.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LoopRecord {
    /// What was to be measured.
    pub plan: LoopPlan,
    /// What was measured.
    pub run: DbRecord,
}

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
