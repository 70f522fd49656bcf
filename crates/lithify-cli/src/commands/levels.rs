//! `lithify levels`: prints the tree of a database.

use std::path::PathBuf;

use clap::Args;
use lithify::fs::World;
use lithify::inspect::{self, LevelSum, Levels, LevelsOptions, LevelsPage, TableLine};

use super::bench::screen::width_or;
use super::bytes::escape;
use super::database::not_read;
use super::format::{FormatArguments, ReportFormat};
use super::rows::csv;
use crate::fault::{Fault, print};

/// Columns of the page where no terminal says how many it has.
const COLUMNS: usize = 80;

/// `levels`
#[derive(Debug, Args)]
#[command(
    long_about = "\
Print the tree of a database: per column family one line for each level that has tables.

Columns:
- number of tables; their size on disk; raw bytes for each stored byte;
- the target of the level; entries, older versions and removals among them;
- CODEC: what the tables were written with, as their properties say. Of several codecs each has its number
  of tables;
- NEXT: the codec of tables that are written now.

With --files each table has a line too, with its first and last key. `<` before the last one says that the
table ends before it. Keys are cut to fit into the line.

With --full levels without tables have a line, and further tables have the rest:
- raw size before compression; codecs and number of the data blocks, as the tables' indexes say; how many
  are raw because they did not shrink (FALLBACK); tables in codec debt;
- deletes, range deletes, sequence numbers; identity, manifest and options.

Lines are as wide as the terminal. Elsewhere they have 80 columns, or as many as COLUMNS says.
JSON and CSV have every figure, and whole keys.

Reads only and takes no lock: of an open database it shows a state that was in force meanwhile,
without what is still in the log.",
    after_help = "\
Examples:
  lithify levels graph.db
  lithify levels graph.db --files
  lithify levels graph.db --full
  lithify levels graph.db --check --json
  lithify levels graph.db --files --format csv

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
    /// Every figure
    #[arg(long)]
    full: bool,
    /// Read and check every block of every table
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    format: FormatArguments<ReportFormat>,
}

/// Prints it.
pub fn run(arguments: &LevelsArguments) -> Result<(), Fault> {
    let options = LevelsOptions { check: arguments.check };
    let levels = inspect::read_levels(&*World::system().files, &arguments.directory, &options)
        .map_err(|error| not_read(&arguments.directory, error))?;
    print(&match arguments.format.of_report() {
        ReportFormat::Json => format!("{}\n", levels.to_json(arguments.files)),
        ReportFormat::Csv if arguments.files => csv(&table_lines(&levels)),
        ReportFormat::Csv => csv(&level_lines(&levels)),
        ReportFormat::Table => {
            let (files, full) = (arguments.files, arguments.full);
            levels.to_text(&LevelsPage { files, full, width: width_or(COLUMNS) })
        }
    })?;
    match levels.damage.into_iter().next() {
        Some(damage) => Err(Fault::of_engine(damage)),
        None => Ok(()),
    }
}

/// Cells of a header.
fn cells(header: &str) -> Vec<String> {
    header.split(' ').map(str::to_owned).collect()
}

/// Every level of every family, with the names that the JSON has.
fn level_lines(levels: &Levels) -> Vec<Vec<String>> {
    let line = |family: &str, sum: &LevelSum| {
        let (asked, found) = (sum.asked_text(), sum.found_text());
        let head = [family.to_owned(), sum.level.to_string(), asked, found, sum.blocks_text()];
        let figures = [
            sum.files,
            sum.size_bytes,
            sum.raw_bytes,
            sum.target_bytes,
            sum.fallback_blocks,
            sum.debt_files,
            sum.debt_bytes,
            sum.entries,
            sum.tombstones,
            sum.range_tombstones,
        ];
        let sequences = match sum.files {
            0 => [String::new(), String::new()],
            _ => [sum.smallest_sequence, sum.largest_sequence].map(|number| number.to_string()),
        };
        let figures = figures.map(|figure| figure.to_string());
        head.into_iter().chain(figures).chain(sequences).collect()
    };
    let mut lines = vec![cells(
        "family level asked found blocks files size_bytes raw_bytes target_bytes fallback_blocks \
         debt_files debt_bytes entries tombstones range_tombstones smallest_sequence \
         largest_sequence",
    )];
    for family in &levels.families {
        lines.extend(family.levels.iter().map(|sum| line(&family.name, sum)));
    }
    lines
}

/// Every table of every family, with the names that the JSON has.
fn table_lines(levels: &Levels) -> Vec<Vec<String>> {
    let line = |family: &str, table: &TableLine| {
        let metadata = &table.metadata;
        let written_for = table.written_for.map_or_else(String::new, |level| level.to_string());
        let found = table.found.clone().unwrap_or_default();
        let level = table.level.to_string();
        let head = [family.to_owned(), level, written_for, found, table.blocks_text()];
        let figures = [
            metadata.number,
            metadata.size_bytes,
            metadata.raw_bytes,
            table.fallback_blocks,
            metadata.entries,
            metadata.tombstones,
            metadata.range_tombstones,
            metadata.smallest_sequence,
            metadata.largest_sequence,
        ];
        let figures = figures.map(|figure| figure.to_string());
        let range = &metadata.range;
        let is = |yes: bool| yes.to_string();
        let tail = [
            is(metadata.codec_debt),
            escape(&range.smallest),
            escape(&range.largest),
            is(range.largest_exclusive),
        ];
        head.into_iter().chain(figures).chain(tail).collect()
    };
    let mut lines = vec![cells(
        "family level written_for found blocks number size_bytes raw_bytes fallback_blocks entries \
         tombstones range_tombstones smallest_sequence largest_sequence codec_debt smallest \
         largest largest_exclusive",
    )];
    for family in &levels.families {
        lines.extend(family.tables.iter().map(|table| line(&family.name, table)));
    }
    lines
}
