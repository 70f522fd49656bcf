//! The range tombstones of a memtable: few, and read as a whole.
//!
//! The writer links each one in front of a list in the arena. Readers want them as one array, which
//! is made by the first reader who finds that the last one is behind, and shared until the next
//! tombstone: a run of range deletions costs the writer no copying, and a read without any costs
//! one load.

use super::arena::Arena;
use super::entry::{Entry, EntryPointer};
use crate::base::{SequenceNumber, Trailer, ValueKind};
use arc_swap::ArcSwap;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Deletes the older entries of a range of keys, half open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeTombstone {
    /// The first key deleted.
    pub start: Box<[u8]>,
    /// The first key after the range.
    pub end: Box<[u8]>,
    /// What is older than this is deleted.
    pub sequence: SequenceNumber,
}

/// See the module header.
pub(super) struct Tombstones {
    newest: AtomicPtr<Link>,
    snapshot: ArcSwap<Snapshot>,
    snapshot_bytes: AtomicUsize,
}

/// Immutable once it is linked.
struct Link {
    /// The start as key and the end as value.
    entry: EntryPointer,
    older: Option<NonNull<Link>>,
    /// Tombstones up to this one.
    count: usize,
}

struct Snapshot(Arc<[RangeTombstone]>);

impl Tombstones {
    pub(super) fn new() -> Self {
        Tombstones {
            newest: AtomicPtr::new(std::ptr::null_mut()),
            snapshot: ArcSwap::from_pointee(Snapshot(Arc::default())),
            snapshot_bytes: AtomicUsize::new(0),
        }
    }

    /// Bytes of the array that readers share.
    pub(super) fn snapshot_bytes(&self) -> usize {
        self.snapshot_bytes.load(Ordering::Relaxed)
    }

    fn newest(&self) -> Option<&Link> {
        // SAFETY: the acquire load saw a link that was written before it was stored; it lies in
        // the arena of the memtable that owns this.
        unsafe { self.newest.load(Ordering::Acquire).as_ref() }
    }

    /// Adds a tombstone. Called by the writer, with the arena of the same memtable.
    pub(super) fn insert(
        &self,
        arena: &mut Arena,
        start: &[u8],
        end: &[u8],
        sequence: SequenceNumber,
    ) {
        let trailer = Trailer::new(sequence, ValueKind::RangeDelete);
        let entry = Entry::write(arena, start, trailer, end).pointer();
        let older = NonNull::new(self.newest.load(Ordering::Relaxed));
        let count = self.newest().map_or(0, |link| link.count) + 1;
        let link = arena.place(Link { entry, older, count });
        self.newest.store(link.as_ptr(), Ordering::Release);
    }

    /// All tombstones, oldest first.
    pub(super) fn snapshot(&self) -> Arc<[RangeTombstone]> {
        let Some(newest) = self.newest() else { return Arc::default() };
        let snapshot = self.snapshot.load();
        if snapshot.0.len() >= newest.count {
            return Arc::clone(&snapshot.0);
        }
        let tombstones = newest.collect();
        let bytes = tombstones.iter().map(|t| size_of_val(t) + t.start.len() + t.end.len()).sum();
        // Readers may race here: whoever comes last may store the shorter array, and the next
        // reader makes the longer one again.
        self.snapshot.store(Arc::new(Snapshot(Arc::clone(&tombstones))));
        self.snapshot_bytes.store(bytes, Ordering::Relaxed);
        tombstones
    }
}

impl Link {
    /// This tombstone and all older ones, oldest first.
    fn collect(&self) -> Arc<[RangeTombstone]> {
        let mut tombstones = Vec::with_capacity(self.count);
        let mut next = Some(self);
        while let Some(link) = next {
            // SAFETY: written before the link; in the same arena.
            let entry = unsafe { Entry::at(link.entry) };
            tombstones.push(RangeTombstone {
                start: entry.key().into(),
                end: entry.value().into(),
                sequence: entry.trailer().sequence(),
            });
            // SAFETY: written before this link; in the same arena.
            next = link.older.map(|older| unsafe { older.as_ref() });
        }
        tombstones.reverse();
        tombstones.into()
    }
}
