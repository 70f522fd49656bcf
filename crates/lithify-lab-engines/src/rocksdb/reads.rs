//! Reads of an open database: points, several points, and iterators.
//!
//! Owns: values that the library pins and how they are copied, iterators and their bounds.
//! Promises: what points into the library does not outlive the object that keeps it in place.
//!
//! Threads: views and iterators belong to one thread.

#![expect(unsafe_code, reason = "every call into the loaded library")]

use std::ffi::c_char;
use std::marker::PhantomData;
use std::ptr;

use lithify_lab::adapter::{EngineResult, SpaceId};

use crate::library::{Owned, bytes};

use super::database::Database;
use super::functions::{self as raw, Functions};
use super::objects::{checked, error_of, take_text};
use super::options::ReadView;

impl Database {
    /// A way to read, with memory for bounds of its own.
    ///
    /// # Errors
    /// The library makes none.
    pub fn read_view(&self) -> EngineResult<ReadView> {
        ReadView::new(self.functions)
    }

    /// Reads a committed row into `value`; whether there is one.
    ///
    /// # Errors
    /// The library's.
    pub fn get(
        &self,
        space: SpaceId,
        view: &ReadView,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> EngineResult<bool> {
        let family = self.family(space)?;
        // SAFETY: database, family and options are live; the key is read during the call only.
        let pinned = checked(self.functions, |error| unsafe {
            (self.functions.get_pinned_cf)(
                self.base(),
                view.point.get(),
                family,
                key.as_ptr().cast(),
                key.len(),
                error,
            )
        })?;
        Ok(self.copy_pinned(pinned, value))
    }

    /// Copies what a read has pinned and lets it go; false, and nothing, for null.
    pub(super) fn copy_pinned(&self, pinned: *mut raw::Pinned, value: &mut Vec<u8>) -> bool {
        value.clear();
        // SAFETY: null, or an object that the library has just handed over to us.
        let Ok(pinned) = (unsafe { Owned::new(pinned, self.functions.pinnableslice_destroy) })
        else {
            return false;
        };
        value.extend_from_slice(pinned_bytes(self.functions, &pinned));
        true
    }

    /// Reads several committed rows; calls `found` with the index and value of each there is.
    ///
    /// # Errors
    /// The library's, of the first key that has one.
    pub fn multi_get(
        &self,
        space: SpaceId,
        view: &ReadView,
        keys: &[&[u8]],
        found: &mut dyn FnMut(usize, &[u8]),
    ) -> EngineResult<()> {
        let family = self.family(space)?;
        let starts: Vec<*const c_char> = keys.iter().map(|key| key.as_ptr().cast()).collect();
        let sizes: Vec<usize> = keys.iter().map(|key| key.len()).collect();
        let mut values = vec![ptr::null_mut(); keys.len()];
        let mut errors: Vec<*mut c_char> = vec![ptr::null_mut(); keys.len()];
        // SAFETY: all arrays have as many entries as there are keys; the library reads the keys
        // during the call and fills values and errors.
        unsafe {
            (self.functions.batched_multi_get_cf)(
                self.base(),
                view.point.get(),
                family,
                keys.len(),
                starts.as_ptr(),
                sizes.as_ptr(),
                values.as_mut_ptr(),
                errors.as_mut_ptr(),
                false,
            );
        }
        let mut result = Ok(());
        for (index, (value, error)) in values.into_iter().zip(errors).enumerate() {
            // SAFETY: null, or an object handed over to us.
            let value = unsafe { Owned::new(value, self.functions.pinnableslice_destroy) };
            // SAFETY: null, or a text handed over to us.
            if let Some(text) = unsafe { take_text(self.functions, error) } {
                result = result.and(Err(error_of(&text)));
            } else if let Ok(value) = value {
                found(index, pinned_bytes(self.functions, &value));
            }
        }
        result
    }

    /// An iterator over committed rows as of now, before its first row. `view` keeps its bound
    /// until the iterator is gone.
    ///
    /// # Errors
    /// The library makes none.
    pub fn iterator<'a>(
        &'a self,
        space: SpaceId,
        view: &'a Scan<'_>,
    ) -> EngineResult<Iterator<'a>> {
        let family = self.family(space)?;
        // SAFETY: database, family and options are live, and stay so for the iterator's life.
        let object =
            unsafe { (self.functions.create_iterator_cf)(self.base(), view.options.get(), family) };
        // SAFETY: the library has just made it for us.
        let object = unsafe { Owned::new(object, self.functions.iter_destroy) }?;
        Ok(Iterator { functions: self.functions, object, _database: PhantomData })
    }
}

