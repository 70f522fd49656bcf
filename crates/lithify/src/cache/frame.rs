//! The memory of one block, shared between the cache and whoever reads it.
//!
//! A frame's bytes are handed out as [`Bytes`], so any part of them can be sliced and kept
//! without a copy. The charge lives as long as the memory: it stands under
//! [`MemoryUse::Cache`] while the cache holds the frame and moves to [`MemoryUse::Pinned`] if
//! somebody still reads it when it leaves.

use super::frame_pool::{FrameId, FrameMemory, FramePool};
use crate::base::sync::{Mutex, lock};
use crate::base::{Charge, MemoryBudget, MemoryUse};
use bytes::Bytes;
use std::ops::Deref;
use std::sync::Arc;

/// What a cached block costs beside its bytes: its slot (about 100 bytes), its share of the map
/// (40) and of the ghosts (8), its place in the slab (28), the charge (60), the owner (70) and three
/// allocations' heads.
pub(super) const FRAME_OVERHEAD_BYTES: usize = 336;

/// A block in the cache.
pub(super) struct Frame {
    bytes: Bytes,
    id: Option<FrameId>,
    charge: Arc<Mutex<Charge>>,
}

/// Where frames are charged, and where their memory comes from.
pub(super) struct Home {
    pub(super) budget: Arc<MemoryBudget>,
    /// Of cached blocks.
    pub(super) pool: Arc<FramePool>,
    /// Of blocks that tables keep: they stay where they are, and would hold slabs of others.
    pub(super) kept: Arc<FramePool>,
}

impl Home {
    /// What slabs take that no block has.
    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        self.pool.held_bytes() + self.kept.held_bytes()
    }
}

/// What the handed-out bytes keep alive. The memory goes before its charge.
struct Owner {
    memory: FrameMemory,
    _charge: Arc<Mutex<Charge>>,
}

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        self.memory.block()
    }
}

/// What a block in this memory is charged with.
pub(super) fn charged_bytes(memory: &FrameMemory) -> usize {
    memory.size_bytes() + FRAME_OVERHEAD_BYTES
}

impl Frame {
    /// A frame charged to the cache.
    pub(super) fn cached(memory: FrameMemory, budget: &Arc<MemoryBudget>) -> Self {
        Frame::new(memory, budget, MemoryUse::Cache)
    }

    /// The bytes of a frame that never enters the cache.
    pub(super) fn pinned(memory: FrameMemory, budget: &Arc<MemoryBudget>) -> Bytes {
        Frame::new(memory, budget, MemoryUse::Pinned).bytes
    }

    fn new(memory: FrameMemory, budget: &Arc<MemoryBudget>, memory_use: MemoryUse) -> Self {
        let charge = budget.charge(memory_use, charged_bytes(&memory));
        let charge = Arc::new(Mutex::new(charge));
        let id = memory.id();
        let owner = Owner { memory, _charge: Arc::clone(&charge) };
        Frame { bytes: Bytes::from_owner(owner), id, charge }
    }

    /// The bytes; no copy, no allocation.
    pub(super) fn bytes(&self) -> Bytes {
        self.bytes.clone()
    }

    /// Which frame it is; `None` for one that is not to be moved.
    pub(super) fn id(&self) -> Option<FrameId> {
        self.id
    }

    /// Frees the memory, or counts it as pinned if somebody still reads it, and returns whether that is so. A
    /// reader that lets go in between is no harm: the charge goes with whoever is last.
    pub(super) fn leave_cache(self) -> bool {
        let Frame { bytes, charge, .. } = self;
        drop(bytes);
        let is_read = Arc::strong_count(&charge) > 1;
        if is_read {
            lock(&charge).transfer(MemoryUse::Pinned);
        }
        is_read
    }
}

/// A block that its table keeps beside the cache for as long as it is open.
pub struct KeptBlock {
    bytes: Bytes,
}

impl KeptBlock {
    /// A block that is charged to the budget until the last of its bytes is let go.
    pub(super) fn charged(memory: FrameMemory, budget: &Arc<MemoryBudget>) -> Self {
        KeptBlock { bytes: Frame::new(memory, budget, MemoryUse::Tables).bytes }
    }

    /// A block outside of any budget, for tables that are read without a cache.
    pub fn uncharged(block: Vec<u8>) -> Self {
        KeptBlock { bytes: Bytes::from(block) }
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
