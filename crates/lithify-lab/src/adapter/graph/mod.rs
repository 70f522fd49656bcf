//! The seam between the benchmark and who holds its graph.
//!
//! Owns: [`GraphEngine`], [`GraphSession`] and [`GraphRows`]. Load, requests and oracle know these
//! only, so that they are the same over ordered keys and over tables of an SQL server. Rows that are
//! loaded and rows that the oracle reads pass in the encoding of [`schema`], whatever form the
//! engine keeps them in.
//!
//! Every [`Engine`] that was opened with [`schema::SPACES`] holds the graph, itself, lent or
//! in a box: what [`GraphEngine`] provides is the mapping to ordered keys. Who keeps the graph in
//! another form replaces it.
//!
//! Threads: an engine is shared; a session and its rows belong to the thread that asked for them.
//!
//! Does not: time calls, or try anything again.

pub mod rows;
pub mod schema;
pub mod store;

use std::ops::ControlFlow;

use rows::RowReader;
use schema::{LINK, LINK_SECONDARY, Link};
use store::{GraphStore, ListQuery, ListResult, ReadDigest};

use super::{Engine, EngineError, EngineResult, Neighbour, SpaceId, WriteBatch};

/// Holds the graph. Opened by its own constructor, empty.
pub trait GraphEngine: Send + Sync {
    /// The engine in which the graph lies: its name, options, figures, background work.
    fn below(&self) -> &dyn Engine;

    /// A session for the calling thread; `hashing` as in [`ReadDigest`].
    ///
    /// # Errors
    /// The engine's own.
    fn graph_session(&self, hashing: bool) -> EngineResult<Box<dyn GraphSession + '_>> {
        Ok(Box::new(GraphStore::new(self.below().session()?, hashing)))
    }

    /// The rows of a space whose keys begin with `prefix`: nothing, or a type of links. For engines
    /// at rest.
    ///
    /// # Errors
    /// The engine's own.
    fn rows(&self, space: SpaceId, prefix: &[u8]) -> EngineResult<Box<dyn GraphRows + '_>> {
        Ok(Box::new(RowReader::new(self.below().session()?, space, prefix)))
    }

    /// Says that links will be loaded before there is a secondary index, which
    /// [`GraphEngine::build_secondary_index`] makes of them later.
    ///
    /// # Errors
    /// The engine's own.
    fn defer_secondary_index(&self) -> EngineResult<()> {
        // The index is what is put into its space: nothing, while nobody puts anything.
        Ok(())
    }

    /// Puts every link into the secondary index. Where that is done row by row, it is in batches of
    /// `batch_rows`, and `done` hears how many rows were added and breaks to stop it.
    ///
    /// # Errors
    /// The engine's own.
    fn build_secondary_index(
        &self,
        batch_rows: usize,
        done: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> EngineResult<()> {
        index_by_primary_keys(self.below(), batch_rows, done)
    }

    /// A client that has nothing to do with the graph and works on the same engine, of one with a
    /// call that drops the graph beside others ([`GraphEngine::drop_graph`]).
    ///
    /// # Errors
    /// The engine's own.
    fn neighbour(&self) -> EngineResult<Option<Box<dyn Neighbour + '_>>> {
        Ok(None)
    }

    /// Drops the graph for good; nobody works on it any more. Gives the call in words.
    ///
    /// # Errors
    /// The engine's own; it has no such call.
    fn drop_graph(&self) -> EngineResult<String> {
        Err(EngineError::fatal("the engine has no call that drops the graph"))
    }

    /// Closes cleanly, unless it is only lent; all sessions are gone by then.
    ///
    /// # Errors
    /// The engine's own.
    fn close(self: Box<Self>) -> EngineResult<()>;
}

impl<E: Engine> GraphEngine for E {
    fn below(&self) -> &dyn Engine {
        self
    }

    fn close(self: Box<Self>) -> EngineResult<()> {
        Engine::close(self)
    }
}

impl GraphEngine for Box<dyn Engine> {
    fn below(&self) -> &dyn Engine {
        &**self
    }

    fn close(self: Box<Self>) -> EngineResult<()> {
        Engine::close(*self)
    }
}

impl GraphEngine for &dyn Engine {
    fn below(&self) -> &dyn Engine {
        *self
    }

    fn close(self: Box<Self>) -> EngineResult<()> {
        Ok(())
    }
}

