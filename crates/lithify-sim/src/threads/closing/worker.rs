//! One worker: calls through handles until the database is closed, and some more.

use super::rows::{Known, Ledger, Rows, number, text, value};
use crate::random::Random;
use lithify::fs::World;
use lithify::{ColumnFamily, Cursor, Db, ErrorKind, TableTransfer, TableWriter};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

/// Keys of a worker in each family.
const KEYS: u64 = 40;

/// Calls that are tried after the first refusal.
const CALLS_AFTER: u64 = 12;

/// What all workers of one life share.
pub(super) struct Shared {
    /// The database, until somebody closes it.
    pub(super) db: RwLock<Option<Db>>,
    /// The families that stay.
    pub(super) families: Vec<ColumnFamily>,
    /// The other one, and which making of it that is.
    pub(super) scratch: RwLock<(u64, ColumnFamily)>,
    pub(super) world: World,
}

/// What a worker did.
#[derive(Default)]
pub(super) struct Done {
    pub(super) ledger: Ledger,
    pub(super) done: u64,
    pub(super) refused: u64,
    pub(super) ingests: u64,
    pub(super) checkpoints: u64,
    /// The call that was the first to be refused.
    pub(super) first_refused: Option<&'static str>,
}

/// See the module.
pub(super) struct Worker {
    shared: Arc<Shared>,
    name: u64,
    random: Random,
    next_number: u64,
    cursor: Option<(Cursor, Rows)>,
    result: Done,
}

/// What a call came to: done, or refused because the database is closed.
type Told<T> = Result<Option<T>, String>;

fn told<T>(result: lithify::Result<T>) -> Told<T> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::Closed => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

impl Worker {
    pub(super) fn new(
        shared: &Arc<Shared>,
        (name, next_number): (u64, u64),
        random: Random,
        ledger: Ledger,
    ) -> Worker {
        let result = Done { ledger, ..Done::default() };
        Worker { shared: Arc::clone(shared), name, random, next_number, cursor: None, result }
    }

    /// Works until the database is closed, and tries some calls more.
    pub(super) fn work(mut self) -> Result<Done, String> {
        while self.call()?.is_some() {
            self.result.done += 1;
        }
        for _ in 0..CALLS_AFTER {
            self.result.refused += 1;
            if self.call()?.is_some() {
                let first = self.result.first_refused;
                return Err(format!("a call was done after another one was refused: {first:?}"));
            }
        }
        Ok(self.result)
    }

    fn call(&mut self) -> Told<()> {
        let (name, call): (_, fn(&mut Worker) -> Told<()>) = match self.random.below(40) {
            14..=16 => ("delete", Worker::delete),
            17..=18 => ("range delete", Worker::delete_range),
            19..=21 => ("transaction", Worker::transact),
            22..=23 => ("ingest", Worker::ingest),
            24 => ("ingest of a table", Worker::ingest_table),
            25..=26 => ("flush", Worker::flush),
            27 => ("compaction", Worker::compact),
            28..=31 => ("get", Worker::get),
            32..=34 => ("cursor", Worker::look),
            35..=37 => ("write beside a drop", Worker::write_scratch),
            38 if self.name == 0 => ("drop", Worker::make_scratch_again),
            39 if self.random.one_in(4) => ("checkpoint", Worker::checkpoint),
            _ => ("put", Worker::put),
        };
        let done = call(self).map_err(|wrong| format!("{name}: {wrong}"))?;
        if done.is_none() {
            self.result.first_refused.get_or_insert(name);
        }
        Ok(done)
    }

    fn family(&mut self) -> (usize, ColumnFamily) {
        let slot = self.random.below(self.shared.families.len() as u64) as usize;
        (slot, self.shared.families[slot].clone())
    }

    fn prefix(&self) -> Vec<u8> {
        format!("{}-", self.name).into_bytes()
    }

