//! Random histories: a chain of lives, each of which ends by a crash at a random call and goes on
//! from what that left.

use super::actor::Actor;
use super::choice::{self, Choice};
use super::figures::{self, DISTINCT_IMAGES};
use super::history::History;
use super::record::{Point, Recorder, Which};
use super::recover::watched_environment;
use super::trial::Trial;
use super::workload;
use crate::check::{Check, Finding, Goal, Length, Tally};
use crate::filtered::Filtered;
use crate::model::State;
use crate::operation::lifetimes::HALF_LIFE_US;
use crate::random::Random;
use lithify::Options;
use lithify::fs::MemoryFileSystem;

/// Lives of one chain.
const LIVES: u64 = 8;

/// Random draws of what survives at a point.
const DRAWS: u64 = 4;

/// Points of a life that are tried besides its last one.
const POINTS: u64 = 4;

/// One chain of so many has databases with threads of their own.
const THREADED: u64 = 4;

/// The check; see the module.
pub struct Crashes;

/// A chain of lives, all from one seed.
struct Chain<'t> {
    random: Random,
    /// What the last crash left.
    files: MemoryFileSystem,
    options: Options,
    background_threads: usize,
    history: History,
    /// The time of the virtual clock, which goes on from life to life.
    now_us: u64,
    tally: &'t mut Tally,
}

impl Chain<'_> {
    /// One life, from an opening to a crash.
    fn live(&mut self) -> Result<(), String> {
        let random = &mut self.random;
        let files = self.files.clone();
        let environment = watched_environment(random.next(), self.now_us);
        let durability = match random.one_in(8) {
            true => workload::durability(random),
            false => self.options.durability,
        };
        let options = workload::options(random, durability);
        let options = workload::with_threads(options, self.background_threads);
        let history = std::mem::replace(&mut self.history, History::new(State::default(), None));
        let mut actor = Actor::new(&files, &environment, &options, history);
        actor.open().map_err(|error| format!("it does not open: {error}"))?;
        actor.compare_all().map_err(|error| format!("it cannot be read: {error}"))?;
        let changes_max = *random.pick(&[40, 300, 2000, 20_000]);
        let mut which: Vec<u64> = (0..=POINTS).map(|_| random.below(changes_max)).collect();
        which.sort_unstable();
        which.dedup();
        let recorder = Recorder::start(&files, Some(actor.witness()), Which::Only(which));
        let told_max = *random.pick(&[10, 100, 400]);
        let outcome = tell(&mut actor, &recorder, random, told_max);
        let points = recorder.finish();
        actor.let_go();
        outcome.map_err(|error| format!("before the crash: {error}"))?;
        self.history = actor.witness().take_history();
        self.crash(&points)
    }

    /// Tries crashes at the points of a life, and goes on from one at the last of them.
    fn crash(&mut self, points: &[Point]) -> Result<(), String> {
        let random = &mut self.random;
        self.tally.count("rows filtered", self.history.filtered_rows());
        let mut trial = Trial::new(&self.history, self.tally);
        trial.downtime_us = HALF_LIFE_US * random.pick(&[0, 0, 0, 1, 2]);
        for point in points {
            let mut choices = choice::plain(&point.files);
            for _ in 0..DRAWS {
                choices.extend(choice::random(&point.files, random.next()));
            }
            for choice in choices {
                trial.crash(point, &choice)?;
            }
        }
        let Some(last) = points.last() else { return Err("no call was recorded".to_string()) };
        let seed = random.next();
        let any = |random: &mut Random| {
            let mut choices = choice::plain(&last.files);
            choices.extend(choice::random(&last.files, random.next()));
            random.pick(&choices).clone()
        };
        let first = any(random);
        let second = Which::Only((0..3).map(|third| third * 8 + random.below(8)).collect());
        trial.crash_twice(last, &first, second, &|files| choice::random(files, seed))?;
        let left: Choice = any(random);
        let found = trial.crash(last, &left)?;
        let moment = trial.opened_at(last);
        let state = self.history.survivor(&moment, found.survived, &found.found);
        self.files = left.image(&last.files);
        if let Some(options) = &last.options {
            self.options.clone_from(options);
        }
        self.now_us = moment.now_us;
        self.history.settle(state);
        Ok(())
    }
}

/// Random operations until the power goes, or until there were so many; an error only by that.
fn tell(
    actor: &mut Actor,
    recorder: &Recorder,
    random: &mut Random,
    operations_max: u64,
) -> lithify::Result<()> {
    for _ in 0..random.between(1, operations_max) {
        let state = actor.witness().history().now();
        let durability = actor.witness().options().durability;
        for operation in workload::next(random, &state, durability) {
            let told = actor.perform(&operation);
            if recorder.is_over() {
                return Ok(());
            }
            told?;
        }
        actor.pass_us(random.below(1500));
    }
    Ok(())
}

impl Check for Crashes {
    fn name(&self) -> &'static str {
        "crashes"
    }

    fn about(&self) -> &'static str {
        "power cuts and kills at random calls of random histories that go on from what is left"
    }

    fn cases(&self) -> Option<u64> {
        None
    }

    fn goal(&self, length: Length) -> Goal {
        match length {
            Length::Short => Goal::Cases(100),
            Length::Long => Goal::Count(DISTINCT_IMAGES, 1_000_000),
        }
    }

    fn table(&self, tally: &Tally) -> String {
        figures::table(tally)
    }

    fn run_case(&self, case: u64, tally: &mut Tally) -> Result<(), Finding> {
        let mut random = Random::new(case);
        let durability = workload::durability(&mut random);
        let options = workload::options(&mut random, durability);
        let has_threads = case % THREADED == THREADED - 1;
        let background_threads = if has_threads { random.between(1, 2) as usize } else { 0 };
        tally.count("lives with threads", if has_threads { LIVES } else { 0 });
        let mut chain = Chain {
            random,
            files: MemoryFileSystem::new(),
            options,
            background_threads,
            history: History::new(State::default(), Filtered::slot_of(case / THREADED)),
            now_us: 0,
            tally,
        };
        for life in 0..LIVES {
            chain
                .live()
                .map_err(|what| Finding::new(self, case, format!("life {life}: {what}")))?;
        }
        Ok(())
    }
}
