//! An open database as LevelDB has it: one ordered map, in the engine's family `default`.
//!
//! Beside it there is the family `lithify.leveldb` if the database has a comparator of its own: it keeps
//! the name, so that checkpoints and backups have it too. Any thread may call.

use crate::batch::{Write, WriteBatch};
use crate::directory::{self, Owner};
use crate::filter::FilterPolicy;
use crate::iterator::RowIterator;
use crate::order::{BYTEWISE, CheckedOrder};
use crate::settings::{Filter, Settings};
use crate::status::Status;
use lithify::{CfOptions, ColumnFamily, DEFAULT_FAMILY, Db, Durability, Slice, Snapshot};
use std::path::Path;
use std::sync::Arc;

/// The family that keeps what the engine has no place for, and its key for the comparator's name.
const OWN_FAMILY: &str = "lithify.leveldb";
const COMPARATOR_KEY: &[u8] = b"comparator";

/// An open database.
pub struct Database {
    db: Db,
    rows: ColumnFamily,
    order: Option<Arc<CheckedOrder>>,
    filter: Option<Arc<dyn FilterPolicy>>,
    settings: Settings,
}

impl Database {
    /// Opens the database in a directory, or makes it there.
    ///
    /// # Errors
    /// With LevelDB's own texts: nothing there and not to be made, something there and to be refused,
    /// opened already, another comparator. A directory of another engine, which stays as it is. What
    /// opening meets.
    pub fn open(path: &Path, settings: &Settings) -> Result<Database, Status> {
        if path.as_os_str().is_empty() {
            return Err(Status::invalid("a database needs a path, and this one is empty"));
        }
        let refused = |error| directory::system_failure(&path.join("LOCK"), &error);
        let is_there = match Owner::of(path).map_err(refused)? {
            Owner::Lithify => true,
            Owner::Nobody => false,
            Owner::Other(engine) => return Err(directory::foreign(path, engine)),
        };
        if is_there {
            directory::check_unlocked(path)?;
        } else {
            directory::check_parent(path).map_err(refused)?;
        }
        let shown = path.display();
        if is_there && settings.error_if_exists {
            return Err(Status::invalid(format!("{shown}: exists (error_if_exists is true)")));
        }
        if !is_there && !settings.create_if_missing {
            let what = "does not exist (create_if_missing is false)";
            return Err(Status::invalid(format!("{shown}: {what}")));
        }
        let db = Db::open(path, settings.database()).map_err(|e| directory::opening(path, e))?;
        keep_comparator(&db, settings)?;
        let stored = db.existing_column_family(DEFAULT_FAMILY)?.map(|family| family.options());
        let wanted = settings.family(stored.clone());
        let rows = match db.existing_column_family(DEFAULT_FAMILY)? {
            Some(rows) if stored.as_ref() == Some(&wanted) => rows,
            _ => db.column_family(DEFAULT_FAMILY, wanted)?,
        };
        let filter = match &settings.filter {
            Some(Filter::Own(policy)) => Some(Arc::clone(policy)),
            _ => None,
        };
        let order = settings.order.as_ref().map(|order| CheckedOrder::new(Arc::clone(order)));
        let settings = settings.clone();
        Ok(Database { db, rows, order: order.map(Arc::new), filter, settings })
    }

    /// Ends it. What is acknowledged is in the log or in tables.
    pub fn close(self) {
        // LevelDB has no way to tell; what the last writes met they told themselves.
        let _ = self.db.close();
    }

    /// Applies one write.
    ///
    /// # Errors
    /// A limit, a comparator that differs, what the log or the disk refuses. Nothing is written then.
    pub fn write_one(&self, write: Write<'_>, is_synced: bool) -> Result<(), Status> {
        if is_synced || self.order.is_some() {
            let mut batch = WriteBatch::default();
            batch.push(write);
            return self.write(&batch, is_synced);
        }
        match write {
            Write::Put(key, value) => self.rows.put(key, value)?,
            Write::Delete(key) => self.rows.delete(key)?,
        }
        Ok(())
    }

