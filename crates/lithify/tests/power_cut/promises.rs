//! Single promises, each in the shortest history that breaks if it is not kept.

use crate::life::{DIRECTORY, open};
use lithify::fs::{CrashKeep, FileCall, FileCallKind, MemoryEnvironment, MemoryFileSystem};
use lithify::{CfOptions, ColumnFamily, Db, Durability};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

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
    for calls in 0..12 {
        let files = MemoryFileSystem::new();
        let cut = crate::cut::Cut::after_calls(&files, calls, CrashKeep::Everything, 1);
        drop(open(&files, &MemoryEnvironment::new(1), Durability::Sync));
        let (files, call) = cut.take();
        let db = open(&files, &MemoryEnvironment::new(2), Durability::Sync).unwrap();
        family(&db, "a").put(b"key", b"1").unwrap();
        let now = after_power_cut(&files);
        assert!(has(&now, "a", b"key"), "{DIRECTORY} lost after a kill at {call}");
    }
}
