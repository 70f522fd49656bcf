//! What is counted for one column family, and what a family shows of itself.
//!
//! A counter that concerns a family is booked with the family alone; the database's is the sum over
//! its families and what no family can have. So a read or write pays once, and no sum is missed.
//! Any thread may book.

use super::FilterMeter;
use super::JsonWriter;
use super::gauges::{Gauge, gauges};
use super::ledger::JobRecord;
use super::names::{Counter, Derived, JobFigure, LEVEL_SLOTS};
use super::passes::DeadPass;
use super::snapshot::{LevelShape, of_counters, ratio, stored_to_raw};
use super::striped::{OfFamily, StripedCounters, ThreadStripe};
use crate::base::{ColumnFamilyId, Level};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The book of one family; see the module.
pub struct FamilyLedger {
    striped: StripedCounters<OfFamily>,
    /// The others, by number.
    counters: [AtomicU64; Counter::COUNT],
    /// By level and figure.
    jobs: [AtomicU64; LEVEL_SLOTS * JobFigure::COUNT],
}

impl Default for FamilyLedger {
    fn default() -> Self {
        FamilyLedger {
            striped: StripedCounters::new(),
            counters: [const { AtomicU64::new(0) }; _],
            jobs: [const { AtomicU64::new(0) }; _],
        }
    }
}

impl FamilyLedger {
    /// The calling thread's part, for a call that counts more than once.
    #[inline]
    pub fn of_thread(&self) -> FamilyPart<'_> {
        FamilyPart { ledger: self, stripe: self.striped.of_thread() }
    }

    /// Adds to a counter and returns what it was before. Of a counter that every read or write
    /// adds to, that is what the calling thread's part of it was.
    #[inline]
    pub fn count(&self, counter: Counter, amount: u64) -> u64 {
        self.of_thread().count(counter, amount)
    }

    /// Adds to several counters: cheaper than one by one.
    #[inline]
    pub fn count_all<const N: usize>(&self, amounts: [(Counter, u64); N]) {
        self.of_thread().count_all(amounts);
    }

    /// Counts what filters said to point reads.
    pub fn count_filters(&self, filters: &FilterMeter) {
        self.count_all([
            (Counter::FilterChecks, filters.checks),
            (Counter::FilterNegatives, filters.negatives),
            (Counter::FilterFalsePositives, filters.false_positives()),
        ]);
    }

    /// The value of a counter.
    pub fn counter(&self, counter: Counter) -> u64 {
        self.counters[counter as usize].load(Relaxed) + self.striped.sum(counter)
    }

    /// Books a finished job in the row of its target level.
    pub(super) fn book_job(&self, record: &JobRecord) {
        for (figure, amount) in record.figures() {
            self.jobs[job_place(record.target_level, figure)].fetch_add(amount, Relaxed);
        }
    }

    /// A copy of all figures.
    pub fn figures(&self) -> FamilyFigures {
        FamilyFigures {
            counters: Counter::ALL.iter().map(|counter| self.counter(*counter)).collect(),
            jobs: self.jobs.iter().map(|figure| figure.load(Relaxed)).collect(),
        }
    }
}

/// A family's book as one thread adds to it: not to be handed to another.
pub struct FamilyPart<'a> {
    ledger: &'a FamilyLedger,
    stripe: ThreadStripe<'a, OfFamily>,
}

impl FamilyPart<'_> {
    /// [`FamilyLedger::count`].
    #[inline(always)]
    pub fn count(&self, counter: Counter, amount: u64) -> u64 {
        match self.stripe.add(counter, amount) {
            Some(before) => before,
            None if amount == 0 => 0,
            None => self.ledger.counters[counter as usize].fetch_add(amount, Relaxed),
        }
    }

    /// [`FamilyLedger::count_all`].
    #[inline(always)]
    pub fn count_all<const N: usize>(&self, amounts: [(Counter, u64); N]) {
        for (counter, amount) in amounts {
            self.count(counter, amount);
        }
    }
}

fn job_place(level: Level, figure: JobFigure) -> usize {
    level.min(LEVEL_SLOTS - 1) * JobFigure::COUNT + figure as usize
}

/// What was booked for a family, as it was at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FamilyFigures {
    counters: Vec<u64>,
    jobs: Vec<u64>,
}

impl Default for FamilyFigures {
    fn default() -> Self {
        let counters = vec![0; Counter::COUNT];
        FamilyFigures { counters, jobs: vec![0; LEVEL_SLOTS * JobFigure::COUNT] }
    }
}

impl FamilyFigures {
    /// A counter. What concerns no family (commits, the log, locks, jobs) is 0 here.
    pub fn counter(&self, counter: Counter) -> u64 {
        self.counters[counter as usize]
    }

    /// A figure of the jobs that wrote into a level of the family.
    pub fn job(&self, level: Level, figure: JobFigure) -> u64 {
        self.jobs[job_place(level, figure)]
    }

