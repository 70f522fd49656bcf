//! The public cursor and the ranges it takes.

use crate::Result;
use crate::base::{Slice, key_behind};
use crate::db::inner::DbInner;
use crate::db::reading::extent::{Extent, Way};
use crate::iter::RowCursor;
use crate::manifest::Version;
use crate::stats::{Cause, Counter, UserSample};
use std::fmt;
use std::ops::{Bound, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};
use std::sync::Arc;

/// A range of keys: made from `a..b`, `a..=b`, `a..`, `..b`, `..=b`, `..`, a pair of [`Bound`]s, or a
/// pair of options: the first key and the first one behind the range, where there are such. The ends
/// are anything that is bytes: slices, arrays, vectors, text, or references to them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScanRange {
    pub(crate) lower: Option<Box<[u8]>>,
    pub(crate) upper: Option<Box<[u8]>>,
    /// Set when `lower` is a prefix that all keys of the range share: filters may know it.
    pub(crate) is_prefix: bool,
}

impl ScanRange {
    /// All keys that begin with `prefix`.
    pub fn prefix(prefix: impl AsRef<[u8]>) -> Self {
        let prefix = prefix.as_ref();
        ScanRange { lower: Some(prefix.into()), upper: key_behind_prefix(prefix), is_prefix: true }
    }

    /// The first key that may be in it; none if that is the first of all.
    pub fn start(&self) -> Option<&[u8]> {
        self.lower.as_deref()
    }

    /// The first key behind it; none if it has no end.
    pub fn end(&self) -> Option<&[u8]> {
        self.upper.as_deref()
    }

    fn between<K: AsRef<[u8]>>(start: Bound<K>, end: Bound<K>) -> Self {
        let lower = match start {
            Bound::Included(key) => Some(key.as_ref().into()),
            Bound::Excluded(key) => Some(key_behind(key.as_ref())),
            Bound::Unbounded => None,
        };
        let upper = match end {
            Bound::Included(key) => Some(key_behind(key.as_ref())),
            Bound::Excluded(key) => Some(key.as_ref().into()),
            Bound::Unbounded => None,
        };
        ScanRange { lower, upper, is_prefix: false }
    }
}

/// The first key behind all that begin with `prefix`; none if there is no such key.
fn key_behind_prefix(prefix: &[u8]) -> Option<Box<[u8]>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xff)?;
    let mut key = prefix[..=last].to_vec();
    key[last] += 1;
    Some(key.into())
}

impl<K: AsRef<[u8]>> From<Range<K>> for ScanRange {
    fn from(range: Range<K>) -> Self {
        ScanRange::between(Bound::Included(range.start), Bound::Excluded(range.end))
    }
}

impl<K: AsRef<[u8]>> From<RangeInclusive<K>> for ScanRange {
    fn from(range: RangeInclusive<K>) -> Self {
        let (start, end) = range.into_inner();
        ScanRange::between(Bound::Included(start), Bound::Included(end))
    }
}

impl<K: AsRef<[u8]>> From<RangeFrom<K>> for ScanRange {
    fn from(range: RangeFrom<K>) -> Self {
        ScanRange::between(Bound::Included(range.start), Bound::Unbounded)
    }
}

impl<K: AsRef<[u8]>> From<RangeTo<K>> for ScanRange {
    fn from(range: RangeTo<K>) -> Self {
        ScanRange::between(Bound::Unbounded, Bound::Excluded(range.end))
    }
}

impl<K: AsRef<[u8]>> From<RangeToInclusive<K>> for ScanRange {
    fn from(range: RangeToInclusive<K>) -> Self {
        ScanRange::between(Bound::Unbounded, Bound::Included(range.end))
    }
}

impl<K: AsRef<[u8]>> From<(Bound<K>, Bound<K>)> for ScanRange {
    fn from((start, end): (Bound<K>, Bound<K>)) -> Self {
        ScanRange::between(start, end)
    }
}

