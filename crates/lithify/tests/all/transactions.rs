//! What a transaction promises: own writes, row locks and their timeouts, conflicts, savepoints,
//! rollback, and that it leaves no lock behind.

use crate::support::{PATH, Parts, Random, small_options, watched};
use lithify::stats::Counter;
use lithify::{
    CfOptions, ColumnFamily, Cursor, Db, Durability, ErrorKind, Options, Slice, Transaction,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

struct Setting {
    parts: Parts,
    db: Db,
    family: ColumnFamily,
}

fn setting(seed: u64) -> Setting {
    let parts = Parts::new(seed);
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    let family = db.column_family("rows", CfOptions::default()).unwrap();
    Setting { parts, db, family }
}

fn text(value: Option<Slice>) -> Option<String> {
    value.map(|value| String::from_utf8_lossy(&value).into_owned())
}

fn seen(transaction: &Transaction, family: &ColumnFamily) -> Vec<String> {
    let mut cursor = transaction.cursor(family, ..).unwrap();
    let rows = cursor.iter().map(|row| {
        let (key, value) = row.unwrap();
        format!("{}={}", String::from_utf8_lossy(&key), String::from_utf8_lossy(&value))
    });
    rows.collect()
}

fn kind<T>(result: lithify::Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

/// Nobody holds a row lock, and nobody a snapshot.
fn assert_nothing_held(db: &Db) {
    assert_eq!(db.stats().row_locks_held, 0);
    assert_eq!(db.stats().snapshots_held, 0);
}

#[test]
fn own_reads_see_own_writes() {
    let Setting { db, family, .. } = setting(1);
    for key in ["a", "b", "c", "d"] {
        family.put(key.as_bytes(), b"old").unwrap();
    }
    family.flush().unwrap();
    let mut transaction = db.transaction();
    transaction.put(&family, b"b", b"new").unwrap();
    transaction.put(&family, b"b", b"newer").unwrap();
    transaction.delete(&family, b"c").unwrap();
    transaction.single_delete(&family, b"d").unwrap();
    transaction.put(&family, b"e", b"added").unwrap();
    assert_eq!(text(transaction.get(&family, b"b").unwrap()).as_deref(), Some("newer"));
    assert_eq!(text(transaction.get_for_update(&family, b"c").unwrap()), None);
    assert_eq!(text(transaction.get(&family, b"d").unwrap()), None);
    assert_eq!(text(transaction.get(&family, b"a").unwrap()).as_deref(), Some("old"));
    assert_eq!(seen(&transaction, &family), ["a=old", "b=newer", "e=added"]);
    let mut backwards = transaction.cursor(&family, &b"b"[..]..).unwrap();
    assert!(backwards.prev().unwrap());
    assert_eq!(backwards.key(), b"e");
    assert!(backwards.prev().unwrap());
    assert_eq!((backwards.key(), backwards.value()), (&b"b"[..], &b"newer"[..]));
    assert!(!backwards.prev().unwrap());
    drop(backwards);
    assert_eq!(text(family.get(b"b").unwrap()).as_deref(), Some("old"), "nobody else sees it yet");
    assert_eq!(family.get(b"e").unwrap(), None);
    transaction.commit().unwrap();
    assert_eq!(text(family.get(b"b").unwrap()).as_deref(), Some("newer"));
    assert_eq!(family.get(b"c").unwrap(), None);
    assert_nothing_held(&db);
}

#[test]
fn a_locked_row_is_refused_in_time_and_may_be_tried_again() {
    let Setting { parts, db, family } = setting(2);
    let mut first = db.transaction();
    first.put(&family, b"k", b"first").unwrap();
    let mut second = db.transaction();
    second.put(&family, b"other", b"second").unwrap();
    for timeout_ms in [0, 1, 250] {
        second.set_lock_timeout_ms(timeout_ms);
        let before = lithify::base::Clock::now_us(&parts.environment);
        let error = second.put(&family, b"k", b"second").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LockTimeout);
        assert!(error.kind().is_retryable());
        let waited_us = lithify::base::Clock::now_us(&parts.environment) - before;
        // The clock moves by waiting only, so this is no measurement of a machine.
        assert_eq!(waited_us, timeout_ms * 1000);
        assert_eq!(kind(second.get_for_update(&family, b"k")), Some(ErrorKind::LockTimeout));
    }
    assert_eq!(text(second.get(&family, b"k").unwrap()), None, "a plain read takes no lock");
    first.commit().unwrap();
    second.put(&family, b"k", b"second").unwrap();
    second.commit().unwrap();
    assert_eq!(text(family.get(b"k").unwrap()).as_deref(), Some("second"));
    assert_eq!(text(family.get(b"other").unwrap()).as_deref(), Some("second"));
    assert!(db.stats().figures.counter(lithify::stats::Counter::LockTimeouts) >= 3);
    assert_nothing_held(&db);
}

#[test]
fn plain_writes_honour_row_locks() {
    let Setting { db, family, .. } = setting(3);
    let mut transaction = db.transaction();
    transaction.get_for_update(&family, b"k").unwrap();
    assert_eq!(kind(family.put(b"k", b"plain")), Some(ErrorKind::LockTimeout));
    assert_eq!(kind(family.delete(b"k")), Some(ErrorKind::LockTimeout));
    let mut batch = db.batch();
    batch.put(&family, b"a", b"plain").put(&family, b"k", b"plain").put(&family, b"z", b"plain");
    assert_eq!(kind(batch.commit()), Some(ErrorKind::LockTimeout));
    assert_eq!(family.get(b"a").unwrap(), None, "nothing of a refused batch is there");
    family.put(b"l", b"plain").unwrap();
    assert_eq!(db.stats().row_locks_held, 1);
    drop(transaction);
    family.put(b"k", b"plain").unwrap();
    assert_nothing_held(&db);
}

#[test]
fn a_change_after_the_snapshot_is_a_conflict() {
    let Setting { db, family, .. } = setting(4);
    family.put(b"changed", b"1").unwrap();
    family.put(b"flushed", b"1").unwrap();
    family.put(b"steady", b"1").unwrap();
    let mut transaction = db.transaction();
    transaction.set_snapshot();
    family.put(b"flushed", b"2").unwrap();
    family.flush().unwrap();
    family.delete(b"changed").unwrap();
    family.put(b"appeared", b"1").unwrap();
    for key in ["changed", "flushed", "appeared"] {
        let error = transaction.get_for_update(&family, key.as_bytes()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{key}");
        assert!(error.kind().is_retryable());
    }
    transaction.put(&family, b"steady", b"2").unwrap();
    transaction.put(&family, b"steady", b"3").unwrap();
    transaction.commit().unwrap();
    assert_eq!(text(family.get(b"steady").unwrap()).as_deref(), Some("3"));
    assert!(db.stats().figures.counter(lithify::stats::Counter::Conflicts) >= 3);
    assert_nothing_held(&db);
}

#[test]
fn a_range_delete_after_the_snapshot_is_a_conflict() {
    let Setting { db, family, .. } = setting(5);
    for flush in [false, true] {
        family.put(b"k", b"1").unwrap();
        let mut transaction = db.transaction();
        transaction.set_snapshot();
        family.delete_range(b"a", b"z").unwrap();
        if flush {
            family.flush().unwrap();
        }
        let refused = transaction.get_for_update(&family, b"k");
        assert_eq!(kind(refused), Some(ErrorKind::Conflict), "flushed: {flush}");
    }
    assert_nothing_held(&db);
}

#[test]
fn savepoints_nest_and_free_their_locks() {
    let Setting { db, family, .. } = setting(6);
    let mut transaction = db.transaction();
    let mut other = db.transaction();
    other.set_lock_timeout_ms(0);
    transaction.put(&family, b"a", b"0").unwrap();
    transaction.set_savepoint();
    transaction.put(&family, b"a", b"1").unwrap();
    transaction.put(&family, b"b", b"1").unwrap();
    transaction.set_savepoint();
    transaction.delete(&family, b"b").unwrap();
    transaction.put(&family, b"c", b"2").unwrap();
    assert_eq!(seen(&transaction, &family), ["a=1", "c=2"]);
    transaction.rollback_to_savepoint().unwrap();
    assert_eq!(seen(&transaction, &family), ["a=1", "b=1"]);
    assert_eq!(text(transaction.get(&family, b"c").unwrap()), None);
    other.put(&family, b"c", b"theirs").unwrap();
    assert_eq!(kind(other.put(&family, b"b", b"x")), Some(ErrorKind::LockTimeout));
    transaction.rollback_to_savepoint().unwrap();
    assert_eq!(seen(&transaction, &family), ["a=0"]);
    other.put(&family, b"b", b"theirs").unwrap();
    assert_eq!(kind(other.put(&family, b"a", b"x")), Some(ErrorKind::LockTimeout));
    let spent = transaction.rollback_to_savepoint();
    assert_eq!(kind(spent), Some(ErrorKind::InvalidArgument));
    assert_eq!(seen(&transaction, &family), ["a=0"], "a refused rollback changes nothing");
    transaction.commit().unwrap();
    other.commit().unwrap();
    let rows = crate::support::rows(&family);
    let values: Vec<_> = rows.values().map(|value| &value[..]).collect();
    assert_eq!(values, [&b"0"[..], b"theirs", b"theirs"]);
    assert_nothing_held(&db);
}

/// Case 13 of the simulator's check `metamorphic`.
#[test]
fn a_rollback_forgets_the_families_that_it_takes_the_writes_of() {
    let Setting { db, family, .. } = setting(13);
    let other = db.column_family("other", CfOptions::default()).unwrap();
    let mut transaction = db.transaction();
    transaction.set_savepoint();
    transaction.put(&other, b"a", b"1").unwrap();
    db.drop_column_family("other").unwrap();
    assert_eq!(kind(transaction.put(&family, b"b", b"2")), Some(ErrorKind::Closed));
    transaction.rollback_to_savepoint().unwrap();
    transaction.put(&family, b"b", b"3").unwrap();
    transaction.commit().unwrap();
    assert_eq!(family.get(b"b").unwrap().as_deref(), Some(&b"3"[..]));
    assert_nothing_held(&db);
}

#[test]
fn dropping_rolls_back() {
    let Setting { parts, db, family } = setting(7);
    for how in 0..3 {
        let mut transaction = db.transaction();
        transaction.set_snapshot();
        transaction.put(&family, b"k", b"v").unwrap();
        transaction.set_savepoint();
        transaction.put(&family, b"l", b"v").unwrap();
        match how {
            0 => drop(transaction),
            1 => transaction.rollback(),
            _ => {
                let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    let _inside = transaction;
                    std::panic::resume_unwind(Box::new("on purpose"));
                }));
                assert!(panicked.is_err());
            }
        }
        assert_nothing_held(&db);
        assert!(crate::support::rows(&family).is_empty());
    }
    db.close().unwrap();
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    assert!(crate::support::rows(&db.existing_column_family("rows").unwrap().unwrap()).is_empty());
}

