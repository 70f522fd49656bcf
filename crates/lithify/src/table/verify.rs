//! Reads a whole table and checks that everything in it agrees.
//!
//! One walk serves two callers: who wants the first thing that is wrong ends it there, who wants
//! all of it goes on. Behind a part that is damaged the walk goes on with the next one; what can
//! only be known with all parts at hand is then left out.

use super::block::BlockHandle;
use super::data_block::{DataBlock, DataBlockLayout};
use super::dictionaries::property_of;
use super::filter::hash_key;
use super::footer::{FOOTER_SIZE, Footer};
use super::index::{FLAG_ALL_PUTS, FLAG_SEQUENCES_ZERO, IndexBlock, IndexRecord};
use super::reader::{ReadContext, TableReader, Verification};
use super::tombstones::FragmentedTombstones;
use crate::base::{SequenceNumber, Trailer, ValueKind, compare_internal};
use crate::codec::ContextPool;
use crate::fs::File;
use crate::{Error, Result};
use std::cmp::Ordering;
use std::sync::Arc;

/// A part of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TablePart {
    Footer,
    Properties,
    Dictionary,
    Filter,
    RangeTombstones,
    Index,
    DataBlock,
}

/// Something that is wrong with a table.
#[derive(Debug)]
pub(crate) struct TableFinding {
    pub(crate) part: TablePart,
    pub(crate) error: Error,
    /// The smallest and the largest user key that what cannot be read may have, if it held entries
    /// and as far as the index knows.
    pub(crate) lost: Option<(Vec<u8>, Vec<u8>)>,
}

/// Hears what the walk over a table comes to. An error ends the walk.
pub(crate) trait TableExaminer {
    /// Something is wrong.
    fn found(&mut self, finding: TableFinding) -> Result<()>;

    /// So many more bytes of the file have been looked at.
    fn went_through(&mut self, _bytes: u64) -> Result<()> {
        Ok(())
    }

    /// A data block that is whole and in its place, decoded.
    fn block(&mut self, _raw: &[u8]) -> Result<()> {
        Ok(())
    }

    /// The range tombstones.
    fn tombstones(&mut self, _tombstones: &FragmentedTombstones) -> Result<()> {
        Ok(())
    }
}

/// Ends the walk at the first finding.
struct First;

impl TableExaminer for First {
    fn found(&mut self, finding: TableFinding) -> Result<()> {
        Err(finding.error)
    }
}

pub(super) fn verify(table: &TableReader, context: &mut ReadContext<'_>) -> Result<Verification> {
    walk(table, true, context, &mut First)
}

/// Examines a table to its end, whatever is wrong with it. The table, if its footer is whole, as
/// far as it can be read, and what was gone through; properties that are damaged are empty.
pub(crate) fn examine_table(
    file: Arc<dyn File>,
    pool: Arc<ContextPool>,
    assigned_sequence: SequenceNumber,
    context: &mut ReadContext<'_>,
    examiner: &mut dyn TableExaminer,
) -> Result<Option<(Arc<TableReader>, Verification)>> {
    let (table, damage) = match TableReader::open_as_far_as_whole(file, pool) {
        Ok(opened) => opened,
        Err(error) => {
            examiner.found(TableFinding { part: TablePart::Footer, error, lost: None })?;
            return Ok(None);
        }
    };
    table.assign_sequence(assigned_sequence);
    let has_properties = damage.iter().all(|(part, _)| *part != TablePart::Properties);
    for (part, error) in damage {
        examiner.found(TableFinding { part, error, lost: None })?;
    }
    let done = walk(&table, has_properties, context, examiner)?;
    Ok(Some((table, done)))
}

fn walk(
    table: &TableReader,
    has_properties: bool,
    context: &mut ReadContext<'_>,
    examiner: &mut dyn TableExaminer,
) -> Result<Verification> {
    let mut walk = Walk {
        table,
        examiner,
        has_filter: false,
        is_complete: true,
        last: None,
        smallest_key: None,
        bound: None,
        sums: Sums::new(),
        data_end: Some(0),
        seen_bytes: 0,
        done: Verification::default(),
    };
    let index = table.index(context);
    // Without the index nothing leads to the data; a filter that cannot be read is told of all
    // the same.
    walk.look_at_filter(context)?;
    match index.and_then(|bytes| Ok((table.parse_index(&bytes)?.block_count(), bytes))) {
        Ok((_, bytes)) => walk.index(&table.parse_index(&bytes)?, context)?,
        Err(error) => {
            let properties = table.properties();
            let lost = (properties.smallest_key.clone(), properties.largest_key.clone());
            walk.lose(TablePart::Index, error, has_properties.then_some(lost))?;
        }
    }
    match table.range_tombstones(context) {
        Ok(tombstones) => walk.look_at_tombstones(&tombstones)?,
        Err(error) => walk.lose(TablePart::RangeTombstones, error, None)?,
    }
    if walk.is_complete && has_properties {
        walk.compare_properties()?;
    }
    let rest = table.size_bytes().saturating_sub(walk.seen_bytes);
    walk.examiner.went_through(rest)?;
    Ok(walk.done)
}

