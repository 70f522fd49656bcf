//! A thread's view of LevelDB.
//!
//! LevelDB has one ordered tree: a byte for the space stands before every key.

use lithify_lab::adapter::plain::PlainSession;
use lithify_lab::adapter::window::Window;
use lithify_lab::adapter::{
    BatchOp, EngineError, EngineResult, RowVisitor, ScanRange, SpaceId, WriteBatch,
};

use super::database::{Batch, Database};

/// A session: its batch, and memory for keys.
pub struct LevelDbSession<'a> {
    database: &'a Database,
    spaces: usize,
    batch: Batch<'a>,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl<'a> LevelDbSession<'a> {
    /// A session of `database` with so many spaces.
    ///
    /// # Errors
    /// The library makes no batch.
    pub fn new(database: &'a Database, spaces: usize) -> EngineResult<LevelDbSession<'a>> {
        let batch = database.batch()?;
        Ok(LevelDbSession { database, spaces, batch, key: Vec::new(), value: Vec::new() })
    }

    /// The key in the database, in the session's memory.
    fn set_key(&mut self, space: SpaceId, key: &[u8]) -> EngineResult<()> {
        if space.index() >= self.spaces {
            return Err(EngineError::no_space(space));
        }
        self.key.clear();
        self.key.push(space.0);
        self.key.extend_from_slice(key);
        Ok(())
    }

    fn add(&mut self, op: BatchOp<'_>) -> EngineResult<()> {
        let (space, key) = op.row();
        self.set_key(space, key)?;
        match op {
            BatchOp::Put(_, _, value) => self.batch.put(&self.key, value),
            BatchOp::Delete(..) | BatchOp::SingleDelete(..) => self.batch.delete(&self.key),
        }
        Ok(())
    }
}

impl PlainSession for LevelDbSession<'_> {
    fn get(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> EngineResult<bool> {
        self.set_key(space, key)?;
        self.database.get(&self.key, value)
    }

    fn multi_get(
        &mut self,
        space: SpaceId,
        keys: &[&[u8]],
        found: &mut dyn FnMut(usize, &[u8]),
    ) -> EngineResult<()> {
        let snapshot = self.database.snapshot()?;
        for (index, key) in keys.iter().enumerate() {
            self.set_key(space, key)?;
            if snapshot.get(&self.key, &mut self.value)? {
                found(index, &self.value);
            }
        }
        Ok(())
    }

    fn scan(
        &mut self,
        space: SpaceId,
        range: &ScanRange<'_>,
        row: &mut RowVisitor<'_>,
    ) -> EngineResult<u64> {
        let Some(mut window) = Window::new(range, row) else { return Ok(0) };
        self.set_key(space, range.first().max(range.prefix))?;
        let mut iterator = self.database.iterator()?;
        iterator.seek(&self.key);
        while let Some(([own_space, key @ ..], value)) = iterator.row()
            && *own_space == space.0
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
        self.set_key(space, from)?;
        let mut iterator = self.database.iterator()?;
        iterator.seek_for_prev(&self.key);
        while let Some(([own_space, key @ ..], value)) = iterator.row()
            && *own_space == space.0
            && window.offer(key, value).is_continue()
        {
            iterator.retreat();
        }
        iterator.check()?;
        Ok(window.visited())
    }

    fn write_batch(&mut self, batch: &WriteBatch) -> EngineResult<()> {
        self.batch.clear();
        batch.ops().try_for_each(|op| self.add(op))?;
        self.batch.write()
    }
}
