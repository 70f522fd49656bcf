//! The limits of keys, values and batches: what is on a limit works, through the log, a flush and
//! a compaction; what is over it is refused with a typed error, and nothing of it is written.

use crate::support::{PATH, Parts, Random, rows, small_options, watched};
use lithify::base::COMMIT_SEQUENCE_MAX;
use lithify::fs::FileSystem;
use lithify::manifest::{Change, Manifest};
use lithify::{CfOptions, ColumnFamily, Db, Durability, ErrorKind, Options};
use std::path::Path;
use std::sync::Arc;

const KEY_BYTES_MAX: usize = 65_535;
const VALUE_BYTES_MAX: usize = 64 << 20;

fn kind<T>(result: lithify::Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

/// Runs a check on fresh writes, on those of a reopened log, of a flush and of a compaction.
fn at_every_stage(options: Options, write: impl Fn(&ColumnFamily), check: impl Fn(&ColumnFamily)) {
    let parts = Parts::new(1);
    {
        let db = Db::open_in(PATH, options.clone(), parts.world()).unwrap();
        let family = db.column_family("rows", CfOptions::default()).unwrap();
        write(&family);
        check(&family);
    }
    let db = Db::open_in(PATH, options.clone(), parts.world()).unwrap();
    let family = db.existing_column_family("rows").unwrap().unwrap();
    check(&family);
    family.flush().unwrap();
    check(&family);
    family.compact_range(..).unwrap();
    check(&family);
    db.close().unwrap();
    let db = Db::open_in(PATH, options, parts.world()).unwrap();
    check(&db.existing_column_family("rows").unwrap().unwrap());
    assert_eq!(parts.environment.endless_waits(), 0);
}

#[test]
fn keys_up_to_the_limit_work() {
    let longest = vec![b'k'; KEY_BYTES_MAX];
    let mut last = longest.clone();
    last[KEY_BYTES_MAX - 1] = b'l';
    at_every_stage(
        small_options(),
        |family| {
            family.put(b"", b"the empty key").unwrap();
            family.put(&longest, b"the longest key").unwrap();
            family.put(&last, b"the one behind").unwrap();
            family.put([0xff; 300], b"the last key").unwrap();
            family.put(b"gone", b"x").unwrap();
            family.delete(b"gone").unwrap();
        },
        |family| {
            assert_eq!(family.get(b"").unwrap().as_deref(), Some(&b"the empty key"[..]));
            assert_eq!(family.get(&longest).unwrap().as_deref(), Some(&b"the longest key"[..]));
            assert_eq!(family.get(&last).unwrap().as_deref(), Some(&b"the one behind"[..]));
            assert_eq!(family.get(&longest[1..]).unwrap(), None);
            let mut cursor = family.cursor(..).unwrap();
            assert!(cursor.next().unwrap());
            assert_eq!(cursor.key(), b"");
            assert!(cursor.seek(&longest).unwrap());
            assert_eq!(cursor.value(), b"the longest key");
            assert!(cursor.next().unwrap());
            assert_eq!(cursor.value(), b"the one behind");
            assert!(cursor.seek_to_last().unwrap());
            assert_eq!(cursor.value(), b"the last key");
            assert_eq!(rows(family).len(), 4);
            let mut cursor = family.prefix_cursor(&longest).unwrap();
            assert!(cursor.next().unwrap() && !cursor.next().unwrap());
        },
    );
}

#[test]
fn keys_over_the_limit_are_refused() {
    let parts = Parts::new(2);
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    let family = db.column_family("rows", CfOptions::default()).unwrap();
    let long = vec![b'k'; KEY_BYTES_MAX + 1];
    let refused = Some(ErrorKind::LimitExceeded);
    let error = family.put(&long, b"v").unwrap_err();
    assert!(error.to_string().contains("65535") && error.to_string().contains("65536"), "{error}");
    assert_eq!(kind(family.delete(&long)), refused);
    assert_eq!(kind(family.single_delete(&long)), refused);
    assert_eq!(kind(family.delete_range(&long, b"z")), refused);
    assert_eq!(kind(family.delete_range(b"a", &long)), refused);
    let mut transaction = db.transaction();
    assert_eq!(kind(transaction.put(&family, &long, b"v")), refused);
    drop(transaction);
    let mut batch = db.batch();
    batch.put(&family, b"fine", b"v").put(&family, &long, b"v").put(&family, b"too", b"v");
    assert_eq!(kind(batch.commit()), refused);
    assert!(rows(&family).is_empty(), "nothing of a refused batch is written");
    assert_eq!(family.get(&long).unwrap(), None, "reading what cannot be there is no error");
    assert!(family.cursor(&long[..]..).unwrap().next().is_ok());
    // A cleared batch has forgotten its error.
    let mut batch = db.batch();
    batch.put(&family, &long, b"v");
    batch.clear();
    batch.put(&family, b"fine", b"v");
    batch.commit().unwrap();
    assert_eq!(rows(&family).len(), 1);
}

#[test]
fn values_up_to_the_limit_work() {
    watched("a value of 64 MiB", || {
        let options = Options { background_threads: 0, ..Options::default() };
        let mut random = Random(3);
        let mut value = random.bytes(1 << 20);
        value.resize(VALUE_BYTES_MAX, 7);
        at_every_stage(
            options,
            |family| {
                family.put(b"empty", b"").unwrap();
                family.put(b"largest", &value).unwrap();
                let mut over = value.clone();
                over.push(0);
                let error = family.put(b"over", &over).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::LimitExceeded);
                assert!(error.to_string().contains("67108864"), "{error}");
            },
            |family| {
                assert_eq!(family.get(b"empty").unwrap().as_deref(), Some(&b""[..]));
                assert!(family.get(b"largest").unwrap().unwrap()[..] == value[..]);
                assert_eq!(family.get(b"over").unwrap(), None);
                let mut cursor = family.cursor(..).unwrap();
                assert!(cursor.next().unwrap() && cursor.value().is_empty());
                assert!(cursor.next().unwrap() && cursor.value() == &value[..]);
                assert!(!cursor.next().unwrap());
            },
        );
    });
}

