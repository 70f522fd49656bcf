//! The database behind its handles: its parts, and what takes more than one of them.
//!
//! Each part owns its fields, see its module. What an operation needs of several parts is a method
//! of [`DbInner`], in the folder of the part that the operation belongs to.

use crate::Result;
pub(crate) use crate::base::lock;
use crate::base::{ColumnFamilyId, SequenceNumber};
use crate::compaction::Workshop;
use crate::db::committing::Commits;
use crate::db::jobs::Jobs;
use crate::db::lifecycle::Lifecycle;
use crate::db::reading::Visibility;
use crate::db::reading::snapshot::Snapshot;
use crate::db::resources::Resources;
use crate::db::rows::Rows;
use crate::db::rows::locks::{Grant, OwnerId, RowId};
use crate::db::tree::Tree;
use crate::events::Events;
use crate::fs::World;
use crate::options::Options;
use crate::stats::Ledger;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// See the module. Handles share it; background jobs hold it while they run.
pub(crate) struct DbInner {
    pub(crate) path: PathBuf,
    pub(crate) options: Options,
    pub(crate) world: World,
    pub(crate) database_id: u128,
    /// Where everything is booked.
    pub(crate) ledger: Arc<Ledger>,
    /// What tables are made and read with: file numbers, codecs, cache, memory budget.
    pub(crate) workshop: Arc<Workshop>,
    /// Where everything is told.
    pub(crate) events: Events,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) commits: Commits,
    pub(crate) tree: Tree,
    pub(crate) jobs: Jobs,
    pub(crate) rows: Rows,
    pub(crate) visibility: Visibility,
    /// What it shares with other databases, until it is closed.
    pub(crate) resources: Mutex<Option<Resources>>,
}

impl DbInner {
    /// Takes the lock of a row, waiting for it at most so long. `name` gives its family and key
    /// for the message of an error.
    pub(crate) fn lock_row<'k>(
        &self,
        owner: OwnerId,
        row: RowId,
        timeout_us: u64,
        name: impl FnOnce() -> (ColumnFamilyId, &'k [u8]),
    ) -> Result<Grant> {
        let wait = |event: &_, deadline_us, condition: &mut dyn FnMut() -> bool| {
            self.commits.wait_spinning(&self.jobs, event, Some(deadline_us), condition)
        };
        let name = || {
            let (family, key) = name();
            self.tree.row_name(family, key)
        };
        self.rows.lock(owner, row, timeout_us, wait, name)
    }

    /// Makes plain writes take row locks from now on, and waits for those under way without.
    pub(crate) fn begin_transactions(&self) {
        self.rows.begin_transactions(|drained, condition| {
            self.jobs.wait(drained, None, condition);
        });
    }

    /// Tells of the failure that stopped writing, if there was one. The caller holds no lock, so that is
    /// after the call or job that met it.
    pub(crate) fn tell_failure(&self) {
        if let Some(error) = self.lifecycle.failure() {
            self.events.tell_failure(error);
        }
    }

    pub(crate) fn new_snapshot(self: &Arc<Self>) -> Snapshot {
        let moment = self.visibility.register_snapshot(&*self.world.environment);
        Snapshot { moment, inner: Arc::clone(self) }
    }

    pub(crate) fn release_snapshot(self: &Arc<Self>, sequence: SequenceNumber) {
        let was_oldest = self.visibility.release_snapshot(sequence);
        if was_oldest && self.lifecycle.check_writable().is_ok() {
            self.schedule_all_compactions();
        }
    }
}
