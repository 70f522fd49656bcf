//! The engine that stores nothing and answers plausibly: it measures the driver alone.
//!
//! Every read is answered from sample rows that are given per space, found or missed in a fixed
//! share, so that the driver generates its arguments, encodes keys and values, decodes answers
//! and books latencies exactly as over a real engine. Writes are accepted and forgotten.

use crate::adapter::graph::schema::{
    COUNT_KEY_BYTES, CountRow, LINK_KEY_BYTES, LINK_TYPE_FIRST, Link, NODE_KEY_BYTES, NODE_TYPE,
    NodeRow, SECONDARY_KEY_BYTES, VISIBILITY_DEFAULT,
};
use crate::adapter::{
    BatchOp, Capabilities, Engine, EngineResult, EngineStatistics, RowVisitor, ScanRange, Session,
    SpaceId, WriteBatch,
};

/// How the null engine answers reads of one space.
#[derive(Clone, Debug)]
pub struct NullSpace {
    /// Length of the keys that scans return.
    pub key_bytes: usize,
    /// The value that every found row has.
    pub value: Vec<u8>,
    /// Share of point reads that find a row, in 1/256.
    pub hits_of_256: u64,
    /// Rows that a scan finds.
    pub scan_rows: u64,
}

/// An engine that does nothing.
#[derive(Clone, Debug)]
pub struct NullEngine {
    spaces: Vec<NullSpace>,
}

impl NullEngine {
    /// An engine that answers as `spaces` says.
    pub fn new(spaces: Vec<NullSpace>) -> Self {
        NullEngine { spaces }
    }

    /// An engine with sample rows of the graph of LinkBench: about the mean sizes, hit rates and
    /// rows per list of a loaded one.
    pub fn of_graph() -> Self {
        let data = [b'x'; 210];
        let mut node = Vec::new();
        let row = NodeRow { node_type: NODE_TYPE, version: 1, time_s: 1, data: &data };
        row.encode(&mut node);
        let sample = Link {
            id1: 1,
            link_type: LINK_TYPE_FIRST,
            id2: 1,
            visibility: VISIBILITY_DEFAULT,
            version: 0,
            time_ms: 1,
            data: &data[..13],
        };
        let (mut link, mut secondary, mut count) = (Vec::new(), Vec::new(), Vec::new());
        sample.encode(&mut link);
        sample.encode_secondary(&mut secondary);
        CountRow { count: 3, time_ms: 1, version: 1 }.encode(&mut count);
        let space = |key_bytes, value, hits_of_256, scan_rows| NullSpace {
            key_bytes,
            value,
            hits_of_256,
            scan_rows,
        };
        NullEngine::new(vec![
            space(NODE_KEY_BYTES, node, 250, 1),
            space(LINK_KEY_BYTES, link, 128, 1),
            space(SECONDARY_KEY_BYTES, secondary, 256, 6),
            space(COUNT_KEY_BYTES, count, 200, 1),
        ])
    }
}

/// What it can do: everything, as long as nobody looks for it afterwards.
pub fn capabilities() -> Capabilities {
    Capabilities {
        transactions: true,
        prefix_filter: true,
        single_delete: true,
        multi_get: true,
        ordered_scan: true,
        labels: vec!["stores nothing".to_owned()],
        ..Capabilities::default()
    }
}

impl Engine for NullEngine {
    fn name(&self) -> String {
        "null".to_owned()
    }

    fn capabilities(&self) -> Capabilities {
        capabilities()
    }

    fn options(&self) -> serde_json::Value {
        serde_json::Value::Null
    }

    fn session(&self) -> EngineResult<Box<dyn Session + '_>> {
        Ok(Box::new(NullSession { spaces: &self.spaces, key: Vec::with_capacity(64), turn: 0 }))
    }

    fn flush(&self) -> EngineResult<()> {
        Ok(())
    }

    fn wait_for_compaction(&self) -> EngineResult<()> {
        Ok(())
    }

    fn statistics(&self) -> EngineResult<EngineStatistics> {
        Ok(EngineStatistics::default())
    }

    fn close(self: Box<Self>) -> EngineResult<()> {
        Ok(())
    }
}

struct NullSession<'a> {
    spaces: &'a [NullSpace],
    key: Vec<u8>,
    turn: u64,
}

impl<'a> NullSession<'a> {
    /// The sample value, in the configured share of calls. Hits are spread by a Weyl sequence.
    fn answer(&mut self, space: SpaceId) -> Option<&'a [u8]> {
        let sample = self.spaces.get(space.index())?;
        self.turn = self.turn.wrapping_add(0x9E37_79B9_7F4A_7C15);
        ((self.turn >> 56) < sample.hits_of_256).then_some(&sample.value)
    }
}

impl Session for NullSession<'_> {
    fn get(&mut self, space: SpaceId, _key: &[u8], value: &mut Vec<u8>) -> EngineResult<bool> {
        value.clear();
        let answer = self.answer(space);
        value.extend_from_slice(answer.unwrap_or_default());
        Ok(answer.is_some())
    }

    fn multi_get(
        &mut self,
        space: SpaceId,
        keys: &[&[u8]],
        found: &mut dyn FnMut(usize, &[u8]),
    ) -> EngineResult<()> {
        for index in 0..keys.len() {
            if let Some(value) = self.answer(space) {
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
        let Some(sample) = self.spaces.get(space.index()) else { return Ok(0) };
        let rows = sample.scan_rows.saturating_sub(range.skip).min(range.limit);
        self.key.clear();
        self.key.extend_from_slice(range.first());
        self.key.resize(sample.key_bytes, 0);
        for number in 0..rows {
            if let Some(tail) = self.key.last_chunk_mut::<8>() {
                *tail = number.to_be_bytes();
            }
            if row(&self.key, &sample.value).is_break() {
                return Ok(number + 1);
            }
        }
        Ok(rows)
    }

    fn scan_back(
        &mut self,
        space: SpaceId,
        from: &[u8],
        limit: u64,
        row: &mut RowVisitor<'_>,
    ) -> EngineResult<u64> {
        // It has no order: rows cost the same in both directions.
        self.scan(space, &ScanRange { start: from, limit, ..ScanRange::prefix(b"") }, row)
    }

    fn write_batch(&mut self, batch: &WriteBatch) -> EngineResult<()> {
        std::hint::black_box(batch);
        Ok(())
    }

    fn begin(&mut self, _row_group: u64) -> EngineResult<()> {
        Ok(())
    }

    fn get_for_update(
        &mut self,
        space: SpaceId,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> EngineResult<bool> {
        self.get(space, key, value)
    }

    fn change(&mut self, op: BatchOp<'_>) -> EngineResult<()> {
        std::hint::black_box(op);
        Ok(())
    }

    fn commit(&mut self) -> EngineResult<()> {
        Ok(())
    }

    fn rollback(&mut self) -> EngineResult<()> {
        Ok(())
    }
}
