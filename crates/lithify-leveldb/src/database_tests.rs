//! The semantics in plain Rust: openings, comparators, policies, directories, threads.

use super::*;
use crate::iterator::Move;
use crate::order::Order;
use std::cmp::Ordering;
use std::fs;
use std::process::{Command, Stdio};

fn making() -> Settings {
    Settings { create_if_missing: true, ..Settings::default() }
}

#[track_caller]
fn text<T>(result: Result<T, Status>) -> String {
    result.err().expect("a failure").to_string()
}

fn put(database: &Database, key: &[u8], value: &[u8]) -> Result<(), Status> {
    database.write_one(Write::Put(key, value), false)
}

/// An order by a function.
struct By(&'static str, fn(&[u8], &[u8]) -> Ordering);

impl Order for By {
    fn name(&self) -> Vec<u8> {
        self.0.into()
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        (self.1)(a, b)
    }
}

fn with_order(order: By) -> Settings {
    Settings { order: Some(Arc::new(order)), ..making() }
}

#[test]
fn a_database_is_shared_by_threads() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Database>();
    is_shared::<Snapshot>();
    let directory = tempfile::tempdir().unwrap();
    // With a comparator: each write is checked against what the others have just written.
    let settings = with_order(By("bytes", |a, b| a.cmp(b)));
    let database = Database::open(&directory.path().join("rows"), &settings).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4_u32 {
            let database = &database;
            scope.spawn(move || {
                for number in 0..200_u32 {
                    let key = (number * 4 + thread).to_be_bytes();
                    put(database, &key, &thread.to_be_bytes()).unwrap();
                    assert!(database.get(&key, None).unwrap().is_some());
                }
            });
        }
    });
    let mut rows = database.iterator(None);
    rows.go(Move::First);
    for number in 0..800_u32 {
        let expected = (&number.to_be_bytes()[..], &(number % 4).to_be_bytes()[..]);
        assert_eq!(rows.row(), Some(expected));
        rows.go(Move::Next);
    }
    assert!(rows.row().is_none() && rows.status().is_none());
}

#[test]
fn what_is_not_bytewise_is_refused_before_it_is_stored() {
    let directory = tempfile::tempdir().unwrap();
    let fold = |a: &[u8], b: &[u8]| a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase());
    let settings = with_order(By("folds", fold));
    let database = Database::open(&directory.path().join("rows"), &settings).unwrap();
    let refused = "Not implemented: comparator folds does not order bytewise";
    put(&database, b"a", b"1").unwrap();
    put(&database, b"c", b"3").unwrap();
    assert!(text(put(&database, b"B", b"2")).starts_with(refused), "B is before a by its byte");
    assert!(text(put(&database, b"A", b"2")).starts_with(refused), "the same as a");
    assert!(text(database.get(b"C", None)).starts_with(refused), "the same as c");
    assert!(text(database.write_one(Write::Delete(b"C"), true)).starts_with(refused));
    let mut batch = WriteBatch::default();
    batch.push(Write::Put(b"x", b""));
    batch.push(Write::Put(b"X", b""));
    assert!(text(database.write(&batch, false)).starts_with(refused), "within a batch");
    put(&database, b"b", b"2").unwrap();
    let mut rows = database.iterator(None);
    rows.go(Move::Seek(b"B"));
    assert!(rows.row().is_none());
    assert!(rows.status().unwrap().to_string().starts_with(refused));
    let mut found = Vec::new();
    rows.go(Move::First);
    while let Some((key, _)) = rows.row() {
        found.push(key.to_vec());
        rows.go(Move::Next);
    }
    assert_eq!(found, [b"a", b"b", b"c"]);
}

