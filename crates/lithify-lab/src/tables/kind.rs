//! Tables as a kind of run.

use super::plan::TablePlan;
use super::spec::{SCHEMA, TableCell};
use super::{csv, measure, page};
use crate::comparison::results::ResultSet;
use crate::kind::Kind;
use crate::kind::command::{Line, only_engine};
use crate::run::RunError;
use crate::run::cells::{Job, Run};
use crate::run::progress::Listener;
use lithify_report::Report;

/// Experiments over tables of rows.
pub struct Tables;

impl Kind for Tables {
    const NAME: &'static str = "tables";
    const SCHEMA: u32 = SCHEMA;
    type Record = Run<TablePlan>;
    type Job = Job<TableCell>;

    fn measure(job: &Job<TableCell>, listener: Listener<'_>) -> Result<(), RunError> {
        measure::run_job(job, listener)
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
