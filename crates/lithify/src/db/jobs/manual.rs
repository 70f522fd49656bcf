//! Compactions by hand: a range, level by level, with automatic ones of the family out of the way.

use crate::base::{FileNumber, Level, key_behind};
use crate::compaction::picker::{BusySet, Compaction, ManualPick};
use crate::db::inner::{DbInner, lock};
use crate::db::jobs::compacting::check_pick;
use crate::db::jobs::refusal::Work;
use crate::db::tree::family::Family;
use crate::manifest::{KeyRange, TableFile, Version};
use crate::{Error, Result};
use std::sync::Arc;

impl DbInner {
    /// Compacts a range level by level down to the last one, which is rewritten in place.
    pub(crate) fn compact_range(
        self: &Arc<Self>,
        family: &Arc<Family>,
        start: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Result<()> {
        if let (Some(start), Some(end)) = (start, end)
            && start > end
        {
            return Err(Error::invalid("the range to compact ends before it starts"));
        }
        self.compact_by_hand(family, Level::MAX, start, end)
    }

    /// Merges what level 0 holds into the base level.
    pub(crate) fn compact_level0(self: &Arc<Self>, family: &Arc<Family>) -> Result<()> {
        self.compact_by_hand(family, 1, None, None)
    }

    /// Flushes, then compacts the keys of a range out of the first `levels` levels.
    fn compact_by_hand(
        self: &Arc<Self>,
        family: &Arc<Family>,
        levels: Level,
        start: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Result<()> {
        self.flush_family(family)?;
        let claimed = |inner: &DbInner| inner.jobs.state().manual.insert(family.id);
        self.jobs
            .wait_for_change(None, || self.lifecycle.check_writable().is_err() || claimed(self));
        let result = self.compact_levels(family, levels, start, end);
        self.jobs.state().manual.remove(&family.id);
        self.jobs.notify();
        // What this call itself held while the compactions ended.
        self.collect_garbage();
        self.schedule_all_compactions();
        result
    }

    fn compact_levels(
        self: &Arc<Self>,
        family: &Arc<Family>,
        levels: Level,
        start: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Result<()> {
        let level_count = family.view().version.level_count();
        let began = self.workshop.file_numbers.next();
        for level in 0..level_count.min(levels) {
            // What comes meanwhile is left to automatic compactions, or steady writes would keep this one
            // from its end. The last level keeps what this call itself wrote.
            let is_last = level + 1 == level_count;
            let limit = if is_last { began } else { self.workshop.file_numbers.next() };
            let mut from = start.map(<[u8]>::to_vec);
            loop {
                self.lifecycle.check_writable()?;
                family.check_alive()?;
                let view = family.view_full();
                let found = range_of(&view.version, (level, limit), from.as_deref(), end);
                let Some(range) = found else { break };
                let seen = self.jobs.changed.generation();
                match self.begin_manual(family, level, &range)? {
                    ManualPick::Nothing => break,
                    ManualPick::Busy => self.wait_for_change(family, seen),
                    ManualPick::Compact(compaction) => {
                        let done = compaction.range.largest.to_vec();
                        self.run_and_wait(family, compaction)?;
                        if is_last {
                            // Behind what was just rewritten in place.
                            from = Some(key_behind(&done).into_vec());
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn begin_manual(&self, family: &Family, level: Level, range: &KeyRange) -> Result<ManualPick> {
        let mut background = self.jobs.state();
        let busy = background.busy_or_new(family.id);
        busy.wake_all();
        let view = family.view();
        let targets = family.level_targets(&view.version);
        let pick = {
            let cursors = lock(&family.cursors);
            self.picker(family, &view.version, &targets, busy, &cursors, false)
                .pick_manual(level, range)
        };
        if let ManualPick::Compact(compaction) = &pick {
            check_pick(&view.version, compaction)?;
            busy.add(compaction);
            background.compaction_count += 1;
        }
        Ok(pick)
    }

    /// Waits until something has changed since the event was at `seen`, or nothing runs.
    fn wait_for_change(&self, family: &Family, seen: u64) {
        self.jobs.wait_for_change(None, || {
            let background = self.jobs.state();
            let running = background.busy(family.id).map_or(0, BusySet::running);
            self.lifecycle.check_writable().is_err()
                || running == 0
                || self.jobs.changed.generation() != seen
        });
    }

    fn run_and_wait(self: &Arc<Self>, family: &Arc<Family>, compaction: Compaction) -> Result<()> {
        let refusals = self.jobs.refusals();
        let probe = compaction.input_tables().next().map(|(_, table)| Arc::clone(table));
        // What fails at once is noted as what fails later is.
        let _ = self.run_compaction(family, compaction);
        self.jobs.wait_for_change(None, || {
            let background = self.jobs.state();
            let busy = background.busy(family.id);
            let is_running = match (&probe, busy) {
                (Some(table), Some(busy)) => busy.is_running(table),
                _ => false,
            };
            !is_running || self.lifecycle.has_failed()
        });
        self.lifecycle.check_writable()?;
        self.jobs.check_refused(Work::Compaction, std::slice::from_ref(family), refusals)
    }
}

/// The keys from the first to the last table of a level that was there before file number `limit` was given,
/// as far as they lie from `start` to before `end`.
fn range_of(
    version: &Version,
    (level, limit): (Level, FileNumber),
    start: Option<&[u8]>,
    end: Option<&[u8]>,
) -> Option<KeyRange> {
    let is_within = |table: &&Arc<TableFile>| {
        let range = &table.metadata.range;
        start.is_none_or(|start| !range.ends_before(start))
            && end.is_none_or(|end| &range.smallest[..] < end)
    };
    let was_there = |table: &&Arc<TableFile>| table.metadata.number < limit;
    let there = version.level(level).iter().filter(is_within).filter(was_there);
    let mut ranges = there.map(|table| table.metadata.range.clone());
    let first = ranges.next()?;
    let mut range = ranges.fold(first, |all, one| all.union(&one));
    if let Some(start) = start
        && start > &range.smallest[..]
    {
        range.smallest = start.into();
    }
    if let Some(end) = end
        && !range.ends_before(end)
    {
        range.largest = end.into();
        range.largest_exclusive = true;
    }
    (!range.ends_before(&range.smallest)).then_some(range)
}
