//! The figures of an experiment over loops, and those that were kept without their record, to be set
//! beside those of another run.

use super::LoopRecord;
use super::digest::{self, Digest};
use super::figures::{BESIDE, Figures, column_value};
use crate::comparison::collect::machine;
use crate::comparison::results::{ResultSet, Subject};
use crate::dbbench::compared::add_steps;
use crate::dbbench::figures::METRICS;
use crate::experiment::loops::LoopColumn;
use crate::report::paired::{Better, Reading};
use crate::statistics::verdicts::Scale;

/// All figures of all arms.
pub fn results(record: &LoopRecord) -> ResultSet {
    let figures = Figures::of(record);
    let plan = &record.plan;
    let mut set = ResultSet {
        title: format!("{} (scale {})", plan.experiment.title, plan.scale),
        ..ResultSet::default()
    };
    for engine in &plan.engines {
        for arm in &plan.arms {
            let subject = format!("{engine} {arm}");
            for result in figures.results(engine, arm) {
                add_steps(&mut set, &subject, result, record.run.driver(), |_, step| {
                    step.to_owned()
                });
                for test in &plan.experiment.workload.tests {
                    let Some(measured) = figures.test(result, *test) else { continue };
                    for (column, better) in COMPARED_COLUMNS {
                        if let Some(value) = column_value(&measured, column) {
                            let name = [subject.as_str(), test.name(), column.name()];
                            set.add(
                                name,
                                better.by(column.scale()),
                                (result.cell.repeat, value),
                                false,
                            );
                        }
                    }
                }
            }
        }
    }
    set
}

/// The published figures that have a direction and are not among those of the loops.
const COMPARED_COLUMNS: [(LoopColumn, Better); 7] = [
    (LoopColumn::WriteAmplification, Better::Lower),
    (LoopColumn::JobCpu, Better::Lower),
    (LoopColumn::FlushPerIngest, Better::Lower),
    (LoopColumn::JobLevel0, Better::Lower),
    (LoopColumn::JobBase, Better::Lower),
    (LoopColumn::JobNext, Better::Lower),
    (LoopColumn::JobDeeper, Better::Lower),
];

/// The name of a figure and how it is read, by its column in a CSV; `None` for what is no figure.
fn figure_of_column(column: &str) -> Option<(String, Reading)> {
    if let Some(metric) = METRICS.iter().find(|metric| metric.column() == column) {
        return Some((metric.heading(), metric.reading()));
    }
    let written = |name: &str| name.replace(' ', "_") == column;
    if let Some((compared, better)) = COMPARED_COLUMNS.iter().find(|(c, _)| written(c.name())) {
        return Some((compared.name().to_owned(), better.by(compared.scale())));
    }
    if column == LoopColumn::OperationsPerSecond.name() {
        return Some((column.to_owned(), Better::Higher.into()));
    }
    let (name, _) = BESIDE.iter().find(|(name, _)| written(name))?;
    let reading = match *name {
        "writes/s" => Better::Higher.into(),
        "gap %" => Better::Lower.by(Scale::PERCENT),
        "longest gap ms" => Better::Lower.by(Scale::GAP_MS),
        _ => Better::Lower.into(),
    };
    Some(((*name).to_owned(), reading))
}

/// All figures that were kept.
pub fn of_digest(digest: &Digest) -> ResultSet {
    let mut set = ResultSet {
        title: digest.name.clone(),
        machine: machine(&digest.machine),
        ..ResultSet::default()
    };
    for row in digest.runs.iter().filter(|row| digest::text(row, "role") != "driver") {
        let (name, test) = (digest::subject(row), digest::test(row));
        let repeat = digest::number(row, "repeat").unwrap_or(0.0) as u64;
        let is_control = digest::text(row, "role") == "control";
        set.subject(Subject {
            name: name.clone(),
            engine: digest::text(row, "engine").to_owned(),
            ..Subject::default()
        });
        for (column, value) in row {
            let found = figure_of_column(column).zip(value.as_f64());
            if let Some(((figure, reading), value)) = found {
                set.add([&name, &test, &figure], reading, (repeat, value), is_control);
            }
        }
    }
    order_figures(&mut set);
    set
}

/// JSON names columns by the alphabet; tables have them in the order of the report.
fn order_figures(set: &mut ResultSet) {
    let beside = BESIDE.iter().map(|(name, _)| (*name).to_owned());
    let compared = COMPARED_COLUMNS.iter().map(|(column, _)| column.name().to_owned());
    let first = std::iter::once(LoopColumn::OperationsPerSecond.name().to_owned());
    let metrics = METRICS.iter().map(|metric| metric.heading());
    let order: Vec<String> = first.chain(metrics).chain(compared).chain(beside).collect();
    let place = |figure: &String| order.iter().position(|name| name == figure);
    set.series.sort_by_key(|series| place(&series.figure));
    let mut tests: Vec<String> = set.tests().into_iter().map(str::to_owned).collect();
    tests.sort_by_key(|test| test.split_once('.').and_then(|(step, _)| step.parse::<u32>().ok()));
    set.series.sort_by_key(|series| tests.iter().position(|test| *test == series.test));
}
