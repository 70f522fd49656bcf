//! A database beside its model: every operation is made with both, every answer compared.

use super::copies::Backups;
use super::cursor::{ModelCursor, scan_range};
use super::disk::{DIRECTORY, Disk};
use super::filtered::Filtering;
use super::heard::Heard;
use super::ledger::Before;
use super::transactions::{Changes, Open};
use crate::check::Tally;
use crate::model::{Rows, State};
use crate::operation::{
    CURSOR_SLOTS, Change, FAMILIES, FAMILY_COUNT, IngestWay, Key, Move, Operation, Over,
    SNAPSHOT_SLOTS, Settings, Span, TRANSACTION_SLOTS, TransactionCall, Value, Write, lifetimes,
};
use lithify::{
    CfOptions, ColumnFamily, Cursor, Db, Durability, ErrorKind, Snapshot, TableTransfer,
    TableWriter,
};
use std::path::Path;
use std::sync::Arc;

/// One case under way.
pub(super) struct Session<'t> {
    pub(super) disk: Disk,
    /// Decides which dictionaries tables are written with.
    pub(super) seed: u64,
    pub(super) filtering: Filtering,
    pub(super) heard: Heard,
    pub(super) settings: Settings,
    pub(super) db: Option<Db>,
    pub(super) handles: [Option<ColumnFamily>; FAMILY_COUNT],
    pub(super) state: State,
    pub(super) snapshots: [Option<(Snapshot, State)>; SNAPSHOT_SLOTS],
    pub(super) cursors: [Option<(Cursor, ModelCursor)>; CURSOR_SLOTS],
    pub(super) transactions: [Option<Open>; TRANSACTION_SLOTS],
    pub(super) changes: Changes,
    pub(super) backups: Backups,
    pub(super) before: Before,
    pub(super) rows_compared: u64,
    pub(super) tally: &'t mut Tally,
    /// Number of the next table file, or process end.
    pub(super) next_number: u64,
}

/// What must be refused with that kind of error.
pub(super) fn expect_kind<T>(
    what: &str,
    result: lithify::Result<T>,
    kind: ErrorKind,
) -> Result<(), String> {
    match result {
        Err(error) if error.kind() == kind => Ok(()),
        Err(error) => Err(format!("{what}: must be refused as {kind:?}, not by {error}")),
        Ok(_) => Err(format!("{what}: must be refused as {kind:?}, and was not")),
    }
}

/// Compares the value of a key.
pub(super) fn same_value(
    key: &[u8],
    found: Option<&[u8]>,
    expected: Option<&[u8]>,
) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    let text = |value: Option<&[u8]>| match value {
        Some(value) => format!("{} bytes from {:x?}", value.len(), &value[..value.len().min(8)]),
        None => "nothing".to_string(),
    };
    let key = key.escape_ascii();
    Err(format!("the value of \"{key}\" is {}, not {}", text(found), text(expected)))
}

pub(super) fn text(error: lithify::Error) -> String {
    error.to_string()
}

