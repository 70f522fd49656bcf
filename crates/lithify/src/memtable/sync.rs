//! The two kinds of shared memory that the tree is built from, in one place so that the
//! concurrency checker can stand in for them: atomics, and cells that are written before they are
//! published and never after.

#[cfg(not(loom))]
pub(super) use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

#[cfg(loom)]
pub(super) use ::loom::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

/// A value that one thread writes before it publishes the place, and any thread reads after.
#[cfg(not(loom))]
pub(super) struct WriteOnce<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T: Copy> WriteOnce<T> {
    /// A cell that holds `value`.
    pub(super) fn new(value: T) -> Self {
        WriteOnce(std::cell::UnsafeCell::new(value))
    }

    /// Reads the cell.
    ///
    /// # Safety
    /// The last write must happen before this call, and none may follow.
    pub(super) unsafe fn get(&self) -> T {
        // SAFETY: the caller rules out a concurrent write.
        unsafe { *self.0.get() }
    }

    /// Writes the cell.
    ///
    /// # Safety
    /// No other thread may have been shown the cell's place yet.
    pub(super) unsafe fn set(&self, value: T) {
        // SAFETY: the caller rules out any concurrent access.
        unsafe { *self.0.get() = value }
    }
}

/// The same under the concurrency checker, which reports every unordered pair of accesses.
#[cfg(loom)]
pub(super) struct WriteOnce<T>(::loom::cell::UnsafeCell<T>);

#[cfg(loom)]
impl<T: Copy> WriteOnce<T> {
    pub(super) fn new(value: T) -> Self {
        WriteOnce(::loom::cell::UnsafeCell::new(value))
    }

    /// # Safety
    /// As in the plain build.
    pub(super) unsafe fn get(&self) -> T {
        // SAFETY: the caller rules out a concurrent write; the checker verifies it.
        self.0.with(|value| unsafe { *value })
    }

    /// # Safety
    /// As in the plain build.
    pub(super) unsafe fn set(&self, value: T) {
        // SAFETY: the caller rules out any concurrent access; the checker verifies it.
        self.0.with_mut(|place| unsafe { *place = value })
    }
}
