//! The shared ledger: every room books here, under relaxed atomics.

use super::figures::{
    FIGURE_COUNT, Figures, codec_index, counter_index, cpu_index, delay_index, job_index,
    stop_index, traffic_index, unit_index,
};
use super::jobs::{JobEnd, JobLog};
use super::meter::LongCalls;
use super::names::{
    CODEC_NAMES, Cause, CodecFigure, Counter, CpuPart, DelayCause, JobFigure, TrafficFigure,
};
use super::stall::Stalls;
use super::striped::{OfDatabase, StripedCounters, Striping, ThreadStripe};
use super::{FamilyLedger, PART_COUNT, WorkMeter};
use crate::base::{Clock, Level, lock};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// What one finished flush, compaction or trivial move adds to the table of its target level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobRecord {
    /// The level that it wrote into.
    pub target_level: Level,
    /// Bytes of input tables from other levels.
    pub read_source_bytes: u64,
    /// Bytes of input tables from the target level.
    pub read_target_bytes: u64,
    /// Bytes of tables written.
    pub written_bytes: u64,
    /// The same data before compression.
    pub written_raw_bytes: u64,
    /// Data blocks of them that were copied as they were stored.
    pub copied_blocks: u64,
    /// Stored bytes of those blocks.
    pub copied_bytes: u64,
    /// Bytes moved without rewriting; a job with any is counted as a move.
    pub moved_bytes: u64,
    /// Wall time from its first step to its last.
    pub wall_us: u64,
    /// CPU time of all its steps.
    pub cpu_ns: u64,
    /// Entries read.
    pub entries_in: u64,
    /// Entries not written again.
    pub entries_dropped: u64,
}

impl JobRecord {
    /// What it adds to each figure.
    pub(super) fn figures(&self) -> [(JobFigure, u64); JobFigure::COUNT] {
        let is_move = self.moved_bytes > 0;
        [
            (JobFigure::ReadSourceBytes, self.read_source_bytes),
            (JobFigure::ReadTargetBytes, self.read_target_bytes),
            (JobFigure::WrittenBytes, self.written_bytes),
            (JobFigure::WrittenRawBytes, self.written_raw_bytes),
            (JobFigure::CopiedBlocks, self.copied_blocks),
            (JobFigure::CopiedBytes, self.copied_bytes),
            (JobFigure::MovedBytes, self.moved_bytes),
            (JobFigure::WallUs, self.wall_us),
            (JobFigure::CpuNs, self.cpu_ns),
            (JobFigure::Jobs, u64::from(!is_move)),
            (JobFigure::Moves, u64::from(is_move)),
            (JobFigure::EntriesIn, self.entries_in),
            (JobFigure::EntriesDropped, self.entries_dropped),
        ]
    }
}

/// Every cost, where it arises: bytes, CPU time and counts by cause, level and codec, and who
/// waited how long for what. Shared by all rooms of one database; all methods may be called from
/// any thread and never block for long (only the rare units of a millisecond take a lock).
pub struct Ledger {
    figures: Box<[AtomicU64]>,
    striped: StripedCounters<OfDatabase>,
    /// Those whose counters are the database's too.
    families: Mutex<Vec<Arc<FamilyLedger>>>,
    stalls: Stalls,
    jobs: JobLog,
    long_calls: [LongCalls; Cause::COUNT],
    /// What reading the thread's CPU clock costs; taken off where a reading lies inside a span.
    pub(super) clock_read_ns: u64,
    /// What reading the ticks costs, in ticks; taken off every span between two readings.
    pub(super) tick_read_ticks: u64,
    start_us: u64,
    start_ticks: u64,
}

/// The median of what a clock shows between two readings in a row.
fn reading_cost(read: impl Fn() -> u64) -> u64 {
    let mut last = read();
    let mut costs = [0; 101];
    for cost in &mut costs {
        let now = read();
        *cost = now.saturating_sub(last);
        last = now;
    }
    costs.sort_unstable();
    costs[costs.len() / 2]
}

