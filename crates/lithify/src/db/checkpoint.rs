//! Checkpoints: the database as it is now, as a database of its own in another directory.
//!
//! 1. The place is staged: a directory beside it, under another name, locked.
//! 2. The present is held (`frozen.rs`). Log segments are copied up to their length at that moment;
//!    they are recycled in place, so a link would change under the copy. Then they are let go.
//! 3. Tables are never changed once they are written: each gets a second name, or is copied where
//!    the file system refuses that.
//! 4. A manifest is written whose clean close is the end of the copied log, so that a checkpoint
//!    that lost bytes of its log does not open as if they had never been.
//! 5. Everything is durable; the directory is renamed into its place.
//!
//! An error at any point leaves nothing behind, a crash at most the staged directory.

use crate::base::SequenceNumber;
use crate::db::Db;
use crate::db::activity::Activity;
use crate::db::ingest::tables::TableTransfer;
use crate::db::inner::DbInner;
use crate::db::tree::frozen::Frozen;
use crate::fs::{File, FileSystem, OpenMode, StagedDirectory, Transfer, TransferOptions};
use crate::manifest::{FileName, Manifest, TableFile};
use crate::options::Durability;
use crate::stats::Cause;
use crate::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a checkpoint is made.
#[derive(Clone, Copy, Debug)]
pub struct CheckpointOptions<'a> {
    /// Whether memtables are flushed first. Then little of the log is left to be copied, and
    /// writers may have to wait as for any flush. A database without a log (durability none) always
    /// flushes.
    pub flush: bool,
    /// How tables get there. A link takes no space and no time, but shares its bytes with the
    /// database: what a disk does to the one it does to the other.
    pub tables: TableTransfer,
    /// The rate of copying, and who hears of it.
    pub transfer: TransferOptions<'a>,
}

impl Default for CheckpointOptions<'_> {
    fn default() -> Self {
        let tables = TableTransfer::Link;
        CheckpointOptions { flush: false, tables, transfer: TransferOptions::default() }
    }
}

/// What a checkpoint consists of.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// Where it is.
    pub path: PathBuf,
    /// Every commit up to this sequence number is in it, and no later one.
    pub sequence: SequenceNumber,
    /// Tables that share their bytes with the database's.
    pub linked_tables: u64,
    /// Their bytes.
    pub linked_bytes: u64,
    /// Tables that were copied.
    pub copied_tables: u64,
    /// Their bytes.
    pub copied_bytes: u64,
    /// Bytes of the log that were copied.
    pub log_bytes: u64,
    /// Bytes that were written of the manifest and of the file that names it.
    pub manifest_bytes: u64,
    /// How long writers were held up, in microseconds.
    pub writers_held_us: u64,
    /// Why tables were copied that should have been linked: what the file system said first.
    pub link_refusal: Option<Error>,
}

impl Db {
    /// Makes a checkpoint: a database of its own at `path`, which must not be there, with every
    /// commit that returned before this call. Tables are linked, the log is copied. It is durable
    /// when this returns. Writing goes on meanwhile, also from other threads.
    ///
    /// Of a database that was opened for reading it is the state that the reader holds, which a
    /// writer beside it may have left behind since.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let (path, copy) = (directory.path().join("rocks"), directory.path().join("copy"));
    /// use lithify::{CfOptions, Db, Options};
    /// let db = Db::open(&path, Options::default())?;
    /// let rocks = db.column_family("rocks", CfOptions::default())?;
    /// rocks.put(b"basalt", b"igneous")?;
    /// db.checkpoint(&copy)?;
    /// rocks.put(b"slate", b"metamorphic")?;
    ///
    /// let copy = Db::open(&copy, Options::default())?;
    /// let rocks = copy.column_family("rocks", CfOptions::default())?;
    /// assert!(rocks.contains(b"basalt")? && !rocks.contains(b"slate")?);
    /// # Ok::<(), lithify::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] if there is something at `path`, which is not touched, or a
    /// stranger's file where the checkpoint would be built; [`ErrorKind::Locked`] while another one
    /// is made for the same path; [`ErrorKind::NoSpace`]; [`ErrorKind::Cancelled`]; what the disk
    /// refuses; a closed or poisoned database, also one that is closed meanwhile;
    /// [`ErrorKind::ReadOnly`] for a reader that could not register, or that is asked to flush. Nothing is left of the checkpoint then, unless the
    /// error says that the directory is whole and only its name not durable.
    pub fn checkpoint(&self, path: impl AsRef<Path>) -> Result<Checkpoint> {
        self.checkpoint_with(path, &CheckpointOptions::default())
    }

