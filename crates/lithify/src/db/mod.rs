//! Floor 7: the database.
//!
//! Owns: opening and closing, column families, the write path (batches, group commit, log,
//! memtables), the read path, snapshots, row locks, transactions, and the bridge to background
//! work. Everything below is handed what it needs; nothing below knows of this room.
//!
//! [`DbInner`] is made of parts, a folder each: `lifecycle`, `committing`, `tree`, `jobs`, `rows` and
//! `reading`. A part has state of its own and says who may call it. `ingest`, `checkpoint`, `destroy`,
//! `activity`, `family_handle`, `default_family` and `statistics` use the parts and own nothing.
//! `resources` owns what several databases share.
//!
//! All handles may be used from any thread. Mutexes are taken in this order, and none is held while
//! waiting:
//!
//! 1. the writer
//! 2. the next log segment, then the files to recycle
//! 3. the manifest
//! 4. a family's view, or what runs in the background
//! 5. a family's compaction cursors
//!
//! The list of waits for row locks comes before a stripe of row locks; neither is held with one of
//! the above. All other mutexes are leaves: nothing is locked under them.

mod activity;
mod checkpoint;
mod committing;
mod default_family;
mod destroy;
mod explain;
mod explain_page;
mod family_handle;
#[cfg(test)]
mod format_tests;
mod ingest;
mod inner;
mod jobs;
mod lifecycle;
mod reading;
mod resources;
mod rows;
#[cfg(all(test, shuttle))]
mod shuttle;
mod statistics;
mod tree;

pub(crate) use activity::Activity;
pub use checkpoint::{Checkpoint, CheckpointOptions};
pub(crate) use checkpoint::{not_made, whole_length};
pub use committing::batch::Batch;
pub(crate) use committing::batch::{Entry as LoggedEntry, GroupHead};
pub use explain::{CandidateCost, Change, Expected, Explanation, LevelExplanation};
pub use family_handle::ColumnFamily;
pub use ingest::table_writer::{TableWriter, WrittenTable};
pub use ingest::tables::TableTransfer;
pub use ingest::{Ingest, Ingested};
pub(crate) use lifecycle::long_call::LongCall;
pub use reading::Approximation;
pub use reading::cursor::{Cursor, Rows, ScanRange};
pub use reading::iter::{Iter, Keys, Values};
pub use reading::snapshot::Snapshot;
pub use resources::Resources;
pub use rows::transaction::Transaction;
pub(crate) use tree::frozen::Frozen;
pub(crate) use tree::versions::tree_shape;

#[cfg(doc)]
use crate::ErrorKind;
use crate::fs::World;
use crate::options::{CfOptions, Options};
use crate::stats::StatisticsSnapshot;
use crate::wal::RecoveryReport;
use crate::{Error, Result};
use committing::batch::BatchData;
use inner::DbInner;
use lifecycle::open;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The name of the family that a database has without being asked for one.
pub const DEFAULT_FAMILY: &str = "default";

/// The levels of every column family; level 0 and six sorted ones.
pub(crate) const LEVEL_COUNT: usize = 7;

/// An open database. Clones are the same database: cheap, and usable from any thread. Dropping the
/// last one closes it; [`Db::close`] closes it at once, and also says how that went.
///
/// Keys and values are anything that is bytes. Reads and writes go to the family named `default`,
/// which the first write makes, or to a [`ColumnFamily`] that was asked for by name.
///
/// A database belongs to the process that opened it. In a child of a fork every call gives
/// [`ErrorKind::Closed`], and a drop touches nothing: the child opens it itself, once the parent has closed it
/// or for reading.
///
/// ```
/// # let directory = tempfile::tempdir().unwrap();
/// use lithify::{CfOptions, Db, Options};
/// let db = Db::open(directory.path(), Options::default())?;
/// db.put("basalt", "igneous")?;
/// assert_eq!(db.get("basalt")?.unwrap(), "igneous");
/// let rocks = db.column_family("rocks", CfOptions::default())?;
/// rocks.put("chalk", "sedimentary")?;
/// db.close()?;
/// # Ok::<(), lithify::Error>(())
/// ```
#[derive(Clone)]
pub struct Db {
    pub(crate) inner: Arc<DbInner>,
    closer: Arc<Closer>,
}

/// What all clones of a [`Db`] share: its end is that of the database.
struct Closer {
    inner: Arc<DbInner>,
    /// Set once the database has moved on to another state: handles of the old one stay readable.
    is_left: AtomicBool,
}

impl Drop for Closer {
    fn drop(&mut self) {
        if !self.inner.lifecycle.is_here() {
            // Its files, its locks and the memory of its threads are the parent's: nothing of it may end here.
            std::mem::forget(Arc::clone(&self.inner));
        } else if !self.is_left.load(Ordering::Acquire) {
            // Whoever wants to know calls `close`.
            let _ = self.inner.close();
        }
    }
}

