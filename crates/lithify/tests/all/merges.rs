//! Merge operands, wherever they lie: in memtables, in tables, across snapshots and deletes, in
//! batches and transactions, in copies and readers, and with an operator that is not there or fails.

use crate::support::{Model, PATH, Parts, Random, rows, small_options};
use lithify::repair::{RepairOptions, repair_in};
use lithify::stats::Counter;
use lithify::{CfOptions, ColumnFamily, Db, ErrorKind, MergeOperator, TableTransfer, TableWriter};
use std::ops::ControlFlow;

fn options(merge_operator: MergeOperator) -> CfOptions {
    CfOptions {
        merge_operator,
        table_bytes: 64 << 10,
        block_size_bytes: 1 << 10,
        ..CfOptions::default()
    }
}

fn open(parts: &Parts, operator: MergeOperator) -> (Db, ColumnFamily) {
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    let family = db.column_family("rows", options(operator)).unwrap();
    (db, family)
}

/// Operands that are not values: `+x` appends, anything else fails.
fn plus() -> MergeOperator {
    MergeOperator::new("plus", |_, value, operands| {
        let mut text = value.unwrap_or_default().to_vec();
        for operand in operands {
            text.extend_from_slice(operand.strip_prefix(b"+")?);
        }
        Some(text)
    })
}

/// What a get, a multi-get and cursors both ways say of a key.
fn value_of(family: &ColumnFamily, key: &str) -> Option<String> {
    let text = |value: &[u8]| String::from_utf8(value.to_vec()).unwrap();
    let found = family.get(key).unwrap().map(|value| text(&value));
    let many = family.multi_get(&["", key, "~"]).unwrap();
    assert_eq!(many[1].as_deref().map(text), found);
    let mut cursor = family.cursor(key..=key).unwrap();
    let forward = cursor.next().unwrap().then(|| text(cursor.value()));
    assert_eq!(forward, found);
    let mut cursor = family.cursor(key..=key).unwrap();
    let back = cursor.prev().unwrap().then(|| text(cursor.value()));
    assert_eq!(back, found);
    found
}

#[test]
fn operands_add_up_over_puts_deletes_and_nothing_in_every_place() {
    for operator in [MergeOperator::append(), plus()] {
        let plus = if operator.name() == Some("plus") { "+" } else { "" };
        let operand = |text: &str| format!("{plus}{text}");
        let parts = Parts::new(1);
        let (db, family) = open(&parts, operator);
        let merge = |key: &str, text: &str| family.merge(key, operand(text)).unwrap();
        // After each step the same in a memtable, in tables of level 0, and at the bottom.
        let settle: [&dyn Fn(); 3] =
            [&|| {}, &|| family.flush().unwrap(), &|| family.compact_range(..).unwrap()];
        for (number, settle) in settle.iter().enumerate() {
            let key = format!("key{number}");
            let shows = |text: &str| assert_eq!(value_of(&family, &key).as_deref(), Some(text));
            merge(&key, "a");
            settle();
            shows("a");
            merge(&key, "b");
            merge(&key, "c");
            settle();
            shows("abc");
            family.put(&key, "-").unwrap();
            settle();
            merge(&key, "d");
            settle();
            shows("-d");
            family.delete(&key).unwrap();
            settle();
            assert_eq!(value_of(&family, &key), None);
            merge(&key, "e");
            settle();
            shows("e");
            family.delete_range("key", "kez").unwrap();
            settle();
            merge(&key, "f");
            settle();
            merge(&key, "g");
            settle();
            shows("fg");
            family.single_delete(&key).unwrap();
            settle();
            assert_eq!(value_of(&family, &key), None, "all of it, not the last operand");
        }
        let figures = db.stats().figures;
        assert_eq!(figures.counter(Counter::Merges), 21);
        assert_eq!(figures.counter(Counter::MergeFailures), 0);
    }
}

