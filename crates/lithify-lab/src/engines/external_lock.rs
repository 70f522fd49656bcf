//! Transactions for engines that have none: one external lock per row group.
//!
//! Owns: the locks ([`Stripes`]), which an engine may also take itself, and [`ExternalLock`]. That
//! one wraps an engine whose sessions can read and apply batches atomically. `begin` takes the lock
//! of the row group's stripe, writes are gathered in a batch, `commit` applies it and frees the lock.
//! Groups share stripes by hash, so unrelated groups may wait for each other; every report of such an
//! engine carries the label "external lock".
//!
//! Does not: protect rows against writers that do not begin a transaction, or lock two groups.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::adapter::layer::{EngineLayer, SessionLayer};
use crate::adapter::{
    BatchOp, Capabilities, Engine, EngineError, EngineResult, Session, SpaceId, WriteBatch,
};

/// Enough that distinct groups rarely meet: 64 threads make 2016 pairs, half of one on one stripe.
const STRIPES: usize = 4096;

/// Locks of row groups.
#[derive(Debug)]
pub struct Stripes(Vec<Mutex<()>>);

impl Default for Stripes {
    fn default() -> Self {
        Stripes((0..STRIPES).map(|_| Mutex::new(())).collect())
    }
}

impl Stripes {
    /// Waits for the lock of a group and holds it until the guard is dropped.
    pub fn lock(&self, row_group: u64) -> MutexGuard<'_, ()> {
        // Fibonacci hashing: neighbouring ids land on distant stripes.
        let hash = row_group.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let stripe = &self.0[hash as usize % self.0.len()];
        // The lock guards no data of its own, so a panicked holder leaves nothing half done here.
        stripe.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An engine whose transactions run under an external striped lock.
pub struct ExternalLock<E> {
    inner: E,
    stripes: Stripes,
}

impl<E: Engine> ExternalLock<E> {
    /// Wraps `inner`, whose own transaction calls are never used.
    pub fn new(inner: E) -> Self {
        ExternalLock { inner, stripes: Stripes::default() }
    }
}

/// What an engine with these capabilities can do under an external lock.
pub fn capabilities(below: Capabilities) -> Capabilities {
    let mut labels = below.labels;
    labels.push("external lock".to_owned());
    Capabilities { transactions: false, labels, ..below }
}

impl<E: Engine + 'static> EngineLayer for ExternalLock<E> {
    fn below(&self) -> &dyn Engine {
        &self.inner
    }

    fn into_below(self: Box<Self>) -> Box<dyn Engine> {
        Box::new(self.inner)
    }

    fn capabilities_above(&self) -> Capabilities {
        capabilities(self.inner.capabilities())
    }

    fn session_above(&self) -> EngineResult<Box<dyn Session + '_>> {
        Ok(Box::new(LockingSession {
            inner: self.inner.session()?,
            stripes: &self.stripes,
            held: None,
            batch: WriteBatch::new(),
        }))
    }
}

struct LockingSession<'a> {
    inner: Box<dyn Session + 'a>,
    stripes: &'a Stripes,
    held: Option<MutexGuard<'a, ()>>,
    batch: WriteBatch,
}

impl LockingSession<'_> {
    fn open_batch(&mut self) -> EngineResult<&mut WriteBatch> {
        if self.held.is_none() {
            return Err(EngineError::no_transaction());
        }
        Ok(&mut self.batch)
    }
}

impl SessionLayer for LockingSession<'_> {
    fn below(&mut self) -> &mut dyn Session {
        &mut *self.inner
    }

    fn begin_above(&mut self, row_group: u64) -> EngineResult<()> {
        if self.held.is_some() {
            return Err(EngineError::fatal("a transaction is open already"));
        }
        self.held = Some(self.stripes.lock(row_group));
        self.batch.clear();
        Ok(())
    }

    fn get_for_update_above(
        &mut self,
        space: SpaceId,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> EngineResult<bool> {
        match self.open_batch()?.read(space, key, value) {
            Some(exists) => Ok(exists),
            None => self.inner.get(space, key, value),
        }
    }

    fn change_above(&mut self, op: BatchOp<'_>) -> EngineResult<()> {
        self.open_batch()?.change(op);
        Ok(())
    }

    fn commit_above(&mut self) -> EngineResult<()> {
        self.open_batch()?;
        let result =
            if self.batch.is_empty() { Ok(()) } else { self.inner.write_batch(&self.batch) };
        self.held = None;
        result
    }

    fn rollback_above(&mut self) -> EngineResult<()> {
        self.held = None;
        Ok(())
    }
}
