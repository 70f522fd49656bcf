//! The arguments of the next request: pure arithmetic on the graph and a random stream.
//!
//! A [`RequestGenerator`] belongs to one requester. It allocates nothing per request: payload and
//! targets are read from the generator after [`RequestGenerator::next_request`]. Does not: touch an
//! engine.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::access::Access;
use super::graph::{Graph, Stream, Writer};
use super::history::{ListHistory, Remembered};
use super::profile::{ConfigError, OpPicker, Operation, TargetRule};
use crate::adapter::graph::schema::LINK_TYPE_FIRST;
use crate::adapter::graph::store::{LIST_LIMIT, ListQuery, ListResult, MULTIGET_MAX};
use crate::random::Random;

/// Where the time of a write comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeSource {
    /// A count of this requester's requests, in milliseconds: the same in every run.
    Logical,
    /// The clock on the wall.
    Wall,
}

/// Arguments of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// ADD_LINK or UPDATE_LINK, with the generator's payload.
    PutLink {
        /// Which of the two.
        operation: Operation,
        /// Source.
        id1: u64,
        /// Type.
        link_type: u64,
        /// Target.
        id2: u64,
        /// Now, milliseconds.
        time_ms: u64,
    },
    /// DELETE_LINK, hiding.
    DeleteLink {
        /// Source.
        id1: u64,
        /// Type.
        link_type: u64,
        /// Target.
        id2: u64,
        /// Now, milliseconds.
        time_ms: u64,
    },
    /// COUNT_LINK.
    CountLink {
        /// Source.
        id1: u64,
        /// Type.
        link_type: u64,
    },
    /// MULTIGET_LINK of the generator's targets.
    MultigetLink {
        /// Source.
        id1: u64,
        /// Type.
        link_type: u64,
    },
    /// GET_LINKS_LIST.
    GetLinksList {
        /// Which rows.
        query: ListQuery,
        /// It goes on where an earlier read ended.
        from_history: bool,
    },
    /// ADD_NODE with the generator's payload.
    AddNode {
        /// A new id.
        id: u64,
        /// Now, seconds.
        time_s: u32,
    },
    /// UPDATE_NODE with the generator's payload.
    UpdateNode {
        /// The node.
        id: u64,
        /// Now, seconds.
        time_s: u32,
    },
    /// DELETE_NODE.
    DeleteNode {
        /// The node.
        id: u64,
    },
    /// GET_NODE.
    GetNode {
        /// The node.
        id: u64,
    },
}

impl Request {
    /// The operation that it is booked under.
    #[inline]
    pub fn operation(&self) -> Operation {
        match self {
            Request::PutLink { operation, .. } => *operation,
            Request::DeleteLink { .. } => Operation::DeleteLink,
            Request::CountLink { .. } => Operation::CountLink,
            Request::MultigetLink { .. } => Operation::MultigetLink,
            Request::GetLinksList { .. } => Operation::GetLinksList,
            Request::AddNode { .. } => Operation::AddNode,
            Request::UpdateNode { .. } => Operation::UpdateNode,
            Request::DeleteNode { .. } => Operation::DeleteNode,
            Request::GetNode { .. } => Operation::GetNode,
        }
    }
}

/// Which requester a generator works for.
#[derive(Clone, Copy, Debug)]
pub struct Seat<'a> {
    /// Number of the requester, from 0.
    pub requester: u64,
    /// Number of requesters.
    pub requesters: u64,
    /// Hands out ids of new nodes.
    pub next_node_id: &'a AtomicU64,
    /// Where times come from.
    pub time_source: TimeSource,
    /// The logical clock's start, milliseconds since 1970.
    pub start_time_ms: u64,
    /// Gives each requester its own residue class of targets, so that no two of them write the
    /// same link.
    pub separate_targets: bool,
}

/// Generates requests.
pub struct RequestGenerator<'a> {
    graph: &'a Graph,
    seat: Seat<'a>,
    picker: OpPicker,
    random: Random,
    history: ListHistory,
    time_ms: u64,
    multiget_scale: f64,
    payload: Vec<u8>,
    targets: [u64; MULTIGET_MAX],
    target_count: usize,
}

