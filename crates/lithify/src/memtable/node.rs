//! The nodes of the tree, in memory that never moves, and how each is searched.
//!
//! **Words.** A node holds, beside each of its entries, eight bytes of the entry's key, so that a
//! search touches the node alone. Which eight: those after the node's *prefix*, bytes that most of
//! its keys share. [`Prefix::word`] maps every key to a word: keys below the prefix to zero, keys
//! above it to the maximum, others to the eight bytes that follow, filled up with zeros. The map
//! never inverts an order: if `a < b` then `word(a) <= word(b)`. So different words decide, and
//! equal words are decided by the entries themselves. A prefix that no longer fits costs time,
//! never correctness; it is chosen anew when a node is split.
//!
//! **A leaf** has slots that are filled one after the other and never change again. The order of
//! the entries is a list: a link per slot, and one more for the head. An insert fills a slot,
//! copies the link of the entry before it, and then sets that one link with a release store. As
//! long as entries come in ascending order they also extend the *sorted* run of slots; a search is
//! a binary search in that run, and then a walk over the few later entries linked into the gap.
//!
//! **An inner node** is immutable but for its child pointers. Separator `i` is the first entry of
//! child `i + 1` at the time that child was made: child `i` holds what is at or above separator
//! `i - 1` and below separator `i`. A child pointer is only ever replaced by one to a node that
//! answers for the same range.

use super::arena::Arena;
use super::entry::{Entry, EntryHeader, EntryPointer, Probe};
use super::sync::{AtomicPtr, AtomicU8, Ordering, WriteOnce};
use std::cmp;
use std::hint::select_unpredictable;
use std::ptr::NonNull;

/// Slots of a leaf.
pub(super) const LEAF_CAPACITY: usize = if cfg!(loom) { 3 } else { 64 };

/// Children of an inner node. Smaller than a leaf, because a split below copies the node.
pub(super) const FANOUT: usize = if cfg!(loom) { 3 } else { 32 };

/// The link before the first entry of a leaf.
const HEAD: u8 = LEAF_CAPACITY as u8;

/// The link after the last entry of a leaf.
const END: u8 = u8::MAX;

/// Bytes of a prefix that lie in the node; of a longer one, all are read from an entry. Enough for
/// a table id and two ids of eight bytes.
const PREFIX_INLINE_BYTES: usize = 24;

/// What the processor fetches at a time.
#[cfg(all(target_arch = "x86_64", not(loom)))]
const CACHE_LINE_BYTES: usize = 64;

/// How much of a row is asked for before it is met.
#[cfg(all(target_arch = "x86_64", not(loom)))]
const ROW_PREFETCH_BYTES: usize = 256;

/// So many entries before a walk meets a row, the row is asked for. Rows lie in the order in which
/// they were inserted, so that a walk in key order meets each of them cold.
const ROW_PREFETCH_STEPS: usize = 3;

/// How much of what the keys of a leaf share stays in the words of the next one, in an ascending
/// load: room for a counter to carry.
const PREFIX_SLACK_BYTES: usize = 2;

/// What the words of a node leave out.
#[derive(Clone, Copy)]
pub(super) struct Prefix {
    size_bytes: u32,
    inline: [u8; PREFIX_INLINE_BYTES],
    /// Starts with the prefix; `None` only if the prefix is inline.
    entry: Option<EntryPointer>,
}

impl Prefix {
    /// The prefix that all keys share.
    pub(super) const EMPTY: Prefix =
        Prefix { size_bytes: 0, inline: [0; PREFIX_INLINE_BYTES], entry: None };

    /// The first `size` bytes of an entry's key, or all of a shorter one.
    pub(super) fn of(entry: Entry<'_>, size: usize) -> Self {
        let key = entry.key();
        let size = size.min(key.len());
        let inlined = size.min(PREFIX_INLINE_BYTES);
        let mut inline = [0; PREFIX_INLINE_BYTES];
        inline[..inlined].copy_from_slice(&key[..inlined]);
        let entry = (size > PREFIX_INLINE_BYTES).then(|| entry.pointer());
        Prefix { size_bytes: size as u32, inline, entry }
    }

