//! The loop over the cells of a run of LinkBench.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::cell::{self, CellSpec, Purpose};
use super::plan::Plan;
use super::process::{CellEnd, run_cell};
use super::record::{CellRecord, LinkBenchRecord, Stored, read_result};
use crate::engines::registry;
use crate::run::estimate::Pace;
use crate::run::memory_limit::{Controller, MemoryLimit};
use crate::run::progress::Announcer;
use crate::run::store::{self, Store};
use crate::run::{RunError, file_system, process, require_free};

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
    pub fn run(&self, announcer: &mut dyn Announcer) -> Result<LinkBenchRecord, RunError> {
        let store = Store::open(self.results, &self.plan.name())?;
        let data = self.data.unwrap_or(store.directory()).to_owned();
        std::fs::create_dir_all(&data).map_err(|error| RunError::io(&data, error))?;
        file_system::clean(&data, announcer);
        if self.fresh {
            store.forget(self.plan.cells.iter().map(|cell| cell.id.as_str()))?;
        }
        store.write_plan(self.plan)?;
        let controller = self.controller(announcer)?;
        let mut record = LinkBenchRecord {
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
        match read_result(&store.result_path(&spec.id), &spec.hash()) {
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
        let end = run_cell(
            &self.program,
            spec,
            data,
            memory,
            [&store.result_path(&spec.id), &store.log_path(&spec.id)],
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
        if !registry::uses_disk(&spec.engine) {
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
    record: &LinkBenchRecord,
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

#[cfg(test)]
mod tests;
