//! Advice for data that Python has in memory, or in files.
//!
//! Owns: [`advise`], which of Python's objects are rows and how they are laid out, and the keyboard: Ctrl-C
//! ends the measuring.

use std::ops::RangeInclusive;
use std::time::Duration;

use lithify::Objective;
use lithify::Prices;
use lithify_advisor::input::{Memory, Record, Source, Value};
use lithify_advisor::rows::{Row, Rows};
use lithify_advisor::{
    AdviseError, Expectations, Request, Watch, advise_source, json, screen, target,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple};
use std::sync::Mutex;

use crate::bytes::BytesLike;
use crate::columns::Table;
use crate::errors::{Failure, detached};
use crate::report::report;

/// More is beyond what clocks count.
const TIME_MAX: Duration = Duration::from_secs(86_400);

/// Columns of the screen.
const SCREEN_COLUMNS: usize = 100;

/// Measures data and says which compression, block size and effort a database should have for them.
///
/// `data` are rows: bytes or text, pairs of a key and a value, dictionaries of columns, a mapping of bytes
/// such as a Db, an Arrow table or data frame, or a path as a `pathlib.Path`. Fewer than three rows, or less
/// than 64 KiB, are a ValueError.
#[pyfunction]
#[pyo3(signature = (data, *, key=None, targets=None, goal="balanced", time_s=60.0, table=None,
                    reads_per_row=None, months=None, database_bytes=None))]
#[expect(clippy::too_many_arguments, reason = "they are keywords")]
pub fn advise<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    key: Option<Names>,
    targets: Option<Names>,
    goal: &str,
    time_s: f64,
    table: Option<String>,
    reads_per_row: Option<f64>,
    months: Option<f64>,
    database_bytes: Option<f64>,
) -> PyResult<Bound<'py, PyAny>> {
    let is_path = data.hasattr("__fspath__")?;
    let path = match is_path {
        true => data.extract::<std::path::PathBuf>()?,
        false => data.get_type().name()?.to_string().into(),
    };
    let key = key.map_or_else(Vec::new, |names| names.0);
    let mut request = Request::new(path);
    request.goal = goal.to_owned();
    request.prices = prices(goal)?;
    let time = Duration::try_from_secs_f64(time_s).ok().filter(|time| *time <= TIME_MAX);
    request.time = time.ok_or_else(|| {
        let most = TIME_MAX.as_secs();
        PyValueError::new_err(format!("time_s is a number of seconds, at most {most}"))
    })?;
    request.expectations = expectations(reads_per_row, months, database_bytes)?;
    request.targets = targets
        .map_or_else(|| vec!["lithify".to_owned()], |names| names.0)
        .iter()
        .map(|name| target(name))
        .collect::<Result<_, _>>()
        .map_err(Failure::from)?;
    let keyboard = Keyboard::default();
    let advice = if is_path {
        (request.key, request.table) = (key, table);
        detached(py, || Ok(lithify_advisor::advise(&request, &keyboard)?))
    } else {
        if table.is_some() {
            return Err(PyTypeError::new_err("table is of a path: rows in memory are one table"));
        }
        let mut source = source(data, &key)?;
        detached(py, || Ok(advise_source(&mut *source, &request, &keyboard)?))
    };
    let advice = advice.map_err(|error| keyboard.interrupt().unwrap_or(error))?;
    if let Some(reason) = advice.too_little() {
        return Err(PyValueError::new_err(reason));
    }
    let json = json::render(&advice)
        .map_err(|error| PyValueError::new_err(format!("the advice is no JSON: {error}")))?;
    report(py, &json, screen::render(&advice, SCREEN_COLUMNS))
}

/// One name or several.
pub struct Names(Vec<String>);

impl<'a, 'py> FromPyObject<'a, 'py> for Names {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match object.cast::<PyString>() {
            Ok(name) => Ok(Names(vec![name.to_string()])),
            Err(_) => Ok(Names(object.extract()?)),
        }
    }
}

fn prices(goal: &str) -> PyResult<Prices> {
    Ok(match goal {
        "balanced" => Objective::Balanced.prices(),
        "throughput" => Objective::Throughput.prices(),
        "endurance" => Objective::Endurance.prices(),
        "space" => Objective::Space.prices(),
        _ => {
            let what = "goal is balanced, throughput, endurance or space";
            return Err(PyValueError::new_err(format!("{what}, not {goal:?}")));
        }
    })
}

