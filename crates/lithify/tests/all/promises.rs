//! Single promises of durability, each in the shortest history that breaks if it is not kept.
//! Whole histories are the simulator's.

use lithify::fs::{
    CrashKeep, FileCall, FileCallKind, FileSystem, MemoryEnvironment, MemoryFileSystem, OpenMode,
    World,
};
use lithify::{CfOptions, ColumnFamily, Db, Durability, ErrorKind, Options, Result};
use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Two levels deep, so that a new directory's parent is new too.
const DIRECTORY: &str = "data/base";

fn open_with(
    files: &MemoryFileSystem,
    environment: &MemoryEnvironment,
    options: Options,
) -> Result<Db> {
    let (files, environment) = (Arc::new(files.clone()), Arc::new(environment.clone()));
    Db::open_in(DIRECTORY, options, World { files, environment })
}

fn options(durability: Durability) -> Options {
    Options {
        memory_budget_bytes: 1 << 20,
        memtable_bytes: 64 << 10,
        wal_bytes_max: 256 << 10,
        background_threads: 0,
        durability,
        ..Options::default()
    }
}

fn open(
    files: &MemoryFileSystem,
    environment: &MemoryEnvironment,
    durability: Durability,
) -> Result<Db> {
    open_with(files, environment, options(durability))
}

fn fresh(durability: Durability) -> (MemoryFileSystem, MemoryEnvironment, Db) {
    let (files, environment) = (MemoryFileSystem::new(), MemoryEnvironment::new(1));
    let db = open(&files, &environment, durability).unwrap();
    (files, environment, db)
}

fn family(db: &Db, name: &str) -> ColumnFamily {
    db.column_family(name, CfOptions::default()).unwrap()
}

/// Opens what a power cut now leaves of a disk when everything unsynced is lost.
fn after_power_cut(files: &MemoryFileSystem) -> Db {
    let image = files.crash_clone(1, CrashKeep::Nothing);
    open(&image, &MemoryEnvironment::new(2), Durability::Buffered).unwrap()
}

fn has(db: &Db, name: &str, key: &[u8]) -> bool {
    let family = db.existing_column_family(name).unwrap();
    family.is_some_and(|family| family.contains(key).unwrap())
}

#[test]
fn a_batch_stays_whole_when_one_of_its_families_is_flushed() {
    let (files, _, db) = fresh(Durability::Buffered);
    let (a, b) = (family(&db, "a"), family(&db, "b"));
    b.put(b"earlier", b"1").unwrap();
    let mut batch = db.batch();
    batch.put(&a, b"key", b"1").put(&b, b"key", b"1");
    batch.commit().unwrap();
    a.flush().unwrap();
    let db = after_power_cut(&files);
    assert!(has(&db, "a", b"key") && has(&db, "b", b"key") && has(&db, "b", b"earlier"));
}

#[test]
fn families_are_made_and_dropped_behind_what_was_written_before() {
    let (files, _, db) = fresh(Durability::Buffered);
    let (a, _) = (family(&db, "a"), family(&db, "b"));
    a.put(b"one", b"1").unwrap();
    family(&db, "c");
    let now = after_power_cut(&files);
    assert!(has(&now, "a", b"one"));
    a.put(b"two", b"2").unwrap();
    db.drop_column_family("b").unwrap();
    let now = after_power_cut(&files);
    assert!(has(&now, "a", b"two"));
    assert_eq!(now.column_family_names(), ["a", "c"]);
}

#[test]
fn without_threads_the_commit_that_finds_the_interval_over_syncs() {
    let (files, environment, db) = fresh(Durability::Interval { milliseconds: 10 });
    let a = family(&db, "a");
    a.put(b"one", b"1").unwrap();
    environment.advance_us(9_000);
    a.put(b"two", b"2").unwrap();
    environment.advance_us(2_000);
    a.put(b"three", b"3").unwrap();
    a.put(b"four", b"4").unwrap();
    let now = after_power_cut(&files);
    assert!(has(&now, "a", b"one") && has(&now, "a", b"two") && has(&now, "a", b"three"));
    assert!(!has(&now, "a", b"four"));
}

