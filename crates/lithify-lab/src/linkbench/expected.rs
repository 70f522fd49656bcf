//! What the data should be: from the generator after the load, then from what the driver did.
//!
//! The three views of a list can agree and all lack the same transaction. So the driver keeps the
//! books: what it loaded, and what each request did by the engine's own answer. Node rows, link rows
//! and visible links must then be there to the last one. What updates left is known of a sample of the
//! rows, see [`Ledger`]. Count rows are known within bounds: a list without visible links may have one.

use serde::{Deserialize, Serialize};

use super::generator::Request;
use super::graph::Graph;
use super::ledger::Ledger;
use super::load::LoadOutcome;
use super::oracle::OracleReport;
use super::request::RequestOutcome;
use super::requester::Answer;

/// What requests did to the graph, by the engine's answers; warm-ups count too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effects {
    /// Nodes added.
    pub nodes_added: u64,
    /// Nodes deleted that were there.
    pub nodes_deleted: u64,
    /// Links put that were not there.
    pub links_added: u64,
    /// Links put that were there, visible or hidden.
    pub links_rewritten: u64,
    /// Of them hidden ones, which the put made visible.
    #[serde(default)]
    pub links_shown: u64,
    /// Visible links hidden.
    pub links_hidden: u64,
}

impl Effects {
    /// Books an answered request.
    pub(super) fn book(&mut self, request: &Request, answer: &Answer) {
        match (request, answer.rows > 0) {
            (Request::AddNode { .. }, _) => self.nodes_added += 1,
            (Request::DeleteNode { .. }, true) => self.nodes_deleted += 1,
            (Request::PutLink { .. }, false) => self.links_added += 1,
            (Request::PutLink { .. }, true) => {
                self.links_rewritten += 1;
                self.links_shown += u64::from(answer.shown);
            }
            (Request::DeleteLink { .. }, true) => self.links_hidden += 1,
            _ => {}
        }
    }

    /// Adds what somebody else did.
    pub(super) fn merge(&mut self, other: &Effects) {
        self.nodes_added += other.nodes_added;
        self.nodes_deleted += other.nodes_deleted;
        self.links_added += other.links_added;
        self.links_rewritten += other.links_rewritten;
        self.links_shown += other.links_shown;
        self.links_hidden += other.links_hidden;
    }
}

/// What a graph must hold.
#[derive(Clone, Debug)]
pub struct Expected {
    nodes: u64,
    links: u64,
    visible: u64,
    counts_min: u64,
    counts_max: u64,
    ledger: Ledger,
}

impl Expected {
    /// After a load: what the generator says, and where it draws targets at random and drops equal
    /// ones, what was loaded.
    pub fn after_load(graph: &Graph, loaded: &LoadOutcome, with_nodes: bool) -> Expected {
        let is_random = graph.config().random_target_max > 0;
        let links = if is_random { loaded.links } else { graph.expected_links() };
        let counts = graph.expected_counts();
        Expected {
            nodes: if with_nodes { graph.config().nodes } else { 0 },
            links,
            visible: links,
            counts_min: counts,
            counts_max: counts,
            ledger: Ledger::default(),
        }
    }

    /// After these requests too.
    pub fn follow(&mut self, outcome: &RequestOutcome) {
        let effects = &outcome.effects;
        self.nodes = (self.nodes + effects.nodes_added).saturating_sub(effects.nodes_deleted);
        self.links += effects.links_added;
        let shown = effects.links_added + effects.links_shown;
        self.visible = (self.visible + shown).saturating_sub(effects.links_hidden);
        // A list gets its count row with its first visible link, and keeps it.
        self.counts_max += shown;
        self.ledger.merge(&outcome.ledger);
    }

    /// What the last writes of a sample of the rows left.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// In what a graph differs from it, line by line.
    pub fn differences(&self, found: &OracleReport) -> Vec<String> {
        let figures = [
            ("nodes", found.nodes, self.nodes, self.nodes),
            ("links", found.links, self.links, self.links),
            ("visible links", found.visible_links, self.visible, self.visible),
            ("count rows", found.counts, self.counts_min, self.counts_max),
        ];
        let differs = |(what, found, least, most): &(&str, u64, u64, u64)| {
            if (*least..=*most).contains(found) {
                return None;
            }
            let wanted =
                if least == most { least.to_string() } else { format!("{least} to {most}") };
            Some(format!("{found} {what}, but {wanted} by what the driver wrote"))
        };
        figures.iter().filter_map(differs).collect()
    }
}
