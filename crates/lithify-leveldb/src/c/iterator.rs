//! Iterators.

#![expect(unsafe_code, reason = "bytes that come from C and are lent to it")]

use super::failures::Failures;
use super::{at_home, exported, given, lent, quietly, telling};
use crate::iterator::{Move, RowIterator};
use crate::status::Status;
use lithify_ffi::process::Bound;
use std::ffi::c_char;
use std::mem::MaybeUninit;

/// `leveldb_iterator_t`
pub struct IteratorHandle {
    rows: Bound<RowIterator>,
}

impl IteratorHandle {
    /// A handle on an iterator.
    pub fn new(rows: RowIterator) -> Box<Self> {
        Box::new(IteratorHandle { rows: Bound::new(rows) })
    }
}

fn go(iterator: Option<&mut IteratorHandle>, to: Move<'_>) {
    quietly(|| iterator?.rows.get_mut().map(|rows| rows.go(to)));
}

/// Lends a part of the row; empty where there is none.
fn part(
    iterator: Option<&IteratorHandle>,
    length: Option<&mut MaybeUninit<usize>>,
    of: impl for<'a> Fn((&'a [u8], &'a [u8])) -> &'a [u8],
) -> *const c_char {
    let row = iterator.and_then(|iterator| iterator.rows.get()?.row());
    let bytes = of(row.unwrap_or((b"", b"")));
    if let Some(length) = length {
        length.write(bytes.len());
    }
    bytes.as_ptr().cast()
}

exported! {
    /// Ends an iterator.
    fn leveldb_iter_destroy(iterator: Option<Box<IteratorHandle>>) {
        quietly(|| {
            drop(iterator);
            Some(())
        });
    }

    /// Whether it stands on a row.
    fn leveldb_iter_valid(iterator: Option<&IteratorHandle>) -> u8 {
        quietly(|| Some(u8::from(iterator?.rows.get()?.row().is_some())))
    }

    /// To the first row.
    fn leveldb_iter_seek_to_first(iterator: Option<&mut IteratorHandle>) {
        go(iterator, Move::First);
    }

    /// To the last row.
    fn leveldb_iter_seek_to_last(iterator: Option<&mut IteratorHandle>) {
        go(iterator, Move::Last);
    }

    /// To the first row at or behind a key.
    fn leveldb_iter_seek(
        iterator: Option<&mut IteratorHandle>,
        key: *const c_char,
        key_length: usize,
    ) {
        // SAFETY: the caller lends so many bytes for the call.
        if let Ok(key) = unsafe { lent(key, key_length) } {
            go(iterator, Move::Seek(key));
        }
    }

    /// To the next row.
    fn leveldb_iter_next(iterator: Option<&mut IteratorHandle>) {
        go(iterator, Move::Next);
    }

    /// To the row before.
    fn leveldb_iter_prev(iterator: Option<&mut IteratorHandle>) {
        go(iterator, Move::Previous);
    }

    /// The key of the row, lent until the next move.
    fn leveldb_iter_key(
        iterator: Option<&IteratorHandle>,
        length: Option<&mut MaybeUninit<usize>>,
    ) -> *const c_char {
        part(iterator, length, |(key, _)| key)
    }

    /// The value of the row, lent until the next move.
    fn leveldb_iter_value(
        iterator: Option<&IteratorHandle>,
        length: Option<&mut MaybeUninit<usize>>,
    ) -> *const c_char {
        part(iterator, length, |(_, value)| value)
    }

    /// Why the last move failed, if it did.
    fn leveldb_iter_get_error(iterator: Option<&IteratorHandle>, failures: Failures<'_>) {
        telling(failures, || {
            let rows = at_home(given(iterator)?.rows.get())?;
            rows.status().map_or(Ok::<(), Status>(()), |status| Err(status.clone()))
        });
    }
}