impl Ledger {
    /// An empty ledger that starts now.
    pub fn new(clock: &dyn Clock) -> Arc<Self> {
        let start_us = clock.now_us();
        Arc::new(Ledger {
            figures: (0..FIGURE_COUNT).map(|_| AtomicU64::new(0)).collect(),
            striped: StripedCounters::new(),
            families: Mutex::default(),
            stalls: Stalls::new(start_us),
            jobs: JobLog::default(),
            long_calls: Default::default(),
            clock_read_ns: reading_cost(|| clock.thread_cpu_ns()),
            tick_read_ticks: reading_cost(|| clock.ticks()),
            start_us,
            start_ticks: clock.ticks(),
        })
    }

    pub(super) fn long_calls(&self, cause: Cause) -> &LongCalls {
        &self.long_calls[cause as usize]
    }

    fn add(&self, index: usize, amount: u64) {
        if amount != 0 {
            self.figures[index].fetch_add(amount, Relaxed);
        }
    }

    /// Who was kept waiting, for how long, and when nothing was completed.
    pub fn stalls(&self) -> &Stalls {
        &self.stalls
    }

    /// Microseconds from the ledger's start to `now_us`.
    pub fn uptime_us(&self, now_us: u64) -> u64 {
        now_us.saturating_sub(self.start_us)
    }

    /// Nanoseconds of one tick, measured since the ledger began; `None` in its first millisecond.
    pub(super) fn ns_per_tick(&self, now_us: u64, ticks: u64) -> Option<f64> {
        let elapsed_us = self.uptime_us(now_us);
        let elapsed_ticks = ticks.wrapping_sub(self.start_ticks);
        (elapsed_us >= 1_000 && elapsed_ticks > 0)
            .then(|| elapsed_us as f64 * 1_000.0 / elapsed_ticks as f64)
    }

    /// Books bytes written to a file. `codec` is the number of the codec that the bytes are
    /// stored in; 0 where there is none (log, manifest) or the codec is "none".
    pub fn book_written(&self, cause: Cause, level: Level, codec: u8, bytes: u64) {
        self.add(traffic_index(cause, level, codec, TrafficFigure::WrittenBytes), bytes);
        self.add(traffic_index(cause, level, codec, TrafficFigure::Writes), 1);
    }

    /// Books bytes read from a file; `codec` as for [`Ledger::book_written`].
    pub fn book_read(&self, cause: Cause, level: Level, codec: u8, bytes: u64) {
        self.add(traffic_index(cause, level, codec, TrafficFigure::ReadBytes), bytes);
        self.add(traffic_index(cause, level, codec, TrafficFigure::Reads), 1);
    }

    /// Books CPU time of one part.
    pub fn book_cpu(&self, cause: Cause, level: Level, part: CpuPart, cpu_ns: u64) {
        self.add(cpu_index(cause, level, part), cpu_ns);
    }

    /// Books what went through the codecs and what was read; `ns_per_tick` turns the meter's ticks to CPU time.
    pub fn book_codecs(&self, cause: Cause, level: Level, meter: &WorkMeter, ns_per_tick: f64) {
        let ns = |ticks: u64| (ticks as f64 * ns_per_tick) as u64;
        for codec in 0..CODEC_NAMES.len() {
            let Some(codecs) = &meter.codecs else { break };
            let book = |figure, amount| {
                self.add(codec_index(cause, level, codec as u8, figure), amount);
            };
            book(CodecFigure::CompressedRawBytes, codecs.compressed_raw_bytes[codec]);
            book(CodecFigure::CompressedStoredBytes, codecs.compressed_stored_bytes[codec]);
            book(CodecFigure::CompressNs, ns(codecs.compress_ticks[codec]));
            book(CodecFigure::DecompressedRawBytes, codecs.decompressed_raw_bytes[codec]);
            book(CodecFigure::DecompressNs, ns(codecs.decompress_ticks[codec]));
        }
        self.count(Counter::RawFallbackBlocks, meter.raw_fallback_blocks);
        self.add(traffic_index(cause, level, 0, TrafficFigure::ReadBytes), meter.read_bytes);
        self.add(traffic_index(cause, level, 0, TrafficFigure::Reads), meter.reads);
    }

    /// Books a span of CPU time split into parts; the last is the merge.
    pub(super) fn book_parts(
        &self,
        cause: Cause,
        level: Level,
        parts_ns: &[u64; PART_COUNT + 1],
        weight: u64,
    ) {
        for (part, ns) in CpuPart::ALL.iter().zip(parts_ns) {
            self.book_cpu(cause, level, *part, ns * weight);
        }
    }

