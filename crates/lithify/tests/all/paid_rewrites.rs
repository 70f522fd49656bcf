//! Scans that pass dead entries pay for what lets these go: flushes and compactions, and no more of
//! them than are paid for.

use crate::support::{PATH, Parts};
use lithify::stats::{Counter, JobEnd, JobKind};
use lithify::{CfOptions, ColumnFamily, Db, Options};

const TIME_TO_LIVE_S: u64 = 3_600;

/// So many dead entries a scan has to pass in these tests, for the sake of one row.
const DEAD: u64 = 4_000;

/// With memtables that do not become full here.
fn open(parts: &Parts, time_to_live_s: u64) -> (Db, ColumnFamily) {
    let options = Options { background_threads: 0, ..Options::default() };
    let db = Db::open_in(PATH, options, parts.world()).unwrap();
    let family_options = CfOptions { time_to_live_s, ..CfOptions::default() };
    let rows = db.column_family("rows", family_options).unwrap();
    (db, rows)
}

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

fn put_all(rows: &ColumnFamily, numbers: impl Iterator<Item = u64>) {
    numbers.for_each(|number| rows.put(key(number), "a row").unwrap());
}

/// Scans all rows; how many there were, and how many entries were passed: the dead ones, and where rows
/// expire those of the rows too, of which the cursor has a copy.
fn scan(db: &Db, rows: &ColumnFamily) -> (usize, u64) {
    let passed = || db.stats().figures.counter(Counter::SkippedEntries);
    let before = passed();
    let found = rows.keys().count();
    (found, passed() - before)
}

/// The jobs that scans have paid for.
fn paid_jobs(db: &Db) -> Vec<JobEnd> {
    let mut jobs = db.stats().jobs;
    jobs.retain(|end| end.job.reason == "dead-entries");
    jobs
}

/// Scans until `passed` is at most this; the number of scans.
fn scan_until(db: &Db, rows: &ColumnFamily, passed_max: u64) -> u64 {
    for count in 1..500 {
        if scan(db, rows).1 <= passed_max {
            return count;
        }
        db.wait_for_compaction().unwrap();
    }
    panic!("scans pass {} entries each: {}", scan(db, rows).1, db.stats());
}

#[test]
fn an_expired_head_that_is_scanned_again_and_again_goes() {
    let parts = Parts::new(1);
    let (db, rows) = open(&parts, TIME_TO_LIVE_S);
    put_all(&rows, 0..DEAD);
    parts.environment.advance_us((TIME_TO_LIVE_S - 10) * 1_000_000);
    // Fresh rows among them, so that their table neither goes as a whole nor seems half expired.
    put_all(&rows, (0..DEAD).step_by(100));
    rows.compact_range(..).unwrap();
    parts.environment.advance_us(20 * 1_000_000);
    assert_eq!(scan(&db, &rows), (40, DEAD - 40));
    let scans = scan_until(&db, &rows, 0);
    assert!(scans > 10, "{scans} scans have not paid for it");
    let jobs = paid_jobs(&db);
    assert_eq!(jobs.len(), 1, "{jobs:?}");
    assert_eq!((jobs[0].job.kind, jobs[0].entries_dropped), (JobKind::Compaction, DEAD - 40));
    assert_eq!(db.stats().figures.counter(Counter::CompactionsDeadEntries), 1);
}

#[test]
fn tombstones_between_sparse_rows_sink_to_what_they_hide() {
    let parts = Parts::new(2);
    let (db, rows) = open(&parts, 0);
    let (total, period) = (5 * DEAD, 50);
    put_all(&rows, 0..total);
    rows.compact_range(..).unwrap();
    // More ranges without rows than are kept, and too few tombstones for a table full of them.
    for number in (0..total).filter(|number| !number.is_multiple_of(period)) {
        rows.delete(key(number)).unwrap();
    }
    put_all(&rows, total..3 * total);
    rows.flush().unwrap();
    let (found, passed) = scan(&db, &rows);
    assert_eq!(found as u64, total / period + 2 * total);
    assert!(passed > total, "{passed}");
    let scans = scan_until(&db, &rows, 0);
    assert!(scans > 10, "{scans} scans have not paid for it");
    let jobs = paid_jobs(&db);
    assert_eq!(jobs.len(), 1, "{jobs:?}");
    assert_eq!(jobs[0].job.source_level, Some(0));
    assert_eq!(jobs[0].entries_dropped, 2 * (total - total / period));
}

#[test]
fn a_snapshot_that_keeps_what_is_dead_makes_no_endless_work() {
    let parts = Parts::new(3);
    let (db, rows) = open(&parts, TIME_TO_LIVE_S);
    put_all(&rows, 0..DEAD);
    let snapshot = db.snapshot();
    parts.environment.advance_us((TIME_TO_LIVE_S + 10) * 1_000_000);
    put_all(&rows, (0..DEAD).step_by(100));
    for _ in 0..400 {
        assert_eq!(scan(&db, &rows).0, 40);
        db.wait_for_compaction().unwrap();
    }
    let jobs = paid_jobs(&db);
    assert!((1..=8).contains(&jobs.len()), "{} jobs: {jobs:?}", jobs.len());
    let read: u64 = jobs.iter().map(|end| end.entries_in).sum();
    let passed = db.stats().figures.counter(Counter::SkippedEntries);
    assert!(read * 8 <= passed, "{read} entries read for {passed} passed");
    assert_eq!(rows.range_at(.., &snapshot).count() as u64, DEAD);
    // Once it is gone, the scans that have paid meanwhile are served.
    drop(snapshot);
    scan_until(&db, &rows, 0);
}

#[test]
fn a_memtable_full_of_what_is_dead_is_flushed() {
    let parts = Parts::new(4);
    let (db, rows) = open(&parts, TIME_TO_LIVE_S);
    put_all(&rows, 0..DEAD);
    parts.environment.advance_us((TIME_TO_LIVE_S + 10) * 1_000_000);
    put_all(&rows, DEAD..DEAD + 10);
    assert_eq!(scan(&db, &rows), (10, DEAD));
    scan_until(&db, &rows, 0);
    let jobs = paid_jobs(&db);
    assert_eq!(jobs.first().map(|end| end.job.kind), Some(JobKind::Flush), "{jobs:?}");
    assert_eq!(rows.stats().tables, 1);
}

#[test]
fn few_dead_entries_and_rows_that_live_start_nothing() {
    let parts = Parts::new(5);
    let (db, rows) = open(&parts, 0);
    put_all(&rows, 0..DEAD);
    // Ten rows in one move, each with its tombstone: as cheap as a row.
    for number in (0..DEAD).filter(|number| number % 20 < 10) {
        rows.delete(key(number)).unwrap();
    }
    for _ in 0..100 {
        assert_eq!(scan(&db, &rows).0 as u64, DEAD / 2);
    }
    db.wait_for_compaction().unwrap();
    assert_eq!(paid_jobs(&db), []);
    assert_eq!(rows.stats().tables, 0);
}
