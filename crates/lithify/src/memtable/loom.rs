//! The memtable under a concurrency checker, which runs a writer and a reader in every order that
//! a few preemptions allow and with every value that an atomic load may return. Nodes have room for
//! three, so that a handful of rows passes through every kind of split.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p lithify --lib memtable::loom --release`; with
//! `--features planted-defects` also with the defects that have to be noticed.

use super::MemTable;
use crate::base::{SequenceNumber, Trailer, ValueKind};
use crate::planted::models;
use ::loom::sync::atomic::{AtomicU64, Ordering};
use ::loom::thread;
use std::sync::Arc;

/// The rows of a run: the key of each sequence number, from one.
type Rows = &'static [&'static str];

fn insert(table: &MemTable, rows: Rows, sequence: SequenceNumber) {
    let key = rows[sequence as usize - 1].as_bytes();
    table.writer().insert(key, Trailer::new(sequence, ValueKind::Put), key);
}

/// What a reader at the snapshot must meet, in order.
fn expected(rows: Rows, snapshot: SequenceNumber) -> Vec<(&'static [u8], SequenceNumber)> {
    let mut expected: Vec<_> =
        (1..=snapshot).map(|s| (rows[s as usize - 1].as_bytes(), s)).collect();
    expected.sort_by_key(|(key, sequence)| (*key, std::cmp::Reverse(*sequence)));
    expected
}

fn walk(table: &Arc<MemTable>, rows: Rows, snapshot: SequenceNumber, forward: bool) {
    let mut cursor = table.cursor();
    let mut met = Vec::new();
    if forward {
        cursor.seek_to_first()
    } else {
        cursor.seek_to_last()
    }
    while cursor.valid() {
        assert_eq!(cursor.key(), cursor.value());
        met.push((cursor.key().to_vec(), cursor.trailer().sequence()));
        if forward { cursor.next() } else { cursor.prev() }
    }
    if !forward {
        met.reverse();
    }
    assert!(met.is_sorted_by_key(|(key, sequence)| (key.clone(), std::cmp::Reverse(*sequence))));
    met.retain(|(_, sequence)| *sequence <= snapshot);
    assert!(met.iter().map(|(key, s)| (&key[..], *s)).eq(expected(rows, snapshot)), "{met:?}");
}

fn gets(table: &MemTable, rows: Rows, snapshot: SequenceNumber) {
    let mut expected = expected(rows, snapshot);
    expected.dedup_by_key(|(key, _)| *key);
    for (key, sequence) in expected {
        let found = table.get(key, snapshot).map(|(_, trailer, value)| (trailer.sequence(), value));
        assert_eq!(found, Some((sequence, key)));
    }
}

/// Inserts the first `before` rows, then the others while a reader reads.
fn explore(rows: Rows, before: u64, read: fn(&Arc<MemTable>, Rows, SequenceNumber)) {
    let model = ::loom::model::Builder::new();
    model.check(move || {
        let table = Arc::new(MemTable::new());
        (1..=before).for_each(|sequence| insert(&table, rows, sequence));
        let visible = ::loom::sync::Arc::new(AtomicU64::new(before));
        let (table_read, visible_read) = (Arc::clone(&table), visible.clone());
        let reader = thread::spawn(move || {
            let snapshot = visible_read.load(Ordering::Acquire);
            read(&table_read, rows, snapshot);
        });
        for sequence in before + 1..=rows.len() as u64 {
            insert(&table, rows, sequence);
            visible.store(sequence, Ordering::Release);
        }
        assert!(reader.join().is_ok());
        walk(&table, rows, rows.len() as u64, true);
        walk(&table, rows, rows.len() as u64, false);
        gets(&table, rows, rows.len() as u64);
    });
}

/// A walk each way and a get of every row, as models of their own to keep each small.
fn check_all(rows: Rows, before: u64) {
    models::run(|| explore_all(rows, before));
}

fn explore_all(rows: Rows, before: u64) {
    explore(rows, before, |table, rows, snapshot| walk(table, rows, snapshot, true));
    explore(rows, before, |table, rows, snapshot| walk(table, rows, snapshot, false));
    explore(rows, before, |table, rows, snapshot| gets(table, rows, snapshot));
}

/// All of them show in a leaf that is the root.
#[cfg(feature = "planted-defects")]
#[test]
fn every_defect_of_weak_memory_is_noticed() {
    use crate::planted::{Defect, Harness};
    for defect in Defect::of(Harness::WeakMemory) {
        let is_noticed = models::fails_with(defect, || explore_all(&["m", "f", "t"], 0));
        assert!(is_noticed, "{defect:?} is missed");
        println!("| `{}` | {} | inserts into a leaf |", defect.name(), defect.breaks());
    }
}

#[test]
fn inserts_into_a_leaf() {
    check_all(&["m", "f", "t"], 1);
    check_all(&["m", "t", "x"], 0);
    check_all(&["m", "m", "m"], 1);
}

#[test]
fn a_split_of_the_root_leaf() {
    check_all(&["m", "f", "t", "h", "a"], 3);
}

#[test]
fn an_ascending_load() {
    check_all(&["c", "d", "e", "f", "g"], 3);
}

#[test]
fn a_split_below_an_inner_node() {
    check_all(&["c", "f", "i", "g", "h", "a", "b"], 5);
}

#[test]
fn a_split_of_an_inner_node() {
    check_all(&["c", "d", "e", "f", "g", "h", "i", "j", "k", "b", "c"], 9);
}

#[test]
fn an_ascending_load_past_a_full_inner_node() {
    check_all(&["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"], 9);
}

#[test]
fn splits_below_two_heights_of_inner_nodes() {
    check_all(&["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n"], 12);
    check_all(&["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "jj"], 12);
}
