//! Every computed figure by a hand-made snapshot: what is in it, what is not, and what it comes to.
//!
//! The rows below are the table of `docs/stats.md`; the numbers in them were worked out by hand.

use super::*;

/// One computed figure.
pub(super) struct Reviewed {
    pub(super) figure: Derived,
    /// What is in it.
    pub(super) with: &'static str,
    /// What is not.
    pub(super) without: &'static str,
    /// The example, by hand.
    pub(super) example: &'static str,
    /// What that comes to.
    pub(super) value: f64,
}

macro_rules! reviewed {
    ($($figure:ident = $value:literal, $with:literal, $without:literal, $example:literal;)+) => {
        &[$(Reviewed {
            figure: Derived::$figure,
            with: $with,
            without: $without,
            example: $example,
            value: $value,
        },)+]
    };
}

pub(super) const REVIEW: &[Reviewed] = reviewed! {
    WriteAmplificationTables = 5.5,
        "Tables of flushes, compactions and ingests, those of failed jobs too. Of a family: tables that were made live.",
        "The log. What opening replays is written again and was ingested before.",
        "(1,000,000 + 4,000,000 + 500,000) / 1,000,000 = 5.5";
    WriteAmplificationWal = 1.1,
        "Records of the log, and zeros ahead of small synced ones.",
        "Space reserved. With bulk ingest the divisor has bytes that no log saw.",
        "1,100,000 / 1,000,000 = 1.1";
    WriteAmplificationTotal = 6.61,
        "Everything written: tables, log, manifest, recovery.",
        "Checkpoints and backups. Space reserved in the log: nothing is written there.",
        "(5,500,000 + 1,100,000 + 10,000) / 1,000,000 = 6.61";
    FileReadsPerLookup = 0.25,
        "Reads of files for gets and multi-gets, also those of indexes and filters.",
        "Scans, compactions, conflict checks of transactions.",
        "250 / (900 + 100) = 0.25";
    FileReadsPerRow = 0.02,
        "Reads of files for cursors, reads ahead too.",
        "Lookups.",
        "400 / 20,000 = 0.02";
    SkippedPerRow = 0.25,
        "Tombstones, older versions, expired rows, entries that a range delete covers or a snapshot does not see.",
        "Rows outside of the bounds: they are not passed. Merge operands of a row, and what they are based on.",
        "5,000 / 20,000 = 0.25";
    SpaceAmplification = 2.0,
        "Whole tables, and the records in log segments that are needed.",
        "Space reserved in the log; files that only readers or cursors still hold.",
        "(3,000,000 + 1,000,000) / 2,000,000 = 2";
    StoredToRaw = 0.4,
        "Whole tables: index, filter and dictionaries are in the dividend.",
        "In the divisor: everything but data blocks, so no compression gives more than 1.",
        "3,000,000 / 7,500,000 = 0.4";
    CacheHitShare = 0.75,
        "Blocks that were asked of the cache, nearly all by users' reads.",
        "Blocks that open tables keep by themselves. Compactions ask it for indexes only.",
        "750 / (750 + 250) = 0.75";
    FilterFalseShare = 0.1,
        "Maybes of filters to point reads. It depends on how many keys are there.",
        "Prefixes: whether a prefix was there is not known.",
        "100 / (2,900 - 1,900) = 0.1";
    FilterFalseRate = 0.05,
        "Filters that were asked for keys that their table does not have: what bits per key promise.",
        "Prefixes.",
        "100 / (100 + 1,900) = 0.05";
    CpuPerLookup = 5.0,
        "Gets and multi-gets with what they load and decompress; one call in 64 is timed.",
        "Scans.",
        "5,000,000 ns / (900 + 100) = 5 us";
    CpuPerCursor = 200.0,
        "Opening cursors and all their moves; one in 64 is timed.",
        "What the caller does between two moves.",
        "10,000,000 ns / 50 = 200 us";
    CpuPerRow = 0.5,
        "As cpu-per-cursor; dead entries that were passed make rows dearer.",
        "As cpu-per-cursor.",
        "10,000,000 ns / 20,000 = 0.5 us";
    CpuPerWrite = 40.0,
        "Commits, locks, log, flushes and compactions; compactions of bulk-ingested rows, too.",
        "Writing bulk-ingested tables, and their rows in the divisor. Compactions still to come.",
        "(1 + 4 + 5 + 30) ms / (600 + 100 + 200 + 50 + 50) = 40 us";
    SlowedShare = 0.05,
        "Time in which writers were delayed or stopped, once however many they are.",
        "Waits for row locks and for syncs.",
        "500,000 us / 10,000,000 us = 0.05";
    GapShare = 0.03,
        "Windows without a completion while a writer waited, whatever for.",
        "Windows in which nobody wrote: they are in the divisor only.",
        "3 / 100 = 0.03";
    LongestGap = 370_000.0,
        "A gap that is still open counts up to now.",
        "Times at which no writer wanted anything.",
        "370,000 us";
};

