//! `lithify delete`: removes a key, or all keys of a range.

use std::path::PathBuf;

use clap::Args;
use lithify::{ColumnFamily, Db, ScanRange};

use super::bytes;
use super::database::{find_family, open_to_write};
use crate::fault::Fault;

/// `delete`
#[derive(Debug, Args)]
#[command(
    long_about = "\
Remove a key, or all keys of a range. The removal is on the disk when the command ends with 0.

A key that is not there is no error: nothing is read. --range A..B removes the keys from A on that are
before B; without A from the first, without B to the last. --prefix removes those that begin with it.
A range is one entry, however many keys it holds; their space comes back with the next compaction.

A process that has the database open writes alone: then this command changes nothing and ends with 1.

Keys are text, with \\xHH for a byte, and \\n, \\r, \\t, \\0 and \\\\; with --hex hexadecimal digits.
Without --family it is the column family `default`. If there is none of that name and only one
other, it is that one, and a line on standard error says so.",
    after_help = "\
Examples:
  lithify delete rocks.db basalt
  lithify delete rocks.db --prefix link/ --family links
  lithify delete rocks.db --range 2025-01-01..2026-01-01

Exit codes:
  0  done
  1  failed, or another process has the database open
  2  used wrongly: no database, no such column family, a bad escape"
)]
pub struct DeleteArguments {
    /// The directory of the database
    directory: PathBuf,
    /// The key
    #[arg(allow_negative_numbers = true, required_unless_present_any = ["range", "prefix"])]
    key: Option<String>,
    /// The keys from A on that are before B
    #[arg(long, value_name = "A..B", allow_hyphen_values = true, conflicts_with_all = ["key", "prefix"])]
    range: Option<String>,
    /// The keys that begin with this
    #[arg(long, value_name = "KEY", allow_hyphen_values = true, conflicts_with = "key")]
    prefix: Option<String>,
    /// The column family
    #[arg(long, value_name = "NAME")]
    family: Option<String>,
    /// Keys are hexadecimal digits
    #[arg(long)]
    hex: bool,
}

/// What is removed.
enum Doomed {
    Key(Vec<u8>),
    Range(Vec<u8>, Option<Vec<u8>>),
}

/// Removes it.
pub fn run(arguments: &DeleteArguments) -> Result<(), Fault> {
    let doomed = doomed(arguments)?;
    let db = open_to_write(&arguments.directory, false)?;
    if let Some(family) = find_family(&db, arguments.family.as_deref())? {
        match doomed {
            Doomed::Key(key) => family.delete(key),
            Doomed::Range(start, Some(end)) => family.delete_range(start, end),
            Doomed::Range(start, None) => delete_from(&db, &family, &start),
        }
        .map_err(Fault::of_engine)?;
    }
    db.close().map_err(Fault::of_engine)
}

fn doomed(arguments: &DeleteArguments) -> Result<Doomed, Fault> {
    let parse = |text: &str, what| bytes::parse(text, arguments.hex, what);
    if let Some(prefix) = &arguments.prefix {
        let range = ScanRange::prefix(parse(prefix, "--prefix")?);
        let start = range.start().unwrap_or_default().to_vec();
        return Ok(Doomed::Range(start, range.end().map(<[u8]>::to_vec)));
    }
    let Some(range) = &arguments.range else {
        let key = arguments.key.as_deref().unwrap_or_default();
        return Ok(Doomed::Key(parse(key, "the key")?));
    };
    let Some((start, end)) = range.split_once("..") else {
        return Err(Fault::usage("--range takes A..B: the keys from A on that are before B"));
    };
    if end.contains("..") {
        return Err(Fault::usage(r"--range: a key with two dots needs one of them written \x2e"));
    }
    let start = parse(start, "--range")?;
    let end = if end.is_empty() { None } else { Some(parse(end, "--range")?) };
    match &end {
        Some(end) if *end < start => Err(Fault::usage("--range ends before it begins")),
        _ => Ok(Doomed::Range(start, end)),
    }
}

/// Removes every key from `start` on. A key as long as any may be the last: no key is behind it.
fn delete_from(db: &Db, family: &ColumnFamily, start: &[u8]) -> lithify::Result<()> {
    let mut rows = family.cursor(ScanRange::from(start..))?;
    if !rows.prev()? {
        return Ok(());
    }
    let last = rows.key().to_vec();
    drop(rows);
    let mut batch = db.batch();
    batch.delete_range(family, start, &last).delete(family, &last);
    batch.commit()
}
