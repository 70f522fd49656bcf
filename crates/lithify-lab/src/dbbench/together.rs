//! All engines of a run in one table per step, in units of one of them.
//!
//! The unit is the engine that was named second: the first is what the run is about, the second
//! what everybody knows. A ratio is the median over the repeats of the ratio within each. Runs of
//! fewer than three engines have tables of their own that say more.

use super::figures::{METRICS, Metric, Series, metric};
use super::judged::Judgements;
use super::plan::DbRecord;

use crate::adapter::EngineName;
use crate::report::better_of::{Group, against, groups, setting_of};
use crate::report::figures::figure;
use crate::report::tables::{Align, Grid};
use lithify_report::Table;

/// The figures that stand in the table, by their names.
const COLUMNS: [&str; 10] = [
    "throughput",
    "CPU per op",
    "CPU per op until settled",
    "written per byte ingested",
    "directory settled",
    "p50",
    "p99",
    "p99.9",
    "slowed share",
    "resident",
];

/// The tables; none for fewer than three engines.
pub(super) fn tables(record: &DbRecord, judged: &Judgements) -> Vec<Table> {
    let mut tables = Vec::new();
    let (Some(reference), [_, base, _, ..]) = (record.reference(), &record.plan.engines[..]) else {
        return tables;
    };
    let metrics: Vec<&Metric> = COLUMNS.iter().filter_map(|name| metric(name)).collect();
    for (number, ladder) in record.plan.ladders().iter().enumerate() {
        let series = Series::of(record, *ladder);
        for (index, step) in reference.loops().enumerate() {
            let caption = format!(
                "{} (step {}), codecs {ladder}: medians (in units of {base}'s)",
                step.spec,
                index + 1
            );
            let hardest = |arms: &Group, wanted: &Metric| {
                let place = METRICS.iter().position(|known| known.name == wanted.name)?;
                let compared = |arm: &usize| (*arm, judged.get(number, *arm, index, place));
                Some(against(arms.members.iter().map(compared), wanted.better)?.arm)
            };
            let grid = grid(&series, &record.plan.engines, index, &metrics, hardest);
            tables.push(Table::new(caption, grid));
        }
    }
    tables
}

/// `hardest` knows which arm of a group is hardest to beat for the first engine in a figure.
fn grid(
    series: &Series<'_>,
    engines: &[EngineName],
    index: usize,
    metrics: &[&Metric],
    hardest: impl Fn(&Group, &Metric) -> Option<usize>,
) -> Grid {
    let has = |metric: &&&Metric| {
        (0..engines.len()).any(|engine| series.spread(engine, index, metric).is_some())
    };
    let metrics: Vec<&Metric> = metrics.iter().filter(has).copied().collect();
    let headings: Vec<String> = metrics.iter().map(|metric| metric.heading()).collect();
    let mut columns = vec![("engine", Align::Left)];
    columns.extend(headings.iter().map(|heading| (heading.as_str(), Align::Right)));
    let row = |(engine, name): (usize, &EngineName)| {
        let cells = metrics.iter().map(|metric| cell(series, engine, index, metric));
        std::iter::once(name.to_string()).chain(cells).collect()
    };
    let mut rows: Vec<Vec<String>> = engines.iter().enumerate().map(row).collect();
    for arms in groups(engines).into_iter().filter(|arms| !arms.members.contains(&0)) {
        let cells = metrics.iter().map(|metric| {
            let best = hardest(&arms, metric);
            best.map_or_else(
                || "-".to_owned(),
                |best| named_cell(series, (best, &engines[best]), index, metric),
            )
        });
        rows.push(std::iter::once(arms.title()).chain(cells).collect());
    }
    Grid::new(&columns, rows)
}

/// A figure with the arm that it is of, and not its ratio: the figure may be of any of them.
fn named_cell(
    series: &Series<'_>,
    (engine, name): (usize, &EngineName),
    index: usize,
    metric: &Metric,
) -> String {
    let median = series.spread(engine, index, metric).map(|spread| figure(spread.median));
    median
        .map_or_else(|| "-".to_owned(), |median| format!("{median} ({})", setting_of(name.name())))
}

/// The place of the engine that is the unit.
const BASE: usize = 1;

fn cell(series: &Series<'_>, engine: usize, index: usize, metric: &Metric) -> String {
    let Some(spread) = series.spread(engine, index, metric) else { return "-".to_owned() };
    let median = figure(spread.median);
    match series.ratio(engine, BASE, index, metric) {
        Some(ratio) if engine != BASE => format!("{median} ({})", figure(ratio.median)),
        _ => median,
    }
}
