//! Random operations against an ordered map, under random settings that change at every opening.
//!
//! 1. A case is a script and settings, both from its number. Every answer of the engine is
//!    compared with the model's; refusals (a locked row, a conflict, a dropped family) too.
//! 2. After every opening all rows are compared both ways, and every block of every table that
//!    the last life left is read and checked. The ledger is that of the files.
//! 3. Checkpoints, backups that are restored, readers beside the database and `Db::verify` are
//!    among the operations; what was copied is opened with settings of its own, changed, and must
//!    not be noticed by the database.
//! 4. Most cases have no threads: they happen the same way every time, byte for byte. One in
//!    sixteen has background threads and the real clock; there only the answers are the same.
//! 5. In half of the cases without threads one family has a compaction filter that changes and removes rows.
//! 6. What an event listener hears of jobs is one beginning and one end of each, the end once its tables are live.
//! 7. A script that fails is shrunk.

mod conditions;
mod copies;
mod cursor;
mod direct;
mod disk;
mod filtered;
mod heard;
mod ledger;
mod lives;
mod session;
mod shrink;
mod transactions;

#[cfg(test)]
mod tests;

use crate::check::{Check, Finding, Goal, Length, Tally, panic_text};
use crate::operation::{Ending, Generator, Operation, Profile, Settings};
use crate::random::Random;
use disk::CallRecord;
use session::Session;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// One case in so many has background threads.
const THREADED_CASES: u64 = 16;

/// The check; see the module.
pub struct Metamorphic;

/// What a case does.
struct Case {
    seed: u64,
    settings: Settings,
    script: Vec<Operation>,
}

impl Case {
    fn new(number: u64) -> Case {
        let mut random = Random::new(number);
        let threads = match number % THREADED_CASES {
            15 => random.between(1, 2) as usize,
            _ => 0,
        };
        let length = *random.pick(&[400, 1_500, 1_500, 5_000]);
        let seed = random.next();
        let profile = Profile::random(&mut random, threads);
        let is_loaded = random.one_in(3);
        let mut generator = Generator::new(random, profile);
        let settings = generator.settings();
        let mut script = Vec::new();
        if is_loaded {
            script.extend(generator.load());
        }
        script.extend(generator.script(length));
        Case { seed, settings, script }
    }

    fn has_threads(&self) -> bool {
        self.settings.database.background_threads > 0
    }

    /// Runs a script with the settings of the case; gives a fingerprint of the files it leaves.
    fn run(
        &self,
        script: &[Operation],
        record: Option<CallRecord>,
        tally: &mut Tally,
    ) -> Result<u64, String> {
        let mut session = Session::begin(self.seed, &self.settings, record, tally)?;
        for (number, operation) in script.iter().enumerate() {
            session.make(operation).map_err(|what| format!("operation {number}: {what}"))?;
        }
        session.compare_all(true)?;
        session.filter_all()?;
        session.end(Ending::Close)?;
        let (digest, rows) = (session.disk.digest(), session.rows_compared);
        tally.count("operations", script.len() as u64);
        tally.count("rows compared", rows);
        tally.distinct("distinct databases", digest);
        Ok(digest)
    }

    /// What comes of a script; a panic is a failure too.
    fn failure(&self, script: &[Operation], tally: &mut Tally) -> Option<String> {
        let run = AssertUnwindSafe(|| self.run(script, None, &mut *tally).err());
        catch_unwind(run).unwrap_or_else(|panic| Some(format!("a panic: {}", panic_text(&*panic))))
    }
}

/// Operations in one pool of [`run_bytes`].
const POOL: usize = 256;

/// Runs what a fuzzer wants: the first four bytes choose settings and a pool of operations, every
/// other byte is the next operation of the pool.
///
/// # Errors
/// What was found.
pub fn run_bytes(bytes: &[u8]) -> Result<(), String> {
    let Some((seed, choices)) = bytes.split_first_chunk() else { return Ok(()) };
    let mut random = Random::new(u64::from(u32::from_le_bytes(*seed)));
    let seed = random.next();
    let profile = Profile::random(&mut random, 0);
    let mut generator = Generator::new(random, profile);
    let settings = generator.settings();
    let pool = generator.script(POOL);
    let script: Vec<_> = choices.iter().map(|at| pool[usize::from(*at)].clone()).collect();
    let case = Case { seed, settings, script };
    case.run(&case.script, None, &mut Tally::default()).map(drop)
}

impl Check for Metamorphic {
    fn name(&self) -> &'static str {
        "metamorphic"
    }

    fn about(&self) -> &'static str {
        "random operations and settings: every answer is that of an ordered map"
    }

    fn cases(&self) -> Option<u64> {
        None
    }

    fn goal(&self, length: Length) -> Goal {
        Goal::Count(
            "operations",
            match length {
                Length::Short => 700_000,
                Length::Long => 50_000_000,
            },
        )
    }

    fn run_case(&self, case: u64, tally: &mut Tally) -> Result<(), Finding> {
        let one = Case::new(case);
        tally.count("databases with threads", u64::from(one.has_threads()));
        match one.failure(&one.script, tally) {
            Some(what) => Err(Finding::new(self, case, what)),
            None => Ok(()),
        }
    }

    fn shrink(&self, finding: Finding) -> Finding {
        let one = Case::new(finding.case);
        // What depends on the scheduling of threads comes and goes.
        if one.has_threads() {
            return finding;
        }
        let mut what = finding.what.clone();
        let short = shrink::shrink(&one.script, &mut |script| {
            let failure = one.failure(script, &mut Tally::default());
            what = failure.clone().unwrap_or(std::mem::take(&mut what));
            failure.is_some()
        });
        let lines = short.iter().map(|operation| format!("{operation:?}"));
        let script = std::iter::once(format!("{:?}", one.settings)).chain(lines).collect();
        Finding { what, ..finding }.with_script(script)
    }
}
