//! The lock file: one holder among all processes, and one within this process.
//!
//! The lock of the standard library (`flock` on Unix) belongs to the open file, so it also refuses a
//! second open by the same process. The registry says so with the right words, and keeps a second
//! attempt from opening the file at all: where `flock` is emulated by locks that belong to the process (network file systems),
//! closing that second descriptor would release the first one's lock.

use super::{Identity, platform};
use crate::fs::FileLock;
use crate::{Error, ErrorKind, Result};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

/// The locks that one process holds. A forked child has none of its parent's, and the parent's mutex may
/// have been locked by a thread that the child does not have: it takes the next registry.
struct Registry {
    /// The process that it belongs to; 0 before it belongs to any.
    process: AtomicU32,
    held: Mutex<BTreeSet<Identity>>,
    next: OnceLock<Box<Registry>>,
}

impl Registry {
    const fn new() -> Self {
        let held = Mutex::new(BTreeSet::new());
        Registry { process: AtomicU32::new(0), held, next: OnceLock::new() }
    }
}

static FIRST: Registry = Registry::new();

fn held() -> MutexGuard<'static, BTreeSet<Identity>> {
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

pub(super) struct SystemLock {
    file: Option<File>,
    identity: Identity,
    /// The process that took it.
    process: u32,
}

impl FileLock for SystemLock {}

impl SystemLock {
    pub(super) fn acquire(path: &Path) -> Result<Self> {
        let failed = |e| Error::io("cannot lock", path, e);
        // The registry stays locked until the outcome is known, so that two threads cannot both
        // find the place free.
        let mut held = held();
        let present = std::fs::metadata(path).and_then(|found| platform::identity(&found, path));
        if present.is_ok_and(|identity| held.contains(&identity)) {
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
        name_holder(&file).map_err(failed)?;
        held.insert(identity);
        Ok(SystemLock { file: Some(file), identity, process: std::process::id() })
    }
}

/// Whether a process, this one or another, holds the lock on a file.
pub(super) fn is_locked(path: &Path) -> Result<bool> {
    let failed = |e| Error::io("cannot ask for the lock", path, e);
    let held = held();
    let file = match File::open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
        opened => opened.map_err(failed)?,
    };
    let metadata = file.metadata().map_err(failed)?;
    if held.contains(&platform::identity(&metadata, path).map_err(failed)?) {
        return Ok(true);
    }
    // A shared lock needs no file that can be written, and goes when the file is closed.
    match retried(|| file.try_lock_shared()) {
        Ok(()) => {
            let _ = file.unlock();
            Ok(false)
        }
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(e)) => Err(failed(e)),
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
        if let Some(file) = self.file.take() {
            let _ = file.unlock();
        }
        held.remove(&self.identity);
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
