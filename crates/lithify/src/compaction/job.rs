//! A flush or a compaction, or a key sub-range of one, as a job in bounded steps.
//!
//! 1. Merge: entries go from the inputs through the rules into the table at hand. A step handles
//!    about 128 KiB, and ends at once when a read or write is in flight.
//! 2. Close: at a cut, and at the end, the table gets its range tombstones, is written to its
//!    end, synced and opened for reading, one file operation a step.
//! 3. Hand over: the tables go to the [`JobReceiver`], which makes them live by one edit when all
//!    parts of the work have come.
//!
//! After any error the files written so far are removed and the inputs stay live.

use super::folding::{Base, Folded, Folding};
use super::merge::{Merge, MergePoll};
use super::output::{CloseProgress, Copied, NewTable, OutputPlan, TableSink, Workshop};
use super::retaining::{RetainPlan, Retained, Retaining};
use super::rules::{Rules, Verdict};
use super::scheduler::{Ending, Job, Spent, Step, StepContext, Urgency};
use super::survivors::Survivors;
use crate::base::{
    Charge, Clock, Level, MemoryUse, SEQUENCE_MAX, SequenceNumber, Trailer, ValueKind,
};
use crate::manifest::{KeyRange, Version};
use crate::operator::MergeOperator;
use crate::stats::{Cause, Counter, FamilyLedger, WorkMeter};
use crate::table::{FragmentedTombstones, TombstoneFragmenter};
use crate::{Error, Result};
use std::sync::Arc;

/// A merge step ends after so many bytes of entries.
const STEP_BYTES: usize = 128 << 10;

/// Range tombstones of a table take at most about so many bytes: they are read as a whole.
const TOMBSTONE_BYTES_MAX: usize = 16 << 20;

/// A table of any size takes so many.
const TOMBSTONE_BYTES_MIN: usize = 64 << 10;

/// How many bytes of range tombstones a table of that size takes.
fn tombstone_bytes_max(table_bytes: u64) -> usize {
    let half = usize::try_from(table_bytes / 2).unwrap_or(usize::MAX);
    half.clamp(TOMBSTONE_BYTES_MIN, TOMBSTONE_BYTES_MAX)
}

/// What an entry counts beside its key and value when work is measured in bytes.
pub(crate) const ENTRY_OVERHEAD_BYTES: u64 = 16;

/// Tells whether levels below a target may hold a key. Keys are asked in ascending order.
pub(crate) enum Deeper {
    /// Anything may lie below: the target is level 0.
    Unknown,
    /// The levels of a version from `first_level` on.
    Levels {
        /// The version.
        version: Arc<Version>,
        /// The first level to look at.
        first_level: Level,
        /// Per level, the first table that does not end before the last key asked for.
        positions: Vec<usize>,
    },
}

impl Deeper {
    pub(crate) fn levels(version: Arc<Version>, first_level: Level) -> Self {
        let positions = vec![0; version.level_count().saturating_sub(first_level)];
        Deeper::Levels { version, first_level, positions }
    }

    fn nothing_at(&mut self, key: &[u8]) -> bool {
        let Deeper::Levels { version, first_level, positions } = self else { return false };
        for (index, position) in positions.iter_mut().enumerate() {
            let tables = version.level(*first_level + index);
            while tables.get(*position).is_some_and(|t| t.metadata.range.ends_before(key)) {
                *position += 1;
            }
            if tables.get(*position).is_some_and(|t| t.metadata.range.smallest[..] <= *key) {
                return false;
            }
        }
        true
    }

    /// Whether a level below the target may hold a key from `first` to `last`, both included.
    /// `first` is asked like a key.
    fn overlaps(&mut self, first: &[u8], last: &[u8]) -> bool {
        let Deeper::Levels { version, first_level, positions } = self else { return true };
        positions.iter_mut().enumerate().any(|(index, position)| {
            let tables = version.level(*first_level + index);
            while tables.get(*position).is_some_and(|t| t.metadata.range.ends_before(first)) {
                *position += 1;
            }
            tables.get(*position).is_some_and(|t| t.metadata.range.smallest[..] <= *last)
        })
    }

