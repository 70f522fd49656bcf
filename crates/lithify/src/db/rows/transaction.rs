//! Transactions, pessimistic and optimistic: own writes visible to own reads, one atomic commit.
//!
//! What a pessimistic one promises: read committed, or reads at a snapshot if that is asked for, and
//! no other writer, plain or transactional, changes a row that the transaction has locked until it
//! ends. With a snapshot set, locking a row that was changed after the snapshot is refused. There is
//! no protection against phantoms: rows that others add to a range are seen by a later scan. Of
//! transactions and plain writes that wait for each other's rows in a circle, the one that would
//! close it is refused at once.
//!
//! What an optimistic one promises: all of its reads are of one moment, and if it commits, nothing
//! that it has read was written since, phantoms included. So those that commit are as if they had
//! run one after the other. It waits only for rows that pessimistic ones have locked, and only in
//! its commit.

use crate::base::{ColumnFamilyId, SequenceNumber, Slice, Trailer, ValueKind, lock};
use crate::db::committing::batch::{BatchData, BatchMark, Entry};
use crate::db::committing::commit::Condition;
use crate::db::committing::reads::ReadSet;
use crate::db::committing::recent::Checks;
use crate::db::family_handle::ColumnFamily;
use crate::db::inner::DbInner;
use crate::db::reading::cursor::{Cursor, ScanRange};
use crate::db::reading::iter::Iter;
use crate::db::reading::read::OwnWrites;
use crate::db::reading::snapshot::Snapshot;
use crate::db::rows::locks::{Grant, OwnerId, RowId};
use crate::db::tree::family::Family;
use crate::iter::OWN_SEQUENCE_MIN;
use crate::memtable::MemTable;
use crate::options::Durability;
use crate::stats::{Cause, Counter, WorkMeter};
use crate::{Error, ErrorKind, Result};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

/// Where a transaction stood when a savepoint was set.
struct Savepoint {
    batch: BatchMark,
    locks: usize,
}

/// A transaction. One from [`crate::Db::transaction`] takes a row lock before every write and every
/// [`Transaction::get_for_update`], and holds it until it commits or is dropped. One from
/// [`crate::Db::optimistic_transaction`] takes none, and is checked when it commits. Dropping it without
/// a commit rolls it back.
///
/// ```
/// # let directory = tempfile::tempdir().unwrap();
/// let db = lithify::Db::open(directory.path(), lithify::Options::default())?;
/// let counts = db.column_family("counts", lithify::CfOptions::default())?;
/// let mut transaction = db.transaction();
/// let old = transaction.get_for_update(&counts, b"visits")?;
/// let new = old.map_or(1u8, |value| value[0] + 1);
/// transaction.put(&counts, b"visits", &[new])?;
/// transaction.commit()?;
/// assert_eq!(counts.get(b"visits")?.as_deref(), Some(&[1][..]));
/// # Ok::<(), lithify::Error>(())
/// ```
pub struct Transaction {
    inner: Arc<DbInner>,
    owner: OwnerId,
    locks: Vec<RowId>,
    data: BatchData,
    /// Where in the batch the last write of a row starts.
    own: HashMap<RowId, usize>,
    savepoints: Vec<Savepoint>,
    snapshot: Option<Snapshot>,
    reads_at_snapshot: bool,
    /// What was read, if it is an optimistic one.
    reads: Option<Arc<Mutex<ReadSet>>>,
    lock_timeout_us: u64,
    /// Whose ranges must not have been written since, if it changes one row and sees no conflict else.
    unless_ranges: Option<(Arc<Family>, SequenceNumber)>,
    is_committed: bool,
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Transaction");
        fields.field("writes", &self.data.count()).field("locks", &self.locks.len());
        fields.finish_non_exhaustive()
    }
}

impl Transaction {
    pub(crate) fn new(inner: Arc<DbInner>) -> Self {
        let owner = inner.rows.new_owner();
        let lock_timeout_us = inner.rows.timeout_us();
        Transaction {
            inner,
            owner,
            locks: Vec::new(),
            data: BatchData::default(),
            own: HashMap::new(),
            savepoints: Vec::new(),
            snapshot: None,
            reads_at_snapshot: false,
            reads: None,
            lock_timeout_us,
            unless_ranges: None,
            is_committed: false,
        }
    }

