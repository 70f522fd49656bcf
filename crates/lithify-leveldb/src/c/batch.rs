//! Write batches.

#![expect(unsafe_code, reason = "bytes and callbacks that come from C")]

use super::{exported, lent, quietly};
use crate::batch::{Write, WriteBatch};
use std::ffi::{c_char, c_void};

/// Called with the state, a key and a value.
type OnPut = unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize);
/// Called with the state and a key.
type OnDelete = unsafe extern "C" fn(*mut c_void, *const c_char, usize);

exported! {
    /// An empty batch.
    fn leveldb_writebatch_create() -> Option<Box<WriteBatch>> {
        quietly(|| Some(Some(Box::default())))
    }

    /// Ends a batch.
    fn leveldb_writebatch_destroy(batch: Option<Box<WriteBatch>>) {
        drop(batch);
    }

    /// Forgets all writes.
    fn leveldb_writebatch_clear(batch: Option<&mut WriteBatch>) {
        quietly(|| batch.map(WriteBatch::clear));
    }

    /// Adds a put; key and value are copied.
    fn leveldb_writebatch_put(
        batch: Option<&mut WriteBatch>,
        key: *const c_char,
        key_length: usize,
        value: *const c_char,
        value_length: usize,
    ) {
        quietly(|| {
            // SAFETY: the caller lends so many bytes for the call.
            let (key, value) = unsafe { (lent(key, key_length), lent(value, value_length)) };
            batch?.push(Write::Put(key.ok()?, value.ok()?));
            Some(())
        });
    }

    /// Adds a delete; the key is copied.
    fn leveldb_writebatch_delete(
        batch: Option<&mut WriteBatch>,
        key: *const c_char,
        key_length: usize,
    ) {
        quietly(|| {
            // SAFETY: the caller lends so many bytes for the call.
            let key = unsafe { lent(key, key_length) };
            batch?.push(Write::Delete(key.ok()?));
            Some(())
        });
    }

    /// Calls back for each write, in the order of their insertion.
    fn leveldb_writebatch_iterate(
        batch: Option<&WriteBatch>,
        state: *mut c_void,
        on_put: Option<OnPut>,
        on_delete: Option<OnDelete>,
    ) {
        quietly(|| {
            for write in batch?.writes() {
                match (write, on_put, on_delete) {
                    // SAFETY: a function of the caller, called as its type says, with its own state and
                    // bytes that live for the call.
                    (Write::Put(key, value), Some(call), _) => unsafe {
                        call(state, start(key), key.len(), start(value), value.len());
                    },
                    // SAFETY: as above.
                    (Write::Delete(key), _, Some(call)) => unsafe {
                        call(state, start(key), key.len());
                    },
                    _ => {}
                }
            }
            Some(())
        });
    }

    /// Adds copies of the writes of `source` behind those of `destination`, which it may be itself.
    fn leveldb_writebatch_append(destination: *mut WriteBatch, source: *const WriteBatch) {
        quietly(|| {
            if destination.cast_const() == source {
                // SAFETY: NULL, or a live batch that one thread uses.
                unsafe { destination.as_mut() }?.double();
                return Some(());
            }
            // SAFETY: as above; they are two, so neither is the other.
            let (destination, source) = unsafe { (destination.as_mut()?, source.as_ref()?) };
            destination.append(source);
            Some(())
        });
    }
}

fn start(bytes: &[u8]) -> *const c_char {
    bytes.as_ptr().cast()
}
