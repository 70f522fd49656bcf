//! Flow control and the real picker against a model of an overloaded database, under a virtual
//! clock: one client that never rests overwrites keys at random; two workers flush and compact a
//! real version, whose tables hold as many entries as chance would leave in them. Client and
//! workers share the processors fairly, as they would in one process.

use crate::codec::Compression;
use crate::compaction::flow::*;
use crate::compaction::levels::*;
use crate::compaction::picker::*;
use crate::manifest::{FileMetadata, KeyRange, TableFile, Version};
use std::collections::BTreeMap;
use std::sync::Arc;

const MIB: u64 = 1 << 20;
const QUANTUM_US: u64 = 500;
const SECOND_US: u64 = 1_000_000;
const LEVELS: usize = 7;
const KEYS: u64 = 3_000_000;
/// Bytes of an entry in a memtable, and of it what flow control is asked for.
const MEMTABLE_ENTRY_BYTES: u64 = 507;
const WRITTEN_ENTRY_BYTES: u64 = 440;
const SPLIT_BYTES_MIN: u64 = 32 * MIB;
const BATCH_ENTRIES: u64 = 8;

/// Stored bytes of an entry in a level: raw, lz4, zstd.
fn entry_bytes(level: usize) -> u64 {
    match LEVELS - 1 - level {
        0 => 210,
        1 => 230,
        _ => 420,
    }
}

/// CPU time of compacting one entry into a level.
fn entry_ns(level: usize) -> f64 {
    if level == LEVELS - 1 { 900.0 } else { 600.0 }
}

const FLUSH_ENTRY_NS: f64 = 600.0;

/// What the machine, the tree and the load are.
#[derive(Clone, Copy)]
struct Setting {
    processors: f64,
    workers: usize,
    /// A memtable, a table, and a quarter of the base level.
    memtable_bytes: u64,
    /// Obsolete space that is permitted per settled space.
    space_slack: f64,
    /// Debts of compaction up to so many bytes slow nobody.
    floor_bytes: u64,
    /// Whether the keys are there from the start, and overwritten.
    starts_full: bool,
    /// CPU time of one write.
    write_ns: f64,
    /// The disk lets nobody go on for so long, every ten seconds.
    hang_us: u64,
    seconds: u64,
}

/// Overwriting with room for memtables, two processors and two workers.
const OVERWRITE: Setting = Setting {
    processors: 2.0,
    workers: 2,
    memtable_bytes: 16 * MIB,
    space_slack: 0.3,
    floor_bytes: 0,
    starts_full: true,
    write_ns: 3_000.0,
    hang_us: 0,
    seconds: 120,
};

impl Setting {
    fn shape(&self) -> TreeShape {
        TreeShape { base_level_bytes_max: self.memtable_bytes * 4, fanout: 8, level0_trigger: 4 }
    }
}

enum Work {
    Flush { entries: u64 },
    Compaction { compaction: Compaction, parts_left: usize },
}

struct Part {
    job: u64,
    left_ns: f64,
    total_ns: f64,
}

struct Job {
    work: Work,
    /// Per drain: what the whole job drains, and what it has drained so far.
    drains: Vec<(Drain, f64, f64)>,
    total_ns: f64,
}

struct World {
    setting: Setting,
    flow: FlowController,
    now_us: u64,
    version: Version,
    busy: BusySet,
    cursors: Cursors,
    active_entries: u64,
    immutable: Vec<u64>,
    jobs: BTreeMap<u64, Job>,
    /// Flushes first, else as they came.
    parts: Vec<Part>,
    next_number: u64,
    client_ns: f64,
    delayed_until_us: u64,
    flushed_entries: u64,
    dropped_entries: u64,
    seen: Seen,
}

/// What the test judges.
#[derive(Default)]
struct Seen {
    /// Entries written in each second.
    seconds: Vec<f64>,
    stops: u64,
    gap_us: u64,
    last_write_us: u64,
    runs: Vec<usize>,
    live_bytes_max: u64,
    idle_quanta: u64,
    quanta: u64,
    delays: BTreeMap<&'static str, u64>,
    stopped: BTreeMap<&'static str, u64>,
}

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

fn number_of(key: &[u8]) -> u64 {
    u64::from_be_bytes(key.try_into().unwrap())
}

