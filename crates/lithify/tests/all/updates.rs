//! Writes that depend on what is there, transactions that read at a snapshot, and the rows that
//! workers of a queue lock.

use crate::support::{PATH, Parts, small_options};
use lithify::{CfOptions, ColumnFamily, Db, ErrorKind, Options, Slice};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

fn setting() -> (Parts, Db, ColumnFamily) {
    let parts = Parts::new(1);
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    let family = db.column_family("rows", CfOptions::default()).unwrap();
    (parts, db, family)
}

fn number(value: Option<Slice>) -> u64 {
    value.map_or(0, |value| u64::from_be_bytes(value[..].try_into().unwrap()))
}

#[test]
fn updates_beside_each_other_and_beside_puts_are_all_counted() {
    const UPDATES: u64 = 2_000;
    let directory = tempfile::tempdir().unwrap();
    let db = Db::open(directory.path(), Options::default()).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..UPDATES {
                    db.update("count", |old| Some((number(old) + 1).to_be_bytes())).unwrap();
                }
            });
        }
        scope.spawn(|| (0..UPDATES).for_each(|_| db.put("other", "value").unwrap()));
    });
    assert_eq!(number(db.get("count").unwrap()), 4 * UPDATES);
    assert_eq!(db.stats().row_locks_held, 0);
}

#[test]
fn an_update_may_remove_and_leaves_what_it_refuses() {
    let (_parts, _db, rows) = setting();
    assert_eq!(rows.update("a", |_| None::<Slice>).unwrap(), None);
    rows.put("a", "1").unwrap();
    assert_eq!(rows.update("a", |_| None::<Slice>).unwrap(), None);
    assert_eq!(rows.get("a").unwrap(), None);
    rows.put("a", "1").unwrap();
    let refused = rows.update("a", |_| Some(vec![0; (64 << 20) + 1])).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::LimitExceeded);
    assert_eq!(rows.get("a").unwrap().unwrap(), "1");
}

#[test]
fn conditional_puts_look_at_what_is_there() {
    let (_parts, _db, rows) = setting();
    assert!(!rows.compare_and_put("a", "", "1").unwrap(), "absent is not empty");
    assert!(rows.put_if_absent("a", "1").unwrap());
    assert!(!rows.put_if_absent("a", "2").unwrap());
    assert!(!rows.compare_and_put("a", "2", "3").unwrap());
    assert!(rows.compare_and_put("a", "1", "3").unwrap());
    assert!(!rows.compare_and_delete("a", "1").unwrap());
    assert_eq!(rows.get("a").unwrap().unwrap(), "3");
    assert!(rows.compare_and_delete("a", "3").unwrap());
    assert_eq!(rows.get("a").unwrap(), None);
}

/// Range deletes and ingests take no row locks. An update that read the row before one of them reads it
/// again.
#[test]
fn no_range_write_comes_between_read_and_write_of_an_update() {
    let (_parts, db, rows) = setting();
    let ingest = |value: &str| {
        let mut ingest = rows.ingest().unwrap();
        ingest.put("m", value).unwrap();
        ingest.commit().unwrap();
    };
    let delete_in_batch = || {
        let mut batch = db.batch();
        batch.put(&rows, "other", "1").delete_range(&rows, "m", "n");
        batch.commit().unwrap();
    };
    let range_writes: [(&dyn Fn(), Option<&str>); 3] = [
        (&|| rows.delete_range("a", "z").unwrap(), None),
        (&delete_in_batch, None),
        (&|| ingest("ingested"), Some("ingested")),
    ];
    for (write, then) in range_writes {
        rows.put("m", "5").unwrap();
        let mut seen = Vec::new();
        let new = rows.update("m", |old| {
            let old = old.map(|old| String::from_utf8(old.to_vec()).unwrap());
            if seen.is_empty() {
                write();
            }
            seen.push(old.clone());
            old.map(|old| old + "+")
        });
        assert_eq!(seen, [Some("5".to_string()), then.map(str::to_string)]);
        assert_eq!(new.unwrap(), then.map(|then| then.to_string() + "+"));
    }
    // One before is none between, and one of another family neither.
    let other = db.column_family("other", CfOptions::default()).unwrap();
    rows.delete_range("a", "z").unwrap();
    let mut calls = 0;
    let change = |_: Option<Slice>| {
        calls += 1;
        other.delete_range("a", "z").unwrap();
        Some("1")
    };
    rows.update("m", change).unwrap();
    assert_eq!(calls, 1);
    assert!(rows.compare_and_put("m", "1", "2").unwrap() && !rows.put_if_absent("m", "3").unwrap());
    // It gives up where there always is one.
    let refused = rows.update("m", |_| {
        rows.delete_range("a", "z").unwrap();
        Some("1")
    });
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(rows.get("m").unwrap(), None);
    assert_eq!(db.stats().row_locks_held, 0);
}

