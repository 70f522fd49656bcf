//! Column families: mappings of bytes to bytes that are written, too.
//!
//! Owns: the class [`ColumnFamily`], and how rows and families come in as arguments.

use std::sync::Arc;

use lithify::{CfOptions, Durability, ErrorKind, KEY_SIZE_MAX};
use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyBytes, PyDict, PyTuple};

use crate::arguments::Given;
use crate::bytes::{BytesLike, to_bytes};
use crate::errors::{Result, detached, is_there};
use crate::handle::{Handle, Target};
use crate::ingest;
use crate::range::Bounds;
use crate::report::{self, report};
use crate::rows::{Rows, Source};
use crate::settings;

/// So many rows of one `update` become visible together,
const UPDATE_ROWS: usize = 1024;
/// or fewer, of so many bytes: a batch has to fit into half of the memory budget.
const UPDATE_BYTES: usize = 1 << 20;

/// A column family as an argument.
pub enum FamilyArgument {
    /// As itself.
    Itself(Arc<Target>),
    /// By its name.
    Named(String),
}

impl<'a, 'py> FromPyObject<'a, 'py> for FamilyArgument {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(rows) = object.cast::<ColumnFamily>() {
            return Ok(FamilyArgument::Itself(Arc::clone(&rows.get().target)));
        }
        let name = object.extract::<String>();
        name.map(FamilyArgument::Named)
            .map_err(|_| PyTypeError::new_err("a column family is given as itself or by its name"))
    }
}

impl FamilyArgument {
    /// The family in a state of a database, where it has to be.
    pub fn target(self, handle: &Arc<Handle>, db: &lithify::Db) -> Result<Arc<Target>> {
        match self {
            FamilyArgument::Named(name) => {
                Ok(Arc::new(Target::named(Arc::clone(handle), db, &name)?))
            }
            FamilyArgument::Itself(target) if Arc::ptr_eq(handle, target.handle()) => {
                target.family_in(db)?;
                Ok(target)
            }
            FamilyArgument::Itself(target) => {
                let name = target.name();
                let what = format!("the column family {name:?} belongs to another database");
                Err(lithify::Error::invalid(what).into())
            }
        }
    }
}

/// That a key has no value.
pub fn key_error(py: Python<'_>, key: &BytesLike<'_>) -> PyErr {
    PyKeyError::new_err(PyBytes::new(py, key.as_slice()).unbind())
}

/// Each row of a mapping, or of an iterable of pairs.
pub fn each_row<'py>(
    rows: &Bound<'py, PyAny>,
    mut each: impl FnMut(BytesLike<'py>, BytesLike<'py>) -> PyResult<()>,
) -> PyResult<()> {
    let pairs = match rows.hasattr("items")? {
        true => rows.call_method0("items")?,
        false => rows.clone(),
    };
    for pair in pairs.try_iter()? {
        let pair = pair?;
        let pair = pair.cast::<PyTuple>().map_or_else(
            |_| pair.try_iter()?.collect::<PyResult<Vec<_>>>(),
            |pair| Ok(pair.iter().collect()),
        )?;
        let [key, value] = pair.as_slice() else {
            return Err(PyTypeError::new_err("rows are pairs of a key and a value"));
        };
        each(key.extract()?, value.extract()?)?;
    }
    Ok(())
}

/// A column family: an ordered mapping of its own in a database.
#[pyclass(frozen, subclass, extends = Rows, mapping, module = "lithify")]
pub struct ColumnFamily {
    target: Arc<Target>,
}

impl ColumnFamily {
    /// What makes an object of this class, and of those derived from it.
    pub fn initializer(target: Arc<Target>) -> PyClassInitializer<ColumnFamily> {
        let rows = Rows::new(Source::Family(Arc::clone(&target)));
        PyClassInitializer::from(rows).add_subclass(ColumnFamily { target })
    }

    fn write<T: Send>(
        &self,
        py: Python<'_>,
        write: impl FnOnce(&lithify::ColumnFamily) -> lithify::Result<T> + Send,
    ) -> PyResult<T> {
        detached(py, || Ok(write(&self.target.for_writing()?)?))
    }

