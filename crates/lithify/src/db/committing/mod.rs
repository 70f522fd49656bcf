//! Committing.

pub(crate) mod batch;
pub(crate) mod commit;
pub(crate) mod durability;
pub(crate) mod group;
pub(crate) mod memtables;
pub(crate) mod wal_set;
