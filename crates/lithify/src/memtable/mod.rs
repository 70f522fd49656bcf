//! The ordered run in memory: what was written and not yet flushed.
//!
//! Owns the newest entries of one column family, their order, and their range tombstones, until
//! the whole is dropped. One writer at a time inserts ([`MemTable::writer`] waits for the one
//! before it, once per commit group); any number of threads read meanwhile. A reader takes no
//! lock, waits for nobody and never retries; a get or a cursor step writes to no shared memory.
//! The room does not write files, knows no options, and decides neither what a snapshot shows nor
//! what a range tombstone hides.
//!
//! # How it works
//!
//! A B+tree in an `arena`, where nothing moves and nothing is freed before the end.
//!
//! 1. An insert copies the row into the arena, goes down, and fills the next free slot of a leaf:
//!    slots are never changed after. A list of one-byte links holds their order; one release store
//!    of one link shows the row to readers. `node.rs` tells how a search gets by with eight bytes
//!    of each key.
//! 2. A full leaf is copied into two; one that was filled in ascending order stays, and a fresh one
//!    begins beside it. The inner node above is copied with the new child, and so on upwards while
//!    a copy outgrows its node; one release store into the first node that needs no copy, or into
//!    the root pointer, shows all of it.
//! 3. Replaced nodes stay readable. A cursor keeps its way down and goes on in them.
//!
//! # Why a reader misses nothing
//!
//! *Claim.* A reader that begins its descent after an insert (by happens-before) meets the entry,
//! however long it then walks. So a snapshot is complete, if it is published after the inserts of
//! its group and acquired before the seek.
//!
//! - *A child answers for a fixed range of its parent, for ever.* Its pointer is only replaced by
//!   one to a node with all entries of that range, and the ranges of the children divide that of
//!   the parent. So whatever mixture of old and new nodes a walk uses, it passes through each range
//!   once, in order, and meets no entry twice. (A full node that stays in an ascending load answers
//!   for less in its new parent: for what it held until then.)
//! - *A node never loses an entry.* Slots and links of a leaf are only added; copies hold all that
//!   the original held; only the writer copies, and it sees its own inserts.
//! - *Each pointer read on the way down leads to a node with all entries of its range inserted
//!   before the descent began.* For the root: a load returns a value no older than the last store
//!   that happens before it, and every later store leads to the same entries and more. For a child
//!   of a current node: likewise. For a child of a replaced node: its pointers are frozen at what
//!   they were when it was replaced; that was after the descent began, or the descent would not
//!   have met it, so the entries were there already. In each case the child may be ahead: later
//!   entries are met or not, and their sequence numbers, above the snapshot, tell them apart.
//! - *What a pointer or link leads to was written before it was stored*, and is read after an
//!   acquire load of it; plain memory is written once, before. Hence no data race.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p lithify --lib memtable::loom --release` checks this over
//! every interleaving of small trees, in about a second.
//!
//! # What it costs
//!
//! 300,000 rows of 24 + 176 bytes in random order, on one core of a shared AMD EPYC machine: insert
//! 210 to 310 ns, get 410 to 490 ns, seek and ten rows 600 to 760 ns; ascending insert 100 ns. The
//! standard B-tree takes 810 to 880 ns per insert in the same run. Two things matter most: huge
//! pages (without them 1.7 times the insert and the get) and the prefetch of a leaf (without it 1.3
//! and 1.5 times). Memory beside key and value is 87 bytes a row in random order, of which 25 are
//! in use in leaves, 16 are the row's header and most of the rest replaced nodes: the price of
//! readers without epochs. An ascending load takes 45. All of it is charged.

#[expect(unsafe_code, reason = "owns raw memory")]
mod arena;
pub(crate) mod chunk_pool;
mod cursor;
#[expect(unsafe_code, reason = "rows of variable size in raw memory")]
mod entry;
#[expect(unsafe_code, reason = "nodes that are read while the writer fills them")]
mod node;
#[expect(unsafe_code, reason = "outlives borrows of the nodes it points to")]
mod position;
#[expect(unsafe_code, reason = "cells that are published by atomics")]
mod sync;
#[expect(unsafe_code, reason = "follows pointers to rows and links")]
mod tombstones;
#[expect(unsafe_code, reason = "follows pointers to nodes")]
mod tree;

#[cfg(all(test, loom))]
mod loom;
#[cfg(all(test, not(loom)))]
mod tests;

pub use cursor::MemCursor;
pub use tombstones::RangeTombstone;

use crate::base::{DeadPasses, SequenceNumber, Trailer, ValueKind};
use chunk_pool::ChunkPool;
use entry::Probe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tombstones::Tombstones;
use tree::{Tree, TreeWriter};

/// See the module header.
pub struct MemTable {
    tree: Tree,
    tombstones: Tombstones,
    totals: Totals,
    /// What scans have paid for its dead entries.
    dead_passes: DeadPasses,
}

/// Figures that the writer keeps and anyone reads.
struct Totals {
    entries: AtomicU64,
    data_bytes: AtomicUsize,
    arena_bytes: AtomicUsize,
    /// The maximum while there is none.
    first_sequence: AtomicU64,
    last_sequence: AtomicU64,
}

/// The right to insert, held by one thread at a time: by the leader of a commit group.
pub struct MemTableWriter<'m> {
    table: &'m MemTable,
    tree: TreeWriter<'m>,
}

impl Default for MemTable {
    fn default() -> Self {
        MemTable::new()
    }
}

impl MemTable {
    /// An empty memtable; it takes a few kilobytes.
    pub fn new() -> MemTable {
        MemTable::of(Tree::new(None))
    }

