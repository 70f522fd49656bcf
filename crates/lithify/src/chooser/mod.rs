//! Floor 2: which compression a table is written with, from measured costs and a user's prices.
//!
//! Owns: [`Prices`] and the [`Objective`]s that stand for them, the candidates, what is known of each
//! ([`Chooser`]), the cost equation, the decision with its hysteresis, and the words that explain it.
//!
//! Promises: pure. Numbers go in, a decision and its reasons come out: no files, no clocks, no
//! threads, no tables. So a decision can be made again from what was recorded of it
//! ([`Record`]), in a test, in the laboratory, or by whoever reads a table.
//!
//! How it works:
//!
//! 1. Who writes tables asks [`Chooser::study`] what to measure, measures it on some blocks of the
//!    table at hand, and tells the result ([`Chooser::learn`]).
//! 2. Every candidate is compared with one reference, zstd-1, on the same blocks: the quotient varies
//!    far less than the ratio, and is shared by all levels. The ratio of the reference is known for
//!    each level, as far as it has blocks of its own.
//! 3. [`Chooser::decide`] prices all candidates at all block sizes under a level's [`Conditions`]:
//!    how long its bytes live, and how often its blocks are loaded.
//! 4. The cheapest is chosen if it is cheaper than what the level has by more than the hysteresis and
//!    the error of the estimate.
//!
//! `docs/compression.md` has the equation, the units and where the constants come from.

mod candidate;
mod cost;
mod decision;
mod estimate;
mod explain;
mod knowledge;
mod prices;
mod record;
#[cfg(test)]
mod tests;
mod watch;

pub use candidate::{Choice, METHODS, Method, REFERENCE, Sizes};
pub use cost::{
    Behaviour, Conditions, HOURS_PER_MONTH, Rewriting, Shape, Terms, overhead_ratio, price,
};
pub use decision::{Candidate, Chooser, DICTIONARY_BYTES, Decision, Reason, Study, Trial};
pub use estimate::Estimate;
pub use knowledge::{EVIDENCE_SPECIMENS, Knowledge, Measured};
pub use prices::{Objective, Price, Prices};
pub use record::Record;
pub use watch::{LevelWatch, Observed};