#[test]
fn a_batch_over_half_the_budget_is_refused() {
    let parts = Parts::new(4);
    let options = small_options();
    let half = options.memory_budget_bytes / 2;
    let db = Db::open_in(PATH, options, parts.world()).unwrap();
    let family = db.column_family("rows", CfOptions::default()).unwrap();
    let mut batch = db.batch();
    while batch.size_bytes() < half - 1100 {
        let key = (batch.len() as u32).to_be_bytes();
        batch.put(&family, key, [1; 1000]);
    }
    let room = half - batch.size_bytes();
    // kind, family, key length, key, value length in two bytes
    batch.put(&family, b"fill", vec![2; room - 9]);
    assert_eq!(batch.size_bytes(), half);
    let count = batch.len();
    batch.commit().unwrap();
    assert_eq!(rows(&family).len(), count);
    let mut batch = db.batch();
    batch.put(&family, b"big", vec![3; half]);
    let error = batch.commit().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
    assert!(error.to_string().contains("memory_budget_bytes"), "{error}");
    assert_eq!(family.get(b"big").unwrap(), None);
    family.put(b"and", b"on").unwrap();
    db.close().unwrap();
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    assert_eq!(rows(&db.existing_column_family("rows").unwrap().unwrap()).len(), count + 1);
}

