//! Tables: footer, meta blocks, properties, and every data block.

use super::dump::Output;
use super::item::Item;
use super::log::{hex, kind_name};
use crate::base::{Clock, MemoryBudget, Trailer, ValueKind};
use crate::codec::{CodecId, ContextPool};
use crate::format::read_u32;
use crate::fs::{File, read_exact_at};
use crate::table::{
    BlockHandle, FLAG_ALL_PUTS, FLAG_RAW_FALLBACK, FLAG_SEQUENCES_ZERO, FOOTER_SIZE, FilterReader,
    Footer, IndexRecord, Layout, PartBlock, PropertyValue, ReadContext, TABLE_MAGIC, TableIndex,
    TableParts, TableProperties, TableReader, data_header, visit_entries,
};
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Codec contexts of a run that reads one file are small beside this.
const CONTEXT_BYTES: usize = 16 << 20;

/// Reads are not timed here, and nothing asks for the time.
pub(crate) struct NoClock;

impl Clock for NoClock {
    fn now_us(&self) -> u64 {
        0
    }
    fn thread_cpu_ns(&self) -> u64 {
        0
    }
    fn ticks(&self) -> u64 {
        0
    }
    fn unix_time_s(&self) -> u64 {
        0
    }
}

/// A pool for one inspection.
pub(crate) fn context_pool() -> Arc<ContextPool> {
    ContextPool::new(MemoryBudget::new(CONTEXT_BYTES))
}

/// What the data blocks of one codec add up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct BlockSum {
    blocks: u64,
    raw_bytes: u64,
    stored_bytes: u64,
    fallback_blocks: u64,
}

/// What is found of data blocks, by codec.
type BlockSums = BTreeMap<CodecId, BlockSum>;

pub(super) fn dump(file: &Arc<dyn File>, output: &mut Output<'_>) -> Result<()> {
    let pool = context_pool();
    let mut parts = TableParts::open(Arc::clone(file), Arc::clone(&pool))?;
    output.put(footer_item(&parts, file)?)?;
    parts.check_footer()?;
    dump_properties(&parts, output)?;
    dump_dictionaries(&mut parts, output)?;
    dump_filter(&parts, output)?;
    dump_tombstones(&parts, output)?;
    dump_index(&parts, output)?;
    if !output.has_damage() {
        verify(file, pool, output)?;
    }
    Ok(())
}

/// Checks that parts which are whole also agree with each other.
fn verify(file: &Arc<dyn File>, pool: Arc<ContextPool>, output: &mut Output<'_>) -> Result<()> {
    let verified = TableReader::open(Arc::clone(file), None, pool)
        .and_then(|table| table.verify(&mut ReadContext::new(&NoClock)));
    match verified {
        Ok(_) => Ok(()),
        Err(error) => output.note_damage(error),
    }
}

fn footer_item(parts: &TableParts, file: &Arc<dyn File>) -> Result<Item> {
    let footer: &Footer = parts.footer();
    let bytes = read_exact_at(&**file, parts.footer_offset(), FOOTER_SIZE)?;
    let checksum = read_u32(&bytes, FOOTER_SIZE - 12).unwrap_or_default();
    let handle = |handle: Option<BlockHandle>| match handle {
        Some(handle) => format!("offset {}, stored size {}", handle.offset, handle.stored_size),
        None => "absent".to_string(),
    };
    Ok(Item::long("footer")
        .at(parts.footer_offset())
        .text("table_id", hex(&footer.table_id))
        .text("filter", handle(footer.filter))
        .text("tombstones", handle(footer.tombstones))
        .text("index", handle(Some(footer.index)))
        .text("properties", handle(Some(footer.properties)))
        .number("file_size", footer.file_size)
        .bits("compatible", footer.features.compatible)
        .bits("read_only_compatible", footer.features.read_only_compatible)
        .bits("incompatible", footer.features.incompatible)
        .number("version", footer.version)
        .number("dictionaries_size", footer.dictionaries_size)
        .bits("checksum", checksum)
        .bytes("magic", TABLE_MAGIC, true))
}

/// Reads a block and hands out its trailer; `None` if it is damaged, which is noted.
fn meta_block(
    parts: &TableParts,
    name: &'static str,
    handle: BlockHandle,
    layout: Layout,
    output: &mut Output<'_>,
) -> Result<Option<PartBlock>> {
    match parts.block(handle, layout) {
        Ok(block) => {
            let item = Item::line(name, 0).at(handle.offset);
            let item = item.number("stored_size", handle.stored_size);
            output.put(add_trailer(item, layout, &block))?;
            Ok(Some(block))
        }
        Err(error) => output.note_damage(error).map(|()| None),
    }
}

/// As the name of the dictionary begins, but for the bytes' order; 0 without one.
fn dictionary_id(id: u32) -> String {
    if id == 0 { "0".to_string() } else { format!("{id:08x}") }
}

