//! Tests of the ledger under a clock that stands still until it is moved.

mod review;

use super::*;
use crate::base::Clock;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// A clock whose every hand is set by the test.
#[derive(Default)]
pub(crate) struct HandClock {
    pub(crate) now_us: AtomicU64,
    pub(crate) cpu_ns: AtomicU64,
    pub(crate) ticks: AtomicU64,
}

impl HandClock {
    /// Moves on by a span of wall time, of which `cpu_us` were on the CPU; a tick is a third of
    /// a nanosecond.
    pub(crate) fn advance(&self, wall_us: u64, cpu_us: u64) {
        self.now_us.fetch_add(wall_us, Relaxed);
        self.cpu_ns.fetch_add(cpu_us * 1_000, Relaxed);
        self.ticks.fetch_add(wall_us * 3_000, Relaxed);
    }
}

impl Clock for HandClock {
    fn now_us(&self) -> u64 {
        self.now_us.load(Relaxed)
    }
    fn thread_cpu_ns(&self) -> u64 {
        self.cpu_ns.load(Relaxed)
    }
    fn ticks(&self) -> u64 {
        self.ticks.load(Relaxed)
    }
    fn unix_time_s(&self) -> u64 {
        1_700_000_000
    }
}

fn parts(figures: &Figures, cause: Cause, level: usize) -> Vec<u64> {
    CpuPart::ALL.iter().map(|part| figures.cpu_ns(cause, level, *part)).collect()
}

#[test]
fn a_step_is_split_into_parts_that_add_up() {
    let clock = HandClock::default();
    let ledger = Ledger::new(&clock);
    clock.advance(10_000, 0);
    let mut step = StepClock::start(&clock);
    let mut meter = WorkMeter::default();
    meter.time(&clock, Part::Compress, || clock.advance(300, 300));
    meter.time(&clock, Part::Checksum, || clock.advance(100, 100));
    // A file call that takes 5 ms, of which 50 us on the CPU.
    meter.time(&clock, Part::Io, || clock.advance(5_000, 50));
    meter.codecs().compress_ticks[4] = 900_000;
    meter.codecs().compressed_raw_bytes[4] = 16_384;
    meter.codecs().compressed_stored_bytes[4] = 7_000;
    meter.raw_fallback_blocks = 2;
    clock.advance(50, 50);
    let cost = step.finish(&clock, &ledger, Cause::Compaction, 3, &mut meter);
    assert_eq!(cost, StepCost { cpu_ns: 500_000, wall_us: 5_450 });
    assert_eq!(meter.codecs().compressed_raw_bytes[4], 0, "the meter was emptied");

    let figures = ledger.figures();
    let parts = parts(&figures, Cause::Compaction, 3);
    assert_eq!(parts.iter().sum::<u64>(), 500_000);
    assert_eq!(parts, [300_000, 0, 100_000, 0, 50_000, 0, 50_000]);
    let codec = |figure| figures.codec(Cause::Compaction, 3, 4, figure);
    assert_eq!(codec(CodecFigure::CompressedRawBytes), 16_384);
    assert_eq!(codec(CodecFigure::CompressedStoredBytes), 7_000);
    assert_eq!(codec(CodecFigure::CompressNs), 300_000);
    assert_eq!(figures.counter(Counter::RawFallbackBlocks), 2);
    // The step held its thread for more than a millisecond.
    assert_eq!(figures.units(Cause::Compaction), Tally { count: 1, sum_us: 5_450 });
    assert_eq!(ledger.stalls().summary(clock.now_us()).latest_units[0].cpu_us, 500);
}

#[test]
fn the_end_of_a_step_is_the_start_of_the_next() {
    let clock = HandClock::default();
    let ledger = Ledger::new(&clock);
    let mut step = StepClock::start(&clock);
    let mut meter = WorkMeter::default();
    for level in 1..4 {
        clock.advance(200, 150);
        step.finish(&clock, &ledger, Cause::Compaction, level, &mut meter);
    }
    let figures = ledger.figures();
    assert_eq!(figures.cpu_ns_of_cause(Cause::Compaction), 450_000);
    assert_eq!(figures.cpu_ns(Cause::Compaction, 2, CpuPart::Merge), 150_000);
    assert_eq!(figures.units(Cause::Compaction).count, 0);
}

#[test]
fn meters_that_claim_more_than_the_step_still_add_up() {
    let clock = HandClock::default();
    let ledger = Ledger::new(&clock);
    let mut step = StepClock::start(&clock);
    let ticks = [u64::MAX / 16; PART_COUNT];
    let mut meter = WorkMeter { ticks, ..WorkMeter::default() };
    clock.advance(100, 77);
    step.finish(&clock, &ledger, Cause::Flush, 0, &mut meter);
    assert_eq!(parts(&ledger.figures(), Cause::Flush, 0).iter().sum::<u64>(), 77_000);
}

