//! Flushes: what to flush, and making it live.
//!
//! A flush takes all immutable memtables of a family and merges them into one table of level 0; or,
//! if nothing live shares a key with them, into tables of the last level, in its codec: so a load in
//! key order is written once.
//! With no log it takes those of all families, and one edit makes all of it live: a crash then
//! finds every family at the same point in time.

use crate::base::{ColumnFamilyId, FileNumber, Level, SequenceNumber};
use crate::compaction::flow::Drain;
use crate::compaction::picker::Reason;
use crate::compaction::placement::deepest_free_level;
use crate::compaction::scheduler::Urgency;
use crate::compaction::{
    Deeper, ENTRY_OVERHEAD_BYTES, Evidence, Input, JobReceiver, Merge, MergeJob, MergePlan,
    NewTable, OutputPlan, PartOutput, clipped_tombstones, remove_tables,
};
use crate::db::inner::{DbInner, lock};
use crate::db::jobs::background::{FamilyRecord, Gathered, outcome_of, table_options};
use crate::db::jobs::compacting::name_of;
use crate::db::jobs::refusal::{Refusals, Work};
use crate::db::jobs::stall::DrainShare;
use crate::db::tree::family::{Family, Memory, View};
use crate::db::tree::versions::adopt_readers;
use crate::events::TrackedJob;
use crate::manifest::{Change, KeyRange};
use crate::options::Durability;
use crate::stats::{Cause, JobInfo, JobKind, JobOutcome};
use crate::{Error, ErrorKind, Result};
use std::sync::{Arc, Mutex};

/// The memtables of one family that a flush takes.
struct FamilyFlush {
    family: Arc<Family>,
    memories: Vec<Arc<Memory>>,
    /// A level below 0 that is free for these keys, and reserved for them; else level 0.
    place: Option<(Level, KeyRange)>,
}

impl FamilyFlush {
    fn level(&self) -> Level {
        self.place.as_ref().map_or(0, |(level, _)| *level)
    }

    /// What it is told as.
    fn info(&self) -> JobInfo {
        let is_paid_for = self.memories.iter().any(|memory| memory.table.is_paid_for());
        JobInfo {
            reason: if is_paid_for { name_of(Reason::DeadEntries) } else { "" },
            target_level: Some(self.level()),
            tables_in: self.memories.len() as u64,
            bytes_in: self.memories.iter().map(|memory| memory.memory_bytes() as u64).sum(),
            ..JobInfo::planned(JobKind::Flush, &self.family.name)
        }
    }

    /// The keys that the memtables hold or delete.
    fn range(&self) -> Option<KeyRange> {
        let ranges = self.memories.iter().flat_map(|memory| memory.ranges());
        ranges.reduce(|all, one| all.union(&one))
    }

    fn complete_through(&self) -> SequenceNumber {
        self.memories.iter().map(|memory| memory.complete_through()).max().unwrap_or(0)
    }
}

/// Gathers the parts of a flush, one per family, and installs them by one edit.
struct FlushReceiver {
    inner: Arc<DbInner>,
    flushes: Vec<FamilyFlush>,
    /// One for each of them.
    tracked: Vec<TrackedJob>,
    gathered: Mutex<Gathered>,
    drain: DrainShare,
    /// What a part failed at.
    refusal: Mutex<Option<Error>>,
}

impl FlushReceiver {
    fn level_of(&self, family: ColumnFamilyId) -> Level {
        let flush = self.flushes.iter().find(|flush| flush.family.id == family);
        flush.map_or(0, FamilyFlush::level)
    }

