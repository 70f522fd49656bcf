//! Expired rows: nobody sees them, whatever reads, and their space comes back; and what keeps them
//! until then.

use crate::support::{PATH, Parts, Random, rows, small_options};
use lithify::fs::{Clock, FileCallKind};
use lithify::repair::{RepairOptions, repair_in};
use lithify::stats::Counter;
use lithify::{CfOptions, ColumnFamily, Db, ErrorKind, TableTransfer, TableWriter};
use std::ops::ControlFlow;

const HOUR_S: u64 = 3600;

/// A row is over once it is older than this: when a whole hour has passed.
const TIME_TO_LIVE_S: u64 = HOUR_S - 1;

fn options() -> CfOptions {
    CfOptions {
        time_to_live_s: TIME_TO_LIVE_S,
        table_bytes: 64 << 10,
        block_size_bytes: 1 << 10,
        ..CfOptions::default()
    }
}

fn open(parts: &Parts) -> (Db, ColumnFamily) {
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    let family = db.column_family("rows", options()).unwrap();
    (db, family)
}

fn pass(parts: &Parts, seconds: u64) {
    parts.environment.advance_us(seconds * 1_000_000);
}

fn key(number: u64) -> String {
    format!("key{number:06}")
}

/// What a get, a multi-get and cursors both ways say of a key.
fn value_of(family: &ColumnFamily, key: &str) -> Option<String> {
    let text = |value: &[u8]| String::from_utf8(value.to_vec()).unwrap();
    let found = family.get(key).unwrap().map(|value| text(&value));
    let many = family.multi_get(&["", key, "~"]).unwrap();
    assert_eq!(many[1].as_deref().map(text), found);
    let mut cursor = family.cursor(key..=key).unwrap();
    assert_eq!(cursor.next().unwrap().then(|| text(cursor.value())), found);
    let mut cursor = family.cursor(key..=key).unwrap();
    assert_eq!(cursor.prev().unwrap().then(|| text(cursor.value())), found);
    assert_eq!(family.contains(key).unwrap(), found.is_some());
    found
}

#[test]
fn a_row_is_there_for_its_time_wherever_it_lies() {
    let parts = Parts::new(1);
    let (_db, family) = open(&parts);
    let settle: [&dyn Fn(); 3] =
        [&|| {}, &|| family.flush().unwrap(), &|| family.compact_range(..).unwrap()];
    for settle in settle {
        family.put("first", "1").unwrap();
        settle();
        pass(&parts, HOUR_S / 2);
        family.put("second", "").unwrap();
        settle();
        assert_eq!(value_of(&family, "first").as_deref(), Some("1"));
        assert_eq!(value_of(&family, "second").as_deref(), Some(""));
        pass(&parts, HOUR_S / 2);
        assert_eq!(value_of(&family, "first"), None);
        assert_eq!(value_of(&family, "second").as_deref(), Some(""));
        assert_eq!(rows(&family).len(), 1);
        settle();
        assert_eq!(value_of(&family, "first"), None);
        // Written again, it lives again.
        family.put("first", "2").unwrap();
        settle();
        assert_eq!(value_of(&family, "first").as_deref(), Some("2"));
        pass(&parts, HOUR_S);
        assert_eq!(rows(&family).len(), 0);
    }
}

/// Write times and the present are whole seconds, rounded down: a row written at the end of one would
/// seem a second older than it is.
#[test]
fn no_row_is_over_early() {
    let parts = Parts::new(11);
    let (db, _) = open(&parts);
    let family = db.column_family("lease", CfOptions { time_to_live_s: 1, ..options() }).unwrap();
    parts.environment.advance_us(1_000_000 - parts.environment.now_us() % 1_000_000);
    for after_us in [0, 1, 500_000, 998_000] {
        parts.environment.advance_us(after_us);
        family.put("key", "1").unwrap();
        let written_us = parts.environment.now_us();
        while value_of(&family, "key").is_some() {
            parts.environment.advance_us(1_000);
            family.flush().unwrap();
            db.wait_for_compaction().unwrap();
        }
        let lived_us = parts.environment.now_us() - written_us;
        assert!((1_000_000..=2_001_000).contains(&lived_us), "{lived_us}");
        assert!(family.put_if_absent("key", "2").unwrap());
        assert!(!family.put_if_absent("key", "3").unwrap());
        parts.environment.advance_us(3_000_000 - parts.environment.now_us() % 1_000_000);
    }
}

