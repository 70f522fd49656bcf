//! A second log, as servers keep one beside that of their engine (a binary log, an "oplog"): the
//! driver appends every committed change to a file of its own.
//!
//! Owns: the file, its format (written, never read here), and what it costs. The log lies above the
//! engine: a batch, and the changes of a transaction when it has committed, become one record, with
//! one write to the operating system and no sync. Records of all sessions stand in the order of
//! their commits as the log saw them.
//!
//! Promises: a change that the engine refused is not in the log; bytes and CPU are counted apart
//! from the engine's. CPU is the thread's, from before the lock of the log to after the write; the
//! two readings of the clock, well below a microsecond, are in it.
//!
//! Threads: sessions of any threads; they wait for each other at the log.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::adapter::graph::{GraphEngine, schema};
use crate::adapter::layer::{EngineLayer, SessionLayer};
use crate::adapter::provider::Transactions;
use crate::adapter::{BatchOp, Engine, EngineError, EngineResult, Session, WriteBatch};
use crate::engines::plain_deletes::PlainDeletes;
use crate::linkbench::cell::CellSpec;
use crate::run::device_limit::DeviceLimit;
use crate::run::{RunError, failed};

/// What a second log took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecondLogUsage {
    /// Records, one for each transaction and each batch.
    pub records: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// CPU, microseconds.
    pub cpu_us: u64,
}

impl SecondLogUsage {
    /// What was taken since `before`.
    pub fn since(&self, before: &SecondLogUsage) -> SecondLogUsage {
        SecondLogUsage {
            records: self.records - before.records,
            bytes: self.bytes - before.bytes,
            cpu_us: self.cpu_us - before.cpu_us,
        }
    }
}

/// An engine with a second log above it.
pub struct SecondLog {
    below: Box<dyn Engine>,
    file: Mutex<File>,
    records: AtomicU64,
    bytes: AtomicU64,
    cpu_ns: AtomicU64,
}

impl SecondLog {
    /// Puts a log in `path`, which is made or emptied, above `below`.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn above(below: Box<dyn Engine>, path: &Path) -> Result<SecondLog, RunError> {
        let file = File::create(path).map_err(|error| RunError::io(path, error))?;
        let [records, bytes, cpu_ns] = [const { AtomicU64::new(0) }; 3];
        Ok(SecondLog { below, file: Mutex::new(file), records, bytes, cpu_ns })
    }

    /// What it took so far.
    pub fn usage(&self) -> SecondLogUsage {
        SecondLogUsage {
            records: self.records.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            cpu_us: self.cpu_ns.load(Ordering::Relaxed) / 1000,
        }
    }

    /// Appends one record.
    fn append(&self, changes: &WriteBatch, record: &mut Vec<u8>) -> EngineResult<()> {
        if changes.is_empty() {
            return Ok(());
        }
        let begun_ns = thread_cpu_ns();
        encode(changes, record);
        let written = {
            let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
            file.write_all(record)
        };
        let failed = |error: io::Error| EngineError::fatal(format!("second log: {error}"));
        written.map_err(failed)?;
        self.records.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(record.len() as u64, Ordering::Relaxed);
        let taken_ns = thread_cpu_ns().saturating_sub(begun_ns);
        self.cpu_ns.fetch_add(taken_ns, Ordering::Relaxed);
        Ok(())
    }
}

/// CPU of the calling thread, nanoseconds.
fn thread_cpu_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(0, |time| {
        time.tv_sec().cast_unsigned() * 1_000_000_000 + time.tv_nsec().cast_unsigned()
    })
}

/// A record: its length in 4 bytes, then each change: kind, space, length of key and of value in
/// 4 bytes each, key, value. Little-endian.
fn encode(changes: &WriteBatch, record: &mut Vec<u8>) {
    record.clear();
    record.extend_from_slice(&[0; 4]);
    for change in changes.ops() {
        let (kind, value): (u8, &[u8]) = match change {
            BatchOp::Put(_, _, value) => (1, value),
            BatchOp::Delete(..) => (2, &[]),
            BatchOp::SingleDelete(..) => (3, &[]),
        };
        let (space, key) = change.row();
        record.push(kind);
        for number in [space.index(), key.len(), value.len()] {
            record.extend_from_slice(&u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
        }
        record.extend_from_slice(key);
        record.extend_from_slice(value);
    }
    let length = u32::try_from(record.len()).unwrap_or(u32::MAX);
    record[..4].copy_from_slice(&length.to_le_bytes());
}

impl EngineLayer for SecondLog {
    fn below(&self) -> &dyn Engine {
        &*self.below
    }

    fn into_below(self: Box<Self>) -> Box<dyn Engine> {
        self.below
    }

    fn session_above(&self) -> EngineResult<Box<dyn Session + '_>> {
        Ok(Box::new(LoggedSession {
            log: self,
            below: Engine::session(&*self.below)?,
            changes: WriteBatch::new(),
            record: Vec::new(),
        }))
    }
}

struct LoggedSession<'a> {
    log: &'a SecondLog,
    below: Box<dyn Session + 'a>,
    /// Those of the open transaction.
    changes: WriteBatch,
    record: Vec<u8>,
}

