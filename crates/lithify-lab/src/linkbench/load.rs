//! The load phase: nodes by one thread, links and counts by several, concurrently.
//!
//! Link loaders take chunks of consecutive source ids from one queue, highest ids first. Each chunk
//! has its own random stream, so the loaded data are the same whatever the number of loaders.
//! Counts are written as rows of their own; loading a link does not read or change one.
//!
//! The engine must be empty. Does not: flush or compact afterwards; the caller decides.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::control::{Completions, Control, LoadProgress, ObservedStalls, PerSecond};
use super::graph::{Graph, Stream, Writer};
use crate::adapter::graph::schema::{
    COUNT, CountRow, LINK, LINK_SECONDARY, LINK_TYPE_FIRST, Link, NODE, NODE_TYPE, NodeRow,
    VISIBILITY_DEFAULT, count_key, node_key,
};
use crate::adapter::graph::{GraphEngine, GraphSession, with_retries};
use crate::adapter::{EngineError, EngineResult, WriteBatch};
use crate::latency::{Latencies, LatencySummary};
use crate::random::Random;

/// When the secondary index is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SecondaryIndex {
    /// With every link.
    WithLinks,
    /// In one pass over the loaded links.
    AfterLinks,
}

/// How to load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadConfig {
    /// Threads that load links; nodes have one of their own.
    pub loaders: u64,
    /// Consecutive source ids that a loader takes at once.
    pub chunk_ids: u64,
    /// Rows per transaction.
    pub batch_rows: usize,
    /// False loads links and counts only.
    pub nodes: bool,
    /// When the secondary index is written.
    pub secondary_index: SecondaryIndex,
}

impl Default for LoadConfig {
    fn default() -> Self {
        LoadConfig {
            loaders: 10,
            chunk_ids: 2048,
            batch_rows: 1024,
            nodes: true,
            secondary_index: SecondaryIndex::WithLinks,
        }
    }
}

/// What the load phase did.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LoadOutcome {
    /// Nodes inserted.
    pub nodes: u64,
    /// Links inserted.
    pub links: u64,
    /// Count rows inserted.
    pub counts: u64,
    /// Wall time until all of these were inserted, seconds.
    pub seconds: f64,
    /// Links per node.
    pub links_per_node: f64,
    /// Links per second.
    pub ips_link: f64,
    /// Links and counts per second.
    pub ips_link_count: f64,
    /// Links, counts and nodes per second.
    pub ips_all: f64,
    /// Wall time of the build of the secondary index, seconds; `None` when it came with the links.
    pub secondary_seconds: Option<f64>,
    /// Links, counts and nodes inserted in each second.
    pub per_second: Vec<u64>,
    /// Windows without a completed transaction.
    pub observed_stalls: ObservedStalls,
    /// Transactions that had to be tried again.
    pub retries: u64,
    /// One line per kind of batch: one sample per transaction.
    pub latencies: Vec<LatencySummary>,
    /// True when the caller stopped it before its end.
    pub cancelled: bool,
}

impl LoadOutcome {
    /// The line that ends the phase.
    pub fn line(&self) -> String {
        format!(
            "LOAD PHASE COMPLETED. {} nodes, {} links ({:.4} per node) and {} counts in {:.3} \
             seconds. Links/second = {:.3}",
            self.nodes, self.links, self.links_per_node, self.counts, self.seconds, self.ips_link
        )
    }
}

#[derive(Clone, Copy)]
enum Bulk {
    Nodes,
    Links,
    Counts,
}

/// What one thread did.
#[derive(Default)]
struct Tally {
    rows: [u64; 3],
    latencies: [Latencies; 3],
    per_second: PerSecond,
    completions: Completions,
    retries: u64,
}

impl Tally {
    fn merge(&mut self, other: &Tally) {
        for (sum, rows) in self.rows.iter_mut().zip(other.rows) {
            *sum += rows;
        }
        for (sum, latencies) in self.latencies.iter_mut().zip(&other.latencies) {
            sum.merge(latencies);
        }
        self.per_second.merge(&other.per_second);
        self.completions.merge(&other.completions);
        self.retries += other.retries;
    }
}

