//! A run that is planned: its cells, measuring what was not measured, and its report.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use lithify_report::Report;

use super::{Expanded, Kind, head};
use crate::run::RunError;
use crate::run::cells::{Cell, PlanRunner, RunPlan, is_measured};
use crate::run::estimate::PlannedCell;
use crate::run::process::Program;
use crate::run::progress::Announcer;
use crate::run::store::ReportFile;

/// Where a run goes and how.
pub struct How<'a> {
    /// Where results go.
    pub results: &'a Path,
    /// Where engines keep their data meanwhile; beside the results when not given.
    pub data: Option<&'a Path>,
    /// Measure again what was measured.
    pub fresh: bool,
    /// Set to true, it stops the run.
    pub interrupt: &'a AtomicBool,
}

impl How<'_> {
    /// True when the run was stopped.
    pub fn is_stopped(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }
}

/// A cell with whether it was measured already, as it would be now.
pub struct CellState {
    /// The cell.
    pub cell: PlannedCell,
    /// True when its result is kept.
    pub is_measured: bool,
    /// Free disk that it needs, bytes.
    pub disk_bytes: u64,
}

/// What a run came to.
pub struct Outcome {
    /// The report.
    pub report: Report,
    /// Its files.
    pub files: Vec<ReportFile>,
    /// What went wrong, in one line; `None` when every cell counts.
    pub fault: Option<String>,
}

/// A run of any kind that is planned.
pub trait PlannedRun {
    /// Its name: of its files, and of its directory beside those of other runs.
    fn name(&self) -> String;

    /// The scale, where there are several.
    fn scale(&self) -> Option<&str>;

    /// What is left out and why, line by line.
    fn skipped(&self) -> &[String];

    /// Its cells in the order in which they run; which of them were measured is read from `results`.
    fn cells(&self, results: &Path) -> Vec<CellState>;

    /// Free disk that a cell needs, bytes.
    fn disk_bytes(&self) -> u64;

    /// Measures what was not measured; `None` when it was stopped.
    ///
    /// # Errors
    /// The run could not begin or go on. Cells that failed are in what it came to.
    fn measure(
        &self,
        how: &How<'_>,
        announcer: &mut dyn Announcer,
    ) -> Result<Option<Outcome>, RunError>;
}

/// A planned run of the kind `K`.
pub struct Planned<K: Kind> {
    /// What is measured.
    pub plan: K::Plan,
    /// What is left out and why, line by line.
    pub skipped: Vec<String>,
    /// The program that measures, with the arguments that make it the measuring process.
    pub program: Program,
    /// Where databases are kept for later runs; nowhere when not given.
    pub databases: Option<PathBuf>,
}

impl<K: Kind> Planned<K> {
    /// A run whose databases are not kept.
    pub fn new(expanded: Expanded<K::Plan>, program: Program) -> Planned<K> {
        let Expanded { plan, skipped } = expanded;
        Planned { plan, skipped, program, databases: None }
    }

    /// Measures what was not measured; `None` when it was stopped.
    ///
    /// # Errors
    /// As [`PlanRunner::run`]; or a cell failed without which there is no record.
    pub fn run(
        &self,
        how: &How<'_>,
        announcer: &mut dyn Announcer,
    ) -> Result<Option<K::Record>, RunError> {
        let runner = PlanRunner {
            plan: &self.plan,
            head: head::<K>(),
            program: &self.program,
            results: how.results,
            data: how.data,
            databases: self.databases.as_deref(),
            fresh: how.fresh,
            interrupt: how.interrupt,
        };
        let entries = runner.run(announcer)?;
        if entries.interrupted || how.is_stopped() {
            return Ok(None);
        }
        K::record(self.plan.clone(), entries).map(Some)
    }
}

impl<K: Kind> PlannedRun for Planned<K> {
    fn name(&self) -> String {
        self.plan.name()
    }

    fn scale(&self) -> Option<&str> {
        self.plan.scale()
    }

    fn skipped(&self) -> &[String] {
        &self.skipped
    }

    fn cells(&self, results: &Path) -> Vec<CellState> {
        let name = self.plan.name();
        let state = |cell: &super::CellOf<K>| CellState {
            is_measured: is_measured(results, &name, cell),
            disk_bytes: self.plan.needed_bytes(cell),
            cell: PlannedCell {
                id: cell.id(),
                engine: cell.alike(),
                row: cell.part().to_string(),
                effort: cell.effort(),
            },
        };
        self.plan.cells().iter().map(state).collect()
    }

    fn disk_bytes(&self) -> u64 {
        let needed = self.plan.cells().iter().map(|cell| self.plan.needed_bytes(cell));
        needed.max().unwrap_or(0)
    }

    fn measure(
        &self,
        how: &How<'_>,
        announcer: &mut dyn Announcer,
    ) -> Result<Option<Outcome>, RunError> {
        let Some(record) = self.run(how, announcer)? else { return Ok(None) };
        Ok(Some(Outcome {
            report: K::report(&record),
            files: K::files(&record)?,
            fault: K::fault(&record),
        }))
    }
}
