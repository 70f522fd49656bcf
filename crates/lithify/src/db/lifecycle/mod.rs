//! Open, closing, closed: which calls are taken, who is still under way, and whether writing has
//! stopped.
//!
//! Owns: the phase, the calls under way, the failure that stopped writing, the lock of the
//! directory or the registration as a reader, and what opening found in the log. Any thread may
//! call. Its locks are leaves: nothing is taken while one of them is held.
//!
//! 1. A close begins under the writer's lock. Whatever was acknowledged was written under that lock
//!    before; whatever comes after finds the database closing and is refused. The same holds for
//!    flushes, ingests, and column families made, changed and dropped.
//! 2. Calls that touch files of the directory outside that lock and outside of background jobs (an
//!    ingest that writes tables, the removal of files that a cursor let go) say so while they do:
//!    [`Lifecycle::enter`]. None is let in once a close has begun, and the close waits for those
//!    that are in. So nobody writes or removes a file of a directory that was given up. Copies and
//!    verifications read files that the next opening may use anew: they are in, too, but a close ends
//!    them (`long_call.rs`).
//! 3. What a database needs to end (the last flush without a log) goes on while it is closing.
//! 4. When all that is over, the manifest takes no more edits and the lock is given up.
//! 5. In a child of a fork every call is refused: files are shared with the parent, and threads that
//!    held locks or did background work are not there.

pub(crate) mod close;
pub(crate) mod long_call;
pub(crate) mod open;
pub(crate) mod reader;

use crate::base::lock;
use crate::base::sync::{AtomicU8, AtomicUsize};
use crate::fs::{Event, FileLock, Origin, ThreadId, this_thread};
use crate::manifest::ReaderRegistration;
use crate::wal::RecoveryReport;
use crate::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

const OPEN: u8 = 0;
const CLOSING: u8 = 1;
const CLOSED: u8 = 2;

/// See the module.
pub(crate) struct Lifecycle {
    /// The process that has it open.
    origin: Origin,
    phase: AtomicU8,
    /// Calls that are in.
    calls: AtomicUsize,
    /// Notified when one has left while the database is closing, and when the close has ended.
    left: Arc<dyn Event>,
    /// What to name in messages.
    path: PathBuf,
    /// Whether it was opened for reading only: nothing is written to the directory then.
    is_read_only: bool,
    failure: Mutex<Option<Error>>,
    has_failed: AtomicBool,
    /// Notified by a failure: whoever waits for work that will not be done.
    told_of_failure: [Arc<dyn Event>; 2],
    /// As a writer: the lock of the directory, until it is given up.
    file_lock: Mutex<Option<Box<dyn FileLock>>>,
    /// As a reader: what keeps the files of its state where they are.
    registration: Mutex<Option<ReaderRegistration>>,
    /// What opening found in the log.
    recovery: OnceLock<Vec<RecoveryReport>>,
    /// The thread that closes.
    closer: OnceLock<ThreadId>,
    /// How the close went.
    outcome: OnceLock<Result<()>>,
}

/// A call that may touch files of the directory while it lives.
pub(crate) struct Call<'a>(&'a Lifecycle);

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::SeqCst);
        if self.0.phase.load(Ordering::SeqCst) != OPEN {
            self.0.left.notify_all();
        }
    }
}

impl Lifecycle {
    /// Open, for writing under `file_lock` or else for reading only. A close waits at `left`; a
    /// failure notifies `told_of_failure`.
    pub(crate) fn new(
        path: &Path,
        file_lock: Option<Box<dyn FileLock>>,
        left: Arc<dyn Event>,
        told_of_failure: [Arc<dyn Event>; 2],
    ) -> Self {
        Lifecycle {
            origin: Origin::here(),
            phase: AtomicU8::new(OPEN),
            calls: AtomicUsize::new(0),
            left,
            path: path.to_path_buf(),
            is_read_only: file_lock.is_none(),
            failure: Mutex::new(None),
            has_failed: AtomicBool::new(false),
            told_of_failure,
            file_lock: Mutex::new(file_lock),
            registration: Mutex::new(None),
            recovery: OnceLock::new(),
            closer: OnceLock::new(),
            outcome: OnceLock::new(),
        }
    }

    /// Whether it was opened for reading only.
    pub(crate) fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// Whether this is the process that has it open, not a child of it.
    pub(crate) fn is_here(&self) -> bool {
        self.origin.is_here()
    }

    /// An error of kind [`ErrorKind::Closed`] in a child of a fork.
    pub(crate) fn check_here(&self) -> Result<()> {
        match self.is_here() {
            true => Ok(()),
            false => {
                let what = "another process opened the database before a fork: open it in this one";
                Err(Error::new(ErrorKind::Closed, what).in_file(&self.path))
            }
        }
    }

    /// An error of kind [`ErrorKind::Closed`] once a close has begun, and in a child of a fork.
    pub(crate) fn check_open(&self) -> Result<()> {
        self.check_here()?;
        match self.phase.load(Ordering::Acquire) {
            OPEN => Ok(()),
            _ => Err(closed_error()),
        }
    }

