//! Rows of real data sets, in memory.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::adapter::table::schema::{Row, Value};
use crate::datasets::{DataError, TableData, TextData};

/// Where rows come from: the lines of a text, or the numbers of a table as eight bytes each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum DataSet {
    /// A row is a line.
    Lines(TextData),
    /// A row is its columns.
    Numbers(TableData),
}

impl From<String> for DataSet {
    fn from(text: String) -> DataSet {
        match text.parse() {
            Ok(table) if table != TableData::WikiEdits => DataSet::Numbers(table),
            _ => DataSet::Lines(TextData::from(text)),
        }
    }
}

impl From<DataSet> for String {
    fn from(data: DataSet) -> String {
        data.to_string()
    }
}

impl FromStr for DataSet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "" => {
                Err("a name is missing; names of data sets or files, separated by commas"
                    .to_owned())
            }
            name => Ok(DataSet::from(name.to_owned())),
        }
    }
}

impl fmt::Display for DataSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DataSet::Lines(text) => text.fmt(f),
            DataSet::Numbers(table) => table.fmt(f),
        }
    }
}

const SEED: u64 = 301;

impl DataSet {
    /// Whether it is here; otherwise a line that says how to get it.
    ///
    /// # Errors
    /// It was not fetched, or there is no such file.
    pub fn available(&self) -> Result<(), DataError> {
        match self {
            DataSet::Lines(text) => text.available_bytes(u64::MAX).map(|_| ()),
            DataSet::Numbers(table) => table.available(),
        }
    }

    /// Its rows, up to so many bytes of them.
    ///
    /// # Errors
    /// It was not fetched, or cannot be read.
    pub fn rows(&self, bytes: u64) -> Result<Vec<Vec<u8>>, DataError> {
        let mut rows = Vec::new();
        match self {
            DataSet::Lines(text) => {
                let mut lines = text.open(bytes, SEED)?;
                let mut line = Vec::new();
                let mut next = |line: &mut Vec<u8>| {
                    lines.next(line).map_err(|error| DataError(format!("{self}: {error}")))
                };
                while next(&mut line)? {
                    rows.push(line.clone());
                }
            }
            DataSet::Numbers(table) => {
                let table = table.open(u64::MAX >> 1, SEED)?;
                let (mut row, mut taken) = (Row::new(), 0);
                for index in 0..table.rows() {
                    table.row(index, &mut row);
                    let value = encoded(&row);
                    taken += value.len() as u64;
                    rows.push(value);
                    if taken >= bytes {
                        break;
                    }
                }
            }
        }
        Ok(rows)
    }
}

fn encoded(row: &Row) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(row.len() * 8);
    for value in row {
        match value {
            Value::Text(text) => bytes.extend_from_slice(text),
            Value::Float(number) => bytes.extend_from_slice(&number.to_le_bytes()),
            Value::Whole(number) => bytes.extend_from_slice(&number.to_le_bytes()),
        }
    }
    bytes
}

/// The key of a row: its number, scattered.
pub fn key(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}
