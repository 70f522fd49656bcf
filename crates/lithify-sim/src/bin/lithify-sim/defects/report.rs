//! What became of the defects, for people and for machines.

use super::trial::Verdict;
use lithify::planted::Defect;
use serde_json::json;
use std::fmt;

/// Over the rows.
pub(super) const HEAD: &str = "\
| defect | what it breaks | caught by | after cases | what was reported |
|---|---|---|---|---|";

/// Of a long report so much of its beginning, the case, and of its end, what is wrong, is shown.
const SHOWN_CHARS: (usize, usize) = (40, 90);

/// A defect, or none, and how its trial ended.
pub(super) struct Outcome {
    pub(super) defect: Option<Defect>,
    pub(super) verdict: Verdict,
}

impl Outcome {
    /// Whether the defect was caught; without one, whether nothing was found.
    pub(super) fn is_as_it_should_be(&self) -> bool {
        match self.verdict {
            Verdict::Caught { .. } => self.defect.is_some(),
            Verdict::Missed { .. } => self.defect.is_none(),
            Verdict::Failed { .. } => false,
        }
    }

    fn name(&self) -> &'static str {
        self.defect.map_or("none", Defect::name)
    }
}

/// One row of the table.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let breaks = self.defect.map_or("Nothing.", Defect::breaks);
        write!(f, "| {} | {breaks} | ", self.name())?;
        match &self.verdict {
            Verdict::Caught { check, cases, what, .. } => {
                write!(f, "{check} | {cases} | {} |", shown(what))
            }
            Verdict::Missed { all_cases, .. } if self.defect.is_none() => {
                write!(f, "nothing | {all_cases} | nothing is found |")
            }
            Verdict::Missed { all_cases, times_reached } => {
                write!(f, "**NOBODY** | {all_cases} | come by {times_reached} times |")
            }
            Verdict::Failed { what } => write!(f, "**NOT TRIED** | 0 | {} |", shown(what)),
        }
    }
}

/// The first line of a text, as far as it fits a table.
fn shown(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default().replace('|', "/");
    let (start, end) = SHOWN_CHARS;
    let chars: Vec<char> = line.chars().collect();
    match chars.len() > start + end {
        true => {
            let part = |chars: &[char]| chars.iter().collect::<String>();
            format!("{} ... {}", part(&chars[..start]), part(&chars[chars.len() - end..]))
        }
        false => line,
    }
}

/// One line for all, and one for each that is not as it should be.
pub(super) fn summary(outcomes: &[Outcome]) -> String {
    let tried = outcomes.iter().filter(|outcome| outcome.defect.is_some());
    let caught = tried.clone().filter(|outcome| outcome.is_as_it_should_be()).count();
    let cases: u64 = outcomes.iter().map(|outcome| all_cases(&outcome.verdict)).sum();
    let mut text = format!(
        "lithify {}: {caught} of {} defects caught, in {cases} cases",
        env!("CARGO_PKG_VERSION"),
        tried.count(),
    );
    for outcome in outcomes.iter().filter(|outcome| !outcome.is_as_it_should_be()) {
        text += &match outcome.defect {
            Some(defect) => format!("\nMISSED: {}: {}", defect.name(), defect.breaks()),
            None => format!("\nFOUND without a defect: {:?}", outcome.verdict),
        };
    }
    text
}

fn all_cases(verdict: &Verdict) -> u64 {
    match verdict {
        Verdict::Caught { all_cases, .. } | Verdict::Missed { all_cases, .. } => *all_cases,
        Verdict::Failed { .. } => 0,
    }
}

/// Everything, for machines.
pub(super) fn json(outcomes: &[Outcome]) -> String {
    let rows = outcomes.iter().map(|outcome| {
        let (check, cases, what) = match &outcome.verdict {
            Verdict::Caught { check, cases, what, .. } => (Some(check), *cases, Some(what)),
            Verdict::Missed { .. } => (None, 0, None),
            Verdict::Failed { what } => (None, 0, Some(what)),
        };
        json!({
            "defect": outcome.name(),
            "breaks": outcome.defect.map(Defect::breaks),
            "as_it_should_be": outcome.is_as_it_should_be(),
            "check": check,
            "cases": cases,
            "all_cases": all_cases(&outcome.verdict),
            "reported": what,
        })
    });
    let value =
        json!({ "version": env!("CARGO_PKG_VERSION"), "defects": rows.collect::<Vec<_>>() });
    format!("{value:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(defect: Option<Defect>, verdict: Verdict) -> Outcome {
        Outcome { defect, verdict }
    }

    #[test]
    fn a_missed_defect_is_named_and_a_caught_one_says_by_whom() {
        let caught = Verdict::Caught {
            check: "crash".into(),
            cases: 3,
            all_cases: 7,
            what: format!("a | b\n{}", "x".repeat(200)),
        };
        let missed = Verdict::Missed { all_cases: 9, times_reached: 4 };
        let outcomes = [
            outcome(None, missed.clone()),
            outcome(Some(Defect::EditUnsynced), caught.clone()),
            outcome(Some(Defect::RunLeftOut), missed),
        ];
        assert_eq!(
            outcomes[1].to_string(),
            "| EditUnsynced | An edit of the manifest is not synced. | crash | 3 | a / b |"
        );
        let text = summary(&outcomes);
        assert!(text.contains("1 of 2 defects caught, in 25 cases"), "{text}");
        assert!(text.contains("MISSED: RunLeftOut") && !text.contains("EditUnsynced"), "{text}");
        assert!(summary(&[outcome(None, caught)]).contains("FOUND without a defect"));
        let value: serde_json::Value = serde_json::from_str(&json(&outcomes)).unwrap();
        assert_eq!(value["defects"][1]["check"], "crash");
        assert_eq!(value["defects"][2]["as_it_should_be"], false);
    }
}
