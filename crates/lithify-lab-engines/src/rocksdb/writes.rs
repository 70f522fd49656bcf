//! Writes to an open database: batches and transactions.
//!
//! Owns: both, and whether a batch has to take row locks. Promises: batches take none until the
//! first transaction is begun, as Lithify's do: a load, which begins none, is not slowed by locks
//! that nobody could be waiting for. From then on every batch locks its rows.
//!
//! Threads: batches and transactions belong to one thread.

#![expect(unsafe_code, reason = "every call into the loaded library")]

use std::ffi::c_char;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use lithify_lab::adapter::{BatchOp, EngineError, EngineResult, SpaceId};

use super::database::{Database, Handle};
use super::functions as raw;
use super::objects::checked;
use super::options::ReadView;
use crate::library::Owned;

impl Database {
    /// An empty batch.
    ///
    /// # Errors
    /// The library makes none.
    pub fn batch(&self) -> EngineResult<Batch<'_>> {
        // SAFETY: takes nothing, gives an object of ours.
        let object = unsafe {
            Owned::new((self.functions.writebatch_create)(), self.functions.writebatch_destroy)
        }?;
        Ok(Batch { database: self, object })
    }

    /// The right to write batches without row locks, for as long as it is held: always where the
    /// database has none, else until the first transaction is begun.
    pub fn unlocked(&self) -> Option<Unlocked<'_>> {
        match &self.handle {
            Handle::Plain(_) => Some(Unlocked { _until_begun: None }),
            Handle::Transactional { first, .. } => first.not_yet(),
        }
    }

    /// Applies a batch atomically; under row locks unless there is no need for them.
    ///
    /// # Errors
    /// The library's.
    pub fn write(&self, batch: &mut Batch<'_>, unlocked: Option<Unlocked<'_>>) -> EngineResult<()> {
        let (functions, options) = (self.functions, self.options.write.get());
        let batch = batch.object.get();
        // SAFETY: database, options and batch are live; the library changes the batch's header
        // only, and it is borrowed alone.
        checked(functions, |error| unsafe {
            match (&self.handle, &unlocked) {
                (Handle::Transactional { locks, .. }, None) => {
                    (functions.transactiondb_write)(locks.as_ptr(), options, batch, error);
                }
                _ => (functions.write)(self.base(), options, batch, error),
            }
        })
    }

    /// Begins a transaction, with the memory of one that has ended.
    ///
    /// # Errors
    /// The database was opened without locks.
    pub fn begin<'a>(&'a self, ended: Option<Transaction<'a>>) -> EngineResult<Transaction<'a>> {
        let Handle::Transactional { locks, first, .. } = &self.handle else {
            return Err(EngineError::fatal("the database was opened without transactions"));
        };
        first.begin();
        let old = ended.as_ref().map_or(ptr::null_mut(), |ended| ended.object.get());
        // SAFETY: database and options are live; `old` is null or a transaction that was
        // committed or rolled back, which the library begins anew and gives back.
        let object = unsafe {
            (self.functions.transaction_begin)(
                locks.as_ptr(),
                self.options.write.get(),
                self.options.transaction.get(),
                old,
            )
        };
        match ended {
            Some(ended) => Ok(ended),
            None => {
                // SAFETY: made for us by the call above.
                let object = unsafe { Owned::new(object, self.functions.transaction_destroy) }?;
                Ok(Transaction { database: self, object })
            }
        }
    }
}

/// Whether a transaction was ever begun.
#[derive(Default)]
pub(super) struct FirstTransaction {
    begun: AtomicBool,
    /// Shared by batches that are written without locks.
    batches: RwLock<()>,
}

impl FirstTransaction {
    fn not_yet(&self) -> Option<Unlocked<'_>> {
        if self.begun.load(Ordering::Acquire) {
            return None;
        }
        let shared = self.batches.read().unwrap_or_else(PoisonError::into_inner);
        // One may have been begun in between.
        let not_yet = !self.begun.load(Ordering::Acquire);
        not_yet.then_some(Unlocked { _until_begun: Some(shared) })
    }

    /// A transaction begins: the first one waits for the batches that are written without locks.
    fn begin(&self) {
        if !self.begun.load(Ordering::Acquire) {
            let _alone = self.batches.write().unwrap_or_else(PoisonError::into_inner);
            self.begun.store(true, Ordering::Release);
        }
    }
}

/// The right to write a batch without row locks. While one is held no first transaction begins.
pub struct Unlocked<'a> {
    _until_begun: Option<RwLockReadGuard<'a, ()>>,
}

/// Changes that are applied together.
pub struct Batch<'a> {
    database: &'a Database,
    object: Owned<raw::Batch>,
}

