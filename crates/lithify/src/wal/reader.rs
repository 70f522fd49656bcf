//! Reads one log front to back, and looks behind the place where it stops.
//!
//! 1. Records are taken while frame and checksum hold.
//! 2. Where they do not, [`WalReader::stop`] scans the rest of the file on record alignment for
//!    records of the same log. One that knows the stop as synced turns it into corruption; that
//!    decision is the caller's, who may know the end from elsewhere.

use super::frame::{ALIGNMENT, FRAME_SIZE_BYTES, Frame, identity, stored_size_bytes};
use super::header::{HEADER_SIZE_BYTES, LogHeader, LogKind};
use super::writer::WalPosition;
use crate::format::Checksum;
use crate::fs::{Advice, File, FileSystem, OpenMode};
use crate::{Error, ErrorKind, Result};
use std::path::Path;
use std::sync::Arc;

/// Bytes read at once; longer records are read whole.
const WINDOW_SIZE_BYTES: u64 = 256 << 10;

/// Records that a crash left do not overlap, so together they are at most the file once. Many
/// times that was made up to keep the scan busy.
const CLAIMED_SHARE_MAX: u64 = 8;

/// A record that was verified.
#[derive(Clone, Copy, Debug)]
pub struct LogRecord<'a> {
    /// Where it is.
    pub position: WalPosition,
    /// The offset up to which the log was known durable when the record was written.
    pub synced_through: u64,
    /// What was appended.
    pub payload: &'a [u8],
}

/// Why reading ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// At the end that the next segment or the clean close names.
    NamedEnd,
    /// The file ends.
    EndOfFile,
    /// Only zeros follow.
    Zeros,
    /// Bytes follow that are not recognisable as this log's: the rest of a recycled segment, or
    /// a record that was not written to its end.
    Unrecognised,
    /// A record of this log begins there that is not whole, or whole ones come later.
    Torn,
    /// The header is not whole and no record follows: the segment was being created.
    NoHeader,
}

/// The place where reading ended, and what is behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogStop {
    /// The offset behind the last record taken.
    pub offset: u64,
    /// What was found there.
    pub reason: StopReason,
    /// Whole records of this log behind the stop.
    pub records_behind: u64,
    /// The largest `synced_through` of those; 0 without any.
    pub watermark: u64,
    /// Bytes from the stop to the end of the last thing that is recognisable as this log's.
    pub dropped_bytes: u64,
}

/// A log being read. One thread at a time.
pub struct WalReader {
    file: Arc<dyn File>,
    length: u64,
    log_number: u64,
    identity: Checksum,
    header: Result<LogHeader>,
    /// The number in a header that is whole and of this database, if it is another.
    other_number: Option<u64>,
    offset: u64,
    window: Vec<u8>,
    window_start: u64,
}

impl WalReader {
    /// Opens the log of `kind` that should have that number and belong to that database. A
    /// header that is not whole is no error yet, see [`WalReader::header`]; one of another
    /// database or with unknown incompatible features is.
    pub fn open(
        file_system: &dyn FileSystem,
        path: &Path,
        kind: LogKind,
        database_id: u128,
        log_number: u64,
    ) -> Result<Self> {
        let file = file_system.open(path, OpenMode::Read)?;
        let length = file.length()?;
        file.advise(0, 0, Advice::Sequential)?;
        let mut bytes = vec![0; HEADER_SIZE_BYTES];
        let count = file.read_at(&mut bytes, 0)?;
        bytes.truncate(count);
        let header = LogHeader::decode(&bytes, kind).map_err(|error| error.at(path, 0));
        let mut other_number = None;
        let mut is_foreign = header.as_ref().is_ok_and(|header| header.database_id != database_id);
        if planted!(ForeignLogAccepted) {
            is_foreign = false;
        }
        let header = match header {
            Err(error) if error.kind() != ErrorKind::Corruption => return Err(error),
            Ok(header) if is_foreign => {
                return Err(Error::corruption("file of another database").at(path, 24).expected(
                    format_args!("{database_id:032x}"),
                    format_args!("{:032x}", header.database_id),
                ));
            }
            Ok(header) if header.log_number != log_number => {
                other_number = Some(header.log_number);
                Err(Error::corruption(format!("{} header: number", kind.name()))
                    .at(path, 40)
                    .expected(log_number, header.log_number))
            }
            header => header,
        };
        Ok(WalReader {
            file,
            length,
            log_number,
            identity: identity(database_id),
            header,
            other_number,
            offset: HEADER_SIZE_BYTES as u64,
            window: Vec::new(),
            window_start: 0,
        })
    }

    /// The header, or what is wrong with it.
    pub fn header(&self) -> Result<&LogHeader> {
        self.header.as_ref().map_err(Error::clone)
    }

    /// Whether a log without a header of its own is more than one that was never begun: it holds a
    /// record, or has the whole header of another log that it cannot have been before. Logs with
    /// numbers below `oldest_needed` are used again; `None` if that is not known.
    pub fn lost_its_header(&mut self, oldest_needed: Option<u64>) -> Result<bool> {
        let was_before =
            |number| number < self.log_number && oldest_needed.is_none_or(|oldest| number < oldest);
        let is_another = self.other_number.is_some_and(|number| !was_before(number));
        Ok(is_another || self.holds_a_record()?)
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The offset behind the last record that was taken.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The next record; `None` where there is none any more.
    pub fn next_record(&mut self) -> Result<Option<LogRecord<'_>>> {
        let offset = self.offset;
        let Some(frame) = self.verified_frame(offset)? else {
            return Ok(None);
        };
        let end_offset = offset + stored_size_bytes(frame.payload_length as usize);
        self.offset = end_offset;
        let position = WalPosition { log_number: self.log_number, offset, end_offset };
        let start = (offset - self.window_start) as usize + FRAME_SIZE_BYTES;
        let payload = self.window.get(start..start + frame.payload_length as usize);
        // A frame is only verified with its whole record in the window.
        let record =
            |payload| LogRecord { position, synced_through: frame.synced_through, payload };
        Ok(payload.map(record))
    }

