//! Batches: writes of several families that become visible together.
//!
//! A batch belongs to no database before its commit, and stays as it is after it. So it keeps its writes
//! itself, one behind the other, and hands them to the engine's batch when it is committed.

#![expect(unsafe_code, reason = "the border to C")]

use crate::call::{Failure, OK};
use crate::database::Db;
use crate::family::Family;
use crate::handle::{Handle, borrow, borrow_mut, free_function, new};
use crate::rows::Rows;
use libc::{c_int, c_void};
use lithify::{ColumnFamily, Durability};
use lithify_ffi::arguments::bytes;

/// `lithify_batch`.
pub type CBatch = Handle<Batch>;

#[derive(Clone, Copy)]
enum Kind {
    Put,
    Delete,
    SingleDelete,
    DeleteRange,
    Merge,
}

/// One write: its key, then its value, are the next bytes of the batch.
struct Write {
    kind: Kind,
    /// Its place among the families of the batch.
    family: usize,
    key_length: usize,
    value_length: usize,
}

/// About what a write takes of the log besides its key and value.
const HEAD_BYTES: usize = 8;

/// See the module.
#[derive(Default)]
pub struct Batch {
    families: Vec<ColumnFamily>,
    writes: Vec<Write>,
    bytes: Vec<u8>,
}

impl Batch {
    fn place_of(&mut self, family: &ColumnFamily) -> usize {
        // Few families, and mostly the last one again.
        self.families.iter().rposition(|known| known == family).unwrap_or_else(|| {
            self.families.push(family.clone());
            self.families.len() - 1
        })
    }

    fn push(&mut self, kind: Kind, family: usize, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        let (key_length, value_length) = (key.len(), value.len());
        self.writes.push(Write { kind, family, key_length, value_length });
    }

    fn add(&mut self, kind: Kind, family: &ColumnFamily, key: &[u8], value: &[u8]) -> c_int {
        let place = self.place_of(family);
        self.push(kind, place, key, value);
        OK
    }

    /// Takes all rows of a buffer, or none.
    fn add_rows(&mut self, family: &ColumnFamily, rows: &[u8]) -> Result<(), Failure> {
        let (writes, size) = (self.writes.len(), self.bytes.len());
        let place = self.place_of(family);
        for row in Rows::new(rows) {
            match row {
                Ok((key, Some(value))) => self.push(Kind::Put, place, key, value),
                Ok((key, None)) => self.push(Kind::Delete, place, key, &[]),
                Err(failure) => {
                    self.writes.truncate(writes);
                    self.bytes.truncate(size);
                    return Err(failure);
                }
            }
        }
        Ok(())
    }

    /// The writes as a batch of the engine.
    fn of<'db>(&self, db: &'db lithify::Db) -> lithify::Batch<'db> {
        let (mut batch, mut rest) = (db.batch(), &self.bytes[..]);
        for write in &self.writes {
            let (key, behind) = rest.split_at(write.key_length);
            let (value, behind) = behind.split_at(write.value_length);
            rest = behind;
            let family = &self.families[write.family];
            match write.kind {
                Kind::Put => batch.put(family, key, value),
                Kind::Delete => batch.delete(family, key),
                Kind::SingleDelete => batch.single_delete(family, key),
                Kind::DeleteRange => batch.delete_range(family, key, value),
                Kind::Merge => batch.merge(family, key, value),
            };
        }
        batch
    }

    fn clear(&mut self) {
        self.families.clear();
        self.writes.clear();
        self.bytes.clear();
    }
}

/// A durability as the header numbers them; none is that of the database.
pub(crate) fn durability(number: c_int) -> Result<Option<Durability>, Failure> {
    match number {
        0 => Ok(None),
        1 => Ok(Some(Durability::Buffered)),
        2 => Ok(Some(Durability::Sync)),
        _ => Err(Failure::invalid(format!("invalid argument: there is no durability {number}"))),
    }
}

