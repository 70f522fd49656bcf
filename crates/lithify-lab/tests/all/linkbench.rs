//! LinkBench end to end over the reference engine: load, requests, oracle, reproducibility.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lithify_lab::adapter::graph::schema::{self, LINK_TYPE_FIRST, Link, NodeRow, SPACES};
use lithify_lab::adapter::graph::store::{GraphStore, ListQuery};
use lithify_lab::adapter::graph::{GraphSession as _, LinkBefore};
use lithify_lab::adapter::{Engine, WriteBatch};
use lithify_lab::engines::external_lock::ExternalLock;
use lithify_lab::engines::model::ModelEngine;
use lithify_lab::engines::null::NullEngine;
use lithify_lab::linkbench::control::{IntervalSample, LoadProgress, RequestProgress};
use lithify_lab::linkbench::load::{self, LoadConfig, LoadOutcome, SecondaryIndex};
use lithify_lab::linkbench::oracle::{self, OracleReport};
use lithify_lab::linkbench::request::{self, RequestConfig, RequestOutcome};
use lithify_lab::linkbench::shuffle::Shuffle;
use lithify_lab::linkbench::{Control, Graph, GraphConfig, OpMix, Operation, Profile, Progress};

fn graph(profile: Profile, nodes: u64) -> Graph {
    Graph::new(profile, GraphConfig::with_nodes(nodes)).unwrap()
}

fn load(graph: &Graph, engine: &dyn Engine, loaders: u64) -> LoadOutcome {
    let config = LoadConfig { loaders, ..LoadConfig::default() };
    load::run(graph, &engine, &config, &Control::silent()).unwrap()
}

fn requests(graph: &Graph, engine: &dyn Engine, requesters: u64, each: u64) -> RequestOutcome {
    let config = RequestConfig {
        requesters,
        requests_per_requester: each,
        hash_reads: true,
        ..RequestConfig::after_load(graph)
    };
    request::run(graph, &engine, &config, &Control::silent()).unwrap()
}

fn check(engine: &dyn Engine) -> OracleReport {
    oracle::check(&engine, &Control::silent()).unwrap()
}

fn assert_passed(engine: &dyn Engine) -> OracleReport {
    let report = check(engine);
    assert!(report.passed(), "{:#?}", report.described);
    report
}

#[test]
fn a_loaded_graph_has_the_computed_size_and_agrees() {
    let graph = graph(Profile::lb2013(), 20_000);
    let engine = ModelEngine::new(&SPACES);
    let outcome = load(&graph, &engine, 3);
    assert_eq!(outcome.nodes, 20_000);
    assert_eq!((outcome.links, outcome.counts), (graph.expected_links(), graph.expected_counts()));
    assert!(outcome.ips_all > outcome.ips_link_count && outcome.ips_link_count > outcome.ips_link);
    let batches = |op: &str| outcome.latencies.iter().find(|l| l.op == op).unwrap().count;
    assert_eq!(batches("LOAD_NODE_BULK"), 20_000u64.div_ceil(1024));
    assert!(batches("LOAD_LINKS_BULK") >= outcome.links / 1024);
    assert_eq!(outcome.per_second.iter().sum::<u64>(), 20_000 + outcome.links + outcome.counts);
    let report = assert_passed(&engine);
    assert_eq!(report.links, outcome.links);
    assert_eq!((report.secondary_rows, report.visible_links), (outcome.links, outcome.links));
    assert_eq!((report.counts, report.counted_links), (outcome.counts, outcome.links));
    assert_eq!((report.nodes, report.largest_node_id), (20_000, 20_000));
    assert_eq!(report.live_bytes, engine.statistics().unwrap().live_bytes);
    // Published: about 740 bytes per node.
    assert!((report.live_bytes as f64 / 20_000.0 / 740.0 - 1.0).abs() < 0.1);
}

#[test]
fn loaded_data_do_not_depend_on_loaders_or_on_when_the_index_is_built() {
    let graph = graph(Profile::lb2013(), 10_000);
    let one = ModelEngine::new(&SPACES);
    load(&graph, &one, 1);
    let expected = assert_passed(&one);
    let later = ModelEngine::new(&SPACES);
    let config = LoadConfig {
        loaders: 5,
        chunk_ids: 2048,
        batch_rows: 77,
        secondary_index: SecondaryIndex::AfterLinks,
        ..LoadConfig::default()
    };
    let outcome = load::run(&graph, &later, &config, &Control::silent()).unwrap();
    assert!(outcome.secondary_seconds.is_some());
    assert_eq!(assert_passed(&later), expected);
    let config = GraphConfig { seed: 1, ..GraphConfig::with_nodes(10_000) };
    let other = Graph::new(Profile::lb2013(), config).unwrap();
    let seeded = ModelEngine::new(&SPACES);
    load(&other, &seeded, 2);
    assert_ne!(assert_passed(&seeded).content_hashes, expected.content_hashes);
}

