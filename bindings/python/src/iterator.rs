//! Iterators over rows, as they were when the iterator was made.
//!
//! Owns: [`RowIterator`]. It reads ahead in chunks, detached from the interpreter, so that a row costs no
//! switch. Rows are of one moment, so reading ahead shows nothing else. Of a transaction it reads one row
//! at a time: what is read there counts as read.
//!
//! No Python code runs under its lock: making objects may collect garbage, and so run anything.

use std::sync::{Arc, Mutex};

use lithify::Cursor;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyTuple};

use crate::errors::{Failure, Result, detached};
use crate::forks::Native;
use crate::handle::Handle;

/// What is given of each row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The key.
    Key,
    /// The value.
    Value,
    /// Both.
    Row,
}

/// Rows of the first chunk; later ones have twice as many as the one before.
const FIRST_ROWS: usize = 8;
/// Most rows of a chunk.
const ROWS_MAX: usize = 512;
/// A chunk ends at the row that reaches so many bytes.
const CHUNK_BYTES: usize = 64 << 10;

/// Rows that were read ahead.
#[derive(Default)]
struct Chunk {
    bytes: Vec<u8>,
    /// Where the key and the value of each row end.
    ends: Vec<(usize, usize)>,
}

impl Chunk {
    fn row(&self, at: usize) -> Option<(&[u8], &[u8])> {
        let (key_end, end) = *self.ends.get(at)?;
        let start = if at == 0 { 0 } else { self.ends[at - 1].1 };
        Some((&self.bytes[start..key_end], &self.bytes[key_end..end]))
    }
}

struct State {
    /// `None` where there are no rows any more.
    cursor: Option<Native<Cursor>>,
    chunk: Arc<Chunk>,
    at: usize,
    rows_wanted: usize,
    is_closed: bool,
    /// What reading met behind the rows of the chunk.
    failure: Option<Failure>,
}

/// An iterator over keys, values or rows.
#[pyclass(frozen, module = "lithify", name = "RowIterator")]
pub struct RowIterator {
    handle: Arc<Handle>,
    part: Part,
    is_reverse: bool,
    reads_ahead: bool,
    state: Mutex<State>,
}

impl RowIterator {
    /// Over what the cursor has in front of it, or behind it.
    pub fn new(
        handle: Arc<Handle>,
        cursor: Option<Cursor>,
        (part, is_reverse, reads_ahead): (Part, bool, bool),
    ) -> RowIterator {
        let state = State {
            cursor: cursor.map(Native::new),
            chunk: Arc::default(),
            at: 0,
            rows_wanted: if reads_ahead { FIRST_ROWS } else { 1 },
            is_closed: false,
            failure: None,
        };
        RowIterator { handle, part, is_reverse, reads_ahead, state: Mutex::new(state) }
    }

    /// The next row that was read already.
    fn at_hand(&self, py: Python<'_>) -> PyResult<Option<(Arc<Chunk>, usize)>> {
        self.handle.check_open()?;
        let mut state = lock(self.state.lock_py_attached(py));
        if state.is_closed {
            return Err(Failure::Closed("the iterator").into());
        }
        if state.at >= state.chunk.ends.len() {
            return Ok(None);
        }
        state.at += 1;
        Ok(Some((Arc::clone(&state.chunk), state.at - 1)))
    }

    /// Reads ahead; gives the first row.
    fn read_ahead(&self) -> Result<Option<(Arc<Chunk>, usize)>> {
        let mut state = lock(self.state.lock());
        // Another thread may have read ahead meanwhile.
        if state.at >= state.chunk.ends.len() {
            self.read_chunk(&mut state)?;
        }
        if state.chunk.ends.is_empty() {
            return Ok(None);
        }
        state.at += 1;
        Ok(Some((Arc::clone(&state.chunk), state.at - 1)))
    }

    /// The next chunk, which is empty at the end. Rows in front of a failure are given before it.
    fn read_chunk(&self, state: &mut State) -> Result<()> {
        (state.chunk, state.at) = (Arc::default(), 0);
        if let Some(failure) = state.failure.take() {
            return Err(failure);
        }
        let Some(cursor) = state.cursor.as_mut() else { return Ok(()) };
        let mut chunk = Chunk::default();
        match self.fill(&mut chunk, cursor.get_mut()?, state.rows_wanted) {
            Ok(true) => {}
            // What the cursor keeps in memory and on disk may go.
            Ok(false) => state.cursor = None,
            Err(failure) if chunk.ends.is_empty() => {
                state.cursor = None;
                return Err(failure);
            }
            Err(failure) => (state.cursor, state.failure) = (None, Some(failure)),
        }
        state.chunk = Arc::new(chunk);
        if self.reads_ahead {
            state.rows_wanted = (2 * state.rows_wanted).min(ROWS_MAX);
        }
        Ok(())
    }

    /// Reads rows into a chunk; false at the end of all rows.
    fn fill(&self, chunk: &mut Chunk, cursor: &mut Cursor, rows_wanted: usize) -> Result<bool> {
        while chunk.ends.len() < rows_wanted && chunk.bytes.len() < CHUNK_BYTES {
            let is_found = if self.is_reverse { cursor.prev()? } else { cursor.next()? };
            if !is_found {
                return Ok(false);
            }
            if self.part != Part::Value {
                chunk.bytes.extend_from_slice(cursor.key());
            }
            let key_end = chunk.bytes.len();
            if self.part != Part::Key {
                chunk.bytes.extend_from_slice(cursor.value());
            }
            chunk.ends.push((key_end, chunk.bytes.len()));
        }
        Ok(true)
    }
}

/// The state, whoever panicked with it in hand.
pub fn lock<T>(locked: std::sync::LockResult<T>) -> T {
    locked.unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[pymethods]
impl RowIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let found = match self.at_hand(py)? {
            Some(found) => Some(found),
            None => detached(py, || self.read_ahead())?,
        };
        let Some((chunk, at)) = found else { return Ok(None) };
        let Some((key, value)) = chunk.row(at) else { return Ok(None) };
        Ok(Some(match self.part {
            Part::Key => PyBytes::new(py, key).into_any(),
            Part::Value => PyBytes::new(py, value).into_any(),
            Part::Row => {
                PyTuple::new(py, [PyBytes::new(py, key), PyBytes::new(py, value)])?.into_any()
            }
        }))
    }

    /// Ends the iterator, and lets go of what it keeps on disk and in memory.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || {
            self.handle.check_process()?;
            let mut state = lock(self.state.lock());
            state.is_closed = true;
            (state.chunk, state.cursor) = (Arc::default(), None);
            Ok(())
        })
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_arguments))]
    fn __exit__(&self, py: Python<'_>, _arguments: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(not_picklable("an iterator"))
    }
}

/// The refusal to copy or pickle something that belongs to an open database.
pub fn not_picklable(what: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "{what} cannot be pickled or copied: it belongs to this process; send the path, and open it \
         there with read_only=True"
    ))
}
