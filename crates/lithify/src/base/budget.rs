//! One memory budget for everything that the engine holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What memory is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(usize)]
pub enum MemoryUse {
    /// Blocks in the cache (data, index, filter).
    Cache = 0,
    /// Blocks no longer in the cache that a slice or cursor still holds.
    Pinned = 1,
    /// Active and immutable memtables, and memory that flushed ones left for the next.
    Memtable = 2,
    /// Reused codec contexts.
    Codec = 3,
    /// Buffers of flushes and compactions.
    Compaction = 4,
    /// Index and filter blocks that open tables keep.
    Tables = 5,
    /// Stored blocks that cursors have read ahead.
    ReadAhead = 6,
}

impl MemoryUse {
    /// All uses, in the order of their numbers.
    pub const ALL: [MemoryUse; 7] = [
        MemoryUse::Cache,
        MemoryUse::Pinned,
        MemoryUse::Memtable,
        MemoryUse::Codec,
        MemoryUse::Compaction,
        MemoryUse::Tables,
        MemoryUse::ReadAhead,
    ];

    /// What it stands for.
    pub fn description(self) -> &'static str {
        match self {
            MemoryUse::Cache => "Blocks in the cache: data, index, filter.",
            MemoryUse::Pinned => {
                "Blocks no longer in the cache that a slice or cursor still holds."
            }
            MemoryUse::Memtable => {
                "Active and immutable memtables, and memory that flushed ones left for the next."
            }
            MemoryUse::Codec => "Reused codec contexts.",
            MemoryUse::Compaction => "Buffers of flushes and compactions.",
            MemoryUse::Tables => "Index and filter blocks that open tables keep.",
            MemoryUse::ReadAhead => "Stored blocks that cursors have read ahead.",
        }
    }

    /// The name in statistics.
    pub fn name(self) -> &'static str {
        match self {
            MemoryUse::Cache => "cache",
            MemoryUse::Pinned => "pinned",
            MemoryUse::Memtable => "memtable",
            MemoryUse::Codec => "codec",
            MemoryUse::Compaction => "compaction",
            MemoryUse::Tables => "tables",
            MemoryUse::ReadAhead => "read-ahead",
        }
    }
}

/// Counts the bytes in use against a limit. Charging never fails: the owner of a use looks at
/// the figures and makes room (the cache shrinks, a memtable is flushed).
#[derive(Debug)]
pub struct MemoryBudget {
    limit_bytes: usize,
    used_bytes: [AtomicUsize; MemoryUse::ALL.len()],
    /// Databases that use it, where several may.
    sharers: AtomicUsize,
}

impl MemoryBudget {
    /// A budget of `limit_bytes`.
    pub fn new(limit_bytes: usize) -> Arc<Self> {
        Arc::new(MemoryBudget {
            limit_bytes,
            used_bytes: Default::default(),
            sharers: AtomicUsize::new(0),
        })
    }

    /// The limit.
    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    /// Bytes in use for one purpose.
    pub fn used_bytes(&self, memory_use: MemoryUse) -> usize {
        self.used_bytes[memory_use as usize].load(Ordering::Relaxed)
    }

    /// Bytes in use for all purposes but the cache.
    pub fn used_beside_cache_bytes(&self) -> usize {
        MemoryUse::ALL[1..].iter().map(|memory_use| self.used_bytes(*memory_use)).sum()
    }

    /// Charges `bytes` until the charge is dropped.
    pub fn charge(self: &Arc<Self>, memory_use: MemoryUse, bytes: usize) -> Charge {
        self.used_bytes[memory_use as usize].fetch_add(bytes, Ordering::Relaxed);
        Charge { budget: Arc::clone(self), memory_use, bytes }
    }
}

/// Bytes charged to a budget; given back on drop.
#[derive(Debug)]
pub struct Charge {
    budget: Arc<MemoryBudget>,
    memory_use: MemoryUse,
    bytes: usize,
}

impl Charge {
    /// The bytes charged.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Changes the charge to `bytes`.
    pub fn resize(&mut self, bytes: usize) {
        let used = &self.budget.used_bytes[self.memory_use as usize];
        used.fetch_add(bytes, Ordering::Relaxed);
        used.fetch_sub(self.bytes, Ordering::Relaxed);
        self.bytes = bytes;
    }

    /// Moves the charge to another purpose.
    pub fn transfer(&mut self, memory_use: MemoryUse) {
        self.budget.used_bytes[memory_use as usize].fetch_add(self.bytes, Ordering::Relaxed);
        self.budget.used_bytes[self.memory_use as usize].fetch_sub(self.bytes, Ordering::Relaxed);
        self.memory_use = memory_use;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.used_bytes[self.memory_use as usize].fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
/// One of several databases that use a budget; counted as long as it lives.
#[derive(Debug)]
pub struct BudgetShare {
    budget: Arc<MemoryBudget>,
}

impl BudgetShare {
    /// One more.
    pub fn of(budget: &Arc<MemoryBudget>) -> Self {
        budget.sharers.fetch_add(1, Ordering::Relaxed);
        BudgetShare { budget: Arc::clone(budget) }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.budget.sharers.load(Ordering::Relaxed).max(1)
    }
}

impl Drop for BudgetShare {
    fn drop(&mut self) {
        self.budget.sharers.fetch_sub(1, Ordering::Relaxed);
    }
}
