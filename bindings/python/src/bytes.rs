//! Keys and values as they come from Python.
//!
//! Owns: [`BytesLike`], an argument that is bytes. Nothing else is a key or a value: text has more than one
//! encoding, and numbers sort as their bytes do.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};

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
        match PyMemoryView::from(&object.to_owned()) {
            Ok(view) => {
                let bytes = py.get_type::<PyBytes>().call1((view,))?;
                Ok(BytesLike(bytes.cast_into()?))
            }
            Err(_) => Err(not_bytes(&object)),
        }
    }
}

fn not_bytes(object: &Borrowed<'_, '_, PyAny>) -> PyErr {
    let kind = object.get_type().name().map_or_else(|_| "object".to_owned(), |n| n.to_string());
    let advice = match kind.as_str() {
        "str" => "encode the text: text.encode()",
        "int" => "encode the number so that it sorts as you like: number.to_bytes(8, 'big')",
        "NoneType" => "there is no value None: delete the key",
        _ => "encode it",
    };
    PyTypeError::new_err(format!("keys and values are bytes-like, not {kind}: {advice}"))
}

/// A value for Python.
pub fn to_bytes<'py>(py: Python<'py>, value: Option<Slice>) -> Option<Bound<'py, PyBytes>> {
    value.map(|value| PyBytes::new(py, &value))
}
