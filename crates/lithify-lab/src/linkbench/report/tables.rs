//! The tables: published columns in the published order, what an operation costs the process,
//! the levels, and the engine's causes.

use std::collections::{BTreeMap, BTreeSet};

use lithify_report::figure::{figure, figure_or_dash};
use lithify_report::grid::{Align, Grid};

use super::figures::{
    Figures, cpu_us_per_operation, settled_cpu_us_per_operation, slowed_percent, table_gb,
};
use super::{ageing, conditions, gates};
use crate::experiment::{Experiment, Phase, PublishedTable};
use crate::linkbench::cell::{CellResult, CellSpec, PhaseResult, Purpose};
use crate::linkbench::record::LinkBenchRecord;
use crate::statistics::steady_tag;

/// The published table of a phase with our figures: medians over the valid repeats.
pub fn published_columns(record: &LinkBenchRecord, figures: &Figures<'_>, phase: Phase) -> Grid {
    let mut columns: Vec<(&str, Align)> =
        phase.columns().iter().map(|column| (column.name(), Align::Right)).collect();
    columns.push(("engine", Align::Left));
    let mut rows = Vec::new();
    for arm in &record.plan.arms {
        let mut row: Vec<String> = phase
            .columns()
            .iter()
            .map(|column| {
                figure_or_dash(figures.column(arm, phase, *column).map(|spread| spread.median))
            })
            .collect();
        row.push(format!("{arm}{}", remark(record, figures, arm, phase)));
        rows.push(row);
    }
    Grid::new(&columns, rows).named_by_last()
}

/// The tables as they were published; none when there is none of that phase for this scale.
pub fn published(record: &LinkBenchRecord, phase: Phase) -> Vec<Grid> {
    let experiment = &record.plan.experiment;
    experiment
        .published_tables(phase, record.plan.claims())
        .map(|published| published_table(experiment, published))
        .collect()
}

fn published_table(experiment: &Experiment, published: &PublishedTable) -> Grid {
    let mut columns: Vec<(&str, Align)> =
        published.columns.iter().map(|column| (column.name(), Align::Right)).collect();
    columns.push(("engine", Align::Left));
    let rows: Vec<Vec<String>> = published
        .rows
        .iter()
        .map(|row| {
            let name = experiment.arm(&row.arm).and_then(|arm| arm.published_as.as_ref());
            let mut cells: Vec<String> = row.values.iter().map(|value| figure(*value)).collect();
            cells.push(name.unwrap_or(&row.arm).clone());
            cells
        })
        .collect();
    Grid::new(&columns, rows).named_by_last()
}

/// What is wrong with an arm's row: failed and void repeats, gates not passed.
fn remark(record: &LinkBenchRecord, figures: &Figures<'_>, arm: &str, phase: Phase) -> String {
    let is_of_arm = |spec: &CellSpec| spec.arm == arm && spec.purpose == Purpose::Measure;
    let cells = record.cells.iter().filter(|cell| is_of_arm(&cell.spec));
    let failed = cells.clone().filter(|cell| cell.failure.is_some()).count();
    let void = cells
        .filter_map(|cell| cell.result.as_ref())
        .filter(|result| result.violation().is_some())
        .count();
    let mut parts = Vec::new();
    if failed > 0 {
        parts.push(format!("{failed} failed"));
    }
    if void > 0 {
        parts.push(format!("{void} void"));
    }
    let valid = figures.results(arm).len();
    if valid as u64 != record.plan.repeats {
        parts.push(format!("{valid} of {} repeats", record.plan.repeats));
    }
    if phase == Phase::Query {
        parts.extend(gates::label(record, figures.results(arm)));
        parts.extend(ageing::label(figures.results(arm)));
    }
    parts.extend(conditions::few_threads(record, figures, arm));
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
}

/// True CPU per operation less the driver's, context switches, the process's own I/O, and whether
/// the throughput was steady.
pub fn process_columns(record: &LinkBenchRecord, figures: &Figures<'_>, phase: Phase) -> Grid {
    let driver_us = figures.driver_us(phase);
    let operations = |phase: &PhaseResult| phase.operations as f64;
    let mut columns = vec![
        ("cpu_us_op", Align::Right),
        ("with settling", Align::Right),
        ("driver_us_op", Align::Right),
        ("system %", Align::Right),
        ("cs/o", Align::Right),
        ("process rKB/o", Align::Right),
        ("process wKB/o", Align::Right),
        ("settled size", Align::Right),
        ("its tables", Align::Right),
        ("rss max", Align::Right),
    ];
    let rates: Vec<String> = rate_names(record, phase);
    columns.extend(rates.iter().map(|name| (name.as_str(), Align::Right)));
    columns.extend([
        ("slowed %", Align::Right),
        ("stalled %", Align::Right),
        ("steady", Align::Left),
        ("foreign %", Align::Right),
        ("engine", Align::Left),
    ]);
    let mut rows = Vec::new();
    for arm in &record.plan.arms {
        let median = |figure: &dyn Fn(&CellResult) -> f64| {
            figure_or_dash(figures.spread(arm, |result| Some(figure(result))).map(|s| s.median))
        };
        let cpu = |result: &CellResult| result.phase(phase).usage.process_cpu;
        let io = |result: &CellResult| result.phase(phase).usage.process_io;
        let per_operation = |result: &CellResult, bytes: u64| {
            bytes as f64 / 1024.0 / operations(result.phase(phase))
        };
        let mut row = vec![
            median(&|result| cpu_us_per_operation(result.phase(phase)) - driver_us),
            median(&|result| settled_cpu_us_per_operation(result.phase(phase)) - driver_us),
            if figures.driver.measured { figure(driver_us) } else { "-".to_owned() },
            median(&|r| 100.0 * cpu(r).system_us as f64 / cpu(r).total_us() as f64),
            median(&|r| {
                (cpu(r).voluntary_switches + cpu(r).involuntary_switches) as f64
                    / operations(r.phase(phase))
            }),
            median(&|r| per_operation(r, io(r).read_device_bytes)),
            median(&|r| per_operation(r, io(r).written_device_bytes)),
            median(&|r| r.phase(phase).settle.directory.allocated_bytes as f64 / 1e9),
            figure_or_dash(figures.spread(arm, |r| table_gb(r.phase(phase))).map(|s| s.median)),
            median(&|r| r.phase(phase).usage.memory.resident_max_bytes as f64 / 1e9),
        ];
        row.extend(rates.iter().map(|name| {
            let spread = figures.spread(arm, |r| r.phase(phase).rates.get(name).copied());
            figure_or_dash(spread.map(|spread| spread.median))
        }));
        let slowed = figures.spread(arm, |r| slowed_percent(r.phase(phase)));
        row.push(figure_or_dash(slowed.map(|spread| spread.median)));
        row.push(median(&|r| 100.0 * r.phase(phase).observed_stalls.share()));
        row.push(steady_tag(figures.results(arm).iter().map(|r| r.phase(phase).steady)));
        row.push(median(&|r| r.phase(phase).usage.foreign_percent(r.machine.cpus)));
        row.push(arm.clone());
        rows.push(row);
    }
    Grid::new(&columns, rows).named_by_last()
}

