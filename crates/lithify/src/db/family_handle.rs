//! The public handle on a column family.
//!
//! Owns nothing: each call is one of the database's parts, for one family.

use crate::base::{ColumnFamilyId, Slice, ValueKind};
use crate::compaction::SuppliedDictionaries;
use crate::db::explain::Explanation;
use crate::db::inner::DbInner;
use crate::db::reading::cursor::{Cursor, ScanRange};
use crate::db::reading::iter::{Iter, Keys, Values};
use crate::db::reading::read::OwnWrites;
use crate::db::reading::snapshot::{Moment, Snapshot};
use crate::db::tree::family::Family;
use crate::operator::MergeOperator;
use crate::options::CfOptions;
use crate::retention::CompactionFilter;
use crate::stats::FamilyStatistics;
use crate::{Error, Result};
use std::fmt;
use std::sync::Arc;

/// A handle on a column family: an ordered map of its own, with its own options, that shares
/// log, snapshots, cache and memory budget with the others of its database. Cheap to clone, may
/// be used from any thread. After the family is dropped or the database closed every call gives
/// an error of kind [`crate::ErrorKind::Closed`].
#[derive(Clone)]
pub struct ColumnFamily {
    pub(crate) inner: Arc<DbInner>,
    pub(crate) family: Arc<Family>,
}

impl fmt::Debug for ColumnFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("ColumnFamily");
        fields.field("name", &self.name()).field("id", &self.id()).finish_non_exhaustive()
    }
}

/// Handles are equal that are of the same family of the same open database.
impl PartialEq for ColumnFamily {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.family, &other.family)
    }
}

impl Eq for ColumnFamily {}

impl ColumnFamily {
    /// The name.
    pub fn name(&self) -> &str {
        &self.family.name
    }

    /// The id, never reused within the database.
    pub fn id(&self) -> ColumnFamilyId {
        self.family.id
    }

    /// The options in force.
    pub fn options(&self) -> CfOptions {
        (*self.family.options()).clone()
    }

