//! Directories of RocksDB and LevelDB as data that advice is wanted for.
//!
//! Owns: telling them by their files, their rows by key, and where in the order of keys a share of the
//! bytes ends, and what RocksDB is set to. Of up to 256 MiB all rows are read for that. Of more the stored bytes tell (`position`), so rows
//! that shrink well are sampled less than others. Promises: nothing is written into the directory. RocksDB opens
//! it to read only. LevelDB always writes when it opens, so it gets a directory of its own: links to the
//! tables and copies of the rest, which are removed afterwards.

mod leveldb;
mod position;
mod rocksdb;
mod rocksdb_options;

use std::ops::ControlFlow;
use std::path::Path;

use lithify_advisor::input::{Facts, OWN_KEYS, Present, Source, Starts, user_bytes};
use lithify_advisor::rows::{Row, Rows};
use lithify_advisor::{AdviseError, Result, Watch};
use lithify_lab::adapter::EngineResult;

use crate::rocksdb::read_only::EachRow;

/// The database in a directory, if it is one of RocksDB or LevelDB; `table` names a column family.
///
/// # Errors
/// Its library is not here, or refuses it; there is no such family, or no row in it; a key is named.
pub fn open(path: &Path, key: &[String], table: Option<&str>) -> Option<Result<Box<dyn Source>>> {
    let kind = Kind::of(path)?;
    Some(kind.open(path, key, table).map(|store| Box::new(store) as Box<dyn Source>))
}

/// Whose directory it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    RocksDb,
    LevelDb,
}

impl Kind {
    /// Both have a file that names a manifest; only RocksDB writes its options and an identity.
    fn of(path: &Path) -> Option<Kind> {
        let current = std::fs::read(path.join("CURRENT")).ok()?;
        if !current.starts_with(b"MANIFEST-") {
            return None;
        }
        let entries = std::fs::read_dir(path).ok()?;
        let is_of_rocksdb = |name: &str| name == "IDENTITY" || name.starts_with("OPTIONS-");
        let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        match names.into_iter().any(|name| is_of_rocksdb(&name)) {
            true => Some(Kind::RocksDb),
            false => Some(Kind::LevelDb),
        }
    }

    fn open(self, path: &Path, key: &[String], table: Option<&str>) -> Result<Store> {
        if !key.is_empty() {
            let what = format!("{}: a database has its keys: leave --key out", path.display());
            return Err(AdviseError::usage(what));
        }
        let wrong = |error: lithify_lab::adapter::EngineError| {
            AdviseError::data(format_args!("{}: {error}", path.display()))
        };
        let mut present = None;
        let (sorted, format, rows): (Box<dyn Sorted>, String, u64) = match self {
            Kind::LevelDb if table.is_some() => {
                let what = format!("{}: LevelDB has no column families", path.display());
                return Err(AdviseError::usage(what));
            }
            Kind::LevelDb => {
                let opened = leveldb::open(path).map_err(wrong)?;
                let rows = opened.rows().map_err(wrong)?;
                (Box::new(opened), "LevelDB database".to_owned(), rows)
            }
            Kind::RocksDb => {
                let opened = rocksdb::open(path).map_err(wrong)?;
                let opened = opened.choose(path, table)?;
                let family = opened.family().clone();
                present = rocksdb_options::present(path, &family.name);
                let format = format!("RocksDB database, column family {}", family.name);
                (Box::new(opened), format, family.rows)
            }
        };
        let native: &[&str] = if self == Kind::RocksDb { &["rocksdb"] } else { &[] };
        Ok(Store { present, ..Store::new(path, sorted, format, native, rows)? })
    }
}