    fn bytes(&self) -> &[u8] {
        let size = self.size_bytes as usize;
        match self.entry {
            None => &self.inline[..size],
            // SAFETY: a prefix lives in a node or with the writer, the entry in the same arena,
            // and the entry was written before the node that refers to it was published.
            Some(entry) => &unsafe { Entry::at(entry) }.key()[..size],
        }
    }

    /// The word of a key under this prefix; see the module header.
    pub(super) fn word(&self, key: &[u8]) -> u64 {
        let prefix = self.bytes();
        let Some((head, tail)) = key.split_at_checked(prefix.len()) else {
            return if key > prefix { u64::MAX } else { 0 };
        };
        match head.cmp(prefix) {
            cmp::Ordering::Less => 0,
            cmp::Ordering::Equal => first_word(tail),
            cmp::Ordering::Greater => u64::MAX,
        }
    }

    /// The prefix for a node split off one with this prefix: what its first and its last entry
    /// share but for `slack` bytes; `None` if that is the old one, and its words still serve.
    fn adapt(&self, first: Entry<'_>, last: Entry<'_>, slack: usize) -> Option<Self> {
        let shared = first.key().iter().zip(last.key()).take_while(|(a, b)| a == b).count();
        let size = shared.saturating_sub(slack);
        let old = self.bytes();
        let serves = size == old.len() && first.key().starts_with(old);
        (!serves).then(|| Prefix::of(first, size))
    }
}

/// The first eight bytes as a number that sorts like them; zeros stand in for missing ones.
fn first_word(bytes: &[u8]) -> u64 {
    match bytes.first_chunk::<8>() {
        Some(chunk) => u64::from_be_bytes(*chunk),
        None => bytes
            .iter()
            .fold(0, |word, byte| word << 8 | u64::from(*byte))
            .unbounded_shl(64 - 8 * bytes.len() as u32),
    }
}

/// The number of the first `count` ascending words that are below `word`. Without branches, since
/// random probes would mispredict half of them.
fn words_below(count: usize, word: u64, word_at: impl Fn(usize) -> u64) -> usize {
    let (mut base, mut rest) = (0, count);
    while rest > 1 {
        let half = rest / 2;
        base = select_unpredictable(word_at(base + half - 1) < word, base + half, base);
        rest -= half;
    }
    base + usize::from(rest == 1 && word_at(base) < word)
}

/// Asks for what a search in a leaf will read. There are more leaves than caches hold, and a search
/// would otherwise wait for one line after another: this makes it a third to a half faster.
fn prefetch_leaf(leaf: *const NodeHeader) {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    for offset in (0..std::mem::offset_of!(Leaf, entries)).step_by(CACHE_LINE_BYTES) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch has no effect but speed, at any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(leaf.wrapping_byte_add(offset).cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(loom))))]
    let _ = leaf;
}

/// Asks for the first lines of a row: header, key, and a value of some 200 bytes.
fn prefetch_row(row: *const EntryHeader) {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    for offset in (0..ROW_PREFETCH_BYTES).step_by(CACHE_LINE_BYTES) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch has no effect but speed, at any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(row.wrapping_byte_add(offset).cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(loom))))]
    let _ = row;
}

/// The common beginning of both kinds of node, by which a pointer tells them apart.
#[repr(C)]
pub(super) struct NodeHeader {
    /// The height above the leaves.
    height: u8,
    prefix: Prefix,
}

/// Where a node lies, without saying for how long.
pub(super) type NodePointer = NonNull<NodeHeader>;

/// A node that is readable for `'a`.
pub(super) enum Node<'a> {
    Leaf(&'a Leaf),
    Inner(&'a Inner),
}

impl Node<'_> {
    /// The node at `pointer`.
    ///
    /// # Safety
    /// It was made by [`Leaf::place`] or [`Inner::place`], which happens before this call, and its
    /// arena lives for the chosen lifetime at least.
    pub(super) unsafe fn at(pointer: NodePointer) -> Self {
        // SAFETY: both kinds begin with the header, and the pointer covers the whole node.
        unsafe {
            if pointer.as_ref().height == 0 {
                Node::Leaf(pointer.cast::<Leaf>().as_ref())
            } else {
                Node::Inner(pointer.cast::<Inner>().as_ref())
            }
        }
    }
}

/// An entry and its word under some prefix.
#[derive(Clone, Copy)]
pub(super) struct Item {
    pub(super) word: u64,
    pub(super) entry: EntryPointer,
}

