//! Files that nobody needs any more: log segments, replaced tables, whatever a reader has let go.
//! One is removed by a job, a file a step.

use crate::base::{FileNumber, Level};
use crate::compaction::scheduler::{Ending, Job, Spent, Step, StepContext, Urgency};
use crate::db::inner::DbInner;
use crate::manifest::FileName;
use crate::stats::{Cause, Counter};
use std::path::PathBuf;
use std::sync::Arc;

impl DbInner {
    /// Takes log segments below a number out of use.
    pub(crate) fn release_segments(self: &Arc<Self>, oldest_needed: FileNumber) {
        let unneeded = self.commits.writer().wal.release_below(oldest_needed);
        self.let_go(unneeded);
    }

    /// Removes tables whose last reader has gone, in the background.
    pub(crate) fn collect_garbage(self: &Arc<Self>) {
        // A close removes what is left.
        let Ok(_call) = self.lifecycle.enter() else { return };
        if !self.jobs.state().garbage_is_held {
            return;
        }
        let numbers = {
            let mut manifest = self.tree.manifest();
            let numbers = manifest.obsolete().collect();
            self.jobs.state().garbage_is_held = !manifest.obsolete().is_empty();
            numbers
        };
        self.ledger.count(Counter::TablesRemoved, numbers.len() as u64);
        self.let_go(numbers.into_iter().map(FileName::Table).collect());
    }

    pub(crate) fn remove_files(self: &Arc<Self>, paths: Vec<PathBuf>) {
        if !paths.is_empty() {
            self.jobs.state().deletions += 1;
            self.jobs.submit(Box::new(DeletionJob { inner: Arc::clone(self), paths }));
        }
    }
}

/// Removes files, one a step; at a close, all that are left. One that cannot be removed is an
/// orphan until the next open.
struct DeletionJob {
    inner: Arc<DbInner>,
    paths: Vec<PathBuf>,
}

impl Job for DeletionJob {
    fn name(&self) -> String {
        "removal of files".to_string()
    }

    fn cause(&self) -> Cause {
        Cause::FileDeletion
    }

    fn level(&self) -> Level {
        0
    }

    fn urgency(&self) -> Urgency {
        Urgency::Deletion
    }

    fn step(&mut self, _: &mut StepContext<'_>) -> Step {
        match self.paths.pop() {
            Some(path) => {
                let _ = self.inner.world.files.remove(&path);
                Step::Progress
            }
            None => Step::Done(Ok(())),
        }
    }

    fn end(self: Box<Self>, _: Ending, _: Spent) {
        for path in &self.paths {
            let _ = self.inner.world.files.remove(path);
        }
        self.inner.jobs.state().deletions -= 1;
        self.inner.jobs.notify();
    }
}
