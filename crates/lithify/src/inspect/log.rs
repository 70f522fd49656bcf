//! Log segments and manifests: header, records, and what is in their payloads.

use super::dump::Output;
use super::item::Item;
use crate::base::ValueKind;
use crate::codec::Encoder;
use crate::db::{GroupHead, LoggedEntry};
use crate::format::read_u32;
use crate::fs::{File, FileSystem};
use crate::manifest::{Change, Current, FileMetadata, FileName, ManifestState, VersionEdit};
use crate::wal::{
    HEADER_SIZE_BYTES, LogHeader, LogKind, LogRecord, LogStop, StopReason, WalReader,
};
use crate::{Error, Result};
use std::path::Path;
use std::sync::Arc;

pub(super) fn dump(
    files: &dyn FileSystem,
    file: &Arc<dyn File>,
    kind: LogKind,
    output: &mut Output<'_>,
) -> Result<()> {
    let path = file.path();
    let Some((database_id, log_number)) = dump_header(files, file, kind, output)? else {
        return Ok(());
    };
    let mut reader = WalReader::open(files, path, kind, database_id, log_number)?;
    let mut state = ManifestState::default();
    let mut records = 0_u64;
    while let Some(record) = reader.next_record()? {
        records += 1;
        let shown = output.admits("record");
        if shown {
            output.put(
                Item::line("record", 0)
                    .at(record.position.offset)
                    .number("payload_length", record.payload.len() as u64)
                    .number("log_number", record.position.log_number)
                    .number("synced_through", record.synced_through),
            )?;
        }
        let place = (path, record.position.offset);
        match kind {
            LogKind::Wal => dump_group(&record, place, shown, output)?,
            LogKind::Manifest => dump_edit(&record, place, shown, &mut state, output)?,
        }
    }
    let stop = match reader.stop() {
        Ok(stop) => stop,
        Err(error) => return output.note_damage(error),
    };
    output.put(stop_item(&stop))?;
    if stop.watermark > stop.offset {
        let what = "a log is damaged below what was synced";
        output.note_damage(Error::corruption(what).at(path, stop.offset))?;
    } else if kind == LogKind::Manifest && records == 0 {
        let what = "a manifest without its snapshot";
        output.note_damage(Error::corruption(what).at(path, stop.offset))?;
    }
    Ok(())
}

/// The header, and whose records follow it. A damaged header does not hide the records, if the
/// file's name and `CURRENT` beside it tell what the header should say.
fn dump_header(
    files: &dyn FileSystem,
    file: &Arc<dyn File>,
    kind: LogKind,
    output: &mut Output<'_>,
) -> Result<Option<(u128, u64)>> {
    let path = file.path();
    let mut bytes = vec![0; HEADER_SIZE_BYTES];
    let count = file.read_at(&mut bytes, 0)?;
    bytes.truncate(count);
    match LogHeader::parse(&bytes, kind) {
        Ok(header) => {
            output.put(header_item(&header, &bytes))?;
            match LogHeader::decode(&bytes, kind) {
                Ok(_) => Ok(Some((header.database_id, header.log_number))),
                Err(error) => output.note_damage(error.at(path, 0)).map(|()| None),
            }
        }
        Err(error) => {
            output.note_damage(error.at(path, 0))?;
            let directory = path.parent().unwrap_or(Path::new(""));
            let current = Current::read(files, directory).ok();
            let number = FileName::of_path(path).and_then(FileName::number);
            Ok(current.map(|current| current.database_id).zip(number))
        }
    }
}

fn header_item(header: &LogHeader, bytes: &[u8]) -> Item {
    let (log_number, end_offset) =
        header.previous.map_or((0, 0), |end| (end.log_number, end.end_offset));
    Item::long("header")
        .at(0)
        .bytes("magic", header.kind.magic(), true)
        .number("format_version", header.format_version)
        .bits("compatible", header.features.compatible)
        .bits("read_only_compatible", header.features.read_only_compatible)
        .bits("incompatible", header.features.incompatible)
        .text("database_id", format_args!("{:032x}", header.database_id))
        .number("log_number", header.log_number)
        .number("previous_log_number", log_number)
        .number("previous_end_offset", end_offset)
        .bits("checksum", read_u32(bytes, HEADER_SIZE_BYTES - 4).unwrap_or_default())
}

fn stop_item(stop: &LogStop) -> Item {
    let reason = match stop.reason {
        StopReason::NamedEnd => "named end",
        StopReason::EndOfFile => "end of file",
        StopReason::Zeros => "only zeros follow",
        StopReason::Unrecognised => "what follows is not of this log",
        StopReason::Torn => "a record that is not whole",
        StopReason::NoHeader => "no header",
    };
    Item::line("stop", 0)
        .at(stop.offset)
        .number("records_behind", stop.records_behind)
        .number("watermark", stop.watermark)
        .number("dropped_bytes", stop.dropped_bytes)
        .text("reason", format_args!("\"{reason}\""))
}

/// The head of a group and its entries, which are numbered from the head's first one on.
fn dump_group(
    record: &LogRecord<'_>,
    (path, offset): (&Path, u64),
    shown: bool,
    output: &mut Output<'_>,
) -> Result<()> {
    let (head, entries) = match GroupHead::split(record.payload) {
        Ok(group) => group,
        Err(error) => return output.note_damage(error.at(path, offset)),
    };
    if shown {
        output.put(
            Item::line("group", 1)
                .number("first_sequence", head.first_sequence)
                .number("entry_count", head.entry_count),
        )?;
    }
    let mut sequence = head.first_sequence;
    for entry in entries {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => return output.note_damage(error.at(path, offset)),
        };
        if output.options.entries && output.admits("entry") {
            output.put(entry_item(&entry, sequence, output.options.full))?;
        }
        sequence += 1;
    }
    let found = sequence - head.first_sequence;
    if found != u64::from(head.entry_count) {
        let error = GroupHead::miscounted(head.entry_count, found);
        output.note_damage(error.at(path, offset))?;
    }
    Ok(())
}