/// Share of the targets of an operation that should exist.
fn share_existing(operation: Operation) -> f64 {
    match operation {
        Operation::AddLink => 0.05,
        Operation::MultigetLink => 0.5,
        _ => 0.9,
    }
}

/// Draws for one distinct target before a duplicate is accepted.
const DISTINCT_TRIES: u32 = 100;

impl<'a> RequestGenerator<'a> {
    /// The generator of one requester. Request streams differ by phase through
    /// [`Seat::start_time_ms`], so that a second phase does not repeat the first.
    pub fn new(graph: &'a Graph, seat: Seat<'a>) -> Result<Self, ConfigError> {
        let phase = seat.start_time_ms.wrapping_mul(0x9E37_79B9_7F4A_7C15) & 0xFF_FFFF_0000;
        Ok(RequestGenerator {
            graph,
            seat,
            picker: graph.profile().mix.picker()?,
            random: graph.random(Stream::Requester, phase ^ seat.requester),
            history: ListHistory::default(),
            time_ms: seat.start_time_ms,
            multiget_scale: 1.0 / (1.0 - graph.profile().multiget_p).ln(),
            payload: Vec::with_capacity(4096),
            targets: [0; MULTIGET_MAX],
            target_count: 0,
        })
    }

    /// Payload of the last request.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// Targets of the last MULTIGET_LINK.
    pub fn targets(&self) -> &[u64] {
        &self.targets[..self.target_count]
    }

    /// Time of the last request, milliseconds.
    pub fn time_ms(&self) -> u64 {
        self.time_ms
    }

    /// Draws for the caller's own use, such as waiting times.
    pub fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    /// The next request.
    #[inline]
    pub fn next_request(&mut self) -> Request {
        self.time_ms += 1;
        match self.picker.pick(&mut self.random) {
            operation @ (Operation::AddLink | Operation::UpdateLink) => self.put_link(operation),
            Operation::DeleteLink => {
                let (id1, index) = self.link_source(true);
                let id2 = self.target(id1, index, Operation::DeleteLink);
                let link_type = LINK_TYPE_FIRST + index;
                Request::DeleteLink { id1, link_type, id2, time_ms: self.now_ms() }
            }
            Operation::CountLink => {
                let (id1, index) = self.link_source(false);
                Request::CountLink { id1, link_type: LINK_TYPE_FIRST + index }
            }
            Operation::MultigetLink => {
                let (id1, index) = self.link_source(false);
                self.multiget_targets(id1, index);
                Request::MultigetLink { id1, link_type: LINK_TYPE_FIRST + index }
            }
            Operation::GetLinksList => self.list(),
            Operation::AddNode => {
                self.graph.payload(Writer::NodeAdd).generate(&mut self.random, &mut self.payload);
                let id = self.seat.next_node_id.fetch_add(1, Ordering::Relaxed);
                Request::AddNode { id, time_s: self.now_s() }
            }
            Operation::UpdateNode => {
                let id = self.id(&self.graph.node_updates);
                let payload = self.graph.payload(Writer::NodeUpdate);
                payload.generate(&mut self.random, &mut self.payload);
                Request::UpdateNode { id, time_s: self.now_s() }
            }
            Operation::DeleteNode => Request::DeleteNode { id: self.id(&self.graph.node_deletes) },
            Operation::GetNode => Request::GetNode { id: self.id(&self.graph.node_reads) },
        }
    }

    #[inline]
    fn id(&mut self, access: &Access) -> u64 {
        self.graph.config().start_id + access.draw(&mut self.random)
    }

    fn now_ms(&mut self) -> u64 {
        if self.seat.time_source == TimeSource::Wall {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            self.time_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        }
        self.time_ms
    }

    fn now_s(&mut self) -> u32 {
        // The row's width; it overflows in 2106.
        u32::try_from(self.now_ms() / 1000).unwrap_or(u32::MAX)
    }

    #[inline]
    fn link_source(&mut self, write: bool) -> (u64, u64) {
        let access = if write { &self.graph.link_writes } else { &self.graph.link_reads };
        let id1 = self.graph.config().start_id + access.draw(&mut self.random);
        (id1, self.random.below(self.graph.config().link_types))
    }

