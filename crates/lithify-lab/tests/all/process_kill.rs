//! A process that runs LinkBench's requests in durability `buffered` is killed at a random moment;
//! every write that it acknowledged must be there when the database is opened again.
//!
//! 1. The child is this same program. Before each commit it reports what the transaction writes,
//!    while it holds the row locks: reports of one row come in the order of their commits. After
//!    the commit it reports the acknowledgement. Every report is one write to a pipe, whose reader
//!    keeps what a killed writer wrote.
//! 2. The parent kills the child by SIGKILL, opens the database, and compares every row that was
//!    written with the reports: it holds what the last acknowledged transaction wrote, or one
//!    that was under way after it, which then must be there as a whole.
//! 3. The consistency oracle passes, and the next child goes on with the same database.
//!
//! `LITHIFY_KILLS=20 cargo test -p lithify-lab --test all process_kill:: -- --nocapture` is the long
//! form.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lithify::{CfOptions, Durability, Options};
use lithify_lab::adapter::graph::schema::SPACES;
use lithify_lab::adapter::layer::{EngineLayer, SessionLayer};
use lithify_lab::adapter::{
    BatchOp, Engine, EngineResult, ScanRange, Session, SpaceId, WriteBatch,
};
use lithify_lab::engines::lithify::LithifyEngine;
use lithify_lab::linkbench::load::{self, LoadConfig};
use lithify_lab::linkbench::request::{self, RequestConfig};
use lithify_lab::linkbench::{Control, Graph, GraphConfig, Profile, oracle};
use twox_hash::XxHash3_64;

const KILLS_DEFAULT: u64 = 3;
const NODES: u64 = 3_000;

/// The child finds the database and the phase in these.
const CHILD_DIRECTORY: &str = "LITHIFY_KILL_DIRECTORY";
const CHILD_FIRST_ID: &str = "LITHIFY_KILL_FIRST_ID";

/// What comes before the reports on a stream that the test harness also writes to.
const MARK: &[u8] = b"\nREPORTS\n";

const INTENT: u8 = b'I';
const ACKNOWLEDGED: u8 = b'A';
const FAILED: u8 = b'F';

fn graph() -> Graph {
    Graph::new(Profile::lb2013(), GraphConfig::with_nodes(NODES)).unwrap()
}

/// Small sizes, so that flushes, compactions and new log segments fall into the phase.
fn open(directory: &Path) -> LithifyEngine {
    let options = Options {
        memory_budget_bytes: 16 << 20,
        memtable_bytes: 256 << 10,
        wal_bytes_max: 2 << 20,
        durability: Durability::Buffered,
        ..Options::default()
    };
    let family = CfOptions {
        table_bytes: 256 << 10,
        base_level_bytes_max: 512 << 10,
        ..CfOptions::default()
    };
    LithifyEngine::open(directory, &SPACES, options, family).unwrap()
}

// The child.

/// An engine that reports what is written through it.
struct Witness {
    engine: LithifyEngine,
    pipe: Mutex<File>,
    next_transaction: AtomicU64,
}

impl Witness {
    fn report(&self, report: &[u8]) {
        self.pipe.lock().unwrap().write_all(report).unwrap();
    }
}

impl EngineLayer for Witness {
    fn below(&self) -> &dyn Engine {
        &self.engine
    }
    fn into_below(self: Box<Self>) -> Box<dyn Engine> {
        Box::new(self.engine)
    }
    fn session_above(&self) -> EngineResult<Box<dyn Session + '_>> {
        let inner = self.engine.session()?;
        Ok(Box::new(WitnessSession { witness: self, inner, rows: Vec::new() }))
    }
}

struct WitnessSession<'a> {
    witness: &'a Witness,
    inner: Box<dyn Session + 'a>,
    /// The rows of the open transaction, as they are reported.
    rows: Vec<u8>,
}

impl WitnessSession<'_> {
    fn note(&mut self, op: BatchOp<'_>) {
        let (space, key) = op.row();
        let value = if let BatchOp::Put(_, _, value) = op { Some(value) } else { None };
        self.rows.extend([space.0, u8::from(value.is_some()), key.len() as u8]);
        self.rows.extend(key);
        self.rows.extend(XxHash3_64::oneshot(value.unwrap_or_default()).to_le_bytes());
    }
}

