//! The random numbers of the original: the 64-bit Mersenne Twister of the C++ standard.
//!
//! With the same generator, seeds and draws per operation, the loops visit the same keys as the
//! original's, so that counts of what was found can be compared with it and not only times.

const WORDS: usize = 312;
const MIDDLE: usize = 156;

/// `std::mt19937_64`.
#[derive(Clone, Debug)]
pub(super) struct Twister {
    words: Box<[u64; WORDS]>,
    next: usize,
}

impl Twister {
    /// The sequence of a seed.
    pub(super) fn new(seed: u64) -> Twister {
        let mut words = Box::new([seed; WORDS]);
        for index in 1..WORDS {
            let before = words[index - 1];
            words[index] = (before ^ (before >> 62))
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(index as u64);
        }
        Twister { words, next: WORDS }
    }

    /// The next 64 bits.
    #[inline]
    pub(super) fn next_u64(&mut self) -> u64 {
        if self.next == WORDS {
            self.twist();
        }
        let mut word = self.words[self.next];
        self.next += 1;
        word ^= (word >> 29) & 0x5555_5555_5555_5555;
        word ^= (word << 17) & 0x71D6_7FFF_EDA6_0000;
        word ^= (word << 37) & 0xFFF7_EEE0_0000_0000;
        word ^ (word >> 43)
    }

    fn twist(&mut self) {
        for index in 0..WORDS {
            let high = self.words[index] & 0xFFFF_FFFF_8000_0000;
            let mixed = high | (self.words[(index + 1) % WORDS] & 0x7FFF_FFFF);
            let odd = if mixed & 1 == 1 { 0xB502_6F5A_A966_19E9 } else { 0 };
            self.words[index] = self.words[(index + MIDDLE) % WORDS] ^ (mixed >> 1) ^ odd;
        }
        self.next = 0;
    }
}

/// Which keys a client visits, in which order.
#[derive(Clone, Debug)]
pub(super) enum KeyStream {
    /// 0, 1, 2, ...
    Ascending(u64),
    /// Random ones below a bound.
    Random {
        /// Where they come from.
        twister: Twister,
        /// Number of keys.
        num: u64,
        /// The original draws a number before every so many keys, by which it chooses among
        /// databases, of which there is one; 0 where it draws none.
        choice_every: u64,
        /// Keys since then.
        since_choice: u64,
    },
}

impl KeyStream {
    /// Random keys below `num`, with a number drawn before every `choice_every` of them.
    pub(super) fn random(seed: u64, num: u64, choice_every: u64) -> KeyStream {
        KeyStream::Random { twister: Twister::new(seed), num, choice_every, since_choice: 0 }
    }

    /// The next key's number.
    #[inline]
    pub(super) fn next(&mut self) -> u64 {
        match self {
            KeyStream::Ascending(next) => {
                *next += 1;
                *next - 1
            }
            KeyStream::Random { twister, num, choice_every, since_choice } => {
                if *choice_every > 0 {
                    if *since_choice == 0 {
                        twister.next_u64();
                        *since_choice = *choice_every;
                    }
                    *since_choice -= 1;
                }
                twister.next_u64() % *num
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_twister_is_that_of_the_standard() {
        // The standard names the 10000th number of the default seed.
        let mut twister = Twister::new(5489);
        let last = (0..10_000).map(|_| twister.next_u64()).last();
        assert_eq!(last, Some(9_981_545_732_273_789_042));
    }

    #[test]
    fn writers_visit_the_keys_of_the_original() {
        // What the original put into a database of a million keys, started with seed 42: its
        // first client takes 43.
        let mut keys = KeyStream::random(43, 1_000_000, 1);
        let drawn: Vec<u64> = (0..5).map(|_| keys.next()).collect();
        assert_eq!(drawn[..2], [0x7_79FB, 0xD_02E9]);
        let mut sorted = drawn;
        sorted.sort_unstable();
        assert_eq!(sorted, [0x0_3AA6, 0x1_50C6, 0x5_F06A, 0x7_79FB, 0xD_02E9]);
    }

    #[test]
    fn a_database_is_chosen_before_a_batch() {
        let mut twister = Twister::new(43);
        let drawn: Vec<u64> = (0..8).map(|_| twister.next_u64() % 1000).collect();
        let mut keys = KeyStream::random(43, 1000, 3);
        let visited: Vec<u64> = (0..6).map(|_| keys.next()).collect();
        assert_eq!(visited, [&drawn[1..4], &drawn[5..8]].concat());
        let mut keys = KeyStream::random(43, 1000, 0);
        assert_eq!([keys.next(), keys.next()], drawn[..2]);
    }
}
