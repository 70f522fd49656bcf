//! A data block, searched and walked in place.
//!
//! ```text
//! header 40 | values | key bytes | columns: shared, key size, value size, word | restarts
//! ```
//!
//! What an entry has beside its bytes are four numbers, each in a column of its own whose width
//! is the least that holds the block's largest: rows of one shape cost a byte each. Numbers are
//! found by an entry's index, bytes by walking from a restart.
//!
//! [`DataBlock::parse`] costs a few comparisons and validates where the sections lie; every entry
//! is bounds-checked when it is decoded. A search compares each byte of the wanted key once: it
//! carries along how much of the key matched the entry before, and an entry that shares more or
//! less than that with its predecessor is ordered without looking at its bytes.

use crate::base::{KEY_SIZE_MAX, SEQUENCE_MAX, SequenceNumber, Trailer, ValueKind};
use crate::format::{Decoder, read_u32};
use crate::{Error, Result};
use std::cmp::Ordering;
use std::ops::Range;

/// Bytes before the values.
pub(super) const HEADER_SIZE: usize = 40;
/// Bytes of a restart.
pub(super) const RESTART_SIZE: usize = 8;

/// Numbers of the entries, all of one width.
#[derive(Clone, Copy, Debug)]
struct Column {
    offset: u32,
    width: u32,
    /// Which bits of the eight bytes at a number are its own.
    mask: u64,
}

impl Column {
    fn new(offset: u32, width: u32) -> Self {
        let mask = if width == 0 { 0 } else { u64::MAX >> (64 - 8 * width) };
        Column { offset, width, mask }
    }

    /// The number of entry `index`; 0 in a column without width. Restarts of at least eight bytes
    /// follow the columns, so eight bytes can be read at the last number too.
    #[inline]
    fn get(&self, bytes: &[u8], index: u32) -> Result<u64> {
        let at = self.offset as usize + index as usize * self.width as usize;
        match bytes.get(at..).and_then(|rest| rest.first_chunk()) {
            Some(chunk) => Ok(u64::from_le_bytes(*chunk) & self.mask),
            None => Err(damaged("number of an entry lies outside its column")),
        }
    }
}

/// Where the sections of a block lie; proved to be inside it.
#[derive(Clone, Copy, Debug)]
pub(super) struct DataBlockLayout {
    pub(super) entry_count: u32,
    keys_offset: u32,
    /// Where the columns start and the key bytes end.
    keys_end: u32,
    restarts_offset: u32,
    restart_interval: u32,
    shared: Column,
    key_size: Column,
    value_size: Column,
    word: Column,
    key_size_base: u32,
    value_size_base: u32,
    sequence_base: u64,
}

/// A parsed block.
#[derive(Clone, Copy, Debug)]
pub(super) struct DataBlock<'a> {
    bytes: &'a [u8],
    layout: DataBlockLayout,
}

/// One decoded entry, without the bytes of its key.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    /// Its number in the block.
    index: u32,
    /// Where the key bytes of the next entry start.
    next_offset: u32,
    value_start: u32,
    value_size: u32,
}

impl Place {
    pub(super) fn value_range(&self) -> Range<usize> {
        self.value_start as usize..(self.value_start + self.value_size) as usize
    }
}

/// An entry as it is stored.
struct StoredEntry<'a> {
    shared: usize,
    unshared: &'a [u8],
    value_size: u32,
    end: u32,
}

#[cold]
fn damaged(what: &'static str) -> Error {
    Error::corruption(what)
}

/// The number of bytes that `a` and `b` begin with in common.
#[inline]
pub(super) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let size = a.len().min(b.len());
    let (mut a_words, mut b_words) = (a[..size].chunks_exact(8), b[..size].chunks_exact(8));
    let mut common = 0;
    for (a_word, b_word) in a_words.by_ref().zip(b_words.by_ref()) {
        let difference = word(a_word) ^ word(b_word);
        if difference != 0 {
            return common + (difference.trailing_zeros() / 8) as usize;
        }
        common += 8;
    }
    let rest = a_words.remainder().iter().zip(b_words.remainder());
    common + rest.take_while(|(a_byte, b_byte)| a_byte == b_byte).count()
}

