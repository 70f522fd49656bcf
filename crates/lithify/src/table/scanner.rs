//! Streams a table, or a range of its keys, to a compaction.
//!
//! Reads whole blocks in chunks of up to 256 KiB, past the block cache, and asks for the next
//! chunk when it begins with one. Two chunk buffers and one block buffer are kept for the whole
//! scan: nothing is allocated per row or, once they have grown, per block. A block stored raw is
//! walked where it was read to.
//!
//! Of an index with two levels one partition is at hand. While the last chunk under it is walked,
//! the next partition is asked for.
//!
//! A poll does a bounded piece of work: it decodes at most one block and submits at most two
//! reads. It never waits; when a read is under way it returns the ticket.

use super::block::{self, BlockHandle, Layout};
use super::data_block::{DataBlock, DataBlockLayout, Place};
use super::index::{FLAG_ALL_PUTS, IndexBlock, IndexRecord};
use super::reader::{TableReader, book_decompression, check_data_block, decode_by};
use super::stored_block::StoredBlock;
use crate::base::{Clock, SEQUENCE_MAX, Trailer};
use crate::codec::{CodecId, PooledDecompressor, StoredFormat};
use crate::format::Checksum;
use crate::fs::{IoOutcome, IoRequest, Submission, Ticket};
use crate::stats::{Part, WorkMeter};
use crate::{Error, Result};
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;

/// Stored bytes that are read at once, unless one block is larger.
const CHUNK_SIZE: u64 = 256 << 10;

/// The answer to [`TableScanner::poll`].
pub enum ScanPoll {
    /// The scanner is at an entry.
    Ready,
    /// A read is under way; poll again when the ticket is complete.
    Waiting(Ticket),
    /// There are no more entries.
    End,
}

/// A read that was submitted.
struct Flight {
    offset: u64,
    size: usize,
    /// The blocks that it covers; none for a block of the index.
    blocks: Range<usize>,
    submission: Submission,
}

/// The index block at hand: the flat index, or a partition.
struct Leaf {
    bytes: Bytes,
    handle: BlockHandle,
}

/// Whole blocks as they are stored.
#[derive(Default)]
struct Chunk {
    bytes: Vec<u8>,
    offset: u64,
    blocks: Range<usize>,
}

/// Where the raw bytes of the block at hand are.
#[derive(Clone)]
enum Frame {
    Decoded,
    InChunk(Range<usize>),
}

/// See the module. Belongs to one thread at a time. After an error it is to be dropped.
pub struct TableScanner {
    table: Arc<TableReader>,
    start: Option<Box<[u8]>>,
    end: Option<Box<[u8]>>,
    decompressor: PooledDecompressor,
    /// The index block that the footer points at.
    root: Option<Bytes>,
    /// The next partition to fetch, to the end of the scan; none of a flat index.
    partitions: Range<usize>,
    leaf: Option<Leaf>,
    /// The next block of the leaf to decode, to the last that the scan needs of it.
    blocks: Range<usize>,
    chunk: Chunk,
    flight: Option<Flight>,
    /// A chunk buffer that is not in use.
    spare: Vec<u8>,
    decoded: Vec<u8>,
    frame: Frame,
    layout: Option<DataBlockLayout>,
    place: Place,
    key: Vec<u8>,
    trailer: Trailer,
    /// Whether the block at hand may hold keys from `end` on.
    checks_end: bool,
    /// Whether blocks are offered to be copied as they are stored.
    offers_blocks: bool,
    /// Whether the block at hand has puts only, all of them within the scan's end.
    is_copyable: bool,
    /// The checksum of the block at hand before its place goes into it.
    of_bytes: Checksum,
    /// The id of the dictionary that the block at hand is encoded with; 0: none.
    dictionary: u32,
    is_at_entry: bool,
}

