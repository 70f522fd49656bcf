//! Lithify: an embedded log-structured-merge key-value store whose compression is set per level
//! and whose every byte and CPU microsecond is booked where it arises.

#[doc(hidden)]
#[macro_use]
pub mod planted;

pub mod backup;
pub mod base;
pub mod cache;
pub mod codec;
pub mod compaction;
mod db;
mod error;
pub mod format;
pub mod fs;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod inspect;
mod iter;
pub mod manifest;
#[doc(hidden)]
pub mod memtable;
mod options;
pub mod repair;
pub mod stats;
pub mod table;
pub mod verify;
pub mod wal;

pub use base::Slice;
pub use codec::Compression;
pub use compaction::CodecPolicy;
pub use db::{
    Batch, Checkpoint, CheckpointOptions, ColumnFamily, Cursor, Db, Ingest, Ingested, Rows,
    ScanRange, Snapshot, TableTransfer, TableWriter, Transaction, WrittenTable,
};
pub use error::{Error, ErrorKind, Result};
pub use fs::{TransferOptions, TransferProgress};
pub use options::{CfOptions, DATABASE_OPTIONS, Durability, FAMILY_OPTIONS, OptionInfo, Options};

/// The example of the README, compiled and run with the other documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;
