//! Turns clock readings into booked CPU time: steps exactly, users' calls by samples.
//!
//! A reading of the thread's CPU clock costs about half a microsecond, and as much again in what
//! the system call leaves cold behind it; a reading of the tick counter costs some nanoseconds. A
//! step reads the former once, at its end (the end of one step is the start of the next), and is
//! split inside by the latter. Users' calls are sampled twice over: how many there are, and how long the
//! short ones take, by ticks; what a long one takes, which may have waited, by the CPU clock.

use super::ledger::Ledger;
use super::names::{Cause, Counter};
use super::{PART_COUNT, Part, WorkMeter};
use crate::base::{Clock, Level};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// One user call in so many is timed by ticks, and booked if it was short. What is booked for
/// `calls` calls whose times have the coefficient of variation `v` has a standard error of
/// `v * sqrt(64 / calls)`: 1 % for 640,000 calls that vary by their own mean.
pub const SHORT_PERIOD: u64 = 64;

/// One user call in so many is timed by the CPU clock; if it was long, it tells what long calls take. It does not
/// tell how many there are: the system call that reads the clock makes a call long more often. With two
/// writers on a busy machine a quarter of these were long, of the others one in 400; taken as one in 1024,
/// they booked seven times the CPU that was spent.
pub const LONG_PERIOD: u64 = 1024;

/// Of the first so many user calls both samples read both clocks, so that what long calls take is known early.
const EARLY_CALLS: u64 = 1024;

/// A call that passes within this has not waited: a thread that had to give way comes back after
/// a millisecond or more. Its time is its CPU time.
pub const SHORT_NS: u64 = 50_000;

/// The number of the first call among those that samples are spread over. The first sample then
/// comes half a period late, so that a few calls stand for themselves as well as many do: from 0 on
/// the very first call would stand for 64.
const FIRST_NUMBER: u64 = 712;

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
            if *part_ticks == 0 {
                continue;
            }
            let share_ns = u128::from(cpu_ns) * u128::from(*part_ticks) / u128::from(whole);
            *part_ns = (share_ns as u64).min(left_ns);
            left_ns -= *part_ns;
        }
        parts_ns[PART_COUNT] = left_ns;
        Split { parts_ns, ns_per_tick: cpu_ns as f64 / whole as f64 }
    }
}

/// Which calls a sample is booked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timed {
    /// The one that was timed.
    Itself,
    /// [`SHORT_PERIOD`] calls: by its ticks if it was short, else by what long calls take.
    Counted,
    /// None: it tells what long calls take.
    Long,
}

/// A user call that is being timed.
#[derive(Debug)]
pub struct UserSample {
    cause: Cause,
    timed: Timed,
    /// Where the CPU clock was read.
    cpu_ns: Option<u64>,
    ticks: u64,
}

/// What long calls of one cause take, by those that the CPU clock timed. The newer half counts as much as
/// all before it.
#[derive(Debug, Default)]
pub(super) struct LongCalls {
    timed: AtomicU64,
    cpu_ns: AtomicU64,
    /// Counted calls that were long before any was timed.
    owed: AtomicU64,
}

impl LongCalls {
    /// Calls after which the older ones count half.
    const REMEMBERED: u64 = 256;

    /// Takes in a call that was timed. Gives how many counted ones were waiting for it.
    fn learn(&self, cpu_ns: u64) -> u64 {
        self.cpu_ns.fetch_add(cpu_ns, Relaxed);
        if self.timed.fetch_add(1, Relaxed) + 1 >= Self::REMEMBERED {
            // Threads may halve at once; the mean hardly changes by it.
            self.timed.store(Self::REMEMBERED / 2, Relaxed);
            self.cpu_ns.fetch_sub(self.cpu_ns.load(Relaxed) / 2, Relaxed);
        }
        self.owed.swap(0, Relaxed)
    }

    /// What a counted call takes; nothing, and it is owed, while none was timed.
    fn mean_ns(&self) -> Option<u64> {
        let mean_ns = self.cpu_ns.load(Relaxed).checked_div(self.timed.load(Relaxed));
        if mean_ns.is_none() {
            self.owed.fetch_add(1, Relaxed);
        }
        mean_ns
    }
}

