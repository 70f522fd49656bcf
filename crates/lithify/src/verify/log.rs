//! Log segments: the chain of their headers, their records, and how far they must be whole.

use super::manifest::read_header;
use super::report::{Structure, Weight};
use super::{Examination, FoundManifest};
use crate::base::{ColumnFamilyId, FileNumber, SequenceNumber};
use crate::db::GroupHead;
use crate::manifest::FileName;
use crate::wal::{LogKind, LogRecord, SegmentEnd, StopReason, WalReader};
use crate::{Error, Result};

/// Records are handed to the pace in lots of so many bytes.
const PACE_BYTES: u64 = 64 << 10;

/// What segments are compared with; each is `None` if it is not known.
#[derive(Clone, Copy)]
pub(super) struct Known {
    /// Column families with this id and larger ones were never made.
    pub(super) next_id: Option<ColumnFamilyId>,
    /// Segments with smaller numbers are needed no more.
    pub(super) oldest_needed: Option<FileNumber>,
}

impl Examination<'_> {
    /// Examines the segments, which ascend. An error is the end that the caller asked for.
    pub(super) fn log(&mut self, segments: &[FileNumber], found: &FoundManifest) -> Result<()> {
        if planted!(VerifyPassesOverLog) {
            return Ok(());
        }
        let mut readers: Vec<(FileNumber, WalReader)> = Vec::new();
        for number in segments {
            if let Some(reader) = self.open_segment(*number, found.database_id) {
                readers.push((*number, reader));
            }
        }
        let close = found.state.clean_close.map(|close| close.log_end).filter(|_| found.is_whole);
        let oldest_needed = found.is_whole.then(|| found.state.oldest_log_needed());
        self.check_chain(&readers, oldest_needed, close);
        self.check_begun(&readers, oldest_needed, found.begun_log);
        let next_id = found.is_whole.then_some(found.state.next_family_id);
        let known = Known { next_id, oldest_needed };
        let mut last_sequence = 0;
        for index in 0..readers.len() {
            let (before, rest) = readers.split_at_mut(index + 1);
            let Some((number, reader)) = before.last_mut() else { break };
            let end = named_end(*number, rest, close);
            self.segment(reader, end, known, &mut last_sequence)?;
        }
        Ok(())
    }

    pub(super) fn open_segment(
        &mut self,
        number: FileNumber,
        database_id: Option<u128>,
    ) -> Option<WalReader> {
        let files = &*self.world.files;
        let path = FileName::Wal(number).path(self.directory);
        let opened = match database_id {
            Some(id) => Ok(id),
            None => read_header(files, &path, LogKind::Wal).map(|header| header.database_id),
        }
        .and_then(|id| WalReader::open(files, &path, LogKind::Wal, id, number));
        match opened {
            Ok(reader) => Some(reader),
            Err(error) => {
                self.log_damage(Structure::LogSegment, error.in_file(path));
                None
            }
        }
    }

    fn log_damage(&mut self, structure: Structure, error: Error) {
        self.report.add(Weight::Damage, structure, None, error);
    }

    /// The headers that are whole must name each other, and nothing that is needed may be missing.
    fn check_chain(
        &mut self,
        readers: &[(FileNumber, WalReader)],
        oldest_needed: Option<FileNumber>,
        close: Option<SegmentEnd>,
    ) {
        let mut before: Option<u64> = None;
        for (_, reader) in readers {
            let Ok(header) = reader.header() else { continue };
            let named = header.previous.map(|end| end.log_number);
            let is_broken = match before {
                Some(_) => named != before,
                None => named.is_some_and(|named| oldest_needed.is_some_and(|o| named >= o)),
            };
            if is_broken {
                let number = |n: Option<u64>| n.map_or("none".to_string(), |n| n.to_string());
                let error = Error::corruption("a log segment is missing before this one")
                    .at(reader.path(), 48)
                    .expected(
                        format_args!("predecessor {}", number(before)),
                        format_args!("predecessor {}", number(named)),
                    );
                self.log_damage(Structure::LogSegment, error);
            }
            before = Some(header.log_number);
        }
        if let Some(end) = close.filter(|end| is_missing(readers, oldest_needed, end.log_number)) {
            let what = "the database was closed with this log segment, and it is missing or has no \
                        header";
            let path = FileName::Wal(end.log_number).path(self.directory);
            self.log_damage(Structure::LogSegment, Error::corruption(what).in_file(path));
        }
    }

    /// The newest segment that is known to have begun must be there with its header, if it is needed
    /// still. No other file would tell.
    fn check_begun(
        &mut self,
        readers: &[(FileNumber, WalReader)],
        oldest_needed: Option<FileNumber>,
        begun: FileNumber,
    ) {
        if !is_missing(readers, oldest_needed, begun) {
            return;
        }
        let what = "a log segment that had begun is missing or has no header";
        let path = FileName::Wal(begun).path(self.directory);
        self.log_damage(Structure::LogSegment, Error::corruption(what).in_file(path));
    }

    /// Examines one segment, which must be whole up to `end` if that is known. The error is the end
    /// that the caller asked for.
    pub(super) fn segment(
        &mut self,
        reader: &mut WalReader,
        end: Option<u64>,
        known: Known,
        last_sequence: &mut SequenceNumber,
    ) -> Result<()> {
        let path = reader.path().to_path_buf();
        self.report.examined.log_segments += 1;
        if let Err(damage) = reader.header() {
            // The header is durable before the first record.
            match reader.lost_its_header(known.oldest_needed) {
                Ok(false) => {}
                Ok(true) => self.log_damage(Structure::LogSegment, damage),
                Err(error) => self.log_damage(Structure::LogSegment, error),
            }
        }
        let mut passed_bytes = 0;
        loop {
            let offset = reader.offset();
            if end.is_some_and(|end| offset >= end) {
                break;
            }
            if offset - passed_bytes >= PACE_BYTES {
                self.pace.advance(offset - passed_bytes)?;
                passed_bytes = offset;
            }
            match reader.next_record() {
                Ok(Some(record)) if end.is_none_or(|end| record.position.end_offset <= end) => {
                    self.report.examined.log_records += 1;
                    if let Err(error) = check_group(&record, known, last_sequence) {
                        self.log_damage(Structure::LogRecord, error.at(&path, offset));
                    }
                }
                Ok(_) => {
                    if !self.look_behind(reader, end) {
                        break;
                    }
                }
                Err(error) => {
                    self.log_damage(Structure::LogSegment, error);
                    break;
                }
            }
        }
        let length = self.world.files.length(&path).unwrap_or(0);
        self.report.examined.log_bytes += length;
        self.pace.advance(length.saturating_sub(passed_bytes))
    }

    /// There is no record any more, and the named end is not reached. Whether there are others
    /// behind the damage.
    fn look_behind(&mut self, reader: &mut WalReader, end: Option<u64>) -> bool {
        let path = reader.path().to_path_buf();
        let stop = match reader.stop() {
            Ok(stop) => stop,
            Err(error) => {
                self.log_damage(Structure::LogSegment, error);
                return false;
            }
        };
        let must_reach = end.unwrap_or(stop.watermark);
        if must_reach > stop.offset {
            let expected = format!("whole records up to offset {must_reach}");
            let error = Error::corruption("log damaged below what was synced")
                .at(&path, stop.offset)
                .expected(expected, format!("{} whole ones behind it", stop.records_behind));
            self.log_damage(Structure::LogRecord, error);
            return reader.skip_damage().unwrap_or(false);
        }
        if stop.reason == StopReason::Torn {
            let what = format!(
                "the end of the log is not whole and not known to have been synced: the next \
                 opening drops {} bytes",
                stop.dropped_bytes
            );
            let error = Error::corruption(what).at(&path, stop.offset);
            self.report.add(Weight::Notice, Structure::LogRecord, None, error);
        }
        false
    }
}

