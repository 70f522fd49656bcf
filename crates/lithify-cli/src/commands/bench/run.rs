//! `lithify bench run`: expands an experiment, measures its cells, prints the report.

use std::io::{IsTerminal, stderr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use lithify_lab::adapter::EngineName;
use lithify_lab::experiment::{AnyExperiment, Experiment};
use lithify_lab::report;
use lithify_lab::run::engine;
use lithify_lab::run::plan::{Choice, Plan, leave_out_missing};
use lithify_lab::run::process::Program;
use lithify_lab::run::progress::{Announcer, Terminal};
use lithify_lab::run::{Runner, store};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::fault::{Fault, print, say};

/// `bench run`
#[derive(Debug, Args)]
#[command(after_help = "\
Every arm runs in a process of its own; arms are interleaved over the repeats. Raw results go to
DIR/runs/NAME, the report to DIR/NAME.txt, .csv and .json. Cells that were measured by the same
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
  lithify bench run compress-or-not --scale cached
  lithify bench run compress-or-not --engine rocksdb --arms none-upper,lz4 --keys 100000")]
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
    /// Keys of the database of dbbench, instead of the scale's [1000 to 10000000000]
    #[arg(long, value_name = "N")]
    pub(super) keys: Option<u64>,
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

/// An engine on the command line: one of those that can be opened by name.
pub(super) fn engine_name(text: &str) -> Result<EngineName, String> {
    let name = EngineName::new(text);
    engine::find(&name).map_err(|error| error.to_string())?;
    Ok(name)
}

/// One line of what `--engine` takes, for the help.
pub(super) const ENGINE_HELP: &str = "On which engine: a name of `bench engines`";

/// Refuses an engine that is known and not here, before anything is made.
pub(super) fn require_engine(name: &EngineName) -> Result<(), Fault> {
    engine::find(name).and_then(|provider| provider.available()).map_err(Fault::failure)
}

/// Runs it.
pub fn run(arguments: &RunArguments) -> Result<(), Fault> {
    arguments.engine.as_ref().map_or(Ok(()), require_engine)?;
    let (experiment, place) = super::find(&arguments.experiment, &arguments.experiments)?;
    for directory in [Some(&arguments.results), arguments.data.as_ref()].into_iter().flatten() {
        refuse_file(directory)?;
    }
    match experiment {
        AnyExperiment::LinkBench(experiment) => run_linkbench(arguments, &experiment, &place),
        AnyExperiment::Loops(experiment) => super::loops::run(arguments, &experiment, &place),
    }
}

/// This program as the measuring process: `bench COMMAND`.
pub(super) fn measuring_program(command: &str) -> Result<Program, Fault> {
    let path = std::env::current_exe()
        .map_err(|error| Fault::failure(format!("this program cannot be found: {error}")))?;
    let arguments = ["bench", command].map(Into::into).into();
    Ok(Program { path, arguments, environment: Vec::new() })
}

fn run_linkbench(
    arguments: &RunArguments,
    experiment: &Experiment,
    place: &str,
) -> Result<(), Fault> {
    if arguments.keys.is_some() {
        return Err(Fault::usage("--keys is of dbbench; the graph of linkbench has --nodes"));
    }
    let program = measuring_program("cell")?;
    let engine = arguments.engine.clone().unwrap_or_else(EngineName::lithify);
    let mut choice = Choice {
        scale: Some(arguments.scale.clone()),
        arms: arguments.arms.clone(),
        repeats: arguments.repeats,
        query_seconds: arguments.seconds,
        nodes: arguments.nodes,
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
    terminal.say(&format!(
        "{} from {place}, scale {}, {} cells, results in {}",
        plan.experiment.name,
        plan.scale,
        plan.cells.len(),
        arguments.results.display()
    ));
    let record = runner.run(&mut terminal).map_err(Fault::failure)?;
    drop(terminal);
    if record.interrupted || interrupt.load(Ordering::Relaxed) {
        return Err(Fault::interrupted(format!(
            "stopped; {} of {} cells are measured and kept, the same command goes on",
            record.valid_cells(),
            record.plan.cells.len()
        )));
    }
    let files = store::write_report(&arguments.results, &record).map_err(Fault::failure)?;
    print(&report::render(&record))?;
    let names = files.map(|file| file.display().to_string());
    say(&format!("report: {}", names.join(", ")));
    if record.is_complete() {
        return Ok(());
    }
    Err(Fault::failure(format!(
        "{} of {} cells failed or are void; see Checks in the report",
        record.cells.len() - record.valid_cells(),
        record.cells.len()
    )))
}

pub(super) fn refuse_file(path: &Path) -> Result<(), Fault> {
    if path.exists() && !path.is_dir() {
        return Err(Fault::usage(format!("{} is no directory", path.display())));
    }
    Ok(())
}

/// A flag that Ctrl-C and SIGTERM set; the second one ends this process at once.
pub(super) fn watch_signals() -> Result<Arc<AtomicBool>, Fault> {
    let interrupt = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, 130, Arc::clone(&interrupt))
            .and_then(|_| flag::register(signal, Arc::clone(&interrupt)))
            .map_err(|error| Fault::failure(format!("signals cannot be watched: {error}")))?;
    }
    Ok(interrupt)
}
