//! What all cursors over the rows of a column family share.

use super::{Announced, DeadRanges};
use crate::Result;
use crate::operator::MergeOperator;
use crate::retention::{Expiry, split};
use crate::stats::{FamilyLedger, LongestPass};
use arc_swap::ArcSwap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// One for each family; a cursor holds it, and with it needs nothing else of its family.
pub(crate) struct FamilyRows {
    /// Where what concerns the family alone is counted.
    pub(crate) ledger: Arc<FamilyLedger>,
    /// Where a scan passed most dead entries at once.
    pub(crate) longest_pass: LongestPass,
    /// Where scans have found that there is no row.
    pub(crate) dead_ranges: DeadRanges,
    operator: ArcSwap<MergeOperator>,
    /// 0: its rows have no write times and never expire.
    time_to_live_s: AtomicU64,
    /// Whether a put is stored with more than its value, or its value is checked.
    has_special_puts: AtomicBool,
}

impl FamilyRows {
    pub(crate) fn new(
        ledger: Arc<FamilyLedger>,
        announced: &Arc<Announced>,
        (operator, time_to_live_s): (MergeOperator, u64),
    ) -> Self {
        let has_special_puts = time_to_live_s > 0 || operator.has_fixed_length();
        FamilyRows {
            has_special_puts: AtomicBool::new(has_special_puts),
            ledger,
            longest_pass: LongestPass::default(),
            dead_ranges: DeadRanges::new(announced),
            operator: ArcSwap::from_pointee(operator),
            time_to_live_s: AtomicU64::new(time_to_live_s),
        }
    }

    /// Whether values are stored with the times of their writing. Never changes.
    #[inline]
    pub(crate) fn have_write_times(&self) -> bool {
        self.time_to_live_s.load(Ordering::Relaxed) > 0
    }

    /// Whether a put is more than its key and value as they are given.
    #[inline]
    pub(crate) fn have_special_puts(&self) -> bool {
        self.has_special_puts.load(Ordering::Relaxed)
    }

    /// Which rows have expired, as of a moment in seconds since 1970; `None` if none ever does.
    #[inline]
    pub(crate) fn expiry(&self, now_s: impl FnOnce() -> u64) -> Option<Expiry> {
        match self.time_to_live_s.load(Ordering::Relaxed) {
            0 => None,
            time_to_live_s => Some(Expiry::at(now_s(), time_to_live_s)),
        }
    }

    /// The user's value of a stored one.
    pub(crate) fn value_of<'a>(&self, stored: &'a [u8]) -> Result<&'a [u8]> {
        match self.have_write_times() {
            true => Ok(split(stored)?.0),
            false => Ok(stored),
        }
    }

    pub(crate) fn set_time_to_live(&self, seconds: u64) {
        self.time_to_live_s.store(seconds, Ordering::Relaxed);
    }

    /// Folds operands.
    pub(crate) fn operator(&self) -> Arc<MergeOperator> {
        self.operator.load_full()
    }

    /// Refuses an operand that could never be folded, and a value that no operand could be folded onto.
    #[inline]
    pub(crate) fn check_operand(&self, operand: &[u8]) -> Result<()> {
        self.operator.load().check_operand(operand)
    }

    pub(crate) fn set_operator(&self, operator: MergeOperator) {
        let is_special = self.have_write_times() || operator.has_fixed_length();
        self.operator.store(Arc::new(operator));
        self.has_special_puts.store(is_special, Ordering::Relaxed);
    }
}
