//! Iterators that own what they give, from both ends.
//!
//! Each end is a cursor of its own, made when that end is first asked; both read at one snapshot. They
//! are through once they meet.

use crate::base::Slice;
use crate::db::family_handle::ColumnFamily;
use crate::db::reading::cursor::{Cursor, ScanRange};
use crate::db::reading::read::OwnWrites;
use crate::db::reading::snapshot::Snapshot;
use crate::{Error, Result};
use std::fmt;
use std::iter::FusedIterator;

/// Rows in the order of their keys, as they were when the iterator was made. It owns what it gives,
/// may be sent to another thread, and keeps the rows that it has to see while it lives.
///
/// Its first error is its last item, at both ends, though there may be rows behind. Who skips errors,
/// as with `flatten`, takes a part of the rows for all of them. To read on, take a snapshot first and
/// iterate at it. After the error open [`ColumnFamily::cursor_at`] at the same snapshot, and
/// [`Cursor::seek`] to a key behind the last row. What cannot be read there is an error again: seek
/// further, and see [`crate::repair`] if the error is one of kind [`crate::ErrorKind::Corruption`].
///
/// Made by [`ColumnFamily::iter`], [`ColumnFamily::range`] and [`ColumnFamily::prefix`], and by their
/// likes of [`crate::Db`], [`Snapshot`] and [`crate::Transaction`].
pub struct Iter {
    /// `None` where there is no family to read.
    family: Option<ColumnFamily>,
    range: ScanRange,
    snapshot: Snapshot,
    /// Of the transaction that reads, if it is one.
    own: Option<OwnWrites>,
    front: Option<Cursor>,
    back: Option<Cursor>,
    /// What making the iterator met: its first item.
    error: Option<Error>,
    is_done: bool,
}

/// The two ends.
#[derive(Clone, Copy)]
enum End {
    Front,
    Back,
}

impl Iter {
    pub(crate) fn new(family: Option<ColumnFamily>, range: ScanRange, snapshot: Snapshot) -> Self {
        let (front, back, error) = (None, None, None);
        Iter { family, range, snapshot, own: None, front, back, error, is_done: false }
    }

    /// One that sees what a transaction has written, on top.
    pub(crate) fn over(
        family: ColumnFamily,
        range: ScanRange,
        snapshot: Snapshot,
        own: OwnWrites,
    ) -> Self {
        Iter { own: Some(own), ..Iter::new(Some(family), range, snapshot) }
    }

    /// An iterator whose only item is an error.
    pub(crate) fn failed(error: Error, snapshot: Snapshot) -> Self {
        Iter { error: Some(error), ..Iter::new(None, ScanRange::default(), snapshot) }
    }

    /// The keys alone.
    pub fn keys(self) -> Keys {
        Keys(self)
    }

    /// The values alone.
    pub fn values(self) -> Values {
        Values(self)
    }

    fn step<T>(&mut self, end: End, row: impl FnOnce(&Cursor) -> T) -> Option<Result<T>> {
        if self.is_done {
            return None;
        }
        let moved = self.error.take().map_or_else(|| self.advance(end), Err);
        let cursor = match end {
            End::Front => &self.front,
            End::Back => &self.back,
        };
        match (moved, cursor) {
            (Ok(true), Some(cursor)) => Some(Ok(row(cursor))),
            (Ok(_), _) => {
                self.is_done = true;
                None
            }
            (Err(error), _) => {
                self.is_done = true;
                Some(Err(error))
            }
        }
    }

    /// Moves one end; false where there is nothing more between the two.
    fn advance(&mut self, end: End) -> Result<bool> {
        let Some(family) = &self.family else { return Ok(false) };
        let slot = match end {
            End::Front => &mut self.front,
            End::Back => &mut self.back,
        };
        let cursor = match slot {
            Some(cursor) => cursor,
            None => {
                let (range, own) = (self.range.clone(), self.own.as_ref());
                slot.insert(family.cursor_under(range, &self.snapshot, own)?)
            }
        };
        let moved = match end {
            End::Front => cursor.next()?,
            End::Back => cursor.prev()?,
        };
        Ok(moved && !self.have_met())
    }

    /// Whether the ends have both given rows, and the last ones are the same or past each other.
    fn have_met(&self) -> bool {
        match (&self.front, &self.back) {
            (Some(front), Some(back)) if front.valid() && back.valid() => front.key() >= back.key(),
            _ => false,
        }
    }
}

fn row_of(cursor: &Cursor) -> (Slice, Slice) {
    (Slice::copy_from(cursor.key()), Slice::copy_from(cursor.value()))
}

impl Iterator for Iter {
    type Item = Result<(Slice, Slice)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(End::Front, row_of)
    }
}

impl DoubleEndedIterator for Iter {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(End::Back, row_of)
    }
}

impl FusedIterator for Iter {}

impl fmt::Debug for Iter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Iter");
        fields.field("family", &self.family).field("range", &self.range).finish_non_exhaustive()
    }
}

/// The keys of an [`Iter`]. They end with the first error, as it does.
#[derive(Debug)]
pub struct Keys(Iter);

impl Iterator for Keys {
    type Item = Result<Slice>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.step(End::Front, |cursor| Slice::copy_from(cursor.key()))
    }
}

impl DoubleEndedIterator for Keys {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.step(End::Back, |cursor| Slice::copy_from(cursor.key()))
    }
}

impl FusedIterator for Keys {}

/// The values of an [`Iter`]. They end with the first error, as it does.
#[derive(Debug)]
pub struct Values(Iter);

impl Iterator for Values {
    type Item = Result<Slice>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.step(End::Front, |cursor| Slice::copy_from(cursor.value()))
    }
}

impl DoubleEndedIterator for Values {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.step(End::Back, |cursor| Slice::copy_from(cursor.value()))
    }
}

impl FusedIterator for Values {}
