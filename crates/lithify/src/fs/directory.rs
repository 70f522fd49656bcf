//! Directories that are durable, and directories that appear whole or not at all.
//!
//! A [`StagedDirectory`] is built under another name beside its place, locked meanwhile, and
//! renamed when everything in it is durable. What a crash leaves under the other name is recognised
//! by the name and by what is in it, and cleared by the next one for the same place.

use super::{FileLock, FileSystem};
use crate::{Error, ErrorKind, Result};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is put behind the name of a directory that is still being built.
const UNFINISHED: &str = ".unfinished";

/// The file in it that tells a living builder from a dead one.
const LOCK_NAME: &str = "LOCK";

/// Makes a directory and those above it, each name durable before the next one is made. The
/// deepest one that is there may be what a process left that was killed in here: its name is
/// made durable too.
pub(crate) fn make_directory(path: &Path, files: &dyn FileSystem) -> Result<()> {
    if path.as_os_str().is_empty() || files.exists(path)? {
        return sync_name(path, files);
    }
    let parent = path.parent().unwrap_or(Path::new(""));
    make_directory(parent, files)?;
    files.create_directory(path)?;
    if planted!(NewDirectoryUnsynced) {
        return Ok(());
    }
    files.sync_directory(parent)
}

/// Makes the name of a directory that was there durable, where its parent may be opened.
pub(crate) fn sync_name(path: &Path, files: &dyn FileSystem) -> Result<()> {
    let Some(parent) = path.parent() else { return Ok(()) };
    files.sync_directory(parent).or_else(|error| {
        let source = std::error::Error::source(&error);
        let cause = source.and_then(|source| source.downcast_ref::<std::io::Error>());
        match cause.map(std::io::Error::kind) {
            Some(std::io::ErrorKind::PermissionDenied) => Ok(()),
            _ => Err(error),
        }
    })
}

/// A directory that is being built. Dropped before it is finished, it goes with all that is in it.
pub(crate) struct StagedDirectory {
    files: Arc<dyn FileSystem>,
    target: PathBuf,
    path: PathBuf,
    /// Held until the directory is in its place or gone.
    lock: Option<Box<dyn FileLock>>,
}

impl StagedDirectory {
    /// Begins a directory that is to be at `target`, where nothing may be:
    /// [`ErrorKind::AlreadyExists`]. What a crash left of an earlier attempt is cleared if
    /// `is_ours` knows every name in it. [`ErrorKind::Locked`] while another one is being built for
    /// the same place.
    pub(crate) fn begin(
        files: &Arc<dyn FileSystem>,
        target: &Path,
        is_ours: &dyn Fn(&Path) -> bool,
    ) -> Result<Self> {
        let Some(name) = target.file_name() else {
            return Err(Error::invalid("a path that names no new directory").in_file(target));
        };
        check_free(&**files, target)?;
        let mut unfinished = OsString::from(name);
        unfinished.push(UNFINISHED);
        let path = target.with_file_name(unfinished);
        make_directory(parent_of(target), &**files)?;
        let left = if files.exists(&path)? { files.list(&path)? } else { Vec::new() };
        if let Some(stranger) = left.iter().find(|name| !is_ours(name)) {
            let what = "this directory would be built under a name that is in use: move that away";
            return Err(Error::new(ErrorKind::AlreadyExists, what).in_file(path.join(stranger)));
        }
        files.create_directory(&path)?;
        let lock = files.lock_directory(&path.join(LOCK_NAME));
        let lock = lock.inspect_err(|_| {
            // Of use only if it was made here, and is empty: then it goes.
            let _ = files.remove_directory(&path);
        })?;
        let staged = StagedDirectory {
            files: Arc::clone(files),
            target: target.to_path_buf(),
            path,
            lock: Some(lock),
        };
        for name in left.iter().filter(|name| name.as_os_str() != LOCK_NAME) {
            files.remove(&staged.path.join(name))?;
        }
        Ok(staged)
    }

    /// Where files are to be put meanwhile.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Puts it into its place, durably. Every file in it must be synced. After an error nothing is
    /// left, unless the error says that it is unknown.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.files.sync_directory(&self.path)?;
        check_free(&*self.files, &self.target)?;
        let mut lock = self.lock.take();
        if cfg!(not(unix)) {
            // A directory with an open file in it cannot be renamed there.
            drop(lock.take());
        }
        if let Err(error) = self.files.rename(&self.path, &self.target) {
            self.clear();
            return Err(error);
        }
        // It is whole from now on, and no longer this one's to clear.
        let named = self.files.sync_directory(parent_of(&self.target));
        drop(lock);
        named.map_err(|error| {
            let what = "the directory is whole, but its name may not survive a power cut: \
                        remove it, or make the directory above it durable";
            let kind = error.kind();
            error.causing(kind, what)
        })
    }

    /// Removes everything, the lock last. What cannot be removed is cleared by the next one.
    fn clear(&self) {
        let Ok(names) = self.files.list(&self.path) else { return };
        for name in names.iter().filter(|name| name.as_os_str() != LOCK_NAME) {
            let _ = self.files.remove(&self.path.join(name));
        }
        let _ = self.files.remove(&self.path.join(LOCK_NAME));
        let _ = self.files.remove_directory(&self.path);
        let _ = self.files.sync_directory(parent_of(&self.path));
    }
}

impl Drop for StagedDirectory {
    fn drop(&mut self) {
        if self.lock.is_some() {
            self.clear();
        }
    }
}

fn parent_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

fn check_free(files: &dyn FileSystem, target: &Path) -> Result<()> {
    if files.exists(target)? {
        let what = "name a directory that is not there";
        return Err(Error::new(ErrorKind::AlreadyExists, what).in_file(target));
    }
    Ok(())
}
