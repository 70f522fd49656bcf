//! Bulk ingest: what becomes visible and when, where tables go, what is refused, what is left.

use crate::support::{Model, PATH, Parts, Random, rows, small_options, watched};
use lithify::fs::{
    CrashKeep, FileCallKind, FileSystem, MemoryFileSystem, OpenMode, SystemEnvironment, World,
};
use lithify::{
    CfOptions, ColumnFamily, Db, Durability, Error, ErrorKind, Ingested, Options, TableTransfer,
    TableWriter,
};
use std::io::IoSlice;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

const BOTTOM: usize = 6;

fn family_options() -> CfOptions {
    CfOptions {
        compression: "none,lz4,zstd-1".parse().unwrap(),
        table_bytes: 64 << 10,
        base_level_bytes_max: 64 << 10,
        fanout: 4,
        ..CfOptions::default()
    }
}

fn open(parts: &Parts) -> (Db, ColumnFamily) {
    open_with(parts, small_options())
}

fn open_with(parts: &Parts, options: Options) -> (Db, ColumnFamily) {
    let db = Db::open_in(PATH, options, parts.world()).unwrap();
    let family = db.column_family("rocks", family_options()).unwrap();
    (db, family)
}

fn key(number: u64) -> Vec<u8> {
    format!("rock{number:06}").into_bytes()
}

fn model(numbers: impl Iterator<Item = u64>, seed: u64) -> Model {
    let mut random = Random(seed);
    numbers.map(|number| (key(number), random.bytes(100))).collect()
}

fn ingest(family: &ColumnFamily, rows: &Model) -> Result<Ingested, Error> {
    let mut ingest = family.ingest()?;
    for (key, value) in rows {
        ingest.put(key, value)?;
    }
    ingest.commit()
}

fn write_table(parts: &Parts, path: &str, rows: &Model) {
    let mut writer = TableWriter::create_in(path, &family_options(), parts.world()).unwrap();
    for (key, value) in rows {
        writer.put(key, value).unwrap();
    }
    assert_eq!(writer.finish().unwrap().rows, rows.len() as u64);
}

fn files_of(db: &Db) -> Vec<u64> {
    db.stats().levels.iter().map(|level| level.files).collect()
}

#[test]
fn rows_go_to_the_bottom_at_once_and_are_read_everywhere() {
    let parts = Parts::new(1);
    let (db, family) = open(&parts);
    let all = model(0..4000, 1);
    let before = db.snapshot();
    let ingested = ingest(&family, &all).unwrap();
    assert_eq!(ingested.rows, 4000);
    assert!(ingested.levels.len() > 1, "cut to table size: {ingested:?}");
    assert!(ingested.levels.iter().all(|level| *level == BOTTOM), "{ingested:?}");
    assert_eq!(ingested.sequence, before.sequence() + 1);
    assert_eq!(rows(&family), all);
    assert!(!family.cursor_at(.., &before).unwrap().next().unwrap());
    for (key, value) in all.iter().step_by(97) {
        assert_eq!(family.get(key).unwrap().as_deref(), Some(&value[..]));
        assert_eq!(family.get_at(key, &before).unwrap(), None);
    }
    // Newer writes lie above; a compaction sees the right order too.
    family.put(key(5), b"new").unwrap();
    family.delete(key(6)).unwrap();
    family.delete_range(key(10), key(20)).unwrap();
    let mut newer = all.clone();
    newer.insert(key(5), b"new".to_vec());
    newer.remove(&key(6));
    (10..20).for_each(|number| drop(newer.remove(&key(number))));
    assert_eq!(rows(&family), newer);
    family.compact_range(..).unwrap();
    assert_eq!(rows(&family), newer);
    assert!(!family.cursor_at(.., &before).unwrap().next().unwrap());
    drop(before);
    drop(family);
    db.close().unwrap();
    let (db, family) = open(&parts);
    assert_eq!(rows(&family), newer);
    family.compact_range(..).unwrap();
    assert_eq!(rows(&family), newer);
    drop(db);
}

