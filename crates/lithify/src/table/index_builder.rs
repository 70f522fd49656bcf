//! Makes the index of a table, in one block or in two levels.
//!
//! 1. Records of data blocks gather until they are too large for one block.
//! 2. From then on they are cut into partitions of about the size of a data block. What a
//!    partition is stored as waits here for the end of the table; of its records only the last
//!    separator stays, for the top index.
//! 3. At the end the caller writes the flat index, or the partitions and the top index.
//!
//! Partitions wait in memory instead of lying between the data blocks, so that data blocks follow
//! each other without gaps, whoever reads ahead of them.

use super::block::{BlockHandle, TRAILER_SIZE};
use super::index::{
    FIRST_KEY_END, HEADER_SIZE, IndexRecord, LARGEST_SEQUENCE, RECORD_SIZE, SEPARATOR_END,
    SEPARATOR_TRAILER, WORD_SIZE,
};
use crate::Result;
use crate::base::{Trailer, common_prefix, search_word};
use crate::codec::CodecId;
use crate::format::{put_u16, put_u32, put_u64, read_u32, read_u64};
use std::ops::Range;

/// An index larger than this is cut. The first get in a table reads all of a flat index, which at
/// this size takes about as long as two blocks more; each get through two levels costs some 250
/// instructions more, a tenth, and tables of the usual size should not pay that.
const FLAT_SIZE_MAX: usize = 256 << 10;

/// Where partitions are cut: a data block of the usual size, so that a partition costs a read and
/// the cache what a data block does.
const PARTITION_SIZE: usize = 16 << 10;

/// Collects the index of a table.
#[derive(Debug)]
pub(super) struct IndexBuilder {
    /// Data blocks that are in no partition yet.
    tail: Records,
    partitions: Vec<Partition>,
    /// Their payloads as they are to be stored, one behind the other.
    payloads: Vec<u8>,
    /// Bytes of the top index over them.
    top_size: usize,
    flat_size_max: usize,
    partition_size: usize,
}

/// What the top index will say of a partition.
#[derive(Debug)]
struct Partition {
    /// Its offset counts from the first partition.
    record: IndexRecord,
    separator: Box<[u8]>,
    separator_trailer: Trailer,
}

/// Encodes a partition, appends the payload and says how it is encoded.
pub(super) type Store<'s> = dyn FnMut(&[u8], &mut Vec<u8>) -> Result<CodecId> + 's;

impl Default for IndexBuilder {
    fn default() -> Self {
        IndexBuilder {
            tail: Records::default(),
            partitions: Vec::new(),
            payloads: Vec::new(),
            top_size: HEADER_SIZE,
            flat_size_max: FLAT_SIZE_MAX,
            partition_size: PARTITION_SIZE,
        }
    }
}

impl IndexBuilder {
    /// Has the index be cut at other sizes, so that a test need not be large.
    #[cfg(any(test, feature = "internals"))]
    pub(super) fn cut_at(&mut self, flat_size_max: usize, partition_size: usize) {
        (self.flat_size_max, self.partition_size) = (flat_size_max, partition_size);
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let partition_bytes = self.partitions.capacity() * size_of::<Partition>();
        self.tail.memory_bytes() + partition_bytes + self.top_size + self.payloads.capacity()
    }

    /// Adds a block. `next_first` is the first key of the block behind it, if there is one.
    pub(super) fn add(
        &mut self,
        record: &IndexRecord,
        first_key: &[u8],
        last: (&[u8], Trailer),
        next_first: Option<&[u8]>,
    ) {
        let separator_trailer = if next_first == Some(last.0) {
            self.tail.separators.extend_from_slice(last.0);
            last.1
        } else {
            append_separator(&mut self.tail.separators, last.0, next_first);
            Trailer(0)
        };
        self.tail.add(record, first_key, separator_trailer);
    }

    /// Adds a block with a separator that is known to lie between it and the block behind.
    pub(super) fn add_separated(
        &mut self,
        record: &IndexRecord,
        first_key: &[u8],
        separator: &[u8],
    ) {
        self.tail.separators.extend_from_slice(separator);
        self.tail.add(record, first_key, Trailer(0));
    }

    /// Whether the index has two levels.
    pub(super) fn has_partitions(&self) -> bool {
        !self.partitions.is_empty()
    }

    /// Bytes of the index so far.
    pub(super) fn size(&self) -> usize {
        let trailers_size = self.partitions.len() * TRAILER_SIZE;
        self.payloads.len() + trailers_size + self.top_size + self.tail.size()
    }

    /// Bytes of the block that the footer will point at.
    pub(super) fn root_size(&self) -> usize {
        if self.has_partitions() { self.top_size } else { self.tail.size() }
    }

    /// Cuts the partitions that are full, if there is enough for two levels.
    pub(super) fn cut_full(&mut self, store: &mut Store<'_>) -> Result<()> {
        let size_max = if self.has_partitions() { self.partition_size } else { self.flat_size_max };
        if self.tail.size() <= size_max { Ok(()) } else { self.cut(true, store) }
    }

