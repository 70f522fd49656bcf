//! Rows as LinkBench has them: keys of 24 bytes (id, type, other id), values of 176.
//!
//! Every id has ten links, so that a scan of a 16-byte prefix gives ten rows. A payload is cut
//! into pieces of up to 128 bytes; 22.5 % of the pieces are fresh random bytes from 32 to 100,
//! the others windows of one buffer of 512 such bytes, as LinkBench makes the data of a link.

/// Bytes of a key.
pub const KEY_SIZE: usize = 24;
/// Bytes of a value.
pub const VALUE_SIZE: usize = 176;
/// Bytes of a key that the rows of one list share.
pub const PREFIX_SIZE: usize = 16;
/// Rows of one list.
pub const LIST_ROWS: usize = 10;

const LINK_TYPE: u64 = 123_456_789;
const MOTIF_SIZE: usize = 512;
const PIECE_SIZE: usize = 128;

/// A small generator of numbers: the same in every run.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for index in (1..items.len()).rev() {
            items.swap(index, self.below(index + 1));
        }
    }
}

/// The key of row `index`: ascending with the index.
pub fn key(index: usize) -> [u8; KEY_SIZE] {
    let (list, place) = ((index / LIST_ROWS) as u64, (index % LIST_ROWS) as u64);
    let mut key = [0; KEY_SIZE];
    key[..8].copy_from_slice(&(1 + list).to_be_bytes());
    key[8..16].copy_from_slice(&LINK_TYPE.to_be_bytes());
    // Ids of the other end rise within a list and are spread like ids of a large graph.
    let other = place * 100_000_000 + Random::new(index as u64).next() % 100_000_000;
    key[16..].copy_from_slice(&other.to_be_bytes());
    key
}

/// Makes values, each a different one.
pub struct Values {
    motif: [u8; MOTIF_SIZE],
    random: Random,
    value: [u8; VALUE_SIZE],
}

fn fill(random: &mut Random, bytes: &mut [u8]) {
    bytes.iter_mut().for_each(|byte| *byte = 32 + (random.next() % 69) as u8);
}

impl Values {
    pub fn new() -> Self {
        let mut random = Random::new(7);
        let mut motif = [0; MOTIF_SIZE];
        fill(&mut random, &mut motif);
        Values { motif, random, value: [0; VALUE_SIZE] }
    }

    /// Visibility, version, time, payload.
    pub fn next(&mut self) -> &[u8; VALUE_SIZE] {
        self.value[..5].copy_from_slice(&[1, 0, 0, 0, 0]);
        let time_ms = 1_400_000_000_000 + self.random.next() % (1 << 32);
        self.value[5..13].copy_from_slice(&time_ms.to_le_bytes());
        for piece in self.value[13..].chunks_mut(PIECE_SIZE) {
            if self.random.next() % 1000 < 225 {
                fill(&mut self.random, piece);
            } else {
                let start = self.random.below(MOTIF_SIZE - piece.len() + 1);
                piece.copy_from_slice(&self.motif[start..start + piece.len()]);
            }
        }
        &self.value
    }
}

/// Rows in memory, so that making them is not measured.
pub struct Rows {
    order: Vec<usize>,
    values: Vec<u8>,
}

impl Rows {
    /// The rows of these indexes, in that order.
    pub fn new(order: Vec<usize>) -> Self {
        let mut source = Values::new();
        let mut values = Vec::with_capacity(order.len() * VALUE_SIZE);
        order.iter().for_each(|_| values.extend_from_slice(source.next()));
        Rows { order, values }
    }

    /// So many rows in random order.
    pub fn shuffled(count: usize, seed: u64) -> Self {
        let mut order: Vec<usize> = (0..count).collect();
        Random::new(seed).shuffle(&mut order);
        Rows::new(order)
    }

    pub fn len(&self) -> usize {
        self.order.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = ([u8; KEY_SIZE], &[u8])> {
        self.order.iter().map(|index| key(*index)).zip(self.values.chunks_exact(VALUE_SIZE))
    }
}
