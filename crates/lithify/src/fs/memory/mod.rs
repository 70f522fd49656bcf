//! A world in memory: a file system that can lose what was not synced, fill up and fail any
//! call, and an environment whose time moves only when somebody waits.
//!
//! Owns: files and names with what is durable of each, the crash clone, the fault hook, and the
//! virtual clock. The assumptions about the medium are in `docs/format/medium.md`.
//!
//! Promises: the same calls and the same seed give the same outcome. Calls are safe from any
//! thread; a crash clone is a moment between calls or within a sync. A sync covers what was there
//! when it began, and lets other calls in until it ends; how long it takes is the user's to say. It
//! does not simulate other delays, nor damage to synced bytes.

mod calls;
mod content;
mod environment;
mod file;
mod inode;
mod namespace;
mod random;
mod syncs;
mod unsynced;

#[cfg(test)]
mod tests;

pub use calls::{FileCall, FileCallKind, FileFault, short_write};
pub use environment::{MemoryEnvironment, WaitWatch};
pub use syncs::SyncPause;
pub use unsynced::{Survives, Unsynced, UnsyncedChange};

use super::{File, FileLock, FileSystem, OpenMode, World};
use crate::{Error, ErrorKind, Result};
use calls::Calls;
use content::Content;
use file::MemoryFile;
use inode::{Inode, Space};
use namespace::{Namespace, Node};
use random::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use syncs::Syncs;

/// The capacity of a disk that nobody set, in bytes.
const CAPACITY_BYTES_DEFAULT: u64 = 1 << 40;

/// What survives a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashKeep {
    /// A power cut that loses everything unsynced.
    Nothing,
    /// The end of the process, not of the machine: every written byte and name is there, and
    /// what was unsynced still is, so that a later power cut may lose it.
    Everything,
    /// A power cut; the seed decides about everything unsynced.
    Random,
}

/// Everything that handles and clones of one file system share.
struct Disk {
    names: Mutex<Namespace>,
    locked: Mutex<BTreeSet<u64>>,
    next_inode: AtomicU64,
    space: Arc<Space>,
    calls: Calls,
    syncs: Syncs,
    /// Every call that changes something holds it shared, the crash clone exclusively: a clone
    /// that saw a later write of one file but not an earlier one of another would be a state
    /// that no crash leaves.
    crash_point: RwLock<()>,
}

/// A file system in memory. A clone of the handle is the same file system; a crash clone is
/// another one. A path is taken from the root, whether it is absolute or not.
#[derive(Clone)]
pub struct MemoryFileSystem {
    disk: Arc<Disk>,
}

impl Default for MemoryFileSystem {
    fn default() -> Self {
        MemoryFileSystem::new()
    }
}

impl World {
    /// A new world in memory: an empty disk, a clock at zero, no threads. A test that wants to
    /// crash it makes the parts itself and keeps a handle of the [`MemoryFileSystem`].
    pub fn memory(seed: u64) -> World {
        World {
            files: Arc::new(MemoryFileSystem::new()),
            environment: Arc::new(MemoryEnvironment::new(seed)),
        }
    }
}

impl MemoryFileSystem {
    /// An empty disk.
    pub fn new() -> Self {
        let space = Arc::new(Space::new(CAPACITY_BYTES_DEFAULT));
        MemoryFileSystem::with(Namespace::default(), space, 0)
    }

    fn with(names: Namespace, space: Arc<Space>, next_inode: u64) -> Self {
        MemoryFileSystem {
            disk: Arc::new(Disk {
                names: Mutex::new(names),
                locked: Mutex::new(BTreeSet::new()),
                next_inode: AtomicU64::new(next_inode),
                space,
                calls: Calls::default(),
                syncs: Syncs::default(),
                crash_point: RwLock::new(()),
            }),
        }
    }