    fn write_with(
        &self,
        py: Python<'_>,
        durability: Durability,
        write: impl FnOnce(&mut lithify::Batch<'_>, &lithify::ColumnFamily) + Send,
    ) -> PyResult<()> {
        detached(py, || {
            let (family, db) = (self.target.for_writing()?, self.target.handle().db()?);
            let mut batch = db.batch();
            write(&mut batch, &family);
            Ok(batch.commit_with(durability)?)
        })
    }

    /// Writes to a family that need not be there.
    fn remove(
        &self,
        py: Python<'_>,
        write: impl FnOnce(&lithify::ColumnFamily) -> lithify::Result<()> + Send,
    ) -> PyResult<()> {
        detached(py, || match self.for_removing()? {
            Some(family) => Ok(write(&family)?),
            None => Ok(()),
        })
    }

    /// Removes all rows from `start` on, by one write.
    fn remove_from(&self, py: Python<'_>, start: &[u8]) -> PyResult<()> {
        detached(py, || {
            let Some(family) = self.for_removing()? else { return Ok(()) };
            let mut cursor = family.cursor(start..)?;
            let last = match cursor.seek_to_last() {
                Ok(true) => cursor.key(),
                Ok(false) => return Ok(()),
                // There is a last row, but the cursor stands on none whose operands it cannot fold.
                Err(error) if error.kind() == ErrorKind::Merge => &[u8::MAX; KEY_SIZE_MAX],
                Err(error) => return Err(error.into()),
            };
            if last.len() < KEY_SIZE_MAX {
                return Ok(family.delete_range(start, [last, b"\0"].concat())?);
            }
            // No range ends right behind the longest key.
            let db = self.target.handle().db()?;
            let mut batch = db.batch();
            batch.delete_range(&family, start, last).delete(&family, last);
            Ok(batch.commit()?)
        })
    }

    fn for_removing(&self) -> Result<Option<lithify::ColumnFamily>> {
        match self.target.handle().db()?.is_read_only() {
            true => self.target.for_writing().map(Some),
            false => self.target.existing(),
        }
    }

    fn read<T: Send>(
        &self,
        py: Python<'_>,
        read: impl FnOnce(Option<lithify::ColumnFamily>) -> Result<T> + Send,
    ) -> PyResult<T> {
        detached(py, || read(self.target.existing()?))
    }
}

#[pymethods]
impl ColumnFamily {
    /// Sets the value of a key.
    #[pyo3(signature = (key, value, *, durability=None))]
    fn put(
        &self,
        py: Python<'_>,
        key: BytesLike<'_>,
        value: BytesLike<'_>,
        durability: Option<&str>,
    ) -> PyResult<()> {
        let (key, value) = (key.as_slice(), value.as_slice());
        match settings::durability(durability)? {
            None => self.write(py, |family| family.put(key, value)),
            Some(durability) => self.write_with(py, durability, |batch, family| {
                batch.put(family, key, value);
            }),
        }
    }

    /// Removes a key; no error if it is not there.
    #[pyo3(signature = (key, *, durability=None))]
    fn delete(&self, py: Python<'_>, key: BytesLike<'_>, durability: Option<&str>) -> PyResult<()> {
        let key = key.as_slice();
        match settings::durability(durability)? {
            None => self.remove(py, |family| family.delete(key)),
            Some(durability) => self.write_with(py, durability, |batch, family| {
                batch.delete(family, key);
            }),
        }
    }

    /// Removes all keys from `start` on, up to but without `stop`, by one write. None is an open end: without
    /// a stop, rows that are put meanwhile may stay.
    fn delete_range(
        &self,
        py: Python<'_>,
        start: Option<BytesLike<'_>>,
        stop: Option<BytesLike<'_>>,
    ) -> PyResult<()> {
        let start = start.as_ref().map_or(&b""[..], BytesLike::as_slice);
        match stop.as_ref().map(BytesLike::as_slice) {
            Some(stop) => self.remove(py, |family| family.delete_range(start, stop)),
            None => self.remove_from(py, start),
        }
    }

