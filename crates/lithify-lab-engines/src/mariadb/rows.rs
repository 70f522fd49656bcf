//! Rows of a table one at a time, in the order and encoding of LinkBench's keys.
//!
//! Each table is read by one statement over one connection while it goes on: nothing is kept but a
//! row, or in the secondary index the rows of a list, which the server has from the oldest to the
//! newest and the keys the other way round. Dropping it early closes the connection.

use std::collections::VecDeque;

use lithify_lab::adapter::graph::GraphRows;
use lithify_lab::adapter::graph::schema::{
    COUNT, LINK, LINK_SECONDARY, NODE, count_key, list_prefix, node_key,
};
use lithify_lab::adapter::{EngineError, EngineResult, SpaceId};

use super::connection::{Arguments, Connection, Row, Statement};
use super::engine::MariaEngine;
use super::graph::{count_of, link_of, node_of};

/// Where the first column is in a key: behind the number of the index.
const FIRST_COLUMN: usize = 4;

type KeyValue = (Vec<u8>, Vec<u8>);

/// The rows of a space.
pub struct TableRows<'a> {
    engine: &'a MariaEngine,
    space: SpaceId,
    connection: Connection,
    statement: Statement,
    /// Rows of lower keys are passed over.
    start: Vec<u8>,
    /// Most that the first column may be.
    first_max: u64,
    /// The row behind those that are ready.
    ahead: Option<KeyValue>,
    ready: VecDeque<KeyValue>,
}

/// The statement that reads a space in its order, the first column between two bounds.
fn statement_of(space: SpaceId) -> EngineResult<&'static str> {
    Ok(match space {
        NODE => {
            "SELECT id, type, version, time, data FROM nodetable FORCE INDEX (PRIMARY) \
             WHERE id >= ? AND id <= ? ORDER BY id"
        }
        LINK => {
            "SELECT id1, id2, link_type, visibility, data, time, version \
             FROM linktable FORCE INDEX (PRIMARY) \
             WHERE link_type >= ? AND link_type <= ? ORDER BY link_type, id1, id2"
        }
        LINK_SECONDARY => {
            "SELECT id1, id2, link_type, visibility, data, time, version \
             FROM linktable FORCE INDEX (id1_type) \
             WHERE id1 >= ? AND id1 <= ? ORDER BY id1, link_type, visibility, time, id2"
        }
        COUNT => {
            "SELECT id, link_type, count, time, version FROM counttable FORCE INDEX (PRIMARY) \
             WHERE id >= ? AND id <= ? ORDER BY id, link_type"
        }
        other => return Err(EngineError::no_space(other)),
    })
}

/// The first column of a key of which there may be only a part; `fill` stands for the rest.
fn first_column(key: &[u8], fill: u8) -> u64 {
    let mut bytes = [fill; 8];
    for (byte, known) in bytes.iter_mut().zip(key.iter().skip(FIRST_COLUMN)) {
        *byte = *known;
    }
    u64::from_be_bytes(bytes)
}

/// How many bytes of a key say which rows have to be put into order together.
fn group_bytes(space: SpaceId) -> usize {
    if space == LINK_SECONDARY { list_prefix(0, 0, 0).len() } else { usize::MAX }
}

fn encode(space: SpaceId, mut row: Row<'_>) -> EngineResult<KeyValue> {
    let mut value = Vec::new();
    let key = match space {
        NODE => {
            let (id, node) = node_of(&mut row)?;
            node.encode(&mut value);
            node_key(id).to_vec()
        }
        COUNT => {
            let (id, link_type) = (row.number()?, row.number()?);
            count_of(&mut row)?.encode(&mut value);
            count_key(id, link_type).to_vec()
        }
        _ => {
            let link = link_of(&mut row)?;
            if space == LINK {
                link.encode(&mut value);
                link.key().to_vec()
            } else {
                link.encode_secondary(&mut value);
                link.secondary_key().to_vec()
            }
        }
    };
    Ok((key, value))
}

fn open(
    engine: &MariaEngine,
    space: SpaceId,
    [first_min, first_max]: [u64; 2],
) -> EngineResult<(Connection, Statement)> {
    let mut connection = engine.connect()?;
    let mut begin = || {
        let mut statement = connection.prepare(statement_of(space)?)?;
        let mut bounds = Arguments::default();
        bounds.number(first_min).number(first_max);
        connection.stream(&mut statement, &bounds)?;
        Ok(statement)
    };
    let begun = begin();
    let statement = begun.map_err(|error| engine.explain(error))?;
    Ok((connection, statement))
}

impl<'a> TableRows<'a> {
    /// The rows of `space` whose keys begin with `prefix`.
    ///
    /// # Errors
    /// The server's own.
    pub fn new(
        engine: &'a MariaEngine,
        space: SpaceId,
        prefix: &[u8],
    ) -> EngineResult<TableRows<'a>> {
        let bounds = [0, 0xFF].map(|fill| first_column(prefix, fill));
        let (connection, statement) = open(engine, space, bounds)?;
        Ok(TableRows {
            engine,
            space,
            connection,
            statement,
            start: Vec::new(),
            first_max: bounds[1],
            ahead: None,
            ready: VecDeque::new(),
        })
    }

    fn receive(&mut self) -> EngineResult<Option<KeyValue>> {
        loop {
            let row = self.connection.next_row(&self.statement);
            let Some(row) = row.map_err(|error| self.engine.explain(error))? else {
                return Ok(None);
            };
            let row = encode(self.space, row)?;
            if row.0 >= self.start {
                return Ok(Some(row));
            }
        }
    }

    /// Makes the next group of rows ready, if there is one.
    fn fill(&mut self) -> EngineResult<()> {
        let first = match self.ahead.take() {
            Some(row) => row,
            None => match self.receive()? {
                Some(row) => row,
                None => return Ok(()),
            },
        };
        let bytes = group_bytes(self.space).min(first.0.len());
        let mut group = vec![first];
        // A key that is its own group needs nobody else.
        if group_bytes(self.space) != usize::MAX {
            while let Some(row) = self.receive()? {
                if row.0.get(..bytes) != group[0].0.get(..bytes) {
                    self.ahead = Some(row);
                    break;
                }
                group.push(row);
            }
        }
        group.sort_unstable();
        self.ready.extend(group);
        Ok(())
    }
}

impl GraphRows for TableRows<'_> {
    fn peek(&mut self) -> EngineResult<Option<(&[u8], &[u8])>> {
        if self.ready.is_empty() {
            self.fill()?;
        }
        Ok(self.ready.front().map(|(key, value)| (&key[..], &value[..])))
    }

    fn advance(&mut self) {
        self.ready.pop_front();
    }

    fn seek(&mut self, start: &[u8]) -> EngineResult<()> {
        let bounds = [first_column(start, 0), self.first_max];
        (self.connection, self.statement) = open(self.engine, self.space, bounds)?;
        self.start = start.to_vec();
        self.ahead = None;
        self.ready.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lithify_lab::adapter::graph::schema::link_type_prefix;

    #[test]
    fn bounds_of_the_first_column() {
        assert_eq!([0, 0xFF].map(|fill| first_column(&[], fill)), [0, u64::MAX]);
        let prefix = link_type_prefix(77);
        assert_eq!([0, 0xFF].map(|fill| first_column(&prefix, fill)), [77, 77]);
        // The smallest key behind another one.
        let mut behind = node_key(5).to_vec();
        behind.push(0);
        assert_eq!(first_column(&behind, 0), 5);
    }
}
