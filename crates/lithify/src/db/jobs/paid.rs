//! Flushes and compactions that scans have paid for by passing dead entries.
//!
//! Readers find out and start the work, which background threads do; a table that is moved or dropped
//! is an edit of the manifest by the reader. Readers do not wait for the writer.

use crate::db::inner::DbInner;
use std::sync::Arc;

impl DbInner {
    /// Scans have paid for a memtable or table to be written anew. The caller holds no lock.
    #[cold]
    pub(in crate::db) fn start_paid_rewrites(self: &Arc<Self>) {
        let Ok(_call) = self.lifecycle.enter() else { return };
        if self.lifecycle.check_writable().is_err() {
            return;
        }
        // Whoever has the writer now asks the memtables that he writes to by himself.
        if let Some(mut writer) = self.commits.try_writer() {
            for family in self.tree.all_families() {
                if family.view().active.table.is_paid_for() {
                    self.switch_memtables(&mut writer, &family);
                }
            }
        }
        self.schedule_all_compactions();
    }
}