#[test]
fn range_deletes_inside_are_refused_and_harmless() {
    let Setting { db, family, .. } = setting(8);
    let mut transaction = db.transaction();
    transaction.put(&family, b"k", b"v").unwrap();
    let refused = transaction.delete_range(&family, b"a", b"z");
    assert_eq!(kind(refused), Some(ErrorKind::InvalidArgument));
    transaction.commit().unwrap();
    assert_eq!(text(family.get(b"k").unwrap()).as_deref(), Some("v"));
}

#[test]
fn a_commit_that_fails_rolls_back_and_frees_its_locks() {
    let Setting { parts, db, family } = setting(9);
    let mut transaction = db.transaction();
    transaction.put(&family, b"k", b"v").unwrap();
    let refused = transaction.commit_with(Durability::None);
    assert_eq!(kind(refused), Some(ErrorKind::InvalidArgument));
    assert_nothing_held(&db);

    // One write over the limit is refused alone; the transaction goes on.
    let mut transaction = db.transaction();
    let refused = transaction.put(&family, [0; 65_536], b"v");
    assert_eq!(kind(refused), Some(ErrorKind::LimitExceeded));
    transaction.put(&family, b"k", b"v").unwrap();
    transaction.commit().unwrap();
    assert_nothing_held(&db);

    // So is the write with which all together are over the limit.
    let mut transaction = db.transaction();
    let accepted = (0..12u8)
        .take_while(|number| transaction.put(&family, [*number], vec![*number; 100_000]).is_ok());
    assert_eq!(accepted.count(), 10);
    assert_eq!(kind(transaction.put(&family, [10], [10; 100_000])), Some(ErrorKind::LimitExceeded));
    transaction.rollback();
    assert_eq!(family.get([1]).unwrap(), None);
    assert_nothing_held(&db);

    let doomed = db.column_family("doomed", CfOptions::default()).unwrap();
    let mut transaction = db.transaction();
    transaction.put(&doomed, b"k", b"v").unwrap();
    transaction.put(&family, b"with", b"v").unwrap();
    db.drop_column_family("doomed").unwrap();
    assert_eq!(kind(transaction.commit()), Some(ErrorKind::Closed));
    assert_eq!(family.get(b"with").unwrap(), None, "a commit is all or nothing");
    assert_nothing_held(&db);

    let mut transaction = db.transaction();
    // More than a log segment has reserved.
    transaction.put(&family, b"k", [0; 500_000]).unwrap();
    parts.files.set_capacity_bytes(0);
    assert_eq!(kind(transaction.commit()), Some(ErrorKind::NoSpace));
    assert_eq!(text(family.get(b"k").unwrap()).as_deref(), Some("v"));
    assert_nothing_held(&db);
    parts.files.set_capacity_bytes(1 << 40);

    let mut transaction = db.transaction();
    transaction.put(&family, b"k", b"poison").unwrap();
    parts.files.set_fault(Box::new(|call| {
        let writes = call.kind == lithify::fs::FileCallKind::Write;
        writes.then(|| std::io::Error::other("the cable fell out"))
    }));
    assert_eq!(kind(transaction.commit()), Some(ErrorKind::Poisoned));
    parts.files.clear_fault();
    assert_eq!(kind(family.put(b"l", b"v")), Some(ErrorKind::Poisoned));
    assert_eq!(text(family.get(b"k").unwrap()).as_deref(), Some("v"), "reads go on");
    assert_nothing_held(&db);
    assert!(db.close().is_err());
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    let family = db.existing_column_family("rows").unwrap().unwrap();
    assert_eq!(text(family.get(b"k").unwrap()).as_deref(), Some("v"));
}

