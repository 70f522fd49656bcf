//! Holding writers back: flow control says how long, the environment waits, the ledger knows why.
//!
//! The debts are told to the flow controller whenever memtables or versions change, and running
//! jobs tell it after every step how much they have drained, so that writers are slowed smoothly
//! and hardly ever stopped.

use super::inner::DbInner;
use crate::Result;
use crate::compaction::flow::{Admission, Debt, Drain, FlowController, FlowOptions};
use crate::compaction::levels::level_sizes;
use crate::options::Options;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Runs of level 0 that make a compaction due.
pub(crate) const LEVEL0_TRIGGER: usize = 4;

/// How long a stopped writer waits before it looks whether anything is under way at all.
const STOP_CHECK_US: u64 = 100_000;

/// Flow control with the figures that turn memtable bytes into table bytes.
pub(crate) struct Flow {
    controller: FlowController,
    flushed_memory_bytes: AtomicU64,
    flushed_table_bytes: AtomicU64,
}

impl Flow {
    pub(crate) fn new(options: &Options, now_us: u64) -> Self {
        let memtable_bytes = options.memtable_bytes as u64;
        let memtables_bytes_max = options.memory_budget_bytes as u64 / 2;
        let options = FlowOptions::new(memtable_bytes, memtables_bytes_max, LEVEL0_TRIGGER);
        Flow {
            controller: FlowController::new(options, now_us),
            flushed_memory_bytes: AtomicU64::new(0),
            flushed_table_bytes: AtomicU64::new(0),
        }
    }

    /// Notes what a flush made of memtables.
    pub(crate) fn note_flush(&self, memory_bytes: u64, table_bytes: u64) {
        self.flushed_memory_bytes.fetch_add(memory_bytes, Ordering::Relaxed);
        self.flushed_table_bytes.fetch_add(table_bytes, Ordering::Relaxed);
    }

    fn flushed_per_written_byte(&self) -> f64 {
        let memory_bytes = self.flushed_memory_bytes.load(Ordering::Relaxed);
        let table_bytes = self.flushed_table_bytes.load(Ordering::Relaxed);
        if memory_bytes == 0 { 1.0 } else { table_bytes as f64 / memory_bytes as f64 }
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
            inner.flow.controller.drain_begins(*drain, now_us);
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
            self.inner.flow.controller.drained(*drain, share, now_us);
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
            self.inner.flow.controller.drain_ends(*drain, job_bytes, debt, now_us);
        }
    }
}

impl DbInner {
    /// What is left to flush and to compact.
    fn debt(&self) -> Debt {
        let mut debt = Debt {
            flushed_per_written_byte: self.flow.flushed_per_written_byte(),
            work_per_flushed_byte: 1.0,
            ..Debt::default()
        };
        let mut largest_active_bytes = 0;
        for family in self.families.load().values() {
            let view = family.view();
            // The active memtables of many families fill one after the other: one counts.
            largest_active_bytes =
                largest_active_bytes.max(view.active.table.memory_bytes() as u64);
            for memory in &view.immutable {
                debt.memtable_bytes += memory.table.memory_bytes() as u64;
            }
            let sizes = level_sizes(&view.version);
            let targets = self.level_targets(family, &view.version);
            debt.level0_runs = debt.level0_runs.max(view.version.level(0).len());
            debt.level0_bytes += sizes.first().copied().unwrap_or(0);
            debt.pending_compaction_bytes += targets.pending_compaction_bytes(&sizes);
            debt.work_per_flushed_byte =
                debt.work_per_flushed_byte.max(targets.work_per_flushed_byte(&sizes));
        }
        debt.memtable_bytes += largest_active_bytes;
        debt
    }

    /// Tells flow control that memtables or versions have changed.
    pub(crate) fn update_flow(&self) {
        self.flow.controller.update(self.debt(), self.world.environment.now_us());
    }

    /// Waits as long as a group of so many bytes has to be held back.
    pub(crate) fn hold_back(self: &Arc<Self>, bytes: usize) -> Result<()> {
        let environment = &self.world.environment;
        let stalls = self.ledger.stalls();
        let refusals = self.refusals();
        loop {
            let now_us = environment.now_us();
            match self.flow.controller.admit(bytes as u64, now_us) {
                Admission::Go => return Ok(()),
                Admission::Delay { us, cause } => {
                    stalls.writer_slowed(now_us);
                    self.wait(&self.writer_event, Some(now_us + us), || self.has_failed());
                    let end_us = environment.now_us();
                    stalls.writer_released(end_us);
                    self.ledger.book_delay(cause, end_us - now_us);
                }
                Admission::Stop(cause) => {
                    stalls.writer_slowed(now_us);
                    let refusals = self.refusals();
                    let goes_on = self.wait_for_drain();
                    let end_us = environment.now_us();
                    stalls.writer_released(end_us);
                    self.ledger.book_stop(cause, end_us - now_us);
                    // A full disk: nothing will drain until there is space.
                    self.check_refusals(refusals)?;
                    if !goes_on {
                        return Ok(());
                    }
                }
            }
            self.check_writable()?;
            // What drains the debt met a full disk: better an error than a wait without an end.
            self.check_refusals(refusals)?;
        }
    }

    /// Waits for the next flush or compaction to end; false if there is none to wait for, so that
    /// stopping would be for ever.
    fn wait_for_drain(self: &Arc<Self>) -> bool {
        // What a full disk refused is tried once more for this writer.
        self.schedule_all_flushes();
        self.schedule_all_compactions();
        let seen = self.state_changed.generation();
        let deadline_us = self.world.environment.now_us() + STOP_CHECK_US;
        let changed = self.wait(&self.state_changed, Some(deadline_us), || {
            self.has_failed() || self.state_changed.generation() != seen
        });
        changed || self.scheduler.job_count() > 0
    }

    /// Waits until nothing is left to flush or compact, and the files that took are removed.
    pub(crate) fn wait_until_settled(self: &Arc<Self>) -> Result<()> {
        let refusals = self.refusals();
        self.schedule_all_flushes();
        self.schedule_all_compactions();
        self.wait(&self.state_changed, None, || {
            let background = self.background();
            self.check_writable().is_err()
                || (background.flushing.is_empty()
                    && background.compaction_count == 0
                    && background.receivers == 0
                    && background.deletions == 0)
        });
        self.check_writable()?;
        self.check_refusals(refusals)
    }
}
