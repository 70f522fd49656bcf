//! Scans that begin where everything was deleted: queues.

use lithify::stats::Counter;
use lithify::{CfOptions, Db, Options};

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