/// Threads that add to counters, some in transactions and some by plain writes to other rows.
#[test]
fn concurrent_increments_lose_nothing() {
    watched("increments", || {
        let directory = tempfile::tempdir().unwrap();
        let options = Options {
            background_threads: 1,
            row_lock_timeout_ms: 3_600_000,
            memory_budget_bytes: 4 << 20,
            memtable_bytes: 64 << 10,
            ..Options::default()
        };
        let db = Arc::new(Db::open(directory.path(), options).unwrap());
        let family = db.column_family("counters", CfOptions::default()).unwrap();
        let (threads, rounds, counters) = (4u64, 400u64, 3u64);
        let retries = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let (db, family, retries) = (&db, &family, &retries);
                scope.spawn(move || {
                    let mut random = Random(thread);
                    for round in 0..rounds {
                        let key = [random.below(counters) as u8];
                        while !increment(db, family, &key, thread % 2 == 0) {
                            retries.fetch_add(1, Ordering::Relaxed);
                        }
                        family.put([9, thread as u8], round.to_le_bytes()).unwrap();
                    }
                });
            }
        });
        let value = |key: &[u8]| {
            let bytes = family.get(key).unwrap().unwrap();
            u64::from_le_bytes(bytes[..8].try_into().unwrap())
        };
        let total: u64 = (0..counters).map(|counter| value(&[counter as u8])).sum();
        assert_eq!(total, threads * rounds);
        for thread in 0..threads {
            assert_eq!(value(&[9, thread as u8]), rounds - 1);
        }
        assert_nothing_held(&db);
    });
}

