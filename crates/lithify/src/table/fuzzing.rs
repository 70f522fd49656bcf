//! The table's decoders one by one, for fuzz targets; only with the feature `fuzzing`.
//!
//! Every function takes bytes as they would come from a file, behind the checksum, and goes
//! through all that the rest of the engine could ask of them. What it returns is the decoder's
//! own answer; that it returns at all, in bounded memory, is what a fuzz target looks at.

use super::block::{self, Layout};
use super::builder::{TableBuilder, TableOptions};
use super::data_block::{DataBlock, DataBlockLayout, SteppedTo};
use super::dictionaries::TableDictionaries;
use super::filter::{FilterReader, hash_key};
use super::footer::{FOOTER_SIZE, Footer};
use super::index::IndexBlock;
use super::load::decode;
use super::parts::TableParts;
use super::properties::TableProperties;
use super::stored_block::{StoredBlock, Survey};
use super::tombstones::FragmentedTombstones;
use crate::base::{Clock, SEQUENCE_MAX, TableId, Trailer, ValueKind};
use crate::codec::{Compression, ContextPool};
use crate::format::Checksum;
use crate::fs::File;
use crate::stats::WorkMeter;
use crate::{Error, Result};
use bytes::Bytes;
use std::path::Path;
use std::sync::Arc;

/// Keys that every searched structure is asked for, beside those that it holds itself.
const PROBES: [&[u8]; 4] = [b"", b"m", b"key0100", &[0xff; 40]];

/// Steps backwards in a block.
const STEPS_BACK_MAX: usize = 100;

/// The blocks of a table by the name of their layout, decoded; what a fuzz target starts from.
///
/// # Errors
/// What a reader finds wrong with the table.
pub fn blocks(file: Arc<dyn File>, pool: Arc<ContextPool>) -> Result<Vec<(&'static str, Vec<u8>)>> {
    let mut parts = TableParts::open(file, pool)?;
    parts.check_footer()?;
    parts.load_dictionaries()?;
    let footer = parts.footer();
    let places = [
        ("filter", footer.filter, Layout::BlockedBloom),
        ("tombstones", footer.tombstones, Layout::Tombstones),
        ("index", Some(footer.index), footer.index_layout()),
        ("properties", Some(footer.properties), Layout::Properties),
    ];
    let mut blocks = Vec::new();
    for (name, handle, layout) in places {
        if let Some(handle) = handle {
            blocks.push((name, parts.block(handle, layout)?.raw));
        }
    }
    let mut records = Vec::new();
    parts.visit_records(&mut |record| records.push(*record))?;
    for record in records {
        blocks.push(("data_block", parts.data_block(&record)?.raw));
    }
    Ok(blocks)
}

/// A table with an index of two levels, however few rows it has: partitions are cut at
/// `partition_bytes`. Rows ascend by key; they are puts at sequence number 0, so that the table
/// can be ingested.
///
/// # Errors
/// What the builder refuses.
pub fn two_level_table(
    table_id: TableId,
    rows: &[(Vec<u8>, Vec<u8>)],
    (options, compression): (TableOptions, Compression),
    partition_bytes: usize,
    (pool, clock): (&Arc<ContextPool>, &dyn Clock),
) -> Result<Vec<u8>> {
    let mut builder = TableBuilder::new(options, table_id, pool.compressor(compression)?);
    builder.cut_index_at(0, partition_bytes);
    let mut meter = WorkMeter::default();
    for (key, value) in rows {
        builder.add(key, Trailer::new(0, ValueKind::Put), value, &mut meter, clock)?;
    }
    builder.finish(&mut meter, clock)?;
    Ok(builder.take_output())
}

/// The end of a table's file.
///
/// # Errors
/// [`crate::ErrorKind::Corruption`] or [`crate::ErrorKind::Unsupported`].
pub fn footer(bytes: &[u8]) -> Result<()> {
    let footer: &[u8; FOOTER_SIZE] =
        bytes.last_chunk().ok_or_else(|| Error::corruption("footer is cut"))?;
    Footer::decode(footer, bytes.len() as u64).map(drop)
}

/// Properties.
///
/// # Errors
/// As [`footer`].
pub fn properties(bytes: &[u8]) -> Result<()> {
    let properties = TableProperties::decode(bytes)?;
    // Names that it does not know are lost, and no others.
    let again = TableProperties::decode(&properties.encode())?;
    assert_eq!(again, properties);
    Ok(())
}

