//! `lithify scan`: prints rows in the order of their keys.

use std::path::PathBuf;

use clap::Args;
use lithify::Cursor;

use super::database::{RangeArguments, find_family, open_to_read};
use super::format::FormatArguments;
use super::rows::{RowFormat, RowPrinter, written};
use crate::fault::Fault;

/// `scan`
#[derive(Debug, Args)]
#[command(
    long_about = "\
Print rows in the order of their keys.

On a terminal they are a table, cut at its width. Elsewhere each is a line: key, tab, value, with
escapes. Works beside a process that writes, and sees what is on disk when it begins.

Keys are text, with \\xHH for a byte, and \\n, \\r, \\t, \\0 and \\\\; with --hex hexadecimal digits.
Table and lines print escapes in the same way. In JSON, bytes that are no UTF-8 are hexadecimal digits
in the field key_hex or value_hex, in place of key or value. CSV has the bytes as they are.
Without --family it is the column family `default`. If there is none of that name and only one
other, it is that one, and a line on standard error says so.",
    after_help = "\
Examples:
  lithify scan rocks.db | head
  lithify scan rocks.db --prefix link/ --limit 10 --reverse
  lithify scan rocks.db --from 2026-01 --to 2026-02 --keys-only
  lithify scan rocks.db --family rocks --format json | jq .key

Exit codes:
  0  done, also without any row
  1  something failed: the error names file and offset
  2  used wrongly: no database, no such column family, a bad escape"
)]
pub struct ScanArguments {
    /// The directory of the database
    directory: PathBuf,
    #[command(flatten)]
    range: RangeArguments,
    /// At most so many rows
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// From the last key to the first
    #[arg(long)]
    reverse: bool,
    /// Without the values
    #[arg(long)]
    keys_only: bool,
    /// The column family
    #[arg(long, value_name = "NAME")]
    family: Option<String>,
    #[command(flatten)]
    format: FormatArguments<RowFormat>,
    /// Do not cut a table at the width of the terminal
    #[arg(long)]
    full: bool,
}

/// Prints them.
pub fn run(arguments: &ScanArguments) -> Result<(), Fault> {
    let range = arguments.range.range()?;
    let db = open_to_read(&arguments.directory)?;
    let family = find_family(&db, arguments.family.as_deref())?;
    let format = arguments.format.format();
    let mut printer = RowPrinter::to_screen(format, arguments.keys_only, arguments.full);
    let mut printed = printer.begin();
    let Some(family) = family else { return written(printed.and_then(|()| printer.end())) };
    let mut rows = family.cursor(range).map_err(Fault::of_engine)?;
    let mut damage = None;
    let mut left = arguments.limit.unwrap_or(u64::MAX);
    while printed.is_ok() && left > 0 {
        match advance(&mut rows, arguments.reverse) {
            Ok(true) => printed = printer.row(rows.key(), rows.value()),
            Ok(false) => break,
            Err(error) => {
                damage = Some(error);
                break;
            }
        }
        left -= 1;
    }
    // What was read before damage is shown.
    written(printed.and_then(|()| printer.end()))?;
    damage.map_or(Ok(()), |error| Err(Fault::of_engine(error)))
}

fn advance(rows: &mut Cursor, is_reverse: bool) -> lithify::Result<bool> {
    match is_reverse {
        true => rows.prev(),
        false => rows.next(),
    }
}
