//! How many links a node has: a pure function of its rank, so that nothing is looked up.
//!
//! Rank 0 is the node of largest degree. A rank is mapped to a point of the measured distribution,
//! and the total is split among the link types. The table is precomputed as steps over ranks, so a
//! lookup compares integers: a few for most ranks, a binary search for the rest.

use serde::{Deserialize, Serialize};

use super::empirical::Point;

/// Where in a rank's interval the distribution is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RankRule {
    /// At the right end, as the original does: rank 0 always gets the absolute maximum, which
    /// distorts graphs below some 50 million nodes.
    Original,
    /// In the middle, which keeps links per node at any size.
    Midpoint,
}

impl RankRule {
    /// The rule for a graph of `nodes` when none is asked for.
    pub fn for_size(nodes: u64) -> Self {
        if nodes < 50_000_000 { RankRule::Midpoint } else { RankRule::Original }
    }
}

/// How a node's links are split among the link types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DegreeSplit {
    /// The original takes the remainder from the total less one share, not modulo the number of
    /// types, so that with two types a node of 3 links or more gets one or two links too many.
    Quirk2013,
    /// Even shares, at least one link per type.
    EvenAtLeastOne,
}

impl DegreeSplit {
    /// Links of type number `type_index` of a node with `total` links.
    #[inline]
    fn share(self, total: u64, types: u64, type_index: u64) -> u64 {
        match self {
            DegreeSplit::Quirk2013 => {
                let share = total / types;
                share + u64::from(type_index < total - share)
            }
            DegreeSplit::EvenAtLeastOne => total.max(types) / types,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Step {
    first_rank: u64,
    total: u64,
}

/// Links per rank and type.
#[derive(Clone, Debug)]
pub struct DegreeTable {
    nodes: u64,
    types: u64,
    split: DegreeSplit,
    /// Ascending by rank, hence descending by links.
    steps: Vec<Step>,
}

/// Most ranks lie in the last steps (0 to 3 links): these are compared first.
const STEPS_COMPARED_FIRST: usize = 4;

impl DegreeTable {
    /// The table for `nodes` ranks and `types` link types; no node gets more than `cap` links.
    pub fn new(
        points: &[Point],
        nodes: u64,
        types: u64,
        rule: RankRule,
        split: DegreeSplit,
        cap: Option<u64>,
    ) -> Self {
        let offset = match rule {
            RankRule::Original => 0.0,
            RankRule::Midpoint => 0.5,
        };
        let at = |rank: u64| 1.0 - (rank as f64 + offset) / nodes as f64;
        let mut steps: Vec<Step> = Vec::new();
        let mut first_rank = 0;
        // From the largest value down: a point serves the ranks evaluated above the next point's
        // fraction, up to its own.
        for (index, point) in points.iter().enumerate().rev() {
            let below = if index == 0 { f64::NEG_INFINITY } else { points[index - 1].fraction };
            let end_rank = first_rank_at_most(nodes, below, at);
            if end_rank > first_rank {
                steps.push(Step { first_rank, total: point.value.min(cap.unwrap_or(u64::MAX)) });
                first_rank = end_rank;
            }
        }
        DegreeTable { nodes, types, split, steps }
    }

    /// All links of the node of `rank` before they are split.
    #[inline]
    pub fn total(&self, rank: u64) -> u64 {
        let tail = self.steps.len().saturating_sub(STEPS_COMPARED_FIRST);
        if let Some(step) = self.steps[tail..].iter().rev().find(|step| step.first_rank <= rank) {
            return step.total;
        }
        let after = self.steps[..tail].partition_point(|step| step.first_rank <= rank);
        self.steps[..after].last().map_or(0, |step| step.total)
    }

    /// Links of type number `type_index` (from 0) of the node of `rank`.
    #[inline]
    pub fn links(&self, rank: u64, type_index: u64) -> u64 {
        self.split.share(self.total(rank), self.types, type_index)
    }

    /// Calls `each(ranks, total)` for every run of ranks with the same total.
    fn for_each_step(&self, mut each: impl FnMut(u64, u64)) {
        for (index, step) in self.steps.iter().enumerate() {
            let end = self.steps.get(index + 1).map_or(self.nodes, |next| next.first_rank);
            each(end - step.first_rank, step.total);
        }
    }

    /// Links of the whole graph.
    pub fn graph_links(&self) -> u64 {
        let mut links = 0;
        self.for_each_step(|ranks, total| {
            let shares = (0..self.types).map(|t| self.split.share(total, self.types, t));
            links += ranks * shares.sum::<u64>();
        });
        links
    }

    /// Lists with at least one link, each of which has a count row.
    pub fn graph_lists(&self) -> u64 {
        let mut lists = 0;
        self.for_each_step(|ranks, total| {
            let shares = (0..self.types).map(|t| self.split.share(total, self.types, t));
            lists += ranks * shares.filter(|share| *share > 0).count() as u64;
        });
        lists
    }
}

/// The smallest rank in `[0, nodes]` at which `at` (falling) is not above `fraction`.
fn first_rank_at_most(nodes: u64, fraction: f64, at: impl Fn(u64) -> f64) -> u64 {
    let (mut low, mut high) = (0, nodes);
    while low < high {
        let middle = low + (high - low) / 2;
        if at(middle) <= fraction {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::super::empirical::{Edition, links_per_node};
    use super::*;

    fn table(edition: Edition, nodes: u64, rule: RankRule) -> DegreeTable {
        let points = links_per_node(edition);
        DegreeTable::new(&points, nodes, 2, rule, DegreeSplit::Quirk2013, None)
    }

    /// The published table of links per node; tolerance 0.5 % and the digits it is printed with.
    #[test]
    fn links_per_node_match_the_table() {
        use Edition::{Y2013, Y2017};
        use RankRule::{Midpoint, Original};
        let rows = [
            (Y2013, Original, 100_000, 13.69),
            (Y2013, Original, 1_000_000, 5.249),
            (Y2013, Original, 5_000_000, 4.530),
            (Y2013, Original, 10_000_000, 4.446),
            (Y2013, Original, 100_000_000, 4.3745),
            (Y2013, Original, 1_000_000_000, 4.371),
            (Y2013, Midpoint, 10_000, 3.95),
            (Y2013, Midpoint, 100_000, 4.27),
            (Y2013, Midpoint, 1_000_000, 4.339),
            (Y2013, Midpoint, 5_000_000, 4.362),
            (Y2013, Midpoint, 10_000_000, 4.364),
            (Y2017, Original, 1_000_000, 8.07),
            (Y2017, Original, 10_000_000, 4.412),
            (Y2017, Midpoint, 1_000_000, 3.96),
            (Y2017, Midpoint, 10_000_000, 4.063),
        ];
        for (edition, rule, nodes, expected) in rows {
            let found = table(edition, nodes, rule).graph_links() as f64 / nodes as f64;
            let error = (found / expected - 1.0).abs();
            assert!(error < 0.005, "{edition:?} {rule:?} {nodes}: {found}, expected {expected}");
        }
        let lists = table(Y2013, 10_000_000, Midpoint).graph_lists() as f64 / 1e7;
        assert!((lists - 0.772).abs() < 0.004, "{lists} lists per node");
        for (nodes, largest) in
            [(10_000, 9_946), (100_000, 33_136), (1_000_000, 86_783), (5_000_000, 196_788)]
        {
            let found = table(Y2013, nodes, Midpoint).total(0) as f64;
            // Single values of the tail lie in groups that the data file merges.
            assert!((found / f64::from(largest) - 1.0).abs() < 0.02, "{nodes}: largest {found}");
        }
        assert_eq!(table(Y2013, 1000, Original).total(0), 961_963);
    }

    #[test]
    fn the_precomputed_steps_equal_the_definition() {
        let points = links_per_node(Edition::Y2013);
        for (nodes, rule, offset) in [
            (1, RankRule::Midpoint, 0.5),
            (777, RankRule::Original, 0.0),
            (100_000, RankRule::Midpoint, 0.5),
        ] {
            let table = table(Edition::Y2013, nodes, rule);
            let (mut links, mut lists) = (0, 0);
            for rank in 0..nodes {
                let u = 1.0 - (rank as f64 + offset) / nodes as f64;
                let point = points.iter().find(|point| point.fraction >= u);
                let total = point.map_or(0, |point| point.value);
                assert_eq!(table.total(rank), total, "rank {rank} of {nodes}");
                links += table.links(rank, 0) + table.links(rank, 1);
                lists += u64::from(table.links(rank, 0) > 0) + u64::from(table.links(rank, 1) > 0);
            }
            assert_eq!((table.graph_links(), table.graph_lists()), (links, lists));
        }
    }

    #[test]
    fn splits() {
        let quirk = |total| [0, 1].map(|t| DegreeSplit::Quirk2013.share(total, 2, t));
        assert_eq!(quirk(0), [0, 0]);
        assert_eq!(quirk(1), [1, 0]);
        assert_eq!(quirk(2), [2, 1]);
        assert_eq!(quirk(3), [2, 2]);
        assert_eq!(quirk(4), [3, 3]);
        assert_eq!(quirk(9), [5, 5]);
        let even = |total| [0, 1].map(|t| DegreeSplit::EvenAtLeastOne.share(total, 2, t));
        assert_eq!((even(0), even(1), even(5)), ([1, 1], [1, 1], [2, 2]));
        let points = links_per_node(Edition::Y2013);
        let split = DegreeSplit::EvenAtLeastOne;
        let nodes = 1_000_000_000;
        let fixed = DegreeTable::new(&points, nodes, 2, RankRule::Original, split, None);
        assert!((fixed.graph_links() as f64 / 1e9 / 5.243 - 1.0).abs() < 0.005);
        // Data of 2017 under the repaired rule: two lists for every node.
        let points = links_per_node(Edition::Y2017);
        let of_2020 = DegreeTable::new(&points, nodes, 2, RankRule::Original, split, None);
        assert!((of_2020.graph_links() as f64 / 1e9 / 4.59 - 1.0).abs() < 0.005);
        assert_eq!(of_2020.graph_lists(), 2 * nodes);
        let capped = DegreeTable::new(&points, 1000, 2, RankRule::Original, split, Some(50));
        assert_eq!(capped.total(0), 50);
    }
}