    /// Cuts what is left into partitions, if the index has two levels.
    pub(super) fn cut_rest(&mut self, store: &mut Store<'_>) -> Result<()> {
        if self.has_partitions() { self.cut(false, store) } else { Ok(()) }
    }

    /// Cuts the tail into partitions; with `only_full` without the last one, which may grow.
    fn cut(&mut self, only_full: bool, store: &mut Store<'_>) -> Result<()> {
        let mut raw = Vec::new();
        let mut start = 0;
        while start < self.tail.count {
            let blocks = start..self.tail.end_of_partition(start, self.partition_size);
            if only_full && blocks.end == self.tail.count {
                break;
            }
            raw.clear();
            self.tail.encode(blocks.clone(), &mut raw);
            let payload_start = self.payloads.len();
            let codec = store(&raw, &mut self.payloads)?;
            let stored_size = self.payloads.len() - payload_start + TRAILER_SIZE;
            let offset = payload_start + self.partitions.len() * TRAILER_SIZE;
            let record = IndexRecord {
                handle: BlockHandle { offset: offset as u64, stored_size: stored_size as u32 },
                raw_size: raw.len() as u32,
                entry_count: blocks.end - blocks.start,
                largest_sequence: self.tail.largest_sequence(blocks.clone()),
                codec,
                dictionary: 0,
                flags: 0,
            };
            let (separator, separator_trailer) = self.tail.separator(blocks.end - 1);
            self.top_size += WORD_SIZE + RECORD_SIZE + separator.len();
            let separator = Box::from(separator);
            self.partitions.push(Partition { record, separator, separator_trailer });
            start = blocks.end;
        }
        self.tail.remove_first(start);
        Ok(())
    }

    /// The payload of a flat index.
    pub(super) fn encode_flat(&self) -> Vec<u8> {
        self.tail.encoded()
    }

    /// The payload of the top index, if the first partition is written to `offset`.
    pub(super) fn encode_top(&self, offset: u64) -> Vec<u8> {
        let mut top = Records::default();
        for partition in &self.partitions {
            let mut record = partition.record;
            record.handle.offset += offset;
            top.separators.extend_from_slice(&partition.separator);
            top.add(&record, &[], partition.separator_trailer);
        }
        top.encoded()
    }

    /// The partitions: how they are stored, and their payloads.
    pub(super) fn partitions(&self) -> impl Iterator<Item = (&IndexRecord, &[u8])> {
        let mut start = 0;
        self.partitions.iter().map(move |Partition { record, .. }| {
            let end = start + record.handle.stored_size as usize - TRAILER_SIZE;
            (record, &self.payloads[std::mem::replace(&mut start, end)..end])
        })
    }
}

/// The records of one block of the index and their keys.
#[derive(Debug, Default)]
struct Records {
    records: Vec<u8>,
    separators: Vec<u8>,
    first_keys: Vec<u8>,
    count: u32,
}

impl Records {
    fn memory_bytes(&self) -> usize {
        self.records.capacity() + self.separators.capacity() + self.first_keys.capacity()
    }

    /// Removes the first ones.
    fn remove_first(&mut self, count: u32) {
        let removed = 0..count;
        let separators = self.keys(&removed, SEPARATOR_END);
        let first_keys = self.keys(&removed, FIRST_KEY_END);
        self.records.drain(..count as usize * RECORD_SIZE);
        lower_ends(&mut self.records, separators.end, first_keys.end);
        self.separators.drain(separators);
        self.first_keys.drain(first_keys);
        self.count -= count;
    }

    /// Adds what is said of a block beside its separator, which stands already.
    fn add(&mut self, record: &IndexRecord, first_key: &[u8], separator_trailer: Trailer) {
        self.first_keys.extend_from_slice(first_key);
        let target = &mut self.records;
        put_u64(target, record.handle.offset);
        put_u32(target, record.handle.stored_size);
        put_u32(target, record.raw_size);
        put_u32(target, record.entry_count);
        put_u32(target, record.dictionary);
        put_u64(target, record.largest_sequence);
        put_u64(target, separator_trailer.0);
        put_u32(target, self.separators.len() as u32);
        put_u32(target, self.first_keys.len() as u32);
        target.extend_from_slice(&[record.codec as u8, record.flags]);
        put_u16(target, 0);
        self.count += 1;
    }

    /// Bytes of all of them in one block.
    fn size(&self) -> usize {
        self.size_of(&(0..self.count))
    }

    fn size_of(&self, blocks: &Range<u32>) -> usize {
        let fixed_size = (blocks.end - blocks.start) as usize * (WORD_SIZE + RECORD_SIZE);
        let key_sizes = [SEPARATOR_END, FIRST_KEY_END].map(|at| {
            let keys = self.keys(blocks, at);
            keys.end - keys.start
        });
        HEADER_SIZE + fixed_size + key_sizes[0] + key_sizes[1]
    }

