//! An engine that is never told that a key was put once: every delete is a plain tombstone.
//!
//! What a cheaper tombstone is worth is the difference to the engine below, which goes away with the
//! first value that it meets. Batches and transactions keep their order.

use crate::adapter::layer::{EngineLayer, SessionLayer};
use crate::adapter::{BatchOp, Capabilities, Engine, EngineResult, Session, WriteBatch};

/// An engine without single deletes.
pub struct PlainDeletes {
    below: Box<dyn Engine>,
}

impl PlainDeletes {
    /// Takes them from `below`.
    pub fn above(below: Box<dyn Engine>) -> PlainDeletes {
        PlainDeletes { below }
    }
}

impl EngineLayer for PlainDeletes {
    fn below(&self) -> &dyn Engine {
        &*self.below
    }

    fn into_below(self: Box<Self>) -> Box<dyn Engine> {
        self.below
    }

    fn session_above(&self) -> EngineResult<Box<dyn Session + '_>> {
        Ok(Box::new(PlainSession { below: self.below.session()?, batch: WriteBatch::new() }))
    }

    fn capabilities_above(&self) -> Capabilities {
        let mut capabilities = self.below.capabilities();
        capabilities.single_delete = false;
        capabilities.labels.push("plain tombstones".to_owned());
        capabilities
    }
}

struct PlainSession<'a> {
    below: Box<dyn Session + 'a>,
    batch: WriteBatch,
}

fn plain(op: BatchOp<'_>) -> BatchOp<'_> {
    match op {
        BatchOp::SingleDelete(space, key) => BatchOp::Delete(space, key),
        other => other,
    }
}

impl SessionLayer for PlainSession<'_> {
    fn below(&mut self) -> &mut dyn Session {
        &mut *self.below
    }

    fn write_batch_above(&mut self, batch: &WriteBatch) -> EngineResult<()> {
        if !batch.ops().any(|op| matches!(op, BatchOp::SingleDelete(..))) {
            return self.below.write_batch(batch);
        }
        self.batch.clear();
        batch.ops().for_each(|op| self.batch.change(plain(op)));
        self.below.write_batch(&self.batch)
    }

    fn change_above(&mut self, op: BatchOp<'_>) -> EngineResult<()> {
        self.below.change(plain(op))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::{SpaceId, SpaceSpec};
    use crate::engines::model::ModelEngine;

    const ROWS: SpaceId = SpaceId(0);

    /// The model counts what breaks the promise of a space whose keys are put once: single deletes
    /// of keys that are not there, and every plain delete.
    #[test]
    fn no_single_delete_reaches_the_engine() {
        let spaces = [SpaceSpec { name: "rows", prefix_bytes: None, single_delete: true }];
        let violations = |engine: &dyn Engine| {
            let mut session = engine.session().expect("opens");
            let mut batch = WriteBatch::new();
            batch.put(ROWS, b"a", b"1");
            batch.single_delete(ROWS, b"a");
            batch.single_delete(ROWS, b"a");
            session.write_batch(&batch).expect("is written");
            session.begin(0).expect("begins");
            session.single_delete(ROWS, b"b").expect("is deleted");
            session.put(ROWS, b"c", b"2").expect("is put");
            session.commit().expect("commits");
            let mut value = Vec::new();
            assert!(!session.get(ROWS, b"a", &mut value).expect("reads"));
            assert!(session.get(ROWS, b"c", &mut value).expect("reads"));
            let raw = engine.statistics().expect("tells").raw;
            raw.pointer("/single_delete_violations").and_then(serde_json::Value::as_u64)
        };
        assert_eq!(violations(&ModelEngine::new(&spaces)), Some(2));
        let plain = PlainDeletes::above(Box::new(ModelEngine::new(&spaces)));
        assert_eq!(violations(&plain), Some(3));
        assert!(!Engine::capabilities(&plain).single_delete);
    }
}
