//! Column families from their making to the removal of their last file, and the log segments that
//! they share.

use crate::support::{PATH, Parts, Random, rows, small_options, watched};
use lithify::fs::World;
use lithify::{CfOptions, Db, Durability, ErrorKind, Options, inspect};
use std::path::Path;

fn open(parts: &Parts) -> Db {
    Db::open_in(PATH, small_options(), parts.world()).unwrap()
}

fn is_closed<T>(result: lithify::Result<T>) -> bool {
    matches!(result, Err(error) if error.kind() == ErrorKind::Closed)
}

#[test]
fn ids_are_never_used_again() {
    let parts = Parts::new(1);
    let mut seen = std::collections::BTreeSet::new();
    for round in 0..4 {
        let db = open(&parts);
        for name in ["a", "b"] {
            let family = db.column_family(name, CfOptions::default()).unwrap();
            assert!(seen.insert(family.id()), "round {round}: id {} came twice", family.id());
            family.put(b"key", name.as_bytes()).unwrap();
        }
        assert_eq!(db.column_family_names(), ["a", "b"]);
        db.drop_column_family("a").unwrap();
        assert_eq!(db.column_family_names(), ["b"]);
        let again = db.column_family("a", CfOptions::default()).unwrap();
        assert!(seen.insert(again.id()));
        assert_eq!(again.get(b"key").unwrap(), None, "a new family of an old name is empty");
        for name in ["a", "b"] {
            db.drop_column_family(name).unwrap();
        }
        assert!(db.column_family_names().is_empty());
        db.close().unwrap();
    }
    assert_eq!(open(&parts).column_family_names(), Vec::<String>::new());
}

/// A put makes the default family where there is none, but never changes one that somebody makes meanwhile.
#[test]
fn a_first_put_leaves_the_options_of_the_default_family() {
    let with_fanout = CfOptions { fanout: 5, ..CfOptions::default() };
    let parts = Parts::new(7);
    for round in 0..100 {
        let path = format!("/round{round}");
        let db = Db::open_in(path, small_options(), parts.world()).unwrap();
        let barrier = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                barrier.wait();
                db.put("a", "b").unwrap();
            });
            barrier.wait();
            db.column_family("default", with_fanout.clone()).unwrap();
        });
        assert_eq!(db.default_family().unwrap().options().fanout, 5, "round {round}");
    }
}

#[test]
fn names_and_unknown_families_are_checked() {
    let parts = Parts::new(2);
    let db = open(&parts);
    let kind = |result: lithify::Result<_>| result.err().map(|error: lithify::Error| error.kind());
    let make = |name: &str| kind(db.column_family(name, CfOptions::default()).map(drop));
    assert_eq!(make(""), Some(ErrorKind::InvalidArgument));
    assert_eq!(make(&"n".repeat(256)), Some(ErrorKind::LimitExceeded));
    assert_eq!(make(&"n".repeat(255)), None);
    assert_eq!(kind(db.drop_column_family("nobody")), Some(ErrorKind::NotFound));
    assert!(db.existing_column_family("nobody").unwrap().is_none());
    let other = Db::open_in("/other", small_options(), parts.world()).unwrap();
    let stranger = other.column_family("x", CfOptions::default()).unwrap();
    let mut batch = db.batch();
    batch.put(&stranger, b"k", b"v");
    assert_eq!(kind(batch.commit()), Some(ErrorKind::InvalidArgument));
    let snapshot = db.snapshot();
    assert_eq!(kind(stranger.get_at(b"k", &snapshot).map(drop)), Some(ErrorKind::InvalidArgument));
}

#[test]
fn handles_on_a_dropped_family_say_closed() {
    let parts = Parts::new(3);
    let db = open(&parts);
    let family = db.column_family("a", CfOptions::default()).unwrap();
    let keeper = db.column_family("b", CfOptions::default()).unwrap();
    family.put(b"k", b"v").unwrap();
    let snapshot = db.snapshot();
    db.drop_column_family("a").unwrap();
    assert!(is_closed(family.put(b"k", b"v")));
    assert!(is_closed(family.delete(b"k")));
    assert!(is_closed(family.single_delete(b"k")));
    assert!(is_closed(family.delete_range(b"a", b"z")));
    assert!(is_closed(family.get(b"k")));
    assert!(is_closed(family.get_at(b"k", &snapshot)));
    assert!(is_closed(family.multi_get(&[b"k"])));
    assert!(is_closed(family.contains(b"k")));
    assert!(is_closed(family.cursor(..)));
    assert!(is_closed(family.cursor_at(.., &snapshot)));
    assert!(is_closed(family.prefix_cursor(b"k")));
    assert!(is_closed(family.flush()));
    assert!(is_closed(family.compact_range(..)));
    let mut transaction = db.transaction();
    assert!(is_closed(transaction.put(&family, b"k", b"v")));
    assert!(is_closed(transaction.get(&family, b"k")));
    drop(transaction);
    let mut batch = db.batch();
    batch.put(&keeper, b"k", b"with").put(&family, b"k", b"without");
    assert!(is_closed(batch.commit()), "a batch for a dropped family is refused whole");
    assert_eq!(keeper.get(b"k").unwrap(), None);
}

