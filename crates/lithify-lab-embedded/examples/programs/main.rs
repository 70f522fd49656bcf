//! Programs of ordinary users on Lithify, RocksDB and fjall: a job queue, counters in two ways, and time series.
//!
//! `cargo run --release -p lithify-lab-embedded --example programs -- queue lithify 1000000`
//!
//! | program | what |
//! |---|---|
//! | `queue` | two producers put jobs, four workers take the first that nobody else is at |
//! | `merges` | four threads add to 10,000 counters by a merge operator |
//! | `updates` | the same by reading and writing a row in one step |
//! | `samples` | four threads append to 1,000 series, a batch for each time; then they read ranges of 500 |
//!
//! All stores run with their defaults: what a commit wrote is in the operating system's hands, and nobody
//! waits for the disk. A claim of a job is a transaction of its own. Workers on Lithify and RocksDB pass jobs
//! that others are at; fjall has one writing transaction at a time, and no merge operator: its `merges` are
//! its updates. `rocksdb-from-last` begins to look behind the last job that was taken.

mod rocksdb;
mod samples;

use fjall::{KeyspaceCreateOptions, Readable, SingleWriterTxDatabase, SingleWriterTxKeyspace};
use lithify::{CfOptions, ColumnFamily, Db, MergeOperator, Options};
use rocksdb::{Begin, RocksDb};
use samples::{Sample, Window};
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const WORKERS: usize = 4;
const PRODUCERS: u64 = 2;
const COUNTERS: u64 = 10_000;
/// Of so many a tenth is whole, and so is the part of each thread.
const EVEN: u64 = 40;

/// What the programs ask of a store.
trait Store: Sync {
    /// Puts a job, or sets a row.
    fn put(&self, key: [u8; 8], value: &[u8]) -> Outcome<()>;
    /// Takes the first job that nobody else is at; its number.
    fn take_first(&self) -> Outcome<Option<u64>>;
    /// Adds one by the merge operator, if there is one.
    fn merge(&self, key: [u8; 8]) -> Outcome<()>;
    /// Adds one by reading and writing the row in one step.
    fn update(&self, key: [u8; 8]) -> Outcome<()>;
    /// The sum of all values.
    fn sum(&self) -> Outcome<u64>;
    /// Writes rows together or not at all.
    fn put_all(&self, rows: &[Sample]) -> Outcome<()>;
    /// Reads all rows of a range; its end is excluded.
    fn read(&self, from: [u8; 8], to: [u8; 8]) -> Outcome<Window>;
}

