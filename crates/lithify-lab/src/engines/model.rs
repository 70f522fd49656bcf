//! The reference engine: ordered maps in memory with true transaction semantics.
//!
//! Tests of the mapping, the oracle and the driver run over it, and real engines are compared with
//! it. Rows are locked pessimistically until commit; reads see committed rows; a batch is applied
//! at once. It also watches the single-delete contract: in a space that declares it, a put over a
//! live key, a plain delete, or a single delete of an absent key is counted as a violation.
//!
//! Does not: perform, persist, or offer phantom protection.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use crate::adapter::window::Window;
use crate::adapter::{
    BatchOp, Capabilities, Engine, EngineError, EngineResult, EngineStatistics, RowVisitor,
    ScanRange, Session, SpaceId, SpaceSpec, WriteBatch,
};

/// How long a session waits for a row lock before the typed, retryable error.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

type Row = (SpaceId, Vec<u8>);
type Tree = BTreeMap<Vec<u8>, Vec<u8>>;

/// Ordered maps in memory.
pub struct ModelEngine {
    specs: Vec<SpaceSpec>,
    trees: RwLock<Vec<Tree>>,
    locks: Mutex<HashMap<Row, u64>>,
    unlocked: Condvar,
    sessions: AtomicU64,
    single_delete_violations: AtomicU64,
}

impl ModelEngine {
    /// An empty engine with `spaces`.
    pub fn new(spaces: &[SpaceSpec]) -> Self {
        ModelEngine {
            specs: spaces.to_vec(),
            trees: RwLock::new(vec![Tree::new(); spaces.len()]),
            locks: Mutex::new(HashMap::new()),
            unlocked: Condvar::new(),
            sessions: AtomicU64::new(0),
            single_delete_violations: AtomicU64::new(0),
        }
    }

    /// How often the single-delete contract was broken.
    pub fn single_delete_violations(&self) -> u64 {
        self.single_delete_violations.load(Ordering::Relaxed)
    }

    fn lock_table(&self) -> MutexGuard<'_, HashMap<Row, u64>> {
        self.locks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other session holds any of `rows`, and returns the table locked.
    fn wait_for<'a>(
        &'a self,
        owner: u64,
        rows: &[(SpaceId, &[u8])],
    ) -> EngineResult<MutexGuard<'a, HashMap<Row, u64>>> {
        let mut table = self.lock_table();
        loop {
            let taken = !table.is_empty()
                && rows.iter().any(|(space, key)| {
                    table.get(&(*space, key.to_vec())).is_some_and(|holder| *holder != owner)
                });
            if !taken {
                return Ok(table);
            }
            let (again, timeout) = self
                .unlocked
                .wait_timeout(table, LOCK_TIMEOUT)
                .unwrap_or_else(PoisonError::into_inner);
            if timeout.timed_out() {
                return Err(EngineError::retryable("row lock timed out"));
            }
            table = again;
        }
    }

    fn apply(&self, batch: &WriteBatch) -> EngineResult<()> {
        let mut trees = self.trees.write().unwrap_or_else(PoisonError::into_inner);
        // Nothing of a batch is applied when any of it cannot be.
        if let Some(op) = batch.ops().find(|op| op.row().0.index() >= trees.len()) {
            return Err(EngineError::no_space(op.row().0));
        }
        let mut violations = 0;
        for op in batch.ops() {
            let (space, key) = op.row();
            let (Some(tree), Some(spec)) =
                (trees.get_mut(space.index()), self.specs.get(space.index()))
            else {
                continue;
            };
            let violated = match op {
                BatchOp::Put(_, _, value) => tree.insert(key.to_vec(), value.to_vec()).is_some(),
                BatchOp::Delete(..) => {
                    tree.remove(key);
                    true
                }
                BatchOp::SingleDelete(..) => tree.remove(key).is_none(),
            };
            violations += u64::from(violated && spec.single_delete);
        }
        self.single_delete_violations.fetch_add(violations, Ordering::Relaxed);
        Ok(())
    }
}

/// What it can do.
pub fn capabilities() -> Capabilities {
    Capabilities {
        transactions: true,
        single_delete: true,
        multi_get: true,
        ordered_scan: true,
        ..Capabilities::default()
    }
}

impl Engine for ModelEngine {
    fn name(&self) -> String {
        "model".to_owned()
    }

    fn capabilities(&self) -> Capabilities {
        capabilities()
    }

    fn options(&self) -> serde_json::Value {
        serde_json::Value::Null
    }

