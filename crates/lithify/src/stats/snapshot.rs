//! The statistics at one moment as plain data, the arithmetic on them, and their JSON.

use super::family::FamilyStatistics;
use super::figures::{Figures, Tally};
use super::gauges::{Gauge, gauges};
use super::jobs::JobEnd;
use super::ledger::Ledger;
use super::names::{
    CODEC_NAMES, Cause, CodecFigure, Counter, CpuPart, DelayCause, Derived, JobFigure,
    TrafficFigure,
};
use super::stall::StallSummary;
use super::{JsonWriter, LEVEL_SLOTS};
use crate::base::{MemoryBudget, MemoryUse};
use std::collections::BTreeMap;

gauges! {
    /// What a level holds; filled in by the database from its current version.
    #[derive(Clone, Debug, Default, PartialEq)]
    LevelShape {
        /// Tables.
        files: "count";
        /// Tables that are inputs of running jobs.
        files_busy: "count";
        /// Stored bytes.
        size_bytes: "bytes";
        /// Bytes of the data blocks before compression.
        raw_bytes: "bytes";
        /// Bytes of keys and values as they were written, every version and tombstone counted.
        user_bytes: "bytes";
        /// The size from which on the level is compacted; 0 where there is none.
        target_bytes: "bytes";
        /// Tables whose codec is not the one that the policy asks for.
        codec_debt_files: "count";
        /// Stored bytes of tables whose codec is not the one that the policy asks for.
        codec_debt_bytes: "bytes";
        /// Tables with entries that are obsolete but for snapshots.
        obsolete_files: "count";
        /// Tables with obsolete entries that no snapshot needs any more: a rewrite drops them.
        reclaim_debt_files: "count";
        /// Stored bytes of tables with obsolete entries that no snapshot needs any more.
        reclaim_debt_bytes: "bytes";
    } with {
        /// The need for compaction: 1 and more is due.
        score: f64;
        /// The codec that the policy asks for, as text; over families that differ, `by family`.
        compression: String;
        /// Tables by the codec that they were written in, as text.
        files_by_codec: BTreeMap<String, u64>;
    }
}

gauges! {
    /// What the block cache has counted.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    CacheFigures {
        /// The most it may hold.
        capacity_bytes: "bytes";
        /// What it holds.
        used_bytes: "bytes";
        /// Blocks found.
        hits: "count";
        /// Blocks not found.
        misses: "count";
        /// Blocks not found and not taken in: others like them left before they were used again.
        unwanted: "count";
        /// Blocks pushed out.
        evictions: "count";
        /// Bytes of blocks taken in.
        inserted_bytes: "bytes";
    } with {
    }
}

/// Bytes in memory for one use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryFigure {
    /// For what.
    pub memory_use: MemoryUse,
    /// How much.
    pub used_bytes: u64,
}

gauges! {
    /// All statistics of a database at one moment. `Display` prints the page, `to_json` the same
    /// data for programs. The ledger fills in what it has; the rest is the database's.
    #[derive(Clone, Debug, PartialEq)]
    StatisticsSnapshot {
        /// Time since the ledger's start.
        uptime_us: "us";
        /// The level that level 0 is compacted into; over families, the deepest of them.
        base_level: "level";
        /// Bytes that compactions still have to rewrite until level 0 is empty and every level at
        /// its target; 0 while no level is due.
        pending_compaction_bytes: "bytes";
        /// Bytes of records in log segments that are still needed; space reserved behind them is
        /// not in it.
        wal_live_bytes: "bytes";
        /// Row locks held by transactions and by writes under way.
        row_locks_held: "count";
        /// Snapshots held, those of transactions among them.
        snapshots_held: "count";
        /// How long ago the oldest of them was taken; 0 if none is held.
        oldest_snapshot_age_us: "us";
        /// Background jobs of which a thread does a step.
        jobs_running: "count";
        /// Background jobs that wait for a thread or for the disk.
        jobs_waiting: "count";
        /// Readers beside this writer that were registered when it last checked.
        readers: "count";
        /// Files that nothing here needs any more and that are kept for those readers.
        files_held_for_readers: "count";
    } with {
        /// The ledger's figures.
        figures: Figures;
        /// The stall figures.
        stalls: StallSummary;
        /// The levels, from 0 on, summed over families.
        levels: Vec<LevelShape>;
        /// The column families, by id.
        families: Vec<FamilyStatistics>;
        /// Bytes of the newest visible keys and values, where somebody has counted them.
        logical_live_bytes: Option<u64>;
        /// The memory budget.
        memory_limit_bytes: u64;
        /// Memory in use.
        memory: Vec<MemoryFigure>;
        /// The block cache.
        cache: CacheFigures;
        /// The latest jobs, 64 at most, oldest first.
        jobs: Vec<JobEnd>;
        /// What the last refused flush or compaction failed at; empty if none was refused.
        last_refusal: String;
        /// An earlier snapshot: the page then shows the interval since it, too.
        previous: Option<Box<StatisticsSnapshot>>;
    }
}

