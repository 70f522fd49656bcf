//! Damage at rest: every bit of every file of small databases is flipped in turn, every file is
//! cut at every length, exchanged, zeroed, removed, lengthened.
//!
//! 1. Samples have every kind of file and block (`sample`); what each byte of them is, is known
//!    from the undamaged files (`structure`).
//! 2. A copy is damaged, opened and read in every way (`reading`).
//! 3. Either an error names the damaged file and structure, or every answer is right and there is
//!    a reason why the damage may not matter (`judge`). Anything else is a finding.
//! 4. `verify` and `repair` see a part of the cases (`tools`).
//!
//! It does not damage what is in memory, and not two places at once.

mod change;
mod judge;
mod reading;
pub mod report;
pub mod sample;
pub mod structure;
mod tools;

use crate::check::{Check, Finding, Goal, Length, Tally};
use change::{Change, changes, path_of};
use judge::{Outcome, attempt, check_error, check_place};
use lithify::Result as EngineResult;
use lithify::fs::{CrashKeep, FileSystem, MemoryFileSystem, OpenMode};
use sample::{End, Sample, sample};
use std::io::IoSlice;
use std::sync::OnceLock;
use structure::{Anatomy, LOG_END, Structure, anatomies};

/// Cases are visited in steps of about the golden section of all, so that any number of first
/// ones is spread evenly.
fn spread(case: u64, count: u64) -> u64 {
    let mut step = (count as f64 * 0.618_033_988_749_894_9) as u64 | 1;
    while gcd(step, count) != 1 {
        step += 2;
    }
    (u128::from(case) * u128::from(step) % u128::from(count)) as u64
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// A sample and what is in its files.
struct Subject {
    sample: &'static Sample,
    anatomies: Vec<Anatomy>,
}

fn subjects() -> &'static [Subject; 2] {
    static SUBJECTS: OnceLock<[Subject; 2]> = OnceLock::new();
    SUBJECTS.get_or_init(|| {
        [End::Closed, End::Killed].map(|end| {
            let sample = sample(end);
            Subject { sample, anatomies: anatomies(sample) }
        })
    })
}

/// Every bit of every file.
pub struct Flips;

impl Flips {
    /// Which bit of which file of which sample a case flips.
    fn place(case: u64) -> Option<(&'static Subject, &'static Anatomy, u64)> {
        let mut bit = spread(case, bit_count());
        for subject in subjects() {
            for anatomy in &subject.anatomies {
                match bit.checked_sub(8 * anatomy.size) {
                    Some(rest) => bit = rest,
                    None => return Some((subject, anatomy, bit)),
                }
            }
        }
        None
    }
}

fn bit_count() -> u64 {
    let files = subjects().iter().flat_map(|subject| &subject.anatomies);
    files.map(|anatomy| 8 * anatomy.size).sum()
}

fn flip(files: &MemoryFileSystem, name: &str, bit: u64) -> EngineResult<()> {
    let file = files.open(&path_of(name), OpenMode::ReadWrite)?;
    let mut byte = [0];
    file.read_at(&mut byte, bit / 8)?;
    byte[0] ^= 1 << (bit % 8);
    file.write_at(&[IoSlice::new(&byte)], bit / 8)
}

impl Check for Flips {
    fn name(&self) -> &'static str {
        "flips"
    }

    fn about(&self) -> &'static str {
        "every bit of every file is flipped: an error names file and place, or it cannot matter"
    }

    fn cases(&self) -> Option<u64> {
        Some(bit_count())
    }

    fn goal(&self, length: Length) -> Goal {
        match length {
            Length::Short => Goal::Cases(50_000.min(bit_count())),
            Length::Long => Goal::Cases(bit_count()),
        }
    }

    fn run_case(&self, case: u64, tally: &mut Tally) -> Result<(), Finding> {
        let Some((subject, anatomy, bit)) = Flips::place(case) else { return Ok(()) };
        let structure = anatomy.at(bit / 8);
        let (name, kind) = (anatomy.name.as_str(), structure.kind);
        let found = |what: String| {
            let end = subject.sample.end;
            let place = format!("{end:?}, {name}, byte {}, bit {}", bit / 8, bit % 8);
            Finding::new(self, case, format!("{place} ({}): {what}", kind.name))
        };
        let files = subject.sample.copy();
        flip(&files, name, bit).map_err(|error| found(error.to_string()))?;
        let untouched = files.crash_clone(0, CrashKeep::Everything);
        let states = subject.sample.states();
        let outcome = attempt(&files, states).map_err(&found)?;
        tools::attempt(case, &untouched, states, &outcome, tally).map_err(&found)?;
        check_place(&outcome, &files, name, structure).map_err(&found)?;
        tally.count("bits flipped", 1);
        tally.count(kind.tried, 1);
        match outcome {
            Outcome::Detected(_) => tally.count(kind.detected, 1),
            Outcome::Harmless => tally.count(kind.harmless, 1),
        }
        Ok(())
    }
}

/// Whole files.
pub struct Files;

/// A change to a file of a sample.
struct Task {
    subject: &'static Subject,
    anatomy: &'static Anatomy,
    change: Change,
}

fn tasks() -> &'static [Task] {
    static TASKS: OnceLock<Vec<Task>> = OnceLock::new();
    TASKS.get_or_init(|| {
        let mut tasks = Vec::new();
        for subject in subjects() {
            for anatomy in &subject.anatomies {
                let changes = changes(subject.sample, &subject.anatomies, anatomy);
                tasks.extend(changes.into_iter().map(|change| Task { subject, anatomy, change }));
            }
        }
        // First what happens to whole files: the lengths to cut at are most of all.
        tasks.sort_by_key(Task::is_of_a_part);
        tasks
    })
}

