//! Sessions of engines that read and apply batches, and begin no transactions.
//!
//! Owns: [`Plain`], which makes a [`Session`] of a [`PlainSession`]: calls of a transaction are
//! errors. Where a workload needs transactions, such an engine is wrapped in an external lock.

use super::{
    BatchOp, EngineError, EngineResult, RowVisitor, ScanRange, Session, SpaceId, WriteBatch,
};

/// What a session does without transactions; every call as in [`Session`].
pub trait PlainSession {
    /// As [`Session::get`].
    ///
    /// # Errors
    /// As there.
    fn get(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> EngineResult<bool>;

    /// As [`Session::multi_get`].
    ///
    /// # Errors
    /// As there.
    fn multi_get(
        &mut self,
        space: SpaceId,
        keys: &[&[u8]],
        found: &mut dyn FnMut(usize, &[u8]),
    ) -> EngineResult<()>;

    /// As [`Session::scan`].
    ///
    /// # Errors
    /// As there.
    fn scan(
        &mut self,
        space: SpaceId,
        range: &ScanRange<'_>,
        row: &mut RowVisitor<'_>,
    ) -> EngineResult<u64>;

    /// As [`Session::scan_back`].
    ///
    /// # Errors
    /// As there.
    fn scan_back(
        &mut self,
        space: SpaceId,
        from: &[u8],
        limit: u64,
        row: &mut RowVisitor<'_>,
    ) -> EngineResult<u64>;

    /// As [`Session::write_batch`].
    ///
    /// # Errors
    /// As there.
    fn write_batch(&mut self, batch: &WriteBatch) -> EngineResult<()>;
}

/// A session without transactions.
pub struct Plain<S>(pub S);

impl<S: PlainSession> Session for Plain<S> {
    fn get(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> EngineResult<bool> {
        self.0.get(space, key, value)
    }

    fn multi_get(
        &mut self,
        space: SpaceId,
        keys: &[&[u8]],
        found: &mut dyn FnMut(usize, &[u8]),
    ) -> EngineResult<()> {
        self.0.multi_get(space, keys, found)
    }

    fn scan(
        &mut self,
        space: SpaceId,
        range: &ScanRange<'_>,
        row: &mut RowVisitor<'_>,
    ) -> EngineResult<u64> {
        self.0.scan(space, range, row)
    }

    fn scan_back(
        &mut self,
        space: SpaceId,
        from: &[u8],
        limit: u64,
        row: &mut RowVisitor<'_>,
    ) -> EngineResult<u64> {
        self.0.scan_back(space, from, limit, row)
    }

    fn write_batch(&mut self, batch: &WriteBatch) -> EngineResult<()> {
        self.0.write_batch(batch)
    }

    fn begin(&mut self, _row_group: u64) -> EngineResult<()> {
        Err(EngineError::fatal("this database was opened without transactions"))
    }

    fn get_for_update(
        &mut self,
        _space: SpaceId,
        _key: &[u8],
        _value: &mut Vec<u8>,
    ) -> EngineResult<bool> {
        Err(EngineError::no_transaction())
    }

    fn change(&mut self, _op: BatchOp<'_>) -> EngineResult<()> {
        Err(EngineError::no_transaction())
    }

    fn commit(&mut self) -> EngineResult<()> {
        Err(EngineError::no_transaction())
    }

    fn rollback(&mut self) -> EngineResult<()> {
        Ok(())
    }
}
