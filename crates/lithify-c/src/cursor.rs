//! Cursors, and rows of them in bulk.

#![expect(unsafe_code, reason = "the border to C")]

use crate::call::{ABSENT, Answer, Failure, OK, SHORT};
use crate::family::{Family, range};
use crate::handle::{Handle, borrow, borrow_mut, borrow_option, free_function, new, place};
use crate::reads::Snapshot;
use crate::rows;
use libc::{c_int, c_void};
use lithify_ffi::arguments::{Refused, bytes};
use std::mem::MaybeUninit;

/// `lithify_cursor`.
pub type CCursor = Handle<Cursor>;

const BACKWARD: c_int = 1;
const KEYS_ONLY: c_int = 2;

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Forward,
    Backward,
}

/// A cursor, and where the last [`Cursor::fill`] left it.
pub struct Cursor {
    cursor: lithify::Cursor,
    /// It stands on a row that did not fit when it was filled this way: that row comes first.
    left_over: Option<Way>,
    /// It has passed the last row that lies this way.
    ended: Option<Way>,
}

impl Cursor {
    pub(crate) fn new(cursor: lithify::Cursor) -> Self {
        Cursor { cursor, left_over: None, ended: None }
    }

    /// Moves one row on from the last one that was handed out; false if there is none. That a fill has looked
    /// at the row behind it does not show.
    fn step(&mut self, way: Way) -> Result<bool, Failure> {
        self.ended = None;
        match self.left_over.take() {
            Some(left_over) if left_over == way => Ok(true),
            Some(_) if !step(&mut self.cursor, way)? => Ok(false),
            _ => Ok(step(&mut self.cursor, way)?),
        }
    }

    /// Makes a move to a place, after which nothing of a fill is left.
    fn go(&mut self, go: impl FnOnce(&mut lithify::Cursor) -> lithify::Result<bool>) -> Answer {
        (self.left_over, self.ended) = (None, None);
        Ok(found(go(&mut self.cursor)?))
    }

    /// Moves to the row that a fill copies next; false if there is none, and again until it moves otherwise.
    fn advance(&mut self, way: Way) -> Result<bool, Failure> {
        if self.ended == Some(way) {
            return Ok(false);
        }
        let found = self.step(way)?;
        self.ended = (!found).then_some(way);
        Ok(found)
    }

    /// Copies rows into a buffer: the code, the bytes and the rows, as the header has them.
    fn fill(
        &mut self,
        (way, keys_only): (Way, bool),
        rows_max: usize,
        buffer: &mut [MaybeUninit<u8>],
    ) -> Result<(c_int, usize, usize), Failure> {
        let capacity = buffer.len();
        let (mut rest, mut rows) = (buffer, 0);
        while rows < rows_max {
            if !self.advance(way)? {
                return Ok((ABSENT, capacity - rest.len(), rows));
            }
            let key = self.cursor.key();
            let value = if keys_only { &[] } else { self.cursor.value() };
            let size = rows::size(key, value);
            if size > rest.len() {
                self.left_over = Some(way);
                return Ok(match rows {
                    0 => (SHORT, size, 0),
                    _ => (OK, capacity - rest.len(), rows),
                });
            }
            let left = rows::write(rest, key, value);
            let too_long = || Failure::invalid("limit exceeded: a row of 4 GiB and more");
            rest = left.ok_or_else(too_long)?;
            rows += 1;
        }
        Ok((OK, capacity - rest.len(), rows))
    }
}

fn found(is_found: bool) -> c_int {
    if is_found { OK } else { ABSENT }
}

fn step(cursor: &mut lithify::Cursor, way: Way) -> lithify::Result<bool> {
    match way {
        Way::Forward => cursor.next(),
        Way::Backward => cursor.prev(),
    }
}

