//! `lithify stats`: prints how large a database is, family by family and level by level.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use lithify::fs::World;
use lithify::inspect::{self, FamilyLevels, LevelSum, Levels, size};
use lithify::stats::StatisticsSnapshot;
use lithify_report::grid::{Align, Grid};
use lithify_report::{Table, text};
use serde_json::{Value, json};

use super::bench::screen::width_or_whole;
use super::database::open_to_read;
use super::format::FormatArguments;
use super::rows::csv;
use super::tool::fitted;
use crate::fault::{Fault, print};

/// `stats`
#[derive(Debug, Args)]
#[command(
    long_about = "\
Print how large a database is: column families, levels, log, and what waits for compaction.

The first line sums up: bytes on disk and before compression, bytes of the log that are not in tables
yet, bytes that a compaction is due to read. Where there are bytes of the log, a line says that the table
does not count them. Columns: tables; their size on disk and before compression, and the ratio of the
two; entries, older versions among them; removals; the codecs of the tables. Of several codecs each has
its number of tables.

Works beside a process that writes, and shows what is on disk then. Time and traffic are counted in the
process that works: Db::stats there has them, and `to_prometheus` of it serves them. As prometheus
the counters are those of this command alone, near zero; the gauges (tables, bytes, levels, log) are
the database's. `lithify levels` has more of each level, `lithify explain`
says why it has its compression.",
    after_help = "\
Examples:
  lithify stats rocks.db
  lithify stats rocks.db --json | jq .size_bytes
  lithify stats rocks.db --prometheus >/var/lib/node_exporter/rocks.prom

Exit codes:
  0  done
  1  something failed: the error names file and offset
  2  used wrongly: no such directory, a file, a directory without a database"
)]
pub struct StatsArguments {
    /// The directory of the database
    directory: PathBuf,
    #[command(flatten)]
    format: FormatArguments<StatsFormat>,
    /// Short for --format prometheus
    #[arg(long, conflicts_with_all = ["format", "json"])]
    prometheus: bool,
}

/// Forms of statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum StatsFormat {
    /// Text for people
    Table,
    /// One JSON object
    Json,
    /// A header, and a line for each level
    Csv,
    /// Metrics, in Prometheus' text format
    Prometheus,
}

/// Prints it.
pub fn run(arguments: &StatsArguments) -> Result<(), Fault> {
    let format = match arguments.prometheus {
        true => StatsFormat::Prometheus,
        false => arguments.format.format().unwrap_or(StatsFormat::Table),
    };
    let db = open_to_read(&arguments.directory)?;
    if format == StatsFormat::Prometheus {
        return print(&db.stats().to_prometheus());
    }
    let files = World::system().files;
    let levels = inspect::read_levels(&*files, &arguments.directory, &Default::default());
    let levels = levels.map_err(Fault::of_engine)?;
    let snapshot = db.stats();
    print(&match format {
        StatsFormat::Json => format!("{}\n", object(&levels, &snapshot)),
        StatsFormat::Csv => csv(&lines(&levels)),
        _ => page(arguments, &levels, &snapshot),
    })?;
    match levels.damage.into_iter().next() {
        Some(damage) => Err(Fault::of_engine(damage)),
        None => Ok(()),
    }
}

/// A figure of all families together.
fn sum(levels: &Levels, figure: fn(&LevelSum) -> u64) -> u64 {
    levels.families.iter().map(|family| figure(&family.total())).sum()
}