/// Builds the secondary index in one pass over the primary keys.
fn index_by_primary_keys(
    engine: &dyn Engine,
    batch_rows: usize,
    done: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> EngineResult<()> {
    let mut session = engine.session()?;
    let mut reader = RowReader::new(engine.session()?, LINK, &[]);
    let mut batch = WriteBatch::new();
    let mut value = Vec::new();
    loop {
        let row = reader.peek()?;
        let at_end = row.is_none();
        if let Some((key, row)) = row {
            let link = Link::decode(key, row)
                .ok_or_else(|| EngineError::fatal("the engine returned a malformed link row"))?;
            link.encode_secondary(&mut value);
            batch.put(LINK_SECONDARY, &link.secondary_key(), &value);
            reader.advance();
        }
        if batch.len() < batch_rows && !at_end {
            continue;
        }
        with_retries(|| session.write_batch(&batch))?;
        let stop = done(batch.len() as u64).is_break();
        batch.clear();
        if at_end || stop {
            return Ok(());
        }
    }
}

/// Tries of one batch before the load gives up.
const TRIES_MAX: u64 = 1000;

/// Writes a batch until it succeeds or fails for good. Returns how many times it had to be tried
/// again.
pub(crate) fn with_retries(mut write: impl FnMut() -> EngineResult<()>) -> EngineResult<u64> {
    let mut retries = 0;
    loop {
        match write() {
            Err(error) if error.is_retryable() && retries < TRIES_MAX => retries += 1,
            result => return result.map(|()| retries),
        }
    }
}

/// What a put found where its link goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkBefore {
    /// Nothing.
    Missing,
    /// A hidden link.
    Hidden,
    /// A visible link.
    Visible,
}

impl LinkBefore {
    /// True when there was a link, visible or hidden.
    pub fn existed(self) -> bool {
        self != LinkBefore::Missing
    }
}

/// One thread's operations on the graph. Each write is one transaction; a retryable error has
/// rolled back, and the caller calls again.
pub trait GraphSession {
    /// What was read so far.
    fn digest(&self) -> ReadDigest;

    /// Writes rows of the load as one transaction: puts into the spaces of [`schema`].
    ///
    /// # Errors
    /// The engine's own.
    fn load(&mut self, rows: &WriteBatch) -> EngineResult<()>;

    /// Inserts `link` or rewrites it; keeps its list's count. Returns what was there before.
    /// `now_ms` is the time of the count's change.
    ///
    /// # Errors
    /// The engine's own.
    fn put_link(&mut self, link: &Link<'_>, now_ms: u64) -> EngineResult<LinkBefore>;

    /// Hides a link, or with `expunge` removes it. Returns whether a visible link was there (with
    /// `expunge`, any link).
    ///
    /// # Errors
    /// The engine's own.
    fn delete_link(
        &mut self,
        id1: u64,
        link_type: u64,
        id2: u64,
        expunge: bool,
        now_ms: u64,
    ) -> EngineResult<bool>;

    /// Visible links of a list; 0 when it has no count row.
    ///
    /// # Errors
    /// The engine's own.
    fn count_links(&mut self, id1: u64, link_type: u64) -> EngineResult<u32>;

    /// Reads the links from `id1` to each of `targets` (at most [`store::MULTIGET_MAX`]),
    /// hidden ones too. Returns how many there are.
    ///
    /// # Errors
    /// The engine's own.
    fn multiget_links(&mut self, id1: u64, link_type: u64, targets: &[u64]) -> EngineResult<u64>;

    /// Reads visible links of a list, newest first.
    ///
    /// # Errors
    /// The engine's own.
    fn list_links(&mut self, query: &ListQuery) -> EngineResult<ListResult>;

    /// Inserts a node under an id that nobody has.
    ///
    /// # Errors
    /// The engine's own.
    fn add_node(&mut self, id: u64, time_s: u32, data: &[u8]) -> EngineResult<()>;

    /// Rewrites a node. Returns whether it exists.
    ///
    /// # Errors
    /// The engine's own.
    fn update_node(&mut self, id: u64, time_s: u32, data: &[u8]) -> EngineResult<bool>;

    /// Deletes a node. Returns whether it existed.
    ///
    /// # Errors
    /// The engine's own.
    fn delete_node(&mut self, id: u64) -> EngineResult<bool>;

    /// Reads a node. Returns whether it exists.
    ///
    /// # Errors
    /// The engine's own.
    fn get_node(&mut self, id: u64) -> EngineResult<bool>;
}

/// Rows of one space in the order of their keys, one at a time, so that several spaces can be read
/// side by side.
pub trait GraphRows {
    /// Key and value of the row that [`GraphRows::advance`] would leave behind.
    ///
    /// # Errors
    /// The engine's own.
    fn peek(&mut self) -> EngineResult<Option<(&[u8], &[u8])>>;

    /// Passes over the current row.
    fn advance(&mut self);

    /// Goes on at the first key not below `start`.
    ///
    /// # Errors
    /// The engine's own.
    fn seek(&mut self, start: &[u8]) -> EngineResult<()>;
}
