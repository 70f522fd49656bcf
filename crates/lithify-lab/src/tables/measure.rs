//! The measuring process, seen from inside: load, aggregate, updates, modes, check.
//!
//! Every step opens the database after its files have left the page cache, is metered from a synced
//! file system to a synced file system, waits for maintenance, which is metered apart, and closes
//! the database. Opening and closing are not timed. The load sums its rows up as they are
//! generated: what an aggregate must answer is known without reading anything.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::spec::{ModeUsage, PageWork, StepUsage, TableCell, TableOutcome};
use crate::adapter::cross_count::{self, CrossCounts};
use crate::adapter::table::schema::{Aggregation, Answer, Query, Row, Schema, Value};
use crate::adapter::table::{PageAccount, TableEngine, TableSession, Update};
use crate::adapter::{EngineError, EngineResult, EngineStatistics};
use crate::datasets::Table;
use crate::engines::registry::{find, open_table};
use crate::experiment::tables::UpdateMode;
use crate::meter::Meter;
use crate::meter::machine::Machine;
use crate::meter::page_cache::drop_pages;
use crate::meter::process::release_free_memory;
use crate::random::Random;
use crate::run::cells::Job;
use crate::run::file_system::CellFileSystem;
use crate::run::process::end_with_parent;
use crate::run::progress::{Listener, ProgressLine};
use crate::run::store::write_json;
use crate::run::{RunError, failed};

/// What every update adds.
const AMOUNT: i64 = 1;

/// Does a job and writes its result. Asks the kernel to end this process with its parent.
///
/// # Errors
/// The engine's, or the result cannot be written.
pub fn run_job(job: &Job<TableCell>, listener: Listener<'_>) -> Result<(), RunError> {
    end_with_parent(job.parent)?;
    let file_system = job.file_system.as_ref();
    let outcome = measure(&job.cell, &job.data_directory, file_system, listener)?;
    write_json(&job.result_path, &outcome)
}

/// Measures one cell in this process, with the engine's data in `directory`, which exists and lies
/// on `file_system` when that was made for it.
///
/// # Errors
/// The engine's, or data that cannot be read.
pub fn measure(
    cell: &TableCell,
    directory: &Path,
    file_system: Option<&CellFileSystem>,
    listener: Listener<'_>,
) -> Result<TableOutcome, RunError> {
    let started = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let codec_library = find(&cell.engine)
        .and_then(|provider| provider.codec_library(cell.settings.codec_bottom))
        .map_err(|error| failed("codec", &error))?;
    let table = cell
        .table
        .open(cell.rows, cell.seed)
        .map_err(|error| RunError::new(format!("data: {error}")))?;
    let schema = Arc::new(table.schema().clone());
    let mut meter = Meter::new(directory);
    file_system.iter().for_each(|own| own.tell(&mut meter));
    let bench = Bench { cell, table: &*table, schema, directory, meter, listener };
    let engine = bench.open()?;
    let (engine_name, capabilities) = (engine.name(), engine.capabilities());
    let mut updates_refused = engine.refuses_updates();
    let (load, stored, loaded) = bench.load(engine)?;
    bench.meter.sync();
    let (size, file_system_bytes) = bench.meter.sizes();
    let mut faults = Vec::new();
    let (scan, answer) = bench.scan()?;
    faults.extend(wrong_answer(&answer, &loaded.answer));
    let (mut update, mut modes) = (None, Vec::new());
    if updates_refused.is_none() {
        match bench.updates()? {
            Ok(done) => update = Some(done),
            Err(given_up) => updates_refused = Some(given_up),
        }
        modes = bench.modes()?;
    }
    let updates = if update.is_some() { bench.updates_of(cell.updates) } else { 0 };
    let in_modes: u64 = modes.iter().map(|mode| mode.updates).sum();
    bench.check(&loaded, updates + in_modes, &mut faults)?;
    let machine = Machine::describe(directory);
    let of_modes = modes.iter().map(|mode| &mode.step);
    let steps = [&load, &scan].into_iter().chain(&update).chain(of_modes);
    let foreign_percent = foreign_percent(steps, machine.cpus);
    Ok(TableOutcome {
        cell: cell.clone(),
        started_unix_s: started,
        machine,
        engine_name,
        capabilities,
        codec_library,
        rows: table.rows(),
        logical_bytes: loaded.logical_bytes,
        load,
        generate_seconds: loaded.generate_seconds,
        size,
        file_system: file_system.cloned(),
        file_system_bytes,
        table_bytes: stored.table_bytes.filter(|_| file_system.is_none()),
        codec_in_force: stored.codec,
        scan,
        scan_rows: answer.rows(),
        scan_checksum: answer.checksum(),
        update,
        updates_refused,
        modes,
        foreign_percent,
        faults,
    })
}

