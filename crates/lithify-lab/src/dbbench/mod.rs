//! The loops of the classic key-value benchmark, on one engine or on pairs of them.
//!
//! Owns: what a run does ([`spec`]), its steps as they are written ([`step`]) and the names of
//! whole sequences ([`sequence`]), the random
//! numbers (`stream`), the loops of the clients (`clients`), the measuring process ([`measure`]),
//! what must be found ([`oracle`]), the pairs and their repeats ([`plan`]), the figures
//! ([`figures`]), what they are held against ([`floors`]), the reports ([`report`]), and what the
//! original printed beside them ([`original`]).
//!
//! Promises: with the same flags and seed the loops visit the same keys in the same order as the
//! original's and write the same values; a sequence runs over one database in one process, which
//! nothing else shares; what was read is counted and summed, and engines are compared by it.
//!
//! Threads: [`crate::run::cells::PlanRunner::run`] belongs to one thread; the measuring process has one thread
//! per client and one that samples every second. Does not know experiments and arms.

mod clients;
pub mod compared;
pub mod csv;
pub mod figures;
pub mod floors;
pub mod histogram;
pub mod judged;
pub mod kind;
pub mod measure;
pub mod oracle;
pub mod original;
pub mod page;
pub mod plan;
mod rate;
pub(crate) mod ratios;
pub mod report;
pub mod sequence;
pub mod spec;
pub mod step;
mod stream;
mod together;
pub mod trees;