    /// Looks behind the place where [`WalReader::next_record`] found nothing more. Reads the rest
    /// of the file.
    pub fn stop(&mut self) -> Result<LogStop> {
        let start = self.offset;
        let mut records_behind = 0;
        let mut watermark = 0;
        let mut recognised_end = start;
        let mut only_zeros = true;
        let mut claimed_bytes = 0;
        let mut offset = start;
        while offset < self.length {
            let size = ALIGNMENT.min(self.length - offset);
            let word = self.bytes_at(offset, size)?;
            only_zeros &= word.iter().all(|byte| *byte == 0);
            if let Some(frame) = self.claimed_frame(offset)? {
                let end = offset + stored_size_bytes(frame.payload_length as usize);
                // What begins at the stop itself is known not to be whole.
                // One that reaches beyond the file costs nothing to refuse.
                if end.saturating_sub(self.length) < ALIGNMENT {
                    claimed_bytes += end - offset;
                }
                if claimed_bytes / CLAIMED_SHARE_MAX > self.length {
                    let what = "log full of overlapping records that are not whole";
                    return Err(Error::corruption(what).at(self.file.path(), start));
                }
                if offset == start {
                    recognised_end = end;
                } else if self.verified_frame(offset)?.is_some() {
                    recognised_end = recognised_end.max(end);
                    records_behind += 1;
                    watermark = watermark.max(frame.synced_through);
                    only_zeros = false;
                    offset = end;
                    continue;
                }
            }
            offset += ALIGNMENT;
        }
        let reason = match () {
            () if recognised_end > start => StopReason::Torn,
            () if start >= self.length => StopReason::EndOfFile,
            () if only_zeros => StopReason::Zeros,
            () => StopReason::Unrecognised,
        };
        let dropped_bytes = recognised_end.min(self.length.max(start)) - start;
        Ok(LogStop { offset: start, reason, records_behind, watermark, dropped_bytes })
    }

    /// Goes to the next whole record behind the place where [`WalReader::next_record`] found none.
    /// False, and nothing has changed, if there is none. What lies between is lost, and with it
    /// that the records are a prefix of what was written.
    pub fn skip_damage(&mut self) -> Result<bool> {
        let mut claimed_bytes = 0;
        let mut offset = self.offset + ALIGNMENT;
        while offset < self.length {
            if let Some(frame) = self.claimed_frame(offset)? {
                claimed_bytes += stored_size_bytes(frame.payload_length as usize);
                if claimed_bytes / CLAIMED_SHARE_MAX > self.length {
                    return Ok(false);
                }
                if self.verified_frame(offset)?.is_some() {
                    self.offset = offset;
                    return Ok(true);
                }
            }
            offset += ALIGNMENT;
        }
        Ok(false)
    }

    /// Whether any record of this log can be found anywhere in the file.
    pub fn holds_a_record(&mut self) -> Result<bool> {
        if self.verified_frame(self.offset)?.is_some() {
            return Ok(true);
        }
        Ok(self.stop()?.records_behind > 0)
    }

    /// The frame at `offset`, if it claims to be of this log and place.
    fn claimed_frame(&mut self, offset: u64) -> Result<Option<Frame>> {
        if self.length.saturating_sub(offset) < FRAME_SIZE_BYTES as u64 {
            return Ok(None);
        }
        let log_number = self.log_number;
        let bytes = self.bytes_at(offset, FRAME_SIZE_BYTES as u64)?;
        Ok(Frame::claimed(bytes, log_number, offset))
    }

    /// The frame at `offset`, if it and its payload, which is then in the window, are whole.
    fn verified_frame(&mut self, offset: u64) -> Result<Option<Frame>> {
        let Some(frame) = self.claimed_frame(offset)? else {
            return Ok(None);
        };
        let size = FRAME_SIZE_BYTES as u64 + u64::from(frame.payload_length);
        if size > self.length - offset {
            return Ok(None);
        }
        let identity = self.identity;
        let record = self.bytes_at(offset, size)?;
        Ok(Frame::verifies(record, identity).then_some(frame))
    }

    /// `size` bytes at `offset`, both within the file's length.
    fn bytes_at(&mut self, offset: u64, size: u64) -> Result<&[u8]> {
        let window_end = self.window_start + self.window.len() as u64;
        if offset < self.window_start || offset + size > window_end {
            let wanted = size.max(WINDOW_SIZE_BYTES).min(self.length - offset);
            self.window.resize(wanted as usize, 0);
            self.window_start = offset;
            let count = self.file.read_at(&mut self.window, offset)?;
            self.window.truncate(count);
        }
        let start = (offset - self.window_start) as usize;
        self.window.get(start..start + size as usize).ok_or_else(|| {
            Error::corruption("the file became shorter while it was read")
                .at(self.file.path(), offset)
        })
    }
}