fn rate_names(record: &LinkBenchRecord, phase: Phase) -> Vec<String> {
    let results = record.cells.iter().filter_map(|cell| cell.result.as_ref());
    let mut names: Vec<String> =
        results.flat_map(|result| result.phase(phase).rates.keys().cloned()).collect();
    names.sort();
    names.dedup();
    names
}

/// The levels of each arm with their codecs, at the end of the queries.
pub fn levels(record: &LinkBenchRecord) -> Grid {
    let columns = [
        ("engine", Align::Left),
        ("level", Align::Left),
        ("codec", Align::Left),
        ("files", Align::Right),
        ("stored MB", Align::Right),
        ("user MB", Align::Right),
        ("stored/user", Align::Right),
        ("read MB", Align::Right),
        ("written MB", Align::Right),
        ("jobs", Align::Right),
        ("cpu s", Align::Right),
    ];
    let figures = Figures::of(record);
    let mut rows = Vec::new();
    for arm in &record.plan.arms {
        let Some(result) = figures.results(arm).first() else { continue };
        for level in &result.query.statistics.levels {
            let megabytes = |bytes: u64| figure(bytes as f64 / 1e6);
            rows.push(vec![
                arm.clone(),
                format!("L{}", level.level),
                level.codec.clone(),
                level.files.to_string(),
                megabytes(level.stored_bytes),
                figure_or_dash(level.user_mb()),
                figure_or_dash(level.stored_per_user_byte()),
                megabytes(level.compaction_read_bytes),
                megabytes(level.compaction_write_bytes),
                level.compactions.to_string(),
                figure(level.compaction_cpu_us as f64 / 1e6),
            ]);
        }
    }
    Grid::new(&columns, rows)
}

/// What each arm's engine booked by cause, from open to the end of the queries.
pub fn causes(record: &LinkBenchRecord) -> Grid {
    let columns = [
        ("engine", Align::Left),
        ("cause", Align::Left),
        ("read MB", Align::Right),
        ("written MB", Align::Right),
        ("cpu s", Align::Right),
    ];
    let figures = Figures::of(record);
    let mut rows = Vec::new();
    for arm in &record.plan.arms {
        let Some(result) = figures.results(arm).first() else { continue };
        let statistics = &result.query.statistics;
        let (read, written) = (&statistics.read_bytes_by_cause, &statistics.written_bytes_by_cause);
        let cpu = &statistics.cpu_us_by_cause;
        let names: BTreeSet<&String> =
            read.keys().chain(written.keys()).chain(cpu.keys()).collect();
        let millions = |amounts: &BTreeMap<String, u64>, cause: &String| {
            figure_or_dash(amounts.get(cause).map(|amount| *amount as f64 / 1e6))
        };
        for cause in names {
            rows.push(vec![
                arm.clone(),
                cause.clone(),
                millions(read, cause),
                millions(written, cause),
                millions(cpu, cause),
            ]);
        }
    }
    Grid::new(&columns, rows)
}

/// Fewest non-empty levels below level 0 with which per-level codecs are compared.
const LEVELS_MIN: usize = 3;

/// Whether all arms have the same number of levels, and enough of them.
pub fn shape(record: &LinkBenchRecord) -> String {
    let figures = Figures::of(record);
    let mut counts: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for arm in &record.plan.arms {
        for result in figures.results(arm) {
            let levels = &result.query.statistics.levels;
            if levels.is_empty() {
                return String::new();
            }
            let deep = levels.iter().filter(|level| level.level > 0 && level.files > 0).count();
            let arms = counts.entry(deep).or_default();
            if !arms.contains(&arm.as_str()) {
                arms.push(arm);
            }
        }
    }
    let parts: Vec<String> =
        counts.iter().map(|(count, arms)| format!("{count} ({})", arms.join(", "))).collect();
    let mut line = format!("Non-empty levels below L0 after the queries: {}", parts.join("; "));
    if counts.len() > 1 {
        line.push_str(". NOT THE SAME in every arm: the arms differ in more than the codec");
    }
    if counts.keys().any(|count| *count < LEVELS_MIN) {
        line.push_str(&format!(
            ". FEWER THAN {LEVELS_MIN}: the upper levels' codecs matter little"
        ));
    }
    line
}