    /// What compression its levels have, why, and what else it would cost.
    ///
    /// ```
    /// # let directory = std::env::temp_dir().join(format!("lithify-explain-{}", std::process::id()));
    /// use lithify::{CfOptions, Db, Objective, Options};
    /// let db = Db::open(&directory, Options::default())?;
    /// let options = CfOptions { compression: Objective::Space.into(), ..CfOptions::default() };
    /// let family = db.column_family("rocks", options)?;
    /// family.put(b"basalt", b"igneous")?;
    /// family.flush()?;
    /// println!("{}", family.explain());
    /// # drop((family, db));
    /// # std::fs::remove_dir_all(&directory)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn explain(&self) -> Explanation {
        self.inner.explain(&self.family)
    }

    /// What the family holds, and what was done with it since the database was opened.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = lithify::Db::open(directory.path(), lithify::Options::default())?;
    /// use lithify::stats::Counter;
    /// let rocks = db.column_family("rocks", lithify::CfOptions::default())?;
    /// rocks.put(b"basalt", b"igneous")?;
    /// rocks.flush()?;
    /// let stats = rocks.stats();
    /// assert_eq!((stats.tables, stats.figures.counter(Counter::Puts)), (1, 1));
    /// # Ok::<(), lithify::Error>(())
    /// ```
    pub fn stats(&self) -> FamilyStatistics {
        self.inner.family_statistics(&self.family)
    }

    /// Supplies compression dictionaries by their content: tables of the family that are written
    /// from now on, of 1 MiB and more in codecs `lz4` or `zstd`, are compressed with the first one.
    /// An empty list takes them back. A table holds a copy of what it uses, so tables stay readable
    /// without them. They are not kept with the options: supply them after each opening.
    ///
    /// The content is best made by a trainer (`zstd --train`) from rows of the family, 16 to 64 KiB.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidArgument`] if a content has not 8 bytes to 1 MiB.
    pub fn supply_dictionaries(&self, contents: &[&[u8]]) -> Result<()> {
        self.family.set_dictionaries(SuppliedDictionaries::new(contents, None)?);
        Ok(())
    }

    /// Gives the code of the family's merge operator, where it was not opened with it: by
    /// [`crate::Db::existing_column_family`], for one.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidArgument`] if the family has none, or one of another name.
    pub fn supply_merge_operator(&self, operator: MergeOperator) -> Result<()> {
        self.family.check_merges()?;
        self.family.rows.set_operator(operator.over(&self.family.rows.operator())?);
        Ok(())
    }

    /// Has compactions of the family ask a filter what becomes of rows, from the next one on. It takes the
    /// place of the one before; `None` takes it back. It is not kept with the options: supply it after
    /// each opening. [`ColumnFamily::compact_range`] brings it to all rows.
    pub fn supply_compaction_filter(&self, filter: impl Into<Option<CompactionFilter>>) {
        self.family.set_filter(filter.into());
    }

    /// Has the family follow a rule of another engine, until its options are changed or it is opened
    /// again: for harnesses.
    #[cfg(feature = "internals")]
    #[doc(hidden)]
    pub fn follow(&self, rule: crate::compaction::Rule) {
        let block_size_bytes = match self.family.options().block_size_bytes {
            0 => 16 << 10,
            size => size,
        };
        let formats = crate::compaction::OfOthers::new(rule, block_size_bytes);
        self.family.set_formats(Arc::new(formats));
        self.inner.watch_families();
    }

    /// Supplies dictionaries of which each table uses one or none by chance, however small it is:
    /// for harnesses.
    ///
    /// # Errors
    /// As [`ColumnFamily::supply_dictionaries`].
    #[cfg(feature = "internals")]
    #[doc(hidden)]
    pub fn vary_dictionaries(&self, contents: &[&[u8]], seed: u64) -> Result<()> {
        self.family.set_dictionaries(SuppliedDictionaries::new(contents, Some(seed))?);
        Ok(())
    }

    pub(crate) fn check_belongs_to(&self, db: &crate::Db) -> Result<()> {
        if !Arc::ptr_eq(&self.inner, &db.inner) {
            return Err(Error::invalid(format!(
                "the column family {:?} belongs to another database",
                self.family.name
            )));
        }
        Ok(())
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    /// A key over 65,535 bytes or a value over 64 MiB, with a time to live 4 bytes less
    /// ([`crate::ErrorKind::LimitExceeded`]); a row lock not granted in time; a closed database or dropped
    /// family; what the log refuses.
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.inner.write_one(&self.family, ValueKind::Put, key.as_ref(), value.as_ref())
    }

    /// Adds an operand to a key, without reading it: the family's [`crate::MergeOperator`] makes a
    /// value of all operands and what was put before them, when it is read, flushed or compacted.
    ///
    /// # Errors
    /// `InvalidArgument` if the family has no merge operator, or an operand is not as long as
    /// [`crate::MergeOperator::add`] needs it; as [`ColumnFamily::put`].
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.family.check_operand(operand.as_ref())?;
        self.inner.write_one(&self.family, ValueKind::Merge, key.as_ref(), operand.as_ref())
    }

    /// Removes a key; no error if it is not there.
    ///
    /// # Errors
    /// As [`ColumnFamily::put`].
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.inner.write_one(&self.family, ValueKind::Delete, key.as_ref(), &[])
    }

    /// Removes a key that was put **exactly once** since it was last single-deleted, and that is
    /// never removed by [`ColumnFamily::delete`]. The tombstone then vanishes together with that
    /// put at the first merge that sees both, instead of travelling to the bottom.
    ///
    /// In a family with a merge operator or a time to live it is a plain delete, for there a key may have
    /// more entries than were put.
    ///
    /// If the key was put twice, an older value may show again; merges that find a second put
    /// under a settled single delete count it (`single_delete_misuses` in the statistics).
    ///
    /// # Errors
    /// As [`ColumnFamily::put`].
    pub fn single_delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.inner.write_one(&self.family, self.family.single_delete_kind(), key.as_ref(), &[])
    }

    /// Removes all keys from `start` on, up to but without `end`, by one entry. Takes no row
    /// locks.
    ///
    /// # Errors
    /// `InvalidArgument` if `end` lies before `start`; else as [`ColumnFamily::put`].
    pub fn delete_range(&self, start: impl AsRef<[u8]>, end: impl AsRef<[u8]>) -> Result<()> {
        let (start, end) = (start.as_ref(), end.as_ref());
        self.inner.write_one(&self.family, ValueKind::RangeDelete, start, end)
    }

    /// The value of a key. The slice points into a cached block where it can, and keeps that
    /// block in memory while it lives.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corruption`] with file and offset; [`crate::ErrorKind::Io`]; closed or dropped.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        self.inner.get(&self.family, key.as_ref(), None)
    }

    /// The value that a key had at a snapshot.
    ///
    /// # Errors
    /// As [`ColumnFamily::get`]; `InvalidArgument` for a snapshot of another database.
    pub fn get_at(&self, key: impl AsRef<[u8]>, snapshot: &Snapshot) -> Result<Option<Slice>> {
        self.inner.get(&self.family, key.as_ref(), Some(self.moment_of(snapshot)?))
    }

    /// The values of several keys, in their order, all at one point in time. Faster than a get
    /// of each: every block is fetched once, and those to be read are asked for together.
    ///
    /// # Errors
    /// As [`ColumnFamily::get`]; the first error ends the call.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Slice>>> {
        self.inner.multi_get(&self.family, keys.iter().map(AsRef::as_ref), None)
    }

    /// The values that several keys had at a snapshot, in their order.
    ///
    /// # Errors
    /// As [`ColumnFamily::multi_get`]; `InvalidArgument` for a snapshot of another database.
    pub fn multi_get_at<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        snapshot: &Snapshot,
    ) -> Result<Vec<Option<Slice>>> {
        let at = Some(self.moment_of(snapshot)?);
        self.inner.multi_get(&self.family, keys.iter().map(AsRef::as_ref), at)
    }

    /// Whether a key has a value. It costs what a get costs.
    ///
    /// # Errors
    /// As [`ColumnFamily::get`].
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get(key)?.is_some())
    }

    /// A cursor over the rows of a range of keys, as of now. It lends keys and values and
    /// allocates nothing per row; [`Cursor::iter`] is there for convenience. An error does not end it:
    /// place it again, for example behind the row that cannot be read.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = lithify::Db::open(directory.path(), lithify::Options::default())?;
    /// let rocks = db.column_family("rocks", lithify::CfOptions::default())?;
    /// rocks.put(b"basalt", b"igneous")?;
    /// rocks.put(b"chalk", b"sedimentary")?;
    /// let mut rows = rocks.cursor(b"b"..)?;
    /// while rows.next()? {
    ///     println!("{:?} is {:?}", rows.key(), rows.value());
    /// }
    /// # Ok::<(), lithify::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`ColumnFamily::get`].
    pub fn cursor(&self, range: impl Into<ScanRange>) -> Result<Cursor> {
        self.inner.open_cursor(&self.family, range.into(), None)
    }

    /// A cursor over a range of keys at a snapshot.
    ///
    /// # Errors
    /// As [`ColumnFamily::get_at`].
    pub fn cursor_at(&self, range: impl Into<ScanRange>, snapshot: &Snapshot) -> Result<Cursor> {
        self.cursor_under(range.into(), snapshot, None)
    }

    /// The same, with what a transaction adds to it.
    pub(crate) fn cursor_under(
        &self,
        range: ScanRange,
        snapshot: &Snapshot,
        own: Option<&OwnWrites>,
    ) -> Result<Cursor> {
        let at = self.moment_of(snapshot)?;
        self.inner.open_cursor_under(&self.family, range, Some(at), own)
    }

    /// A cursor over the keys that begin with `prefix`. Where the prefix is at least as long as
    /// the family's `prefix_length_bytes`, tables whose filter excludes it are not read.
    ///
    /// # Errors
    /// As [`ColumnFamily::get`].
    pub fn prefix_cursor(&self, prefix: impl AsRef<[u8]>) -> Result<Cursor> {
        self.inner.open_prefix_cursor(&self.family, prefix.as_ref(), None)
    }

    /// [`ColumnFamily::prefix_cursor`] at a snapshot.
    ///
    /// # Errors
    /// As [`ColumnFamily::get_at`].
    pub fn prefix_cursor_at(
        &self,
        prefix: impl AsRef<[u8]>,
        snapshot: &Snapshot,
    ) -> Result<Cursor> {
        let at = self.moment_of(snapshot)?;
        self.inner.open_prefix_cursor(&self.family, prefix.as_ref(), Some(at))
    }

    /// All rows in the order of their keys, as of now, as an iterator that owns what it gives:
    /// from both ends, and for as long as anybody likes. It ends with its first error, though there may be
    /// rows behind: [`Iter`] says how to read on. [`ColumnFamily::cursor`] copies nothing, and can be placed
    /// again after an error.
    ///
    /// It shows the rows of when it was made, and holds files from its first step on. If the database is
    /// closed or the family dropped before that step, its first item is an error of kind
    /// [`crate::ErrorKind::Closed`].
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = lithify::Db::open(directory.path(), lithify::Options::default())?;
    /// let rocks = db.column_family("rocks", lithify::CfOptions::default())?;
    /// rocks.put("basalt", "igneous")?;
    /// rocks.put("chalk", "sedimentary")?;
    /// for row in rocks.iter().rev() {
    ///     let (key, value) = row?;
    ///     println!("{key:?} is {value:?}");
    /// }
    /// # Ok::<(), lithify::Error>(())
    /// ```
    pub fn iter(&self) -> Iter {
        self.range(..)
    }

    /// The rows of a range of keys, as [`ColumnFamily::iter`] gives them.
    pub fn range(&self, range: impl Into<ScanRange>) -> Iter {
        Iter::new(Some(self.clone()), range.into(), self.inner.new_snapshot())
    }

    /// The rows of a range of keys at a snapshot, which the iterator may outlive.
    pub fn range_at(&self, range: impl Into<ScanRange>, snapshot: &Snapshot) -> Iter {
        Iter::new(Some(self.clone()), range.into(), snapshot.clone())
    }

    /// The rows whose keys begin with `prefix`, at a snapshot.
    pub fn prefix_at(&self, prefix: impl AsRef<[u8]>, snapshot: &Snapshot) -> Iter {
        self.range_at(ScanRange::prefix(prefix), snapshot)
    }

    /// The rows whose keys begin with `prefix`, as [`ColumnFamily::iter`] gives them.
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

    fn moment_of<'a>(&self, snapshot: &'a Snapshot) -> Result<&'a Moment> {
        if !Arc::ptr_eq(&snapshot.inner, &self.inner) {
            return Err(Error::invalid("the snapshot belongs to another database"));
        }
        Ok(&snapshot.moment)
    }

    /// Writes the memtable of this family to a table and waits for it.
    ///
    /// # Errors
    /// What the disk refuses; closed or dropped.
    pub fn flush(&self) -> Result<()> {
        self.inner.flush_family(&self.family)
    }

    /// Compacts the tables that hold keys of a range, level by level down to the bottom, and
    /// waits for it. Memtables are flushed first. `..` is all of them.
    ///
    /// # Errors
    /// As [`ColumnFamily::flush`]; `InvalidArgument` for a range that ends before it starts.
    pub fn compact_range(&self, range: impl Into<ScanRange>) -> Result<()> {
        let range = range.into();
        self.inner.compact_range(&self.family, range.start(), range.end())
    }

    /// Merges the runs of level 0 into the base level and waits for it: afterwards a read meets no
    /// run but the one of each level, unless somebody writes meanwhile. Memtables are flushed first.
    /// Levels below are compacted only where their size asks for it, as always.
    ///
    /// # Errors
    /// As [`ColumnFamily::flush`].
    pub fn compact_level0(&self) -> Result<()> {
        self.inner.compact_level0(&self.family)
    }
}
