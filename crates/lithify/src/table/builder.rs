//! Makes the bytes of a table in memory, block by block.
//!
//! The caller takes finished bytes whenever there are enough for a write, so that a job writes in
//! pieces of its own size and the builder holds little more than one block, the index, and eight
//! bytes per key for the filter.

use super::block::{BlockHandle, Encoding, Layout, TRAILER_SIZE};
use super::block_sink::{BlockSink, encode_block};
use super::data_block_builder::DataBlockBuilder;
use super::dictionaries::{DictionaryWriter, property_of};
use super::filter::{FilterBuilder, hash_key};
use super::footer::{FOOTER_SIZE, Footer};
use super::index::{FLAG_ALL_PUTS, FLAG_RAW_FALLBACK, FLAG_SEQUENCES_ZERO, IndexRecord};
use super::index_builder::IndexBuilder;
use super::properties::TableProperties;
use super::specimen::{Specimen, Tap, ends_before};
use super::stored_block::{StoredBlock, Survey};
use super::tombstones::TombstoneFragmenter;
use crate::base::{
    Clock, ColumnFamilyId, KEY_SIZE_MAX, Level, SEQUENCE_MAX, SequenceNumber, TableId, Trailer,
    VALUE_SIZE_MAX, ValueKind,
};
use crate::codec::{HeldDictionary, PooledCompressor};
use crate::retention::{WriteTimes, split};
use crate::stats::{Part, WorkMeter};
use crate::{Error, Result};
use std::sync::Arc;

/// The shape of a table. The codec is not in it: that comes with the compressor.
#[derive(Clone, Debug)]
pub struct TableOptions {
    /// Target size of a data block, in raw bytes. Default 16 KiB, at most 16 MiB.
    pub block_size_bytes: usize,
    /// Entries per restart point of a data block. Default 16.
    pub restart_interval: u16,
    /// Filter bits per key; 0: no filter. Default 10.
    pub filter_bits_per_key: u32,
    /// Key prefixes of this length, in bytes, go into the filter too; keys shorter than that have
    /// none. Default none.
    pub prefix_length: Option<usize>,
    /// The level that the table is made for; a property only.
    pub level: Level,
    /// The time to live of its rows: their values end with the times of their writing; 0: they don't.
    pub time_to_live_s: u64,
    /// Whose it is; properties only. Default unknown.
    pub origin: Option<TableOrigin>,
}

/// Which column family a table is made for: for a repair without a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableOrigin {
    /// The id of the column family.
    pub family_id: ColumnFamilyId,
    /// Its name.
    pub family_name: String,
    /// All of the family's writes up to here are in this table and others; 0 if not known.
    pub flushed_through: SequenceNumber,
}

impl Default for TableOptions {
    fn default() -> Self {
        TableOptions {
            block_size_bytes: 16 << 10,
            restart_interval: 16,
            filter_bits_per_key: 10,
            prefix_length: None,
            level: 0,
            time_to_live_s: 0,
            origin: None,
        }
    }
}

const BLOCK_SIZE_MAX: usize = 16 << 20;

/// The largest buffer that is kept for reuse.
const SPARE_SIZE_MAX: usize = 1 << 20;

/// A finished table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSummary {
    /// Its random identity.
    pub table_id: TableId,
    /// Its length in bytes.
    pub size_bytes: u64,
    /// Everything else, as written into it.
    pub properties: TableProperties,
}

/// See the module. Belongs to one thread at a time.
pub struct TableBuilder {
    options: TableOptions,
    sink: BlockSink,
    block: DataBlockBuilder,
    index: IndexBuilder,
    filter: Option<FilterBuilder>,
    tombstones: TombstoneFragmenter,
    /// The exclusive end of the range tombstone that reaches furthest.
    tombstone_end: Option<Vec<u8>>,
    properties: TableProperties,
    survey: Survey,
    /// How much larger blocks would be that were cut before a copied one.
    cut_short_bytes: u64,
    tap: Tap,
    is_finished: bool,
}

