//! The tables that a flush or compaction writes: one open at a time, in pieces that a step can
//! bear, synced before anyone hears of them.
//!
//! A table is cut only between user keys. Where the level below has boundaries, tables are cut at
//! those once they are half full, so that the next compaction finds few overlaps; else at their
//! target size.

use super::deciding::Deciding;
use super::format_policy::{Evidence, FormatPolicy, TablePlace};
use super::rules::RangeTombstoneSpan;
use super::study::{SPECIMEN_BYTES, Study, train_on};
use crate::base::{BudgetShare, FileNumber, MemoryBudget, SequenceNumber, Trailer};
use crate::cache::BlockCache;
use crate::codec::{BlockFormat, Compression, ContextPool, Dictionary, StoredFormat};
use crate::fs::{File, IoOutcome, IoRequest, OpenMode, Submission, Ticket, World};
use crate::manifest::{FileMetadata, FileName, FileNumbers, KeyRange};
use crate::stats::{Cause, Ledger, Part, WorkMeter};
use crate::table::{
    StoredBlock, TableBuilder, TableOptions, TableReader, TableSummary, WRITE_BYTES,
};
use crate::{Error, Result};
use std::path::PathBuf;
use std::sync::Arc;

/// Smaller tables hold no record of how their format was decided: it takes some three kilobytes.
const DECISION_TABLE_BYTES_MIN: u64 = 256 << 10;

/// Written pages go to the disk in strides of this size, so that the sync at the end is short.
const WRITE_BACK_STRIDE_BYTES: u64 = 1 << 20;

/// What all jobs of a database share.
pub(crate) struct Workshop {
    pub(crate) world: World,
    pub(crate) directory: PathBuf,
    pub(crate) file_numbers: Arc<FileNumbers>,
    pub(crate) budget: Arc<MemoryBudget>,
    pub(crate) pool: Arc<ContextPool>,
    pub(crate) cache: Arc<BlockCache>,
    pub(crate) ledger: Arc<Ledger>,
    /// Whether tables are read past the page cache.
    pub(crate) direct_reads: bool,
    /// If other databases use budget and cache too.
    pub(crate) share: Option<BudgetShare>,
}

impl Workshop {
    pub(crate) fn table_path(&self, number: FileNumber) -> PathBuf {
        FileName::Table(number).path(&self.directory)
    }

    /// Opens a table for reading.
    pub(crate) fn open_table(
        &self,
        number: FileNumber,
        meter: &mut WorkMeter,
    ) -> Result<Arc<TableReader>> {
        let path = self.table_path(number);
        let file = match self.direct_reads {
            true => self.world.files.open_direct(&path)?,
            false => self.world.files.open(&path, OpenMode::Read)?,
        };
        let (cache, pool) = (Some(self.cache.clone()), self.pool.clone());
        TableReader::open_metered(file, cache, pool, meter)
    }
}

/// The tables that a job is to write.
#[derive(Clone)]
pub(crate) struct OutputPlan {
    pub(crate) cause: Cause,
    pub(crate) place: TablePlace,
    /// Decides the format of each table, and what it is told of their rows.
    pub(crate) formats: Arc<dyn FormatPolicy>,
    pub(crate) evidence: Evidence,
    /// The shape of tables, but for the size of blocks: that is part of the format.
    pub(crate) table: TableOptions,
    /// About where tables are cut; `u64::MAX` for one table.
    pub(crate) table_bytes: u64,
    /// Keys at which tables are preferably cut, ascending.
    pub(crate) boundaries: Vec<Box<[u8]>>,
}

impl OutputPlan {
    /// The format of the next table, with the dictionary that it names. Small tables have none: it
    /// would lie in each.
    fn decide(&self) -> (BlockFormat, Option<Arc<Dictionary>>) {
        let mut format = self.formats.decide(&self.place, &self.evidence);
        let is_large = self.evidence.raw_bytes >= self.formats.dictionary_raw_bytes_min();
        let dictionary =
            format.dictionary.filter(|_| is_large).and_then(|name| self.formats.dictionary(name));
        format.dictionary = dictionary.as_ref().map(|dictionary| dictionary.hash());
        (format, dictionary)
    }
}

