//! A value with the buffer protocol that copies nothing.
//!
//! Owns: the class `lithify.Buffer`. Its objects hold a [`Slice`], which keeps the block that it points into
//! in memory; a `memoryview` holds the object. So the bytes stay where they are until nobody has them.
//!
//! The class is made by hand. The limited API of CPython has the buffer protocol from 3.11 on only, but its
//! slot numbers, its function and the layout of `Py_buffer` are the same in 3.10, which documents the slots
//! for `PyType_FromSpec` outside of the limited API.
#![expect(unsafe_code, reason = "a class with the buffer protocol in the limited API of 3.10")]

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use lithify::Slice;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::forks::Native;

/// `Py_bf_getbuffer` of typeslots.h.
const BF_GETBUFFER: c_int = 1;

/// `Py_buffer` of CPython 3.10 and later.
#[repr(C)]
pub struct PyBuffer {
    buf: *mut c_void,
    obj: *mut ffi::PyObject,
    len: ffi::Py_ssize_t,
    itemsize: ffi::Py_ssize_t,
    readonly: c_int,
    ndim: c_int,
    format: *mut c_char,
    shape: *mut ffi::Py_ssize_t,
    strides: *mut ffi::Py_ssize_t,
    suboffsets: *mut ffi::Py_ssize_t,
    internal: *mut c_void,
}

unsafe extern "C" {
    /// Fills a view on one piece of memory, and takes a reference to its owner.
    fn PyBuffer_FillInfo(
        view: *mut PyBuffer,
        owner: *mut ffi::PyObject,
        bytes: *mut c_void,
        length: ffi::Py_ssize_t,
        readonly: c_int,
        flags: c_int,
    ) -> c_int;
}

/// An object of the class. `value` is there from its making to its end.
#[repr(C)]
struct Buffer {
    base: ffi::PyObject,
    /// All zeros, as an object is allocated, are `None`.
    value: Option<Box<Native<Slice>>>,
}

/// # Safety
/// `object` is an object of the class.
unsafe fn value_of<'a>(object: *mut ffi::PyObject) -> &'a [u8] {
    // SAFETY: the object is a `Buffer`, made by `new` with a value; nobody changes it while it lives.
    let value = unsafe { (*object.cast::<Buffer>()).value.as_ref() };
    value.and_then(|value| value.peek()).map_or(&[], |value| value)
}

unsafe extern "C" fn get_buffer(
    object: *mut ffi::PyObject,
    view: *mut PyBuffer,
    flags: c_int,
) -> c_int {
    // SAFETY: called by the interpreter with an object of the class and a view to be filled. The bytes do
    // not move while the object lives, and the view holds a reference to it. It is read-only.
    unsafe {
        let bytes = value_of(object);
        let length = bytes.len() as ffi::Py_ssize_t;
        PyBuffer_FillInfo(view, object, bytes.as_ptr().cast_mut().cast(), length, 1, flags)
    }
}

unsafe extern "C" fn length(object: *mut ffi::PyObject) -> ffi::Py_ssize_t {
    // SAFETY: called by the interpreter with an object of the class.
    unsafe { value_of(object).len() as ffi::Py_ssize_t }
}

unsafe extern "C" fn to_bytes(
    object: *mut ffi::PyObject,
    _: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: called by the interpreter with an object of the class, attached. The new bytes are a copy.
    unsafe {
        let bytes = value_of(object);
        ffi::PyBytes_FromStringAndSize(bytes.as_ptr().cast(), bytes.len() as ffi::Py_ssize_t)
    }
}

unsafe extern "C" fn deallocate(object: *mut ffi::PyObject) {
    // SAFETY: called by the interpreter once, when nobody has the object any more. An object of a class on
    // the heap holds a reference to its class, which is given back last.
    unsafe {
        let class = ffi::Py_TYPE(object);
        drop((*object.cast::<Buffer>()).value.take());
        let free = ffi::PyType_GetSlot(class, ffi::Py_tp_free);
        if !free.is_null() {
            let free: ffi::freefunc = std::mem::transmute(free);
            free(object.cast());
        }
        ffi::Py_DECREF(class.cast());
    }
}

const DOC: &std::ffi::CStr =
    c"A value that was read without a copy: bytes(), memoryview() and everything \
else that takes the buffer protocol read it. It stays as it is for as long as anybody has it.";

/// The class.
pub fn class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    Ok(CLASS.get_or_try_init(py, || make_class(py))?.bind(py))
}

fn make_class(py: Python<'_>) -> PyResult<Py<PyType>> {
    let slot = |slot: c_int, pfunc: *mut c_void| ffi::PyType_Slot { slot, pfunc };
    let method = ffi::PyMethodDef {
        ml_name: c"__bytes__".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunction: to_bytes },
        ml_flags: ffi::METH_NOARGS,
        ml_doc: c"A copy as bytes.".as_ptr(),
    };
    // The class keeps pointers to its methods: they live as long as the process.
    let methods = Box::leak(Box::new([method, ffi::PyMethodDef::zeroed()]));
    let mut slots = [
        slot(BF_GETBUFFER, get_buffer as *mut c_void),
        slot(ffi::Py_sq_length, length as *mut c_void),
        slot(ffi::Py_tp_dealloc, deallocate as *mut c_void),
        slot(ffi::Py_tp_methods, methods.as_mut_ptr().cast()),
        slot(ffi::Py_tp_doc, DOC.as_ptr().cast_mut().cast()),
        slot(0, ptr::null_mut()),
    ];
    let mut spec = ffi::PyType_Spec {
        name: c"lithify.Buffer".as_ptr(),
        basicsize: size_of::<Buffer>() as c_int,
        itemsize: 0,
        flags: (ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION) as u32,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: attached; the specification is complete and read before the call returns, what it keeps
    // pointers to is static or leaked. It gives a new reference to a class, or null with an error set.
    let class = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyType_FromSpec(&mut spec))? };
    Ok(class.cast_into::<PyType>()?.unbind())
}

/// An object of the class.
pub fn new(py: Python<'_>, value: Slice) -> PyResult<Bound<'_, PyAny>> {
    let class = class(py)?.as_type_ptr();
    // SAFETY: attached. The allocation is zeroed, large enough by the class's basic size, and holds a
    // reference to the class; nobody else has the object yet.
    unsafe {
        let object = ffi::PyType_GenericAlloc(class, 0);
        let object = Bound::from_owned_ptr_or_err(py, object)?;
        (*object.as_ptr().cast::<Buffer>()).value = Some(Box::new(Native::new(value)));
        Ok(object)
    }
}
