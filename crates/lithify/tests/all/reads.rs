//! Reads of many keys and rows: the same answers as one by one, with few reads of the files.

use crate::support::{PATH, Parts, Random, small_options};
use lithify::base::MemoryUse;
use lithify::fs::{CountingFileSystem, World};
use lithify::stats::{Counter, StatisticsSnapshot};
use lithify::{CfOptions, ColumnFamily, Compression, Db, ErrorKind, Options};
use std::sync::Arc;

const ROWS: u64 = 40_000;

/// The least there is: room for a seventh of the rows.
const SMALL_BUDGET_BYTES: usize = 1 << 20;

fn key(number: u64) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

/// A database over a counted disk.
struct Counted {
    counting: CountingFileSystem,
    world: World,
}

impl Counted {
    fn new() -> Counted {
        let parts = Parts::new(1);
        let counting = CountingFileSystem::new(Arc::new(parts.files.clone()));
        let world = World { files: Arc::new(counting.clone()), ..parts.world() };
        Counted { counting, world }
    }

    fn open(&self, memory_budget_bytes: usize) -> Db {
        let options = Options { memory_budget_bytes, ..small_options() };
        Db::open_in(PATH, options, self.world.clone()).unwrap()
    }

    /// Opens it with nothing in the cache, and one table of rows of 100 bytes.
    fn with_one_table() -> (Counted, Db, ColumnFamily) {
        let counted = Counted::new();
        let db = counted.open(8 << 20);
        let options = CfOptions { compression: Compression::NONE.into(), ..CfOptions::default() };
        let family = db.column_family("rows", options.clone()).unwrap();
        let mut random = Random(2);
        for number in 0..ROWS {
            family.put(key(number), random.bytes(92)).unwrap();
        }
        family.flush().unwrap();
        family.compact_range(..).unwrap();
        drop((family, db));
        let db = counted.open(SMALL_BUDGET_BYTES);
        let family = db.column_family("rows", options).unwrap();
        (counted, db, family)
    }

    /// Reads of tables so far.
    fn table_reads(&self) -> u64 {
        self.counting.all_counts().get("sst").map_or(0, |counts| counts.reads)
    }
}

fn counter(stats: &StatisticsSnapshot, counter: Counter) -> u64 {
    stats.figures.counter(counter)
}

#[test]
fn multi_get_answers_like_gets() {
    let parts = Parts::new(3);
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    let options = CfOptions {
        block_size_bytes: 1024,
        base_level_bytes_max: 64 << 10,
        table_bytes: 64 << 10,
        ..CfOptions::default()
    };
    let family = db.column_family("rows", options).unwrap();
    let mut random = Random(4);
    let mut snapshots = Vec::new();
    for round in 0..6 {
        for _ in 0..1500 {
            let (low, size) = (random.below(3000), random.below(200) as usize);
            match random.below(20) {
                0 => family.delete_range(key(low), key(low + 1 + random.below(40))).unwrap(),
                1..4 => family.delete(key(low)).unwrap(),
                _ => family.put(key(low), random.bytes(size)).unwrap(),
            }
        }
        snapshots.push(db.snapshot());
        // At the end there are a bottom level, runs of level 0, and a memtable.
        match round {
            0..2 | 3..5 => family.flush().unwrap(),
            2 => family.compact_range(..).unwrap(),
            _ => {}
        }
    }
    let levels = db.stats().levels;
    assert!(levels.iter().filter(|level| level.files > 0).count() >= 2, "several levels");
    for batch in 0..300 {
        let size = [0, 1, 2, 30, 400][batch % 5];
        // Keys of one neighbourhood or of everywhere, in any order, some twice, some absent.
        let reach = [3100, 60][batch % 2];
        let start = random.below(3100 - reach + 1);
        let keys: Vec<_> = (0..size).map(|_| key(start + random.below(reach))).collect();
        let one_by_one: Vec<_> = keys.iter().map(|key| family.get(key).unwrap()).collect();
        assert_eq!(family.multi_get(&keys).unwrap(), one_by_one);
        let snapshot = &snapshots[batch % snapshots.len()];
        let then: Vec<_> = keys.iter().map(|key| family.get_at(key, snapshot).unwrap()).collect();
        assert_eq!(family.multi_get_at(&keys, snapshot).unwrap(), then);
    }
    assert_eq!(counter(&db.stats(), Counter::MultiGets), 600);
}

#[test]
fn multi_get_reads_every_block_once_and_neighbours_together() {
    let (counted, _db, family) = Counted::with_one_table();
    family.get(key(0)).unwrap();
    let before = counted.table_reads();
    // All rows of about 16 blocks that lie side by side, from the last to the first.
    let keys: Vec<_> = (10_000..12_500).rev().map(key).collect();
    let values = family.multi_get(&keys).unwrap();
    assert!(values.iter().all(Option::is_some));
    let reads = counted.table_reads() - before;
    // Keys are looked for 128 at a time, which is less than a block has here.
    assert!(reads <= 2500 / 128 + 1 + 16, "{reads} reads");
    let before = counted.table_reads();
    // One row of each block of another such stretch.
    let keys: Vec<_> = (20_000..22_500).step_by(100).map(key).collect();
    family.multi_get(&keys).unwrap();
    let reads = counted.table_reads() - before;
    assert!(reads <= 3, "{reads} reads");
}

