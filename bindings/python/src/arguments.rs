//! Arguments that Python has in more than one form.
//!
//! Owns: [`FilePath`], and [`Given`], which tells an argument that was left out from None.

use std::path::{Path, PathBuf};

use pyo3::prelude::*;

/// A path: text, bytes as the system has them, or an object that has one.
pub struct FilePath(PathBuf);

impl AsRef<Path> for FilePath {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for FilePath {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let text = object.py().import("os")?.call_method1("fsdecode", (object,))?;
        Ok(FilePath(text.extract()?))
    }
}

/// An argument that may be left out.
pub struct Given<'py>(pub Option<Bound<'py, PyAny>>);

impl<'a, 'py> FromPyObject<'a, 'py> for Given<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        Ok(Given(Some(object.to_owned())))
    }
}
