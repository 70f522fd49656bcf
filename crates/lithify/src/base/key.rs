//! Comparing keys a word at a time. Keys are short: calling out for a comparison, or missing the
//! processor's cache for each key of a binary search, costs more than the comparison.

use std::cmp::Ordering;

#[inline]
fn word(chunk: &[u8]) -> u64 {
    let mut array = [0; 8];
    array.copy_from_slice(chunk);
    u64::from_le_bytes(array)
}

/// The number of bytes that `a` and `b` begin with in common.
#[inline]
pub(crate) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let size = a.len().min(b.len());
    let (mut a_words, mut b_words) = (a[..size].chunks_exact(8), b[..size].chunks_exact(8));
    let mut common = 0;
    for (a_word, b_word) in a_words.by_ref().zip(b_words.by_ref()) {
        let difference = word(a_word) ^ word(b_word);
        if difference != 0 {
            return common + (difference.trailing_zeros() / 8) as usize;
        }
        common += 8;
    }
    let rest = a_words.remainder().iter().zip(b_words.remainder());
    common + rest.take_while(|(a_byte, b_byte)| a_byte == b_byte).count()
}

/// The order of two keys by bytes.
#[inline]
pub(crate) fn compare_keys(a: &[u8], b: &[u8]) -> Ordering {
    for (a_word, b_word) in a.chunks_exact(8).zip(b.chunks_exact(8)) {
        let (a_word, b_word) = (word(a_word), word(b_word));
        if a_word != b_word {
            return a_word.swap_bytes().cmp(&b_word.swap_bytes());
        }
    }
    let compared = a.len().min(b.len()) / 8 * 8;
    match (&a[compared..], &b[compared..]) {
        ([], []) => Ordering::Equal,
        (a, b) => a.cmp(b),
    }
}

/// The first key behind `key`: nothing is between them.
pub(crate) fn key_behind(key: &[u8]) -> Box<[u8]> {
    [key, &[0]].concat().into()
}

/// The first eight bytes as a number that orders like them; what is missing counts as zeros. Of
/// two keys the smaller never has the larger word.
#[inline]
pub(crate) fn search_word(key: &[u8]) -> u64 {
    match key.first_chunk() {
        Some(chunk) => u64::from_be_bytes(*chunk),
        None => key.iter().rev().fold(0, |word, byte| word >> 8 | u64::from(*byte) << 56),
    }
}

/// What a search among ascending keys looks at first: the word of each key behind the bytes that
/// all of them begin with, side by side.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyWords {
    common: Box<[u8]>,
    words: Box<[u64]>,
}

impl KeyWords {
    /// Of keys that ascend.
    pub(crate) fn new<'k>(keys: impl DoubleEndedIterator<Item = &'k [u8]> + Clone) -> Self {
        let first = keys.clone().next().unwrap_or_default();
        let last = keys.clone().next_back().unwrap_or_default();
        let common = common_prefix(first, last);
        KeyWords {
            common: first[..common].into(),
            words: keys.map(|key| search_word(key.get(common..).unwrap_or_default())).collect(),
        }
    }

    /// The keys that their words cannot order against `key`: those before are smaller than it,
    /// those behind are larger.
    #[inline]
    pub(crate) fn candidates(&self, key: &[u8]) -> std::ops::Range<usize> {
        let (start, rest) = key.split_at(key.len().min(self.common.len()));
        match compare_keys(start, &self.common) {
            Ordering::Less => 0..0,
            Ordering::Greater => self.words.len()..self.words.len(),
            Ordering::Equal => {
                let wanted = search_word(rest);
                let low = self.words.partition_point(|word| *word < wanted);
                let same = self.words[low..].iter().take_while(|word| **word == wanted).count();
                low..low + same
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Vec<Vec<u8>> {
        let mut keys: Vec<Vec<u8>> = vec![vec![], vec![0], vec![0, 0, 0], vec![255; 9], vec![1; 8]];
        keys.extend((0..200_u64).map(|i| {
            let bytes = i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
            let bytes = [&bytes[..(i % 9) as usize], &bytes[..(i % 17 / 2) as usize]].concat();
            bytes[..bytes.len().min((i % 19) as usize)].to_vec()
        }));
        keys
    }

    #[test]
    fn words_and_comparisons_order_like_bytes() {
        for a in &keys() {
            for b in &keys() {
                assert_eq!(compare_keys(a, b), a.cmp(b), "{a:?} {b:?}");
                assert!(a > b || search_word(a) <= search_word(b), "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn candidates_leave_out_only_what_is_smaller_or_larger() {
        for prefix in [&b""[..], b"x", b"a longer one"] {
            let mut sorted: Vec<_> = keys().iter().map(|key| [prefix, key].concat()).collect();
            sorted.sort();
            sorted.dedup();
            let words = KeyWords::new(sorted.iter().map(|key| &key[..]));
            for wanted in sorted.iter().chain(&keys()) {
                let range = words.candidates(wanted);
                assert!(sorted[..range.start].iter().all(|key| key < wanted));
                assert!(sorted[range.end..].iter().all(|key| key > wanted));
            }
        }
        assert_eq!(KeyWords::new([].into_iter()).candidates(b"x"), 0..0);
    }
}
