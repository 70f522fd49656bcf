//! The iterator of `lithify.plyvel`: it stands between two rows and moves both ways.
//!
//! Owns: [`Walk`]. `next` gives the row behind the gap and steps over it, `prev` the row in front of it. So
//! `next` and `prev` in turn give the same row. A reverse one has the two exchanged.

use std::sync::{Arc, Mutex};

use lithify::Cursor;
use pyo3::exceptions::PyStopIteration;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::bytes::BytesLike;
use crate::errors::{Failure, Result, detached};
use crate::forks::Native;
use crate::handle::Handle;
use crate::iterator::{lock, not_picklable};

/// Where the gap is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gap {
    /// In front of all rows.
    Start,
    /// In front of the row that the cursor stands on.
    Before,
    /// Behind the row that the cursor stands on.
    After,
    /// Behind all rows.
    Stop,
}

struct State {
    /// `None` where there never was a row.
    cursor: Option<Native<Cursor>>,
    gap: Gap,
    is_closed: bool,
}

/// What is given of a row.
#[derive(Clone, Copy)]
pub struct Shape {
    /// The key, without so many bytes in front.
    pub key: Option<usize>,
    /// Whether the value is.
    pub has_value: bool,
    /// Whether `next` goes back.
    pub is_reverse: bool,
}

/// An iterator as plyvel has it.
#[pyclass(frozen, weakref, module = "lithify._lithify")]
pub struct Walk {
    handle: Arc<Handle>,
    shape: Shape,
    /// What is in front of all keys, and left out of those that are given and taken.
    prefix: Vec<u8>,
    /// The last key of the range, if it is one of it: a target behind it is it.
    last: Option<Vec<u8>>,
    state: Mutex<State>,
}

impl Walk {
    /// At the end that it starts from.
    pub fn new(
        handle: Arc<Handle>,
        cursor: Option<Cursor>,
        (shape, prefix, last): (Shape, Vec<u8>, Option<Vec<u8>>),
    ) -> Walk {
        let gap = if shape.is_reverse { Gap::Stop } else { Gap::Start };
        let state = State { cursor: cursor.map(Native::new), gap, is_closed: false };
        Walk { handle, shape, prefix, last, state: Mutex::new(state) }
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut State) -> Result<T> + Send,
    ) -> PyResult<T> {
        detached(py, || {
            self.handle.check_open()?;
            let mut state = lock(self.state.lock());
            match state.is_closed {
                true => Err(Failure::Closed("the iterator")),
                false => act(&mut state),
            }
        })
    }

    fn step<'py>(&self, py: Python<'py>, is_back: bool) -> PyResult<Bound<'py, PyAny>> {
        let row = self.with(py, |state| {
            let State { cursor: Some(cursor), gap, .. } = state else { return Ok(None) };
            let cursor = cursor.get_mut()?;
            Ok(step(cursor, gap, is_back)?.then(|| self.copy(cursor)))
        })?;
        match row {
            Some((key, value)) => self.give(py, &key, &value),
            None => Err(PyStopIteration::new_err(())),
        }
    }

    fn copy(&self, cursor: &Cursor) -> (Vec<u8>, Vec<u8>) {
        let key = self.shape.key.map(|skipped| cursor.key().get(skipped..).unwrap_or_default());
        let value = if self.shape.has_value { cursor.value() } else { &[] };
        (key.unwrap_or_default().to_vec(), value.to_vec())
    }

    fn give<'py>(&self, py: Python<'py>, key: &[u8], value: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        Ok(match (self.shape.key.is_some(), self.shape.has_value) {
            (true, true) => {
                PyTuple::new(py, [PyBytes::new(py, key), PyBytes::new(py, value)])?.into_any()
            }
            (true, false) => PyBytes::new(py, key).into_any(),
            (false, true) => PyBytes::new(py, value).into_any(),
            (false, false) => py.None().into_bound(py),
        })
    }
}

/// Moves the gap over a row; false where there is none. The cursor then stands on that row.
fn step(cursor: &mut Cursor, gap: &mut Gap, is_back: bool) -> lithify::Result<bool> {
    let is_found = match (is_back, *gap) {
        (false, Gap::Start) => cursor.seek_to_first()?,
        (false, Gap::After) => cursor.next()?,
        (true, Gap::Stop) => cursor.seek_to_last()?,
        (true, Gap::Before) => cursor.prev()?,
        (false, Gap::Before) | (true, Gap::After) => true,
        (false, Gap::Stop) | (true, Gap::Start) => false,
    };
    *gap = match (is_back, is_found) {
        (false, true) => Gap::After,
        (false, false) => Gap::Stop,
        (true, true) => Gap::Before,
        (true, false) => Gap::Start,
    };
    Ok(is_found)
}

#[pymethods]
impl Walk {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.step(py, self.shape.is_reverse)
    }

    /// The row on the other side of the gap; StopIteration where there is none.
    fn prev<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.step(py, !self.shape.is_reverse)
    }

    /// In front of the first row whose key is not before `target`.
    fn seek(&self, py: Python<'_>, target: BytesLike<'_>) -> PyResult<()> {
        let target = [&self.prefix, target.as_slice()].concat();
        let target = self.last.as_ref().map_or(&target, |last| last.min(&target));
        self.with(py, |state| {
            let State { cursor: Some(cursor), gap, .. } = state else { return Ok(()) };
            let is_found = cursor.get_mut()?.seek(target)?;
            *gap = if is_found { Gap::Before } else { Gap::Stop };
            Ok(())
        })
    }

    /// In front of all rows.
    fn seek_to_start(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |state| {
            state.gap = Gap::Start;
            Ok(())
        })
    }

    /// Behind all rows.
    fn seek_to_stop(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |state| {
            state.gap = Gap::Stop;
            Ok(())
        })
    }

    /// Ends the iterator; a second call does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || {
            self.handle.check_process()?;
            let mut state = lock(self.state.lock());
            (state.is_closed, state.cursor) = (true, None);
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
