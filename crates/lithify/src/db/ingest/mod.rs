//! Bulk ingest: rows in key order go straight into tables, past log and memtables.
//!
//! 1. Rows are gathered to a step's worth and then written in the caller's thread, so that their
//!    cost is booked as that of any other job.
//! 2. A table is begun in the codec of the level that its first key can go to now: the deepest one
//!    where nothing overlaps. It ends at its size, or where a live table begins.
//! 3. The end is one edit, see `ingest_install`.
//!
//! An ingest that is dropped, or fails, removes its files; a crash leaves that to the next opening.

pub(crate) mod install;
pub(crate) mod table_writer;
pub(crate) mod tables;

use crate::base::{
    Charge, KEY_SIZE_MAX, Level, MemoryUse, SequenceNumber, Trailer, VALUE_SIZE_MAX, ValueKind,
};
use crate::compaction::picker::BusySet;
use crate::compaction::placement::{deepest_free_level, end_of_gap};
use crate::compaction::{CloseProgress, Evidence, NewTable, OutputPlan, TableSink, remove_tables};
use crate::db::family_handle::ColumnFamily;
use crate::db::inner::DbInner;
use crate::db::jobs::background::table_options;
use crate::db::tree::family::Family;
use crate::events::{Events, TrackedJob};
use crate::fs::Ticket;
use crate::manifest::KeyRange;
use crate::retention::{stamped, write_time};
use crate::stats::{Cause, Counter, JobInfo, JobKind, JobOutcome, JobRecord, StepClock, WorkMeter};
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Rows are written once so many bytes of them have gathered.
const STEP_BYTES: usize = 128 << 10;

/// A table that overlaps what is there, and so is one more run of level 0, is this many times as
/// large as others: few large runs are less trouble to readers than many small ones.
const LEVEL0_TABLES: u64 = 16;

/// How long a write in flight is waited for before it is looked at again.
const TICKET_POLL_US: u64 = 1_000;

/// What an ingest came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ingested {
    /// The sequence number of all of its rows; 0 if there were none.
    pub sequence: SequenceNumber,
    /// Rows, deletes among them.
    pub rows: u64,
    /// Stored bytes of its tables.
    pub table_bytes: u64,
    /// The level that each of its tables went to, by key.
    pub levels: Vec<usize>,
}

/// Rows that are not in a table yet.
#[derive(Default)]
struct RowBuffer {
    bytes: Vec<u8>,
    /// Per row: where its key and its value end.
    rows: Vec<(usize, usize, ValueKind)>,
}

impl RowBuffer {
    fn push(&mut self, kind: ValueKind, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.rows.push((key_end, self.bytes.len(), kind));
    }

    fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8], ValueKind)> {
        let mut start = 0;
        self.rows.iter().map(move |(key_end, end, kind)| {
            let row = (&self.bytes[start..*key_end], &self.bytes[*key_end..*end], *kind);
            start = *end;
            row
        })
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.rows.clear();
    }
}

/// The table that is being written.
struct OpenTable {
    sink: TableSink,
    level: Level,
    /// A live table begins here; this one must end before.
    end: Option<Box<[u8]>>,
}

/// What was written so far, booked under the level that it was written for.
#[derive(Default)]
struct Written {
    tables: Vec<NewTable>,
    records: BTreeMap<Level, JobRecord>,
    rows: u64,
    row_bytes: u64,
}

impl Written {
    /// Tells how the job has ended: with so many tables, all of this level. Nothing if that was told.
    fn tell_end(
        &self,
        job: Option<TrackedJob>,
        events: &Events,
        (tables_out, target_level, outcome): (u64, Option<Level>, JobOutcome),
    ) {
        if let Some(job) = job {
            let complete = |job| JobInfo { target_level, bytes_in: self.row_bytes, ..job };
            job.end_knowing(events, complete, tables_out, self.records.values(), outcome);
        }
    }
}

/// Rows on their way into a column family, from [`ColumnFamily::ingest`]: in ascending key order,
/// straight into tables. They become visible at [`Ingest::commit`], all at once; before that, and
/// after a crash before it, nothing of them is there. Dropping an ingest gives it up.
///
/// It takes values and deletes, no merge operands: in a family with a merge operator they are what
/// later operands add to. [`ColumnFamily::merge`] beside it goes on.
///
/// Belongs to one thread at a time. Other writers and other ingests go on beside it.
pub struct Ingest {
    inner: Arc<DbInner>,
    family: Arc<Family>,
    buffer: RowBuffer,
    last_key: Option<Vec<u8>>,
    open: Option<OpenTable>,
    /// The level of the table at hand, or of the last one.
    level: Level,
    written: Written,
    meter: WorkMeter,
    charge: Charge,
    failure: Option<Error>,
    /// Until its end is told.
    job: Option<TrackedJob>,
}

