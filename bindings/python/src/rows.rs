//! Reading rows, wherever they are: of a column family, at a snapshot, or in a transaction.
//!
//! Owns: [`Rows`], the base class of all that is read as a mapping of bytes to bytes, and [`Source`], the
//! three things it reads.

use std::sync::Arc;

use lithify::{ColumnFamily, Cursor, ScanRange, Slice};
use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::buffer;
use crate::bytes::{BytesLike, to_bytes};
use crate::cursor::RowCursor;
use crate::errors::{Result, detached, is_there};
use crate::handle::{Handle, Target};
use crate::iterator::{Part, RowIterator, not_picklable};
use crate::range::Bounds;
use crate::snapshot::Moment;
use crate::transaction::WorkFamily;
use crate::walk::{Shape, Walk};

/// What rows are read of.
pub enum Source {
    /// A column family as it is now.
    Family(Arc<Target>),
    /// One at a snapshot.
    Snapshot(Arc<Moment>, Arc<Target>, Option<crate::forks::Native<ColumnFamily>>),
    /// One in a transaction.
    Transaction(Arc<WorkFamily>),
}

impl Source {
    fn target(&self) -> &Arc<Target> {
        match self {
            Source::Family(target) | Source::Snapshot(_, target, _) => target,
            Source::Transaction(family) => family.target(),
        }
    }

    fn handle(&self) -> &Arc<Handle> {
        self.target().handle()
    }

    fn get(&self, key: &[u8]) -> Result<Option<Slice>> {
        match self {
            Source::Family(target) => match target.existing()? {
                Some(family) => Ok(family.get(key)?),
                None => Ok(None),
            },
            Source::Snapshot(moment, target, Some(family)) => {
                target.handle().check_open()?;
                moment.read(|snapshot| Ok(family.get()?.get_at(key, snapshot)?))
            }
            Source::Snapshot(moment, target, None) => {
                target.handle().check_open()?;
                moment.read(|_| Ok(None))
            }
            Source::Transaction(family) => {
                Ok(family.read(|transaction, family| transaction.get(family, key))?.flatten())
            }
        }
    }

    fn multi_get(&self, keys: &[&[u8]]) -> Result<Vec<Option<Slice>>> {
        match self {
            Source::Family(target) => match target.existing()? {
                Some(family) => Ok(family.multi_get(keys)?),
                None => Ok(vec![None; keys.len()]),
            },
            Source::Snapshot(moment, target, Some(family)) => {
                target.handle().check_open()?;
                moment.read(|snapshot| Ok(family.get()?.multi_get_at(keys, snapshot)?))
            }
            _ => keys.iter().map(|key| self.get(key)).collect(),
        }
    }

    fn cursor(&self, range: ScanRange) -> Result<Option<Cursor>> {
        match self {
            Source::Family(target) => {
                Ok(target.existing()?.map(|family| family.cursor(range)).transpose()?)
            }
            Source::Snapshot(moment, target, family) => {
                target.handle().check_open()?;
                moment.read(|snapshot| match family {
                    Some(family) => Ok(Some(family.get()?.cursor_at(range, snapshot)?)),
                    None => Ok(None),
                })
            }
            Source::Transaction(family) => {
                family.read(|transaction, family| transaction.cursor(family, range))
            }
        }
    }
}

/// A mapping of bytes to bytes that can be read.
#[pyclass(frozen, subclass, mapping, weakref, module = "lithify", name = "Rows")]
pub struct Rows {
    source: Source,
}

impl Rows {
    /// Reads of it.
    pub fn new(source: Source) -> Rows {
        Rows { source }
    }

    fn iterator(
        &self,
        py: Python<'_>,
        bounds: &Bounds<'_>,
        (part, is_reverse): (Part, bool),
    ) -> PyResult<RowIterator> {
        let range = bounds.to_range();
        let cursor = detached(py, || self.source.cursor(range))?;
        let reads_ahead = !matches!(self.source, Source::Transaction(..));
        let handle = Arc::clone(self.source.handle());
        Ok(RowIterator::new(handle, cursor, (part, is_reverse, reads_ahead)))
    }

    fn read(&self, py: Python<'_>, key: &BytesLike<'_>) -> PyResult<Option<Slice>> {
        let key = key.as_slice();
        detached(py, || self.source.get(key))
    }
}

const EVERYTHING: Bounds<'static> =
    Bounds { prefix: None, start: None, stop: None, include_start: true, include_stop: false };

/// A method that iterates over a range of keys.
macro_rules! iterating {
    ($rows:ident, $py:ident, $part:expr, $prefix:ident, $start:ident, $stop:ident,
     $include_start:ident, $include_stop:ident, $reverse:ident) => {
        $rows.iterator(
            $py,
            &Bounds {
                prefix: $prefix.as_ref(),
                start: $start.as_ref(),
                stop: $stop.as_ref(),
                include_start: $include_start,
                include_stop: $include_stop,
            },
            ($part, $reverse),
        )
    };
}

