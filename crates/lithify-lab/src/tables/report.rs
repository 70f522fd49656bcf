//! The report: a table of figures per data set, the three ways to update, and the published figures
//! and ratios beside ours.

use std::collections::BTreeMap;

use super::figures::{column_value, mode_device_kb, mode_process_kb, mode_spread, results, spread};
use super::plan::TablePlan;
use super::spec::TableOutcome;
use crate::adapter::EngineName;
use crate::adapter::cross_count::{self, CrossCounts};
use crate::datasets::TableData;
use crate::experiment::tables::{TableArm, TableColumn, TableHeadline, UpdateMode};
use crate::report::card::{machine_lines, tree};
use crate::report::compare::{
    CLAIM_COLUMNS, Comparison, FOREIGN_PERCENT_MAX, claim, claim_cells, sentence,
};
use crate::report::figures::{figure, figure_or_dash};
use crate::report::paired::{Basis, Family, Sides};
use crate::report::tables::{Align, Grid};
use crate::report::{cross_counts, days};
use crate::run::cells::Run;
use crate::statistics::verdicts::Rounds;

use crate::adapter::table::Rest;

/// What stands over the modes.
pub(crate) const MODES_HEADING: &str = "KB written per update by mode, maintenance included and compactions not; to the device with them";

/// Whether an arm was to be measured on an engine.
fn is_planned(run: &Run<TablePlan>, engine: &EngineName, arm: &str) -> bool {
    run.plan.cells.iter().any(|cell| cell.engine == *engine && cell.arm == arm)
}

/// Every arm on every engine that it runs on.
pub(crate) fn arms(run: &Run<TablePlan>) -> Vec<(&EngineName, &TableArm)> {
    let arms = run.plan.arms.iter().filter_map(|name| run.plan.experiment.arm(name));
    let arms: Vec<&TableArm> = arms.collect();
    let of_engine = |engine| arms.iter().map(move |arm| (engine, *arm));
    let pairs = run.plan.engines.iter().flat_map(of_engine);
    pairs.filter(|(engine, arm)| is_planned(run, engine, &arm.name)).collect()
}

