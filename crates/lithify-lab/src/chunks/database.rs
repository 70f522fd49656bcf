//! The database of a cell: opened anew for each use, or kept open where that takes too long.
//!
//! Promises: what is emptied has no row and no file of one; a database that was closed has given its
//! memory back to the system, so that the next one does not profit from it.

use std::io;
use std::path::{Path, PathBuf};

use super::spec::ChunkCell;
use crate::adapter::settings::EngineSettings;
use crate::adapter::text::TextEngine;
use crate::engines::registry::open_text;
use crate::meter::process::release_free_memory;
use crate::run::{RunError, failed};

/// A database of text in a directory of its own.
pub struct Database<'a> {
    cell: &'a ChunkCell,
    settings: EngineSettings,
    path: PathBuf,
    engine: Option<Box<dyn TextEngine>>,
}

impl<'a> Database<'a> {
    /// The database in `path`, which nobody has opened yet.
    pub fn new(cell: &'a ChunkCell, settings: EngineSettings, path: PathBuf) -> Database<'a> {
        Database { cell, settings, path, engine: None }
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes it empty, whatever was in it.
    ///
    /// # Errors
    /// The engine's, or that of its directory.
    pub fn empty(&mut self) -> Result<(), RunError> {
        if let Some(engine) = &self.engine {
            return engine.clear().map_err(|error| failed("empty", &error));
        }
        match std::fs::remove_dir_all(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(RunError::io(&self.path, error));
            }
            _ => {}
        }
        std::fs::create_dir(&self.path).map_err(|error| RunError::io(&self.path, error))
    }

    /// The engine on it, opened now unless it stayed open.
    ///
    /// # Errors
    /// The engine's.
    pub fn open(&mut self) -> Result<&dyn TextEngine, RunError> {
        let engine = match self.engine.take() {
            Some(engine) => engine,
            None => open_text(&self.cell.engine, &self.path, &self.settings)
                .map_err(|error| failed("open", &error))?,
        };
        Ok(&**self.engine.insert(engine))
    }

    /// Says that a use is over: an engine that does not stay open is closed.
    ///
    /// # Errors
    /// The engine's.
    pub fn leave(&mut self) -> Result<(), RunError> {
        match &self.engine {
            Some(engine) if engine.stays_open() => Ok(()),
            _ => self.close(),
        }
    }

    /// Closes it if it is open.
    ///
    /// # Errors
    /// The engine's.
    pub fn close(&mut self) -> Result<(), RunError> {
        if let Some(engine) = self.engine.take() {
            engine.close().map_err(|error| failed("close", &error))?;
            release_free_memory();
        }
        Ok(())
    }
}
