//! A crash before every call to the file system, and a failure of every call, of a checkpoint, a
//! backup, a deletion and a restoration: the database is as it was, what was to be made is there as
//! a whole or not at all, and the same call again succeeds.

use super::cut::Cut;
use super::scene::{
    COPY, Content, DB, STORE, assert_whole, back_up, content, disk, exists, family, names, open,
    put, store, world,
};
use lithify::backup::{BackupOptions, BackupStore, RestoreOptions};
use lithify::fs::{CrashKeep, FileCall, MemoryFileSystem};
use lithify::{CheckpointOptions, Db, TableTransfer};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What crashes keep: nothing unsynced, everything, and what `LITHIFY_CRASH_SEEDS` seeds (1 where
/// that is not set) decide.
fn keeps() -> Vec<(CrashKeep, u64)> {
    let seeds = std::env::var("LITHIFY_CRASH_SEEDS").map_or(1, |seeds| seeds.parse().unwrap());
    let random = (1..=seeds).map(|seed| (CrashKeep::Random, seed));
    [(CrashKeep::Nothing, 0), (CrashKeep::Everything, 0)].into_iter().chain(random).collect()
}

/// One thing that is done to a disk.
struct Deed<'a> {
    name: &'a str,
    /// Does it, on a disk on which everything is durable.
    act: &'a dyn Fn(&MemoryFileSystem) -> lithify::Result<()>,
    /// Looks at what is left of it, complete or not, and does it again. What returned without an
    /// error is done, whatever came then.
    check: &'a dyn Fn(&MemoryFileSystem, bool, &str),
}

impl Deed<'_> {
    fn with_everything_going_wrong(&self, base: &MemoryFileSystem) {
        // Everything on the clone is durable.
        let fresh =
            || base.crash_clone(0, CrashKeep::Everything).crash_clone(0, CrashKeep::Nothing);
        let whole = fresh();
        (self.act)(&whole).unwrap();
        let calls = whole.call_count();
        (self.check)(&whole, true, &format!("{}: undisturbed", self.name));
        let keeps = keeps();
        let crashes = keeps.len() as u64 * (calls + 1);
        println!("{}: {calls} calls, {crashes} crashes, {} failures", self.name, 3 * calls);
        for (keep, seed) in keeps {
            for call in 0..=calls {
                let files = fresh();
                let cut = Cut::after_calls(&files, call, keep, seed);
                let is_done = (self.act)(&files).is_ok();
                let (image, cut_at) = cut.take();
                let what = format!("{}: {keep:?} {seed} at call {call}, {cut_at}", self.name);
                (self.check)(&image, is_done, &what);
            }
        }
        let other = io::ErrorKind::Other;
        for (error, for_ever) in
            [(other, false), (other, true), (io::ErrorKind::StorageFull, false)]
        {
            for call in 0..calls {
                let files = fresh();
                let at = Arc::new(AtomicBool::new(false));
                let seen = Arc::clone(&at);
                files.set_fault(Box::new(move |found: &FileCall<'_>| {
                    let fails = found.index == call || for_ever && found.index > call;
                    seen.fetch_or(fails, Ordering::SeqCst);
                    fails.then(|| error.into())
                }));
                let outcome = (self.act)(&files);
                files.clear_fault();
                assert!(at.load(Ordering::SeqCst), "{}: the call {call} was not made", self.name);
                let what = format!("{}: {error} of call {call}, {outcome:?}", self.name);
                // What is done survives a power cut.
                let survives = CrashKeep::Nothing;
                let files = if outcome.is_ok() { files.crash_clone(0, survives) } else { files };
                (self.check)(&files, outcome.is_ok(), &what);
            }
        }
    }
}

/// A disk on which the database was opened and closed, so that opening it makes few calls.
fn settled() -> (MemoryFileSystem, Content) {
    let (files, expected) = disk();
    open(&files, 2).close().unwrap();
    (files, expected)
}

/// Opens the database, which must always work, and does something with it.
fn with_db(
    files: &MemoryFileSystem,
    act: impl FnOnce(&Db) -> lithify::Result<()>,
) -> lithify::Result<()> {
    let db = super::scene::open_at(files, DB, 3)?;
    act(&db)
}

fn checkpoint_everywhere(options: &CheckpointOptions<'_>, name: &str) {
    let (base, expected) = settled();
    Deed {
        name,
        act: &|files| with_db(files, |db| db.checkpoint_with(COPY, options).map(drop)),
        check: &|files, is_done, what| {
            assert_whole(files, DB, &expected, what);
            let mut later = expected.clone();
            later.get_mut("rocks").unwrap().insert(b"later".to_vec(), b"on".to_vec());
            assert!(!is_done || exists(files, COPY), "{what}: it is not there");
            if exists(files, COPY) {
                assert_whole(files, COPY, &expected, what);
            } else {
                with_db(files, |db| db.checkpoint(COPY).map(drop)).unwrap();
                assert_whole(files, COPY, &later, what);
            }
            // What the first one left, the second one has cleaned up.
            assert_eq!(names(files, "/home"), ["copy", "db"], "{what}");
        },
    }
    .with_everything_going_wrong(&base);
}

