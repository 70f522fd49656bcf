//! Writes that depend on what is there: each is a transaction on one row.
//!
//! Owns nothing. The row is locked from the read to the commit, so nobody changes it in between. Range
//! deletes and ingests take no row locks. So the commit is refused if there was one in the family, and
//! all is done again.

use crate::base::Slice;
use crate::db::family_handle::ColumnFamily;
use crate::db::rows::transaction::Transaction;
use crate::{ErrorKind, Result};
use std::sync::Arc;

/// So often a change is tried before its conflict is the caller's.
const ATTEMPTS_MAX: usize = 100;

/// Writes that depend on what is there. The row is locked meanwhile: no other write comes between,
/// in a transaction or not. Where a range of the family is deleted or ingested meanwhile, the row is read
/// again, up to 100 times: then the error is [`crate::ErrorKind::Conflict`]. From the first of them on,
/// plain writes take row locks too.
impl ColumnFamily {
    /// Sets a row to what `change` makes of it, or removes it where that gives `None`; returns what
    /// `change` gave. Others that write the row wait meanwhile, so `change` is better short. It is called
    /// again where ranges were written meanwhile.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = lithify::Db::open(directory.path(), lithify::Options::default())?;
    /// let counts = db.column_family("counts", lithify::CfOptions::default())?;
    /// let add_one = |old: Option<lithify::Slice>| {
    ///     let old = old.map_or(0, |old| u64::from_be_bytes(old[..].try_into().unwrap_or_default()));
    ///     Some((old + 1).to_be_bytes())
    /// };
    /// counts.update("visits", add_one)?;
    /// assert_eq!(counts.update("visits", add_one)?, Some(2_u64.to_be_bytes()));
    /// # Ok::<(), lithify::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`ColumnFamily::get`] and [`ColumnFamily::put`]; [`crate::ErrorKind::LockTimeout`] if
    /// somebody holds the row for longer than the option `row_lock_timeout_ms`. The row is as it was.
    pub fn update<V: AsRef<[u8]>>(
        &self,
        key: impl AsRef<[u8]>,
        mut change: impl FnMut(Option<Slice>) -> Option<V>,
    ) -> Result<Option<V>> {
        let key = key.as_ref();
        self.change_row(|mut transaction| {
            let old = transaction.get_exclusively(self, key)?;
            let was_there = old.is_some();
            let new = change(old);
            match &new {
                Some(value) => transaction.put(self, key, value)?,
                None if was_there => transaction.delete(self, key)?,
                None => {}
            }
            transaction.commit()?;
            Ok(new)
        })
    }

    /// Sets the value of a key that has none; false if it has one, which stays.
    ///
    /// # Errors
    /// As [`ColumnFamily::update`].
    pub fn put_if_absent(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        let (key, value) = (key.as_ref(), value.as_ref());
        self.change_row(|mut transaction| {
            let old = transaction.get_exclusively(self, key)?;
            let mut is_absent = old.is_none();
            if planted!(EmptyTakenForAbsent) {
                is_absent = old.is_none_or(|old| old.is_empty());
            }
            if is_absent {
                transaction.put(self, key, value)?;
                transaction.commit()?;
            }
            Ok(is_absent)
        })
    }

    /// Sets the value of a key if it is `expected` now; false if it is not, and the value stays.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = lithify::Db::open(directory.path(), lithify::Options::default())?;
    /// let leases = db.column_family("leases", lithify::CfOptions::default())?;
    /// assert!(leases.put_if_absent("printer", "anne")?);
    /// assert!(!leases.compare_and_put("printer", "bob", "carl")?);
    /// assert!(leases.compare_and_put("printer", "anne", "carl")?);
    /// assert!(leases.compare_and_delete("printer", "carl")?);
    /// # Ok::<(), lithify::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`ColumnFamily::update`].
    pub fn compare_and_put(
        &self,
        key: impl AsRef<[u8]>,
        expected: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<bool> {
        let value = value.as_ref();
        self.if_it_is(key.as_ref(), expected.as_ref(), |transaction, key| {
            transaction.put(self, key, value)
        })
    }

    /// Removes a key if its value is `expected` now; false if it is not, and the value stays.
    ///
    /// # Errors
    /// As [`ColumnFamily::update`].
    pub fn compare_and_delete(
        &self,
        key: impl AsRef<[u8]>,
        expected: impl AsRef<[u8]>,
    ) -> Result<bool> {
        self.if_it_is(key.as_ref(), expected.as_ref(), |transaction, key| {
            transaction.delete(self, key)
        })
    }

    fn if_it_is(
        &self,
        key: &[u8],
        expected: &[u8],
        write: impl Fn(&mut Transaction, &[u8]) -> Result<()>,
    ) -> Result<bool> {
        self.change_row(|mut transaction| {
            let old = transaction.get_exclusively(self, key)?;
            let mut is_expected = old.as_ref().is_some_and(|old| *old == expected);
            if planted!(AbsentEqualsEmpty) {
                is_expected = old.unwrap_or_default() == expected;
            }
            if is_expected {
                write(&mut transaction, key)?;
                transaction.commit()?;
            }
            Ok(is_expected)
        })
    }

    /// Does what `attempt` does in a transaction, until no range is written meanwhile.
    fn change_row<T>(&self, mut attempt: impl FnMut(Transaction) -> Result<T>) -> Result<T> {
        self.inner.begin_transactions();
        let mut attempts = 1;
        loop {
            match attempt(Transaction::new(Arc::clone(&self.inner))) {
                Err(error) if error.kind() == ErrorKind::Conflict && attempts < ATTEMPTS_MAX => {
                    attempts += 1;
                }
                done => return done,
            }
        }
    }
}