fn way_of(direction: c_int) -> Result<(Way, bool), Failure> {
    if direction & !(BACKWARD | KEYS_ONLY) != 0 {
        let text = format!("invalid argument: there is no direction {direction}");
        return Err(Failure::invalid(text));
    }
    let way = if direction & BACKWARD != 0 { Way::Backward } else { Way::Forward };
    Ok((way, direction & KEYS_ONLY != 0))
}

/// A buffer of the caller's that is to be filled.
///
/// # Safety
/// `buffer` is NULL, or `capacity` bytes behind it may be written during `'a`, by nobody else.
unsafe fn buffer<'a>(
    buffer: *mut c_void,
    capacity: usize,
) -> Result<&'a mut [MaybeUninit<u8>], Failure> {
    if capacity == 0 {
        return Ok(&mut []);
    }
    if isize::try_from(capacity).is_err() {
        return Err(Refused::TooLong.into());
    }
    match buffer.is_null() {
        true => Err(Refused::Missing.into()),
        // SAFETY: the caller promises so many bytes; MaybeUninit asks for no content.
        false => Ok(unsafe { std::slice::from_raw_parts_mut(buffer.cast(), capacity) }),
    }
}

free_function!(lithify_cursor_free, Cursor);

c_functions! {
    /// A cursor over a range.
    fn lithify_cursor_open(
        family: *mut Family,
        snapshot: *const Snapshot,
        start: *const c_void,
        start_length: usize,
        end: *const c_void,
        end_length: usize,
        flags: c_int,
        cursor: *mut *mut CCursor,
    ) {
        let range = range(start, start_length, end, end_length, flags)?;
        let (family, cursor) = (borrow(family)?, place(cursor)?);
        cursor.set(new(Cursor::new(match borrow_option(snapshot)? {
            Some(snapshot) => family.cursor_at(range, snapshot)?,
            None => family.cursor(range)?,
        })));
        Ok(OK)
    }

    /// A cursor over the keys that begin alike.
    fn lithify_cursor_prefix(
        family: *mut Family,
        snapshot: *const Snapshot,
        prefix: *const c_void,
        prefix_length: usize,
        cursor: *mut *mut CCursor,
    ) {
        let prefix = bytes(prefix, prefix_length)?;
        let (family, cursor) = (borrow(family)?, place(cursor)?);
        cursor.set(new(Cursor::new(match borrow_option(snapshot)? {
            Some(snapshot) => family.prefix_cursor_at(prefix, snapshot)?,
            None => family.prefix_cursor(prefix)?,
        })));
        Ok(OK)
    }

    /// To the first row.
    fn lithify_cursor_first(cursor: *mut CCursor) {
        borrow_mut(cursor)?.go(|cursor| cursor.seek_to_first())
    }

    /// To the last row.
    fn lithify_cursor_last(cursor: *mut CCursor) {
        borrow_mut(cursor)?.go(|cursor| cursor.seek_to_last())
    }

    /// To the next row.
    fn lithify_cursor_next(cursor: *mut CCursor) {
        Ok(found(borrow_mut(cursor)?.step(Way::Forward)?))
    }

    /// To the row before.
    fn lithify_cursor_prev(cursor: *mut CCursor) {
        Ok(found(borrow_mut(cursor)?.step(Way::Backward)?))
    }

    /// To the first row at or behind a key.
    fn lithify_cursor_seek(cursor: *mut CCursor, key: *const c_void, key_length: usize) {
        let key = bytes(key, key_length)?;
        borrow_mut(cursor)?.go(|cursor| cursor.seek(key))
    }

    /// To the last row at or before a key.
    fn lithify_cursor_seek_for_prev(cursor: *mut CCursor, key: *const c_void, key_length: usize) {
        let key = bytes(key, key_length)?;
        borrow_mut(cursor)?.go(|cursor| cursor.seek_for_prev(key))
    }

    /// Copies many rows.
    fn lithify_cursor_fill(
        cursor: *mut CCursor,
        direction: c_int,
        rows_max: usize,
        bytes: *mut c_void,
        capacity: usize,
        used: *mut usize,
        rows: *mut usize,
    ) {
        let (way, cursor, bytes) = (way_of(direction)?, borrow_mut(cursor)?, buffer(bytes, capacity)?);
        let (used, rows) = (place(used)?, place(rows)?);
        let (code, size, count) = cursor.fill(way, rows_max, bytes)?;
        used.set(size);
        rows.set(count);
        Ok(code)
    }
}

