//! Over the real file system: links are links, and another file system gets copies.

use super::scene::{content, write_database};
use lithify::backup::{BackupOptions, BackupStore, RestoreOptions};
use lithify::{CfOptions, Db, ErrorKind, Options};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

fn tables(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut tables: Vec<_> =
        entries.filter(|path| path.extension() == Some("sst".as_ref())).collect();
    tables.sort();
    tables
}

fn identity(path: &Path) -> (u64, u64) {
    let metadata = std::fs::metadata(path).unwrap();
    (metadata.dev(), metadata.ino())
}

/// Nothing is compacted, and no file goes, but in a call that waits for it.
fn still() -> Options {
    Options { background_threads: 0, ..Options::default() }
}

#[test]
fn tables_of_a_checkpoint_are_hard_links_and_nothing_else_is() {
    let directory = tempfile::tempdir().unwrap();
    let (path, copy) = (directory.path().join("db"), directory.path().join("deep/er/copy"));
    let db = Db::open(&path, still()).unwrap();
    write_database(&db);
    let made = db.checkpoint(&copy).unwrap();
    assert_eq!(tables(&copy).len() as u64, made.linked_tables);
    assert!(made.linked_tables > 0 && made.copied_tables == 0, "{made:?}");
    for table in tables(&copy) {
        assert_eq!(identity(&table), identity(&path.join(table.file_name().unwrap())));
    }
    for entry in std::fs::read_dir(&copy).unwrap() {
        let entry = entry.unwrap().path();
        let links = std::fs::metadata(&entry).unwrap().nlink();
        let is_table = entry.extension() == Some("sst".as_ref());
        assert_eq!(links, if is_table { 2 } else { 1 }, "{}", entry.display());
    }
    let second = Db::open(&copy, still()).unwrap();
    assert_eq!(content(&second), content(&db));
    // Compacted away on both sides, the files go.
    for one in [&db, &second] {
        let rocks = one.existing_column_family("rocks").unwrap().unwrap();
        rocks.put(b"rock00000", b"again").unwrap();
        rocks.compact_range(..).unwrap();
    }
    assert_eq!(content(&second), content(&db));
    drop((db, second));
    let again = db_error(&copy, &path);
    assert_eq!(again, ErrorKind::AlreadyExists);
}

/// The kind of the error of a checkpoint of the database at `of` to `to`.
fn db_error(of: &Path, to: &Path) -> ErrorKind {
    Db::open(of, still()).unwrap().checkpoint(to).unwrap_err().kind()
}

#[test]
fn another_file_system_gets_copies() {
    let (here, there) = (tempfile::tempdir().unwrap(), Path::new("/dev/shm"));
    let other = tempfile::tempdir_in(there);
    let Ok(other) = other.as_ref().map(tempfile::TempDir::path) else {
        println!("skipped: {} cannot be written", there.display());
        return;
    };
    if identity(here.path()).0 == identity(other).0 {
        println!("skipped: there is one file system only");
        return;
    }
    let db = Db::open(here.path().join("db"), still()).unwrap();
    write_database(&db);
    let made = db.checkpoint(other.join("copy")).unwrap();
    assert_eq!(made.linked_tables, 0);
    assert!(made.copied_tables > 0 && made.link_refusal.is_some(), "{made:?}");
    let copy = Db::open(other.join("copy"), still()).unwrap();
    assert_eq!(content(&copy), content(&db));
}

#[test]
fn a_store_on_real_files_and_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let db = Db::open(path("db"), still()).unwrap();
    write_database(&db);
    let mut store = BackupStore::open(path("stores/one")).unwrap();
    let expected = content(&db);
    store.create(&db, &BackupOptions::default()).unwrap();
    db.column_family("later", CfOptions::default()).unwrap();
    store.create(&db, &BackupOptions::default()).unwrap();
    assert!(store.verify(None, &Default::default()).unwrap().is_whole());
    store.restore(1, path("back"), &RestoreOptions::default()).unwrap();
    for table in tables(&path("back")) {
        assert_eq!(std::fs::metadata(table).unwrap().nlink(), 1, "a backup is never linked");
    }
    let back = Db::open(path("back"), still()).unwrap();
    assert_eq!(content(&back), expected);
    assert_eq!(store.purge(1).unwrap(), [1]);
    assert!(store.verify(None, &Default::default()).unwrap().is_whole());
}