#[test]
fn samples_stand_for_all_calls() {
    let clock = HandClock::default();
    let ledger = Ledger::new(&clock);
    // From here on the rate of the ticks is known.
    clock.advance(1_000, 0);
    let mut meter = WorkMeter::default();
    let calls = 256_000;
    let mut sampled = 0;
    for _ in 0..calls {
        let sample = ledger.begin_user_call(Counter::Gets, Cause::UserLookup, &clock);
        sampled += u64::from(sample.is_some());
        meter.time(&clock, Part::Decompress, || clock.advance(2, 2));
        meter.codecs().decompressed_raw_bytes[3] += 100;
        meter.codecs().decompress_ticks[3] += 6_000;
        clock.advance(3, 3);
        ledger.end_user_call(sample, Cause::UserLookup, 2, &clock, &mut meter);
    }
    let figures = ledger.figures();
    assert_eq!(figures.counter(Counter::Gets), calls);
    let expected = calls / SHORT_PERIOD + calls / LONG_PERIOD;
    assert!(sampled.abs_diff(expected) <= expected / 20, "{sampled}");
    // 5 us of CPU each; 2 of them are decompression.
    let cpu_ns = figures.cpu_ns_of_cause(Cause::UserLookup);
    assert!(cpu_ns.abs_diff(calls * 5_000) < calls * 5_000 / 20, "{cpu_ns}");
    let decompress_ns = figures.cpu_ns(Cause::UserLookup, 2, CpuPart::Decompress);
    assert!(decompress_ns.abs_diff(cpu_ns * 2 / 5) < cpu_ns / 100);
    // Bytes are of all calls, not of samples.
    let raw = figures.codec(Cause::UserLookup, 2, 3, CodecFigure::DecompressedRawBytes);
    assert_eq!(raw, calls * 100);
}

#[test]
fn calls_that_waited_are_booked_by_their_cpu_time() {
    let clock = HandClock::default();
    let ledger = Ledger::new(&clock);
    clock.advance(1_000, 0);
    let mut meter = WorkMeter::default();
    // Every eighth call waits for a disk; what it waited is nobody's CPU time.
    let calls = 256_000;
    for call in 0..calls {
        let sample = ledger.begin_user_call(Counter::Seeks, Cause::UserLookup, &clock);
        match call % 8 {
            0 => clock.advance(200, 12),
            _ => clock.advance(4, 4),
        }
        ledger.end_user_call(sample, Cause::UserLookup, 0, &clock, &mut meter);
    }
    let cpu_ns = ledger.figures().cpu_ns_of_cause(Cause::UserLookup);
    assert!(cpu_ns.abs_diff(calls * 5_000) < calls * 5_000 / 20, "{cpu_ns}");
}

/// A clock that remembers whether the CPU time was asked for.
#[derive(Default)]
struct AskedClock {
    time: HandClock,
    asked: AtomicBool,
}

impl Clock for AskedClock {
    fn now_us(&self) -> u64 {
        self.time.now_us()
    }
    fn thread_cpu_ns(&self) -> u64 {
        self.asked.store(true, Relaxed);
        self.time.thread_cpu_ns()
    }
    fn ticks(&self) -> u64 {
        self.time.ticks()
    }
    fn unix_time_s(&self) -> u64 {
        self.time.unix_time_s()
    }
}

/// A writer that reads its CPU time is overtaken by another one, and waits for that one.
#[test]
fn calls_that_are_long_because_they_are_timed_do_not_stand_for_others() {
    let clock = AskedClock::default();
    let ledger = Ledger::new(&clock);
    clock.time.advance(1_000, 0);
    let (calls, mut spent_us) = (256_000, 0);
    for _ in 0..calls {
        clock.asked.store(false, Relaxed);
        let sample = ledger.begin_user_call(Counter::Seeks, Cause::UserWrite, &clock);
        let (wall_us, cpu_us) = if clock.asked.load(Relaxed) { (6_000, 40) } else { (2, 2) };
        clock.time.advance(wall_us, cpu_us);
        spent_us += cpu_us;
        ledger.end_unmetered_call(sample, Cause::UserWrite, &clock);
    }
    let booked_us = ledger.figures().cpu_ns_of_cause(Cause::UserWrite) / 1_000;
    assert!(booked_us.abs_diff(spent_us) < spent_us / 10, "{booked_us} of {spent_us}");
}

