//! `lithify dump`: prints any file of the engine.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use lithify::fs::World;
use lithify::inspect::{self, DumpOptions, Item, Value, wrapped};

use super::bench::screen::width_or_whole;
use super::format::FormatArguments;
use super::rows::csv_field;
use super::tool::INDENT;
use crate::fault::Fault;

/// `dump`
#[derive(Debug, Args)]
#[command(
    long_about = "\
Print what a file of the engine holds, with the field names of docs/format.

A table (.sst), a log segment (.wal), MANIFEST-*, CURRENT or LOCK; the file may have any name if
its magic is whole. Everything in it is read and checked, whatever is printed. Nothing is written
and no lock is taken. Where something is damaged, a line says so, and what can still be read
behind it is printed; the first damage is the error at the end.

CSV has a line for each field of each item: item, offset, field, value.",
    after_help = "\
Examples:
  lithify dump graph.db/MANIFEST-000042
  lithify dump graph.db/000017.wal --entries --limit 20
  lithify dump graph.db/000019.sst --blocks
  lithify dump graph.db/000019.sst --entries --full --json | head

Exit codes:
  0  done, nothing is damaged
  1  damage, or a version that cannot be read: the error names file and offset
  2  used wrongly: not a file of the engine, a directory, no such file"
)]
pub struct DumpArguments {
    /// The file
    file: PathBuf,
    /// Print the data blocks of a table: index entry, trailer, header
    #[arg(long)]
    blocks: bool,
    /// Print the entries of data blocks and of log records
    #[arg(long)]
    entries: bool,
    /// Print at most N of each: records, blocks, entries, fragments; the rest is only checked
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Print long keys and values in full
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    format: FormatArguments<DumpFormat>,
}

/// Forms of a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DumpFormat {
    /// Text for people
    Table,
    /// One JSON object a line, for each item
    Json,
    /// A header, and a line for each field of each item
    Csv,
}

/// Prints it.
pub fn run(arguments: &DumpArguments) -> Result<(), Fault> {
    let options = DumpOptions {
        blocks: arguments.blocks,
        entries: arguments.entries,
        limit: arguments.limit.unwrap_or(u64::MAX),
        full: arguments.full,
    };
    let mut output = BufWriter::new(io::stdout().lock());
    let format = arguments.format.format().unwrap_or(DumpFormat::Table);
    let columns = width_or_whole();
    let mut refused = None;
    if format == DumpFormat::Csv {
        // That nobody reads is told by the first item.
        let _ = writeln!(output, "item,offset,field,value");
    }
    let files = World::system().files;
    let dumped = inspect::dump(&*files, &arguments.file, &options, &mut |item: &Item| {
        let written = match format {
            DumpFormat::Table => writeln!(output, "{}", fitted(item, columns)),
            DumpFormat::Json => writeln!(output, "{}", item.to_json()),
            DumpFormat::Csv => write_csv(&mut output, item),
        };
        written.map_err(|error| {
            refused = Some(error.kind());
            lithify::Error::io("cannot write", "standard output", error)
        })
    });
    if refused.is_none()
        && let Err(error) = output.flush()
    {
        refused = Some(error.kind());
        if error.kind() != io::ErrorKind::BrokenPipe {
            return Err(Fault::failure(format!("standard output: {error}")));
        }
    }
    match dumped {
        // A reader that has seen enough is no error.
        _ if refused == Some(io::ErrorKind::BrokenPipe) => Ok(()),
        dumped => dumped.map_err(Fault::of_engine),
    }
}

/// An item in lines of at most so many columns, cut between its fields. A value that is longer than a line is
/// cut too.
fn fitted(item: &Item, columns: usize) -> String {
    let text = item.to_string();
    if text.lines().all(|line| line.chars().count() <= columns) {
        return text;
    }
    let fields: Vec<String> =
        item.fields().iter().map(|(name, value)| format!("{name}={value}")).collect();
    if let Some(head) = text.strip_suffix(&fields.join(" ")) {
        let indent = head.len() - head.trim_start().len() + INDENT;
        let words = fields.iter().flat_map(|field| pieces(field, columns.saturating_sub(indent)));
        return wrapped(head, words, indent, columns);
    }
    // One field a line, below the name of the item.
    let values = item.fields().iter().map(|(_, value)| value.to_string());
    let lines = text.lines().zip(std::iter::once(String::new()).chain(values));
    let line = |(line, value): (&str, String)| {
        let head = line.strip_suffix(&value).unwrap_or(line);
        let indent = head.chars().count();
        let words = value.split(' ').flat_map(|word| pieces(word, columns.saturating_sub(indent)));
        wrapped(head, words, indent, columns)
    };
    lines.map(line).collect::<Vec<_>>().join("\n")
}

/// A text in pieces of so many signs.
fn pieces(text: &str, signs: usize) -> impl Iterator<Item = &str> {
    let signs = signs.max(1);
    let cuts = || text.char_indices().step_by(signs).skip(1).map(|(cut, _)| cut);
    let ends = cuts().chain([text.len()]);
    [0].into_iter().chain(cuts()).zip(ends).map(|(start, end)| &text[start..end])
}

/// A line for each field of an item.
fn write_csv(output: &mut impl Write, item: &Item) -> io::Result<()> {
    for (name, value) in item.fields() {
        let offset = item.offset().map_or_else(String::new, |offset| offset.to_string());
        write!(output, "{},{offset},{name},", item.name())?;
        match value {
            Value::Text(text) | Value::Bytes(text) => csv_field(output, text.as_bytes())?,
            figure => write!(output, "{figure}")?,
        }
        output.write_all(b"\n")?;
    }
    Ok(())
}
