//! The seam between workloads and storage engines: ordered keys, values, row transactions.
//!
//! Owns: the [`Engine`] and [`Session`] traits that every engine under test implements, the
//! [`WriteBatch`] they are handed, and the figures they report. An engine gets its list of
//! [`SpaceSpec`] when its own constructor opens it; a space is a column family, table or named
//! database, and [`SpaceId`] is its index in that list.
//!
//! A workload that keeps more than keys has a content here, each a trait and its form over ordered
//! keys: the graph of LinkBench ([`graph`]), a table with an index ([`table`]), rows of text
//! ([`text`]). They lie in this room and not in those of their workloads, so that who adds an engine
//! finds here all that it may offer. Who adds a content adds a file here and a method to
//! [`Provider`](provider::Provider) whose default is that form: no adapter changes.
//!
//! Engines on top of another one are [`layer`]s; what sessions of several adapters share is in
//! [`plain`] and [`window`].
//!
//! Promises: object-safe; no call forces an allocation (buffers belong to the caller and are
//! reused); keys order by their bytes. Does not: open engines, time calls, or retry.
//!
//! Threads: an [`Engine`] is shared; a [`Session`] belongs to the thread that asked for it.

pub mod allocator;
pub mod codec;
pub mod cross_count;
pub mod graph;
pub mod layer;
pub mod plain;
pub mod provider;
pub mod settings;
pub mod table;
pub mod text;
pub mod window;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use cross_count::CrossCounts;

/// What the driver does about an engine's error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineErrorKind {
    /// Deadlock, lock timeout, conflict: the transaction was rolled back, try the whole op again.
    Retryable,
    /// Anything else: the op failed and trying again is no use.
    Fatal,
}

/// An error of an engine: what to do about it, and its text.
#[derive(Clone, Debug)]
pub struct EngineError {
    kind: EngineErrorKind,
    text: String,
}

impl EngineError {
    /// A transient failure; the caller tries the whole transaction again.
    #[cold]
    pub fn retryable(text: impl Into<String>) -> Self {
        EngineError { kind: EngineErrorKind::Retryable, text: text.into() }
    }

    /// A failure that trying again does not cure.
    #[cold]
    pub fn fatal(text: impl Into<String>) -> Self {
        EngineError { kind: EngineErrorKind::Fatal, text: text.into() }
    }

    /// A space that the engine was not opened with.
    #[cold]
    pub fn no_space(space: SpaceId) -> Self {
        EngineError::fatal(format!("there is no space {}", space.0))
    }

    /// A call of a transaction where none is open.
    #[cold]
    pub fn no_transaction() -> Self {
        EngineError::fatal("there is no open transaction")
    }

    /// What the caller does about it.
    pub fn kind(&self) -> EngineErrorKind {
        self.kind
    }

