//! Range tombstones, cut into fragments that do not overlap.
//!
//! Fragmenting once, when a table is written, makes every later question a binary search: which
//! fragment holds the key, and which of its sequence numbers is the newest that the reader sees.
//!
//! ```text
//! fragment_count u32 | sequence_count u32 | keys_size u32 | 0 u32
//! (start_end u32, end_end u32, sequences_end u32)* | sequences u64* | key bytes
//! ```

use crate::base::{SEQUENCE_MAX, SequenceNumber};
use crate::format::{Decoder, put_u32, put_u64, read_u32, read_u64};
use crate::{Error, Result};
use bytes::Bytes;
use std::collections::BTreeMap;

const RECORD_SIZE: usize = 12;

/// Collects range tombstones in any order and cuts them into fragments.
#[derive(Clone, Debug)]
pub struct TombstoneFragmenter<K = Vec<u8>> {
    tombstones: Vec<(K, K, SequenceNumber)>,
    bytes: usize,
}

impl<K> Default for TombstoneFragmenter<K> {
    fn default() -> Self {
        TombstoneFragmenter { tombstones: Vec::new(), bytes: 0 }
    }
}

/// A bound of a tombstone: its key, whether it is the start, and the tombstone's sequence.
type Bound<'a> = (&'a [u8], bool, SequenceNumber);

impl<K: AsRef<[u8]>> TombstoneFragmenter<K> {
    /// Nothing collected.
    pub fn new() -> Self {
        TombstoneFragmenter::default()
    }

    /// Adds the deletion of the keys from `start` to before `end`; an empty range is dropped.
    pub fn add(&mut self, start: K, end: K, sequence: SequenceNumber) {
        if start.as_ref() < end.as_ref() {
            self.bytes += size_of::<(K, K, SequenceNumber)>();
            self.bytes += start.as_ref().len() + end.as_ref().len();
            self.tombstones.push((start, end, sequence));
        }
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.tombstones.is_empty()
    }

    /// What was collected, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// The fragments of everything added, each with all its sequence numbers.
    pub fn finish(&self) -> FragmentedTombstones {
        match self.is_fragmented() {
            true => self.encode_as_it_is(),
            false => self.sweep(|active, kept| kept.extend(active.keys().rev())),
        }
    }

    /// The fragments of everything added. Of each fragment's sequence numbers those stay that
    /// someone who reads at one of `snapshots` (ascending), or behind them, can tell apart.
    pub fn finish_for(&self, snapshots: &[SequenceNumber]) -> FragmentedTombstones {
        self.sweep(|active, kept| {
            let mut newest = active.keys().next_back().copied();
            while let Some(sequence) = newest {
                kept.push(sequence);
                let below = snapshots.partition_point(|snapshot| *snapshot < sequence);
                newest = match below.checked_sub(1).and_then(|index| snapshots.get(index)) {
                    Some(snapshot) => active.range(..=*snapshot).next_back().map(|(s, _)| *s),
                    None => None,
                };
            }
        })
    }

    /// Whether they come as fragments already: ascending, and those of one range newest first.
    fn is_fragmented(&self) -> bool {
        self.tombstones.iter().zip(self.tombstones.iter().skip(1)).all(|(left, right)| {
            let same = left.0.as_ref() == right.0.as_ref() && left.1.as_ref() == right.1.as_ref();
            if same { left.2 > right.2 } else { left.1.as_ref() <= right.0.as_ref() }
        })
    }

    fn encode_as_it_is(&self) -> FragmentedTombstones {
        let mut encoder = FragmentEncoder::default();
        let mut sequences = Vec::new();
        let same_range = |left: &(K, K, SequenceNumber), right: &(K, K, SequenceNumber)| {
            left.0.as_ref() == right.0.as_ref() && left.1.as_ref() == right.1.as_ref()
        };
        for fragment in self.tombstones.chunk_by(same_range) {
            sequences.clear();
            sequences.extend(fragment.iter().map(|(_, _, sequence)| *sequence));
            encoder.add(fragment[0].0.as_ref(), fragment[0].1.as_ref(), &sequences);
        }
        encoder.finish()
    }

