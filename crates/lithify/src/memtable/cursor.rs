//! Walks over a memtable in the order of its entries.

use super::MemTable;
use super::entry::{Entry, Probe};
use super::position::Position;
use crate::base::Trailer;
use std::sync::Arc;

/// A cursor over the entries of a memtable, keys ascending and newest first within a key. It may be
/// used while the writer inserts: it meets every entry that was inserted before the last seek, and
/// none, some or all of those inserted later. It does not allocate; it keeps the memtable alive.
pub struct MemCursor {
    position: Position,
    /// Keeps alive what the position points to.
    table: Arc<MemTable>,
}

impl MemCursor {
    pub(super) fn new(table: Arc<MemTable>) -> Self {
        MemCursor { position: Position::nowhere(), table }
    }

    /// Goes to the first entry at or after `(key, trailer)`.
    #[expect(unsafe_code, reason = "the position outlives the borrow of the tree")]
    pub fn seek(&mut self, key: &[u8], trailer: Trailer) {
        // SAFETY: `table` keeps the tree alive, in place, as long as the position.
        unsafe { self.position.seek(&self.table.tree, &Probe { key, trailer }) };
    }

    /// Goes to the last entry at or before `(key, trailer)`.
    #[expect(unsafe_code, reason = "the position outlives the borrow of the tree")]
    pub fn seek_for_prev(&mut self, key: &[u8], trailer: Trailer) {
        // SAFETY: `table` keeps the tree alive, in place, as long as the position.
        unsafe { self.position.seek_for_prev(&self.table.tree, &Probe { key, trailer }) };
    }

    /// Goes to the first entry.
    #[expect(unsafe_code, reason = "the position outlives the borrow of the tree")]
    pub fn seek_to_first(&mut self) {
        // SAFETY: `table` keeps the tree alive, in place, as long as the position.
        unsafe { self.position.seek_to_first(&self.table.tree) };
    }

    /// Goes to the last entry.
    #[expect(unsafe_code, reason = "the position outlives the borrow of the tree")]
    pub fn seek_to_last(&mut self) {
        // SAFETY: `table` keeps the tree alive, in place, as long as the position.
        unsafe { self.position.seek_to_last(&self.table.tree) };
    }

    /// The memtable.
    pub(crate) fn table(&self) -> &MemTable {
        &self.table
    }

    /// Goes to the next entry. At no entry it stays there.
    pub fn next(&mut self) {
        self.position.next();
    }

    /// Goes to the previous entry. At no entry it stays there.
    pub fn prev(&mut self) {
        self.position.previous();
    }

    /// Whether the cursor is at an entry.
    pub fn valid(&self) -> bool {
        self.position.entry().is_some()
    }

    /// The key; empty at no entry.
    pub fn key(&self) -> &[u8] {
        self.position.entry().map_or(&[], Entry::key)
    }

    /// The trailer; zero at no entry.
    pub fn trailer(&self) -> Trailer {
        self.position.entry().map_or(Trailer(0), Entry::trailer)
    }

    /// The value; empty at no entry.
    pub fn value(&self) -> &[u8] {
        self.position.entry().map_or(&[], Entry::value)
    }
}