impl Batch<'_> {
    /// Empties it.
    pub fn clear(&mut self) {
        // SAFETY: the batch is live and borrowed alone.
        unsafe { (self.database.functions.writebatch_clear)(self.object.get()) }
    }

    /// Adds a change.
    ///
    /// # Errors
    /// There is no such space.
    pub fn change(&mut self, op: BatchOp<'_>) -> EngineResult<()> {
        let functions = self.database.functions;
        let family = self.database.family(op.row().0)?;
        let batch = self.object.get();
        // SAFETY: batch and family are live; key and value are copied.
        unsafe {
            match op {
                BatchOp::Put(_, key, value) => {
                    let ((key, size), (value, value_size)) = (parts(key), parts(value));
                    (functions.writebatch_put_cf)(batch, family, key, size, value, value_size);
                }
                BatchOp::Delete(_, key) => {
                    let (key, size) = parts(key);
                    (functions.writebatch_delete_cf)(batch, family, key, size);
                }
                BatchOp::SingleDelete(_, key) => {
                    let (key, size) = parts(key);
                    (functions.writebatch_singledelete_cf)(batch, family, key, size);
                }
            }
        }
        Ok(())
    }
}

/// Bytes as the library takes them.
fn parts(bytes: &[u8]) -> (*const c_char, usize) {
    (bytes.as_ptr().cast(), bytes.len())
}

/// A transaction with row locks. Rolled back by the library when it is dropped unfinished.
pub struct Transaction<'a> {
    database: &'a Database,
    object: Owned<raw::Transaction>,
}

impl Transaction<'_> {
    /// Locks a row and reads it, the transaction's own writes included.
    ///
    /// # Errors
    /// The library's; retryable when the lock was not had in time.
    pub fn get_for_update(
        &mut self,
        space: SpaceId,
        view: &ReadView,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> EngineResult<bool> {
        let family = self.database.family(space)?;
        let functions = self.database.functions;
        // SAFETY: all objects are live; the key is read during the call.
        let pinned = checked(functions, |error| unsafe {
            (functions.transaction_get_pinned_for_update_cf)(
                self.object.get(),
                view.point.get(),
                family,
                key.as_ptr().cast(),
                key.len(),
                1,
                error,
            )
        })?;
        Ok(self.database.copy_pinned(pinned, value))
    }

    /// Locks and changes a row. The C interface has single delete for the transaction's batch and
    /// not for the transaction, so that it takes no lock: another row's lock has to cover it.
    ///
    /// # Errors
    /// As [`Transaction::get_for_update`].
    pub fn change(&mut self, op: BatchOp<'_>) -> EngineResult<()> {
        let functions = self.database.functions;
        let (space, key) = op.row();
        let family = self.database.family(space)?;
        let (own, (key, size)) = (self.object.get(), parts(key));
        // SAFETY: all objects are live; key and value are copied. What is freed is the memory that
        // the library made to hold the pointer to the transaction's batch.
        checked(functions, |error| unsafe {
            match op {
                BatchOp::Put(_, _, value) => {
                    let (value, value_size) = parts(value);
                    let put = functions.transaction_put_cf;
                    put(own, family, key, size, value, value_size, error);
                }
                BatchOp::Delete(..) => {
                    (functions.transaction_delete_cf)(own, family, key, size, error);
                }
                BatchOp::SingleDelete(..) => {
                    let batch = (functions.transaction_get_writebatch_wi)(own);
                    if batch.is_null() {
                        return Err(EngineError::fatal("a transaction of RocksDB has no batch"));
                    }
                    (functions.writebatch_wi_singledelete_cf)(batch, family, key, size);
                    (functions.free)(batch);
                }
            }
            Ok(())
        })?
    }

    /// Applies it and frees its locks.
    ///
    /// # Errors
    /// The library's; the transaction is still open then.
    pub fn commit(&mut self) -> EngineResult<()> {
        // SAFETY: the transaction is live.
        checked(self.database.functions, |error| unsafe {
            (self.database.functions.transaction_commit)(self.object.get(), error);
        })
    }

    /// Drops its changes and frees its locks.
    ///
    /// # Errors
    /// The library's.
    pub fn rollback(&mut self) -> EngineResult<()> {
        // SAFETY: the transaction is live.
        checked(self.database.functions, |error| unsafe {
            (self.database.functions.transaction_rollback)(self.object.get(), error);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_transaction_waits_for_batches_without_locks() {
        let first = FirstTransaction::default();
        let (one, two) = (first.not_yet(), first.not_yet());
        assert!(one.is_some() && two.is_some());
        drop(one);
        assert!(first.batches.try_write().is_err(), "a batch is still being written");
        drop(two);
        first.begin();
        assert!(first.not_yet().is_none());
        first.begin();
    }
}