impl TableBuilder {
    /// A builder of the table `table_id`, which must be random, with blocks encoded by
    /// `compressor`.
    pub fn new(options: TableOptions, table_id: TableId, compressor: PooledCompressor) -> Self {
        let compression = compressor.compression();
        let prefix_length = options.prefix_length.unwrap_or(0);
        let origin = options.origin.as_ref();
        let properties = TableProperties {
            family_id: origin.map_or(0, |origin| u64::from(origin.family_id)),
            family_name: origin.map_or(Vec::new(), |o| o.family_name.clone().into_bytes()),
            flushed_through: origin.map_or(0, |origin| origin.flushed_through),
            block_size_bytes: options.block_size_bytes as u64,
            codec: compression.codec as u64,
            effort: i64::from(compression.effort),
            encoder: compression.encoder as u64,
            filter_bits_per_key: u64::from(options.filter_bits_per_key),
            level: options.level as u64,
            prefix_length: prefix_length as u64,
            time_to_live_s: options.time_to_live_s,
            smallest_sequence: SEQUENCE_MAX,
            ..TableProperties::default()
        };
        let has_filter = options.filter_bits_per_key > 0;
        TableBuilder {
            sink: BlockSink {
                table_id,
                compressor,
                output: Vec::new(),
                output_offset: 0,
                spare: Vec::new(),
                dictionaries: DictionaryWriter::default(),
            },
            block: DataBlockBuilder::new(options.restart_interval),
            index: IndexBuilder::default(),
            filter: has_filter.then(|| FilterBuilder::new(options.filter_bits_per_key)),
            tombstones: TombstoneFragmenter::new(),
            tombstone_end: None,
            properties,
            survey: Survey::default(),
            cut_short_bytes: 0,
            tap: Tap::default(),
            is_finished: false,
            options,
        }
    }

    /// Has the data blocks be compressed with a dictionary, which is written into the table if a
    /// block uses it. To be called before the first entry. Fails with
    /// [`crate::ErrorKind::InvalidArgument`] if the codec takes no dictionary, or not this one.
    pub fn use_dictionary(&mut self, dictionary: Arc<HeldDictionary>) -> Result<()> {
        let name = dictionary.hash().0.to_vec();
        let compression = self.sink.compressor.compression();
        self.sink.dictionaries.set_own(dictionary, compression)?;
        self.properties.dictionary = name;
        Ok(())
    }

    /// Adds an entry behind all others in internal order. Fails with
    /// [`crate::ErrorKind::InvalidArgument`] if it does not ascend and with
    /// [`crate::ErrorKind::LimitExceeded`] if key or value is too long.
    pub fn add(
        &mut self,
        key: &[u8],
        trailer: Trailer,
        mut value: &[u8],
        meter: &mut WorkMeter,
        clock: &dyn Clock,
    ) -> Result<()> {
        let relation = self.block.relation(key, trailer);
        if !relation.ascends || self.is_finished {
            return Err(out_of_order(self.is_finished));
        }
        check_sizes(key, value)?;
        if planted!(LongValueCut) {
            value = &value[..value.len().min(self.options.block_size_bytes)];
        }
        match trailer.kind() {
            Some(ValueKind::Put | ValueKind::Merge) => {}
            Some(ValueKind::Delete) => self.properties.deletes += 1,
            Some(ValueKind::SingleDelete) => self.properties.single_deletes += 1,
            _ => return Err(Error::invalid("kind of an entry of a table")),
        }
        if !self.block.is_empty() {
            let size = self.block.raw_size_with(relation, key, value);
            if self.block_ends_before(size) {
                self.cut_block(Some(key), meter, clock)?;
            }
        }
        if self.properties.entries == 0 {
            self.properties.smallest_key = key.to_vec();
        }
        self.block.add(relation, key, trailer, value);
        self.properties.entries += 1;
        self.properties.key_bytes += key.len() as u64;
        self.properties.value_bytes += value.len() as u64;
        if self.options.time_to_live_s > 0 {
            self.note_time(trailer, value);
        }
        Ok(())
    }

    /// Notes when a put was written; reads complain of one that does not say so.
    #[cold]
    #[inline(never)]
    fn note_time(&mut self, trailer: Trailer, stored: &[u8]) {
        let (Some(ValueKind::Put), Ok((_, written_s))) = (trailer.kind(), split(stored)) else {
            return;
        };
        let times = self.properties.write_times();
        let times = times.map_or(WriteTimes::of(written_s), |times| times.and(written_s));
        self.properties.oldest_write_s = times.oldest_s.into();
        self.properties.newest_write_s = times.newest_s.into();
    }

