//! Changes of bytes, from a seed: flips, numbers that decoders stumble over, pieces cut, doubled,
//! moved and taken from other inputs.

use crate::random::Random;

/// Longest input that is made.
const SIZE_MAX: usize = 64 << 10;

/// Numbers at which sizes, counts and offsets go wrong.
const NUMBERS: [u64; 14] = [
    0,
    1,
    2,
    7,
    0x7f,
    0x80,
    0xff,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x00ff_ffff_ffff_ffff,
    u64::MAX,
];

/// A changed copy of `base`; pieces may come from `other`. With `keeps_size` nothing moves, so
/// that what points into the bytes still points at the same.
pub fn mutated(random: &mut Random, base: &[u8], other: &[u8], keeps_size: bool) -> Vec<u8> {
    let mut bytes = base.to_vec();
    for _ in 0..=random.below(4) {
        match keeps_size {
            false if random.one_in(3) => resize(random, &mut bytes, other),
            _ => overwrite(random, &mut bytes, other),
        }
    }
    bytes.truncate(SIZE_MAX);
    bytes
}

fn place(random: &mut Random, bytes: &[u8]) -> usize {
    // Headers and footers have more meaning per byte than what lies between.
    match random.below(4) {
        0 => random.below(bytes.len().min(48) as u64) as usize,
        1 => bytes.len() - 1 - random.below(bytes.len().min(110) as u64) as usize,
        _ => random.below(bytes.len() as u64) as usize,
    }
}

fn overwrite(random: &mut Random, bytes: &mut [u8], other: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    let at = place(random, bytes);
    let rest = bytes.len() - at;
    match random.below(6) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at] = random.next() as u8,
        2 => put_number(random, &mut bytes[at..]),
        3 => step(random, &mut bytes[at..]),
        4 => {
            let length = (1 + random.below(16) as usize).min(rest);
            bytes[at..at + length].fill(*random.pick(&[0, 0xff, b'a']));
        }
        _ => {
            let length = (1 + random.below(32) as usize).min(rest).min(other.len());
            let from = random.below((other.len() - length) as u64 + 1) as usize;
            bytes[at..at + length].copy_from_slice(&other[from..from + length]);
        }
    }
}

/// A number of one to eight bytes, from the list or near to what is there.
fn put_number(random: &mut Random, bytes: &mut [u8]) {
    let width = (1 << random.below(4)).min(bytes.len());
    let number = random.pick(&NUMBERS).wrapping_add(random.below(3)).wrapping_sub(1);
    bytes[..width].copy_from_slice(&number.to_le_bytes()[..width]);
}

fn step(random: &mut Random, bytes: &mut [u8]) {
    let width = (1 << random.below(4)).min(bytes.len());
    let mut word = [0; 8];
    word[..width].copy_from_slice(&bytes[..width]);
    let by = 1 + random.below(16);
    let number = u64::from_le_bytes(word);
    let number = if random.one_in(2) { number.wrapping_add(by) } else { number.wrapping_sub(by) };
    bytes[..width].copy_from_slice(&number.to_le_bytes()[..width]);
}

fn resize(random: &mut Random, bytes: &mut Vec<u8>, other: &[u8]) {
    let at = random.below(bytes.len() as u64 + 1) as usize;
    let length = 1 + random.below(40) as usize;
    match random.below(5) {
        0 => bytes.truncate(at),
        1 => {
            let end = (at + length).min(bytes.len());
            bytes.drain(at..end);
        }
        2 => {
            let end = (at + length).min(bytes.len());
            let piece = bytes[at..end].to_vec();
            bytes.splice(at..at, piece);
        }
        3 => {
            let filling = random.next() as u8;
            bytes.splice(at..at, std::iter::repeat_n(filling, length));
        }
        _ => {
            let from = random.below(other.len() as u64 + 1) as usize;
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
    }
}