#[test]
fn one_requester_gives_the_same_answers_and_data_over_two_engines() {
    let graph = graph(Profile::lb2013(), 5000);
    let model = ModelEngine::new(&SPACES);
    let locked = ExternalLock::new(ModelEngine::new(&SPACES));
    assert!(locked.capabilities().labels.contains(&"external lock".to_owned()));
    let engines: [&dyn Engine; 2] = [&model, &locked];
    let [(first, data), (second, other)] = engines.map(|engine| {
        load(&graph, engine, 2);
        (requests(&graph, engine, 1, 60_000), assert_passed(engine))
    });
    assert_eq!(first.requests, 60_000);
    assert_eq!((first.failures, first.retries), (0, 0));
    assert_ne!(first.read_hash, 0);
    assert_eq!(first.read_hash, second.read_hash);
    assert_eq!((first.rows_read, first.bytes_read), (second.rows_read, second.bytes_read));
    assert_eq!(data, other);
    assert_eq!(model.single_delete_violations(), 0);
    // Something was hidden and added, and a second phase goes on where the first ended.
    assert!(data.secondary_rows > data.visible_links && data.links > graph.expected_links());
    let added = first.operations.iter().find(|op| op.op == "ADD_NODE").unwrap().done;
    assert_eq!(first.next_node_id, graph.end_id() + added);
    assert_eq!(data.largest_node_id, first.next_node_id - 1);
    assert_eq!(first.next_time_ms, graph.config().epoch_ms + 60_001);
    let again = RequestConfig {
        requesters: 1,
        requests_per_requester: 5000,
        start_time_ms: first.next_time_ms,
        first_new_node_id: first.next_node_id,
        hash_reads: true,
        ..RequestConfig::after_load(&graph)
    };
    let next = request::run(&graph, &model, &again, &Control::silent()).unwrap();
    assert_ne!(next.read_hash, first.read_hash);
    assert!(assert_passed(&model).largest_node_id >= data.largest_node_id);
}

/// A small model of what counts should be, kept from the operations' own answers.
#[test]
fn operations_keep_counts_and_index() {
    let engine = ModelEngine::new(&SPACES);
    let mut store = GraphStore::new(engine.session().unwrap(), false);
    let link = |id2, visibility, time_ms, data| Link {
        id1: 7,
        link_type: LINK_TYPE_FIRST,
        id2,
        visibility,
        version: 0,
        time_ms,
        data,
    };
    let t = LINK_TYPE_FIRST;
    assert_eq!(store.count_links(7, t).unwrap(), 0);
    assert_eq!(store.put_link(&link(1, 1, 10, b"a"), 10).unwrap(), LinkBefore::Missing);
    assert_eq!(store.put_link(&link(2, 1, 20, b"b"), 20).unwrap(), LinkBefore::Missing);
    assert_eq!(store.put_link(&link(3, 0, 30, b"hidden"), 30).unwrap(), LinkBefore::Missing);
    assert_eq!(store.count_links(7, t).unwrap(), 2);
    // Rewritten unchanged, with other data, with another time: no count changes.
    assert_eq!(store.put_link(&link(1, 1, 10, b"a"), 11).unwrap(), LinkBefore::Visible);
    assert_eq!(store.put_link(&link(1, 1, 10, b"c"), 12).unwrap(), LinkBefore::Visible);
    assert_eq!(store.put_link(&link(1, 1, 40, b"c"), 40).unwrap(), LinkBefore::Visible);
    assert_eq!(store.count_links(7, t).unwrap(), 2);
    // Shown and hidden by rewriting.
    assert_eq!(store.put_link(&link(3, 1, 30, b"shown"), 50).unwrap(), LinkBefore::Hidden);
    assert_eq!(store.count_links(7, t).unwrap(), 3);
    assert_eq!(store.put_link(&link(3, 0, 30, b"hidden"), 60).unwrap(), LinkBefore::Visible);
    assert_eq!(store.count_links(7, t).unwrap(), 2);
    // Deleting hides once; a hidden or absent link is left alone.
    assert!(store.delete_link(7, t, 2, false, 70).unwrap());
    assert!(!store.delete_link(7, t, 2, false, 71).unwrap());
    assert!(!store.delete_link(7, t, 99, false, 72).unwrap());
    assert_eq!(store.count_links(7, t).unwrap(), 1);
    assert_eq!(store.multiget_links(7, t, &[1, 2, 3, 4]).unwrap(), 3);
    // Expunging removes the row; only a visible one counts.
    assert!(store.delete_link(7, t, 3, true, 80).unwrap());
    assert!(store.delete_link(7, t, 1, true, 81).unwrap());
    assert_eq!(store.count_links(7, t).unwrap(), 0);
    assert_eq!(store.multiget_links(7, t, &[1, 2, 3, 4]).unwrap(), 1);
    store.add_node(5, 1, b"node").unwrap();
    assert!(store.get_node(5).unwrap() && !store.get_node(6).unwrap());
    assert!(store.update_node(5, 2, b"new").unwrap() && !store.update_node(6, 2, b"").unwrap());
    assert!(store.delete_node(5).unwrap() && !store.delete_node(5).unwrap());
    assert_eq!(engine.single_delete_violations(), 0);
    let report = assert_passed(&engine);
    assert_eq!((report.links, report.visible_links, report.counts), (1, 0, 1));
}