    /// Goes over the bounds in order; `keep` chooses among the sequence numbers that cover the keys
    /// behind one, and gives them newest first.
    fn sweep(
        &self,
        keep: impl Fn(&BTreeMap<SequenceNumber, usize>, &mut Vec<SequenceNumber>),
    ) -> FragmentedTombstones {
        let mut bounds: Vec<Bound<'_>> = Vec::with_capacity(2 * self.tombstones.len());
        for (start, end, sequence) in &self.tombstones {
            bounds.push((start.as_ref(), true, *sequence));
            bounds.push((end.as_ref(), false, *sequence));
        }
        bounds.sort_unstable_by_key(|(key, _, _)| *key);
        // How many of the tombstones that cover the keys behind the bound have which sequence.
        let mut active: BTreeMap<SequenceNumber, usize> = BTreeMap::new();
        let mut encoder = FragmentEncoder::default();
        let mut kept = Vec::new();
        let mut previous: &[u8] = &[];
        for same_key in bounds.chunk_by(|left, right| left.0 == right.0) {
            let bound = same_key[0].0;
            if !active.is_empty() {
                kept.clear();
                keep(&active, &mut kept);
                encoder.add(previous, bound, &kept);
            }
            for (_, starts, sequence) in same_key {
                let count = active.entry(*sequence).or_default();
                // A tombstone's end may come before another's start of the same sequence number
                // in this list, so the count may pass through "minus one".
                *count = if *starts { count.wrapping_add(1) } else { count.wrapping_sub(1) };
            }
            for (_, _, sequence) in same_key {
                if active.get(sequence) == Some(&0) {
                    active.remove(sequence);
                }
            }
            previous = bound;
        }
        encoder.finish()
    }
}

#[derive(Default)]
pub(super) struct FragmentEncoder {
    records: Vec<[u32; 3]>,
    sequences: Vec<SequenceNumber>,
    keys: Vec<u8>,
    /// Where the sequences of the last fragment start.
    last_sequences: usize,
    last_end: Vec<u8>,
}

impl FragmentEncoder {
    /// Adds a fragment behind all others, with its sequence numbers newest first.
    pub(super) fn add(&mut self, start: &[u8], end: &[u8], sequences: &[SequenceNumber]) {
        let same = self.sequences[self.last_sequences..] == *sequences;
        if let Some(last) = self.records.last_mut().filter(|_| same && self.last_end == start) {
            // The same tombstones go on: one longer fragment, not two.
            self.keys.truncate(last[0] as usize);
            self.keys.extend_from_slice(end);
            last[1] = self.keys.len() as u32;
        } else {
            self.keys.extend_from_slice(start);
            let start_end = self.keys.len() as u32;
            self.keys.extend_from_slice(end);
            self.last_sequences = self.sequences.len();
            self.sequences.extend(sequences);
            self.records.push([start_end, self.keys.len() as u32, self.sequences.len() as u32]);
        }
        self.last_end.clear();
        self.last_end.extend_from_slice(end);
    }

    pub(super) fn finish(self) -> FragmentedTombstones {
        let mut target = Vec::new();
        put_u32(&mut target, self.records.len() as u32);
        put_u32(&mut target, self.sequences.len() as u32);
        put_u32(&mut target, self.keys.len() as u32);
        put_u32(&mut target, 0);
        for word in self.records.iter().flatten() {
            put_u32(&mut target, *word);
        }
        for sequence in &self.sequences {
            put_u64(&mut target, *sequence);
        }
        target.extend_from_slice(&self.keys);
        FragmentedTombstones {
            fragment_count: self.records.len(),
            sequences_offset: 16 + self.records.len() * RECORD_SIZE,
            keys_offset: 16 + self.records.len() * RECORD_SIZE + self.sequences.len() * 8,
            bytes: Bytes::from(target),
        }
    }
}

/// Range tombstones without overlaps, ascending, each with the sequence numbers of the deletes
/// that cover it. Immutable; searched in the bytes of the block.
#[derive(Clone, Debug)]
pub struct FragmentedTombstones {
    bytes: Bytes,
    fragment_count: usize,
    sequences_offset: usize,
    keys_offset: usize,
}

impl Default for FragmentedTombstones {
    fn default() -> Self {
        FragmentEncoder::default().finish()
    }
}

#[cold]
fn damaged(what: &'static str) -> Error {
    Error::corruption(what)
}

impl FragmentedTombstones {
    /// Parses a block and checks all of it once, so that no later question can fail.
    pub(super) fn parse(bytes: Bytes) -> Result<Self> {
        let mut decoder = Decoder::new(&bytes);
        let (fragment_count, sequence_count) = (decoder.u32()? as usize, decoder.u32()? as usize);
        let (keys_size, reserved) = (decoder.u32()? as usize, decoder.u32()?);
        if fragment_count == 0 || reserved != 0 {
            return Err(damaged("header of the range tombstones"));
        }
        let too_large = || damaged("counts of the range tombstones");
        decoder.bytes(fragment_count.checked_mul(RECORD_SIZE).ok_or_else(too_large)?)?;
        let sequences_offset = decoder.position();
        decoder.bytes(sequence_count.checked_mul(8).ok_or_else(too_large)?)?;
        let keys_offset = decoder.position();
        decoder.bytes(keys_size)?;
        decoder.finish()?;
        let parsed = FragmentedTombstones { bytes, fragment_count, sequences_offset, keys_offset };
        parsed.check(sequence_count, keys_size)?;
        Ok(parsed)
    }