    /// Where a block ends that starts with record `start`: it has one record at least.
    fn end_of_partition(&self, start: u32, size_max: usize) -> u32 {
        let fits = |end: &u32| self.size_of(&(start..*end)) <= size_max;
        (start + 2..=self.count).take_while(fits).last().unwrap_or(start + 1)
    }

    /// A number in a record.
    fn word(&self, record: u32, at: usize) -> u32 {
        read_u32(&self.records, record as usize * RECORD_SIZE + at).unwrap_or(0)
    }

    /// Where the keys of some records lie in their section, which `at` says.
    fn keys(&self, records: &Range<u32>, at: usize) -> Range<usize> {
        let end_of = |end: u32| if end == 0 { 0 } else { self.word(end - 1, at) as usize };
        end_of(records.start)..end_of(records.end)
    }

    fn separator(&self, record: u32) -> (&[u8], Trailer) {
        let place = record as usize * RECORD_SIZE + SEPARATOR_TRAILER;
        let trailer = Trailer(read_u64(&self.records, place).unwrap_or(0));
        (&self.separators[self.keys(&(record..record + 1), SEPARATOR_END)], trailer)
    }

    fn largest_sequence(&self, records: Range<u32>) -> u64 {
        let places = records.map(|record| record as usize * RECORD_SIZE + LARGEST_SEQUENCE);
        places.filter_map(|place| read_u64(&self.records, place)).max().unwrap_or(0)
    }

    fn encoded(&self) -> Vec<u8> {
        let mut target = Vec::with_capacity(self.size());
        self.encode(0..self.count, &mut target);
        target
    }

    /// Appends a block of some of the records.
    fn encode(&self, range: Range<u32>, target: &mut Vec<u8>) {
        let separators = self.keys(&range, SEPARATOR_END);
        let first_keys = self.keys(&range, FIRST_KEY_END);
        put_u32(target, range.end - range.start);
        put_u32(target, (separators.end - separators.start) as u32);
        put_u32(target, (first_keys.end - first_keys.start) as u32);
        // Separators ascend: what the first and the last have in common, all have.
        let common = match range.is_empty() {
            true => 0,
            false => common_prefix(self.separator(range.start).0, self.separator(range.end - 1).0),
        };
        put_u32(target, common as u32);
        for record in range.clone() {
            put_u64(target, search_word(&self.separator(record).0[common..]));
        }
        let records_start = target.len();
        let bytes = range.start as usize * RECORD_SIZE..range.end as usize * RECORD_SIZE;
        target.extend_from_slice(&self.records[bytes]);
        lower_ends(&mut target[records_start..], separators.start, first_keys.start);
        target.extend_from_slice(&self.separators[separators]);
        target.extend_from_slice(&self.first_keys[first_keys]);
    }
}

/// Takes what was before the first of some records from where their keys end.
fn lower_ends(records: &mut [u8], separators: usize, first_keys: usize) {
    let (records, _) = records.as_chunks_mut::<RECORD_SIZE>();
    for record in records {
        for (at, by) in [(SEPARATOR_END, separators), (FIRST_KEY_END, first_keys)] {
            if let Some(bytes) = record[at..].first_chunk_mut::<4>() {
                *bytes = (u32::from_le_bytes(*bytes) - by as u32).to_le_bytes();
            }
        }
    }
}

/// Appends the shortest key that is not smaller than `last` and smaller than `next`.
fn append_separator(target: &mut Vec<u8>, last: &[u8], next: Option<&[u8]>) {
    let Some(next) = next else {
        target.extend_from_slice(last);
        return;
    };
    let shared = common_prefix(last, next);
    // The byte behind the common part can be raised if that stays below `next`: it does if the
    // two bytes differ by more than one, or if `next` goes on behind its own.
    match (last.get(shared), next.get(shared)) {
        (Some(low), Some(high))
            if last.len() > shared + 1 && (high - low > 1 || next.len() > shared + 1) =>
        {
            target.extend_from_slice(&last[..shared]);
            target.push(low + 1);
        }
        _ => target.extend_from_slice(last),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn separator(last: &[u8], next: &[u8]) -> Vec<u8> {
        let mut target = Vec::new();
        append_separator(&mut target, last, Some(next));
        target
    }

    #[test]
    fn separators_are_short_and_between() {
        assert_eq!(separator(b"granite", b"slate"), b"h");
        assert_eq!(separator(b"granite", b"gravel"), b"grao");
        assert_eq!(separator(b"ab", b"b"), b"ab");
        assert_eq!(separator(b"abc", b"b0"), b"b");
        assert_eq!(separator(b"ab", b"abc"), b"ab");
        assert_eq!(separator(b"", b"x"), b"");
        let keys: Vec<Vec<u8>> = (0..400_u32)
            .map(|i| {
                (i.wrapping_mul(2_654_435_761) % 65_536).to_be_bytes()[2 + (i % 2) as usize..]
                    .to_vec()
            })
            .collect();
        for a in &keys {
            for b in keys.iter().filter(|b| a < *b) {
                let middle = separator(a, b);
                assert!(*a <= middle && middle < *b && middle.len() <= a.len(), "{a:?} {b:?}");
            }
        }
    }
}