impl World {
    /// A database that has come to rest, all keys in the last level, a tenth above it too; or an
    /// empty one.
    fn new(setting: Setting) -> Self {
        let mut world = World {
            setting,
            flow: FlowController::new(
                FlowOptions::new(setting.memtable_bytes, 128 * MIB, 4, setting.space_slack)
                    .with_floor(setting.floor_bytes),
                0,
            ),
            now_us: 0,
            version: Version::empty(LEVELS),
            busy: BusySet::new(),
            cursors: Cursors::new(LEVELS),
            active_entries: 0,
            immutable: Vec::new(),
            jobs: BTreeMap::new(),
            parts: Vec::new(),
            next_number: 1,
            client_ns: 0.0,
            delayed_until_us: 0,
            flushed_entries: 1,
            dropped_entries: 1,
            seen: Seen::default(),
        };
        if setting.starts_full {
            let mut levels = world.version.to_levels();
            levels[LEVELS - 1] = world.tables(LEVELS - 1, KEYS, 0, KEYS - 1);
            levels[LEVELS - 2] = world.tables(LEVELS - 2, KEYS / 10, 0, KEYS - 1);
            world.version = Version::new(levels);
        }
        world
    }

    /// New tables of a level with so many entries, spread evenly from `first` to `last`.
    fn tables(&mut self, level: usize, entries: u64, first: u64, last: u64) -> Vec<Arc<TableFile>> {
        let per_table =
            if level == 0 { u64::MAX } else { self.setting.memtable_bytes / entry_bytes(level) };
        let count = entries.div_ceil(per_table).max(1);
        let keys = last - first + 1;
        let tables = (0..count).map(|index| {
            let number = self.next_number;
            self.next_number += 1;
            let entries = entries / count;
            TableFile::new(FileMetadata {
                number,
                table_id: [0; 16],
                size_bytes: entries * entry_bytes(level),
                raw_bytes: entries * WRITTEN_ENTRY_BYTES,
                range: KeyRange::inclusive(
                    &key(first + keys * index / count),
                    &key(first + keys * (index + 1) / count - 1),
                ),
                smallest_sequence: number,
                largest_sequence: number,
                entries,
                tombstones: 0,
                range_tombstones: 0,
                compression: Compression::NONE,
                block_size_bytes: 0,
                dictionary: None,
                codec_debt: false,
                ingested: false,
                newest_obsolete_sequence: 0,
                write_times: None,
            })
        });
        tables.collect()
    }

    fn debt(&self) -> Debt {
        let entries = self.active_entries + self.immutable.iter().sum::<u64>();
        let mut debt = Debt {
            memtable_bytes: entries * MEMTABLE_ENTRY_BYTES,
            flushed_per_written_byte: entry_bytes(0) as f64 / MEMTABLE_ENTRY_BYTES as f64,
            obsolete_share: self.dropped_entries as f64 / self.flushed_entries as f64,
            work_per_flushed_byte: 1.0,
            ..Debt::default()
        };
        debt.add_tree(&self.version, &LevelTargets::new(&self.version, &self.setting.shape()));
        debt
    }

    fn begin(&mut self, work: Work, drains: Vec<(Drain, u64)>, parts: usize, total_ns: f64) {
        let id = self.next_number;
        self.next_number += 1;
        for (drain, _) in &drains {
            self.flow.drain_begins(*drain, self.now_us);
        }
        let drains = drains.into_iter().map(|(drain, bytes)| (drain, bytes as f64, 0.0)).collect();
        let part_ns = total_ns / parts as f64;
        for _ in 0..parts {
            let part = Part { job: id, left_ns: part_ns, total_ns: part_ns };
            match work {
                Work::Flush { .. } => self.parts.insert(0, part),
                Work::Compaction { .. } => self.parts.push(part),
            }
        }
        self.jobs.insert(id, Job { work, drains, total_ns });
    }

    fn schedule_flush(&mut self) {
        let is_flushing = |job: &Job| matches!(job.work, Work::Flush { .. });
        if self.immutable.is_empty() || self.jobs.values().any(is_flushing) {
            return;
        }
        let entries = self.immutable.iter().sum();
        let drains = vec![(Drain::Flush, entries * MEMTABLE_ENTRY_BYTES)];
        self.begin(Work::Flush { entries }, drains, 1, entries as f64 * FLUSH_ENTRY_NS);
    }