/// Name and version of an engine as it says.
fn engine_names(run: &Run<TablePlan>) -> String {
    let mut names: Vec<String> = Vec::new();
    for outcome in run.entries.measured() {
        let labels = &outcome.capabilities.labels;
        let name = match labels.is_empty() {
            true => outcome.engine_name.clone(),
            false => format!("{} ({})", outcome.engine_name, labels.join(", ")),
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join("; ")
}

/// What the figures were taken on, and what all arms had in common.
pub(crate) fn card(run: &Run<TablePlan>) -> Vec<(&'static str, String)> {
    let Some(outcome) = run.entries.measured().next() else {
        return Vec::new();
    };
    let (cell, sizes) = (&outcome.cell, &run.plan.sizes);
    let mut lines = machine_lines(&outcome.machine);
    let began =
        run.entries.results().map(|of| (of.cell.arm.as_str(), of.cell.repeat, of.started_unix_s));
    lines.extend(days::line(began).map(|days| ("measured on", days)));
    lines.extend([
        ("engines", engine_names(run)),
        (
            "memory budget",
            format!("{} MiB, memtable {} KiB", sizes.memory_budget_mib, sizes.memtable_kib),
        ),
        ("tree", tree(&cell.settings)),
        ("durability", cell.settings.durability.name().to_owned()),
        ("load", format!("{} rows a statement, in the order of the primary key", cell.insert_rows)),
        (
            "updates",
            format!(
                "{}, single ones in random order; of wide tables spaced ones in one transaction",
                sizes.updates
            ),
        ),
        ("maintenance", maintenance(run)),
    ]);
    lines
}

/// How the waits for maintenance ended.
fn maintenance(run: &Run<TablePlan>) -> String {
    let steps = run.entries.results().flat_map(TableOutcome::steps);
    let (mut waits, mut timed_out, mut longest) = (0, 0, 0.0_f64);
    for step in steps {
        waits += 1;
        timed_out += u64::from(step.rest == Rest::TimedOut);
        longest = longest.max(step.maintenance.seconds);
    }
    let limit = run.plan.experiment.workload.wait_seconds;
    format!(
        "waited for until the engine is idle ({} of {waits} waits, at most {} s), else for {limit} \
         s ({timed_out})",
        waits - timed_out,
        figure(longest)
    )
}

pub(crate) fn heading(run: &Run<TablePlan>, data: TableData, medians: &str) -> String {
    let outcome = run.entries.results().find(|outcome| outcome.cell.table == data);
    let Some(outcome) = outcome else { return format!("{data}: nothing was measured") };
    format!(
        "{data}: {} rows, {} MB of columns (medians of {medians}; sizes and reads in GB, per \
         update in KB)",
        outcome.rows,
        figure(outcome.logical_bytes as f64 / 1e6)
    )
}

/// What is wrong with an arm's row: repeats that failed, are void or were not measured; and a block
/// that the engine does not say it follows.
fn remark(run: &Run<TablePlan>, outcomes: &[&TableOutcome]) -> String {
    let (valid, all) = (outcomes.len() as u64, run.plan.sizes.repeats);
    let mut parts = Vec::new();
    if valid != all {
        parts.push(format!("{valid} of {all} repeats"));
    }
    if outcomes.iter().any(|outcome| !outcome.capabilities.block_size) {
        parts.push("blocks as the engine likes".to_owned());
    }
    let own = outcomes.iter().find_map(|outcome| outcome.file_system.as_ref());
    parts.extend(own.map(|own| format!("on {}", own.describe())));
    let refused: Vec<&String> =
        outcomes.iter().filter_map(|outcome| outcome.updates_refused.as_ref()).collect();
    if let Some(why) = refused.first() {
        let of = match refused.len() as u64 {
            all if all == valid => String::new(),
            some => format!(" in {some} of {valid}"),
        };
        parts.push(format!("no updates{of}: {why}"));
    }
    parts.join(", ")
}

/// The codec in force, as the engine says, or else the one that it was told.
fn codec(arm: &TableArm, outcomes: &[&TableOutcome]) -> String {
    let found = outcomes.iter().find_map(|outcome| outcome.codec_in_force.clone());
    found.unwrap_or_else(|| arm.codec.to_string())
}

/// The columns in the published order.
pub(crate) fn columns(run: &Run<TablePlan>, data: TableData) -> Grid {
    let mut headings =
        vec![("engine", Align::Left), ("codec", Align::Left), ("block", Align::Right)];
    headings.extend(TableColumn::MAIN.iter().map(|column| (column.name(), Align::Right)));
    headings.extend([("arm", Align::Left), ("remark", Align::Left)]);
    let mut rows = Vec::new();
    for (engine, arm) in arms(run) {
        let outcomes = results(run, data, engine, &arm.name);
        let mut row =
            vec![engine.to_string(), codec(arm, &outcomes), format!("{} KiB", arm.block_kib)];
        row.extend(
            TableColumn::MAIN.iter().map(|column| {
                figure_or_dash(spread(&outcomes, *column).map(|spread| spread.median))
            }),
        );
        row.extend([arm.name.clone(), remark(run, &outcomes)]);
        rows.push(row);
    }
    Grid::new(&headings, rows)
}

/// The published figures of a table, in words.
pub(crate) fn published(run: &Run<TablePlan>, data: TableData) -> String {
    let figures = run.plan.experiment.published.iter().filter(|figure| figure.table == data);
    let told = figures.map(|of| format!("{} {} {}", of.system, of.column, figure(of.value)));
    told.collect::<Vec<_>>().join(", ")
}

/// What an update of an arm writes in each mode, as the repeats say.
pub(crate) struct ArmModes<'a> {
    /// On which engine.
    pub engine: &'a EngineName,
    /// Of which arm.
    pub arm: &'a str,
    /// KB handed to write calls, mode by mode; of modes that were not measured nothing.
    pub process_kb: Vec<Option<f64>>,
    /// KB to the device.
    device_kb: Vec<Option<f64>>,
}

impl ArmModes<'_> {
    /// Whether the figures fall from mode to mode, as published.
    pub(crate) fn order(&self) -> ModeOrder {
        order(&self.process_kb)
    }

    /// The figures, mode by mode: `3.00 : 2.00 : 1.00`.
    pub(crate) fn figures(&self) -> String {
        let figures = self.process_kb.iter().flatten().map(|kb| figure(*kb));
        figures.collect::<Vec<_>>().join(" : ")
    }
}

