//! The table filter: a blocked Bloom filter that tells which keys are surely not in a table.
//!
//! Owns: the hash of keys, the stored form (docs/format/filter.md) and the choice of its size.
//!
//! 1. A [`FilterBuilder`] collects one 64-bit hash per key, so that the size is exact.
//! 2. The upper half of a hash picks one block of 64 bytes; nine-bit pieces of a word mixed from
//!    the whole hash pick the bits in it. One cache line is touched per key or question.
//!
//! Promises: a key that was added is always found; at 10 bits per key about one other key in a
//! hundred is. A [`FilterReader`] borrows the stored bytes, costs nothing to make, and rejects
//! what it does not understand; damage inside the blocks is for the block's checksum to find.
//!
//! Threads: a builder belongs to one thread; a reader is a plain shared view.
//!
//! It does not decide which keys or prefixes are added, nor store or cache anything.

use super::prefetch::prefetch_line;
use crate::{Error, ErrorKind, Result};
use twox_hash::XxHash3_64;

/// The version in the footer.
const VERSION: u8 = 1;

const BLOCK_BYTES: usize = 64;
const BLOCK_BITS: usize = 8 * BLOCK_BYTES;
const FOOTER_BYTES: usize = 8;

/// Seven pieces of nine bits are what a word of 64 bits holds.
const PROBE_COUNT_MAX: u8 = 7;

/// More bits per key than this lower the rate no further with seven probes.
const BITS_PER_KEY_MAX: u32 = 32;

/// 2^64 divided by the golden ratio.
const MIX: u64 = 0x9E37_79B9_7F4A_7C15;

/// The hash by which filters know a key.
#[inline]
pub fn hash_key(key: &[u8]) -> u64 {
    XxHash3_64::oneshot(key)
}

#[inline]
fn block_index(hash: u64, block_count: u32) -> usize {
    (((hash >> 32) * u64::from(block_count)) >> 32) as usize
}

/// The word whose nine-bit pieces are the probes.
#[inline]
fn probe_word(hash: u64) -> u64 {
    let product = u128::from(hash) * u128::from(MIX);
    (product >> 64) as u64 ^ product as u64
}

/// Collects the hashes of a table's keys and makes the filter. It holds 8 bytes per key.
pub struct FilterBuilder {
    bits_per_key: u32,
    hashes: Vec<u64>,
    /// The last two different hashes that were added, kept or skipped.
    recent: [Option<u64>; 2],
}

impl FilterBuilder {
    /// A builder of filters with `bits_per_key` bits for each distinct key, held within 1 to 32.
    pub fn new(bits_per_key: u32) -> Self {
        FilterBuilder {
            bits_per_key: bits_per_key.clamp(1, BITS_PER_KEY_MAX),
            hashes: Vec::new(),
            recent: [None; 2],
        }
    }

    /// Adds a key by its [`hash_key`]. A hash equal to one of the two others before it is skipped:
    /// versions of a key follow each other, and so do the prefixes that are added between keys.
    #[inline]
    pub fn add_hash(&mut self, hash: u64) {
        let [before, last] = self.recent;
        if last == Some(hash) {
            return;
        }
        self.recent = [last, Some(hash)];
        if before == Some(hash) {
            return;
        }
        self.hashes.push(hash);
    }

    /// How many hashes have been kept since the start or the last [`FilterBuilder::finish`].
    pub fn hash_count(&self) -> usize {
        self.hashes.len()
    }

    /// The bytes that [`FilterBuilder::finish`] would append now.
    pub fn finished_bytes(&self) -> usize {
        self.block_count() as usize * BLOCK_BYTES + FOOTER_BYTES
    }

    /// The memory held, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.hashes.capacity() * size_of::<u64>()
    }

    /// Appends the filter of all hashes to `target`, and starts anew.
    pub fn finish(&mut self, target: &mut Vec<u8>) {
        if planted!(FilterWithoutLastKey) {
            self.hashes.pop();
        }
        let block_count = self.block_count();
        let probe_count = self.probe_count();
        let start = target.len();
        target.resize(start + self.finished_bytes(), 0);
        let (blocks, _) = target[start..].as_chunks_mut::<BLOCK_BYTES>();
        for &hash in &self.hashes {
            let block = &mut blocks[block_index(hash, block_count)];
            let mut word = probe_word(hash);
            for _ in 0..probe_count {
                block[word as usize / 8 % BLOCK_BYTES] |= 1 << (word % 8);
                word >>= 9;
            }
        }
        let footer = start + block_count as usize * BLOCK_BYTES;
        target[footer] = VERSION;
        target[footer + 1] = probe_count;
        target[footer + 4..].copy_from_slice(&block_count.to_le_bytes());
        self.hashes.clear();
        self.recent = [None; 2];
    }

    fn block_count(&self) -> u32 {
        let bits = self.hashes.len() as u64 * u64::from(self.bits_per_key);
        u32::try_from(bits.div_ceil(BLOCK_BITS as u64)).unwrap_or(u32::MAX)
    }

    fn probe_count(&self) -> u8 {
        ((self.bits_per_key * 62 + 50) / 100).clamp(1, PROBE_COUNT_MAX.into()) as u8
    }
}

