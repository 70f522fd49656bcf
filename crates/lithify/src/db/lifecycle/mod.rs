//! Open, closing, closed: which calls are taken, and who is still under way.
//!
//! 1. A close begins under the writer's lock. Whatever was acknowledged was written under that lock
//!    before; whatever comes after finds the database closing and is refused. The same holds for
//!    flushes, ingests, and column families made, changed and dropped.
//! 2. Calls that touch files of the directory outside that lock and outside of background jobs (an
//!    ingest that writes tables, the removal of files that a cursor let go) say so while they do:
//!    [`Lifecycle::enter`]. None is let in once a close has begun, and the close waits for those
//!    that are in. So nobody writes or removes a file of a directory that was given up.
//! 3. What a database needs to end (the last flush without a log) goes on while it is closing.
//! 4. When all that is over, the manifest takes no more edits and the lock is given up.

pub(crate) mod close;
pub(crate) mod open;
pub(crate) mod reader;

use crate::base::sync::{AtomicU8, AtomicUsize};
use crate::fs::Event;
use crate::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::sync::atomic::Ordering;

const OPEN: u8 = 0;
const CLOSING: u8 = 1;
const CLOSED: u8 = 2;

/// See the module.
pub(crate) struct Lifecycle {
    phase: AtomicU8,
    /// Calls that are in.
    calls: AtomicUsize,
    /// Notified when one has left while the database is closing.
    left: Arc<dyn Event>,
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
    /// Open; `left` is what the close waits at.
    pub(crate) fn new(left: Arc<dyn Event>) -> Self {
        Lifecycle { phase: AtomicU8::new(OPEN), calls: AtomicUsize::new(0), left }
    }

    /// An error of kind [`ErrorKind::Closed`] once a close has begun.
    pub(crate) fn check_open(&self) -> Result<()> {
        match self.phase.load(Ordering::Acquire) {
            OPEN => Ok(()),
            _ => Err(closed_error()),
        }
    }

    /// Whether a close has ended: until then background work is taken.
    pub(crate) fn has_ended(&self) -> bool {
        self.phase.load(Ordering::Acquire) == CLOSED
    }

    /// Lets a call in that touches files; see the module.
    ///
    /// # Errors
    /// [`ErrorKind::Closed`] once a close has begun.
    pub(crate) fn enter(&self) -> Result<Call<'_>> {
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
        self.phase.compare_exchange(OPEN, CLOSING, Ordering::SeqCst, Ordering::SeqCst).is_ok()
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
}

/// What calls of a closed database get.
pub(crate) fn closed_error() -> Error {
    Error::new(ErrorKind::Closed, "the database is closed")
}
