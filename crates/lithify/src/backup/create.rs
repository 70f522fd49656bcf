//! Making a backup of an open database.
//!
//! 1. The present is held (`db/tree/frozen.rs`). The log is copied and let go, so that the database
//!    may recycle it.
//! 2. Of each live table it is asked whether an earlier backup has it: the same number, random id
//!    and length. Then nothing is read or written. Else it is checked block by block, because a
//!    backup of damage is worth nothing, and copied, with a checksum of every piece.
//! 3. When all of that is durable, names too, the description is written.
//!
//! After an error everything that was written is removed.

use super::meta::{BackupMeta, NOTE_SIZE_MAX, StoredSegment};
use super::names::StoreName;
use super::{BackupId, BackupInfo, BackupStore, info_of, write_temporary};
use crate::base::{FileNumber, SequenceNumber};
use crate::db::{Activity, Db, Frozen, GroupHead, LongCall, not_made, whole_length};
use crate::fs::{FileSystem, OpenMode, Pieces, Transfer, TransferOptions};
use crate::manifest::{FileName, TableFile};
use crate::stats::Cause;
use crate::table::ReadContext;
use crate::wal::{LogKind, WalReader};
use crate::{Error, ErrorKind, Result};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

/// How a backup is made.
#[derive(Clone, Debug)]
pub struct BackupOptions<'a> {
    /// Whether memtables are flushed first, so that little of the log is left to be copied. A
    /// database without a log (durability none) always flushes.
    pub flush: bool,
    /// Whether every block of a table is checked before it is copied. Records of the log always
    /// are.
    pub check: bool,
    /// Whether tables that are in the store already are read again and compared with their
    /// checksums. One that is damaged is replaced by the database's, which makes the other backups
    /// that need it whole again.
    pub check_shared: bool,
    /// A note to be shown in the list; at most 1,024 bytes.
    pub note: String,
    /// The rate of copying, and who hears of it.
    pub transfer: TransferOptions<'a>,
}

impl Default for BackupOptions<'_> {
    fn default() -> Self {
        BackupOptions {
            flush: false,
            check: true,
            check_shared: false,
            note: String::new(),
            transfer: TransferOptions::default(),
        }
    }
}

/// What was done for a backup.
#[derive(Clone, Debug)]
pub struct BackupReport {
    /// The backup; its own bytes are those that were copied.
    pub backup: BackupInfo,
    /// Files that were copied: log segments, and tables that were not there.
    pub copied_files: u64,
    /// Tables that were there.
    pub shared_files: u64,
    /// Their bytes.
    pub shared_bytes: u64,
    /// Tables that were there damaged, and were replaced.
    pub mended_files: u64,
    /// How long writers of the database were held up, in microseconds.
    pub writers_held_us: u64,
}

/// A backup on its way.
struct Making<'a> {
    activity: Activity,
    /// Those of the database.
    files: Arc<dyn FileSystem>,
    store: &'a BackupStore,
    id: BackupId,
    frozen: Frozen,
    options: &'a BackupOptions<'a>,
    transfer: Transfer<'a>,
    /// What earlier backups know of the tables.
    known: HashMap<StoreName, Pieces>,
    /// Files that were not there before.
    new: Vec<StoreName>,
    copied_bytes: u64,
    shared_files: u64,
    shared_bytes: u64,
    mended_files: u64,
}

impl BackupStore {
    /// Makes a backup of a database, with every commit that returned before this call; writing goes
    /// on meanwhile. It is durable when this returns. Of a database that was opened for reading it is
    /// the state that the reader holds.
    ///
    /// # Errors
    /// [`ErrorKind::ReadOnly`] for a store opened for reading; [`ErrorKind::Corruption`], with file
    /// and offset, for a database that is damaged; [`ErrorKind::NoSpace`];
    /// [`ErrorKind::Cancelled`]; [`ErrorKind::LimitExceeded`] for a long note; what the disks
    /// refuse; a closed or poisoned database, also one that is closed meanwhile;
    /// [`ErrorKind::ReadOnly`] for a reader that could not register, or that is asked to flush. Nothing is left of the backup then, unless the error
    /// says that it is whole and only its name not durable.
    pub fn create(&mut self, db: &Db, options: &BackupOptions<'_>) -> Result<BackupReport> {
        self.check_writable()?;
        if options.note.len() > NOTE_SIZE_MAX {
            return Err(Error::limit("the note on a backup is too long")
                .expected(format_args!("at most {NOTE_SIZE_MAX} bytes"), options.note.len()));
        }
        let open = db.inner.begin_copy()?;
        db.inner.flush_for_copy(options.flush)?;
        let mut activity = Activity::begin(&db.inner, Cause::Copy);
        // All of it is booked for the database, what is done in the store too.
        let uncounted = Arc::clone(&self.world.files);
        self.world.files = activity.counted(&uncounted);
        let made = self.create_counted(db, options, activity, &open);
        self.world.files = uncounted;
        made
    }

