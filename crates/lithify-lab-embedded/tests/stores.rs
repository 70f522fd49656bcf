//! Databases of fjall as rows: every row is seen, places are spread over all of them, nothing is written where
//! they are, and what cannot be read is an error.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use fjall::{Database, KeyspaceCreateOptions, PersistMode};
use lithify_advisor::input::Source;
use lithify_advisor::{AdviseError, Silent};
use lithify_lab_embedded::stores;
use tempfile::TempDir;

const ROWS: u64 = 20_000;

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// Two keyspaces: the rows of the large one are half in a table and half in the journal, and one was removed.
fn filled() -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let database = Database::builder(directory.path()).open().expect("opens");
    let small = database.keyspace("small", KeyspaceCreateOptions::default).expect("is made");
    small.insert("a", "b").expect("is written");
    let large = database.keyspace("large", KeyspaceCreateOptions::default).expect("is made");
    for number in 0..=ROWS {
        large.insert(key(number), [b'x'; 100]).expect("is written");
        if number == ROWS / 2 {
            large.rotate_memtable_and_wait().expect("is flushed");
        }
    }
    large.remove(key(ROWS)).expect("is removed");
    database.persist(PersistMode::SyncAll).expect("is synced");
    directory
}

/// All files below a directory, with their sizes and times.
fn listing(directory: &Path) -> Vec<(PathBuf, u64, SystemTime)> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).expect("is there") {
        let path = entry.expect("is there").path();
        let metadata = path.metadata().expect("has some");
        if metadata.is_dir() {
            files.extend(listing(&path));
        } else {
            files.push((path, metadata.len(), metadata.modified().expect("has a time")));
        }
    }
    files.sort();
    files
}

fn open(directory: &Path, table: Option<&str>) -> Result<Box<dyn Source>, AdviseError> {
    stores::open(directory, &[], table).expect("is a database of fjall")
}

fn count(source: &mut dyn Source) -> Result<u64, AdviseError> {
    let mut rows = 0;
    source.scan(&mut |row, _| {
        assert_eq!((row.key, row.value), (&key(rows)[..], &[b'x'; 100][..]));
        rows += 1;
        ControlFlow::Continue(())
    })?;
    Ok(rows)
}

#[test]
fn rows_of_tables_and_journals_are_read_and_nothing_is_written() {
    let directory = filled();
    let before = listing(directory.path());
    let mut source = open(directory.path(), None).expect("opens");
    assert_eq!(source.facts().format, "fjall database, keyspace large");
    assert_eq!(count(&mut *source).expect("is read"), ROWS);
    source.prepare(&Silent).expect("is read");
    assert_eq!(source.facts().data_bytes, ROWS * 108);
    for share in [0.0, 0.25, 0.5, 0.9] {
        let place = source.place(share, 10_000).expect("is read");
        let first = place.iter().next().map(|row| row.key.to_vec());
        assert_eq!(first, Some(key((share * ROWS as f64) as u64).to_vec()), "{share}");
        assert!(place.data_bytes() >= 10_000 && place.data_bytes() < 11_000);
    }
    // Nobody else opens it meanwhile, and everybody may afterwards.
    assert!(Database::builder(directory.path()).open().is_err());
    drop(source);
    assert_eq!(listing(directory.path()), before);
    Database::builder(directory.path()).open().expect("opens");
}

#[test]
fn a_keyspace_is_chosen_by_name() {
    let directory = filled();
    // A directory of somebody else among the keyspaces.
    std::fs::create_dir(directory.path().join("keyspaces/lost+found")).expect("is made");
    let mut rows = Vec::new();
    let mut source = open(directory.path(), Some("small")).expect("opens");
    let scanned = source.scan(&mut |row, _| {
        rows.push((row.key.to_vec(), row.value.to_vec()));
        ControlFlow::Continue(())
    });
    scanned.expect("is read");
    assert_eq!(rows, [(b"a".to_vec(), b"b".to_vec())]);
    drop(source);
    let before = listing(directory.path());
    let refused = open(directory.path(), Some("colours")).err().expect("is unknown");
    assert!(refused.is_usage());
    assert!(refused.to_string().ends_with("there are: large, small"), "{refused}");
    let refused = stores::open(directory.path(), &["id".to_owned()], None).expect("is one");
    assert!(refused.err().expect("has keys").is_usage());
    assert_eq!(listing(directory.path()), before);
}

/// What is where is told by the path below the database, not by the database's own name.
#[test]
fn a_database_may_have_any_name_and_be_read_only() {
    for name in ["tables", "blobs", "keyspaces"] {
        let (directory, place) = (filled(), tempfile::tempdir().expect("a directory"));
        let path = place.path().join(name);
        std::fs::rename(directory.path(), &path).expect("is moved");
        for (file, ..) in listing(&path) {
            let mut permissions = file.metadata().expect("has some").permissions();
            permissions.set_readonly(true);
            std::fs::set_permissions(&file, permissions).expect("are set");
        }
        let before = listing(&path);
        let mut source = open(&path, None).expect("opens");
        assert_eq!(count(&mut *source).expect("is read"), ROWS);
        drop(source);
        assert_eq!(listing(&path), before);
    }
}

#[test]
fn one_that_is_open_elsewhere_is_refused() {
    let directory = filled();
    let _open = Database::builder(directory.path()).open().expect("opens");
    let refused = open(directory.path(), None).err().expect("is open");
    assert!(refused.to_string().ends_with("is open elsewhere: close it first"), "{refused}");
}

#[test]
fn what_cannot_be_read_is_an_error() {
    let directory = filled();
    let version = directory.path().join("version");
    let own = std::fs::read(&version).expect("is there");
    std::fs::write(&version, b"FJL\x02").expect("is written");
    let refused = open(directory.path(), None).err().expect("is too old");
    assert!(refused.to_string().ends_with("fjall's format 2; format 3 is read"), "{refused}");
    std::fs::write(&version, own).expect("is written");
    // Half of every table is zeros.
    for (path, length, _) in listing(directory.path()) {
        if path.parent().is_some_and(|parent| parent.ends_with("tables")) {
            let mut bytes = std::fs::read(&path).expect("is there");
            bytes[..length as usize / 2].fill(0);
            std::fs::write(&path, bytes).expect("is written");
        }
    }
    let read = open(directory.path(), Some("large")).and_then(|mut source| count(&mut *source));
    let error = read.expect_err("is damaged");
    let is_clear =
        error.to_string().ends_with("take the database from a copy, because fjall has no repair");
    assert!(!error.is_usage() && is_clear, "{error}");
    assert!(stores::open(&directory.path().join("keyspaces"), &[], None).is_none());
}
