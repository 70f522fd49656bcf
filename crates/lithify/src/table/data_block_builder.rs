//! Collects the entries of one data block as columns and encodes them at the end.
//!
//! Values go straight to where they stay in the raw block, behind room for the header. Keys are
//! kept whole until the block is cut, so that the filter can hash them in one go and the next
//! key finds its predecessor without a copy of its own.

use super::data_block::{HEADER_SIZE, RESTART_SIZE, common_prefix, kind_number};
use crate::base::{SequenceNumber, Trailer, ValueKind};
use crate::format::put_u32;
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

/// The least and the largest of the numbers of a column.
#[derive(Clone, Copy, Debug)]
struct Span {
    least: u64,
    largest: u64,
}

impl Span {
    const EMPTY: Span = Span { least: u64::MAX, largest: 0 };

    /// True if the number was not within the span yet.
    #[inline]
    fn add(&mut self, number: u64) -> bool {
        let widens = number < self.least || number > self.largest;
        self.least = self.least.min(number);
        self.largest = self.largest.max(number);
        widens
    }

    /// The bytes that hold every number, counted from the least.
    fn width(self) -> usize {
        width(self.largest - self.least)
    }
}

/// The bytes that hold `number`; none for 0.
fn width(number: u64) -> usize {
    (64 - number.leading_zeros()).div_ceil(8) as usize
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
    /// Where the key bytes and the value at each restart start; filled when a block is encoded.
    restarts: Vec<(u32, u32)>,
    /// What keys and restarts will take.
    keys_and_restarts_size: usize,
    all_puts: bool,
    sequences: Span,
    key_sizes: Span,
    value_sizes: Span,
    /// What the numbers of an entry take; 0 without entries.
    numbers_size: usize,
}

