//! The seeded generator of the memory world: the same seed gives the same world.

/// One step of the splitmix64 sequence.
pub(super) const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Scrambles a position of the sequence into its output.
pub(super) fn mix(position: u64) -> u64 {
    let z = (position ^ (position >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A splitmix64 generator.
pub(super) struct Random(u64);

impl Random {
    /// A generator for one thing (a file, a directory) of a seeded choice.
    pub(super) fn new(seed: u64, thing: u64) -> Self {
        Random(mix(seed.wrapping_add(STEP)) ^ mix(thing.wrapping_mul(STEP)))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// A number in `0..bound`; 0 for a bound of 0.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    /// True `percent` times in a hundred.
    pub(super) fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}