/// Numbers in order, each in both families by one batch, while log segments are recycled and tables
/// compacted away: every copy that a reader makes is a prefix of them.
#[test]
fn what_a_reader_copies_beside_a_busy_writer_is_a_prefix() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let options = Options {
        memtable_bytes: 65_536,
        wal_bytes_max: 1 << 18,
        memory_budget_bytes: 8 << 20,
        ..Options::default()
    };
    let db = Db::open(path("db"), options).unwrap();
    let names = ["even", "odd"];
    let families = names.map(|name| db.column_family(name, CfOptions::default()).unwrap());
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0_u64.. {
                if is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    break;
                }
                let mut batch = db.batch();
                for family in &families {
                    batch.put(family, number.to_be_bytes(), [number as u8; 300]);
                }
                batch.commit().unwrap();
                // Busy all the time, but not so that a fast machine has more tables than a process
                // may open files.
                if number % 8 == 0 {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
            }
        });
        // Ends the writer when an assertion fails too.
        let over = Over(&is_over);
        let mut store = BackupStore::open(path("store")).unwrap();
        let mut copied = Vec::new();
        for round in 0..12 {
            let reader = Db::open_read_only(path("db"), still()).unwrap();
            // It moves on for a while, so that the state is one that the writer has left.
            std::thread::sleep(std::time::Duration::from_millis(30));
            let checkpoint = path(&format!("copy-{round}"));
            let made = reader.checkpoint(&checkpoint).unwrap();
            let backup = store.create(&reader, &BackupOptions::default()).unwrap().backup;
            assert_eq!(made.sequence, backup.sequence);
            let back = path(&format!("back-{round}"));
            store.restore(backup.id, &back, &RestoreOptions::default()).unwrap();
            let rows = numbers(&reader);
            reader.close().unwrap();
            assert_eq!(made.sequence, 2 * rows);
            for copy in [checkpoint, back] {
                let copy = Db::open(&copy, still()).unwrap();
                assert_eq!(numbers(&copy), rows);
                assert!(copy.verify(&Default::default()).unwrap().is_sound());
                // It takes writes behind what it has.
                copy.put("more", "rows").unwrap();
                copy.close().unwrap();
            }
            copied.push(rows);
        }
        drop(over);
        assert!(copied.is_sorted() && copied.first() < copied.last(), "{copied:?}");
    });
}

struct Over<'a>(&'a std::sync::atomic::AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

/// How many numbers there are, from 0 on without a gap, the same in both families.
fn numbers(db: &Db) -> u64 {
    let count = |name| {
        let family = db.existing_column_family(name).unwrap().unwrap();
        let mut next = 0_u64;
        for row in family.iter() {
            let (key, value) = row.unwrap();
            assert_eq!((&*key, &*value), (&next.to_be_bytes()[..], &[next as u8; 300][..]));
            next += 1;
        }
        next
    };
    let (even, odd) = (count("even"), count("odd"));
    assert_eq!(even, odd, "a batch is whole");
    even
}

#[test]
fn a_reader_cannot_flush_for_a_copy_and_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::open(directory.path().join("db"), still()).unwrap();
    write_database(&db);
    let reader = Db::open_read_only(directory.path().join("db"), still()).unwrap();
    let options = lithify::CheckpointOptions { flush: true, ..Default::default() };
    let copy = directory.path().join("copy");
    let error = reader.checkpoint_with(&copy, &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ReadOnly);
    assert!(!copy.exists());
    // Compacted and flushed away beside the reader, its state is still there to be copied.
    let expected = content(&reader);
    let rocks = db.existing_column_family("rocks").unwrap().unwrap();
    rocks.put(b"rock00000", b"again").unwrap();
    db.flush().unwrap();
    rocks.compact_range(..).unwrap();
    db.close().unwrap();
    reader.checkpoint(&copy).unwrap();
    assert_eq!(content(&Db::open(&copy, still()).unwrap()), expected);
}
