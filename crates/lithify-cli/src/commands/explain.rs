//! `lithify explain`: prints what compression a database has, and why.

use std::path::PathBuf;

use clap::Args;
use lithify::Explanation;
use lithify::fs::World;
use lithify::inspect;

use super::database::not_read;
use crate::fault::{Fault, print};

/// `explain`
#[derive(Debug, Args)]
#[command(
    long_about = "\
Print what compression the levels of a database have, why, and what else it would cost.

One line a level:
- stored bytes and raw bytes per stored byte (ratio); what tables that are written now get;
- how long a byte lives there before a compaction consumes it;
- block loads by lookups for each raw MiB and hour;
- the next best choice, how much more it would cost, and in which terms.

Costs are millionths of a dollar, or of the currency of your prices, for a raw GB from its writing
to its consumption. Where compression is a fixed ladder, nothing was measured and nothing is priced.

Reads only and takes no lock. Decisions are those that the newest tables record; what was read since
then is not known.",
    after_help = "\
Examples:
  lithify explain graph.db
  lithify explain graph.db links --why
  lithify explain graph.db --json
  lithify explain graph.db links --record > decision.txt

Exit codes:
  0  done
  1  damage: the error names file and offset
  2  used wrongly: no such directory, a file, a directory without a database, no such family"
)]
pub struct ExplainArguments {
    /// The directory of the database
    directory: PathBuf,
    /// One column family instead of all
    family: Option<String>,
    /// The terms of every candidate too
    #[arg(long)]
    why: bool,
    /// Print one JSON array
    #[arg(long, conflicts_with = "why")]
    json: bool,
    /// Print what decisions were made from
    #[arg(long, conflicts_with_all = ["why", "json"])]
    record: bool,
}

/// Prints it.
pub fn run(arguments: &ExplainArguments) -> Result<(), Fault> {
    let mut explanations =
        inspect::read_explanations(&*World::system().files, &arguments.directory)
            .map_err(|error| not_read(&arguments.directory, error))?;
    if let Some(name) = &arguments.family {
        let names: Vec<String> = explanations.iter().map(|one| one.family.clone()).collect();
        explanations.retain(|one| one.family == *name);
        if explanations.is_empty() {
            let known = names.join(", ");
            let directory = arguments.directory.display();
            return Err(Fault::usage(format!(
                "no column family {name:?} in {directory}; there are: {known}"
            )));
        }
    }
    print(&text(&explanations, arguments))
}

fn text(explanations: &[Explanation], arguments: &ExplainArguments) -> String {
    if arguments.json {
        let all: Vec<String> = explanations.iter().map(Explanation::to_json).collect();
        return format!("[{}]\n", all.join(","));
    }
    let shown = |one: &Explanation| match (arguments.record, arguments.why) {
        (true, _) => one.record.clone(),
        (false, true) => format!("{one:#}"),
        (false, false) => one.to_string(),
    };
    let all: Vec<String> = explanations.iter().map(shown).collect();
    match all.is_empty() {
        true => "no column family yet\n".to_owned(),
        false => all.join("\n"),
    }
}
