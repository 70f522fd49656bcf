//! A place in the tree and the steps from it.

use super::entry::{Entry, Probe};
use super::node::{Inner, Leaf, Node, Slot};
use super::tree::Tree;
use std::ptr::NonNull;

/// The greatest number of inner nodes on a way down. A node with few children is only ever made
/// beside a full one, so the nodes of a height are half full on average: sixteen heights of sixteen
/// children hold more rows than there are sequence numbers.
const DEPTH_MAX: usize = 16;

/// The inner nodes from the root down, and which child was taken at each.
pub(super) struct Path {
    nodes: [(NonNull<Inner>, usize); DEPTH_MAX],
    depth: usize,
}

impl Path {
    pub(super) fn new() -> Self {
        Path { nodes: [(NonNull::dangling(), 0); DEPTH_MAX], depth: 0 }
    }

    pub(super) fn pop(&mut self) -> Option<(NonNull<Inner>, usize)> {
        self.depth = self.depth.checked_sub(1)?;
        Some(self.nodes[self.depth])
    }

    pub(super) fn last(&self) -> Option<(NonNull<Inner>, usize)> {
        Some(self.nodes[self.depth.checked_sub(1)?])
    }

    /// Goes down from `node` to a leaf, by the choice at each inner node.
    pub(super) fn descend<'t>(
        &mut self,
        mut node: Node<'t>,
        choose: impl Fn(&Inner) -> usize,
    ) -> &'t Leaf {
        loop {
            match node {
                Node::Leaf(leaf) => return leaf,
                Node::Inner(inner) => node = self.enter(inner, choose(inner)),
            }
        }
    }

    fn enter<'t>(&mut self, inner: &'t Inner, index: usize) -> Node<'t> {
        self.nodes[self.depth] = (NonNull::from(inner), index);
        self.depth += 1;
        inner.child(index)
    }
}

/// A place in a tree, at an entry or at none. It stays readable while the writer goes on.
pub(super) struct Position {
    path: Path,
    leaf: NonNull<Leaf>,
    /// `None`: at no entry, and then path and leaf mean nothing.
    slot: Option<Slot>,
}

// SAFETY: a position is a set of pointers to memory that any thread may read.
unsafe impl Send for Position {}
// SAFETY: as above; through a shared reference it is only read.
unsafe impl Sync for Position {}

impl Position {
    /// A position at no entry.
    pub(super) fn nowhere() -> Self {
        Position { path: Path::new(), leaf: NonNull::dangling(), slot: None }
    }

    /// Goes to the first entry.
    ///
    /// # Safety
    /// The tree must live until the last use of the position before the next of these four calls.
    pub(super) unsafe fn seek_to_first(&mut self, tree: &Tree) {
        self.path.depth = 0;
        self.enter_first(tree.root());
    }

    /// Goes to the last entry.
    ///
    /// # Safety
    /// As for [`Position::seek_to_first`].
    pub(super) unsafe fn seek_to_last(&mut self, tree: &Tree) {
        self.path.depth = 0;
        self.enter_last(tree.root());
    }

    /// Goes to the first entry at or above the probe.
    ///
    /// # Safety
    /// As for [`Position::seek_to_first`].
    pub(super) unsafe fn seek(&mut self, tree: &Tree, probe: &Probe<'_>) {
        self.path.depth = 0;
        let leaf = self.path.descend(tree.root(), |inner| inner.find(probe));
        self.leaf = NonNull::from(leaf);
        self.slot = leaf.find(probe).after();
        if self.slot.is_none() {
            self.enter_next_leaf();
        }
    }

    /// Goes to the last entry at or below the probe.
    ///
    /// # Safety
    /// As for [`Position::seek_to_first`].
    pub(super) unsafe fn seek_for_prev(&mut self, tree: &Tree, probe: &Probe<'_>) {
        self.path.depth = 0;
        let leaf = self.path.descend(tree.root(), |inner| inner.find(probe));
        self.leaf = NonNull::from(leaf);
        let gap = leaf.find(probe);
        // SAFETY: a slot of this leaf.
        let equal = |slot: &Slot| unsafe { leaf.entry(*slot) }.compare(probe).is_eq();
        self.slot = gap.after().filter(equal).or(gap.before());
        if self.slot.is_none() {
            self.enter_previous_leaf();
        }
    }

    /// The entry here.
    pub(super) fn entry(&self) -> Option<Entry<'_>> {
        // SAFETY: the slot was read from this leaf, which the caller of the seek keeps alive.
        self.slot.map(|slot| unsafe { self.leaf.as_ref().entry(slot) })
    }

    /// Goes to the next entry; stays at none.
    pub(super) fn next(&mut self) {
        let Some(slot) = self.slot else { return };
        // SAFETY: at an entry, the leaf is one that the caller of the seek keeps alive.
        let leaf = unsafe { self.leaf.as_ref() };
        self.slot = leaf.next(slot);
        match self.slot {
            Some(slot) => leaf.prefetch_ahead(slot),
            None => self.enter_next_leaf(),
        }
    }

    /// Goes to the previous entry; stays at none.
    pub(super) fn previous(&mut self) {
        let Some(slot) = self.slot else { return };
        // SAFETY: as in `next`, and the slot was read from this leaf.
        self.slot = unsafe { self.leaf.as_ref().previous(slot) };
        if self.slot.is_none() {
            self.enter_previous_leaf();
        }
    }

    fn enter_next_leaf(&mut self) {
        while let Some((inner, index)) = self.path.pop() {
            // SAFETY: the path leads to a leaf that the caller of the seek keeps alive.
            let inner = unsafe { inner.as_ref() };
            if index + 1 < inner.child_count() {
                let child = self.path.enter(inner, index + 1);
                return self.enter_first(child);
            }
        }
    }

    fn enter_previous_leaf(&mut self) {
        while let Some((inner, index)) = self.path.pop() {
            // SAFETY: as in `enter_next_leaf`.
            let inner = unsafe { inner.as_ref() };
            if index > 0 {
                let child = self.path.enter(inner, index - 1);
                return self.enter_last(child);
            }
        }
    }

    /// Goes to the first entry below a node. Only the root can be a leaf without entries.
    fn enter_first(&mut self, node: Node<'_>) {
        let leaf = self.path.descend(node, |_| 0);
        leaf.prefetch_first();
        self.leaf = NonNull::from(leaf);
        self.slot = leaf.first();
    }

    /// Goes to the last entry below a node.
    fn enter_last(&mut self, node: Node<'_>) {
        let leaf = self.path.descend(node, |inner| inner.child_count() - 1);
        self.leaf = NonNull::from(leaf);
        self.slot = leaf.last();
    }
}
