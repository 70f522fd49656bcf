//! The reports: result lines and interval reports in the form of the original, the table of ratios.

use std::fmt::Write as _;

use super::figures::{METRICS, Measured, Metric, measured};
use super::judged::Judgements;
use super::oracle;
use super::plan::{DbPlan, DbRecord, foreign_percent};
use super::spec::{DbResult, DbSpec, Interval, Role, Step, StepResult};
use crate::adapter::EngineName;
use crate::adapter::codec::Ladder;
use crate::adapter::settings::EngineSettings;
use crate::engines::registry::own_format;
use crate::report::better_of::{Group, against, groups};
use crate::report::figures::figure;
use crate::report::paired::Comparison;
use crate::report::tables::{Align, Grid};
use crate::report::{days, plural};
use crate::run::store::ReportFile;
use lithify_report::{Cell, Column, Table};

const MIB: f64 = (1 << 20) as f64;

/// The result line of a step with clients, as the original prints it.
pub fn result_line(step: &StepResult) -> String {
    let operations = step.operations.max(1) as f64;
    let elapsed_s = step.elapsed_s.max(1e-9);
    let mut line = format!(
        "{:<12} : {:11.3} micros/op {} ops/sec {:.3} seconds {} operations; {:6.1} MB/s",
        step.spec.to_string(),
        step.client_seconds * 1e6 / operations,
        (step.operations as f64 / elapsed_s) as u64,
        step.elapsed_s,
        step.operations,
        step.bytes as f64 / MIB / elapsed_s,
    );
    if !step.spec.benchmark.is_write() {
        let _ = write!(line, " ({} of {} found)", step.found, step.operations);
    }
    line
}

/// Operations per interval: the columns of the original count everybody, those after them tell
/// the clients from the writer beside them.
pub fn intervals(step: &StepResult) -> String {
    let mut text = "secs_elapsed,interval_qps,clients_qps,background_writer_qps\n".to_owned();
    for interval in &step.intervals {
        let Interval { elapsed_s, seconds, operations, background_writes } = *interval;
        let rate = |count: u64| (count as f64 / seconds.max(1e-9)).round();
        let _ = writeln!(
            text,
            "{elapsed_s:.0},{},{},{}",
            rate(operations + background_writes),
            rate(operations),
            rate(background_writes)
        );
    }
    text
}

/// The interval report of every step, beside its raw result.
pub fn interval_files(record: &DbRecord) -> Vec<ReportFile> {
    let mut files = Vec::new();
    for result in record.cells.iter().filter_map(|cell| cell.result.as_ref()) {
        for (index, step) in result.loops().enumerate() {
            let (run, id) = (&record.plan.name, &result.cell.id);
            let name = format!("runs/{run}/{id}-{index}-{}.report.csv", step.spec.benchmark);
            files.push((name, intervals(step)));
        }
    }
    files
}

/// The days of the cells; with several, what was measured on each.
pub(crate) fn days_of(record: &DbRecord) -> Option<String> {
    days::line(
        record
            .results()
            .map(|result| (result.cell.id.as_str(), result.cell.repeat, result.started_unix_s)),
    )
}

/// Sizes of blocks and codecs, by the settings that all engines share and by what one has of its own.
fn written_with(plan: &DbPlan, settings: &EngineSettings) -> [String; 2] {
    let blocks = format!("{} KiB", settings.block_bytes >> 10);
    let ladders: Vec<String> = plan.ladders().iter().map(Ladder::to_string).collect();
    let mut codecs = ladders.join("; ");
    let own = |engine: &EngineName| {
        let of_engine = plan.cells.iter().find(|cell| cell.spec.engine == *engine);
        of_engine.map(|cell| own_format(engine, &cell.spec.settings)).unwrap_or_default()
    };
    if let [only] = plan.engines.as_slice() {
        let own = own(only);
        return [own.blocks.unwrap_or(blocks), own.codecs.unwrap_or(codecs)];
    }
    for engine in &plan.engines {
        let own = own(engine);
        let named = [("codecs", own.codecs), ("blocks", own.blocks)];
        let named: Vec<String> =
            named.into_iter().filter_map(|(what, of)| Some(format!("{what} {}", of?))).collect();
        if !named.is_empty() {
            codecs.push_str(&format!("; {engine}: {}", named.join(", ")));
        }
    }
    [blocks, codecs]
}

