//! The memory of one block, shared between the cache and whoever reads it.
//!
//! A frame's bytes are handed out as [`Bytes`], so any part of them can be sliced and kept
//! without a copy. The charge lives as long as the memory: it stands under
//! [`MemoryUse::Cache`] while the cache holds the frame and moves to [`MemoryUse::Pinned`] if
//! somebody still reads it when it leaves.

use super::frame_pool::FramePool;
use crate::base::sync::{Mutex, lock};
use crate::base::{Charge, MemoryBudget, MemoryUse};
use bytes::Bytes;
use std::ops::Deref;
use std::sync::Arc;

/// What a cached block costs beside its bytes: its slot (about 90 bytes), its share of the map
/// (40) and of the ghosts (8), the charge (60), the owner (60) and three allocations' heads.
pub(super) const FRAME_OVERHEAD_BYTES: usize = 304;

/// A block in the cache.
pub(super) struct Frame {
    bytes: Bytes,
    charge: Arc<Mutex<Charge>>,
}

/// Where frames are charged, and where their buffers go in the end.
pub(super) struct Home {
    pub(super) budget: Arc<MemoryBudget>,
    pub(super) pool: Arc<FramePool>,
}

/// What the handed-out bytes keep alive. The buffer goes before its charge.
struct Owner {
    buffer: Vec<u8>,
    pool: Arc<FramePool>,
    _charge: Arc<Mutex<Charge>>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.pool.give(std::mem::take(&mut self.buffer));
    }
}

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

/// The bytes that a buffer is charged with.
pub(super) fn charged_bytes(buffer: &Vec<u8>) -> usize {
    buffer.capacity() + FRAME_OVERHEAD_BYTES
}

impl Frame {
    /// A frame charged to the cache.
    pub(super) fn cached(buffer: Vec<u8>, home: &Home) -> Self {
        Frame::new(buffer, home, MemoryUse::Cache)
    }

    /// The bytes of a frame that never enters the cache.
    pub(super) fn pinned(buffer: Vec<u8>, home: &Home) -> Bytes {
        Frame::new(buffer, home, MemoryUse::Pinned).bytes
    }

    fn new(buffer: Vec<u8>, home: &Home, memory_use: MemoryUse) -> Self {
        let charge = home.budget.charge(memory_use, charged_bytes(&buffer));
        let charge = Arc::new(Mutex::new(charge));
        let pool = Arc::clone(&home.pool);
        let owner = Owner { buffer, pool, _charge: Arc::clone(&charge) };
        Frame { bytes: Bytes::from_owner(owner), charge }
    }

    /// The bytes; no copy, no allocation.
    pub(super) fn bytes(&self) -> Bytes {
        self.bytes.clone()
    }

    /// Frees the memory, or counts it as pinned if somebody still reads it. A reader that lets
    /// go in between is no harm: the charge goes with whoever is last.
    pub(super) fn leave_cache(self) {
        let Frame { bytes, charge } = self;
        drop(bytes);
        if Arc::strong_count(&charge) > 1 {
            lock(&charge).transfer(MemoryUse::Pinned);
        }
    }
}

/// A block that its table keeps beside the cache for as long as it is open.
pub struct KeptBlock {
    bytes: Bytes,
}

impl KeptBlock {
    /// A block that is charged to the budget until the last of its bytes is let go.
    pub(super) fn charged(buffer: Vec<u8>, home: &Home) -> Self {
        KeptBlock { bytes: Frame::new(buffer, home, MemoryUse::Tables).bytes }
    }

    /// A block outside of any budget, for tables that are read without a cache.
    pub fn uncharged(buffer: Vec<u8>) -> Self {
        KeptBlock { bytes: Bytes::from(buffer) }
    }

    /// The bytes for longer than a borrow.
    pub fn bytes(&self) -> Bytes {
        self.bytes.clone()
    }
}

impl Deref for KeptBlock {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}
