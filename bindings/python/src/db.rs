//! The database.
//!
//! Owns: the class [`Db`], which is its own default column family, and opening it.

use std::ffi::OsString;
use std::sync::Arc;

use lithify::{CfOptions, CheckpointOptions, DEFAULT_FAMILY, TableTransfer};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::arguments::FilePath;
use crate::batch::Batch;
use crate::errors::{Result, detached};
use crate::family::ColumnFamily;
use crate::handle::{Handle, Target};
use crate::report::{self, report};
use crate::settings::{FamilyOptions, Settings, durability, family_options};
use crate::snapshot::{self, Snapshot};
use crate::transaction::{self, Manner, Transaction};

/// An open database, and its default column family.
#[pyclass(frozen, extends = ColumnFamily, mapping, subclass, module = "lithify")]
pub struct Db {
    handle: Arc<Handle>,
}

impl Db {
    fn default_target(&self) -> Arc<Target> {
        Arc::new(Target::default_of(Arc::clone(&self.handle)))
    }

    /// What all objects of the database share.
    pub fn handle(&self) -> &Arc<Handle> {
        &self.handle
    }
}

/// Gives a family the options that were named; makes it if it is not there.
fn with_options(db: &lithify::Db, name: &str, options: &FamilyOptions) -> Result<()> {
    let present = db.existing_column_family(name)?.map(|family| family.options());
    db.column_family(name, options.over(&present.unwrap_or_default())?)?;
    Ok(())
}

#[pymethods]
impl Db {
    /// Opens the database in a directory, or makes it there. With `read_only` it is opened beside whoever
    /// writes it, in the state that is on disk now.
    #[new]
    #[pyo3(signature = (path, *, read_only=false, options="", **settings))]
    fn open(
        py: Python<'_>,
        path: FilePath,
        read_only: bool,
        options: &str,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyClassInitializer<Db>> {
        let Settings { database, family } = Settings::new(options, settings)?;
        let handle = detached(py, || {
            let db = match read_only {
                true => lithify::Db::open_read_only(&path, database)?,
                false => lithify::Db::open(&path, database)?,
            };
            if let Some(family) = family
                && !read_only
            {
                with_options(&db, DEFAULT_FAMILY, &family)?;
            }
            Ok(Arc::new(Handle::new(db)))
        })?;
        let target = Arc::new(Target::default_of(Arc::clone(&handle)));
        Ok(ColumnFamily::initializer(target).add_subclass(Db { handle }))
    }

    /// The directory.
    #[getter]
    fn path(&self) -> OsString {
        self.handle.path().as_os_str().to_owned()
    }

    /// Whether it was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.handle.is_closed()
    }

    /// Whether it was opened for reading only.
    #[getter]
    fn read_only(&self, py: Python<'_>) -> PyResult<bool> {
        detached(py, || Ok(self.handle.db()?.is_read_only()))
    }