impl SessionLayer for WitnessSession<'_> {
    fn below(&mut self) -> &mut dyn Session {
        &mut *self.inner
    }
    fn write_batch_above(&mut self, batch: &WriteBatch) -> EngineResult<()> {
        self.begin_above(0)?;
        batch.ops().try_for_each(|op| self.change_above(op))?;
        self.commit_above()
    }
    fn begin_above(&mut self, row_group: u64) -> EngineResult<()> {
        self.rows.clear();
        self.inner.begin(row_group)
    }
    fn change_above(&mut self, op: BatchOp<'_>) -> EngineResult<()> {
        self.inner.change(op)?;
        self.note(op);
        Ok(())
    }
    fn commit_above(&mut self) -> EngineResult<()> {
        let id = self.witness.next_transaction.fetch_add(1, Ordering::SeqCst).to_le_bytes();
        let mut intent = vec![INTENT];
        intent.extend(id);
        intent.extend((self.rows.len() as u32).to_le_bytes());
        intent.append(&mut self.rows);
        self.witness.report(&intent);
        let result = self.inner.commit();
        let tag = if result.is_ok() { ACKNOWLEDGED } else { FAILED };
        self.witness.report(&[&[tag], &id[..]].concat());
        result
    }
}

/// The child's side: does nothing unless the parent started it.
#[test]
fn child_runs_requests_until_it_is_killed() {
    let Ok(directory) = std::env::var(CHILD_DIRECTORY) else { return };
    let first_new_node_id = std::env::var(CHILD_FIRST_ID).unwrap().parse().unwrap();
    let mut pipe = File::from(std::io::stdout().as_fd().try_clone_to_owned().unwrap());
    pipe.write_all(MARK).unwrap();
    let engine = open(Path::new(&directory));
    let witness = Witness { engine, pipe: Mutex::new(pipe), next_transaction: AtomicU64::new(0) };
    let graph = graph();
    let config = RequestConfig {
        requesters: 4,
        first_new_node_id,
        // Another seed for each child.
        start_time_ms: graph.config().epoch_ms + first_new_node_id,
        ..RequestConfig::after_load(&graph)
    };
    request::run(&graph, &witness, &config, &Control::silent()).unwrap();
    panic!("the requests were over before the kill");
}

// The parent.

type Row = (u8, Vec<u8>);

/// What a transaction leaves of a row: the hash of its value, or nothing.
type Outcome = Option<u64>;

#[derive(Clone, Copy, PartialEq)]
enum Fate {
    UnderWay,
    Acknowledged,
    Failed,
}

/// The reports of one child.
#[derive(Default)]
struct Reports {
    fates: HashMap<u64, Fate>,
    acknowledged: u64,
    /// For every row the transactions that wrote it, in order.
    rows: HashMap<Row, Vec<(u64, Outcome)>>,
}

