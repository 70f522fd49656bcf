//! One part of the cache: a map and two queues under one lock (the caller's).
//!
//! Blocks lie in slots that are linked into one of two first-in-first-out queues (S3-FIFO):
//!
//! 1. A new data block enters `small`. When its turn to leave comes and it was used since, it
//!    moves to `main`; otherwise it goes and leaves a ghost, a fingerprint of its key.
//! 2. A new block whose ghost is there was wanted again soon: it enters `main` at once.
//! 3. A block whose turn comes in `main` goes back to its end while it has uses left, one use
//!    less each time.
//! 4. `small` gives up blocks while it holds a tenth or more of the bytes, `main` otherwise.
//!
//! Where hardly any block is used again before its turn in `small` comes, as with reads at random
//! over far more than the cache holds, taking blocks in is work for nothing. The shard is choosy
//! then: of missed blocks without a ghost it wants one in eight, to see whether that is still so.
//! The others leave a ghost, so that one which is wanted again soon gets in.
//!
//! A scan's blocks enter `small` at its leaving end, leave before anything else and leave no
//! ghost: a scan takes the place of its own blocks. Where hardly any of them is found before it
//! leaves, the shard is choosy about those too. Index and filter blocks enter `main` with
//! more uses than a data block can have, as each serves many data blocks.
//!
//! Nothing is allocated when a block is found. Freed frames are returned to the caller, so that
//! their memory is given back outside the lock.

use super::frame::{FRAME_OVERHEAD_BYTES, Frame};
use super::frame_pool::FrameId;
use super::{BlockKind, CachedBlocks};
use bytes::Bytes;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// `small` gives up blocks while it holds at least one in this many bytes.
const SMALL_DIVISOR: usize = 10;

/// How many times a turn may end with a second life before a block goes whatever its uses: this
/// bounds the time that one eviction holds the lock.
const SECOND_LIVES_MAX: usize = 64;

/// So many blocks leave between two looks at how many of them were used.
const LEFT_PER_LOOK: u32 = 256;

/// The shard is choosy if fewer than one in so many were.
const CHOOSY_DIVISOR: u32 = 32;

/// A choosy shard wants one in so many of the blocks that it does not know.
const WANTED_PERIOD: u64 = 8;

/// No slot.
const NONE: u32 = u32::MAX;

/// Which block of which file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) file_id: u64,
    pub(super) offset: u64,
}

impl Key {
    pub(super) fn new(mut file_id: u64, offset: u64) -> Self {
        if planted!(CacheKeyWithoutFile) {
            file_id = 0;
        }
        Key { file_id, offset }
    }

    /// Mixes both numbers into all bits. The same in every process, so that runs repeat.
    #[inline]
    pub(super) fn hash(self) -> u64 {
        let fold = |a: u64, b: u64| {
            let product = u128::from(a) * u128::from(b);
            (product >> 64) as u64 ^ product as u64
        };
        let seeded = self.offset ^ 0x243F_6A88_85A3_08D3;
        let mixed = fold(seeded, 0x9E37_79B9_7F4A_7C15) ^ self.file_id;
        fold(mixed ^ 0x1319_8A2E_0370_7344, 0xD6E8_FEB8_6659_FD93)
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(Key::hash(*self));
    }
}

/// Passes on the hash that a key has made of itself.
#[derive(Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The queue that a slot is linked into.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Small,
    Main,
}

struct Slot {
    key: Key,
    /// `None` in a free slot.
    frame: Option<Frame>,
    charged_bytes: usize,
    kind: BlockKind,
    place: Place,
    /// Came from a scan and was not found since.
    is_scan: bool,
    /// Lives left; see the module head.
    uses: u8,
    /// Towards the leaving end.
    older: u32,
    /// Towards the entering end; in a free slot the next free one.
    newer: u32,
}

/// The slot and its share of the map, half full, are within what a block is charged for them.
const _: () = assert!(size_of::<Slot>() + 2 * size_of::<(Key, u32)>() <= FRAME_OVERHEAD_BYTES / 2);

/// See [`Shard::depart`].
pub(super) enum Departure {
    /// These bytes are to get another frame.
    Moves(Bytes),
    /// The block has been evicted.
    Leaves(Frame),
}

