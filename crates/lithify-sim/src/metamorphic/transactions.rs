//! Open transactions beside what they must answer: own writes on top of what is committed, row
//! locks that others cannot have, conflicts with what was changed since a snapshot.

use super::cursor::{ModelCursor, overlaid, scan_range};
use super::session::{Session, expect_kind, same_value};
use crate::model::{Rows, State, bounds, rows_in};
use crate::operation::{
    Change, Key, Move, Over, Span, TRANSACTION_SLOTS, TransactionCall, Write, operators,
};
use lithify::{Durability, ErrorKind, Transaction};
use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;

/// A row: the incarnation of its family, and its key.
type Row = (u32, Key);

/// What the engine takes to remember a row, beside its key.
const NOTED_ROW_BYTES: usize = 64;

/// The part of the memory budget that it takes for what was written lately.
const REMEMBERED_DIVISOR: usize = 32;

/// What was changed while a transaction with a snapshot was open.
#[derive(Default)]
pub(super) struct Changes {
    now: u64,
    keys: HashMap<Row, u64>,
    ranges: Vec<(u32, Key, Key, u64)>,
    last_ingest: u64,
    /// Bytes of keys so far, and about what the engine takes to remember each, by the times.
    noted_bytes: Vec<(u64, usize)>,
    watchers: usize,
}

impl Changes {
    /// Notes what was written into families of those incarnations.
    pub(super) fn note<'w>(&mut self, writes: impl Iterator<Item = (u32, &'w Change)>) {
        if self.watchers == 0 {
            return;
        }
        self.now += 1;
        let mut bytes = 0;
        for (incarnation, change) in writes {
            bytes += NOTED_ROW_BYTES;
            match change {
                Change::DeleteRange(start, end) => {
                    bytes += start.len() + end.len();
                    self.ranges.push((incarnation, start.clone(), end.clone(), self.now));
                }
                Change::Put(key, _)
                | Change::Delete(key)
                | Change::SingleDelete(key)
                | Change::Merge(key, _)
                | Change::Once(key, _) => {
                    bytes += key.len();
                    self.keys.insert((incarnation, key.clone()), self.now);
                }
            }
        }
        self.noted_bytes.push((self.now, bytes));
    }

    /// Whether more was written after `at` than an engine with this budget has to remember: half of what it
    /// may, as it forgets the older half when it is full.
    fn may_be_forgotten(&self, at: u64, budget_bytes: usize) -> bool {
        let behind = self.noted_bytes.iter().rev().take_while(|(when, _)| *when > at);
        behind.map(|(_, bytes)| bytes).sum::<usize>() >= budget_bytes / (2 * REMEMBERED_DIVISOR)
    }

    /// Whether anything of a span was written, or deleted by range, after `at`.
    fn has_changed_in(&self, incarnation: u32, span: &Span, at: u64) -> bool {
        let (lower, upper) = bounds(span);
        let is_in = |key: &Key| {
            let is_behind = match &lower {
                Bound::Included(lower) => key >= lower,
                _ => true,
            };
            is_behind && is_before(key, &upper)
        };
        let mut keys = self.keys.iter();
        keys.any(|((of, key), when)| *of == incarnation && *when > at && is_in(key))
            || self.ranges.iter().any(|(of, start, end, when)| {
                let starts_behind = match &lower {
                    Bound::Included(lower) => end > lower,
                    _ => true,
                };
                *of == incarnation && *when > at && starts_behind && is_before(start, &upper)
            })
    }

    /// Whether a row was written, or deleted by range, after `at`.
    fn has_changed(&self, row: &Row, at: u64) -> bool {
        let covers = |(incarnation, start, end, when): &(u32, Key, Key, u64)| {
            *incarnation == row.0 && *when > at && *start <= row.1 && row.1 < *end
        };
        self.keys.get(row).is_some_and(|when| *when > at) || self.ranges.iter().any(covers)
    }

    /// A bulk ingest went live.
    pub(super) fn note_ingest(&mut self) {
        self.last_ingest = self.now;
    }

    fn has_ingested(&self, at: u64) -> bool {
        self.last_ingest > at
    }

    fn watch(&mut self) -> u64 {
        self.watchers += 1;
        self.now
    }

    fn unwatch(&mut self) {
        self.watchers -= 1;
        if self.watchers == 0 {
            *self = Changes { now: self.now, ..Changes::default() };
        }
    }
}

