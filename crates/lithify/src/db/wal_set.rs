//! The segments of the log: the one being written, those that still hold unflushed writes, and
//! those that wait to be used again.
//!
//! Belongs to the commit leader (or whoever holds the writer). A segment is finished, that is
//! synced, before the next one takes data; a segment that every column family has flushed past is
//! kept for recycling or removed.

use super::inner::DbInner;
use crate::base::FileNumber;
use crate::manifest::FileName;
use crate::stats::{Cause, Counter};
use crate::wal::{LogKind, RecoveryReport, SegmentEnd, SegmentOptions, WalWriter};
use crate::{ErrorKind, Result};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::path::PathBuf;

/// So many segments are kept for recycling.
const RECYCLED_MAX: usize = 2;

/// The log's written pages go to the disk in strides of this size, so that the sync at the end of
/// a segment finds little left to do.
const WRITE_BACK_STRIDE_BYTES: u64 = 1 << 20;

struct Closed {
    number: FileNumber,
    bytes: u64,
}

/// The log of a database.
#[derive(Default)]
pub(crate) struct WalSet {
    current: Option<WalWriter>,
    /// Older segments that hold writes which are in no table yet, oldest first.
    closed: VecDeque<Closed>,
    recyclable: Vec<PathBuf>,
    previous: Option<SegmentEnd>,
    written_back_through: u64,
    /// When everything appended by then was made durable, by the environment's clock.
    synced_at_us: u64,
}

impl WalSet {
    /// A log that goes on behind what was recovered; the first append starts a segment. The
    /// recovered segments stay until their writes are flushed.
    pub(crate) fn recovered(previous: Option<SegmentEnd>, reports: &[RecoveryReport]) -> Self {
        let closed = reports.iter().map(|report| Closed {
            number: report.segment.log_number,
            bytes: report.stopped_at_offset,
        });
        WalSet { previous, closed: closed.collect(), ..WalSet::default() }
    }

    /// The number of the segment being written; 0 before the first append.
    pub(crate) fn current_number(&self) -> FileNumber {
        self.current.as_ref().map_or(0, WalWriter::log_number)
    }

    /// Bytes in all segments that are needed.
    pub(crate) fn bytes(&self) -> u64 {
        let current = self.current.as_ref().map_or(0, WalWriter::end_offset);
        current + self.closed.iter().map(|segment| segment.bytes).sum::<u64>()
    }

    /// Appends one record, in a new segment if the current one is full.
    pub(crate) fn append(&mut self, inner: &DbInner, pieces: &[IoSlice<'_>]) -> Result<()> {
        let full = |wal: &WalWriter| wal.end_offset() >= inner.wal_segment_bytes();
        if self.current.as_ref().is_none_or(full) {
            self.roll(inner)?;
        }
        let Some(wal) = &mut self.current else { return Ok(()) };
        let before = wal.end_offset();
        let position = wal.append(pieces)?;
        inner.ledger.book_written(Cause::Wal, 0, 0, position.end_offset - before);
        inner.ledger.count(Counter::WalWrites, 1);
        if position.end_offset - self.written_back_through >= WRITE_BACK_STRIDE_BYTES {
            let length = position.end_offset - self.written_back_through;
            wal.start_sync()?.file().sync_range(self.written_back_through, length)?;
            self.written_back_through = position.end_offset;
        }
        Ok(())
    }

    /// Makes everything appended so far durable.
    pub(crate) fn sync(&mut self, inner: &DbInner) -> Result<()> {
        let now_us = inner.world.environment.now_us();
        if let Some(wal) = &mut self.current {
            if wal.synced_through() < wal.end_offset() {
                inner.ledger.count(Counter::WalSyncs, 1);
            }
            wal.sync()?;
        }
        self.synced_at_us = now_us;
        Ok(())
    }

    /// When the last sync of everything began.
    pub(crate) fn synced_at_us(&self) -> u64 {
        self.synced_at_us
    }

    /// The current writer, for a sync that runs beside appends.
    pub(crate) fn current_mut(&mut self) -> Option<&mut WalWriter> {
        self.current.as_mut()
    }

    fn roll(&mut self, inner: &DbInner) -> Result<()> {
        self.finish(inner)?;
        let number = inner.file_numbers.take();
        inner.note_wal_number(number);
        let options = SegmentOptions {
            kind: LogKind::Wal,
            database_id: inner.database_id,
            log_number: number,
            previous: self.previous,
            preallocate_bytes: 0,
        };
        let path = FileName::Wal(number).path(&inner.path);
        let recycled = self.recyclable.pop();
        let files = &*inner.world.files;
        let created = WalWriter::create(files, &path, options, recycled.as_deref());
        let wal = created.inspect_err(|error| {
            // The next try takes another number. A failed sync is another matter: the header may
            // be durable then, and the file has to stay.
            if error.kind() == ErrorKind::NoSpace {
                let _ = files.remove(&path);
            }
        })?;
        inner.ledger.book_written(Cause::Wal, 0, 0, wal.end_offset());
        self.written_back_through = wal.end_offset();
        self.current = Some(wal);
        Ok(())
    }

    /// Syncs and ends the current segment; gives the end of the log.
    pub(crate) fn finish(&mut self, inner: &DbInner) -> Result<Option<SegmentEnd>> {
        self.sync(inner)?;
        if let Some(mut wal) = self.current.take() {
            let end = wal.finish()?;
            self.closed.push_back(Closed { number: end.log_number, bytes: end.end_offset });
            self.previous = Some(end);
        }
        Ok(self.previous)
    }

    /// Takes the segments below `oldest_needed` out of the log: some are kept for recycling, the
    /// others are given back to be removed.
    pub(crate) fn release_below(
        &mut self,
        inner: &DbInner,
        oldest_needed: FileNumber,
    ) -> Vec<PathBuf> {
        let mut unneeded = Vec::new();
        while self.closed.front().is_some_and(|segment| segment.number < oldest_needed) {
            if let Some(segment) = self.closed.pop_front() {
                let path = FileName::Wal(segment.number).path(&inner.path);
                if self.recyclable.len() < RECYCLED_MAX {
                    self.recyclable.push(path);
                } else {
                    unneeded.push(path);
                }
            }
        }
        unneeded
    }
}