fn entry_item(entry: &LoggedEntry<'_>, sequence: u64, full: bool) -> Item {
    let item = Item::line("entry", 2)
        .number("sequence", sequence)
        .text("kind", kind_name(entry.kind))
        .number("family", entry.family)
        .bytes("key", entry.key, full);
    match entry.kind {
        ValueKind::Put => item.bytes("value", entry.value, full),
        ValueKind::Merge => item.bytes("operand", entry.value, full),
        ValueKind::RangeDelete => item.bytes("end", entry.value, full),
        ValueKind::Delete | ValueKind::SingleDelete => item,
    }
}

pub(super) fn kind_name(kind: ValueKind) -> &'static str {
    match kind {
        ValueKind::Delete => "delete",
        ValueKind::Put => "put",
        ValueKind::SingleDelete => "single_delete",
        ValueKind::RangeDelete => "range_delete",
        ValueKind::Merge => "merge",
    }
}

/// The changes of an edit, each of which has to fit the state that those before it lead to.
fn dump_edit(
    record: &LogRecord<'_>,
    (path, offset): (&Path, u64),
    shown: bool,
    state: &mut ManifestState,
    output: &mut Output<'_>,
) -> Result<()> {
    let edit = match VersionEdit::decode(record.payload) {
        Ok(edit) => edit,
        Err(error) => return output.note_damage(error.at(path, offset)),
    };
    for change in &edit.changes {
        if shown {
            output.put(change_item(change, output.options.full))?;
        }
    }
    match state.apply(&edit) {
        Ok(applied) => *state = applied.state,
        // Whatever follows builds on this edit: one complaint is enough.
        Err(_) if output.has_damage() => {}
        Err(error) => {
            let damage = Error::corruption("edit does not fit what is before it").because(error);
            output.note_damage(damage.at(path, offset))?;
        }
    }
    Ok(())
}

fn change_item(change: &Change, full: bool) -> Item {
    let item = |name| Item::line(name, 1);
    match change {
        Change::CreateFamily { id, name, level_count, log_number, options } => {
            item("create family")
                .number("id", *id)
                .bytes("name", name.as_bytes(), true)
                .number("level_count", *level_count as u64)
                .number("log_number", *log_number)
                .bytes("options", options, true)
        }
        Change::DropFamily { id } => item("drop family").number("id", *id),
        Change::AddFile { family, level, metadata } => {
            let item = item("add file").number("family", *family).number("level", *level as u64);
            add_metadata(item, metadata, full)
        }
        Change::RemoveFile { family, level, number } => item("remove file")
            .number("family", *family)
            .number("level", *level as u64)
            .number("number", *number),
        Change::MoveFile { family, number, from, to, codec_debt } => item("move file")
            .number("family", *family)
            .number("number", *number)
            .number("from", *from as u64)
            .number("to", *to as u64)
            .flag("codec_debt", *codec_debt),
        Change::FlushedThrough { family, sequence, log_number } => item("flushed through")
            .number("family", *family)
            .number("sequence", *sequence)
            .number("log_number", *log_number),
        Change::NextFileNumber(number) => item("next file number").number("number", *number),
        Change::LastSequence(sequence) => item("last sequence").number("sequence", *sequence),
        Change::NextFamilyId(id) => item("next family id").number("id", *id),
        Change::Features(bits) => item("features").number("bits", *bits),
        Change::CleanClose(close) => item("clean close")
            .number("log_number", close.log_end.log_number)
            .number("end_offset", close.log_end.end_offset)
            .number("last_sequence", close.last_sequence),
        Change::CompactionCursor { family, level, key } => item("compaction cursor")
            .number("family", *family)
            .number("level", *level as u64)
            .bytes("key", key, full),
        Change::SetOptions { id, options } => {
            item("set options").number("id", *id).bytes("options", options, true)
        }
    }
}

fn add_metadata(item: Item, metadata: &FileMetadata, full: bool) -> Item {
    let compression = metadata.compression;
    item.number("number", metadata.number)
        .text("table_id", hex(&metadata.table_id))
        .number("size_bytes", metadata.size_bytes)
        .number("raw_bytes", metadata.raw_bytes)
        .bytes("smallest", &metadata.range.smallest, full)
        .bytes("largest", &metadata.range.largest, full)
        .flag("largest_exclusive", metadata.range.largest_exclusive)
        .flag("codec_debt", metadata.codec_debt)
        .number("smallest_sequence", metadata.smallest_sequence)
        .number("largest_sequence", metadata.largest_sequence)
        .number("entries", metadata.entries)
        .number("tombstones", metadata.tombstones)
        .number("range_tombstones", metadata.range_tombstones)
        .text("codec", compression.codec.name())
        .signed("effort", compression.effort)
        .text("encoder", encoder_name(compression.encoder))
        .number("newest_obsolete_sequence", metadata.newest_obsolete_sequence)
}

pub(super) fn encoder_name(encoder: Encoder) -> &'static str {
    match encoder {
        Encoder::Reference => "reference",
        Encoder::Fast => "fast",
    }
}

/// An id as hexadecimal digits, in the order of its bytes.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
