//! A thread's view of WiredTiger.
//!
//! WiredTiger has snapshots and no locks: a transaction that meets a row which another one has
//! changed since its snapshot, or is changing, is told to begin again. So "locked until the end"
//! means here: whoever else touched the row as a writer, one of the two begins again.
//!
//! 1. A row that is there is reserved, which counts as a change for the others and is not logged.
//! 2. A row that is absent cannot be reserved. It is remembered; when the transaction has not
//!    written it by its end, it is put and removed just before the commit, which fails if another
//!    transaction made the row meanwhile.
//! 3. A session that had to begin again waits first, a little longer each time, so that the other
//!    transaction can end.

use std::time::{Duration, Instant};

use lithify_lab::adapter::window::Window;
use lithify_lab::adapter::{
    BatchOp, EngineError, EngineResult, RowVisitor, ScanRange, Session, SpaceId, WriteBatch,
};

use super::connection::Database;
use super::cursors::Cursors;

/// How long a batch is tried again after conflicts: as long as other engines wait for a lock.
const BATCH_TIMEOUT: Duration = Duration::from_secs(1);

/// Conflicts in a row after which a session begins to sleep; before, it lets others run.
const YIELDS: u32 = 4;

/// The first sleep after a conflict and the longest.
const SLEEP_FIRST: Duration = Duration::from_micros(50);
const SLEEP_MAX: Duration = Duration::from_millis(5);

/// A session: its cursors and the state of its transaction.
pub struct WiredTigerSession<'a> {
    cursors: Cursors<'a>,
    is_open: bool,
    absent: AbsentRows,
    /// Transactions in a row that met a conflict.
    conflicts: u32,
    value: Vec<u8>,
}

/// Rows that the open transaction has locked and found absent, until it writes them.
#[derive(Default)]
struct AbsentRows {
    rows: Vec<(SpaceId, Vec<u8>)>,
}

impl AbsentRows {
    fn add(&mut self, space: SpaceId, key: &[u8]) {
        if self.position(space, key).is_none() {
            self.rows.push((space, key.to_vec()));
        }
    }

    fn written(&mut self, space: SpaceId, key: &[u8]) {
        if let Some(position) = self.position(space, key) {
            self.rows.swap_remove(position);
        }
    }

    fn position(&self, space: SpaceId, key: &[u8]) -> Option<usize> {
        self.rows.iter().position(|(own_space, own_key)| *own_space == space && own_key == key)
    }
}

/// Lets other transactions go on after so many conflicts in a row.
fn back_off(conflicts: u32) {
    match conflicts.checked_sub(YIELDS) {
        None if conflicts == 0 => {}
        None => std::thread::yield_now(),
        Some(more) => {
            std::thread::sleep((SLEEP_FIRST * (1 << more.min(10))).min(SLEEP_MAX));
        }
    }
}

impl<'a> WiredTigerSession<'a> {
    /// A session of `database`.
    ///
    /// # Errors
    /// The library's.
    pub fn new(database: &'a Database) -> EngineResult<WiredTigerSession<'a>> {
        Ok(WiredTigerSession {
            cursors: Cursors::open(database)?,
            is_open: false,
            absent: AbsentRows::default(),
            conflicts: 0,
            value: Vec::new(),
        })
    }

    fn expect_open(&self) -> EngineResult<()> {
        if self.is_open { Ok(()) } else { Err(EngineError::no_transaction()) }
    }

    /// Counts a conflict for the next begin.
    fn noted<T>(&mut self, result: EngineResult<T>) -> EngineResult<T> {
        if result.as_ref().is_err_and(EngineError::is_retryable) {
            self.conflicts = self.conflicts.saturating_add(1);
        }
        result
    }

    fn apply(&mut self, op: BatchOp<'_>) -> EngineResult<()> {
        match op {
            BatchOp::Put(space, key, value) => self.cursors.put(space, key, value),
            BatchOp::Delete(space, key) | BatchOp::SingleDelete(space, key) => {
                self.cursors.remove(space, key)
            }
        }
    }

    /// Reads over one snapshot: that of the open transaction, or one of now.
    fn over_one_snapshot<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> EngineResult<T>,
    ) -> EngineResult<T> {
        if self.is_open {
            return read(self);
        }
        self.cursors.begin()?;
        let result = read(self);
        // There is nothing to undo; this only lets the snapshot go.
        let ended = self.cursors.rollback();
        result.and_then(|result| ended.map(|()| result))
    }

    fn apply_all(&mut self, batch: &WriteBatch) -> EngineResult<()> {
        self.cursors.begin()?;
        let applied = batch.ops().try_for_each(|op| self.apply(op));
        if applied.is_err() {
            // The cause is worth more than what this may add.
            let _ = self.cursors.rollback();
            return applied;
        }
        self.cursors.commit()
    }