/// The snapshot of the examples.
fn by_hand() -> StatisticsSnapshot {
    let clock = HandClock::default();
    let ledger = Ledger::new(&clock);
    for (counter, amount) in [
        (Counter::Gets, 900),
        (Counter::MultiGetKeys, 100),
        // These are in no divisor.
        (Counter::MultiGets, 10),
        (Counter::Seeks, 5_000),
        (Counter::Cursors, 50),
        (Counter::Nexts, 20_000),
        (Counter::SkippedEntries, 5_000),
        (Counter::Puts, 600),
        (Counter::Merges, 100),
        (Counter::Deletes, 200),
        (Counter::SingleDeletes, 50),
        (Counter::RangeDeletes, 50),
        (Counter::IngestedBytes, 1_000_000),
        (Counter::FilterChecks, 2_900),
        (Counter::FilterNegatives, 1_900),
        (Counter::FilterFalsePositives, 100),
        (Counter::PrefixFilterChecks, 777),
        (Counter::PrefixFilterNegatives, 77),
    ] {
        ledger.count(counter, amount);
    }
    for (cause, bytes) in [
        (Cause::Flush, 1_000_000),
        (Cause::Compaction, 4_000_000),
        (Cause::Ingest, 500_000),
        (Cause::Wal, 1_100_000),
        (Cause::WalPreallocation, 2_000_000),
        (Cause::Manifest, 10_000),
        (Cause::Copy, 7_000_000),
    ] {
        ledger.book_written(cause, 5, 3, bytes);
    }
    (0..250).for_each(|_| ledger.book_read(Cause::UserLookup, 0, 0, 4_096));
    (0..400).for_each(|_| ledger.book_read(Cause::UserScan, 0, 0, 65_536));
    (0..90).for_each(|_| ledger.book_read(Cause::UserWrite, 0, 0, 4_096));
    for (cause, cpu_ms) in [
        (Cause::UserLookup, 5),
        (Cause::UserScan, 10),
        (Cause::Wal, 1),
        (Cause::UserWrite, 4),
        (Cause::Flush, 5),
        (Cause::Compaction, 30),
        (Cause::Manifest, 9),
        (Cause::Ingest, 9),
    ] {
        ledger.book_cpu(cause, 0, CpuPart::Merge, cpu_ms * 600_000);
        ledger.book_cpu(cause, 2, CpuPart::Io, cpu_ms * 400_000);
    }
    let mut snapshot = StatisticsSnapshot::of_ledger(&ledger, clock.now_us());
    let shape =
        |size_bytes, raw_bytes| LevelShape { size_bytes, raw_bytes, ..LevelShape::default() };
    snapshot.levels = vec![shape(1_000_000, 1_500_000), shape(2_000_000, 6_000_000)];
    snapshot.wal_live_bytes = 1_000_000;
    snapshot.logical_live_bytes = Some(2_000_000);
    snapshot.cache = CacheFigures { hits: 750, misses: 250, ..CacheFigures::default() };
    snapshot.uptime_us = 10_000_000;
    snapshot.stalls.slowed_us = 500_000;
    snapshot.stalls.gap_windows = 3;
    snapshot.stalls.windows = 100;
    snapshot.stalls.longest_gap_us = 370_000;
    snapshot
}

