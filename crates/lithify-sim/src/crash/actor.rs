//! Tells a database operations, each noted in the history before it is told and acknowledged after
//! it, with what the acknowledgement promises.
//!
//! The [`Witness`] is what a hook of the file system sees of that from within a call: how far the
//! history is at this very moment, and whether a reader could see the event under way.

use super::history::{Event, History, Moment};
use super::workload::with_threads;
use crate::dated::Dated;
use crate::filtered::{Filtered, all_rows, check_all};
use crate::model::{Rows, State};
use crate::operation::{
    Change, FAMILIES, FAMILY_COUNT, IngestWay, Key, Operation, SNAPSHOT_SLOTS, Settings,
    TRANSACTION_SLOTS, TransactionCall, Value, Write, filtering, lifetimes, operators,
};
use crate::random::Random;
use lithify::base::Clock;
use lithify::fs::{CrashKeep, Environment, FileSystem, MemoryEnvironment, MemoryFileSystem, World};
use lithify::{
    CfOptions, ColumnFamily, Db, Durability, Options, Result, Snapshot, TableTransfer, TableWriter,
    Transaction,
};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

/// Where the database lies: two levels deep, so that a new directory's parent is new too.
pub const DIRECTORY: &str = "data/base";

/// The column families of an open database, by slot.
pub type Handles = [Option<ColumnFamily>; FAMILY_COUNT];

/// Opens the database of a disk; with threads of its own in real time, at the date of the environment.
///
/// # Errors
/// Those of [`Db::open_in`].
pub fn open(
    files: &MemoryFileSystem,
    environment: &MemoryEnvironment,
    options: &Options,
) -> Result<Db> {
    let environment: Arc<dyn Environment> = match options.background_threads {
        0 => Arc::new(environment.clone()),
        _ => Arc::new(Dated(environment.clone())),
    };
    let world = World { files: Arc::new(files.clone()), environment };
    Db::open_in(DIRECTORY, options.clone(), world)
}

/// The families that are there.
///
/// # Errors
/// Those of [`Db::existing_column_family`].
pub fn handles(db: &Db) -> Result<Handles> {
    let mut handles = Handles::default();
    for (slot, (handle, name)) in handles.iter_mut().zip(FAMILIES).enumerate() {
        *handle = db.existing_column_family(name)?;
        let is_merged = |family: &&ColumnFamily| !family.options().merge_operator.is_none();
        if let Some(family) = handle.as_ref().filter(is_merged) {
            let operator = operators::operator(slot, &mut Random::new(slot as u64));
            family.supply_merge_operator(operator)?;
        }
    }
    Ok(handles)
}

/// How a reader sees that the event under way is visible.
struct Probe {
    family: ColumnFamily,
    key: Key,
    visible: Option<Vec<u8>>,
}

/// The history as it is told, for those who look from within a call.
pub struct Witness {
    history: Mutex<History>,
    clock: MemoryEnvironment,
    probe: Mutex<Option<Probe>>,
    options: Mutex<Options>,
    is_looking: AtomicBool,
    /// The thread that tells the database its operations.
    teller: ThreadId,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Witness {
    fn new(history: History, clock: &MemoryEnvironment, options: &Options) -> Witness {
        Witness {
            history: Mutex::new(history),
            clock: clock.clone(),
            probe: Mutex::default(),
            options: Mutex::new(options.clone()),
            is_looking: AtomicBool::new(false),
            teller: std::thread::current().id(),
        }
    }

    /// The history.
    pub fn history(&self) -> MutexGuard<'_, History> {
        lock(&self.history)
    }

    /// Takes the history out.
    pub fn take_history(&self) -> History {
        std::mem::replace(&mut *self.history(), History::new(State::default(), None))
    }

    /// The options that the database was opened with last, but for its threads: what a crash left is
    /// opened without.
    pub fn options(&self) -> Options {
        with_threads(lock(&self.options).clone(), 0)
    }

    fn is_teller(&self) -> bool {
        std::thread::current().id() == self.teller
    }

    /// Whether a call is one of the witness, who reads the database to see what is visible.
    pub fn is_looking(&self) -> bool {
        self.is_looking.load(Ordering::SeqCst) && self.is_teller()
    }

