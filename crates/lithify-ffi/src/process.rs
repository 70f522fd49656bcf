//! Processes told apart after a fork, at the price of one load.
//!
//! A child has its parent's memory and none of its threads: locks may be held for ever, files are
//! shared. So what a parent opened is refused in the child. The C library calls [`count_fork`] in each
//! child, which moves the count on; an object remembers the count of its making.

#![expect(unsafe_code, reason = "the C library tells of forks")]

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

static FORKS: AtomicU32 = AtomicU32::new(0);
static WATCH: Once = Once::new();

/// Runs in each child, before fork returns there: it may touch an atomic and nothing else.
extern "C" fn count_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// The process that made something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin(u32);

impl Origin {
    /// This process. From the first call on, forks are counted.
    pub fn here() -> Self {
        WATCH.call_once(|| {
            // SAFETY: the handler touches one atomic, which a handler of a fork may.
            // Without memory for it forks stay unknown, as they are without this module.
            let _ = unsafe { libc::pthread_atfork(None, None, Some(count_fork)) };
        });
        Origin(FORKS.load(Ordering::Relaxed))
    }

    /// Whether it is this process, not one that this one was forked from.
    pub fn is_here(self) -> bool {
        FORKS.load(Ordering::Relaxed) == self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_not_where_its_parent_was() {
        let origin = Origin::here();
        assert!(origin.is_here());
        // SAFETY: the child only loads an atomic and ends at once, without destructors.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: ends this child and nothing else.
            unsafe { libc::_exit(i32::from(origin.is_here())) };
        }
        assert!(child > 0);
        let mut status = 0;
        // SAFETY: `child` is a child of this process, `status` is a live integer.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0);
        assert!(origin.is_here());
    }
}
