//! Opens a table and answers point reads from it.

use super::block::{self, BlockHandle, Layout};
use super::builder::TABLE_SIZE_MIN;
use super::cursor::TableCursor;
use super::data_block::{DataBlock, DataBlockLayout};
use super::dictionaries::TableDictionaries;
use super::filter::{FilterReader, hash_key};
use super::footer::{FOOTER_SIZE, Footer};
use super::heat::{Heat, Loads};
use super::index::{IndexBlock, IndexRecord};
use super::index_walk::IndexWalk;
use super::load::{MetaBytes, MetaKind, give_back_buffer, handed_out};
pub(super) use super::load::{book_decompression, check_data_block, decode, decode_by};
use super::partitions::KeptPartitions;
use super::properties::TableProperties;
use super::scanner::TableScanner;
use super::tombstones::FragmentedTombstones;
use super::verify::TablePart;
use crate::base::{Clock, DeadPasses, SequenceNumber, Slice, TableId, Trailer};
use crate::cache::{BlockCache, BlockKind, KeptBlock};
use crate::codec::{ContextPool, Dictionary};
use crate::fs::{Advice, File, read_exact_at};
use crate::stats::{Part, WorkMeter};
use crate::{Error, Result};
use bytes::{Buf, Bytes};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// What the end of a table is read with at once: footer and, in most tables, properties.
const TAIL_SIZE: u64 = 4096;

/// A value of up to one in so many bytes of its block is copied out of a block that is not kept, and out of
/// any while much is held.
const COPIED_VALUE_DIVISOR: usize = 4;

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

    /// Does some work that takes no data block into the cache.
    pub(super) fn past_the_cache<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        let fill_cache = std::mem::replace(&mut self.fill_cache, false);
        let result = work(self);
        self.fill_cache = fill_cache;
        result
    }

    pub(super) fn time<R>(&mut self, part: Part, work: impl FnOnce() -> R) -> R {
        match &mut self.meter {
            Some(meter) => meter.time(self.clock, part, work),
            None => work(),
        }
    }
}

/// A key and the hash by which filters know it, for callers that ask several tables.
#[derive(Clone, Copy, Debug)]
pub struct HashedKey<'k> {
    /// The user key.
    pub bytes: &'k [u8],
    /// Its [`hash_key`].
    pub hash: u64,
}