#[test]
fn handles_on_a_closed_database_say_closed() {
    let parts = Parts::new(4);
    let db = open(&parts);
    let family = db.column_family("a", CfOptions::default()).unwrap();
    family.put(b"k", b"v").unwrap();
    let snapshot = db.snapshot();
    let mut transaction = db.transaction();
    transaction.put(&family, b"t", b"v").unwrap();
    db.close().unwrap();
    assert!(is_closed(family.put(b"k", b"v")));
    assert!(is_closed(family.get(b"k")));
    assert!(is_closed(family.get_at(b"k", &snapshot)));
    assert!(is_closed(family.cursor(..)));
    assert!(is_closed(family.flush()));
    assert!(is_closed(family.compact_range(..)));
    assert!(is_closed(transaction.get_for_update(&family, b"k")));
    assert!(is_closed(transaction.commit()));
    drop((snapshot, family));
    let db = open(&parts);
    let family = db.existing_column_family("a").unwrap().unwrap();
    assert_eq!(rows(&family).len(), 1);
}

#[test]
fn slices_and_cursors_outlive_drop_and_close() {
    let parts = Parts::new(5);
    let db = open(&parts);
    let family = db.column_family("a", CfOptions::default()).unwrap();
    let mut random = Random(5);
    for number in 0..500 {
        family.put(format!("key{number:03}").as_bytes(), random.bytes(100)).unwrap();
    }
    family.compact_range(..).unwrap();
    family.put(b"key000", b"newest").unwrap();
    let expected = rows(&family);
    let slice = family.get(b"key123").unwrap().unwrap();
    let mut first = family.cursor(..).unwrap();
    let mut second = family.cursor(..).unwrap();
    assert!(first.next().unwrap());
    db.drop_column_family("a").unwrap();
    drop(family);
    let mut found = vec![(first.key().to_vec(), first.value().to_vec())];
    while first.next().unwrap() {
        found.push((first.key().to_vec(), first.value().to_vec()));
    }
    assert_eq!(found, expected.clone().into_iter().collect::<Vec<_>>());
    db.close().unwrap();
    let mut count = 0;
    while second.next().unwrap() {
        assert_eq!(expected.get(second.key()).map(Vec::as_slice), Some(second.value()));
        count += 1;
    }
    assert_eq!(count, expected.len());
    drop((first, second));
    assert_eq!(slice[..], expected[&b"key123"[..]][..]);
}

#[test]
fn files_of_a_dropped_family_go_with_the_last_cursor() {
    let parts = Parts::new(6);
    let db = open(&parts);
    let family = db.column_family("a", CfOptions::default()).unwrap();
    for number in 0..100u32 {
        family.put(number.to_be_bytes(), [7; 100]).unwrap();
    }
    family.flush().unwrap();
    family.put(b"more", b"to flush").unwrap();
    let cursor = family.cursor(..).unwrap();
    let other = family.cursor(..).unwrap();
    assert_eq!(parts.names_ending(".sst").len(), 1);
    db.drop_column_family("a").unwrap();
    db.wait_for_compaction().unwrap();
    assert_eq!(parts.names_ending(".sst").len(), 1, "a cursor still reads it");
    drop(cursor);
    db.wait_for_compaction().unwrap();
    assert_eq!(parts.names_ending(".sst").len(), 1, "another cursor still reads it");
    drop(other);
    db.wait_for_compaction().unwrap();
    assert_eq!(parts.names_ending(".sst").len(), 0, "nobody reads it any more");
}

#[test]
fn files_of_a_family_dropped_during_its_flush_go_too() {
    let parts = Parts::new(7);
    let db = open(&parts);
    let family = db.column_family("a", CfOptions::default()).unwrap();
    let mut random = Random(7);
    // Enough to start flushes, which nobody has driven yet.
    for number in 0..200u32 {
        family.put(number.to_be_bytes(), random.bytes(1000)).unwrap();
    }
    db.drop_column_family("a").unwrap();
    db.wait_for_compaction().unwrap();
    assert_eq!(parts.names_ending(".sst"), Vec::<String>::new());
    db.close().unwrap();
    let db = open(&parts);
    assert!(db.column_family_names().is_empty());
}