/// A quotient that is undefined where the divisor is 0.
pub(super) fn ratio(dividend: u64, divisor: u64) -> Option<f64> {
    (divisor != 0).then(|| dividend as f64 / divisor as f64)
}

/// CPU time per call, microseconds. Calls are timed by samples: undefined while none was taken.
fn cpu_us_per(cpu_ns: u64, calls: u64) -> Option<f64> {
    ratio(cpu_ns, calls * 1_000).filter(|_| cpu_ns > 0)
}

/// All writes that were committed: puts, merges and deletes of every kind.
pub(super) fn writes(counter: impl Fn(Counter) -> u64) -> u64 {
    let kinds = [
        Counter::Puts,
        Counter::Merges,
        Counter::Deletes,
        Counter::SingleDeletes,
        Counter::RangeDeletes,
    ];
    kinds.into_iter().map(counter).sum()
}

/// Bytes of live tables by those of their data blocks before compression.
pub(super) fn stored_to_raw(levels: &[LevelShape]) -> Option<f64> {
    let sum = |of: fn(&LevelShape) -> u64| levels.iter().map(of).sum();
    ratio(sum(|level| level.size_bytes), sum(|level| level.raw_bytes))
}

/// What is computed from counters alone.
pub(super) fn of_counters(derived: Derived, counter: impl Fn(Counter) -> u64) -> Option<f64> {
    let wrong = counter(Counter::FilterFalsePositives);
    let negatives = counter(Counter::FilterNegatives);
    match derived {
        Derived::SkippedPerRow => ratio(counter(Counter::SkippedEntries), counter(Counter::Nexts)),
        Derived::FilterFalseShare => {
            ratio(wrong, counter(Counter::FilterChecks).saturating_sub(negatives))
        }
        Derived::FilterFalseRate => ratio(wrong, wrong + negatives),
        _ => None,
    }
}

/// Of compressions that the policies of families ask for at one level.
const MIXED: &str = "by family";

impl LevelShape {
    /// Adds the same level of another family.
    pub(crate) fn add(&mut self, other: &LevelShape) {
        self.add_gauges(other);
        self.score = self.score.max(other.score);
        if self.compression.is_empty() {
            self.compression.clone_from(&other.compression);
        } else if self.compression != other.compression {
            self.compression = MIXED.into();
        }
        for (codec, files) in &other.files_by_codec {
            *self.files_by_codec.entry(codec.clone()).or_default() += files;
        }
    }

    /// The members of its JSON object.
    pub(super) fn write_json(&self, json: &mut JsonWriter) {
        self.gauges_json(json);
        json.key("score").real(self.score);
        json.key("compression").string(&self.compression);
        json.key("files_by_codec").object(|json| {
            for (codec, files) in &self.files_by_codec {
                json.key(codec).number(*files);
            }
        });
    }
}

