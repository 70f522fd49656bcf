//! When a segment of the log ends, and who does the work for that.

use crate::support::{PATH, Parts, Random, small_options};
use lithify::fs::FileCallKind;
use lithify::stats::{Cause, TrafficFigure};
use lithify::{CfOptions, ColumnFamily, Db, Durability, Options};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

const SEGMENT_BYTES: usize = 256 << 10;

fn open(parts: &Parts) -> (Db, ColumnFamily) {
    let options = Options {
        memtable_bytes: SEGMENT_BYTES,
        wal_bytes_max: 2 * SEGMENT_BYTES as u64,
        ..small_options()
    };
    let db = Db::open_in(PATH, options, parts.world()).unwrap();
    let family = db.column_family("rows", CfOptions::default()).unwrap();
    (db, family)
}

#[test]
fn a_full_segment_ends_when_the_background_has_synced_it_and_made_the_next() {
    let parts = Parts::new(1);
    let (db, family) = open(&parts);
    // Many versions of one key: the memtable holds them all.
    let value = vec![7; 16 << 10];
    family.put(b"key", &value).unwrap();
    let syncs = parts.files.calls(FileCallKind::SyncData);
    for _ in 0..SEGMENT_BYTES / value.len() {
        family.put(b"key", &value).unwrap();
    }
    assert_eq!(parts.names_ending(".wal").len(), 1, "nobody has made the next");
    assert_eq!(parts.files.calls(FileCallKind::SyncData), syncs, "no writer syncs");
    assert!(parts.bytes_ending(".wal") > SEGMENT_BYTES as u64);
    // Whoever waits does the background work.
    db.flush().unwrap();
    assert_eq!(parts.names_ending(".wal").len(), 2);
    family.put(b"key", b"last").unwrap();
    db.close().unwrap();
    let (db, family) = open(&parts);
    assert_eq!(family.get(b"key").unwrap().as_deref(), Some(&b"last"[..]));
    db.close().unwrap();
}

#[test]
fn a_segment_of_twice_its_size_ends_in_any_case() {
    let parts = Parts::new(2);
    let (db, family) = open(&parts);
    family.put(b"key", vec![7; 2 * SEGMENT_BYTES]).unwrap();
    let before = parts.files.calls(FileCallKind::SyncData);
    family.put(b"key", b"next").unwrap();
    assert_eq!(parts.names_ending(".wal").len(), 2);
    assert!(parts.files.calls(FileCallKind::SyncData) >= before + 2, "the end and the header");
    db.close().unwrap();
}

fn reserved(db: &Db) -> u64 {
    let figures = db.stats().figures;
    figures.traffic_of_cause(Cause::WalPreallocation, TrafficFigure::WrittenBytes)
}

#[test]
fn space_is_reserved_for_new_segments_and_a_full_disk_does_without() {
    let parts = Parts::new(3);
    let (db, family) = open(&parts);
    family.put(b"key", b"value").unwrap();
    assert_eq!(reserved(&db), 16 << 10);
    db.close().unwrap();

    let parts = Parts::new(4);
    let (db, family) = open(&parts);
    parts.files.set_capacity_bytes(8 << 10);
    family.put(b"key", b"value").unwrap();
    assert_eq!(reserved(&db), 0);
    db.close().unwrap();
}

#[test]
fn space_is_reserved_in_proportion_to_what_is_logged() {
    let parts = Parts::new(6);
    let options = Options { wal_bytes_max: 64 << 20, ..Options::default() };
    let options = Options { background_threads: 0, ..options };
    let db = Db::open_in(PATH, options, parts.world()).unwrap();
    let family = db.column_family("rows", CfOptions::default()).unwrap();
    let mut calls = (0, 0);
    for number in 0..8_000_u32 {
        family.put(number.to_be_bytes(), [7; 1000]).unwrap();
        let (logged, reserved) = (db.stats().wal_live_bytes, reserved(&db));
        // Each time a record lies across the end of what was reserved.
        assert!(reserved + 40 * 1_100 > logged, "{reserved} of {logged}");
        assert!(reserved <= logged * 5 / 4 + (16 << 10), "{reserved} of {logged}");
        calls = if reserved == calls.1 { calls } else { (calls.0 + 1, reserved) };
    }
    assert!((10..40).contains(&calls.0), "reserved {} times", calls.0);
    db.close().unwrap();
}