    fn nothing_in(&self, start: &[u8], end: &[u8]) -> bool {
        let Deeper::Levels { version, first_level, .. } = self else { return false };
        if planted!(RangeTombstoneDroppedEarly) {
            return true;
        }
        let deleted = KeyRange { largest_exclusive: true, ..KeyRange::inclusive(start, end) };
        (*first_level..version.level_count()).all(|level| !version.has_overlap(level, &deleted))
    }
}

/// What a part of the work came to.
pub(crate) struct PartOutput {
    pub(crate) tables: Vec<NewTable>,
    pub(crate) entries_in: u64,
    pub(crate) entries_out: u64,
    pub(crate) copied: Copied,
    pub(crate) spent: Spent,
}

/// Takes the parts of a flush or compaction and makes them live together.
pub(crate) trait JobReceiver: Send + Sync {
    /// The first step of a part begins. No lock is held.
    fn part_begins(&self);
    /// A step has handled so many bytes of entries more.
    fn part_progressed(&self, bytes: u64);
    /// A part is done; the last one installs all of them. The part's own files are the
    /// receiver's from here on, also if it fails.
    fn part_done(&self, output: PartOutput) -> Result<()>;
    /// A part failed, or was aborted (`None`); its files are gone.
    fn part_failed(&self, error: Option<Error>);
}

/// What a merge job is to do.
pub(crate) struct MergePlan {
    pub(crate) name: String,
    pub(crate) urgency: Urgency,
    pub(crate) merge: Merge,
    /// The sequence numbers to keep readable, ascending, the newest visible one last.
    pub(crate) snapshots: Vec<SequenceNumber>,
    /// The range tombstones of the inputs, within the sub-range.
    pub(crate) tombstones: FragmentedTombstones,
    pub(crate) deeper: Deeper,
    /// Folds the operands of the family.
    pub(crate) operator: Arc<MergeOperator>,
    /// Which rows go by themselves.
    pub(crate) retain: Option<RetainPlan>,
    pub(crate) output: OutputPlan,
    /// Counts what became of the family's rows.
    pub(crate) ledger: Arc<FamilyLedger>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Merge,
    /// The table at hand is being closed; range tombstones before `upper` (all, if the merge has
    /// ended) go into it and, if they are too many, into tables behind it.
    Close,
    HandOver,
}

/// See the module.
pub(crate) struct MergeJob {
    name: String,
    urgency: Urgency,
    cause: Cause,
    level: Level,
    workshop: Arc<Workshop>,
    phase: Phase,
    merge: Merge,
    rules: Rules,
    folding: Folding,
    /// When the newest operand at hand was written as part of a table, in seconds since 1970.
    operands_written_s: u64,
    retaining: Option<Box<Retaining>>,
    sink: TableSink,
    ledger: Arc<FamilyLedger>,
    tombstones: FragmentedTombstones,
    survivors: Survivors,
    /// Where the table that is being closed ends; `None` for the last one.
    upper: Option<Vec<u8>>,
    deeper: Deeper,
    key: Vec<u8>,
    has_key: bool,
    nothing_deeper: bool,
    entries_in: u64,
    entries_out: u64,
    has_begun: bool,
    is_reported: bool,
    /// The buffers of inputs and output, as of the end of the last step.
    charge: Charge,
    /// Last of the fields, so last to be dropped: whoever hears of its end may count on the job
    /// holding no table any more.
    receiver: Arc<dyn JobReceiver>,
}

impl MergeJob {
    pub(crate) fn new(
        workshop: Arc<Workshop>,
        receiver: Arc<dyn JobReceiver>,
        plan: MergePlan,
    ) -> Self {
        let charge = workshop.budget.charge(MemoryUse::Compaction, 0);
        let rules = Rules::new(plan.snapshots);
        let deeper = plan.deeper;
        let limit_bytes = tombstone_bytes_max(plan.output.table_bytes);
        let survivors =
            Survivors::new(&rules, plan.tombstones.clone(), limit_bytes, |start, end| {
                deeper.nothing_in(start, end)
            });
        let level = plan.output.place.level;
        MergeJob {
            name: plan.name,
            urgency: plan.urgency,
            cause: plan.output.cause,
            level,
            sink: TableSink::new(workshop.clone(), plan.output),
            ledger: plan.ledger,
            workshop,
            phase: Phase::Merge,
            merge: plan.merge,
            rules,
            folding: Folding::new(plan.operator),
            operands_written_s: 0,
            retaining: plan.retain.map(|retain| Box::new(Retaining::new(retain, level))),
            tombstones: plan.tombstones,
            survivors,
            upper: None,
            deeper,
            key: Vec::new(),
            has_key: false,
            nothing_deeper: false,
            entries_in: 0,
            entries_out: 0,
            has_begun: false,
            is_reported: false,
            charge,
            receiver,
        }
    }

