//! Floor 0: the nouns that every room shares.
//!
//! Owns: sequence numbers, kinds of entries, the order of internal keys, level, file and family
//! ids, [`Slice`], the [`Clock`] trait, the memory budget, what scans pay for dead entries, sizes as
//! people write them, words in lines, and the one way to take a mutex. No I/O, no threads, no other room.

mod budget;
mod dead_passes;
mod key;
#[cfg(all(test, shuttle))]
pub(crate) mod orders;
mod size;
mod slice;
pub(crate) mod sync;
mod words;

pub use budget::{BudgetShare, Charge, MemoryBudget, MemoryUse};
pub(crate) use dead_passes::{DeadPasses, price_of_rewrite};
pub(crate) use key::{KeyWords, common_prefix, compare_keys, key_behind, search_word};
pub use size::{parse_bytes, size};
pub use slice::Slice;
pub use words::wrapped;

use std::cmp::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The number of a write: every entry of a batch has one, later writes have larger ones.
/// 56 bits are used, so that it packs with a [`ValueKind`] into one word.
pub type SequenceNumber = u64;

/// The largest sequence number: a read at it sees everything.
pub const SEQUENCE_MAX: SequenceNumber = (1 << 56) - 1;

/// The largest sequence number of a commit. Those above it mark a transaction's own writes while the
/// transaction reads them beside what is committed.
pub const COMMIT_SEQUENCE_MAX: SequenceNumber = (1 << 55) - 1;

/// The number in a file's name; never reused within a database.
pub type FileNumber = u64;

/// The id of a column family; never reused within a database.
pub type ColumnFamilyId = u32;

/// An LSM level: 0 is where flushes go.
pub type Level = usize;

/// The most levels that a column family can have.
pub const LEVEL_COUNT_MAX: usize = 32;

/// The random 128-bit identity of a table, which its block checksums are mixed with.
pub type TableId = [u8; 16];

/// Takes a mutex whose content is sound wherever a panic may have left it: what a panic does to a
/// database is decided where the job that panicked ends, not by whoever comes to a lock after it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The longest key, in bytes.
pub const KEY_SIZE_MAX: usize = 65_535;

/// The longest value, in bytes.
pub const VALUE_SIZE_MAX: usize = 64 << 20;

/// What an entry does to its key. The numbers are part of the formats on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum ValueKind {
    /// Removes all older entries of the key.
    Delete = 0,
    /// Sets the value.
    Put = 1,
    /// Removes the one older put of the key.
    SingleDelete = 2,
    /// Removes all older entries of a range of keys; lives outside the ordered entries.
    RangeDelete = 3,
    /// Adds an operand to the value below it.
    Merge = 4,
}

impl ValueKind {
    /// The kind with that number on disk.
    pub fn from_u8(byte: u8) -> Option<Self> {
        Some(match byte {
            0 => ValueKind::Delete,
            1 => ValueKind::Put,
            2 => ValueKind::SingleDelete,
            3 => ValueKind::RangeDelete,
            4 => ValueKind::Merge,
            _ => return None,
        })
    }
}

/// A sequence number and a kind in one word: `sequence << 8 | kind`. Among entries of one key the
/// larger trailer is the newer one and comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Trailer(pub u64);

impl Trailer {
    /// Packs the two.
    pub fn new(sequence: SequenceNumber, kind: ValueKind) -> Self {
        debug_assert!(sequence <= SEQUENCE_MAX);
        Trailer(sequence << 8 | kind as u64)
    }

    /// The trailer that sorts before every entry visible at `sequence` of the same key.
    pub fn seek(sequence: SequenceNumber) -> Self {
        Trailer(sequence << 8 | 0xff)
    }

    /// The sequence number.
    pub fn sequence(self) -> SequenceNumber {
        self.0 >> 8
    }

    /// The kind; `None` for a byte that no version wrote.
    pub fn kind(self) -> Option<ValueKind> {
        ValueKind::from_u8((self.0 & 0xff) as u8)
    }
}

/// The order of entries: keys ascending by bytes, then newest first.
#[inline]
pub fn compare_internal(a: (&[u8], Trailer), b: (&[u8], Trailer)) -> Ordering {
    compare_keys(a.0, b.0).then_with(|| b.1.cmp(&a.1))
}

/// Reads time. The implementation lives in `fs`; the codecs are timed through it.
pub trait Clock: Send + Sync {
    /// Monotonic time in microseconds from an arbitrary start.
    fn now_us(&self) -> u64;
    /// CPU time of the calling thread in nanoseconds. About 0.5 µs a call: read once per step.
    fn thread_cpu_ns(&self) -> u64;
    /// A cheap monotonic tick counter of unknown rate, for splitting a measured span.
    fn ticks(&self) -> u64;
    /// Seconds since 1970, for file properties only; never used to order anything.
    fn unix_time_s(&self) -> u64;
}
