//! One defect in one process: cases of all checks in turn until one of them finds something.
//!
//! The case that is on record for the defect comes first. Rounds then go over the checks, with the
//! next cases of each: the check on record first, the others in their order. What is being done is
//! told line by line to the process that watches.

use super::record::Catch;
use lithify_sim::check::{Check, Tally, run_case};
use serde_json::{Value, json};

/// Checks with small cases have more than one of them in a round.
const CASES_PER_ROUND: &[(&str, u64)] = &[
    ("metamorphic", 4),
    ("versions", 3),
    ("picker", 20),
    ("crashes", 4),
    ("faults", 20),
    ("flips", 100),
    ("files", 200),
    ("fuzz", 20),
    ("threads", 4),
    ("closes", 2),
    // Slow, and nothing that `powerloss` does not see.
    ("powerloss-devices", 0),
];

/// Stands for no defect at all.
pub(super) const NO_DEFECT: &str = "none";

/// How a trial ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Verdict {
    /// A check found it.
    Caught {
        /// The check.
        check: String,
        /// Its cases that were run.
        cases: u64,
        /// All cases that were run, of whatever check.
        all_cases: u64,
        /// What was reported.
        what: String,
    },
    /// All rounds went by.
    Missed {
        /// All cases that were run.
        all_cases: u64,
        /// How often a site of the defect was come by.
        times_reached: u64,
    },
    /// There was no trial.
    Failed {
        /// Why.
        what: String,
    },
}

/// A line of a trial.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Line {
    /// A case begins: of that check, the so manieth of it, and of all.
    Case { check: String, cases: u64, all_cases: u64 },
    /// The end.
    End(Verdict),
}

impl Line {
    pub(super) fn to_text(&self) -> String {
        match self {
            Line::Case { check, cases, all_cases } => json!([check, cases, all_cases]),
            Line::End(Verdict::Caught { check, cases, all_cases, what }) => {
                json!([check, cases, all_cases, what])
            }
            Line::End(Verdict::Missed { all_cases, times_reached }) => {
                json!([all_cases, times_reached])
            }
            Line::End(Verdict::Failed { what }) => json!([what]),
        }
        .to_string()
    }

    pub(super) fn parse(text: &str) -> Option<Line> {
        let value: Value = serde_json::from_str(text).ok()?;
        let string = |value: &Value| value.as_str().map(str::to_string);
        Some(match value.as_array()?.as_slice() {
            [check, cases, all_cases] => Line::Case {
                check: string(check)?,
                cases: cases.as_u64()?,
                all_cases: all_cases.as_u64()?,
            },
            [check, cases, all_cases, what] => Line::End(Verdict::Caught {
                check: string(check)?,
                cases: cases.as_u64()?,
                all_cases: all_cases.as_u64()?,
                what: string(what)?,
            }),
            [all_cases, times_reached] => Line::End(Verdict::Missed {
                all_cases: all_cases.as_u64()?,
                times_reached: times_reached.as_u64()?,
            }),
            [what] => Line::End(Verdict::Failed { what: string(what)? }),
            _ => return None,
        })
    }
}

/// Runs the cases on record, and then rounds, until something is found, and tells what it does.
pub(super) fn run(
    checks: &[&dyn Check],
    recorded: &[Catch],
    budget_rounds: u64,
    report: &mut dyn FnMut(String),
) {
    let is_recorded = |check: &&dyn Check| recorded.iter().any(|catch| catch.check == check.name());
    let (first, others): (Vec<&dyn Check>, Vec<&dyn Check>) =
        checks.iter().copied().partition(is_recorded);
    let of_record = recorded.iter().filter_map(|catch| {
        let check = first.iter().find(|check| check.name() == catch.check)?;
        Some((*check, catch.case))
    });
    let in_order = [&first[..], &others[..]].concat();
    let of_rounds = (0..budget_rounds).flat_map(|round| {
        let of_check = move |check: &dyn Check| cases_of(check, round);
        in_order.iter().flat_map(move |check| of_check(*check).map(move |case| (*check, case)))
    });
    let mut all_cases = 0;
    for (check, case) in of_record.chain(of_rounds) {
        all_cases += 1;
        let (name, cases) = (check.name().to_string(), case + 1);
        report(Line::Case { check: name.clone(), cases, all_cases }.to_text());
        if let Err(finding) = run_case(check, case, &mut Tally::default()) {
            let what = finding.what;
            let caught = Verdict::Caught { check: name, cases, all_cases, what };
            return report(Line::End(caught).to_text());
        }
    }
    let times_reached = lithify::planted::times_reached();
    report(Line::End(Verdict::Missed { all_cases, times_reached }).to_text());
}

