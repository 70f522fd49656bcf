//! `lithify bench setup`: gets the library of another engine and tries it.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use lithify_lab_engines::setup;

use crate::fault::{Fault, print};

/// `bench setup`
#[derive(Debug, Args)]
#[command(after_help = "\
Fetches the library out of the engine's published package with the package's own client (Maven),
loads it, makes a small database with it, and keeps it in a directory outside of any build:
$LITHIFY_ENGINES, else $XDG_CACHE_HOME/lithify/engines, else ~/.cache/lithify/engines.

Examples:
  lithify bench setup rocksdb
  lithify bench setup rocksdb --version 10.4.2
  lithify bench overwrite --engine rocksdb --seconds 10")]
pub struct SetupArguments {
    /// Which engine
    #[arg(value_enum)]
    engine: EngineArgument,
    /// Which version of it
    #[arg(long, value_name = "VERSION", default_value = setup::ROCKSDB_DEFAULT_VERSION)]
    version: String,
    /// Where to keep it, instead; name the same place in LITHIFY_ENGINES when it is used
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// Engines that can be fetched.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum EngineArgument {
    /// RocksDB, out of its Java package
    Rocksdb,
}

/// Gets it.
pub fn run(arguments: &SetupArguments) -> Result<(), Fault> {
    let EngineArgument::Rocksdb = arguments.engine;
    let directory = match &arguments.directory {
        Some(directory) => directory.clone(),
        None => setup::directory().map_err(Fault::usage)?,
    };
    let directory = std::path::absolute(&directory).map_err(Fault::usage)?;
    let library = setup::fetch_rocksdb(&directory, &arguments.version).map_err(Fault::failure)?;
    print(&format!("RocksDB {} is at {}\n", arguments.version, library.display()))
}
