//! What is different from LevelDB, on purpose: orders that are not bytewise, and directories of others.

use crate::leveldb::{Comparator, Database, Iterator, Move, Options, ours, theirs};
use crate::world::{all_rows, making};
use std::fs;
use std::path::Path;
use std::rc::Rc;

fn open(options: &Options, path: &Path) -> Result<Rc<Database>, String> {
    let (database, failure) = Database::open(options, &path.to_string_lossy(), None);
    match (database, failure) {
        (Some(database), None) => Ok(Rc::new(database)),
        (None, Some(failure)) => Err(failure),
        (database, failure) => panic!("{} and {failure:?}", database.is_some()),
    }
}

#[test]
fn a_reverse_order_is_refused_by_the_first_write_that_would_show_it() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = making(ours());
    options.set_comparator(Rc::new(Comparator::new(ours(), "example.Backwards", true)));
    let database = open(&options, &directory.path().join("rows")).unwrap();
    assert_eq!(database.put(b"m", b"1", false, None), None, "one row is in any order");
    let failure = database.put(b"n", b"2", false, None).unwrap();
    let words = "Not implemented: comparator example.Backwards does not order bytewise";
    assert!(failure.starts_with(words), "{failure}");
    assert!(database.delete(b"a", false, None).is_some_and(|text| text.starts_with(words)));
    let (value, failure) = database.get(b"a", None, None);
    assert!(value.is_none() && failure.is_some_and(|text| text.starts_with(words)));
    let mut iterator = Iterator::new(&database, None);
    iterator.go(&Move::Seek(b"z".to_vec()));
    assert!(iterator.row().is_none() && iterator.failure().unwrap().starts_with(words));
    iterator.go(&Move::First);
    assert!(iterator.row().is_some() && iterator.failure().is_none());
    drop(iterator);
    assert_eq!(all_rows(&database, false), [(b"m".to_vec(), b"1".to_vec())]);
}

#[test]
fn directories_of_others_stay_as_they_are() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("theirs");
    match theirs() {
        Some(leveldb) => {
            let database = open(&making(leveldb), &path).unwrap();
            assert_eq!(database.put(b"basalt", b"igneous", true, None), None);
        }
        None => {
            println!("LevelDB is not installed: files with its names stand for it");
            fs::create_dir(&path).unwrap();
            fs::write(path.join("CURRENT"), "MANIFEST-000002\n").unwrap();
            fs::write(path.join("MANIFEST-000002"), "").unwrap();
        }
    }
    let before = contents(&path);
    let options = making(ours());
    let shown = path.to_string_lossy().into_owned();
    let failure = open(&options, &path).err().unwrap();
    let expected = format!("Invalid argument: {shown} is a LevelDB database");
    assert!(failure.starts_with(&expected) && failure.contains("lithify import"), "{failure}");
    assert!(options.destroy(&shown, None).unwrap().starts_with(&expected));
    assert!(options.repair(&shown, None).unwrap().starts_with(&expected));
    assert_eq!(contents(&path), before);
}

fn contents(path: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found: Vec<_> = fs::read_dir(path)
        .unwrap()
        .flatten()
        .map(|entry| {
            (entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path()).unwrap())
        })
        .collect();
    found.sort();
    found
}
