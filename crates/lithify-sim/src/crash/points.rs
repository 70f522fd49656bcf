//! Every point of scripted runs.

use super::actor::Actor;
use super::choice::{self, Choice};
use super::figures::{self, DISTINCT_IMAGES};
use super::history::History;
use super::record::{Point, Recorder, Which};
use super::recover::watched_environment;
use super::scripts::{self, MODES, Script};
use super::trial::Trial;
use crate::check::{Check, Finding, Goal, Length, Tally};
use crate::model::State;
use crate::operation::Operation;
use crate::operation::lifetimes::HALF_LIFE_US;
use crate::random::Random;
use lithify::Durability;
use lithify::fs::{CrashKeep, MemoryFileSystem};

/// In a round the second crash comes at one in so many points; so many rounds together come at
/// all, and later ones add random crashes to be crashed in.
const SECOND_CRASH_PART: u64 = 4;

/// Round 0 enumerates; later ones add random subsets.
const RANDOM_PER_ROUND: u64 = 16;

/// What an operation of a script takes, by the virtual clock, in microseconds.
const OPERATION_US: u64 = 700;

/// So many points in a row have the same time between the crash and the opening after it.
const DOWNTIME_POINTS: u64 = 8;

/// The check; see the module.
pub struct CrashPoints;

/// One case: a script in a mode, and which crashes are tried.
struct Case {
    script: Script,
    durability: Durability,
    round: u64,
}

impl Case {
    /// The first cases are each script once, then each in the other modes, then further rounds.
    fn new(case: u64) -> Case {
        let mut scripts = scripts::all();
        let count = scripts.len() as u64;
        let index = case % count;
        let turn = case / count;
        let modes = MODES.len() as u64;
        Case {
            script: scripts.swap_remove(index as usize),
            durability: MODES[((index + turn) % modes) as usize],
            round: turn / modes,
        }
    }
}

/// Runs a script; gives its history and all of its crash points.
///
/// # Errors
/// What the engine refuses: nothing is to be refused here.
pub fn record(script: &Script, durability: Durability) -> Result<(History, Vec<Point>), String> {
    let failed = |error: lithify::Error| format!("without a crash: {error}");
    let environment = watched_environment(1, 0);
    let mut files = MemoryFileSystem::new();
    let options = script.options(durability);
    let mut actor =
        Actor::new(&files, &environment, &options, History::new(State::default(), script.filter));
    if !script.before_a_kill.is_empty() {
        actor.open().map_err(failed)?;
        for operation in &script.before_a_kill {
            actor.perform(operation).map_err(failed)?;
        }
        if durability == Durability::None {
            // What a kill leaves without a log is what was flushed.
            actor.perform(&Operation::Flush(None)).map_err(failed)?;
        }
        let killed = files.crash_clone(0, CrashKeep::Everything);
        let (history, options) = (actor.witness().take_history(), actor.witness().options());
        actor.let_go();
        files = killed;
        actor = Actor::new(&files, &environment, &options, history);
    }
    let recorder = Recorder::start(&files, Some(actor.witness()), Which::Every);
    actor.open().map_err(failed)?;
    for operation in &script.operations {
        actor.perform(operation).map_err(failed)?;
        actor.pass_us(OPERATION_US);
    }
    actor.compare_all().map_err(failed)?;
    let points = recorder.finish();
    actor.let_go();
    Ok((actor.witness().take_history(), points))
}

impl CrashPoints {
    fn run(&self, case: &Case, tally: &mut Tally) -> Result<(), String> {
        let (history, points) = record(&case.script, case.durability)?;
        if case.round == 0 {
            tally.count("crash points", points.len() as u64);
            tally.count("rows filtered", history.filtered_rows());
        }
        let mut trial = Trial::new(&history, tally);
        for (index, point) in points.iter().enumerate() {
            let mut random = Random::new(case.round << 32 | index as u64);
            trial.downtime_us = HALF_LIFE_US * ((index as u64 / DOWNTIME_POINTS + case.round) % 3);
            if case.round == 0 {
                trial.crash_every_way(point)?;
            } else {
                for _ in 0..RANDOM_PER_ROUND {
                    for choice in choice::random(&point.files, random.next()) {
                        trial.crash(point, &choice)?;
                    }
                }
            }
            let turn = index as u64 + case.round;
            if turn.is_multiple_of(SECOND_CRASH_PART) {
                self.crash_twice(&mut trial, point, case.round, &mut random)?;
            }
        }
        Ok(())
    }

    /// Crashes at every call of the recovery from a few crashes at a point.
    fn crash_twice(
        &self,
        trial: &mut Trial<'_>,
        point: &Point,
        round: u64,
        random: &mut Random,
    ) -> Result<(), String> {
        let mut firsts = match round {
            0..SECOND_CRASH_PART => choice::plain(&point.files),
            _ => Vec::new(),
        };
        if round > 0 {
            firsts.push(Choice::Random(random.next()));
        }
        for first in &firsts {
            let seed = random.next();
            trial.crash_twice(point, first, Which::Every, &|files| {
                let mut choices = choice::plain(files);
                choices.extend(choice::random(files, seed));
                choices
            })?;
        }
        Ok(())
    }
}

impl Check for CrashPoints {
    fn name(&self) -> &'static str {
        "crash-points"
    }

    fn about(&self) -> &'static str {
        "power cuts and kills at every call of scripted runs, and again while they are recovered"
    }

    fn cases(&self) -> Option<u64> {
        None
    }

    fn goal(&self, length: Length) -> Goal {
        match length {
            // Each script in each mode once.
            Length::Short => Goal::Cases((scripts::all().len() * MODES.len()) as u64),
            Length::Long => Goal::Count(DISTINCT_IMAGES, 250_000),
        }
    }

    fn table(&self, tally: &Tally) -> String {
        figures::table(tally)
    }

    fn run_case(&self, case: u64, tally: &mut Tally) -> Result<(), Finding> {
        let number = case;
        let case = Case::new(case);
        self.run(&case, tally).map_err(|what| {
            let name = case.script.name;
            Finding::new(self, number, format!("script {name:?}, {what}"))
                .with_script(case.script.lines())
        })
    }
}
