//! The tree: one root pointer, the arena, and what the writer does to both.

use super::arena::Arena;
use super::chunk_pool::ChunkPool;
use super::entry::{Entry, EntryPointer, Probe};
use super::node::{Gap, Inner, LEAF_CAPACITY, Leaf, Node, NodeHeader, NodePointer, Prefix, Split};
use super::position::Path;
use super::sync::{AtomicPtr, Ordering};
use crate::base::Trailer;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// See the module header of the memtable.
pub(super) struct Tree {
    root: AtomicPtr<NodeHeader>,
    arena: Mutex<Arena>,
}

/// The one who may change the tree, while it lives.
pub(super) struct TreeWriter<'t> {
    tree: &'t Tree,
    arena: MutexGuard<'t, Arena>,
}

impl Tree {
    pub(super) fn new(pool: Option<Arc<ChunkPool>>) -> Self {
        let mut arena = Arena::new(pool);
        let leaf = Leaf::place(&mut arena, Prefix::EMPTY, &[]);
        Tree { root: AtomicPtr::new(leaf.as_ptr()), arena: Mutex::new(arena) }
    }

    /// Waits until no other writer lives. One that panicked left a whole tree behind: every store
    /// that readers can see takes the tree from one whole state to the next.
    pub(super) fn writer(&self) -> TreeWriter<'_> {
        TreeWriter { tree: self, arena: self.arena.lock().unwrap_or_else(PoisonError::into_inner) }
    }

    fn root_pointer(&self) -> NodePointer {
        match NonNull::new(self.root.load(Ordering::Acquire)) {
            Some(root) => root,
            None => unreachable!("the root is set by `new` and only replaced by nodes"),
        }
    }

    pub(super) fn root(&self) -> Node<'_> {
        // SAFETY: the acquire load saw a node that was finished before it was stored, and the arena
        // lives as long as the tree.
        unsafe { Node::at(self.root_pointer()) }
    }

    /// The first entry at or above the probe.
    pub(super) fn first_from(&self, probe: &Probe<'_>) -> Option<Entry<'_>> {
        let mut node = self.root();
        // The entry with which the next leaf begins: no need to go there.
        let mut fence = None;
        loop {
            match node {
                Node::Leaf(leaf) => {
                    // SAFETY: a slot of this leaf.
                    let found = leaf.find(probe).after().map(|slot| unsafe { leaf.entry(slot) });
                    return found.or(fence);
                }
                Node::Inner(inner) => {
                    let index = inner.find(probe);
                    fence = inner.separator(index).or(fence);
                    node = inner.child(index);
                }
            }
        }
    }
}

impl TreeWriter<'_> {
    /// The arena's bytes.
    pub(super) fn allocated_bytes(&self) -> usize {
        self.arena.allocated_bytes()
    }

    /// The arena, for what is kept beside the ordered entries.
    pub(super) fn arena(&mut self) -> &mut Arena {
        &mut self.arena
    }

    /// Adds an entry.
    pub(super) fn insert(&mut self, key: &[u8], trailer: Trailer, value: &[u8]) {
        let entry = Entry::write(&mut self.arena, key, trailer, value).pointer();
        let probe = Probe { key, trailer };
        let mut path = Path::new();
        let leaf = path.descend(self.tree.root(), |inner| inner.find(&probe));
        let gap = leaf.find(&probe);
        if !leaf.insert(&gap, entry) {
            let split = split_leaf(&mut self.arena, leaf, &gap, entry);
            self.install(path, split);
        }
    }

    /// Tells the nodes above about a split child. Each is copied; one release store at the lowest
    /// place that needs no copy shows all of it at once.
    fn install(&mut self, mut path: Path, mut split: Split) {
        while let Some((inner, index)) = path.pop() {
            // SAFETY: the path was made from this tree, which is borrowed.
            let inner = unsafe { inner.as_ref() };
            match inner.with_split(&mut self.arena, index, &split) {
                Ok(node) => return self.replace(path.last(), node),
                Err(larger) => split = larger,
            }
        }
        let root = Inner::place_root(&mut self.arena, self.tree.root_pointer(), &split);
        self.replace(None, root);
    }

    fn replace(&self, parent: Option<(NonNull<Inner>, usize)>, node: NodePointer) {
        match parent {
            // SAFETY: as in `install`.
            Some((inner, index)) => unsafe { inner.as_ref() }.set_child(index, node),
            None => self.tree.root.store(node.as_ptr(), Ordering::Release),
        }
    }
}

/// Distributes a full leaf and a new entry over two leaves.
fn split_leaf(arena: &mut Arena, leaf: &Leaf, gap: &Gap, entry: EntryPointer) -> Split {
    if leaf.is_full_in_order() && gap.after().is_none() {
        let right = leaf.place_next(arena, entry);
        return Split { left: None, separator: entry, right };
    }
    let mut items = leaf.items_with(gap, entry);
    if planted!(LeafSplitLosesEntry) {
        items.pop();
    }
    let (left, right) = items.split_at_mut(LEAF_CAPACITY.div_ceil(2));
    let separator = right.first().map_or(entry, |item| item.entry);
    let left = Some(leaf.place_part(arena, left));
    Split { left, separator, right: leaf.place_part(arena, right) }
}
