//! Answers point reads from a table, and loads blocks for everything else that reads it.

use super::block::{self, BlockHandle, Layout, TRAILER_SIZE};
use super::builder::TABLE_SIZE_MIN;
use super::cursor::TableCursor;
use super::data_block::{DataBlock, assign_sequence};
use super::filter::{FilterReader, hash_key};
use super::footer::{FOOTER_SIZE, Footer};
use super::index::{IndexBlock, IndexRecord};
use super::prefetch::prefetch_data_block;
use super::properties::TableProperties;
use super::scanner::TableScanner;
use super::tombstones::FragmentedTombstones;
use crate::base::{Clock, SequenceNumber, Slice, TableId, Trailer};
use crate::cache::{BlockCache, BlockKind};
use crate::codec::{CodecId, ContextPool};
use crate::fs::{File, read_exact_at};
use crate::stats::{Part, WorkMeter};
use crate::{Error, Result};
use bytes::Bytes;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// What the end of a table is read with at once: footer and, in most tables, properties.
const TAIL_SIZE: u64 = 4096;

/// Stored bytes of up to this many are read into a buffer that the thread keeps.
const SCRATCH_SIZE_MAX: usize = 256 << 10;

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// How a read is done and where its work is booked.
pub struct ReadContext<'a> {
    /// Times the parts of the read, if there is a meter.
    pub clock: &'a dyn Clock,
    /// Set for the reads that are sampled.
    pub meter: Option<&'a mut WorkMeter>,
    /// Whether data blocks that are read go into the cache.
    pub fill_cache: bool,
}

impl<'a> ReadContext<'a> {
    /// A read that fills the cache and is not metered.
    pub fn new(clock: &'a dyn Clock) -> Self {
        ReadContext { clock, meter: None, fill_cache: true }
    }

    fn time<R>(&mut self, part: Part, work: impl FnOnce() -> R) -> R {
        match &mut self.meter {
            Some(meter) => meter.time(self.clock, part, work),
            None => work(),
        }
    }
}

/// What [`TableReader::verify`] went through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// Data blocks.
    pub data_blocks: u64,
    /// Entries.
    pub entries: u64,
    /// User keys that have one.
    pub user_keys: u64,
    /// Stored bytes of the data blocks.
    pub data_stored_bytes: u64,
}

/// An open table. Shared by threads; every call may be made from any.
pub struct TableReader {
    file: Arc<dyn File>,
    footer: Footer,
    properties: TableProperties,
    cache: Option<(Arc<BlockCache>, u64)>,
    pool: Arc<ContextPool>,
    /// Index and filter, held here only if there is no cache.
    index: OnceLock<Bytes>,
    filter: OnceLock<Bytes>,
    tombstones: OnceLock<Arc<FragmentedTombstones>>,
    /// What all entries count as at, if not 0; then they have sequence number 0 in the file.
    assigned_sequence: AtomicU64,
}

impl TableReader {
    /// Opens a table: checks its footer and reads its properties. Index, filter and range
    /// tombstones are read when they are first needed.
    pub fn open(
        file: Arc<dyn File>,
        cache: Option<Arc<BlockCache>>,
        pool: Arc<ContextPool>,
    ) -> Result<Arc<Self>> {
        TableReader::open_metered(file, cache, pool, &mut WorkMeter::default())
    }

    /// [`TableReader::open`] that meters what it reads.
    pub fn open_metered(
        file: Arc<dyn File>,
        cache: Option<Arc<BlockCache>>,
        pool: Arc<ContextPool>,
        meter: &mut WorkMeter,
    ) -> Result<Arc<Self>> {
        let file_size = file.length()?;
        if file_size < TABLE_SIZE_MIN {
            return Err(Error::corruption("table is too short")
                .at(file.path(), 0)
                .expected(format_args!("at least {TABLE_SIZE_MIN} bytes"), file_size));
        }
        let tail_offset = file_size.saturating_sub(TAIL_SIZE);
        let tail = read_exact_at(&*file, tail_offset, (file_size - tail_offset) as usize)?;
        meter.read(tail.len());
        let footer_offset = file_size - FOOTER_SIZE as u64;
        let Some(footer) = tail.last_chunk() else {
            return Err(Error::corruption("table is too short").at(file.path(), 0));
        };
        let footer = Footer::decode(footer, file_size)
            .map_err(|error| error.at(file.path(), footer_offset))?;
        let handle = footer.properties;
        let stored = match handle.offset.checked_sub(tail_offset) {
            Some(start) => {
                let start = start as usize;
                tail.get(start..start + handle.stored_size as usize).map(<[u8]>::to_vec)
            }
            None => {
                let stored = read_exact_at(&*file, handle.offset, handle.stored_size as usize)?;
                meter.read(stored.len());
                Some(stored)
            }
        };
        let properties = block::open(
            &stored.unwrap_or_default(),
            Layout::Properties,
            (&footer.table_id, handle.offset),
        )
        .and_then(|block| decode(&pool, block))
        .and_then(|raw| TableProperties::decode(&raw))
        .map_err(|error| error.at(file.path(), handle.offset))?;
        let tombstones = OnceLock::new();
        if footer.tombstones.is_none() {
            let _ = tombstones.set(Arc::default());
        }
        Ok(Arc::new(TableReader {
            file,
            footer,
            properties,
            cache: cache.map(|cache| {
                let file_id = cache.new_file_id();
                (cache, file_id)
            }),
            pool,
            index: OnceLock::new(),
            filter: OnceLock::new(),
            tombstones,
            assigned_sequence: AtomicU64::new(0),
        }))
    }

