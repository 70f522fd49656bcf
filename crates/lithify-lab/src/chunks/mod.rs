//! Text in chunks: what the size of a compressed block and its codec do to size, flush and scan,
//! and how long one call of the codec holds a thread.
//!
//! Owns: what a cell is and leaves ([`spec`]), the plan ([`plan`]), the measuring process
//! ([`measure`]) with its database and the rows that it reads one by one, the calls of the codec
//! alone ([`codec_calls`]), the figures of an engine over the matrix ([`figures`]), published
//! findings held against them ([`findings`]), the report ([`report`]) and its CSV ([`csv`]). What
//! an experiment file may say is `experiment::chunks`, what an engine of text must offer
//! [`crate::adapter::text`].
//!
//! Promises: every scan is checked against what was loaded; a row whose check failed counts in no
//! figure; the same run gives the same report.
//!
//! Threads: everything belongs to the caller's; engines start their own.

pub mod codec_calls;
pub mod compared;
pub mod csv;
mod database;
pub mod figures;
pub mod findings;
pub mod kind;
pub mod measure;
pub mod page;
pub mod plan;
pub mod report;
pub mod row_reads;
#[cfg(test)]
pub(crate) mod sample;
pub mod spec;
#[cfg(test)]
mod tests;
