//! Parts of reports that kinds of workload share.
//!
//! Owns: figures as text ([`figures`]), published claims ([`compare`]), two sides measured in turn
//! with their A/A controls ([`paired`]), targets ([`floors`]), the days of measurement ([`days`]),
//! one arm against the better of several arms of an engine ([`better_of`]), tables ([`tables`]),
//! what the figures were taken on ([`card`]) and the list of engines ([`engines`]).
//!
//! Promises: pure and deterministic: the same record gives the same text, so that a report can be
//! rendered again at any time. Does not measure and does not read files.

pub mod better_of;
pub mod card;
pub mod compare;
pub(crate) mod cross_counts;
pub mod days;
pub mod engines;
pub mod figures;
pub mod floors;
pub mod paired;
pub mod tables;

/// `1 repeat`, `3 repeats`.
pub(crate) fn repeats(count: u64) -> String {
    plural(count, "repeat")
}

/// `1 step`, `3 steps`.
pub(crate) fn plural(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