#[test]
fn long_calls_count_before_the_first_of_them_is_timed() {
    let clock = HandClock::default();
    let ledger = Ledger::new(&clock);
    clock.advance(1_000, 0);
    // The CPU clock times the 3,943rd call and then the 5,439th: all long ones between are owed until then.
    let (calls, first_long) = (5_600_u64, 4_000);
    for call in 0..calls {
        let sample = ledger.begin_user_call(Counter::Seeks, Cause::UserScan, &clock);
        let (wall_us, cpu_us) = if call < first_long { (4, 4) } else { (300, 20) };
        clock.advance(wall_us, cpu_us);
        ledger.end_unmetered_call(sample, Cause::UserScan, &clock);
    }
    let spent_ns = (first_long * 4 + (calls - first_long) * 20) * 1_000;
    let booked_ns = ledger.figures().cpu_ns_of_cause(Cause::UserScan);
    assert!(booked_ns.abs_diff(spent_ns) < spent_ns / 20, "{booked_ns} of {spent_ns}");
}

/// A clock whose ticks go on by 90 while they are read.
struct SlowTicks(HandClock);

impl Clock for SlowTicks {
    fn now_us(&self) -> u64 {
        self.0.now_us()
    }
    fn thread_cpu_ns(&self) -> u64 {
        self.0.thread_cpu_ns()
    }
    fn ticks(&self) -> u64 {
        self.0.ticks.fetch_add(90, Relaxed)
    }
    fn unix_time_s(&self) -> u64 {
        self.0.unix_time_s()
    }
}

#[test]
fn reading_the_ticks_is_not_booked_to_the_call() {
    let clock = SlowTicks(HandClock::default());
    let ledger = Ledger::new(&clock);
    clock.0.advance(1_000, 0);
    for _ in 0..64_000 {
        let sample = ledger.begin_user_call(Counter::Seeks, Cause::UserLookup, &clock);
        ledger.end_user_call(sample, Cause::UserLookup, 0, &clock, &mut WorkMeter::default());
    }
    assert_eq!(ledger.figures().cpu_ns_of_cause(Cause::UserLookup), 0);
}

#[test]
fn samples_do_not_fall_in_step_with_a_pattern_of_calls() {
    let clock = HandClock::default();
    let ledger = Ledger::new(&clock);
    let mut sampled = [0; 8];
    for call in 0..256_000 {
        let sample = ledger.begin_user_call(Counter::Seeks, Cause::UserLookup, &clock);
        sampled[call % 8] += u32::from(sample.is_some());
    }
    assert!(sampled.iter().all(|count| (400..670).contains(count)), "{sampled:?}");
}

#[test]
fn traffic_is_booked_by_cause_level_and_codec() {
    let clock = HandClock::default();
    let ledger = Ledger::new(&clock);
    ledger.book_written(Cause::Flush, 0, 0, 1_000);
    ledger.book_written(Cause::Compaction, 6, 4, 500);
    ledger.book_written(Cause::Compaction, 60, 200, 7);
    ledger.book_read(Cause::UserLookup, 6, 4, 40);
    ledger.book_read(Cause::UserLookup, 6, 4, 2);
    let figures = ledger.figures();
    let of = |cause, level, codec, figure| figures.traffic(cause, level, codec, figure);
    assert_eq!(of(Cause::Compaction, 6, 4, TrafficFigure::WrittenBytes), 500);
    assert_eq!(of(Cause::UserLookup, 6, 4, TrafficFigure::Reads), 2);
    // Beyond the slots nothing is lost: it counts for the last level, without a codec.
    assert_eq!(of(Cause::Compaction, LEVEL_SLOTS - 1, 0, TrafficFigure::WrittenBytes), 7);
    assert_eq!(figures.traffic_total(TrafficFigure::WrittenBytes), 1_507);
    ledger.book_written(Cause::WalPreallocation, 0, 0, 64 << 20);
    let total = ledger.figures().traffic_total(TrafficFigure::WrittenBytes);
    assert_eq!(total, 1_507, "space reserved is not written");
    assert_eq!(figures.traffic_of_cause(Cause::UserLookup, TrafficFigure::ReadBytes), 42);

    ledger.book_written(Cause::Flush, 0, 0, 11);
    let interval = ledger.figures().since(&figures);
    assert_eq!(interval.traffic_total(TrafficFigure::WrittenBytes), 11);
}

#[test]
fn jobs_are_booked_at_their_target_level() {
    let clock = HandClock::default();
    let ledger = Ledger::new(&clock);
    let family = ledger.add_family();
    let job = JobRecord {
        target_level: 4,
        read_source_bytes: 10,
        read_target_bytes: 90,
        written_bytes: 80,
        entries_in: 7,
        entries_dropped: 3,
        ..JobRecord::default()
    };
    ledger.book_job(&family, &job);
    ledger.book_job(&family, &job);
    let moved = JobRecord { target_level: 4, moved_bytes: 5, ..JobRecord::default() };
    ledger.book_job(&family, &moved);
    assert_eq!(family.figures().job(4, JobFigure::WrittenBytes), 160);
    let figures = ledger.figures();
    assert_eq!(figures.job(4, JobFigure::WrittenBytes), 160);
    assert_eq!(figures.job(4, JobFigure::Jobs), 2);
    assert_eq!(figures.job(4, JobFigure::Moves), 1);
    assert_eq!(figures.job_total(JobFigure::EntriesDropped), 6);
}

