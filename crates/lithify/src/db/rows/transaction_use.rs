//! Whether plain writes have to take row locks: only once a transaction was ever begun.
//!
//! A database without transactions pays two atomic additions a write for those it might have. Any
//! thread may call; checked in many orders by `db/shuttle.rs`.

use crate::base::sync::{AtomicU8, AtomicUsize};
use crate::fs::Event;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// See the module.
pub(crate) struct TransactionUse {
    stage: AtomicU8,
    unlocked_writers: AtomicUsize,
    drained: Arc<dyn Event>,
}

/// No transaction was ever begun: plain writes take no locks.
const UNUSED: u8 = 0;
/// Plain writes take locks from now on, and some without them may be under way.
const DRAINING: u8 = 1;
/// All plain writes have locks.
const USED: u8 = 2;

impl TransactionUse {
    pub(crate) fn new(drained: Arc<dyn Event>) -> Self {
        TransactionUse {
            stage: AtomicU8::new(UNUSED),
            unlocked_writers: AtomicUsize::new(0),
            drained,
        }
    }

    /// Enters a plain write that takes no locks; false if it must take them.
    pub(crate) fn unlocked_writer_begins(&self) -> bool {
        // Both sides write first and look then, in one total order: either this write sees the
        // stage, or the first transaction sees this write and waits for it.
        self.unlocked_writers.fetch_add(1, Ordering::SeqCst);
        if self.stage.load(Ordering::SeqCst) != UNUSED {
            self.unlocked_writer_ends();
            return false;
        }
        true
    }

    pub(crate) fn unlocked_writer_ends(&self) {
        self.unlocked_writers.fetch_sub(1, Ordering::SeqCst);
        if self.stage.load(Ordering::SeqCst) == DRAINING {
            self.drained.notify_all();
        }
    }

    /// Makes plain writes take row locks from now on; on return none without is under way. `wait`
    /// waits at the event until the condition holds. Every transaction that begins before that is
    /// so waits for it, not only the first.
    pub(crate) fn begin(&self, wait: impl FnOnce(&Arc<dyn Event>, &mut dyn FnMut() -> bool)) {
        if self.stage.load(Ordering::SeqCst) == USED {
            return;
        }
        let before = self.stage.fetch_max(DRAINING, Ordering::SeqCst);
        if planted!(FirstTransactionAlone) && before == DRAINING {
            return;
        }
        wait(&self.drained, &mut || {
            self.stage.load(Ordering::SeqCst) == USED
                || self.unlocked_writers.load(Ordering::SeqCst) == 0
        });
        self.stage.store(USED, Ordering::SeqCst);
        // Those who wait beside this one look at the stage, and nobody else tells them any more.
        self.drained.notify_all();
    }
}