impl Ledger {
    /// Times a call that is long enough to be timed every time; it stands for itself.
    pub fn time_call(&self, cause: Cause, clock: &dyn Clock) -> UserSample {
        let cpu_ns = Some(clock.thread_cpu_ns());
        UserSample { cause, timed: Timed::Itself, cpu_ns, ticks: clock.ticks() }
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

    /// Whether call `number` of a kind is timed, and by which clocks: spread so that no pattern of
    /// calls falls in step with the samples, and the same in every run.
    ///
    /// Ticks alone would count the time in which the thread was not running: one preempted sample
    /// then stood for a quarter of a second. The CPU clock alone costs a short call more than the
    /// call itself, and makes it look longer than it is.
    #[inline]
    pub fn sample(&self, number: u64, cause: Cause, clock: &dyn Clock) -> Option<UserSample> {
        let number = number.wrapping_add(FIRST_NUMBER);
        let spread = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let place = spread % LONG_PERIOD;
        if place > 1 && !place.is_multiple_of(SHORT_PERIOD) {
            return None;
        }
        Some(match place {
            1 => UserSample { timed: Timed::Long, ..self.time_call(cause, clock) },
            _ if number < FIRST_NUMBER + EARLY_CALLS => {
                UserSample { timed: Timed::Counted, ..self.time_call(cause, clock) }
            }
            _ => UserSample { cause, timed: Timed::Counted, cpu_ns: None, ticks: clock.ticks() },
        })
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
            // Before anything else: what follows is not the call's.
            let end_ticks = clock.ticks();
            self.book_user_call(sample, (cause, level), clock, end_ticks, &meter.take());
        }
    }

    /// Ends a user call that meters nothing: [`Ledger::end_user_call`] without a meter.
    #[inline]
    pub fn end_unmetered_call(&self, sample: Option<UserSample>, cause: Cause, clock: &dyn Clock) {
        if sample.is_some() {
            let end_ticks = clock.ticks();
            let meter = WorkMeter::default();
            self.book_user_call(sample, (cause, 0), clock, end_ticks, &meter);
        }
    }

    #[cold]
    fn book_user_call(
        &self,
        sample: Option<UserSample>,
        (cause, level): (Cause, Level),
        clock: &dyn Clock,
        end_ticks: u64,
        meter: &WorkMeter,
    ) {
        let ns_per_tick = self.ns_per_tick(clock.now_us(), end_ticks);
        if let Some(sample) = sample {
            let elapsed_ticks =
                end_ticks.saturating_sub(sample.ticks).saturating_sub(self.tick_read_ticks);
            // While the rate of the ticks is not known yet, in the first millisecond, no call is
            // taken for a short one.
            let passed_ns = ns_per_tick.map(|rate| (elapsed_ticks as f64 * rate) as u64);
            let short_ns = passed_ns.filter(|passed_ns| *passed_ns < SHORT_NS);
            // No more than passed between the ticks, which lie inside of both readings.
            let at_most_passed = |cpu_ns: u64| passed_ns.map_or(cpu_ns, |ns| ns.min(cpu_ns));
            let timed_ns = match short_ns {
                Some(_) if sample.timed != Timed::Itself => None,
                _ => sample.cpu_ns.map(|start_ns| {
                    let start_ns = start_ns + self.clock_read_ns;
                    at_most_passed(clock.thread_cpu_ns().saturating_sub(start_ns))
                }),
            };
            let long_calls = self.long_calls(sample.cause);
            let (cpu_ns, weight) = match (sample.timed, short_ns, timed_ns) {
                (Timed::Itself, _, timed_ns) => (timed_ns.unwrap_or(0), 1),
                (Timed::Counted, Some(passed_ns), _) => (passed_ns, SHORT_PERIOD),
                (Timed::Counted, None, Some(cpu_ns)) => {
                    (cpu_ns, (1 + long_calls.learn(cpu_ns)) * SHORT_PERIOD)
                }
                (Timed::Counted, None, None) => {
                    (at_most_passed(long_calls.mean_ns().unwrap_or(0)), SHORT_PERIOD)
                }
                (Timed::Long, None, Some(cpu_ns)) => {
                    (cpu_ns, long_calls.learn(cpu_ns) * SHORT_PERIOD)
                }
                (Timed::Long, _, _) => (0, 0),
            };
            let split = Split::by_ticks(&meter.ticks, cpu_ns, elapsed_ticks);
            self.book_parts(sample.cause, level, &split.parts_ns, weight);
        }
        self.book_codecs(cause, level, meter, ns_per_tick.unwrap_or(0.0));
    }
}
