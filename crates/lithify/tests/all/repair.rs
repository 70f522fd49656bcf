//! What is saved of a damaged database, and what is said to be lost.

use crate::support::{Model, PATH, Parts, Random, names_ending, rows, small_options};
use lithify::fs::{CrashKeep, FileSystem, MemoryEnvironment, MemoryFileSystem, OpenMode, World};
use lithify::repair::{RepairOptions, RepairReport, repair_in};
use lithify::{CfOptions, Db, ErrorKind, Result};
use std::collections::BTreeMap;
use std::io::IoSlice;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const TARGET: &str = "/repaired";

fn path(name: &str) -> PathBuf {
    Path::new(PATH).join(name)
}

fn flip(files: &MemoryFileSystem, name: &str, offset: u64) {
    let file = files.open(&path(name), OpenMode::ReadWrite).unwrap();
    let mut byte = [0];
    file.read_at(&mut byte, offset).unwrap();
    file.write_at(&[IoSlice::new(&[byte[0] ^ 0x55])], offset).unwrap();
}

fn options() -> RepairOptions {
    RepairOptions { database: small_options(), ..RepairOptions::default() }
}

fn repair(parts: &Parts, options: &RepairOptions) -> Result<RepairReport> {
    repair_in(PATH, TARGET, options, &parts.world(), &mut |_| ControlFlow::Continue(()))
}

fn shown(db: &Db) -> BTreeMap<String, Model> {
    let family = |name: &String| db.existing_column_family(name).unwrap().unwrap();
    db.column_family_names().iter().map(|name| (name.clone(), rows(&family(name)))).collect()
}

fn repaired(parts: &Parts) -> BTreeMap<String, Model> {
    let db = Db::open_in(TARGET, small_options(), parts.world()).unwrap();
    let all = shown(&db);
    db.close().unwrap();
    all
}

/// A closed database of two families with several levels, a dropped one, and a log; what it shows
/// now, and what it showed when the last flush was done.
fn database(seed: u64) -> (Parts, BTreeMap<String, Model>, BTreeMap<String, Model>) {
    let parts = Parts::new(seed);
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    let dropped = db.column_family("dropped", CfOptions::default()).unwrap();
    dropped.put(b"a", b"b").unwrap();
    let small =
        CfOptions { table_bytes: 64 << 10, block_size_bytes: 1 << 10, ..CfOptions::default() };
    let rocks = db.column_family("rocks", small.clone()).unwrap();
    let sands = db.column_family("sands", small).unwrap();
    let mut random = Random(seed);
    let mut write = |count: u64| {
        for _ in 0..count {
            let mut batch = db.batch();
            for _ in 0..4 {
                let number = random.below(1500);
                let key = format!("row{number:05}");
                let end = format!("row{:05}", number + 50);
                match random.below(12) {
                    0 => batch.delete(&rocks, key.as_bytes()),
                    1 => batch.delete_range(&sands, key.as_bytes(), end.as_bytes()),
                    2..=5 => batch.put(&sands, key.as_bytes(), random.bytes(150)),
                    _ => batch.put(&rocks, key.as_bytes(), random.bytes(150)),
                };
            }
            batch.commit().unwrap();
        }
    };
    for round in 0..5 {
        write(150);
        db.flush().unwrap();
        if round == 1 {
            rocks.compact_range(..).unwrap();
        }
    }
    let mut ingest = sands.ingest().unwrap();
    for number in 0..40 {
        ingest.put(format!("sand{number:05}").as_bytes(), b"fine").unwrap();
    }
    ingest.commit().unwrap();
    db.drop_column_family("dropped").unwrap();
    db.flush().unwrap();
    db.wait_for_compaction().unwrap();
    let flushed = shown(&db);
    write(40);
    let all = shown(&db);
    db.close().unwrap();
    (parts, all, flushed)
}

