//! `lithify bench`: experiments.

mod amplification;
mod arguments;
mod compare;
mod data;
mod db;
mod dry_run;
mod durability;
mod engines;
mod list;
mod matrix;
mod overwrite;
mod pack;
mod page;
mod pages;
mod places;
mod policies;
pub mod process;
mod ready;
mod run;
pub mod screen;
mod setup;
mod show;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use lithify_lab::engines::registry;
use lithify_lab::experiment::{AnyExperiment, BUILT_IN};

use crate::fault::Fault;

/// Experiments, and how their reports are shown.
#[derive(Debug, Args)]
pub struct BenchArguments {
    #[command(subcommand)]
    command: BenchCommand,
    /// Print the whole report, not its answer and its first table alone; of a list, all of it
    #[arg(long, global = true)]
    full: bool,
}

/// What can be done with experiments.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Run an experiment; a run that was stopped continues where it stopped
    Run(Box<run::RunArguments>),
    /// The loops of the classic key-value benchmark, on one engine or in pairs of engines
    Db(Box<db::DbArguments>),
    /// Overwrite random keys as fast as it goes: throughput over time, gaps, space, memory
    Overwrite(overwrite::OverwriteArguments),
    /// What policies of compression cost at a user's prices
    Policies(policies::PoliciesArguments),
    /// Read, write and space amplification, predicted by formulas and measured
    Amp(amplification::AmplificationArguments),
    /// What crashes take in each mode of durability, and what commits cost
    Durability(durability::DurabilityArguments),
    /// What compressed pages with holes in files cost, on file systems made for it
    Pages(pages::PagesArguments),
    /// List the experiments to choose from, or all of one
    List(list::ListArguments),
    /// List the engines that can be measured, what they can do, and how to get the missing ones
    Engines(engines::EnginesArguments),
    /// Get an engine to compare with
    Setup(setup::SetupArguments),
    /// List real data sets, or get them
    Data(data::DataArguments),
    /// Show the report of a run again
    Show(show::ShowArguments),
    /// Make a record small enough for a repository, or plain again
    Pack(pack::PackArguments),
    /// Make the page of a run again
    Report(page::ReportArguments),
    /// Two runs side by side: ratios with intervals, winners outside of noise
    Compare(compare::CompareArguments),
    /// Measure one cell of any kind; started with the job, which names its kind, on standard input
    #[command(hide = true)]
    Cell,
}

/// Does it.
pub fn run(arguments: BenchArguments) -> Result<(), Fault> {
    screen::set_full(arguments.full);
    match arguments.command {
        BenchCommand::Run(arguments) => run::run(&arguments),
        BenchCommand::Db(arguments) => db::run(&arguments),
        BenchCommand::Overwrite(arguments) => overwrite::run(&arguments),
        BenchCommand::Policies(arguments) => policies::run(&arguments),
        BenchCommand::Amp(arguments) => amplification::run(&arguments),
        BenchCommand::Durability(arguments) => durability::run(&arguments),
        BenchCommand::Pages(arguments) => pages::run(&arguments),
        BenchCommand::List(arguments) => list::run(&arguments),
        BenchCommand::Engines(arguments) => engines::run(&arguments),
        BenchCommand::Setup(arguments) => setup::run(&arguments),
        BenchCommand::Data(arguments) => data::run(&arguments),
        BenchCommand::Show(arguments) => show::run(&arguments),
        BenchCommand::Pack(arguments) => pack::run(&arguments),
        BenchCommand::Report(arguments) => page::run(&arguments),
        BenchCommand::Compare(arguments) => compare::run(&arguments),
        BenchCommand::Cell => process::do_job(),
    }
}

/// Where experiment files are looked for; it need not be there, for the program has its own.
const EXPERIMENTS: &str = "experiments";

/// A directory of experiment files that was named is there: else hours would go into others.
fn parse_experiments(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match text == EXPERIMENTS || path.is_dir() {
        true => Ok(path),
        false => Err("there is no such directory of experiment files".to_owned()),
    }
}

/// The names of the experiments of `directory` and of those that are part of the program.
fn names(directory: &Path) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = BUILT_IN.iter().map(|(name, _)| (*name).to_owned()).collect();
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        if path.extension().is_some_and(|extension| extension == "toml")
            && let Some(name) = path.file_stem()
        {
            names.insert(name.to_string_lossy().into_owned());
        }
    }
    names
}

/// Finds an experiment: a path to a file, or a name, looked for in `directory` and then among
/// those that are part of the program. Returns where it was found too.
///
/// A file in a directory has the name of its experiment, so that no two there have one name, by
/// which results are kept.
fn find(name: &str, directory: &Path) -> Result<(AnyExperiment, String), Fault> {
    let is_path = name.ends_with(".toml") || name.contains('/');
    let path = if is_path { name.into() } else { directory.join(format!("{name}.toml")) };
    if is_path || path.exists() {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(&path)
            .map_err(|error| Fault::usage(format!("{file}: {error}")))?;
        let experiment = parse(&file, &text)?;
        if !is_path && experiment.name() != name {
            return Err(Fault::usage(format!(
                "{file}: name \"{}\": a file in a directory of experiments has the name of its \
                 experiment",
                experiment.name()
            )));
        }
        return Ok((experiment, file));
    }
    let Some((name, text)) = BUILT_IN.iter().find(|(built_in, _)| *built_in == name) else {
        return Err(unknown(name, &names(directory)));
    };
    let place = format!("the program's own {name}");
    Ok((parse(&place, text)?, place))
}

/// No experiment of `names` has that name: those that resemble it.
fn unknown(name: &str, names: &BTreeSet<String>) -> Fault {
    let similar = arguments::similar(name, names.iter().map(String::as_str));
    Fault::usage(format!(
        "there is no experiment \"{name}\"{similar}; `lithify bench list` has all, and a .toml \
         file is one too"
    ))
}

/// The number that the program's own experiment of that name has: a file that takes its place and
/// cannot be read is wanted by the same number.
fn number_of_built_in(name: &str) -> (String, u64) {
    let built_in = BUILT_IN.iter().find(|(built_in, _)| *built_in == name);
    let parsed = built_in.and_then(|(name, text)| AnyExperiment::parse(name, text).ok());
    let id = parsed.as_ref().and_then(AnyExperiment::id).unwrap_or_default().to_owned();
    (id, parsed.and_then(|experiment| experiment.number()).unwrap_or(u64::MAX))
}

/// Reads an experiment all of whose engines are known here, though they need not be installed.
fn parse(place: &str, text: &str) -> Result<AnyExperiment, Fault> {
    let experiment = AnyExperiment::parse(place, text).map_err(Fault::usage)?;
    for name in experiment.engines() {
        registry::find(name).map_err(|error| Fault::usage(format!("{place}: {error}")))?;
    }
    Ok(experiment)
}