fn is_before(key: &Key, upper: &Bound<Key>) -> bool {
    match upper {
        Bound::Included(upper) => key <= upper,
        Bound::Excluded(upper) => key < upper,
        Bound::Unbounded => true,
    }
}

/// A transaction with its model.
pub(super) struct Open {
    transaction: Transaction,
    /// In order, with the incarnations of their families.
    writes: Vec<(u32, Write)>,
    /// In the order in which they were granted.
    locks: Vec<Row>,
    /// How many writes and locks there were.
    savepoints: Vec<(usize, usize)>,
    /// When the snapshot was set, and the state then.
    snapshot: Option<(u64, State)>,
    reads_at_snapshot: bool,
    /// What it has read, if it is an optimistic one.
    reads: Option<Reads>,
}

impl Open {
    /// The own writes of a row.
    fn own<'o>(&'o self, row: &'o Row) -> impl DoubleEndedIterator<Item = &'o Change> {
        let key_of = move |change: &Change| match change {
            Change::Put(key, _)
            | Change::Delete(key)
            | Change::SingleDelete(key)
            | Change::Merge(key, _) => *key == row.1,
            Change::DeleteRange(..) | Change::Once(..) => false,
        };
        let writes = self.writes.iter();
        let own = writes.filter(move |(family, write)| *family == row.0 && key_of(&write.change));
        own.map(|(_, write)| &write.change)
    }

    fn is_locked(&self, row: &Row) -> bool {
        self.locks.contains(row)
    }

    /// Notes a read that looked below the own writes.
    fn note_read(&mut self, row: &Row) {
        let is_own =
            self.own(row).next_back().is_some_and(|change| !matches!(change, Change::Merge(..)));
        if let Some(reads) = self.reads.as_mut().filter(|_| !is_own) {
            reads.keys.push(row.clone());
        }
    }
}

/// What an optimistic transaction has read: what must conflict if it was written since, and what may.
#[derive(Default)]
struct Reads {
    keys: Vec<Row>,
    /// Stretches of keys that a cursor went over from end to end.
    stretches: Vec<(u32, Span)>,
    /// Cursors may have been anywhere in these.
    spans: Vec<(u32, Span)>,
}

impl Reads {
    fn note_span(&mut self, incarnation: u32, span: &Span) {
        self.spans.push((incarnation, span.clone()));
    }

    /// The first move says where the cursor surely was: from the first row on, as far as it went.
    fn note_scan(&mut self, incarnation: u32, rows: &Rows, span: &Span, moves: &[Move]) {
        let steps = match moves.first() {
            Some(Move::First) => 1,
            Some(Move::Next(steps)) => *steps as usize,
            _ => return,
        };
        let last = rows_in(rows, span).nth(steps - 1).map(|(key, _)| key.to_vec());
        let (lower, upper) = bounds(span);
        let lower = match lower {
            Bound::Included(lower) => lower,
            _ => Key::new(),
        };
        let stretch = match (last, upper) {
            (Some(last), _) | (None, Bound::Included(last)) => Span::Through(lower, last),
            (None, Bound::Excluded(upper)) => Span::Between(lower, upper),
            (None, Bound::Unbounded) => Span::From(lower),
        };
        self.stretches.push((incarnation, stretch));
    }
}

/// What must come of an optimistic commit.
enum Verdict {
    Commits,
    MustConflict,
    MayConflict,
}