    /// Ends the flush after its last part.
    fn finish(&self) -> Result<()> {
        let (tables, records) = lock(&self.gathered).take();
        let is_failed = lock(&self.gathered).is_failed;
        let numbers: Vec<_> = tables.iter().map(|(_, table)| table.metadata.number).collect();
        let families: Vec<_> = tables.iter().map(|(family, _)| *family).collect();
        if planted!(EndToldEarly) {
            self.tell_end(&families, &records, &outcome_of(is_failed, None));
        }
        let result = if is_failed { Ok(()) } else { self.inner.install_flush(self, tables) };
        let failure = lock(&self.refusal).take().or(result.as_ref().err().cloned());
        let outcome = outcome_of(is_failed, failure.as_ref());
        let refusal = failure.filter(|error| self.inner.is_refusal(error));
        if let Err(error) = &result
            && error.kind() == ErrorKind::Poisoned
        {
            // The edit may be durable, and then names the tables: opening tells.
        } else if is_failed || result.is_err() {
            remove_tables(&self.inner.workshop, numbers.into_iter());
        } else {
            // What skips level 0 makes no debt there, so it says nothing about that.
            let at_level0 = self.flushes.iter().filter(|flush| flush.place.is_none());
            let memories = at_level0.flat_map(|flush| &flush.memories);
            let memory_bytes: usize = memories.map(|memory| memory.memory_bytes()).sum();
            let level0 = records.iter().map(|(_, record)| record);
            let level0: Vec<_> = level0.filter(|record| record.target_level == 0).collect();
            if !level0.is_empty() {
                self.inner.jobs.flow.note_flush(memory_bytes as u64, &level0);
            }
            for flush in &self.flushes {
                for (_, record) in records.iter().filter(|(id, _)| *id == flush.family.id) {
                    self.inner.ledger.book_job(&flush.family.ledger, record);
                }
            }
        }
        if !planted!(EndToldEarly) {
            self.tell_end(&families, &records, &outcome);
        }
        {
            let mut background = self.inner.jobs.state();
            for flush in &self.flushes {
                let id = flush.family.id;
                background.flushing.remove(&id);
                if let Some((level, range)) = &flush.place
                    && let Some(busy) = background.busy_mut(id)
                {
                    busy.release(*level, range);
                }
            }
            // At once: whoever learns of a refusal must find that the families can be flushed again,
            // and whoever came while they could not must learn of it.
            if let Some(error) = refusal {
                let families = self.flushes.iter().map(|flush| flush.family.id);
                background.refusals.note(Work::Flush, families, &error);
            }
        }
        self.drain.end();
        self.inner.jobs.notify();
        if !is_failed && result.is_ok() {
            self.inner.collect_garbage();
            self.inner.schedule_all_flushes();
            self.inner.review_formats();
            self.inner.schedule_all_compactions();
        }
        self.inner.tell_if_free();
        self.inner.tell_failure();
        result
    }

    /// Tells of the end, family by family. `families` has that of each table.
    fn tell_end(
        &self,
        families: &[ColumnFamilyId],
        records: &[FamilyRecord],
        outcome: &JobOutcome,
    ) {
        for (flush, tracked) in self.flushes.iter().zip(&self.tracked) {
            let id = flush.family.id;
            let tables = families.iter().filter(|family| **family == id).count() as u64;
            let own = records.iter().filter(|(family, _)| *family == id).map(|(_, record)| record);
            tracked.end(&self.inner.events, tables, own, outcome.clone());
        }
    }
}

/// The part of a flush that one family is.
struct FlushPart {
    whole: Arc<FlushReceiver>,
    family: ColumnFamilyId,
}

impl JobReceiver for FlushPart {
    fn part_begins(&self) {
        let whole = &self.whole;
        let index = whole.flushes.iter().position(|flush| flush.family.id == self.family);
        if let Some(tracked) = index.and_then(|index| whole.tracked.get(index)) {
            tracked.begin(&whole.inner.events);
        }
    }

    fn part_progressed(&self, bytes: u64) {
        self.whole.drain.progressed(bytes);
    }

    fn part_done(&self, output: PartOutput) -> Result<()> {
        let level = self.whole.level_of(self.family);
        let is_last = lock(&self.whole.gathered).add(self.family, level, output);
        if is_last { self.whole.finish() } else { Ok(()) }
    }

