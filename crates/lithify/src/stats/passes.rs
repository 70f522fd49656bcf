//! Where a scan passed most dead entries at once: of a column family, so that its page can name the keys.
//!
//! Any thread may note. Only a move that passed more than all before takes the mutex.

use crate::base::lock;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// A move that passed fewer is no trouble.
const ENTRIES_MIN: u64 = 1_000;

/// The first bytes of a key are enough to know it by.
const KEY_BYTES_MAX: usize = 64;

/// A move of a cursor over dead entries: tombstones, older versions, expired rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadPass {
    /// How many it passed.
    pub entries: u64,
    /// A key at or before the first of them; the first 64 bytes.
    pub from: Box<[u8]>,
    /// A key at or behind the last.
    pub to: Box<[u8]>,
}

/// See the module.
#[derive(Default)]
pub struct LongestPass {
    entries: AtomicU64,
    pass: Mutex<DeadPass>,
}

impl LongestPass {
    /// A move has passed so many dead entries, between these keys.
    pub fn note(&self, entries: u64, from: &[u8], to: &[u8]) {
        if entries < ENTRIES_MIN || entries <= self.entries.load(Ordering::Relaxed) {
            return;
        }
        let mut pass = lock(&self.pass);
        if entries > pass.entries {
            let start = |key: &[u8]| key[..key.len().min(KEY_BYTES_MAX)].into();
            *pass = DeadPass { entries, from: start(from), to: start(to) };
            self.entries.store(entries, Ordering::Relaxed);
        }
    }

    /// The longest one so far, if one was long.
    pub fn get(&self) -> Option<DeadPass> {
        let pass = lock(&self.pass);
        (pass.entries > 0).then(|| pass.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_pass_stays() {
        let longest = LongestPass::default();
        longest.note(999, b"a", b"b");
        assert_eq!(longest.get(), None);
        longest.note(5_000, &[7; 100], b"c");
        longest.note(4_000, b"d", b"e");
        let pass = longest.get().unwrap();
        assert_eq!((pass.entries, pass.from.len(), &*pass.to), (5_000, 64, &b"c"[..]));
    }
}