/// What the entries and range tombstones add up to, as the properties have it.
#[derive(Default)]
struct Sums {
    deletes: u64,
    single_deletes: u64,
    key_bytes: u64,
    value_bytes: u64,
    data_raw_bytes: u64,
    smallest_sequence: SequenceNumber,
    largest_sequence: SequenceNumber,
    /// The first key of the range tombstones and the first one behind them.
    deleted: Option<(Vec<u8>, Vec<u8>)>,
}

impl Sums {
    fn new() -> Self {
        Sums { smallest_sequence: u64::MAX, ..Sums::default() }
    }

    /// Counts an entry; takes away the flags that a block with it cannot have.
    fn note_entry(&mut self, trailer: Trailer, key_size: usize, value_size: usize, flags: &mut u8) {
        self.note(trailer.sequence());
        match trailer.kind() {
            Some(ValueKind::Delete) => self.deletes += 1,
            Some(ValueKind::SingleDelete) => self.single_deletes += 1,
            _ => {}
        }
        if trailer.kind() != Some(ValueKind::Put) {
            *flags &= !FLAG_ALL_PUTS;
        }
        if trailer.sequence() != 0 {
            *flags &= !FLAG_SEQUENCES_ZERO;
        }
        self.key_bytes += key_size as u64;
        self.value_bytes += value_size as u64;
    }

    fn add(&mut self, block: &Sums) {
        self.deletes += block.deletes;
        self.single_deletes += block.single_deletes;
        self.key_bytes += block.key_bytes;
        self.value_bytes += block.value_bytes;
        self.note(block.smallest_sequence);
        self.note(block.largest_sequence);
    }

    fn note(&mut self, sequence: SequenceNumber) {
        self.smallest_sequence = self.smallest_sequence.min(sequence);
        self.largest_sequence = self.largest_sequence.max(sequence);
    }
}

/// What was seen of the entries so far.
struct Walk<'t, 'e> {
    table: &'t TableReader,
    examiner: &'e mut dyn TableExaminer,
    has_filter: bool,
    /// Whether nothing was lost so far.
    is_complete: bool,
    /// The last entry of the last block that was whole.
    last: Option<(Vec<u8>, Trailer)>,
    smallest_key: Option<Vec<u8>>,
    /// The separator of the block before: the next one begins behind it.
    bound: Option<(Vec<u8>, Trailer)>,
    sums: Sums,
    /// Where the data blocks so far end; `None` behind a partition that cannot be read.
    data_end: Option<u64>,
    seen_bytes: u64,
    done: Verification,
}

impl Walk<'_, '_> {
    fn found(&mut self, part: TablePart, error: Error) -> Result<()> {
        self.examiner.found(TableFinding { part, error, lost: None })
    }

    /// Something that holds entries cannot be read.
    fn lose(
        &mut self,
        part: TablePart,
        error: Error,
        lost: Option<(Vec<u8>, Vec<u8>)>,
    ) -> Result<()> {
        self.is_complete = false;
        self.examiner.found(TableFinding { part, error, lost })
    }

    fn in_index(&self, error: Error) -> Error {
        error.at(self.table.file().path(), self.table.footer().index.offset)
    }

    fn go_through(&mut self, handle: BlockHandle) -> Result<()> {
        let bytes = u64::from(handle.stored_size);
        self.seen_bytes += bytes;
        self.examiner.went_through(bytes)
    }

    /// Reads the filter, so that keys can be looked up in it.
    fn look_at_filter(&mut self, context: &mut ReadContext<'_>) -> Result<()> {
        if self.table.footer().filter.is_none() {
            return Ok(());
        }
        match self.table.may_contain_hash(hash_key(b""), context) {
            Ok(_) => {
                self.has_filter = true;
                Ok(())
            }
            Err(error) => self.found(TablePart::Filter, error),
        }
    }

    fn index(&mut self, root: &IndexBlock<'_>, context: &mut ReadContext<'_>) -> Result<()> {
        let footer = *self.table.footer();
        let partitions = match self.table.has_partitions() {
            true => self.partitions(root, context)?,
            false => {
                self.data_blocks(root, footer.index, context)?;
                None
            }
        };
        self.check_layout(&footer, partitions)
    }

