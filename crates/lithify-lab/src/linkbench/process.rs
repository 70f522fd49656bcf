//! The process of a cell, seen from outside: its memory, its device, its file system.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::cell::{CellDevice, CellJob, CellMemory, CellResult, CellSpec};
use super::record::{Stored, read_result};
use crate::run::RunError;
use crate::run::device_limit::{DeviceController, DeviceGroup, DeviceLimit};
use crate::run::memory_limit::{Controller, MemoryGroup, MemoryLimit};
use crate::run::process::{DataDirectory, JobEnd, Program, absolute, run_job};
use crate::run::progress::ProgressLine;

/// How a cell ended.
#[derive(Debug)]
pub enum CellEnd {
    /// With a result, which is on disk.
    Finished(Box<CellResult>),
    /// Its process failed; how, and its last words.
    Failed(String),
    /// The run was stopped.
    Interrupted,
}

/// The C library keeps freed blocks of a cache in one arena per thread, and its memory grows to
/// two or three times what is in use. Under a limit that would be memory that nobody can use.
const ONE_ARENA: [(&str, &str); 1] = [("MALLOC_ARENA_MAX", "1")];

/// How the device of a cell is slowed that asks for it, and the group that does it, where one can
/// be made.
fn slowed_device(
    spec: &CellSpec,
    data: &Path,
) -> Result<Option<(DeviceLimit, Option<DeviceGroup>)>, RunError> {
    if spec.device.is_fast() {
        return Ok(None);
    }
    let group = DeviceController::find(data).and_then(|controller| {
        // Those that a killed run left and that are still in use hold back nobody but their own.
        controller.remove_stale();
        controller.create(spec.device)
    });
    Ok(Some(match group {
        Ok(group) => (group.limit().clone(), Some(group)),
        Err(why) => (DeviceLimit::by_files(&spec.engine, spec.device, why)?, None),
    }))
}

/// The program of a cell: with its allocator, and under a limit with one arena.
fn program_of(program: &Program, spec: &CellSpec, limited: bool) -> Result<Program, RunError> {
    spec.allocator.require(&program.path)?;
    let mut own = program.clone();
    own.environment.extend(spec.allocator.environment());
    if limited {
        own.environment.extend(ONE_ARENA);
    }
    Ok(own)
}

/// Runs one cell in a process of its own; its data directory is under `data` and gone afterwards,
/// and so are its file system, when it has one of its own, and the groups that limit its memory,
/// when `memory` says that it gets one, and slow its device.
///
/// # Errors
/// The data directory or the log cannot be made, the program cannot be started. What goes wrong
/// in the child is [`CellEnd::Failed`], and so is a condition that cannot be had here.
pub fn run_cell(
    program: &Program,
    spec: &CellSpec,
    data: &Path,
    memory: Option<(&Controller, MemoryLimit)>,
    [result_path, log_path]: [&Path; 2],
    interrupt: &AtomicBool,
    progress: &mut dyn FnMut(&ProgressLine),
) -> Result<CellEnd, RunError> {
    let group = match &memory {
        Some((controller, limit)) => Some(controller.create(limit.limit_bytes())?),
        None => None,
    };
    let mut directory = DataDirectory::create(&data.join(format!("{}.data", spec.id)))?;
    let conditions = directory.mount(spec.file_system.as_ref()).and_then(|()| {
        let device = slowed_device(spec, data)?;
        Ok((device, program_of(program, spec, group.is_some())?))
    });
    let (device, program) = match conditions {
        Ok(conditions) => conditions,
        Err(why) => return Ok(CellEnd::Failed(why.to_string())),
    };
    let job = CellJob {
        spec: spec.clone(),
        data_directory: directory.engine_directory()?,
        file_system: directory.file_system().cloned(),
        result_path: absolute(result_path)?,
        parent: std::process::id(),
        memory: memory
            .zip(group.as_ref())
            .map(|((_, limit), group)| CellMemory { limit, group: group.path().to_owned() }),
        device: device.as_ref().map(|(limit, group)| CellDevice {
            limit: limit.clone(),
            group: group.as_ref().map(|group| group.path().to_owned()),
        }),
    };
    let end = run_job(&program, &job, log_path, interrupt, progress)?;
    let kills = group.as_ref().map_or(0, MemoryGroup::out_of_memory_kills);
    Ok(match end {
        JobEnd::Interrupted => CellEnd::Interrupted,
        JobEnd::Failed(why) if kills > 0 => CellEnd::Failed(format!(
            "{why}; its memory was full: nothing could be reclaimed under the limit of {} MiB",
            group.map_or(0, |group| group.limit_bytes()) >> 20
        )),
        JobEnd::Failed(why) => CellEnd::Failed(why),
        JobEnd::Succeeded => match read_result(result_path, &spec.hash()) {
            Stored::Finished(result) => CellEnd::Finished(result),
            Stored::Absent => CellEnd::Failed("it left no result".to_owned()),
            Stored::Unusable(why) => CellEnd::Failed(why),
        },
    })
}
