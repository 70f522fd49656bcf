//! Floor 2: decompressed blocks in memory, under the one memory budget.
//!
//! Owns: the [`BlockCache`], which all column families share and which holds data, index and
//! filter blocks alike, found by the file's id in the cache and the block's offset.
//!
//! Promises:
//! - What the cache holds never exceeds what the budget leaves: its limit less everything charged
//!   beside the cache, and at least the floor it was made with. This holds whenever no insertion
//!   is under way; uses that grow call [`BlockCache::shrink_to_budget`] or leave it to the next
//!   insertion. It is exceeded by what is free in slabs where somebody reads a block.
//! - Bytes that were handed out stay as they are for as long as anyone holds them. When the
//!   block leaves the cache before that, its charge moves to [`MemoryUse::Pinned`], so a pinned
//!   block takes the place of others until it is let go.
//! - A scan inserted as such ([`BlockCache::insert_scan`]) displaces its own blocks, after about
//!   one block per shard. One pass over cold blocks inserted like any others displaces at most
//!   the tenth of the cache that new blocks go through.
//! - Where blocks leave before they are used again, [`BlockCache::wants`] says so of most of
//!   them, and [`BlockCache::wants_scan`] of those of scans. Readers take them past the cache.
//! - Index and filter blocks that tables keep ([`BlockCache::keep`]) take at most a quarter of the
//!   budget, and partitions of indexes nothing of the second half of that; what is beyond goes
//!   through the cache like data.
//! - Blocks leave their memory to later blocks, whichever threads read and evict them; what waits for
//!   a block is within the budget, and what the budget has no room for goes back to the system.
//! - Shards hold about the same number of bytes: memory is taken from the fuller of two. Else they
//!   drift apart, as what a block takes seldom comes from the shard that it enters. Of 16 shards
//!   one held a fifth of the cache and another two blocks. Lookups whose index partition belonged
//!   there decoded it each time: 8.4 µs a lookup at 3,000,000 rows instead of 6.2.
//! - A hit allocates nothing. The same calls in the same order evict the same blocks.
//!
//! Threads: any thread may call anything. The cache is cut into shards by the hash of the key,
//! each under a mutex that is held for a lookup or for one bounded eviction step.
//!
//! It does not read, decode or wait for blocks: two readers that miss the same block both read
//! it, and the first to insert wins.
//!
//! Why not a library: `quick_cache` (also of the S3-FIFO kind) comes closest, but gives each
//! shard a fixed share of a fixed weight, so that following a budget that moves with every write
//! means locking every shard each time; it has no classes of priority; and it cannot take a block
//! in at the low end. `moka` and `foyer` differ from the need in the same places.

mod frame;
mod frame_pool;
mod shard;
mod slab;

#[cfg(all(test, shuttle))]
pub(crate) mod shuttle;
#[cfg(test)]
mod tests;

use crate::base::sync::{AtomicU64, AtomicUsize, Mutex, MutexGuard, lock};
use crate::base::{MemoryBudget, MemoryUse};
use bytes::Bytes;
pub use frame::KeptBlock;
use frame::{Frame, Home};
use frame_pool::{FrameId, FrameMemory, FramePool};
use shard::{Departure, Key, Shard};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What a cached block is to its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum BlockKind {
    /// Entries.
    Data = 0,
    /// Where the data blocks are. Leaves the cache after data blocks.
    Index = 1,
    /// Which keys are surely not there. Leaves the cache after data blocks.
    Filter = 2,
}

impl BlockKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [BlockKind; 3] = [BlockKind::Data, BlockKind::Index, BlockKind::Filter];

    /// The name in statistics.
    pub fn name(self) -> &'static str {
        match self {
            BlockKind::Data => "data",
            BlockKind::Index => "index",
            BlockKind::Filter => "filter",
        }
    }

    /// The most uses that are remembered of a block.
    fn uses_max(self) -> u8 {
        match self {
            BlockKind::Data => 3,
            BlockKind::Index | BlockKind::Filter => 12,
        }
    }
}

/// Which part of the room for kept blocks a block may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptShare {
    /// All that is left: blocks that every read of the table needs.
    Whole,
    /// What is left of the first half, so that the others find room: blocks that some reads need.
    Half,
}

/// The blocks of one kind in the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CachedBlocks {
    /// Lookups that found one, since the start.
    pub hits: u64,
    /// Blocks taken in, since the start.
    pub inserted: u64,
    /// Bytes charged for them.
    pub inserted_bytes: u64,
    /// Blocks evicted to make room, since the start (not those of erased files).
    pub evicted: u64,
    /// Blocks there now.
    pub count: u64,
    /// Bytes charged for them now.
    pub used_bytes: u64,
}