/// Whether it stands on a row.
///
/// # Safety
/// `cursor` is NULL, or came from this library and is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lithify_cursor_valid(cursor: *const CCursor) -> c_int {
    // SAFETY: the caller promises a live object, or NULL.
    unsafe { borrow(cursor) }.is_ok_and(|cursor| cursor.cursor.valid()).into()
}

/// Lends bytes of the row that a cursor stands on.
///
/// # Safety
/// `cursor` is NULL, or came from this library and is not freed; `length` is NULL or may be written.
unsafe fn lend(
    cursor: *const CCursor,
    length: *mut usize,
    part: impl FnOnce(&lithify::Cursor) -> &[u8],
) -> *const c_void {
    // SAFETY: the caller promises a live object, or NULL, and a place that may be written.
    let (cursor, length) = unsafe { (borrow(cursor), place(length)) };
    let standing = cursor.ok().map(|cursor| &cursor.cursor).filter(|cursor| cursor.valid());
    let bytes = standing.map(part);
    if let Ok(length) = length {
        length.set(bytes.map_or(0, <[u8]>::len));
    }
    bytes.map_or(std::ptr::null(), |bytes| bytes.as_ptr().cast())
}

/// The key of the row that it stands on.
///
/// # Safety
/// `cursor` is NULL, or came from this library and is not freed; `length` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lithify_cursor_key(
    cursor: *const CCursor,
    length: *mut usize,
) -> *const c_void {
    // SAFETY: the caller promises what `lend` asks for.
    unsafe { lend(cursor, length, lithify::Cursor::key) }
}

