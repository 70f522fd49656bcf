//! Transactions for engines that have none: one external lock per row group.
//!
//! [`ExternalLock`] wraps an engine whose sessions can read and apply batches atomically. `begin`
//! takes the lock of the row group's stripe, writes are gathered in a batch, `commit` applies it
//! and frees the lock. Groups share stripes by hash, so unrelated groups may wait for each other;
//! every report of such an engine carries the label "external lock".
//!
//! Does not: protect rows against writers that do not begin a transaction, or lock two groups.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::adapter::{
    BatchOp, Capabilities, Engine, EngineError, EngineResult, EngineStatistics, RowVisitor,
    ScanRange, Session, SpaceId, WriteBatch,
};

/// Enough that distinct groups rarely meet: 64 threads make 2016 pairs, half of one on one stripe.
const STRIPES: usize = 4096;

/// An engine whose transactions run under an external striped lock.
pub struct ExternalLock<E> {
    inner: E,
    stripes: Vec<Mutex<()>>,
}

impl<E: Engine> ExternalLock<E> {
    /// Wraps `inner`, whose own transaction calls are never used.
    pub fn new(inner: E) -> Self {
        ExternalLock { inner, stripes: (0..STRIPES).map(|_| Mutex::new(())).collect() }
    }
}

impl<E: Engine> Engine for ExternalLock<E> {
    fn name(&self) -> String {
        self.inner.name()
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = self.inner.capabilities();
        capabilities.transactions = false;
        capabilities.labels.push("external lock".to_owned());
        capabilities
    }

    fn options(&self) -> serde_json::Value {
        self.inner.options()
    }

    fn session(&self) -> EngineResult<Box<dyn Session + '_>> {
        Ok(Box::new(LockingSession {
            inner: self.inner.session()?,
            stripes: &self.stripes,
            held: None,
            batch: WriteBatch::new(),
        }))
    }

    fn flush(&self) -> EngineResult<()> {
        self.inner.flush()
    }

    fn wait_for_compaction(&self) -> EngineResult<()> {
        self.inner.wait_for_compaction()
    }

    fn statistics(&self) -> EngineResult<EngineStatistics> {
        self.inner.statistics()
    }

    fn close(self: Box<Self>) -> EngineResult<()> {
        Box::new(self.inner).close()
    }
}

struct LockingSession<'a> {
    inner: Box<dyn Session + 'a>,
    stripes: &'a [Mutex<()>],
    held: Option<MutexGuard<'a, ()>>,
    batch: WriteBatch,
}

impl LockingSession<'_> {
    fn open_batch(&mut self) -> EngineResult<&mut WriteBatch> {
        if self.held.is_none() {
            return Err(EngineError::fatal("no transaction was begun"));
        }
        Ok(&mut self.batch)
    }
}

impl Session for LockingSession<'_> {
    fn get(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> EngineResult<bool> {
        self.inner.get(space, key, value)
    }

    fn multi_get(
        &mut self,
        space: SpaceId,
        keys: &[&[u8]],
        found: &mut dyn FnMut(usize, &[u8]),
    ) -> EngineResult<()> {
        self.inner.multi_get(space, keys, found)
    }

    fn scan(
        &mut self,
        space: SpaceId,
        range: &ScanRange<'_>,
        row: &mut RowVisitor<'_>,
    ) -> EngineResult<u64> {
        self.inner.scan(space, range, row)
    }

    fn write_batch(&mut self, batch: &WriteBatch) -> EngineResult<()> {
        self.inner.write_batch(batch)
    }

    fn begin(&mut self, row_group: u64) -> EngineResult<()> {
        if self.held.is_some() {
            return Err(EngineError::fatal("a transaction is open already"));
        }
        // Fibonacci hashing: neighbouring ids land on distant stripes.
        let hash = row_group.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let stripe = &self.stripes[hash as usize % self.stripes.len()];
        // The lock guards no data of its own, so a panicked holder leaves nothing half done here.
        self.held = Some(stripe.lock().unwrap_or_else(PoisonError::into_inner));
        self.batch.clear();
        Ok(())
    }

    fn get_for_update(
        &mut self,
        space: SpaceId,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> EngineResult<bool> {
        match self.open_batch()?.latest(space, key) {
            Some(BatchOp::Put(_, _, own)) => {
                value.clear();
                value.extend_from_slice(own);
                Ok(true)
            }
            Some(_) => Ok(false),
            None => self.inner.get(space, key, value),
        }
    }

    fn put(&mut self, space: SpaceId, key: &[u8], value: &[u8]) -> EngineResult<()> {
        self.open_batch()?.put(space, key, value);
        Ok(())
    }

    fn delete(&mut self, space: SpaceId, key: &[u8]) -> EngineResult<()> {
        self.open_batch()?.delete(space, key);
        Ok(())
    }

    fn single_delete(&mut self, space: SpaceId, key: &[u8]) -> EngineResult<()> {
        self.open_batch()?.single_delete(space, key);
        Ok(())
    }

    fn commit(&mut self) -> EngineResult<()> {
        self.open_batch()?;
        let result =
            if self.batch.is_empty() { Ok(()) } else { self.inner.write_batch(&self.batch) };
        self.held = None;
        result
    }

    fn rollback(&mut self) -> EngineResult<()> {
        self.held = None;
        Ok(())
    }
}