#[test]
fn a_long_cold_scan_takes_few_reads() {
    let (counted, db, family) = Counted::with_one_table();
    let before = counted.table_reads();
    let mut cursor = family.cursor(..).unwrap();
    let mut rows = 0;
    while cursor.next().unwrap() {
        rows += 1;
    }
    drop(cursor);
    assert_eq!(rows, ROWS);
    let reads = counted.table_reads() - before;
    // Four megabytes in reads that grow to 256 KiB, after the index and two single blocks.
    assert!((16..=25).contains(&reads), "{reads} reads");
    assert!(counter(&db.stats(), Counter::ReadAheadBytes) > 3_000_000);
}

#[test]
fn short_scans_read_nothing_ahead() {
    let (counted, db, family) = Counted::with_one_table();
    let mut random = Random(5);
    family.get(key(0)).unwrap();
    let before = counted.table_reads();
    let mut cursor = family.cursor(..).unwrap();
    for _ in 0..100 {
        assert!(cursor.seek(key(random.below(ROWS - 20))).unwrap());
        for _ in 0..10 {
            assert!(cursor.next().unwrap());
        }
    }
    drop(cursor);
    assert_eq!(counter(&db.stats(), Counter::ReadAheadBytes), 0);
    // A seek reads a block, and one more where the ten rows go on.
    assert!(counted.table_reads() - before <= 130);
}

#[test]
fn going_back_finds_every_row_of_a_cold_table() {
    let (_counted, db, family) = Counted::with_one_table();
    let mut cursor = family.cursor(..).unwrap();
    for number in (0..ROWS).rev() {
        assert!(cursor.prev().unwrap());
        assert_eq!(cursor.key(), key(number));
    }
    assert!(!cursor.prev().unwrap());
    drop(cursor);
    assert_eq!(counter(&db.stats(), Counter::ReadAheadBytes), 0);
}

#[test]
fn a_full_scan_does_not_push_out_the_hot_rows() {
    let (counted, _db, family) = Counted::with_one_table();
    let hot: Vec<_> = (0..20).map(|number| key(number * 997)).collect();
    for _ in 0..5 {
        for key in &hot {
            assert!(family.get(key).unwrap().is_some());
        }
    }
    let mut cursor = family.cursor(..).unwrap();
    while cursor.next().unwrap() {}
    drop(cursor);
    let before = counted.table_reads();
    for key in &hot {
        assert!(family.get(key).unwrap().is_some());
    }
    assert_eq!(counted.table_reads() - before, 0, "a hot block had to be read again");
}

/// Whether files in the directory can be read past the page cache; says so if they cannot.
fn has_direct_reads(directory: &std::path::Path) -> bool {
    use lithify::fs::{FileSystem, OpenMode, SystemFileSystem};
    let path = directory.join("probe");
    SystemFileSystem.open(&path, OpenMode::CreateNew).unwrap();
    let has = SystemFileSystem.open_direct(&path).unwrap().direct_io_alignment().is_some();
    if !has {
        let kind = SystemFileSystem.kind_name(directory);
        println!("no direct reads on {kind}: only the refusal is tested");
    }
    has
}

#[test]
fn direct_reads_give_the_same_rows_or_say_where_they_cannot_be_had() {
    let directory = tempfile::tempdir().unwrap();
    let has_direct = has_direct_reads(directory.path());
    let path = directory.path().join("db");
    let options = |direct_reads| Options { direct_reads, ..small_options() };
    {
        let db = Db::open(&path, options(false)).unwrap();
        let family = db.column_family("rows", CfOptions::default()).unwrap();
        let mut random = Random(6);
        for number in 0..3000 {
            family.put(key(number), random.bytes(100)).unwrap();
        }
        family.flush().unwrap();
    }
    if !has_direct {
        let error = Db::open(&path, options(true)).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("direct_reads"), "{error}");
        Db::open(&path, options(false)).unwrap();
        return;
    }
    let buffered = Db::open(&path, options(false)).unwrap();
    let expected = crate::support::rows(&buffered.existing_column_family("rows").unwrap().unwrap());
    drop(buffered);
    let db = Db::open(&path, options(true)).unwrap();
    let family = db.existing_column_family("rows").unwrap().unwrap();
    assert_eq!(crate::support::rows(&family), expected);
    // A compaction reads and writes through the same option.
    family.compact_range(..).unwrap();
    for (key, value) in expected.iter().step_by(7) {
        assert_eq!(&*family.get(key).unwrap().unwrap(), &value[..]);
    }
}

