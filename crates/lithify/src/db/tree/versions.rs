//! New versions of a family's tables, and what they bring into its view.

use crate::base::{ColumnFamilyId, FileNumber};
use crate::compaction::NewTable;
use crate::db::inner::DbInner;
use crate::db::tree::family::{Family, Memory, copy_of};
use crate::manifest::ManifestState;
use std::collections::BTreeMap;
use std::sync::Arc;

impl DbInner {
    /// Gives a family the version of `state` and takes the flushed memtables out of its view.
    pub(crate) fn replace_version(
        &self,
        family: &Family,
        state: &ManifestState,
        flushed: &[Arc<Memory>],
    ) {
        let Some(stored) = state.families.get(&family.id) else { return };
        let is_flushed = |memory: &Arc<Memory>| flushed.iter().any(|f| Arc::ptr_eq(f, memory));
        if planted!(MemtableLeavesEarly) {
            family.replace_view(|view| {
                let mut next = copy_of(view);
                next.immutable.retain(|memory| !is_flushed(memory));
                next
            });
            crate::planted::let_others_in();
        }
        family.replace_view(|view| {
            let mut next = copy_of(view);
            next.immutable.retain(|memory| !is_flushed(memory));
            next.version = Arc::clone(&stored.version);
            next
        });
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
