//! MariaDB's engines behind the adapters, where they are installed. A test without them prints a line
//! and passes, unless `LITHIFY_EXPECT_ENGINES` names `mariadb`.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use lithify_lab::adapter::codec::Codec;
use lithify_lab::adapter::cross_count::CrossCounts;
use lithify_lab::adapter::graph::GraphEngine;
use lithify_lab::adapter::graph::schema::SPACES;
use lithify_lab::adapter::provider::Transactions;
use lithify_lab::adapter::settings::DurabilityMode;
use lithify_lab::adapter::settings::EngineSettings;
use lithify_lab::adapter::table::Access;
use lithify_lab::adapter::table::schema::{Answer, Query, Row, Value};
use lithify_lab::adapter::table::{TableEngine, Update};
use lithify_lab::adapter::{EngineName, SpaceId, SpaceSpec, WriteBatch};
use lithify_lab::conformance::{Subject, check_engine, kill};
use lithify_lab::datasets::{PageCounts, Table, TableData, Wide, answer};
use lithify_lab::engines::model::ModelEngine;
use lithify_lab::engines::registry;
use lithify_lab::engines::registry::{open_graph, open_spaces, open_table};
use lithify_lab::experiment::{BUILT_IN, Experiment, TableExperiment};
use lithify_lab::linkbench::control::{Progress, RequestProgress};
use lithify_lab::linkbench::load::{self, LoadConfig, LoadOutcome, SecondaryIndex};
use lithify_lab::linkbench::measure;
use lithify_lab::linkbench::oracle::{self, OracleReport};
use lithify_lab::linkbench::plan::{Choice, Plan};
use lithify_lab::linkbench::request::{self, RequestConfig, RequestOutcome};
use lithify_lab::linkbench::{Control, Graph, GraphConfig, OpMix, Operation, Profile};
use lithify_lab::tables::measure as table_measure;
use lithify_lab::tables::plan::{TableChoice, TablePlan};
use lithify_lab::tables::spec::TableCell;

/// The engine, if it is there; otherwise a line is printed, or the test fails.
fn present(name: &str) -> Option<EngineName> {
    lithify_lab_engines::register();
    let engine = EngineName::new(name);
    let Err(missing) = registry::find(&engine).expect("is known").available() else {
        return Some(engine);
    };
    let expected = std::env::var("LITHIFY_EXPECT_ENGINES").unwrap_or_default();
    assert!(!expected.split(',').any(|one| one == "mariadb" || one == name), "{missing}");
    println!("skipped for {name}: {missing}");
    None
}

fn settings(bottom: Codec, options: &[(&str, &str)]) -> EngineSettings {
    let options = options.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    EngineSettings {
        // Under every engine's least.
        memory_budget_bytes: 32 << 20,
        memtable_bytes: 64 << 10,
        codec_bottom: bottom,
        options: options.collect(),
        ..EngineSettings::small()
    }
}

fn graph(nodes: u64) -> Graph {
    Graph::new(Profile::lb2013(), GraphConfig::with_nodes(nodes)).expect("is a graph")
}

fn load(graph: &Graph, engine: &dyn GraphEngine, config: &LoadConfig) -> LoadOutcome {
    load::run(graph, engine, config, &Control::silent()).expect("loads")
}

fn requests(graph: &Graph, engine: &dyn GraphEngine, config: RequestConfig) -> RequestOutcome {
    let outcome = request::run(graph, engine, &config, &Control::silent()).expect("runs");
    assert_eq!(outcome.first_error, None);
    outcome
}

fn check(engine: &dyn GraphEngine) -> OracleReport {
    let report = oracle::check(engine, &Control::silent()).expect("is read");
    assert!(report.passed(), "{:#?}", report.described);
    report
}

/// Loads, lets one requester change things, checks, and reads with the reads hashed.
fn play(
    graph: &Graph,
    engine: &dyn GraphEngine,
    each: u64,
) -> (RequestOutcome, OracleReport, RequestOutcome) {
    let loaded = load(graph, engine, &LoadConfig { loaders: 2, ..LoadConfig::default() });
    assert_eq!((loaded.links, loaded.counts), (graph.expected_links(), graph.expected_counts()));
    let one = |each| RequestConfig {
        requesters: 1,
        requests_per_requester: each,
        ..RequestConfig::after_load(graph)
    };
    let changed = requests(graph, engine, one(each));
    let report = check(engine);
    let reads = reads_only(graph);
    let config = RequestConfig {
        start_time_ms: changed.next_time_ms,
        first_new_node_id: changed.next_node_id,
        hash_reads: true,
        ..one(each)
    };
    let read = requests(&reads, engine, config);
    (changed, report, read)
}

