//! The consistency oracle must find every planted inconsistency, and a lost update.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};

use lithify_lab::adapter::graph::GraphSession as _;
use lithify_lab::adapter::graph::schema::{self, CountRow, LINK_TYPE_FIRST, Link, NodeRow, SPACES};
use lithify_lab::adapter::graph::store::GraphStore;
use lithify_lab::adapter::layer::{EngineLayer, SessionLayer};
use lithify_lab::adapter::{BatchOp, Engine, EngineResult, Session, SpaceId, WriteBatch};
use lithify_lab::engines::model::ModelEngine;
use lithify_lab::linkbench::expected::Expected;
use lithify_lab::linkbench::load::{self, LoadConfig};
use lithify_lab::linkbench::oracle::{self, OracleReport};
use lithify_lab::linkbench::request::{self, RequestConfig};
use lithify_lab::linkbench::{Control, Graph, GraphConfig, Profile};

fn check(engine: &dyn Engine) -> OracleReport {
    oracle::check(&engine, &Control::silent()).unwrap()
}

fn check_expected(engine: &dyn Engine, expected: &Expected) -> OracleReport {
    oracle::check_expected(&engine, &Control::silent(), expected).unwrap()
}

fn sample(id2: u64) -> Link<'static> {
    Link {
        id1: 9,
        link_type: LINK_TYPE_FIRST,
        id2,
        visibility: 1,
        version: 0,
        time_ms: 1000 + id2,
        data: b"data",
    }
}

/// An engine whose transactions lock nothing: of two that read a count, both read it before either
/// writes it.
struct Unlocked {
    inner: ModelEngine,
    both_have_read: Barrier,
}

impl EngineLayer for Unlocked {
    fn below(&self) -> &dyn Engine {
        &self.inner
    }
    fn into_below(self: Box<Self>) -> Box<dyn Engine> {
        Box::new(self.inner)
    }
    fn session_above(&self) -> EngineResult<Box<dyn Session + '_>> {
        Ok(Box::new(Racing {
            inner: self.inner.session()?,
            batch: WriteBatch::new(),
            both_have_read: &self.both_have_read,
        }))
    }
}

struct Racing<'a> {
    inner: Box<dyn Session + 'a>,
    batch: WriteBatch,
    both_have_read: &'a Barrier,
}

impl SessionLayer for Racing<'_> {
    fn below(&mut self) -> &mut dyn Session {
        &mut *self.inner
    }
    fn begin_above(&mut self, _row_group: u64) -> EngineResult<()> {
        self.batch.clear();
        Ok(())
    }
    fn get_for_update_above(
        &mut self,
        space: SpaceId,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> EngineResult<bool> {
        let found = self.inner.get(space, key, value);
        if space == schema::COUNT {
            self.both_have_read.wait();
        }
        found
    }
    fn change_above(&mut self, op: BatchOp<'_>) -> EngineResult<()> {
        self.batch.change(op);
        Ok(())
    }
    fn commit_above(&mut self) -> EngineResult<()> {
        self.inner.write_batch(&self.batch)
    }
    fn rollback_above(&mut self) -> EngineResult<()> {
        Ok(())
    }
}

#[test]
fn the_oracle_catches_a_lost_update() {
    let engine = Unlocked { inner: ModelEngine::new(&SPACES), both_have_read: Barrier::new(2) };
    std::thread::scope(|scope| {
        for id2 in 1..=2 {
            let engine = &engine;
            scope.spawn(move || {
                let mut store = GraphStore::new(engine.session().unwrap(), false);
                store.put_link(&sample(id2), 1000).unwrap();
            });
        }
    });
    let report = check(&engine);
    assert_eq!((report.visible_links, report.counted_links, report.differences), (2, 1, 1));
}

