//! The oracle must find an engine that acknowledges requests of one kind and loses one in so many of
//! them, whatever the kind; and must pass a correct engine however requests come.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use lithify_lab::adapter::graph::LinkBefore;
use lithify_lab::adapter::graph::schema::{LINK, Link, SPACES, VISIBILITY_DEFAULT};
use lithify_lab::adapter::graph::store::{GraphStore, ListQuery, ListResult, ReadDigest};
use lithify_lab::adapter::graph::{GraphEngine, GraphSession};
use lithify_lab::adapter::layer::SessionLayer;
use lithify_lab::adapter::{Engine, EngineError, EngineResult, Session, SpaceId, WriteBatch};
use lithify_lab::engines::model::ModelEngine;
use lithify_lab::linkbench::expected::Expected;
use lithify_lab::linkbench::load::{self, LoadConfig};
use lithify_lab::linkbench::oracle::{self, OracleReport};
use lithify_lab::linkbench::request::{self, RequestConfig, RequestOutcome};
use lithify_lab::linkbench::{Control, Graph, GraphConfig, Profile};

const NODES: u64 = 3_000;

/// What a request does to the graph, by what it met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    AddNode,
    UpdateNode,
    DeleteNode,
    AddLink,
    ShowLink,
    UpdateLink,
    DeleteLink,
}

const KINDS: [Kind; 7] = [
    Kind::AddNode,
    Kind::UpdateNode,
    Kind::DeleteNode,
    Kind::AddLink,
    Kind::ShowLink,
    Kind::UpdateLink,
    Kind::DeleteLink,
];

/// Acknowledges everything, and loses one in so many of a kind; or refuses one commit in so many.
struct Forgetful {
    inner: ModelEngine,
    loses: Option<(Kind, u64)>,
    refuses_one_in: u64,
    done: AtomicU64,
    commits: AtomicU64,
    lost: AtomicU64,
}

impl Forgetful {
    fn new(loses: Option<(Kind, u64)>, refuses_one_in: u64) -> Forgetful {
        let [done, commits, lost] = [0; 3].map(AtomicU64::new);
        let inner = ModelEngine::new(&SPACES);
        Forgetful { inner, loses, refuses_one_in, done, commits, lost }
    }

    fn loses(&self, kind: Kind) -> bool {
        let Some((_, one_in)) = self.loses.filter(|(lost, _)| *lost == kind) else { return false };
        let is_lost = (self.done.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(one_in);
        self.lost.fetch_add(u64::from(is_lost), Ordering::Relaxed);
        is_lost
    }

    fn refuses(&self) -> bool {
        let commit = self.commits.fetch_add(1, Ordering::Relaxed) + 1;
        self.refuses_one_in > 0 && commit.is_multiple_of(self.refuses_one_in)
    }
}

impl GraphEngine for Forgetful {
    fn below(&self) -> &dyn Engine {
        &self.inner
    }

    fn graph_session(&self, hashing: bool) -> EngineResult<Box<dyn GraphSession + '_>> {
        let loses = Rc::new(Cell::new(None));
        let session = Losing { inner: self.inner.session()?, engine: self, kind: loses.clone() };
        Ok(Box::new(Told { store: GraphStore::new(Box::new(session), hashing), kind: loses }))
    }

    fn close(self: Box<Self>) -> EngineResult<()> {
        Ok(())
    }
}

/// The session below: it knows what kind of request commits.
struct Losing<'a> {
    inner: Box<dyn Session + 'a>,
    engine: &'a Forgetful,
    kind: Rc<Cell<Option<Kind>>>,
}

impl Losing<'_> {
    fn loses(&self) -> bool {
        self.kind.get().is_some_and(|kind| self.engine.loses(kind))
    }
}

impl SessionLayer for Losing<'_> {
    fn below(&mut self) -> &mut dyn Session {
        &mut *self.inner
    }

    fn get_for_update_above(
        &mut self,
        space: SpaceId,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> EngineResult<bool> {
        let found = self.inner.get_for_update(space, key, value)?;
        if found && space == LINK && self.kind.get() == Some(Kind::AddLink) {
            let link = Link::decode(key, value).expect("is a link");
            let is_visible = link.visibility == VISIBILITY_DEFAULT;
            self.kind.set(Some(if is_visible { Kind::UpdateLink } else { Kind::ShowLink }));
        }
        Ok(found)
    }

    fn write_batch_above(&mut self, batch: &WriteBatch) -> EngineResult<()> {
        if self.loses() { Ok(()) } else { self.inner.write_batch(batch) }
    }

    fn commit_above(&mut self) -> EngineResult<()> {
        if self.engine.refuses() {
            self.inner.rollback()?;
            return Err(EngineError::retryable("refused"));
        }
        if self.loses() { self.inner.rollback() } else { self.inner.commit() }
    }
}

/// The session above: it tells the one below what kind of request this is.
struct Told<'a> {
    store: GraphStore<'a>,
    kind: Rc<Cell<Option<Kind>>>,
}

impl Told<'_> {
    fn telling<T>(&mut self, kind: Kind, call: impl FnOnce(&mut GraphStore<'_>) -> T) -> T {
        self.kind.set(Some(kind));
        let answer = call(&mut self.store);
        self.kind.set(None);
        answer
    }
}