    fn part_failed(&self, error: Option<Error>) {
        if let Some(error) = error {
            lock(&self.whole.refusal).get_or_insert(error);
        }
        if lock(&self.whole.gathered).fail() {
            // A failed flush installs nothing, so there is nothing to fail at.
            let _ = self.whole.finish();
        }
    }
}

impl DbInner {
    /// Starts a flush for every family that has immutable memtables and none under way.
    pub(crate) fn schedule_all_flushes(self: &Arc<Self>) {
        if self.lifecycle.check_works().is_err() {
            return;
        }
        let mut due = Vec::new();
        {
            let mut background = self.jobs.state();
            let is_atomic = self.flushes_all_at_once();
            if is_atomic && !background.flushing.is_empty() {
                return;
            }
            // Read before the families: what was switched by then is immutable in all of them. A
            // switch under way may have reached some families only, which a flush that has to be
            // atomic must not see.
            let switched_through = self.tree.switched_through();
            for family in self.tree.families().values() {
                let mut memories = family.view().immutable.clone();
                if is_atomic {
                    memories.retain(|memory| memory.complete_through() <= switched_through);
                }
                if !memories.is_empty() && background.flushing.insert(family.id) {
                    due.push(FamilyFlush { family: Arc::clone(family), memories, place: None });
                }
            }
        }
        if due.is_empty() {
            return;
        }
        if self.flushes_all_at_once() {
            self.submit_flush(due);
        } else {
            due.into_iter().for_each(|flush| self.submit_flush(vec![flush]));
        }
    }

    /// Whether one edit makes the memtables of all families live: without a log.
    fn flushes_all_at_once(&self) -> bool {
        if planted!(FamiliesFlushedApart) {
            return false;
        }
        self.options.durability == Durability::None
    }

    fn submit_flush(self: &Arc<Self>, mut flushes: Vec<FamilyFlush>) {
        for flush in &mut flushes {
            flush.place = self.reserve_place(flush);
        }
        let gathered = Mutex::new(Gathered::new(flushes.len()));
        let memories = || flushes.iter().flat_map(|flush| &flush.memories);
        let memory_bytes: usize = memories().map(|memory| memory.memory_bytes()).sum();
        let entry_bytes: u64 = memories()
            .map(|m| m.table.data_bytes() as u64 + m.table.entries() * ENTRY_OVERHEAD_BYTES)
            .sum();
        let drained = vec![(Drain::Flush, memory_bytes as u64)];
        let drain = DrainShare::begin(self, drained, entry_bytes);
        let tracked = flushes.iter().map(|flush| TrackedJob::new(flush.info())).collect();
        let refusal = Mutex::default();
        let inner = Arc::clone(self);
        let whole = Arc::new(FlushReceiver { inner, flushes, tracked, gathered, drain, refusal });
        for flush in &whole.flushes {
            let plan = self.flush_plan(flush);
            let part = FlushPart { whole: Arc::clone(&whole), family: flush.family.id };
            let job = MergeJob::new(Arc::clone(&self.workshop), Arc::new(part), plan);
            self.jobs.submit(Box::new(job));
        }
    }

    /// The last level, if nothing live or about to be shares a key with what is flushed. It stays
    /// so: older memtables of the family are in tables by now, and no compaction may put tables
    /// there before this flush has ended.
    fn reserve_place(&self, flush: &FamilyFlush) -> Option<(Level, KeyRange)> {
        let range = flush.range()?;
        let mut background = self.jobs.state();
        let busy = background.busy_or_new(flush.family.id);
        // Behind the lock: what is no longer busy is in the version.
        let version = Arc::clone(&flush.family.view().version);
        let base_level = flush.family.level_targets(&version).base_level;
        let level = deepest_free_level(&version, base_level, busy, &range);
        if level + 1 < version.level_count() {
            return None;
        }
        busy.reserve(level, &range);
        Some((level, range))
    }