/// A consistent graph with one list of three links, then one planted defect.
fn planted(defect: impl FnOnce(&mut WriteBatch, &Link<'_>)) -> OracleReport {
    let engine = ModelEngine::new(&SPACES);
    let mut store = GraphStore::new(engine.session().unwrap(), false);
    for id2 in 1..=3 {
        store.put_link(&sample(id2), 1000).unwrap();
    }
    assert!(check(&engine).passed());
    let mut batch = WriteBatch::new();
    defect(&mut batch, &sample(2));
    engine.session().unwrap().write_batch(&batch).unwrap();
    check(&engine)
}

fn put_link_row(batch: &mut WriteBatch, link: &Link<'_>) {
    let mut value = Vec::new();
    link.encode(&mut value);
    batch.put(schema::LINK, &link.key(), &value);
}

fn put_secondary_row(batch: &mut WriteBatch, link: &Link<'_>) {
    let mut value = Vec::new();
    link.encode_secondary(&mut value);
    batch.put(schema::LINK_SECONDARY, &link.secondary_key(), &value);
}

fn put_count(batch: &mut WriteBatch, id1: u64, count: u32) {
    let mut value = Vec::new();
    CountRow { count, time_ms: 1, version: 1 }.encode(&mut value);
    batch.put(schema::COUNT, &schema::count_key(id1, LINK_TYPE_FIRST), &value);
}

#[test]
fn the_oracle_accepts_a_count_of_zero_without_links() {
    let report = planted(|batch, _| put_count(batch, 1234, 0));
    assert!(report.passed());
}

#[test]
fn the_oracle_detects_wrong_counts() {
    let missing = planted(|batch, link| {
        batch.delete(schema::COUNT, &schema::count_key(link.id1, link.link_type));
    });
    assert_eq!(missing.differences, 1);
    assert!(missing.described[0].contains("no count, but 3"), "{:?}", missing.described);
    assert_eq!(planted(|batch, link| put_count(batch, link.id1, 4)).differences, 1);
    // A count whose list does not exist, before and after all lists.
    assert_eq!(planted(|batch, _| put_count(batch, 1, 1)).differences, 1);
    assert_eq!(planted(|batch, _| put_count(batch, 99, 1)).differences, 1);
}

#[test]
fn the_oracle_detects_links_and_index_that_disagree() {
    let hidden = planted(|batch, link| put_link_row(batch, &Link { visibility: 0, ..*link }));
    assert_eq!(hidden.differences, 2, "one row on each side has no partner");
    let data = planted(|batch, link| put_link_row(batch, &Link { data: b"dada", ..*link }));
    assert_eq!(data.differences, 2);
    let version = planted(|batch, link| put_secondary_row(batch, &Link { version: 1, ..*link }));
    assert_eq!(version.differences, 2);
    let time = planted(|batch, link| put_link_row(batch, &Link { time_ms: 1, ..*link }));
    assert_eq!(time.differences, 2);
    // The old index row of a moved link stayed behind: also one visible link too many.
    let orphan = planted(|batch, link| put_secondary_row(batch, &Link { time_ms: 5, ..*link }));
    assert_eq!(orphan.differences, 2);
    let lost = planted(|batch, link| {
        batch.delete(schema::LINK_SECONDARY, &link.secondary_key());
    });
    assert_eq!(lost.differences, 2);
    // Links of a list and type that nothing else knows.
    let stray = planted(|batch, link| put_link_row(batch, &Link { link_type: 5, ..*link }));
    assert_eq!(stray.differences, 1);
    let hidden_orphan = planted(|batch, link| {
        put_secondary_row(batch, &Link { id1: 10, visibility: 0, ..*link });
    });
    assert_eq!(hidden_orphan.differences, 1);
}

#[test]
fn the_oracle_detects_malformed_rows() {
    for space in SPACES.iter().zip(0..).map(|(_, index)| SpaceId(index)) {
        let report = planted(|batch, _| batch.put(space, b"\0\0\x01\x00garbage", b"x"));
        assert!(report.differences >= 1, "space {}", space.0);
        assert!(report.described[0].contains("malformed"), "{:?}", report.described);
    }
}

/// An engine that acknowledges every transaction and loses one in so many; of batches likewise.
struct Forgetful {
    inner: ModelEngine,
    lost_one_in: u64,
    acknowledged: AtomicU64,
}

impl Forgetful {
    fn new(lost_one_in: u64) -> Forgetful {
        Forgetful { inner: ModelEngine::new(&SPACES), lost_one_in, acknowledged: AtomicU64::new(0) }
    }

    fn loses(&self) -> bool {
        let count = self.acknowledged.fetch_add(1, Ordering::Relaxed) + 1;
        self.lost_one_in > 0 && count.is_multiple_of(self.lost_one_in)
    }
}

impl EngineLayer for Forgetful {
    fn below(&self) -> &dyn Engine {
        &self.inner
    }
    fn into_below(self: Box<Self>) -> Box<dyn Engine> {
        Box::new(self.inner)
    }
    fn session_above(&self) -> EngineResult<Box<dyn Session + '_>> {
        Ok(Box::new(ForgetfulSession { inner: self.inner.session()?, engine: self }))
    }
}