    fn key(&mut self) -> Vec<u8> {
        format!("{}-{:03}", self.name, self.random.below(KEYS)).into_bytes()
    }

    fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    fn value(&mut self, number: u64) -> Vec<u8> {
        value(number, *self.random.pick(&[20, 200, 2000]))
    }

    fn rows(&mut self, slot: usize) -> &mut Rows {
        &mut self.result.ledger.families[slot]
    }

    fn put(&mut self) -> Told<()> {
        let ((slot, family), key, number) = (self.family(), self.key(), self.number());
        let put = told(family.put(&key, self.value(number)))?;
        if put.is_some() {
            self.rows(slot).insert(key, Known { number, by: "put" });
        }
        Ok(put)
    }

    fn delete(&mut self) -> Told<()> {
        let ((slot, family), key) = (self.family(), self.key());
        let deleted = told(family.delete(&key))?;
        if deleted.is_some() {
            self.rows(slot).remove(&key);
        }
        Ok(deleted)
    }

    fn delete_range(&mut self) -> Told<()> {
        let ((slot, family), one, other) = (self.family(), self.key(), self.key());
        let (start, end) = if one <= other { (one, other) } else { (other, one) };
        let deleted = told(family.delete_range(&start, &end))?;
        if deleted.is_some() {
            self.rows(slot).retain(|key, _| *key < start || *key >= end);
        }
        Ok(deleted)
    }

    /// Begins while the database is open for sure; what comes then may be beside a close.
    fn transact(&mut self) -> Told<()> {
        let Some(mut transaction) = self.on_db(|db| Ok(db.transaction()))? else {
            return self.get();
        };
        let mut written = Vec::new();
        for _ in 0..self.random.between(1, 4) {
            let ((slot, family), key, number) = (self.family(), self.key(), self.number());
            let value = self.value(number);
            if told(transaction.put(&family, &key, &value))?.is_none() {
                return Ok(None);
            }
            written.push((slot, key, Known { number, by: "transaction" }));
        }
        let committed = told(transaction.commit())?;
        if committed.is_some() {
            for (slot, key, known) in written {
                self.rows(slot).insert(key, known);
            }
        }
        Ok(committed)
    }

    fn some_rows(&mut self) -> BTreeMap<Vec<u8>, u64> {
        (0..self.random.between(1, 12)).map(|_| (self.key(), self.number())).collect()
    }

    fn note_ingest(&mut self, slot: usize, rows: BTreeMap<Vec<u8>, u64>, by: &'static str) {
        self.result.ingests += 1;
        let rows = rows.into_iter().map(|(key, number)| (key, Known { number, by }));
        self.rows(slot).extend(rows);
    }

    fn ingest(&mut self) -> Told<()> {
        let ((slot, family), rows) = (self.family(), self.some_rows());
        let Some(mut ingest) = told(family.ingest())? else {
            return Ok(None);
        };
        for (key, number) in &rows {
            if told(ingest.put(key, self.value(*number)))?.is_none() {
                return Ok(None);
            }
        }
        let ingested = told(ingest.commit())?.map(drop);
        if ingested.is_some() {
            self.note_ingest(slot, rows, "ingest");
        }
        Ok(ingested)
    }

    fn ingest_table(&mut self) -> Told<()> {
        let ((slot, family), rows) = (self.family(), self.some_rows());
        let path = format!("/rows{}.table", self.name);
        let world = self.shared.world.clone();
        let written =
            TableWriter::create_in(&path, &family.options(), world).and_then(|mut table| {
                for (key, number) in &rows {
                    table.put(key, self.value(*number))?;
                }
                table.finish()
            });
        written.map_err(text)?;
        let transfer = *self.random.pick(&[TableTransfer::Link, TableTransfer::Copy]);
        let ingested = told(family.ingest_tables(&[&path], transfer));
        self.shared.world.files.remove(Path::new(&path)).map_err(text)?;
        let ingested = ingested?.map(drop);
        if ingested.is_some() {
            self.note_ingest(slot, rows, "ingest of a table");
        }
        Ok(ingested)
    }