    /// True when the whole transaction may succeed if it is simply tried again.
    pub fn is_retryable(&self) -> bool {
        self.kind == EngineErrorKind::Retryable
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for EngineError {}

/// The result of every engine call.
pub type EngineResult<T> = Result<T, EngineError>;

/// The name of an engine, as the command line, experiment files and results have it. Whether
/// there is such an engine is for those to know who can open it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EngineName(String);

impl EngineName {
    /// A name.
    pub fn new(name: impl Into<String>) -> Self {
        EngineName(name.into())
    }

    /// The engine of this project.
    pub fn lithify() -> Self {
        EngineName::new("lithify")
    }

    /// The engine that does nothing: it measures the driver.
    pub fn null() -> Self {
        EngineName::new("null")
    }

    /// The ordered map in memory: the reference for tests.
    pub fn model() -> Self {
        EngineName::new("model")
    }

    /// Its text.
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EngineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Index of a space in the list that the engine was opened with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpaceId(pub u8);

impl SpaceId {
    /// The index, for tables of spaces.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// One ordered tree that a workload needs: a column family, table or named database.
#[derive(Clone, Copy, Debug)]
pub struct SpaceSpec {
    /// Name of the tree, unique in its list.
    pub name: &'static str,
    /// Length of the key prefix by which scans select rows; `None` when the space is not scanned
    /// by prefix. Engines with prefix filters build them over these bytes.
    pub prefix_bytes: Option<usize>,
    /// True when every key is put once before it is single-deleted, and never otherwise removed.
    pub single_delete: bool,
}

/// What an engine can do by itself; what it cannot is emulated and labelled so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// Own pessimistic row locks; otherwise transactions run under an external lock.
    pub transactions: bool,
    /// Filters over [`SpaceSpec::prefix_bytes`].
    pub prefix_filter: bool,
    /// A cheaper tombstone for keys that were put once.
    pub single_delete: bool,
    /// Answers several keys in one native call.
    pub multi_get: bool,
    /// Visits rows in the order of their keys.
    #[serde(default)]
    pub ordered_scan: bool,
    /// A codec for each level or distance from the bottom; otherwise the bottom's codec is that of
    /// all data.
    #[serde(default)]
    pub codec_per_level: bool,
    /// The kinds of codec that it offers, by the names of experiment files ("none", "zstd", ...).
    #[serde(default)]
    pub codecs: Vec<String>,
    /// Follows the size of a block or page that the settings ask for.
    #[serde(default)]
    pub block_size: bool,
    /// The durability modes that it has, by their names ("sync", "buffered", "none").
    #[serde(default)]
    pub durability: Vec<String>,
    /// Counts bytes or time of its own, beside what the operating system counts.
    #[serde(default)]
    pub own_statistics: bool,
    /// Short remarks for the report, for example "external lock".
    pub labels: Vec<String>,
}

/// One level of an engine's tree.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LevelStatistics {
    /// Physical level; 0 is where flushes go.
    pub level: u32,
    /// Live files.
    pub files: u64,
    /// Stored bytes of the live files.
    pub stored_bytes: u64,
    /// The same before compression, as the engine lays blocks out: not comparable between engines.
    pub raw_bytes: u64,
    /// Keys and values in the files as the user gave them, every version and tombstone counted: the
    /// one base of what engines store per byte. 0 where the engine does not tell.
    #[serde(default)]
    pub user_bytes: u64,
    /// Codec and effort of the level's files, as their metadata say: one, or all with their number
    /// of files (`lz4 in 3, none in 1`). Of a level without files the one that a new file gets,
    /// where the engine tells.
    pub codec: String,
    /// Bytes read by compactions into this level since open.
    pub compaction_read_bytes: u64,
    /// Bytes written by compactions or flushes into this level since open.
    pub compaction_write_bytes: u64,
    /// CPU of those compactions or flushes, microseconds.
    pub compaction_cpu_us: u64,
    /// Their wall time, microseconds; parallel ones add up.
    #[serde(default)]
    pub compaction_wall_us: u64,
    /// Number of those compactions or flushes.
    pub compactions: u64,
}

impl LevelStatistics {
    /// Megabytes (10^6) of [`LevelStatistics::user_bytes`], where the engine tells.
    pub fn user_mb(&self) -> Option<f64> {
        (self.user_bytes > 0).then_some(self.user_bytes as f64 / 1e6)
    }

    /// Stored bytes for each byte that the user gave, where the engine tells.
    pub fn stored_per_user_byte(&self) -> Option<f64> {
        Some(self.stored_bytes as f64 / 1e6 / self.user_mb()?)
    }

    /// The text of [`LevelStatistics::codec`] for files of these codecs.
    pub fn describe_codecs(files_by_codec: &BTreeMap<String, u64>) -> String {
        if files_by_codec.len() == 1 {
            return files_by_codec.keys().cloned().collect();
        }
        let parts: Vec<String> =
            files_by_codec.iter().map(|(codec, files)| format!("{codec} in {files}")).collect();
        parts.join(", ")
    }
}

/// How an engine held back its writers since open.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StallStatistics {
    /// True when the engine says how long; otherwise the times are 0 and mean nothing.
    #[serde(default = "yes")]
    pub is_timed: bool,
    /// Time in which writers were slowed, microseconds.
    pub delayed_us: u64,
    /// Time in which writers were stopped, microseconds.
    pub stopped_us: u64,
    /// Number of stalls by cause.
    pub by_cause: BTreeMap<String, u64>,
}

impl Default for StallStatistics {
    fn default() -> Self {
        StallStatistics { is_timed: true, delayed_us: 0, stopped_us: 0, by_cause: BTreeMap::new() }
    }
}

/// For results from before an engine could leave it out.
fn yes() -> bool {
    true
}

/// What an engine says about itself. Figures that it does not have stay zero or empty.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct EngineStatistics {
    /// Stored bytes of all live files.
    pub live_bytes: u64,
    /// Per level, top first; empty for engines without levels.
    pub levels: Vec<LevelStatistics>,
    /// Bytes written since open, by cause ("wal", "flush", "compaction", ...).
    pub written_bytes_by_cause: BTreeMap<String, u64>,
    /// Bytes read since open, by cause.
    pub read_bytes_by_cause: BTreeMap<String, u64>,
    /// CPU since open by cause, microseconds.
    pub cpu_us_by_cause: BTreeMap<String, u64>,
    /// Writers held back.
    pub stalls: StallStatistics,
    /// What was asked of it since open beside what it counts of the same; empty where only one side
    /// counts.
    #[serde(default, skip_serializing_if = "CrossCounts::is_empty")]
    pub cross_counts: CrossCounts,
    /// Everything else the engine wants in the raw results.
    pub raw: serde_json::Value,
}

