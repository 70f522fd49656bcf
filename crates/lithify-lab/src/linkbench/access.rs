//! Which ids operations go to: skewed ranks, scattered over the key space.

use serde::{Deserialize, Serialize};

use super::shuffle::Shuffle;
use crate::random::Random;

/// Below this many items the normalising sum is exact; above it the closed form is within 0.2 %.
const ZETA_EXACT_BELOW: u64 = 100_000;

/// Zipf-distributed ranks by the method of Gray et al. (1994): constant time, no table.
#[derive(Clone, Debug)]
pub struct Zipf {
    items: u64,
    zeta: f64,
    /// Up to here (in units of `zeta`) lies rank 1.
    second: f64,
    alpha: f64,
    eta: f64,
}

impl Zipf {
    /// Ranks in `[0, items)` with exponent `shape` in (0, 1).
    pub fn new(items: u64, shape: f64) -> Self {
        let n = items as f64;
        let zeta = if items < ZETA_EXACT_BELOW {
            (1..=items).map(|k| (k as f64).powf(-shape)).sum()
        } else {
            n.powf(1.0 - shape) / (1.0 - shape) + 0.58 - 1.0 / (1.0 - shape)
        };
        let second = 1.0 + 2f64.powf(-shape);
        let eta = (1.0 - (2.0 / n).powf(1.0 - shape)) / (1.0 - second / zeta);
        Zipf { items, zeta, second, alpha: 1.0 / (1.0 - shape), eta }
    }

    /// The rank at `p`, uniform in [0, 1).
    #[inline]
    pub fn rank(&self, p: f64) -> u64 {
        let scaled = p * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < self.second {
            return 1.min(self.items - 1);
        }
        let rank = self.items as f64 * (self.eta * p - self.eta + 1.0).powf(self.alpha);
        (rank as u64).min(self.items - 1)
    }
}

/// A distribution of ranks as a profile names it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccessShape {
    /// Zipf with this exponent.
    Zipf(f64),
    /// All alike.
    Uniform,
}

#[derive(Clone, Debug)]
enum Ranks {
    Zipf(Zipf),
    Uniform(u64),
}

/// Draws offsets of ids in `[0, n)`.
#[derive(Clone, Debug)]
pub struct Access {
    ranks: Ranks,
    shuffle: Shuffle,
}

impl Access {
    /// Ranks of `shape` over `n` ids, scattered by the shuffle of `seed`. Uniform ranks are not
    /// shuffled: it would change nothing.
    pub fn new(n: u64, shape: AccessShape, seed: u64) -> Self {
        let ranks = match shape {
            AccessShape::Zipf(exponent) => Ranks::Zipf(Zipf::new(n, exponent)),
            AccessShape::Uniform => Ranks::Uniform(n),
        };
        Access { ranks, shuffle: Shuffle::new(n, seed) }
    }

    /// The offset of the next id.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> u64 {
        match &self.ranks {
            Ranks::Zipf(zipf) => self.shuffle.permute(zipf.rank(random.unit())),
            Ranks::Uniform(n) => random.below(*n),
        }
    }
}

/// A mix of two accesses to links: correlated with the number of links, and not.
#[derive(Clone, Debug)]
pub struct BlendedAccess {
    /// Hot ids are those with many links.
    pub correlated: Access,
    /// Hot ids are any.
    pub uncorrelated: Access,
    /// Share of the uncorrelated draws.
    pub uncorrelated_share: f64,
}

impl BlendedAccess {
    /// The offset of the next id.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> u64 {
        let correlated = random.unit() >= self.uncorrelated_share;
        if correlated { self.correlated.draw(random) } else { self.uncorrelated.draw(random) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Published shares of accesses that go to the hottest 0.1, 1 and 10 % of the ids.
    #[test]
    fn zipf_shares_match_the_table() {
        let rows = [
            (1_000_000u64, 0.8, [20.7, 36.2, 60.9]),
            (1_000_000, 0.741, [14.7, 28.6, 54.0]),
            (1_000_000, 0.625, [7.1, 17.4, 41.9]),
            (1_000_000, 0.606, [6.3, 16.0, 40.2]),
            (1_000_000_000, 0.8, [24.1, 39.0, 62.6]),
            (1_000_000_000, 0.741, [16.4, 30.1, 54.9]),
            (1_000_000_000, 0.625, [7.5, 17.8, 42.2]),
        ];
        let draws = 400_000;
        for (n, shape, expected) in rows {
            let zipf = Zipf::new(n, shape);
            let mut random = Random::new(3, n);
            let mut hits = [0u32; 3];
            for _ in 0..draws {
                let rank = zipf.rank(random.unit());
                for (hit, part) in hits.iter_mut().zip([1000, 100, 10]) {
                    *hit += u32::from(rank < n / part);
                }
            }
            for (hit, share) in hits.iter().zip(expected) {
                let found = f64::from(*hit) / f64::from(draws) * 100.0;
                assert!((found - share).abs() < 1.0, "n {n} s {shape}: {found}, not {share}");
            }
        }
    }

    #[test]
    fn hottest_rank_and_bounds() {
        let zipf = Zipf::new(1_000_000, 0.8);
        let mut random = Random::new(5, 5);
        let zeros = (0..1_000_000).filter(|_| zipf.rank(random.unit()) == 0).count();
        assert!((zeros as f64 / 1e6 - 0.0134).abs() < 0.0005, "{zeros}");
        for n in [1, 2, 3, 10] {
            let zipf = Zipf::new(n, 0.8);
            for p in [0.0, 0.3, 0.7, 0.9999, 1.0 - f64::EPSILON] {
                assert!(zipf.rank(p) < n);
            }
        }
    }

    #[test]
    fn uniform_and_blend_reach_everything() {
        let n = 50;
        let blend = BlendedAccess {
            correlated: Access::new(n, AccessShape::Zipf(0.5), Shuffle::SEED_LINKS),
            uncorrelated: Access::new(n, AccessShape::Uniform, Shuffle::SEED_NODES),
            uncorrelated_share: 0.5,
        };
        let mut random = Random::new(1, 1);
        let mut seen = [false; 50];
        (0..5000).for_each(|_| seen[blend.draw(&mut random) as usize] = true);
        assert_eq!(seen, [true; 50]);
    }
}
