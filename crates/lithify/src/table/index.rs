//! The flat index: one record per data block, searched in place by separator.
//!
//! ```text
//! block_count u32 | separators_size u32 | first_keys_size u32 | common_size u32
//! search word (8)* | record (52)* | separators | first keys
//! ```
//!
//! A search word is what a separator has in the eight bytes behind those that all of them begin
//! with. Words lie side by side, so that a search touches a few cache lines of them and then, as
//! a rule, one separator or none.

use super::block::{BlockHandle, TRAILER_SIZE};
use crate::base::{Trailer, common_prefix, compare_internal, search_word};
use crate::codec::CodecId;
use crate::format::{put_u16, put_u32, put_u64, read_u32, read_u64};
use crate::{Error, Result};
use std::cmp::Ordering;

const HEADER_SIZE: usize = 16;
const RECORD_SIZE: usize = 52;
const WORD_SIZE: usize = 8;
/// Where a record says where its separator ends.
const SEPARATOR_END: usize = 40;

/// All entries of the block are puts.
pub(crate) const FLAG_ALL_PUTS: u8 = 1;
/// All sequence numbers of the block are zero.
pub(crate) const FLAG_SEQUENCES_ZERO: u8 = 2;
/// Stored raw because the encoding did not shrink enough.
pub(crate) const FLAG_RAW_FALLBACK: u8 = 4;

/// What the index says of a data block, beside its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexRecord {
    pub(crate) handle: BlockHandle,
    pub(crate) raw_size: u32,
    pub(crate) entry_count: u32,
    pub(crate) largest_sequence: u64,
    pub(crate) codec: CodecId,
    pub(crate) flags: u8,
}

/// Collects the index of a table.
#[derive(Debug, Default)]
pub(super) struct IndexBuilder {
    records: Vec<u8>,
    separators: Vec<u8>,
    first_keys: Vec<u8>,
    block_count: u32,
}

impl IndexBuilder {
    pub(super) fn memory_bytes(&self) -> usize {
        self.records.capacity() + self.separators.capacity() + self.first_keys.capacity()
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
            self.separators.extend_from_slice(last.0);
            last.1
        } else {
            append_separator(&mut self.separators, last.0, next_first);
            Trailer(0)
        };
        self.add_record(record, first_key, separator_trailer);
    }

    /// Adds a block with a separator that is known to lie between it and the block behind.
    pub(super) fn add_separated(
        &mut self,
        record: &IndexRecord,
        first_key: &[u8],
        separator: &[u8],
    ) {
        self.separators.extend_from_slice(separator);
        self.add_record(record, first_key, Trailer(0));
    }

    /// Adds what is said of a block beside its separator, which stands already.
    fn add_record(&mut self, record: &IndexRecord, first_key: &[u8], separator_trailer: Trailer) {
        self.first_keys.extend_from_slice(first_key);
        let target = &mut self.records;
        put_u64(target, record.handle.offset);
        put_u32(target, record.handle.stored_size);
        put_u32(target, record.raw_size);
        put_u32(target, record.entry_count);
        put_u32(target, 0);
        put_u64(target, record.largest_sequence);
        put_u64(target, separator_trailer.0);
        put_u32(target, self.separators.len() as u32);
        put_u32(target, self.first_keys.len() as u32);
        target.extend_from_slice(&[record.codec as u8, record.flags]);
        put_u16(target, 0);
        self.block_count += 1;
    }

    /// Bytes of the index so far.
    pub(super) fn size(&self) -> usize {
        let words_size = self.block_count as usize * WORD_SIZE;
        let keys_size = self.separators.len() + self.first_keys.len();
        HEADER_SIZE + words_size + self.records.len() + keys_size
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut target = Vec::with_capacity(self.size());
        put_u32(&mut target, self.block_count);
        put_u32(&mut target, self.separators.len() as u32);
        put_u32(&mut target, self.first_keys.len() as u32);
        // Separators ascend: what the first and the last have in common, all have.
        let mut separators = self.separators();
        let first = separators.next().unwrap_or_default();
        let common = common_prefix(first, separators.last().unwrap_or(first));
        put_u32(&mut target, common as u32);
        for separator in self.separators() {
            put_u64(&mut target, search_word(&separator[common..]));
        }
        target.extend_from_slice(&self.records);
        target.extend_from_slice(&self.separators);
        target.extend_from_slice(&self.first_keys);
        target
    }

    fn separators(&self) -> impl Iterator<Item = &[u8]> {
        let (records, _) = self.records.as_chunks::<RECORD_SIZE>();
        let mut start = 0;
        records.iter().map(move |record| {
            let end = read_u32(record, SEPARATOR_END).unwrap_or(0) as usize;
            &self.separators[std::mem::replace(&mut start, end)..end]
        })
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

/// A parsed index.
#[derive(Clone, Copy, Debug)]
pub(super) struct IndexBlock<'a> {
    words: &'a [[u8; WORD_SIZE]],
    /// Bytes that all separators begin with.
    common_size: usize,
    records: &'a [u8],
    separators: &'a [u8],
    first_keys: &'a [u8],
    /// Data blocks lie before this offset.
    limit: u64,
}

