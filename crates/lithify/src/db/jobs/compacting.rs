//! Compactions as the database sees them: which to start, and making their outcome live.

use crate::base::Level;
use crate::compaction::flow::Drain;
use crate::compaction::levels::LevelTargets;
use crate::compaction::picker::{
    BusySet, Compaction, CompactionKind, PickOptions, Picker, Reason, SubRange,
};
use crate::compaction::scheduler::Urgency;
use crate::compaction::{
    Deciding, Deeper, Evidence, Input, JobReceiver, Merge, MergeJob, MergePlan, NewTable,
    OutputPlan, PartOutput, TableRun, clipped_tombstones, remove_tables,
};
use crate::db::inner::{DbInner, lock};
use crate::db::jobs::background::{Gathered, outcome_of, table_options};
use crate::db::jobs::refusal::Work;
use crate::db::jobs::stall::DrainShare;
use crate::db::tree::family::Family;
use crate::db::tree::versions::adopt_readers;
use crate::events::TrackedJob;
use crate::manifest::{Change, FileMetadata, Version};
use crate::stats::{Cause, Counter, JobInfo, JobKind, JobOutcome, JobRecord, WorkMeter};
use crate::table::ReadContext;
use crate::{Error, ErrorKind, Result};
use std::sync::{Arc, Mutex};

/// A compaction larger than this is split into key sub-ranges when there are threads for it.
const SPLIT_BYTES_MIN: u64 = 32 << 20;

/// Gathers the parts of a compaction and installs them by one edit.
struct CompactionReceiver {
    inner: Arc<DbInner>,
    family: Arc<Family>,
    compaction: Compaction,
    tracked: TrackedJob,
    gathered: Mutex<Gathered>,
    drain: DrainShare,
    /// What a part failed at.
    refusal: Mutex<Option<Error>>,
    /// Behind the compaction: dropped once its input tables are let go.
    _end: CompactionEnd,
}

/// Removes what a compaction replaced, when nobody reads it any more.
struct CompactionEnd(Arc<DbInner>);

impl CompactionEnd {
    fn new(inner: &Arc<DbInner>) -> Self {
        inner.jobs.state().receivers += 1;
        CompactionEnd(Arc::clone(inner))
    }
}

impl Drop for CompactionEnd {
    fn drop(&mut self) {
        self.0.collect_garbage();
        self.0.jobs.state().receivers -= 1;
        self.0.jobs.notify();
    }
}

impl CompactionReceiver {
    fn finish(&self) -> Result<()> {
        let ((tables, mut records), is_failed) = {
            let mut gathered = lock(&self.gathered);
            (gathered.take(), gathered.is_failed)
        };
        let (_, mut record) = records.pop().unwrap_or_default();
        let numbers: Vec<_> = tables.iter().map(|(_, table)| table.metadata.number).collect();
        let result = if is_failed { Ok(()) } else { self.inner.install_compaction(self, tables) };
        let failure = lock(&self.refusal).take().or(result.as_ref().err().cloned());
        let outcome = outcome_of(is_failed, failure.as_ref());
        let table_count = numbers.len() as u64;
        if let Err(error) = &result
            && error.kind() == ErrorKind::Poisoned
        {
            // The edit may be durable, and then names the tables: opening tells.
        } else if is_failed || result.is_err() {
            remove_tables(&self.inner.workshop, numbers.into_iter());
        } else {
            self.inner.jobs.flow.note_compaction(&record);
            complete_record(&self.compaction, &mut record);
            self.inner.ledger.book_job(&self.family.ledger, &record);
            self.family.ledger.count(counter_of(self.compaction.reason), 1);
        }
        self.tracked.end(&self.inner.events, table_count, [&record], outcome);
        self.inner.compaction_ended(&self.family, &self.compaction, failure.as_ref());
        if !is_failed && result.is_ok() {
            self.inner.jobs.forget_refusals(&self.family, &self.compaction);
        }
        self.drain.end();
        self.inner.jobs.notify();
        if failure.is_none_or(|error| lets_others_run(&error)) {
            self.inner.review_formats();
            self.inner.schedule_all_compactions();
        }
        self.inner.tell_if_free();
        self.inner.tell_failure();
        result
    }
}

