//! Who changes the database: writers of groups and counters, and the keeper of its tables.

use super::WRITERS;
use super::bench::{Bench, COUNTERS, GROUPS, text};
use crate::random::Random;
use std::time::Duration;

/// Groups that each writer counts up.
pub(super) const COMMITS: u64 = 150;

/// What the keeper rests between two jobs, so that automatic ones come too.
const REST: Duration = Duration::from_millis(1);

/// Counts up groups of its own, so that their numbers only grow, and raises counters of all; gives
/// the number of commits to groups.
pub(super) fn write(bench: &Bench, writer: u64, mut random: Random) -> Result<u64, String> {
    for _ in 0..COMMITS {
        let group = writer + WRITERS * random.below(GROUPS / WRITERS);
        bench.count_up(group, random.one_in(8), &mut random)?;
        if random.one_in(8) {
            bench.sync()?;
        }
        bench.queues.step(bench, writer, &mut random)?;
        // Seldom, so that the filter comes by between.
        if random.one_in(6) {
            bench.filtered.step(bench, writer)?;
        }
        if random.one_in(3) {
            bench.raise(random.below(COUNTERS), &mut random)?;
        }
    }
    Ok(COMMITS)
}

/// Flushes and compacts until the writers are done; gives how often.
pub(super) fn keep(bench: &Bench) -> Result<u64, String> {
    let mut jobs = 0;
    while !bench.is_over() {
        let family = &bench.families[jobs as usize % bench.families.len()];
        let done = match jobs % 3 {
            0 => family.compact_range(..),
            _ => family.flush(),
        };
        done.map_err(text)?;
        jobs += 1;
        std::thread::sleep(REST);
    }
    Ok(jobs)
}
