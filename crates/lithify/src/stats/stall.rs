//! Who was kept waiting: long units of work, slowed writers, and windows without a completion.
//!
//! All times come in as arguments, so that a virtual clock gives the same figures every time.
//! Callers on any thread. One writer's completion costs an atomic exchange.

use super::names::Cause;
use crate::base::{Level, lock};
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// Units of work from this length on are recorded.
pub const UNIT_US_MIN: u64 = 1_000;
/// So many of the latest units are kept.
pub const UNIT_RING: usize = 256;
/// The windows of the gap share.
pub const WINDOW_US: u64 = 100_000;

/// A unit of work that held its thread for a millisecond or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// When it ended, since the ledger's start.
    pub at_us: u64,
    /// What it worked on.
    pub cause: Cause,
    /// For which level.
    pub level: Level,
    /// How long it held the thread.
    pub wall_us: u64,
    /// How much of that it was on the CPU.
    pub cpu_us: u64,
}

#[derive(Default)]
struct Units {
    latest: VecDeque<Unit>,
    longest_us: [u64; Cause::COUNT],
}

#[derive(Default)]
struct Slowed {
    writers: u32,
    since_us: u64,
    sum_us: u64,
}

/// Long units, slowed writers and gaps between completions. Part of the ledger.
pub struct Stalls {
    start_us: u64,
    units: Mutex<Units>,
    slowed: Mutex<Slowed>,
    /// Writers that want to complete a write.
    waiting: AtomicI64,
    /// When a write was last completed, or the first of the waiting writers came.
    progress_us: AtomicU64,
    longest_gap_us: AtomicU64,
    gap_windows: AtomicU64,
}

/// Whole windows of the grid between two times.
fn whole_windows(from_us: u64, to_us: u64) -> u64 {
    (to_us / WINDOW_US).saturating_sub(from_us.div_ceil(WINDOW_US))
}

impl Stalls {
    pub(super) fn new(start_us: u64) -> Self {
        Stalls {
            start_us,
            units: Mutex::default(),
            slowed: Mutex::default(),
            waiting: AtomicI64::new(0),
            progress_us: AtomicU64::new(0),
            longest_gap_us: AtomicU64::new(0),
            gap_windows: AtomicU64::new(0),
        }
    }

    fn since_start(&self, now_us: u64) -> u64 {
        now_us.saturating_sub(self.start_us)
    }

    pub(super) fn record_unit(&self, unit: Unit) {
        let mut units = lock(&self.units);
        let longest_us = &mut units.longest_us[unit.cause as usize];
        *longest_us = unit.wall_us.max(*longest_us);
        if units.latest.len() == UNIT_RING {
            units.latest.pop_front();
        }
        units.latest.push_back(unit);
    }

    /// A writer is being held back from now on, until [`Stalls::writer_released`].
    pub fn writer_slowed(&self, now_us: u64) {
        let mut slowed = lock(&self.slowed);
        if slowed.writers == 0 {
            slowed.since_us = now_us;
        }
        slowed.writers += 1;
    }

    /// The end of [`Stalls::writer_slowed`].
    pub fn writer_released(&self, now_us: u64) {
        let mut slowed = lock(&self.slowed);
        slowed.writers = slowed.writers.saturating_sub(1);
        if slowed.writers == 0 {
            slowed.sum_us += now_us.saturating_sub(slowed.since_us);
        }
    }

    /// A writer wants to complete a write from now on, until [`Stalls::writer_ends`] or
    /// [`Stalls::writer_gives_up`].
    pub fn writer_begins(&self, now_us: u64) {
        if self.waiting.fetch_add(1, Relaxed) == 0 {
            self.progress_us.fetch_max(self.since_start(now_us), Relaxed);
        }
    }

    /// A write, or a group of them, was completed.
    pub fn write_completed(&self, now_us: u64) {
        let now_us = self.since_start(now_us);
        let from_us = self.progress_us.swap(now_us, Relaxed);
        let gap_us = now_us.saturating_sub(from_us);
        // Most gaps are neither long nor the longest: look before writing.
        if gap_us > self.longest_gap_us.load(Relaxed) {
            self.longest_gap_us.fetch_max(gap_us, Relaxed);
        }
        if gap_us >= WINDOW_US {
            self.gap_windows.fetch_add(whole_windows(from_us, now_us), Relaxed);
        }
    }

    /// The end of [`Stalls::writer_begins`], after the completion.
    pub fn writer_ends(&self) {
        self.waiting.fetch_sub(1, Relaxed);
    }

    /// The end of [`Stalls::writer_begins`] for a writer that gave up (an error, a timeout): if it
    /// was the last, its vain wait counts as a gap.
    pub fn writer_gives_up(&self, now_us: u64) {
        if self.waiting.fetch_sub(1, Relaxed) == 1 {
            self.write_completed(now_us);
        }
    }

    /// The figures at `now_us`; a wait that is still going on is counted up to now.
    pub fn summary(&self, now_us: u64) -> StallSummary {
        let slowed = lock(&self.slowed);
        let open_us = if slowed.writers > 0 { now_us.saturating_sub(slowed.since_us) } else { 0 };
        let slowed_us = slowed.sum_us + open_us;
        drop(slowed);
        let uptime_us = self.since_start(now_us);
        let mut longest_gap_us = self.longest_gap_us.load(Relaxed);
        let mut gap_windows = self.gap_windows.load(Relaxed);
        if self.waiting.load(Relaxed) > 0 {
            let from_us = self.progress_us.load(Relaxed);
            longest_gap_us = longest_gap_us.max(uptime_us.saturating_sub(from_us));
            gap_windows += whole_windows(from_us, uptime_us);
        }
        let units = lock(&self.units);
        StallSummary {
            latest_units: units.latest.iter().copied().collect(),
            longest_unit_us: units.longest_us,
            slowed_us,
            gap_windows,
            windows: uptime_us / WINDOW_US,
            longest_gap_us,
        }
    }
}

/// The stall figures at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StallSummary {
    /// The latest units of a millisecond and more, oldest first.
    pub latest_units: Vec<Unit>,
    /// The longest unit of each cause, by the number of the cause.
    pub longest_unit_us: [u64; Cause::COUNT],
    /// Time in which at least one writer was held back.
    pub slowed_us: u64,
    /// Windows of 100 ms all through which a writer wanted to complete a write and none was
    /// completed.
    pub gap_windows: u64,
    /// Windows since the ledger's start.
    pub windows: u64,
    /// The longest time for which a writer wanted to and nothing was completed.
    pub longest_gap_us: u64,
}

impl StallSummary {
    /// Share of the windows that were gaps, 0 to 1.
    pub fn gap_share(&self) -> f64 {
        if self.windows == 0 { 0.0 } else { self.gap_windows as f64 / self.windows as f64 }
    }
}
