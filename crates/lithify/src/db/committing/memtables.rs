//! Memtables full, too many, or too old for the log: they are switched, and flushed.

use crate::db::committing::commit::Writer;
use crate::db::inner::DbInner;
use crate::db::tree::family::Family;
use crate::options::Durability;
use std::sync::Arc;

/// A log over its bound is judged anew whenever it has grown by this part of a segment.
const LOG_JUDGED_PART: u64 = 16;

impl DbInner {
    /// Makes the active memtable of a family immutable, those of all families without a log, and
    /// starts the flush. The caller holds the writer.
    pub(crate) fn switch_memtables(self: &Arc<Self>, writer: &mut Writer, family: &Arc<Family>) {
        if self.options.durability == Durability::None {
            self.tree.switch_all_memtables(writer);
        } else {
            self.tree.switch_memtable(writer, family);
        }
        self.after_switch();
    }

    fn after_switch(self: &Arc<Self>) {
        self.schedule_all_flushes();
        self.update_flow();
        self.workshop.cache.shrink_to_budget();
    }

    /// Flushes early what holds too much memory or too old a log segment. The caller holds the
    /// writer. Where nothing is due, it costs the same with one family and with thousands.
    pub(crate) fn enforce_bounds(self: &Arc<Self>, writer: &mut Writer) {
        let active_bytes = writer.active.total_bytes();
        if active_bytes > self.active_bytes_max(active_bytes)
            && let Some(largest) = writer.active.largest()
            && let Some(family) = self.tree.family(largest)
        {
            self.switch_memtables(writer, &family);
        }
        let log_bytes = writer.wal.bytes();
        if log_bytes <= self.options.wal_bytes_max {
            writer.log_judged_at_bytes = 0;
            return;
        }
        // Also after each release: there may be more to let go.
        let grown_bytes = log_bytes.checked_sub(writer.log_judged_at_bytes);
        let least_bytes = self.commits.segment_bytes() / LOG_JUDGED_PART;
        if grown_bytes.is_none_or(|grown_bytes| grown_bytes >= least_bytes) {
            writer.log_judged_at_bytes = log_bytes;
            self.release_oldest_segment(writer);
        }
    }

    /// Flushes the families whose active memtables keep the oldest log segment: all of them, as they
    /// are looked for rarely.
    fn release_oldest_segment(self: &Arc<Self>, writer: &mut Writer) {
        let families = self.tree.families();
        let Some(oldest) = families.values().map(|family| family.oldest_segment()).min() else {
            return;
        };
        if oldest >= writer.wal.current_number() {
            return;
        }
        let pins = |family: &&Arc<Family>| family.view().active.oldest_segment() == oldest;
        for family in families.values().filter(pins) {
            self.tree.switch_memtable(writer, family);
        }
        self.after_switch();
    }
}
