//! Published ratios beside measured ones: the headlines of an experiment, each with what is to be
//! doubted.

use super::judged::{Claimed, Judgements};
use crate::experiment::{Column, Experiment, Headline, applies};
use crate::linkbench::cell::{CellResult, Purpose};
use crate::linkbench::record::LinkBenchRecord;
use crate::linkbench::report::figures::{
    Figures, column_value, cpu_us_per_operation, settled_cpu_us_per_operation, table_gb,
};
use crate::report::compare::{
    CLAIM_COLUMNS, Comparison, FOREIGN_PERCENT_MAX, REPEATS_WANTED, claim_cells, sentence,
};
use crate::report::figures::figure;
use crate::report::paired::{Family, Sides};
use crate::report::tables::{Align, Grid};
use crate::statistics::verdicts::{Rounds, Scale};

/// The figure that a headline is of.
fn value(result: &CellResult, item: &Headline) -> Option<f64> {
    column_value(result.phase(item.phase), item.column)
}

/// A headline's figure of an arm, repeat by repeat.
fn rounds(figures: &Figures<'_>, arm: &str, item: &Headline) -> Rounds {
    match item.clients {
        None => figures.rounds(arm, |result| value(result, item)),
        Some(clients) => {
            figures.by_repeat(arm, item.phase, clients, |phase| column_value(phase, item.column))
        }
    }
}

/// What is judged of a headline.
pub(super) fn sides(figures: &Figures<'_>, item: &Headline) -> Sides {
    let arms = [item.arm.as_str(), item.base.as_str()];
    let again = |arm: &str| match item.clients {
        None => figures.rounds_again(arm, |result| value(result, item)),
        Some(_) => Rounds::new(),
    };
    Sides {
        kind: item.column.to_string(),
        scale: Scale::Ratio,
        values: arms.map(|arm| rounds(figures, arm, item)),
        again: arms.map(again),
        other_day: figures.apart(arms),
    }
}

/// Adds what neighbouring arms say of the noise of a headline's figure, where they are not the
/// arms of a headline on it.
pub(super) fn add_noise(family: &mut Family, record: &LinkBenchRecord, figures: &Figures<'_>) {
    let items: Vec<&Headline> = headlines(record).collect();
    let key = |item: &Headline| (item.phase, item.column.to_string(), item.clients);
    for (place, item) in items.iter().enumerate() {
        if items[..place].iter().any(|other| key(other) == key(item)) {
            continue;
        }
        for arms in record.plan.arms.windows(2) {
            let is_of_both = |other: &&&Headline| {
                arms.contains(&other.arm) && arms.contains(&other.base) && key(other) == key(item)
            };
            if !items.iter().any(|other| is_of_both(&other)) {
                let sides = [0, 1].map(|side| rounds(figures, &arms[side], item));
                family.add_noise(&item.column.to_string(), Scale::Ratio, sides);
            }
        }
    }
}

/// What is compared beside a published figure, because that one takes in what is not the engine's:
/// machine-wide CPU the other processes, the directory the log.
pub(super) fn companions(headline: &Headline) -> &'static [Companion] {
    match headline.column {
        _ if headline.clients.is_some() => &[],
        Column::McpuPerInsert | Column::McpuPerTransaction => {
            &[Companion::OwnCpu, Companion::SettledCpu]
        }
        Column::Size => &[Companion::Tables],
        _ => &[],
    }
}

/// A figure beside a published one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Companion {
    /// CPU of the process alone, less the driver's.
    OwnCpu,
    /// The same with the background work that the phase left behind.
    SettledCpu,
    /// Tables when nothing was due any more, without the log.
    Tables,
}

