//! Collects the entries of one data block as columns and encodes them at the end.
//!
//! Values go straight to where they stay in the raw block, behind room for the header. Keys are
//! kept whole until the block is cut, so that the filter can hash them in one go and the next
//! key finds its predecessor without a copy of its own.

use super::data_block::{HEADER_SIZE, RESTART_SIZE, common_prefix};
use crate::base::{SEQUENCE_MAX, SequenceNumber, Trailer, ValueKind};
use crate::format::{put_u32, put_varint, varint_size};
use std::cmp::Ordering;

/// An entry of the block at hand, without its bytes.
#[derive(Clone, Copy, Debug)]
struct Pending {
    /// Where its key ends in `keys`.
    key_end: u32,
    value_size: u32,
    trailer: Trailer,
    /// Bytes in common with the key before, also the last one of the block before.
    shared: u16,
}

/// Appends the three lengths of a key entry.
#[inline]
fn put_lengths(target: &mut Vec<u8>, shared: usize, unshared: usize, value_size: u32) {
    if shared | unshared < 0x80 && value_size < 0x80 {
        target.extend_from_slice(&[shared as u8, unshared as u8, value_size as u8]);
    } else if shared | unshared < 0x80 && value_size < 0x4000 {
        let (low, high) = (value_size as u8 | 0x80, (value_size >> 7) as u8);
        target.extend_from_slice(&[shared as u8, unshared as u8, low, high]);
    } else {
        put_varint(target, shared as u64);
        put_varint(target, unshared as u64);
        put_varint(target, u64::from(value_size));
    }
}

/// What a table needs to know of a block that was encoded.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockFacts {
    pub(super) entry_count: u32,
    pub(super) all_puts: bool,
    pub(super) smallest_sequence: SequenceNumber,
    pub(super) largest_sequence: SequenceNumber,
}

/// How a new entry relates to the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Relation {
    pub(super) shared: usize,
    /// Whether internal order allows it here.
    pub(super) ascends: bool,
}

/// See the module.
#[derive(Debug)]
pub(super) struct DataBlockBuilder {
    restart_interval: u16,
    /// Header, values; the other sections are appended when the block is encoded.
    raw: Vec<u8>,
    /// The last key of the block before, then the whole keys of this block.
    keys: Vec<u8>,
    /// Where the keys of this block start.
    keys_start: usize,
    /// Where the last key starts.
    last_key_start: usize,
    last_trailer: Option<Trailer>,
    entries: Vec<Pending>,
    /// Upper bound of what keys, lengths, words and restarts will take.
    encoded_size: usize,
    all_puts: bool,
    smallest_sequence: SequenceNumber,
    largest_sequence: SequenceNumber,
}

