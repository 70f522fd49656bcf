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
//! [`DataBlockLayout::parse`] costs a few comparisons and validates where the sections lie; every entry
//! is bounds-checked when it is decoded. A search compares each byte of the wanted key once: it
//! carries along how much of the key matched the entry before, and an entry that shares more or
//! less than that with its predecessor is ordered without looking at its bytes.

pub(super) use crate::base::common_prefix;
use crate::base::{KEY_SIZE_MAX, SEQUENCE_MAX, SequenceNumber, Trailer, ValueKind, compare_keys};
use crate::format::read_u32;
use crate::{Error, Result};
use std::cmp::Ordering;
use std::ops::Range;

/// Bytes before the values.
pub(super) const HEADER_SIZE: usize = 40;
/// Bytes of a restart.
pub(super) const RESTART_SIZE: usize = 8;

/// The kinds of entries by their number in a word.
const KINDS: [ValueKind; 4] =
    [ValueKind::Delete, ValueKind::Put, ValueKind::SingleDelete, ValueKind::Merge];

/// The number of a kind in a word, which has two bits for it: range deletes are in no block, so a merge
/// takes theirs.
#[inline]
pub(super) fn kind_number(trailer: Trailer) -> u64 {
    (trailer.0 & 0xff).min(3)
}

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
        if self.width == 0 {
            return Ok(0);
        }
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

/// A parsed block. It borrows its layout: a move from entry to entry would spend a tenth of its
/// instructions on copying it.
#[derive(Clone, Copy, Debug)]
pub(super) struct DataBlock<'a> {
    bytes: &'a [u8],
    layout: &'a DataBlockLayout,
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

/// What a step back has read of the entry that it came to, which the next step needs again: reading it
/// twice would cost each step back a fourth of its instructions.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SteppedTo {
    /// The entry's number; 0, from which there is no step back, stands for none.
    index: u32,
    shared: u32,
    offset: u32,
}

/// The entry that a search has met.
struct Met<'a> {
    index: u32,
    /// How much of its key is how the wanted key begins.
    shared: usize,
    unshared: &'a [u8],
    /// Where its key bytes end.
    next_offset: u32,
    is_same_key: bool,
}

/// What an entry's key has that the key before it has not.
struct Unshared<'a> {
    /// Bytes that it shares with the key before.
    shared: usize,
    /// Where its own bytes start.
    offset: u32,
    bytes: &'a [u8],
}

impl Place {
    pub(super) fn value_range(&self) -> Range<usize> {
        self.value_start as usize..(self.value_start + self.value_size) as usize
    }
}

