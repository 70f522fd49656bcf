//! The database of a case, and what its threads tell each other.

use super::filtered::{self, FilteredRows};
use super::ingested::{self, IngestedRows};
use super::queue::{self, Queues};
use super::{WRITERS, let_syncs_last};
use crate::random::Random;
use lithify::fs::{MemoryFileSystem, SystemEnvironment, World};
use lithify::{CfOptions, ColumnFamily, Db, Durability, Options, Slice};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Groups of rows that are written together.
pub(super) const GROUPS: u64 = 8;

/// Rows of a group in each column family.
pub(super) const ROWS: u64 = 24;

/// Rows that transactions count up.
pub(super) const COUNTERS: u64 = 2;

const FAMILIES: [&str; 2] = ["a", "b"];

/// What a value has behind its number.
const PADDING_BYTES: usize = 120;

/// A lock is granted within this, or never.
const LOCK_TIMEOUT_MS: u64 = 20_000;

/// Where the database is.
pub(super) const PATH: &str = "/threads";

/// One commit to a group, with the moments at which it began and returned; 0 while it has not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Commit {
    pub(super) group: u64,
    pub(super) began: u64,
    pub(super) ended: u64,
}

/// What is known of the numbers of a group.
#[derive(Default)]
pub(super) struct Group {
    /// The newest that somebody has begun to write.
    pub(super) begun: AtomicU64,
    /// The newest that was acknowledged.
    pub(super) done: AtomicU64,
}

/// See the module.
pub(super) struct Bench {
    pub(super) files: MemoryFileSystem,
    pub(super) db: Db,
    pub(super) families: Vec<ColumnFamily>,
    pub(super) groups: Vec<Group>,
    pub(super) queues: Queues,
    pub(super) filtered: FilteredRows,
    pub(super) ingested: IngestedRows,
    /// How often each counter was raised.
    pub(super) raised: Vec<AtomicU64>,
    /// The commits of each writer, in order: a group has one writer.
    logs: Vec<Mutex<Vec<Commit>>>,
    /// So many commits of each writer are durable, by a sync that returned.
    synced: Vec<AtomicU64>,
    moment: AtomicU64,
    is_over: AtomicBool,
}

pub(super) fn text(error: lithify::Error) -> String {
    error.to_string()
}

pub(super) fn key(group: u64, row: u64) -> Vec<u8> {
    format!("group{group:02}-row{row:04}").into_bytes()
}

pub(super) fn counter_key(counter: u64) -> Vec<u8> {
    format!("counter{counter}").into_bytes()
}

/// A value with that number, which no codec makes much smaller.
pub(super) fn value(number: u64, random: &mut Random) -> Vec<u8> {
    let mut value = number.to_le_bytes().to_vec();
    while value.len() < PADDING_BYTES {
        value.extend(random.next().to_le_bytes());
    }
    value
}

/// The number in a value.
pub(super) fn number(value: &[u8]) -> u64 {
    value.first_chunk().map_or(0, |number| u64::from_le_bytes(*number))
}

impl Bench {
    /// A database in which every row has the number 1.
    pub(super) fn new(random: &mut Random) -> Result<Bench, String> {
        let files = MemoryFileSystem::new();
        let_syncs_last(&files, random.next());
        let (disk, environment) = (Arc::new(files.clone()), Arc::new(SystemEnvironment));
        let world = World { files: disk, environment };
        let options = Options {
            // All that is ever read finds room.
            memory_budget_bytes: 32 << 20,
            memtable_bytes: 64 << 10 << random.below(2),
            wal_bytes_max: 1 << 20,
            background_threads: random.between(1, 2) as usize,
            durability: *random.pick(&[
                Durability::Buffered,
                Durability::Sync,
                Durability::None,
                Durability::Interval { milliseconds: 1 },
            ]),
            row_lock_timeout_ms: LOCK_TIMEOUT_MS,
            ..Options::default()
        };
        let small = CfOptions {
            compression: random.pick(&["none", "lz4", "zstd-1"]).parse().map_err(text)?,
            block_size_bytes: 1 << random.between(9, 12),
            table_bytes: 64 << 10,
            base_level_bytes_max: 128 << 10,
            fanout: *random.pick(&[2, 4]),
            prefix_length_bytes: *random.pick(&[0, 7]),
            ..CfOptions::default()
        };
        let db = Db::open_in(PATH, options, world).map_err(text)?;
        let families = FAMILIES.map(|name| db.column_family(name, small.clone()));
        let families = families.into_iter().collect::<Result<_, _>>().map_err(text)?;
        let queues = Queues::new(db.column_family(queue::FAMILY, small.clone()).map_err(text)?);
        let filtered = db.column_family(filtered::FAMILY, small.clone()).map_err(text)?;
        let ingested = db.column_family(ingested::FAMILY, small).map_err(text)?;
        let bench = Bench {
            files,
            db,
            families,
            queues,
            filtered: FilteredRows::new(filtered),
            ingested: IngestedRows::new(ingested),
            groups: (0..GROUPS).map(|_| Group::default()).collect(),
            raised: (0..COUNTERS).map(|_| AtomicU64::new(0)).collect(),
            logs: (0..WRITERS).map(|_| Mutex::default()).collect(),
            synced: (0..WRITERS).map(|_| AtomicU64::new(0)).collect(),
            moment: AtomicU64::new(1),
            is_over: AtomicBool::new(false),
        };
        for group in 0..GROUPS {
            bench.count_up(group, false, random)?;
        }
        Ok(bench)
    }