/// What is wrong with an answer of the aggregate.
fn wrong_answer(found: &Answer, generated: &Answer) -> Option<String> {
    (found != generated).then(|| {
        format!(
            "the aggregate found {} rows in {} groups (checksum {:016x}), the generator {} in {} \
             ({:016x})",
            found.rows(),
            found.groups.len(),
            found.checksum(),
            generated.rows(),
            generated.groups.len(),
            generated.checksum()
        )
    })
}

/// What other processes took of the machine during steps, percent.
fn foreign_percent<'a>(steps: impl Iterator<Item = &'a StepUsage>, cpus: usize) -> f64 {
    let (mut foreign_us, mut seconds) = (0, 0.0);
    for step in steps {
        for usage in [&step.usage, &step.maintenance] {
            foreign_us += usage.foreign_cpu_us;
            seconds += usage.seconds;
        }
    }
    let capacity_us = seconds * 1e6 * cpus.max(1) as f64;
    if capacity_us > 0.0 { 100.0 * foreign_us as f64 / capacity_us } else { 0.0 }
}

/// What the load knows of its rows.
struct Loaded {
    answer: Answer,
    totals: Answer,
    logical_bytes: u64,
    generate_seconds: f64,
}

/// What an engine counts, at one moment.
struct Counted {
    statistics: EngineStatistics,
    pages: Option<PageAccount>,
}

impl Counted {
    fn read(engine: &dyn TableEngine) -> Result<Counted, RunError> {
        let statistics = step_failed("statistics", engine.statistics())?;
        Ok(Counted { statistics, pages: step_failed("statistics", engine.pages())? })
    }

    fn written_since(&self, before: &Counted) -> BTreeMap<String, u64> {
        let old = &before.statistics.written_bytes_by_cause;
        let written = self.statistics.written_bytes_by_cause.iter();
        let less = |cause: &String, bytes: &u64| {
            bytes.saturating_sub(old.get(cause).copied().unwrap_or(0))
        };
        written.map(|(cause, bytes)| (cause.clone(), less(cause, bytes))).collect()
    }

    fn cross_counts_since(&self, before: &Counted) -> CrossCounts {
        let (before, now) = (&before.statistics.cross_counts, &self.statistics.cross_counts);
        cross_count::between(before, now)
    }

    /// Stored bytes of the live tables, where the engine tells.
    fn table_bytes(&self) -> Option<u64> {
        let levels = &self.statistics.levels;
        match &self.pages {
            Some(pages) => Some(pages.table_bytes),
            None => (!levels.is_empty()).then(|| levels.iter().map(|l| l.stored_bytes).sum()),
        }
    }
}

/// What a step leaves on disk, by the engine's account.
struct Stored {
    table_bytes: Option<u64>,
    codec: Option<String>,
}

/// A cell under way.
struct Bench<'a> {
    cell: &'a TableCell,
    table: &'a dyn Table,
    schema: Arc<Schema>,
    directory: &'a Path,
    meter: Meter,
    listener: Listener<'a>,
}

fn step_failed<R>(step: &str, result: EngineResult<R>) -> Result<R, RunError> {
    result.map_err(|error| failed(step, &error))
}

