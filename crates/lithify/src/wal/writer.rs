//! Writes one log: a segment of the write-ahead log, or a manifest.
//!
//! The order of things is what makes recovery decidable: the name is durable, then the header,
//! then records are written; the next segment is created only with the end of this one in hand,
//! and an end is only handed out after a sync.

use super::frame::stored_size_bytes;
use super::frame::{ALIGNMENT, FRAME_SIZE_BYTES, Frame, PAYLOAD_SIZE_MAX, identity};
use super::header::{FORMAT_VERSION, HEADER_SIZE_BYTES, LogHeader, LogKind, SegmentEnd};
use crate::format::{Checksum, Features};
use crate::fs::{File, FileSystem, OpenMode};
use crate::{Error, ErrorKind, Result};
use std::io::IoSlice;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Records up to this size are put together in one buffer: one checksum over all of it and one
/// buffer for the system cost less than many small ones. Longer ones are written from where they
/// are.
const GATHERED_BYTES_MAX: usize = 128 << 10;

/// What a file is filled with, a piece of it.
static ZEROS: [u8; 16 << 10] = [0; 16 << 10];

/// Where a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalPosition {
    /// The segment.
    pub log_number: u64,
    /// The offset of its frame.
    pub offset: u64,
    /// The offset behind it.
    pub end_offset: u64,
}

/// What a new log is.
#[derive(Clone, Copy, Debug)]
pub struct SegmentOptions {
    /// What it is for.
    pub kind: LogKind,
    /// The database that it belongs to.
    pub database_id: u128,
    /// Its number; must never have been used before in this database.
    pub log_number: u64,
    /// The durable end of the segment before it.
    pub previous: Option<SegmentEnd>,
    /// Space to reserve from the start, in bytes; 0 for none.
    pub preallocate_bytes: u64,
}

/// A log being written. One thread at a time.
pub struct WalWriter {
    file: Arc<dyn File>,
    identity: Checksum,
    log_number: u64,
    end_offset: u64,
    synced_through: u64,
    preallocated_bytes: u64,
    /// Space up to here is there, as far as the disk had it.
    reserved_through: u64,
    /// The file is at least so long.
    length: u64,
    finished: bool,
    poison: Option<Error>,
    syncs: Arc<SyncTurns>,
    /// Where short records are put together.
    gathered: Vec<u8>,
}

/// Lets the syncs of one log take turns and remembers a failure: of two at once, or of two in a
/// row, the system may tell only one that writes were lost.
#[derive(Default)]
struct SyncTurns {
    failure: Mutex<Option<Error>>,
}

impl SyncTurns {
    fn sync(&self, file: &dyn File) -> Result<()> {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(failure) = &*failure {
            return Err(failure.clone());
        }
        if planted!(FailedSyncForgotten) {
            let _ = file.sync_data();
            return Ok(());
        }
        file.sync_data().inspect_err(|error| *failure = Some(error.clone()))
    }
}

/// A sync of everything appended before [`WalWriter::start_sync`]; runs on any thread while
/// appends go on.
#[derive(Clone)]
pub struct PendingSync {
    file: Arc<dyn File>,
    syncs: Arc<SyncTurns>,
    through: u64,
}

impl PendingSync {
    /// The offset up to which the log will be durable.
    pub fn through(&self) -> u64 {
        self.through
    }

    /// The file, for a caller that submits the sync instead of running it.
    pub fn file(&self) -> &Arc<dyn File> {
        &self.file
    }

    /// Does it, after the syncs of the same log that are under way.
    pub fn run(&self) -> Result<()> {
        self.syncs.sync(&*self.file)
    }
}

/// The file of a log that is still to begin: its name is durable, its header is not written.
pub struct PreparedFile {
    file: Arc<dyn File>,
    preallocated_bytes: u64,
    reserved_through: u64,
    length: u64,
}

