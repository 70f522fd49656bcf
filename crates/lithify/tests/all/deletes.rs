//! Deletes of the three kinds against snapshots, flushes, compactions, table bounds and reopening,
//! and what the release of a snapshot gives back.

use crate::support::{Model, PATH, Parts, Random, rows, small_options};
use lithify::stats::{Counter, LevelShape};
use lithify::{CfOptions, ColumnFamily, Db};

fn open(parts: &Parts) -> (Db, ColumnFamily) {
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    let options = CfOptions {
        block_size_bytes: 1024,
        table_bytes: 64 << 10,
        base_level_bytes_max: 64 << 10,
        ..CfOptions::default()
    };
    let family = db.column_family("rows", options).unwrap();
    (db, family)
}

fn key(number: u32) -> Vec<u8> {
    format!("key{number:05}").into_bytes()
}

fn tables(db: &Db) -> u64 {
    db.stats().levels.iter().map(|level| level.files).sum()
}

#[test]
fn a_single_delete_removes_its_put_at_the_first_merge() {
    let parts = Parts::new(1);
    let (db, family) = open(&parts);
    for round in 0..5u8 {
        family.put(b"k", [round; 50]).unwrap();
        if round % 2 == 0 {
            family.flush().unwrap();
        }
        assert_eq!(family.get(b"k").unwrap().as_deref(), Some(&[round; 50][..]));
        family.single_delete(b"k").unwrap();
        assert_eq!(family.get(b"k").unwrap(), None);
        if round % 2 == 1 {
            family.flush().unwrap();
        }
    }
    family.compact_range(..).unwrap();
    db.wait_for_compaction().unwrap();
    assert_eq!(family.get(b"k").unwrap(), None);
    assert_eq!(tables(&db), 0, "puts and single deletes are gone together");
    assert_eq!(db.stats().figures.counter(Counter::SingleDeleteMisuses), 0);
}

#[test]
fn a_single_delete_of_two_puts_is_counted_as_misuse() {
    let parts = Parts::new(2);
    let (db, family) = open(&parts);
    for number in 0..10 {
        family.put(key(number), b"first").unwrap();
        family.put(key(number), b"second").unwrap();
        family.single_delete(key(number)).unwrap();
    }
    family.put(key(50), b"once").unwrap();
    family.single_delete(key(50)).unwrap();
    family.single_delete(key(51)).unwrap();
    family.flush().unwrap();
    family.compact_range(..).unwrap();
    assert_eq!(db.stats().figures.counter(Counter::SingleDeleteMisuses), 10);
    assert_eq!(family.get(key(50)).unwrap(), None);
}

#[test]
fn a_single_delete_keeps_what_a_snapshot_sees() {
    let parts = Parts::new(3);
    let (db, family) = open(&parts);
    family.put(b"k", b"1").unwrap();
    let first = db.snapshot();
    family.single_delete(b"k").unwrap();
    let second = db.snapshot();
    family.put(b"k", b"2").unwrap();
    family.compact_range(..).unwrap();
    assert_eq!(family.get_at(b"k", &first).unwrap().as_deref(), Some(&b"1"[..]));
    assert_eq!(family.get_at(b"k", &second).unwrap(), None);
    assert_eq!(family.get(b"k").unwrap().as_deref(), Some(&b"2"[..]));
    drop((first, second));
    family.single_delete(b"k").unwrap();
    family.compact_range(..).unwrap();
    assert_eq!(family.get(b"k").unwrap(), None, "the older put must not show again");
    assert_eq!(db.stats().figures.counter(Counter::SingleDeleteMisuses), 0);
}

/// Case 91 of the simulator's check `metamorphic`: nothing lies below the key, so it could do
/// without its sequence number; but something lies below other keys of the range, so the range
/// delete stays, and is newer than a row without a number.
#[test]
fn a_row_put_after_a_range_delete_outlives_the_compaction_that_keeps_the_delete() {
    let parts = Parts::new(91);
    let (db, family) = open(&parts);
    let random = &mut Random(91);
    for number in 500..1500 {
        family.put(key(number), random.bytes(400)).unwrap();
    }
    family.compact_range(..).unwrap();
    let levels: Vec<u64> = db.stats().levels.iter().map(|level| level.files).collect();
    assert!(levels[6] > 0 && db.stats().base_level < 6, "{levels:?}");
    // Something for the range delete to be merged with in the level above.
    for _ in 0..12 {
        family.put(key(0), b"old").unwrap();
        family.put(key(599), b"old").unwrap();
        family.flush().unwrap();
    }
    db.wait_for_compaction().unwrap();
    assert_eq!(db.stats().levels[5].files, 1);
    family.delete_range(key(0), key(600)).unwrap();
    family.put(key(7), b"new").unwrap();
    family.compact_range(..).unwrap();
    assert_eq!(family.get(key(7)).unwrap().as_deref(), Some(&b"new"[..]));
    assert_eq!(rows(&family).len(), 1 + 900);
}