/// What is said of the use, within what the command takes.
fn expectations(
    reads_per_row: Option<f64>,
    months: Option<f64>,
    database_bytes: Option<f64>,
) -> PyResult<Expectations> {
    let sizes = Expectations::DATABASE_BYTES;
    let sizes = *sizes.start() as f64..=*sizes.end() as f64;
    check("reads_per_row", reads_per_row, &Expectations::READS_PER_ROW)?;
    check("months", months, &Expectations::MONTHS)?;
    check("database_bytes", database_bytes, &sizes)?;
    Ok(Expectations { reads_per_row, months, database_bytes, ..Expectations::default() })
}

fn check(name: &str, given: Option<f64>, allowed: &RangeInclusive<f64>) -> PyResult<()> {
    match given.filter(|number| !allowed.contains(number)) {
        None => Ok(()),
        Some(number) => {
            let (least, most) = (allowed.start(), allowed.end());
            let what = format!("{name} is a number from {least} to {most}, not {number}");
            Err(PyValueError::new_err(what))
        }
    }
}

/// Hears of Ctrl-C.
#[derive(Default)]
struct Keyboard {
    interrupt: Mutex<Option<PyErr>>,
}

impl Keyboard {
    fn interrupt(&self) -> Option<PyErr> {
        crate::iterator::lock(self.interrupt.lock()).take()
    }
}

impl Watch for Keyboard {
    fn hear(&self, _stage: &str, _done: u64, _total: u64) -> lithify_advisor::Result<()> {
        Python::attach(|py| py.check_signals()).map_err(|error| {
            *crate::iterator::lock(self.interrupt.lock()) = Some(error);
            AdviseError::data("it was interrupted")
        })
    }
}

/// The rows of an object.
fn source(data: &Bound<'_, PyAny>, key: &[String]) -> PyResult<Box<dyn Source + Send>> {
    if let Some(table) = Table::of(data)? {
        return Ok(Box::new(table.into_source(data.py(), key)?));
    }
    if data.is_instance_of::<PyString>() || data.is_instance_of::<PyBytes>() {
        return Err(PyTypeError::new_err(
            "data are rows: a list of bytes, say; a file is given as pathlib.Path",
        ));
    }
    let mut collected = Collected::new(key);
    if data.is_instance_of::<PyMapping>() || data.hasattr("items")? {
        collected.mapping(data)?;
    } else {
        for row in data.try_iter()? {
            collected.row(&row?)?;
        }
    }
    collected.into_source(key)
}

/// What rows are; all of them are of one kind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bytes,
    Pairs,
    Columns,
}

/// Rows out of Python.
struct Collected<'a> {
    rows: Rows,
    kind: Option<Kind>,
    key: &'a [String],
    columns: Vec<String>,
    record: Record,
}

impl<'a> Collected<'a> {
    fn new(key: &'a [String]) -> Self {
        let (rows, columns) = (Rows::default(), Vec::new());
        Collected { rows, kind: None, key, columns, record: Record::default() }
    }

    fn check_kind(&mut self, kind: Kind) -> PyResult<()> {
        match *self.kind.get_or_insert(kind) == kind {
            true if kind != Kind::Columns && !self.key.is_empty() => Err(PyTypeError::new_err(
                "key names columns: rows are dictionaries or a table then",
            )),
            true => Ok(()),
            false => Err(PyTypeError::new_err(
                "rows are all bytes or text, all pairs of a key and a value, or all dictionaries",
            )),
        }
    }

    /// A mapping of keys to values, or of names to columns.
    fn mapping(&mut self, data: &Bound<'_, PyAny>) -> PyResult<()> {
        for pair in data.call_method0("items")?.try_iter()? {
            let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair?.extract()?;
            if key.is_instance_of::<PyString>() {
                return self.table_of_lists(data);
            }
            self.pair(&key, &value)?;
        }
        Ok(())
    }

    /// Columns side by side: all have one value for each row.
    fn table_of_lists(&mut self, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = data.py();
        let (mut names, mut columns) = (Vec::new(), Vec::new());
        for pair in data.call_method0("items")?.try_iter()? {
            let (name, column): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair?.extract()?;
            names.push(name);
            columns.push(PyList::new(py, column.try_iter()?.collect::<PyResult<Vec<_>>>()?)?);
        }
        let rows = columns.first().map_or(0, |column| column.len());
        if columns.iter().any(|column| column.len() != rows) {
            return Err(PyValueError::new_err(
                "columns have one value for each row: lengths differ",
            ));
        }
        for row in 0..rows {
            let values = PyDict::new(py);
            for (name, column) in names.iter().zip(&columns) {
                values.set_item(name, column.get_item(row)?)?;
            }
            self.columns_of(&values)?;
        }
        Ok(())
    }

