//! Recovers the segments that a database needs, in order, and decides what a stop means.
//!
//! 1. The headers are read. Those that are whole must form a chain: each names its predecessor.
//! 2. A segment whose end is named, by its successor's header or by the clean close, must be whole
//!    up to there: the name was written after a sync.
//! 3. The last segment has no such witness. There a later record that knows the stop as synced
//!    makes it corruption; otherwise the rest is dropped and reported.
//! 4. What of the last segment is not known as durable is written again and synced before its end
//!    may be named. A sync alone would not do: after one that failed, the system may hold pages as
//!    clean that never reached the medium.
//! 5. A segment without a whole header was being created and is empty: the header is durable
//!    before the first record, so if it holds a record it is corruption.

use super::frame::ALIGNMENT;
use super::header::{LogKind, SegmentEnd};
use super::reader::{LogRecord, StopReason, WalReader};
use crate::fs::{FileSystem, OpenMode};
use crate::{Error, Result};
use std::fmt;
use std::io::IoSlice;
use std::path::PathBuf;

/// Bytes read and written at once where the end of the log is made durable.
const REWRITE_SIZE_BYTES: u64 = 256 << 10;

/// A segment in the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentFile {
    /// The number in its name.
    pub log_number: u64,
    /// Where it is.
    pub path: PathBuf,
}

/// What the manifest knows of the log.
#[derive(Clone, Copy, Debug)]
pub struct RecoveryOptions {
    /// The database.
    pub database_id: u128,
    /// Segments with smaller numbers may be gone; this one and later ones may not.
    pub oldest_needed: u64,
    /// The end of the log at the last clean close.
    pub clean_close: Option<SegmentEnd>,
    /// Whether nothing may be written; the end that is found must then not be named in a
    /// new segment.
    pub read_only: bool,
}

/// What was read of one segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveryReport {
    /// The segment.
    pub segment: SegmentFile,
    /// Records that were replayed.
    pub records: u64,
    /// The offset behind the last of them.
    pub stopped_at_offset: u64,
    /// Bytes behind it that are recognisable as records of this segment and were dropped, because
    /// none of them is known to have been synced.
    pub dropped_bytes: u64,
    /// What was found there.
    pub reason: StopReason,
    /// Bytes of the segment before this offset are known to be durable.
    pub durable_through: u64,
}

impl fmt::Display for RecoveryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = match self.reason {
            StopReason::NamedEnd => "its recorded end",
            StopReason::EndOfFile => "the end of the file",
            StopReason::Zeros => "zeros",
            StopReason::Unrecognised => "bytes that are no record of this segment",
            StopReason::Torn => "a record that is not whole and not known to have been synced",
            StopReason::NoHeader => "no whole header (it was being created)",
        };
        write!(
            f,
            "{}: {} records replayed, stopped at offset {} at {reason}, {} bytes dropped",
            self.segment.path.display(),
            self.records,
            self.stopped_at_offset,
            self.dropped_bytes
        )
    }
}

/// What became of the log.
#[derive(Clone, Debug, Default)]
pub struct Recovery {
    /// One report for each segment, in order.
    pub reports: Vec<RecoveryReport>,
    /// The end of the last segment with a header; a new segment names it as its predecessor.
    /// Durable, unless recovery was read-only.
    pub end: Option<SegmentEnd>,
    /// Bytes at the end of the log that were written once more to make them durable.
    pub rewritten_bytes: u64,
}

impl Recovery {
    /// The reports of segments from which something was dropped.
    pub fn dropped(&self) -> impl Iterator<Item = &RecoveryReport> {
        self.reports.iter().filter(|report| report.dropped_bytes > 0)
    }
}