/// What the cache has done and what it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStatistics {
    /// Lookups that found their block, since the start.
    pub hits: u64,
    /// Lookups that did not, since the start.
    pub misses: u64,
    /// Blocks taken in, since the start.
    pub inserted: u64,
    /// Bytes charged for them.
    pub inserted_bytes: u64,
    /// Blocks evicted to make room, since the start.
    pub evicted: u64,
    /// Missed data blocks that were not worth taking in, since the start.
    pub unwanted: u64,
    /// Blocks handed back to their reader as pinned because they are larger than the cache.
    pub too_large: u64,
    /// Bytes charged for the blocks in the cache now.
    pub used_bytes: u64,
    /// Bytes of blocks that are no longer in the cache and still in use, now.
    pub pinned_bytes: u64,
    /// Bytes that the cache may hold now.
    pub capacity_bytes: u64,
    /// The same by kind, in the order of [`BlockKind::ALL`].
    pub by_kind: [CachedBlocks; BlockKind::ALL.len()],
}

/// A shard should hold this much, or its queues are too short to tell hot from cold.
const SHARD_BYTES_MIN: usize = 4 << 20;

/// More shards than this would not lower contention by much.
const SHARD_COUNT_MAX: usize = 64;

/// Tables keep index and filter blocks of up to one in so many bytes of the budget.
const KEPT_DIVISOR: usize = 4;

/// A frame for a new block is worth so many evictions: blocks are mostly of one size, and some
/// are pinned.
const EVICTIONS_FOR_FRAME: usize = 4;

/// Their slabs may have so much of the budget without a block.
const KEPT_HELD_DIVISOR: usize = 16;

/// Readers copy small values once blocks that left the cache are held for more than one in so many bytes of
/// the budget.
const HELD_DIVISOR: usize = 2;

/// A cache is full when less than one in so many bytes of what it may hold is left.
const UNFILLED_DIVISOR: usize = 8;

/// So many blocks are asked to leave their frames for one that does.
const DEPARTURES_PER_CALL: usize = 64;

/// The key of blocks that tables keep: nobody looks for it.
const KEPT: Key = Key { file_id: u64::MAX, offset: u64::MAX };

/// Slots looked at under one lock when a file is erased.
const ERASE_SLOTS_PER_LOCK: usize = 4096;

/// A shard, out of its neighbours' cache lines.
#[repr(align(128))]
struct Part {
    shard: Mutex<Shard>,
    /// What the shard holds, for those who do not want its lock. Written under it.
    held_bytes: AtomicUsize,
}

/// How often a shard was drawn by lot. Written where blocks leave, out of the way of those who only read.
#[derive(Default)]
#[repr(align(128))]
struct Lots(AtomicU64);

/// The cache of decompressed blocks; see the room's head for what it promises.
pub struct BlockCache {
    home: Home,
    bytes_min: usize,
    next_file_id: AtomicU64,
    lots: Lots,
    too_large: AtomicU64,
    /// A power of two of them.
    parts: Box<[Part]>,
}

impl BlockCache {
    /// An empty cache that holds what `budget` leaves, and may always hold `bytes_min` bytes. With
    /// 0 and an exhausted budget nothing is cached, and every insertion is merely pinned. One
    /// budget has one cache.
    pub fn new(budget: Arc<MemoryBudget>, bytes_min: usize) -> Arc<Self> {
        let bytes = budget.limit_bytes().max(bytes_min);
        let pool = Arc::new(FramePool::new(bytes));
        let kept = Arc::new(FramePool::of_kept(bytes));
        let shard_count = (bytes / SHARD_BYTES_MIN).clamp(1, SHARD_COUNT_MAX);
        let shard_count = 1 << shard_count.ilog2();
        Arc::new(BlockCache {
            home: Home { budget, pool, kept },
            bytes_min,
            next_file_id: AtomicU64::new(0),
            lots: Lots::default(),
            too_large: AtomicU64::new(0),
            parts: (0..shard_count)
                .map(|_| Part { shard: Mutex::new(Shard::new()), held_bytes: AtomicUsize::new(0) })
                .collect(),
        })
    }

    /// The budget that the cache gets the rest of.
    pub fn budget(&self) -> &Arc<MemoryBudget> {
        &self.home.budget
    }

    /// An id for a file whose blocks are to be cached; never given twice.
    pub fn new_file_id(&self) -> u64 {
        self.next_file_id.fetch_add(1, Ordering::Relaxed)
    }

