//! Slows writers in proportion to what is left to do, so that they never have to be stopped.
//!
//! 1. Four debts are watched: bytes in memtables, runs in level 0, the backlog of compaction (as
//!    bytes of users' writes that it stands for), and the space that obsolete entries take because
//!    compaction has not come to them. Each is a *pressure* between 0 (at its soft limit or below)
//!    and 1 (at its hard limit).
//! 2. For each the rate of its drain is measured: flushes empty memtables, compactions level 0,
//!    the backlog and the space. Time counts while a drain runs, and also while it should and does
//!    not, because threads or tables are busy with other work: a level 0 that waits for its turn
//!    is slow, however fast its compactions are once they run.
//! 3. Writers may write the drain's rate times `pace` of the pressure: without pressure as fast
//!    as they like, at half pressure exactly as fast as the debt drains, a little more below and a
//!    little less above, and nothing at 1. So an overloaded database comes to rest near half
//!    pressure and writes at the rate that it can sustain; a wrong estimate of the drain only
//!    moves the point of rest, and a debt that goes up and down with every job hardly shows.
//! 4. Debts of compaction up to an absolute floor, the memory budget, slow nobody: a short burst into a
//!    small database is over before anything is short ([`FlowOptions::with_floor`]).
//! 5. The tightest of the rates counts and gives a delay its cause. What a writer wrote beyond the
//!    rate is owed, and is waited off in sleeps of at most 10 ms. Sleeps are rare rather than
//!    short: so long as none gets long, one write in 2,000 waits, and the others do not.
//!
//! What a running job has done already counts, so that debts fall smoothly and not in lumps when
//! a flush or compaction ends; what remains of lumps is smoothed in time. Pure under the times
//! that are passed in; any thread may call. It does not sleep itself.

use super::levels::{LevelTargets, level_sizes};
use crate::base::lock;
use crate::manifest::Version;
use crate::stats::DelayCause;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};

/// The longest single sleep: pressure may fall, and a writer should hear of it.
pub const DELAY_US_MAX: u64 = 10_000;
/// Shorter debts of time are carried on: a sleep is hardly ever shorter than this.
const DELAY_US_MIN: u64 = 200;
/// So many writes come between two sleeps, unless the sleep would be a long one by then.
const WRITES_BETWEEN_DELAYS: u64 = 2_000;
const DELAY_US_LONG: u64 = 6_000;
/// A writer that kept still may catch up on so much.
const BURST_US: f64 = 2_000.0;
/// Pressures follow their debts within about so much time, in the order of [`DEBTS`]. Memtables
/// fill steadily but can be full within a tenth of a second; the others grow in lumps, slowly.
const SMOOTHING_US: [f64; DEBT_COUNT] = [30_000.0, 100_000.0, 300_000.0, 1_000_000.0];
/// Drain rates are averages over about so much time in which there is something to drain: several
/// turns of the work on level 0 and on the levels below.
const RATE_MEMORY_US_MAX: f64 = 10_000_000.0;
/// A young tree drains fast and slower by the second as it becomes deeper: the memory is no longer
/// than this share of the time in which there was something to drain. With all of the ten seconds
/// a simulated load of an empty database was stopped up to 350 times (`tests/overload.rs`).
const RATE_MEMORY_SHARE: f64 = 0.25;
const RATE_MEMORY_US_MIN: f64 = 500_000.0;
/// The first guess of a rate counts as if it had been measured for so long.
const RATE_GUESS_US: f64 = 250_000.0;
/// How firmly writers are led back to half pressure, in the order of [`DEBTS`]: the power of
/// `(1 - p) / p`. Memory is soon full; what goes up and down with every job is met gently.
const PACE_EXPONENTS: [f64; DEBT_COUNT] = [1.0, 0.6, 0.3, 0.3];
/// Above this pressure writers are braked for good.
const BRAKE_PRESSURE: f64 = 0.75;
/// Writers are slowed from this part of the permitted obsolete space on; in the middle between the
/// two it comes to rest.
const SPACE_SOFT_PART: f64 = 0.2;
/// What is below the floor of debts is at most this part of the settled size.
const SPACE_FLOOR_PART: f64 = 0.25;
/// How far above the floor obsolete space slows as much as it can.
const SPACE_FLOOR_HARD: f64 = 1.6;
/// So many times the runs that make a compaction due slow nobody, if they are below the floor: lookups
/// go through as many filters.
const FREE_RUNS_FACTOR: f64 = 3.0;
/// So many times these runs lie between the first slow write and a stop.
const PACED_RUNS_FACTOR: f64 = 4.0;
/// The rate stands for so long: many writes come in that time, and to find it takes a while.
const RATE_STRIDE_US: u64 = 100;
/// However high the pressure short of a stop, so much may be written.
const BYTES_PER_SECOND_MIN: f64 = 256.0 * 1024.0;