impl<K: AsRef<[u8]>> From<(Option<K>, Option<K>)> for ScanRange {
    fn from((start, end): (Option<K>, Option<K>)) -> Self {
        let start = start.map_or(Bound::Unbounded, Bound::Included);
        ScanRange::between(start, end.map_or(Bound::Unbounded, Bound::Excluded))
    }
}

impl From<RangeFull> for ScanRange {
    fn from(_: RangeFull) -> Self {
        ScanRange::default()
    }
}

/// A cursor over the rows that one point in time shows. It sees no later write, keeps the tables
/// it reads from being removed, and may outlive a flush, a compaction or the handle it came from.
///
/// A fresh cursor stands before the first and behind the last row at once: `next` goes to the
/// first, `prev` to the last. Keys and values are lent until the next move.
///
/// After an error the cursor stands nowhere. It still reads the same point in time: place it again with
/// one of the seeks, at a key behind what could not be read or, if the error may pass, at the same key.
/// Without that, `next` and `prev` may say that there are no more rows, though there are. An
/// [`crate::Iter`] cannot be placed again: it ends with its first error.
pub struct Cursor {
    rows: RowCursor,
    /// Rows that it came to since it last booked.
    returned: u64,
    /// Moves so far, from a start that differs between cursors: some are timed.
    moves: u64,
    /// Where it was, for an optimistic transaction.
    extent: Option<Box<Extent>>,
    /// Keeps the tables from being removed.
    _version: Arc<Version>,
    /// Behind the version: dropped once the cursor holds no table any more.
    end: CursorEnd,
}

/// Lets the tables go that only a cursor still held.
struct CursorEnd(Arc<DbInner>);

impl Drop for CursorEnd {
    fn drop(&mut self) {
        self.0.collect_garbage();
    }
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Cursor");
        fields.field("valid", &self.valid()).field("key", &self.key().escape_ascii().to_string());
        fields.finish_non_exhaustive()
    }
}

impl Cursor {
    pub(crate) fn new(inner: &Arc<DbInner>, rows: RowCursor, version: Arc<Version>) -> Self {
        let end = CursorEnd(Arc::clone(inner));
        let moves = inner.visibility.number_cursor() << 16;
        Cursor { rows, returned: 0, moves, extent: None, _version: version, end }
    }

    /// Books what its reads have taken since the last time, for a call that may have been timed.
    pub(crate) fn book_reads(&mut self, sample: Option<UserSample>) {
        let inner = &self.end.0;
        let clock = &*inner.world.environment;
        let meter = self.rows.meter();
        let read_ahead_bytes = meter.read_ahead_bytes;
        inner.ledger.end_user_call(sample, Cause::UserScan, 0, clock, meter);
        if let (1.., Some(family)) = (read_ahead_bytes, self.rows.family()) {
            family.ledger.count(Counter::ReadAheadBytes, read_ahead_bytes);
        }
    }

    /// Books what was counted since the last time: at its end and now and then before, so that a
    /// long scan shows while it goes on.
    fn book_counts(&mut self) {
        let moved = self.rows.take_moved();
        let returned = std::mem::take(&mut self.returned);
        if let Some(family) = self.rows.family() {
            family.ledger.count_all([
                (Counter::Seeks, moved.seeks),
                (Counter::Nexts, returned),
                (Counter::SkippedEntries, moved.skipped_entries),
            ]);
            if moved.folded_operands > 0 {
                family.ledger.count(Counter::FoldedOperands, moved.folded_operands);
            }
        }
        if moved.owes_rewrite {
            self.end.0.start_paid_rewrites();
        }
    }

    /// To the next row; false behind the last one.
    ///
    /// # Errors
    /// Corruption or an I/O error, with file and offset.
    #[expect(clippy::should_implement_trait, reason = "it lends; the iterator is `iter`")]
    #[inline]
    pub fn next(&mut self) -> Result<bool> {
        self.go(None, Way::Forward, |rows| rows.next())
    }

    /// To the previous row; false before the first one.
    ///
    /// # Errors
    /// As [`Cursor::next`].
    pub fn prev(&mut self) -> Result<bool> {
        self.go(None, Way::Back, |rows| rows.prev())
    }