/// The changes to whole files, which come first.
fn whole_count() -> u64 {
    tasks().partition_point(|task| !task.is_of_a_part()) as u64
}

impl Task {
    fn is_of_a_part(&self) -> bool {
        matches!(self.change, Change::Cut(_) | Change::ZeroPage(..))
    }

    /// Whether the database may not notice, and whether it may then have lost the end of its log.
    fn excuse(&self) -> Option<MayLose> {
        let Task { subject, anatomy, change } = self;
        let is_same =
            |other: &String| subject.sample.content(other) == subject.sample.content(&anatomy.name);
        match change {
            _ if anatomy.is_orphan() => Some(MayLose::Nothing),
            _ if matches!(anatomy.file_kind(), "LOCK" | "WITNESS" | "HEAT") => {
                Some(MayLose::Nothing)
            }
            Change::Exchanged(other) | Change::CopyOf(other) if is_same(other) => {
                Some(MayLose::Nothing)
            }
            Change::Longer(_) => {
                matches!(anatomy.file_kind(), "log" | "manifest").then_some(MayLose::Nothing)
            }
            Change::Cut(length) => self.excuse_of(|bytes| bytes.end > *length),
            Change::ZeroPage(size, number) => {
                let page = size * number..size * (number + 1);
                self.excuse_of(|bytes| bytes.start < page.end && bytes.end > page.start)
            }
            _ => None,
        }
    }

    /// The same for a change of the bytes for which `is_changed`.
    fn excuse_of(&self, is_changed: impl Fn(&std::ops::Range<u64>) -> bool) -> Option<MayLose> {
        let structures = &self.anatomy.structures;
        let mut changed = structures.iter().filter(|structure| is_changed(&structure.bytes));
        let is_harmless = |structure: &Structure| !structure.kind.why_harmless.is_empty();
        let touches = |kind| structures.iter().any(|s| is_changed(&s.bytes) && s.kind == kind);
        // Behind it nothing is left that knows how far the log was synced.
        if touches(&LOG_END) && structures.first().is_some_and(|header| !is_changed(&header.bytes))
        {
            return Some(MayLose::EndOfLog);
        }
        changed.all(is_harmless).then_some(MayLose::Nothing)
    }

    /// The files that an error may name.
    fn names(&self) -> Vec<&'static str> {
        let all = self.subject.anatomies.iter().map(|anatomy| anatomy.name.as_str());
        let is_meant = |name: &&str| match self.anatomy.file_kind() {
            "log" => name.ends_with(".wal"),
            "manifest" | "CURRENT" => name.starts_with("MANIFEST") || *name == "CURRENT",
            _ => *name == self.anatomy.name,
        };
        let mut names: Vec<_> = all.filter(is_meant).collect();
        if let Change::Exchanged(other) = &self.change {
            let known = self.subject.anatomies.iter().find(|anatomy| anatomy.name == *other);
            names.extend(known.map(|anatomy| anatomy.name.as_str()));
        }
        names
    }
}

/// What a database that notices nothing may have lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MayLose {
    /// No row.
    Nothing,
    /// The last writes, in whatever number.
    EndOfLog,
}

impl Check for Files {
    fn name(&self) -> &'static str {
        "files"
    }

    fn about(&self) -> &'static str {
        "files are cut at every length, zeroed, exchanged, removed, lengthened: as with flips"
    }

    fn cases(&self) -> Option<u64> {
        Some(tasks().len() as u64)
    }

    fn goal(&self, length: Length) -> Goal {
        match length {
            Length::Short => Goal::Cases(10_000.min(tasks().len() as u64)),
            Length::Long => Goal::Cases(tasks().len() as u64),
        }
    }

    fn run_case(&self, case: u64, tally: &mut Tally) -> Result<(), Finding> {
        let (whole, all) = (whole_count(), tasks().len() as u64);
        let index = match case.checked_sub(whole) {
            None => spread(case, whole),
            Some(case) => whole + spread(case, all - whole),
        };
        let task = &tasks()[index as usize];
        let Task { subject, anatomy, change } = task;
        let (sample, name) = (subject.sample, anatomy.name.as_str());
        let found = |what: String| {
            Finding::new(self, case, format!("{:?}, {name}, {change:?}: {what}", sample.end))
        };
        let files = sample.copy();
        change.apply(&files, name).map_err(|error| found(error.to_string()))?;
        let excuse = task.excuse();
        let states = match excuse {
            Some(MayLose::EndOfLog) => &sample.history[..],
            _ => sample.states(),
        };
        let untouched = files.crash_clone(0, CrashKeep::Everything);
        let outcome = attempt(&files, states).map_err(&found)?;
        tools::attempt(case, &untouched, states, &outcome, tally).map_err(&found)?;
        let [tried, detected, harmless] = change.counters();
        tally.count("files changed", 1);
        tally.count(tried, 1);
        match outcome {
            Outcome::Detected(error) => {
                check_error(&error, &task.names(), None).map_err(&found)?;
                tally.count(detected, 1);
            }
            Outcome::Harmless if excuse.is_some() => tally.count(harmless, 1),
            Outcome::Harmless => return Err(found("nothing noticed it".to_string())),
        }
        Ok(())
    }
}
