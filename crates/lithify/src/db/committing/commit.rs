//! The write path: group commit with one leader.
//!
//! 1. A writer leads or queues ([`GroupQueue`]).
//! 2. The leader is held back by flow control if there is debt; meanwhile the queue fills.
//! 3. It takes the queue as one group, gives out sequence numbers, appends one record to the log,
//!    syncs it if anyone in the group asks for it, and writes all memtables.
//! 4. It publishes the group's last sequence number: the group becomes visible at once.
//! 5. It hands over to the first of those that came meanwhile and wakes the group.
//!
//! So memtables have one writer, and a group costs one log write however many commits it holds.

use crate::base::{COMMIT_SEQUENCE_MAX, ColumnFamilyId, SequenceNumber, Trailer, ValueKind};
use crate::compaction::scheduler::panic_message;
use crate::db::committing::batch::{BatchData, Entries, Entry, GroupHead};
use crate::db::committing::group::{Group, GroupQueue, Slot, Turn};
use crate::db::committing::recent::{Checks, Recent};
use crate::db::committing::wal_set::WalSet;
use crate::db::inner::DbInner;
use crate::db::rows::Rows;
use crate::db::rows::locks::{Grant, OwnerId, RowId};
use crate::db::tree::family::Family;
use crate::options::Durability;
use crate::stats::{Cause, Counter, FamilyLedger};
use crate::{Error, ErrorKind, Result};
use std::collections::HashMap;
use std::io::IoSlice;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A group is closed when its batches reach this size.
const GROUP_BYTES_MAX: usize = 1 << 20;

/// A batch of so many entries is timed every time: there are too few of them to be sampled.
const TIMED_ENTRIES_MIN: u32 = 64;

/// A batch on its way.
pub(crate) struct Pending {
    data: BatchData,
    sync: bool,
    condition: Option<Condition>,
}

/// What has to hold when a batch is given its sequence numbers; else it is refused with
/// [`ErrorKind::Conflict`].
pub(crate) enum Condition {
    /// Nothing was written that an optimistic transaction has read.
    Reads(Box<Checks>),
    /// No range of the family was written with a higher number: that takes no row locks.
    Ranges(Arc<Family>, SequenceNumber),
}

/// The queue in front of the leader.
pub(crate) type CommitQueue = GroupQueue<Pending>;

/// What only the leader touches, or whoever stands in for it (a flush, a close).
#[derive(Default)]
pub(crate) struct Writer {
    pub(crate) wal: WalSet,
    pub(crate) last_sequence: SequenceNumber,
    pub(crate) active: ActiveBytes,
    /// What was written lately, while optimistic transactions are open.
    pub(crate) recent: Recent,
    /// The log was this long when it was last looked for the family that keeps its oldest segment.
    pub(crate) log_judged_at_bytes: u64,
}

/// What the active memtables hold, kept up to date commit by commit: a database may have thousands
/// of families, and a commit writes to one or two.
#[derive(Default)]
pub(crate) struct ActiveBytes {
    by_family: HashMap<ColumnFamilyId, usize>,
    total_bytes: usize,
}

impl ActiveBytes {
    /// The active memtable of a family holds so much now.
    pub(crate) fn note(&mut self, family: ColumnFamilyId, bytes: usize) {
        let before = self.by_family.insert(family, bytes).unwrap_or(0);
        self.total_bytes = self.total_bytes + bytes - before;
    }

    /// A family has a new memtable, or is gone.
    pub(crate) fn forget(&mut self, family: ColumnFamilyId) {
        self.total_bytes -= self.by_family.remove(&family).unwrap_or(0);
    }

    /// Those of all families.
    pub(crate) fn total_bytes(&self) -> usize {
        self.total_bytes
    }

    /// The family whose memtable is the largest; of equals the first by id.
    pub(crate) fn largest(&self) -> Option<ColumnFamilyId> {
        let bytes = |(id, bytes): &(&ColumnFamilyId, &usize)| (**bytes, std::cmp::Reverse(**id));
        self.by_family.iter().max_by_key(bytes).map(|(id, _)| *id)
    }
}

