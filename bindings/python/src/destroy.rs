//! Removing a database.
//!
//! Owns: [`destroy`], which is the engine's own but where there is nothing: that is no failure, as callers of
//! LevelDB expect.

use std::path::Path;

use lithify::{Db, Error, ErrorKind};
use pyo3::prelude::*;

use crate::arguments::FilePath;
use crate::errors::{Result, detached};

/// Removes a database that nobody has open: its files, and the directory if nothing else is in it.
/// Where there is nothing it does nothing.
#[pyfunction]
pub fn destroy(py: Python<'_>, path: FilePath) -> PyResult<()> {
    detached(py, || remove(path.as_ref()))
}

fn remove(path: &Path) -> Result<()> {
    match Db::destroy(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => without_database(path),
        destroyed => Ok(destroyed?),
    }
}

/// What there is instead: nothing, an empty directory, or what is somebody else's.
fn without_database(path: &Path) -> Result<()> {
    if !path.exists() || std::fs::remove_dir(path).is_ok() {
        return Ok(());
    }
    let what = "this is no database of Lithify: nothing was removed";
    Err(Error::new(ErrorKind::InvalidArgument, what).in_file(path).into())
}