impl DataBlockBuilder {
    pub(super) fn new(restart_interval: u16) -> Self {
        DataBlockBuilder {
            restart_interval: restart_interval.max(1),
            raw: vec![0; HEADER_SIZE],
            keys: Vec::new(),
            keys_start: 0,
            last_key_start: 0,
            last_trailer: None,
            entries: Vec::new(),
            encoded_size: 0,
            all_puts: true,
            smallest_sequence: SEQUENCE_MAX,
            largest_sequence: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The size of the raw block, a little over what it will be.
    pub(super) fn raw_size(&self) -> usize {
        self.raw.len() + self.encoded_size
    }

    /// What one more entry can add to the raw size: three lengths, a word, a restart.
    pub(super) fn entry_size(relation: Relation, key: &[u8], value: &[u8]) -> usize {
        key.len() - relation.shared + value.len() + 2 + varint_size(value.len() as u64) + 4
    }

    /// The last key that was added; of the block before if this one is empty.
    pub(super) fn last_key(&self) -> &[u8] {
        &self.keys[self.last_key_start..]
    }

    /// The last entry's trailer; `None` before the first entry of the table.
    pub(super) fn last_trailer(&self) -> Option<Trailer> {
        self.last_trailer
    }

    pub(super) fn first_key(&self) -> &[u8] {
        let end = self.entries.first().map_or(self.keys_start, |entry| entry.key_end as usize);
        &self.keys[self.keys_start..end]
    }

    /// Compares an entry with the last one.
    #[inline]
    pub(super) fn relation(&self, key: &[u8], trailer: Trailer) -> Relation {
        let Some(last_trailer) = self.last_trailer else {
            return Relation { shared: 0, ascends: true };
        };
        let last_key = self.last_key();
        let shared = common_prefix(last_key, key);
        let ascends = match last_key[shared..].first().cmp(&key[shared..].first()) {
            Ordering::Less => true,
            Ordering::Equal => trailer < last_trailer,
            Ordering::Greater => false,
        };
        Relation { shared, ascends }
    }

    /// Adds an entry that ascends; the limits on sizes have been checked.
    #[inline]
    pub(super) fn add(&mut self, relation: Relation, key: &[u8], trailer: Trailer, value: &[u8]) {
        if self.entries.len().is_multiple_of(usize::from(self.restart_interval)) {
            self.encoded_size += RESTART_SIZE + relation.shared;
        }
        self.encoded_size += Self::entry_size(relation, key, value) - value.len();
        self.last_key_start = self.keys.len();
        self.keys.extend_from_slice(key);
        self.raw.extend_from_slice(value);
        self.entries.push(Pending {
            key_end: self.keys.len() as u32,
            value_size: value.len() as u32,
            trailer,
            shared: relation.shared as u16,
        });
        self.last_trailer = Some(trailer);
        self.all_puts &= trailer.kind() == Some(ValueKind::Put);
        self.smallest_sequence = self.smallest_sequence.min(trailer.sequence());
        self.largest_sequence = self.largest_sequence.max(trailer.sequence());
    }

    /// The keys of the block with the bytes that each shares with the key before it.
    pub(super) fn keys(&self) -> impl Iterator<Item = (&[u8], usize)> {
        let mut start = self.keys_start;
        self.entries.iter().map(move |entry| {
            let end = entry.key_end as usize;
            let key = &self.keys[start..end];
            start = end;
            (key, usize::from(entry.shared))
        })
    }

    /// Encodes the block. [`DataBlockBuilder::clear`] is to follow.
    pub(super) fn encode(&mut self) -> (&[u8], BlockFacts) {
        let facts = BlockFacts {
            entry_count: self.entries.len() as u32,
            all_puts: self.all_puts,
            smallest_sequence: self.smallest_sequence,
            largest_sequence: self.largest_sequence,
        };
        let keys_offset = self.raw.len() as u32;
        let restarts = self.encode_keys();
        let words_offset = self.raw.len() as u32;
        let word_width = self.encode_words();
        let restarts_offset = self.raw.len() as u32;
        for (key_offset, value_offset) in restarts {
            put_u32(&mut self.raw, key_offset);
            put_u32(&mut self.raw, value_offset);
        }
        let header = &mut self.raw[..HEADER_SIZE];
        header[0..4].copy_from_slice(&facts.entry_count.to_le_bytes());
        header[4..8].copy_from_slice(&keys_offset.to_le_bytes());
        header[8..12].copy_from_slice(&words_offset.to_le_bytes());
        header[12..16].copy_from_slice(&restarts_offset.to_le_bytes());
        header[16..18].copy_from_slice(&self.restart_interval.to_le_bytes());
        header[18] = word_width;
        header[19] = 0;
        header[20..28].copy_from_slice(&self.smallest_sequence.to_le_bytes());
        (&self.raw, facts)
    }

    fn encode_keys(&mut self) -> Vec<(u32, u32)> {
        let interval = usize::from(self.restart_interval);
        let mut restarts = Vec::with_capacity(self.entries.len().div_ceil(interval));
        let mut start = self.keys_start;
        let mut value_offset = HEADER_SIZE as u32;
        for (index, entry) in self.entries.iter().enumerate() {
            let mut shared = usize::from(entry.shared);
            if index % interval == 0 {
                restarts.push((self.raw.len() as u32, value_offset));
                shared = 0;
            }
            let end = entry.key_end as usize;
            put_lengths(&mut self.raw, shared, end - start - shared, entry.value_size);
            self.raw.extend_from_slice(&self.keys[start + shared..end]);
            value_offset += entry.value_size;
            start = end;
        }
        restarts
    }

    /// Appends the trailer words in as few bytes each as hold the largest.
    fn encode_words(&mut self) -> u8 {
        let base = self.smallest_sequence;
        if self.all_puts && self.largest_sequence == base {
            return 0;
        }
        let largest_word = (self.largest_sequence - base) << 2 | 3;
        let width = (64 - largest_word.leading_zeros()).div_ceil(8) as usize;
        for entry in &self.entries {
            let word = (entry.trailer.sequence() - base) << 2 | (entry.trailer.0 & 3);
            self.raw.extend_from_slice(&word.to_le_bytes()[..width]);
        }
        width as u8
    }

    /// Makes room for the next block; the last key stays.
    pub(super) fn clear(&mut self) {
        self.raw.truncate(HEADER_SIZE);
        let last_key_size = self.keys.len() - self.last_key_start;
        self.keys.copy_within(self.last_key_start.., 0);
        self.keys.truncate(last_key_size);
        (self.keys_start, self.last_key_start) = (last_key_size, 0);
        self.entries.clear();
        self.encoded_size = 0;
        self.all_puts = true;
        (self.smallest_sequence, self.largest_sequence) = (SEQUENCE_MAX, 0);
    }
}
