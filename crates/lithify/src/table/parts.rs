//! A table taken apart for people: part by part, so that damage in one does not hide the others.
//!
//! [`super::TableReader`] refuses a table at the first thing that is wrong with it. Here the
//! caller asks for one part after the other, and goes on after an error. What is handed out was
//! checked: a block's checksum before it is decoded, its contents when they are parsed.

use super::block::{self, BlockHandle, Layout};
use super::builder::TABLE_SIZE_MIN;
use super::data_block::{DataBlock, DataBlockLayout};
use super::dictionaries::TableDictionaries;
use super::footer::{FOOTER_SIZE, Footer};
use super::index::{IndexBlock, IndexRecord};
use super::partitions::parse_partition;
use super::properties::TableProperties;
use super::reader::{check_data_block, decode};
use super::tombstones::FragmentedTombstones;
use crate::base::Trailer;
use crate::codec::{CodecId, ContextPool, Dictionary};
use crate::fs::{File, read_exact_at};
use crate::stats::WorkMeter;
use crate::{Error, Result};
use bytes::Bytes;
use std::sync::Arc;

/// A table whose footer is whole.
pub(crate) struct TableParts {
    file: Arc<dyn File>,
    footer: Footer,
    footer_offset: u64,
    pool: Arc<ContextPool>,
    dictionaries: TableDictionaries,
}

/// A block whose checksum was right, decoded.
pub(crate) struct PartBlock {
    pub(crate) codec: CodecId,
    /// The id of its dictionary; 0: none.
    pub(crate) dictionary: u32,
    pub(crate) checksum: u32,
    pub(crate) raw: Vec<u8>,
}

/// What the index knows of the keys of a data block.
pub(crate) struct IndexKeys<'a> {
    pub(crate) first_key: &'a [u8],
    pub(crate) separator: &'a [u8],
    pub(crate) separator_trailer: Trailer,
}

/// A block of the index, record by record: the flat index, the top index, or a partition.
pub(crate) struct TableIndex {
    bytes: Vec<u8>,
    /// Where it lies.
    pub(crate) handle: BlockHandle,
    limit: u64,
}

impl TableParts {
    /// Reads the footer; what it demands and where it points is not looked at yet, see
    /// [`TableParts::check_footer`].
    pub(crate) fn open(file: Arc<dyn File>, pool: Arc<ContextPool>) -> Result<Self> {
        let file_size = file.length()?;
        if file_size < TABLE_SIZE_MIN {
            return Err(Error::corruption("table is too short")
                .at(file.path(), 0)
                .expected(format_args!("at least {TABLE_SIZE_MIN} bytes"), file_size));
        }
        let footer_offset = file_size - FOOTER_SIZE as u64;
        let bytes = read_exact_at(&*file, footer_offset, FOOTER_SIZE)?;
        let footer = bytes
            .first_chunk()
            .ok_or_else(|| Error::corruption("table is too short"))
            .and_then(Footer::parse)
            .map_err(|error| error.at(file.path(), footer_offset))?;
        let dictionaries = TableDictionaries::default();
        Ok(TableParts { file, footer, footer_offset, pool, dictionaries })
    }

    pub(crate) fn footer(&self) -> &Footer {
        &self.footer
    }

    pub(crate) fn footer_offset(&self) -> u64 {
        self.footer_offset
    }

    /// Whether this version can read the table, and all parts lie inside the file. Before this
    /// was fine no part may be asked for.
    pub(crate) fn check_footer(&self) -> Result<()> {
        let file_size = self.footer_offset + FOOTER_SIZE as u64;
        let checked = self.footer.check_readable().and_then(|()| self.footer.check(file_size));
        checked.map_err(|error| error.at(self.file.path(), self.footer_offset))
    }

    /// Loads the dictionaries, as far as they are whole; before that, blocks that need one cannot be
    /// decoded. An error is of the first one that is not.
    pub(crate) fn load_dictionaries(&mut self) -> Result<()> {
        let meter = &mut WorkMeter::default();
        let (dictionaries, damage) =
            TableDictionaries::load(&*self.file, &self.footer, &self.pool, meter);
        self.dictionaries = dictionaries;
        damage.map_or(Ok(()), Err)
    }

    /// The dictionaries that were loaded, in the order of the file.
    pub(crate) fn dictionaries(&self) -> impl Iterator<Item = (BlockHandle, &Dictionary)> {
        self.dictionaries.placed()
    }

    /// Reads, checks and decodes a block.
    pub(crate) fn block(&self, handle: BlockHandle, layout: Layout) -> Result<PartBlock> {
        self.within(handle, handle.check_size(layout))?;
        let stored = read_exact_at(&*self.file, handle.offset, handle.stored_size as usize)?;
        let opened = block::open(&stored, layout, (&self.footer.table_id, handle.offset));
        let decoded = opened.and_then(|checked| {
            let checksum = stored.last_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
            let raw = decode(&self.pool, &self.dictionaries, checked, Vec::new())?;
            Ok(PartBlock { codec: checked.codec, dictionary: checked.dictionary, checksum, raw })
        });
        decoded.map_err(|error| error.at(self.file.path(), handle.offset))
    }

