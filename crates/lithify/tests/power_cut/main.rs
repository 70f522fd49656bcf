//! Power cuts over random workloads: a database in a memory world is cut off at a random call to
//! the file system, opened from what the cut left, and compared with the history of what it was
//! told.
//!
//! 1. A history is a chain of lives, all from one seed. A life ends by a cut, the next one begins
//!    with what it left. Some cuts come while the database opens.
//! 2. What is left must be the state after a prefix of the history: whole batches, no hole,
//!    nothing that was never written.
//! 3. The prefix must reach as far as the mode of durability promises (`docs/durability.md`).
//! 4. Opening must never fail.
//!
//! `LITHIFY_POWER_CUTS=10000 cargo test -p lithify --test power_cut -- --nocapture` is the long
//! form; `LITHIFY_POWER_CUT_SEED=n` runs the history of one seed alone.

mod cut;
mod figures;
mod history;
mod life;
mod promises;
mod random;

use cut::Cut;
use figures::Figures;
use history::{CrashKind, Found, History};
use life::Life;
use lithify::fs::{CrashKeep, MemoryEnvironment, MemoryFileSystem};
use lithify::{Db, Durability};
use random::Random;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Cuts in one history, at most.
const CUTS_PER_HISTORY: u64 = 10;

/// Cuts where nothing else is asked for.
const CUTS_DEFAULT: u64 = 1000;

/// A chain of lives.
struct Chain<'f> {
    random: Random,
    files: MemoryFileSystem,
    /// The crash that left the files.
    left_by: CrashKind,
    durability: Durability,
    history: History,
    cuts: u64,
    figures: &'f mut Figures,
}

fn keep(random: &mut Random) -> (CrashKeep, CrashKind) {
    match random.below(8) {
        0 => (CrashKeep::Nothing, CrashKind::PowerCut),
        1 | 2 => (CrashKeep::Everything, CrashKind::ProcessEnd),
        _ => (CrashKeep::Random, CrashKind::PowerCut),
    }
}

impl Chain<'_> {
    fn run(seed: u64, figures: &mut Figures) -> Result<(), String> {
        let mut random = Random::new(seed);
        let durability = life::durability(&mut random);
        let mut chain = Chain {
            random,
            files: MemoryFileSystem::new(),
            left_by: CrashKind::PowerCut,
            durability,
            history: History::new(),
            cuts: 0,
            figures,
        };
        let outcome = chain.live_and_die();
        outcome.map_err(|what| {
            format!("seed {seed}, cut {}, durability {:?}: {what}", chain.cuts, chain.durability)
        })
    }

    fn live_and_die(&mut self) -> Result<(), String> {
        while self.cuts < CUTS_PER_HISTORY {
            if self.random.one_in(4) {
                self.cut_while_opening()?;
            } else {
                self.live()?;
            }
        }
        let environment = MemoryEnvironment::new(self.random.next());
        self.recover(&self.files.clone(), &environment).map(drop)
    }

    /// Opens what the last cut left and compares it with the history.
    fn recover(
        &mut self,
        files: &MemoryFileSystem,
        environment: &MemoryEnvironment,
    ) -> Result<(Db, Found), String> {
        let failed = |error: lithify::Error| format!("after a {:?}: {error}", self.left_by);
        let db = life::open(files, environment, self.durability).map_err(failed)?;
        let hashes = life::hashes(&life::handles(&db)).map_err(failed)?;
        let found = self.history.find(self.left_by, &hashes)?;
        compare_rows(&db, &found).map_err(failed)?;
        Ok((db, found))
    }

    /// One life, from an opening to a cut.
    fn live(&mut self) -> Result<(), String> {
        if self.random.one_in(8) {
            self.durability = life::durability(&mut self.random);
        }
        let (files, environment) = (self.files.clone(), MemoryEnvironment::new(self.random.next()));
        let (db, found) = self.recover(&files, &environment)?;
        // What an opened database shows is durable.
        self.history.settle(found.state);
        let calls_max = *self.random.pick(&[10, 100, 400]);
        let calls = 1 + self.random.below(calls_max);
        let file_calls_max = *self.random.pick(&[40, 600, 4000, u64::MAX >> 1]);
        let file_calls = self.random.below(file_calls_max);
        let (keep, kind) = keep(&mut self.random);
        let cut = Cut::after_calls(&files, file_calls, keep, self.random.next());
        let mut life = Life::new(db, &files, &environment, &mut self.history, &mut self.random);
        let outcome = life.run(calls, &cut);
        self.durability = life.durability;
        let db = life.db.take();
        let (image, call) = cut.take();
        drop(db);
        if environment.endless_waits() > 0 {
            return Err(format!("a wait without end in the life that was cut at {call}"));
        }
        outcome.map_err(|error| format!("before the cut: {error}"))?;
        self.was_cut(image, keep, kind, false)
    }

    /// Finds out what opening finds and how many calls it makes, then cuts one of these.
    fn cut_while_opening(&mut self) -> Result<(), String> {
        let seed = self.random.next();
        let probe = self.files.crash_clone(0, CrashKeep::Everything);
        let (db, found) = self.recover(&probe, &MemoryEnvironment::new(seed))?;
        let file_calls = probe.call_count();
        drop(db);
        match self.left_by {
            // Everything that is left is durable, so nothing of it may go now.
            CrashKind::PowerCut => self.history.settle(found.state),
            CrashKind::ProcessEnd => {
                self.history.process_floor = self.history.process_floor.max(found.survived);
            }
        }
        let (keep, kind) = keep(&mut self.random);
        let files = self.files.clone();
        let at = self.random.below(file_calls);
        let cut = Cut::after_calls(&files, at, keep, self.random.next());
        drop(life::open(&files, &MemoryEnvironment::new(seed), self.durability));
        let (image, _) = cut.take();
        self.was_cut(image, keep, kind, true)
    }

    fn was_cut(
        &mut self,
        image: MemoryFileSystem,
        keep: CrashKeep,
        kind: CrashKind,
        while_opening: bool,
    ) -> Result<(), String> {
        self.cuts += 1;
        self.files = image;
        self.left_by = kind;
        let probe = self.files.crash_clone(0, CrashKeep::Everything);
        self.figures.image(&probe);
        let (db, found) = self.recover(&probe, &MemoryEnvironment::new(1))?;
        drop(db);
        let promised = match kind {
            CrashKind::PowerCut => self.history.power_floor,
            CrashKind::ProcessEnd => self.history.process_floor,
        };
        let acknowledged = self.history.acknowledged;
        let lost = acknowledged.saturating_sub(found.survived);
        self.figures.cut(self.durability, keep, while_opening, acknowledged, promised, lost);
        Ok(())
    }
}

