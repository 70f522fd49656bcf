//! Every kind of run there is: a row for each, and what all records are asked alike.

#[cfg(test)]
mod tests;

use serde::Deserialize;

use super::AnyRecord;
use crate::amplification::kind::Amplification;
use crate::chunks::kind::Chunks;
use crate::comparison::results::ResultSet;
use crate::dbbench::kind::DbBench;
use crate::durability::kind::Durability;
use crate::kind::Kind;
use crate::linkbench::kind::LinkBench;
use crate::loop_experiment::kind::LoopExperiments;
use crate::loop_experiment::{compared, digest_page};
use crate::overwrite::kind::Overwrites;
use crate::page_store::kind::Pages;
use crate::run::RunError;
use crate::run::progress::Listener;
use crate::tables::kind::Tables;
use lithify_report::Report;

/// A kind of run as a row.
pub struct Row {
    /// [`Kind::NAME`].
    pub name: &'static str,
    /// [`Kind::SCHEMA`].
    pub schema: u32,
    /// Reads a record of this kind.
    pub(super) read: fn(&str) -> serde_json::Result<AnyRecord>,
    /// Reads a job of this kind and does it.
    measure: fn(&str, Listener<'_>) -> serde_json::Result<Result<(), RunError>>,
}

/// All kinds.
pub const KINDS: [Row; 9] = [
    row::<LinkBench>(|text| Ok(AnyRecord::LinkBench(serde_json::from_str(text)?))),
    row::<LoopExperiments>(|text| Ok(AnyRecord::Loops(serde_json::from_str(text)?))),
    row::<DbBench>(|text| Ok(AnyRecord::Db(serde_json::from_str(text)?))),
    row::<Overwrites>(|text| Ok(AnyRecord::Overwrite(serde_json::from_str(text)?))),
    row::<Tables>(|text| Ok(AnyRecord::Tables(serde_json::from_str(text)?))),
    row::<Chunks>(|text| Ok(AnyRecord::Chunks(serde_json::from_str(text)?))),
    row::<Amplification>(|text| Ok(AnyRecord::Amplification(serde_json::from_str(text)?))),
    row::<Durability>(|text| Ok(AnyRecord::Durability(serde_json::from_str(text)?))),
    row::<Pages>(|text| Ok(AnyRecord::Pages(serde_json::from_str(text)?))),
];

const fn row<K: Kind>(read: fn(&str) -> serde_json::Result<AnyRecord>) -> Row {
    Row { name: K::NAME, schema: K::SCHEMA, read, measure: measure_job::<K> }
}

fn measure_job<K: Kind>(
    text: &str,
    listener: Listener<'_>,
) -> serde_json::Result<Result<(), RunError>> {
    let job: K::Job = serde_json::from_str(text)?;
    Ok(K::measure(&job, listener))
}

/// The row of a kind.
pub fn find(name: &str) -> Option<Row> {
    KINDS.into_iter().find(|row| row.name == name)
}

/// Does a job, which names its kind.
///
/// # Errors
/// A text that is no job; then what went wrong with it.
pub fn measure(text: &str, listener: Listener<'_>) -> Result<Result<(), RunError>, String> {
    /// What every job says.
    #[derive(Deserialize)]
    struct Head {
        kind: String,
    }
    let head: Head = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let row = find(&head.kind).ok_or_else(|| format!("there is no kind \"{}\"", head.kind))?;
    (row.measure)(text, listener).map_err(|error| error.to_string())
}

/// Asks the kind of a record; of figures without their record, `$digest`.
macro_rules! of_kind {
    ($record:expr, $call:ident, $digest:expr) => {
        match $record {
            AnyRecord::LinkBench(record) => Some(LinkBench::$call(record)),
            AnyRecord::Loops(record) => Some(LoopExperiments::$call(record)),
            AnyRecord::Db(record) => Some(DbBench::$call(record)),
            AnyRecord::Overwrite(record) => Some(Overwrites::$call(record)),
            AnyRecord::Tables(run) => Some(Tables::$call(run)),
            AnyRecord::Chunks(run) => Some(Chunks::$call(run)),
            AnyRecord::Amplification(record) => Some(Amplification::$call(record)),
            AnyRecord::Durability(record) => Some(Durability::$call(record)),
            AnyRecord::Pages(record) => Some(Pages::$call(record)),
            AnyRecord::Digest(digest) => $digest(digest),
        }
    };
}

/// When the first of its measurements began, seconds since 1970; `None` where that was not kept or
/// nothing was measured.
pub fn started_unix_s(record: &AnyRecord) -> Option<u64> {
    of_kind!(record, started_unix_s, |_| None).flatten()
}

/// The figures, one line per cell and phase or test; nothing for kinds that have no such lines.
pub fn csv(record: &AnyRecord) -> Option<String> {
    of_kind!(record, csv, |_| None).flatten()
}

/// The figures of a run, to be set beside those of another.
pub fn results(record: &AnyRecord) -> ResultSet {
    of_kind!(record, results, |digest| Some(compared::of_digest(digest))).unwrap_or_default()
}

/// The command that measures the same; nothing for figures that were kept without the rest of their
/// record.
pub fn command(record: &AnyRecord) -> Option<String> {
    of_kind!(record, command, |_| None).flatten().map(|line| line.0)
}

/// The report of a run of any kind.
pub fn report(record: &AnyRecord) -> Report {
    of_kind!(record, report, |digest| Some(digest_page::report(digest))).unwrap_or_default()
}

/// The page of a run of any kind.
pub fn page(record: &AnyRecord) -> String {
    lithify_report::page::render(&report(record))
}

/// A record as JSON, with its kind and schema at the top.
///
/// # Errors
/// It is none; figures without their record cannot be written again.
pub fn json(record: &AnyRecord) -> Result<String, RunError> {
    let refused = "figures without the rest of their record are kept as they are";
    of_kind!(record, json, |_| None).unwrap_or_else(|| Err(RunError::new(refused)))
}
