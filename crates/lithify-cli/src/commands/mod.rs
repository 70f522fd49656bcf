//! The commands: one file each.

mod bench;

use clap::Subcommand;

use crate::fault::Fault;

/// What the program can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run experiments and show their results
    #[command(subcommand)]
    Bench(bench::BenchCommand),
}

/// Does it.
pub fn run(command: Command) -> Result<(), Fault> {
    match command {
        Command::Bench(command) => bench::run(command),
    }
}