#[test]
fn lists_come_newest_first_with_offset_limit_and_newest_time() {
    let engine = ModelEngine::new(&SPACES);
    let mut store = GraphStore::new(engine.session().unwrap(), false);
    for id2 in 1..=20u64 {
        let (time_ms, visibility) = (id2 * 100, u8::from(id2 != 20));
        let link_type = LINK_TYPE_FIRST;
        let link =
            Link { id1: 3, link_type, id2, visibility, version: 0, time_ms, data: b"payload" };
        store.put_link(&link, time_ms).unwrap();
    }
    let mut list = |max_time_ms, offset, limit| {
        let link_type = LINK_TYPE_FIRST;
        let query = ListQuery { id1: 3, link_type, max_time_ms, offset, limit };
        let result = store.list_links(&query).unwrap();
        (result.rows, result.last_time_ms)
    };
    assert_eq!(list(u64::MAX, 0, 10_000), (19, 100));
    assert_eq!(list(u64::MAX, 0, 4), (4, 1600));
    assert_eq!(list(1600, 1, 4), (4, 1200));
    assert_eq!(list(50, 0, 4), (0, 0));
}

/// 16 threads on 10 ids: every link operation collides with others all the time.
fn hammer(engine: &dyn Engine, profile: Profile) -> RequestOutcome {
    let graph = graph(profile, 10);
    load(&graph, engine, 2);
    requests(&graph, engine, 16, 1500)
}

fn writes_only() -> Profile {
    let mut mix = OpMix([0.0; 10]);
    for (operation, share) in [
        (Operation::AddLink, 30.0),
        (Operation::DeleteLink, 30.0),
        (Operation::UpdateLink, 30.0),
        (Operation::UpdateNode, 5.0),
        (Operation::DeleteNode, 5.0),
    ] {
        mix.0[operation.index()] = share;
    }
    Profile { mix, ..Profile::lb2013() }
}

#[test]
fn sixteen_threads_on_ten_ids_stay_consistent() {
    let engine = ModelEngine::new(&SPACES);
    let outcome = hammer(&engine, writes_only());
    assert_eq!((outcome.requests, outcome.failures), (16 * 1500, 0));
    assert_passed(&engine);
    assert_eq!(engine.single_delete_violations(), 0);
    let locked = ExternalLock::new(ModelEngine::new(&SPACES));
    assert_eq!(hammer(&locked, writes_only()).failures, 0);
    assert_passed(&locked);
}

/// Expected rows of a list read right after the load.
struct ExpectedRows {
    /// Of reads correlated with the degree.
    correlated: f64,
    /// Of the others, as the two shuffles happen to meet at this size.
    uncorrelated: f64,
    /// Of the others if the shuffles were independent.
    independent: f64,
}

fn expected_rows(graph: &Graph) -> ExpectedRows {
    let nodes = graph.config().nodes;
    let rows = |place: u64| {
        let links = |t| graph.links_of(graph.config().start_id + place, t).min(10_000) as f64;
        (links(0) + links(1)) / 2.0
    };
    let by_degree = Shuffle::new(nodes, Shuffle::SEED_LINKS);
    let uncorrelated = Shuffle::new(nodes, Shuffle::SEED_UNCORRELATED);
    let mut sums = ExpectedRows { correlated: 0.0, uncorrelated: 0.0, independent: 0.0 };
    let mut weights = 0.0;
    for rank in 0..nodes {
        let weight = (rank as f64 + 1.0).powf(-0.8);
        weights += weight;
        sums.correlated += weight * rows(by_degree.permute(rank));
        sums.uncorrelated += weight * rows(uncorrelated.permute(rank));
        sums.independent += rows(rank);
    }
    ExpectedRows {
        correlated: sums.correlated / weights,
        uncorrelated: sums.uncorrelated / weights,
        independent: sums.independent / nodes as f64,
    }
}

