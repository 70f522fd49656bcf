//! Writers that wait for each other's rows in a circle: the one that would close it is refused at
//! once, the others go on, and nobody is refused without a circle.

use crate::support::watched;
use lithify::stats::Counter;
use lithify::{CfOptions, ColumnFamily, Db, Error, ErrorKind, Options};
use std::sync::{Barrier, Mutex};

/// A database on disk with real threads. No test here passes by waiting for the timeout.
struct Setting {
    _directory: tempfile::TempDir,
    db: Db,
    family: ColumnFamily,
}

fn setting(background_threads: usize) -> Setting {
    let options =
        Options { background_threads, row_lock_timeout_ms: 3_600_000, ..Options::default() };
    setting_with(options)
}

fn setting_with(options: Options) -> Setting {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::open(directory.path(), options).unwrap();
    let family = db.column_family("rows", CfOptions::default()).unwrap();
    Setting { _directory: directory, db, family }
}

fn counter(db: &Db, counter: Counter) -> u64 {
    db.stats().figures.counter(counter)
}

/// So many transactions each lock a row, then want the row of the next one. Gives the errors.
fn circle(setting: &Setting, size: u8) -> Vec<Error> {
    let Setting { db, family, .. } = setting;
    let (barrier, errors) = (Barrier::new(size.into()), Mutex::new(Vec::new()));
    let attempt = |keys: [[u8; 2]; 2], between: &dyn Fn()| {
        let mut transaction = db.transaction();
        transaction.put(family, keys[0], b"v")?;
        between();
        transaction.put(family, keys[1], b"v")?;
        transaction.commit()
    };
    std::thread::scope(|scope| {
        for member in 0..size {
            let (barrier, errors, attempt) = (&barrier, &errors, &attempt);
            scope.spawn(move || {
                let keys = [[b'r', member], [b'r', (member + 1) % size]];
                let all_hold_one = || {
                    barrier.wait();
                };
                let first = attempt(keys, &all_hold_one);
                barrier.wait();
                if let Err(error) = first {
                    attempt(keys, &|| ()).expect("succeeds when the others are through");
                    errors.lock().unwrap().push(error);
                }
            });
        }
    });
    errors.into_inner().unwrap()
}

#[test]
fn one_of_each_circle_is_refused_and_succeeds_when_it_tries_again() {
    watched("circles", || {
        for background_threads in [0, 1] {
            let setting = setting(background_threads);
            for size in [2, 3, 7] {
                let before = counter(&setting.db, Counter::Deadlocks);
                let errors = circle(&setting, size);
                let [error] = errors.as_slice() else { panic!("{size}: {errors:?}") };
                assert_eq!(error.kind(), ErrorKind::Deadlock);
                assert!(error.kind().is_retryable());
                let text = error.to_string();
                assert!(text.contains(&format!("a circle of {size} writers")), "{text}");
                assert!(text.contains("row \"r\\x0"), "{text}");
                assert!(text.contains("column family \"rows\""), "{text}");
                assert_eq!(counter(&setting.db, Counter::Deadlocks) - before, 1);
            }
            assert_eq!(counter(&setting.db, Counter::LockTimeouts), 0);
            assert_eq!(setting.db.stats().row_locks_held, 0);
        }
    });
}

/// Both read the row for update before either writes: exclusive locks leave no upgrade to fight
/// over, so the second waits for the first. Locking a row again never waits.
#[test]
fn a_locked_row_can_be_written_without_a_wait() {
    watched("upgrade", || {
        let Setting { db, family, .. } = &setting(1);
        let barrier = Barrier::new(2);
        std::thread::scope(|scope| {
            for member in 0..2 {
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    let mut transaction = db.transaction();
                    transaction.get_for_update(family, b"k").unwrap();
                    transaction.get_for_update(family, b"k").unwrap();
                    transaction.put(family, b"k", [member]).unwrap();
                    transaction.commit().unwrap();
                });
            }
        });
        assert_eq!(counter(db, Counter::Deadlocks), 0);
    });
}

/// A batch outside a transaction locks its rows one after the other, and is in the graph.
#[test]
fn a_plain_batch_is_part_of_the_circle() {
    watched("plain batch", || {
        let Setting { db, family, .. } = &setting(1);
        let mut transaction = db.transaction();
        // The batch locks its rows in the order of their hashes, which has this one in the middle.
        let keys: Vec<[u8; 2]> = (0..16).map(|number| [b'b', number]).collect();
        transaction.put(family, keys[5], b"transaction").unwrap();
        std::thread::scope(|scope| {
            let plain = scope.spawn(|| {
                let mut batch = db.batch();
                keys.iter().for_each(|key| {
                    batch.put(family, key, b"plain");
                });
                batch.commit()
            });
            while counter(db, Counter::LockWaits) == 0 {
                std::thread::yield_now();
            }
            // The batch holds still now: some rows it has, the others it has not come to.
            let held = db.stats().row_locks_held;
            assert!((3..15).contains(&held), "{held}: take another row than this one");
            let refused = keys.iter().find_map(|key| transaction.put(family, key, b"x").err());
            // Whoever closed the circle: one of the two was refused, and the other goes on.
            let transaction_error = refused.inspect(|error| {
                assert_eq!(error.kind(), ErrorKind::Deadlock, "{error}");
                assert!(error.to_string().contains("a circle of 2 writers"), "{error}");
            });
            match &transaction_error {
                Some(_) => transaction.rollback(),
                None => transaction.commit().unwrap(),
            }
            let plain_error = plain.join().unwrap().err();
            assert_eq!(transaction_error.is_some() as u8 + plain_error.is_some() as u8, 1);
            if let Some(error) = plain_error {
                assert_eq!(error.kind(), ErrorKind::Deadlock, "{error}");
            }
        });
        assert_eq!(db.stats().row_locks_held, 0);
    });
}

#[test]
fn without_detection_a_circle_ends_by_the_timeout() {
    watched("without detection", || {
        let options = Options {
            background_threads: 1,
            row_lock_timeout_ms: 50,
            deadlock_detection: false,
            ..Options::default()
        };
        let setting = setting_with(options);
        let Setting { db, family, .. } = &setting;
        let barrier = Barrier::new(2);
        let kinds = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for member in 0..2u8 {
                let (barrier, kinds) = (&barrier, &kinds);
                scope.spawn(move || {
                    let mut transaction = db.transaction();
                    transaction.put(family, [member], b"v").unwrap();
                    barrier.wait();
                    if let Err(error) = transaction.put(family, [1 - member], b"v") {
                        kinds.lock().unwrap().push(error.kind());
                    }
                });
            }
        });
        let kinds = kinds.into_inner().unwrap();
        assert!(!kinds.is_empty());
        assert!(kinds.iter().all(|kind| *kind == ErrorKind::LockTimeout), "{kinds:?}");
        assert_eq!(counter(db, Counter::Deadlocks), 0);
    });
}

#[test]
fn a_long_key_is_named_in_part() {
    watched("long key", || {
        let Setting { db, family, .. } = &setting(1);
        let key = [b'k'; 1000];
        let mut first = db.transaction();
        first.put(family, key, b"v").unwrap();
        let mut second = db.transaction();
        second.set_lock_timeout_ms(0);
        let error = second.put(family, key, b"v").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LockTimeout);
        let text = error.to_string();
        assert!(text.contains(&format!("row \"{}\" and 936 bytes more", "k".repeat(64))), "{text}");
    });
}