impl JobReceiver for CompactionReceiver {
    fn part_begins(&self) {
        self.tracked.begin(&self.inner.events);
    }

    fn part_progressed(&self, bytes: u64) {
        self.drain.progressed(bytes);
    }

    fn part_done(&self, output: PartOutput) -> Result<()> {
        let is_last =
            lock(&self.gathered).add(self.family.id, self.compaction.target_level, output);
        if is_last { self.finish() } else { Ok(()) }
    }

    fn part_failed(&self, error: Option<Error>) {
        if let Some(error) = error {
            if planted!(FailureToldTwice) {
                let outcome = JobOutcome::of_error(&error);
                self.tracked.end(&self.inner.events, 0, [], outcome);
            }
            lock(&self.refusal).get_or_insert(error);
        }
        if lock(&self.gathered).fail() {
            // A failed compaction installs nothing, so there is nothing to fail at.
            let _ = self.finish();
        }
    }
}

impl DbInner {
    /// Starts compactions while some are due and threads are free, the most urgent of all families
    /// first: taken family by family, one that is always due would leave nothing to the others.
    pub(crate) fn schedule_all_compactions(self: &Arc<Self>) {
        loop {
            if self.lifecycle.check_writable().is_err() {
                return;
            }
            let Some((family, compaction)) = self.take_most_urgent() else { return };
            if let Err(error) = self.run_compaction(&family, compaction)
                && !lets_others_run(&error)
            {
                return;
            }
        }
    }

    /// Picks the most urgent compaction that nothing stands in the way of, and counts it as
    /// running.
    fn take_most_urgent(&self) -> Option<(Arc<Family>, Compaction)> {
        let mut background = self.jobs.state();
        if background.compaction_count >= self.options.background_threads.max(1) {
            return None;
        }
        let idle = background.compaction_count == 0 && background.flushing.is_empty();
        let now_us = self.world.environment.now_us();
        let (mut most_urgent, mut wrong): (Option<(Arc<Family>, Compaction)>, _) =
            (None, Vec::new());
        for family in self.tree.families().values() {
            if background.manual.contains(&family.id) || family.is_dropped() {
                continue;
            }
            let busy = background.busy_or_new(family.id);
            busy.wake(now_us);
            let version = Arc::clone(&family.view().version);
            let Some(compaction) = self.pick(family, &version, busy, idle) else { continue };
            if let Err(error) = check_pick(&version, &compaction) {
                busy.rest(&compaction, now_us);
                wrong.push((family.id, error));
                continue;
            }
            if most_urgent.as_ref().is_none_or(|(_, most)| compaction.priority > most.priority) {
                most_urgent = Some((Arc::clone(family), compaction));
            }
        }
        let taken = most_urgent.inspect(|(family, compaction)| {
            background.busy_or_new(family.id).add(compaction);
            background.compaction_count += 1;
        });
        drop(background);
        for (family, error) in wrong {
            if self.is_refusal(&error) {
                self.jobs.state().refusals.note(Work::Compaction, [family], &error);
            }
        }
        taken
    }

    fn pick(
        &self,
        family: &Family,
        version: &Version,
        busy: &BusySet,
        idle: bool,
    ) -> Option<Compaction> {
        let targets = family.level_targets(version);
        let cursors = lock(&family.cursors);
        self.picker(family, version, &targets, busy, &cursors, idle).pick()
    }