    /// Whether writes are still possible: not after a close, nor after a failure that left the
    /// state on disk unknown.
    pub(crate) fn check_writable(&self) -> Result<()> {
        self.check_open()?;
        self.check_usable()
    }

    /// Whether background work continues: [`Lifecycle::check_writable`] until a close has ended.
    pub(crate) fn check_works(&self) -> Result<()> {
        match self.has_ended() {
            true => Err(closed_error()),
            false => self.check_usable(),
        }
    }

    /// Whether it may be written to, whatever its phase.
    pub(crate) fn check_usable(&self) -> Result<()> {
        if self.is_read_only {
            let what = "the database was opened for reading only";
            return Err(Error::new(ErrorKind::ReadOnly, what).in_file(&self.path));
        }
        if self.has_failed()
            && let Some(failure) = self.failure()
        {
            return Err(failure);
        }
        Ok(())
    }

    /// Whether a failure has stopped writing.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Acquire)
    }

    /// The failure that stopped writing.
    pub(crate) fn failure(&self) -> Option<Error> {
        lock(&self.failure).clone()
    }

    /// Stops all writing because of `cause`; the first cause stays.
    pub(crate) fn poison(&self, cause: &Error) {
        if planted!(PoisonNotSet) {
            return;
        }
        let mut failure = lock(&self.failure);
        if failure.is_none() {
            let what = "writing stopped after a failure; close the database and open it again";
            *failure = Some(Error::new(ErrorKind::Poisoned, what).because(cause.clone()));
        }
        drop(failure);
        self.has_failed.store(true, Ordering::Release);
        self.told_of_failure.iter().for_each(|event| event.notify_all());
    }

    /// What opening found in the log, said once.
    pub(crate) fn set_recovery(&self, reports: Vec<RecoveryReport>) {
        let _ = self.recovery.set(reports);
    }

    /// What opening found in the log.
    pub(crate) fn recovery(&self) -> &[RecoveryReport] {
        self.recovery.get().map_or(&[], Vec::as_slice)
    }

    /// Keeps what a reader has registered, until it is closed.
    pub(crate) fn set_registration(&self, registration: Option<ReaderRegistration>) {
        *lock(&self.registration) = registration;
    }

    /// Whether it keeps the files of its state from going: a writer by its lock, a reader by what it
    /// has registered.
    pub(crate) fn holds_files(&self) -> bool {
        !self.is_read_only || lock(&self.registration).is_some()
    }

    /// Gives up what a reader has registered.
    pub(crate) fn end_registration(&self) {
        lock(&self.registration).take();
    }

    /// Gives up the lock of the directory.
    pub(crate) fn unlock(&self) {
        lock(&self.file_lock).take();
    }

    /// Whether a close has ended: until then background work is taken.
    pub(crate) fn has_ended(&self) -> bool {
        self.phase.load(Ordering::Acquire) == CLOSED
    }

    /// Lets a call in that touches files; see the module.
    ///
    /// # Errors
    /// [`ErrorKind::Closed`] once a close has begun, and in a child of a fork.
    pub(crate) fn enter(&self) -> Result<Call<'_>> {
        self.check_here()?;
        // Counted before it asks, and a close says that it has begun before it counts: one of the
        // two sees the other.
        self.calls.fetch_add(1, Ordering::SeqCst);
        let call = Call(self);
        match self.phase.load(Ordering::SeqCst) {
            OPEN => Ok(call),
            _ => Err(closed_error()),
        }
    }

    /// Begins a close, with the writer held; false if it had begun before.
    pub(crate) fn begin_close(&self) -> bool {
        let begun =
            self.phase.compare_exchange(OPEN, CLOSING, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        if begun {
            let _ = self.closer.set(this_thread());
        }
        begun
    }

    /// Whether it is this thread that has begun the close.
    pub(crate) fn is_closed_by_this_thread(&self) -> bool {
        self.closer.get() == Some(&this_thread())
    }

    /// Whether all calls have left.
    pub(crate) fn is_empty(&self) -> bool {
        self.calls.load(Ordering::SeqCst) == 0
    }

    /// What is notified when a call has left.
    pub(crate) fn left(&self) -> &Arc<dyn Event> {
        &self.left
    }

    /// Ends the close.
    pub(crate) fn end_close(&self) {
        self.phase.store(CLOSED, Ordering::SeqCst);
    }

    /// Tells all who wait how the close went, once the directory is given up.
    pub(crate) fn tell_outcome(&self, outcome: Result<()>) {
        let _ = self.outcome.set(outcome);
        self.left.notify_all();
    }

    /// How the close went, if it is over.
    pub(crate) fn outcome(&self) -> Option<Result<()>> {
        self.outcome.get().cloned()
    }
}

/// What calls of a closed database get.
fn closed_error() -> Error {
    Error::new(ErrorKind::Closed, "the database is closed")
}
