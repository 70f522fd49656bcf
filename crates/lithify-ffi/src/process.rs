//! Processes told apart after a fork, at the price of one load.
//!
//! A child has its parent's memory and none of its threads: locks may be held for ever, files are
//! shared. So what a parent opened is refused in the child. The C library calls `count_fork` in each
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

/// Something of the process that made it. In a child it cannot be reached, and its end does nothing:
/// locks in it may be held for ever, and files are the parent's.
#[derive(Debug)]
pub struct Bound<T> {
    origin: Origin,
    /// Taken out by the end alone.
    value: Option<T>,
}

impl<T> Bound<T> {
    /// Binds a value to this process.
    pub fn new(value: T) -> Self {
        Bound { origin: Origin::here(), value: Some(value) }
    }

    /// The value, in its process.
    pub fn get(&self) -> Option<&T> {
        self.value.as_ref().filter(|_| self.origin.is_here())
    }

    /// The value in any process: for memory that is only read, and takes no lock.
    pub fn peek(&self) -> Option<&T> {
        self.value.as_ref()
    }

    /// The value to change, in its process.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.value.as_mut().filter(|_| self.origin.is_here())
    }

    /// The value itself, in its process.
    pub fn take(mut self) -> Option<T> {
        match self.origin.is_here() {
            true => self.value.take(),
            false => None,
        }
    }
}

impl<T> Drop for Bound<T> {
    fn drop(&mut self) {
        if !self.origin.is_here() {
            std::mem::forget(self.value.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_value_is_reached_and_ended_where_it_was_made() {
        let counted = std::rc::Rc::new(());
        let mut bound = Bound::new(std::rc::Rc::clone(&counted));
        assert!(bound.get().is_some() && bound.get_mut().is_some());
        drop(bound);
        assert_eq!(std::rc::Rc::strong_count(&counted), 1);
        let mut elsewhere = Bound::new(std::rc::Rc::clone(&counted));
        elsewhere.origin = Origin(u32::MAX);
        assert!(elsewhere.get().is_none() && elsewhere.get_mut().is_none());
        assert!(elsewhere.peek().is_some());
        drop(elsewhere);
        assert_eq!(std::rc::Rc::strong_count(&counted), 2, "left as it was");
        assert!(Bound::new(7).take() == Some(7));
    }

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
