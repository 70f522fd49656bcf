//! From an experiment and the command line to the cells, in the order in which they run.

use serde::{Deserialize, Serialize};

use super::spec::{SCHEMA, TableCell};
use crate::adapter::EngineName;
use crate::adapter::provider::Content;
use crate::adapter::settings::{DurabilityMode, EngineSettings};
use crate::datasets::TableData;
use crate::experiment::tables::{TableArm, TableExperiment, TableScale};
use crate::experiment::{EngineSizes, WorkloadKind};
use crate::linkbench::plan::{
    ChoiceError, LeftOut, cannot_run, engines_on_disk, find_scale, names, one_codec, override_with,
};
use crate::run::cells::{RunPlan, WorkloadPlan};
use crate::run::file_system::FileSystemRequest;
use crate::run::rotated;

/// What the command line chose.
#[derive(Clone, Debug, Default)]
pub struct TableChoice {
    /// Name of the scale; `smoke` when not given.
    pub scale: Option<String>,
    /// Names of arms; all when not given.
    pub arms: Option<Vec<String>>,
    /// Tables; all of the scale whose data are here when not given.
    pub tables: Option<Vec<TableData>>,
    /// The one engine; those of the experiment that are there when not given.
    pub engine: Option<EngineName>,
    /// Instead of the scale's repeats.
    pub repeats: Option<u64>,
}

/// What a run measures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TablePlan {
    /// The experiment as it was read.
    pub experiment: TableExperiment,
    /// The name of the run, and of its files.
    pub name: String,
    /// Name of the scale.
    pub scale: String,
    /// The scale with the overrides of the command line in it.
    pub sizes: TableScale,
    /// The engines in the order of the tables.
    pub engines: Vec<EngineName>,
    /// The tables that are run, in the order of the report.
    pub tables: Vec<TableData>,
    /// The arms in the order of the tables.
    pub arms: Vec<String>,
    /// What was left out, line by line.
    pub skipped: Vec<String>,
    /// The cells.
    pub cells: Vec<TableCell>,
}

impl RunPlan for TablePlan {
    type Cell = TableCell;

    fn name(&self) -> String {
        self.name.clone()
    }

    fn scale(&self) -> Option<&str> {
        Some(&self.scale)
    }

    fn cells(&self) -> &[TableCell] {
        &self.cells
    }

    fn needed_bytes(&self, cell: &TableCell) -> u64 {
        room_bytes(cell)
    }
}

impl WorkloadPlan for TablePlan {
    const KIND: WorkloadKind = WorkloadKind::Tables;
}

/// Three times the largest table without compression: what lies there, what replaces it, the log.
fn room_bytes(cell: &TableCell) -> u64 {
    let row_bytes = if cell.table.is_wide() { 2_600 } else { 200 };
    3 * cell.rows * row_bytes + (256 << 20)
}

/// The settings of an arm.
fn settings(arm: &TableArm, sizes: &EngineSizes, durability: DurabilityMode) -> EngineSettings {
    let options = arm.options.clone();
    EngineSettings { options, ..one_codec(arm.codec, arm.block_kib, sizes, durability) }
}

/// The chosen arms, in the order of the experiment.
fn choose<'a>(
    experiment: &'a TableExperiment,
    chosen: Option<&[String]>,
) -> Result<Vec<&'a TableArm>, ChoiceError> {
    let Some(chosen) = chosen else { return Ok(experiment.arms.iter().collect()) };
    if let Some(unknown) = chosen.iter().find(|name| experiment.arm(name).is_none()) {
        let names: Vec<&str> = experiment.arms.iter().map(|arm| arm.name.as_str()).collect();
        let names = names.join(", ");
        return Err(ChoiceError(format!("there is no arm \"{unknown}\"; there are: {names}")));
    }
    let arms: Vec<_> = experiment.arms.iter().filter(|arm| chosen.contains(&arm.name)).collect();
    if arms.is_empty() {
        return Err(ChoiceError("no arm was chosen".to_owned()));
    }
    Ok(arms)
}

/// The tables of a scale: those asked for by name, in the order of the experiment, of which none is
/// left out; else those whose data are here, and a line for each other.
fn choose_tables(
    of_scale: &[TableData],
    choice: &TableChoice,
) -> Result<(Vec<TableData>, Vec<String>), ChoiceError> {
    match &choice.tables {
        Some(chosen) => Ok((named_tables(of_scale, chosen)?, Vec::new())),
        None => tables_here(of_scale),
    }
}

fn tables_here(of_scale: &[TableData]) -> Result<(Vec<TableData>, Vec<String>), ChoiceError> {
    let (mut present, mut skipped) = (Vec::new(), Vec::new());
    for table in of_scale {
        match table.available() {
            Ok(()) => present.push(*table),
            Err(missing) => skipped.push(format!("table {table} is skipped: {missing}")),
        }
    }
    if present.is_empty() {
        skipped.push("no table is left".to_owned());
        return Err(ChoiceError(skipped.join("; ")));
    }
    Ok((present, skipped))
}

