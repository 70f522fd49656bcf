//! Taking in finished table files: linked or copied into the directory, checked, made live.
//!
//! Nothing is believed: every block is read and compared with its checksum, the order of all keys,
//! the index, the filter, the properties, the first and the last key. What is taken in has one entry
//! per user key, at sequence number 0.

use crate::base::FileNumber;
use crate::codec::{CodecId, Compression, UnknownCodec};
use crate::compaction::{NewTable, metadata_of, remove_tables};
use crate::db::family_handle::ColumnFamily;
use crate::db::ingest::{Ingested, only_level};
use crate::db::inner::DbInner;
use crate::db::tree::family::Family;
use crate::events::TrackedJob;
use crate::fs::{File, OpenMode};
use crate::stats::{Cause, Counter, JobInfo, JobKind, JobOutcome, JobRecord, StepClock, WorkMeter};
use crate::table::{ReadContext, TableProperties, TableReader, TableSummary};
use crate::{Error, ErrorKind, Result};
use std::collections::BTreeSet;
use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;

/// A file is copied in pieces of this size.
const COPY_BYTES: usize = 1 << 20;

/// How a table file gets into the database's directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableTransfer {
    /// By a hard link, or by a copy where the file system refuses that. The file must not be changed
    /// afterwards under its old name; removing that name is fine.
    Link,
    /// By a copy, which has nothing to do with the file any more.
    Copy,
}

impl ColumnFamily {
    /// Takes in table files that were written by [`crate::TableWriter`], all of them or none: they
    /// become visible and durable together, with the newest sequence number. Each is read and checked
    /// as a whole first. The files stay where they are.
    ///
    /// As to memtables and row locks see [`crate::Ingest::commit`].
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] for a missing file; [`ErrorKind::Corruption`] with file and offset
    /// for a damaged one, and for a file that is no table; [`ErrorKind::Unsupported`] for features
    /// of a newer version; [`ErrorKind::InvalidArgument`] for a table of a live database (with
    /// sequence numbers, several versions of a key, range tombstones or single deletes) and for
    /// tables that overlap each other; what the disk refuses; closed or dropped. Everything is as it
    /// was then, unless the error is of kind [`ErrorKind::Poisoned`]: reopening tells.
    pub fn ingest_tables<P: AsRef<Path>>(
        &self,
        paths: &[P],
        transfer: TableTransfer,
    ) -> Result<Ingested> {
        let _call = self.inner.lifecycle.enter()?;
        self.inner.lifecycle.check_writable()?;
        self.family.check_alive()?;
        let events = &self.inner.events;
        let planned = JobInfo::planned(JobKind::Ingest, &self.family.name);
        let job = TrackedJob::new(JobInfo { tables_in: paths.len() as u64, ..planned });
        if !paths.is_empty() {
            job.begin(events);
        }
        let mut incoming = Incoming {
            inner: &self.inner,
            family: &self.family,
            tables: Vec::new(),
            transfer,
            copies: BTreeSet::new(),
        };
        let mut records = Vec::new();
        let taken = paths.iter().try_for_each(|path| incoming.take_in(path.as_ref()));
        let ingested = taken.and_then(|()| incoming.install(&mut records));
        if let Err(error) = &ingested {
            job.end(events, 0, &records, JobOutcome::of_error(error));
        } else {
            let levels: Vec<_> = records.iter().map(|record| record.target_level).collect();
            let bytes = records.iter().map(|record| record.moved_bytes + record.written_bytes);
            let (target_level, bytes_in) = (only_level(&levels), bytes.sum());
            let complete = |job| JobInfo { target_level, bytes_in, ..job };
            let tables_out = records.len() as u64;
            job.end_knowing(events, complete, tables_out, &records, JobOutcome::Done);
        }
        ingested
    }
}

/// Tables on their way in; those that are not made live are removed.
struct Incoming<'a> {
    inner: &'a Arc<DbInner>,
    family: &'a Arc<Family>,
    tables: Vec<NewTable>,
    transfer: TableTransfer,
    /// Those of the tables that were copied.
    copies: BTreeSet<FileNumber>,
}