#[test]
fn only_long_units_are_recorded_and_the_latest_kept() {
    let clock = HandClock::default();
    let ledger = Ledger::new(&clock);
    ledger.book_unit(Cause::Flush, 0, UNIT_US_MIN - 1, 1, 10);
    for index in 0..300 {
        ledger.book_unit(Cause::Flush, 0, 1_000 + index, 1, 10 + index);
    }
    let summary = ledger.stalls().summary(20);
    assert_eq!(summary.latest_units.len(), 256);
    assert_eq!(summary.latest_units[0].wall_us, 1_044);
    assert_eq!(summary.longest_unit_us[Cause::Flush as usize], 1_299);
    assert_eq!(ledger.figures().units(Cause::Flush).count, 300);
}

#[test]
fn slowed_time_is_counted_once_for_overlapping_writers() {
    let stalls = Stalls::new(1_000);
    stalls.writer_slowed(2_000);
    stalls.writer_slowed(3_000);
    stalls.writer_released(4_000);
    stalls.writer_released(7_000);
    stalls.writer_slowed(9_000);
    assert_eq!(stalls.summary(9_500).slowed_us, 5_500);
}

#[test]
fn gaps_count_only_while_a_writer_wants_to_write() {
    let at = |ms: u64| ms * 1_000;
    let stalls = Stalls::new(0);
    // A writer that completes at once, then nobody for a second: no gap.
    stalls.writer_begins(at(0));
    stalls.write_completed(at(1));
    stalls.writer_ends();
    stalls.writer_begins(at(1_050));
    assert_eq!(stalls.summary(at(1_060)).longest_gap_us, 10_000);
    // Held up until 1420: the windows 1100, 1200 and 1300 passed without a completion.
    stalls.write_completed(at(1_420));
    let summary = stalls.summary(at(1_999));
    assert_eq!((summary.gap_windows, summary.windows), (3 + 4, 19), "1500 to 1900 is still open");
    stalls.writer_ends();
    let summary = stalls.summary(at(2_000));
    assert_eq!((summary.gap_windows, summary.windows), (3, 20));
    assert_eq!(summary.longest_gap_us, 370_000);
    assert_eq!(summary.gap_share(), 0.15);
}

#[test]
fn a_writer_that_gives_up_leaves_its_gap() {
    let stalls = Stalls::new(0);
    stalls.writer_begins(0);
    stalls.writer_gives_up(350_000);
    let summary = stalls.summary(400_000);
    assert_eq!((summary.gap_windows, summary.longest_gap_us), (3, 350_000));
}

/// Books something in every place of the page but the steps.
fn book_activity(ledger: &Ledger) {
    for (counter, amount) in [
        (Counter::Puts, 100_000),
        (Counter::Deletes, 1_000),
        (Counter::IngestedBytes, 20 << 20),
        (Counter::Commits, 50_000),
        (Counter::CommitGroups, 40_000),
        (Counter::WalWrites, 40_000),
        (Counter::WalSyncs, 400),
        (Counter::Gets, 10_000),
        (Counter::GetHits, 9_000),
        (Counter::FilterChecks, 30_000),
        (Counter::FilterNegatives, 20_000),
        (Counter::FilterFalsePositives, 300),
        (Counter::TransactionCommits, 600),
        (Counter::TransactionRollbacks, 20),
        (Counter::LockRequests, 1_800),
        (Counter::LockWaits, 50),
        (Counter::LockTimeouts, 5),
        (Counter::Deadlocks, 2),
        (Counter::Conflicts, 10),
    ] {
        ledger.count(counter, amount);
    }
    ledger.book_written(Cause::Wal, 0, 0, 22 << 20);
    ledger.book_written(Cause::WalPreallocation, 0, 0, 64 << 20);
    ledger.book_written(Cause::Flush, 0, 3, 16 << 20);
    ledger.book_written(Cause::Compaction, 6, 4, 30 << 20);
    ledger.book_read(Cause::Compaction, 6, 4, 44 << 20);
    ledger.book_read(Cause::UserLookup, 6, 4, 4_000);
    let family = ledger.add_family();
    ledger.book_job(
        &family,
        &JobRecord {
            written_bytes: 16 << 20,
            written_raw_bytes: 30 << 20,
            wall_us: 200_000,
            cpu_ns: 150_000_000,
            entries_in: 101_000,
            ..JobRecord::default()
        },
    );
    ledger.book_job(
        &family,
        &JobRecord {
            target_level: 6,
            read_source_bytes: 16 << 20,
            read_target_bytes: 28 << 20,
            copied_blocks: 700,
            copied_bytes: 5 << 20,
            written_bytes: 30 << 20,
            written_raw_bytes: 90 << 20,
            wall_us: 1_500_000,
            cpu_ns: 1_500_000_000,
            entries_in: 300_000,
            entries_dropped: 40_000,
            ..JobRecord::default()
        },
    );
    let moved = JobRecord { target_level: 6, moved_bytes: 3 << 20, ..JobRecord::default() };
    ledger.book_job(&family, &moved);
    log_jobs(ledger);
    ledger.book_delay(DelayCause::Level0, 1_500);
    ledger.book_stop(DelayCause::Memtable, 20_000);
    ledger.stalls().writer_slowed(2_100_000);
    ledger.stalls().writer_released(2_400_000);
    ledger.stalls().writer_begins(2_050_000);
    ledger.stalls().write_completed(2_330_000);
    ledger.stalls().writer_ends();
}