    /// The disk as it is now, and how far the history was then. In a thread of the database the
    /// history goes on meanwhile: it is held until the disk is cloned.
    pub fn look(&self, files: &MemoryFileSystem) -> (MemoryFileSystem, Moment) {
        let now = || files.crash_clone(0, CrashKeep::Everything);
        let at_now = |moment: Moment| Moment { now_us: self.clock.now_us(), ..moment };
        if self.is_teller() {
            return (now(), at_now(self.moment()));
        }
        let history = self.history();
        (now(), at_now(history.moment()))
    }

    /// How far the history is now, as a reader sees it.
    fn moment(&self) -> Moment {
        let is_visible = lock(&self.probe).as_ref().is_some_and(|probe| {
            self.is_looking.store(true, Ordering::SeqCst);
            let found = probe.family.get(&probe.key);
            self.is_looking.store(false, Ordering::SeqCst);
            found.is_ok_and(|value| value.as_deref() == probe.visible.as_deref())
        });
        let history = self.history();
        match is_visible {
            true => history.moment_if_visible(),
            false => history.moment(),
        }
    }
}

/// A database that is told operations.
pub struct Actor {
    db: Option<Db>,
    handles: Handles,
    snapshots: [Option<(Snapshot, State)>; SNAPSHOT_SLOTS],
    transactions: [Option<(Transaction, Vec<Write>)>; TRANSACTION_SLOTS],
    files: MemoryFileSystem,
    environment: MemoryEnvironment,
    options: Options,
    filtered: Filtered,
    witness: Arc<Witness>,
    tables_made: u64,
}

impl Actor {
    /// Nothing is open yet; the history goes on from `history`.
    pub fn new(
        files: &MemoryFileSystem,
        environment: &MemoryEnvironment,
        options: &Options,
        history: History,
    ) -> Actor {
        Actor {
            db: None,
            handles: Handles::default(),
            snapshots: Default::default(),
            transactions: Default::default(),
            files: files.clone(),
            environment: environment.clone(),
            options: options.clone(),
            filtered: Filtered::new(history.filter()),
            witness: Arc::new(Witness::new(history, environment, options)),
            tables_made: 0,
        }
    }

    /// What others may know of it.
    pub fn witness(&self) -> &Arc<Witness> {
        &self.witness
    }

    /// The database, if it is open.
    pub fn db(&self) -> Option<&Db> {
        self.db.as_ref()
    }

    /// The families, if it is open.
    pub fn handles(&self) -> &Handles {
        &self.handles
    }

    /// Opens the database, or makes it.
    ///
    /// # Errors
    /// Those of [`Db::open_in`].
    pub fn open(&mut self) -> Result<()> {
        lock(&self.witness.options).clone_from(&self.options);
        let options = self.filtered.listening(self.options.clone());
        let db = open(&self.files, &self.environment, &options)?;
        self.handles = handles(&db)?;
        for (slot, handle) in self.handles.iter().enumerate() {
            handle.iter().for_each(|family| self.supply(family, slot));
        }
        self.db = Some(db);
        let mut history = self.witness.history();
        history.set_now_us(self.environment.now_us());
        history.set_durability(self.options.durability);
        // What an opened database shows is durable.
        history.all_durable();
        Ok(())
    }

    /// Drops everything that is open, as it is.
    pub fn let_go(&mut self) {
        self.snapshots = Default::default();
        self.transactions = Default::default();
        self.handles = Handles::default();
        self.db = None;
    }

    /// Lets so many microseconds pass. Threads that look meanwhile see the time of the history.
    pub fn pass_us(&self, us: u64) {
        let mut history = self.witness.history();
        self.environment.advance_us(us);
        history.set_now_us(self.environment.now_us());
    }

    fn supply(&self, family: &ColumnFamily, slot: usize) {
        self.filtered.supply(family, slot);
    }

    /// Tells the database one operation; what it is about and is not there makes it do nothing.
    ///
    /// # Errors
    /// Those of the engine. A commit that failed stays in the history as begun.
    pub fn perform(&mut self, operation: &Operation) -> Result<()> {
        if self.db.is_none() {
            return Ok(());
        }
        self.tell(operation)?;
        match self.filtered.worked() {
            Some(slot) => self.sight(slot),
            None => Ok(()),
        }
    }