/// Asks a stored filter.
#[derive(Clone, Copy)]
pub struct FilterReader<'a> {
    blocks: &'a [[u8; BLOCK_BYTES]],
    block_count: u32,
    probe_count: u8,
}

/// Asks the processor for the block of a stored filter that a key's bits lie in.
#[inline]
pub(super) fn prefetch(stored: &[u8], hash: u64) {
    // The length tells how many blocks there are; the footer would be one more miss.
    let block_count = (stored.len() / BLOCK_BYTES) as u32;
    prefetch_line(stored, block_index(hash, block_count) * BLOCK_BYTES);
}

impl<'a> FilterReader<'a> {
    /// A view of a stored filter. Fails with [`ErrorKind::Unsupported`] for another version, and
    /// with [`ErrorKind::Corruption`] if the length or the footer is not what a filter has.
    #[inline(always)]
    pub fn parse(stored: &'a [u8]) -> Result<Self> {
        let Some((blocks, footer)) = stored.split_last_chunk::<FOOTER_BYTES>() else {
            return Err(Error::corruption("filter is shorter than its footer")
                .expected(FOOTER_BYTES, stored.len()));
        };
        let [version, probe_count, reserved_0, reserved_1, b0, b1, b2, b3] = *footer;
        let block_count = u32::from_le_bytes([b0, b1, b2, b3]);
        if version != VERSION {
            return Err(Error::new(ErrorKind::Unsupported, "version of a filter")
                .expected(VERSION, version));
        }
        if !(1..=PROBE_COUNT_MAX).contains(&probe_count) || reserved_0 != 0 || reserved_1 != 0 {
            return Err(Error::corruption("footer of a filter"));
        }
        let (blocks, rest) = blocks.as_chunks::<BLOCK_BYTES>();
        if !rest.is_empty() || blocks.len() as u64 != u64::from(block_count) {
            return Err(Error::corruption("length of a filter").expected(
                format_args!("{block_count} blocks of {BLOCK_BYTES} bytes"),
                format_args!("{} bytes", stored.len() - FOOTER_BYTES),
            ));
        }
        Ok(FilterReader { blocks, block_count, probe_count })
    }

    /// How many bits of one block a key has.
    pub fn probe_count(&self) -> u8 {
        self.probe_count
    }

    /// The blocks of 64 bytes.
    pub fn block_count(&self) -> u32 {
        self.block_count
    }

