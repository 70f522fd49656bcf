//! Moves over the entries of a table, both ways, for user reads.
//!
//! A cursor holds the frame of the block that it is in. Its key is put together in a buffer that
//! it keeps, its value is lent out of the frame: no allocation per row. Every move may load a
//! block and therefore takes the context of the read.

use super::data_block::{DataBlock, DataBlockLayout, Place, SteppedTo};
use super::index::{FLAG_ALL_PUTS, IndexRecord};
use super::index_walk::{Edge, IndexWalk};
use super::read_ahead::ReadAhead;
use super::reader::{ReadContext, TableReader};
use crate::base::{SequenceNumber, Slice, Trailer};
use crate::{Error, Result};
use bytes::Bytes;
use std::sync::Arc;

/// See the module. Belongs to one thread at a time; after an error it is at no entry.
pub struct TableCursor {
    table: Arc<TableReader>,
    index: IndexWalk,
    /// Where the block in `frame` lies.
    offset: u64,
    frame: Bytes,
    /// How `frame` is laid out; `None` as long as there is none.
    layout: Option<DataBlockLayout>,
    place: Place,
    /// Of the block in `frame`.
    stepped: SteppedTo,
    key: Vec<u8>,
    trailer: Trailer,
    is_valid: bool,
    /// Whoever reads at this sequence number or a later one sees all entries of the block, and all
    /// are puts; none does where one is not.
    puts_seen_from: SequenceNumber,
    ahead: ReadAhead,
}

impl TableCursor {
    pub(super) fn new(table: Arc<TableReader>) -> Self {
        TableCursor {
            table,
            index: IndexWalk::default(),
            offset: 0,
            frame: Bytes::new(),
            layout: None,
            place: Place::default(),
            stepped: SteppedTo::default(),
            key: Vec::new(),
            trailer: Trailer(0),
            is_valid: false,
            puts_seen_from: SequenceNumber::MAX,
            ahead: ReadAhead::default(),
        }
    }

    /// No entry of the table has a larger sequence number.
    pub(crate) fn largest_sequence(&self) -> SequenceNumber {
        let table = &self.table;
        table.assigned_sequence().unwrap_or(table.properties().largest_sequence)
    }

    /// The table.
    pub(crate) fn table(&self) -> &TableReader {
        &self.table
    }

    /// Whether the cursor is at an entry.
    #[inline]
    pub fn valid(&self) -> bool {
        self.is_valid
    }

    /// The user key of the entry. Meaningful only while valid, like all that follows.
    #[inline]
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Sequence number and kind of the entry.
    #[inline]
    pub fn trailer(&self) -> Trailer {
        self.trailer
    }

