//! `lithify count`: counts rows.

use std::path::PathBuf;

use clap::Args;

use super::database::{RangeArguments, find_family, open_to_read};
use super::format::{FormatArguments, ReportFormat};
use crate::fault::{Fault, print};

/// `count`
#[derive(Debug, Args)]
#[command(
    long_about = "\
Print how many rows there are, or how many in a range of keys.

Every row is visited: tables hold older versions and removals too, so no number on disk says it.
Works beside a process that writes, and sees what is on disk when it begins.

Keys are text, with \\xHH for a byte, and \\n, \\r, \\t, \\0 and \\\\; with --hex hexadecimal digits.
Without --family it is the column family `default`. If there is none of that name and only one
other, it is that one, and a line on standard error says so.",
    after_help = "\
Examples:
  lithify count rocks.db
  lithify count rocks.db --prefix link/ --family links
  lithify count rocks.db --json | jq .rows

Exit codes:
  0  done
  1  something failed: the error names file and offset
  2  used wrongly: no database, no such column family, a bad escape"
)]
pub struct CountArguments {
    /// The directory of the database
    directory: PathBuf,
    #[command(flatten)]
    range: RangeArguments,
    /// The column family
    #[arg(long, value_name = "NAME")]
    family: Option<String>,
    #[command(flatten)]
    format: FormatArguments<ReportFormat>,
}

/// Counts them.
pub fn run(arguments: &CountArguments) -> Result<(), Fault> {
    let range = arguments.range.range()?;
    let db = open_to_read(&arguments.directory)?;
    let mut count = 0_u64;
    if let Some(family) = find_family(&db, arguments.family.as_deref())? {
        let mut rows = family.cursor(range).map_err(Fault::of_engine)?;
        while rows.next().map_err(Fault::of_engine)? {
            count += 1;
        }
    }
    print(&match arguments.format.of_report() {
        ReportFormat::Table => format!("{count}\n"),
        ReportFormat::Json => format!("{{\"rows\":{count}}}\n"),
        ReportFormat::Csv => format!("rows\n{count}\n"),
    })
}
