//! What somebody who knows another embedded store writes first compiles, and does what it says.

use bytes::Bytes;
use lithify::{CfOptions, Db, ErrorKind, Iter, Options, Slice};
use std::collections::HashMap;
use std::ops::Bound;

fn open() -> (tempfile::TempDir, Db) {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::open(directory.path(), Options::default()).unwrap();
    (directory, db)
}

fn keys(rows: impl Iterator<Item = lithify::Result<(Slice, Slice)>>) -> Vec<String> {
    rows.map(|row| String::from_utf8(row.unwrap().0.into()).unwrap()).collect()
}

fn with_letters(letters: &str) -> (tempfile::TempDir, Db) {
    let (directory, db) = open();
    for letter in letters.chars() {
        db.put(letter.to_string(), [letter as u8; 3]).unwrap();
    }
    (directory, db)
}

#[test]
fn keys_and_values_are_anything_that_is_bytes() {
    let (_directory, db) = open();
    db.put("text", "text").unwrap();
    db.put(b"array", [1, 2, 3]).unwrap();
    db.put(String::from("string"), vec![4, 5]).unwrap();
    db.put(vec![6_u8], &b"slice"[..]).unwrap();
    db.put(Bytes::from_static(b"bytes"), Slice::from("slice")).unwrap();
    db.put(7_u64.to_be_bytes(), 8_u64.to_be_bytes()).unwrap();
    assert_eq!(db.get("text").unwrap().unwrap(), "text");
    assert_eq!(db.get("array").unwrap().unwrap(), [1, 2, 3]);
    assert_eq!(db.get(b"string").unwrap().unwrap(), vec![4, 5]);
    assert_eq!(db.get([6]).unwrap().unwrap(), b"slice");
    assert_eq!(db.get(b"bytes").unwrap(), Some(Slice::from(b"slice".to_vec())));
    let number: Vec<u8> = db.get(7_u64.to_be_bytes()).unwrap().unwrap().into();
    assert_eq!(u64::from_be_bytes(number.try_into().unwrap()), 8);
    assert_eq!(db.multi_get(&["text", "none"]).unwrap(), [Some("text".into()), None]);
    assert!(db.contains("text").unwrap() && !db.contains("none").unwrap());
    db.delete("text").unwrap();
    assert_eq!(db.get("text").unwrap(), None);
}

#[test]
fn the_default_family_is_made_by_the_first_write_alone() {
    let (directory, db) = open();
    assert_eq!(db.get("a").unwrap(), None);
    assert_eq!(db.multi_get(&["a", "b"]).unwrap(), [None, None]);
    assert!(!db.contains("a").unwrap());
    assert_eq!(db.iter().chain(db.range("a"..)).chain(db.prefix("a")).count(), 0);
    let mut cursor = db.cursor(..).unwrap();
    assert!(!cursor.next().unwrap() && !cursor.seek("a").unwrap() && !cursor.valid());
    db.delete("a").unwrap();
    db.delete_range("a", "z").unwrap();
    assert!(db.column_family_names().is_empty());
    db.put("a", "1").unwrap();
    assert_eq!(db.column_family_names(), ["default"]);
    drop((cursor, db));
    let db = Db::open(directory.path(), Options::default()).unwrap();
    assert_eq!(db.get("a").unwrap().unwrap(), "1");
    db.drop_column_family("default").unwrap();
    assert_eq!(db.get("a").unwrap(), None);
    db.put("b", "2").unwrap();
    assert_eq!(keys(db.iter()), ["b"]);
}

#[test]
fn an_existing_family_of_that_name_is_the_default_one() {
    let (_directory, db) = open();
    let options = CfOptions { filter_bits_per_key: 3, ..CfOptions::default() };
    let family = db.column_family("default", options.clone()).unwrap();
    db.put("a", "1").unwrap();
    assert_eq!(family.get("a").unwrap().unwrap(), "1");
    assert_eq!(db.default_family().unwrap().options().filter_bits_per_key, 3);
    assert_eq!(db.default_family().unwrap().id(), family.id());
}

