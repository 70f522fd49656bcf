//! A block of the index: one record per block below it, searched in place by separator. The blocks
//! below are data blocks or, in the top block of a two-level index, index blocks.
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
use crate::base::{Trailer, compare_internal, search_word};
use crate::codec::CodecId;
use crate::format::{read_u32, read_u64};
use crate::{Error, Result};
use std::cmp::Ordering;

pub(super) const HEADER_SIZE: usize = 16;
pub(super) const RECORD_SIZE: usize = 52;
pub(super) const WORD_SIZE: usize = 8;

// Where the fields of a record are that others than `IndexBlock::record` read.
pub(super) const LARGEST_SEQUENCE: usize = 24;
pub(super) const SEPARATOR_TRAILER: usize = 32;
pub(super) const SEPARATOR_END: usize = 40;
pub(super) const FIRST_KEY_END: usize = 44;

/// All entries of the block are puts.
pub(crate) const FLAG_ALL_PUTS: u8 = 1;
/// All sequence numbers of the block are zero.
pub(crate) const FLAG_SEQUENCES_ZERO: u8 = 2;
/// Stored raw because the encoding did not shrink enough.
pub(crate) const FLAG_RAW_FALLBACK: u8 = 4;

/// What the index says of a block, beside its keys. Of an index block, the entries are records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexRecord {
    pub(crate) handle: BlockHandle,
    pub(crate) raw_size: u32,
    pub(crate) entry_count: u32,
    /// The id of its dictionary; 0: none.
    pub(crate) dictionary: u32,
    pub(crate) largest_sequence: u64,
    pub(crate) codec: CodecId,
    pub(crate) flags: u8,
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
        let trailer = read_u64(self.records, block * RECORD_SIZE + SEPARATOR_TRAILER)
            .ok_or_else(|| damaged("record of the index"))?;
        Ok((self.piece(block, SEPARATOR_END, self.separators)?, Trailer(trailer)))
    }

    /// The separator of the last block; an error if there is none.
    pub(super) fn last_separator(&self) -> Result<(&'a [u8], Trailer)> {
        let last = self.block_count().checked_sub(1);
        self.separator(last.ok_or_else(|| damaged("index is empty"))?)
    }

    /// The first user key of a block.
    pub(super) fn first_key(&self, block: usize) -> Result<&'a [u8]> {
        self.piece(block, FIRST_KEY_END, self.first_keys)
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
        let largest_sequence = long(LARGEST_SEQUENCE);
        let (codec, flags) = (CodecId::from_u8(record[48]), record[49]);
        let in_place = handle.end().is_some_and(|end| end <= self.limit)
            && handle.stored_size as usize >= TRAILER_SIZE;
        match codec {
            Some(codec) if in_place && record[50..] == [0, 0] => Ok(IndexRecord {
                handle,
                raw_size,
                entry_count,
                dictionary,
                largest_sequence,
                codec,
                flags,
            }),
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
                (low, low + same_words(&self.words[low..], wanted.to_le_bytes()))
            }
        })
    }
}

/// With how many words that are `wanted` some words begin, of which those stand first. They are
/// few, as a rule.
fn same_words(words: &[[u8; WORD_SIZE]], wanted: [u8; WORD_SIZE]) -> usize {
    let mut bound = 1;
    while words.get(bound - 1) == Some(&wanted) {
        bound *= 2;
    }
    // The first half of `bound` was seen to be the same.
    let known = bound / 2;
    let unknown = &words[known..bound.min(words.len())];
    known + unknown.partition_point(|word| *word == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_words_are_counted() {
        for same in 0..40 {
            for others in 0..3 {
                let words = [vec![[7; 8]; same], vec![[9; 8]; others]].concat();
                assert_eq!(same_words(&words, [7; 8]), same);
            }
        }
    }
}
