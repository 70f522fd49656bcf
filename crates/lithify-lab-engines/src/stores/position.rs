//! A key in front of which a number of bytes lie: found by halving the space of keys.

/// More bytes than keys have in common are looked at; that tells 2^128 keys from each other.
const TOLD_BYTES: usize = 16;

/// A key in front of which about `wanted` bytes lie. `bytes_before` grows with the key.
///
/// # Errors
/// Those of `bytes_before`.
pub(super) fn find<E>(
    first: &[u8],
    last: &[u8],
    wanted: u64,
    mut bytes_before: impl FnMut(&[u8]) -> Result<u64, E>,
) -> Result<Vec<u8>, E> {
    if wanted == 0 {
        return Ok(first.to_vec());
    }
    let shared = first.iter().zip(last).take_while(|(a, b)| a == b).count();
    let prefix = &first[..shared];
    let key = |number: u128| [prefix, &number.to_be_bytes()].concat();
    let (mut low, mut high) = (number(&first[shared..]), number(&last[shared..]));
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if bytes_before(&key(middle))? < wanted {
            low = middle;
        } else {
            high = middle;
        }
    }
    // Every key from here on has at least so many bytes in front of it.
    Ok(key(high).max(first.to_vec()))
}

/// The first bytes as a number.
fn number(key: &[u8]) -> u128 {
    let mut bytes = [0; TOLD_BYTES];
    let length = key.len().min(TOLD_BYTES);
    bytes[..length].copy_from_slice(&key[..length]);
    u128::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_the_bytes_are_found_whatever_keys_are_like() {
        let keys: Vec<Vec<u8>> = (0..1_000_u32)
            // Most keys are near the end of their space.
            .map(|n| format!("user{:010}", u64::from(n).pow(3)).into_bytes())
            .collect();
        let before = |key: &[u8]| -> Result<u64, ()> {
            Ok(keys.partition_point(|other| other.as_slice() < key) as u64 * 100)
        };
        for share in [0_u64, 1, 250, 500, 999] {
            let found = find(&keys[0], &keys[999], share * 100, before).expect("is found");
            let at = keys.partition_point(|other| *other < found) as u64;
            assert_eq!(at, share, "{}", String::from_utf8_lossy(&found));
        }
        let same = find(b"k", b"k", 100, |_| Ok::<u64, ()>(0)).expect("is found");
        assert!(same.starts_with(b"k"));
    }
}