#[test]
fn ranges_are_those_of_the_standard_library() {
    let (_directory, db) = with_letters("abcde");
    assert_eq!(keys(db.range("b".."d")), ["b", "c"]);
    assert_eq!(keys(db.range(b"b"..=b"d")), ["b", "c", "d"]);
    assert_eq!(keys(db.range(vec![b'd']..)), ["d", "e"]);
    assert_eq!(keys(db.range(..String::from("b"))), ["a"]);
    assert_eq!(keys(db.range(..=[b'b'])), ["a", "b"]);
    assert_eq!(keys(db.range((Bound::Excluded("b"), Bound::Included("d")))), ["c", "d"]);
    assert_eq!(keys(db.range((Bound::Excluded(b"d".to_vec()), Bound::Unbounded))), ["e"]);
    assert_eq!(keys(db.range(..)), ["a", "b", "c", "d", "e"]);
    // Directly behind an excluded start.
    db.put(b"b\0", "").unwrap();
    assert_eq!(keys(db.range((Bound::Excluded("b"), Bound::Excluded("c")))), ["b\0"]);
    assert_eq!(keys(db.prefix("b")), ["b", "b\0"]);
}

#[test]
fn iterators_are_owned_sent_and_read_from_both_ends() {
    fn returned(db: &Db) -> Iter {
        db.range("a"..)
    }
    let (_directory, db) = with_letters("abcdef");
    let rows = returned(&db);
    // What comes later is not seen, from either end.
    db.put("b2", "").unwrap();
    db.put("z", "").unwrap();
    db.delete("f").unwrap();
    let mut rows = std::thread::spawn(move || rows).join().unwrap();
    let next = |rows: &mut Iter| rows.next().unwrap().unwrap().0;
    let next_back = |rows: &mut Iter| rows.next_back().unwrap().unwrap().0;
    assert_eq!(next(&mut rows), "a");
    assert_eq!(next_back(&mut rows), "f");
    assert_eq!(next_back(&mut rows), "e");
    assert_eq!(next(&mut rows), "b");
    assert_eq!(next(&mut rows), "c");
    assert_eq!(next_back(&mut rows), "d");
    assert!(rows.next().is_none() && rows.next_back().is_none() && rows.next().is_none());
    assert_eq!(keys(db.iter().rev().take(2)), ["z", "e"]);
    let values: Vec<Slice> = db.values().map(Result::unwrap).take(2).collect();
    assert_eq!(values, ["aaa", "bbb"]);
    assert_eq!(db.keys().next_back().unwrap().unwrap(), "z");
    let map: HashMap<Slice, Slice> = db.range(.."b").map(Result::unwrap).collect();
    assert_eq!(map[&b"a"[..]], b"aaa");
}

#[test]
fn every_way_of_mixing_the_ends_gives_each_row_once() {
    let letters = "abcdefg";
    let (_directory, db) = with_letters(letters);
    db.flush().unwrap();
    for ways in 0..1 << letters.len() {
        let mut rows = db.iter();
        let (mut front, mut back) = (String::new(), String::new());
        for step in 0..letters.len() {
            let from_front = ways >> step & 1 == 0;
            let row = if from_front { rows.next() } else { rows.next_back() };
            let key = String::from_utf8(row.unwrap().unwrap().0.into()).unwrap();
            if from_front { front.push_str(&key) } else { back.insert_str(0, &key) }
        }
        assert_eq!(front + &back, letters, "{ways:b}");
        assert!(rows.next().is_none() && rows.next_back().is_none());
    }
}

#[test]
fn clones_are_one_database_and_the_last_one_closes_it() {
    let (directory, db) = with_letters("a");
    let other = db.clone();
    let handle = other.default_family().unwrap();
    drop(db);
    other.put("b", "2").unwrap();
    assert_eq!(handle.get("b").unwrap().unwrap(), "2");
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let db = other.clone();
            std::thread::spawn(move || db.put(format!("w{writer}"), "x").unwrap())
        })
        .collect();
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    assert_eq!(other.prefix("w").count(), 4);
    drop(other);
    assert_eq!(handle.get("b").unwrap_err().kind(), ErrorKind::Closed);
    let db = Db::open(directory.path(), Options::default()).unwrap();
    let other = db.clone();
    db.close().unwrap();
    assert_eq!(other.get("b").unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(other.put("b", "").unwrap_err().kind(), ErrorKind::Closed);
    let mut rows = other.iter();
    assert_eq!(rows.next().unwrap().unwrap_err().kind(), ErrorKind::Closed);
    assert!(rows.next().is_none());
}

