//! The tables of one sorted level, one after the other. Only the table under the cursor is open
//! for reading; moving to a neighbour costs one table cursor, not one per row.

use crate::Result;
use crate::base::{Level, SequenceNumber, Trailer};
use crate::manifest::{TableFile, Version};
use crate::table::{ReadContext, TableCursor};
use std::sync::Arc;

/// A cursor over one level below 0 of a version, which it keeps alive.
pub(crate) struct LevelCursor {
    version: Arc<Version>,
    level: Level,
    index: usize,
    table: Option<TableCursor>,
}

impl LevelCursor {
    pub(crate) fn new(version: Arc<Version>, level: Level) -> Self {
        LevelCursor { version, level, index: 0, table: None }
    }

    #[inline]
    pub(crate) fn valid(&self) -> bool {
        self.table.as_ref().is_some_and(TableCursor::valid)
    }

    /// The key under the cursor; empty when not valid.
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        self.table.as_ref().map_or(&[], TableCursor::key)
    }

    #[inline]
    pub(crate) fn trailer(&self) -> Trailer {
        self.table.as_ref().map_or(Trailer(0), TableCursor::trailer)
    }

    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        self.table.as_ref().map_or(&[], TableCursor::value)
    }

    /// The cursor over the table that this one is in.
    #[inline]
    pub(crate) fn table(&mut self) -> Option<&mut TableCursor> {
        self.table.as_mut()
    }

    /// The largest sequence number in the tables from the open one on, as far as they begin before `end`.
    pub(crate) fn largest_sequence_before(&self, end: &[u8]) -> SequenceNumber {
        let tables = self.version.level(self.level).iter().skip(self.index);
        let ahead = tables.take_while(|table| *table.metadata.range.smallest < *end);
        ahead.map(|table| table.metadata.largest_sequence).max().unwrap_or(0)
    }

    /// The same going back: of those up to the open one that end at `start` or behind it.
    pub(crate) fn largest_sequence_from(&self, start: &[u8]) -> SequenceNumber {
        let tables = self.version.level(self.level).iter().take(self.index + 1).rev();
        let ahead = tables.take_while(|table| !table.metadata.range.ends_before(start));
        ahead.map(|table| table.metadata.largest_sequence).max().unwrap_or(0)
    }

    /// Opens table `index` unless it is the open one; false if there is none.
    fn open(&mut self, index: usize) -> Result<bool> {
        if self.table.is_some() && self.index == index {
            return Ok(true);
        }
        self.table = None;
        let Some(table) = self.version.level(self.level).get(index) else { return Ok(false) };
        self.index = index;
        self.table = Some(table.reader()?.cursor());
        Ok(true)
    }

    fn with_table(&mut self, place: impl FnOnce(&mut TableCursor) -> Result<()>) -> Result<()> {
        match &mut self.table {
            Some(table) => place(table),
            None => Ok(()),
        }
    }

    pub(crate) fn seek(
        &mut self,
        key: &[u8],
        trailer: Trailer,
        context: &mut ReadContext<'_>,
    ) -> Result<()> {
        let index = self.version.first_to_reach(self.level, key);
        if self.open(index)? {
            self.with_table(|table| table.seek(key, trailer, context))?;
        }
        self.skip_forward(context)
    }

    pub(crate) fn seek_for_prev(
        &mut self,
        key: &[u8],
        trailer: Trailer,
        context: &mut ReadContext<'_>,
    ) -> Result<()> {
        let reaching = self.version.first_to_reach(self.level, key);
        let begins_in_time =
            |table: &Arc<TableFile>| usize::from(table.metadata.range.smallest[..] <= *key);
        let tables = self.version.level(self.level);
        let count = reaching + tables.get(reaching).map_or(0, begins_in_time);
        match count.checked_sub(1) {
            Some(index) if self.open(index)? => {
                self.with_table(|table| table.seek_for_prev(key, trailer, context))?;
            }
            _ => self.table = None,
        }
        self.skip_backward(context)
    }

    pub(crate) fn seek_to_first(&mut self, context: &mut ReadContext<'_>) -> Result<()> {
        if self.open(0)? {
            self.with_table(|table| table.seek_to_first(context))?;
        }
        self.skip_forward(context)
    }

    pub(crate) fn seek_to_last(&mut self, context: &mut ReadContext<'_>) -> Result<()> {
        match self.version.level(self.level).len().checked_sub(1) {
            Some(index) if self.open(index)? => {
                self.with_table(|table| table.seek_to_last(context))?
            }
            _ => self.table = None,
        }
        self.skip_backward(context)
    }

    pub(crate) fn next(&mut self, context: &mut ReadContext<'_>) -> Result<()> {
        self.with_table(|table| table.next(context))?;
        self.skip_forward(context)
    }

    pub(crate) fn prev(&mut self, context: &mut ReadContext<'_>) -> Result<()> {
        self.with_table(|table| table.prev(context))?;
        self.skip_backward(context)
    }

    /// On past tables that ended or hold no point entries.
    fn skip_forward(&mut self, context: &mut ReadContext<'_>) -> Result<()> {
        while self.table.is_some() && !self.valid() {
            if self.open(self.index + 1)? {
                self.with_table(|table| table.seek_to_first(context))?;
            }
        }
        Ok(())
    }

    fn skip_backward(&mut self, context: &mut ReadContext<'_>) -> Result<()> {
        while self.table.is_some() && !self.valid() {
            match self.index.checked_sub(1) {
                Some(index) if self.open(index)? => {
                    self.with_table(|table| table.seek_to_last(context))?
                }
                _ => self.table = None,
            }
        }
        Ok(())
    }
}