struct ForgetfulSession<'a> {
    inner: Box<dyn Session + 'a>,
    engine: &'a Forgetful,
}

impl SessionLayer for ForgetfulSession<'_> {
    fn below(&mut self) -> &mut dyn Session {
        &mut *self.inner
    }
    fn write_batch_above(&mut self, batch: &WriteBatch) -> EngineResult<()> {
        if self.engine.loses() { Ok(()) } else { self.inner.write_batch(batch) }
    }
    fn commit_above(&mut self) -> EngineResult<()> {
        if self.engine.loses() { self.inner.rollback() } else { self.inner.commit() }
    }
}

const NODES: u64 = 3_000;

/// Loads on a sound engine, then makes requests on one that loses transactions; the report without
/// and with what the driver did.
fn requests_on_forgetful(lost_one_in: u64) -> [OracleReport; 2] {
    let graph = Graph::new(Profile::lb2013(), GraphConfig::with_nodes(NODES)).unwrap();
    let mut engine = Forgetful::new(0);
    let loaded =
        load::run(&graph, &(&engine as &dyn Engine), &LoadConfig::default(), &Control::silent());
    let mut expected = Expected::after_load(&graph, &loaded.unwrap(), true);
    engine.lost_one_in = lost_one_in;
    let config = RequestConfig {
        requesters: 2,
        requests_per_requester: 30_000,
        ..RequestConfig::after_load(&graph)
    };
    let outcome =
        request::run(&graph, &(&engine as &dyn Engine), &config, &Control::silent()).unwrap();
    assert!(outcome.failures == 0 && outcome.effects.links_added > 100, "{:?}", outcome.effects);
    expected.follow(&outcome);
    [check(&engine), check_expected(&engine, &expected)]
}

#[test]
fn the_oracle_catches_an_engine_that_loses_whole_transactions() {
    for report in requests_on_forgetful(0) {
        assert!(report.passed(), "{:?}", report.described);
    }
    let [agreeing, compared] = requests_on_forgetful(1000);
    assert!(agreeing.passed(), "its views agree: alone they tell nothing");
    assert!(!compared.passed());
    let described = compared.described.join("; ");
    assert!(described.contains("by what the driver wrote"), "{described}");
}

#[test]
fn the_oracle_catches_a_lost_batch_of_a_load() {
    let graph = Graph::new(Profile::lb2013(), GraphConfig::with_nodes(NODES)).unwrap();
    let engine = Forgetful::new(2);
    // Nodes only: nothing else would miss them.
    let mut loader = engine.session().unwrap();
    let mut batch = WriteBatch::new();
    for id in graph.config().start_id..graph.end_id() {
        let row = NodeRow { node_type: 1, version: 1, time_s: 1, data: b"data" };
        let mut value = Vec::new();
        row.encode(&mut value);
        batch.put(schema::NODE, &schema::node_key(id), &value);
        if batch.len() == 1000 {
            loader.write_batch(&batch).unwrap();
            batch.clear();
        }
    }
    drop(loader);
    let mut report = check(&engine);
    assert!(report.passed() && report.nodes == 2000, "{report:?}");
    let loaded = load::run(
        &graph,
        &(&ModelEngine::new(&SPACES) as &dyn Engine),
        &LoadConfig::default(),
        &Control::silent(),
    );
    report.expect(&Expected::after_load(&graph, &loaded.unwrap(), true));
    assert!(report.described[0].starts_with("2000 nodes, but 3000"), "{:?}", report.described);
}