    /// The parts of a table lie one behind the other: no byte is outside of all checksums.
    fn check_layout(&mut self, footer: &Footer, partitions: Option<(u64, u64)>) -> Result<()> {
        let Some(data_end) = self.data_end else { return Ok(()) };
        let handles = [
            footer.filter,
            footer.tombstones,
            Some(footer.index),
            footer.dictionaries(),
            Some(footer.properties),
        ];
        let ends = |handle: BlockHandle| Some((handle.offset, handle.end()?));
        let mut parts: Vec<_> = handles.into_iter().flatten().filter_map(ends).collect();
        parts.extend(partitions);
        parts.push((footer.file_size - FOOTER_SIZE as u64, footer.file_size));
        parts.sort_unstable();
        let mut end = data_end;
        for (part_start, part_end) in parts {
            if part_start != end {
                let what = "parts of the table overlap, or bytes lie between them";
                let error =
                    Error::corruption(what).at(self.table.file().path(), end.min(part_start));
                return self.found(TablePart::Footer, error);
            }
            end = part_end;
        }
        Ok(())
    }

    /// Every partition of a two-level index: they lie one behind the other up to the top index.
    /// Where they begin and end.
    fn partitions(
        &mut self,
        top: &IndexBlock<'_>,
        context: &mut ReadContext<'_>,
    ) -> Result<Option<(u64, u64)>> {
        let (mut first, mut end) = (None, None);
        let mut before = self.table.properties().smallest_key.clone();
        for number in 0..top.block_count() {
            let separator = top.separator(number).map(|(key, trailer)| (key.to_vec(), trailer));
            let record = separator.and_then(|separator| Ok((top.record(number)?, separator)));
            let (record, separator) = match record {
                Ok(found) => found,
                Err(error) => {
                    let error = self.in_index(error);
                    self.lose(TablePart::Index, error, None)?;
                    (end, self.data_end) = (None, None);
                    continue;
                }
            };
            if end.is_some_and(|end| end != record.handle.offset) {
                let error = self.in_index(Error::corruption("partitions have gaps"));
                self.found(TablePart::Index, error)?;
            }
            first.get_or_insert(record.handle.offset);
            end = record.handle.end();
            self.go_through(record.handle)?;
            if let Err(error) = self.partition(&record, (&separator.0, separator.1), context)? {
                self.data_end = None;
                self.lose(TablePart::Index, error, Some((before, separator.0.clone())))?;
            }
            before = separator.0;
        }
        if end != Some(self.table.footer().index.offset) {
            let error = self.in_index(Error::corruption("partitions have gaps"));
            self.found(TablePart::Index, error)?;
        }
        Ok(first.zip(end))
    }

    /// One partition and the data blocks under it. The inner error is of a partition that cannot
    /// be read.
    fn partition(
        &mut self,
        record: &IndexRecord,
        separator: (&[u8], Trailer),
        context: &mut ReadContext<'_>,
    ) -> Result<Result<()>> {
        let table = self.table;
        let bytes = match table.verified_partition(record, context) {
            Ok(bytes) => bytes,
            Err(error) => return Ok(Err(error)),
        };
        let partition = match table.parse_partition(&bytes, record).and_then(|partition| {
            table.within(record.handle, partition.last_separator()).map(|last| (partition, last))
        }) {
            Ok((partition, last)) => {
                if last != separator {
                    let error = self.in_index(Error::corruption("separator of a partition"));
                    self.found(TablePart::Index, error)?;
                }
                partition
            }
            Err(error) => return Ok(Err(error)),
        };
        self.data_blocks(&partition, record.handle, context)?;
        Ok(Ok(()))
    }

    /// Every data block of an index block that lies at `place`.
    fn data_blocks(
        &mut self,
        index: &IndexBlock<'_>,
        place: BlockHandle,
        context: &mut ReadContext<'_>,
    ) -> Result<()> {
        for number in 0..index.block_count() {
            let record = index.record(number).and_then(|record| {
                Ok((record, index.first_key(number)?, index.separator(number)?))
            });
            let (record, first_key, separator) = match self.table.within(place, record) {
                Ok(found) => found,
                Err(error) => {
                    self.data_end = None;
                    self.lose(TablePart::Index, error, None)?;
                    continue;
                }
            };
            if self.data_end.is_some_and(|end| end != record.handle.offset) {
                let error = Error::corruption("data blocks have gaps");
                self.found(TablePart::Index, error.at(self.table.file().path(), place.offset))?;
            }
            self.data_end = record.handle.end();
            self.go_through(record.handle)?;
            let examined = self.data_block(&record, first_key, separator, context)?;
            self.bound = Some((separator.0.to_vec(), separator.1));
            if let Err(error) = examined {
                let error = error.at(self.table.file().path(), record.handle.offset);
                let lost = Some((first_key.to_vec(), separator.0.to_vec()));
                self.lose(TablePart::DataBlock, error, lost)?;
            }
        }
        Ok(())
    }

