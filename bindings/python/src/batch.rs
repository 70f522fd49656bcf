//! Batches: writes that become visible together.
//!
//! Owns: [`Writes`], what is to be written, in its order and shared by the views of a batch on several
//! families, and the class of a view. The engine is given them at the commit.

use std::sync::{Arc, Mutex};

use lithify::Durability;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use crate::bytes::BytesLike;
use crate::errors::{Failure, Result, detached};
use crate::family::{FamilyArgument, each_row};
use crate::handle::{Handle, Target};
use crate::iterator::{lock, not_picklable};
use crate::settings;

#[derive(Clone, Copy)]
enum Kind {
    Put,
    Delete,
    Merge,
    DeleteRange,
}

struct Write {
    kind: Kind,
    target: Arc<Target>,
    /// Where the key ends in the bytes, and where the value does.
    ends: (usize, usize),
}

/// Writes in their order.
#[derive(Default)]
struct Writes {
    bytes: Vec<u8>,
    writes: Vec<Write>,
}

impl Writes {
    fn push(&mut self, kind: Kind, target: &Arc<Target>, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        let ends = (key_end, self.bytes.len());
        self.writes.push(Write { kind, target: Arc::clone(target), ends });
    }

    fn append(&mut self, other: &Writes) {
        let mut start = 0;
        for write in &other.writes {
            let (key_end, end) = write.ends;
            let (key, value) = (&other.bytes[start..key_end], &other.bytes[key_end..end]);
            self.push(write.kind, &write.target, key, value);
            start = end;
        }
    }

    fn commit(&self, handle: &Handle, durability: Option<Durability>) -> Result<()> {
        let db = handle.db()?;
        let mut batch = db.batch();
        let mut last: Option<(&Arc<Target>, lithify::ColumnFamily)> = None;
        let mut start = 0;
        for write in &self.writes {
            if !last.as_ref().is_some_and(|(target, _)| Arc::ptr_eq(target, &write.target)) {
                last = Some((&write.target, write.target.for_writing()?));
            }
            let Some((_, family)) = &last else { continue };
            let (key_end, end) = write.ends;
            let (key, value) = (&self.bytes[start..key_end], &self.bytes[key_end..end]);
            start = end;
            match write.kind {
                Kind::Put => batch.put(family, key, value),
                Kind::Delete => batch.delete(family, key),
                Kind::Merge => batch.merge(family, key, value),
                Kind::DeleteRange => batch.delete_range(family, key, value),
            };
        }
        match durability {
            Some(durability) => Ok(batch.commit_with(durability)?),
            None => Ok(batch.commit()?),
        }
    }
}

struct Shared {
    handle: Arc<Handle>,
    writes: Mutex<Writes>,
    durability: Option<Durability>,
}

/// A column family in a batch.
#[pyclass(frozen, module = "lithify")]
pub struct Batch {
    shared: Arc<Shared>,
    target: Arc<Target>,
}

impl Batch {
    /// An empty one.
    pub fn new(handle: &Arc<Handle>, target: Arc<Target>, durability: Option<Durability>) -> Batch {
        let (handle, writes) = (Arc::clone(handle), Mutex::default());
        Batch { shared: Arc::new(Shared { handle, writes, durability }), target }
    }

    fn push(&self, py: Python<'_>, kind: Kind, key: &[u8], value: &[u8]) -> PyResult<()> {
        self.shared.handle.check_open()?;
        lock(self.shared.writes.lock_py_attached(py)).push(kind, &self.target, key, value);
        Ok(())
    }
}

#[pymethods]
impl Batch {
    /// Another column family in the same batch: itself or its name.
    fn column_family(&self, py: Python<'_>, family: FamilyArgument) -> PyResult<Batch> {
        let handle = &self.shared.handle;
        let target = detached(py, || family.target(handle, &handle.db()?))?;
        Ok(Batch { shared: Arc::clone(&self.shared), target })
    }

    /// Sets the value of a key.
    fn put(&self, py: Python<'_>, key: BytesLike<'_>, value: BytesLike<'_>) -> PyResult<()> {
        self.push(py, Kind::Put, key.as_slice(), value.as_slice())
    }