fn pinned_bytes<'a>(functions: &Functions, pinned: &'a Owned<raw::Pinned>) -> &'a [u8] {
    let mut size = 0;
    // SAFETY: the object is live and keeps its bytes in place until it is destroyed.
    unsafe { bytes((functions.pinnableslice_value)(pinned.get(), &raw mut size), size) }
}

/// How a scan reads: options that point to a bound, which stays in place as long as this lives.
pub struct Scan<'a> {
    options: &'a Owned<raw::ReadOptions>,
}

impl ReadView {
    /// Reads rows below `end` (all, when it is empty); only those that share the first row's
    /// prefix when `one_prefix`.
    pub fn scan(&mut self, functions: &Functions, end: &[u8], one_prefix: bool) -> Scan<'_> {
        self.bound.clear();
        self.bound.extend_from_slice(end);
        let options = if one_prefix { &self.prefix } else { &self.total };
        let start = if end.is_empty() { ptr::null() } else { self.bound.as_ptr().cast() };
        // SAFETY: the options are live; they keep a pointer to the bound, which is not touched
        // while the scan borrows it, and is set anew before the next one.
        unsafe {
            (functions.readoptions_set_iterate_upper_bound)(options.get(), start, end.len());
        }
        Scan { options }
    }
}

/// Goes over committed rows of one moment.
pub struct Iterator<'a> {
    functions: &'static Functions,
    object: Owned<raw::Iter>,
    _database: PhantomData<&'a Database>,
}

impl Iterator<'_> {
    /// Goes to the first row at or after `key`.
    pub fn seek(&mut self, key: &[u8]) {
        // SAFETY: the iterator is live; the key is read during the call.
        unsafe { (self.functions.iter_seek)(self.object.get(), key.as_ptr().cast(), key.len()) }
    }

    /// Goes to the last row at or before `key`.
    pub fn seek_for_prev(&mut self, key: &[u8]) {
        // SAFETY: the iterator is live; the key is read during the call.
        unsafe {
            (self.functions.iter_seek_for_prev)(self.object.get(), key.as_ptr().cast(), key.len());
        }
    }

    /// The row it stands on.
    pub fn row(&self) -> Option<(&[u8], &[u8])> {
        let (mut key_size, mut value_size) = (0, 0);
        // SAFETY: the iterator is live and stands on a row; its bytes stay until it is moved, for
        // which it has to be borrowed alone.
        unsafe {
            if (self.functions.iter_valid)(self.object.get()) == 0 {
                return None;
            }
            let key = (self.functions.iter_key)(self.object.get(), &raw mut key_size);
            let value = (self.functions.iter_value)(self.object.get(), &raw mut value_size);
            Some((bytes(key, key_size), bytes(value, value_size)))
        }
    }

    /// Goes to the next row; only from a row.
    pub fn advance(&mut self) {
        // SAFETY: the iterator is live; without a row nothing is called.
        unsafe {
            if (self.functions.iter_valid)(self.object.get()) != 0 {
                (self.functions.iter_next)(self.object.get());
            }
        }
    }

    /// Goes to the row before; only from a row.
    pub fn retreat(&mut self) {
        // SAFETY: the iterator is live; without a row nothing is called.
        unsafe {
            if (self.functions.iter_valid)(self.object.get()) != 0 {
                (self.functions.iter_prev)(self.object.get());
            }
        }
    }

    /// Why it ended, if not at the last row.
    ///
    /// # Errors
    /// The library's.
    pub fn check(&self) -> EngineResult<()> {
        // SAFETY: the iterator is live.
        checked(self.functions, |error| unsafe {
            (self.functions.iter_get_error)(self.object.get(), error);
        })
    }
}
