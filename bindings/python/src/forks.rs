//! Forks of the process, and what belongs to the process before them.
//!
//! Owns: the count of forks, [`Maker`], and [`Native`], the holder of everything that the engine gave out. A child of
//! a fork has none of the engine's threads, and its locks may be held by threads that are gone. So a child
//! neither uses nor drops what its parent opened: it is an error, and the memory is left as it is.

use std::mem;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::errors::{Failure, Result};

static FORKS: AtomicU32 = AtomicU32::new(0);

fn forks() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

#[cfg(unix)]
extern "C" fn count_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Has forks counted from now on.
#[cfg(unix)]
#[expect(unsafe_code, reason = "the standard library has no hook for forks")]
pub fn watch() {
    // SAFETY: the handler only adds to an atomic number, which a child may do right after a fork, and the
    // module is never unloaded. A failure (no memory) leaves forks uncounted, as without the hook.
    unsafe { libc::pthread_atfork(None, None, Some(count_fork)) };
}

/// There are no forks.
#[cfg(not(unix))]
pub fn watch() {}

/// The process that made something.
#[derive(Clone, Copy)]
pub struct Maker(u32);

impl Maker {
    /// This process.
    pub fn new() -> Maker {
        Maker(forks())
    }

    /// Refuses what a child of it asks. To be called before a lock is waited for: at the fork another thread
    /// may have had it, and then nobody gives it back.
    pub fn check(self) -> Result<()> {
        if self.0 == forks() { Ok(()) } else { Err(Failure::Forked) }
    }
}

/// Something of the engine's, for the process that made it.
pub struct Native<T> {
    value: Option<T>,
    maker: Maker,
}

impl<T> Native<T> {
    /// Holds it.
    pub fn new(value: T) -> Self {
        Native { value: Some(value), maker: Maker::new() }
    }

    /// It, in the process that made it.
    pub fn get(&self) -> Result<&T> {
        self.maker.check()?;
        self.value.as_ref().ok_or(Failure::Forked)
    }

    /// It, in any process: for memory that is only read.
    pub fn peek(&self) -> Option<&T> {
        self.value.as_ref()
    }

    /// It, to be changed.
    pub fn get_mut(&mut self) -> Result<&mut T> {
        self.maker.check()?;
        self.value.as_mut().ok_or(Failure::Forked)
    }

    /// It, given away.
    pub fn take(mut self) -> Result<T> {
        self.maker.check()?;
        self.value.take().ok_or(Failure::Forked)
    }
}

impl<T> Drop for Native<T> {
    fn drop(&mut self) {
        if self.maker.check().is_err() {
            mem::forget(self.value.take());
        }
    }
}
