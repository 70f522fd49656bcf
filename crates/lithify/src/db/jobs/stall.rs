//! Holding writers back: flow control says how long, the environment waits, the ledger knows why.
//!
//! The debts are told to the flow controller whenever memtables or versions change, and running
//! jobs tell it after every step how much they have drained, so that writers are slowed smoothly
//! and hardly ever stopped.

use crate::Result;
use crate::compaction::flow::{
    Admission, Debt, Drain, FlowController, FlowOptions, Load, PRESSURE_NOTABLE,
};
use crate::compaction::picker::BusySet;
use crate::db::inner::{DbInner, lock};
use crate::events::Event;
use crate::options::Options;
use crate::stats::{DelayCause, JobInfo, JobKind, JobOutcome, JobRecord};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Runs of level 0 that make a compaction due.
pub(crate) const LEVEL0_TRIGGER: usize = 4;

/// How long a stopped writer waits before it looks whether anything is under way at all.
const STOP_CHECK_US: u64 = 100_000;

/// What the figures of earlier flushes still count after one more.
const FLUSH_MEMORY: f64 = 0.95;

/// Flow control with the figures of what flushes and compactions make of users' writes.
pub(crate) struct Flow {
    controller: FlowController,
    outcome: Mutex<Outcome>,
    /// The [`Load`] that was told last.
    told: AtomicU8,
}

/// Sums that forget.
#[derive(Default)]
struct Outcome {
    flushed_memory_bytes: f64,
    flushed_table_bytes: f64,
    flushed_entries: f64,
    /// Entries that flushes and compactions found obsolete.
    dropped_entries: f64,
}

impl Flow {
    pub(crate) fn new(options: &Options, now_us: u64) -> Self {
        let memtable_bytes = options.memtable_bytes as u64;
        let memtables_bytes_max = options.memory_budget_bytes as u64 / 2;
        let space_slack = f64::from(options.space_slack_percent) / 100.0;
        let floor_bytes = options.memory_budget_bytes as u64;
        let options =
            FlowOptions::new(memtable_bytes, memtables_bytes_max, LEVEL0_TRIGGER, space_slack)
                .with_floor(floor_bytes);
        let controller = FlowController::new(options, now_us);
        let told = AtomicU8::new(Load::Free as u8);
        Flow { controller, outcome: Mutex::default(), told }
    }

    /// The highest of the pressures on writers, from 0 to 1.
    pub(crate) fn pressure(&self) -> f64 {
        self.controller.pressure()
    }

    /// Whether a writer is stopped, as far as was told.
    fn is_stopping(&self) -> bool {
        self.told.load(Ordering::Relaxed) == Load::Full as u8
    }

    /// Notes what a flush made of memtables.
    pub(crate) fn note_flush(&self, memory_bytes: u64, records: &[&JobRecord]) {
        let mut outcome = lock(&self.outcome);
        let add = |sum: &mut f64, value: u64| *sum = *sum * FLUSH_MEMORY + value as f64;
        add(&mut outcome.flushed_memory_bytes, memory_bytes);
        let sum = |of: fn(&JobRecord) -> u64| records.iter().map(|record| of(record)).sum();
        add(&mut outcome.flushed_table_bytes, sum(|record| record.written_bytes));
        add(&mut outcome.flushed_entries, sum(|record| record.entries_in));
        add(&mut outcome.dropped_entries, sum(|record| record.entries_dropped));
    }

    /// Notes what a compaction found obsolete.
    pub(crate) fn note_compaction(&self, record: &JobRecord) {
        lock(&self.outcome).dropped_entries += record.entries_dropped as f64;
    }

    /// A debt with nothing in it but what writes come to.
    fn debt(&self) -> Debt {
        let outcome = lock(&self.outcome);
        let ratio = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        Debt {
            flushed_per_written_byte: ratio(
                outcome.flushed_table_bytes,
                outcome.flushed_memory_bytes,
            ),
            obsolete_share: ratio(outcome.dropped_entries, outcome.flushed_entries).min(1.0),
            work_per_flushed_byte: 1.0,
            ..Debt::default()
        }
    }
}

/// One job's share in draining the debts; ends with the job, however that ends.
pub(crate) struct DrainShare {
    inner: Arc<DbInner>,
    /// Per drain: the bytes that the whole job drains.
    totals: Vec<(Drain, u64)>,
    /// Entry bytes that the whole job handles.
    input_bytes: u64,
    handled_bytes: AtomicU64,
}