impl StatisticsSnapshot {
    /// What the ledger knows at `now_us`; the database adds levels, cache and the like.
    pub(crate) fn of_ledger(ledger: &Ledger, now_us: u64) -> Self {
        StatisticsSnapshot {
            uptime_us: ledger.uptime_us(now_us),
            figures: ledger.figures(),
            stalls: ledger.stalls().summary(now_us),
            levels: Vec::new(),
            families: Vec::new(),
            base_level: 0,
            pending_compaction_bytes: 0,
            wal_live_bytes: 0,
            logical_live_bytes: None,
            memory_limit_bytes: 0,
            memory: Vec::new(),
            cache: CacheFigures::default(),
            row_locks_held: 0,
            snapshots_held: 0,
            oldest_snapshot_age_us: 0,
            jobs_running: 0,
            jobs_waiting: 0,
            readers: 0,
            files_held_for_readers: 0,
            jobs: ledger.latest_jobs(),
            last_refusal: String::new(),
            previous: None,
        }
    }

    /// Adds the memory in use.
    #[must_use]
    pub(crate) fn with_memory(mut self, budget: &MemoryBudget) -> Self {
        self.memory_limit_bytes = budget.limit_bytes() as u64;
        self.memory = MemoryUse::ALL
            .iter()
            .map(|memory_use| MemoryFigure {
                memory_use: *memory_use,
                used_bytes: budget.used_bytes(*memory_use) as u64,
            })
            .collect();
        self
    }

    /// Stored bytes of all live tables.
    pub fn table_bytes(&self) -> u64 {
        self.levels.iter().map(|level| level.size_bytes).sum()
    }

    /// A computed figure; `None` where it is not defined, for want of operations or data.
    pub fn derived(&self, derived: Derived) -> Option<f64> {
        let figures = &self.figures;
        let counter = |counter| figures.counter(counter);
        let written = |cause| figures.traffic_of_cause(cause, TrafficFigure::WrittenBytes);
        let reads = |cause| figures.traffic_of_cause(cause, TrafficFigure::Reads);
        let cpu_ns = |cause| figures.cpu_ns_of_cause(cause);
        let ingested = counter(Counter::IngestedBytes);
        let lookups = counter(Counter::Gets) + counter(Counter::MultiGetKeys);
        let rows = counter(Counter::Nexts);
        match derived {
            Derived::WriteAmplificationTables => {
                let causes = [Cause::Flush, Cause::Compaction, Cause::Ingest];
                ratio(causes.into_iter().map(written).sum(), ingested)
            }
            Derived::WriteAmplificationWal => ratio(written(Cause::Wal), ingested),
            Derived::WriteAmplificationTotal => {
                let all = figures.traffic_total(TrafficFigure::WrittenBytes);
                ratio(all - written(Cause::Copy), ingested)
            }
            Derived::FileReadsPerLookup => ratio(reads(Cause::UserLookup), lookups),
            Derived::FileReadsPerRow => ratio(reads(Cause::UserScan), rows),
            Derived::SpaceAmplification => {
                ratio(self.table_bytes() + self.wal_live_bytes, self.logical_live_bytes?)
            }
            Derived::StoredToRaw => stored_to_raw(&self.levels),
            Derived::CacheHitShare => ratio(self.cache.hits, self.cache.hits + self.cache.misses),
            Derived::SkippedPerRow | Derived::FilterFalseShare | Derived::FilterFalseRate => {
                of_counters(derived, counter)
            }
            Derived::CpuPerLookup => cpu_us_per(cpu_ns(Cause::UserLookup), lookups),
            Derived::CpuPerCursor => cpu_us_per(cpu_ns(Cause::UserScan), counter(Counter::Cursors)),
            Derived::CpuPerRow => cpu_us_per(cpu_ns(Cause::UserScan), rows),
            Derived::CpuPerWrite => {
                let causes = [Cause::Wal, Cause::UserWrite, Cause::Flush, Cause::Compaction];
                cpu_us_per(causes.into_iter().map(cpu_ns).sum(), writes(counter))
            }
            Derived::SlowedShare => ratio(self.stalls.slowed_us, self.uptime_us),
            Derived::GapShare => ratio(self.stalls.gap_windows, self.stalls.windows),
            Derived::LongestGap => Some(self.stalls.longest_gap_us as f64),
        }
    }

