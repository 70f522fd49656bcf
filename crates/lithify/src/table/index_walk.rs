//! Moves over the records of a table's index, of one level or two, for a cursor.
//!
//! Holds the block that the footer points at and, where the index has two levels, one partition.
//! A flat index is its own and only partition.

use super::block::BlockHandle;
use super::index::{IndexBlock, IndexRecord};
use super::reader::{ReadContext, TableReader};
use crate::Result;
use crate::base::Trailer;
use bytes::Bytes;

/// From which side something is entered.
#[derive(Clone, Copy)]
pub(super) enum Edge {
    First,
    Last,
}

/// See the module.
#[derive(Default)]
pub(super) struct IndexWalk {
    root: Option<Bytes>,
    /// The partition at hand.
    partition: Option<Partition>,
    /// The record at hand.
    block: usize,
}

struct Partition {
    number: usize,
    handle: BlockHandle,
    bytes: Bytes,
}

impl IndexWalk {
    /// Goes to the block that alone can hold the target; `None` if the target is behind all.
    pub(super) fn seek(
        &mut self,
        table: &TableReader,
        key: &[u8],
        trailer: Trailer,
        context: &mut ReadContext<'_>,
    ) -> Result<Option<IndexRecord>> {
        let bytes = self.root(table, context)?;
        let root = table.parse_index(&bytes)?;
        let mut block = table.in_index(root.find(key, trailer))?;
        if block == root.block_count() {
            return Ok(None);
        }
        if table.has_partitions() {
            self.fetch(table, &root, block, context)?;
            let (partition, handle) = self.parsed(table)?;
            block = table.within(handle, partition.find(key, trailer))?;
        }
        self.block = block;
        self.record(table).map(Some)
    }

    /// Goes to the first or the last block; `None` if there is none.
    pub(super) fn enter(
        &mut self,
        table: &TableReader,
        edge: Edge,
        context: &mut ReadContext<'_>,
    ) -> Result<Option<IndexRecord>> {
        let bytes = self.root(table, context)?;
        let root = table.parse_index(&bytes)?;
        if table.has_partitions() {
            let number = match edge {
                Edge::First => 0,
                Edge::Last => root.block_count().saturating_sub(1),
            };
            return self.enter_partition(table, &root, number, edge, context);
        }
        self.at_edge(table, edge)
    }

    /// Goes to the block behind the one at hand, or with [`Edge::Last`] the one before it, which
    /// is entered from that side; `None` if there is none.
    pub(super) fn step(
        &mut self,
        table: &TableReader,
        edge: Edge,
        context: &mut ReadContext<'_>,
    ) -> Result<Option<IndexRecord>> {
        let next = self.parsed(table).map(|(partition, _)| match edge {
            Edge::First => Some(self.block + 1).filter(|next| *next < partition.block_count()),
            Edge::Last => self.block.checked_sub(1),
        })?;
        if let Some(block) = next {
            self.block = block;
            return self.record(table).map(Some);
        }
        let Some(Partition { number, .. }) = self.partition else {
            return Ok(None);
        };
        let number = match edge {
            Edge::First => Some(number + 1),
            Edge::Last => number.checked_sub(1),
        };
        let Some(number) = number else {
            return Ok(None);
        };
        let bytes = self.root(table, context)?;
        let root = table.parse_index(&bytes)?;
        self.enter_partition(table, &root, number, edge, context)
    }

    fn enter_partition(
        &mut self,
        table: &TableReader,
        root: &IndexBlock<'_>,
        number: usize,
        edge: Edge,
        context: &mut ReadContext<'_>,
    ) -> Result<Option<IndexRecord>> {
        if number >= root.block_count() {
            return Ok(None);
        }
        self.fetch(table, root, number, context)?;
        self.at_edge(table, edge)
    }

    /// Goes to the first or last record of the partition.
    fn at_edge(&mut self, table: &TableReader, edge: Edge) -> Result<Option<IndexRecord>> {
        let Some(last) = self.parsed(table)?.0.block_count().checked_sub(1) else {
            return Ok(None);
        };
        self.block = match edge {
            Edge::First => 0,
            Edge::Last => last,
        };
        self.record(table).map(Some)
    }

    /// Makes a partition the one at hand.
    fn fetch(
        &mut self,
        table: &TableReader,
        root: &IndexBlock<'_>,
        number: usize,
        context: &mut ReadContext<'_>,
    ) -> Result<()> {
        if self.partition.as_ref().is_some_and(|partition| partition.number == number) {
            return Ok(());
        }
        let record = table.in_index(root.record(number))?;
        let bytes = table.partition((number, root.block_count()), &record, context)?.into_bytes();
        table.parse_partition(&bytes, &record)?;
        self.partition = Some(Partition { number, handle: record.handle, bytes });
        Ok(())
    }

    #[inline]
    fn root(&mut self, table: &TableReader, context: &mut ReadContext<'_>) -> Result<Bytes> {
        if let Some(root) = &self.root {
            return Ok(root.clone());
        }
        let root = table.index(context)?.into_bytes();
        Ok(self.root.insert(root).clone())
    }

    /// The partition at hand, and where it lies.
    #[inline]
    fn parsed(&self, table: &TableReader) -> Result<(IndexBlock<'_>, BlockHandle)> {
        let (bytes, handle) = match (&self.partition, &self.root) {
            (Some(partition), _) => (&partition.bytes[..], partition.handle),
            (None, Some(root)) => (&root[..], table.footer().index),
            (None, None) => (&[][..], table.footer().index),
        };
        let limit = table.footer().index.offset;
        Ok((table.within(handle, IndexBlock::parse(bytes, limit))?, handle))
    }

    #[inline]
    fn record(&self, table: &TableReader) -> Result<IndexRecord> {
        let (partition, handle) = self.parsed(table)?;
        table.within(handle, partition.record(self.block))
    }
}
