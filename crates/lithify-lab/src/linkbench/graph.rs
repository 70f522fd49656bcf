//! The graph that a configuration describes: how many links each node has, and where accesses go.
//!
//! A [`Graph`] is computed, never stored: load and request phases of one configuration agree on
//! every node's degree without a lookup. It is immutable and shared by all threads.

use serde::{Deserialize, Serialize};

use super::access::{Access, BlendedAccess};
use super::degree::{DegreeTable, RankRule};
use super::empirical::links_per_node;
use super::payload::PayloadGenerator;
use super::profile::{ConfigError, Profile};
use super::shuffle::Shuffle;
use crate::random::Random;

/// Size and seed of a graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphConfig {
    /// First node id; at least 1.
    pub start_id: u64,
    /// Number of nodes; ids are `start_id .. start_id + nodes`.
    pub nodes: u64,
    /// Number of link types.
    pub link_types: u64,
    /// `None` chooses by size, see [`RankRule::for_size`].
    pub rank_rule: Option<RankRule>,
    /// No node gets more links than this before they are split among types.
    pub links_cap: Option<u64>,
    /// 0 for targets that follow their source; otherwise targets are uniform below this id.
    pub random_target_max: u64,
    /// Everything random in load and request phases follows from it.
    pub seed: u64,
    /// The load's "now", milliseconds since 1970. A fixed one makes data reproducible.
    pub epoch_ms: u64,
}

impl GraphConfig {
    /// A graph of `nodes` with the defaults.
    pub fn with_nodes(nodes: u64) -> Self {
        GraphConfig {
            start_id: 1,
            nodes,
            link_types: 2,
            rank_rule: None,
            links_cap: None,
            random_target_max: 0,
            seed: 0x1157_B13C,
            // 2025-01-01 00:00 UTC.
            epoch_ms: 1_735_689_600_000,
        }
    }
}

/// Streams of the master seed; threads and chunks add their number below the upper 32 bits.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stream {
    Motif = 1,
    Nodes = 2,
    LinkChunk = 3,
    Requester = 4,
}

/// Who generates payloads.
#[derive(Clone, Copy, Debug)]
pub(super) enum Writer {
    NodeAdd,
    NodeUpdate,
    LinkAdd,
    LinkUpdate,
}

/// A configured graph.
#[derive(Clone, Debug)]
pub struct Graph {
    config: GraphConfig,
    profile: Profile,
    rank_rule: RankRule,
    degrees: DegreeTable,
    by_degree: Shuffle,
    payloads: [PayloadGenerator; 4],
    pub(super) link_reads: BlendedAccess,
    pub(super) link_writes: BlendedAccess,
    pub(super) node_reads: Access,
    pub(super) node_updates: Access,
    pub(super) node_deletes: Access,
}

impl Graph {
    /// Computes the tables of `config` under `profile`.
    pub fn new(profile: Profile, config: GraphConfig) -> Result<Self, ConfigError> {
        validate(&profile, &config)?;
        let n = config.nodes;
        let rank_rule = config.rank_rule.unwrap_or_else(|| RankRule::for_size(n));
        let points = links_per_node(profile.edition);
        let split = profile.degree_split;
        let degrees =
            DegreeTable::new(&points, n, config.link_types, rank_rule, split, config.links_cap);
        let payload = |writer: Writer| {
            let shape = match writer {
                Writer::NodeAdd | Writer::NodeUpdate => profile.node_payload,
                Writer::LinkAdd | Writer::LinkUpdate => profile.link_payload,
            };
            let stream = stream_number(Stream::Motif, writer as u64);
            PayloadGenerator::new(shape, &mut Random::new(config.seed, stream))
        };
        let links = Shuffle::SEED_LINKS;
        let uncorrelated = Shuffle::SEED_UNCORRELATED;
        let nodes = Shuffle::SEED_NODES;
        Ok(Graph {
            link_reads: BlendedAccess {
                correlated: Access::new(n, profile.link_reads, links),
                uncorrelated: Access::new(n, profile.link_reads_uncorrelated, uncorrelated),
                uncorrelated_share: profile.link_reads_uncorrelated_share,
            },
            link_writes: BlendedAccess {
                correlated: Access::new(n, profile.link_writes, links),
                uncorrelated: Access::new(n, profile.link_writes_uncorrelated, uncorrelated),
                uncorrelated_share: profile.link_writes_uncorrelated_share,
            },
            node_reads: Access::new(n, profile.node_reads, nodes),
            node_updates: Access::new(n, profile.node_updates, nodes),
            node_deletes: Access::new(n, profile.node_deletes, nodes),
            by_degree: Shuffle::new(n, links),
            payloads: [Writer::NodeAdd, Writer::NodeUpdate, Writer::LinkAdd, Writer::LinkUpdate]
                .map(payload),
            rank_rule,
            degrees,
            profile,
            config,
        })
    }