    /// Lets all entries, which have sequence number 0 in the file, count as at `sequence`. To be
    /// called before anybody reads data blocks, and before other threads have the table.
    pub fn assign_sequence(&self, sequence: SequenceNumber) {
        self.assigned_sequence.store(sequence, Ordering::Relaxed);
    }

    /// The sequence number that all entries count as at, if it is not the one in the file: blocks
    /// of such a table say something else on disk than in memory.
    pub fn assigned_sequence(&self) -> Option<SequenceNumber> {
        match self.assigned_sequence.load(Ordering::Relaxed) {
            0 => None,
            sequence => Some(sequence),
        }
    }

    /// The table's random identity.
    pub fn table_id(&self) -> TableId {
        self.footer.table_id
    }

    /// Its length in bytes.
    pub fn size_bytes(&self) -> u64 {
        self.footer.file_size
    }

    /// What it says of itself.
    pub fn properties(&self) -> &TableProperties {
        &self.properties
    }

    /// Whether it has range tombstones; without them
    /// [`TableReader::range_tombstones`] reads nothing.
    pub fn has_range_tombstones(&self) -> bool {
        self.footer.tombstones.is_some()
    }

    /// The newest entry of `key` that is visible at `snapshot`; the value points into the block's
    /// frame. Range tombstones are not looked at.
    pub fn get(
        &self,
        key: &[u8],
        snapshot: SequenceNumber,
        context: &mut ReadContext<'_>,
    ) -> Result<Option<(Trailer, Slice)>> {
        if !self.may_contain(key, context)? {
            return Ok(None);
        }
        let index = self.index(context)?;
        let index = self.parse_index(&index)?;
        let target = Trailer::seek(snapshot);
        let block = self.in_index(index.find(key, target))?;
        if block == index.block_count() {
            return Ok(None);
        }
        let record = self.in_index(index.record(block))?;
        let frame = self.data_block(&record, context)?;
        let found = DataBlock::parse(&frame).and_then(|data| {
            match data.seek::<false>(key, target, &mut Vec::new())? {
                Some((place, true)) => {
                    Ok(Some((data.trailer(place.index())?, place.value_range())))
                }
                _ => Ok(None),
            }
        });
        let found = found.map_err(|error| error.at(self.file.path(), record.handle.offset))?;
        Ok(found.map(|(trailer, range)| (trailer, Slice::from_bytes(frame.slice(range)))))
    }

    /// Whether the table may hold `key`: false is certain.
    pub fn may_contain(&self, key: &[u8], context: &mut ReadContext<'_>) -> Result<bool> {
        let Some(handle) = self.footer.filter else {
            return Ok(self.properties.entries > 0);
        };
        let kind = (Layout::BlockedBloom, BlockKind::Filter);
        let filter = self.meta_block(handle, kind, &self.filter, context)?;
        let filter = FilterReader::parse(&filter)
            .map_err(|error| error.at(self.file.path(), handle.offset))?;
        Ok(filter.may_contain(hash_key(key)))
    }

    /// Whether the table may hold a key that begins with `prefix`: false is certain. Only a
    /// prefix at least as long as those in the filter can be told apart.
    pub fn prefix_may_match(&self, prefix: &[u8], context: &mut ReadContext<'_>) -> Result<bool> {
        let prefix_length = self.properties.prefix_length as usize;
        match prefix.get(..prefix_length) {
            Some(prefix) if prefix_length > 0 => self.may_contain(prefix, context),
            _ => Ok(true),
        }
    }

