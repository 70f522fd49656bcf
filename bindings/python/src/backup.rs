//! Stores of backups, and tools for whole databases.

use std::path::PathBuf;
use std::sync::Mutex;

use lithify::backup::{BackupInfo, BackupOptions, BackupStore, RestoreOptions};
use lithify::repair::{RepairOptions, repair as repair_directory};
use lithify::verify::{VerifyOptions, verify as verify_directory};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::arguments::FilePath;
use crate::db::Db;
use crate::errors::{Failure, Result, detached};
use crate::forks::{Maker, Native};
use crate::iterator::{lock, not_picklable};
use crate::report::report;

/// A directory of backups.
#[pyclass(frozen, module = "lithify", name = "BackupStore")]
pub struct Store {
    path: PathBuf,
    maker: Maker,
    store: Mutex<Option<Native<BackupStore>>>,
}

impl Store {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut BackupStore) -> Result<T> + Send,
    ) -> PyResult<T> {
        detached(py, || {
            self.maker.check()?;
            let mut store = lock(self.store.lock());
            act(store.as_mut().ok_or(Failure::Closed("the store of backups"))?.get_mut()?)
        })
    }
}

fn of_info<'py>(py: Python<'py>, info: &BackupInfo) -> PyResult<Bound<'py, PyDict>> {
    let backup = PyDict::new(py);
    backup.set_item("id", info.id)?;
    backup.set_item("unix_time_s", info.unix_time_s)?;
    backup.set_item("sequence", info.sequence)?;
    backup.set_item("oldest_sequence", info.oldest_sequence)?;
    backup.set_item("note", &info.note)?;
    backup.set_item("files", info.files)?;
    backup.set_item("bytes", info.bytes)?;
    backup.set_item("log_bytes", info.log_bytes)?;
    backup.set_item("copied_bytes", info.copied_bytes)?;
    backup.set_item("own_bytes", info.own_bytes)?;
    Ok(backup)
}

#[pymethods]
impl Store {
    /// Opens the store in a directory, or makes it there.
    #[new]
    #[pyo3(signature = (path, *, read_only=false))]
    fn open(py: Python<'_>, path: FilePath, read_only: bool) -> PyResult<Store> {
        let store = detached(py, || {
            Ok(Native::new(match read_only {
                true => BackupStore::open_read_only(&path)?,
                false => BackupStore::open(&path)?,
            }))
        })?;
        let path = path.as_ref().to_owned();
        Ok(Store { path, maker: Maker::new(), store: Mutex::new(Some(store)) })
    }

    /// Makes a backup of a database while it is used. Tables that the store has already are shared.
    #[pyo3(signature = (db, *, flush=false, check=true, check_shared=false, note=""))]
    fn create<'py>(
        &self,
        py: Python<'py>,
        db: &Bound<'_, Db>,
        flush: bool,
        check: bool,
        check_shared: bool,
        note: &str,
    ) -> PyResult<Bound<'py, PyDict>> {
        let handle = db.get().handle();
        let made = self.with(py, |store| {
            let note = note.to_owned();
            let options =
                BackupOptions { flush, check, check_shared, note, ..BackupOptions::default() };
            Ok(store.create(&handle.db()?, &options)?)
        })?;
        of_info(py, &made.backup)
    }

    /// The backups that can be read, oldest first.
    fn list<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let list = self.with(py, |store| Ok(store.list()?))?;
        list.backups.iter().map(|info| of_info(py, info)).collect()
    }

    /// Makes a database at `path`, which must not be there: of the latest backup, or of that number, with
    /// all commits or those up to a sequence number. Gives the sequence number of its last commit.
    #[pyo3(signature = (path, id=None, *, up_to_sequence=None))]
    fn restore(
        &self,
        py: Python<'_>,
        path: FilePath,
        id: Option<u64>,
        up_to_sequence: Option<u64>,
    ) -> PyResult<u64> {
        self.with(py, |store| {
            let options = RestoreOptions { up_to_sequence, ..RestoreOptions::default() };
            let id = id.or_else(|| store.latest()).ok_or_else(|| {
                let what = "a backup: the store is empty";
                lithify::Error::new(lithify::ErrorKind::NotFound, what).in_file(store.path())
            })?;
            Ok(store.restore(id, &path, &options)?.sequence)
        })
    }

    /// Reads all backups, or one, and gives what is wrong with each: a list of texts by its number, empty
    /// for one that is whole.
    #[pyo3(signature = (id=None))]
    fn verify<'py>(&self, py: Python<'py>, id: Option<u64>) -> PyResult<Bound<'py, PyDict>> {
        let verified = self.with(py, |store| Ok(store.verify(id, &Default::default())?))?;
        let verdicts = PyDict::new(py);
        for verdict in &verified.backups {
            let damage: Vec<String> = verdict.damage.iter().map(ToString::to_string).collect();
            verdicts.set_item(verdict.id, damage)?;
        }
        Ok(verdicts)
    }

    /// Deletes a backup; what others share with it stays.
    fn delete(&self, py: Python<'_>, id: u64) -> PyResult<()> {
        self.with(py, |store| Ok(store.delete(id)?))
    }

    /// Deletes all but the latest `keep` backups, and gives the numbers of those that are gone.
    fn purge(&self, py: Python<'_>, keep: usize) -> PyResult<Vec<u64>> {
        self.with(py, |store| Ok(store.purge(keep)?))
    }

    /// Gives the store up.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || {
            self.maker.check()?;
            drop(lock(self.store.lock()).take());
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
        Err(not_picklable("a store of backups"))
    }

    fn __repr__(&self) -> String {
        format!("<lithify.BackupStore {}>", self.path.display())
    }
}

/// Verifies the database in a directory. `sound` in the report says whether nothing is wrong.
#[pyfunction]
#[pyo3(signature = (path, *, families=Vec::new()))]
pub fn verify(py: Python<'_>, path: FilePath, families: Vec<String>) -> PyResult<Bound<'_, PyAny>> {
    let options = VerifyOptions { families, ..VerifyOptions::default() };
    let found = detached(py, || Ok(verify_directory(&path, &options)?))?;
    report(py, &found.to_json(), found.to_string())
}

/// Writes what can be saved of a damaged database into a new one. `lossless` in the report says whether that
/// is everything.
#[pyfunction]
pub fn repair(py: Python<'_>, source: FilePath, target: FilePath) -> PyResult<Bound<'_, PyAny>> {
    let options = RepairOptions::default();
    let saved = detached(py, || Ok(repair_directory(&source, &target, &options)?))?;
    report(py, &saved.to_json(), saved.to_string())
}