/// Where a debt begins to slow writers, and where it stops them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Up to here nobody is slowed.
    pub soft: f64,
    /// From here on nobody writes.
    pub hard: f64,
}

impl Limits {
    fn pressure(&self, debt: f64) -> f64 {
        ((debt - self.soft) / (self.hard - self.soft).max(f64::MIN_POSITIVE)).clamp(0.0, 1.0)
    }
}

/// For the sake of space nobody is stopped: so much of the drain's rate remains.
const SPACE_PACE_MIN: f64 = 0.1;

/// How fast writers may write at a pressure, in multiples of the drain's rate.
fn pace(pressure: f64, exponent: f64) -> f64 {
    let lean = ((1.0 - pressure) / pressure).powf(exponent);
    lean * ((1.0 - pressure) / (1.0 - BRAKE_PRESSURE)).min(1.0)
}

/// The limits of the debts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowOptions {
    /// Bytes in memtables that are not flushed.
    pub memtable_bytes: Limits,
    /// Runs in level 0.
    pub level0_runs: Limits,
    /// Bytes of users' writes that the pending compactions stand for.
    pub backlog_bytes: Limits,
    /// Obsolete space that is permitted per settled space.
    pub space_slack: f64,
    /// Bytes of obsolete space that a small database may have.
    pub space_bytes_min: Limits,
    /// Debts of compaction up to so many bytes slow nobody.
    pub floor_bytes: f64,
    /// The drain rates until they have been measured.
    pub initial_bytes_per_second: f64,
}

impl FlowOptions {
    /// Limits that follow from the size of a memtable, the most that all memtables may hold, the
    /// runs that make a compaction of level 0 due, and the obsolete space per settled space.
    ///
    /// One memtable that fills while another is flushed is no debt. The hard limit lies two
    /// memtables above the soft one at least, or a memtable being flushed would stop writers.
    pub fn new(
        memtable_bytes: u64,
        memtables_bytes_max: u64,
        level0_trigger: usize,
        space_slack: f64,
    ) -> Self {
        let memtable = memtable_bytes as f64;
        let runs = level0_trigger.max(1) as f64;
        let level0_bytes = memtable * runs;
        let hard = (memtables_bytes_max as f64).clamp(memtable * 3.0, memtable * 6.0);
        FlowOptions {
            memtable_bytes: Limits { soft: memtable, hard },
            level0_runs: Limits { soft: runs, hard: runs * 5.0 },
            // A full level 0 is a backlog that comes and goes.
            backlog_bytes: Limits { soft: level0_bytes * 2.0, hard: level0_bytes * 8.0 },
            space_slack,
            space_bytes_min: Limits { soft: level0_bytes, hard: level0_bytes * 3.0 },
            floor_bytes: 0.0,
            initial_bytes_per_second: 16.0 * 1024.0 * 1024.0,
        }
    }

    /// Lets debts of compaction up to so many bytes slow nobody: runs of level 0 of a memtable each,
    /// as long as lookups can take their number, bytes to rewrite, and obsolete space as far as a
    /// database grows by no more than a part of its size.
    pub fn with_floor(self, floor_bytes: u64) -> Self {
        let floor_bytes = floor_bytes as f64;
        let Limits { soft, hard } = self.level0_runs;
        let runs = (floor_bytes / self.memtable_bytes.soft).clamp(soft, soft * FREE_RUNS_FACTOR);
        let level0_runs = Limits { soft: runs, hard: hard.max(runs + soft * PACED_RUNS_FACTOR) };
        FlowOptions { level0_runs, floor_bytes, ..self }
    }

