//! A client of the same server that has nothing to do with the graph: it changes the one row of a
//! table of a database of its own, again and again, each time by a statement that commits.

use lithify_lab::adapter::{EngineError, EngineResult, Neighbour};

use super::connection::{Arguments, Connection, Prepared};
use super::engine::MariaEngine;

/// Its database.
const DATABASE: &str = "beside";

/// The client.
pub struct OtherClient<'a> {
    engine: &'a MariaEngine,
    connection: Connection,
    change: Prepared,
    arguments: Arguments,
}

impl<'a> OtherClient<'a> {
    /// Makes its table, in the storage engine under test, without compression.
    ///
    /// # Errors
    /// The server's own.
    pub fn new(engine: &'a MariaEngine) -> EngineResult<OtherClient<'a>> {
        let mut connection = engine.connect()?;
        let storage = engine.setup().kind.sql_name();
        for sql in [
            format!("CREATE DATABASE IF NOT EXISTS {DATABASE}"),
            format!(
                "CREATE TABLE IF NOT EXISTS {DATABASE}.counter (id INT NOT NULL PRIMARY KEY, \
                 changes BIGINT NOT NULL) ENGINE={storage}"
            ),
            format!("INSERT IGNORE INTO {DATABASE}.counter VALUES (1, 0)"),
        ] {
            connection.run(&sql).map_err(|error| engine.explain(error))?;
        }
        let change = format!("UPDATE {DATABASE}.counter SET changes = changes + 1 WHERE id = ?");
        let mut arguments = Arguments::default();
        arguments.number(1u64);
        Ok(OtherClient { engine, connection, change: Prepared::new(change), arguments })
    }
}

impl Neighbour for OtherClient<'_> {
    fn step(&mut self) -> EngineResult<()> {
        let changed = self.change.execute(&mut self.connection, &self.arguments);
        match changed.map_err(|error| self.engine.explain(error))?.affected {
            1 => Ok(()),
            rows => Err(EngineError::fatal(format!("{rows} rows were changed, 1 is there"))),
        }
    }
}
