//! What becomes of rate and size while the data age, beside what was published.
//!
//! Pure. A rate is that between two turnovers, a size the one at the second. There is something to
//! tell only where queries end by turnover.

use crate::experiment::{Column, PublishedAgeing, applies};
use crate::linkbench::cell::{Age, CellResult};
use crate::linkbench::record::LinkBenchRecord;
use crate::linkbench::report::figures::Figures;
use crate::linkbench::report::headlines::published_name;
use crate::report::figures::{Spread, figure, figure_or_dash};
use crate::report::tables::{Align, Grid};

/// What stands over the ages.
pub(crate) const HEADING: &str = "ages: queries per second up to each turnover T and GB at it (T: \
                                  write operations per loaded node since the load)";

/// Turnovers of the scale at which ages were taken; none where queries end by time.
fn turnovers(record: &LinkBenchRecord) -> &[f64] {
    let cells = record.plan.cells.iter().map(|cell| &*cell.turnovers);
    cells.max_by_key(|turnovers| turnovers.len()).unwrap_or_default()
}

/// The ages of the arms, and what was published; `None` where queries end by time.
pub fn grids(record: &LinkBenchRecord, figures: &Figures<'_>) -> Option<(Grid, Vec<Grid>)> {
    let turnovers = turnovers(record);
    if turnovers.is_empty() {
        return None;
    }
    let mut rows = Vec::new();
    for arm in &record.plan.arms {
        rows.extend(rows_of_arm(record, figures, arm, turnovers));
    }
    let heads: Vec<String> = turnovers.iter().map(|at| format!("T {}", figure(*at))).collect();
    let mut columns = columns(&heads);
    columns.insert(1 + heads.len(), ("at the end", Align::Right));
    columns.insert(2 + heads.len(), ("T there", Align::Right));
    let published = published(record).map(|table| published_grid(record, table)).collect();
    Some((Grid::new(&columns, rows), published))
}

/// Why an arm's row is not that of the turnover it was to reach: the least of its repeats.
pub(crate) fn label(results: &[&CellResult]) -> Option<String> {
    let reached = results.iter().filter_map(|result| {
        let wanted = result.spec.turnovers.last()?;
        result.query.ages.last().map(|age| age.turnover).filter(|turnover| turnover < wanted)
    });
    reached.reduce(f64::min).map(|turnover| format!("T only {}", figure(turnover)))
}

fn columns(heads: &[String]) -> Vec<(&str, Align)> {
    let mut columns = vec![("figure", Align::Left)];
    columns.extend(heads.iter().map(|head| (head.as_str(), Align::Right)));
    columns.extend([
        ("late/early", Align::Right),
        ("published", Align::Right),
        ("engine", Align::Left),
    ]);
    columns
}

/// A figure of an age and the one before it.
type Figure = fn(Option<&Age>, &Age) -> Option<f64>;

const FIGURES: [(&str, Column, Figure); 3] = [
    ("QPS", Column::Tps, |before, age| {
        let (seconds, operations) = before.map_or((0.0, 0), |age| (age.seconds, age.operations));
        let taken = age.seconds - seconds;
        (taken > 0.0).then(|| (age.operations - operations) as f64 / taken)
    }),
    ("GB", Column::Size, |_, age| Some(age.directory.allocated_bytes as f64 / 1e9)),
    ("GB used", Column::Size, |_, age| Some(age.file_system_bytes? as f64 / 1e9)),
];

/// The ages of a result with the one before each.
fn steps(result: &CellResult) -> impl DoubleEndedIterator<Item = (Option<&Age>, &Age)> {
    let ages = &result.query.ages;
    ages.iter().enumerate().map(move |(index, age)| (index.checked_sub(1).map(|i| &ages[i]), age))
}

fn rows_of_arm(
    record: &LinkBenchRecord,
    figures: &Figures<'_>,
    arm: &str,
    turnovers: &[f64],
) -> Vec<Vec<String>> {
    let spread = |of: &dyn Fn(&CellResult) -> Option<f64>| figures.spread(arm, of);
    let text = |spread: Option<Spread>| figure_or_dash(spread.map(|spread| spread.median));
    let mut rows = Vec::new();
    for (name, column, of) in FIGURES {
        let end = spread(&|r| steps(r).next_back().and_then(|(before, age)| of(before, age)));
        if end.is_none() {
            continue;
        }
        let mut row = vec![name.to_owned()];
        row.extend(turnovers.iter().map(|at| {
            text(spread(&|r| {
                let found = steps(r).find(|(_, age)| age.turnover >= *at);
                found.and_then(|(before, age)| of(before, age))
            }))
        }));
        row.push(text(end));
        row.push(text(spread(&|r| r.query.ages.last().map(|age| age.turnover))));
        row.push(text(spread(&|r| late_to_early(r, of))));
        let mut told = published(record).filter(|table| table.column == column);
        row.push(figure_or_dash(told.find_map(|table| table.late_to_early(arm))));
        row.push(arm.to_owned());
        rows.push(row);
    }
    rows
}

/// The figure at the last age over that at the first one; `None` with a single age.
fn late_to_early(result: &CellResult, of: Figure) -> Option<f64> {
    let value = |(before, age)| of(before, age);
    if result.query.ages.len() < 2 {
        return None;
    }
    let early = steps(result).next().and_then(value)?;
    let late = steps(result).next_back().and_then(value)?;
    (early > 0.0).then(|| late / early)
}

/// The published figures that stand beside those of the scale.
fn published(record: &LinkBenchRecord) -> impl Iterator<Item = &PublishedAgeing> {
    let claims = record.plan.claims();
    record.plan.experiment.ageing.iter().filter(move |table| applies(table.claims, claims))
}

fn published_grid(record: &LinkBenchRecord, table: &PublishedAgeing) -> Grid {
    let heads: Vec<String> =
        table.turnovers.iter().map(|at| format!("T {}", figure(*at))).collect();
    let mut columns = columns(&heads);
    columns.retain(|(name, _)| *name != "published");
    let rows = table.rows.iter().map(|row| {
        let mut cells = vec![table.column.name().to_owned()];
        cells.extend(row.values.iter().map(|value| figure(*value)));
        cells.push(figure_or_dash(table.late_to_early(&row.arm)));
        cells.push(published_name(&record.plan.experiment, &row.arm));
        cells
    });
    Grid::new(&columns, rows.collect())
}
