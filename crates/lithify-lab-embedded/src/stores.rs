//! A database of fjall as rows, for whoever reads databases of others.
//!
//! Owns: telling one by its files, the rows of a keyspace by key, and where in their order a share of the
//! bytes ends: all rows are read for that, because the library tells no sizes of ranges. Promises: nothing
//! is written where the database is. The library always writes when it opens, so it gets a stand-in. Nobody
//! may have the database open meanwhile, and its lock is held so that nobody opens it.

use std::fs::{File, TryLockError};
use std::ops::ControlFlow;
use std::path::Path;

use fjall::{AbstractTree as _, Database, Keyspace};
use lithify_advisor::input::{Facts, OWN_KEYS, Source, Starts, user_bytes};
use lithify_advisor::rows::{Row, Rows};
use lithify_advisor::{AdviseError, Result, Watch};
use lithify_lab::engines::elsewhere::fjall_format;
use lithify_lab::engines::stand_in::{Becomes, stand_in};
use tempfile::TempDir;

use crate::fjall_error::said;

/// The format that this version of the library reads.
const FORMAT: u8 = 3;

/// The database in a directory, if it is one of fjall; `table` names a keyspace. Without a name it is the
/// largest.
///
/// # Errors
/// It is open elsewhere, or the library refuses it; there is no such keyspace, or no row in it; a key is named.
pub fn open(path: &Path, key: &[String], table: Option<&str>) -> Option<Result<Box<dyn Source>>> {
    let format = fjall_format(path)?;
    Some(Store::open(path, format, key, table).map(|store| Box::new(store) as Box<dyn Source>))
}

/// A keyspace that is read.
struct Store {
    // Dropped before what they are of.
    rows: Keyspace,
    _database: Database,
    _stand_in: TempDir,
    _lock: File,
    /// Found once places are asked for.
    starts: Option<Starts>,
    path: String,
    facts: Facts,
}

impl Store {
    fn open(path: &Path, format: u8, key: &[String], table: Option<&str>) -> Result<Store> {
        let shown = path.display().to_string();
        if !key.is_empty() {
            let what = format!("{shown}: a database has its keys: leave --key out");
            return Err(AdviseError::usage(what));
        }
        if format != FORMAT {
            let what = format!("{shown}: fjall's format {format}; format {FORMAT} is read");
            return Err(AdviseError::data(what));
        }
        let lock = locked(path)?;
        let in_place =
            stand_in(path, &becomes).map_err(|error| AdviseError::of_file(path, &error))?;
        let wrong = |error: fjall::Error| library_error(&shown, &error);
        // No thread works beside the reader: it would compact tables of somebody else in the stand-in.
        let opened = Database::builder(in_place.path()).worker_threads_unchecked(0).open();
        let database = opened.map_err(wrong)?;
        let rows = chosen(&database, &shown, table)?;
        let facts = Facts {
            format: format!("fjall database, keyspace {}", rows.name()),
            files: 1,
            has_rows: true,
            has_bytes: false,
            native: &[],
            key: OWN_KEYS.to_owned(),
            data_bytes: 0,
        };
        if rows.is_empty().map_err(wrong)? {
            return Err(AdviseError::data(format!("{shown}: {} has no row", facts.format)));
        }
        let count = rows.approximate_len() as u64;
        let (starts, _database, _stand_in, _lock) = (None, database, in_place, lock);
        let mut store = Store { rows, _database, _stand_in, _lock, starts, path: shown, facts };
        store.facts.data_bytes = user_bytes(&mut store, count)?;
        Ok(store)
    }

    fn read(
        &self,
        from: &[u8],
        each: &mut dyn FnMut(Row<'_>, u64) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut done = 0;
        for entry in self.rows.range(from..) {
            let entry = entry.into_inner();
            let (key, value) = entry.map_err(|error| library_error(&self.path, &error))?;
            let data_bytes = (key.len() + value.len()) as u64;
            done += data_bytes;
            let row = Row {
                key: &key,
                partition_bytes: key.len(),
                value: &value,
                data_bytes,
                file_bytes: 0,
            };
            if each(row, done).is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// Keeps others from opening the database.
fn locked(path: &Path) -> Result<File> {
    let file = path.join("lock");
    let lock = File::open(&file).map_err(|error| AdviseError::of_file(&file, &error))?;
    match lock.try_lock_shared() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => {
            let what =
                format!("{}: the database is open elsewhere: close it first", path.display());
            Err(AdviseError::data(what))
        }
        Err(TryLockError::Error(error)) => Err(AdviseError::of_file(&file, &error)),
    }
}

/// Tables and blobs never change. The library panics where a directory among its keyspaces has another name
/// than a number, and such a one is not its.
fn becomes(path: &Path) -> Becomes {
    let names: Vec<_> = path.iter().map(|name| name.to_str().unwrap_or_default()).collect();
    match names[..] {
        ["keyspaces", _, "tables" | "blobs", _] => Becomes::Link,
        ["keyspaces", keyspace] if keyspace.parse::<u64>().is_err() => Becomes::Nothing,
        _ => Becomes::Copy,
    }
}

fn library_error(path: &str, error: &fjall::Error) -> AdviseError {
    AdviseError::data(format!("{path}: fjall: {}", said(error)))
}

/// The keyspace of that name; the largest one without a name.
fn chosen(database: &Database, path: &str, table: Option<&str>) -> Result<Keyspace> {
    let keyspace = |name: &str| {
        let opened = database.keyspace(name, Default::default);
        opened.map_err(|error| library_error(path, &error))
    };
    let mut names: Vec<String> =
        database.list_keyspace_names().iter().map(|name| name.to_string()).collect();
    names.sort_unstable();
    match table {
        // One that is not there would be made.
        Some(name) if names.iter().any(|one| one == name) => keyspace(name),
        Some(_) => {
            let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            Err(AdviseError::usage(format!("{path} has no such keyspace; there are: {there}")))
        }
        None => {
            let all = names.iter().map(|name| keyspace(name)).collect::<Result<Vec<_>>>()?;
            let bytes = |one: &Keyspace| one.disk_space() + one.tree.active_memtable().size();
            let largest = all.into_iter().max_by_key(bytes);
            largest.ok_or_else(|| AdviseError::data(format!("{path}: fjall: no keyspace")))
        }
    }
}

impl Source for Store {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn prepare(&mut self, watch: &dyn Watch) -> Result<()> {
        let starts = Starts::by_pass(self, watch)?;
        self.facts.data_bytes = starts.total();
        self.starts = Some(starts);
        Ok(())
    }

    fn place(&mut self, share: f64, wanted_bytes: u64) -> Result<Rows> {
        let (from, skipped_bytes) = self.starts.as_ref().map_or((&[][..], 0), |all| all.at(share));
        let mut rows = Rows::default();
        self.read(from, &mut |row, done| match done <= skipped_bytes {
            true => ControlFlow::Continue(()),
            false => rows.push_up_to(row, wanted_bytes),
        })?;
        Ok(rows)
    }

    fn scan(&mut self, each: &mut dyn FnMut(Row<'_>, u64) -> ControlFlow<()>) -> Result<()> {
        self.read(&[], each)
    }

    fn check_unchanged(&self) -> Result<()> {
        // Nobody else opens it while it is read.
        Ok(())
    }
}
