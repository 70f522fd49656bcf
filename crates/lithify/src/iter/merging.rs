//! Several ordered runs as one: a binary heap of cursors.
//!
//! 1. Every source stands on an entry; the heap orders those that are valid, smallest first when
//!    going forward, largest first when going back.
//! 2. A move advances the top source and sifts it down.
//! 3. A change of direction puts all other sources on the far side of the current entry first.
//!
//! Sources are told apart by an enum, not by a trait object: the calls are in the inner loop.

use super::{Cover, LevelCursor};
use crate::Result;
use crate::base::{SequenceNumber, Trailer, compare_internal, compare_keys};
use crate::memtable::MemCursor;
use crate::table::{ReadContext, TableCursor};
use std::cmp::Ordering;

/// One ordered run.
pub(crate) enum Source {
    /// A memtable.
    Memory(MemCursor),
    /// A table of level 0.
    Table(TableCursor),
    /// A deeper level: tables one after the other.
    Level(LevelCursor),
}

macro_rules! dispatch {
    ($self:expr, $cursor:ident => $memory:expr, $other:expr) => {
        match $self {
            Source::Memory($cursor) => $memory,
            Source::Table($cursor) => $other,
            Source::Level($cursor) => $other,
        }
    };
}

/// A move of a source: memtables cannot fail, tables read blocks in a context.
macro_rules! moves {
    ($($name:ident($($argument:ident: $kind:ty),*);)+) => {
        $(fn $name(
            &mut self,
            $($argument: $kind,)*
            context: &mut ReadContext<'_>,
        ) -> Result<()> {
            match self {
                Source::Memory(cursor) => {
                    cursor.$name($($argument),*);
                    Ok(())
                }
                Source::Table(cursor) => cursor.$name($($argument,)* context),
                Source::Level(cursor) => cursor.$name($($argument,)* context),
            }
        })+
    };
}

impl Source {
    #[inline]
    fn valid(&self) -> bool {
        dispatch!(self, cursor => cursor.valid(), cursor.valid())
    }
    #[inline]
    fn key(&self) -> &[u8] {
        dispatch!(self, cursor => cursor.key(), cursor.key())
    }
    #[inline]
    fn trailer(&self) -> Trailer {
        dispatch!(self, cursor => cursor.trailer(), cursor.trailer())
    }
    #[inline]
    fn value(&self) -> &[u8] {
        dispatch!(self, cursor => cursor.value(), cursor.value())
    }

    /// Whether a range tombstone removes all entries that the source has between its own place and the
    /// end of the tombstone, or its start going back. Of a memtable that is not known.
    fn is_covered_by(&self, cover: &Cover<'_>, direction: Direction) -> bool {
        let newest = match self {
            Source::Memory(_) => return false,
            Source::Table(cursor) => cursor.largest_sequence(),
            Source::Level(cursor) => match direction {
                Direction::Forward => cursor.largest_sequence_before(cover.end),
                Direction::Backward => cursor.largest_sequence_from(cover.start),
            },
        };
        if planted!(CoveredRunHasNewerRows) {
            return true;
        }
        newest < cover.sequence
    }

    /// The cursor over the table that the source is in.
    #[inline]
    fn table(&mut self) -> Option<&mut TableCursor> {
        match self {
            Source::Memory(_) => None,
            Source::Table(cursor) => Some(cursor),
            Source::Level(cursor) => cursor.table(),
        }
    }

    moves! {
        seek(key: &[u8], trailer: Trailer);
        seek_for_prev(key: &[u8], trailer: Trailer);
        seek_to_first();
        seek_to_last();
        next();
        prev();
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

/// Where [`MergingCursor::lead`] or [`MergingCursor::lead_back`] went.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lead {
    /// To the next row.
    Row,
    /// To the next entry that the merge goes on with, be it of this source or of another one that has
    /// the same key or one before it. No entry of the row that was left is still to come.
    Overtaken,
    /// Nowhere: the block has ended.
    BlockEnd,
}

/// The merge of several sources, in the order of internal keys. Entries of equal key and trailer
/// do not exist: a sequence number is given once.
pub(crate) struct MergingCursor {
    sources: Vec<Source>,
    /// Indices of the valid sources; the first is the current one.
    heap: Vec<u32>,
    /// The source behind the current one, as [`MergingCursor::can_lead`] found it.
    rival: Option<u32>,
    direction: Direction,
}

impl MergingCursor {
    pub(crate) fn new(sources: Vec<Source>) -> Self {
        let heap = Vec::with_capacity(sources.len());
        MergingCursor { sources, heap, rival: None, direction: Direction::Forward }
    }

    #[inline]
    pub(crate) fn valid(&self) -> bool {
        !self.heap.is_empty()
    }

    #[inline]
    fn current(&self) -> &Source {
        &self.sources[self.heap[0] as usize]
    }