    /// To the first row at or behind `key`; false if there is none within the bounds.
    ///
    /// # Errors
    /// As [`Cursor::next`].
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        let key = key.as_ref();
        self.go(Some(Some(key)), Way::Forward, |rows| rows.seek(key))
    }

    /// To the last row at or before `key`; false if there is none within the bounds.
    ///
    /// # Errors
    /// As [`Cursor::next`].
    pub fn seek_for_prev(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        let key = key.as_ref();
        self.go(Some(Some(key)), Way::Back, |rows| rows.seek_for_prev(key))
    }

    /// To the first row.
    ///
    /// # Errors
    /// As [`Cursor::next`].
    pub fn seek_to_first(&mut self) -> Result<bool> {
        self.go(Some(None), Way::Forward, |rows| rows.seek_to_first())
    }

    /// To the last row.
    ///
    /// # Errors
    /// As [`Cursor::next`].
    pub fn seek_to_last(&mut self) -> Result<bool> {
        self.go(Some(None), Way::Back, |rows| rows.seek_to_last())
    }

    /// From now on it is noted where the cursor has been.
    pub(crate) fn note_extent(&mut self, extent: Option<Extent>) {
        self.extent = extent.map(Box::new);
    }

    /// Makes a move. `placed` says at which key, or at an end, where it does not go on from where the
    /// cursor is.
    #[inline(always)]
    fn go(
        &mut self,
        placed: Option<Option<&[u8]>>,
        way: Way,
        call: impl FnOnce(&mut RowCursor) -> Result<bool>,
    ) -> Result<bool> {
        let found = self.timed(call);
        match self.extent.is_some() {
            true => self.noted(found, placed, way),
            false => found,
        }
    }

    /// Notes where a move came, or leaves the row.
    #[cold]
    fn noted(
        &mut self,
        found: Result<bool>,
        placed: Option<Option<&[u8]>>,
        way: Way,
    ) -> Result<bool> {
        let Some(extent) = &mut self.extent else { return found };
        let noted = found.and_then(|is_found| {
            let at = is_found.then(|| self.rows.key());
            match placed {
                Some(key) => extent.place(key, way, at)?,
                None => extent.go_on(way, at)?,
            }
            Ok(is_found)
        });
        if noted.is_err() {
            extent.leave();
            self.rows.leave();
        }
        noted
    }

    fn timed(&mut self, call: impl FnOnce(&mut RowCursor) -> Result<bool>) -> Result<bool> {
        let inner = &self.end.0;
        self.moves += 1;
        let sample = inner.ledger.sample(self.moves, Cause::UserScan, &*inner.world.environment);
        if sample.is_some() {
            // What moves without a sample have metered is not this move's.
            self.book_reads(None);
        }
        let found = call(&mut self.rows);
        self.returned += u64::from(matches!(found, Ok(true)));
        if sample.is_some() {
            self.book_reads(sample);
            self.book_counts();
        }
        found
    }

    /// Whether the cursor stands on a row.
    #[inline]
    pub fn valid(&self) -> bool {
        self.rows.valid()
    }

    /// The key of the row; empty where there is none.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.rows.key()
    }

    /// The value of the row; empty where there is none.
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.rows.value()
    }

    /// The rows from here on as an iterator that copies every key and value. It ends with its first error;
    /// then place the cursor again, and iterate from there.
    pub fn iter(&mut self) -> Rows<'_> {
        Rows { cursor: self, failed: false }
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        self.book_reads(None);
        self.book_counts();
    }
}

/// The iterator of [`Cursor::iter`]. It ends with its first error.
pub struct Rows<'a> {
    cursor: &'a mut Cursor,
    failed: bool,
}

impl Iterator for Rows<'_> {
    type Item = Result<(Slice, Slice)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        match self.cursor.next() {
            Ok(true) => {
                let row = (self.cursor.key(), self.cursor.value());
                Some(Ok((Slice::copy_from(row.0), Slice::copy_from(row.1))))
            }
            Ok(false) => None,
            Err(error) => {
                self.failed = true;
                Some(Err(error))
            }
        }
    }
}
