//! Checkpoints: what is in them while the database goes on, and what they share with it.

use super::scene::{
    COPY, Content, DB, assert_whole, close_and_go_on, content, disk, exists, family, key, names,
    open, open_at, options, put, world, write_database,
};
use crate::support::{rows, small_options, watched};
use lithify::fs::{FileCallKind, FileSystem, MemoryFileSystem, OpenMode, SystemEnvironment, World};
use lithify::{
    CfOptions, CheckpointOptions, Db, Durability, ErrorKind, Options, TableTransfer,
    TransferOptions,
};
use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[test]
fn a_checkpoint_is_the_database_at_one_moment() {
    let (files, expected) = disk();
    let db = open(&files, 2);
    let links = files.calls(FileCallKind::Link);
    let made = db.checkpoint(COPY).unwrap();
    assert_eq!(made.linked_tables, files.calls(FileCallKind::Link) - links);
    assert!(
        made.linked_tables > 2 && made.linked_bytes > 1000 && made.log_bytes > 1000,
        "{made:?}"
    );
    assert_eq!((made.copied_tables, made.link_refusal.is_none()), (0, true));
    assert_eq!(made.sequence, db.snapshot().sequence());
    assert_eq!(content(&db), expected);
    assert_whole(&files, COPY, &expected, "the copy");
    db.close().unwrap();
    assert_whole(&files, DB, &expected, "the database");
}

#[test]
fn both_are_written_to_and_neither_sees_the_other() {
    let (files, expected) = disk();
    let db = open(&files, 2);
    db.checkpoint(COPY).unwrap();
    let copy = open_at(&files, COPY, 3).unwrap();
    assert_eq!(content(&copy), expected);
    for (one, name) in [(&db, "left"), (&copy, "right")] {
        let rocks = family(one, "rocks");
        for round in 0..8 {
            put(&rocks, (round..900).step_by(5), round + name.len() as u64);
            rocks.put(b"side", name.as_bytes()).unwrap();
            rocks.flush().unwrap();
        }
        rocks.compact_range(..).unwrap();
    }
    let found = [content(&db), content(&copy)];
    for (one, name) in [(db, "left"), (copy, "right")] {
        assert_eq!(family(&one, "rocks").get(b"side").unwrap().as_deref(), Some(name.as_bytes()));
        one.close().unwrap();
    }
    assert_whole(&files, DB, &found[0], "the database");
    assert_whole(&files, COPY, &found[1], "the copy");
}

#[test]
fn writes_flushes_compactions_and_drops_in_the_middle_do_not_get_in() {
    for step in 0.. {
        let (files, expected) = disk();
        let db = open(&files, 2);
        let steps = AtomicU64::new(0);
        // Everything that could pull a file away from under the copy.
        let listener = |_: &_| {
            if steps.fetch_add(1, Ordering::SeqCst) == step {
                let rocks = family(&db, "rocks");
                put(&rocks, 0..2000, 9);
                rocks.compact_range(..).unwrap();
                db.drop_column_family("links").unwrap();
                let new = db.column_family("new", CfOptions::default()).unwrap();
                put(&new, 0..2000, 10);
                db.flush().unwrap();
            }
            ControlFlow::Continue(())
        };
        let transfer = TransferOptions { listener: Some(&listener), ..Default::default() };
        let options = CheckpointOptions { transfer, ..Default::default() };
        db.checkpoint_with(COPY, &options).unwrap();
        let steps = steps.load(Ordering::SeqCst);
        // What was held for the copy goes with it.
        db.wait_for_compaction().unwrap();
        let live: u64 = db.stats().levels.iter().map(|level| level.files).sum();
        let tables = names(&files, DB).iter().filter(|name| name.ends_with(".sst")).count();
        assert_eq!(tables as u64, live, "step {step}: tables that nobody needs are left");
        drop(db);
        assert_whole(&files, COPY, &expected, &format!("step {step}"));
        if step >= steps {
            assert!(steps > 5);
            return;
        }
    }
}

