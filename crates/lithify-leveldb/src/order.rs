//! Comparators of the caller.
//!
//! The engine orders keys bytewise, and so are its files. A comparator that says the same about all keys
//! that are stored works. Any other is refused by the first write or seek that would show the difference:
//!
//! 1. A key is written only if the comparator agrees with the bytewise order about it and its two
//!    neighbours, among the rows and in its batch. Both orders are transitive, so they agree on all keys
//!    that are stored. Two keys that the comparator takes for equal are a disagreement.
//! 2. A seek, and a get that finds nothing, ask about the key and its two neighbours in what they read.
//!
//! The comparator is asked about keys of the caller alone: bindings decode them.

use crate::batch::{Write, WriteBatch};
use crate::status::{Class, Status};
use lithify::Cursor;
use std::cmp::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The name of the order that the engine has.
pub const BYTEWISE: &[u8] = b"leveldb.BytewiseComparator";

/// A comparator of the caller; asked from any thread.
pub trait Order: Send + Sync {
    /// Its name, which a database keeps.
    fn name(&self) -> Vec<u8>;

    /// What it says about two keys.
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering;
}

/// A comparator that is watched. One writer at a time: between its check and its write no other key
/// comes between two neighbours.
pub struct CheckedOrder {
    order: Arc<dyn Order>,
    writer: Mutex<()>,
}

impl CheckedOrder {
    /// Watches `order`.
    pub fn new(order: Arc<dyn Order>) -> Self {
        CheckedOrder { order, writer: Mutex::default() }
    }

    /// The right to check and write.
    pub fn writer(&self) -> MutexGuard<'_, ()> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_pair(&self, a: &[u8], b: &[u8]) -> Result<(), Status> {
        if self.order.compare(a, b) == a.cmp(b) {
            return Ok(());
        }
        let name = String::from_utf8_lossy(&self.order.name()).into_owned();
        let what = format!(
            "comparator {name} does not order bytewise, which is the only order there is here; \
             it differs on {:?} and {:?}",
            a.escape_ascii().to_string(),
            b.escape_ascii().to_string(),
        );
        Err(Status::new(Class::NotSupported, what))
    }

    /// Checks a key against its neighbours among the rows that a cursor shows.
    ///
    /// # Errors
    /// The comparator disagrees; what reading meets.
    pub fn check_place(&self, rows: &mut Cursor, key: &[u8]) -> Result<(), Status> {
        let has_before = if rows.seek(key)? {
            if rows.key() == key {
                // It is stored: both orders agree about it and its neighbours.
                return Ok(());
            }
            self.check_pair(key, rows.key())?;
            rows.prev()?
        } else {
            rows.seek_to_last()?
        };
        match has_before {
            true => self.check_pair(rows.key(), key),
            false => Ok(()),
        }
    }

    /// Checks all keys of a batch against each other and against the rows that a cursor shows.
    ///
    /// # Errors
    /// As [`CheckedOrder::check_place`].
    pub fn check_batch(&self, rows: &mut Cursor, batch: &WriteBatch) -> Result<(), Status> {
        let mut keys: Vec<&[u8]> = batch.writes().map(Write::key).collect();
        keys.sort_unstable();
        keys.dedup();
        for pair in keys.windows(2) {
            self.check_pair(pair[0], pair[1])?;
        }
        keys.iter().try_for_each(|key| self.check_place(rows, key))
    }
}
