//! Random numbers: a fast seeded generator, and the one that the original's shuffles were made by.
//!
//! [`Random`] is xoshiro256++ (public domain algorithm), one per thread, seeded from a master seed
//! and a stream number, so that a run is reproducible. [`JavaRandom`] reproduces `java.util.Random`
//! bit by bit. Does not: serve any cryptographic use.

/// SplitMix64: turns any seed into well-mixed words.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// xoshiro256++.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// Stream `stream` of the family `seed`: the same pair always gives the same numbers.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut mixer = seed;
        let mut mixer = split_mix(&mut mixer) ^ stream.wrapping_mul(0xD134_2543_DE82_EF95);
        Random { state: [(); 4].map(|()| split_mix(&mut mixer)) }
    }

    /// The next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let [s0, s1, s2, s3] = &mut self.state;
        let result = s0.wrapping_add(*s3).rotate_left(23).wrapping_add(*s0);
        let t = *s1 << 17;
        *s2 ^= *s0;
        *s3 ^= *s1;
        *s1 ^= *s2;
        *s0 ^= *s3;
        *s2 ^= t;
        *s3 = s3.rotate_left(45);
        result
    }

    /// Uniform in [0, 1), 53 bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in [0, n), 0 for n = 0. The bias is below n / 2^64: nothing for our n.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// True with probability `p`.
    #[inline]
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// Standard normal (Box-Muller; the second value is not kept, which keeps streams simple).
    #[inline]
    pub fn gaussian(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

/// `java.util.Random`: a 48-bit linear congruential generator.
#[derive(Clone, Debug)]
pub struct JavaRandom {
    state: u64,
}

impl JavaRandom {
    const MASK: u64 = (1 << 48) - 1;
    const MULTIPLIER: u64 = 0x5_DEEC_E66D;

    /// Seeded as the Java constructor does.
    pub fn new(seed: u64) -> Self {
        JavaRandom { state: (seed ^ Self::MULTIPLIER) & Self::MASK }
    }

    fn next(&mut self, bits: u32) -> u64 {
        self.state = self.state.wrapping_mul(Self::MULTIPLIER).wrapping_add(11) & Self::MASK;
        self.state >> (48 - bits)
    }

    /// `nextInt(n)` for n below 2^31. The original cuts larger ranges to 32 bits and misbehaves;
    /// here two draws are joined and reduced instead.
    pub fn below(&mut self, n: u64) -> u64 {
        if n == 0 {
            return 0;
        }
        if n >= 1 << 31 {
            let wide = self.next(32) << 32 | self.next(32);
            return wide % n;
        }
        if n.is_power_of_two() {
            return (n * self.next(31)) >> 31;
        }
        loop {
            let drawn = self.next(31);
            let value = drawn % n;
            // Rejects the last, incomplete run of n values below 2^31.
            if drawn - value + (n - 1) < 1 << 31 {
                return value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::random::*;

    #[test]
    fn xoshiro_matches_its_reference() {
        let mut random = Random { state: [1, 2, 3, 4] };
        let expected = [
            41943041,
            58720359,
            3588806011781223,
            3591011842654386,
            9228616714210784205,
            9973669472204895162,
        ];
        assert_eq!(expected.map(|_| random.next_u64()), expected);
    }

    #[test]
    fn java_random_matches_its_reference() {
        // new Random(42).nextInt(10), five times; then nextInt(16) (a power of two).
        let mut random = JavaRandom::new(42);
        assert_eq!([(); 5].map(|()| random.below(10)), [0, 3, 8, 4, 0]);
        let mut first = JavaRandom::new(0);
        // new Random(0).nextInt() is -1155484576; its top bit is dropped by next(31).
        assert_eq!(first.next(32), u64::from(-1155484576i32 as u32));
        let mut power = JavaRandom::new(0);
        assert_eq!(power.below(16), u64::from(-1155484576i32 as u32) >> 28);
    }

    #[test]
    fn moments() {
        let mut random = Random::new(7, 1);
        let n = 200_000;
        let (mut unit, mut normal, mut square) = (0.0, 0.0, 0.0);
        for _ in 0..n {
            unit += random.unit();
            let g = random.gaussian();
            normal += g;
            square += g * g;
            assert!(random.below(7) < 7);
        }
        let n = f64::from(n);
        assert!((unit / n - 0.5).abs() < 0.005);
        assert!((normal / n).abs() < 0.01);
        assert!((square / n - 1.0).abs() < 0.02);
        assert_ne!(Random::new(7, 1).next_u64(), Random::new(7, 2).next_u64());
        assert_ne!(Random::new(7, 1).next_u64(), Random::new(8, 1).next_u64());
    }
}