    /// The limits of the backlog where a byte of users' writes stands for so much work.
    fn backlog(&self, work_per_written_byte: f64) -> Limits {
        let Limits { soft, hard } = self.backlog_bytes;
        let floor = self.floor_bytes / work_per_written_byte;
        Limits { soft: soft.max(floor), hard: hard.max(floor * (hard / soft)) }
    }

    /// The limits of obsolete space beside so many settled bytes. A small database may have more
    /// for its size: the runs that level 0 needs for its work do not shrink with it.
    fn space(&self, settled_bytes: f64) -> Limits {
        let hard = settled_bytes * self.space_slack;
        let floor = self.floor_bytes.min(settled_bytes * SPACE_FLOOR_PART);
        Limits {
            soft: (hard * SPACE_SOFT_PART).max(self.space_bytes_min.soft).max(floor),
            hard: hard.max(self.space_bytes_min.hard).max(floor * SPACE_FLOOR_HARD),
        }
    }
}

/// The debts as the database sees them, without regard to jobs in progress.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Debt {
    /// Bytes in active and immutable memtables.
    pub memtable_bytes: u64,
    /// Runs in level 0 (of the family that has most).
    pub level0_runs: usize,
    /// Stored bytes in level 0.
    pub level0_bytes: u64,
    /// See [`super::levels::LevelTargets::pending_compaction_bytes`].
    pub pending_compaction_bytes: u64,
    /// See [`super::levels::LevelTargets::work_per_flushed_byte`]; at least 1.
    pub work_per_flushed_byte: f64,
    /// Bytes that flushes write per byte of users' writes; 1 if unknown.
    pub flushed_per_written_byte: f64,
    /// Stored bytes above the last level and beyond the targets.
    pub excess_bytes: u64,
    /// All other stored bytes.
    pub settled_bytes: u64,
    /// What share of the entries written make an older one obsolete, from 0 to 1.
    pub obsolete_share: f64,
}

impl Debt {
    /// Adds what there is to be done in a tree of levels. A tree in which nothing is due owes
    /// nothing: writers would wait for what nobody is about to do.
    pub fn add_tree(&mut self, version: &Version, targets: &LevelTargets) {
        let sizes = level_sizes(version);
        let runs = version.level(0).len();
        let is_due = targets.is_due(runs, &sizes);
        let excess_bytes = if is_due { targets.excess_bytes(&sizes) } else { 0 };
        if is_due {
            self.pending_compaction_bytes += targets.pending_compaction_bytes(&sizes);
        }
        self.level0_runs = self.level0_runs.max(runs);
        self.level0_bytes += sizes.first().copied().unwrap_or(0);
        self.work_per_flushed_byte =
            self.work_per_flushed_byte.max(targets.work_per_flushed_byte(&sizes));
        self.excess_bytes += excess_bytes;
        self.settled_bytes += sizes.iter().sum::<u64>().saturating_sub(excess_bytes);
    }

    /// Bytes that compactions rewrite for each byte of users' writes.
    fn work_per_written_byte(&self) -> f64 {
        self.work_per_flushed_byte.max(1.0) * self.flushed_per_written()
    }

    fn flushed_per_written(&self) -> f64 {
        if self.flushed_per_written_byte > 0.0 { self.flushed_per_written_byte } else { 1.0 }
    }
}

/// What makes a debt smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drain {
    /// A flush; counted in bytes of memtables.
    Flush = 0,
    /// A compaction from level 0; counted in stored bytes of level 0 that it has read.
    Level0 = 1,
    /// Any compaction, those from level 0 too; counted in bytes read.
    Compaction = 2,
}

const DRAIN_COUNT: usize = 3;
const DEBT_COUNT: usize = 4;

/// What drains each debt, and what a delay for its sake is called.
const DEBTS: [(Drain, DelayCause); DEBT_COUNT] = [
    (Drain::Flush, DelayCause::Memtable),
    (Drain::Level0, DelayCause::Level0),
    (Drain::Compaction, DelayCause::PendingCompaction),
    (Drain::Compaction, DelayCause::Space),
];

