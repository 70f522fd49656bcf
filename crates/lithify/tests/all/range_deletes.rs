//! Many range deletes: a queue that is trimmed by them, and readers beside it. Work and memory grow
//! with the deletes, not with their square.

use crate::support::{PATH, Parts, Random, rows, small_options, watched};
use lithify::base::MemoryUse;
use lithify::stats::Counter;
use lithify::{CfOptions, ColumnFamily, Db, Options};

fn open(options: Options) -> (Parts, Db, ColumnFamily) {
    let parts = Parts::new(1);
    let db = Db::open_in(PATH, options, parts.world()).unwrap();
    let family = db.column_family("queue", CfOptions::default()).unwrap();
    (parts, db, family)
}

/// Puts a row and trims the queue before it, so many times, with a get after each. A cursor passes
/// over the dead rows at its head, so one is opened now and then.
fn trim(family: &ColumnFamily, from: u64, to: u64, cursor_every: u64) {
    for row in from..to {
        family.put(row.to_be_bytes(), b"item").unwrap();
        family.delete_range(b"", row.to_be_bytes()).unwrap();
        assert_eq!(family.get((row / 2).to_be_bytes()).unwrap(), None);
        assert!(family.get(row.to_be_bytes()).unwrap().is_some());
        if row % cursor_every == 0 {
            let mut cursor = family.cursor(..).unwrap();
            assert!(cursor.next().unwrap());
            assert_eq!(cursor.key(), row.to_be_bytes());
        }
    }
}

/// The memory that a memtable's range deletes take beside what was written.
fn memtable_bytes(db: &Db) -> u64 {
    let memory = db.stats().memory;
    let of_memtables = memory.iter().find(|figure| figure.memory_use == MemoryUse::Memtable);
    of_memtables.map_or(0, |figure| figure.used_bytes)
}

#[test]
fn a_queue_is_trimmed_in_time_and_memory_that_grow_with_it() {
    let options = Options {
        memory_budget_bytes: 64 << 20,
        memtable_bytes: 16 << 20,
        wal_bytes_max: 64 << 20,
        ..small_options()
    };
    let (_parts, db, family) = open(options);
    trim(&family, 1, 20_000, 1_000);
    let at_first = memtable_bytes(&db);
    trim(&family, 20_000, 80_000, 1_000);
    let later = memtable_bytes(&db);
    assert!(later < 5 * at_first, "{at_first} bytes, then {later}");
    db.flush().unwrap();
    family.compact_range(..).unwrap();
    assert_eq!(rows(&family).len(), 1);
    assert!(db.stats().levels.iter().map(|level| level.size_bytes).sum::<u64>() < 64 << 10);
}

/// Snapshots keep what they see, and cost a fragment each.
#[test]
fn snapshots_of_a_trimmed_queue_see_their_rows() {
    let (_parts, db, family) = open(small_options());
    let mut snapshots = Vec::new();
    for part in 0..20_u64 {
        trim(&family, 1 + part * 500, 1 + (part + 1) * 500, 100);
        snapshots.push(((part + 1) * 500, db.snapshot()));
    }
    let check = || {
        for (row, snapshot) in &snapshots {
            assert!(family.get_at(row.to_be_bytes(), snapshot).unwrap().is_some());
            assert_eq!(family.get_at((row - 1).to_be_bytes(), snapshot).unwrap(), None);
            let mut cursor = family.cursor_at(.., snapshot).unwrap();
            assert!(cursor.next().unwrap());
            assert_eq!(cursor.key(), row.to_be_bytes());
            assert!(!cursor.next().unwrap());
        }
    };
    check();
    family.flush().unwrap();
    check();
    family.compact_range(..).unwrap();
    check();
}

/// Ranges that do not meet stay apart, in memory, in a flush of several tables, and in compactions.
#[test]
fn a_hundred_thousand_ranges_apart_are_flushed_and_compacted() {
    let options = Options {
        memory_budget_bytes: 256 << 20,
        memtable_bytes: 48 << 20,
        wal_bytes_max: 256 << 20,
        ..small_options()
    };
    let (parts, db, family) = open(options);
    let key =
        |number: u64| [b"some-longer-prefix-of-keys-".as_slice(), &number.to_be_bytes()].concat();
    let mut random = Random(3);
    for number in 0..1_000 {
        family.put(key(number * 300), b"kept or not").unwrap();
    }
    family.compact_range(..).unwrap();
    let count = 100_000;
    for number in 0..count {
        family.delete_range(key(3 * number), key(3 * number + 1 + random.below(2))).unwrap();
        if number % 500 == 0 {
            assert_eq!(family.get(key(3 * number)).unwrap(), None);
        }
    }
    family.put(key(1), b"beside").unwrap();
    family.flush().unwrap();
    assert_eq!(family.get(key(0)).unwrap(), None);
    assert!(family.get(key(1)).unwrap().is_some());
    family.compact_range(..).unwrap();
    assert_eq!(rows(&family).len(), 1);
    db.wait_for_compaction().unwrap();
    assert!(parts.bytes_ending(".sst") < 64 << 10, "they have done their work");
}

