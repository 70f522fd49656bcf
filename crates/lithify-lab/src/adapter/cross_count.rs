//! The same work counted twice: by who asks an engine, and by the engine itself.
//!
//! A server that did less than it was asked for, or something else, makes every figure of its row
//! worthless; a client that asks twice does so too. Where an engine counts statements or rows, its
//! adapter counts them as well, and reports hold the two against each other.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One kind of work, counted from both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrossCount {
    /// By who asks.
    pub asked: u64,
    /// By the engine.
    pub counted: u64,
}

/// Counts by what is counted ("selects", "rows updated", ...).
pub type CrossCounts = BTreeMap<String, CrossCount>;

impl CrossCount {
    /// How far the two are apart, as a share of what was asked; 0 when they agree.
    pub fn difference(&self) -> f64 {
        self.asked.abs_diff(self.counted) as f64 / self.asked.max(1) as f64
    }
}

/// What was counted between two moments.
pub fn between(before: &CrossCounts, after: &CrossCounts) -> CrossCounts {
    let since = |(what, now): (&String, &CrossCount)| {
        let then = before.get(what).copied().unwrap_or_default();
        let count = CrossCount {
            asked: now.asked.saturating_sub(then.asked),
            counted: now.counted.saturating_sub(then.counted),
        };
        (what.clone(), count)
    };
    after.iter().map(since).collect()
}

/// Adds `more` to `sum`.
pub fn add(sum: &mut CrossCounts, more: &CrossCounts) {
    for (what, count) in more {
        let of = sum.entry(what.clone()).or_default();
        of.asked += count.asked;
        of.counted += count.counted;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(asked: u64, counted: u64) -> CrossCounts {
        [("selects".to_owned(), CrossCount { asked, counted })].into()
    }

    #[test]
    fn counts_are_of_the_time_between_and_add_up() {
        let mut sum = between(&counts(10, 12), &counts(110, 111));
        assert_eq!(sum, counts(100, 99));
        assert!((sum["selects"].difference() - 0.01).abs() < 1e-9);
        add(&mut sum, &between(&CrossCounts::new(), &counts(1, 2)));
        assert_eq!(sum, counts(101, 101));
        assert!(sum["selects"].difference() == 0.0);
        assert_eq!(CrossCount::default().difference(), 0.0);
    }
}