/// The answer to a writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Write now; the bytes have been counted.
    Go,
    /// Sleep for so long, then ask again. Nothing has been counted.
    Delay {
        /// Microseconds, at most [`DELAY_US_MAX`].
        us: u64,
        /// The debt that is the reason.
        cause: DelayCause,
    },
    /// Wait until [`FlowController::load`] is less than full, then ask again. Nothing has been
    /// counted.
    Stop(DelayCause),
}

/// Pressures up to here slow nobody to speak of.
pub const PRESSURE_NOTABLE: f64 = 0.01;

/// What debts do to writers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Load {
    /// All are below their soft limits.
    Free = 0,
    /// One is over its soft limit: writers are slowed.
    Pressed = 1,
    /// One has come to its hard limit: writers are stopped.
    Full = 2,
}

/// Bytes per time of draining, an average that forgets, and the progress of running jobs.
#[derive(Clone, Copy)]
struct DrainMeter {
    running: u32,
    /// Whether a debt that it drains is above its soft limit.
    is_due: bool,
    last_us: u64,
    bytes: f64,
    busy_us: f64,
    /// Time in which there was something to drain, since the database was opened.
    age_us: f64,
    /// Bytes that jobs have drained which have not ended.
    progress_bytes: u64,
}

impl DrainMeter {
    /// As if it had drained at that rate for a moment.
    fn new(bytes_per_second: f64, now_us: u64) -> Self {
        DrainMeter {
            running: 0,
            is_due: false,
            last_us: now_us,
            bytes: bytes_per_second * RATE_GUESS_US / 1e6,
            busy_us: RATE_GUESS_US,
            age_us: 0.0,
            progress_bytes: 0,
        }
    }

    fn advance(&mut self, now_us: u64) {
        let passed_us = now_us.saturating_sub(self.last_us) as f64;
        self.last_us = self.last_us.max(now_us);
        if self.running > 0 || self.is_due {
            self.age_us += passed_us;
            let memory_us =
                (self.age_us * RATE_MEMORY_SHARE).clamp(RATE_MEMORY_US_MIN, RATE_MEMORY_US_MAX);
            let kept = (-passed_us / memory_us).exp();
            self.bytes *= kept;
            self.busy_us = self.busy_us * kept + memory_us * (1.0 - kept);
        }
    }

    fn bytes_per_second(&self) -> f64 {
        self.bytes / self.busy_us.max(1.0) * 1e6
    }
}

struct State {
    options: FlowOptions,
    debt: Debt,
    drains: [DrainMeter; DRAIN_COUNT],
    pressures: [f64; DEBT_COUNT],
    /// Bytes per second that may be written, infinite without pressure, and why.
    rate: (f64, DelayCause),
    /// What writers have written beyond the rate; negative for what they may catch up on.
    owed_bytes: f64,
    /// Writes that were admitted since the last delay.
    writes_since_delay: u64,
    last_us: u64,
    /// What `room` was at the last update.
    room_start: i64,
}

/// Decides how fast may be written. One for a database.
pub struct FlowController {
    state: Mutex<State>,
    /// Bytes that may be written before anybody has to look closer.
    room: AtomicI64,
}