/// The same graph with nothing but reads.
fn reads_only(graph: &Graph) -> Graph {
    let mut mix = OpMix([0.0; 10]);
    for (operation, share) in [
        (Operation::CountLink, 20.0),
        (Operation::MultigetLink, 30.0),
        (Operation::GetLinksList, 30.0),
        (Operation::GetNode, 20.0),
    ] {
        mix.0[operation.index()] = share;
    }
    let profile = Profile { mix, ..graph.profile().clone() };
    Graph::new(profile, graph.config().clone()).expect("is a graph")
}

/// The graph over an engine has to be what it is over ordered keys in memory: every operation finds
/// the same, all rows are the same, all reads are answered alike.
fn agrees_with_the_model(name: &str, settings: &EngineSettings, label: Option<&str>) {
    let Some(engine) = present(name) else { return };
    let graph = graph(1500);
    let expected = play(&graph, &ModelEngine::new(&SPACES), 3000);
    let directory = tempfile::tempdir().expect("a directory");
    let opened = open_graph(&engine, directory.path(), settings).expect("opens");
    let (changed, report, read) = play(&graph, &*opened, 3000);
    let found = |outcome: &RequestOutcome| -> Vec<(String, u64, u64)> {
        outcome.operations.iter().map(|op| (op.op.clone(), op.done, op.found)).collect()
    };
    assert_eq!(found(&changed), found(&expected.0), "{name}");
    assert_eq!(report, expected.1, "{name}");
    assert_eq!(found(&read), found(&expected.2), "{name}");
    let digest =
        |outcome: &RequestOutcome| (outcome.rows_read, outcome.bytes_read, outcome.read_hash);
    assert_eq!(digest(&read), digest(&expected.2), "{name}");
    opened.below().flush().expect("flushes");
    opened.below().wait_for_compaction().expect("settles");
    let capabilities = opened.below().capabilities();
    if let Some(label) = label {
        assert!(capabilities.labels.iter().any(|have| have.contains(label)), "{capabilities:?}");
    }
    let statistics = opened.below().statistics().expect("tells");
    assert!(statistics.live_bytes > 100_000, "{name}: {statistics:?}");
    let counts = &statistics.cross_counts;
    assert_counted_by_both(name, counts, &["selects", "inserts", "updates", "rows updated"]);
    let rows = counts.get("rows written").or(counts.get("rows inserted")).expect("are counted");
    let loaded = 1500 + graph.expected_links() + graph.expected_counts();
    assert!(rows.counted > loaded, "{name}: {rows:?} of {loaded} and what requests added");
    let pids = opened.below().process_ids();
    opened.close().expect("closes");
    assert!(pids.iter().all(|pid| !is_alive(*pid)));
}

/// What was asked for is what the server counts; of `some` it has more than none.
fn assert_counted_by_both(name: &str, counts: &CrossCounts, some: &[&str]) {
    for (what, count) in counts {
        assert_eq!(count.asked, count.counted, "{name}: {what} in {counts:?}");
    }
    for what in some {
        assert!(counts.get(*what).is_some_and(|count| count.counted > 0), "{name}: {counts:?}");
    }
}

fn is_alive(pid: u32) -> bool {
    // A process that has ended and is still to be waited for has no memory.
    std::fs::read_to_string(format!("/proc/{pid}/status"))
        .is_ok_and(|status| status.contains("VmRSS:"))
}

#[test]
fn innodb_agrees_with_the_model() {
    agrees_with_the_model("innodb", &settings(Codec::NONE, &[]), Some("none in"));
}

#[test]
fn innodb_with_compressed_pages_agrees_with_the_model() {
    let large = settings(Codec::LZ4, &[("page_kib", "64"), ("doublewrite", "off")]);
    agrees_with_the_model("innodb", &large, Some("lz4 in"));
    let strong = settings(Codec::NONE, &[("page_codec", "lzma"), ("binlog", "on")]);
    agrees_with_the_model("innodb", &strong, Some("lzma in"));
}