#[cold]
fn damaged(what: &'static str) -> Error {
    Error::corruption(what)
}

impl<'a> IndexBlock<'a> {
    /// Parses an index whose data blocks lie before `limit`. Costs a few comparisons.
    #[inline]
    pub(super) fn parse(bytes: &'a [u8], limit: u64) -> Result<Self> {
        let Some((header, rest)) = bytes.split_first_chunk::<HEADER_SIZE>() else {
            return Err(damaged("index is smaller than its header"));
        };
        let size = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let (block_count, separators_size) = (u64::from(size(0)), u64::from(size(4)));
        let common_size = size(12) as usize;
        // Sums of products of numbers of 32 bits fit 64 bits.
        let words_size = block_count * WORD_SIZE as u64;
        let records_end = words_size + block_count * RECORD_SIZE as u64;
        let separators_end = records_end + separators_size;
        if separators_end + u64::from(size(8)) != rest.len() as u64 {
            return Err(damaged("sections of the index do not add up"));
        }
        let (rest, first_keys) = rest.split_at(separators_end as usize);
        let (rest, separators) = rest.split_at(records_end as usize);
        let (words, records) = rest.split_at(words_size as usize);
        let (words, _) = words.as_chunks();
        Ok(IndexBlock { words, common_size, records, separators, first_keys, limit })
    }

    pub(super) fn block_count(&self) -> usize {
        self.words.len()
    }

    #[inline]
    fn word(&self, block: usize, at: usize) -> Result<u32> {
        read_u32(self.records, block * RECORD_SIZE + at)
            .ok_or_else(|| damaged("record of the index"))
    }

    #[inline]
    fn piece(&self, block: usize, at: usize, bytes: &'a [u8]) -> Result<&'a [u8]> {
        let start = if block == 0 { 0 } else { self.word(block - 1, at)? };
        let end = self.word(block, at)?;
        bytes.get(start as usize..end as usize).ok_or_else(|| damaged("key of the index"))
    }

    /// The separator of a block: not smaller than its last entry.
    #[inline]
    pub(super) fn separator(&self, block: usize) -> Result<(&'a [u8], Trailer)> {
        let trailer = read_u64(self.records, block * RECORD_SIZE + 32)
            .ok_or_else(|| damaged("record of the index"))?;
        Ok((self.piece(block, SEPARATOR_END, self.separators)?, Trailer(trailer)))
    }

    /// The first user key of a block.
    pub(super) fn first_key(&self, block: usize) -> Result<&'a [u8]> {
        self.piece(block, 44, self.first_keys)
    }

    /// What the index says of a block.
    #[inline]
    pub(super) fn record(&self, block: usize) -> Result<IndexRecord> {
        let (records, _) = self.records.as_chunks::<RECORD_SIZE>();
        let Some(record) = records.get(block) else {
            return Err(damaged("record of the index"));
        };
        let word = |at: usize| {
            u32::from_le_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]])
        };
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let handle = BlockHandle { offset: long(0), stored_size: word(8) };
        let (raw_size, entry_count, dictionary) = (word(12), word(16), word(20));
        let largest_sequence = long(24);
        let (codec, flags) = (CodecId::from_u8(record[48]), record[49]);
        let in_place = handle.end().is_some_and(|end| end <= self.limit)
            && handle.stored_size as usize >= TRAILER_SIZE;
        match codec {
            Some(codec) if in_place && dictionary == 0 && record[50..] == [0, 0] => {
                Ok(IndexRecord { handle, raw_size, entry_count, largest_sequence, codec, flags })
            }
            _ => Err(damaged("record of the index")),
        }
    }

    /// The first block whose separator does not sort before the target: the only one that can
    /// hold it. The number of blocks if there is none.
    pub(super) fn find(&self, key: &[u8], trailer: Trailer) -> Result<usize> {
        let (mut low, mut high) = self.find_word(key)?;
        while low < high {
            let middle = low + (high - low) / 2;
            let separator = self.separator(middle)?;
            if compare_internal(separator, (key, trailer)) == Ordering::Less {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }
}

impl IndexBlock<'_> {
    /// The blocks whose separators the search words alone cannot order against `key`: those
    /// before sort before it, those behind do not.
    fn find_word(&self, key: &[u8]) -> Result<(usize, usize)> {
        let block_count = self.block_count();
        if block_count == 0 {
            return Ok((0, 0));
        }
        let Some(common) = self.separator(0)?.0.get(..self.common_size) else {
            return Err(damaged("common bytes of the index"));
        };
        let start = &key[..key.len().min(self.common_size)];
        Ok(match start.cmp(common) {
            Ordering::Less => (0, 0),
            Ordering::Greater => (block_count, block_count),
            Ordering::Equal => {
                let wanted = search_word(&key[self.common_size..]);
                let low = self.words.partition_point(|word| u64::from_le_bytes(*word) < wanted);
                let same = &self.words[low..];
                let count = same.partition_point(|word| u64::from_le_bytes(*word) == wanted);
                (low, low + count)
            }
        })
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