/// Reads `segments`, sorted by number, and hands every record to `on_record`, whose error ends
/// the recovery. On an error the records handed out so far must be thrown away.
///
/// [`crate::ErrorKind::Corruption`], with file and offset, if a record that was durable is not
/// there or a segment is missing; [`crate::ErrorKind::Unsupported`] for an unknown feature.
pub fn recover_segments(
    file_system: &dyn FileSystem,
    segments: &[SegmentFile],
    options: &RecoveryOptions,
    on_record: &mut dyn FnMut(LogRecord<'_>) -> Result<()>,
) -> Result<Recovery> {
    let mut readers = open_all(file_system, segments, options)?;
    check_chain(&readers, segments, options)?;
    let mut recovery = Recovery::default();
    for index in 0..readers.len() {
        let (Some(segment), Some((reader, later))) =
            (segments.get(index), readers.get_mut(index..).and_then(<[_]>::split_first_mut))
        else {
            break;
        };
        if let Err(damage) = reader.header() {
            let oldest_needed = options.oldest_needed;
            recovery.reports.push(recover_headless(reader, segment, damage, oldest_needed)?);
            continue;
        }
        let end = named_end(later, segment.log_number, options.clean_close)?;
        let report = match end {
            Some(end_offset) => recover_to_end(reader, segment, end_offset, on_record)?,
            None => recover_open_end(reader, segment, on_record)?,
        };
        let (log_number, end_offset) = (segment.log_number, report.stopped_at_offset);
        recovery.end = Some(SegmentEnd { log_number, end_offset });
        recovery.reports.push(report);
    }
    if planted!(RecoveredEndUnsynced) {
        return Ok(recovery);
    }
    if !options.read_only {
        recovery.rewritten_bytes = make_end_durable(file_system, &recovery)?;
    }
    Ok(recovery)
}

fn open_all(
    file_system: &dyn FileSystem,
    segments: &[SegmentFile],
    options: &RecoveryOptions,
) -> Result<Vec<WalReader>> {
    let open = |segment: &SegmentFile| {
        let (database_id, log_number) = (options.database_id, segment.log_number);
        let reader =
            WalReader::open(file_system, &segment.path, LogKind::Wal, database_id, log_number)?;
        match reader.header() {
            Ok(header) if !options.read_only => header.check_writable(&segment.path)?,
            _ => {}
        }
        Ok(reader)
    };
    segments.iter().map(open).collect()
}

/// The headers that are whole must name each other, and nothing that is needed may be missing.
fn check_chain(
    readers: &[WalReader],
    segments: &[SegmentFile],
    options: &RecoveryOptions,
) -> Result<()> {
    let mut before: Option<u64> = None;
    for reader in readers {
        let Ok(header) = reader.header() else { continue };
        let named = header.previous.map(|end| end.log_number);
        let broken = match before {
            Some(_) => named != before,
            None => named.is_some_and(|named| named >= options.oldest_needed),
        };
        if broken {
            // What is damaged is not missing.
            let mut present = readers.iter().zip(segments);
            let damaged = present.find(|(_, segment)| Some(segment.log_number) == named);
            if let Some(damage) = damaged.and_then(|(reader, _)| reader.header().err()) {
                return Err(damage);
            }
            let number = |number: Option<u64>| number.map_or("none".into(), |n| n.to_string());
            return Err(Error::corruption("a log segment is missing before this one")
                .at(reader.path(), 48)
                .expected(
                    format_args!("predecessor {}", number(before)),
                    format_args!("predecessor {}", number(named)),
                ));
        }
        before = Some(header.log_number);
    }
    let Some(end) = options.clean_close else { return Ok(()) };
    let needed = end.log_number >= options.oldest_needed;
    let mut present = readers.iter().zip(segments);
    match present.find(|(_, segment)| segment.log_number == end.log_number) {
        _ if !needed => Ok(()),
        Some((reader, _)) => reader.header().map(drop),
        None => Err(Error::corruption(format!(
            "log segment {} is missing, but the database was closed with it",
            end.log_number
        ))),
    }
}

/// Where the segment ends, as told by the next header that is whole or by the clean close.
fn named_end(
    later: &[WalReader],
    log_number: u64,
    clean_close: Option<SegmentEnd>,
) -> Result<Option<u64>> {
    let successor = later.iter().find_map(|reader| Some((reader, reader.header().ok()?.previous?)));
    let closed = clean_close.filter(|end| end.log_number == log_number);
    let Some((reader, named)) = successor else {
        return Ok(closed.map(|end| end.end_offset));
    };
    match closed {
        Some(closed) if closed.end_offset != named.end_offset => Err(Error::corruption(
            "the segment's predecessor ends elsewhere than at the clean close",
        )
        .at(reader.path(), 56)
        .expected(closed.end_offset, named.end_offset)),
        _ => Ok(Some(named.end_offset)),
    }
}

/// A segment that was being created. Its file may have been one that was used before: an older
/// one, which nobody needed any more. Any other whole header says that files have changed names.
fn recover_headless(
    reader: &mut WalReader,
    segment: &SegmentFile,
    damage: Error,
    oldest_needed: u64,
) -> Result<RecoveryReport> {
    if reader.lost_its_header(Some(oldest_needed))? {
        return Err(damage);
    }
    Ok(RecoveryReport {
        segment: segment.clone(),
        records: 0,
        stopped_at_offset: 0,
        dropped_bytes: 0,
        reason: StopReason::NoHeader,
        durable_through: 0,
    })
}

fn recover_to_end(
    reader: &mut WalReader,
    segment: &SegmentFile,
    end_offset: u64,
    on_record: &mut dyn FnMut(LogRecord<'_>) -> Result<()>,
) -> Result<RecoveryReport> {
    let mut records = 0;
    while reader.offset() != end_offset {
        let offset = reader.offset();
        match reader.next_record()? {
            Some(record) if record.position.end_offset <= end_offset => on_record(record)?,
            found => {
                if planted!(NamedEndIgnored) {
                    break;
                }
                let found = if found.is_some() { "a longer record" } else { "no record" };
                return Err(Error::corruption("log damaged before its recorded end")
                    .at(&segment.path, offset)
                    .expected(format_args!("records up to offset {end_offset}"), found));
            }
        }
        records += 1;
    }
    Ok(RecoveryReport {
        segment: segment.clone(),
        records,
        stopped_at_offset: end_offset,
        dropped_bytes: 0,
        reason: StopReason::NamedEnd,
        durable_through: end_offset,
    })
}

fn recover_open_end(
    reader: &mut WalReader,
    segment: &SegmentFile,
    on_record: &mut dyn FnMut(LogRecord<'_>) -> Result<()>,
) -> Result<RecoveryReport> {
    let mut records = 0;
    let mut durable_through = 0;
    while let Some(record) = reader.next_record()? {
        durable_through = record.synced_through;
        records += 1;
        if planted!(RecordPassedOver) && records == 3 {
            continue;
        }
        on_record(record)?;
    }
    let stop = reader.stop()?;
    let mut is_below_synced = stop.watermark > stop.offset;
    if planted!(SyncedDamageAccepted) {
        is_below_synced = false;
    }
    if is_below_synced {
        return Err(Error::corruption("log damaged below what was synced")
            .at(&segment.path, stop.offset)
            .expected(format_args!("records up to offset {}", stop.watermark), "no record"));
    }
    Ok(RecoveryReport {
        segment: segment.clone(),
        records,
        stopped_at_offset: stop.offset,
        dropped_bytes: stop.dropped_bytes,
        reason: stop.reason,
        durable_through,
    })
}

/// Writes what is not known as durable at the end of the log once more, in place, and syncs it.
/// Returns the bytes written.
fn make_end_durable(file_system: &dyn FileSystem, recovery: &Recovery) -> Result<u64> {
    let last = recovery.reports.iter().rfind(|report| report.reason != StopReason::NoHeader);
    let Some(last) = last.filter(|last| last.durable_through < last.stopped_at_offset) else {
        return Ok(0);
    };
    let file = file_system.open(&last.segment.path, OpenMode::ReadWrite)?;
    let mut offset = last.durable_through;
    while offset < last.stopped_at_offset {
        let size = (last.stopped_at_offset - offset).min(REWRITE_SIZE_BYTES);
        let mut bytes = vec![0; size as usize];
        let count = file.read_at(&mut bytes, offset)?;
        // A file may end within the padding of its last record, which then becomes whole.
        if size - count as u64 >= ALIGNMENT {
            return Err(Error::corruption("the log became shorter while it was recovered")
                .at(&last.segment.path, offset + count as u64));
        }
        file.write_at(&[IoSlice::new(&bytes)], offset)?;
        offset += size;
    }
    file.sync_data()?;
    Ok(offset - last.durable_through)
}
