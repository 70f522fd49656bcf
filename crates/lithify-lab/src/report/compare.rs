//! Published ratios beside measured ones.
//!
//! A difference between two arms is called real only when the ranges over their repeats do not
//! overlap; then it points in the published direction or in the opposite one. A published ratio
//! near to 1 has no direction: it says that the two are about equal, and holds where ours is near to
//! 1 too.

use super::figures::{
    Figures, Spread, column_value, cpu_us_per_operation, figure, settled_cpu_us_per_operation,
    table_gb,
};
use super::tables::{Align, Grid};
use crate::experiment::{Column, Experiment, Headline, applies};
use crate::run::RunRecord;
use crate::run::cell::Purpose;

/// Fewest repeats after which a range means something.
const REPEATS_MIN: usize = 2;

/// The repeats that a claim should rest on.
pub(crate) const REPEATS_WANTED: u64 = 3;

/// Most of the CPUs that other processes may take before the figures are doubted.
pub(crate) const FOREIGN_PERCENT_MAX: f64 = 5.0;

/// A published ratio this near to 1 says that the two are about equal.
const ABOUT_EQUAL: f64 = 0.03;

/// A measured ratio this near to 1 bears it out: runs of one arm differ by as much.
const ABOUT_EQUAL_HERE: f64 = 0.06;

/// A ratio with less than half of the published one's logarithm is far weaker, one with more than
/// twice far stronger.
const FAR: f64 = 2.0;

/// What the measured ratio says about the published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A real difference in the published direction, or about equal as published.
    Same,
    /// A real difference in the other direction, or where none was published.
    Opposite,
    /// The ranges of the arms overlap, where a difference was published or ours is not small.
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
    let says_equal = says_equal(published);
    let as_published = match says_equal {
        true => (ratio - 1.0).abs() < ABOUT_EQUAL_HERE,
        false => (ratio > 1.0) == (published > 1.0),
    };
    let verdict = if arm.count < REPEATS_MIN || base.count < REPEATS_MIN {
        Verdict::SingleRun(as_published)
    } else if arm.overlaps(base) && !(says_equal && as_published) {
        Verdict::NoDifference
    } else if as_published {
        Verdict::Same
    } else {
        Verdict::Opposite
    };
    Some(Comparison { ratio, min: arm.min / base.max, max: arm.max / base.min, verdict })
}

/// Whether a published ratio says that the two are about equal.
fn says_equal(published: f64) -> bool {
    (published - 1.0).abs() < ABOUT_EQUAL
}

/// The comparison of one headline, if both of its arms were measured.
pub fn headline(figures: &Figures<'_>, headline: &Headline) -> Option<Comparison> {
    let spread = |arm| match headline.clients {
        None => figures.column(arm, headline.phase, headline.column),
        Some(clients) => figures
            .spread_at(arm, headline.phase, clients, |phase| column_value(phase, headline.column)),
    };
    compare(&spread(&headline.arm)?, &spread(&headline.base)?, headline.published)
}

/// What is compared beside a published figure, because that one takes in what is not the engine's:
/// machine-wide CPU the other processes, the directory the log.
fn companions(headline: &Headline) -> &'static [Companion] {
    match headline.column {
        _ if headline.clients.is_some() => &[],
        Column::McpuPerInsert | Column::McpuPerTransaction => {
            &[Companion::OwnCpu, Companion::SettledCpu]
        }
        Column::Size => &[Companion::Tables],
        _ => &[],
    }
}

#[derive(Clone, Copy, Debug)]
enum Companion {
    OwnCpu,
    SettledCpu,
    Tables,
}

impl Companion {
    fn name(self) -> &'static str {
        match self {
            Companion::OwnCpu => "  own CPU per op",
            Companion::SettledCpu => "  with settling",
            Companion::Tables => "  tables, settled",
        }
    }

    fn compare(self, figures: &Figures<'_>, headline: &Headline) -> Option<Comparison> {
        let driver_us = figures.driver_us(headline.phase);
        let spread = |arm| {
            figures.spread(arm, |result| {
                let phase = result.phase(headline.phase);
                match self {
                    Companion::OwnCpu => Some(cpu_us_per_operation(phase) - driver_us),
                    Companion::SettledCpu => Some(settled_cpu_us_per_operation(phase) - driver_us),
                    Companion::Tables => table_gb(phase),
                }
            })
        };
        compare(&spread(&headline.arm)?, &spread(&headline.base)?, headline.published)
    }
}

/// The table of all headlines, a sentence for each, and what they are to be doubted for.
pub fn render(record: &RunRecord, figures: &Figures<'_>) -> String {
    let mut text = String::new();
    let grid = grid(record, figures);
    if !grid.rows.is_empty() {
        text = grid.text();
        sentences(record, figures).iter().for_each(|line| text.push_str(&format!("\n  - {line}")));
    }
    let doubts = doubts(record);
    if grid.rows.is_empty() && doubts.is_empty() {
        let (repeats, foreign) = (super::repeats(record.plan.repeats), foreign_percent_max(record));
        text =
            format!("  {repeats}; other processes took at most {} % of the CPUs", figure(foreign));
    }
    doubts.iter().for_each(|line| text.push_str(&format!("\n  {line}")));
    text.trim_start_matches('\n').to_owned()
}

