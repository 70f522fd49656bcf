//! How often the data blocks of a table are loaded because the cache does not have them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Loads of users' reads since they were last taken. Compactions and checks are none.
#[derive(Debug, Default)]
pub(super) struct Heat {
    point_loads: AtomicU64,
    scanned_bytes: AtomicU64,
}

/// What was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Loads {
    /// Blocks, by lookups and by cursors that were placed anew.
    pub(crate) point_loads: u64,
    /// Raw bytes, by cursors that went from block to block.
    pub(crate) scanned_bytes: u64,
}

// Not inlined: a load is rare and takes microseconds, and the paths beside it are not to grow.
impl Heat {
    /// A lookup has loaded a block.
    #[inline(never)]
    pub(super) fn note_point(&self) {
        self.point_loads.fetch_add(1, Relaxed);
    }

    /// A scan has loaded a block of so many raw bytes.
    #[inline(never)]
    pub(super) fn note_scan(&self, raw_bytes: usize) {
        self.scanned_bytes.fetch_add(raw_bytes as u64, Relaxed);
    }

    /// Takes what has gathered.
    pub(super) fn take(&self) -> Loads {
        Loads {
            point_loads: self.point_loads.swap(0, Relaxed),
            scanned_bytes: self.scanned_bytes.swap(0, Relaxed),
        }
    }
}
