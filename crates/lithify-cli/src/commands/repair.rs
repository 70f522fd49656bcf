//! `lithify repair`: saves what is whole of a damaged database.

use std::path::PathBuf;

use clap::Args;
use lithify::repair::{self, RepairOptions, RepairReport, RepairedFamily};
use lithify_report::grid::{Align, Grid};
use lithify_report::{Table, text};

use super::bench::screen::width_or_whole;
use super::database::not_read;
use super::format::ReportFormat;
use super::rows::csv_of_report;
use super::tool::{ResultFile, Watch, fitted, listed};
use crate::fault::{Fault, print};

/// `repair`
#[derive(Debug, Args)]
#[command(
    long_about = "\
Save what is whole of a damaged database into a new directory.

The damaged directory is only read. Tables that are whole are taken, of damaged ones the blocks that
are whole; without CURRENT or a manifest the tables themselves tell which column family they belong
to. The log is replayed up to the first damage. What was lost is listed: files, offsets, ranges of
keys, and where rows may be older than the last write. The result is verified at the end; until then
the new directory does not open as a database, and the same command begins again.

JSON has everything that is printed, and more. CSV has a line for each column family. --json FILE writes
the JSON into a file, whatever is printed.",
    after_help = "\
Examples:
  lithify repair graph.db --to repaired.db
  lithify repair graph.db --to repaired.db --json report.json
  lithify repair graph.db --to repaired.db --beyond-damage

Exit codes:
  0    repaired and verified, nothing is lost
  1    repaired and verified, but something is lost: the lines above say what; or it failed
  2    used wrongly: no such directory, no database in it, a target inside of it
  130  stopped by Ctrl-C or SIGTERM"
)]
pub struct RepairArguments {
    /// The directory of the damaged database
    directory: PathBuf,
    /// The directory for the repaired one: new, empty, or of a repair that did not end
    #[arg(long = "to", value_name = "NEWDIR")]
    target: PathBuf,
    /// Replay what the log has behind damage too: commits are then missing before others
    #[arg(long)]
    beyond_damage: bool,
    /// As what [default: table]
    #[arg(long, value_enum)]
    format: Option<ReportFormat>,
    /// Write what was saved, lost and found into a file, as one JSON object
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Repairs it.
pub fn run(arguments: &RepairArguments) -> Result<(), Fault> {
    let options =
        RepairOptions { beyond_damage: arguments.beyond_damage, ..RepairOptions::default() };
    let json = ResultFile::open(arguments.json.as_deref())?;
    let watch = Watch::begin("repair")?;
    let report =
        repair::repair_with(&arguments.directory, &arguments.target, &options, &mut |progress| {
            watch.hear(progress.done_bytes, progress.total_bytes)
        })
        .map_err(|error| not_read(&arguments.directory, error))?;
    drop(watch);
    print(&match arguments.format.unwrap_or(ReportFormat::Table) {
        ReportFormat::Table => page(&report),
        ReportFormat::Json => report.to_json() + "\n",
        ReportFormat::Csv => csv_of_report(&FAMILY, &report.to_json(), "families"),
    })?;
    if let Some(file) = json {
        file.write(&report.to_json())?;
    }
    if report.is_cancelled {
        return Err(Fault::interrupted("stopped; the same command begins again"));
    }
    match report.is_lossless() {
        true => Ok(()),
        false => Err(Fault::failure("not everything was saved")),
    }
}

/// The fields of a column family, with the names that the JSON has.
const FAMILY: [&str; 6] =
    ["name", "old_id", "rows", "whole_tables", "salvaged_tables", "lost_tables"];

/// The columns of the page; the first one names a line.
const COLUMNS: [(&str, Align); 5] = [
    ("column family", Align::Left),
    ("rows", Align::Right),
    ("whole tables", Align::Right),
    ("salvaged", Align::Right),
    ("lost", Align::Right),
];

fn page(report: &RepairReport) -> String {
    let columns = width_or_whole();
    let row = |family: &RepairedFamily| {
        let figures =
            [family.rows, family.whole_tables, family.salvaged_tables, family.lost_tables];
        let mut row = vec![family.name.clone()];
        row.extend(figures.map(|figure| figure.to_string()));
        row
    };
    let rows = report.families.iter().map(row).collect();
    let table = text::table(&Table::new("", Grid::new(&COLUMNS, rows)), columns);
    let found = listed(&report.findings) + &listed(&report.lost);
    format!("{}{table}{}", fitted(&found, columns), fitted(&report.outcome(), columns))
}