/// A new batch.
// SAFETY: the name belongs to the header, and nothing else has it.
#[unsafe(no_mangle)]
pub extern "C" fn lithify_batch_new() -> *mut CBatch {
    new(Batch::default())
}

free_function!(lithify_batch_free, Batch);

c_functions! {
    /// Adds a put.
    fn lithify_batch_put(
        batch: *mut CBatch,
        family: *mut Family,
        key: *const c_void,
        key_length: usize,
        value: *const c_void,
        value_length: usize,
    ) {
        let (key, value) = (bytes(key, key_length)?, bytes(value, value_length)?);
        Ok(borrow_mut(batch)?.add(Kind::Put, borrow(family)?, key, value))
    }

    /// Adds a removal.
    fn lithify_batch_delete(
        batch: *mut CBatch,
        family: *mut Family,
        key: *const c_void,
        key_length: usize,
    ) {
        let key = bytes(key, key_length)?;
        Ok(borrow_mut(batch)?.add(Kind::Delete, borrow(family)?, key, &[]))
    }

    /// Adds a removal of what was put once.
    fn lithify_batch_single_delete(
        batch: *mut CBatch,
        family: *mut Family,
        key: *const c_void,
        key_length: usize,
    ) {
        let key = bytes(key, key_length)?;
        Ok(borrow_mut(batch)?.add(Kind::SingleDelete, borrow(family)?, key, &[]))
    }

    /// Adds the removal of a range.
    fn lithify_batch_delete_range(
        batch: *mut CBatch,
        family: *mut Family,
        start: *const c_void,
        start_length: usize,
        end: *const c_void,
        end_length: usize,
    ) {
        let (start, end) = (bytes(start, start_length)?, bytes(end, end_length)?);
        Ok(borrow_mut(batch)?.add(Kind::DeleteRange, borrow(family)?, start, end))
    }

    /// Adds an operand.
    fn lithify_batch_merge(
        batch: *mut CBatch,
        family: *mut Family,
        key: *const c_void,
        key_length: usize,
        operand: *const c_void,
        operand_length: usize,
    ) {
        let (key, operand) = (bytes(key, key_length)?, bytes(operand, operand_length)?);
        Ok(borrow_mut(batch)?.add(Kind::Merge, borrow(family)?, key, operand))
    }

    /// Adds rows of a buffer.
    fn lithify_batch_rows(
        batch: *mut CBatch,
        family: *mut Family,
        rows: *const c_void,
        length: usize,
    ) {
        borrow_mut(batch)?.add_rows(borrow(family)?, bytes(rows, length)?)?;
        Ok(OK)
    }

    /// Writes everything; the batch stays.
    fn lithify_batch_commit(db: *mut Db, batch: *const CBatch, durable: c_int) {
        let writes = borrow(batch)?.of(borrow(db)?);
        match durability(durable)? {
            None => writes.commit()?,
            Some(durability) => writes.commit_with(durability)?,
        }
        Ok(OK)
    }
}

/// The number of writes; 0 for NULL and in another process.
///
/// # Safety
/// `batch` is NULL, or came from this library and is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lithify_batch_count(batch: *const CBatch) -> usize {
    // SAFETY: the caller promises a live object, or NULL.
    unsafe { borrow(batch) }.map_or(0, |batch| batch.writes.len())
}

/// About the bytes that it takes of the log; 0 for NULL and in another process.
///
/// # Safety
/// As of `lithify_batch_count`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lithify_batch_size_bytes(batch: *const CBatch) -> usize {
    // SAFETY: the caller promises a live object, or NULL.
    let batch = unsafe { borrow(batch) };
    batch.map_or(0, |batch| batch.bytes.len() + batch.writes.len() * HEAD_BYTES)
}

/// Forgets all writes.
///
/// # Safety
/// `batch` is NULL, or came from this library, is not freed, and nobody else uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lithify_batch_clear(batch: *mut CBatch) {
    // SAFETY: the caller promises a live object that nobody else uses, or NULL.
    if let Ok(batch) = unsafe { borrow_mut(batch) } {
        batch.clear();
    }
}