/// A job of every kind and with every outcome, behind one that the page leaves out.
fn log_jobs(ledger: &Ledger) {
    let planned = |kind, number, began_us| {
        let family = if kind == JobKind::WriteStop { "" } else { "links" };
        JobInfo { number, began_us, ..JobInfo::planned(kind, family) }
    };
    let log = |job, ended_us, record: JobRecord, outcome| {
        ledger.log_job(JobEnd::new(job, ended_us, 2, [&record], outcome));
    };
    let flush = |number| JobInfo {
        target_level: Some(0),
        tables_in: 1,
        bytes_in: 16 << 20,
        ..planned(JobKind::Flush, number, 2_000_000)
    };
    let written =
        JobRecord { cpu_ns: 150_000_000, written_bytes: 16 << 20, ..JobRecord::default() };
    for number in 1..=7 {
        log(
            flush(number),
            2_200_000,
            JobRecord { entries_in: 101_000, ..written },
            JobOutcome::Done,
        );
    }
    let merge = JobInfo {
        reason: "level0",
        source_level: Some(0),
        target_level: Some(6),
        tables_in: 5,
        bytes_in: 44 << 20,
        ..planned(JobKind::Compaction, 8, 2_000_000)
    };
    let record = JobRecord { entries_in: 300_000, entries_dropped: 40_000, ..written };
    log(merge.clone(), 3_500_000, record, JobOutcome::Done);
    log(merge.clone(), 3_500_000, record, JobOutcome::Aborted);
    let moved = JobRecord { moved_bytes: 3 << 20, ..JobRecord::default() };
    log(JobInfo { kind: JobKind::Move, ..merge }, 3_500_000, moved, JobOutcome::Done);
    let ingest = JobInfo { target_level: None, ..planned(JobKind::Ingest, 9, 3_000_000) };
    let full = crate::Error::new(crate::ErrorKind::NoSpace, "no space left");
    log(ingest, 3_500_000, written, JobOutcome::of_error(&full));
    let stop = JobInfo { reason: "memtable", ..planned(JobKind::WriteStop, 10, 3_480_000) };
    log(stop, 3_500_000, JobRecord::default(), JobOutcome::Done);
}

/// A snapshot with something in every place of the page.
fn full_snapshot() -> StatisticsSnapshot {
    let clock = HandClock::default();
    let ledger = Ledger::new(&clock);
    clock.advance(2_000_000, 0);
    ledger.count(Counter::Puts, 900);
    ledger.count(Counter::IngestedBytes, 1 << 20);
    let earlier = StatisticsSnapshot::of_ledger(&ledger, clock.now_us());

    let mut step = StepClock::start(&clock);
    let mut meter = WorkMeter::default();
    meter.time(&clock, Part::Compress, || clock.advance(900_000, 900_000));
    meter.codecs().compress_ticks[4] = 2_700_000_000;
    meter.codecs().compressed_raw_bytes[4] = 90 << 20;
    meter.codecs().compressed_stored_bytes[4] = 30 << 20;
    clock.advance(600_000, 600_000);
    step.finish(&clock, &ledger, Cause::Compaction, 6, &mut meter);
    book_activity(&ledger);

    let budget = crate::base::MemoryBudget::new(256 << 20);
    let _cache = budget.charge(crate::base::MemoryUse::Cache, 8 << 20);
    let mut snapshot = StatisticsSnapshot::of_ledger(&ledger, clock.now_us()).with_memory(&budget);
    snapshot.levels = vec![LevelShape::default(); 7];
    snapshot.levels[0] = LevelShape {
        files: 3,
        files_busy: 1,
        size_bytes: 12 << 20,
        raw_bytes: 20 << 20,
        score: 0.75,
        compression: "none".into(),
        ..LevelShape::default()
    };
    snapshot.levels[6] = LevelShape {
        files: 9,
        size_bytes: 40 << 20,
        raw_bytes: 120 << 20,
        target_bytes: 64 << 20,
        score: 0.62,
        codec_debt_files: 2,
        compression: "zstd-1".into(),
        files_by_codec: [("lz4".to_owned(), 2), ("zstd-1".to_owned(), 7)].into(),
        ..LevelShape::default()
    };
    snapshot.families = vec![family_of("links", &snapshot.levels), family_of("rows", &[])];
    snapshot.base_level = 6;
    snapshot.pending_compaction_bytes = 33 << 20;
    snapshot.wal_live_bytes = 8 << 20;
    snapshot.logical_live_bytes = Some(50 << 20);
    snapshot.cache = CacheFigures {
        capacity_bytes: 64 << 20,
        used_bytes: 8 << 20,
        hits: 750,
        misses: 250,
        unwanted: 40,
        evictions: 7,
        inserted_bytes: 9 << 20,
    };
    snapshot.previous = Some(Box::new(earlier));
    snapshot
}

