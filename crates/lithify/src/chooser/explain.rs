//! A decision in words.

use super::candidate::Choice;
use super::decision::{Candidate, Decision, Reason};
use super::record::short;
use std::fmt;

/// Terms below this share of the total are left out.
const SHOWN_SHARE: f64 = 0.005;

impl fmt::Display for Decision {
    /// The choice with its cost per raw GB, its terms by size, what else it could have been, and why.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = self.level;
        let Some(chosen) = &self.chosen else {
            let (_, all) = self.specimens;
            return writeln!(f, "L{level}: {} (too few samples: {all})", self.choice);
        };
        write!(f, "L{level}: ")?;
        line(f, chosen, None)?;
        for other in self.candidates.iter().filter(|other| other.choice != chosen.choice).take(4) {
            write!(f, "    ")?;
            line(f, other, Some(chosen))?;
        }
        writeln!(f, "    {}", self.verdict())
    }
}

impl Decision {
    /// Why, in a sentence.
    pub fn verdict(&self) -> String {
        let best = self.candidates.first();
        let against = |choice: Choice| {
            let cost = best.map_or(0.0, |best| best.terms.total());
            let chosen = self.chosen.map_or(0.0, |chosen| chosen.terms.total());
            let percent = (chosen / cost.max(f64::MIN_POSITIVE) - 1.0) * 100.0;
            format!("{choice} would cost {percent:.1} % less")
        };
        match (self.reason, best, self.before) {
            (Reason::NoEvidence, ..) => "too few samples".to_owned(),
            (Reason::Kept, Some(best), _) => {
                format!("kept: {}, within hysteresis or error", against(best.choice))
            }
            (Reason::Switched, _, Some(before)) => format!("was {before}"),
            (Reason::First, ..) => "first choice".to_owned(),
            _ => "cheapest".to_owned(),
        }
    }
}

fn line(f: &mut fmt::Formatter<'_>, one: &Candidate, chosen: Option<&Candidate>) -> fmt::Result {
    let total = one.terms.total();
    write!(f, "{:<22} {:>8}", one.choice.to_string(), short(total))?;
    if let Some(chosen) = chosen {
        let percent = (total / chosen.terms.total() - 1.0) * 100.0;
        write!(f, " {percent:+6.1} %")?;
    } else {
        write!(f, "         ")?;
    }
    let mut terms = one.terms.named();
    terms.sort_by(|a, b| b.1.total_cmp(&a.1));
    let shown = terms.iter().filter(|(_, cost)| *cost > SHOWN_SHARE * total);
    let shown: Vec<String> = shown.map(|(name, cost)| format!("{name} {}", short(*cost))).collect();
    writeln!(f, "  ({})", shown.join(", "))
}
