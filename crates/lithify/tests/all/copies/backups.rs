//! Backups: what is copied and what is shared, what deleting frees, and what damage does.

use super::scene::{
    COPY, DB, STORE, assert_whole, back_up, close_and_go_on, content, disk, exists, family, key,
    names, open, put, store, world,
};
use lithify::backup::{BackupOptions, BackupStore, RestoreOptions};
use lithify::fs::{FileSystem, MemoryFileSystem, OpenMode};
use lithify::{Db, ErrorKind, TransferOptions};
use std::cell::RefCell;
use std::io::IoSlice;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

fn restore_and_compare(
    files: &MemoryFileSystem,
    store: &BackupStore,
    id: u64,
    expected: &super::scene::Content,
) {
    let path = format!("/home/of{id}");
    store.restore(id, &path, &RestoreOptions::default()).unwrap();
    assert_whole(files, &path, expected, &format!("backup {id}"));
}

/// Changes one byte of a file.
fn flip(files: &MemoryFileSystem, path: &Path, offset: u64) {
    let file = files.open(path, OpenMode::ReadWrite).unwrap();
    let mut byte = [0];
    file.read_at(&mut byte, offset).unwrap();
    file.write_at(&[IoSlice::new(&[byte[0] ^ 4])], offset).unwrap();
}

fn stored(files: &MemoryFileSystem, end: &str) -> Vec<String> {
    names(files, STORE).into_iter().filter(|name| name.ends_with(end)).collect()
}

#[test]
fn tables_are_copied_once() {
    let (files, first) = disk();
    let db = open(&files, 2);
    let mut store = store(&files);
    let one = store.create(&db, &BackupOptions::default()).unwrap();
    assert_eq!((one.backup.id, one.shared_files), (1, 0));
    assert_eq!(one.backup.copied_bytes, one.backup.bytes);
    assert!(one.backup.log_bytes > 0 && one.backup.files > 3, "{one:?}");
    // Nothing new but a row in the log.
    family(&db, "links").put(b"new", b"row").unwrap();
    let second = content(&db);
    let note = "a second one".to_string();
    let two = store.create(&db, &BackupOptions { note, ..Default::default() }).unwrap();
    assert_eq!(two.backup.copied_bytes, two.backup.log_bytes, "only the log was copied");
    assert_eq!(two.copied_files + two.shared_files, two.backup.files);
    assert_eq!(two.shared_bytes + two.backup.log_bytes, two.backup.bytes);
    // One new table.
    put(&family(&db, "links"), 0..100, 4);
    let third = content(&db);
    let three = store.create(&db, &BackupOptions { flush: true, ..Default::default() }).unwrap();
    assert_eq!(three.backup.log_bytes, 0, "everything was flushed");
    assert!(three.backup.copied_bytes > 0 && three.shared_bytes > 0, "{three:?}");
    let list = store.list().unwrap();
    assert!(list.unreadable.is_empty());
    let listed: Vec<_> = list.backups.iter().map(|info| (info.id, info.note.as_str())).collect();
    assert_eq!(listed, [(1, ""), (2, "a second one"), (3, "")]);
    assert!(list.backups.is_sorted_by_key(|info| (info.sequence, info.unix_time_s)));
    let verified = store.verify(None, &TransferOptions::default()).unwrap();
    assert!(verified.is_whole());
    let on_disk: u64 = stored(&files, ".sst")
        .into_iter()
        .chain(stored(&files, ".wal"))
        .map(|name| files.length(&Path::new(STORE).join(name)).unwrap())
        .sum();
    assert_eq!(verified.read_bytes, on_disk, "every file is read, and once");
    let copied = [one, two, three].iter().map(|report| report.backup.copied_bytes).sum::<u64>();
    assert_eq!(copied, on_disk);
    for (id, expected) in [(1, &first), (2, &second), (3, &third)] {
        restore_and_compare(&files, &store, id, expected);
    }
}

