//! Turns clock readings into booked CPU time: steps exactly, users' calls by samples.
//!
//! A reading of the thread's CPU clock costs about half a microsecond, a reading of the tick
//! counter some nanoseconds. A step reads the former once, at its end (the end of one step is the
//! start of the next), and is split inside by the latter. One user call in 256 is timed by both.

use super::ledger::Ledger;
use super::names::{Cause, Counter};
use super::{PART_COUNT, Part, WorkMeter};
use crate::base::{Clock, Level};

/// One user call in so many is timed. What is booked for `calls` calls whose times have the
/// coefficient of variation `v` has a standard error of `v * sqrt(256 / calls)`: 3 % for 300,000
/// calls that vary by their own mean.
pub const SAMPLE_PERIOD: u64 = 256;

/// What a finished step took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepCost {
    /// CPU time of the thread.
    pub cpu_ns: u64,
    /// Wall time.
    pub wall_us: u64,
}

/// The clocks of one thread at the end of its last step. Not shared between threads.
#[derive(Clone, Copy, Debug)]
pub struct StepClock {
    cpu_ns: u64,
    ticks: u64,
    now_us: u64,
}

impl StepClock {
    /// Starts here.
    pub fn start(clock: &dyn Clock) -> Self {
        let (now_us, ticks) = (clock.now_us(), clock.ticks());
        StepClock { cpu_ns: clock.thread_cpu_ns(), ticks, now_us }
    }

    /// Ends a step: books its CPU time under `cause` and `level`, split by what `meter` has seen,
    /// empties the meter, and records the step if it took a millisecond or more. The parts booked
    /// add up to the step's CPU time exactly. The next step starts here.
    pub fn finish(
        &mut self,
        clock: &dyn Clock,
        ledger: &Ledger,
        cause: Cause,
        level: Level,
        meter: &mut WorkMeter,
    ) -> StepCost {
        let end = StepClock::start(clock);
        let cpu_ns = end.cpu_ns.saturating_sub(self.cpu_ns);
        let elapsed_ticks = end.ticks.saturating_sub(self.ticks);
        let wall_us = end.now_us.saturating_sub(self.now_us);
        *self = end;
        let meter = meter.take();
        let rate = ledger.ns_per_tick(end.now_us, end.ticks);
        let split = Split::of_step(&meter, cpu_ns, elapsed_ticks, rate);
        ledger.book_parts(cause, level, &split.parts_ns, 1);
        ledger.book_codecs(cause, level, &meter, split.ns_per_tick);
        ledger.book_unit(cause, level, wall_us, cpu_ns / 1_000, end.now_us);
        StepCost { cpu_ns, wall_us }
    }
}

/// CPU time divided over the parts, with the rate that was used.
struct Split {
    parts_ns: [u64; PART_COUNT + 1],
    ns_per_tick: f64,
}

impl Split {
    /// Splits a step. Ticks run on while the thread waits, CPU time does not; file calls are where
    /// a step waits, so the time off the CPU is taken from them first.
    fn of_step(
        meter: &WorkMeter,
        cpu_ns: u64,
        elapsed_ticks: u64,
        ns_per_tick: Option<f64>,
    ) -> Self {
        let mut ticks = meter.ticks;
        let off_cpu_ticks = match ns_per_tick {
            Some(rate) => elapsed_ticks.saturating_sub((cpu_ns as f64 / rate) as u64),
            None => 0,
        };
        let io = &mut ticks[Part::Io as usize];
        let waited_ticks = off_cpu_ticks.min(*io);
        *io -= waited_ticks;
        Split::by_ticks(&ticks, cpu_ns, elapsed_ticks - waited_ticks)
    }