    /// The block at `offset` of a file, if it is in the cache.
    #[inline]
    pub fn get(&self, file_id: u64, offset: u64) -> Option<Bytes> {
        let key = Key::new(file_id, offset);
        self.shard(self.shard_of(key)).get(key)
    }

    /// Whether a data block of `raw_bytes` that [`BlockCache::get`] missed is worth taking in: most are
    /// not where blocks leave before anybody uses them again.
    pub fn wants(&self, file_id: u64, offset: u64, raw_bytes: usize) -> bool {
        let key = Key::new(file_id, offset);
        let is_wanted = self.shard(self.shard_of(key)).wants(key);
        is_wanted || self.is_unfilled(raw_bytes)
    }

    /// The same of a scan's block: where hardly any is found before it leaves, most are not, unless there is
    /// room.
    pub fn wants_scan(&self, file_id: u64, offset: u64, raw_bytes: usize) -> bool {
        let key = Key::new(file_id, offset);
        let is_wanted = self.shard(self.shard_of(key)).wants_scan();
        is_wanted || self.is_unfilled(raw_bytes)
    }

    /// Whether so much is held of blocks that left the cache that a reader copies a small value. A value of
    /// 300 bytes keeps a block of 16 KiB: 300,000 of them would have held 4.9 GB.
    #[inline]
    pub fn is_much_held(&self) -> bool {
        let budget = &self.home.budget;
        budget.used_bytes(MemoryUse::Pinned) > budget.limit_bytes() / HELD_DIVISOR
    }

    /// Whether a block would find room without anybody's leaving. A full cache has a little room now and then,
    /// as slabs go: that is for what is wanted.
    fn is_unfilled(&self, raw_bytes: usize) -> bool {
        let capacity_bytes = self.capacity_bytes();
        let used_bytes = self.home.budget.used_bytes(MemoryUse::Cache) + raw_bytes;
        let used_bytes = used_bytes + self.home.pool.stuck_bytes();
        used_bytes <= capacity_bytes - capacity_bytes / UNFILLED_DIVISOR
    }

    fn has_room(&self, bytes: usize) -> bool {
        self.cache_bytes() + bytes + frame::FRAME_OVERHEAD_BYTES <= self.capacity_bytes()
    }

    /// A copy of the block in a frame of the cache's. A full cache gives up the frames of other blocks
    /// for it, so that memory goes from block to block and not through the system.
    fn memory_of(&self, key: Key, block: &[u8]) -> FrameMemory {
        let pool = &self.home.pool;
        for _ in 0..EVICTIONS_FOR_FRAME {
            if let Some(memory) = pool.take(key, block) {
                return memory;
            }
            // With frames of other sizes to spare, slabs change hands.
            if self.has_room(pool.growth_bytes(block.len()))
                || pool.is_stocked(self.capacity_bytes())
            {
                break;
            }
            if let Some(frame) = self.evict(self.shard_of(key)) {
                frame.leave_cache();
            }
        }
        pool.grow(key, block)
    }

    /// Takes in a copy of a block that a lookup missed, and hands it out. If another reader was first,
    /// its bytes are handed out. A block that is larger than the whole cache is not taken in, and merely
    /// pinned.
    ///
    /// It is a copy because a block is decoded into memory that the processor's cache holds anyway, and its
    /// size is known for sure only then.
    pub fn insert(&self, file_id: u64, offset: u64, kind: BlockKind, block: &[u8]) -> Bytes {
        self.insert_as(Key::new(file_id, offset), kind, block, false)
    }

    /// Like [`BlockCache::insert`] for a block that is read in passing: it leaves again before
    /// anything else does, unless it is found before that.
    pub fn insert_scan(&self, file_id: u64, offset: u64, kind: BlockKind, block: &[u8]) -> Bytes {
        self.insert_as(Key::new(file_id, offset), kind, block, true)
    }

    fn insert_as(&self, key: Key, kind: BlockKind, block: &[u8], is_scan: bool) -> Bytes {
        let Home { budget, pool, .. } = &self.home;
        let least_bytes = pool.frame_bytes(block.len()) + frame::FRAME_OVERHEAD_BYTES;
        if least_bytes > self.capacity_bytes() {
            self.too_large.fetch_add(1, Ordering::Relaxed);
            return Frame::pinned(FrameMemory::on_heap(block), budget);
        }
        let home = self.shard_of(key);
        let memory = self.memory_of(key, block);
        let charged_bytes = frame::charged_bytes(&memory);
        self.make_room(charged_bytes, home);
        let frame = Frame::cached(memory, budget);
        let (bytes, surplus) =
            self.change(home, |shard| shard.insert(key, kind, is_scan, charged_bytes, frame));
        if let Some(frame) = surplus {
            frame.leave_cache();
        }
        // Another insertion may have used the room that was made.
        self.make_room(0, home);
        bytes
    }

