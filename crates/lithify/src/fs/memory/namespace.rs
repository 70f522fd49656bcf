//! The names of a memory file system: directories, and how to get back to what is durable.
//!
//! Each directory keeps its changes since its last sync with what they replaced. They reach the
//! medium in order: a power cut rolls back a tail of them. A rename between two directories is
//! one change of both: it survives in both or in none, and syncing one of them syncs the other.
//! A sync covers the changes that were made before it began.

use super::inode::Inode;
use super::random::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Component, Path};
use std::sync::Arc;
use twox_hash::XxHash3_64;

/// What a name stands for.
#[derive(Clone)]
pub(super) enum Node {
    Directory(usize),
    File(Arc<Inode>),
}

#[derive(Clone)]
struct Change {
    /// The names it touched and what they stood for.
    before: Vec<(OsString, Option<Node>)>,
    /// Shared by the two halves of a rename between directories.
    pair: Option<u64>,
    /// The number of changes to all directories before this one.
    number: u64,
}

#[derive(Clone, Default)]
struct Directory {
    entries: BTreeMap<OsString, Node>,
    changes: Vec<Change>,
}

/// All directories; the first is the root, which always exists. One that was removed stays in the
/// list, where no name leads to it: a power cut may give it back.
#[derive(Clone)]
pub(super) struct Namespace {
    directories: Vec<Directory>,
    next_pair: u64,
    next_change: u64,
}

/// What a sync covers: in these directories the changes with smaller numbers.
#[derive(Debug)]
pub(super) struct CoveredNames {
    directories: Vec<usize>,
    until: u64,
}

impl Default for Namespace {
    fn default() -> Self {
        Namespace { directories: vec![Directory::default()], next_pair: 0, next_change: 0 }
    }
}

/// The names on the way to a path. The working directory is the root.
fn names(path: &Path) -> Vec<&OsStr> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name),
            Component::ParentDir => {
                names.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    names
}

impl Directory {
    /// How many changes a sync covers and has not made durable yet.
    fn covered_count(&self, covered: &CoveredNames) -> usize {
        self.changes.partition_point(|change| change.number < covered.until)
    }
}

impl Namespace {
    fn enter(&self, directory: usize, name: &OsStr) -> io::Result<usize> {
        match self.directories[directory].entries.get(name) {
            None => Err(io::ErrorKind::NotFound.into()),
            Some(Node::File(_)) => Err(io::ErrorKind::NotADirectory.into()),
            Some(Node::Directory(id)) => Ok(*id),
        }
    }

    /// The directory that a path names.
    pub(super) fn directory(&self, path: &Path) -> io::Result<usize> {
        names(path).into_iter().try_fold(0, |directory, name| self.enter(directory, name))
    }

    /// The directory that holds a path's last name, and that name.
    fn place(&self, path: &Path) -> io::Result<(usize, OsString)> {
        let mut names = names(path);
        let last = names.pop().ok_or(io::ErrorKind::IsADirectory)?;
        let directory = names.into_iter().try_fold(0, |id, name| self.enter(id, name))?;
        Ok((directory, last.to_os_string()))
    }