    /// Adds an operand to a key without reading it; the family's merge operator makes a value of it.
    fn merge(&self, py: Python<'_>, key: BytesLike<'_>, operand: BytesLike<'_>) -> PyResult<()> {
        let (key, operand) = (key.as_slice(), operand.as_slice());
        self.write(py, |family| family.merge(key, operand))
    }

    /// Sets the value of a key that has none; False if it has one, which stays.
    fn put_if_absent(
        &self,
        py: Python<'_>,
        key: BytesLike<'_>,
        value: BytesLike<'_>,
    ) -> PyResult<bool> {
        let (key, value) = (key.as_slice(), value.as_slice());
        self.write(py, |family| family.put_if_absent(key, value))
    }

    /// Sets the value of a key if it is `expected` now; False if it is not, and the value stays.
    fn compare_and_put(
        &self,
        py: Python<'_>,
        key: BytesLike<'_>,
        expected: BytesLike<'_>,
        value: BytesLike<'_>,
    ) -> PyResult<bool> {
        let (key, expected, value) = (key.as_slice(), expected.as_slice(), value.as_slice());
        self.write(py, |family| family.compare_and_put(key, expected, value))
    }

    /// Removes a key if its value is `expected` now; False if it is not, and the value stays.
    fn compare_and_delete(
        &self,
        py: Python<'_>,
        key: BytesLike<'_>,
        expected: BytesLike<'_>,
    ) -> PyResult<bool> {
        let (key, expected) = (key.as_slice(), expected.as_slice());
        self.write(py, |family| family.compare_and_delete(key, expected))
    }

    fn __setitem__(
        &self,
        py: Python<'_>,
        key: BytesLike<'_>,
        value: BytesLike<'_>,
    ) -> PyResult<()> {
        self.put(py, key, value, None)
    }

    fn __delitem__(&self, py: Python<'_>, key: BytesLike<'_>) -> PyResult<()> {
        let bytes = key.as_slice();
        let is_there = self.read(py, |family| match family {
            Some(family) => is_there(family.contains(bytes)),
            None => Ok(false),
        })?;
        match is_there {
            true => self.delete(py, key, None),
            false => Err(key_error(py, &key)),
        }
    }

    /// The value of a key, which it has no more; `default` if it had none, KeyError without one.
    #[pyo3(signature = (key, default=Given(None)))]
    fn pop<'py>(
        &self,
        py: Python<'py>,
        key: BytesLike<'_>,
        default: Given<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let bytes = key.as_slice();
        let mut old = None;
        self.write(py, |family| {
            family.update(bytes, |value| {
                old = value;
                None::<&[u8]>
            })
        })?;
        match to_bytes(py, old) {
            Some(value) => Ok(value.into_any()),
            None => default.0.ok_or_else(|| key_error(py, &key)),
        }
    }

