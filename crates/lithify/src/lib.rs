//! Lithify: an embedded log-structured-merge key-value store whose compression is set per level
//! and whose every byte and CPU microsecond is booked where it arises.
//!
//! ```
//! # let directory = tempfile::tempdir().unwrap();
//! use lithify::{CfOptions, Db, Options};
//!
//! let db = Db::open(directory.path(), Options::default())?;
//! db.put("basalt", "igneous")?;
//! assert_eq!(db.get("basalt")?.unwrap(), "igneous");
//! for row in db.range("a".."c").rev() {
//!     let (key, value) = row?;
//!     println!("{key:?} is {value:?}");
//! }
//! let logs: CfOptions = "compression=none,lz4,zstd-3 block_size_bytes=32768".parse()?;
//! let logs = db.column_family("logs", logs)?;
//! logs.put("2026-11-26", "a line")?;
//! println!("{}", db.stats());
//! # Ok::<(), lithify::Error>(())
//! ```
//!
//! | type | what it is |
//! |---|---|
//! | [`Db`] | an open database; clones are the same one |
//! | [`ColumnFamily`] | an ordered map in it, with options of its own |
//! | [`Batch`], [`Transaction`] | writes that become visible together; with row locks, or checked at the commit |
//! | [`Snapshot`] | a point in time to read at |
//! | [`Iter`], [`Cursor`] | rows in order: owned, from both ends; lent, without a copy |
//!
//! For whole databases there are [`backup`], [`Db::checkpoint`], [`verify`] and [`repair`]; sorted rows
//! go in by [`ColumnFamily::ingest`]. [`ColumnFamily::update`] and its neighbours write what depends on what is there,
//! [`ColumnFamily::merge`] adds to it. [`stats`] reads what [`Db::stats`] gives, [`ColumnFamily::explain`]
//! says why a level has its compression, an [`EventListener`] hears of its work, and [`fs`] runs a database on another file system. [`Options`] and
//! [`CfOptions`] have every setting.
//!
//! Recipes (`docs/recipes.md` in the repository) and the crate's `examples` show a queue ([`Transaction::lock_first`]),
//! counters ([`ColumnFamily::update`], [`MergeOperator`]), leases ([`ColumnFamily::compare_and_put`]) and time series
//! ([`CfOptions::time_to_live_s`]).
//!
//! With the feature `tracing` every [`Event`] is one of the crate `tracing` too.
//!
//! The feature `internals` opens the rooms below to the project's own harnesses: simulator, fuzz
//! targets, laboratory, inspection by the command, benchmarks and tests. It promises nothing.

// A room uses of the others what it needs; the harnesses use the rest. With the feature the compiler
// still finds what nobody uses.
#![cfg_attr(not(feature = "internals"), allow(dead_code, unused_imports))]

/// Makes what a user does not need public for the harnesses.
macro_rules! internal_use {
    ($($path:tt)*) => {
        #[cfg(feature = "internals")]
        #[doc(hidden)]
        pub use $($path)*;
        #[cfg(not(feature = "internals"))]
        pub(crate) use $($path)*;
    };
}

#[cfg(feature = "internals")]
#[doc(hidden)]
#[macro_use]
pub mod planted;
#[cfg(not(feature = "internals"))]
#[macro_use]
mod planted;

pub mod backup;
mod db;
mod error;
mod events;
pub mod fs;
mod iter;
mod operator;
mod options;
pub mod repair;
pub mod stats;
pub mod verify;

#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod base;
#[cfg(not(feature = "internals"))]
mod base;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod cache;
#[cfg(not(feature = "internals"))]
mod cache;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod chooser;
#[cfg(not(feature = "internals"))]
mod chooser;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod codec;
#[cfg(not(feature = "internals"))]
mod codec;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod compaction;
#[cfg(not(feature = "internals"))]
mod compaction;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod format;
#[cfg(not(feature = "internals"))]
mod format;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod fuzzing;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod inspect;
#[cfg(not(feature = "internals"))]
mod inspect;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod manifest;
#[cfg(not(feature = "internals"))]
mod manifest;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod memtable;
#[cfg(not(feature = "internals"))]
mod memtable;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod retention;
#[cfg(not(feature = "internals"))]
mod retention;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod table;
#[cfg(not(feature = "internals"))]
mod table;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod wal;
#[cfg(not(feature = "internals"))]
mod wal;

pub use base::{KEY_SIZE_MAX, Slice, VALUE_SIZE_MAX};
pub use chooser::{Objective, Price, Prices};
pub use codec::{CodecId, Compression, Encoder};
pub use compaction::{CodecPolicy, CompressionPolicy};
pub use db::{
    Approximation, Batch, CandidateCost, Change, Checkpoint, CheckpointOptions, ColumnFamily,
    Cursor, DEFAULT_FAMILY, Db, Expected, Explanation, Ingest, Ingested, Iter, Keys,
    LevelExplanation, Resources, Rows, ScanRange, Snapshot, TableTransfer, TableWriter,
    Transaction, Values, WrittenTable,
};
pub use error::{Error, ErrorKind, Result};
pub use events::{Event, EventListener, OptionChange};
pub use fs::{TransferOptions, TransferProgress};
pub use operator::MergeOperator;
pub use options::{CfOptions, DATABASE_OPTIONS, Durability, FAMILY_OPTIONS, OptionInfo, Options};
pub use retention::{CompactionFilter, FilterDecision, FilteredRow};
pub use wal::{RecoveryReport, SegmentFile, StopReason};

/// The example of the README, compiled and run with the other documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
