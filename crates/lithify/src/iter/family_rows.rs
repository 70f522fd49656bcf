//! What all cursors over the rows of a column family share.

use super::{Announced, DeadRanges};
use crate::operator::MergeOperator;
use crate::stats::FamilyLedger;
use arc_swap::ArcSwap;
use std::sync::Arc;

/// One for each family; a cursor holds it, and with it needs nothing else of its family.
pub(crate) struct FamilyRows {
    /// Where what concerns the family alone is counted.
    pub(crate) ledger: Arc<FamilyLedger>,
    /// Where scans have found that there is no row.
    pub(crate) dead_ranges: DeadRanges,
    operator: ArcSwap<MergeOperator>,
}

impl FamilyRows {
    pub(crate) fn new(
        ledger: Arc<FamilyLedger>,
        announced: &Arc<Announced>,
        operator: MergeOperator,
    ) -> Self {
        FamilyRows {
            ledger,
            dead_ranges: DeadRanges::new(announced),
            operator: ArcSwap::from_pointee(operator),
        }
    }

    /// Folds operands.
    pub(crate) fn operator(&self) -> Arc<MergeOperator> {
        self.operator.load_full()
    }

    pub(crate) fn set_operator(&self, operator: MergeOperator) {
        self.operator.store(Arc::new(operator));
    }
}
