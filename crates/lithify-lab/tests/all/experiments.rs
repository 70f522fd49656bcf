//! Every LinkBench experiment that is part of the program, at a size of seconds over engines in
//! memory: it expands, each kind of cell is measured, and the report has all of its parts.

use lithify_lab::adapter::EngineName;
use lithify_lab::experiment::{AnyExperiment, BUILT_IN, Experiment};
use lithify_lab::linkbench::cell::{CellSpec, Purpose, SCHEMA};
use lithify_lab::linkbench::kind::LinkBench;
use lithify_lab::linkbench::measure::{Limits, measure};
use lithify_lab::linkbench::plan::{Choice, Plan};
use lithify_lab::linkbench::record::{CellRecord, LinkBenchRecord};

/// One cell as small as it can be. An allocator would have to be loaded before the process.
fn small(spec: &CellSpec) -> CellSpec {
    CellSpec {
        nodes: 1_000,
        warmup_seconds: 0,
        query_seconds: 1,
        clients: spec.clients.iter().copied().filter(|count| *count < 3).collect(),
        requesters: if spec.clients.is_empty() { 1 } else { 2 },
        open_loop_percent: spec.open_loop_percent.iter().copied().take(1).collect(),
        allocator: Default::default(),
        ..spec.clone()
    }
}

/// The first arm of an experiment, with its calibration and a load, measured in this process.
fn run(experiment: &Experiment, engine: &EngineName) -> LinkBenchRecord {
    let arms = Some(vec![experiment.arms[0].name.clone()]);
    let choice = Choice { arms, repeats: Some(1), ..Choice::default() };
    let mut plan = Plan::expand(experiment, engine, &choice, "b").expect("expands");
    let loads = plan.cells.iter().filter(|cell| cell.purpose == Purpose::Load).skip(1);
    let others: Vec<String> = loads.map(|cell| cell.id.clone()).collect();
    plan.cells.retain(|cell| !others.contains(&cell.id));
    plan.cells.iter_mut().for_each(|cell| *cell = small(cell));
    let cells = plan.cells.iter().map(|spec| {
        let directory = tempfile::tempdir().expect("a directory");
        let result = measure(spec, directory.path(), Limits::default(), &|_| {});
        let result = Some(result.unwrap_or_else(|error| panic!("{}: {error}", spec.id)));
        CellRecord { spec: spec.clone(), result, failure: None }
    });
    let cells = cells.collect();
    LinkBenchRecord { schema: SCHEMA, plan, interrupted: false, cells }
}

#[test]
fn every_experiment_runs_and_has_a_report() {
    let mut names = Vec::new();
    for (name, text) in BUILT_IN {
        let parsed = AnyExperiment::parse(name, text).unwrap_or_else(|error| panic!("{error}"));
        let AnyExperiment::LinkBench(experiment) = parsed else { continue };
        let engine = if names.len() % 2 == 0 { EngineName::model() } else { EngineName::null() };
        let record = run(&experiment, &engine);
        assert!(record.is_complete(), "{name}");
        let text = crate::text::<LinkBench>(&record);
        for part in ["All figures", "Checks", "To be read with", "Not reproduced"] {
            assert!(text.contains(part), "{name}: {part} is missing in:\n{text}");
        }
        let sweeps = !experiment.scales["smoke"].clients.is_empty();
        assert_eq!(text.contains("efficiency by clients"), sweeps, "{name}:\n{text}");
        let json = serde_json::to_string(&record).expect("to JSON");
        let again: LinkBenchRecord = serde_json::from_str(&json).expect("from JSON");
        assert_eq!(crate::text::<LinkBench>(&again), text, "{name}");
        names.push(*name);
    }
    assert!(names.len() >= 9, "{names:?}");
}
