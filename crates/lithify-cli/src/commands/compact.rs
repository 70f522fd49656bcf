//! `lithify compact`: merges the tables of a database down to the bottom.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use lithify::fs::World;
use lithify::inspect::{self, Levels, size};
use serde_json::{Value, json};

use super::bench::screen::width_or_whole;
use super::database::{not_read, open_to_write, unknown_family};
use super::format::{FormatArguments, ReportFormat};
use super::rows::csv;
use super::tool::fitted;
use crate::fault::{Fault, print};

/// `compact`
#[derive(Debug, Args)]
#[command(
    long_about = "\
Merge the tables of a database, level by level down to the bottom, and drop what no read sees any more.

What was removed or replaced gives its space back. Tables are written as the options of their column
family say. Needs the space of a few tables meanwhile. Ctrl-C ends it at once; what is merged stays.

Prints tables and bytes of each column family before anything is done, and at the end. Entries that
were only in the log are in no table before; a line says so.

A process that has the database open compacts it by itself: then this command changes nothing and ends
with 1.",
    after_help = "\
Examples:
  lithify compact rocks.db
  lithify compact rocks.db --family links
  lithify compact rocks.db --json

Exit codes:
  0  done
  1  failed, or another process has the database open
  2  used wrongly: no database, no such column family"
)]
pub struct CompactArguments {
    /// The directory of the database
    directory: PathBuf,
    /// This column family only
    #[arg(long, value_name = "NAME")]
    family: Option<String>,
    #[command(flatten)]
    format: FormatArguments<ReportFormat>,
}

/// A family that was compacted.
struct Compacted {
    family: String,
    before: Size,
    after: Size,
    seconds: f64,
}

/// The tables of a family.
#[derive(Clone, Copy)]
struct Size {
    tables: u64,
    size_bytes: u64,
}

/// Compacts it.
pub fn run(arguments: &CompactArguments) -> Result<(), Fault> {
    let directory = arguments.directory.as_path();
    // What the user had: opening may put the log into tables already.
    let before = read(directory).map_err(|error| not_read(directory, error))?;
    let db = open_to_write(directory, false)?;
    let log_bytes = db.stats().wal_live_bytes;
    let mut names = db.column_family_names();
    if let Some(wanted) = &arguments.family {
        if !names.contains(wanted) {
            return Err(unknown_family(wanted, &names));
        }
        names.retain(|name| name == wanted);
    }
    let mut all = Vec::new();
    for name in names {
        let Some(family) = db.existing_column_family(&name).map_err(Fault::of_engine)? else {
            continue;
        };
        let began = Instant::now();
        family.flush().map_err(Fault::of_engine)?;
        family.compact_range(..).map_err(Fault::of_engine)?;
        let after = read(directory).map_err(Fault::of_engine)?;
        let (before, after) = (Size::of(&before, &name), Size::of(&after, &name));
        let seconds = began.elapsed().as_secs_f64();
        all.push(Compacted { family: name, before, after, seconds });
    }
    db.close().map_err(Fault::of_engine)?;
    print(&match arguments.format.of_report() {
        ReportFormat::Table => fitted(&page(&all, log_bytes), width_or_whole()),
        ReportFormat::Json => format!("{}\n", object(&all, log_bytes)),
        ReportFormat::Csv => csv(&lines(&all)),
    })
}

fn read(directory: &Path) -> lithify::Result<Levels> {
    inspect::read_levels(&*World::system().files, directory, &Default::default())
}

impl Size {
    fn of(levels: &Levels, name: &str) -> Size {
        let family = levels.families.iter().find(|family| family.name == name);
        let total = family.map(|family| family.total());
        let (tables, size_bytes) = total.map_or((0, 0), |total| (total.files, total.size_bytes));
        Size { tables, size_bytes }
    }

    fn text(self) -> String {
        format!("{} tables, {}", self.tables, size(self.size_bytes))
    }

    fn object(self) -> Value {
        json!({ "tables": self.tables, "size_bytes": self.size_bytes })
    }
}

fn page(all: &[Compacted], log_bytes: u64) -> String {
    let line = |one: &Compacted| {
        let (before, after) = (one.before.text(), one.after.text());
        format!("{}: {before} before, {after} now, {:.1} s\n", one.family, one.seconds)
    };
    let mut text: String = all.iter().map(line).collect();
    if log_bytes > 0 {
        let log = size(log_bytes);
        text.push_str(&format!(
            "Entries that were only in the log ({log}) are not in the sizes before.\n"
        ));
    }
    text
}

fn object(all: &[Compacted], log_bytes: u64) -> Value {
    let family = |one: &Compacted| {
        json!({
            "name": one.family,
            "before": one.before.object(),
            "after": one.after.object(),
            "seconds": one.seconds,
        })
    };
    json!({ "log_bytes": log_bytes, "families": all.iter().map(family).collect::<Vec<_>>() })
}

fn lines(all: &[Compacted]) -> Vec<Vec<String>> {
    let head = ["family", "tables_before", "size_bytes_before", "tables", "size_bytes", "seconds"];
    let line = |one: &Compacted| {
        let figures =
            [one.before.tables, one.before.size_bytes, one.after.tables, one.after.size_bytes];
        let mut line = vec![one.family.clone()];
        line.extend(figures.map(|figure| figure.to_string()));
        line.push(format!("{:.3}", one.seconds));
        line
    };
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    lines.extend(all.iter().map(line));
    lines
}