    fn schedule_compactions(&mut self) {
        while self.busy.running() < self.setting.workers {
            let targets = LevelTargets::new(&self.version, &self.setting.shape());
            let picker = Picker {
                version: &self.version,
                targets: &targets,
                busy: &self.busy,
                cursors: &self.cursors,
                oldest_snapshot: 0,
                options: PickOptions {
                    expiry: None,
                    moves: true,
                    grows: true,
                    compaction_bytes_max: self.setting.memtable_bytes * 25,
                    level0_bytes_max: self.setting.shape().base_level_bytes_max * 2,
                    grandparent_bytes_max: self.setting.memtable_bytes * 10,
                    idle: false,
                },
            };
            let Some(compaction) = picker.pick() else { return };
            self.busy.add(&compaction);
            let input_bytes = compaction.input_bytes();
            let mut drains = vec![(Drain::Compaction, input_bytes)];
            if compaction.source_level == 0 {
                let runs = compaction.inputs[0].1.iter();
                drains.push((Drain::Level0, runs.map(|run| run.metadata.size_bytes).sum()));
            }
            let parts = if input_bytes >= SPLIT_BYTES_MIN { self.setting.workers } else { 1 };
            let entries: u64 = compaction.input_tables().map(|(_, t)| t.metadata.entries).sum();
            let total_ns = entries as f64 * entry_ns(compaction.target_level);
            let work = Work::Compaction { compaction, parts_left: parts };
            self.begin(work, drains, parts, total_ns);
        }
    }

    /// The union of what the inputs hold, if each is a random choice of the keys.
    fn merge(&mut self, compaction: &Compaction) {
        let first = number_of(&compaction.range.smallest);
        let last = number_of(&compaction.range.largest);
        let keys = (last - first + 1) as f64;
        let mut levels = self.version.to_levels();
        let mut absent = 1.0;
        let mut entries_in = 0;
        for (level, tables) in &compaction.inputs {
            // The tables of a level share no key, runs of level 0 do.
            let of_level: u64 = tables.iter().map(|table| table.metadata.entries).sum();
            entries_in += of_level;
            if *level == 0 {
                let runs = tables.iter().map(|table| 1.0 - table.metadata.entries as f64 / keys);
                absent *= runs.product::<f64>();
            } else {
                absent *= (1.0 - of_level as f64 / keys).max(0.0);
            }
            let numbers: Vec<u64> = tables.iter().map(|table| table.metadata.number).collect();
            levels[*level].retain(|table| !numbers.contains(&table.metadata.number));
        }
        let entries = (keys * (1.0 - absent)) as u64;
        self.dropped_entries += entries_in.saturating_sub(entries);
        let target = compaction.target_level;
        levels[target].extend(self.tables(target, entries, first, last));
        self.version = Version::new(levels);
        self.cursors.advance(compaction);
        self.busy.remove(compaction);
    }

