//! How far the work is, and whether it may go on.

use crate::error::Result;
use crate::estimate::Estimate;

/// An answer that may still change.
#[derive(Clone, Debug, PartialEq)]
pub struct Early {
    /// The target's name.
    pub target: &'static str,
    /// The setting's name.
    pub setting: String,
    /// Stored bytes per byte of the data.
    pub ratio: Estimate,
}

/// Hears of progress.
pub trait Watch {
    /// So much is done of so much. What it means is in the words.
    ///
    /// # Errors
    /// The work is to end without an answer.
    fn hear(&self, stage: &str, done: u64, total: u64) -> Result<()>;

    /// What would be answered now: for the first time once cheap codecs were measured.
    fn hear_early(&self, _answer: &[Early]) {}

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