#[test]
fn a_reopened_database_knows_the_sequence_of_ingested_rows() {
    let parts = Parts::new(2);
    let (db, family) = open(&parts);
    family.put(key(1), b"old").unwrap();
    let all = model(0..50, 2);
    let ingested = ingest(&family, &all).unwrap();
    assert_eq!(ingested.levels, [0], "the flushed memtable overlaps");
    drop(family);
    db.close().unwrap();
    let (db, family) = open(&parts);
    assert_eq!(rows(&family), all);
    let snapshot = db.snapshot();
    assert_eq!(snapshot.sequence(), ingested.sequence);
    // A conflict check finds the rows newer than a snapshot from before them.
    let mut transaction = db.transaction();
    transaction.set_snapshot();
    ingest(&family, &model(0..50, 3)).unwrap();
    let error = transaction.get_for_update(&family, key(7)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
}

#[test]
fn keys_that_do_not_ascend_are_refused_by_name() {
    let parts = Parts::new(3);
    let (db, family) = open(&parts);
    let mut ingest = family.ingest().unwrap();
    ingest.put(b"chalk", b"1").unwrap();
    for wrong in [&b"chalk"[..], b"basalt"] {
        let error = ingest.put(wrong, b"2").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        let text = error.to_string();
        let named = String::from_utf8_lossy(wrong).into_owned();
        assert!(text.contains("\"chalk\"") && text.contains(&named), "{text}");
    }
    assert_eq!(ingest.put([0; 65_536], b"").unwrap_err().kind(), ErrorKind::LimitExceeded);
    ingest.delete(b"flint").unwrap();
    assert_eq!(ingest.rows(), 2);
    assert_eq!(ingest.commit().unwrap().rows, 2);
    assert_eq!(rows(&family).len(), 1);
    let mut writer = TableWriter::create_in("/t", &family_options(), parts.world()).unwrap();
    writer.put(b"chalk", b"1").unwrap();
    assert!(writer.put(b"basalt", b"2").unwrap_err().to_string().contains("\"basalt\""));
    drop(writer);
    assert!(!parts.files.exists(Path::new("/t")).unwrap());
    assert_eq!(family.ingest().unwrap().commit().unwrap(), Ingested::default());
    drop(db);
}

#[test]
fn a_dropped_or_failed_ingest_leaves_nothing() {
    let parts = Parts::new(4);
    let (db, family) = open(&parts);
    let all = model(0..5000, 4);
    let mut dropped = family.ingest().unwrap();
    all.iter().for_each(|(key, value)| dropped.put(key, value).unwrap());
    assert!(!parts.names_ending(".sst").is_empty());
    drop(dropped);
    assert!(parts.names_ending(".sst").is_empty());

    // Every call that can fail, does once; the database goes on, or says that it cannot.
    let failing =
        [FileCallKind::Create, FileCallKind::Open, FileCallKind::Write, FileCallKind::SyncData];
    for kind in failing {
        for skip in 0..3 {
            let seen = AtomicU64::new(0);
            parts.files.set_fault(Box::new(move |call| {
                let is_other = call.path.extension().is_some_and(|e| e != "sst");
                let counts = call.kind == kind && !is_other;
                let fails = counts && seen.fetch_add(1, Ordering::Relaxed) == skip;
                fails.then(|| std::io::Error::other("planted"))
            }));
            let result = ingest(&family, &all);
            parts.files.clear_fault();
            if let Err(error) = result {
                assert_eq!(error.kind(), ErrorKind::Io, "{kind:?}: {error}");
                assert!(parts.names_ending(".sst").is_empty(), "{kind:?}");
                assert!(rows(&family).is_empty());
            } else {
                family.delete_range(key(0), key(9999)).unwrap();
                family.compact_range(..).unwrap();
                db.wait_for_compaction().unwrap();
            }
        }
    }
    ingest(&family, &all).unwrap();
    assert_eq!(rows(&family), all);
}

#[test]
fn a_crash_leaves_all_rows_or_none_and_no_file() {
    let all = model(0..2000, 5);
    let mut outcomes = [0; 2];
    for cut_at in 0..60 {
        let parts = Parts::new(5);
        let (db, family) = open(&parts);
        family.put(key(3), b"old").unwrap();
        db.sync().unwrap();
        let image = Arc::new(Mutex::new(None));
        let (taken, files, first) = (image.clone(), parts.files.clone(), parts.files.call_count());
        parts.files.set_fault(Box::new(move |call| {
            if call.index == first + cut_at {
                let crashed = files.crash_clone(cut_at, CrashKeep::Random);
                *taken.lock().unwrap() = Some(crashed);
            }
            None
        }));
        ingest(&family, &all).unwrap();
        parts.files.clear_fault();
        let image = image.lock().unwrap().take();
        let Some(files) = image else { continue };
        let crashed = Parts { files, ..Parts::new(6) };
        let (db, family) = open(&crashed);
        let found = rows(&family);
        let old = Model::from([(key(3), b"old".to_vec())]);
        assert!(found == all || found == old, "cut at {cut_at}: {} rows", found.len());
        outcomes[usize::from(found == all)] += 1;
        db.wait_for_compaction().unwrap();
        let live: u64 = files_of(&db).iter().sum();
        assert_eq!(crashed.names_ending(".sst").len() as u64, live, "orphans are removed");
    }
    assert!(outcomes[0] > 0, "{outcomes:?}");
}

#[test]
fn table_files_are_linked_or_copied_and_shared_by_databases() {
    let parts = Parts::new(7);
    let (db, family) = open(&parts);
    let (low, high) = (model(0..1000, 7), model(2000..3000, 8));
    write_table(&parts, "/low", &low);
    write_table(&parts, "/high", &high);
    let ingested = family.ingest_tables(&["/high", "/low"], TableTransfer::Link).unwrap();
    assert_eq!((ingested.rows, ingested.levels), (2000, vec![BOTTOM, BOTTOM]));
    let mut all = low.clone();
    all.extend(high.clone());
    assert_eq!(rows(&family), all);
    let other = db.column_family("other", family_options()).unwrap();
    other.put(key(0), b"old").unwrap();
    let ingested = other.ingest_tables(&["/low"], TableTransfer::Copy).unwrap();
    assert_eq!(ingested.levels, [0]);
    assert_eq!(rows(&other), low);
    // The same file once more, over itself: the newer rows win, whatever they are.
    family.put(key(7), b"between").unwrap();
    let again = family.ingest_tables(&["/low"], TableTransfer::Link).unwrap();
    assert_eq!(again.levels, [0]);
    parts.files.remove(Path::new("/low")).unwrap();
    assert_eq!(rows(&family), all);
    family.compact_range(..).unwrap();
    assert_eq!(rows(&family), all);
    drop((family, other));
    db.close().unwrap();
    let (_db, family) = open(&parts);
    assert_eq!(rows(&family), all);
}

#[test]
fn a_large_table_comes_in_without_costing_the_cache_its_blocks() {
    let parts = Parts::new(17);
    let options = Options { memory_budget_bytes: 4 << 20, ..small_options() };
    let (db, family) = open_with(&parts, options);
    let hot = model(0..40_000, 17);
    ingest(&family, &hot).unwrap();
    let read = |all: &Model| {
        for (key, value) in all.iter().step_by(3) {
            assert_eq!(family.get(key).unwrap().as_deref(), Some(&value[..]));
        }
    };
    read(&hot);
    read(&hot);
    let before = db.stats().cache;
    assert!(before.evictions > 100, "the cache is full: {before:?}");
    // Its index has two levels.
    let large = model(50_000..100_000, 18);
    let options = CfOptions { block_size_bytes: 512, ..family_options() };
    let mut writer = TableWriter::create_in("/large", &options, parts.world()).unwrap();
    for (key, value) in &large {
        writer.put(key, value).unwrap();
    }
    writer.finish().unwrap();
    family.ingest_tables(&["/large"], TableTransfer::Copy).unwrap();
    // The new table keeps its top index, its filter and two partitions.
    let evictions = db.stats().cache.evictions - before.evictions;
    assert!(evictions < 20, "{evictions} of {before:?}");
    let mut all = hot;
    all.extend(large);
    assert_eq!(rows(&family), all);
    drop(family);
    db.close().unwrap();
}

#[test]
fn damaged_and_foreign_files_are_refused_and_nothing_changes() {
    let parts = Parts::new(8);
    let (db, family) = open(&parts);
    let good = model(0..300, 9);
    ingest(&family, &good).unwrap();
    write_table(&parts, "/fine", &model(1000..1200, 10));
    let refused = |path: &str| {
        let before = parts.names_ending(".sst");
        let error = family.ingest_tables(&["/fine", path], TableTransfer::Link).unwrap_err();
        assert_eq!(parts.names_ending(".sst"), before, "{path}");
        assert_eq!(rows(&family), good);
        assert_eq!(error.path(), Some(Path::new(path)), "{error}");
        error.kind()
    };
    let length = parts.files.length(Path::new("/fine")).unwrap() as usize;
    let mut bytes = vec![0; length];
    parts.files.open(Path::new("/fine"), OpenMode::Read).unwrap().read_at(&mut bytes, 0).unwrap();
    let plant = |name: &str, bytes: &[u8]| {
        let file = parts.files.open(Path::new(name), OpenMode::CreateOrTruncate).unwrap();
        file.append(&[IoSlice::new(bytes)]).unwrap();
    };
    for offset in (0..length).step_by(61) {
        let mut damaged = bytes.clone();
        damaged[offset] ^= 0x40;
        plant("/damaged", &damaged);
        assert_eq!(refused("/damaged"), ErrorKind::Corruption, "byte {offset}");
    }
    plant("/cut", &bytes[..length / 2]);
    assert_eq!(refused("/cut"), ErrorKind::Corruption);
    plant("/text", b"this is no table at all, and short");
    assert_eq!(refused("/text"), ErrorKind::Corruption);
    assert_eq!(refused("/missing"), ErrorKind::NotFound);
    // A table of a live database has sequence numbers of its own.
    let (a, b) = (b"a".to_vec(), b"b".to_vec());
    let other = db.column_family("other", family_options()).unwrap();
    other.put(&a, b"1").unwrap();
    let held = db.snapshot();
    other.put(&a, b"2").unwrap();
    let before = parts.names_ending(".sst");
    other.flush().unwrap();
    let new = parts.names_ending(".sst").into_iter().find(|name| !before.contains(name)).unwrap();
    let live = format!("{PATH}/{new}");
    assert_eq!(refused(&live), ErrorKind::InvalidArgument);
    drop(held);
    // Two tables that overlap each other.
    write_table(&parts, "/over", &model(1100..1300, 11));
    let error = family.ingest_tables(&["/fine", "/over"], TableTransfer::Copy).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert_eq!(rows(&family), good);
    assert!(family.get(&b).unwrap().is_none());
}

#[test]
fn without_a_log_nothing_older_is_lost_to_a_table() {
    let parts = Parts::new(9);
    let options = Options { durability: Durability::None, ..small_options() };
    let (db, family) = open_with(&parts, options.clone());
    let other = db.column_family("other", family_options()).unwrap();
    other.put(b"before", b"1").unwrap();
    ingest(&family, &model(0..100, 12)).unwrap();
    let crashed = Parts { files: parts.files.crash_clone(1, CrashKeep::Nothing), ..Parts::new(10) };
    let (db, family) = open_with(&crashed, options);
    assert_eq!(rows(&family).len(), 100);
    let other = db.existing_column_family("other").unwrap().unwrap();
    assert_eq!(other.get(b"before").unwrap().as_deref(), Some(&b"1"[..]));
}

#[test]
fn a_closed_database_and_a_dropped_family_end_an_ingest() {
    let parts = Parts::new(11);
    let (db, family) = open(&parts);
    let mut ingest = family.ingest().unwrap();
    ingest.put(b"a", b"1").unwrap();
    db.drop_column_family("rocks").unwrap();
    assert_eq!(ingest.commit().unwrap_err().kind(), ErrorKind::Closed);
    let family = db.column_family("rocks", family_options()).unwrap();
    let mut ingest = family.ingest().unwrap();
    ingest.put(b"a", b"1").unwrap();
    db.close().unwrap();
    assert_eq!(ingest.commit().unwrap_err().kind(), ErrorKind::Closed);
    assert!(parts.names_ending(".sst").is_empty());
}

/// A sync of the manifest that fails leaves it unknown whether the edit is durable: the tables that
/// it names must stay, so that the database opens either way.
#[test]
fn tables_of_an_edit_of_unknown_fate_are_kept() {
    let write = |family: &ColumnFamily| {
        family.put(key(1), b"put").unwrap();
        family.flush()
    };
    let load = |family: &ColumnFamily| ingest(family, &model(0..100, 13)).map(drop);
    let compact = |family: &ColumnFamily| family.compact_range(..);
    type Way = fn(&ColumnFamily) -> Result<(), Error>;
    let ways: [Way; 3] = [write, load, compact];
    for work in ways {
        let parts = Parts::new(12);
        let (db, family) = open(&parts);
        for round in 0..2 {
            family.put(key(round), b"before").unwrap();
            family.put(key(9), b"before").unwrap();
            family.flush().unwrap();
        }
        parts.files.set_fault(Box::new(|call| {
            let name = call.path.file_name().unwrap_or_default().to_string_lossy();
            let fails = call.kind == FileCallKind::SyncData && name.starts_with("MANIFEST");
            fails.then(|| std::io::Error::other("planted"))
        }));
        assert_eq!(work(&family).unwrap_err().kind(), ErrorKind::Poisoned);
        parts.files.clear_fault();
        drop((family, db));
        let (_db, family) = open(&parts);
        assert!(rows(&family).len() >= 3);
    }
}

/// Writers that never rest fill memtables in the range of the ingests, compactions run, readers look:
/// every reader sees one ingest as a whole, none is starved, and none goes back.
#[test]
fn ingests_are_atomic_beside_writers_readers_and_compactions() {
    const ROWS: u64 = 400;
    let directory = tempfile::tempdir().unwrap();
    let options = Options { background_threads: 2, ..small_options() };
    let db = Db::open(directory.path(), options).unwrap();
    let family = db.column_family("rocks", family_options()).unwrap();
    let is_over = AtomicBool::new(false);
    // Ingests own the odd keys, the writer the even ones.
    let generation = |number: u64| number.to_string().into_bytes();
    let load = |number: u64| {
        let mut ingest = family.ingest().unwrap();
        for row in 0..ROWS {
            ingest.put(key(2 * row + 1), generation(number)).unwrap();
        }
        ingest.commit().unwrap();
    };
    watched("ingests beside writers", || {
        std::thread::scope(|scope| {
            load(0);
            scope.spawn(|| {
                let mut random = Random(1);
                while !is_over.load(Ordering::Relaxed) {
                    family.put(key(2 * random.below(ROWS)), random.bytes(100)).unwrap();
                }
            });
            scope.spawn(|| {
                let mut newest = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let snapshot = db.snapshot();
                    let mut cursor = family.cursor_at(.., &snapshot).unwrap();
                    let mut seen = Vec::new();
                    while cursor.next().unwrap() {
                        if cursor.key().last().is_some_and(|digit| digit % 2 == 1) {
                            seen.push(String::from_utf8_lossy(cursor.value()).into_owned());
                        }
                    }
                    assert_eq!(seen.len() as u64, ROWS);
                    assert!(seen.iter().all(|value| *value == seen[0]), "torn: {seen:?}");
                    let found: u64 = seen[0].parse().unwrap();
                    assert!(found >= newest, "back from {newest} to {found}");
                    newest = found;
                }
            });
            for number in 1..=20 {
                load(number);
                let found = family.get(key(2 * (number % ROWS) + 1)).unwrap();
                assert_eq!(found.as_deref(), Some(&generation(number)[..]));
            }
            is_over.store(true, Ordering::Relaxed);
        });
    });
    db.wait_for_compaction().unwrap();
    family.compact_range(..).unwrap();
    assert_eq!(family.get(key(1)).unwrap().as_deref(), Some(&b"20"[..]));
}

