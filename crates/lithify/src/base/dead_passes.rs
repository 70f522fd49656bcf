//! What scans have paid for the dead entries of a run, against what writing the run anew costs.
//!
//! It is the question whether to rent or to buy. A scan that passes a dead entry pays a rent; a flush
//! or compaction lets the entry go, once, for a price. Nobody knows how many scans are still to come.
//! Whoever buys as soon as the rents have reached the price pays at most twice what he would have paid
//! with foresight.
//!
//! Any thread may add.

use std::sync::atomic::{AtomicU64, Ordering};

/// A scan passes a dead entry in 60 ns in memory, and in 125 ns in a table where rows expire. A compaction
/// takes 234 ns of processor time for an entry of 100 bytes, with zstd-1 (`examples/expired_head.rs`, two
/// shared cores). Four passes pay for that; twice as many, because bytes are written too.
const PASSES_PER_ENTRY: u64 = 8;

/// A job has a price however small it is: a file, its syncs and an edit of the manifest, about 10 ms.
const PASSES_PER_JOB: u64 = 100_000;

/// The passes for which so many entries are written anew.
pub(crate) fn price_of_rewrite(entries: u64) -> u64 {
    entries.saturating_mul(PASSES_PER_ENTRY).saturating_add(PASSES_PER_JOB)
}

/// So often scans have passed a dead entry of one run. A new run begins at zero.
#[derive(Debug, Default)]
pub(crate) struct DeadPasses(AtomicU64);

impl DeadPasses {
    /// Scans have passed so many more, in a run of so many entries. True as often as they have paid
    /// the price of the run once more: then it is worth while to ask what can be done.
    pub(crate) fn add(&self, passes: u64, entries: u64) -> bool {
        let price = price_of_rewrite(entries);
        let before = self.0.fetch_add(passes, Ordering::Relaxed);
        before / price < before.saturating_add(passes) / price
    }

    /// So many until now.
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Whether scans have paid for so many entries to be written anew.
    pub(crate) fn pay_for(&self, entries: u64) -> bool {
        self.count() >= price_of_rewrite(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_that_the_price_is_paid_is_told_once() {
        let (passes, price) = (DeadPasses::default(), price_of_rewrite(1_000));
        assert!(!passes.add(price - 1, 1_000) && !passes.pay_for(1_000));
        assert!(passes.add(1, 1_000) && passes.pay_for(1_000));
        assert!(!passes.add(price - 1, 1_000) && passes.add(1, 1_000));
        assert!(!passes.pay_for(100_000) && passes.count() == 2 * price);
    }
}