impl Session<'_> {
    pub(super) fn db(&self) -> &Db {
        // INVARIANT: only `end` takes it, and gives it back or ends the case.
        self.db.as_ref().expect("an open database")
    }

    /// Handle and incarnation of the family in a slot.
    pub(super) fn handle(&self, slot: usize) -> Option<(ColumnFamily, u32)> {
        let handle = self.handles[slot].clone()?;
        Some((handle, self.state.family(slot)?.incarnation()))
    }

    pub(super) fn is_logless(&self) -> bool {
        self.settings.database.durability == Durability::None
    }

    /// Makes an operation with both; an answer that differs, or an error that should not be, ends
    /// the case.
    pub(super) fn make(&mut self, operation: &Operation) -> Result<(), String> {
        self.make_one(operation)?;
        self.heard.check()?;
        self.follow_filter()
    }

    fn make_one(&mut self, operation: &Operation) -> Result<(), String> {
        match operation {
            Operation::Write(write) => self.write(write),
            Operation::WriteIf { family, key, condition } => self.write_if(*family, key, condition),
            Operation::Batch { writes, is_synced } => self.batch(writes, *is_synced),
            Operation::Ingest { family, rows, way } => self.ingest(*family, rows, *way),
            Operation::Transaction { slot, call } => {
                if let TransactionCall::Begin { has_snapshot: true, .. }
                | TransactionCall::Begin { is_optimistic: true, .. } = call
                {
                    self.settle_filter()?;
                }
                self.transact(*slot, call)
            }
            Operation::TakeSnapshot(slot) => {
                self.settle_filter()?;
                self.snapshots[*slot] = Some((self.db().snapshot(), self.state.clone()));
                Ok(())
            }
            Operation::ReleaseSnapshot(slot) => {
                self.snapshots[*slot] = None;
                Ok(())
            }
            Operation::Get { family, key, at } => self.get(*family, key, *at),
            Operation::MultiGet { family, keys, at } => self.multi_get(*family, keys, *at),
            Operation::Scan(over, moves) => match self.open_cursor(over)? {
                Some((mut cursor, mut model)) => {
                    model.check(&mut cursor, moves, &mut self.rows_compared)
                }
                None => Ok(()),
            },
            Operation::HoldCursor(slot, over) => {
                self.cursors[*slot] = self.open_cursor(over)?;
                Ok(())
            }
            Operation::MoveCursor(slot, moves) => self.move_cursor(*slot, moves),
            Operation::DropCursor(slot) => {
                self.cursors[*slot] = None;
                Ok(())
            }
            Operation::CreateFamily(slot, options) | Operation::ChangeFamily(slot, options) => {
                self.set_family(*slot, options)
            }
            Operation::DropFamily(slot) => self.drop_family(*slot),
            Operation::Flush(None) => self.db().flush().map_err(text),
            Operation::Flush(Some(slot)) => match self.handle(*slot) {
                Some((handle, _)) => handle.flush().map_err(text),
                None => Ok(()),
            },
            Operation::Compact { family, range } => self.compact(*family, range.as_ref()),
            Operation::Settle => self.db().wait_for_compaction().map_err(text),
            Operation::Sync => match self.is_logless() {
                true => expect_kind("a sync", self.db().sync(), ErrorKind::InvalidArgument),
                false => self.db().sync().map_err(text),
            },
            Operation::Advance(by_us) => {
                self.disk.advance_us(*by_us);
                Ok(())
            }
            Operation::Age => {
                self.age();
                Ok(())
            }
            Operation::CompareAll => self.compare_all(true),
            Operation::Copy(way, settings) => self.copy(*way, settings),
            Operation::Reopen(ending, settings) => self.reopen(*ending, settings),
        }
    }

    /// Whether a write by itself must wait in vain for a row that a transaction has locked.
    pub(super) fn meets_lock(&self, writes: &[Write]) -> bool {
        writes.iter().any(|write| {
            let key = match &write.change {
                Change::Put(key, _)
                | Change::Delete(key)
                | Change::SingleDelete(key)
                | Change::Merge(key, _)
                | Change::Once(key, _) => key,
                Change::DeleteRange(..) => return false,
            };
            let content = self.state.family(write.family);
            let row = content.map(|content| (content.incarnation(), key.clone()));
            row.is_some_and(|row| self.is_locked(&row, None))
        })
    }

    /// What comes of writes that were made with the engine: nothing if they had to be refused.
    fn written(
        &mut self,
        writes: &[Write],
        is_synced: bool,
        result: lithify::Result<()>,
    ) -> Result<(), String> {
        if self.meets_lock(writes) {
            self.tally.count("refusals", 1);
            return expect_kind("a write to a locked row", result, ErrorKind::LockTimeout);
        }
        if is_synced && self.is_logless() {
            return expect_kind("a sync without a log", result, ErrorKind::InvalidArgument);
        }
        result.map_err(text)?;
        self.note_written(writes);
        Ok(())
    }

    pub(super) fn note_written(&mut self, writes: &[Write]) {
        let incarnation = |slot| self.state.family(slot).map_or(0, |content| content.incarnation());
        let noted = writes.iter().map(|write| (incarnation(write.family), &write.change));
        self.changes.note(noted);
        writes.iter().for_each(|write| self.state.apply(write));
    }

    fn write(&mut self, write: &Write) -> Result<(), String> {
        let resolved = self.state.resolve(std::slice::from_ref(write));
        let Some(write) = resolved.first() else { return Ok(()) };
        let Some(handle) = &self.handles[write.family] else { return Ok(()) };
        let result = match &write.change {
            Change::Put(key, value) => handle.put(key, value.bytes()),
            Change::Delete(key) => handle.delete(key),
            Change::DeleteRange(start, end) => handle.delete_range(start, end),
            Change::SingleDelete(key) | Change::Once(key, _) => handle.single_delete(key),
            Change::Merge(key, operand) => handle.merge(key, operand.bytes()),
        };
        self.written(&resolved, false, result)
    }

    fn batch(&mut self, writes: &[Write], is_synced: bool) -> Result<(), String> {
        let resolved = self.state.resolve(writes);
        let mut batch = self.db().batch();
        for write in &resolved {
            let Some(handle) = &self.handles[write.family] else { continue };
            match &write.change {
                Change::Put(key, value) => batch.put(handle, key, value.bytes()),
                Change::Delete(key) => batch.delete(handle, key),
                Change::DeleteRange(start, end) => batch.delete_range(handle, start, end),
                Change::SingleDelete(key) | Change::Once(key, _) => {
                    batch.single_delete(handle, key)
                }
                Change::Merge(key, operand) => batch.merge(handle, key, operand.bytes()),
            };
        }
        let result = match is_synced {
            true => batch.commit_with(Durability::Sync),
            false => batch.commit(),
        };
        self.written(&resolved, is_synced, result)
    }

    fn ingest(
        &mut self,
        slot: usize,
        rows: &[(Key, Option<Value>)],
        way: IngestWay,
    ) -> Result<(), String> {
        let Some((handle, _)) = self.handle(slot) else { return Ok(()) };
        let is_slow = way == IngestWay::SlowRows && self.disk.has_virtual_time();
        match way {
            IngestWay::Rows | IngestWay::SlowRows | IngestWay::GivenUp => {
                let mut ingest = handle.ingest().map_err(text)?;
                for (key, value) in rows {
                    match value {
                        Some(value) => ingest.put(key, value.bytes()),
                        None => ingest.delete(key),
                    }
                    .map_err(text)?;
                }
                if let Some((key, _)) = rows.last() {
                    let again = ingest.put(key, b"again");
                    expect_kind("a key twice", again, ErrorKind::InvalidArgument)?;
                }
                if way == IngestWay::GivenUp {
                    return Ok(());
                }
                if is_slow {
                    self.age();
                    self.write_each_third(slot, rows)?;
                }
                ingest.commit().map_err(text)?;
            }
            IngestWay::LinkedTable | IngestWay::CopiedTable => {
                self.ingest_table(&handle, rows, way).map_err(text)?;
            }
        }
        let change = |(key, value): &(Key, Option<Value>)| match value {
            Some(value) => Change::Put(key.clone(), *value),
            None => Change::Delete(key.clone()),
        };
        let writes: Vec<Write> =
            rows.iter().map(|row| Write { family: slot, change: change(row) }).collect();
        self.note_written(&writes);
        if is_slow {
            // They are as old as they were given.
            rows.iter().for_each(|(key, _)| self.state.backdate(slot, key));
        }
        self.changes.note_ingest();
        Ok(())
    }

    /// Half of the time to live passes.
    fn age(&mut self) {
        if self.disk.has_virtual_time() {
            self.disk.advance_us(lifetimes::HALF_LIFE_US);
            self.state.age();
        }
    }

    /// Writes some of the keys that an ingest has been given.
    fn write_each_third(
        &mut self,
        slot: usize,
        rows: &[(Key, Option<Value>)],
    ) -> Result<(), String> {
        let value = |value: &Option<Value>| value.unwrap_or(Value { seed: 3, length: 9 });
        rows.iter().step_by(3).try_for_each(|(key, old)| {
            self.write(&Write { family: slot, change: Change::Put(key.clone(), value(old)) })
        })
    }

    fn ingest_table(
        &mut self,
        handle: &ColumnFamily,
        rows: &[(Key, Option<Value>)],
        way: IngestWay,
    ) -> lithify::Result<()> {
        self.next_number += 1;
        let path = format!("/rows{}.sst", self.next_number);
        let world = self.disk.world_of_others();
        let mut writer = TableWriter::create_in(&path, &handle.options(), world.clone())?;
        for (key, value) in rows {
            match value {
                Some(value) => writer.put(key, value.bytes())?,
                None => writer.delete(key)?,
            }
        }
        writer.finish()?;
        let transfer = match way {
            IngestWay::LinkedTable => TableTransfer::Link,
            _ => TableTransfer::Copy,
        };
        handle.ingest_tables(&[&path], transfer)?;
        world.files.remove(Path::new(&path))
    }

    /// The rows of a family now or at a snapshot that is held; `None` for an empty slot.
    fn rows_at(&self, slot: usize, at: Option<usize>) -> Option<Arc<Rows>> {
        let now = self.state.family(slot)?;
        let Some(at) = at else { return Some(Arc::clone(now.rows())) };
        let (_, state) = self.snapshots[at].as_ref()?;
        let then = state.same_family(slot, now.incarnation());
        Some(then.map_or_else(Default::default, |content| Arc::clone(content.rows())))
    }

    fn get(&mut self, slot: usize, key: &[u8], at: Option<usize>) -> Result<(), String> {
        let (Some(handle), Some(rows)) = (&self.handles[slot], self.rows_at(slot, at)) else {
            return Ok(());
        };
        let found = match at.and_then(|at| self.snapshots[at].as_ref()) {
            Some((snapshot, _)) => handle.get_at(key, snapshot),
            None => handle.get(key),
        };
        self.rows_compared += 1;
        same_value(key, found.map_err(text)?.as_deref(), rows.get(key).map(|value| &value[..]))
    }

    fn multi_get(&mut self, slot: usize, keys: &[Key], at: Option<usize>) -> Result<(), String> {
        let (Some(handle), Some(rows)) = (&self.handles[slot], self.rows_at(slot, at)) else {
            return Ok(());
        };
        let found = match at.and_then(|at| self.snapshots[at].as_ref()) {
            Some((snapshot, _)) => handle.multi_get_at(keys, snapshot),
            None => handle.multi_get(keys),
        };
        let found = found.map_err(text)?;
        if found.len() != keys.len() {
            return Err(format!("{} answers to {} keys", found.len(), keys.len()));
        }
        self.rows_compared += keys.len() as u64;
        keys.iter().zip(&found).try_for_each(|(key, value)| {
            same_value(key, value.as_deref(), rows.get(&key[..]).map(|value| &value[..]))
        })
    }

    fn open_cursor(&self, over: &Over) -> Result<Option<(Cursor, ModelCursor)>, String> {
        let (Some(handle), Some(rows)) =
            (&self.handles[over.family], self.rows_at(over.family, over.at))
        else {
            return Ok(None);
        };
        let range = scan_range(&over.span);
        let cursor = match over.at.and_then(|at| self.snapshots[at].as_ref()) {
            Some((snapshot, _)) => handle.cursor_at(range, snapshot),
            None => handle.cursor(range),
        };
        Ok(Some((cursor.map_err(text)?, ModelCursor::new(rows, over.span.clone()))))
    }

    fn move_cursor(&mut self, slot: usize, moves: &[Move]) -> Result<(), String> {
        match &mut self.cursors[slot] {
            Some((cursor, model)) => model.check(cursor, moves, &mut self.rows_compared),
            None => Ok(()),
        }
    }

    fn set_family(&mut self, slot: usize, options: &CfOptions) -> Result<(), String> {
        let handle = self.db().column_family(FAMILIES[slot], options.clone()).map_err(text)?;
        if handle.options() != *options {
            return Err(format!("the options of a family are {:?}", handle.options()));
        }
        if self.state.family(slot).is_none() {
            self.state.create(slot);
        }
        self.supply(&handle, slot).map_err(text)?;
        self.handles[slot] = Some(handle);
        Ok(())
    }

    fn drop_family(&mut self, slot: usize) -> Result<(), String> {
        self.heard.note_dropped(FAMILIES[slot]);
        let result = self.db().drop_column_family(FAMILIES[slot]);
        let Some(handle) = self.handles[slot].take() else {
            return expect_kind("a drop of nothing", result, ErrorKind::NotFound);
        };
        result.map_err(text)?;
        self.state.drop_family(slot);
        expect_kind("a get in a dropped family", handle.get(b"k"), ErrorKind::Closed)?;
        expect_kind("a put in a dropped family", handle.put(b"k", b"v"), ErrorKind::Closed)
    }

    /// Compares all rows both ways, now and, if wanted, at every snapshot that is held.
    pub(super) fn compare_all(&mut self, has_snapshots: bool) -> Result<(), String> {
        let held = (0..SNAPSHOT_SLOTS).filter(|at| has_snapshots && self.snapshots[*at].is_some());
        let places: Vec<Option<usize>> = std::iter::once(None).chain(held.map(Some)).collect();
        for (slot, at) in places.iter().flat_map(|at| (0..FAMILY_COUNT).map(|slot| (slot, *at))) {
            let over = Over { family: slot, span: Span::All, at };
            let Some((mut cursor, mut model)) = self.open_cursor(&over)? else { continue };
            let all = [Move::Next(u32::MAX), Move::Previous(u32::MAX)];
            model
                .check(&mut cursor, &all, &mut self.rows_compared)
                .map_err(|what| format!("all rows of {}, at {at:?}: {what}", FAMILIES[slot]))?;
        }
        Ok(())
    }

    /// Where the database is.
    pub(super) fn directory() -> &'static Path {
        Path::new(DIRECTORY)
    }
}