#[inline]
fn word(chunk: &[u8]) -> u64 {
    let mut array = [0; 8];
    array.copy_from_slice(chunk);
    u64::from_le_bytes(array)
}

/// Where the header has the smallest sequence number of the block.
const SEQUENCE_BASE: Range<usize> = 32..40;

/// Lets the entries of a block count as at `sequence`: all of them are at 0 in the file, so the
/// base in the header is all there is to change.
pub(super) fn assign_sequence(bytes: &mut [u8], sequence: SequenceNumber) -> Result<()> {
    match bytes.get_mut(SEQUENCE_BASE) {
        Some(base) if base.iter().all(|byte| *byte == 0) => {
            base.copy_from_slice(&sequence.to_le_bytes());
            Ok(())
        }
        _ => Err(damaged("entries of an ingested table have sequence numbers of their own")),
    }
}

impl DataBlockLayout {
    fn parse(bytes: &[u8]) -> Result<Self> {
        let mut decoder = Decoder::new(bytes);
        let entry_count = decoder.u32()?;
        let (keys_offset, columns_offset) = (decoder.u32()?, decoder.u32()?);
        let restarts_offset = decoder.u32()?;
        let restart_interval = u32::from(decoder.u16()?);
        let widths = decoder.array::<4>()?.map(u32::from);
        let flags = decoder.u16()?;
        let (key_size_base, value_size_base) = (decoder.u32()?, decoder.u32()?);
        let sequence_base = decoder.u64()?;
        let fits = widths.iter().zip([2, 2, 4, 8]).all(|(width, most)| *width <= most);
        if entry_count == 0 || restart_interval == 0 || !fits || flags != 0 {
            return Err(damaged("header of a data block"));
        }
        if sequence_base > SEQUENCE_MAX || key_size_base as usize > KEY_SIZE_MAX {
            return Err(damaged("bases of a data block"));
        }
        let in_order = HEADER_SIZE as u32 <= keys_offset
            && keys_offset <= columns_offset
            && columns_offset <= restarts_offset;
        let columns_size = u64::from(entry_count) * u64::from(widths.iter().sum::<u32>());
        let restarts = u64::from(entry_count.div_ceil(restart_interval));
        let size = u64::from(restarts_offset) + restarts * RESTART_SIZE as u64;
        if !in_order
            || u64::from(columns_offset) + columns_size != u64::from(restarts_offset)
            || size != bytes.len() as u64
        {
            return Err(damaged("sections of a data block do not add up"));
        }
        // The columns end at `restarts_offset`, so these sums fit.
        let mut offset = columns_offset;
        let [shared, key_size, value_size, word] = widths.map(|width| {
            let column = Column::new(offset, width);
            offset += entry_count * width;
            column
        });
        Ok(DataBlockLayout {
            entry_count,
            keys_offset,
            keys_end: columns_offset,
            restarts_offset,
            restart_interval,
            shared,
            key_size,
            value_size,
            word,
            key_size_base,
            value_size_base,
            sequence_base,
        })
    }
}

