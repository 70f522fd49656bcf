//! `lithify explain`: prints what compression a database has, why, and what it costs.

mod page;
mod pricing;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use lithify::Explanation;
use lithify::fs::World;
use lithify::inspect::{self, wrapped};

use super::bench::screen::width_or;
use super::database::not_read;
use super::format::FormatArguments;
use super::rows::csv;
use super::worth::WorthArguments;
use crate::fault::{Fault, print};
use page::{csv_header, csv_lines, json_of};
use pricing::{Pricing, price_ladders};

/// Columns of the page where no terminal says how many it has.
const COLUMNS: usize = 80;
/// Seconds that pricing may take where none are named.
const SECONDS: f64 = 5.0;

/// `explain`
#[derive(Debug, Args)]
#[command(
    long_about = "\
Print what compression the levels of a database have, why, and what else it would cost.

Compression that is decided by cost (auto) has one line a level:
- stored bytes and raw bytes per stored byte (ratio); what tables that are written now get;
- how long a byte lives there before a compaction consumes it;
- block loads by lookups for each raw MiB and hour;
- the next best choice, how much more it would cost, and in which terms.

A fixed ladder is priced by a sample of its rows, as `lithify advise` does it. First comes what it costs, and
the best ladder. Then each place of the ladder has a line: what its codec costs with every write of every
level, and what the next best ones would cost. These costs are for a TB (10^12 bytes) of rows and a year.

Other costs are millionths of a dollar, or of the currency of your prices, for a raw GB from its writing
to its consumption. --goal and --price are for ladders: auto has prices of its own.

Lines are as wide as the terminal. Elsewhere they have 80 columns, or as many as COLUMNS says.

Takes no lock and changes no data: rows are read as `lithify get` reads them, beside a writer too. Decisions
are those that the newest tables record; what was read since then is not known.",
    after_help = "\
Examples:
  lithify explain graph.db
  lithify explain graph.db links --why
  lithify explain graph.db --goal space
  lithify explain graph.db links --price cpu=11,month=80000 --time 30
  lithify explain graph.db --json
  lithify explain graph.db --format csv
  lithify explain graph.db links --record > decision.txt

Exit codes:
  0  done
  1  damage: the error names file and offset
  2  used wrongly: no such directory, a file, a directory without a database, no such family or price"
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
    worth: WorthArguments,
    /// Seconds that pricing fixed ladders may take; 0 prices none [default: 5]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    time: Option<Duration>,
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
    /// A header, and a line for each candidate of each level
    Csv,
    /// What decisions were made from, as text
    Record,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.0..=86_400.0).contains(seconds));
    let time = seconds.map(Duration::from_secs_f64);
    time.ok_or_else(|| "a time is 0 to 86400 seconds".to_owned())
}

impl ExplainArguments {
    fn format(&self) -> Result<ExplainFormat, Fault> {
        let format = match self.record {
            true => ExplainFormat::Record,
            false => self.format.format().unwrap_or(ExplainFormat::Table),
        };
        match self.why && format != ExplainFormat::Table {
            true => Err(Fault::usage("--why is of the table; JSON and CSV have every term")),
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
    if format == ExplainFormat::Record {
        return print(&explanations.iter().map(|one| one.record.as_str()).collect::<String>());
    }
    let time = arguments.time.unwrap_or(Duration::from_secs_f64(SECONDS));
    let pricings = price_ladders(&arguments.directory, &explanations, &arguments.worth, time)?;
    let all = || explanations.iter().zip(&pricings);
    print(&match format {
        ExplainFormat::Json => {
            let all: Vec<String> = all().map(|(one, pricing)| json_of(one, pricing)).collect();
            format!("[{}]\n", all.join(","))
        }
        ExplainFormat::Csv => {
            let lines = all().flat_map(|(one, pricing)| csv_lines(one, pricing));
            csv(&[csv_header()].into_iter().chain(lines).collect::<Vec<_>>())
        }
        _ if explanations.is_empty() => "no column family yet\n".to_owned(),
        _ => {
            let columns = width_or(COLUMNS);
            let text = |(one, pricing)| arguments.text(one, pricing, columns);
            all().map(text).collect::<Vec<String>>().join("\n")
        }
    })
}

impl ExplainArguments {
    fn text(&self, explanation: &Explanation, pricing: &Pricing, columns: usize) -> String {
        let why = match pricing {
            Pricing::Priced(priced) => return priced.to_text(explanation, self.why, columns),
            Pricing::None => return explanation.to_text(self.why, columns),
            Pricing::Unpriced(why) => why,
        };
        let (directory, family) = (self.directory.display(), &explanation.family);
        let why =
            format!("not priced: {why}; `lithify advise {directory} --table {family}` prices it");
        let why = wrapped("  ", why.split(' '), 4, columns);
        format!("{}{why}\n", explanation.to_text(self.why, columns))
    }
}
