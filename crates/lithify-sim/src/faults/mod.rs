//! The fault sweep: in a run that makes N calls to the file system each of them fails, in each way
//! in which it can.
//!
//! 1. A script of the crash checks is run once without a failure: its calls are numbered.
//! 2. It is run again with call *i* failing. Every operation succeeds or fails with an error of the
//!    kind that the failure explains; what is read is what was acknowledged; no wait and no loop is
//!    without an end (a count of waits and of calls sees to that).
//! 3. After a full disk, and after an input/output error of a table, the database goes on without
//!    being opened again; after one of the log, the manifest or a directory it stops, and says so.
//! 4. In the end it is crashed and closed; it opens, shows what was promised, and no file is there
//!    that nothing names. One that went on has left none when it is closed.

mod failure;
mod figures;
mod sweep;
#[cfg(test)]
mod tests;

pub use failure::{FAILURES, Failure};

use crate::check::{Check, Finding, Goal, Length, Tally, panic_text};
use crate::crash::scripts::{self, MODES, Script};
use lithify::Durability;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The calls of a run are divided among so many cases: a short run takes the first ones.
const PARTS: u64 = 8;

/// The check; see the module.
pub struct Faults;

struct Case {
    script: Script,
    failure: Failure,
    durability: Durability,
    part: u64,
}

impl Case {
    /// The first cases are each script with each failure in one mode; then come the other modes,
    /// then the other parts of the calls.
    fn new(case: u64) -> Case {
        let mut scripts = scripts::with_reads();
        let (count, failures, modes) =
            (scripts.len() as u64, FAILURES.len() as u64, MODES.len() as u64);
        let index = case % count;
        let failure = case / count % failures;
        let turn = case / (count * failures);
        Case {
            script: scripts.swap_remove(index as usize),
            failure: FAILURES[failure as usize],
            durability: MODES[((index + failure + turn) % modes) as usize],
            part: turn / modes,
        }
    }

    fn run(&self, tally: &mut Tally) -> Result<(), String> {
        let calls = sweep::calls(&self.script, self.durability)?;
        let options = self.script.options(self.durability);
        let failing = (0..calls.len() as u64).filter(|at| at % PARTS == self.part);
        for at in failing {
            let call = calls[at as usize].kind;
            if !self.failure.is_of(call) {
                continue;
            }
            let failing = (at, self.failure);
            let run = || sweep::Run::new(&self.script, &options, &calls, failing).run(&self.script);
            // What panics is to be told with the call that failed before.
            let outcome = catch_unwind(AssertUnwindSafe(run))
                .unwrap_or_else(|panic| Err(format!("a panic: {}", panic_text(&*panic))));
            let outcome = outcome.map_err(|wrong| {
                format!(
                    "script {:?}, durability {:?}, call {at}, {call:?}, fails ({}): {wrong}",
                    self.script.name,
                    self.durability,
                    self.failure.name()
                )
            })?;
            figures::count(tally, call, self.failure, outcome);
        }
        Ok(())
    }
}

impl Check for Faults {
    fn name(&self) -> &'static str {
        "faults"
    }

    fn about(&self) -> &'static str {
        "every call to the file system of scripted runs fails in turn, in every way"
    }

    fn cases(&self) -> Option<u64> {
        let scripts = scripts::with_reads().len() as u64;
        Some(scripts * FAILURES.len() as u64 * MODES.len() as u64 * PARTS)
    }

    fn goal(&self, length: Length) -> Goal {
        let scripts = scripts::with_reads().len() as u64;
        match length {
            Length::Short => Goal::Cases(scripts * FAILURES.len() as u64),
            Length::Long => Goal::Cases(self.cases().unwrap_or(0)),
        }
    }

    fn table(&self, tally: &Tally) -> String {
        figures::table(tally)
    }

    fn run_case(&self, case: u64, tally: &mut Tally) -> Result<(), Finding> {
        let number = case;
        let case = Case::new(case);
        case.run(tally)
            .map_err(|what| Finding::new(self, number, what).with_script(case.script.lines()))
    }
}