impl Bench<'_> {
    /// All rows, and the sum of the column that updates change.
    fn totals(&self) -> Query {
        let figures = vec![self.table.updated_column()];
        Query { range: None, group: Vec::new(), figures, top: None }
    }

    /// Opens the database whose files are in no cache.
    fn open(&self) -> Result<Box<dyn TableEngine>, RunError> {
        drop_pages(self.directory);
        let cell = self.cell;
        step_failed("open", open_table(&cell.engine, self.directory, &cell.settings, &self.schema))
    }

    /// Meters what `work` does with a session and the maintenance that it leaves, and closes the
    /// engine. The seconds are those that `work` gives.
    fn step<R>(
        &self,
        name: &str,
        engine: Box<dyn TableEngine>,
        work: impl FnOnce(&mut dyn TableSession) -> Result<(R, f64), RunError>,
    ) -> Result<(StepUsage, Stored, R), RunError> {
        (self.listener)(&ProgressLine::of_stage(name));
        let mut meter = self.meter.clone();
        meter.watch(engine.process_ids());
        let counted = Counted::read(&*engine)?;
        meter.sync();
        let before = meter.read();
        let mut session = step_failed(name, engine.session())?;
        let (result, seconds) = work(&mut *session)?;
        drop(session);
        let after = meter.read();
        meter.sync();
        let usage = meter.usage(&before, &after);
        let before = meter.read();
        let limit = Duration::from_secs(self.cell.wait_seconds);
        let rest = step_failed("maintenance", engine.rest(limit))?;
        let after = meter.read();
        meter.sync();
        let maintenance = meter.usage(&before, &after);
        let now = Counted::read(&*engine)?;
        let pages = counted.pages.zip(now.pages);
        let step = StepUsage {
            seconds,
            usage,
            maintenance,
            rest,
            written_by_cause: now.written_since(&counted),
            pages: pages.map(|(before, after)| PageWork::between(&before, &after)),
            cross_counts: now.cross_counts_since(&counted),
        };
        let codec = step_failed("codec", engine.codec_in_force())?;
        let stored = Stored { table_bytes: now.table_bytes(), codec };
        step_failed("close", engine.close())?;
        release_free_memory();
        Ok((step, stored, result))
    }

    fn load(&self, engine: Box<dyn TableEngine>) -> Result<(StepUsage, Stored, Loaded), RunError> {
        let (rows, query, totals) = (self.table.rows(), self.table.query(), self.totals());
        self.step("load", engine, |session| {
            let mut answer = Aggregation::new(&query);
            let mut sum = Aggregation::new(&totals);
            let mut batch: Vec<Row> = Vec::new();
            let (mut generating, mut inserting) = (Duration::ZERO, Duration::ZERO);
            let (mut logical_bytes, mut said) = (0, Instant::now());
            let mut next = 0;
            while next < rows {
                let began = Instant::now();
                let count = self.cell.insert_rows.min(rows - next) as usize;
                batch.resize_with(count, Row::new);
                for (index, row) in (next..).zip(&mut batch) {
                    self.table.row(index, row);
                    logical_bytes += self.schema.logical_bytes(row);
                    answer.add(|column| row.get(column).map(Value::whole));
                    sum.add(|column| row.get(column).map(Value::whole));
                }
                let generated = Instant::now();
                generating += generated - began;
                step_failed("load", session.insert(&batch))?;
                inserting += generated.elapsed();
                next += count as u64;
                if said.elapsed() >= Duration::from_secs(1) {
                    let rate = next as f64 / (generating + inserting).as_secs_f64();
                    let done = [next, rows];
                    (self.listener)(&ProgressLine::of_progress("load", done, "rows", rate as u64));
                    said = Instant::now();
                }
            }
            let loaded = Loaded {
                answer: answer.finish(),
                totals: sum.finish(),
                logical_bytes,
                generate_seconds: generating.as_secs_f64(),
            };
            Ok((loaded, inserting.as_secs_f64()))
        })
    }

    fn scan(&self) -> Result<(StepUsage, Answer), RunError> {
        let query = self.table.query();
        let (step, _, answer) = self.step("aggregate", self.open()?, |session| {
            let began = Instant::now();
            let answer = step_failed("aggregate", session.aggregate(&query, self.cell.access))?;
            Ok((answer, began.elapsed().as_secs_f64()))
        })?;
        Ok((step, answer))
    }

    /// Changes of rows by their numbers.
    fn changes(&self, indexes: &[u64]) -> Vec<Update> {
        let mut row = Row::new();
        let change = |index: &u64| {
            self.table.row(*index, &mut row);
            let key = self.schema.primary.iter().map(|column| row[*column].whole()).collect();
            Update { key, column: self.table.updated_column(), amount: AMOUNT }
        };
        indexes.iter().map(change).collect()
    }

    /// As published: single rows in random order where an index leads to them, spaced rows in one
    /// statement where the table is wide; or why the engine gave that up.
    fn updates(&self) -> Result<Result<StepUsage, String>, RunError> {
        let (rows, count) = (self.table.rows(), self.updates_of(self.cell.updates));
        let one_transaction = self.cell.table.is_wide();
        let indexes: Vec<u64> = match one_transaction {
            true => (0..count).map(|number| number * rows / count).collect(),
            false => distinct(rows, count, self.cell.seed),
        };
        let changes = self.changes(&indexes);
        let (step, _, done) = self.step("update", self.open()?, |session| {
            let began = Instant::now();
            let done = match one_transaction {
                true => in_one_transaction(session, &changes)?,
                false => changes.iter().try_for_each(|change| update(session, change)).map(Ok)?,
            };
            Ok((done, began.elapsed().as_secs_f64()))
        })?;
        Ok(done.map(|()| step))
    }

    /// At most every row.
    fn updates_of(&self, wanted: u64) -> u64 {
        wanted.min(self.table.rows())
    }

    fn modes(&self) -> Result<Vec<ModeUsage>, RunError> {
        let (mut modes, count) = (Vec::new(), self.updates_of(self.cell.mode_updates));
        for mode in UpdateMode::ALL.into_iter().filter(|_| count > 0) {
            let seed = self.cell.seed + 1 + mode as u64;
            let changes = self.changes(&distinct(self.table.rows(), count, seed));
            let gap = Duration::from_millis(self.cell.mode_gap_ms);
            let (step, _, ()) = self.step(mode.name(), self.open()?, |session| {
                let mut busy = Duration::ZERO;
                let separate = mode == UpdateMode::SeparateCommits;
                if !separate {
                    step_failed("update", session.begin())?;
                }
                for change in &changes {
                    let began = Instant::now();
                    update(session, change)?;
                    busy += began.elapsed();
                    if mode.has_gaps() {
                        thread::sleep(gap);
                    }
                }
                if !separate {
                    step_failed("update", session.commit())?;
                }
                Ok(((), busy.as_secs_f64()))
            })?;
            modes.push(ModeUsage { mode, updates: count, step });
        }
        Ok(modes)
    }

    /// Counts rows and entries of the index, and sums up what so many updates changed.
    fn check(
        &self,
        loaded: &Loaded,
        updates: u64,
        faults: &mut Vec<String>,
    ) -> Result<(), RunError> {
        let totals = self.totals();
        let engine = self.open()?;
        let (_, _, (found, entries)) = self.step("check", engine, |session| {
            let access = crate::adapter::table::Access::Primary;
            let found = step_failed("check", session.aggregate(&totals, access))?;
            Ok(((found, step_failed("check", session.index_entries())?), 0.0))
        })?;
        let rows = self.table.rows();
        if found.rows() != rows {
            faults.push(format!("{} rows are there, {rows} were loaded", found.rows()));
        }
        if !self.schema.secondary.is_empty() && entries != rows {
            faults.push(format!("the index has {entries} entries, {rows} rows were loaded"));
        }
        let sum = |answer: &Answer| answer.groups.first().map_or(0, |group| group.sums[0]);
        let wanted = sum(&loaded.totals) + AMOUNT * updates as i64;
        if sum(&found) != wanted {
            faults.push(format!(
                "after {updates} updates their column adds up to {}, not to {wanted}",
                sum(&found)
            ));
        }
        Ok(())
    }
}

