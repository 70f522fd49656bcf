//! What transactions promise, checked over whole histories: transactions that lock every row that
//! they read are strictly serializable, and a snapshot is a moment between them.
//!
//! 1. Every row holds a list. A transaction reads some rows with `get_for_update` and appends its
//!    own number to some of them; a reader takes a snapshot and reads all rows; some transactions
//!    roll back. Threads are real, memtables so small that flushes and compactions run meanwhile.
//! 2. The list that a row ends with is the order of its writers. What anybody read must be a
//!    beginning of it: nothing lost, nothing twice, nothing rolled back.
//! 3. Who wrote before whom, who read what of whom, who read before it was overwritten, and who
//!    was over before the other began: that graph must have no circle.
//!
//! `LITHIFY_HISTORIES=1000 cargo test -p lithify --test all --release serializability:: -- --nocapture`
//! is the long form.

use crate::support::{Random, watched};
use lithify::fs::{MemoryFileSystem, SystemEnvironment, World};
use lithify::{CfOptions, ColumnFamily, Db, ErrorKind, Options};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const THREADS: u64 = 4;
const TRANSACTIONS: u64 = 150;
const ROWS: u64 = 6;
const HISTORIES_DEFAULT: u64 = 100;

/// A committed transaction or a read of a snapshot.
#[derive(Debug, Default)]
struct Node {
    id: u64,
    began: u64,
    ended: u64,
    /// The list that was read, by row.
    reads: BTreeMap<u64, Vec<u64>>,
    /// Rows that it appended to.
    appends: Vec<u64>,
}

struct Bench {
    db: Db,
    rows: ColumnFamily,
    time: AtomicU64,
    next_id: AtomicU64,
}

fn list(bytes: Option<lithify::Slice>) -> Vec<u64> {
    let bytes = bytes.as_deref().unwrap_or_default();
    bytes.as_chunks::<8>().0.iter().map(|id| u64::from_le_bytes(*id)).collect()
}

impl Bench {
    fn new() -> Bench {
        let world = World {
            files: Arc::new(MemoryFileSystem::new()),
            environment: Arc::new(SystemEnvironment),
        };
        let options = Options {
            memory_budget_bytes: 4 << 20,
            memtable_bytes: 64 << 10,
            background_threads: 1,
            ..Options::default()
        };
        let small = CfOptions {
            table_bytes: 64 << 10,
            base_level_bytes_max: 128 << 10,
            ..CfOptions::default()
        };
        let db = Db::open_in("/db", options, world).unwrap();
        let rows = db.column_family("rows", small).unwrap();
        Bench { db, rows, time: AtomicU64::new(0), next_id: AtomicU64::new(1) }
    }

    fn tick(&self) -> u64 {
        self.time.fetch_add(1, Ordering::SeqCst)
    }

    fn begin(&self) -> Node {
        let id = self.next_id.fetch_add(1, Ordering::SeqCst);
        Node { id, began: self.tick(), ..Node::default() }
    }

    /// A transaction over some rows; `None` if it rolled back.
    fn transact(&self, random: &mut Random) -> Option<Node> {
        let mut node = self.begin();
        let mut transaction = self.db.transaction();
        for _ in 0..1 + random.below(4) {
            let row = random.below(ROWS);
            let key = row.to_be_bytes();
            let read = match transaction.get_for_update(&self.rows, key) {
                Ok(value) => list(value),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Deadlock, "{error}");
                    return None;
                }
            };
            let known = node.reads.entry(row).or_insert_with(|| read.clone());
            if node.appends.contains(&row) {
                continue;
            }
            assert_eq!(*known, read, "a locked row changed");
            if random.below(2) == 0 {
                let mut bytes: Vec<u8> = read.iter().flat_map(|id| id.to_le_bytes()).collect();
                bytes.extend(node.id.to_le_bytes());
                transaction.put(&self.rows, key, &bytes).unwrap();
                node.appends.push(row);
            }
            if random.below(8) == 0 {
                std::thread::yield_now();
            }
        }
        if random.below(10) == 0 {
            return None;
        }
        transaction.commit().unwrap();
        node.ended = self.tick();
        Some(node)
    }

    fn read_all(&self) -> Node {
        let mut node = self.begin();
        let snapshot = self.db.snapshot();
        for row in 0..ROWS {
            let value = self.rows.get_at(row.to_be_bytes(), &snapshot).unwrap();
            node.reads.insert(row, list(value));
        }
        node.ended = self.tick();
        node
    }

    fn client(&self, mut random: Random) -> Vec<Node> {
        let act = |random: &mut Random| match random.below(6) {
            0 => Some(self.read_all()),
            _ => self.transact(random),
        };
        (0..TRANSACTIONS).filter_map(|_| act(&mut random)).collect()
    }
}

/// What one history was about.
#[derive(Debug, Default)]
struct Seen {
    committed: usize,
    edges: usize,
}