/// How often the log grew while rows of so many bytes were put, and what was written for each of them.
fn growth(durability: Durability, row_bytes: usize) -> (usize, u64) {
    let parts = Parts::new(7);
    let options = Options { durability, background_threads: 0, ..Options::default() };
    let db = Db::open_in(PATH, options, parts.world()).unwrap();
    let family = db.column_family("rows", CfOptions::default()).unwrap();
    let (mut lengths, rows) = (Vec::new(), 500);
    for _ in 0..rows {
        family.put(b"key", vec![7; row_bytes]).unwrap();
        lengths.push(parts.bytes_ending(".wal"));
    }
    lengths.dedup();
    let figures = db.stats().figures;
    let written = figures.traffic_of_cause(Cause::Wal, TrafficFigure::WrittenBytes);
    db.close().unwrap();
    (lengths.len(), written / rows)
}

#[test]
fn small_synced_commits_find_a_file_that_is_long_enough() {
    // 192 bytes of a record, and zeros before it.
    let (grown, written) = growth(Durability::Sync, 138);
    assert!(grown < 16 && (350..=500).contains(&written), "{grown} {written}");
    let (grown, written) = growth(Durability::Buffered, 138);
    assert!(grown == 500 && written == 192, "{grown} {written}");
    // Zeros ahead of large ones would cost as much as they do.
    let (grown, written) = growth(Durability::Sync, 50_000);
    assert!(grown == 500 && written < 50_100, "{grown} {written}");
}

/// Blocks and bytes of the files of a directory.
fn sizes(directory: &Path) -> (u64, u64) {
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().metadata());
    files.fold((0, 0), |(blocks, bytes), file| {
        let file = file.unwrap();
        (blocks + file.blocks() * 512, bytes + file.len())
    })
}

/// Waits until the directory takes at most so much.
fn wait_for_sizes(directory: &Path, most: u64) {
    for _ in 0..600 {
        let (blocks, bytes) = sizes(directory);
        if blocks <= most && bytes <= most {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("{:?} blocks and bytes, {most} expected", sizes(directory));
}

#[test]
fn a_small_database_is_small() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db");
    let open = || {
        let db = Db::open(&path, Options::default()).unwrap();
        let family = db.column_family("rows", CfOptions::default()).unwrap();
        (db, family)
    };
    let (db, family) = open();
    family.put(b"key", b"value").unwrap();
    let (blocks, bytes) = sizes(&path);
    assert!(blocks <= 64 << 10 && bytes <= 64 << 10, "{blocks} {bytes}");
    db.close().unwrap();

    let (db, family) = open();
    let mut random = Random(1);
    for number in 0..8_333_u32 {
        family.put(format!("{number:020}").as_bytes(), random.bytes(100)).unwrap();
        if number % 100 == 0 {
            assert!(sizes(&path).0 <= 2_000_000, "{:?} at {number}", sizes(&path));
        }
    }
    // At rest, once with the rows in the log and once with them in a table.
    wait_for_sizes(&path, 1_450_000);
    db.flush().unwrap();
    wait_for_sizes(&path, 1_250_000);
    // What comes then is logged as before.
    family.put(b"last", b"value").unwrap();
    db.close().unwrap();
    let (db, family) = open();
    assert_eq!(family.get(b"last").unwrap().as_deref(), Some(&b"value"[..]));
    assert_eq!(family.iter().count(), 8_335);
    db.flush().unwrap();
    db.close().unwrap();
    assert!(sizes(&path).0 <= 1_250_000, "{:?}", sizes(&path));
    let logs = std::fs::read_dir(&path)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|end| end == "wal"));
    assert_eq!(logs.count(), 0, "all of it is in tables");
    assert_eq!(open().1.iter().count(), 8_335);
}