    /// Gives all rows of a group the next number.
    pub(super) fn count_up(
        &self,
        group: u64,
        deletes_first: bool,
        random: &mut Random,
    ) -> Result<(), String> {
        let known = &self.groups[group as usize];
        let next = known.begun.load(Ordering::SeqCst) + 1;
        let mut batch = self.db.batch();
        for family in &self.families {
            if deletes_first {
                batch.delete_range(family, key(group, 0), key(group, ROWS));
            }
            for row in 0..ROWS {
                batch.put(family, key(group, row), value(next, random));
            }
        }
        known.begun.store(next, Ordering::SeqCst);
        self.log(group).push(Commit { group, began: self.tick(), ended: 0 });
        batch.commit().map_err(text)?;
        if let Some(commit) = self.log(group).last_mut() {
            commit.ended = self.tick();
        }
        known.done.store(next, Ordering::SeqCst);
        Ok(())
    }

    fn tick(&self) -> u64 {
        self.moment.fetch_add(1, Ordering::SeqCst)
    }

    /// The commits of a group's writer.
    fn log(&self, group: u64) -> MutexGuard<'_, Vec<Commit>> {
        let log = &self.logs[(group % WRITERS) as usize];
        log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The commits that a writer has begun.
    pub(super) fn commits(&self, writer: u64) -> Vec<Commit> {
        self.log(writer).clone()
    }

    /// How many commits of a writer have returned.
    pub(super) fn acknowledged(&self, writer: u64) -> usize {
        self.log(writer).iter().filter(|commit| commit.ended > 0).count()
    }

    /// Syncs the log: what was acknowledged before is durable then.
    pub(super) fn sync(&self) -> Result<(), String> {
        if self.db.options().durability == Durability::None {
            return Ok(());
        }
        let counts: Vec<_> = (0..WRITERS).map(|writer| self.acknowledged(writer)).collect();
        self.db.sync().map_err(text)?;
        for (synced, count) in self.synced.iter().zip(counts) {
            synced.fetch_max(count as u64, Ordering::SeqCst);
        }
        Ok(())
    }

    /// How many commits of a writer were synced by somebody.
    pub(super) fn synced(&self, writer: u64) -> usize {
        self.synced[writer as usize].load(Ordering::SeqCst) as usize
    }

    /// The newest number of every group.
    pub(super) fn numbers(&self) -> [u64; GROUPS as usize] {
        std::array::from_fn(|group| self.groups[group].begun.load(Ordering::SeqCst))
    }

    /// Raises a counter by one, in one of the ways that lose nothing of what others do.
    pub(super) fn raise(&self, counter: u64, random: &mut Random) -> Result<(), String> {
        match random.below(3) {
            0 => self.raise_in_transaction(counter, random)?,
            1 => self.raise_by_update(counter, random)?,
            _ => while !self.raise_by_comparison(counter, random)? {},
        }
        self.raised[counter as usize].fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn raise_by_update(&self, counter: u64, random: &mut Random) -> Result<(), String> {
        let raise = |old: Option<Slice>| Some(value(old.map_or(0, |old| number(&old)) + 1, random));
        self.families[0].update(counter_key(counter), raise).map(drop).map_err(text)
    }

    /// Whether nobody else was faster.
    fn raise_by_comparison(&self, counter: u64, random: &mut Random) -> Result<bool, String> {
        let (family, key) = (&self.families[0], counter_key(counter));
        match family.get(&key).map_err(text)? {
            Some(old) => family.compare_and_put(&key, &old, value(number(&old) + 1, random)),
            None => family.put_if_absent(&key, value(1, random)),
        }
        .map_err(text)
    }

    fn raise_in_transaction(&self, counter: u64, random: &mut Random) -> Result<(), String> {
        let (family, key) = (&self.families[0], counter_key(counter));
        let mut transaction = self.db.transaction();
        let before = transaction.get_for_update(family, &key).map_err(text)?;
        let next = before.map_or(0, |value| number(&value)) + 1;
        transaction.put(family, &key, value(next, random)).map_err(text)?;
        transaction.commit().map_err(text)
    }

    /// No more is written.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// What is left when all threads are gone.
    pub(super) fn check_end(&self) -> Result<(), String> {
        for (counter, raised) in self.raised.iter().enumerate() {
            let found = self.families[0].get(counter_key(counter as u64)).map_err(text)?;
            let found = found.map_or(0, |value| number(&value));
            let raised = raised.load(Ordering::SeqCst);
            if found != raised {
                return Err(format!("counter {counter} was raised {raised} times and is {found}"));
            }
        }
        self.filtered.check_end()?;
        let others = [queue::FAMILY, filtered::FAMILY, ingested::FAMILY];
        for name in FAMILIES.into_iter().chain(others) {
            self.db.drop_column_family(name).map_err(text)?;
        }
        self.db.wait_for_compaction().map_err(text)?;
        match self.db.stats().cache.used_bytes {
            0 => Ok(()),
            bytes => Err(format!("{bytes} bytes of tables that are gone are in the cache")),
        }
    }
}
