//! `lithify bench run`: expands an experiment, measures its cells, prints the report.

use std::io::{IsTerminal, stderr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Args, ValueEnum};
use lithify_lab::report;
use lithify_lab::run::cell::EngineKind;
use lithify_lab::run::plan::{Choice, Plan};
use lithify_lab::run::process::Program;
use lithify_lab::run::progress::{Announcer, Terminal};
use lithify_lab::run::{Runner, store};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::fault::{Fault, print};

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
  lithify bench run zlib-vs-zstd --engine null --seconds 2 --results /tmp/results")]
pub struct RunArguments {
    /// Name of an experiment (see `bench list`), or a .toml file
    experiment: String,
    /// How large
    #[arg(long, value_name = "SCALE", default_value = "smoke")]
    scale: String,
    /// Which arms, separated by commas; all when not given
    #[arg(long, value_name = "ARMS", value_delimiter = ',')]
    arms: Option<Vec<String>>,
    /// Runs of each arm, instead of the scale's [1 to 100]
    #[arg(long, value_name = "N")]
    repeats: Option<u64>,
    /// Measured seconds of the query phase, instead of the scale's [1 to 864000]
    #[arg(long, value_name = "N")]
    seconds: Option<u64>,
    /// Nodes of the graph, instead of the scale's [1000 to 10000000000]
    #[arg(long, value_name = "N")]
    nodes: Option<u64>,
    /// On which engine
    #[arg(long, value_enum, default_value_t = EngineArgument::Lithify)]
    engine: EngineArgument,
    /// Where results go
    #[arg(long, value_name = "DIR", default_value = "results")]
    results: PathBuf,
    /// Where engines keep their data meanwhile; beside the results when not given
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Directory of experiment files
    #[arg(long, value_name = "DIR", default_value = "experiments")]
    experiments: PathBuf,
    /// Measure again what was measured
    #[arg(long)]
    fresh: bool,
}

/// Engines on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum EngineArgument {
    /// The engine of this project
    Lithify,
    /// Does nothing: what the driver alone costs
    Null,
    /// An ordered map in memory: the reference
    Model,
}

impl From<EngineArgument> for EngineKind {
    fn from(argument: EngineArgument) -> Self {
        match argument {
            EngineArgument::Lithify => EngineKind::Lithify,
            EngineArgument::Null => EngineKind::Null,
            EngineArgument::Model => EngineKind::Model,
        }
    }
}

/// Runs it.
pub fn run(arguments: &RunArguments) -> Result<(), Fault> {
    let (experiment, place) = super::find(&arguments.experiment, &arguments.experiments)?;
    for directory in [Some(&arguments.results), arguments.data.as_ref()].into_iter().flatten() {
        refuse_file(directory)?;
    }
    let path = std::env::current_exe()
        .map_err(|error| Fault::failure(format!("this program cannot be found: {error}")))?;
    let program = Program {
        path,
        arguments: ["bench", "cell"].map(Into::into).into(),
        environment: Vec::new(),
    };
    let choice = Choice {
        scale: Some(arguments.scale.clone()),
        arms: arguments.arms.clone(),
        repeats: arguments.repeats,
        query_seconds: arguments.seconds,
        nodes: arguments.nodes,
    };
    let build = program.build().map_err(Fault::failure)?;
    let plan = Plan::expand(&experiment, arguments.engine.into(), &choice, &build)
        .map_err(Fault::usage)?;
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
    eprintln!("report: {}", names.join(", "));
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
