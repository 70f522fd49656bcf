//! Ordered keys in tables: one of keys and values for each space.
//!
//! Reads and batches are statements of their own; what a transaction is on top of that, an external
//! lock makes ([`lithify_lab::engines::external_lock`]), because a row that is not there is locked
//! by no engine under this isolation. A batch of several changes is a transaction where the engine
//! has any.

use std::collections::HashMap;
use std::ops::ControlFlow;

use lithify_lab::adapter::{
    BatchOp, EngineError, EngineResult, RowVisitor, ScanRange, Session, SpaceId, WriteBatch,
};

use super::connection::{Arguments, Connection, Prepared};
use super::engine::MariaEngine;
use super::options::Setup;

/// Longest key: what the smallest limit of the engines leaves.
const KEY_BYTES_MAX: usize = 767;

/// Rows of one statement that puts several, largest first.
const PUT_ROWS: [usize; 4] = [256, 32, 4, 1];

/// Keys of one statement that reads several.
const GET_KEYS: [usize; 3] = [128, 16, 1];

/// The statements that create a table for each space.
pub fn tables(setup: &Setup, spaces: usize) -> Vec<String> {
    let table = |space| {
        format!(
            "CREATE TABLE IF NOT EXISTS keys_{space} (\
             k varbinary({KEY_BYTES_MAX}) NOT NULL, v longblob NOT NULL, PRIMARY KEY (k)) {}{}",
            setup.table_options,
            setup.partition_clause("k"),
        )
    };
    (0..spaces).map(table).collect()
}

/// A kind of statement on the table of a space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    /// Reads so many keys.
    Get(usize),
    /// Reads from a key on.
    ScanFrom,
    /// Reads from a key to another one.
    ScanBetween,
    /// Reads from a key on in descending order.
    ScanBack,
    /// Puts so many rows.
    Put(usize),
    Delete,
}

fn sql(kind: Kind, SpaceId(space): SpaceId) -> String {
    let several = |one: &str, count: usize| vec![one; count].join(",");
    match kind {
        Kind::Get(keys) => {
            format!("SELECT k, v FROM keys_{space} WHERE k IN ({})", several("?", keys))
        }
        Kind::ScanFrom => format!(
            "SELECT k, v FROM keys_{space} FORCE INDEX (PRIMARY) WHERE k >= ? \
             ORDER BY k LIMIT ?, ?"
        ),
        Kind::ScanBetween => format!(
            "SELECT k, v FROM keys_{space} FORCE INDEX (PRIMARY) WHERE k >= ? AND k < ? \
             ORDER BY k LIMIT ?, ?"
        ),
        Kind::ScanBack => format!(
            "SELECT k, v FROM keys_{space} FORCE INDEX (PRIMARY) WHERE k <= ? \
             ORDER BY k DESC LIMIT ?"
        ),
        Kind::Put(rows) => format!(
            "INSERT INTO keys_{space} (k, v) VALUES {} ON DUPLICATE KEY UPDATE v = VALUES(v)",
            several("(?,?)", rows)
        ),
        Kind::Delete => format!("DELETE FROM keys_{space} WHERE k = ?"),
    }
}

/// The first key behind all that begin with `prefix`, if there is one.
fn behind(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte < 0xFF)?;
    let mut key = prefix[..=last].to_vec();
    key[last] += 1;
    Some(key)
}

/// One thread's connection and statements.
pub struct KeysSession<'a> {
    engine: &'a MariaEngine,
    connection: Connection,
    spaces: usize,
    statements: HashMap<(Kind, SpaceId), Prepared>,
    arguments: Arguments,
}

