//! `lithify bench run` of the kinds of workload whose cells run alike: tables and chunks.

use std::io::{IsTerminal, stderr};
use std::sync::atomic::Ordering;

use lithify_lab::chunks::plan::{ChunkChoice, ChunkPlan};
use lithify_lab::datasets::TextData;
use lithify_lab::experiment::{ChunkExperiment, TableExperiment};
use lithify_lab::run::cells::{PlanRunner, Run, RunPlan, write_report};
use lithify_lab::run::process::Program;
use lithify_lab::run::progress::{Announcer, Terminal};
use lithify_lab::tables::plan::{TableChoice, TablePlan};
use lithify_lab::{chunks, tables};

use super::process::{
    announcement, incomplete, print_report, stopped, this_program, watch_signals,
};
use super::run::RunArguments;
use crate::fault::Fault;

/// Runs an experiment over text in chunks.
pub fn run_chunks(
    arguments: &RunArguments,
    experiment: &ChunkExperiment,
    place: &str,
) -> Result<(), Fault> {
    refuse_foreign(arguments)?;
    let program = this_program("chunk-process")?;
    let choice = ChunkChoice {
        scale: Some(arguments.scale.clone()),
        arms: arguments.arms.clone(),
        engine: arguments.engine.clone(),
        repeats: arguments.repeats,
        text: arguments.text.clone().map(TextData::from),
    };
    let build = program.build().map_err(Fault::failure)?;
    let plan = ChunkPlan::expand(experiment, &choice, &build).map_err(Fault::usage)?;
    let announced =
        announcement(&experiment.name, place, &plan.scale, plan.cells.len(), &arguments.results);
    measure(arguments, &plan, program, &[&plan.skipped[..], &[announced]].concat(), |run| {
        (chunks::report::render(run), chunks::csv::render(run))
    })
}

/// Runs an experiment over tables.
pub fn run_tables(
    arguments: &RunArguments,
    experiment: &TableExperiment,
    place: &str,
) -> Result<(), Fault> {
    refuse_foreign(arguments)?;
    if arguments.text.is_some() {
        return Err(Fault::usage("--text is of chunks"));
    }
    let program = this_program("table-process")?;
    let choice = TableChoice {
        scale: Some(arguments.scale.clone()),
        arms: arguments.arms.clone(),
        engine: arguments.engine.clone(),
        repeats: arguments.repeats,
    };
    let build = program.build().map_err(Fault::failure)?;
    let plan = TablePlan::expand(experiment, &choice, &build).map_err(Fault::usage)?;
    let announced =
        announcement(&experiment.name, place, &plan.scale, plan.cells.len(), &arguments.results);
    measure(arguments, &plan, program, &[&plan.skipped[..], &[announced]].concat(), |run| {
        (tables::report::render(run), tables::csv::render(run))
    })
}

/// Refuses options that only other kinds of workload have.
fn refuse_foreign(arguments: &RunArguments) -> Result<(), Fault> {
    let foreign = [
        ("--nodes", arguments.nodes.is_some(), "linkbench"),
        ("--clients", arguments.clients.is_some(), "linkbench"),
        ("--keys", arguments.keys.is_some(), "dbbench"),
        ("--seconds", arguments.seconds.is_some(), "linkbench and dbbench"),
    ];
    match foreign.iter().find(|(_, given, _)| *given) {
        Some((flag, _, kinds)) => Err(Fault::usage(format!("{flag} is of {kinds}"))),
        None => Ok(()),
    }
}

/// Measures what was not measured yet and writes the report, which `render` makes as text and as
/// comma-separated values.
fn measure<P: RunPlan>(
    arguments: &RunArguments,
    plan: &P,
    program: Program,
    lines: &[String],
    render: impl FnOnce(&Run<P>) -> (String, String),
) -> Result<(), Fault> {
    let interrupt = watch_signals()?;
    let runner = PlanRunner {
        plan,
        program,
        results: &arguments.results,
        data: arguments.data.as_deref(),
        fresh: arguments.fresh,
        interrupt: &interrupt,
    };
    let mut terminal = Terminal::new(stderr().is_terminal());
    lines.iter().for_each(|line| terminal.say(line));
    let run = runner.run(&mut terminal).map_err(Fault::failure)?;
    drop(terminal);
    let (valid, cells) = (run.valid_cells(), plan.cells().len());
    if run.entries.interrupted || interrupt.load(Ordering::Relaxed) {
        return Err(stopped(valid, cells));
    }
    let (text, csv) = render(&run);
    let files =
        write_report(&arguments.results, &run, &text, &[(".csv", csv)]).map_err(Fault::failure)?;
    print_report(&text, &files)?;
    if run.is_complete() { Ok(()) } else { Err(incomplete(cells - valid, cells)) }
}
