//! What the rows of a file with columns say, one after the other: for whoever stores them, not for whoever
//! measures how they would be laid out.

use std::fs::File;
use std::io::BufReader;
use std::ops::Range;
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_ipc::reader::FileReader;
use arrow_json::WriterBuilder;
use arrow_json::writer::LineDelimited;
use arrow_schema::{ArrowError, DataType, SchemaRef};
use serde_json::value::RawValue;

use super::{Kind, guarded, parquet, wrong};
use crate::error::{AdviseError, Result};

type Batches = Box<dyn Iterator<Item = std::result::Result<RecordBatch, ArrowError>>>;

/// Keys and values out of a Parquet or Arrow file.
///
/// A key is a column, a value another one or the whole row as a JSON object. Text and bytes are taken as
/// they are; numbers, times and what else is no list or structure as JSON writes them.
pub struct ColumnarContent {
    path: PathBuf,
    kind: Kind,
    batches: Batches,
    key: usize,
    value: Option<usize>,
    batch: Option<Batch>,
    rows: u64,
    rows_in_all: u64,
}

/// Why there is no next row.
#[derive(Debug)]
pub enum ContentError {
    /// The row of this number, from 1 on, has no key or value, or none that is text.
    Row(u64, String),
    /// The file is damaged, or cannot be read.
    File(AdviseError),
}

impl From<AdviseError> for ContentError {
    fn from(error: AdviseError) -> Self {
        ContentError::File(error)
    }
}

impl ColumnarContent {
    /// Opens a file; nothing if it is of another kind. Without `key` the columns are `key` and `value`.
    ///
    /// # Errors
    /// It cannot be read, is damaged, or has no such column.
    pub fn open(path: &Path, key: Option<&str>, value: Option<&str>) -> Result<Option<Self>> {
        let Some(kind) = Kind::of(&super::super::head(path)?) else { return Ok(None) };
        let (schema, groups) = kind.inspect(path)?;
        let (key, value) = match key {
            Some(key) => (key, value),
            None => ("key", Some("value")),
        };
        let key = column(path, &schema, key)?;
        let value = value.map(|name| column(path, &schema, name)).transpose()?;
        let batches = guarded(|| kind.batches(path)).unwrap_or_else(|| Err(kind.gave_up(path)))?;
        let rows_in_all = groups.iter().sum();
        let path = path.to_path_buf();
        Ok(Some(ColumnarContent {
            path,
            kind,
            batches,
            key,
            value,
            batch: None,
            rows: 0,
            rows_in_all,
        }))
    }

    /// Puts the next row into `key` and `value`; false at the end.
    ///
    /// # Errors
    /// The file is damaged, or the row has no key or value.
    pub fn next(
        &mut self,
        key: &mut Vec<u8>,
        value: &mut Vec<u8>,
    ) -> std::result::Result<bool, ContentError> {
        while self.batch.as_ref().is_none_or(Batch::is_over) {
            let batches = &mut self.batches;
            let next = guarded(|| batches.next()).ok_or_else(|| self.kind.gave_up(&self.path))?;
            let Some(batch) = next else { return Ok(false) };
            let batch = batch.map_err(|error| wrong(&self.path, error))?;
            let made = guarded(|| Batch::new(&batch, self.key, self.value));
            let made = made.ok_or_else(|| self.kind.gave_up(&self.path))?;
            self.batch = Some(made.map_err(|what| wrong(&self.path, what))?);
        }
        self.rows += 1;
        let Some(batch) = &mut self.batch else { return Ok(false) };
        batch.take(key, value).map_err(|what| ContentError::Row(self.rows, what))?;
        Ok(true)
    }

    /// Rows read so far, and rows in all.
    pub fn progress(&self) -> (u64, u64) {
        (self.rows, self.rows_in_all)
    }
}

impl Kind {
    fn batches(self, path: &Path) -> Result<Batches> {
        Ok(match self {
            Kind::Parquet => {
                let reader = parquet::open(path)?.build().map_err(|error| wrong(path, error))?;
                Box::new(reader)
            }
            Kind::Arrow => {
                let file = File::open(path).map_err(|error| AdviseError::of_file(path, &error))?;
                let reader = FileReader::try_new(BufReader::new(file), None);
                Box::new(reader.map_err(|error| wrong(path, error))?)
            }
        })
    }
}

fn column(path: &Path, schema: &SchemaRef, name: &str) -> Result<usize> {
    schema.index_of(name).map_err(|_| {
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let (path, names) = (path.display(), names.join(", "));
        AdviseError::usage(format_args!("no column {name}; choose with --key: {names}: {path}"))
    })
}

/// Some rows of a file.
struct Batch {
    key: Contents,
    value: Contents,
    row: usize,
    rows: usize,
}