    fn part_ended(&mut self, id: u64) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if let Work::Compaction { parts_left, .. } = &mut job.work {
            *parts_left -= 1;
            if *parts_left > 0 {
                return;
            }
        }
        let Some(job) = self.jobs.remove(&id) else { return };
        match job.work {
            Work::Flush { entries } => {
                self.immutable.clear();
                self.flushed_entries += entries;
                let mut levels = self.version.to_levels();
                levels[0].extend(self.tables(0, entries, 0, KEYS - 1));
                self.version = Version::new(levels);
            }
            Work::Compaction { compaction, .. } => self.merge(&compaction),
        }
        let debt = self.debt();
        for (drain, _, drained) in job.drains {
            self.flow.drain_ends(drain, drained as u64, debt, self.now_us);
        }
        self.schedule_flush();
        self.schedule_compactions();
        self.note_space();
    }

    fn note_space(&mut self) {
        let log_bytes = 2 * self.setting.memtable_bytes;
        let sizes = level_sizes(&self.version);
        let live_bytes = sizes.iter().sum::<u64>() + log_bytes;
        if self.now_us > 20 * SECOND_US {
            self.seen.live_bytes_max = self.seen.live_bytes_max.max(live_bytes);
        }
        self.seen.runs.push(self.version.level(0).len());
    }

    /// The workers have so much time each.
    fn work(&mut self, share_ns: f64) {
        let mut ended = Vec::new();
        for part in self.parts.iter_mut().take(self.setting.workers) {
            let done_ns = part.left_ns.min(share_ns);
            part.left_ns -= done_ns;
            if let Some(job) = self.jobs.get_mut(&part.job) {
                for (drain, bytes, drained) in &mut job.drains {
                    let before = *drained as u64;
                    *drained += *bytes * done_ns / job.total_ns;
                    self.flow.drained(*drain, *drained as u64 - before, self.now_us);
                }
            }
            if part.left_ns <= part.total_ns * 1e-9 {
                ended.push(part.job);
                part.left_ns = -1.0;
            }
        }
        self.parts.retain(|part| part.left_ns >= 0.0);
        ended.into_iter().for_each(|id| self.part_ended(id));
    }

    /// The client has so much time.
    fn write(&mut self, share_ns: f64) {
        self.client_ns += share_ns;
        let cost_ns = BATCH_ENTRIES as f64 * self.setting.write_ns;
        while self.client_ns >= cost_ns {
            match self.flow.admit(BATCH_ENTRIES * WRITTEN_ENTRY_BYTES, self.now_us) {
                Admission::Go => self.wrote(cost_ns),
                Admission::Delay { us, cause } => {
                    *self.seen.delays.entry(cause.name()).or_default() += us;
                    self.delayed_until_us = self.now_us + us;
                    self.client_ns = 0.0;
                }
                Admission::Stop(cause) => {
                    self.seen.stops += 1;
                    *self.seen.stopped.entry(cause.name()).or_default() += 1;
                    self.delayed_until_us = self.now_us + 1_000;
                    self.client_ns = 0.0;
                }
            }
        }
    }

    fn wrote(&mut self, cost_ns: f64) {
        self.client_ns -= cost_ns;
        self.active_entries += BATCH_ENTRIES;
        let second = (self.now_us / SECOND_US) as usize;
        self.seen.seconds.resize(second + 1, 0.0);
        self.seen.seconds[second] += BATCH_ENTRIES as f64;
        self.seen.gap_us = self.seen.gap_us.max(self.now_us - self.seen.last_write_us);
        self.seen.last_write_us = self.now_us;
        if self.active_entries * MEMTABLE_ENTRY_BYTES >= self.setting.memtable_bytes {
            self.immutable.push(std::mem::take(&mut self.active_entries));
            self.flow.update(self.debt(), self.now_us);
            self.schedule_flush();
        }
    }

    fn run(mut self) -> Seen {
        self.schedule_compactions();
        while self.now_us < self.setting.seconds * SECOND_US {
            let is_hanging = self.now_us % (10 * SECOND_US) < self.setting.hang_us;
            let workers = if is_hanging { 0 } else { self.parts.len().min(self.setting.workers) };
            let writes = self.now_us >= self.delayed_until_us;
            let threads = workers + usize::from(writes);
            let share = (self.setting.processors / threads.max(1) as f64).min(1.0);
            let share_ns = QUANTUM_US as f64 * 1_000.0 * share;
            if writes {
                self.write(share_ns);
            }
            if workers > 0 {
                self.work(share_ns);
            }
            self.seen.quanta += 1;
            self.seen.idle_quanta += u64::from(workers == 0 && !is_hanging);
            self.now_us += QUANTUM_US;
        }
        self.seen
    }
}

impl Seen {
    /// Mean writes per second and coefficient of variation of the seconds, the first 20 aside.
    fn evenness(&self) -> (f64, f64) {
        let seconds = &self.seconds[20..];
        let count = seconds.len() as f64;
        let mean = seconds.iter().sum::<f64>() / count;
        let variance = seconds.iter().map(|writes| (writes - mean).powi(2)).sum::<f64>() / count;
        (mean, variance.sqrt() / mean)
    }

    fn idle_share(&self) -> f64 {
        self.idle_quanta as f64 / self.quanta as f64
    }

    fn describe(&self) -> String {
        let (mean, variation) = self.evenness();
        let later = &self.runs[self.runs.len() / 4..];
        format!(
            "{mean:.0} writes/s, variation {:.1} %, min {:.0}, stops {}, gap {} ms, runs {}-{}, \
             peak {:.2}, idle {:.1} %, delays {:?}, stops {:?}",
            variation * 100.0,
            self.seconds[20..].iter().copied().fold(f64::INFINITY, f64::min),
            self.stops,
            self.gap_us / 1_000,
            later.iter().min().unwrap(),
            later.iter().max().unwrap(),
            self.live_bytes_max as f64 / settled_bytes() as f64,
            self.idle_share() * 100.0,
            self.delays,
            self.stopped,
        )
    }
}
/// Stored bytes when nothing is left to compact.
fn settled_bytes() -> u64 {
    KEYS * entry_bytes(LEVELS - 1) + KEYS / 10 * entry_bytes(LEVELS - 2)
}

