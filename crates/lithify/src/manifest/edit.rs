//! Edits: what changes in the set of live tables, and its bytes.
//!
//! A change is `tag u8 | length varint | body`. Bit 7 of the tag says that a reader that does not
//! know it may skip it.

use super::version::{FileMetadata, KeyRange};
use crate::base::{
    ColumnFamilyId, FileNumber, KEY_SIZE_MAX, LEVEL_COUNT_MAX, Level, SEQUENCE_MAX, SequenceNumber,
};
use crate::codec::{Compression, DictionaryHash, Encoder};
use crate::format::{Decoder, put_bytes, put_varint};
use crate::retention::WriteTimes;
use crate::wal::SegmentEnd;
use crate::{Error, ErrorKind, Result};
use std::fmt;

/// The longest name of a column family, in bytes.
pub const FAMILY_NAME_SIZE_MAX: usize = 255;

/// The longest options of a column family, in bytes.
pub const FAMILY_OPTIONS_SIZE_MAX: usize = 1 << 20;

/// The largest next file number. A database is opened up to half of it, so that nothing that counts
/// on from there can get over it.
pub const NEXT_FILE_NUMBER_MAX: FileNumber = 1 << 62;

const SAFE_TO_SKIP: u8 = 0x80;

/// The options of a family say something that came after the first version: compression that is
/// decided by cost, blocks of a size that is.
pub const FEATURE_DECIDED_COMPRESSION: u32 = 1;

/// A family has a merge operator, and so entries that an older version does not know.
pub const FEATURE_MERGE: u32 = 2;

/// A family has a time to live, and so values that end with the times of their writing.
pub const FEATURE_WRITE_TIMES: u32 = 4;

/// All bits of [`Change::Features`] that this version knows.
pub const KNOWN_FEATURES: u32 = FEATURE_DECIDED_COMPRESSION | FEATURE_MERGE | FEATURE_WRITE_TIMES;

/// One change of the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A column family comes to be.
    CreateFamily {
        /// Its id, larger than any before.
        id: ColumnFamilyId,
        /// Its name.
        name: String,
        /// Its levels.
        level_count: usize,
        /// The first log segment that may hold something of it.
        log_number: FileNumber,
        /// Its options, as the database encodes them.
        options: Vec<u8>,
    },
    /// A column family goes, with all of its tables.
    DropFamily {
        /// Which.
        id: ColumnFamilyId,
    },
    /// A table goes live.
    AddFile {
        /// In which column family.
        family: ColumnFamilyId,
        /// In which level.
        level: Level,
        /// What it is.
        metadata: FileMetadata,
    },
    /// A table is no longer live.
    RemoveFile {
        /// In which column family.
        family: ColumnFamilyId,
        /// In which level.
        level: Level,
        /// Which.
        number: FileNumber,
    },
    /// A table goes to another level as it is.
    MoveFile {
        /// In which column family.
        family: ColumnFamilyId,
        /// Which.
        number: FileNumber,
        /// From this level.
        from: Level,
        /// To this level.
        to: Level,
        /// Whether its codec is not what the new level's policy asks for.
        codec_debt: bool,
    },
    /// Everything of a column family up to here is in tables.
    FlushedThrough {
        /// Which column family.
        family: ColumnFamilyId,
        /// Up to this sequence number.
        sequence: SequenceNumber,
        /// Log segments with smaller numbers are not needed for it.
        log_number: FileNumber,
    },
    /// File numbers below this one have been given out.
    NextFileNumber(FileNumber),
    /// The largest sequence number that is in tables or was used before a clean close.
    LastSequence(SequenceNumber),
    /// Family ids below this one have been given out.
    NextFamilyId(ColumnFamilyId),
    /// The database was closed, and its log ended there.
    CleanClose(CleanClose),
    /// A column family takes on other options.
    SetOptions {
        /// Which column family.
        id: ColumnFamilyId,
        /// Its options, as the database encodes them.
        options: Vec<u8>,
    },
    /// What follows needs a reader that knows these bits; see [`KNOWN_FEATURES`]. They stay.
    Features(u32),
    /// Where the next compaction of a level goes on.
    CompactionCursor {
        /// In which column family.
        family: ColumnFamilyId,
        /// Of which level.
        level: Level,
        /// Behind this user key.
        key: Box<[u8]>,
    },
}