/// Adds one; false if somebody else was there first. Half of the threads go by the lock alone,
/// the others by a snapshot and the conflict that it may give.
fn increment(db: &Db, family: &ColumnFamily, key: &[u8], with_snapshot: bool) -> bool {
    let mut transaction = db.transaction();
    if with_snapshot {
        transaction.set_snapshot();
    }
    let old = match transaction.get_for_update(family, key) {
        Ok(old) => old,
        Err(error) if error.kind() == ErrorKind::Conflict => return false,
        Err(error) => panic!("{error}"),
    };
    let old = old.map_or(0, |bytes| u64::from_le_bytes(bytes[..8].try_into().unwrap()));
    transaction.put(family, key, (old + 1).to_le_bytes()).unwrap();
    transaction.commit().unwrap();
    true
}

/// Reads and writes of an optimistic transaction, and a write of somebody else before its commit.
fn conflicts(
    within: impl FnOnce(&mut Transaction, &ColumnFamily),
    beside: impl FnOnce(&Db, &ColumnFamily),
) -> bool {
    let parts = Parts::new(1);
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    let family = db.column_family("rows", CfOptions::default()).unwrap();
    for key in ["b", "d", "f", "h"] {
        family.put(key, "old").unwrap();
    }
    let mut transaction = db.optimistic_transaction();
    within(&mut transaction, &family);
    beside(&db, &family);
    transaction.put(&family, "z", "own").unwrap();
    let refused = match transaction.commit() {
        Ok(()) => false,
        Err(error) if error.kind() == ErrorKind::Conflict => true,
        Err(error) => panic!("{error}"),
    };
    assert_eq!(family.get("z").unwrap().is_none(), refused, "all or nothing");
    let figures = db.stats().figures;
    assert_eq!(figures.counter(Counter::Conflicts), u64::from(refused));
    assert_eq!(db.stats().snapshots_held, 0);
    refused
}