#[test]
fn a_batch_keeps_no_write_over_the_limit_and_reports_the_first_error() {
    let parts = Parts::new(14);
    let options = small_options();
    let half = options.memory_budget_bytes / 2;
    let db = Db::open_in(PATH, options, parts.world()).unwrap();
    let family = db.column_family("rows", CfOptions::default()).unwrap();
    let mut batch = db.batch();
    batch.put(&family, b"a", b"1");
    let size_bytes = batch.size_bytes();
    batch.put(&family, b"big", vec![3; half]);
    assert_eq!((batch.len(), batch.size_bytes()), (1, size_bytes));
    batch.put(&family, b"b", b"2").put(&family, vec![b'k'; KEY_BYTES_MAX + 1], b"v");
    let error = batch.commit().unwrap_err();
    assert!(error.to_string().contains("memory_budget_bytes"), "{error}");
    let mut batch = db.batch();
    batch.put(&family, vec![b'k'; KEY_BYTES_MAX + 1], b"v").put(&family, b"big", vec![3; half]);
    let error = batch.commit().unwrap_err();
    assert!(error.to_string().contains("a key is too long"), "{error}");
    assert!(rows(&family).is_empty());
    let mut batch = db.batch();
    batch.put(&family, b"big", vec![3; half]).clear();
    batch.put(&family, b"a", b"1");
    batch.commit().unwrap();
    assert_eq!(rows(&family).len(), 1);
}

#[test]
fn a_transaction_over_half_the_budget_refuses_the_write_and_keeps_the_others() {
    for optimistic in [false, true] {
        let parts = Parts::new(15);
        let options = small_options();
        let half = options.memory_budget_bytes / 2;
        let db = Db::open_in(PATH, options, parts.world()).unwrap();
        let family = db.column_family("rows", CfOptions::default()).unwrap();
        let merged =
            CfOptions { merge_operator: "append".parse().unwrap(), ..CfOptions::default() };
        let merged = db.column_family("merged", merged).unwrap();
        let mut transaction = match optimistic {
            true => db.optimistic_transaction(),
            false => db.transaction(),
        };
        transaction.put(&family, b"a", b"1").unwrap();
        let error = transaction.put(&family, b"a", vec![3; half]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LimitExceeded);
        assert!(error.to_string().contains("memory_budget_bytes"), "{error}");
        assert_eq!(transaction.get(&family, b"a").unwrap().as_deref(), Some(&b"1"[..]));
        transaction.set_savepoint();
        transaction.put(&family, b"b", vec![2; half / 2]).unwrap();
        let refused = Some(ErrorKind::LimitExceeded);
        assert_eq!(kind(transaction.merge(&merged, b"c", vec![3; half / 2])), refused);
        assert_eq!(transaction.get(&merged, b"c").unwrap(), None);
        transaction.rollback_to_savepoint().unwrap();
        transaction.merge(&merged, b"c", vec![4; half / 2]).unwrap();
        assert_eq!(kind(transaction.put(&family, b"d", vec![5; half / 2])), refused);
        transaction.delete(&family, b"e").unwrap();
        transaction.commit().unwrap();
        assert_eq!(rows(&family).into_iter().collect::<Vec<_>>(), [(b"a".to_vec(), b"1".to_vec())]);
        assert_eq!(merged.get(b"c").unwrap().unwrap()[..], vec![4; half / 2]);
        // Its locks went with it.
        family.put(b"d", b"6").unwrap();
    }
}

/// What an optimistic transaction reads beyond its limit is refused. What it has read before is checked.
#[test]
fn an_optimistic_transaction_refuses_the_read_over_its_limit_and_may_be_committed() {
    for (by_cursor, is_disturbed) in [(false, false), (false, true), (true, false), (true, true)] {
        let parts = Parts::new(16);
        let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
        let family = db.column_family("rows", CfOptions::default()).unwrap();
        family.put("row", "1").unwrap();
        let mut transaction = db.optimistic_transaction();
        let mut cursor = transaction.cursor(&family, ..).unwrap();
        // That is one range, however often it is read.
        (0..10_000).for_each(|_| assert!(cursor.seek("row").unwrap()));
        let read = |number: u32| {
            let key = number.to_be_bytes();
            match by_cursor {
                true => transaction.cursor(&family, key..=key).unwrap().next().map(drop),
                false => transaction.get(&family, key).map(drop),
            }
        };
        let refused = (0..u32::MAX).step_by(2).find_map(|number| read(number).err()).unwrap();
        assert_eq!(refused.kind(), ErrorKind::LimitExceeded);
        assert!(refused.to_string().contains("an optimistic transaction"), "{refused}");
        assert!(cursor.seek("apart").is_err() && !cursor.valid(), "it stands nowhere");
        if is_disturbed {
            family.put(0_u32.to_be_bytes(), "2").unwrap();
        }
        transaction.put(&family, "row", "3").unwrap();
        assert_eq!(kind(transaction.commit()), is_disturbed.then_some(ErrorKind::Conflict));
        assert!(cursor.seek("apart").unwrap(), "nothing is noted any more");
    }
}