impl Drop for Incoming<'_> {
    fn drop(&mut self) {
        let numbers = self.tables.iter().map(|table| table.metadata.number);
        remove_tables(&self.inner.workshop, numbers);
    }
}

impl Incoming<'_> {
    /// Brings a file into the directory and checks it.
    fn take_in(&mut self, path: &Path) -> Result<()> {
        let inner = self.inner;
        let number = inner.workshop.file_numbers.take();
        let clock = &*inner.world.environment;
        let mut step = StepClock::start(clock);
        let mut meter = WorkMeter::default();
        let arrived = inner.bring_in(path, number, self.transfer);
        step.finish(clock, &inner.ledger, Cause::Ingest, 0, &mut meter);
        let checked = arrived.and_then(|is_copy| {
            self.copies.extend(is_copy.then_some(number));
            if planted!(CloseLeavesCallsIn) {
                crate::planted::let_a_close_in();
            }
            inner.check_incoming(self.family, number, &mut meter)
        });
        step.finish(clock, &inner.ledger, Cause::Verification, 0, &mut meter);
        match checked {
            Ok(table) => {
                self.tables.push(table);
                Ok(())
            }
            Err(error) => {
                remove_tables(&inner.workshop, std::iter::once(number));
                // The name that the caller knows; the other one is gone.
                Err(Error::new(error.kind(), "a table cannot be ingested")
                    .in_file(path)
                    .because(error))
            }
        }
    }

    /// Makes the tables live; gives what is booked of each.
    fn install(mut self, records: &mut Vec<JobRecord>) -> Result<Ingested> {
        let family = self.family;
        self.tables.sort_by(|a, b| a.metadata.range.smallest.cmp(&b.metadata.range.smallest));
        for (left, right) in self.tables.iter().zip(self.tables.iter().skip(1)) {
            if left.metadata.range.overlaps(&right.metadata.range) {
                return Err(Error::invalid("the tables of one ingest overlap each other"));
            }
        }
        let tables = std::mem::take(&mut self.tables);
        if tables.is_empty() {
            self.inner.make_all_durable()?;
            return Ok(Ingested::default());
        }
        let rows = tables.iter().map(|table| table.metadata.entries).sum();
        let table_bytes = tables.iter().map(|table| table.metadata.size_bytes).sum();
        let properties = tables.iter().map(|table| table.reader.properties());
        let row_bytes = properties.map(|p| p.key_bytes.saturating_add(p.value_bytes)).sum();
        let table_count = tables.len() as u64;
        *records = tables.iter().map(|table| self.record_of(table)).collect();
        let (sequence, levels) = self.inner.install_ingest(family, tables)?;
        for (record, level) in records.iter_mut().zip(&levels) {
            record.target_level = *level;
            self.inner.ledger.book_job(&family.ledger, record);
        }
        family.ledger.count(Counter::IngestedTables, table_count);
        family.ledger.count(Counter::IngestedBytes, row_bytes);
        Ok(Ingested { sequence, rows, table_bytes, levels })
    }

    /// What bringing the table in cost: a link moves it, a copy writes it.
    fn record_of(&self, table: &NewTable) -> JobRecord {
        let metadata = &table.metadata;
        match self.copies.contains(&metadata.number) {
            true => JobRecord {
                written_bytes: metadata.size_bytes,
                written_raw_bytes: metadata.raw_bytes,
                entries_in: metadata.entries,
                ..JobRecord::default()
            },
            false => JobRecord { moved_bytes: metadata.size_bytes, ..JobRecord::default() },
        }
    }
}

