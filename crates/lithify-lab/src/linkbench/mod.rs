//! LinkBench: the social-graph benchmark, written anew.
//!
//! Owns: the graph (degrees, payloads, access distributions), the load phase, the request phase and
//! the consistency oracle; the plan of a run ([`plan`]), its cells ([`cell`]) seen from inside
//! ([`measure`]) and from outside (`run`), their record ([`record`]) and its report ([`report`]). What
//! an engine must offer for it, and the mapping to ordered keys, is [`crate::adapter::graph`]. The way
//! through: a [`Profile`] and a [`GraphConfig`] make a [`Graph`]; [`load::run`] fills an engine;
//! [`request::run`] runs the mix against it; [`oracle::check`] proves that counts, links and their
//! secondary index still agree.
//!
//! Promises: everything random follows from the graph's seed. The loaded data do not depend on the
//! number of loaders; a run with one requester and a logical clock gives the same requests over
//! every engine. Nothing here prints; progress goes to a [`Progress`].

pub mod access;
pub mod arrivals;
pub mod cell;
pub mod compared;
pub mod control;
pub mod degree;
pub mod dropping;
pub mod empirical;
pub mod expected;
pub mod generator;
pub mod graph;
pub mod history;
pub mod kind;
pub mod ledger;
pub mod load;
pub mod measure;
pub mod oracle;
pub mod payload;
pub mod plan;
pub mod profile;
pub mod record;
pub mod report;
pub mod request;
mod requester;
mod run;
#[cfg(test)]
pub(crate) mod sample;
pub mod second_log;
pub mod shuffle;
mod turnover;

pub use control::{Control, Progress};
pub use graph::{Graph, GraphConfig};
pub use profile::{OpMix, Operation, Profile};