/// Range deletes of random bounds over tables of a few rows, with snapshots held over them.
#[test]
fn range_deletes_agree_with_a_model_through_everything() {
    for seed in 0..6 {
        let parts = Parts::new(seed);
        let mut random = Random(seed);
        let (mut db, mut family) = open(&parts);
        let mut model = Model::new();
        for round in 0..4 {
            let mut held = Vec::new();
            for step in 0..12 {
                for _ in 0..60 {
                    let (key, value) = (key(random.below(900) as u32), random.bytes(300));
                    family.put(&key, &value).unwrap();
                    model.insert(key, value);
                }
                let start = random.below(900) as u32;
                let (start, end) = (key(start), key(start + random.below(200) as u32));
                family.delete_range(&start, &end).unwrap();
                model.retain(|key, _| *key < start || *key >= end);
                if step % 3 == 0 {
                    held.push((db.snapshot(), model.clone()));
                }
                match random.below(4) {
                    0 => family.flush().unwrap(),
                    1 => db.wait_for_compaction().unwrap(),
                    2 => family.compact_range(&start..&end).unwrap(),
                    _ => {}
                }
                if held.len() > 2 {
                    held.swap_remove(random.below(held.len() as u64) as usize);
                }
                assert!(rows(&family) == model, "seed {seed}, round {round}, step {step}");
                for (snapshot, model) in &held {
                    check_at(&family, snapshot, model);
                }
            }
            drop(held);
            family.compact_range(..).unwrap();
            assert!(rows(&family) == model, "seed {seed}, round {round}: after a compaction");
            db.close().unwrap();
            (db, family) = open(&parts);
            assert!(rows(&family) == model, "seed {seed}, round {round}: after reopening");
        }
    }
}

fn check_at(family: &ColumnFamily, snapshot: &lithify::Snapshot, model: &Model) {
    let mut cursor = family.cursor_at(.., snapshot).unwrap();
    let mut found = Model::new();
    while cursor.prev().unwrap() {
        found.insert(cursor.key().to_vec(), cursor.value().to_vec());
    }
    assert!(found == *model, "a snapshot has changed");
    for number in (0..900).step_by(37) {
        let key = key(number);
        let value = family.get_at(&key, snapshot).unwrap();
        assert_eq!(value.as_deref(), model.get(&key).map(Vec::as_slice));
    }
}

/// A range delete that ends on the first key of a table, or begins on its last, covers exactly
/// what it says, in whichever table its parts end up.
#[test]
fn range_deletes_end_exactly_at_table_bounds() {
    let parts = Parts::new(4);
    let (db, family) = open(&parts);
    let mut random = Random(4);
    for number in 0..1500 {
        family.put(key(number), random.bytes(300)).unwrap();
    }
    family.compact_range(..).unwrap();
    db.wait_for_compaction().unwrap();
    let tables = parts.names_ending(".sst").len();
    assert!(tables >= 4, "{tables} tables");
    let before = rows(&family);
    let snapshot = db.snapshot();
    for number in (0..1500).step_by(50) {
        family.delete_range(key(number), key(number + 10)).unwrap();
    }
    let is_left = |number: u32| number % 50 >= 10;
    for stage in 0..4 {
        for number in 0..1500 {
            let found = family.contains(key(number)).unwrap();
            assert_eq!(found, is_left(number), "stage {stage}: row {number}");
        }
        assert_eq!(rows(&family).len(), (0..1500).filter(|number| is_left(*number)).count());
        check_at(&family, &snapshot, &before);
        match stage {
            0 => family.flush().unwrap(),
            1 => family.compact_range(key(300)..key(777)).unwrap(),
            _ => family.compact_range(..).unwrap(),
        }
    }
}

