//! Fuzzing of everything that reads bytes from disk, on the stable toolchain.
//!
//! 1. Inputs start from pieces of databases that the engine has made (`corpus`), are changed from
//!    a seed (`mutate`), and mostly get right checksums again (`seal`), so that what lies behind a
//!    checksum is reached.
//! 2. A target (`target`) decodes. It may refuse with an error of a kind that damage has; it must
//!    not panic, and not take more memory than the format allows (`allocation`).
//! 3. Inputs that lead to an answer not seen before in the case are changed further: there is no
//!    coverage here, the texts of errors stand for it.
//!
//! A case is one target and a seed. With coverage guidance the same targets run under libFuzzer,
//! see the package `fuzz`.

#[expect(unsafe_code, reason = "an allocator is unsafe to implement")]
pub mod allocation;
pub mod corpus;
mod mutate;
mod seal;
pub mod target;

use crate::check::{Check, Finding, Goal, Length, Tally, panic_text};
use crate::random::Random;
use corpus::corpus;
use lithify::{Error, ErrorKind};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use target::{TARGETS, Target};

/// Inputs with new answers that are kept for a case.
const KEPT_MAX: usize = 200;

/// Tries to make a failing input smaller.
const SHRINKS_MAX: usize = 2000;

/// Bytes of a failing input on a line of its script.
const LINE_BYTES: usize = 32;

/// Every decoder, with changed pieces of real databases.
pub struct Fuzz;

impl Check for Fuzz {
    fn name(&self) -> &'static str {
        "fuzz"
    }

    fn about(&self) -> &'static str {
        "changed bytes, with right checksums, to every decoder: no panic, no memory out of bounds"
    }

    fn cases(&self) -> Option<u64> {
        None
    }

    fn goal(&self, length: Length) -> Goal {
        Goal::Cases(TARGETS.len() as u64 * if length == Length::Short { 12 } else { 5000 })
    }

    fn run_case(&self, case: u64, tally: &mut Tally) -> Result<(), Finding> {
        let target = &TARGETS[(case % TARGETS.len() as u64) as usize];
        let seeds = corpus().seeds(target.name);
        let mut random = Random::new(case);
        let mut kept: Vec<Vec<u8>> = Vec::new();
        let mut answers = BTreeSet::new();
        for _ in 0..target.inputs {
            let known = kept.len() as u64;
            let base = match known > 0 && random.one_in(2) {
                true => &kept[random.below(known) as usize],
                false => random.pick(seeds),
            };
            let other = random.pick(seeds);
            let mut input = mutate::mutated(&mut random, base, other, target.keeps_size);
            if !random.one_in(8) {
                (target.seal)(&mut input);
            }
            tally.count(target.counter, 1);
            tally.count("executions", 1);
            match try_input(target, &input) {
                Ok(answer) => {
                    if kept.len() < KEPT_MAX && answers.insert(answer) {
                        kept.push(input);
                    }
                }
                Err(what) => return Err(self.finding(case, target, &input, &what)),
            }
        }
        Ok(())
    }
}

impl Fuzz {
    fn finding(&self, case: u64, target: &Target, input: &[u8], what: &str) -> Finding {
        let smaller = shrunk(target, input);
        let hex = |line: &[u8]| line.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let script = smaller.chunks(LINE_BYTES).map(hex).collect();
        let what = format!("target {}, {} bytes: {what}", target.name, smaller.len());
        Finding::new(self, case, what).with_script(script)
    }
}

/// Runs a target on an input. Gives the kind of its answer: errors by their texts without numbers.
///
/// # Errors
/// What must not be.
pub fn try_input(target: &Target, input: &[u8]) -> Result<String, String> {
    let run = AssertUnwindSafe(|| (target.run)(input));
    let (caught, peak_bytes) = allocation::peak_of(|| catch_unwind(run));
    let result = caught.map_err(|panic| format!("a panic: {}", panic_text(&*panic)))?;
    let bound_bytes = target.allocated_bytes_max(input.len());
    if peak_bytes > bound_bytes {
        return Err(format!("{peak_bytes} bytes allocated at once, more than {bound_bytes}"));
    }
    match result {
        Ok(()) => Ok("accepted".to_string()),
        Err(error) if may_be(&error) => {
            Ok(error.to_string().chars().filter(|c| c.is_ascii_alphabetic()).take(60).collect())
        }
        Err(error) => Err(format!("an error of a kind that damage has not: {error}")),
    }
}

/// Errors that bytes may lead to. A database that met damage in the background says so and stops
/// writing.
fn may_be(error: &Error) -> bool {
    use ErrorKind::{Corruption, InvalidArgument, LimitExceeded, Poisoned, ReadOnly, Unsupported};
    let kinds = [Corruption, Unsupported, LimitExceeded, ReadOnly, InvalidArgument];
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref());
    kinds.contains(&error.kind()) || error.kind() == Poisoned && source.is_some_and(may_be)
}

/// A shorter input that still fails.
fn shrunk(target: &Target, input: &[u8]) -> Vec<u8> {
    let mut best = input.to_vec();
    let mut piece = best.len() / 2;
    let mut tries = 0;
    while piece > 0 && !target.keeps_size {
        let mut at = 0;
        while at < best.len() && tries < SHRINKS_MAX {
            tries += 1;
            let mut shorter = best.clone();
            shorter.drain(at..(at + piece).min(best.len()));
            (target.seal)(&mut shorter);
            if try_input(target, &shorter).is_err() {
                best = shorter;
            } else {
                at += piece;
            }
        }
        piece /= 2;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_accepts_what_the_engine_made_and_every_entry_has_a_target() {
        for target in &TARGETS {
            let seeds = corpus().seeds(target.name);
            assert!(!seeds.is_empty(), "{} has no seeds", target.name);
            let answers: Vec<_> = seeds.iter().map(|seed| try_input(target, seed)).collect();
            assert!(answers.iter().all(Result::is_ok), "{}: {answers:?}", target.name);
            // An edit may need those before it.
            let is_accepted = |answer: &Result<String, _>| answer.as_deref() == Ok("accepted");
            let accepted = answers.iter().filter(|answer| is_accepted(answer)).count();
            // Of a data block it is asked whether it has nothing but puts, LOCK is
            // anything, and a file may be of the other sample.
            let is_partial = matches!(target.name, "edit" | "data_block" | "dump" | "database");
            let all = if is_partial { 1 } else { seeds.len() };
            assert!(accepted >= all, "{}: {answers:?}", target.name);
        }
        for entry in lithify::fuzzing::ENTRIES {
            assert!(target::by_name(entry.name).is_some(), "no target for {}", entry.name);
        }
    }

    #[test]
    fn a_panic_and_a_large_allocation_are_found() {
        let panics = Target { run: |_| panic!("at once"), ..broken() };
        assert!(try_input(&panics, b"x").unwrap_err().contains("at once"));
        let refuses = Target { run: |_| Err(Error::new(ErrorKind::Locked, "no")), ..broken() };
        assert!(try_input(&refuses, b"x").unwrap_err().contains("of a kind"));
    }

    fn broken() -> Target {
        Target {
            name: "broken",
            counter: "executions: broken",
            inputs: 1,
            keeps_size: false,
            seal: |_| {},
            run: |_| Ok(()),
            decompresses: false,
        }
    }
}
