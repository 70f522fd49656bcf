//! Background work that fails without having touched anything is refused, counted and tried again;
//! the database goes on.

use crate::support::{PATH, Parts, rows, small_options};
use lithify::fs::FileCallKind;
use lithify::stats::Counter;
use lithify::{CfOptions, ColumnFamily, Db, ErrorKind};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn is_table(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "sst")
}

/// Lets every call of a kind on a table fail while the switch is on.
fn fail_on_tables(parts: &Parts, kind: FileCallKind) -> Arc<AtomicBool> {
    let is_on = Arc::new(AtomicBool::new(true));
    let switch = Arc::clone(&is_on);
    parts.files.set_fault(Box::new(move |call| {
        let fails = switch.load(Ordering::SeqCst) && call.kind == kind && is_table(call.path);
        fails.then(|| io::Error::from_raw_os_error(5))
    }));
    is_on
}

fn open(parts: &Parts) -> (Db, ColumnFamily) {
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    let family = db.column_family("rows", CfOptions::default()).unwrap();
    (db, family)
}

fn fill(family: &ColumnFamily, rows: std::ops::Range<u64>) {
    rows.for_each(|row| family.put(row.to_be_bytes(), [7; 100]).unwrap());
}

#[test]
fn a_flush_that_cannot_write_is_refused_and_succeeds_later() {
    for kind in [FileCallKind::Create, FileCallKind::Write, FileCallKind::SyncData] {
        let parts = Parts::new(1);
        let (db, family) = open(&parts);
        fill(&family, 0..100);
        let is_on = fail_on_tables(&parts, kind);
        let refused = family.flush().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Io, "{kind:?}: {refused}");
        fill(&family, 100..200);
        let stats = db.stats();
        assert_eq!(stats.figures.counter(Counter::BackgroundRefusals), 1);
        assert!(stats.last_refusal.contains("error"), "{}", stats.last_refusal);
        assert!(stats.to_string().contains("Refused: 1 flushes"), "{stats}");
        assert_eq!(rows(&family).len(), 200);
        assert_eq!(parts.names_ending(".sst").len(), 0, "{kind:?}");
        is_on.store(false, Ordering::SeqCst);
        family.flush().unwrap();
        assert_eq!(rows(&family).len(), 200);
        db.close().unwrap();
        let (_db, family) = open(&parts);
        assert_eq!(rows(&family).len(), 200);
        assert_eq!(parts.environment.endless_waits(), 0);
    }
}

/// Writers who find that memory is full and no flush succeeds get the error, not a wait.
#[test]
fn writers_are_told_when_no_flush_succeeds() {
    let parts = Parts::new(2);
    let (db, family) = open(&parts);
    let is_on = fail_on_tables(&parts, FileCallKind::Write);
    let mut written = 0;
    let error = loop {
        match family.put(u64::to_be_bytes(written), [7; 1000]) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 20_000, "the memory budget is passed");
    };
    assert_eq!(error.kind(), ErrorKind::Io);
    is_on.store(false, Ordering::SeqCst);
    fill(&family, written..written + 100);
    db.wait_for_compaction().unwrap();
    assert_eq!(rows(&family).len() as u64, written + 100);
    assert_eq!(parts.environment.endless_waits(), 0);
}

#[test]
fn a_compaction_that_cannot_read_is_refused_and_the_database_goes_on() {
    let parts = Parts::new(3);
    let (db, family) = open(&parts);
    for round in 0..3 {
        fill(&family, round * 50..round * 50 + 100);
        family.flush().unwrap();
    }
    let is_on = fail_on_tables(&parts, FileCallKind::Read);
    let refused = family.compact_range(..).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Io, "{refused}");
    is_on.store(false, Ordering::SeqCst);
    fill(&family, 1_000..1_100);
    family.flush().unwrap();
    assert_eq!(rows(&family).len(), 300);
    // Whoever asks for it has it tried again at once.
    family.compact_range(..).unwrap();
    db.wait_for_compaction().unwrap();
    assert_eq!(rows(&family).len(), 300);
    assert!(db.stats().figures.counter(Counter::BackgroundRefusals) >= 1);
    assert_eq!(parts.environment.endless_waits(), 0);
}

