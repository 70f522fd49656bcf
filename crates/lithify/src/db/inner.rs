//! The database behind its handles: what all paths share, and what is asked before any of them.

pub(crate) use crate::base::lock;
use crate::base::{ColumnFamilyId, FileNumber, MemoryBudget, SequenceNumber};
use crate::cache::BlockCache;
use crate::compaction::Workshop;
use crate::db::committing::commit::{CommitQueue, Writer};
use crate::db::jobs::Jobs;
use crate::db::lifecycle::Lifecycle;
use crate::db::reading::snapshot::{Snapshot, SnapshotList};
use crate::db::rows::locks::{Circle, Grant, LockTable, OwnerId, RowId};
use crate::db::rows::transaction_use::TransactionUse;
use crate::db::tree::departing::Departing;
use crate::db::tree::family::Family;
use crate::fs::{Event, Thread, World};
use crate::manifest::{Change, FileNumbers, Manifest, ManifestState, VersionEdit, WitnessKeeper};
use crate::memtable::chunk_pool::ChunkPool;
use crate::options::Options;
use crate::stats::{Cause, Counter, Ledger};
use crate::{Error, ErrorKind, Result};
use arc_swap::ArcSwap;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// The column families that are not dropped, by id.
pub(crate) type Families = BTreeMap<ColumnFamilyId, Arc<Family>>;

/// A spinning waiter looks so often before it sleeps, 20 to 40 microseconds in all: a commit group
/// takes a few, and a sleep with its wake-up costs ten. LinkBench's requests switch context a
/// seventh as often with it (0.0045 instead of 0.032 times an operation), and p99.9 of their
/// writes halves.
const LOOKS: u32 = 64;

/// So often it rests between two looks.
const SPINS_PER_LOOK: u32 = 16;

/// Messages show no more of a key than this.
const NAMED_KEY_BYTES_MAX: usize = 64;

/// Why a row lock was not granted.
enum Refusal {
    Timeout { timeout_us: u64 },
    Deadlock(Circle),
}

impl Refusal {
    fn into_error(self, row: &str) -> Error {
        match self {
            Refusal::Timeout { timeout_us } => Error::new(
                ErrorKind::LockTimeout,
                format!("the lock of {row} was not granted in time: roll back and retry"),
            )
            .expected(format_args!("a lock within {timeout_us} us"), "the row still locked"),
            Refusal::Deadlock(Circle { owners }) => Error::new(
                ErrorKind::Deadlock,
                format!(
                    "waiting for the lock of {row} would close a circle of {owners} writers that \
                     wait for each other: roll back and retry"
                ),
            ),
        }
    }
}

/// See the module. Handles share it; background jobs hold it while they run.
pub(crate) struct DbInner {
    pub(crate) path: PathBuf,
    pub(crate) options: Options,
    pub(crate) world: World,
    pub(crate) database_id: u128,
    pub(crate) witness: Arc<WitnessKeeper>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) budget: Arc<MemoryBudget>,
    /// The memory that memtables leave to each other.
    pub(crate) chunks: Arc<ChunkPool>,
    pub(crate) cache: Arc<BlockCache>,
    pub(crate) file_numbers: Arc<FileNumbers>,
    pub(crate) workshop: Arc<Workshop>,
    pub(crate) families: ArcSwap<Families>,
    pub(crate) manifest: Mutex<Manifest>,
    pub(crate) commits: CommitQueue,
    pub(crate) writer: Mutex<Writer>,
    /// Log segments from this number on are to come; the number of the current one, if any.
    pub(crate) wal_number: AtomicU64,
    /// What is committed: reads without a snapshot read here.
    pub(crate) visible: AtomicU64,
    /// The memtables of all families were last switched together at this sequence number.
    pub(crate) switched_through: AtomicU64,
    /// Cursors made so far; tells apart where their samples begin.
    pub(crate) next_cursor: AtomicU64,
    pub(crate) snapshots: SnapshotList,
    pub(crate) locks: LockTable,
    pub(crate) transactions: TransactionUse,
    /// Ingests that hold writers back, see `IngestGate`.
    pub(crate) closed_gates: AtomicUsize,
    pub(crate) jobs: Jobs,
    pub(crate) lifecycle: Lifecycle,
    /// As a writer: files that readers may still need.
    pub(crate) departing: Mutex<Departing>,
    /// The thread that syncs the log at intervals, and what ends it.
    pub(crate) syncer: Mutex<Option<Box<dyn Thread>>>,
    pub(crate) stop_syncing: Arc<dyn Event>,
    /// Manifest bytes that are in the ledger already.
    pub(crate) manifest_booked_bytes: AtomicU64,
}