    /// One that takes no locks, and is checked when it commits.
    pub(crate) fn optimistic(inner: Arc<DbInner>) -> Self {
        inner.commits.begin_optimistic(&inner.workshop.budget);
        let mut transaction = Transaction::new(inner);
        let reads_bytes_max = transaction.inner.options.reads_bytes_max();
        transaction.reads = Some(Arc::new(Mutex::new(ReadSet::new(reads_bytes_max))));
        transaction.read_at_snapshot();
        transaction
    }

    /// Notes that a row was read.
    fn note_read(&self, family: ColumnFamilyId, key: &[u8]) -> Result<()> {
        let reads = self.reads.as_ref();
        reads.map_or(Ok(()), |reads| lock(reads).note_key(family, key))
    }

    /// How long this transaction waits for a row lock; 0 gives up at once.
    pub fn set_lock_timeout_ms(&mut self, milliseconds: u64) {
        self.lock_timeout_us = milliseconds.saturating_mul(1000);
    }

    /// From now on, locking a row that somebody changed after this call is refused with
    /// [`ErrorKind::Conflict`].
    pub fn set_snapshot(&mut self) {
        if self.snapshot.is_some() && self.reads.is_some() {
            return;
        }
        self.snapshot = Some(self.inner.new_snapshot());
    }

    /// From now on every read sees the state of this moment, with the transaction's own writes on
    /// top, whatever others commit: repeatable reads. Locking a row that somebody changed since is
    /// refused with [`ErrorKind::Conflict`], as after [`Transaction::set_snapshot`].
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = lithify::Db::open(directory.path(), lithify::Options::default())?;
    /// let rocks = db.column_family("rocks", lithify::CfOptions::default())?;
    /// let mut transaction = db.transaction();
    /// transaction.read_at_snapshot();
    /// rocks.put("basalt", "igneous")?;
    /// assert_eq!(transaction.get(&rocks, "basalt")?, None);
    /// let refused = transaction.get_for_update(&rocks, "basalt").unwrap_err();
    /// assert_eq!(refused.kind(), lithify::ErrorKind::Conflict);
    /// # Ok::<(), lithify::Error>(())
    /// ```
    pub fn read_at_snapshot(&mut self) {
        self.set_snapshot();
        self.reads_at_snapshot = true;
    }

    /// The snapshot that reads are to see, if there is one.
    fn read_snapshot(&self) -> Option<&Snapshot> {
        self.snapshot.as_ref().filter(|_| self.reads_at_snapshot)
    }