/// A family with some of everything, or with nothing.
fn family_of(name: &str, levels: &[LevelShape]) -> FamilyStatistics {
    let ledger = FamilyLedger::default();
    if !levels.is_empty() {
        for (counter, amount) in [
            (Counter::Gets, 9_000),
            (Counter::Puts, 60_000),
            (Counter::Merges, 5_000),
            (Counter::Deletes, 900),
            (Counter::SingleDeletes, 100),
            (Counter::RangeDeletes, 3),
            (Counter::Cursors, 20),
            (Counter::Nexts, 20_000),
            (Counter::SkippedEntries, 399_980_000),
            (Counter::IngestedBytes, 12 << 20),
        ] {
            ledger.count(counter, amount);
        }
        ledger.book_job(&JobRecord { written_bytes: 36 << 20, ..JobRecord::default() });
    }
    FamilyStatistics {
        id: 1,
        name: name.into(),
        compression: "none,lz4,zstd-1".into(),
        memtable_bytes: 3 << 20,
        figures: ledger.figures(),
        longest_pass: (!levels.is_empty()).then(|| DeadPass {
            entries: 19_999,
            from: b"job\0\x07".as_slice().into(),
            to: b"job\0\x09".as_slice().into(),
        }),
        ..FamilyStatistics::default()
    }
    .with_levels(levels.to_vec())
}

/// Compares `actual` with a committed file; `LITHIFY_REWRITE=1` writes the file instead.
fn assert_golden(path: &str, actual: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("LITHIFY_REWRITE").is_some() {
        std::fs::write(&path, actual).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(actual, expected, "{}: LITHIFY_REWRITE=1 writes it anew", path.display());
}

#[test]
fn the_page_is_as_it_was() {
    assert_golden("src/stats/testdata/page.txt", &full_snapshot().to_string());
}

#[test]
fn the_json_is_as_it_was() {
    let mut json = full_snapshot().to_json();
    // Of the codecs that did nothing the first one stands for all, so that a new one changes nothing.
    let idle = json.split_once("\"none\":").and_then(|(_, rest)| rest.split_once('}')).unwrap().0;
    let idle = format!("{idle}}}");
    for name in &CODEC_NAMES[1..] {
        assert!(json.contains(&format!(",\"{name}\":{{")), "{name}");
        json = json.replace(&format!(",\"{name}\":{idle}"), "");
    }
    // One member per line, so that a difference can be read.
    let json = json.replace(",\"", ",\n\"");
    assert_golden("src/stats/testdata/snapshot.json", &format!("{json}\n"));
}

#[test]
fn the_metrics_are_as_they_were() {
    let text = full_snapshot().to_prometheus();
    let version = format!("version=\"{}\"", env!("CARGO_PKG_VERSION"));
    let codecs = format!("codecs=\"{}\"", CODEC_NAMES.join(","));
    let text = text.replace(&version, "version=\"*\"").replace(&codecs, "codecs=\"*\"");
    assert_golden("src/stats/testdata/metrics.txt", &text);
}

/// Metrics are in base units, whatever unit the figure has here. Bytes may be counted in any metric.
#[test]
fn no_metric_is_described_in_another_unit_than_its_name() {
    let of_time = ["seconds", "minutes", "hours"];
    let of_bytes = ["kilobyte", "megabyte", "kib", "mib", "kb", "mb", "percent"];
    let text = full_snapshot().to_prometheus();
    let helps: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("# HELP ")).collect();
    assert!(helps.len() > 100, "{text}");
    for help in helps {
        let (name, meaning) = help.split_once(' ').unwrap();
        let words: Vec<String> = meaning.split_whitespace().map(str::to_lowercase).collect();
        let says = |unit: &str| words.iter().any(|word| word.contains(unit));
        assert!(!of_time.iter().any(|unit| says(unit)), "{name}: {meaning}");
        assert!(!of_bytes.iter().any(|unit| words.iter().any(|word| word == unit)), "{help}");
        let counts_bytes = meaning.starts_with("Bytes ");
        assert!(!counts_bytes || name.contains("_bytes"), "{name}: {meaning}");
    }
}