/// Readers without a snapshot beside a thread that trims: what they see is never older than what
/// was committed before they began.
#[test]
fn readers_beside_range_deletes_see_the_newest() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::open(directory.path(), Options::default()).unwrap();
    let family = db.column_family("queue", CfOptions::default()).unwrap();
    let written = std::sync::atomic::AtomicU64::new(0);
    const ROWS: u64 = 20_000;
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let before @ ..ROWS = written.load(std::sync::atomic::Ordering::Acquire) {
                    if before > 1 {
                        assert_eq!(family.get((before - 1).to_be_bytes()).unwrap(), None);
                        let keys = [(before - 1).to_be_bytes(), (before / 2).to_be_bytes()];
                        assert_eq!(family.multi_get(&keys).unwrap(), [None, None]);
                    }
                    let mut cursor = family.cursor(..).unwrap();
                    assert!(before == 0 || cursor.next().unwrap());
                    assert!(before == 0 || cursor.key() >= &before.to_be_bytes()[..]);
                }
            });
        }
        for row in 1..=ROWS {
            let mut batch = db.batch();
            batch.delete_range(&family, b"", row.to_be_bytes());
            batch.put(&family, row.to_be_bytes(), b"item");
            batch.commit().unwrap();
            written.store(row, std::sync::atomic::Ordering::Release);
        }
    });
}

/// A range delete that is more than half of what a table takes of them: the merge must not end a table
/// before each key within it, let alone for ever before the first one.
#[test]
fn range_deletes_as_long_as_a_table_takes_are_flushed_and_compacted() {
    watched("a compaction with long range deletes", || {
        let smallest = CfOptions { table_bytes: 64 << 10, ..CfOptions::default() };
        let parts = Parts::new(2);
        let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
        let family = db.column_family("long", smallest).unwrap();
        let long = |first: u8, length: usize| {
            let mut key = vec![b'x'; length];
            key[0] = first;
            key
        };
        for round in 0..3_u8 {
            for row in b'b'..b'y' {
                family.put([row, round], b"old").unwrap();
            }
            family.flush().unwrap();
            for (from, to) in [(b'b', b'e'), (b'e', b'k'), (b'k', b't')] {
                family.delete_range(long(from, 20_000), long(to, 20_000)).unwrap();
            }
            family.put(b"c", b"kept").unwrap();
            family.put(b"d", b"kept").unwrap();
            family.put(b"m", b"kept").unwrap();
            let snapshot = db.snapshot();
            let expected = rows(&family);
            family.flush().unwrap();
            assert_eq!(rows(&family), expected);
            family.compact_range(..).unwrap();
            assert_eq!(rows(&family), expected);
            drop(snapshot);
            db.wait_for_compaction().unwrap();
            assert_eq!(rows(&family), expected);
        }
        assert_eq!(parts.environment.endless_waits(), 0);
    });
}

/// Deletes apart from each other stay apart for a snapshot. What comes over them all would touch each
/// of them every time: a new memtable begins.
#[test]
fn range_deletes_over_many_that_a_snapshot_keeps_apart_begin_a_memtable() {
    let options = Options {
        memory_budget_bytes: 256 << 20,
        memtable_bytes: 64 << 20,
        background_threads: 0,
        ..Options::default()
    };
    let (_parts, db, family) = open(options);
    for row in 0..20_000_u64 {
        let (start, end) = ((3 * row).to_be_bytes(), (3 * row + 1).to_be_bytes());
        family.delete_range(start, end).unwrap();
    }
    let snapshot = db.snapshot();
    let tables = || db.stats().levels.iter().map(|level| level.files).sum::<u64>();
    assert_eq!(tables(), 0);
    for row in 0..100_u64 {
        family.delete_range(b"", (60_000 + row).to_be_bytes()).unwrap();
    }
    family.put(1_u64.to_be_bytes(), b"new").unwrap();
    db.wait_for_compaction().unwrap();
    assert!(tables() > 0, "the memtable was flushed");
    assert_eq!(family.get_at(1_u64.to_be_bytes(), &snapshot).unwrap(), None);
    assert_eq!(rows(&family).len(), 1);
}

/// Keys of so many names, each with these numbers.
fn names(series: u32, numbers: std::ops::Range<u32>) -> impl Iterator<Item = Vec<u8>> {
    (0..series).flat_map(move |name| {
        numbers.clone().map(move |number| [name.to_be_bytes(), number.to_be_bytes()].concat())
    })
}

fn skipped(db: &Db) -> u64 {
    db.stats().figures.counter(Counter::SkippedEntries)
}

#[test]
fn scans_leave_what_a_range_delete_covers_in_older_tables() {
    let (_parts, db, family) = open(Options { background_threads: 0, ..small_options() });
    names(20, 0..500).for_each(|key| family.put(key, "sample").unwrap());
    family.compact_range(..).unwrap();
    let before = db.snapshot();
    for name in 0..20_u32 {
        let (start, end) =
            ([name.to_be_bytes(), [0; 4]], [name.to_be_bytes(), 400_u32.to_be_bytes()]);
        family.delete_range(start.concat(), end.concat()).unwrap();
    }
    // Newer than the deletes, in the memtable and then in a table of their own.
    let again: Vec<_> = names(20, 100..101).collect();
    again.iter().for_each(|key| family.put(key, "again").unwrap());
    let mut live: Vec<Vec<u8>> = names(20, 400..500).chain(again).collect();
    live.sort();
    for is_flushed in [false, true] {
        if is_flushed {
            family.flush().unwrap();
        }
        let passed_before = skipped(&db);
        let forward: Vec<_> = family.keys().map(|key| Vec::from(key.unwrap())).collect();
        assert_eq!(forward, live);
        let mut back: Vec<_> = family.keys().rev().map(|key| Vec::from(key.unwrap())).collect();
        back.reverse();
        assert_eq!(back, live);
        let passed = skipped(&db) - passed_before;
        assert!(passed < 2 * 20 * 24, "{passed} of {} covered entries passed", 2 * 20 * 400);
        assert_eq!(family.range_at(.., &before).count(), 20 * 500);
    }
}