/// A put behind an ingest goes into the memtable that readers have already, the ingest into tables that
/// they may not know yet: who sees the put sees the ingest, too.
#[test]
fn who_sees_a_put_sees_the_ingest_before_it() {
    let world = World {
        files: Arc::new(MemoryFileSystem::new()),
        environment: Arc::new(SystemEnvironment),
    };
    let options = Options { background_threads: 1, ..small_options() };
    let db = Db::open_in(PATH, options, world).unwrap();
    let family = db.column_family("rocks", family_options()).unwrap();
    let number = |value: &[u8]| value.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
    let by_multi_get = || -> Vec<u64> {
        let found = family.multi_get(&["ingested", "put"]).unwrap();
        found.iter().map(|value| value.as_deref().map_or(0, number)).collect()
    };
    let by_cursor = || {
        let mut values = vec![0, 0];
        let mut cursor = family.cursor(..).unwrap();
        while cursor.next().unwrap() {
            values[usize::from(cursor.key() == b"put")] = number(cursor.value());
        }
        values
    };
    let is_over = AtomicBool::new(false);
    let look = |read: &dyn Fn() -> Vec<u64>| {
        while !is_over.load(Ordering::Relaxed) {
            let seen = read();
            assert!(seen[0] >= seen[1], "ingest {} and the put behind ingest {}", seen[0], seen[1]);
        }
    };
    watched("reads beside ingests", || {
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| look(&by_multi_get));
                scope.spawn(|| look(&by_cursor));
            }
            for number in 1..=600_u64 {
                let mut ingest = family.ingest().unwrap();
                ingest.put("ingested", number.to_be_bytes()).unwrap();
                ingest.commit().unwrap();
                family.put("put", number.to_be_bytes()).unwrap();
            }
            is_over.store(true, Ordering::Relaxed);
        });
    });
}