    pub(crate) fn parse_properties(&self, block: &PartBlock) -> Result<TableProperties> {
        self.within(self.footer.properties, TableProperties::decode(&block.raw))
    }

    pub(crate) fn parse_tombstones(
        &self,
        handle: BlockHandle,
        block: PartBlock,
    ) -> Result<FragmentedTombstones> {
        self.within(handle, FragmentedTombstones::parse(Bytes::from(block.raw)))
    }

    /// The index block that the footer points at.
    pub(crate) fn parse_index(&self, block: PartBlock) -> Result<TableIndex> {
        let (handle, limit) = (self.footer.index, self.footer.index.offset);
        self.within(handle, IndexBlock::parse(&block.raw, limit).map(|_| ()))?;
        Ok(TableIndex { bytes: block.raw, handle, limit })
    }

    /// A partition of a two-level index, of which the top index says `record`.
    pub(crate) fn parse_partition(
        &self,
        block: PartBlock,
        record: &IndexRecord,
    ) -> Result<TableIndex> {
        let (handle, limit) = (record.handle, self.footer.index.offset);
        self.within(handle, parse_partition(&block.raw, record, limit).map(|_| ()))?;
        Ok(TableIndex { bytes: block.raw, handle, limit })
    }

    /// Hands out what the index says of every data block.
    pub(crate) fn visit_records(&self, visit: &mut dyn FnMut(&IndexRecord)) -> Result<()> {
        let (handle, layout) = (self.footer.index, self.footer.index_layout());
        let root = self.parse_index(self.block(handle, layout)?)?;
        if !self.footer.has_two_level_index() {
            return self.visit_block(&root, visit);
        }
        for number in 0..self.within(handle, root.block_count())? {
            let record = self.within(handle, root.record(number))?;
            let block = self.block(record.handle, Layout::IndexPartition)?;
            self.visit_block(&self.parse_partition(block, &record)?, visit)?;
        }
        Ok(())
    }

    fn visit_block(&self, index: &TableIndex, visit: &mut dyn FnMut(&IndexRecord)) -> Result<()> {
        for number in 0..self.within(index.handle, index.block_count())? {
            visit(&self.within(index.handle, index.record(number))?);
        }
        Ok(())
    }

    /// Names a block as the place of an error.
    pub(crate) fn within<T>(&self, handle: BlockHandle, result: Result<T>) -> Result<T> {
        result.map_err(|error| error.at(self.file.path(), handle.offset))
    }

    /// A data block, checked against what the index says of it.
    pub(crate) fn data_block(&self, record: &IndexRecord) -> Result<PartBlock> {
        let block = self.block(record.handle, Layout::Data)?;
        self.within(record.handle, check_data_block(&block.raw, record))?;
        Ok(block)
    }
}

impl TableIndex {
    fn parsed(&self) -> Result<IndexBlock<'_>> {
        IndexBlock::parse(&self.bytes, self.limit)
    }

    pub(crate) fn block_count(&self) -> Result<usize> {
        Ok(self.parsed()?.block_count())
    }

    /// What the index says of a data block.
    pub(crate) fn record(&self, number: usize) -> Result<IndexRecord> {
        self.parsed()?.record(number)
    }

    /// The keys that the index has of a data block.
    pub(crate) fn keys(&self, number: usize) -> Result<IndexKeys<'_>> {
        let index = self.parsed()?;
        let (separator, separator_trailer) = index.separator(number)?;
        Ok(IndexKeys { first_key: index.first_key(number)?, separator, separator_trailer })
    }
}

/// The header of a decoded data block, by the names of its fields.
pub(crate) fn data_header(raw: &[u8]) -> Result<[(&'static str, u64); 12]> {
    Ok(DataBlock::new(raw, &DataBlockLayout::parse(raw)?).header_fields())
}

/// Takes a key, its sequence number and kind, and its value.
type EntryVisitor<'a> = dyn FnMut(&[u8], Trailer, &[u8]) -> Result<()> + 'a;

/// Hands out the entries of a decoded data block.
pub(crate) fn visit_entries(raw: &[u8], visit: &mut EntryVisitor<'_>) -> Result<()> {
    let layout = DataBlockLayout::parse(raw)?;
    let data = DataBlock::new(raw, &layout);
    let mut key = Vec::new();
    let mut next = Some(data.first(&mut key)?);
    while let Some(place) = next {
        let value = raw.get(place.value_range()).unwrap_or_default();
        visit(&key, data.trailer(place.index())?, value)?;
        next = data.next(&place, &mut key)?;
    }
    Ok(())
}
