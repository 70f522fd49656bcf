//! Keys and values of the workload, as the classic key-value benchmark makes them.

use crate::random::Random;

/// Bytes of the number at the start of a key.
const NUMBER_BYTES: usize = 8;

/// A key: the number, big-endian, in the first 8 bytes, then `0` characters. The order of keys is
/// that of their numbers.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    bytes: Vec<u8>,
}

impl Key {
    /// A key of `length_bytes`, which is at least 8.
    pub(crate) fn new(length_bytes: usize) -> Key {
        Key { bytes: vec![b'0'; length_bytes.max(NUMBER_BYTES)] }
    }

    /// The key of a number.
    pub(crate) fn of(&mut self, number: u64) -> &[u8] {
        self.bytes[..NUMBER_BYTES].copy_from_slice(&number.to_be_bytes());
        &self.bytes
    }
}

/// Bytes of the buffer that values are cut from.
const BUFFER_BYTES: usize = 1 << 20;
/// The buffer is made of pieces of this size.
const PIECE_BYTES: usize = 100;
/// All threads and runs have the same buffer.
const BUFFER_SEED: u64 = 301;
/// Values of which half is random, the rest repeats it.
pub(crate) const HALF: f64 = 0.5;

/// Values that compress to about a given share: slices at a moving offset of one buffer, or made anew.
#[derive(Clone, Debug)]
pub(crate) struct Values {
    buffer: Vec<u8>,
    length_bytes: usize,
    offset: usize,
    fresh: Option<FreshPieces>,
}

/// Pieces of the same shape of which none comes twice.
#[derive(Clone, Debug)]
struct FreshPieces {
    random: Random,
    random_bytes: usize,
}

impl FreshPieces {
    /// Fills `value` with them. Eight characters are made of each number: a driver that took one
    /// number for each would take longer than a put.
    fn fill(&mut self, value: &mut [u8]) {
        for piece in value.chunks_mut(PIECE_BYTES) {
            let (random, repeated) = piece.split_at_mut(self.random_bytes.min(piece.len()));
            for characters in random.chunks_mut(8) {
                for (to, from) in characters.iter_mut().zip(self.random.next_u64().to_le_bytes()) {
                    *to = b' ' + ((u16::from(from) * 95) >> 8) as u8;
                }
            }
            for (to, from) in repeated.iter_mut().zip(random.iter().cycle()) {
                *to = *from;
            }
        }
    }
}

/// How much of a piece is random.
fn random_bytes(ratio: f64) -> usize {
    ((PIECE_BYTES as f64 * ratio) as usize).clamp(1, PIECE_BYTES)
}

impl Values {
    /// Values of `length_bytes`, of which the share `ratio` is random.
    pub(crate) fn new(length_bytes: usize, ratio: f64) -> Values {
        let random_bytes = random_bytes(ratio);
        let mut state = BUFFER_SEED;
        let mut buffer = Vec::with_capacity(BUFFER_BYTES.max(length_bytes) + PIECE_BYTES);
        while buffer.len() < BUFFER_BYTES.max(length_bytes) {
            let piece: Vec<u8> = (0..random_bytes).map(|_| printable(&mut state)).collect();
            buffer.extend(piece.iter().cycle().take(PIECE_BYTES));
        }
        Values { buffer, length_bytes, offset: 0, fresh: None }
    }

    /// Values of the same shape that never come again: the buffer of the others comes round after
    /// 1 MiB, which a dictionary or a large window learns.
    pub(crate) fn fresh(length_bytes: usize, ratio: f64, seed: u64) -> Values {
        let random = Random::new(seed, BUFFER_SEED);
        let fresh = Some(FreshPieces { random, random_bytes: random_bytes(ratio) });
        Values { buffer: vec![0; length_bytes], length_bytes, offset: 0, fresh }
    }

