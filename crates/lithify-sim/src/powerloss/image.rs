//! What may be on the medium after a power cut: made from the journal by the rules of
//! `docs/format/medium.md`, and by nothing else.
//!
//! 1. A [`Medium`] follows the journal up to a stamp. It knows of each file and directory what is
//!    durable and which changes since then are not. A sync covers the changes that had ended before
//!    it began, and only once it has ended.
//! 2. A [`Choice`] says which of the rest survives: of a directory's names the first so many, of a
//!    file's writes any, each whole, torn, or as its length alone.
//! 3. The result is a [`Tree`], which is put into a real directory.

use super::disk::Node;
use super::journal::{Change, Event, Inode, Journal, ROOT};
use crate::digest;
use crate::random::Random;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Files and directories by name.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Tree {
    File(Arc<Vec<u8>>),
    Directory(BTreeMap<String, Tree>),
}

impl Tree {
    /// Puts the tree under a path that is not there yet.
    pub(super) fn put(&self, path: &Path) -> io::Result<()> {
        match self {
            Tree::File(bytes) => std::fs::write(path, bytes.as_slice()),
            Tree::Directory(names) => {
                std::fs::create_dir(path)?;
                names.iter().try_for_each(|(name, tree)| tree.put(&path.join(name)))
            }
        }
    }

    /// A fingerprint of all names and bytes.
    pub(super) fn digest(&self) -> u64 {
        match self {
            Tree::File(bytes) => digest::of_bytes(1, bytes),
            Tree::Directory(names) => names.iter().fold(2, |sum, (name, tree)| {
                digest::mix(digest::of_bytes(sum, name.as_bytes()), tree.digest())
            }),
        }
    }

    /// What a name of a directory stands for.
    pub(super) fn get(&self, name: &str) -> Option<&Tree> {
        match self {
            Tree::File(_) => None,
            Tree::Directory(names) => names.get(name),
        }
    }
}

/// A tear never leaves more of a sector's order than this: pieces of a torn write.
const SECTOR_BYTES: u64 = 512;

/// What a power cut leaves of what was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// Nothing of it.
    Nothing,
    /// All of it; also what the end of the process leaves.
    Everything,
    /// All names, no bytes.
    NamesOnly,
    /// All bytes, no names.
    BytesOnly,
    /// Everything that happened before this stamp.
    Until(u64),
    /// Everything but the change that began at this stamp (with the names behind it).
    AllBut(u64),
    /// Nothing but the change that began at this stamp (with the names before it).
    Only(u64),
    /// Everything, but the last write of each file is torn where this seed says.
    Torn(u64),
    /// Whatever this seed says.
    Random(u64),
}

/// What survives of one write.
enum Fate {
    Lost,
    Whole,
    /// The bytes before, or from, this place in the write.
    Front(u64),
    Back(u64),
    /// The file has its new length, with zeros.
    LengthOnly,
    /// Each sector by chance.
    Sectors(u64),
}

#[derive(Clone, Debug, Default)]
struct FileMedium {
    durable: Arc<Vec<u8>>,
    /// Entries of the journal, in order.
    pending: Vec<usize>,
}

/// A name that came, or went.
#[derive(Clone, Debug)]
struct NameChange {
    entry: usize,
    changes: Vec<(String, Option<Inode>)>,
    /// The other directory of a rename.
    partner: Option<Inode>,
}

#[derive(Clone, Debug, Default)]
struct DirectoryMedium {
    durable: BTreeMap<String, Inode>,
    pending: Vec<NameChange>,
}

/// See the module.
#[derive(Clone)]
pub(super) struct Medium<'j> {
    journal: &'j Journal,
    files: HashMap<Inode, FileMedium>,
    directories: HashMap<Inode, DirectoryMedium>,
    /// What takes effect when: a change at its beginning, a sync at its end.
    timeline: Arc<Vec<(u64, usize)>>,
    next: usize,
}