impl FlowController {
    /// No debt yet.
    pub fn new(options: FlowOptions, now_us: u64) -> Self {
        let state = State {
            options,
            debt: Debt::default(),
            drains: [DrainMeter::new(options.initial_bytes_per_second, now_us); DRAIN_COUNT],
            pressures: [0.0; DEBT_COUNT],
            rate: (f64::INFINITY, DelayCause::Memtable),
            owed_bytes: 0.0,
            writes_since_delay: 0,
            last_us: now_us,
            room_start: 0,
        };
        let controller = FlowController { state: Mutex::new(state), room: AtomicI64::new(0) };
        controller.update(Debt::default(), now_us);
        controller
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// The highest of the pressures, from 0 to 1.
    pub fn pressure(&self) -> f64 {
        self.lock().pressures.iter().fold(0.0, |highest, pressure| pressure.max(highest))
    }

    /// What the debts do to writers as they are now, smoothing aside.
    pub fn load(&self) -> Load {
        let state = self.lock();
        let admitted_bytes = self.admitted_bytes(&state);
        if state.stop(admitted_bytes).is_some() {
            return Load::Full;
        }
        match state.presses(state.debts(admitted_bytes)) {
            true => Load::Pressed,
            false => Load::Free,
        }
    }

    /// Tells the debts as they are now: after a change of memtables or of the version.
    pub fn update(&self, debt: Debt, now_us: u64) {
        self.update_locked(&mut self.lock(), debt, now_us);
    }

    fn update_locked(&self, state: &mut State, debt: Debt, now_us: u64) {
        state.advance(self.admitted_bytes(state), now_us);
        state.debt = debt;
        state.rate = state.tightest_rate();
        state.room_start = state.room_bytes();
        self.room.store(state.room_start, Relaxed);
    }

    /// Bytes written since the last update.
    fn admitted_bytes(&self, state: &State) -> u64 {
        u64::try_from(state.room_start.saturating_sub(self.room.load(Relaxed))).unwrap_or(0)
    }

    /// A flush or compaction starts.
    pub fn drain_begins(&self, drain: Drain, now_us: u64) {
        let meter = &mut self.lock().drains[drain as usize];
        meter.advance(now_us);
        meter.running += 1;
    }

    /// A running job has drained so many bytes more; once per step.
    pub fn drained(&self, drain: Drain, bytes: u64, now_us: u64) {
        let meter = &mut self.lock().drains[drain as usize];
        meter.advance(now_us);
        meter.bytes += bytes as f64;
        meter.progress_bytes = meter.progress_bytes.saturating_add(bytes);
    }

    /// A job has ended that drained `job_bytes` in all, and these are the debts without it. If
    /// it failed, its work was for nothing and the debts are what they were.
    pub fn drain_ends(&self, drain: Drain, job_bytes: u64, debt: Debt, now_us: u64) {
        let mut state = self.lock();
        let meter = &mut state.drains[drain as usize];
        meter.advance(now_us);
        meter.running = meter.running.saturating_sub(1);
        meter.progress_bytes = meter.progress_bytes.saturating_sub(job_bytes);
        self.update_locked(&mut state, debt, now_us);
    }

    /// Asks whether `bytes` may be written now. One atomic operation where there is no debt.
    #[inline]
    pub fn admit(&self, bytes: u64, now_us: u64) -> Admission {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        if self.room.load(Relaxed) > bytes && self.room.fetch_sub(bytes, Relaxed) > bytes {
            return Admission::Go;
        }
        self.admit_slowly(bytes as u64, now_us)
    }

    #[cold]
    fn admit_slowly(&self, bytes: u64, now_us: u64) -> Admission {
        let mut state = self.lock();
        let admitted_bytes = self.admitted_bytes(&state);
        let admission = state.admit(admitted_bytes, bytes, now_us);
        if admission == Admission::Go {
            self.room.fetch_sub(i64::try_from(bytes).unwrap_or(i64::MAX), Relaxed);
        }
        admission
    }
}

impl State {
    /// The debts, less what running jobs have done. They give back space when they end.
    fn debts(&self, admitted_bytes: u64) -> [f64; DEBT_COUNT] {
        let progress = |drain: Drain| self.drains[drain as usize].progress_bytes;
        let memtable = self.debt.memtable_bytes.saturating_add(admitted_bytes);
        let memtable_bytes = memtable.saturating_sub(progress(Drain::Flush));
        let level0_bytes = self.debt.level0_bytes.max(1) as f64;
        let level0_left = (1.0 - progress(Drain::Level0) as f64 / level0_bytes).max(0.0);
        let pending = self.debt.pending_compaction_bytes;
        let pending_bytes = pending.saturating_sub(progress(Drain::Compaction)) as f64;
        [
            memtable_bytes as f64,
            self.debt.level0_runs as f64 * level0_left,
            pending_bytes / self.debt.work_per_written_byte(),
            self.debt.excess_bytes as f64 * self.debt.obsolete_share.clamp(0.0, 1.0),
        ]
    }

    fn limits(&self) -> [Limits; DEBT_COUNT] {
        let options = &self.options;
        let space = options.space(self.debt.settled_bytes as f64);
        let backlog = options.backlog(self.debt.work_per_written_byte());
        [options.memtable_bytes, options.level0_runs, backlog, space]
    }

    /// Whether one of these debts is over its soft limit.
    fn presses(&self, debts: [f64; DEBT_COUNT]) -> bool {
        self.limits().iter().zip(debts).any(|(limits, debt)| debt > limits.soft)
    }