    pub(super) fn picker<'a>(
        &self,
        family: &Family,
        version: &'a Version,
        targets: &'a LevelTargets,
        busy: &'a BusySet,
        cursors: &'a crate::compaction::picker::Cursors,
        idle: bool,
    ) -> Picker<'a> {
        let (table_bytes, base_level_bytes_max) = {
            let options = family.options();
            (options.table_bytes, options.base_level_bytes_max)
        };
        let (oldest_snapshot, expiry) = match family.rows.have_write_times() {
            true => {
                let readers = self.visibility.readers(&*self.world.environment);
                let expiry = family.rows.expiry(|| readers.oldest_unix_time_s);
                (readers.sequences.first().copied().unwrap_or(0), expiry)
            }
            false => (self.visibility.oldest(), None),
        };
        let options = PickOptions {
            expiry,
            moves: family.filter().is_none(),
            compaction_bytes_max: table_bytes.saturating_mul(25),
            // All of the base level is rewritten with it: more is cheaper, and takes longer.
            level0_bytes_max: base_level_bytes_max.saturating_mul(2),
            grandparent_bytes_max: table_bytes.saturating_mul(10),
            idle,
            grows: !busy.has_refusals(),
        };
        Picker { version, targets, busy, cursors, oldest_snapshot, options }
    }

    /// Moves the table, or submits the jobs. What fails at once is noted.
    pub(super) fn run_compaction(
        self: &Arc<Self>,
        family: &Arc<Family>,
        compaction: Compaction,
    ) -> Result<()> {
        let tracked = TrackedJob::new(info_of(family, &compaction));
        if compaction.kind != CompactionKind::Merge {
            tracked.begin(&self.events);
            let moved = match compaction.kind {
                CompactionKind::Drop => self.drop_table(family, &compaction),
                _ => self.move_table(family, &compaction),
            };
            let is_move = compaction.kind == CompactionKind::TrivialMove;
            let tables_out = if is_move { compaction.input_tables().count() } else { 0 };
            let outcome = JobOutcome::of_result(&moved);
            tracked.end(&self.events, tables_out as u64, moved.as_ref().ok(), outcome);
            self.compaction_ended(family, &compaction, moved.as_ref().err());
            if moved.is_ok() {
                self.jobs.forget_refusals(family, &compaction);
            }
            self.update_flow();
            self.jobs.notify();
            self.tell_failure();
            return moved.map(drop);
        }
        let parts = match self.options.background_threads {
            threads if threads > 1 && compaction.input_bytes() >= SPLIT_BYTES_MIN => threads,
            _ => 1,
        };
        let ranges = compaction.split(parts);
        let plans: Result<Vec<_>> = ranges
            .into_iter()
            .map(|range| self.compaction_plan(family, &compaction, range))
            .collect();
        let plans = match plans {
            Ok(plans) => plans,
            Err(error) => {
                tracked.begin(&self.events);
                tracked.end(&self.events, 0, [], JobOutcome::of_error(&error));
                self.compaction_ended(family, &compaction, Some(&error));
                self.jobs.notify();
                return Err(error);
            }
        };
        let drain = self.drain_of(&compaction);
        let receiver = Arc::new(CompactionReceiver {
            inner: Arc::clone(self),
            family: Arc::clone(family),
            compaction,
            tracked,
            gathered: Mutex::new(Gathered::new(plans.len())),
            drain,
            refusal: Mutex::default(),
            _end: CompactionEnd::new(self),
        });
        for plan in plans {
            let receiver: Arc<dyn JobReceiver> = receiver.clone();
            let job = MergeJob::new(Arc::clone(&self.workshop), receiver, plan);
            self.jobs.submit(Box::new(job));
        }
        Ok(())
    }

    fn drain_of(self: &Arc<Self>, compaction: &Compaction) -> DrainShare {
        let mut totals = vec![(Drain::Compaction, compaction.input_bytes())];
        let stored = |level: Level| -> u64 {
            let of_level = compaction.input_tables().filter(|(at, _)| *at == level);
            of_level.map(|(_, table)| table.metadata.size_bytes).sum()
        };
        if stored(0) > 0 {
            totals.push((Drain::Level0, stored(0)));
        }
        let entry_bytes = compaction.input_tables().map(|(_, table)| table.metadata.raw_bytes);
        DrainShare::begin(self, totals, entry_bytes.sum())
    }

    fn compaction_plan(
        &self,
        family: &Family,
        compaction: &Compaction,
        range: SubRange,
    ) -> Result<MergePlan> {
        let options = family.options();
        let version = Arc::clone(&family.view().version);
        let target = compaction.target_level;
        let mut inputs = Vec::new();
        let mut tombstones = Vec::new();
        let run = |tables| Input::Tables(TableRun::new(tables, range.clone()));
        let mut meter = WorkMeter::default();
        let mut context =
            ReadContext { meter: Some(&mut meter), ..ReadContext::new(&*self.world.environment) };
        for (level, tables) in &compaction.inputs {
            for table in tables.iter().filter(|table| table.metadata.range_tombstones > 0) {
                tombstones.push(table.reader()?.range_tombstones(&mut context)?);
            }
            if *level == 0 {
                inputs.extend(tables.iter().map(|table| run(vec![Arc::clone(table)])));
                if planted!(RunLeftOut) {
                    inputs.remove(inputs.len() - tables.len());
                }
            } else {
                inputs.push(run(tables.clone()));
            }
        }
        self.ledger.book_codecs(Cause::Compaction, target, &meter, 0.0);
        let mut flushed_through = 0;
        for table in compaction.inputs.iter().flat_map(|(_, tables)| tables) {
            flushed_through = flushed_through.max(table.reader()?.properties().flushed_through);
        }
        let origin = family.origin_of_tables(flushed_through);
        let readers = self.visibility.readers(&*self.world.environment);
        let retain = family.retain_plan(&readers, family.filter());
        let snapshots = readers.sequences;
        let clipped = clipped_tombstones(
            tombstones.iter().map(|run| &**run),
            range.start.as_deref(),
            range.end.as_deref(),
            &snapshots,
        );
        Ok(MergePlan {
            name: format!("compaction of {} into level {target}", family.name),
            urgency: urgency_of(compaction),
            merge: Merge::new(inputs),
            snapshots,
            tombstones: clipped,
            operator: family.rows.operator(),
            retain,
            ledger: Arc::clone(&family.ledger),
            output: OutputPlan {
                cause: Cause::Compaction,
                place: family.place(target),
                formats: family.formats(),
                evidence: Evidence::of_tables(
                    compaction.input_tables().map(|(_, table)| &table.metadata),
                ),
                table: table_options(&options, target, Some(origin)),
                table_bytes: options.table_bytes,
                boundaries: compaction.boundaries.iter().map(|b| b.key.clone()).collect(),
            },
            deeper: Deeper::levels(version, target + 1),
        })
    }

    /// Gives a table to a deeper level as it is; if its codec is not the one asked for there,
    /// that is recorded as debt.
    fn move_table(
        self: &Arc<Self>,
        family: &Arc<Family>,
        compaction: &Compaction,
    ) -> Result<JobRecord> {
        let mut manifest = self.tree.manifest();
        if family.is_dropped() {
            return Ok(JobRecord::default());
        }
        let mut changes = Vec::new();
        let mut moved_bytes = 0;
        let (formats, place) = (family.formats(), family.place(compaction.target_level));
        for (level, table) in compaction.input_tables() {
            moved_bytes += table.metadata.size_bytes;
            changes.push(Change::MoveFile {
                family: family.id,
                number: table.metadata.number,
                from: level,
                to: compaction.target_level,
                codec_debt: formats.debt(&place, &table.metadata).is_some(),
            });
        }
        push_cursor(family, compaction, &mut changes);
        let state = self.append_edit(&mut manifest, changes)?;
        family.take_version(&state, &[]);
        let target_level = compaction.target_level;
        let record = JobRecord { target_level, moved_bytes, ..JobRecord::default() };
        self.ledger.book_job(&family.ledger, &record);
        family.ledger.count(counter_of(compaction.reason), 1);
        Ok(record)
    }

    /// Lets a table go of which nobody sees a row.
    fn drop_table(
        self: &Arc<Self>,
        family: &Arc<Family>,
        compaction: &Compaction,
    ) -> Result<JobRecord> {
        let mut record =
            JobRecord { target_level: compaction.target_level, ..JobRecord::default() };
        let mut manifest = self.tree.manifest();
        if family.is_dropped() {
            return Ok(record);
        }
        let (mut changes, mut rows, mut tables) = (Vec::new(), 0, 0);
        for (level, table) in compaction.input_tables() {
            let metadata = &table.metadata;
            changes.push(Change::RemoveFile { family: family.id, level, number: metadata.number });
            rows += metadata.entries.saturating_sub(metadata.tombstones);
            record.entries_dropped += metadata.entries;
            tables += 1;
        }
        let state = self.append_edit(&mut manifest, changes)?;
        family.take_version(&state, &[]);
        drop(manifest);
        self.jobs.state().hold_garbage();
        family.ledger.count(Counter::ExpiredRows, rows);
        family.ledger.count(Counter::ExpiredTables, tables);
        family.ledger.count(counter_of(compaction.reason), 1);
        Ok(record)
    }

    fn install_compaction(
        self: &Arc<Self>,
        receiver: &CompactionReceiver,
        tables: Vec<(u32, NewTable)>,
    ) -> Result<()> {
        let (family, compaction) = (&receiver.family, &receiver.compaction);
        if !planted!(TableNameUnsynced) {
            self.sync_names()?;
        }
        let mut manifest = self.tree.manifest();
        if family.is_dropped() {
            let numbers = tables.iter().map(|(_, table)| table.metadata.number);
            remove_tables(&self.workshop, numbers);
            return Ok(());
        }
        self.observe_levels(family);
        // The policy may have changed while the tables were written.
        let (formats, place) = (family.formats(), family.place(compaction.target_level));
        let mut changes = Vec::new();
        for (level, table) in compaction.input_tables() {
            let number = table.metadata.number;
            if planted!(InputsRemovedBeforeEdit) {
                remove_tables(&self.workshop, std::iter::once(number));
            }
            changes.push(Change::RemoveFile { family: family.id, level, number });
            if let Some(deciding) = formats.deciding() {
                tell_consumed(deciding, compaction, level, table.metadata.raw_bytes);
            }
        }
        for (_, table) in &tables {
            let codec_debt = formats.debt(&place, &table.metadata).is_some();
            let metadata = FileMetadata { codec_debt, ..table.metadata.clone() };
            let level = compaction.target_level;
            changes.push(Change::AddFile { family: family.id, level, metadata });
        }
        push_cursor(family, compaction, &mut changes);
        let state = self.append_edit(&mut manifest, changes)?;
        adopt_readers(&state, tables);
        family.take_version(&state, &[]);
        self.jobs.state().hold_garbage();
        Ok(())
    }

    /// A compaction runs no more. If it failed its tables rest, unless only space was wanting; all at
    /// once, so that whoever finds it ended finds what became of it.
    fn compaction_ended(&self, family: &Family, compaction: &Compaction, failure: Option<&Error>) {
        let refusal = failure.filter(|error| self.is_refusal(error));
        let now_us = self.world.environment.now_us();
        let mut background = self.jobs.state();
        let busy = background.busy_or_new(family.id);
        busy.remove(compaction);
        if failure.is_some_and(|error| error.kind() != ErrorKind::NoSpace) {
            busy.rest(compaction, now_us);
        }
        if let Some(error) = refusal {
            background.refusals.note(Work::Compaction, [family.id], error);
        }
        background.compaction_count = background.compaction_count.saturating_sub(1);
    }
}