    /// Removes a key; no error if it is not there.
    fn delete(&self, py: Python<'_>, key: BytesLike<'_>) -> PyResult<()> {
        self.push(py, Kind::Delete, key.as_slice(), &[])
    }

    /// Adds an operand to a key.
    fn merge(&self, py: Python<'_>, key: BytesLike<'_>, operand: BytesLike<'_>) -> PyResult<()> {
        self.push(py, Kind::Merge, key.as_slice(), operand.as_slice())
    }

    /// Removes all keys from `start` on, up to but without `stop`.
    fn delete_range(
        &self,
        py: Python<'_>,
        start: BytesLike<'_>,
        stop: BytesLike<'_>,
    ) -> PyResult<()> {
        self.push(py, Kind::DeleteRange, start.as_slice(), stop.as_slice())
    }

    fn __setitem__(
        &self,
        py: Python<'_>,
        key: BytesLike<'_>,
        value: BytesLike<'_>,
    ) -> PyResult<()> {
        self.put(py, key, value)
    }

    fn __delitem__(&self, py: Python<'_>, key: BytesLike<'_>) -> PyResult<()> {
        self.delete(py, key)
    }

    /// Puts all rows of a mapping, or of an iterable of pairs.
    fn update(&self, py: Python<'_>, rows: &Bound<'_, PyAny>) -> PyResult<()> {
        each_row(rows, |key, value| self.push(py, Kind::Put, key.as_slice(), value.as_slice()))
    }

    /// Adds all writes of another batch of the same database.
    fn append(&self, py: Python<'_>, other: &Bound<'_, Batch>) -> PyResult<()> {
        self.shared.handle.check_open()?;
        let other = &other.get().shared;
        if !Arc::ptr_eq(&self.shared.handle, &other.handle) {
            let what = lithify::Error::invalid("the other batch is of another database");
            return Err(Failure::from(what).into());
        }
        let copy = {
            let mut copy = Writes::default();
            let other = lock(other.writes.lock_py_attached(py));
            copy.append(&other);
            copy
        };
        lock(self.shared.writes.lock_py_attached(py)).append(&copy);
        Ok(())
    }

    /// Forgets all writes.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.shared.handle.check_process()?;
        *lock(self.shared.writes.lock_py_attached(py)) = Writes::default();
        Ok(())
    }

    /// When its commit is acknowledged, if not as the database's option says.
    #[getter]
    fn durability(&self) -> Option<String> {
        self.shared.durability.map(|durability| durability.to_string())
    }

    /// Bytes of keys and values in it.
    #[getter]
    fn size_bytes(&self, py: Python<'_>) -> PyResult<usize> {
        self.shared.handle.check_open()?;
        Ok(lock(self.shared.writes.lock_py_attached(py)).bytes.len())
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.shared.handle.check_open()?;
        Ok(lock(self.shared.writes.lock_py_attached(py)).writes.len())
    }

    fn __bool__(&self) -> bool {
        true
    }

    /// Makes all writes visible together. The batch is empty then; if it fails it is as it was.
    #[pyo3(signature = (*, durability=None))]
    fn commit(&self, py: Python<'_>, durability: Option<&str>) -> PyResult<()> {
        let durability = settings::durability(durability)?.or(self.shared.durability);
        detached(py, || {
            self.shared.handle.check_open()?;
            let mut writes = lock(self.shared.writes.lock());
            writes.commit(&self.shared.handle, durability)?;
            *writes = Writes::default();
            Ok(())
        })
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    /// Commits, unless the block ended by an exception, which goes through whatever became of the database.
    #[pyo3(signature = (kind, _value, _traceback))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<Bound<'_, PyAny>>,
        _value: Option<Bound<'_, PyAny>>,
        _traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        match kind {
            Some(_) => {
                let _ = self.clear(py);
                Ok(())
            }
            None => self.commit(py, None),
        }
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(not_picklable("a batch"))
    }
}
