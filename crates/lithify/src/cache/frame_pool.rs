//! Where the bytes of blocks lie: slabs of mapped memory, cut into frames of one size each.
//!
//! Blocks are read by many threads, live long, are freed by whichever thread evicts them, and what
//! they may take altogether goes up and down with every memtable. A general allocator keeps what
//! is freed with the thread that once asked for it, and cannot give it back while something
//! beside it is in use: with 64 MiB of budget 121 were resident, with 256 and sizes that change
//! 473. Here the next block of about that size takes the frame, and what nothing takes goes
//! back to the system by the slab.
//!
//! - A frame is of one of [`CLASS_COUNT`] sizes, eight for each doubling, so that a block wastes at
//!   most an eighth. A block larger than all of them has a slab of its own, gone when it goes.
//! - A frame is taken from the open slab of the lowest number, so that others run empty.
//! - Slabs count with all of their pages: what no block has is *held*, and is within the budget.
//! - A slab that must go is drained: of its blocks the cache evicts those of no use and moves the others to
//!   frames of other slabs, one by one ([`FramePool::next_to_depart`]). A slab with a block that
//!   somebody reads stays.
//! - Below [`BUDGET_BYTES_MIN`], and where the system maps no memory, frames are of the allocator.
//!
//! Threads: any thread may call anything; one mutex, held for a frame or for the choice of a slab.

use super::shard::Key;
use super::slab::{FrameRange, Slab};
use crate::base::sync::{AtomicUsize, Mutex, MutexGuard, lock};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Below it slabs of whole pages would be too large a part of what is left to the cache, a sixteenth at
/// times. A concurrency checker runs models of a few blocks.
const BUDGET_BYTES_MIN: usize = if cfg!(shuttle) { 16 << 10 } else { 16 << 20 };

/// What frames of the smallest class hold.
const FRAME_BYTES_MIN: usize = 512;

/// What frames of the largest class hold.
const FRAME_BYTES_MAX: usize = 128 << 10;

/// Classes for each doubling of the size.
const CLASSES_PER_DOUBLING: usize = 8;

/// All classes.
const CLASS_COUNT: usize =
    (FRAME_BYTES_MAX / FRAME_BYTES_MIN).ilog2() as usize * CLASSES_PER_DOUBLING + 1;

/// A slab is one in so many bytes of the budget, within the limits that follow: some classes have
/// a few blocks only, and a slab each.
const SLAB_DIVISOR: usize = 1 << 10;

const SLAB_BYTES_MIN: usize = if cfg!(shuttle) { 4 << 10 } else { 32 << 10 };
const SLAB_BYTES_MAX: usize = 256 << 10;

/// Systems bound the number of mappings: with a larger budget than so many slabs have, they are larger, up to
/// a limit.
const SLAB_COUNT_MAX: usize = 1 << 14;
const LARGE_SLAB_BYTES_MAX: usize = 4 << 20;

/// What the pages of any system are a part or a multiple of.
const PAGE_BYTES: usize = 4 << 10;

/// So many slabs are looked at for one that should go.
const SLABS_PER_LOOK: usize = 32;

/// The stock is one in so many bytes of what the cache may hold.
pub(super) const STOCK_DIVISOR: usize = 32;

/// A frame that is there is taken if it is this many classes too large at most.
const SURPLUS: usize = 1;

/// The same where the alternative is a slab that there is no room for.
const SURPLUS_AT_LAST: usize = 4;

/// The class of a block of so many bytes; `None` for one larger than all.
fn class_of(bytes: usize) -> Option<usize> {
    if bytes <= FRAME_BYTES_MIN {
        return Some(0);
    }
    if bytes > FRAME_BYTES_MAX {
        return None;
    }
    let doubling = ((bytes - 1) / FRAME_BYTES_MIN).ilog2() as usize;
    let (from, step) = doubling_of(doubling);
    Some(doubling * CLASSES_PER_DOUBLING + (bytes - from).div_ceil(step))
}

