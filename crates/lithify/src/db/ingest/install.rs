//! Making ingested tables live.
//!
//! 1. Memtables that hold, or delete by range, a key of the tables are flushed: what is newer lies
//!    above what is older. Without a log every memtable is, because a crash must not keep the
//!    tables and lose what was committed before them.
//! 2. With the writer held, so that no commit is under way, the log is synced, the tables get the
//!    next sequence number and their levels, and one edit of the manifest makes them live.
//! 3. Views are replaced before the sequence number becomes visible: a snapshot sees the rows from
//!    then on, all of them, for ever.
//!
//! A crash before the edit is durable leaves files that no manifest names; opening removes them.
//! Writers that go on filling memtables in the range are held back after the first attempt, so that
//! an ingest cannot starve.

use crate::base::{Level, SequenceNumber};
use crate::compaction::placement::deepest_free_level;
use crate::compaction::{NewTable, remove_tables};
use crate::db::committing::commit::{Writer, sequence_behind};
use crate::db::inner::DbInner;
use crate::db::tree::family::Family;
use crate::db::tree::versions::adopt_readers;
use crate::manifest::{Change, KeyRange};
use crate::options::Durability;
use crate::{ErrorKind, Result};
use std::sync::Arc;

/// Holds writers back while it lives.
struct IngestGate<'a>(&'a DbInner);

impl<'a> IngestGate<'a> {
    fn close(inner: &'a DbInner) -> Self {
        inner.commits.close_gate();
        IngestGate(inner)
    }
}

impl Drop for IngestGate<'_> {
    fn drop(&mut self) {
        self.0.commits.open_gate();
        self.0.jobs.notify();
    }
}

/// Levels that are reserved for the tables of an ingest until they are live.
struct Places<'a> {
    inner: &'a DbInner,
    family: &'a Family,
    places: Vec<(Level, KeyRange)>,
}

impl Drop for Places<'_> {
    fn drop(&mut self) {
        if let Some(busy) = self.inner.jobs.state().busy_mut(self.family.id) {
            for (level, range) in self.places.iter().filter(|(level, _)| *level > 0) {
                busy.release(*level, range);
            }
        }
        self.inner.jobs.notify();
    }
}

impl DbInner {
    /// Waits while an ingest waits for memtables to be flushed. The caller holds no lock.
    pub(crate) fn pass_ingest_gate(&self) {
        let is_open = || self.commits.gate_is_open();
        if !is_open() {
            self.jobs.wait_for_change(None, || is_open() || self.lifecycle.has_failed());
        }
    }

    /// Makes tables live that are written and synced and share no key; gives their sequence number
    /// and their levels. Their files are this call's: after an error they are gone, unless it is
    /// unknown whether the manifest names them.
    pub(crate) fn install_ingest(
        self: &Arc<Self>,
        family: &Arc<Family>,
        tables: Vec<NewTable>,
    ) -> Result<(SequenceNumber, Vec<Level>)> {
        let numbers: Vec<_> = tables.iter().map(|table| table.metadata.number).collect();
        let installed = self.install_when_flushed(family, tables);
        match &installed {
            Ok(_) => {
                self.update_flow();
                self.jobs.notify();
                self.schedule_all_compactions();
            }
            Err(error) if error.kind() == ErrorKind::Poisoned => self.tell_failure(),
            Err(_) => remove_tables(&self.workshop, numbers.into_iter()),
        }
        installed
    }

    fn install_when_flushed(
        self: &Arc<Self>,
        family: &Arc<Family>,
        tables: Vec<NewTable>,
    ) -> Result<(SequenceNumber, Vec<Level>)> {
        self.lifecycle.check_writable()?;
        self.sync_names()?;
        let mut gate = None;
        loop {
            self.lifecycle.check_writable()?;
            family.check_alive()?;
            // Most of it before the writer is held.
            self.sync_log_beside_appends()?;
            let refusals = self.jobs.refusals();
            if planted!(IngestIntoClosing) {
                crate::planted::let_a_close_in();
            }
            {
                let mut writer = self.commits.writer();
                if !self.has_older_in_memory(family, &tables) {
                    return self.make_live(&mut writer, family, tables);
                }
                self.switch_memtables(&mut writer, family);
            }
            let families: Vec<_> = match self.options.durability {
                Durability::None => self.tree.all_families(),
                _ => vec![Arc::clone(family)],
            };
            self.wait_for_flush(&families, refusals)?;
            gate.get_or_insert_with(|| IngestGate::close(self));
        }
    }