    /// The options that it was opened with, by their names, as text.
    #[getter]
    fn database_options<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let options = detached(py, || Ok(self.handle.db()?.options().to_string()))?;
        report::options(py, &options)
    }

    /// Closes the database. What was made of it, iterators too, gives ClosedError then.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || self.handle.close())
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_arguments))]
    fn __exit__(&self, py: Python<'_>, _arguments: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    /// A column family: made if it is not there, unless `create` is False. It gets the options that are named,
    /// and keeps the others that it has.
    #[pyo3(signature = (name, *, create=true, options="", **settings))]
    fn column_family(
        &self,
        py: Python<'_>,
        name: &str,
        create: bool,
        options: &str,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<ColumnFamily>> {
        let options = family_options(options, settings)?;
        let target = detached(py, || {
            let db = self.handle.db()?;
            let is_there = db.existing_column_family(name)?.is_some();
            match options {
                Some(options) if is_there || create => {
                    with_options(&db, name, &options)?;
                }
                None if create => {
                    db.column_family_or_create(name, CfOptions::default())?;
                }
                _ => {}
            }
            Ok(Arc::new(Target::named(Arc::clone(&self.handle), &db, name)?))
        })?;
        Py::new(py, ColumnFamily::initializer(target))
    }

    /// The names of all column families, in the order they were made.
    fn column_families(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        detached(py, || Ok(self.handle.db()?.column_family_names()))
    }

    /// Drops a column family with everything in it.
    fn drop_column_family(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        detached(py, || self.handle.drop_family(name))
    }

    /// Writes that become visible together, at the end of its `with` block or by `commit`.
    #[pyo3(signature = (*, durability=None))]
    fn batch(&self, durability: Option<&str>) -> PyResult<Batch> {
        let durability = self::durability(durability)?;
        self.handle.check_open()?;
        Ok(Batch::new(&self.handle, self.default_target(), durability))
    }

    /// A transaction, committed at the end of its `with` block and rolled back by an exception. An optimistic
    /// one takes no locks; its commit gives ConflictError if what it has read was written since.
    #[pyo3(signature = (*, optimistic=false, snapshot=false, lock_timeout_ms=None, durability=None))]
    fn transaction(
        &self,
        py: Python<'_>,
        optimistic: bool,
        snapshot: bool,
        lock_timeout_ms: Option<u64>,
        durability: Option<&str>,
    ) -> PyResult<Py<Transaction>> {
        let manner = Manner {
            is_optimistic: optimistic,
            at_snapshot: snapshot,
            lock_timeout_ms,
            durability: self::durability(durability)?,
        };
        transaction::begin(py, &self.handle, self.default_target(), manner)
    }

    /// The present, to be read later.
    fn snapshot(&self, py: Python<'_>) -> PyResult<Py<Snapshot>> {
        snapshot::take(py, &self.handle, self.default_target())
    }

    /// Makes all logged writes durable.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || Ok(self.handle.db()?.sync()?))
    }

    /// Writes the memtables of all column families to tables and waits for it.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || Ok(self.handle.db()?.flush()?))
    }

    /// Waits until nothing is left to flush or compact.
    fn wait_for_compaction(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || Ok(self.handle.db()?.wait_for_compaction()?))
    }

    /// Moves a database that was opened for reading on to the state that is on disk now. Iterators, cursors
    /// and snapshots that were taken before stay at the state that they had.
    fn refresh(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || self.handle.refresh())
    }

    /// What everything has cost so far: figures by their names, which print as a table per level.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (json, page) = detached(py, || {
            let stats = self.handle.db()?.stats();
            Ok((stats.to_json(), stats.to_string()))
        })?;
        report(py, &json, page)
    }

    /// The figures as Prometheus reads them.
    fn metrics(&self, py: Python<'_>) -> PyResult<String> {
        detached(py, || Ok(self.handle.db()?.stats().to_prometheus()))
    }

    /// The same figures as OpenMetrics 1.0.0.
    fn open_metrics(&self, py: Python<'_>) -> PyResult<String> {
        detached(py, || Ok(self.handle.db()?.stats().to_open_metrics()))
    }

    /// Makes a database of its own at `path`, which must not be there, with everything committed so far.
    /// Tables are linked, so that it takes no space at first; `copy` makes it independent of this disk.
    #[pyo3(signature = (path, *, flush=false, copy=false))]
    fn checkpoint<'py>(
        &self,
        py: Python<'py>,
        path: FilePath,
        flush: bool,
        copy: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let made = detached(py, || {
            let tables = if copy { TableTransfer::Copy } else { TableTransfer::Link };
            let options = CheckpointOptions { flush, tables, ..CheckpointOptions::default() };
            Ok(self.handle.db()?.checkpoint_with(&path, &options)?)
        })?;
        let report = PyDict::new(py);
        report.set_item("path", made.path.into_os_string())?;
        report.set_item("sequence", made.sequence)?;
        report.set_item("linked_tables", made.linked_tables)?;
        report.set_item("linked_bytes", made.linked_bytes)?;
        report.set_item("copied_tables", made.copied_tables)?;
        report.set_item("log_bytes", made.log_bytes)?;
        Ok(report)
    }

    fn __repr__(&self) -> String {
        let state = if self.handle.is_closed() { " (closed)" } else { "" };
        format!("<lithify.Db {}{state}>", self.handle.path().display())
    }
}
