//! Chunks as a kind of run.

use super::plan::{ChunkChoice, ChunkPlan};
use super::spec::{ChunkCell, SCHEMA};
use super::{csv, measure, page};
use crate::comparison::results::ResultSet;
use crate::experiment::{AnyExperiment, ChunkExperiment, WorkloadKind};
use crate::kind::choice::{Choice, ChoiceError};
use crate::kind::command::{Line, only_engine};
use crate::kind::{Declared, Expanded, Kind, incomplete};
use crate::run::RunError;
use crate::run::cells::{Entries, Job, Run};
use crate::run::progress::Listener;
use lithify_report::Report;

/// Experiments over text in chunks.
pub struct Chunks;

impl Kind for Chunks {
    const NAME: &'static str = "chunks";
    const SCHEMA: u32 = SCHEMA;
    type Plan = ChunkPlan;
    type Record = Run<ChunkPlan>;
    type Job = Job<ChunkCell>;

    fn measure(job: &Job<ChunkCell>, listener: Listener<'_>) -> Result<(), RunError> {
        measure::run_job(job, listener)
    }

    fn record(plan: ChunkPlan, entries: Entries<ChunkCell>) -> Result<Run<ChunkPlan>, RunError> {
        Ok(Run::new(plan, entries))
    }

    fn fault(record: &Run<ChunkPlan>) -> Option<String> {
        match record.plan.cells.len() - record.valid_cells() {
            0 => (!record.is_complete()).then(|| record.problems().join("; ")),
            _ => incomplete::fault(record.valid_cells(), record.plan.cells.len()),
        }
    }

    fn started_unix_s(record: &Run<ChunkPlan>) -> Option<u64> {
        record.entries.results().map(|outcome| outcome.started_unix_s).min()
    }

    fn csv(record: &Run<ChunkPlan>) -> Option<String> {
        Some(csv::render(record))
    }

    fn report(record: &Run<ChunkPlan>) -> Report {
        page::report(record)
    }

    fn results(record: &Run<ChunkPlan>) -> ResultSet {
        super::compared::results(record)
    }

    fn command(record: &Run<ChunkPlan>) -> Option<Line> {
        Some(of_chunks(&record.plan))
    }

    fn name(record: &Run<ChunkPlan>) -> String {
        record.plan.name.clone()
    }
}

impl Declared for Chunks {
    const WORKLOAD: WorkloadKind = WorkloadKind::Chunks;
    const FLAGS: &'static [&'static str] = &["--text"];
    type Experiment = ChunkExperiment;

    fn experiment(any: &AnyExperiment) -> Option<&ChunkExperiment> {
        match any {
            AnyExperiment::Chunks(experiment) => Some(experiment),
            _ => None,
        }
    }

    fn expand(
        experiment: &ChunkExperiment,
        choice: &Choice,
        build: &str,
    ) -> Result<Expanded<ChunkPlan>, ChoiceError> {
        let choice = ChunkChoice {
            scale: choice.scale.clone(),
            arms: choice.arms.clone(),
            engine: choice.engine.clone(),
            repeats: choice.repeats,
            text: choice.text.clone(),
        };
        let plan = ChunkPlan::expand(experiment, &choice, build)?;
        Ok(Expanded { skipped: plan.skipped.clone(), plan })
    }
}

fn of_chunks(plan: &ChunkPlan) -> Line {
    let declared = plan.experiment.scales.get(&plan.scale);
    let mut arms: Vec<String> = Vec::new();
    for arm in plan.cells.iter().map(|cell| cell.arm().to_string()) {
        if !arms.contains(&arm) {
            arms.push(arm);
        }
    }
    let line = Line::of_run(&plan.experiment.name, &plan.scale)
        .with_of(plan.experiment.arms().len(), "--arms", &arms)
        .unless(declared.map(|scale| scale.repeats), "--repeats", plan.sizes.repeats)
        .unless(Some(plan.experiment.workload.text.clone()), "--text", plan.text.clone());
    match only_engine(&plan.name, &plan.engines) {
        Some(engine) => line.with("--engine", engine),
        None => line,
    }
}