/// What a compaction is told as.
fn info_of(family: &Family, compaction: &Compaction) -> JobInfo {
    let kind = match compaction.kind {
        CompactionKind::TrivialMove => JobKind::Move,
        CompactionKind::Drop => JobKind::Drop,
        CompactionKind::Merge => JobKind::Compaction,
    };
    JobInfo {
        reason: name_of(compaction.reason),
        source_level: Some(compaction.source_level),
        target_level: Some(compaction.target_level),
        tables_in: compaction.input_tables().count() as u64,
        bytes_in: compaction.input_bytes(),
        ..JobInfo::planned(kind, &family.name)
    }
}

/// Refuses a wrong pick before it has done any work. It is checked against the version that it was picked of: a
/// flush that has ended since may have added a run to level 0 that is older than an ingested source and spans its
/// range. They have no key in common, for an ingest waits until what is in memory has none of its own.
pub(super) fn check_pick(version: &Version, compaction: &Compaction) -> Result<()> {
    if planted!(GrownWithoutSources) {
        return Ok(());
    }
    compaction.check(version)
}

/// Tells a policy that decides of a table that a compaction consumes.
///
/// Bytes that are rewritten where they are, for their format, for what is dead among them or because
/// somebody asks, live on: none has gone down, and none came from above.
fn tell_consumed(deciding: &Deciding, compaction: &Compaction, level: Level, raw_bytes: u64) {
    let lives_on = compaction.source_level == compaction.target_level
        || matches!(compaction.reason, Reason::CodecDebt | Reason::Manual);
    match (lives_on, level == compaction.target_level) {
        (true, _) => {}
        (false, true) => deciding.note_merged(level, raw_bytes),
        (false, false) => deciding.note_consumed(level, raw_bytes),
    }
}