#[test]
fn deleting_frees_what_nobody_else_needs() {
    let (files, first) = disk();
    let db = open(&files, 2);
    let mut store = store(&files);
    let mut contents = vec![first];
    back_up(&mut store, &db);
    for round in 0..4 {
        put(&family(&db, "rocks"), 0..400, round);
        family(&db, "rocks").compact_range(..).unwrap();
        contents.push(content(&db));
        back_up(&mut store, &db);
    }
    for id in [3, 5, 1] {
        let own = |store: &BackupStore| {
            let list = store.list().unwrap().backups;
            list.iter().find(|info| info.id == id).unwrap().own_bytes
        };
        let (freed, before) = (own(&store), files.free_space(Path::new("/")).unwrap());
        let meta = files.length(&Path::new(STORE).join(format!("{id:06}.backup"))).unwrap();
        store.delete(id).unwrap();
        assert_eq!(files.free_space(Path::new("/")).unwrap() - before, freed + meta, "of {id}");
        assert!(store.verify(None, &TransferOptions::default()).unwrap().is_whole());
    }
    assert_eq!(store.delete(3).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(store.ids(), [2, 4]);
    for id in [2, 4] {
        restore_and_compare(&files, &store, id, &contents[id as usize - 1]);
    }
    // The number of the newest one, which is gone, is not given out again; nor after reopening.
    drop(store);
    let mut store = super::scene::store(&files);
    assert_eq!(back_up(&mut store, &db), 6);
    assert_eq!(store.purge(1).unwrap(), [2, 4]);
    assert_eq!(store.purge(1).unwrap(), [0; 0]);
    restore_and_compare(&files, &store, 6, &contents[4]);
    assert_eq!(store.purge(0).unwrap(), [6]);
    assert_eq!(names(&files, STORE), ["LOCK", "STORE"]);
    assert_eq!(back_up(&mut store, &db), 7);
}

#[test]
fn one_store_for_two_databases_and_for_one_that_came_back() {
    let (files, expected) = disk();
    let db = open(&files, 2);
    let mut store = store(&files);
    back_up(&mut store, &db);
    store.restore(1, COPY, &RestoreOptions::default()).unwrap();
    let copy = super::scene::open_at(&files, COPY, 3).unwrap();
    let shared = store.create(&copy, &BackupOptions::default()).unwrap();
    assert_eq!(shared.backup.copied_bytes, shared.backup.log_bytes, "its tables were there");
    // They go their own ways with the same file numbers.
    for (one, seed) in [(&db, 31), (&copy, 32)] {
        put(&family(one, "rocks"), 0..300, seed);
        family(one, "rocks").compact_range(..).unwrap();
    }
    let contents = [content(&db), content(&copy)];
    assert_eq!((back_up(&mut store, &db), back_up(&mut store, &copy)), (3, 4));
    restore_and_compare(&files, &store, 2, &expected);
    restore_and_compare(&files, &store, 3, &contents[0]);
    restore_and_compare(&files, &store, 4, &contents[1]);
}

#[test]
fn a_flipped_bit_is_found_and_refused_and_whole_backups_are_named() {
    let (files, _) = disk();
    let db = open(&files, 2);
    let mut store = store(&files);
    back_up(&mut store, &db);
    put(&family(&db, "rocks"), 0..600, 8);
    family(&db, "rocks").compact_range(..).unwrap();
    let expected = content(&db);
    back_up(&mut store, &db);
    let of_first = stored(&files, ".wal").remove(0);
    assert!(of_first.starts_with("000001-"));
    let path = Path::new(STORE).join(of_first);
    for offset in [0, 100, files.length(&path).unwrap() - 1] {
        flip(&files, &path, offset);
        let found = store.verify(None, &TransferOptions::default()).unwrap();
        assert_eq!(found.whole(), [2]);
        let damage = &found.backups[0].damage[0];
        assert_eq!((damage.kind(), damage.path()), (ErrorKind::Corruption, Some(&*path)));
        assert_eq!(damage.offset(), Some(0), "of the piece");
        let error = store.restore(1, COPY, &RestoreOptions::default()).unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::Corruption, Some(&*path)));
        assert!(
            error.to_string().contains("backup 1 is damaged")
                && error.to_string().contains("whole ones: 2"),
            "{error}"
        );
        assert_eq!(names(&files, "/home"), ["db", "store"]);
        flip(&files, &path, offset);
    }
    // Missing, shorter, longer.
    let length = files.length(&path).unwrap();
    let file = files.open(&path, OpenMode::ReadWrite).unwrap();
    for changed in [length - 1, length + 1] {
        file.truncate(changed).unwrap();
        let found = store.verify(Some(1), &TransferOptions::default()).unwrap();
        assert_eq!(found.backups[0].damage[0].offset(), Some(changed.min(length)));
    }
    files.remove(&path).unwrap();
    let error = store.restore(1, COPY, &RestoreOptions::default()).unwrap_err();
    assert!(error.to_string().contains("is missing"), "{error}");
    assert_eq!(
        store.verify(Some(9), &TransferOptions::default()).unwrap_err().kind(),
        ErrorKind::NotFound
    );
    restore_and_compare(&files, &store, 2, &expected);
}