pub(crate) fn settings(result: &DbResult, plan: &DbPlan) -> String {
    let spec: &DbSpec = &result.cell.spec;
    let settings = &spec.settings;
    let mut text = format!(
        "{} of {} + {} bytes ({} random{}), {} threads, {}, write rate {}, seed {}\n",
        plural(spec.num, "key"),
        spec.key_bytes,
        spec.value_bytes,
        spec.compression_ratio,
        if spec.fresh_values { ", made anew" } else { "" },
        spec.threads,
        match spec.duration_seconds {
            0 => "by operations".to_owned(),
            seconds => format!("{seconds} s a step"),
        },
        match spec.write_rate_bytes_per_s {
            0 => "unlimited".to_owned(),
            rate => format!("{} MiB/s", figure(rate as f64 / MIB)),
        },
        spec.seed,
    );
    let mib = |bytes: u64| figure(bytes as f64 / MIB);
    let [blocks, codecs] = written_with(plan, settings);
    let _ = writeln!(
        text,
        "memory budget {} MiB, memtable {} MiB, tables {} MiB, base level {} MiB, fanout {}, blocks \
         {blocks}, {} background threads, durability {}, codecs {codecs}",
        mib(settings.memory_budget_bytes),
        mib(settings.memtable_bytes),
        mib(settings.table_bytes),
        mib(settings.base_level_bytes),
        settings.fanout,
        settings.background_threads,
        settings.durability.name(),
    );
    let machine = &result.machine;
    let _ = writeln!(
        text,
        "{}, {} CPUs, {}, {}, {}, allocator {}\n",
        machine.cpu,
        machine.cpus,
        machine.kernel,
        machine.file_system,
        machine.build,
        machine.allocator,
    );
    text
}

/// What the original prints of one run: settings, then each step's line, distribution and figures.
pub fn classic(record: &DbRecord) -> String {
    let mut text = String::new();
    if let Some(result) = record.reference().or(record.driver()) {
        text.push_str(&settings(result, &record.plan));
    }
    if let Some(result) = record.results().last() {
        let driver = record.driver().filter(|driver| driver.hash != result.hash);
        text.push_str(&lines(result, driver));
    }
    let checks: String = checks(record).iter().map(|line| format!("  {line}\n")).collect();
    text + "Checks\n" + &checks
}

/// Each step's line, distribution and figures.
fn lines(result: &DbResult, driver: Option<&DbResult>) -> String {
    let mut text = format!("{}\n", result.engine_name);
    let mut steps = measured(result, driver);
    for step in &result.steps {
        match step {
            Step::Call(call) => {
                let seconds = call.usage.seconds;
                let _ = writeln!(text, "{:<12} : {seconds:11.3} seconds", call.benchmark.name());
            }
            Step::Loop(step) => {
                let _ = writeln!(text, "{}", result_line(step));
                text.push_str(&step.latency.distribution.render(step.spec.benchmark.operation()));
                if let Some(writer) = &step.background_latency {
                    text.push_str(&writer.distribution.render("write of the background writer"));
                }
                if let Some(figures) = steps.next() {
                    text.push_str(&figure_lines(&figures));
                }
            }
        }
        text.push('\n');
    }
    text
}

fn figure_lines(measured: &Measured<'_>) -> String {
    let mut text = String::new();
    for metric in &METRICS {
        if let Some(value) = (metric.value)(measured) {
            let line = format!("  {:<26} {} {}", metric.name, figure(value), metric.unit);
            let _ = writeln!(text, "{}", line.trim_end());
        }
    }
    text
}

/// The result line of every step, in the order in which they were measured.
pub(crate) fn steps(record: &DbRecord) -> Table {
    let columns = [
        Column::new("run"),
        Column::new("step"),
        Column::new("per operation").unit("us"),
        Column::new("rate").unit("ops/s"),
        Column::new("time").unit("s"),
        Column::new("operations"),
        Column::new("user data").unit("MB/s"),
        Column::new("found"),
        Column::new("other processes").unit("% of the CPUs"),
    ];
    let mut table = Table::folded("Every step of every run", columns).keyed_by(2);
    for result in record.results() {
        for step in result.loops() {
            let elapsed_s = step.elapsed_s.max(1e-9);
            let reads = !step.spec.benchmark.is_write();
            let us = step.client_seconds * 1e6 / step.operations.max(1) as f64;
            table.push([
                Cell::from(&*result.cell.id),
                Cell::from(step.spec.to_string()),
                Cell::decimals(us, 3),
                Cell::from((step.operations as f64 / elapsed_s) as u64),
                Cell::decimals(step.elapsed_s, 3),
                Cell::from(step.operations),
                Cell::decimals(step.bytes as f64 / MIB / elapsed_s, 1),
                Cell::from(reads.then_some(step.found)),
                Cell::number(foreign_percent(result)),
            ]);
        }
    }
    table
}

