//! Counters: threads add to a few thousand of them at random, by a merge or by an update.
//!
//! `cargo run --release -p lithify --example counters -- merge 1000000`, or `update`

use lithify::{CfOptions, ColumnFamily, Db, MergeOperator, Options, Result};
use std::time::Instant;

const THREADS: u64 = 4;
const COUNTERS: u64 = 10_000;

fn number(value: &[u8]) -> u64 {
    value.try_into().map_or(0, u64::from_le_bytes)
}

/// Adds one to so many counters, chosen at random.
fn count(counters: &ColumnFamily, merges: bool, times: u64, mut random: u64) -> Result<()> {
    for _ in 0..times {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let key = (random % COUNTERS).to_be_bytes();
        if merges {
            counters.merge(key, 1_u64.to_le_bytes())?;
        } else {
            counters
                .update(key, |old| Some((old.map_or(0, |old| number(&old)) + 1).to_le_bytes()))?;
        }
    }
    Ok(())
}

fn run(merges: bool, total: u64) -> Result<()> {
    let directory = std::env::temp_dir().join(format!("lithify-counters-{}", std::process::id()));
    let db = Db::open(&directory, Options::default())?;
    let options = CfOptions { merge_operator: MergeOperator::add(), ..CfOptions::default() };
    let counters = db.column_family("counters", options)?;
    let started = Instant::now();
    let outcomes: Vec<Result<()>> = std::thread::scope(|scope| {
        let counters = &counters;
        let thread = |seed| scope.spawn(move || count(counters, merges, total / THREADS, seed));
        let threads: Vec<_> = (1..=THREADS).map(thread).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    outcomes.into_iter().collect::<Result<()>>()?;
    let adding = started.elapsed();
    let started = Instant::now();
    let mut sum = 0;
    for value in counters.values() {
        sum += number(&value?);
    }
    let rate = total as f64 / adding.as_secs_f64();
    println!("{rate:.0} additions a second; the sum is {sum}, read in {:?}", started.elapsed());
    drop((counters, db));
    let _ = std::fs::remove_dir_all(&directory);
    Ok(())
}

fn main() -> std::process::ExitCode {
    let mut arguments = std::env::args().skip(1);
    let merges = arguments.next().is_none_or(|way| way != "update");
    let total = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(100_000);
    match run(merges, total) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            std::process::ExitCode::FAILURE
        }
    }
}