/// Forwards and back over a mixture of rows that are over, deleted and alive.
#[test]
fn cursors_show_what_is_left_both_ways() {
    let parts = Parts::new(2);
    let (db, family) = open(&parts);
    let mut random = Random(2);
    let mut model = std::collections::BTreeMap::new();
    for step in 0..6_000_u64 {
        let key = key(random.below(800));
        let now_s = step / 2;
        if random.below(5) == 0 {
            family.delete(&key).unwrap();
            model.remove(&key);
        } else {
            let value = step.to_string();
            family.put(&key, &value).unwrap();
            model.insert(key, (value, now_s));
        }
        if step % 2 == 1 {
            pass(&parts, 3);
        }
        if step % 1_500 == 1_499 {
            db.wait_for_compaction().unwrap();
            // Steps of 3 seconds: an hour is 1200 of them.
            let live: Vec<_> = model
                .iter()
                .filter(|(_, (_, written))| now_s + 1 - written < 1200)
                .map(|(key, (value, _))| (key.clone(), value.clone()))
                .collect();
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            let pair = |row: lithify::Result<(lithify::Slice, lithify::Slice)>| {
                let (key, value) = row.unwrap();
                (text(&key), text(&value))
            };
            let forward: Vec<_> = family.iter().map(pair).collect();
            assert_eq!(forward, live);
            let mut back: Vec<_> = family.iter().rev().map(pair).collect();
            back.reverse();
            assert_eq!(back, live);
        }
    }
    assert!(model.len() > 500);
}

#[test]
fn snapshots_and_cursors_judge_by_their_own_time() {
    let parts = Parts::new(3);
    let (db, family) = open(&parts);
    for number in 0..2_000 {
        family.put(key(number), number.to_string()).unwrap();
    }
    family.flush().unwrap();
    let mut cursor = family.cursor(..).unwrap();
    let snapshot = db.snapshot();
    let mut transaction = db.transaction();
    transaction.read_at_snapshot();
    pass(&parts, 2 * HOUR_S);
    family.put("late", "1").unwrap();
    family.compact_range(..).unwrap();
    db.wait_for_compaction().unwrap();
    assert_eq!(rows(&family).len(), 1);
    let mut count = 0;
    while cursor.next().unwrap() {
        assert_eq!(cursor.value(), count.to_string().as_bytes());
        count += 1;
    }
    assert_eq!(count, 2_000);
    assert_eq!(family.get_at(key(7), &snapshot).unwrap().unwrap(), "7");
    let many = family.multi_get_at(&[key(8), key(9)], &snapshot).unwrap();
    assert!(many.iter().all(Option::is_some));
    assert_eq!(transaction.get(&family, key(7)).unwrap().unwrap(), "7");
    // A later one at the same commit sees less.
    let later = db.snapshot();
    assert_eq!(family.get_at(key(7), &later).unwrap(), None);
    drop((cursor, snapshot, transaction));
    assert!(family.stats().table_bytes > 10_000);
    family.compact_range(..).unwrap();
    db.wait_for_compaction().unwrap();
    assert!(family.stats().table_bytes < 10_000, "for the later one they were over");
    assert_eq!(family.get_at("late", &later).unwrap().unwrap(), "1");
}

