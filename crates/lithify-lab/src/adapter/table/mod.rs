//! What an engine of tables must offer: one table with a primary key and a secondary index.
//!
//! A provider of an engine of ordered keys has this already ([`ordered`]); one of a database with a
//! language of its own implements [`TableEngine`] and gives it in
//! [`crate::adapter::provider::Provider::open_table`]. The columns of a table, and what SQL would
//! call them, are in [`schema`]. An engine that counts pages tells them as [`PageAccount`].
//!
//! Threads: a [`TableEngine`] is shared; a [`TableSession`] belongs to the thread that asked for
//! it.

pub mod ordered;
pub mod schema;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use schema::{Answer, Query, Row};

use super::{Capabilities, EngineResult, EngineStatistics};

/// How a wait for maintenance ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rest {
    /// The engine has nothing more to do.
    Idle,
    /// It was not waited for any longer.
    TimedOut,
}

/// What an engine of pages counts since it was opened, and its files as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageAccount {
    /// Pages written to their places.
    pub written: u64,
    /// Pages written a second time beforehand, against torn writes.
    pub doublewritten: u64,
    /// Attempts to compress a page.
    pub compressed: u64,
    /// Of them, those after which it was not small enough.
    pub failed: u64,
    /// Pages decompressed.
    pub decompressed: u64,
    /// Length of the files of tables, bytes.
    pub file_bytes: u64,
    /// Allocated blocks of the files of the table, bytes.
    pub table_bytes: u64,
}

/// A database with one table, opened in a directory.
pub trait TableEngine: Send + Sync {
    /// Name and version, for the reports.
    fn name(&self) -> String;

    /// What it can do by itself.
    fn capabilities(&self) -> Capabilities;

    /// A session for the calling thread.
    ///
    /// # Errors
    /// The engine's.
    fn session(&self) -> EngineResult<Box<dyn TableSession + '_>>;

    /// Returns when what was written lies where it stays and no maintenance is due, or after
    /// `limit` where the engine cannot tell.
    ///
    /// # Errors
    /// The engine's.
    fn rest(&self, limit: Duration) -> EngineResult<Rest>;

    /// Figures since open.
    ///
    /// # Errors
    /// The engine's.
    fn statistics(&self) -> EngineResult<EngineStatistics>;

    /// Its pages; `None` for an engine that does not count any.
    ///
    /// # Errors
    /// The engine's.
    fn pages(&self) -> EngineResult<Option<PageAccount>> {
        Ok(None)
    }

    /// By what its data are really compressed; `None` where it cannot tell.
    ///
    /// # Errors
    /// The engine's.
    fn codec_in_force(&self) -> EngineResult<Option<String>> {
        Ok(None)
    }

    /// Why no row can be updated after the load; `None` where it can.
    fn refuses_updates(&self) -> Option<String> {
        None
    }

    /// Processes other than this one that do the engine's work.
    fn process_ids(&self) -> Vec<u32> {
        Vec::new()
    }

    /// Closes cleanly; all sessions are gone by then.
    ///
    /// # Errors
    /// The engine's.
    fn close(self: Box<Self>) -> EngineResult<()>;
}

/// A way to the rows of an aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// The secondary index, and from it to the rows; where it does not begin with the column of the
    /// condition, the primary key.
    Secondary,
    /// The primary key; all of it where it does not begin with the column of the condition.
    Primary,
}

/// A change of one row: adds `amount` to a column of whole numbers that is in no key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// The columns of the primary key.
    pub key: Vec<i64>,
    /// Which column.
    pub column: usize,
    /// What is added.
    pub amount: i64,
}

/// One thread's view of a table.
pub trait TableSession {
    /// Inserts rows as one statement, all or none. They come in the order of their primary keys and
    /// behind all rows before.
    ///
    /// # Errors
    /// The engine's.
    fn insert(&mut self, rows: &[Row]) -> EngineResult<()>;

    /// Answers a query. `access` says by which way its rows are found.
    ///
    /// # Errors
    /// The engine's, or an index that names a row that is not there.
    fn aggregate(&mut self, query: &Query, access: Access) -> EngineResult<Answer>;

    /// Number of entries of the secondary index.
    ///
    /// # Errors
    /// The engine's.
    fn index_entries(&mut self) -> EngineResult<u64>;

    /// Starts a transaction, to which updates belong until [`TableSession::commit`].
    ///
    /// # Errors
    /// The engine's.
    fn begin(&mut self) -> EngineResult<()>;

    /// Changes a row: in the open transaction, or in one of its own. Returns whether it exists.
    ///
    /// # Errors
    /// The engine's.
    fn update(&mut self, update: &Update) -> EngineResult<bool>;

    /// Ends the transaction; all of its updates are applied.
    ///
    /// # Errors
    /// The engine's; of one that can be retried none was applied.
    fn commit(&mut self) -> EngineResult<()>;

    /// Drops the open transaction; none of its updates is applied.
    ///
    /// # Errors
    /// The engine's.
    fn rollback(&mut self) -> EngineResult<()>;
}
