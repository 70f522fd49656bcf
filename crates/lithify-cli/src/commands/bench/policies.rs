//! `lithify bench policies`: what policies of compression cost at a user's prices.

use std::path::PathBuf;

use clap::Args;
use lithify_lab::kind::planned::{Planned, PlannedRun};
use lithify_lab::kind::{Expanded, Kind};
use lithify_lab::policies::kind::Policies;
use lithify_lab::policies::measure::settings;
use lithify_lab::policies::rows::DataSet;
use lithify_lab::policies::{Arm, Matrix, Mix};

use super::arguments::range;
use super::places::refuse_files;
use super::process::this_program;
use super::ready::alone;
use crate::fault::{Fault, refuse_repetition};

/// `bench policies`
#[derive(Debug, Args)]
#[command(after_help = "\
Loads the rows of each data set under scattered keys and overwrites half of them, or looks rows up and
scans, through the page cache or past it. Every fixed ladder of codecs is measured once and priced
under four presets, and so are three rules of other engines (docs/compression.md); `auto` is measured
under each. Costs come from outside: CPU of the process, bytes that it wrote, reads of the device,
bytes of the directory. A cell stands for a month: 24 hours of load, 706 of what follows. The price of
a month is scaled to its seconds, and operations are spread over them.

The report goes to DIR/policies.txt, .csv, .json and .html. What was measured by the same program with
the same settings is not measured again.

Examples:
  lithify bench policies
  lithify bench policies --data chess-names,grid-load --mixes load,cached --mb 20
  lithify bench policies --data log.jsonl --mixes cached --arm 'mine: compression=lz4,zstd-3,zstd-9'")]
pub struct PoliciesArguments {
    /// Data sets by name, or text files of your own, whose lines are rows
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "chess-names,wiki-edits,grid-load,grid-plants",
        value_parser = str::parse::<DataSet>
    )]
    data: Vec<DataSet>,
    /// What is done with them: load, cached, device
    #[arg(long, value_name = "MIXES", value_delimiter = ',', default_value = "load,cached,device")]
    mixes: Vec<Mix>,
    /// A policy beside the ladders and auto: its name and settings of a column family
    #[arg(long = "arm", value_name = "NAME: SETTINGS", value_parser = arm)]
    arms: Vec<Arm>,
    /// Only this policy, once for each: a ladder, auto, rule-size, rule-load, rule-skip or one of --arm
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Megabytes of rows, at most [1 to 100000]
    #[arg(long, value_name = "N", default_value_t = 24, value_parser = range(1, 100_000))]
    mb: u64,
    /// Hundredths of a second that a month takes, for each megabyte of rows [1 to 10000]
    #[arg(long, value_name = "HUNDREDTHS", default_value_t = 75, value_parser = range(1, 10_000))]
    pace: u64,
    /// Rounds over all cells [1 to 100]
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = range(1, 100))]
    repeats: u64,
    /// Measure again what was measured
    #[arg(long)]
    fresh: bool,
    /// Where the engine keeps its data meanwhile; beside the results when not given
    #[arg(long = "data-directory", value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Where results go
    #[arg(long, value_name = "DIR", default_value = "results")]
    results: PathBuf,
}

fn arm(text: &str) -> Result<Arm, String> {
    let Some((name, options)) = text.split_once(':') else {
        return Err("a policy is written NAME: SETTINGS, as in 'mine: compression=lz4'".to_owned());
    };
    let arm = Arm { name: name.trim().to_owned(), options: options.trim().to_owned() };
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_.,+ ".contains(c);
    if arm.name.is_empty() || !arm.name.chars().all(is_allowed) {
        return Err("a policy's name takes letters, digits, spaces and -_.,+".to_owned());
    }
    let sample = "cpu=1,write=1,month=1,read=1";
    let parsed = settings(&arm.options.replace("{prices}", sample));
    parsed.map(|_| arm).map_err(|error| error.to_string())
}

/// Hours that the load stands for, and what follows it: a month together.
const HOURS: [f64; 2] = [24.0, 706.0];

/// All policies, or those that were named.
fn chosen_arms(arguments: &PoliciesArguments) -> Result<Vec<Arm>, Fault> {
    let mut arms = Arm::ladders();
    arms.push(Arm::auto());
    arms.extend(Arm::rules());
    for own in &arguments.arms {
        // Results are kept by the name of their policy.
        let is_of_auto = own.id().starts_with("auto-");
        if is_of_auto || arms.iter().any(|arm| arm.id() == own.id()) {
            return Err(Fault::usage(format!(
                "--arm {}: there is a policy of that name",
                own.name
            )));
        }
        arms.push(own.clone());
    }
    if let Some(unknown) =
        arguments.only.iter().find(|name| arms.iter().all(|arm| arm.name != **name))
    {
        let names: Vec<&str> = arms.iter().map(|arm| arm.name.as_str()).collect();
        return Err(Fault::usage(format!("no policy {unknown}; there are {}", names.join(" | "))));
    }
    if !arguments.only.is_empty() {
        arms.retain(|arm| arguments.only.contains(&arm.name));
    }
    Ok(arms)
}

/// Runs it.
pub fn run(arguments: &PoliciesArguments) -> Result<(), Fault> {
    refuse_files(
        [&arguments.results].into_iter().chain(&arguments.directory).map(PathBuf::as_path),
    )?;
    for data in &arguments.data {
        data.available().map_err(|error| Fault::usage(error.to_string()))?;
    }
    // Results are kept by name.
    refuse_repetition("--data", &arguments.data, "")?;
    refuse_repetition("--mixes", &arguments.mixes, "")?;
    let arms = chosen_arms(arguments)?;
    let program = this_program(Policies::NAME)?;
    let build = program.build().map_err(Fault::failure)?;
    let matrix = Matrix {
        data: arguments.data.clone(),
        bytes: arguments.mb * 1_000_000,
        mixes: arguments.mixes.clone(),
        arms,
        repeats: arguments.repeats,
        hours: HOURS,
        seconds_per_mb: arguments.pace as f64 / 100.0,
        build,
    };
    let plan = matrix.plan();
    for cell in &plan.cells {
        // What users write was read already: only the price of a scaled month is left to be refused.
        settings(&cell.options()).map_err(|error| {
            let seconds = cell.expected_seconds;
            Fault::usage(format!(
                "a month would take {seconds:.2} s, too little for its price: raise --mb or --pace ({error})"
            ))
        })?;
    }
    let expanded = Expanded { plan, skipped: Vec::new() };
    let ready: Box<dyn PlannedRun> = Box::new(Planned::<Policies>::new(expanded, program));
    alone(&ready, &arguments.results, arguments.directory.as_deref(), arguments.fresh, &[])
}