/// Everything in the damaged directory, byte for byte.
fn image(files: &dyn FileSystem) -> Vec<(PathBuf, Vec<u8>)> {
    let read = |name: PathBuf| {
        let path = Path::new(PATH).join(&name);
        let file = files.open(&path, OpenMode::Read).unwrap();
        let mut bytes = vec![0; file.length().unwrap() as usize];
        file.read_at(&mut bytes, 0).unwrap();
        (name, bytes)
    };
    files.list(Path::new(PATH)).unwrap().into_iter().map(read).collect()
}

#[test]
fn nothing_is_lost_of_a_sound_database() {
    let (parts, all, _) = database(3);
    let before = image(&parts.files);
    let report = repair(&parts, &options()).unwrap();
    assert!(report.is_lossless() && report.findings.is_empty(), "{report}");
    assert_eq!(repaired(&parts), all);
    assert_eq!(image(&parts.files), before, "the damaged directory is only read");
    assert!(report.families.iter().all(|family| family.whole_tables > 0));
    assert!(report.log.replayed_groups > 0 && report.verified.entries > 0);
    let left = parts.files.list(Path::new(TARGET)).unwrap();
    assert!(!left.iter().any(|name| name.to_string_lossy().contains("salvaged")));
    assert!(report.to_json().contains("\"lossless\":true"));
    // A second repair needs another directory.
    assert_eq!(repair(&parts, &options()).unwrap_err().kind(), ErrorKind::AlreadyExists);
}

#[test]
fn without_current_or_manifest_the_tables_say_whose_they_are() {
    for lose_manifests in [false, true] {
        let (parts, all, _) = database(4);
        parts.files.remove(&path("CURRENT")).unwrap();
        for name in parts.files.list(Path::new(PATH)).unwrap() {
            if lose_manifests && name.to_string_lossy().starts_with("MANIFEST") {
                parts.files.remove(&Path::new(PATH).join(name)).unwrap();
            }
        }
        let report = repair(&parts, &options()).unwrap();
        assert!(!report.has_manifest && !report.is_lossless());
        assert!(report.lost.is_empty() && report.log.damaged_at.is_none(), "{report}");
        let found = repaired(&parts);
        assert_eq!(found["rocks"], all["rocks"], "manifests lost: {lose_manifests}");
        assert_eq!(found["sands"], all["sands"], "manifests lost: {lose_manifests}");
        assert!(report.to_string().contains("no whole manifest"));
    }
}

#[test]
fn the_good_blocks_around_a_bad_one_are_saved() {
    let (parts, all, _) = database(5);
    let tables = parts.names_ending(".sst");
    for table in &tables {
        flip(&parts.files, table, parts.files.length(&path(table)).unwrap() / 3);
    }
    let report = repair(&parts, &options()).unwrap();
    let salvaged: u64 = report.families.iter().map(|family| family.salvaged_tables).sum();
    assert!(salvaged > 0 && !report.lost.is_empty(), "{report}");
    let found = repaired(&parts);
    for (name, was) in &all {
        let is = &found[name];
        let lost_in: Vec<_> = report.lost.iter().filter(|lost| lost.family == *name).collect();
        let is_lost = |key: &Vec<u8>| {
            lost_in.iter().any(|lost| match &lost.keys {
                Some((first, last)) => first <= key && key <= last,
                None => true,
            })
        };
        let is_stale = |key: &Vec<u8>| {
            let in_range = |lost: &&&lithify::repair::LostPart| match &lost.keys {
                Some((first, last)) => first <= key && key <= last,
                None => true,
            };
            lost_in.iter().filter(in_range).any(|lost| lost.may_show_older_rows)
        };
        // What is missing is said to be lost; what is other or back is said to be older.
        for (key, value) in was {
            match is.get(key) {
                Some(found) if found == value => {}
                Some(_) => assert!(is_stale(key), "{name} {key:?} is older"),
                None => assert!(is_lost(key), "{name} {key:?} is missing"),
            }
        }
        for key in is.keys().filter(|key| !was.contains_key(*key)) {
            assert!(is_stale(key), "{name} {key:?} is back");
        }
        assert!(is.len() * 2 > was.len(), "{name}: {} of {} rows", is.len(), was.len());
    }
}