    /// The next value.
    pub(crate) fn next(&mut self) -> &[u8] {
        if let Some(fresh) = &mut self.fresh {
            fresh.fill(&mut self.buffer);
            return &self.buffer;
        }
        if self.offset + self.length_bytes > self.buffer.len() {
            self.offset = 0;
        }
        let start = self.offset;
        self.offset += self.length_bytes;
        &self.buffer[start..self.offset]
    }
}

/// The next of the 95 printable characters, by the minimal standard generator (16807 modulo
/// 2^31 - 1), which the original takes.
fn printable(state: &mut u64) -> u8 {
    *state = *state * 16_807 % 0x7FFF_FFFF;
    b' ' + (*state % 95) as u8
}

/// All numbers below a bound, each once, in an order that looks random; needs no memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Permutation {
    bound: u64,
    bits: u32,
    seed: u64,
}

/// Rounds of mixing.
const ROUNDS: u64 = 3;

impl Permutation {
    /// The order that `seed` gives to the numbers below `bound`.
    pub(crate) fn new(bound: u64, seed: u64) -> Permutation {
        let bits = 64 - bound.saturating_sub(1).leading_zeros();
        Permutation { bound, bits: bits.max(2), seed: Random::new(seed, 0).next_u64() }
    }

    /// The number at `place`, which is below the bound.
    pub(crate) fn at(&self, place: u64) -> u64 {
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
        let mut values = Values::new(400, HALF);
        let first = values.next().to_vec();
        assert_eq!(first.len(), 400);
        assert!(first.chunks(100).all(|piece| piece[..50] == piece[50..]));
        assert_ne!(first[..50], first[100..150]);
        assert_ne!(values.next(), first);
        let again = (0..).take(BUFFER_BYTES / 400 + 2).any(|_| values.next() == first);
        assert!(again, "the buffer is used again from its start");
    }

    #[test]
    fn values_are_those_of_the_original() {
        // The first two values of 10 bytes that the original put into a database.
        let mut values = Values::new(10, HALF);
        assert_eq!(values.next(), b"^{Vhz\"!/%w");
        assert_eq!(values.next(), b"MZ;'a F/RE");
        // Its first value of 120 bytes holds a piece of 100 whole.
        let mut values = Values::new(120, HALF);
        let first = values.next();
        assert_eq!(first[..50], *b"^{Vhz\"!/%wMZ;'a F/REZJ4Tw@%NXxy2?.ArVCZ2B6[jnUd)4 ");
        assert_eq!(first[..50], first[50..100]);
        let mut quarter = Values::new(100, 0.25);
        let value = quarter.next();
        assert_eq!((&value[..25], &value[25..50]), (&value[50..75], &value[75..]));
        assert_ne!(value[..10], value[10..20]);
    }

    #[test]
    fn fresh_values_never_come_again() {
        let values = |seed| {
            let mut values = Values::fresh(400, HALF, seed);
            (0..2 * BUFFER_BYTES / 400).map(|_| values.next().to_vec()).collect::<Vec<_>>()
        };
        let one = values(301);
        let pieces = one.iter().flat_map(|value| value.chunks(PIECE_BYTES));
        assert!(pieces.clone().all(|piece| piece[..50] == piece[50..]));
        let distinct: std::collections::BTreeSet<&[u8]> = pieces.clone().collect();
        assert_eq!(distinct.len(), pieces.count());
        assert!(one.iter().flatten().all(|byte| (b' '..b' ' + 95).contains(byte)));
        let used: std::collections::BTreeSet<&u8> = one.iter().flatten().collect();
        assert_eq!(used.len(), 95);
        assert_eq!(one, values(301));
        assert!(values(302).iter().all(|value| !one.contains(value)));
        // A value that ends within a piece.
        let mut short = Values::fresh(130, 0.25, 1);
        let value = short.next();
        assert_eq!((value.len(), &value[..25]), (130, &value[75..100]));
        assert_ne!(value[..25], value[100..125]);
        assert_eq!(value[125..130], value[100..105]);
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