impl PreparedFile {
    /// Creates a file at `path`, which must not exist, or renames `recycled_from` to it; reserves
    /// so many bytes if the disk has them. On return the name is durable. Recovery finds a log
    /// without a header there, which is empty, until [`WalWriter::begin`].
    pub fn create(
        file_system: &dyn FileSystem,
        path: &Path,
        preallocate_bytes: u64,
        recycled_from: Option<&Path>,
    ) -> Result<Self> {
        let file = match recycled_from {
            Some(old_path) => {
                file_system.rename(old_path, path)?;
                file_system.open(path, OpenMode::ReadWrite)?
            }
            None => file_system.open(path, OpenMode::CreateNew)?,
        };
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        // The name first: a durable header under a recycled segment's old name would make that
        // name's number a lie.
        if !planted!(LogNameUnsynced) {
            // After a failure it is unknown which names are durable, others' among them.
            let synced = file_system.sync_directory(directory.unwrap_or(Path::new(".")));
            synced.map_err(|error| poisoned(&*file, 0, &error))?;
        }
        let present_bytes = file.length()?;
        let missing_bytes = preallocate_bytes.saturating_sub(present_bytes);
        let preallocated_bytes = preallocate(&*file, present_bytes, missing_bytes)?;
        let reserved_through = present_bytes + missing_bytes;
        Ok(PreparedFile { file, preallocated_bytes, reserved_through, length: present_bytes })
    }

    /// Space that was reserved beyond what a recycled file had, in bytes.
    pub fn preallocated_bytes(&self) -> u64 {
        self.preallocated_bytes
    }
}

/// Reserves space if the disk has it: the records to come may need less. Gives the bytes reserved.
fn preallocate(file: &dyn File, offset: u64, bytes: u64) -> Result<u64> {
    if bytes == 0 {
        return Ok(0);
    }
    match file.preallocate(offset, bytes) {
        Ok(()) => Ok(bytes),
        Err(error) if error.kind() == ErrorKind::NoSpace => Ok(0),
        Err(error) => Err(error),
    }
}

impl WalWriter {
    /// Creates the log at `path`, which must not exist, or overwrites the file `recycled_from`
    /// in place after renaming it to `path`. On return its name and header are durable.
    ///
    /// After a full disk a new try needs a new number. [`ErrorKind::Poisoned`] after a failed
    /// sync: the header may be durable, and another segment with the same predecessor would break
    /// the chain; only opening the database again finds out.
    pub fn create(
        file_system: &dyn FileSystem,
        path: &Path,
        options: SegmentOptions,
        recycled_from: Option<&Path>,
    ) -> Result<Self> {
        let bytes = options.preallocate_bytes;
        Self::begin(PreparedFile::create(file_system, path, bytes, recycled_from)?, options)
    }

    /// Begins the log in a prepared file: on return its header is durable. Errors as those of
    /// [`WalWriter::create`].
    pub fn begin(prepared: PreparedFile, options: SegmentOptions) -> Result<Self> {
        let PreparedFile { file, preallocated_bytes, reserved_through, length } = prepared;
        let header = LogHeader {
            kind: options.kind,
            format_version: FORMAT_VERSION,
            features: Features::NONE,
            database_id: options.database_id,
            log_number: options.log_number,
            previous: options.previous,
        };
        file.write_at(&[IoSlice::new(&header.encode())], 0)?;
        if !planted!(LogHeaderUnsynced) {
            file.sync_data().map_err(|error| poisoned(&*file, 0, &error))?;
        }
        Ok(WalWriter {
            file,
            identity: identity(options.database_id),
            log_number: options.log_number,
            end_offset: HEADER_SIZE_BYTES as u64,
            synced_through: HEADER_SIZE_BYTES as u64,
            preallocated_bytes,
            reserved_through,
            length,
            finished: false,
            poison: None,
            syncs: Arc::default(),
            gathered: Vec::new(),
        })
    }

    /// The file, for a caller that has its pages written back.
    pub fn file(&self) -> &Arc<dyn File> {
        &self.file
    }