    fn flush_plan(&self, flush: &FamilyFlush) -> MergePlan {
        let level = flush.level();
        let options = flush.family.options();
        let mut inputs = Vec::new();
        let mut tombstones = Vec::new();
        for memory in &flush.memories {
            let mut cursor = memory.table.cursor();
            cursor.seek_to_first();
            inputs.push(Input::Memory(cursor));
            if !planted!(RangeTombstonesLostInFlush) {
                tombstones.extend(memory.tombstones().map(|map| map.to_fragments()));
            }
        }
        let version = Arc::clone(&flush.family.view().version);
        let is_level0 = level == 0;
        let origin = flush.family.origin_of_tables(flush.complete_through());
        let readers = self.visibility.readers(&*self.world.environment);
        // A flush has to succeed, so it asks no code of users.
        let retain = flush.family.retain_plan(&readers, None);
        let snapshots = readers.sequences;
        MergePlan {
            name: format!("flush of {}", flush.family.name),
            urgency: Urgency::Flush,
            merge: Merge::new(inputs),
            tombstones: clipped_tombstones(tombstones.iter(), None, None, &snapshots),
            snapshots,
            deeper: match is_level0 {
                true => Deeper::Unknown,
                false => Deeper::levels(version, level + 1),
            },
            operator: flush.family.rows.operator(),
            retain,
            ledger: Arc::clone(&flush.family.ledger),
            output: OutputPlan {
                cause: Cause::Flush,
                place: flush.family.place(level),
                formats: flush.family.formats(),
                evidence: Evidence::default(),
                table: table_options(&options, level, Some(origin)),
                table_bytes: if is_level0 { u64::MAX } else { options.table_bytes },
                boundaries: Vec::new(),
            },
        }
    }

    /// Makes flushed tables live and their memtables history.
    fn install_flush(
        self: &Arc<Self>,
        flush: &FlushReceiver,
        tables: Vec<(ColumnFamilyId, NewTable)>,
    ) -> Result<()> {
        if !planted!(LogUnsyncedBeforeTable) {
            self.sync_log_beside_appends()?;
        }
        // Read before the memtables are looked at: a write that comes later is in this segment or
        // a later one.
        let wal_number = self.commits.newest_segment();
        let mut manifest = self.tree.manifest();
        let families = self.tree.families();
        let (tables, of_dropped): (Vec<_>, Vec<_>) =
            tables.into_iter().partition(|(family, _)| families.contains_key(family));
        let numbers = of_dropped.iter().map(|(_, table)| table.metadata.number);
        remove_tables(&self.workshop, numbers);
        let mut changes = Vec::new();
        for (family, table) in &tables {
            let (level, metadata) = (flush.level_of(*family), table.metadata.clone());
            changes.push(Change::AddFile { family: *family, level, metadata });
        }
        let mut last_sequence = manifest.state().last_sequence;
        for part in &flush.flushes {
            last_sequence = last_sequence.max(part.complete_through());
        }
        changes.push(Change::LastSequence(last_sequence));
        for (id, family) in families.iter() {
            let part = flush.flushes.iter().find(|part| part.family.id == *id);
            let state = manifest.state().families.get(id);
            let before = state.map_or((0, 0), |f| (f.flushed_through, f.log_number));
            let taken = part.map_or(&[][..], |part| &part.memories);
            let log_number = oldest_segment_without(&family.view(), taken).min(wal_number);
            let mut sequence = part.map_or(0, FamilyFlush::complete_through).max(before.0);
            if planted!(FlushClaimsAllFamilies) && part.is_none() {
                sequence = last_sequence.max(before.0);
            }
            let log_number = log_number.max(before.1);
            if (sequence, log_number) != before {
                changes.push(Change::FlushedThrough { family: *id, sequence, log_number });
            }
        }
        if !planted!(TableNameUnsynced) {
            self.sync_names()?;
        }
        let state = self.append_edit(&mut manifest, changes)?;
        adopt_readers(&state, tables);
        for part in &flush.flushes {
            part.family.take_version(&state, &part.memories);
        }
        drop(manifest);
        self.release_segments(state.oldest_log_needed());
        // Nothing of the log may be needed any more.
        self.watch_log();
        Ok(())
    }