/// What frames of a class hold.
fn class_bytes(class: usize) -> usize {
    let (from, step) = doubling_of(class / CLASSES_PER_DOUBLING);
    from + class % CLASSES_PER_DOUBLING * step
}

/// The frames of a slab: about its size, and so many that little of its last page is left.
fn frame_count(class: usize, slab_bytes: usize) -> u32 {
    let frame_bytes = class_bytes(class);
    let least = (slab_bytes / frame_bytes).max(1);
    let rest = |count: &usize| {
        let bytes = count * frame_bytes;
        // Of the whole, in parts of a thousand.
        (bytes.next_multiple_of(PAGE_BYTES) - bytes) * 1000 / bytes
    };
    (least..least + CLASSES_PER_DOUBLING).min_by_key(rest).unwrap_or(least) as u32
}

/// The size that a doubling begins behind, and the step between its classes.
fn doubling_of(doubling: usize) -> (usize, usize) {
    let from = FRAME_BYTES_MIN << doubling;
    (from, from / CLASSES_PER_DOUBLING)
}

/// Which frame of which slab. No two frames that are in use have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameId {
    slab: u32,
    place: u32,
}

/// The memory of one block.
pub(super) struct FrameMemory {
    bytes: Memory,
    /// What of it the block takes.
    len: usize,
}

enum Memory {
    Slab(Lent),
    Heap(Box<[u8]>),
}

/// A frame that goes back to its slab.
struct Lent {
    /// There until it is dropped.
    range: Option<FrameRange>,
    slab: u32,
    pool: Arc<FramePool>,
}

impl FrameMemory {
    /// A copy of a block in memory of the allocator.
    pub(super) fn on_heap(block: &[u8]) -> Self {
        FrameMemory { bytes: Memory::Heap(block.into()), len: block.len() }
    }

    fn set(&mut self, block: &[u8]) {
        if let Memory::Slab(lent) = &mut self.bytes
            && let Some(range) = &mut lent.range
            && let Some(bytes) = range.bytes_mut().get_mut(..block.len())
        {
            bytes.copy_from_slice(block);
            self.len = block.len();
        }
    }

    /// What it takes of memory.
    pub(super) fn size_bytes(&self) -> usize {
        match &self.bytes {
            Memory::Slab(lent) => lent.range.as_ref().map_or(0, FrameRange::size_bytes),
            Memory::Heap(bytes) => bytes.len(),
        }
    }

    /// Where it is; `None` if it cannot be moved.
    pub(super) fn id(&self) -> Option<FrameId> {
        let Memory::Slab(lent) = &self.bytes else { return None };
        Some(FrameId { slab: lent.slab, place: lent.range.as_ref()?.place() })
    }

    /// The block.
    pub(super) fn block(&self) -> &[u8] {
        let bytes = match &self.bytes {
            Memory::Slab(lent) => lent.range.as_ref().map_or(&[][..], FrameRange::bytes),
            Memory::Heap(bytes) => bytes,
        };
        &bytes[..self.len]
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(range) = self.range.take() {
            self.pool.give(self.slab, range);
        }
    }
}

/// Slabs of one class.
#[derive(Default)]
struct Class {
    /// Those with free frames from which frames are taken.
    open: BTreeSet<u32>,
    /// Those of them that were not drained in vain.
    can_go: BTreeSet<u32>,
    /// Free frames in them.
    free_frames: usize,
}

/// A slab that is to go.
struct Draining {
    slab: u32,
    /// The next place to look at.
    place: u32,
}

struct Numbered {
    slab: Slab,
    /// `None` of a block that has it alone.
    class: Option<usize>,
    /// Was drained in vain and has got no frame back since.
    is_stuck: bool,
}

struct State {
    /// By their numbers.
    slabs: Vec<Option<Numbered>>,
    /// Numbers without a slab.
    vacant: Vec<u32>,
    classes: Vec<Class>,
    /// Slabs without a block.
    empty: BTreeSet<u32>,
    draining: Option<Draining>,
    /// A slab without blocks goes at once.
    keeps_none: bool,
}

