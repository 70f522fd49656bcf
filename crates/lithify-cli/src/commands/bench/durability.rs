//! `lithify bench durability`: what crashes take in each mode, and what commits cost.

use std::path::PathBuf;

use clap::Args;
use lithify_lab::durability::DurabilitySpec;
use lithify_lab::durability::kind::Durability;
use lithify_lab::durability::plan::DurabilityPlan;
use lithify_lab::kind::planned::{Planned, PlannedRun};
use lithify_lab::kind::{Expanded, Kind};

use super::arguments::range;
use super::places::refuse_files;
use super::process::this_program;
use super::ready::alone;
use crate::fault::Fault;

/// `bench durability`
#[derive(Debug, Args)]
#[command(after_help = "\
Four modes: none (no log), buffered (the log is written), interval (and synced every 50 ms) and sync
(synced before anybody sees the write). Processes that write are killed at random moments on the
real file system. Power is cut at random moments over a file system in memory that loses what was
not synced. After a crash, what was acknowledged or seen before it is looked for. Rates and
latencies of commits are those of the real file system. The report goes to
DIR/durability-lithify.txt, .json and .html. A broken promise (docs/durability.md) is exit code 1. A
mode that was measured by the same program with the same settings is not measured again.

Examples:
  lithify bench durability
  lithify bench durability --kills 100 --cuts 1000 --seconds 10
  lithify bench durability --kills 100 --memory-limit-mib 24
  lithify bench durability --writers 1,2,8 --value-bytes 1000 --data /mnt/disk")]
pub struct DurabilityArguments {
    /// Threads that commit at once, for rates and latencies [1 to 200 each]
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values_t = [1, 4, 16],
        value_parser = range(1, 200))]
    writers: Vec<u64>,
    /// How long each number of writers commits in each mode [1 to 3600]
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = range(1, 3600))]
    seconds: u64,
    /// Processes killed in each mode [1 to 100000]
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = range(1, 100_000))]
    kills: u64,
    /// Memory of a process to be killed, its page cache included, MiB; as much as there is when not
    /// given, refused where control groups cannot be made [16 to 1000000]
    #[arg(long, value_name = "N", value_parser = range(16, 1_000_000))]
    memory_limit_mib: Option<u64>,
    /// Power cuts in each mode [1 to 1000000]
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = range(1, 1_000_000))]
    cuts: u64,
    /// Length of a value [1 to 65536]
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = range(1, 65_536))]
    value_bytes: u64,
    /// Seed of the moments of the crashes
    #[arg(long, value_name = "N", default_value_t = 2015)]
    seed: u64,
    /// Measure again what was measured
    #[arg(long)]
    fresh: bool,
    /// Where the databases are meanwhile; beside the results when not given
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where results go
    #[arg(long, value_name = "DIR", default_value = "results")]
    results: PathBuf,
}

/// Runs it.
pub fn run(arguments: &DurabilityArguments) -> Result<(), Fault> {
    refuse_files([&arguments.results].into_iter().chain(&arguments.data).map(PathBuf::as_path))?;
    let ready = prepare(arguments)?;
    alone(&ready, &arguments.results, arguments.data.as_deref(), arguments.fresh, &[])
}

/// Makes it ready.
pub fn prepare(arguments: &DurabilityArguments) -> Result<Box<dyn PlannedRun>, Fault> {
    let program = this_program(Durability::NAME)?;
    let spec = DurabilitySpec {
        writers: arguments.writers.clone(),
        seconds: arguments.seconds as f64,
        kills: arguments.kills,
        memory_limit_mib: arguments.memory_limit_mib,
        cuts: arguments.cuts,
        value_bytes: arguments.value_bytes,
        seed: arguments.seed,
        build: program.build().map_err(Fault::failure)?,
    };
    let expanded = Expanded { plan: DurabilityPlan::new(spec), skipped: Vec::new() };
    Ok(Box::new(Planned::<Durability>::new(expanded, program)))
}
