//! Figures of a run that were kept without the rest of its record: the lines of its CSV as JSON,
//! with the machine. Small enough for a repository; time series and levels are not in it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::meter::machine::Machine;

/// One line: what was measured, and its figures, by the names of the CSV's columns.
pub type Row = BTreeMap<String, Value>;

/// The figures of a run.
#[derive(Clone, Debug, Deserialize)]
pub struct Digest {
    /// Name of the file; not in it.
    #[serde(skip)]
    pub name: String,
    /// Where the figures are from.
    pub about: String,
    /// On which machine.
    pub machine: Machine,
    /// A row for each run and step or test.
    #[serde(alias = "tests")]
    pub runs: Vec<Row>,
    /// A row for each run, test and level; empty where jobs were not kept.
    #[serde(default)]
    pub jobs: Vec<Row>,
}

/// The text in a column; empty where there is none.
pub fn text<'a>(row: &'a Row, column: &str) -> &'a str {
    row.get(column).and_then(Value::as_str).unwrap_or_default()
}

/// The number in a column, if there is one.
pub fn number(row: &Row, column: &str) -> Option<f64> {
    row.get(column).and_then(Value::as_f64)
}

/// What was measured: engine, and codecs or arm.
pub fn subject(row: &Row) -> String {
    let parts = [text(row, "engine"), text(row, "codecs"), text(row, "arm")];
    parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join(" ")
}

/// The step with its number, or the test.
pub fn test(row: &Row) -> String {
    match (number(row, "step"), text(row, "benchmark")) {
        (Some(step), name) => format!("{step}. {name}"),
        (None, _) => text(row, "test").to_owned(),
    }
}
