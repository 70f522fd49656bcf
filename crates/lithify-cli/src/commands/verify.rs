//! `lithify verify`: checks every byte of a database.

use std::path::PathBuf;

use clap::Args;
use lithify::verify::{self, VerifyOptions, VerifyReport};

use super::bench::screen::width_or_whole;
use super::database::not_read;
use super::format::ReportFormat;
use super::rows::csv_of_report;
use super::sizes::rate;
use super::tool::{ResultFile, Watch, fitted, listed};
use crate::fault::{Fault, print};

/// `verify`
#[derive(Debug, Args)]
#[command(
    long_about = "\
Check every byte of a database: all checksums, indexes, filters, range deletes, properties, log
segments and the manifest. Check the order of rows in blocks, between blocks and between tables, and
that every file that is named is there and every file that is there is named.

A database that a process has open is verified as it was on disk when the command began; the
files stay there until it ends. Damage does not end it: everything that is wrong is listed, with
file, offset, what was expected and what to do. Only reads. What a crash leaves and the next
opening clears up is a notice and no damage.

JSON has what was examined and all findings. CSV has a line for each finding, and none but its header
without one. --json FILE writes the JSON into a file, whatever is printed.",
    after_help = "\
Examples:
  lithify verify graph.db
  lithify verify graph.db --family links --family nodes
  lithify verify graph.db --rate 50 --json report.json
  lithify verify graph.db --format json | jq .examined

Exit codes:
  0    everything is sound
  1    damage: the lines above the error say what and where
  2    used wrongly: no such directory, a file, a directory without a database, no such family
  130  stopped by Ctrl-C or SIGTERM"
)]
pub struct VerifyArguments {
    /// The directory of the database
    directory: PathBuf,
    /// Read the tables of this column family only; may be given several times
    #[arg(long = "family", value_name = "NAME")]
    families: Vec<String>,
    /// Read at most so much in a second: MB (10^6 bytes), or with a unit, as 512KiB
    #[arg(long, value_name = "MB", value_parser = rate)]
    rate: Option<u64>,
    /// As what [default: table]
    #[arg(long, value_enum)]
    format: Option<ReportFormat>,
    /// Write what was checked and found into a file, as one JSON object
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Checks it.
pub fn run(arguments: &VerifyArguments) -> Result<(), Fault> {
    let options = VerifyOptions {
        families: arguments.families.clone(),
        rate_bytes_per_s: arguments.rate.unwrap_or(0),
    };
    let json = ResultFile::open(arguments.json.as_deref())?;
    let watch = Watch::begin("verify")?;
    let report = verify::verify_with(&arguments.directory, &options, &mut |progress| {
        watch.hear(progress.done_bytes, progress.total_bytes)
    })
    .map_err(|error| not_read(&arguments.directory, error))?;
    drop(watch);
    print(&text_of(&report, arguments.format.unwrap_or(ReportFormat::Table)))?;
    if let Some(file) = json {
        file.write(&report.to_json())?;
    }
    if report.is_cancelled {
        return Err(Fault::interrupted("stopped before everything was checked"));
    }
    match report.damage().next() {
        Some(first) => Err(Fault::failure(&first.error)),
        None => Ok(()),
    }
}

/// The fields of a finding, with the names that the JSON has.
const FINDING: [&str; 9] = [
    "weight",
    "structure",
    "family",
    "file",
    "offset",
    "error",
    "smallest_lost_key",
    "largest_lost_key",
    "advice",
];

fn text_of(report: &VerifyReport, format: ReportFormat) -> String {
    match format {
        ReportFormat::Table => {
            fitted(&format!("{}{report}", listed(&report.findings)), width_or_whole())
        }
        ReportFormat::Json => report.to_json() + "\n",
        ReportFormat::Csv => csv_of_report(&FINDING, &report.to_json(), "findings"),
    }
}