    /// The source of the current entry. The cursor must be valid.
    #[inline]
    pub(super) fn source(&self) -> u32 {
        self.heap[0]
    }

    /// A scan has passed so many dead entries of a source; true as often as scans have paid for
    /// its memtable or table to be written anew.
    pub(super) fn note_dead_passes(&mut self, source: u32, passes: u64) -> bool {
        match &mut self.sources[source as usize] {
            Source::Memory(cursor) => cursor.table().note_dead_passes(passes),
            source => source.table().is_some_and(|open| open.table().note_dead_passes(passes)),
        }
    }

    /// The key of the current entry. The cursor must be valid.
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        self.current().key()
    }

    #[inline]
    pub(crate) fn trailer(&self) -> Trailer {
        self.current().trailer()
    }

    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        self.current().value()
    }

    /// To the first entry at or behind (key, trailer).
    pub(crate) fn seek(
        &mut self,
        key: &[u8],
        trailer: Trailer,
        context: &mut ReadContext<'_>,
    ) -> Result<()> {
        self.position(Direction::Forward, |source| source.seek(key, trailer, context))
    }

    /// To the last entry at or before (key, trailer).
    pub(crate) fn seek_for_prev(
        &mut self,
        key: &[u8],
        trailer: Trailer,
        context: &mut ReadContext<'_>,
    ) -> Result<()> {
        self.position(Direction::Backward, |source| source.seek_for_prev(key, trailer, context))
    }

    pub(crate) fn seek_to_first(&mut self, context: &mut ReadContext<'_>) -> Result<()> {
        self.position(Direction::Forward, |source| source.seek_to_first(context))
    }

    pub(crate) fn seek_to_last(&mut self, context: &mut ReadContext<'_>) -> Result<()> {
        self.position(Direction::Backward, |source| source.seek_to_last(context))
    }

    /// To the next entry. The cursor must be valid.
    pub(crate) fn next(&mut self, context: &mut ReadContext<'_>) -> Result<()> {
        if self.direction == Direction::Backward {
            self.turn(Direction::Forward, context)?;
        }
        let top = self.heap[0] as usize;
        self.sources[top].next(context)?;
        self.settle_top();
        Ok(())
    }

    /// To the previous entry. The cursor must be valid.
    pub(crate) fn prev(&mut self, context: &mut ReadContext<'_>) -> Result<()> {
        if self.direction == Direction::Forward {
            self.turn(Direction::Backward, context)?;
        }
        let top = self.heap[0] as usize;
        self.sources[top].prev(context)?;
        self.settle_top();
        Ok(())
    }

    /// Leaves the keys that a range tombstone covers, with each source of which it removes all that lies
    /// ahead there; false if the current source is none of these.
    #[cold]
    pub(crate) fn leave(
        &mut self,
        cover: &Cover<'_>,
        context: &mut ReadContext<'_>,
    ) -> Result<bool> {
        let (valid, direction) = (std::mem::take(&mut self.heap), self.direction);
        let mut has_left = false;
        for (rank, index) in valid.iter().enumerate() {
            let source = &mut self.sources[*index as usize];
            let key = source.key();
            if key < cover.start || key >= cover.end || !source.is_covered_by(cover, direction) {
                continue;
            }
            match direction {
                Direction::Forward => source.seek(cover.end, Trailer(u64::MAX), context)?,
                Direction::Backward => {
                    source.seek_for_prev(cover.start, Trailer(u64::MAX), context)?;
                }
            }
            has_left |= rank == 0;
        }
        self.heap = valid;
        self.build_heap();
        Ok(has_left)
    }

    /// Whether the current source may be followed by itself alone, with [`MergingCursor::lead`], by a
    /// reader at `snapshot` that nothing hides entries from: the merge goes forward, the source is in
    /// a block of puts of which the reader sees all, and no other source has the current key.
    #[inline]
    pub(crate) fn can_lead(&mut self, snapshot: SequenceNumber) -> bool {
        self.direction == Direction::Forward && self.is_alone_among_puts(snapshot)
    }

    /// The same going back, with [`MergingCursor::lead_back`]; the current entry is a row as well.
    pub(crate) fn can_lead_back(&mut self, snapshot: SequenceNumber) -> Result<bool> {
        if !self.valid() || self.direction == Direction::Forward {
            return Ok(false);
        }
        if !self.is_alone_among_puts(snapshot) {
            return Ok(false);
        }
        let top = self.heap[0] as usize;
        self.sources[top].table().map_or(Ok(false), TableCursor::is_first_version)
    }

    #[inline]
    fn is_alone_among_puts(&mut self, snapshot: SequenceNumber) -> bool {
        let top = self.heap[0] as usize;
        if !self.sources[top].table().is_some_and(|table| table.is_among_puts(snapshot)) {
            return false;
        }
        self.rival = match self.heap[1..] {
            [] => None,
            [only] => Some(only),
            [a, b, ..] => Some(if self.precedes(b, a) { b } else { a }),
        };
        self.is_ahead_of_rival()
    }

    #[inline(always)]
    fn is_ahead_of_rival(&self) -> bool {
        let Some(rival) = self.rival else { return true };
        if planted!(LeadPastAnotherRun) {
            return true;
        }
        let order = compare_keys(self.key(), self.sources[rival as usize].key());
        match self.direction {
            Direction::Forward => order.is_lt(),
            Direction::Backward => order.is_gt(),
        }
    }

    /// To the next row, after [`MergingCursor::can_lead`] or a lead to a row; older entries of the
    /// row before are passed over and counted. In a block of many rows this saves all that a merge
    /// does beside decoding: 635 instructions a row became 399.
    #[inline]
    pub(crate) fn lead(&mut self, skipped_entries: &mut u64) -> Result<Lead> {
        let top = self.heap[0] as usize;
        let Some(table) = self.sources[top].table() else { return Ok(Lead::BlockEnd) };
        loop {
            match table.next_in_block()? {
                Some(false) => break,
                Some(true) => {
                    if planted!(LeadShowsOldVersions) {
                        break;
                    }
                    *skipped_entries += 1;
                }
                None => return Ok(Lead::BlockEnd),
            }
        }
        match self.is_ahead_of_rival() {
            true => Ok(Lead::Row),
            false => self.end_lead(),
        }
    }

    /// To the row before, after [`MergingCursor::can_lead_back`] or a lead to a row.
    #[inline]
    pub(crate) fn lead_back(&mut self) -> Result<Lead> {
        let top = self.heap[0] as usize;
        let Some(table) = self.sources[top].table() else { return Ok(Lead::BlockEnd) };
        match table.previous_in_block()? {
            None => Ok(Lead::BlockEnd),
            Some(true) if self.is_ahead_of_rival() => Ok(Lead::Row),
            Some(_) => self.end_lead(),
        }
    }

    /// Puts the current source, which led, where it belongs among the others.
    fn end_lead(&mut self) -> Result<Lead> {
        let top = self.heap[0] as usize;
        if let Some(table) = self.sources[top].table() {
            table.renew_trailer()?;
        }
        self.settle_top();
        Ok(Lead::Overtaken)
    }

    /// Moves every source by `place`, then builds the heap. After an error the cursor is invalid.
    fn position(
        &mut self,
        direction: Direction,
        mut place: impl FnMut(&mut Source) -> Result<()>,
    ) -> Result<()> {
        self.heap.clear();
        self.direction = direction;
        for source in &mut self.sources {
            place(source)?;
        }
        self.build_heap();
        Ok(())
    }

    /// Puts all sources but the current one on the far side of the current entry.
    fn turn(&mut self, direction: Direction, context: &mut ReadContext<'_>) -> Result<()> {
        let current = self.heap[0] as usize;
        let key = self.sources[current].key().to_vec();
        let trailer = self.sources[current].trailer();
        for (index, source) in self.sources.iter_mut().enumerate() {
            if index != current {
                match direction {
                    Direction::Forward => source.seek(&key, trailer, context)?,
                    Direction::Backward => source.seek_for_prev(&key, trailer, context)?,
                }
            }
        }
        self.direction = direction;
        self.build_heap();
        Ok(())
    }

    fn build_heap(&mut self) {
        self.heap.clear();
        for (index, source) in self.sources.iter().enumerate() {
            if source.valid() {
                self.heap.push(index as u32);
            }
        }
        for index in (0..self.heap.len() / 2).rev() {
            self.sift_down(index);
        }
    }

    /// After the top source moved: drop it if it ended, else restore the order.
    #[inline]
    fn settle_top(&mut self) {
        if !self.sources[self.heap[0] as usize].valid() {
            self.heap.swap_remove(0);
        }
        if self.heap.len() > 1 {
            self.sift_down(0);
        }
    }

    fn precedes(&self, a: u32, b: u32) -> bool {
        let (a, b) = (&self.sources[a as usize], &self.sources[b as usize]);
        let mut order = compare_internal((a.key(), a.trailer()), (b.key(), b.trailer()));
        if planted!(MergeTieBroken) {
            order = a.key().cmp(b.key());
        }
        match self.direction {
            Direction::Forward => order == Ordering::Less,
            Direction::Backward => order == Ordering::Greater,
        }
    }

    fn sift_down(&mut self, mut index: usize) {
        loop {
            let mut child = 2 * index + 1;
            if child >= self.heap.len() {
                return;
            }
            if child + 1 < self.heap.len() && self.precedes(self.heap[child + 1], self.heap[child])
            {
                child += 1;
            }
            if !self.precedes(self.heap[child], self.heap[index]) {
                return;
            }
            self.heap.swap(index, child);
            index = child;
        }
    }
}
