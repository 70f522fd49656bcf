//! The ledger on against off.
//!
//! There is no switch for it, so its two parts are measured apart. *Clocks*: the same work on the
//! same database, rounds with the real clocks and rounds with clocks that cost next to nothing,
//! by turns and many times over; medians are compared. *Booking*: the calls that the work makes to the ledger, made alone, with such free
//! clocks. What is printed as the ledger's share is the sum of both.

use crate::measure::{Samples, Settings, cpu_ns};
use crate::reads;
use crate::rows::{Random, Rows, key};
use crate::tables;
use lithify::base::Clock;
use lithify::fs::{Environment, Event, SystemEnvironment, SystemFileSystem, Thread, World};
use lithify::stats::{Cause, Counter, FamilyLedger, Ledger, StepClock, WorkMeter};
use lithify::{Compression, Db, Result};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Calls of one round: short, so that what others do to the machine meets both kinds alike.
const GETS_AT_ONCE: usize = 5_000;
const PUTS_AT_ONCE: usize = 1_000;

/// Bytes of rows that a step of a merge handles.
const STEP_BYTES: usize = 128 << 10;

/// The rows of them.
pub const ROWS_PER_STEP: usize =
    STEP_BYTES / (crate::rows::KEY_SIZE + crate::rows::VALUE_SIZE + 16);

/// The system's environment, whose clocks can be taken away.
#[derive(Default)]
struct Switched {
    is_free: AtomicBool,
    /// What the free clocks show; it moves so that nothing waits for ever.
    free: AtomicU64,
}

impl Switched {
    fn read(&self, real: impl FnOnce() -> u64) -> u64 {
        if self.is_free.load(Relaxed) {
            let now = self.free.load(Relaxed) + 1;
            self.free.store(now, Relaxed);
            now
        } else {
            real()
        }
    }

    fn set_free(&self, is_free: bool) {
        // Time goes on from where the real clocks are, whichever is read next.
        self.free.store(SystemEnvironment.ticks().max(SystemEnvironment.now_us()), Relaxed);
        self.is_free.store(is_free, Relaxed);
    }
}

impl Clock for Switched {
    fn now_us(&self) -> u64 {
        self.read(|| SystemEnvironment.now_us())
    }
    fn thread_cpu_ns(&self) -> u64 {
        self.read(|| SystemEnvironment.thread_cpu_ns())
    }
    fn ticks(&self) -> u64 {
        self.read(|| SystemEnvironment.ticks())
    }
    fn unix_time_s(&self) -> u64 {
        SystemEnvironment.unix_time_s()
    }
}

impl Environment for Switched {
    fn new_event(&self) -> Arc<dyn Event> {
        SystemEnvironment.new_event()
    }
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> Result<Box<dyn Thread>> {
        SystemEnvironment.spawn(name, body)
    }
    fn random_u128(&self) -> u128 {
        SystemEnvironment.random_u128()
    }
}

/// Rounds with and without real clocks, and what booking alone takes.
#[derive(Default)]
struct Comparison {
    real: Samples,
    free: Samples,
    booking: Samples,
}

impl Comparison {
    fn print(&self, stage: &str) {
        let clocks_ns = self.real.median() - self.free.median();
        let booking_ns = self.booking.least();
        let share = 100.0 * (clocks_ns + booking_ns) / self.real.median();
        let verdict = if share < 1.0 { "met" } else { "missed" };
        println!(
            "{stage:<26} {:>9.1} {:>12.1} {:>8.1} {:>8.1} {share:>7.2} %  below 1 %: {verdict}",
            self.real.median(),
            self.free.median(),
            clocks_ns,
            booking_ns,
        );
    }
}

pub fn print(settings: &Settings) -> Result<()> {
    if !settings.wants("ledger") {
        return Ok(());
    }
    println!(
        "{:<26} {:>9} {:>12} {:>8} {:>8} {:>9}",
        "ledger, ns per row", "real", "free clocks", "clocks", "booking", "share"
    );
    let environment = Arc::new(Switched::default());
    gets(settings, &environment)?.print("ledger of a cached get");
    puts(settings, &environment)?.print("ledger of a put");
    compactions(settings, &environment)?.print("ledger of a compaction");
    Ok(())
}

fn world(environment: &Arc<Switched>) -> World {
    World { files: Arc::new(SystemFileSystem), environment: environment.clone() }
}

/// Runs the rounds by turns; `work` gives CPU nanoseconds and rows.
fn by_turns(
    rounds: usize,
    environment: &Switched,
    mut work: impl FnMut() -> Result<(f64, usize)>,
) -> Result<Comparison> {
    let mut comparison = Comparison::default();
    for round in 0..rounds {
        let is_free = round % 4 == 1 || round % 4 == 2;
        environment.set_free(is_free);
        let outcome = work();
        environment.set_free(false);
        let (ns, rows) = outcome?;
        let samples = if is_free { &mut comparison.free } else { &mut comparison.real };
        samples.add(ns, rows);
    }
    Ok(comparison)
}

/// What so many calls of `book` take with free clocks, as samples of one row each.
/// Where the engine books: with the database, and with the family that it concerns.
pub type Books<'a> = (&'a Ledger, &'a FamilyLedger);

