//! Tables of Arrow: what any library gives by the Arrow PyCapsule interface.
//!
//! Owns: taking a stream over, bytes out of a column, and rows of typed columns for the advisor. Nothing of
//! `pyarrow` is needed; memory of columns is shared, not copied.
#![expect(unsafe_code, reason = "a stream comes as a pointer in a capsule")]

use std::ops::ControlFlow;

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchReader};
use arrow_schema::{DataType, SchemaRef};
use lithify::Error;
use lithify_advisor::input::{Facts, Record, Source, Value};
use lithify_advisor::rows::{Row, Rows};
use lithify_advisor::{AdviseError, Result as AdviseResult};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};

use crate::errors::{Result, detached};

/// A table in memory.
pub struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    /// The table that an object is, if it is one: of pyarrow, polars, pandas, DuckDB and others.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Option<Table>> {
        if !object.hasattr("__arrow_c_stream__")? {
            return Ok(None);
        }
        let capsule = object.call_method0("__arrow_c_stream__")?;
        let capsule = capsule.cast::<PyCapsule>()?;
        let pointer = capsule.pointer_checked(Some(c"arrow_array_stream"))?;
        // SAFETY: a capsule of this name holds a stream, by the Arrow PyCapsule interface. It is moved out
        // and marked as released in place, so the capsule's end does not release it a second time.
        let reader = unsafe {
            RecordBatchStreamReader::from_raw(pointer.as_ptr().cast::<FFI_ArrowArrayStream>())
        };
        let reader = reader.map_err(wrong)?;
        let schema = reader.schema();
        let batches: Vec<RecordBatch> =
            reader.collect::<std::result::Result<_, _>>().map_err(wrong)?;
        Ok(Some(Table { schema, batches }))
    }

    /// The number of a column.
    fn column(&self, name: &str) -> PyResult<usize> {
        self.schema.index_of(name).map_err(|_| {
            let names: Vec<&str> =
                self.schema.fields().iter().map(|field| field.name().as_str()).collect();
            PyValueError::new_err(format!("no column {name:?}; there are: {}", names.join(", ")))
        })
    }

    /// The columns of keys and values, of each batch; the first two where none are named.
    pub fn key_and_value(
        &self,
        key: Option<&str>,
        value: Option<&str>,
    ) -> PyResult<Vec<(ByteColumn, ByteColumn)>> {
        if self.schema.fields().len() < 2 {
            return Err(PyTypeError::new_err(
                "a table of rows has a column of keys and one of values",
            ));
        }
        let key = key.map_or(Ok(0), |name| self.column(name))?;
        let value = value.map_or(Ok(1), |name| self.column(name))?;
        let of = |batch: &RecordBatch, column: usize| {
            let name = self.schema.field(column).name();
            ByteColumn::new(name, batch.column(column))
        };
        self.batches.iter().map(|batch| Ok((of(batch, key)?, of(batch, value)?))).collect()
    }

    /// Its rows as the advisor reads them, with these columns as the key.
    pub fn into_source(self, py: Python<'_>, key: &[String]) -> PyResult<Typed> {
        let key_columns: Vec<usize> =
            key.iter().map(|name| self.column(name)).collect::<PyResult<_>>()?;
        let fields = self.schema.fields();
        for field in fields {
            if !is_readable(field.data_type()) {
                let (name, kind) = (field.name(), field.data_type());
                return Err(PyTypeError::new_err(format!(
                    "the column {name:?} is of type {kind}, which is not read: leave it out or cast it"
                )));
            }
        }
        let facts = Facts {
            format: format!("Arrow table with {} columns", fields.len()),
            files: 1,
            has_rows: true,
            key: key.join(", "),
            ..Facts::default()
        };
        let rows = self.batches.iter().map(|batch| batch.num_rows() as u64).sum();
        let mut typed = Typed { batches: self.batches, key_columns, rows, facts };
        typed.facts.data_bytes = detached(py, || typed.count_bytes())?;
        match typed.facts.data_bytes {
            0 => Err(PyValueError::new_err("there is no row to measure")),
            _ => Ok(typed),
        }
    }
}

fn wrong(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(format!("the Arrow table cannot be read: {error}"))
}

/// A column whose values are bytes or text.
pub struct ByteColumn {
    name: String,
    array: ArrayRef,
}

impl ByteColumn {
    fn new(name: &str, array: &ArrayRef) -> PyResult<ByteColumn> {
        match is_bytes(array.data_type()) {
            true => Ok(ByteColumn { name: name.to_owned(), array: array.clone() }),
            false => Err(PyTypeError::new_err(format!(
                "the column {name:?} is of type {}: keys and values are binary or text; cast it",
                array.data_type()
            ))),
        }
    }

    /// Rows of the batch.
    pub fn len(&self) -> usize {
        self.array.len()
    }

    /// The bytes of a row.
    pub fn get(&self, row: usize) -> Result<&[u8]> {
        let value = if self.array.is_null(row) { None } else { bytes_at(&self.array, row) };
        value.ok_or_else(|| {
            let name = &self.name;
            Error::invalid(format!("the column {name:?} has a null: keys and values are bytes"))
                .into()
        })
    }
}

