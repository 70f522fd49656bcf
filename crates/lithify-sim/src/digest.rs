//! Fingerprints of 64 bits: of bytes and of rows; that of a disk is its own. Equal things have equal ones; that
//! different things have different ones is as good as certain, not sure.

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes one more word into a fingerprint.
pub fn mix(digest: u64, word: u64) -> u64 {
    let product = u128::from(digest ^ word ^ 0x5851_f42d_4c95_7f2d) * u128::from(MULTIPLIER);
    ((product >> 64) as u64 ^ product as u64).rotate_left(23) ^ word
}

/// The fingerprint of bytes, from `seed`.
pub fn of_bytes(seed: u64, bytes: &[u8]) -> u64 {
    let mut digest = mix(seed, bytes.len() as u64);
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        digest = mix(digest, u64::from_le_bytes(*word));
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    mix(digest, u64::from_le_bytes(last))
}

/// The fingerprint of a row. Those of a map are added up, so that the order does not matter and
/// a row can be taken out again.
pub fn of_row(key: &[u8], value: &[u8]) -> u64 {
    of_bytes(of_bytes(1, key), value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn lengths_bits_and_borders_count() {
        let mut digests = BTreeSet::new();
        for length in 0..40 {
            digests.insert(of_bytes(0, &vec![0; length]));
            for bit in 0..8 * length {
                let mut bytes = vec![0; length];
                bytes[bit / 8] |= 1 << (bit % 8);
                digests.insert(of_bytes(0, &bytes));
            }
        }
        assert_eq!(digests.len(), 40 + 8 * (0..40).sum::<usize>());
        assert_ne!(of_row(b"ab", b"c"), of_row(b"a", b"bc"));
    }
}