#[test]
fn snapshots_keep_their_sums_through_compactions() {
    for operator in [MergeOperator::append(), plus()] {
        let plus = if operator.name() == Some("plus") { "+" } else { "" };
        let parts = Parts::new(2);
        let (db, family) = open(&parts, operator);
        family.put("k", ".").unwrap();
        let mut held = Vec::new();
        let mut expected = String::from(".");
        for letter in "abcdefgh".chars() {
            family.merge("k", format!("{plus}{letter}")).unwrap();
            expected.push(letter);
            if "bcf".contains(letter) {
                held.push((db.snapshot(), expected.clone()));
            }
            if letter == 'd' {
                family.compact_range(..).unwrap();
            }
        }
        while !held.is_empty() {
            family.compact_range(..).unwrap();
            for (snapshot, text) in &held {
                assert_eq!(family.get_at("k", snapshot).unwrap().unwrap(), *text);
                let mut cursor = family.cursor_at(.., snapshot).unwrap();
                assert!(cursor.next().unwrap());
                assert_eq!(cursor.value(), text.as_bytes());
            }
            assert_eq!(value_of(&family, "k").unwrap(), expected);
            held.remove(held.len() / 2);
        }
        family.compact_range(..).unwrap();
        let before = db.stats().figures.counter(Counter::FoldedOperands);
        assert_eq!(value_of(&family, "k").unwrap(), expected);
        let folded = db.stats().figures.counter(Counter::FoldedOperands) - before;
        assert_eq!(folded, 0, "nothing is left to fold");
    }
}

#[test]
fn counters_count_through_flushes_compactions_and_openings() {
    let parts = Parts::new(3);
    let mut model = std::collections::BTreeMap::new();
    let mut random = Random(3);
    for _ in 0..3 {
        let (db, family) = open(&parts, MergeOperator::add());
        for _ in 0..8_000 {
            let key = format!("counter{:03}", random.below(300));
            let by = random.below(1_000);
            *model.entry(key.clone()).or_insert(0_u64) += by;
            family.merge(key, by.to_le_bytes()).unwrap();
        }
        let shown: Model = rows(&family);
        assert_eq!(shown.len(), model.len());
        for (key, sum) in &model {
            assert_eq!(shown[key.as_bytes()], sum.to_le_bytes(), "{key}");
        }
        drop((family, db));
    }
    let (db, family) = open(&parts, MergeOperator::none());
    assert_eq!(family.options().merge_operator, MergeOperator::add(), "kept by its name");
    family.compact_range(..).unwrap();
    let stats = family.stats();
    assert_eq!(stats.user_bytes, 18 * model.len() as u64, "one entry a counter");
    drop(db);
}