    /// Locks a row, then reads it: own write if there is one, else the newest committed value. Range
    /// deletes and ingests take no row locks and may change it nevertheless. Only a transaction that reads
    /// at a snapshot notices, at its next lock of the row.
    ///
    /// # Errors
    /// [`ErrorKind::LockTimeout`], [`ErrorKind::Deadlock`] and [`ErrorKind::Conflict`]: roll back,
    /// so that others get on, and retry. As [`ColumnFamily::get`].
    pub fn get_for_update(
        &mut self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<Slice>> {
        let key = key.as_ref();
        self.lock(family, key)?;
        self.get(family, key)
    }

    /// The same, for a commit that is refused with [`ErrorKind::Conflict`] if a range of the family was
    /// deleted or ingested meanwhile: the lock of a row keeps nobody from that.
    pub(crate) fn get_exclusively(
        &mut self,
        family: &ColumnFamily,
        key: &[u8],
    ) -> Result<Option<Slice>> {
        if planted!(ReadBeforeLock) {
            let early = self.get(family, key)?;
            crate::planted::let_others_in();
            self.lock(family, key)?;
            return Ok(early);
        }
        self.lock(family, key)?;
        // Before the read: what is published later, with a higher number, it may have missed.
        self.unless_ranges = Some((Arc::clone(&family.family), self.inner.visibility.last()));
        if planted!(UpdateMissesRanges) {
            self.unless_ranges = None;
        }
        self.get(family, key)
    }

    /// Locks the first row of a range that nobody else has locked, and reads it; `None` if there is
    /// no such row. Rows that others have locked are passed over at once, as with SQL's
    /// `FOR UPDATE SKIP LOCKED`: so the workers of a queue take their next job. A row that the
    /// transaction itself has locked is not passed over: a second call gives the same row, until it is
    /// deleted. In an optimistic transaction nothing is locked: two of them may be given one row, and
    /// only one commits. Range deletes and ingests heed no lock, as for
    /// [`Transaction::get_for_update`].
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = lithify::Db::open(directory.path(), lithify::Options::default())?;
    /// let jobs = db.column_family("jobs", lithify::CfOptions::default())?;
    /// jobs.put("0001", "resize a picture")?;
    /// jobs.put("0002", "send a letter")?;
    /// let mut first = db.transaction();
    /// let mut second = db.transaction();
    /// assert_eq!(first.lock_first(&jobs, ..)?.unwrap().1, "resize a picture");
    /// let (key, job) = second.lock_first(&jobs, ..)?.unwrap();
    /// assert_eq!(job, "send a letter");
    /// second.delete(&jobs, key)?;
    /// second.commit()?;
    /// # Ok::<(), lithify::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`], as [`Transaction::get_for_update`]; as [`ColumnFamily::cursor`].
    pub fn lock_first(
        &mut self,
        family: &ColumnFamily,
        range: impl Into<ScanRange>,
    ) -> Result<Option<(Slice, Slice)>> {
        self.inner.lifecycle.check_writable()?;
        let mut rows = self.cursor(family, range)?;
        while rows.next()? {
            let row = RowId::new(family.id(), rows.key());
            let mut grant = match self.reads {
                Some(_) => Grant::Held,
                None => self.inner.rows.try_lock(self.owner, row),
            };
            if planted!(RowLockSkipped) {
                grant = Grant::Held;
            }
            if planted!(BusyRowGiven) && grant == Grant::Busy {
                grant = Grant::Held;
            }
            if planted!(FreeRowPassedOver) && grant == Grant::Busy {
                rows.next()?;
            }
            match grant {
                Grant::Busy => continue,
                Grant::New => self.locks.push(row),
                Grant::Held => {}
            }
            let mut meter = WorkMeter::default();
            let unchanged = self.check_unchanged(family, rows.key(), &mut meter);
            let (inner, clock) = (&self.inner, &*self.inner.world.environment);
            inner.ledger.end_user_call(None, Cause::UserWrite, 0, clock, &mut meter);
            unchanged?;
            // Who had the lock before may have removed the row since the cursor was made.
            if let Some(value) = self.get(family, rows.key())? {
                return Ok(Some((Slice::copy_from(rows.key()), value)));
            }
            if grant == Grant::New {
                self.locks.pop();
                self.inner.rows.release(self.owner, row);
            }
        }
        Ok(None)
    }

    /// Reads a row without locking it: own write if there is one, else the newest committed
    /// value, or that of [`Transaction::read_at_snapshot`].
    ///
    /// # Errors
    /// As [`ColumnFamily::get`]; [`ErrorKind::LimitExceeded`] if an optimistic transaction has read more
    /// than can be checked. What it has read before stays noted, and it may be committed.
    pub fn get(&self, family: &ColumnFamily, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        let key = key.as_ref();
        self.check_family(family)?;
        match self.own_write(family.id(), key)? {
            Some(entry) if entry.kind == ValueKind::Put => {
                Ok(Some(Slice::copy_from(family.family.rows.value_of(entry.value)?)))
            }
            Some(entry) if entry.kind == ValueKind::Merge => {
                // What it adds to is another write, or committed.
                let mut rows = self.cursor(family, key..=key)?;
                Ok(rows.next()?.then(|| Slice::copy_from(rows.value())))
            }
            Some(_) => Ok(None),
            None => {
                self.note_read(family.id(), key)?;
                let mut at = self.read_snapshot();
                if planted!(SnapshotGetsNewest) {
                    at = None;
                }
                match at {
                    Some(snapshot) => family.get_at(key, snapshot),
                    None => family.get(key),
                }
            }
        }
    }

    /// A cursor over committed rows, as of now or of [`Transaction::read_at_snapshot`], with the
    /// transaction's own writes so far on top. The moves of an optimistic transaction's cursor have the
    /// errors of [`Transaction::get`], too.
    ///
    /// # Errors
    /// As [`ColumnFamily::cursor`].
    pub fn cursor(&self, family: &ColumnFamily, range: impl Into<ScanRange>) -> Result<Cursor> {
        self.check_family(family)?;
        let own = self.own_writes(family.id())?;
        let mut at = self.read_snapshot().map(|snapshot| &snapshot.moment);
        if planted!(SnapshotScansNewest) {
            at = None;
        }
        self.inner.open_cursor_under(&family.family, range.into(), at, Some(&own))
    }

    /// All rows that [`Transaction::cursor`] shows, as an iterator that owns what it gives, from both
    /// ends. It sees nothing that is written after it was made, by this transaction neither.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = lithify::Db::open(directory.path(), lithify::Options::default())?;
    /// let rocks = db.column_family("rocks", lithify::CfOptions::default())?;
    /// rocks.put("basalt", "igneous")?;
    /// let mut transaction = db.transaction();
    /// transaction.put(&rocks, "chalk", "sedimentary")?;
    /// let keys: Vec<_> = transaction.iter(&rocks).keys().collect::<lithify::Result<_>>()?;
    /// assert_eq!(keys, ["basalt", "chalk"]);
    /// assert_eq!(rocks.iter().count(), 1);
    /// # Ok::<(), lithify::Error>(())
    /// ```
    pub fn iter(&self, family: &ColumnFamily) -> Iter {
        self.range(family, ..)
    }

    /// The rows of a range of keys, as [`Transaction::iter`] gives them.
    pub fn range(&self, family: &ColumnFamily, range: impl Into<ScanRange>) -> Iter {
        // Both ends read at one moment, whether or not the transaction's next read does.
        let snapshot = self.read_snapshot().cloned().unwrap_or_else(|| self.inner.new_snapshot());
        let own = self.check_family(family).and_then(|()| self.own_writes(family.id()));
        match own {
            Ok(own) => Iter::over(family.clone(), range.into(), snapshot, own),
            Err(error) => Iter::failed(error, snapshot),
        }
    }

    /// The rows whose keys begin with `prefix`, as [`Transaction::iter`] gives them.
    pub fn prefix(&self, family: &ColumnFamily, prefix: impl AsRef<[u8]>) -> Iter {
        self.range(family, ScanRange::prefix(prefix))
    }

    /// What this transaction adds to a scan of a family: its writes so far, and where reads are noted.
    fn own_writes(&self, family: ColumnFamilyId) -> Result<OwnWrites> {
        let own = Arc::new(MemTable::new());
        let mut has_puts = false;
        {
            let mut writer = own.writer();
            for (index, entry) in self.data.entries().enumerate() {
                let entry = entry?;
                if entry.family == family {
                    let trailer = Trailer::new(OWN_SEQUENCE_MIN + index as u64, entry.kind);
                    writer.insert(entry.key, trailer, entry.value);
                    has_puts |= matches!(entry.kind, ValueKind::Put | ValueKind::Merge);
                }
            }
        }
        Ok(OwnWrites { table: own, has_puts, reads: self.reads.as_ref().map(Arc::downgrade) })
    }

    /// Sets the value of a key, once committed.
    ///
    /// # Errors
    /// As [`Transaction::get_for_update`] and [`ColumnFamily::put`]; [`ErrorKind::LimitExceeded`] if all
    /// writes together would be larger than half of `memory_budget_bytes`. The transaction then holds its
    /// earlier writes and may be committed. The row stays locked.
    pub fn put(
        &mut self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.write(family, ValueKind::Put, key.as_ref(), value.as_ref())
    }

    /// Adds an operand to a key, once committed; see [`ColumnFamily::merge`]. The row is locked and not
    /// read.
    ///
    /// # Errors
    /// As [`Transaction::put`] and [`ColumnFamily::merge`].
    pub fn merge(
        &mut self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        family.family.check_operand(operand.as_ref())?;
        self.write(family, ValueKind::Merge, key.as_ref(), operand.as_ref())
    }

    /// Removes a key, once committed.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn delete(&mut self, family: &ColumnFamily, key: impl AsRef<[u8]>) -> Result<()> {
        self.write(family, ValueKind::Delete, key.as_ref(), &[])
    }

