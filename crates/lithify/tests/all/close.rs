//! Closing: what a clean close leaves behind, and what becomes of calls beside it and after it.

use crate::support::{PATH, Parts, Random, small_options};
use lithify::fs::{CrashKeep, FileCallKind, World};
use lithify::{
    CfOptions, ColumnFamily, Db, Durability, ErrorKind, Event, EventListener, Options,
    TableTransfer, inspect,
};
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

/// With no threads nobody has removed the inputs of the last compactions when the close comes.
#[test]
fn no_table_is_left_that_nothing_needs() {
    let parts = Parts::new(1);
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    let family = db.column_family("rows", CfOptions::default()).unwrap();
    let mut random = Random(1);
    for number in 0..4_000u64 {
        let key = random.below(1_000).to_be_bytes();
        family.put(key, random.bytes(100 + number as usize % 100)).unwrap();
    }
    assert!(parts.names_ending(".sst").len() > 2);
    db.close().unwrap();
    let options = inspect::LevelsOptions::default();
    let tree = inspect::read_levels(&parts.files, Path::new(PATH), &options).unwrap();
    assert_eq!(parts.names_ending(".sst").len() as u64, tree.total().files);
}

/// Whatever a writer was told is there, on whichever handle it wrote while another closed.
#[test]
fn what_was_acknowledged_beside_a_close_is_there() {
    for durability in [Durability::None, Durability::Buffered] {
        let directory = tempfile::tempdir().unwrap();
        let options = Options { durability, ..threaded_options() };
        let mut acknowledged = Vec::new();
        for life in 0..40_u64 {
            let db = Db::open(directory.path(), options.clone()).unwrap();
            let writers: Vec<_> = (0..3_u64)
                .map(|writer| {
                    let name = format!("family-{}", writer % 2);
                    let family = db.column_family(&name, CfOptions::default()).unwrap();
                    std::thread::spawn(move || write_until_closed(&family, life, writer))
                })
                .collect();
            std::thread::sleep(Duration::from_millis(life % 7));
            db.close().unwrap();
            acknowledged.extend(writers.into_iter().flat_map(|writer| writer.join().unwrap()));
        }
        assert!(acknowledged.len() > 100, "{}", acknowledged.len());
        let db = Db::open(directory.path(), options).unwrap();
        for (name, key) in &acknowledged {
            let family = db.existing_column_family(name).unwrap().unwrap();
            let found = family.get(key).unwrap();
            assert!(found.is_some(), "{durability:?}: {key:?} of {name} is gone");
        }
        drop(db);
        assert_eq!(unnamed_tables(directory.path()), 0);
    }
}

/// Puts and ingests, each of a key of its own, until the database is closed; those that were
/// acknowledged.
fn write_until_closed(family: &ColumnFamily, life: u64, writer: u64) -> Vec<(String, Vec<u8>)> {
    let mut acknowledged = Vec::new();
    for number in 0.. {
        let key = [life.to_be_bytes(), writer.to_be_bytes(), u64::to_be_bytes(number)].concat();
        let ingests = number % 8 == 7;
        let written = match ingests {
            true => family.ingest().and_then(|mut ingest| {
                ingest.put(&key, [7; 500])?;
                ingest.commit().map(drop)
            }),
            false => family.put(&key, [7; 100]),
        };
        match written {
            Ok(()) => acknowledged.push((family.name().to_string(), key)),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
                break;
            }
        }
    }
    acknowledged
}

/// Ingests on handles of a database that is closed and opened again at once: none is lost, and
/// none makes the next opening fail.
#[test]
fn ingests_beside_a_close_are_there_or_refused() {
    let directory = tempfile::tempdir().unwrap();
    let options = threaded_options();
    let mut acknowledged = Vec::new();
    let mut running = Vec::new();
    for life in 0..60_u64 {
        let db = Db::open(directory.path(), options.clone()).unwrap();
        for writer in 0..2 {
            let family = db.column_family("rows", CfOptions::default()).unwrap();
            running.push(std::thread::spawn(move || ingest_until_closed(&family, life, writer)));
        }
        std::thread::sleep(Duration::from_millis(1 + life % 5));
        // The writers of this life end while the next one begins.
        db.close().unwrap();
    }
    for writer in running {
        acknowledged.extend(writer.join().unwrap());
    }
    assert!(!acknowledged.is_empty());
    let db = Db::open(directory.path(), options).unwrap();
    let family = db.existing_column_family("rows").unwrap().unwrap();
    for key in &acknowledged {
        assert!(family.get(key).unwrap().is_some(), "{key:?} is gone");
    }
    drop(db);
    assert_eq!(unnamed_tables(directory.path()), 0);
}