/// All slabs; see the head of the file.
pub(super) struct FramePool {
    /// `None` where frames are of the allocator.
    slab_bytes: Option<usize>,
    state: Mutex<State>,
    /// What slabs take that no block has.
    held_bytes: AtomicUsize,
    /// What free frames take: the same without the rests of pages.
    free_bytes: AtomicUsize,
    /// The same when there last was no slab that could go; 0: there may be one.
    futile_bytes: AtomicUsize,
    /// What of the free frames lies in slabs that were drained in vain.
    stuck_bytes: AtomicUsize,
}

impl FramePool {
    /// An empty pool for the blocks of a budget that come and go.
    pub(super) fn new(budget_bytes: usize) -> Self {
        FramePool::of(budget_bytes, false)
    }

    /// The same for blocks that stay where they are: a slab without any goes at once.
    pub(super) fn of_kept(budget_bytes: usize) -> Self {
        FramePool::of(budget_bytes, true)
    }

    fn of(budget_bytes: usize, keeps_none: bool) -> Self {
        let slab_bytes = (budget_bytes / SLAB_DIVISOR).clamp(SLAB_BYTES_MIN, SLAB_BYTES_MAX);
        let slab_bytes = slab_bytes.max((budget_bytes / SLAB_COUNT_MAX).min(LARGE_SLAB_BYTES_MAX));
        FramePool {
            slab_bytes: (budget_bytes >= BUDGET_BYTES_MIN).then_some(slab_bytes),
            state: Mutex::new(State {
                slabs: Vec::new(),
                vacant: Vec::new(),
                classes: std::iter::repeat_with(Class::default).take(CLASS_COUNT).collect(),
                empty: BTreeSet::new(),
                draining: None,
                keeps_none,
            }),
            held_bytes: AtomicUsize::new(0),
            free_bytes: AtomicUsize::new(0),
            futile_bytes: AtomicUsize::new(0),
            stuck_bytes: AtomicUsize::new(0),
        }
    }

    /// What slabs take that no block has.
    pub(super) fn held_bytes(&self) -> usize {
        self.held_bytes.load(Ordering::Relaxed)
    }

    /// Whether more frames are free than the stock of a cache that may hold so many bytes, and enough more than
    /// when no slab could go.
    pub(super) fn is_stocked(&self, capacity_bytes: usize) -> bool {
        let (free_bytes, futile_bytes) = (self.free_bytes(), &self.futile_bytes);
        let enough_bytes = match futile_bytes.load(Ordering::Relaxed) {
            0 => 0,
            bytes if free_bytes < bytes / 2 => {
                futile_bytes.store(0, Ordering::Relaxed);
                0
            }
            bytes => bytes + self.slab_bytes.unwrap_or(0),
        };
        free_bytes > enough_bytes.max(capacity_bytes / STOCK_DIVISOR)
    }

    /// Whether more frames are free than the stock, in slabs that cannot go because somebody reads a block of
    /// theirs. To evict more would free frames and no memory.
    pub(super) fn is_pinned_down(&self, capacity_bytes: usize) -> bool {
        let is_futile = self.futile_bytes.load(Ordering::Relaxed) > 0;
        is_futile && self.stuck_bytes() > capacity_bytes / STOCK_DIVISOR
    }

    /// What lies free between blocks that somebody reads, or read when their slab was to go.
    pub(super) fn stuck_bytes(&self) -> usize {
        self.stuck_bytes.load(Ordering::Relaxed)
    }

    fn free_bytes(&self) -> usize {
        self.free_bytes.load(Ordering::Relaxed)
    }

    /// What a block of so many bytes takes, if it gets a frame of its class.
    pub(super) fn frame_bytes(&self, bytes: usize) -> usize {
        match class_of(bytes) {
            Some(class) if self.slab_bytes.is_some() => class_bytes(class),
            _ => bytes,
        }
    }

