//! Two data sets, or two days of one: whether the advice for the first still holds for the second.

use lithify_report::figure::bytes;
use lithify_report::printable;

use crate::answer::{Advice, EQUAL_COST, Outcome, TargetAdvice};
use crate::columns::{Column, Row, table, wrapped};
use crate::error::{AdviseError, Result};
use crate::input::OWN_KEYS;
use crate::sample::Order;
use crate::screen::rows_of;

/// What each is like, and for every target what its setting for `before` comes to `now`, on a screen of
/// so many columns.
///
/// # Errors
/// They have no target in common, or their rows have other orders.
pub fn render(before: &Advice, now: &Advice, columns: usize) -> Result<String> {
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
    let is_by_key = pairs.iter().any(|(_, now)| now.target.order != Order::Input);
    if is_by_key && !has_one_key(before, now) {
        let of = |advice: &Advice| match advice.data.input.key.as_str() {
            "" => format!("{} has no key", advice.data.path),
            key => format!("the key of {} is {key}", advice.data.path),
        };
        let what = format!("{}, and {}: sizes depend on it", of(before), of(now));
        return Err(AdviseError::usage(what));
    }
    let mut text = verdict(&pairs, before, now);
    text.push('\n');
    about(&mut text, "before", before, columns);
    about(&mut text, "now", now, columns);
    text.push('\n');
    let goal = format!("For ({})", now.goal);
    let of_table =
        [(goal.as_str(), 0), ("advised before", 1), ("of raw\nbefore", 2), ("of raw\nnow", 3)]
            .map(|(heading, place)| Column { heading, place, has_names: place < 2 });
    let rows: Vec<Row> = pairs.into_iter().map(|(before, now)| row(before, now)).collect();
    table(&mut text, &of_table, &rows, "what to do", [0, columns]);
    Ok(printable(&text))
}

/// Whether rows are sorted by the same. Keys of a database have no names: they may be any.
fn has_one_key(before: &Advice, now: &Advice) -> bool {
    let [before, now] = [before, now].map(|advice| advice.data.input.key.as_str());
    before == now || [before, now].contains(&OWN_KEYS)
}

/// What the compared targets say, and no more than that; then those that only one side has.
fn verdict(pairs: &[(&TargetAdvice, &TargetAdvice)], before: &Advice, now: &Advice) -> String {
    let only = |one: &Advice, other: &Advice| -> Vec<&'static str> {
        let is_shared = |name: &str| other.targets.iter().any(|advice| advice.target.name == name);
        let names = one.targets.iter().map(|advice| advice.target.name);
        names.filter(|name| !is_shared(name)).collect()
    };
    let (only_before, only_now) = (only(before, now), only(now, before));
    let kept: Vec<Kept<'_>> = pairs.iter().map(|(before, now)| Kept::of(before, now)).collect();
    let good = kept.iter().filter(|kept| matches!(kept, Kept::Good(_))).count();
    let dear = kept.iter().filter(|kept| matches!(kept, Kept::Dear(_))).count();
    let unmeasured = pairs.len() - good - dear;
    // What was not advised before is no part of it.
    let all = pairs.len() + only_before.len();
    let mut text = match (dear, good) {
        (0, good) if good == all => "What was advised before is still good.".to_owned(),
        (0, good) => format!("Known to be still good: {good} of {all} settings."),
        (dear, good) => format!("{dear} of {} settings should change.", dear + good),
    };
    if unmeasured > 0 {
        text.push_str(&format!(" {unmeasured} cannot be told: not measured now."));
    }
    text.push('\n');
    for (when, names) in [("before", only_before), ("now", only_now)] {
        if !names.is_empty() {
            text.push_str(&format!("Not compared, there only {when}: {}.\n", names.join(", ")));
        }
    }
    text
}

fn about(text: &mut String, when: &str, advice: &Advice, columns: usize) {
    let data = &advice.data;
    let rows = match data.input.has_rows {
        true => format!(", {}", rows_of(data)),
        false => String::new(),
    };
    let hard = data.incompressible.map_or_else(String::new, |share| {
        format!(", {:.0} % of it does not shrink", share * 100.0)
    });
    let (size, entropy) = (bytes(data.input.data_bytes), data.entropy_bits);
    let about = format!("{}: {size}{rows}, {entropy:.1} bits a byte{hard}", data.path);
    wrapped(text, &format!("{when:<8} "), &about, columns);
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
        let best = before.best();
        let found = now.outcomes.iter().find(|outcome| outcome.is(best));
        // What it came with may be the cheapest now, and is there once then.
        let same = || now.outcomes.iter().find(|outcome| outcome.setting == best.setting);
        let found = found.or_else(same);
        match found {
            Some(outcome) if outcome.cost() <= now.best().cost() * EQUAL_COST => {
                Kept::Good(outcome)
            }
            Some(outcome) => Kept::Dear(outcome),
            None => Kept::Unmeasured,
        }
    }
}

fn row(before: &TargetAdvice, now: &TargetAdvice) -> Row {
    let (old, best) = (before.best(), now.best());
    let (ratio, what) = match Kept::of(before, now) {
        Kept::Good(outcome) => (format!("{:.3}", outcome.ratio.value), "keep it".to_owned()),
        Kept::Dear(outcome) => {
            let saving = (1.0 - best.cost() / outcome.cost()) * 100.0;
            let what = format!("take {}: {saving:.0} % cheaper", best.name());
            (format!("{:.3}", outcome.ratio.value), what)
        }
        Kept::Unmeasured => {
            ("-".to_owned(), format!("{} now; the other was not measured", best.name()))
        }
    };
    let cells =
        vec![now.target.name.to_owned(), old.name(), format!("{:.3}", old.ratio.value), ratio];
    Row { cells, words: what }
}
