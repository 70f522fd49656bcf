//! Lithify for Python: the native half of the package `lithify`.
//!
//! Owns: classes over the engine and the advisor. `python/lithify` has what is as well written in Python:
//! exceptions, reports, types, and the module `lithify.plyvel`.
//!
//! 1. Whatever may wait or touch a disk runs detached from the interpreter ([`errors::detached`]). Locks are
//!    taken there, or given up before any Python code runs, so none is ever waited for with the GIL in hand.
//! 2. All classes are frozen: what changes is behind a lock or atomic, so free-threaded Pythons may use them.
//! 3. What the engine gave out is held as [`forks::Native`]: a child of a fork gets an error.
//! 4. Everything that belongs to a database asks its [`handle::Handle`] whether it is still open.

mod advise;
mod arguments;
mod backup;
mod batch;
mod buffer;
mod bytes;
mod columns;
mod cursor;
mod db;
mod destroy;
mod errors;
mod family;
mod forks;
mod handle;
mod ingest;
mod iterator;
mod range;
mod report;
mod rows;
mod settings;
mod snapshot;
mod transaction;
mod walk;

use pyo3::prelude::*;

/// The module `lithify._lithify`.
#[pymodule(gil_used = false)]
fn _lithify(module: &Bound<'_, PyModule>) -> PyResult<()> {
    forks::watch();
    let py = module.py();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("DATABASE_OPTIONS", settings::table(py, lithify::DATABASE_OPTIONS)?)?;
    module.add("FAMILY_OPTIONS", settings::table(py, lithify::FAMILY_OPTIONS)?)?;
    module.add_class::<rows::Rows>()?;
    module.add_class::<family::ColumnFamily>()?;
    module.add_class::<db::Db>()?;
    module.add_class::<iterator::RowIterator>()?;
    module.add_class::<cursor::RowCursor>()?;
    module.add_class::<walk::Walk>()?;
    module.add_class::<snapshot::Snapshot>()?;
    module.add_class::<transaction::Transaction>()?;
    module.add_class::<batch::Batch>()?;
    module.add_class::<backup::Store>()?;
    module.add("Buffer", buffer::class(py)?)?;
    module.add_function(wrap_pyfunction!(backup::verify, module)?)?;
    module.add_function(wrap_pyfunction!(backup::repair, module)?)?;
    module.add_function(wrap_pyfunction!(destroy::destroy, module)?)?;
    module.add_function(wrap_pyfunction!(advise::advise, module)?)?;
    Ok(())
}