impl<'j> Medium<'j> {
    /// The medium before the journal's first entry: empty.
    pub(super) fn new(journal: &'j Journal) -> Self {
        Medium::over(journal, HashMap::new(), HashMap::from([(ROOT, DirectoryMedium::default())]))
    }

    /// The medium of a disk on which all of this is durable.
    pub(super) fn planted(journal: &'j Journal, nodes: &HashMap<Inode, Node>) -> Self {
        let (mut files, mut directories) = (HashMap::new(), HashMap::new());
        for (inode, node) in nodes {
            match node {
                Node::File(bytes) => {
                    let durable = Arc::new(bytes.clone());
                    files.insert(*inode, FileMedium { durable, pending: Vec::new() });
                }
                Node::Directory(names) => {
                    let medium = DirectoryMedium { durable: names.clone(), pending: Vec::new() };
                    directories.insert(*inode, medium);
                }
                // Devices have no names of their own: see `device`.
                Node::Device(_) => {}
            }
        }
        Medium::over(journal, files, directories)
    }

    fn over(
        journal: &'j Journal,
        files: HashMap<Inode, FileMedium>,
        directories: HashMap<Inode, DirectoryMedium>,
    ) -> Self {
        let mut timeline: Vec<_> = (0..)
            .zip(&journal.entries)
            .filter_map(|(place, entry)| match entry.event {
                Event::Change(_) => Some((entry.began, place)),
                Event::Sync(_) => Some((entry.ended, place)),
                Event::Report(_) | Event::End => None,
            })
            .collect();
        timeline.sort_unstable();
        Medium { journal, files, directories, timeline: Arc::new(timeline), next: 0 }
    }

    /// Goes on to a stamp: what took effect before it has.
    pub(super) fn advance(&mut self, stamp: u64) {
        let timeline = Arc::clone(&self.timeline);
        while let Some((_, place)) = timeline.get(self.next).filter(|(when, _)| *when < stamp) {
            match &self.journal.entries[*place].event {
                Event::Change(change) => self.note(*place, change),
                Event::Sync(inode) => self.sync(*inode, self.journal.entries[*place].began),
                Event::Report(_) | Event::End => {}
            }
            self.next += 1;
        }
    }

    fn note(&mut self, entry: usize, change: &Change) {
        match change {
            Change::Make { parent, name, inode, is_directory } => {
                if *is_directory {
                    self.directories.insert(*inode, DirectoryMedium::default());
                } else {
                    self.files.insert(*inode, FileMedium::default());
                }
                self.rename(entry, *parent, vec![(name.clone(), Some(*inode))], None);
            }
            Change::Link { parent, name, inode } => {
                self.rename(entry, *parent, vec![(name.clone(), Some(*inode))], None);
            }
            Change::Remove { parent, name } => {
                self.rename(entry, *parent, vec![(name.clone(), None)], None);
            }
            Change::Rename { from, to } => {
                let moved = self.live_name(from.0, &from.1);
                let (gone, come) = ((from.1.clone(), None), (to.1.clone(), moved));
                if from.0 == to.0 {
                    self.rename(entry, from.0, vec![gone, come], None);
                } else {
                    self.rename(entry, from.0, vec![gone], Some(to.0));
                    self.rename(entry, to.0, vec![come], Some(from.0));
                }
            }
            Change::Write { inode, .. } | Change::Resize { inode, .. } => {
                self.files.entry(*inode).or_default().pending.push(entry);
            }
        }
    }

    fn rename(
        &mut self,
        entry: usize,
        directory: Inode,
        changes: Vec<(String, Option<Inode>)>,
        partner: Option<Inode>,
    ) {
        let change = NameChange { entry, changes, partner };
        self.directories.entry(directory).or_default().pending.push(change);
    }