fn ingest_until_closed(family: &ColumnFamily, life: u64, writer: u64) -> Vec<Vec<u8>> {
    let mut acknowledged = Vec::new();
    for number in 0_u64.. {
        let key = [life, writer, number].map(u64::to_be_bytes).concat();
        let ingested = family.ingest().and_then(|mut ingest| {
            ingest.put(&key, [7; 100])?;
            ingest.commit()
        });
        match ingested {
            Ok(_) => acknowledged.push(key),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
                break;
            }
        }
    }
    acknowledged
}

/// Every call on a handle that outlives its database.
#[test]
fn handles_of_a_closed_database_touch_nothing() {
    let parts = Parts::new(3);
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    let family = db.column_family("rows", CfOptions::default()).unwrap();
    (0..2_000_u64).for_each(|row| family.put(row.to_be_bytes(), [7; 200]).unwrap());
    let mut ingest = family.ingest().unwrap();
    (0..2_000_u64).for_each(|row| ingest.put((1 << 40 | row).to_be_bytes(), [7; 200]).unwrap());
    let mut transaction = db.transaction();
    transaction.put(&family, b"t", b"1").unwrap();
    let (snapshot, mut cursor) = (db.snapshot(), family.cursor(..).unwrap());
    cursor.next().unwrap();
    family.compact_range(..).unwrap();
    db.close().unwrap();
    assert_eq!(unnamed_tables_in(&parts), 0, "an unfinished ingest and a cursor hold none");
    let calls = parts.files.calls(FileCallKind::Remove) + changes(&parts);
    let is_closed = |error: lithify::Error| assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
    is_closed(family.put(b"k", b"v").unwrap_err());
    is_closed(family.delete_range(b"a", b"b").unwrap_err());
    is_closed(family.get(b"k").unwrap_err());
    is_closed(family.cursor(..).err().unwrap());
    is_closed(family.flush().unwrap_err());
    is_closed(family.compact_range(..).unwrap_err());
    is_closed(family.ingest().err().unwrap());
    is_closed(ingest.commit().err().unwrap());
    is_closed(transaction.commit().unwrap_err());
    let mut rows = 1;
    while cursor.next().unwrap() {
        rows += 1;
    }
    assert_eq!(rows, 2_000, "a cursor keeps what it reads");
    drop((snapshot, cursor));
    assert_eq!(parts.files.calls(FileCallKind::Remove) + changes(&parts), calls);
}

/// Calls so far that change the disk.
fn changes(parts: &Parts) -> u64 {
    use FileCallKind as K;
    let kinds = [K::Create, K::Write, K::Append, K::Rename, K::Link, K::Truncate];
    kinds.iter().map(|kind| parts.files.calls(*kind)).sum()
}

/// A flush that finds nothing to write, and an ingest of no rows, make durable what came before.
#[test]
fn what_has_nothing_to_write_makes_durable_what_came_before() {
    type Step = fn(&ColumnFamily);
    let flush: Step = |empty| empty.flush().unwrap();
    let ingest: Step = |empty| drop(empty.ingest().unwrap().commit().unwrap());
    let no_tables: Step =
        |empty| drop(empty.ingest_tables::<&str>(&[], TableTransfer::Copy).unwrap());
    for durability in [Durability::None, Durability::Buffered] {
        for step in [flush, ingest, no_tables] {
            let parts = Parts::new(5);
            let options = Options { durability, ..small_options() };
            let db = Db::open_in(PATH, options.clone(), parts.world()).unwrap();
            let full = db.column_family("full", CfOptions::default()).unwrap();
            let empty = db.column_family("empty", CfOptions::default()).unwrap();
            full.put(b"k", b"v").unwrap();
            step(&empty);
            let world = World {
                files: Arc::new(parts.files.crash_clone(1, CrashKeep::Nothing)),
                ..parts.world()
            };
            let db = Db::open_in(PATH, options, world).unwrap();
            let full = db.existing_column_family("full").unwrap().unwrap();
            assert_eq!(full.get(b"k").unwrap().as_deref(), Some(&b"v"[..]), "{durability:?}");
        }
    }
}

fn threaded_options() -> Options {
    Options {
        memory_budget_bytes: 4 << 20,
        memtable_bytes: 64 << 10,
        wal_bytes_max: 1 << 20,
        background_threads: 2,
        ..Options::default()
    }
}

/// Tables in a directory that its manifest does not name.
fn unnamed_tables(directory: &Path) -> usize {
    let names = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    let tables = names.filter(|name| name.to_string_lossy().ends_with(".sst")).count();
    let options = inspect::LevelsOptions::default();
    let world = World::system();
    let tree = inspect::read_levels(&*world.files, directory, &options).unwrap();
    tables - tree.total().files as usize
}

fn unnamed_tables_in(parts: &Parts) -> usize {
    let options = inspect::LevelsOptions::default();
    let tree = inspect::read_levels(&parts.files, Path::new(PATH), &options).unwrap();
    parts.names_ending(".sst").len() - tree.total().files as usize
}