    /// The disk as a crash at this moment leaves it: without locks, faults and counts, with the
    /// same capacity, writable. This file system goes on unchanged. The same history, seed and
    /// `keep` give the same clone.
    pub fn crash_clone(&self, seed: u64, keep: CrashKeep) -> MemoryFileSystem {
        let names = |names: &Namespace| match keep {
            CrashKeep::Nothing => names.after_power_cut(Vec::new()),
            CrashKeep::Random => names.after_power_cut(names.kept_by_chance(seed)),
            CrashKeep::Everything => names.clone(),
        };
        self.clone_with(names, |id, content| match keep {
            CrashKeep::Nothing => content.after_losing_all(),
            CrashKeep::Random => content.after_losing_some(&mut Random::new(seed, id)),
            CrashKeep::Everything => content.clone(),
        })
    }

    /// What a power cut now could take: first the changes of files, then those of names, each in
    /// the order in which they were made.
    pub fn unsynced(&self) -> Vec<Unsynced> {
        let _still = self.disk.stop();
        let names = self.disk.names();
        let mut unsynced = Vec::new();
        for (owner, inode) in names.files() {
            let content = inode.content();
            unsynced.extend(content.unsynced().map(|change| Unsynced { owner, change }));
        }
        for (owner, count) in names.unsynced_counts().into_iter().enumerate() {
            let change = Unsynced { owner: owner as u64, change: UnsyncedChange::Name };
            unsynced.extend(std::iter::repeat_n(change, count));
        }
        unsynced
    }

    /// The disk as a power cut at this moment leaves it when `survives` was chosen for each of
    /// [`MemoryFileSystem::unsynced`], in its order; what is missing at the end is lost. Of the
    /// names of a directory those from the first lost one on are lost too. Else like
    /// [`MemoryFileSystem::crash_clone`].
    pub fn power_cut(&self, survives: &[Survives]) -> MemoryFileSystem {
        let mut chosen = survives.iter().copied();
        let mut of_files = BTreeMap::new();
        let mut kept_names = Vec::new();
        {
            let names = self.disk.names();
            for (id, inode) in names.files() {
                let count = inode.content().unsynced().count();
                of_files.insert(id, chosen.by_ref().take(count).collect::<Vec<_>>());
            }
            for count in names.unsynced_counts() {
                let own: Vec<_> = chosen.by_ref().take(count).collect();
                let kept = own.iter().take_while(|survives| **survives != Survives::No);
                kept_names.push(kept.count());
            }
        }
        let names = |names: &Namespace| names.after_power_cut(kept_names);
        self.clone_with(names, |id, content| {
            content.after_choosing(of_files.get(&id).map_or(&[], Vec::as_slice))
        })
    }

    /// Another file system with what `names` and `content` leave of this one.
    fn clone_with(
        &self,
        names: impl FnOnce(&Namespace) -> Namespace,
        content: impl Fn(u64, &Content) -> Content,
    ) -> MemoryFileSystem {
        let disk = &*self.disk;
        let _still = disk.stop();
        let mut names = names(&disk.names());
        let capacity_bytes = disk.space.capacity_bytes.load(Ordering::SeqCst);
        let space = Arc::new(Space::new(capacity_bytes));
        let mut survivors = BTreeMap::new();
        names.replace_files(|inode| {
            let survivor = survivors.entry(inode.id).or_insert_with(|| {
                let content = content(inode.id, &inode.content());
                Inode::new(inode.id, content, Arc::clone(&space))
            });
            Arc::clone(survivor)
        });
        MemoryFileSystem::with(names, space, disk.next_inode.load(Ordering::SeqCst))
    }

    /// A hash of all names with the bytes of their files: equal for equal disks.
    pub fn fingerprint(&self) -> u64 {
        self.disk.names().fingerprint()
    }

    /// Sets the size of the disk; writes, appends and preallocations that do not fit fail whole
    /// with [`ErrorKind::NoSpace`]. It may be less than what is used.
    pub fn set_capacity_bytes(&self, capacity_bytes: u64) {
        self.disk.space.capacity_bytes.store(capacity_bytes, Ordering::SeqCst);
    }

    /// Makes the disk refuse every change with [`ErrorKind::ReadOnly`], or takes that back.
    pub fn set_read_only(&self, read_only: bool) {
        self.disk.calls.set_read_only(read_only);
    }

    /// Consults `fault` before every call from now on; an error that it returns fails the call,
    /// which then changes nothing; [`short_write`] makes an error of a write that changes a part.
    /// A failed sync also gives up the unsynced writes: they stay
    /// readable, but no later sync makes them durable.
    pub fn set_fault(&self, fault: Box<FileFault>) {
        self.disk.calls.set_fault(Some(Arc::from(fault)));
    }

