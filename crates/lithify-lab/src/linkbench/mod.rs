//! LinkBench: the social-graph benchmark, written anew.
//!
//! Owns: the graph (degrees, payloads, access distributions), its mapping to ordered keys, the load
//! phase, the request phase and the consistency oracle; the plan of a run ([`plan`]), its cells
//! ([`cell`]) seen from inside ([`measure`]) and from outside (`run`), their record ([`record`]) and its report ([`report`]). The way through: a [`Profile`] and a
//! [`GraphConfig`] make a [`Graph`]; [`load::run`] fills a [`GraphEngine`], which every engine of
//! ordered keys is that was opened with [`schema::SPACES`]; [`request::run`] runs the mix against it; [`oracle::check`] proves that
//! counts, links and their secondary index still agree.
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
pub mod engine;
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
pub mod rows;
mod run;
#[cfg(test)]
pub(crate) mod sample;
pub mod schema;
pub mod second_log;
pub mod shuffle;
pub mod store;
mod turnover;

pub use control::{Control, Progress};
pub use engine::{GraphEngine, GraphSession, LinkBefore};
pub use graph::{Graph, GraphConfig};
pub use profile::{OpMix, Operation, Profile};

use crate::engines::null::{NullEngine, NullSpace};

/// The null engine with sample rows of this benchmark's shape: about the mean sizes, hit rates and
/// rows per list of a loaded graph.
pub fn null_engine() -> NullEngine {
    let data = [b'x'; 210];
    let mut node = Vec::new();
    let row = schema::NodeRow { node_type: schema::NODE_TYPE, version: 1, time_s: 1, data: &data };
    row.encode(&mut node);
    let sample = schema::Link {
        id1: 1,
        link_type: schema::LINK_TYPE_FIRST,
        id2: 1,
        visibility: schema::VISIBILITY_DEFAULT,
        version: 0,
        time_ms: 1,
        data: &data[..13],
    };
    let (mut link, mut secondary, mut count) = (Vec::new(), Vec::new(), Vec::new());
    sample.encode(&mut link);
    sample.encode_secondary(&mut secondary);
    schema::CountRow { count: 3, time_ms: 1, version: 1 }.encode(&mut count);
    let space = |key_bytes, value, hits_of_256, scan_rows| NullSpace {
        key_bytes,
        value,
        hits_of_256,
        scan_rows,
    };
    NullEngine::new(vec![
        space(schema::NODE_KEY_BYTES, node, 250, 1),
        space(schema::LINK_KEY_BYTES, link, 128, 1),
        space(schema::SECONDARY_KEY_BYTES, secondary, 256, 6),
        space(schema::COUNT_KEY_BYTES, count, 200, 1),
    ])
}