    /// The range tombstones, read at the first call.
    pub fn range_tombstones(
        &self,
        context: &mut ReadContext<'_>,
    ) -> Result<Arc<FragmentedTombstones>> {
        if let Some(tombstones) = self.tombstones.get() {
            return Ok(Arc::clone(tombstones));
        }
        let handle = self.footer.tombstones.unwrap_or_default();
        // The frame stays referenced from here, so the cache counts it as pinned.
        let kind = (Layout::Tombstones, BlockKind::Index);
        let frame = self.meta_block(handle, kind, &OnceLock::new(), context)?;
        let tombstones = FragmentedTombstones::parse(frame)
            .map_err(|error| error.at(self.file.path(), handle.offset))?;
        Ok(Arc::clone(self.tombstones.get_or_init(|| Arc::new(tombstones))))
    }

    /// A cursor over all entries, not yet at one.
    pub fn cursor(self: &Arc<Self>) -> TableCursor {
        TableCursor::new(Arc::clone(self))
    }

    /// A scanner for a compaction, over the user keys from `start` to before `end`. Reads nothing
    /// before its first poll.
    pub fn scanner(self: &Arc<Self>, start: Option<&[u8]>, end: Option<&[u8]>) -> TableScanner {
        TableScanner::new(Arc::clone(self), start, end)
    }

    /// Reads and checks every block, the order of all entries, and that index, filter and
    /// properties say the truth about them. Does not fill the cache.
    pub fn verify(&self, context: &mut ReadContext<'_>) -> Result<Verification> {
        let fill_cache = std::mem::replace(&mut context.fill_cache, false);
        let result = super::verify::verify(self, context);
        context.fill_cache = fill_cache;
        result
    }

    pub(super) fn file(&self) -> &dyn File {
        &*self.file
    }

    pub(super) fn pool(&self) -> &Arc<ContextPool> {
        &self.pool
    }

    pub(super) fn footer(&self) -> &Footer {
        &self.footer
    }

    /// The index's bytes: from the cache, or read.
    pub(super) fn index(&self, context: &mut ReadContext<'_>) -> Result<Bytes> {
        let kind = (Layout::FlatIndex, BlockKind::Index);
        self.meta_block(self.footer.index, kind, &self.index, context)
    }

    /// The index's bytes if that takes no read.
    pub(super) fn resident_index(&self) -> Option<Bytes> {
        match &self.cache {
            Some((cache, file_id)) => cache.get(*file_id, self.footer.index.offset),
            None => self.index.get().cloned(),
        }
    }

