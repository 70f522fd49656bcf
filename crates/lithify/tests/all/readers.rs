//! Databases opened for reading only, beside a writer and without one.

use crate::support::{Model, PATH, Parts, Random, names_ending, rows, small_options};
use lithify::fs::{CrashKeep, FileCall, FileSystem, MemoryFileSystem, World};
use lithify::verify::{VerifyOptions, verify_in};
use lithify::{CfOptions, Db, ErrorKind, Options, Result};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

fn reader(world: &World) -> Result<Db> {
    Db::open_read_only_in(PATH, small_options(), world.clone())
}

fn writer(world: &World) -> Db {
    Db::open_in(PATH, small_options(), world.clone()).unwrap()
}

/// Everything that a database shows.
fn shown(db: &Db) -> BTreeMap<String, Model> {
    let family = |name: &String| db.existing_column_family(name).unwrap().unwrap();
    db.column_family_names().iter().map(|name| (name.clone(), rows(&family(name)))).collect()
}

fn registrations(files: &dyn FileSystem) -> usize {
    files.list(&Path::new(PATH).join("READERS")).unwrap().len()
}

/// A writer that does one thing after the other, and knows what there was after each.
struct History {
    db: Db,
    random: Random,
    states: Vec<BTreeMap<String, Model>>,
    step: u64,
}

impl History {
    fn begin(world: &World, seed: u64) -> History {
        let db = writer(world);
        let options = CfOptions { table_bytes: 64 << 10, ..CfOptions::default() };
        for name in ["rocks", "sands"] {
            db.column_family(name, options.clone()).unwrap();
        }
        let mut history = History { db, random: Random(seed), states: Vec::new(), step: 0 };
        history.note();
        history
    }

    fn note(&mut self) {
        self.states.push(shown(&self.db));
    }

    /// One batch over both families, or something that changes the files.
    fn go_on(&mut self) {
        self.step += 1;
        let rocks = self.db.existing_column_family("rocks").unwrap().unwrap();
        let sands = self.db.existing_column_family("sands").unwrap().unwrap();
        match self.random.below(12) {
            0 => self.db.flush().unwrap(),
            1 => rocks.compact_range(..).unwrap(),
            2 => {
                let mut ingest = sands.ingest().unwrap();
                ingest.put(format!("ingest{:06}", self.step).as_bytes(), b"new").unwrap();
                ingest.commit().unwrap();
            }
            3 if self.step.is_multiple_of(2) => {
                let name = format!("family{}", self.step);
                let family = self.db.column_family(&name, CfOptions::default()).unwrap();
                self.note();
                family.put(b"first", b"1").unwrap();
            }
            3 => {
                let names = self.db.column_family_names();
                if let Some(name) = names.iter().find(|name| name.starts_with("family")) {
                    self.db.drop_column_family(name).unwrap();
                }
            }
            _ => {
                let mut batch = self.db.batch();
                for _ in 0..20 {
                    let key = format!("row{:04}", self.random.below(300));
                    let value = self.random.bytes(150);
                    match self.random.below(8) {
                        0 => batch.delete(&rocks, key.as_bytes()),
                        1 => batch.delete_range(&sands, key.as_bytes(), b"row0300"),
                        2 | 3 => batch.put(&sands, key.as_bytes(), &value),
                        _ => batch.put(&rocks, key.as_bytes(), &value),
                    };
                }
                batch.put(&rocks, b"step", self.step.to_le_bytes());
                batch.put(&sands, b"step", self.step.to_le_bytes());
                batch.commit().unwrap();
            }
        }
        self.note();
    }
}