    /// Adds to a counter and returns what it was before. Of a counter that every read or write
    /// adds to, that is what the calling thread's part of it was.
    #[inline]
    pub fn count(&self, counter: Counter, amount: u64) -> u64 {
        if amount == 0 {
            return 0;
        }
        self.count_in(&self.striped.of_thread(), counter, amount)
    }

    /// Adds to several counters: cheaper than one by one.
    #[inline]
    pub fn count_all<const N: usize>(&self, amounts: [(Counter, u64); N]) {
        let stripe = self.striped.of_thread();
        for (counter, amount) in amounts {
            self.count_in(&stripe, counter, amount);
        }
    }

    #[inline]
    fn count_in(
        &self,
        stripe: &ThreadStripe<'_, OfDatabase>,
        counter: Counter,
        amount: u64,
    ) -> u64 {
        match stripe.add(counter, amount) {
            Some(before) => before,
            None => self.figures[counter_index(counter)].fetch_add(amount, Relaxed),
        }
    }

    /// The book of a new family. What it counts is the database's too.
    pub fn add_family(&self) -> Arc<FamilyLedger> {
        let family = Arc::new(FamilyLedger::default());
        let mut families = lock(&self.families);
        families.retain_mut(|family| !self.takes_over(family));
        families.push(Arc::clone(&family));
        family
    }

    /// Whether nobody books with the family any more: then what it has counted is taken over.
    fn takes_over(&self, family: &mut Arc<FamilyLedger>) -> bool {
        let is_gone = Arc::get_mut(family).is_some();
        for counter in Counter::ALL.iter().filter(|_| is_gone) {
            self.add(counter_index(*counter), family.counter(*counter));
        }
        is_gone
    }

    /// The value of a counter, over all families.
    pub fn counter(&self, counter: Counter) -> u64 {
        let families = lock(&self.families);
        let of_families: u64 = families.iter().map(|family| family.counter(counter)).sum();
        let own = self.figures[counter_index(counter)].load(Relaxed);
        own + self.striped.sum(counter) + of_families
    }

    /// Books a finished job in the table of its target level, of the database and of the family.
    pub fn book_job(&self, family: &FamilyLedger, record: &JobRecord) {
        for (figure, amount) in record.figures() {
            self.add(job_index(record.target_level, figure), amount);
        }
        family.book_job(record);
    }

    /// Keeps what a job came to, in place of the oldest one that was kept.
    pub fn log_job(&self, end: JobEnd) {
        self.jobs.push(end);
    }

    /// The latest jobs, oldest first.
    pub fn latest_jobs(&self) -> Vec<JobEnd> {
        self.jobs.latest()
    }

    /// Books a unit of work that held its thread for `wall_us`; shorter ones than a millisecond
    /// are not recorded.
    pub fn book_unit(&self, cause: Cause, level: Level, wall_us: u64, cpu_us: u64, now_us: u64) {
        if wall_us < super::stall::UNIT_US_MIN {
            return;
        }
        self.add(unit_index(cause), 1);
        self.add(unit_index(cause) + 1, wall_us);
        let at_us = self.uptime_us(now_us);
        self.stalls.record_unit(super::stall::Unit { at_us, cause, level, wall_us, cpu_us });
    }

    /// Books that a writer was slowed.
    pub fn book_delay(&self, cause: DelayCause, delay_us: u64) {
        self.add(delay_index(cause), 1);
        self.add(delay_index(cause) + 1, delay_us);
    }

    /// Books that a writer was stopped until the state changed.
    pub fn book_stop(&self, cause: DelayCause, stop_us: u64) {
        self.add(stop_index(cause), 1);
        self.add(stop_index(cause) + 1, stop_us);
    }

    /// A copy of all figures.
    pub fn figures(&self) -> Figures {
        // First, so that no family is taken over meanwhile.
        let families = lock(&self.families);
        let mut figures: Vec<_> = self.figures.iter().map(|figure| figure.load(Relaxed)).collect();
        for counter in OfDatabase::COUNTERS {
            figures[counter_index(*counter)] += self.striped.sum(*counter);
        }
        for counter in Counter::ALL {
            let of_families: u64 = families.iter().map(|family| family.counter(*counter)).sum();
            figures[counter_index(*counter)] += of_families;
        }
        Figures(figures)
    }
}
