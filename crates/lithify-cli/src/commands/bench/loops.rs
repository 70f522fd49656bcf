//! `lithify bench run` of an experiment over the loops of the classic key-value benchmark.

use std::io::{IsTerminal, stderr};
use std::sync::atomic::Ordering;

use lithify_lab::dbbench::runner::Runner;
use lithify_lab::experiment::LoopExperiment;
use lithify_lab::loop_experiment::plan::{LoopChoice, LoopPlan};
use lithify_lab::loop_experiment::{LoopRecord, report, write_plan, write_report};
use lithify_lab::run::plan::engines_here;
use lithify_lab::run::progress::{Announcer, Terminal};

use super::process::{
    announcement, incomplete, print_report, stopped, this_program, watch_signals,
};
use super::run::RunArguments;
use crate::fault::Fault;

/// Runs it.
pub fn run(
    arguments: &RunArguments,
    experiment: &LoopExperiment,
    place: &str,
) -> Result<(), Fault> {
    if arguments.nodes.is_some() {
        return Err(Fault::usage("--nodes is of linkbench; the database of dbbench has --keys"));
    }
    if arguments.clients.is_some() {
        return Err(Fault::usage("--clients is of linkbench"));
    }
    let choice = LoopChoice {
        scale: Some(arguments.scale.clone()),
        arms: arguments.arms.clone(),
        engine: arguments.engine.clone(),
        repeats: arguments.repeats,
        test_seconds: arguments.seconds,
        keys: arguments.keys,
    };
    let (engines, skipped) =
        engines_here(&experiment.workload.engines, choice.engine.as_ref()).map_err(Fault::usage)?;
    let program = this_program("db-process")?;
    let build = program.build().map_err(Fault::failure)?;
    let plan = LoopPlan::expand(experiment, &engines, &choice, &build).map_err(Fault::usage)?;
    let interrupt = watch_signals()?;
    let runner = Runner {
        plan: &plan.cells,
        program,
        results: &arguments.results,
        data: arguments.data.as_deref(),
        kept: None,
        fresh: arguments.fresh,
        interrupt: &interrupt,
    };
    let mut terminal = Terminal::new(stderr().is_terminal());
    skipped.iter().for_each(|line| terminal.say(line));
    let (name, cells) = (&experiment.name, plan.cells.cells.len());
    terminal.say(&announcement(name, place, &plan.scale, cells, &arguments.results));
    write_plan(&arguments.results, &plan).map_err(Fault::failure)?;
    let run = runner.run(&mut terminal).map_err(Fault::failure)?;
    drop(terminal);
    let record = LoopRecord { plan, run };
    if record.run.interrupted || interrupt.load(Ordering::Relaxed) {
        return Err(stopped(record.valid_cells(), cells));
    }
    let files = write_report(&arguments.results, &record).map_err(Fault::failure)?;
    print_report(&report::render(&record), &files)?;
    if record.is_complete() {
        return Ok(());
    }
    Err(incomplete(cells - record.valid_cells(), cells))
}
