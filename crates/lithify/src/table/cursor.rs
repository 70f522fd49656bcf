//! Moves over the entries of a table, both ways, for user reads.
//!
//! A cursor holds the frame of the block that it is in. Its key is put together in a buffer that
//! it keeps, its value is lent out of the frame: no allocation per row. Every move may load a
//! block and therefore takes the context of the read.

use super::data_block::{DataBlock, DataBlockLayout, Place};
use super::read_ahead::ReadAhead;
use super::reader::{ReadContext, TableReader};
use crate::base::{Slice, Trailer};
use crate::{Error, Result};
use bytes::Bytes;
use std::sync::Arc;

/// See the module. Belongs to one thread at a time; after an error it is at no entry.
pub struct TableCursor {
    table: Arc<TableReader>,
    index: Option<Bytes>,
    /// The number of the block in `frame`.
    block: usize,
    frame: Bytes,
    /// How `frame` is laid out; `None` as long as there is none.
    layout: Option<DataBlockLayout>,
    place: Place,
    key: Vec<u8>,
    trailer: Trailer,
    is_valid: bool,
    ahead: ReadAhead,
}

/// From which side a block is entered.
#[derive(Clone, Copy)]
enum Edge {
    First,
    Last,
}

impl TableCursor {
    pub(super) fn new(table: Arc<TableReader>) -> Self {
        TableCursor {
            table,
            index: None,
            block: 0,
            frame: Bytes::new(),
            layout: None,
            place: Place::default(),
            key: Vec::new(),
            trailer: Trailer(0),
            is_valid: false,
            ahead: ReadAhead::default(),
        }
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
        self.is_valid = false;
        self.ahead.reset();
        let index = self.index(context)?;
        let index = self.table.parse_index(&index)?;
        let block = self.table.in_index(index.find(key, trailer))?;
        if !self.load(block, context)? {
            return Ok(());
        }
        let found = match self.data() {
            Some((data, built)) => data.seek::<true>(key, trailer, built),
            None => Ok(None),
        };
        match self.in_block(found)? {
            Some((place, _)) => self.arrive(place),
            // The target lies between the block's last entry and its separator.
            None => self.enter(block + 1, Edge::First, context),
        }
    }

    /// Moves to the last entry that does not sort behind the target.
    pub fn seek_for_prev(
        &mut self,
        key: &[u8],
        trailer: Trailer,
        context: &mut ReadContext<'_>,
    ) -> Result<()> {
        self.seek(key, trailer, context)?;
        if !self.is_valid {
            return self.seek_to_last(context);
        }
        if self.key == key && self.trailer == trailer {
            return Ok(());
        }
        self.prev(context)
    }

    /// Moves to the first entry.
    pub fn seek_to_first(&mut self, context: &mut ReadContext<'_>) -> Result<()> {
        self.enter(0, Edge::First, context)
    }

    /// Moves to the last entry.
    pub fn seek_to_last(&mut self, context: &mut ReadContext<'_>) -> Result<()> {
        self.is_valid = false;
        let index = self.index(context)?;
        match self.table.parse_index(&index)?.block_count().checked_sub(1) {
            Some(block) => self.enter(block, Edge::Last, context),
            None => Ok(()),
        }
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
            None => self.enter(self.block + 1, Edge::First, context),
        }
    }

    /// Moves to the entry before; before the first one the cursor is at no entry.
    pub fn prev(&mut self, context: &mut ReadContext<'_>) -> Result<()> {
        if !self.is_valid {
            return Ok(());
        }
        self.is_valid = false;
        let place = self.place;
        let previous = match self.data() {
            Some((data, built)) => data.previous(&place, built),
            None => Ok(None),
        };
        match (self.in_block(previous)?, self.block.checked_sub(1)) {
            (Some(place), _) => self.arrive(place),
            (None, Some(block)) => self.enter(block, Edge::Last, context),
            (None, None) => Ok(()),
        }
    }

    fn enter(&mut self, block: usize, edge: Edge, context: &mut ReadContext<'_>) -> Result<()> {
        self.is_valid = false;
        if !self.load(block, context)? {
            return Ok(());
        }
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
        let layout = self.layout?;
        Some((DataBlock::known(&self.frame, layout), &mut self.key))
    }

    fn index(&mut self, context: &mut ReadContext<'_>) -> Result<Bytes> {
        if let Some(index) = &self.index {
            return Ok(index.clone());
        }
        let index = self.table.index(context)?.into_bytes();
        Ok(self.index.insert(index).clone())
    }

    /// Makes `block` the one at hand; false if there is no such block.
    fn load(&mut self, block: usize, context: &mut ReadContext<'_>) -> Result<bool> {
        if self.layout.is_some() && self.block == block {
            return Ok(true);
        }
        let index = self.index(context)?;
        let index = self.table.parse_index(&index)?;
        if block >= index.block_count() {
            return Ok(false);
        }
        self.layout = None;
        let record = self.table.in_index(index.record(block))?;
        self.frame = self.table.data_block_ahead(&record, &mut self.ahead, context)?;
        self.block = block;
        let layout = DataBlock::parse(&self.frame).map(|data| data.layout());
        self.layout =
            Some(layout.map_err(|error| error.at(self.table.file().path(), record.handle.offset))?);
        Ok(true)
    }

    /// Names the block as the place of an error.
    #[inline]
    fn in_block<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| self.place_error(error))
    }

    #[cold]
    fn place_error(&self, error: Error) -> Error {
        let index = self.index.clone().unwrap_or_default();
        let record = self.table.parse_index(&index).and_then(|index| index.record(self.block));
        match record {
            Ok(record) => error.at(self.table.file().path(), record.handle.offset),
            Err(_) => error.in_file(self.table.file().path()),
        }
    }
}