    fn advance(&mut self, context: &mut StepContext<'_>) -> Result<Step> {
        if self.sink.study(context.meter) {
            return Ok(Step::Progress);
        }
        match self.phase {
            Phase::Merge => self.merge_some(context),
            Phase::Close => match self.sink.poll_close(context.meter)? {
                CloseProgress::More => Ok(Step::Progress),
                CloseProgress::Waiting(ticket) => Ok(Step::Waiting(ticket)),
                CloseProgress::Closed => self.closed(context),
            },
            Phase::HandOver => self.hand_over(context.spent).map(|()| Step::Done(Ok(()))),
        }
    }

    /// Brings the charge up to what the buffers hold; the cache makes room for what they grew.
    fn recharge(&mut self) {
        let bytes = self.merge.memory_bytes()
            + self.folding.memory_bytes()
            + self.sink.memory_bytes()
            + self.survivors.memory_bytes();
        let grows = bytes > self.charge.bytes();
        self.charge.resize(bytes);
        if grows {
            self.workshop.cache.shrink_to_budget();
        }
    }

    fn merge_some(&mut self, context: &mut StepContext<'_>) -> Result<Step> {
        let workshop = Arc::clone(&self.workshop);
        let clock = &*workshop.world.environment;
        let mut bytes = 0;
        let step = self.merge_bytes(&mut bytes, context, clock);
        self.receiver.part_progressed(bytes as u64);
        step
    }

    /// Merges until a step's worth of entries is through or there is something to wait for.
    fn merge_bytes(
        &mut self,
        bytes: &mut usize,
        context: &mut StepContext<'_>,
        clock: &dyn Clock,
    ) -> Result<Step> {
        while *bytes < STEP_BYTES {
            match self.merge.poll(context.meter, clock)? {
                MergePoll::Waiting(ticket) => return Ok(Step::Waiting(ticket)),
                MergePoll::End => {
                    self.end_key(context.meter)?;
                    self.upper = None;
                    return self.begin_close(context);
                }
                MergePoll::Ready => {}
            }
            let mut is_same_key = self.has_key && self.merge.key() == &self.key[..];
            if planted!(KeyEndsAtEveryEntry) {
                is_same_key = false;
            }
            if !is_same_key {
                self.end_key(context.meter)?;
                let key = self.merge.key();
                if self.sink.should_cut(key) || self.survivors.fill_a_table(key) {
                    self.upper = Some(key.to_vec());
                    return self.begin_close(context);
                }
                if self.may_copy() && self.copy_block(bytes, context, clock)? {
                    if let Some(ticket) = self.sink.poll_write(context.meter)? {
                        return Ok(Step::Waiting(ticket));
                    }
                    continue;
                }
                self.begin_key();
            }
            *bytes += self.place_entry(context.meter)?;
            self.merge.advance(context.meter, clock)?;
            if let Some(ticket) = self.sink.poll_write(context.meter)? {
                return Ok(Step::Waiting(ticket));
            }
        }
        Ok(Step::Progress)
    }

    /// Whether the entry under the merge begins a block that might be copied. Rows that may go have to be
    /// looked at.
    #[inline]
    fn may_copy(&self) -> bool {
        let mut keeps_all = self.retaining.is_none();
        if planted!(CopiedPastFilter) {
            keeps_all = true;
        }
        keeps_all && self.merge.offers_block()
    }

