//! What goes wrong, as exceptions.
//!
//! Owns: [`Failure`], what calls give without the interpreter, and its exception: a class of
//! `lithify._errors` by the engine's [`ErrorKind`], with what to do behind what happened. The classes are
//! written in Python, since most of them have two bases.

use lithify::ErrorKind;
use lithify_advisor::AdviseError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use std::collections::HashMap;
use std::error::Error as _;

/// What calls into the engine give.
pub type Result<T> = std::result::Result<T, Failure>;

/// Why a call failed.
#[derive(Debug)]
pub enum Failure {
    /// The engine says so.
    Engine(lithify::Error),
    /// What is used was closed or has ended; what it is.
    Closed(&'static str),
    /// It was opened by a process that this one is a fork of.
    Forked,
    /// The advisor says so.
    Advice(AdviseError),
    /// Python says so.
    Python(PyErr),
}

impl From<lithify::Error> for Failure {
    fn from(error: lithify::Error) -> Self {
        Failure::Engine(error)
    }
}

impl From<AdviseError> for Failure {
    fn from(error: AdviseError) -> Self {
        Failure::Advice(error)
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Failure::Python(error)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        Python::attach(|py| {
            match failure {
            Failure::Python(error) => error,
            Failure::Engine(error) => of_engine(py, &error),
            Failure::Closed(what) => {
                named(py, "ClosedError", format!("{what} is closed: open or make it again"))
            }
            Failure::Forked => named(
                py,
                "ForkedError",
                "the database was opened before a fork: threads and locks do not survive one. Open it in \
                 the child, with read_only=True while the parent has it open"
                    .to_owned(),
            ),
            Failure::Advice(error) => {
                let name = if error.is_usage() { "InvalidArgumentError" } else { "AdviceError" };
                named(py, name, error.to_string())
            }
        }
        })
    }
}

/// An exception of `lithify._errors`.
fn named(py: Python<'_>, name: &str, text: String) -> PyErr {
    match class(py, name) {
        Ok(class) => PyErr::from_type(class, text),
        Err(error) => error,
    }
}

fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyType>> {
    static CLASSES: PyOnceLock<HashMap<String, Py<PyType>>> = PyOnceLock::new();
    let classes = CLASSES.get_or_try_init(py, || {
        let module = py.import("lithify._errors")?;
        let all: Vec<String> = module.getattr("__all__")?.extract()?;
        let class = |name: String| {
            let class = module.getattr(name.as_str())?.cast_into::<PyType>()?;
            PyResult::Ok((name, class.unbind()))
        };
        all.into_iter().map(class).collect::<PyResult<_>>()
    })?;
    match classes.get(name) {
        Some(class) => Ok(class.bind(py).clone()),
        None => Ok(py.import("lithify._errors")?.getattr("Error")?.cast_into()?),
    }
}

/// The class of a kind, and what its user does.
fn class_and_advice(kind: ErrorKind) -> (&'static str, &'static str) {
    match kind {
        ErrorKind::InvalidArgument => ("InvalidArgumentError", ""),
        ErrorKind::LimitExceeded => ("LimitExceededError", ""),
        ErrorKind::NotFound => ("NotFoundError", ""),
        ErrorKind::AlreadyExists => ("AlreadyExistsError", ""),
        ErrorKind::Corruption => {
            ("CorruptionError", "Restore the file from a backup, or use lithify.repair()")
        }
        ErrorKind::Unsupported => ("UnsupportedError", "Upgrade lithify"),
        ErrorKind::Io => ("IOError", "See the system's error"),
        ErrorKind::NoSpace => {
            ("NoSpaceError", "Free space: the database then writes again without being reopened")
        }
        ErrorKind::Locked => (
            "LockedError",
            "One process writes: close it there, or open with read_only=True beside it",
        ),
        ErrorKind::LockTimeout => ("LockTimeoutError", "Roll back, and try the transaction again"),
        ErrorKind::Deadlock => ("DeadlockError", "Roll back, and try the transaction again"),
        ErrorKind::Conflict => ("ConflictError", "Roll back, and try the transaction again"),
        ErrorKind::Closed => ("ClosedError", "Open it again"),
        ErrorKind::ReadOnly => {
            ("ReadOnlyError", "Open it for writing, where the directory may be written")
        }
        ErrorKind::Poisoned => ("PoisonedError", "Close and reopen the database"),
        ErrorKind::TryAgain => ("TryAgainError", "Call again"),
        ErrorKind::Cancelled => ("CancelledError", ""),
        ErrorKind::Merge => {
            ("MergeError", "Open the column family with its merge operator, or put the row anew")
        }
        ErrorKind::CompactionFilter => ("Error", ""),
        _ => ("Error", ""),
    }
}

fn of_engine(py: Python<'_>, error: &lithify::Error) -> PyErr {
    let (name, advice) = class_and_advice(error.kind());
    let text = match advice {
        "" => error.to_string(),
        advice => format!("{error}. {advice}"),
    };
    let exception = named(py, name, text);
    // What cannot be set is no reason to lose the error itself.
    let _ = add_details(py, &exception, error);
    exception
}

/// The number of the system's error that caused it.
fn system_number(error: &lithify::Error) -> Option<i32> {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<std::io::Error>() {
            return error.raw_os_error();
        }
        cause = error.source();
    }
    None
}

/// The file, the offset in it and the system's number, where they are known.
fn add_details(py: Python<'_>, exception: &PyErr, error: &lithify::Error) -> PyResult<()> {
    let value = exception.value(py);
    value.setattr("path", error.path().map(|path| path.as_os_str()))?;
    value.setattr("offset", error.offset())?;
    if let Some(number) = system_number(error)
        && value.hasattr("errno")?
    {
        value.setattr("errno", number)?;
        // What `str` of an error with a number shows.
        value.setattr("strerror", value.getattr("args")?.get_item(0)?)?;
        value.setattr("filename", error.path().map(|path| path.as_os_str()))?;
    }
    Ok(())
}

/// Whether a row was found. One whose operands cannot be folded is there, though it has no value.
pub fn is_there(found: lithify::Result<bool>) -> Result<bool> {
    match found {
        Err(error) if error.kind() == ErrorKind::Merge => Ok(true),
        found => Ok(found?),
    }
}

/// Calls the engine with the interpreter free for other threads.
pub fn detached<T: Send>(py: Python<'_>, call: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    py.detach(call).map_err(PyErr::from)
}
