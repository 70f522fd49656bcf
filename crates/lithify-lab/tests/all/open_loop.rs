//! Open-loop runs over an engine that is slow on purpose. Everything that is asserted about time
//! is a least time, which a busy machine only makes longer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lithify_lab::adapter::layer::{EngineLayer, SessionLayer};
use lithify_lab::adapter::{Engine, EngineResult, Session, SpaceId};
use lithify_lab::engines::null::NullEngine;
use lithify_lab::linkbench::arrivals::OpenLoop;
use lithify_lab::linkbench::request::{RequestConfig, RequestOutcome, run};
use lithify_lab::linkbench::{Control, Graph, GraphConfig, OpMix, Operation, Profile};

/// Stores nothing; call `n` of a get, from 0, takes `delay(n)`.
struct SlowEngine<D> {
    inner: NullEngine,
    calls: AtomicU64,
    delay: D,
}

impl<D: Fn(u64) -> Duration + Send + Sync> EngineLayer for SlowEngine<D> {
    fn below(&self) -> &dyn Engine {
        &self.inner
    }
    fn into_below(self: Box<Self>) -> Box<dyn Engine> {
        Box::new(self.inner)
    }
    fn session_above(&self) -> EngineResult<Box<dyn Session + '_>> {
        Ok(Box::new(SlowSession { inner: self.inner.session()?, engine: self }))
    }
}

struct SlowSession<'a, D> {
    inner: Box<dyn Session + 'a>,
    engine: &'a SlowEngine<D>,
}

impl<D: Fn(u64) -> Duration + Send + Sync> SessionLayer for SlowSession<'_, D> {
    fn below(&mut self) -> &mut dyn Session {
        &mut *self.inner
    }
    fn get_above(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> EngineResult<bool> {
        let call = self.engine.calls.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep((self.engine.delay)(call));
        self.inner.get(space, key, value)
    }
}

/// Gets of nodes that arrive at `per_second` for `seconds`.
fn open_loop(
    delay: impl Fn(u64) -> Duration + Send + Sync,
    requesters: u64,
    per_second: f64,
    seconds: f64,
) -> (RequestOutcome, OpenLoop) {
    let profile = Profile { mix: OpMix::only(Operation::GetNode), ..Profile::lb2013() };
    let graph = Graph::new(profile, GraphConfig::with_nodes(1000)).expect("a graph");
    let config = RequestConfig {
        requesters,
        arrivals_per_second: per_second,
        max_seconds: seconds,
        ..RequestConfig::after_load(&graph)
    };
    let engine = SlowEngine { inner: NullEngine::new(Vec::new()), calls: AtomicU64::new(0), delay };
    let outcome = run(&graph, &engine, &config, &Control::silent()).expect("runs");
    assert_eq!(outcome.failures, 0, "{:?}", outcome.first_error);
    let arrivals = outcome.open_loop.expect("arrivals are counted");
    assert_eq!(arrivals.served, outcome.requests);
    assert_eq!(arrivals.served + arrivals.queue_at_end, arrivals.due, "none is lost");
    (outcome, arrivals)
}

const MS: Duration = Duration::from_millis(1);

/// One answer of 300 ms at 1,000 arrivals a second: the k-th arrival behind it waits at least
/// 300 - k ms, so that at least 150 of at most 600 samples are of 150 ms and more. A closed loop
/// would have one slow sample.
#[test]
fn a_stall_is_seen_by_all_that_arrive_meanwhile() {
    let delay = |call| if call == 0 { 300 * MS } else { Duration::ZERO };
    let (outcome, arrivals) = open_loop(delay, 1, 1000.0, 0.6);
    assert_eq!(arrivals.due, 600);
    let summary = &outcome.latencies[0];
    assert!(summary.max_ms >= 300.0, "{summary:?}");
    assert!(summary.p95_us >= 149_000.0, "{summary:?}");
    assert!(arrivals.queue_max >= 299, "{arrivals:?}");
}

/// 5 ms an answer and one requester: at most 200 a second of the 1,000 that arrive.
#[test]
fn a_rate_that_is_not_reached_is_told() {
    let (outcome, arrivals) = open_loop(|_| 5 * MS, 1, 1000.0, 0.3);
    assert_eq!(arrivals.due, 300);
    assert!(!arrivals.reached() && arrivals.served <= 61, "{arrivals:?}");
    assert!(arrivals.queue_at_end >= 239, "{arrivals:?}");
    // Those answered last had waited for most of the phase; on an idle machine it is 0.24 s.
    assert!(outcome.latencies[0].max_ms >= 5.0);
}

/// Never more than what is due, however fast the answers come.
#[test]
fn nothing_is_answered_before_it_arrives() {
    let (outcome, arrivals) = open_loop(|_| Duration::ZERO, 3, 200.0, 0.25);
    assert_eq!(arrivals.due, 50);
    assert!(outcome.requests <= 50);
    // The last one arrives 245 ms after the first.
    assert!(outcome.requests < 50 || outcome.seconds >= 0.244, "{}", outcome.seconds);
}

#[test]
fn other_rates_are_refused_beside_it() {
    let graph = Graph::new(Profile::lb2013(), GraphConfig::with_nodes(1000)).expect("a graph");
    let open = RequestConfig {
        requesters: 1,
        arrivals_per_second: 10.0,
        ..RequestConfig::after_load(&graph)
    };
    let engine = SlowEngine {
        inner: NullEngine::new(Vec::new()),
        calls: AtomicU64::new(0),
        delay: |_| Duration::ZERO,
    };
    for config in [
        RequestConfig { rate_per_requester: 1.0, ..open.clone() },
        RequestConfig { warmup_seconds: 1.0, ..open.clone() },
        RequestConfig { arrivals_per_second: f64::NAN, ..open },
    ] {
        assert!(run(&graph, &engine, &config, &Control::silent()).is_err());
    }
}