impl<'a> KeysSession<'a> {
    /// A session over the tables of `spaces` spaces.
    ///
    /// # Errors
    /// The server's own.
    pub fn new(engine: &'a MariaEngine, spaces: usize) -> EngineResult<KeysSession<'a>> {
        Ok(KeysSession {
            engine,
            connection: engine.connect()?,
            spaces,
            statements: HashMap::new(),
            arguments: Arguments::default(),
        })
    }

    /// Does a statement with the arguments that stand ready; `row` sees what it finds.
    fn select(
        &mut self,
        kind: Kind,
        space: SpaceId,
        row: &mut dyn FnMut(&[u8], &[u8]),
    ) -> EngineResult<()> {
        let statement = self.statements.entry((kind, space));
        let statement = statement.or_insert_with(|| Prepared::new(sql(kind, space)));
        statement
            .select(&mut self.connection, &self.arguments, &mut |mut found| {
                row(found.bytes()?, found.bytes()?);
                Ok(())
            })
            .map(|_| ())
    }

    fn execute(&mut self, kind: Kind, space: SpaceId) -> EngineResult<()> {
        let statement = self.statements.entry((kind, space));
        let statement = statement.or_insert_with(|| Prepared::new(sql(kind, space)));
        statement.execute(&mut self.connection, &self.arguments).map(|_| ())
    }

    fn check(&self, space: SpaceId) -> EngineResult<()> {
        if space.index() < self.spaces { Ok(()) } else { Err(EngineError::no_space(space)) }
    }

    fn apply(&mut self, batch: &WriteBatch) -> EngineResult<()> {
        let mut ops = batch.ops().peekable();
        // Puts that follow each other in one space go together; an insert takes its rows in order.
        let mut puts: Vec<(&[u8], &[u8])> = Vec::new();
        while let Some(op) = ops.next() {
            let BatchOp::Put(space, key, value) = op else {
                let (space, key) = op.row();
                self.arguments.clear().bytes(key);
                self.execute(Kind::Delete, space)?;
                continue;
            };
            puts.clear();
            puts.push((key, value));
            while let Some(BatchOp::Put(next, key, value)) = ops.peek().copied() {
                if next != space {
                    break;
                }
                puts.push((key, value));
                ops.next();
            }
            let mut rest = &puts[..];
            for rows in PUT_ROWS {
                while let Some((now, later)) = rest.split_at_checked(rows) {
                    self.arguments.clear();
                    for (key, value) in now {
                        self.arguments.bytes(key).bytes(value);
                    }
                    self.execute(Kind::Put(rows), space)?;
                    rest = later;
                }
            }
        }
        Ok(())
    }
}

impl Session for KeysSession<'_> {
    fn get(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> EngineResult<bool> {
        self.check(space)?;
        value.clear();
        self.arguments.clear().bytes(key);
        let mut found = false;
        let read = self.select(Kind::Get(1), space, &mut |_, stored| {
            value.extend_from_slice(stored);
            found = true;
        });
        read.map(|()| found).map_err(|error| self.engine.explain(error))
    }

    fn multi_get(
        &mut self,
        space: SpaceId,
        keys: &[&[u8]],
        found: &mut dyn FnMut(usize, &[u8]),
    ) -> EngineResult<()> {
        self.check(space)?;
        let mut first = 0;
        for count in GET_KEYS {
            while let Some(now) = keys.get(first..first + count) {
                self.arguments.clear();
                for key in now {
                    self.arguments.bytes(key);
                }
                let read = self.select(Kind::Get(count), space, &mut |key, value| {
                    let same = now.iter().enumerate().filter(|(_, asked)| **asked == key);
                    same.for_each(|(index, _)| found(first + index, value));
                });
                read.map_err(|error| self.engine.explain(error))?;
                first += count;
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
        self.check(space)?;
        let end = behind(range.prefix);
        let end = match (range.end, end) {
            ([], end) => end,
            (end, Some(behind)) => Some(behind.min(end.to_vec())),
            (end, None) => Some(end.to_vec()),
        };
        self.arguments.clear().bytes(range.first());
        if let Some(end) = &end {
            self.arguments.bytes(end);
        }
        self.arguments.number(range.skip).number(range.limit);
        let kind = if end.is_some() { Kind::ScanBetween } else { Kind::ScanFrom };
        let (mut visited, mut ended) = (0, false);
        let read = self.select(kind, space, &mut |key, value| {
            if !ended {
                visited += 1;
                ended = matches!(row(key, value), ControlFlow::Break(()));
            }
        });
        read.map(|()| visited).map_err(|error| self.engine.explain(error))
    }

    fn scan_back(
        &mut self,
        space: SpaceId,
        from: &[u8],
        limit: u64,
        row: &mut RowVisitor<'_>,
    ) -> EngineResult<u64> {
        self.check(space)?;
        self.arguments.clear().bytes(from).number(limit);
        let (mut visited, mut ended) = (0, false);
        let read = self.select(Kind::ScanBack, space, &mut |key, value| {
            if !ended {
                visited += 1;
                ended = matches!(row(key, value), ControlFlow::Break(()));
            }
        });
        read.map(|()| visited).map_err(|error| self.engine.explain(error))
    }

    fn write_batch(&mut self, batch: &WriteBatch) -> EngineResult<()> {
        batch.ops().try_for_each(|op| self.check(op.row().0))?;
        let several = batch.len() > 1 && self.engine.setup().kind.has_transactions();
        let written = match several {
            false => self.apply(batch),
            true => self
                .connection
                .run("START TRANSACTION")
                .and_then(|_| self.apply(batch))
                .and_then(|()| self.connection.run("COMMIT").map(|_| ())),
        };
        written.map_err(|error| {
            if several {
                // The first error is the one to report.
                let _ = self.connection.run("ROLLBACK");
            }
            self.engine.explain(error)
        })
    }

    fn begin(&mut self, _row_group: u64) -> EngineResult<()> {
        Err(EngineError::no_transaction())
    }

    fn get_for_update(
        &mut self,
        _space: SpaceId,
        _key: &[u8],
        _value: &mut Vec<u8>,
    ) -> EngineResult<bool> {
        Err(EngineError::no_transaction())
    }

    fn change(&mut self, _op: BatchOp<'_>) -> EngineResult<()> {
        Err(EngineError::no_transaction())
    }

    fn commit(&mut self) -> EngineResult<()> {
        Err(EngineError::no_transaction())
    }

    fn rollback(&mut self) -> EngineResult<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_behind_a_prefix() {
        assert_eq!(behind(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(behind(b"a\xFF\xFF"), Some(b"b".to_vec()));
        assert_eq!((behind(b""), behind(b"\xFF")), (None, None));
    }
}
