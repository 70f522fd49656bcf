//! What a kind of run has to say of itself: one implementation of [`Kind`] in its room, and one row
//! in [`KINDS`](crate::records::kinds::KINDS).
//!
//! There is one way from a TOML file to a report, and nothing on it matches on a kind:
//!
//! ```text
//! file ─► AnyExperiment ─► row of its workload ─► Declared::expand ─► Plan ─► Planned (a PlannedRun)
//! cells of the plan ─► PlanRunner: a process per cell, with a Job ─► Kind::measure in it ─► Outcome
//! plan and outcomes ─► Kind::record ─► Record ─► Kind::report, files, results, fault
//! ```
//!
//! - A kind with experiment files implements [`Declared`] too. One with a command of its own makes its
//!   plan there, and is a [`planned::Planned`] from then on.
//! - A cell says what it needs of its surroundings: file system, memory, device, allocator
//!   ([`Cell`](crate::run::cells::Cell)). The loop provides them.
//! - A record names its kind and the version of its JSON at its top ([`RecordHead`]), and so does the plan
//!   in the directory of a run. A job names its kind, so that one measuring process serves all.

pub mod choice;
pub mod command;
pub(crate) mod incomplete;
pub mod planned;

use std::path::Path;

use std::borrow::Cow;

use lithify_report::{Report, page, text};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::comparison::results::ResultSet;
use crate::experiment::{AnyExperiment, WorkloadKind};
use crate::run::RunError;
use crate::run::cells::{Entries, RunPlan, kept_entries};
use crate::run::progress::Listener;
use crate::run::store::{Headed, ReportFile};
use choice::{Choice, ChoiceError};
use command::Line;

pub use crate::run::store::RecordHead;

/// The cells of a kind.
pub type CellOf<K> = <<K as Kind>::Plan as RunPlan>::Cell;

/// A kind of run.
pub trait Kind: 'static {
    /// Its name, in jobs and in records.
    const NAME: &'static str;
    /// Version of the JSON of its records.
    const SCHEMA: u32;
    /// What a run measures.
    type Plan: RunPlan;
    /// A run with its results.
    type Record: Clone + Serialize + DeserializeOwned + 'static;
    /// What a measuring process is told: a [`Job`](crate::run::cells::Job) of a cell.
    type Job: DeserializeOwned;

    /// Does a job in this process and leaves its result.
    ///
    /// # Errors
    /// The engine's, or the result cannot be written.
    fn measure(job: &Self::Job, listener: Listener<'_>) -> Result<(), RunError>;

    /// A run with what became of its cells.
    ///
    /// # Errors
    /// A cell failed without which there is no record.
    fn record(plan: Self::Plan, entries: Entries<CellOf<Self>>) -> Result<Self::Record, RunError>;

    /// Why a run is not whole, in one line; `None` when every cell was measured and counts.
    fn fault(record: &Self::Record) -> Option<String>;

    /// When the first of its measurements began, seconds since 1970; `None` where that was not kept
    /// or nothing was measured.
    fn started_unix_s(record: &Self::Record) -> Option<u64>;

    /// The figures, one line per cell and phase or test; nothing for kinds that have no such lines.
    fn csv(record: &Self::Record) -> Option<String>;

    /// The report: an answer, a table, sections. Whatever shows a run renders this.
    fn report(record: &Self::Record) -> Report;

    /// Its figures, to be set beside those of another run.
    fn results(record: &Self::Record) -> ResultSet;

    /// The command that measures the same; nothing where the record does not tell.
    fn command(record: &Self::Record) -> Option<Line>;

    /// A record as JSON on one line, with its head.
    ///
    /// # Errors
    /// It is none.
    fn json(record: &Self::Record) -> Result<String, RunError>
    where
        Self: Sized,
    {
        json::<Self>(record)
    }

    /// The name of a run's files.
    fn name(record: &Self::Record) -> String;

    /// What is kept of a record beside its report; all of it, unless the kind says otherwise.
    fn kept(record: &Self::Record) -> Cow<'_, Self::Record> {
        Cow::Borrowed(record)
    }

    /// Files beside those of every kind.
    fn more_files(_record: &Self::Record) -> Vec<ReportFile> {
        Vec::new()
    }

    /// The files of the report: text, figures for programs, the record, the page.
    ///
    /// # Errors
    /// The record is no JSON.
    fn files(record: &Self::Record) -> Result<Vec<ReportFile>, RunError>
    where
        Self: Sized,
    {
        let (name, mut report) = (Self::name(record), Self::report(record));
        let file = |ending: &str, text: String| (format!("{name}.{ending}"), text);
        let mut figures: Vec<ReportFile> =
            Self::csv(record).map(|text| file("csv", text)).into_iter().collect();
        figures.extend(Self::more_files(record));
        figures.push(file("json", json::<Self>(&Self::kept(record))?));
        let names: Vec<&str> = figures.iter().map(|(name, _)| &**name).collect();
        let footer = format!("All figures: {}. {}", names.join(", "), report.footer);
        report.footer = footer.trim_end().to_owned();
        let text = [file("txt", whole_text(&report))].into_iter();
        Ok(text.chain(figures).chain([file("html", page::render(&report))]).collect())
    }
}

