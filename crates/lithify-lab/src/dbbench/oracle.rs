//! What must be found: which keys a sequence has written, and sums over what was read.
//!
//! 1. The laboratory repeats the random numbers of the writers and so knows which keys are there,
//!    whatever the engine says: reads must find that many, and so must a scan at the end.
//! 2. Every client sums what it reads and writes the sum down whenever its number of operations
//!    reaches a power of two. Two engines that hold the same contents must agree up to the last
//!    such number that both have reached, and at the end if both ended at the same.
//! 3. Contents are named by what was written since the database was empty; where that depends on
//!    the speed of the engine or on the order of threads, they have no name and are not compared.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use super::spec::{DbResult, DbSpec, StepResult};
use super::stream::KeyStream;
use crate::adapter::{Engine, EngineResult, ScanRange};
use crate::keyvalue::SPACE;
use crate::keyvalue::benchmark::Benchmark;

/// Which keys are in a database.
#[derive(Clone, Debug)]
pub(super) struct Presence {
    words: Vec<u64>,
}

impl Presence {
    /// None of `num` keys.
    pub(super) fn none_of(num: u64) -> Presence {
        Presence { words: vec![0; num.div_ceil(64) as usize] }
    }

    /// The next `count` keys of a client are there.
    pub(super) fn add(&mut self, mut keys: KeyStream, count: u64) {
        for _ in 0..count {
            let key = keys.next();
            if let Some(word) = self.words.get_mut((key / 64) as usize) {
                *word |= 1 << (key % 64);
            }
        }
    }

    /// How many of the next `count` keys of a client are there.
    pub(super) fn hits(&self, mut keys: KeyStream, count: u64) -> u64 {
        (0..count)
            .filter(|_| {
                let key = keys.next();
                self.words.get((key / 64) as usize).is_some_and(|w| w >> (key % 64) & 1 == 1)
            })
            .count() as u64
    }

    /// How many keys are there.
    pub(super) fn count(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }
}

/// The sum over what a client has read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// After so many operations.
    pub operations: u64,
    /// So many had found their key.
    pub found: u64,
    /// Sum of the hashes of keys and values.
    pub sum: u64,
}

/// What one client reads.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadSum {
    now: Checkpoint,
    checkpoints: Vec<Checkpoint>,
}

impl ReadSum {
    /// A row was read.
    #[inline]
    pub(super) fn row(&mut self, key: &[u8], value: &[u8]) {
        self.hash(row_hash(key, value));
    }

    /// A row with this hash was read.
    #[inline]
    pub(super) fn hash(&mut self, hash: u64) {
        self.now.sum = self.now.sum.wrapping_mul(31).wrapping_add(hash);
    }

    /// An operation is done.
    #[inline]
    pub(super) fn done(&mut self, found: bool) {
        self.now.operations += 1;
        self.now.found += u64::from(found);
        if self.now.operations.is_power_of_two() {
            self.checkpoints.push(self.now);
        }
    }

    /// Operations so far.
    pub(super) fn now(&self) -> Checkpoint {
        self.now
    }

    /// All that was written down, and the end.
    pub(super) fn finish(mut self) -> Vec<Checkpoint> {
        if !self.now.operations.is_power_of_two() {
            self.checkpoints.push(self.now);
        }
        self.checkpoints
    }
}

/// Names a row.
pub(super) fn row_hash(key: &[u8], value: &[u8]) -> u64 {
    let seed = twox_hash::XxHash3_64::oneshot(key);
    twox_hash::XxHash3_64::oneshot_with_seed(seed, value)
}

/// What was in the database at the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verification {
    /// Rows that a scan found.
    pub rows: u64,
    /// What that number must be, where it can be told.
    pub rows_expected: Option<u64>,
    /// Sum over the keys.
    pub keys_sum: u64,
    /// Sum over keys and values.
    pub rows_sum: u64,
    /// Rows out of order, of a wrong length, or with a key that nobody writes.
    pub malformed: u64,
    /// Names the contents, when they are the same on any engine.
    pub contents: Option<u64>,
}

/// Reads everything.
///
/// # Errors
/// The engine's.
pub(super) fn verify(
    engine: &dyn Engine,
    spec: &DbSpec,
    presence: Option<&Presence>,
    contents: Option<u64>,
) -> EngineResult<Verification> {
    let mut session = engine.session()?;
    let mut seen = Verification {
        rows: 0,
        rows_expected: presence.map(Presence::count),
        keys_sum: 0,
        rows_sum: 0,
        malformed: 0,
        contents,
    };
    let mut last = None;
    session.scan(SPACE, &ScanRange::prefix(b""), &mut |key, value| {
        let number = key.first_chunk::<8>().map(|bytes| u64::from_be_bytes(*bytes));
        let good = number.is_some_and(|number| number < spec.num)
            && key.len() as u64 == spec.key_bytes
            && value.len() as u64 == spec.value_bytes
            && last < number;
        last = number;
        seen.malformed += u64::from(!good);
        seen.rows += 1;
        let hash = twox_hash::XxHash3_64::oneshot(key);
        seen.keys_sum = seen.keys_sum.wrapping_mul(31).wrapping_add(hash);
        seen.rows_sum = seen.rows_sum.wrapping_mul(31).wrapping_add(row_hash(key, value));
        ControlFlow::Continue(())
    })?;
    Ok(seen)
}