/// Row locks that a plain write holds while it is committed.
struct PlainLocks<'a> {
    held_in: &'a Rows,
    owner: OwnerId,
    rows: Vec<RowId>,
}

impl Drop for PlainLocks<'_> {
    fn drop(&mut self) {
        for row in &self.rows {
            self.held_in.release(self.owner, *row);
        }
    }
}

/// The family and key of a row that a batch writes.
fn row_of(data: &BatchData, row: RowId) -> Option<(ColumnFamilyId, &[u8])> {
    let mut entries = data.entries().flatten().map(|entry| (entry.family, entry.key));
    entries.find(|(family, key)| RowId::new(*family, key) == row)
}

impl DbInner {
    /// One write outside a transaction.
    pub(crate) fn write_one(
        self: &Arc<Self>,
        family: &Family,
        kind: ValueKind,
        key: &[u8],
        value: &[u8],
    ) -> Result<()> {
        family.check_alive()?;
        let mut data = BatchData::default();
        data.push_to(family, Entry { kind, family: family.id, key, value });
        self.write_plain(data, None)
    }

    /// A batch outside a transaction: honours the row locks of transactions.
    pub(crate) fn write_plain(
        self: &Arc<Self>,
        data: BatchData,
        durability: Option<Durability>,
    ) -> Result<()> {
        self.write_checked(data, durability, None)
    }

    /// As [`DbInner::write_plain`], if a condition holds.
    pub(crate) fn write_checked(
        self: &Arc<Self>,
        data: BatchData,
        durability: Option<Durability>,
        condition: Option<Condition>,
    ) -> Result<()> {
        data.check()?;
        if let Some(_unlocked) = self.rows.begin_unlocked() {
            return self.commit_if(data, durability, condition);
        }
        // Before it waits for rows: a database that takes no writes says so at once.
        self.lifecycle.check_writable()?;
        let _locks = self.lock_rows_of(&data)?;
        self.commit_if(data, durability, condition)
    }

