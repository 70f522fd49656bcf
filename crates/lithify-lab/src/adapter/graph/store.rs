//! The operations on the graph, as reads and transactions over a session of an engine of ordered
//! keys.
//!
//! Every write is one transaction under row locks: the link is locked first, then its count. The
//! secondary index is maintained without reading it: the old link says which key to remove. The
//! key of a link that is rewritten unchanged is still removed by single delete and put again, or
//! it would have been put twice.
//!
//! A [`GraphStore`] belongs to one thread. A retryable error has rolled back: the caller calls
//! again. Does not: generate arguments or time calls.

use std::ops::ControlFlow;

use twox_hash::XxHash3_64;

use super::schema::{
    COUNT, CountRow, LINK, LINK_SECONDARY, Link, NODE, NODE_TYPE, NodeRow, VISIBILITY_DEFAULT,
    VISIBILITY_HIDDEN, count_key, link_key, list_position, list_prefix, node_key,
};
use super::{GraphSession, LinkBefore};
use crate::adapter::{EngineError, EngineResult, ScanRange, Session, WriteBatch};

/// Most links in one multi-get.
pub const MULTIGET_MAX: usize = 127;
/// Most rows of one list read.
pub const LIST_LIMIT: u64 = 10_000;

/// Which part of a list to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListQuery {
    /// Source.
    pub id1: u64,
    /// Type.
    pub link_type: u64,
    /// Newest time, milliseconds, inclusive.
    pub max_time_ms: u64,
    /// Rows passed over.
    pub offset: u64,
    /// Most rows.
    pub limit: u64,
}

/// What a list read found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListResult {
    /// Rows.
    pub rows: u64,
    /// Time of the last one, milliseconds.
    pub last_time_ms: u64,
}

/// What was read so far: rows, bytes, and if asked for a hash over all of it in order, by which
/// runs over two engines are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadDigest {
    /// Rows found.
    pub rows: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
    /// Hash of the answers in order; 0 unless hashing is on.
    pub hash: u64,
    hashing: bool,
}

impl ReadDigest {
    /// Nothing was read yet.
    pub fn new(hashing: bool) -> Self {
        ReadDigest { hashing, ..ReadDigest::default() }
    }

    /// A row was found; key and value in the encoding of [`super::schema`].
    #[inline]
    pub fn found(&mut self, key: &[u8], value: &[u8]) {
        self.rows += 1;
        self.bytes += (key.len() + value.len()) as u64;
        if self.hashing {
            self.hash = XxHash3_64::oneshot_with_seed(self.hash, key);
            self.hash = XxHash3_64::oneshot_with_seed(self.hash, value);
        }
    }

    /// No row was found under this key.
    #[inline]
    pub fn missed(&mut self, key: &[u8]) {
        if self.hashing {
            self.hash = !XxHash3_64::oneshot_with_seed(self.hash, key);
        }
    }
}

/// The graph in an engine.
pub struct GraphStore<'a> {
    session: Box<dyn Session + 'a>,
    old: Vec<u8>,
    new: Vec<u8>,
    batch: WriteBatch,
    digest: ReadDigest,
}

#[cold]
fn malformed(what: &str) -> EngineError {
    EngineError::fatal(format!("the engine returned bytes that are no {what} row"))
}

impl<'a> GraphStore<'a> {
    /// The graph seen through `session`; `hashing` as in [`ReadDigest`].
    pub fn new(session: Box<dyn Session + 'a>, hashing: bool) -> Self {
        GraphStore {
            session,
            old: Vec::with_capacity(4096),
            new: Vec::with_capacity(4096),
            batch: WriteBatch::new(),
            digest: ReadDigest::new(hashing),
        }
    }

    /// Runs `body` in a transaction: commits when it succeeds, rolls back when it fails.
    #[inline]
    fn transact<T>(
        &mut self,
        row_group: u64,
        body: impl FnOnce(&mut Self) -> EngineResult<T>,
    ) -> EngineResult<T> {
        self.session.begin(row_group)?;
        match body(self) {
            Ok(answer) => {
                self.session.commit()?;
                Ok(answer)
            }
            Err(error) => {
                // The first error is the one to report; a rollback that fails too adds nothing.
                let _ = self.session.rollback();
                Err(error)
            }
        }
    }

