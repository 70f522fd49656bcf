//! A job queue: producers put jobs, workers take the first that nobody else is at.
//!
//! `cargo run --release -p lithify --example job_queue -- 1000000`

use lithify::{CfOptions, ColumnFamily, Db, Options, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

const WORKERS: usize = 4;
const PRODUCERS: u64 = 2;

/// Takes jobs until all are done.
fn work(db: &Db, jobs: &ColumnFamily, done: &AtomicU64, total: u64) -> Result<()> {
    while done.load(Ordering::Relaxed) < total {
        let mut transaction = db.transaction();
        let Some((key, _job)) = transaction.lock_first(jobs, ..)? else {
            std::thread::yield_now();
            continue;
        };
        // Here the job would be done. If this program stops before the commit, it is still there.
        transaction.delete(jobs, key)?;
        transaction.commit()?;
        let finished = done.fetch_add(1, Ordering::Relaxed) + 1;
        if finished.is_multiple_of(total.div_ceil(10)) {
            println!("{finished} jobs done");
        }
    }
    Ok(())
}

fn run(total: u64) -> Result<()> {
    let directory = std::env::temp_dir().join(format!("lithify-queue-{}", std::process::id()));
    let db = Db::open(&directory, Options::default())?;
    let jobs = db.column_family("jobs", CfOptions::default())?;
    let (number, done) = (AtomicU64::new(0), AtomicU64::new(0));
    let started = Instant::now();
    let outcomes: Vec<Result<()>> = std::thread::scope(|scope| {
        let produce = || {
            (0..total / PRODUCERS).try_for_each(|_| {
                let key = number.fetch_add(1, Ordering::Relaxed).to_be_bytes();
                jobs.put(key, "resize a picture")
            })
        };
        let worker = || work(&db, &jobs, &done, total / PRODUCERS * PRODUCERS);
        let mut threads: Vec<_> = (0..PRODUCERS).map(|_| scope.spawn(produce)).collect();
        threads.extend((0..WORKERS).map(|_| scope.spawn(worker)));
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    outcomes.into_iter().collect::<Result<()>>()?;
    let rate = total as f64 / started.elapsed().as_secs_f64();
    println!("{rate:.0} jobs a second, put and taken");
    drop((jobs, db));
    let _ = std::fs::remove_dir_all(&directory);
    Ok(())
}

fn main() -> std::process::ExitCode {
    let total = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(100_000);
    match run(total) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}