/// The value of the row that it stands on.
///
/// # Safety
/// `cursor` is NULL, or came from this library and is not freed; `length` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lithify_cursor_value(
    cursor: *const CCursor,
    length: *mut usize,
) -> *const c_void {
    // SAFETY: the caller promises what `lend` asks for.
    unsafe { lend(cursor, length, lithify::Cursor::value) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Rows;

    fn cursor_over(count: u8) -> (tempfile::TempDir, Cursor) {
        let directory = tempfile::tempdir().unwrap();
        let db = lithify::Db::open(directory.path(), lithify::Options::default()).unwrap();
        for number in 0..count {
            db.put([number], vec![number; number as usize]).unwrap();
        }
        let cursor = Cursor::new(db.cursor(..).unwrap());
        (directory, cursor)
    }

    /// Fills until the end, and gives the keys and the codes.
    fn fill_all(cursor: &mut Cursor, way: Way, rows_max: usize, capacity: usize) -> (Vec<u8>, u32) {
        let (mut keys, mut grown) = (Vec::new(), 0);
        let mut buffer = vec![MaybeUninit::new(0_u8); capacity];
        loop {
            let filled = cursor.fill((way, false), rows_max, &mut buffer);
            let (code, used, rows) = filled.ok().unwrap();
            if code == SHORT {
                assert!(rows == 0 && used > buffer.len());
                buffer.resize(used, MaybeUninit::new(0));
                grown += 1;
                continue;
            }
            let bytes: Vec<u8> =
                // SAFETY: every byte of the buffer was given a value above.
                buffer[..used].iter().map(|byte| unsafe { byte.assume_init() }).collect();
            let before = keys.len();
            for row in Rows::new(&bytes) {
                let (key, value) = row.ok().unwrap();
                assert_eq!(value.unwrap(), vec![key[0]; key[0] as usize]);
                keys.push(key[0]);
            }
            assert_eq!(keys.len() - before, rows);
            if code == ABSENT {
                return (keys, grown);
            }
        }
    }

    #[test]
    fn rows_come_once_each_whatever_fits() {
        let all: Vec<u8> = (0..100).collect();
        let back: Vec<u8> = (0..100).rev().collect();
        for (rows_max, capacity) in [(1000, 1 << 20), (1, 1 << 20), (7, 200), (1000, 0), (3, 9)] {
            let (_directory, mut cursor) = cursor_over(100);
            assert_eq!(fill_all(&mut cursor, Way::Forward, rows_max, capacity).0, all);
            // At the end it stays at the end, and the other way lies everything.
            assert!(fill_all(&mut cursor, Way::Forward, rows_max, 200).0.is_empty());
            assert_eq!(fill_all(&mut cursor, Way::Backward, rows_max, capacity).0, back);
        }
    }

    #[test]
    fn a_step_goes_on_from_the_last_row_that_a_fill_handed_out() {
        let (_directory, mut cursor) = cursor_over(10);
        let mut buffer = [MaybeUninit::new(0); 20];
        let steps = [
            (Way::Forward, Way::Forward, 3),
            (Way::Forward, Way::Backward, 1),
            (Way::Backward, Way::Backward, 6),
            (Way::Backward, Way::Forward, 8),
        ];
        // The buffer is full, or the rows are as many as were asked for: no difference to see.
        for (rows_max, capacity) in [(100, 20), (2, 20)] {
            for (filled, stepped, key) in steps {
                cursor
                    .go(|cursor| cursor.seek(if filled == Way::Forward { [0] } else { [9] }))
                    .ok()
                    .unwrap();
                let keys_only = true;
                let buffer = &mut buffer[..capacity];
                assert_eq!(cursor.fill((filled, keys_only), rows_max, buffer).ok().unwrap().2, 2);
                assert!(cursor.step(stepped).ok().unwrap());
                assert_eq!(cursor.cursor.key(), [key], "{rows_max} rows");
            }
        }
        // A fill the other way, too, begins behind the last row that was handed out.
        cursor.go(|cursor| cursor.seek_to_first()).ok().unwrap();
        assert_eq!(cursor.fill((Way::Forward, true), 100, &mut buffer).ok().unwrap().2, 2);
        assert_eq!(cursor.fill((Way::Backward, true), 1, &mut buffer).ok().unwrap().2, 1);
        assert_eq!(cursor.cursor.key(), [1]);
        // Nothing was handed out at all.
        for (stepped, key) in [(Way::Forward, 6), (Way::Backward, 4)] {
            cursor.go(|cursor| cursor.seek([5])).ok().unwrap();
            assert_eq!(cursor.fill((Way::Forward, false), 1, &mut []).ok().unwrap().0, SHORT);
            assert!(cursor.step(stepped).ok().unwrap());
            assert_eq!(cursor.cursor.key(), [key]);
        }
    }

    #[test]
    fn a_move_forgets_the_row_that_did_not_fit() {
        let (_directory, mut cursor) = cursor_over(100);
        cursor.go(|cursor| cursor.seek([50])).ok().unwrap();
        assert_eq!(cursor.fill((Way::Forward, false), 1, &mut []).ok().unwrap().0, SHORT);
        cursor.go(|cursor| cursor.seek([90])).ok().unwrap();
        let (keys, _) = fill_all(&mut cursor, Way::Forward, 100, 1000);
        assert_eq!(keys, (91..100).collect::<Vec<u8>>());
        let mut buffer = [MaybeUninit::new(0); 9 * 100];
        cursor.go(|cursor| cursor.seek_to_first()).ok().unwrap();
        assert_eq!(
            cursor.fill((Way::Forward, true), 200, &mut buffer).ok().unwrap(),
            (ABSENT, 9 * 99, 99)
        );
    }
}