fn number(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

fn job(key: &[u8]) -> u64 {
    key.try_into().map_or(u64::MAX, u64::from_be_bytes)
}

struct Lithify(Db, ColumnFamily);

impl Lithify {
    fn open(directory: &Path) -> Outcome<Self> {
        let db = Db::open(directory, Options::default())?;
        let options = CfOptions { merge_operator: MergeOperator::add(), ..CfOptions::default() };
        let rows = db.column_family("rows", options)?;
        Ok(Lithify(db, rows))
    }
}

impl Store for Lithify {
    fn put(&self, key: [u8; 8], value: &[u8]) -> Outcome<()> {
        Ok(self.1.put(key, value)?)
    }

    fn take_first(&self) -> Outcome<Option<u64>> {
        let mut transaction = self.0.transaction();
        let Some((key, _)) = transaction.lock_first(&self.1, ..)? else { return Ok(None) };
        let number = job(&key);
        transaction.delete(&self.1, key)?;
        transaction.commit()?;
        Ok(Some(number))
    }

    fn merge(&self, key: [u8; 8]) -> Outcome<()> {
        Ok(self.1.merge(key, 1_u64.to_le_bytes())?)
    }

    fn update(&self, key: [u8; 8]) -> Outcome<()> {
        let add = |old: Option<lithify::Slice>| {
            Some((old.map_or(0, |old| number(&old)) + 1).to_le_bytes())
        };
        self.1.update(key, add)?;
        Ok(())
    }

    fn sum(&self) -> Outcome<u64> {
        self.1.values().try_fold(0, |sum, value| Ok(sum + number(&value?)))
    }

    fn put_all(&self, rows: &[Sample]) -> Outcome<()> {
        let mut batch = self.0.batch();
        for (key, value) in rows {
            batch.put(&self.1, key, value);
        }
        Ok(batch.commit()?)
    }

    fn read(&self, from: [u8; 8], to: [u8; 8]) -> Outcome<Window> {
        let (mut cursor, mut window) = (self.1.cursor(from..to)?, Window::default());
        while cursor.next()? {
            window.add(cursor.value());
        }
        Ok(window)
    }
}

struct Fjall(SingleWriterTxDatabase, SingleWriterTxKeyspace);

impl Fjall {
    fn open(directory: &Path) -> Outcome<Self> {
        let database = SingleWriterTxDatabase::builder(directory).open()?;
        let rows = database.keyspace("rows", KeyspaceCreateOptions::default)?;
        Ok(Fjall(database, rows))
    }
}

impl Store for Fjall {
    fn put(&self, key: [u8; 8], value: &[u8]) -> Outcome<()> {
        Ok(self.1.insert(key, value)?)
    }

    fn take_first(&self) -> Outcome<Option<u64>> {
        let mut transaction = self.0.write_tx();
        let Some(first) = transaction.first_key_value(&self.1) else { return Ok(None) };
        let key = first.key()?;
        let number = job(&key);
        transaction.remove(&self.1, key);
        transaction.commit()?;
        Ok(Some(number))
    }

    fn merge(&self, key: [u8; 8]) -> Outcome<()> {
        self.update(key)
    }

    fn update(&self, key: [u8; 8]) -> Outcome<()> {
        let add = |old: Option<&fjall::UserValue>| {
            Some((old.map_or(0, |old| number(old)) + 1).to_le_bytes().into())
        };
        self.1.update_fetch(key, add)?;
        Ok(())
    }

    fn sum(&self) -> Outcome<u64> {
        self.0.read_tx().iter(&self.1).try_fold(0, |sum, row| Ok(sum + number(&row.value()?)))
    }

    fn put_all(&self, rows: &[Sample]) -> Outcome<()> {
        let mut transaction = self.0.write_tx();
        for (key, value) in rows {
            transaction.insert(&self.1, key, value.as_str());
        }
        Ok(transaction.commit()?)
    }

    fn read(&self, from: [u8; 8], to: [u8; 8]) -> Outcome<Window> {
        let mut window = Window::default();
        for row in self.0.read_tx().range(&self.1, from..to) {
            window.add(&row.value()?);
        }
        Ok(window)
    }
}

/// When each tenth of all claims was done.
struct Tenths {
    total: u64,
    started: Instant,
    done: AtomicU64,
    times: Mutex<Vec<Duration>>,
}

impl Tenths {
    fn count(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(self.total / 10)
            && let Ok(mut times) = self.times.lock()
        {
            times.push(self.started.elapsed());
        }
    }
}

fn queue(store: &dyn Store, total: u64) -> Outcome<()> {
    let (next, taken) = (AtomicU64::new(0), AtomicU64::new(0));
    let times = Mutex::new(Vec::new());
    let tenths = Tenths { total, started: Instant::now(), done: AtomicU64::new(0), times };
    let produce = || -> Outcome<()> {
        for _ in 0..total / PRODUCERS {
            let number = next.fetch_add(1, Ordering::Relaxed);
            store.put(number.to_be_bytes(), b"resize a picture")?;
        }
        Ok(())
    };
    let work = || -> Outcome<()> {
        while tenths.done.load(Ordering::Relaxed) < total {
            match store.take_first()? {
                Some(number) => {
                    taken.fetch_add(number, Ordering::Relaxed);
                    tenths.count();
                }
                None => std::thread::yield_now(),
            }
        }
        Ok(())
    };
    in_threads(&[(PRODUCERS as usize, &produce), (WORKERS, &work)])?;
    let seconds = tenths.started.elapsed().as_secs_f64();
    let is_each_once = taken.into_inner() == total * (total - 1) / 2;
    let mut times = tenths.times.into_inner().unwrap_or_default();
    times.sort_unstable();
    let length = |tenth: usize| {
        let before = tenth.checked_sub(1).map_or(Duration::ZERO, |before| times[before]);
        (times[tenth] - before).as_secs_f64()
    };
    println!(
        "{:.0} jobs a second, put and taken, in {seconds:.2} s; the first tenth {:.0}, the last {:.0}; {}",
        total as f64 / seconds,
        total as f64 / 10.0 / length(0),
        total as f64 / 10.0 / length(9),
        if is_each_once { "each once" } else { "NOT EACH ONCE" },
    );
    Ok(())
}

/// Adds one to the counter with a key.
type Add = fn(&dyn Store, [u8; 8]) -> Outcome<()>;

fn counters(store: &dyn Store, total: u64, add: Add) -> Outcome<()> {
    let seed = AtomicU64::new(0);
    let started = Instant::now();
    let count = || -> Outcome<()> {
        let mut random = seed.fetch_add(1, Ordering::Relaxed) + 1;
        for _ in 0..total / WORKERS as u64 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            add(store, (random % COUNTERS).to_be_bytes())?;
        }
        Ok(())
    };
    in_threads(&[(WORKERS, &count)])?;
    let seconds = started.elapsed().as_secs_f64();
    let sum = store.sum()?;
    let is_right = if sum == total { "as it must be" } else { "NOT AS IT MUST BE" };
    println!("{:.0} additions a second; the sum is {sum}, {is_right}", total as f64 / seconds);
    Ok(())
}