#[test]
fn with_sync_a_commit_may_ask_to_be_buffered() {
    let (files, _, db) = fresh(Durability::Sync);
    let a = family(&db, "a");
    a.put(b"before", b"1").unwrap();
    let syncs = files.calls(FileCallKind::SyncData);
    let mut batch = db.batch();
    batch.put(&a, b"batch", b"1");
    batch.commit_with(Durability::Buffered).unwrap();
    let mut transaction = db.transaction();
    transaction.put(&a, b"transaction", b"1").unwrap();
    transaction.commit_with(Durability::Buffered).unwrap();
    assert_eq!(files.calls(FileCallKind::SyncData), syncs, "they wait for no disk");
    let keys: [&[u8]; 3] = [b"before", b"batch", b"transaction"];
    let now = after_power_cut(&files);
    assert_eq!(keys.map(|key| has(&now, "a", key)), [true, false, false]);
    let killed = files.crash_clone(1, CrashKeep::Everything);
    let killed = open(&killed, &MemoryEnvironment::new(2), Durability::Sync).unwrap();
    assert_eq!(keys.map(|key| has(&killed, "a", key)), [true; 3]);
    a.put(b"later", b"1").unwrap();
    let now = after_power_cut(&files);
    assert!(keys.iter().all(|key| has(&now, "a", key)), "a sync makes what came before durable");
}

#[test]
fn a_write_is_not_visible_before_it_is_durable() {
    let (files, _, db) = fresh(Durability::Sync);
    let a = family(&db, "a");
    a.put(b"key", b"old").unwrap();
    let (seen, syncs) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicU64::new(0)));
    let (reader, shared, counted) = (a.clone(), Arc::clone(&seen), Arc::clone(&syncs));
    files.set_fault(Box::new(move |call: &FileCall<'_>| {
        if call.kind == FileCallKind::SyncData {
            counted.fetch_add(1, Ordering::SeqCst);
            let value = reader.get(b"key").unwrap();
            shared.lock().unwrap().push(value.as_deref().map(<[u8]>::to_vec));
        }
        None
    }));
    a.put(b"key", b"new").unwrap();
    files.clear_fault();
    assert_eq!(syncs.load(Ordering::SeqCst), 1);
    assert_eq!(*seen.lock().unwrap(), [Some(b"old".to_vec())]);
    assert_eq!(a.get(b"key").unwrap().as_deref(), Some(&b"new"[..]));
}

#[test]
fn a_directory_left_by_a_killed_process_is_made_durable_by_the_next_one() {
    for killed_at in 0..12 {
        let files = MemoryFileSystem::new();
        let image = Arc::new(Mutex::new(None));
        let (disk, shared) = (files.clone(), Arc::clone(&image));
        files.set_fault(Box::new(move |call| {
            if call.index == killed_at {
                *shared.lock().unwrap() = Some(disk.crash_clone(1, CrashKeep::Everything));
            }
            (call.index >= killed_at).then(|| io::Error::other("the process is killed"))
        }));
        drop(open(&files, &MemoryEnvironment::new(1), Durability::Sync));
        files.clear_fault();
        let files = image.lock().unwrap().take().unwrap();
        let db = open(&files, &MemoryEnvironment::new(2), Durability::Sync).unwrap();
        family(&db, "a").put(b"key", b"1").unwrap();
        let now = after_power_cut(&files);
        assert!(has(&now, "a", b"key"), "{DIRECTORY} lost after a kill at call {killed_at}");
    }
}

/// Damage behind what is known to be durable is what a power cut leaves of a log that lost one of
/// its sectors: all from there on is dropped, and that is said.
#[test]
fn recovery_says_what_it_drops() {
    let (files, _, db) = fresh(Durability::Buffered);
    let a = family(&db, "a");
    for key in [b"first", b"other", b"third"] {
        a.put(key, b"1").unwrap();
    }
    let image = files.crash_clone(1, CrashKeep::Everything);
    let names = image.list(Path::new(DIRECTORY)).unwrap();
    let log = names.iter().find(|name| name.extension().is_some_and(|end| end == "wal")).unwrap();
    let log = image.open(&Path::new(DIRECTORY).join(log), OpenMode::ReadWrite).unwrap();
    let mut bytes = vec![0; log.length().unwrap() as usize];
    let length = log.read_at(&mut bytes, 0).unwrap();
    let damaged = bytes[..length].windows(5).position(|window| window == b"other").unwrap();
    log.write_at(&[IoSlice::new(b"X")], damaged as u64).unwrap();
    let now = open(&image, &MemoryEnvironment::new(2), Durability::Buffered).unwrap();
    let keys: [&[u8]; 3] = [b"first", b"other", b"third"];
    assert_eq!(keys.map(|key| has(&now, "a", key)), [true, false, false]);
    let [report] = now.recovery() else { panic!("{:?}", now.recovery()) };
    assert!(report.records == 1 && report.dropped_bytes > 0, "{report}");
    assert_eq!(fresh(Durability::Buffered).2.recovery(), []);
}