/// A close must not be slept through by the thread that syncs at intervals, however late it begins.
#[test]
fn the_syncing_thread_hears_of_a_close() {
    crate::support::watched("closes beside the syncing thread", || {
        for round in 0..200 {
            let parts = Parts::new(round);
            let world = World {
                files: Arc::new(parts.files.clone()),
                environment: Arc::new(lithify::fs::SystemEnvironment),
            };
            let durability = Durability::Interval { milliseconds: 600_000 };
            let options = Options { durability, background_threads: 1, ..small_options() };
            let db = Db::open_in(PATH, options, world).unwrap();
            let family = db.column_family("rows", CfOptions::default()).unwrap();
            family.put(b"k", b"v").unwrap();
            db.close().unwrap();
        }
    });
}

/// Without a log the last flush is all there is: what refuses it once may pass.
#[test]
fn a_close_tries_its_last_flush_again() {
    for refused in 0..3_u32 {
        let parts = Parts::new(9);
        let options = Options { durability: Durability::None, ..small_options() };
        let db = Db::open_in(PATH, options.clone(), parts.world()).unwrap();
        let family = db.column_family("rows", CfOptions::default()).unwrap();
        family.put(b"k", b"v").unwrap();
        let left = std::sync::atomic::AtomicU32::new(refused);
        parts.files.set_fault(Box::new(move |call| {
            use std::sync::atomic::Ordering::SeqCst;
            let is_table = call.path.extension().is_some_and(|extension| extension == "sst");
            let is_refused = is_table
                && call.kind == FileCallKind::Create
                && left.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_ok();
            is_refused.then(|| std::io::Error::from_raw_os_error(5))
        }));
        drop(family);
        db.close().unwrap();
        parts.files.clear_fault();
        let db = Db::open_in(PATH, options, parts.world()).unwrap();
        let family = db.existing_column_family("rows").unwrap().unwrap();
        assert_eq!(
            family.get(b"k").unwrap().as_deref(),
            Some(&b"v"[..]),
            "refused {refused} times"
        );
    }
}

/// Options of a database whose close is a flush, which stays in its first event until it is let go on.
fn held_close() -> (Options, mpsc::Receiver<()>, mpsc::Sender<()>) {
    let (told, begun) = mpsc::channel();
    let (go_on, waits) = mpsc::channel();
    let ends = Mutex::new((told, waits));
    let event_listener = EventListener::new(move |event| {
        if let Event::JobBegan(_) = event {
            let ends = ends.lock().unwrap();
            ends.0.send(()).unwrap();
            let _ = ends.1.recv();
        }
    });
    let options = Options { durability: Durability::None, event_listener, ..threaded_options() };
    (options, begun, go_on)
}

/// Whoever closes may open again at once, whichever call it was that did the work.
#[test]
fn a_second_close_waits_for_the_first_and_gives_what_it_gives() {
    for fails in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let (options, begun, go_on) = held_close();
        let db = Db::open(directory.path(), options).unwrap();
        db.put("a", "b").unwrap();
        let (first, second) = (db.clone(), db);
        let first = std::thread::spawn(move || first.close());
        begun.recv().unwrap();
        let (told, tells) = mpsc::channel();
        let second = std::thread::spawn(move || told.send(second.close()).unwrap());
        let early = tells.recv_timeout(Duration::from_millis(200));
        assert!(early.is_err(), "the second close returned {early:?} before the first");
        if fails {
            // What the last flush would write into.
            std::fs::remove_dir_all(directory.path()).unwrap();
        }
        drop(go_on);
        let outcomes = [first.join().unwrap(), tells.recv().unwrap()];
        second.join().unwrap();
        let kinds = outcomes.map(|outcome| outcome.map_err(|error| error.kind()));
        assert_eq!((kinds[0].is_err(), kinds[0]), (fails, kinds[1]));
        if !fails {
            drop(Db::open(directory.path(), threaded_options()).unwrap());
        }
    }
}

/// A listener must not close. One that does on the thread that closes is told so, and hangs nothing.
#[test]
fn a_close_within_a_close_is_refused() {
    let parts = Parts::new(4);
    let inner = Arc::new(Mutex::new(None::<Db>));
    let (refused, closing) = (Arc::new(Mutex::new(None)), Arc::clone(&inner));
    let outcome = Arc::clone(&refused);
    let event_listener = EventListener::new(move |_| {
        let db = closing.lock().unwrap().take();
        if let Some(db) = db {
            *outcome.lock().unwrap() = Some(db.close());
        }
    });
    let options = Options { durability: Durability::None, event_listener, ..small_options() };
    let db = Db::open_in(PATH, options, parts.world()).unwrap();
    db.put("a", "b").unwrap();
    *inner.lock().unwrap() = Some(db.clone());
    db.close().unwrap();
    let refused = refused.lock().unwrap().take().unwrap();
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Closed);
}
