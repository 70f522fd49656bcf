//! Memory and work as functions of the length of a history.
//!
//! 1. A history of one kind of operations is made with n of them and with 4n: the same operations,
//!    more of them. Kinds are those that a store can be slow at: overlapping range deletes, many
//!    snapshots, versions, families, cursors, long keys, deletes, ingests, large batches; each
//!    with and without reads and flushes in between. At its end the database is closed, opened
//!    again from its log, flushed and compacted.
//! 2. Counted are bytes that were asked of the allocator, the most bytes that were held at once,
//!    and the processor's time of the one thread there is. Four times the history may cost a
//!    little more than four times as much (a deeper tree), and no more; sixteen times as much is
//!    what quadratic work costs.
//! 3. Time is the one figure with noise. It is judged only where it is long, and measured again
//!    before it is a finding: the shortest of several runs counts.
//!
//! Where the counting allocator is not installed, only time is judged.

mod history;
mod kinds;

use crate::check::{Check, Finding, Goal, Length, Tally};
use history::{BUDGET_BYTES, Figures, History};
use kinds::KINDS;

/// The longer history is so many times as long.
const LONGER: u64 = 4;

/// Each kind with and without reads, and with and without flushes.
const VARIANTS: u64 = 4;

/// The long form has larger histories too: so many times the short form's.
const SIZES: [u64; 2] = [1, 4];

/// An operation of the longer history may take this many percent of one of the shorter.
const PERCENT_MAX: u64 = 250;

/// Processor time of the longer history that is too short to be judged, in nanoseconds.
const CPU_NS_MIN: u64 = 60_000_000;

/// Processor time is measured so often before it is a finding.
const CPU_RUNS: usize = 4;

/// A history is given up that takes so many times as long as it may on average, and this much more.
const GIVEN_UP_FACTOR: u64 = 8;
const GIVEN_UP_NS: u64 = 2_000_000_000;

/// The one finding that may be noise.
const SLOWER: &str = "processor time grows faster than the history";

/// Memory beyond the budget that says nothing, in bytes: a few buffers and files.
const BEYOND_SLACK_BYTES: u64 = 8 << 20;

/// The check; see the module.
pub struct Growth;

/// What a case does.
struct Case {
    history: History,
    operations: u64,
}

impl Case {
    fn new(case: u64) -> Case {
        let kinds = KINDS.len() as u64;
        let variant = case / kinds % VARIANTS;
        let size = SIZES[(case / kinds / VARIANTS) as usize % SIZES.len()];
        let kind = &KINDS[(case % kinds) as usize];
        let history = History { kind, has_reads: variant & 1 != 0, has_flushes: variant & 2 != 0 };
        Case { history, operations: kind.operations * size }
    }

    /// Makes both histories once. The longer one is given up where it is slow beyond all doubt.
    fn measure(&self) -> Result<(Figures, Figures), String> {
        let shorter = self.history.make(self.operations, u64::MAX)?;
        let cpu_ns_max = shorter.cpu_ns.saturating_mul(LONGER * GIVEN_UP_FACTOR) + GIVEN_UP_NS;
        let longer = self.history.make(self.operations * LONGER, cpu_ns_max);
        let longer = longer.map_err(|wrong| {
            format!("{} operations took {shorter}, of four times as many {wrong}", self.operations)
        })?;
        Ok((shorter, longer))
    }

    fn run(&self, tally: &mut Tally) -> Result<(), String> {
        let (mut shorter, mut longer) = self.measure()?;
        for _ in 1..CPU_RUNS {
            if judge(&shorter, &longer) != Some(SLOWER) {
                break;
            }
            let again = self.measure()?;
            shorter.cpu_ns = shorter.cpu_ns.min(again.0.cpu_ns);
            longer.cpu_ns = longer.cpu_ns.min(again.1.cpu_ns);
        }
        tally.count("operations", self.operations * (1 + LONGER));
        tally.count("bytes asked for", shorter.asked_bytes + longer.asked_bytes);
        match judge(&shorter, &longer) {
            None => Ok(()),
            Some(what) => Err(format!(
                "{what}: {} operations took {shorter}, {} took {longer}",
                self.operations,
                self.operations * LONGER
            )),
        }
    }
}