/// A linked queue and the bytes in it.
struct Queue {
    oldest: u32,
    newest: u32,
    bytes: usize,
}

impl Queue {
    const EMPTY: Queue = Queue { oldest: NONE, newest: NONE, bytes: 0 };
}

/// Whether new blocks of a kind are worth taking in, by what became of those before.
#[derive(Default)]
struct Choosiness {
    /// Blocks that left since the last look, and those of them that had been used.
    left: u32,
    left_used: u32,
    is_choosy: bool,
    /// Blocks that nobody knew and that were asked for meanwhile.
    strangers: u64,
}

impl Choosiness {
    /// Counts a block that leaves or that proved to be of use, and now and then decides anew.
    fn note(&mut self, was_used: bool) {
        self.left += 1;
        self.left_used += u32::from(was_used);
        if self.left == LEFT_PER_LOOK {
            self.is_choosy = self.left_used * CHOOSY_DIVISOR < self.left;
            (self.left, self.left_used) = (0, 0);
        }
    }

    /// Whether a block that nobody knows gets in, be it to see whether it is still of no use.
    fn admits_stranger(&mut self) -> bool {
        if !self.is_choosy {
            return true;
        }
        self.strangers += 1;
        self.strangers.is_multiple_of(WANTED_PERIOD)
    }
}

/// See the module head.
pub(super) struct Shard {
    map: HashMap<Key, u32, BuildHasherDefault<KeyHasher>>,
    slots: Vec<Slot>,
    free: u32,
    small: Queue,
    main: Queue,
    /// Fingerprints at the place that the hash picks, each until another takes its place.
    ghosts: Vec<u32>,
    /// About blocks of reads at one place.
    points: Choosiness,
    /// About blocks of scans.
    scans: Choosiness,
    pub(super) misses: u64,
    /// Missed blocks that were not worth taking in.
    pub(super) unwanted: u64,
    /// By kind, in the order of their numbers.
    pub(super) blocks: [CachedBlocks; BlockKind::ALL.len()],
}

impl Shard {
    pub(super) fn new() -> Self {
        Shard {
            map: HashMap::default(),
            slots: Vec::new(),
            free: NONE,
            small: Queue::EMPTY,
            main: Queue::EMPTY,
            ghosts: Vec::new(),
            points: Choosiness::default(),
            scans: Choosiness::default(),
            misses: 0,
            unwanted: 0,
            blocks: Default::default(),
        }
    }

    /// The bytes charged for the blocks here.
    pub(super) fn held_bytes(&self) -> usize {
        self.small.bytes + self.main.bytes
    }

    /// The block, if it is here; a use of it.
    pub(super) fn get(&mut self, key: Key) -> Option<Bytes> {
        let found = self.find(key);
        if found.is_none() {
            self.misses += 1;
        }
        found
    }

    /// Whether a data block that was just missed is worth taking in.
    pub(super) fn wants(&mut self, key: Key) -> bool {
        let is_known = self.points.is_choosy && self.has_ghost(key);
        if is_known || self.points.admits_stranger() {
            return true;
        }
        self.unwanted += 1;
        self.leave_ghost(key);
        false
    }

    /// The same of a scan's block.
    pub(super) fn wants_scan(&mut self) -> bool {
        let is_wanted = self.scans.admits_stranger();
        self.unwanted += u64::from(!is_wanted);
        is_wanted
    }

    fn find(&mut self, key: Key) -> Option<Bytes> {
        let slot = self.slots.get_mut(*self.map.get(&key)? as usize)?;
        slot.uses = (slot.uses + 1).min(slot.kind.uses_max());
        if std::mem::take(&mut slot.is_scan) {
            self.scans.note(true);
        }
        self.blocks[slot.kind as usize].hits += 1;
        slot.frame.as_ref().map(Frame::bytes)
    }