#[test]
fn a_lost_table_is_named_with_its_range() {
    let (parts, _, _) = database(6);
    let table = parts.names_ending(".sst").pop().unwrap();
    parts.files.remove(&path(&table)).unwrap();
    let report = repair(&parts, &options()).unwrap();
    let lost: Vec<_> = report.lost.iter().map(|lost| (lost.file.clone(), lost.what)).collect();
    assert_eq!(lost, [(path(&table), "table")]);
    assert!(report.lost[0].keys.is_some());
    assert_eq!(report.families.iter().map(|family| family.lost_tables).sum::<u64>(), 1);
    repaired(&parts);
}

#[test]
fn behind_damage_the_log_is_replayed_only_when_asked() {
    for beyond_damage in [false, true] {
        let (parts, all, flushed) = database(7);
        let log = parts.names_ending(".wal").pop().unwrap();
        let go_on = &mut |_: &_| ControlFlow::Continue(());
        let whole = repair_in(PATH, "/whole", &options(), &parts.world(), go_on).unwrap();
        flip(&parts.files, &log, 1000);
        let report = repair(&parts, &RepairOptions { beyond_damage, ..options() }).unwrap();
        let (file, _) = report.log.damaged_at.clone().unwrap();
        assert_eq!(file, path(&log));
        let found = repaired(&parts);
        assert_ne!(found, all);
        assert_ne!(found, flushed);
        assert_eq!(report.log.groups_beyond_damage > 0, beyond_damage, "{report}");
        assert_eq!(report.log.left_out_groups > 0, !beyond_damage, "{report}");
        let groups = report.log.replayed_groups + report.log.left_out_groups;
        assert_eq!(groups + 1, whole.log.replayed_groups, "{report}");
    }
}

#[test]
fn a_repair_that_does_not_end_leaves_no_database_and_begins_again() {
    let (parts, all, _) = database(8);
    let mut turns = 0;
    let stopped = repair_in(PATH, TARGET, &options(), &parts.world(), &mut |_| {
        turns += 1;
        match turns {
            3 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    });
    assert!(stopped.unwrap().is_cancelled);
    let refused = |world: World| {
        let error = Db::open_in(TARGET, small_options(), world.clone()).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("has not ended"), "{error}");
        let error = Db::open_read_only_in(TARGET, small_options(), world).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    };
    refused(parts.world());
    assert!(repair(&parts, &options()).unwrap().is_lossless());
    assert_eq!(repaired(&parts), all);

    // The same by a power cut at any call: never a database that is not whole.
    let (parts, all, _) = database(8);
    let clones = Arc::new(std::sync::Mutex::new(Vec::new()));
    let (files, sink) = (parts.files.clone(), Arc::clone(&clones));
    let calls = std::sync::atomic::AtomicU64::new(0);
    parts.files.set_fault(Box::new(move |_| {
        let call = calls.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        if call.is_multiple_of(97) {
            sink.lock().unwrap().push(files.crash_clone(call, CrashKeep::Random));
        }
        None
    }));
    repair(&parts, &options()).unwrap();
    parts.files.clear_fault();
    for files in clones.lock().unwrap().drain(..) {
        let environment = MemoryEnvironment::new(1);
        let parts = Parts { files, environment };
        match Db::open_in(TARGET, small_options(), parts.world()) {
            Ok(db) => {
                let found = shown(&db);
                assert!(found == all || found.is_empty(), "{} families", found.len());
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}"),
        }
    }
}

#[test]
fn what_cannot_be_repaired_is_refused() {
    let (parts, _, _) = database(9);
    let inside = format!("{PATH}/inside");
    let go_on = &mut |_: &_| ControlFlow::Continue(());
    let error = repair_in(PATH, &inside, &options(), &parts.world(), go_on).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let error = repair_in("/nowhere", TARGET, &options(), &parts.world(), go_on).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    assert_eq!(repair(&parts, &options()).unwrap_err().kind(), ErrorKind::Locked);
    drop(db);
    assert!(names_ending(&parts.files, ".sst").len() > 1);
    assert!(!parts.files.exists(Path::new(TARGET)).unwrap());
}