#[test]
fn every_durability_and_a_flush_before() {
    for durability in [
        Durability::None,
        Durability::Buffered,
        Durability::Interval { milliseconds: 10 },
        Durability::Sync,
    ] {
        for flush in [false, true] {
            let files = MemoryFileSystem::new();
            let made = Options { create_if_missing: true, ..options(durability) };
            let db = Db::open_in(DB, made, world(&files, 1)).unwrap();
            let rocks = db.column_family("rocks", CfOptions::default()).unwrap();
            put(&rocks, 0..100, 1);
            rocks.flush().unwrap();
            put(&rocks, 50..150, 2);
            let expected = content(&db);
            let options = CheckpointOptions { flush, ..Default::default() };
            let made = db.checkpoint_with(COPY, &options).unwrap();
            let has_log = durability != Durability::None && !flush;
            assert_eq!(made.log_bytes > 0, has_log, "{durability:?}, flush {flush}");
            assert_eq!(names(&files, COPY).iter().any(|name| name.ends_with(".wal")), has_log);
            assert_eq!(made.sequence, 200);
            put(&rocks, 0..10, 3);
            drop(db);
            assert_whole(&files, COPY, &expected, &format!("{durability:?}, flush {flush}"));
        }
    }
}

#[test]
fn a_database_without_rows_and_one_without_families() {
    let files = MemoryFileSystem::new();
    let made = Options { create_if_missing: true, ..options(Durability::Buffered) };
    let db = Db::open_in(DB, made, world(&files, 1)).unwrap();
    let empty = db.checkpoint(COPY).unwrap();
    assert_eq!((empty.sequence, empty.linked_tables, empty.log_bytes), (0, 0, 0));
    assert_eq!(content(&open_at(&files, COPY, 2).unwrap()), Content::new());
    db.column_family("rocks", CfOptions::default()).unwrap();
    db.checkpoint("/home/other").unwrap();
    let expected = Content::from([("rocks".to_string(), Default::default())]);
    assert_whole(&files, "/home/other", &expected, "no rows");
}

#[test]
fn a_checkpoint_of_a_checkpoint_and_of_what_it_became() {
    let (files, expected) = disk();
    let db = open(&files, 2);
    db.checkpoint(COPY).unwrap();
    let copy = open_at(&files, COPY, 3).unwrap();
    copy.checkpoint("/home/second").unwrap();
    assert_whole(&files, "/home/second", &expected, "the second");
    put(&family(&copy, "rocks"), 0..700, 11);
    let later = content(&copy);
    copy.checkpoint("/home/third").unwrap();
    copy.close().unwrap();
    assert_whole(&files, "/home/third", &later, "the third");
}

#[test]
fn what_is_in_the_place_already_is_not_touched() {
    let (files, _) = disk();
    let db = open(&files, 2);
    files.create_directory(Path::new(COPY)).unwrap();
    let refused = |path: &str| db.checkpoint(path).unwrap_err();
    assert_eq!(refused(COPY).kind(), ErrorKind::AlreadyExists);
    assert_eq!(refused(DB).kind(), ErrorKind::AlreadyExists);
    files.open(Path::new("/home/file"), OpenMode::CreateNew).unwrap();
    assert_eq!(refused("/home/file").kind(), ErrorKind::AlreadyExists);
    assert_eq!(refused("/").kind(), ErrorKind::InvalidArgument);
    assert!(refused("/home/file/below").path().is_some());
    // A stranger's directory under the name that would be used meanwhile.
    let mine = Path::new("/home/new.unfinished/mine");
    files.create_directory(mine.parent().unwrap()).unwrap();
    files.open(mine, OpenMode::CreateNew).unwrap();
    let error = refused("/home/new");
    assert_eq!((error.kind(), error.path()), (ErrorKind::AlreadyExists, Some(mine)));
    assert_eq!(names(&files, "/home"), ["copy", "db", "file", "new.unfinished"]);
    assert!(names(&files, COPY).is_empty() && files.exists(mine).unwrap());
}

#[test]
fn where_links_are_refused_tables_are_copied_and_the_result_says_so() {
    let (files, expected) = disk();
    let db = open(&files, 2);
    files.set_fault(Box::new(|call| {
        (call.kind == FileCallKind::Link).then(|| io::ErrorKind::CrossesDevices.into())
    }));
    let made = db.checkpoint(COPY).unwrap();
    files.clear_fault();
    assert_eq!((made.linked_tables, made.linked_bytes), (0, 0));
    assert!(made.copied_tables > 2 && made.copied_bytes > 1000, "{made:?}");
    assert!(made.link_refusal.unwrap().to_string().contains("cannot link"));
    let options = CheckpointOptions { tables: TableTransfer::Copy, ..Default::default() };
    let again = db.checkpoint_with("/home/second", &options).unwrap();
    assert_eq!((again.copied_bytes, again.link_refusal.is_none()), (made.copied_bytes, true));
    assert_whole(&files, COPY, &expected, "copied");
    assert_whole(&files, "/home/second", &expected, "copied as asked for");
}

