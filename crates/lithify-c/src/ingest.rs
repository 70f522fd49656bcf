//! Ingest: rows in order, straight into tables.

#![expect(unsafe_code, reason = "the border to C")]

use crate::call::{Failure, OK};
use crate::family::Family;
use crate::handle::{Handle, borrow, borrow_mut, free_function, new, place};
use crate::rows::Rows;
use libc::c_void;
use lithify_ffi::arguments::bytes;

/// An ingest, until it ends.
pub struct Ingest(Option<lithify::Ingest>);

/// `lithify_ingest`.
pub type CIngest = Handle<Ingest>;

impl Ingest {
    fn running(&mut self) -> Result<&mut lithify::Ingest, Failure> {
        self.0.as_mut().ok_or_else(ended)
    }
}

fn ended() -> Failure {
    Failure::closed("closed: the ingest was committed: begin another one")
}

free_function!(lithify_ingest_free, Ingest);

c_functions! {
    /// Begins to ingest.
    fn lithify_ingest_begin(family: *mut Family, ingest: *mut *mut CIngest) {
        let ingest = place(ingest)?;
        ingest.set(new(Ingest(Some(borrow(family)?.ingest()?))));
        Ok(OK)
    }

    /// Adds a row.
    fn lithify_ingest_put(
        ingest: *mut CIngest,
        key: *const c_void,
        key_length: usize,
        value: *const c_void,
        value_length: usize,
    ) {
        let (key, value) = (bytes(key, key_length)?, bytes(value, value_length)?);
        borrow_mut(ingest)?.running()?.put(key, value)?;
        Ok(OK)
    }

    /// Adds a removal.
    fn lithify_ingest_delete(ingest: *mut CIngest, key: *const c_void, key_length: usize) {
        let key = bytes(key, key_length)?;
        borrow_mut(ingest)?.running()?.delete(key)?;
        Ok(OK)
    }

    /// Adds rows of a buffer.
    fn lithify_ingest_rows(ingest: *mut CIngest, rows: *const c_void, length: usize) {
        let (ingest, rows) = (borrow_mut(ingest)?.running()?, bytes(rows, length)?);
        for row in Rows::new(rows) {
            match row? {
                (key, Some(value)) => ingest.put(key, value)?,
                (key, None) => ingest.delete(key)?,
            }
        }
        Ok(OK)
    }

    /// Makes all rows visible; ends it.
    fn lithify_ingest_commit(ingest: *mut CIngest, rows: *mut u64) {
        let ended = borrow_mut(ingest)?.0.take().ok_or_else(ended)?.commit()?;
        if !rows.is_null() {
            place(rows)?.set(ended.rows);
        }
        Ok(OK)
    }
}
