//! The range tombstones of a memtable, in the order in which they came.
//!
//! The writer links each one in front of a list in the arena; readers walk the list. It is the
//! record of what was written, for whoever has to ask all of it. The answers that reads want come
//! from an index that the database keeps beside the memtable.

use super::arena::Arena;
use super::entry::{Entry, EntryPointer};
use crate::base::{SequenceNumber, Trailer, ValueKind};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Deletes the older entries of a range of keys, half open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeTombstone<'m> {
    /// The first key deleted.
    pub start: &'m [u8],
    /// The first key after the range.
    pub end: &'m [u8],
    /// What is older than this is deleted.
    pub sequence: SequenceNumber,
}

/// See the module header.
pub(super) struct Tombstones {
    newest: AtomicPtr<Link>,
}

/// Immutable once it is linked.
struct Link {
    /// The start as key and the end as value.
    entry: EntryPointer,
    older: Option<NonNull<Link>>,
}

impl Tombstones {
    pub(super) fn new() -> Self {
        Tombstones { newest: AtomicPtr::new(std::ptr::null_mut()) }
    }

    fn newest(&self) -> Option<&Link> {
        // SAFETY: the acquire load saw a link that was written before it was stored; it lies in
        // the arena of the memtable that owns this.
        unsafe { self.newest.load(Ordering::Acquire).as_ref() }
    }

    /// Whether there are none: one atomic load.
    pub(super) fn is_empty(&self) -> bool {
        self.newest().is_none()
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
        let link = arena.place(Link { entry, older });
        self.newest.store(link.as_ptr(), Ordering::Release);
    }

    /// Those inserted so far, newest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = RangeTombstone<'_>> {
        std::iter::successors(self.newest(), |link| {
            // SAFETY: written before this link; in the same arena.
            link.older.map(|older| unsafe { older.as_ref() })
        })
        .map(Link::tombstone)
    }
}

impl Link {
    fn tombstone(&self) -> RangeTombstone<'_> {
        // SAFETY: written before the link; in the same arena, which this borrows from.
        let entry = unsafe { Entry::at(self.entry) };
        RangeTombstone {
            start: entry.key(),
            end: entry.value(),
            sequence: entry.trailer().sequence(),
        }
    }
}