    /// Whether a memtable has to be flushed before the tables may go live.
    fn has_older_in_memory(&self, family: &Family, tables: &[NewTable]) -> bool {
        if self.options.durability == Durability::None {
            let families = self.tree.families();
            return families.values().any(|family| {
                let view = family.view();
                !view.active.table.is_empty() || !view.immutable.is_empty()
            });
        }
        if planted!(IngestUnderMemtable) {
            return false;
        }
        let view = family.view();
        view.memories()
            .any(|memory| tables.iter().any(|table| memory.touches(&table.metadata.range)))
    }

    fn make_live(
        self: &Arc<Self>,
        writer: &mut Writer,
        family: &Arc<Family>,
        mut tables: Vec<NewTable>,
    ) -> Result<(SequenceNumber, Vec<Level>)> {
        // With the writer held: a close that has begun has seen all there was.
        if !planted!(IngestIntoClosing) {
            self.lifecycle.check_writable()?;
        }
        self.sync_log(writer)?;
        let mut manifest = self.tree.manifest();
        family.check_alive()?;
        let sequence = sequence_behind(writer.last_sequence, 1)?;
        let reserved = self.reserve_places(family, &tables);
        let levels: Vec<Level> = reserved.places.iter().map(|(level, _)| *level).collect();
        describe(family, &mut tables, &levels, sequence);
        let mut changes = vec![Change::LastSequence(sequence)];
        changes.extend(tables.iter().zip(&levels).map(|(table, level)| Change::AddFile {
            family: family.id,
            level: *level,
            metadata: table.metadata.clone(),
        }));
        let state = self.append_edit(&mut manifest, changes)?;
        self.tree.announced().announce(sequence);
        cut_dead_ranges(family, &tables);
        for table in &tables {
            writer.recent.note_table(family.id, &table.metadata.range, sequence);
        }
        writer.recent.trim(sequence, &self.workshop.budget);
        adopt_readers(&state, tables.into_iter().map(|table| (family.id, table)).collect());
        if let Some(stored) = state.families.get(&family.id) {
            family.take_ingest(&stored.version, sequence);
        }
        writer.last_sequence = sequence;
        self.visibility.publish(sequence);
        Ok((sequence, levels))
    }

    /// The level of each table, reserved where it is not 0. The caller holds the manifest, so that
    /// no compaction ends meanwhile.
    fn reserve_places<'a>(&'a self, family: &'a Family, tables: &[NewTable]) -> Places<'a> {
        let mut background = self.jobs.state();
        let busy = background.busy_or_new(family.id);
        let version = Arc::clone(&family.view().version);
        let base_level = family.level_targets(&version).base_level;
        let mut places = Vec::with_capacity(tables.len());
        for table in tables {
            let range = table.metadata.range.clone();
            let level = deepest_free_level(&version, base_level, busy, &range);
            if level > 0 {
                busy.reserve(level, &range);
            }
            places.push((level, range));
        }
        Places { inner: self, family, places }
    }
}

/// The family's ranges without rows end where the tables begin.
fn cut_dead_ranges(family: &Family, tables: &[NewTable]) {
    let mut cuts = family.rows.dead_ranges.is_watched();
    if planted!(IngestLeavesDeadRange) {
        cuts = false;
    }
    if cuts {
        for range in tables.iter().map(|table| &table.metadata.range) {
            family.rows.dead_ranges.cut(&range.smallest, &range.largest);
        }
    }
}

/// Completes what the manifest is to know of the tables.
fn describe(
    family: &Family,
    tables: &mut [NewTable],
    levels: &[Level],
    mut sequence: SequenceNumber,
) {
    if planted!(IngestedTooOld) {
        sequence -= 1;
    }
    let formats = family.formats();
    for (table, level) in tables.iter_mut().zip(levels) {
        let metadata = &mut table.metadata;
        metadata.ingested = true;
        metadata.smallest_sequence = sequence;
        metadata.largest_sequence = sequence;
        metadata.codec_debt = formats.debt(&family.place(*level), metadata).is_some();
    }
}