impl GraphSession for Told<'_> {
    fn digest(&self) -> ReadDigest {
        self.store.digest()
    }
    fn load(&mut self, rows: &WriteBatch) -> EngineResult<()> {
        self.store.load(rows)
    }
    fn put_link(&mut self, link: &Link<'_>, now_ms: u64) -> EngineResult<LinkBefore> {
        self.telling(Kind::AddLink, |store| store.put_link(link, now_ms))
    }
    fn delete_link(
        &mut self,
        id1: u64,
        link_type: u64,
        id2: u64,
        expunge: bool,
        now_ms: u64,
    ) -> EngineResult<bool> {
        self.telling(Kind::DeleteLink, |store| {
            store.delete_link(id1, link_type, id2, expunge, now_ms)
        })
    }
    fn count_links(&mut self, id1: u64, link_type: u64) -> EngineResult<u32> {
        self.store.count_links(id1, link_type)
    }
    fn multiget_links(&mut self, id1: u64, link_type: u64, targets: &[u64]) -> EngineResult<u64> {
        self.store.multiget_links(id1, link_type, targets)
    }
    fn list_links(&mut self, query: &ListQuery) -> EngineResult<ListResult> {
        self.store.list_links(query)
    }
    fn add_node(&mut self, id: u64, time_s: u32, data: &[u8]) -> EngineResult<()> {
        self.telling(Kind::AddNode, |store| store.add_node(id, time_s, data))
    }
    fn update_node(&mut self, id: u64, time_s: u32, data: &[u8]) -> EngineResult<bool> {
        self.telling(Kind::UpdateNode, |store| store.update_node(id, time_s, data))
    }
    fn delete_node(&mut self, id: u64) -> EngineResult<bool> {
        self.telling(Kind::DeleteNode, |store| store.delete_node(id))
    }
    fn get_node(&mut self, id: u64) -> EngineResult<bool> {
        self.store.get_node(id)
    }
}

/// Loads, makes the requests of each phase in turn, and checks.
fn play(engine: &Forgetful, phases: &[RequestConfig]) -> (RequestOutcome, OracleReport) {
    let graph = graph();
    let control = Control::silent();
    let loaded = load::run(&graph, engine, &LoadConfig::default(), &control).unwrap();
    let mut expected = Expected::after_load(&graph, &loaded, true);
    assert!(oracle::check_expected(engine, &control, &expected).unwrap().passed());
    let mut last: Option<RequestOutcome> = None;
    for phase in phases {
        let mut config = phase.clone();
        if let Some(last) = &last {
            config.start_time_ms = last.next_time_ms;
            config.first_new_node_id = last.next_node_id;
        }
        let outcome = request::run(&graph, engine, &config, &control).unwrap();
        expected.follow(&outcome);
        last = Some(outcome);
    }
    assert!(expected.ledger().rows() > 100, "{} rows", expected.ledger().rows());
    let report = oracle::check_expected(engine, &control, &expected).unwrap();
    (last.unwrap(), report)
}

fn graph() -> Graph {
    Graph::new(Profile::lb2013(), GraphConfig::with_nodes(NODES)).unwrap()
}

fn closed_loop() -> RequestConfig {
    RequestConfig {
        requesters: 2,
        requests_per_requester: 40_000,
        ..RequestConfig::after_load(&graph())
    }
}

#[test]
fn an_engine_that_loses_requests_of_one_kind_is_found() {
    for kind in KINDS {
        for one_in in [1, 100] {
            let one_in = if kind == Kind::ShowLink { one_in.min(2) } else { one_in };
            let engine = Forgetful::new(Some((kind, one_in)), 0);
            let (outcome, report) = play(&engine, &[closed_loop()]);
            assert_eq!(outcome.failures, 0);
            assert!(engine.lost.into_inner() > 0, "{kind:?} was never lost");
            assert!(!report.passed(), "one {kind:?} in {one_in} is lost: nothing is seen");
        }
    }
}

#[test]
fn a_correct_engine_passes() {
    let warmed_up = RequestConfig {
        warmup_seconds: 0.2,
        max_seconds: 0.3,
        requests_per_requester: u64::MAX,
        ..closed_loop()
    };
    let open_loop = RequestConfig {
        requests_per_requester: u64::MAX,
        arrivals_per_second: 20_000.0,
        max_seconds: 0.5,
        ..closed_loop()
    };
    let many = RequestConfig { requesters: 8, requests_per_requester: 5_000, ..closed_loop() };
    // One after another over the same data, without refusals and with many of them.
    for refuses_one_in in [0, 3] {
        let engine = Forgetful::new(None, refuses_one_in);
        let phases = [closed_loop(), warmed_up.clone(), open_loop.clone(), many.clone()];
        let (outcome, report) = play(&engine, &phases);
        assert_eq!((outcome.failures, outcome.retries > 0), (0, refuses_one_in > 0));
        assert!(report.passed(), "{:?}", report.described);
    }
}

#[test]
fn requests_that_fail_are_not_taken_for_done() {
    // Every commit is refused, until the request fails.
    let engine = Forgetful::new(None, 1);
    let (outcome, report) = play(
        &engine,
        &[RequestConfig {
            requesters: 1,
            requests_per_requester: 1_000,
            max_failed_per_requester: None,
            ..closed_loop()
        }],
    );
    assert!(outcome.failures > 0);
    assert!(report.passed(), "{:?}", report.described);
}
