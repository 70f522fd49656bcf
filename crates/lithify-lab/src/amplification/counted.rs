//! Counts the rows and bytes that users write, above any engine.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::adapter::layer::{EngineLayer, SessionLayer};
use crate::adapter::{BatchOp, Engine, EngineResult, Session, WriteBatch};

/// An engine above which changes are counted.
pub(super) struct Counted {
    below: Box<dyn Engine>,
    changes: AtomicU64,
    bytes: AtomicU64,
}

impl Counted {
    pub(super) fn above(below: Box<dyn Engine>) -> Counted {
        Counted { below, changes: AtomicU64::new(0), bytes: AtomicU64::new(0) }
    }

    /// Rows put or deleted so far, and the bytes of their keys and values. What a transaction
    /// changed counts when it is committed.
    pub(super) fn totals(&self) -> (u64, u64) {
        (self.changes.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }

    fn count(&self, changes: u64, bytes: u64) {
        self.changes.fetch_add(changes, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl EngineLayer for Counted {
    fn below(&self) -> &dyn Engine {
        &*self.below
    }

    fn into_below(self: Box<Self>) -> Box<dyn Engine> {
        self.below
    }

    fn session_above(&self) -> EngineResult<Box<dyn Session + '_>> {
        let below = self.below.session()?;
        Ok(Box::new(CountedSession { engine: self, below, changes: 0, bytes: 0 }))
    }
}

struct CountedSession<'a> {
    engine: &'a Counted,
    below: Box<dyn Session + 'a>,
    /// Of the open transaction.
    changes: u64,
    bytes: u64,
}

impl SessionLayer for CountedSession<'_> {
    fn below(&mut self) -> &mut dyn Session {
        &mut *self.below
    }

    fn write_batch_above(&mut self, batch: &WriteBatch) -> EngineResult<()> {
        self.below.write_batch(batch)?;
        self.engine.count(batch.len() as u64, batch.size_bytes() as u64);
        Ok(())
    }

    fn begin_above(&mut self, row_group: u64) -> EngineResult<()> {
        (self.changes, self.bytes) = (0, 0);
        self.below.begin(row_group)
    }

    fn change_above(&mut self, op: BatchOp<'_>) -> EngineResult<()> {
        self.below.change(op)?;
        let value = if let BatchOp::Put(_, _, value) = op { value.len() } else { 0 };
        self.changes += 1;
        self.bytes += (op.row().1.len() + value) as u64;
        Ok(())
    }

    fn commit_above(&mut self) -> EngineResult<()> {
        self.below.commit()?;
        self.engine.count(self.changes, self.bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::model::ModelEngine;
    use crate::keyvalue::{SPACE, SPACES};

    #[test]
    fn what_is_committed_counts() {
        let engine = Counted::above(Box::new(ModelEngine::new(&SPACES)));
        let mut session = engine.session().expect("has sessions");
        let mut batch = WriteBatch::new();
        batch.put(SPACE, b"ab", b"123");
        batch.delete(SPACE, b"c");
        session.write_batch(&batch).expect("writes");
        assert_eq!(engine.totals(), (2, 6));
        session.begin(0).expect("begins");
        session.put(SPACE, b"d", b"4").expect("puts");
        session.rollback().expect("rolls back");
        session.begin(0).expect("begins");
        session.delete(SPACE, b"ab").expect("deletes");
        session.commit().expect("commits");
        assert_eq!(engine.totals(), (3, 8));
    }
}