impl<'a> DataBlock<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self> {
        Ok(DataBlock { bytes, layout: DataBlockLayout::parse(bytes)? })
    }

    /// The block that `layout` was parsed from, without parsing it again.
    pub(super) fn known(bytes: &'a [u8], layout: DataBlockLayout) -> Self {
        DataBlock { bytes, layout }
    }

    pub(super) fn layout(&self) -> DataBlockLayout {
        self.layout
    }

    /// The header by the names of its fields.
    pub(super) fn header_fields(&self) -> [(&'static str, u64); 12] {
        let layout = &self.layout;
        [
            ("entry_count", layout.entry_count.into()),
            ("keys_offset", layout.keys_offset.into()),
            ("columns_offset", layout.keys_end.into()),
            ("restarts_offset", layout.restarts_offset.into()),
            ("restart_interval", layout.restart_interval.into()),
            ("shared_width", layout.shared.width.into()),
            ("key_size_width", layout.key_size.width.into()),
            ("value_size_width", layout.value_size.width.into()),
            ("word_width", layout.word.width.into()),
            ("key_size_base", layout.key_size_base.into()),
            ("value_size_base", layout.value_size_base.into()),
            ("sequence_base", layout.sequence_base),
        ]
    }

    fn restart_count(&self) -> u32 {
        self.layout.entry_count.div_ceil(self.layout.restart_interval)
    }

    /// Where the key bytes and the value at a restart start.
    #[inline]
    fn restart(&self, restart: u32) -> Result<(u32, u32)> {
        let at = self.layout.restarts_offset as usize + restart as usize * RESTART_SIZE;
        match (read_u32(self.bytes, at), read_u32(self.bytes, at + 4)) {
            (Some(key), Some(value))
                if key >= self.layout.keys_offset && value >= HEADER_SIZE as u32 =>
            {
                Ok((key, value))
            }
            _ => Err(damaged("restart of a data block")),
        }
    }

    /// Entry `index`, whose key bytes start at `offset`.
    #[inline]
    fn entry(&self, index: u32, offset: u32) -> Result<StoredEntry<'a>> {
        let layout = &self.layout;
        let shared = layout.shared.get(self.bytes, index)? as usize;
        // Bases fit 32 bits and the columns' numbers too.
        let key_size = u64::from(layout.key_size_base) + layout.key_size.get(self.bytes, index)?;
        let value_size =
            u64::from(layout.value_size_base) + layout.value_size.get(self.bytes, index)?;
        if key_size > KEY_SIZE_MAX as u64 || value_size > u64::from(layout.keys_offset) {
            return Err(damaged("key or value is over its limit"));
        }
        let Some(unshared_size) = (key_size as usize).checked_sub(shared) else {
            return Err(damaged("entry shares more than it has"));
        };
        let end = offset as usize + unshared_size;
        if end > layout.keys_end as usize {
            return Err(damaged("key ends outside its section"));
        }
        let Some(unshared) = self.bytes.get(offset as usize..end) else {
            return Err(damaged("key ends outside its section"));
        };
        let (value_size, end) = (value_size as u32, end as u32);
        Ok(StoredEntry { shared, unshared, value_size, end })
    }

    /// The place of an entry whose value starts at `value_start`.
    #[inline]
    fn place(&self, index: u32, entry: &StoredEntry<'_>, value_start: u32) -> Result<Place> {
        // Neither is over `keys_offset`, and the sum of the two is checked in 64 bits.
        let value_end = u64::from(value_start) + u64::from(entry.value_size);
        if value_end > u64::from(self.layout.keys_offset) {
            return Err(damaged("value ends outside its section"));
        }
        Ok(Place { index, next_offset: entry.end, value_start, value_size: entry.value_size })
    }

    /// Sequence number and kind of entry `index`.
    #[inline]
    pub(super) fn trailer(&self, index: u32) -> Result<Trailer> {
        let layout = &self.layout;
        if layout.word.width == 0 {
            return Ok(Trailer::new(layout.sequence_base, ValueKind::Put));
        }
        let word = layout.word.get(self.bytes, index)?;
        let sequence = layout.sequence_base + (word >> 2);
        match ValueKind::from_u8((word & 3) as u8) {
            Some(kind) if kind != ValueKind::RangeDelete && sequence <= SEQUENCE_MAX => {
                Ok(Trailer::new(sequence, kind))
            }
            _ => Err(damaged("trailer word of an entry")),
        }
    }

    /// The last restart whose entry sorts before the target, or the first one.
    fn find_restart(&self, key: &[u8], trailer: Trailer) -> Result<u32> {
        let (mut low, mut high) = (0, self.restart_count());
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let index = middle * self.layout.restart_interval;
            let entry = self.entry(index, self.restart(middle)?.0)?;
            if entry.shared != 0 {
                return Err(damaged("entry at a restart shares bytes"));
            }
            let order = match entry.unshared.cmp(key) {
                Ordering::Equal => trailer.cmp(&self.trailer(index)?),
                order => order,
            };
            if order == Ordering::Less { low = middle } else { high = middle }
        }
        Ok(low)
    }

    /// The first entry that does not sort before the target, and whether it has the same user
    /// key; `None` if the whole block sorts before it. With `BUILD` its key is left in `built`.
    pub(super) fn seek<const BUILD: bool>(
        &self,
        key: &[u8],
        trailer: Trailer,
        built: &mut Vec<u8>,
    ) -> Result<Option<(Place, bool)>> {
        let interval = self.layout.restart_interval;
        let restart = self.find_restart(key, trailer)?;
        let mut index = restart * interval;
        let (mut offset, mut value_start) = self.restart(restart)?;
        let mut until_restart = 0;
        // Of the entry before: its size, and how much of it is how the wanted key begins.
        let (mut size, mut matched) = (0, 0);
        while index < self.layout.entry_count {
            let entry = self.entry(index, offset)?;
            if until_restart == 0 {
                (until_restart, size, matched) = (interval, 0, 0);
            }
            if entry.shared > size {
                return Err(damaged("entry shares more than its predecessor has"));
            }
            size = entry.shared + entry.unshared.len();
            if BUILD {
                built.truncate(entry.shared);
                built.extend_from_slice(entry.unshared);
            }
            let order = match entry.shared.cmp(&matched) {
                Ordering::Greater => Ordering::Less,
                Ordering::Less => Ordering::Greater,
                Ordering::Equal => {
                    let rest = &key[matched..];
                    let common = common_prefix(entry.unshared, rest);
                    matched += common;
                    entry.unshared[common..].first().cmp(&rest[common..].first())
                }
            };
            let is_target_or_behind = match order {
                Ordering::Less => false,
                Ordering::Greater => true,
                Ordering::Equal => self.trailer(index)? <= trailer,
            };
            let place = self.place(index, &entry, value_start)?;
            if is_target_or_behind {
                return Ok(Some((place, order == Ordering::Equal)));
            }
            (offset, value_start) = (place.next_offset, value_start + place.value_size);
            index += 1;
            until_restart -= 1;
        }
        Ok(None)
    }

    /// The entry at restart `restart`; its key replaces `built`.
    fn at_restart(&self, restart: u32, built: &mut Vec<u8>) -> Result<Place> {
        let (offset, value_start) = self.restart(restart)?;
        built.clear();
        self.decode(restart * self.layout.restart_interval, offset, value_start, built)
    }

    /// The first entry.
    pub(super) fn first(&self, built: &mut Vec<u8>) -> Result<Place> {
        self.at_restart(0, built)
    }

    /// The last entry.
    pub(super) fn last(&self, built: &mut Vec<u8>) -> Result<Place> {
        self.at(self.layout.entry_count - 1, built)
    }

    fn at(&self, index: u32, built: &mut Vec<u8>) -> Result<Place> {
        let mut place = self.at_restart(index / self.layout.restart_interval, built)?;
        while place.index < index {
            place = self.decode(
                place.index + 1,
                place.next_offset,
                place.value_start + place.value_size,
                built,
            )?;
        }
        Ok(place)
    }

    /// The entry behind `place`, whose key `built` holds.
    #[inline]
    pub(super) fn next(&self, place: &Place, built: &mut Vec<u8>) -> Result<Option<Place>> {
        if place.index + 1 >= self.layout.entry_count {
            return Ok(None);
        }
        let value_start = place.value_start + place.value_size;
        self.decode(place.index + 1, place.next_offset, value_start, built).map(Some)
    }

    /// The entry before `place`. Walks up to a restart interval of entries.
    pub(super) fn previous(&self, place: &Place, built: &mut Vec<u8>) -> Result<Option<Place>> {
        match place.index.checked_sub(1) {
            Some(index) => self.at(index, built).map(Some),
            None => Ok(None),
        }
    }

    #[inline]
    fn decode(
        &self,
        index: u32,
        offset: u32,
        value_start: u32,
        built: &mut Vec<u8>,
    ) -> Result<Place> {
        let entry = self.entry(index, offset)?;
        if entry.shared > built.len() {
            return Err(damaged("entry shares more than its predecessor has"));
        }
        built.truncate(entry.shared);
        built.extend_from_slice(entry.unshared);
        self.place(index, &entry, value_start)
    }
}

impl Place {
    /// The entry's number in its block.
    pub(super) fn index(&self) -> u32 {
        self.index
    }
}