#[test]
fn a_damaged_shared_table_is_mended_by_the_next_backup_that_looks() {
    let (files, expected) = disk();
    let db = open(&files, 2);
    let mut store = store(&files);
    back_up(&mut store, &db);
    let tables = stored(&files, ".sst");
    let path = |index: usize| Path::new(STORE).join(&tables[index]);
    flip(&files, &path(0), 200);
    files.remove(&path(1)).unwrap();
    assert!(!store.verify(None, &TransferOptions::default()).unwrap().is_whole());
    // A missing one is noticed in any case.
    let plain = store.create(&db, &BackupOptions::default()).unwrap();
    assert_eq!(plain.mended_files, 1);
    assert_eq!(store.verify(None, &TransferOptions::default()).unwrap().whole(), [0; 0]);
    let looked = store.create(&db, &BackupOptions { check_shared: true, ..Default::default() });
    assert_eq!(looked.unwrap().mended_files, 1);
    assert_eq!(store.verify(None, &TransferOptions::default()).unwrap().whole(), [1, 2, 3]);
    restore_and_compare(&files, &store, 1, &expected);
}

#[test]
fn a_damaged_database_is_not_backed_up() {
    let (files, _) = disk();
    let table = names(&files, DB).into_iter().rfind(|name| name.ends_with(".sst")).unwrap();
    flip(&files, &Path::new(DB).join(&table), 30);
    let db = open(&files, 2);
    let mut store = store(&files);
    let error = store.create(&db, &BackupOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert_eq!((error.path(), error.offset()), (Some(&*Path::new(DB).join(&table)), Some(0)));
    assert_eq!(names(&files, STORE), ["LOCK", "STORE"]);
    store.create(&db, &BackupOptions { check: false, ..Default::default() }).unwrap();
}

#[test]
fn an_unreadable_backup_takes_no_file_from_others_nor_loses_its_own() {
    let (files, expected) = disk();
    let db = open(&files, 2);
    let mut first = store(&files);
    back_up(&mut first, &db);
    back_up(&mut first, &db);
    let meta = Path::new(STORE).join("000001.backup");
    flip(&files, &meta, 150);
    drop(first);
    let mut opened = store(&files);
    let list = opened.list().unwrap();
    assert_eq!(list.backups.len(), 1);
    let (id, error) = &list.unreadable[0];
    assert_eq!((*id, error.kind(), error.path()), (1, ErrorKind::Corruption, Some(&*meta)));
    let found = opened.verify(None, &TransferOptions::default()).unwrap();
    assert_eq!(found.whole(), [2]);
    assert_eq!(
        opened.restore(1, COPY, &RestoreOptions::default()).unwrap_err().kind(),
        ErrorKind::Corruption
    );
    opened.delete(2).unwrap();
    assert!(!stored(&files, ".sst").is_empty(), "backup 1 may need them");
    flip(&files, &meta, 150);
    restore_and_compare(&files, &opened, 1, &expected);
    flip(&files, &meta, 150);
    opened.delete(1).unwrap();
    assert_eq!(names(&files, STORE), ["LOCK", "STORE"]);
}

#[test]
fn the_database_goes_on_while_it_is_backed_up() {
    for step in 0.. {
        let (files, expected) = disk();
        let db = open(&files, 2);
        let mut store = store(&files);
        let steps = AtomicU64::new(0);
        let listener = |_: &_| {
            if steps.fetch_add(1, Ordering::SeqCst) == step {
                let rocks = family(&db, "rocks");
                put(&rocks, 0..2000, 9);
                rocks.compact_range(..).unwrap();
                db.drop_column_family("links").unwrap();
            }
            ControlFlow::Continue(())
        };
        let transfer = TransferOptions { listener: Some(&listener), ..Default::default() };
        store.create(&db, &BackupOptions { transfer, ..Default::default() }).unwrap();
        db.wait_for_compaction().unwrap();
        let tables = names(&files, DB).iter().filter(|name| name.ends_with(".sst")).count();
        let live: u64 = db.stats().levels.iter().map(|level| level.files).sum();
        assert_eq!(tables as u64, live, "step {step}: tables that nobody needs are left");
        restore_and_compare(&files, &store, 1, &expected);
        if step >= steps.load(Ordering::SeqCst) {
            return;
        }
    }
}

#[test]
fn a_caller_who_stops_and_a_full_disk_leave_nothing() {
    let (files, _) = disk();
    let db = open(&files, 2);
    let mut store = store(&files);
    back_up(&mut store, &db);
    put(&family(&db, "rocks"), 0..3000, 9);
    family(&db, "rocks").compact_range(..).unwrap();
    let before = names(&files, STORE);
    for calls in 0..4 {
        let heard = AtomicU64::new(0);
        let listener = |_: &_| match heard.fetch_add(1, Ordering::SeqCst) < calls {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        };
        let transfer = TransferOptions { listener: Some(&listener), ..Default::default() };
        let options = BackupOptions { transfer, ..Default::default() };
        assert_eq!(store.create(&db, &options).unwrap_err().kind(), ErrorKind::Cancelled);
        assert_eq!(names(&files, STORE), before);
        assert_eq!(
            store.verify(None, &transfer).map(drop).map_err(|e| e.kind()),
            Err(ErrorKind::Cancelled)
        );
        heard.store(0, Ordering::SeqCst);
        let options = RestoreOptions { transfer, ..Default::default() };
        assert_eq!(store.restore(1, COPY, &options).unwrap_err().kind(), ErrorKind::Cancelled);
        assert!(!exists(&files, COPY) && !exists(&files, "/home/copy.unfinished"));
    }
    let used = (1_u64 << 40) - files.free_space(Path::new("/")).unwrap();
    for free in [0, 1000, 50_000] {
        files.set_capacity_bytes(used + free);
        let error = store.create(&db, &BackupOptions::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
        assert_eq!(names(&files, STORE), before);
    }
    files.set_capacity_bytes(1 << 40);
    assert_eq!(back_up(&mut store, &db), 2);
}

#[test]
fn a_close_ends_a_backup_and_nothing_is_left_of_it() {
    for check in [true, false] {
        for calls in 0..4 {
            let (files, _) = disk();
            let db = open(&files, 2);
            let mut store = store(&files);
            let before = names(&files, STORE);
            let (heard, again) = (AtomicU64::new(0), RefCell::new(None));
            let listener = |_: &_| {
                if heard.fetch_add(1, Ordering::SeqCst) == calls {
                    *again.borrow_mut() = Some(close_and_go_on(&files, &db));
                }
                ControlFlow::Continue(())
            };
            let transfer = TransferOptions { listener: Some(&listener), ..Default::default() };
            let options = BackupOptions { check, transfer, ..Default::default() };
            let error = store.create(&db, &options).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
            assert_eq!(names(&files, STORE), before);
            let again = again.into_inner().unwrap();
            let id = back_up(&mut store, &again);
            restore_and_compare(&files, &store, id, &content(&again));
        }
    }
}

#[test]
fn a_store_is_told_from_anything_else() {
    let (files, _) = disk();
    let open_store = |path: &str| BackupStore::open_in(path, world(&files, 5)).map(drop);
    assert_eq!(open_store(DB).unwrap_err().kind(), ErrorKind::InvalidArgument);
    files.open(Path::new("/home/file"), OpenMode::CreateNew).unwrap();
    assert_eq!(open_store("/home/file").unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert!(!exists(&files, "/home/db/STORE"));
    let read = |path: &str| BackupStore::open_read_only_in(path, world(&files, 5));
    assert_eq!(read(STORE).map(drop).unwrap_err().kind(), ErrorKind::NotFound);
    assert!(!exists(&files, STORE));
    let mut first = store(&files);
    assert_eq!(open_store(STORE).unwrap_err().kind(), ErrorKind::Locked);
    let db = open(&files, 2);
    back_up(&mut first, &db);
    // Reading needs no lock and changes nothing.
    files.set_read_only(true);
    let mut reader = read(STORE).unwrap();
    assert!(reader.verify(None, &TransferOptions::default()).unwrap().is_whole());
    for refused in [reader.delete(1), reader.purge(0).map(drop)] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::ReadOnly);
    }
    files.set_read_only(false);
    assert_eq!(
        reader.create(&db, &BackupOptions::default()).unwrap_err().kind(),
        ErrorKind::ReadOnly
    );
    let long = BackupOptions { note: "x".repeat(1025), ..Default::default() };
    assert_eq!(first.create(&db, &long).unwrap_err().kind(), ErrorKind::LimitExceeded);
    drop(first);
    files.remove(&Path::new(STORE).join("STORE")).unwrap();
    assert_eq!(open_store(STORE).unwrap_err().kind(), ErrorKind::Corruption);
}

#[test]
fn a_backup_of_a_backup_store_moved_elsewhere_is_still_one() {
    let (files, expected) = disk();
    let db: Db = open(&files, 2);
    back_up(&mut store(&files), &db);
    files.rename(Path::new(STORE), Path::new("/home/moved")).unwrap();
    let moved = BackupStore::open_in("/home/moved", world(&files, 6)).unwrap();
    restore_and_compare(&files, &moved, 1, &expected);
    assert_eq!(expected["rocks"].get(&key(25)), None);
}
