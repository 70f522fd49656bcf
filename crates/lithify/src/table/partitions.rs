//! The second level of a table's index: partitions, fetched when a read comes to them.
//!
//! A partition is an index block of its own, found through the top index as a data block is found
//! through it. It is checked against what the top index says, as data blocks are. Tables keep the
//! partitions that were asked for as long as they keep little of the budget; the others go through
//! the block cache, so that a table that is read in a few places holds a few partitions.

use super::block::Layout;
use super::index::{IndexBlock, IndexRecord};
use super::load::{MetaBytes, MetaKind};
use super::reader::{ReadContext, TableReader};
use crate::base::Trailer;
use crate::cache::{BlockKind, KeptBlock, KeptShare};
use crate::{Error, Result};
use bytes::Bytes;
use std::sync::OnceLock;

/// Where the partitions of a table are kept, in their order.
pub(super) type KeptPartitions = OnceLock<Box<[OnceLock<KeptBlock>]>>;

impl TableReader {
    /// What partition `number` says of the only block that can hold the target; `record` is what
    /// the top index, of `count` records, says of it.
    pub(super) fn find_in_partition(
        &self,
        (number, count): (usize, usize),
        record: &IndexRecord,
        (key, target): (&[u8], Trailer),
        context: &mut ReadContext<'_>,
    ) -> Result<IndexRecord> {
        let bytes = self.partition((number, count), record, context)?;
        let partition = self.parse_partition(&bytes, record)?;
        let found = partition.find(key, target).and_then(|block| partition.record(block));
        self.within(record.handle, found)
    }

    /// A partition's bytes: kept, from the cache, or read.
    #[inline]
    pub(super) fn partition(
        &self,
        (number, count): (usize, usize),
        record: &IndexRecord,
        context: &mut ReadContext<'_>,
    ) -> Result<MetaBytes<'_>> {
        let slots = self.partitions.get_or_init(|| (0..count).map(|_| OnceLock::new()).collect());
        let Some(slot) = slots.get(number) else {
            return self.within(record.handle, Err(differs()));
        };
        let kind = MetaKind {
            layout: Layout::IndexPartition,
            kind: BlockKind::Index,
            share: KeptShare::Half,
            codec: record.codec,
        };
        self.meta_block(record.handle, kind, slot, context)
    }

    /// A partition's bytes if that takes no read.
    pub(super) fn resident_partition(&self, number: usize, record: &IndexRecord) -> Option<Bytes> {
        let kept = self.partitions.get().and_then(|slots| slots.get(number)?.get());
        self.resident(kept, record.handle)
    }

    /// A partition, read past the cache and checked.
    pub(super) fn verified_partition(
        &self,
        record: &IndexRecord,
        context: &mut ReadContext<'_>,
    ) -> Result<Vec<u8>> {
        self.load(record.handle, Layout::IndexPartition, record.codec, context)
    }

    /// Parses a partition and compares it with what the top index says of it.
    #[inline]
    pub(super) fn parse_partition<'b>(
        &self,
        bytes: &'b [u8],
        record: &IndexRecord,
    ) -> Result<IndexBlock<'b>> {
        self.within(record.handle, parse_partition(bytes, record, self.footer.index.offset))
    }
}

/// Parses a partition whose data blocks lie before `limit`.
#[inline]
pub(super) fn parse_partition<'b>(
    bytes: &'b [u8],
    record: &IndexRecord,
    limit: u64,
) -> Result<IndexBlock<'b>> {
    let partition = IndexBlock::parse(bytes, limit)?;
    let has_count = partition.block_count() == record.entry_count as usize;
    if bytes.len() != record.raw_size as usize || !has_count || record.entry_count == 0 {
        return Err(differs());
    }
    Ok(partition)
}

#[cold]
fn differs() -> Error {
    Error::corruption("top index and partition differ")
}
