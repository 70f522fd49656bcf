//! The first bytes of a log: what it is, whose it is, and which log ended before it began.
//!
//! ```text
//! magic 8 | format_version 4 | features 12 | database_id 16 | log_number 8
//! | previous_log_number 8 | previous_end_offset 8 | reserved 4 | checksum 4
//! ```

use crate::format::{Checksum, Decoder, Features, put_u32, put_u64};
use crate::{Error, Result};
use std::path::Path;

/// The version of the format that this program writes.
pub const FORMAT_VERSION: u32 = 1;

/// The bytes of a header; the first record starts behind it.
pub const HEADER_SIZE_BYTES: usize = 72;

const READ_ONLY_COMPATIBLE_OFFSET: u64 = 16;
const RESERVED_OFFSET: usize = 64;
const CHECKSUM_OFFSET: usize = HEADER_SIZE_BYTES - 4;

/// What a log is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogKind {
    /// A segment of the write-ahead log.
    Wal,
    /// A manifest.
    Manifest,
}

impl LogKind {
    /// Its name in errors.
    pub fn name(self) -> &'static str {
        match self {
            LogKind::Wal => "log segment",
            LogKind::Manifest => "manifest",
        }
    }

    pub(crate) fn magic(self) -> &'static [u8; 8] {
        match self {
            LogKind::Wal => b"LITHWAL\n",
            LogKind::Manifest => b"LITHMAN\n",
        }
    }
}

/// Where a segment ends. Everything before it is durable: it is only handed out after a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentEnd {
    /// The segment.
    pub log_number: u64,
    /// The offset behind its last record.
    pub end_offset: u64,
}

/// The header of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogHeader {
    /// What the log is for.
    pub kind: LogKind,
    /// The version that wrote it.
    pub format_version: u32,
    /// What it demands of a reader.
    pub features: Features,
    /// The database that it belongs to.
    pub database_id: u128,
    /// Its number, which is in its name too.
    pub log_number: u64,
    /// The segment before it, with its end.
    pub previous: Option<SegmentEnd>,
}

impl LogHeader {
    /// The bytes on disk.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_SIZE_BYTES);
        bytes.extend_from_slice(self.kind.magic());
        put_u32(&mut bytes, self.format_version);
        self.features.encode(&mut bytes);
        bytes.extend_from_slice(&self.database_id.to_le_bytes());
        put_u64(&mut bytes, self.log_number);
        put_u64(&mut bytes, self.previous.map_or(0, |end| end.log_number));
        put_u64(&mut bytes, self.previous.map_or(0, |end| end.end_offset));
        put_u32(&mut bytes, 0);
        let checksum = Checksum::of(&bytes);
        put_u32(&mut bytes, checksum);
        bytes
    }

    /// [`crate::ErrorKind::ReadOnly`] if the log at `path` has features that allow this version
    /// reading only.
    pub fn check_writable(&self, path: &Path) -> Result<()> {
        let checked = self.features.check_writable(Features::NONE, self.kind.name());
        checked.map_err(|error| error.at(path, READ_ONLY_COMPATIBLE_OFFSET))
    }

    /// Reads a header of `kind`. [`crate::ErrorKind::Corruption`] if there is none that is whole,
    /// [`crate::ErrorKind::Unsupported`] if it is whole but of a later kind.
    pub fn decode(bytes: &[u8], kind: LogKind) -> Result<Self> {
        let header = LogHeader::parse(bytes, kind)?;
        let version = header.format_version;
        header.features.check_readable(Features::NONE, kind.name(), version, FORMAT_VERSION)?;
        let reserved = bytes.get(RESERVED_OFFSET..CHECKSUM_OFFSET);
        if version == 0 || reserved != Some(&[0; 4]) {
            let what = format!("{} header: version 0, or reserved bytes in use", kind.name());
            return Err(Error::corruption(what));
        }
        Ok(header)
    }

    /// Reads a whole header, whatever it demands of a reader.
    pub(crate) fn parse(bytes: &[u8], kind: LogKind) -> Result<Self> {
        let damaged = |what: &str| Error::corruption(format!("{} header: {what}", kind.name()));
        let mut decoder = Decoder::new(bytes);
        let magic: [u8; 8] = decoder.array().map_err(|_| damaged("it ends early"))?;
        if magic != *kind.magic() {
            return Err(
                damaged("magic").expected(kind.magic().escape_ascii(), magic.escape_ascii())
            );
        }
        let covered = bytes.get(..CHECKSUM_OFFSET).ok_or_else(|| damaged("it ends early"))?;
        let format_version = decoder.u32()?;
        let features = Features::decode(&mut decoder)?;
        let database_id = u128::from_le_bytes(decoder.array()?);
        let log_number = decoder.u64()?;
        let previous = match (decoder.u64()?, decoder.u64()?) {
            (0, 0) => None,
            (log_number, end_offset) => Some(SegmentEnd { log_number, end_offset }),
        };
        decoder.u32()?;
        let stored = decoder.u32().map_err(|_| damaged("it ends early"))?;
        let computed = Checksum::of(covered);
        if stored != computed {
            return Err(damaged("checksum")
                .expected(format_args!("{computed:#010x}"), format_args!("{stored:#010x}")));
        }
        Ok(LogHeader { kind, format_version, features, database_id, log_number, previous })
    }
}
