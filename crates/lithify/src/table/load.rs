//! How blocks come from the file into memory.
//!
//! 1. Stored bytes are read into a buffer that the thread keeps.
//! 2. Their checksum is compared before anything is decoded.
//! 3. They are decoded into another one, which the cache takes a copy of. Those that are stored raw are
//!    read into it.
//!
//! Reads of several blocks at once announce all that they want before they wait for the first,
//! and read neighbours together.

use super::block::{self, BlockHandle, Layout, TRAILER_SIZE};
use super::data_block::{DataBlockLayout, assign_sequence};
use super::dictionaries::TableDictionaries;
use super::index::IndexRecord;
use super::prefetch::prefetch_data_block;
use super::read_ahead::ReadAhead;
use super::reader::{ReadContext, TableReader};
use crate::base::{Charge, MemoryUse};
use crate::cache::{BlockCache, BlockKind, KeptBlock, KeptShare};
use crate::codec::{CodecId, ContextPool, Decompressor};
use crate::fs::Advice;
use crate::stats::{Part, WorkMeter};
use crate::{Error, Result};
use bytes::Bytes;
use std::cell::{Cell, RefCell};
use std::ops::{Deref, Range};
use std::sync::{Arc, OnceLock};

/// Neighbouring blocks of up to so many stored bytes are read together.
const RUN_SIZE_MAX: u64 = 256 << 10;

/// Stored bytes of up to this many are read into a buffer that the thread keeps.
const SCRATCH_SIZE_MAX: usize = 256 << 10;

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// The memory of the last block that was copied or passed by.
    static RAW: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A block that its reader keeps, without much memory of a larger one that the thread read before.
pub(super) fn handed_out(raw: Vec<u8>) -> Bytes {
    Bytes::from(trimmed(raw))
}

fn trimmed(mut raw: Vec<u8>) -> Vec<u8> {
    if raw.capacity() / 2 > raw.len() {
        raw.shrink_to_fit();
    }
    raw
}

/// Leaves a block's memory to the next one that this thread reads: it is then decoded into what the
/// processor's cache holds.
pub(super) fn give_back_buffer(raw: Vec<u8>) {
    if raw.capacity() <= SCRATCH_SIZE_MAX {
        // The last holder of a block may be a thread that ends: its memory then just goes.
        let _ = RAW.try_with(|buffer| buffer.set(raw));
    }
}

/// A block that a cursor stands in and the cache does not hold. Its memory is charged as long as somebody reads
/// it, and is then the next block's.
struct PassedBlock {
    raw: Vec<u8>,
    _charge: Option<Charge>,
}

impl AsRef<[u8]> for PassedBlock {
    fn as_ref(&self) -> &[u8] {
        &self.raw
    }
}

impl Drop for PassedBlock {
    fn drop(&mut self) {
        give_back_buffer(std::mem::take(&mut self.raw));
    }
}

/// Makes a buffer as long as a read that will set all of it. What is there already is not set twice.
fn make_length(buffer: &mut Vec<u8>, size: usize) {
    buffer.truncate(size);
    buffer.resize(size, 0);
}

/// What a block is that is not of data, and how it is expected to be stored.
#[derive(Clone, Copy)]
pub(super) struct MetaKind {
    pub(super) layout: Layout,
    pub(super) kind: BlockKind,
    pub(super) share: KeptShare,
    pub(super) codec: CodecId,
}

impl MetaKind {
    /// A block that every read of its table needs.
    pub(super) fn of_table(layout: Layout, kind: BlockKind) -> Self {
        MetaKind { layout, kind, share: KeptShare::Whole, codec: CodecId::None }
    }
}

/// A block that is not of data, for one read.
pub(super) enum MetaBytes<'t> {
    /// The table keeps it.
    Kept(&'t KeptBlock),
    /// The cache held it.
    Cached(Bytes),
}

impl Deref for MetaBytes<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            MetaBytes::Kept(block) => block,
            MetaBytes::Cached(bytes) => bytes,
        }
    }
}

