//! Threads and memory that several databases of one process share.
//!
//! 1. The block cache, the memory budget and the codec contexts are one for all. Blocks are known in
//!    the cache by numbers of files that no two open tables share.
//! 2. The workers take a step of each database in turn ([`crate::compaction::pool`]). One thread syncs the logs
//!    of all databases with intervals.
//! 3. A database may fill memtables as far as the others leave room, and always its part of what all may
//!    ([`DbInner::active_bytes_max`]). With half of the budget in memtables, who has some to flush waits.
//! 4. A failure, a panic and a close are of one database.

use crate::base::{MemoryBudget, MemoryUse, lock};
use crate::cache::BlockCache;
use crate::codec::ContextPool;
use crate::compaction::pool::WorkerPool;
use crate::db::inner::DbInner;
use crate::fs::{Environment, Event, Origin};
use crate::options::Options;
use crate::{Error, ErrorKind, Result};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};

/// The least budget, and the most threads: as those of the options.
const BUDGET_BYTES_MIN: usize = 1 << 20;
const THREADS_MAX: usize = 64;

/// However many databases there are, one may fill a memtable so far.
const ACTIVE_BYTES_MIN: usize = 64 << 10;

/// Threads and memory for several databases of one process: for [`crate::Db::open_shared`]. Clones are
/// the same resources. The threads end with the last clone and the last database.
///
/// ```
/// # let directory = tempfile::tempdir().unwrap();
/// use lithify::{Db, Options, Resources};
/// let resources = Resources::new(64 << 20, 2)?;
/// let ores = Db::open_shared(directory.path().join("ores"), Options::default(), &resources)?;
/// let gems = Db::open_shared(directory.path().join("gems"), Options::default(), &resources)?;
/// ores.put("galena", "lead")?;
/// gems.put("beryl", "emerald")?;
/// # Ok::<(), lithify::Error>(())
/// ```
#[derive(Clone)]
pub struct Resources {
    inner: Arc<Inner>,
}

struct Inner {
    /// The process that has the threads.
    origin: Origin,
    budget: Arc<MemoryBudget>,
    cache: Arc<BlockCache>,
    codecs: Arc<ContextPool>,
    threads: usize,
    /// Started by the first database, in its environment.
    workers: Mutex<Option<Arc<WorkerPool>>>,
    syncer: Mutex<Option<Arc<Syncer>>>,
}

impl fmt::Debug for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Resources");
        fields.field("memory_budget_bytes", &self.memory_budget_bytes());
        fields.field("background_threads", &self.background_threads()).finish_non_exhaustive()
    }
}

impl Resources {
    /// A memory budget, and so many threads that flush and compact. They start with the first database.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidArgument`] for less than 1 MiB, and for no or over 64 threads.
    pub fn new(memory_budget_bytes: usize, background_threads: usize) -> Result<Resources> {
        if memory_budget_bytes < BUDGET_BYTES_MIN {
            return Err(Error::invalid("shared memory_budget_bytes is too small")
                .expected(format_args!("at least {BUDGET_BYTES_MIN}"), memory_budget_bytes));
        }
        if !(1..=THREADS_MAX).contains(&background_threads) {
            return Err(Error::invalid("shared background_threads is out of its range")
                .expected(format_args!("1 to {THREADS_MAX}"), background_threads));
        }
        let budget = MemoryBudget::new(memory_budget_bytes);
        let inner = Inner {
            origin: Origin::here(),
            cache: BlockCache::new(Arc::clone(&budget), memory_budget_bytes / 16),
            codecs: ContextPool::new(Arc::clone(&budget)),
            budget,
            threads: background_threads,
            workers: Mutex::default(),
            syncer: Mutex::default(),
        };
        Ok(Resources { inner: Arc::new(inner) })
    }

    /// The memory that all databases together keep to.
    pub fn memory_budget_bytes(&self) -> usize {
        self.inner.budget.limit_bytes()
    }

    /// What of it is in use, block cache included.
    pub fn memory_used_bytes(&self) -> usize {
        let budget = &self.inner.budget;
        budget.used_beside_cache_bytes() + budget.used_bytes(MemoryUse::Cache)
    }

    /// Threads that flush and compact for all databases.
    pub fn background_threads(&self) -> usize {
        self.inner.threads
    }

    /// The options of a database that takes part.
    pub(crate) fn applied_to(&self, options: Options) -> Options {
        Options {
            memory_budget_bytes: self.memory_budget_bytes(),
            background_threads: self.background_threads(),
            ..options
        }
    }

    /// The memory: budget, cache and codec contexts.
    pub(crate) fn memory(&self) -> (Arc<MemoryBudget>, Arc<BlockCache>, Arc<ContextPool>) {
        let Inner { budget, cache, codecs, .. } = &*self.inner;
        (Arc::clone(budget), Arc::clone(cache), Arc::clone(codecs))
    }