#[test]
fn a_full_disk_and_a_caller_who_stops_leave_nothing() {
    let (files, expected) = disk();
    let db = open(&files, 2);
    let used = (1_u64 << 40) - files.free_space(Path::new("/")).unwrap();
    let copying = CheckpointOptions { tables: TableTransfer::Copy, ..Default::default() };
    for free in [0, 100, 1000, 10_000, 30_000] {
        files.set_capacity_bytes(used + free);
        let error = db.checkpoint_with(COPY, &copying).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
        assert_eq!(names(&files, "/home"), ["db"], "{free} bytes free");
    }
    files.set_capacity_bytes(1 << 40);
    let stops_after = |calls: u64| {
        let heard = AtomicU64::new(0);
        let listener = |_: &_| match heard.fetch_add(1, Ordering::SeqCst) < calls {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        };
        let transfer = TransferOptions { listener: Some(&listener), ..Default::default() };
        db.checkpoint_with(COPY, &CheckpointOptions { transfer, ..Default::default() })
    };
    for calls in 0..5 {
        let error = stops_after(calls).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
        assert_eq!(names(&files, "/home"), ["db"]);
    }
    stops_after(u64::MAX).unwrap();
    assert_whole(&files, COPY, &expected, "after all that");
    family(&db, "rocks").put(b"still", b"writable").unwrap();
}

