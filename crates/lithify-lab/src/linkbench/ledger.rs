//! The last writes of a sample of rows, and what these rows must be in the end.
//!
//! Owns: [`Ledger`]. The number of rows does not tell whether an update was lost. So each requester
//! notes what its last write left of every row of a sample, from when to when. In the end a row must
//! be what one of the writes left that no other write followed.
//!
//! The sample: all rows while there are few; then those whose hash begins with so many zero bits that
//! they are few enough. Every requester decides by the same hash, and the fewest rows of all decide in
//! the end, so every write of a row in the sample is known, whoever made it.
//!
//! Pure: the caller reads the clock.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use twox_hash::XxHash3_64;

use super::generator::Request;
use crate::adapter::graph::schema::{Link, NodeRow, VISIBILITY_DEFAULT};

/// Most rows that a requester remembers.
const ROWS_MAX: usize = 8192;

/// Most rows in the ledger of all requesters.
const ALL_ROWS_MAX: usize = 65_536;

/// A node or a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum RowId {
    Node(u64),
    /// Type, source, target.
    Link([u64; 3]),
}

impl RowId {
    fn hash(self) -> u64 {
        let (kind, [first, second, third]) = match self {
            RowId::Node(id) => (0, [id, 0, 0]),
            RowId::Link(parts) => (1, parts),
        };
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&first.to_le_bytes());
        bytes[8..16].copy_from_slice(&second.to_le_bytes());
        bytes[16..].copy_from_slice(&third.to_le_bytes());
        XxHash3_64::oneshot_with_seed(kind, &bytes)
    }
}

/// What a row is after a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    /// It is not there.
    Gone,
    /// A hidden link; its time and data are those that it had.
    Hidden,
    /// A node or a visible link: a hash of time and data.
    Row(u64),
    /// The write failed: the engine may have done it or not.
    Unknown,
}

impl Left {
    fn row(time: u64, data: &[u8]) -> Left {
        Left::Row(XxHash3_64::oneshot_with_seed(time, data))
    }
}

/// One write, from before its first call to after its last one.
#[derive(Clone, Copy, Debug)]
struct Write {
    begun: Instant,
    ended: Instant,
    left: Left,
}

impl Write {
    fn precedes(&self, other: &Write) -> bool {
        self.ended <= other.begun
    }
}

/// The last writes of a sample of rows.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// Zero bits with which the hash of a row of the sample begins.
    zero_bits: u32,
    /// Per row the writes that no other followed; of them any may be the last one.
    rows: HashMap<RowId, Vec<Write>>,
}

impl Ledger {
    /// Notes a request of one requester, which makes one at a time. `found` is the engine's answer,
    /// `None` when the request failed.
    pub(super) fn note(
        &mut self,
        request: &Request,
        payload: &[u8],
        found: Option<bool>,
        [begun, ended]: [Instant; 2],
    ) {
        let Some(row) = target(request).filter(|row| self.samples(*row)) else { return };
        let Some(left) = left_by(request, payload, found) else { return };
        let write = Write { begun, ended, left };
        let writes = self.rows.entry(row).or_default();
        writes.clear();
        writes.push(write);
        self.shrink(ROWS_MAX);
    }

    /// Adds what other requesters wrote, meanwhile or later.
    pub(super) fn merge(&mut self, other: &Ledger) {
        if other.zero_bits > self.zero_bits {
            self.sample_less(other.zero_bits);
        }
        for (row, writes) in &other.rows {
            if self.samples(*row) {
                add(self.rows.entry(*row).or_default(), writes);
            }
        }
        self.shrink(ALL_ROWS_MAX);
    }

    /// Rows of the sample.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    fn samples(&self, row: RowId) -> bool {
        row.hash().leading_zeros() >= self.zero_bits
    }

    fn shrink(&mut self, rows_max: usize) {
        while self.rows.len() > rows_max {
            self.sample_less(self.zero_bits + 1);
        }
    }

    fn sample_less(&mut self, zero_bits: u32) {
        self.zero_bits = zero_bits;
        self.rows.retain(|row, _| row.hash().leading_zeros() >= zero_bits);
    }
}

/// Adds writes of a row to those of others.
fn add(writes: &mut Vec<Write>, others: &[Write]) {
    for other in others {
        writes.retain(|write| !write.precedes(other));
        if !writes.iter().any(|write| other.precedes(write)) {
            writes.push(*other);
        }
    }
}

/// The row that a request writes.
fn target(request: &Request) -> Option<RowId> {
    match *request {
        Request::AddNode { id, .. }
        | Request::UpdateNode { id, .. }
        | Request::DeleteNode { id } => Some(RowId::Node(id)),
        Request::PutLink { id1, link_type, id2, .. }
        | Request::DeleteLink { id1, link_type, id2, .. } => {
            Some(RowId::Link([link_type, id1, id2]))
        }
        _ => None,
    }
}

/// What a request left of its row; `None` when it wrote nothing.
fn left_by(request: &Request, payload: &[u8], found: Option<bool>) -> Option<Left> {
    let Some(found) = found else { return Some(Left::Unknown) };
    match *request {
        Request::AddNode { time_s, .. } => Some(Left::row(u64::from(time_s), payload)),
        Request::PutLink { time_ms, .. } => Some(Left::row(time_ms, payload)),
        Request::UpdateNode { time_s, .. } => found.then(|| Left::row(u64::from(time_s), payload)),
        Request::DeleteNode { .. } => found.then_some(Left::Gone),
        Request::DeleteLink { .. } => found.then_some(Left::Hidden),
        _ => None,
    }
}

/// Compares a ledger with the rows that are there, which it is shown one by one.
pub(super) struct Comparison<'a> {
    ledger: &'a Ledger,
    seen: HashSet<RowId>,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(ledger: &'a Ledger) -> Comparison<'a> {
        Comparison { ledger, seen: HashSet::new() }
    }

    /// A node that is there; what is wrong about it.
    pub(super) fn node(&mut self, id: u64, row: &NodeRow<'_>) -> Option<String> {
        self.compare(RowId::Node(id), || Left::row(u64::from(row.time_s), row.data))
    }

    /// A link that is there, by its primary key; what is wrong about it.
    pub(super) fn link(&mut self, link: &Link<'_>) -> Option<String> {
        let row = RowId::Link([link.link_type, link.id1, link.id2]);
        self.compare(row, || match link.visibility {
            VISIBILITY_DEFAULT => Left::row(link.time_ms, link.data),
            _ => Left::Hidden,
        })
    }

    fn compare(&mut self, row: RowId, left: impl FnOnce() -> Left) -> Option<String> {
        if !self.ledger.samples(row) {
            return None;
        }
        let writes = self.ledger.rows.get(&row)?;
        self.seen.insert(row);
        let found = left();
        (!may_be(writes, found)).then(|| format!("{row:?} is not as the last request left it"))
    }

    /// What is missing among the rows that were shown.
    pub(super) fn missing(&self) -> Vec<String> {
        let rows = self.ledger.rows.iter();
        rows.filter(|(row, writes)| !self.seen.contains(row) && !may_be(writes, Left::Gone))
            .map(|(row, _)| format!("{row:?} is missing, but a request wrote it"))
            .collect()
    }
}

fn may_be(writes: &[Write], found: Left) -> bool {
    writes.iter().any(|write| write.left == found || write.left == Left::Unknown)
}