    /// Keeps a copy of a block for a table as long as that is open: reads then find it without
    /// a lookup, and no thread waits for another one at its count of holders. `None` once tables keep
    /// their share of the budget.
    pub fn keep(&self, block: &[u8], share: KeptShare) -> Option<KeptBlock> {
        let Home { budget, kept, .. } = &self.home;
        let frame_bytes = kept.frame_bytes(block.len()) + frame::FRAME_OVERHEAD_BYTES;
        // Slabs of which tables have given up the most count with what they take beyond measure.
        let measure_bytes = budget.limit_bytes() / KEPT_HELD_DIVISOR;
        let held_bytes = kept.held_bytes().saturating_sub(measure_bytes);
        let bytes = budget.used_bytes(MemoryUse::Tables) + held_bytes + frame_bytes;
        let bytes_max = budget.limit_bytes() / KEPT_DIVISOR;
        let bytes_max = match share {
            KeptShare::Whole => bytes_max,
            KeptShare::Half => bytes_max / 2,
        };
        if bytes > bytes_max {
            return None;
        }
        let memory = kept.take(KEPT, block).unwrap_or_else(|| kept.grow(KEPT, block));
        let block = KeptBlock::charged(memory, budget);
        self.shrink_to_budget();
        Some(block)
    }

    /// Evicts what the budget no longer leaves room for. Called by uses that have grown.
    pub fn shrink_to_budget(&self) {
        // Cursors ask at every block: nothing is written where there is nothing to do.
        if self.cache_bytes() > self.capacity_bytes() {
            self.make_room(0, self.any_shard());
        }
    }

    /// Forgets the blocks of a file that is gone. Bytes that were handed out stay valid.
    pub fn erase_file(&self, file_id: u64) {
        for index in 0..self.parts.len() {
            let mut start = 0;
            let mut has_more = true;
            while has_more {
                let erased;
                (erased, has_more) = self
                    .change(index, |shard| shard.erase_file(file_id, start, ERASE_SLOTS_PER_LOCK));
                for frame in erased {
                    frame.leave_cache();
                }
                start += ERASE_SLOTS_PER_LOCK;
            }
        }
    }

    /// The bytes that the cache may hold now.
    pub fn capacity_bytes(&self) -> usize {
        let kept_bytes = self.home.kept.held_bytes();
        let beside = self.home.budget.used_beside_cache_bytes() + kept_bytes;
        self.home.budget.limit_bytes().saturating_sub(beside).max(self.bytes_min)
    }

    /// Sums up all shards; they are locked one after the other.
    pub fn statistics(&self) -> CacheStatistics {
        let mut statistics = CacheStatistics {
            too_large: self.too_large.load(Ordering::Relaxed),
            pinned_bytes: self.home.budget.used_bytes(MemoryUse::Pinned) as u64,
            capacity_bytes: self.capacity_bytes() as u64,
            ..CacheStatistics::default()
        };
        for index in 0..self.parts.len() {
            let shard = self.shard(index);
            statistics.misses += shard.misses;
            statistics.unwanted += shard.unwanted;
            for (sum, blocks) in statistics.by_kind.iter_mut().zip(&shard.blocks) {
                sum.hits += blocks.hits;
                sum.inserted += blocks.inserted;
                sum.inserted_bytes += blocks.inserted_bytes;
                sum.evicted += blocks.evicted;
                sum.count += blocks.count;
                sum.used_bytes += blocks.used_bytes;
            }
        }
        for blocks in statistics.by_kind {
            statistics.hits += blocks.hits;
            statistics.inserted += blocks.inserted;
            statistics.inserted_bytes += blocks.inserted_bytes;
            statistics.evicted += blocks.evicted;
            statistics.used_bytes += blocks.used_bytes;
        }
        statistics
    }

    /// What blocks and the frames that wait for others take.
    fn cache_bytes(&self) -> usize {
        self.home.budget.used_bytes(MemoryUse::Cache) + self.home.pool.held_bytes()
    }