    /// Makes a checkpoint as the options say.
    ///
    /// # Errors
    /// As [`Db::checkpoint`].
    pub fn checkpoint_with(
        &self,
        path: impl AsRef<Path>,
        options: &CheckpointOptions<'_>,
    ) -> Result<Checkpoint> {
        let (inner, path) = (&self.inner, path.as_ref());
        let open = inner.begin_copy()?;
        let staged = stage_database(inner, path)?;
        inner.flush_for_copy(options.flush)?;
        let mut activity = Activity::begin(inner, Cause::Copy);
        let listener = |progress: &_| open.between_pieces(|| options.transfer.tell(progress));
        let transfer = TransferOptions { listener: Some(&listener), ..options.transfer };
        let mut making = Making {
            files: activity.counted(&inner.world.files),
            activity,
            staged: &staged,
            frozen: inner.freeze()?,
            options,
            transfer: Transfer::new(&*inner.world.environment, transfer),
            made: Checkpoint {
                path: path.to_path_buf(),
                sequence: 0,
                linked_tables: 0,
                linked_bytes: 0,
                copied_tables: 0,
                copied_bytes: 0,
                log_bytes: 0,
                manifest_bytes: 0,
                writers_held_us: 0,
                link_refusal: None,
            },
        };
        making.fill().map_err(|error| not_made(open.cause(error), "checkpoint"))?;
        let Making { frozen, made, .. } = making;
        staged.finish()?;
        drop(frozen);
        Ok(made)
    }
}

/// A place for a database that is to appear whole at `path`.
pub(crate) fn stage_database(inner: &DbInner, path: &Path) -> Result<StagedDirectory> {
    StagedDirectory::begin(&inner.world.files, path, &|name| FileName::of_path(name).is_some())
}

/// The failure to make a copy, which poisons the copy and nothing else.
pub(crate) fn not_made(error: Error, copy: &str) -> Error {
    let kind = match error.kind() {
        ErrorKind::Poisoned => ErrorKind::Io,
        kind => kind,
    };
    error.causing(kind, format!("the {copy} was not made, nothing of it is left"))
}

impl DbInner {
    /// Flushes if that is asked for, or if there is no log that holds what memtables do. A reader has
    /// read what it has from tables and the log.
    pub(crate) fn flush_for_copy(self: &Arc<Self>, asked_for: bool) -> Result<()> {
        let needs_tables =
            self.options.durability == Durability::None && !self.lifecycle.is_read_only();
        if asked_for || needs_tables {
            self.flush_all()?;
        }
        Ok(())
    }
}

/// A checkpoint on its way.
struct Making<'a> {
    activity: Activity,
    files: Arc<dyn FileSystem>,
    staged: &'a StagedDirectory,
    frozen: Frozen,
    options: &'a CheckpointOptions<'a>,
    transfer: Transfer<'a>,
    made: Checkpoint,
}

impl Making<'_> {
    fn fill(&mut self) -> Result<()> {
        let tables = self.frozen.tables();
        let mut segments = self.frozen.segments().to_vec();
        let table_bytes: u64 = tables.values().map(|table| table.metadata.size_bytes).sum();
        let log_bytes: u64 = segments.iter().map(|(_, bytes)| bytes).sum();
        self.transfer.announce((tables.len() + segments.len()) as u64, table_bytes + log_bytes);
        self.made.sequence = self.frozen.sequence;
        self.made.writers_held_us = self.frozen.writers_held_us;
        if planted!(CheckpointWithoutLogEnd) {
            segments.pop();
        }
        for (number, bytes) in segments {
            self.copy(FileName::Wal(number), bytes)?;
            self.made.log_bytes += bytes;
        }
        self.frozen.release_log();
        for table in tables.values() {
            self.bring(table)?;
        }
        let inner = self.frozen.database();
        let (database_id, directory) = (inner.database_id, self.staged.path());
        self.made.manifest_bytes =
            Manifest::export(&*self.files, directory, database_id, &self.frozen.state)?;
        Ok(())
    }

    /// Gives a table a name in the checkpoint, or copies it.
    fn bring(&mut self, table: &TableFile) -> Result<()> {
        let (number, bytes) = (table.metadata.number, table.metadata.size_bytes);
        let name = FileName::Table(number);
        if self.options.tables == TableTransfer::Link {
            let inner = self.frozen.database();
            let source = inner.workshop.table_path(number);
            match inner.world.files.link(&source, &name.path(self.staged.path())) {
                Ok(()) => {
                    self.made.linked_tables += 1;
                    self.made.linked_bytes += bytes;
                    return self.transfer.pass(bytes);
                }
                // One table may have too many names where the others have not.
                Err(error) => drop(self.made.link_refusal.get_or_insert(error)),
            }
        }
        self.copy(name, bytes)?;
        self.made.copied_tables += 1;
        self.made.copied_bytes += bytes;
        Ok(())
    }

    fn copy(&mut self, name: FileName, bytes: u64) -> Result<()> {
        let inner = self.frozen.database();
        let files = &self.files;
        let source = files.open(&name.path(&inner.path), OpenMode::Read)?;
        let target = files.open(&name.path(self.staged.path()), OpenMode::CreateNew)?;
        let mut bytes = match name {
            FileName::Wal(_) => whole_length(&*source, bytes)?,
            _ => bytes,
        };
        if planted!(CheckpointTableCutShort) && matches!(name, FileName::Table(_)) {
            bytes -= 1;
        }
        let copied = self.transfer.copy(&*source, bytes, &*target, None);
        self.activity.book();
        copied.map(drop)
    }
}

/// The length to be copied of a file that holds `bytes`: a log recovered after a crash may end
/// within the padding of its last record.
pub(crate) fn whole_length(source: &dyn File, bytes: u64) -> Result<u64> {
    let length = source.length()?;
    Ok(if bytes.saturating_sub(length) < 8 { bytes.min(length) } else { bytes })
}