    /// The snapshot as one JSON object, with the names of `docs/stats.md`.
    pub fn to_json(&self) -> String {
        let mut json = JsonWriter::new();
        json.object(|json| {
            self.gauges_json(json);
            json.key("last_refusal").string(&self.last_refusal);
            json.key("counters").object(|json| {
                for counter in Counter::ALL {
                    json.key(counter.name()).number(self.figures.counter(*counter));
                }
            });
            json.key("derived").object(|json| {
                for derived in Derived::ALL {
                    let value = self.derived(*derived).unwrap_or(f64::NAN);
                    json.key(derived.name()).real(value);
                }
            });
            json.key("levels").array(|json| {
                for level in 0..self.levels.len() {
                    self.level_json(json, level);
                }
            });
            json.key("families").array(|json| {
                for family in &self.families {
                    family.write_json(json);
                }
            });
            json.key("causes").object(|json| self.causes_json(json));
            json.key("codecs").object(|json| self.codecs_json(json));
            json.key("stalls").object(|json| self.stalls_json(json));
            json.key("job_log").array(|json| {
                for job in &self.jobs {
                    json.object(|json| job.write_json(json));
                }
            });
            json.key("memory").object(|json| {
                json.key("limit_bytes").number(self.memory_limit_bytes);
                for figure in &self.memory {
                    json.key(figure.memory_use.name()).number(figure.used_bytes);
                }
            });
            json.key("cache").object(|json| self.cache.gauges_json(json));
        });
        json.finish()
    }

    fn level_json(&self, json: &mut JsonWriter, level: usize) {
        json.object(|json| {
            json.key("level").number(level as u64);
            self.levels[level].write_json(json);
            for figure in JobFigure::ALL.iter().filter(|_| level < LEVEL_SLOTS) {
                json.key(figure.name()).number(self.figures.job(level, *figure));
            }
            json.key("codecs").object(|json| {
                for (codec, name) in CODEC_NAMES.iter().enumerate() {
                    let of = |figure| self.figures.codec_of_level(level, codec as u8, figure);
                    if level < LEVEL_SLOTS && CodecFigure::ALL.iter().any(|figure| of(*figure) > 0)
                    {
                        json.key(name).object(|json| codec_json(json, of));
                    }
                }
            });
        });
    }

    fn causes_json(&self, json: &mut JsonWriter) {
        for cause in Cause::ALL {
            json.key(cause.name()).object(|json| {
                for figure in TrafficFigure::ALL {
                    let amount = self.figures.traffic_of_cause(*cause, *figure);
                    json.key(figure.name()).number(amount);
                }
                json.key("cpu_ns").object(|json| {
                    for part in CpuPart::ALL {
                        json.key(part.name()).number(self.figures.cpu_ns_of_part(*cause, *part));
                    }
                });
            });
        }
    }

    fn codecs_json(&self, json: &mut JsonWriter) {
        for (codec, name) in CODEC_NAMES.iter().enumerate() {
            json.key(name)
                .object(|json| codec_json(json, |f| self.figures.codec_total(codec as u8, f)));
        }
    }

    fn stalls_json(&self, json: &mut JsonWriter) {
        fn tally(json: &mut JsonWriter, tally: Tally) {
            json.key("count").number(tally.count);
            json.key("sum_us").number(tally.sum_us);
        }
        json.key("slowed_us").number(self.stalls.slowed_us);
        json.key("gap_windows").number(self.stalls.gap_windows);
        json.key("windows").number(self.stalls.windows);
        for cause in DelayCause::ALL {
            json.key(cause.name()).object(|json| {
                json.key("delays").object(|json| tally(json, self.figures.delays(*cause)));
                json.key("stops").object(|json| tally(json, self.figures.stops(*cause)));
            });
        }
        json.key("units").object(|json| {
            for cause in Cause::ALL.iter().filter(|cause| self.figures.units(**cause).count > 0) {
                json.key(cause.name()).object(|json| {
                    tally(json, self.figures.units(*cause));
                    json.key("max_us").number(self.stalls.longest_unit_us[*cause as usize]);
                });
            }
        });
    }
}

fn codec_json(json: &mut JsonWriter, of: impl Fn(CodecFigure) -> u64) {
    for figure in CodecFigure::ALL {
        json.key(figure.name()).number(of(*figure));
    }
}
