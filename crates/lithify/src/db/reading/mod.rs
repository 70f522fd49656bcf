//! Reading.

pub(crate) mod cursor;
pub(crate) mod multi_get;
pub(crate) mod read;
pub(crate) mod snapshot;