#[test]
fn empty_batches_and_empty_ranges_do_nothing() {
    let parts = Parts::new(5);
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    let family = db.column_family("rows", CfOptions::default()).unwrap();
    db.batch().commit().unwrap();
    db.batch().commit_with(Durability::Sync).unwrap();
    db.transaction().commit().unwrap();
    db.sync().unwrap();
    family.put(b"k", b"v").unwrap();
    family.delete_range(b"k", b"k").unwrap();
    family.delete_range(b"", b"").unwrap();
    assert_eq!(kind(family.delete_range(b"l", b"k")), Some(ErrorKind::InvalidArgument));
    for stage in 0..3 {
        assert_eq!(family.get(b"k").unwrap().as_deref(), Some(&b"v"[..]), "stage {stage}");
        assert!(!family.cursor(&b"k"[..]..&b"k"[..]).unwrap().next().unwrap());
        assert!(!family.cursor(&b"z"[..]..&b"a"[..]).unwrap().next().unwrap());
        match stage {
            0 => family.flush().unwrap(),
            _ => family.compact_range(..).unwrap(),
        }
    }
    assert_eq!(family.multi_get::<&[u8]>(&[]).unwrap(), []);
    // A flush of a range delete that covers nothing must not leave a table that cannot be read.
    family.delete_range(b"x", b"x").unwrap();
    family.flush().unwrap();
    db.flush().unwrap();
    family.compact_range("a".."a").unwrap();
    let refused = family.compact_range("b".."a");
    assert_eq!(kind(refused), Some(ErrorKind::InvalidArgument));
    db.close().unwrap();
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    assert_eq!(rows(&db.existing_column_family("rows").unwrap().unwrap()).len(), 1);
}

#[test]
fn durabilities_of_a_database_are_not_to_be_had_per_batch() {
    let parts = Parts::new(6);
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    let family = db.column_family("rows", CfOptions::default()).unwrap();
    for durability in [Durability::None, Durability::Interval { milliseconds: 5 }] {
        let mut batch = db.batch();
        batch.put(&family, b"k", b"v");
        assert_eq!(kind(batch.commit_with(durability)), Some(ErrorKind::InvalidArgument));
    }
    assert_eq!(family.get(b"k").unwrap(), None);
    let mut batch = db.batch();
    batch.put(&family, b"k", b"v");
    batch.commit_with(Durability::Sync).unwrap();
    let files = parts.files.crash_clone(0, lithify::fs::CrashKeep::Nothing);
    let crashed = Parts { files, ..parts.clone() };
    let db = Db::open_in(PATH, small_options(), crashed.world()).unwrap();
    let family = db.existing_column_family("rows").unwrap().unwrap();
    assert_eq!(family.get(b"k").unwrap().as_deref(), Some(&b"v"[..]));
}

