//! The real world: files, clocks and threads of Linux.
//!
//! Owns: the mapping of each call onto system calls. Interrupted calls and short reads and
//! writes are continued here; no other error is retried, and a hint that the system does not
//! know (write-back pacing, preallocation, advice) is silently nothing.
//!
//! Promises: every error names what was being done and the path. All calls are safe from any
//! thread. The unsafe calls live in `machine`.

mod environment;
mod file;
mod lock;
mod machine;

#[cfg(test)]
mod tests;

pub use environment::PosixEnvironment;

use super::{File, FileLock, FileSystem, OpenMode, World};
use crate::{Error, Result};
use file::PosixFile;
use rustix::fs::OFlags;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file system of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct PosixFileSystem;

impl World {
    /// The real world: files, clocks and threads of the operating system.
    pub fn posix() -> World {
        World { files: Arc::new(PosixFileSystem), environment: Arc::new(PosixEnvironment) }
    }
}

/// The directory that an empty path (the parent of a bare name) stands for.
fn directory_path(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

/// A named pipe in the place of a file must not hold the caller until somebody writes to it; for
/// files it changes nothing.
const READ_FLAGS: OFlags = OFlags::NONBLOCK;

fn open_options(mode: OpenMode) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true);
    match mode {
        OpenMode::Read => {
            options.custom_flags(READ_FLAGS.bits() as i32);
        }
        OpenMode::CreateNew => {
            options.write(true).create_new(true);
        }
        OpenMode::CreateOrTruncate => {
            options.write(true).create(true).truncate(true);
        }
        OpenMode::ReadWrite => {
            options.write(true);
        }
    }
    options
}

/// Opens a file. The times at which a file was read are not asked for where the owner may do
/// without: the system would look at them at every read.
fn open_file(path: &Path, mode: OpenMode) -> io::Result<std::fs::File> {
    let options = open_options(mode);
    if mode != OpenMode::Read {
        return options.open(path);
    }
    open_for_reading(|flags| options.clone().custom_flags(flags.bits() as i32).open(path))
}

/// Opens by `open` without times of access, or with them where the system refuses that.
fn open_for_reading<F>(open: impl Fn(OFlags) -> io::Result<F>) -> io::Result<F> {
    match open(READ_FLAGS.union(OFlags::NOATIME)) {
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => open(READ_FLAGS),
        opened => opened,
    }
}

/// The name of a file system by the number that `statfs` gives.
fn kind_name(number: u64) -> String {
    let name = match number {
        0x0102_1994 => "tmpfs",
        0xEF53 => "ext4",
        0x5846_5342 => "xfs",
        0x9123_683E => "btrfs",
        0x794C_7630 => "overlayfs",
        0x6969 => "nfs",
        0x2FC1_2FC1 => "zfs",
        0x6573_5546 => "fuse",
        0xF2F5_2010 => "f2fs",
        _ => return format!("file system {number:#x}"),
    };
    name.to_string()
}

impl FileSystem for PosixFileSystem {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        let what = match mode {
            OpenMode::Read => "cannot open for reading",
            OpenMode::CreateNew | OpenMode::CreateOrTruncate => "cannot create",
            OpenMode::ReadWrite => "cannot open for writing",
        };
        let file = open_file(path, mode).map_err(|e| Error::io(what, path, e))?;
        Ok(Arc::new(PosixFile::new(file, path, None)?))
    }

    fn open_direct(&self, path: &Path) -> Result<Arc<dyn File>> {
        let mut options = open_options(OpenMode::Read);
        options.custom_flags(OFlags::DIRECT.bits() as i32);
        match options.open(path) {
            Ok(file) => {
                let alignment = file::alignment_of_direct_file(&file);
                Ok(Arc::new(PosixFile::new(file, path, alignment)?))
            }
            Err(e) if e.kind() == io::ErrorKind::InvalidInput => self.open(path, OpenMode::Read),
            Err(e) => Err(Error::io("cannot open for direct reading", path, e)),
        }
    }

    fn kind_name(&self, path: &Path) -> String {
        match rustix::fs::statfs(directory_path(path)) {
            Ok(status) => kind_name(status.f_type as u64),
            Err(_) => "unknown file system".to_string(),
        }
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
        let failed = |e| Error::io("cannot sync the directory", path, e);
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(OFlags::DIRECTORY.bits() as i32);
        options.open(directory_path(path)).map_err(failed)?.sync_all().map_err(failed)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        Ok(Box::new(lock::PosixLock::acquire(path)?))
    }

    fn is_locked(&self, path: &Path) -> Result<bool> {
        lock::is_locked(path)
    }

    fn free_space(&self, path: &Path) -> Result<u64> {
        let space = rustix::fs::statvfs(directory_path(path))
            .map_err(|e| Error::io("cannot read the free space", path, e.into()))?;
        Ok(space.f_bavail.saturating_mul(space.f_frsize))
    }
}