/// The published figures assume that what is hot without regard to degree has the mean degree. In
/// a small graph the two fixed shuffles do not average: at 100,000 nodes two of the thirty hottest
/// ids are rotated alike in both, which gives 8.6 rows where independent shuffles give 5.5.
#[test]
fn expected_rows_match_the_published_figures() {
    for (nodes, correlated, all) in [(100_000, 700.0, 5.6), (1_000_000, 980.0, 7.0)] {
        let expected = expected_rows(&graph(Profile::lb2013(), nodes));
        assert!((expected.correlated / correlated - 1.0).abs() < 0.1, "{}", expected.correlated);
        assert!((expected.independent / 2.07 - 1.0).abs() < 0.1, "{}", expected.independent);
        let mean = 0.995 * expected.independent + 0.005 * expected.correlated;
        assert!((mean / all - 1.0).abs() < 0.1, "{nodes} nodes: {mean}");
        if nodes == 1_000_000 {
            let mean = 0.995 * expected.uncorrelated + 0.005 * expected.correlated;
            assert!((mean / all - 1.0).abs() < 0.1, "{nodes} nodes as laid out: {mean}");
        }
    }
}

#[test]
fn list_reads_return_the_expected_rows() {
    let mix = OpMix::only(Operation::GetLinksList);
    let profile = Profile { mix, list_history_share: 0.0, ..Profile::lb2013() };
    let graph = graph(profile, 100_000);
    let expected = expected_rows(&graph);
    let expected = 0.995 * expected.uncorrelated + 0.005 * expected.correlated;
    let engine = ModelEngine::new(&SPACES);
    let config = LoadConfig { loaders: 2, nodes: false, ..LoadConfig::default() };
    load::run(&graph, &engine, &config, &Control::silent()).unwrap();
    let outcome = requests(&graph, &engine, 1, 300_000);
    let found = &outcome.range_sizes;
    assert_eq!((found.reads, found.from_history), (300_000, 0));
    assert!((found.mean / expected - 1.0).abs() < 0.1, "{found:?}, expected {expected}");
    assert_eq!(found.max, 10_000);
}

#[derive(Default)]
struct Watcher {
    loads: Mutex<Vec<LoadProgress>>,
    requests: Mutex<Vec<RequestProgress>>,
    intervals: Mutex<Vec<IntervalSample>>,
}

impl Progress for Watcher {
    fn load(&self, progress: &LoadProgress) {
        self.loads.lock().unwrap().push(*progress);
    }
    fn request(&self, progress: &RequestProgress) {
        self.requests.lock().unwrap().push(*progress);
    }
    fn interval(&self, sample: &IntervalSample) {
        self.intervals.lock().unwrap().push(sample.clone());
    }
}

#[test]
fn progress_rate_and_intervals() {
    let graph = graph(Profile::lb2013(), 1000);
    let engine = ModelEngine::new(&SPACES);
    let (watcher, cancel) = (Watcher::default(), AtomicBool::new(false));
    let control =
        Control { cancel: &cancel, progress: &watcher, interval: Duration::from_millis(20) };
    load::run(&graph, &engine, &LoadConfig::default(), &control).unwrap();
    let last = *watcher.loads.lock().unwrap().last().unwrap();
    assert_eq!((last.nodes, last.ids, last.ids_total), (1000, 1000, 1000));
    assert_eq!((last.links, last.counts), (graph.expected_links(), graph.expected_counts()));
    let config = RequestConfig {
        requesters: 2,
        requests_per_requester: 200,
        rate_per_requester: 1000.0,
        display_seconds: 0.05,
        ..RequestConfig::after_load(&graph)
    };
    let outcome = request::run(&graph, &engine, &config, &control).unwrap();
    assert_eq!(outcome.requests, 400);
    // 200 arrivals at 1000/s take 0.2 s; a busy machine can only make it longer.
    assert!(outcome.seconds > 0.1, "that was a burst: {} s", outcome.seconds);
    assert_eq!(watcher.requests.lock().unwrap().last().unwrap().requests, 400);
    let sampled: u64 = watcher.intervals.lock().unwrap().iter().map(|sample| sample.samples).sum();
    assert_eq!(sampled, 400, "the last, shorter interval is reported too");
    assert!(outcome.un_gn_ul_gl()[1].unwrap() > 0.0);
    assert_eq!(outcome.per_second.iter().sum::<u64>(), 400);
}