/// Whether `longer` is more than the allowed multiple of `shorter`.
fn is_superlinear(shorter: u64, longer: u64) -> bool {
    longer.saturating_mul(100) > shorter.saturating_mul(LONGER * PERCENT_MAX)
}

fn is_slower(shorter: &Figures, longer: &Figures) -> bool {
    longer.cpu_ns >= CPU_NS_MIN && is_superlinear(shorter.cpu_ns, longer.cpu_ns)
}

/// What may be held at once by a history that is longer than one that held so much. The budget's part does not
/// grow with the history. A history that held less than the budget had not filled it: all of that may grow, for
/// the files are in memory too.
fn peak_bytes_allowed(shorter: u64) -> u64 {
    let grown = match shorter.checked_sub(BUDGET_BYTES) {
        Some(beyond) => BUDGET_BYTES.saturating_add(beyond.saturating_mul(LONGER)),
        None => shorter.saturating_mul(LONGER),
    };
    grown.saturating_add(BEYOND_SLACK_BYTES)
}

/// What grows faster than the history, if anything does.
fn judge(shorter: &Figures, longer: &Figures) -> Option<&'static str> {
    if longer.peak_bytes > peak_bytes_allowed(shorter.peak_bytes) {
        return Some("memory beyond the budget grows faster than the history");
    }
    if is_superlinear(shorter.asked_bytes, longer.asked_bytes) {
        return Some("bytes asked for grow faster than the history");
    }
    is_slower(shorter, longer).then_some(SLOWER)
}

impl Check for Growth {
    fn name(&self) -> &'static str {
        "growth"
    }

    fn about(&self) -> &'static str {
        "a history four times as long takes about four times the memory and work, of any kind"
    }

    fn cases(&self) -> Option<u64> {
        Some(KINDS.len() as u64 * VARIANTS * SIZES.len() as u64)
    }

    fn goal(&self, length: Length) -> Goal {
        match length {
            Length::Short => Goal::Cases(KINDS.len() as u64 * VARIANTS),
            Length::Long => Goal::Cases(self.cases().unwrap_or(0)),
        }
    }

    fn run_case(&self, case: u64, tally: &mut Tally) -> Result<(), Finding> {
        let one = Case::new(case);
        let found = one.run(tally);
        found.map_err(|what| Finding::new(self, case, format!("{}: {what}", one.history.name())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_linear_passes_and_what_is_quadratic_does_not() {
        let budget = BUDGET_BYTES;
        let figures = |peak_bytes, asked_bytes, cpu_ns| Figures { peak_bytes, asked_bytes, cpu_ns };
        let shorter = figures(budget, 1_000_000, 100_000_000);
        let linear = figures(budget + (7 << 20), 4_000_000, 400_000_000);
        assert_eq!(judge(&shorter, &linear), None);
        let judged = |longer: Figures| judge(&shorter, &longer).unwrap_or("nothing");
        assert!(judged(figures(budget + (9 << 20), 1, 1)).contains("memory"));
        assert!(judged(figures(budget, 16_000_000, 1)).contains("asked for"));
        assert!(judged(figures(budget, 1, 1_600_000_000)).contains("time"));
        // Most of what a short history holds is its files.
        let small = figures(budget / 2, 1, 1);
        assert_eq!(judge(&small, &figures(budget * 2, 1, 1)), None);
        let quadratic = judge(&small, &figures(budget * 8, 1, 1));
        assert!(quadratic.is_some_and(|what| what.contains("memory")));
        assert_eq!(judge(&figures(0, 0, 1_000), &figures(0, 0, 50_000_000)), None, "too short");
    }

    #[test]
    fn cases_are_all_kinds_in_all_variants() {
        let names: std::collections::BTreeSet<String> = (0..Growth.cases().unwrap())
            .map(|case| {
                format!("{} {}", Case::new(case).history.name(), Case::new(case).operations)
            })
            .collect();
        assert_eq!(names.len() as u64, Growth.cases().unwrap());
    }
}