impl TableScanner {
    pub(super) fn new(table: Arc<TableReader>, start: Option<&[u8]>, end: Option<&[u8]>) -> Self {
        TableScanner {
            decompressor: table.pool().decompressor(),
            table,
            start: start.map(Box::from),
            end: end.map(Box::from),
            root: None,
            partitions: 0..0,
            leaf: None,
            blocks: 0..0,
            chunk: Chunk::default(),
            flight: None,
            spare: Vec::new(),
            decoded: Vec::new(),
            frame: Frame::Decoded,
            layout: None,
            place: Place::default(),
            key: Vec::new(),
            trailer: Trailer(0),
            checks_end: false,
            offers_blocks: false,
            is_copyable: false,
            of_bytes: Checksum::new(),
            dictionary: 0,
            is_at_entry: false,
        }
    }

    /// Has the scanner offer blocks that may be copied as they are stored.
    pub(crate) fn offer_blocks(&mut self) {
        self.offers_blocks = true;
    }

    /// The format of the table's data blocks.
    pub(crate) fn stored_format(&self) -> StoredFormat {
        self.table.properties().stored_format()
    }

    /// Whether [`TableScanner::stored_block`] may have something to give: the entry at hand is
    /// the first of a block of puts that all belong to the scan.
    #[inline]
    pub(crate) fn offers_block(&self) -> bool {
        self.is_copyable && self.is_at_entry && self.place.index() == 0
    }

