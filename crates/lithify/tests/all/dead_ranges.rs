//! Scans that begin where everything was deleted: queues.

use lithify::stats::Counter;
use lithify::{CfOptions, ColumnFamily, Db, Options};

#[test]
fn a_queue_does_not_pass_what_was_taken_from_it_again() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::open(directory.path(), Options::default()).unwrap();
    let jobs = db.column_family("jobs", CfOptions::default()).unwrap();
    for number in 0..10_000u32 {
        jobs.put(number.to_be_bytes(), "job").unwrap();
    }
    for number in 0..10_000u32 {
        let mut transaction = db.transaction();
        let (key, _) = transaction.lock_first(&jobs, ..).unwrap().unwrap();
        assert_eq!(key, number.to_be_bytes());
        transaction.delete(&jobs, key).unwrap();
        transaction.commit().unwrap();
    }
    let passed = db.stats().figures.counter(Counter::SkippedEntries);
    assert!(passed < 10_000 * 100, "{passed} entries passed for 10,000 jobs");
}

/// A database in which the first 1,000 of 2,000 rows are deleted, and two scans have seen it.
fn with_dead_head(directory: &std::path::Path) -> (Db, ColumnFamily) {
    let db = Db::open(directory, Options::default()).unwrap();
    let rows = db.column_family("rows", CfOptions::default()).unwrap();
    for number in 0..2_000_u32 {
        rows.put(number.to_be_bytes(), "row").unwrap();
    }
    for number in 0..1_000_u32 {
        rows.delete(number.to_be_bytes()).unwrap();
    }
    for _ in 0..3 {
        assert_eq!(first(&rows), 1_000);
    }
    let before = passed(&db);
    assert_eq!(first(&rows), 1_000);
    assert_eq!(passed(&db), before, "the fourth scan passes nothing");
    (db, rows)
}

fn passed(db: &Db) -> u64 {
    db.stats().figures.counter(Counter::SkippedEntries)
}

fn number(key: &[u8]) -> u32 {
    u32::from_be_bytes(key.try_into().unwrap())
}

fn first(rows: &ColumnFamily) -> u32 {
    number(&rows.keys().next().unwrap().unwrap())
}

#[test]
fn a_row_that_is_put_into_a_dead_range_is_seen_from_both_sides() {
    let directory = tempfile::tempdir().unwrap();
    let (db, rows) = with_dead_head(directory.path());
    for number in [500_u32, 3, 999, 0] {
        rows.put(number.to_be_bytes(), "again").unwrap();
    }
    let keys: Vec<u32> = rows.keys().map(|key| number(&key.unwrap())).take(5).collect();
    assert_eq!(keys, [0, 3, 500, 999, 1_000]);
    let keys: Vec<u32> = rows
        .range(..1_001_u32.to_be_bytes())
        .keys()
        .rev()
        .map(|key| number(&key.unwrap()))
        .collect();
    assert_eq!(keys, [1_000, 999, 500, 3, 0]);
    let mut cursor = rows.cursor(..).unwrap();
    assert!(cursor.seek(400_u32.to_be_bytes()).unwrap());
    assert_eq!(number(cursor.key()), 500);
    assert!(cursor.seek_for_prev(499_u32.to_be_bytes()).unwrap());
    assert_eq!(number(cursor.key()), 3);
    drop((db, cursor));
}

#[test]
fn an_older_snapshot_still_sees_what_was_there() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::open(directory.path(), Options::default()).unwrap();
    let rows = db.column_family("rows", CfOptions::default()).unwrap();
    for number in 0..500_u32 {
        rows.put(number.to_be_bytes(), "row").unwrap();
    }
    let snapshot = db.snapshot();
    for number in 0..400_u32 {
        rows.delete(number.to_be_bytes()).unwrap();
    }
    for _ in 0..4 {
        assert_eq!(first(&rows), 400);
    }
    let mut cursor = rows.cursor_at(.., &snapshot).unwrap();
    assert_eq!(cursor.iter().count(), 500);
    assert!(cursor.seek(7_u32.to_be_bytes()).unwrap());
    assert_eq!(number(cursor.key()), 7);
}

#[test]
fn rows_of_a_transaction_and_of_an_ingest_are_seen_in_a_dead_range() {
    let directory = tempfile::tempdir().unwrap();
    let (db, rows) = with_dead_head(directory.path());
    let mut transaction = db.transaction();
    transaction.put(&rows, 250_u32.to_be_bytes(), "own").unwrap();
    let mut cursor = transaction.cursor(&rows, ..).unwrap();
    assert!(cursor.next().unwrap());
    assert_eq!(number(cursor.key()), 250);
    drop((cursor, transaction));
    assert_eq!(first(&rows), 1_000);
    let mut ingest = rows.ingest().unwrap();
    ingest.extend([(700_u32.to_be_bytes(), "ingested"), (800_u32.to_be_bytes(), "too")]).unwrap();
    ingest.commit().unwrap();
    assert_eq!(first(&rows), 700);
}

#[test]
fn a_transaction_notes_no_range_that_only_it_has_emptied() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::open(directory.path(), Options::default()).unwrap();
    let rows = db.column_family("rows", CfOptions::default()).unwrap();
    for number in 0..500_u32 {
        rows.put(number.to_be_bytes(), "row").unwrap();
    }
    let mut transaction = db.transaction();
    for number in 0..400_u32 {
        transaction.delete(&rows, number.to_be_bytes()).unwrap();
    }
    for _ in 0..4 {
        let mut cursor = transaction.cursor(&rows, ..).unwrap();
        assert!(cursor.next().unwrap());
        assert_eq!(number(cursor.key()), 400);
    }
    assert_eq!(first(&rows), 0);
    transaction.commit().unwrap();
    assert_eq!(first(&rows), 400);
}

#[test]
fn a_stack_does_not_pass_what_was_taken_from_it_again() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::open(directory.path(), Options::default()).unwrap();
    let stack = db.column_family("stack", CfOptions::default()).unwrap();
    for number in 0..5_000_u32 {
        stack.put(number.to_be_bytes(), "row").unwrap();
    }
    for expected in (0..5_000_u32).rev() {
        let key = stack.keys().next_back().unwrap().unwrap();
        assert_eq!(number(&key), expected);
        stack.delete(key).unwrap();
    }
    assert!(passed(&db) < 5_000 * 100, "{} entries passed for 5,000 rows", passed(&db));
}

#[test]
fn the_page_names_the_keys_between_which_a_scan_passed_most() {
    let directory = tempfile::tempdir().unwrap();
    let (db, rows) = with_dead_head(directory.path());
    let stats = db.stats();
    let pass = stats.families[0].longest_pass.clone().unwrap();
    // A put and a delete of each.
    assert_eq!((pass.entries, number(&pass.to)), (2_000, 1_000));
    assert!(*pass.from <= 0_u32.to_be_bytes()[..]);
    let line = "A cursor of rows passed 2,000 dead entries at once, from \"";
    assert!(stats.to_string().contains(line), "{stats}");
    assert!(stats.to_json().contains("\"longest_pass\":{\"entries\":2000"));
    assert_eq!(rows.stats().longest_pass, Some(pass));
    let other = db.column_family("other", CfOptions::default()).unwrap();
    other.put("a", "1").unwrap();
    assert_eq!((first_of(&other), other.stats().longest_pass), (1, None));
}

fn first_of(rows: &ColumnFamily) -> usize {
    rows.keys().count()
}
