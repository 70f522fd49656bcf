//! `lithify bench run`: expands an experiment, measures its cells, prints the report.

use std::io::{IsTerminal, stderr};
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use clap::Args;
use lithify_lab::adapter::EngineName;
use lithify_lab::experiment::{AnyExperiment, Experiment};
use lithify_lab::report;
use lithify_lab::run::plan::{Choice, Plan, leave_out_missing};
use lithify_lab::run::progress::{Announcer, Terminal};
use lithify_lab::run::{Runner, store};

use super::arguments::{engine_name, require_engine};
use super::process::{
    announcement, incomplete, print_report, refuse_files, stopped, this_program, watch_signals,
};
use crate::fault::Fault;

/// `bench run`
#[derive(Debug, Args)]
#[command(after_help = "\
Every arm runs in a process of its own; arms are interleaved over the repeats. Raw results go to
DIR/runs/NAME, the report to DIR/NAME.txt, .csv, .json and .html, a page for any browser. Cells that were measured by the same
program with the same settings are not measured again; --fresh measures them again.
A scale with a memory limit (io-s, io-l) runs every cell in a control group of its own, page cache
included, and is refused where groups cannot be made; counters decide whether a row may be called
IO-bound (docs/lab.md).
Ctrl-C stops the run: its child is ended, its data are removed, measured cells are kept, and the
exit code is 130. A second Ctrl-C does not wait for that.

Examples:
  lithify bench run zlib-vs-zstd
  lithify bench run zlib-vs-zstd --scale cached
  lithify bench run zlib-vs-zstd --scale io-s --arms zlib-1,zstd-1 --repeats 1
  lithify bench run zlib-vs-zstd --arms zlib-1,zstd-1 --repeats 2 --seconds 5
  lithify bench run zlib-vs-zstd --engine null --seconds 2 --results /tmp/results
  lithify bench run io-bound-lsm-vs-btree --scale io-s --clients 1,4,16 --seconds 30
  lithify bench run compress-or-not --scale cached
  lithify bench run compress-or-not --engine rocksdb --arms none-upper,lz4 --keys 100000
  lithify bench run compression-options --scale standard
  lithify bench run chunk-length --arms lz4,zstd-1-64k --text ./actors.list")]
pub struct RunArguments {
    /// Name of an experiment (see `bench list`), or a .toml file
    experiment: String,
    /// How large
    #[arg(long, value_name = "SCALE", default_value = "smoke")]
    pub(super) scale: String,
    /// Which arms, separated by commas; all when not given
    #[arg(long, value_name = "ARMS", value_delimiter = ',')]
    pub(super) arms: Option<Vec<String>>,
    /// Runs of each arm, instead of the scale's [1 to 100]
    #[arg(long, value_name = "N")]
    pub(super) repeats: Option<u64>,
    /// Measured seconds of the query phase [1 to 864000] or of each test [1 to 86400], instead of
    /// the scale's
    #[arg(long, value_name = "N")]
    pub(super) seconds: Option<u64>,
    /// Nodes of the graph of linkbench, instead of the scale's [1000 to 10000000000]
    #[arg(long, value_name = "N")]
    pub(super) nodes: Option<u64>,
    /// Numbers of clients of linkbench, one query phase after another, instead of the scale's
    /// [1 to 256 each, ascending]
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    pub(super) clients: Option<Vec<u64>>,
    /// Keys of the database of dbbench, instead of the scale's [1000 to 10000000000]
    #[arg(long, value_name = "N")]
    pub(super) keys: Option<u64>,
    /// Text of chunks, instead of the experiment's: `actors`, a data set of `bench data`, or a file
    #[arg(long, value_name = "NAME|FILE")]
    pub(super) text: Option<String>,
    /// On which engine: a name of `bench engines`; on those of the experiment when not given
    #[arg(long, value_name = "NAME", value_parser = engine_name)]
    pub(super) engine: Option<EngineName>,
    /// Where results go
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub(super) results: PathBuf,
    /// Where engines keep their data meanwhile; beside the results when not given
    #[arg(long, value_name = "DIR")]
    pub(super) data: Option<PathBuf>,
    /// Directory of experiment files
    #[arg(long, value_name = "DIR", default_value = "experiments")]
    experiments: PathBuf,
    /// Measure again what was measured
    #[arg(long)]
    pub(super) fresh: bool,
}

/// Runs it.
pub fn run(arguments: &RunArguments) -> Result<(), Fault> {
    arguments.engine.as_ref().map_or(Ok(()), require_engine)?;
    let (experiment, place) = super::find(&arguments.experiment, &arguments.experiments)?;
    refuse_files([&arguments.results].into_iter().chain(&arguments.data).map(PathBuf::as_path))?;
    match experiment {
        AnyExperiment::LinkBench(_) | AnyExperiment::Loops(_) if arguments.text.is_some() => {
            Err(Fault::usage("--text is of chunks"))
        }
        AnyExperiment::LinkBench(experiment) => run_linkbench(arguments, &experiment, &place),
        AnyExperiment::Loops(experiment) => super::loops::run(arguments, &experiment, &place),
        AnyExperiment::Tables(experiment) => {
            super::cells::run_tables(arguments, &experiment, &place)
        }
        AnyExperiment::Chunks(experiment) => {
            super::cells::run_chunks(arguments, &experiment, &place)
        }
        AnyExperiment::Command(experiment) => Err(Fault::usage(format!(
            "{} has a command of its own: lithify {}",
            experiment.name, experiment.workload.command
        ))),
    }
}

fn run_linkbench(
    arguments: &RunArguments,
    experiment: &Experiment,
    place: &str,
) -> Result<(), Fault> {
    if arguments.keys.is_some() {
        return Err(Fault::usage("--keys is of dbbench; the graph of linkbench has --nodes"));
    }
    let program = this_program("cell")?;
    let engine = arguments.engine.clone().unwrap_or_else(EngineName::lithify);
    let mut choice = Choice {
        scale: Some(arguments.scale.clone()),
        arms: arguments.arms.clone(),
        repeats: arguments.repeats,
        query_seconds: arguments.seconds,
        nodes: arguments.nodes,
        clients: arguments.clients.clone(),
    };
    let skipped = leave_out_missing(experiment, &engine, &mut choice).map_err(Fault::usage)?;
    let build = program.build().map_err(Fault::failure)?;
    let plan = Plan::expand(experiment, &engine, &choice, &build).map_err(Fault::usage)?;
    let interrupt = watch_signals()?;
    let runner = Runner {
        plan: &plan,
        program,
        results: &arguments.results,
        data: arguments.data.as_deref(),
        fresh: arguments.fresh,
        interrupt: &interrupt,
    };
    let mut terminal = Terminal::new(stderr().is_terminal());
    skipped.iter().for_each(|line| terminal.say(line));
    let (name, cells) = (&plan.experiment.name, plan.cells.len());
    terminal.say(&announcement(name, place, &plan.scale, cells, &arguments.results));
    let record = runner.run(&mut terminal).map_err(Fault::failure)?;
    drop(terminal);
    if record.interrupted || interrupt.load(Ordering::Relaxed) {
        return Err(stopped(record.valid_cells(), record.plan.cells.len()));
    }
    let files = store::write_report(&arguments.results, &record).map_err(Fault::failure)?;
    print_report(&report::render(&record), &files)?;
    if record.is_complete() {
        return Ok(());
    }
    Err(incomplete(record.cells.len() - record.valid_cells(), record.cells.len()))
}
