//! One run in which one call fails: what the database says of it, what it shows afterwards, and
//! what a crash leaves of it.

use super::failure::{Calls, Failure, Fault, NotedCall};
use super::figures::Outcome;
use crate::crash::actor::{Actor, DIRECTORY};
use crate::crash::history::{CrashKind, Found, History};
use crate::crash::recover::{read_all, recover, watched_environment, work_on};
use crate::crash::scripts::Script;
use crate::model::State;
use crate::operation::Operation;
use crate::references::unnamed_files;
use lithify::base::Clock;
use lithify::fs::{CrashKeep, FileCallKind, MemoryEnvironment, MemoryFileSystem};
use lithify::manifest::FileName;
use lithify::{Durability, Error, ErrorKind, Options};
use std::path::Path;

/// Operations that fail for want of space before there is some again.
const FULL_OPERATIONS: u64 = 5;

/// One in so many runs is worked with at its end.
const WORKED_ON_PART: u64 = 16;

/// The calls that a run makes when nothing fails.
///
/// # Errors
/// What the engine refuses.
pub fn calls(script: &Script, durability: Durability) -> Result<Vec<NotedCall>, String> {
    let failed = |error: Error| format!("without a failure: {error}");
    let files = MemoryFileSystem::new();
    let calls = Calls::note(&files);
    let options = script.options(durability);
    let mut actor = Actor::new(&files, &watched_environment(1, 0), &options, new_history(script));
    actor.open().map_err(failed)?;
    for operation in script.told() {
        actor.perform(operation).map_err(failed)?;
    }
    actor.let_go();
    Ok(calls.finish())
}

fn new_history(script: &Script) -> History {
    History::new(State::default(), script.filter)
}

/// A run in which one call fails.
pub struct Run {
    actor: Actor,
    files: MemoryFileSystem,
    environment: MemoryEnvironment,
    fault: Fault,
    failure: Failure,
    call: NotedCall,
    at: u64,
    outcome: Outcome,
    /// Operations that have failed.
    errors: u64,
    /// Whether writing has stopped, and an event may or may not be there.
    is_stopped: bool,
}

impl Run {
    /// Prepares the failure of the call of that number, among those of a run without one.
    pub fn new(
        script: &Script,
        options: &Options,
        calls: &[NotedCall],
        (at, failure): (u64, Failure),
    ) -> Run {
        let files = MemoryFileSystem::new();
        let environment = watched_environment(1, 0);
        let fault = Fault::set(&files, failure, at, calls.len() as u64);
        Run {
            actor: Actor::new(&files, &environment, options, new_history(script)),
            files,
            environment,
            fault,
            failure,
            call: calls[at as usize],
            at,
            outcome: Outcome::Unnoticed,
            errors: 0,
            is_stopped: false,
        }
    }

    /// Takes the failure for another one: what is told of it is wrong then.
    #[cfg(test)]
    pub fn claim(&mut self, failure: Failure) {
        self.failure = failure;
    }

    /// Tells the database a script and gives what became of it.
    ///
    /// # Errors
    /// What must not be.
    pub fn run(mut self, script: &Script) -> Result<Outcome, String> {
        if let Err(error) = self.actor.open() {
            self.note_error(&error)?;
            self.open_again()?;
        }
        for operation in script.told() {
            self.perform(operation).map_err(|wrong| format!("{wrong}, at {operation:?}"))?;
        }
        if !self.fault.has_struck(self.at) {
            self.close()?;
        }
        if !self.fault.has_struck(self.at) {
            return Err("the call that was to fail did not come".to_string());
        }
        self.finish()
    }

    /// Closes the database, which fails at the call.
    fn close(&mut self) -> Result<(), String> {
        match self.actor.close() {
            Ok(()) => Ok(()),
            Err(error) => {
                self.note_error(&error)?;
                if error.kind() == ErrorKind::Poisoned {
                    self.is_stopped = true;
                    self.outcome = self.outcome.max(Outcome::Stopped);
                }
                Ok(())
            }
        }
    }

    fn perform(&mut self, operation: &Operation) -> Result<(), String> {
        let is_open = self.actor.db().is_some();
        let before = self.actor.witness().history().moment();
        let told = self.actor.perform(operation);
        let after = self.actor.witness().history().moment();
        match told {
            Ok(()) if self.is_stopped && after.acknowledged > before.acknowledged => {
                Err("a write was acknowledged after writing had stopped".to_string())
            }
            Ok(()) => Ok(()),
            Err(error) => {
                self.note_error(&error)?;
                if is_open && self.actor.db().is_none() {
                    return self.open_again();
                }
                self.after_error(after.begun > before.begun)
            }
        }
    }

    /// An error must say what it comes from; after a while there is space again.
    fn note_error(&mut self, error: &Error) -> Result<(), String> {
        self.errors += 1;
        self.outcome = self.outcome.max(Outcome::WentOn);
        let is_explained = self.failure.explains(error.kind());
        if self.failure == Failure::FullForever && self.errors >= FULL_OPERATIONS {
            self.fault.mend();
        }
        match is_explained {
            true => Ok(()),
            false => Err(format!("another error than the failure explains: {error}")),
        }
    }