/// A table that is written and synced.
pub(crate) struct NewTable {
    pub(crate) metadata: FileMetadata,
    pub(crate) reader: Arc<TableReader>,
}

struct OpenTable {
    number: FileNumber,
    file: Arc<dyn File>,
    builder: TableBuilder,
    /// Where the next bytes go.
    offset: u64,
    written_back_through: u64,
    /// Its data blocks when its size was last looked at.
    judged_blocks: u64,
    summary: Option<TableSummary>,
    sync_submitted: bool,
}

/// Writes the tables of one job.
pub(crate) struct TableSink {
    workshop: Arc<Workshop>,
    plan: OutputPlan,
    /// Of the table at hand, or of the next one.
    format: BlockFormat,
    /// The one that the format names.
    dictionary: Option<Arc<Dictionary>>,
    next_boundary: usize,
    open: Option<OpenTable>,
    in_flight: Option<Ticket>,
    finished: Vec<NewTable>,
    copied: Copied,
    /// What is being measured, and the CPU time for each byte that it was expected to take.
    study: Option<(Study, f64)>,
}

/// Blocks that were copied as they are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Copied {
    pub(crate) blocks: u64,
    /// Stored bytes, block trailers included.
    pub(crate) bytes: u64,
}

impl TableSink {
    pub(crate) fn new(workshop: Arc<Workshop>, plan: OutputPlan) -> Self {
        let (format, dictionary) = plan.decide();
        TableSink {
            workshop,
            format,
            dictionary,
            plan,
            next_boundary: 0,
            open: None,
            in_flight: None,
            finished: Vec::new(),
            copied: Copied::default(),
            study: None,
        }
    }

    /// Whether the table at hand should end before `key`, a new user key.
    pub(crate) fn should_cut(&mut self, key: &[u8]) -> bool {
        let mut crossed = false;
        while self.plan.boundaries.get(self.next_boundary).is_some_and(|b| &b[..] <= key) {
            self.next_boundary += 1;
            crossed = true;
        }
        let Some(open) = &mut self.open else { return false };
        // Between two blocks the size grows by less than a block: that is exact enough.
        let blocks = open.builder.data_blocks();
        if std::mem::replace(&mut open.judged_blocks, blocks) == blocks && !crossed {
            return false;
        }
        let mut is_full = open.builder.is_full();
        if planted!(FullTableGoesOn) {
            is_full = false;
        }
        if is_full {
            return true;
        }
        let size = open.builder.estimated_size_bytes();
        let limit = if self.plan.boundaries.is_empty() {
            self.plan.table_bytes
        } else {
            self.plan.table_bytes.saturating_mul(2)
        };
        size >= limit || (crossed && size >= self.plan.table_bytes / 2)
    }

    /// The last key of the table at hand; `None` if it has no entries.
    pub(crate) fn last_key(&self) -> Option<&[u8]> {
        let builder = &self.open.as_ref()?.builder;
        (builder.entries() > 0).then(|| builder.last_key())
    }

    /// Bytes of its buffers, those of a write in flight among them.
    pub(crate) fn memory_bytes(&self) -> usize {
        let in_flight = if self.in_flight.is_some() { WRITE_BYTES } else { 0 };
        let of_study = self.study.as_ref().map_or(0, |(study, _)| study.memory_bytes());
        self.open.as_ref().map_or(0, |open| open.builder.memory_bytes()) + in_flight + of_study
    }

    /// Adds an entry behind all others.
    pub(crate) fn add(
        &mut self,
        key: &[u8],
        trailer: Trailer,
        value: &[u8],
        meter: &mut WorkMeter,
    ) -> Result<()> {
        if self.open.is_none() {
            self.open = Some(self.create()?);
        }
        let Some(open) = &mut self.open else { return Ok(()) };
        open.builder.add(key, trailer, value, meter, &*self.workshop.world.environment)
    }

    /// Whether blocks of a table stored in that format fit the table at hand, or the next one if
    /// none is open.
    #[inline(never)]
    pub(crate) fn takes_blocks_of(&self, stored: &StoredFormat) -> bool {
        self.plan.formats.takes_blocks(&self.format, stored)
    }

