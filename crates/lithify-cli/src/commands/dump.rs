//! `lithify dump`: prints any file of the engine.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use clap::Args;
use lithify::fs::World;
use lithify::inspect::{self, DumpOptions, Item};

use crate::fault::Fault;

/// `dump`
#[derive(Debug, Args)]
#[command(
    long_about = "\
Print what a file of the engine holds, with the field names of docs/format.

A table (.sst), a log segment (.wal), MANIFEST-*, CURRENT or LOCK; the file may have any name if
its magic is whole. Everything in it is read and checked, whatever is printed. Nothing is written
and no lock is taken. Where something is damaged, a line says so, and what can still be read
behind it is printed; the first damage is the error at the end.",
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
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
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
    let mut refused = None;
    let files = World::system().files;
    let dumped = inspect::dump(&*files, &arguments.file, &options, &mut |item: &Item| {
        let written = match arguments.json {
            true => writeln!(output, "{}", item.to_json()),
            false => writeln!(output, "{item}"),
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