#[test]
fn a_clone_of_a_snapshot_judges_by_the_time_of_its_original() {
    let parts = Parts::new(4);
    let (db, family) = open(&parts);
    for number in 0..2_000 {
        family.put(key(number), number.to_string()).unwrap();
    }
    family.flush().unwrap();
    let snapshot = db.snapshot();
    pass(&parts, 2 * HOUR_S);
    // For whoever asks now all is over, and for a snapshot of now at the same commit.
    let (clone, later) = (snapshot.clone(), db.snapshot());
    assert_eq!(rows(&family).len(), 0);
    assert_eq!(family.get_at(key(7), &later).unwrap(), None);
    drop((snapshot, later));
    let again = clone.clone();
    drop(clone);
    family.compact_range(..).unwrap();
    db.wait_for_compaction().unwrap();
    assert_eq!(family.get_at(key(7), &again).unwrap().unwrap(), "7");
    assert_eq!(family.range_at(.., &again).count(), 2_000);
    drop(again);
    family.compact_range(..).unwrap();
    db.wait_for_compaction().unwrap();
    assert!(family.stats().table_bytes < 10_000, "the last clone held them");
}

#[test]
fn tables_go_as_a_whole_without_being_read() {
    let parts = Parts::new(4);
    let (db, family) = open(&parts);
    for hour in 0..4_u64 {
        for number in 0..3_000 {
            family.put(key(hour * 10_000 + number), [7; 60]).unwrap();
        }
        family.flush().unwrap();
        db.wait_for_compaction().unwrap();
        pass(&parts, HOUR_S / 4);
    }
    let before = family.stats();
    assert!(before.tables > 8, "{}", before.tables);
    pass(&parts, HOUR_S / 4);
    db.wait_for_compaction().unwrap();
    family.flush().unwrap();
    let after = db.stats();
    let counter = |counter| after.figures.counter(counter);
    assert!(counter(Counter::ExpiredTables) > 2, "{after}");
    assert!(counter(Counter::ExpiredRows) >= 2_000);
    assert_eq!(counter(Counter::CompactionsExpired), counter(Counter::ExpiredTables));
    assert!(family.stats().table_bytes < before.table_bytes * 9 / 10);
    pass(&parts, HOUR_S);
    db.wait_for_compaction().unwrap();
    assert_eq!(family.stats().tables, 0);
    assert_eq!(rows(&family).len(), 0);
}

/// Rows of an ingest are as old as they were given to it, and lie over what was written meanwhile. That
/// must not come back when they are over, nor what a delete among them hides.
#[test]
fn what_lies_under_a_table_that_is_over_stays_hidden() {
    let parts = Parts::new(5);
    let (db, family) = open(&parts);
    let mut ingest = family.ingest().unwrap();
    for number in 0..500 {
        match number % 2 {
            0 => ingest.delete(key(number)).unwrap(),
            _ => ingest.put(key(number), "new").unwrap(),
        }
    }
    pass(&parts, 600);
    for number in 0..500 {
        family.put(key(number), "old").unwrap();
    }
    ingest.commit().unwrap();
    let snapshot = db.snapshot();
    assert_eq!(rows(&family).len(), 250);
    pass(&parts, HOUR_S - 600);
    for _ in 0..6 {
        db.wait_for_compaction().unwrap();
        assert_eq!(rows(&family).len(), 0);
        pass(&parts, 100);
    }
    drop(snapshot);
    family.compact_level0().unwrap();
    db.wait_for_compaction().unwrap();
    assert_eq!((rows(&family).len(), family.stats().tables), (0, 0));
}

#[test]
fn half_of_a_table_is_enough_to_write_it_again() {
    let parts = Parts::new(6);
    let (db, family) = open(&parts);
    for number in 0..1_000 {
        family.put(key((number * 389) % 1_000), [3; 40]).unwrap();
        pass(&parts, 3);
    }
    family.compact_range(..).unwrap();
    // Written over 3000 s: half of them are over 1500 s and an hour after the first.
    pass(&parts, HOUR_S - 1_500 + 100);
    db.wait_for_compaction().unwrap();
    let stats = db.stats();
    let counter = |counter| stats.figures.counter(counter);
    assert!(counter(Counter::CompactionsExpired) > 0, "{stats}");
    assert_eq!(counter(Counter::ExpiredTables), 0);
    let left = rows(&family).len() as u64;
    assert!((100..600).contains(&left), "{left}");
}

