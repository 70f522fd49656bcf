//! A thread's view of RocksDB.

use lithify_lab::adapter::window::Window;
use lithify_lab::adapter::{
    BatchOp, EngineError, EngineResult, RowVisitor, ScanRange, Session, SpaceId, SpaceSpec,
    WriteBatch,
};

use super::database::Database;
use super::functions::Functions;
use super::options::ReadView;
use super::writes::{Batch, Transaction};

/// A session: its read options, its batch, and the memory of its transaction.
pub struct RocksSession<'a> {
    functions: &'static Functions,
    database: &'a Database,
    spaces: &'a [SpaceSpec],
    view: ReadView,
    batch: Batch<'a>,
    /// The transaction; kept when it has ended, so that the next one reuses its memory.
    transaction: Option<Transaction<'a>>,
    is_open: bool,
    end: Vec<u8>,
}

impl<'a> RocksSession<'a> {
    /// A session of `database`, whose column families are `spaces`.
    ///
    /// # Errors
    /// The library makes no objects.
    pub fn new(
        functions: &'static Functions,
        database: &'a Database,
        spaces: &'a [SpaceSpec],
    ) -> EngineResult<RocksSession<'a>> {
        Ok(RocksSession {
            functions,
            database,
            spaces,
            view: database.read_view()?,
            batch: database.batch()?,
            transaction: None,
            is_open: false,
            end: Vec::new(),
        })
    }

    /// Applies a batch as a transaction: under locks the library refuses batches that hold single
    /// deletes.
    fn write_in_transaction(&self, batch: &WriteBatch) -> EngineResult<()> {
        let mut own = self.database.begin(None)?;
        batch.ops().try_for_each(|op| own.change(op))?;
        own.commit()
    }

    fn open(&mut self) -> EngineResult<(&mut Transaction<'a>, &ReadView)> {
        match &mut self.transaction {
            Some(transaction) if self.is_open => Ok((transaction, &self.view)),
            _ => Err(EngineError::no_transaction()),
        }
    }
}

fn is_single_delete(op: BatchOp<'_>) -> bool {
    matches!(op, BatchOp::SingleDelete(..))
}

impl Session for RocksSession<'_> {
    fn get(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> EngineResult<bool> {
        self.database.get(space, &self.view, key, value)
    }

    fn multi_get(
        &mut self,
        space: SpaceId,
        keys: &[&[u8]],
        found: &mut dyn FnMut(usize, &[u8]),
    ) -> EngineResult<()> {
        self.database.multi_get(space, &self.view, keys, found)
    }

    fn scan(
        &mut self,
        space: SpaceId,
        range: &ScanRange<'_>,
        row: &mut RowVisitor<'_>,
    ) -> EngineResult<u64> {
        let Some(mut window) = Window::new(range, row) else { return Ok(0) };
        let prefix_bytes = self.spaces.get(space.index()).and_then(|spec| spec.prefix_bytes);
        // Filters hold prefixes of this length; a scan over several of them must not ask them.
        let one_prefix = prefix_bytes.is_some_and(|length| range.prefix.len() >= length);
        range.bound(&mut self.end);
        let first = range.first().max(range.prefix);
        let scan = self.view.scan(self.functions, &self.end, one_prefix);
        let mut iterator = self.database.iterator(space, &scan)?;
        iterator.seek(first);
        while let Some((key, value)) = iterator.row()
            && window.offer(key, value).is_continue()
        {
            iterator.advance();
        }
        iterator.check()?;
        Ok(window.visited())
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
        let scan = self.view.scan(self.functions, &[], false);
        let mut iterator = self.database.iterator(space, &scan)?;
        iterator.seek_for_prev(from);
        while let Some((key, value)) = iterator.row()
            && window.offer(key, value).is_continue()
        {
            iterator.retreat();
        }
        iterator.check()?;
        Ok(window.visited())
    }

    fn write_batch(&mut self, batch: &WriteBatch) -> EngineResult<()> {
        let unlocked = self.database.unlocked();
        if unlocked.is_none() && batch.ops().any(is_single_delete) {
            return self.write_in_transaction(batch);
        }
        self.batch.clear();
        batch.ops().try_for_each(|op| self.batch.change(op))?;
        self.database.write(&mut self.batch, unlocked)
    }

    fn begin(&mut self, _row_group: u64) -> EngineResult<()> {
        self.rollback()?;
        self.transaction = Some(self.database.begin(self.transaction.take())?);
        self.is_open = true;
        Ok(())
    }

    fn get_for_update(
        &mut self,
        space: SpaceId,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> EngineResult<bool> {
        value.clear();
        let (transaction, view) = self.open()?;
        transaction.get_for_update(space, view, key, value)
    }

    fn change(&mut self, op: BatchOp<'_>) -> EngineResult<()> {
        self.open()?.0.change(op)
    }

    fn commit(&mut self) -> EngineResult<()> {
        let result = self.open()?.0.commit();
        if result.is_err() {
            // Nothing was applied; the locks go with the transaction.
            self.transaction = None;
        }
        self.is_open = false;
        result
    }

    fn rollback(&mut self) -> EngineResult<()> {
        if !std::mem::replace(&mut self.is_open, false) {
            return Ok(());
        }
        match &mut self.transaction {
            Some(transaction) => transaction.rollback(),
            None => Ok(()),
        }
    }
}