#[pymethods]
#[expect(clippy::too_many_arguments, reason = "they are keywords")]
impl Rows {
    /// The name of the column family.
    #[getter]
    fn name(&self) -> &str {
        self.source.target().name()
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        key: BytesLike<'_>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        match self.read(py, &key)? {
            Some(value) => Ok(PyBytes::new(py, &value)),
            None => Err(PyKeyError::new_err(PyBytes::new(py, key.as_slice()).unbind())),
        }
    }

    fn __contains__(&self, py: Python<'_>, key: BytesLike<'_>) -> PyResult<bool> {
        Ok(self.read(py, &key)?.is_some())
    }

    /// The value of a key, or `default`.
    #[pyo3(signature = (key, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: BytesLike<'_>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let value = self.read(py, &key)?;
        Ok(to_bytes(py, value).map(Bound::into_any).or(default))
    }

    /// The value of a key as an object with the buffer protocol that copies nothing, or None.
    fn get_buffer<'py>(
        &self,
        py: Python<'py>,
        key: BytesLike<'_>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.read(py, &key)?.map(|value| buffer::new(py, value)).transpose()
    }

    /// The values of several keys, in their order and at one moment; None where there is none.
    fn multi_get<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let keys: Vec<BytesLike<'_>> =
            keys.try_iter()?.map(|key| key?.extract()).collect::<PyResult<_>>()?;
        let slices: Vec<&[u8]> = keys.iter().map(BytesLike::as_slice).collect();
        let values = detached(py, || self.source.multi_get(&slices))?;
        PyList::new(py, values.into_iter().map(|value| to_bytes(py, value)))
    }

    /// The keys in their order; of those that begin with a prefix, between two keys, or backwards.
    #[pyo3(signature = (*, prefix=None, start=None, stop=None, include_start=true,
                        include_stop=false, reverse=false))]
    fn keys(
        &self,
        py: Python<'_>,
        prefix: Option<BytesLike<'_>>,
        start: Option<BytesLike<'_>>,
        stop: Option<BytesLike<'_>>,
        include_start: bool,
        include_stop: bool,
        reverse: bool,
    ) -> PyResult<RowIterator> {
        iterating!(self, py, Part::Key, prefix, start, stop, include_start, include_stop, reverse)
    }

    /// The values in the order of their keys; see `keys`.
    #[pyo3(signature = (*, prefix=None, start=None, stop=None, include_start=true,
                        include_stop=false, reverse=false))]
    fn values(
        &self,
        py: Python<'_>,
        prefix: Option<BytesLike<'_>>,
        start: Option<BytesLike<'_>>,
        stop: Option<BytesLike<'_>>,
        include_start: bool,
        include_stop: bool,
        reverse: bool,
    ) -> PyResult<RowIterator> {
        iterating!(self, py, Part::Value, prefix, start, stop, include_start, include_stop, reverse)
    }

    /// Keys with their values, in the order of keys; see `keys`.
    #[pyo3(signature = (*, prefix=None, start=None, stop=None, include_start=true,
                        include_stop=false, reverse=false))]
    fn items(
        &self,
        py: Python<'_>,
        prefix: Option<BytesLike<'_>>,
        start: Option<BytesLike<'_>>,
        stop: Option<BytesLike<'_>>,
        include_start: bool,
        include_stop: bool,
        reverse: bool,
    ) -> PyResult<RowIterator> {
        iterating!(self, py, Part::Row, prefix, start, stop, include_start, include_stop, reverse)
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<RowIterator> {
        self.iterator(py, &EVERYTHING, (Part::Key, false))
    }

    fn __reversed__(&self, py: Python<'_>) -> PyResult<RowIterator> {
        self.iterator(py, &EVERYTHING, (Part::Key, true))
    }

    /// A cursor, which moves both ways; over all rows or those of a range.
    #[pyo3(signature = (*, prefix=None, start=None, stop=None, include_start=true,
                        include_stop=false))]
    fn cursor(
        &self,
        py: Python<'_>,
        prefix: Option<BytesLike<'_>>,
        start: Option<BytesLike<'_>>,
        stop: Option<BytesLike<'_>>,
        include_start: bool,
        include_stop: bool,
    ) -> PyResult<RowCursor> {
        let (prefix, start, stop) = (prefix.as_ref(), start.as_ref(), stop.as_ref());
        let range = Bounds { prefix, start, stop, include_start, include_stop }.to_range();
        let cursor = detached(py, || self.source.cursor(range))?;
        Ok(RowCursor::new(Arc::clone(self.source.handle()), cursor))
    }

    /// The iterator of `lithify.plyvel`; `key_prefix` is in front of all keys and left out of what is given.
    #[pyo3(signature = (start, stop, include_start, include_stop, shape, key_prefix))]
    fn _walk(
        &self,
        py: Python<'_>,
        start: Option<BytesLike<'_>>,
        stop: Option<BytesLike<'_>>,
        include_start: bool,
        include_stop: bool,
        shape: (bool, bool, bool),
        key_prefix: BytesLike<'_>,
    ) -> PyResult<Walk> {
        let (start, stop) = (start.as_ref(), stop.as_ref());
        let range = Bounds { prefix: None, start, stop, include_start, include_stop }.to_range();
        let cursor = detached(py, || self.source.cursor(range))?;
        let (has_key, has_value, is_reverse) = shape;
        let prefix = key_prefix.as_slice().to_vec();
        let key = has_key.then_some(prefix.len());
        let shape = Shape { key, has_value, is_reverse };
        let last = stop.filter(|_| include_stop).map(|stop| stop.as_slice().to_vec());
        Ok(Walk::new(Arc::clone(self.source.handle()), cursor, (shape, prefix, last)))
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        detached(py, || match self.source.cursor(ScanRange::default())? {
            Some(mut cursor) => is_there(cursor.next()),
            None => Ok(false),
        })
    }

    fn __len__(&self) -> PyResult<usize> {
        Err(PyTypeError::new_err(
            "the number of rows is not kept: approximate_len() estimates it, sum(1 for _ in rows.keys()) \
             counts",
        ))
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(not_picklable("what is read of an open database"))
    }
}