    /// What a path stands for.
    pub(super) fn find(&self, path: &Path) -> io::Result<Node> {
        if names(path).is_empty() {
            return Ok(Node::Directory(0));
        }
        let (directory, name) = self.place(path)?;
        let found = self.directories[directory].entries.get(&name);
        found.cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// The file that a path names.
    pub(super) fn file(&self, path: &Path) -> io::Result<Arc<Inode>> {
        match self.find(path)? {
            Node::File(inode) => Ok(inode),
            Node::Directory(_) => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    /// The names in a directory, sorted.
    pub(super) fn list(&self, path: &Path) -> io::Result<Vec<OsString>> {
        Ok(self.directories[self.directory(path)?].entries.keys().cloned().collect())
    }

    /// Sets or clears names of one directory as one change.
    fn change(&mut self, id: usize, names: Vec<(OsString, Option<Node>)>, pair: Option<u64>) {
        let directory = &mut self.directories[id];
        let number = self.next_change;
        self.next_change += 1;
        let mut before = Vec::with_capacity(names.len());
        for (name, node) in names {
            if let Some(Node::File(inode)) = &node {
                inode.hold();
            }
            let old = match node {
                Some(node) => directory.entries.insert(name.clone(), node),
                None => directory.entries.remove(&name),
            };
            if let Some(Node::File(inode)) = &old {
                inode.release();
            }
            before.push((name, old));
        }
        directory.changes.push(Change { before, pair, number });
    }

    /// Gives a file a name that must be free.
    pub(super) fn insert(&mut self, path: &Path, inode: Arc<Inode>) -> io::Result<()> {
        let (directory, name) = self.place(path)?;
        if self.directories[directory].entries.contains_key(&name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.change(directory, vec![(name, Some(Node::File(inode)))], None);
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.file(path)?;
        let (directory, name) = self.place(path)?;
        self.change(directory, vec![(name, None)], None);
        Ok(())
    }

    pub(super) fn remove_directory(&mut self, path: &Path) -> io::Result<()> {
        let id = self.directory(path)?;
        if !self.directories[id].entries.is_empty() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        let (parent, name) = self.place(path)?;
        self.change(parent, vec![(name, None)], None);
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let node = self.find(from)?;
        let (source, old_name) = self.place(from)?;
        let (target, new_name) = self.place(to)?;
        match (&node, self.directories[target].entries.get(&new_name)) {
            (Node::Directory(_), _) if names(to).starts_with(&names(from)) => {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            (Node::Directory(_), Some(_)) => {
                return Err(io::ErrorKind::DirectoryNotEmpty.into());
            }
            (_, Some(Node::Directory(_))) => return Err(io::ErrorKind::IsADirectory.into()),
            // Two names of one file: nothing is done, as in posix.
            (Node::File(file), Some(Node::File(other))) if Arc::ptr_eq(other, file) => {
                return Ok(());
            }
            _ => {}
        }
        let arrival = (new_name, Some(node));
        let departure = (old_name, None);
        if source == target {
            self.change(source, vec![arrival, departure], None);
        } else {
            let pair = Some(self.next_pair);
            self.next_pair += 1;
            self.change(target, vec![arrival], pair);
            self.change(source, vec![departure], pair);
        }
        Ok(())
    }

    /// Makes a directory and its parents.
    pub(super) fn create_directory(&mut self, path: &Path) -> io::Result<()> {
        let mut parent = 0;
        for name in names(path) {
            parent = match self.enter(parent, name) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => {
                    let id = self.directories.len();
                    self.directories.push(Directory::default());
                    let node = Node::Directory(id);
                    self.change(parent, vec![(name.to_os_string(), Some(node))], None);
                    id
                }
                entered => entered?,
            };
        }
        Ok(())
    }

    /// A sync of a directory begins: it is one of those it exchanged names with, too.
    pub(super) fn begin_sync(&self, path: &Path) -> io::Result<CoveredNames> {
        let mut directories = vec![self.directory(path)?];
        let mut looked_at = 0;
        while let Some(id) = directories.get(looked_at) {
            let changes = &self.directories[*id].changes;
            let pairs: BTreeSet<u64> = changes.iter().filter_map(|change| change.pair).collect();
            let shares = |change: &Change| change.pair.is_some_and(|pair| pairs.contains(&pair));
            let others = self.directories.iter().enumerate();
            let others = others.filter(|(_, d)| d.changes.iter().any(shares)).map(|(id, _)| id);
            let new: Vec<usize> = others.filter(|id| !directories.contains(id)).collect();
            directories.extend(new);
            looked_at += 1;
        }
        Ok(CoveredNames { directories, until: self.next_change })
    }

    /// Whether a sync has anything to do.
    pub(super) fn has_unsynced(&self, covered: &CoveredNames) -> bool {
        covered.directories.iter().any(|id| self.directories[*id].covered_count(covered) > 0)
    }

    /// A sync is under way: the first of the changes that it covers are durable already. Names that
    /// directories have exchanged become so together, at its end.
    pub(super) fn sync_in_part(&mut self, covered: &CoveredNames, random: &mut Random) {
        if let [id] = &covered.directories[..] {
            let directory = &mut self.directories[*id];
            let durable = random.below(directory.covered_count(covered) + 1);
            directory.changes.drain(..durable);
        }
    }

    /// A sync ends: what it covers is durable.
    pub(super) fn end_sync(&mut self, covered: &CoveredNames) {
        for id in &covered.directories {
            let directory = &mut self.directories[*id];
            let durable = directory.covered_count(covered);
            directory.changes.drain(..durable);
        }
    }

    /// A hash of all names and the bytes of their files.
    pub(super) fn fingerprint(&self) -> u64 {
        let mut hash = 0;
        let mut add = |bytes: &[u8]| hash = XxHash3_64::oneshot_with_seed(hash, bytes);
        let mut waiting = vec![0];
        while let Some(id) = waiting.pop() {
            add(&self.directories[id].entries.len().to_le_bytes());
            for (name, node) in &self.directories[id].entries {
                add(name.as_encoded_bytes());
                match node {
                    Node::Directory(id) => waiting.push(*id),
                    Node::File(inode) => add(inode.content().bytes()),
                }
            }
        }
        hash
    }

    /// All files that a name stands for, or stood for and may stand for again.
    pub(super) fn files(&self) -> BTreeMap<u64, Arc<Inode>> {
        let entries = self.directories.iter().flat_map(|directory| directory.entries.values());
        let changes = self.directories.iter().flat_map(|directory| &directory.changes);
        let before =
            changes.flat_map(|change| &change.before).filter_map(|(_, node)| node.as_ref());
        let files = entries.chain(before).filter_map(|node| match node {
            Node::File(inode) => Some((inode.id, Arc::clone(inode))),
            Node::Directory(_) => None,
        });
        files.collect()
    }

    /// How many changes of each directory are not durable.
    pub(super) fn unsynced_counts(&self) -> Vec<usize> {
        self.directories.iter().map(|directory| directory.changes.len()).collect()
    }

    /// How many unsynced changes of each directory survive a power cut, by chance.
    pub(super) fn kept_by_chance(&self, seed: u64) -> Vec<usize> {
        let kept = |(id, directory): (usize, &Directory)| {
            let count = directory.changes.len();
            let mut random = Random::new(seed, !(id as u64));
            match random.below(4) {
                0 => count,
                1 => 0,
                _ => random.below(count + 1),
            }
        };
        self.directories.iter().enumerate().map(kept).collect()
    }

    /// The names after a power cut of which so many unsynced changes of each directory survive,
    /// fewer where a rename between directories would survive in one half only.
    pub(super) fn after_power_cut(&self, mut kept: Vec<usize>) -> Namespace {
        kept.resize(self.directories.len(), 0);
        self.cut_halved_renames(&mut kept);
        let mut survivor = self.clone();
        for (directory, kept) in survivor.directories.iter_mut().zip(kept) {
            for change in directory.changes.drain(kept..).rev() {
                for (name, node) in change.before.into_iter().rev() {
                    match node {
                        Some(node) => directory.entries.insert(name, node),
                        None => directory.entries.remove(&name),
                    };
                }
            }
            directory.changes.clear();
        }
        survivor.empty_the_unreachable();
        survivor
    }

    /// What is in a removed directory is gone, also where its own changes did not survive.
    fn empty_the_unreachable(&mut self) {
        let mut reachable = BTreeSet::new();
        let mut waiting = vec![0];
        while let Some(id) = waiting.pop() {
            if reachable.insert(id) {
                let nodes = self.directories[id].entries.values();
                waiting.extend(nodes.filter_map(|node| match node {
                    Node::Directory(id) => Some(*id),
                    Node::File(_) => None,
                }));
            }
        }
        let directories = self.directories.iter_mut().enumerate();
        for (_, directory) in directories.filter(|(id, _)| !reachable.contains(id)) {
            directory.entries.clear();
        }
    }

    /// Shortens what survives until no rename between directories survives in one half only.
    fn cut_halved_renames(&self, kept: &mut [usize]) {
        loop {
            let mut lost = BTreeSet::new();
            for (directory, kept) in self.directories.iter().zip(&*kept) {
                lost.extend(directory.changes[*kept..].iter().filter_map(|change| change.pair));
            }
            let mut settled = true;
            for (directory, kept) in self.directories.iter().zip(&mut *kept) {
                let is_lost = |change: &Change| change.pair.is_some_and(|p| lost.contains(&p));
                if let Some(first) = directory.changes[..*kept].iter().position(is_lost) {
                    *kept = first;
                    settled = false;
                }
            }
            if settled {
                return;
            }
        }
    }

    /// Replaces every file, the same one everywhere by the same one, and counts names anew.
    pub(super) fn replace_files(&mut self, mut replace: impl FnMut(&Arc<Inode>) -> Arc<Inode>) {
        for directory in &mut self.directories {
            for node in directory.entries.values_mut() {
                if let Node::File(inode) = node {
                    *inode = replace(inode);
                    inode.hold();
                }
            }
            for change in &mut directory.changes {
                for (_, node) in &mut change.before {
                    if let Some(Node::File(inode)) = node {
                        *inode = replace(inode);
                    }
                }
            }
        }
    }
}