    /// The value of the entry.
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.frame.get(self.place.value_range()).unwrap_or_default()
    }

    /// The value of the entry, kept alive with its block's frame.
    pub fn value_slice(&self) -> Slice {
        if self.is_valid {
            Slice::from_bytes(self.frame.slice(self.place.value_range()))
        } else {
            Slice::default()
        }
    }

    /// Moves to the first entry that does not sort before the target.
    pub fn seek(
        &mut self,
        key: &[u8],
        trailer: Trailer,
        context: &mut ReadContext<'_>,
    ) -> Result<()> {
        match self.find(key, trailer, context)? {
            None => Ok(()),
            Some((_, Some(place))) => self.arrive(place),
            // The target lies between the block's last entry and its separator.
            Some((_, None)) => self.step(Edge::First, context),
        }
    }

    /// Moves to the last entry that does not sort behind the target.
    pub fn seek_for_prev(
        &mut self,
        key: &[u8],
        trailer: Trailer,
        context: &mut ReadContext<'_>,
    ) -> Result<()> {
        match self.find(key, trailer, context)? {
            None => return self.seek_to_last(context),
            Some((_, Some(place))) => self.arrive(place)?,
            // The target lies behind the block's last entry: no other block is needed.
            Some((record, None)) => return self.enter_block(Some(record), Edge::Last, context),
        }
        if self.key == key && self.trailer == trailer {
            return Ok(());
        }
        self.prev(context)
    }

    /// Moves to the first entry.
    pub fn seek_to_first(&mut self, context: &mut ReadContext<'_>) -> Result<()> {
        self.enter(Edge::First, context)
    }

    /// Moves to the last entry.
    pub fn seek_to_last(&mut self, context: &mut ReadContext<'_>) -> Result<()> {
        self.enter(Edge::Last, context)
    }

    /// Moves to the next entry; behind the last one the cursor is at no entry.
    #[inline]
    pub fn next(&mut self, context: &mut ReadContext<'_>) -> Result<()> {
        if !self.is_valid {
            return Ok(());
        }
        self.is_valid = false;
        let place = self.place;
        let next = match self.data() {
            Some((data, built)) => data.next(&place, built),
            None => Ok(None),
        };
        match self.in_block(next)? {
            Some(place) => self.arrive(place),
            None => self.step(Edge::First, context),
        }
    }

    /// Whether the cursor is in a block of which a reader at `snapshot` sees all entries, and all of
    /// them are puts.
    #[inline]
    pub(crate) fn is_among_puts(&self, snapshot: SequenceNumber) -> bool {
        if planted!(LeadThroughUnseen) {
            return true;
        }
        self.puts_seen_from <= snapshot
    }

    /// Moves to the next entry of the block that the cursor is in, and tells whether it is an older
    /// one of the same key; `None` behind the last one, where the cursor then stays. Leaves
    /// [`TableCursor::trailer`] as it is: see [`TableCursor::renew_trailer`].
    #[inline]
    pub(crate) fn next_in_block(&mut self) -> Result<Option<bool>> {
        let place = self.place;
        let next = match self.data() {
            Some((data, built)) => data.next_version(&place, built),
            None => Ok(None),
        };
        self.move_in_block(next)
    }

    /// Moves to the entry before, of the block that the cursor is in, and tells as
    /// [`TableCursor::is_first_version`] does of it; `None` before the first one, where the cursor
    /// then stays. Leaves the trailer as [`TableCursor::next_in_block`] does.
    #[inline]
    pub(crate) fn previous_in_block(&mut self) -> Result<Option<bool>> {
        let previous = self.previous();
        self.move_in_block(previous)
    }

    #[inline]
    fn previous(&mut self) -> Result<Option<(Place, bool)>> {
        let (place, mut stepped) = (self.place, self.stepped);
        let previous = match self.data() {
            Some((data, built)) => data.previous(&place, built, &mut stepped),
            None => Ok(None),
        };
        self.stepped = stepped;
        previous
    }

    #[inline]
    fn move_in_block(&mut self, moved: Result<Option<(Place, bool)>>) -> Result<Option<bool>> {
        match moved {
            Ok(Some((place, told))) => {
                self.place = place;
                Ok(Some(told))
            }
            Ok(None) => Ok(None),
            Err(error) => {
                self.is_valid = false;
                Err(self.place_error(error))
            }
        }
    }

    /// Whether the entry before, in the same block, is surely of another key; false if that takes a
    /// comparison.
    pub(crate) fn is_first_version(&mut self) -> Result<bool> {
        let place = self.place;
        let found = self.data().map_or(Ok(false), |(data, _)| data.is_first_version(&place));
        self.in_block(found)
    }

    /// Reads sequence number and kind of the entry, after a move in the block.
    pub(crate) fn renew_trailer(&mut self) -> Result<()> {
        self.is_valid = false;
        self.arrive(self.place)
    }

    /// Moves to the entry before; before the first one the cursor is at no entry.
    pub fn prev(&mut self, context: &mut ReadContext<'_>) -> Result<()> {
        if !self.is_valid {
            return Ok(());
        }
        self.is_valid = false;
        let previous = self.previous();
        match self.in_block(previous)? {
            Some((place, _)) => self.arrive(place),
            None => self.step(Edge::Last, context),
        }
    }

    /// Loads the block in which the target belongs, if any does not end before it, and finds the
    /// first entry there that does not sort before it.
    #[inline]
    fn find(
        &mut self,
        key: &[u8],
        trailer: Trailer,
        context: &mut ReadContext<'_>,
    ) -> Result<Option<(IndexRecord, Option<Place>)>> {
        self.is_valid = false;
        self.ahead.reset();
        let Some(record) = self.index.seek(&self.table, key, trailer, context)? else {
            return Ok(None);
        };
        self.load(&record, context)?;
        let found = match self.data() {
            Some((data, built)) => data.seek::<true>(key, trailer, built),
            None => Ok(None),
        };
        let place = self.in_block(found)?.map(|(place, _)| place);
        Ok(Some((record, place)))
    }

    /// Goes to the first or the last entry.
    fn enter(&mut self, edge: Edge, context: &mut ReadContext<'_>) -> Result<()> {
        self.is_valid = false;
        let record = self.index.enter(&self.table, edge, context)?;
        self.enter_block(record, edge, context)
    }

    /// Goes on into the next block, or with [`Edge::Last`] back into the one before.
    fn step(&mut self, edge: Edge, context: &mut ReadContext<'_>) -> Result<()> {
        let record = self.index.step(&self.table, edge, context)?;
        self.enter_block(record, edge, context)
    }

    fn enter_block(
        &mut self,
        record: Option<IndexRecord>,
        edge: Edge,
        context: &mut ReadContext<'_>,
    ) -> Result<()> {
        let Some(record) = record else {
            return Ok(());
        };
        self.load(&record, context)?;
        let Some((data, built)) = self.data() else {
            return Ok(());
        };
        let place = match edge {
            Edge::First => data.first(built),
            Edge::Last => data.last(built),
        };
        let place = self.in_block(place)?;
        self.arrive(place)
    }

    #[inline]
    fn arrive(&mut self, place: Place) -> Result<()> {
        let trailer = match self.data() {
            Some((data, _)) => data.trailer(place.index()),
            None => Ok(Trailer(0)),
        };
        self.trailer = self.in_block(trailer)?;
        self.place = place;
        self.is_valid = true;
        Ok(())
    }

    /// The block at hand and the buffer for its keys.
    #[inline]
    fn data(&mut self) -> Option<(DataBlock<'_>, &mut Vec<u8>)> {
        let layout = self.layout.as_ref()?;
        Some((DataBlock::new(&self.frame, layout), &mut self.key))
    }

    /// Makes a block the one at hand.
    fn load(&mut self, record: &IndexRecord, context: &mut ReadContext<'_>) -> Result<()> {
        if self.layout.is_some() && self.offset == record.handle.offset {
            return Ok(());
        }
        self.layout = None;
        self.stepped = SteppedTo::default();
        self.offset = record.handle.offset;
        self.frame = self.table.data_block_ahead(record, &mut self.ahead, context)?;
        self.layout = Some(self.in_block(DataBlockLayout::parse(&self.frame))?);
        self.puts_seen_from = match record.flags & FLAG_ALL_PUTS {
            0 => SequenceNumber::MAX,
            _ => self.table.assigned_sequence().unwrap_or(record.largest_sequence),
        };
        Ok(())
    }

    /// Names the block as the place of an error.
    #[inline]
    fn in_block<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| self.place_error(error))
    }

    #[cold]
    fn place_error(&self, error: Error) -> Error {
        error.at(self.table.file().path(), self.offset)
    }
}
