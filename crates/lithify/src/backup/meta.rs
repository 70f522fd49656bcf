//! The two small files of a store: `STORE`, and what a backup consists of. See
//! docs/format/backup.md.

use super::BackupId;
use super::names::StoreName;
use crate::base::{FileNumber, SEQUENCE_MAX, SequenceNumber};
use crate::format::{Checksum, Decoder, Features, put_bytes, put_u32, put_u64, put_varint};
use crate::fs::{PIECE_BYTES, Pieces};
use crate::manifest::{FileMetadata, ManifestState, VersionEdit};
use crate::{Error, ErrorKind, Result};
use std::collections::BTreeMap;

const STORE_MAGIC: &[u8; 8] = b"LITHSTO\n";
const BACKUP_MAGIC: &[u8; 8] = b"LITHBKP\n";

/// The version of the formats that this program writes.
const FORMAT_VERSION: u32 = 1;

/// The length of `STORE`, in bytes.
const STORE_SIZE_BYTES: usize = 52;

/// The longest note on a backup, in bytes.
pub(super) const NOTE_SIZE_MAX: usize = 1024;

/// The longest `.backup`, in bytes.
pub(super) const META_SIZE_MAX: u64 = 1 << 30;

/// What `STORE` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StoreIdentity {
    pub(super) store_id: u128,
    /// Backups below this number were made.
    pub(super) next_backup: BackupId,
    pub(super) features: Features,
}

impl StoreIdentity {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(STORE_SIZE_BYTES);
        put_head(&mut bytes, STORE_MAGIC, self.features, self.store_id);
        put_u64(&mut bytes, self.next_backup);
        put_checksum(&mut bytes);
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self> {
        if bytes.len() != STORE_SIZE_BYTES {
            return Err(
                Error::corruption("length of STORE").expected(STORE_SIZE_BYTES, bytes.len())
            );
        }
        let (features, store_id, mut decoder) = open(bytes, STORE_MAGIC, "backup store")?;
        let next_backup = decoder.u64()?;
        decoder.finish()?;
        if next_backup == 0 {
            return Err(Error::corruption("number of the next backup").expected("1 or more", 0));
        }
        Ok(StoreIdentity { store_id, next_backup, features })
    }
}

/// A copied log segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredSegment {
    pub(super) number: FileNumber,
    pub(super) pieces: Pieces,
}

/// What a backup consists of.
#[derive(Clone, Debug)]
pub(super) struct BackupMeta {
    pub(super) store_id: u128,
    pub(super) backup: BackupId,
    pub(super) database_id: u128,
    pub(super) unix_time_s: u64,
    pub(super) sequence: SequenceNumber,
    pub(super) oldest_sequence: SequenceNumber,
    pub(super) copied_bytes: u64,
    pub(super) note: String,
    pub(super) state: ManifestState,
    /// Of every live table.
    pub(super) tables: BTreeMap<FileNumber, Pieces>,
    pub(super) segments: Vec<StoredSegment>,
}

/// A file that a backup needs.
pub(super) struct NeededFile<'a> {
    pub(super) name: StoreName,
    pub(super) pieces: &'a Pieces,
}

impl BackupMeta {
    /// What the manifest knows of the tables, by ascending number.
    pub(super) fn live_tables(state: &ManifestState) -> BTreeMap<FileNumber, &FileMetadata> {
        let tables = state.families.values().flat_map(|family| family.version.tables());
        tables.map(|(_, table)| (table.metadata.number, &table.metadata)).collect()
    }

    /// All files that it needs: the log first, then the tables.
    pub(super) fn files(&self) -> Vec<NeededFile<'_>> {
        let log = self.segments.iter().map(|segment| NeededFile {
            name: StoreName::Wal { backup: self.backup, number: segment.number },
            pieces: &segment.pieces,
        });
        let live = BackupMeta::live_tables(&self.state);
        let tables = live.values().filter_map(|metadata| {
            let pieces = self.tables.get(&metadata.number)?;
            Some(NeededFile { name: StoreName::of_table(metadata), pieces })
        });
        log.chain(tables).collect()
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_head(&mut bytes, BACKUP_MAGIC, Features::NONE, self.store_id);
        put_u64(&mut bytes, self.backup);
        bytes.extend_from_slice(&self.database_id.to_le_bytes());
        put_u64(&mut bytes, self.unix_time_s);
        put_u64(&mut bytes, self.sequence);
        put_u64(&mut bytes, self.oldest_sequence);
        put_u64(&mut bytes, self.copied_bytes);
        put_u32(&mut bytes, PIECE_BYTES as u32);
        put_u32(&mut bytes, 0);
        put_bytes(&mut bytes, self.note.as_bytes());
        put_bytes(&mut bytes, &self.state.snapshot().encode());
        put_varint(&mut bytes, self.tables.len() as u64);
        for (number, pieces) in &self.tables {
            put_varint(&mut bytes, *number);
            pieces.checksums.iter().for_each(|checksum| put_u32(&mut bytes, *checksum));
        }
        put_varint(&mut bytes, self.segments.len() as u64);
        for segment in &self.segments {
            put_varint(&mut bytes, segment.number);
            put_varint(&mut bytes, segment.pieces.size_bytes);
            segment.pieces.checksums.iter().for_each(|checksum| put_u32(&mut bytes, *checksum));
        }
        put_checksum(&mut bytes);
        bytes
    }

    /// Reads the bytes of the backup that should have that number.
    pub(super) fn decode(bytes: &[u8], store_id: u128, backup: BackupId) -> Result<Self> {
        let (_, of_store, mut decoder) = open(bytes, BACKUP_MAGIC, "backup")?;
        let found = decoder.u64()?;
        if of_store != store_id {
            return Err(Error::corruption("backup of another store")
                .expected(format_args!("{store_id:032x}"), format_args!("{of_store:032x}")));
        }
        if found != backup {
            return Err(Error::corruption("number of the backup").expected(backup, found));
        }
        let database_id = u128::from_le_bytes(decoder.array()?);
        let unix_time_s = decoder.u64()?;
        let (sequence, oldest_sequence) = (decoder.u64()?, decoder.u64()?);
        if sequence > SEQUENCE_MAX || oldest_sequence > sequence {
            return Err(Error::corruption("sequence numbers of the backup"));
        }
        let copied_bytes = decoder.u64()?;
        let (piece_bytes, reserved) = (decoder.u32()?, decoder.u32()?);
        if u64::from(piece_bytes) != PIECE_BYTES {
            let what = "backup with another length of pieces; use a newer version";
            return Err(Error::new(ErrorKind::Unsupported, what).expected(PIECE_BYTES, piece_bytes));
        }
        if reserved != 0 {
            return Err(Error::corruption("reserved bytes in use"));
        }
        let note = std::str::from_utf8(decoder.sized_bytes(NOTE_SIZE_MAX)?)
            .map_err(|error| Error::corruption("the note is no UTF-8").because(error))?
            .to_string();
        let edit = VersionEdit::decode(decoder.sized_bytes(bytes.len())?)?;
        let state = ManifestState::default().apply(&edit).map_err(|error| {
            Error::corruption("snapshot of the backup does not fit itself").because(error)
        })?;
        let state = state.state;
        let tables = decode_tables(&mut decoder, &state)?;
        let segments = decode_segments(&mut decoder)?;
        decoder.finish()?;
        Ok(BackupMeta {
            store_id,
            backup,
            database_id,
            unix_time_s,
            sequence,
            oldest_sequence,
            copied_bytes,
            note,
            state,
            tables,
            segments,
        })
    }
}

