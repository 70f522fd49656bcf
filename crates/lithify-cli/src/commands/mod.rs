//! The commands: one file each.

mod advise;
mod backup;
mod bench;
mod bytes;
mod checkpoint;
mod compact;
mod copying;
mod count;
mod database;
mod delete;
mod dump;
mod explain;
mod export;
mod foreign;
mod format;
mod get;
mod import;
mod levels;
mod put;
mod repair;
mod restore;
mod rows;
mod scan;
mod sizes;
mod stats;
mod tool;
mod verify;
mod worth;

use clap::Subcommand;

use crate::fault::Fault;

/// What the program can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    // A documentation comment here would take the place of the long text of the command.
    #[command(about = "Print the value of a key")]
    Get(get::GetArguments),
    #[command(about = "Set the value of a key")]
    #[command(alias = "set")]
    Put(put::PutArguments),
    #[command(about = "Remove a key, or all keys of a range")]
    #[command(aliases = ["del", "rm"])]
    Delete(delete::DeleteArguments),
    #[command(about = "Print rows in the order of their keys")]
    Scan(scan::ScanArguments),
    #[command(about = "Count rows")]
    Count(count::CountArguments),
    #[command(about = "Write rows into a CSV, JSON or Parquet file")]
    Export(export::ExportArguments),
    #[command(about = "Put the rows of a file, or of another database, into a database")]
    Import(import::ImportArguments),
    #[command(about = "Merge the tables of a database down to the bottom")]
    Compact(compact::CompactArguments),
    #[command(about = "Print how large a database is: families, levels, log, debts")]
    Stats(stats::StatsArguments),
    #[command(about = "Measure your data, and print the compression settings for your database")]
    Advise(advise::AdviseArguments),
    /// Run experiments and show their results
    Bench(Box<bench::BenchArguments>),
    #[command(about = "Print what a file of the engine holds")]
    Dump(dump::DumpArguments),
    #[command(about = "Print what compression a database has, why, and what else it would cost")]
    Explain(explain::ExplainArguments),
    #[command(about = "Print the tree of a database, level by level")]
    Levels(levels::LevelsArguments),
    #[command(about = "Save what is whole of a damaged database into a new one")]
    Repair(repair::RepairArguments),
    #[command(about = "Check every byte of a database")]
    Verify(verify::VerifyArguments),
    #[command(about = "Make a second database from one, by links")]
    Checkpoint(checkpoint::CheckpointArguments),
    /// Make, list, verify and delete backups
    #[command(subcommand)]
    Backup(backup::BackupCommand),
    #[command(about = "Make a database of a backup")]
    Restore(restore::RestoreArguments),
}

/// Does it.
pub fn run(command: Command) -> Result<(), Fault> {
    match command {
        Command::Get(arguments) => get::run(&arguments),
        Command::Put(arguments) => put::run(&arguments),
        Command::Delete(arguments) => delete::run(&arguments),
        Command::Scan(arguments) => scan::run(&arguments),
        Command::Count(arguments) => count::run(&arguments),
        Command::Export(arguments) => export::run(&arguments),
        Command::Import(arguments) => import::run(&arguments),
        Command::Compact(arguments) => compact::run(&arguments),
        Command::Stats(arguments) => stats::run(&arguments),
        Command::Advise(arguments) => advise::run(&arguments),
        Command::Bench(command) => bench::run(*command),
        Command::Dump(arguments) => dump::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Levels(arguments) => levels::run(&arguments),
        Command::Repair(arguments) => repair::run(&arguments),
        Command::Verify(arguments) => verify::run(&arguments),
        Command::Checkpoint(arguments) => checkpoint::run(&arguments),
        Command::Backup(command) => backup::run(&command),
        Command::Restore(arguments) => restore::run(&arguments),
    }
}