    /// Adds a block of another table as it is stored, behind all entries so far; it was encoded
    /// as this table's are to be, and has puts only. False, and nothing is added, if it has two
    /// entries of one key, if its size is not one that this table's blocks should have, or if too
    /// many blocks would be cut short because of those copied.
    pub(crate) fn add_block(
        &mut self,
        block: &StoredBlock<'_>,
        meter: &mut WorkMeter,
        clock: &dyn Clock,
    ) -> Result<bool> {
        if self.is_finished {
            return Err(out_of_order(true));
        }
        if !self.fits(block) {
            return Ok(false);
        }
        let mut survey = std::mem::take(&mut self.survey);
        let prefix_length = self.options.prefix_length.unwrap_or(0);
        let has_filter = self.filter.is_some();
        let walked =
            meter.time(clock, Part::Filter, || survey.walk(block, has_filter, prefix_length));
        let added = match walked {
            Ok(true) => self.append_block(block, &survey, meter, clock).map(|()| true),
            refused => refused,
        };
        self.survey = survey;
        added
    }

    /// Whether copying a block keeps the blocks of this table about as large as they should be:
    /// those that a copy cuts short may be short of a quarter of all bytes in total.
    fn fits(&self, block: &StoredBlock<'_>) -> bool {
        let target_size = self.target_size();
        let size = block.raw_size();
        if block.dictionary.is_some_and(|needed| !self.sink.dictionaries.admits(needed)) {
            return false;
        }
        if size < target_size / 2 || (size > 2 * target_size && block.entry_count() > 1) {
            return false;
        }
        let written = self.properties.data_raw_bytes + (self.pending_size() + size) as u64;
        self.cut_short_bytes + self.shortage() <= written / 4
    }

    /// Bytes of the block at hand; 0 if it has no entry.
    fn pending_size(&self) -> usize {
        if self.block.is_empty() { 0 } else { self.block.raw_size() }
    }

    /// The raw size that blocks should have.
    fn target_size(&self) -> usize {
        self.options.block_size_bytes.min(BLOCK_SIZE_MAX)
    }

    /// How much larger the block at hand should be if it were cut now.
    fn shortage(&self) -> u64 {
        match self.pending_size() {
            0 => 0,
            size => self.target_size().saturating_sub(size) as u64,
        }
    }

    /// Whether the block at hand, which has entries, ends before one with which it has this size.
    fn block_ends_before(&self, size: usize) -> bool {
        let target_size = self.target_size();
        // Most rows fit, and for them nothing else is computed.
        size > target_size && ends_before(self.pending_size(), size, target_size)
    }

    /// Keeps copies of blocks that come, so many bytes of them after the next `skip` blocks, until
    /// [`TableBuilder::take_specimen`].
    pub(crate) fn tap(&mut self, wanted_bytes: usize, skip: u64) {
        self.tap.open(wanted_bytes, skip);
    }

    /// What was kept, if it is enough.
    pub(crate) fn take_specimen(&mut self) -> Option<Specimen> {
        self.tap.take(self.is_finished)
    }

    fn append_block(
        &mut self,
        block: &StoredBlock<'_>,
        survey: &Survey,
        meter: &mut WorkMeter,
        clock: &dyn Clock,
    ) -> Result<()> {
        if !self.block.relation(block.first_key(), Trailer::seek(SEQUENCE_MAX)).ascends {
            return Err(out_of_order(false));
        }
        if !self.block.is_empty() {
            self.cut_short_bytes += self.shortage();
            self.cut_block(Some(block.first_key()), meter, clock)?;
        }
        if self.properties.entries == 0 {
            self.properties.smallest_key = block.first_key().to_vec();
        }
        if let Some(filter) = &mut self.filter {
            survey.hashes.iter().for_each(|hash| filter.add_hash(*hash));
        }
        let handle = self.sink.copy(block, meter, clock);
        let dictionary = block.dictionary.map_or(0, |dictionary| dictionary.id());
        let record = IndexRecord { handle, dictionary, ..block.record };
        self.index.add_separated(&record, block.first_key(), block.separator());
        let last_trailer = Trailer::new(survey.smallest_sequence, ValueKind::Put);
        self.block.follow(&survey.last_key, last_trailer);
        let properties = &mut self.properties;
        properties.entries += block.entry_count();
        properties.key_bytes += survey.key_bytes;
        properties.value_bytes += survey.value_bytes;
        if record.flags & FLAG_RAW_FALLBACK != 0 {
            properties.fallback_blocks += 1;
        }
        self.note_block(&record, survey.smallest_sequence, survey.largest_sequence);
        self.cut_index(meter, clock)
    }

