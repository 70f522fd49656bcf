//! Compaction filters: what they see, what becomes of rows, and what a filter that fails leaves.

use crate::support::{PATH, Parts, rows, small_options};
use lithify::stats::Counter;
use lithify::{
    CfOptions, ColumnFamily, CompactionFilter, Db, ErrorKind, FilterDecision, MergeOperator,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn options() -> CfOptions {
    CfOptions { table_bytes: 64 << 10, block_size_bytes: 1 << 10, ..CfOptions::default() }
}

fn open(parts: &Parts) -> (Db, ColumnFamily) {
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    let family = db.column_family("rows", options()).unwrap();
    (db, family)
}

fn key(number: u64) -> String {
    format!("key{number:06}")
}

/// Removes each third row and changes each fourth of those that are left.
fn thirds() -> CompactionFilter {
    CompactionFilter::new("thirds", |row| {
        let number: u64 = std::str::from_utf8(&row.key[3..])?.parse()?;
        Ok(match number {
            number if number % 3 == 0 => FilterDecision::Remove,
            number if number % 4 == 0 => FilterDecision::Change(b"changed".to_vec()),
            _ => FilterDecision::Keep,
        })
    })
}

#[test]
fn rows_go_and_change_and_older_ones_stay_hidden() {
    let parts = Parts::new(1);
    let (db, family) = open(&parts);
    let load = |text: &str| (0..3_000).for_each(|n| family.put(key(n), text).unwrap());
    load("old");
    family.compact_range(..).unwrap();
    // Newer rows in level 0, over those at the bottom.
    family.supply_compaction_filter(thirds());
    load("new");
    family.compact_level0().unwrap();
    db.wait_for_compaction().unwrap();
    family.compact_range(..).unwrap();
    let found = rows(&family);
    assert_eq!(found.len(), 2_000);
    for (key, value) in &found {
        let number: u64 = std::str::from_utf8(&key[3..]).unwrap().parse().unwrap();
        let expected = if number.is_multiple_of(4) { "changed" } else { "new" };
        assert_eq!(value, expected.as_bytes(), "{number}");
    }
    assert!(db.stats().figures.counter(Counter::FilteredRows) >= 1_500);
    // Taken back, it has no say.
    family.supply_compaction_filter(None);
    load("again");
    family.compact_range(..).unwrap();
    assert_eq!(rows(&family).len(), 3_000);
}

/// A load in key order is moved down and copied block by block, but not past a filter.
#[test]
fn no_row_passes_by_a_filter_in_a_moved_table_or_a_copied_block() {
    let parts = Parts::new(2);
    let (db, family) = open(&parts);
    family.supply_compaction_filter(thirds());
    for number in 0..6_000 {
        family.put(key(number), [7; 50]).unwrap();
    }
    family.flush().unwrap();
    db.wait_for_compaction().unwrap();
    // The bottom is rewritten by hand.
    family.compact_range(..).unwrap();
    assert_eq!(rows(&family).len(), 4_000);
}

#[test]
fn what_a_snapshot_sees_is_not_shown_to_a_filter() {
    let parts = Parts::new(3);
    let (db, family) = open(&parts);
    (0..30).for_each(|number| family.put(key(number), "seen").unwrap());
    let snapshot = db.snapshot();
    (30..60).for_each(|number| family.put(key(number), "later").unwrap());
    family.supply_compaction_filter(thirds());
    family.compact_range(..).unwrap();
    assert_eq!(rows(&family).len(), 50);
    let mut seen = family.cursor_at(.., &snapshot).unwrap();
    let mut count = 0;
    while seen.next().unwrap() {
        assert_eq!(seen.value(), b"seen");
        count += 1;
    }
    assert_eq!(count, 30);
    drop((seen, snapshot));
    family.compact_range(..).unwrap();
    assert_eq!(rows(&family).len(), 40);
}

/// Without the operator's code operands reach the last level as they are: its rewrite first makes rows of them.
#[test]
fn a_row_that_operands_become_is_shown_at_once() {
    let parts = Parts::new(6);
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    let join = MergeOperator::new("join", |_, value, operands| {
        Some([value.unwrap_or_default(), &operands.concat()].concat())
    });
    let joined = CfOptions { merge_operator: join.clone(), ..options() };
    let family = db.column_family("rows", joined).unwrap();
    for (number, text) in [(0, "goes"), (1, "stays"), (4, "changes")] {
        family.merge(key(number), text).unwrap();
        family.merge(key(number), "!").unwrap();
    }
    db.close().unwrap();
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    let family = db.existing_column_family("rows").unwrap().unwrap();
    family.compact_range(..).unwrap();
    family.supply_merge_operator(join).unwrap();
    family.supply_compaction_filter(thirds());
    family.compact_range(..).unwrap();
    let found = rows(&family);
    let values: Vec<&[u8]> = found.values().map(|value| &value[..]).collect();
    assert_eq!(values, [&b"stays!"[..], b"changed"]);
}

#[test]
fn levels_and_ages_are_what_they_are_called() {
    let parts = Parts::new(4);
    let (db, family) = open(&parts);
    let filter = CompactionFilter::new("ages", |row| {
        assert!(row.level >= 1);
        Ok(match row.age_s {
            age_s if age_s >= 100 => FilterDecision::Remove,
            _ => FilterDecision::Keep,
        })
    });
    family.supply_compaction_filter(filter.clone());
    family.put("a", "1").unwrap();
    family.flush().unwrap();
    parts.environment.advance_us(99_000_000);
    family.compact_range(..).unwrap();
    assert_eq!(rows(&family).len(), 1);
    // Its table is young again.
    parts.environment.advance_us(50_000_000);
    family.compact_range(..).unwrap();
    assert_eq!(rows(&family).len(), 1);
    // With times of writing a row has an age of its own.
    let timed = CfOptions { time_to_live_s: 1_000, ..options() };
    let family = db.column_family("timed", timed).unwrap();
    family.supply_compaction_filter(filter);
    family.put("a", "1").unwrap();
    for left in [1, 0] {
        family.compact_range(..).unwrap();
        parts.environment.advance_us(60_000_000);
        family.compact_range(..).unwrap();
        assert_eq!(rows(&family).len(), left);
    }
}

#[test]
fn a_filter_that_fails_ends_its_compaction_and_nothing_else() {
    for panics in [false, true] {
        let parts = Parts::new(5);
        let (db, family) = open(&parts);
        let is_broken = Arc::new(AtomicBool::new(true));
        let switch = Arc::clone(&is_broken);
        family.supply_compaction_filter(CompactionFilter::new("fragile", move |row| {
            if switch.load(Ordering::SeqCst) && row.key == b"key000777" {
                assert!(!panics, "on purpose");
                return Err("no such customer".into());
            }
            Ok(FilterDecision::Keep)
        }));
        (0..1_000).for_each(|number| family.put(key(number), "1").unwrap());
        let error = family.compact_range(..).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CompactionFilter);
        let text = error.to_string();
        assert!(text.contains("fragile") && text.contains("key000777"), "{text}");
        // Reads and writes go on, flushes among them.
        family.put("more", "2").unwrap();
        family.flush().unwrap();
        assert_eq!(rows(&family).len(), 1_001);
        assert!(db.stats().figures.counter(Counter::BackgroundRefusals) > 0);
        is_broken.store(false, Ordering::SeqCst);
        family.compact_range(..).unwrap();
        assert_eq!(rows(&family).len(), 1_001);
        db.close().unwrap();
    }
}