    fn live_name(&self, directory: Inode, name: &str) -> Option<Inode> {
        let medium = self.directories.get(&directory)?;
        let changes = medium.pending.iter().rev().flat_map(|change| change.changes.iter().rev());
        let last = changes.into_iter().find(|(changed, _)| changed == name);
        last.map_or_else(|| medium.durable.get(name).copied(), |(_, inode)| *inode)
    }

    fn sync(&mut self, inode: Inode, began: u64) {
        let journal = self.journal;
        let is_covered = |entry: usize| journal.entries[entry].ended < began;
        if let Some(file) = self.files.get_mut(&inode) {
            let (covered, rest) = file.pending.iter().partition(|entry| is_covered(**entry));
            let covered: Vec<usize> = covered;
            if !covered.is_empty() {
                let content = Arc::make_mut(&mut file.durable);
                covered.iter().for_each(|entry| survive(journal, *entry, &Fate::Whole, content));
            }
            file.pending = rest;
        }
        if let Some(directory) = self.directories.get(&inode) {
            // Names reach the medium in order: with one, all before it.
            let last = directory.pending.iter().rposition(|change| is_covered(change.entry));
            if let Some(last) = last {
                self.settle(inode, last + 1);
            }
        }
    }

    /// Makes the first so many changes of a directory durable, and the other half of each rename.
    fn settle(&mut self, inode: Inode, count: usize) {
        let Some(directory) = self.directories.get_mut(&inode) else { return };
        let settled: Vec<NameChange> = directory.pending.drain(..count).collect();
        for change in settled {
            let directory = self.directories.entry(inode).or_default();
            change_names(&mut directory.durable, &change);
            let Some(partner) = change.partner else { continue };
            let other = self.directories.get(&partner);
            let half = other.and_then(|other| {
                other.pending.iter().position(|other| other.entry == change.entry)
            });
            if let Some(half) = half {
                self.settle(partner, half + 1);
            }
        }
    }

    /// The stamps at which the changes began that a power cut could take.
    pub(super) fn unsynced(&self) -> Vec<u64> {
        let bytes = self.files.values().flat_map(|file| file.pending.iter().copied());
        let names = self.directories.values().flat_map(|directory| directory.pending.iter());
        let names = names.map(|change| change.entry);
        let began = |entry: usize| self.journal.entries[entry].began;
        let mut stamps: Vec<u64> = bytes.chain(names).map(began).collect();
        stamps.sort_unstable();
        stamps.dedup();
        stamps
    }

    /// What is there after a power cut now.
    pub(super) fn cut(&self, choice: Choice) -> Tree {
        let kept = self.kept_names(choice);
        self.tree(ROOT, choice, &kept)
    }

    /// How many changes of each directory's names survive.
    fn kept_names(&self, choice: Choice) -> HashMap<Inode, usize> {
        let began = |change: &NameChange| self.journal.entries[change.entry].began;
        let mut kept: HashMap<Inode, usize> = HashMap::new();
        for (inode, directory) in &self.directories {
            let pending = &directory.pending;
            let before = |stamp| pending.iter().take_while(|change| began(change) < stamp).count();
            let count = match choice {
                Choice::Nothing | Choice::BytesOnly => 0,
                Choice::Everything | Choice::NamesOnly | Choice::Torn(_) => pending.len(),
                Choice::Until(stamp) => before(stamp),
                Choice::AllBut(stamp) if pending.iter().any(|change| began(change) == stamp) => {
                    before(stamp)
                }
                Choice::AllBut(_) => pending.len(),
                Choice::Only(stamp) if pending.iter().any(|change| began(change) == stamp) => {
                    before(stamp) + 1
                }
                Choice::Only(_) => 0,
                Choice::Random(seed) => {
                    let mut random = Random::new(digest::mix(seed, *inode));
                    match random.below(4) {
                        0 => 0,
                        1 => pending.len(),
                        _ => random.below(pending.len() as u64 + 1) as usize,
                    }
                }
            };
            kept.insert(*inode, count);
        }
        self.keep_renames_whole(&mut kept);
        kept
    }