    fn check(&self, sequence_count: usize, keys_size: usize) -> Result<()> {
        let mut last = (0, 0);
        for index in 0..self.fragment_count {
            let (start_end, end_end, sequences_end) = self.record(index);
            if start_end < last.0 || end_end < start_end || end_end > keys_size {
                return Err(damaged("bounds of a range tombstone"));
            }
            if sequences_end <= last.1 || sequences_end > sequence_count {
                return Err(damaged("sequence numbers of a range tombstone"));
            }
            last = (end_end, sequences_end);
        }
        if last != (keys_size, sequence_count) {
            return Err(damaged("sizes of the range tombstones"));
        }
        for index in 0..self.fragment_count {
            let fragment = self.fragment(index);
            let behind = index == 0 || self.fragment(index - 1).end <= fragment.start;
            if !behind || fragment.start >= fragment.end {
                return Err(damaged("range tombstones overlap or are empty"));
            }
            let mut newer = SEQUENCE_MAX + 1;
            for sequence in fragment.sequences() {
                if sequence >= newer {
                    return Err(damaged("sequence numbers of a range tombstone do not descend"));
                }
                newer = sequence;
            }
        }
        Ok(())
    }

    /// What it takes, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The encoded block.
    pub(super) fn encoded(&self) -> &[u8] {
        &self.bytes
    }

    fn record(&self, index: usize) -> (usize, usize, usize) {
        let at = 16 + index * RECORD_SIZE;
        let word = |at| read_u32(&self.bytes, at).unwrap_or(0) as usize;
        (word(at), word(at + 4), word(at + 8))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.fragment_count == 0
    }

    /// The number of fragments.
    pub fn len(&self) -> usize {
        self.fragment_count
    }

    /// Fragment `index`, which must be below [`FragmentedTombstones::len`].
    pub fn fragment(&self, index: usize) -> Fragment<'_> {
        let (start_end, end_end, sequences_end) = self.record(index);
        let (_, key_start, sequences_start) =
            if index == 0 { (0, 0, 0) } else { self.record(index - 1) };
        let keys = &self.bytes[self.keys_offset..];
        let sequences = &self.bytes[self.sequences_offset..self.keys_offset];
        Fragment {
            start: &keys[key_start..start_end],
            end: &keys[start_end..end_end],
            sequences: &sequences[sequences_start * 8..sequences_end * 8],
        }
    }

    /// What a fragment takes in the encoded block, in bytes.
    pub fn fragment_bytes(&self, index: usize) -> usize {
        let fragment = self.fragment(index);
        RECORD_SIZE + fragment.start.len() + fragment.end.len() + fragment.sequences.len()
    }

    /// All fragments, ascending.
    pub fn fragments(&self) -> impl Iterator<Item = Fragment<'_>> {
        (0..self.fragment_count).map(|index| self.fragment(index))
    }

    /// The fragment that covers `key`.
    pub fn covering(&self, key: &[u8]) -> Option<Fragment<'_>> {
        let (mut low, mut high) = (0, self.fragment_count);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.fragment(middle).start <= key { low = middle + 1 } else { high = middle }
        }
        let fragment = self.fragment(low.checked_sub(1)?);
        let mut is_inside = key < fragment.end;
        if planted!(RangeEndInclusive) && key == fragment.end {
            is_inside = true;
        }
        is_inside.then_some(fragment)
    }

    /// Whether a fragment covers any key from `first` to `last`, both included.
    pub fn overlaps(&self, first: &[u8], last: &[u8]) -> bool {
        let (mut low, mut high) = (0, self.fragment_count);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.fragment(middle).end <= first { low = middle + 1 } else { high = middle }
        }
        low < self.fragment_count && self.fragment(low).start <= last
    }

    /// The newest delete that covers `key` and is visible at `snapshot`; 0 if there is none.
    pub fn covering_sequence(&self, key: &[u8], snapshot: SequenceNumber) -> SequenceNumber {
        let Some(fragment) = self.covering(key) else {
            return 0;
        };
        fragment.newest_visible(snapshot)
    }
}

/// A range of keys and the deletes that cover all of it.
#[derive(Clone, Copy, Debug)]
pub struct Fragment<'a> {
    /// The first key.
    pub start: &'a [u8],
    /// The first key behind it.
    pub end: &'a [u8],
    sequences: &'a [u8],
}

impl<'a> Fragment<'a> {
    /// The sequence numbers of the deletes, newest first.
    pub fn sequences(&self) -> impl Iterator<Item = SequenceNumber> + use<'a> {
        let sequences = self.sequences;
        (0..sequences.len() / 8).map(move |index| read_u64(sequences, index * 8).unwrap_or(0))
    }

    /// The newest of them that is visible at `snapshot`; 0 if there is none.
    pub fn newest_visible(&self, snapshot: SequenceNumber) -> SequenceNumber {
        self.sequences().find(|sequence| *sequence <= snapshot).unwrap_or(0)
    }
}
