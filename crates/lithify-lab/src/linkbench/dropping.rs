//! The end of a cell that drops its database: an engine with a call for it is asked
//! ([`GraphEngine::drop_graph`]), of the others the database is closed and its files are removed.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::second_log::Opened;
use crate::adapter::graph::GraphEngine;
use crate::adapter::{EngineStatistics, Neighbour};
use crate::meter::space::{self, DirectorySize, FileSizes};
use crate::run::dropping::{DropFigures, FileWriter, Space, measure};
use crate::run::file_system::CellFileSystem;
use crate::run::{RunError, failed};

/// What is on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpaceUse {
    /// The files.
    pub directory: DirectorySize,
    /// By the account of a file system of its own.
    pub file_system_bytes: Option<u64>,
    /// Extents of the files, where that is known.
    pub extents: Option<u64>,
}

/// What it cost to drop a cell's database.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DropResult {
    /// What was done, in words: `DROP DATABASE`, or the files that were removed.
    pub how: String,
    /// Who worked beside, in words.
    pub neighbour: String,
    /// What it cost.
    pub figures: DropFigures,
    /// What was there before.
    pub before: SpaceUse,
    /// What was left when the space was back.
    pub after: SpaceUse,
}

/// Bytes of the tables, without a log that stays.
fn table_bytes(statistics: &EngineStatistics) -> u64 {
    match statistics.levels.iter().map(|level| level.stored_bytes).sum() {
        0 => statistics.live_bytes,
        bytes => bytes,
    }
}

/// The end of a cell whose database is dropped.
struct End<'a> {
    directory: &'a Path,
    file_system: Option<&'a CellFileSystem>,
}

/// Drops the database of a cell, whose engine's files are in `directory`, and closes the engine.
///
/// # Errors
/// The engine's, a server that is gone among them, or files that cannot be removed.
pub(super) fn drop_database(
    opened: Opened,
    directory: &Path,
    file_system: Option<&CellFileSystem>,
) -> Result<DropResult, RunError> {
    let end = End { directory, file_system };
    match end.drop_beside_a_client(opened.engine())? {
        Some(dropped) => {
            opened.close()?;
            Ok(dropped)
        }
        None => end.remove_files(opened),
    }
}

impl End<'_> {
    /// Bytes that are used, without those that files have beyond `before`: the neighbour goes on
    /// writing, and its log is not what is waited for.
    fn used_bytes(&self, before: &FileSizes) -> u64 {
        let used_bytes = match self.file_system {
            Some(own) => own.used_bytes(),
            None => space::directory_size(self.directory).allocated_bytes,
        };
        used_bytes.saturating_sub(space::grown_bytes(self.directory, before))
    }

    fn look(&self) -> SpaceUse {
        space::sync_file_system(self.directory);
        SpaceUse {
            directory: space::directory_size(self.directory),
            file_system_bytes: self.file_system.map(CellFileSystem::used_bytes),
            extents: space::extents(self.directory),
        }
    }

    /// The engine drops the graph, if it has a call for that.
    fn drop_beside_a_client(
        &self,
        engine: &dyn GraphEngine,
    ) -> Result<Option<DropResult>, RunError> {
        match engine.neighbour().map_err(|error| failed("drop", &error))? {
            Some(mut neighbour) => self.drop_by_call(engine, &mut *neighbour).map(Some),
            None => Ok(None),
        }
    }

    /// The engine drops what it keeps; a client of its own works beside.
    fn drop_by_call(
        &self,
        engine: &dyn GraphEngine,
        neighbour: &mut dyn Neighbour,
    ) -> Result<DropResult, RunError> {
        let before = self.look();
        let files = space::file_sizes(self.directory);
        let used = || self.used_bytes(&files);
        let dropped_bytes = table_bytes(&crate::run::phase::statistics(engine.below())?);
        let space = Space { used: &used, before_bytes: used(), dropped_bytes };
        let mut how = String::new();
        let figures = measure(neighbour, &space, || {
            how = engine.drop_graph().map_err(|error| failed("drop", &error))?;
            Ok(())
        })?;
        let neighbour = "changes a row of another database by a statement".to_owned();
        Ok(DropResult { how, neighbour, figures, before, after: self.look() })
    }

    /// The engine is closed, and its files are removed.
    fn remove_files(&self, opened: Opened) -> Result<DropResult, RunError> {
        let before = self.look();
        let files = space::file_sizes(self.directory);
        let used = || self.used_bytes(&files);
        let dropped_bytes = before.directory.allocated_bytes;
        let space = Space { used: &used, before_bytes: used(), dropped_bytes };
        // Beside the engine's directory: it stays when that one goes.
        let mut neighbour = FileWriter::new(self.directory.parent().unwrap_or(self.directory))?;
        let figures = measure(&mut neighbour, &space, || {
            opened.close()?;
            fs::remove_dir_all(self.directory).map_err(|error| RunError::io(self.directory, error))
        })?;
        let how = "closed, its files removed".to_owned();
        let neighbour = "writes and syncs 4 KiB of a file".to_owned();
        Ok(DropResult { how, neighbour, figures, before, after: self.look() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_files_grew_by_is_not_waited_for() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name| directory.path().join(name);
        let write = |name, bytes: usize| {
            fs::write(path(name), vec![1u8; bytes]).expect("writes");
            assert!(space::sync_file_system(directory.path()));
        };
        for name in ["table", "log"] {
            write(name, 1 << 20);
        }
        let end = End { directory: directory.path(), file_system: None };
        let files = space::file_sizes(directory.path());
        let before = end.used_bytes(&files);
        assert!(before >= 2 << 20, "{before}");
        fs::remove_file(path("table")).expect("removes");
        write("log", 4 << 20);
        write("another log", 1 << 20);
        let after = end.used_bytes(&files);
        let freed = before - after;
        assert!((1 << 20..(1 << 20) + (64 << 10)).contains(&freed), "{before} then {after}");
    }
}
