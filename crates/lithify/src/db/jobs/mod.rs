//! Background work: flushes, compactions, the removal of files, and how far writers are held back
//! beside it.
//!
//! Owns: the scheduler, what is under way and what was refused ([`Background`]), flow control, and
//! the event that says that something has changed. Any thread may call; jobs call when they end.
//! [`Jobs::state`] is the last lock in the order of `db/mod.rs`: with it held only leaves are taken.
//! Nobody waits with it held.

pub(crate) mod background;
pub(crate) mod compacting;
pub(crate) mod flush;
mod formats;
pub(crate) mod manual;
mod paid;
pub(crate) mod refusal;
pub(crate) mod removal;
pub(crate) mod stall;

use crate::base::lock;
use crate::compaction::picker::Compaction;
use crate::compaction::scheduler::{Job, Scheduler, Shutdown};
use crate::db::tree::family::Family;
use crate::fs::Event;
use background::Background;
use stall::Flow;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard};

/// See the module.
pub(crate) struct Jobs {
    scheduler: Scheduler,
    flow: Flow,
    state: Mutex<Background>,
    /// Notified when a flush or compaction was installed, or failed.
    changed: Arc<dyn Event>,
    /// What slowed writers sleep at; notified only by a failure.
    slowed: Arc<dyn Event>,
    /// When what was observed of reads was written to disk.
    heat_kept_us: Mutex<u64>,
    /// Whether a family's policy decides, or its rows expire.
    families_are_watched: AtomicBool,
    /// Whether the log takes more than its records, so that idle workers check whether it rests.
    pub(super) log_is_watched: AtomicBool,
}

impl Jobs {
    /// No work yet. A failure of the database notifies both events.
    pub(crate) fn new(
        scheduler: Scheduler,
        flow: Flow,
        changed: Arc<dyn Event>,
        slowed: Arc<dyn Event>,
    ) -> Self {
        Jobs {
            scheduler,
            flow,
            state: Mutex::default(),
            changed,
            slowed,
            heat_kept_us: Mutex::default(),
            families_are_watched: AtomicBool::new(false),
            log_is_watched: AtomicBool::new(false),
        }
    }

    /// What is under way, and what was refused.
    pub(crate) fn state(&self) -> MutexGuard<'_, Background> {
        lock(&self.state)
    }

    /// Has a job done.
    pub(crate) fn submit(&self, job: Box<dyn Job>) {
        self.scheduler.submit(job);
    }

    /// Jobs of which a thread does a step, and those that wait for a thread or the disk.
    pub(crate) fn running_and_waiting(&self) -> (usize, usize) {
        self.scheduler.running_and_waiting()
    }

    /// Ends all jobs where they stand, and the workers.
    pub(crate) fn shutdown(&self) {
        self.scheduler.shutdown(Shutdown::Abort);
    }

    /// Tells all who wait for a change that there was one.
    pub(crate) fn notify(&self) {
        self.changed.notify_all();
    }

    /// What the tables of a compaction rest for has passed: it was done.
    fn forget_refusals(&self, family: &Family, compaction: &Compaction) {
        if let Some(busy) = self.state().busy_mut(family.id) {
            busy.forget_refusals(compaction);
        }
    }

    /// Waits at an event through the scheduler, so that with no background threads the waiter does
    /// the work. The deadline is a time of the environment's clock; false if it has passed.
    pub(crate) fn wait(
        &self,
        event: &Arc<dyn Event>,
        deadline_us: Option<u64>,
        condition: impl FnMut() -> bool,
    ) -> bool {
        self.scheduler.wait_until(event, deadline_us, condition)
    }

    /// As [`Jobs::wait`], for a change of background work.
    pub(crate) fn wait_for_change(
        &self,
        deadline_us: Option<u64>,
        condition: impl FnMut() -> bool,
    ) -> bool {
        self.wait(&self.changed, deadline_us, condition)
    }
}
