//! A time series store: many series are appended to, then ranges of time are read back.

use crate::{Outcome, Store, WORKERS, in_threads};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// A row of one series at one time.
pub(crate) type Sample = ([u8; 8], String);

/// What a range of time held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) rows: u64,
    /// The sum of all bytes of values: equal if every store read the same.
    pub(crate) checksum: u64,
}

impl Window {
    pub(crate) fn add(&mut self, value: &[u8]) {
        self.rows += 1;
        self.checksum += value.iter().map(|byte| u64::from(*byte)).sum::<u64>();
    }
}

const SERIES: u64 = 1_000;
/// A query reads so many samples of one series.
const WINDOW: u64 = 500;
const QUERIES: u64 = 40_000;

/// Sorts by series, then by time.
fn key(series: u64, time: u64) -> [u8; 8] {
    (series << 48 | time).to_be_bytes()
}

/// A measurement that drifts.
fn sample(series: u64, time: u64) -> Sample {
    let drift = (time.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 50) as f64 / 1e4;
    let celsius = 20.0 + series as f64 / 90.0 + drift;
    (key(series, time), format!("{{\"sensor\":\"s{series:04}\",\"celsius\":{celsius:.3}}}"))
}

/// Each thread writes a quarter of all series, one batch for each time; then each reads a quarter of the queries.
pub(crate) fn samples(store: &dyn Store, total: u64) -> Outcome<()> {
    let times = (total / SERIES).max(1);
    let part = SERIES / WORKERS as u64;
    let writer = AtomicU64::new(0);
    let write = || -> Outcome<()> {
        let first = writer.fetch_add(1, Ordering::Relaxed) * part;
        for time in 0..times {
            let batch: Vec<_> = (first..first + part).map(|series| sample(series, time)).collect();
            store.put_all(&batch)?;
        }
        Ok(())
    };
    let started = Instant::now();
    in_threads(&[(WORKERS, &write)])?;
    let written_s = started.elapsed().as_secs_f64();

    let (next, rows, checksum) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let read = || -> Outcome<()> {
        loop {
            let query = next.fetch_add(1, Ordering::Relaxed);
            if query >= QUERIES {
                return Ok(());
            }
            let (series, from) = (query * 7 % SERIES, query * 131 % times);
            let window = store.read(key(series, from), key(series, from + WINDOW))?;
            rows.fetch_add(window.rows, Ordering::Relaxed);
            checksum.fetch_add(window.checksum, Ordering::Relaxed);
        }
    };
    let started = Instant::now();
    in_threads(&[(WORKERS, &read)])?;
    let read_s = started.elapsed().as_secs_f64();
    let (rows, checksum) = (rows.into_inner(), checksum.into_inner());
    let expected: u64 = (0..QUERIES).map(|query| (times - query * 131 % times).min(WINDOW)).sum();
    println!(
        "{:.0} samples a second written, {:.0} read in ranges; {rows} read, {}, checksum {checksum}",
        (times * SERIES) as f64 / written_s,
        rows as f64 / read_s,
        if rows == expected { "as it must be" } else { "NOT AS IT MUST BE" },
    );
    Ok(())
}
