//! Runs cells: each in a process of its own, results kept as they come.
//!
//! Owns: the loop over cells ([`cells`]), the files of a run ([`store`]), the process of a cell
//! ([`process`]), what it runs under (`conditions`) and when it is given up (`stillness`), the limit on its memory ([`memory_limit`])
//! and on its device ([`device_limit`]), both by groups of the kernel ([`control_group`]), the file
//! system under its data ([`file_system`]), its allocator ([`allocator`]), what it costs to drop its
//! data ([`dropping`]), progress ([`progress`]) and how long the rest takes ([`estimate`]).
//!
//! Promises: a result is on disk whole or not at all; a run that was stopped goes on where it
//! stopped; a cell that dies or stands still costs its own row only; after an interrupt the child
//! is gone, its data are removed and the measured cells are kept.
//!
//! Threads: a loop belongs to one thread; it starts one more per cell, to read the child's
//! progress. Does not know what a cell measures, and does not render reports.

pub mod allocator;
pub mod cells;
mod conditions;
pub mod control_group;
pub mod device_limit;
pub mod dropping;
pub mod estimate;
pub mod file_system;
pub mod memory_limit;
pub mod ownership;
pub(crate) mod phase;
pub mod process;
pub mod progress;
mod stillness;
pub mod store;

use std::path::Path;
use std::{fmt, io};

use crate::adapter::EngineError;
use crate::meter::space;

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

/// An error of the engine, with what was asked of it.
pub(crate) fn failed(what: &str, error: &EngineError) -> RunError {
    RunError::new(format!("{what}: {error}"))
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

/// The items, beginning with the one at `first`.
pub(crate) fn rotated<T>(items: &[T], first: usize) -> impl Iterator<Item = &T> {
    items.iter().cycle().skip(first % items.len().max(1)).take(items.len())
}