fn dump_dictionaries(parts: &mut TableParts, output: &mut Output<'_>) -> Result<()> {
    if let Err(error) = parts.load_dictionaries() {
        output.note_damage(error)?;
    }
    for (handle, dictionary) in parts.dictionaries() {
        let item = Item::line("dictionary_block", 0)
            .at(handle.offset)
            .number("stored_size", handle.stored_size)
            .text("name", dictionary.hash().to_string())
            .text("id", dictionary_id(dictionary.id()))
            .number("size_bytes", dictionary.content().len() as u64);
        output.put(item)?;
    }
    Ok(())
}

fn add_trailer(item: Item, layout: Layout, block: &PartBlock) -> Item {
    item.number("layout", layout as u8)
        .text("codec", block.codec.name())
        .text("dictionary_id", dictionary_id(block.dictionary))
        .number("raw_size", block.raw.len() as u64)
        .bits("checksum", block.checksum)
}

fn dump_properties(parts: &TableParts, output: &mut Output<'_>) -> Result<()> {
    let (handle, layout) = (parts.footer().properties, Layout::Properties);
    let Some(block) = meta_block(parts, "properties_block", handle, layout, output)? else {
        return Ok(());
    };
    match parts.parse_properties(&block) {
        Ok(properties) => output.put(properties_item(&properties, handle, output.options.full)),
        Err(error) => output.note_damage(error),
    }
}

fn properties_item(properties: &TableProperties, handle: BlockHandle, full: bool) -> Item {
    let mut item = Item::long("properties").at(handle.offset);
    properties.visit(&mut |name, value| {
        let before = std::mem::replace(&mut item, Item::long("properties"));
        item = match value {
            PropertyValue::Unsigned(number) => before.number(name, number),
            PropertyValue::Signed(number) => before.signed(name, number),
            PropertyValue::Bytes(bytes) => before.bytes(name, bytes, full),
        };
    });
    item
}

fn dump_filter(parts: &TableParts, output: &mut Output<'_>) -> Result<()> {
    let Some(handle) = parts.footer().filter else {
        return Ok(());
    };
    let layout = Layout::BlockedBloom;
    let Some(block) = meta_block(parts, "filter_block", handle, layout, output)? else {
        return Ok(());
    };
    match parts.within(handle, FilterReader::parse(&block.raw)) {
        Ok(filter) => output.put(
            Item::line("filter", 1)
                .number("probe_count", filter.probe_count())
                .number("block_count", filter.block_count()),
        ),
        Err(error) => output.note_damage(error),
    }
}

fn dump_tombstones(parts: &TableParts, output: &mut Output<'_>) -> Result<()> {
    let Some(handle) = parts.footer().tombstones else {
        return Ok(());
    };
    let layout = Layout::Tombstones;
    let Some(block) = meta_block(parts, "tombstone_block", handle, layout, output)? else {
        return Ok(());
    };
    let tombstones = match parts.parse_tombstones(handle, block) {
        Ok(tombstones) => tombstones,
        Err(error) => return output.note_damage(error),
    };
    let full = output.options.full;
    for fragment in tombstones.fragments() {
        if output.admits("fragment") {
            let sequences: Vec<String> = fragment.sequences().map(|s| s.to_string()).collect();
            output.put(
                Item::line("fragment", 1)
                    .bytes("start", fragment.start, full)
                    .bytes("end", fragment.end, full)
                    .text("sequences", sequences.join(",")),
            )?;
        }
    }
    Ok(())
}

/// The index, and the data blocks under it.
fn dump_index(parts: &TableParts, output: &mut Output<'_>) -> Result<()> {
    let (handle, layout) = (parts.footer().index, parts.footer().index_layout());
    let Some(block) = meta_block(parts, "index_block", handle, layout, output)? else {
        return Ok(());
    };
    let mut sums = BTreeMap::new();
    match parts.parse_index(block) {
        Ok(top) if parts.footer().has_two_level_index() => {
            dump_partitions(parts, &top, &mut sums, output)?;
        }
        Ok(index) => dump_data(parts, &index, &mut sums, output)?,
        Err(error) => output.note_damage(error)?,
    }
    for (codec, sum) in sums {
        output.put(
            Item::line("data_blocks", 0)
                .text("codec", codec.name())
                .number("blocks", sum.blocks)
                .number("raw_bytes", sum.raw_bytes)
                .number("stored_bytes", sum.stored_bytes)
                .number("fallback_blocks", sum.fallback_blocks)
                .text("checksums", "right"),
        )?;
    }
    Ok(())
}