#[test]
fn an_optimistic_commit_is_refused_if_what_it_read_was_written() {
    let put =
        |key: &'static str| move |_: &Db, family: &ColumnFamily| family.put(key, "new").unwrap();
    let get = |key: &'static str| {
        move |transaction: &mut Transaction, family: &ColumnFamily| {
            transaction.get(family, key).unwrap();
        }
    };
    assert!(conflicts(get("b"), put("b")));
    assert!(conflicts(get("c"), put("c")), "absence was read");
    assert!(!conflicts(get("b"), put("c")));
    assert!(conflicts(get("b"), |_, family| family.delete("b").unwrap()));
    assert!(conflicts(get("b"), |_, family| family.delete_range("a", "c").unwrap()));
    assert!(!conflicts(get("c"), |_, family| family.delete_range("a", "c").unwrap()));
    assert!(conflicts(get("c"), |_, family| {
        let mut ingest = family.ingest().unwrap();
        ingest.put("c", "new").unwrap();
        ingest.commit().unwrap();
    }));
    assert!(conflicts(get("b"), |db, family| {
        let mut other = db.transaction();
        other.put(family, "b", "new").unwrap();
        other.commit().unwrap();
    }));
    // A write that was not read before is no conflict: one comes after the other.
    let blind = |transaction: &mut Transaction, family: &ColumnFamily| {
        transaction.put(family, "b", "own").unwrap();
        assert_eq!(transaction.get(family, "b").unwrap().unwrap(), "own");
    };
    assert!(!conflicts(blind, put("b")));
    let for_update = |transaction: &mut Transaction, family: &ColumnFamily| {
        transaction.get_for_update(family, "d").unwrap();
    };
    assert!(conflicts(for_update, put("d")));
}

#[test]
fn optimistic_scans_are_checked_as_far_as_they_went() {
    let scan = |moves: fn(&mut Cursor)| {
        move |transaction: &mut Transaction, family: &ColumnFamily| {
            moves(&mut transaction.cursor(family, "a".."m").unwrap());
        }
    };
    let put =
        |key: &'static str| move |_: &Db, family: &ColumnFamily| family.put(key, "new").unwrap();
    let first_two = scan(|cursor| assert!(cursor.next().unwrap() && cursor.next().unwrap()));
    assert!(conflicts(first_two, put("c")), "a row that would have been shown");
    assert!(conflicts(first_two, put("a")) && conflicts(first_two, put("d")));
    assert!(!conflicts(first_two, put("e")), "the scan was not there");
    let all = scan(|cursor| while cursor.next().unwrap() {});
    assert!(conflicts(all, put("l")) && !conflicts(all, put("m")));
    let last = scan(|cursor| assert!(cursor.prev().unwrap()));
    assert!(conflicts(last, put("l")) && !conflicts(last, put("g")));
    let one = scan(|cursor| assert!(cursor.seek("e").unwrap()));
    assert!(conflicts(one, put("e")) && conflicts(one, put("f")) && !conflicts(one, put("d")));
    let queue = |transaction: &mut Transaction, family: &ColumnFamily| {
        assert_eq!(transaction.lock_first(family, ..).unwrap().unwrap().0, "b");
    };
    assert!(conflicts(queue, put("a")) && !conflicts(queue, put("c")));
}