/// The cases of a check in a round, as far as it has so many.
fn cases_of(check: &dyn Check, round: u64) -> std::ops::Range<u64> {
    let count = cases_per_round(check.name());
    let last = check.cases().unwrap_or(u64::MAX);
    (round * count).min(last)..((round + 1) * count).min(last)
}

fn cases_per_round(check: &str) -> u64 {
    CASES_PER_ROUND.iter().find(|(name, _)| *name == check).map_or(1, |(_, count)| *count)
}

/// The rounds that it takes until so many cases of the check have been run.
pub(super) fn rounds_until(check: &str, cases: u64) -> u64 {
    cases.div_ceil(cases_per_round(check).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lithify_sim::check::Finding;

    /// Finds something in the case of that number.
    struct FindsAt(&'static str, Option<u64>, u64);

    impl Check for FindsAt {
        fn name(&self) -> &'static str {
            self.0
        }
        fn about(&self) -> &'static str {
            "finds one case"
        }
        fn cases(&self) -> Option<u64> {
            self.1
        }
        fn run_case(&self, case: u64, _: &mut Tally) -> Result<(), Finding> {
            assert_ne!(case, self.2, "here it is");
            Ok(())
        }
    }

    fn lines(checks: &[&dyn Check], budget_rounds: u64) -> Vec<Line> {
        let mut lines = Vec::new();
        run(checks, &[], budget_rounds, &mut |text| lines.extend(Line::parse(&text)));
        lines
    }

    #[test]
    fn rounds_go_over_the_checks_until_one_finds_something() {
        let (numbered, random) = (FindsAt("numbered", Some(2), 9), FindsAt("random", None, 2));
        let seen = lines(&[&numbered, &random], 9);
        let Some(Line::End(Verdict::Caught { check, cases: 3, all_cases: 5, what })) = seen.last()
        else {
            panic!("{seen:?}");
        };
        assert!(check == "random" && what.contains("here it is"), "{what}");
        assert_eq!(seen.len(), 6);
        let seen = lines(&[&numbered, &random], 2);
        let missed = Verdict::Missed { all_cases: 4, times_reached: 0 };
        assert_eq!(seen.last(), Some(&Line::End(missed)));
    }

    #[test]
    fn the_case_on_record_comes_first_and_its_check_leads_the_rounds() {
        let (others, its) = (FindsAt("others", None, 9), FindsAt("its", None, 0));
        let run_with = |case| {
            let (mut lines, catch) = (Vec::new(), Catch { check: "its".into(), case });
            run(&[&others, &its], &[catch], 2, &mut |text| lines.extend(Line::parse(&text)));
            lines
        };
        for (recorded, cases_run) in [(0, 1), (7, 2)] {
            let seen = run_with(recorded);
            let Some(Line::End(Verdict::Caught { check, cases: 1, all_cases, .. })) = seen.last()
            else {
                panic!("{seen:?}");
            };
            assert!(check == "its" && *all_cases == cases_run, "{seen:?}");
        }
    }

    #[test]
    fn rounds_are_counted_by_the_cases_of_each() {
        assert_eq!(rounds_until("flips", 1), 1);
        assert_eq!(rounds_until("flips", 100), 1);
        assert_eq!(rounds_until("flips", 101), 2);
        assert_eq!(rounds_until("leftovers", 3), 3);
    }
}
