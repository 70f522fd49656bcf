//! `lithify bench durability`: what crashes take in each mode, and what commits cost.

use std::io::{IsTerminal, stderr};
use std::path::PathBuf;

use clap::Args;
use lithify_lab::durability::{self, DurabilitySpec, Runner, report};
use lithify_lab::run::progress::Terminal;

use super::arguments::range;
use super::process::{print_report, refuse_files, this_program, watch_signals};
use crate::fault::Fault;

/// `bench durability`
#[derive(Debug, Args)]
#[command(after_help = "\
Four modes: none (no log), buffered (the log is written), interval (and synced every 50 ms) and sync
(synced before anybody sees the write). Processes that write are killed at random moments on the
real file system; power is cut at random moments over a file system in memory that loses what was
not synced; what was acknowledged or seen before a crash is looked for after it. Rates and
latencies of commits are those of the real file system. The report goes to
DIR/durability-lithify.txt and .json. A broken promise (docs/durability.md) is exit code 1.

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
    let program = this_program("durability-process")?;
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
    let interrupt = watch_signals()?;
    let runner = Runner {
        spec: &spec,
        program,
        results: &arguments.results,
        data: arguments.data.as_deref(),
        interrupt: &interrupt,
    };
    let mut terminal = Terminal::new(stderr().is_terminal());
    let record = runner.run(&mut terminal).map_err(Fault::failure)?;
    drop(terminal);
    let Some(record) = record else {
        return Err(Fault::interrupted("stopped; nothing was written"));
    };
    let files = durability::write_report(&arguments.results, &record).map_err(Fault::failure)?;
    print_report(&report::render(&record), &files)?;
    match record.violations().len() {
        0 => Ok(()),
        broken => Err(Fault::failure(format!("{broken} promises were broken; see the report"))),
    }
}