#[test]
fn the_name_of_a_comparator_is_kept_and_compared() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rows");
    let bytes = |name| with_order(By(name, |a, b| a.cmp(b)));
    Database::open(&path, &bytes("one")).unwrap().close();
    let other = text(Database::open(&path, &bytes("two")));
    assert_eq!(other, "Invalid argument: one does not match existing comparator : two");
    let none = text(Database::open(&path, &making()));
    assert!(none.ends_with("one does not match existing comparator : leveldb.BytewiseComparator"));
    Database::open(&path, &bytes("one")).unwrap().close();
    crate::directory::restore(&path, &bytes("one")).unwrap();
    assert!(text(Database::open(&path, &bytes("two"))).contains("does not match"));
    // A database of another interface has the engine's order.
    let path = directory.path().join("engine's");
    let db = Db::open(&path, lithify::Options::default()).unwrap();
    db.put("a", "1").unwrap();
    db.close().unwrap();
    assert!(text(Database::open(&path, &bytes("one"))).contains("leveldb.BytewiseComparator"));
    let database = Database::open(&path, &Settings::default()).unwrap();
    assert_eq!(database.get(b"a", None).unwrap().unwrap(), "1");
}

#[test]
fn options_of_an_administrator_stay_and_options_of_the_program_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rows");
    let db = Db::open(&path, lithify::Options::default()).unwrap();
    let chosen: CfOptions = "compression=zstd-3 fanout=5".parse().unwrap();
    db.column_family(DEFAULT_FAMILY, chosen.clone()).unwrap();
    db.close().unwrap();
    Database::open(&path, &Settings::default()).unwrap().close();
    let blocks = Settings { block_bytes: Some(8192), ..Settings::default() };
    Database::open(&path, &blocks).unwrap().close();
    let db = Db::open(&path, lithify::Options::default()).unwrap();
    let kept = db.existing_column_family(DEFAULT_FAMILY).unwrap().unwrap().options();
    let expected = CfOptions { block_size_bytes: 8192, ..chosen };
    assert_eq!(kept, expected);
}

#[test]
fn a_lock_of_another_process_is_told_in_leveldbs_words() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rows");
    Database::open(&path, &making()).unwrap().close();
    let mut command = Command::new("flock");
    command.arg(path.join("LOCK")).args(["sh", "-c", "echo locked; sleep 60"]);
    let Ok(mut other) = command.stdout(Stdio::piped()).spawn() else {
        println!("skipped: flock is not installed");
        return;
    };
    let mut line = String::new();
    let output = other.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).unwrap();
    let shown = format!("IO error: lock {}/LOCK: Resource temporarily", path.display());
    assert!(text(Database::open(&path, &making())).starts_with(&shown));
    assert!(text(crate::directory::destroy(&path)).starts_with(&shown));
    assert!(text(crate::directory::restore(&path, &making())).starts_with(&shown));
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn a_repair_with_losses_keeps_what_was_damaged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rows");
    let settings = Settings { is_compressed: Some(false), ..making() };
    let database = Database::open(&path, &settings).unwrap();
    for number in 0..5_000_u32 {
        put(&database, &number.to_be_bytes(), &[7; 100]).unwrap();
    }
    database.compact(None, None);
    database.close();
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let table = fs::read_dir(&path).unwrap().flatten().map(|entry| entry.path());
    let table =
        table.into_iter().find(|path| path.extension().is_some_and(|e| e == "sst")).unwrap();
    let mut bytes = fs::read(&table).unwrap();
    bytes[50_000] ^= 1;
    fs::write(&table, bytes).unwrap();
    crate::directory::restore(&link, &settings).unwrap();
    let names = || {
        let entries = fs::read_dir(directory.path()).unwrap().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    assert_eq!(names(), ["link", "rows", "rows.damaged-1"]);
    let database = Database::open(&link, &settings).unwrap();
    let mut rows = database.iterator(None);
    let mut count = 0;
    rows.go(Move::First);
    while rows.row().is_some() {
        count += 1;
        rows.go(Move::Next);
    }
    assert!(count > 4_000 && count < 5_000, "{count} rows of 5000");
    drop(rows);
    database.close();
    crate::directory::restore(&path, &settings).unwrap();
    assert_eq!(names(), ["link", "rows", "rows.damaged-1"], "nothing was lost this time");
}
