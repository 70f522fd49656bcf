//! Runs an experiment: every cell in a process of its own, results kept as they come.
//!
//! Owns: the plan ([`plan`]), the description and result of a cell ([`cell`]), the files of a run
//! ([`store`]), cells of other kinds of workload ([`cells`]), the process of a cell seen from
//! outside ([`process`]) and when it is given up (`stillness`), seen from inside ([`measure`]), the
//! limit on its memory ([`memory_limit`]) and on its device ([`device_limit`]), both by groups of
//! the kernel ([`control_group`]), the file system under its data ([`file_system`]), its allocator
//! ([`allocator`]), the driver's own log ([`second_log`]), the ages of its data (`turnover`), what
//! it costs to drop its database ([`dropping`]), the engines by name ([`engine`]), progress
//! ([`progress`]) and how long the rest takes ([`estimate`]), and the loop over the cells
//! ([`Runner`]).
//!
//! Promises: a result is on disk whole or not at all; a run that was stopped goes on where it
//! stopped; a cell that dies or stands still costs its own row only; after an interrupt the child
//! is gone, its data are removed and the measured cells are kept.
//!
//! Threads: a [`Runner`] belongs to one thread; it starts one more per cell, to read the child's
//! progress. Does not render reports.

pub mod allocator;
pub mod cell;
pub mod cells;
pub mod control_group;
pub mod device_limit;
pub mod dropping;
pub mod engine;
pub mod estimate;
pub mod file_system;
pub mod measure;
pub mod memory_limit;
pub mod ownership;
pub mod plan;
pub mod process;
pub mod progress;
#[cfg(test)]
pub(crate) mod sample;
pub mod second_log;
mod stillness;
pub mod store;
#[cfg(test)]
mod tests;
mod turnover;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::meter::space;
use cell::{CellResult, CellSpec, Purpose};
use estimate::Pace;
use memory_limit::{Controller, MemoryLimit};
use plan::Plan;
use process::CellEnd;
use progress::Announcer;
use store::{Store, Stored};

/// Why a run could not go on. One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunError(String);

impl RunError {
    /// An error in words.
    pub fn new(what: impl Into<String>) -> RunError {
        RunError(what.into())
    }