    /// Bytes that may be written without looking closer: none while anything presses.
    fn room_bytes(&self) -> i64 {
        let debts = self.debts(0);
        if self.presses(debts) || self.pressures.iter().any(|pressure| *pressure > PRESSURE_NOTABLE)
        {
            return 0;
        }
        (self.options.memtable_bytes.soft - debts[Drain::Flush as usize]) as i64
    }

    /// Lets time pass: pressures follow their debts, what is owed is paid.
    fn advance(&mut self, admitted_bytes: u64, now_us: u64) {
        let passed_us = now_us.saturating_sub(self.last_us) as f64;
        self.last_us = self.last_us.max(now_us);
        let rate = self.rate.0;
        let paid_bytes = rate * passed_us / 1e6;
        self.owed_bytes = (self.owed_bytes - paid_bytes).max(-rate * BURST_US / 1e6);
        if !self.owed_bytes.is_finite() {
            self.owed_bytes = 0.0;
        }
        let debts = self.debts(admitted_bytes);
        let limits = self.limits();
        for (index, pressure) in self.pressures.iter_mut().enumerate() {
            let gained = 1.0 - (-passed_us / SMOOTHING_US[index]).exp();
            *pressure += (limits[index].pressure(debts[index]) - *pressure) * gained;
        }
        for (index, meter) in self.drains.iter_mut().enumerate() {
            meter.advance(now_us);
            let of_meter = |debt: &usize| DEBTS[*debt].0 as usize == index;
            meter.is_due = (0..DEBT_COUNT).filter(of_meter).any(|d| debts[d] > limits[d].soft);
        }
        self.rate = self.tightest_rate();
    }

    fn tightest_rate(&self) -> (f64, DelayCause) {
        let written_per_drained =
            [1.0, 1.0 / self.debt.flushed_per_written(), 1.0 / self.debt.work_per_written_byte()];
        let mut tightest = (f64::INFINITY, DelayCause::Memtable);
        for (debt, (drain, cause)) in DEBTS.into_iter().enumerate() {
            let pressure = self.pressures[debt];
            if pressure <= 0.0 {
                continue;
            }
            let index = drain as usize;
            let drained = self.drains[index].bytes_per_second() * written_per_drained[index];
            let pace_min = if cause == DelayCause::Space { SPACE_PACE_MIN } else { 0.0 };
            let pace = pace(pressure, PACE_EXPONENTS[debt]).max(pace_min);
            let rate = (drained * pace).max(BYTES_PER_SECOND_MIN);
            if rate < tightest.0 {
                tightest = (rate, cause);
            }
        }
        tightest
    }

    /// The first debt at its hard limit, space aside: too much of it hurts nobody at once. Memory
    /// counts in full until a flush has given it back.
    fn stop(&self, admitted_bytes: u64) -> Option<DelayCause> {
        let mut debts = self.debts(admitted_bytes);
        let memtable = self.debt.memtable_bytes.saturating_add(admitted_bytes);
        debts[Drain::Flush as usize] = memtable as f64;
        let mut checked = self.limits().into_iter().zip(debts).zip(DEBTS);
        checked
            .find(|((limits, debt), (_, cause))| {
                *debt >= limits.hard && *cause != DelayCause::Space
            })
            .map(|(_, (_, cause))| cause)
    }

    fn admit(&mut self, admitted_bytes: u64, bytes: u64, now_us: u64) -> Admission {
        if now_us >= self.last_us + RATE_STRIDE_US {
            self.advance(admitted_bytes, now_us);
        }
        if let Some(cause) = self.stop(admitted_bytes) {
            return Admission::Stop(cause);
        }
        let (rate, cause) = self.rate;
        let owed_us = (self.owed_bytes / rate * 1e6) as u64;
        let due_us = match self.writes_since_delay < WRITES_BETWEEN_DELAYS {
            true => DELAY_US_LONG,
            false => DELAY_US_MIN,
        };
        if owed_us >= due_us {
            self.writes_since_delay = 0;
            return Admission::Delay { us: owed_us.min(DELAY_US_MAX), cause };
        }
        self.writes_since_delay += 1;
        if rate.is_finite() {
            self.owed_bytes += bytes as f64;
        }
        Admission::Go
    }
}