impl DrainShare {
    /// A job starts that handles so many entry bytes and drains these totals by it.
    pub(crate) fn begin(inner: &Arc<DbInner>, totals: Vec<(Drain, u64)>, input_bytes: u64) -> Self {
        let now_us = inner.world.environment.now_us();
        for (drain, _) in &totals {
            inner.jobs.flow.controller.drain_begins(*drain, now_us);
        }
        let handled_bytes = AtomicU64::new(0);
        DrainShare { inner: Arc::clone(inner), totals, input_bytes, handled_bytes }
    }

    /// A step has handled so many entry bytes more.
    pub(crate) fn progressed(&self, bytes: u64) {
        let before = self.handled_bytes.fetch_add(bytes, Ordering::Relaxed);
        let now_us = self.inner.world.environment.now_us();
        for (drain, total) in &self.totals {
            let share = self.drained(*total, before + bytes) - self.drained(*total, before);
            self.inner.jobs.flow.controller.drained(*drain, share, now_us);
        }
        // The controller's lock orders this after the stopped writer's look at the load.
        if self.inner.jobs.flow.is_stopping() && self.inner.load() != Load::Full {
            self.inner.jobs.notify();
        }
    }

    /// What of `total` is drained once so many entry bytes are handled; never more than all.
    fn drained(&self, total: u64, handled_bytes: u64) -> u64 {
        let handled = u128::from(handled_bytes.min(self.input_bytes));
        (u128::from(total) * handled / u128::from(self.input_bytes.max(1))) as u64
    }

    /// The job is over and its outcome, if any, is live.
    pub(crate) fn end(&self) {
        let debt = self.inner.debt();
        let now_us = self.inner.world.environment.now_us();
        let handled_bytes = self.handled_bytes.load(Ordering::Relaxed);
        for (drain, total) in &self.totals {
            let job_bytes = self.drained(*total, handled_bytes);
            self.inner.jobs.flow.controller.drain_ends(*drain, job_bytes, debt, now_us);
        }
    }
}

/// The time for which a writer, and all behind it, are stopped.
struct Stop<'a> {
    inner: &'a DbInner,
    cause: DelayCause,
    began_us: u64,
}

impl<'a> Stop<'a> {
    fn begin(inner: &'a DbInner, cause: DelayCause) -> Self {
        inner.tell_writes(Load::Full, cause);
        Stop { inner, cause, began_us: inner.events.now_us() }
    }
}

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        let info = JobInfo {
            reason: self.cause.name(),
            began_us: self.began_us,
            ..JobInfo::planned(JobKind::WriteStop, "")
        };
        self.inner.events.tell_end(info, 0, [], JobOutcome::Done);
        self.inner.tell_writes(self.inner.load(), self.cause);
    }
}

impl DbInner {
    /// What is left to flush and to compact.
    fn debt(&self) -> Debt {
        let mut debt = self.jobs.flow.debt();
        let mut largest_active_bytes = 0;
        for family in self.tree.families().values() {
            let view = family.view();
            // The active memtables of many families fill one after the other: one counts.
            largest_active_bytes = largest_active_bytes.max(view.active.memory_bytes() as u64);
            for memory in &view.immutable {
                debt.memtable_bytes += memory.memory_bytes() as u64;
            }
            debt.add_tree(&view.version, &family.level_targets(&view.version));
        }
        debt.memtable_bytes += largest_active_bytes;
        debt
    }

    /// Tells flow control that memtables or versions have changed.
    pub(crate) fn update_flow(&self) {
        self.jobs.flow.controller.update(self.debt(), self.world.environment.now_us());
    }

