//! The report of a run of LinkBench: the published tables with our figures in them, and the
//! comparison under them.
//!
//! Owns: from raw results to figures ([`mod@figures`]), the tables ([`tables`]), published claims
//! ([`headlines`]), all that a report judges together (`judged`), two arms figure by figure
//! ([`pairs`]), all pairs at a glance ([`glance`]), what engines cost in processes of their own
//! ([`servers`]), open-loop latencies ([`open_loop`]), what changes with the number of clients
//! ([`clients`]), what arms are run under ([`conditions`]), what becomes of them with age
//! ([`ageing`]) and at their end ([`dropping`]), the gates that a scale has to pass ([`gates`]),
//! the checks ([`checks`]), the driver against what was published (`workload`), the fairness card
//! ([`card`]), the CSV ([`csv`]) and the page ([`mod@page`]).
//!
//! Promises: pure and deterministic: the same record gives the same text, so that a report can be
//! rendered again at any time. A cell that failed or whose oracle found a violation is named and
//! counts in no figure. Does not measure and does not read files.

pub mod ageing;
mod better_pairs;
pub mod card;
pub mod checks;
pub mod clients;
pub mod conditions;
pub mod csv;
pub mod dropping;
pub mod figures;
pub mod gates;
pub mod glance;
pub mod headlines;
pub(crate) mod judged;
pub mod open_loop;
pub mod page;
pub mod pairs;
pub mod servers;
pub mod tables;
#[cfg(test)]
mod tests;
mod workload;

use std::fmt::Write as _;

use crate::experiment::Phase;
use crate::linkbench::record::LinkBenchRecord;
use crate::report::repeats;

/// What stands over the gates.
pub(crate) const GATES_HEADING: &str = "query: gates of the scale, by the counters of each cell";

/// What stands over the open loop.
pub(crate) const OPEN_LOOP_HEADING: &str =
    "open loop: latency from the intended start, ms (medians over the repeats)";

pub(crate) fn heading(record: &LinkBenchRecord, phase: Phase) -> String {
    let Some(spec) = record.plan.cells.iter().find(|cell| cell.arm != "driver") else {
        return phase.to_string();
    };
    let mut heading = match phase {
        Phase::Load => format!("load: {} nodes, {} clients", spec.nodes, spec.loaders),
        Phase::Query => format!("query: {} s, {} clients", spec.query_seconds, spec.requesters),
    };
    // Writing to a String cannot fail.
    let _ = write!(
        heading,
        " (medians of {}; size and rss in GB of 10^9 bytes",
        repeats(record.plan.repeats)
    );
    if phase == Phase::Query {
        heading.push_str("; p99 in ms");
    }
    heading.push(')');
    heading
}
