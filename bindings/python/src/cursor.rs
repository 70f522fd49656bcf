//! The cursor: one place among rows that moves both ways.
//!
//! Owns: [`RowCursor`]. Its lock is held by moves, which are detached from the interpreter, and for as long
//! as a key or value is copied.

use std::sync::{Arc, Mutex, MutexGuard};

use lithify::Cursor;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyTuple};

use crate::bytes::BytesLike;
use crate::errors::{Failure, Result, detached};
use crate::forks::Native;
use crate::handle::Handle;
use crate::iterator::{lock, not_picklable};

enum Place {
    Open(Box<Native<Cursor>>),
    /// There is nothing to stand on.
    Empty,
    Closed,
}

/// A cursor over the rows of one moment.
#[pyclass(frozen, module = "lithify", name = "Cursor")]
pub struct RowCursor {
    handle: Arc<Handle>,
    place: Mutex<Place>,
}

impl RowCursor {
    /// At no row yet.
    pub fn new(handle: Arc<Handle>, cursor: Option<Cursor>) -> RowCursor {
        let place = match cursor {
            Some(cursor) => Place::Open(Box::new(Native::new(cursor))),
            None => Place::Empty,
        };
        RowCursor { handle, place: Mutex::new(place) }
    }

    fn go(
        &self,
        py: Python<'_>,
        go: impl FnOnce(&mut Cursor) -> lithify::Result<bool> + Send,
    ) -> PyResult<bool> {
        detached(py, || {
            self.handle.check_open()?;
            match &mut *lock(self.place.lock()) {
                Place::Open(cursor) => Ok(go(cursor.get_mut()?)?),
                Place::Empty => Ok(false),
                Place::Closed => Err(Failure::Closed("the cursor")),
            }
        })
    }

    fn here<'py, T>(
        &self,
        py: Python<'py>,
        read: impl FnOnce(&Cursor) -> T,
    ) -> PyResult<Option<T>> {
        self.handle.check_open()?;
        let place: MutexGuard<'_, Place> = lock(self.place.lock_py_attached(py));
        let found: Result<Option<T>> = match &*place {
            Place::Open(cursor) => cursor.get().map(|cursor| cursor.valid().then(|| read(cursor))),
            Place::Empty => Ok(None),
            Place::Closed => Err(Failure::Closed("the cursor")),
        };
        drop(place);
        Ok(found?)
    }
}

#[pymethods]
impl RowCursor {
    /// To the first row whose key is not before `key`; False if there is none.
    fn seek(&self, py: Python<'_>, key: BytesLike<'_>) -> PyResult<bool> {
        let key = key.as_slice();
        self.go(py, |cursor| cursor.seek(key))
    }

    /// To the last row whose key is not behind `key`; False if there is none.
    fn seek_for_prev(&self, py: Python<'_>, key: BytesLike<'_>) -> PyResult<bool> {
        let key = key.as_slice();
        self.go(py, |cursor| cursor.seek_for_prev(key))
    }

    /// To the first row; False if there is none.
    fn seek_to_first(&self, py: Python<'_>) -> PyResult<bool> {
        self.go(py, Cursor::seek_to_first)
    }

    /// To the last row; False if there is none.
    fn seek_to_last(&self, py: Python<'_>) -> PyResult<bool> {
        self.go(py, Cursor::seek_to_last)
    }

    /// To the next row; False behind the last one. A new cursor goes to the first.
    fn next(&self, py: Python<'_>) -> PyResult<bool> {
        self.go(py, Cursor::next)
    }

    /// To the previous row; False before the first one. A new cursor goes to the last.
    fn prev(&self, py: Python<'_>) -> PyResult<bool> {
        self.go(py, Cursor::prev)
    }

    /// Whether it stands on a row.
    #[getter]
    fn valid(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.here(py, |_| ())?.is_some())
    }

    /// The key of the row; None where it stands on no row.
    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        self.here(py, |cursor| PyBytes::new(py, cursor.key()))
    }

    /// The value of the row; None where it stands on no row.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        self.here(py, |cursor| PyBytes::new(py, cursor.value()))
    }

    /// Ends the cursor, and lets go of what it keeps on disk and in memory.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || {
            self.handle.check_process()?;
            *lock(self.place.lock()) = Place::Closed;
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
        Err(not_picklable("a cursor"))
    }
}