    /// Applies a batch, all of it or nothing.
    ///
    /// # Errors
    /// As [`Database::write_one`].
    pub fn write(&self, writes: &WriteBatch, is_synced: bool) -> Result<(), Status> {
        let order = self.order.as_deref();
        let _writer = order.map(CheckedOrder::writer);
        if let Some(order) = order {
            order.check_batch(&mut self.rows.cursor(..)?, writes)?;
        }
        if writes.is_empty() && !is_synced {
            return Ok(());
        }
        let mut batch = self.db.batch();
        for write in writes.writes() {
            match write {
                Write::Put(key, value) => batch.put(&self.rows, key, value),
                Write::Delete(key) => batch.delete(&self.rows, key),
            };
        }
        let durability = if is_synced { Durability::Sync } else { Durability::Buffered };
        Ok(batch.commit_with(durability)?)
    }

    /// The value of a key, now or at a snapshot.
    ///
    /// # Errors
    /// A comparator that differs; corruption, or what reading meets.
    pub fn get(&self, key: &[u8], snapshot: Option<&Snapshot>) -> Result<Option<Slice>, Status> {
        if self.filter.as_ref().is_some_and(|filter| !filter.keeps(key)) {
            return Ok(None);
        }
        let found = match snapshot {
            Some(snapshot) => self.rows.get_at(key, snapshot)?,
            None => self.rows.get(key)?,
        };
        if found.is_none()
            && let Some(order) = &self.order
        {
            order.check_place(&mut self.cursor(snapshot)?, key)?;
        }
        Ok(found)
    }

    fn cursor(&self, snapshot: Option<&Snapshot>) -> lithify::Result<lithify::Cursor> {
        match snapshot {
            Some(snapshot) => self.rows.cursor_at(.., snapshot),
            None => self.rows.cursor(..),
        }
    }

    /// An iterator over the rows of now, or of a snapshot.
    pub fn iterator(&self, snapshot: Option<&Snapshot>) -> RowIterator {
        RowIterator::new(self.cursor(snapshot), self.order.clone())
    }

    /// The present, to be read later.
    pub fn snapshot(&self) -> Snapshot {
        self.db.snapshot()
    }

    /// About how many bytes of files hold the keys from `start` on, without `limit`.
    pub fn approximate_bytes(&self, start: &[u8], limit: &[u8]) -> u64 {
        if start >= limit {
            return 0;
        }
        self.rows.approximate(start..limit).map_or(0, |found| found.bytes)
    }

    /// Compacts the keys from `start` to `limit`, both included; nothing is an open end. LevelDB tells of
    /// no failure here: the next write does.
    pub fn compact(&self, start: Option<&[u8]>, limit: Option<&[u8]>) {
        let _ = self.rows.compact_range((start, limit));
    }

    /// What the database says of itself under a name.
    pub fn property(&self, name: &[u8]) -> Option<String> {
        crate::properties::property(&self.db, &self.rows, &self.settings, name)
    }
}

/// Compares the name of the comparator with the one that the database has, and keeps it if it is new.
fn keep_comparator(db: &Db, settings: &Settings) -> Result<(), Status> {
    let given = settings.order.as_ref().map_or(BYTEWISE.to_vec(), |order| order.name());
    let own = db.existing_column_family(OWN_FAMILY)?;
    let kept = own.map(|own| own.get(COMPARATOR_KEY)).transpose()?.flatten();
    let kept = match kept {
        Some(name) => name.to_vec(),
        None if db.existing_column_family(DEFAULT_FAMILY)?.is_some() => BYTEWISE.to_vec(),
        None if given == BYTEWISE => return Ok(()),
        None => {
            let own = db.column_family(OWN_FAMILY, CfOptions::default())?;
            let mut batch = db.batch();
            batch.put(&own, COMPARATOR_KEY, &given);
            return Ok(batch.commit_with(Durability::Sync)?);
        }
    };
    if kept == given {
        return Ok(());
    }
    let (kept, given) = (String::from_utf8_lossy(&kept), String::from_utf8_lossy(&given));
    Err(Status::invalid(format!("{kept} does not match existing comparator : {given}")))
}

#[cfg(test)]
#[path = "database_tests.rs"]
mod tests;
