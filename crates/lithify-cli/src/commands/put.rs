//! `lithify put`: sets the value of a key.

use std::io::{Read, stdin};
use std::path::PathBuf;

use clap::Args;

use super::bytes;
use super::database::{family_to_write, open_to_write};
use crate::fault::Fault;

/// `put`
#[derive(Debug, Args)]
#[command(
    long_about = "\
Set the value of a key. The row is on the disk when the command ends with 0.

A process that has the database open writes alone: then this command changes nothing and ends with 1.
Without a database in DIR it refuses, unless --create makes one.

Keys and values are text, with \\xHH for a byte, and \\n, \\r, \\t, \\0 and \\\\; with --hex they are
hexadecimal digits. Without --family it is the column family `default`, which is made in a database
without any. If there is only one other, it is that one, and a line on standard error says so.",
    after_help = "\
Examples:
  lithify put rocks.db basalt igneous
  lithify put rocks.db basalt igneous --create --family rocks
  lithify put rocks.db photo --stdin < photo.jpg
  lithify put rocks.db --hex 00ff 6b

Exit codes:
  0  done
  1  failed, or another process has the database open
  2  used wrongly: no database, no such column family, a bad escape"
)]
pub struct PutArguments {
    /// The directory of the database
    directory: PathBuf,
    /// The key
    #[arg(allow_negative_numbers = true)]
    key: String,
    /// The value
    #[arg(allow_negative_numbers = true, required_unless_present = "stdin")]
    value: Option<String>,
    /// The value is what standard input has, byte by byte
    #[arg(long, conflicts_with = "value")]
    stdin: bool,
    /// The column family
    #[arg(long, value_name = "NAME")]
    family: Option<String>,
    /// Make the database, and the named column family, if they are not there
    #[arg(long)]
    create: bool,
    /// Key and value are hexadecimal digits
    #[arg(long)]
    hex: bool,
}

/// Sets it.
pub fn run(arguments: &PutArguments) -> Result<(), Fault> {
    let key = bytes::parse(&arguments.key, arguments.hex, "the key")?;
    let value = match &arguments.value {
        Some(value) => bytes::parse(value, arguments.hex, "the value")?,
        None => {
            let mut value = Vec::new();
            let read = stdin().lock().read_to_end(&mut value);
            read.map_err(|error| Fault::failure(format!("standard input: {error}")))?;
            value
        }
    };
    let db = open_to_write(&arguments.directory, arguments.create)?;
    let family = family_to_write(&db, arguments.family.as_deref(), arguments.create)?;
    family.put(key, value).map_err(Fault::of_engine)?;
    db.close().map_err(Fault::of_engine)
}