#[test]
fn an_optimistic_transaction_reads_its_moment_and_holds_nobody_up() {
    let parts = Parts::new(2);
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    let family = db.column_family("rows", CfOptions::default()).unwrap();
    family.put("a", "1").unwrap();
    let mut first = db.optimistic_transaction();
    let mut second = db.optimistic_transaction();
    family.put("b", "later").unwrap();
    assert_eq!(first.get(&family, "b").unwrap(), None);
    for transaction in [&mut first, &mut second] {
        let value = transaction.get_for_update(&family, "a").unwrap().unwrap();
        transaction.put(&family, "a", [&value[..], b"+"].concat()).unwrap();
        transaction.set_savepoint();
        transaction.delete(&family, "a").unwrap();
        transaction.rollback_to_savepoint().unwrap();
    }
    assert_eq!(first.commit().unwrap_err().kind(), ErrorKind::Conflict, "it read b");
    second.commit().unwrap();
    assert_eq!(family.get("a").unwrap().unwrap(), "1+");
    // One that only reads has nothing to be refused.
    let reader = db.optimistic_transaction();
    reader.get(&family, "a").unwrap();
    family.put("a", "2").unwrap();
    reader.commit().unwrap();
    // Locks of others are honoured.
    let mut locker = db.transaction();
    locker.put(&family, "a", "locked").unwrap();
    let mut optimist = db.optimistic_transaction();
    optimist.put(&family, "a", "3").unwrap();
    assert_eq!(optimist.commit().unwrap_err().kind(), ErrorKind::LockTimeout);
    locker.commit().unwrap();
}

/// Transfers between accounts, each read in whole by an optimistic transaction: the sum stays.
#[test]
fn optimistic_transfers_beside_each_other_keep_the_sum() {
    const ACCOUNTS: u64 = 8;
    let directory = tempfile::tempdir().unwrap();
    let db = Db::open(directory.path(), Options::default()).unwrap();
    let family = db.column_family("accounts", CfOptions::default()).unwrap();
    (0..ACCOUNTS).for_each(|n| family.put(n.to_be_bytes(), 100_u64.to_be_bytes()).unwrap());
    let number = |value: &[u8]| u64::from_be_bytes(value.try_into().unwrap());
    let transfer = |random: &mut Random| -> lithify::Result<()> {
        let mut transaction = db.optimistic_transaction();
        let (from, to) = (random.below(ACCOUNTS), random.below(ACCOUNTS));
        let balance = |transaction: &Transaction, account: u64| {
            transaction.get(&family, account.to_be_bytes()).map(|value| number(&value.unwrap()))
        };
        let mut sum = 0;
        let mut rows = transaction.cursor(&family, ..)?;
        while rows.next()? {
            sum += number(rows.value());
        }
        assert_eq!(sum, 100 * ACCOUNTS);
        let old = balance(&transaction, from)?;
        if old > 0 && from != to {
            let new = balance(&transaction, to)? + 1;
            transaction.put(&family, from.to_be_bytes(), (old - 1).to_be_bytes())?;
            transaction.put(&family, to.to_be_bytes(), new.to_be_bytes())?;
        }
        transaction.commit()
    };
    std::thread::scope(|scope| {
        for seed in 0..4 {
            scope.spawn(move || {
                let mut random = Random(seed + 1);
                let mut done = 0;
                while done < 300 {
                    match transfer(&mut random) {
                        Ok(()) => done += 1,
                        Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict),
                    }
                }
            });
        }
    });
    let sum: u64 = family.values().map(|value| number(&value.unwrap())).sum();
    assert_eq!(sum, 100 * ACCOUNTS);
}
