//! One file of a memory file system, whatever names it has, and the space that files take.

use super::content::Content;
use std::io::{self, IoSlice};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The longest file, in bytes; a write beyond it fails instead of filling the memory.
const FILE_SIZE_MAX: u64 = 2 << 30;

/// The space of one file system, in bytes.
pub(super) struct Space {
    pub(super) capacity_bytes: AtomicU64,
    used_bytes: AtomicU64,
}

impl Space {
    pub(super) fn new(capacity_bytes: u64) -> Self {
        Space { capacity_bytes: AtomicU64::new(capacity_bytes), used_bytes: AtomicU64::new(0) }
    }

    pub(super) fn free_bytes(&self) -> u64 {
        let used = self.used_bytes.load(Ordering::SeqCst);
        self.capacity_bytes.load(Ordering::SeqCst).saturating_sub(used)
    }

    fn take(&self, bytes: u64) -> io::Result<()> {
        let capacity = self.capacity_bytes.load(Ordering::SeqCst);
        let fits = |used: u64| used.checked_add(bytes).filter(|used| *used <= capacity);
        match self.used_bytes.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fits) {
            Ok(_) => Ok(()),
            Err(_) if bytes == 0 => Ok(()),
            Err(_) => Err(io::ErrorKind::StorageFull.into()),
        }
    }

    fn give_back(&self, bytes: u64) {
        self.used_bytes.fetch_sub(bytes, Ordering::SeqCst);
    }
}

/// One file. Its space is taken while a name or an open handle holds it.
pub(super) struct Inode {
    pub(super) id: u64,
    content: RwLock<Content>,
    holders: Mutex<usize>,
    space: Arc<Space>,
}

impl Inode {
    pub(super) fn new(id: u64, content: Content, space: Arc<Space>) -> Arc<Self> {
        Arc::new(Inode { id, content: RwLock::new(content), holders: Mutex::new(0), space })
    }

    pub(super) fn content(&self) -> RwLockReadGuard<'_, Content> {
        self.content.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn content_mut(&self) -> RwLockWriteGuard<'_, Content> {
        self.content.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn holders(&self) -> MutexGuard<'_, usize> {
        self.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more name or handle. The first one takes the space that the content has already.
    pub(super) fn hold(&self) {
        let mut holders = self.holders();
        if *holders == 0 {
            let bytes = self.content().allocated_bytes as u64;
            self.space.used_bytes.fetch_add(bytes, Ordering::SeqCst);
        }
        *holders += 1;
    }

    /// One name or handle less. The last one gives the space back.
    pub(super) fn release(&self) {
        let mut holders = self.holders();
        *holders -= 1;
        if *holders == 0 {
            self.space.give_back(self.content().allocated_bytes as u64);
        }
    }

    /// Takes the space up to `end`, all or nothing.
    fn reserve(&self, content: &Content, end: u64) -> io::Result<()> {
        if end > FILE_SIZE_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.space.take(end.saturating_sub(content.allocated_bytes as u64))
    }

    /// Writes all of the buffers at `offset`, or at the end; returns where.
    pub(super) fn write(&self, buffers: &[IoSlice<'_>], offset: Option<u64>) -> io::Result<u64> {
        let mut content = self.content_mut();
        let offset = offset.unwrap_or(content.bytes().len() as u64);
        let length = buffers.iter().map(|buffer| buffer.len()).sum();
        let end = offset.checked_add(length as u64).ok_or(io::ErrorKind::FileTooLarge)?;
        self.reserve(&content, if length == 0 { 0 } else { end })?;
        content.write(buffers, offset as usize, length);
        Ok(offset)
    }

    pub(super) fn set_length(&self, length: u64) -> io::Result<()> {
        let mut content = self.content_mut();
        self.reserve(&content, length)?;
        content.set_length(length as usize);
        // Cutting a file also gives back what was preallocated behind its end.
        let unneeded = content.allocated_bytes - length as usize;
        content.allocated_bytes = length as usize;
        self.space.give_back(unneeded as u64);
        Ok(())
    }

    pub(super) fn preallocate(&self, offset: u64, length: u64) -> io::Result<()> {
        let mut content = self.content_mut();
        let end = offset.checked_add(length).ok_or(io::ErrorKind::FileTooLarge)?;
        self.reserve(&content, end)?;
        content.allocated_bytes = content.allocated_bytes.max(end as usize);
        Ok(())
    }
}