#[test]
fn innodb_with_key_blocks_agrees_with_the_model() {
    let blocks = settings(Codec::zlib(6), &[("key_block_kib", "8"), ("partitions", "4")]);
    agrees_with_the_model("innodb", &blocks, Some("zlib in key blocks"));
}

#[test]
fn myrocks_agrees_with_the_model() {
    agrees_with_the_model("myrocks", &settings(Codec::zstd(1), &[]), Some("ZSTD"));
    let parts = settings(Codec::LZ4, &[("partitions", "4"), ("binlog", "on")]);
    agrees_with_the_model("myrocks", &parts, Some("LZ4"));
}

#[test]
fn engines_without_transactions_agree_with_the_model() {
    agrees_with_the_model("myisam", &settings(Codec::NONE, &[]), Some("external lock"));
    let safe = EngineSettings { durability: DurabilityMode::Sync, ..settings(Codec::NONE, &[]) };
    agrees_with_the_model("aria", &safe, Some("external lock"));
}

#[test]
fn an_index_that_is_built_later_is_the_same() {
    let graph = graph(800);
    let model = ModelEngine::new(&SPACES);
    load(&graph, &model, &LoadConfig::default());
    let expected = check(&model);
    for name in ["innodb", "myrocks"] {
        let Some(engine) = present(name) else { continue };
        let directory = tempfile::tempdir().expect("a directory");
        let opened = open_graph(&engine, directory.path(), &settings(Codec::NONE, &[]));
        let opened = opened.expect("opens");
        let later = LoadConfig {
            loaders: 2,
            secondary_index: SecondaryIndex::AfterLinks,
            ..LoadConfig::default()
        };
        let outcome = load(&graph, &*opened, &later);
        assert!(outcome.secondary_seconds.is_some());
        assert_eq!(check(&*opened), expected, "{name}");
        opened.close().expect("closes");
    }
}

#[test]
fn requesters_that_collide_all_the_time_stay_consistent() {
    let graph = graph(10);
    for name in ["innodb", "myrocks", "myisam"] {
        let Some(engine) = present(name) else { continue };
        let directory = tempfile::tempdir().expect("a directory");
        let opened = open_graph(&engine, directory.path(), &settings(Codec::NONE, &[]));
        let opened = opened.expect("opens");
        load(&graph, &*opened, &LoadConfig { loaders: 2, ..LoadConfig::default() });
        let config = RequestConfig {
            requesters: 8,
            requests_per_requester: 300,
            ..RequestConfig::after_load(&graph)
        };
        let outcome = requests(&graph, &*opened, config);
        assert_eq!((outcome.requests, outcome.failures), (2400, 0), "{name}");
        check(&*opened);
        opened.close().expect("closes");
    }
}

/// What all adapters have to do, over ordered keys.
fn conforms(name: &str) {
    let Some(engine) = present(name) else { return };
    let place = tempfile::tempdir().expect("a directory");
    let root = place.path().join("of the user's");
    std::fs::create_dir(&root).expect("is made");
    let settings = settings(Codec::NONE, &[]);
    let subject =
        Subject { engine: &engine, settings: &settings, child_test: "child_that_commits" };
    let mut failures = check_engine(&subject, &root);
    // A server that is made and started syncs a thousand times: those of commits are not to be told.
    failures.retain(|failure| !failure.contains("syncs in mode"));
    assert!(failures.is_empty(), "{name}: {}", failures.join("\n"));
}

#[test]
fn ordered_keys_in_innodb_conform() {
    conforms("innodb");
}

#[test]
fn ordered_keys_in_myrocks_conform() {
    conforms("myrocks");
}

#[test]
fn settling_leaves_level_0_of_myrocks_empty() {
    let rows = [SpaceSpec { name: "rows", prefix_bytes: None, single_delete: false }];
    let Some(engine) = present("myrocks") else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let settings = settings(Codec::zstd(1), &[]);
    let opened = open_spaces(&engine, directory.path(), &settings, &rows, Transactions::Unneeded);
    let opened = opened.expect("opens");
    let files_of_level0 = || -> u64 {
        let levels = opened.statistics().expect("says").levels;
        levels.iter().filter(|level| level.level == 0).map(|level| level.files).sum()
    };
    let mut session = opened.session().expect("a session");
    for run in 0..2u8 {
        let mut batch = WriteBatch::new();
        (0..200u8).for_each(|row| batch.put(SpaceId(0), &[row, run], &[run; 100]));
        session.write_batch(&batch).expect("writes");
        opened.flush().expect("flushes");
    }
    drop(session);
    assert!(files_of_level0() > 0, "nothing to settle");
    for _ in 0..2 {
        let done = opened.settle_tree().expect("settles");
        assert_eq!(files_of_level0(), 0, "{done}");
    }
    opened.close().expect("closes");
}