    /// Copies the block that begins under the merge as it is stored, if the rules would keep every
    /// entry of it as it is; false if they might not, or the table does not take it. The key
    /// before has ended, so none of its entries is in the block.
    #[inline(never)]
    fn copy_block(
        &mut self,
        bytes: &mut usize,
        context: &mut StepContext<'_>,
        clock: &dyn Clock,
    ) -> Result<bool> {
        if !self.merge.offered_format().is_some_and(|stored| self.sink.takes_blocks_of(&stored)) {
            return Ok(false);
        }
        let Some(block) = self.merge.block()? else { return Ok(false) };
        let (first, last) = (block.first_key(), block.separator());
        // Where nothing lies deeper, sequence numbers that all readers see are zeroed.
        let keeps_sequences = block.sequences_are_zero()
            || self.deeper.overlaps(first, last)
            || self.rules.stripe(block.smallest_sequence()) > 0;
        let mut is_covered = self.tombstones.overlaps(first, last);
        if planted!(CopiedUnderTombstone) {
            is_covered = false;
        }
        if !keeps_sequences || is_covered || !self.sink.add_block(&block, context.meter)? {
            return Ok(false);
        }
        let entries = block.entry_count();
        self.entries_in += entries;
        self.entries_out += entries;
        *bytes += block.raw_size() + (entries * ENTRY_OVERHEAD_BYTES) as usize;
        self.merge.skip_block(context.meter, clock)?;
        Ok(true)
    }

    fn begin_key(&mut self) {
        self.key.clear();
        self.key.extend_from_slice(self.merge.key());
        self.has_key = true;
        self.nothing_deeper = self.deeper.nothing_at(&self.key);
    }

    /// Ends the entries of the current key, if there is one.
    fn end_key(&mut self, meter: &mut WorkMeter) -> Result<()> {
        if !std::mem::take(&mut self.has_key) {
            return Ok(());
        }
        if !self.folding.is_empty() {
            self.end_operands(meter)?;
        }
        match self.rules.end_key(self.nothing_deeper) {
            Some(trailer) => self.write_entry(trailer, meter),
            None => Ok(()),
        }
    }

    /// Writes the operands behind which the key has no more entries.
    #[cold]
    fn end_operands(&mut self, meter: &mut WorkMeter) -> Result<()> {
        let mut is_based_on_nothing = self.nothing_deeper && self.folding.stripe() == 0;
        if planted!(BaseTakenForNothing) {
            is_based_on_nothing = true;
        }
        if !is_based_on_nothing {
            return self.write_operands(Base::Unknown, false, meter).map(drop);
        }
        // As rule 4 has it for puts.
        let covering = self.tombstones.covering_sequence(&self.key, SEQUENCE_MAX);
        let zeroes = self.folding.is_newest() && covering == 0;
        self.write_operands(Base::Nothing, zeroes, meter).map(drop)
    }

    /// Writes the operands at hand, folded over their base as far as that can be, and then with sequence
    /// number 0 if `zeroes`; false if they are as they were.
    fn write_operands(
        &mut self,
        base: Base<'_>,
        zeroes: bool,
        meter: &mut WorkMeter,
    ) -> Result<bool> {
        let folded = self.folding.fold(&self.key, base);
        let is_folded = matches!(folded, Folded::Entry(..));
        match folded {
            Folded::Entry(trailer, value) => self.write_folded(trailer, &value, zeroes, meter)?,
            Folded::Unfolded => {
                for (trailer, operand) in self.folding.iter() {
                    self.entries_out += 1;
                    self.sink.add(&self.key, trailer, operand, meter)?;
                }
            }
        }
        self.folding.clear();
        Ok(is_folded)
    }

    /// Writes what operands have become. A value is a row like any other: it may go by itself.
    fn write_folded(
        &mut self,
        trailer: Trailer,
        value: &[u8],
        zeroes: bool,
        meter: &mut WorkMeter,
    ) -> Result<()> {
        let sequence = trailer.sequence();
        let retained = match &mut self.retaining {
            Some(retaining) if trailer.kind() == Some(ValueKind::Put) => {
                retaining.judge((&self.key, sequence), value, || self.operands_written_s)?
            }
            _ => Retained::Kept,
        };
        let stored = if zeroes { Trailer::new(0, ValueKind::Put) } else { trailer };
        let Some((trailer, changed)) = self.entry_of(retained, stored, sequence) else {
            return Ok(());
        };
        self.entries_out += 1;
        self.sink.add(&self.key, trailer, changed.as_deref().unwrap_or(value), meter)
    }