#[test]
fn direct_reads_are_refused_where_there_are_none() {
    let parts = Parts::new(7);
    let options = Options { direct_reads: true, ..small_options() };
    let error = Db::open_in(PATH, options, parts.world()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("a file system in memory"), "{error}");
    Db::open_in(PATH, small_options(), parts.world()).unwrap();
}

/// The value of a row: one in fifty is nearly a block.
fn value(number: u64) -> Vec<u8> {
    Random(number).bytes(if number.is_multiple_of(50) { 6_000 } else { 92 })
}

/// Databases of compacted rows at the even numbers, each in another codec, that hold a multiple of what their
/// cache does.
fn beyond_the_cache(each: impl Fn(&Db, &ColumnFamily, &str)) {
    for codec in ["none", "lz4", "zstd-1"] {
        let parts = Parts::new(3);
        let options = Options { memory_budget_bytes: SMALL_BUDGET_BYTES, ..small_options() };
        let db = Db::open_in(PATH, options, parts.world()).unwrap();
        let options = CfOptions { compression: codec.parse().unwrap(), ..CfOptions::default() };
        let family = db.column_family("rows", options).unwrap();
        for number in 0..ROWS {
            family.put(key(2 * number), value(number)).unwrap();
        }
        family.flush().unwrap();
        family.compact_range(..).unwrap();
        each(&db, &family, codec);
        let cache = db.stats().cache;
        assert!(cache.unwanted > 2_000, "{codec}: {cache:?}");
        assert!(cache.used_bytes <= cache.capacity_bytes, "{codec}: {cache:?}");
    }
}

#[test]
fn gets_that_pass_the_cache_by_find_the_same() {
    beyond_the_cache(|_, family, codec| {
        let mut random = Random(4);
        for _ in 0..8_000 {
            let number = random.next() % ROWS;
            let found = family.get(key(2 * number)).unwrap();
            assert_eq!(found.as_deref(), Some(&value(number)[..]), "{codec}, {number}");
            assert_eq!(family.get(key(2 * number + 1)).unwrap(), None, "{codec}, {number}");
        }
    });
}

#[test]
fn cursors_that_pass_the_cache_by_find_the_same() {
    beyond_the_cache(|db, family, codec| {
        let pinned_bytes = || {
            let memory = db.stats().memory;
            let figure = memory.iter().find(|figure| figure.memory_use == MemoryUse::Pinned);
            figure.map_or(0, |figure| figure.used_bytes)
        };
        let mut random = Random(5);
        let mut kept = Vec::new();
        for turn in 0..8_000 {
            let number = 3 + random.next() % (ROWS - 6);
            let from = key(2 * number);
            let other = 3 + random.next() % (ROWS - 6);
            let ahead = family.range(&from[..]..).take(3).zip(number..);
            let back = family.range(..&key(2 * other)[..]).rev().take(3).zip((0..other).rev());
            for (row, number) in ahead.chain(back) {
                let (found, found_value) = row.unwrap();
                let expected = (&key(2 * number)[..], &value(number)[..]);
                assert_eq!((&*found, &*found_value), expected, "{codec}");
            }
            if turn % 100 == 0 {
                let number = random.next() % ROWS;
                let mut cursor = family.cursor(..).unwrap();
                assert!(cursor.seek(key(2 * number)).unwrap());
                kept.push((number, cursor));
                let cache = db.stats().cache;
                assert!(cache.used_bytes <= cache.capacity_bytes, "{codec}: {cache:?}");
            }
        }
        // What cursors stand in stays as it is, counts as long as it is, and may end on any thread.
        for (number, cursor) in &kept {
            assert_eq!(cursor.value(), value(*number), "{codec}");
        }
        let with_kept = pinned_bytes();
        std::thread::spawn(move || drop(kept)).join().unwrap();
        assert!(with_kept > 0 && pinned_bytes() == 0, "{codec}: {with_kept}, {}", pinned_bytes());
    });
}

/// An old version at a restart shares nothing with the newer one before it, and a step back comes there
/// from a key of one version: with so many versions of the key before, some of them lie so.
#[test]
fn going_back_shows_the_newest_version_that_a_snapshot_sees() {
    for versions in 1..40_u8 {
        let parts = Parts::new(6);
        let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
        let family = db.column_family("rows", CfOptions::default()).unwrap();
        for number in 1..4 {
            family.put(key(number), [100; 20]).unwrap();
        }
        let mut snapshots = Vec::new();
        for version in 0..versions {
            family.put(key(0), [version; 20]).unwrap();
            snapshots.push((version, db.snapshot()));
        }
        db.flush().unwrap();
        for (version, snapshot) in &snapshots {
            let mut cursor = family.cursor_at(.., snapshot).unwrap();
            for (number, byte) in [(3, 100), (2, 100), (1, 100), (0, *version)] {
                assert!(cursor.prev().unwrap());
                let expected = (&key(number)[..], &[byte; 20][..]);
                assert_eq!((cursor.key(), cursor.value()), expected, "{version} of {versions}");
            }
            assert!(!cursor.prev().unwrap(), "{version} of {versions}");
        }
    }
}