/// Is run in processes of its own.
#[test]
fn child_that_commits() {
    lithify_lab_engines::register();
    kill::child();
}

/// Kills the server when some requests are done.
struct Killer {
    pid: u32,
    killed: AtomicBool,
}

impl Progress for Killer {
    fn request(&self, progress: &RequestProgress) {
        let done = std::sync::atomic::Ordering::Relaxed;
        if progress.requests > 100 && !self.killed.swap(true, done) {
            let kill = Command::new("kill").args(["-9", &self.pid.to_string()]).status();
            assert!(kill.expect("is started").success());
        }
    }
}

#[test]
fn a_server_that_is_killed_is_an_error_with_its_last_words() {
    let Some(engine) = present("innodb") else { return };
    let graph = graph(200);
    let directory = tempfile::tempdir().expect("a directory");
    let opened = open_graph(&engine, directory.path(), &settings(Codec::NONE, &[]));
    let opened = opened.expect("opens");
    load(&graph, &*opened, &LoadConfig { loaders: 1, ..LoadConfig::default() });
    let pid = opened.below().process_ids()[0];
    let killer = Killer { pid, killed: AtomicBool::new(false) };
    let never = AtomicBool::new(false);
    let control =
        Control { cancel: &never, progress: &killer, interval: Duration::from_millis(20) };
    let config = RequestConfig {
        requesters: 2,
        requests_per_requester: u64::MAX,
        max_failed_per_requester: Some(3),
        ..RequestConfig::after_load(&graph)
    };
    let outcome = request::run(&graph, &*opened, &config, &control).expect("ends");
    assert!(outcome.aborted, "{outcome:?}");
    let error = outcome.first_error.expect("there is one");
    assert!(error.contains("the MariaDB server ended (signal: 9"), "{error}");
    assert!(error.contains("the last lines of its log: "), "{error}");
    assert!(error.lines().count() == 1, "{error}");
    let error = opened.below().statistics().expect_err("there is no server").to_string();
    assert!(error.contains("the MariaDB server ended"), "{error}");
    assert!(opened.close().is_err());
    assert!(!is_alive(pid));
}

#[test]
fn a_server_ends_with_its_engine() {
    let Some(engine) = present("innodb") else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let opened = open_graph(&engine, directory.path(), &settings(Codec::NONE, &[]));
    let opened = opened.expect("opens");
    let pid = opened.below().process_ids()[0];
    assert!(is_alive(pid));
    drop(opened);
    assert!(!is_alive(pid));
}

/// Set in a process that opens a server in this directory, tells its process id, and waits.
const ORPHAN: &str = "LITHIFY_TEST_MARIADB_ORPHAN";