    fn flush(&mut self) -> Told<()> {
        told(self.family().1.flush())
    }

    fn compact(&mut self) -> Told<()> {
        told(self.family().1.compact_range(..))
    }

    fn get(&mut self) -> Told<()> {
        let ((slot, family), key) = (self.family(), self.key());
        let Some(found) = told(family.get(&key))? else { return Ok(None) };
        let expected = self.rows(slot).get(&key).copied();
        let found = found.map(|value| number(&value));
        match found == expected.map(|known| known.number) {
            true => Ok(Some(())),
            false => Err(format!("a get finds {found:?}, {expected:?} was acknowledged")),
        }
    }

    /// Opens a cursor over the worker's own rows, or looks at the one opened before.
    fn look(&mut self) -> Told<()> {
        let Some((mut cursor, rows)) = self.cursor.take() else {
            let (slot, family) = self.family();
            let Some(cursor) = told(family.prefix_cursor(self.prefix()))? else {
                return Ok(None);
            };
            let rows = self.rows(slot).clone();
            self.cursor = Some((cursor, rows));
            return Ok(Some(()));
        };
        for (key, known) in &rows {
            let Some(is_there) = told(cursor.next())? else {
                return Ok(None);
            };
            if !is_there || cursor.key() != key || number(cursor.value()) != known.number {
                return Err(format!("a cursor does not show {known:?}"));
            }
        }
        // Its rows stay readable: that says nothing of whether the database is open.
        self.get()
    }

    /// A call on the database itself: it is not closed before the call returns. `None` where
    /// somebody has taken it to close it, which says nothing of whether it is closed.
    fn on_db<T>(&self, call: impl FnOnce(&Db) -> Result<T, String>) -> Told<T> {
        let db = self.shared.db.read().unwrap_or_else(PoisonError::into_inner);
        db.as_ref().map(call).transpose()
    }

    /// Writes to the family that another worker drops: a refusal may be for that.
    fn write_scratch(&mut self) -> Told<()> {
        let (making, family) =
            self.shared.scratch.read().unwrap_or_else(PoisonError::into_inner).clone();
        if self.result.ledger.scratch.0 != making {
            self.result.ledger.scratch = (making, Rows::new());
        }
        let (key, number) = (self.key(), self.number());
        let written = match self.random.below(3) {
            0 => family.ingest().and_then(|mut ingest| {
                ingest.put(&key, self.value(number))?;
                ingest.commit().map(drop)
            }),
            _ => family.put(&key, self.value(number)),
        };
        if told(written)?.is_some() {
            self.result.ledger.scratch.1.insert(key, Known { number, by: "write beside a drop" });
        }
        // Whether the database is open is for a family to say that stays.
        self.get()
    }

    fn make_scratch_again(&mut self) -> Told<()> {
        let shared = Arc::clone(&self.shared);
        let made = self.on_db(|db| {
            db.drop_column_family(super::rows::SCRATCH).map_err(text)?;
            let options = super::life::family_options();
            let made = db.column_family(super::rows::SCRATCH, options).map_err(text)?;
            let mut scratch = shared.scratch.write().unwrap_or_else(PoisonError::into_inner);
            *scratch = (scratch.0 + 1, made);
            Ok(())
        });
        made?;
        self.get()
    }

    /// A checkpoint has every commit that returned before it, and of this worker no other.
    fn checkpoint(&mut self) -> Told<()> {
        let number = self.number();
        let path = format!("/checkpoint{}-{number}", self.name);
        if self.on_db(|db| db.checkpoint(&path).map(drop).map_err(text))?.is_none() {
            return self.get();
        }
        self.result.checkpoints += 1;
        super::life::compare_checkpoint(&self.shared.world, &path, &self.prefix(), |slot| {
            &self.result.ledger.families[slot]
        })?;
        Ok(Some(()))
    }
}