/// What a measured ratio comes to, claim by claim.
pub fn sentences(record: &RunRecord, figures: &Figures<'_>) -> Vec<String> {
    let says = |item: &Headline| {
        let comparison = headline(figures, item);
        sentence(&item.claim, &name_of(item), item.published, comparison.as_ref())
    };
    headlines(record).map(says).collect()
}

/// The headlines that the scale of a run is held against.
pub fn headlines(record: &RunRecord) -> impl Iterator<Item = &Headline> {
    let claims = record.plan.claims();
    record.plan.experiment.headlines.iter().filter(move |item| applies(item.claims, claims))
}

/// Of which figure a headline is, with the number of clients where there are several.
fn name_of(item: &Headline) -> String {
    match item.clients {
        Some(1) => format!("{} at 1 client", item.column),
        Some(clients) => format!("{} at {clients} clients", item.column),
        None => item.column.name().to_owned(),
    }
}

/// Why the comparison is to be doubted: few repeats, other processes.
pub fn doubts(record: &RunRecord) -> Vec<String> {
    let mut lines = Vec::new();
    if record.plan.repeats < REPEATS_WANTED {
        let repeats = super::repeats(record.plan.repeats);
        lines.push(format!("({repeats}; a claim should rest on {REPEATS_WANTED})"));
    }
    if let Some(foreign) = disturbance_percent(record) {
        lines.push(format!(
            "THE MACHINE WAS NOT QUIET: other processes took up to {} % of its CPUs during a \
             phase. Only sizes and the process's own CPU can be believed; measure again.",
            figure(foreign)
        ));
    }
    lines
}

/// The published ratios beside ours.
pub fn grid(record: &RunRecord, figures: &Figures<'_>) -> Grid {
    let experiment = &record.plan.experiment;
    let mut rows = Vec::new();
    for item in headlines(record) {
        let comparison = headline(figures, item);
        rows.push(row(experiment, item, &name_of(item), comparison.as_ref()));
        for companion in companions(item) {
            if let Some(comparison) = companion.compare(figures, item) {
                rows.push(row(experiment, item, companion.name(), Some(&comparison)));
            }
        }
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
    Grid::new(&columns, rows)
}

/// The largest share of the CPUs that other processes took in a phase of an arm, percent, where it
/// is large enough to doubt the figures.
pub fn disturbance_percent(record: &RunRecord) -> Option<f64> {
    Some(foreign_percent_max(record)).filter(|foreign| *foreign > FOREIGN_PERCENT_MAX)
}

/// The largest share of the CPUs that other processes took in a phase of an arm.
fn foreign_percent_max(record: &RunRecord) -> f64 {
    let results = record.cells.iter().filter_map(|cell| cell.result.as_ref());
    results
        .filter(|result| result.spec.purpose == Purpose::Measure)
        .flat_map(|result| {
            let cpus = result.machine.cpus;
            [&result.load, &result.query].map(|phase| phase.usage.foreign_percent(cpus))
        })
        .fold(0.0, f64::max)
}

fn row(
    experiment: &Experiment,
    item: &Headline,
    figure: &str,
    comparison: Option<&Comparison>,
) -> Vec<String> {
    let mut row = vec![
        item.phase.to_string(),
        figure.to_owned(),
        format!(
            "{} / {}",
            published_name(experiment, &item.arm),
            published_name(experiment, &item.base)
        ),
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

/// An arm with what the published tables call it, where that differs.
pub(crate) fn published_name(experiment: &Experiment, arm: &str) -> String {
    match experiment.arm(arm).and_then(|arm| arm.published_as.as_deref()) {
        Some(name) if name != arm => format!("{arm} ({name})"),
        _ => arm.to_owned(),
    }
}

pub(crate) fn direction(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Same => "yes",
        Verdict::Opposite => "NO",
        Verdict::NoDifference => "no difference",
        Verdict::SingleRun(true) => "yes, but one run",
        Verdict::SingleRun(false) => "no, but one run",
    }
}

/// What a comparison says of a claim about a figure.
pub(crate) fn sentence(
    claim: &str,
    column: &str,
    published: f64,
    comparison: Option<&Comparison>,
) -> String {
    let Some(comparison) = comparison else {
        return format!("\"{claim}\": not measured here.");
    };
    let percent = |ratio: f64| {
        let percent = (ratio - 1.0) * 100.0;
        format!("{}{} %", if percent >= 0.0 { "+" } else { "" }, figure(percent))
    };
    let (of_theirs, of_ours) = (percent(published), percent(comparison.ratio));
    let figures = format!("{column} {of_theirs} published, {of_ours} here");
    let says = match comparison.verdict {
        Verdict::Same => so_it_is(published, comparison.ratio),
        Verdict::Opposite if says_equal(published) => "the two differ here",
        Verdict::Opposite => "the opposite here",
        Verdict::NoDifference => "the repeats do not tell the two apart here",
        Verdict::SingleRun(true) => "so it is in one run, which does not decide it",
        Verdict::SingleRun(false) => "not so in one run, which does not decide it",
    };
    format!("\"{claim}\": {says} ({figures}).")
}

/// What a ratio in the published direction comes to beside the published one.
fn so_it_is(published: f64, measured: f64) -> &'static str {
    let times = measured.ln() / published.ln();
    match says_equal(published) {
        false if times < 1.0 / FAR => "so it is here, but far weaker",
        false if times > FAR => "so it is here, and far stronger",
        _ => "so it is here",
    }
}