/// Fails the next call of that kind on a file whose name begins so.
fn fail_next(files: &MemoryFileSystem, kind: FileCallKind, name: &'static str, how: io::ErrorKind) {
    let done = AtomicU64::new(0);
    files.set_fault(Box::new(move |call| {
        let found = call.path.file_name().unwrap_or_default().to_string_lossy();
        let is_due = call.kind == kind && found.starts_with(name);
        (is_due && done.fetch_add(1, Ordering::SeqCst) == 0).then(|| how.into())
    }));
}

fn kind<T>(result: Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

#[test]
fn after_a_failed_sync_nothing_is_written_until_the_database_is_opened_again() {
    let (files, environment, db) = fresh(Durability::Sync);
    let a = family(&db, "a");
    a.put(b"before", b"1").unwrap();
    fail_next(&files, FileCallKind::SyncData, "0", io::ErrorKind::Other);
    let error = a.put(b"failed", b"1").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Poisoned);
    assert!(std::error::Error::source(&error).is_some(), "it says why: {error}");
    for again in [a.put(b"later", b"1"), a.flush(), db.flush(), db.sync(), a.delete(b"before")] {
        assert_eq!(kind(again), Some(ErrorKind::Poisoned));
    }
    assert!(a.contains(b"before").unwrap() && !a.contains(b"failed").unwrap());
    assert_eq!(kind(db.close()), Some(ErrorKind::Poisoned));
    let db = open(&files, &environment, Durability::Sync).unwrap();
    assert!(has(&db, "a", b"before") && !has(&db, "a", b"later"));
    family(&db, "a").put(b"later", b"1").unwrap();
}

// Writing went on after this, and a family that is still there for its writers, or is there again,
// was gone or back after the next opening.
#[test]
fn a_family_of_which_it_is_unknown_whether_it_was_made_or_dropped_takes_no_writes() {
    for makes in [true, false] {
        let (files, _, db) = fresh(Durability::Sync);
        let a = family(&db, "a");
        fail_next(&files, FileCallKind::SyncData, "MANIFEST", io::ErrorKind::Other);
        let changed = match makes {
            true => db.column_family("b", CfOptions::default()).map(drop),
            false => db.drop_column_family("a"),
        };
        assert_eq!(kind(changed), Some(ErrorKind::Poisoned));
        assert_eq!(kind(a.put(b"key", b"1")), Some(ErrorKind::Poisoned));
    }
}

// The other family's part of the flush was still under way when the first caller was told; the
// second flush was neither started nor refused, and waited for ever.
#[test]
fn a_flush_that_a_full_disk_refuses_is_over_for_all_families_before_anybody_is_told() {
    let (files, environment, db) = fresh(Durability::None);
    environment.set_watch(Box::new(|waits| assert!(waits < 10_000, "it waits for ever")));
    let families = ["a", "b", "c"].map(|name| family(&db, name));
    families.iter().for_each(|family| family.put(b"key", [7; 3000]).unwrap());
    let full = AtomicU64::new(0);
    files.set_fault(Box::new(move |call| {
        let is_due = call.kind == FileCallKind::Write && call.path.extension().is_some();
        let is_first = is_due && full.fetch_add(1, Ordering::SeqCst) == 0;
        is_first.then(|| io::ErrorKind::StorageFull.into())
    }));
    assert_eq!(kind(families[1].flush()), Some(ErrorKind::NoSpace));
    families[0].flush().unwrap();
    families[2].flush().unwrap();
    let now = after_power_cut(&files);
    assert!(["a", "b", "c"].iter().all(|name| has(&now, name, b"key")));
}

// Each try left one more manifest on the full disk.
#[test]
fn a_manifest_that_a_full_disk_keeps_from_being_replaced_leaves_nothing_behind() {
    let files = MemoryFileSystem::new();
    let few = Options { manifest_bytes_max: 1024, ..options(Durability::Sync) };
    let db = open_with(&files, &MemoryEnvironment::new(1), few).unwrap();
    files.set_fault(Box::new(|call| {
        let is_current = call.path.ends_with("CURRENT.tmp");
        (is_current && call.kind != FileCallKind::Remove).then(|| io::ErrorKind::StorageFull.into())
    }));
    let mut refused = 0;
    for round in 0..40 {
        let made = db.column_family(&format!("family {round}"), CfOptions::default());
        refused += u64::from(kind(made) == Some(ErrorKind::NoSpace));
    }
    assert!(refused > 2, "{refused} refused");
    let names = files.list(Path::new(DIRECTORY)).unwrap();
    let count =
        |start: &str| names.iter().filter(|n| n.to_string_lossy().starts_with(start)).count();
    assert_eq!((count("MANIFEST"), count("CURRENT")), (1, 1), "{names:?}");
    files.clear_fault();
    family(&db, "last").put(b"key", b"1").unwrap();
}