    /// Lets every call through again.
    pub fn clear_fault(&self) {
        self.disk.calls.set_fault(None);
    }

    /// Calls `pause` within every sync from now on that has something to do, while other threads'
    /// calls get in, with the number of the syncs before it. Without it a sync takes no time.
    pub fn set_sync_pause(&self, pause: Box<SyncPause>) {
        self.disk.syncs.set_pause(Arc::from(pause));
    }

    /// The number of calls of one kind so far, failed ones included.
    pub fn calls(&self, kind: FileCallKind) -> u64 {
        self.disk.calls.count(kind)
    }

    /// The number of all calls so far; also the index of the next one.
    pub fn call_count(&self) -> u64 {
        self.disk.calls.total()
    }
}

impl Disk {
    fn names(&self) -> MutexGuard<'_, Namespace> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn locked(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.locked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the calls under way end and none begin.
    fn stop(&self) -> RwLockWriteGuard<'_, ()> {
        self.crash_point.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn between_crashes(&self) -> RwLockReadGuard<'_, ()> {
        self.crash_point.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn new_file(&self) -> Arc<Inode> {
        let id = self.next_inode.fetch_add(1, Ordering::SeqCst);
        Inode::new(id, Content::default(), Arc::clone(&self.space))
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<Inode>> {
        let may_make = matches!(mode, OpenMode::CreateNew | OpenMode::CreateOrTruncate);
        let kind = if may_make { FileCallKind::Create } else { FileCallKind::Open };
        self.calls.begin(kind, path, 0, 0)?;
        if mode != OpenMode::Read {
            self.calls.refuse_if_read_only()?;
        }
        let _running = self.between_crashes();
        let mut names = self.names();
        if mode == OpenMode::CreateNew {
            let inode = self.new_file();
            names.insert(path, Arc::clone(&inode))?;
            return Ok(inode);
        }
        match names.file(path) {
            Ok(inode) => {
                if mode == OpenMode::CreateOrTruncate {
                    inode.set_length(0)?;
                }
                Ok(inode)
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound && may_make => {
                let inode = self.new_file();
                names.insert(path, Arc::clone(&inode))?;
                Ok(inode)
            }
            Err(e) => Err(e),
        }
    }

    /// A call that changes names.
    fn change_names<T>(
        &self,
        kind: FileCallKind,
        path: &Path,
        change: impl FnOnce(&mut Namespace) -> io::Result<T>,
    ) -> io::Result<T> {
        self.calls.begin(kind, path, 0, 0)?;
        let _running = self.between_crashes();
        change(&mut self.names())
    }

    /// Syncs the names that were there when it began. Other calls get in until it ends.
    fn sync_names(&self, path: &Path) -> io::Result<()> {
        let covered =
            self.change_names(FileCallKind::SyncDirectory, path, |names| names.begin_sync(path))?;
        if !self.names().has_unsynced(&covered) {
            return Ok(());
        }
        let mut random = self.let_sync_last();
        {
            let _running = self.between_crashes();
            self.names().sync_in_part(&covered, &mut random);
        }
        self.change_names(FileCallKind::SyncDirectoryEnd, path, |names| {
            names.end_sync(&covered);
            Ok(())
        })
    }

    /// Passes the time that a sync takes; gives what decides about what it has done by then. The
    /// caller holds no lock.
    fn let_sync_last(&self) -> Random {
        self.syncs.pass()
    }

    /// A call that only looks.
    fn look<T>(
        &self,
        kind: FileCallKind,
        path: &Path,
        look: impl FnOnce(&Namespace) -> io::Result<T>,
    ) -> io::Result<T> {
        self.calls.begin(kind, path, 0, 0)?;
        look(&self.names())
    }
}

impl FileSystem for MemoryFileSystem {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        let what = match mode {
            OpenMode::Read => "cannot open for reading",
            OpenMode::CreateNew | OpenMode::CreateOrTruncate => "cannot create",
            OpenMode::ReadWrite => "cannot open for writing",
        };
        let inode = self.disk.open(path, mode).map_err(|e| Error::io(what, path, e))?;
        Ok(Arc::new(MemoryFile::new(&self.disk, inode, path, mode != OpenMode::Read)))
    }

    fn kind_name(&self, _: &Path) -> String {
        "a file system in memory".to_string()
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        let found = self.disk.look(FileCallKind::Exists, path, |names| match names.find(path) {
            Ok(_) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) if e.kind() == io::ErrorKind::NotADirectory => Ok(false),
            Err(e) => Err(e),
        });
        found.map_err(|e| Error::io("cannot look up", path, e))
    }

