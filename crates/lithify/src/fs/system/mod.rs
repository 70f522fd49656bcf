//! The real world: files, clocks and threads of the operating system.
//!
//! Owns: the mapping of each call onto the system's. In what systems differ is in one of two
//! modules with the same functions: `linux`, or `standard`, which has the standard library alone.
//! Interrupted calls and short reads and writes are continued here; no other error is retried, and
//! a hint that the system does not know (write-back pacing, preallocation, advice) is silently
//! nothing.
//!
//! Promises: every error names what was being done and the path. All calls are safe from any
//! thread.

mod environment;
mod file;
mod lock;
mod process;
mod ticks;

#[cfg(all(target_os = "linux", not(lithify_portable)))]
mod linux;
#[cfg(not(all(target_os = "linux", not(lithify_portable))))]
mod standard;

#[cfg(all(target_os = "linux", not(lithify_portable)))]
use linux as platform;
#[cfg(not(all(target_os = "linux", not(lithify_portable))))]
use standard as platform;

#[cfg(test)]
mod tests;

pub use environment::SystemEnvironment;
pub(crate) use process::Origin;

use super::{File, FileLock, FileSystem, OpenMode, World};
use crate::{Error, Result};
use file::SystemFile;
use lock::{Scope, SystemLock};
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file system of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemFileSystem;

impl World {
    /// The real world: files, clocks and threads of the operating system.
    pub fn system() -> World {
        World { files: Arc::new(SystemFileSystem), environment: Arc::new(SystemEnvironment) }
    }
}

/// What tells one file from all others: on Unix its device and inode, by whichever name.
type Identity = (u64, u64);

/// The directory that an empty path (the parent of a bare name) stands for.
fn directory_path(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

fn open_file(path: &Path, mode: OpenMode) -> io::Result<std::fs::File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    match mode {
        OpenMode::Read => return platform::open_for_reading(path),
        OpenMode::CreateNew => options.create_new(true),
        OpenMode::CreateOrTruncate => options.create(true).truncate(true),
        OpenMode::ReadWrite => &mut options,
    };
    options.open(path)
}

impl FileSystem for SystemFileSystem {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        let what = match mode {
            OpenMode::Read => "cannot open for reading",
            OpenMode::CreateNew | OpenMode::CreateOrTruncate => "cannot create",
            OpenMode::ReadWrite => "cannot open for writing",
        };
        let file = open_file(path, mode).map_err(|e| Error::io(what, path, e))?;
        Ok(Arc::new(SystemFile::new(file, path, None)?))
    }

    fn open_direct(&self, path: &Path) -> Result<Arc<dyn File>> {
        let opened = platform::open_direct(path);
        match opened.map_err(|e| Error::io("cannot open for direct reading", path, e))? {
            Some((file, alignment)) => Ok(Arc::new(SystemFile::new(file, path, alignment)?)),
            None => self.open(path, OpenMode::Read),
        }
    }

    fn absolute(&self, path: &Path) -> Result<PathBuf> {
        if path.as_os_str().is_empty() {
            return Err(Error::invalid("the path is empty: name a directory, \".\" for this one"));
        }
        std::path::absolute(path)
            .map_err(|e| Error::io("cannot find the working directory", path, e))
    }

    fn kind_name(&self, path: &Path) -> String {
        platform::kind_name(directory_path(path))
            .unwrap_or_else(|| "unknown file system".to_string())
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        match std::fs::exists(path) {
            Err(e) if e.kind() == io::ErrorKind::NotADirectory => Ok(false),
            other => other.map_err(|e| Error::io("cannot look up", path, e)),
        }
    }

    fn is_directory(&self, path: &Path) -> Result<bool> {
        let metadata = std::fs::metadata(directory_path(path));
        Ok(metadata.map_err(|e| Error::io("cannot look up", path, e))?.is_dir())
    }

    fn length(&self, path: &Path) -> Result<u64> {
        let metadata = std::fs::metadata(path);
        Ok(metadata.map_err(|e| Error::io("cannot read the length", path, e))?.len())
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        std::fs::rename(from, to)
            .map_err(|e| Error::io(format!("cannot rename to {}", to.display()), from, e))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        std::fs::remove_file(path).map_err(|e| Error::io("cannot remove", path, e))
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        std::fs::hard_link(from, to)
            .map_err(|e| Error::io(format!("cannot link to {}", to.display()), from, e))
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>> {
        let failed = |e| Error::io("cannot list", directory, e);
        let mut names = Vec::new();
        for entry in std::fs::read_dir(directory_path(directory)).map_err(failed)? {
            names.push(PathBuf::from(entry.map_err(failed)?.file_name()));
        }
        // Names without a directory: their bytes say the same as their components, and faster.
        names.sort_unstable_by(|one, other| one.as_os_str().cmp(other.as_os_str()));
        Ok(names)
    }

    fn create_directory(&self, path: &Path) -> Result<()> {
        std::fs::create_dir_all(directory_path(path))
            .map_err(|e| Error::io("cannot create the directory", path, e))
    }

    fn remove_directory(&self, path: &Path) -> Result<()> {
        std::fs::remove_dir(path).map_err(|e| Error::io("cannot remove the directory", path, e))
    }

    fn sync_directory(&self, path: &Path) -> Result<()> {
        if planted!(SystemDirectorySyncSkipped) {
            return Ok(());
        }
        let opened = platform::open_directory(directory_path(path));
        // Where directories cannot be opened, the system has no call that makes names durable.
        opened
            .and_then(|directory| directory.map_or(Ok(()), |directory| directory.sync_all()))
            .map_err(|e| Error::io("cannot sync the directory", path, e))
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        Ok(Box::new(SystemLock::acquire(path, Scope::File)?))
    }

    fn lock_directory(&self, file: &Path) -> Result<Box<dyn FileLock>> {
        Ok(Box::new(SystemLock::acquire(file, Scope::Directory)?))
    }

    fn is_locked(&self, path: &Path) -> Result<bool> {
        lock::is_locked(path, Scope::File)
    }

    fn is_directory_locked(&self, file: &Path) -> Result<bool> {
        lock::is_locked(file, Scope::Directory)
    }

    fn free_space(&self, path: &Path) -> Result<u64> {
        platform::free_space(directory_path(path))
            .map_err(|e| Error::io("cannot read the free space", path, e))
    }
}
