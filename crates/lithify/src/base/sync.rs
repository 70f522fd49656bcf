//! Mutexes, condition variables and atomics that a concurrency checker can stand in for: pieces
//! whose protocol it runs in many orders take them from here, all others the standard ones.
//!
//! `cfg(shuttle)` is the checker of protocols, which takes all atomics for sequentially consistent;
//! what depends on weaker orders, the memtable, has `cfg(loom)` in `memtable/sync.rs`.

#[cfg(not(shuttle))]
pub(crate) use std::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize},
};

#[cfg(shuttle)]
pub(crate) use ::shuttle::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize},
};

use std::sync::PoisonError;

/// [`super::lock`] for these mutexes.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