/// Rows by key, with a measure of where they are.
trait Sorted {
    /// Rows from a key on.
    fn read(&self, from: &[u8], each: EachRow<'_>) -> EngineResult<()>;

    /// The last key.
    fn last_key(&self) -> EngineResult<Vec<u8>>;

    /// About how many stored bytes lie between two keys.
    fn bytes_between(&self, from: &[u8], to: &[u8]) -> EngineResult<u64>;
}

/// Of up to so many stored bytes all rows are read to find out where places begin.
const PASS_BYTES: u64 = 256 << 20;

/// A database that is read.
struct Store {
    sorted: Box<dyn Sorted>,
    first_key: Vec<u8>,
    last_key: Vec<u8>,
    stored_bytes: u64,
    /// Where places begin, if all rows were read.
    starts: Option<Starts>,
    path: String,
    facts: Facts,
    /// How it is set, where that is known.
    present: Option<Present>,
}

impl Store {
    fn new(
        path: &Path,
        sorted: Box<dyn Sorted>,
        format: String,
        native: &'static [&'static str],
        rows: u64,
    ) -> Result<Store> {
        let path = path.display().to_string();
        let wrong = |error| AdviseError::data(format_args!("{path}: {error}"));
        let mut first_key = None;
        let read = sorted.read(&[], &mut |key, _| {
            first_key = Some(key.to_vec());
            ControlFlow::Break(())
        });
        read.map_err(wrong)?;
        let Some(first_key) = first_key else {
            return Err(AdviseError::data(format_args!("{path}: {format} has no row")));
        };
        let last_key = sorted.last_key().map_err(wrong)?;
        let stored_bytes = sorted.bytes_between(&first_key, &last_key).map_err(wrong)?;
        let facts = Facts {
            format,
            files: 1,
            has_rows: true,
            has_bytes: false,
            native,
            key: OWN_KEYS.to_owned(),
            data_bytes: 0,
        };
        let starts = None;
        let present = None;
        let mut store =
            Store { sorted, first_key, last_key, stored_bytes, starts, path, facts, present };
        store.facts.data_bytes = user_bytes(&mut store, rows)?;
        Ok(store)
    }

    fn wrong(&self, error: impl std::fmt::Display) -> AdviseError {
        AdviseError::data(format_args!("{}: {error}", self.path))
    }

    fn read(
        &self,
        from: &[u8],
        each: &mut dyn FnMut(Row<'_>, u64) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut done = 0;
        let read = self.sorted.read(from, &mut |key, value| {
            let data_bytes = (key.len() + value.len()) as u64;
            done += data_bytes;
            each(Row { key, partition_bytes: key.len(), value, data_bytes, file_bytes: 0 }, done)
        });
        read.map_err(|error| self.wrong(error))
    }
}

impl Source for Store {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn present(&self) -> Option<Present> {
        self.present.clone()
    }

    fn prepare(&mut self, watch: &dyn Watch) -> Result<()> {
        if self.stored_bytes > PASS_BYTES {
            return Ok(());
        }
        let starts = Starts::by_pass(self, watch)?;
        self.facts.data_bytes = starts.total();
        self.starts = Some(starts);
        Ok(())
    }

    fn place(&mut self, share: f64, wanted_bytes: u64) -> Result<Rows> {
        let mut rows = Rows::default();
        if let Some(starts) = &self.starts {
            let (from, skipped_bytes) = starts.at(share);
            self.read(from, &mut |row, done| match done <= skipped_bytes {
                true => ControlFlow::Continue(()),
                false => rows.push_up_to(row, wanted_bytes),
            })?;
            return Ok(rows);
        }
        let wanted = (share.clamp(0.0, 1.0) * self.stored_bytes as f64) as u64;
        let from = position::find(&self.first_key, &self.last_key, wanted, |key| {
            self.sorted.bytes_between(&self.first_key, key)
        });
        let from = from.map_err(|error| self.wrong(error))?;
        self.read(&from, &mut |row, _| rows.push_up_to(row, wanted_bytes))?;
        Ok(rows)
    }

    fn scan(&mut self, each: &mut dyn FnMut(Row<'_>, u64) -> ControlFlow<()>) -> Result<()> {
        self.read(&[], each)
    }

    fn check_unchanged(&self) -> Result<()> {
        // A reader keeps the state that it was opened at.
        Ok(())
    }
}
