//! What the engine reports of itself, as dictionaries whose text is the engine's page.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

/// A `lithify.Report` of JSON, and the text that it prints as.
pub fn report<'py>(py: Python<'py>, json: &str, text: String) -> PyResult<Bound<'py, PyAny>> {
    static LOADS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    static REPORT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let values = LOADS.import(py, "json", "loads")?.call1((json,))?;
    REPORT.import(py, "lithify._report", "Report")?.call1((values, text))
}

/// Options by their names.
pub fn options<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyDict>> {
    let options = PyDict::new(py);
    for (name, value) in text.split_ascii_whitespace().filter_map(|pair| pair.split_once('=')) {
        options.set_item(name, value)?;
    }
    Ok(options)
}
