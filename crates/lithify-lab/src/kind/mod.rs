//! What a kind of run has to say of itself: one implementation of [`Kind`] in its room, and one row
//! in [`KINDS`](crate::records::kinds::KINDS).
//!
//! A record names its kind and the version of its JSON at its top ([`RecordHead`]); a job names its
//! kind too, so that one measuring process serves all.

pub mod command;

use std::borrow::Cow;

use lithify_report::{Report, page, text};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::comparison::results::ResultSet;
use crate::run::RunError;
use crate::run::progress::Listener;
use crate::run::store::ReportFile;
use command::Line;

/// A kind of run.
pub trait Kind {
    /// Its name, in jobs and in records.
    const NAME: &'static str;
    /// Version of the JSON of its records.
    const SCHEMA: u32;
    /// A run with its results.
    type Record: Clone + Serialize + DeserializeOwned;
    /// What a measuring process is told; [`NoJob`] where there is none.
    type Job: DeserializeOwned;

    /// Does a job in this process and leaves its result.
    ///
    /// # Errors
    /// The engine's, or the result cannot be written.
    fn measure(job: &Self::Job, listener: Listener<'_>) -> Result<(), RunError>;

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
        let (name, report) = (Self::name(record), Self::report(record));
        let file = |ending: &str, text: String| (format!("{name}.{ending}"), text);
        let mut files = vec![file("txt", whole_text(&report))];
        files.extend(Self::csv(record).map(|text| file("csv", text)));
        files.extend(Self::more_files(record));
        files.push(file("json", json::<Self>(&Self::kept(record))?));
        files.push(file("html", page::render(&report)));
        Ok(files)
    }
}

/// Columns of a report in a file.
const FILE_COLUMNS: usize = 120;

/// All of a report as text, as wide as a file may be.
pub fn whole_text(report: &Report) -> String {
    text::render(report, text::Options { width: FILE_COLUMNS, full: true, color: false })
}

/// The job of a kind that measures in the process of its command.
#[derive(Debug, Deserialize)]
pub enum NoJob {}

/// What stands at the top of a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordHead {
    /// [`Kind::NAME`].
    pub kind: String,
    /// [`Kind::SCHEMA`].
    pub schema: u32,
}

/// A record with its head.
#[derive(Serialize)]
struct Headed<'a, R> {
    record: RecordHead,
    #[serde(flatten)]
    rest: &'a R,
}

/// A record as JSON on one line, with its head.
///
/// # Errors
/// It is none.
pub fn json<K: Kind>(record: &K::Record) -> Result<String, RunError> {
    let head = RecordHead { kind: K::NAME.to_owned(), schema: K::SCHEMA };
    let line = serde_json::to_string(&Headed { record: head, rest: record });
    let line = line.map_err(|error| RunError::new(format!("the record as JSON: {error}")))?;
    Ok(format!("{line}\n"))
}

/// The whole report in lines that no table breaks, for tests.
#[cfg(test)]
pub(crate) fn wide_text<K: Kind>(record: &K::Record) -> String {
    let options = text::Options { width: 1000, full: true, color: false };
    text::render(&K::report(record), options)
}