    /// Makes room for `bytes` more: evicts, first from the shard `index` unless another is fuller, and
    /// gives slabs back beyond the pool's stock; of the stock too when there is nothing left to evict.
    fn make_room(&self, bytes: usize, mut index: usize) {
        let mut is_empty = false;
        loop {
            let capacity_bytes = self.capacity_bytes();
            if self.cache_bytes() + bytes <= capacity_bytes {
                return;
            }
            let pool = &self.home.pool;
            let gives_back = is_empty || pool.is_stocked(capacity_bytes);
            if gives_back && self.give_back_some() {
                continue;
            }
            let excess_bytes = self.cache_bytes().saturating_sub(capacity_bytes);
            // To evict more would free frames and no memory.
            let is_in_vain = excess_bytes <= pool.stuck_bytes();
            if is_empty || (is_in_vain && pool.is_pinned_down(capacity_bytes)) {
                return;
            }
            match self.evict(index) {
                Some(frame) => {
                    frame.leave_cache();
                    index = self.any_shard();
                }
                None => {
                    index = self.fullest_shard();
                    is_empty = self.held_bytes(index) == 0;
                }
            }
        }
    }

    /// Evicts one block of the shard `index`, or of one drawn by lot if that is fuller. `None` if both
    /// are empty.
    fn evict(&self, index: usize) -> Option<Frame> {
        let rival = self.any_shard();
        let is_fuller = self.held_bytes(rival) > self.held_bytes(index);
        self.change(if is_fuller { rival } else { index }, Shard::evict)
    }

    /// A shard by lot, the same ones in every run. Shards in turn would not do: two threads, or two
    /// steps of one, fall into step, and each takes from every other shard only.
    fn any_shard(&self) -> usize {
        let lot = self.lots.0.fetch_add(1, Ordering::Relaxed);
        self.shard_of(Key::new(u64::MAX, lot))
    }

    fn fullest_shard(&self) -> usize {
        (0..self.parts.len()).max_by_key(|index| self.held_bytes(*index)).unwrap_or(0)
    }

    /// What a shard holds, without its lock.
    fn held_bytes(&self, index: usize) -> usize {
        self.parts[index].held_bytes.load(Ordering::Relaxed)
    }

    /// Gives a slab back, or takes a block out of one that is to go; false if there is nothing to gain.
    fn give_back_some(&self) -> bool {
        let pool = &self.home.pool;
        if pool.give_back_empty() {
            return true;
        }
        // Blocks that are in nobody's way any more, and those that cannot move, are passed by.
        let departures = std::iter::from_fn(|| pool.next_to_depart()).take(DEPARTURES_PER_CALL);
        departures.into_iter().any(|(key, id)| self.depart(key, id))
    }

    /// Has a block out of a frame. Whoever reads it keeps that frame, as if the block had been evicted.
    fn depart(&self, key: Key, id: FrameId) -> bool {
        let shard = self.shard_of(key);
        let departure = self.change(shard, |shard| shard.depart(key, id, false));
        let memory = match departure {
            None => {
                self.home.pool.stop_draining(key, id);
                return false;
            }
            Some(Departure::Moves(bytes)) => self.home.pool.take_to_move(key, &bytes),
            Some(Departure::Leaves(frame)) => {
                frame.leave_cache();
                return true;
            }
        };
        let Some(memory) = memory else {
            // There is no frame for it, so that it has to leave.
            let departure = self.change(shard, |shard| shard.depart(key, id, true));
            if let Some(Departure::Leaves(frame)) = departure {
                frame.leave_cache();
            }
            return true;
        };
        let charged_bytes = frame::charged_bytes(&memory);
        let frame = Frame::cached(memory, &self.home.budget);
        let unneeded = self.change(shard, |shard| shard.exchange(key, id, charged_bytes, frame));
        if unneeded.leave_cache() {
            self.home.pool.stop_draining(key, id);
        }
        true
    }

    /// Uses bits of the hash that the shard's map does not look at first.
    #[inline]
    fn shard_of(&self, key: Key) -> usize {
        (key.hash() >> 40) as usize & (self.parts.len() - 1)
    }

    /// A panic cannot leave a shard half changed in a way that matters more than its blocks.
    #[inline]
    fn shard(&self, index: usize) -> MutexGuard<'_, Shard> {
        lock(&self.parts[index].shard)
    }

    /// Changes a shard, and notes what it holds then.
    fn change<R>(&self, index: usize, change: impl FnOnce(&mut Shard) -> R) -> R {
        let mut shard = self.shard(index);
        let result = change(&mut shard);
        self.parts[index].held_bytes.store(shard.held_bytes(), Ordering::Relaxed);
        result
    }
}

impl Drop for BlockCache {
    /// Bytes that are still in use are counted as pinned from now on.
    fn drop(&mut self) {
        for index in 0..self.parts.len() {
            let frames: Vec<_> = self.shard(index).drain().collect();
            for frame in frames {
                frame.leave_cache();
            }
        }
        self.home.pool.close();
        self.home.kept.close();
    }
}