    /// The block at hand as it is stored, unless it is not offered or the block behind it goes on
    /// with its last key.
    pub(crate) fn stored_block(&self) -> Result<Option<StoredBlock<'_>>> {
        let (Some(leaf), Some(layout), true) = (&self.leaf, &self.layout, self.offers_block())
        else {
            return Ok(None);
        };
        let table = &self.table;
        let index = leaf.parse(table)?;
        let number = self.blocks.start - 1;
        let record = table.within(leaf.handle, index.record(number))?;
        let (separator, trailer) = table.within(leaf.handle, index.separator(number))?;
        let dictionary = match self.dictionary {
            0 => None,
            id => Some(table.within(record.handle, table.dictionaries.find(id))?),
        };
        let start = (record.handle.offset - self.chunk.offset) as usize;
        let stored = self.chunk.bytes.get(start..start + record.handle.stored_size as usize);
        Ok(stored.filter(|_| trailer == Trailer(0)).map(|stored| StoredBlock {
            stored,
            of_bytes: self.of_bytes,
            dictionary,
            data: DataBlock::new(self.frame_bytes(), layout),
            record,
            first_key: &self.key,
            separator,
            path: table.file().path(),
        }))
    }

    /// Leaves the block at hand: poll for the next one.
    pub(crate) fn skip_block(&mut self) {
        self.is_at_entry = false;
    }

    /// Gets to an entry: the one at hand, or the first of the next block. To be called first, and
    /// whenever [`TableScanner::advance`] returned false.
    pub fn poll(&mut self, meter: &mut WorkMeter, clock: &dyn Clock) -> Result<ScanPoll> {
        loop {
            if self.is_at_entry {
                return Ok(ScanPoll::Ready);
            }
            let polled = match self.leaf.take() {
                Some(leaf) if !self.blocks.is_empty() => {
                    let polled = self.next_block(&leaf, meter, clock);
                    self.leaf = Some(leaf);
                    polled?
                }
                _ => self.next_leaf(meter, clock)?,
            };
            if let Some(polled) = polled {
                return Ok(polled);
            }
        }
    }

    /// Bytes of its buffers: stored blocks at hand and asked for, and the block decoded.
    pub fn memory_bytes(&self) -> usize {
        let in_flight = self.flight.as_ref().map_or(0, |flight| flight.size);
        self.chunk.bytes.capacity() + self.spare.capacity() + self.decoded.capacity() + in_flight
    }

    /// The user key of the entry; meaningful after `Ready` and after `advance` returned true.
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
        self.frame_bytes().get(self.place.value_range()).unwrap_or_default()
    }

    /// Moves to the next entry of the block; false at its end: poll again.
    #[inline]
    pub fn advance(&mut self) -> Result<bool> {
        let result = self.step();
        result.map_err(|error| error.in_file(self.table.file().path()))
    }

    #[inline]
    fn step(&mut self) -> Result<bool> {
        if !self.is_at_entry {
            return Ok(false);
        }
        self.is_at_entry = false;
        let place = self.place;
        let next = match self.data() {
            Some((data, built)) => data.next(&place, built)?,
            None => None,
        };
        match next {
            Some(place) => self.arrive(place),
            None => Ok(false),
        }
    }

    /// Takes `place`, unless it lies behind the end of the scan.
    #[inline]
    fn arrive(&mut self, place: Place) -> Result<bool> {
        if self.checks_end && self.end.as_deref().is_some_and(|end| &self.key[..] >= end) {
            self.blocks.start = self.blocks.end;
            return Ok(false);
        }
        self.trailer = match self.data() {
            Some((data, _)) => data.trailer(place.index())?,
            None => Trailer(0),
        };
        self.place = place;
        self.is_at_entry = true;
        Ok(true)
    }

    #[inline]
    fn frame_bytes(&self) -> &[u8] {
        match &self.frame {
            Frame::Decoded => &self.decoded,
            Frame::InChunk(range) => &self.chunk.bytes[range.clone()],
        }
    }

    #[inline]
    fn data(&mut self) -> Option<(DataBlock<'_>, &mut Vec<u8>)> {
        let layout = self.layout.as_ref()?;
        let bytes = match &self.frame {
            Frame::Decoded => &self.decoded[..],
            Frame::InChunk(range) => &self.chunk.bytes[range.clone()],
        };
        Some((DataBlock::new(bytes, layout), &mut self.key))
    }

    /// Decodes the next block of the leaf; `None` if that is done.
    fn next_block(
        &mut self,
        leaf: &Leaf,
        meter: &mut WorkMeter,
        clock: &dyn Clock,
    ) -> Result<Option<ScanPoll>> {
        let table = Arc::clone(&self.table);
        let index = leaf.parse(&table)?;
        if !self.chunk.blocks.contains(&self.blocks.start)
            && let Some(ticket) = self.fetch_chunk((&index, leaf.handle), meter, clock)?
        {
            return Ok(Some(ScanPoll::Waiting(ticket)));
        }
        let record = table.within(leaf.handle, index.record(self.blocks.start))?;
        self.load(&record, meter, clock)
            .map_err(|error| error.at(table.file().path(), record.handle.offset))?;
        Ok(None)
    }

    /// Makes the next index block the one at hand; `None` if that is done.
    fn next_leaf(&mut self, meter: &mut WorkMeter, clock: &dyn Clock) -> Result<Option<ScanPoll>> {
        let table = Arc::clone(&self.table);
        let Some(root) = self.root.clone() else {
            let (handle, layout) = (table.footer().index, table.footer().index_layout());
            let fetched = self.fetch_index(table.resident_index(), handle, layout, meter, clock)?;
            return self.take_root(fetched);
        };
        if self.partitions.is_empty() {
            return Ok(Some(ScanPoll::End));
        }
        let record = table.in_index(table.parse_index(&root)?.record(self.partitions.start))?;
        let resident = table.resident_partition(self.partitions.start, &record);
        let (handle, layout) = (record.handle, Layout::IndexPartition);
        let bytes = match self.fetch_index(resident, handle, layout, meter, clock)? {
            Fetched::Bytes(bytes) => bytes,
            Fetched::Pending(ticket) => return Ok(Some(ScanPoll::Waiting(ticket))),
        };
        let index = table.parse_partition(&bytes, &record)?;
        self.blocks = table.within(handle, self.scanned_blocks(&index))?;
        self.partitions.start += 1;
        self.leaf = Some(Leaf { bytes, handle });
        // Its numbers are those of another leaf.
        self.chunk.blocks = 0..0;
        Ok(None)
    }

    /// Takes the index block that the footer points at, and sets out what the scan needs.
    fn take_root(&mut self, fetched: Fetched) -> Result<Option<ScanPoll>> {
        let bytes = match fetched {
            Fetched::Bytes(bytes) => bytes,
            Fetched::Pending(ticket) => return Ok(Some(ScanPoll::Waiting(ticket))),
        };
        let table = &self.table;
        let scanned = table.in_index(self.scanned_blocks(&table.parse_index(&bytes)?))?;
        if table.has_partitions() {
            self.partitions = scanned;
        } else {
            self.blocks = scanned;
            self.leaf = Some(Leaf { bytes: bytes.clone(), handle: table.footer().index });
        }
        self.root = Some(bytes);
        Ok(None)
    }

    /// An index block: the one that is resident, or what a read brings.
    fn fetch_index(
        &mut self,
        resident: Option<Bytes>,
        handle: BlockHandle,
        layout: Layout,
        meter: &mut WorkMeter,
        clock: &dyn Clock,
    ) -> Result<Fetched> {
        if self.flight.is_none() {
            if let Some(bytes) = resident {
                return Ok(Fetched::Bytes(bytes));
            }
            self.submit_index(handle, layout, meter, clock)?;
        }
        let Some(flight) = self.flight.take() else {
            return Ok(Fetched::Bytes(Bytes::new()));
        };
        match self.land(flight)? {
            Landing::Pending(ticket) => Ok(Fetched::Pending(ticket)),
            Landing::Landed(_, stored) => {
                let raw = self.decode_index(&stored, handle, layout, meter, clock)?;
                self.spare = stored;
                Ok(Fetched::Bytes(Bytes::from(raw)))
            }
        }
    }

    fn decode_index(
        &mut self,
        stored: &[u8],
        handle: BlockHandle,
        layout: Layout,
        meter: &mut WorkMeter,
        clock: &dyn Clock,
    ) -> Result<Vec<u8>> {
        let table = Arc::clone(&self.table);
        let place = (&table.table_id(), handle.offset);
        let mut raw = Vec::new();
        let decoded = meter
            .time(clock, Part::Checksum, || block::open(stored, layout, place))
            .and_then(|block| self.decode(&block, &mut raw, meter, clock));
        table.within(handle, decoded)?;
        Ok(raw)
    }

    /// The records of blocks that may hold keys of the scan.
    fn scanned_blocks(&self, index: &IndexBlock<'_>) -> Result<Range<usize>> {
        let newest = Trailer::seek(SEQUENCE_MAX);
        let start = match &self.start {
            Some(key) => index.find(key, newest)?,
            None => 0,
        };
        let end = match &self.end {
            Some(key) => (index.find(key, newest)? + 1).min(index.block_count()),
            None => index.block_count(),
        };
        Ok(start..end.max(start))
    }

    /// Makes the chunk with the next block the one at hand and asks for the one behind it.
    fn fetch_chunk(
        &mut self,
        index: (&IndexBlock<'_>, BlockHandle),
        meter: &mut WorkMeter,
        clock: &dyn Clock,
    ) -> Result<Option<Ticket>> {
        if self.flight.is_none() {
            self.submit_chunk(index, self.blocks.start, meter, clock)?;
        }
        let Some(flight) = self.flight.take() else {
            return Ok(None);
        };
        match self.land(flight)? {
            Landing::Pending(ticket) => Ok(Some(ticket)),
            Landing::Landed(flight, bytes) => {
                // The frame may lie in the old chunk.
                (self.frame, self.layout) = (Frame::Decoded, None);
                let next = flight.blocks.end;
                let chunk = Chunk { bytes, offset: flight.offset, blocks: flight.blocks };
                self.spare = std::mem::replace(&mut self.chunk, chunk).bytes;
                if next < self.blocks.end {
                    self.submit_chunk(index, next, meter, clock)?;
                } else {
                    self.submit_partition(meter, clock)?;
                }
                Ok(None)
            }
        }
    }

    /// Asks for the next partition, if the scan needs one that is not resident.
    fn submit_partition(&mut self, meter: &mut WorkMeter, clock: &dyn Clock) -> Result<()> {
        let (Some(root), false) = (&self.root, self.partitions.is_empty()) else {
            return Ok(());
        };
        let table = &self.table;
        let record = table.in_index(table.parse_index(root)?.record(self.partitions.start))?;
        if table.resident_partition(self.partitions.start, &record).is_none() {
            self.submit_index(record.handle, Layout::IndexPartition, meter, clock)?;
        }
        Ok(())
    }

    fn submit_index(
        &mut self,
        handle: BlockHandle,
        layout: Layout,
        meter: &mut WorkMeter,
        clock: &dyn Clock,
    ) -> Result<()> {
        self.table.within(handle, handle.check_size(layout))?;
        self.submit(handle.offset, handle.stored_size as usize, 0..0, meter, clock);
        Ok(())
    }

    /// Asks for the blocks from `first` on that fit a chunk; one at least.
    fn submit_chunk(
        &mut self,
        (index, place): (&IndexBlock<'_>, BlockHandle),
        first: usize,
        meter: &mut WorkMeter,
        clock: &dyn Clock,
    ) -> Result<()> {
        let start = self.table.within(place, index.record(first))?.handle;
        let mut size = u64::from(start.stored_size);
        let mut last = first + 1;
        while last < self.blocks.end {
            let handle = self.table.within(place, index.record(last))?.handle;
            let longer = size + u64::from(handle.stored_size);
            if handle.offset != start.offset + size || longer > CHUNK_SIZE {
                break;
            }
            (size, last) = (longer, last + 1);
        }
        // Blocks lie inside the file, so this is bounded by its size; one block fits 32 bits.
        self.submit(start.offset, size as usize, first..last, meter, clock);
        Ok(())
    }

    fn submit(
        &mut self,
        offset: u64,
        size: usize,
        blocks: Range<usize>,
        meter: &mut WorkMeter,
        clock: &dyn Clock,
    ) {
        let mut buffer = std::mem::take(&mut self.spare);
        if buffer.capacity() < size {
            // Not doubled, as a vector grows by itself: chunks in the midst of a table are of about one
            // size. A merge of many small tables has exact ones.
            let is_whole = size > CHUNK_SIZE as usize / 2;
            buffer =
                Vec::with_capacity(if is_whole { size.max(CHUNK_SIZE as usize) } else { size });
        }
        buffer.resize(size, 0);
        let file = self.table.file();
        let request = IoRequest::Read { offset, buffer };
        let submission = meter.time(clock, Part::Io, || file.submit(request));
        match &submission {
            Submission::Done(outcome) if outcome.result.is_err() => {}
            Submission::Done(outcome) => meter.read(outcome.buffer.len()),
            Submission::Pending(_) => meter.read(size),
        }
        self.flight = Some(Flight { offset, size, blocks, submission });
    }

    /// The bytes of a read that has ended; one that has not goes on.
    fn land(&mut self, mut flight: Flight) -> Result<Landing> {
        let outcome = match flight.submission {
            Submission::Done(outcome) => outcome,
            Submission::Pending(ticket) => match ticket.take() {
                Some(outcome) => outcome,
                None => {
                    flight.submission = Submission::Pending(ticket.clone());
                    self.flight = Some(flight);
                    return Ok(Landing::Pending(ticket));
                }
            },
        };
        let IoOutcome { buffer, result } = outcome;
        result?;
        if buffer.len() != flight.size {
            return Err(Error::corruption("table ends early")
                .at(self.table.file().path(), flight.offset)
                .expected(flight.size, buffer.len()));
        }
        let landed = Landed { offset: flight.offset, blocks: flight.blocks };
        Ok(Landing::Landed(landed, buffer))
    }

    /// Checks and decodes the next block, and goes to its first entry in the range, if any.
    fn load(
        &mut self,
        record: &IndexRecord,
        meter: &mut WorkMeter,
        clock: &dyn Clock,
    ) -> Result<()> {
        let handle = record.handle;
        let start = (handle.offset - self.chunk.offset) as usize;
        let chunk = std::mem::take(&mut self.chunk.bytes);
        let loaded = self.load_from(&chunk, start, record, meter, clock);
        self.chunk.bytes = chunk;
        self.frame = loaded?;
        check_data_block(self.frame_bytes(), record)?;
        let frame = match &self.frame {
            Frame::Decoded => &mut self.decoded[..],
            Frame::InChunk(range) => &mut self.chunk.bytes[range.clone()],
        };
        self.table.number_entries(frame)?;
        self.layout = Some(DataBlockLayout::parse(self.frame_bytes())?);
        self.blocks.start += 1;
        self.checks_end =
            self.end.is_some() && self.blocks.is_empty() && self.partitions.is_empty();
        // Entries whose sequence number is not in the file would lose it by a copy.
        self.is_copyable = self.offers_blocks
            && record.flags & FLAG_ALL_PUTS != 0
            && !self.checks_end
            && self.table.assigned_sequence().is_none();
        self.place_first()
    }

    fn load_from(
        &mut self,
        chunk: &[u8],
        start: usize,
        record: &IndexRecord,
        meter: &mut WorkMeter,
        clock: &dyn Clock,
    ) -> Result<Frame> {
        let Some(stored) = chunk.get(start..start + record.handle.stored_size as usize) else {
            return Err(Error::corruption("data block lies outside what was read"));
        };
        let place = (&self.table.table_id(), record.handle.offset);
        let block =
            meter.time(clock, Part::Checksum, || block::open(stored, Layout::Data, place))?;
        self.of_bytes = block.of_bytes;
        self.dictionary = block.dictionary;
        if block.codec == CodecId::None {
            return Ok(Frame::InChunk(start..start + block.payload.len()));
        }
        let mut decoded = std::mem::take(&mut self.decoded);
        decoded.clear();
        let result = self.decode(&block, &mut decoded, meter, clock);
        self.decoded = decoded;
        result?;
        Ok(Frame::Decoded)
    }

    fn decode(
        &mut self,
        block: &block::CheckedBlock<'_>,
        raw: &mut Vec<u8>,
        meter: &mut WorkMeter,
        clock: &dyn Clock,
    ) -> Result<()> {
        let started = clock.ticks();
        decode_by(&mut self.decompressor, &self.table.dictionaries, block, raw)?;
        if block.codec != CodecId::None {
            let ticks = clock.ticks().wrapping_sub(started);
            book_decompression(meter, block.codec, raw.len(), ticks);
        }
        Ok(())
    }

    /// Goes to the block's first entry that is not before the start of the scan.
    fn place_first(&mut self) -> Result<()> {
        // Only the first block can hold keys before the start.
        let start = self.start.take();
        let Some((data, built)) = self.data() else {
            return Ok(());
        };
        let newest = Trailer::seek(SEQUENCE_MAX);
        let place = match &start {
            Some(key) => data.seek::<true>(key, newest, built)?.map(|(place, _)| place),
            None => Some(data.first(built)?),
        };
        if let Some(place) = place {
            self.arrive(place)?;
        }
        Ok(())
    }
}

impl Leaf {
    fn parse(&self, table: &TableReader) -> Result<IndexBlock<'_>> {
        let parsed = IndexBlock::parse(&self.bytes, table.footer().index.offset);
        table.within(self.handle, parsed)
    }
}

enum Fetched {
    Bytes(Bytes),
    Pending(Ticket),
}

/// A read that has ended.
struct Landed {
    offset: u64,
    blocks: Range<usize>,
}

enum Landing {
    Pending(Ticket),
    Landed(Landed, Vec<u8>),
}