/// Whether a segment is needed and is not there, or has no header.
pub(crate) fn is_missing(
    readers: &[(FileNumber, WalReader)],
    oldest_needed: Option<FileNumber>,
    number: FileNumber,
) -> bool {
    let is_needed = oldest_needed.is_some_and(|oldest| number >= oldest);
    let is_there = readers.iter().any(|(n, r)| *n == number && r.header().is_ok());
    number > 0 && is_needed && !is_there
}

/// Where a segment ends, as told by the next header that is whole, or by the clean close.
pub(crate) fn named_end(
    number: FileNumber,
    later: &[(FileNumber, WalReader)],
    close: Option<SegmentEnd>,
) -> Option<u64> {
    let named = later.iter().find_map(|(_, reader)| reader.header().ok()?.previous);
    let named = named.filter(|end| end.log_number == number);
    let closed = close.filter(|end| end.log_number == number);
    named.or(closed).map(|end| end.end_offset)
}

/// Whether the payload of a record is a group of writes to known column families, newer than those
/// before it.
fn check_group(
    record: &LogRecord<'_>,
    known: Known,
    last_sequence: &mut SequenceNumber,
) -> Result<()> {
    let (head, entries) = GroupHead::split(record.payload)?;
    let mut found = 0;
    for entry in entries {
        let family = entry?.family;
        if known.next_id.is_some_and(|next_id| family >= next_id) {
            let what = "the log holds writes to a column family that the manifest does not know";
            return Err(Error::corruption(what));
        }
        found += 1;
    }
    if found != u64::from(head.entry_count) {
        return Err(GroupHead::miscounted(head.entry_count, found));
    }
    if head.first_sequence <= *last_sequence {
        return Err(Error::corruption("sequence numbers of the log do not ascend")
            .expected(format_args!("more than {last_sequence}"), head.first_sequence));
    }
    *last_sequence = (head.first_sequence + found).saturating_sub(1).max(*last_sequence);
    Ok(())
}
