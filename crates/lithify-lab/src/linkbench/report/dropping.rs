//! What it cost to drop the databases, what others saw meanwhile, and the published ratios.
//!
//! Pure. There is something to tell only where databases are dropped.

use std::collections::BTreeMap;

use crate::experiment::PublishedDrop;
use crate::linkbench::cell::CellResult;
use crate::linkbench::dropping::DropResult;
use crate::linkbench::record::LinkBenchRecord;
use crate::linkbench::report::figures::Figures;
use crate::linkbench::report::headlines::published_name;
use crate::linkbench::report::judged::{ClaimedDrop, Judgements};
use crate::report::compare::{CLAIM_COLUMNS, claim_cells, sentence};
use crate::report::figures::figure_or_dash;
use crate::report::paired::Sides;
use crate::report::tables::{Align, Grid};
use crate::run::dropping::DropFigures;

/// What stands over the table.
pub(crate) const HEADING: &str =
    "dropping the database: seconds, what a client beside saw (ms), and the space (GB)";

/// A figure of a drop with its name.
type Figure = (&'static str, fn(&DropResult) -> Option<f64>);

const GB: f64 = 1e9;

const FIGURES: [Figure; 16] = [
    ("answered s", |d| Some(d.figures.call_seconds)),
    ("CPU s", |d| Some(d.figures.cpu_us as f64 / 1e6)),
    ("space back s", |d| Some(d.figures.back_seconds)),
    ("alone p99", |d| Some(d.figures.alone.p99_us as f64 / 1e3)),
    ("max", |d| Some(d.figures.alone.longest_us as f64 / 1e3)),
    ("meanwhile p99", |d| Some(d.figures.beside.p99_us as f64 / 1e3)),
    ("max", |d| Some(d.figures.beside.longest_us as f64 / 1e3)),
    ("of", |d| Some(d.figures.beside.operations as f64)),
    ("length", |d| Some(d.before.directory.apparent_bytes as f64 / GB)),
    ("du", |d| Some(d.before.directory.allocated_bytes as f64 / GB)),
    ("used", |d| Some(d.before.file_system_bytes? as f64 / GB)),
    ("extents", |d| Some(d.before.extents? as f64)),
    ("left: length", |d| Some(d.after.directory.apparent_bytes as f64 / GB)),
    ("du", |d| Some(d.after.directory.allocated_bytes as f64 / GB)),
    ("used", |d| Some(d.after.file_system_bytes? as f64 / GB)),
    ("extents", |d| Some(d.after.extents? as f64)),
];

/// The arms that were dropped; `None` where none was.
pub fn grid(record: &LinkBenchRecord, figures: &Figures<'_>) -> Option<Grid> {
    let mut rows = Vec::new();
    for arm in &record.plan.arms {
        if figures.spread(arm, back_seconds).is_none() {
            continue;
        }
        let mut row: Vec<String> = FIGURES
            .iter()
            .map(|(_, of)| {
                let spread = figures.spread(arm, |result| of(result.dropped.as_ref()?));
                figure_or_dash(spread.map(|spread| spread.median))
            })
            .collect();
        let is_not_back = |result: &&&CellResult| {
            result.dropped.as_ref().is_some_and(|dropped| dropped.figures.is_not_back)
        };
        let late = figures.results(arm).iter().filter(is_not_back).count();
        row.push(match late {
            0 => arm.clone(),
            _ => format!("{arm} (space not back in time in {late})"),
        });
        rows.push(row);
    }
    let mut columns = FIGURES.map(|(name, _)| (name, Align::Right)).to_vec();
    columns.push(("engine", Align::Left));
    (!rows.is_empty()).then(|| Grid::new(&columns, rows).named_by_last())
}

/// What was called and who worked beside, with the arms of which that holds.
pub fn calls(record: &LinkBenchRecord, figures: &Figures<'_>) -> Vec<String> {
    let mut arms: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for arm in &record.plan.arms {
        let mut results = figures.results(arm).iter();
        if let Some(dropped) = results.find_map(|result| result.dropped.as_ref()) {
            let call = format!("{}; beside: {}", dropped.how, dropped.neighbour);
            arms.entry(call).or_default().push(arm);
        }
    }
    arms.into_iter().map(|(call, arms)| format!("{}: {call}", arms.join(", "))).collect()
}

fn back_seconds(result: &CellResult) -> Option<f64> {
    Some(result.dropped.as_ref()?.figures.back_seconds)
}

/// A time of a drop, seconds.
type Time = fn(&DropFigures) -> f64;

/// The times that are compared with a published one.
const TIMES: [(&str, Time); 2] = [
    ("until answered", |figures| figures.call_seconds),
    ("until the space is back", |figures| figures.back_seconds),
];

/// What is judged of a published ratio of times: each time by its name.
pub(super) fn sides(
    figures: &Figures<'_>,
    item: &PublishedDrop,
) -> impl Iterator<Item = (&'static str, Sides)> {
    let arms = [item.arm.as_str(), item.base.as_str()];
    let side = move |(name, time): (&'static str, Time)| {
        let rounds =
            |arm: &str| figures.rounds(arm, |result| Some(time(&result.dropped.as_ref()?.figures)));
        let sides = Sides {
            kind: name.to_owned(),
            values: arms.map(rounds),
            other_day: figures.apart(arms),
            ..Sides::default()
        };
        (name, sides)
    };
    TIMES.into_iter().map(side).collect::<Vec<_>>().into_iter()
}

/// The published ratios beside ours.
pub(crate) fn published(record: &LinkBenchRecord, judged: &Judgements<'_>) -> Grid {
    let experiment = &record.plan.experiment;
    let mut rows = Vec::new();
    for ClaimedDrop { item, times } in &judged.drops {
        for (name, comparison) in times {
            let arms = [&item.arm, &item.base].map(|arm| published_name(experiment, arm));
            let mut row = vec![(*name).to_owned(), arms.join(" / ")];
            row.extend(claim_cells(item.published, comparison.as_ref(), "not measured"));
            rows.push(row);
        }
    }
    let mut columns = vec![("time to drop", Align::Left), ("ratio", Align::Left)];
    columns.extend(CLAIM_COLUMNS);
    Grid::new(&columns, rows)
}

/// What a measured ratio comes to, claim by claim.
pub(crate) fn sentences(judged: &Judgements<'_>) -> Vec<String> {
    let says = |ClaimedDrop { item, times }: &ClaimedDrop<'_>| {
        let (name, comparison) = times.last()?;
        let time = format!("time {name}");
        Some(sentence(&item.claim, &time, item.published, comparison.as_ref()))
    };
    judged.drops.iter().filter_map(says).collect()
}