/// A filled slot of a leaf, as read from a link of that leaf.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Slot(u8);

/// The gap of a leaf at which a probe lies.
pub(super) struct Gap {
    /// The word of the probe.
    pub(super) word: u64,
    before: u8,
    after: u8,
}

impl Gap {
    /// The last entry below the probe.
    pub(super) fn before(&self) -> Option<Slot> {
        (self.before != HEAD).then_some(Slot(self.before))
    }

    /// The first entry at or above the probe.
    pub(super) fn after(&self) -> Option<Slot> {
        (self.after != END).then_some(Slot(self.after))
    }
}

/// See the module header.
#[repr(C)]
pub(super) struct Leaf {
    header: NodeHeader,
    /// Slots filled; the writer's own.
    count: AtomicU8,
    /// The first so many slots are in order.
    sorted: AtomicU8,
    links: [AtomicU8; LEAF_CAPACITY + 1],
    words: [WriteOnce<u64>; LEAF_CAPACITY],
    entries: [WriteOnce<EntryPointer>; LEAF_CAPACITY],
}

impl Leaf {
    /// A leaf of the ascending `items`, whose words are under `prefix`.
    pub(super) fn place(arena: &mut Arena, prefix: Prefix, items: &[Item]) -> NodePointer {
        let count = items.len();
        let link = |slot: usize| match slot {
            LEAF_CAPACITY if count > 0 => 0,
            slot if slot + 1 < count => slot as u8 + 1,
            _ => END,
        };
        let at = |slot: usize| items.get(slot);
        let leaf = Leaf {
            header: NodeHeader { height: 0, prefix },
            count: AtomicU8::new(count as u8),
            sorted: AtomicU8::new(count as u8),
            links: std::array::from_fn(|slot| AtomicU8::new(link(slot))),
            words: std::array::from_fn(|slot| WriteOnce::new(at(slot).map_or(0, |i| i.word))),
            entries: std::array::from_fn(|slot| {
                WriteOnce::new(at(slot).map_or(EntryPointer::dangling(), |i| i.entry))
            }),
        };
        arena.place(leaf).cast()
    }

    /// A leaf of ascending items that come from this one, with a prefix to suit them.
    pub(super) fn place_part(&self, arena: &mut Arena, items: &mut [Item]) -> NodePointer {
        let (Some(first), Some(last)) = (items.first(), items.last()) else {
            return Leaf::place(arena, self.header.prefix, items);
        };
        // SAFETY: the items are entries of this leaf, or the writer's new one.
        let (first, last) = unsafe { (Entry::at(first.entry), Entry::at(last.entry)) };
        let Some(prefix) = self.header.prefix.adapt(first, last, 0) else {
            return Leaf::place(arena, self.header.prefix, items);
        };
        for item in items.iter_mut() {
            // SAFETY: as above.
            item.word = prefix.word(unsafe { Entry::at(item.entry) }.key());
        }
        Leaf::place(arena, prefix, items)
    }

    /// A leaf for what comes after this one in ascending order, beginning with `entry`; its prefix
    /// supposes that the next leaf spans about as much as this one.
    pub(super) fn place_next(&self, arena: &mut Arena, entry: EntryPointer) -> NodePointer {
        // SAFETY: the writer's new entry.
        let last = unsafe { Entry::at(entry) };
        // SAFETY: a slot of this leaf.
        let first = self.first().map(|slot| unsafe { self.entry(slot) });
        let old = self.header.prefix;
        let prefix = first.and_then(|first| old.adapt(first, last, PREFIX_SLACK_BYTES));
        let prefix = prefix.unwrap_or(old);
        Leaf::place(arena, prefix, &[Item { word: prefix.word(last.key()), entry }])
    }