impl MetaBytes<'_> {
    /// The bytes for longer than a read.
    pub(super) fn into_bytes(self) -> Bytes {
        match self {
            MetaBytes::Kept(block) => block.bytes(),
            MetaBytes::Cached(bytes) => bytes,
        }
    }
}

impl TableReader {
    #[inline]
    pub(super) fn meta_block<'t>(
        &'t self,
        handle: BlockHandle,
        kind: MetaKind,
        kept: &'t OnceLock<KeptBlock>,
        context: &mut ReadContext<'_>,
    ) -> Result<MetaBytes<'t>> {
        match kept.get() {
            Some(kept) => Ok(MetaBytes::Kept(kept)),
            None => self.meta_block_not_kept(handle, kind, kept, context),
        }
    }

    /// From the cache, or read; what is read is kept as far as the cache allows it.
    #[cold]
    fn meta_block_not_kept<'t>(
        &'t self,
        handle: BlockHandle,
        MetaKind { layout, kind, share, codec }: MetaKind,
        kept: &'t OnceLock<KeptBlock>,
        context: &mut ReadContext<'_>,
    ) -> Result<MetaBytes<'t>> {
        let Some((cache, file_id)) = &self.cache else {
            let raw = self.load(handle, layout, codec, context)?;
            return Ok(MetaBytes::Kept(kept.get_or_init(|| KeptBlock::uncharged(raw))));
        };
        if let Some(frame) = cache.get(*file_id, handle.offset) {
            return Ok(MetaBytes::Cached(frame));
        }
        let raw = self.load(handle, layout, codec, context)?;
        let bytes = match cache.keep(&raw, share) {
            Some(block) => MetaBytes::Kept(kept.get_or_init(|| block)),
            None => MetaBytes::Cached(cache.insert(*file_id, handle.offset, kind, &raw)),
        };
        give_back_buffer(raw);
        Ok(bytes)
    }

    /// A data block's frame if the cache holds it.
    #[inline]
    pub(super) fn cached_data_block(&self, record: &IndexRecord) -> Option<Bytes> {
        let (cache, file_id) = self.cache.as_ref()?;
        let frame = cache.get(*file_id, record.handle.offset)?;
        prefetch_data_block(&frame);
        Some(frame)
    }

    /// Whether a data block that the cache does not hold is worth keeping.
    pub(super) fn wants_data_block(&self, record: &IndexRecord, context: &ReadContext<'_>) -> bool {
        let wants = |(cache, file_id): &(Arc<BlockCache>, u64)| {
            cache.wants(*file_id, record.handle.offset, record.raw_size as usize)
        };
        context.fill_cache && self.cache.as_ref().is_some_and(wants)
    }

    /// A data block that a lookup missed, for a read of one entry that leaves nothing behind in the
    /// cache.
    pub(super) fn data_block_in_passing(
        &self,
        record: &IndexRecord,
        context: &mut ReadContext<'_>,
    ) -> Result<Vec<u8>> {
        self.heat.note_point();
        context.past_the_cache(|context| self.verified_data_block(record, context))
    }

    /// A data block's frame that a lookup missed: read, checked and decoded.
    #[inline]
    pub(super) fn fetch_data_block(
        &self,
        record: &IndexRecord,
        context: &mut ReadContext<'_>,
    ) -> Result<Bytes> {
        let raw = self.verified_data_block(record, context)?;
        Ok(self.take_in(record, raw, context))
    }

    /// A data block's frame for a cursor, from the cache or read: it reads ahead while it goes from block
    /// to block. What was read ahead is taken into the cache as a scan's. Blocks that nobody would use again
    /// are read past the cache.
    pub(super) fn data_block_ahead(
        &self,
        record: &IndexRecord,
        ahead: &mut ReadAhead,
        context: &mut ReadContext<'_>,
    ) -> Result<Bytes> {
        match self.cached_data_block(record) {
            Some(frame) => {
                ahead.pass(record.handle);
                Ok(frame)
            }
            None => self.missed_block_ahead(record, ahead, context),
        }
    }

    #[inline(never)]
    fn missed_block_ahead(
        &self,
        record: &IndexRecord,
        ahead: &mut ReadAhead,
        context: &mut ReadContext<'_>,
    ) -> Result<Bytes> {
        let handle = record.handle;
        let size = ahead.miss(handle, self.is_direct);
        if size == 0 && !ahead.holds(handle) {
            let raw = self.verified_data_block(record, context)?;
            // Larger blocks would have spared a cursor the way to the next one, but no lookup its block.
            match ahead.is_on_its_way() {
                true => self.heat.note_scan(raw.len()),
                false => self.heat.note_point(),
            }
            return Ok(match self.wants_data_block(record, context) {
                true => self.cached(record, raw, context),
                false => self.passed(raw),
            });
        }
        if !ahead.holds(handle) {
            // The index has proved that the block lies before it.
            let block_end = handle.end().unwrap_or(handle.offset);
            let end = handle.offset.saturating_add(size).min(self.data_end()).max(block_end);
            let cache = self.cache.as_ref().map(|(cache, _)| cache);
            let budget = cache.map(|cache| cache.budget());
            let wanted = ahead.prepare(handle.offset..end, budget);
            cache.inspect(|cache| cache.shrink_to_budget());
            self.read(wanted.offset, wanted.buffer, context)?;
            if let Some(meter) = &mut context.meter {
                meter.read_ahead_bytes += end - block_end;
            }
            ahead.arrived();
        }
        let raw = self.decode_data(record, ahead.stored(handle), context)?;
        self.heat.note_scan(raw.len());
        match &self.cache {
            Some((cache, file_id))
                if context.fill_cache && cache.wants_scan(*file_id, handle.offset, raw.len()) =>
            {
                let frame = cache.insert_scan(*file_id, handle.offset, BlockKind::Data, &raw);
                give_back_buffer(raw);
                Ok(frame)
            }
            _ => Ok(self.passed(raw)),
        }
    }

    /// A block for a cursor that the cache does not take in.
    fn passed(&self, raw: Vec<u8>) -> Bytes {
        let raw = trimmed(raw);
        let charge = self.cache.as_ref().map(|(cache, _)| {
            let charge = cache.budget().charge(MemoryUse::Pinned, raw.capacity());
            cache.shrink_to_budget();
            charge
        });
        Bytes::from_owner(PassedBlock { raw, _charge: charge })
    }

    /// The frames of several data blocks, which ascend: those that are not in the cache are all
    /// announced to the file, then read, neighbours together.
    pub(super) fn data_blocks(
        &self,
        records: &[IndexRecord],
        context: &mut ReadContext<'_>,
    ) -> Result<Vec<Bytes>> {
        let mut frames = vec![Bytes::new(); records.len()];
        let mut missing = Vec::new();
        for (place, record) in records.iter().enumerate() {
            match self.cached_data_block(record) {
                Some(frame) => frames[place] = frame,
                None => missing.push(place),
            }
        }
        let runs = runs(records, &missing);
        if runs.len() > 1 {
            for run in &runs {
                let span = span(records, run);
                // A hint: a file system that refuses it is no failure.
                let _ = self.file.advise(span.start, span.end - span.start, Advice::WillNeed);
            }
        }
        let mut stored = Vec::new();
        for run in runs {
            if run.len() == 1 {
                let record = &records[run.start];
                let raw = self.verified_data_block(record, context)?;
                frames[run.start] = self.take_in(record, raw, context);
                continue;
            }
            let span = span(records, &run);
            stored.resize((span.end - span.start) as usize, 0);
            self.read(span.start, &mut stored, context)?;
            for place in run {
                let (record, start) = (&records[place], records[place].handle.offset - span.start);
                let (start, size) = (start as usize, record.handle.stored_size as usize);
                let block = stored.get(start..start + size).unwrap_or_default();
                let raw = self.decode_data(record, block, context)?;
                frames[place] = self.take_in(record, raw, context);
            }
        }
        Ok(frames)
    }

    /// Puts a block that a lookup missed into the cache.
    fn take_in(&self, record: &IndexRecord, raw: Vec<u8>, context: &mut ReadContext<'_>) -> Bytes {
        self.heat.note_point();
        self.cached(record, raw, context)
    }

    /// Puts a block into the cache, if the read is to fill it.
    fn cached(&self, record: &IndexRecord, raw: Vec<u8>, context: &mut ReadContext<'_>) -> Bytes {
        match &self.cache {
            Some((cache, file_id)) if context.fill_cache => {
                let frame = cache.insert(*file_id, record.handle.offset, BlockKind::Data, &raw);
                give_back_buffer(raw);
                frame
            }
            _ => handed_out(raw),
        }
    }

    /// Where the data blocks end, as far as the footer tells: behind them may be partitions of the
    /// index.
    fn data_end(&self) -> u64 {
        let footer = &self.footer;
        let first_of = |handle: Option<BlockHandle>| handle.map_or(u64::MAX, |h| h.offset);
        footer.index.offset.min(first_of(footer.filter)).min(first_of(footer.tombstones))
    }

    /// A data block, read past the cache, checked and decoded.
    pub(super) fn verified_data_block(
        &self,
        record: &IndexRecord,
        context: &mut ReadContext<'_>,
    ) -> Result<Vec<u8>> {
        let raw = self.load(record.handle, Layout::Data, record.codec, context)?;
        self.check_data(record, raw)
    }

    /// A data block of which the stored bytes are here.
    fn decode_data(
        &self,
        record: &IndexRecord,
        stored: &[u8],
        context: &mut ReadContext<'_>,
    ) -> Result<Vec<u8>> {
        let block = self.check(record.handle, Layout::Data, stored, context)?;
        let raw = self.decode(record.handle, block, context)?;
        self.check_data(record, raw)
    }

    fn check_data(&self, record: &IndexRecord, mut raw: Vec<u8>) -> Result<Vec<u8>> {
        match check_data_block(&raw, record).and_then(|()| self.number_entries(&mut raw)) {
            Ok(()) => Ok(raw),
            Err(error) => Err(error.at(self.file.path(), record.handle.offset)),
        }
    }

    /// Gives the entries of a decoded block the sequence number that the table was assigned.
    pub(super) fn number_entries(&self, raw: &mut [u8]) -> Result<()> {
        match self.assigned_sequence() {
            Some(sequence) => assign_sequence(raw, sequence),
            None => Ok(()),
        }
    }

    /// Reads, checks and decodes a block. `codec` says how it is expected to be stored: one that
    /// is stored raw is read where others are decoded to.
    pub(super) fn load(
        &self,
        handle: BlockHandle,
        layout: Layout,
        codec: CodecId,
        context: &mut ReadContext<'_>,
    ) -> Result<Vec<u8>> {
        self.within(handle, handle.check_size(layout))?;
        let size = handle.stored_size as usize;
        if codec == CodecId::None || size > SCRATCH_SIZE_MAX {
            let mut stored = RAW.take();
            make_length(&mut stored, size);
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
        let mut booked = count;
        if planted!(ReadsNotBooked) {
            booked = 0;
        }
        if let Some(meter) = &mut context.meter {
            meter.read(booked);
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
        let mut buffer = RAW.take();
        buffer.clear();
        let raw = decode(&self.pool, &self.dictionaries, block, buffer)
            .map_err(|error| error.at(self.file.path(), handle.offset))?;
        if let (Some(started), Some(meter)) = (started, &mut context.meter) {
            let ticks = context.clock.ticks().wrapping_sub(started);
            book_decompression(meter, block.codec, raw.len(), ticks);
        }
        Ok(raw)
    }
}

/// The `missing` ones cut into stretches that lie in the file without gaps.
fn runs(records: &[IndexRecord], missing: &[usize]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for place in missing.iter().copied() {
        if let Some(last) = runs.last_mut()
            && last.end == place
            && records[place - 1].handle.end() == Some(records[place].handle.offset)
            && span(records, &(last.start..place + 1)).end - records[last.start].handle.offset
                <= RUN_SIZE_MAX
        {
            last.end += 1;
        } else {
            runs.push(place..place + 1);
        }
    }
    runs
}

/// Where the stored bytes of a run lie.
fn span(records: &[IndexRecord], run: &Range<usize>) -> Range<u64> {
    let (first, last) = (records[run.start].handle, records[run.end - 1].handle);
    first.offset..last.end().unwrap_or(first.offset)
}

/// Books one call of a decoder.
pub(super) fn book_decompression(
    meter: &mut WorkMeter,
    codec: CodecId,
    raw_size: usize,
    ticks: u64,
) {
    meter.ticks[Part::Decompress as usize] += ticks;
    let codecs = meter.codecs();
    codecs.decompress_ticks[codec as usize] += ticks;
    codecs.decompressed_raw_bytes[codec as usize] += raw_size as u64;
}

/// Decodes a block into `raw`, which is empty.
pub(super) fn decode(
    pool: &Arc<ContextPool>,
    dictionaries: &TableDictionaries,
    block: block::CheckedBlock<'_>,
    mut raw: Vec<u8>,
) -> Result<Vec<u8>> {
    if block.codec == CodecId::None {
        raw.extend_from_slice(block.payload);
        return Ok(raw);
    }
    decode_by(&mut pool.decompressor(), dictionaries, &block, &mut raw)?;
    Ok(raw)
}

/// Appends the decoded block to `raw`.
#[inline]
pub(super) fn decode_by(
    decompressor: &mut Decompressor,
    dictionaries: &TableDictionaries,
    block: &block::CheckedBlock<'_>,
    raw: &mut Vec<u8>,
) -> Result<()> {
    let block::CheckedBlock { payload, codec, dictionary, raw_size, .. } = *block;
    if dictionary == 0 {
        return decompressor.decompress_into(codec, payload, raw_size, raw);
    }
    let dictionary = dictionaries.find(dictionary)?;
    decompressor.decompress_with(codec, dictionary, payload, raw_size, raw)
}

/// Checks a decoded data block against what the index says of it.
pub(super) fn check_data_block(raw: &[u8], record: &IndexRecord) -> Result<()> {
    let entry_count = DataBlockLayout::parse(raw)?.entry_count;
    if raw.len() != record.raw_size as usize || entry_count != record.entry_count {
        return Err(Error::corruption("index and data block differ").expected(
            format_args!("{} bytes, {} entries", record.raw_size, record.entry_count),
            format_args!("{} bytes, {entry_count} entries", raw.len()),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn large_buffer() -> Vec<u8> {
        let mut raw = Vec::with_capacity(256 << 10);
        raw.resize(8 << 10, 7);
        raw
    }

    #[test]
    fn a_block_that_is_kept_keeps_little_memory_of_a_larger_one() {
        let kept = handed_out(large_buffer()).try_into_mut().unwrap();
        assert!(kept.capacity() < 16 << 10, "{} bytes", kept.capacity());
        let mut fitting = Vec::with_capacity(9 << 10);
        fitting.resize(8 << 10, 7);
        let kept = handed_out(fitting).try_into_mut().unwrap();
        assert_eq!(kept.capacity(), 9 << 10, "no copy for little");
    }

    #[test]
    fn a_block_that_was_passed_by_leaves_its_memory_to_the_next() {
        RAW.take();
        let raw = trimmed(large_buffer());
        let (start, capacity) = (raw.as_ptr(), raw.capacity());
        let passed = Bytes::from_owner(PassedBlock { raw, _charge: None });
        let part = passed.slice(100..200);
        drop(passed);
        assert_eq!(part, [7; 100][..]);
        assert_eq!(RAW.take().capacity(), 0, "somebody reads it");
        drop(part);
        let next = RAW.take();
        assert_eq!((next.as_ptr(), next.capacity()), (start, capacity));
        // One that a thread reads last as it ends just goes.
        let passed = Bytes::from_owner(PassedBlock { raw: next, _charge: None });
        std::thread::spawn(move || {
            thread_local!(static LAST: RefCell<Option<Bytes>> = const { RefCell::new(None) });
            LAST.set(Some(passed));
            RAW.set(vec![1]);
        })
        .join()
        .unwrap();
    }
}
