//! `lithify levels`: prints the tree of a database.

use std::path::PathBuf;

use clap::Args;
use lithify::fs::World;
use lithify::inspect::{self, LevelsOptions};

use super::database::not_read;
use crate::fault::{Fault, print};

/// `levels`
#[derive(Debug, Args)]
#[command(
    long_about = "\
Print the tree of a database: per column family one line a level.

Columns:
- files; size on disk and raw size before compression, with their ratio;
- the target of the level; the codec that the policy asks for;
- codecs and number of the tables, as their properties say;
- codecs and number of the data blocks, as the tables' indexes say, and how many of them are raw
  because they did not shrink;
- tables in codec debt; entries, deletes and range deletes; sequence numbers.

Reads only and takes no lock: of an open database it shows a state that was in force meanwhile,
without what is still in the log.",
    after_help = "\
Examples:
  lithify levels graph.db
  lithify levels graph.db --files
  lithify levels graph.db --check --json

Exit codes:
  0  done, nothing is damaged
  1  damage: the error names file and offset; what can be read is printed
  2  used wrongly: no such directory, a file, a directory without a database"
)]
pub struct LevelsArguments {
    /// The directory of the database
    directory: PathBuf,
    /// One line for each table too
    #[arg(long)]
    files: bool,
    /// Read and check every block of every table
    #[arg(long)]
    check: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Prints it.
pub fn run(arguments: &LevelsArguments) -> Result<(), Fault> {
    let options = LevelsOptions { check: arguments.check };
    let levels = inspect::read_levels(&*World::system().files, &arguments.directory, &options)
        .map_err(|error| not_read(&arguments.directory, error))?;
    if arguments.json {
        print(&format!("{}\n", levels.to_json(arguments.files)))?;
    } else {
        print(&levels.to_text(arguments.files))?;
    }
    match levels.damage.into_iter().next() {
        Some(damage) => Err(Fault::of_engine(damage)),
        None => Ok(()),
    }
}