impl<'k> HashedKey<'k> {
    /// Hashes a key.
    #[inline]
    pub fn new(bytes: &'k [u8]) -> Self {
        HashedKey { bytes, hash: hash_key(bytes) }
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

/// What is wrong with parts of a table that was opened all the same.
pub(super) type Damage = Vec<(TablePart, Error)>;

/// An open table. Shared by threads; every call may be made from any.
pub struct TableReader {
    pub(super) file: Arc<dyn File>,
    /// Whether reads go past the page cache.
    pub(super) is_direct: bool,
    pub(super) footer: Footer,
    properties: TableProperties,
    /// And the file's id in it.
    pub(super) cache: Option<(Arc<BlockCache>, u64)>,
    pub(super) pool: Arc<ContextPool>,
    pub(super) dictionaries: TableDictionaries,
    /// Index and filter, as far as they are kept here.
    index: OnceLock<KeptBlock>,
    filter: OnceLock<KeptBlock>,
    pub(super) partitions: KeptPartitions,
    tombstones: OnceLock<Arc<FragmentedTombstones>>,
    /// What all entries count as at, if not 0; then they have sequence number 0 in the file.
    assigned_sequence: AtomicU64,
    pub(super) heat: Heat,
    dead_passes: DeadPasses,
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
        let (table, damage) = TableReader::open_parts(file, cache, pool, meter)?;
        damage.into_iter().next().map_or(Ok(table), |(_, error)| Err(error))
    }

    /// A table of which the footer is whole; beside it what is wrong with the properties, which
    /// are empty then, and with the dictionaries, of which it has the others.
    pub(super) fn open_as_far_as_whole(
        file: Arc<dyn File>,
        pool: Arc<ContextPool>,
    ) -> Result<(Arc<Self>, Damage)> {
        TableReader::open_parts(file, None, pool, &mut WorkMeter::default())
    }

    fn open_parts(
        file: Arc<dyn File>,
        cache: Option<Arc<BlockCache>>,
        pool: Arc<ContextPool>,
        meter: &mut WorkMeter,
    ) -> Result<(Arc<Self>, Damage)> {
        let file_size = file.opened_length()?;
        if file_size < TABLE_SIZE_MIN {
            return Err(Error::corruption("table is too short")
                .at(file.path(), 0)
                .expected(format_args!("at least {TABLE_SIZE_MIN} bytes"), file_size));
        }
        // Reads ask for what they want: blocks one by one, or spans by a read-ahead of their own.
        // What the kernel would add beside pages that it happens to hold is not wanted. A hint: a
        // file system that refuses it is no failure.
        let _ = file.advise(0, 0, Advice::Random);
        let tail_offset = file_size.saturating_sub(TAIL_SIZE);
        let tail = read_exact_at(&*file, tail_offset, (file_size - tail_offset) as usize)?;
        meter.read(tail.len());
        let footer_offset = file_size - FOOTER_SIZE as u64;
        let Some(footer) = tail.last_chunk() else {
            return Err(Error::corruption("table is too short").at(file.path(), 0));
        };
        let footer = Footer::decode(footer, file_size)
            .map_err(|error| error.at(file.path(), footer_offset))?;
        let mut damage = Damage::new();
        let properties = match properties_of(&*file, &footer, (&tail, tail_offset), &pool, meter)? {
            Ok(properties) => properties,
            Err(error) => {
                damage.push((TablePart::Properties, error));
                TableProperties::default()
            }
        };
        let (dictionaries, damaged) = TableDictionaries::load(&*file, &footer, &pool, meter);
        dictionaries.prepare_decoding(properties.codec);
        damage.extend(damaged.map(|error| (TablePart::Dictionary, error)));
        let tombstones = OnceLock::new();
        if footer.tombstones.is_none() {
            let _ = tombstones.set(Arc::default());
        }
        let table = Arc::new(TableReader {
            is_direct: file.direct_io_alignment().is_some(),
            file,
            footer,
            properties,
            cache: cache.map(|cache| {
                let file_id = cache.new_file_id();
                (cache, file_id)
            }),
            pool,
            dictionaries,
            index: OnceLock::new(),
            filter: OnceLock::new(),
            partitions: OnceLock::new(),
            tombstones,
            assigned_sequence: AtomicU64::new(0),
            heat: Heat::default(),
            dead_passes: DeadPasses::default(),
        });
        Ok((table, damage))
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

    /// What users' reads have loaded since this was last asked.
    pub(crate) fn take_loads(&self) -> Loads {
        self.heat.take()
    }

    /// A scan has passed so many dead entries; true as often as scans have paid for a rewrite.
    pub(crate) fn note_dead_passes(&self, passes: u64) -> bool {
        self.dead_passes.add(passes, self.properties.entries)
    }

    /// What scans have paid for the dead entries of the table, since it was opened.
    pub(crate) fn dead_passes(&self) -> u64 {
        self.dead_passes.count()
    }

    /// The dictionary that data blocks were to be encoded with, if they were and one uses it.
    pub(crate) fn own_dictionary(&self) -> Option<Arc<Dictionary>> {
        let name = self.properties.stored_format().dictionary.flatten()?;
        let found = self.dictionaries.iter().find(|dictionary| dictionary.hash() == name)?;
        Dictionary::new(found.content()).ok()
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
        self.get_hashed(HashedKey::new(key), snapshot, context)
    }

    /// [`TableReader::get`] of a key that was hashed before.
    pub fn get_hashed(
        &self,
        HashedKey { bytes: key, hash }: HashedKey<'_>,
        snapshot: SequenceNumber,
        context: &mut ReadContext<'_>,
    ) -> Result<Option<(Trailer, Slice)>> {
        if !self.filter_admits(hash, context)? {
            return Ok(None);
        }
        let target = Trailer::seek(snapshot);
        let Some(record) = self.find_record(key, target, context)? else {
            return Ok(None);
        };
        match self.cached_data_block(&record) {
            Some(frame) => self.entry_in(frame, &record, key, target),
            None => self.get_missed(&record, key, target, context),
        }
    }

    /// The target's entry in a block that the cache does not hold.
    #[inline(never)]
    fn get_missed(
        &self,
        record: &IndexRecord,
        key: &[u8],
        target: Trailer,
        context: &mut ReadContext<'_>,
    ) -> Result<Option<(Trailer, Slice)>> {
        if self.wants_data_block(record, context) {
            let frame = self.fetch_data_block(record, context)?;
            return self.entry_in(frame, record, key, target);
        }
        let raw = self.data_block_in_passing(record, context)?;
        let found = self.find_in(&raw, record, key, target)?;
        // Copied, a small value leaves the memory of a block that nobody keeps to the next one, which
        // is then decoded into what the processor's cache holds.
        let small_max = raw.len() / COPIED_VALUE_DIVISOR;
        Ok(match found {
            Some((trailer, range)) if range.len() > small_max => {
                Some((trailer, Slice::from_bytes(handed_out(raw).slice(range))))
            }
            found => {
                let entry = found.map(|(trailer, range)| (trailer, Slice::copy_from(&raw[range])));
                give_back_buffer(raw);
                entry
            }
        })
    }

    /// What the index says of the only block that can hold the target.
    #[inline]
    pub(super) fn find_record(
        &self,
        key: &[u8],
        target: Trailer,
        context: &mut ReadContext<'_>,
    ) -> Result<Option<IndexRecord>> {
        let index = self.index(context)?;
        let index = self.parse_index(&index)?;
        let block = self.in_index(index.find(key, target))?;
        if block == index.block_count() {
            return Ok(None);
        }
        let record = self.in_index(index.record(block))?;
        if !self.has_partitions() {
            return Ok(Some(record));
        }
        let number = (block, index.block_count());
        self.find_in_partition(number, &record, (key, target), context).map(Some)
    }

    /// The target's entry in the block that `record` tells of. The frame becomes the value, so
    /// that nobody counts its holders up and down once more; a small value is copied while much is held.
    #[inline]
    pub(super) fn entry_in(
        &self,
        mut frame: Bytes,
        record: &IndexRecord,
        key: &[u8],
        target: Trailer,
    ) -> Result<Option<(Trailer, Slice)>> {
        let Some((trailer, range)) = self.find_in(&frame, record, key, target)? else {
            return Ok(None);
        };
        if self.is_much_held() && range.len() <= frame.len() / COPIED_VALUE_DIVISOR {
            return Ok(Some((trailer, Slice::copy_from(&frame[range]))));
        }
        frame.truncate(range.end);
        frame.advance(range.start);
        Ok(Some((trailer, Slice::from_bytes(frame))))
    }

    /// Whether values keep so many blocks in memory that no more small ones may.
    #[inline]
    fn is_much_held(&self) -> bool {
        self.cache.as_ref().is_some_and(|(cache, _)| cache.is_much_held())
    }

    /// Where the value of the target's entry lies in the block that `record` tells of. A call of its
    /// own would cost a cached get 13 instructions.
    #[inline(always)]
    fn find_in(
        &self,
        block: &[u8],
        record: &IndexRecord,
        key: &[u8],
        target: Trailer,
    ) -> Result<Option<(Trailer, Range<usize>)>> {
        let found = DataBlockLayout::parse(block).and_then(|layout| {
            let data = DataBlock::new(block, &layout);
            match data.seek::<false>(key, target, &mut Vec::new())? {
                Some((place, true)) => {
                    Ok(Some((data.trailer(place.index())?, place.value_range())))
                }
                _ => Ok(None),
            }
        });
        self.within(record.handle, found)
    }

    /// Whether the table may hold `key`: false is certain.
    pub fn may_contain(&self, key: &[u8], context: &mut ReadContext<'_>) -> Result<bool> {
        self.may_contain_hash(hash_key(key), context)
    }

    /// [`TableReader::may_contain`] of a key by its [`hash_key`].
    #[inline]
    pub fn may_contain_hash(&self, hash: u64, context: &mut ReadContext<'_>) -> Result<bool> {
        self.ask_filter::<false>(hash, context)
    }

    #[inline]
    fn ask_filter<const IS_METERED: bool>(
        &self,
        hash: u64,
        context: &mut ReadContext<'_>,
    ) -> Result<bool> {
        let Some(handle) = self.footer.filter else {
            return Ok(self.properties.entries > 0);
        };
        let kind = MetaKind::of_table(Layout::BlockedBloom, BlockKind::Filter);
        let filter = self.meta_block(handle, kind, &self.filter, context)?;
        let filter = FilterReader::parse(&filter)
            .map_err(|error| error.at(self.file.path(), handle.offset))?;
        let admits = filter.may_contain(hash);
        if IS_METERED && let Some(meter) = &mut context.meter {
            meter.filters.checks += 1;
            meter.filters.negatives += u64::from(!admits);
        }
        Ok(admits)
    }

    /// As [`TableReader::may_contain_hash`], for a point read: metered, if there is a filter.
    #[inline]
    pub(super) fn filter_admits(&self, hash: u64, context: &mut ReadContext<'_>) -> Result<bool> {
        self.ask_filter::<true>(hash, context)
    }

    /// Whether a filter knows its keys.
    #[inline]
    pub fn has_filter(&self) -> bool {
        self.footer.filter.is_some()
    }

    /// Meters that a point read found an entry which the filter, if there is one, let through.
    #[inline]
    pub(crate) fn meter_found(&self, context: &mut ReadContext<'_>) {
        if let Some(meter) = &mut context.meter {
            meter.filters.found += u64::from(self.has_filter());
        }
    }

    /// Asks the processor for what [`TableReader::may_contain_hash`] will look at, if it is in memory.
    #[inline]
    pub(crate) fn prefetch_filter(&self, hash: u64) {
        if let Some(filter) = self.filter.get() {
            super::filter::prefetch(filter, hash);
        }
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

    /// Whether a filter can tell something of keys that begin with `prefix`.
    pub(crate) fn filter_knows(&self, prefix: &[u8]) -> bool {
        let prefix_length = self.properties.prefix_length as usize;
        self.has_filter() && prefix_length > 0 && prefix.len() >= prefix_length
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
        // The frame stays referenced from here, so that it is kept or the cache counts it as
        // pinned.
        let kind = MetaKind::of_table(Layout::Tombstones, BlockKind::Index);
        let kept = OnceLock::new();
        let frame = self.meta_block(handle, kind, &kept, context)?;
        let tombstones = FragmentedTombstones::parse(frame.into_bytes())
            .map_err(|error| error.at(self.file.path(), handle.offset))?;
        Ok(Arc::clone(self.tombstones.get_or_init(|| Arc::new(tombstones))))
    }

    /// A cursor over all entries, not yet at one.
    pub fn cursor(self: &Arc<Self>) -> TableCursor {
        TableCursor::new(Arc::clone(self))
    }

    /// Stored bytes of the data blocks before the one that alone may hold `key`.
    #[cold]
    #[inline(never)]
    pub(crate) fn data_bytes_before(
        &self,
        key: &[u8],
        context: &mut ReadContext<'_>,
    ) -> Result<u64> {
        let found = IndexWalk::default().seek(self, key, Trailer(u64::MAX), context)?;
        Ok(found.map_or(self.properties.data_stored_bytes, |record| record.handle.offset))
    }

    /// A scanner for a compaction, over the user keys from `start` to before `end`. Reads nothing
    /// before its first poll.
    pub fn scanner(self: &Arc<Self>, start: Option<&[u8]>, end: Option<&[u8]>) -> TableScanner {
        TableScanner::new(Arc::clone(self), start, end)
    }

    /// Reads and checks every block, the order of all entries, and that index, filter and
    /// properties say the truth about them. Does not fill the cache.
    pub fn verify(&self, context: &mut ReadContext<'_>) -> Result<Verification> {
        context.past_the_cache(|context| super::verify::verify(self, context))
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

    /// Whether the index has two levels.
    #[inline]
    pub(super) fn has_partitions(&self) -> bool {
        self.footer.has_two_level_index()
    }

    /// The bytes of the index block that the footer points at: kept, from the cache, or read.
    #[inline]
    pub(super) fn index(&self, context: &mut ReadContext<'_>) -> Result<MetaBytes<'_>> {
        let kind = MetaKind::of_table(self.footer.index_layout(), BlockKind::Index);
        self.meta_block(self.footer.index, kind, &self.index, context)
    }

    /// [`TableReader::index`] if that takes no read.
    pub(super) fn resident_index(&self) -> Option<Bytes> {
        self.resident(self.index.get(), self.footer.index)
    }

    /// The bytes of a block that is kept here or in the cache.
    pub(super) fn resident(&self, kept: Option<&KeptBlock>, handle: BlockHandle) -> Option<Bytes> {
        match (kept, &self.cache) {
            (Some(kept), _) => Some(kept.bytes()),
            (None, Some((cache, file_id))) => cache.get(*file_id, handle.offset),
            (None, None) => None,
        }
    }

    /// Takes the table's blocks out of the cache.
    pub(crate) fn erase_cached(&self) {
        if let Some((cache, file_id)) = &self.cache {
            cache.erase_file(*file_id);
        }
    }

    pub(super) fn parse_index<'b>(&self, bytes: &'b [u8]) -> Result<IndexBlock<'b>> {
        self.in_index(IndexBlock::parse(bytes, self.footer.index.offset))
    }

    /// Names the index as the place of an error.
    pub(super) fn in_index<T>(&self, result: Result<T>) -> Result<T> {
        self.within(self.footer.index, result)
    }

    /// Names a block as the place of an error.
    #[inline]
    pub(super) fn within<T>(&self, handle: BlockHandle, result: Result<T>) -> Result<T> {
        result.map_err(|error| error.at(self.file.path(), handle.offset))
    }
}

/// The properties; the inner error is of what was read of them.
fn properties_of(
    file: &dyn File,
    footer: &Footer,
    (tail, tail_offset): (&[u8], u64),
    pool: &Arc<ContextPool>,
    meter: &mut WorkMeter,
) -> Result<Result<TableProperties>> {
    let handle = footer.properties;
    let sized = handle.check_size(Layout::Properties);
    sized.map_err(|error| error.at(file.path(), handle.offset))?;
    let stored = match handle.offset.checked_sub(tail_offset) {
        Some(start) => {
            let start = start as usize;
            tail.get(start..start + handle.stored_size as usize).map(<[u8]>::to_vec)
        }
        None => {
            let stored = read_exact_at(file, handle.offset, handle.stored_size as usize)?;
            meter.read(stored.len());
            Some(stored)
        }
    };
    let place = (&footer.table_id, handle.offset);
    let decoded = block::open(&stored.unwrap_or_default(), Layout::Properties, place)
        .and_then(|block| decode(pool, &TableDictionaries::default(), block, Vec::new()))
        .and_then(|raw| TableProperties::decode(&raw));
    Ok(decoded.map_err(|error| error.at(file.path(), handle.offset)))
}

impl Drop for TableReader {
    fn drop(&mut self) {
        // The id is never given again, so nothing can find these blocks any more.
        if !planted!(BlocksErasedEarly) {
            self.erase_cached();
        }
    }
}
