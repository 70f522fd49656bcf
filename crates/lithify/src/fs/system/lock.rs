//! The lock file: one holder among all processes, and one within this process.
//!
//! The lock of the standard library (`flock` on Unix) belongs to the open file, so it also refuses a
//! second open by the same process. The registry says so with the right words, and keeps a second
//! attempt from opening the file at all: where `flock` is emulated by locks that belong to the process (network file systems),
//! closing that second descriptor would release the first one's lock. It knows a lock by its file, which may have
//! several names, and by its place. The place stays taken if the file is removed: else whoever cleans up a
//! directory in use would let this process open a database twice.
//!
//! Against other processes the lock of a removed file is worth nothing: they make and lock a new one. So who
//! owns a whole directory locks its open file too, which a new `LOCK` does not change. It comes second, so that
//! whoever is refused by the file is told who holds it. A system that cannot open directories, and a file
//! system that cannot lock them, go without.

use super::{Identity, directory_path, platform};
use crate::fs::FileLock;
use crate::{Error, ErrorKind, Result};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

/// What nobody else in the process may lock while a lock is held.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Claim {
    File(Identity),
    /// A directory and a name in it. Its open file keeps the directory from being taken for another one.
    Place(Identity, OsString),
}

impl Claim {
    fn file(path: &Path) -> io::Result<Self> {
        let metadata = std::fs::metadata(path)?;
        Ok(Claim::File(platform::identity(&metadata, path)?))
    }

    fn place(path: &Path) -> io::Result<Self> {
        let directory = directory_path(path.parent().unwrap_or(Path::new("")));
        let metadata = std::fs::metadata(directory)?;
        let identity = platform::identity(&metadata, directory)?;
        Ok(Claim::Place(identity, path.file_name().unwrap_or_default().into()))
    }
}

/// The locks that one process holds. A forked child has none of its parent's, and the parent's mutex may
/// have been locked by a thread that the child does not have: it takes the next registry.
struct Registry {
    /// The process that it belongs to; 0 before it belongs to any.
    process: AtomicU32,
    held: Mutex<BTreeSet<Claim>>,
    next: OnceLock<Box<Registry>>,
}

impl Registry {
    const fn new() -> Self {
        let held = Mutex::new(BTreeSet::new());
        Registry { process: AtomicU32::new(0), held, next: OnceLock::new() }
    }
}

static FIRST: Registry = Registry::new();

fn held() -> MutexGuard<'static, BTreeSet<Claim>> {
    let process = std::process::id();
    let mut registry = &FIRST;
    loop {
        let taken =
            registry.process.compare_exchange(0, process, Ordering::AcqRel, Ordering::Acquire);
        match taken {
            Err(owner) if owner != process => {
                registry = registry.next.get_or_init(|| Box::new(Registry::new()));
            }
            _ => return registry.held.lock().unwrap_or_else(|poisoned| poisoned.into_inner()),
        }
    }
}

/// What a lock is to keep others from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// The file.
    File,
    /// The directory that the file is in, even if the file is removed.
    Directory,
}

pub(super) struct SystemLock {
    file: Option<File>,
    directory: Option<File>,
    claims: [Claim; 2],
    /// The process that took it.
    process: u32,
}

impl FileLock for SystemLock {}

impl SystemLock {
    pub(super) fn acquire(path: &Path, scope: Scope) -> Result<Self> {
        let failed = |e| Error::io("cannot lock", path, e);
        // The registry stays locked until the outcome is known, so that two threads cannot both
        // find the place free.
        let mut held = held();
        let place = Claim::place(path).map_err(failed)?;
        if held.contains(&place) || Claim::file(path).is_ok_and(|file| held.contains(&file)) {
            let what = "this process has it open already: close the other handle first";
            return Err(Error::new(ErrorKind::Locked, what).in_file(path));
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        let identity = platform::identity(&metadata, path).map_err(failed)?;
        match retried(|| file.try_lock()) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(held_elsewhere(&file, path)),
            Err(TryLockError::Error(e)) => return Err(failed(e)),
        }
        let directory = match scope {
            Scope::File => None,
            Scope::Directory => lock_directory(path)?,
        };
        name_holder(&file).map_err(failed)?;
        let claims = [place, Claim::File(identity)];
        held.extend(claims.iter().cloned());
        Ok(SystemLock { file: Some(file), directory, claims, process: std::process::id() })
    }
}

