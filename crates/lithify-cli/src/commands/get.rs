//! `lithify get`: prints the value of a key.

use std::io::{IsTerminal, Write, stdout};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use lithify::DEFAULT_FAMILY;

use super::bytes::{self, escape, hex};
use super::database::{find_family, open_to_read};
use super::format::FormatArguments;
use super::rows::{RowFormat, RowPrinter, json_row, written};
use crate::fault::Fault;

/// `get`
#[derive(Debug, Args)]
#[command(
    long_about = "\
Print the value of a key.

On a terminal it is one line with escapes. Elsewhere it is the bytes as they are and nothing else, for
a file or a pipe. Works beside a process that writes, and sees what is on disk then.

Keys are text, with \\xHH for a byte, and \\n, \\r, \\t, \\0 and \\\\; with --hex hexadecimal digits.
Without --family it is the column family `default`. If there is none of that name and only one
other, it is that one, and a line on standard error says so.",
    after_help = "\
Examples:
  lithify get rocks.db basalt
  lithify get rocks.db basalt --family rocks > basalt.bin
  lithify get rocks.db 'link/\\x00\\x2a' --format json
  lithify get rocks.db --hex 6c696e6b

Exit codes:
  0  the key is there
  1  it is not there, or something failed: the error says which
  2  used wrongly: no database, no such column family, a bad escape"
)]
pub struct GetArguments {
    /// The directory of the database
    directory: PathBuf,
    /// The key
    #[arg(allow_negative_numbers = true)]
    key: String,
    /// The column family
    #[arg(long, value_name = "NAME")]
    family: Option<String>,
    /// The key is hexadecimal digits
    #[arg(long)]
    hex: bool,
    #[command(flatten)]
    format: FormatArguments<ValueFormat>,
}

/// Forms of a value.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ValueFormat {
    /// The bytes, and nothing else
    Raw,
    /// One line, with escapes
    Table,
    /// One JSON object; what is no text is in key_hex or value_hex
    Json,
    /// A header, and key and value as they are, in quotes where needed
    Csv,
    /// Hexadecimal digits
    Hex,
}

/// Prints it.
pub fn run(arguments: &GetArguments) -> Result<(), Fault> {
    let key = bytes::parse(&arguments.key, arguments.hex, "the key")?;
    let db = open_to_read(&arguments.directory)?;
    let family = find_family(&db, arguments.family.as_deref())?;
    let value = match &family {
        Some(family) => family.get(&key).map_err(Fault::of_engine)?,
        None => None,
    };
    let Some(value) = value else {
        let family = family.as_ref().map_or(DEFAULT_FAMILY, |family| family.name());
        let key = escape(&key);
        return Err(Fault::failure(format!("no such key in column family {family}: {key}")));
    };
    let default = if stdout().is_terminal() { ValueFormat::Table } else { ValueFormat::Raw };
    let mut output = stdout().lock();
    let printed = match arguments.format.format().unwrap_or(default) {
        ValueFormat::Raw => output.write_all(&value),
        ValueFormat::Table => writeln!(output, "{}", escape(&value)),
        ValueFormat::Json => writeln!(output, "{}", json_row(Some(&key), Some(&value))),
        ValueFormat::Hex => writeln!(output, "{}", hex(&value)),
        ValueFormat::Csv => {
            let mut printer = RowPrinter::new(&mut output, RowFormat::Csv, false, None);
            printer.begin().and_then(|()| printer.row(&key, &value)).and_then(|()| printer.end())
        }
    };
    written(printed.and_then(|()| output.flush()))
}
