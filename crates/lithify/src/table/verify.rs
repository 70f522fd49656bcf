//! Reads a whole table and checks that everything in it agrees.

use super::block::BlockHandle;
use super::data_block::DataBlock;
use super::index::IndexBlock;
use super::reader::{ReadContext, TableReader, Verification};
use crate::base::{SequenceNumber, Trailer, compare_internal};
use crate::{Error, Result};
use std::cmp::Ordering;

/// What was seen of the entries so far.
struct Walk {
    key: Vec<u8>,
    trailer: Option<Trailer>,
    smallest_sequence: SequenceNumber,
    largest_sequence: SequenceNumber,
    /// Where the data blocks so far end.
    data_end: u64,
    done: Verification,
}

pub(super) fn verify(table: &TableReader, context: &mut ReadContext<'_>) -> Result<Verification> {
    let mut walk = Walk {
        key: Vec::new(),
        trailer: None,
        smallest_sequence: u64::MAX,
        largest_sequence: 0,
        data_end: 0,
        done: Verification::default(),
    };
    let bytes = table.index(context)?;
    let root = table.parse_index(&bytes)?;
    if table.has_partitions() {
        walk.partitions(table, &root, context)?;
    } else {
        walk.data_blocks(table, &root, table.footer().index, context)?;
    }
    for fragment in table.range_tombstones(context)?.fragments() {
        for sequence in fragment.sequences() {
            walk.note(sequence);
        }
    }
    walk.finish(table)
}

impl Walk {
    /// Every partition of a two-level index: they lie one behind the other up to the top index.
    fn partitions(
        &mut self,
        table: &TableReader,
        top: &IndexBlock<'_>,
        context: &mut ReadContext<'_>,
    ) -> Result<()> {
        let mut end = None;
        for number in 0..top.block_count() {
            let record = table.in_index(top.record(number))?;
            if end.is_some_and(|end| end != record.handle.offset) {
                return table.in_index(Err(Error::corruption("partitions have gaps")));
            }
            end = record.handle.end();
            let bytes = table.verified_partition(&record, context)?;
            let partition = table.parse_partition(&bytes, &record)?;
            let last = table.within(record.handle, partition.last_separator())?;
            if last != table.in_index(top.separator(number))? {
                return table.in_index(Err(Error::corruption("separator of a partition")));
            }
            self.data_blocks(table, &partition, record.handle, context)?;
        }
        match end {
            Some(end) if end == table.footer().index.offset => Ok(()),
            _ => table.in_index(Err(Error::corruption("partitions have gaps"))),
        }
    }

    /// Every data block of an index block that lies at `place`.
    fn data_blocks(
        &mut self,
        table: &TableReader,
        index: &IndexBlock<'_>,
        place: BlockHandle,
        context: &mut ReadContext<'_>,
    ) -> Result<()> {
        for number in 0..index.block_count() {
            let record = table.within(place, index.record(number))?;
            if record.handle.offset != self.data_end {
                return table.within(place, Err(Error::corruption("data blocks have gaps")));
            }
            self.data_end += u64::from(record.handle.stored_size);
            let frame = table.verified_data_block(&record, context)?;
            let first_key = table.within(place, index.first_key(number))?;
            let separator = table.within(place, index.separator(number))?;
            self.block(table, &frame, first_key, separator, context)
                .map_err(|error| error.at(table.file().path(), record.handle.offset))?;
            self.done.data_blocks += 1;
            self.done.data_stored_bytes += u64::from(record.handle.stored_size);
        }
        Ok(())
    }

    fn block(
        &mut self,
        table: &TableReader,
        frame: &[u8],
        first_key: &[u8],
        separator: (&[u8], Trailer),
        context: &mut ReadContext<'_>,
    ) -> Result<()> {
        let data = DataBlock::parse(frame)?;
        let mut key = Vec::new();
        let mut next = Some(data.first(&mut key)?);
        if key != first_key {
            return Err(Error::corruption("first key of a block is not what the index says"));
        }
        while let Some(place) = next {
            let trailer = data.trailer(place.index())?;
            let ascends = self.trailer.is_none_or(|last| {
                compare_internal((&self.key, last), (&key, trailer)) == Ordering::Less
            });
            if !ascends {
                return Err(Error::corruption("entries do not ascend"));
            }
            if !table.may_contain(&key, context)? {
                return Err(Error::corruption("filter does not hold a key of the table"));
            }
            self.note(trailer.sequence());
            self.done.entries += 1;
            self.done.user_keys += u64::from(self.trailer.is_none() || key != self.key);
            self.key.clear();
            self.key.extend_from_slice(&key);
            self.trailer = Some(trailer);
            next = data.next(&place, &mut key)?;
        }
        let last = (&self.key[..], self.trailer.unwrap_or(Trailer(0)));
        if compare_internal(last, separator) == Ordering::Greater {
            return Err(Error::corruption("separator sorts before its block's last entry"));
        }
        Ok(())
    }

    fn note(&mut self, sequence: SequenceNumber) {
        self.smallest_sequence = self.smallest_sequence.min(sequence);
        self.largest_sequence = self.largest_sequence.max(sequence);
    }

    fn finish(self, table: &TableReader) -> Result<Verification> {
        let properties = table.properties();
        let said = (
            properties.entries,
            properties.data_blocks,
            properties.data_stored_bytes,
            match table.assigned_sequence() {
                Some(sequence) => (sequence, sequence),
                None => (properties.smallest_sequence, properties.largest_sequence),
            },
        );
        let found = (
            self.done.entries,
            self.done.data_blocks,
            self.done.data_stored_bytes,
            (self.smallest_sequence, self.largest_sequence),
        );
        if said != found {
            return Err(Error::corruption("properties do not fit the table")
                .in_file(table.file().path())
                .expected(format_args!("{said:?}"), format_args!("{found:?}")));
        }
        Ok(self.done)
    }
}