    /// Splits in proportion to ticks; what no part claims is the merge.
    fn by_ticks(ticks: &[u64; PART_COUNT], cpu_ns: u64, elapsed_ticks: u64) -> Self {
        // Clocks are not read at one instant: never give out more than there is.
        let claimed = ticks.iter().fold(0, |sum: u64, part| sum.saturating_add(*part));
        let whole = elapsed_ticks.max(claimed).max(1);
        let mut parts_ns = [0; PART_COUNT + 1];
        let mut left_ns = cpu_ns;
        for (part_ns, part_ticks) in parts_ns.iter_mut().zip(ticks) {
            let share_ns = u128::from(cpu_ns) * u128::from(*part_ticks) / u128::from(whole);
            *part_ns = (share_ns as u64).min(left_ns);
            left_ns -= *part_ns;
        }
        parts_ns[PART_COUNT] = left_ns;
        Split { parts_ns, ns_per_tick: cpu_ns as f64 / whole as f64 }
    }
}

/// A user call that is being timed.
#[derive(Debug)]
pub struct UserSample {
    cause: Cause,
    /// So many calls it stands for.
    weight: u64,
    cpu_ns: u64,
    ticks: u64,
}

impl Ledger {
    /// Times a call that is long enough to be timed every time; it stands for itself.
    pub fn time_call(&self, cause: Cause, clock: &dyn Clock) -> UserSample {
        UserSample { cause, weight: 1, cpu_ns: clock.thread_cpu_ns(), ticks: clock.ticks() }
    }

    /// Counts a user call under `counter` and decides whether it is timed.
    #[inline]
    pub fn begin_user_call(
        &self,
        counter: Counter,
        cause: Cause,
        clock: &dyn Clock,
    ) -> Option<UserSample> {
        self.sample(self.count(counter, 1), cause, clock)
    }

    /// Whether call `number` of a kind is timed: 1 in 256, spread so that no pattern of calls
    /// falls in step with the samples, and the same in every run.
    ///
    /// A timed call reads the thread's CPU clock twice, which is about 5 ns for each of the 256.
    /// Ticks alone would be cheaper, but count the time in which the thread was not running: one
    /// preempted sample then stands for a quarter of a second.
    #[inline]
    pub fn sample(&self, number: u64, cause: Cause, clock: &dyn Clock) -> Option<UserSample> {
        let spread = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15)) >> 32;
        if !spread.is_multiple_of(SAMPLE_PERIOD) {
            return None;
        }
        Some(UserSample { weight: SAMPLE_PERIOD, ..self.time_call(cause, clock) })
    }

    /// Ends a user call. A timed one books the CPU time that it stands for, split by the meter.
    /// What went through the codecs is booked for every call, not only for timed ones. Empties
    /// the meter. `level` is where the call ended, or 0.
    #[inline]
    pub fn end_user_call(
        &self,
        sample: Option<UserSample>,
        cause: Cause,
        level: Level,
        clock: &dyn Clock,
        meter: &mut WorkMeter,
    ) {
        let metered = meter.reads != 0 || meter.ticks.iter().any(|ticks| *ticks != 0);
        if sample.is_some() || metered {
            self.book_user_call(sample, cause, level, clock, &meter.take());
        }
    }

    #[cold]
    fn book_user_call(
        &self,
        sample: Option<UserSample>,
        cause: Cause,
        level: Level,
        clock: &dyn Clock,
        meter: &WorkMeter,
    ) {
        let end_ticks = clock.ticks();
        let ns_per_tick = self.ns_per_tick(clock.now_us(), end_ticks);
        if let Some(sample) = sample {
            let elapsed_ticks = end_ticks.saturating_sub(sample.ticks);
            let start_ns = sample.cpu_ns + self.clock_read_ns;
            let cpu_ns = clock.thread_cpu_ns().saturating_sub(start_ns);
            // Between other work a reading of the CPU clock costs more than by itself, as much as
            // a short call. A call cannot have used more CPU time than passed between the ticks.
            let passed_ns = ns_per_tick.map(|rate| (elapsed_ticks as f64 * rate) as u64);
            let cpu_ns = passed_ns.map_or(cpu_ns, |passed_ns| cpu_ns.min(passed_ns));
            let split = Split::by_ticks(&meter.ticks, cpu_ns, elapsed_ticks);
            self.book_parts(sample.cause, level, &split.parts_ns, sample.weight);
        }
        self.book_codecs(cause, level, meter, ns_per_tick.unwrap_or(0.0));
    }
}
