//! Floor 3: log segments, which make writes durable before they are in tables.
//!
//! Owns: the header and the record frame (shared with the manifest), the writer of one segment,
//! the reader of one segment, and the recovery of a list of segments. The format is described in
//! docs/format/wal.md.
//!
//! Promises: a record is replayed exactly as it was written or not at all; what was durable and is
//! damaged is an error that names file and offset; what was not durable and is lost is reported.
//! A writer belongs to one thread at a time; a [`PendingSync`] may run on any other.
//!
//! It does not know what a payload means, when to sync, or which segments are still needed.

mod frame;
mod header;
mod reader;
mod recovery;
mod writer;

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod tests;

pub use frame::{FRAME_SIZE_BYTES, PAYLOAD_SIZE_MAX, stored_size_bytes};
pub use header::{FORMAT_VERSION, HEADER_SIZE_BYTES, LogHeader, LogKind, SegmentEnd};
pub use reader::{LogRecord, LogStop, StopReason, WalReader};
pub use recovery::{Recovery, RecoveryOptions, RecoveryReport, SegmentFile, recover_segments};
pub use writer::{PendingSync, PreparedFile, SegmentOptions, WalPosition, WalWriter};
