//! What a check is, what it counts, and what it finds.
//!
//! A case is a function of its number alone: run again, in whatever process and order, it does
//! the same and finds the same. Checks run cases from any number of threads at once.

use std::any::Any;
use std::cell::Cell;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::panic::{self, AssertUnwindSafe, catch_unwind};

/// How much of a check is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// What is run with the other tests.
    Short,
    /// What is run before a release.
    Long,
}

/// When a check has done enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// After so many cases.
    Cases(u64),
    /// Once this counter of the tally, or the number of distinct ones of that name, is so high.
    Count(&'static str, u64),
}

/// One way of trying to make the engine lose data.
pub trait Check: Sync {
    /// One word, by which it is chosen.
    fn name(&self) -> &'static str;

    /// One line for people: what is tried, and what must hold.
    fn about(&self) -> &'static str;

    /// The number of cases, numbered from 0; `None` if any number is a case (a seed).
    fn cases(&self) -> Option<u64>;

    /// What is enough; all cases where they are numbered.
    fn goal(&self, length: Length) -> Goal {
        Goal::Cases(self.cases().unwrap_or(match length {
            Length::Short => 100,
            Length::Long => 10_000,
        }))
    }

    /// Runs one case and counts what it did.
    ///
    /// # Errors
    /// What it found. A panic is a finding too; [`run_case`] makes it one.
    fn run_case(&self, case: u64, tally: &mut Tally) -> Result<(), Finding>;

    /// The figures that make a table, in Markdown: those with a colon in their names. Empty where
    /// there is none.
    fn table(&self, _tally: &Tally) -> String {
        String::new()
    }

    /// The same finding with the shortest script that shows it, where the check can find one.
    /// Takes many runs of the case.
    fn shrink(&self, finding: Finding) -> Finding {
        finding
    }
}

/// Runs one case; a panic, of the engine or of a comparison, is a finding.
///
/// # Errors
/// What was found.
pub fn run_case(check: &dyn Check, case: u64, tally: &mut Tally) -> Result<(), Finding> {
    let run = AssertUnwindSafe(|| check.run_case(case, &mut *tally));
    let outcome = catch_unwind(run).unwrap_or_else(|panic| {
        Err(Finding::new(check, case, format!("a panic: {}", panic_text(&*panic))))
    });
    tally.count("cases", 1);
    outcome
}

thread_local! {
    /// Where the last panic of this thread was.
    static PANIC_PLACE: Cell<String> = const { Cell::new(String::new()) };
}

/// From now on panics of this process are noted with their place for findings, and not printed.
pub fn note_panics() {
    panic::set_hook(Box::new(|info| {
        let place = info.location().map(|place| format!(", at {place}"));
        PANIC_PLACE.set(place.unwrap_or_default());
    }));
}

/// What a panic said, and where, if that was noted.
pub fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_default() + &PANIC_PLACE.take()
}

/// What cases did: named counters ("operations", "crash states") and named sets of fingerprints
/// ("distinct images"), of which the size counts.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    counters: BTreeMap<&'static str, u64>,
    distinct: BTreeMap<&'static str, HashSet<u64>>,
}

impl Tally {
    /// Adds to a counter.
    pub fn count(&mut self, name: &'static str, by: u64) {
        *self.counters.entry(name).or_default() += by;
    }

    /// Notes a fingerprint.
    pub fn distinct(&mut self, name: &'static str, digest: u64) {
        self.distinct.entry(name).or_default().insert(digest);
    }

    /// A counter, or the number of distinct fingerprints of that name; 0 if there is neither.
    pub fn get(&self, name: &str) -> u64 {
        let distinct = || self.distinct.get(name).map(|set| set.len() as u64);
        self.counters.get(name).copied().or_else(distinct).unwrap_or(0)
    }

    /// All figures by name: counters, then distinct ones.
    pub fn figures(&self) -> Vec<(&'static str, u64)> {
        let counters = self.counters.iter().map(|(name, count)| (*name, *count));
        let distinct = self.distinct.iter().map(|(name, set)| (*name, set.len() as u64));
        counters.chain(distinct).collect()
    }

    /// Adds what another tally counted.
    pub fn merge(&mut self, other: Tally) {
        for (name, count) in other.counters {
            self.count(name, count);
        }
        for (name, set) in other.distinct {
            self.distinct.entry(name).or_default().extend(set);
        }
    }
}

/// Something that must not be.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The check that found it.
    pub check: &'static str,
    /// The case that it was found in.
    pub case: u64,
    /// What was found.
    pub what: String,
    /// The shortest script known that shows it, a line per step; empty where there is none.
    pub script: Vec<String>,
}

impl Finding {
    /// What was found in a case.
    pub fn new(check: &dyn Check, case: u64, what: impl Into<String>) -> Self {
        Finding { check: check.name(), case, what: what.into(), script: Vec::new() }
    }

    /// The same with a script that shows it.
    #[must_use]
    pub fn with_script(self, script: Vec<String>) -> Self {
        Finding { script, ..self }
    }

    /// The command that shows it again.
    pub fn replay(&self) -> String {
        format!("lithify-sim replay {} {}", self.check, self.case)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "FOUND by {} in case {}: {}", self.check, self.case, self.what)?;
        for (number, line) in self.script.iter().enumerate() {
            writeln!(f, "  {:>3} {line}", number + 1)?;
        }
        write!(f, "  again: {}", self.replay())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Odd;

    impl Check for Odd {
        fn name(&self) -> &'static str {
            "odd"
        }

        fn about(&self) -> &'static str {
            "finds odd numbers, and panics at 4"
        }

        fn cases(&self) -> Option<u64> {
            Some(5)
        }

        fn run_case(&self, case: u64, tally: &mut Tally) -> Result<(), Finding> {
            tally.count("looked at", 1);
            tally.distinct("remainders", case % 2);
            assert_ne!(case, 4, "four");
            match case % 2 {
                0 => Ok(()),
                _ => Err(Finding::new(self, case, "odd").with_script(vec!["look".into()])),
            }
        }
    }

    #[test]
    fn findings_and_panics_come_with_their_case_and_counts_add_up() {
        let (mut tally, mut other) = (Tally::default(), Tally::default());
        assert!(run_case(&Odd, 2, &mut tally).is_ok());
        let text = run_case(&Odd, 3, &mut other).unwrap_err().to_string();
        assert_eq!(
            text,
            "FOUND by odd in case 3: odd\n    1 look\n  again: lithify-sim replay odd 3"
        );
        let finding = run_case(&Odd, 4, &mut other).unwrap_err();
        assert!(finding.what.starts_with("a panic: ") && finding.what.contains("four"));
        tally.merge(other);
        assert_eq!(tally.figures(), [("cases", 3), ("looked at", 3), ("remainders", 2)]);
        assert_eq!((tally.get("looked at"), tally.get("remainders"), tally.get("x")), (3, 2, 0));
        assert_eq!(Odd.goal(Length::Long), Goal::Cases(5));
    }
}
