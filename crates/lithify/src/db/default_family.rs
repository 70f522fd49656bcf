//! The family that a database has without being asked for one.
//!
//! Owns nothing: each call here is one of [`ColumnFamily`] on the family named
//! [`DEFAULT_FAMILY`]. Opening and reading never make it; the first write does.

use super::{DEFAULT_FAMILY, Db};
use crate::base::Slice;
use crate::db::family_handle::ColumnFamily;
use crate::db::inner::DbInner;
use crate::db::reading::cursor::{Cursor, ScanRange};
use crate::db::reading::iter::{Iter, Keys, Values};
use crate::db::reading::snapshot::Snapshot;
use crate::options::CfOptions;
use crate::{Error, Result};
use std::sync::Arc;

/// Reads and writes of the default family. The family named `default` is it, whoever made it and with
/// whatever options; without one, reads find nothing, and the first write makes it with
/// [`CfOptions::default`].
///
/// ```
/// # let directory = tempfile::tempdir().unwrap();
/// let db = lithify::Db::open(directory.path(), lithify::Options::default())?;
/// assert_eq!(db.get("basalt")?, None);
/// db.put("basalt", "igneous")?;
/// for row in db.range("a"..="c") {
///     let (key, value) = row?;
///     assert!(key == "basalt" && value == "igneous");
/// }
/// # Ok::<(), lithify::Error>(())
/// ```
impl Db {
    /// The default family, made if it is not there.
    ///
    /// # Errors
    /// As [`Db::column_family`].
    pub fn default_family(&self) -> Result<ColumnFamily> {
        match self.default_family_if_there()? {
            Some(family) => Ok(family),
            None => self.column_family_or_create(DEFAULT_FAMILY, CfOptions::default()),
        }
    }

    fn default_family_if_there(&self) -> Result<Option<ColumnFamily>> {
        default_family_of(&self.inner)
    }

    /// Sets the value of a key. See [`ColumnFamily::put`].
    ///
    /// # Errors
    /// As [`ColumnFamily::put`] and [`Db::column_family`].
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.default_family()?.put(key, value)
    }

    /// Adds an operand to a key. See [`ColumnFamily::merge`]. The default family has a merge operator if it
    /// was opened with one, as a column family named `default`.
    ///
    /// # Errors
    /// As [`ColumnFamily::merge`]; `InvalidArgument` if the default family is not there.
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        match self.default_family_if_there()? {
            Some(family) => family.merge(key, operand),
            None => Err(Error::invalid(format!(
                "the column family {DEFAULT_FAMILY:?} is not there: open the family with \
                 CfOptions::merge_operator"
            ))),
        }
    }

    /// Sets a row to what `change` makes of it. See [`ColumnFamily::update`].
    ///
    /// # Errors
    /// As [`ColumnFamily::update`] and [`Db::column_family`].
    pub fn update<V: AsRef<[u8]>>(
        &self,
        key: impl AsRef<[u8]>,
        change: impl FnMut(Option<Slice>) -> Option<V>,
    ) -> Result<Option<V>> {
        self.default_family()?.update(key, change)
    }

    /// Sets the value of a key that has none. See [`ColumnFamily::put_if_absent`].
    ///
    /// # Errors
    /// As [`ColumnFamily::put_if_absent`] and [`Db::column_family`].
    pub fn put_if_absent(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        self.default_family()?.put_if_absent(key, value)
    }

    /// Sets the value of a key if it is `expected` now. See [`ColumnFamily::compare_and_put`].
    ///
    /// # Errors
    /// As [`ColumnFamily::compare_and_put`].
    pub fn compare_and_put(
        &self,
        key: impl AsRef<[u8]>,
        expected: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<bool> {
        self.inner.lifecycle.check_writable()?;
        let family = self.default_family_if_there()?;
        family.map_or(Ok(false), |family| family.compare_and_put(key, expected, value))
    }

    /// Removes a key if its value is `expected` now. See [`ColumnFamily::compare_and_delete`].
    ///
    /// # Errors
    /// As [`ColumnFamily::compare_and_delete`].
    pub fn compare_and_delete(
        &self,
        key: impl AsRef<[u8]>,
        expected: impl AsRef<[u8]>,
    ) -> Result<bool> {
        self.inner.lifecycle.check_writable()?;
        let family = self.default_family_if_there()?;
        family.map_or(Ok(false), |family| family.compare_and_delete(key, expected))
    }

    /// Removes a key; no error if it is not there.
    ///
    /// # Errors
    /// As [`ColumnFamily::delete`].
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.inner.lifecycle.check_writable()?;
        self.default_family_if_there()?.map_or(Ok(()), |family| family.delete(key))
    }

    /// Removes all keys from `start` on, up to but without `end`. See [`ColumnFamily::delete_range`].
    ///
    /// # Errors
    /// As [`ColumnFamily::delete_range`].
    pub fn delete_range(&self, start: impl AsRef<[u8]>, end: impl AsRef<[u8]>) -> Result<()> {
        self.inner.lifecycle.check_writable()?;
        self.default_family_if_there()?.map_or(Ok(()), |family| family.delete_range(start, end))
    }

    /// Compacts the keys of a range, `..` all. See [`ColumnFamily::compact_range`].
    ///
    /// # Errors
    /// As [`ColumnFamily::compact_range`].
    pub fn compact_range(&self, range: impl Into<ScanRange>) -> Result<()> {
        self.inner.lifecycle.check_writable()?;
        self.default_family_if_there()?.map_or(Ok(()), |family| family.compact_range(range))
    }

    /// The value of a key. See [`ColumnFamily::get`].
    ///
    /// # Errors
    /// As [`ColumnFamily::get`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        self.default_family_if_there()?.map_or(Ok(None), |family| family.get(key))
    }

    /// Whether a key has a value.
    ///
    /// # Errors
    /// As [`ColumnFamily::contains`].
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.default_family_if_there()?.map_or(Ok(false), |family| family.contains(key))
    }

    /// The values of several keys, in their order. See [`ColumnFamily::multi_get`].
    ///
    /// # Errors
    /// As [`ColumnFamily::multi_get`].
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Slice>>> {
        match self.default_family_if_there()? {
            Some(family) => family.multi_get(keys),
            None => Ok(vec![None; keys.len()]),
        }
    }

    /// A cursor over the rows of a range of keys, which copies nothing. See [`ColumnFamily::cursor`].
    ///
    /// # Errors
    /// As [`ColumnFamily::cursor`].
    pub fn cursor(&self, range: impl Into<ScanRange>) -> Result<Cursor> {
        match self.default_family_if_there()? {
            Some(family) => family.cursor(range),
            None => Ok(self.inner.empty_cursor()),
        }
    }

    /// All rows in the order of their keys. See [`ColumnFamily::iter`].
    pub fn iter(&self) -> Iter {
        self.range(..)
    }

    /// The rows of a range of keys.
    pub fn range(&self, range: impl Into<ScanRange>) -> Iter {
        default_range(self.snapshot(), range.into())
    }

    /// The rows whose keys begin with `prefix`.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Iter {
        self.range(ScanRange::prefix(prefix))
    }

    /// The keys of all rows.
    pub fn keys(&self) -> Keys {
        self.iter().keys()
    }

    /// The values of all rows, in the order of their keys.
    pub fn values(&self) -> Values {
        self.iter().values()
    }
}

