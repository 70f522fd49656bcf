//! Published ratios beside measured ones.
//!
//! A difference between two arms is called real only when the ranges over their repeats do not
//! overlap; then it points in the published direction or in the opposite one.

use super::figures::{Figures, Spread, figure};
use super::tables::{Align, table};
use crate::experiment::{Experiment, Headline};
use crate::run::RunRecord;

/// Fewest repeats after which a range means something.
const REPEATS_MIN: usize = 2;

/// The repeats that a claim should rest on.
const REPEATS_WANTED: u64 = 3;

/// What the measured ratio says about the published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A real difference in the published direction.
    Same,
    /// A real difference in the other direction.
    Opposite,
    /// The ranges of the arms overlap.
    NoDifference,
    /// One repeat has no range; true when it lies on the published side.
    SingleRun(bool),
}

/// A measured ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// Median over median.
    pub ratio: f64,
    /// The smallest that the ranges allow.
    pub min: f64,
    /// The largest that the ranges allow.
    pub max: f64,
    /// What it says.
    pub verdict: Verdict,
}

/// Compares `arm` with `base`; `None` when a ratio means nothing because a figure is zero.
pub fn compare(arm: &Spread, base: &Spread, published: f64) -> Option<Comparison> {
    if base.min <= 0.0 || arm.min <= 0.0 {
        return None;
    }
    let ratio = arm.median / base.median;
    let same_side = (ratio > 1.0) == (published > 1.0);
    let verdict = if arm.count < REPEATS_MIN || base.count < REPEATS_MIN {
        Verdict::SingleRun(same_side)
    } else if arm.overlaps(base) {
        Verdict::NoDifference
    } else if same_side {
        Verdict::Same
    } else {
        Verdict::Opposite
    };
    Some(Comparison { ratio, min: arm.min / base.max, max: arm.max / base.min, verdict })
}

/// The comparison of one headline, if both of its arms were measured.
pub fn headline(figures: &Figures<'_>, headline: &Headline) -> Option<Comparison> {
    let spread = |arm| figures.column(arm, headline.phase, headline.column);
    compare(&spread(&headline.arm)?, &spread(&headline.base)?, headline.published)
}

/// The table of all headlines and a sentence for each.
pub fn render(record: &RunRecord, figures: &Figures<'_>) -> String {
    let experiment = &record.plan.experiment;
    let mut rows = Vec::new();
    let mut sentences = Vec::new();
    for item in &experiment.headlines {
        let comparison = headline(figures, item);
        rows.push(row(experiment, item, comparison.as_ref()));
        sentences.push(format!("  - {}", sentence(item, comparison.as_ref())));
    }
    let columns = [
        ("phase", Align::Left),
        ("figure", Align::Left),
        ("ratio", Align::Left),
        ("published", Align::Right),
        ("measured", Align::Right),
        ("range", Align::Right),
        ("same direction?", Align::Left),
        ("measured/published", Align::Right),
    ];
    let mut text = table(&columns, &rows);
    text.push('\n');
    text.push_str(&sentences.join("\n"));
    if record.plan.repeats < REPEATS_WANTED {
        text.push_str(&format!(
            "\n  ({} of the {REPEATS_WANTED} repeats that a claim should rest on)",
            super::repeats(record.plan.repeats)
        ));
    }
    text
}

fn row(experiment: &Experiment, item: &Headline, comparison: Option<&Comparison>) -> Vec<String> {
    let published_name = |arm: &str| {
        let published_as = experiment.arm(arm).and_then(|arm| arm.published_as.as_deref());
        match published_as {
            Some(name) if name != arm => format!("{arm} ({name})"),
            _ => arm.to_owned(),
        }
    };
    let mut row = vec![
        item.phase.to_string(),
        item.column.to_string(),
        format!("{} / {}", published_name(&item.arm), published_name(&item.base)),
        format!("{:.3}", item.published),
    ];
    match comparison {
        Some(comparison) => row.extend([
            format!("{:.3}", comparison.ratio),
            format!("[{:.3}, {:.3}]", comparison.min, comparison.max),
            direction(comparison.verdict).to_owned(),
            format!("{:.3}", comparison.ratio / item.published),
        ]),
        None => row.extend(["-", "-", "not measured", "-"].map(str::to_owned)),
    }
    row
}

fn direction(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Same => "yes",
        Verdict::Opposite => "NO",
        Verdict::NoDifference => "no difference",
        Verdict::SingleRun(true) => "yes, but one run",
        Verdict::SingleRun(false) => "no, but one run",
    }
}

fn sentence(item: &Headline, comparison: Option<&Comparison>) -> String {
    let claim = &item.claim;
    let Some(comparison) = comparison else {
        return format!("\"{claim}\": not measured here.");
    };
    let percent = |ratio: f64| {
        let percent = (ratio - 1.0) * 100.0;
        format!("{}{} %", if percent >= 0.0 { "+" } else { "" }, figure(percent))
    };
    let (published, measured) = (percent(item.published), percent(comparison.ratio));
    let figures = format!("{} {published} published, {measured} here", item.column);
    match comparison.verdict {
        Verdict::Same => format!("\"{claim}\": so it is here ({figures})."),
        Verdict::Opposite => format!("\"{claim}\": the opposite here ({figures})."),
        Verdict::NoDifference => {
            format!("\"{claim}\": the repeats do not tell the two apart here ({figures}).")
        }
        Verdict::SingleRun(_) => {
            format!("\"{claim}\": one run does not decide it ({figures}).")
        }
    }
}
