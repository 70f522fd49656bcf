//! Writers over the file system in memory, which knows what was synced; the power is cut at random
//! moments, and what a cut leaves is opened and counted.
//!
//! A cut is a clone of the disk, so one life is cut several times. Half of the cuts lose
//! everything unsynced, the others a random part of it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lithify::fs::{CrashKeep, MemoryFileSystem, SystemEnvironment, World};

use super::kills::{Tally, WRITERS};
use super::writers::{self, Witness};
use super::{Crash, DurabilitySpec, LossFigures, Mode, open};
use crate::random::Random;
use crate::run::RunError;
use crate::run::progress::{Listener, ProgressLine};

/// Cuts of one life: the database of a life grows without a bound otherwise.
const CUTS_PER_LIFE: u64 = 10;

/// Time between two cuts, milliseconds, at most.
const BETWEEN_MS_MAX: u64 = 12;

/// How often the first commit of a life is looked for.
const BEFORE_THE_FIRST_COMMIT: Duration = Duration::from_micros(100);

fn world(files: &MemoryFileSystem) -> World {
    World { files: Arc::new(files.clone()), environment: Arc::new(SystemEnvironment) }
}

/// The power cuts of one mode.
///
/// # Errors
/// The engine's.
pub fn measure(
    spec: &DurabilitySpec,
    mode: Mode,
    listener: Listener<'_>,
) -> Result<LossFigures, RunError> {
    let mut random = Random::new(spec.seed, 100 + mode as u64);
    let mut tally = Tally::new(LossFigures::new(mode, Crash::PowerCut));
    let mut done = 0;
    while done < spec.cuts {
        let cuts = CUTS_PER_LIFE.min(spec.cuts - done);
        live(spec, mode, cuts, &mut random, &mut tally)?;
        done += cuts;
        listener(&ProgressLine::of_progress("cuts", [done, spec.cuts], "cuts", 0));
    }
    Ok(tally.finish())
}

/// One life of the writers, with its cuts.
fn live(
    spec: &DurabilitySpec,
    mode: Mode,
    cuts: u64,
    random: &mut Random,
    tally: &mut Tally,
) -> Result<(), RunError> {
    let files = MemoryFileSystem::new();
    let (db, family) = open(Path::new("/db"), world(&files), mode, 1)?;
    let witness = Witness::new(&[0; WRITERS], true);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let work = scope.spawn(|| writers::run(&family, &witness, spec.value_bytes, true, &stop));
        // A cut before the first commit tells nothing, and a busy machine may be so late.
        let has_begun = || witness.counts().iter().any(|counts| counts.acknowledged > 0);
        while !has_begun() && !work.is_finished() {
            thread::sleep(BEFORE_THE_FIRST_COMMIT);
        }
        let outcome = (0..cuts).try_for_each(|cut| {
            thread::sleep(Duration::from_micros(random.below(BETWEEN_MS_MAX * 1000)));
            let keep = if cut % 2 == 0 { CrashKeep::Nothing } else { CrashKeep::Random };
            cut_and_count(&files, mode, keep, random.next_u64(), &witness, tally)
        });
        stop.store(true, Ordering::SeqCst);
        let work = work.join().unwrap_or_else(|_| Err(RunError::new("the workload failed")));
        outcome.and(work.map(drop))
    })?;
    drop(family);
    db.close().map_err(|error| RunError::new(format!("close: {error}")))
}

fn cut_and_count(
    files: &MemoryFileSystem,
    mode: Mode,
    keep: CrashKeep,
    seed: u64,
    witness: &Witness,
    tally: &mut Tally,
) -> Result<(), RunError> {
    // Before the cut: what is acknowledged after this line is not asked for.
    let before = witness.counts();
    let cut_us = witness.start().elapsed().as_micros() as u64;
    let image = files.crash_clone(seed, keep);
    let start = Instant::now();
    let (db, family) = open(Path::new("/db"), world(&image), mode, 0)?;
    tally.recovered(start.elapsed());
    let survivors = tally.compare(&family, &[0; WRITERS], &before)?;
    for (writer, (rows, counts)) in survivors.iter().zip(&before).enumerate() {
        if *rows < counts.acknowledged
            && let Some(at_us) = witness.acknowledged_at_us(writer, *rows)
        {
            tally.lost_ms(cut_us.saturating_sub(at_us) as f64 / 1e3);
        }
    }
    drop(family);
    db.close().map_err(|error| RunError::new(format!("close: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cuts_in(mode: Mode) -> LossFigures {
        let spec = DurabilitySpec {
            writers: vec![],
            seconds: 0.0,
            kills: 0,
            memory_limit_mib: None,
            cuts: 6,
            value_bytes: 100,
            seed: 7,
            build: String::new(),
        };
        measure(&spec, mode, &|_| {}).unwrap()
    }

    #[test]
    fn a_cut_takes_nothing_that_was_synced() {
        let figures = cuts_in(Mode::Sync);
        assert_eq!((figures.crashes, figures.holes), (6, 0));
        assert!(figures.acknowledged > 0);
        assert_eq!(figures.acknowledged_lost.commits, 0);
        assert_eq!(figures.visible_lost.commits, 0);
        assert_eq!(figures.violation(), None);
    }

    #[test]
    fn a_cut_takes_what_was_only_written() {
        let figures = cuts_in(Mode::Buffered);
        assert_eq!(figures.holes, 0);
        assert!(figures.acknowledged_lost.crashes >= 1, "{figures:?}");
        assert_eq!(figures.violation(), None);
        // The same loss breaks the promise of another mode.
        let synced = LossFigures { mode: Mode::Sync, ..figures.clone() };
        assert!(synced.violation().unwrap().starts_with("sync, power cut: "));
        let killed = LossFigures { crash: Crash::ProcessEnd, ..figures };
        assert!(killed.violation().unwrap().starts_with("buffered, process killed: "));
    }
}