    fn put_link_locked(&mut self, link: &Link<'_>, now_ms: u64) -> EngineResult<LinkBefore> {
        let key = link.key();
        let mut before = LinkBefore::Missing;
        if self.session.get_for_update(LINK, &key, &mut self.old)? {
            let old = Link::decode(&key, &self.old).ok_or_else(|| malformed("link"))?;
            self.digest.found(&key, &self.old);
            before = match old.visibility {
                VISIBILITY_DEFAULT => LinkBefore::Visible,
                _ => LinkBefore::Hidden,
            };
            self.session.single_delete(LINK_SECONDARY, &old.secondary_key())?;
        }
        link.encode(&mut self.new);
        self.session.put(LINK, &key, &self.new)?;
        link.encode_secondary(&mut self.new);
        self.session.put(LINK_SECONDARY, &link.secondary_key(), &self.new)?;
        let visible = link.visibility == VISIBILITY_DEFAULT;
        let was_visible = before == LinkBefore::Visible;
        if visible != was_visible {
            let change = i32::from(visible) - i32::from(was_visible);
            self.change_count(link.id1, link.link_type, change, now_ms)?;
        }
        Ok(before)
    }

    fn change_count(
        &mut self,
        id1: u64,
        link_type: u64,
        change: i32,
        now_ms: u64,
    ) -> EngineResult<()> {
        let key = count_key(id1, link_type);
        let row = if self.session.get_for_update(COUNT, &key, &mut self.old)? {
            let old = CountRow::decode(&self.old).ok_or_else(|| malformed("count"))?;
            let count = old.count.saturating_add_signed(change);
            CountRow { count, time_ms: now_ms, version: old.version.wrapping_add(1) }
        } else {
            CountRow { count: change.max(0).unsigned_abs(), time_ms: now_ms, version: 0 }
        };
        row.encode(&mut self.new);
        self.session.put(COUNT, &key, &self.new)
    }

    /// Locks a node and says whether it exists with the expected type.
    fn lock_node(&mut self, key: &[u8]) -> EngineResult<bool> {
        if !self.session.get_for_update(NODE, key, &mut self.old)? {
            return Ok(false);
        }
        self.digest.found(key, &self.old);
        let row = NodeRow::decode(&self.old).ok_or_else(|| malformed("node"))?;
        Ok(row.node_type == NODE_TYPE)
    }
}

