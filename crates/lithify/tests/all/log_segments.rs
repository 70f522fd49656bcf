//! When a segment of the log ends, and who does the work for that.

use crate::support::{PATH, Parts, small_options};
use lithify::fs::FileCallKind;
use lithify::stats::{Cause, TrafficFigure};
use lithify::{CfOptions, ColumnFamily, Db, Options};

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
    family.put(b"key", &vec![7; 2 * SEGMENT_BYTES]).unwrap();
    let before = parts.files.calls(FileCallKind::SyncData);
    family.put(b"key", b"next").unwrap();
    assert_eq!(parts.names_ending(".wal").len(), 2);
    assert!(parts.files.calls(FileCallKind::SyncData) >= before + 2, "the end and the header");
    db.close().unwrap();
}

#[test]
fn space_is_reserved_for_new_segments_and_a_full_disk_does_without() {
    let reserved = |db: &Db| {
        let figures = db.stats().figures;
        figures.traffic_of_cause(Cause::WalPreallocation, TrafficFigure::WrittenBytes)
    };
    let parts = Parts::new(3);
    let (db, family) = open(&parts);
    family.put(b"key", b"value").unwrap();
    assert_eq!(reserved(&db), SEGMENT_BYTES as u64);
    db.close().unwrap();

    let parts = Parts::new(4);
    let (db, family) = open(&parts);
    parts.files.set_capacity_bytes(64 << 10);
    family.put(b"key", b"value").unwrap();
    assert_eq!(reserved(&db), 0);
    db.close().unwrap();
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
        busy.put(&number.to_be_bytes(), &[7; 8 << 10]).unwrap();
        most_bytes = most_bytes.max(db.stats().wal_live_bytes);
    }
    // With nobody to make the next segments they grow to twice their size.
    assert!(most_bytes <= 3 * bound, "{most_bytes} bytes, {bound} are the bound");
}