#[test]
fn a_server_ends_with_the_process_that_started_it() {
    let Some(engine) = present("innodb") else { return };
    if let Some(directory) = std::env::var_os(ORPHAN) {
        let opened = open_graph(&engine, Path::new(&directory), &settings(Codec::NONE, &[]));
        let opened = opened.expect("opens");
        println!("\nserver {}", opened.below().process_ids()[0]);
        std::thread::sleep(Duration::from_secs(60));
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "a_server_ends_with_the_process_that_started_it", "--nocapture"])
        .env(ORPHAN, directory.path())
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let said = BufReader::new(child.stdout.take().expect("is piped"));
    let mut lines = said.lines().map_while(Result::ok);
    let pid = lines.find_map(|line| line.strip_prefix("server ")?.parse().ok());
    let pid: u32 = pid.expect("tells its server");
    child.kill().expect("is killed");
    child.wait().expect("has ended");
    let deadline = Instant::now() + Duration::from_secs(10);
    while is_alive(pid) {
        assert!(Instant::now() < deadline, "server {pid} is left behind");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_cell_is_measured_with_its_server_apart() {
    let Some(engine) = present("innodb") else { return };
    let experiment = Experiment::parse("e.toml", BUILT_IN[0].1).expect("parses");
    let plan = Plan::expand(&experiment, &engine, &Choice::default(), "build").expect("expands");
    let mut spec = plan.cells[1].clone();
    spec.settings = settings(Codec::LZ4, &[("page_kib", "32")]);
    (spec.nodes, spec.requesters, spec.loaders) = (500, 2, 1);
    (spec.warmup_seconds, spec.query_seconds) = (0, 2);
    spec.open_loop_percent.clear();
    let directory = tempfile::tempdir().expect("a directory");
    let result = measure::measure(&spec, directory.path(), measure::Limits::default(), &|_| ())
        .expect("is measured");
    assert_eq!((result.violation(), result.oracle.len()), (None, 2));
    for phase in [&result.load, &result.query] {
        let server = phase.usage.servers.expect("has a process of its own");
        let both = phase.usage.process_cpu.total_us();
        assert!(server.cpu.total_us() > 0 && server.cpu.total_us() < both, "{server:?}");
        assert!(server.memory.resident_bytes > 32 << 20, "{server:?}");
        assert!(phase.statistics.written_bytes_by_cause["redo log"] > 0);
    }
    assert!(result.engine_name.starts_with("MariaDB 1"), "{}", result.engine_name);
    assert_eq!(result.engine_options["variables"]["innodb_page_size"], "32768");
}

/// A table loaded into a new database, in statements of 700 rows.
fn loaded_table(
    engine: &EngineName,
    directory: &Path,
    settings: &EngineSettings,
    table: &dyn Table,
) -> Box<dyn TableEngine> {
    let schema = Arc::new(table.schema().clone());
    let opened = open_table(engine, directory, settings, &schema).expect("opens");
    let mut rows = vec![Row::new(); table.rows() as usize];
    (0..).zip(&mut rows).for_each(|(index, row)| table.row(index, row));
    let mut session = opened.session().expect("a session");
    rows.chunks(700).for_each(|rows| session.insert(rows).expect("inserts"));
    drop(session);
    opened.rest(Duration::from_secs(60)).expect("rests");
    opened
}

/// What both ways to the rows and the index answer.
fn answers(engine: &dyn TableEngine, table: &dyn Table) -> (Answer, Answer, Answer, u64) {
    let mut session = engine.session().expect("a session");
    let mut answer = |query: &Query, access| session.aggregate(query, access).expect("answers");
    let figures = vec![table.updated_column()];
    let all = Query { range: None, group: Vec::new(), figures, top: None };
    let found = (
        answer(&table.query(), Access::Secondary),
        answer(&table.query(), Access::Primary),
        answer(&all, Access::Primary),
    );
    (found.0, found.1, found.2, session.index_entries().expect("counts"))
}

/// Updates rows in a transaction and without.
fn update_rows(engine: &dyn TableEngine, table: &dyn Table) {
    let mut session = engine.session().expect("a session");
    let mut row = Row::new();
    let mut update = |index: u64, amount: i64| {
        table.row(index, &mut row);
        let key = table.schema().primary.iter().map(|column| row[*column].whole()).collect();
        Update { key, column: table.updated_column(), amount }
    };
    assert!(session.update(&update(3, 7)).expect("updates"));
    session.begin().expect("begins");
    assert!(session.update(&update(0, 100)).expect("updates"));
    assert!(session.update(&update(table.rows() - 1, 1)).expect("updates"));
    session.commit().expect("commits");
    let nobody = Update { key: vec![0; table.schema().primary.len()], ..update(3, 7) };
    assert!(!session.update(&nobody).expect("is not there"));
}

/// A table through SQL answers as the same rows do in an embedded engine, before and after updates.
fn table_agrees(name: &str, settings: &EngineSettings, table: &dyn Table, codec: Option<&str>) {
    let Some(engine) = present(name) else { return };
    let places = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
    let embedded = loaded_table(
        &EngineName::lithify(),
        places[0].path(),
        &EngineSettings { options: [].into(), codec_bottom: Codec::NONE, ..settings.clone() },
        table,
    );
    let opened = loaded_table(&engine, places[1].path(), settings, table);
    let (wanted, found) = (answers(&*embedded, table), answers(&*opened, table));
    assert_eq!(found, wanted, "{name}");
    assert_eq!(found.0, answer(table, &table.query()), "{name}: the generator's");
    assert_eq!((found.2.rows(), found.3), (table.rows(), table.rows()));
    update_rows(&*embedded, table);
    update_rows(&*opened, table);
    let (after, wanted) = (answers(&*opened, table), answers(&*embedded, table));
    assert_eq!(after, wanted, "{name}, after updates");
    assert_eq!(after.2.groups[0].sums[0], found.2.groups[0].sums[0] + 108, "{name}");
    opened.rest(Duration::from_secs(60)).expect("rests");
    let found = opened.codec_in_force().expect("tells");
    assert_eq!(found.is_some(), codec.is_some(), "{name}: {found:?}");
    let named = found.as_ref().zip(codec).is_none_or(|(found, codec)| found.contains(codec));
    assert!(named, "{name}: {found:?}");
    assert_eq!(opened.refuses_updates(), None);
    opened.close().expect("closes");
    embedded.close().expect("closes");
}

#[test]
fn tables_of_innodb_agree_with_an_embedded_engine() {
    table_agrees("innodb", &settings(Codec::NONE, &[]), &Wide::new(1_500, 3), Some("none"));
    let blocks = settings(Codec::zlib(6), &[("key_block_kib", "8")]);
    table_agrees("innodb", &blocks, &PageCounts::new(2_400, 3), Some("zlib in key blocks"));
    let pages = settings(Codec::NONE, &[("page_kib", "64"), ("page_codec", "bzip2")]);
    table_agrees("innodb", &pages, &PageCounts::new(2_400, 3), Some("bzip2"));
}

#[test]
fn tables_of_the_other_engines_agree_with_an_embedded_engine() {
    let table = PageCounts::new(2_400, 3);
    table_agrees("myrocks", &settings(Codec::zstd(1), &[]), &table, Some("ZSTD"));
    table_agrees("myisam", &settings(Codec::NONE, &[]), &table, None);
    table_agrees("aria", &settings(Codec::NONE, &[]), &table, None);
}

#[test]
fn a_packed_table_is_smaller_answers_the_same_and_refuses_updates() {
    let Some(engine) = present("myisam") else { return };
    let table = Wide::new(1_500, 3);
    let sizes = [("off", false), ("on", true)].map(|(value, is_packed)| {
        let place = tempfile::tempdir().expect("a directory");
        let settings = settings(Codec::NONE, &[("packed", value)]);
        let opened = loaded_table(&engine, place.path(), &settings, &table);
        let found = answers(&*opened, &table);
        assert_eq!(found.0, answer(&table, &table.query()));
        assert_eq!((found.2.rows(), found.3), (1_500, 1_500));
        let codec = opened.codec_in_force().expect("tells");
        assert_eq!(codec.as_deref() == Some("packed"), is_packed, "{codec:?}");
        assert_eq!(opened.refuses_updates().is_some(), is_packed);
        if is_packed {
            let key = vec![0; table.schema().primary.len()];
            let update = Update { key, column: table.updated_column(), amount: 1 };
            let mut session = opened.session().expect("a session");
            let error = session.update(&update).expect_err("is packed").to_string();
            assert!(error.contains("read only") && error.lines().count() == 1, "{error}");
        }
        // What is packed stays so.
        opened.rest(Duration::from_secs(60)).expect("rests");
        let pages = opened.pages().expect("tells").expect("has files");
        opened.close().expect("closes");
        pages.table_bytes
    });
    assert!(sizes[1] < sizes[0] * 6 / 10, "{sizes:?}");
}

#[test]
fn what_tables_cannot_have_is_refused_before_a_server_starts() {
    let Some(innodb) = present("innodb") else { return };
    let refused = |engine: &EngineName, bottom, options: &[(&str, &str)]| {
        let place = tempfile::tempdir().expect("a directory");
        let schema = Arc::new(PageCounts::new(1_000, 1).schema().clone());
        let settings = settings(bottom, options);
        let error = open_table(engine, place.path(), &settings, &schema).err().expect("refused");
        assert_eq!(std::fs::read_dir(place.path()).expect("is there").count(), 0);
        error.to_string()
    };
    let error = refused(&innodb, Codec::NONE, &[("packed", "on")]);
    assert!(error.starts_with("innodb has no option \"packed\""), "{error}");
    let error = refused(&innodb, Codec::zlib(6), &[("key_block_kib", "16")]);
    assert_eq!(error, "innodb: option key_block_kib = \"16\": it takes 8 or 4");
    let error = refused(&innodb, Codec::zstd(1), &[]);
    assert!(error.starts_with("innodb has no codec zstd-1; it has: none"), "{error}");
    let myisam = EngineName::new("myisam");
    let error = refused(&myisam, Codec::NONE, &[("packed", "yes")]);
    assert_eq!(error, "myisam: option packed = \"yes\": it takes on or off");
    let place = tempfile::tempdir().expect("a directory");
    let packed = settings(Codec::NONE, &[("packed", "on")]);
    let error = open_graph(&myisam, place.path(), &packed).err().expect("refused").to_string();
    assert!(error.starts_with("packed tables are read only"), "{error}");
}

#[test]
fn a_server_that_is_lost_while_a_table_is_loaded_says_why() {
    let Some(engine) = present("innodb") else { return };
    let table = PageCounts::new(2_400, 3);
    let place = tempfile::tempdir().expect("a directory");
    let opened = loaded_table(&engine, place.path(), &settings(Codec::NONE, &[]), &table);
    let mut session = opened.session().expect("a session");
    let pid = opened.process_ids()[0];
    let kill = Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(kill.expect("is started").success());
    let mut row = Row::new();
    table.row(5, &mut row);
    row[0] = Value::Whole(1_000_000);
    let update = Update { key: vec![1], column: table.updated_column(), amount: 1 };
    let errors = [
        session.insert(&[row]).expect_err("there is no server"),
        session.update(&update).expect_err("there is no server"),
        session.aggregate(&table.query(), Access::Primary).expect_err("there is no server"),
        opened.rest(Duration::ZERO).expect_err("there is no server"),
    ];
    for error in errors.map(|error| error.to_string()) {
        assert!(error.contains("the MariaDB server ended (signal: 9"), "{error}");
        assert!(error.contains("the last lines of its log: "), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    drop(session);
    assert!(opened.close().is_err() && !is_alive(pid));
}

/// A cell of the built-in experiment, made small.
fn table_cell(engine: &EngineName, arm: &str) -> TableCell {
    let found = BUILT_IN.iter().find(|(name, _)| *name == "compression-options");
    let experiment = TableExperiment::parse("e.toml", found.expect("is built in").1);
    let choice = TableChoice {
        engine: Some(engine.clone()),
        arms: Some(vec![arm.to_owned()]),
        ..TableChoice::default()
    };
    let plan = TablePlan::expand(&experiment.expect("parses"), &choice, "test").expect("expands");
    let mut cell = plan.cells[0].clone();
    assert_eq!(cell.table, TableData::PageCounts);
    (cell.rows, cell.updates, cell.mode_updates) = (4_000, 200, 0);
    cell
}

#[test]
fn a_table_cell_tells_for_what_its_server_wrote() {
    let Some(engine) = present("innodb") else { return };
    let place = tempfile::tempdir().expect("a directory");
    let cell = table_cell(&engine, "key-block-4k");
    let outcome = table_measure::measure(&cell, place.path(), None, &|_| ()).expect("is measured");
    assert_eq!(outcome.faults, [""; 0]);
    let own = cell.table.open(cell.rows, cell.seed).expect("is generated");
    assert_eq!(outcome.scan_checksum, answer(&*own, &own.query()).checksum());
    let (load, update) = (&outcome.load, outcome.update.as_ref().expect("is done"));
    assert_counted_by_both("load", &load.cross_counts, &["inserts", "rows written"]);
    assert_eq!(load.cross_counts["rows written"].asked, cell.rows);
    assert_counted_by_both("update", &update.cross_counts, &["updates", "rows updated"]);
    assert_eq!(update.cross_counts["updates"].asked, cell.updates);
    for step in [load, update] {
        let pages = step.pages.expect("are counted");
        assert!(pages.written > 0 && pages.doublewritten > 0, "{pages:?}");
        assert!(pages.compressed > 0 && pages.failed < pages.compressed, "{pages:?}");
        let counted: u64 = step.written_by_cause.values().sum();
        let written = step.written_engine_bytes();
        assert!(counted > written / 2 && counted <= written, "{counted} of {written} bytes");
    }
    assert!(load.pages.expect("are counted").extended_bytes > 1 << 16);
    assert!(outcome.table_bytes.is_some_and(|bytes| (1 << 16..4 << 20).contains(&bytes)));
    assert_eq!(outcome.codec_in_force.as_deref(), Some("zlib in key blocks"));
}

#[test]
fn a_packed_cell_has_all_figures_but_those_of_updates() {
    let Some(engine) = present("myisam") else { return };
    let place = tempfile::tempdir().expect("a directory");
    let cell = table_cell(&engine, "packed");
    let outcome = table_measure::measure(&cell, place.path(), None, &|_| ()).expect("is measured");
    assert_eq!(outcome.faults, [""; 0]);
    assert!(outcome.update.is_none() && outcome.modes.is_empty());
    assert_eq!(outcome.updates_refused.as_deref(), Some("a packed table is read only"));
    assert_eq!(outcome.codec_in_force.as_deref(), Some("packed"));
    assert!(outcome.scan_rows > 0 && outcome.load.seconds > 0.0);
}

/// `DROP DATABASE` beside a client that goes on, and on a server that is gone.
#[test]
fn a_graph_is_dropped_beside_another_client() {
    for name in ["innodb", "myrocks"] {
        let Some(engine) = present(name) else { continue };
        let graph = graph(500);
        let open = |directory: &Path| {
            open_graph(&engine, directory, &settings(Codec::NONE, &[("partitions", "4")]))
                .expect("opens")
        };
        let directory = tempfile::tempdir().expect("a directory");
        let opened = open(directory.path());
        load(&graph, &*opened, &LoadConfig::default());
        opened.below().flush().expect("flushes");
        let mut neighbour = opened.neighbour().expect("is let in").expect("has a client");
        neighbour.step().expect("changes its row");
        assert_eq!(opened.drop_graph().expect("drops"), "DROP DATABASE", "{name}");
        neighbour.step().expect("goes on");
        drop(neighbour);
        let lab = directory.path().join("data/lab");
        assert!(!lab.exists(), "{name}: {}", lab.display());
        assert!(opened.drop_graph().is_err(), "{name}: there is none any more");
        opened.close().expect("closes");

        let directory = tempfile::tempdir().expect("a directory");
        let opened = open(directory.path());
        let mut neighbour = opened.neighbour().expect("is let in").expect("has a client");
        let pid = i32::try_from(opened.below().process_ids()[0]).expect("is a process");
        let killed = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
        assert!(killed.expect("is called").success());
        for error in [neighbour.step().err(), opened.drop_graph().err()] {
            let error = error.expect("the server is gone").to_string();
            assert!(error.starts_with("the MariaDB server ended (signal: 9"), "{name}: {error}");
        }
    }
}

/// A cell that ages and ends with the drop of its database, from the experiment file to the report.
#[test]
fn a_cell_of_page_compression_ends_with_its_drop() {
    let Some(_) = present("innodb") else { return };
    let text = BUILT_IN.iter().find(|(name, _)| *name == "page-compression").expect("is there").1;
    let experiment = Experiment::parse("e.toml", text).expect("parses");
    let arms = Some(vec!["hole-ext4".to_owned()]);
    let choice = Choice { arms, ..Choice::default() };
    let plan = Plan::expand(&experiment, &EngineName::lithify(), &choice, "b").expect("expands");
    let mut spec = plan.cells[1].clone();
    (spec.nodes, spec.warmup_seconds, spec.query_seconds) = (1_000, 0, 20);
    spec.turnovers = vec![0.1, 0.2];
    let directory = tempfile::tempdir().expect("a directory");
    let result = measure::measure(&spec, directory.path(), measure::Limits::default(), &|_| {});
    let result = result.expect("is measured");
    assert!(result.violation().is_none(), "{:?}", result.oracle);
    let writes = result.query.write_operations;
    assert!((200..200 + spec.requesters).contains(&writes), "{writes}");
    let dropped = result.dropped.expect("was dropped");
    assert_eq!(dropped.how, "DROP DATABASE");
    let (before, after) = (dropped.before.directory, dropped.after.directory);
    assert!(after.apparent_bytes < before.apparent_bytes && after.files < before.files);
    assert!(dropped.figures.alone.operations > 0);
}