    fn row(&mut self, row: &Bound<'_, PyAny>) -> PyResult<()> {
        if let Ok(row) = row.cast::<PyDict>() {
            return self.columns_of(row);
        }
        if let Ok(pair) = row.cast::<PyTuple>() {
            if pair.len() != 2 {
                return Err(PyTypeError::new_err(
                    "tuples are pairs of a key and a value; rows of columns are dictionaries",
                ));
            }
            return self.pair(&pair.get_item(0)?, &pair.get_item(1)?);
        }
        self.check_kind(Kind::Bytes)?;
        let number = (self.rows.len() as u64).to_be_bytes();
        let text;
        let bytes;
        let value = match row.cast::<PyString>() {
            Ok(row) => {
                text = row.to_string();
                text.as_bytes()
            }
            Err(_) => {
                bytes = row.extract::<BytesLike<'_>>()?;
                bytes.as_slice()
            }
        };
        let data_bytes = value.len() as u64;
        self.rows.push(Row {
            key: &number,
            partition_bytes: number.len(),
            value,
            data_bytes,
            file_bytes: 0,
        });
        Ok(())
    }

    fn pair(&mut self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.check_kind(Kind::Pairs)?;
        let (key, value): (BytesLike<'_>, BytesLike<'_>) = (key.extract()?, value.extract()?);
        let (key, value) = (key.as_slice(), value.as_slice());
        let data_bytes = (key.len() + value.len()) as u64;
        self.rows.push(Row { key, partition_bytes: key.len(), value, data_bytes, file_bytes: 0 });
        Ok(())
    }

    /// A row of typed columns, those of the first row.
    fn columns_of(&mut self, row: &Bound<'_, PyDict>) -> PyResult<()> {
        self.check_kind(Kind::Columns)?;
        if self.columns.is_empty() {
            self.columns = row.keys().extract()?;
            let column = |name: &String| {
                self.columns.iter().position(|column| column == name).ok_or_else(|| {
                    let names = self.columns.join(", ");
                    PyValueError::new_err(format!("no column {name:?}; there are: {names}"))
                })
            };
            self.record = Record::new(self.key.iter().map(column).collect::<PyResult<_>>()?);
        }
        self.record.clear();
        for name in &self.columns {
            match row.get_item(name)? {
                Some(value) => push(&mut self.record, name, &value)?,
                None => self.record.push(Value::Null),
            }
        }
        self.rows.push(self.record.row(self.rows.len() as u64));
        Ok(())
    }

    fn into_source(self, key: &[String]) -> PyResult<Box<dyn Source + Send>> {
        let (format, key) = match self.kind {
            Some(Kind::Columns) => {
                (format!("rows of {} columns", self.columns.len()), key.join(", "))
            }
            Some(Kind::Pairs) => ("keys and values".to_owned(), "its keys".to_owned()),
            _ => ("rows of bytes".to_owned(), String::new()),
        };
        let memory = Memory::new(self.rows, &format, &key).map_err(Failure::from)?;
        Ok(Box::new(memory))
    }
}

/// A value of a column: what Python has for what databases store.
fn push(record: &mut Record, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    if value.is_none() {
        record.push(Value::Null);
    } else if let Ok(value) = value.cast::<PyBool>() {
        record.push(Value::Whole(value.is_true().into(), 1));
    } else if value.is_instance_of::<PyInt>() {
        match value.extract::<i64>() {
            Ok(number) => record.push(Value::Whole(number, 8)),
            Err(_) => record.push(Value::Text(value.str()?.to_string().as_bytes())),
        }
    } else if let Ok(value) = value.cast::<PyFloat>() {
        record.push(Value::Float(value.value(), false));
    } else if let Ok(value) = value.extract::<BytesLike<'_>>() {
        record.push(Value::Text(value.as_slice()));
    } else if value.is_instance_of::<PyString>() {
        record.push(Value::Text(value.str()?.to_string().as_bytes()));
    } else {
        let kind = value.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "the column {name:?} has a {kind}: columns are None, bool, int, float, str or bytes"
        )));
    }
    Ok(())
}