    /// The workers, started if they are not.
    pub(crate) fn workers(
        &self,
        environment: &Arc<dyn Environment>,
        nice: u32,
    ) -> Result<Arc<WorkerPool>> {
        if !self.inner.origin.is_here() {
            let what = "another process made the resources before a fork: make them in this one";
            return Err(Error::new(ErrorKind::Closed, what));
        }
        let mut workers = lock(&self.inner.workers);
        if let Some(workers) = &*workers {
            return Ok(Arc::clone(workers));
        }
        let started = WorkerPool::new(Arc::clone(environment), self.inner.threads, nice)?;
        *workers = Some(Arc::clone(&started));
        Ok(started)
    }

    /// Has the log of a database synced at intervals, until the database is closed.
    pub(crate) fn sync_at_intervals(&self, inner: &Arc<DbInner>, interval_us: u64) -> Result<()> {
        let environment = &inner.world.environment;
        let syncer = self.syncer(environment)?;
        let due_us = environment.now_us().saturating_add(interval_us);
        let log = SyncedLog { inner: Arc::downgrade(inner), interval_us, due_us };
        lock(&syncer.logs).push(log);
        syncer.changed.notify_all();
        Ok(())
    }

    /// The thread that syncs, started if it is not.
    fn syncer(&self, environment: &Arc<dyn Environment>) -> Result<Arc<Syncer>> {
        let mut syncer = lock(&self.inner.syncer);
        if let Some(syncer) = &*syncer {
            return Ok(Arc::clone(syncer));
        }
        let started = Syncer::start(environment)?;
        *syncer = Some(Arc::clone(&started));
        Ok(started)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if !self.origin.is_here() {
            // A child of a fork does not have the threads that would end here.
            std::mem::forget(std::mem::take(&mut self.workers));
        } else if let Some(syncer) = &*lock(&self.syncer) {
            syncer.is_ending.store(true, Ordering::Release);
            syncer.changed.notify_all();
        }
    }
}

struct SyncedLog {
    inner: Weak<DbInner>,
    interval_us: u64,
    due_us: u64,
}

/// The thread that syncs logs at intervals.
struct Syncer {
    environment: Arc<dyn Environment>,
    logs: Mutex<Vec<SyncedLog>>,
    changed: Arc<dyn Event>,
    is_ending: AtomicBool,
}

impl Syncer {
    fn start(environment: &Arc<dyn Environment>) -> Result<Arc<Self>> {
        let syncer = Arc::new(Syncer {
            environment: Arc::clone(environment),
            logs: Mutex::default(),
            changed: environment.new_event(),
            is_ending: AtomicBool::new(false),
        });
        let body = Arc::clone(&syncer);
        // It ends by itself: nobody waits for it, who may be this thread.
        drop(environment.spawn("lithify-shared-sync", Box::new(move || body.run()))?);
        Ok(syncer)
    }

    fn run(&self) {
        loop {
            let seen = self.changed.generation();
            if self.is_ending.load(Ordering::Acquire) {
                return;
            }
            while let Some(inner) = self.take_due() {
                inner.sync_at_interval();
            }
            let now_us = self.environment.now_us();
            let next_us = lock(&self.logs).iter().map(|log| log.due_us).min();
            self.changed.wait(seen, next_us.map(|due_us| due_us.saturating_sub(now_us).max(1)));
        }
    }

    /// The log that has been due longest; none of a closed database.
    fn take_due(&self) -> Option<Arc<DbInner>> {
        let now_us = self.environment.now_us();
        let mut logs = lock(&self.logs);
        let is_open = |inner: &Arc<DbInner>| inner.lifecycle.check_open().is_ok();
        logs.retain(|log| log.inner.upgrade().is_some_and(|inner| is_open(&inner)));
        let log = logs.iter_mut().min_by_key(|log| log.due_us).filter(|l| l.due_us <= now_us)?;
        log.due_us = now_us.saturating_add(log.interval_us);
        log.inner.upgrade()
    }
}

impl DbInner {
    /// Active memtables may take so much: a quarter of the budget, and of one that is shared what the
    /// others leave of a quarter, at least a part for each.
    pub(crate) fn active_bytes_max(&self, active_bytes: usize) -> usize {
        let all_bytes = self.options.memory_budget_bytes / 4;
        let Some(share) = &self.workshop.share else { return all_bytes };
        let others_bytes = self.workshop.budget.used_bytes(MemoryUse::Memtable);
        let left_bytes = all_bytes.saturating_sub(others_bytes.saturating_sub(active_bytes));
        left_bytes.max(all_bytes / share.count()).max(ACTIVE_BYTES_MIN)
    }

    /// Whether memtables of several databases take all that they may, and some of this one's can be
    /// flushed.
    #[inline]
    pub(crate) fn is_shared_memory_short(&self) -> bool {
        self.workshop.share.is_some()
            && self.workshop.budget.used_bytes(MemoryUse::Memtable)
                >= self.options.memory_budget_bytes / 2
            && self.tree.families().values().any(|family| !family.view().immutable.is_empty())
    }
}