/// What cannot be read now may be read later: a cursor is placed again, an iterator has ended.
#[test]
fn an_error_ends_an_iterator_and_a_cursor_can_be_placed_again() {
    let parts = Parts::new(5);
    let (db, family) = open(&parts);
    fill(&family, 0..4_000);
    family.flush().unwrap();
    drop((db, family));
    let (db, family) = open(&parts);
    let snapshot = db.snapshot();
    let mut iter = family.range_at(.., &snapshot);
    let mut cursor = family.cursor_at(.., &snapshot).unwrap();
    let mut rows = family.cursor_at(.., &snapshot).unwrap();
    let last = iter.next().unwrap().unwrap().0;
    assert!(cursor.next().unwrap() && rows.next().unwrap());
    // Longer than what is in the cache.
    family.delete_range(0_u64.to_be_bytes(), 4_000_u64.to_be_bytes()).unwrap();
    let is_on = fail_on_tables(&parts, FileCallKind::Read);
    let failed =
        |item: &lithify::Result<_>| item.as_ref().is_err_and(|e| e.kind() == ErrorKind::Io);
    assert!(iter.any(|item| failed(&item)));
    while cursor.next().is_ok_and(|found| found) {}
    assert!(rows.iter().any(|item| failed(&item)));
    is_on.store(false, Ordering::SeqCst);
    assert!(iter.next().is_none() && iter.next_back().is_none());
    assert!(!cursor.valid() && !cursor.next().unwrap(), "false, though there are rows");
    assert!(cursor.seek(&last).unwrap() && cursor.key() == &last[..]);
    let mut count = 1;
    while cursor.next().unwrap() {
        count += 1;
    }
    assert_eq!(count, 4_000);
    assert!(rows.seek_to_last().unwrap() && rows.iter().next().is_none());
    assert!(rows.seek(3_000_u64.to_be_bytes()).unwrap());
    assert_eq!(rows.iter().count(), 999);
}

/// A damaged table cannot be compacted. The others can, and writing goes on.
#[test]
fn a_damaged_table_stops_only_its_own_compaction() {
    let parts = Parts::new(4);
    let (db, family) = open(&parts);
    fill(&family, 0..1_000);
    family.flush().unwrap();
    let name = parts.names_ending(".sst").swap_remove(0);
    db.close().unwrap();
    let file = {
        use lithify::fs::{FileSystem, OpenMode};
        parts.files.open(&Path::new(PATH).join(name), OpenMode::ReadWrite).unwrap()
    };
    file.write_at(&[io::IoSlice::new(&[0xa5; 16])], 100).unwrap();
    let (db, family) = open(&parts);
    let other = db.column_family("other", CfOptions::default()).unwrap();
    fill(&family, 500..700);
    assert_eq!(family.compact_range(..).unwrap_err().kind(), ErrorKind::Corruption);
    for round in 0..30 {
        fill(&other, round * 100..round * 100 + 1_000);
        fill(&family, 2_000 + round..2_100 + round);
    }
    other.compact_range(..).unwrap();
    assert_eq!(rows(&other).len(), 3_900);
    assert_eq!(family.get(2_001_u64.to_be_bytes()).unwrap().as_deref(), Some(&[7; 100][..]));
    assert_eq!(parts.environment.endless_waits(), 0);
    db.close().unwrap();
}

/// A panic of the thread that leads a commit group must not leave the others waiting.
#[test]
fn writers_behind_a_leader_that_panics_are_told() {
    let world = lithify::fs::World::system();
    let files = lithify::fs::MemoryFileSystem::new();
    let world = lithify::fs::World { files: Arc::new(files.clone()), ..world };
    let db = Db::open_in(PATH, small_options(), world).unwrap();
    let family = db.column_family("rows", CfOptions::default()).unwrap();
    fill(&family, 0..10);
    let calls = files.calls(FileCallKind::Append) + files.calls(FileCallKind::Write);
    assert!(calls > 0);
    files.set_fault(Box::new(|call| {
        let is_log = call.path.extension().is_some_and(|extension| extension == "wal");
        assert!(!is_log || call.index < 400, "the leader panics here");
        None
    }));
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4_u64)
            .map(|writer| {
                let family = family.clone();
                scope.spawn(move || {
                    let put = |row: u64| family.put((row * 4 + writer).to_be_bytes(), b"v");
                    (0..100_000).find_map(|row| put(row).err())
                })
            })
            .collect();
        for writer in writers {
            let error = writer.join().unwrap().expect("the log cannot be written");
            assert_eq!(error.kind(), ErrorKind::Poisoned, "{error}");
        }
    });
    assert!(family.get(3_u64.to_be_bytes()).unwrap().is_some(), "reading goes on");
}
