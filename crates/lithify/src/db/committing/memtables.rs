//! Memtables full, too many, or too old for the log: they are switched, and flushed.

use crate::db::committing::commit::Writer;
use crate::db::inner::DbInner;
use crate::db::tree::family::Family;
use crate::options::Durability;
use std::sync::Arc;

/// A log of so many memtables is longer than the families that are written to need it.
const LOG_MEMTABLES: u64 = 2;

/// From then on it is judged anew whenever it has grown by this part of a segment.
const LOG_JUDGED_PART: u64 = 16;

/// Memtables are flushed early for the sake of the log if they hold less than this part of what goes.
const EARLY_FLUSH_PART: u64 = 16;

/// What the flush of a family costs at least: a table, and an edit of the manifest.
const FLUSH_BYTES_MIN: u64 = 64 << 10;

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
        let judged_from_bytes = self.options.memtable_bytes as u64 * LOG_MEMTABLES;
        if log_bytes <= judged_from_bytes.min(self.options.wal_bytes_max) {
            writer.log_judged_at_bytes = 0;
            return;
        }
        // Also after each release: there may be more to let go.
        let grown_bytes = log_bytes.checked_sub(writer.log_judged_at_bytes);
        let least_bytes = self.commits.segment_bytes() / LOG_JUDGED_PART;
        if grown_bytes.is_none_or(|grown_bytes| grown_bytes >= least_bytes) {
            writer.log_judged_at_bytes = log_bytes;
            self.release_oldest_segment(writer, log_bytes > self.options.wal_bytes_max);
        }
    }

    /// Flushes the families whose active memtables keep the oldest log segment: all of them, as they
    /// are looked for rarely. Short of the bound it does so only if they hold little beside the log
    /// that then goes.
    fn release_oldest_segment(self: &Arc<Self>, writer: &mut Writer, at_any_price: bool) {
        let families = self.tree.families();
        let Some(oldest) = families.values().map(|family| family.oldest_segment()).min() else {
            return;
        };
        if oldest >= writer.wal.current_number() {
            return;
        }
        let (mut price_bytes, mut next) = (0, writer.wal.current_number());
        let mut pinning = Vec::new();
        for family in families.values() {
            let view = family.view();
            for memory in view.memories() {
                match memory.oldest_segment() {
                    segment if segment == oldest && Arc::ptr_eq(memory, &view.active) => {
                        price_bytes += (memory.memory_bytes() as u64).max(FLUSH_BYTES_MIN);
                        pinning.push(family);
                    }
                    segment => next = next.min(segment),
                }
            }
        }
        let freed_bytes = writer.wal.bytes_below(next);
        if !at_any_price && price_bytes * EARLY_FLUSH_PART > freed_bytes {
            return;
        }
        for family in &pinning {
            self.tree.switch_memtable(writer, family);
        }
        self.after_switch();
    }
}