/// What a clean close leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CleanClose {
    /// The last segment of the log and its end.
    pub log_end: SegmentEnd,
    /// The last sequence number in use.
    pub last_sequence: SequenceNumber,
}

/// Changes that are applied together or not at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionEdit {
    /// The changes, in order.
    pub changes: Vec<Change>,
}

impl From<Vec<Change>> for VersionEdit {
    fn from(changes: Vec<Change>) -> Self {
        VersionEdit { changes }
    }
}

impl VersionEdit {
    /// The bytes in a manifest.
    pub fn encode(&self) -> Vec<u8> {
        let mut target = Vec::new();
        let mut body = Vec::new();
        for change in &self.changes {
            body.clear();
            target.push(change.encode(&mut body));
            put_bytes(&mut target, &body);
        }
        target
    }

    /// Reads an edit. [`ErrorKind::Corruption`] if it is none, [`ErrorKind::Unsupported`] if it
    /// has a change that this version does not know and must not skip.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut decoder = Decoder::new(bytes);
        let mut changes = Vec::new();
        while !decoder.is_empty() {
            let tag = decoder.u8()?;
            let mut body = Decoder::new(decoder.sized_bytes(bytes.len())?);
            match Change::decode(tag, &mut body)? {
                Some(change) => {
                    body.finish()?;
                    changes.push(change);
                }
                None if tag & SAFE_TO_SKIP != 0 => {}
                None => {
                    return Err(Error::new(
                        ErrorKind::Unsupported,
                        format!("manifest edit with unknown change {tag}; use a newer version"),
                    ));
                }
            }
        }
        Ok(VersionEdit { changes })
    }
}

impl Change {
    /// Appends the body; returns the tag.
    fn encode(&self, target: &mut Vec<u8>) -> u8 {
        let mut put = |values: &[u64]| values.iter().for_each(|value| put_varint(target, *value));
        match self {
            Change::CreateFamily { id, name, level_count, log_number, options } => {
                put(&[u64::from(*id)]);
                put_bytes(target, name.as_bytes());
                put_varint(target, *level_count as u64);
                put_varint(target, *log_number);
                put_bytes(target, options);
                1
            }
            Change::DropFamily { id } => {
                put(&[u64::from(*id)]);
                2
            }
            Change::AddFile { family, level, metadata } => {
                put(&[u64::from(*family), *level as u64]);
                encode_metadata(metadata, target);
                3
            }
            Change::RemoveFile { family, level, number } => {
                put(&[u64::from(*family), *level as u64, *number]);
                4
            }
            Change::MoveFile { family, number, from, to, codec_debt } => {
                put(&[u64::from(*family), *number, *from as u64, *to as u64]);
                target.push(u8::from(*codec_debt));
                5
            }
            Change::FlushedThrough { family, sequence, log_number } => {
                put(&[u64::from(*family), *sequence, *log_number]);
                6
            }
            Change::NextFileNumber(number) => {
                put(&[*number]);
                7
            }
            Change::LastSequence(sequence) => {
                put(&[*sequence]);
                8
            }
            Change::NextFamilyId(id) => {
                put(&[u64::from(*id)]);
                9
            }
            Change::CleanClose(close) => {
                put(&[close.log_end.log_number, close.log_end.end_offset, close.last_sequence]);
                10
            }
            Change::CompactionCursor { family, level, key } => {
                put(&[u64::from(*family), *level as u64]);
                put_bytes(target, key);
                11
            }
            Change::SetOptions { id, options } => {
                put(&[u64::from(*id)]);
                put_bytes(target, options);
                12
            }
            Change::Features(bits) => {
                put(&[u64::from(*bits)]);
                13
            }
        }
    }