    /// Switches and flushes the memtable of one family, without a log those of all, and waits until
    /// they are in tables. Everything committed before is durable then.
    pub(crate) fn flush_family(self: &Arc<Self>, family: &Arc<Family>) -> Result<()> {
        if self.options.durability == Durability::None {
            family.check_alive()?;
            return self.flush_all();
        }
        // In a child of a fork locks may be held for ever.
        self.lifecycle.check_writable()?;
        let refusals = self.jobs.refusals();
        {
            let mut writer = self.commits.writer();
            self.lifecycle.check_writable()?;
            family.check_alive()?;
            self.switch_memtables(&mut writer, family);
        }
        self.wait_for_flush(std::slice::from_ref(family), refusals)?;
        self.sync_what_was_not_flushed()
    }

    /// Switches and flushes all memtables and waits until they are in tables.
    pub(crate) fn flush_all(self: &Arc<Self>) -> Result<()> {
        self.lifecycle.check_writable()?;
        let refusals = self.jobs.refusals();
        let families: Vec<_> = {
            let mut writer = self.commits.writer();
            self.lifecycle.check_writable()?;
            self.tree.switch_all_memtables(&mut writer);
            self.tree.all_families()
        };
        self.schedule_all_flushes();
        self.wait_for_flush(&families, refusals)?;
        self.sync_what_was_not_flushed()
    }

    /// Makes durable what was committed before a flush that found nothing to write, or whose tables
    /// another one had begun: other families, and writes of this one that came meanwhile.
    fn sync_what_was_not_flushed(&self) -> Result<()> {
        if planted!(EmptyFlushSyncsNothing) {
            return Ok(());
        }
        match self.options.durability {
            Durability::None => Ok(()),
            _ => self.sync_log_beside_appends(),
        }
    }

    /// Makes everything committed so far durable.
    pub(crate) fn make_all_durable(self: &Arc<Self>) -> Result<()> {
        match self.options.durability {
            Durability::None => self.flush_all(),
            _ => {
                self.lifecycle.check_writable()?;
                self.sync_log_beside_appends()
            }
        }
    }

    pub(crate) fn wait_for_flush(
        &self,
        families: &[Arc<Family>],
        refusals: Refusals,
    ) -> Result<()> {
        self.wait_until_flushed(families, refusals, || self.lifecycle.check_writable())
    }

    /// Waits until everything visible now of these families is in tables, or `check` fails, or
    /// a flush of one of them was refused since `refusals`.
    pub(crate) fn wait_until_flushed(
        &self,
        families: &[Arc<Family>],
        refusals: Refusals,
        check: impl Fn() -> Result<()>,
    ) -> Result<()> {
        let target = self.visibility.last();
        let waits_for = |family: &Arc<Family>| {
            let view = family.view();
            !family.is_dropped()
                && view.immutable.iter().any(|memory| {
                    memory.table.first_sequence().is_some_and(|first| first <= target)
                })
        };
        self.jobs.wait_for_change(None, || {
            check().is_err()
                || !families.iter().any(waits_for)
                || self.jobs.is_refused(Work::Flush, families, refusals)
        });
        check()?;
        match families.iter().any(waits_for) {
            true => self.jobs.check_refused(Work::Flush, families, refusals),
            false => Ok(()),
        }
    }
}

/// The oldest log segment that a family needs apart from the memtables `taken`.
fn oldest_segment_without(view: &View, taken: &[Arc<Memory>]) -> FileNumber {
    let is_taken = |memory: &Arc<Memory>| taken.iter().any(|t| Arc::ptr_eq(t, memory));
    view.memories()
        .filter(|memory| !is_taken(memory))
        .map(|memory| memory.oldest_segment())
        .min()
        .unwrap_or(FileNumber::MAX)
}