impl SessionLayer for LoggedSession<'_> {
    fn below(&mut self) -> &mut dyn Session {
        &mut *self.below
    }

    fn write_batch_above(&mut self, batch: &WriteBatch) -> EngineResult<()> {
        self.below.write_batch(batch)?;
        self.log.append(batch, &mut self.record)
    }

    fn begin_above(&mut self, row_group: u64) -> EngineResult<()> {
        self.changes.clear();
        self.below.begin(row_group)
    }

    fn change_above(&mut self, op: BatchOp<'_>) -> EngineResult<()> {
        self.below.change(op)?;
        self.changes.change(op);
        Ok(())
    }

    fn commit_above(&mut self) -> EngineResult<()> {
        self.below.commit()?;
        self.log.append(&self.changes, &mut self.record)
    }

    fn rollback_above(&mut self) -> EngineResult<()> {
        self.changes.clear();
        self.below.rollback()
    }
}

/// The engine of a cell as the workload sees it, with the driver's own log above it where the cell
/// has one, and below that what makes its deletes plain.
pub(super) enum Opened {
    /// Without a log.
    Plain(Box<dyn GraphEngine>),
    /// With one.
    Logged(Box<SecondLog>),
}

impl Opened {
    /// Opens it in `directory`; where there is a log, the engine gets a directory in it and the log
    /// stands beside that. Gives the engine's directory too.
    pub(super) fn open(
        spec: &CellSpec,
        device: Option<&DeviceLimit>,
        directory: &Path,
    ) -> Result<(Opened, PathBuf), RunError> {
        let settings = match device {
            Some(device) => device.settings(&spec.settings),
            None => spec.settings.clone(),
        };
        if !spec.second_log && !spec.plain_deletes {
            let engine = crate::engines::registry::open_graph(&spec.engine, directory, &settings)
                .map_err(|error| failed("open", &error))?;
            return Ok((Opened::Plain(engine), directory.to_owned()));
        }
        // Both layers are over changes to keys: an engine that holds the graph in tables of its own
        // keeps it as ordered keys here.
        let open = |directory: &Path| {
            let (spaces, needed) = (&schema::SPACES, Transactions::Needed);
            let opened = crate::engines::registry::open_spaces(
                &spec.engine,
                directory,
                &settings,
                spaces,
                needed,
            );
            let engine = opened.map_err(|error| failed("open", &error))?;
            Ok::<Box<dyn Engine>, RunError>(match spec.plain_deletes {
                true => Box::new(PlainDeletes::above(engine)),
                false => engine,
            })
        };
        if !spec.second_log {
            return Ok((Opened::Plain(Box::new(open(directory)?)), directory.to_owned()));
        }
        let own = directory.join("engine");
        std::fs::create_dir(&own).map_err(|error| RunError::io(&own, error))?;
        let log = SecondLog::above(open(&own)?, &directory.join("second-log"))?;
        Ok((Opened::Logged(Box::new(log)), own))
    }

    /// What the workload works on.
    pub(super) fn engine(&self) -> &dyn GraphEngine {
        match self {
            Opened::Plain(engine) => &**engine,
            Opened::Logged(log) => &**log,
        }
    }

    /// What the log took so far; `None` without one.
    pub(super) fn log_usage(&self) -> Option<SecondLogUsage> {
        match self {
            Opened::Plain(_) => None,
            Opened::Logged(log) => Some(log.usage()),
        }
    }

    /// Closes it cleanly.
    pub(super) fn close(self) -> Result<(), RunError> {
        let closed = match self {
            Opened::Plain(engine) => engine.close(),
            Opened::Logged(log) => Engine::close(log),
        };
        closed.map_err(|error| failed("close", &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::SpaceId;
    use crate::engines::model::ModelEngine;
    use crate::keyvalue::{SPACE, SPACES};

    #[test]
    fn committed_changes_are_logged_and_no_others() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("log");
        let log = SecondLog::above(Box::new(ModelEngine::new(&SPACES)), &path).expect("is made");
        let mut session = Engine::session(&log).expect("has sessions");
        let mut batch = WriteBatch::new();
        batch.put(SPACE, b"a", b"12");
        session.write_batch(&batch).expect("writes");
        // 4 of the record, 13 of the change, key and value.
        assert_eq!((log.usage().records, log.usage().bytes), (1, 4 + 13 + 3));
        session.begin(0).expect("begins");
        session.put(SPACE, b"b", b"3").expect("puts");
        session.rollback().expect("rolls back");
        assert_eq!(log.usage().records, 1, "nothing of a transaction that was dropped");
        session.begin(0).expect("begins");
        session.delete(SPACE, b"a").expect("deletes");
        session.put(SPACE, b"c", b"").expect("puts");
        session.commit().expect("commits");
        session.begin(0).expect("begins");
        session.commit().expect("commits nothing");
        let usage = log.usage();
        assert_eq!((usage.records, usage.bytes), (2, 20 + 4 + 2 * (13 + 1)));
        assert!(session.write_batch(&bad_batch()).is_err(), "the engine has no such space");
        assert_eq!(log.usage().records, 2);
        let bytes = std::fs::read(&path).expect("reads");
        assert_eq!(bytes.len() as u64, usage.bytes);
        assert_eq!(bytes[..4], 20u32.to_le_bytes());
        assert_eq!(bytes[4], 1);
        assert_eq!(&bytes[17..20], b"a12");
        assert_eq!(usage.since(&SecondLogUsage { records: 1, bytes: 20, cpu_us: 0 }).bytes, 32);
    }

    fn bad_batch() -> WriteBatch {
        let mut batch = WriteBatch::new();
        batch.put(SpaceId(9), b"a", b"b");
        batch
    }
}