    /// Reads the body of a change; `None` for an unknown tag.
    fn decode(tag: u8, body: &mut Decoder<'_>) -> Result<Option<Change>> {
        Ok(Some(match tag {
            1 => decode_create_family(body)?,
            2 => Change::DropFamily { id: body.varint_u32()? },
            3 => Change::AddFile {
                family: body.varint_u32()?,
                level: decode_level(body)?,
                metadata: decode_metadata(body)?,
            },
            4 => Change::RemoveFile {
                family: body.varint_u32()?,
                level: decode_level(body)?,
                number: body.varint()?,
            },
            5 => Change::MoveFile {
                family: body.varint_u32()?,
                number: body.varint()?,
                from: decode_level(body)?,
                to: decode_level(body)?,
                codec_debt: match body.u8()? {
                    0 => false,
                    1 => true,
                    other => return Err(Error::corruption("codec debt").expected("0 or 1", other)),
                },
            },
            6 => Change::FlushedThrough {
                family: body.varint_u32()?,
                sequence: decode_sequence(body)?,
                log_number: body.varint()?,
            },
            7 => Change::NextFileNumber(decode_next_file_number(body)?),
            8 => Change::LastSequence(decode_sequence(body)?),
            9 => Change::NextFamilyId(body.varint_u32()?),
            10 => Change::CleanClose(CleanClose {
                log_end: SegmentEnd { log_number: body.varint()?, end_offset: body.varint()? },
                last_sequence: decode_sequence(body)?,
            }),
            11 => Change::CompactionCursor {
                family: body.varint_u32()?,
                level: decode_level(body)?,
                key: body.sized_bytes(KEY_SIZE_MAX)?.into(),
            },
            12 => Change::SetOptions {
                id: body.varint_u32()?,
                options: body.sized_bytes(FAMILY_OPTIONS_SIZE_MAX)?.to_vec(),
            },
            13 => Change::Features(decode_features(body)?),
            _ => return Ok(None),
        }))
    }
}

fn decode_features(body: &mut Decoder<'_>) -> Result<u32> {
    let bits = body.varint_u32()?;
    match bits & !KNOWN_FEATURES {
        0 => Ok(bits),
        unknown => Err(unsupported("feature bits", unknown.into())),
    }
}

fn decode_create_family(body: &mut Decoder<'_>) -> Result<Change> {
    let id = body.varint_u32()?;
    let name = std::str::from_utf8(body.sized_bytes(FAMILY_NAME_SIZE_MAX)?)
        .map_err(|error| Error::corruption("column family's name is no UTF-8").because(error))?;
    let level_count = body.varint()?;
    if level_count == 0 || level_count > LEVEL_COUNT_MAX as u64 {
        return Err(Error::corruption("number of levels")
            .expected(format_args!("1 to {LEVEL_COUNT_MAX}"), level_count));
    }
    Ok(Change::CreateFamily {
        id,
        name: name.to_owned(),
        level_count: level_count as usize,
        log_number: body.varint()?,
        options: body.sized_bytes(FAMILY_OPTIONS_SIZE_MAX)?.to_vec(),
    })
}

fn decode_level(body: &mut Decoder<'_>) -> Result<Level> {
    let level = body.varint()?;
    if level >= LEVEL_COUNT_MAX as u64 {
        return Err(
            Error::corruption("level").expected(format_args!("below {LEVEL_COUNT_MAX}"), level)
        );
    }
    Ok(level as Level)
}

fn decode_next_file_number(body: &mut Decoder<'_>) -> Result<FileNumber> {
    let number = body.varint()?;
    if number > NEXT_FILE_NUMBER_MAX {
        return Err(Error::corruption("next file number")
            .expected(format_args!("at most {NEXT_FILE_NUMBER_MAX}"), number));
    }
    Ok(number)
}

fn decode_sequence(body: &mut Decoder<'_>) -> Result<SequenceNumber> {
    let sequence = body.varint()?;
    if sequence > SEQUENCE_MAX {
        return Err(Error::corruption("sequence number over 56 bits")
            .expected(format_args!("at most {SEQUENCE_MAX}"), sequence));
    }
    Ok(sequence)
}

const LARGEST_EXCLUSIVE: u8 = 1;
const CODEC_DEBT: u8 = 2;
const INGESTED: u8 = 4;
pub(super) const FORMAT: u8 = 8;
const DICTIONARY: u8 = 16;
const WRITE_TIMES: u8 = 32;

