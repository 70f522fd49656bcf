//! The segments of the log: the one being written, those that still hold unflushed writes, and
//! those that wait to be used again.
//!
//! Belongs to the commit leader (or whoever holds the writer). A segment is finished, that is
//! synced, before the next one takes data; a segment that every column family has flushed past is
//! kept for recycling or removed.
//!
//! Space is reserved in proportion to what was logged: a quarter more than that, from 16 KiB to a
//! whole segment. So a small database has a small log, and one that data flow into reserves as much
//! at once as it ever did. At rest and at a clean close what was reserved is given back
//! ([`super::log_rest`]).
//!
//! Small commits that are synced one by one find zeros where they are written: else each sync would have
//! the file system's journal note that the file has grown.
//!
//! What need not be done while writers wait is a background job, [`LogCare`]: it starts the write
//! back of what was appended, makes the file of the next segment, its space reserved, when the
//! current one is half full, and syncs the current one when it is full. Until that is done the
//! segment may grow to twice its size, so that a disk that hangs for a moment keeps no writer
//! waiting. What is left to the writer that begins the next segment is to sync the last of the old
//! one and the new header.

use crate::base::{FileNumber, Level};
use crate::compaction::scheduler::{Ending, Job, Spent, Step, StepContext, Urgency};
use crate::db::inner::{DbInner, lock};
use crate::fs::File;
use crate::manifest::FileName;
use crate::stats::{Cause, Counter};
use crate::wal::{LogKind, PreparedFile, RecoveryReport, SegmentEnd, SegmentOptions, WalWriter};
use crate::{Error, ErrorKind, Result};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// So many segments are kept for recycling.
const RECYCLED_MAX: usize = 2;

/// The log's written pages go to the disk in strides of this size, so that the sync at the end of
/// a segment finds little left to do.
const WRITE_BACK_STRIDE_BYTES: u64 = 1 << 20;

/// A segment has been synced far enough to be ended when no more than this part of it is left.
const SYNC_REST_PART: u64 = 16;

/// The first space that is reserved, and the least.
const RESERVE_BYTES_MIN: u64 = 16 << 10;

/// So much is reserved ahead of what was logged since the log last rested.
const RESERVE_PART: u64 = 4;

/// At most so many zeros are written ahead of small synced commits at once.
const FILL_BYTES_MAX: u64 = 256 << 10;

/// A commit is small if it is less than this part of the zeros that it would be written with.
const FILL_PART: u64 = 8;

pub(super) struct Closed {
    pub(super) number: FileNumber,
    pub(super) bytes: u64,
    /// Whether the file ends with the last record.
    pub(super) is_cut: bool,
}

/// A segment whose file is there and whose header is not.
struct NextSegment {
    number: FileNumber,
    path: PathBuf,
    file: PreparedFile,
}

/// Files for segments to come; shared with the job that prepares them.
#[derive(Default)]
pub(super) struct SegmentPool {
    recyclable: Mutex<Vec<PathBuf>>,
    /// Held while it is being prepared: a writer that needs it waits for that.
    next: Mutex<Option<NextSegment>>,
    /// Whether `next` is there, for those who must not wait.
    is_prepared: AtomicBool,
    /// Whether a job takes care of the log.
    is_cared_for: AtomicBool,
}

