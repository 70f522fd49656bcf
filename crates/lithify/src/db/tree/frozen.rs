//! One moment of the database, held still for a copy while writing goes on.
//!
//! 1. With the writer and the manifest held, so that no commit and no edit is under way, the state
//!    of the manifest is taken, and the log is pinned with its length. No file is touched
//!    meanwhile: a writer waits for a list to be made. A manifest that is being synced is waited
//!    for without the writer.
//! 2. While it is held, tables of the state are not removed, because their versions live, and log
//!    segments are neither removed nor recycled.
//!
//! A reader beside a writer holds one moment as long as it is open. Its registration keeps the tables
//! and the log segments of its state from being removed or recycled, and what it has read of the log
//! does not change: the writer appends behind it.
//!
//! A close ends all of that. A copy is over by then: [`DbInner::begin_copy`].
//!
//! State and log together are what recovery would make of the database if the process ended at that
//! moment: every commit up to [`Frozen::sequence`], and nothing else. Without a log (durability
//! none) it is what the last flush or ingest made durable.

use crate::base::SequenceNumber;
use crate::db::committing::commit::Writer;
use crate::db::committing::wal_set::PinnedLog;
use crate::db::inner::DbInner;
use crate::db::lifecycle::long_call::LongCall;
use crate::manifest::{CleanClose, Manifest, ManifestState, TableFile};
use crate::options::Durability;
use crate::{Error, ErrorKind, Result};
use std::collections::BTreeMap;
use std::sync::{Arc, TryLockError};

/// So often the manifest is waited for without the writer.
const TRIES: u32 = 16;

/// See the module.
pub(crate) struct Frozen {
    inner: Arc<DbInner>,
    /// As it was, with the counters of a database that begins with it.
    pub(crate) state: ManifestState,
    /// All commits up to here are in it.
    pub(crate) sequence: SequenceNumber,
    /// The newest flush of a column family reaches so far; without a log all of it is in tables.
    pub(crate) flushed_through: SequenceNumber,
    /// How long writers were held up, in microseconds.
    pub(crate) writers_held_us: u64,
    /// The log, if something in it is not in tables.
    log: Option<PinnedLog>,
}

impl DbInner {
    /// Makes sure that a copy can be made. Behind a close the next opening may use the log segments
    /// again, and a reader's registration is given up: a copy ends before.
    pub(crate) fn begin_copy(&self) -> Result<LongCall<'_>> {
        let call = self.lifecycle.enter_for_long()?;
        if !self.lifecycle.is_read_only() {
            self.lifecycle.check_usable()?;
        } else if !self.lifecycle.holds_files() {
            let what = "a reader that could not register in READERS cannot copy: a writer may take \
                        its files away";
            return Err(Error::new(ErrorKind::ReadOnly, what).in_file(&self.path));
        }
        Ok(call)
    }

    /// Holds the present. [`DbInner::begin_copy`] comes first.
    pub(crate) fn freeze(self: &Arc<Self>) -> Result<Frozen> {
        if !self.lifecycle.is_read_only() {
            self.lifecycle.check_writable()?;
        }
        for _ in 0..TRIES {
            let mut writer = self.commits.writer();
            match self.tree.manifest.try_lock() {
                Ok(manifest) => return Ok(self.freeze_held(&mut writer, &manifest)),
                Err(TryLockError::Poisoned(held)) => {
                    return Ok(self.freeze_held(&mut writer, &held.into_inner()));
                }
                Err(TryLockError::WouldBlock) => {}
            }
            drop(writer);
            drop(self.tree.manifest());
        }
        let mut writer = self.commits.writer();
        let manifest = self.tree.manifest();
        Ok(self.freeze_held(&mut writer, &manifest))
    }

    fn freeze_held(self: &Arc<Self>, writer: &mut Writer, manifest: &Manifest) -> Frozen {
        let clock = &*self.world.environment;
        let began_us = clock.now_us();
        let mut state = (**manifest.state()).clone();
        // The options of a reader do not say how its writer writes; it has read what log there is.
        let is_reader = self.lifecycle.is_read_only();
        let has_log = is_reader || self.options.durability != Durability::None;
        let sequence = if has_log { writer.last_sequence } else { state.last_sequence };
        let log = (has_log && self.tree.has_writes_in_memory())
            .then(|| writer.wal.pin(state.oldest_log_needed()));
        // A reader knows the numbers of the manifest; segments may have later ones.
        let segments = log.iter().flat_map(|log| &log.segments);
        let behind_log = segments.map(|(number, _)| number + 1).max().unwrap_or(0);
        state.next_file_number =
            self.workshop.file_numbers.next().max(state.next_file_number).max(behind_log);
        state.last_sequence = state.last_sequence.max(sequence);
        let end = log.as_ref().and_then(|log| log.end);
        state.clean_close = end.map(|log_end| CleanClose { log_end, last_sequence: sequence });
        if log.is_none() {
            // Nothing of the log is needed, and nothing of it will be there.
            for family in state.families.values_mut() {
                family.log_number = state.next_file_number;
            }
        }
        let flushed = state.families.values().map(|family| family.flushed_through);
        let flushed_through = if log.is_some() { flushed.max().unwrap_or(0) } else { sequence };
        let writers_held_us = clock.now_us().saturating_sub(began_us);
        let inner = Arc::clone(self);
        Frozen { inner, state, sequence, flushed_through, writers_held_us, log }
    }
}

impl Frozen {
    /// The database that it is of.
    pub(crate) fn database(&self) -> &Arc<DbInner> {
        &self.inner
    }

    /// The log segments to be copied, with the bytes to be copied of each, ascending.
    pub(crate) fn segments(&self) -> &[(u64, u64)] {
        self.log.as_ref().map_or(&[], |log| &log.segments)
    }

    /// The live tables by number.
    pub(crate) fn tables(&self) -> BTreeMap<u64, Arc<TableFile>> {
        let families = self.state.families.values();
        let tables = families.flat_map(|family| family.version.tables());
        tables.map(|(_, table)| (table.metadata.number, Arc::clone(table))).collect()
    }

    /// Lets go of the log, once it is copied.
    pub(crate) fn release_log(&mut self) {
        if let Some(log) = self.log.take() {
            self.inner.commits.writer().wal.unpin(&log);
            let oldest_needed = self.inner.tree.oldest_log_needed();
            self.inner.release_segments(oldest_needed);
        }
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        self.release_log();
        // The last holder of tables that were compacted away meanwhile may be this one.
        self.state.families.clear();
        self.inner.collect_garbage();
    }
}
