//! A file system that says that it can read past a page cache, so that the engine takes that way.
//! In memory there is no cache to pass: the bytes are the same, which is what is checked.

use lithify::Result;
use lithify::fs::{
    Advice, File, FileLock, FileSystem, IoRequest, MemoryFileSystem, OpenMode, Submission,
};
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What direct reads have to be aligned to, in bytes, as on most disks.
const ALIGNMENT_BYTES: usize = 512;

/// A file system in memory with direct reads.
pub(super) struct DirectFileSystem(pub(super) MemoryFileSystem);

struct DirectFile(Arc<dyn File>);

impl FileSystem for DirectFileSystem {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        self.0.open(path, mode)
    }

    fn open_direct(&self, path: &Path) -> Result<Arc<dyn File>> {
        Ok(Arc::new(DirectFile(self.0.open(path, OpenMode::Read)?)))
    }

    fn kind_name(&self, path: &Path) -> String {
        self.0.kind_name(path)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.0.exists(path)
    }

    fn is_directory(&self, path: &Path) -> Result<bool> {
        self.0.is_directory(path)
    }

    fn length(&self, path: &Path) -> Result<u64> {
        self.0.length(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.0.remove(path)
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        self.0.link(from, to)
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>> {
        self.0.list(directory)
    }

    fn create_directory(&self, path: &Path) -> Result<()> {
        self.0.create_directory(path)
    }

    fn remove_directory(&self, path: &Path) -> Result<()> {
        self.0.remove_directory(path)
    }

    fn sync_directory(&self, path: &Path) -> Result<()> {
        self.0.sync_directory(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        self.0.lock(path)
    }

    fn lock_directory(&self, file: &Path) -> Result<Box<dyn FileLock>> {
        self.0.lock_directory(file)
    }

    fn is_locked(&self, path: &Path) -> Result<bool> {
        self.0.is_locked(path)
    }

    fn is_directory_locked(&self, file: &Path) -> Result<bool> {
        self.0.is_directory_locked(file)
    }
    fn free_space(&self, path: &Path) -> Result<u64> {
        self.0.free_space(path)
    }
}

impl File for DirectFile {
    fn path(&self) -> &Path {
        self.0.path()
    }

    fn length(&self) -> Result<u64> {
        self.0.length()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.0.read_at(buffer, offset)
    }

    fn read_vectored_at(&self, buffers: &mut [&mut [u8]], offset: u64) -> Result<usize> {
        self.0.read_vectored_at(buffers, offset)
    }

    fn write_at(&self, buffers: &[IoSlice<'_>], offset: u64) -> Result<()> {
        self.0.write_at(buffers, offset)
    }

    fn append(&self, buffers: &[IoSlice<'_>]) -> Result<u64> {
        self.0.append(buffers)
    }

    fn sync_data(&self) -> Result<()> {
        self.0.sync_data()
    }

    fn sync_range(&self, offset: u64, length: u64) -> Result<()> {
        self.0.sync_range(offset, length)
    }

    fn preallocate(&self, offset: u64, length: u64) -> Result<()> {
        self.0.preallocate(offset, length)
    }

    fn truncate(&self, length: u64) -> Result<()> {
        self.0.truncate(length)
    }

    fn advise(&self, offset: u64, length: u64, advice: Advice) -> Result<()> {
        self.0.advise(offset, length, advice)
    }

    fn direct_io_alignment(&self) -> Option<usize> {
        Some(ALIGNMENT_BYTES)
    }

    fn submit(&self, request: IoRequest) -> Submission {
        self.0.submit(request)
    }
}