    /// Adds a block of another table as it is stored, behind all entries; false if the table at
    /// hand does not take it. The caller has asked [`TableSink::takes_blocks_of`].
    pub(crate) fn add_block(
        &mut self,
        block: &StoredBlock<'_>,
        meter: &mut WorkMeter,
    ) -> Result<bool> {
        if self.open.is_none() {
            self.open = Some(self.create()?);
        }
        let Some(open) = &mut self.open else { return Ok(false) };
        let is_added = open.builder.add_block(block, meter, &*self.workshop.world.environment)?;
        if is_added {
            self.copied.blocks += 1;
            self.copied.bytes += block.stored_size();
        }
        Ok(is_added)
    }

    /// What was copied as it is stored.
    pub(crate) fn copied(&self) -> Copied {
        self.copied
    }

    /// Once a table, so kept out of what is done for every row.
    #[cold]
    #[inline(never)]
    fn create(&self) -> Result<OpenTable> {
        let workshop = &self.workshop;
        let compressor = workshop.pool.compressor(self.format.compression)?;
        let table_id = workshop.world.environment.random_u128().to_le_bytes();
        let block_size_bytes = self.format.block_size_bytes;
        let options = TableOptions { block_size_bytes, ..self.plan.table.clone() };
        let mut builder = TableBuilder::new(options, table_id, compressor);
        if let Some(dictionary) = &self.dictionary {
            builder.use_dictionary(workshop.pool.hold(dictionary))?;
        }
        let number = workshop.file_numbers.take();
        self.tap(&mut builder, number);
        let path = workshop.table_path(number);
        let file = workshop.world.files.open(&path, OpenMode::CreateNew)?;
        Ok(OpenTable {
            number,
            file,
            builder,
            offset: 0,
            written_back_through: 0,
            judged_blocks: 0,
            summary: None,
            sync_submitted: false,
        })
    }

    /// Has a new table keep blocks aside if its policy wants to measure some.
    fn tap(&self, builder: &mut TableBuilder, number: FileNumber) {
        let deciding = self.plan.formats.deciding();
        if self.study.is_none() && deciding.is_some_and(Deciding::wants_specimen) {
            // Not always the first ones; from the number, so that a history is a function of its seed.
            let skip = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60;
            builder.tap(SPECIMEN_BYTES, skip);
        }
    }

    /// Measures one candidate on blocks of the table at hand, if there is something to measure;
    /// whether it did. What fails at it fails nothing else.
    pub(crate) fn study(&mut self, meter: &mut WorkMeter) -> bool {
        if self.study.is_none() {
            self.study = self.begin_study();
        }
        let Some((study, _)) = &mut self.study else { return false };
        let (workshop, clock) = (&self.workshop, &*self.workshop.world.environment);
        match meter.time(clock, Part::Sampling, || study.advance(workshop)) {
            Ok(true) => true,
            Ok(false) => {
                self.end_study();
                true
            }
            Err(_) => {
                self.study = None;
                false
            }
        }
    }

    #[inline]
    fn begin_study(&mut self) -> Option<(Study, f64)> {
        let open = self.open.as_mut()?;
        let specimen = open.builder.take_specimen()?;
        let deciding = self.plan.formats.deciding()?;
        let planned = deciding.study();
        let restart_interval = self.plan.table.restart_interval;
        let dictionary = deciding.dictionary_at_hand();
        let study = Study::new(specimen, restart_interval, planned.trials, dictionary);
        Some((study, planned.expected_ns))
    }

    fn end_study(&mut self) {
        let Some((study, expected_ns)) = self.study.take() else { return };
        let Some(deciding) = self.plan.formats.deciding() else { return };
        let (measured, spent_ns, specimen) = study.end();
        let level = self.plan.place.level;
        deciding.learn(level, (specimen, &measured), expected_ns, spent_ns);
        if let Some(samples) = deciding.samples_to_train() {
            let (made, spent_ns) = train_on(&self.workshop, &samples);
            deciding.trained(made, spent_ns);
        }
        if let Some(open) = &mut self.open
            && deciding.wants_specimen()
        {
            open.builder.tap(SPECIMEN_BYTES, 0);
        }
    }