impl fmt::Debug for Db {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Db");
        fields.field("path", &self.path()).field("families", &self.column_family_names());
        fields.finish_non_exhaustive()
    }
}

impl Db {
    pub(crate) fn of(inner: Arc<DbInner>) -> Db {
        let closer = Closer { inner: Arc::clone(&inner), is_left: AtomicBool::new(false) };
        Db { inner, closer: Arc::new(closer) }
    }

    /// Moves on to another state. Handles that were taken before stay as they are.
    pub(crate) fn move_to(&mut self, inner: Arc<DbInner>) {
        self.closer.is_left.store(true, Ordering::Release);
        *self = Db::of(inner);
    }

    /// Opens the database in a directory, or makes it there. A relative path is that of now: the working
    /// directory may change afterwards.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] for options out of range or in contradiction, and for a
    /// path that is a file; [`ErrorKind::Locked`] if another process has it open;
    /// [`ErrorKind::NotFound`] if there is none and `create_if_missing` is off;
    /// [`ErrorKind::Corruption`] with file and offset; [`ErrorKind::Unsupported`] for files of a
    /// version that this one cannot read; [`ErrorKind::Io`], [`ErrorKind::NoSpace`],
    /// [`ErrorKind::ReadOnly`].
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Db> {
        Db::open_in(path, options, World::system())
    }

    /// Opens a database in a world of the caller's: another file system, clock and threads. With
    /// 0 background threads nothing happens but in the caller's own calls.
    ///
    /// # Errors
    /// As [`Db::open`].
    pub fn open_in(path: impl AsRef<Path>, options: Options, world: World) -> Result<Db> {
        let path = world.files.absolute(path.as_ref())?;
        open::check_complete(&path, &world)?;
        open::open(&path, options, world, None).map(Db::of)
    }

    /// [`Db::open`] with threads and memory that other databases of the process use too.
    /// `background_threads` and `memory_budget_bytes` of the options are those of `resources`.
    ///
    /// # Errors
    /// As [`Db::open`].
    pub fn open_shared(
        path: impl AsRef<Path>,
        options: Options,
        resources: &Resources,
    ) -> Result<Db> {
        Db::open_shared_in(path, options, World::system(), resources)
    }

    /// [`Db::open_shared`] in a world of the caller's. The clock and the threads are those of the world
    /// of the first database with these resources.
    ///
    /// # Errors
    /// As [`Db::open`].
    pub fn open_shared_in(
        path: impl AsRef<Path>,
        options: Options,
        world: World,
        resources: &Resources,
    ) -> Result<Db> {
        let path = world.files.absolute(path.as_ref())?;
        open::check_complete(&path, &world)?;
        let options = resources.applied_to(options);
        open::open(&path, options, world, Some(resources)).map(Db::of)
    }

    /// Opens a database in a directory that is marked as incomplete, for who makes it.
    pub(crate) fn open_unfinished(path: &Path, options: Options, world: World) -> Result<Db> {
        open::open(path, options, world, None).map(Db::of)
    }

    /// Closes the database: ends background work where it stands, makes the end of the log
    /// known, gives up the lock. Without a log (durability none) everything is flushed first.
    /// Clones and handles that are left give errors of kind [`ErrorKind::Closed`].
    ///
    /// A call that is under way in another thread is carried out or refused. A checkpoint, a backup and
    /// a verification end with [`ErrorKind::Closed`] before their next mebibyte, and leave nothing
    /// behind. A backup that checks a table ends behind that table.
    ///
    /// A call beside another one, on a clone, waits for the end of that one and gives what it gives. An
    /// event listener that calls on the thread that closes gets [`ErrorKind::Closed`].
    ///
    /// # Errors
    /// What the last writes met; the failure that stopped writing, if there was one.
    pub fn close(self) -> Result<()> {
        self.inner.close()
    }

    /// The column family of that name; made with these options if there is none. If there is one, it takes
    /// on all of these options for what is written from now on, the defaults among them. Only a merge
    /// operator and a time to live are kept where none is given. What changes is told as
    /// [`crate::Event::OptionsChanged`]. [`Db::column_family_or_create`] changes nothing.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] for options out of range or in contradiction, or an empty
    /// name; [`ErrorKind::LimitExceeded`] for a name over 255 bytes; a closed database; what the
    /// manifest meets.
    pub fn column_family(&self, name: &str, options: CfOptions) -> Result<ColumnFamily> {
        check_family(name, &options)?;
        let family = self.inner.open_family(name, options)?;
        Ok(ColumnFamily { inner: Arc::clone(&self.inner), family })
    }