#[test]
fn a_reader_sees_the_log_and_keeps_its_state_until_it_is_refreshed() {
    let parts = Parts::new(1);
    let mut history = History::begin(&parts.world(), 7);
    (0..40).for_each(|_| history.go_on());
    let mut db = reader(&parts.world()).unwrap();
    assert!(db.is_read_only() && !history.db.is_read_only());
    let first = history.states.last().unwrap().clone();
    assert_eq!(shown(&db), first);
    let old = db.existing_column_family("rocks").unwrap().unwrap();
    let snapshot = db.snapshot();
    let mut cursor = old.cursor(..).unwrap();
    cursor.next().unwrap();
    (0..40).for_each(|_| history.go_on());
    history.db.existing_column_family("rocks").unwrap().unwrap().compact_range(..).unwrap();
    assert_eq!(shown(&db), first);
    db.refresh().unwrap();
    let second = history.states.last().unwrap().clone();
    assert!(second != first);
    assert_eq!(shown(&db), second);
    // What was taken before stays where it was.
    assert_eq!(rows(&old), first["rocks"]);
    assert!(old.get_at(b"step", &snapshot).unwrap().is_some());
    let mut count = 1;
    while cursor.next().unwrap() {
        count += 1;
    }
    assert_eq!(count, first["rocks"].len());
    let new = db.existing_column_family("rocks").unwrap().unwrap();
    assert_eq!(new.get_at(b"step", &snapshot).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn every_call_that_writes_is_refused() {
    let parts = Parts::new(1);
    let mut history = History::begin(&parts.world(), 7);
    (0..10).for_each(|_| history.go_on());
    let mut db = reader(&parts.world()).unwrap();
    let rocks = db.existing_column_family("rocks").unwrap().unwrap();
    let mut batch = db.batch();
    batch.put(&rocks, b"a", b"b");
    let mut transaction = db.transaction();
    let mut optimistic = db.optimistic_transaction();
    let refused = [
        // First, so that a lock that was granted would make the writes behind it wait.
        transaction.put(&rocks, b"a", b"b"),
        transaction.delete(&rocks, b"a"),
        transaction.get_for_update(&rocks, b"a").map(|_| ()),
        transaction.lock_first(&rocks, ..).map(|_| ()),
        optimistic.put(&rocks, b"a", b"b"),
        optimistic.lock_first(&rocks, ..).map(|_| ()),
        rocks.update(b"a", |_| Some(b"b")).map(|_| ()),
        rocks.put_if_absent(b"a", b"b").map(|_| ()),
        rocks.compare_and_put(b"a", b"b", b"c").map(|_| ()),
        rocks.compare_and_delete(b"a", b"b").map(|_| ()),
        rocks.put(b"a", b"b"),
        rocks.delete(b"a"),
        rocks.single_delete(b"a"),
        rocks.delete_range(b"a", b"b"),
        rocks.flush(),
        rocks.compact_range(..),
        rocks.ingest().map(|_| ()),
        rocks.ingest_tables(&["x"], lithify::TableTransfer::Copy).map(|_| ()),
        batch.commit(),
        transaction.commit(),
        optimistic.commit(),
        db.sync(),
        db.flush(),
        db.drop_column_family("rocks"),
        db.column_family("more", CfOptions::default()).map(|_| ()),
        db.column_family("rocks", CfOptions::default()).map(|_| ()),
    ];
    for (index, result) in refused.into_iter().enumerate() {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::ReadOnly, "call {index}");
    }
    assert_eq!(db.stats().row_locks_held, 0);
    // A family with the options that it has is no change.
    assert_eq!(db.column_family("rocks", rocks.options()).unwrap().id(), rocks.id());
    assert_eq!(history.db.is_read_only().then_some(()), None);
    drop(rocks);
    db.refresh().unwrap();
    assert_eq!(registrations(&parts.files), 1);
    db.close().unwrap();
    let mut writer = history.db;
    assert_eq!(writer.refresh().unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(registrations(&parts.files), 0);
}

#[test]
fn files_stay_while_a_reader_holds_them_and_go_behind_it() {
    let parts = Parts::new(1);
    let mut history = History::begin(&parts.world(), 3);
    (0..60).for_each(|_| history.go_on());
    let db = reader(&parts.world()).unwrap();
    let state = history.states.last().unwrap().clone();
    (0..60).for_each(|_| history.go_on());
    let sands = history.db.existing_column_family("sands").unwrap().unwrap();
    sands.compact_range(..).unwrap();
    history.db.flush().unwrap();
    let held = history.db.stats();
    assert_eq!(held.readers, 1);
    assert!(held.files_held_for_readers > 0);
    assert_eq!(shown(&db), state);
    drop(db);
    sands.put(b"one", b"more").unwrap();
    history.db.flush().unwrap();
    history.db.wait_for_compaction().unwrap();
    let stats = history.db.stats();
    assert_eq!((stats.readers, stats.files_held_for_readers), (0, 0));
    history.db.close().unwrap();
    let report = verify_in(PATH, &VerifyOptions::default(), &parts.world(), &mut |_| {
        ControlFlow::Continue(())
    });
    assert!(report.unwrap().findings.is_empty(), "nothing is left over");
}

#[test]
fn a_writer_that_opens_beside_readers_keeps_their_files() {
    let parts = Parts::new(1);
    let mut history = History::begin(&parts.world(), 5);
    (0..50).for_each(|_| history.go_on());
    let db = reader(&parts.world()).unwrap();
    let state = history.states.last().unwrap().clone();
    (0..50).for_each(|_| history.go_on());
    history.db.close().unwrap();
    let next = writer(&parts.world());
    assert_eq!(next.stats().readers, 1);
    assert_eq!(shown(&db), state);
    assert_eq!(shown(&next), history.states.last().unwrap().clone());
}

#[test]
fn the_registration_of_a_dead_process_is_cleared_up() {
    let parts = Parts::new(1);
    let mut history = History::begin(&parts.world(), 9);
    (0..50).for_each(|_| history.go_on());
    let db = reader(&parts.world()).unwrap();
    (0..50).for_each(|_| history.go_on());
    let files: MemoryFileSystem = parts.files.crash_clone(0, CrashKeep::Everything);
    let environment = Arc::new(lithify::fs::MemoryEnvironment::new(2));
    let world = World { files: Arc::new(files.clone()), environment };
    assert_eq!(registrations(&files), 1);
    let next = writer(&world);
    assert_eq!(registrations(&files), 0);
    assert_eq!(next.stats().files_held_for_readers, 0);
    let tables = names_ending(&files, ".sst").len() as u64;
    let live: u64 = next.stats().levels.iter().map(|level| level.files).sum();
    assert_eq!(tables, live);
    drop(db);
}

#[test]
fn a_read_only_medium_is_opened_without_a_registration() {
    let parts = Parts::new(1);
    let mut history = History::begin(&parts.world(), 9);
    (0..50).for_each(|_| history.go_on());
    history.db.close().unwrap();
    parts.files.set_read_only(true);
    let db = reader(&parts.world()).unwrap();
    assert_eq!(&shown(&db), history.states.last().unwrap());
    assert!(!parts.files.exists(&Path::new(PATH).join("READERS")).unwrap());
    db.close().unwrap();
    parts.files.set_read_only(false);
    let error = Db::open_read_only_in("/nowhere", Options::default(), parts.world()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(!parts.files.exists(Path::new("/nowhere")).unwrap());
}

/// So much is done beside one opening.
const STEPS_MAX: usize = 30;

/// The writer goes on between any two calls that the opening reader makes to the file system: what
/// the reader then shows is what there was at some moment in between.
#[test]
fn what_is_read_beside_a_busy_writer_is_a_state_that_was() {
    let mut opened_count = 0;
    for seed in 0..8 {
        let parts = Parts::new(seed);
        let mut history = History::begin(&parts.world(), seed);
        (0..30).for_each(|_| history.go_on());
        let history = Arc::new(Mutex::new(history));
        for round in 0..4 {
            let from = history.lock().unwrap().states.len() - 1;
            let calls = Arc::new(AtomicU64::new(0));
            let every = 3 + (seed + round) % 9;
            let (busy, shared) = (Arc::clone(&calls), Arc::clone(&history));
            parts.files.set_fault(Box::new(move |_: &FileCall<'_>| {
                // The writer's own calls come here too, while it is locked.
                if let Ok(mut history) = shared.try_lock()
                    && history.states.len() < from + STEPS_MAX
                    && busy.fetch_add(1, Ordering::SeqCst) % every == every - 1
                {
                    history.go_on();
                }
                None
            }));
            let opened = reader(&parts.world());
            parts.files.clear_fault();
            let db = match opened {
                Ok(db) => db,
                // A writer that makes an ingest or a family at every turn is not caught up with.
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
                    assert!(error.to_string().contains("moves on faster"), "{error}");
                    continue;
                }
            };
            opened_count += 1;
            let state = shown(&db);
            let history = &mut *history.lock().unwrap();
            let seen = history.states[from..].contains(&state);
            assert!(seen, "seed {seed} round {round}: a state that never was");
            (0..10).for_each(|_| history.go_on());
            assert_eq!(shown(&db), state, "seed {seed} round {round}: it has changed");
        }
    }
    assert!(opened_count > 16, "{opened_count} of 32 were opened");
}

#[test]
fn a_database_in_use_is_verified_beside_its_writer() {
    let parts = Parts::new(1);
    let mut history = History::begin(&parts.world(), 9);
    (0..50).for_each(|_| history.go_on());
    let tables = parts.names_ending(".sst").len() as u64;
    let report = verify_in(PATH, &VerifyOptions::default(), &parts.world(), &mut |_| {
        (0..5).for_each(|_| history.go_on());
        ControlFlow::Continue(())
    });
    let report = report.unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    assert!(report.examined.tables > 0 && report.examined.tables <= tables);
    assert!(report.examined.log_records > 0);
    assert_eq!(registrations(&parts.files), 0);
}

const CHILD: &str = "LITHIFY_READER_DIRECTORY";

/// The reading process of the test below; nothing without it.
#[test]
fn reading_process() {
    let Ok(directory) = std::env::var(CHILD) else { return };
    let mut db = Db::open_read_only(&directory, Options::default()).unwrap();
    let mut last = 0;
    let mut output = std::io::stdout();
    loop {
        let step = |name: &str| {
            let family = db.existing_column_family(name).unwrap().unwrap();
            let value = family.get(b"step").unwrap().unwrap();
            assert_eq!(rows(&family).len(), 401);
            u64::from_le_bytes(value[..8].try_into().unwrap())
        };
        let (rocks, sands) = (step("rocks"), step("sands"));
        assert_eq!(rocks, sands, "a batch is there as a whole");
        assert!(rocks >= last, "it goes on");
        last = rocks;
        writeln!(output, "step {last}").unwrap();
        output.flush().unwrap();
        db.refresh().unwrap();
    }
}

#[test]
fn another_process_reads_while_this_one_writes_and_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { memtable_bytes: 256 << 10, wal_bytes_max: 1 << 20, ..small_options() };
    let options = Options { background_threads: 2, ..options };
    let db = Db::open(directory.path(), options).unwrap();
    let small = CfOptions { table_bytes: 128 << 10, ..CfOptions::default() };
    let families = ["rocks", "sands"].map(|name| db.column_family(name, small.clone()).unwrap());
    let mut random = Random(4);
    let mut commit = |step: u64, rows: u64| {
        let mut batch = db.batch();
        for family in &families {
            for _ in 0..rows {
                let key = format!("row{:04}", random.below(400));
                batch.put(family, key.as_bytes(), random.bytes(400));
            }
            batch.put(family, b"step", step.to_le_bytes());
        }
        batch.commit().unwrap();
    };
    commit(1, 0);
    for family in &families {
        for number in 0..400 {
            family.put(format!("row{number:04}").as_bytes(), b"first").unwrap();
        }
    }
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "readers::reading_process", "--nocapture"])
        .env(CHILD, directory.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut seen = Vec::new();
    let mut step = 1;
    for line in lines {
        let line = line.unwrap();
        let Some(number) = line.strip_prefix("step ") else { continue };
        seen.push(number.parse::<u64>().unwrap());
        for _ in 0..20 {
            step += 1;
            commit(step, 20);
        }
        if seen.len() == 30 {
            break;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(seen.len(), 30, "the reader failed");
    assert!(seen.windows(2).all(|pair| pair[0] <= pair[1]) && seen[29] > 1, "{seen:?}");
    // Whatever it held goes.
    commit(step + 1, 20);
    db.flush().unwrap();
    commit(step + 2, 20);
    db.flush().unwrap();
    assert_eq!(db.stats().readers, 0);
    assert_eq!(std::fs::read_dir(directory.path().join("READERS")).unwrap().count(), 0);
    db.close().unwrap();
}
