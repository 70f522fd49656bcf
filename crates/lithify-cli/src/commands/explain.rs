//! `lithify explain`: prints what compression a database has, and why.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use lithify::Explanation;
use lithify::fs::World;
use lithify::inspect;

use super::database::not_read;
use super::format::FormatArguments;
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
`lithify advise` samples the rows of such a family, and prices what it is set to beside all else.

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
    #[command(flatten)]
    format: FormatArguments<ExplainFormat>,
    /// Short for --format record
    #[arg(long, conflicts_with_all = ["why", "format", "json"])]
    record: bool,
}

/// Forms of an explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ExplainFormat {
    /// Text for people
    Table,
    /// One JSON array
    Json,
    /// What decisions were made from, as text
    Record,
}

impl ExplainArguments {
    fn format(&self) -> Result<ExplainFormat, Fault> {
        let format = match self.record {
            true => ExplainFormat::Record,
            false => self.format.format().unwrap_or(ExplainFormat::Table),
        };
        match self.why && format != ExplainFormat::Table {
            true => Err(Fault::usage("--why is of the table; the JSON has every term")),
            false => Ok(format),
        }
    }
}

/// Prints it.
pub fn run(arguments: &ExplainArguments) -> Result<(), Fault> {
    let format = arguments.format()?;
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
    print(&match format {
        ExplainFormat::Json => {
            let all: Vec<String> = explanations.iter().map(Explanation::to_json).collect();
            format!("[{}]\n", all.join(","))
        }
        ExplainFormat::Record => explanations.iter().map(|one| one.record.as_str()).collect(),
        ExplainFormat::Table => page(&explanations, arguments),
    })
}

fn page(explanations: &[Explanation], arguments: &ExplainArguments) -> String {
    let shown = |one: &Explanation| {
        let text = if arguments.why { format!("{one:#}") } else { one.to_string() };
        match one.prices.is_none() && !one.levels.is_empty() {
            true => text + &unpriced(&arguments.directory, &one.family),
            false => text,
        }
    };
    let all: Vec<String> = explanations.iter().map(shown).collect();
    match all.is_empty() {
        true => "no column family yet\n".to_owned(),
        false => all.join("\n"),
    }
}

/// Nothing measures beside a ladder that is set. Prices need a sample of the rows, which advice takes.
fn unpriced(directory: &Path, family: &str) -> String {
    let directory = directory.display();
    format!("  set, so not priced; `lithify advise {directory} --table {family}` prices it\n")
}