    fn put_link(&mut self, operation: Operation) -> Request {
        let (id1, index) = self.link_source(true);
        let id2 = self.target(id1, index, operation);
        let writer = match operation {
            Operation::UpdateLink => Writer::LinkUpdate,
            _ => Writer::LinkAdd,
        };
        self.graph.payload(writer).generate(&mut self.random, &mut self.payload);
        let (link_type, time_ms) = (LINK_TYPE_FIRST + index, self.now_ms());
        Request::PutLink { operation, id1, link_type, id2, time_ms }
    }

    fn target(&mut self, id1: u64, type_index: u64, operation: Operation) -> u64 {
        let links = self.graph.links_of(id1, type_index);
        let id2 = self.draw_target(id1, links, share_existing(operation));
        if self.seat.separate_targets {
            return id2 - id2 % self.seat.requesters + self.seat.requester;
        }
        id2
    }

    #[inline]
    fn draw_target(&mut self, id1: u64, links: u64, share: f64) -> u64 {
        match self.graph.profile().target_rule {
            TargetRule::Original2013 => id1 + self.random.below(target_range(links, share)),
            TargetRule::Exact if self.random.chance(share) => id1 + self.random.below(links.max(1)),
            TargetRule::Exact => self.random.below(self.graph.end_id()),
        }
    }

    fn multiget_targets(&mut self, id1: u64, type_index: u64) {
        let share = share_existing(Operation::MultigetLink);
        let links = self.graph.links_of(id1, type_index);
        let size = self.multiget_size();
        self.target_count = size;
        let distinct = self.graph.profile().target_rule == TargetRule::Original2013;
        if distinct && target_range(links, share) <= size as u64 {
            self.targets.iter_mut().zip(id1..).for_each(|(target, id2)| *target = id2);
            return;
        }
        for filled in 0..size {
            let mut id2 = self.draw_target(id1, links, share);
            let mut tries = 1;
            while distinct && tries < DISTINCT_TRIES && self.targets[..filled].contains(&id2) {
                id2 = self.draw_target(id1, links, share);
                tries += 1;
            }
            self.targets[filled] = id2;
        }
    }

    /// Geometric from the profile's smallest size, cut at [`MULTIGET_MAX`].
    fn multiget_size(&mut self) -> usize {
        let drawn = ((1.0 - self.random.unit()).ln() * self.multiget_scale).ceil();
        // The formula's smallest draw is 1 (0 only for a uniform draw of exactly 0).
        let size = (drawn as u64).max(1) + self.graph.profile().multiget_smallest - 1;
        (size as usize).clamp(1, MULTIGET_MAX)
    }

    fn list(&mut self) -> Request {
        if self.random.chance(self.graph.profile().list_history_share)
            && let Some(Remembered { id1, link_type, last_time_ms }) =
                self.history.pick(&mut self.random)
        {
            // The last row read has exactly that time: it is passed over.
            let limit = LIST_LIMIT;
            let query = ListQuery { id1, link_type, max_time_ms: last_time_ms, offset: 1, limit };
            return Request::GetLinksList { query, from_history: true };
        }
        let (id1, index) = self.link_source(false);
        let query = ListQuery {
            id1,
            link_type: LINK_TYPE_FIRST + index,
            max_time_ms: u64::MAX,
            offset: 0,
            limit: LIST_LIMIT,
        };
        Request::GetLinksList { query, from_history: false }
    }

    /// Learns from a list read: a list that filled the limit can be read on.
    #[inline]
    pub fn list_was_read(&mut self, query: &ListQuery, from_history: bool, result: ListResult) {
        let ListQuery { id1, link_type, .. } = *query;
        if result.rows >= LIST_LIMIT {
            let last_time_ms = result.last_time_ms;
            self.history.remember(Remembered { id1, link_type, last_time_ms }, &mut self.random);
        } else if from_history {
            self.history.forget(id1, link_type);
        }
    }
}

/// How many ids after the source targets are drawn from.
#[inline]
fn target_range(links: u64, share: f64) -> u64 {
    ((links as f64 / share).ceil() as u64).max(1)
}

#[cfg(test)]
mod tests;
