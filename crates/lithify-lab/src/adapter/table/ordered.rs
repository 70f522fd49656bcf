//! A table over any engine of ordered keys: a space of rows, and one of the secondary index.
//!
//! The encoding is that of [`super::schema`]. A row and its entry of the index are
//! written in one batch. An aggregate over the index reads a stretch of its entries, then their
//! rows, and so on; one over the primary key is a scan.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use super::schema::{Aggregation, Answer, Query, Range, Row, Schema};
use super::{Access, Rest, TableEngine, TableSession, Update};
use crate::adapter::{
    Capabilities, Engine, EngineError, EngineResult, EngineStatistics, ScanRange, Session, SpaceId,
    SpaceSpec, WriteBatch,
};

const ROWS: SpaceId = SpaceId(0);
const INDEX: SpaceId = SpaceId(1);

/// The spaces that an engine is opened with.
pub const SPACES: [SpaceSpec; 2] = [
    SpaceSpec { name: "rows", prefix_bytes: None, single_delete: false },
    SpaceSpec { name: "index", prefix_bytes: None, single_delete: false },
];

/// Entries of the index that are read at once, and then their rows.
const STRETCH_ROWS: u64 = 1_000;

/// A table in an engine that was opened with [`SPACES`].
pub struct OrderedTable {
    engine: Box<dyn Engine>,
    schema: Arc<Schema>,
}

impl OrderedTable {
    /// A table of that shape.
    pub fn new(engine: Box<dyn Engine>, schema: Arc<Schema>) -> OrderedTable {
        OrderedTable { engine, schema }
    }
}

impl TableEngine for OrderedTable {
    fn name(&self) -> String {
        self.engine.name()
    }

    fn capabilities(&self) -> Capabilities {
        self.engine.capabilities()
    }

    fn session(&self) -> EngineResult<Box<dyn TableSession + '_>> {
        Ok(Box::new(OrderedSession {
            session: self.engine.session()?,
            schema: &self.schema,
            batch: WriteBatch::new(),
            in_transaction: false,
            key: Vec::new(),
            index_key: Vec::new(),
            value: Vec::new(),
        }))
    }

    /// These engines say when nothing is due, so the limit is never needed.
    fn rest(&self, _limit: Duration) -> EngineResult<Rest> {
        self.engine.flush()?;
        self.engine.wait_for_compaction()?;
        Ok(Rest::Idle)
    }

    fn statistics(&self) -> EngineResult<EngineStatistics> {
        self.engine.statistics()
    }

    fn process_ids(&self) -> Vec<u32> {
        self.engine.process_ids()
    }

    fn close(self: Box<Self>) -> EngineResult<()> {
        self.engine.close()
    }
}

struct OrderedSession<'a> {
    session: Box<dyn Session + 'a>,
    schema: &'a Schema,
    batch: WriteBatch,
    in_transaction: bool,
    key: Vec<u8>,
    index_key: Vec<u8>,
    value: Vec<u8>,
}

fn not_a_row() -> EngineError {
    EngineError::fatal("a stored row is not one of the table")
}