fn page(arguments: &StatsArguments, levels: &Levels, snapshot: &StatisticsSnapshot) -> String {
    let columns = width_or_whole();
    let mut text = format!(
        "{} tables, {} of {} raw, log {}, {} due for compaction: {}\n",
        sum(levels, |all| all.files),
        size(sum(levels, |all| all.size_bytes)),
        size(sum(levels, |all| all.raw_bytes)),
        size(snapshot.wal_live_bytes),
        size(snapshot.pending_compaction_bytes),
        arguments.directory.display(),
    );
    if levels.families.is_empty() {
        text.push_str("no column family yet\n");
        return fitted(&text, columns);
    }
    if snapshot.wal_live_bytes > 0 {
        let log = size(snapshot.wal_live_bytes);
        text.push_str(&format!(
            "Entries that are only in the log ({log}) are not counted; `lithify count` counts rows.\n"
        ));
    }
    let rows = levels.families.iter().flat_map(family_rows).collect();
    let table = Table::new("", Grid::new(&COLUMNS, rows)).keyed_by(2);
    fitted(&text, columns) + &text::table(&table, columns)
}

/// The columns of the page; the first two name a line. What stands to the right is never broken: a codec has a
/// hyphen.
const COLUMNS: [(&str, Align); 9] = [
    ("FAMILY", Align::Left),
    ("LEVEL", Align::Left),
    ("TABLES", Align::Right),
    ("SIZE", Align::Right),
    ("RAW", Align::Right),
    ("RATIO", Align::Right),
    ("ENTRIES", Align::Right),
    ("REMOVALS", Align::Right),
    ("CODEC", Align::Right),
];

/// A line for each level with tables, and for all of them.
fn family_rows(family: &FamilyLevels) -> Vec<Vec<String>> {
    let line = |name: &str, level: String, sum: &LevelSum, codec: String| {
        let ratio = sum.ratio().map_or_else(String::new, |ratio| format!("{ratio:.3}"));
        let removals = sum.tombstones + sum.range_tombstones;
        vec![
            name.to_owned(),
            level,
            sum.files.to_string(),
            size(sum.size_bytes),
            size(sum.raw_bytes),
            ratio,
            sum.entries.to_string(),
            removals.to_string(),
            codec,
        ]
    };
    let full: Vec<&LevelSum> = family.levels.iter().filter(|level| level.files > 0).collect();
    let mut rows = vec![line(&family.name, "all".to_owned(), &family.total(), String::new())];
    for level in full {
        rows.push(line("", format!("L{}", level.level), level, level.codecs_text()));
    }
    rows
}

/// Every level of every family, with the names that the JSON has.
fn lines(levels: &Levels) -> Vec<Vec<String>> {
    let head =
        "family level tables size_bytes raw_bytes entries tombstones range_tombstones codecs";
    let mut lines = vec![head.split(' ').map(str::to_owned).collect::<Vec<_>>()];
    for family in &levels.families {
        lines.extend(family.levels.iter().map(|sum| {
            let figures = [
                sum.level as u64,
                sum.files,
                sum.size_bytes,
                sum.raw_bytes,
                sum.entries,
                sum.tombstones,
                sum.range_tombstones,
            ];
            let mut line = vec![family.name.clone()];
            line.extend(figures.map(|figure| figure.to_string()));
            line.push(sum.found_text());
            line
        }));
    }
    lines
}

fn object(levels: &Levels, snapshot: &StatisticsSnapshot) -> Value {
    let object = |sum: &LevelSum| {
        json!({
            "tables": sum.files,
            "size_bytes": sum.size_bytes,
            "raw_bytes": sum.raw_bytes,
            "entries": sum.entries,
            "codecs": sum.found,
            "tombstones": sum.tombstones,
            "range_tombstones": sum.range_tombstones,
        })
    };
    let family = |family: &FamilyLevels| {
        let levels: Vec<Value> = family.levels.iter().map(object).collect();
        json!({ "name": family.name, "total": object(&family.total()), "levels": levels })
    };
    let families: Vec<Value> = levels.families.iter().map(family).collect();
    json!({
        "tables": sum(levels, |all| all.files),
        "size_bytes": sum(levels, |all| all.size_bytes),
        "raw_bytes": sum(levels, |all| all.raw_bytes),
        "log_bytes": snapshot.wal_live_bytes,
        "pending_compaction_bytes": snapshot.pending_compaction_bytes,
        "is_closed": levels.is_closed,
        "families": families,
    })
}
