//! The policy that decides: what it keeps when it is told of tables, options and time.

use crate::chooser::{Objective, Record};
use crate::codec::Dictionary;
use crate::compaction::{Deciding, Evidence, FormatPolicy, TablePlace};
use crate::manifest::Version;
use std::sync::Arc;

fn deciding() -> Deciding {
    Deciding::new(Objective::Space, Some(4_096), 16_384)
}

/// What a table records: a level that would be better off with a dictionary, if one is measured or not.
fn recorded(level: usize, with_dictionary: bool) -> String {
    let sample = |codec: &str, ratio: f64, ns: f64| {
        format!(
            "sample level=all codec={codec} block=4096 ratio={ratio} comp_ns={ns} decomp_ns=1 \
             specimens=9 error=0.001\n"
        )
    };
    let measured = match with_dictionary {
        true => sample("zstd-1+dictionary", 0.2, 3.0),
        false => String::new(),
    };
    format!(
        "prices {}\nblocks fixed=4096\n{}{}{measured}choose level={level} lifetime_h=700\n",
        Objective::Space.prices(),
        sample("zstd-1", 0.4, 4.0),
        sample("lz4", 0.55, 1.2)
    )
}

fn dictionary() -> Arc<Dictionary> {
    Dictionary::new(&b"granite basalt gneiss quartz feldspar mica".repeat(20)).unwrap()
}

fn record_of(deciding: &Deciding) -> Record {
    deciding.deliberation().record
}

/// The newest table is a small one of level 0, which has no dictionary. Those of the last level do.
#[test]
fn a_dictionary_outlives_a_table_without_one() {
    let deciding = deciding();
    let made = dictionary();
    deciding.recall(recorded(6, true).as_bytes(), Some(Arc::clone(&made)));
    deciding.recall(recorded(0, true).as_bytes(), None);
    assert_eq!(deciding.dictionary_at_hand().map(|kept| kept.hash()), Some(made.hash()));
    let record = record_of(&deciding).to_string();
    assert!(record.contains("codec=zstd-1+dictionary"), "what was measured stays: {record}");
    // Where no table has it, none can be used.
    let without = self::deciding();
    without.recall(recorded(6, true).as_bytes(), None);
    assert!(without.dictionary_at_hand().is_none());
    assert!(!record_of(&without).to_string().contains("+dictionary"));
}

/// Who only looks has no table at hand: of that a small one would be made, without the dictionary.
#[test]
fn a_look_names_what_tables_will_have_and_changes_nothing() {
    let deciding = deciding();
    let made = dictionary();
    deciding.recall(recorded(6, true).as_bytes(), Some(Arc::clone(&made)));
    let before = record_of(&deciding).to_string();
    let place = |level| TablePlace { family: None, level, level_count: 7 };
    assert_eq!(deciding.peek(&place(6)).dictionary, Some(made.hash()));
    let untouched = deciding.peek(&place(3));
    assert_eq!((untouched.dictionary, untouched.block_size_bytes), (None, 4_096));
    assert_eq!(record_of(&deciding).to_string(), before);
    assert_eq!(deciding.decide(&place(6), &Evidence::default()).dictionary, None);
}

#[test]
fn what_cannot_be_is_left_out() {
    let deciding = deciding();
    let damaged = recorded(6, false).replace("level=6", "level=1e20");
    deciding.recall(damaged.as_bytes(), None);
    deciding.recall(b"\xff\xfe", None);
    assert!(deciding.deliberation().levels.is_empty());
}

/// Under load tables are installed, and observed, many times a second.
#[test]
fn observations_do_not_put_off_reviews() {
    let deciding = deciding();
    let version = Version::empty(7);
    let mut reviews = 0;
    for step in 0..100 {
        let now_us = step * 100_000;
        deciding.observe(&version, now_us, None);
        reviews += u64::from(deciding.begin_review(now_us));
    }
    assert_eq!(reviews, 10, "one a second");
}

/// The trainer of a policy that was replaced tells that one. The next has to make its own.
#[test]
fn a_dictionary_is_made_though_options_change_meanwhile() {
    let older = deciding();
    older.recall(recorded(6, false).as_bytes(), None);
    let samples = |deciding: &Deciding| {
        (0..12).for_each(|_| deciding.gather_for_test(&vec![7; 32 << 10]));
        deciding.samples_to_train()
    };
    assert!(samples(&older).is_some(), "{}", record_of(&older));
    assert!(samples(&older).is_none(), "one at a time");
    let next = deciding();
    next.adopt(&older);
    assert!(samples(&next).is_some());
}

/// Writers are slowed every other second: CPU is worth a little more, and always the same.
#[test]
fn pressure_that_comes_and_goes_is_taken_as_it_lasts() {
    let deciding = deciding();
    deciding.recall(recorded(6, false).as_bytes(), None);
    let place = TablePlace { family: None, level: 6, level_count: 7 };
    let mut factors = Vec::new();
    for second in 0..100 {
        deciding.note_pressure(f64::from(second % 2));
        deciding.decide(&place, &Evidence::default());
        let (_, decision, _) = deciding.deliberation().levels.pop().unwrap();
        factors.push(decision.conditions.cpu_factor);
    }
    let late = &factors[60..];
    let (least, most) =
        (late.iter().copied().fold(9.0, f64::min), late.iter().copied().fold(0.0, f64::max));
    assert!(least > 1.2 && most < 1.5 && most / least < 1.1, "{least} to {most}");
    (0..60).for_each(|_| deciding.note_pressure(1.0));
    deciding.decide(&place, &Evidence::default());
    let (_, decision, _) = deciding.deliberation().levels.pop().unwrap();
    assert!(decision.conditions.cpu_factor > 1.95, "what lasts counts whole");
}