    fn is_directory(&self, path: &Path) -> Result<bool> {
        let found = self.disk.look(FileCallKind::IsDirectory, path, |names| names.find(path));
        let node = found.map_err(|e| Error::io("cannot look up", path, e))?;
        Ok(matches!(node, Node::Directory(_)))
    }

    fn length(&self, path: &Path) -> Result<u64> {
        let found = self.disk.look(FileCallKind::Length, path, |names| names.find(path));
        match found.map_err(|e| Error::io("cannot read the length", path, e))? {
            Node::File(inode) => Ok(inode.content().bytes().len() as u64),
            Node::Directory(_) => Ok(0),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.disk
            .change_names(FileCallKind::Rename, from, |names| names.rename(from, to))
            .map_err(|e| Error::io(format!("cannot rename to {}", to.display()), from, e))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.disk
            .change_names(FileCallKind::Remove, path, |names| names.remove(path))
            .map_err(|e| Error::io("cannot remove", path, e))
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        self.disk
            .change_names(FileCallKind::Link, from, |names| {
                let inode = names.file(from)?;
                names.insert(to, inode)
            })
            .map_err(|e| Error::io(format!("cannot link to {}", to.display()), from, e))
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>> {
        let found = self.disk.look(FileCallKind::List, directory, |names| names.list(directory));
        let names = found.map_err(|e| Error::io("cannot list", directory, e))?;
        Ok(names.into_iter().map(PathBuf::from).collect())
    }

    fn create_directory(&self, path: &Path) -> Result<()> {
        self.disk
            .change_names(FileCallKind::CreateDirectory, path, |names| names.create_directory(path))
            .map_err(|e| Error::io("cannot create the directory", path, e))
    }

    fn remove_directory(&self, path: &Path) -> Result<()> {
        self.disk
            .change_names(FileCallKind::RemoveDirectory, path, |names| names.remove_directory(path))
            .map_err(|e| Error::io("cannot remove the directory", path, e))
    }

    fn sync_directory(&self, path: &Path) -> Result<()> {
        let synced = self.disk.sync_names(path);
        synced.map_err(|e| Error::io("cannot sync the directory", path, e))
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        let made =
            self.disk.change_names(FileCallKind::Lock, path, |names| match names.file(path) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => {
                    let inode = self.disk.new_file();
                    names.insert(path, Arc::clone(&inode))?;
                    Ok(inode)
                }
                found => found,
            });
        let inode = made.map_err(|e| Error::io("cannot lock", path, e))?;
        if !self.disk.locked().insert(inode.id) {
            let what = "this process has it open already: close the other handle first";
            return Err(Error::new(ErrorKind::Locked, what).in_file(path));
        }
        Ok(Box::new(MemoryLock { disk: Arc::clone(&self.disk), inode: inode.id }))
    }

    fn is_locked(&self, path: &Path) -> Result<bool> {
        let found = self.disk.look(FileCallKind::Exists, path, |names| match names.file(path) {
            Ok(inode) => Ok(self.disk.locked().contains(&inode.id)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(e),
        });
        found.map_err(|e| Error::io("cannot ask for the lock", path, e))
    }

    fn free_space(&self, path: &Path) -> Result<u64> {
        self.disk
            .look(FileCallKind::FreeSpace, path, |names| names.find(path))
            .map_err(|e| Error::io("cannot read the free space", path, e))?;
        Ok(self.disk.space.free_bytes())
    }
}

struct MemoryLock {
    disk: Arc<Disk>,
    inode: u64,
}

impl FileLock for MemoryLock {}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        self.disk.locked().remove(&self.inode);
    }
}