impl ColumnFamily {
    /// Begins to ingest rows in ascending key order; see [`Ingest`].
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = lithify::Db::open(directory.path(), lithify::Options::default())?;
    /// let rocks = db.column_family("rocks", lithify::CfOptions::default())?;
    /// let mut ingest = rocks.ingest()?;
    /// for number in 0..1000_u32 {
    ///     ingest.put(&number.to_be_bytes(), b"granite")?;
    /// }
    /// assert_eq!(ingest.commit()?.rows, 1000);
    /// assert_eq!(rocks.get(&7_u32.to_be_bytes())?.as_deref(), Some(&b"granite"[..]));
    /// # Ok::<(), lithify::Error>(())
    /// ```
    ///
    /// # Errors
    /// A closed database, a dropped family, a database that stopped writing.
    pub fn ingest(&self) -> Result<Ingest> {
        self.inner.lifecycle.check_writable()?;
        self.family.check_alive()?;
        Ok(Ingest {
            inner: Arc::clone(&self.inner),
            family: Arc::clone(&self.family),
            buffer: RowBuffer::default(),
            last_key: None,
            open: None,
            level: 0,
            written: Written::default(),
            meter: WorkMeter::default(),
            charge: self.inner.workshop.budget.charge(MemoryUse::Compaction, 0),
            failure: None,
            job: Some(TrackedJob::new(JobInfo::planned(JobKind::Ingest, &self.family.name))),
        })
    }
}

impl fmt::Debug for Ingest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ingest").field("rows", &self.rows()).finish_non_exhaustive()
    }
}