impl GraphSession for GraphStore<'_> {
    fn digest(&self) -> ReadDigest {
        self.digest
    }

    fn load(&mut self, rows: &WriteBatch) -> EngineResult<()> {
        self.session.write_batch(rows)
    }

    fn put_link(&mut self, link: &Link<'_>, now_ms: u64) -> EngineResult<LinkBefore> {
        self.transact(link.id1, |store| store.put_link_locked(link, now_ms))
    }

    fn delete_link(
        &mut self,
        id1: u64,
        link_type: u64,
        id2: u64,
        expunge: bool,
        now_ms: u64,
    ) -> EngineResult<bool> {
        self.transact(id1, |store| {
            let key = link_key(link_type, id1, id2);
            if !store.session.get_for_update(LINK, &key, &mut store.old)? {
                return Ok(false);
            }
            let old = Link::decode(&key, &store.old).ok_or_else(|| malformed("link"))?;
            store.digest.found(&key, &store.old);
            let was_visible = old.visibility == VISIBILITY_DEFAULT;
            if !was_visible && !expunge {
                return Ok(false);
            }
            store.session.single_delete(LINK_SECONDARY, &old.secondary_key())?;
            if expunge {
                store.session.delete(LINK, &key)?;
            } else {
                let hidden = Link { visibility: VISIBILITY_HIDDEN, ..old };
                hidden.encode(&mut store.new);
                store.session.put(LINK, &key, &store.new)?;
                hidden.encode_secondary(&mut store.new);
                store.session.put(LINK_SECONDARY, &hidden.secondary_key(), &store.new)?;
            }
            if was_visible {
                store.change_count(id1, link_type, -1, now_ms)?;
            }
            Ok(true)
        })
    }

    fn count_links(&mut self, id1: u64, link_type: u64) -> EngineResult<u32> {
        let key = count_key(id1, link_type);
        if !self.session.get(COUNT, &key, &mut self.old)? {
            self.digest.missed(&key);
            return Ok(0);
        }
        self.digest.found(&key, &self.old);
        Ok(CountRow::decode(&self.old).ok_or_else(|| malformed("count"))?.count)
    }

    fn multiget_links(&mut self, id1: u64, link_type: u64, targets: &[u64]) -> EngineResult<u64> {
        let targets = &targets[..targets.len().min(MULTIGET_MAX)];
        let mut keys = [[0; 28]; MULTIGET_MAX];
        let mut references: [&[u8]; MULTIGET_MAX] = [&[]; MULTIGET_MAX];
        for (key, id2) in keys.iter_mut().zip(targets) {
            *key = link_key(link_type, id1, *id2);
        }
        for (reference, key) in references.iter_mut().zip(&keys) {
            *reference = key;
        }
        let before = self.digest.rows;
        let (digest, mut intact) = (&mut self.digest, true);
        self.session.multi_get(LINK, &references[..targets.len()], &mut |index, value| {
            let key = keys.get(index).map_or(&[][..], |key| key);
            intact &= Link::decode(key, value).is_some();
            digest.found(key, value);
        })?;
        if intact { Ok(self.digest.rows - before) } else { Err(malformed("link")) }
    }

    fn list_links(&mut self, query: &ListQuery) -> EngineResult<ListResult> {
        let ListQuery { id1, link_type, max_time_ms, offset, limit } = *query;
        let prefix = list_prefix(id1, link_type, VISIBILITY_DEFAULT);
        let start = list_position(id1, link_type, VISIBILITY_DEFAULT, max_time_ms);
        let range = ScanRange { prefix: &prefix, start: &start, end: &[], skip: offset, limit };
        let mut result = ListResult::default();
        let (digest, mut intact) = (&mut self.digest, true);
        self.session.scan(LINK_SECONDARY, &range, &mut |key, value| {
            let Some(link) = Link::decode_secondary(key, value) else {
                intact = false;
                return ControlFlow::Break(());
            };
            digest.found(key, value);
            result.rows += 1;
            result.last_time_ms = link.time_ms;
            ControlFlow::Continue(())
        })?;
        if intact { Ok(result) } else { Err(malformed("link")) }
    }

    fn add_node(&mut self, id: u64, time_s: u32, data: &[u8]) -> EngineResult<()> {
        NodeRow { node_type: NODE_TYPE, version: 1, time_s, data }.encode(&mut self.new);
        self.batch.clear();
        self.batch.put(NODE, &node_key(id), &self.new);
        self.session.write_batch(&self.batch)
    }

    fn update_node(&mut self, id: u64, time_s: u32, data: &[u8]) -> EngineResult<bool> {
        self.transact(id, |store| {
            let key = node_key(id);
            if !store.lock_node(&key)? {
                return Ok(false);
            }
            NodeRow { node_type: NODE_TYPE, version: 2, time_s, data }.encode(&mut store.new);
            store.session.put(NODE, &key, &store.new)?;
            Ok(true)
        })
    }

    fn delete_node(&mut self, id: u64) -> EngineResult<bool> {
        self.transact(id, |store| {
            let key = node_key(id);
            if !store.lock_node(&key)? {
                return Ok(false);
            }
            store.session.delete(NODE, &key)?;
            Ok(true)
        })
    }

    fn get_node(&mut self, id: u64) -> EngineResult<bool> {
        let key = node_key(id);
        if !self.session.get(NODE, &key, &mut self.old)? {
            self.digest.missed(&key);
            return Ok(false);
        }
        self.digest.found(&key, &self.old);
        let row = NodeRow::decode(&self.old).ok_or_else(|| malformed("node"))?;
        Ok(row.node_type == NODE_TYPE)
    }
}