    /// Takes a frame in. If the block is here already (two readers missed it at once), the one
    /// that is here is returned and the new one given back.
    pub(super) fn insert(
        &mut self,
        key: Key,
        kind: BlockKind,
        is_scan: bool,
        charged_bytes: usize,
        frame: Frame,
    ) -> (Bytes, Option<Frame>) {
        let mut present =
            self.map.get(&key).and_then(|index| self.slots[*index as usize].frame.as_ref());
        if planted!(BlockCachedTwice) {
            present = None;
        }
        if let Some(present) = present {
            return (present.bytes(), Some(frame));
        }
        let bytes = frame.bytes();
        let wanted_again = !is_scan && self.take_ghost(key);
        let place =
            if kind == BlockKind::Data && !wanted_again { Place::Small } else { Place::Main };
        let uses = if kind == BlockKind::Data { 0 } else { kind.uses_max() / 2 };
        let is_scan = is_scan && place == Place::Small;
        let (older, newer) = (NONE, NONE);
        let frame = Some(frame);
        let slot = Slot { key, frame, charged_bytes, kind, place, is_scan, uses, older, newer };
        let index = self.fill_slot(slot);
        self.map.insert(key, index);
        self.link(index, is_scan);
        let blocks = &mut self.blocks[kind as usize];
        blocks.inserted += 1;
        blocks.inserted_bytes += charged_bytes as u64;
        blocks.count += 1;
        blocks.used_bytes += charged_bytes as u64;
        (bytes, None)
    }

    /// What becomes of a block whose frame has to go, if it still has that frame: a new one that was not used
    /// again leaves, and others are worth a move unless they must leave.
    pub(super) fn depart(&mut self, key: Key, id: FrameId, must_leave: bool) -> Option<Departure> {
        let index = *self.map.get(&key)?;
        let slot = self.slots.get(index as usize)?;
        let frame = slot.frame.as_ref().filter(|frame| frame.id() == Some(id))?;
        if !must_leave && (slot.uses > 0 || slot.place == Place::Main) {
            return Some(Departure::Moves(frame.bytes()));
        }
        let (is_scan, kind) = (slot.is_scan, slot.kind);
        if !is_scan {
            self.leave_ghost(key);
        }
        self.blocks[kind as usize].evicted += 1;
        self.remove(index).map(Departure::Leaves)
    }

    /// Gives a block that still has that frame another one with the same bytes. Returns the frame that
    /// nobody needs: the old one, or the new one if the block has left or has got another.
    pub(super) fn exchange(
        &mut self,
        key: Key,
        id: FrameId,
        charged_bytes: usize,
        frame: Frame,
    ) -> Frame {
        let place = self.map.get(&key).and_then(|index| self.slots.get_mut(*index as usize));
        let Some(slot) = place else { return frame };
        let Some(old) = slot.frame.take_if(|frame| frame.id() == Some(id)) else { return frame };
        slot.frame = Some(frame);
        let before_bytes = std::mem::replace(&mut slot.charged_bytes, charged_bytes);
        let (kind, place) = (slot.kind, slot.place);
        let used_bytes = &mut self.blocks[kind as usize].used_bytes;
        *used_bytes = *used_bytes + charged_bytes as u64 - before_bytes as u64;
        let queue = self.queue(place);
        queue.bytes = queue.bytes + charged_bytes - before_bytes;
        old
    }

    /// Evicts the block whose turn it is.
    pub(super) fn evict(&mut self) -> Option<Frame> {
        for lives in 0.. {
            let total = self.held_bytes();
            let scan_first = self.slots.get(self.small.oldest as usize).is_some_and(|s| s.is_scan);
            let from_small = self.main.oldest == NONE
                || scan_first
                || (self.small.oldest != NONE && self.small.bytes >= total / SMALL_DIVISOR);
            let index = if from_small { self.small.oldest } else { self.main.oldest };
            let slot = self.slots.get(index as usize)?;
            let (is_scan, was_used) = (slot.is_scan, slot.uses > 0);
            if from_small {
                let choosiness = if is_scan { &mut self.scans } else { &mut self.points };
                choosiness.note(was_used);
            }
            let slot = self.slots.get_mut(index as usize)?;
            if slot.uses == 0 || lives == SECOND_LIVES_MAX {
                let (key, kind) = (slot.key, slot.kind);
                if from_small && !is_scan {
                    self.leave_ghost(key);
                }
                self.blocks[kind as usize].evicted += 1;
                return self.remove(index);
            }
            self.unlink(index);
            let slot = &mut self.slots[index as usize];
            slot.uses = if from_small { 0 } else { slot.uses - 1 };
            slot.place = Place::Main;
            self.link(index, false);
        }
        None
    }