#[test]
fn checkpoints_by_links() {
    checkpoint_everywhere(&CheckpointOptions::default(), "checkpoint");
}

#[test]
fn checkpoints_by_copies() {
    let tables = TableTransfer::Copy;
    checkpoint_everywhere(&CheckpointOptions { tables, ..Default::default() }, "copied checkpoint");
}

/// A store with two backups that share tables, and what each of them holds.
fn backed_up() -> (MemoryFileSystem, Vec<Content>) {
    let (files, first) = settled();
    let db = open(&files, 4);
    let mut store = store(&files);
    back_up(&mut store, &db);
    put(&family(&db, "links"), 0..200, 21);
    family(&db, "links").flush().unwrap();
    let second = content(&db);
    back_up(&mut store, &db);
    db.close().unwrap();
    (files, vec![first, second])
}

/// Every backup that is listed is whole and restores to what it was made of; nothing else is there.
fn check_store(files: &MemoryFileSystem, contents: &[Content], what: &str) -> Vec<u64> {
    let mut opened = store(files);
    let found = opened.verify(None, &Default::default()).unwrap();
    assert!(found.is_whole(), "{what}: {:?}", found.backups);
    for id in opened.ids() {
        let path = format!("/home/restored{id}");
        opened.restore(id, &path, &RestoreOptions::default()).unwrap();
        assert_whole(files, &path, &contents[id as usize - 1], what);
    }
    let ids = opened.ids();
    let needed: u64 = opened.list().unwrap().backups.iter().map(|info| info.own_bytes).sum();
    opened.purge(0).unwrap();
    let left = names(files, STORE);
    assert_eq!(left, ["LOCK", "STORE"], "{what}: files that nobody needs; own {needed}");
    ids
}

#[test]
fn backups() {
    let (base, mut contents) = backed_up();
    contents.push(contents[1].clone());
    Deed {
        name: "backup",
        act: &|files| {
            with_db(files, |db| {
                let mut store = BackupStore::open_in(STORE, world(files, 6))?;
                store.create(db, &BackupOptions::default()).map(drop)
            })
        },
        check: &|files, is_done, what| {
            let ids = check_store(files, &contents, what);
            assert!(ids == [1, 2, 3] || ids == [1, 2] && !is_done, "{what}: {ids:?}");
            assert_whole(files, DB, &contents[1], what);
            let db = open(files, 7);
            let mut again = store(files);
            let id = back_up(&mut again, &db);
            assert_eq!(id, ids.len() as u64 + 1, "{what}: a number given out twice");
        },
    }
    .with_everything_going_wrong(&base);
}

#[test]
fn the_first_backup_of_a_new_store() {
    let (base, expected) = settled();
    Deed {
        name: "first backup",
        act: &|files| {
            with_db(files, |db| {
                let mut store = BackupStore::open_in(STORE, world(files, 6))?;
                store.create(db, &BackupOptions::default()).map(drop)
            })
        },
        check: &|files, is_done, what| {
            let ids = check_store(files, std::slice::from_ref(&expected), what);
            assert!(ids == [1] || ids.is_empty() && !is_done, "{what}: {ids:?}");
            assert_whole(files, DB, &expected, what);
        },
    }
    .with_everything_going_wrong(&base);
}

#[test]
fn deletions() {
    let (base, contents) = backed_up();
    for deleted in [1, 2] {
        Deed {
            name: &format!("deletion of {deleted}"),
            act: &|files| BackupStore::open_in(STORE, world(files, 6))?.delete(deleted),
            check: &|files, is_done, what| {
                let ids = check_store(files, &contents, what);
                assert!(ids == [3 - deleted] || ids == [1, 2] && !is_done, "{what}: {ids:?}");
                let mut again = store(files);
                let db = open(files, 7);
                assert_eq!(back_up(&mut again, &db), 3, "{what}: a number given out twice");
            },
        }
        .with_everything_going_wrong(&base);
    }
}

#[test]
fn restorations() {
    let (base, contents) = backed_up();
    Deed {
        name: "restoration",
        act: &|files| {
            let store = BackupStore::open_read_only_in(STORE, world(files, 6))?;
            store.restore(1, COPY, &RestoreOptions::default()).map(drop)
        },
        check: &|files, is_done, what| {
            if !exists(files, COPY) {
                assert!(!is_done, "{what}: it is not there");
                store(files).restore(1, COPY, &RestoreOptions::default()).unwrap();
            }
            assert_whole(files, COPY, &contents[0], what);
            assert_eq!(names(files, "/home"), ["copy", "db", "store"], "{what}");
            check_store(files, &contents, what);
        },
    }
    .with_everything_going_wrong(&base);
}
