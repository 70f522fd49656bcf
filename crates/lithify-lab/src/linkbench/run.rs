//! LinkBench as cells of a run: what a cell asks of its surroundings, and what its plan needs.

use super::cell::{CellResult, CellSpec, Purpose};
use super::plan::Plan;
use crate::adapter::EngineName;
use crate::adapter::allocator::Allocator;
use crate::experiment::DeviceSpeed;
use crate::report::plural;
use crate::run::RunError;
use crate::run::cells::{Cell, Part, RunPlan};
use crate::run::estimate::Effort;
use crate::run::file_system::FileSystemRequest;

impl Cell for CellSpec {
    type Outcome = CellResult;

    fn id(&self) -> String {
        self.id.clone()
    }

    fn engine(&self) -> EngineName {
        self.engine.clone()
    }

    fn part(&self) -> Part {
        let name = match self.arm == self.engine.name() {
            true => self.arm.clone(),
            false => format!("{} on {}", self.arm, self.engine),
        };
        match self.purpose {
            Purpose::Measure => Part::Row(name),
            Purpose::Control => Part::Control(name),
            Purpose::Load => {
                Part::Row(format!("{name}, load by {}", plural(self.loaders, "thread")))
            }
            Purpose::Calibrate => Part::Driver,
        }
    }

    fn allocator(&self) -> Result<Allocator, RunError> {
        Ok(self.allocator)
    }

    fn file_system(&self) -> Option<FileSystemRequest> {
        self.file_system.clone()
    }

    fn memory_limit_bytes(&self) -> Option<u64> {
        self.memory_limit_bytes
    }

    fn device(&self) -> DeviceSpeed {
        self.device
    }

    /// The phases that end by time; loads and waits come beyond them.
    fn effort(&self) -> Effort {
        let phases = self.client_counts().len() as u64;
        let query_s = if self.turnovers.is_empty() { self.query_seconds } else { 0 };
        // A cell that only loads is described like others.
        let open_loops = if phases > 0 { self.open_loop_percent.len() as u64 } else { 0 };
        let seconds = phases * (self.warmup_seconds + query_s) + open_loops * self.query_seconds;
        // What the driver takes alone says nothing of engines.
        let work = if self.purpose == Purpose::Calibrate { 0.0 } else { 1.0 };
        Effort { work, ..Effort::declared(seconds as f64) }
    }

    fn is_result(&self, result: &CellResult) -> bool {
        let hash = self.hash();
        result.hash == hash && result.spec.hash() == hash
    }

    fn driver_bytes(result: &CellResult) -> Option<u64> {
        let is_driver = result.spec.purpose == Purpose::Calibrate;
        is_driver.then_some(result.query.usage.memory.resident_max_bytes)
    }

    fn faults(result: &CellResult) -> Vec<String> {
        result.violation().map(|check| check.summary.clone()).into_iter().collect()
    }

    fn summary(result: &CellResult) -> String {
        let (load, query) = (result.load.rate(), result.query.rate());
        format!("{load:.0} inserts/s, {query:.0} transactions/s")
    }
}

impl RunPlan for Plan {
    type Cell = CellSpec;

    fn name(&self) -> String {
        Plan::name(self)
    }

    fn scale(&self) -> Option<&str> {
        Some(&self.scale)
    }

    fn cells(&self) -> &[CellSpec] {
        &self.cells
    }

    fn needed_bytes(&self, _cell: &CellSpec) -> u64 {
        self.declared_scale().map_or(0, |scale| scale.disk_mib << 20)
    }
}

#[cfg(test)]
mod tests;
