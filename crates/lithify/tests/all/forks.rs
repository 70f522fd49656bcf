//! Children of a fork: what a parent has open stays the parent's, whatever the child does with it.
#![expect(unsafe_code, reason = "forks")]

use crate::support::watched;
use lithify::{CfOptions, Db, Durability, ErrorKind, Options, Resources, Result, TableWriter};
use std::path::Path;

/// Runs `body` in a child, which has one thread, and gives what that answers.
fn in_child(body: impl FnOnce() -> u8) -> i32 {
    // SAFETY: the child ends below and runs nothing of the test program's.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let answer = body();
        // SAFETY: ends this child and nothing else.
        unsafe { libc::_exit(i32::from(answer)) };
    }
    assert!(child > 0);
    let mut status = 0;
    let ended = watched("a child of a fork", || {
        // SAFETY: `child` is a child of this process, `status` is a live integer.
        unsafe { libc::waitpid(child, &raw mut status, 0) }
    });
    assert!(ended == child && libc::WIFEXITED(status), "status {status}");
    libc::WEXITSTATUS(status)
}

fn put_all(db: &Db) {
    (0..100_u64).for_each(|row| db.put(row.to_be_bytes(), "2").unwrap());
}

/// Asserts that a kill of the process now would leave all rows of [`put_all`].
fn assert_durable(directory: &Path) {
    let copy = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(directory).unwrap().flatten() {
        if file.file_type().unwrap().is_file() {
            std::fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
        }
    }
    let db = Db::open(copy.path(), Options::default()).unwrap();
    let there = (0..100_u64).filter(|row| db.get(row.to_be_bytes()).unwrap().is_some()).count();
    assert_eq!(there, 100, "synced commits are lost");
}

/// A call to be refused.
type Call<'a> = Box<dyn FnOnce() -> Result<()> + 'a>;

fn options(background_threads: usize) -> Options {
    Options { durability: Durability::Sync, background_threads, ..Options::default() }
}

#[test]
fn a_child_that_drops_a_database_leaves_it_to_its_parent() {
    for background_threads in [0, 2] {
        let directory = tempfile::tempdir().unwrap();
        let db = Db::open(directory.path(), options(background_threads)).unwrap();
        let family = db.column_family("rows", CfOptions::default()).unwrap();
        family.put("a", "1").unwrap();
        let answer = in_child(|| {
            drop((family, db.clone(), db.snapshot()));
            // SAFETY: the child alone sees this copy of the handle, and ends without its parent's drop.
            drop(unsafe { std::ptr::read(&raw const db) });
            0
        });
        assert_eq!(answer, 0);
        put_all(&db);
        assert_durable(directory.path());
    }
}

#[test]
fn a_child_is_refused_what_its_parent_has_open() {
    for background_threads in [0, 2] {
        let directory = tempfile::tempdir().unwrap();
        let copy = directory.path().join("copy");
        let db = Db::open(directory.path().join("db"), options(background_threads)).unwrap();
        let family = db.column_family("rows", CfOptions::default()).unwrap();
        family.put("a", "1").unwrap();
        let mut ingest = family.ingest().unwrap();
        ingest.put("b", "2").unwrap();
        let calls: [(&str, Call<'_>); 9] = [
            ("put", Box::new(|| family.put("c", "3"))),
            ("get", Box::new(|| family.get("a").map(drop))),
            ("flush", Box::new(|| db.flush())),
            ("compaction", Box::new(|| family.compact_range(..))),
            ("commit of an ingest", Box::new(move || ingest.commit().map(drop))),
            ("ingest", Box::new(|| family.ingest().map(drop))),
            ("checkpoint", Box::new(|| db.checkpoint(&copy).map(drop))),
            ("family", Box::new(|| db.column_family("new", CfOptions::default()).map(drop))),
            ("close", Box::new(|| db.clone().close())),
        ];
        let names = calls.each_ref().map(|(name, _)| *name);
        let is_refused = |result: Result<()>| {
            result.is_err_and(|error| {
                error.kind() == ErrorKind::Closed && error.to_string().contains("fork")
            })
        };
        let answer = in_child(|| {
            let taken = calls.into_iter().position(|(_, call)| !is_refused(call()));
            taken.map_or(u8::MAX, |index| index as u8)
        });
        assert_eq!(answer, i32::from(u8::MAX), "taken: {:?}", names.get(answer as usize));
        assert!(!copy.exists());
        put_all(&db);
        assert_durable(db.path());
        db.close().unwrap();
    }
}

/// What has no close of its own: readers that were moved on, shared threads, tables being written.
#[test]
fn a_child_that_drops_other_things_leaves_them_to_its_parent() {
    let directory = tempfile::tempdir().unwrap();
    let (path, table) = (directory.path().join("db"), directory.path().join("table"));
    let resources = Resources::new(64 << 20, 2).unwrap();
    let db = Db::open_shared(&path, Options::default(), &resources).unwrap();
    db.put("a", "1").unwrap();
    let mut reader = Db::open_read_only(&path, Options::default()).unwrap();
    let before = reader.existing_column_family("default").unwrap().unwrap();
    db.flush().unwrap();
    reader.refresh().unwrap();
    db.close().unwrap();
    let mut writer = TableWriter::create(&table, &CfOptions::default()).unwrap();
    let registered = || std::fs::read_dir(path.join("READERS")).unwrap().count();
    let readers = registered();
    let answer = in_child(|| {
        let read = |refused: Result<_>| refused.is_err_and(|e| e.kind() == ErrorKind::Closed);
        let is_refused = read(before.get("a")) && read(reader.get("a"));
        // SAFETY: the child alone sees these copies, and ends without its parent's drops.
        unsafe {
            drop(std::ptr::read(&raw const before));
            drop(std::ptr::read(&raw const reader));
            drop(std::ptr::read(&raw const resources));
            drop(std::ptr::read(&raw const writer));
        }
        u8::from(!is_refused)
    });
    assert_eq!(answer, 0);
    assert_eq!(registered(), readers);
    assert_eq!(before.get("a").unwrap().unwrap(), "1");
    writer.put("b", "2").unwrap();
    writer.finish().unwrap();
    assert!(table.exists());
}
