//! Keys and values of the workload, as the classic key-value benchmark makes them.

use crate::linkbench::random::Random;

/// Bytes of the number at the start of a key.
const NUMBER_BYTES: usize = 8;

/// A key: the number, big-endian, in the first 8 bytes, then `0` characters. The order of keys is
/// that of their numbers.
#[derive(Clone, Debug)]
pub(super) struct Key {
    bytes: Vec<u8>,
}

impl Key {
    /// A key of `length_bytes`, which is at least 8.
    pub(super) fn new(length_bytes: usize) -> Key {
        Key { bytes: vec![b'0'; length_bytes.max(NUMBER_BYTES)] }
    }

    /// The key of a number.
    pub(super) fn of(&mut self, number: u64) -> &[u8] {
        self.bytes[..NUMBER_BYTES].copy_from_slice(&number.to_be_bytes());
        &self.bytes
    }
}

/// Bytes of the buffer that values are cut from.
const BUFFER_BYTES: usize = 1 << 20;
/// The buffer is made of pieces of this size.
const PIECE_BYTES: usize = 100;
/// So many bytes of a piece are random; the rest repeats them.
const RANDOM_BYTES: usize = 50;
/// All threads and runs have the same buffer.
const SEED: u64 = 301;

/// Values that compress to about half: slices at a moving offset of one buffer.
#[derive(Clone, Debug)]
pub(super) struct Values {
    buffer: Vec<u8>,
    length_bytes: usize,
    offset: usize,
}

impl Values {
    /// Values of `length_bytes`.
    pub(super) fn new(length_bytes: usize) -> Values {
        let mut random = Random::new(SEED, 0);
        let mut buffer = Vec::with_capacity(BUFFER_BYTES.max(length_bytes) + PIECE_BYTES);
        while buffer.len() < BUFFER_BYTES.max(length_bytes) {
            let half: [u8; RANDOM_BYTES] = std::array::from_fn(|_| random.next_u64() as u8);
            buffer.extend_from_slice(&half);
            buffer.extend_from_slice(&half);
        }
        Values { buffer, length_bytes, offset: 0 }
    }

    /// The next value.
    pub(super) fn next(&mut self) -> &[u8] {
        if self.offset + self.length_bytes > self.buffer.len() {
            self.offset = 0;
        }
        let start = self.offset;
        self.offset += self.length_bytes;
        &self.buffer[start..self.offset]
    }
}

/// All numbers below a bound, each once, in an order that looks random; needs no memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Permutation {
    bound: u64,
    bits: u32,
    seed: u64,
}

/// Rounds of mixing.
const ROUNDS: u64 = 3;

impl Permutation {
    /// The order that `seed` gives to the numbers below `bound`.
    pub(super) fn new(bound: u64, seed: u64) -> Permutation {
        let bits = 64 - bound.saturating_sub(1).leading_zeros();
        Permutation { bound, bits: bits.max(2), seed: Random::new(seed, 0).next_u64() }
    }

    /// The number at `place`, which is below the bound.
    pub(super) fn at(&self, place: u64) -> u64 {
        // The mix permutes a range of a power of two that is less than twice the bound (or 4):
        // stepping on until the number is inside permutes what is inside.
        let mut number = self.mix(place);
        while number >= self.bound {
            number = self.mix(number);
        }
        number
    }

    /// Every step can be undone below 2^bits.
    fn mix(&self, mut number: u64) -> u64 {
        let mask = u64::MAX >> (64 - self.bits);
        for round in 0..ROUNDS {
            number = number.wrapping_add(self.seed.rotate_left(round as u32 * 13)) & mask;
            number = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) & mask;
            number ^= number >> (self.bits / 2);
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_order_as_their_numbers() {
        let mut key = Key::new(20);
        assert_eq!(key.of(0x0102), b"\0\0\0\0\0\0\x01\x02000000000000");
        let keys: Vec<Vec<u8>> =
            [0, 1, 255, 256, 70_000, 1 << 40].map(|n| key.of(n).to_vec()).into();
        assert!(keys.is_sorted() && keys.iter().all(|key| key.len() == 20));
    }

    #[test]
    fn values_repeat_at_distance_fifty() {
        let mut values = Values::new(400);
        let first = values.next().to_vec();
        assert_eq!(first.len(), 400);
        assert!(first.chunks(100).all(|piece| piece[..50] == piece[50..]));
        assert_ne!(first[..50], first[100..150]);
        assert_ne!(values.next(), first);
        let again = (0..).take(BUFFER_BYTES / 400 + 2).any(|_| values.next() == first);
        assert!(again, "the buffer is used again from its start");
    }

    #[test]
    fn permutations_hit_everything_once_and_scatter() {
        for bound in [1, 2, 3, 1000, 1024, 1025, 100_003] {
            let order = Permutation::new(bound, 7);
            let mut hit = vec![false; bound as usize];
            for place in 0..bound {
                let number = order.at(place) as usize;
                assert!(!std::mem::replace(&mut hit[number], true), "{number} twice of {bound}");
            }
        }
        let order = Permutation::new(1 << 20, 7);
        let ascending = (1..1000).filter(|place| order.at(*place) > order.at(place - 1)).count();
        assert!((350..650).contains(&ascending), "{ascending} of 999 steps go up");
        let low = (0..1000).filter(|place| order.at(*place) < 1 << 19).count();
        assert!((400..600).contains(&low), "{low} of 1000 are in the lower half");
    }
}