#[test]
fn a_family_without_operator_refuses_operands_and_one_keeps_its_own() {
    let parts = Parts::new(4);
    let (db, family) = open(&parts, MergeOperator::none());
    let refused = family.merge("a", "1").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    assert!(refused.to_string().contains("merge_operator"), "{refused}");
    let mut batch = db.batch();
    batch.put(&family, "b", "2").merge(&family, "a", "1");
    assert_eq!(batch.commit().unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(family.get("b").unwrap(), None, "nothing of the batch");
    assert!(db.transaction().merge(&family, "a", "1").is_err());
    family.single_delete("a").unwrap();
    assert_eq!(db.merge("a", "1").unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(db.column_family_names(), ["rows"], "no default family for a refused merge");
    db.column_family("default", options(MergeOperator::append())).unwrap();
    db.merge("a", "1").unwrap();
    assert_eq!(db.get("a").unwrap().unwrap(), "1");

    db.column_family("rows", options(plus())).unwrap();
    family.merge("a", "+1").unwrap();
    assert_eq!(value_of(&family, "a").unwrap(), "1");
    let other = db.column_family("rows", options(MergeOperator::add())).unwrap_err();
    assert_eq!(other.kind(), ErrorKind::InvalidArgument);
    assert!(other.to_string().contains("plus"), "{other}");
    assert!(family.supply_merge_operator(MergeOperator::add()).is_err());
    db.column_family("rows", options(MergeOperator::none())).unwrap();
    assert_eq!(value_of(&family, "a").unwrap(), "1", "opening without it does not take it away");
}

#[test]
fn an_operator_that_is_not_there_yet_loses_nothing() {
    let parts = Parts::new(5);
    let (db, family) = open(&parts, plus());
    family.put("a", "0").unwrap();
    family.flush().unwrap();
    family.merge("a", "+1").unwrap();
    family.merge("b", "+2").unwrap();
    drop((family, db));

    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    let family = db.existing_column_family("rows").unwrap().unwrap();
    let refused = family.get("a").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Merge);
    assert!(refused.to_string().contains("\"plus\""), "{refused}");
    let mut cursor = family.cursor(..).unwrap();
    assert_eq!(cursor.next().unwrap_err().kind(), ErrorKind::Merge);
    assert!(!cursor.valid());
    family.merge("a", "+3").unwrap();
    family.compact_range(..).unwrap();
    family.supply_merge_operator(plus()).unwrap();
    assert_eq!(value_of(&family, "a").unwrap(), "013");
    assert_eq!(value_of(&family, "b").unwrap(), "2");
    let mut reader = Db::open_read_only_in(PATH, small_options(), parts.world()).unwrap();
    let seen = reader.existing_column_family("rows").unwrap().unwrap();
    seen.supply_merge_operator(plus()).unwrap();
    assert_eq!(value_of(&seen, "a").unwrap(), "013");
    assert_eq!(seen.merge("a", "+4").unwrap_err().kind(), ErrorKind::ReadOnly);
    family.merge("a", "+4").unwrap();
    reader.refresh().unwrap();
    let seen = reader.existing_column_family("rows").unwrap().unwrap();
    assert_eq!(value_of(&seen, "a").unwrap(), "0134", "what was supplied stays");
}

#[test]
fn operands_that_the_operator_refuses_stay_and_stop_nothing() {
    let parts = Parts::new(6);
    let (db, family) = open(&parts, plus());
    family.put("bad", "0").unwrap();
    family.merge("bad", "wrong").unwrap();
    family.put("good", "1").unwrap();
    family.merge("good", "+2").unwrap();
    family.compact_range(..).unwrap();
    assert!(db.stats().figures.counter(Counter::MergeFailures) > 0);
    assert_eq!(family.get("bad").unwrap_err().kind(), ErrorKind::Merge);
    assert_eq!(family.multi_get(&["bad"]).unwrap_err().kind(), ErrorKind::Merge);
    assert_eq!(value_of(&family, "good").unwrap(), "12");
    // A put mends it.
    family.put("bad", "3").unwrap();
    family.merge("bad", "+4").unwrap();
    assert_eq!(value_of(&family, "bad").unwrap(), "34");
}

/// A row with such an operand could not be read until it is put again.
#[test]
fn operands_that_the_engine_cannot_add_are_refused_at_once() {
    let parts = Parts::new(11);
    let (db, family) = open(&parts, MergeOperator::add());
    let one = 1_u64.to_le_bytes();
    family.merge("a", one).unwrap();
    for operand in [&b""[..], b"1", &one[..7], b"123456789"] {
        let refused = family.merge("a", operand).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
        let text = refused.to_string();
        assert!(text.contains("add") && text.contains("8 bytes"), "{text}");
        let mut batch = db.batch();
        batch.merge(&family, "a", one).merge(&family, "a", operand);
        assert_eq!(batch.commit().unwrap_err().kind(), ErrorKind::InvalidArgument);
        let mut transaction = db.transaction();
        assert!(transaction.merge(&family, "a", operand).is_err());
        transaction.merge(&family, "a", one).unwrap();
        transaction.commit().unwrap();
    }
    assert_eq!(family.get("a").unwrap().unwrap(), 5_u64.to_le_bytes());
    // A program's own of that name may take others.
    let own = MergeOperator::associative("add", |_, older, newer| Some([older, newer].concat()));
    family.supply_merge_operator(own).unwrap();
    family.merge("b", "1").unwrap();
    assert_eq!(family.get("b").unwrap().unwrap(), "1");
    let sums = CfOptions { merge_operator: MergeOperator::add(), ..options(MergeOperator::none()) };
    db.column_family("default", sums).unwrap();
    assert_eq!(db.merge("a", "1").unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn transactions_merge_under_their_lock_and_ingest_goes_below() {
    let parts = Parts::new(7);
    let (db, family) = open(&parts, MergeOperator::append());
    let mut ingest = family.ingest().unwrap();
    ingest.put("a", "0").unwrap();
    ingest.commit().unwrap();
    family.merge("a", "1").unwrap();
    let mut transaction = db.transaction();
    transaction.merge(&family, "a", "2").unwrap();
    transaction.merge(&family, "a", "3").unwrap();
    assert_eq!(transaction.get(&family, "a").unwrap().unwrap(), "0123");
    assert_eq!(value_of(&family, "a").unwrap(), "01", "not yet");
    transaction.commit().unwrap();
    assert_eq!(value_of(&family, "a").unwrap(), "0123");
    let mut writer = TableWriter::create_in("/rows.sst", &family.options(), parts.world()).unwrap();
    writer.put("a", "new").unwrap();
    writer.finish().unwrap();
    family.ingest_tables(&["/rows.sst"], TableTransfer::Copy).unwrap();
    family.merge("a", "4").unwrap();
    assert_eq!(value_of(&family, "a").unwrap(), "new4");
}

#[test]
fn a_scan_knows_that_a_merge_makes_a_row_in_a_dead_range() {
    let parts = Parts::new(8);
    let (_db, family) = open(&parts, MergeOperator::append());
    for number in 0..200 {
        family.put(format!("k{number:03}"), "x").unwrap();
        family.delete(format!("k{number:03}")).unwrap();
    }
    for _ in 0..3 {
        assert_eq!(rows(&family).len(), 0);
    }
    family.merge("k100", "here").unwrap();
    assert_eq!(rows(&family).len(), 1);
}

#[test]
fn a_repair_keeps_operands_with_and_without_their_operator() {
    for operator in [MergeOperator::append(), plus()] {
        let plus_sign = if operator.name() == Some("plus") { "+" } else { "" };
        let parts = Parts::new(9);
        let (db, family) = open(&parts, operator.clone());
        family.put("a", "0").unwrap();
        family.flush().unwrap();
        let snapshot = db.snapshot();
        family.merge("a", format!("{plus_sign}1")).unwrap();
        family.merge("b", format!("{plus_sign}2")).unwrap();
        family.flush().unwrap();
        family.merge("a", format!("{plus_sign}3")).unwrap();
        drop((snapshot, family));
        db.close().unwrap();
        let options = RepairOptions { database: small_options(), ..RepairOptions::default() };
        let mut go_on = |_: &_| ControlFlow::Continue(());
        let repaired = "/repaired";
        repair_in(PATH, repaired, &options, &parts.world(), &mut go_on).unwrap();
        let db = Db::open_in(repaired, small_options(), parts.world()).unwrap();
        let family = db.existing_column_family("rows").unwrap().unwrap();
        family.supply_merge_operator(operator).unwrap();
        assert_eq!(value_of(&family, "a").unwrap(), "013");
        assert_eq!(value_of(&family, "b").unwrap(), "2");
    }
}

/// A value that no operand could be folded onto would end every scan at its row.
#[test]
fn a_value_that_cannot_be_added_to_is_refused_where_it_is_put() {
    let parts = Parts::new(21);
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    let options = CfOptions { merge_operator: MergeOperator::add(), ..CfOptions::default() };
    let counts = db.column_family("counts", options).unwrap();
    let is_refused = |result: lithify::Result<()>| {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(error.to_string().contains("expected 8 bytes, found 3"), "{error}");
    };
    is_refused(counts.put("b", "xyz"));
    let mut batch = db.batch();
    batch.put(&counts, "a", 1_u64.to_le_bytes()).put(&counts, "b", "xyz");
    is_refused(batch.commit());
    let mut transaction = db.transaction();
    transaction.put(&counts, "a", 2_u64.to_le_bytes()).unwrap();
    is_refused(transaction.put(&counts, "b", "xyz"));
    transaction.commit().unwrap();
    let mut ingest = counts.ingest().unwrap();
    is_refused(ingest.put("c", "xyz"));
    ingest.put("d", 4_u64.to_le_bytes()).unwrap();
    ingest.commit().unwrap();
    counts.merge("a", 1_u64.to_le_bytes()).unwrap();
    let rows: Vec<_> = counts.iter().map(|row| row.unwrap().1).collect();
    assert_eq!(rows, [3_u64.to_le_bytes(), 4_u64.to_le_bytes()]);
}
