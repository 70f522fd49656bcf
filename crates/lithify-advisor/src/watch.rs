//! How far the work is, and whether it may go on.

use crate::error::Result;

/// Hears of progress.
pub trait Watch {
    /// So much is done of so much. What it means is in the words.
    ///
    /// # Errors
    /// The work is to end without an answer.
    fn hear(&self, stage: &str, done: u64, total: u64) -> Result<()>;

    /// True once an answer is wanted now, from what is known.
    fn is_hurried(&self) -> bool {
        false
    }
}

/// Hears nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Watch for Silent {
    fn hear(&self, _stage: &str, _done: u64, _total: u64) -> Result<()> {
        Ok(())
    }
}
