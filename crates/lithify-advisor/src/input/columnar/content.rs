//! What the rows of a file with columns say, one after the other: for whoever stores them, not for whoever
//! measures how they would be laid out.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;
use std::ops::Range;
use std::path::{Path, PathBuf};

use ::parquet::arrow::ProjectionMask;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_ipc::reader::FileReader;
use arrow_json::WriterBuilder;
use arrow_json::writer::LineDelimited;
use arrow_schema::{ArrowError, DataType, Field, SchemaRef};
use serde_json::value::RawValue;

use super::{Kind, guarded, parquet, wrong};
use crate::error::{AdviseError, Result};
use crate::input::listed;

type Batches = Box<dyn Iterator<Item = std::result::Result<RecordBatch, ArrowError>>>;

/// Keys and values out of a Parquet or Arrow file.
///
/// A key is a column, a value another one or the whole row as a JSON object. Text and bytes are taken as
/// they are; numbers, times and what else is no list or structure as JSON writes them. In whole rows bytes
/// are hexadecimal digits, and numbers that are none or infinite are null.
pub struct ColumnarContent {
    path: PathBuf,
    kind: Kind,
    batches: Batches,
    /// Among the columns that are read.
    key: usize,
    value: Option<usize>,
    batch: Option<Batch>,
    rows: u64,
    rows_in_all: u64,
}

/// The name of the kind of file that has columns, by its first bytes; nothing for others.
///
/// # Errors
/// It cannot be read.
pub fn columnar_name(path: &Path) -> Result<Option<&'static str>> {
    Ok(Kind::of(&super::super::head(path)?).map(Kind::name))
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
        let key = column(path, &schema, key, "--key")?;
        let value = value.map(|name| column(path, &schema, name, "--value")).transpose()?;
        // What is not asked for is not decoded.
        let columns: BTreeSet<usize> = match value {
            Some(value) => [key, value].iter().copied().collect(),
            None => (0..schema.fields().len()).collect(),
        };
        if value.is_none() {
            check_names(path, &schema)?;
        }
        let place_of = |column: usize| columns.iter().position(|read| *read == column).unwrap_or(0);
        let (key, value) = (place_of(key), value.map(place_of));
        let batches = guarded(|| kind.batches(path, &columns));
        let batches = batches.unwrap_or_else(|| Err(kind.gave_up(path)))?;
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
    /// Batches of some of the columns, in the order of the file.
    fn batches(self, path: &Path, columns: &BTreeSet<usize>) -> Result<Batches> {
        let columns = columns.iter().copied();
        Ok(match self {
            Kind::Parquet => {
                let builder = parquet::open_for_content(path)?;
                let mask = ProjectionMask::roots(builder.parquet_schema(), columns);
                let reader = builder.with_projection(mask).build();
                Box::new(reader.map_err(|error| wrong(path, error))?)
            }
            Kind::Arrow => {
                let file = File::open(path).map_err(|error| AdviseError::of_file(path, &error))?;
                let reader = FileReader::try_new(BufReader::new(file), Some(columns.collect()));
                Box::new(reader.map_err(|error| wrong(path, error))?)
            }
        })
    }
}

/// The column of a name. It has to be one, and its values neither lists nor structures.
fn column(path: &Path, schema: &SchemaRef, name: &str, flag: &str) -> Result<usize> {
    let usage = |what: String| AdviseError::usage(format_args!("{what}: {}", path.display()));
    let fields = schema.fields();
    let mut found = fields.iter().enumerate().filter(|(_, field)| field.name() == name);
    let Some((place, field)) = found.next() else {
        let names: Vec<String> = fields.iter().map(|field| shown(field)).collect();
        return Err(usage(format!("no column {name}; choose with {flag}: {}", listed(&names))));
    };
    if found.next().is_some() {
        return Err(usage(format!("there are several columns {name}")));
    }
    let is_nested = |kind: &DataType| kind.is_nested() && !matches!(kind, DataType::Dictionary(..));
    if is_nested(field.data_type()) {
        return Err(usage(format!("column {name} is a list or structure; leave {flag} out")));
    }
    Ok(place)
}

/// A name in one line.
fn shown(field: &Field) -> String {
    field.name().escape_debug().to_string()
}

/// Two fields of an object must not have one name.
fn check_names(path: &Path, schema: &SchemaRef) -> Result<()> {
    let mut names = BTreeSet::new();
    match schema.fields().iter().find(|field| !names.insert(field.name())) {
        None => Ok(()),
        Some(field) => Err(AdviseError::usage(format_args!(
            "there are several columns {}; choose one with --value: {}",
            shown(field),
            path.display()
        ))),
    }
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
    Json(String, ArrayRef, Lines),
    /// Whole rows.
    Rows(Lines),
}

impl Contents {
    fn of_column(batch: &RecordBatch, column: usize) -> std::result::Result<Contents, String> {
        let name = shown(batch.schema_ref().field(column));
        let mut array = batch.column(column).clone();
        if let DataType::Dictionary(_, kind) = array.data_type() {
            array = arrow_cast::cast(&array, kind).map_err(|error| error.to_string())?;
        }
        Ok(match array.data_type() {
            DataType::Utf8
            | DataType::Binary
            | DataType::LargeUtf8
            | DataType::LargeBinary
            | DataType::Utf8View
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_) => Contents::Bytes(name, array.clone()),
            _ => {
                let alone = RecordBatch::try_from_iter([(NAME_ALONE, array.clone())]);
                let lines = Lines::of(&alone.map_err(|error| error.to_string())?)?;
                Contents::Json(name, array, lines)
            }
        })
    }

    fn append(&self, row: usize, bytes: &mut Vec<u8>) -> std::result::Result<(), String> {
        match self {
            Contents::Bytes(name, array) => {
                let found = bytes_of(array, row);
                bytes.extend_from_slice(found.ok_or_else(|| format!("column {name} is null"))?);
            }
            Contents::Json(name, array, _) if array.is_null(row) => {
                return Err(format!("column {name} is null"));
            }
            Contents::Json(name, _, lines) => append_scalar(name, lines.line(row), bytes)?,
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

/// What the column of an object is called that has no other.
const NAME_ALONE: &str = "value";

/// An object with one column alone.
#[derive(serde::Deserialize)]
struct Alone<'t> {
    #[serde(borrow)]
    value: &'t RawValue,
}

/// Appends the one field of an object: text without its quotes, else what stands there.
fn append_scalar(name: &str, line: &[u8], bytes: &mut Vec<u8>) -> std::result::Result<(), String> {
    let alone: Alone<'_> = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let raw = alone.value.get();
    match raw.as_bytes().first() {
        Some(b'"') => {
            let text: String = serde_json::from_str(raw).map_err(|error| error.to_string())?;
            bytes.extend_from_slice(text.as_bytes());
        }
        // JSON has no such numbers.
        _ if raw == "null" => return Err(format!("column {name} is no finite number")),
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