#[test]
fn a_commit_gives_a_batch_and_a_transaction_its_time() {
    let parts = Parts::new(7);
    let (db, family) = open(&parts);
    let mut batch = db.batch();
    batch.put(&family, "batch", "1");
    let mut transaction = db.transaction();
    transaction.put(&family, "transaction", "1").unwrap();
    pass(&parts, 2 * HOUR_S);
    assert_eq!(transaction.get(&family, "transaction").unwrap().unwrap(), "1");
    let mut own = transaction.cursor(&family, ..).unwrap();
    assert!(own.next().unwrap() && own.value() == b"1" && !own.next().unwrap());
    drop(own);
    batch.commit().unwrap();
    transaction.commit().unwrap();
    pass(&parts, HOUR_S - 1);
    assert_eq!(rows(&family).len(), 2);
    assert!(!family.put_if_absent("batch", "2").unwrap());
    let seen = family.update("transaction", |old| old.map(|old| [&old[..], b"+"].concat()));
    assert_eq!(seen.unwrap().unwrap(), b"1+");
    pass(&parts, 1);
    assert!(family.put_if_absent("batch", "2").unwrap());
    assert_eq!(value_of(&family, "transaction").as_deref(), Some("1+"), "written again");
}

#[test]
fn times_survive_a_crash_copies_and_a_repair() {
    let parts = Parts::new(8);
    let (db, family) = open(&parts);
    family.put("table", "t").unwrap();
    family.flush().unwrap();
    pass(&parts, HOUR_S / 2);
    family.put("log", "l").unwrap();
    let world = parts.world();
    let manifest = parts.names_ending("CURRENT");
    db.checkpoint("/copy").unwrap();
    drop((family, db));
    let (db, family) = open(&parts);
    assert_eq!((value_of(&family, "table").is_some(), rows(&family).len()), (true, 2));
    drop((family, db));
    for lost in [false, true] {
        if lost {
            for name in manifest.iter().chain(&parts.names_ending("manifest")) {
                let _ = world.files.remove(&std::path::Path::new(PATH).join(name));
            }
        }
        let target = format!("/repaired-{lost}");
        let mut go_on = |_: &_| ControlFlow::Continue(());
        let options = RepairOptions { database: small_options(), ..RepairOptions::default() };
        repair_in(PATH, &target, &options, &world, &mut go_on).unwrap();
    }
    pass(&parts, HOUR_S / 2);
    for path in ["/copy", "/repaired-false", "/repaired-true"] {
        let db = Db::open_in(path, small_options(), parts.world()).unwrap();
        let family = db.existing_column_family("rows").unwrap().unwrap();
        assert_eq!(family.options().time_to_live_s, TIME_TO_LIVE_S, "{path}");
        assert_eq!(value_of(&family, "table"), None, "{path}");
        assert_eq!(value_of(&family, "log").as_deref(), Some("l"), "{path}");
    }
}

#[test]
fn ingested_rows_are_as_old_as_they_were_given() {
    let parts = Parts::new(9);
    let (db, family) = open(&parts);
    let mut ingest = family.ingest().unwrap();
    ingest.put("a", "1").unwrap();
    ingest.delete("b").unwrap();
    ingest.commit().unwrap();
    let mut writer = TableWriter::create_in("/rows.table", &options(), parts.world()).unwrap();
    writer.put("c", "3").unwrap();
    writer.finish().unwrap();
    pass(&parts, HOUR_S / 2);
    family.ingest_tables(&["/rows.table"], TableTransfer::Link).unwrap();
    assert_eq!(value_of(&family, "c").as_deref(), Some("3"));
    pass(&parts, HOUR_S / 2);
    assert_eq!(rows(&family).len(), 0);
    // Tables with and without times do not go together.
    let plain = CfOptions { time_to_live_s: 0, ..options() };
    let mut writer = TableWriter::create_in("/plain.table", &plain, parts.world()).unwrap();
    writer.put("d", "4").unwrap();
    writer.finish().unwrap();
    let error = family.ingest_tables(&["/plain.table"], TableTransfer::Link).unwrap_err();
    assert!(error.to_string().contains("time to live"), "{error}");
    let other = db.column_family("plain", plain).unwrap();
    other.ingest_tables(&["/rows.table"], TableTransfer::Link).unwrap_err();
    other.ingest_tables(&["/plain.table"], TableTransfer::Link).unwrap();
}