#[test]
fn rows_written_after_a_range_delete_stay() {
    let parts = Parts::new(5);
    let (db, family) = open(&parts);
    family.put(b"a", b"old").unwrap();
    family.put(b"b", b"old").unwrap();
    family.flush().unwrap();
    let mut batch = db.batch();
    batch.put(&family, b"a", b"before").delete_range(&family, b"a", b"z");
    batch.put(&family, b"b", b"after");
    batch.commit().unwrap();
    for stage in 0..3 {
        assert_eq!(family.get(b"a").unwrap(), None, "stage {stage}");
        assert_eq!(family.get(b"b").unwrap().as_deref(), Some(&b"after"[..]), "stage {stage}");
        assert_eq!(rows(&family).len(), 1);
        match stage {
            0 => family.flush().unwrap(),
            _ => family.compact_range(..).unwrap(),
        }
    }
}

#[test]
fn releasing_a_snapshot_gives_its_space_back() {
    let parts = Parts::new(6);
    let (db, family) = open(&parts);
    let mut random = Random(6);
    let mut write_all = || {
        for number in 0..1000 {
            family.put(key(number), random.bytes(300)).unwrap();
        }
    };
    write_all();
    family.compact_range(..).unwrap();
    let once = db.stats().table_bytes();
    let snapshot = db.snapshot();
    let seen = rows(&family);
    write_all();
    family.compact_range(..).unwrap();
    db.wait_for_compaction().unwrap();
    let twice = db.stats().table_bytes();
    assert!(twice > once * 3 / 2, "{twice} bytes hold both versions, {once} held one");
    check_at(&family, &snapshot, &seen);
    drop(snapshot);
    db.wait_for_compaction().unwrap();
    let after = db.stats().table_bytes();
    assert!(after < once * 11 / 10, "{after} bytes for what took {once} before");
    let on_disk = parts.bytes_ending(".sst");
    assert!(on_disk < once * 11 / 10, "{on_disk} bytes on disk");
    assert_eq!(rows(&family).len(), 1000);
}

/// Entries that a scan of all rows passes over for nothing.
fn skipped_by_a_scan(db: &Db, family: &ColumnFamily) -> u64 {
    let before = db.stats().figures.counter(Counter::SkippedEntries);
    rows(family);
    db.stats().figures.counter(Counter::SkippedEntries) - before
}

#[test]
fn a_range_full_of_deletes_becomes_cheap_to_scan_without_more_writes() {
    let parts = Parts::new(11);
    let (db, family) = open(&parts);
    for number in 0..3000 {
        family.put(key(number), [7; 100]).unwrap();
    }
    family.compact_range(..).unwrap();
    let snapshot = db.snapshot();
    for number in 500..2500 {
        family.delete(key(number)).unwrap();
    }
    family.flush().unwrap();
    db.wait_for_compaction().unwrap();
    let count = |db: &Db| db.stats().figures.counter(Counter::CompactionsTombstones);
    // The snapshot sees the rows: pushing their deletes down would free nothing.
    assert_eq!(count(&db), 0);
    assert!(skipped_by_a_scan(&db, &family) >= 2000);
    drop(snapshot);
    db.wait_for_compaction().unwrap();
    assert!(skipped_by_a_scan(&db, &family) < 100);
    assert_eq!(rows(&family).len(), 1000);
    let done = count(&db);
    assert!(done > 0);
    db.wait_for_compaction().unwrap();
    assert_eq!(count(&db), done, "it comes to an end");
}

#[test]
fn what_snapshots_hold_back_is_shown_and_reclaimed_once() {
    let parts = Parts::new(12);
    let (db, family) = open(&parts);
    let load = |value: u8| {
        (0..2000).for_each(|number| family.put(key(number), [value; 60]).unwrap());
    };
    load(1);
    let snapshot = db.snapshot();
    load(2);
    family.compact_range(..).unwrap();
    db.wait_for_compaction().unwrap();
    let shown = |db: &Db| {
        let levels = db.stats().levels;
        let sum = |of: fn(&LevelShape) -> u64| levels.iter().map(of).sum::<u64>();
        (sum(|level| level.obsolete_files), sum(|level| level.reclaim_debt_files))
    };
    let (held, reclaimable) = shown(&db);
    assert!(held > 0 && reclaimable == 0, "{held} {reclaimable}");
    let before = parts.bytes_ending(".sst");
    drop(snapshot);
    // Nobody drives the steps yet.
    assert_eq!(shown(&db), (held, held));
    db.wait_for_compaction().unwrap();
    assert_eq!(shown(&db), (0, 0));
    let count = |db: &Db| db.stats().figures.counter(Counter::CompactionsSnapshotRelease);
    assert_eq!(count(&db), held);
    assert!(parts.bytes_ending(".sst") < before * 2 / 3);
    db.wait_for_compaction().unwrap();
    assert_eq!(count(&db), held, "every table is rewritten once");
}
