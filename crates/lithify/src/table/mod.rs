//! Floor 3: the sorted-table file.
//!
//! Owns: the layout of a table (docs/format/table.md), [`TableBuilder`] that makes its bytes in
//! memory, [`TableReader`] that answers point reads from it, [`TableCursor`] that moves over it
//! for users, [`TableScanner`] that streams it to compactions.
//!
//! The way of an entry:
//! 1. [`TableBuilder::add`] appends key, value and trailer to columns; at the target size the
//!    block is encoded, handed to the compressor and sealed with a trailer that names table and
//!    place. Finished bytes wait for [`TableBuilder::take_output`]; the caller writes them.
//! 2. [`TableReader::get`] asks the filter, searches the index (of a large table the top index and
//!    one partition) for the one block that may hold the key, takes it from the cache or reads,
//!    checks and decodes it straight into its frame, and searches the frame in place. The value points into the frame. [`TableReader::get_many`]
//!    does so for several keys at once; a [`TableCursor`] that goes on and on reads ahead.
//! 3. [`TableScanner::poll`] submits reads of up to 256 KiB and decodes one block per call into
//!    a buffer that it keeps; it never touches the block cache.
//!
//! Promises: readers are shared by threads, cursors and builders belong to one. No content of a
//! file makes this room panic or allocate more than the bounds of the format. Nothing is decoded
//! before its checksum was compared.
//!
//! It does not know levels' policies (it is handed a compressor), versions of the tree, file
//! numbers or names, and it never writes to a file.

mod batch;
mod block;
mod block_sink;
mod builder;
mod cursor;
mod data_block;
mod data_block_builder;
mod dictionaries;
mod filter;
mod footer;
#[cfg(feature = "internals")]
pub(crate) mod fuzzing;
mod heat;
mod index;
mod index_builder;
mod index_walk;
mod load;
mod partitions;
mod parts;
#[expect(unsafe_code, reason = "the instruction for it is unsafe to call")]
mod prefetch;
mod properties;
mod read_ahead;
mod reader;
mod scanner;
mod specimen;
mod stored_block;
#[cfg(test)]
mod tests;
mod tombstone_map;
mod tombstones;
mod verify;

pub(crate) use block::{BlockHandle, Layout};
pub(crate) use block_sink::WRITE_BYTES;
pub use builder::{TableBuilder, TableOptions, TableOrigin, TableSummary};
pub use cursor::TableCursor;
pub use filter::{FilterBuilder, FilterReader, hash_key};
pub(crate) use footer::{FOOTER_SIZE, Footer, MAGIC as TABLE_MAGIC};
pub(crate) use index::{FLAG_ALL_PUTS, FLAG_RAW_FALLBACK, FLAG_SEQUENCES_ZERO, IndexRecord};
pub(crate) use parts::{PartBlock, TableIndex, TableParts, data_header, visit_entries};
pub use properties::TableProperties;
pub(crate) use properties::Value as PropertyValue;
pub use reader::{HashedKey, ReadContext, TableReader, Verification};
pub use scanner::{ScanPoll, TableScanner};
pub(crate) use specimen::Specimen;
pub use specimen::cut_rows;
pub(crate) use stored_block::StoredBlock;
pub use tombstone_map::TombstoneMap;
pub use tombstones::{Fragment, FragmentedTombstones, TombstoneFragmenter};
pub(crate) use verify::{TableExaminer, TableFinding, TablePart, examine_table};

/// The newest version of the format that this program writes.
pub const TABLE_FORMAT_VERSION: u32 = 3;