type Body<'b> = &'b (dyn Fn() -> Outcome<()> + Sync);

/// Runs so many threads of each, and waits for all.
fn in_threads(bodies: &[(usize, Body<'_>)]) -> Outcome<()> {
    std::thread::scope(|scope| {
        let each = bodies.iter().flat_map(|(count, body)| std::iter::repeat_n(*body, *count));
        let threads: Vec<_> = each.map(|body| scope.spawn(body)).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    })
}

fn run(arguments: &[String]) -> Outcome<()> {
    let usage =
        "programs queue|merges|updates|samples lithify|rocksdb|rocksdb-from-last|fjall [NUMBER]";
    let (Some(program), Some(store)) = (arguments.first(), arguments.get(1)) else {
        return Err(usage.into());
    };
    let asked = match arguments.get(2) {
        None => 1_000_000,
        Some(text) => text.parse().map_err(|_| format!("{text:?} is no number: {usage}"))?,
    };
    // Whole tenths, and the same for each thread.
    let total: u64 = asked / EVEN * EVEN;
    if total == 0 {
        return Err(format!("NUMBER is {EVEN} or more").into());
    }
    if total != asked {
        println!("{total} of {asked}: the same for each thread");
    }
    let directory = std::env::temp_dir().join(format!("programs-{}", std::process::id()));
    let opened: Box<dyn Store> = match store.as_str() {
        "lithify" => Box::new(Lithify::open(&directory)?),
        "rocksdb" => Box::new(RocksDb::open(&directory, Begin::First)?),
        "rocksdb-from-last" => Box::new(RocksDb::open(&directory, Begin::LastTaken)?),
        "fjall" => Box::new(Fjall::open(&directory)?),
        _ => return Err(usage.into()),
    };
    let ended = match program.as_str() {
        "queue" => queue(&*opened, total),
        "merges" => counters(&*opened, total, |store, key| store.merge(key)),
        "updates" => counters(&*opened, total, |store, key| store.update(key)),
        "samples" => samples::samples(&*opened, total),
        _ => Err(usage.into()),
    };
    drop(opened);
    if ended.is_ok() {
        println!("{} bytes in files after closing", bytes_of(&directory)?);
    }
    let _ = std::fs::remove_dir_all(&directory);
    ended
}

/// The bytes of all files below a directory.
fn bytes_of(directory: &Path) -> std::io::Result<u64> {
    let entries = std::fs::read_dir(directory)?;
    entries
        .map(|entry| {
            let entry = entry?;
            let metadata = entry.metadata()?;
            if metadata.is_dir() { bytes_of(&entry.path()) } else { Ok(metadata.len()) }
        })
        .sum()
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