impl SegmentPool {
    /// Prepares the next segment if that is not done.
    fn prepare(&self, inner: &DbInner, reserve_bytes: u64) -> Result<()> {
        let mut next = lock(&self.next);
        if next.is_none() {
            *next = Some(self.prepared(inner, reserve_bytes)?);
            self.is_prepared.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Takes the next segment, prepared now if that was not done.
    fn take(&self, inner: &DbInner, reserve_bytes: u64) -> Result<NextSegment> {
        let mut next = lock(&self.next);
        self.is_prepared.store(false, Ordering::Release);
        match next.take() {
            Some(prepared) => Ok(prepared),
            None => self.prepared(inner, reserve_bytes),
        }
    }

    /// Removes the file of the next segment. Gives a number below those of all segments to come.
    pub(super) fn discard_next(&self, inner: &DbInner) -> FileNumber {
        let mut next = lock(&self.next);
        self.is_prepared.store(false, Ordering::Release);
        if let Some(next) = next.take() {
            // A file that stays is an empty segment at the next open.
            let _ = inner.world.files.remove(&next.path);
        }
        // With the lock held, so that nobody takes a number for a segment meanwhile.
        inner.workshop.file_numbers.next()
    }

    /// Takes the files that wait to be used again.
    pub(super) fn take_recyclable(&self) -> Vec<PathBuf> {
        std::mem::take(&mut lock(&self.recyclable))
    }

    fn prepared(&self, inner: &DbInner, reserve_bytes: u64) -> Result<NextSegment> {
        let number = inner.workshop.file_numbers.take();
        let path = FileName::Wal(number).path(&inner.path);
        let recycled = lock(&self.recyclable).pop();
        let (files, recycled) = (&*inner.world.files, recycled.as_deref());
        let created = PreparedFile::create(files, &path, reserve_bytes, recycled);
        let file = created.inspect_err(|error| give_up(inner, &path, error))?;
        inner.ledger.book_written(Cause::WalPreallocation, 0, 0, file.preallocated_bytes());
        Ok(NextSegment { number, path, file })
    }
}

/// After a full disk the next try takes another number. Another failure is another matter: the
/// header may be durable then, and the file has to stay.
fn give_up(inner: &DbInner, path: &Path, error: &Error) {
    if error.kind() == ErrorKind::NoSpace {
        let _ = inner.world.files.remove(path);
    }
}

/// The log of a database.
#[derive(Default)]
pub(crate) struct WalSet {
    pub(super) current: Option<WalWriter>,
    /// Older segments that hold writes which are in no table yet, oldest first.
    pub(super) closed: VecDeque<Closed>,
    pub(super) pool: Arc<SegmentPool>,
    previous: Option<SegmentEnd>,
    /// Bytes of the segments that have ended since the log last rested.
    pub(super) ended_bytes: u64,
    /// Where the log was at the last check for rest, and since when.
    pub(super) seen: (FileNumber, u64, u64),
    written_back_through: u64,
    /// When everything appended by then was made durable, by the environment's clock.
    synced_at_us: u64,
    /// Segments from each of these on are being copied, and must stay as they are.
    pub(super) pins: Vec<FileNumber>,
}

/// The log at one moment: what was in it then does not change while it is pinned.
pub(crate) struct PinnedLog {
    /// The segments from the oldest one needed on, with the bytes that they held, ascending.
    pub(crate) segments: Vec<(FileNumber, u64)>,
    /// Where the log ended.
    pub(crate) end: Option<SegmentEnd>,
    pin: FileNumber,
}

impl WalSet {
    /// A log that goes on behind what was recovered; the first append starts a segment. The
    /// recovered segments stay until their writes are flushed.
    pub(crate) fn recovered(previous: Option<SegmentEnd>, reports: &[RecoveryReport]) -> Self {
        let closed = reports.iter().map(|report| Closed {
            number: report.segment.log_number,
            bytes: report.stopped_at_offset,
            is_cut: false,
        });
        WalSet { previous, closed: closed.collect(), ..WalSet::default() }
    }

    /// The number of the segment being written; 0 before the first append.
    pub(crate) fn current_number(&self) -> FileNumber {
        self.current.as_ref().map_or(0, WalWriter::log_number)
    }

    /// The segments that are needed, oldest first, and how far each has been written.
    pub(crate) fn ends(&self) -> Vec<SegmentEnd> {
        let closed = self.closed.iter();
        let closed = closed.map(|s| SegmentEnd { log_number: s.number, end_offset: s.bytes });
        let current = self.current.as_ref();
        let current = current
            .map(|wal| SegmentEnd { log_number: wal.log_number(), end_offset: wal.end_offset() });
        closed.chain(current).filter(|end| end.end_offset > 0).collect()
    }

    /// Bytes in all segments that are needed.
    pub(crate) fn bytes(&self) -> u64 {
        let current = self.current.as_ref().map_or(0, WalWriter::end_offset);
        current + self.closed.iter().map(|segment| segment.bytes).sum::<u64>()
    }

    /// Bytes in older segments that go once only those from `oldest_needed` on are needed.
    pub(crate) fn bytes_below(&self, oldest_needed: FileNumber) -> u64 {
        let closed = self.closed.iter().filter(|segment| segment.number < oldest_needed);
        closed.map(|segment| segment.bytes).sum()
    }

    /// Appends one record, in a new segment if the current one is full.
    pub(crate) fn append(&mut self, inner: &DbInner, pieces: &[IoSlice<'_>]) -> Result<()> {
        if self.current.as_ref().is_none_or(|wal| self.has_to_end(inner, wal)) {
            self.roll(inner)?;
        }
        if self.current.as_ref().is_some_and(WalWriter::is_out_of_space_reserved) {
            self.reserve(inner)?;
        }
        let Some(wal) = &mut self.current else { return Ok(()) };
        let before = wal.end_offset();
        let position = wal.append(pieces)?;
        let written_bytes = position.end_offset - before;
        inner.ledger.book_written(Cause::Wal, 0, 0, written_bytes);
        if planted!(LogBytesBookedTwice) {
            inner.ledger.book_written(Cause::Wal, 0, 0, written_bytes);
        }
        inner.ledger.count(Counter::WalWrites, 1);
        Ok(())
    }

    /// So much space is reserved at once.
    fn reserve_bytes(&self, inner: &DbInner) -> u64 {
        let current_bytes = self.current.as_ref().map_or(0, WalWriter::end_offset);
        let logged_bytes = self.ended_bytes.saturating_add(current_bytes);
        let most_bytes = inner.commits.segment_bytes();
        (logged_bytes / RESERVE_PART).max(RESERVE_BYTES_MIN).min(most_bytes)
    }

    /// Reserves space behind the last record.
    #[cold]
    fn reserve(&mut self, inner: &DbInner) -> Result<()> {
        let bytes = self.reserve_bytes(inner);
        let Some(wal) = &mut self.current else { return Ok(()) };
        let reserved_bytes = wal.reserve(bytes)?;
        inner.ledger.book_written(Cause::WalPreallocation, 0, 0, reserved_bytes);
        inner.watch_log();
        Ok(())
    }

    /// Whether the segment takes no more records.
    fn has_to_end(&self, inner: &DbInner, wal: &WalWriter) -> bool {
        let full_bytes = inner.commits.segment_bytes();
        let end_offset = wal.end_offset();
        let is_ready = self.pool.is_prepared.load(Ordering::Acquire)
            && end_offset - wal.synced_through() <= full_bytes / SYNC_REST_PART;
        end_offset >= full_bytes && (is_ready || end_offset >= full_bytes * 2)
    }

    /// What is to be done for the log in the background, if anything is and nobody does it.
    pub(crate) fn care(&mut self, inner: &Arc<DbInner>) -> Option<LogCare> {
        let wal = self.current.as_ref()?;
        let end_offset = wal.end_offset();
        let is_behind = end_offset - self.written_back_through >= WRITE_BACK_STRIDE_BYTES;
        let full_bytes = inner.commits.segment_bytes();
        let prepares =
            end_offset >= full_bytes / 2 && !self.pool.is_prepared.load(Ordering::Acquire);
        let syncs = end_offset >= full_bytes
            && end_offset - wal.synced_through() > full_bytes / SYNC_REST_PART;
        if !(is_behind || prepares || syncs) || self.pool.is_cared_for.swap(true, Ordering::AcqRel)
        {
            return None;
        }
        let write_back = is_behind.then(|| WriteBack {
            file: Arc::clone(wal.file()),
            offset: self.written_back_through,
            length: end_offset - self.written_back_through,
        });
        if is_behind {
            self.written_back_through = end_offset;
        }
        Some(LogCare {
            inner: Arc::clone(inner),
            pool: Arc::clone(&self.pool),
            reserve_bytes: self.reserve_bytes(inner),
            write_back,
            prepares,
            syncs,
        })
    }

    /// Makes everything appended so far durable, for a commit that waits for that.
    pub(crate) fn sync_commit(&mut self, inner: &DbInner) -> Result<()> {
        self.fill(inner)?;
        self.sync(inner)
    }

    /// Fills the file ahead of the commits to come, if they are as small as those that are now synced.
    fn fill(&mut self, inner: &DbInner) -> Result<()> {
        let bytes = self.reserve_bytes(inner).min(FILL_BYTES_MAX);
        let Some(wal) = &mut self.current else { return Ok(()) };
        if wal.end_offset() - wal.synced_through() <= bytes / FILL_PART {
            let filled_bytes = wal.fill(bytes)?;
            inner.ledger.book_written(Cause::Wal, 0, 0, filled_bytes);
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
        let reserve_bytes = self.reserve_bytes(inner);
        let NextSegment { number, path, file } = self.pool.take(inner, reserve_bytes)?;
        inner.commits.newest_segment.store(number, Ordering::Release);
        let options = SegmentOptions {
            kind: LogKind::Wal,
            database_id: inner.database_id,
            log_number: number,
            previous: self.previous,
            preallocate_bytes: 0,
        };
        let wal =
            WalWriter::begin(file, options).inspect_err(|error| give_up(inner, &path, error))?;
        let noted_bytes = inner.tree.witness().log_has_begun(number);
        inner.ledger.book_written(Cause::Manifest, 0, 0, noted_bytes);
        inner.ledger.book_written(Cause::Wal, 0, 0, wal.end_offset());
        self.written_back_through = wal.end_offset();
        self.current = Some(wal);
        inner.watch_log();
        Ok(())
    }

    /// Syncs and ends the current segment; gives the end of the log.
    pub(crate) fn finish(&mut self, inner: &DbInner) -> Result<Option<SegmentEnd>> {
        if !planted!(SegmentEndUnsynced) {
            self.sync(inner)?;
        }
        if let Some(mut wal) = self.current.take() {
            let end = wal.finish()?;
            let (number, bytes) = (end.log_number, end.end_offset);
            self.closed.push_back(Closed { number, bytes, is_cut: false });
            self.ended_bytes = self.ended_bytes.saturating_add(bytes);
            self.previous = Some(end);
        }
        Ok(self.previous)
    }

    /// Keeps what is in the log now from `oldest_needed` on as it is, until [`WalSet::unpin`].
    pub(crate) fn pin(&mut self, oldest_needed: FileNumber) -> PinnedLog {
        let closed = self.closed.iter().map(|segment| (segment.number, segment.bytes));
        let current = self.current.as_ref().map(|wal| (wal.log_number(), wal.end_offset()));
        // A segment of no bytes was being created when the machine stopped; nothing names it.
        let is_needed =
            |(number, bytes): &(FileNumber, u64)| *number >= oldest_needed && *bytes > 0;
        let segments = closed.chain(current).filter(is_needed).collect();
        let end = current.map(|(log_number, end_offset)| SegmentEnd { log_number, end_offset });
        self.pins.push(oldest_needed);
        PinnedLog { segments, end: end.or(self.previous), pin: oldest_needed }
    }

    /// Lets go of what was pinned. The caller asks then what may be released.
    pub(crate) fn unpin(&mut self, log: &PinnedLog) {
        if let Some(index) = self.pins.iter().position(|pin| *pin == log.pin) {
            self.pins.swap_remove(index);
        }
    }

    /// Takes the segments below `oldest_needed` out of the log, but for pinned ones.
    pub(crate) fn release_below(&mut self, oldest_needed: FileNumber) -> Vec<FileName> {
        let mut oldest_needed =
            self.pins.iter().fold(oldest_needed, |oldest, pin| oldest.min(*pin));
        let mut unneeded = Vec::new();
        if planted!(SegmentsLeaked) {
            return unneeded;
        }
        if planted!(SegmentReleasedEarly) {
            oldest_needed = oldest_needed.saturating_add(1);
        }
        while self.closed.front().is_some_and(|segment| segment.number < oldest_needed) {
            unneeded.extend(self.closed.pop_front().map(|segment| FileName::Wal(segment.number)));
        }
        unneeded
    }

    /// Takes a segment that nobody needs to be used again; false if there are enough of them.
    pub(crate) fn recycle(&self, path: &Path) -> bool {
        let mut recyclable = lock(&self.pool.recyclable);
        let has_room = recyclable.len() < RECYCLED_MAX;
        if has_room {
            recyclable.push(path.to_path_buf());
        }
        has_room
    }
}

/// Written pages that are to go to the disk.
struct WriteBack {
    file: Arc<dyn File>,
    offset: u64,
    length: u64,
}

/// What is done for the log while writers go on.
pub(crate) struct LogCare {
    inner: Arc<DbInner>,
    pool: Arc<SegmentPool>,
    /// For the next segment.
    reserve_bytes: u64,
    write_back: Option<WriteBack>,
    prepares: bool,
    syncs: bool,
}

impl Job for LogCare {
    fn name(&self) -> String {
        "care of the log".to_string()
    }

    fn cause(&self) -> Cause {
        Cause::Wal
    }

    fn level(&self) -> Level {
        0
    }

    fn urgency(&self) -> Urgency {
        Urgency::Flush
    }

    fn step(&mut self, _: &mut StepContext<'_>) -> Step {
        if let Some(WriteBack { file, offset, length }) = self.write_back.take() {
            // A hint: what it could not start, the sync at the segment's end does.
            let _ = file.sync_range(offset, length);
            return Step::Progress;
        }
        if std::mem::take(&mut self.prepares) {
            match self.pool.prepare(&self.inner, self.reserve_bytes) {
                Ok(()) => {}
                // The writer that needs the segment tries again, and reports what it meets.
                Err(error) if error.kind() == ErrorKind::NoSpace => {}
                Err(error) => {
                    self.inner.lifecycle.poison(&error);
                    self.inner.tell_failure();
                }
            }
            return Step::Progress;
        }
        if std::mem::take(&mut self.syncs) {
            // A failure has stopped all writing by now.
            let _ = self.inner.sync_log_beside_appends();
            return Step::Progress;
        }
        Step::Done(Ok(()))
    }

    fn end(self: Box<Self>, _: Ending, _: Spent) {
        self.pool.is_cared_for.store(false, Ordering::Release);
    }
}
