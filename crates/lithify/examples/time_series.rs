//! A store of samples: many series, each appended to, read back by ranges of time, kept for a while.
//!
//! `cargo run --release -p lithify --example time_series -- 604800 5000000` keeps five million samples for a
//! week; 0 instead of the seconds keeps them for ever.

use lithify::{CfOptions, Db, Options, Result};
use std::time::Instant;

const SERIES: u64 = 1_000;

/// A key that sorts by series, then by time.
fn key(series: u64, time: u64) -> [u8; 10] {
    let mut key = [0; 10];
    key[..2].copy_from_slice(&(series as u16).to_be_bytes());
    key[2..].copy_from_slice(&time.to_be_bytes());
    key
}

/// A measurement that drifts.
fn sample(series: u64, time: u64) -> String {
    let drift = (time.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 50) as f64 / 1e4;
    format!(
        "{{\"sensor\":\"s{series:04}\",\"celsius\":{:.3}}}",
        20.0 + series as f64 / 90.0 + drift
    )
}

fn bytes_of(directory: &std::path::Path) -> std::io::Result<u64> {
    let entries = std::fs::read_dir(directory)?.flatten();
    let tables = entries.filter(|entry| entry.path().extension().is_some_and(|end| end == "sst"));
    tables.map(|entry| entry.metadata().map(|data| data.len())).sum()
}

fn run(time_to_live_s: u64, total: u64) -> Result<()> {
    let directory = std::env::temp_dir().join(format!("lithify-series-{}", std::process::id()));
    let db = Db::open(&directory, Options::default())?;
    let options = CfOptions { time_to_live_s, ..CfOptions::default() };
    let samples = db.column_family("samples", options)?;
    let started = Instant::now();
    for round in 0..total / SERIES {
        let mut batch = db.batch();
        for series in 0..SERIES {
            batch.put(&samples, key(series, round), sample(series, round));
        }
        batch.commit()?;
    }
    let written = started.elapsed().as_secs_f64();
    samples.flush()?;
    db.wait_for_compaction()?;
    let started = Instant::now();
    let (rounds, mut read) = (total / SERIES, 0_u64);
    for query in 0..2_000 {
        let (series, from) = (query * 7 % SERIES, query * 131 % rounds.max(1));
        let mut cursor = samples.cursor(key(series, from)..key(series, from + 500))?;
        while cursor.next()? {
            read += 1;
        }
    }
    let queried = started.elapsed().as_secs_f64();
    println!("{:.0} samples a second written", total as f64 / written);
    println!("{:.0} samples a second read, in ranges of up to 500", read as f64 / queried);
    let stored = bytes_of(&directory).unwrap_or(0) as f64 / total.max(1) as f64;
    println!("{stored:.2} bytes a sample on disk");
    drop((samples, db));
    let _ = std::fs::remove_dir_all(&directory);
    Ok(())
}

fn main() -> std::process::ExitCode {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse().ok());
    let time_to_live_s = numbers.next().flatten().unwrap_or(7 * 24 * 3600);
    let total = numbers.next().flatten().unwrap_or(1_000_000);
    match run(time_to_live_s, total) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            std::process::ExitCode::FAILURE
        }
    }
}