impl Ingest {
    /// Adds a row behind all others.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidArgument`] for a key that does not sort behind the last one,
    /// naming both; the ingest is as it was and may go on. [`crate::ErrorKind::LimitExceeded`] for
    /// a key over 65,535 bytes or a value over 64 MiB, likewise. What the disk refuses, a closed
    /// database, a dropped family: then the ingest has failed, and nothing of it is left.
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.add(ValueKind::Put, key.as_ref(), value.as_ref())
    }

    /// [`Ingest::put`] of a value as it was stored, with the time of its writing where it has one.
    pub(crate) fn put_stored(&mut self, key: &[u8], stored: &[u8]) -> Result<()> {
        self.add_stored(ValueKind::Put, key, stored)
    }

    /// Adds the removal of a key behind all other rows.
    ///
    /// # Errors
    /// As [`Ingest::put`].
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.add(ValueKind::Delete, key.as_ref(), &[])
    }

    /// Adds rows that ascend behind all others, up to the first that is refused.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = lithify::Db::open(directory.path(), lithify::Options::default())?;
    /// let mut ingest = db.column_family("rocks", lithify::CfOptions::default())?.ingest()?;
    /// ingest.extend([("basalt", "igneous"), ("chalk", "sedimentary")])?;
    /// assert_eq!(ingest.commit()?.rows, 2);
    /// # Ok::<(), lithify::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Ingest::put`]; the rows before the one that is refused are added.
    pub fn extend<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        rows: impl IntoIterator<Item = (K, V)>,
    ) -> Result<()> {
        rows.into_iter().try_for_each(|(key, value)| self.put(key, value))
    }

    /// Rows added so far, deletes among them.
    pub fn rows(&self) -> u64 {
        self.written.rows + self.buffer.rows.len() as u64
    }

    /// Makes all rows visible and durable, together. Waits for the flush of memtables that hold
    /// keys between the first and the last of a table (in a database without a log: of all); takes
    /// no row locks, like a range delete, but a transaction that reads at a snapshot finds out that
    /// a row has changed.
    ///
    /// # Errors
    /// As [`Ingest::put`]. The rows are not there then, unless the error is of kind
    /// [`crate::ErrorKind::Poisoned`]: reopening tells.
    pub fn commit(mut self) -> Result<Ingested> {
        let inner = Arc::clone(&self.inner);
        let mut call = Some(inner.lifecycle.enter()?);
        self.check_usable()?;
        self.step(Self::finish_rows)?;
        if planted!(IngestIntoClosing) {
            call = None;
        }
        let mut written = std::mem::take(&mut self.written);
        if written.tables.is_empty() {
            inner.make_all_durable()?;
            return Ok(Ingested::default());
        }
        let table_bytes = written.tables.iter().map(|table| table.metadata.size_bytes).sum();
        let table_count = written.tables.len() as u64;
        let tables = std::mem::take(&mut written.tables);
        let installed = self.inner.install_ingest(&self.family, tables);
        drop(call);
        let levels = installed.as_ref().map_or(&[][..], |(_, levels)| levels);
        let end = (table_count, only_level(levels), JobOutcome::of_result(&installed));
        written.tell_end(self.job.take(), &inner.events, end);
        let (sequence, levels) = installed?;
        let ledger = &self.family.ledger;
        let records = written.records.values();
        records.for_each(|record| self.inner.ledger.book_job(ledger, record));
        ledger.count(Counter::IngestedTables, table_count);
        ledger.count(Counter::IngestedBytes, written.row_bytes);
        Ok(Ingested { sequence, rows: written.rows, table_bytes, levels })
    }

    /// In a family with a time to live a row is as old as its call, though nobody sees it before the end.
    fn add(&mut self, kind: ValueKind, key: &[u8], value: &[u8]) -> Result<()> {
        let rows = &self.family.rows;
        if kind == ValueKind::Put && rows.have_write_times() {
            let now_s = self.inner.world.environment.unix_time_s();
            return self.add_stored(kind, key, &stamped(value, write_time(now_s)));
        }
        if kind == ValueKind::Put && rows.have_special_puts() {
            rows.check_operand(value)?;
        }
        self.add_stored(kind, key, value)
    }

    fn add_stored(&mut self, kind: ValueKind, key: &[u8], value: &[u8]) -> Result<()> {
        self.check_usable()?;
        check_row(self.last_key.as_deref(), key, value)?;
        let last_key = self.last_key.get_or_insert_default();
        last_key.clear();
        last_key.extend_from_slice(key);
        self.buffer.push(kind, key, value);
        if self.buffer.bytes.len() >= STEP_BYTES { self.step(Self::write_rows) } else { Ok(()) }
    }

    fn check_usable(&self) -> Result<()> {
        self.failure.clone().map_or(Ok(()), Err)
    }

    /// Does a piece of work, books it, and ends the ingest if it failed.
    fn step(&mut self, work: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let inner = Arc::clone(&self.inner);
        let _call = inner.lifecycle.enter()?;
        if let Some(job) = &self.job
            && self.rows() > 0
        {
            job.begin(&inner.events);
        }
        let clock = &*inner.world.environment;
        let mut step = StepClock::start(clock);
        let result = work(self);
        let level = self.level;
        let cost = step.finish(clock, &inner.ledger, Cause::Ingest, level, &mut self.meter);
        let record = self.written.records.entry(level).or_default();
        record.target_level = level;
        record.cpu_ns += cost.cpu_ns;
        record.wall_us += cost.wall_us;
        let sink_bytes = self.open.as_ref().map_or(0, |open| open.sink.memory_bytes());
        self.charge.resize(self.buffer.bytes.capacity() + sink_bytes);
        inner.workshop.cache.shrink_to_budget();
        result.inspect_err(|error| {
            self.failure = Some(error.clone());
            self.abandon();
            let end = (0, None, JobOutcome::of_error(error));
            self.written.tell_end(self.job.take(), &inner.events, end);
        })
    }

    fn finish_rows(&mut self) -> Result<()> {
        self.write_rows()?;
        self.close_table()
    }

    fn write_rows(&mut self) -> Result<()> {
        self.inner.lifecycle.check_writable()?;
        self.family.check_alive()?;
        let mut buffer = std::mem::take(&mut self.buffer);
        let placed = buffer.iter().try_for_each(|(key, value, kind)| {
            self.written.rows += 1;
            self.written.row_bytes += (key.len() + value.len()) as u64;
            self.place_row(kind, key, value)
        });
        buffer.clear();
        self.buffer = buffer;
        placed
    }

    fn place_row(&mut self, kind: ValueKind, key: &[u8], value: &[u8]) -> Result<()> {
        if let Some(open) = &mut self.open
            && (open.end.as_deref().is_some_and(|end| end <= key) || open.sink.should_cut(key))
        {
            self.close_table()?;
        }
        if self.open.is_none() {
            let open = self.begin_table(key);
            self.level = open.level;
            self.open = Some(open);
        }
        self.add_to_table(kind, key, value)
    }

    fn add_to_table(&mut self, kind: ValueKind, key: &[u8], value: &[u8]) -> Result<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        open.sink.add(key, Trailer::new(0, kind), value, &mut self.meter)?;
        while let Some(ticket) = open.sink.poll_write(&mut self.meter)? {
            self.inner.wait_for_ticket(&ticket);
        }
        let record = self.written.records.entry(open.level).or_default();
        record.target_level = open.level;
        record.entries_in += 1;
        Ok(())
    }

    /// A table that begins with `key`, for the level that it can go to as things stand.
    fn begin_table(&self, key: &[u8]) -> OpenTable {
        let options = self.family.options();
        let version = Arc::clone(&self.family.view().version);
        let base_level = self.family.level_targets(&version).base_level;
        let point = KeyRange::inclusive(key, key);
        let level = deepest_free_level(&version, base_level, &BusySet::new(), &point);
        let end = if level > 0 { end_of_gap(&version, level, key) } else { None };
        let table_bytes =
            if level > 0 { options.table_bytes } else { options.table_bytes * LEVEL0_TABLES };
        let plan = OutputPlan {
            cause: Cause::Ingest,
            place: self.family.place(level),
            formats: self.family.formats(),
            evidence: Evidence::default(),
            table: table_options(&options, level, Some(self.family.origin_of_tables(0))),
            table_bytes,
            boundaries: Vec::new(),
        };
        let sink = TableSink::new(Arc::clone(&self.inner.workshop), plan);
        OpenTable { sink, level, end: end.map(Box::from) }
    }

    fn close_table(&mut self) -> Result<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let record = self.written.records.entry(open.level).or_default();
        record.target_level = open.level;
        open.sink.begin_close(&[], 0, record.cpu_ns, &mut self.meter)?;
        if planted!(CloseLeavesCallsIn) {
            crate::planted::let_a_close_in();
        }
        loop {
            match open.sink.poll_close(&mut self.meter)? {
                CloseProgress::More => {}
                CloseProgress::Waiting(ticket) => self.inner.wait_for_ticket(&ticket),
                CloseProgress::Closed => break,
            }
        }
        for table in open.sink.take_finished() {
            record.written_bytes += table.metadata.size_bytes;
            record.written_raw_bytes += table.metadata.raw_bytes;
            self.written.tables.push(table);
        }
        self.open = None;
        Ok(())
    }

    /// Removes every file made so far.
    fn abandon(&mut self) {
        if let Some(mut open) = self.open.take() {
            open.sink.abandon();
        }
        let tables = std::mem::take(&mut self.written.tables);
        let numbers = tables.iter().map(|table| table.metadata.number);
        remove_tables(&self.inner.workshop, numbers);
    }
}

