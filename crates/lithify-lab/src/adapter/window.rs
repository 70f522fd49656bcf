//! The rows of a scan that its caller wants, picked from the rows that an engine has in order.

use std::ops::ControlFlow;

use super::{RowVisitor, ScanRange};

/// Offers rows to a visitor: passes over the skipped ones, ends at the limit, at the end of the
/// range, or when the visitor breaks.
pub struct Window<'a, 'r, 'v> {
    range: &'a ScanRange<'r>,
    row: &'a mut RowVisitor<'v>,
    skipped: u64,
    visited: u64,
}

impl<'a, 'r, 'v> Window<'a, 'r, 'v> {
    /// A window that has seen no row; `None` when `range` wants none.
    pub fn new(range: &'a ScanRange<'r>, row: &'a mut RowVisitor<'v>) -> Option<Self> {
        (range.limit > 0).then_some(Window { range, row, skipped: 0, visited: 0 })
    }

    /// Sees the next row from [`ScanRange::first`] on; breaks when no more rows are wanted.
    #[inline]
    pub fn offer(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        if !self.range.contains(key) {
            return ControlFlow::Break(());
        }
        if self.skipped < self.range.skip {
            self.skipped += 1;
            return ControlFlow::Continue(());
        }
        self.visited += 1;
        (self.row)(key, value)?;
        if self.visited == self.range.limit {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    /// Rows that the visitor saw.
    pub fn visited(&self) -> u64 {
        self.visited
    }
}
