//! Two data sets, or two days of one: whether the advice for the first still holds for the second.

use std::fmt::Write;

use lithify_report::figure::bytes;

use crate::answer::{Advice, EQUAL_COST, Outcome, TargetAdvice};
use crate::error::{AdviseError, Result};

/// What each is like, and for every target what its setting for `before` comes to `now`.
///
/// # Errors
/// They have no target in common.
pub fn render(before: &Advice, now: &Advice) -> Result<String> {
    let pairs: Vec<(&TargetAdvice, &TargetAdvice)> = (now.targets.iter())
        .filter_map(|now| {
            let is_it = |one: &&TargetAdvice| one.target.name == now.target.name;
            Some((before.targets.iter().find(is_it)?, now))
        })
        .collect();
    if pairs.is_empty() {
        let what = format!("{} and {} have no target in common", before.data.path, now.data.path);
        return Err(AdviseError::usage(what));
    }
    let mut text = String::new();
    // Writing to a String cannot fail.
    let kept = pairs.iter().filter(|(before, now)| Kept::of(before, now).is_good()).count();
    let _ = match kept == pairs.len() {
        true => writeln!(text, "What was advised before is still good."),
        false => {
            writeln!(text, "{} of {} settings should change.", pairs.len() - kept, pairs.len())
        }
    };
    text.push('\n');
    about(&mut text, "before", before);
    about(&mut text, "now", now);
    let _ = writeln!(
        text,
        "\n{:<18} {:<20} {:>14} {:>10}  what to do",
        format!("For ({})", now.goal),
        "advised before",
        "of raw before",
        "now"
    );
    for (before, now) in pairs {
        line(&mut text, before, now);
    }
    Ok(text)
}

fn about(text: &mut String, when: &str, advice: &Advice) {
    let data = &advice.data;
    let rows = match data.input.has_rows {
        true => format!(", {} rows of {:.0} bytes", data.rows, data.basis.row_bytes),
        false => String::new(),
    };
    let _ = writeln!(
        text,
        "{when:<8} {}: {}{rows}, {:.1} bits a byte, {:.0} % of it does not shrink",
        data.path,
        bytes(data.input.data_bytes),
        data.entropy_bits,
        data.incompressible * 100.0
    );
}

/// What becomes of the setting that was advised before.
enum Kept<'a> {
    /// It is as cheap as any.
    Good(&'a Outcome),
    /// Another one is cheaper.
    Dear(&'a Outcome),
    /// It is not known what it would cost.
    Unmeasured,
}

impl<'a> Kept<'a> {
    fn of(before: &TargetAdvice, now: &'a TargetAdvice) -> Kept<'a> {
        let setting = &before.best().setting;
        let found = now.outcomes.iter().find(|outcome| outcome.setting == *setting);
        match found {
            Some(outcome) if outcome.cost() <= now.best().cost() * EQUAL_COST => {
                Kept::Good(outcome)
            }
            Some(outcome) => Kept::Dear(outcome),
            None => Kept::Unmeasured,
        }
    }

    fn is_good(&self) -> bool {
        matches!(self, Kept::Good(_))
    }
}

fn line(text: &mut String, before: &TargetAdvice, now: &TargetAdvice) {
    let (old, best) = (before.best(), now.best());
    let (ratio, what) = match Kept::of(before, now) {
        Kept::Good(outcome) => (format!("{:.3}", outcome.ratio.value), "keep it".to_owned()),
        Kept::Dear(outcome) => {
            let saving = (1.0 - best.cost() / outcome.cost()) * 100.0;
            let what = format!("take {}: {saving:.0} % cheaper", best.setting.name());
            (format!("{:.3}", outcome.ratio.value), what)
        }
        Kept::Unmeasured => {
            ("-".to_owned(), format!("{} now; the other was not measured", best.setting.name()))
        }
    };
    let _ = writeln!(
        text,
        "{:<18} {:<20} {:>14.3} {ratio:>10}  {what}",
        now.target.name,
        old.setting.name(),
        old.ratio.value
    );
}