    /// The entry in a slot.
    ///
    /// # Safety
    /// The slot was read from this leaf.
    pub(super) unsafe fn entry(&self, slot: Slot) -> Entry<'_> {
        // SAFETY: a slot number leaves this file only after an acquire load that saw it published,
        // so slot and entry were written before. They lie in one arena.
        unsafe { Entry::at(self.entries[slot.0 as usize].get()) }
    }

    fn word_at(&self, slot: usize) -> u64 {
        // SAFETY: private to this file, which passes slots that an acquire load saw published.
        unsafe { self.words[slot].get() }
    }

    fn link(&self, slot: u8) -> u8 {
        self.links[slot as usize].load(Ordering::Acquire)
    }

    /// Whether the entry in a published slot is below the probe, which has that word.
    fn is_below(&self, slot: u8, word: u64, probe: &Probe<'_>) -> bool {
        match self.word_at(slot as usize).cmp(&word) {
            cmp::Ordering::Less => true,
            cmp::Ordering::Greater => false,
            // SAFETY: the slot is published.
            cmp::Ordering::Equal => unsafe { self.entry(Slot(slot)) }.compare(probe).is_lt(),
        }
    }

    /// Finds where the probe lies.
    pub(super) fn find(&self, probe: &Probe<'_>) -> Gap {
        let word = self.header.prefix.word(probe.key);
        let sorted = self.sorted.load(Ordering::Acquire) as usize;
        let mut below = words_below(sorted, word, |slot| self.word_at(slot));
        if below < sorted && self.word_at(below) == word {
            let mut end = sorted;
            while below < end {
                let middle = below.midpoint(end);
                if self.is_below(middle as u8, word, probe) {
                    below = middle + 1;
                } else {
                    end = middle;
                }
            }
        }
        let mut before = if below == 0 { HEAD } else { below as u8 - 1 };
        loop {
            let after = self.link(before);
            if after == END || !self.is_below(after, word, probe) {
                return Gap { word, before, after };
            }
            before = after;
        }
    }

    /// The first entry.
    pub(super) fn first(&self) -> Option<Slot> {
        let slot = self.link(HEAD);
        (slot != END).then_some(Slot(slot))
    }

    /// The last entry.
    pub(super) fn last(&self) -> Option<Slot> {
        let mut last = match self.sorted.load(Ordering::Acquire) {
            0 => HEAD,
            sorted => sorted - 1,
        };
        loop {
            match self.link(last) {
                END => return (last != HEAD).then_some(Slot(last)),
                next => last = next,
            }
        }
    }

    /// The entry after the one in `slot`.
    pub(super) fn next(&self, slot: Slot) -> Option<Slot> {
        let slot = self.link(slot.0);
        (slot != END).then_some(Slot(slot))
    }

    /// Asks for the row that a walk will meet some steps after `slot`.
    pub(super) fn prefetch_ahead(&self, slot: Slot) {
        let mut ahead = slot.0;
        for _ in 0..ROW_PREFETCH_STEPS {
            ahead = self.link(ahead);
            if ahead == END {
                return;
            }
        }
        self.prefetch(ahead);
    }

    /// Asks for the rows that a walk which begins here will meet first.
    pub(super) fn prefetch_first(&self) {
        let mut slot = self.link(HEAD);
        for _ in 0..ROW_PREFETCH_STEPS {
            if slot == END {
                return;
            }
            self.prefetch(slot);
            slot = self.link(slot);
        }
    }

    fn prefetch(&self, slot: u8) {
        // SAFETY: private to this file, which passes slots that an acquire load saw published.
        prefetch_row(unsafe { self.entries[slot as usize].get() }.as_ptr());
    }

    /// The entry before the one in `slot`.
    pub(super) fn previous(&self, slot: Slot) -> Option<Slot> {
        let Slot(target) = slot;
        let mut before = if target == 0 {
            HEAD
        } else if target < self.sorted.load(Ordering::Acquire) {
            target - 1
        } else {
            // SAFETY: the caller read the slot from this leaf.
            self.find(&unsafe { self.entry(slot) }.probe()).before
        };
        loop {
            match self.link(before) {
                next if next == target => return (before != HEAD).then_some(Slot(before)),
                END => return None,
                next => before = next,
            }
        }
    }

    /// Puts an entry into a gap of this leaf; false if the leaf is full. Called by the writer, who
    /// found the gap since its last insert.
    pub(super) fn insert(&self, gap: &Gap, entry: EntryPointer) -> bool {
        let slot = self.count.load(Ordering::Relaxed);
        if slot as usize == LEAF_CAPACITY {
            return false;
        }
        // SAFETY: no link leads to the slot yet, and the one writer fills it once.
        unsafe {
            self.words[slot as usize].set(gap.word);
            self.entries[slot as usize].set(entry);
        }
        self.links[slot as usize].store(gap.after, Ordering::Relaxed);
        let mut publishes = Ordering::Release;
        if planted!(EntryUnpublished) {
            publishes = Ordering::Relaxed;
        }
        // Publishes the slot to whoever walks the list.
        self.links[gap.before as usize].store(slot, publishes);
        self.count.store(slot + 1, Ordering::Relaxed);
        let ascending = gap.after == END && gap.before == slot.checked_sub(1).unwrap_or(HEAD);
        if ascending && self.sorted.load(Ordering::Relaxed) == slot {
            // Publishes the slot to whoever searches the run.
            self.sorted.store(slot + 1, Ordering::Release);
        }
        true
    }

    /// Whether the leaf was filled in ascending order throughout.
    pub(super) fn is_full_in_order(&self) -> bool {
        self.sorted.load(Ordering::Relaxed) as usize == LEAF_CAPACITY
    }

    /// All entries in order, with the writer's new one in its gap.
    pub(super) fn items_with(&self, gap: &Gap, entry: EntryPointer) -> Vec<Item> {
        let mut items = Vec::with_capacity(LEAF_CAPACITY + 1);
        let mut before = HEAD;
        loop {
            if before == gap.before {
                items.push(Item { word: gap.word, entry });
            }
            before = self.link(before);
            if before == END {
                return items;
            }
            // SAFETY: the slot is published.
            let entry = unsafe { self.entries[before as usize].get() };
            items.push(Item { word: self.word_at(before as usize), entry });
        }
    }
}

