//! From records to figures in one form.
//!
//! A subject's settings are the description of its cells without what names them and what is
//! random. All have to be the same in two runs that are compared but for what tells the arms of a
//! run apart (engine, codecs, options of an engine's own).

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::results::{ResultSet, Subject};
use super::unpaired;
use crate::dbbench::figures::{METRICS, measured};
use crate::dbbench::runner::DbRecord;
use crate::dbbench::spec::{DbResult, Role};
use crate::experiment::loops::LoopColumn;
use crate::linkbench::cell::Purpose;
use crate::linkbench::record::LinkBenchRecord;
use crate::linkbench::report::pairs;
use crate::loop_experiment::LoopRecord;
use crate::loop_experiment::figures::{BESIDE, Figures as LoopFigures, column_value};
use crate::meter::machine::Machine;
use crate::overwrite::{self, OverwriteRecord};
use crate::records::AnyRecord;
use crate::records::digest::{self, Digest};
use crate::report::figures::Figures;
use crate::report::paired::{Better, Reading};
use crate::statistics::verdicts::Scale;

/// The figures of a run of any kind.
pub fn results(record: &AnyRecord) -> ResultSet {
    match record {
        AnyRecord::LinkBench(record) => linkbench(record),
        AnyRecord::Loops(record) => loops(record),
        AnyRecord::Db(record) => db(record),
        AnyRecord::Overwrite(record) => overwrites(record),
        AnyRecord::Tables(run) => unpaired::tables(run),
        AnyRecord::Chunks(run) => unpaired::chunks(run),
        AnyRecord::Amplification(record) => unpaired::amplification(record),
        AnyRecord::Durability(record) => unpaired::durability(record),
        AnyRecord::Pages(record) => unpaired::pages(record),
        AnyRecord::Digest(digest) => of_digest(digest),
    }
}

/// What tells the arms of a run apart. Two runs may differ in it, and say so.
const OF_ARM: [&str; 6] =
    ["codec_level0", "codec_small", "codec_middle", "codec_bottom", "options", "allocator"];

/// What is no setting: names and randomness.
const NO_SETTINGS: [&str; 11] = [
    "schema",
    "id",
    "purpose",
    "role",
    "arm",
    "repeat",
    "engine",
    "seed",
    "build",
    "benchmarks",
    "use_existing",
];

/// A subject with the settings in a description of its cells.
pub(super) fn subject(name: &str, engine: &str, spec: &impl Serialize) -> Subject {
    let mut settings = BTreeMap::new();
    if let Ok(value) = serde_json::to_value(spec) {
        flatten(&value, &mut settings);
    }
    let of_arm = OF_ARM.iter().filter_map(|name| settings.remove_entry(*name)).collect();
    Subject {
        name: name.to_owned(),
        arm: String::new(),
        engine: engine.to_owned(),
        settings,
        of_arm,
    }
}

/// The settings by their names; nested ones by their own names alone, those of an engine's own as
/// one.
fn flatten(value: &Value, found: &mut BTreeMap<String, String>) {
    let Value::Object(fields) = value else { return };
    for (name, field) in fields.iter().filter(|(name, _)| !NO_SETTINGS.contains(&name.as_str())) {
        match field {
            Value::Object(options) if name == "options" => {
                let said = options.iter().map(|(name, value)| format!("{name}={value}"));
                let said: Vec<String> = said.collect();
                found.extend((!said.is_empty()).then(|| (name.clone(), said.join(", "))));
            }
            Value::Object(_) => flatten(field, found),
            Value::Null => {}
            Value::String(text) => {
                found.insert(name.clone(), text.clone());
            }
            other => {
                found.insert(name.clone(), other.to_string());
            }
        }
    }
}

pub(super) fn machine(machine: &Machine) -> BTreeMap<String, String> {
    let facts = [
        ("machine's CPU", machine.cpu.clone()),
        ("machine's CPUs", machine.cpus.to_string()),
        ("machine's memory in MiB", (machine.memory_bytes >> 20).to_string()),
        ("kernel", machine.kernel.clone()),
        ("file system", machine.file_system.clone()),
        ("build", machine.build.clone()),
        ("allocator", machine.allocator.clone()),
    ];
    facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn linkbench(record: &LinkBenchRecord) -> ResultSet {
    let figures = Figures::of(record);
    let plan = &record.plan;
    let mut set = ResultSet {
        title: format!("{} (scale {})", plan.experiment.title, plan.scale),
        ..ResultSet::default()
    };
    for arm in &plan.arms {
        let again = figures.control(arm);
        for result in figures.results(arm).iter().chain(&again) {
            set.measured_on(machine(&result.machine), result.file_system.is_some());
            set.subject(subject(arm, &result.engine_name, &result.spec));
            set.note_start(arm, result.spec.repeat, result.started_unix_s);
            let is_control = result.spec.purpose == Purpose::Control;
            for measure in pairs::measures(&figures, result) {
                let name = [arm.as_str(), measure.phase.name(), &measure.name];
                set.add(name, measure.reading, (result.spec.repeat, measure.value), is_control);
            }
        }
    }
    set
}

/// Adds every figure of every step of one result.
fn add_steps(
    set: &mut ResultSet,
    name: &str,
    result: &DbResult,
    driver: Option<&DbResult>,
    test: impl Fn(usize, &str) -> String,
) {
    set.machine = machine(&result.machine);
    set.subject(subject(name, &result.engine_name, &result.cell.spec));
    set.note_start(name, result.cell.repeat, result.started_unix_s);
    let is_control = result.cell.role == Role::Control;
    for (index, measured) in measured(result, driver).enumerate() {
        let test = test(index, &measured.step.spec.to_string());
        for metric in &METRICS {
            if let Some(value) = (metric.value)(&measured) {
                let figure = [name, &test, &metric.heading()];
                set.add(figure, metric.reading(), (result.cell.repeat, value), is_control);
            }
        }
    }
}

fn db(record: &DbRecord) -> ResultSet {
    let mut set = ResultSet { title: record.plan.name.clone(), ..ResultSet::default() };
    let stored = record.results().filter(|result| result.cell.role != Role::Driver);
    for result in stored {
        let spec = &result.cell.spec;
        let subject = format!("{} {}", spec.engine, spec.settings.ladder().file_name());
        let test = |index: usize, step: &str| format!("{}. {step}", index + 1);
        add_steps(&mut set, &subject, result, record.driver(), test);
    }
    set
}

fn loops(record: &LoopRecord) -> ResultSet {
    let figures = LoopFigures::of(record);
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

fn overwrites(record: &OverwriteRecord) -> ResultSet {
    let result = record.result.as_ref().unwrap_or(&record.driver);
    let spec = &result.spec;
    let name = format!("{} {}", spec.engine, spec.settings.ladder().file_name());
    let mut set = ResultSet {
        title: format!("overwrites on {}", result.engine_name),
        machine: machine(&result.machine),
        subjects: vec![subject(&name, &result.engine_name, spec)],
        ..ResultSet::default()
    };
    if let Some(moment) = result.started_unix_s {
        set.note_start(&name, 0, moment);
    }
    for figure in overwrite::figures::of(result, &record.driver) {
        set.add([&name, "overwrite", figure.name], figure.reading, (0, figure.value), false);
    }
    set
}

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

fn of_digest(digest: &Digest) -> ResultSet {
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