    /// A rename between two directories survives in both or in neither.
    fn keep_renames_whole(&self, kept: &mut HashMap<Inode, usize>) {
        let survives = |kept: &HashMap<Inode, usize>, inode: Inode, entry: usize| {
            let count = kept.get(&inode).copied().unwrap_or(0);
            let Some(directory) = self.directories.get(&inode) else { return true };
            let place = directory.pending.iter().position(|change| change.entry == entry);
            place.is_none_or(|place| place < count)
        };
        loop {
            let half = self.directories.iter().find_map(|(inode, directory)| {
                let count = kept.get(inode).copied().unwrap_or(0);
                let place = directory.pending[..count].iter().position(|change| {
                    change.partner.is_some_and(|partner| !survives(kept, partner, change.entry))
                })?;
                Some((*inode, place))
            });
            match half {
                Some((inode, place)) => kept.insert(inode, place),
                None => return,
            };
        }
    }

    fn tree(&self, inode: Inode, choice: Choice, kept: &HashMap<Inode, usize>) -> Tree {
        let Some(directory) = self.directories.get(&inode) else {
            return Tree::File(self.content(inode, choice));
        };
        let mut names = directory.durable.clone();
        let count = kept.get(&inode).copied().unwrap_or(0);
        directory.pending[..count].iter().for_each(|change| change_names(&mut names, change));
        let tree = |(name, child)| (name, self.tree(child, choice, kept));
        Tree::Directory(names.into_iter().map(tree).collect())
    }

    fn content(&self, inode: Inode, choice: Choice) -> Arc<Vec<u8>> {
        let Some(file) = self.files.get(&inode) else { return Arc::default() };
        if file.pending.is_empty() || matches!(choice, Choice::Nothing | Choice::NamesOnly) {
            return Arc::clone(&file.durable);
        }
        let mut content = file.durable.to_vec();
        let mut random = match choice {
            Choice::Torn(seed) | Choice::Random(seed) => Random::new(digest::mix(seed, inode + 1)),
            _ => Random::new(inode),
        };
        let plan = random.below(8);
        let chance = random.between(1, 9);
        let prefix = random.below(file.pending.len() as u64 + 1) as usize;
        for (place, entry) in file.pending.iter().enumerate() {
            let began = self.journal.entries[*entry].began;
            let is_last = place + 1 == file.pending.len();
            let fate = match choice {
                Choice::Until(stamp) if began >= stamp => Fate::Lost,
                Choice::AllBut(stamp) if began == stamp => Fate::Lost,
                Choice::Only(stamp) if began != stamp => Fate::Lost,
                Choice::Torn(_) if is_last => self.tear(*entry, &mut random),
                Choice::Random(_) => match plan {
                    0 => Fate::Lost,
                    1 => Fate::Whole,
                    2 | 3 if place < prefix => Fate::Whole,
                    2 | 3 if place == prefix => self.tear(*entry, &mut random),
                    2 | 3 => Fate::Lost,
                    _ => scattered(&mut random, chance),
                },
                _ => Fate::Whole,
            };
            survive(self.journal, *entry, &fate, &mut content);
        }
        Arc::new(content)
    }

    /// Where a write is torn: at a sector of the file mostly, else anywhere.
    fn tear(&self, entry: usize, random: &mut Random) -> Fate {
        let Event::Change(Change::Write { offset, bytes, .. }) = &self.journal.entries[entry].event
        else {
            return if random.one_in(2) { Fate::Lost } else { Fate::Whole };
        };
        let place = random.below(bytes.len() as u64 + 1);
        let sector = (offset + place).next_multiple_of(SECTOR_BYTES) - offset;
        let place = if random.one_in(4) { place } else { sector.min(bytes.len() as u64) };
        match random.below(4) {
            0 => Fate::Back(place),
            1 => Fate::LengthOnly,
            _ => Fate::Front(place),
        }
    }
}