fn update(session: &mut dyn TableSession, change: &Update) -> Result<(), RunError> {
    match step_failed("update", session.update(change))? {
        true => Ok(()),
        false => Err(no_row(change)),
    }
}

fn no_row(change: &Update) -> RunError {
    RunError::new(format!("update: there is no row {:?}", change.key))
}

/// All changes or none; or why the engine gave the transaction up. With no other client that is its
/// size: WiredTiger's changes must fit its cache until they are committed.
pub(crate) fn in_one_transaction(
    session: &mut dyn TableSession,
    changes: &[Update],
) -> Result<Result<(), String>, RunError> {
    step_failed("update", session.begin())?;
    for (done, change) in changes.iter().enumerate() {
        match session.update(change) {
            Ok(true) => {}
            Ok(false) => return Err(no_row(change)),
            Err(error) if error.is_retryable() => {
                step_failed("update", session.rollback())?;
                if !holds_half(session, &changes[..done / 2])? {
                    return Err(failed("update", &error));
                }
                return Ok(Err(gave_up(done, changes.len(), &error)));
            }
            Err(error) => return Err(failed("update", &error)),
        }
    }
    step_failed("update", session.commit()).map(Ok)
}

/// Whether a transaction of these few goes well, and is then dropped: it was the size, and no
/// conflict with somebody who is not there.
fn holds_half(session: &mut dyn TableSession, few: &[Update]) -> Result<bool, RunError> {
    step_failed("update", session.begin())?;
    let holds = few.iter().all(|change| matches!(session.update(change), Ok(true)));
    step_failed("update", session.rollback())?;
    Ok(holds && !few.is_empty())
}

fn gave_up(done: usize, all: usize, error: &EngineError) -> String {
    format!("given up after {done} of {all} in one transaction, with no other client: {error}")
}

/// So many different numbers below `rows`, in random order.
fn distinct(rows: u64, count: u64, seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed, u64::MAX - 1);
    let mut seen = HashSet::new();
    let mut indexes = Vec::new();
    while (indexes.len() as u64) < count.min(rows) {
        let index = random.below(rows);
        if seen.insert(index) {
            indexes.push(index);
        }
    }
    indexes
}