    fn create_counted(
        &mut self,
        db: &Db,
        options: &BackupOptions<'_>,
        mut activity: Activity,
        open: &LongCall<'_>,
    ) -> Result<BackupReport> {
        let frozen = db.inner.freeze()?;
        let listener = |progress: &_| open.between_pieces(|| options.transfer.tell(progress));
        let transfer = TransferOptions { listener: Some(&listener), ..options.transfer };
        let mut making = Making {
            files: activity.counted(&db.inner.world.files),
            activity,
            store: &*self,
            id: self.next_backup(),
            known: HashMap::new(),
            transfer: Transfer::new(&*self.world.environment, transfer),
            frozen,
            options,
            new: Vec::new(),
            copied_bytes: 0,
            shared_files: 0,
            shared_bytes: 0,
            mended_files: 0,
        };
        let made = making.make();
        if made.is_err() {
            making.undo();
        }
        let meta = made.map_err(|error| not_made(open.cause(error), "backup"))?;
        let (id, report) = (meta.backup, making.report(&meta));
        // It holds the tables too: what waits for them to be let go looks when `making` goes.
        drop(meta);
        drop(making);
        self.backups.insert(id);
        self.world.files.sync_directory(&self.path).map_err(|error| {
            let what = format!(
                "backup {id} is whole, but its name may not survive a power cut: delete it, or make \
                 the directory durable"
            );
            let kind = error.kind();
            error.causing(kind, what)
        })?;
        Ok(report)
    }
}

impl Making<'_> {
    /// All but making the last name durable.
    fn make(&mut self) -> Result<BackupMeta> {
        let tables = self.frozen.tables();
        let segments = self.frozen.segments().to_vec();
        let table_bytes: u64 = tables.values().map(|table| table.metadata.size_bytes).sum();
        let log_bytes: u64 = segments.iter().map(|(_, bytes)| bytes).sum();
        self.transfer.announce((tables.len() + segments.len()) as u64, table_bytes + log_bytes);
        let mut stored_segments = Vec::with_capacity(segments.len());
        let in_tables_through = self.frozen.flushed_through;
        let mut walk = LogWalk { next_sequence: None, in_tables_through };
        for (number, bytes) in segments {
            let pieces = self.copy_segment(number, bytes, &mut walk)?;
            stored_segments.push(StoredSegment { number, pieces });
        }
        self.frozen.release_log();
        self.known = self.store.known_tables(&tables);
        let mut stored_tables = BTreeMap::new();
        for (number, table) in &tables {
            stored_tables.insert(*number, self.bring(table)?);
        }
        let store = self.store;
        let files = &*store.world.files;
        files.sync_directory(&store.path)?;
        let meta = BackupMeta {
            store_id: store.identity.store_id,
            backup: self.id,
            database_id: self.frozen.database().database_id,
            unix_time_s: store.world.environment.unix_time_s(),
            sequence: self.frozen.sequence,
            oldest_sequence: walk.oldest_sequence(self.frozen.sequence),
            copied_bytes: self.copied_bytes,
            note: self.options.note.clone(),
            state: self.frozen.state.clone(),
            tables: stored_tables,
            segments: stored_segments,
        };
        let name = StoreName::Backup(self.id);
        self.new.push(name);
        write_temporary(files, &store.path, name, &meta.encode())?;
        files.rename(&name.temporary_path(&store.path), &name.path(&store.path))?;
        Ok(meta)
    }

    fn copy_segment(
        &mut self,
        number: FileNumber,
        bytes: u64,
        walk: &mut LogWalk,
    ) -> Result<Pieces> {
        let inner = self.frozen.database();
        let path = FileName::Wal(number).path(&inner.path);
        let (files, id) = (&*self.files, inner.database_id);
        walk.segment(&mut WalReader::open(files, &path, LogKind::Wal, id, number)?, bytes)?;
        let source = files.open(&path, OpenMode::Read)?;
        let bytes = whole_length(&*source, bytes)?;
        self.copy(&path, bytes, StoreName::Wal { backup: self.id, number }, None)
    }

    /// Copies a file into the store; it is durable, but for its name.
    fn copy(
        &mut self,
        from: &Path,
        bytes: u64,
        name: StoreName,
        expected: Option<&Pieces>,
    ) -> Result<Pieces> {
        let source = self.files.open(from, OpenMode::Read)?;
        let (files, directory) = (&*self.store.world.files, &*self.store.path);
        let temporary = name.temporary_path(directory);
        // A backup that cannot be read may need what is there.
        if !files.exists(&name.path(directory))? {
            self.new.push(name);
        }
        let target = files.open(&temporary, OpenMode::CreateOrTruncate)?;
        let pieces = self.transfer.copy(&*source, bytes, &*target, expected);
        self.activity.book();
        let pieces = pieces.inspect_err(|_| drop(files.remove(&temporary)))?;
        files.rename(&temporary, &name.path(directory))?;
        self.copied_bytes += bytes;
        Ok(pieces)
    }

    /// Sees to it that a table is in the store.
    fn bring(&mut self, table: &TableFile) -> Result<Pieces> {
        let name = StoreName::of_table(&table.metadata);
        let bytes = table.metadata.size_bytes;
        let known = self.known.remove(&name);
        if let Some(pieces) = &known {
            if self.is_whole(name, pieces)? {
                self.shared_files += 1;
                self.shared_bytes += bytes;
                self.transfer.pass(if self.options.check_shared { 0 } else { bytes })?;
                return Ok(pieces.clone());
            }
            self.mended_files += 1;
        }
        let inner = self.frozen.database();
        if self.options.check {
            let clock = &*inner.world.environment;
            let meter = Some(&mut self.activity.meter);
            let mut context = ReadContext { clock, meter, fill_cache: false };
            table.reader()?.verify(&mut context)?;
        }
        let path = inner.workshop.table_path(table.metadata.number);
        self.copy(&path, bytes, name, known.as_ref())
    }

    /// Whether a table that an earlier backup needs is there, as far as is to be looked.
    fn is_whole(&mut self, name: StoreName, pieces: &Pieces) -> Result<bool> {
        let files = &*self.store.world.files;
        let path = name.path(&self.store.path);
        if !files.exists(&path)? || files.length(&path)? != pieces.size_bytes {
            return Ok(false);
        }
        if !self.options.check_shared {
            return Ok(true);
        }
        let file = files.open(&path, OpenMode::Read)?;
        match self.transfer.check(&*file, pieces) {
            Err(error) if error.kind() == ErrorKind::Corruption => Ok(false),
            checked => checked.map(|()| true),
        }
    }

    /// Removes what was written. What cannot be removed now is when the store is next opened.
    fn undo(&self) {
        let (files, directory) = (&*self.store.world.files, &*self.store.path);
        // The description first: its files must not go while it is there.
        for name in self.new.iter().rev() {
            let _ = files.remove(&name.temporary_path(directory));
            let _ = files.remove(&name.path(directory));
        }
        let _ = files.sync_directory(directory);
    }

    fn report(&self, meta: &BackupMeta) -> BackupReport {
        let mut backup = info_of(meta);
        backup.own_bytes = meta.copied_bytes;
        BackupReport {
            copied_files: backup.files - self.shared_files,
            shared_files: self.shared_files,
            shared_bytes: self.shared_bytes,
            mended_files: self.mended_files,
            writers_held_us: self.frozen.writers_held_us,
            backup,
        }
    }
}