impl DbInner {
    pub(crate) fn manifest(&self) -> MutexGuard<'_, Manifest> {
        lock(&self.manifest)
    }

    /// As [`Jobs::wait`], for what another writer mostly brings about within microseconds: looks
    /// for it a while before it sleeps.
    pub(crate) fn wait_spinning(
        &self,
        event: &Arc<dyn Event>,
        deadline_us: Option<u64>,
        mut condition: impl FnMut() -> bool,
    ) -> bool {
        for _ in 0..LOOKS {
            if condition() {
                return true;
            }
            if self.commits.leader_rests() {
                break;
            }
            (0..SPINS_PER_LOOK).for_each(|_| std::hint::spin_loop());
        }
        self.jobs.wait(event, deadline_us, condition)
    }

    /// Takes the lock of a row, waiting for it at most so long. `name` gives its family and key
    /// for the message of an error.
    pub(crate) fn lock_row<'k>(
        &self,
        owner: OwnerId,
        row: RowId,
        timeout_us: u64,
        name: impl FnOnce() -> (ColumnFamilyId, &'k [u8]),
    ) -> Result<Grant> {
        let grant = self.locks.try_acquire(owner, row);
        if grant != Grant::Busy {
            return Ok(grant);
        }
        self.ledger.count(Counter::LockWaits, 1);
        self.wait_for_row(owner, row, timeout_us).map_err(|refusal| {
            let (family, key) = name();
            refusal.into_error(&self.row_name(family, key))
        })
    }

    fn wait_for_row(
        &self,
        owner: OwnerId,
        row: RowId,
        timeout_us: u64,
    ) -> std::result::Result<Grant, Refusal> {
        // Who does not wait closes no circle.
        let detects = self.options.deadlock_detection && timeout_us > 0;
        let wait = detects.then(|| self.locks.begin_wait(owner, row)).transpose();
        let _wait = wait.map_err(|circle| {
            self.ledger.count(Counter::Deadlocks, 1);
            Refusal::Deadlock(circle)
        })?;
        let mut grant = Grant::Busy;
        let deadline_us = self.world.environment.now_us().saturating_add(timeout_us);
        let granted = self.wait_spinning(self.locks.freed_event(row), Some(deadline_us), || {
            grant = self.locks.try_acquire(owner, row);
            grant != Grant::Busy
        });
        if granted {
            return Ok(grant);
        }
        self.ledger.count(Counter::LockTimeouts, 1);
        Err(Refusal::Timeout { timeout_us })
    }

    /// A row as a message names it.
    fn row_name(&self, family: ColumnFamilyId, key: &[u8]) -> String {
        let shown = key.get(..NAMED_KEY_BYTES_MAX).unwrap_or(key);
        let rest = match key.len() - shown.len() {
            0 => String::new(),
            rest => format!(" and {rest} bytes more"),
        };
        let key = shown.escape_ascii();
        match self.families.load().get(&family) {
            Some(family) => format!("row \"{key}\"{rest} of column family {:?}", family.name),
            None => format!("row \"{key}\"{rest} of a dropped column family"),
        }
    }

    /// Makes plain writes take row locks from now on, and waits for those under way without.
    pub(crate) fn begin_transactions(&self) {
        self.transactions.begin(|drained, condition| {
            self.jobs.wait(drained, None, condition);
        });
    }

    pub(crate) fn new_snapshot(self: &Arc<Self>) -> Snapshot {
        let early = planted!(SnapshotRegisteredLate).then(|| self.sequence_long_ago());
        let sequence = self.snapshots.register(|| match early {
            Some(early) => early,
            None => {
                self.visible.load(Ordering::Acquire)
                    + SequenceNumber::from(planted!(SnapshotTooNew))
            }
        });
        Snapshot { inner: Arc::clone(self), sequence }
    }

    pub(crate) fn release_snapshot(self: &Arc<Self>, sequence: SequenceNumber) {
        if self.snapshots.release(sequence) && self.lifecycle.check_writable().is_ok() {
            self.schedule_all_compactions();
        }
    }

    pub(crate) fn snapshot_sequences(&self) -> Vec<SequenceNumber> {
        self.snapshots.all_and(|| self.visible.load(Ordering::Acquire))
    }

    /// A new log segment is started at this size, so that flushed ones can be recycled.
    pub(crate) fn wal_segment_bytes(&self) -> u64 {
        (self.options.memtable_bytes as u64).min(self.options.wal_bytes_max / 2).max(1 << 16)
    }

    pub(crate) fn note_wal_number(&self, number: FileNumber) {
        self.wal_number.store(number, Ordering::Release);
    }

    /// Makes an edit durable and gives the state that it leads to. Where it is unknown whether it
    /// is durable, all writing stops: a write that is acknowledged from then on could be to a
    /// family that the next opening does not find.
    pub(crate) fn append_edit(
        &self,
        manifest: &mut Manifest,
        changes: Vec<Change>,
    ) -> Result<Arc<ManifestState>> {
        let appended = manifest.append(VersionEdit { changes });
        self.book_manifest(manifest);
        appended.inspect_err(|error| {
            if error.kind() == ErrorKind::Poisoned {
                self.lifecycle.poison(error);
            }
        })
    }

    /// Books what the manifest has written since the last call.
    pub(crate) fn book_manifest(&self, manifest: &Manifest) {
        let written_bytes = manifest.written_bytes();
        let booked_bytes = self.manifest_booked_bytes.swap(written_bytes, Ordering::AcqRel);
        let bytes = written_bytes.saturating_sub(booked_bytes);
        self.ledger.book_written(Cause::Manifest, 0, 0, bytes);
    }

    pub(crate) fn book_cursor(&self, rows: u64, skipped_entries: u64) {
        self.ledger.count(Counter::Nexts, rows);
        self.ledger.count(Counter::SkippedEntries, skipped_entries);
    }
}