    /// A failed call of the operating system on `path`.
    pub fn io(path: &Path, error: io::Error) -> RunError {
        RunError(format!("{}: {error}", path.display()))
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RunError {}

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
pub struct RunRecord {
    /// Version of this JSON: [`cell::SCHEMA`].
    pub schema: u32,
    /// What was to be measured.
    pub plan: Plan,
    /// True when the run was stopped before its last cell.
    pub interrupted: bool,
    /// The cells in the order in which they ran.
    pub cells: Vec<CellRecord>,
}

impl RunRecord {
    /// Number of cells that were measured and passed their checks.
    pub fn valid_cells(&self) -> usize {
        self.cells
            .iter()
            .filter_map(|cell| cell.result.as_ref())
            .filter(|result| result.violation().is_none())
            .count()
    }

    /// True when every cell was measured and passed its checks.
    pub fn is_complete(&self) -> bool {
        !self.interrupted && self.valid_cells() == self.cells.len()
    }
}

/// How a plan is run.
pub struct Runner<'a> {
    /// What is measured.
    pub plan: &'a Plan,
    /// The program that is started for a cell, with the arguments that make it one.
    pub program: process::Program,
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
    /// Measures every cell that was not measured yet.
    ///
    /// # Errors
    /// Results cannot be written, the disk is too small, another run is at work. A cell that fails
    /// is no error: it is in the record.
    pub fn run(&self, announcer: &mut dyn Announcer) -> Result<RunRecord, RunError> {
        let store = Store::open(self.results, &self.plan.name())?;
        let data = self.data.unwrap_or(store.directory()).to_owned();
        std::fs::create_dir_all(&data).map_err(|error| RunError::io(&data, error))?;
        file_system::clean(&data, announcer);
        if self.fresh {
            store.forget(&self.plan.cells)?;
        }
        store.write_plan(self.plan)?;
        let controller = self.controller(announcer)?;
        let mut record = RunRecord {
            schema: cell::SCHEMA,
            plan: self.plan.clone(),
            interrupted: false,
            cells: Vec::new(),
        };
        let mut pace = Pace::new(self.plan.cells.iter().map(CellSpec::effort));
        for spec in &self.plan.cells {
            if self.interrupt.load(Ordering::Relaxed) {
                record.interrupted = true;
                break;
            }
            let memory = match (&controller, spec.memory_limit_bytes) {
                (Some(controller), Some(budget_bytes)) => {
                    Some((controller, limit(controller, budget_bytes, &record)?))
                }
                _ => None,
            };
            match self.cell(&store, &data, spec, memory, &mut pace, announcer)? {
                Some(cell) => record.cells.push(cell),
                None => {
                    record.interrupted = true;
                    break;
                }
            }
        }
        Ok(record)
    }

    /// Where memory can be limited, when a cell needs that; cleaned of what killed runs left.
    fn controller(&self, announcer: &mut dyn Announcer) -> Result<Option<Controller>, RunError> {
        if self.plan.cells.iter().all(|spec| spec.memory_limit_bytes.is_none()) {
            return Ok(None);
        }
        let controller = Controller::find()?;
        for name in controller.remove_stale() {
            announcer.say(&format!("control group {name} of an earlier run is still in use"));
        }
        Ok(Some(controller))
    }

    /// Finds or measures one cell; `None` when it was interrupted.
    fn cell(
        &self,
        store: &Store,
        data: &Path,
        spec: &CellSpec,
        memory: Option<(&Controller, MemoryLimit)>,
        pace: &mut Pace,
        announcer: &mut dyn Announcer,
    ) -> Result<Option<CellRecord>, RunError> {
        match store.find(spec) {
            Stored::Finished(result) => {
                pace.skip(&spec.effort());
                announcer.say(&format!("{}: measured already, kept", spec.id));
                announcer.done(&spec.id, None);
                return Ok(Some(CellRecord {
                    spec: spec.clone(),
                    result: Some(*result),
                    failure: None,
                }));
            }
            Stored::Unusable(why) => announcer.say(&format!("{}: measuring again: {why}", spec.id)),
            Stored::Absent => {}
        }
        self.check_disk(data, spec)?;
        announcer.begin(&format!("cell {} {}{}", pace.position(), spec.id, pace.rest()));
        let began = Instant::now();
        let end = process::run_cell(
            &self.program,
            spec,
            data,
            memory,
            [&store.result_path(spec), &store.log_path(spec)],
            self.interrupt,
            &mut |line| announcer.progress(line),
        )?;
        let seconds = began.elapsed().as_secs_f64();
        pace.measured(&spec.effort(), seconds);
        let (result, failure) = match end {
            CellEnd::Interrupted => {
                announcer.end(&format!("{}: stopped", spec.id));
                return Ok(None);
            }
            CellEnd::Failed(why) => {
                announcer.end(&format!("{}: failed after {seconds:.0} s: {why}", spec.id));
                (None, Some(why))
            }
            CellEnd::Finished(result) => {
                announcer.end(&format!(
                    "{}: {:.0} inserts/s, {:.0} transactions/s, {seconds:.0} s in all",
                    spec.id,
                    result.load.rate(),
                    result.query.rate()
                ));
                (Some(*result), None)
            }
        };
        if result.is_some() {
            store::note_seconds(store.directory(), &spec.id, seconds);
        }
        announcer.done(&spec.id, Some(seconds));
        Ok(Some(CellRecord { spec: spec.clone(), result, failure }))
    }

    /// Refuses to fill the disk.
    fn check_disk(&self, data: &Path, spec: &CellSpec) -> Result<(), RunError> {
        if !engine::uses_disk(&spec.engine) {
            return Ok(());
        }
        let needed_bytes = self.plan.declared_scale().map_or(0, |scale| scale.disk_mib << 20);
        require_free(data, needed_bytes, "")
    }
}

/// The limit of a cell: the budget, and what the driver uses by itself.
fn limit(
    controller: &Controller,
    budget_bytes: u64,
    record: &RunRecord,
) -> Result<MemoryLimit, RunError> {
    let mut results = record.cells.iter().filter_map(|cell| cell.result.as_ref());
    let driver =
        results.find(|result| result.spec.purpose == Purpose::Calibrate).ok_or_else(|| {
            RunError::new("memory cannot be limited: the driver's own memory was not measured")
        })?;
    let memory = &driver.query.usage.memory;
    Ok(MemoryLimit {
        mechanism: controller.version(),
        budget_bytes,
        driver_bytes: memory.resident_max_bytes,
    })
}

/// Refuses to fill the disk that holds `data`; `advice` says what else helps.
pub(crate) fn require_free(data: &Path, needed_bytes: u64, advice: &str) -> Result<(), RunError> {
    let free_bytes = space::free_bytes(data).map_err(|error| RunError::io(data, error))?;
    if free_bytes >= needed_bytes {
        return Ok(());
    }
    Err(RunError::new(format!(
        "{}: {} MiB free, {} MiB needed; free some, or name another place with --data{advice}",
        data.display(),
        free_bytes >> 20,
        needed_bytes >> 20
    )))
}

/// Reads a run again from its directory (`results/runs/NAME`) or from its report's JSON.
///
/// # Errors
/// A path that holds no run, a file that cannot be read.
pub fn read_record(path: &Path) -> Result<RunRecord, RunError> {
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
        let (result, failure) = match store::read_result(&file, &spec.hash()) {
            Stored::Finished(result) => (Some(*result), None),
            Stored::Unusable(why) => (None, Some(why)),
            Stored::Absent => continue,
        };
        cells.push(CellRecord { spec: spec.clone(), result, failure });
    }
    let interrupted = cells.len() < plan.cells.len();
    Ok(RunRecord { schema: cell::SCHEMA, plan, interrupted, cells })
}
