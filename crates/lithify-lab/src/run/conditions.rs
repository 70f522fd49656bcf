//! What the process of a cell runs under: its memory, its device, its allocator.
//!
//! Groups that limit memory and device are gone when the [`Conditions`] are dropped.

use std::path::Path;

use super::RunError;
use super::cells::Cell;
use super::device_limit::{CellDevice, DeviceController, DeviceGroup, DeviceLimit};
use super::memory_limit::{CellMemory, Controller, MemoryGroup, MemoryLimit};
use super::process::Program;

/// The C library keeps freed blocks of a cache in one arena per thread, and its memory grows to
/// two or three times what is in use. Under a limit that would be memory that nobody can use.
const ONE_ARENA: [(&str, &str); 1] = [("MALLOC_ARENA_MAX", "1")];

/// The conditions of one cell.
pub(crate) struct Conditions {
    memory: Option<(MemoryLimit, MemoryGroup)>,
    device: Option<(DeviceLimit, Option<DeviceGroup>)>,
}

impl Conditions {
    /// With a group that limits memory, where a limit is given.
    ///
    /// # Errors
    /// The group cannot be made.
    pub(crate) fn with_memory(
        memory: Option<(&Controller, MemoryLimit)>,
    ) -> Result<Conditions, RunError> {
        let memory = match memory {
            Some((controller, limit)) => {
                let group = controller.create(limit.limit_bytes())?;
                Some((limit, group))
            }
            None => None,
        };
        Ok(Conditions { memory, device: None })
    }

    /// Slows the device where the cell asks for that. Gives the program with the environment that its
    /// allocator and its memory need.
    ///
    /// # Errors
    /// What the cell asks for cannot be had here.
    pub(crate) fn prepare(
        &mut self,
        cell: &impl Cell,
        data: &Path,
        program: &Program,
    ) -> Result<Program, RunError> {
        self.device = slowed_device(cell, data)?;
        let allocator = cell.allocator()?;
        allocator.require(&program.path)?;
        let mut own = program.clone();
        own.environment.extend(allocator.environment());
        if self.memory.is_some() {
            own.environment.extend(ONE_ARENA);
        }
        Ok(own)
    }

    /// What the process is told of its memory.
    pub(crate) fn memory(&self) -> Option<CellMemory> {
        let told = |(limit, group): &(MemoryLimit, MemoryGroup)| CellMemory {
            limit: limit.clone(),
            group: group.path().to_owned(),
        };
        self.memory.as_ref().map(told)
    }

    /// What the process is told of its device.
    pub(crate) fn device(&self) -> Option<CellDevice> {
        let told = |(limit, group): &(DeviceLimit, Option<DeviceGroup>)| CellDevice {
            limit: limit.clone(),
            group: group.as_ref().map(|group| group.path().to_owned()),
        };
        self.device.as_ref().map(told)
    }

    /// Why a process failed, and whether its memory was full.
    pub(crate) fn explain(&self, why: String) -> String {
        match &self.memory {
            Some((_, group)) if group.out_of_memory_kills() > 0 => format!(
                "{why}; its memory was full: nothing could be reclaimed under the limit of {} MiB",
                group.limit_bytes() >> 20
            ),
            _ => why,
        }
    }
}

/// How the device of a cell is slowed that asks for it, and the group that does it, where one can
/// be made.
fn slowed_device(
    cell: &impl Cell,
    data: &Path,
) -> Result<Option<(DeviceLimit, Option<DeviceGroup>)>, RunError> {
    let speed = cell.device();
    if speed.is_fast() {
        return Ok(None);
    }
    let group = DeviceController::find(data).and_then(|controller| {
        // Those that a killed run left and that are still in use hold back nobody but their own.
        controller.remove_stale();
        controller.create(speed)
    });
    Ok(Some(match group {
        Ok(group) => (group.limit().clone(), Some(group)),
        Err(why) => (DeviceLimit::by_files(&cell.engine(), speed, why)?, None),
    }))
}
