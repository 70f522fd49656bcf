//! The live state behind the journaling file system: inodes in memory, and the journal of every
//! call that changes them.

use super::image::Tree;
use super::journal::{Change, Event, Inode, Journal, ROOT, Report};
use crate::random::Random;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Why a call is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Missing,
    Exists,
    NotDirectory,
    IsDirectory,
    NotEmpty,
    Unsupported,
}

/// One in so many calls ends some time after it took effect, so that others come in between.
const SLOW_ONE_IN: u64 = 8;

/// How long a slow call takes at most.
const SLOW_US_MAX: u64 = 300;

#[derive(Clone, Debug)]
pub(super) enum Node {
    File(Vec<u8>),
    Directory(BTreeMap<String, Inode>),
    /// A large file of which most is zeros: what a block device is over.
    Device(Sparse),
}

/// Bytes by page; pages that were never written are zeros.
#[derive(Clone, Debug, Default)]
pub(super) struct Sparse {
    pub(super) length: u64,
    pages: HashMap<u64, Box<[u8]>>,
}

const PAGE_BYTES: usize = 4096;

impl Sparse {
    pub(super) fn new(length: u64) -> Self {
        Sparse { length, pages: HashMap::new() }
    }

    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) {
        let (mut position, mut rest) = (offset, bytes);
        while !rest.is_empty() {
            let within = (position % PAGE_BYTES as u64) as usize;
            let (now, later) = rest.split_at(rest.len().min(PAGE_BYTES - within));
            let page = self.pages.entry(position / PAGE_BYTES as u64);
            let page = page.or_insert_with(|| vec![0; PAGE_BYTES].into());
            page[within..within + now.len()].copy_from_slice(now);
            (position, rest) = (position + now.len() as u64, later);
        }
    }

    pub(super) fn read(&self, offset: u64, size: usize) -> Vec<u8> {
        let size = size.min(self.length.saturating_sub(offset) as usize);
        let mut bytes = vec![0; size];
        let (mut position, mut filled) = (offset, 0);
        while filled < size {
            let within = (position % PAGE_BYTES as u64) as usize;
            let count = (size - filled).min(PAGE_BYTES - within);
            if let Some(page) = self.pages.get(&(position / PAGE_BYTES as u64)) {
                bytes[filled..filled + count].copy_from_slice(&page[within..within + count]);
            }
            (position, filled) = (position + count as u64, filled + count);
        }
        bytes
    }
}

pub(super) struct State {
    pub(super) nodes: HashMap<Inode, Node>,
    pub(super) links: HashMap<Inode, u32>,
    pub(super) journal: Journal,
    next_inode: Inode,
    /// Reports so far.
    pub(super) reports: u64,
    random: Random,
}

/// A disk that several threads use at once; clones are the same disk.
#[derive(Clone)]
pub(super) struct Disk {
    state: Arc<Mutex<State>>,
    reported: Arc<Condvar>,
}

impl Disk {
    /// An empty disk; `seed` decides which calls are slow.
    pub(super) fn new(seed: u64) -> Disk {
        let state = State {
            nodes: HashMap::from([(ROOT, Node::Directory(BTreeMap::new()))]),
            links: HashMap::from([(ROOT, 2)]),
            journal: Journal::default(),
            next_inode: ROOT + 1,
            reports: 0,
            random: Random::new(seed),
        };
        Disk { state: Arc::new(Mutex::new(state)), reported: Arc::new(Condvar::new()) }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a change and notes it. It ends, in the journal, some time after it has begun.
    pub(super) fn change(&self, change: Change) -> Result<(), Refusal> {
        let mut state = self.state();
        state.apply(&change)?;
        let place = state.journal.begin(Event::Change(change));
        self.end(state, place);
        Ok(())
    }

    /// Makes a new file or directory.
    pub(super) fn make(
        &self,
        parent: Inode,
        name: &str,
        is_directory: bool,
    ) -> Result<Inode, Refusal> {
        let inode = {
            let mut state = self.state();
            state.next_inode += 1;
            state.next_inode
        };
        let name = name.to_string();
        self.change(Change::Make { parent, name, inode, is_directory })?;
        Ok(inode)
    }

    /// A sync: it covers what had ended before it began.
    pub(super) fn sync(&self, inode: Inode) {
        let mut state = self.state();
        let place = state.journal.begin(Event::Sync(inode));
        self.end(state, place);
    }

    pub(super) fn report(&self, words: Report) {
        let mut state = self.state();
        let place = state.journal.begin(Event::Report(words));
        state.journal.end(place);
        state.reports += 1;
        drop(state);
        self.reported.notify_all();
    }

    /// Notes that the worker is dead.
    pub(super) fn note_end(&self) {
        let mut state = self.state();
        let place = state.journal.begin(Event::End);
        state.journal.end(place);
    }

    /// Waits until there are so many reports, or for that long; gives how many there are.
    pub(super) fn wait_for_reports(&self, wanted: u64, patience: Duration) -> u64 {
        let is_short = |state: &mut State| state.reports < wanted;
        let waited = self.reported.wait_timeout_while(self.state(), patience, is_short);
        waited.unwrap_or_else(PoisonError::into_inner).0.reports
    }

    fn end<'d>(&'d self, mut state: MutexGuard<'d, State>, place: usize) {
        if state.random.one_in(SLOW_ONE_IN) {
            let slow = Duration::from_micros(state.random.below(SLOW_US_MAX));
            drop(state);
            std::thread::sleep(slow);
            state = self.state();
        }
        state.journal.end(place);
    }