/// A count that a range delete removes begins anew: it is never larger than the updates since.
#[test]
fn updates_beside_range_deletes_bring_nothing_back() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::open(directory.path(), Options::default()).unwrap();
    let rows = db.column_family("rows", CfOptions::default()).unwrap();
    let [begun, ended] = [(); 2].map(|()| AtomicU64::new(0));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                begun.fetch_add(1, Ordering::SeqCst);
                rows.update("count", |old| Some((number(old) + 1).to_be_bytes())).unwrap();
                ended.fetch_add(1, Ordering::SeqCst);
            }
        });
        for _ in 0..300 {
            let (target, before) = (ended.load(Ordering::SeqCst) + 20, Instant::now());
            while ended.load(Ordering::SeqCst) < target && before.elapsed().as_secs() < 5 {
                std::thread::yield_now();
            }
            let ended_before = ended.load(Ordering::SeqCst);
            rows.delete_range("a", "z").unwrap();
            let count = number(rows.get("count").unwrap());
            let since = begun.load(Ordering::SeqCst) - ended_before;
            assert!(count <= since, "{count} of {since}");
        }
        is_over.store(true, Ordering::SeqCst);
    });
    assert_eq!(db.stats().row_locks_held, 0);
}

#[test]
fn a_conditional_put_waits_for_a_transaction_and_gives_up() {
    let parts = Parts::new(1);
    let options = Options { row_lock_timeout_ms: 10, ..small_options() };
    let db = Db::open_in(PATH, options, parts.world()).unwrap();
    let rows = db.column_family("rows", CfOptions::default()).unwrap();
    let mut transaction = db.transaction();
    transaction.put(&rows, "a", "1").unwrap();
    let refused = rows.put_if_absent("a", "2").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::LockTimeout);
    transaction.commit().unwrap();
    assert!(!rows.put_if_absent("a", "2").unwrap());
    assert_eq!(db.stats().row_locks_held, 0);
}

#[test]
fn reads_at_a_snapshot_repeat_under_own_writes() {
    let (_parts, db, rows) = setting();
    for key in ["a", "b", "c"] {
        rows.put(key, "old").unwrap();
    }
    let mut transaction = db.transaction();
    transaction.read_at_snapshot();
    transaction.put(&rows, "c", "own").unwrap();
    rows.put("a", "new").unwrap();
    rows.delete("b").unwrap();
    rows.put("d", "new").unwrap();
    rows.flush().unwrap();
    assert_eq!(transaction.get(&rows, "a").unwrap().unwrap(), "old");
    assert_eq!(transaction.get(&rows, "d").unwrap(), None);
    let mut cursor = transaction.cursor(&rows, ..).unwrap();
    let seen: Vec<_> = cursor.iter().map(|row| row.unwrap().1).collect();
    assert_eq!(seen, ["old", "old", "own"]);
    let refused = transaction.put(&rows, "b", "mine").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    drop((cursor, transaction));
    assert_eq!(db.stats().snapshots_held, 0);
    assert_eq!(db.stats().row_locks_held, 0);
}

#[test]
fn workers_take_different_rows_and_none_twice() {
    let (_parts, db, rows) = setting();
    for key in ["a", "b", "c"] {
        rows.put(key, "job").unwrap();
    }
    let mut first = db.transaction();
    let mut second = db.transaction();
    assert_eq!(first.lock_first(&rows, ..).unwrap().unwrap().0, "a");
    assert_eq!(second.lock_first(&rows, ..).unwrap().unwrap().0, "b");
    assert_eq!(second.lock_first(&rows, .."b").unwrap(), None, "it is another's");
    assert_eq!(first.lock_first(&rows, ..).unwrap().unwrap().0, "a", "it is its own");
    first.delete(&rows, "a").unwrap();
    assert_eq!(first.lock_first(&rows, ..).unwrap().unwrap().0, "c");
    second.rollback();
    first.commit().unwrap();
    assert_eq!(db.transaction().lock_first(&rows, ..).unwrap().unwrap().0, "b");
    assert_eq!(db.stats().row_locks_held, 0);
}

#[test]
fn a_queue_gives_every_job_to_one_worker() {
    const JOBS: usize = 4_000;
    let directory = tempfile::tempdir().unwrap();
    let db = Db::open(directory.path(), Options::default()).unwrap();
    let jobs = db.column_family("jobs", CfOptions::default()).unwrap();
    let work = || {
        let mut taken = Vec::new();
        let mut idle = 0;
        while idle < 1_000 {
            let mut transaction = db.transaction();
            match transaction.lock_first(&jobs, ..).unwrap() {
                Some((key, _)) => {
                    transaction.delete(&jobs, &key).unwrap();
                    transaction.commit().unwrap();
                    taken.push(key);
                    idle = 0;
                }
                None => {
                    idle += 1;
                    std::thread::yield_now();
                }
            }
        }
        taken
    };
    let produce = |producer: usize| {
        for number in 0..JOBS / 2 {
            jobs.put(format!("{number:06}-{producer}"), "job").unwrap();
        }
    };
    let mut taken: Vec<Slice> = std::thread::scope(|scope| {
        let producers = [0, 1].map(|producer| scope.spawn(move || produce(producer)));
        let workers = [(); 3].map(|()| scope.spawn(work));
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    // Whoever was idle for long may have left before the last put.
    taken.extend(work());
    taken.sort();
    let all = taken.len();
    taken.dedup();
    assert_eq!((all, taken.len()), (JOBS, JOBS));
}