#[test]
fn a_page_without_any_work_has_no_broken_numbers() {
    let clock = HandClock::default();
    let ledger = Ledger::new(&clock);
    let snapshot = StatisticsSnapshot::of_ledger(&ledger, 0);
    let page = snapshot.to_string();
    assert!(!page.contains("NaN") && !page.contains("inf"), "{page}");
    assert!(!page.contains("transactions: "), "no line where there were none: {page}");
    assert!(!snapshot.to_json().contains("NaN"));
}

#[test]
fn json_escapes_what_must_be_escaped() {
    let mut json = JsonWriter::new();
    json.object(|json| {
        json.key("a\"b").string("line\n\\ \u{1} é");
        json.key("empty").array(|_| {});
        json.key("none").real(f64::INFINITY);
        json.key("nested").object(|json| json.key("n").number(1));
        json.key("last").real(0.25);
    });
    let expected =
        r#"{"a\"b":"line\n\\ \u0001 é","empty":[],"none":null,"nested":{"n":1},"last":0.25}"#;
    assert_eq!(json.finish(), expected);
}

/// The documentation of one list as a table.
fn document(text: &mut String, title: &str, rows: &[(&str, &str, &str)]) {
    text.push_str(&format!("\n## {title}\n\n| name | unit | meaning |\n|---|---|---|\n"));
    for (name, unit, description) in rows {
        text.push_str(&format!("| `{name}` | {unit} | {description} |\n"));
    }
}

/// The page of documentation.
fn documentation() -> String {
    macro_rules! rows {
        ($list:ident) => {
            &$list::ALL
                .iter()
                .map(|item| (item.name(), item.unit(), item.description()))
                .collect::<Vec<_>>()
        };
    }
    let mut text = String::from(
        "# Statistics\n\nEvery name that the statistics page and its JSON use. This page is made \
         from the list in the code;\na test compares the two.\n\nBytes and CPU time are booked by \
         cause, level and codec. CPU time is that of the thread, never wall\ntime. A share is \
         between 0 and 1.\n\n`to_prometheus` and `to_open_metrics` write the same figures as metrics: \
         `lithify_` before the name, base\nunits, `_total` behind counters. Levels and jobs have \
         `level_` before, the cache `cache_`. Ratios are left to the\nquery. Counters of a family have \
         the label `family`, and end with the family.\n\n\
         The log of jobs has the latest 64 flushes, compactions, moves, ingests and write stops: when, what \
         for, what they came\nto. The page shows the last ten, the JSON all of them, metrics none. \
         [`EventListener`](recipes.md#watch-what-the-database-does) hears\nof every one.\n",
    );
    document_counters(&mut text);
    document(&mut text, "Causes of bytes and CPU time", rows!(Cause));
    document(&mut text, "Per cause, level and codec: files", rows!(TrafficFigure));
    document(&mut text, "Per cause, level and codec: blocks", rows!(CodecFigure));
    document(&mut text, "Parts of the CPU time of a cause", rows!(CpuPart));
    document(&mut text, "Per level: the jobs that wrote into it", rows!(JobFigure));
    document(&mut text, "Kinds of jobs in the log of jobs", rows!(JobKind));
    document(&mut text, "Causes of delays and stops of writers", rows!(DelayCause));
    document(&mut text, "Computed figures", rows!(Derived));
    document_review(&mut text);
    document(&mut text, "Gauges of the database", StatisticsSnapshot::GAUGES);
    document(&mut text, "Gauges of a column family", FamilyStatistics::GAUGES);
    document(&mut text, "Gauges of a level", LevelShape::GAUGES);
    document(&mut text, "Gauges of the block cache", CacheFigures::GAUGES);
    let uses =
        MemoryUse::ALL.map(|memory_use| (memory_use.name(), "bytes", memory_use.description()));
    document(&mut text, "Memory by use", &uses);
    document(&mut text, "Other members of the JSON", gauges::MEMBERS);
    text
}

fn document_counters(text: &mut String) {
    text.push_str(
        "\n## Counters\n\nWhere the third column says yes each column family counts by itself. The \
         database's counter is their sum,\nwith families that were dropped.\n\n\
         | name | unit | by family | meaning |\n|---|---|---|---|\n",
    );
    for counter in Counter::ALL {
        let by_family = if counter.is_of_family() { "yes" } else { "" };
        let (name, unit, meaning) = (counter.name(), counter.unit(), counter.description());
        text.push_str(&format!("| `{name}` | {unit} | {by_family} | {meaning} |\n"));
    }
}

