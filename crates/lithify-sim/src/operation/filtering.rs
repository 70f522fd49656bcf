//! The rule of the compaction filter that a family of a case may have: it removes rows and changes others.
//!
//! The rule goes by key and value alone, and leaves what it has made as it is. So a row tells whether it
//! can still be changed, and a model knows the few rows that may come of it. Of values that merge operands
//! make, any part may have been shown to the filter alone: the rule changes each byte by itself, so
//! that it makes of a whole what it makes of the parts.

use super::operators::is_merged;
use crate::digest;
use lithify::FilterDecision;

/// What the rule does to the rows of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Stays,
    Changes,
    Goes,
}

fn fate(key: &[u8]) -> Fate {
    // Most rows stay: trees are to be deep.
    match digest::of_bytes(2, key) % 8 {
        0 => Fate::Goes,
        1..=3 => Fate::Changes,
        _ => Fate::Stays,
    }
}

fn changed(byte: u8) -> u8 {
    byte & !1
}

/// What the rule makes of a row.
pub fn decide(key: &[u8], value: &[u8]) -> FilterDecision {
    match fate(key) {
        Fate::Goes => FilterDecision::Remove,
        Fate::Changes if value.iter().any(|byte| changed(*byte) != *byte) => {
            FilterDecision::Change(value.iter().copied().map(changed).collect())
        }
        Fate::Changes | Fate::Stays => FilterDecision::Keep,
    }
}

/// Whether the rule may make one row of another in the family of a slot. In one with a merge operator it may
/// have been applied to what lies below the newest operands.
pub fn may_become(slot: usize, key: &[u8], before: &[u8], after: Option<&[u8]>) -> bool {
    match (fate(key), after) {
        (_, Some(after)) if after == before => true,
        (Fate::Goes, Some(operands)) => is_merged(slot) && before.ends_with(operands),
        (Fate::Goes, None) => true,
        (Fate::Changes, Some(after)) => {
            let mut bytes = before.iter().zip(after);
            let is_changed = |(before, after): (&u8, &u8)| changed(*before) == *after;
            before.len() == after.len()
                && match is_merged(slot) {
                    true => {
                        bytes.all(|(before, after)| before == after || is_changed((before, after)))
                    }
                    false => bytes.all(is_changed),
                }
        }
        (Fate::Changes | Fate::Stays, _) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MERGED: usize = 0;
    const PLAIN: usize = 2;

    fn key(fate_wanted: Fate) -> Vec<u8> {
        let keys = (0..100_u32).map(|number| number.to_be_bytes().to_vec());
        keys.into_iter().find(|key| fate(key) == fate_wanted).unwrap()
    }

    #[test]
    fn the_rule_leaves_what_it_has_made() {
        let key = key(Fate::Changes);
        let FilterDecision::Change(value) = decide(&key, &[1, 2, 3]) else { panic!("not changed") };
        assert_eq!(value, [0, 2, 2]);
        assert_eq!(decide(&key, &value), FilterDecision::Keep);
    }

    #[test]
    fn what_may_become_of_a_row() {
        let may = |fate, slot, after| may_become(slot, &key(fate), &[1, 2, 3], after);
        for slot in [MERGED, PLAIN] {
            assert!(may(Fate::Stays, slot, Some(&[1, 2, 3])));
            assert!(!may(Fate::Stays, slot, None) && !may(Fate::Stays, slot, Some(&[0, 2, 2])));
            assert!(may(Fate::Changes, slot, Some(&[0, 2, 2])));
            assert!(!may(Fate::Changes, slot, None) && !may(Fate::Changes, slot, Some(&[0, 2])));
            assert!(may(Fate::Goes, slot, None) && !may(Fate::Goes, slot, Some(&[0, 2, 2])));
        }
        let in_part: [(Fate, &[u8]); 2] = [(Fate::Changes, &[0, 2, 3]), (Fate::Goes, &[3])];
        for (fate, part) in in_part {
            assert!(may(fate, MERGED, Some(part)) && !may(fate, PLAIN, Some(part)));
        }
    }
}
