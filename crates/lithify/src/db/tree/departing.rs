//! Files that the database has let go and readers beside it may still need.
//!
//! A file is noted with the position of the manifest behind the edit that let it go, and stays until
//! no registered reader holds a state from before. The protocol is described in
//! docs/format/readers.md.

use crate::db::inner::{DbInner, lock};
use crate::db::tree::Tree;
use crate::manifest::{FileName, ManifestPosition, Readers};
use crate::{ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// See the module.
#[derive(Default)]
pub(crate) struct Departing {
    files: Vec<(FileName, ManifestPosition)>,
    /// What was found at the last check.
    readers: u64,
}

impl Tree {
    /// Readers found at the last check, and files that wait for readers.
    pub(crate) fn readers_and_held_files(&self) -> (u64, u64) {
        let departing = lock(&self.departing);
        (departing.readers, departing.files.len() as u64)
    }
}

impl DbInner {
    /// Removes files that nothing needs, or uses them again, once no reader can need them. The edit
    /// that let them go has been made.
    pub(crate) fn let_go(self: &Arc<Self>, names: Vec<FileName>) {
        // The files of a reader are its writer's.
        if self.lifecycle.is_read_only() {
            return;
        }
        // What a closing database lets go is removed by the close, or by the next opening.
        let Ok(_call) = self.lifecycle.enter() else { return };
        if names.is_empty() && lock(&self.tree.departing).files.is_empty() {
            return;
        }
        let position = self.tree.position();
        let (free, is_held) = {
            let mut departing = lock(&self.tree.departing);
            departing.files.extend(names.into_iter().map(|name| (name, position)));
            // Behind the edits: a reader that is not found here reads them.
            let readers = Readers::look(&*self.world.files, &self.path);
            let holds = |released| readers.as_ref().map_or(true, |readers| readers.hold(released));
            departing.readers = readers.as_ref().map_or(departing.readers, |found| found.count);
            let files = std::mem::take(&mut departing.files);
            let (held, free): (Vec<_>, Vec<_>) =
                files.into_iter().partition(|(_, released)| holds(*released));
            departing.files = held;
            // They are asked for again when garbage is collected next: a look may have failed.
            (free, !departing.files.is_empty())
        };
        if is_held {
            self.jobs.state().hold_garbage();
        }
        let mut unneeded: Vec<PathBuf> = Vec::new();
        for (name, _) in free {
            let path = name.path(&self.path);
            let is_recycled =
                matches!(name, FileName::Wal(_)) && self.commits.writer().wal.recycle(&path);
            if !is_recycled {
                unneeded.push(path);
            }
        }
        self.remove_files(unneeded);
    }

    /// Removes what an earlier run left; what readers need stays until they are gone.
    pub(crate) fn remove_orphans(&self, orphans: Vec<FileName>) -> Result<()> {
        if orphans.is_empty() {
            return Ok(());
        }
        let position = self.tree.position();
        let readers = Readers::look(&*self.world.files, &self.path)?;
        if readers.hold(position) {
            let mut departing = lock(&self.tree.departing);
            departing.readers = readers.count;
            departing.files.extend(orphans.into_iter().map(|orphan| (orphan, position)));
            return Ok(());
        }
        // One that is gone already is no orphan any more.
        let remove = |path: &Path| {
            let removed = self.world.files.remove(path);
            if planted!(GoneOrphanIsError) {
                return removed;
            }
            match removed {
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
                removed => removed,
            }
        };
        orphans.iter().try_for_each(|orphan| remove(&orphan.path(&self.path)))
    }
}