impl Companion {
    pub(super) fn name(self) -> &'static str {
        match self {
            Companion::OwnCpu => "  own CPU per op",
            Companion::SettledCpu => "  with settling",
            Companion::Tables => "  tables, settled",
        }
    }

    /// What it is, in a word, as [`Column::word`] says it of a published figure.
    pub(super) fn word(self) -> &'static str {
        match self {
            Companion::OwnCpu => "own CPU",
            Companion::SettledCpu => "own CPU, settled",
            Companion::Tables => "tables, settled",
        }
    }

    /// Whether a short table has it in the place of the published figure where that cannot be
    /// believed.
    pub(super) fn stands_for_published(self) -> bool {
        matches!(self, Companion::OwnCpu | Companion::Tables)
    }

    /// What is judged of it.
    pub(super) fn sides(self, figures: &Figures<'_>, headline: &Headline) -> Sides {
        let driver_us = figures.driver_us(headline.phase);
        let value = |result: &CellResult| {
            let phase = result.phase(headline.phase);
            match self {
                Companion::OwnCpu => Some(cpu_us_per_operation(phase) - driver_us),
                Companion::SettledCpu => Some(settled_cpu_us_per_operation(phase) - driver_us),
                Companion::Tables => table_gb(phase),
            }
        };
        let arms = [headline.arm.as_str(), headline.base.as_str()];
        Sides {
            kind: self.name().to_owned(),
            scale: Scale::Ratio,
            values: arms.map(|arm| figures.rounds(arm, value)),
            again: arms.map(|arm| figures.rounds_again(arm, value)),
            other_day: figures.apart(arms),
        }
    }
}

/// What a measured ratio comes to, claim by claim.
pub(crate) fn sentences(judged: &Judgements<'_>) -> Vec<String> {
    let says = |Claimed { item, comparison, .. }: &Claimed<'_>| {
        sentence(&item.claim, &name_of(item), item.published, comparison.as_ref())
    };
    judged.headlines.iter().map(says).collect()
}

/// The headlines that the scale of a run is held against.
pub fn headlines(record: &LinkBenchRecord) -> impl Iterator<Item = &Headline> {
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
pub fn doubts(record: &LinkBenchRecord) -> Vec<String> {
    let mut lines = Vec::new();
    if record.plan.repeats < REPEATS_WANTED {
        let repeats = crate::report::repeats(record.plan.repeats);
        lines.push(format!(
            "{repeats}: directions, no verdicts; --repeats {REPEATS_WANTED} is the least that can \
             decide."
        ));
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
pub(crate) fn grid(record: &LinkBenchRecord, judged: &Judgements<'_>) -> Grid {
    let experiment = &record.plan.experiment;
    let mut rows = Vec::new();
    for Claimed { item, comparison, beside } in &judged.headlines {
        rows.push(row(experiment, item, &name_of(item), comparison.as_ref()));
        for (companion, comparison) in beside {
            rows.push(row(experiment, item, companion.name(), Some(comparison)));
        }
    }
    let mut columns = vec![("phase", Align::Left), ("figure", Align::Left), ("ratio", Align::Left)];
    columns.extend(CLAIM_COLUMNS);
    Grid::new(&columns, rows)
}

/// The largest share of the CPUs that other processes took in a phase of an arm, percent, where it
/// is large enough to doubt the figures.
pub fn disturbance_percent(record: &LinkBenchRecord) -> Option<f64> {
    Some(foreign_percent_max(record)).filter(|foreign| *foreign > FOREIGN_PERCENT_MAX)
}

/// The largest share of the CPUs that other processes took in a phase of an arm.
fn foreign_percent_max(record: &LinkBenchRecord) -> f64 {
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
    ];
    row.extend(claim_cells(item.published, comparison, "not measured"));
    row
}

/// An arm with what the published tables call it, where that differs.
pub(crate) fn published_name(experiment: &Experiment, arm: &str) -> String {
    match experiment.arm(arm).and_then(|arm| arm.published_as.as_deref()) {
        Some(name) if name != arm => format!("{arm} ({name})"),
        _ => arm.to_owned(),
    }
}