#[cold]
fn damaged(what: &'static str) -> Error {
    Error::corruption(what)
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
    #[inline]
    pub(super) fn parse(bytes: &[u8]) -> Result<Self> {
        let Some(header) = bytes.first_chunk::<HEADER_SIZE>() else {
            return Err(damaged("data block is smaller than its header"));
        };
        let short = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        let word = |at: usize| u32::from(short(at)) | u32::from(short(at + 2)) << 16;
        let (entry_count, keys_offset, columns_offset) = (word(0), word(4), word(8));
        let (restarts_offset, restart_interval) = (word(12), u32::from(short(16)));
        let widths = [18, 19, 20, 21].map(|at: usize| u32::from(header[at]));
        let (flags, key_size_base, value_size_base) = (short(22), word(24), word(28));
        let sequence_base = u64::from(word(32)) | u64::from(word(36)) << 32;
        let fits = widths.iter().zip([2, 2, 4, 8]).all(|(width, most)| *width <= most);
        // Of two entries in order one has a byte that the other has not, of key or of number. More
        // of them than bytes would be work without end.
        let is_possible = entry_count > 0 && entry_count as usize <= bytes.len();
        if !is_possible || restart_interval == 0 || !fits || flags != 0 {
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
    /// The block that `layout` was parsed from.
    #[inline]
    pub(super) fn new(bytes: &'a [u8], layout: &'a DataBlockLayout) -> Self {
        DataBlock { bytes, layout }
    }

    pub(super) fn layout(&self) -> &'a DataBlockLayout {
        self.layout
    }

    /// No sequence number of the block is smaller.
    pub(super) fn sequence_base(&self) -> u64 {
        self.layout.sequence_base
    }

    /// The header by the names of its fields.
    pub(super) fn header_fields(&self) -> [(&'static str, u64); 12] {
        let layout = self.layout;
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

    /// The key bytes of entry `index`, which start at `offset`: its key behind the `shared` bytes.
    #[inline]
    fn unshared(&self, index: u32, shared: usize, offset: u32) -> Result<&'a [u8]> {
        let layout = self.layout;
        // Bases fit 32 bits and the columns' numbers too.
        let key_size = u64::from(layout.key_size_base) + layout.key_size.get(self.bytes, index)?;
        if key_size > KEY_SIZE_MAX as u64 {
            return Err(damaged("key is over its limit"));
        }
        let Some(unshared_size) = (key_size as usize).checked_sub(shared) else {
            return Err(damaged("entry shares more than it has"));
        };
        let end = offset as usize + unshared_size;
        match self.bytes.get(offset as usize..end) {
            Some(unshared) if end <= layout.keys_end as usize => Ok(unshared),
            _ => Err(damaged("key ends outside its section")),
        }
    }

    /// The place of an entry whose value starts at `value_start`; behind its key bytes is
    /// `next_offset`.
    #[inline]
    fn place(&self, index: u32, next_offset: u32, value_start: u64) -> Result<Place> {
        let layout = self.layout;
        let value_size =
            u64::from(layout.value_size_base) + layout.value_size.get(self.bytes, index)?;
        // Sums of at most an interval of numbers of 33 bits fit 64 bits.
        if value_start + value_size > u64::from(layout.keys_offset) {
            return Err(damaged("value ends outside its section"));
        }
        let (value_start, value_size) = (value_start as u32, value_size as u32);
        Ok(Place { index, next_offset, value_start, value_size })
    }

    /// Sequence number and kind of entry `index`.
    #[inline]
    pub(super) fn trailer(&self, index: u32) -> Result<Trailer> {
        let layout = self.layout;
        if layout.word.width == 0 {
            return Ok(Trailer::new(layout.sequence_base, ValueKind::Put));
        }
        let word = layout.word.get(self.bytes, index)?;
        let sequence = layout.sequence_base + (word >> 2);
        if sequence > SEQUENCE_MAX {
            return Err(damaged("trailer word of an entry"));
        }
        Ok(Trailer::new(sequence, KINDS[(word & 3) as usize]))
    }

    /// The key at a restart, where nothing is shared.
    #[inline]
    fn restart_key(&self, restart: u32) -> Result<&'a [u8]> {
        let layout = self.layout;
        let (start, _) = self.restart(restart)?;
        let index = restart * layout.restart_interval;
        let size = u64::from(layout.key_size_base) + layout.key_size.get(self.bytes, index)?;
        let end = u64::from(start) + size;
        match self.bytes.get(start as usize..end as usize) {
            Some(key) if end <= u64::from(layout.keys_end) => Ok(key),
            _ => Err(damaged("key ends outside its section")),
        }
    }

    /// The last restart whose entry sorts before the target, or the first one.
    #[inline]
    fn find_restart(&self, key: &[u8], trailer: Trailer) -> Result<u32> {
        let (mut low, mut high) = (0, self.restart_count());
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let order = match compare_keys(self.restart_key(middle)?, key) {
                Ordering::Equal => {
                    trailer.cmp(&self.trailer(middle * self.layout.restart_interval)?)
                }
                order => order,
            };
            if order == Ordering::Less { low = middle } else { high = middle }
        }
        if planted!(RestartSkipped) && low + 1 < self.restart_count() {
            low += 1;
        }
        Ok(low)
    }

    /// The first entry that does not sort before the target, and whether it has the same user
    /// key; `None` if the whole block sorts before it. With `BUILD` its key is left in `built`.
    ///
    /// Only the two numbers that lead from key to key are read on the way; sizes of values are
    /// summed up once the entry is found.
    #[inline]
    pub(super) fn seek<const BUILD: bool>(
        &self,
        key: &[u8],
        trailer: Trailer,
        built: &mut Vec<u8>,
    ) -> Result<Option<(Place, bool)>> {
        let layout = self.layout;
        for restart in self.find_restart(key, trailer)?..self.restart_count() {
            let first = restart * layout.restart_interval;
            let end = first + layout.restart_interval.min(layout.entry_count - first);
            let (offset, value_start) = self.restart(restart)?;
            let met = match self.narrow_numbers(first..end) {
                Some((shared, [])) => self.meet(first..end, offset, (key, trailer), |number| {
                    Ok((shared[number].into(), layout.key_size_base as usize))
                }),
                Some((shared, sizes)) => self.meet(first..end, offset, (key, trailer), |number| {
                    let size = layout.key_size_base as usize + usize::from(sizes[number]);
                    Ok((shared[number].into(), size))
                }),
                None => self.meet(first..end, offset, (key, trailer), |number| {
                    self.key_numbers(first + number as u32)
                }),
            };
            let Some(Met { index, shared, unshared, next_offset, is_same_key }) = met? else {
                continue;
            };
            if BUILD {
                // What is shared with the entry before is how the wanted key begins.
                built.clear();
                built.reserve(shared + unshared.len());
                built.extend_from_slice(&key[..shared]);
                built.extend_from_slice(unshared);
            }
            let value_start = self.value_start(first, value_start, index)?;
            let place = self.place(index, next_offset, value_start)?;
            return Ok(Some((place, is_same_key)));
        }
        Ok(None)
    }

    /// The first two numbers of these entries, where they are of a byte each; none of the second if
    /// all are 0. A walk over plain bytes takes a third of the instructions of one over columns.
    #[inline]
    fn narrow_numbers(&self, entries: Range<u32>) -> Option<(&'a [u8], &'a [u8])> {
        let DataBlockLayout { shared, key_size, .. } = self.layout;
        if shared.width != 1 || key_size.width > 1 {
            return None;
        }
        let bytes_of = |column: &Column| {
            let start = column.offset as usize;
            self.bytes.get(start + entries.start as usize..start + entries.end as usize)
        };
        let sizes = if key_size.width == 0 { &[] } else { bytes_of(key_size)? };
        Some((bytes_of(shared)?, sizes))
    }

    /// The first of these entries that does not sort before the target. The key bytes of the first
    /// one start at `offset`; `numbers` gives how much of the key before each one shares, and the
    /// size of its key.
    #[inline]
    fn meet(
        &self,
        entries: Range<u32>,
        offset: u32,
        (key, trailer): (&[u8], Trailer),
        numbers: impl Fn(usize) -> Result<(usize, usize)>,
    ) -> Result<Option<Met<'a>>> {
        let key_bytes = self.bytes.get(offset as usize..self.layout.keys_end as usize);
        let mut rest = key_bytes.ok_or_else(|| damaged("key ends outside its section"))?;
        // Of the entry before: its size, and how much of it is how the wanted key begins.
        let (mut size_before, mut matched) = (0, 0);
        for number in 0..entries.len() {
            let (shared, size) = numbers(number)?;
            if shared > size_before {
                return Err(damaged("entry shares more than its predecessor has"));
            }
            if size > KEY_SIZE_MAX {
                return Err(damaged("key is over its limit"));
            }
            let Some(unshared_size) = size.checked_sub(shared) else {
                return Err(damaged("entry shares more than it has"));
            };
            let Some((unshared, behind)) = rest.split_at_checked(unshared_size) else {
                return Err(damaged("key ends outside its section"));
            };
            (size_before, rest) = (size, behind);
            let order = match shared.cmp(&matched) {
                Ordering::Greater => continue,
                Ordering::Less => Ordering::Greater,
                Ordering::Equal => {
                    let wanted = &key[matched..];
                    let common = common_prefix(unshared, wanted);
                    matched += common;
                    unshared[common..].first().cmp(&wanted[common..].first())
                }
            };
            let index = entries.start + number as u32;
            let is_target_or_behind = match order {
                Ordering::Less => false,
                Ordering::Greater => true,
                Ordering::Equal => self.trailer(index)? <= trailer,
            };
            if is_target_or_behind {
                let next_offset = self.layout.keys_end - rest.len() as u32;
                let is_same_key = order == Ordering::Equal;
                return Ok(Some(Met { index, shared, unshared, next_offset, is_same_key }));
            }
        }
        Ok(None)
    }

    /// Where the value of entry `index` starts, if that of entry `first` starts at `value_start`.
    #[inline]
    fn value_start(&self, first: u32, value_start: u32, index: u32) -> Result<u64> {
        let layout = self.layout;
        let base = u64::from(layout.value_size_base) * u64::from(index - first);
        let mut start = u64::from(value_start) + base;
        let sizes = layout.value_size.offset as usize;
        match layout.value_size.width {
            0 => {}
            1 => {
                let sizes = self.bytes.get(sizes + first as usize..sizes + index as usize);
                let sizes =
                    sizes.ok_or_else(|| damaged("number of an entry lies outside its column"))?;
                start += sizes.iter().map(|size| u64::from(*size)).sum::<u64>();
            }
            _ => {
                for before in first..index {
                    start += layout.value_size.get(self.bytes, before)?;
                }
            }
        }
        Ok(start)
    }

    /// The entry at restart `restart`; its key replaces `built`.
    fn at_restart(&self, restart: u32, built: &mut Vec<u8>) -> Result<Place> {
        let (offset, value_start) = self.restart(restart)?;
        built.clear();
        let index = restart * self.layout.restart_interval;
        self.decode(index, offset, value_start, built).map(|(place, _)| place)
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
            let value_start = place.value_start + place.value_size;
            (place, _) = self.decode(place.index + 1, place.next_offset, value_start, built)?;
        }
        Ok(place)
    }

    /// The entry behind `place`, whose key `built` holds.
    #[inline]
    pub(super) fn next(&self, place: &Place, built: &mut Vec<u8>) -> Result<Option<Place>> {
        Ok(self.next_version(place, built)?.map(|(place, _)| place))
    }

    /// Like [`DataBlock::next`]; tells as well whether the key is that of `place`, so that the entry
    /// is an older one.
    #[inline]
    pub(super) fn next_version(
        &self,
        place: &Place,
        built: &mut Vec<u8>,
    ) -> Result<Option<(Place, bool)>> {
        if place.index + 1 >= self.layout.entry_count {
            return Ok(None);
        }
        let value_start = place.value_start + place.value_size;
        self.decode(place.index + 1, place.next_offset, value_start, built).map(Some)
    }

    /// The entry before `place`, whose key `built` holds, and whether the one before that is surely of
    /// another key. `stepped` is what the last step back in the same block left there, or none.
    ///
    /// Numbers are found by index, so bytes are found going back as well; only what the key shares
    /// with entries further before, and not with the one behind it, is looked for in those.
    #[inline]
    pub(super) fn previous(
        &self,
        place: &Place,
        built: &mut Vec<u8>,
        stepped: &mut SteppedTo,
    ) -> Result<Option<(Place, bool)>> {
        let Some(index) = place.index.checked_sub(1) else { return Ok(None) };
        if planted!(BlockStartSkipped) && index == 0 {
            return Ok(None);
        }
        let (known, next_offset) = match stepped.index == place.index {
            true => (stepped.shared as usize, stepped.offset),
            false => {
                let behind = self.unshared_before(place.index, place.next_offset)?;
                (behind.shared, behind.offset)
            }
        };
        let own = self.unshared_before(index, next_offset)?;
        if known > built.len() || known > own.shared + own.bytes.len() {
            return Err(damaged("entry shares more than its predecessor has"));
        }
        match own.shared <= known {
            true => built.truncate(own.shared),
            false => self.build_shared(index, &own, known, built)?,
        }
        built.extend_from_slice(own.bytes);
        // No key is longer than a block, whose offsets are of 32 bits.
        *stepped = SteppedTo { index, shared: own.shared as u32, offset: own.offset };
        let value_size = self.layout.value_size.get(self.bytes, index)?;
        let value_size = u64::from(self.layout.value_size_base) + value_size;
        // A value that begins inside its section ends before the one behind it.
        match u64::from(place.value_start).checked_sub(value_size) {
            Some(start) if start >= HEADER_SIZE as u64 => {
                let (value_start, value_size) = (start as u32, value_size as u32);
                let place = Place { index, next_offset, value_start, value_size };
                let is_first = match own.shared {
                    0 => self.ends_otherwise(index, own.offset, built)?,
                    _ => !own.bytes.is_empty(),
                };
                Ok(Some((place, is_first)))
            }
            _ => Err(damaged("value starts outside its section")),
        }
    }

    /// Whether the entry before entry `index`, which shares nothing with it and whose key bytes begin at
    /// `offset`, is surely of another key than `key`: by its length, or by those of its bytes that it
    /// does not share. Without this each restart would end what a step back saves.
    fn ends_otherwise(&self, index: u32, offset: u32, key: &[u8]) -> Result<bool> {
        let Some(before) = index.checked_sub(1) else { return Ok(false) };
        let before = self.unshared_before(before, offset)?;
        if planted!(RestartEndsVersions) {
            return Ok(true);
        }
        let size = before.shared + before.bytes.len();
        Ok(size != key.len() || key.get(before.shared..) != Some(before.bytes))
    }

    /// Whether the entry before `place` is surely of another key; false if that takes a comparison.
    #[inline]
    pub(super) fn is_first_version(&self, place: &Place) -> Result<bool> {
        let layout = self.layout;
        let shared = layout.shared.get(self.bytes, place.index)?;
        let size =
            u64::from(layout.key_size_base) + layout.key_size.get(self.bytes, place.index)?;
        // Nothing is shared at a restart, whatever the keys have in common.
        Ok(0 < shared && shared < size)
    }

    /// Leaves in `built` what entry `index` shares with the one before it. Its first `known` bytes
    /// are there; the others are in the nearest entries before that do not share them further.
    #[inline(never)]
    fn build_shared(
        &self,
        index: u32,
        own: &Unshared<'_>,
        known: usize,
        built: &mut Vec<u8>,
    ) -> Result<()> {
        built.truncate(known);
        built.resize(own.shared, 0);
        let layout = self.layout;
        let first = index - index % layout.restart_interval;
        match self.narrow_numbers(first..index) {
            Some((shared, [])) => self.gather(first..index, own, (known, built), |number| {
                Ok((shared[number].into(), layout.key_size_base as usize))
            }),
            Some((shared, sizes)) => self.gather(first..index, own, (known, built), |number| {
                let size = layout.key_size_base as usize + usize::from(sizes[number]);
                Ok((shared[number].into(), size))
            }),
            None => self.gather(first..index, own, (known, built), |number| {
                self.key_numbers(first + number as u32)
            }),
        }
    }

    /// Puts what a key shares, from byte `known` on, into `built`: from these entries before it, the last
    /// of which ends where its `own` bytes start. `numbers` is as [`DataBlock::meet`] takes it.
    #[inline]
    fn gather(
        &self,
        entries: Range<u32>,
        own: &Unshared<'_>,
        (known, built): (usize, &mut [u8]),
        numbers: impl Fn(usize) -> Result<(usize, usize)>,
    ) -> Result<()> {
        let (mut wanted, mut end) = (own.shared, own.offset as usize);
        for number in (0..entries.len()).rev() {
            if wanted <= known {
                break;
            }
            let (shared, size) = numbers(number)?;
            let start = size.checked_sub(shared).and_then(|unshared| end.checked_sub(unshared));
            let start = start.filter(|start| *start >= self.layout.keys_offset as usize);
            let start = start.ok_or_else(|| damaged("key starts outside its section"))?;
            let from = shared.max(known);
            if from < wanted {
                let bytes = self.bytes.get(start..end);
                let Some(part) = bytes.and_then(|bytes| bytes.get(from - shared..wanted - shared))
                else {
                    return Err(damaged("entry shares more than its predecessor has"));
                };
                built[from..wanted].copy_from_slice(part);
                wanted = from;
            }
            end = start;
        }
        match wanted <= known {
            true => Ok(()),
            false => Err(damaged("entry at a restart shares bytes")),
        }
    }

    /// How much the key of entry `index` shares with the one before, and its size.
    #[inline]
    fn key_numbers(&self, index: u32) -> Result<(usize, usize)> {
        let layout = self.layout;
        let size = layout.key_size_base as usize + layout.key_size.get(self.bytes, index)? as usize;
        Ok((layout.shared.get(self.bytes, index)? as usize, size))
    }

    /// The key bytes of entry `index`, behind which those of the next begin at `end`.
    #[inline(always)]
    fn unshared_before(&self, index: u32, end: u32) -> Result<Unshared<'a>> {
        let layout = self.layout;
        let shared = layout.shared.get(self.bytes, index)? as usize;
        let size = u64::from(layout.key_size_base) + layout.key_size.get(self.bytes, index)?;
        let start = size
            .checked_sub(shared as u64)
            .and_then(|unshared| u64::from(end).checked_sub(unshared))
            .filter(|start| *start >= u64::from(layout.keys_offset));
        match start.and_then(|start| self.bytes.get(start as usize..end as usize).zip(Some(start)))
        {
            Some((bytes, start)) if end <= layout.keys_end => {
                Ok(Unshared { shared, offset: start as u32, bytes })
            }
            _ => Err(damaged("key starts outside its section")),
        }
    }

    /// Entry `index`, whose key bytes start at `offset`, and whether its key is the one that `built`
    /// holds and that this one replaces.
    #[inline]
    fn decode(
        &self,
        index: u32,
        offset: u32,
        value_start: u32,
        built: &mut Vec<u8>,
    ) -> Result<(Place, bool)> {
        let shared = self.layout.shared.get(self.bytes, index)? as usize;
        if shared > built.len() {
            return Err(damaged("entry shares more than its predecessor has"));
        }
        let unshared = self.unshared(index, shared, offset)?;
        // At a restart nothing is shared, whatever the keys have in common.
        // Elsewhere the first bytes that are not shared differ, which saves the call.
        let is_same_key = built.len() == shared + unshared.len()
            && built.get(shared) == unshared.first()
            && built[shared..] == *unshared;
        built.truncate(shared);
        built.extend_from_slice(unshared);
        let place = self.place(index, offset + unshared.len() as u32, value_start.into())?;
        Ok((place, is_same_key))
    }
}

impl Place {
    /// The entry's number in its block.
    pub(super) fn index(&self) -> u32 {
        self.index
    }
}