#[test]
fn a_family_keeps_its_kind_and_may_change_its_length() {
    let parts = Parts::new(10);
    let (db, family) = open(&parts);
    family.put("a", "1").unwrap();
    let same = db.column_family("rows", CfOptions::default()).unwrap();
    assert_eq!(same.options().time_to_live_s, TIME_TO_LIVE_S, "not named, not changed");
    pass(&parts, HOUR_S);
    assert_eq!(value_of(&family, "a"), None);
    let longer = CfOptions { time_to_live_s: 3 * HOUR_S, ..options() };
    db.column_family("rows", longer.clone()).unwrap();
    assert_eq!(value_of(&family, "a").as_deref(), Some("1"));
    drop((family, same, db));
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    let family = db.existing_column_family("rows").unwrap().unwrap();
    assert_eq!(value_of(&family, "a").as_deref(), Some("1"));
    db.column_family("plain", CfOptions::default()).unwrap();
    let error = db.column_family("plain", longer.clone()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("without a time to live"), "{error}");
    let both = CfOptions { merge_operator: lithify::MergeOperator::add(), ..longer };
    let error = db.column_family("both", both.clone()).unwrap_err().to_string();
    assert!(error.contains("merge_operator"), "{error}");
    db.column_family("rows", CfOptions { time_to_live_s: 0, ..both }).unwrap_err();
}

/// Idle workers look for what is over: nobody has to call.
#[test]
fn space_comes_back_while_nobody_calls() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::open(directory.path(), lithify::Options::default()).unwrap();
    let family = db.column_family("rows", CfOptions { time_to_live_s: 1, ..options() }).unwrap();
    family.put("a", "1").unwrap();
    family.flush().unwrap();
    crate::support::watched("a table that is over", || {
        while family.stats().tables > 0 {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    });
    assert_eq!(family.get("a").unwrap(), None);
}

/// Its rows are copied out of the run that has failed: the next move must not take up the runs below.
#[test]
fn a_cursor_stands_nowhere_after_an_error() {
    let parts = Parts::new(8);
    let (db, family) = open(&parts);
    for value in ["old", "new"] {
        (0..3_000).for_each(|number| family.put(key(number), value.repeat(10)).unwrap());
        family.compact_level0().unwrap();
    }
    (0..3_000).step_by(2).for_each(|number| family.put(key(number), "newest").unwrap());
    family.flush().unwrap();
    let newest = parts.names_ending(".sst").into_iter().max().unwrap();
    db.close().unwrap();
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    let family = db.existing_column_family("rows").unwrap().unwrap();
    let mut cursor = family.cursor(..).unwrap();
    assert!(cursor.next().unwrap());
    parts.files.set_fault(Box::new(move |call| {
        let is_newest = call.path.to_string_lossy().ends_with(&newest);
        (call.kind == FileCallKind::Read && is_newest).then(|| std::io::Error::other("planted"))
    }));
    let error = (0..3_000).find_map(|_| cursor.next().err());
    assert_eq!(error.map(|error| error.kind()), Some(ErrorKind::Io));
    parts.files.clear_fault();
    assert!(!cursor.valid() && !cursor.next().unwrap());
    assert!(cursor.seek("").unwrap());
    assert_eq!(cursor.value(), b"newest");
}