#[test]
fn every_computed_figure_is_what_it_is_by_hand() {
    let snapshot = by_hand();
    assert_eq!(REVIEW.iter().map(|row| row.figure).collect::<Vec<_>>(), Derived::ALL);
    for Reviewed { figure, value, example, .. } in REVIEW {
        let computed = snapshot.derived(*figure);
        let is_same = computed.is_some_and(|computed| (computed - value).abs() <= 1e-12 * value);
        assert!(is_same, "{}: {computed:?}, by hand {example}", figure.name());
    }
    let nothing = StatisticsSnapshot::of_ledger(&Ledger::new(&HandClock::default()), 0);
    for figure in Derived::ALL.iter().filter(|figure| **figure != Derived::LongestGap) {
        assert_eq!(nothing.derived(*figure), None, "{}", figure.name());
    }
}

/// The page's own quotients. A flush may write into any level: that is no amplification there.
#[test]
fn write_amplification_of_levels_is_that_of_compactions() {
    let clock = HandClock::default();
    let ledger = Ledger::new(&clock);
    let family = ledger.add_family();
    let job = |target_level, read_source_bytes, written_bytes| {
        let record =
            JobRecord { target_level, read_source_bytes, written_bytes, ..JobRecord::default() };
        ledger.book_job(&family, &record);
    };
    // 10 MB flushed into level 0, 30 MB into level 6; 10 MB and the 30 MB there made 40 MB of it.
    job(0, 0, 10_000_000);
    ledger.book_written(Cause::Flush, 0, 0, 10_000_000);
    job(6, 0, 30_000_000);
    ledger.book_written(Cause::Flush, 6, 3, 30_000_000);
    job(6, 10_000_000, 40_000_000);
    ledger.book_written(Cause::Compaction, 6, 3, 40_000_000);
    let mut snapshot = StatisticsSnapshot::of_ledger(&ledger, clock.now_us());
    snapshot.levels = vec![LevelShape::default(); 7];
    let page = snapshot.to_string();
    let amplification = |name: &str| {
        let line = page.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
        line.split_whitespace().nth(19).unwrap().to_owned()
    };
    assert_eq!(amplification("L0"), "1.00");
    assert_eq!(amplification("L6"), "4.00", "40 MB written for 10 MB that came in");
    assert_eq!(amplification("Sum"), "2.00", "80 MB written for 40 MB that entered");
}

#[test]
fn one_family_has_its_line_too() {
    let mut snapshot = full_snapshot();
    snapshot.families.truncate(1);
    let page = snapshot.to_string();
    assert!(page.lines().any(|line| line.starts_with("links ")), "{page}");
}

/// A few calls stand for about as many, however they are spread over threads and families.
#[test]
fn samples_are_unbiased_for_few_calls_too() {
    let clock = HandClock::default();
    let ledger = Ledger::new(&clock);
    clock.advance(1_000, 0);
    // The expectation over all lengths up to some hundred calls.
    let (mut calls_of_all, mut booked_of_all) = (0, 0);
    for calls in 1..=512 {
        let family = ledger.add_family();
        let before = ledger.figures().cpu_ns_of_cause(Cause::UserLookup);
        for _ in 0..calls {
            let sample = ledger.sample(family.count(Counter::Gets, 1), Cause::UserLookup, &clock);
            clock.advance(1, 1);
            let meter = &mut WorkMeter::default();
            ledger.end_user_call(sample, Cause::UserLookup, 0, &clock, meter);
        }
        calls_of_all += calls;
        booked_of_all += ledger.figures().cpu_ns_of_cause(Cause::UserLookup) - before;
    }
    let share = booked_of_all as f64 / (calls_of_all as f64 * 1_000.0);
    assert!((0.95..1.05).contains(&share), "{share}");
}