    /// The inner error is of a block that cannot be used.
    fn data_block(
        &mut self,
        record: &IndexRecord,
        first_key: &[u8],
        separator: (&[u8], Trailer),
        context: &mut ReadContext<'_>,
    ) -> Result<Result<()>> {
        let frame = match self.table.verified_data_block(record, context) {
            Ok(frame) => frame,
            Err(error) => return Ok(Err(error)),
        };
        let block = match self.entries(&frame, record, first_key, context) {
            Ok(block) => block,
            Err(error) => return Ok(Err(error)),
        };
        if compare_internal((&block.last.0, block.last.1), separator) == Ordering::Greater {
            let what = "separator sorts before its block's last entry";
            return Ok(Err(Error::corruption(what)));
        }
        if let Some(key) = block.not_in_filter {
            let handle = self.table.footer().filter.unwrap_or_default();
            let what = format!("filter does not hold the table's key \"{}\"", key.escape_ascii());
            let error = Error::corruption(what).at(self.table.file().path(), handle.offset);
            self.found(TablePart::Filter, error)?;
            // One complaint tells that the filter is wrong.
            self.has_filter = false;
        }
        self.smallest_key.get_or_insert_with(|| first_key.to_vec());
        self.last = Some(block.last);
        self.sums.add(&block.sums);
        self.sums.data_raw_bytes += u64::from(record.raw_size);
        self.done.entries += u64::from(record.entry_count);
        self.done.user_keys += block.user_keys;
        self.done.data_blocks += 1;
        self.done.data_stored_bytes += u64::from(record.handle.stored_size);
        self.examiner.block(&frame)?;
        Ok(Ok(()))
    }

    /// Goes through the entries of a block.
    fn entries(
        &self,
        frame: &[u8],
        record: &IndexRecord,
        first_key: &[u8],
        context: &mut ReadContext<'_>,
    ) -> Result<WalkedBlock> {
        let layout = DataBlockLayout::parse(frame)?;
        let data = DataBlock::new(frame, &layout);
        let mut key = Vec::new();
        let mut next = Some(data.first(&mut key)?);
        if key != first_key {
            return Err(Error::corruption("first key of a block is not what the index says"));
        }
        let mut block = WalkedBlock::new();
        let mut before = self.last.as_ref().map(|(key, trailer)| (key.clone(), *trailer));
        let mut bound = self.bound.as_ref();
        let mut flags = FLAG_ALL_PUTS | FLAG_SEQUENCES_ZERO;
        while let Some(place) = next {
            let trailer = data.trailer(place.index())?;
            let is_behind = |last: &(Vec<u8>, Trailer)| {
                compare_internal((&last.0, last.1), (&key, trailer)) == Ordering::Less
            };
            if !before.as_ref().is_none_or(is_behind) {
                return Err(Error::corruption("entries do not ascend"));
            }
            if !bound.take().is_none_or(is_behind) {
                return Err(Error::corruption("block begins before the separator in front of it"));
            }
            block.user_keys += u64::from(before.as_ref().is_none_or(|(last, _)| *last != key));
            if self.has_filter && !self.is_in_filter(&key, context)? {
                block.not_in_filter.get_or_insert_with(|| key.clone());
            }
            block.sums.note_entry(trailer, key.len(), place.value_range().len(), &mut flags);
            match &mut before {
                Some((last, last_trailer)) => {
                    last.clone_from(&key);
                    *last_trailer = trailer;
                }
                None => before = Some((key.clone(), trailer)),
            }
            next = data.next(&place, &mut key)?;
        }
        self.compare_record(record, &block.sums, flags)?;
        if let Some(last) = before {
            block.last = last;
        }
        Ok(block)
    }

    /// Whether the filter has the key, and its prefix if the table has prefixes.
    fn is_in_filter(&self, key: &[u8], context: &mut ReadContext<'_>) -> Result<bool> {
        let holds = self.table.may_contain(key, context)?;
        Ok(holds && self.table.prefix_may_match(key, context)?)
    }

