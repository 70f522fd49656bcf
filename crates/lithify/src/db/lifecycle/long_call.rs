//! Calls that read files of the directory for as long as copies and verifications take.
//!
//! A close waits for them as for all calls that are in, but not to their end. Between two pieces of
//! work such a call is out for a moment. If a close has begun then, it does not get in again, and ends.
//! The caller's own code, which hears of progress, runs while the call is out: it may close the
//! database. One thread.

use super::{Call, Lifecycle, closed_error};
use crate::{Error, Result};
use std::cell::Cell;
use std::ops::ControlFlow;

/// See the module.
pub(crate) struct LongCall<'a> {
    lifecycle: &'a Lifecycle,
    call: Cell<Option<Call<'a>>>,
    is_ended: Cell<bool>,
}

impl Lifecycle {
    /// Lets a call in that takes long; see [`LongCall`].
    ///
    /// # Errors
    /// As [`Lifecycle::enter`].
    pub(crate) fn enter_for_long(&self) -> Result<LongCall<'_>> {
        let call = Cell::new(Some(self.enter()?));
        Ok(LongCall { lifecycle: self, call, is_ended: Cell::new(false) })
    }
}

impl LongCall<'_> {
    /// Tells the caller of progress between two pieces of work; `Break` also if a close has begun.
    pub(crate) fn between_pieces(&self, tell: impl FnOnce() -> ControlFlow<()>) -> ControlFlow<()> {
        drop(self.call.take());
        let answer = tell();
        match self.lifecycle.enter() {
            Ok(call) => {
                self.call.set(Some(call));
                answer
            }
            Err(_) => {
                self.is_ended.set(true);
                ControlFlow::Break(())
            }
        }
    }

    /// An error of kind [`crate::ErrorKind::Closed`] if a close has ended the call.
    pub(crate) fn check(&self) -> Result<()> {
        match self.is_ended.get() {
            true => Err(closed_error()),
            false => Ok(()),
        }
    }

    /// What the call failed with: the close, if one has ended it.
    pub(crate) fn cause(&self, error: Error) -> Error {
        self.check().err().unwrap_or(error)
    }
}
