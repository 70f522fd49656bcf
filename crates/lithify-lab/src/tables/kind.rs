//! Tables as a kind of run.

use super::plan::{TableChoice, TablePlan};
use super::spec::{SCHEMA, TableCell};
use super::{csv, measure, page};
use crate::comparison::results::ResultSet;
use crate::experiment::{AnyExperiment, TableExperiment, WorkloadKind};
use crate::kind::choice::{Choice, ChoiceError};
use crate::kind::command::{Line, only_engine};
use crate::kind::{Declared, Expanded, Kind, incomplete};
use crate::run::RunError;
use crate::run::cells::{Entries, Job, Run};
use crate::run::progress::Listener;
use lithify_report::Report;

/// Experiments over tables of rows.
pub struct Tables;

impl Kind for Tables {
    const NAME: &'static str = "tables";
    const SCHEMA: u32 = SCHEMA;
    type Plan = TablePlan;
    type Record = Run<TablePlan>;
    type Job = Job<TableCell>;

    fn measure(job: &Job<TableCell>, listener: Listener<'_>) -> Result<(), RunError> {
        measure::run_job(job, listener)
    }

    fn record(plan: TablePlan, entries: Entries<TableCell>) -> Result<Run<TablePlan>, RunError> {
        Ok(Run::new(plan, entries))
    }

    fn fault(record: &Run<TablePlan>) -> Option<String> {
        match record.plan.cells.len() - record.valid_cells() {
            0 => (!record.is_complete()).then(|| record.problems().join("; ")),
            _ => incomplete::fault(record.valid_cells(), record.plan.cells.len()),
        }
    }

    fn started_unix_s(record: &Run<TablePlan>) -> Option<u64> {
        record.entries.results().map(|outcome| outcome.started_unix_s).min()
    }

    fn csv(record: &Run<TablePlan>) -> Option<String> {
        Some(csv::render(record))
    }

    fn report(record: &Run<TablePlan>) -> Report {
        page::report(record)
    }

    fn results(record: &Run<TablePlan>) -> ResultSet {
        super::compared::results(record)
    }

    fn command(record: &Run<TablePlan>) -> Option<Line> {
        Some(of_tables(&record.plan))
    }

    fn name(record: &Run<TablePlan>) -> String {
        record.plan.name.clone()
    }
}

impl Declared for Tables {
    const WORKLOAD: WorkloadKind = WorkloadKind::Tables;
    const FLAGS: &'static [&'static str] = &["--tables"];
    type Experiment = TableExperiment;

    fn experiment(any: &AnyExperiment) -> Option<&TableExperiment> {
        match any {
            AnyExperiment::Tables(experiment) => Some(experiment),
            _ => None,
        }
    }

    fn expand(
        experiment: &TableExperiment,
        choice: &Choice,
        build: &str,
    ) -> Result<Expanded<TablePlan>, ChoiceError> {
        let choice = TableChoice {
            scale: choice.scale.clone(),
            arms: choice.arms.clone(),
            tables: choice.tables.clone(),
            engine: choice.engine.clone(),
            repeats: choice.repeats,
        };
        let plan = TablePlan::expand(experiment, &choice, build)?;
        Ok(Expanded { skipped: plan.skipped.clone(), plan })
    }
}

fn of_tables(plan: &TablePlan) -> Line {
    let declared = plan.experiment.scales.get(&plan.scale);
    let line = Line::of_run(&plan.experiment.name, &plan.scale)
        .with_of(plan.experiment.arms.len(), "--arms", &plan.arms)
        .unless(declared.map(|scale| scale.repeats), "--repeats", plan.sizes.repeats);
    match only_engine(&plan.name, &plan.engines) {
        Some(engine) => line.with("--engine", engine),
        None => line,
    }
}