/// How what an update writes changes from mode to mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ModeOrder {
    /// It falls.
    AsPublished,
    /// Of two modes it is about the same, and it rises nowhere.
    Alike,
    /// It rises somewhere.
    Other,
    /// A mode was not measured.
    NotMeasured,
}

/// Modes of which one writes at most so much more than the next are alike: a page more or less of
/// the log is as much.
const ALIKE_RATIO: f64 = 1.02;

/// Whether figures fall from mode to mode.
pub(super) fn order(process_kb: &[Option<f64>]) -> ModeOrder {
    let written: Option<Vec<f64>> = process_kb.iter().copied().collect();
    let Some(written) = written.filter(|written| written.len() == UpdateMode::ALL.len()) else {
        return ModeOrder::NotMeasured;
    };
    let mut pairs = written.windows(2).map(|pair| (pair[0], pair[1]));
    if pairs.clone().all(|(earlier, later)| earlier > later * ALIKE_RATIO) {
        return ModeOrder::AsPublished;
    }
    match pairs.any(|(earlier, later)| later > earlier * ALIKE_RATIO) {
        true => ModeOrder::Other,
        false => ModeOrder::Alike,
    }
}

/// The arms of which modes of updates were measured over a table.
pub(crate) fn arm_modes(run: &Run<TablePlan>, data: TableData) -> Vec<ArmModes<'_>> {
    let of_arm = |(engine, arm): (_, &'_ TableArm)| {
        let outcomes = results(run, data, engine, &arm.name);
        let medians = |value| {
            let median = |mode| mode_spread(&outcomes, mode, value).map(|spread| spread.median);
            UpdateMode::ALL.into_iter().map(median).collect()
        };
        let is_measured = outcomes.iter().any(|outcome| !outcome.modes.is_empty());
        is_measured.then(|| (medians(mode_process_kb), medians(mode_device_kb)))
    };
    let modes = |(engine, arm)| {
        let (process_kb, device_kb) = of_arm((engine, arm))?;
        Some(ArmModes { engine, arm: &arm.name, process_kb, device_kb })
    };
    arms(run).into_iter().filter_map(modes).collect()
}

/// The same as a table; `None` for a table without modes.
pub(crate) fn modes(all: &[ArmModes<'_>]) -> Option<Grid> {
    let mut headings = vec![("engine", Align::Left), ("arm", Align::Left)];
    for mode in UpdateMode::ALL {
        headings.extend([(mode.name(), Align::Right), ("device", Align::Right)]);
    }
    headings.push(("published order", Align::Left));
    let row = |of: &ArmModes<'_>| {
        let mut row = vec![of.engine.to_string(), of.arm.to_owned()];
        for (process, device) in of.process_kb.iter().zip(&of.device_kb) {
            row.extend([figure_or_dash(*process), figure_or_dash(*device)]);
        }
        row.push(match of.order() {
            ModeOrder::AsPublished => "yes".to_owned(),
            ModeOrder::Alike => format!("n.s.: {}", of.figures()),
            ModeOrder::Other => format!("no: {}", of.figures()),
            ModeOrder::NotMeasured => "not measured".to_owned(),
        });
        row
    };
    (!all.is_empty()).then(|| Grid::new(&headings, all.iter().map(row).collect()))
}

/// What was published of an update in each mode, in words; empty without.
pub(crate) fn published_modes(run: &Run<TablePlan>) -> String {
    let published = run.plan.experiment.published_mode.iter().map(|of| {
        let (pages, bytes) = (figure(of.pages), figure(of.log_bytes));
        format!("{} {pages} pages and {bytes} bytes of log", of.mode.name())
    });
    published.collect::<Vec<_>>().join(", ")
}

/// The largest share of the CPUs that other processes took while a step ran, percent.
pub(crate) fn foreign_percent(run: &Run<TablePlan>) -> f64 {
    run.entries.results().map(|outcome| outcome.foreign_percent).fold(0.0, f64::max)
}