    /// Takes over what the filter has made of the rows of its family. With threads it may be at it.
    fn sight(&self, slot: usize) -> Result<()> {
        let Some(handle) = &self.handles[slot] else { return Ok(()) };
        let found = all_rows(handle)?;
        let sighted = self.witness.history().sight(slot, &found);
        assert!(sighted.is_ok(), "the rows of family {}: {sighted:?}", FAMILIES[slot]);
        Ok(())
    }

    /// Lets nothing be under way that does not know of a snapshot from now on.
    fn settle_filter(&self) -> Result<()> {
        let Some(slot) = self.filtered.slot() else { return Ok(()) };
        self.on_db(Db::wait_for_compaction)?;
        self.sight(slot)
    }

    fn tell(&mut self, operation: &Operation) -> Result<()> {
        match operation {
            Operation::Write(write) => self.write(std::slice::from_ref(write), false, true),
            Operation::Batch { writes, is_synced } => self.write(writes, *is_synced, false),
            Operation::Ingest { family, rows, way } => self.ingest(*family, rows, *way),
            Operation::Transaction { slot, call } => self.transact(*slot, call),
            Operation::TakeSnapshot(slot) => {
                self.settle_filter()?;
                let state = self.witness.history().acknowledged();
                self.snapshots[*slot] = self.db().map(|db| (db.snapshot(), state));
                Ok(())
            }
            Operation::ReleaseSnapshot(slot) => {
                self.snapshots[*slot] = None;
                Ok(())
            }
            Operation::Get { family, key, at } => self.get(*family, key, *at),
            Operation::MultiGet { family, keys, at } => {
                keys.iter().try_for_each(|key| self.get(*family, key, *at))
            }
            // What cursors show besides all rows is left to the comparison with the model.
            Operation::Scan(..)
            | Operation::HoldCursor(..)
            | Operation::MoveCursor(..)
            | Operation::DropCursor(_)
            | Operation::CompareAll => self.compare_all(),
            Operation::CreateFamily(slot, options) => self.create(*slot, options),
            Operation::ChangeFamily(slot, options) => match (&self.db, &self.handles[*slot]) {
                (Some(db), Some(_)) => {
                    db.column_family(FAMILIES[*slot], (**options).clone()).map(drop)
                }
                _ => Ok(()),
            },
            Operation::DropFamily(slot) => self.drop_family(*slot),
            Operation::Flush(family) => self.flush(*family),
            Operation::Compact { family, range } => self.compact(*family, range.as_ref()),
            Operation::Settle => self.on_db(Db::wait_for_compaction),
            Operation::Sync => self.sync(),
            Operation::Advance(by_us) => {
                self.pass_us(*by_us);
                Ok(())
            }
            Operation::Age => {
                self.pass_us(lifetimes::HALF_LIFE_US);
                Ok(())
            }
            Operation::Reopen(_, settings) => self.reopen(settings),
            // Scripts for crashes have none: the engine's own tests cut copies short, and a write
            // with a condition is a transaction.
            Operation::Copy(..) | Operation::WriteIf { .. } => Ok(()),
        }
    }

    fn on_db(&self, call: impl FnOnce(&Db) -> Result<()>) -> Result<()> {
        self.db.as_ref().map_or(Ok(()), call)
    }

    fn is_logless(&self) -> bool {
        self.options.durability == Durability::None
    }

    /// Notes an event that is about to be told, and how a reader would see it.
    fn begin(&self, event: Event, is_synced: bool) {
        let mut history = self.witness.history();
        let before = history.now();
        let writes = match &event {
            Event::Write(writes) => writes.clone(),
            _ => Vec::new(),
        };
        history.begin(event, is_synced || self.options.durability == Durability::Sync);
        let after = history.now();
        let probe = writes.iter().find_map(|write| {
            let (Change::Put(key, _)
            | Change::Merge(key, _)
            | Change::Delete(key)
            | Change::SingleDelete(key)) = &write.change
            else {
                return None;
            };
            let value = |state: &State| {
                state.family(write.family).and_then(|f| f.get(key).map(<[u8]>::to_vec))
            };
            let (visible, old) = (value(&after), value(&before));
            let family = self.handles[write.family].clone()?;
            // What the filter may make of the old row shows nothing.
            let is_telling = visible != old
                && !old.is_some_and(|old| {
                    self.may_become(write.family, key, &old, visible.as_deref())
                });
            is_telling.then(|| Probe { family, key: key.clone(), visible })
        });
        *lock(&self.witness.probe) = probe;
    }