    fn lock_rows_of(&self, data: &BatchData) -> Result<PlainLocks<'_>> {
        let mut wanted = Vec::with_capacity(data.count() as usize);
        for entry in data.entries() {
            let entry = entry?;
            if entry.kind != ValueKind::RangeDelete {
                wanted.push(RowId::new(entry.family, entry.key));
            }
        }
        // One order for all plain writes: they cannot wait for each other in a circle.
        wanted.sort_unstable();
        let owner = self.rows.new_owner();
        let mut locks =
            PlainLocks { held_in: &self.rows, owner, rows: Vec::with_capacity(wanted.len()) };
        for row in wanted {
            let name = || row_of(data, row).unwrap_or_default();
            if self.lock_row(owner, row, self.rows.timeout_us(), name)? == Grant::New {
                locks.rows.push(row);
            }
        }
        Ok(locks)
    }

    /// Commits a batch whose rows are locked, or need no locks.
    pub(crate) fn commit(
        self: &Arc<Self>,
        data: BatchData,
        durability: Option<Durability>,
    ) -> Result<()> {
        self.commit_if(data, durability, None)
    }

    /// As [`DbInner::commit`], if a condition holds.
    pub(crate) fn commit_if(
        self: &Arc<Self>,
        mut data: BatchData,
        durability: Option<Durability>,
        condition: Option<Condition>,
    ) -> Result<()> {
        data.check()?;
        self.lifecycle.check_writable()?;
        data.check_size(self.options.batch_bytes_max())?;
        let sync = wants_sync(self.options.durability, durability)?;
        if data.is_empty() && !sync {
            return Ok(());
        }
        let clock = &*self.world.environment;
        data.set_write_time(|| clock.unix_time_s());
        let stalls = self.ledger.stalls();
        let mut sample = self.ledger.begin_user_call(Counter::Commits, Cause::UserWrite, clock);
        if data.count() >= TIMED_ENTRIES_MIN {
            sample = Some(self.ledger.time_call(Cause::UserWrite, clock));
        }
        stalls.writer_begins(clock.now_us());
        let result = self.enqueue(Pending { data, sync, condition });
        match &result {
            Ok(()) => stalls.writer_ends(),
            Err(_) => {
                stalls.writer_gives_up(clock.now_us());
                self.tell_failure();
            }
        }
        self.ledger.end_unmetered_call(sample, Cause::UserWrite, clock);
        result
    }

    fn enqueue(self: &Arc<Self>, pending: Pending) -> Result<()> {
        let new_slot = || Slot::new(self.world.environment.new_event());
        let wait = |slot: &Slot| {
            self.commits.wait_spinning(&self.jobs, slot.moved(), None, || slot.has_moved());
        };
        match self.commits.queue.join(pending, new_slot, wait) {
            Turn::Lead(own) => self.lead(own),
            Turn::Done(result) => result,
        }
    }

    /// Leads one group, with `own` as its first batch, then hands over.
    fn lead(self: &Arc<Self>, own: Pending) -> Result<()> {
        let mut bytes = own.data.bytes().len();
        let result_of_flow = self.caught(|| {
            self.hold_back(bytes)?;
            self.pass_ingest_gate();
            Ok(())
        });
        let mut group = self.commits.queue.group(own, |pending| {
            bytes += pending.data.bytes().len();
            bytes <= GROUP_BYTES_MAX
        });
        let result = result_of_flow.and_then(|()| {
            self.caught(|| {
                let mut writer = self.commits.writer();
                self.apply_group(&mut writer, &mut group)
            })
        });
        self.commits.queue.finish(group, result)
    }

    /// A leader's work. A panic, which is a bug, must not leave the writers waiting that wait for
    /// the leader: it stops writing, as one in a job does, and all of them are told.
    fn caught(&self, work: impl FnOnce() -> Result<()>) -> Result<()> {
        if planted!(LeaderPanicUncaught) {
            return work();
        }
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
            let message = panic_message(&*panic);
            self.lifecycle.poison(&Error::invalid(format!("a commit panicked: {message}")));
            self.lifecycle.check_usable()
        })
    }

    /// Leaves out of a group the batches whose condition does not hold, be it for what those before them
    /// in the group write, and notes what the others write.
    #[inline]
    fn check_conditions(&self, writer: &mut Writer, group: &mut Group<Pending>) {
        let notes = self.commits.notes_recent(writer);
        if notes || group.items().any(|pending| pending.condition.is_some()) {
            self.check_each(writer, group, notes);
        }
    }

    fn check_each(&self, writer: &mut Writer, group: &mut Group<Pending>, notes: bool) {
        let mut sequence = writer.last_sequence;
        let mut writes_ranges = false;
        let recent = &mut writer.recent;
        group.refuse(|pending| {
            let holds = match &pending.condition {
                Some(Condition::Reads(checks)) => recent.check(checks),
                Some(Condition::Ranges(family, since)) => {
                    check_ranges(writes_ranges || family.last_range_write() > *since)
                }
                None => Ok(()),
            };
            holds.inspect_err(|_| {
                self.ledger.count(Counter::Conflicts, 1);
            })?;
            for entry in pending.data.entries().flatten() {
                sequence += 1;
                writes_ranges |= entry.kind == ValueKind::RangeDelete;
                if notes {
                    recent.note(&entry, sequence);
                }
            }
            Ok(())
        });
        if notes {
            recent.trim(sequence, &self.workshop.budget);
        }
    }

    fn apply_group(
        self: &Arc<Self>,
        writer: &mut Writer,
        group: &mut Group<Pending>,
    ) -> Result<()> {
        self.lifecycle.check_writable()?;
        self.check_conditions(writer, group);
        let clock = &*self.world.environment;
        let count: u64 = group.items().map(|pending| u64::from(pending.data.count())).sum();
        let first_sequence = writer.last_sequence + 1;
        let last_sequence = sequence_behind(writer.last_sequence, count)?;
        if planted!(LeaderPanicUncaught) && last_sequence.is_multiple_of(97) {
            std::panic::panic_any("planted");
        }
        let sync = group.items().any(|pending| pending.sync);
        let segment = self.log_group(writer, group, first_sequence, count as u32, sync)?;
        if planted!(PublishedBeforeMemtable) {
            self.visibility.publish(last_sequence);
            crate::planted::let_others_in();
        }
        self.tree.announced().announce(last_sequence);
        let mut sequence = first_sequence;
        let mut touched = Vec::new();
        for pending in group.items() {
            let entries = pending.data.entries();
            sequence = self.insert_entries(entries, sequence, segment, &mut touched, &|_| 0)?;
        }
        writer.last_sequence = last_sequence;
        self.visibility.publish(last_sequence);
        self.ledger.count(Counter::CommitGroups, 1);
        self.ledger.stalls().write_completed(clock.now_us());
        self.after_insert(writer, &touched);
        Ok(())
    }

    /// Appends a group to the log; gives the number of the segment that holds it.
    fn log_group(
        &self,
        writer: &mut Writer,
        group: &Group<Pending>,
        first_sequence: SequenceNumber,
        count: u32,
        sync: bool,
    ) -> Result<u64> {
        if self.options.durability == Durability::None {
            return Ok(u64::MAX);
        }
        let logged: Result<u64> = (|| {
            if count > 0 {
                let header = GroupHead { first_sequence, entry_count: count }.encode();
                let mut pieces = Vec::with_capacity(group.len() + 1);
                pieces.push(IoSlice::new(&header));
                pieces.extend(group.items().map(|pending| IoSlice::new(pending.data.bytes())));
                writer.wal.append(self, &pieces)?;
            }
            let mut is_due = sync;
            if planted!(CommitSyncSkipped) {
                is_due = false;
            }
            if is_due {
                self.commits.rest(|| writer.wal.sync_commit(self))?;
            } else if self.interval_is_over(writer) {
                self.commits.rest(|| writer.wal.sync(self))?;
            }
            Ok(writer.wal.current_number())
        })();
        if planted!(LogErrorSwallowed) && logged.is_err() {
            return Ok(writer.wal.current_number());
        }
        // A full disk leaves the log as it was; free space is all it needs to go on.
        logged.inspect_err(|error| {
            if error.kind() != ErrorKind::NoSpace {
                self.lifecycle.poison(error);
            }
        })
    }

    /// Writes entries to the active memtables, numbered from `sequence` on; gives the number
    /// behind the last. Entries of families that were dropped meanwhile are passed over: a write
    /// and then the drop leave the same. So are those up to what `flushed` says is in tables.
    pub(crate) fn insert_entries(
        &self,
        entries: Entries<'_>,
        mut sequence: SequenceNumber,
        segment: u64,
        touched: &mut Vec<ColumnFamilyId>,
        flushed: &dyn Fn(&ColumnFamilyId) -> SequenceNumber,
    ) -> Result<SequenceNumber> {
        // Who may read while this is not visible yet.
        let mut readers: Option<Vec<SequenceNumber>> = None;
        let mut entries = entries.peekable();
        while let Some(first) = entries.next().transpose()? {
            let family = self.tree.family(first.family);
            let Some(family) = family.filter(|family| !family.is_dropped()) else {
                sequence += 1;
                continue;
            };
            let flushed_through = flushed(&family.id);
            let view = family.view();
            let memory = &view.active;
            let mut memtable = memory.table.writer();
            let mut cuts = family.rows.dead_ranges.is_watched();
            if planted!(PutLeavesDeadRange) {
                cuts = false;
            }
            let mut next = Some(first);
            let mut tally = Tally::default();
            while let Some(entry) = next {
                if sequence > flushed_through {
                    match entry.kind {
                        ValueKind::RangeDelete => {
                            let readers = readers.get_or_insert_with(|| {
                                self.visibility.readers(&*self.world.environment).sequences
                            });
                            let range = (entry.key, entry.value);
                            memory.delete_range(&mut memtable, range, sequence, readers);
                            family.note_range_write(sequence);
                        }
                        kind => {
                            if cuts && is_row(kind) {
                                family.rows.dead_ranges.cut(entry.key, entry.key);
                            }
                            memtable.insert(entry.key, Trailer::new(sequence, kind), entry.value);
                        }
                    }
                    tally.add(&entry);
                }
                sequence += 1;
                let same_family =
                    |entry: &Result<Entry<'_>>| matches!(entry, Ok(e) if e.family == family.id);
                next = entries.next_if(same_family).transpose()?;
            }
            tally.book(&family.ledger);
            if !view.active.table.is_empty() {
                view.active.note_segment(segment);
            }
            if !touched.contains(&family.id) {
                touched.push(family.id);
            }
        }
        Ok(sequence)
    }

    /// Charges the memtables that were written to and starts flushes where one is due.
    fn after_insert(self: &Arc<Self>, writer: &mut Writer, touched: &[ColumnFamilyId]) {
        for id in touched {
            let Some(family) = self.tree.family(*id) else { continue };
            let active = Arc::clone(&family.view().active);
            let bytes = active.recharge();
            writer.active.note(*id, bytes);
            if bytes >= self.options.memtable_bytes
                || active.is_worn()
                || active.table.is_paid_for()
            {
                self.switch_memtables(writer, &family);
            }
        }
        self.enforce_bounds(writer);
        if let Some(care) = writer.wal.care(self) {
            self.jobs.submit(Box::new(care));
        }
    }
}