    /// Makes absent rows count as changed.
    fn settle_absent(&mut self) -> EngineResult<()> {
        while let Some((space, key)) = self.absent.rows.pop() {
            self.cursors.put(space, &key, &[])?;
            self.cursors.remove(space, &key)?;
        }
        Ok(())
    }
}

impl Session for WiredTigerSession<'_> {
    fn get(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> EngineResult<bool> {
        self.cursors.get(space, key, value)
    }

    fn multi_get(
        &mut self,
        space: SpaceId,
        keys: &[&[u8]],
        found: &mut dyn FnMut(usize, &[u8]),
    ) -> EngineResult<()> {
        self.over_one_snapshot(|this| {
            for (index, key) in keys.iter().enumerate() {
                if this.cursors.get(space, key, &mut this.value)? {
                    found(index, &this.value);
                }
            }
            Ok(())
        })
    }

    fn scan(
        &mut self,
        space: SpaceId,
        range: &ScanRange<'_>,
        row: &mut RowVisitor<'_>,
    ) -> EngineResult<u64> {
        let Some(mut window) = Window::new(range, row) else { return Ok(0) };
        let first = range.first().max(range.prefix);
        self.over_one_snapshot(|this| {
            let mut walk = this.cursors.walk(space, first)?;
            while let Some((key, value)) = walk.row()?
                && window.offer(key, value).is_continue()
            {
                walk.advance()?;
            }
            Ok(window.visited())
        })
    }

    fn scan_back(
        &mut self,
        space: SpaceId,
        from: &[u8],
        limit: u64,
        row: &mut RowVisitor<'_>,
    ) -> EngineResult<u64> {
        let range = ScanRange::first_rows(limit);
        let Some(mut window) = Window::new(&range, row) else { return Ok(0) };
        self.over_one_snapshot(|this| {
            let mut walk = this.cursors.walk_back(space, from)?;
            while let Some((key, value)) = walk.row()?
                && window.offer(key, value).is_continue()
            {
                walk.retreat()?;
            }
            Ok(window.visited())
        })
    }

    fn write_batch(&mut self, batch: &WriteBatch) -> EngineResult<()> {
        if self.is_open {
            return Err(EngineError::fatal("a transaction is open already"));
        }
        let mut ops = batch.ops();
        let (Some(first), second) = (ops.next(), ops.next()) else { return Ok(()) };
        if second.is_none() {
            // The library makes a change on its own a transaction, and tries it again by itself.
            return self.apply(first);
        }
        let (began, mut conflicts) = (Instant::now(), 0);
        loop {
            match self.apply_all(batch) {
                Err(error) if error.is_retryable() && began.elapsed() < BATCH_TIMEOUT => {
                    conflicts += 1;
                    back_off(conflicts);
                }
                result => return result,
            }
        }
    }

    fn begin(&mut self, _row_group: u64) -> EngineResult<()> {
        self.rollback()?;
        back_off(self.conflicts);
        self.cursors.begin()?;
        self.is_open = true;
        Ok(())
    }

    fn get_for_update(
        &mut self,
        space: SpaceId,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> EngineResult<bool> {
        self.expect_open()?;
        let found = self.cursors.reserve(space, key, value);
        let found = self.noted(found)?;
        if !found {
            self.absent.add(space, key);
        }
        Ok(found)
    }

    fn change(&mut self, op: BatchOp<'_>) -> EngineResult<()> {
        self.expect_open()?;
        let (space, key) = op.row();
        if matches!(op, BatchOp::Put(..)) {
            self.absent.written(space, key);
        }
        let applied = self.apply(op);
        self.noted(applied)
    }

    fn commit(&mut self) -> EngineResult<()> {
        self.expect_open()?;
        let settled = self.settle_absent();
        if self.noted(settled.clone()).is_err() {
            // The cause is worth more than what this may add.
            let _ = self.rollback();
            return settled;
        }
        self.is_open = false;
        let committed = self.cursors.commit();
        if committed.is_ok() {
            self.conflicts = 0;
        }
        self.noted(committed)
    }

    fn rollback(&mut self) -> EngineResult<()> {
        self.absent.rows.clear();
        if std::mem::replace(&mut self.is_open, false) { self.cursors.rollback() } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_rows_until_they_are_written() {
        let mut absent = AbsentRows::default();
        let (one, two) = (SpaceId(0), SpaceId(1));
        absent.add(one, b"a");
        absent.add(one, b"a");
        absent.add(two, b"a");
        absent.add(one, b"b");
        assert_eq!(absent.rows.len(), 3);
        absent.written(one, b"a");
        absent.written(one, b"c");
        assert!(absent.position(one, b"a").is_none());
        assert!(absent.position(two, b"a").is_some() && absent.position(one, b"b").is_some());
    }
}