fn named_tables(
    of_scale: &[TableData],
    chosen: &[TableData],
) -> Result<Vec<TableData>, ChoiceError> {
    for table in chosen {
        if !of_scale.contains(table) {
            let known = names(of_scale.iter().map(|table| table.name()));
            return Err(ChoiceError(format!(
                "--tables: the scale has no rows of {table}; it has: {known}"
            )));
        }
        table.available().map_err(|missing| ChoiceError(missing.to_string()))?;
    }
    Ok(of_scale.iter().filter(|table| chosen.contains(table)).copied().collect())
}

/// Of the tables of page counts, whose rows are small, updates are compared in all modes.
fn has_modes(table: TableData) -> bool {
    !table.is_wide()
}

/// Whether no arm before it differs from it in the size of its blocks alone.
fn is_first(arms: &[&TableArm], arm: &TableArm, engine: &EngineName) -> bool {
    let same = |other: &&TableArm| {
        (other.codec, &other.options, &other.file_system)
            == (arm.codec, &arm.options, &arm.file_system)
            && other.is_of(engine)
    };
    arms.iter().copied().find(same) == Some(arm)
}

/// Why the file system that an arm asks for cannot be made here, if it asks for one.
fn has_no_place(arm: &TableArm) -> Option<String> {
    arm.file_system.as_ref()?.available().err().map(|error| error.to_string())
}

impl TablePlan {
    /// Expands `experiment` for the engines and data that are here. `build` identifies the program
    /// that will measure.
    ///
    /// Each arm runs on all engines in turn, and each repeat begins with another arm and another
    /// engine, so that a machine that drifts hurts all alike.
    ///
    /// # Errors
    /// An unknown scale, arm or engine, a chosen table that is not here or not of the scale, no
    /// engine or table left, an impossible number.
    pub fn expand(
        experiment: &TableExperiment,
        choice: &TableChoice,
        build: &str,
    ) -> Result<TablePlan, ChoiceError> {
        let (scale, mut sizes) = find_scale(&experiment.scales, choice.scale.as_deref())?;
        override_with("--repeats", choice.repeats, 1..=100, &mut sizes.repeats)?;
        let workload = &experiment.workload;
        let arms = choose(experiment, choice.arms.as_deref())?;
        let (engines, mut skipped) =
            engines_on_disk(&workload.engines, choice.engine.as_ref(), Content::Table)?;
        let of_scale = workload.tables.iter().filter(|table| sizes.rows.contains_key(table));
        let (tables, missing) = choose_tables(&of_scale.copied().collect::<Vec<_>>(), choice)?;
        skipped.extend(missing);
        let (mut cells, mut left_out) = (Vec::new(), LeftOut::default());
        for repeat in 0..sizes.repeats {
            for (table, arm) in tables
                .iter()
                .flat_map(|table| rotated(&arms, repeat as usize).map(move |arm| (*table, *arm)))
            {
                let is_of = |engine: &&EngineName| arm.is_of(engine);
                for engine in rotated(&engines, repeat as usize).filter(is_of) {
                    let settings = settings(arm, &sizes.sizes(), workload.durability);
                    let is_first = is_first(&arms, arm, engine);
                    let lacking = cannot_run(engine, &settings, Content::Table, is_first);
                    if let Some(why) = lacking.or_else(|| has_no_place(arm)) {
                        left_out.note(engine, arm.name.clone(), why);
                        continue;
                    }
                    let mut cell = TableCell {
                        schema: SCHEMA,
                        id: format!("{engine}-{}-{table}-r{repeat}", arm.name),
                        engine: engine.clone(),
                        arm: arm.name.clone(),
                        table,
                        repeat,
                        settings,
                        rows: sizes.rows.get(&table).copied().unwrap_or(0),
                        insert_rows: workload.insert_rows,
                        access: workload.access,
                        updates: sizes.updates,
                        mode_updates: if has_modes(table) { sizes.mode_updates } else { 0 },
                        mode_gap_ms: sizes.mode_gap_ms,
                        wait_seconds: workload.wait_seconds,
                        seed: workload.seed + repeat,
                        file_system: None,
                        build: build.to_owned(),
                    };
                    let room_bytes = room_bytes(&cell);
                    let own = arm.file_system.as_ref();
                    cell.file_system = own.map(|own| FileSystemRequest::new(own, room_bytes));
                    cells.push(cell);
                }
            }
        }
        skipped.extend(left_out.lines());
        if cells.is_empty() {
            return Err(ChoiceError(skipped.join("; ")));
        }
        let mut name = format!("{}-{scale}", experiment.name);
        if let Some(engine) = &choice.engine {
            name.push_str(&format!("-{engine}"));
        }
        let arms = arms.iter().map(|arm| arm.name.clone()).collect();
        let experiment = experiment.clone();
        Ok(TablePlan { experiment, name, scale, sizes, engines, tables, arms, skipped, cells })
    }
}