    /// Whether the filter may have made one row of another.
    fn may_become(&self, slot: usize, key: &[u8], before: &[u8], after: Option<&[u8]>) -> bool {
        self.filtered.is_of(slot) && filtering::may_become(slot, key, before, after)
    }

    /// Notes what became of the event, and what its acknowledgement promises.
    fn end(&self, result: Result<()>, durability: Durability) -> Result<()> {
        *lock(&self.witness.probe) = None;
        result?;
        let now_us = self.environment.now_us();
        let mut history = self.witness.history();
        history.acknowledge(now_us);
        match durability {
            Durability::Sync => history.all_durable(),
            Durability::Interval { milliseconds } => {
                let period_us = u64::from(milliseconds) * 1000;
                if let Some(through_us) = now_us.checked_sub(period_us) {
                    history.durable_through_us(through_us);
                }
            }
            Durability::Buffered | Durability::None => {}
        }
        Ok(())
    }

    fn write(&mut self, writes: &[Write], is_synced: bool, is_single: bool) -> Result<()> {
        let mut writes = self.witness.history().now().resolve(writes);
        // A family that failed to be made may be in the history, and has no handle.
        writes.retain(|write| self.handles[write.family].is_some());
        let Some(db) = self.db.as_ref().filter(|_| !writes.is_empty()) else { return Ok(()) };
        let is_synced = is_synced && !self.is_logless();
        self.begin(Event::Write(writes.clone()), is_synced);
        let result = match (&writes[..], is_single) {
            ([write], true) => self.write_one(write),
            _ => {
                let mut batch = db.batch();
                for write in &writes {
                    let Some(family) = &self.handles[write.family] else { continue };
                    match &write.change {
                        Change::Put(key, value) => batch.put(family, key, value.bytes()),
                        Change::Delete(key) => batch.delete(family, key),
                        Change::DeleteRange(start, end) => batch.delete_range(family, start, end),
                        Change::SingleDelete(key) => batch.single_delete(family, key),
                        Change::Merge(key, operand) => batch.merge(family, key, operand.bytes()),
                        Change::Once(..) => continue,
                    };
                }
                match is_synced {
                    true => batch.commit_with(Durability::Sync),
                    false => batch.commit(),
                }
            }
        };
        self.end(result, if is_synced { Durability::Sync } else { self.options.durability })
    }

    fn write_one(&self, write: &Write) -> Result<()> {
        let Some(family) = &self.handles[write.family] else { return Ok(()) };
        match &write.change {
            Change::Put(key, value) => family.put(key, value.bytes()),
            Change::Delete(key) => family.delete(key),
            Change::DeleteRange(start, end) => family.delete_range(start, end),
            Change::SingleDelete(key) => family.single_delete(key),
            Change::Merge(key, operand) => family.merge(key, operand.bytes()),
            Change::Once(..) => Ok(()),
        }
    }

    fn transact(&mut self, slot: usize, call: &TransactionCall) -> Result<()> {
        if let TransactionCall::Begin { has_snapshot, is_optimistic, .. } = call {
            let Some(db) = &self.db else { return Ok(()) };
            let mut transaction = match is_optimistic {
                true => db.optimistic_transaction(),
                false => db.transaction(),
            };
            if *has_snapshot {
                transaction.set_snapshot();
            }
            self.transactions[slot] = Some((transaction, Vec::new()));
            return Ok(());
        }
        match call {
            TransactionCall::Commit { is_synced } => self.commit(slot, *is_synced),
            TransactionCall::Rollback => {
                self.transactions[slot] = None;
                Ok(())
            }
            _ => self.prepare(slot, call),
        }
    }