impl EngineStatistics {
    /// Time in which writers were held back, microseconds; `None` when the engine does not say. An
    /// engine that counts the time in which any writer was (`/stalls/slowed_us` in its raw figures)
    /// is better than one that adds up the times of all.
    pub fn slowed_us(&self) -> Option<f64> {
        let any = self.raw.pointer("/stalls/slowed_us").and_then(serde_json::Value::as_f64);
        let sum = (self.stalls.delayed_us + self.stalls.stopped_us) as f64;
        self.stalls.is_timed.then(|| any.unwrap_or(sum))
    }

    /// The same since `before`.
    pub fn slowed_us_since(&self, before: &EngineStatistics) -> Option<f64> {
        Some(self.slowed_us()? - before.slowed_us()?)
    }
}

/// Which rows a scan visits, in ascending order of keys.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScanRange<'a> {
    /// Every visited key begins with these bytes; empty for a scan over everything.
    pub prefix: &'a [u8],
    /// First key, inclusive; empty for the first key of the prefix.
    pub start: &'a [u8],
    /// Bound, exclusive; empty for the end of the prefix.
    pub end: &'a [u8],
    /// Rows passed over before the first one that is visited.
    pub skip: u64,
    /// Most rows that are visited.
    pub limit: u64,
}

impl<'a> ScanRange<'a> {
    /// All rows that begin with `prefix`.
    pub fn prefix(prefix: &'a [u8]) -> Self {
        ScanRange { prefix, limit: u64::MAX, ..ScanRange::default() }
    }

    /// The first `limit` rows, whatever their keys.
    pub fn first_rows(limit: u64) -> Self {
        ScanRange { limit, ..ScanRange::default() }
    }

    /// The first key to seek to.
    pub fn first(&self) -> &'a [u8] {
        if self.start.is_empty() { self.prefix } else { self.start }
    }

    /// True when `key` (not below [`ScanRange::first`]) is still inside.
    pub fn contains(&self, key: &[u8]) -> bool {
        key.starts_with(self.prefix) && (self.end.is_empty() || key < self.end)
    }

    /// Writes the first key behind the range into `end` (cleared first); leaves it empty when the
    /// range goes on to the last key.
    pub fn bound(&self, end: &mut Vec<u8>) {
        end.clear();
        end.extend_from_slice(self.prefix);
        while let Some(last) = end.pop() {
            if last < 0xff {
                end.push(last + 1);
                break;
            }
        }
        if !self.end.is_empty() && (end.is_empty() || self.end < end.as_slice()) {
            end.clear();
            end.extend_from_slice(self.end);
        }
    }
}

/// Sees the rows of a scan, key and value; breaks to end it.
pub type RowVisitor<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// A storage engine under test. Opened by its own constructor over a list of [`SpaceSpec`].
pub trait Engine: Send + Sync {
    /// Name and version, for the reports.
    fn name(&self) -> String;

    /// What it can do by itself.
    fn capabilities(&self) -> Capabilities;

    /// The options that it really runs with, for the raw results.
    fn options(&self) -> serde_json::Value;

    /// A session for the calling thread.
    fn session(&self) -> EngineResult<Box<dyn Session + '_>>;

    /// Writes buffered data to files; returns when done.
    fn flush(&self) -> EngineResult<()>;

    /// Returns when no background work is due.
    fn wait_for_compaction(&self) -> EngineResult<()>;

    /// Brings the database into the state in which reads are measured, the same whenever the same
    /// was written: nothing in memory but caches, no background work due, and level 0 empty where
    /// the engine has a way to that. Gives what was done, in words for the report.
    fn settle_tree(&self) -> EngineResult<String> {
        self.flush()?;
        self.wait_for_compaction()?;
        Ok("flushed, background work waited for".to_owned())
    }

    /// Figures since open.
    fn statistics(&self) -> EngineResult<EngineStatistics>;

    /// Processes other than this one that do the engine's work: their CPU, bytes and memory are
    /// the engine's. Most engines live in the caller's process and have none.
    fn process_ids(&self) -> Vec<u32> {
        Vec::new()
    }

