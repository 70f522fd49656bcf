//! Experiments over loops as a kind of run.

use std::borrow::Cow;

use super::plan::LoopPlan;
use super::{LoopRecord, csv, page};
use crate::comparison::results::ResultSet;
use crate::dbbench::measure;
use crate::dbbench::runner::shortened;
use crate::dbbench::spec::{DbJob, SCHEMA};
use crate::kind::Kind;
use crate::kind::command::{Line, only_engine};
use crate::run::RunError;
use crate::run::progress::Listener;
use crate::run::store::ReportFile;
use lithify_report::Report;

/// Experiments over the loops of the classic key-value benchmark.
pub struct LoopExperiments;

impl Kind for LoopExperiments {
    const NAME: &'static str = "loops";
    const SCHEMA: u32 = SCHEMA;
    type Record = LoopRecord;
    type Job = DbJob;

    fn measure(job: &DbJob, listener: Listener<'_>) -> Result<(), RunError> {
        measure::run_job(job, listener)
    }

    fn started_unix_s(record: &LoopRecord) -> Option<u64> {
        record.run.results().map(|result| result.started_unix_s).min()
    }

    fn csv(record: &LoopRecord) -> Option<String> {
        Some(csv::figures(record))
    }

    fn report(record: &LoopRecord) -> Report {
        page::report(record)
    }

    fn results(record: &LoopRecord) -> ResultSet {
        super::compared::results(record)
    }

    fn command(record: &LoopRecord) -> Option<Line> {
        Some(of_loops(&record.plan))
    }

    fn name(record: &LoopRecord) -> String {
        record.plan.cells.name.clone()
    }

    fn kept(record: &LoopRecord) -> Cow<'_, LoopRecord> {
        let run = shortened(&record.run);
        Cow::Owned(LoopRecord { plan: record.plan.clone(), run })
    }

    fn more_files(record: &LoopRecord) -> Vec<ReportFile> {
        vec![(format!("{}-jobs.csv", Self::name(record)), csv::jobs(record))]
    }
}

fn of_loops(plan: &LoopPlan) -> Line {
    let declared = plan.experiment.scales.get(&plan.scale);
    let line = Line::of_run(&plan.experiment.name, &plan.scale)
        .with_of(plan.experiment.arms.len(), "--arms", &plan.arms)
        .unless(declared.map(|scale| scale.repeats), "--repeats", plan.sizes.repeats)
        .unless(declared.map(|scale| scale.test_seconds), "--seconds", plan.sizes.test_seconds)
        .unless(declared.map(|scale| scale.keys), "--keys", plan.sizes.keys);
    match only_engine(&plan.cells.name, &plan.engines) {
        Some(engine) => line.with("--engine", engine),
        None => line,
    }
}