    /// A call of a transaction before its end.
    fn prepare(&mut self, slot: usize, call: &TransactionCall) -> Result<()> {
        let Some((transaction, writes)) = &mut self.transactions[slot] else { return Ok(()) };
        match call {
            TransactionCall::Get(family, key) => match &self.handles[*family] {
                Some(family) => transaction.get(family, key).map(drop),
                None => Ok(()),
            },
            TransactionCall::GetForUpdate(family, key) => match &self.handles[*family] {
                Some(family) => transaction.get_for_update(family, key).map(drop),
                None => Ok(()),
            },
            TransactionCall::Write(write) => {
                let Some(family) = &self.handles[write.family] else { return Ok(()) };
                match &write.change {
                    Change::Put(key, value) => transaction.put(family, key, value.bytes())?,
                    Change::Delete(key) => transaction.delete(family, key)?,
                    Change::Merge(key, operand) => {
                        transaction.merge(family, key, operand.bytes())?;
                    }
                    // Not to be had in transactions, or only with what they lock.
                    _ => return Ok(()),
                }
                writes.push(write.clone());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn commit(&mut self, slot: usize, is_synced: bool) -> Result<()> {
        let Some((transaction, writes)) = self.transactions[slot].take() else { return Ok(()) };
        let is_synced = is_synced && !self.is_logless();
        self.begin(Event::Write(writes), is_synced);
        let result = match is_synced {
            true => transaction.commit_with(Durability::Sync),
            false => transaction.commit(),
        };
        self.end(result, if is_synced { Durability::Sync } else { self.options.durability })
    }

    fn ingest(
        &mut self,
        family: usize,
        rows: &[(Key, Option<Value>)],
        way: IngestWay,
    ) -> Result<()> {
        let Some(handle) = self.handles[family].clone() else { return Ok(()) };
        if way == IngestWay::GivenUp {
            return put_rows(handle.ingest()?, rows).map(drop);
        }
        let change = |(key, value): &(Key, Option<Value>)| match value {
            Some(value) => Change::Put(key.clone(), *value),
            None => Change::Delete(key.clone()),
        };
        let writes = rows.iter().map(|row| Write { family, change: change(row) }).collect();
        // It comes behind everything that was logged, or without a log behind a flush of all.
        self.begin(Event::Write(writes), true);
        let result = match way {
            IngestWay::LinkedTable => self.ingest_table(&handle, rows, TableTransfer::Link),
            IngestWay::CopiedTable => self.ingest_table(&handle, rows, TableTransfer::Copy),
            IngestWay::Rows | IngestWay::SlowRows | IngestWay::GivenUp => {
                let ingest = handle.ingest().and_then(|ingest| put_rows(ingest, rows));
                ingest.and_then(|ingest| ingest.commit()).map(drop)
            }
        };
        self.end(result, Durability::Sync)
    }

    fn ingest_table(
        &mut self,
        handle: &ColumnFamily,
        rows: &[(Key, Option<Value>)],
        transfer: TableTransfer,
    ) -> Result<()> {
        self.tables_made += 1;
        let path = format!("/rows{}.table", self.tables_made);
        // A life that ended here before may have left one.
        let _ = self.files.remove(Path::new(&path));
        let files = Arc::new(self.files.clone());
        let world = World { files, environment: Arc::new(self.environment.clone()) };
        let mut writer = TableWriter::create_in(&path, &handle.options(), world)?;
        for (key, value) in rows {
            match value {
                Some(value) => writer.put(key, value.bytes())?,
                None => writer.delete(key)?,
            }
        }
        writer.finish()?;
        handle.ingest_tables(&[&path], transfer)?;
        // The source is the caller's; whether that works is not the database's matter.
        let _ = self.files.remove(Path::new(&path));
        Ok(())
    }

    fn create(&mut self, slot: usize, options: &CfOptions) -> Result<()> {
        let Some(db) = self.db.as_ref().filter(|_| self.handles[slot].is_none()) else {
            return Ok(());
        };
        self.begin(Event::Create(slot), false);
        let made = db.column_family(FAMILIES[slot], options.clone());
        self.end(made.clone().map(drop), self.durability_of_families())?;
        let family = made?;
        self.supply(&family, slot);
        self.handles[slot] = Some(family);
        Ok(())
    }

    fn drop_family(&mut self, slot: usize) -> Result<()> {
        let Some(db) = self.db.as_ref().filter(|_| self.handles[slot].is_some()) else {
            return Ok(());
        };
        self.begin(Event::Drop(slot), false);
        let result = db.drop_column_family(FAMILIES[slot]);
        self.end(result, self.durability_of_families())?;
        self.handles[slot] = None;
        Ok(())
    }

    /// With a log the edit of the families comes behind everything that was logged.
    fn durability_of_families(&self) -> Durability {
        if self.is_logless() { Durability::None } else { Durability::Sync }
    }

    fn flush(&self, family: Option<usize>) -> Result<()> {
        match family {
            None => {
                self.on_db(Db::flush)?;
                self.witness.history().all_durable();
            }
            Some(family) => {
                let Some(handle) = &self.handles[family] else { return Ok(()) };
                handle.flush()?;
                self.witness.history().all_durable();
            }
        }
        Ok(())
    }

    fn compact(&self, family: usize, range: Option<&(Key, Key)>) -> Result<()> {
        let Some(handle) = &self.handles[family] else { return Ok(()) };
        handle.compact_range(range.cloned().unzip())?;
        let is_held_back = self.snapshots.iter().any(Option::is_some)
            || self.transactions.iter().any(Option::is_some);
        if self.filtered.is_of(family) && range.is_none() && !is_held_back {
            let asked = check_all(&all_rows(handle)?);
            assert!(asked.is_ok(), "after a compaction of everything: {asked:?}");
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        if self.is_logless() {
            return Ok(());
        }
        self.on_db(Db::sync)?;
        self.witness.history().all_durable();
        Ok(())
    }

    /// Closes the database, whatever ending is asked for, and opens it again: other endings are
    /// what the crashes are for.
    fn reopen(&mut self, settings: &Settings) -> Result<()> {
        self.close()?;
        let threads = self.options.background_threads;
        self.options = with_threads(settings.database.clone(), threads);
        self.open()
    }

    /// Closes the database, if it is open.
    ///
    /// # Errors
    /// Those of [`Db::close`]; it is closed all the same.
    pub fn close(&mut self) -> Result<()> {
        let db = self.db.take();
        self.let_go();
        if let Some(db) = db {
            db.close()?;
            self.witness.history().all_durable();
        }
        Ok(())
    }

    /// Compares a read with the model.
    fn get(&self, family: usize, key: &[u8], at: Option<usize>) -> Result<()> {
        let Some(handle) = &self.handles[family] else { return Ok(()) };
        let (found, state) = match at.and_then(|slot| self.snapshots[slot].as_ref()) {
            Some((snapshot, state)) => (handle.get_at(key, snapshot)?, state.clone()),
            None => (handle.get(key)?, self.witness.history().acknowledged()),
        };
        if at.is_none() || same_incarnation(&state, &self.witness.history().acknowledged(), family)
        {
            let (found, content) = (found.as_deref(), state.family(family));
            let expected = content.and_then(|content| content.get(key));
            let is_filtered = at.is_none()
                && expected.is_some_and(|row| self.may_become(family, key, row, found));
            assert!(is_filtered || found == expected, "a read of {key:?}: {found:?}");
        }
        Ok(())
    }

    /// Compares all rows with the model, now and at every snapshot; what the filter has made of them now is
    /// taken over.
    pub fn compare_all(&self) -> Result<()> {
        let now = self.witness.history().acknowledged();
        for (slot, handle) in self.handles.iter().enumerate() {
            let (Some(handle), Some(content)) = (handle, now.family(slot)) else { continue };
            match self.filtered.is_of(slot) {
                true => self.sight(slot)?,
                false => compare_rows(handle.cursor(..)?, content.rows())?,
            }
            for (snapshot, state) in self.snapshots.iter().flatten() {
                if same_incarnation(state, &now, slot)
                    && let Some(content) = state.family(slot)
                {
                    compare_rows(handle.cursor_at(.., snapshot)?, content.rows())?;
                }
            }
        }
        Ok(())
    }
}

fn same_incarnation(one: &State, other: &State, slot: usize) -> bool {
    let incarnation = |state: &State| state.family(slot).map(|family| family.incarnation());
    incarnation(one) == incarnation(other)
}

/// Compares what a cursor shows, from the last row to the first.
fn compare_rows(mut cursor: lithify::Cursor, rows: &Rows) -> Result<()> {
    for (key, value) in rows.iter().rev() {
        assert!(cursor.prev()?, "the row {key:?} is missing");
        assert_eq!((cursor.key(), cursor.value()), (&key[..], &value[..]), "a row");
    }
    assert!(!cursor.prev()?, "a row too many");
    Ok(())
}

fn put_rows(mut ingest: lithify::Ingest, rows: &[(Key, Option<Value>)]) -> Result<lithify::Ingest> {
    for (key, value) in rows {
        match value {
            Some(value) => ingest.put(key, value.bytes())?,
            None => ingest.delete(key)?,
        }
    }
    Ok(ingest)
}