    /// Closes cleanly; all sessions are gone by then.
    fn close(self: Box<Self>) -> EngineResult<()>;
}

/// One thread's view of an engine.
///
/// Outside a transaction every read sees committed rows as of one moment of the call. Between
/// [`Session::begin`] and [`Session::commit`] or [`Session::rollback`] the locking calls build one
/// atomic change; [`Session::get_for_update`] sees the transaction's own writes. A call that
/// returns an error inside a transaction leaves it open: the caller rolls back.
pub trait Session {
    /// Reads `key` into `value` (cleared first). Returns whether it exists.
    fn get(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> EngineResult<bool>;

    /// Reads several keys; calls `found` with the index and value of each that exists.
    fn multi_get(
        &mut self,
        space: SpaceId,
        keys: &[&[u8]],
        found: &mut dyn FnMut(usize, &[u8]),
    ) -> EngineResult<()>;

    /// Visits the rows of `range` in ascending order over one consistent view, until `row` breaks.
    /// Returns the number of rows visited. `row` must not call the engine.
    fn scan(
        &mut self,
        space: SpaceId,
        range: &ScanRange<'_>,
        row: &mut RowVisitor<'_>,
    ) -> EngineResult<u64>;

    /// Visits rows in descending order over one consistent view, from the last row at or before
    /// `from` on, until `row` breaks, `limit` rows are visited or there is none. Returns the number
    /// of rows visited. `row` must not call the engine.
    fn scan_back(
        &mut self,
        space: SpaceId,
        from: &[u8],
        limit: u64,
        row: &mut RowVisitor<'_>,
    ) -> EngineResult<u64>;

    /// Applies `batch` atomically, in its order, as a transaction of its own.
    fn write_batch(&mut self, batch: &WriteBatch) -> EngineResult<()>;

    /// Starts a transaction. All rows that it locks belong to `row_group`; engines with row locks
    /// of their own ignore it, others hold one lock per group.
    fn begin(&mut self, row_group: u64) -> EngineResult<()>;

    /// Locks `key` until the transaction ends and reads it like [`Session::get`]. The lock also
    /// covers an absent key.
    fn get_for_update(
        &mut self,
        space: SpaceId,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> EngineResult<bool>;

    /// Makes a change in the open transaction, which locks the row. An engine without single
    /// delete deletes.
    fn change(&mut self, op: BatchOp<'_>) -> EngineResult<()>;

    /// Puts `key` in the open transaction.
    fn put(&mut self, space: SpaceId, key: &[u8], value: &[u8]) -> EngineResult<()> {
        self.change(BatchOp::Put(space, key, value))
    }

    /// Deletes `key` in the open transaction.
    fn delete(&mut self, space: SpaceId, key: &[u8]) -> EngineResult<()> {
        self.change(BatchOp::Delete(space, key))
    }

    /// Deletes `key`, which was put exactly once since it was last deleted, in the open
    /// transaction.
    fn single_delete(&mut self, space: SpaceId, key: &[u8]) -> EngineResult<()> {
        self.change(BatchOp::SingleDelete(space, key))
    }

    /// Applies the transaction atomically and frees its locks. After an error nothing was applied
    /// and the locks are free.
    fn commit(&mut self) -> EngineResult<()>;

    /// Drops the open transaction, if any, and frees its locks.
    fn rollback(&mut self) -> EngineResult<()>;
}

/// Somebody who works beside the workload and has nothing to do with it.
pub trait Neighbour: Send {
    /// Does one operation.
    ///
    /// # Errors
    /// The engine's, or the operating system's.
    fn step(&mut self) -> EngineResult<()>;
}

/// One change of a [`WriteBatch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchOp<'a> {
    /// Sets a key.
    Put(SpaceId, &'a [u8], &'a [u8]),
    /// Removes a key.
    Delete(SpaceId, &'a [u8]),
    /// Removes a key that was put once.
    SingleDelete(SpaceId, &'a [u8]),
}

impl<'a> BatchOp<'a> {
    /// The row that it changes.
    pub fn row(&self) -> (SpaceId, &'a [u8]) {
        match *self {
            BatchOp::Put(space, key, _)
            | BatchOp::Delete(space, key)
            | BatchOp::SingleDelete(space, key) => (space, key),
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum EntryKind {
    Put,
    Delete,
    SingleDelete,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    kind: EntryKind,
    space: SpaceId,
    key_start: usize,
    value_start: usize,
    end: usize,
}

/// Changes that are applied together, in order. One buffer, reused after [`WriteBatch::clear`].
#[derive(Clone, Debug, Default)]
pub struct WriteBatch {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

impl WriteBatch {
    /// An empty batch.
    pub fn new() -> Self {
        WriteBatch::default()
    }

    /// Adds a put.
    pub fn put(&mut self, space: SpaceId, key: &[u8], value: &[u8]) {
        self.push(EntryKind::Put, space, key, value);
    }

    /// Adds a delete.
    pub fn delete(&mut self, space: SpaceId, key: &[u8]) {
        self.push(EntryKind::Delete, space, key, &[]);
    }

    /// Adds a single delete.
    pub fn single_delete(&mut self, space: SpaceId, key: &[u8]) {
        self.push(EntryKind::SingleDelete, space, key, &[]);
    }

    fn push(&mut self, kind: EntryKind, space: SpaceId, key: &[u8], value: &[u8]) {
        let key_start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let value_start = self.bytes.len();
        self.bytes.extend_from_slice(value);
        let end = self.bytes.len();
        self.entries.push(Entry { kind, space, key_start, value_start, end });
    }

    /// Adds a change.
    pub fn change(&mut self, op: BatchOp<'_>) {
        match op {
            BatchOp::Put(space, key, value) => self.put(space, key, value),
            BatchOp::Delete(space, key) => self.delete(space, key),
            BatchOp::SingleDelete(space, key) => self.single_delete(space, key),
        }
    }

    /// Number of changes.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True when nothing was added.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of all keys and values.
    pub fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Empties it and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }

    /// The changes in order.
    pub fn ops(&self) -> impl DoubleEndedIterator<Item = BatchOp<'_>> {
        self.entries.iter().map(|entry| {
            let key = &self.bytes[entry.key_start..entry.value_start];
            match entry.kind {
                EntryKind::Put => {
                    BatchOp::Put(entry.space, key, &self.bytes[entry.value_start..entry.end])
                }
                EntryKind::Delete => BatchOp::Delete(entry.space, key),
                EntryKind::SingleDelete => BatchOp::SingleDelete(entry.space, key),
            }
        })
    }

    /// The last change of one row, if the batch changes it.
    pub fn latest(&self, space: SpaceId, key: &[u8]) -> Option<BatchOp<'_>> {
        self.ops().rev().find(|op| op.row() == (space, key))
    }

    /// Reads a row that the batch changes into `value` (cleared first), as it is afterwards, and
    /// tells whether it exists then; `None` when the batch does not change it.
    pub fn read(&self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> Option<bool> {
        let latest = self.latest(space, key)?;
        value.clear();
        let BatchOp::Put(_, _, own) = latest else { return Some(false) };
        value.extend_from_slice(own);
        Some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batch_keeps_order_and_finds_the_latest_change() {
        let (a, b) = (SpaceId(0), SpaceId(1));
        let mut batch = WriteBatch::new();
        batch.single_delete(a, b"k");
        batch.put(a, b"k", b"v");
        batch.delete(b, b"k");
        let ops: Vec<_> = batch.ops().collect();
        assert_eq!(
            ops,
            [BatchOp::SingleDelete(a, b"k"), BatchOp::Put(a, b"k", b"v"), BatchOp::Delete(b, b"k")]
        );
        assert_eq!(batch.latest(a, b"k"), Some(BatchOp::Put(a, b"k", b"v")));
        assert_eq!(batch.latest(b, b"x"), None);
        assert_eq!((batch.len(), batch.size_bytes()), (3, 4));
        batch.clear();
        assert!(batch.is_empty() && batch.ops().next().is_none());
    }

    #[test]
    fn range_bounds() {
        let range = ScanRange { prefix: b"ab", end: b"abx", ..ScanRange::prefix(b"ab") };
        assert_eq!(range.first(), b"ab");
        assert!(range.contains(b"abc") && !range.contains(b"abx") && !range.contains(b"b"));
        let mut end = b"left from before".to_vec();
        let mut bound = |prefix, end_of_range| {
            ScanRange { end: end_of_range, ..ScanRange::prefix(prefix) }.bound(&mut end);
            end.clone()
        };
        assert_eq!(bound(b"ab", b"abx"), b"abx");
        assert_eq!(bound(b"ab", b""), b"ac");
        assert_eq!(bound(b"ab", b"zz"), b"ac");
        assert_eq!(bound(b"a\xff\xff", b""), b"b");
        assert_eq!(bound(b"\xff", b""), b"");
        assert_eq!(bound(b"\xff", b"\xff\x01"), b"\xff\x01");
        assert_eq!(bound(b"", b"b"), b"b");
    }
}
