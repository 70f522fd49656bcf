//! Cursors over the tables of an open database, and the transaction that they share.
//!
//! Owns: one session of the library with one cursor per table. Promises: a cursor that stands on a
//! row keeps its page in memory; so every call that reads lets its row go before it returns, and a
//! walk does when it ends.
//!
//! Threads: [`Cursors`] belong to one thread at a time.

#![expect(unsafe_code, reason = "every call into the loaded library")]

use std::ffi::{c_char, c_int};
use std::ptr::{self, NonNull};

use lithify_lab::adapter::{EngineError, EngineResult, SpaceId};

use super::connection::{Database, done, found};
use super::functions::{self as raw, Functions};
use crate::library::bytes;

/// A session with a cursor per table.
pub struct Cursors<'a> {
    database: &'a Database,
    functions: &'static Functions,
    session: NonNull<raw::Session>,
}

/// A call that finds a row by its key and leaves the cursor on it.
type Find = unsafe extern "C" fn(
    *mut raw::Session,
    usize,
    *const u8,
    usize,
    *mut *const u8,
    *mut usize,
) -> c_int;

impl<'a> Cursors<'a> {
    /// Cursors over all tables.
    ///
    /// # Errors
    /// The library's.
    pub fn open(database: &'a Database) -> EngineResult<Cursors<'a>> {
        let functions = database.functions;
        let names: Vec<*const c_char> = database.tables.iter().map(|name| name.as_ptr()).collect();
        let mut session = ptr::null_mut();
        // SAFETY: connection and names are live; the place is filled when the call succeeds.
        done(functions, unsafe {
            (functions.session_open)(
                database.connection.as_ptr(),
                names.as_ptr(),
                names.len(),
                &raw mut session,
            )
        })?;
        let session = NonNull::new(session)
            .ok_or_else(|| EngineError::fatal("WiredTiger gave no session and no reason"))?;
        Ok(Cursors { database, functions, session })
    }

    /// The index of a space's cursor.
    fn index(&self, space: SpaceId) -> EngineResult<usize> {
        match space.index() {
            index if index < self.database.tables.len() => Ok(index),
            _ => Err(EngineError::no_space(space)),
        }
    }

    /// Begins a transaction over a snapshot of now.
    ///
    /// # Errors
    /// The library's.
    pub fn begin(&mut self) -> EngineResult<()> {
        // SAFETY: the session is live and borrowed alone.
        done(self.functions, unsafe { (self.functions.begin)(self.session.as_ptr()) })
    }

    /// Applies the transaction; after an error it is rolled back.
    ///
    /// # Errors
    /// The library's.
    pub fn commit(&mut self) -> EngineResult<()> {
        // SAFETY: as above.
        done(self.functions, unsafe { (self.functions.commit)(self.session.as_ptr()) })
    }

    /// Drops the transaction.
    ///
    /// # Errors
    /// The library's.
    pub fn rollback(&mut self) -> EngineResult<()> {
        // SAFETY: as above.
        done(self.functions, unsafe { (self.functions.rollback)(self.session.as_ptr()) })
    }

    /// Reads a row into `value`; whether there is one.
    ///
    /// # Errors
    /// The library's.
    pub fn get(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> EngineResult<bool> {
        self.find(self.functions.get, space, key, value)
    }

    /// Marks a row as one that the open transaction changes, and reads it; whether there is one.
    ///
    /// # Errors
    /// The library's; retryable when another transaction has changed it.
    pub fn reserve(
        &mut self,
        space: SpaceId,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> EngineResult<bool> {
        self.find(self.functions.reserve, space, key, value)
    }

    fn find(
        &mut self,
        find: Find,
        space: SpaceId,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> EngineResult<bool> {
        value.clear();
        let index = self.index(space)?;
        let (mut start, mut size) = (ptr::null(), 0);
        // SAFETY: the session is live and borrowed alone, the index is one of its cursors; the key
        // is read during the call.
        let code = unsafe {
            find(
                self.session.as_ptr(),
                index,
                key.as_ptr(),
                key.len(),
                &raw mut start,
                &raw mut size,
            )
        };
        if !found(self.functions, code)? {
            return Ok(false);
        }
        // SAFETY: the value stays in place until the next call for the space.
        value.extend_from_slice(unsafe { bytes(start, size) });
        self.let_go(index)?;
        Ok(true)
    }

    fn let_go(&mut self, index: usize) -> EngineResult<()> {
        // SAFETY: the session is live and borrowed alone, the index is one of its cursors.
        done(self.functions, unsafe { (self.functions.reset)(self.session.as_ptr(), index) })
    }

    /// Sets a row.
    ///
    /// # Errors
    /// The library's; retryable when another transaction has changed it.
    pub fn put(&mut self, space: SpaceId, key: &[u8], value: &[u8]) -> EngineResult<()> {
        let index = self.index(space)?;
        // SAFETY: as above; key and value are read during the call.
        done(self.functions, unsafe {
            (self.functions.put)(
                self.session.as_ptr(),
                index,
                key.as_ptr(),
                key.len(),
                value.as_ptr(),
                value.len(),
            )
        })
    }

    /// Removes a row, if there is one.
    ///
    /// # Errors
    /// As [`Cursors::put`].
    pub fn remove(&mut self, space: SpaceId, key: &[u8]) -> EngineResult<()> {
        let index = self.index(space)?;
        // SAFETY: as above.
        done(self.functions, unsafe {
            (self.functions.remove)(self.session.as_ptr(), index, key.as_ptr(), key.len())
        })
    }

    /// A walk from the first row at or after `first`.
    ///
    /// # Errors
    /// The library's.
    pub fn walk(&mut self, space: SpaceId, first: &[u8]) -> EngineResult<Walk<'_, 'a>> {
        let index = self.index(space)?;
        // SAFETY: as above.
        let code = unsafe {
            (self.functions.seek)(self.session.as_ptr(), index, first.as_ptr(), first.len())
        };
        let stands = found(self.functions, code)?;
        Ok(Walk { cursors: self, index, stands })
    }

    /// A walk from the last row at or before `last`.
    ///
    /// # Errors
    /// The library's.
    pub fn walk_back(&mut self, space: SpaceId, last: &[u8]) -> EngineResult<Walk<'_, 'a>> {
        let index = self.index(space)?;
        // SAFETY: as above.
        let code = unsafe {
            (self.functions.seek_back)(self.session.as_ptr(), index, last.as_ptr(), last.len())
        };
        let stands = found(self.functions, code)?;
        Ok(Walk { cursors: self, index, stands })
    }
}

impl Drop for Cursors<'_> {
    fn drop(&mut self) {
        // SAFETY: the session is live, belongs to this alone, and is not used again.
        unsafe { (self.functions.session_close)(self.session.as_ptr()) }
    }
}

/// Goes over rows in the order of their keys.
pub struct Walk<'w, 'a> {
    cursors: &'w mut Cursors<'a>,
    index: usize,
    stands: bool,
}

impl Walk<'_, '_> {
    /// The row that it stands on, if it is not at the end.
    ///
    /// # Errors
    /// The library's.
    pub fn row(&self) -> EngineResult<Option<(&[u8], &[u8])>> {
        if !self.stands {
            return Ok(None);
        }
        let (mut key, mut key_size, mut value, mut value_size) = (ptr::null(), 0, ptr::null(), 0);
        let functions = self.cursors.functions;
        // SAFETY: the session is live and lent to this walk alone; the cursor stands on a row.
        done(functions, unsafe {
            (functions.row)(
                self.cursors.session.as_ptr(),
                self.index,
                &raw mut key,
                &raw mut key_size,
                &raw mut value,
                &raw mut value_size,
            )
        })?;
        // SAFETY: both stay in place until the cursor is moved, for which this has to be borrowed
        // alone.
        Ok(Some(unsafe { (bytes(key, key_size), bytes(value, value_size)) }))
    }

    /// Goes to the next row.
    ///
    /// # Errors
    /// The library's.
    pub fn advance(&mut self) -> EngineResult<()> {
        self.step(self.cursors.functions.next)
    }

    /// Goes to the row before.
    ///
    /// # Errors
    /// The library's.
    pub fn retreat(&mut self) -> EngineResult<()> {
        self.step(self.cursors.functions.prev)
    }

    fn step(
        &mut self,
        step: unsafe extern "C" fn(*mut raw::Session, usize) -> c_int,
    ) -> EngineResult<()> {
        if self.stands {
            // SAFETY: as above.
            let code = unsafe { step(self.cursors.session.as_ptr(), self.index) };
            self.stands = false;
            self.stands = found(self.cursors.functions, code)?;
        }
        Ok(())
    }
}

impl Drop for Walk<'_, '_> {
    fn drop(&mut self) {
        // A cursor that cannot be reset fails the next call for its space.
        let _ = self.cursors.let_go(self.index);
    }
}
