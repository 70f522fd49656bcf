//! Removing a database.
//!
//! Owns: [`destroy`]. It removes files of the engine's names alone, of a directory that is the engine's or
//! empty, with the lock in hand.

use std::path::{Path, PathBuf};

use lithify::fs::{FileSystem, World};
use lithify::manifest::FileName;
use lithify::{Error, ErrorKind};
use pyo3::prelude::*;

use crate::errors::{Result, detached};

/// How the file `CURRENT` of every database begins (`docs/format/manifest.md`).
const CURRENT_MAGIC: &[u8] = b"LITHCUR\n";

/// Where readers register.
const READERS: &str = "READERS";

/// Removes a database that nobody has open for writing: its files, and the directory if nothing else is in it.
/// Where there is nothing it does nothing.
#[pyfunction]
pub fn destroy(py: Python<'_>, path: PathBuf) -> PyResult<()> {
    detached(py, || remove(&*World::system().files, &path))
}

fn remove(files: &dyn FileSystem, path: &Path) -> Result<()> {
    if !files.exists(path)? {
        return Ok(());
    }
    let names = files.list(path)?;
    if names.is_empty() {
        return Ok(files.remove_directory(path)?);
    }
    let current = std::fs::read(FileName::Current.path(path)).unwrap_or_default();
    if !current.starts_with(CURRENT_MAGIC) {
        let what = "this is no database of Lithify: nothing was removed";
        return Err(Error::new(ErrorKind::InvalidArgument, what).in_file(path).into());
    }
    let lock = files.lock(&FileName::Lock.path(path))?;
    let is_own =
        |name: &PathBuf| FileName::of_path(name).is_some_and(|file| file != FileName::Lock);
    let (own, others): (Vec<PathBuf>, Vec<PathBuf>) = names.into_iter().partition(is_own);
    // Without CURRENT it is no database any more, whatever happens to the rest.
    files.remove(&FileName::Current.path(path))?;
    for name in own.iter().filter(|name| FileName::of_path(name) != Some(FileName::Current)) {
        files.remove(&path.join(name.file_name().unwrap_or_default()))?;
    }
    let has_strangers = others.iter().any(|name| {
        let name = name.file_name().unwrap_or_default();
        name != READERS && FileName::parse(&name.to_string_lossy()).is_none()
    });
    remove_registrations(files, &path.join(READERS))?;
    files.remove(&FileName::Lock.path(path))?;
    drop(lock);
    if !has_strangers && files.list(path)?.is_empty() {
        files.remove_directory(path)?;
    }
    Ok(())
}

fn remove_registrations(files: &dyn FileSystem, readers: &Path) -> Result<()> {
    if !files.exists(readers)? {
        return Ok(());
    }
    for name in files.list(readers)? {
        files.remove(&readers.join(name.file_name().unwrap_or_default()))?;
    }
    Ok(files.remove_directory(readers)?)
}
