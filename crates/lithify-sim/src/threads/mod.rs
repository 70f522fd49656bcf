//! Threads beside each other: what is shown of commits while others write, flush and compact.
//!
//! 1. Writers give all rows of a group one number, in one batch over two column families, and count
//!    it up; now and then the batch deletes the group's keys first. Between batches they raise
//!    counters by transactions, updates and comparisons.
//! 2. Readers look at groups in every way there is: gets, multi-gets, cursors that rest halfway,
//!    snapshots that are read twice. A keeper flushes and compacts.
//!    Writers also put and delete rows by range, again and again (`queue`), and rows that a compaction
//!    filter changes and removes (`filtered`). Rows are ingested, and others put behind them (`ingested`).
//! 3. No row of a group is ever missing. A read shows no number that nobody has begun to write, and none older
//!    than one that was acknowledged or shown before it. What is read at one moment has one number
//!    in all rows of a group, and the same when it is read again.
//! 4. The disk is crashed while they go on (`crash`): what was synced, or was acknowledged where the
//!    mode promises it, is there. Syncs take their time, and do not cover what comes meanwhile.
//! 5. In the end no raise of a counter is lost, and with the tables gone nothing of them is in the
//!    cache.
//!
//! The order of the threads' steps is the machine's, not the number's: a case that has found
//! something may have to be run more than once to find it again.

mod bench;
mod closing;
mod crash;
mod filtered;
mod ingested;
mod pause;
mod queue;
mod reader;
mod writer;

use crate::check::{Check, Finding, Goal, Length, Tally, panic_text};
use crate::random::Random;
use bench::Bench;
pub use closing::Closes;
pub use pause::let_syncs_last;
use std::thread::ScopedJoinHandle;

const WRITERS: u64 = 2;
const READERS: u64 = 2;

/// The check; see the module.
pub struct Threads;

impl Check for Threads {
    fn name(&self) -> &'static str {
        "threads"
    }

    fn about(&self) -> &'static str {
        "readers beside writers, flushes and compactions see whole commits, and none too late"
    }

    fn cases(&self) -> Option<u64> {
        None
    }

    fn goal(&self, length: Length) -> Goal {
        Goal::Cases(if length == Length::Short { 20 } else { 2000 })
    }

    fn run_case(&self, case: u64, tally: &mut Tally) -> Result<(), Finding> {
        run(case, tally).map_err(|what| Finding::new(self, case, what))
    }
}

fn run(case: u64, tally: &mut Tally) -> Result<(), String> {
    let mut random = Random::new(case);
    let bench = Bench::new(&mut random)?;
    let mut seeds = random.clone();
    let mut seed = || Random::new(seeds.next());
    let bench = &bench;
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|number| (number, seed()))
            .map(|(number, random)| scope.spawn(move || writer::write(bench, number, random)))
            .collect();
        let readers: Vec<_> = (0..READERS)
            .map(|_| seed())
            .map(|random| scope.spawn(move || reader::read(bench, random)))
            .collect();
        let keeper = scope.spawn(move || writer::keep(bench));
        let filterer = scope.spawn(move || bench.filtered.keep(bench));
        let ingester = scope.spawn(move || bench.ingested.keep(bench));
        let random = seed();
        let crasher = scope.spawn(move || crash::crash(bench, random));
        let written = writers.into_iter().map(joined).collect::<Result<Vec<_>, _>>();
        bench.end();
        let read = readers.into_iter().map(joined).collect::<Result<Vec<_>, _>>();
        let (kept, filtered, ingested) = (joined(keeper), joined(filterer), joined(ingester));
        let crashes = joined(crasher);
        tally.count("commits", written?.into_iter().sum());
        tally.count("reads at one moment", read?.into_iter().sum());
        tally.count("flushes and compactions asked for", kept?);
        tally.count("compactions with a filter asked for", filtered?);
        tally.count("ingests beside readers", ingested?);
        tally.count("crashes beside them", crashes?);
        Ok::<(), String>(())
    })?;
    crash::check_interval(bench, &mut random)?;
    bench.check_end()
}

/// What a thread came to; a panic is a finding too.
fn joined<T>(thread: ScopedJoinHandle<'_, Result<T, String>>) -> Result<T, String> {
    thread.join().unwrap_or_else(|panic| Err(format!("a panic: {}", panic_text(&*panic))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::run_case;

    #[test]
    fn readers_see_whole_commits() {
        let mut tally = Tally::default();
        for case in 0..4 {
            run_case(&Threads, case, &mut tally).unwrap();
        }
        assert_eq!(tally.get("commits"), 4 * WRITERS * writer::COMMITS);
        assert!(tally.get("reads at one moment") > 0);
    }
}