#[test]
fn a_close_ends_a_checkpoint_and_nothing_is_left_of_it() {
    for calls in 0..5 {
        let (files, _) = disk();
        let db = open(&files, 2);
        let (heard, again) = (AtomicU64::new(0), RefCell::new(None));
        let listener = |_: &_| {
            if heard.fetch_add(1, Ordering::SeqCst) == calls {
                *again.borrow_mut() = Some(close_and_go_on(&files, &db));
            }
            ControlFlow::Continue(())
        };
        let transfer = TransferOptions { listener: Some(&listener), ..Default::default() };
        let options = CheckpointOptions { transfer, ..Default::default() };
        let error = db.checkpoint_with(COPY, &options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
        assert_eq!(heard.into_inner(), calls + 1, "it ends at once");
        assert_eq!(names(&files, "/home"), ["db"]);
        let again = again.into_inner().unwrap();
        let expected = content(&again);
        again.close().unwrap();
        assert_whole(&files, DB, &expected, "the database");
    }
}

#[test]
fn a_bounded_rate_takes_its_time() {
    let (files, _) = disk();
    let environment = lithify::fs::MemoryEnvironment::new(4);
    let world =
        World { files: Arc::new(files.clone()), environment: Arc::new(environment.clone()) };
    let db = Db::open_in(DB, options(Durability::Buffered), world).unwrap();
    let before_us = lithify::base::Clock::now_us(&environment);
    let transfer = TransferOptions { bytes_per_second: 10_000, listener: None };
    let tables = TableTransfer::Copy;
    let options = CheckpointOptions { tables, transfer, ..Default::default() };
    let made = db.checkpoint_with(COPY, &options).unwrap();
    let seconds = (lithify::base::Clock::now_us(&environment) - before_us) as f64 / 1e6;
    let expected = (made.copied_bytes + made.log_bytes) as f64 / 10_000.0;
    assert!((expected..expected * 1.1 + 0.2).contains(&seconds), "{seconds} s, not {expected}");
}

#[test]
fn a_poisoned_database_is_not_copied() {
    let (files, _) = disk();
    let db = open(&files, 2);
    files.set_fault(Box::new(|call| {
        (call.kind == FileCallKind::SyncData).then(|| io::Error::other("lost"))
    }));
    family(&db, "rocks").put(b"key", b"value").unwrap_err();
    files.clear_fault();
    assert_eq!(db.checkpoint(COPY).unwrap_err().kind(), ErrorKind::Poisoned);
    assert!(!exists(&files, COPY));
}

#[test]
fn a_log_that_lost_its_end_does_not_open_as_if_nothing_were_missing() {
    let (files, _) = disk();
    open(&files, 2).checkpoint(COPY).unwrap();
    let log = names(&files, COPY).into_iter().rfind(|name| name.ends_with(".wal")).unwrap();
    let file = files.open(&Path::new(COPY).join(log), OpenMode::ReadWrite).unwrap();
    // The last record: in a database that was killed it could not be told from a torn one.
    file.write_at(&[IoSlice::new(b"x")], file.length().unwrap() - 10).unwrap();
    let error = open_at(&files, COPY, 3).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
}

/// Writers commit pairs in two families; a copy must have both halves, and a prefix of each writer.
#[test]
fn copies_made_beside_writers_hold_whole_batches_and_a_prefix() {
    watched("copies beside writers", || {
        let files = MemoryFileSystem::new();
        let world =
            World { files: Arc::new(files.clone()), environment: Arc::new(SystemEnvironment) };
        let made = Options { background_threads: 2, ..small_options() };
        let db = Db::open_in(DB, made, world).unwrap();
        let [left, right] =
            ["left", "right"].map(|name| db.column_family(name, CfOptions::default()).unwrap());
        let stop = AtomicBool::new(false);
        let done = [AtomicU64::new(0), AtomicU64::new(0)];
        std::thread::scope(|scope| {
            for (writer, done) in done.iter().enumerate() {
                let (db, left, right, stop) = (&db, &left, &right, &stop);
                scope.spawn(move || {
                    for number in 0.. {
                        let mut batch = db.batch();
                        let key = format!("{writer}/{number:08}");
                        batch.put(left, key.as_bytes(), [7; 200]);
                        batch.put(right, key.as_bytes(), [8; 20]);
                        batch.commit().unwrap();
                        done.store(number + 1, Ordering::SeqCst);
                        if stop.load(Ordering::SeqCst) {
                            return;
                        }
                    }
                });
            }
            let mut held_us = Vec::new();
            for copy in 0..12 {
                let before = [0, 1].map(|writer: usize| done[writer].load(Ordering::SeqCst));
                let path = format!("/home/copy{copy}");
                let options = CheckpointOptions { flush: copy % 3 == 0, ..Default::default() };
                held_us.push(db.checkpoint_with(&path, &options).unwrap().writers_held_us);
                check_prefix(&files, &path, before);
            }
            stop.store(true, Ordering::SeqCst);
            println!("writers were held up for {held_us:?} us");
        });
    });
}

fn check_prefix(files: &MemoryFileSystem, path: &str, at_least: [u64; 2]) {
    let copy = open_at(files, path, 9).unwrap();
    let [left, right] = ["left", "right"].map(|name| rows(&family(&copy, name)));
    assert!(left.keys().eq(right.keys()), "{path}: half a batch");
    for (writer, at_least) in at_least.into_iter().enumerate() {
        let prefix = format!("{writer}/");
        let keys: Vec<_> = left.keys().filter(|key| key.starts_with(prefix.as_bytes())).collect();
        assert!(keys.len() as u64 >= at_least, "{path}: {} of {at_least}", keys.len());
        let last = format!("{writer}/{:08}", keys.len().saturating_sub(1));
        assert!(keys.last().is_none_or(|key| **key == last.as_bytes()), "{path}: a hole");
    }
}

#[test]
fn the_scene_has_what_a_copy_could_lose() {
    let (files, expected) = disk();
    let db = open(&files, 2);
    assert_eq!(expected.keys().collect::<Vec<_>>(), ["empty", "links", "rocks"]);
    let shape = db.stats();
    assert!(shape.levels[0].files > 0 && shape.levels[6].files > 1, "{shape}");
    assert!(db.recovery().iter().map(|report| report.records).sum::<u64>() > 10);
    assert_eq!(rows(&family(&db, "rocks")).get(&key(2650)), None);
    let other = MemoryFileSystem::new();
    let made = Options { create_if_missing: true, ..options(Durability::Buffered) };
    let fresh = Db::open_in(DB, made, world(&other, 1)).unwrap();
    write_database(&fresh);
    assert_eq!(content(&fresh), expected, "the scene is a function of nothing");
}
