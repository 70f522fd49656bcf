//! Rows on their way straight into tables.
//!
//! Owns: pulling them out of Python in pieces, so that the engine writes a piece while other threads run.

use std::sync::Arc;

use lithify::{Ingest, Ingested};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::columns::{ByteColumn, Table};
use crate::errors::{Result, detached};
use crate::family::each_row;
use crate::forks::Native;
use crate::handle::Target;

/// Rows are given to the engine once so many bytes of them have gathered.
const PIECE_BYTES: usize = 1 << 20;

/// Ingests an iterable of pairs, or two columns of an Arrow table.
pub fn ingest<'py>(
    py: Python<'py>,
    target: &Arc<Target>,
    rows: &Bound<'py, PyAny>,
    (key, value): (Option<&str>, Option<&str>),
) -> PyResult<Bound<'py, PyDict>> {
    let mut ingest = detached(py, || Ok(Native::new(target.for_writing()?.ingest()?)))?;
    match Table::of(rows)? {
        Some(table) => {
            let columns = table.key_and_value(key, value)?;
            detached(py, || columns_into(ingest.get_mut()?, &columns))?;
        }
        None => rows_into(py, &mut ingest, rows)?,
    }
    let done = detached(py, || Ok(ingest.take()?.commit()?))?;
    summary(py, &done)
}

fn columns_into(ingest: &mut Ingest, columns: &[(ByteColumn, ByteColumn)]) -> Result<()> {
    for (keys, values) in columns {
        for row in 0..keys.len() {
            ingest.put(keys.get(row)?, values.get(row)?)?;
        }
    }
    Ok(())
}

fn rows_into(py: Python<'_>, ingest: &mut Native<Ingest>, rows: &Bound<'_, PyAny>) -> PyResult<()> {
    let mut piece = Piece::default();
    each_row(rows, |key, value| {
        piece.push(key.as_slice(), value.as_slice());
        match piece.bytes.len() < PIECE_BYTES {
            true => Ok(()),
            false => piece.give(py, ingest),
        }
    })?;
    piece.give(py, ingest)
}

/// Rows that the engine does not have yet.
#[derive(Default)]
struct Piece {
    bytes: Vec<u8>,
    /// Where the key and the value of each end.
    ends: Vec<(usize, usize)>,
}

impl Piece {
    fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push((key_end, self.bytes.len()));
    }

    fn give(&mut self, py: Python<'_>, ingest: &mut Native<Ingest>) -> PyResult<()> {
        detached(py, || {
            let ingest = ingest.get_mut()?;
            let mut start = 0;
            for (key_end, end) in self.ends.drain(..) {
                ingest.put(&self.bytes[start..key_end], &self.bytes[key_end..end])?;
                start = end;
            }
            self.bytes.clear();
            Ok(())
        })
    }
}

fn summary<'py>(py: Python<'py>, done: &Ingested) -> PyResult<Bound<'py, PyDict>> {
    let summary = PyDict::new(py);
    summary.set_item("sequence", done.sequence)?;
    summary.set_item("rows", done.rows)?;
    summary.set_item("table_bytes", done.table_bytes)?;
    summary.set_item("levels", &done.levels)?;
    Ok(summary)
}