/// Columns of a report in a file.
const FILE_COLUMNS: usize = 100;

/// All of a report as text, as wide as it is in a pipe.
pub fn whole_text(report: &Report) -> String {
    text::render(report, text::Options { width: FILE_COLUMNS, full: true, color: false })
}

/// A kind of run that experiment files declare.
pub trait Declared: Kind {
    /// The workload that its files name.
    const WORKLOAD: WorkloadKind;
    /// What of [`Choice`] only some kinds take, and this one does: flags of the command line.
    const FLAGS: &'static [&'static str];
    /// What its files say.
    type Experiment;

    /// The experiment, when it is of this kind.
    fn experiment(any: &AnyExperiment) -> Option<&Self::Experiment>;

    /// The cells of an experiment. `build` identifies the program that will measure.
    ///
    /// # Errors
    /// A choice that the experiment does not offer, no engine or data left.
    fn expand(
        experiment: &Self::Experiment,
        choice: &Choice,
        build: &str,
    ) -> Result<Expanded<Self::Plan>, ChoiceError>;
}

/// A plan with what was left out of it.
#[derive(Clone, Debug)]
pub struct Expanded<P> {
    /// What is measured.
    pub plan: P,
    /// What is not and why, line by line.
    pub skipped: Vec<String>,
}

/// The head of the records and plans of a kind.
pub fn head<K: Kind + ?Sized>() -> RecordHead {
    RecordHead { kind: K::NAME.to_owned(), schema: K::SCHEMA }
}

/// What the directory of a run keeps, by the text of its plan.
///
/// # Errors
/// A text that is no plan of this kind, results of which nothing can be told.
pub(crate) fn read_directory<K: Kind>(
    directory: &Path,
    plan: &str,
) -> serde_json::Result<Result<K::Record, RunError>> {
    let plan: K::Plan = serde_json::from_str(plan)?;
    let entries = kept_entries(directory, &plan);
    Ok(K::record(plan, entries))
}

/// A record as JSON on one line, with its head.
///
/// # Errors
/// It is none.
pub fn json<K: Kind>(record: &K::Record) -> Result<String, RunError> {
    let line = serde_json::to_string(&Headed { record: &head::<K>(), rest: record });
    let line = line.map_err(|error| RunError::new(format!("the record as JSON: {error}")))?;
    Ok(format!("{line}\n"))
}

/// The whole report in lines that no table breaks, for tests.
#[cfg(test)]
pub(crate) fn wide_text<K: Kind>(record: &K::Record) -> String {
    let options = text::Options { width: 1000, full: true, color: false };
    text::render(&K::report(record), options)
}