impl OrderedSession<'_> {
    /// Sums up the rows of a range of keys, or all of them.
    fn by_primary(
        &mut self,
        [start, end]: [&[u8]; 2],
        sum: &mut Aggregation<'_>,
    ) -> EngineResult<()> {
        let schema = self.schema;
        let mut whole = true;
        let range = ScanRange { start, end, ..ScanRange::prefix(b"") };
        self.session.scan(ROWS, &range, &mut |key, value| {
            whole = sum.add(|column| schema.read(column, key, value));
            if whole { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        if whole { Ok(()) } else { Err(not_a_row()) }
    }

    /// Sums up the rows that a range of the index names.
    fn by_secondary(
        &mut self,
        [start, end]: [&[u8]; 2],
        sum: &mut Aggregation<'_>,
    ) -> EngineResult<()> {
        let schema = self.schema;
        let mut start = start.to_vec();
        loop {
            let mut keys: Vec<Vec<u8>> = Vec::new();
            let mut last = Vec::new();
            let range = ScanRange { start: &start, end, limit: STRETCH_ROWS, ..Default::default() };
            let visited = self.session.scan(INDEX, &range, &mut |key, _| {
                keys.extend(schema.primary_of_secondary(key).map(<[u8]>::to_vec));
                last.clear();
                last.extend_from_slice(key);
                ControlFlow::Continue(())
            })?;
            let wanted: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
            let (mut found, mut whole) = (0, true);
            self.session.multi_get(ROWS, &wanted, &mut |index, value| {
                found += 1;
                whole &= sum.add(|column| schema.read(column, wanted[index], value));
            })?;
            if found != visited {
                return Err(EngineError::fatal("the index names a row that is not there"));
            }
            if !whole {
                return Err(not_a_row());
            }
            if visited < STRETCH_ROWS {
                return Ok(());
            }
            // The next key after the last one.
            start = last;
            start.push(0);
        }
    }

    /// Changes a row in the open transaction.
    fn change(&mut self, update: &Update) -> EngineResult<bool> {
        self.schema.key_of(&update.key, &mut self.key);
        if !self.session.get_for_update(ROWS, &self.key, &mut self.value)? {
            return Ok(false);
        }
        if !self.schema.add(update.column, update.amount, &mut self.value) {
            return Err(not_a_row());
        }
        self.session.put(ROWS, &self.key, &self.value)?;
        Ok(true)
    }
}

/// The first key of a range of numbers, and the first behind it; empty where there is none.
fn bounds(range: &Range, mut key_of: impl FnMut(i64, &mut Vec<u8>)) -> [Vec<u8>; 2] {
    let (mut start, mut end) = (Vec::new(), Vec::new());
    key_of(range.from, &mut start);
    if let Some(next) = range.to.checked_add(1) {
        key_of(next, &mut end);
    }
    // A number that its column cannot hold has wrapped around.
    if end <= start {
        end.clear();
    }
    [start, end]
}

impl TableSession for OrderedSession<'_> {
    fn insert(&mut self, rows: &[Row]) -> EngineResult<()> {
        self.batch.clear();
        for row in rows {
            self.schema.encode_key(row, &mut self.key);
            self.schema.encode_value(row, &mut self.value);
            self.batch.put(ROWS, &self.key, &self.value);
            if !self.schema.secondary.is_empty() {
                self.schema.encode_secondary(row, &mut self.index_key);
                self.batch.put(INDEX, &self.index_key, &[]);
            }
        }
        self.session.write_batch(&self.batch)
    }

    fn aggregate(&mut self, query: &Query, access: Access) -> EngineResult<Answer> {
        let schema = self.schema;
        let mut sum = Aggregation::new(query);
        match &query.range {
            Some(range)
                if access == Access::Secondary
                    && schema.secondary.first() == Some(&range.column) =>
            {
                let bounds = bounds(range, |number, key| schema.secondary_prefix(number, key));
                self.by_secondary([&bounds[0], &bounds[1]], &mut sum)?;
            }
            Some(range) if schema.primary.first() == Some(&range.column) => {
                let bounds = bounds(range, |number, key| schema.key_of(&[number], key));
                self.by_primary([&bounds[0], &bounds[1]], &mut sum)?;
            }
            _ => self.by_primary([b"", b""], &mut sum)?,
        }
        Ok(sum.finish())
    }

    fn index_entries(&mut self) -> EngineResult<u64> {
        self.session.scan(INDEX, &ScanRange::prefix(b""), &mut |_, _| ControlFlow::Continue(()))
    }

    fn begin(&mut self) -> EngineResult<()> {
        // One client: all rows are one group of locks.
        self.session.begin(0)?;
        self.in_transaction = true;
        Ok(())
    }

    fn update(&mut self, update: &Update) -> EngineResult<bool> {
        if self.in_transaction {
            return self.change(update);
        }
        self.session.begin(0)?;
        match self.change(update) {
            Ok(found) => self.session.commit().map(|()| found),
            Err(error) => {
                // The error that counts is the first one.
                let _ = self.session.rollback();
                Err(error)
            }
        }
    }

    fn commit(&mut self) -> EngineResult<()> {
        self.in_transaction = false;
        self.session.commit()
    }

    fn rollback(&mut self) -> EngineResult<()> {
        self.in_transaction = false;
        self.session.rollback()
    }
}