impl Drop for Ingest {
    fn drop(&mut self) {
        let inner = Arc::clone(&self.inner);
        // A close has removed its files, or left them to the next opening.
        if let Ok(_call) = inner.lifecycle.enter() {
            self.abandon();
        }
        let end = (0, None, JobOutcome::Aborted);
        self.written.tell_end(self.job.take(), &inner.events, end);
    }
}

impl DbInner {
    fn wait_for_ticket(&self, ticket: &Ticket) {
        while !ticket.is_complete() {
            let deadline_us = self.world.environment.now_us() + TICKET_POLL_US;
            self.jobs.wait_for_change(Some(deadline_us), || ticket.is_complete());
        }
    }
}

/// The level of all tables, if there is one.
pub(super) fn only_level(levels: &[Level]) -> Option<Level> {
    let first = levels.first()?;
    levels.iter().all(|level| level == first).then_some(*first)
}

/// Refuses a row that does not sort behind the last one, or is too large.
pub(crate) fn check_row(last_key: Option<&[u8]>, key: &[u8], value: &[u8]) -> Result<()> {
    if key.len() > KEY_SIZE_MAX || value.len() > VALUE_SIZE_MAX {
        return Err(Error::limit("key or value is too long").expected(
            format_args!("at most {KEY_SIZE_MAX} and {VALUE_SIZE_MAX} bytes"),
            format_args!("{} and {}", key.len(), value.len()),
        ));
    }
    match last_key {
        Some(last_key) if last_key >= key => {
            Err(Error::invalid("rows of an ingest must come in ascending key order").expected(
                format_args!("a key behind \"{}\"", shown(last_key)),
                format_args!("\"{}\"", shown(key)),
            ))
        }
        _ => Ok(()),
    }
}

/// A key for a message, cut where it is long.
fn shown(key: &[u8]) -> String {
    const SHOWN_BYTES: usize = 200;
    let start = key.get(..SHOWN_BYTES).unwrap_or(key).escape_ascii().to_string();
    if key.len() > SHOWN_BYTES { format!("{start}... ({} bytes)", key.len()) } else { start }
}