fn encode_metadata(metadata: &FileMetadata, target: &mut Vec<u8>) {
    put_varint(target, metadata.number);
    target.extend_from_slice(&metadata.table_id);
    put_varint(target, metadata.size_bytes);
    put_varint(target, metadata.raw_bytes);
    put_bytes(target, &metadata.range.smallest);
    put_bytes(target, &metadata.range.largest);
    let exclusive = if metadata.range.largest_exclusive { LARGEST_EXCLUSIVE } else { 0 };
    let debt = if metadata.codec_debt { CODEC_DEBT } else { 0 };
    let has_format = metadata.block_size_bytes > 0;
    let format = if has_format { FORMAT } else { 0 };
    let dictionary = metadata.dictionary.filter(|_| has_format);
    let of_dictionary = if dictionary.is_some() { DICTIONARY } else { 0 };
    let ingested = if metadata.ingested { INGESTED } else { 0 };
    let write_times = if metadata.write_times.is_some() { WRITE_TIMES } else { 0 };
    target.push(exclusive | debt | ingested | format | of_dictionary | write_times);
    put_varint(target, metadata.smallest_sequence);
    put_varint(target, metadata.largest_sequence);
    put_varint(target, metadata.entries);
    put_varint(target, metadata.tombstones);
    put_varint(target, metadata.range_tombstones);
    target.push(metadata.compression.codec as u8);
    target.extend_from_slice(&metadata.compression.effort.to_le_bytes());
    target.push(metadata.compression.encoder as u8);
    put_varint(target, metadata.newest_obsolete_sequence);
    if has_format {
        put_varint(target, metadata.block_size_bytes);
    }
    if let Some(name) = dictionary {
        target.extend_from_slice(&name.0);
    }
    if let Some(times) = metadata.write_times {
        put_varint(target, times.oldest_s.into());
        put_varint(target, times.newest_s.into());
    }
}

fn decode_metadata(body: &mut Decoder<'_>) -> Result<FileMetadata> {
    let number = body.varint()?;
    let table_id = body.array()?;
    let size_bytes = body.varint()?;
    let raw_bytes = body.varint()?;
    let smallest = body.sized_bytes(KEY_SIZE_MAX)?;
    let largest = body.sized_bytes(KEY_SIZE_MAX)?;
    let flags = body.u8()?;
    let known = LARGEST_EXCLUSIVE | CODEC_DEBT | INGESTED | FORMAT | DICTIONARY | WRITE_TIMES;
    if flags & !known != 0 {
        return Err(unsupported("table flags", flags.into()));
    }
    let largest_exclusive = flags & LARGEST_EXCLUSIVE != 0;
    let (smallest_sequence, largest_sequence) = (decode_sequence(body)?, decode_sequence(body)?);
    let mut metadata = FileMetadata {
        number,
        table_id,
        size_bytes,
        raw_bytes,
        range: KeyRange { smallest: smallest.into(), largest: largest.into(), largest_exclusive },
        smallest_sequence,
        largest_sequence,
        entries: body.varint()?,
        tombstones: body.varint()?,
        range_tombstones: body.varint()?,
        compression: decode_compression(body)?,
        codec_debt: flags & CODEC_DEBT != 0,
        ingested: flags & INGESTED != 0,
        newest_obsolete_sequence: decode_sequence(body)?,
        block_size_bytes: 0,
        dictionary: None,
        write_times: None,
    };
    if flags & FORMAT != 0 {
        metadata.block_size_bytes = body.varint()?;
        if metadata.block_size_bytes == 0 {
            return Err(Error::corruption("table whose size of blocks is 0"));
        }
    }
    if flags & DICTIONARY != 0 {
        if flags & FORMAT == 0 {
            return Err(Error::corruption("table with a dictionary and no size of blocks"));
        }
        metadata.dictionary = Some(DictionaryHash(body.array()?));
    }
    if flags & WRITE_TIMES != 0 {
        let (oldest_s, newest_s) = (body.varint_u32()?, body.varint_u32()?);
        metadata.write_times = Some(WriteTimes { oldest_s, newest_s });
    }
    check_metadata(&metadata).map_err(Error::corruption)?;
    Ok(metadata)
}

fn decode_compression(body: &mut Decoder<'_>) -> Result<Compression> {
    let codec = body.u8()?;
    let effort = i32::from_le_bytes(body.array()?);
    Compression::from_numbers(codec.into(), effort.into(), body.u8()?.into())
        .map_err(|unknown| unsupported(unknown.what, unknown.number))
}

