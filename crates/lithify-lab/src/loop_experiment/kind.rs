//! Experiments over loops as a kind of run.

use std::borrow::Cow;

use super::plan::{LoopChoice, LoopPlan};
use super::{LoopRecord, csv, page};
use crate::adapter::provider::Content;
use crate::comparison::results::ResultSet;
use crate::dbbench::measure;
use crate::dbbench::plan::{DbRecord, shortened};
use crate::dbbench::spec::{DbCell, DbJob, SCHEMA};
use crate::experiment::{AnyExperiment, LoopExperiment, WorkloadKind};
use crate::kind::choice::{Choice, ChoiceError};
use crate::kind::command::{Line, only_engine};
use crate::kind::{Declared, Expanded, Kind, incomplete};
use crate::linkbench::plan::engines_here;
use crate::run::RunError;
use crate::run::cells::Entries;
use crate::run::progress::Listener;
use crate::run::store::ReportFile;
use lithify_report::Report;

/// Experiments over the loops of the classic key-value benchmark.
pub struct LoopExperiments;

impl Kind for LoopExperiments {
    const NAME: &'static str = "loops";
    const SCHEMA: u32 = SCHEMA;
    type Plan = LoopPlan;
    type Record = LoopRecord;
    type Job = DbJob;

    fn measure(job: &DbJob, listener: Listener<'_>) -> Result<(), RunError> {
        measure::run_job(job, listener)
    }

    fn record(plan: LoopPlan, entries: Entries<DbCell>) -> Result<LoopRecord, RunError> {
        let run = DbRecord::new(plan.cells.clone(), entries);
        Ok(LoopRecord { plan, run })
    }

    fn fault(record: &LoopRecord) -> Option<String> {
        incomplete::fault(record.valid_cells(), record.plan.cells.cells.len())
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

impl Declared for LoopExperiments {
    const WORKLOAD: WorkloadKind = WorkloadKind::DbBench;
    const FLAGS: &'static [&'static str] = &["--keys", "--seconds"];
    type Experiment = LoopExperiment;

    fn experiment(any: &AnyExperiment) -> Option<&LoopExperiment> {
        match any {
            AnyExperiment::Loops(experiment) => Some(experiment),
            _ => None,
        }
    }

    fn expand(
        experiment: &LoopExperiment,
        choice: &Choice,
        build: &str,
    ) -> Result<Expanded<LoopPlan>, ChoiceError> {
        let own = LoopChoice {
            scale: choice.scale.clone(),
            arms: choice.arms.clone(),
            engine: choice.engine.clone(),
            repeats: choice.repeats,
            test_seconds: choice.seconds,
            keys: choice.keys,
        };
        let declared = &experiment.workload.engines;
        let (engines, skipped) = engines_here(declared, own.engine.as_ref(), Content::Keys)?;
        let plan = LoopPlan::expand(experiment, &engines, &own, build)?;
        Ok(Expanded { plan, skipped })
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