/// What the threads of a load share.
struct Shared<'a> {
    graph: &'a Graph,
    config: &'a LoadConfig,
    control: &'a Control<'a>,
    start: Instant,
    /// Set when one thread fails: the others stop.
    failed: AtomicBool,
    next_chunk: AtomicU64,
    ids: AtomicU64,
    rows: [AtomicU64; 3],
    secondary_rows: AtomicU64,
    finished: Mutex<(Tally, Option<EngineError>)>,
}

impl Shared<'_> {
    fn must_stop(&self) -> bool {
        self.control.is_cancelled() || self.failed.load(Ordering::Relaxed)
    }

    fn report(&self) {
        let [nodes, links, counts] = [0, 1, 2].map(|kind| self.rows[kind].load(Ordering::Relaxed));
        self.control.progress.load(&LoadProgress {
            elapsed: self.start.elapsed(),
            nodes,
            links,
            counts,
            ids: self.ids.load(Ordering::Relaxed),
            ids_total: self.graph.config().nodes,
            secondary_rows: self.secondary_rows.load(Ordering::Relaxed),
        });
    }

    /// Books a thread's work; its error, if it is the first, becomes the phase's.
    fn finish(&self, tally: &Tally, result: EngineResult<()>) {
        let mut finished = self.finished.lock().unwrap_or_else(|poison| poison.into_inner());
        finished.0.merge(tally);
        if let Err(error) = result {
            self.failed.store(true, Ordering::Relaxed);
            finished.1.get_or_insert(error);
        }
    }
}