/// For every ladder and loop the first engine against each of the others: all figures.
pub(crate) fn comparisons(record: &DbRecord, judged: &Judgements) -> Vec<Table> {
    let mut tables = Vec::new();
    let Some(reference) = record.reference() else { return tables };
    let engines = &record.plan.engines;
    let ladders = record.plan.ladders();
    for (number, ladder) in ladders.iter().enumerate() {
        let codecs = match ladders.len() {
            1 => String::new(),
            _ => format!(", codecs {ladder}"),
        };
        for (index, step) in reference.loops().enumerate() {
            let heading = format!("{} (step {}){codecs}", step.spec, index + 1);
            let arms = groups(engines).into_iter().filter(|arms| !arms.members.contains(&0));
            tables.extend(arms.map(|arms| {
                let title = format!("{heading}: {} against the {}", engines[0], arms.title());
                let comparison = |other, metric| judged.get(number, other, index, metric);
                Table::folded(title, table_of_better(&arms, engines, comparison))
            }));
            tables.extend(engines.iter().enumerate().skip(1).map(|(other, engine)| {
                let title = format!("{heading}: {} against {engine}", engines[0]);
                let comparison = |metric| judged.get(number, other, index, metric);
                Table::folded(title, table([engines[0].name(), engine.name()], comparison))
            }));
        }
    }
    tables
}

/// The figures of a step by their places in [`METRICS`].
fn table<'a>(names: [&str; 2], comparison: impl Fn(usize) -> Option<&'a Comparison>) -> Grid {
    let controls = names.map(|name| format!("A/A {name}"));
    let columns = [
        ("median [min, max]", Align::Left),
        (names[0], Align::Right),
        (names[1], Align::Right),
        ("ratio [95 %]", Align::Right),
        (controls[0].as_str(), Align::Right),
        (controls[1].as_str(), Align::Right),
        ("could have shown", Align::Right),
        ("repeats to decide", Align::Right),
        ("verdict", Align::Left),
    ];
    let row = |(place, metric): (usize, &Metric)| {
        let comparison = comparison(place)?;
        Some(vec![
            metric.heading(),
            comparison.first.with_range(),
            comparison.other.with_range(),
            comparison.ratio(),
            comparison.control(0),
            comparison.control(1),
            comparison.could_have_shown(),
            comparison.repeats_to_decide(),
            comparison.outcome(metric.better).word().to_owned(),
        ])
    };
    let rows: Vec<Vec<String>> = METRICS.iter().enumerate().filter_map(row).collect();
    Grid::new(&columns, rows)
}

/// The table of the first engine against all arms of another one, with the arm that is hardest to
/// beat; `comparison` knows the arm at a place and the figure at one in [`METRICS`].
fn table_of_better<'a>(
    arms: &Group,
    engines: &[EngineName],
    comparison: impl Fn(usize, usize) -> Option<&'a Comparison>,
) -> Grid {
    let columns = [
        ("median [min, max]", Align::Left),
        (engines[0].name(), Align::Right),
        ("better arm", Align::Right),
        ("ratio [95 %]", Align::Right),
        ("which arm", Align::Left),
        ("verdict", Align::Left),
    ];
    let row = |(place, metric): (usize, &Metric)| {
        let all = arms.members.iter().map(|arm| (*arm, comparison(*arm, place)));
        let found = against(all, metric.better)?;
        Some(vec![
            metric.heading(),
            found.comparison.first.with_range(),
            found.comparison.other.with_range(),
            found.comparison.ratio(),
            engines[found.arm].to_string(),
            found.outcome.word().to_owned(),
        ])
    };
    let rows: Vec<Vec<String>> = METRICS.iter().enumerate().filter_map(row).collect();
    Grid::new(&columns, rows)
}

/// What was checked, and what is wrong.
pub(crate) fn checks(record: &DbRecord) -> Vec<String> {
    let counted = |results: &mut dyn Iterator<Item = &DbResult>| {
        let mut counts = (0, 0);
        for result in results {
            let founds = result.loops().filter(|step| step.found_expected.is_some()).count();
            counts.0 += founds;
            counts.1 += usize::from(
                result.verification.as_ref().is_some_and(|seen| seen.rows_expected.is_some()),
            );
        }
        counts
    };
    let (founds, scans) = counted(&mut record.results());
    let mut lines = vec![format!(
        "reads found exactly what was written: {}, scans at the end: {}",
        plural(founds as u64, "step"),
        plural(scans as u64, "run")
    )];
    if let Some(first) = record.reference() {
        for other in record.results().filter(|other| other.cell.role != Role::Driver) {
            if other.cell.id == first.cell.id {
                continue;
            }
            let agreement = oracle::agreement(first, other);
            let mut line = format!(
                "{} and {} read the same: {}",
                first.cell.id,
                other.cell.id,
                plural(agreement.equal, "sum")
            );
            if !agreement.not_comparable.is_empty() {
                let _ = write!(
                    line,
                    "; not comparable, contents depend on speed: {}",
                    agreement.not_comparable.join(", ")
                );
            }
            lines.push(line);
        }
    }
    lines.extend(record.problems().into_iter().map(|problem| format!("WRONG: {problem}")));
    lines
}