fn document_review(text: &mut String) {
    text.push_str(
        "\n### What is in them, and an example by hand\n\nA test computes each from a snapshot made by \
         hand, and compares it with the example. Of a column family there are ",
    );
    let of_family = FamilyStatistics::DERIVED.map(|figure| format!("`{}`", figure.name()));
    text.push_str(&of_family.join(", "));
    text.push_str(".\n\n| name | in it | not in it | example |\n|---|---|---|---|\n");
    for review::Reviewed { figure, with, without, example, .. } in review::REVIEW {
        text.push_str(&format!("| `{}` | {with} | {without} | {example} |\n", figure.name()));
    }
    text.push_str(
        "\nThe page has quotients of its own. `W-Amp` of a level: bytes that compactions wrote into it / \
         bytes that came in from\nlevels above. `W-Amp` of the sum: (flush + compaction + ingest: \
         written bytes) / (flush + ingest: written bytes).\n`In(MiB/s)`, `Wr(MiB/s)`, `Avg(sec)`: per wall time \
         of jobs, and per job.\n`Input` is the size of input tables, from the level above `In(n)` and from the level \
         itself `In(n+1)`.\nBytes read are in the cost by cause. Flushes into a level count there in all columns but `W-Amp`.\n\nCPU time of \
         users' calls is sampled:\n\n\
         - One call in 64 is timed by ticks. It stands for 64 if it took under 50 us.\n\
         - One in 1,024 is timed by the thread's clock. If it took longer, it tells what longer ones take; of those as many are booked as the\n  \
         ticks found.\n\
         - Samples are spread, so that no pattern of calls falls in step with them.\n\
         - The first comes after half a period, so that the sum over few calls is unbiased on average.\n",
    );
}

#[test]
fn the_documentation_lists_every_name() {
    assert_golden("../../docs/stats.md", &documentation());
}

/// The members of all objects of a JSON text.
fn members(json: &str) -> BTreeSet<String> {
    let mut members = BTreeSet::new();
    for (index, _) in json.match_indices("\":") {
        let start = json[..index].rfind('"').map_or(0, |quote| quote + 1);
        members.insert(json[start..index].to_owned());
    }
    members
}

#[test]
fn the_json_has_no_member_that_is_not_documented() {
    let mut snapshot = full_snapshot();
    let mut family = FamilyStatistics::default().with_levels(snapshot.levels.clone());
    family.longest_pass =
        Some(DeadPass { entries: 1_000, from: b"a".as_slice().into(), to: b"z".as_slice().into() });
    snapshot.families = vec![family];
    let (json, documentation) = (snapshot.to_json(), documentation());
    let members = members(&json);
    let codecs: Vec<_> = CODEC_NAMES.iter().map(|name| (*name).to_owned()).collect();
    for member in members.iter().filter(|member| !codecs.contains(member) && *member != "zstd-1") {
        assert!(documentation.contains(&format!("| `{member}` |")), "{member} is not documented");
    }
    let lists = [
        StatisticsSnapshot::GAUGES,
        FamilyStatistics::GAUGES,
        LevelShape::GAUGES,
        CacheFigures::GAUGES,
        gauges::MEMBERS,
    ];
    for (name, ..) in lists.into_iter().flatten() {
        assert!(members.contains(*name), "{name} is not in the JSON");
    }
}

/// Sets one gauge after the other, and finds it on the page.
#[test]
fn the_page_shows_every_gauge_of_database_and_families() {
    let clean = || {
        let mut snapshot = full_snapshot();
        let family = || FamilyStatistics::default().with_levels(Vec::new());
        snapshot.families = vec![family(), family()];
        snapshot
    };
    let before = clean().to_string();
    for index in 0..StatisticsSnapshot::GAUGES.len() {
        let mut snapshot = clean();
        let (name, gauge) = snapshot.gauges_mut().swap_remove(index);
        *gauge = 7_777_777_777;
        assert_ne!(snapshot.to_string(), before, "{name} is not on the page");
    }
    let not_shown = ["user_bytes", "immutable_memtables", "base_level"];
    for index in 0..FamilyStatistics::GAUGES.len() {
        let mut snapshot = clean();
        let (name, gauge) = snapshot.families[1].gauges_mut().swap_remove(index);
        *gauge = 7_777_777_777;
        // Stored-to-raw is computed from the levels.
        let is_shown = snapshot.to_string() != before || name == "raw_bytes";
        assert_eq!(is_shown, !not_shown.contains(&name), "{name}");
    }
}

#[test]
fn a_family_that_is_gone_stays_in_the_sums() {
    let clock = HandClock::default();
    let ledger = Ledger::new(&clock);
    let (first, second) = (ledger.add_family(), ledger.add_family());
    first.count(Counter::Puts, 5);
    first.count(Counter::RangeDeletes, 2);
    second.count(Counter::Puts, 7);
    ledger.count(Counter::Puts, 100);
    drop(first);
    assert_eq!(ledger.counter(Counter::Puts), 112, "as long as nobody looks it is kept");
    let third = ledger.add_family();
    third.count(Counter::Puts, 1);
    assert_eq!(ledger.counter(Counter::Puts), 113);
    assert_eq!(ledger.figures().counter(Counter::Puts), 113);
    assert_eq!(ledger.figures().counter(Counter::RangeDeletes), 2);
}
