//! Lithify: an embedded log-structured-merge key-value store whose compression is set per level
//! and whose every byte and CPU microsecond is booked where it arises.

pub mod base;
mod error;
#[doc(hidden)]
pub mod memtable;

pub use base::Slice;
pub use error::{Error, ErrorKind, Result};
