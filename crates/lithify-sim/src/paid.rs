//! Flushes and compactions that scans pay for by passing dead entries.
//!
//! A family has rows that expire or are deleted, over older ones, with or without a snapshot that keeps
//! them. Its scans pass them again and again, forward and back. Judged are the answers and the jobs:
//!
//! 1. They read no more than scans have paid for, tables that they meet in the next level included.
//! 2. A table is written anew where it is only if that frees something.
//! 3. Where nothing keeps the dead entries, scans come to pass none of them.

use crate::check::{Check, Finding, Goal, Length, Tally};
use crate::random::Random;
use lithify::fs::{MemoryEnvironment, MemoryFileSystem, World};
use lithify::stats::{Counter, JobEnd, JobKind};
use lithify::{CfOptions, ColumnFamily, Db, Options};
use std::sync::Arc;

/// Rows expire after so many seconds.
const TIME_TO_LIVE_S: u64 = 1_000;

/// Scans pay for an entry to be rewritten by so many passes, and by so many for each job.
const PASSES_PER_ENTRY: u64 = 8;
const PASSES_PER_JOB: u64 = 100_000;

/// Entries that the scans of a case pass at least, if they are not freed.
const PASSES: u64 = 800_000;

/// One row in so many lives on among the dead ones.
const LIVE_PERIOD: u64 = 100;

/// The check; see the module.
pub struct Paid;

/// A case at work.
struct Run {
    db: Db,
    rows: ColumnFamily,
    environment: MemoryEnvironment,
    /// Rows from here on are never dead, nor scanned.
    dead: u64,
    goes_back: bool,
}

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

fn text(error: lithify::Error) -> String {
    error.to_string()
}

impl Run {
    fn open(random: &mut Random) -> Result<Run, String> {
        let environment = MemoryEnvironment::new(random.next());
        let files = Arc::new(MemoryFileSystem::new());
        let world = World { files, environment: Arc::new(environment.clone()) };
        let options = Options { background_threads: 0, ..Options::default() };
        let db = Db::open_in("/paid", options, world).map_err(text)?;
        let options = CfOptions { time_to_live_s: TIME_TO_LIVE_S, ..CfOptions::default() };
        let rows = db.column_family("rows", options).map_err(text)?;
        let dead = LIVE_PERIOD * (20 + random.below(20));
        Ok(Run { db, rows, environment, dead, goes_back: random.below(4) == 0 })
    }

    fn put(&self, numbers: impl Iterator<Item = u64>) -> Result<(), String> {
        for number in numbers {
            self.rows.put(key(number), "a row").map_err(text)?;
        }
        Ok(())
    }

    /// Lets most rows of the head expire or deletes them; some are put again.
    fn kill(&self, expire: bool) -> Result<(), String> {
        if expire {
            self.environment.advance_us((TIME_TO_LIVE_S + 10) * 1_000_000);
        } else {
            for number in (0..self.dead).filter(|number| number % LIVE_PERIOD != 0) {
                self.rows.delete(key(number)).map_err(text)?;
            }
        }
        self.put((0..self.dead).step_by(LIVE_PERIOD as usize))?;
        // So that no table is full of tombstones.
        self.put(self.dead..self.dead * 2 + LIVE_PERIOD)
    }

    /// Scans the head once; the entries that were passed.
    fn scan(&self) -> Result<u64, String> {
        let passed = || self.db.stats().figures.counter(Counter::SkippedEntries);
        let (before, range) = (passed(), self.rows.range(..key(self.dead)).keys());
        let found = if self.goes_back { range.rev().count() } else { range.count() };
        self.db.wait_for_compaction().map_err(text)?;
        match found as u64 == self.dead / LIVE_PERIOD {
            true => Ok(passed() - before),
            false => Err(format!("a scan found {found} rows of {}", self.dead / LIVE_PERIOD)),
        }
    }

    /// Scans until enough was passed, or scans pass no dead entry; whether the latter.
    fn scan_on(&self) -> Result<bool, String> {
        let mut passed = 0;
        while passed < PASSES {
            // A row's own entry counts as passed where the cursor has a copy of it.
            let of_scan = self.scan()?;
            if of_scan <= self.dead / LIVE_PERIOD * 2 {
                return Ok(true);
            }
            passed += of_scan;
        }
        Ok(false)
    }

    fn judge_jobs(&self, tally: &mut Tally) -> Result<(), String> {
        let stats = self.db.stats();
        let is_paid =
            |end: &&JobEnd| end.job.reason == "dead-entries" && end.job.kind != JobKind::Move;
        let jobs: Vec<&JobEnd> = stats.jobs.iter().filter(is_paid).collect();
        tally.count("paid jobs", jobs.len() as u64);
        let read: u64 = jobs.iter().map(|end| end.entries_in).sum();
        let passed = stats.figures.counter(Counter::SkippedEntries);
        tally.count("entries passed", passed);
        let price = read * PASSES_PER_ENTRY + jobs.len() as u64 * PASSES_PER_JOB;
        if price > passed {
            return Err(format!("{passed} passes paid for what costs {price}: {jobs:?}"));
        }
        let is_vain = |end: &&&JobEnd| {
            end.job.source_level == end.job.target_level && end.entries_dropped == 0
        };
        match jobs.iter().find(is_vain) {
            Some(end) => Err(format!("a rewrite in place freed nothing: {end:?}")),
            None => Ok(()),
        }
    }
}

fn run(case: u64, tally: &mut Tally) -> Result<(), String> {
    let mut random = Random::new(case);
    let run = Run::open(&mut random)?;
    run.put(0..run.dead * (2 + random.below(4)))?;
    match random.below(4) {
        0 => {}
        1 => run.rows.flush().map_err(text)?,
        _ => run.rows.compact_range(..).map_err(text)?,
    }
    let snapshot = (random.below(2) == 0).then(|| run.db.snapshot());
    run.kill(random.below(2) == 0)?;
    match random.below(3) {
        0 => {}
        1 => run.rows.flush().map_err(text)?,
        _ => run.rows.compact_range(..).map_err(text)?,
    }
    let is_clean = run.scan_on()?;
    run.judge_jobs(tally)?;
    tally.count("kept by a snapshot", u64::from(snapshot.is_some()));
    if snapshot.is_none() && !is_clean {
        return Err(format!("scans pass dead entries for ever: {}", run.db.stats()));
    }
    drop(snapshot);
    match run.scan_on()? {
        true => run.judge_jobs(tally),
        false => Err("scans pass what no snapshot keeps any more".into()),
    }
}

impl Check for Paid {
    fn name(&self) -> &'static str {
        "paid"
    }

    fn about(&self) -> &'static str {
        "scans over dead entries start the work that frees them, and no more than they have paid for"
    }

    fn cases(&self) -> Option<u64> {
        None
    }

    fn goal(&self, length: Length) -> Goal {
        match length {
            Length::Short => Goal::Cases(16),
            Length::Long => Goal::Cases(1_000),
        }
    }

    fn run_case(&self, case: u64, tally: &mut Tally) -> Result<(), Finding> {
        run(case, tally).map_err(|what| Finding::new(self, case, what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scans_start_what_they_have_paid_for() {
        let mut tally = Tally::default();
        for case in 0..8 {
            Paid.run_case(case, &mut tally).unwrap_or_else(|finding| panic!("{finding}"));
        }
        assert!(tally.get("paid jobs") > 4, "{:?}", tally.figures());
        assert!((1..8).contains(&tally.get("kept by a snapshot")), "{:?}", tally.figures());
    }
}
