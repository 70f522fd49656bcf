//! Making a database of a backup again.
//!
//! 1. The place is staged, as for a checkpoint.
//! 2. Every file is copied and compared with its checksums on the way. A backup is never linked:
//!    the database and the backup would go the same way with one bad sector.
//! 3. To go back further, the log is cut behind the last group that is asked for.
//! 4. The manifest is written from the snapshot, everything is durable, the directory gets its
//!    name.

use super::meta::BackupMeta;
use super::names::StoreName;
use super::{BackupId, BackupStore, numbers};
use crate::base::SequenceNumber;
use crate::db::{GroupHead, not_made};
use crate::fs::{OpenMode, StagedDirectory, Transfer, TransferOptions};
use crate::manifest::{CleanClose, FileName, Manifest, ManifestState};
use crate::wal::{LogKind, SegmentEnd, WalReader};
use crate::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};

/// How a backup is restored.
#[derive(Clone, Copy, Debug, Default)]
pub struct RestoreOptions<'a> {
    /// Only commits up to this sequence number; all of the backup when not given. Batches stay
    /// whole, and commits that were logged as one group too: the last one is the last that fits
    /// whole. Column families are those at the time of the backup.
    pub up_to_sequence: Option<SequenceNumber>,
    /// The rate of copying, and who hears of it.
    pub transfer: TransferOptions<'a>,
}

/// What was restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// Where it is.
    pub path: PathBuf,
    /// Of which backup.
    pub backup: BackupId,
    /// Every commit up to this sequence number is in it, and no later one.
    pub sequence: SequenceNumber,
    /// Files that were copied.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl BackupStore {
    /// Makes a database of a backup, in a directory that must not be there. It is durable when this
    /// returns.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] for a backup that is not there; [`ErrorKind::Corruption`] for one
    /// that is damaged, with file and offset: then the others are read, and the error says which of
    /// them are whole; [`ErrorKind::InvalidArgument`] for a sequence number out of its range;
    /// [`ErrorKind::AlreadyExists`] if there is something at `path`, which is not touched;
    /// [`ErrorKind::NoSpace`]; [`ErrorKind::Cancelled`]; what the disks refuse. Nothing is left
    /// then, unless the error says that the directory is whole and only its name not durable.
    pub fn restore(
        &self,
        id: BackupId,
        path: impl AsRef<Path>,
        options: &RestoreOptions<'_>,
    ) -> Result<Restored> {
        self.check_there(id)?;
        let path = path.as_ref();
        let restored = self.meta(id).and_then(|meta| {
            check_range(&meta, options.up_to_sequence)?;
            self.restore_meta(&meta, path, options)
        });
        restored.map_err(|error| match error.kind() {
            ErrorKind::Corruption => self.damaged(id, error, options),
            ErrorKind::Poisoned => not_made(error, "database"),
            _ => error,
        })
    }

    /// The error of a damaged backup, with what could be restored instead.
    fn damaged(&self, id: BackupId, error: Error, options: &RestoreOptions<'_>) -> Error {
        let others: Vec<_> = self.ids().into_iter().filter(|other| *other != id).collect();
        let whole = match self.verify_each(&others, &options.transfer) {
            Ok(found) => numbers(&found.whole()),
            Err(_) => "not known, the others were not read to their end".to_string(),
        };
        let what = format!("backup {id} is damaged and was not restored; whole ones: {whole}");
        error.causing(ErrorKind::Corruption, what)
    }

    fn restore_meta(
        &self,
        meta: &BackupMeta,
        path: &Path,
        options: &RestoreOptions<'_>,
    ) -> Result<Restored> {
        let files = &self.world.files;
        let is_ours = |name: &Path| FileName::of_path(name).is_some();
        let staged = StagedDirectory::begin(files, path, &is_ours)?;
        let mut transfer = Transfer::new(&*self.world.environment, options.transfer);
        let needed = meta.files();
        let bytes = needed.iter().map(|file| file.pieces.size_bytes).sum();
        transfer.announce(needed.len() as u64, bytes);
        for file in &needed {
            let source = self.open_stored(file.name)?;
            if planted!(RestoredWithoutLog) && matches!(file.name, StoreName::Wal { .. }) {
                continue;
            }
            let name = match file.name {
                StoreName::Wal { number, .. } => FileName::Wal(number),
                StoreName::Table { number, .. } => FileName::Table(number),
                StoreName::Store | StoreName::Lock | StoreName::Backup(_) => continue,
            };
            let target = files.open(&name.path(staged.path()), OpenMode::CreateNew)?;
            transfer.copy(&*source, file.pieces.size_bytes, &*target, Some(file.pieces))?;
        }
        let mut state = meta.state.clone();
        let sequence = match options.up_to_sequence {
            Some(sequence) if sequence < meta.sequence => {
                self.cut_log(meta, &staged, sequence, &mut state)?
            }
            _ => meta.sequence,
        };
        Manifest::export(&**files, staged.path(), meta.database_id, &state)?;
        staged.finish()?;
        let files = needed.len() as u64;
        Ok(Restored { path: path.to_path_buf(), backup: meta.backup, sequence, files, bytes })
    }

    /// Cuts the log of a staged database behind the last group that ends at or before `sequence`;
    /// gives where that is.
    fn cut_log(
        &self,
        meta: &BackupMeta,
        staged: &StagedDirectory,
        sequence: SequenceNumber,
        state: &mut ManifestState,
    ) -> Result<SequenceNumber> {
        let files = &*self.world.files;
        let mut last_sequence = meta.oldest_sequence;
        let mut end: Option<(SegmentEnd, bool)> = None;
        for segment in &meta.segments {
            let log_number = segment.number;
            let path = FileName::Wal(log_number).path(staged.path());
            if end.is_some_and(|(_, is_cut)| is_cut) {
                files.remove(&path)?;
                continue;
            }
            let mut reader =
                WalReader::open(files, &path, LogKind::Wal, meta.database_id, log_number)?;
            reader.header()?;
            let mut is_cut = false;
            let mut end_offset = reader.offset();
            while let Some(record) = reader.next_record()? {
                let (head, _) = GroupHead::split(record.payload)?;
                let last = head.first_sequence + u64::from(head.entry_count).saturating_sub(1);
                if last > sequence {
                    is_cut = true;
                    break;
                }
                last_sequence = last_sequence.max(last);
                end_offset = record.position.end_offset;
            }
            if is_cut {
                let file = files.open(&path, OpenMode::ReadWrite)?;
                file.truncate(end_offset)?;
                file.sync_data()?;
            }
            end = Some((SegmentEnd { log_number, end_offset }, is_cut));
        }
        state.last_sequence = last_sequence;
        state.clean_close = end.map(|(log_end, _)| CleanClose { log_end, last_sequence });
        Ok(last_sequence)
    }
}

fn check_range(meta: &BackupMeta, up_to_sequence: Option<SequenceNumber>) -> Result<()> {
    let range = meta.oldest_sequence..=meta.sequence;
    match up_to_sequence {
        Some(sequence) if !range.contains(&sequence) => {
            let what = format!(
                "backup {} cannot be restored to that sequence number: what is earlier is in \
                 tables, what is later in another backup",
                meta.backup
            );
            let expected = format!("{} to {}", meta.oldest_sequence, meta.sequence);
            Err(Error::invalid(what).expected(expected, sequence))
        }
        _ => Ok(()),
    }
}
