//! Engines and sessions on top of others: every call goes to the one below unless it is replaced.
//!
//! Owns: [`EngineLayer`] and [`SessionLayer`]. Who implements one is an [`Engine`] or a [`Session`]
//! by it and writes down only what it does differently.

use super::{
    BatchOp, Capabilities, Engine, EngineResult, EngineStatistics, RowVisitor, ScanRange, Session,
    SpaceId, WriteBatch,
};

/// An engine on top of another one.
pub trait EngineLayer: Send + Sync {
    /// The engine below.
    fn below(&self) -> &dyn Engine;

    /// The engine below, when this one is closed.
    fn into_below(self: Box<Self>) -> Box<dyn Engine>;

    /// A session on top of one of the engine below.
    ///
    /// # Errors
    /// Those of the engine below.
    fn session_above(&self) -> EngineResult<Box<dyn Session + '_>>;

    /// As [`Engine::capabilities`].
    fn capabilities_above(&self) -> Capabilities {
        self.below().capabilities()
    }
}

impl<L: EngineLayer> Engine for L {
    fn name(&self) -> String {
        self.below().name()
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities_above()
    }

    fn options(&self) -> serde_json::Value {
        self.below().options()
    }

    fn session(&self) -> EngineResult<Box<dyn Session + '_>> {
        self.session_above()
    }

    fn flush(&self) -> EngineResult<()> {
        self.below().flush()
    }

    fn wait_for_compaction(&self) -> EngineResult<()> {
        self.below().wait_for_compaction()
    }

    fn settle_tree(&self) -> EngineResult<String> {
        self.below().settle_tree()
    }

    fn statistics(&self) -> EngineResult<EngineStatistics> {
        self.below().statistics()
    }

    fn process_ids(&self) -> Vec<u32> {
        self.below().process_ids()
    }

    fn close(self: Box<Self>) -> EngineResult<()> {
        self.into_below().close()
    }
}

/// A session on top of another one. Reads and batches are those of the session below unless they
/// are replaced; so are the calls of a transaction.
pub trait SessionLayer {
    /// The session below.
    fn below(&mut self) -> &mut dyn Session;

    /// As [`Session::get`].
    ///
    /// # Errors
    /// As there.
    fn get_above(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> EngineResult<bool> {
        self.below().get(space, key, value)
    }

    /// As [`Session::write_batch`].
    ///
    /// # Errors
    /// As there.
    fn write_batch_above(&mut self, batch: &WriteBatch) -> EngineResult<()> {
        self.below().write_batch(batch)
    }

    /// As [`Session::begin`].
    ///
    /// # Errors
    /// As there.
    fn begin_above(&mut self, row_group: u64) -> EngineResult<()> {
        self.below().begin(row_group)
    }

    /// As [`Session::get_for_update`].
    ///
    /// # Errors
    /// As there.
    fn get_for_update_above(
        &mut self,
        space: SpaceId,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> EngineResult<bool> {
        self.below().get_for_update(space, key, value)
    }

    /// As [`Session::change`].
    ///
    /// # Errors
    /// As there.
    fn change_above(&mut self, op: BatchOp<'_>) -> EngineResult<()> {
        self.below().change(op)
    }

    /// As [`Session::commit`].
    ///
    /// # Errors
    /// As there.
    fn commit_above(&mut self) -> EngineResult<()> {
        self.below().commit()
    }

    /// As [`Session::rollback`].
    ///
    /// # Errors
    /// As there.
    fn rollback_above(&mut self) -> EngineResult<()> {
        self.below().rollback()
    }
}

impl<L: SessionLayer> Session for L {
    fn get(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> EngineResult<bool> {
        self.get_above(space, key, value)
    }

    fn multi_get(
        &mut self,
        space: SpaceId,
        keys: &[&[u8]],
        found: &mut dyn FnMut(usize, &[u8]),
    ) -> EngineResult<()> {
        self.below().multi_get(space, keys, found)
    }

    fn scan(
        &mut self,
        space: SpaceId,
        range: &ScanRange<'_>,
        row: &mut RowVisitor<'_>,
    ) -> EngineResult<u64> {
        self.below().scan(space, range, row)
    }

    fn scan_back(
        &mut self,
        space: SpaceId,
        from: &[u8],
        limit: u64,
        row: &mut RowVisitor<'_>,
    ) -> EngineResult<u64> {
        self.below().scan_back(space, from, limit, row)
    }

    fn write_batch(&mut self, batch: &WriteBatch) -> EngineResult<()> {
        self.write_batch_above(batch)
    }

    fn begin(&mut self, row_group: u64) -> EngineResult<()> {
        self.begin_above(row_group)
    }

    fn get_for_update(
        &mut self,
        space: SpaceId,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> EngineResult<bool> {
        self.get_for_update_above(space, key, value)
    }

    fn change(&mut self, op: BatchOp<'_>) -> EngineResult<()> {
        self.change_above(op)
    }

    fn commit(&mut self) -> EngineResult<()> {
        self.commit_above()
    }

    fn rollback(&mut self) -> EngineResult<()> {
        self.rollback_above()
    }
}