/// Checks a history with the lists that the rows ended with.
fn check(nodes: &[Node], last: &BTreeMap<u64, Vec<u64>>) -> Result<Seen, String> {
    let place: HashMap<u64, usize> = nodes.iter().map(|node| node.id).zip(0..).collect();
    let mut edges: Vec<(usize, usize)> = Vec::new();
    for (row, order) in last {
        for id in order {
            let writer = place.get(id).ok_or(format!("row {row} has {id}, which rolled back"))?;
            if !nodes[*writer].appends.contains(row) {
                return Err(format!("row {row} has {id}, which did not append to it"));
            }
        }
        edges.extend(order.windows(2).map(|pair| (place[&pair[0]], place[&pair[1]])));
        for node in nodes {
            let times = order.iter().filter(|id| **id == node.id).count();
            if times != usize::from(node.appends.contains(row)) {
                return Err(format!("row {row} has {} {times} times", node.id));
            }
        }
    }
    for (at, node) in nodes.iter().enumerate() {
        for (row, read) in &node.reads {
            let order = &last[row];
            if !order.starts_with(read) {
                return Err(format!("{} read {read:?} of row {row}, which is {order:?}", node.id));
            }
            edges.extend(read.last().map(|id| (place[id], at)));
            let next = order.get(read.len()).map(|id| place[id]);
            edges.extend(next.filter(|next| *next != at).map(|next| (at, next)));
        }
    }
    let count = edges.len();
    acyclic(nodes, edges)?;
    Ok(Seen { committed: nodes.len(), edges: count })
}

/// Adds real time to the edges, by a chain of the moments at which nodes ended, and looks for a
/// circle.
fn acyclic(nodes: &[Node], mut edges: Vec<(usize, usize)>) -> Result<(), String> {
    let mut by_end: Vec<usize> = (0..nodes.len()).collect();
    by_end.sort_by_key(|at| nodes[*at].ended);
    let moment = |position: usize| nodes.len() + position;
    for (position, at) in by_end.iter().enumerate() {
        edges.push((*at, moment(position)));
        if position + 1 < nodes.len() {
            edges.push((moment(position), moment(position + 1)));
        }
    }
    for (at, node) in nodes.iter().enumerate() {
        let over = by_end.partition_point(|other| nodes[*other].ended < node.began);
        if over > 0 {
            edges.push((moment(over - 1), at));
        }
    }
    let total = nodes.len() * 2;
    let (mut incoming, mut outgoing) = (vec![0; total], vec![Vec::new(); total]);
    for (from, to) in edges {
        incoming[to] += 1;
        outgoing[from].push(to);
    }
    let mut free: Vec<usize> = (0..total).filter(|at| incoming[*at] == 0).collect();
    let mut done = 0;
    while let Some(at) = free.pop() {
        done += 1;
        for to in &outgoing[at] {
            incoming[*to] -= 1;
            if incoming[*to] == 0 {
                free.push(*to);
            }
        }
    }
    if done == total {
        return Ok(());
    }
    let stuck: Vec<u64> =
        (0..nodes.len()).filter(|at| incoming[*at] > 0).map(|at| nodes[at].id).take(20).collect();
    Err(format!("a circle among {stuck:?}"))
}

fn history(seed: u64) -> Seen {
    let bench = Bench::new();
    let nodes: Vec<Node> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..THREADS)
            .map(|thread| {
                let random = Random(seed * THREADS + thread);
                scope.spawn(|| bench.client(random))
            })
            .collect();
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    });
    let last = (0..ROWS).map(|row| (row, list(bench.rows.get(row.to_be_bytes()).unwrap())));
    check(&nodes, &last.collect()).unwrap_or_else(|what| panic!("seed {seed}: {what}"))
}

#[test]
fn histories_are_strictly_serializable() {
    let histories = std::env::var("LITHIFY_HISTORIES").ok().and_then(|text| text.parse().ok());
    let (mut committed, mut edges) = (0, 0);
    let histories = histories.unwrap_or(HISTORIES_DEFAULT);
    for seed in 0..histories {
        let seen = watched("histories", || history(seed));
        committed += seen.committed;
        edges += seen.edges;
    }
    println!("{histories} histories, {committed} transactions and snapshots, {edges} dependencies");
}

/// The checker finds what it is for.
mod the_checker {
    use super::*;

    fn node(id: u64, time: [u64; 2], reads: &[(u64, &[u64])], appends: &[u64]) -> Node {
        let reads = reads.iter().map(|(row, list)| (*row, list.to_vec())).collect();
        Node { id, began: time[0], ended: time[1], reads, appends: appends.to_vec() }
    }

    fn refused(nodes: &[Node], last: &[(u64, &[u64])]) -> String {
        let last = last.iter().map(|(row, list)| (*row, list.to_vec())).collect();
        check(nodes, &last).unwrap_err()
    }

    #[test]
    fn finds_write_skew() {
        let first = node(1, [0, 3], &[(0, &[]), (1, &[])], &[0]);
        let second = node(2, [1, 2], &[(0, &[]), (1, &[])], &[1]);
        assert!(refused(&[first, second], &[(0, &[1]), (1, &[2])]).starts_with("a circle"));
    }

    #[test]
    fn finds_lost_updates() {
        let first = node(1, [0, 3], &[(0, &[])], &[0]);
        let second = node(2, [1, 2], &[(0, &[])], &[0]);
        assert_eq!(refused(&[first, second], &[(0, &[2])]), "row 0 has 1 0 times");
    }

    #[test]
    fn finds_stale_reads() {
        let writer = node(1, [0, 1], &[(0, &[])], &[0]);
        let reader = node(2, [2, 3], &[(0, &[])], &[]);
        assert!(refused(&[writer, reader], &[(0, &[1])]).starts_with("a circle"));
    }

    #[test]
    fn finds_dirty_reads() {
        let reader = node(2, [0, 1], &[(0, &[9])], &[]);
        assert!(refused(&[reader], &[(0, &[])]).contains("which is []"));
    }

    #[test]
    fn finds_a_torn_snapshot() {
        let writer = node(1, [0, 3], &[(0, &[]), (1, &[])], &[0, 1]);
        let reader = node(2, [1, 2], &[(0, &[1]), (1, &[])], &[]);
        assert!(refused(&[writer, reader], &[(0, &[1]), (1, &[1])]).starts_with("a circle"));
    }
}
