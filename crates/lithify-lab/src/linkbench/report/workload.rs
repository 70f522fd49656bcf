//! The driver held against its configuration and against what published runs logged: links per
//! node, and how often each operation was asked.
//!
//! A driver that asks something else than the published one makes every ratio worthless, so the
//! figures stand in each report and not only in tests. What was published: the log of a load of a
//! billion nodes, and the latency dump of 34,696,018 requests of 2015.

use std::collections::BTreeMap;

use crate::experiment::Phase;
use crate::linkbench::Operation;
use crate::linkbench::cell::{CellResult, Purpose};
use crate::linkbench::record::LinkBenchRecord;
use crate::report::figures::figure;

/// Shares of the operations in the published latency dump, percent, as far as it was told.
const PUBLISHED_PERCENT: [(Operation, f64); 2] =
    [(Operation::AddNode, 2.576), (Operation::GetLinksList, 50.70)];
/// Links per node of the published load, which was of the edition of 2013.
const PUBLISHED_LINKS_PER_NODE: f64 = 4.3714;
/// The profile that the published runs had.
const PUBLISHED_PROFILE: &str = "lb2013";

/// The lines, one for the loads and one for the queries; none without a measured cell.
pub(super) fn lines(record: &LinkBenchRecord) -> Vec<String> {
    let cells = record.cells.iter().filter_map(|cell| cell.result.as_ref());
    let cells: Vec<&CellResult> =
        cells.filter(|cell| cell.spec.purpose == Purpose::Measure).collect();
    let Some(first) = cells.first() else { return Vec::new() };
    let mut lines = vec![load(first)];
    lines.extend(queries(&cells));
    lines
}

fn load(cell: &CellResult) -> String {
    let (links, nodes) = (cell.load.operations, cell.spec.nodes);
    let profile = cell.spec.workload().name;
    let per_node = links as f64 / nodes.max(1) as f64;
    let mut line =
        format!("driver: {links} links on {nodes} nodes, {per_node:.4} per node ({profile})");
    if profile == PUBLISHED_PROFILE {
        line.push_str(&format!("; published {PUBLISHED_LINKS_PER_NODE} on a billion nodes"));
    }
    line
}

/// Shares of the operations over all cells against the mix that is configured.
fn queries(cells: &[&CellResult]) -> Option<String> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for latency in cells.iter().flat_map(|cell| &cell.phase(Phase::Query).latencies) {
        *counts.entry(latency.op.as_str()).or_default() += latency.count;
    }
    let profile = cells.first()?.spec.workload();
    let mix = &profile.mix.0;
    let total: u64 = counts.values().sum();
    let percent = |operation: Operation| {
        100.0 * counts.get(operation.name()).copied().unwrap_or(0) as f64 / total.max(1) as f64
    };
    let off = |operation: &Operation| (percent(*operation) - mix[operation.index()]).abs();
    let farthest = Operation::ALL.into_iter().max_by(|a, b| off(a).total_cmp(&off(b)))?;
    let mut line = format!(
        "driver: {total} queries; farthest from its share of the mix: {} with {:.3} % of {} %",
        farthest.name(),
        percent(farthest),
        figure(mix[farthest.index()]),
    );
    if profile.name == PUBLISHED_PROFILE {
        for (operation, published) in PUBLISHED_PERCENT {
            let name = operation.name();
            let here = percent(operation);
            line.push_str(&format!("; {name} {here:.3} %, published {published} %"));
        }
    }
    (total > 0).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::EngineName;
    use crate::linkbench::sample;

    #[test]
    fn the_driver_is_held_against_what_was_published() {
        let record = sample::record(&sample::plan(&EngineName::lithify(), 1));
        let lines = lines(&record);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].contains("per node (lb2013); published 4.3714"), "{}", lines[0]);
        assert!(lines[1].contains("GET_LINKS_LIST"), "{}", lines[1]);
        assert!(lines[1].contains(" %, published 50.7 %"), "{}", lines[1]);
    }
}
