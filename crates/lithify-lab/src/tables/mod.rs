//! Tables of rows: loading them in the order of their keys, a large aggregate, updates row by row;
//! and what codecs and blocks do to their time, bytes and size.
//!
//! Owns: what a cell is and leaves ([`spec`]), the plan ([`plan`]), the measuring process
//! ([`measure`]), the figures ([`figures`]), the report ([`report`]) and its CSV ([`csv`]). What an
//! experiment file may say is `experiment::tables`, the rows are `datasets`', and what an engine of
//! tables must offer is [`crate::adapter::table`]. `causes` is the part of the report that says for
//! what engines wrote.
//!
//! Promises: the answer of an aggregate, the number of rows and the sum of what was updated are
//! compared with the generator's own; a row whose check failed counts in no figure.
//!
//! Threads: everything belongs to the caller's; engines start their own.

mod causes;
pub mod compared;
pub mod csv;
pub mod figures;
pub mod kind;
pub mod measure;
pub mod page;
pub mod plan;
pub mod report;
#[cfg(test)]
pub(crate) mod sample;
pub mod spec;
#[cfg(test)]
mod tests;