    /// Finds out whether writing goes on. If it does, what failed left nothing behind; if not, the
    /// first event that failed may be there, and nothing after it is.
    fn after_error(&mut self, has_event: bool) -> Result<(), String> {
        let Some(db) = self.actor.db() else { return Ok(()) };
        let is_stopped = db.batch().commit().is_err();
        if is_stopped && self.failure.must_go_on(self.call) {
            return Err("writing has stopped although nothing was touched".to_string());
        }
        if has_event && (self.is_stopped || !is_stopped) {
            self.actor.witness().history().retract();
        }
        if is_stopped {
            self.is_stopped = true;
            self.outcome = self.outcome.max(Outcome::Stopped);
        }
        self.compare()
    }

    /// Opens the database after a failed opening or close, with the failure over, and goes on from
    /// what is there.
    fn open_again(&mut self) -> Result<(), String> {
        self.outcome = self.outcome.max(Outcome::NotOpened);
        self.fault.mend();
        self.is_stopped = false;
        self.actor.let_go();
        let options = self.actor.witness().options();
        let recovered = recover(&self.files, &options, self.filter(), self.environment.now_us())?;
        let found = recovered.found;
        drop(recovered.db);
        let state = self.find(CrashKind::ProcessEnd, &found)?;
        self.actor.witness().history().settle(state);
        self.actor.open().map_err(|error| format!("it does not open again: {error}"))
    }

    /// The state that was found, if it is one that may be.
    fn find(&self, kind: CrashKind, found: &Found) -> Result<State, String> {
        let history = self.actor.witness().history();
        let moment = history.moment();
        let survived = history.find(&moment, moment.may_survive(kind), found);
        let survived = survived.map_err(|wrong| format!("after a {kind:?}: {wrong}"))?;
        Ok(history.survivor(&moment, survived, found))
    }

    fn filter(&self) -> Option<usize> {
        self.actor.witness().history().filter()
    }

    /// What is read is what was acknowledged, or reading fails and says why.
    fn compare(&self) -> Result<(), String> {
        let Some(db) = self.actor.db() else { return Ok(()) };
        let history = self.actor.witness().history();
        match read_all(db, history.filter()) {
            Ok(found) if history.is_acknowledged(&found) => Ok(()),
            Ok(_) => Err("after an error it shows other rows than were acknowledged".to_string()),
            Err(error) if self.failure.explains(error.kind()) => Ok(()),
            Err(error) => Err(format!("reading fails with another error: {error}")),
        }
    }

    /// Ends the run in every way: a power cut, the end of the process, and an orderly close.
    fn finish(mut self) -> Result<Outcome, String> {
        self.compare()?;
        self.fault.mend();
        if !self.is_stopped {
            self.go_on()?;
        }
        if self.environment.endless_waits() > 0 {
            return Err("a wait without an end".to_string());
        }
        let options = self.actor.witness().options();
        let crashes = [
            (CrashKeep::Nothing, CrashKind::PowerCut),
            (CrashKeep::Random, CrashKind::PowerCut),
            (CrashKeep::Everything, CrashKind::ProcessEnd),
        ];
        for (keep, kind) in crashes {
            let image = self.files.crash_clone(self.at, keep);
            let recovered = recover(&image, &options, self.filter(), self.environment.now_us())
                .map_err(|wrong| format!("{kind:?}: {wrong}"))?;
            self.find(kind, &recovered.found)?;
        }
        self.actor.let_go();
        self.check_left_files()?;
        let (filter, now_us) = (self.filter(), self.environment.now_us());
        let recovered = recover(&self.files, &options, filter, now_us)?;
        let state = self.find(CrashKind::ProcessEnd, &recovered.found)?;
        if self.at.is_multiple_of(WORKED_ON_PART) {
            let history = History::new(state, filter).at(now_us);
            work_on(&self.files, &options, recovered.db, history)?;
        }
        Ok(self.outcome)
    }

    /// A database that is closed and went on has left nothing behind but log segments to be used
    /// again, except where removing is what failed: on a full disk each try would leave more.
    fn check_left_files(&self) -> Result<(), String> {
        let excused = self.is_stopped
            || self.outcome == Outcome::NotOpened
            || self.failure == Failure::IoForever
            || (self.call.kind == FileCallKind::Remove && self.failure != Failure::Gone);
        let mut left = unnamed_files(&self.files, Path::new(DIRECTORY))?;
        left.retain(|name| !matches!(name, FileName::Wal(_)));
        match &left[..] {
            [] => Ok(()),
            _ if excused => Ok(()),
            left => Err(format!("it is closed and has left {left:?}")),
        }
    }

    /// With the failure over, an open database that did not stop takes writes, flushes and
    /// compacts.
    fn go_on(&mut self) -> Result<(), String> {
        let operations = [Operation::Flush(None), Operation::Settle, Operation::CompareAll];
        for operation in operations {
            self.actor
                .perform(&operation)
                .map_err(|error| format!("with the failure over, {operation:?} fails: {error}"))?;
        }
        Ok(())
    }
}
