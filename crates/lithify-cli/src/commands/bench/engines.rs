//! `lithify bench engines`: the engines by name, what they can do, how to get those missing.

use clap::Args;
use lithify_lab::engines::registry;
use lithify_lab::report::engines::{ListedEngine, render};

use crate::fault::{Fault, print};

/// `bench engines`
#[derive(Debug, Args)]
#[command(after_help = "\
Columns:
- transactions: own row locks, or the lab's external lock, one per group of rows;
- codecs: kinds of codec; \"per level\" when levels may differ;
- own statistics: whether the engine counts bytes or time itself, beside what the operating system
  counts.

docs/engines.md says what is matched.

Examples:
  lithify bench engines
  lithify bench engines --json")]
pub struct EnginesArguments {
    /// Print everything that is known, as JSON
    #[arg(long)]
    json: bool,
}

/// Lists them.
pub fn run(arguments: &EnginesArguments) -> Result<(), Fault> {
    let engines: Vec<ListedEngine> =
        registry::providers().into_iter().map(ListedEngine::of).collect();
    if !arguments.json {
        return print(&render(&engines));
    }
    let json = serde_json::to_string_pretty(&engines).map_err(Fault::failure)?;
    print(&format!("{json}\n"))
}