    /// What a new slab for a block of so many bytes takes, but for the rest of its last page.
    pub(super) fn growth_bytes(&self, bytes: usize) -> usize {
        match (class_of(bytes), self.slab_bytes) {
            (Some(class), Some(slab_bytes)) => {
                frame_count(class, slab_bytes) as usize * class_bytes(class)
            }
            _ => bytes,
        }
    }

    /// A copy of the block in a frame that is there, if one of about its size is free.
    pub(super) fn take(self: &Arc<Self>, key: Key, block: &[u8]) -> Option<FrameMemory> {
        self.take_of(key, block, SURPLUS)
    }

    /// A copy of the block in a frame of whatever the pool can get: one that is there, one of a new slab,
    /// or memory of the allocator.
    pub(super) fn grow(self: &Arc<Self>, key: Key, block: &[u8]) -> FrameMemory {
        if self.slab_bytes.is_none() {
            return FrameMemory::on_heap(block);
        }
        if let Some(memory) = self.take_of(key, block, SURPLUS_AT_LAST) {
            return memory;
        }
        let class = class_of(block.len());
        // Others do not wait for the system.
        let Some(slab) = self.new_slab(class, block.len()) else {
            return FrameMemory::on_heap(block);
        };
        let mut state = self.state();
        let added = self.add_slab(&mut state, class, slab);
        let taken = self.take_from(&mut state, added, key);
        drop(state);
        taken.map_or_else(|| FrameMemory::on_heap(block), |memory| memory.of(block))
    }

    /// A copy of a block elsewhere, for one that is to move, if a frame for it is free.
    pub(super) fn take_to_move(self: &Arc<Self>, key: Key, block: &[u8]) -> Option<FrameMemory> {
        self.take_of(key, block, SURPLUS_AT_LAST)
    }

    fn take_of(self: &Arc<Self>, key: Key, block: &[u8], surplus: usize) -> Option<FrameMemory> {
        let class = class_of(block.len()).filter(|_| self.slab_bytes.is_some())?;
        let mut state = self.state();
        let last = (class + surplus).min(CLASS_COUNT - 1);
        let fitting = &state.classes[class..=last];
        let slab = fitting.iter().find_map(|class| class.open.first().copied())?;
        let memory = self.take_from(&mut state, slab, key)?;
        drop(state);
        // The lock is not held for the copy.
        Some(memory.of(block))
    }

    fn take_from(self: &Arc<Self>, state: &mut State, slab: u32, key: Key) -> Option<FrameMemory> {
        let numbered = state.slabs.get_mut(slab as usize)?.as_mut()?;
        let range = numbered.slab.take(key)?;
        if numbered.is_stuck {
            self.stuck_bytes.fetch_sub(range.size_bytes(), Ordering::Relaxed);
        }
        let (class, is_full) = (numbered.class, numbered.slab.free_count() == 0);
        state.empty.remove(&slab);
        if let Some(class) = class.map(|class| &mut state.classes[class]) {
            class.free_frames -= 1;
            if is_full {
                class.open.remove(&slab);
                class.can_go.remove(&slab);
            }
        }
        self.held_bytes.fetch_sub(range.size_bytes(), Ordering::Relaxed);
        self.free_bytes.fetch_sub(range.size_bytes(), Ordering::Relaxed);
        let lent = Lent { range: Some(range), slab, pool: Arc::clone(self) };
        Some(FrameMemory { bytes: Memory::Slab(lent), len: 0 })
    }

    /// Maps a slab for blocks of that class or, without one, for one of so many bytes.
    fn new_slab(&self, class: Option<usize>, bytes: usize) -> Option<Slab> {
        let frame_bytes = class.map_or(bytes, class_bytes);
        let frame_count = match class {
            Some(class) => frame_count(class, self.slab_bytes?),
            None => 1,
        };
        Slab::new(frame_bytes, frame_count)
    }

