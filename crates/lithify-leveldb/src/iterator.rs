//! Iterators: the rows of one moment, in order, from any place in both directions.

use crate::order::CheckedOrder;
use crate::status::Status;
use lithify::Cursor;
use std::sync::Arc;

/// A move.
#[derive(Clone, Copy, Debug)]
pub enum Move<'a> {
    /// To the first row.
    First,
    /// To the last row.
    Last,
    /// To the first row at or behind a key.
    Seek(&'a [u8]),
    /// To the next row.
    Next,
    /// To the row before.
    Previous,
}

/// An iterator; it stands on a row or nowhere. One thread at a time.
pub struct RowIterator {
    /// None if it could not be made.
    cursor: Option<Cursor>,
    order: Option<Arc<CheckedOrder>>,
    status: Option<Status>,
    /// Whether it stands on a row: a move that failed leaves it nowhere.
    is_on_row: bool,
}

impl RowIterator {
    /// Over the rows of a cursor; one that could not be made is its status.
    pub fn new(cursor: lithify::Result<Cursor>, order: Option<Arc<CheckedOrder>>) -> Self {
        let (cursor, status) = match cursor {
            Ok(cursor) => (Some(cursor), None),
            Err(error) => (None, Some(error.into())),
        };
        RowIterator { cursor, order, status, is_on_row: false }
    }

    /// Makes a move. From nowhere there is no next and no previous row.
    pub fn go(&mut self, to: Move<'_>) {
        let Some(cursor) = &mut self.cursor else { return };
        if matches!(to, Move::Next | Move::Previous) && !self.is_on_row {
            return;
        }
        match moved(cursor, self.order.as_deref(), to) {
            Ok(is_on_row) => (self.is_on_row, self.status) = (is_on_row, None),
            Err(status) => (self.is_on_row, self.status) = (false, Some(status)),
        }
    }

    /// The row that it stands on.
    pub fn row(&self) -> Option<(&[u8], &[u8])> {
        let cursor = self.cursor.as_ref().filter(|_| self.is_on_row)?;
        Some((cursor.key(), cursor.value()))
    }

    /// Why the last move failed.
    pub fn status(&self) -> Option<&Status> {
        self.status.as_ref()
    }
}

fn moved(cursor: &mut Cursor, order: Option<&CheckedOrder>, to: Move<'_>) -> Result<bool, Status> {
    Ok(match to {
        Move::First => cursor.seek_to_first()?,
        Move::Last => cursor.seek_to_last()?,
        Move::Seek(key) => {
            if let Some(order) = order {
                order.check_place(cursor, key)?;
            }
            cursor.seek(key)?
        }
        Move::Next => cursor.next()?,
        Move::Previous => cursor.prev()?,
    })
}