/// A block of the index: flat, top or partition.
///
/// # Errors
/// As [`footer`].
pub fn index(bytes: &[u8]) -> Result<()> {
    let index = IndexBlock::parse(bytes, u64::MAX)?;
    let mut result = Ok(());
    for number in 0..index.block_count() {
        let looked = index.record(number).map(drop).and(index.first_key(number).map(drop));
        let looked = looked.and(index.separator(number).and_then(|(key, trailer)| {
            let found = index.find(key, trailer)?;
            assert!(found <= index.block_count());
            Ok(())
        }));
        result = result.and(looked);
    }
    for key in PROBES {
        result = result.and(index.find(key, Trailer::seek(SEQUENCE_MAX)).map(drop));
    }
    result.and(index.last_separator().map(drop))
}

/// A filter.
///
/// # Errors
/// As [`footer`].
pub fn filter(bytes: &[u8]) -> Result<()> {
    let filter = FilterReader::parse(bytes)?;
    for key in PROBES {
        filter.may_contain(hash_key(key));
    }
    filter.may_contain(u64::MAX);
    Ok(())
}

/// A data block: both ways, by search, and as a compaction would copy it.
///
/// # Errors
/// As [`footer`].
pub fn data_block(bytes: &[u8]) -> Result<()> {
    let layout = DataBlockLayout::parse(bytes)?;
    let data = DataBlock::new(bytes, &layout);
    let mut key = Vec::new();
    let forwards = walk(&data, &mut key);
    let backwards = walk_back(&data, &mut key);
    let mut result = forwards.and(backwards);
    for probe in PROBES {
        let found = data.seek::<true>(probe, Trailer::seek(SEQUENCE_MAX), &mut key);
        result = result.and(found.map(drop));
    }
    result.and(survey(bytes, data))
}

/// Every entry, of which some are searched by their key.
fn walk(data: &DataBlock<'_>, key: &mut Vec<u8>) -> Result<()> {
    let mut next = Some(data.first(key)?);
    let mut built = Vec::new();
    while let Some(place) = next {
        let trailer = data.trailer(place.index())?;
        if place.index().is_power_of_two() {
            data.seek::<true>(key, trailer, &mut built)?;
        }
        next = data.next(&place, key)?;
    }
    Ok(())
}

/// The last entries; each step walks from a restart, and those may be far apart.
fn walk_back(data: &DataBlock<'_>, key: &mut Vec<u8>) -> Result<()> {
    let mut next = Some(data.last(key)?);
    let mut stepped = SteppedTo::default();
    for _ in 0..STEPS_BACK_MAX {
        let Some(place) = next else { break };
        data.trailer(place.index())?;
        next = data.previous(&place, key, &mut stepped)?.map(|(place, _)| place);
    }
    Ok(())
}

fn survey(bytes: &[u8], data: DataBlock<'_>) -> Result<()> {
    let index_record = super::index::IndexRecord {
        handle: block::BlockHandle::default(),
        raw_size: bytes.len() as u32,
        entry_count: data.layout().entry_count,
        largest_sequence: 0,
        codec: crate::codec::CodecId::None,
        dictionary: 0,
        flags: 0,
    };
    let block = StoredBlock {
        stored: bytes,
        of_bytes: Checksum::new(),
        dictionary: None,
        data,
        record: index_record,
        first_key: b"",
        separator: &[0xff; 8],
        path: Path::new("block"),
    };
    Survey::default().walk(&block, true, 3).map(drop)
}

/// A block as it is stored, behind one byte that says as what layout it is asked for. Its table's
/// id is all zeros, its offset 0.
///
/// # Errors
/// As [`footer`]; [`crate::ErrorKind::LimitExceeded`] where there is no memory for it.
pub fn stored_block(bytes: &[u8], pool: &Arc<ContextPool>) -> Result<()> {
    let Some((layout, stored)) = bytes.split_first() else {
        return Err(Error::corruption("no block"));
    };
    let layouts = [
        Layout::Data,
        Layout::FlatIndex,
        Layout::BlockedBloom,
        Layout::Tombstones,
        Layout::Properties,
        Layout::IndexPartition,
        Layout::TopIndex,
        Layout::Dictionary,
    ];
    let layout = layouts[usize::from(*layout) % layouts.len()];
    let checked = block::open(stored, layout, (&[0; 16], 0))?;
    let raw = decode(pool, &TableDictionaries::default(), checked, Vec::new())?;
    assert!(raw.len() <= layout.raw_size_max());
    Ok(())
}

/// Range tombstones.
///
/// # Errors
/// As [`footer`].
pub fn tombstones(bytes: &[u8]) -> Result<()> {
    let tombstones = FragmentedTombstones::parse(Bytes::copy_from_slice(bytes))?;
    for fragment in tombstones.fragments() {
        assert!(fragment.start < fragment.end);
        let newest = fragment.newest_visible(SEQUENCE_MAX);
        assert_eq!(tombstones.covering_sequence(fragment.start, SEQUENCE_MAX), newest);
    }
    for key in PROBES {
        tombstones.covering_sequence(key, 7);
        tombstones.overlaps(key, b"z");
    }
    Ok(())
}