    fn session(&self) -> EngineResult<Box<dyn Session + '_>> {
        Ok(Box::new(ModelSession {
            engine: self,
            owner: self.sessions.fetch_add(1, Ordering::Relaxed),
            open: false,
            batch: WriteBatch::new(),
            locked: Vec::new(),
        }))
    }

    fn flush(&self) -> EngineResult<()> {
        Ok(())
    }

    fn wait_for_compaction(&self) -> EngineResult<()> {
        Ok(())
    }

    fn statistics(&self) -> EngineResult<EngineStatistics> {
        let trees = self.trees.read().unwrap_or_else(PoisonError::into_inner);
        let live_bytes: usize =
            trees.iter().flatten().map(|(key, value)| key.len() + value.len()).sum();
        Ok(EngineStatistics {
            live_bytes: u64::try_from(live_bytes).unwrap_or(u64::MAX),
            raw: serde_json::json!({"single_delete_violations": self.single_delete_violations()}),
            ..EngineStatistics::default()
        })
    }

    fn close(self: Box<Self>) -> EngineResult<()> {
        Ok(())
    }
}

struct ModelSession<'a> {
    engine: &'a ModelEngine,
    owner: u64,
    open: bool,
    batch: WriteBatch,
    locked: Vec<Row>,
}

impl ModelSession<'_> {
    fn lock(&mut self, space: SpaceId, key: &[u8]) -> EngineResult<()> {
        if !self.open {
            return Err(EngineError::no_transaction());
        }
        let mut table = self.engine.wait_for(self.owner, &[(space, key)])?;
        if table.insert((space, key.to_vec()), self.owner).is_none() {
            self.locked.push((space, key.to_vec()));
        }
        Ok(())
    }

    fn finish(&mut self) {
        if !self.locked.is_empty() {
            let mut table = self.engine.lock_table();
            for row in self.locked.drain(..) {
                table.remove(&row);
            }
            self.engine.unlocked.notify_all();
        }
        self.batch.clear();
        self.open = false;
    }
}

impl Drop for ModelSession<'_> {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Session for ModelSession<'_> {
    fn get(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> EngineResult<bool> {
        value.clear();
        let trees = self.engine.trees.read().unwrap_or_else(PoisonError::into_inner);
        let found = trees.get(space.index()).and_then(|tree| tree.get(key));
        value.extend_from_slice(found.map_or(&[], Vec::as_slice));
        Ok(found.is_some())
    }

    fn multi_get(
        &mut self,
        space: SpaceId,
        keys: &[&[u8]],
        found: &mut dyn FnMut(usize, &[u8]),
    ) -> EngineResult<()> {
        let trees = self.engine.trees.read().unwrap_or_else(PoisonError::into_inner);
        let Some(tree) = trees.get(space.index()) else { return Ok(()) };
        for (index, key) in keys.iter().enumerate() {
            if let Some(value) = tree.get(*key) {
                found(index, value);
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
        let trees = self.engine.trees.read().unwrap_or_else(PoisonError::into_inner);
        let Some(tree) = trees.get(space.index()) else { return Ok(0) };
        let bounds: (Bound<&[u8]>, Bound<&[u8]>) =
            (Bound::Included(range.first()), Bound::Unbounded);
        let Some(mut window) = Window::new(range, row) else { return Ok(0) };
        for (key, value) in tree.range::<[u8], _>(bounds) {
            if window.offer(key, value).is_break() {
                break;
            }
        }
        Ok(window.visited())
    }

    fn scan_back(
        &mut self,
        space: SpaceId,
        from: &[u8],
        limit: u64,
        row: &mut RowVisitor<'_>,
    ) -> EngineResult<u64> {
        let trees = self.engine.trees.read().unwrap_or_else(PoisonError::into_inner);
        let Some(tree) = trees.get(space.index()) else { return Ok(0) };
        let bounds: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Unbounded, Bound::Included(from));
        let range = ScanRange::first_rows(limit);
        let Some(mut window) = Window::new(&range, row) else { return Ok(0) };
        for (key, value) in tree.range::<[u8], _>(bounds).rev() {
            if window.offer(key, value).is_break() {
                break;
            }
        }
        Ok(window.visited())
    }

    fn write_batch(&mut self, batch: &WriteBatch) -> EngineResult<()> {
        let rows: Vec<_> = batch.ops().map(|op| op.row()).collect();
        // Held while applying, so that no transaction locks one of the rows in between.
        let _table = self.engine.wait_for(self.owner, &rows)?;
        self.engine.apply(batch)
    }

    fn begin(&mut self, _row_group: u64) -> EngineResult<()> {
        if self.open {
            return Err(EngineError::fatal("a transaction is open already"));
        }
        self.open = true;
        Ok(())
    }

    fn get_for_update(
        &mut self,
        space: SpaceId,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> EngineResult<bool> {
        self.lock(space, key)?;
        match self.batch.read(space, key, value) {
            Some(exists) => Ok(exists),
            None => self.get(space, key, value),
        }
    }

    fn change(&mut self, op: BatchOp<'_>) -> EngineResult<()> {
        let (space, key) = op.row();
        self.lock(space, key)?;
        self.batch.change(op);
        Ok(())
    }

    fn commit(&mut self) -> EngineResult<()> {
        if !self.open {
            return Err(EngineError::no_transaction());
        }
        let result = self.engine.apply(&self.batch);
        self.finish();
        result
    }

    fn rollback(&mut self) -> EngineResult<()> {
        self.finish();
        Ok(())
    }
}