/// Refuses the change of a row beside which ranges were written.
fn check_ranges(were_written: bool) -> Result<()> {
    match were_written {
        false => Ok(()),
        true => Err(Error::new(
            ErrorKind::Conflict,
            "a range of the column family was deleted or ingested between read and write: retry",
        )),
    }
}

/// Whether an entry makes a row where there may have been none.
fn is_row(kind: ValueKind) -> bool {
    if planted!(MergeLeavesDeadRange) {
        return kind == ValueKind::Put;
    }
    matches!(kind, ValueKind::Put | ValueKind::Merge)
}

/// Whether a commit with that durability syncs the log.
fn wants_sync(of_database: Durability, durability: Option<Durability>) -> Result<bool> {
    match (durability.unwrap_or(of_database), of_database) {
        (Durability::Sync, Durability::None) => Err(Error::invalid(
            "durability sync contradicts the database's durability none: there is no log",
        )),
        (Durability::Sync, _) => Ok(true),
        (Durability::Buffered, Durability::None) => Err(Error::invalid(
            "durability buffered contradicts the database's durability none: there is no log",
        )),
        (Durability::Buffered, _) => Ok(false),
        (mode, of_database) if mode == of_database => Ok(false),
        _ => Err(Error::invalid("durability interval and none are per database only")),
    }
}

