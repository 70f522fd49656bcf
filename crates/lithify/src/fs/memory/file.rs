//! An open file of the memory world: counts the call, asks the fault hook, then acts.

use super::Disk;
use super::calls::{FileCallKind, written_before};
use super::inode::Inode;
use crate::fs::{Advice, File};
use crate::{Error, Result};
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) struct MemoryFile {
    disk: Arc<Disk>,
    inode: Arc<Inode>,
    path: PathBuf,
    writable: bool,
}

impl MemoryFile {
    pub(super) fn new(disk: &Arc<Disk>, inode: Arc<Inode>, path: &Path, writable: bool) -> Self {
        inode.hold();
        MemoryFile { disk: Arc::clone(disk), inode, path: path.to_path_buf(), writable }
    }
}

impl Drop for MemoryFile {
    fn drop(&mut self) {
        self.inode.release();
    }
}

impl MemoryFile {
    fn begin(&self, kind: FileCallKind, offset: u64, length: u64) -> io::Result<()> {
        self.disk.calls.begin(kind, &self.path, offset, length)
    }

    /// A call that changes the file.
    fn change<T>(
        &self,
        (kind, what): (FileCallKind, &str),
        (offset, length): (u64, u64),
        change: impl FnOnce() -> io::Result<T>,
    ) -> Result<T> {
        let begun = self.begin(kind, offset, length);
        let changed = begun.and_then(|()| self.if_writable(change));
        changed.map_err(|e| Error::io(what, &self.path, e).at_offset(offset))
    }

    fn if_writable<T>(&self, change: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        if !self.writable {
            return Err(io::Error::other("the file is open for reading only"));
        }
        let _running = self.disk.between_crashes();
        change()
    }

    /// Syncs what was written before it began. Other calls get in until it ends.
    fn sync(&self, begun: io::Result<()>) -> io::Result<()> {
        let covered = self.inode.content().begin_sync();
        let lasted = begun.and_then(|()| {
            if !self.inode.content().has_unsynced(covered) {
                return Ok(());
            }
            let mut random = self.disk.let_sync_last();
            {
                let _running = self.disk.between_crashes();
                self.inode.content_mut().sync_in_part(covered, &mut random);
            }
            self.begin(FileCallKind::SyncDataEnd, 0, 0)
        });
        let _running = self.disk.between_crashes();
        match &lasted {
            Ok(()) => self.inode.content_mut().end_sync(covered),
            Err(_) => self.inode.content_mut().forfeit(covered),
        }
        lasted
    }

    /// Writes all of the buffers at `offset` or at the end; if the call has failed already, what
    /// is written before that.
    fn write(
        &self,
        begun: io::Result<()>,
        buffers: &[IoSlice<'_>],
        offset: Option<u64>,
    ) -> io::Result<u64> {
        if let Err(failure) = begun {
            let bytes: Vec<u8> = buffers.iter().flat_map(|buffer| buffer.iter().copied()).collect();
            let count = bytes.len().min(written_before(&failure) as usize);
            self.if_writable(|| self.inode.write(&[IoSlice::new(&bytes[..count])], offset))?;
            return Err(failure);
        }
        self.if_writable(|| self.inode.write(buffers, offset))
    }
}

fn total_length(buffers: &[IoSlice<'_>]) -> u64 {
    buffers.iter().map(|buffer| buffer.len() as u64).sum()
}

impl File for MemoryFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn length(&self) -> Result<u64> {
        self.begin(FileCallKind::Length, 0, 0)
            .map_err(|e| Error::io("cannot read the length", &self.path, e))?;
        Ok(self.inode.content().bytes().len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.begin(FileCallKind::Read, offset, buffer.len() as u64)
            .map_err(|e| Error::io("cannot read", &self.path, e).at_offset(offset))?;
        let content = self.inode.content();
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let found = content.bytes().get(start..).unwrap_or_default();
        let count = found.len().min(buffer.len());
        buffer[..count].copy_from_slice(&found[..count]);
        Ok(count)
    }

    fn write_at(&self, buffers: &[IoSlice<'_>], offset: u64) -> Result<()> {
        let begun = self.begin(FileCallKind::Write, offset, total_length(buffers));
        let written = self.write(begun, buffers, Some(offset)).map(drop);
        written.map_err(|e| Error::io("cannot write", &self.path, e).at_offset(offset))
    }

    fn append(&self, buffers: &[IoSlice<'_>]) -> Result<u64> {
        let end = self.inode.content().bytes().len() as u64;
        let begun = self.begin(FileCallKind::Append, end, total_length(buffers));
        let written = self.write(begun, buffers, None);
        written.map_err(|e| Error::io("cannot append", &self.path, e).at_offset(end))
    }

    fn sync_data(&self) -> Result<()> {
        let begun = self.begin(FileCallKind::SyncData, 0, 0);
        let synced = self.sync(begun);
        synced.map_err(|e| Error::io("cannot sync", &self.path, e))
    }

    fn sync_range(&self, offset: u64, length: u64) -> Result<()> {
        self.begin(FileCallKind::SyncRange, offset, length)
            .map_err(|e| Error::io("cannot start writing back", &self.path, e).at_offset(offset))
    }

    fn preallocate(&self, offset: u64, length: u64) -> Result<()> {
        let call = (FileCallKind::Preallocate, "cannot preallocate");
        self.change(call, (offset, length), || self.inode.preallocate(offset, length))
    }

    fn truncate(&self, length: u64) -> Result<()> {
        let call = (FileCallKind::Truncate, "cannot truncate");
        self.change(call, (0, length), || self.inode.set_length(length))
    }

    fn advise(&self, offset: u64, length: u64, _advice: Advice) -> Result<()> {
        self.begin(FileCallKind::Advise, offset, length)
            .map_err(|e| Error::io("cannot give advice on", &self.path, e).at_offset(offset))
    }

    fn direct_io_alignment(&self) -> Option<usize> {
        None
    }
}