/// A hundred families that wrote once long ago do not keep the log for ever, nor one after the other.
#[test]
fn the_log_stays_within_its_bound_with_many_families() {
    let parts = Parts::new(5);
    let (db, busy) = open(&parts);
    for number in 0..100 {
        let name = format!("quiet{number}");
        let quiet = db.column_family(&name, CfOptions::default()).unwrap();
        quiet.put(b"key", b"value").unwrap();
    }
    let bound = db.options().wal_bytes_max;
    let mut most_bytes = 0;
    for number in 0..400_u32 {
        busy.put(number.to_be_bytes(), [7; 8 << 10]).unwrap();
        most_bytes = most_bytes.max(db.stats().wal_live_bytes);
    }
    // With nobody to make the next segments they grow to twice their size.
    assert!(most_bytes <= 3 * bound, "{most_bytes} bytes, {bound} are the bound");
}

/// A family with few writes is flushed long before the log is at its bound; forty of them are not.
#[test]
fn a_few_writes_keep_little_log() {
    let most_log = |families: usize| {
        let parts = Parts::new(8);
        let memtable_bytes = 1 << 20;
        let options = Options { memtable_bytes, wal_bytes_max: 32 << 20, ..small_options() };
        let db = Db::open_in(PATH, options, parts.world()).unwrap();
        let family = |name: &str| db.column_family(name, CfOptions::default()).unwrap();
        let busy = family("busy");
        let quiet: Vec<_> = (0..families).map(|number| family(&format!("q{number}"))).collect();
        let mut most_bytes = 0;
        for number in 0..3_000_u32 {
            if number % 100 == 0 {
                quiet.iter().for_each(|family| family.put(b"key", b"value").unwrap());
            }
            busy.put(number.to_be_bytes(), [7; 8 << 10]).unwrap();
            most_bytes = most_bytes.max(db.stats().wal_live_bytes);
        }
        db.close().unwrap();
        most_bytes >> 20
    };
    let (few, many) = (most_log(1), most_log(40));
    assert!(few <= 8, "{few} MiB");
    assert!(many >= 20, "{many} MiB: flushes of forty families are dear");
}

/// A command that puts one row and ends: each leaves a segment, but not for ever.
#[test]
fn openings_that_write_little_do_not_gather_segments() {
    let parts = Parts::new(9);
    let open = || Db::open_in(PATH, small_options(), parts.world()).unwrap();
    for number in 0..100_u32 {
        let db = open();
        if db.recovery().len() > 8 {
            db.wait_for_compaction().unwrap();
            // The new one, and two to be written over.
            assert!(parts.names_ending(".wal").len() <= 3);
        }
        db.put(number.to_be_bytes(), b"small").unwrap();
        db.close().unwrap();
        let segments = parts.names_ending(".wal").len();
        assert!(segments <= 9, "{segments} segments after {number} openings");
    }
    let db = open();
    assert_eq!(db.keys().count(), 100);
    // A flush for every ninth opening.
    assert!(parts.names_ending(".sst").len() <= 100 / 8);
    db.close().unwrap();
}

/// The same on a disk, with the threads that a program has.
#[test]
fn openings_with_threads_do_not_gather_segments() {
    let directory = tempfile::tempdir().unwrap();
    for number in 0..20_u32 {
        let db = Db::open(directory.path(), Options::default()).unwrap();
        db.put(number.to_be_bytes(), b"small").unwrap();
        db.close().unwrap();
    }
    let entries = std::fs::read_dir(directory.path()).unwrap().flatten();
    let is_segment = |path: &Path| path.extension().is_some_and(|kind| kind == "wal");
    assert!(entries.filter(|entry| is_segment(&entry.path())).count() <= 9);
    let db = Db::open(directory.path(), Options::default()).unwrap();
    assert_eq!(db.keys().count(), 20);
}