    /// Removes a key that was put exactly once, once committed; see
    /// [`ColumnFamily::single_delete`] for the contract. An optimistic transaction keeps nobody from
    /// putting the row a second time: read it in the transaction first, so that its commit notices.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn single_delete(&mut self, family: &ColumnFamily, key: impl AsRef<[u8]>) -> Result<()> {
        self.write(family, family.family.single_delete_kind(), key.as_ref(), &[])
    }

    /// Always refused: a range cannot be locked.
    ///
    /// # Errors
    /// `InvalidArgument`, always.
    pub fn delete_range(
        &mut self,
        _: &ColumnFamily,
        _: impl AsRef<[u8]>,
        _: impl AsRef<[u8]>,
    ) -> Result<()> {
        Err(Error::invalid(
            "delete_range inside a transaction: a range cannot be locked; use ColumnFamily::delete_range",
        ))
    }

    /// Marks a place to roll back to.
    pub fn set_savepoint(&mut self) {
        self.savepoints.push(Savepoint { batch: self.data.mark(), locks: self.locks.len() });
    }

    /// Undoes all writes and gives back all locks since the last savepoint, which is used up.
    ///
    /// # Errors
    /// `InvalidArgument` if there is no savepoint.
    pub fn rollback_to_savepoint(&mut self) -> Result<()> {
        let Some(savepoint) = self.savepoints.pop() else {
            return Err(Error::invalid("the transaction has no savepoint to roll back to"));
        };
        if !planted!(SavepointKeepsWrites) {
            self.data.truncate(savepoint.batch);
        }
        for row in self.locks.drain(savepoint.locks..) {
            self.inner.rows.release(self.owner, row);
        }
        self.own.clear();
        let mut entries = self.data.entries();
        let mut offset = entries.offset();
        while let Some(entry) = entries.next() {
            let entry = entry?;
            self.own.insert(RowId::new(entry.family, entry.key), offset);
            offset = entries.offset();
        }
        Ok(())
    }

    /// Makes all writes visible together, with the database's own durability, and gives back the
    /// locks.
    ///
    /// # Errors
    /// As [`crate::Batch::commit`]; the transaction is rolled back then.
    pub fn commit(mut self) -> Result<()> {
        self.end_with(None)
    }

    /// [`Transaction::commit`] with a durability of its own.
    ///
    /// # Errors
    /// As [`crate::Batch::commit_with`]; the transaction is rolled back then.
    pub fn commit_with(mut self, durability: Durability) -> Result<()> {
        self.end_with(Some(durability))
    }

    fn end_with(&mut self, durability: Option<Durability>) -> Result<()> {
        if planted!(LocksReleasedEarly) {
            self.release_locks();
            crate::planted::let_others_in();
        }
        let data = std::mem::take(&mut self.data);
        match (&self.reads, &self.snapshot) {
            // One that only reads has seen one moment: nothing can make that wrong.
            (Some(reads), Some(snapshot)) if !data.is_empty() => {
                let reads = lock(reads).take();
                let checks = Box::new(Checks { snapshot: snapshot.moment.sequence, reads });
                let condition = Some(Condition::Reads(checks));
                self.inner.write_checked(data, durability, condition)?;
            }
            _ => {
                let ranges = self.unless_ranges.take();
                let condition = ranges.map(|(family, since)| Condition::Ranges(family, since));
                self.inner.commit_if(data, durability, condition)?;
            }
        }
        self.is_committed = true;
        Ok(())
    }

    /// Forgets all writes and gives back the locks; the same as dropping the transaction.
    pub fn rollback(self) {}

    fn write(
        &mut self,
        family: &ColumnFamily,
        kind: ValueKind,
        key: &[u8],
        value: &[u8],
    ) -> Result<()> {
        self.lock(family, key)?;
        let mark = self.data.mark();
        self.data.note_family(&family.family);
        self.data.push_to(&family.family, Entry { kind, family: family.id(), key, value });
        let bytes_max = self.inner.options.batch_bytes_max();
        if let Err(error) = self.data.check().and_then(|()| self.data.check_size(bytes_max)) {
            // The batch is as it was: only the refused write is missing.
            self.data.truncate(mark);
            return Err(error);
        }
        self.own.insert(RowId::new(family.id(), key), mark.bytes);
        Ok(())
    }

    /// The last write of this transaction to a row.
    fn own_write(&self, family: ColumnFamilyId, key: &[u8]) -> Result<Option<Entry<'_>>> {
        match self.own.get(&RowId::new(family, key)) {
            Some(offset) => self.data.entry_at(*offset).map(|entry| {
                // Another key of the same hash is not this row.
                Some(entry).filter(|entry| entry.family == family && entry.key == key)
            }),
            None => Ok(None),
        }
    }

    fn release_locks(&mut self) {
        for row in self.locks.drain(..) {
            self.inner.rows.release(self.owner, row);
        }
    }

    fn check_family(&self, family: &ColumnFamily) -> Result<()> {
        if !Arc::ptr_eq(&family.inner, &self.inner) {
            return Err(Error::invalid(format!(
                "the column family {:?} belongs to another database",
                family.name()
            )));
        }
        family.family.check_alive()
    }

    fn lock(&mut self, family: &ColumnFamily, key: &[u8]) -> Result<()> {
        self.check_family(family)?;
        self.inner.lifecycle.check_writable()?;
        if self.reads.is_some() {
            return Ok(());
        }
        let row = RowId::new(family.id(), key);
        let (inner, clock) = (&self.inner, &*self.inner.world.environment);
        let sample = inner.ledger.begin_user_call(Counter::LockRequests, Cause::UserWrite, clock);
        let mut grant = Grant::Held;
        if !planted!(RowLockSkipped) {
            grant = inner.lock_row(self.owner, row, self.lock_timeout_us, || (family.id(), key))?;
        }
        match grant {
            Grant::New => self.locks.push(row),
            Grant::Held | Grant::Busy => {}
        }
        let mut meter = WorkMeter::default();
        let unchanged = self.check_unchanged(family, key, &mut meter);
        inner.ledger.end_user_call(sample, Cause::UserWrite, 0, clock, &mut meter);
        unchanged
    }

    /// Refuses a row that was changed after the transaction's snapshot, if it has one.
    fn check_unchanged(
        &self,
        family: &ColumnFamily,
        key: &[u8],
        meter: &mut WorkMeter,
    ) -> Result<()> {
        let snapshot = self.snapshot.as_ref().filter(|_| self.reads.is_none());
        let Some(snapshot) = snapshot else { return Ok(()) };
        let mut newest = self.inner.newest_sequence(&family.family, key, meter)?;
        if planted!(ConflictOverlooked) {
            newest = 0;
        }
        if newest > snapshot.moment.sequence {
            self.inner.ledger.count(Counter::Conflicts, 1);
            return Err(Error::new(
                ErrorKind::Conflict,
                "the row was changed after the transaction's snapshot: roll back and retry",
            )
            .expected(format_args!("sequence {} or less", snapshot.moment.sequence), newest));
        }
        Ok(())
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        let counter = match self.is_committed {
            true => Counter::TransactionCommits,
            false => Counter::TransactionRollbacks,
        };
        self.inner.ledger.count(counter, 1);
        if self.reads.is_some() {
            self.inner.commits.end_optimistic();
        }
        if planted!(RollbackKeepsLocks) && !self.is_committed {
            return;
        }
        self.release_locks();
    }
}