fn check(setting: Setting, variation_max: f64) {
    let seen = World::new(setting).run();
    let what = seen.describe();
    let (_, variation) = seen.evenness();
    let runs_max = seen.runs[seen.runs.len() / 4..].iter().max().unwrap();
    assert_eq!(seen.stops, 0, "{what}");
    assert!(seen.gap_us <= 20_000, "{what}");
    assert!(variation <= variation_max, "{what}");
    assert!(*runs_max <= 10, "{what}");
    assert!(seen.live_bytes_max as f64 <= settled_bytes() as f64 * 1.3, "{what}");
    // Written is what could be compacted: the workers hardly ever rested.
    assert!(seen.idle_share() < 0.02, "{what}");
}

#[test]
fn an_overload_of_any_size_is_written_evenly_and_stops_nobody() {
    // Writers as fast as here, sharing two processors with the workers, and up to ten times as
    // fast as can be sustained on a processor of their own.
    for (processors, write_ns) in [(2.0, 3_000.0), (3.0, 3_000.0), (3.0, 1_000.0), (3.0, 500.0)] {
        check(Setting { processors, write_ns, ..OVERWRITE }, 0.15);
    }
}

#[test]
fn a_disk_that_hangs_stops_nobody() {
    for (processors, write_ns) in [(2.0, 3_000.0), (3.0, 1_000.0)] {
        check(Setting { processors, write_ns, hang_us: 500_000, ..OVERWRITE }, 0.2);
    }
}

#[test]
fn a_load_that_can_be_sustained_is_not_slowed() {
    let setting = Setting { processors: 3.0, write_ns: 12_000.0, seconds: 60, ..OVERWRITE };
    let seen = World::new(setting).run();
    assert!(seen.delays.is_empty() && seen.stops == 0, "{}", seen.describe());
}

#[test]
fn a_load_of_an_empty_database_stops_nobody_from_its_first_second_on() {
    for (workers, memtable_bytes, write_ns) in [
        (1, 8 * MIB, 1_000.0),
        (1, 8 * MIB, 2_000.0),
        (2, 16 * MIB, 1_000.0),
        (2, 4 * MIB, 2_000.0),
        (1, MIB, 2_000.0),
    ] {
        let setting = Setting {
            workers,
            memtable_bytes,
            write_ns,
            starts_full: false,
            seconds: 40,
            ..OVERWRITE
        };
        let seen = World::new(setting).run();
        let what = seen.describe();
        assert_eq!(seen.stops, 0, "{memtable_bytes}: {what}");
        assert!(seen.gap_us <= 20_000, "{memtable_bytes}: {what}");
    }
}

#[test]
fn more_space_buys_speed() {
    let run = |space_slack| {
        let seen = World::new(Setting { space_slack, ..OVERWRITE }).run();
        (seen.evenness().0, seen.live_bytes_max)
    };
    let (slow, small) = run(0.3);
    let (fast, large) = run(1.0);
    assert!(fast > slow * 1.1, "{slow} {fast}");
    assert!(large > small && (large as f64) < settled_bytes() as f64 * 1.8, "{small} {large}");
}

/// Of a debt below the floor nobody hears: millions of rows into an empty database.
#[test]
fn a_burst_into_a_small_database_waits_for_no_compaction() {
    let burst = |floor_bytes| {
        let setting = Setting {
            processors: 3.0,
            write_ns: 2_000.0,
            starts_full: false,
            floor_bytes,
            seconds: 6,
            ..OVERWRITE
        };
        let seen = World::new(setting).run();
        let of_compaction = seen.delays.iter().filter(|(cause, _)| **cause != "memtable");
        (of_compaction.map(|(_, us)| us).sum::<u64>(), seen)
    };
    let ((paced_us, paced), (free_us, free)) = (burst(0), burst(256 * MIB));
    let what = format!("{:?} {:?}; {:?} {:?}", paced.delays, paced.runs, free.delays, free.runs);
    assert!(free_us * 10 <= paced_us, "{what}");
    assert_eq!(free.stops, 0, "{what}");
    assert!(free.runs.iter().all(|runs| *runs <= 24), "{what}");
}

#[test]
fn an_overload_above_the_floor_is_bounded_in_runs_and_space() {
    for (processors, write_ns) in [(2.0, 3_000.0), (3.0, 1_000.0)] {
        let setting = Setting { processors, write_ns, floor_bytes: 256 * MIB, ..OVERWRITE };
        let seen = World::new(setting).run();
        let what = seen.describe();
        assert_eq!(seen.stops, 0, "{what}");
        assert!(seen.runs.iter().all(|runs| *runs <= 24), "{what}");
        assert!(seen.live_bytes_max as f64 <= settled_bytes() as f64 * 1.5, "{what}");
        assert!(seen.evenness().1 <= 0.2, "{what}");
    }
}