    /// Writes finished bytes if enough have gathered. A ticket means: come back when it is done.
    pub(crate) fn poll_write(&mut self, meter: &mut WorkMeter) -> Result<Option<Ticket>> {
        if self.in_flight.is_some()
            && let Some(ticket) = self.poll_flight()?
        {
            return Ok(Some(ticket));
        }
        match &self.open {
            Some(open) if open.builder.output_bytes() >= WRITE_BYTES => self.write(meter),
            _ => Ok(None),
        }
    }

    fn poll_flight(&mut self) -> Result<Option<Ticket>> {
        if let Some(ticket) = self.in_flight.take() {
            match ticket.take() {
                Some(outcome) => self.written(outcome)?,
                None => {
                    self.in_flight = Some(ticket.clone());
                    return Ok(Some(ticket));
                }
            }
        }
        Ok(None)
    }

    fn write(&mut self, meter: &mut WorkMeter) -> Result<Option<Ticket>> {
        let clock = &*self.workshop.world.environment;
        let Some(open) = &mut self.open else { return Ok(None) };
        let data = open.builder.take_output();
        let length = data.len() as u64;
        let (cause, level) = (self.plan.cause, self.plan.place.level);
        let codec = self.format.compression.codec;
        let request = IoRequest::Write { offset: open.offset, data };
        open.offset += length;
        let submission = meter.time(clock, Part::Io, || open.file.submit(request));
        let is_refused =
            matches!(&submission, Submission::Done(outcome) if outcome.result.is_err());
        if !is_refused {
            self.workshop.ledger.book_written(cause, level, codec as u8, length);
        }
        if open.offset - open.written_back_through >= WRITE_BACK_STRIDE_BYTES {
            let stride = open.offset - open.written_back_through;
            meter.time(clock, Part::Io, || {
                open.file.sync_range(open.written_back_through, stride)
            })?;
            open.written_back_through = open.offset;
        }
        self.settle(submission)
    }

    fn settle(&mut self, submission: Submission) -> Result<Option<Ticket>> {
        match submission {
            Submission::Done(outcome) => self.written(outcome).map(|()| None),
            Submission::Pending(ticket) => {
                self.in_flight = Some(ticket.clone());
                Ok(Some(ticket))
            }
        }
    }

    /// Takes the buffer of a write that has ended for the next one.
    fn written(&mut self, outcome: IoOutcome) -> Result<()> {
        if let Some(open) = &mut self.open {
            open.builder.recycle(outcome.buffer);
        }
        outcome.result
    }

    /// Ends the entries of the table at hand and gives it its range tombstones; the rest of the
    /// work is [`TableSink::poll_close`]'s.
    pub(crate) fn begin_close(
        &mut self,
        tombstones: &[RangeTombstoneSpan],
        newest_obsolete_sequence: SequenceNumber,
        cpu_ns: u64,
        meter: &mut WorkMeter,
    ) -> Result<()> {
        if self.open.is_none() && tombstones.is_empty() {
            return Ok(());
        }
        if self.open.is_none() {
            self.open = Some(self.create()?);
        }
        let clock = &*self.workshop.world.environment;
        let Some(open) = &mut self.open else { return Ok(()) };
        for tombstone in tombstones {
            open.builder.add_range_tombstone(
                &tombstone.start,
                &tombstone.end,
                tombstone.sequence,
            )?;
        }
        open.builder.set_newest_obsolete_sequence(newest_obsolete_sequence);
        open.builder.set_cpu_ns(cpu_ns);
        if let Some(deciding) = self.plan.formats.deciding()
            && open.builder.estimated_size_bytes() >= DECISION_TABLE_BYTES_MIN
            && let Some(text) = deciding.record_of(self.plan.place.level)
        {
            open.builder.set_decision(text);
        }
        open.summary = Some(open.builder.finish(meter, clock)?);
        Ok(())
    }