    /// False if the key with this [`hash_key`] was surely not added.
    #[inline]
    pub fn may_contain(&self, hash: u64) -> bool {
        let Some(block) = self.blocks.get(block_index(hash, self.block_count)) else {
            return false;
        };
        let mut word = probe_word(hash);
        for _ in 0..self.probe_count {
            if block[word as usize / 8 % BLOCK_BYTES] & (1 << (word % 8)) == 0 {
                return false;
            }
            word >>= 9;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash_of(number: u64) -> u64 {
        hash_key(&number.to_be_bytes())
    }

    fn filter_of(bits_per_key: u32, keys: std::ops::Range<u64>) -> Vec<u8> {
        let mut builder = FilterBuilder::new(bits_per_key);
        keys.for_each(|key| builder.add_hash(hash_of(key)));
        let mut stored = Vec::new();
        builder.finish(&mut stored);
        stored
    }

    fn rate(stored: &[u8], absent: std::ops::Range<u64>) -> f64 {
        let filter = FilterReader::parse(stored).unwrap();
        let count = (absent.end - absent.start) as f64;
        absent.filter(|key| filter.may_contain(hash_of(*key))).count() as f64 / count
    }

    #[test]
    fn keys_that_were_added_are_found() {
        for (bits_per_key, count) in [(1, 1), (4, 2), (10, 51), (10, 52), (10, 20_000), (32, 999)] {
            let stored = filter_of(bits_per_key, 0..count);
            let filter = FilterReader::parse(&stored).unwrap();
            assert!((0..count).all(|key| filter.may_contain(hash_of(key))));
        }
    }

    #[test]
    fn few_other_keys_are_found() {
        for (bits_per_key, rate_max) in [(4, 0.17), (8, 0.028), (10, 0.0125), (16, 0.0018)] {
            for count in [300, 5000, 60_000] {
                let stored = filter_of(bits_per_key, 0..count);
                let rate = rate(&stored, 1_000_000..1_200_000);
                assert!(rate < rate_max, "{bits_per_key} bits, {count} keys: {rate}");
                let bits = (stored.len() - FOOTER_BYTES) * 8;
                let exact_bits = count * u64::from(bits_per_key);
                assert!((bits as u64) < exact_bits + BLOCK_BITS as u64);
            }
        }
    }

    #[test]
    fn the_filter_of_no_keys_holds_none() {
        let stored = filter_of(10, 0..0);
        assert_eq!(stored, [VERSION, 6, 0, 0, 0, 0, 0, 0]);
        assert_eq!(rate(&stored, 0..1000), 0.0);
    }

    #[test]
    fn repeated_hashes_take_no_room() {
        let mut builder = FilterBuilder::new(10);
        for key in 0..1000 {
            for _ in 0..3 {
                builder.add_hash(hash_of(key));
            }
        }
        assert_eq!(builder.hash_count(), 1000);
        let mut target = b"before".to_vec();
        let finished_bytes = builder.finished_bytes();
        builder.finish(&mut target);
        assert_eq!(target.len(), 6 + finished_bytes);
        assert_eq!(target.strip_prefix(b"before").unwrap(), filter_of(10, 0..1000));
        // A prefix between its keys counts once.
        for key in 0..1000 {
            builder.add_hash(hash_of(key));
            builder.add_hash(hash_of(1_000_000 + key / 100));
        }
        assert_eq!(builder.hash_count(), 1010);
        let mut stored = Vec::new();
        builder.finish(&mut stored);
        let filter = FilterReader::parse(&stored).unwrap();
        assert!((1_000_000..1_000_010).all(|prefix| filter.may_contain(hash_of(prefix))));
        assert_eq!(builder.hash_count(), 0);
    }

    #[test]
    fn damaged_filters_are_rejected() {
        let stored = filter_of(10, 0..200);
        assert!(FilterReader::parse(&stored).is_ok());
        let kind_of = |bytes: &[u8]| FilterReader::parse(bytes).err().map(|error| error.kind());
        for length in 0..stored.len() {
            assert!(kind_of(&stored[stored.len() - length..]).is_some(), "{length} bytes");
            assert!(kind_of(&stored[..length]).is_some(), "{length} bytes");
        }
        let mut longer = vec![0; 64];
        longer.extend_from_slice(&stored);
        assert_eq!(kind_of(&longer), Some(ErrorKind::Corruption));
        let footer = stored.len() - FOOTER_BYTES;
        for (place, value, kind) in [
            (0, 0, ErrorKind::Unsupported),
            (0, 2, ErrorKind::Unsupported),
            (1, 0, ErrorKind::Corruption),
            (1, 8, ErrorKind::Corruption),
            (2, 1, ErrorKind::Corruption),
            (3, 1, ErrorKind::Corruption),
            (4, 3, ErrorKind::Corruption),
            (4, 5, ErrorKind::Corruption),
            (7, 0xFF, ErrorKind::Corruption),
        ] {
            let mut damaged = stored.clone();
            damaged[footer + place] = value;
            assert_eq!(kind_of(&damaged), Some(kind), "footer byte {place} = {value}");
        }
    }

    #[test]
    fn the_documented_sample_is_what_is_built() {
        let document = include_str!("../../../../docs/format/filter.md");
        let hex = document.lines().find_map(|line| line.strip_prefix("sample: ")).unwrap();
        let mut builder = FilterBuilder::new(10);
        let keys = ["basalt", "granite", "slate"].map(str::as_bytes);
        keys.iter().for_each(|key| builder.add_hash(hash_key(key)));
        let mut built = Vec::new();
        builder.finish(&mut built);
        let built_hex: Vec<_> = built.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(built_hex.join(" "), hex);
        let filter = FilterReader::parse(&built).unwrap();
        assert!(keys.iter().all(|key| filter.may_contain(hash_key(key))));
        assert!(!filter.may_contain(hash_key(b"marble")));
    }
}
