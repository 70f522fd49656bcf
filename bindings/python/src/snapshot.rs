//! Snapshots: the rows of one moment, for as long as they are wanted.
//!
//! Owns: [`Moment`], shared by the views of a snapshot on several families, and the class of a view.

use std::sync::{Arc, PoisonError, RwLock};

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors::{Failure, Result, detached};
use crate::family::FamilyName;
use crate::forks::Native;
use crate::handle::{Handle, Target};
use crate::rows::{Rows, Source};

/// A point in time, until it is closed.
pub struct Moment {
    snapshot: RwLock<Option<Native<lithify::Snapshot>>>,
}

impl Moment {
    /// Reads at it.
    pub fn read<T>(&self, read: impl FnOnce(&lithify::Snapshot) -> Result<T>) -> Result<T> {
        let snapshot = self.snapshot.read().unwrap_or_else(PoisonError::into_inner);
        read(snapshot.as_ref().ok_or(Failure::Closed("the snapshot"))?.get()?)
    }

    fn close(&self) {
        *self.snapshot.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// The rows of a column family at one moment.
#[pyclass(frozen, extends = Rows, module = "lithify")]
pub struct Snapshot {
    handle: Arc<Handle>,
    moment: Arc<Moment>,
}

/// The present of a database, to be read later.
pub fn take(py: Python<'_>, handle: &Arc<Handle>, target: Arc<Target>) -> PyResult<Py<Snapshot>> {
    let moment = detached(py, || {
        let snapshot = handle.db()?.snapshot();
        Ok(Arc::new(Moment { snapshot: RwLock::new(Some(Native::new(snapshot))) }))
    })?;
    view(py, handle, moment, target)
}

fn view(
    py: Python<'_>,
    handle: &Arc<Handle>,
    moment: Arc<Moment>,
    target: Arc<Target>,
) -> PyResult<Py<Snapshot>> {
    let family = detached(py, || target.existing())?.map(Native::new);
    let rows = Rows::new(Source::Snapshot(Arc::clone(&moment), target, family));
    let snapshot = Snapshot { handle: Arc::clone(handle), moment };
    Py::new(py, PyClassInitializer::from(rows).add_subclass(snapshot))
}

#[pymethods]
impl Snapshot {
    /// Another column family at the same moment: itself or its name.
    fn column_family(&self, py: Python<'_>, family: FamilyName) -> PyResult<Py<Snapshot>> {
        let target = family.open(py, &self.handle)?;
        view(py, &self.handle, Arc::clone(&self.moment), target)
    }

    /// The sequence number that it reads at.
    #[getter]
    fn sequence(&self, py: Python<'_>) -> PyResult<u64> {
        detached(py, || {
            self.handle.check_process()?;
            self.moment.read(|snapshot| Ok(snapshot.sequence()))
        })
    }

    /// Gives the moment up: rows that nobody else sees may go.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || {
            self.handle.check_process()?;
            self.moment.close();
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
}