    /// An empty memtable that has its memory from those before it and leaves it to those after.
    pub(crate) fn in_pool(pool: &Arc<ChunkPool>) -> MemTable {
        MemTable::of(Tree::new(Some(Arc::clone(pool))))
    }

    fn of(tree: Tree) -> MemTable {
        let arena_bytes = AtomicUsize::new(tree.writer().allocated_bytes());
        let totals = Totals {
            entries: AtomicU64::new(0),
            data_bytes: AtomicUsize::new(0),
            arena_bytes,
            first_sequence: AtomicU64::new(u64::MAX),
            last_sequence: AtomicU64::new(0),
        };
        let dead_passes = DeadPasses::default();
        MemTable { tree, tombstones: Tombstones::new(), totals, dead_passes }
    }

    /// The writer: waits until the one before it is dropped. Take it once for a group of rows.
    pub fn writer(&self) -> MemTableWriter<'_> {
        MemTableWriter { table: self, tree: self.tree.writer() }
    }

    /// Whether nothing was inserted, neither an entry nor a range tombstone.
    pub fn is_empty(&self) -> bool {
        self.totals.first_sequence.load(Ordering::Relaxed) == u64::MAX
    }

    /// A scan has passed so many dead entries; true as often as scans have paid for a flush.
    pub(crate) fn note_dead_passes(&self, passes: u64) -> bool {
        self.dead_passes.add(passes, self.entries())
    }

    /// Whether scans have paid for a flush.
    pub(crate) fn is_paid_for(&self) -> bool {
        self.dead_passes.pay_for(self.entries())
    }

    /// The number of entries. Range tombstones do not count.
    pub fn entries(&self) -> u64 {
        self.totals.entries.load(Ordering::Relaxed)
    }

    /// Everything allocated, in bytes: what the memtable takes from the memory budget.
    pub fn memory_bytes(&self) -> usize {
        let arena_bytes = self.totals.arena_bytes.load(Ordering::Relaxed);
        size_of::<MemTable>() + arena_bytes
    }

    /// The bytes of all keys and values, and of the ends of range tombstones.
    pub fn data_bytes(&self) -> usize {
        self.totals.data_bytes.load(Ordering::Relaxed)
    }

    /// The smallest sequence number inserted.
    pub fn first_sequence(&self) -> Option<SequenceNumber> {
        let first = self.totals.first_sequence.load(Ordering::Relaxed);
        (first != u64::MAX).then_some(first)
    }

    /// The largest sequence number inserted.
    pub fn last_sequence(&self) -> Option<SequenceNumber> {
        (!self.is_empty()).then(|| self.totals.last_sequence.load(Ordering::Relaxed))
    }

    /// The newest entry of the key at the snapshot. It does not look at range tombstones.
    #[inline]
    pub fn get(&self, key: &[u8], snapshot: SequenceNumber) -> Option<(ValueKind, Trailer, &[u8])> {
        let probe = Probe { key, trailer: Trailer::seek(snapshot) };
        let entry = self.tree.first_from(&probe)?;
        if entry.key() != key {
            return None;
        }
        Some((entry.trailer().kind()?, entry.trailer(), entry.value()))
    }

    /// A cursor, at no entry yet.
    pub fn cursor(self: &Arc<Self>) -> MemCursor {
        MemCursor::new(Arc::clone(self))
    }

    /// Whether range tombstones were inserted: one atomic load.
    pub fn has_range_tombstones(&self) -> bool {
        !self.tombstones.is_empty()
    }

    /// The range tombstones inserted so far, newest first.
    pub fn range_tombstones(&self) -> impl Iterator<Item = RangeTombstone<'_>> {
        self.tombstones.iter()
    }
}

impl MemTableWriter<'_> {
    /// Adds an entry. No other entry may have the same key and trailer.
    ///
    /// # Panics
    /// If key or value are longer than [`crate::base::KEY_SIZE_MAX`] and
    /// [`crate::base::VALUE_SIZE_MAX`]; the public API refused them before.
    pub fn insert(&mut self, key: &[u8], trailer: Trailer, value: &[u8]) {
        debug_assert!(trailer.kind().is_some_and(|kind| kind != ValueKind::RangeDelete));
        self.tree.insert(key, trailer, value);
        let entries = &self.table.totals.entries;
        entries.store(entries.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.book(trailer.sequence(), key.len() + value.len());
    }

    /// Adds a range tombstone: older entries from `start` to before `end` are deleted.
    ///
    /// # Panics
    /// If one of the keys is longer than [`crate::base::KEY_SIZE_MAX`].
    pub fn delete_range(&mut self, start: &[u8], end: &[u8], sequence: SequenceNumber) {
        self.table.tombstones.insert(self.tree.arena(), start, end, sequence);
        self.book(sequence, start.len() + end.len());
    }

    /// There is one writer, so that a load and a store make an addition.
    fn book(&self, sequence: SequenceNumber, data_bytes: usize) {
        let totals = &self.table.totals;
        let data_bytes = totals.data_bytes.load(Ordering::Relaxed) + data_bytes;
        totals.data_bytes.store(data_bytes, Ordering::Relaxed);
        totals.arena_bytes.store(self.tree.allocated_bytes(), Ordering::Relaxed);
        if sequence > totals.last_sequence.load(Ordering::Relaxed) {
            totals.last_sequence.store(sequence, Ordering::Relaxed);
        }
        if sequence < totals.first_sequence.load(Ordering::Relaxed) {
            totals.first_sequence.store(sequence, Ordering::Relaxed);
        }
    }
}