fn decode_tables(
    decoder: &mut Decoder<'_>,
    state: &ManifestState,
) -> Result<BTreeMap<FileNumber, Pieces>> {
    let count = decoder.varint()?;
    let live = BackupMeta::live_tables(state);
    if count != live.len() as u64 {
        return Err(Error::corruption("tables of the backup").expected(live.len(), count));
    }
    let mut tables = BTreeMap::new();
    for metadata in live.values() {
        let number = decoder.varint()?;
        if number != metadata.number {
            return Err(Error::corruption("table of the backup").expected(metadata.number, number));
        }
        tables.insert(number, decode_pieces(decoder, metadata.size_bytes)?);
    }
    Ok(tables)
}

fn decode_segments(decoder: &mut Decoder<'_>) -> Result<Vec<StoredSegment>> {
    let mut segments: Vec<StoredSegment> = Vec::new();
    for _ in 0..decoder.varint()? {
        let (number, size_bytes) = (decoder.varint()?, decoder.varint()?);
        if segments.last().map_or(0, |last| last.number) >= number {
            return Err(Error::corruption("log segments of the backup do not ascend"));
        }
        segments.push(StoredSegment { number, pieces: decode_pieces(decoder, size_bytes)? });
    }
    Ok(segments)
}

fn decode_pieces(decoder: &mut Decoder<'_>, size_bytes: u64) -> Result<Pieces> {
    let count = Pieces::count(size_bytes);
    if count > decoder.remaining().len() as u64 / 4 {
        return Err(Error::corruption("checksums of a file end early")
            .expected(count, decoder.remaining().len() / 4));
    }
    let checksums = (0..count).map(|_| decoder.u32()).collect::<Result<_>>()?;
    Ok(Pieces { size_bytes, checksums })
}

/// Appends the head that both files begin with.
fn put_head(bytes: &mut Vec<u8>, magic: &[u8; 8], features: Features, store_id: u128) {
    bytes.extend_from_slice(magic);
    put_u32(bytes, FORMAT_VERSION);
    features.encode(bytes);
    bytes.extend_from_slice(&store_id.to_le_bytes());
}

fn put_checksum(bytes: &mut Vec<u8>) {
    let checksum = Checksum::of(bytes);
    put_u32(bytes, checksum);
}

/// Checks the end and the head; gives the features, the store, and what is between.
fn open<'a>(bytes: &'a [u8], magic: &[u8; 8], what: &str) -> Result<(Features, u128, Decoder<'a>)> {
    let damaged = |part: &str| Error::corruption(format!("{what}: {part}"));
    let (covered, stored) = bytes.split_last_chunk().ok_or_else(|| damaged("it ends early"))?;
    let mut decoder = Decoder::new(covered);
    let found: [u8; 8] = decoder.array().map_err(|_| damaged("it ends early"))?;
    if found != *magic {
        return Err(damaged("magic").expected(magic.escape_ascii(), found.escape_ascii()));
    }
    let (stored, computed) = (u32::from_le_bytes(*stored), Checksum::of(covered));
    if stored != computed {
        return Err(damaged("checksum")
            .expected(format_args!("{computed:#010x}"), format_args!("{stored:#010x}")));
    }
    let version = decoder.u32()?;
    let features = Features::decode(&mut decoder)?;
    features.check_readable(Features::NONE, what, version, FORMAT_VERSION)?;
    if version == 0 {
        return Err(damaged("version 0"));
    }
    let store_id = u128::from_le_bytes(decoder.array()?);
    Ok((features, store_id, decoder))
}