    /// The first row, which is there no more; KeyError if there is none.
    fn popitem<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let popped = detached(py, || {
            let family = self.target.for_writing()?;
            let mut transaction = self.target.handle().db()?.transaction();
            let row = transaction.lock_first(&family, ..)?;
            if let Some((key, _)) = &row {
                transaction.delete(&family, key)?;
                transaction.commit()?;
            }
            Ok(row)
        })?;
        match popped {
            Some((key, value)) => {
                Ok((PyBytes::new(py, &key).into_any(), PyBytes::new(py, &value).into_any()))
            }
            None => Err(PyKeyError::new_err("there is no row to pop")),
        }
    }

    /// The value of a key; if it has none, `default` becomes it.
    fn setdefault<'py>(
        &self,
        py: Python<'py>,
        key: BytesLike<'_>,
        default: BytesLike<'_>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let (key, default) = (key.as_slice(), default.as_slice());
        let value = self.write(py, |family| {
            family.update(key, |old| Some(old.unwrap_or_else(|| default.into())))
        })?;
        Ok(PyBytes::new(py, value.as_deref().unwrap_or(default)))
    }

    /// Puts all rows of a mapping, or of an iterable of pairs, in batches of 1,024 rows or 1 MiB.
    #[pyo3(signature = (rows=Given(None)))]
    fn update(&self, py: Python<'_>, rows: Given<'_>) -> PyResult<()> {
        let Some(rows) = rows.0 else { return Ok(()) };
        let mut pending: Vec<(BytesLike<'_>, BytesLike<'_>)> = Vec::new();
        let mut pending_bytes = 0;
        each_row(&rows, |key, value| {
            pending_bytes += key.as_slice().len() + value.as_slice().len();
            pending.push((key, value));
            if pending.len() < UPDATE_ROWS && pending_bytes < UPDATE_BYTES {
                return Ok(());
            }
            pending_bytes = 0;
            self.put_together(py, &std::mem::take(&mut pending))
        })?;
        self.put_together(py, &pending)
    }

    /// Removes all rows, by one write. Rows that are put meanwhile may stay.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.remove_from(py, b"")
    }

    /// Writes rows in ascending order of their keys straight into tables: of an iterable of pairs, or of two
    /// columns of an Arrow table. All are visible together at the end. Says what it came to.
    #[pyo3(signature = (rows, *, key=None, value=None))]
    fn ingest<'py>(
        &self,
        py: Python<'py>,
        rows: &Bound<'py, PyAny>,
        key: Option<&str>,
        value: Option<&str>,
    ) -> PyResult<Bound<'py, PyDict>> {
        ingest::ingest(py, &self.target, rows, (key, value))
    }

    /// Writes its memtable to a table and waits for it.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.remove(py, lithify::ColumnFamily::flush)
    }

    /// Compacts the keys from `start` up to `stop`, all without them, and waits for it.
    #[pyo3(signature = (start=None, stop=None))]
    fn compact_range(
        &self,
        py: Python<'_>,
        start: Option<BytesLike<'_>>,
        stop: Option<BytesLike<'_>>,
    ) -> PyResult<()> {
        let start = start.as_ref().map(BytesLike::as_slice);
        let stop = stop.as_ref().map(BytesLike::as_slice);
        self.remove(py, |family| family.compact_range((start, stop)))
    }

    /// About how many rows there are: entries less deletes, older versions counted until they are compacted.
    fn approximate_len(&self, py: Python<'_>) -> PyResult<u64> {
        self.read(py, |family| family.map_or(Ok(0), |family| Ok(family.approximate(..)?.rows)))
    }

    /// About how many bytes the tables of a range take on disk.
    #[pyo3(signature = (start=None, stop=None))]
    fn approximate_size(
        &self,
        py: Python<'_>,
        start: Option<BytesLike<'_>>,
        stop: Option<BytesLike<'_>>,
    ) -> PyResult<u64> {
        let range = Bounds {
            prefix: None,
            start: start.as_ref(),
            stop: stop.as_ref(),
            include_start: true,
            include_stop: false,
        };
        let range = range.to_range();
        self.read(py, |family| family.map_or(Ok(0), |family| Ok(family.approximate(range)?.bytes)))
    }

    /// What compression its levels have, why, and what else it would cost.
    fn explain<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let explained = self.read(py, |family| {
            let explained = family.map(|family| family.explain());
            Ok(explained.map(|explained| (explained.to_json(), format!("{explained:#}"))))
        })?;
        let (json, page) =
            explained.unwrap_or_else(|| ("{}".to_owned(), "nothing was written yet".to_owned()));
        report(py, &json, page)
    }

    /// The options in force, by their names, as text.
    #[getter]
    fn options<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let options = self.read(py, |family| {
            Ok(family.map_or_else(CfOptions::default, |family| family.options()).to_string())
        })?;
        report::options(py, &options)
    }

    fn __repr__(&self) -> String {
        let path = self.target.handle().path().display();
        format!("<lithify.ColumnFamily {:?} of {path}>", self.target.name())
    }
}

impl ColumnFamily {
    fn put_together(
        &self,
        py: Python<'_>,
        rows: &[(BytesLike<'_>, BytesLike<'_>)],
    ) -> PyResult<()> {
        let rows: Vec<(&[u8], &[u8])> =
            rows.iter().map(|(key, value)| (key.as_slice(), value.as_slice())).collect();
        detached(py, || {
            let family = self.target.for_writing()?;
            let db = self.target.handle().db()?;
            let mut batch = db.batch();
            for (key, value) in rows {
                batch.put(&family, key, value);
            }
            Ok(batch.commit()?)
        })
    }
}
