//! Reading a space row by row, although engines call back: rows come in chunks, so that several
//! spaces can be read side by side in bounded memory.
//!
//! A [`RowReader`] sees one consistent view per chunk, not over its whole way: it is for engines
//! at rest.

use std::ops::ControlFlow;

use super::GraphRows;
use crate::adapter::{EngineResult, ScanRange, Session, SpaceId};

/// Rows fetched by one scan.
const CHUNK_ROWS: u64 = 2048;
/// A chunk ends early at this size, so that huge rows do not add up.
const CHUNK_BYTES: usize = 4 << 20;

/// All rows of a space that begin with a prefix, in ascending order.
pub struct RowReader<'a> {
    session: Box<dyn Session + 'a>,
    space: SpaceId,
    prefix: Vec<u8>,
    next_start: Vec<u8>,
    bytes: Vec<u8>,
    /// Ends of key and value of each row of the chunk.
    ends: Vec<(usize, usize)>,
    position: usize,
    exhausted: bool,
}

impl<'a> RowReader<'a> {
    /// The rows of `space` whose keys begin with `prefix`, seen through `session`.
    pub fn new(session: Box<dyn Session + 'a>, space: SpaceId, prefix: &[u8]) -> Self {
        RowReader {
            session,
            space,
            prefix: prefix.to_vec(),
            next_start: prefix.to_vec(),
            bytes: Vec::new(),
            ends: Vec::new(),
            position: 0,
            exhausted: false,
        }
    }

    fn fetch(&mut self) -> EngineResult<()> {
        let (bytes, ends) = (&mut self.bytes, &mut self.ends);
        bytes.clear();
        ends.clear();
        self.position = 0;
        let range = ScanRange {
            prefix: &self.prefix,
            start: &self.next_start,
            end: &[],
            skip: 0,
            limit: CHUNK_ROWS,
        };
        let mut last_key = 0..0;
        let rows = self.session.scan(self.space, &range, &mut |key, value| {
            last_key = bytes.len()..bytes.len() + key.len();
            bytes.extend_from_slice(key);
            bytes.extend_from_slice(value);
            ends.push((last_key.end, bytes.len()));
            if bytes.len() > CHUNK_BYTES {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })?;
        self.exhausted = rows < CHUNK_ROWS && bytes.len() <= CHUNK_BYTES;
        // The smallest key above the last one.
        self.next_start.clear();
        self.next_start.extend_from_slice(&bytes[last_key]);
        self.next_start.push(0);
        Ok(())
    }
}

impl GraphRows for RowReader<'_> {
    fn peek(&mut self) -> EngineResult<Option<(&[u8], &[u8])>> {
        if self.position == self.ends.len() && !self.exhausted {
            self.fetch()?;
        }
        let Some(&(key_end, end)) = self.ends.get(self.position) else { return Ok(None) };
        let start = if self.position == 0 { 0 } else { self.ends[self.position - 1].1 };
        Ok(Some((&self.bytes[start..key_end], &self.bytes[key_end..end])))
    }

    fn advance(&mut self) {
        self.position = (self.position + 1).min(self.ends.len());
    }

    fn seek(&mut self, start: &[u8]) -> EngineResult<()> {
        self.next_start.clear();
        self.next_start.extend_from_slice(start);
        self.ends.clear();
        self.position = 0;
        self.exhausted = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::{Engine, SpaceSpec, WriteBatch};
    use crate::engines::model::ModelEngine;

    #[test]
    fn reads_across_chunks_and_stops_at_the_prefix() {
        let spec = SpaceSpec { name: "s", prefix_bytes: None, single_delete: false };
        let engine = ModelEngine::new(&[spec]);
        let mut session = engine.session().unwrap();
        let mut batch = WriteBatch::new();
        let rows = 2 * CHUNK_ROWS;
        for number in 0..rows {
            batch.put(SpaceId(0), &[b"a", &number.to_be_bytes()[..]].concat(), b"v");
        }
        batch.put(SpaceId(0), b"b", &[7; 100]);
        session.write_batch(&batch).unwrap();
        let reader = |prefix| RowReader::new(engine.session().unwrap(), SpaceId(0), prefix);
        let mut links = reader(b"a");
        for number in 0..rows {
            let (key, value) = links.peek().unwrap().unwrap();
            assert_eq!((&key[1..], value), (&number.to_be_bytes()[..], &b"v"[..]));
            links.advance();
        }
        assert_eq!(links.peek().unwrap(), None);
        links.seek(b"a\0\0\0\0\0\0\0\x05").unwrap();
        assert_eq!(links.peek().unwrap().unwrap().0[8], 5);
        let mut everything = reader(b"");
        let mut seen = 0;
        while everything.peek().unwrap().is_some() {
            everything.advance();
            seen += 1;
        }
        assert_eq!(seen, rows + 1);
    }
}