    /// Puts a tree on the disk, as if it had always been there: nothing is noted.
    pub(super) fn plant(&self, name: &str, tree: &Tree) {
        let mut state = self.state();
        let inode = state.plant(tree);
        if let Some(Node::Directory(names)) = state.nodes.get_mut(&ROOT) {
            names.insert(name.to_string(), inode);
        }
    }

    /// Puts a device on the disk; gives its inode.
    pub(super) fn plant_device(&self, name: &str, device: Sparse) -> Inode {
        let mut state = self.state();
        state.next_inode += 1;
        let inode = state.next_inode;
        state.nodes.insert(inode, Node::Device(device));
        if let Some(Node::Directory(names)) = state.nodes.get_mut(&ROOT) {
            names.insert(name.to_string(), inode);
        }
        inode
    }

    /// What is under a name of the root, with a root that has nothing else.
    pub(super) fn subtree(&self, name: &str) -> HashMap<Inode, Node> {
        let state = self.state();
        let mut nodes = HashMap::new();
        let mut names = BTreeMap::new();
        if let Ok(inode) = state.lookup(ROOT, name) {
            names.insert(name.to_string(), inode);
            state.collect(inode, &mut nodes);
        }
        nodes.insert(ROOT, Node::Directory(names));
        nodes
    }

    /// Takes a name of the root away, with what is under it: nothing is noted.
    pub(super) fn forget(&self, name: &str) {
        let nodes = self.subtree(name);
        let mut state = self.state();
        if let Some(Node::Directory(names)) = state.nodes.get_mut(&ROOT) {
            names.remove(name);
        }
        for inode in nodes.keys().filter(|inode| **inode != ROOT) {
            state.nodes.remove(inode);
            state.links.remove(inode);
        }
    }
}

impl State {
    fn collect(&self, inode: Inode, nodes: &mut HashMap<Inode, Node>) {
        let Some(node) = self.nodes.get(&inode) else { return };
        if let Node::Directory(names) = node {
            names.values().for_each(|child| self.collect(*child, nodes));
        }
        nodes.insert(inode, node.clone());
    }

    fn plant(&mut self, tree: &Tree) -> Inode {
        self.next_inode += 1;
        let inode = self.next_inode;
        let node = match tree {
            Tree::File(bytes) => Node::File(bytes.to_vec()),
            Tree::Directory(names) => {
                let children = names.iter().map(|(name, tree)| (name.clone(), self.plant(tree)));
                Node::Directory(children.collect())
            }
        };
        self.links.insert(inode, 1);
        self.nodes.insert(inode, node);
        inode
    }

    fn names(&mut self, inode: Inode) -> Result<&mut BTreeMap<String, Inode>, Refusal> {
        match self.nodes.get_mut(&inode) {
            Some(Node::Directory(names)) => Ok(names),
            Some(Node::File(_) | Node::Device(_)) => Err(Refusal::NotDirectory),
            None => Err(Refusal::Missing),
        }
    }

    fn bytes(&mut self, inode: Inode) -> Result<&mut Vec<u8>, Refusal> {
        match self.nodes.get_mut(&inode) {
            Some(Node::File(bytes)) => Ok(bytes),
            Some(Node::Directory(_)) => Err(Refusal::IsDirectory),
            // A device has the length it has.
            Some(Node::Device(_)) => Err(Refusal::Unsupported),
            None => Err(Refusal::Missing),
        }
    }

