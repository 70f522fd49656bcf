//! What the commands share that read and write rows: opening a database, choosing a column family and
//! a range of keys.

use std::ops::Bound;
use std::path::Path;

use clap::Args;
use lithify::{
    CfOptions, ColumnFamily, DEFAULT_FAMILY, Db, Durability, ErrorKind, Options, ScanRange,
};

use super::bytes;
use crate::fault::{Fault, say};

/// Opens a database for reading, also beside a writer.
pub fn open_to_read(path: &Path) -> Result<Db, Fault> {
    Db::open_read_only(path, Options::default()).map_err(|error| match error.kind() {
        ErrorKind::NotFound => no_database(path),
        _ => Fault::of_engine(error),
    })
}

/// Opens a database for writing. What is acknowledged is on the disk.
pub fn open_to_write(path: &Path, create: bool) -> Result<Db, Fault> {
    let durability = Durability::Sync;
    let options = Options { create_if_missing: create, durability, ..Options::default() };
    Db::open(path, options).map_err(|error| match error.kind() {
        ErrorKind::Locked => locked(path, "it writes alone until it closes it"),
        ErrorKind::NotFound => no_database(path),
        _ => Fault::of_engine(error),
    })
}

/// Another process has the database.
pub fn locked(path: &Path, what_to_do: &str) -> Fault {
    let path = path.display();
    Fault::failure(format!("another process has this database open; {what_to_do}: {path}"))
}

/// There is none.
pub fn no_database(path: &Path) -> Fault {
    Fault::usage(format!("there is no database here: {}", path.display()))
}

/// What reading the files of a directory met.
pub fn not_read(path: &Path, error: lithify::Error) -> Fault {
    match error.kind() {
        ErrorKind::NotFound if !path.join("CURRENT").exists() => no_database(path),
        _ => Fault::of_engine(error),
    }
}

/// The family of that name, or the one that is meant where none is named; nothing in a database that
/// has no family yet.
pub fn find_family(db: &Db, name: Option<&str>) -> Result<Option<ColumnFamily>, Fault> {
    let names = db.column_family_names();
    let wanted = name.unwrap_or(DEFAULT_FAMILY);
    if let Some(family) = db.existing_column_family(wanted).map_err(Fault::of_engine)? {
        return Ok(Some(family));
    }
    match (name, names.as_slice()) {
        (None, []) => Ok(None),
        (None, [only]) => {
            say(&format!("column family {only}: the only one"));
            db.existing_column_family(only).map_err(Fault::of_engine)
        }
        (None, _) => Err(Fault::usage(format!(
            "no column family is called {DEFAULT_FAMILY}; name one with --family: {}",
            names.join(", ")
        ))),
        (Some(name), _) => Err(unknown_family(name, &names)),
    }
}

/// There is no family of that name.
pub fn unknown_family(name: &str, names: &[String]) -> Fault {
    Fault::usage(match names {
        [] => format!("no column family {name:?}; there are none yet"),
        names => format!("no column family {name:?}; there are: {}", names.join(", ")),
    })
}

/// The family to write to. `create` makes the named one, or the default one of a new database.
pub fn family_to_write(db: &Db, name: Option<&str>, create: bool) -> Result<ColumnFamily, Fault> {
    let names = db.column_family_names();
    let makes = match name {
        Some(name) => create && !names.iter().any(|known| known == name),
        None => names.is_empty(),
    };
    if makes {
        let name = name.unwrap_or(DEFAULT_FAMILY);
        return db.column_family(name, CfOptions::default()).map_err(Fault::of_engine);
    }
    match find_family(db, name)? {
        Some(family) => Ok(family),
        None => Err(unknown_family(name.unwrap_or(DEFAULT_FAMILY), &names)),
    }
}

/// Which rows.
#[derive(Debug, Args)]
pub struct RangeArguments {
    /// Keys from this one on
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    from: Option<String>,
    /// Keys before this one
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    to: Option<String>,
    /// Keys that begin with this
    #[arg(long, value_name = "KEY", allow_hyphen_values = true, conflicts_with_all = ["from", "to"])]
    prefix: Option<String>,
    /// Keys on the command line are hexadecimal digits
    #[arg(long)]
    hex: bool,
}

impl RangeArguments {
    /// The range of keys.
    pub fn range(&self) -> Result<ScanRange, Fault> {
        let bytes = |key: &Option<String>, what| match key {
            Some(key) => bytes::parse(key, self.hex, what).map(Some),
            None => Ok(None),
        };
        if let Some(prefix) = bytes(&self.prefix, "--prefix")? {
            return Ok(ScanRange::prefix(prefix));
        }
        let (from, to) = (bytes(&self.from, "--from")?, bytes(&self.to, "--to")?);
        if let (Some(from), Some(to)) = (&from, &to)
            && from > to
        {
            return Err(Fault::usage("--from lies behind --to: no key is between them"));
        }
        let from = from.map_or(Bound::Unbounded, Bound::Included);
        Ok(ScanRange::from((from, to.map_or(Bound::Unbounded, Bound::Excluded))))
    }
}