    /// Adds the deletion, at `sequence`, of the keys from `start` to before `end`, in any order.
    /// The caller has cut it to what the table may cover.
    pub fn add_range_tombstone(
        &mut self,
        start: &[u8],
        end: &[u8],
        sequence: SequenceNumber,
    ) -> Result<()> {
        if start >= end || sequence > SEQUENCE_MAX || self.is_finished {
            return Err(Error::invalid("range tombstone is empty, or the table is finished"));
        }
        check_sizes(start, &[])?;
        check_sizes(end, &[])?;
        self.tombstones.add(start.to_vec(), end.to_vec(), sequence);
        if self.tombstone_end.as_deref().is_none_or(|furthest| furthest < end) {
            self.tombstone_end = Some(end.to_vec());
        }
        self.properties.range_tombstones += 1;
        self.note_sequences(sequence, sequence);
        Ok(())
    }

    /// The largest sequence number at which an entry of this table became obsolete while a
    /// snapshot still needed it. To be set before the end.
    pub fn set_newest_obsolete_sequence(&mut self, sequence: SequenceNumber) {
        self.properties.newest_obsolete_sequence = sequence;
    }

    /// The thread CPU time booked for the table so far, in nanoseconds. To be set before the end.
    pub fn set_cpu_ns(&mut self, cpu_ns: u64) {
        self.properties.cpu_ns = cpu_ns;
    }

    /// Writes the table as versions did that did not record the size of blocks.
    #[cfg(test)]
    pub(super) fn forget_block_size(&mut self) {
        self.properties.block_size_bytes = 0;
    }

    /// What the format of the table was decided from. To be set before the end.
    pub(crate) fn set_decision(&mut self, text: String) {
        self.properties.decision = text.into_bytes();
    }

    /// Has the index be cut at other sizes than tables have.
    #[cfg(any(test, feature = "internals"))]
    pub(super) fn cut_index_at(&mut self, flat_size_max: usize, partition_size: usize) {
        self.index.cut_at(flat_size_max, partition_size);
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.properties.entries == 0 && self.tombstones.is_empty()
    }

    /// Entries added so far.
    pub fn entries(&self) -> u64 {
        self.properties.entries
    }

    /// Whether the table has to end soon, whatever its size: index or filter are half as large as
    /// their blocks can be. Long keys and filters of many bits get there.
    pub(crate) fn is_full(&self) -> bool {
        let filter_bytes = self.filter.as_ref().map_or(0, FilterBuilder::finished_bytes);
        self.index.root_size() > Layout::TopIndex.raw_size_max() / 2
            || filter_bytes > Layout::BlockedBloom.raw_size_max() / 2
    }

    /// Data blocks finished so far.
    pub(crate) fn data_blocks(&self) -> u64 {
        self.properties.data_blocks
    }

    /// The last key added; empty before the first.
    pub fn last_key(&self) -> &[u8] {
        self.block.last_key()
    }

    /// Bytes of its buffers: blocks at hand and finished, keys of the filter, the index.
    pub fn memory_bytes(&self) -> usize {
        let filter_bytes = self.filter.as_ref().map_or(0, FilterBuilder::memory_bytes);
        // A block at hand is held as rows, as a block, and as what the codec makes of it.
        3 * self.options.block_size_bytes
            + self.sink.output.capacity()
            + self.sink.spare.capacity()
            + self.index.memory_bytes()
            + self.survey.memory_bytes()
            + self.tap.memory_bytes()
            + self.tombstones.memory_bytes()
            + filter_bytes
    }

    /// Finished bytes that were not taken yet.
    pub fn output_bytes(&self) -> usize {
        self.sink.output.len()
    }

    /// Takes the finished bytes, to be appended to the file.
    pub fn take_output(&mut self) -> Vec<u8> {
        self.sink.output_offset = self.sink.offset();
        let next = std::mem::take(&mut self.sink.spare);
        std::mem::replace(&mut self.sink.output, next)
    }

    /// Gives a buffer back, such as one that was taken and written, for later output.
    pub fn recycle(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        let kept = self.sink.spare.capacity();
        if (kept..=SPARE_SIZE_MAX).contains(&buffer.capacity()) {
            self.sink.spare = buffer;
        }
    }

    /// What the file would be long if the table ended here, a little too much: the block at hand
    /// is not encoded yet.
    pub fn estimated_size_bytes(&self) -> u64 {
        let filter_bytes = self.filter.as_ref().map_or(0, FilterBuilder::finished_bytes);
        let rest = self.block.raw_size() + self.index.size() + FOOTER_SIZE + 1024;
        self.sink.offset() + (filter_bytes + rest) as u64
    }

