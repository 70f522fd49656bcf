//! What policies that decide by measured costs are told, and what follows when they change their mind.

use crate::base::{ColumnFamilyId, lock};
use crate::compaction::{ReadHeat, TablePlace};
use crate::db::inner::DbInner;
use crate::db::tree::family::Family;
use crate::manifest::Change;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is known of reads is written so often: an engine that is killed loses as much of it.
const HEAT_PERIOD_US: u64 = 10_000_000;

/// Indexes are to take no more than this part of the memory budget. On 32 MB of rows with a budget of
/// 4 MB, blocks of 2 KiB, whose index takes a third of it, halve a lookup's CPU against 16 KiB. Blocks
/// of 1 KiB, whose index takes two thirds, double it.
const INDEX_PART: f64 = 0.5;

impl DbInner {
    /// Tells a family's policy what became of its levels until now. To be called before tables leave
    /// the version: what was read of them counts.
    pub(super) fn observe_levels(&self, family: &Family) {
        let formats = family.formats();
        let Some(deciding) = formats.deciding() else { return };
        let environment = &self.world.environment;
        let now_us = environment.now_us();
        let bytes_read = match (deciding.wants_bytes_read(now_us), self.workshop.direct_reads) {
            (true, false) => environment.bytes_read(),
            _ => None,
        };
        let version = Arc::clone(&family.view().version);
        deciding.observe(&version, now_us, bytes_read);
        if self.workshop.direct_reads {
            deciding.reads_reach_devices();
        }
    }

    /// Has every policy that decides look again at what it observed, at most once a second, and
    /// records which tables owe a rewrite from then on. The caller holds no lock.
    ///
    /// A failure to record is left to whoever writes the manifest next.
    pub(crate) fn review_formats(self: &Arc<Self>) {
        if self.lifecycle.check_writable().is_err() {
            return;
        }
        let now_us = self.world.environment.now_us();
        let families = self.tree.families();
        let mut memory = None;
        for family in families.values() {
            let formats = family.formats();
            let Some(deciding) = formats.deciding() else { continue };
            if !deciding.begin_review(now_us) {
                continue;
            }
            self.observe_levels(family);
            let raw_bytes = *memory.get_or_insert_with(|| raw_bytes(families.values()));
            deciding.note_memory(self.options.memory_budget_bytes as f64 * INDEX_PART, raw_bytes);
            deciding.note_pressure(self.jobs.flow.pressure());
            let version = Arc::clone(&family.view().version);
            deciding.review(&TablePlace::in_use(family.id, &version));
            self.record_debts(family);
        }
        // Behind a close the directory may be another's.
        if let Ok(_call) = self.lifecycle.enter() {
            self.keep_read_heat(HEAT_PERIOD_US);
        }
    }

    /// Writes what was observed of reads beside the tables, if that was so long ago.
    pub(in crate::db) fn keep_read_heat(&self, period_us: u64) {
        let now_us = self.world.environment.now_us();
        let mut kept_us = lock(&self.jobs.heat_kept_us);
        if now_us < kept_us.saturating_add(period_us) {
            return;
        }
        let of_family = |(id, family): (&ColumnFamilyId, &Arc<Family>)| {
            let heat = family.formats().deciding()?.heat();
            (!heat.levels.is_empty()).then_some((*id, heat))
        };
        let heat =
            ReadHeat { families: self.tree.families().iter().filter_map(of_family).collect() };
        if !heat.families.is_empty() {
            heat.write(&*self.world.files, &self.path, self.database_id);
        }
        *kept_us = now_us;
    }

    fn record_debts(self: &Arc<Self>, family: &Arc<Family>) {
        let mut manifest = self.tree.manifest();
        if family.is_dropped() {
            return;
        }
        let changes: Vec<Change> = family.debt_changes(&*family.formats());
        if changes.is_empty() {
            return;
        }
        if let Ok(state) = self.append_edit(&mut manifest, changes) {
            family.take_version(&state, &[]);
        }
    }

    /// Has the workers look at formats and at expired rows from time to time while there is nothing else
    /// to do, if a family's policy decides or its rows expire.
    pub(crate) fn watch_families(&self) {
        let changes = |family: &Arc<Family>| {
            family.formats().deciding().is_some() || family.rows.have_write_times()
        };
        let is_watched = self.tree.families().values().any(changes);
        self.jobs.families_are_watched.store(is_watched, Ordering::Release);
        self.update_ticking();
    }

    /// Whether idle workers have something to look at once a second.
    pub(in crate::db) fn update_ticking(&self) {
        let jobs = &self.jobs;
        let is_watched = |watched: &AtomicBool| watched.load(Ordering::Acquire);
        let ticks = || is_watched(&jobs.families_are_watched) || is_watched(&jobs.log_is_watched);
        loop {
            let wanted = ticks();
            jobs.scheduler.set_ticking(wanted);
            // Another thread may have set it by what was wanted before.
            if ticks() == wanted {
                return;
            }
        }
    }
}

/// Of all tables.
fn raw_bytes<'a>(families: impl Iterator<Item = &'a Arc<Family>>) -> f64 {
    let of_family = |family: &Arc<Family>| -> u64 {
        let version = Arc::clone(&family.view().version);
        version.tables().map(|(_, table)| table.metadata.raw_bytes).sum()
    };
    families.map(of_family).sum::<u64>() as f64
}
