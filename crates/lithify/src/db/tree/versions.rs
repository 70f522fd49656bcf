//! Edits, the versions that they lead to, and what those bring into a family's view.

use crate::base::{ColumnFamilyId, FileNumber};
use crate::compaction::NewTable;
use crate::compaction::levels::{LevelTargets, TreeShape};
use crate::db::inner::DbInner;
use crate::db::jobs::stall::LEVEL0_TRIGGER;
use crate::db::tree::family::{Family, Memory, copy_of};
use crate::manifest::{Change, Manifest, ManifestState, Version};
use crate::options::CfOptions;
use crate::{ErrorKind, Result};
use std::collections::BTreeMap;
use std::sync::Arc;

impl DbInner {
    /// Makes an edit durable and gives the state that it leads to. Where it is unknown whether it
    /// is durable, all writing stops: a write that is acknowledged from then on could be to a
    /// family that the next opening does not find.
    pub(crate) fn append_edit(
        &self,
        manifest: &mut Manifest,
        changes: Vec<Change>,
    ) -> Result<Arc<ManifestState>> {
        self.tree.append(manifest, changes).inspect_err(|error| {
            if error.kind() == ErrorKind::Poisoned {
                self.lifecycle.poison(error);
            }
        })
    }

    /// Makes new names in the directory durable. After a failure it is unknown which are, log
    /// segments among them: writing stops.
    pub(crate) fn sync_names(&self) -> Result<()> {
        let synced = self.world.files.sync_directory(&self.path);
        synced.inspect_err(|error| self.lifecycle.poison(error))
    }
}

impl Family {
    /// Takes the version of `state`, and the flushed memtables out of the view.
    pub(crate) fn take_version(&self, state: &ManifestState, flushed: &[Arc<Memory>]) {
        let Some(stored) = state.families.get(&self.id) else { return };
        let is_flushed = |memory: &Arc<Memory>| flushed.iter().any(|f| Arc::ptr_eq(f, memory));
        if planted!(MemtableLeavesEarly) {
            self.replace_view(|view| {
                let mut next = copy_of(view);
                next.immutable.retain(|memory| !is_flushed(memory));
                next
            });
            crate::planted::let_others_in();
        }
        self.replace_view(|view| {
            let mut next = copy_of(view);
            next.immutable.retain(|memory| !is_flushed(memory));
            next.version = Arc::clone(&stored.version);
            next
        });
    }

    /// How large the levels of a version of this family are to be.
    pub(crate) fn level_targets(&self, version: &Version) -> LevelTargets {
        LevelTargets::new(version, &tree_shape(&self.options()))
    }
}

/// The shape of the tree that a family's options ask for.
pub(crate) fn tree_shape(options: &CfOptions) -> TreeShape {
    TreeShape {
        base_level_bytes_max: options.base_level_bytes_max,
        fanout: u64::from(options.fanout),
        level0_trigger: LEVEL0_TRIGGER,
    }
}

/// Hands the open files of new tables to the state that knows them now.
pub(crate) fn adopt_readers(state: &ManifestState, tables: Vec<(ColumnFamilyId, NewTable)>) {
    let mut readers: BTreeMap<FileNumber, _> =
        tables.into_iter().map(|(_, table)| (table.metadata.number, table.reader)).collect();
    for family in state.families.values() {
        for (_, table) in family.version.tables() {
            if let Some(reader) = readers.remove(&table.metadata.number) {
                table.set_reader(reader);
            }
        }
        if readers.is_empty() {
            return;
        }
    }
}
