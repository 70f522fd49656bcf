//! Writes that depend on what is there: each is a transaction on one row.
//!
//! Owns nothing. The row is locked from the read to the commit, so nobody changes it in between.

use crate::Result;
use crate::base::Slice;
use crate::db::family_handle::ColumnFamily;
use crate::db::rows::transaction::Transaction;
use std::sync::Arc;

/// Writes that depend on what is there. The row is locked meanwhile: no other write comes between,
/// in a transaction or not. From the first of them on, plain writes take row locks too.
impl ColumnFamily {
    /// Sets a row to what `change` makes of it, or removes it where that gives `None`; returns what
    /// `change` gave. Others that write the row wait meanwhile, so `change` is better short.
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
        change: impl FnOnce(Option<Slice>) -> Option<V>,
    ) -> Result<Option<V>> {
        let key = key.as_ref();
        let mut transaction = self.row_transaction();
        let old = transaction.get_for_update(self, key)?;
        let was_there = old.is_some();
        let new = change(old);
        match &new {
            Some(value) => transaction.put(self, key, value)?,
            None if was_there => transaction.delete(self, key)?,
            None => {}
        }
        transaction.commit()?;
        Ok(new)
    }

    /// Sets the value of a key that has none; false if it has one, which stays.
    ///
    /// # Errors
    /// As [`ColumnFamily::update`].
    pub fn put_if_absent(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        let key = key.as_ref();
        let mut transaction = self.row_transaction();
        let is_absent = transaction.get_for_update(self, key)?.is_none();
        if is_absent {
            transaction.put(self, key, value)?;
            transaction.commit()?;
        }
        Ok(is_absent)
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
        write: impl FnOnce(&mut Transaction, &[u8]) -> Result<()>,
    ) -> Result<bool> {
        let mut transaction = self.row_transaction();
        let is_expected = transaction.get_for_update(self, key)?.is_some_and(|old| old == expected);
        if is_expected {
            write(&mut transaction, key)?;
            transaction.commit()?;
        }
        Ok(is_expected)
    }

    fn row_transaction(&self) -> Transaction {
        self.inner.begin_transactions();
        Transaction::new(Arc::clone(&self.inner))
    }
}