/// Loads `graph` into the empty `engine`.
pub fn run(
    graph: &Graph,
    engine: &dyn GraphEngine,
    config: &LoadConfig,
    control: &Control<'_>,
) -> EngineResult<LoadOutcome> {
    if config.loaders == 0 || config.chunk_ids == 0 || config.batch_rows == 0 {
        return Err(EngineError::fatal("loaders, chunk_ids and batch_rows must be at least 1"));
    }
    let index_later = config.secondary_index == SecondaryIndex::AfterLinks;
    if index_later {
        engine.defer_secondary_index()?;
    }
    let shared = Shared {
        graph,
        config,
        control,
        start: Instant::now(),
        failed: AtomicBool::new(false),
        next_chunk: AtomicU64::new(0),
        ids: AtomicU64::new(0),
        rows: Default::default(),
        secondary_rows: AtomicU64::new(0),
        finished: Mutex::default(),
    };
    in_threads(&shared, engine);
    let seconds = shared.start.elapsed().as_secs_f64();
    let mut secondary_seconds = None;
    if index_later && !shared.must_stop() {
        let start = Instant::now();
        engine.build_secondary_index(config.batch_rows, &mut |rows| {
            shared.secondary_rows.fetch_add(rows, Ordering::Relaxed);
            if control.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        secondary_seconds = Some(start.elapsed().as_secs_f64());
    }
    shared.report();
    let cancelled = control.is_cancelled();
    let (tally, error) = shared.finished.into_inner().unwrap_or_else(|poison| poison.into_inner());
    error.map_or_else(|| Ok(outcome(&tally, seconds, secondary_seconds, cancelled)), Err)
}

/// Runs all loaders and reports progress until the last one ends.
fn in_threads(shared: &Shared<'_>, engine: &dyn GraphEngine) {
    std::thread::scope(|scope| {
        let (sender, workers) = channel();
        let spawn = |work: fn(&mut Loader<'_>) -> EngineResult<()>, sender: Sender<()>| {
            scope.spawn(move || {
                let mut tally = Tally::default();
                let result = engine.graph_session(false).and_then(|session| {
                    let mut loader = Loader::new(shared, session);
                    let result = work(&mut loader);
                    tally = loader.tally;
                    result
                });
                shared.finish(&tally, result);
                drop(sender);
            });
        };
        if shared.config.nodes {
            spawn(|loader| loader.load_nodes(), sender.clone());
        }
        for _ in 0..shared.config.loaders {
            spawn(|loader| loader.load_links(), sender.clone());
        }
        drop(sender);
        shared.control.tick_until_done(&workers, || shared.report());
    });
}

fn outcome(
    tally: &Tally,
    seconds: f64,
    secondary_seconds: Option<f64>,
    cancelled: bool,
) -> LoadOutcome {
    let [nodes, links, counts] = tally.rows;
    let rate = |rows: u64| rows as f64 / seconds.max(f64::MIN_POSITIVE);
    let names = ["LOAD_NODE_BULK", "LOAD_LINKS_BULK", "LOAD_COUNTS_BULK"];
    LoadOutcome {
        nodes,
        links,
        counts,
        seconds,
        links_per_node: links as f64 / nodes.max(1) as f64,
        ips_link: rate(links),
        ips_link_count: rate(links + counts),
        ips_all: rate(links + counts + nodes),
        secondary_seconds,
        per_second: tally.per_second.amounts().to_vec(),
        observed_stalls: ObservedStalls::of(&tally.completions),
        retries: tally.retries,
        latencies: names
            .iter()
            .zip(&tally.latencies)
            .filter(|(_, latencies)| latencies.count() > 0)
            .map(|(name, latencies)| LatencySummary::new(name, latencies))
            .collect(),
        cancelled,
    }
}

/// One loading thread.
struct Loader<'a> {
    shared: &'a Shared<'a>,
    session: Box<dyn GraphSession + 'a>,
    tally: Tally,
    links: WriteBatch,
    link_rows: usize,
    counts: WriteBatch,
    payload: Vec<u8>,
    value: Vec<u8>,
    targets: Vec<u64>,
}

impl<'a> Loader<'a> {
    fn new(shared: &'a Shared<'a>, session: Box<dyn GraphSession + 'a>) -> Self {
        Loader {
            shared,
            session,
            tally: Tally::default(),
            links: WriteBatch::new(),
            link_rows: 0,
            counts: WriteBatch::new(),
            payload: Vec::new(),
            value: Vec::new(),
            targets: Vec::new(),
        }
    }

    fn load_nodes(&mut self) -> EngineResult<()> {
        let graph = self.shared.graph;
        let mut random = graph.random(Stream::Nodes, 0);
        let time_s = u32::try_from(graph.config().epoch_ms / 1000).unwrap_or(u32::MAX);
        let mut batch = WriteBatch::new();
        for id in graph.config().start_id..graph.end_id() {
            graph.payload(Writer::NodeAdd).generate(&mut random, &mut self.payload);
            let row = NodeRow { node_type: NODE_TYPE, version: 1, time_s, data: &self.payload };
            row.encode(&mut self.value);
            batch.put(NODE, &node_key(id), &self.value);
            if batch.len() >= self.shared.config.batch_rows {
                self.write(Bulk::Nodes, &mut batch)?;
                if self.shared.must_stop() {
                    return Ok(());
                }
            }
        }
        self.write(Bulk::Nodes, &mut batch)
    }

    fn load_links(&mut self) -> EngineResult<()> {
        let (graph, chunk_ids) = (self.shared.graph, self.shared.config.chunk_ids);
        let chunks = graph.config().nodes.div_ceil(chunk_ids);
        loop {
            let taken = self.shared.next_chunk.fetch_add(1, Ordering::Relaxed);
            if taken >= chunks {
                break;
            }
            let chunk = chunks - 1 - taken;
            let mut random = graph.random(Stream::LinkChunk, chunk);
            let first = graph.config().start_id + chunk * chunk_ids;
            let ids = first..(first + chunk_ids).min(graph.end_id());
            let count = ids.end - ids.start;
            for id1 in ids {
                for type_index in 0..graph.config().link_types {
                    self.load_list(id1, type_index, &mut random)?;
                    if self.shared.must_stop() {
                        return Ok(());
                    }
                }
            }
            self.shared.ids.fetch_add(count, Ordering::Relaxed);
        }
        self.write_links()?;
        self.write_counts()
    }

    fn load_list(&mut self, id1: u64, type_index: u64, random: &mut Random) -> EngineResult<()> {
        let graph = self.shared.graph;
        let links = graph.links_of(id1, type_index);
        if links == 0 {
            return Ok(());
        }
        let with_secondary = self.shared.config.secondary_index == SecondaryIndex::WithLinks;
        let link_type = LINK_TYPE_FIRST + type_index;
        // Uniform over the 2^32 ms (49.7 days) before the load.
        let oldest_ms = graph.config().epoch_ms.saturating_sub(1 << 32);
        let mut newest_ms = 0;
        self.choose_targets(id1, links, random);
        for index in 0..self.targets.len() {
            let time_ms = oldest_ms + random.below(1 << 32);
            newest_ms = newest_ms.max(time_ms);
            graph.payload(Writer::LinkAdd).generate(random, &mut self.payload);
            let link = Link {
                id1,
                link_type,
                id2: self.targets[index],
                visibility: VISIBILITY_DEFAULT,
                version: 0,
                time_ms,
                data: &self.payload,
            };
            link.encode(&mut self.value);
            self.links.put(LINK, &link.key(), &self.value);
            if with_secondary {
                link.encode_secondary(&mut self.value);
                self.links.put(LINK_SECONDARY, &link.secondary_key(), &self.value);
            }
            self.link_rows += 1;
            if self.link_rows >= self.shared.config.batch_rows {
                self.write_links()?;
                if self.shared.must_stop() {
                    return Ok(());
                }
            }
        }
        let count = u32::try_from(self.targets.len()).unwrap_or(u32::MAX);
        CountRow { count, time_ms: newest_ms, version: 0 }.encode(&mut self.value);
        self.counts.put(COUNT, &count_key(id1, link_type), &self.value);
        if self.counts.len() >= self.shared.config.batch_rows {
            self.write_counts()?;
        }
        Ok(())
    }

    /// The targets of a list, all different. Random ones that collide are dropped: the original
    /// writes them twice and counts them twice, which no later read could confirm.
    fn choose_targets(&mut self, id1: u64, links: u64, random: &mut Random) {
        let random_max = self.shared.graph.config().random_target_max;
        self.targets.clear();
        if random_max == 0 {
            self.targets.extend(id1..id1 + links);
        } else {
            self.targets.extend((0..links).map(|_| random.below(random_max)));
            self.targets.sort_unstable();
            self.targets.dedup();
        }
    }

    fn write_links(&mut self) -> EngineResult<()> {
        let mut batch = std::mem::take(&mut self.links);
        let rows = std::mem::take(&mut self.link_rows);
        let result = self.write_rows(Bulk::Links, &mut batch, rows);
        self.links = batch;
        result
    }

    fn write_counts(&mut self) -> EngineResult<()> {
        let mut batch = std::mem::take(&mut self.counts);
        let result = self.write(Bulk::Counts, &mut batch);
        self.counts = batch;
        result
    }

    fn write(&mut self, kind: Bulk, batch: &mut WriteBatch) -> EngineResult<()> {
        self.write_rows(kind, batch, batch.len())
    }

    /// Writes and empties `batch`, which holds `rows` rows of the benchmark.
    fn write_rows(&mut self, kind: Bulk, batch: &mut WriteBatch, rows: usize) -> EngineResult<()> {
        if batch.is_empty() {
            return Ok(());
        }
        let start = Instant::now();
        self.tally.retries += with_retries(|| self.session.load(batch))?;
        let taken = start.elapsed();
        batch.clear();
        let rows = rows as u64;
        self.tally.latencies[kind as usize].record(nanoseconds(taken));
        self.tally.rows[kind as usize] += rows;
        let elapsed = self.shared.start.elapsed();
        self.tally.per_second.record(elapsed, rows);
        self.tally.completions.record(elapsed);
        self.shared.rows[kind as usize].fetch_add(rows, Ordering::Relaxed);
        Ok(())
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