/// Ends the phase once requests are being made.
struct EndsWarmUp(AtomicBool);

impl Progress for EndsWarmUp {
    fn request(&self, progress: &RequestProgress) {
        assert!(progress.warming_up);
        self.0.store(progress.requests > 0, Ordering::Relaxed);
    }
}

#[test]
fn nothing_is_recorded_during_the_warm_up() {
    let graph = graph(Profile::lb2013(), 1000);
    let ends = EndsWarmUp(AtomicBool::new(false));
    let interval = Duration::from_millis(5);
    let control = Control { cancel: &ends.0, progress: &ends, interval };
    let config = RequestConfig {
        requesters: 2,
        requests_per_requester: 1,
        warmup_seconds: 1e6,
        ..RequestConfig::after_load(&graph)
    };
    let outcome = request::run(&graph, &NullEngine::of_graph(), &config, &control).unwrap();
    assert_eq!((outcome.requests, outcome.latencies.len(), outcome.range_sizes.reads), (0, 0, 0));
    assert!(outcome.cancelled && outcome.per_second.is_empty());
}

#[test]
fn cancellation_and_time_limit_end_a_phase() {
    let graph = graph(Profile::lb2013(), 2000);
    let cancel = AtomicBool::new(true);
    let control = Control { cancel: &cancel, ..Control::silent() };
    let engine = ModelEngine::new(&SPACES);
    let outcome = load::run(&graph, &engine, &LoadConfig::default(), &control).unwrap();
    assert!(outcome.cancelled && outcome.links < graph.expected_links());
    assert!(!oracle::check(&engine, &control).unwrap().passed());
    cancel.store(false, Ordering::Relaxed);
    let null = NullEngine::of_graph();
    let config = RequestConfig {
        requesters: 2,
        requests_per_requester: u64::MAX,
        max_seconds: 0.1,
        ..RequestConfig::after_load(&graph)
    };
    let outcome = request::run(&graph, &null, &config, &control).unwrap();
    assert!(!outcome.cancelled && outcome.requests > 0 && outcome.seconds >= 0.1);
    cancel.store(true, Ordering::Relaxed);
    let outcome = request::run(&graph, &null, &config, &control).unwrap();
    assert!(outcome.cancelled && outcome.requests == 0);
}

#[test]
fn malformed_answers_fail_requests_and_abort_the_phase() {
    let graph = graph(Profile::lb2013(), 100);
    let engine = ModelEngine::new(&SPACES);
    let mut session = engine.session().unwrap();
    let mut batch = WriteBatch::new();
    for id in 1..=100 {
        batch.put(schema::NODE, &schema::node_key(id), b"no row");
    }
    session.write_batch(&batch).unwrap();
    let config = RequestConfig {
        requesters: 2,
        requests_per_requester: u64::MAX,
        max_failed_per_requester: Some(10),
        ..RequestConfig::after_load(&graph)
    };
    let outcome = request::run(&graph, &engine, &config, &Control::silent()).unwrap();
    assert!(outcome.aborted && outcome.failures > 10 && outcome.failures <= 22);
    assert!(outcome.first_error.unwrap().contains("node row"));
    let none = RequestConfig { requesters: 0, ..config.clone() };
    assert!(request::run(&graph, &engine, &none, &Control::silent()).is_err());
    let nan = RequestConfig { max_seconds: f64::NAN, ..config };
    assert!(request::run(&graph, &engine, &nan, &Control::silent()).is_err());
    let batchless = LoadConfig { batch_rows: 0, ..LoadConfig::default() };
    assert!(load::run(&graph, &engine, &batchless, &Control::silent()).is_err());
}

#[test]
fn a_node_of_another_type_is_not_found() {
    let engine = ModelEngine::new(&SPACES);
    let (mut batch, mut value) = (WriteBatch::new(), Vec::new());
    NodeRow { node_type: 1, version: 1, time_s: 1, data: b"" }.encode(&mut value);
    batch.put(schema::NODE, &schema::node_key(1), &value);
    engine.session().unwrap().write_batch(&batch).unwrap();
    let mut store = GraphStore::new(engine.session().unwrap(), false);
    assert!(!store.get_node(1).unwrap());
    assert!(!store.update_node(1, 1, b"").unwrap());
    assert!(!store.delete_node(1).unwrap());
}