/// Locks the directory of a file that is locked already; `None` where that is not to be had.
fn lock_directory(path: &Path) -> Result<Option<File>> {
    let Some(directory) = open_directory_of(path)? else { return Ok(None) };
    match retried(|| directory.try_lock()) {
        Ok(()) => Ok(Some(directory)),
        Err(TryLockError::WouldBlock) => {
            let what = "a process that does not hold this file has locked the directory: the file was removed \
                        while it was held, or a command such as flock runs; stop it first";
            Err(Error::new(ErrorKind::Locked, what).in_file(path))
        }
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

fn open_directory_of(path: &Path) -> Result<Option<File>> {
    let directory = directory_path(path.parent().unwrap_or(Path::new("")));
    let opened = platform::open_directory(directory);
    opened.map_err(|e| Error::io("cannot open the directory to lock it", directory, e))
}

/// Whether a process, this one or another, holds the lock on a file, or on its directory.
pub(super) fn is_locked(path: &Path, scope: Scope) -> Result<bool> {
    let held = held();
    if Claim::place(path).is_ok_and(|place| held.contains(&place)) || is_file_locked(path, &held)? {
        return Ok(true);
    }
    if scope == Scope::File {
        return Ok(false);
    }
    // Where directories cannot be locked, nobody holds one.
    match open_directory_of(path) {
        Ok(directory) => Ok(directory.is_some_and(|opened| is_held(&opened).unwrap_or(false))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn is_file_locked(path: &Path, held: &BTreeSet<Claim>) -> Result<bool> {
    let failed = |e| Error::io("cannot ask for the lock", path, e);
    let file = match File::open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
        opened => opened.map_err(failed)?,
    };
    let metadata = file.metadata().map_err(failed)?;
    let claim = Claim::File(platform::identity(&metadata, path).map_err(failed)?);
    Ok(held.contains(&claim) || is_held(&file).map_err(failed)?)
}

/// Whether an open file is locked through another one.
fn is_held(file: &File) -> io::Result<bool> {
    // A shared lock needs no file that can be written, and goes when the file is closed.
    match retried(|| file.try_lock_shared()) {
        Ok(()) => {
            let _ = file.unlock();
            Ok(false)
        }
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(e)) => Err(e),
    }
}

/// Asks again where a signal interrupted.
fn retried(
    mut call: impl FnMut() -> std::result::Result<(), TryLockError>,
) -> std::result::Result<(), TryLockError> {
    loop {
        match call() {
            Err(TryLockError::Error(e)) if e.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

impl Drop for SystemLock {
    fn drop(&mut self) {
        // A forked child that drops what it has inherited: unlocking its copy would unlock the parent's.
        if self.process != std::process::id() {
            return;
        }
        let mut held = held();
        // Closing alone is not enough: a process that is just being started holds a copy of the
        // open file until it runs its program, and the lock with it. Unlocking frees all copies.
        for file in [self.file.take(), self.directory.take()].into_iter().flatten() {
            let _ = file.unlock();
        }
        self.claims.iter().for_each(|claim| drop(held.take(claim)));
    }
}

/// Leaves this process's id in the file, for the message of whoever is refused.
fn name_holder(file: &File) -> io::Result<()> {
    let text = format!("{}\n", std::process::id());
    file.set_len(0)?;
    super::file::write_all_by(&[IoSlice::new(text.as_bytes())], 0, |rest, offset| {
        platform::write_at(file, rest, offset)
    })
}

fn held_elsewhere(file: &File, path: &Path) -> Error {
    let mut text = [0; 16];
    let count = platform::read_at(file, &mut text, 0).unwrap_or(0);
    let holder = text.get(..count).and_then(|bytes| str::from_utf8(bytes).ok());
    let what = match holder.and_then(|text| text.trim().parse::<u32>().ok()) {
        Some(process) => {
            format!("process {process} has it open, or a child that it forked: stop them first")
        }
        None => "another process has it open: stop it first".to_string(),
    };
    Error::new(ErrorKind::Locked, what).in_file(path)
}