#[test]
fn a_reader_that_moves_on_leaves_its_old_handles_readable() {
    let (directory, db) = with_letters("a");
    db.sync().unwrap();
    let mut reader = Db::open_read_only(directory.path(), Options::default()).unwrap();
    let (old, clone) = (reader.default_family().unwrap(), reader.clone());
    db.put("b", "2").unwrap();
    reader.refresh().unwrap();
    assert_eq!(reader.get("b").unwrap().unwrap(), "2");
    assert_eq!(old.get("b").unwrap(), None);
    assert_eq!(clone.get("a").unwrap().unwrap(), "aaa");
    drop(clone);
    assert_eq!(old.get("a").unwrap().unwrap(), "aaa");
    assert_eq!(reader.put("c", "").unwrap_err().kind(), ErrorKind::ReadOnly);
    assert_eq!(reader.delete("c").unwrap_err().kind(), ErrorKind::ReadOnly);
}

#[test]
fn everything_can_be_printed() {
    let (_directory, db) = with_letters("a");
    let family = db.default_family().unwrap();
    let text = format!("{db:?} {family:?} {:?} {:?}", db.iter(), db.snapshot());
    assert!(text.contains("families: [\"default\"]") && text.contains("Snapshot"), "{text}");
    let mut batch = db.batch();
    batch.put(&family, "b", "2").delete(&family, String::from("a"));
    assert!(format!("{batch:?}").contains("writes: 2"));
    batch.commit().unwrap();
    let mut transaction = db.transaction();
    transaction.put(&family, "c", [3]).unwrap();
    assert_eq!(transaction.get(&family, "c").unwrap().unwrap(), [3]);
    assert!(format!("{transaction:?}").contains("writes: 1"));
    transaction.commit().unwrap();
    let mut ingest = family.ingest().unwrap();
    ingest.extend((0..3_u8).map(|number| ([number], "row"))).unwrap();
    let refused = ingest.extend([([9], ""), ([5], "")]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    assert_eq!(ingest.commit().unwrap().rows, 4);
    assert_eq!(db.iter().count(), 6);
}

#[test]
fn a_snapshot_is_read_as_a_database_is() {
    let (_directory, db) = with_letters("abc");
    let before = db.snapshot();
    db.delete("a").unwrap();
    db.put("b", "new").unwrap();
    db.put("d", "new").unwrap();
    db.flush().unwrap();
    assert_eq!(before.get("a").unwrap().unwrap(), "aaa");
    assert_eq!(before.get("d").unwrap(), None);
    assert!(before.contains("a").unwrap() && !before.contains("d").unwrap());
    assert_eq!(before.multi_get(&["b", "d"]).unwrap(), [Some("bbb".into()), None]);
    assert_eq!(keys(before.iter()), ["a", "b", "c"]);
    assert_eq!(keys(before.range("b"..).rev()), ["c", "b"]);
    assert_eq!(keys(before.prefix("b")), ["b"]);
    let values: Vec<Slice> = before.values().collect::<lithify::Result<_>>().unwrap();
    assert_eq!((values.len(), before.keys().count()), (3, 3));
    let mut cursor = before.cursor("b"..).unwrap();
    assert!(cursor.next().unwrap() && cursor.value() == b"bbb");
    let family = db.default_family().unwrap();
    assert_eq!(keys(family.range_at(.."c", &before)), ["a", "b"]);
    assert_eq!(keys(family.prefix_at("c", &before)), ["c"]);
    assert_eq!(keys(db.iter()), ["b", "c", "d"]);
}

#[test]
fn clones_and_iterators_keep_what_a_snapshot_shows_after_it() {
    let (_directory, db) = with_letters("abc");
    let snapshot = db.snapshot();
    let clone = snapshot.clone();
    let mut rows = clone.range("a"..);
    drop(snapshot);
    let replace_all = |value: &str| {
        for letter in ["a", "b", "c"] {
            db.put(letter, value).unwrap();
        }
        db.default_family().unwrap().compact_range(..).unwrap();
    };
    replace_all("second");
    assert_eq!(clone.get("a").unwrap().unwrap(), "aaa");
    drop(clone);
    replace_all("third");
    // Both ends are first asked for now.
    assert_eq!(rows.next_back().unwrap().unwrap().1, "ccc");
    assert_eq!(rows.next().unwrap().unwrap().1, "aaa");
    assert_eq!(db.stats().snapshots_held, 1);
    drop(rows);
    assert_eq!(db.stats().snapshots_held, 0);
}

#[test]
fn snapshots_without_a_default_family_and_of_another_database() {
    let (_directory, db) = open();
    let nothing = db.snapshot();
    assert_eq!(nothing.get("a").unwrap(), None);
    assert_eq!(nothing.multi_get(&["a"]).unwrap(), [None]);
    assert!(!nothing.cursor(..).unwrap().next().unwrap());
    assert_eq!(nothing.iter().count(), 0);
    db.put("a", "1").unwrap();
    assert_eq!((nothing.get("a").unwrap(), nothing.iter().count()), (None, 0));
    let (_other_directory, other) = with_letters("a");
    let mut rows = other.default_family().unwrap().range_at(.., &nothing);
    assert_eq!(rows.next().unwrap().unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert!(rows.next().is_none());
    db.close().unwrap();
    assert_eq!(nothing.get("a").unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(nothing.iter().next().unwrap().unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn the_iterators_of_a_transaction_show_its_writes_from_both_ends() {
    let (_directory, db) = with_letters("acd");
    let family = db.default_family().unwrap();
    let mut transaction = db.transaction();
    transaction.put(&family, "b", "own").unwrap();
    transaction.delete(&family, "d").unwrap();
    let mut rows = transaction.iter(&family);
    // Neither what is written next nor what others commit.
    transaction.put(&family, "e", "own").unwrap();
    db.put("f", "of others").unwrap();
    assert_eq!(rows.next_back().unwrap().unwrap().0, "c");
    db.put("aa", "of others").unwrap();
    assert_eq!(keys(&mut rows), ["a", "b"]);
    assert_eq!(keys(transaction.range(&family, "b"..).rev()), ["f", "e", "c", "b"]);
    assert_eq!(keys(transaction.prefix(&family, "a")), ["a", "aa"]);
    let (_other_directory, other) = with_letters("a");
    let mut refused = transaction.iter(&other.default_family().unwrap());
    assert_eq!(refused.next().unwrap().unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn what_an_iterator_of_an_optimistic_transaction_gave_is_validated() {
    let (_directory, db) = with_letters("abcd");
    let family = db.default_family().unwrap();
    let commit_after = |read: &dyn Fn(&mut Iter), written: &str| {
        let mut transaction = db.optimistic_transaction();
        read(&mut transaction.iter(&family));
        transaction.put(&family, "z", "own").unwrap();
        db.put(written, "of others").unwrap();
        transaction.commit().map_err(|error| error.kind())
    };
    let first = |rows: &mut Iter| assert_eq!(rows.next().unwrap().unwrap().0, "a");
    let last = |rows: &mut Iter| assert!(rows.next_back().unwrap().is_ok());
    assert_eq!(commit_after(&first, "a"), Err(ErrorKind::Conflict));
    assert_eq!(commit_after(&first, "0 is new"), Err(ErrorKind::Conflict));
    assert_eq!(commit_after(&|rows| assert!(rows.next().is_some()), "b"), Ok(()));
    assert_eq!(commit_after(&last, "zz is new"), Err(ErrorKind::Conflict));
    assert_eq!(commit_after(&last, "b"), Ok(()));
    assert_eq!(commit_after(&|rows| assert!(rows.count() > 4), "b"), Err(ErrorKind::Conflict));
}