    /// Waits as long as a group of so many bytes has to be held back.
    pub(crate) fn hold_back(self: &Arc<Self>, bytes: usize) -> Result<()> {
        let environment = &self.world.environment;
        let stalls = self.ledger.stalls();
        let refusals = self.jobs.refusals();
        let mut stop = None;
        loop {
            let now_us = environment.now_us();
            let admission = match self.is_shared_memory_short() {
                true => Admission::Stop(DelayCause::MemoryBudget),
                false => self.jobs.flow.controller.admit(bytes as u64, now_us),
            };
            match admission {
                Admission::Go => return Ok(()),
                Admission::Delay { us, cause } => {
                    drop(stop.take());
                    // Else it is an after-effect.
                    if self.load() != Load::Free {
                        self.tell_writes(Load::Pressed, cause);
                    }
                    stalls.writer_slowed(now_us);
                    self.commits.rest(|| {
                        self.jobs.wait(&self.jobs.slowed, Some(now_us + us), || {
                            self.lifecycle.has_failed()
                        })
                    });
                    let end_us = environment.now_us();
                    stalls.writer_released(end_us);
                    self.ledger.book_delay(cause, end_us - now_us);
                }
                Admission::Stop(cause) => {
                    stop.get_or_insert_with(|| Stop::begin(self, cause));
                    stalls.writer_slowed(now_us);
                    let goes_on = self.commits.rest(|| self.wait_for_drain());
                    let end_us = environment.now_us();
                    stalls.writer_released(end_us);
                    self.ledger.book_stop(cause, end_us - now_us);
                    // A full disk, or one that takes no flush: nothing will drain until it does.
                    // Better an error than a wait without an end.
                    self.jobs.check_drained(cause, refusals)?;
                    if !goes_on {
                        return Ok(());
                    }
                }
            }
            self.lifecycle.check_writable()?;
        }
    }

    /// What is done to writers as things stand.
    fn load(&self) -> Load {
        match self.is_shared_memory_short() {
            true => Load::Full,
            false => self.jobs.flow.controller.load(),
        }
    }

    /// Tells how writers fare from now on, if that has changed.
    fn tell_writes(&self, load: Load, cause: DelayCause) {
        if self.jobs.flow.told.swap(load as u8, Ordering::Relaxed) == load as u8 {
            return;
        }
        let at_us = self.events.now_us();
        self.events.tell(match load {
            Load::Free => Event::WritesFree { at_us },
            Load::Pressed => Event::WritesSlowed { cause, at_us },
            Load::Full => Event::WritesStopped { cause, at_us },
        });
    }

    /// Tells that writers are free, if they were not and nothing slows them any more. Called at the end
    /// of a job, behind what it made due.
    pub(super) fn tell_if_free(&self) {
        let Flow { controller, told, .. } = &self.jobs.flow;
        let is_free = told.load(Ordering::Relaxed) == Load::Free as u8;
        if is_free || self.load() != Load::Free {
            return;
        }
        let is_idle = {
            let background = self.jobs.state();
            background.flushing.is_empty() && background.compaction_count == 0
        };
        // With nothing under way nobody would come to say so later.
        if is_idle || controller.pressure() <= PRESSURE_NOTABLE {
            self.tell_writes(Load::Free, DelayCause::Memtable);
        }
    }

    /// Waits until jobs have drained enough, or one has ended; false if there is none to wait for, so
    /// that stopping would be for ever.
    fn wait_for_drain(self: &Arc<Self>) -> bool {
        // What was refused is tried once more for this writer.
        self.schedule_all_flushes();
        self.schedule_all_compactions();
        let seen = self.jobs.changed.generation();
        let deadline_us = self.world.environment.now_us() + STOP_CHECK_US;
        let changed = self.jobs.wait_for_change(Some(deadline_us), || {
            // A job may have ended between the writer's admission and the look at the event.
            self.lifecycle.has_failed()
                || self.jobs.changed.generation() != seen
                || self.load() != Load::Full
        });
        changed || self.jobs.scheduler.job_count() > 0
    }

    /// Waits until nothing is left to flush or compact, and the files that took are removed.
    pub(crate) fn wait_until_settled(self: &Arc<Self>) -> Result<()> {
        let refusals = self.jobs.refusals();
        // Whoever asks for everything wants what was refused tried again now.
        self.jobs.state().compacting.values_mut().for_each(BusySet::wake_all);
        self.collect_garbage();
        self.schedule_all_flushes();
        self.review_formats();
        self.schedule_all_compactions();
        self.jobs.wait_for_change(None, || {
            let background = self.jobs.state();
            self.lifecycle.check_writable().is_err()
                || (background.flushing.is_empty()
                    && background.compaction_count == 0
                    && background.receivers == 0
                    && background.deletions == 0)
        });
        self.lifecycle.check_writable()?;
        self.jobs.check_refusals(refusals)
    }
}