#[test]
fn batches_and_snapshots_span_families() {
    let parts = Parts::new(8);
    let db = open(&parts);
    let a = db.column_family("a", CfOptions::default()).unwrap();
    let b = db.column_family("b", CfOptions::default()).unwrap();
    let mut batch = db.batch();
    batch.put(&a, b"k", b"1").put(&b, b"k", b"1");
    batch.commit().unwrap();
    let before = db.snapshot();
    let mut batch = db.batch();
    batch.put(&a, b"k", b"2").delete(&b, b"k").put(&b, b"l", b"2");
    assert_eq!(batch.len(), 3);
    batch.commit().unwrap();
    a.flush().unwrap();
    b.compact_range(..).unwrap();
    assert_eq!(a.get_at(b"k", &before).unwrap().as_deref(), Some(&b"1"[..]));
    assert_eq!(b.get_at(b"k", &before).unwrap().as_deref(), Some(&b"1"[..]));
    assert_eq!(b.get_at(b"l", &before).unwrap(), None);
    assert_eq!(a.get(b"k").unwrap().as_deref(), Some(&b"2"[..]));
    assert_eq!(b.get(b"k").unwrap(), None);
    // A crash finds both families at the same batch, whichever was flushed.
    let files = parts.files.crash_clone(0, lithify::fs::CrashKeep::Everything);
    let crashed = Parts { files, ..parts.clone() };
    let db = open(&crashed);
    let a = db.existing_column_family("a").unwrap().unwrap();
    let b = db.existing_column_family("b").unwrap().unwrap();
    assert_eq!(a.get(b"k").unwrap().as_deref(), Some(&b"2"[..]));
    assert_eq!(rows(&b).into_iter().collect::<Vec<_>>(), [(b"l".to_vec(), b"2".to_vec())]);
}

#[test]
fn an_idle_family_does_not_pin_the_log_for_ever() {
    watched("idle family", || {
        let parts = Parts::new(9);
        let options = Options { wal_bytes_max: 256 << 10, ..small_options() };
        let db = Db::open_in(PATH, options.clone(), parts.world()).unwrap();
        let idle = db.column_family("idle", CfOptions::default()).unwrap();
        let busy = db.column_family("busy", CfOptions::default()).unwrap();
        idle.put(b"one", b"row").unwrap();
        let mut random = Random(9);
        let segment_bytes = 64 << 10;
        for number in 0..3000u32 {
            busy.put(number.to_be_bytes(), random.bytes(1000)).unwrap();
            if number % 20 == 0 {
                db.wait_for_compaction().unwrap();
                let live = db.stats().wal_live_bytes;
                let bound = options.wal_bytes_max + segment_bytes;
                assert!(live <= bound, "{live} bytes of log are needed, {bound} allowed");
                // Two segments are kept to be written over.
                let on_disk = parts.bytes_ending(".wal");
                let bound = bound + 2 * (segment_bytes + 2000);
                assert!(on_disk <= bound, "{on_disk} bytes of log on disk, {bound} allowed");
            }
        }
        let names = parts.names_ending(".wal");
        assert!(names.len() < 8, "{names:?}");
        assert_eq!(idle.get(b"one").unwrap().as_deref(), Some(&b"row"[..]));
        db.close().unwrap();
        let db = Db::open_in(PATH, options, parts.world()).unwrap();
        let idle = db.existing_column_family("idle").unwrap().unwrap();
        assert_eq!(idle.get(b"one").unwrap().as_deref(), Some(&b"row"[..]));
        assert_eq!(rows(&db.existing_column_family("busy").unwrap().unwrap()).len(), 3000);
    });
}

#[test]
fn segments_go_only_when_every_family_has_flushed_past_them() {
    let parts = Parts::new(10);
    let db = open(&parts);
    let a = db.column_family("a", CfOptions::default()).unwrap();
    let b = db.column_family("b", CfOptions::default()).unwrap();
    b.put(b"held", b"only in the log").unwrap();
    let mut random = Random(10);
    for number in 0..300u32 {
        a.put(number.to_be_bytes(), random.bytes(1000)).unwrap();
    }
    a.flush().unwrap();
    db.wait_for_compaction().unwrap();
    let segments = parts.names_ending(".wal").len();
    assert!(segments >= 4, "{segments} segments: b still needs the first");
    let files = parts.files.crash_clone(0, lithify::fs::CrashKeep::Everything);
    let crashed = open(&Parts { files, ..parts.clone() });
    let held = crashed.existing_column_family("b").unwrap().unwrap().get(b"held").unwrap();
    assert_eq!(held.as_deref(), Some(&b"only in the log"[..]));
    drop(crashed);
    db.drop_column_family("b").unwrap();
    db.wait_for_compaction().unwrap();
    // The one being written, the one prepared to follow it, and two to be written over.
    let left = parts.names_ending(".wal").len();
    assert!(left <= 4, "{left} segments: a drop frees what only the dropped family needed");
    db.close().unwrap();
    assert_eq!(rows(&open(&parts).existing_column_family("a").unwrap().unwrap()).len(), 300);
}

