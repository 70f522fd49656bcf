//! The process that works on the database until it is killed: the engine's public interface, real
//! threads, real files.
//!
//! It reports on a file beside the database, which is no file of the disk: a report has its place
//! among the calls of the engine, before the step begins and after it has returned.

use super::mount::REPORTS;
use super::plan::{
    Counts, FAMILIES, Life, RowChange, Step, count_of, counter_key, durability, families, options,
};
use super::{DATABASE, WRITERS};
use crate::random::Random;
use lithify::{ColumnFamily, Db, Durability, TableTransfer, TableWriter};
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The kinds of reports, which are the first words of them.
pub(super) mod kind {
    /// The database is open: the number of the life, and each writer's counter.
    pub const OPENED: u64 = 0;
    /// A writer begins a step.
    pub const BEGUN: u64 = 1;
    /// A step has returned; of a write with a flush, the write.
    pub const DONE: u64 = 2;
    /// The flush behind a write has returned.
    pub const FLUSHED: u64 = 3;
    /// A reader has seen a writer's counter.
    pub const SEEN: u64 = 4;
    /// The database is about to be closed.
    pub const CLOSING: u64 = 5;
    /// It was closed.
    pub const CLOSED: u64 = 6;
}

/// What the reader rests between two looks.
const REST: Duration = Duration::from_micros(300);

/// What a worker is told.
#[derive(clap::Args, Clone, Debug)]
pub struct Arguments {
    /// Where the disk is mounted
    directory: PathBuf,
    /// Where reports go
    reports: PathBuf,
    seed: u64,
    life: u64,
    /// Steps of each writer
    steps: u64,
    /// Whether the database is closed at the end
    #[arg(action = clap::ArgAction::Set)]
    closes: bool,
    /// The defect in force
    #[arg(long)]
    defect: Option<String>,
}

impl Arguments {
    pub(super) fn new(mount: &Path, seed: u64, life: u64, steps: u64, closes: bool) -> Self {
        let reports = mount.join(REPORTS);
        Arguments { directory: mount.into(), reports, seed, life, steps, closes, defect: defect() }
    }

    /// With the database elsewhere than the reports.
    pub(super) fn at(self, directory: &Path) -> Self {
        Arguments { directory: directory.into(), ..self }
    }

    pub(super) fn words(&self) -> Vec<String> {
        let mut words = vec![
            self.directory.display().to_string(),
            self.reports.display().to_string(),
            self.seed.to_string(),
            self.life.to_string(),
            self.steps.to_string(),
            self.closes.to_string(),
        ];
        words.extend(self.defect.iter().map(|name| format!("--defect={name}")));
        words
    }
}

/// The name of the defect in force, which the worker is to have too.
#[cfg(feature = "planted-defects")]
pub(super) fn defect() -> Option<String> {
    lithify::planted::selected().map(|defect| defect.name().to_string())
}

/// The name of the defect in force: none in this build.
#[cfg(not(feature = "planted-defects"))]
pub(super) fn defect() -> Option<String> {
    None
}

#[cfg(feature = "planted-defects")]
fn select(name: &str) {
    use lithify::planted::{Defect, select};
    select(Defect::ALL.iter().copied().find(|defect| defect.name() == name));
}

#[cfg(not(feature = "planted-defects"))]
fn select(_: &str) {}

/// Works until the steps are done, then closes the database or waits to be killed.
///
/// # Errors
/// What a step met that it may not meet.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    arguments.defect.iter().for_each(|name| select(name));
    let Arguments { directory, seed, life, steps, .. } = arguments;
    let reports = File::options().write(true).open(&arguments.reports).map_err(text)?;
    let durability = durability(*seed);
    let threads = 1 + (seed / 4 + life) % 2;
    let options = options(*seed, durability, threads as usize);
    let db = Db::open(directory.join(DATABASE), options).map_err(text)?;
    let families = FAMILIES.map(|name| db.column_family(name, families(*seed)));
    let families: Vec<_> = families.into_iter().collect::<lithify::Result<_>>().map_err(text)?;
    let start = counts(&families).map_err(text)?;
    let life = Life { seed: *seed, number: *life, start };
    let bench = Bench { db: &db, families, reports, directory, life, durability };
    bench.report(&[&[kind::OPENED, bench.life.number][..], &start].concat())?;
    bench.work(*steps)?;
    if arguments.closes {
        let Bench { families, reports, .. } = bench;
        drop(families);
        report(&reports, &[kind::CLOSING])?;
        db.close().map_err(text)?;
        return report(&reports, &[kind::CLOSED]);
    }
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn report(mut reports: &File, words: &[u64]) -> Result<(), String> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    reports.write_all(&bytes).map_err(|error| format!("a report cannot be made: {error}"))
}

/// What each writer's counter is.
fn counts(families: &[ColumnFamily]) -> lithify::Result<Counts> {
    let mut counts = [0; WRITERS];
    for (writer, count) in counts.iter_mut().enumerate() {
        for family in families {
            let found = family.get(counter_key(writer))?.map_or(0, |value| count_of(&value));
            *count = found.max(*count);
        }
    }
    Ok(counts)
}

struct Bench<'b> {
    db: &'b Db,
    families: Vec<ColumnFamily>,
    reports: File,
    directory: &'b Path,
    life: Life,
    durability: Durability,
}