/// The name of the contents after a step that writes; `None` when they depend on speed or order.
pub(super) fn contents_after(
    before: Option<u64>,
    benchmark: Benchmark,
    spec: &DbSpec,
    first_seed: u64,
) -> Option<u64> {
    let sure = spec.threads == 1 && benchmark.is_write() && spec.operations(benchmark).is_some();
    if !sure {
        return None;
    }
    let before = if benchmark.is_fill() { Some(0) } else { before };
    let text = format!(
        "{before:?} {benchmark} {} {:?} {first_seed} {} {} {} {}",
        spec.num,
        spec.writes,
        spec.key_bytes,
        spec.value_bytes,
        spec.compression_ratio,
        spec.fresh_values
    );
    before.map(|_| twox_hash::XxHash3_64::oneshot(text.as_bytes()))
}

/// What is wrong with one result by itself; empty when nothing is.
pub fn faults(result: &DbResult) -> Vec<String> {
    let id = &result.cell.id;
    let mut faults = Vec::new();
    for step in result.loops() {
        if let Some(expected) = step.found_expected
            && expected != step.found
        {
            faults.push(format!("{id} {}: {} found, {expected} are there", step.spec, step.found));
        }
    }
    if let Some(seen) = &result.verification {
        if seen.rows_expected.is_some_and(|expected| expected != seen.rows) {
            faults.push(format!(
                "{id}: a scan finds {} rows, {} were written",
                seen.rows,
                seen.rows_expected.unwrap_or(0)
            ));
        }
        if seen.malformed > 0 {
            faults.push(format!("{id}: {} rows of a scan are malformed", seen.malformed));
        }
    }
    faults
}

/// What became of a comparison of two results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// Sums that were equal.
    pub equal: u64,
    /// What differs, in words.
    pub differences: Vec<String>,
    /// Steps whose contents depend on speed or order, so that there is nothing to compare.
    pub not_comparable: Vec<String>,
}

/// Compares what two sequences of the same steps read.
pub fn agreement(left: &DbResult, right: &DbResult) -> Agreement {
    let mut agreement = Agreement::default();
    for (a, b) in left.loops().zip(right.loops()) {
        if a.spec.benchmark.is_write() {
            continue;
        }
        if !have_same_rows(a, b) {
            agreement.not_comparable.push(a.spec.to_string());
            continue;
        }
        match first_difference(a, b) {
            Some(what) => agreement.differences.push(format!(
                "{} and {} read differently in {}: {what}",
                left.cell.id, right.cell.id, a.spec
            )),
            None => agreement.equal += a.checkpoints.len() as u64,
        }
    }
    if let (Some(a), Some(b)) = (&left.verification, &right.verification) {
        let known = a.contents.is_some() && a.contents == b.contents;
        if known && (a.rows, a.rows_sum) == (b.rows, b.rows_sum) {
            agreement.equal += 1;
        } else if known {
            agreement.differences.push(format!(
                "{} and {} hold different rows: {} with sum {:016x}, {} with sum {:016x}",
                left.cell.id, right.cell.id, a.rows, a.rows_sum, b.rows, b.rows_sum
            ));
        } else {
            agreement.not_comparable.push("the contents at the end".to_owned());
        }
    }
    agreement
}

/// Whether two steps are known to have run over the same rows.
pub(super) fn have_same_rows(a: &StepResult, b: &StepResult) -> bool {
    a.contents.is_some() && a.contents == b.contents
}

/// Where two steps over equal contents differ: at the last number of operations that both wrote
/// down.
fn first_difference(left: &StepResult, right: &StepResult) -> Option<String> {
    let pairs = left.checkpoints.iter().zip(&right.checkpoints).enumerate();
    for (client, (a, b)) in pairs {
        let common = a
            .iter()
            .rev()
            .find_map(|a| b.iter().find(|b| b.operations == a.operations).map(|b| (a, b)));
        if let Some((a, b)) = common
            && a != b
        {
            return Some(format!(
                "client {client} after {} operations: {} found with sum {:016x}, {} found with \
                 sum {:016x}",
                a.operations, a.found, a.sum, b.found, b.sum
            ));
        }
    }
    None
}
