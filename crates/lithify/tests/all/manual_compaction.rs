//! Compactions by hand: what they write, and that they end.

use crate::support::{PATH, Parts, Random, rows, small_options};
use lithify::stats::{JobEnd, JobKind};
use lithify::{CfOptions, ColumnFamily, Db, ErrorKind, Options};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

fn fill(family: &ColumnFamily, rows: u64) {
    let mut random = Random(1);
    (0..rows).for_each(|row| family.put(row.to_be_bytes(), random.bytes(100)).unwrap());
}

fn compactions(db: &Db) -> Vec<JobEnd> {
    let jobs = db.stats().jobs.into_iter();
    jobs.filter(|end| end.job.kind == JobKind::Compaction).collect()
}

#[test]
fn a_compaction_by_hand_does_not_rewrite_what_it_wrote() {
    let parts = Parts::new(1);
    let options = Options { background_threads: 0, ..small_options() };
    let db = Db::open_in(PATH, options, parts.world()).unwrap();
    let family = db.column_family("rows", CfOptions::default()).unwrap();
    // Two that overlap: a table that none does is moved, and then rewritten where it is.
    fill(&family, 500);
    family.flush().unwrap();
    fill(&family, 500);
    db.compact_range(..).unwrap(); // There is no default family, and nothing to do.
    family.compact_range(..).unwrap();
    let first = compactions(&db);
    assert_eq!(first.len(), 1, "{first:?}");
    assert_eq!((first[0].job.source_level, first[0].entries_in), (Some(0), 1_000));
    // What was there before is rewritten where it is.
    family.compact_range(..).unwrap();
    let both = compactions(&db);
    assert_eq!(both.len(), 2, "{both:?}");
    assert_eq!((both[1].job.source_level, both[1].job.target_level), (Some(6), Some(6)));
    assert_eq!((both[1].entries_in, rows(&family).len()), (500, 500));
}

#[test]
fn a_range_is_that_of_the_standard_library() {
    let parts = Parts::new(2);
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    let family = db.column_family("rows", CfOptions::default()).unwrap();
    fill(&family, 500);
    family.compact_range(7_u64.to_be_bytes()..=9_u64.to_be_bytes()).unwrap();
    family.compact_range(7_u64.to_be_bytes()..).unwrap();
    family.compact_range((None, Some("b"))).unwrap();
    family.compact_range("b".."b").unwrap();
    let refused = family.compact_range("b".."a").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    assert_eq!(rows(&family).len(), 500);
}

/// The writer ends only once the compaction has.
#[test]
fn a_compaction_by_hand_ends_beside_a_writer() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        memory_budget_bytes: 4 << 20,
        memtable_bytes: 64 << 10,
        wal_bytes_max: 1 << 20,
        ..Options::default()
    };
    let db = Db::open(directory.path(), options).unwrap();
    let family = db.column_family("rows", CfOptions::default()).unwrap();
    fill(&family, 20_000);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = Random(2);
            while !is_over.load(Relaxed) {
                family.put(random.below(1 << 40).to_be_bytes(), random.bytes(200)).unwrap();
            }
        });
        family.compact_range(..).unwrap();
        is_over.store(true, Relaxed);
    });
}