    /// Writes what is left of the table, syncs it and opens it for reading, one thing a call.
    pub(crate) fn poll_close(&mut self, meter: &mut WorkMeter) -> Result<CloseProgress> {
        if let Some(ticket) = self.poll_flight()? {
            return Ok(CloseProgress::Waiting(ticket));
        }
        let Some(open) = &mut self.open else { return Ok(CloseProgress::Closed) };
        if open.builder.output_bytes() > 0 {
            return self.write(meter).map(CloseProgress::of);
        }
        if planted!(TableUnsynced) {
            open.sync_submitted = true;
        }
        if !open.sync_submitted {
            open.sync_submitted = true;
            let clock = &*self.workshop.world.environment;
            let submission = meter.time(clock, Part::Io, || open.file.submit(IoRequest::SyncData));
            return self.settle(submission).map(CloseProgress::of);
        }
        self.finish_table(meter)?;
        Ok(CloseProgress::Closed)
    }

    fn finish_table(&mut self, meter: &mut WorkMeter) -> Result<()> {
        let Some(open) = &self.open else { return Ok(()) };
        let Some(summary) = &open.summary else {
            return Err(Error::invalid("a table is closed before its entries ended"));
        };
        let reader = self.workshop.open_table(open.number, meter)?;
        let metadata = metadata_of(open.number, summary, self.format.compression);
        // Only now: a table that cannot be opened is abandoned like any other.
        self.open = None;
        (self.format, self.dictionary) = self.plan.decide();
        self.finished.push(NewTable { metadata, reader });
        Ok(())
    }

    /// Tells a policy that measures what the job has taken.
    pub(crate) fn note_work(&self, cpu_ns: u64) {
        if let Some(deciding) = self.plan.formats.deciding() {
            let written = self.finished.iter().map(|table| table.metadata.raw_bytes).sum();
            deciding.note_work(cpu_ns, written);
        }
    }

    /// The tables finished so far.
    pub(crate) fn take_finished(&mut self) -> Vec<NewTable> {
        std::mem::take(&mut self.finished)
    }

    /// Removes every file that this sink has made; a failure to do so leaves an orphan, which the
    /// next open removes.
    pub(crate) fn abandon(&mut self) {
        if planted!(FailedJobLeavesFiles) {
            self.open = None;
            return;
        }
        let open = self.open.take().map(|open| open.number);
        let finished = self.take_finished().into_iter().map(|table| table.metadata.number);
        remove_tables(&self.workshop, finished.chain(open));
    }
}

/// Removes files that no version knows.
pub(crate) fn remove_tables(workshop: &Workshop, numbers: impl Iterator<Item = FileNumber>) {
    for number in numbers {
        let _ = workshop.world.files.remove(&workshop.table_path(number));
    }
}

/// How far the end of a table has come.
pub(crate) enum CloseProgress {
    /// Call again.
    More,
    /// Call again when the operation has ended.
    Waiting(Ticket),
    /// It is written, synced and open for reading.
    Closed,
}

impl CloseProgress {
    fn of(ticket: Option<Ticket>) -> Self {
        ticket.map_or(CloseProgress::More, CloseProgress::Waiting)
    }
}

/// What the manifest is to know of a table.
pub(crate) fn metadata_of(
    number: FileNumber,
    summary: &TableSummary,
    compression: Compression,
) -> FileMetadata {
    let properties = &summary.properties;
    let mut largest = &properties.largest_key;
    if planted!(LargestKeyTooSmall) {
        largest = &properties.smallest_key;
    }
    FileMetadata {
        number,
        table_id: summary.table_id,
        size_bytes: summary.size_bytes,
        raw_bytes: properties.data_raw_bytes,
        range: KeyRange {
            smallest: properties.smallest_key.as_slice().into(),
            largest: largest.as_slice().into(),
            largest_exclusive: properties.largest_key_exclusive != 0,
        },
        smallest_sequence: properties.smallest_sequence,
        largest_sequence: properties.largest_sequence,
        entries: properties.entries,
        tombstones: properties.deletes + properties.single_deletes,
        range_tombstones: properties.range_tombstones,
        compression,
        block_size_bytes: properties.block_size_bytes,
        dictionary: properties.stored_format().dictionary.flatten(),
        codec_debt: false,
        ingested: false,
        newest_obsolete_sequence: properties.newest_obsolete_sequence,
        write_times: properties.write_times(),
    }
}