impl BackupStore {
    /// What earlier backups know of these tables; the newest one counts.
    fn known_tables(
        &self,
        tables: &BTreeMap<FileNumber, Arc<TableFile>>,
    ) -> HashMap<StoreName, Pieces> {
        let mut wanted: HashSet<StoreName> =
            tables.values().map(|table| StoreName::of_table(&table.metadata)).collect();
        let mut known = HashMap::new();
        for backup in self.backups.iter().rev() {
            if wanted.is_empty() {
                break;
            }
            // One that cannot be read knows nothing.
            let Ok(meta) = self.meta(*backup) else { continue };
            for file in meta.files() {
                if wanted.remove(&file.name) {
                    known.insert(file.name, file.pieces.clone());
                }
            }
        }
        known
    }
}

/// What is seen of the log on the way through its segments.
struct LogWalk {
    /// The sequence number behind the last record.
    next_sequence: Option<SequenceNumber>,
    /// What is in tables reaches so far: flushes, and ingests, which are not logged and show as
    /// numbers that no record has.
    in_tables_through: SequenceNumber,
}

impl LogWalk {
    /// Reads every record of a segment up to `end`.
    fn segment(&mut self, reader: &mut WalReader, end: u64) -> Result<()> {
        let path = reader.path().to_path_buf();
        reader.header()?;
        while reader.offset() < end {
            let offset = reader.offset();
            let Some(record) = reader.next_record()? else {
                return Err(Error::corruption("log damaged before its end")
                    .at(&path, offset)
                    .expected(format_args!("records up to offset {end}"), "no record"));
            };
            let split = GroupHead::split(record.payload);
            let (head, _) = split.map_err(|error| error.at(&path, offset))?;
            if self.next_sequence.is_none_or(|next| next < head.first_sequence) {
                let before = head.first_sequence.saturating_sub(1);
                self.in_tables_through = self.in_tables_through.max(before);
            }
            self.next_sequence = Some(head.first_sequence + u64::from(head.entry_count));
        }
        Ok(())
    }

    /// The oldest sequence number that the log, which ends at `sequence`, can be cut at.
    fn oldest_sequence(&self, sequence: SequenceNumber) -> SequenceNumber {
        match self.next_sequence {
            Some(next) if next > sequence => self.in_tables_through.min(sequence),
            _ => sequence,
        }
    }
}