    /// Adds a slab, all of it free. The number that it gets.
    fn add_slab(&self, state: &mut State, class: Option<usize>, slab: Slab) -> u32 {
        let frame_count = slab.frame_count();
        self.held_bytes.fetch_add(slab.size_bytes(), Ordering::Relaxed);
        self.free_bytes.fetch_add(slab.free_bytes(), Ordering::Relaxed);
        let numbered = Some(Numbered { slab, class, is_stuck: false });
        let number = match state.vacant.pop() {
            Some(number) => {
                state.slabs[number as usize] = numbered;
                number
            }
            None => {
                state.slabs.push(numbered);
                (state.slabs.len() - 1) as u32
            }
        };
        state.empty.insert(number);
        if let Some(class) = class.map(|class| &mut state.classes[class]) {
            class.open.insert(number);
            class.can_go.insert(number);
            class.free_frames += frame_count;
        }
        number
    }

    /// Takes a frame back.
    fn give(&self, number: u32, range: FrameRange) {
        let mut state = self.state();
        let is_draining = state.draining.as_ref().is_some_and(|draining| draining.slab == number);
        let Some(numbered) = state.slabs.get_mut(number as usize).and_then(Option::as_mut) else {
            return;
        };
        self.held_bytes.fetch_add(range.size_bytes(), Ordering::Relaxed);
        self.free_bytes.fetch_add(range.size_bytes(), Ordering::Relaxed);
        let was_stuck = std::mem::take(&mut numbered.is_stuck);
        if was_stuck {
            self.stuck_bytes.fetch_sub(numbered.slab.free_bytes(), Ordering::Relaxed);
        }
        numbered.slab.give(range);
        let (class, is_empty) = (numbered.class, numbered.slab.is_empty());
        let was_left_out = was_stuck || numbered.slab.free_count() == 1;
        if let Some(class) = class.map(|class| &mut state.classes[class])
            && !is_draining
        {
            class.free_frames += 1;
            if was_left_out {
                class.open.insert(number);
                class.can_go.insert(number);
            }
        }
        let gone = match is_empty && (is_draining || state.keeps_none || class.is_none()) {
            true => self.remove(&mut state, number),
            false => None,
        };
        if is_empty && gone.is_none() {
            state.empty.insert(number);
            self.futile_bytes.store(0, Ordering::Relaxed);
        }
        drop(state);
        // Its pages are returned without the lock.
        drop(gone);
    }

    /// Takes a slab without blocks out.
    fn remove(&self, state: &mut State, number: u32) -> Option<Slab> {
        state.empty.remove(&number);
        let is_draining = state.draining.as_ref().is_some_and(|draining| draining.slab == number);
        let Numbered { slab, class, is_stuck } = state.slabs.get_mut(number as usize)?.take()?;
        state.vacant.push(number);
        if is_stuck {
            self.stuck_bytes.fetch_sub(slab.free_bytes(), Ordering::Relaxed);
        }
        if is_draining {
            state.draining = None;
        } else if let Some(class) = class.map(|class| &mut state.classes[class]) {
            class.open.remove(&number);
            class.can_go.remove(&number);
            class.free_frames -= slab.free_count();
        }
        self.held_bytes.fetch_sub(slab.size_bytes(), Ordering::Relaxed);
        self.free_bytes.fetch_sub(slab.free_bytes(), Ordering::Relaxed);
        // A block that has a slab to itself is in nobody's way.
        if class.is_some() {
            self.futile_bytes.store(0, Ordering::Relaxed);
        }
        Some(slab)
    }

    /// Gives a slab without blocks back to the system; false if there is none.
    pub(super) fn give_back_empty(&self) -> bool {
        let mut state = self.state();
        let Some(number) = state.empty.last().copied() else { return false };
        let gone = self.remove(&mut state, number);
        drop(state);
        gone.is_some()
    }

    /// A block that should leave its frame so that the slab can go: when all of them have, it does. `None`
    /// if there is no slab whose blocks have room elsewhere.
    pub(super) fn next_to_depart(&self) -> Option<(Key, FrameId)> {
        let mut state = self.state();
        loop {
            if state.draining.is_none() {
                state.draining = state.begin_draining();
            }
            if state.draining.is_none() {
                self.futile_bytes.store(self.free_bytes().max(1), Ordering::Relaxed);
                return None;
            }
            if let Some(next) = state.next_of_draining() {
                return Some(next);
            }
            self.end_draining(&mut state);
        }
    }