impl DbInner {
    /// Gives a file a name in the directory, and makes its bytes durable; true if by a copy.
    fn bring_in(&self, path: &Path, number: FileNumber, transfer: TableTransfer) -> Result<bool> {
        let files = &self.world.files;
        let target = self.workshop.table_path(number);
        let source = files.open(path, OpenMode::Read)?;
        let copy = match transfer {
            TableTransfer::Link if files.link(path, &target).is_ok() => None,
            _ => Some(files.open(&target, OpenMode::CreateNew)?),
        };
        match copy {
            Some(copy) => self.copy(&*source, &*copy).map(|()| true),
            // Whoever wrote it may not have synced it.
            None => source.sync_data().map(|()| false),
        }
    }

    fn copy(&self, source: &dyn File, target: &dyn File) -> Result<()> {
        let mut buffer = vec![0; COPY_BYTES];
        let mut offset = 0;
        loop {
            let count = source.read_at(&mut buffer, offset)?;
            self.ledger.book_read(Cause::Ingest, 0, CodecId::None as u8, count as u64);
            if count == 0 {
                return target.sync_data();
            }
            // A close waits for this call.
            self.lifecycle.check_open()?;
            target.write_at(&[IoSlice::new(&buffer[..count])], offset)?;
            self.ledger.book_written(Cause::Ingest, 0, CodecId::None as u8, count as u64);
            offset += count as u64;
        }
    }

    fn check_incoming(
        &self,
        family: &Family,
        number: FileNumber,
        meter: &mut WorkMeter,
    ) -> Result<NewTable> {
        let reader = self.workshop.open_table(number, meter)?;
        check_write_times(reader.properties(), family)?;
        let compression = compression_of(reader.properties())?;
        check_form(&reader, meter, self)?;
        let summary = TableSummary {
            table_id: reader.table_id(),
            size_bytes: reader.size_bytes(),
            properties: reader.properties().clone(),
        };
        Ok(NewTable { metadata: metadata_of(number, &summary, compression), reader })
    }
}

/// The codec that a table says it was written with.
fn compression_of(properties: &TableProperties) -> Result<Compression> {
    properties.compression().map_err(|UnknownCodec { what, number }| {
        Error::new(ErrorKind::Unsupported, format!("a table with unknown {what} {number}"))
    })
}

/// Values are stored with the times of their writing in all tables of a family or in none.
fn check_write_times(properties: &TableProperties, family: &Family) -> Result<()> {
    let (found_s, wanted_s) = (properties.time_to_live_s, family.options().time_to_live_s);
    match (found_s > 0) == (wanted_s > 0) {
        true => Ok(()),
        false => {
            let what = "not a table to be ingested: it was written for another time to live";
            let wanted = if wanted_s > 0 { "time_to_live_s > 0" } else { "time_to_live_s=0" };
            Err(Error::invalid(what).expected(wanted, found_s))
        }
    }
}

/// Reads the whole table, and refuses one that is damaged or of another form than an ingest needs.
fn check_form(reader: &Arc<TableReader>, meter: &mut WorkMeter, inner: &DbInner) -> Result<()> {
    let environment = &*inner.world.environment;
    let mut context = ReadContext { meter: Some(meter), ..ReadContext::new(environment) };
    context.fill_cache = false;
    let properties = reader.properties();
    let strange = |what: &str| Err(Error::invalid(format!("not a table to be ingested: {what}")));
    if reader.has_range_tombstones() || properties.range_tombstones > 0 {
        return strange("it has range tombstones");
    }
    if (properties.smallest_sequence, properties.largest_sequence) != (0, 0) {
        return strange("its entries have sequence numbers");
    }
    if properties.single_deletes > 0 {
        return strange("it has single deletes");
    }
    let found = reader.verify(&mut context)?;
    if found.entries == 0 || found.user_keys != found.entries {
        return strange("it has several versions of a key, or no rows");
    }
    let mut cursor = reader.cursor();
    cursor.seek_to_first(&mut context)?;
    let first_fits = cursor.key() == properties.smallest_key;
    cursor.seek_to_last(&mut context)?;
    let last_fits = cursor.key() == properties.largest_key;
    if !first_fits || !last_fits || properties.largest_key_exclusive != 0 {
        return Err(Error::corruption("first and last key are not what the properties say"));
    }
    Ok(())
}
