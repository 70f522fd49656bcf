//! Transactions: rows that are read and written as one piece of work.
//!
//! Owns: [`Work`], shared by the views of a transaction on several families, and the class of a view. Its
//! lock is taken only while detached from the interpreter, for a write may wait for somebody's row.

use std::sync::{Arc, Mutex, OnceLock};

use lithify::{ColumnFamily, Durability};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bytes::{BytesLike, to_bytes};
use crate::errors::{Failure, Result, detached};
use crate::family::{FamilyArgument, key_error};
use crate::forks::Native;
use crate::handle::{Handle, Target};
use crate::iterator::lock;
use crate::range::Bounds;
use crate::rows::{Rows, Source};
use crate::settings;

/// A transaction, until it ends.
struct Work {
    handle: Arc<Handle>,
    begun: Mutex<Option<Native<Begun>>>,
    durability: Option<Durability>,
}

/// A transaction, and the state of the database that it is of: a refresh may have moved the database on.
struct Begun {
    db: lithify::Db,
    transaction: lithify::Transaction,
}

impl Work {
    fn with<T>(&self, act: impl FnOnce(&mut Begun) -> Result<T>) -> Result<T> {
        self.handle.check_process()?;
        act(lock(self.begun.lock()).as_mut().ok_or(ENDED)?.get_mut()?)
    }

    fn commit(&self, durability: Option<Durability>) -> Result<()> {
        self.handle.check_process()?;
        let Begun { transaction, db: _db } = lock(self.begun.lock()).take().ok_or(ENDED)?.take()?;
        match durability.or(self.durability) {
            Some(durability) => Ok(transaction.commit_with(durability)?),
            None => Ok(transaction.commit()?),
        }
    }

    /// Whether there was one to end.
    fn roll_back(&self) -> Result<bool> {
        self.handle.check_process()?;
        Ok(lock(self.begun.lock()).take().is_some())
    }
}

const ENDED: Failure = Failure::Closed("the transaction");

/// A column family as a transaction reads and writes it.
pub struct WorkFamily {
    work: Arc<Work>,
    target: Arc<Target>,
    found: OnceLock<Native<ColumnFamily>>,
}

impl WorkFamily {
    fn new(work: Arc<Work>, target: Arc<Target>) -> Arc<WorkFamily> {
        Arc::new(WorkFamily { work, target, found: OnceLock::new() })
    }

    /// Which family.
    pub fn target(&self) -> &Arc<Target> {
        &self.target
    }

    /// Reads in it. The default family is made if it can be, since the transaction has to note that it read
    /// a row that is not there; else there is nothing to read.
    pub fn read<T>(
        &self,
        read: impl FnOnce(&mut lithify::Transaction, &ColumnFamily) -> lithify::Result<T>,
    ) -> Result<Option<T>> {
        self.with(|begun| {
            let may_be_missing = self.found.get().is_none() && begun.db.is_read_only();
            if may_be_missing && self.target.family_in(&begun.db)?.is_none() {
                return Ok(None);
            }
            Ok(Some(read(&mut begun.transaction, self.family(&begun.db)?)?))
        })
    }

    /// Locks or writes in it.
    fn write<T>(
        &self,
        write: impl FnOnce(&mut lithify::Transaction, &ColumnFamily) -> lithify::Result<T>,
    ) -> Result<T> {
        self.with(|begun| Ok(write(&mut begun.transaction, self.family(&begun.db)?)?))
    }

    fn with<T>(&self, act: impl FnOnce(&mut Begun) -> Result<T>) -> Result<T> {
        self.work.handle.check_open()?;
        self.work.with(act)
    }

    fn family(&self, db: &lithify::Db) -> Result<&ColumnFamily> {
        if let Some(family) = self.found.get() {
            return family.get();
        }
        let family = self.target.family_for_writing_in(db)?;
        self.found.get_or_init(|| Native::new(family)).get()
    }
}

/// How a transaction is begun.
pub struct Manner {
    /// Whether it takes no locks, and is checked at the commit.
    pub is_optimistic: bool,
    /// Whether all reads are of one moment.
    pub at_snapshot: bool,
    /// How long it waits for a row, if not for as long as the database's option says.
    pub lock_timeout_ms: Option<u64>,
    /// When its commit is acknowledged, if not as the database's option says.
    pub durability: Option<Durability>,
}

/// A column family in a transaction.
#[pyclass(frozen, extends = Rows, module = "lithify")]
pub struct Transaction {
    family: Arc<WorkFamily>,
}

/// Begins a transaction.
pub fn begin(
    py: Python<'_>,
    handle: &Arc<Handle>,
    target: Arc<Target>,
    manner: Manner,
) -> PyResult<Py<Transaction>> {
    let work = detached(py, || {
        let db = handle.db()?;
        let mut transaction = match manner.is_optimistic {
            true => db.optimistic_transaction(),
            false => db.transaction(),
        };
        if manner.at_snapshot {
            transaction.read_at_snapshot();
        }
        if let Some(milliseconds) = manner.lock_timeout_ms {
            transaction.set_lock_timeout_ms(milliseconds);
        }
        let begun = Mutex::new(Some(Native::new(Begun { db, transaction })));
        let handle = Arc::clone(handle);
        Ok(Arc::new(Work { handle, begun, durability: manner.durability }))
    })?;
    view(py, WorkFamily::new(work, target))
}

