//! The bijection between ranks and ids that scatters hot ids over the key space.
//!
//! Ids fall into groups by their residue modulo 1024; each group is rotated by its own amount. The
//! rotations come from `java.util.Random` with the original's seeds, so a graph is laid out as the
//! original's is.

use crate::random::JavaRandom;

/// Most groups.
const GROUPS_MAX: u64 = 1024;

/// A permutation of `[0, n)` and its inverse.
#[derive(Clone, Debug)]
pub struct Shuffle {
    groups: u64,
    /// Ids per group, rounded down; the first `longer` groups have one more.
    group_len: u64,
    longer: u64,
    rotations: Vec<u64>,
}

impl Shuffle {
    /// Out-degree, correlated reads and correlated writes share this seed: what is read often has
    /// many links.
    pub const SEED_LINKS: u64 = 20_343_988_438_726_021;
    /// Uncorrelated reads and writes of links.
    pub const SEED_UNCORRELATED: u64 = 53_238_253_823_453;
    /// Reads, updates and deletes of nodes: what is read often is updated often.
    pub const SEED_NODES: u64 = 4_766_565_305_853_767_165;

    /// The permutation of `[0, n)` that `seed` gives; `n` is at least 1.
    pub fn new(n: u64, seed: u64) -> Self {
        let groups = n.clamp(1, GROUPS_MAX);
        let group_len = n / groups;
        let mut random = JavaRandom::new(seed);
        let rotations = (0..groups).map(|_| random.below(group_len)).collect();
        Shuffle { groups, group_len, longer: n % groups, rotations }
    }

    #[inline]
    fn rotate(&self, index: u64, rotation: impl Fn(u64, u64) -> u64) -> u64 {
        let (position, group) = (index / self.groups, index % self.groups);
        let len = self.group_len + u64::from(group < self.longer);
        // Rotations are below the length, so one subtraction replaces the remainder.
        let moved = position + rotation(self.rotations[group as usize], len);
        group + self.groups * if moved >= len { moved - len } else { moved }
    }

    /// The place of `index` in the permuted order.
    #[inline]
    pub fn permute(&self, index: u64) -> u64 {
        self.rotate(index, |rotation, _| rotation)
    }

    /// The index whose place is `place`.
    #[inline]
    pub fn inverse(&self, place: u64) -> u64 {
        self.rotate(place, |rotation, len| len - rotation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bijection_at_awkward_sizes() {
        for n in [1, 2, 1000, 1023, 1024, 1025, 5000, 123_457] {
            for seed in [Shuffle::SEED_LINKS, Shuffle::SEED_NODES, Shuffle::SEED_UNCORRELATED] {
                let shuffle = Shuffle::new(n, seed);
                let mut hit = vec![false; n as usize];
                for index in 0..n {
                    let place = shuffle.permute(index);
                    assert!(!std::mem::replace(&mut hit[place as usize], true), "{place} twice");
                    assert_eq!(shuffle.inverse(place), index);
                }
            }
        }
    }

    #[test]
    fn bijection_beyond_32_bits() {
        let n = (1 << 32) + 12_345;
        let shuffle = Shuffle::new(n, Shuffle::SEED_LINKS);
        let mut random = crate::random::Random::new(1, 1);
        for index in (0..100_000).map(|_| random.below(n)).chain([0, n - 1, 1 << 32]) {
            let place = shuffle.permute(index);
            assert!(place < n);
            assert_eq!(shuffle.inverse(place), index);
            assert_eq!(place % 1024, index % 1024);
        }
    }

    #[test]
    fn moves_ids_and_differs_by_seed() {
        let links = Shuffle::new(1 << 20, Shuffle::SEED_LINKS);
        let nodes = Shuffle::new(1 << 20, Shuffle::SEED_NODES);
        let moved = (0..1024).filter(|i| links.permute(*i) != *i).count();
        let differ = (0..1024).filter(|i| links.permute(*i) != nodes.permute(*i)).count();
        assert!(moved > 1000 && differ > 1000);
    }
}