    /// Ends the table; what is left of it is in the output. Fails with
    /// [`crate::ErrorKind::InvalidArgument`] if nothing was added.
    pub fn finish(&mut self, meter: &mut WorkMeter, clock: &dyn Clock) -> Result<TableSummary> {
        if self.is_finished || self.is_empty() {
            return Err(Error::invalid("a table needs an entry, and ends once"));
        }
        self.is_finished = true;
        if !self.block.is_empty() {
            self.cut_block(None, meter, clock)?;
        }
        let filter = self.write_filter(meter, clock)?;
        let tombstones = self.write_tombstones(meter, clock)?;
        let index = self.write_index(meter, clock)?;
        let dictionaries_size = self.sink.write_dictionaries(meter, clock);
        let used = self.sink.dictionaries.used().map(|held| &***held);
        self.properties.dictionaries = property_of(used);
        self.note_bounds();
        self.properties.created_unix_s = clock.unix_time_s();
        let properties = self.properties.encode();
        let properties =
            self.sink.write(Layout::Properties, &properties, false, meter, clock)?.handle;
        let (features, version) =
            Footer::features_of(self.index.has_partitions(), dictionaries_size > 0);
        let footer = Footer {
            table_id: self.sink.table_id,
            filter,
            tombstones,
            index,
            properties,
            file_size: self.sink.offset() + FOOTER_SIZE as u64,
            features,
            version,
            dictionaries_size,
        };
        footer.encode(&mut self.sink.output);
        Ok(TableSummary {
            table_id: self.sink.table_id,
            size_bytes: footer.file_size,
            properties: self.properties.clone(),
        })
    }

    fn write_filter(
        &mut self,
        meter: &mut WorkMeter,
        clock: &dyn Clock,
    ) -> Result<Option<BlockHandle>> {
        let Some(mut filter) = self.filter.take().filter(|filter| filter.hash_count() > 0) else {
            return Ok(None);
        };
        let mut raw = Vec::new();
        meter.time(clock, Part::Filter, || filter.finish(&mut raw));
        let written = self.sink.write(Layout::BlockedBloom, &raw, false, meter, clock)?;
        Ok(Some(written.handle))
    }

    fn write_tombstones(
        &mut self,
        meter: &mut WorkMeter,
        clock: &dyn Clock,
    ) -> Result<Option<BlockHandle>> {
        if self.tombstones.is_empty() {
            return Ok(None);
        }
        let fragments = self.tombstones.finish();
        let raw = fragments.encoded();
        if self.properties.entries == 0 || fragments.fragment(0).start < self.smallest_key() {
            self.properties.smallest_key = fragments.fragment(0).start.to_vec();
        }
        let written = self.sink.write(Layout::Tombstones, raw, true, meter, clock)?;
        Ok(Some(written.handle))
    }

    /// Writes the index of one level or two; the block that the footer is to point at.
    fn write_index(&mut self, meter: &mut WorkMeter, clock: &dyn Clock) -> Result<BlockHandle> {
        let (index, sink) = (&mut self.index, &mut self.sink);
        if !index.has_partitions() {
            let raw = index.encode_flat();
            return Ok(sink.write(Layout::FlatIndex, &raw, true, meter, clock)?.handle);
        }
        let compressor = &mut sink.compressor;
        index.cut_rest(&mut |raw, target| {
            encode_block(compressor, None, raw, target, meter, clock)
        })?;
        let raw = index.encode_top(sink.offset());
        for (record, payload) in index.partitions() {
            let (codec, raw_size) = (record.codec, record.raw_size);
            let encoding = Encoding { codec, dictionary: 0, raw_size };
            sink.append(Layout::IndexPartition, payload, encoding, meter, clock);
        }
        Ok(sink.write(Layout::TopIndex, &raw, true, meter, clock)?.handle)
    }

    fn smallest_key(&self) -> &[u8] {
        &self.properties.smallest_key
    }

    /// Sets the largest key: of the last entry, or where the range tombstones end.
    fn note_bounds(&mut self) {
        let last_key = (self.properties.entries > 0).then(|| self.block.last_key());
        match &self.tombstone_end {
            Some(end) if last_key.is_none_or(|last_key| last_key < &end[..]) => {
                self.properties.largest_key = end.clone();
                self.properties.largest_key_exclusive = 1;
            }
            _ => self.properties.largest_key = last_key.unwrap_or_default().to_vec(),
        }
    }