/// The last sequence number of `count` more behind `last`.
///
/// # Errors
/// [`ErrorKind::LimitExceeded`] if so many are not left; nothing was written.
pub(crate) fn sequence_behind(last: SequenceNumber, count: u64) -> Result<SequenceNumber> {
    let next = last.checked_add(count);
    if planted!(SequencesRunOver)
        && let Some(next) = next
    {
        return Ok(next);
    }
    next.filter(|next| *next <= COMMIT_SEQUENCE_MAX).ok_or_else(|| {
        Error::limit("all sequence numbers are used up: copy the rows into a new database")
            .expected(
                format_args!("at most {COMMIT_SEQUENCE_MAX}"),
                u128::from(last) + u128::from(count),
            )
    })
}

/// Counts of entries of one family in a row, booked together.
#[derive(Default)]
struct Tally {
    kinds: [u64; 5],
    bytes: u64,
}

impl Tally {
    fn add(&mut self, entry: &Entry<'_>) {
        self.kinds[entry.kind as usize] += 1;
        self.bytes += (entry.key.len() + entry.value.len()) as u64;
    }

    fn book(&self, ledger: &FamilyLedger) {
        let [deletes, puts, single_deletes, range_deletes, merges] = self.kinds;
        ledger.count_all([
            (Counter::Deletes, deletes),
            (Counter::Puts, puts),
            (Counter::SingleDeletes, single_deletes),
            (Counter::RangeDeletes, range_deletes),
            (Counter::Merges, merges),
            (Counter::IngestedBytes, self.bytes),
        ]);
    }
}