/// Compares every row both ways, and some points.
fn compare_rows(db: &Db, found: &Found) -> lithify::Result<()> {
    for (handle, content) in life::handles(db).iter().zip(&found.state.families) {
        let (Some(handle), Some(content)) = (handle, content) else { continue };
        let mut rows = handle.cursor(..)?;
        for (key, value) in content.rows.iter().rev() {
            assert!(rows.prev()?, "the row {key:?} is missing");
            assert_eq!((rows.key(), rows.value()), (&key[..], &value[..]));
        }
        assert!(!rows.prev()?, "a row too many");
        for (key, value) in content.rows.iter().step_by(7) {
            assert_eq!(handle.get(key)?.as_deref(), Some(&value[..]));
        }
        assert_eq!(handle.get(b"key")?, None);
    }
    Ok(())
}

/// One history; a panic, of the engine or of a comparison, is a violation too.
fn run_seed(seed: u64, figures: &mut Figures) -> Result<(), String> {
    let run = AssertUnwindSafe(|| Chain::run(seed, figures));
    catch_unwind(run).unwrap_or_else(|_| Err(format!("seed {seed}: a panic, see above")))
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| match text.parse() {
        Ok(number) => number,
        Err(_) => panic!("{variable} must be a number, not {text:?}"),
    })
}

#[test]
fn what_a_cut_leaves_is_a_prefix_as_long_as_promised() {
    let mut figures = Figures::new();
    let mut violations = Vec::new();
    if let Some(seed) = number("LITHIFY_POWER_CUT_SEED") {
        violations.extend(run_seed(seed, &mut figures).err());
    } else {
        let cuts = number("LITHIFY_POWER_CUTS").unwrap_or(CUTS_DEFAULT);
        let mut seed = 0;
        while figures.cuts() < cuts && violations.len() < 10 {
            violations.extend(run_seed(seed, &mut figures).err());
            figures.progress(cuts);
            seed += 1;
        }
    }
    println!("{figures}violations {}", violations.len());
    for violation in &violations {
        println!("{violation}");
    }
    assert!(violations.is_empty(), "run one alone with LITHIFY_POWER_CUT_SEED: {violations:#?}");
}