    /// Removes the blocks of a file among `count` slots from `start` on; returns their frames and
    /// whether there are more slots.
    pub(super) fn erase_file(
        &mut self,
        file_id: u64,
        start: usize,
        count: usize,
    ) -> (Vec<Frame>, bool) {
        let end = self.slots.len().min(start + count);
        let mut erased = Vec::new();
        for index in start..end {
            let slot = &self.slots[index];
            if slot.frame.is_some() && slot.key.file_id == file_id {
                erased.extend(self.remove(index as u32));
            }
        }
        (erased, end < self.slots.len())
    }

    /// Takes all frames out.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Frame> {
        let slots = std::mem::replace(self, Shard::new()).slots;
        slots.into_iter().filter_map(|slot| slot.frame)
    }

    fn queue(&mut self, place: Place) -> &mut Queue {
        match place {
            Place::Small => &mut self.small,
            Place::Main => &mut self.main,
        }
    }

    /// Links a slot in at the entering end of its queue, or at the leaving end.
    fn link(&mut self, index: u32, at_leaving_end: bool) {
        let Slot { place, charged_bytes, .. } = self.slots[index as usize];
        let queue = self.queue(place);
        queue.bytes += charged_bytes;
        let neighbour = if at_leaving_end { &mut queue.oldest } else { &mut queue.newest };
        let neighbour = std::mem::replace(neighbour, index);
        if neighbour == NONE {
            (queue.oldest, queue.newest) = (index, index);
        }
        let (older, newer) = if at_leaving_end { (NONE, neighbour) } else { (neighbour, NONE) };
        (self.slots[index as usize].older, self.slots[index as usize].newer) = (older, newer);
        if let Some(slot) = self.slots.get_mut(neighbour as usize) {
            *(if at_leaving_end { &mut slot.older } else { &mut slot.newer }) = index;
        }
    }

    fn unlink(&mut self, index: u32) {
        let Slot { place, charged_bytes, older, newer, .. } = self.slots[index as usize];
        match self.slots.get_mut(older as usize) {
            Some(slot) => slot.newer = newer,
            None => self.queue(place).oldest = newer,
        }
        match self.slots.get_mut(newer as usize) {
            Some(slot) => slot.older = older,
            None => self.queue(place).newest = older,
        }
        self.queue(place).bytes -= charged_bytes;
    }

    fn remove(&mut self, index: u32) -> Option<Frame> {
        self.unlink(index);
        let free = std::mem::replace(&mut self.free, index);
        let slot = &mut self.slots[index as usize];
        slot.newer = free;
        self.map.remove(&slot.key);
        let blocks = &mut self.blocks[slot.kind as usize];
        blocks.count -= 1;
        blocks.used_bytes -= slot.charged_bytes as u64;
        slot.frame.take()
    }

    /// Puts a slot into a free place or a new one.
    fn fill_slot(&mut self, slot: Slot) -> u32 {
        if let Some(place) = self.slots.get_mut(self.free as usize) {
            let index = std::mem::replace(&mut self.free, place.newer);
            *place = slot;
            return index;
        }
        self.slots.push(slot);
        if self.slots.len() > self.ghosts.len() {
            // The ghosts so far are forgotten; this happens once per doubling.
            self.ghosts = vec![0; (2 * self.ghosts.len()).max(64)];
        }
        (self.slots.len() - 1) as u32
    }

    /// Whose ghost lies where, and its fingerprint, which is never 0.
    fn ghost_place(&self, key: Key) -> (usize, u32) {
        let hash = Key::hash(key);
        (hash as usize & self.ghosts.len().wrapping_sub(1), (hash >> 32) as u32 | 1)
    }

    fn has_ghost(&self, key: Key) -> bool {
        let (place, fingerprint) = self.ghost_place(key);
        self.ghosts.get(place) == Some(&fingerprint)
    }

    fn leave_ghost(&mut self, key: Key) {
        let (place, fingerprint) = self.ghost_place(key);
        if let Some(ghost) = self.ghosts.get_mut(place) {
            *ghost = fingerprint;
        }
    }

    fn take_ghost(&mut self, key: Key) -> bool {
        let (place, fingerprint) = self.ghost_place(key);
        let ghost = self.ghosts.get_mut(place).filter(|ghost| **ghost == fingerprint);
        ghost.map(|ghost| *ghost = 0).is_some()
    }
}