    fn note_sequences(&mut self, smallest: SequenceNumber, largest: SequenceNumber) {
        let properties = &mut self.properties;
        properties.smallest_sequence = properties.smallest_sequence.min(smallest);
        properties.largest_sequence = properties.largest_sequence.max(largest);
    }

    fn cut_block(
        &mut self,
        next_first: Option<&[u8]>,
        meter: &mut WorkMeter,
        clock: &dyn Clock,
    ) -> Result<()> {
        self.hash_keys(meter, clock);
        let (raw, facts) = self.block.encode();
        let raw_size = raw.len();
        self.tap.pass(raw);
        let written = self.sink.write(Layout::Data, raw, true, meter, clock)?;
        let mut flags = 0;
        if facts.all_puts {
            flags |= FLAG_ALL_PUTS;
        }
        if facts.largest_sequence == 0 {
            flags |= FLAG_SEQUENCES_ZERO;
        }
        if written.is_fallback {
            flags |= FLAG_RAW_FALLBACK;
            self.properties.fallback_blocks += 1;
        }
        let record = IndexRecord {
            handle: written.handle,
            raw_size: raw_size as u32,
            entry_count: facts.entry_count,
            largest_sequence: facts.largest_sequence,
            codec: written.codec,
            dictionary: written.dictionary,
            flags,
        };
        let last_trailer = self.block.last_trailer().unwrap_or(Trailer(0));
        let last = (self.block.last_key(), last_trailer);
        self.index.add(&record, self.block.first_key(), last, next_first);
        self.block.clear();
        self.note_block(&record, facts.smallest_sequence, facts.largest_sequence);
        self.cut_index(meter, clock)
    }

    /// Takes a block that was written into the properties.
    fn note_block(
        &mut self,
        record: &IndexRecord,
        smallest_sequence: SequenceNumber,
        largest_sequence: SequenceNumber,
    ) {
        self.properties.data_blocks += 1;
        self.properties.data_raw_bytes += u64::from(record.raw_size);
        self.properties.data_stored_bytes += u64::from(record.handle.stored_size);
        self.note_sequences(smallest_sequence, largest_sequence);
    }

    /// Cuts partitions of the index when there is enough for them.
    fn cut_index(&mut self, meter: &mut WorkMeter, clock: &dyn Clock) -> Result<()> {
        let compressor = &mut self.sink.compressor;
        self.index.cut_full(&mut |raw, target| {
            encode_block(compressor, None, raw, target, meter, clock)
        })?;
        if self.index.root_size() > Layout::TopIndex.raw_size_max() - (1 << 20) {
            return Err(Error::limit("the index of a table is full; cut tables earlier"));
        }
        Ok(())
    }

    /// Hashes the keys of the block into the filter, in one go so that it can be metered.
    fn hash_keys(&mut self, meter: &mut WorkMeter, clock: &dyn Clock) {
        let Some(filter) = &mut self.filter else {
            return;
        };
        let started = clock.ticks();
        let prefix_length = self.options.prefix_length.unwrap_or(0);
        let mut is_first = self.properties.data_blocks == 0;
        for (key, shared) in self.block.keys() {
            // A key that shares all of itself with the one before is another version of it.
            if shared < key.len() || is_first {
                filter.add_hash(hash_key(key));
            }
            let has_prefix = prefix_length > 0 && key.len() >= prefix_length;
            if has_prefix && (shared < prefix_length || is_first) {
                filter.add_hash(hash_key(&key[..prefix_length]));
            }
            is_first = false;
        }
        meter.ticks[Part::Filter as usize] += clock.ticks().wrapping_sub(started);
    }
}

#[cold]
fn out_of_order(is_finished: bool) -> Error {
    Error::invalid(if is_finished {
        "the table is finished"
    } else {
        "entries of a table must ascend"
    })
}

#[inline]
fn check_sizes(key: &[u8], value: &[u8]) -> Result<()> {
    if key.len() > KEY_SIZE_MAX || value.len() > VALUE_SIZE_MAX {
        return Err(Error::limit("key or value is too long").expected(
            format_args!("at most {KEY_SIZE_MAX} and {VALUE_SIZE_MAX} bytes"),
            format_args!("{} and {}", key.len(), value.len()),
        ));
    }
    Ok(())
}

/// The smallest table that can be: a properties block and a footer at least.
pub(super) const TABLE_SIZE_MIN: u64 = (FOOTER_SIZE + TRAILER_SIZE) as u64;
