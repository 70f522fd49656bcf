//! The family with a time to live. Time passes in half-lives, which are so long that what else passes of
//! it does not matter: a row has expired when two have passed since it was written.
//!
//! A filter removes what has expired, which nobody can tell from a filter that does nothing, if it is asked
//! of no row that a snapshot sees.

use lithify::{CfOptions, ColumnFamily, CompactionFilter, FilterDecision};

/// The slot of the family with a time to live.
pub const TIMED: usize = 3;

/// Half of it, in seconds: twelve days.
const HALF_LIFE_S: u64 = 1_000_000;

/// A row expires once it is older than this.
const TIME_TO_LIVE_S: u64 = 2 * HALF_LIFE_S - 1;

/// A half in microseconds.
pub const HALF_LIFE_US: u64 = HALF_LIFE_S * 1_000_000;

/// How many halves have passed by a virtual clock.
pub fn half_lives(now_us: u64) -> u32 {
    (now_us / HALF_LIFE_US) as u32
}

/// Options with the time to live of a slot.
pub(super) fn with_lifetime(options: CfOptions, slot: usize) -> CfOptions {
    let time_to_live_s = if slot == TIMED { TIME_TO_LIVE_S } else { 0 };
    CfOptions { time_to_live_s, ..options }
}

/// Gives a family with a time to live such a filter, in one case of three, whose seed this is.
pub fn supply_filter(family: &ColumnFamily, slot: usize, seed: u64) {
    if slot != TIMED || !seed.is_multiple_of(3) {
        return;
    }
    family.supply_compaction_filter(CompactionFilter::new("over", |row| {
        Ok(match row.key.last() {
            _ if row.age_s > TIME_TO_LIVE_S => FilterDecision::Remove,
            Some(byte) if byte % 2 == 1 => FilterDecision::Change(row.value.to_vec()),
            _ => FilterDecision::Keep,
        })
    }));
}