/// What is wrong with the cells, and what others took of the machine.
pub(crate) fn checks(run: &Run<TablePlan>) -> Vec<String> {
    let mut lines = vec![format!(
        "{} of {} cells count: the aggregate's answer, the rows, the index and the sum of what was \
         updated are the generator's",
        run.valid_cells(),
        run.plan.cells.len()
    )];
    lines.extend(run.plan.skipped.iter().cloned());
    lines.extend(run.problems());
    lines.extend(counted_by_both(run));
    let foreign = foreign_percent(run);
    let doubt = if foreign > FOREIGN_PERCENT_MAX { ": THE MACHINE WAS NOT QUIET" } else { "" };
    lines.push(format!("other processes took at most {} % of the CPUs{doubt}", figure(foreign)));
    lines
}

/// What each engine counted of what it was asked for, over all of its cells.
fn counted_by_both(run: &Run<TablePlan>) -> Vec<String> {
    let mut sums: BTreeMap<&str, CrossCounts> = BTreeMap::new();
    for outcome in run.entries.results() {
        let sum = sums.entry(outcome.cell.engine.name()).or_default();
        outcome.steps().for_each(|step| cross_count::add(sum, &step.cross_counts));
    }
    let told = |(engine, sum): (&str, CrossCounts)| {
        Some(format!("{engine}'s own counters: {}", cross_counts::line(&sum)?))
    };
    sums.into_iter().filter_map(told).collect()
}

/// A published ratio on an engine, with what was measured of it.
pub(crate) struct Claimed<'a> {
    /// As published.
    pub item: &'a TableHeadline,
    /// On which engine.
    pub engine: &'a EngineName,
    /// As measured, if it was.
    pub comparison: Option<Comparison>,
}

/// All claims of a run, judged together.
pub(crate) struct Claims<'a> {
    /// Every published ratio on every engine that both of its arms run on.
    pub items: Vec<Claimed<'a>>,
    /// On what the verdicts rest.
    pub basis: Basis,
}

/// Judges every published ratio.
pub(crate) fn claimed(run: &Run<TablePlan>) -> Claims<'_> {
    let mut family = Family::default();
    let mut added = Vec::new();
    for item in &run.plan.experiment.headlines {
        let arms = [item.arm.as_str(), item.base.as_str()];
        let planned =
            |engine: &&EngineName| arms.into_iter().all(|arm| is_planned(run, engine, arm));
        for engine in run.plan.engines.iter().filter(planned) {
            let of = |arm: &str| results(run, item.table, engine, arm);
            let rounds = |arm: &str| -> Rounds {
                let value =
                    |of: &TableOutcome| Some((of.cell.repeat, column_value(of, item.column)?));
                of(arm).into_iter().filter_map(value).collect()
            };
            let began = |arm: &str| -> Vec<(u64, u64)> {
                of(arm).iter().map(|of| (of.cell.repeat, of.started_unix_s)).collect()
            };
            let place = family.add(Sides {
                kind: item.column.to_string(),
                values: arms.map(rounds),
                other_day: days::apart(&began(arms[0]), &began(arms[1])),
                ..Sides::default()
            });
            added.push((item, engine, place));
        }
    }
    let findings = family.judge();
    let items = added.into_iter().map(|(item, engine, place)| Claimed {
        item,
        engine,
        comparison: findings.get(place).map(|found| claim(found, item.published)),
    });
    Claims { items: items.collect(), basis: findings.basis.clone() }
}

/// The published ratios beside the measured ones.
pub(crate) fn headlines(claims: &Claims<'_>) -> Grid {
    let row = |Claimed { item, engine, comparison }: &Claimed<'_>| {
        let mut row = vec![
            engine.to_string(),
            item.table.to_string(),
            item.column.to_string(),
            format!("{} / {}", item.arm, item.base),
        ];
        row.extend(claim_cells(item.published, comparison.as_ref(), "not measured"));
        row
    };
    let mut headings = vec![
        ("engine", Align::Left),
        ("table", Align::Left),
        ("figure", Align::Left),
        ("ratio", Align::Left),
    ];
    headings.extend(CLAIM_COLUMNS);
    Grid::new(&headings, claims.items.iter().map(row).collect())
}

/// What each published ratio came to, in words.
pub(crate) fn sentences(claims: &Claims<'_>) -> Vec<String> {
    let says = |Claimed { item, engine, comparison }: &Claimed<'_>| {
        let says = sentence(&item.claim, item.column.name(), item.published, comparison.as_ref());
        format!("{engine}, {}: {says}", item.table)
    };
    claims.items.iter().map(says).collect()
}