fn unsupported(what: &str, found: u64) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        format!("manifest edit with unknown {what} {found}; use a newer version"),
    )
}

/// What must hold for any table, whoever says it; the error is what does not.
pub(super) fn check_metadata(metadata: &FileMetadata) -> std::result::Result<(), &'static str> {
    let range = &metadata.range;
    let empty = match range.smallest.cmp(&range.largest) {
        std::cmp::Ordering::Less => false,
        std::cmp::Ordering::Equal => range.largest_exclusive,
        std::cmp::Ordering::Greater => true,
    };
    if metadata.number == 0 {
        Err("table number 0")
    } else if empty {
        Err("table covers no key")
    } else if range.smallest.len() > KEY_SIZE_MAX || range.largest.len() > KEY_SIZE_MAX {
        Err("table's key is too long")
    } else if metadata.smallest_sequence > metadata.largest_sequence {
        Err("table's smallest sequence is above its largest")
    } else if metadata.largest_sequence > SEQUENCE_MAX {
        Err("table's largest sequence is over 56 bits")
    } else if metadata.ingested
        && (metadata.smallest_sequence != metadata.largest_sequence
            || metadata.range_tombstones > 0)
    {
        Err("ingested table with several sequences or range tombstones")
    } else if metadata.write_times.is_some_and(|times| times.oldest_s > times.newest_s) {
        Err("table's oldest write is behind its newest")
    } else {
        Ok(())
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::CreateFamily { id, name, level_count, log_number, options } => write!(
                f,
                "create family={id} name={name} levels={level_count} log={log_number} \
                 options_bytes={}",
                options.len()
            ),
            Change::DropFamily { id } => write!(f, "drop family={id}"),
            Change::SetOptions { id, options } => {
                write!(f, "set-options family={id} options_bytes={}", options.len())
            }
            Change::AddFile { family, level, metadata } => {
                write!(f, "add family={family} level={level} {metadata}")
            }
            Change::RemoveFile { family, level, number } => {
                write!(f, "remove family={family} level={level} number={number}")
            }
            Change::MoveFile { family, number, from, to, codec_debt } => write!(
                f,
                "move family={family} number={number} from={from} to={to} codec_debt={codec_debt}"
            ),
            Change::FlushedThrough { family, sequence, log_number } => {
                write!(f, "flushed family={family} sequence={sequence} log={log_number}")
            }
            Change::NextFileNumber(number) => write!(f, "next_file number={number}"),
            Change::LastSequence(sequence) => write!(f, "last_sequence sequence={sequence}"),
            Change::NextFamilyId(id) => write!(f, "next_family id={id}"),
            Change::Features(bits) => write!(f, "features bits={bits:#x}"),
            Change::CleanClose(close) => write!(
                f,
                "clean_close log={} end={} sequence={}",
                close.log_end.log_number, close.log_end.end_offset, close.last_sequence
            ),
            Change::CompactionCursor { family, level, key } => {
                write!(f, "cursor family={family} level={level} key={}", key.escape_ascii())
            }
        }
    }
}

impl fmt::Display for FileMetadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Compression { codec, effort, encoder } = self.compression;
        write!(
            f,
            "number={} bytes={} raw_bytes={} keys={}..{}{} sequences={}..{} entries={} \
             tombstones={} range_tombstones={} codec={}:{effort}{} codec_debt={} obsolete={}{}",
            self.number,
            self.size_bytes,
            self.raw_bytes,
            self.range.smallest.escape_ascii(),
            if self.range.largest_exclusive { "" } else { "=" },
            self.range.largest.escape_ascii(),
            self.smallest_sequence,
            self.largest_sequence,
            self.entries,
            self.tombstones,
            self.range_tombstones,
            codec.name(),
            if encoder == Encoder::Fast { ":fast" } else { "" },
            self.codec_debt,
            self.newest_obsolete_sequence,
            if self.ingested { " ingested=true" } else { "" },
        )?;
        if self.block_size_bytes > 0 {
            write!(f, " blocks={}", self.block_size_bytes)?;
        }
        if let Some(times) = self.write_times {
            write!(f, " written={}..{}", times.oldest_s, times.newest_s)?;
        }
        self.dictionary.map_or(Ok(()), |name| write!(f, " dictionary={name}"))
    }
}
