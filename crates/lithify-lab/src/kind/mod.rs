//! What a kind of run has to say of itself: one implementation of [`Kind`] in its room, and one row
//! in [`KINDS`](crate::records::kinds::KINDS).
//!
//! A record names its kind and the version of its JSON at its top ([`RecordHead`]); a job names its
//! kind too, so that one measuring process serves all.

pub mod command;

use lithify_report::Report;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::comparison::results::ResultSet;
use crate::html::model::ReportModel;
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
    type Record: Serialize + DeserializeOwned;
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

    /// The report for people.
    fn text(record: &Self::Record) -> String;

    /// The figures, one line per cell and phase or test; nothing for kinds that have no such lines.
    fn csv(record: &Self::Record) -> Option<String>;

    /// What its page says.
    fn model(record: &Self::Record) -> ReportModel;

    /// The report: an answer, a table, sections.
    fn report(record: &Self::Record) -> Report {
        Self::model(record).into()
    }

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

    /// The files of the report.
    ///
    /// # Errors
    /// The record is no JSON.
    fn files(record: &Self::Record) -> Result<Vec<ReportFile>, RunError>;
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
