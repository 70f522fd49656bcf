//! A small database with everything in it that a copy could lose, and what is asked of a copy.

use crate::support::{Model, Random, rows, small_options};
use lithify::backup::{BackupOptions, BackupStore};
use lithify::fs::{CrashKeep, FileSystem, MemoryEnvironment, MemoryFileSystem, World};
use lithify::{CfOptions, ColumnFamily, Db, Durability, Options};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

pub const DB: &str = "/home/db";
pub const COPY: &str = "/home/copy";
pub const STORE: &str = "/home/store";

/// All rows of all column families.
pub type Content = BTreeMap<String, Model>;

pub fn world(files: &MemoryFileSystem, seed: u64) -> World {
    World { files: Arc::new(files.clone()), environment: Arc::new(MemoryEnvironment::new(seed)) }
}

pub fn options(durability: Durability) -> Options {
    Options { durability, create_if_missing: false, ..small_options() }
}

pub fn open_at(files: &MemoryFileSystem, path: &str, seed: u64) -> lithify::Result<Db> {
    Db::open_in(path, options(Durability::Buffered), world(files, seed))
}

pub fn open(files: &MemoryFileSystem, seed: u64) -> Db {
    open_at(files, DB, seed).unwrap()
}

pub fn family(db: &Db, name: &str) -> ColumnFamily {
    db.existing_column_family(name).unwrap().unwrap()
}

pub fn content(db: &Db) -> Content {
    let names = db.column_family_names();
    names.iter().map(|name| (name.clone(), rows(&family(db, name)))).collect()
}

pub fn key(number: u64) -> Vec<u8> {
    format!("rock{number:05}").into_bytes()
}

/// Puts rows of about 100 bytes.
pub fn put(family: &ColumnFamily, numbers: impl Iterator<Item = u64>, seed: u64) {
    let mut random = Random(seed);
    numbers.for_each(|number| family.put(key(number), random.bytes(100)).unwrap());
}

/// A database with tables in level 0 and below, some of them ingested, range deletes in tables and
/// in the log, an empty column family, a dropped one, and rows that are in the log only; all of it
/// durable.
pub fn write_database(db: &Db) {
    let small = || CfOptions { table_bytes: 64 << 10, ..CfOptions::default() };
    let rocks = db.column_family("rocks", small()).unwrap();
    let lost = db.column_family("lost", small()).unwrap();
    let links = db.column_family("links", CfOptions::default()).unwrap();
    db.column_family("empty", CfOptions::default()).unwrap();
    put(&rocks, 0..1500, 1);
    put(&lost, 0..10, 2);
    put(&links, 0..50, 3);
    rocks.compact_range(..).unwrap();
    rocks.delete_range(key(20), key(40)).unwrap();
    put(&rocks, (30..500).step_by(7), 4);
    let mut ingest = rocks.ingest().unwrap();
    for number in 2600..2700 {
        ingest.put(key(number), b"ingested").unwrap();
    }
    ingest.commit().unwrap();
    rocks.flush().unwrap();
    db.drop_column_family("lost").unwrap();
    links.delete_range(key(10), key(15)).unwrap();
    put(&rocks, (0..50).step_by(3), 5);
    rocks.delete(key(2650)).unwrap();
    links.single_delete(key(20)).unwrap();
    let mut batch = db.batch();
    batch.put(&rocks, b"pair", b"left").put(&links, b"pair", b"right");
    batch.commit().unwrap();
    db.sync().unwrap();
}

/// The disk of a process that was killed with such a database open, and what is in that.
pub fn disk() -> (MemoryFileSystem, Content) {
    let files = MemoryFileSystem::new();
    files.create_directory(Path::new("/home")).unwrap();
    files.sync_directory(Path::new("")).unwrap();
    let made = Options { create_if_missing: true, ..options(Durability::Buffered) };
    let db = Db::open_in(DB, made, world(&files, 1)).unwrap();
    write_database(&db);
    let content = content(&db);
    (files.crash_clone(0, CrashKeep::Everything), content)
}

/// Asserts that there is a database with that content, which can be written to.
pub fn assert_whole(files: &MemoryFileSystem, path: &str, expected: &Content, what: &str) {
    let db = open_at(files, path, 77).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(content(&db) == *expected, "{what}: {path} has other rows");
    family(&db, "rocks").put(b"later", b"on").unwrap();
    db.flush().unwrap();
    assert_eq!(family(&db, "rocks").get(b"later").unwrap().as_deref(), Some(&b"on"[..]));
    db.close().unwrap();
}

/// Closes a database, opens it again and writes until segments of the old log are in use anew.
pub fn close_and_go_on(files: &MemoryFileSystem, db: &Db) -> Db {
    db.clone().close().unwrap();
    let db = open(files, 6);
    db.flush().unwrap();
    put(&family(&db, "rocks"), 0..1500, 7);
    db
}

/// The names in a directory.
pub fn names(files: &dyn FileSystem, path: &str) -> Vec<String> {
    let names = files.list(Path::new(path)).unwrap();
    names.iter().map(|name| name.to_string_lossy().into_owned()).collect()
}

pub fn exists(files: &dyn FileSystem, path: &str) -> bool {
    files.exists(Path::new(path)).unwrap()
}

pub fn store(files: &MemoryFileSystem) -> BackupStore {
    BackupStore::open_in(STORE, world(files, 5)).unwrap()
}

/// Makes a backup as it comes.
pub fn back_up(store: &mut BackupStore, db: &Db) -> u64 {
    store.create(db, &BackupOptions::default()).unwrap().backup.id
}