#[test]
fn recycled_segments_replay_nothing_old() {
    let parts = Parts::new(11);
    let db = open(&parts);
    let family = db.column_family("a", CfOptions::default()).unwrap();
    let mut random = Random(11);
    for round in 0..6u32 {
        for number in 0..150u32 {
            family.put(number.to_be_bytes(), random.bytes(1000)).unwrap();
        }
        family.delete_range(0u32.to_be_bytes(), 200u32.to_be_bytes()).unwrap();
        family.flush().unwrap();
        family.put(b"round", round.to_le_bytes()).unwrap();
        let files = parts.files.crash_clone(u64::from(round), lithify::fs::CrashKeep::Everything);
        let crashed = open(&Parts { files, ..parts.clone() });
        let rows = rows(&crashed.existing_column_family("a").unwrap().unwrap());
        let expected = (b"round".to_vec(), round.to_le_bytes().to_vec());
        assert_eq!(rows.into_iter().collect::<Vec<_>>(), [expected]);
    }
}

#[test]
fn options_given_at_reopening_last() {
    let parts = Parts::new(12);
    let other = CfOptions {
        block_size_bytes: 4096,
        fanout: 5,
        prefix_length_bytes: 3,
        compression: "snappy,lz4,zlib-6".parse().unwrap(),
        ..CfOptions::default()
    };
    {
        let db = open(&parts);
        let family = db.column_family("a", CfOptions::default()).unwrap();
        family.put(b"key", b"old").unwrap();
        family.flush().unwrap();
        // What is left open is filled in.
        let kept = CfOptions { block_size_bytes: 16 << 10, ..CfOptions::default() };
        assert_eq!(family.options(), kept);
    }
    {
        let db = open(&parts);
        let family = db.column_family("a", other.clone()).unwrap();
        assert_eq!(family.options(), other);
        family.put(b"kez", b"new").unwrap();
        family.compact_range(..).unwrap();
    }
    let db = open(&parts);
    let family = db.existing_column_family("a").unwrap().unwrap();
    assert_eq!(family.options(), other);
    let mut cursor = family.prefix_cursor(b"key").unwrap();
    assert!(cursor.next().unwrap());
    assert_eq!((cursor.key(), cursor.value()), (&b"key"[..], &b"old"[..]));
    assert!(!cursor.next().unwrap());
}

#[test]
fn without_a_log_a_crash_finds_all_families_at_one_flush() {
    let parts = Parts::new(13);
    let options = Options { durability: Durability::None, ..small_options() };
    let db = Db::open_in(PATH, options.clone(), parts.world()).unwrap();
    let a = db.column_family("a", CfOptions::default()).unwrap();
    let b = db.column_family("b", CfOptions::default()).unwrap();
    let mut random = Random(13);
    for number in 0..2000u32 {
        let mut batch = db.batch();
        batch.put(&a, b"last", number.to_le_bytes()).put(&b, b"last", number.to_le_bytes());
        batch.put(&a, number.to_be_bytes(), random.bytes(200));
        batch.commit().unwrap();
        if number % 97 == 0 {
            let files = parts.files.crash_clone(0, lithify::fs::CrashKeep::Nothing);
            let crashed = Parts { files, ..parts.clone() };
            let world: World = crashed.world();
            let db = Db::open_in(PATH, options.clone(), world).unwrap();
            let last = |name| {
                let family = db.existing_column_family(name).unwrap();
                family.and_then(|family| family.get(b"last").unwrap())
            };
            assert_eq!(last("a"), last("b"));
        }
        if number == 1000 {
            a.flush().unwrap();
        }
    }
    assert_eq!(parts.names_ending(".wal"), Vec::<String>::new());
    let refused = db.sync().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn no_family_waits_while_others_are_always_compacted_first() {
    let parts = Parts::new(11);
    let db = open(&parts);
    let shape = CfOptions {
        base_level_bytes_max: 128 << 10,
        table_bytes: 64 << 10,
        ..CfOptions::default()
    };
    let names = ["a", "b", "c"];
    let families = names.map(|name| db.column_family(name, shape.clone()).unwrap());
    let mut random = Random(5);
    let mut runs_max = [0; 3];
    for round in 0..60_000_u32 {
        for family in &families {
            family.put((random.next() as u32 % 200_000).to_be_bytes(), [7; 40]).unwrap();
        }
        if round % 500 == 0 {
            let tree = inspect::read_levels(&parts.files, Path::new(PATH), &Default::default());
            for (runs, family) in runs_max.iter_mut().zip(&tree.unwrap().families) {
                *runs = family.levels[0].files.max(*runs);
            }
        }
    }
    runs_max.sort_unstable();
    let [least, _, most] = runs_max;
    assert!(most > 4 && most <= least + 4, "{runs_max:?}");
}
