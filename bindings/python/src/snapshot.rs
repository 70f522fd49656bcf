//! Snapshots: the rows of one moment, for as long as they are wanted.
//!
//! Owns: [`Moment`], shared by the views of a snapshot on several families, and the class of a view.

use std::sync::{Arc, PoisonError, RwLock};

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors::{Failure, Result, detached};
use crate::family::FamilyArgument;
use crate::forks::Native;
use crate::handle::{Handle, Target};
use crate::rows::{Rows, Source};

/// A point in time, until it is closed.
pub struct Moment {
    taken: RwLock<Option<Native<Taken>>>,
}

/// A snapshot, and the state of the database that it is of: a refresh may have moved the database on.
struct Taken {
    db: lithify::Db,
    snapshot: lithify::Snapshot,
}

impl Moment {
    fn new(db: lithify::Db) -> Moment {
        let snapshot = db.snapshot();
        Moment { taken: RwLock::new(Some(Native::new(Taken { db, snapshot }))) }
    }

    /// Reads at it.
    pub fn read<T>(&self, read: impl FnOnce(&lithify::Snapshot) -> Result<T>) -> Result<T> {
        self.with(|taken| read(&taken.snapshot))
    }

    fn with<T>(&self, act: impl FnOnce(&Taken) -> Result<T>) -> Result<T> {
        let taken = self.taken.read().unwrap_or_else(PoisonError::into_inner);
        act(taken.as_ref().ok_or(Failure::Closed("the snapshot"))?.get()?)
    }

    fn close(&self) {
        *self.taken.write().unwrap_or_else(PoisonError::into_inner) = None;
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
    let moment = detached(py, || Ok(Arc::new(Moment::new(handle.db()?))))?;
    view(py, handle, moment, |_| Ok(target))
}

fn view(
    py: Python<'_>,
    handle: &Arc<Handle>,
    moment: Arc<Moment>,
    target: impl FnOnce(&lithify::Db) -> Result<Arc<Target>> + Send,
) -> PyResult<Py<Snapshot>> {
    let (target, family) = detached(py, || {
        handle.check_open()?;
        moment.with(|taken| {
            let target = target(&taken.db)?;
            let family = target.family_in(&taken.db)?;
            Ok((target, family.map(Native::new)))
        })
    })?;
    let rows = Rows::new(Source::Snapshot(Arc::clone(&moment), target, family));
    let snapshot = Snapshot { handle: Arc::clone(handle), moment };
    Py::new(py, PyClassInitializer::from(rows).add_subclass(snapshot))
}

#[pymethods]
impl Snapshot {
    /// Another column family at the same moment: itself or its name.
    fn column_family(&self, py: Python<'_>, family: FamilyArgument) -> PyResult<Py<Snapshot>> {
        view(py, &self.handle, Arc::clone(&self.moment), |db| family.target(&self.handle, db))
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
