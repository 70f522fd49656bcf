//! One history: a kind of operations, so many of them, and what it took.

use super::kinds::Kind;
use crate::fuzz::allocation::taken_by;
use crate::random::Random;
use lithify::base::Clock;
use lithify::fs::{MemoryEnvironment, MemoryFileSystem, SystemEnvironment, World};
use lithify::{CfOptions, ColumnFamily, Cursor, Db, Options, Result, Snapshot};
use std::fmt;
use std::sync::Arc;

/// The memory that the database may take, in bytes.
pub(super) const BUDGET_BYTES: u64 = 8 << 20;

/// Operations between two flushes.
const FLUSH_PERIOD: u64 = 100;

/// Operations between two looks at the clock.
const LOOK_PERIOD: u64 = 16;

/// What a history took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figures {
    /// The most bytes that were held at once, files included.
    pub(super) peak_bytes: u64,
    /// Bytes that were asked of the allocator.
    pub(super) asked_bytes: u64,
    /// Processor time, in nanoseconds.
    pub(super) cpu_ns: u64,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes as f64 / (1 << 20) as f64;
        write!(
            f,
            "{:.1} MiB at once, {:.1} MiB in all, {:.0} ms",
            mib(self.peak_bytes),
            mib(self.asked_bytes),
            self.cpu_ns as f64 / 1e6
        )
    }
}

/// See the module.
pub(super) struct History {
    pub(super) kind: &'static Kind,
    /// A get after each operation.
    pub(super) has_reads: bool,
    /// A flush now and then.
    pub(super) has_flushes: bool,
}

/// A database under a history, and what the history holds.
pub(super) struct Run {
    pub(super) db: Db,
    pub(super) family: ColumnFamily,
    pub(super) families: Vec<ColumnFamily>,
    pub(super) snapshots: Vec<Snapshot>,
    pub(super) cursors: Vec<Cursor>,
    pub(super) random: Random,
    /// Operations of the whole history.
    pub(super) operations: u64,
}

pub(super) fn family_options() -> CfOptions {
    CfOptions { table_bytes: 256 << 10, base_level_bytes_max: 1 << 20, ..CfOptions::default() }
}

fn open(files: &MemoryFileSystem) -> Result<Db> {
    let environment = Arc::new(MemoryEnvironment::new(1));
    let options = Options {
        memory_budget_bytes: BUDGET_BYTES as usize,
        memtable_bytes: 512 << 10,
        background_threads: 0,
        ..Options::default()
    };
    Db::open_in("/growth", options, World { files: Arc::new(files.clone()), environment })
}

impl History {
    /// What it is, for people.
    pub(super) fn name(&self) -> String {
        let with = |has: bool, what: &'static str| if has { what } else { "" };
        let reads = with(self.has_reads, ", a get after each");
        let flushes = with(self.has_flushes, ", flushes in between");
        format!("{}{reads}{flushes}", self.kind.name)
    }

    /// Makes it in a new world; gives what it took.
    ///
    /// # Errors
    /// That it took more processor time than `cpu_ns_max`; what the engine refuses.
    pub(super) fn make(
        &self,
        operations: u64,
        cpu_ns_max: u64,
    ) -> std::result::Result<Figures, String> {
        let began_ns = SystemEnvironment.thread_cpu_ns();
        let passed_ns = || SystemEnvironment.thread_cpu_ns() - began_ns;
        let is_too_long = || passed_ns() > cpu_ns_max;
        let (lived, taken) = taken_by(|| self.live(operations, &is_too_long));
        let cpu_ns = passed_ns();
        if let Some(number) = lived.map_err(|error| error.to_string())? {
            return Err(format!("{number} took {} ms and no end", cpu_ns / 1_000_000));
        }
        let (peak_bytes, asked_bytes) = (taken.peak_bytes as u64, taken.asked_bytes);
        Ok(Figures { peak_bytes, asked_bytes, cpu_ns })
    }

    /// Gives the number of the operation after which it was given up, if it was.
    fn live(&self, operations: u64, is_too_long: &dyn Fn() -> bool) -> Result<Option<u64>> {
        let files = MemoryFileSystem::new();
        let db = open(&files)?;
        let family = db.column_family("rows", family_options())?;
        let mut run = Run {
            db,
            family,
            families: Vec::new(),
            snapshots: Vec::new(),
            cursors: Vec::new(),
            random: Random::new(1),
            operations,
        };
        for number in 0..operations {
            (self.kind.step)(&mut run, number)?;
            if self.has_reads {
                let key = (self.kind.read_key)(&mut run.random, number);
                run.family.get(&key)?;
            }
            if self.has_flushes && number % FLUSH_PERIOD == FLUSH_PERIOD - 1 {
                run.db.flush()?;
            }
            if number.is_multiple_of(LOOK_PERIOD) && is_too_long() {
                return Ok(Some(number));
            }
        }
        let Run { db, .. } = run;
        db.close()?;
        let db = open(&files)?;
        db.flush()?;
        db.wait_for_compaction()?;
        db.close()?;
        Ok(None)
    }
}