    /// The column family of that name, with the options it has; made with these if there is none. That is
    /// one step: whoever makes the family meanwhile keeps the options that it is given.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # use lithify::{CfOptions, Db, Options};
    /// let db = Db::open(directory.path(), Options::default())?;
    /// let options = CfOptions { fanout: 5, ..CfOptions::default() };
    /// let rocks = db.column_family_or_create("rocks", options)?;
    /// let again = db.column_family_or_create("rocks", CfOptions::default())?;
    /// assert!(again == rocks && again.options().fanout == 5);
    /// # Ok::<(), lithify::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::column_family`].
    pub fn column_family_or_create(&self, name: &str, options: CfOptions) -> Result<ColumnFamily> {
        self.inner.lifecycle.check_open()?;
        check_family(name, &options)?;
        let family = self.inner.family_or_new(name, options)?;
        Ok(ColumnFamily { inner: Arc::clone(&self.inner), family })
    }

    /// The column family of that name, with the options it has, if there is one.
    ///
    /// # Errors
    /// A closed database.
    pub fn existing_column_family(&self, name: &str) -> Result<Option<ColumnFamily>> {
        self.inner.lifecycle.check_open()?;
        let families = self.inner.tree.families();
        let family = families.values().find(|family| family.name == name).cloned();
        Ok(family.map(|family| ColumnFamily { inner: Arc::clone(&self.inner), family }))
    }

    /// The names of all column families, in the order they were made.
    pub fn column_family_names(&self) -> Vec<String> {
        self.inner.tree.families().values().map(|family| family.name.clone()).collect()
    }

    /// Drops a column family with everything in it, by one edit; its files go in the background
    /// as their last readers do. Handles on it give errors of kind [`ErrorKind::Closed`].
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]; a closed database; what the manifest meets.
    pub fn drop_column_family(&self, name: &str) -> Result<()> {
        self.inner.drop_family(name)
    }

    /// A new batch of writes.
    pub fn batch(&self) -> Batch<'_> {
        Batch { db: self, data: BatchData::default() }
    }

    /// A new transaction.
    pub fn transaction(&self) -> Transaction {
        self.inner.begin_transactions();
        Transaction::new(Arc::clone(&self.inner))
    }

    /// A new transaction that takes no locks: it reads the state of this moment, with its own writes on
    /// top, and its commit is refused with [`crate::ErrorKind::Conflict`] if a row or range that it has
    /// read was written since. All that commit are as if they had run one after the other. Best where
    /// conflicts are rare; begin again where they come.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = lithify::Db::open(directory.path(), lithify::Options::default())?;
    /// let rocks = db.column_family("rocks", lithify::CfOptions::default())?;
    /// let mut transaction = db.optimistic_transaction();
    /// if transaction.get(&rocks, "basalt")?.is_none() {
    ///     rocks.put("basalt", "somebody else's")?;
    ///     transaction.put(&rocks, "basalt", "ours")?;
    /// }
    /// let refused = transaction.commit().unwrap_err();
    /// assert!(refused.kind().is_retryable());
    /// # Ok::<(), lithify::Error>(())
    /// ```
    pub fn optimistic_transaction(&self) -> Transaction {
        Transaction::optimistic(Arc::clone(&self.inner))
    }

    /// The present, to be read later.
    pub fn snapshot(&self) -> Snapshot {
        self.inner.new_snapshot()
    }

    /// Makes all logged writes durable.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] if there is no log; what the sync meets.
    pub fn sync(&self) -> Result<()> {
        self.inner.commit(BatchData::default(), Some(crate::Durability::Sync))
    }

    /// Writes all memtables to tables and waits for it.
    ///
    /// # Errors
    /// What the disk refuses; a closed database.
    pub fn flush(&self) -> Result<()> {
        self.inner.flush_all()
    }

    /// Waits until nothing is left to flush or compact.
    ///
    /// # Errors
    /// The failure that stopped background work; a closed database.
    pub fn wait_for_compaction(&self) -> Result<()> {
        self.inner.wait_until_settled()
    }

    /// What everything has cost so far; prints as the per-level table and the lines below it.
    pub fn stats(&self) -> StatisticsSnapshot {
        self.inner.statistics()
    }

    /// What opening found in the log: one report per segment, with what was dropped.
    pub fn recovery(&self) -> &[RecoveryReport] {
        self.inner.lifecycle.recovery()
    }

    /// The options it was opened with.
    pub fn options(&self) -> &Options {
        &self.inner.options
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }
}

/// Refuses a column family that cannot be made.
fn check_family(name: &str, options: &CfOptions) -> Result<()> {
    options.validate()?;
    match name.is_empty() {
        true => Err(Error::invalid("a column family needs a name")),
        false => Ok(()),
    }
}