fn dump_partitions(
    parts: &TableParts,
    top: &TableIndex,
    sums: &mut BlockSums,
    output: &mut Output<'_>,
) -> Result<()> {
    for number in 0..parts.within(top.handle, top.block_count())? {
        let record = match parts.within(top.handle, top.record(number)) {
            Ok(record) => record,
            Err(error) => {
                output.note_damage(error)?;
                continue;
            }
        };
        let (handle, layout) = (record.handle, Layout::IndexPartition);
        let Some(block) = meta_block(parts, "index_partition", handle, layout, output)? else {
            continue;
        };
        match parts.parse_partition(block, &record) {
            Ok(partition) => dump_data(parts, &partition, sums, output)?,
            Err(error) => output.note_damage(error)?,
        }
    }
    Ok(())
}

fn dump_data(
    parts: &TableParts,
    index: &TableIndex,
    sums: &mut BlockSums,
    output: &mut Output<'_>,
) -> Result<()> {
    let place = index.handle;
    for number in 0..parts.within(place, index.block_count())? {
        let record = parts.within(place, index.record(number));
        let item = record.and_then(|record| {
            let item = parts.within(place, index_item(index, number, &record, output))?;
            Ok((record, item))
        });
        let (record, item) = match item {
            Ok(found) => found,
            Err(error) => {
                output.note_damage(error)?;
                continue;
            }
        };
        let shown = output.options.blocks && output.admits("block");
        if shown {
            output.put(item)?;
        }
        if let Some(block) = dump_block(parts, &record, shown, output)? {
            let sum = sums.entry(block.codec).or_default();
            sum.blocks += 1;
            sum.raw_bytes += block.raw.len() as u64;
            sum.stored_bytes += u64::from(record.handle.stored_size);
            sum.fallback_blocks += u64::from(record.flags & FLAG_RAW_FALLBACK != 0);
        }
    }
    Ok(())
}

/// What the index says of a data block.
fn index_item(
    index: &TableIndex,
    number: usize,
    record: &IndexRecord,
    output: &Output<'_>,
) -> Result<Item> {
    let full = output.options.full;
    let keys = index.keys(number)?;
    Ok(Item::line("block", 0)
        .at(record.handle.offset)
        .number("stored_size", record.handle.stored_size)
        .number("raw_size", record.raw_size)
        .number("entry_count", record.entry_count)
        .number("largest_sequence", record.largest_sequence)
        .bytes("first_key", keys.first_key, full)
        .bytes("separator", keys.separator, full)
        .number("separator_trailer", keys.separator_trailer.0)
        .text("codec", record.codec.name())
        .text("flags", flag_names(record.flags)))
}

fn flag_names(flags: u8) -> String {
    let names = [
        (FLAG_ALL_PUTS, "all_puts"),
        (FLAG_SEQUENCES_ZERO, "sequences_zero"),
        (FLAG_RAW_FALLBACK, "raw_fallback"),
    ];
    let set: Vec<&str> =
        names.iter().filter(|(bit, _)| flags & bit != 0).map(|(_, name)| *name).collect();
    if set.is_empty() { "none".to_string() } else { set.join(",") }
}

/// Checks a data block to its last entry, and hands out its trailer, header and entries as far
/// as they are wanted. `None` if its checksum or header is wrong, which is noted.
fn dump_block(
    parts: &TableParts,
    record: &IndexRecord,
    shown: bool,
    output: &mut Output<'_>,
) -> Result<Option<PartBlock>> {
    let block = match parts.data_block(record) {
        Ok(found) => found,
        Err(error) => return output.note_damage(error).map(|()| None),
    };
    if shown {
        output.put(add_trailer(Item::line("trailer", 1), Layout::Data, &block))?;
        let fields = parts.within(record.handle, data_header(&block.raw))?;
        let item = Item::line("data_header", 1);
        output
            .put(fields.into_iter().fold(item, |item, (name, number)| item.number(name, number)))?;
    }
    let mut refused: Option<Error> = None;
    let visited = visit_entries(&block.raw, &mut |key, trailer, value| {
        if !output.options.entries || !output.admits("entry") {
            return Ok(());
        }
        let item = entry_item(key, trailer, value, output.options.full);
        output.put(item).inspect_err(|error| refused = Some(error.clone()))
    });
    // An error of the sink is not one of the table.
    if let Some(error) = refused {
        return Err(error);
    }
    match parts.within(record.handle, visited) {
        Ok(()) => Ok(Some(block)),
        Err(error) => output.note_damage(error).map(|()| None),
    }
}

fn entry_item(key: &[u8], trailer: Trailer, value: &[u8], full: bool) -> Item {
    let item = Item::line("entry", 2)
        .number("sequence", trailer.sequence())
        .text("kind", trailer.kind().map_or("unknown", kind_name))
        .bytes("key", key, full);
    if value.is_empty() && trailer.kind() != Some(ValueKind::Put) {
        return item;
    }
    item.bytes("value", value, full)
}