/// One of many writes, of which about so many tenths survive.
fn scattered(random: &mut Random, chance: u64) -> Fate {
    match random.below(10) {
        0 => Fate::LengthOnly,
        1 => Fate::Sectors(random.next()),
        _ if random.below(10) < chance => Fate::Whole,
        _ => Fate::Lost,
    }
}

fn change_names(names: &mut BTreeMap<String, Inode>, change: &NameChange) {
    for (name, inode) in &change.changes {
        match inode {
            Some(inode) => drop(names.insert(name.clone(), *inode)),
            None => drop(names.remove(name)),
        }
    }
}

/// Applies what survives of a change of bytes.
fn survive(journal: &Journal, entry: usize, fate: &Fate, content: &mut Vec<u8>) {
    if matches!(fate, Fate::Lost) {
        return;
    }
    let (offset, bytes) = match &journal.entries[entry].event {
        Event::Change(Change::Write { offset, bytes, .. }) => (*offset as usize, bytes),
        Event::Change(Change::Resize { length, .. }) => {
            return content.resize(*length as usize, 0);
        }
        _ => return,
    };
    let end = offset + bytes.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    let mut keep = |from: usize, to: usize| {
        content[offset + from..offset + to].copy_from_slice(&bytes[from..to]);
    };
    match fate {
        Fate::Lost | Fate::LengthOnly => {}
        Fate::Whole => keep(0, bytes.len()),
        Fate::Front(place) => keep(0, *place as usize),
        Fate::Back(place) => keep(*place as usize, bytes.len()),
        Fate::Sectors(seed) => {
            let (mut random, mut from) = (Random::new(*seed), 0);
            while from < bytes.len() {
                let sector_end = (offset + from + 1).next_multiple_of(SECTOR_BYTES as usize);
                let to = (sector_end - offset).min(bytes.len());
                if random.one_in(2) {
                    keep(from, to);
                }
                from = to;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(inode: Inode, offset: u64, bytes: &[u8]) -> Change {
        Change::Write { inode, offset, bytes: Arc::from(bytes) }
    }

    fn make(parent: Inode, name: &str, inode: Inode, is_directory: bool) -> Change {
        Change::Make { parent, name: name.to_string(), inode, is_directory }
    }

    fn journal(events: Vec<Event>) -> Journal {
        let mut journal = Journal::default();
        for event in events {
            let place = journal.begin(event);
            journal.end(place);
        }
        journal
    }

    fn file(tree: &Tree, name: &str) -> Option<Vec<u8>> {
        match tree.get(name)? {
            Tree::File(bytes) => Some(bytes.to_vec()),
            Tree::Directory(_) => None,
        }
    }

    #[test]
    fn bytes_need_their_file_synced_and_names_their_directory() {
        let make = Event::Change(make(ROOT, "f", 2, false));
        let bytes = Event::Change(write(2, 0, b"abc"));
        let synced = |syncs: &[Inode]| {
            let syncs = syncs.iter().map(|inode| Event::Sync(*inode));
            let journal = journal([make.clone(), bytes.clone()].into_iter().chain(syncs).collect());
            let mut medium = Medium::new(&journal);
            medium.advance(journal.now() + 1);
            let cuts = [Choice::Nothing, Choice::NamesOnly, Choice::BytesOnly, Choice::Everything];
            cuts.map(|choice| file(&medium.cut(choice), "f"))
        };
        let (none, empty, full) = (None, Some(Vec::new()), Some(b"abc".to_vec()));
        assert_eq!(synced(&[]), [none.clone(), empty.clone(), none.clone(), full.clone()]);
        assert_eq!(synced(&[2]), [none.clone(), full.clone(), none, full.clone()]);
        assert_eq!(synced(&[ROOT]), [empty.clone(), empty, full.clone(), full.clone()]);
        assert_eq!(synced(&[2, ROOT]), [full.clone(), full.clone(), full.clone(), full]);
    }

    #[test]
    fn a_sync_covers_only_what_had_ended_before_it_began_and_only_when_it_has_ended() {
        let mut journal = journal(vec![
            Event::Change(make(ROOT, "f", 2, false)),
            Event::Sync(ROOT),
            Event::Change(write(2, 0, b"a")),
        ]);
        let slow = journal.begin(Event::Change(write(2, 1, b"b")));
        let sync = journal.begin(Event::Sync(2));
        journal.end(slow);
        let during = journal.begin(Event::Change(write(2, 2, b"c")));
        journal.end(during);
        let before_end = journal.now() + 1;
        journal.end(sync);
        let mut medium = Medium::new(&journal);
        medium.advance(before_end);
        assert_eq!(file(&medium.cut(Choice::Nothing), "f"), Some(vec![]));
        medium.advance(journal.now() + 1);
        assert_eq!(file(&medium.cut(Choice::Nothing), "f"), Some(b"a".to_vec()));
        assert_eq!(medium.unsynced().len(), 2);
        let second = medium.unsynced()[1];
        assert_eq!(file(&medium.cut(Choice::Only(second)), "f"), Some(b"a\0c".to_vec()));
        assert_eq!(file(&medium.cut(Choice::Until(second)), "f"), Some(b"ab".to_vec()));
    }

    #[test]
    fn names_survive_in_order_and_renames_between_directories_whole() {
        let rename = |from: (Inode, &str), to: (Inode, &str)| {
            let (from, to) = ((from.0, from.1.to_string()), (to.0, to.1.to_string()));
            Event::Change(Change::Rename { from, to })
        };
        let journal = journal(vec![
            Event::Change(make(ROOT, "d", 2, true)),
            Event::Change(make(ROOT, "e", 3, true)),
            Event::Sync(ROOT),
            Event::Change(make(2, "f", 4, false)),
            Event::Change(write(4, 0, b"x")),
            Event::Sync(4),
            Event::Sync(2),
            rename((2, "f"), (3, "g")),
            Event::Change(make(3, "h", 5, false)),
        ]);
        let mut medium = Medium::new(&journal);
        medium.advance(journal.now() + 1);
        for seed in 0..200 {
            let tree = medium.cut(Choice::Random(seed));
            let (d, e) = (tree.get("d").unwrap(), tree.get("e").unwrap());
            let places = [d.get("f").is_some(), e.get("g").is_some(), e.get("h").is_some()];
            assert!(places[0] != places[1], "{places:?}");
            assert!(places[1] || !places[2], "{places:?}");
        }
        let tree = medium.cut(Choice::Nothing);
        assert_eq!(file(tree.get("d").unwrap(), "f"), Some(b"x".to_vec()));
    }

    #[test]
    fn torn_and_scattered_writes_have_old_new_or_no_bytes() {
        let (old, new) = (vec![1; 2000], vec![2; 1500]);
        let journal = journal(vec![
            Event::Change(make(ROOT, "f", 2, false)),
            Event::Change(write(2, 0, &old)),
            Event::Sync(2),
            Event::Sync(ROOT),
            Event::Change(write(2, 1000, &new)),
        ]);
        let mut medium = Medium::new(&journal);
        medium.advance(journal.now() + 1);
        let mut contents = std::collections::BTreeSet::new();
        for seed in 0..300 {
            for choice in [Choice::Torn(seed), Choice::Random(seed)] {
                let content = file(&medium.cut(choice), "f").unwrap();
                assert!(content[..1000].iter().all(|byte| *byte == 1));
                assert!(content[1000..2000.min(content.len())].iter().all(|b| [1, 2].contains(b)));
                assert!(content[2000..].iter().all(|byte| [0, 2].contains(byte)));
                contents.insert(content);
            }
        }
        assert!(contents.len() > 20, "{}", contents.len());
    }
}
