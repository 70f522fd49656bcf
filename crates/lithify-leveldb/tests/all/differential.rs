//! The same random calls on LevelDB and on this library: every answer is the same, byte for byte.
//!
//! ```sh
//! # A few seconds. More: so many calls, from this seed on, each seed so many.
//! cargo test -p lithify-leveldb --test all differential
//! LITHIFY_LEVELDB_CALLS=2000000 LITHIFY_LEVELDB_SEED=7 cargo test --release -p lithify-leveldb --test all \
//!     differential -- --nocapture
//! ```

use crate::actions::{Action, Call, Calls, Opening};
use crate::leveldb::{Database, Functions, Policy, ours, theirs};
use crate::world::{Answer, Row, World, making};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// Calls of a seed: then a new one begins, with empty directories.
const CALLS_OF_SEED: u64 = 10_000;

/// Calls that are shown of what came before a difference.
const SHOWN_CALLS: usize = 40;
const SHOWN_CHARACTERS: usize = 150;

fn number_from(variable: &str, otherwise: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable} is a number, not {text:?}")),
        Err(_) => otherwise,
    }
}

/// LevelDB, if it is installed; where it must be, it is.
fn leveldb() -> Option<&'static Functions> {
    let found = theirs();
    let is_expected = std::env::var_os("LITHIFY_EXPECT_LEVELDB").is_some_and(|value| value == "1");
    assert!(found.is_some() || !is_expected, "LevelDB is expected: apt-get install libleveldb1d");
    if found.is_none() {
        println!("skipped: LevelDB is not installed: apt-get install libleveldb1d");
    }
    found
}

#[test]
fn random_calls_have_the_same_answers() {
    let Some(leveldb) = leveldb() else { return };
    let calls = number_from("LITHIFY_LEVELDB_CALLS", 2 * CALLS_OF_SEED);
    let first_seed = number_from("LITHIFY_LEVELDB_SEED", 1);
    let mut tally = Tally::default();
    for seed in first_seed..first_seed + calls.div_ceil(CALLS_OF_SEED) {
        same_answers(leveldb, seed, &mut tally);
    }
    println!("{calls} calls from seed {first_seed} on: {tally:#?}");
    assert!(tally.idle < tally.calls / 4, "too many calls had no database");
    assert!(
        tally.rows > tally.calls / 20 && tally.values > tally.calls / 50,
        "too few found a row"
    );
    assert!(tally.failures.len() >= 7, "kinds of failures are missing");
}

/// What was compared.
#[derive(Debug, Default)]
struct Tally {
    calls: u64,
    /// Without a database, or another object, to do them with.
    idle: u64,
    rows: u64,
    values: u64,
    repairs: u64,
    /// Of them, those after which LevelDB had rows that were deleted.
    repairs_with_old_rows: u64,
    /// By their texts.
    failures: BTreeMap<String, u64>,
}

impl Tally {
    fn add(&mut self, answer: &Answer) {
        self.calls += 1;
        self.idle += u64::from(*answer == Answer::Idle);
        self.rows += u64::from(matches!(answer, Answer::Row(Some(_), _)));
        self.values += u64::from(matches!(answer, Answer::Value(Some(_), _)));
        if let Answer::Done(Some(text)) | Answer::Value(_, Some(text)) = answer {
            *self.failures.entry(text.clone()).or_default() += 1;
        }
    }
}

fn same_answers(leveldb: &'static Functions, seed: u64, tally: &mut Tally) {
    let (mut here, mut there) = (World::new(ours()), World::new(leveldb));
    let mut calls = Calls::new(seed);
    let mut before: VecDeque<Call> = VecDeque::new();
    for number in 0..CALLS_OF_SEED {
        let call = calls.next();
        if let Action::Repair(opening) = &call.action {
            check_repair(&mut here, &mut there, opening, tally);
            continue;
        }
        let (found, expected) = (here.run(&call), there.run(&call));
        if found != expected {
            before.iter().chain([&call]).for_each(|call| println!("{}", shortened(call)));
            panic!("seed {seed}, call {number}: {}", difference(&expected, &found));
        }
        tally.add(&found);
        calls.hear(&call, here.is_open());
        before.push_back(call);
        if before.len() > SHOWN_CALLS {
            before.pop_front();
        }
    }
}

/// A repair keeps all rows. LevelDB's brings rows back that were deleted, if tables that a compaction had
/// replaced are still there: then both begin anew.
fn check_repair(here: &mut World, there: &mut World, opening: &Opening, tally: &mut Tally) {
    if here.is_open() {
        return;
    }
    let before = here.rows_at_rest(opening);
    let answers = (here.repair(opening), there.repair(opening));
    assert_eq!(answers.0, answers.1);
    let after = here.rows_at_rest(opening);
    assert_eq!(before.unwrap_or_default(), after.clone().unwrap_or_default(), "rows of a repair");
    tally.repairs += 1;
    if after != there.rows_at_rest(opening) {
        tally.repairs_with_old_rows += 1;
        let destroy = Call { action: Action::Destroy(opening.clone()), has_earlier: false };
        assert_eq!(here.run(&destroy), there.run(&destroy));
    }
}

/// A call in a line.
fn shortened(call: &Call) -> String {
    let text = format!("{call:?}");
    text.chars().take(SHOWN_CHARACTERS).collect()
}

/// The first row that differs, or both answers.
fn difference(expected: &Answer, found: &Answer) -> String {
    if let (Answer::Rows(expected), Answer::Rows(found)) = (expected, found) {
        let at = expected.iter().zip(found).take_while(|(a, b)| a == b).count();
        let shown = |rows: &[Row]| match rows.get(at) {
            Some((key, value)) => format!("{} = {}", key.escape_ascii(), value.escape_ascii()),
            None => "no row".to_owned(),
        };
        let counts = (expected.len(), found.len());
        return format!(
            "row {at} of LevelDB's {} is {}, of Lithify's {} {}",
            counts.0,
            shown(expected),
            counts.1,
            shown(found)
        );
    }
    format!("LevelDB answers {expected:?}, Lithify {found:?}")
}

/// LevelDB asks a policy about keys in tables alone. Once all rows are there, both ask it.
#[test]
fn a_policy_that_lies_hides_every_key() {
    let Some(leveldb) = leveldb() else { return };
    for functions in [leveldb, ours()] {
        let world = World::new(functions);
        let path = world.directory().join("database").to_string_lossy().into_owned();
        for is_lying in [false, true, false] {
            let mut options = making(functions);
            options.set_policy(Rc::new(Policy::own(functions, is_lying)));
            let (database, failure) = Database::open(&options, &path, None);
            assert_eq!(failure, None);
            let database = database.unwrap();
            assert_eq!(database.put(b"basalt", b"igneous", false, None), None);
            database.compact(None, None);
            let (value, failure) = database.get(b"basalt", None, None);
            assert_eq!((value.is_none(), failure), (is_lying, None));
        }
    }
}