    /// Size and seed.
    pub fn config(&self) -> &GraphConfig {
        &self.config
    }

    /// The rules.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The rank rule in force.
    pub fn rank_rule(&self) -> RankRule {
        self.rank_rule
    }

    /// The first id after the loaded nodes.
    pub fn end_id(&self) -> u64 {
        self.config.start_id + self.config.nodes
    }

    /// Links of type number `type_index` that node `id` is loaded with; `id` is a loaded node's.
    #[inline]
    pub fn links_of(&self, id: u64, type_index: u64) -> u64 {
        self.degrees.links(self.by_degree.inverse(id - self.config.start_id), type_index)
    }

    /// Links that the load phase inserts.
    pub fn expected_links(&self) -> u64 {
        self.degrees.graph_links()
    }

    /// Count rows that the load phase inserts.
    pub fn expected_counts(&self) -> u64 {
        self.degrees.graph_lists()
    }

    pub(super) fn payload(&self, writer: Writer) -> &PayloadGenerator {
        &self.payloads[writer as usize]
    }

    pub(super) fn random(&self, stream: Stream, number: u64) -> Random {
        Random::new(self.config.seed, stream_number(stream, number))
    }
}

fn stream_number(stream: Stream, number: u64) -> u64 {
    ((stream as u64) << 56) ^ number
}

fn validate(profile: &Profile, config: &GraphConfig) -> Result<(), ConfigError> {
    let fail = |text: &str| Err(ConfigError(text.to_owned()));
    profile.mix.picker()?;
    if config.start_id == 0 {
        return fail("start_id must be at least 1");
    }
    if config.nodes == 0 {
        return fail("nodes must be at least 1");
    }
    // Keys hold ids in 64 bits, and targets lie up to twice the largest degree above their source.
    if config.start_id.checked_add(config.nodes).is_none_or(|end| end > 1 << 60) {
        return fail("ids must stay below 2^60");
    }
    if !(1..=1000).contains(&config.link_types) {
        return fail("link_types must be 1 to 1000");
    }
    for payload in [&profile.node_payload, &profile.link_payload] {
        if payload.limit_bytes == 0 || payload.first_byte > payload.last_byte {
            return fail("a payload needs limit_bytes of at least 1 and an ascending byte range");
        }
    }
    if !(profile.multiget_p > 0.0 && profile.multiget_p < 1.0) {
        return fail("multiget_p must lie between 0 and 1");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn degrees_add_up_over_ids() {
        let mut config = GraphConfig::with_nodes(5000);
        config.start_id = 77;
        let graph = Graph::new(Profile::lb2013(), config).unwrap();
        let ids = 77..graph.end_id();
        let links: u64 = ids.clone().map(|id| graph.links_of(id, 0) + graph.links_of(id, 1)).sum();
        assert_eq!(links, graph.expected_links());
        let busiest = ids.max_by_key(|id| graph.links_of(*id, 0)).unwrap();
        // What correlated accesses call rank 0 is the node with most links.
        assert_eq!(busiest, 77 + Shuffle::new(5000, Shuffle::SEED_LINKS).permute(0));
    }

    #[test]
    fn impossible_settings_are_errors() {
        let good = GraphConfig::with_nodes(10);
        assert!(Graph::new(Profile::lb2013_clean(), good.clone()).is_ok());
        for bad in [
            GraphConfig { start_id: 0, ..good.clone() },
            GraphConfig { nodes: 0, ..good.clone() },
            GraphConfig { nodes: u64::MAX, ..good.clone() },
            GraphConfig { link_types: 0, ..good.clone() },
        ] {
            assert!(Graph::new(Profile::lb2013(), bad).is_err());
        }
        let mut profile = Profile::lb2013();
        profile.mix.0[0] = 1.0;
        assert!(Graph::new(profile, good).is_err());
    }
}