impl Bench<'_> {
    fn report(&self, words: &[u64]) -> Result<(), String> {
        report(&self.reports, words)
    }

    fn work(&self, steps: u64) -> Result<(), String> {
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writers: Vec<_> =
                (0..WRITERS).map(|writer| scope.spawn(move || self.write(writer, steps))).collect();
            let reader = scope.spawn(|| self.read(&is_over));
            let done: Result<Vec<()>, String> = writers
                .into_iter()
                .map(|writer| writer.join().map_err(|_| "a panic".to_string())?)
                .collect();
            is_over.store(true, Ordering::Relaxed);
            let read = reader.join().map_err(|_| "a panic of the reader".to_string())?;
            done.and(read)
        })
    }

    fn write(&self, writer: usize, steps: u64) -> Result<(), String> {
        let first = self.life.start[writer] + 1;
        for k in first..first + steps {
            let step = self.life.step(self.durability, writer, k);
            self.report(&[kind::BEGUN, writer as u64, k])?;
            let flush = self.perform(writer, k, &step).map_err(|e| format!("{step:?}: {e}"))?;
            self.report(&[kind::DONE, writer as u64, k])?;
            if let Some(family) = flush {
                self.flush(family).map_err(text)?;
                self.report(&[kind::FLUSHED, writer as u64, k])?;
            }
        }
        Ok(())
    }

    /// Looks at counters and says what it has seen.
    fn read(&self, is_over: &AtomicBool) -> Result<(), String> {
        let mut random = Random::new(self.life.number);
        let mut seen = [0; WRITERS];
        while !is_over.load(Ordering::Relaxed) {
            let writer = random.below(WRITERS as u64) as usize;
            let family = random.pick(&self.families);
            let found = family.get(counter_key(writer)).map_err(text)?;
            let count = found.map_or(0, |value| count_of(&value));
            if count > seen[writer] {
                seen[writer] = count;
                self.report(&[kind::SEEN, writer as u64, count])?;
            }
            std::thread::sleep(REST);
        }
        Ok(())
    }

    fn family(&self, name: &str) -> lithify::Result<ColumnFamily> {
        match FAMILIES.iter().position(|family| *family == name) {
            Some(place) => Ok(self.families[place].clone()),
            None => self.db.column_family(name, families(self.life.seed)),
        }
    }

    fn flush(&self, family: Option<&str>) -> lithify::Result<()> {
        match family {
            Some(family) => self.family(family)?.flush(),
            None => self.db.flush(),
        }
    }

    /// Gives the flush that is to follow.
    fn perform(
        &self,
        writer: usize,
        k: u64,
        step: &Step,
    ) -> lithify::Result<Option<Option<&'static str>>> {
        match step {
            Step::Write { changes, is_transaction, durability, flush } => {
                match is_transaction {
                    true => self.transact(changes, *durability)?,
                    false => self.commit(changes, *durability)?,
                }
                return Ok(*flush);
            }
            Step::Ingest { family, rows, is_table: false } => {
                let mut ingest = self.family(family)?.ingest()?;
                rows.iter().try_for_each(|(key, value)| ingest.put(key, value))?;
                ingest.commit()?;
            }
            Step::Ingest { family, rows, is_table: true } => {
                let path = self.directory.join(format!("table-{writer}-{k}"));
                let _ = std::fs::remove_file(&path);
                let mut table = TableWriter::create(&path, &families(self.life.seed))?;
                rows.iter().try_for_each(|(key, value)| table.put(key, value))?;
                table.finish()?;
                let transfer =
                    if k.is_multiple_of(2) { TableTransfer::Link } else { TableTransfer::Copy };
                self.family(family)?.ingest_tables(&[&path], transfer)?;
                let _ = std::fs::remove_file(&path);
            }
            Step::Flush(family) => self.flush(*family)?,
            Step::Sync => self.db.sync()?,
            Step::Compact(family) => self.family(family)?.compact_range(..)?,
            Step::MakeFamily(name) => drop(self.family(name)?),
            Step::DropFamily(name) => self.db.drop_column_family(name)?,
            Step::Checkpoint(name) => drop(self.db.checkpoint(self.directory.join(name))?),
        }
        Ok(None)
    }

    fn commit(
        &self,
        changes: &[(String, RowChange)],
        durability: Option<Durability>,
    ) -> lithify::Result<()> {
        let mut batch = self.db.batch();
        for (family, change) in changes {
            let family = self.family(family)?;
            match change {
                RowChange::Put(key, value) => batch.put(&family, key, value),
                RowChange::Delete(key) => batch.delete(&family, key),
                RowChange::DeleteRange(start, end) => batch.delete_range(&family, start, end),
            };
        }
        match durability {
            Some(durability) => batch.commit_with(durability),
            None => batch.commit(),
        }
    }

    fn transact(
        &self,
        changes: &[(String, RowChange)],
        durability: Option<Durability>,
    ) -> lithify::Result<()> {
        let mut transaction = self.db.transaction();
        for (family, change) in changes {
            let family = self.family(family)?;
            match change {
                RowChange::Put(key, value) => transaction.put(&family, key, value)?,
                RowChange::Delete(key) => transaction.delete(&family, key)?,
                RowChange::DeleteRange(start, end) => {
                    transaction.delete_range(&family, start, end)?;
                }
            }
        }
        match durability {
            Some(durability) => transaction.commit_with(durability),
            None => transaction.commit(),
        }
    }
}