    /// Appends one record whose payload is the pieces, one after the other. It is not durable yet.
    ///
    /// A full disk leaves the log as it was, and the next append writes over what may have been
    /// written of this record. Any other failure is [`ErrorKind::Poisoned`], and so is every call
    /// from then on.
    pub fn append(&mut self, pieces: &[IoSlice<'_>]) -> Result<WalPosition> {
        self.check_usable()?;
        if self.finished {
            return Err(Error::new(ErrorKind::Closed, "the log segment is finished")
                .at(self.file.path(), self.end_offset));
        }
        let payload_size: usize = pieces.iter().map(|piece| piece.len()).sum();
        if payload_size > PAYLOAD_SIZE_MAX {
            return Err(Error::limit("record is too long for the log")
                .expected(format_args!("at most {PAYLOAD_SIZE_MAX} bytes"), payload_size));
        }
        let offset = self.end_offset;
        let mut frame = Frame {
            payload_length: payload_size as u32,
            log_number: self.log_number,
            offset,
            synced_through: self.synced_through,
        };
        if planted!(SyncedThroughTooFar) {
            frame.synced_through = offset;
        }
        let stored_bytes = stored_size_bytes(payload_size);
        let written = if stored_bytes as usize <= GATHERED_BYTES_MAX {
            self.write_gathered(frame, pieces, stored_bytes as usize)
        } else {
            self.write_pieces(
                frame,
                pieces,
                stored_bytes as usize - FRAME_SIZE_BYTES - payload_size,
            )
        };
        match written {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::NoSpace => {
                if planted!(NoSpaceMovesLogEnd) {
                    self.end_offset += stored_bytes;
                }
                return Err(error);
            }
            Err(error) => return Err(self.poison(&error)),
        }
        self.end_offset += stored_bytes;
        Ok(WalPosition { log_number: self.log_number, offset, end_offset: self.end_offset })
    }

    fn write_gathered(
        &mut self,
        frame: Frame,
        pieces: &[IoSlice<'_>],
        stored_bytes: usize,
    ) -> Result<()> {
        self.gathered.clear();
        self.gathered.resize(FRAME_SIZE_BYTES, 0);
        pieces.iter().for_each(|piece| self.gathered.extend_from_slice(piece));
        let payload = &self.gathered[FRAME_SIZE_BYTES..];
        let head = frame.encode(self.identity, std::iter::once(payload));
        self.gathered[..FRAME_SIZE_BYTES].copy_from_slice(&head);
        self.gathered.resize(stored_bytes, 0);
        self.file.write_at(&[IoSlice::new(&self.gathered)], frame.offset)
    }

    fn write_pieces(
        &self,
        frame: Frame,
        pieces: &[IoSlice<'_>],
        padding_bytes: usize,
    ) -> Result<()> {
        let head = frame.encode(self.identity, pieces.iter().map(|piece| &piece[..]));
        let padding = [0; ALIGNMENT as usize];
        let mut buffers = Vec::with_capacity(pieces.len() + 2);
        buffers.push(IoSlice::new(&head));
        buffers.extend_from_slice(pieces);
        buffers.push(IoSlice::new(&padding[..padding_bytes]));
        self.file.write_at(&buffers, frame.offset)
    }

    /// Makes everything appended so far durable. A failure poisons the log: what the system did
    /// with the unsynced pages is unknown, and a second sync would not tell.
    pub fn sync(&mut self) -> Result<()> {
        self.check_usable()?;
        if self.synced_through == self.end_offset {
            return Ok(());
        }
        let pending = self.start_sync()?;
        let result = pending.run();
        self.finish_sync(&pending, result)
    }

    /// A sync of everything appended so far, to be run elsewhere and given back to
    /// [`WalWriter::finish_sync`].
    pub fn start_sync(&self) -> Result<PendingSync> {
        self.check_usable()?;
        Ok(PendingSync {
            file: Arc::clone(&self.file),
            syncs: Arc::clone(&self.syncs),
            through: self.end_offset,
        })
    }

    /// Takes note of what became of a sync.
    pub fn finish_sync(&mut self, pending: &PendingSync, result: Result<()>) -> Result<()> {
        if let Err(error) = result {
            return Err(self.poison(&error));
        }
        let mut through = pending.through;
        if planted!(SyncCoversArrivals) {
            through = self.end_offset;
        }
        self.synced_through = self.synced_through.max(through);
        self.check_usable()
    }

    /// Syncs the log and gives its end, which the next segment's header or the clean close names.
    /// Nothing can be appended behind an end that was given out: [`ErrorKind::Closed`].
    pub fn finish(&mut self) -> Result<SegmentEnd> {
        if !planted!(SegmentEndUnsynced) {
            self.sync()?;
        }
        self.finished = true;
        Ok(SegmentEnd { log_number: self.log_number, end_offset: self.end_offset })
    }

    /// The number of the log.
    pub fn log_number(&self) -> u64 {
        self.log_number
    }

    /// The offset behind the last record: all bytes written, the header included.
    pub fn end_offset(&self) -> u64 {
        self.end_offset
    }

    /// The offset up to which the log is known to be durable.
    pub fn synced_through(&self) -> u64 {
        self.synced_through
    }

    /// Space that creating the log reserved beyond what a recycled file had, in bytes.
    pub fn preallocated_bytes(&self) -> u64 {
        self.preallocated_bytes
    }

    /// Whether the records have come to the end of the space that was reserved.
    #[inline]
    pub fn is_out_of_space_reserved(&self) -> bool {
        self.end_offset >= self.reserved_through
    }

    /// Reserves so many bytes behind the last record. Gives how many were: none on a full disk,
    /// and it is not asked again before so many have been written.
    pub fn reserve(&mut self, bytes: u64) -> Result<u64> {
        let offset = self.end_offset.max(self.reserved_through);
        let reserved = preallocate(&*self.file, offset, bytes).map_err(|error| self.poison(&error));
        self.reserved_through = offset.saturating_add(bytes);
        reserved
    }

    /// Writes up to so many zeros behind the last record, in space that is reserved, if the file ends
    /// with that record; gives how many. Syncs of the records that replace them need not have the file
    /// system note a new length, and space that holds data for the first time.
    pub fn fill(&mut self, bytes: u64) -> Result<u64> {
        self.check_usable()?;
        let from = self.end_offset;
        let through = from.saturating_add(bytes).min(self.reserved_through);
        if self.length > from || through <= from {
            return Ok(0);
        }
        // After a full disk it is not asked again before so many bytes have been written.
        self.length = through;
        let mut left = (through - from) as usize;
        let mut pieces = Vec::with_capacity(left.div_ceil(ZEROS.len()));
        while left > 0 {
            let piece = &ZEROS[..left.min(ZEROS.len())];
            pieces.push(IoSlice::new(piece));
            left -= piece.len();
        }
        let mut offset = from;
        if planted!(ZerosOverLastRecord) {
            offset -= ALIGNMENT;
        }
        match self.file.write_at(&pieces, offset) {
            Ok(()) => Ok(through - from),
            Err(error) if error.kind() == ErrorKind::NoSpace => Ok(0),
            Err(error) => Err(self.poison(&error)),
        }
    }

    /// Gives back the space behind the last record: what was reserved, and what is left of an
    /// earlier life of the file. Failing, it leaves all as it was.
    pub fn give_back(&mut self) {
        if self.file.truncate(self.end_offset).is_ok() {
            self.reserved_through = self.end_offset;
            self.length = self.end_offset;
        }
    }

    fn check_usable(&self) -> Result<()> {
        self.poison.as_ref().map_or(Ok(()), |error| Err(error.clone()))
    }

    fn poison(&mut self, cause: &Error) -> Error {
        let (file, offset) = (&*self.file, self.end_offset);
        self.poison.get_or_insert_with(|| poisoned(file, offset, cause)).clone()
    }
}

fn poisoned(file: &dyn File, offset: u64, cause: &Error) -> Error {
    let what = "the log takes nothing after a failed write or sync; reopen the database";
    Error::new(ErrorKind::Poisoned, what).at(file.path(), offset).because(cause.clone())
}
