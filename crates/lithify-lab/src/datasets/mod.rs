//! Data for workloads over tables and text: generated, fetched, or the user's own.
//!
//! Owns: the shapes of tables (as [`Schema`]), the generators of their rows (`page_counts`, `wide`)
//! and of text (`actors`), real data out of published packages ([`packages`]) and as rows
//! (`recorded`), and all of them by name ([`TableData`], [`TextData`]).
//!
//! Promises: generated data are a function of seed and size, in memory that does not grow with
//! the size; any row can be had by its number. Rows come in the order of their primary keys, which
//! are different. A real data set is held in memory as a whole, at most a few dozen megabytes.
//!
//! Threads: tables may be read from any; lines of text belong to who reads them. Does not store
//! rows, and downloads nothing unless [`packages::fetch`] is called.

mod actors;
pub mod packages;
mod page_counts;
mod recorded;
mod text;
mod wide;
mod words;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use page_counts::PageCounts;
pub use text::{Lines, TextData};
pub use wide::Wide;

use crate::adapter::table::schema::{Aggregation, Answer, Query, Row, Schema, Value};

/// Why data cannot be had. One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataError(pub String);

impl DataError {
    fn of(what: impl fmt::Display, error: impl fmt::Display) -> DataError {
        DataError(format!("{what}: {error}"))
    }
}

impl fmt::Display for DataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DataError {}

/// The rows of a table, and what is asked of them.
pub trait Table: Send + Sync {
    /// Columns and keys.
    fn schema(&self) -> &Schema;

    /// How many rows there are.
    fn rows(&self) -> u64;

    /// Writes the row of a number below [`Table::rows`] into `row`, whose memory is reused.
    fn row(&self, index: u64, row: &mut Row);

    /// The large aggregate over a range of rows.
    fn query(&self) -> Query;

    /// The column of whole numbers that updates add to: in no key, and summed up by no maximum
    /// that a small change could push over its limit.
    fn updated_column(&self) -> usize;
}

/// What a query over all rows of a table must answer.
pub fn answer(table: &dyn Table, query: &Query) -> Answer {
    let mut sum = Aggregation::new(query);
    let mut row = Row::new();
    for index in 0..table.rows() {
        table.row(index, &mut row);
        sum.add(|column| row.get(column).map(Value::whole));
    }
    sum.finish()
}

/// Rewrites a value as text, and keeps the memory of the one before.
fn set_text(value: &mut Value, write: impl FnOnce(&mut Vec<u8>)) {
    let mut text = match std::mem::replace(value, Value::Whole(0)) {
        Value::Text(text) => text,
        _ => Vec::new(),
    };
    text.clear();
    write(&mut text);
    *value = Value::Text(text);
}

/// Tables by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TableData {
    /// Generated page counts of an encyclopedia.
    PageCounts,
    /// Generated figures of a monitor: 134 columns.
    Wide,
    /// A day of edits of an encyclopedia, as page counts.
    WikiEdits,
    /// Loads of an electric grid: 192 numbers a row that hardly compress.
    GridLoad,
    /// Power plants of an electric grid: 320 numbers a row, most of them zero.
    GridPlants,
}

impl TableData {
    /// All of them.
    pub const ALL: [TableData; 5] = [
        TableData::PageCounts,
        TableData::Wide,
        TableData::WikiEdits,
        TableData::GridLoad,
        TableData::GridPlants,
    ];

    /// Its name in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            TableData::PageCounts => "page-counts",
            TableData::Wide => "wide",
            TableData::WikiEdits => "wiki-edits",
            TableData::GridLoad => "grid-load",
            TableData::GridPlants => "grid-plants",
        }
    }

    /// Whether its rows are wide: hundreds of numbers each.
    pub fn is_wide(self) -> bool {
        !matches!(self, TableData::PageCounts | TableData::WikiEdits)
    }

    /// The package that it is fetched from; `None` when it is generated.
    pub fn package(self) -> Option<&'static packages::Package> {
        match self {
            TableData::PageCounts | TableData::Wide => None,
            real => packages::find(real.name()),
        }
    }

    /// Whether it can be opened here; otherwise one line that says how to get it.
    ///
    /// # Errors
    /// It was not fetched.
    pub fn available(self) -> Result<(), DataError> {
        self.package().map_or(Ok(()), |package| package.path().map(|_| ()))
    }

    /// Opens it with so many rows; real data have at most as many as were recorded.
    ///
    /// # Errors
    /// It was not fetched, or cannot be read.
    pub fn open(self, rows: u64, seed: u64) -> Result<Box<dyn Table>, DataError> {
        let recorded =
            |read: fn(&std::path::Path, u64) -> Result<recorded::Recorded, DataError>| {
                let package = packages::find(self.name())
                    .ok_or_else(|| DataError(format!("there is no package of {}", self.name())))?;
                Ok(Box::new(read(&package.path()?, rows)?) as Box<dyn Table>)
            };
        match self {
            TableData::PageCounts => Ok(Box::new(PageCounts::new(rows, seed))),
            TableData::Wide => Ok(Box::new(Wide::new(rows, seed))),
            TableData::WikiEdits => recorded(recorded::wiki_edits),
            TableData::GridLoad | TableData::GridPlants => recorded(recorded::grid),
        }
    }
}

impl FromStr for TableData {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = TableData::ALL.into_iter().find(|table| table.name() == text.trim());
        found.ok_or_else(|| {
            let names = TableData::ALL.map(TableData::name).join(", ");
            format!("there is no table of that name; there are: {names}")
        })
    }
}

impl fmt::Display for TableData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests;