    pub(super) fn parse_index<'b>(&self, bytes: &'b [u8]) -> Result<IndexBlock<'b>> {
        self.in_index(IndexBlock::parse(bytes, self.footer.index.offset))
    }

    /// Names the index as the place of an error.
    pub(super) fn in_index<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| error.at(self.file.path(), self.footer.index.offset))
    }

    fn meta_block(
        &self,
        handle: BlockHandle,
        (layout, kind): (Layout, BlockKind),
        pinned: &OnceLock<Bytes>,
        context: &mut ReadContext<'_>,
    ) -> Result<Bytes> {
        let Some((cache, file_id)) = &self.cache else {
            if let Some(bytes) = pinned.get() {
                return Ok(bytes.clone());
            }
            let raw = self.load(handle, layout, CodecId::None, context)?;
            return Ok(pinned.get_or_init(|| Bytes::from(raw)).clone());
        };
        if let Some(frame) = cache.get(*file_id, handle.offset) {
            return Ok(frame);
        }
        let raw = self.load(handle, layout, CodecId::None, context)?;
        Ok(cache.insert(*file_id, handle.offset, kind, raw))
    }

    /// A data block's frame: from the cache, or read, checked and decoded.
    pub(super) fn data_block(
        &self,
        record: &IndexRecord,
        context: &mut ReadContext<'_>,
    ) -> Result<Bytes> {
        let handle = record.handle;
        if let Some((cache, file_id)) = &self.cache
            && let Some(frame) = cache.get(*file_id, handle.offset)
        {
            prefetch_data_block(&frame);
            return Ok(frame);
        }
        let raw = self.verified_data_block(record, context)?;
        match &self.cache {
            Some((cache, file_id)) if context.fill_cache => {
                Ok(cache.insert(*file_id, handle.offset, BlockKind::Data, raw))
            }
            _ => Ok(Bytes::from(raw)),
        }
    }

    /// A data block, read past the cache, checked and decoded.
    pub(super) fn verified_data_block(
        &self,
        record: &IndexRecord,
        context: &mut ReadContext<'_>,
    ) -> Result<Vec<u8>> {
        let mut raw = self.load(record.handle, Layout::Data, record.codec, context)?;
        check_data_block(&raw, record)
            .and_then(|()| self.number_entries(&mut raw))
            .map_err(|error| error.at(self.file.path(), record.handle.offset))?;
        Ok(raw)
    }

    /// Gives the entries of a decoded block the sequence number that the table was assigned.
    pub(super) fn number_entries(&self, raw: &mut [u8]) -> Result<()> {
        match self.assigned_sequence() {
            Some(sequence) => assign_sequence(raw, sequence),
            None => Ok(()),
        }
    }

    /// Reads, checks and decodes a block. `codec` says how it is expected to be stored: one that
    /// is stored raw is read straight into its frame.
    fn load(
        &self,
        handle: BlockHandle,
        layout: Layout,
        codec: CodecId,
        context: &mut ReadContext<'_>,
    ) -> Result<Vec<u8>> {
        let size = handle.stored_size as usize;
        if codec == CodecId::None || size > SCRATCH_SIZE_MAX {
            let mut stored = vec![0; size];
            self.read(handle.offset, &mut stored, context)?;
            let block = self.check(handle, layout, &stored, context)?;
            if block.codec != CodecId::None {
                return self.decode(handle, block, context);
            }
            stored.truncate(size - TRAILER_SIZE);
            return Ok(stored);
        }
        // Nothing that runs inside loads another block, so the buffer is never borrowed twice.
        SCRATCH.with_borrow_mut(|scratch| {
            if scratch.len() < size {
                scratch.resize(size, 0);
            }
            let stored = &mut scratch[..size];
            self.read(handle.offset, stored, context)?;
            let block = self.check(handle, layout, stored, context)?;
            self.decode(handle, block, context)
        })
    }

    fn read(&self, offset: u64, stored: &mut [u8], context: &mut ReadContext<'_>) -> Result<()> {
        let count = context.time(Part::Io, || self.file.read_at(stored, offset))?;
        if let Some(meter) = &mut context.meter {
            meter.read(count);
        }
        if count < stored.len() {
            return Err(Error::corruption("table ends early")
                .at(self.file.path(), offset)
                .expected(stored.len(), count));
        }
        Ok(())
    }

    fn check<'b>(
        &self,
        handle: BlockHandle,
        layout: Layout,
        stored: &'b [u8],
        context: &mut ReadContext<'_>,
    ) -> Result<block::CheckedBlock<'b>> {
        let place = (&self.footer.table_id, handle.offset);
        context
            .time(Part::Checksum, || block::open(stored, layout, place))
            .map_err(|error| error.at(self.file.path(), handle.offset))
    }

    fn decode(
        &self,
        handle: BlockHandle,
        block: block::CheckedBlock<'_>,
        context: &mut ReadContext<'_>,
    ) -> Result<Vec<u8>> {
        let started = context.meter.is_some().then(|| context.clock.ticks());
        let raw =
            decode(&self.pool, block).map_err(|error| error.at(self.file.path(), handle.offset))?;
        if let (Some(started), Some(meter)) = (started, &mut context.meter) {
            let ticks = context.clock.ticks().wrapping_sub(started);
            book_decompression(meter, block.codec, raw.len(), ticks);
        }
        Ok(raw)
    }
}

impl Drop for TableReader {
    fn drop(&mut self) {
        // The id is never given again, so nothing can find these blocks any more.
        if let Some((cache, file_id)) = &self.cache {
            cache.erase_file(*file_id);
        }
    }
}

/// Books one call of a decoder.
pub(super) fn book_decompression(
    meter: &mut WorkMeter,
    codec: CodecId,
    raw_size: usize,
    ticks: u64,
) {
    meter.ticks[Part::Decompress as usize] += ticks;
    meter.decompress_ticks[codec as usize] += ticks;
    meter.decompressed_raw_bytes[codec as usize] += raw_size as u64;
}

pub(super) fn decode(pool: &Arc<ContextPool>, block: block::CheckedBlock<'_>) -> Result<Vec<u8>> {
    let mut raw = Vec::new();
    if block.codec == CodecId::None {
        raw.extend_from_slice(block.payload);
        return Ok(raw);
    }
    let mut decompressor = pool.decompressor();
    decompressor.decompress_into(block.codec, block.payload, block.raw_size, &mut raw)?;
    Ok(raw)
}

/// Checks a decoded data block against what the index says of it.
pub(super) fn check_data_block(raw: &[u8], record: &IndexRecord) -> Result<()> {
    let entry_count = DataBlock::parse(raw)?.layout().entry_count;
    if raw.len() != record.raw_size as usize || entry_count != record.entry_count {
        return Err(Error::corruption("index and data block differ").expected(
            format_args!("{} bytes, {} entries", record.raw_size, record.entry_count),
            format_args!("{} bytes, {entry_count} entries", raw.len()),
        ));
    }
    Ok(())
}