fn number(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

impl Reports {
    /// Reads everything up to the end, which may be in the middle of a report.
    fn parse(stream: &[u8]) -> Reports {
        let mut reports = Reports::default();
        let start = stream.windows(MARK.len()).position(|window| window == MARK);
        let mut rest = &stream[start.expect("the child began its reports") + MARK.len()..];
        while rest.len() >= 9 {
            let (tag, id) = (rest[0], number(&rest[1..9]));
            rest = &rest[9..];
            match tag {
                INTENT => {
                    let Some((length, behind)) = rest.split_at_checked(4) else { break };
                    let Some((rows, behind)) = behind.split_at_checked(number(length) as usize)
                    else {
                        break;
                    };
                    reports.intent(id, rows);
                    rest = behind;
                }
                ACKNOWLEDGED => {
                    reports.fates.insert(id, Fate::Acknowledged);
                    reports.acknowledged += 1;
                }
                FAILED => drop(reports.fates.insert(id, Fate::Failed)),
                tag => panic!("a report of kind {tag}"),
            }
        }
        reports
    }

    fn intent(&mut self, id: u64, mut rows: &[u8]) {
        self.fates.insert(id, Fate::UnderWay);
        while let [space, is_put, key_length, rest @ ..] = rows {
            let (key, rest) = rest.split_at(usize::from(*key_length));
            let (hash, rest) = rest.split_at(8);
            let outcome = (*is_put == 1).then_some(number(hash));
            let history = self.rows.entry((*space, key.to_vec())).or_default();
            // Of two writes in one transaction the later one counts.
            match history.last_mut() {
                Some(last) if last.0 == id => last.1 = outcome,
                _ => history.push((id, outcome)),
            }
            rows = rest;
        }
    }

    /// Compares every row with the database; gives the number of transactions that were under way
    /// and are there.
    fn check(&self, engine: &dyn Engine, before: &HashMap<Row, u64>) -> u64 {
        let mut session = engine.session().unwrap();
        let mut value = Vec::new();
        let mut under_way: HashMap<u64, Vec<bool>> = HashMap::new();
        for (row, history) in &self.rows {
            let fate = |id: &u64| self.fates[id];
            let mut outcomes: Vec<(Option<u64>, Outcome)> = vec![(None, before.get(row).copied())];
            for (id, outcome) in history.iter().filter(|(id, _)| fate(id) != Fate::Failed) {
                if fate(id) == Fate::Acknowledged {
                    outcomes.clear();
                }
                outcomes.push((Some(*id), *outcome));
            }
            let is_there = session.get(SpaceId(row.0), &row.1, &mut value).unwrap();
            let found: Outcome = is_there.then(|| XxHash3_64::oneshot(&value));
            assert!(
                outcomes.iter().any(|(_, outcome)| *outcome == found),
                "an acknowledged write is lost: row {row:?}, written {history:?}, found {found:?}"
            );
            // Only the last one can still be told from what was there before it.
            if let [.., (_, earlier), (Some(id), last)] = &outcomes[..]
                && fate(id) == Fate::UnderWay
                && earlier != last
            {
                under_way.entry(*id).or_default().push(found == *last);
            }
        }
        for (id, rows) in &under_way {
            assert!(rows.iter().all(|row| *row == rows[0]), "transaction {id} is there in part");
        }
        under_way.values().filter(|rows| rows[0]).count() as u64
    }
}

/// The hashes of all rows.
fn content(engine: &dyn Engine) -> HashMap<Row, u64> {
    let mut session = engine.session().unwrap();
    let mut rows = HashMap::new();
    for space in 0..SPACES.len() as u8 {
        let all = ScanRange::prefix(&[]);
        let mut keep = |key: &[u8], value: &[u8]| {
            rows.insert((space, key.to_vec()), XxHash3_64::oneshot(value));
            std::ops::ControlFlow::Continue(())
        };
        session.scan(SpaceId(space), &all, &mut keep).unwrap();
    }
    rows
}

/// Runs a child until a moment after its first reports; gives what it reported.
fn run_and_kill(directory: &Path, first_id: u64, moment: Duration) -> Vec<u8> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "process_kill::child_runs_requests_until_it_is_killed", "--nocapture"])
        .env(CHILD_DIRECTORY, directory)
        .env(CHILD_FIRST_ID, first_id.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdout.take().unwrap();
    let received = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&received);
    let reader = std::thread::spawn(move || {
        let (mut stream, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
        loop {
            match pipe.read(&mut buffer).unwrap() {
                0 => return stream,
                count => stream.extend_from_slice(&buffer[..count]),
            }
            counter.store(stream.len() as u64, Ordering::SeqCst);
        }
    });
    let deadline = Instant::now() + Duration::from_secs(60);
    while received.load(Ordering::SeqCst) < 1000 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(moment);
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap()
}

#[test]
fn a_killed_process_loses_no_acknowledged_write() {
    if std::env::var(CHILD_DIRECTORY).is_ok() {
        return;
    }
    let kills = std::env::var("LITHIFY_KILLS").map_or(KILLS_DEFAULT, |text| text.parse().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let engine = open(path);
    load::run(&graph(), &engine, &LoadConfig::default(), &Control::silent()).unwrap();
    let mut before = content(&engine);
    let mut first_id = oracle::check(&engine, &Control::silent()).unwrap().largest_node_id + 1;
    Box::new(engine).close().unwrap();
    let (mut acknowledged, mut rows) = (0, 0);
    let mut random = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().subsec_nanos();
    for kill in 1..=kills {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let moment = Duration::from_micros(u64::from(random >> 8) % 1_500_000);
        let reports = Reports::parse(&run_and_kill(path, first_id, moment));
        let opening = Instant::now();
        let engine = open(path);
        let opening_ms = opening.elapsed().as_millis();
        let replayed: u64 = engine.database().recovery().iter().map(|report| report.records).sum();
        assert!(reports.acknowledged > 0, "nothing was acknowledged before the kill");
        let survived = reports.check(&engine, &before);
        let report = oracle::check(&engine, &Control::silent()).unwrap();
        assert!(report.passed(), "{:#?}", report.described);
        println!(
            "kill {kill} after {} ms: {} transactions acknowledged, {} rows checked, none lost; \
             {survived} under way were there; opened in {opening_ms} ms, {replayed} log records; \
             oracle passed over {} links",
            moment.as_millis(),
            reports.acknowledged,
            reports.rows.len(),
            report.links
        );
        acknowledged += reports.acknowledged;
        rows += reports.rows.len();
        first_id = report.largest_node_id + 1;
        before = content(&engine);
        drop(engine);
    }
    println!("{kills} kills, {acknowledged} acknowledged transactions, {rows} rows, none lost");
}