    /// Whether the index knows the truth about the entries of a block.
    fn compare_record(&self, record: &IndexRecord, sums: &Sums, flags: u8) -> Result<()> {
        if record.flags & FLAG_ALL_PUTS & !flags != 0 {
            return Err(Error::corruption("block has other entries than puts, against its index"));
        }
        // In the file the numbers of these entries are others.
        if self.table.assigned_sequence().is_some() {
            return Ok(());
        }
        if record.flags & FLAG_SEQUENCES_ZERO & !flags != 0 {
            return Err(Error::corruption("block has sequence numbers, against its index"));
        }
        if record.largest_sequence != sums.largest_sequence {
            return Err(Error::corruption("largest sequence number of a block")
                .expected(record.largest_sequence, sums.largest_sequence));
        }
        Ok(())
    }

    fn look_at_tombstones(&mut self, tombstones: &FragmentedTombstones) -> Result<()> {
        for fragment in tombstones.fragments() {
            for sequence in fragment.sequences() {
                self.sums.note(sequence);
            }
            let (start, end) = (fragment.start.to_vec(), fragment.end.to_vec());
            match &mut self.sums.deleted {
                Some((_, last_end)) => *last_end = end,
                deleted => *deleted = Some((start, end)),
            }
        }
        self.examiner.tombstones(tombstones)
    }

    /// Whether the table says the truth about itself.
    fn compare_properties(&mut self) -> Result<()> {
        let (said, sums, done) = (self.table.properties(), &self.sums, &self.done);
        let sequences = match self.table.assigned_sequence() {
            Some(sequence) => (sequence, sequence),
            None => (said.smallest_sequence, said.largest_sequence),
        };
        let pairs = [
            ("entries", said.entries, done.entries),
            ("deletes", said.deletes, sums.deletes),
            ("single_deletes", said.single_deletes, sums.single_deletes),
            ("key_bytes", said.key_bytes, sums.key_bytes),
            ("value_bytes", said.value_bytes, sums.value_bytes),
            ("data_blocks", said.data_blocks, done.data_blocks),
            ("data_raw_bytes", said.data_raw_bytes, sums.data_raw_bytes),
            ("data_stored_bytes", said.data_stored_bytes, done.data_stored_bytes),
            ("smallest_sequence", sequences.0, sums.smallest_sequence),
            ("largest_sequence", sequences.1, sums.largest_sequence),
        ];
        let mut wrong: Vec<Error> = Vec::new();
        for (name, said, found) in pairs {
            if said != found {
                wrong.push(unfit(name).expected(said, found));
            }
        }
        let said_largest = (&said.largest_key[..], said.largest_key_exclusive != 0);
        let (smallest, largest) = self.bounds();
        let escaped = |key: &[u8]| format!("\"{}\"", key.escape_ascii());
        if said.smallest_key != smallest {
            let error = unfit("smallest_key");
            wrong.push(error.expected(escaped(&said.smallest_key), escaped(smallest)));
        }
        if said_largest != largest {
            let error = unfit("largest_key");
            wrong.push(error.expected(escaped(said_largest.0), escaped(largest.0)));
        }
        if said.dictionaries != property_of(self.table.dictionaries.iter()) {
            wrong.push(unfit("dictionaries"));
        }
        if (said.range_tombstones > 0) != sums.deleted.is_some() {
            wrong.push(unfit("range_tombstones"));
        }
        let offset = self.table.footer().properties.offset;
        for error in wrong {
            self.found(TablePart::Properties, error.at(self.table.file().path(), offset))?;
        }
        Ok(())
    }

    /// The smallest key, and the largest one or the end of the last range tombstone.
    fn bounds(&self) -> (&[u8], (&[u8], bool)) {
        let deleted = self.sums.deleted.as_ref();
        let first = self.smallest_key.as_deref().into_iter();
        let smallest = first.chain(deleted.map(|(start, _)| &start[..])).min();
        let last = self.last.as_ref().map(|(key, _)| &key[..]);
        let largest = match deleted {
            Some((_, end)) if last.is_none_or(|last| last < &end[..]) => (&end[..], true),
            _ => (last.unwrap_or_default(), false),
        };
        (smallest.unwrap_or_default(), largest)
    }
}

fn unfit(name: &str) -> Error {
    Error::corruption(format!("property {name} does not fit the table"))
}

/// What a block was found to hold.
struct WalkedBlock {
    user_keys: u64,
    last: (Vec<u8>, Trailer),
    sums: Sums,
    not_in_filter: Option<Vec<u8>>,
}

impl WalkedBlock {
    fn new() -> Self {
        WalkedBlock {
            user_keys: 0,
            last: (Vec::new(), Trailer(0)),
            sums: Sums::new(),
            not_in_filter: None,
        }
    }
}
