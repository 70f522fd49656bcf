//! LinkBench as a kind of run.

use std::borrow::Cow;

use super::cell::{CellSpec, SCHEMA};
use super::plan::{self, Plan, leave_out_missing};
use super::record::LinkBenchRecord;
use super::{measure, report};
use crate::adapter::EngineName;
use crate::comparison::results::ResultSet;
use crate::experiment::{AnyExperiment, Experiment, WorkloadKind};
use crate::kind::choice::{Choice, ChoiceError};
use crate::kind::command::{Line, joined};
use crate::kind::{Declared, Expanded, Kind, incomplete};
use crate::run::RunError;
use crate::run::cells::{Entries, Job};
use crate::run::progress::Listener;
use lithify_report::Report;

/// Experiments over the social graph.
pub struct LinkBench;

impl Kind for LinkBench {
    const NAME: &'static str = "linkbench";
    const SCHEMA: u32 = SCHEMA;
    type Plan = Plan;
    type Record = LinkBenchRecord;
    type Job = Job<CellSpec>;

    fn measure(job: &Job<CellSpec>, listener: Listener<'_>) -> Result<(), RunError> {
        measure::run_job(job, listener)
    }

    fn record(plan: Plan, entries: Entries<CellSpec>) -> Result<LinkBenchRecord, RunError> {
        Ok(LinkBenchRecord::new(plan, entries))
    }

    fn fault(record: &LinkBenchRecord) -> Option<String> {
        incomplete::fault(record.valid_cells(), record.plan.cells.len())
    }

    fn started_unix_s(record: &LinkBenchRecord) -> Option<u64> {
        let results = record.cells.iter().filter_map(|cell| cell.result.as_ref());
        results.map(|result| result.started_unix_s).min()
    }

    fn csv(record: &LinkBenchRecord) -> Option<String> {
        Some(report::csv::render(record))
    }

    fn report(record: &LinkBenchRecord) -> Report {
        report::page::report(record)
    }

    fn results(record: &LinkBenchRecord) -> ResultSet {
        super::compared::results(record)
    }

    fn command(record: &LinkBenchRecord) -> Option<Line> {
        Some(of_linkbench(&record.plan))
    }

    fn name(record: &LinkBenchRecord) -> String {
        record.plan.name()
    }

    fn kept(record: &LinkBenchRecord) -> Cow<'_, LinkBenchRecord> {
        Cow::Owned(record.shortened())
    }
}

impl Declared for LinkBench {
    const WORKLOAD: WorkloadKind = WorkloadKind::LinkBench;
    const FLAGS: &'static [&'static str] = &["--nodes", "--clients", "--seconds"];
    type Experiment = Experiment;

    fn experiment(any: &AnyExperiment) -> Option<&Experiment> {
        match any {
            AnyExperiment::LinkBench(experiment) => Some(experiment),
            _ => None,
        }
    }

    fn expand(
        experiment: &Experiment,
        choice: &Choice,
        build: &str,
    ) -> Result<Expanded<Plan>, ChoiceError> {
        let engine = choice.engine.clone().unwrap_or_else(EngineName::lithify);
        let mut own = plan::Choice {
            scale: choice.scale.clone(),
            arms: choice.arms.clone(),
            repeats: choice.repeats,
            query_seconds: choice.seconds,
            nodes: choice.nodes,
            clients: choice.clients.clone(),
        };
        let skipped = leave_out_missing(experiment, &engine, &mut own)?;
        let plan = Plan::expand(experiment, &engine, &own, build)?;
        Ok(Expanded { plan, skipped })
    }
}

fn of_linkbench(plan: &Plan) -> Line {
    let declared = plan.declared_scale();
    let belonging =
        |claims| plan.experiment.arms.iter().filter(move |arm| arm.belongs_to(claims)).count();
    let arms = belonging(declared.and_then(|scale| scale.claims));
    let mut line = Line::of_run(&plan.experiment.name, &plan.scale)
        .with_of(arms, "--arms", &plan.arms)
        .unless(declared.map(|scale| scale.repeats), "--repeats", plan.repeats);
    if plan.engine != EngineName::lithify() {
        line = line.with("--engine", &plan.engine);
    }
    let Some(cell) = plan.cells.iter().find(|cell| cell.arm != "driver") else { return line };
    line = line.unless(declared.map(|scale| scale.nodes), "--nodes", cell.nodes).unless(
        declared.map(|scale| scale.query_seconds),
        "--seconds",
        cell.query_seconds,
    );
    match declared.is_some_and(|scale| scale.clients == cell.clients) {
        true => line,
        false => line.with("--clients", joined(cell.client_counts())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linkbench::sample;

    #[test]
    fn only_what_differs_is_named() {
        let mut plan = sample::plan(&EngineName::lithify(), 3);
        let whole = of_linkbench(&plan).0;
        assert!(whole.starts_with("lithify bench run zlib-vs-zstd --scale smoke"), "{whole}");
        assert!(!whole.contains("--repeats") && !whole.contains("--engine"), "{whole}");
        plan.repeats = 2;
        plan.engine = EngineName::null();
        plan.arms.truncate(1);
        let arms = format!(" --arms {} --repeats 2 --engine null", plan.arms[0]);
        assert!(of_linkbench(&plan).0.contains(&arms), "{}", of_linkbench(&plan).0);
    }
}