/// The most room for values that is kept for the next block.
const RAW_KEPT_MAX: usize = 1 << 20;

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
            restarts: Vec::new(),
            keys_and_restarts_size: 0,
            all_puts: true,
            sequences: Span::EMPTY,
            key_sizes: Span::EMPTY,
            value_sizes: Span::EMPTY,
            numbers_size: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The size of the raw block, exact unless keys share more than 255 bytes.
    pub(super) fn raw_size(&self) -> usize {
        self.raw.len() + self.keys_and_restarts_size + self.entries.len() * self.numbers_size()
    }

    /// The size of the raw block with one more entry, unless that makes a column wider.
    #[inline]
    pub(super) fn raw_size_with(&self, relation: Relation, key: &[u8], value: &[u8]) -> usize {
        let entry_size = key.len() - relation.shared + value.len() + self.numbers_size();
        self.raw_size() + entry_size
    }

    /// What the numbers of an entry take: what is shared, key size, value size, word.
    #[inline]
    fn numbers_size(&self) -> usize {
        self.numbers_size
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
            self.keys_and_restarts_size += RESTART_SIZE + relation.shared;
        }
        self.keys_and_restarts_size += key.len() - relation.shared;
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
        let is_put = trailer.kind() == Some(ValueKind::Put);
        let widens = self.sequences.add(trailer.sequence())
            | self.key_sizes.add(key.len() as u64)
            | self.value_sizes.add(value.len() as u64)
            | (self.all_puts && !is_put);
        self.all_puts &= is_put;
        if widens {
            self.numbers_size =
                1 + self.key_sizes.width() + self.value_sizes.width() + self.word_width();
        }
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
            smallest_sequence: self.sequences.least,
            largest_sequence: self.sequences.largest,
        };
        let keys_offset = self.raw.len() as u32;
        let shared_max = self.encode_keys();
        let columns_offset = self.raw.len() as u32;
        let widths = self.encode_columns(shared_max);
        let restarts_offset = self.raw.len() as u32;
        for (key_offset, value_offset) in &self.restarts {
            put_u32(&mut self.raw, *key_offset);
            put_u32(&mut self.raw, *value_offset);
        }
        let header = &mut self.raw[..HEADER_SIZE];
        header[0..4].copy_from_slice(&facts.entry_count.to_le_bytes());
        header[4..8].copy_from_slice(&keys_offset.to_le_bytes());
        header[8..12].copy_from_slice(&columns_offset.to_le_bytes());
        header[12..16].copy_from_slice(&restarts_offset.to_le_bytes());
        header[16..18].copy_from_slice(&self.restart_interval.to_le_bytes());
        header[18..22].copy_from_slice(&widths);
        header[22..24].fill(0);
        header[24..28].copy_from_slice(&(self.key_sizes.least as u32).to_le_bytes());
        header[28..32].copy_from_slice(&(self.value_sizes.least as u32).to_le_bytes());
        header[32..40].copy_from_slice(&self.sequences.least.to_le_bytes());
        (&self.raw, facts)
    }

    /// Appends the key bytes and notes the restarts; returns the most bytes that a key shares.
    /// What the entries share is set to what is left out, none at a restart.
    fn encode_keys(&mut self) -> u64 {
        let interval = usize::from(self.restart_interval);
        self.restarts.clear();
        let (mut start, mut value_offset, mut shared_max) =
            (self.keys_start, HEADER_SIZE as u32, 0);
        for chunk in self.entries.chunks_mut(interval) {
            self.restarts.push((self.raw.len() as u32, value_offset));
            chunk[0].shared = 0;
            for entry in chunk {
                let end = entry.key_end as usize;
                let unshared = &self.keys[start + usize::from(entry.shared)..end];
                self.raw.extend_from_slice(unshared);
                shared_max = entry.shared.max(shared_max);
                value_offset += entry.value_size;
                start = end;
            }
        }
        u64::from(shared_max)
    }

    /// Appends the four columns in as few bytes per number as hold the largest.
    fn encode_columns(&mut self, shared_max: u64) -> [u8; 4] {
        let widths = [
            width(shared_max),
            self.key_sizes.width(),
            self.value_sizes.width(),
            self.word_width(),
        ];
        let raw = &mut self.raw;
        let entries = &self.entries;
        put_column(raw, widths[0], entries.iter().map(|entry| u64::from(entry.shared)));
        let (mut start, base) = (self.keys_start as u64, self.key_sizes.least);
        let key_sizes = entries.iter().map(|entry| {
            let end = u64::from(entry.key_end);
            end - std::mem::replace(&mut start, end) - base
        });
        put_column(raw, widths[1], key_sizes);
        let base = self.value_sizes.least;
        put_column(raw, widths[2], entries.iter().map(|entry| u64::from(entry.value_size) - base));
        let base = self.sequences.least;
        let word =
            |entry: &Pending| (entry.trailer.sequence() - base) << 2 | kind_number(entry.trailer);
        put_column(raw, widths[3], entries.iter().map(word));
        widths.map(|width| width as u8)
    }

    /// No width says that all are puts at the one sequence number.
    fn word_width(&self) -> usize {
        let sequences = self.sequences.largest - self.sequences.least;
        if self.all_puts && sequences == 0 { 0 } else { width(sequences << 2 | 3) }
    }

    /// Goes on behind a block that was made elsewhere and ends with this key. This one is empty.
    pub(super) fn follow(&mut self, last_key: &[u8], last_trailer: Trailer) {
        self.keys.clear();
        self.keys.extend_from_slice(last_key);
        (self.keys_start, self.last_key_start) = (last_key.len(), 0);
        self.last_trailer = Some(last_trailer);
    }

    /// Makes room for the next block; the last key stays.
    pub(super) fn clear(&mut self) {
        self.raw.truncate(HEADER_SIZE);
        self.raw.shrink_to(RAW_KEPT_MAX);
        let last_key_size = self.keys.len() - self.last_key_start;
        self.keys.copy_within(self.last_key_start.., 0);
        self.keys.truncate(last_key_size);
        (self.keys_start, self.last_key_start) = (last_key_size, 0);
        self.entries.clear();
        self.keys_and_restarts_size = 0;
        self.all_puts = true;
        self.sequences = Span::EMPTY;
        self.key_sizes = Span::EMPTY;
        self.value_sizes = Span::EMPTY;
        self.numbers_size = 0;
    }
}

/// Appends numbers in `width` bytes each.
#[inline]
fn put_column(target: &mut Vec<u8>, width: usize, numbers: impl Iterator<Item = u64>) {
    match width {
        0 => {}
        1 => target.extend(numbers.map(|number| number as u8)),
        2 => numbers.for_each(|number| {
            target.extend_from_slice(&(number as u16).to_le_bytes());
        }),
        _ => numbers.for_each(|number| {
            target.extend_from_slice(&number.to_le_bytes()[..width]);
        }),
    }
}