fn view(py: Python<'_>, family: Arc<WorkFamily>) -> PyResult<Py<Transaction>> {
    let rows = Rows::new(Source::Transaction(Arc::clone(&family)));
    Py::new(py, PyClassInitializer::from(rows).add_subclass(Transaction { family }))
}

impl Transaction {
    fn write<T: Send>(
        &self,
        py: Python<'_>,
        write: impl FnOnce(&mut lithify::Transaction, &ColumnFamily) -> lithify::Result<T> + Send,
    ) -> PyResult<T> {
        detached(py, || self.family.write(write))
    }
}

#[pymethods]
impl Transaction {
    /// Another column family in the same transaction: itself or its name.
    fn column_family(&self, py: Python<'_>, family: FamilyArgument) -> PyResult<Py<Transaction>> {
        let work = &self.family.work;
        let target = detached(py, || {
            work.handle.check_open()?;
            work.with(|begun| family.target(&work.handle, &begun.db))
        })?;
        view(py, WorkFamily::new(Arc::clone(work), target))
    }

    /// Locks a row, then reads it.
    #[pyo3(signature = (key, default=None))]
    fn get_for_update<'py>(
        &self,
        py: Python<'py>,
        key: BytesLike<'_>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let key = key.as_slice();
        let value =
            self.write(py, |transaction, family| transaction.get_for_update(family, key))?;
        Ok(to_bytes(py, value).map(Bound::into_any).or(default))
    }

    /// Locks the first row of a range that nobody else has locked, and reads it: (key, value), or None.
    #[pyo3(signature = (*, prefix=None, start=None, stop=None, include_start=true,
                        include_stop=false))]
    fn lock_first<'py>(
        &self,
        py: Python<'py>,
        prefix: Option<BytesLike<'_>>,
        start: Option<BytesLike<'_>>,
        stop: Option<BytesLike<'_>>,
        include_start: bool,
        include_stop: bool,
    ) -> PyResult<Option<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)>> {
        let (prefix, start, stop) = (prefix.as_ref(), start.as_ref(), stop.as_ref());
        let range = Bounds { prefix, start, stop, include_start, include_stop }.to_range();
        let found = self.write(py, |transaction, family| transaction.lock_first(family, range))?;
        Ok(found.map(|(key, value)| (PyBytes::new(py, &key), PyBytes::new(py, &value))))
    }

    /// Sets the value of a key, once committed.
    fn put(&self, py: Python<'_>, key: BytesLike<'_>, value: BytesLike<'_>) -> PyResult<()> {
        let (key, value) = (key.as_slice(), value.as_slice());
        self.write(py, |transaction, family| transaction.put(family, key, value))
    }

    /// Removes a key, once committed; no error if it is not there.
    fn delete(&self, py: Python<'_>, key: BytesLike<'_>) -> PyResult<()> {
        let key = key.as_slice();
        self.write(py, |transaction, family| transaction.delete(family, key))
    }

    /// Adds an operand to a key, once committed.
    fn merge(&self, py: Python<'_>, key: BytesLike<'_>, operand: BytesLike<'_>) -> PyResult<()> {
        let (key, operand) = (key.as_slice(), operand.as_slice());
        self.write(py, |transaction, family| transaction.merge(family, key, operand))
    }

    fn __setitem__(
        &self,
        py: Python<'_>,
        key: BytesLike<'_>,
        value: BytesLike<'_>,
    ) -> PyResult<()> {
        self.put(py, key, value)
    }

    fn __delitem__(&self, py: Python<'_>, key: BytesLike<'_>) -> PyResult<()> {
        let bytes = key.as_slice();
        let is_there = self.write(py, |transaction, family| {
            let is_there = transaction.get_for_update(family, bytes)?.is_some();
            if is_there {
                transaction.delete(family, bytes)?;
            }
            Ok(is_there)
        })?;
        if is_there { Ok(()) } else { Err(key_error(py, &key)) }
    }

    /// Marks a place to roll back to.
    fn set_savepoint(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || {
            self.family.work.with(|begun| {
                begun.transaction.set_savepoint();
                Ok(())
            })
        })
    }

    /// Undoes everything since the last savepoint, which is used up.
    fn rollback_to_savepoint(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || {
            self.family.work.with(|begun| Ok(begun.transaction.rollback_to_savepoint()?))
        })
    }

    /// Makes all writes visible together, and ends the transaction.
    #[pyo3(signature = (*, durability=None))]
    fn commit(&self, py: Python<'_>, durability: Option<&str>) -> PyResult<()> {
        let durability = settings::durability(durability)?;
        detached(py, || self.family.work.commit(durability))
    }

    /// Forgets all writes, and ends the transaction.
    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || match self.family.work.roll_back()? {
            true => Ok(()),
            false => Err(ENDED),
        })
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    /// Commits, unless the block ended the transaction itself, or ended by an exception, which goes through.
    #[pyo3(signature = (kind, _value, _traceback))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<Bound<'_, PyAny>>,
        _value: Option<Bound<'_, PyAny>>,
        _traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let has_failed = kind.is_some();
        detached(py, || {
            if has_failed {
                let _ = self.family.work.roll_back();
                return Ok(());
            }
            match self.family.work.commit(None) {
                // The block has ended it.
                Err(Failure::Closed(_)) => Ok(()),
                committed => committed,
            }
        })
    }
}