    /// Deals with an entry of a key with operands, which the rules have judged.
    #[cold]
    fn place_beside_operands(&mut self, verdict: Verdict, meter: &mut WorkMeter) -> Result<()> {
        let trailer = self.merge.trailer();
        let stripe = self.rules.stripe(trailer.sequence());
        let is_seen_alike = stripe == self.folding.stripe();
        let mut gathers = is_seen_alike;
        if planted!(FoldAcrossSnapshots) {
            gathers = true;
        }
        let is_consumed = match verdict {
            // Nobody sees it below the operands.
            Verdict::Drop => return Ok(()),
            Verdict::Operand { is_newest, .. } => {
                if !self.folding.is_empty() && !gathers {
                    self.write_operands(Base::Unknown, false, meter)?;
                }
                if self.folding.is_empty() {
                    self.operands_written_s = self.merge.written_s().unwrap_or(u64::MAX);
                }
                self.folding.push((trailer, stripe), self.merge.value(), is_newest);
                return Ok(());
            }
            _ if !is_seen_alike => self.write_operands(Base::Unknown, false, meter).map(|_| false),
            Verdict::Hold => self.write_operands(Base::Nothing, false, meter),
            Verdict::Keep(_) if trailer.kind() == Some(ValueKind::Put) => {
                let value = self.merge.value().to_vec();
                self.write_operands(Base::Value(&value), false, meter)
            }
            Verdict::Keep(_) => self.write_operands(Base::Nothing, false, meter),
        }?;
        if let (Verdict::Keep(trailer), false) = (verdict, is_consumed) {
            self.entries_out += 1;
            self.sink.add(&self.key, trailer, self.merge.value(), meter)?;
        }
        Ok(())
    }

    /// Writes a single delete of the current key that was held back.
    fn write_entry(&mut self, trailer: Trailer, meter: &mut WorkMeter) -> Result<()> {
        self.entries_out += 1;
        self.sink.add(&self.key, trailer, &[], meter)
    }

    /// Judges the entry under the merge and writes it if it is needed; returns its bytes.
    #[inline]
    fn place_entry(&mut self, meter: &mut WorkMeter) -> Result<usize> {
        self.entries_in += 1;
        let value = self.merge.value();
        let bytes = self.key.len() + value.len() + ENTRY_OVERHEAD_BYTES as usize;
        let (tombstones, key) = (&self.tombstones, &self.key);
        let covering = |sequence| {
            if tombstones.is_empty() { 0 } else { tombstones.covering_sequence(key, sequence) }
        };
        let decision = self.rules.judge(self.merge.trailer(), covering, self.nothing_deeper)?;
        if let Some(trailer) = decision.released {
            self.entries_out += 1;
            self.sink.add(&self.key, trailer, &[], meter)?;
        }
        if matches!(decision.verdict, Verdict::Operand { .. }) || !self.folding.is_empty() {
            return self.place_beside_operands(decision.verdict, meter).map(|()| bytes);
        }
        if let Verdict::Keep(trailer) = decision.verdict {
            if self.retaining.is_some() {
                return self.place_if_retained(trailer, meter).map(|()| bytes);
            }
            self.entries_out += 1;
            self.sink.add(&self.key, trailer, value, meter)?;
        }
        Ok(bytes)
    }

    /// Writes an entry that the rules keep, if it is no row that goes by itself: then its delete.
    #[cold]
    #[inline(never)]
    fn place_if_retained(&mut self, trailer: Trailer, meter: &mut WorkMeter) -> Result<()> {
        let (value, sequence) = (self.merge.value(), self.merge.trailer().sequence());
        let retained = match &mut self.retaining {
            Some(retaining) if trailer.kind() == Some(ValueKind::Put) => {
                let merge = &self.merge;
                let from_s = || merge.written_s().unwrap_or(u64::MAX);
                retaining.judge((&self.key, sequence), value, from_s)?
            }
            _ => Retained::Kept,
        };
        let Some((trailer, changed)) = self.entry_of(retained, trailer, sequence) else {
            return Ok(());
        };
        self.entries_out += 1;
        self.sink.add(&self.key, trailer, changed.as_deref().unwrap_or(value), meter)
    }