/// See the module header.
#[repr(C)]
pub(super) struct Inner {
    header: NodeHeader,
    words: NonNull<[WriteOnce<u64>]>,
    separators: NonNull<[WriteOnce<EntryPointer>]>,
    children: NonNull<[AtomicPtr<NodeHeader>]>,
}

/// A child that was split in two: what the tree above must be told.
pub(super) struct Split {
    /// Replaces the child. `None`: entries come in ascending order, and the child, being full,
    /// stays as it is.
    pub(super) left: Option<NodePointer>,
    /// The first entry of the new child on the right.
    pub(super) separator: EntryPointer,
    /// The new child.
    pub(super) right: NodePointer,
}

impl Inner {
    /// A node of one more child than separators.
    fn place(
        arena: &mut Arena,
        height: u8,
        prefix: Prefix,
        separators: &[Item],
        children: &[NodePointer],
    ) -> NodePointer {
        let words = arena.place_all(separators.iter().map(|s| WriteOnce::new(s.word)));
        let children = arena.place_all(children.iter().map(|c| AtomicPtr::new(c.as_ptr())));
        let separators = arena.place_all(separators.iter().map(|s| WriteOnce::new(s.entry)));
        let header = NodeHeader { height, prefix };
        arena.place(Inner { header, words, separators, children }).cast()
    }

    /// A node whose prefix is chosen to suit its separators; `old` is what their words are under.
    fn place_part(
        arena: &mut Arena,
        height: u8,
        old: Prefix,
        separators: &mut [Item],
        children: &[NodePointer],
    ) -> NodePointer {
        let (Some(first), Some(last)) = (separators.first(), separators.last()) else {
            return Inner::place(arena, height, old, separators, children);
        };
        // SAFETY: separators are entries of the arena, written before.
        let (first, last) = unsafe { (Entry::at(first.entry), Entry::at(last.entry)) };
        let Some(prefix) = old.adapt(first, last, 0) else {
            return Inner::place(arena, height, old, separators, children);
        };
        for item in separators.iter_mut() {
            // SAFETY: as above.
            item.word = prefix.word(unsafe { Entry::at(item.entry) }.key());
        }
        Inner::place(arena, height, prefix, separators, children)
    }

    /// The node above a root that was split.
    pub(super) fn place_root(arena: &mut Arena, root: NodePointer, split: &Split) -> NodePointer {
        // SAFETY: the writer made the node.
        let height = unsafe { root.as_ref() }.height + 1;
        let children = &[split.left.unwrap_or(root), split.right];
        let separators = &mut [Item { word: 0, entry: split.separator }];
        // SAFETY: the separator is an entry of the arena, written before.
        separators[0].word = first_word(unsafe { Entry::at(split.separator) }.key());
        Inner::place_part(arena, height, Prefix::EMPTY, separators, children)
    }

