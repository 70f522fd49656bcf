//! Lithify: an embedded log-structured-merge key-value store whose compression is set per level
//! and whose every byte and CPU microsecond is booked where it arises.

pub mod base;
pub mod cache;
pub mod codec;
pub mod compaction;
mod error;
pub mod format;
pub mod fs;
pub mod manifest;
#[doc(hidden)]
pub mod memtable;
pub mod wal;
pub mod stats;
pub mod table;

pub use base::Slice;
pub use error::{Error, ErrorKind, Result};