/// Reads of the default family at the snapshot. Where there is none now, they find nothing. Those of
/// other families are [`ColumnFamily::get_at`], [`ColumnFamily::range_at`] and their likes.
///
/// ```
/// # let directory = tempfile::tempdir().unwrap();
/// let db = lithify::Db::open(directory.path(), lithify::Options::default())?;
/// db.put("basalt", "igneous")?;
/// let before = db.snapshot();
/// db.delete("basalt")?;
/// assert_eq!(before.get("basalt")?.unwrap(), "igneous");
/// assert_eq!((before.iter().count(), db.iter().count()), (1, 0));
/// # Ok::<(), lithify::Error>(())
/// ```
impl Snapshot {
    /// The value of a key. See [`ColumnFamily::get_at`].
    ///
    /// # Errors
    /// As [`ColumnFamily::get_at`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        default_family_of(&self.inner)?.map_or(Ok(None), |family| family.get_at(key, self))
    }

    /// Whether a key has a value.
    ///
    /// # Errors
    /// As [`ColumnFamily::get_at`].
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get(key)?.is_some())
    }

    /// The values of several keys, in their order. See [`ColumnFamily::multi_get_at`].
    ///
    /// # Errors
    /// As [`ColumnFamily::multi_get_at`].
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Slice>>> {
        match default_family_of(&self.inner)? {
            Some(family) => family.multi_get_at(keys, self),
            None => Ok(vec![None; keys.len()]),
        }
    }

    /// A cursor over the rows of a range of keys, which copies nothing. See
    /// [`ColumnFamily::cursor_at`].
    ///
    /// # Errors
    /// As [`ColumnFamily::cursor_at`].
    pub fn cursor(&self, range: impl Into<ScanRange>) -> Result<Cursor> {
        match default_family_of(&self.inner)? {
            Some(family) => family.cursor_at(range, self),
            None => Ok(self.inner.empty_cursor()),
        }
    }

    /// All rows in the order of their keys. The iterator may outlive the snapshot.
    pub fn iter(&self) -> Iter {
        self.range(..)
    }

    /// The rows of a range of keys.
    pub fn range(&self, range: impl Into<ScanRange>) -> Iter {
        default_range(self.clone(), range.into())
    }

    /// The rows whose keys begin with `prefix`.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Iter {
        self.range(ScanRange::prefix(prefix))
    }

    /// The keys of all rows.
    pub fn keys(&self) -> Keys {
        self.iter().keys()
    }

    /// The values of all rows, in the order of their keys.
    pub fn values(&self) -> Values {
        self.iter().values()
    }
}

fn default_family_of(inner: &Arc<DbInner>) -> Result<Option<ColumnFamily>> {
    inner.lifecycle.check_open()?;
    let family = inner.tree.default_family();
    Ok(family.map(|family| ColumnFamily { inner: Arc::clone(inner), family }))
}

fn default_range(snapshot: Snapshot, range: ScanRange) -> Iter {
    match default_family_of(&snapshot.inner) {
        Ok(family) => Iter::new(family, range, snapshot),
        Err(error) => Iter::failed(error, snapshot),
    }
}