    fn words(&self) -> &[WriteOnce<u64>] {
        // SAFETY: placed with the node, in the same arena, and never moved.
        unsafe { self.words.as_ref() }
    }

    fn separators(&self) -> &[WriteOnce<EntryPointer>] {
        // SAFETY: placed with the node, in the same arena, and never moved.
        unsafe { self.separators.as_ref() }
    }

    fn children(&self) -> &[AtomicPtr<NodeHeader>] {
        // SAFETY: placed with the node, in the same arena, and never moved.
        unsafe { self.children.as_ref() }
    }

    /// The number of children, at least one.
    pub(super) fn child_count(&self) -> usize {
        self.children().len()
    }

    /// The child that answers for the range with that index.
    pub(super) fn child(&self, index: usize) -> Node<'_> {
        let child = self.children()[index].load(Ordering::Acquire);
        if self.header.height == 1 {
            prefetch_leaf(child);
        }
        // SAFETY: children are never null, and the acquire load saw a pointer to a node that was
        // finished before it was stored.
        unsafe { Node::at(NonNull::new_unchecked(child)) }
    }

    /// Replaces a child by one that answers for the same range.
    pub(super) fn set_child(&self, index: usize, child: NodePointer) {
        self.children()[index].store(child.as_ptr(), Ordering::Release);
    }

    /// The entry with which child `index + 1` begins, if there is such a child.
    pub(super) fn separator(&self, index: usize) -> Option<Entry<'_>> {
        // SAFETY: separators are written before the node is published and never after; they lie
        // in the node's arena.
        self.separators().get(index).map(|separator| unsafe { Entry::at(separator.get()) })
    }

    /// The index of the child that answers for the probe.
    pub(super) fn find(&self, probe: &Probe<'_>) -> usize {
        let word = self.header.prefix.word(probe.key);
        let words = self.words();
        // SAFETY: words are written before the node is published and never after.
        let word_at = |index: usize| unsafe { words[index].get() };
        let mut index = words_below(words.len(), word, word_at);
        // Among equal words the separators decide.
        let mut end = words.len();
        while index < end && word_at(index) == word {
            let middle = index.midpoint(end);
            let below = word_at(middle) == word
                && self.separator(middle).is_some_and(|s| s.compare(probe).is_le());
            if below {
                index = middle + 1;
            } else {
                end = middle;
            }
        }
        index
    }

    /// A copy in which the child at `index` is split; two nodes if it would be too large.
    pub(super) fn with_split(
        &self,
        arena: &mut Arena,
        index: usize,
        split: &Split,
    ) -> Result<NodePointer, Split> {
        let NodeHeader { height, prefix } = self.header;
        if split.left.is_none() && index + 1 == FANOUT {
            // The order goes on: this node stays as it is, the next one starts with one child.
            let right = Inner::place(arena, height, prefix, &[], &[split.right]);
            return Err(Split { left: None, separator: split.separator, right });
        }
        // SAFETY: written before the node was published and never after.
        let old =
            self.words().iter().zip(self.separators()).map(|(word, separator)| unsafe {
                Item { word: word.get(), entry: separator.get() }
            });
        let mut separators: Vec<Item> = old.collect();
        let old = self.children().iter().map(|child| child.load(Ordering::Relaxed));
        let mut children: Vec<NodePointer> = old.filter_map(NonNull::new).collect();
        // SAFETY: the separator is an entry of the arena, written before.
        let word = prefix.word(unsafe { Entry::at(split.separator) }.key());
        separators.insert(index, Item { word, entry: split.separator });
        children[index] = split.left.unwrap_or(children[index]);
        children.insert(index + 1, split.right);
        if children.len() <= FANOUT {
            let items = &mut separators;
            return Ok(Inner::place_part(arena, height, prefix, items, &children));
        }
        let middle = children.len() / 2;
        let (left, right) = children.split_at(middle);
        let separator = separators[middle - 1].entry;
        let (before, after) = separators.split_at_mut(middle);
        let before = &mut before[..middle - 1];
        let left = Inner::place_part(arena, height, prefix, before, left);
        let right = Inner::place_part(arena, height, prefix, after, right);
        Err(Split { left: Some(left), separator, right })
    }
}
