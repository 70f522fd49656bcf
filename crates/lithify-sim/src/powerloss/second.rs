//! A recovery is crashed: an image is opened on the journaling file system, and images are made of
//! what a power cut in the middle of that leaves.

use super::disk::{Disk, Node};
use super::history::Shown;
use super::image::{Medium, Tree};
use super::journal::{Inode, Journal};
use super::run::choices;
use crate::random::Random;
use lithify::{Db, Options};
use std::collections::HashMap;
use std::path::Path;

/// The name under which images are opened.
const NAME: &str = "again";

/// Places in a recovery at which the power is cut.
const POSITIONS: u64 = 5;

/// An opening of an image, call by call.
pub(super) struct Recovery {
    journal: Journal,
    /// The image before it.
    nodes: HashMap<Inode, Node>,
    name: String,
    /// When the opening began.
    began: u64,
    /// When it had returned.
    opened: u64,
}

/// What a second crash leaves.
pub(super) struct Cut {
    pub(super) image: Tree,
    /// Whether the opening had returned before.
    pub(super) was_opened: bool,
}

/// Opens an image on the disk.
pub(super) fn record(
    disk: &Disk,
    mount: &Path,
    image: &Tree,
    options: &Options,
) -> Result<Recovery, String> {
    let began = disk.state().journal.now();
    let name = format!("{NAME}-{began}");
    disk.plant(&name, image);
    let nodes = disk.subtree(&name);
    let db = Db::open(mount.join(&name), options.clone())
        .map_err(|error| format!("on the journaling file system it does not open: {error}"))?;
    let opened = disk.state().journal.stamp();
    drop(db);
    let entries = std::mem::take(&mut disk.state().journal.entries);
    let last = disk.state().journal.now();
    disk.forget(&name);
    Ok(Recovery { journal: Journal::of(entries, last), nodes, name, began, opened })
}

impl Recovery {
    /// What second crashes leave, at random places and at the end.
    pub(super) fn cuts(&self, random: &mut Random) -> Vec<Cut> {
        let (first, last) = (self.began + 1, self.journal.now() + 1);
        let mut stamps: Vec<u64> = (1..POSITIONS).map(|_| random.between(first, last)).collect();
        stamps.extend([self.opened + 1]);
        stamps.sort_unstable();
        stamps.dedup();
        let mut medium = Medium::planted(&self.journal, &self.nodes);
        let mut cuts = Vec::new();
        for stamp in stamps {
            medium.advance(stamp);
            let was_opened = stamp > self.opened;
            for choice in choices(&medium, random) {
                let disk = medium.cut(choice);
                let missing = || Tree::Directory(Default::default());
                let image = disk.get(&self.name).cloned().unwrap_or_else(missing);
                cuts.push(Cut { image, was_opened });
            }
        }
        cuts
    }
}

/// What a second crash may leave of what the first one left: no more than the opening showed, and
/// all of it once the opening had returned.
pub(super) fn check(again: &Shown, first: &Shown, was_opened: bool) -> Result<(), String> {
    if was_opened && again != first {
        return Err(format!("it showed {:?} and now {:?}", first.counts, again.counts));
    }
    let is_more = again.counts.iter().zip(&first.counts).any(|(again, first)| again > first);
    match is_more {
        true => Err(format!("it shows {:?} after {:?}", again.counts, first.counts)),
        false => Ok(()),
    }
}
