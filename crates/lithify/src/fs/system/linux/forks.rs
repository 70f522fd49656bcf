//! Forks counted by the C library, so that a process tells itself from its parent at the price of a load.
#![expect(unsafe_code, reason = "the C library tells of forks")]

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

static FORKS: AtomicU32 = AtomicU32::new(0);

/// Runs in each child, before fork returns there: it may touch an atomic and nothing else.
extern "C" fn count_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Has forks counted from now on.
pub(in super::super) fn watch_forks() {
    static WATCH: Once = Once::new();
    WATCH.call_once(|| {
        // SAFETY: the handler touches one atomic, which a handler of a fork may.
        // Without memory for it forks stay unknown.
        let _ = unsafe { libc::pthread_atfork(None, None, Some(count_fork)) };
    });
}

/// A number that a child does not share with its parent.
#[inline]
pub(in super::super) fn process_number() -> u32 {
    FORKS.load(Ordering::Relaxed)
}
