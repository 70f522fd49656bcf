//! Random trees for the picker of compactions: what it picks must be able to go live.
//!
//! 1. A tree has random tables in random levels, as a backlog of flushes and ingests leaves them.
//!    It lives: compactions are picked, by themselves and by hand, run beside each other, and end in
//!    any order; flushes and ingests add tables meanwhile.
//! 2. A pick takes exactly the tables of its target level that its sources overlap, and shares no
//!    table and no range of keys with what is running. It moves no table past a filter.
//! 3. When a compaction ends, its edit is applied to a manifest's state, which checks it as it
//!    checks the engine's: numbers, levels, tables of a level that share no key. The tables that come
//!    out cover what the inputs covered, cut between user keys anywhere.
//! 4. Newer stays above older: two tables that share a key keep their order, whichever of them moves.
//!
//! The picker's own tests say what it picks; this says only what must never happen.

mod judge;
mod tree;

use crate::check::{Check, Finding, Goal, Length, Tally};
use crate::random::Random;
use tree::Tree;

/// Trees of one case.
const TREES: u64 = 500;

/// Trees that were tried.
const TREES_TRIED: &str = "trees";

/// The check; see the module.
pub struct Picker;

impl Check for Picker {
    fn name(&self) -> &'static str {
        "picker"
    }

    fn about(&self) -> &'static str {
        "what is picked in random trees can go live, and newer stays above older"
    }

    fn cases(&self) -> Option<u64> {
        None
    }

    fn goal(&self, length: Length) -> Goal {
        let trees = if length == Length::Short { 50_000 } else { 5_000_000 };
        Goal::Count(TREES_TRIED, trees)
    }

    fn run_case(&self, case: u64, tally: &mut Tally) -> Result<(), Finding> {
        for number in 0..TREES {
            tally.count(TREES_TRIED, 1);
            let mut tree = Tree::new(Random::new(case * TREES + number));
            let lived = tree.live();
            tree.counts.add_to(tally);
            lived.map_err(|what| {
                Finding::new(self, case, format!("tree {number} of the case: {what}"))
                    .with_script(tree.lines())
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::run_case;

    #[test]
    fn what_is_picked_can_go_live() {
        let mut tally = Tally::default();
        for case in 0..40 {
            if let Err(finding) = run_case(&Picker, case, &mut tally) {
                panic!("{finding}");
            }
        }
        assert_eq!(tally.get(TREES_TRIED), 40 * TREES);
        for name in ["picked by themselves", "picked by hand", "ended beside others", "ingests"] {
            assert!(tally.get(name) > 1_000, "{name}: {}", tally.get(name));
        }
    }
}
