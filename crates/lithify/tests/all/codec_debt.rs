//! Tables in another codec than their level's: recorded, shown, rewritten once. And blocks that
//! are in the wanted codec already: copied as they are stored.

use crate::support::{PATH, Parts, Random, rows, small_options};
use lithify::stats::{Counter, JobFigure};
use lithify::{CfOptions, ColumnFamily, Compression, Db};

fn options(compression: &str) -> CfOptions {
    CfOptions {
        block_size_bytes: 1024,
        table_bytes: 64 << 10,
        base_level_bytes_max: 64 << 10,
        compression: compression.parse().unwrap(),
        ..CfOptions::default()
    }
}

fn open(parts: &Parts) -> Db {
    Db::open_in(PATH, small_options(), parts.world()).unwrap()
}

fn load(family: &ColumnFamily, numbers: std::ops::Range<u32>) {
    let mut random = Random(u64::from(numbers.start));
    for number in numbers {
        family.put(format!("key{number:05}").as_bytes(), random.bytes(100)).unwrap();
    }
}

fn debt_files(db: &Db) -> u64 {
    db.stats().levels.iter().map(|level| level.codec_debt_files).sum()
}

fn tables(db: &Db) -> u64 {
    db.stats().levels.iter().map(|level| level.files).sum()
}

fn repaid(db: &Db) -> u64 {
    db.stats().figures.counter(Counter::CompactionsCodecDebt)
}

#[test]
fn a_changed_codec_is_recorded_and_repaid_once() {
    let parts = Parts::new(1);
    let before = {
        let db = open(&parts);
        let family = db.column_family("rows", options("none")).unwrap();
        load(&family, 0..3000);
        family.compact_range(..).unwrap();
        db.wait_for_compaction().unwrap();
        assert_eq!((debt_files(&db), repaid(&db)), (0, 0));
        // Back before anything was done: nothing is left to do.
        db.column_family("rows", options("lz4")).unwrap();
        assert_eq!(debt_files(&db), tables(&db));
        db.column_family("rows", options("none")).unwrap();
        assert_eq!(debt_files(&db), 0);
        db.column_family("rows", options("zstd-1")).unwrap();
        rows(&family)
    };
    let stored_bytes = parts.bytes_ending(".sst");
    let db = open(&parts);
    let in_debt = tables(&db);
    assert_eq!(debt_files(&db), in_debt, "the manifest knows");
    db.wait_for_compaction().unwrap();
    assert_eq!((debt_files(&db), repaid(&db)), (0, in_debt));
    assert!(parts.bytes_ending(".sst") < stored_bytes * 3 / 4);
    db.wait_for_compaction().unwrap();
    assert_eq!(repaid(&db), in_debt, "every table is rewritten once");
    let family = db.column_family("rows", options("zstd-1")).unwrap();
    assert_eq!(rows(&family), before);
}

#[test]
fn the_debt_of_a_move_is_repaid_when_nothing_else_is_due() {
    let parts = Parts::new(2);
    let db = open(&parts);
    let family = db.column_family("rows", options("none,none,lz4")).unwrap();
    // One row of every run is in the last level already, or flushes would go there, too.
    load(&family, 0..2000);
    family.compact_range(..).unwrap();
    for run in 20..65 {
        load(&family, 0..1);
        load(&family, run * 100..run * 100 + 100);
        family.flush().unwrap();
    }
    db.wait_for_compaction().unwrap();
    let figures = db.stats().figures;
    let (moves, repaid_files) = (figures.job_total(JobFigure::Moves), repaid(&db));
    assert!(moves > 0 && repaid_files > 0 && repaid_files <= moves, "{moves} {repaid_files}");
    assert_eq!(debt_files(&db), 0);
    assert_eq!(rows(&family).len(), 6500);
}

#[test]
fn skewed_writes_copy_the_blocks_that_they_do_not_touch() {
    let parts = Parts::new(3);
    let db = open(&parts);
    let family = db.column_family("rows", options("lz4")).unwrap();
    assert_eq!(family.options().compression, Compression::LZ4.into());
    load(&family, 0..5000);
    family.compact_range(..).unwrap();
    let copied = |figure| db.stats().figures.job_total(figure);
    for number in 1000..1050 {
        family.put(format!("key{number:05}").as_bytes(), b"new").unwrap();
    }
    let before = copied(JobFigure::CopiedBlocks);
    family.compact_range(..).unwrap();
    let blocks = copied(JobFigure::CopiedBlocks) - before;
    assert!(blocks > 20, "{blocks}");
    assert!(copied(JobFigure::CopiedBytes) > blocks * 300);
    let stats = db.stats();
    assert!(stats.to_string().contains("Blocks copied as stored: L"));
    assert!(stats.to_json().contains("\"copied-blocks\":"));
    let found = rows(&family);
    assert_eq!(found.len(), 5000);
    assert_eq!(found[&b"key01049"[..]], b"new");
    assert_ne!(found[&b"key01050"[..]], b"new");
}
