//! Keys and values as they come from Python.
//!
//! Owns: [`BytesLike`], an argument that is bytes. Nothing else is a key or a value: text has more than one
//! encoding, and numbers sort as their bytes do.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyMemoryView, PyString};

use lithify::Slice;

/// Something with the buffer protocol. `bytes` are lent; of others a copy is made, since they may change
/// while the interpreter runs other threads.
pub struct BytesLike<'py>(Bound<'py, PyBytes>);

impl BytesLike<'_> {
    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl AsRef<[u8]> for BytesLike<'_> {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for BytesLike<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = object.cast::<PyBytes>() {
            return Ok(BytesLike(bytes.to_owned()));
        }
        let py = object.py();
        // A text of numpy has the buffer protocol: code points of 4 bytes each.
        if object.is_instance_of::<PyString>() {
            return Err(not_bytes(&object, ENCODE_TEXT));
        }
        let view = match PyMemoryView::from(&object.to_owned()) {
            Ok(view) => view,
            Err(error) if error.is_instance_of::<PyTypeError>(py) => {
                return Err(not_bytes(&object, advice(&object)));
            }
            // The object has the protocol, but says why it gives nothing; or Ctrl-C came.
            Err(error) => return Err(error),
        };
        if holds_no_data(&view.getattr("format")?.extract::<String>()?) {
            return Err(not_bytes(&object, "its items are text or pointers: encode them"));
        }
        let bytes = py.get_type::<PyBytes>().call1((view,))?;
        Ok(BytesLike(bytes.cast_into()?))
    }
}

const ENCODE_TEXT: &str = "encode the text: text.encode()";

/// Whether items of a buffer are code points or point elsewhere, by their format: objects (`O`), code points
/// (`u`, `w`), pointers (`P`, `&`), functions (`X`) and C strings (`z`). Names of fields stand between colons.
fn holds_no_data(format: &str) -> bool {
    format.split(':').step_by(2).any(|items| items.contains(['O', 'u', 'w', 'P', '&', 'X', 'z']))
}

fn advice(object: &Borrowed<'_, '_, PyAny>) -> &'static str {
    if object.is_none() {
        "None is no key and no value; delete(key) removes a row"
    } else if object.is_instance_of::<PyInt>() {
        "encode the number so that it sorts as you like: number.to_bytes(8, 'big')"
    } else {
        "encode it"
    }
}

fn not_bytes(object: &Borrowed<'_, '_, PyAny>, advice: &str) -> PyErr {
    let kind = object.get_type().name().map_or_else(|_| "object".to_owned(), |n| n.to_string());
    PyTypeError::new_err(format!("keys and values are bytes-like, not {kind}: {advice}"))
}

/// A value for Python.
pub fn to_bytes<'py>(py: Python<'py>, value: Option<Slice>) -> Option<Bound<'py, PyBytes>> {
    value.map(|value| PyBytes::new(py, &value))
}