    pub(super) fn lookup(&self, parent: Inode, name: &str) -> Result<Inode, Refusal> {
        match self.nodes.get(&parent) {
            Some(Node::Directory(names)) => names.get(name).copied().ok_or(Refusal::Missing),
            _ => Err(Refusal::Missing),
        }
    }

    fn unlink(&mut self, inode: Inode) {
        if let Some(links) = self.links.get_mut(&inode) {
            *links = links.saturating_sub(1);
        }
    }

    fn apply(&mut self, change: &Change) -> Result<(), Refusal> {
        match change {
            Change::Make { parent, name, inode, is_directory } => {
                let names = self.names(*parent)?;
                if names.contains_key(name) {
                    return Err(Refusal::Exists);
                }
                names.insert(name.clone(), *inode);
                let (node, links) = match is_directory {
                    true => (Node::Directory(BTreeMap::new()), 2),
                    false => (Node::File(Vec::new()), 1),
                };
                self.nodes.insert(*inode, node);
                self.links.insert(*inode, links);
            }
            Change::Link { parent, name, inode } => {
                let names = self.names(*parent)?;
                if names.contains_key(name) {
                    return Err(Refusal::Exists);
                }
                names.insert(name.clone(), *inode);
                *self.links.entry(*inode).or_default() += 1;
            }
            Change::Rename { from, to } => {
                let moved = self.lookup(from.0, &from.1)?;
                if let Ok(replaced) = self.lookup(to.0, &to.1) {
                    if replaced == moved {
                        return Err(Refusal::Unsupported);
                    }
                    self.check_empty(replaced)?;
                    self.unlink(replaced);
                }
                self.names(from.0)?.remove(&from.1);
                self.names(to.0)?.insert(to.1.clone(), moved);
            }
            Change::Remove { parent, name } => {
                let inode = self.lookup(*parent, name)?;
                self.check_empty(inode)?;
                self.names(*parent)?.remove(name);
                self.unlink(inode);
            }
            Change::Write { inode, offset, bytes } => {
                if let Some(Node::Device(device)) = self.nodes.get_mut(inode) {
                    device.write(*offset, bytes);
                    return Ok(());
                }
                let content = self.bytes(*inode)?;
                let end = *offset as usize + bytes.len();
                if content.len() < end {
                    content.resize(end, 0);
                }
                content[*offset as usize..end].copy_from_slice(bytes);
            }
            Change::Resize { inode, length } => self.bytes(*inode)?.resize(*length as usize, 0),
        }
        Ok(())
    }

    fn check_empty(&self, inode: Inode) -> Result<(), Refusal> {
        match self.nodes.get(&inode) {
            Some(Node::Directory(names)) if !names.is_empty() => Err(Refusal::NotEmpty),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_has_what_was_written_and_zeros() {
        let mut device = Sparse::new(20_000);
        let bytes: Vec<u8> = (0..9000_u32).map(|i| (i % 251) as u8 + 1).collect();
        device.write(4000, &bytes);
        assert_eq!(device.read(4000, 9000), bytes);
        assert_eq!(device.read(3999, 2), [0, 1]);
        assert_eq!(device.read(19_999, 100), [0]);
        assert!(device.read(30_000, 5).is_empty());
    }

    #[test]
    fn calls_are_refused_as_a_system_would_and_noted_if_not() {
        let disk = Disk::new(1);
        let directory = disk.make(ROOT, "d", true).unwrap();
        let file = disk.make(directory, "f", false).unwrap();
        assert_eq!(disk.make(directory, "f", false), Err(Refusal::Exists));
        let remove = |name: &str| Change::Remove { parent: ROOT, name: name.to_string() };
        assert_eq!(disk.change(remove("d")), Err(Refusal::NotEmpty));
        assert_eq!(disk.change(remove("x")), Err(Refusal::Missing));
        let resize = |inode| Change::Resize { inode, length: 3 };
        assert_eq!(disk.change(resize(directory)), Err(Refusal::IsDirectory));
        disk.change(resize(file)).unwrap();
        disk.sync(file);
        assert_eq!(disk.state().journal.entries.len(), 4);
        let Some(Node::File(bytes)) = disk.state().nodes.get(&file).cloned() else {
            panic!("there is no file");
        };
        assert_eq!(bytes, [0; 3]);
    }
}
