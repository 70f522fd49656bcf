//! Every kind of run there is: a row for each, and what all records are asked alike.

#[cfg(test)]
mod tests;

use std::path::Path;

use lithify_report::Report;
use serde::Deserialize;

use super::AnyRecord;
use crate::amplification::kind::Amplification;
use crate::chunks::kind::Chunks;
use crate::comparison::results::ResultSet;
use crate::dbbench::kind::DbBench;
use crate::durability::kind::Durability;
use crate::experiment::{AnyExperiment, WorkloadKind};
use crate::kind::choice::{Choice, ChoiceError};
use crate::kind::planned::{Planned, PlannedRun};
use crate::kind::{Declared, Kind, read_directory};
use crate::linkbench::kind::LinkBench;
use crate::loop_experiment::kind::LoopExperiments;
use crate::overwrite::kind::Overwrites;
use crate::page_store::kind::Pages;
use crate::policies::kind::Policies;
use crate::run::RunError;
use crate::run::process::Program;
use crate::run::progress::Listener;
use crate::tables::kind::Tables;

/// A kind of run as a row.
pub struct Row {
    /// [`Kind::NAME`].
    pub name: &'static str,
    /// [`Kind::SCHEMA`].
    pub schema: u32,
    /// Reads a record of this kind.
    pub(super) read: fn(&str) -> serde_json::Result<AnyRecord>,
    /// What the directory of a run keeps, by the text of its plan.
    pub(super) read_directory: ReadDirectory,
    /// Reads a job of this kind and does it.
    measure: fn(&str, Listener<'_>) -> serde_json::Result<Result<(), RunError>>,
    /// How experiment files are made cells of; nothing for a kind that no file declares.
    declared: Option<DeclaredRow>,
}

/// Reads the record of a directory by the text of the plan in it.
type ReadDirectory = fn(&Path, &str) -> serde_json::Result<Result<AnyRecord, RunError>>;

/// What a kind has of experiment files.
#[derive(Clone, Copy)]
struct DeclaredRow {
    workload: WorkloadKind,
    flags: &'static [&'static str],
    plan: fn(&AnyExperiment, &Choice, &Program) -> MadePlan,
}

/// A run that is planned, or why there is none.
type MadePlan = Result<Box<dyn PlannedRun>, PlanError>;

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// What was chosen is not offered.
    Choice(ChoiceError),
    /// The program that would measure cannot be read.
    Program(RunError),
}

/// All kinds.
pub const KINDS: [Row; 10] = [
    row::<LinkBench>().declared_by::<LinkBench>(),
    row::<LoopExperiments>().declared_by::<LoopExperiments>(),
    row::<DbBench>(),
    row::<Overwrites>(),
    row::<Tables>().declared_by::<Tables>(),
    row::<Chunks>().declared_by::<Chunks>(),
    row::<Amplification>(),
    row::<Durability>(),
    row::<Pages>(),
    row::<Policies>(),
];

const fn row<K: Kind>() -> Row {
    Row {
        name: K::NAME,
        schema: K::SCHEMA,
        read: |text| Ok(AnyRecord::of::<K>(serde_json::from_str(text)?)),
        read_directory: |directory, plan| {
            Ok(read_directory::<K>(directory, plan)?.map(AnyRecord::of::<K>))
        },
        measure: measure_job::<K>,
        declared: None,
    }
}

impl Row {
    /// It has experiment files.
    const fn declared_by<K: Declared>(self) -> Row {
        let declared = DeclaredRow { workload: K::WORKLOAD, flags: K::FLAGS, plan: plan_of::<K> };
        Row { declared: Some(declared), ..self }
    }
}

fn measure_job<K: Kind>(
    text: &str,
    listener: Listener<'_>,
) -> serde_json::Result<Result<(), RunError>> {
    let job: K::Job = serde_json::from_str(text)?;
    Ok(K::measure(&job, listener))
}

fn plan_of<K: Declared>(
    experiment: &AnyExperiment,
    choice: &Choice,
    program: &Program,
) -> MadePlan {
    let experiment = K::experiment(experiment).ok_or_else(|| {
        PlanError::Choice(ChoiceError(format!("{} is no experiment of this kind", K::NAME)))
    })?;
    let program = Program { kind: K::NAME, ..program.clone() };
    let build = program.build().map_err(PlanError::Program)?;
    let expanded = K::expand(experiment, choice, &build).map_err(PlanError::Choice)?;
    Ok(Box::new(Planned::<K>::new(expanded, program)))
}

/// The plan of an experiment that `program` measures; `None` for one that a command of its own runs.
///
/// # Errors
/// A choice that the experiment does not offer, no engine or data left, an unreadable program.
pub fn plan(experiment: &AnyExperiment, choice: &Choice, program: &Program) -> Option<MadePlan> {
    let rows = || KINDS.into_iter().filter_map(|row| row.declared);
    let own = rows().find(|row| row.workload == experiment.workload())?;
    if let Some(flag) = choice.flags().into_iter().find(|flag| !own.flags.contains(flag)) {
        let takes = rows().filter(|row| row.flags.contains(&flag));
        let takes: Vec<&str> = takes.map(|row| row.workload.name()).collect();
        let (takes, own) = (takes.join(" and "), own.workload.name());
        let foreign = ChoiceError(format!("{flag} is of {takes}, not of {own}"));
        return Some(Err(PlanError::Choice(foreign)));
    }
    Some((own.plan)(experiment, choice, program))
}

/// The row of a kind.
pub fn find(name: &str) -> Option<Row> {
    KINDS.into_iter().find(|row| row.name == name)
}

/// Does a job, which names its kind.
///
/// # Errors
/// A text that is no job; then what went wrong with it.
pub fn measure(text: &str, listener: Listener<'_>) -> Result<Result<(), RunError>, String> {
    /// What every job says.
    #[derive(Deserialize)]
    struct Head {
        kind: String,
    }
    let head: Head = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let row = find(&head.kind).ok_or_else(|| format!("there is no kind \"{}\"", head.kind))?;
    (row.measure)(text, listener).map_err(|error| error.to_string())
}

/// When the first of its measurements began, seconds since 1970; `None` where that was not kept or
/// nothing was measured.
pub fn started_unix_s(record: &AnyRecord) -> Option<u64> {
    record.0.started_unix_s()
}

/// The figures, one line per cell and phase or test; nothing for kinds that have no such lines.
pub fn csv(record: &AnyRecord) -> Option<String> {
    record.0.csv()
}

/// The figures of a run, to be set beside those of another.
pub fn results(record: &AnyRecord) -> ResultSet {
    record.0.results()
}

/// The command that measures the same; nothing for figures that were kept without the rest of their
/// record.
pub fn command(record: &AnyRecord) -> Option<String> {
    record.0.command()
}

/// The report of a run of any kind.
pub fn report(record: &AnyRecord) -> Report {
    record.0.report()
}

/// The page of a run of any kind.
pub fn page(record: &AnyRecord) -> String {
    lithify_report::page::render(&report(record))
}

/// A record as JSON, with its kind and schema at the top.
///
/// # Errors
/// It is none; figures without their record cannot be written again.
pub fn json(record: &AnyRecord) -> Result<String, RunError> {
    record.0.json()
}
