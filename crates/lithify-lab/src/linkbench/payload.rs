//! The data of nodes and links: sizes and bytes that compress as the original's do.
//!
//! Sizes are log-normal. Bytes are cut in chunks, each either fresh or a copy of a random window
//! of a buffer, the motif, that one generator keeps for its whole life. The motif comes from the
//! master seed and the generator's number, so all threads share it and data are reproducible.

use serde::{Deserialize, Serialize};

use crate::random::Random;

/// Chunks are this long, and the last one shorter.
const CHUNK_BYTES: usize = 128;

/// What one kind of payload looks like.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PayloadShape {
    /// Median of the sizes.
    pub median_bytes: f64,
    /// Sizes stay below this.
    pub limit_bytes: usize,
    /// Smallest byte.
    pub first_byte: u8,
    /// Largest byte.
    pub last_byte: u8,
    /// Share of the chunks that are fresh bytes.
    pub uniqueness: f64,
    /// Length of the motif.
    pub motif_bytes: usize,
}

/// Generates payloads of one shape.
#[derive(Clone, Debug)]
pub struct PayloadGenerator {
    shape: PayloadShape,
    log_median: f64,
    motif: Vec<u8>,
}

/// Standard deviation of the sizes' logarithm.
const SIGMA: f64 = 1.0;

impl PayloadGenerator {
    /// The generator whose motif is drawn from `random`.
    pub fn new(shape: PayloadShape, random: &mut Random) -> Self {
        let mut motif = vec![0; shape.motif_bytes.max(CHUNK_BYTES)];
        let mut generator =
            PayloadGenerator { shape, log_median: shape.median_bytes.ln(), motif: Vec::new() };
        generator.fill_fresh(&mut motif, random);
        generator.motif = motif;
        generator
    }

    /// Replaces `payload` by the next one.
    #[inline]
    pub fn generate(&self, random: &mut Random, payload: &mut Vec<u8>) {
        // A negative or huge float saturates in the cast.
        let size = (SIGMA * random.gaussian() + self.log_median).exp().round() as usize;
        payload.clear();
        payload.resize(size.min(self.shape.limit_bytes - 1), 0);
        for chunk in payload.chunks_mut(CHUNK_BYTES) {
            if random.chance(self.shape.uniqueness) {
                self.fill_fresh(chunk, random);
            } else {
                let windows = self.motif.len() - CHUNK_BYTES + 1;
                let start = random.below(windows as u64) as usize;
                chunk.copy_from_slice(&self.motif[start..start + chunk.len()]);
            }
        }
    }

    /// Random bytes of the range, four from each draw: 16 bits each leave no visible bias.
    #[inline]
    fn fill_fresh(&self, bytes: &mut [u8], random: &mut Random) {
        let range = u64::from(self.shape.last_byte - self.shape.first_byte) + 1;
        for group in bytes.chunks_mut(4) {
            let mut draw = random.next_u64();
            for byte in group {
                *byte = self.shape.first_byte + (((draw & 0xFFFF) * range) >> 16) as u8;
                draw >>= 16;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::profile::Profile;
    use super::*;

    fn sizes(shape: PayloadShape) -> Vec<usize> {
        let mut random = Random::new(11, 0);
        let generator = PayloadGenerator::new(shape, &mut random);
        let mut payload = Vec::new();
        let mut sizes: Vec<usize> = (0..400_000)
            .map(|_| {
                generator.generate(&mut random, &mut payload);
                payload.len()
            })
            .collect();
        sizes.sort_unstable();
        sizes
    }

    #[test]
    fn sizes_match_the_published_moments() {
        let profile = Profile::lb2013();
        let of_2020 = Profile::lb2020();
        for (shape, published) in [(of_2020.link_payload, 37.1), (of_2020.node_payload, 276.8)] {
            let sizes = sizes(shape);
            let mean = sizes.iter().sum::<usize>() as f64 / sizes.len() as f64;
            assert!((mean / published - 1.0).abs() < 0.02, "mean {mean}, expected {published}");
        }
        for (shape, mean, p90, p99) in
            [(profile.link_payload, 13.2, 29, 82), (profile.node_payload, 209.9, 456, 1293)]
        {
            let sizes = sizes(shape);
            let n = sizes.len();
            let found = sizes.iter().sum::<usize>() as f64 / n as f64;
            assert!((found / mean - 1.0).abs() < 0.02, "mean {found}, expected {mean}");
            assert_eq!(sizes[n / 2] as f64, shape.median_bytes);
            assert!((sizes[n * 90 / 100] as f64 / f64::from(p90) - 1.0).abs() < 0.04);
            assert!((sizes[n * 99 / 100] as f64 / f64::from(p99) - 1.0).abs() < 0.04);
            assert!(sizes[n - 1] < shape.limit_bytes);
        }
        let links = sizes(profile.link_payload);
        let empty = links.iter().filter(|size| **size == 0).count() as f64 / links.len() as f64;
        assert!((empty - 0.003).abs() < 0.001, "{empty} empty");
    }

    #[test]
    fn bytes_stay_in_range_and_repeat_the_motif() {
        for uniqueness in [0.0, 1.0] {
            let shape = PayloadShape { uniqueness, ..Profile::lb2013().node_payload };
            let mut random = Random::new(1, 2);
            let generator = PayloadGenerator::new(shape, &mut random);
            let mut payload = Vec::new();
            let (mut bytes, mut copied, mut chunks) = ([0u32; 256], 0, 0);
            for _ in 0..2000 {
                generator.generate(&mut random, &mut payload);
                payload.iter().for_each(|byte| bytes[usize::from(*byte)] += 1);
                for chunk in payload.chunks(CHUNK_BYTES).filter(|chunk| chunk.len() > 16) {
                    chunks += 1;
                    copied += u32::from(generator.motif.windows(chunk.len()).any(|w| w == chunk));
                }
            }
            assert_eq!(copied, if uniqueness == 0.0 { chunks } else { 0 });
            assert!(bytes[..50].iter().chain(&bytes[221..]).all(|count| *count == 0));
            if uniqueness == 1.0 {
                let mean = f64::from(bytes.iter().sum::<u32>()) / 171.0;
                assert!(bytes[50..=220].iter().all(|c| (f64::from(*c) / mean - 1.0).abs() < 0.2));
            }
        }
    }
}