/// Moves the place where a level was last compacted on, and has the edit record it.
fn push_cursor(family: &Family, compaction: &Compaction, changes: &mut Vec<Change>) {
    let mut cursors = lock(&family.cursors);
    cursors.advance(compaction);
    if let Some(key) = cursors.key(compaction.source_level) {
        let level = compaction.source_level;
        changes.push(Change::CompactionCursor { family: family.id, level, key: key.into() });
    }
}

/// Completes the record of a compaction by what it read.
fn complete_record(compaction: &Compaction, record: &mut JobRecord) {
    record.target_level = compaction.target_level;
    for (level, table) in compaction.input_tables() {
        if level == compaction.target_level && level != compaction.source_level {
            record.read_target_bytes += table.metadata.size_bytes;
        } else {
            record.read_source_bytes += table.metadata.size_bytes;
        }
    }
}

/// Whether other compactions may run after one that failed so. It is not picked again at once, as its
/// tables rest; but for want of space they don't, and others would want some too.
fn lets_others_run(error: &Error) -> bool {
    error.kind() != ErrorKind::NoSpace
}

/// As the counters' names have it.
pub(super) fn name_of(reason: Reason) -> &'static str {
    let counter = counter_of(reason).name();
    counter.strip_prefix("compactions-").unwrap_or(counter)
}

fn counter_of(reason: Reason) -> Counter {
    match reason {
        Reason::Level0 => Counter::CompactionsLevel0,
        Reason::LevelSize => Counter::CompactionsLevelSize,
        Reason::Manual => Counter::CompactionsManual,
        Reason::Tombstones => Counter::CompactionsTombstones,
        Reason::DeadEntries => Counter::CompactionsDeadEntries,
        Reason::SnapshotRelease => Counter::CompactionsSnapshotRelease,
        Reason::CodecDebt => Counter::CompactionsCodecDebt,
        Reason::Expired => Counter::CompactionsExpired,
    }
}

fn urgency_of(compaction: &Compaction) -> Urgency {
    let score = (compaction.score * 1000.0).clamp(0.0, f64::from(u32::MAX)) as u32;
    match compaction.reason {
        Reason::Level0 => Urgency::Level0(score),
        Reason::LevelSize | Reason::Manual | Reason::Tombstones | Reason::DeadEntries => {
            Urgency::Compaction(score)
        }
        Reason::SnapshotRelease | Reason::CodecDebt | Reason::Expired => Urgency::Idle,
    }
}