    /// Opens the slab that is drained again, as a rule because blocks stayed in it.
    fn end_draining(&self, state: &mut State) {
        let Some(Draining { slab: number, .. }) = state.draining.take() else { return };
        let Some(numbered) = state.slabs.get_mut(number as usize).and_then(Option::as_mut) else {
            return;
        };
        numbered.is_stuck = true;
        self.stuck_bytes.fetch_add(numbered.slab.free_bytes(), Ordering::Relaxed);
        let free_count = numbered.slab.free_count();
        if let Some(class) = numbered.class.map(|class| &mut state.classes[class])
            && free_count > 0
        {
            class.open.insert(number);
            class.free_frames += free_count;
        }
    }

    /// A block stays in its frame, as somebody reads it: while it does, no other one needs to leave its
    /// slab.
    pub(super) fn stop_draining(&self, key: Key, id: FrameId) {
        let mut state = self.state();
        let is_draining = state.draining.as_ref().is_some_and(|draining| draining.slab == id.slab);
        let numbered = state.slabs.get(id.slab as usize).and_then(Option::as_ref);
        if is_draining && numbered.and_then(|n| n.slab.key_at(id.place)) == Some(key) {
            self.end_draining(&mut state);
        }
    }

    /// Nothing more is taken. Frames that are out stay; slabs go as soon as they have no block.
    pub(super) fn close(&self) {
        self.state().keeps_none = true;
        while self.give_back_empty() {}
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl FrameMemory {
    /// With the block in it.
    fn of(mut self, block: &[u8]) -> Self {
        self.set(block);
        self
    }
}

impl State {
    /// Picks a slab of the class that holds most without use, if its blocks have room in others of the class,
    /// and closes it.
    fn begin_draining(&mut self) -> Option<Draining> {
        let by_free = |class: &usize| class_bytes(*class) * self.classes[*class].free_frames;
        let mut classes: Vec<usize> =
            (0..CLASS_COUNT).filter(|class| !self.classes[*class].can_go.is_empty()).collect();
        classes.sort_by_key(|class| Reverse(by_free(class)));
        let slab = classes.into_iter().find_map(|class| self.emptiest_that_can_go(class))?;
        let numbered = self.slabs[slab as usize].as_ref()?;
        let class = &mut self.classes[numbered.class?];
        class.open.remove(&slab);
        class.can_go.remove(&slab);
        class.free_frames -= numbered.slab.free_count();
        Some(Draining { slab, place: 0 })
    }

    /// The emptiest of the last: frames are taken from the first.
    fn emptiest_that_can_go(&self, class: usize) -> Option<u32> {
        let class = &self.classes[class];
        let last = class.can_go.iter().rev().take(SLABS_PER_LOOK);
        let slabs = last.filter_map(|number| {
            self.slabs[*number as usize].as_ref().map(|numbered| (*number, &numbered.slab))
        });
        let (number, slab) = slabs.max_by_key(|(_, slab)| slab.free_count())?;
        (class.free_frames >= slab.frame_count()).then_some(number)
    }

    /// The next block of the slab that is drained; `None` at its end.
    fn next_of_draining(&mut self) -> Option<(Key, FrameId)> {
        let draining = self.draining.as_mut()?;
        let number = draining.slab;
        let numbered = self.slabs.get(number as usize)?.as_ref()?;
        while (draining.place as usize) < numbered.slab.frame_count() {
            let place = draining.place;
            draining.place += 1;
            if let Some(key) = numbered.slab.key_at(place) {
                return Some((key, FrameId { slab: number, place }));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET_BYTES: usize = 64 << 20;

    fn pool() -> Arc<FramePool> {
        Arc::new(FramePool::new(BUDGET_BYTES))
    }

    fn key(offset: u64) -> Key {
        Key { file_id: 1, offset }
    }

    /// Frames of blocks of so many bytes, as many as there are.
    fn frames(pool: &Arc<FramePool>, bytes: usize, count: u64) -> Vec<FrameMemory> {
        let frame = |offset: u64| {
            let block = vec![offset as u8; bytes];
            pool.take(key(offset), &block).unwrap_or_else(|| pool.grow(key(offset), &block))
        };
        (0..count).map(frame).collect()
    }

    #[test]
    fn classes_waste_an_eighth_at_most() {
        let mut classes = 0;
        for bytes in 1..=FRAME_BYTES_MAX {
            let class = class_of(bytes).unwrap();
            let holds = class_bytes(class);
            assert!(holds >= bytes && class < CLASS_COUNT);
            assert!(bytes <= FRAME_BYTES_MIN || holds - bytes < bytes / 8, "{holds} for {bytes}");
            assert!(class == 0 || class_bytes(class - 1) < bytes, "the smallest that fits");
            classes = classes.max(class + 1);
        }
        assert_eq!((class_of(0), classes), (Some(0), CLASS_COUNT));
        assert_eq!(class_of(FRAME_BYTES_MAX + 1), None);
        assert_eq!(class_of(usize::MAX), None);
    }

    #[test]
    fn frames_are_whole_and_come_back() {
        let pool = pool();
        for bytes in [1, 500, 1100, 8 << 10, 9000, 60_000, FRAME_BYTES_MAX, 1 << 20] {
            let frames = frames(&pool, bytes, 20);
            for (number, frame) in frames.iter().enumerate() {
                assert_eq!(frame.block(), vec![number as u8; bytes]);
                assert!(frame.size_bytes() >= bytes && frame.id().is_some());
            }
            let ids: Vec<_> = frames.iter().filter_map(FrameMemory::id).collect();
            assert!(ids.iter().enumerate().all(|(place, id)| !ids[..place].contains(id)));
        }
        // What was given back is there for the next, and goes if nobody wants it.
        assert!(pool.held_bytes() > 0);
        let held_bytes = pool.held_bytes();
        let again = frames(&pool, 9000, 3);
        assert!(pool.held_bytes() < held_bytes, "no new slab");
        drop(again);
        while pool.give_back_empty() {}
        assert_eq!(pool.held_bytes(), 0);
        assert!(pool.next_to_depart().is_none());
    }

    #[test]
    fn a_block_that_is_too_large_for_classes_goes_with_its_slab() {
        let pool = pool();
        let frame = pool.grow(key(0), &vec![3; 3 << 20]);
        assert!(frame.size_bytes() >= 3 << 20 && pool.held_bytes() < 4096);
        assert!(pool.take(key(0), &vec![3; 3 << 20]).is_none());
        drop(frame);
        assert_eq!(pool.held_bytes(), 0);
    }

    #[test]
    fn a_block_takes_a_frame_that_is_a_little_larger() {
        let pool = pool();
        drop(frames(&pool, 9 << 10, 1));
        assert!(pool.take(key(1), &[0; 7 << 10]).is_none());
        let frame = pool.take(key(1), &[0; 8 << 10]).unwrap();
        assert_eq!((frame.size_bytes(), frame.block().len()), (9 << 10, 8 << 10));
        // Before a new slab, one that is much larger.
        let frame = pool.grow(key(1), &[0; 7 << 10]);
        assert_eq!(frame.size_bytes(), 9 << 10);
        assert_eq!(pool.grow(key(1), &[0; 5 << 10]).size_bytes(), 5 << 10);
    }

    #[test]
    fn small_budgets_have_the_allocators_memory() {
        let pool = Arc::new(FramePool::new(BUDGET_BYTES_MIN - 1));
        let block = [5; 3000];
        assert!(pool.take(key(1), &block).is_none());
        let frame = pool.grow(key(1), &block);
        assert_eq!((frame.block(), frame.size_bytes(), frame.id()), (&block[..], 3000, None));
        assert_eq!(pool.frame_bytes(3000), 3000);
        drop(frame);
        assert_eq!(pool.held_bytes(), 0);
    }

    /// Drains the pool: who must depart is looked up in `frames`, and moves.
    fn drain(pool: &Arc<FramePool>, frames: &mut [Option<FrameMemory>]) -> usize {
        let mut moved = 0;
        while pool.give_back_empty() || {
            let Some((key, id)) = pool.next_to_depart() else { return moved };
            let place = &mut frames[key.offset as usize];
            assert_eq!(place.as_ref().and_then(FrameMemory::id), Some(id));
            let block = place.as_ref().unwrap().block().to_vec();
            let memory = pool.take_to_move(key, &block).expect("room elsewhere");
            *place = Some(memory);
            moved += 1;
            true
        } {}
        moved
    }

    #[test]
    fn what_blocks_leave_between_others_goes_back_by_the_slab() {
        let pool = pool();
        let mut all: Vec<_> = frames(&pool, 8 << 10, 800).into_iter().map(Some).collect();
        let full_bytes = pool.held_bytes();
        // One in two goes, from all slabs.
        for frame in all.iter_mut().step_by(2) {
            *frame = None;
        }
        assert!(pool.held_bytes() >= full_bytes + 400 * (8 << 10));
        let moved = drain(&pool, &mut all);
        assert!((100..=300).contains(&moved), "{moved} blocks were moved to free half of 800");
        let slab_bytes = BUDGET_BYTES / SLAB_DIVISOR;
        assert!(pool.held_bytes() <= slab_bytes, "{} bytes held", pool.held_bytes());
        for (number, frame) in all.iter().enumerate().skip(1).step_by(2) {
            assert_eq!(frame.as_ref().unwrap().block(), [number as u8; 8 << 10]);
        }
    }

    #[test]
    fn a_slab_whose_block_stays_is_left_alone_until_it_gets_a_frame_back() {
        let pool = pool();
        let mut all = frames(&pool, 8 << 10, 160);
        // Of each slab of eight one block is left, and does not move.
        let kept: Vec<_> = (0..20).map(|slab| all.swap_remove(159 - 8 * slab)).collect();
        drop(all);
        let held_bytes = pool.held_bytes();
        for _ in 0..20 {
            assert!(pool.next_to_depart().is_some());
        }
        for _ in 0..3 {
            assert!(pool.next_to_depart().is_none(), "all were tried");
        }
        assert_eq!(pool.held_bytes(), held_bytes);
        assert!(!pool.is_stocked(held_bytes), "trying again is of no use");
        assert_eq!(pool.stuck_bytes(), 20 * 7 * (8 << 10));
        // Their frames are there for others all the same.
        let again = frames(&pool, 8 << 10, 140);
        assert!(pool.held_bytes() < 4096 * 20);
        assert_eq!(pool.stuck_bytes(), 0);
        drop(again);
        drop(kept);
        while pool.give_back_empty() {}
        assert_eq!(pool.held_bytes(), 0);
    }

    #[test]
    fn a_slab_that_ran_empty_before_it_was_drained_is_not_stuck_once_it_is_gone() {
        let pool = pool();
        drop(frames(&pool, 8 << 10, 8));
        assert!(pool.next_to_depart().is_none());
        assert_eq!(pool.stuck_bytes(), 8 * (8 << 10));
        assert!(pool.give_back_empty());
        assert_eq!((pool.stuck_bytes(), pool.held_bytes()), (0, 0));
    }

    #[test]
    fn a_closed_pool_keeps_what_is_out_and_nothing_else() {
        let pool = pool();
        let mut all = frames(&pool, 8 << 10, 80);
        let last = all.pop().unwrap();
        pool.close();
        drop(all);
        assert_eq!(pool.held_bytes(), 7 * (8 << 10), "the rest of one slab");
        assert_eq!(last.block(), [79; 8 << 10]);
        drop(last);
        assert_eq!(pool.held_bytes(), 0);
    }
}