fn booking(
    environment: &Arc<Switched>,
    rows_per_call: usize,
    book: impl Fn(Books<'_>, &dyn Clock),
) -> Samples {
    const CALLS: usize = 100_000;
    let ledger = Ledger::new(&**environment);
    let family = ledger.add_family();
    environment.set_free(true);
    let mut samples = Samples::default();
    for _ in 0..7 {
        let (ns, ()) = cpu_ns(|| (0..CALLS).for_each(|_| book((&ledger, &family), &**environment)));
        samples.add(ns, CALLS * rows_per_call);
    }
    environment.set_free(false);
    samples
}

fn gets(settings: &Settings, environment: &Arc<Switched>) -> Result<Comparison> {
    let rows = settings.read_rows.min(200_000);
    let directory = settings.scratch()?;
    let db = reads::open(directory.path(), rows, world(environment))?;
    let family = reads::settle(&db, rows, reads::BLOCK_SIZE)?;
    let mut random = Random::new(12);
    let mut comparison = by_turns(60 * settings.repeats, environment, || {
        let keys: Vec<_> = (0..GETS_AT_ONCE).map(|_| key(random.below(rows))).collect();
        let (ns, found) = cpu_ns(|| reads::gets(&family, &keys));
        Ok((ns, found?))
    })?;
    comparison.booking = booking(environment, 1, book_get);
    Ok(comparison)
}

fn puts(settings: &Settings, environment: &Arc<Switched>) -> Result<Comparison> {
    let directory = settings.scratch()?;
    let db = tables::open_in(directory.path(), world(environment))?;
    let family = tables::family(&db, Compression::NONE)?;
    let mut random = Random::new(4);
    let mut comparison = by_turns(40 * settings.repeats, environment, || {
        let order = (0..PUTS_AT_ONCE).map(|_| random.below(settings.rows)).collect();
        let rows = Rows::new(order);
        let (ns, result) = cpu_ns(|| crate::writes::single_puts(&db, &family, &rows));
        result.map(|()| (ns, rows.len()))
    })?;
    comparison.booking = booking(environment, 1, book_put);
    Ok(comparison)
}

fn compactions(settings: &Settings, environment: &Arc<Switched>) -> Result<Comparison> {
    let rows = Rows::shuffled(settings.rows / 5, 5);
    let mut comparison = by_turns(8 * settings.repeats, environment, || {
        let directory = settings.scratch()?;
        let db: Db =
            tables::due_compaction(directory.path(), &rows, "lz4".parse()?, world(environment))?;
        let (ns, result) = cpu_ns(|| db.wait_for_compaction());
        result.map(|()| (ns, rows.len()))
    })?;
    comparison.booking = booking(environment, ROWS_PER_STEP, book_step);
    Ok(comparison)
}

/// What a get that finds its value in the cache books.
pub fn book_get((ledger, family): Books<'_>, clock: &dyn Clock) {
    let book = family.of_thread();
    let sample = ledger.sample(book.count(Counter::Gets, 1), Cause::UserLookup, clock);
    let mut meter = WorkMeter::default();
    let filters = &black_box(&mut meter).filters;
    book.count_all([
        (Counter::GetHits, 1),
        (Counter::GetValueBytes, 176),
        (Counter::FilterChecks, filters.checks),
    ]);
    if filters.checks != filters.found {
        book.count_all([
            (Counter::FilterNegatives, filters.negatives),
            (Counter::FilterFalsePositives, filters.false_positives()),
        ]);
    }
    ledger.end_user_call(sample, Cause::UserLookup, 0, clock, black_box(&mut meter));
}

/// What a put books that nobody has to wait for.
pub fn book_put((ledger, family): Books<'_>, clock: &dyn Clock) {
    let sample = ledger.begin_user_call(Counter::Commits, Cause::UserWrite, clock);
    ledger.stalls().writer_begins(clock.now_us());
    ledger.book_written(Cause::Wal, 0, 0, 248);
    ledger.count(Counter::WalWrites, 1);
    family.count_all([
        (Counter::Deletes, 0),
        (Counter::Puts, 1),
        (Counter::SingleDeletes, 0),
        (Counter::RangeDeletes, 0),
        (Counter::IngestedBytes, 200),
    ]);
    ledger.count(Counter::CommitGroups, 1);
    ledger.stalls().write_completed(clock.now_us());
    ledger.stalls().writer_ends();
    ledger.end_unmetered_call(sample, Cause::UserWrite, clock);
}

/// What a step of a job books: [`ROWS_PER_STEP`] rows of a flush or a compaction.
pub fn book_step((ledger, _): Books<'_>, clock: &dyn Clock) {
    let mut step = StepClock::start(clock);
    let mut meter = WorkMeter { ticks: [1; _], ..WorkMeter::default() };
    meter.codecs().compress_ticks[3] = 1;
    meter.codecs().compressed_raw_bytes[3] = STEP_BYTES as u64;
    meter.codecs().decompress_ticks[3] = 1;
    step.finish(clock, ledger, Cause::Compaction, 6, black_box(&mut meter));
    ledger.count(Counter::Steps, 1);
}