    /// The same over all levels.
    pub fn job_total(&self, figure: JobFigure) -> u64 {
        (0..LEVEL_SLOTS).map(|level| self.job(level, figure)).sum()
    }
}

gauges! {
    /// A column family at one moment: what it holds, and what was done with it since the database
    /// was opened. Given by [`crate::ColumnFamily::stats`] and in [`super::StatisticsSnapshot`].
    #[derive(Clone, Debug, Default, PartialEq)]
    FamilyStatistics {
        /// Live tables.
        tables: "count";
        /// Their stored bytes.
        table_bytes: "bytes";
        /// Bytes of their data blocks before compression.
        raw_bytes: "bytes";
        /// Bytes of keys and values in them, every version and tombstone counted.
        user_bytes: "bytes";
        /// Bytes of memory that its memtables take.
        memtable_bytes: "bytes";
        /// Memtables that wait for their flush or are being flushed.
        immutable_memtables: "count";
        /// The level that its level 0 is compacted into.
        base_level: "level";
        /// Bytes that compactions still have to rewrite until level 0 is empty and every level at
        /// its target; 0 while no level is due.
        pending_compaction_bytes: "bytes";
        /// Stored bytes of tables whose codec is not the one that the policy asks for.
        codec_debt_bytes: "bytes";
        /// Stored bytes of tables with obsolete entries that no snapshot needs any more.
        reclaim_debt_bytes: "bytes";
    } with {
        /// Its id.
        id: ColumnFamilyId;
        /// Its name.
        name: String;
        /// Its policy of compression, as text.
        compression: String;
        /// What was booked for it.
        figures: FamilyFigures;
        /// Its levels, from 0 on.
        levels: Vec<LevelShape>;
        /// Where a cursor passed most dead entries in one move, if that was 1,000 or more.
        longest_pass: Option<DeadPass>;
    }
}

impl FamilyStatistics {
    /// Takes the sums over its levels into the gauges.
    #[must_use]
    pub(crate) fn with_levels(mut self, levels: Vec<LevelShape>) -> Self {
        let sum = |of: fn(&LevelShape) -> u64| levels.iter().map(of).sum();
        self.tables = sum(|level| level.files);
        self.table_bytes = sum(|level| level.size_bytes);
        self.raw_bytes = sum(|level| level.raw_bytes);
        self.user_bytes = sum(|level| level.user_bytes);
        self.codec_debt_bytes = sum(|level| level.codec_debt_bytes);
        self.reclaim_debt_bytes = sum(|level| level.reclaim_debt_bytes);
        self.levels = levels;
        self
    }

    /// A computed figure of the family; `None` where it is not defined, or not for a family.
    /// `w-amp-flush` is of the tables that were made live: those of a failed job are not in it.
    pub fn derived(&self, derived: Derived) -> Option<f64> {
        match derived {
            Derived::WriteAmplificationTables => ratio(
                self.figures.job_total(JobFigure::WrittenBytes),
                self.figures.counter(Counter::IngestedBytes),
            ),
            Derived::StoredToRaw => stored_to_raw(&self.levels),
            derived => of_counters(derived, |counter| self.figures.counter(counter)),
        }
    }

    /// What is computed for each family.
    pub(super) const DERIVED: [Derived; 5] = [
        Derived::WriteAmplificationTables,
        Derived::StoredToRaw,
        Derived::SkippedPerRow,
        Derived::FilterFalseShare,
        Derived::FilterFalseRate,
    ];

    /// Its JSON object.
    pub(super) fn write_json(&self, json: &mut JsonWriter) {
        json.object(|json| {
            json.key("id").number(self.id.into());
            json.key("name").string(&self.name);
            json.key("compression").string(&self.compression);
            self.gauges_json(json);
            json.key("counters").object(|json| {
                for counter in Counter::ALL.iter().filter(|counter| counter.is_of_family()) {
                    json.key(counter.name()).number(self.figures.counter(*counter));
                }
            });
            if let Some(pass) = &self.longest_pass {
                json.key("longest_pass").object(|json| {
                    json.key("entries").number(pass.entries);
                    json.key("from").string(&pass.from.escape_ascii().to_string());
                    json.key("to").string(&pass.to.escape_ascii().to_string());
                });
            }
            json.key("derived").object(|json| {
                for derived in FamilyStatistics::DERIVED {
                    json.key(derived.name()).real(self.derived(derived).unwrap_or(f64::NAN));
                }
            });
            json.key("levels").array(|json| {
                for (level, shape) in self.levels.iter().enumerate() {
                    json.object(|json| {
                        json.key("level").number(level as u64);
                        shape.write_json(json);
                        for figure in JobFigure::ALL.iter().filter(|_| level < LEVEL_SLOTS) {
                            json.key(figure.name()).number(self.figures.job(level, *figure));
                        }
                    });
                }
            });
        });
    }
}