/// What must come of asking for a lock.
enum Grant {
    Granted,
    Refused(ErrorKind),
    /// The row was changed and changed back: refused or not, both are right.
    GrantedOrConflict,
}

impl Session<'_> {
    /// Whether an open transaction, but for that in `except`, holds the lock of a row.
    pub(super) fn is_locked(&self, row: &Row, except: Option<usize>) -> bool {
        (0..TRANSACTION_SLOTS)
            .filter(|slot| Some(*slot) != except)
            .any(|slot| self.transactions[slot].as_ref().is_some_and(|open| open.is_locked(row)))
    }

    /// A call of the transaction in a slot; nothing if there is none, or one where it begins.
    pub(super) fn transact(&mut self, slot: usize, call: &TransactionCall) -> Result<(), String> {
        if let TransactionCall::Begin { has_snapshot, reads_at_snapshot, is_optimistic } = call {
            return match is_optimistic {
                true => self.begin_optimistic(slot),
                false => self.begin_transaction(slot, *has_snapshot, *reads_at_snapshot),
            };
        }
        let Some(mut open) = self.transactions[slot].take() else { return Ok(()) };
        match call {
            TransactionCall::Commit { is_synced } => return self.commit(open, *is_synced),
            TransactionCall::Rollback => {
                self.unwatch(&open);
                open.transaction.rollback();
                return Ok(());
            }
            _ => {}
        }
        let outcome = self.call(&mut open, slot, call);
        self.transactions[slot] = Some(open);
        outcome
    }

    fn begin_transaction(
        &mut self,
        slot: usize,
        has_snapshot: bool,
        reads_at_snapshot: bool,
    ) -> Result<(), String> {
        if self.transactions[slot].is_some() {
            return Ok(());
        }
        let mut transaction = self.db().transaction();
        let snapshot = has_snapshot.then(|| {
            match reads_at_snapshot {
                true => transaction.read_at_snapshot(),
                false => transaction.set_snapshot(),
            }
            (self.changes.watch(), self.state.clone())
        });
        self.transactions[slot] = Some(Open {
            transaction,
            writes: Vec::new(),
            locks: Vec::new(),
            savepoints: Vec::new(),
            snapshot,
            reads_at_snapshot,
            reads: None,
        });
        Ok(())
    }

    fn begin_optimistic(&mut self, slot: usize) -> Result<(), String> {
        if self.transactions[slot].is_some() {
            return Ok(());
        }
        self.transactions[slot] = Some(Open {
            transaction: self.db().optimistic_transaction(),
            writes: Vec::new(),
            locks: Vec::new(),
            savepoints: Vec::new(),
            snapshot: Some((self.changes.watch(), self.state.clone())),
            reads_at_snapshot: true,
            reads: Some(Reads::default()),
        });
        Ok(())
    }

    fn unwatch(&mut self, open: &Open) {
        if open.snapshot.is_some() {
            self.changes.unwatch();
        }
    }

    fn call(&mut self, open: &mut Open, slot: usize, call: &TransactionCall) -> Result<(), String> {
        match call {
            TransactionCall::Get(family, key) => {
                let Some((handle, incarnation)) = self.handle(*family) else { return Ok(()) };
                let found = open.transaction.get(&handle, key).map_err(|e| e.to_string())?;
                open.note_read(&(incarnation, key.clone()));
                self.compare_own(open, *family, &(incarnation, key.clone()), found.as_deref())
            }
            TransactionCall::GetForUpdate(family, key) => {
                let Some((handle, incarnation)) = self.handle(*family) else { return Ok(()) };
                let row = (incarnation, key.clone());
                let grant = self.lock(open, slot, *family, &row);
                open.note_read(&row);
                match self.granted(grant, open.transaction.get_for_update(&handle, key))? {
                    Some(found) => self.compare_own(open, *family, &row, found.as_deref()),
                    None => Ok(()),
                }
            }
            TransactionCall::LockFirst(family, span) => self.lock_first(open, slot, *family, span),
            TransactionCall::Write(write) => self.write_own(open, slot, write),
            TransactionCall::Scan(over, moves) => self.scan_own(open, over, moves),
            TransactionCall::SetSavepoint => {
                open.transaction.set_savepoint();
                open.savepoints.push((open.writes.len(), open.locks.len()));
                Ok(())
            }
            TransactionCall::RollbackToSavepoint => {
                let result = open.transaction.rollback_to_savepoint();
                let Some((writes, locks)) = open.savepoints.pop() else {
                    return expect_kind("no savepoint", result, ErrorKind::InvalidArgument);
                };
                open.writes.truncate(writes);
                open.locks.truncate(locks);
                result.map_err(|error| error.to_string())
            }
            // These end the transaction, see `transact`.
            TransactionCall::Begin { .. }
            | TransactionCall::Commit { .. }
            | TransactionCall::Rollback => Ok(()),
        }
    }

    /// What asking for a row's lock must come to; the model has it from then on.
    fn lock(&mut self, open: &mut Open, slot: usize, family: usize, row: &Row) -> Grant {
        if open.reads.is_some() {
            return Grant::Granted;
        }
        if self.is_locked(row, Some(slot)) {
            return Grant::Refused(ErrorKind::LockTimeout);
        }
        if !open.is_locked(row) {
            open.locks.push(row.clone());
        }
        let Some((at, state)) = &open.snapshot else { return Grant::Granted };
        if !self.changes.has_changed(row, *at) {
            return Grant::Granted;
        }
        let then = state.same_family(family, row.0).and_then(|content| content.get(&row.1));
        let now = self.state.same_family(family, row.0).and_then(|content| content.get(&row.1));
        match then == now {
            true => Grant::GrantedOrConflict,
            false => Grant::Refused(ErrorKind::Conflict),
        }
    }

    /// Compares what a lock came to with what it must come to; gives what was granted.
    fn granted<T>(
        &mut self,
        grant: Grant,
        result: lithify::Result<T>,
    ) -> Result<Option<T>, String> {
        match (grant, result) {
            (Grant::Refused(kind), result) => {
                self.tally.count("refusals", 1);
                expect_kind("a lock", result, kind).map(|()| None)
            }
            (Grant::GrantedOrConflict, Err(error)) if error.kind() == ErrorKind::Conflict => {
                Ok(None)
            }
            (_, result) => result.map(Some).map_err(|error| format!("a lock: {error}")),
        }
    }

    /// Compares a read with the last own write, or else with what is committed.
    fn compare_own(
        &mut self,
        open: &Open,
        family: usize,
        row: &Row,
        found: Option<&[u8]>,
    ) -> Result<(), String> {
        self.rows_compared += 1;
        let content = self.read_by(open).same_family(family, row.0);
        let mut value = content.and_then(|content| content.get(&row.1)).map(<[u8]>::to_vec);
        for change in open.own(row) {
            value = match change {
                Change::Put(_, own) => Some(own.bytes()),
                Change::Merge(_, operand) => {
                    Some(operators::merged(family, value.as_deref(), &operand.bytes()))
                }
                _ => None,
            };
        }
        same_value(&row.1, found, value.as_deref())
    }

    /// What the reads of a transaction see, but for its own writes.
    fn read_by<'s>(&'s self, open: &'s Open) -> &'s State {
        match &open.snapshot {
            Some((_, state)) if open.reads_at_snapshot => state,
            _ => &self.state,
        }
    }

    /// The rows of a family that a transaction sees, its own among them.
    fn rows_of(&self, open: &Open, slot: usize, incarnation: u32) -> Arc<Rows> {
        let content = self.read_by(open).same_family(slot, incarnation);
        let rows = content.map_or_else(Default::default, |content| Arc::clone(content.rows()));
        let own = open.writes.iter().filter(|(family, _)| *family == incarnation);
        overlaid(&rows, own.map(|(_, write)| write))
    }

    fn lock_first(
        &mut self,
        open: &mut Open,
        slot: usize,
        family: usize,
        span: &Span,
    ) -> Result<(), String> {
        let Some((handle, incarnation)) = self.handle(family) else { return Ok(()) };
        let rows = self.rows_of(open, family, incarnation);
        let result = open.transaction.lock_first(&handle, scan_range(span));
        let first = rows_in(&rows, span).find(|(key, _)| {
            let row = (incarnation, key.to_vec());
            open.reads.is_some() || !self.is_locked(&row, Some(slot))
        });
        if let Some(reads) = &mut open.reads {
            reads.note_span(incarnation, span);
            reads.keys.extend(first.map(|(key, _)| (incarnation, key.to_vec())));
        }
        let Some((key, value)) = first else {
            return match result {
                Ok(None) => Ok(()),
                Ok(Some((key, _))) => Err(format!("{key:?} is no row to be locked")),
                Err(error) => Err(format!("a lock: {error}")),
            };
        };
        let grant = self.lock(open, slot, family, &(incarnation, key.to_vec()));
        match self.granted(grant, result)? {
            Some(Some(found)) if found.0 == key[..] => {
                self.rows_compared += 1;
                same_value(key, Some(&found.1), Some(value))
            }
            Some(found) => Err(format!("the first row is {key:?}, not {found:?}")),
            None => Ok(()),
        }
    }

    fn write_own(&mut self, open: &mut Open, slot: usize, write: &Write) -> Result<(), String> {
        let Some((handle, incarnation)) = self.handle(write.family) else { return Ok(()) };
        let key = match &write.change {
            Change::DeleteRange(start, end) => {
                let result = open.transaction.delete_range(&handle, start, end);
                return expect_kind("a range delete", result, ErrorKind::InvalidArgument);
            }
            Change::Put(key, _)
            | Change::Delete(key)
            | Change::SingleDelete(key)
            | Change::Merge(key, _)
            | Change::Once(key, _) => key,
        };
        let row = (incarnation, key.clone());
        // No lock keeps others from putting the row a second time before the single delete of the first
        // put: only a row that was read is compared at the commit.
        if let (Some(reads), Change::Once(..)) = (&mut open.reads, &write.change) {
            open.transaction.get(&handle, key).map_err(|error| error.to_string())?;
            reads.keys.push(row.clone());
        }
        let grant = self.lock(open, slot, write.family, &row);
        let change = match &write.change {
            Change::Once(key, value) => {
                let committed = || self.state.family(write.family).and_then(|c| c.get(key));
                let is_there = match open.own(&row).next_back() {
                    Some(own) => matches!(own, Change::Put(..)),
                    None => committed().is_some(),
                };
                match is_there {
                    true => Change::SingleDelete(key.clone()),
                    false => Change::Put(key.clone(), *value),
                }
            }
            Change::Merge(key, operand) if !operators::is_merged(write.family) => {
                Change::Put(key.clone(), *operand)
            }
            other => other.clone(),
        };
        let transaction = &mut open.transaction;
        let result = match &change {
            Change::Put(key, value) => transaction.put(&handle, key, value.bytes()),
            Change::Delete(key) => transaction.delete(&handle, key),
            Change::Merge(key, operand) => transaction.merge(&handle, key, operand.bytes()),
            _ => transaction.single_delete(&handle, key),
        };
        if !matches!(grant, Grant::Refused(_)) && !self.is_alive(open) {
            // The transaction cannot be committed any more, and says so as early as it can.
            return match result {
                Err(error) if error.kind() == ErrorKind::Conflict => Ok(()),
                other => expect_kind("a write beside a dropped family", other, ErrorKind::Closed),
            };
        }
        if self.granted(grant, result)?.is_some() {
            open.writes.push((incarnation, Write { family: write.family, change }));
        }
        Ok(())
    }

    fn scan_own(&mut self, open: &mut Open, over: &Over, moves: &[Move]) -> Result<(), String> {
        let Some((handle, incarnation)) = self.handle(over.family) else { return Ok(()) };
        let rows = self.rows_of(open, over.family, incarnation);
        let cursor = open.transaction.cursor(&handle, scan_range(&over.span));
        let mut cursor = cursor.map_err(|error| error.to_string())?;
        if let Some(reads) = &mut open.reads {
            reads.note_span(incarnation, &over.span);
            reads.note_scan(incarnation, &rows, &over.span, moves);
        }
        let mut model = ModelCursor::new(rows, over.span.clone());
        model.check(&mut cursor, moves, &mut self.rows_compared)
    }

    /// Whether all families that a transaction has written to are still there.
    fn is_alive(&self, open: &Open) -> bool {
        let mut writes = open.writes.iter();
        writes.all(|(family, write)| self.state.same_family(write.family, *family).is_some())
    }

    /// What must come of the commit of an optimistic transaction. Bulk ingests count as writes of
    /// everything between their first and last row, and what is remembered is bounded, so a conflict may
    /// come where nothing was read that was written.
    fn judge_reads(&self, open: &Open, reads: &Reads) -> Verdict {
        let Some((at, _)) = &open.snapshot else { return Verdict::MayConflict };
        let has_changed =
            |(family, span): &(u32, Span)| self.changes.has_changed_in(*family, span, *at);
        let is_stale = reads.keys.iter().any(|row| self.changes.has_changed(row, *at))
            || reads.stretches.iter().any(has_changed);
        match is_stale {
            true => Verdict::MustConflict,
            false
                if reads.spans.iter().any(has_changed)
                    || self.changes.has_ingested(*at)
                    || self
                        .changes
                        .may_be_forgotten(*at, self.settings.database.memory_budget_bytes) =>
            {
                Verdict::MayConflict
            }
            false => Verdict::Commits,
        }
    }

    fn commit(&mut self, open: Open, is_synced: bool) -> Result<(), String> {
        let is_alive = |(family, write): &(u32, Write)| {
            self.state.same_family(write.family, *family).is_some()
        };
        let is_gone = !open.writes.iter().all(is_alive);
        let verdict = open.reads.as_ref().map(|reads| self.judge_reads(&open, reads));
        let writes: Vec<Write> = open.writes.iter().map(|(_, write)| write.clone()).collect();
        let meets_lock = open.reads.is_some() && self.meets_lock(&writes);
        self.unwatch(&open);
        let result = match is_synced {
            true => open.transaction.commit_with(Durability::Sync),
            false => open.transaction.commit(),
        };
        if is_gone {
            return expect_kind("a commit to a dropped family", result, ErrorKind::Closed);
        }
        if meets_lock {
            self.tally.count("refusals", 1);
            return expect_kind("a commit to a locked row", result, ErrorKind::LockTimeout);
        }
        if is_synced && self.is_logless() {
            return expect_kind("a sync without a log", result, ErrorKind::InvalidArgument);
        }
        if let Some(verdict) = verdict.filter(|_| !open.writes.is_empty()) {
            self.tally.count("optimistic commits", 1);
            match (verdict, &result) {
                (Verdict::MayConflict, Err(error)) | (Verdict::MustConflict, Err(error))
                    if error.kind() == ErrorKind::Conflict =>
                {
                    self.tally.count("optimistic conflicts", 1);
                    return Ok(());
                }
                (Verdict::MustConflict, _) => {
                    return expect_kind("a commit of stale reads", result, ErrorKind::Conflict);
                }
                _ => {}
            }
        }
        result.map_err(|error| format!("a commit: {error}"))?;
        self.changes.note(open.writes.iter().map(|(family, write)| (*family, &write.change)));
        open.writes.iter().for_each(|(_, write)| self.state.apply(write));
        Ok(())
    }
}