impl Batch {
    fn new(
        batch: &RecordBatch,
        key: usize,
        value: Option<usize>,
    ) -> std::result::Result<Batch, String> {
        let value = match value {
            Some(column) => Contents::of_column(batch, column)?,
            None => Contents::Rows(Lines::of(batch)?),
        };
        let (row, rows) = (0, batch.num_rows());
        Ok(Batch { key: Contents::of_column(batch, key)?, value, row, rows })
    }

    fn is_over(&self) -> bool {
        self.row == self.rows
    }

    fn take(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> std::result::Result<(), String> {
        let row = self.row;
        self.row += 1;
        key.clear();
        value.clear();
        self.key.append(row, key)?;
        self.value.append(row, value)
    }
}

/// What keys or values are made of.
enum Contents {
    /// Text or bytes.
    Bytes(String, ArrayRef),
    /// A column of another type, as objects with this column alone.
    Json(String, Lines),
    /// Whole rows.
    Rows(Lines),
}

impl Contents {
    fn of_column(batch: &RecordBatch, column: usize) -> std::result::Result<Contents, String> {
        let array = batch.column(column);
        let name = batch.schema_ref().field(column).name().clone();
        Ok(match array.data_type() {
            DataType::Utf8
            | DataType::Binary
            | DataType::LargeUtf8
            | DataType::LargeBinary
            | DataType::Utf8View
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_) => Contents::Bytes(name, array.clone()),
            _ => {
                let alone = batch.project(&[column]).map_err(|error| error.to_string())?;
                Contents::Json(name, Lines::of(&alone)?)
            }
        })
    }

    fn append(&self, row: usize, bytes: &mut Vec<u8>) -> std::result::Result<(), String> {
        match self {
            Contents::Bytes(name, array) => {
                let found = bytes_of(array, row);
                bytes.extend_from_slice(found.ok_or_else(|| format!("column {name} is null"))?);
            }
            Contents::Json(name, lines) => append_scalar(name, lines.line(row), bytes)?,
            Contents::Rows(lines) => bytes.extend_from_slice(lines.line(row)),
        }
        Ok(())
    }
}

fn bytes_of(array: &ArrayRef, row: usize) -> Option<&[u8]> {
    if array.is_null(row) {
        return None;
    }
    Some(match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().value(row).as_bytes(),
        DataType::LargeUtf8 => array.as_string::<i64>().value(row).as_bytes(),
        DataType::Utf8View => array.as_string_view().value(row).as_bytes(),
        DataType::Binary => array.as_binary::<i32>().value(row),
        DataType::LargeBinary => array.as_binary::<i64>().value(row),
        DataType::BinaryView => array.as_binary_view().value(row),
        DataType::FixedSizeBinary(_) => array.as_fixed_size_binary().value(row),
        _ => return None,
    })
}

/// Appends the one field of an object: text without its quotes, else what stands there.
fn append_scalar(name: &str, line: &[u8], bytes: &mut Vec<u8>) -> std::result::Result<(), String> {
    let object: std::collections::BTreeMap<&str, &RawValue>;
    let owned: std::collections::BTreeMap<String, &RawValue>;
    let raw = match serde_json::from_slice(line) {
        Ok(found) => {
            object = found;
            object.values().next().copied()
        }
        // A name with escapes cannot be borrowed.
        Err(_) => {
            owned = serde_json::from_slice(line).map_err(|error| error.to_string())?;
            owned.values().next().copied()
        }
    };
    let raw = raw.map_or("null", RawValue::get);
    match raw.as_bytes().first() {
        Some(b'"') => {
            let text: String = serde_json::from_str(raw).map_err(|error| error.to_string())?;
            bytes.extend_from_slice(text.as_bytes());
        }
        Some(b'{' | b'[') => {
            return Err(format!("column {name} is a list or structure; leave --value out"));
        }
        _ if raw == "null" => return Err(format!("column {name} is null")),
        _ => bytes.extend_from_slice(raw.as_bytes()),
    }
    Ok(())
}

/// A JSON object for each row.
struct Lines {
    text: Vec<u8>,
    places: Vec<Range<usize>>,
}

impl Lines {
    fn of(batch: &RecordBatch) -> std::result::Result<Lines, String> {
        let builder = WriterBuilder::new().with_explicit_nulls(true);
        let mut writer = builder.build::<_, LineDelimited>(Vec::new());
        let written = writer.write(batch).and_then(|()| writer.finish());
        written.map_err(|error| error.to_string())?;
        let text = writer.into_inner();
        let mut places = Vec::with_capacity(batch.num_rows());
        let mut start = 0;
        // Text in JSON has no line ends of its own.
        for (end, _) in text.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
            places.push(start..end);
            start = end + 1;
        }
        if places.len() != batch.num_rows() {
            return Err("its rows could not be written as JSON".to_owned());
        }
        Ok(Lines { text, places })
    }

    fn line(&self, row: usize) -> &[u8] {
        &self.text[self.places[row].clone()]
    }
}
