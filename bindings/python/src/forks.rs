//! What belongs to the process that opened it, as failures of this module.
//!
//! Owns: [`Maker`], and [`Native`], the holder of everything that the engine gave out. A child of a fork has
//! none of the engine's threads, and its locks may be held by threads that are gone. So a child neither uses nor
//! drops what its parent opened: it is an error, and the memory is left as it is.

use lithify_ffi::process::{Bound, Origin};

use crate::errors::{Failure, Result};

/// Has forks counted from now on.
pub fn watch() {
    Origin::here();
}

/// The process that made something.
#[derive(Clone, Copy)]
pub struct Maker(Origin);

impl Maker {
    /// This process.
    pub fn new() -> Maker {
        Maker(Origin::here())
    }

    /// Refuses what a child of it asks. To be called before a lock is waited for: at the fork another thread
    /// may have had it, and then nobody gives it back.
    pub fn check(self) -> Result<()> {
        if self.0.is_here() { Ok(()) } else { Err(Failure::Forked) }
    }
}

/// Something of the engine's, for the process that made it.
pub struct Native<T>(Bound<T>);

impl<T> Native<T> {
    /// Holds it.
    pub fn new(value: T) -> Self {
        Native(Bound::new(value))
    }

    /// It, in the process that made it.
    pub fn get(&self) -> Result<&T> {
        self.0.get().ok_or(Failure::Forked)
    }

    /// It, in any process: for memory that is only read.
    pub fn peek(&self) -> Option<&T> {
        self.0.peek()
    }

    /// It, to be changed.
    pub fn get_mut(&mut self) -> Result<&mut T> {
        self.0.get_mut().ok_or(Failure::Forked)
    }

    /// It, given away.
    pub fn take(self) -> Result<T> {
        self.0.take().ok_or(Failure::Forked)
    }
}
