//! What passes between the begin and the end of a sync.

use super::random::Random;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Passes the time that a sync takes; is told the number of the syncs before it.
pub type SyncPause = dyn Fn(u64) + Send + Sync;

/// The syncs of one file system that have something to do.
#[derive(Default)]
pub(super) struct Syncs {
    begun: AtomicU64,
    pause: RwLock<Option<Arc<SyncPause>>>,
}

impl Syncs {
    pub(super) fn set_pause(&self, pause: Arc<SyncPause>) {
        *self.pause.write().unwrap_or_else(PoisonError::into_inner) = Some(pause);
    }

    /// Passes the time of the next sync. The same syncs in the same order draw the same.
    pub(super) fn pass(&self) -> Random {
        let number = self.begun.fetch_add(1, Ordering::SeqCst);
        let pause = self.pause.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(pause) = pause {
            pause(number);
        }
        Random::new(number, number)
    }
}
