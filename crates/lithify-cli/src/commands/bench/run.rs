//! `lithify bench run`: expands an experiment, measures its cells, prints the report.

use std::path::PathBuf;

use clap::Args;
use glob::Pattern;
use lithify_lab::adapter::EngineName;
use lithify_lab::datasets::{TableData, TextData};
use lithify_lab::experiment::{AnyExperiment, CommandExperiment};
use lithify_lab::kind::choice::Choice;
use lithify_lab::records::kinds::{self, PlanError};

use super::arguments::{engine_name, require_engine};
use super::places::refuse_files;
use super::process::{announcement, this_program};
use super::ready::{Ready, alone};
use crate::fault::{Fault, print};

/// `bench run`
#[derive(Debug, Args)]
#[command(after_help = "\
Every arm runs in a separate process; arms are interleaved over the repeats. Raw results go to
DIR/runs/NAME, the report to DIR/NAME.txt, .csv, .json and .html, a page for any browser. Cells
that were measured by the same program with the same settings are not measured again; --fresh
measures them again.
--all continues where it was stopped too, whatever it was at. It estimates the rest by cells that were
measured, and where there are none by declared seconds, and says which. An experiment that fails
does not stop the others; the exit code is 1 then. DIR/index.html links the pages of all runs.
A scale with a memory limit (io-s, io-l) runs every cell in a separate control group, page cache
included. It is refused where groups cannot be made. Counters decide whether a row may be called
IO-bound (docs/lab.md).
Ctrl-C stops the run: its child is ended, its data are removed, measured cells are kept, and the
exit code is 130. A second Ctrl-C does not wait for that.

Examples:
  lithify bench run zlib-vs-zstd
  lithify bench run headline --dry-run
  lithify bench run headline
  lithify bench run --all --dry-run --scale cached
  lithify bench run --all --scale cached,standard,io-s --only 'E*'
  lithify bench run zlib-vs-zstd --scale cached
  lithify bench run zlib-vs-zstd --scale io-s --arms zlib-1,zstd-1 --repeats 1
  lithify bench run zlib-vs-zstd --arms zlib-1,zstd-1 --repeats 2 --seconds 5
  lithify bench run zlib-vs-zstd --engine null --seconds 2 --results /tmp/results
  lithify bench run io-bound-lsm-vs-btree --scale io-s --clients 1,4,16 --seconds 30
  lithify bench run compress-or-not --scale cached
  lithify bench run compress-or-not --engine rocksdb --arms none-upper,lz4 --keys 100000
  lithify bench run compression-options --scale standard --tables wiki-edits,grid-load
  lithify bench run chunk-length --arms lz4,zstd-1-64k --text ./actors.list")]
pub struct RunArguments {
    /// Name of an experiment (see `bench list`), or a .toml file
    #[arg(required_unless_present = "all")]
    experiment: Option<String>,
    /// All experiments, those with commands of their own too, one after the other; one that has no
    /// such scale or no engine here is left out with a line
    #[arg(long, conflicts_with_all = ["experiment", "arms", "seconds", "nodes", "clients", "keys",
        "tables", "text", "engine"])]
    pub(super) all: bool,
    /// Of all, those whose names or numbers match: `*` stands for any text, `?` for one character
    #[arg(long, value_name = "GLOB")]
    pub(super) only: Option<Pattern>,
    /// Only say what there is to do, how long that takes, and which engines are missing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// How large; of several with commas between them, the first that the experiment has
    #[arg(long, value_name = "SCALE,...", default_value = "smoke")]
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
    /// Which tables of `compression-options`, instead of all of the scale whose data are here:
    /// `page-counts`, `wide`, or a data set of `bench data`
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(super) tables: Option<Vec<TableData>>,
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
    #[arg(long, value_name = "DIR", default_value = super::EXPERIMENTS,
        value_parser = super::parse_experiments)]
    pub(super) experiments: PathBuf,
    /// Measure again what was measured
    #[arg(long)]
    pub(super) fresh: bool,
}

/// Runs it, or all of them.
pub fn run(arguments: &RunArguments) -> Result<(), Fault> {
    arguments.engine.as_ref().map_or(Ok(()), require_engine)?;
    refuse_files([&arguments.results].into_iter().chain(&arguments.data).map(PathBuf::as_path))?;
    // The parser forgives what an argument requires that another one excludes.
    if !arguments.all && arguments.only.is_some() {
        return Err(Fault::usage("--only is of --all"));
    }
    let Some(name) = arguments.experiment.as_deref().filter(|_| !arguments.all) else {
        return super::matrix::run(arguments);
    };
    let (experiment, place) = super::find(name, &arguments.experiments)?;
    if let AnyExperiment::Command(experiment) = &experiment {
        refuse_choices(arguments, experiment)?;
    }
    if arguments.dry_run {
        return print(&super::matrix::overview_of(arguments, &experiment));
    }
    let ready = prepare(arguments, &experiment)?;
    let cells = ready.cells(&arguments.results).len();
    let scale = ready.scale().unwrap_or(&arguments.scale);
    let line = announcement(experiment.name(), &place, scale, cells, &arguments.results);
    let data = arguments.data.as_deref();
    alone(&*ready, &arguments.results, data, arguments.fresh, &[line])
}

/// An experiment with a command of its own has its settings there.
fn refuse_choices(arguments: &RunArguments, experiment: &CommandExperiment) -> Result<(), Fault> {
    if arguments.choice().is_scale_only() {
        return Ok(());
    }
    Err(Fault::usage(format!(
        "{} takes no choices here; it has a command of its own: lithify {}",
        experiment.name, experiment.workload.command
    )))
}

/// An experiment with the options of the command line: by the row of its kind, or by the command of
/// its own.
pub fn prepare(
    arguments: &RunArguments,
    experiment: &AnyExperiment,
) -> Result<Box<dyn Ready>, Fault> {
    if let AnyExperiment::Command(experiment) = experiment {
        return super::matrix::prepare_command(experiment);
    }
    let program = this_program(experiment.workload().name())?;
    match kinds::plan(experiment, &arguments.choice(), &program) {
        Some(Ok(planned)) => Ok(Box::new(planned)),
        Some(Err(PlanError::Choice(why))) => Err(Fault::usage(why)),
        Some(Err(PlanError::Program(why))) => Err(Fault::failure(why)),
        None => Err(Fault::usage(format!("no kind of run has {}", experiment.name()))),
    }
}

impl RunArguments {
    fn choice(&self) -> Choice {
        Choice {
            scale: Some(self.scale.clone()),
            arms: self.arms.clone(),
            engine: self.engine.clone(),
            repeats: self.repeats,
            seconds: self.seconds,
            nodes: self.nodes,
            clients: self.clients.clone(),
            keys: self.keys,
            tables: self.tables.clone(),
            text: self.text.clone().map(TextData::from),
        }
    }
}
