//! Scans that begin where rows have expired: what each passes, and what the engine does about it.
//!
//! `cargo run --release -p lithify --example expired_head -- 1000000 20 60` makes a million rows that expire, with
//! a fresh one for each thousand, scans their range sixty times, and holds a snapshot if `held` follows. The
//! rows live 20 seconds, in which they have to be written.

use lithify::stats::{Counter, JobEnd};
use lithify::{CfOptions, ColumnFamily, Db, Options, Result};
use std::time::{Duration, Instant};

/// One fresh row comes for so many that expire. It keeps its table from going as a whole.
const FRESH_PERIOD: u64 = 1_000;

fn put_rows(db: &Db, rows: &ColumnFamily, numbers: impl Iterator<Item = u64>) -> Result<()> {
    let numbers: Vec<u64> = numbers.collect();
    for part in numbers.chunks(1_000) {
        let mut batch = db.batch();
        for number in part {
            let noise = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            batch.put(rows, number.to_be_bytes(), format!("{noise:020} of sensor {number:064}"));
        }
        batch.commit()?;
    }
    rows.flush()?;
    rows.compact_range(..)
}

/// Processor time that a job took for an entry, in nanoseconds.
fn cpu_per_entry_ns(jobs: &[JobEnd]) -> u64 {
    let sum = |of: fn(&JobEnd) -> u64| jobs.iter().map(of).sum::<u64>();
    sum(|job| job.cpu_ns) / sum(|job| job.entries_in).max(1)
}

fn run(total: u64, time_to_live_s: u64, scans: u64, is_held: bool) -> Result<()> {
    let directory = std::env::temp_dir().join(format!("lithify-expired-{}", std::process::id()));
    let db = Db::open(&directory, Options::default())?;
    let rows = db.column_family("rows", CfOptions { time_to_live_s, ..CfOptions::default() })?;
    let began = Instant::now();
    put_rows(&db, &rows, 0..total)?;
    let snapshot = is_held.then(|| db.snapshot());
    let wait = Duration::from_secs(time_to_live_s).saturating_sub(began.elapsed());
    std::thread::sleep(wait.saturating_sub(Duration::from_secs(2)));
    put_rows(&db, &rows, (0..total).step_by(FRESH_PERIOD as usize))?;
    let rewrites: Vec<JobEnd> = db.stats().jobs;
    println!("an entry rewritten: {} ns of processor time", cpu_per_entry_ns(&rewrites));
    std::thread::sleep(Duration::from_secs(4));
    let first_job = rewrites.last().map_or(0, |job| job.job.number);
    let passed = || db.stats().figures.counter(Counter::SkippedEntries);
    for scan in 1..=scans {
        let (before, started) = (passed(), Instant::now());
        let found = rows.keys().count();
        let (passed, took) = (passed() - before, started.elapsed());
        if scan < 4 || scan % 4 == 0 {
            println!("scan {scan}: {found} rows, {passed} passed, {} us", took.as_micros());
        }
    }
    drop(snapshot);
    let mut jobs = db.stats().jobs;
    jobs.retain(|end| end.job.number > first_job);
    for reason in ["dead-entries", "expired", "level0", "level-size", "tombstones"] {
        let of_reason: Vec<_> = jobs.iter().filter(|end| end.job.reason == reason).collect();
        let sum = |of: fn(&JobEnd) -> u64| of_reason.iter().map(|end| of(end)).sum::<u64>();
        println!(
            "{reason}: {} jobs, {} entries read, {} of them dropped, {} bytes written, {} us of processor time",
            of_reason.len(),
            sum(|end| end.entries_in),
            sum(|end| end.entries_dropped),
            sum(|end| end.bytes_out),
            sum(|end| end.cpu_ns / 1_000)
        );
    }
    db.close()?;
    let _ = std::fs::remove_dir_all(&directory);
    Ok(())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, default: u64| {
        arguments.get(index).and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let is_held = arguments.iter().any(|argument| argument == "held");
    run(number(0, 1_000_000), number(1, 20), number(2, 60), is_held)
}