    /// What is written of a row of the current key, with another value if there is one: nothing where it
    /// goes and nothing lies deeper.
    fn entry_of(
        &self,
        retained: Retained,
        trailer: Trailer,
        sequence: SequenceNumber,
    ) -> Option<(Trailer, Option<Vec<u8>>)> {
        let mut needs_no_delete = self.nothing_deeper && self.rules.stripe(sequence) == 0;
        if planted!(GoneRowUncovers) {
            needs_no_delete = true;
        }
        match retained {
            Retained::Gone if needs_no_delete => None,
            Retained::Gone => Some((Trailer::new(sequence, ValueKind::Delete), Some(Vec::new()))),
            Retained::Kept => Some((trailer, None)),
            Retained::Changed(value) => Some((trailer, Some(value))),
        }
    }

    /// Ends the table at hand before the key `upper`, or for good. The range tombstones that start
    /// before it go into it, but no more than a table takes; what reaches further is left.
    #[inline(never)]
    fn begin_close(&mut self, context: &mut StepContext<'_>) -> Result<Step> {
        let last_key = self.sink.last_key();
        let inside = self.survivors.take_before(self.upper.as_deref(), last_key);
        let obsolete = self.rules.take_newest_obsolete_sequence();
        self.sink.begin_close(&inside, obsolete, context.spent.cpu_ns, context.meter)?;
        self.phase = Phase::Close;
        Ok(Step::Progress)
    }

    /// Goes on behind a table that is closed: with the next one, of range tombstones alone, if there
    /// were too many for one; else with the merge, or with the end.
    fn closed(&mut self, context: &mut StepContext<'_>) -> Result<Step> {
        if self.survivors.has_more_before(self.upper.as_deref()) {
            return self.begin_close(context);
        }
        self.phase = if self.upper.is_some() { Phase::Merge } else { Phase::HandOver };
        Ok(Step::Progress)
    }

    fn hand_over(&mut self, spent: Spent) -> Result<()> {
        let retaining = self.retaining.as_deref();
        let (expired, filtered) = retaining.map_or((0, 0), |rows| (rows.expired, rows.filtered));
        self.ledger.count_all([
            (Counter::SingleDeleteMisuses, self.rules.single_delete_misuses()),
            (Counter::CompactedOperands, self.folding.folded),
            (Counter::MergeFailures, self.folding.failures),
            (Counter::ExpiredRows, expired),
            (Counter::FilteredRows, filtered),
        ]);
        self.is_reported = true;
        self.sink.note_work(spent.cpu_ns);
        self.receiver.part_done(PartOutput {
            tables: self.sink.take_finished(),
            entries_in: self.entries_in,
            entries_out: self.entries_out,
            copied: self.sink.copied(),
            spent,
        })
    }
}

impl Job for MergeJob {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn cause(&self) -> Cause {
        self.cause
    }

    fn level(&self) -> Level {
        self.level
    }

    fn urgency(&self) -> Urgency {
        self.urgency
    }

    fn step(&mut self, context: &mut StepContext<'_>) -> Step {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.receiver.part_begins();
        }
        let step = self.advance(context).unwrap_or_else(|error| {
            self.sink.abandon();
            Step::Done(Err(error))
        });
        self.recharge();
        step
    }

    fn end(mut self: Box<Self>, ending: Ending, _: Spent) {
        if self.is_reported {
            return;
        }
        self.sink.abandon();
        self.receiver.part_failed(match ending {
            Ending::Done(result) => result.err(),
            Ending::Aborted => None,
            Ending::Panicked(message) => Some(Error::invalid(format!("a job panicked: {message}"))),
        });
    }
}

/// Collects the range tombstones of the inputs of a job, cut to a key range: of each fragment those
/// that readers at `snapshots` can tell apart.
pub(crate) fn clipped_tombstones<'a>(
    runs: impl Iterator<Item = &'a FragmentedTombstones>,
    start: Option<&'a [u8]>,
    end: Option<&'a [u8]>,
    snapshots: &[SequenceNumber],
) -> FragmentedTombstones {
    let mut fragmenter = TombstoneFragmenter::new();
    for run in runs {
        for fragment in run.fragments() {
            let from = start.map_or(fragment.start, |start| start.max(fragment.start));
            let to = end.map_or(fragment.end, |end| end.min(fragment.end));
            if from < to {
                for sequence in fragment.sequences() {
                    fragmenter.add(from, to, sequence);
                }
            }
        }
    }
    fragmenter.finish_for(snapshots)
}