fn is_bytes(kind: &DataType) -> bool {
    use DataType as D;
    matches!(
        kind,
        D::Binary
            | D::LargeBinary
            | D::BinaryView
            | D::FixedSizeBinary(_)
            | D::Utf8
            | D::LargeUtf8
            | D::Utf8View
    )
}

fn bytes_at(array: &ArrayRef, row: usize) -> Option<&[u8]> {
    Some(match array.data_type() {
        DataType::Binary => array.as_binary::<i32>().value(row),
        DataType::LargeBinary => array.as_binary::<i64>().value(row),
        DataType::BinaryView => array.as_binary_view().value(row),
        DataType::FixedSizeBinary(_) => array.as_fixed_size_binary().value(row),
        DataType::Utf8 => array.as_string::<i32>().value(row).as_bytes(),
        DataType::LargeUtf8 => array.as_string::<i64>().value(row).as_bytes(),
        DataType::Utf8View => array.as_string_view().value(row).as_bytes(),
        _ => return None,
    })
}

fn is_readable(kind: &DataType) -> bool {
    let is_number = kind.primitive_width().is_some_and(|bytes| bytes <= 8);
    is_bytes(kind) || is_number || matches!(kind, DataType::Null | DataType::Boolean)
}

/// The value of a row, laid out as a database would.
fn value_at(array: &ArrayRef, row: usize) -> Value<'_> {
    use DataType as D;
    if array.is_null(row) || array.data_type() == &D::Null {
        return Value::Null;
    }
    if let Some(bytes) = bytes_at(array, row) {
        return match array.data_type() {
            D::FixedSizeBinary(_) => Value::Fixed(bytes),
            _ => Value::Text(bytes),
        };
    }
    if array.data_type() == &D::Boolean {
        return Value::Whole(i64::from(array.as_boolean().value(row)), 1);
    }
    number_at(array, row)
}

/// A number by the bytes that it has in its column; a signed one turned so that it sorts.
fn number_at(array: &ArrayRef, row: usize) -> Value<'_> {
    let data = array.to_data();
    let width = array.data_type().primitive_width().unwrap_or(0);
    let start = (data.offset() + row) * width;
    let bytes = data.buffers().first().and_then(|buffer| buffer.get(start..start + width));
    let bytes = bytes.unwrap_or_default();
    let mut wide = [0; 8];
    let is_signed = !matches!(
        array.data_type(),
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64
    );
    match (array.data_type(), width) {
        (DataType::Float64, 8) => {
            wide.copy_from_slice(bytes);
            Value::Float(f64::from_le_bytes(wide), false)
        }
        (DataType::Float32, 4) => {
            let mut narrow = [0; 4];
            narrow.copy_from_slice(bytes);
            Value::Float(f32::from_le_bytes(narrow).into(), true)
        }
        (_, 1..=8) => {
            wide[..width].copy_from_slice(bytes);
            let number = i64::from_le_bytes(wide);
            let unused = 64 - 8 * width as u32;
            let number = if is_signed { number << unused >> unused } else { number };
            Value::Whole(number, width)
        }
        _ => Value::Null,
    }
}

/// Rows of typed columns.
pub struct Typed {
    batches: Vec<RecordBatch>,
    key_columns: Vec<usize>,
    rows: u64,
    facts: Facts,
}

impl Typed {
    fn count_bytes(&self) -> Result<u64> {
        let mut bytes = 0;
        self.read(0, &mut |row, _| {
            bytes += row.data_bytes;
            ControlFlow::Continue(())
        })?;
        Ok(bytes)
    }

    fn read(
        &self,
        from: u64,
        each: &mut dyn FnMut(Row<'_>, u64) -> ControlFlow<()>,
    ) -> AdviseResult<()> {
        let mut record = Record::new(self.key_columns.clone());
        let (mut before, mut done) = (0, 0);
        for batch in &self.batches {
            let rows = batch.num_rows() as u64;
            let first = from.saturating_sub(before).min(rows);
            for row in first..rows {
                record.clear();
                let at = usize::try_from(row).map_err(AdviseError::data)?;
                batch.columns().iter().for_each(|column| record.push(value_at(column, at)));
                let row = record.row(before + row);
                done += row.data_bytes;
                if each(row, done).is_break() {
                    return Ok(());
                }
            }
            before += rows;
        }
        Ok(())
    }
}

impl Source for Typed {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn place(&mut self, share: f64, wanted_bytes: u64) -> AdviseResult<Rows> {
        let last = self.rows.saturating_sub(1);
        let from = ((share.clamp(0.0, 1.0) * self.rows as f64) as u64).min(last);
        let mut rows = Rows::default();
        self.read(from, &mut |row, _| rows.push_up_to(row, wanted_bytes))?;
        Ok(rows)
    }

    fn scan(&mut self, each: &mut dyn FnMut(Row<'_>, u64) -> ControlFlow<()>) -> AdviseResult<()> {
        self.read(0, each)
    }

    /// Columns that are shared do not change.
    fn check_unchanged(&self) -> AdviseResult<()> {
        Ok(())
    }
}