/// Keys so long that the index of one table could not hold them: the flush writes several tables.
#[test]
fn a_memtable_with_more_keys_than_an_index_holds_is_flushed() {
    let parts = Parts::new(7);
    let options = Options {
        memory_budget_bytes: 4 << 30,
        memtable_bytes: 1 << 30,
        wal_bytes_max: 2 << 30,
        durability: Durability::None,
        background_threads: 0,
        ..Options::default()
    };
    let db = Db::open_in(PATH, options.clone(), parts.world()).unwrap();
    let plain = CfOptions { compression: "none".parse().unwrap(), ..CfOptions::default() };
    let family = db.column_family("rows", plain).unwrap();
    let key = |number: u64| {
        let mut key = vec![b'k'; KEY_BYTES_MAX];
        key[KEY_BYTES_MAX - 8..].copy_from_slice(&number.to_be_bytes());
        key
    };
    // The index of a table is at most 256 MiB; every key is a separator.
    let count = (256 << 20) / KEY_BYTES_MAX as u64 + 200;
    // What is below lets the flush write to level 0, where a table has no other end.
    for number in [0, count - 1] {
        family.put(key(number), b"older").unwrap();
    }
    family.flush().unwrap();
    for number in 0..count {
        family.put(key(number), number.to_be_bytes()).unwrap();
    }
    family.flush().unwrap();
    assert_eq!(parts.names_ending(".sst").len(), 1 + 3, "each has half of what an index may hold");
    for number in [0, 1, count / 2, count - 1] {
        assert_eq!(family.get(key(number)).unwrap().as_deref(), Some(&number.to_be_bytes()[..]));
    }
    db.close().unwrap();
    let db = Db::open_in(PATH, options, parts.world()).unwrap();
    let family = db.existing_column_family("rows").unwrap().unwrap();
    let mut cursor = family.cursor(..).unwrap();
    let mut seen = 0;
    while cursor.next().unwrap() {
        seen += 1;
    }
    assert_eq!(seen, count);
}

/// Leaves a database that has so many sequence numbers left.
fn database_with_sequences_left(parts: &Parts, options: &Options, left: u64) {
    let db = Db::open_in(PATH, options.clone(), parts.world()).unwrap();
    db.column_family("rows", CfOptions::default()).unwrap().put(b"first", b"1").unwrap();
    db.close().unwrap();
    let files: Arc<dyn FileSystem> = Arc::new(parts.files.clone());
    let mut manifest = Manifest::open(files, Path::new(PATH)).unwrap().manifest;
    let last = Change::LastSequence(COMMIT_SEQUENCE_MAX - left);
    manifest.append(vec![last].into()).unwrap();
}

#[test]
fn when_sequence_numbers_are_used_up_writes_are_refused_and_nothing_is_lost() {
    for durability in [Durability::Buffered, Durability::None] {
        let parts = Parts::new(8);
        let options = Options { durability, ..small_options() };
        database_with_sequences_left(&parts, &options, 5);
        let open = || {
            let db = Db::open_in(PATH, options.clone(), parts.world()).unwrap();
            let family = db.existing_column_family("rows").unwrap().unwrap();
            (db, family)
        };
        let (db, family) = open();
        family.put(b"a", b"1").unwrap();
        family.delete_range(b"b", b"c").unwrap();
        let mut batch = db.batch();
        for row in 0..4_u8 {
            batch.put(&family, [row], b"too many");
        }
        assert_eq!(kind(batch.commit()), Some(ErrorKind::LimitExceeded));
        family.put(b"d", b"2").unwrap();
        let mut ingest = family.ingest().unwrap();
        ingest.put(b"e", b"3").unwrap();
        ingest.commit().unwrap();
        family.put(b"f", b"4").unwrap();
        let expected = rows(&family);
        assert_eq!(expected.len(), 5);
        for _ in 0..2 {
            assert_eq!(kind(family.put(b"g", b"5")), Some(ErrorKind::LimitExceeded));
            assert_eq!(kind(family.delete_range(b"a", b"z")), Some(ErrorKind::LimitExceeded));
        }
        let mut ingest = family.ingest().unwrap();
        ingest.put(b"g", b"5").unwrap();
        assert_eq!(kind(ingest.commit()), Some(ErrorKind::LimitExceeded));
        assert_eq!(rows(&family), expected);
        family.compact_range(..).unwrap();
        assert_eq!(rows(&family), expected);
        db.close().unwrap();
        let (_db, family) = open();
        assert_eq!(rows(&family), expected);
        assert_eq!(kind(family.put(b"g", b"5")), Some(ErrorKind::LimitExceeded));
    }
}
