//! What a table file of RocksDB says about itself: codec and raw size.
//!
//! The C interface tells neither for a file, and what the options say is not what the files have
//! while the tree moves. So the properties are read from the file: the footer leads to the
//! metaindex, that one to the block of properties; both blocks are stored as they are.
//!
//! Promises: no content of a file makes it panic or allocate more than [`BLOCK_BYTES_MAX`].

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::sorted_blocks::{TRAILER_BYTES, damaged, entries, handle_of, varint};

/// What is read of a file's properties.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableProperties {
    /// Codec by its own name, with its effort where the file has one: `LZ4`, `ZSTD level=1`.
    pub codec: String,
    /// Bytes of keys and values before compression, RocksDB's trailers of keys included.
    pub raw_bytes: u64,
    /// Rows, tombstones included.
    pub entries: u64,
}

/// What RocksDB adds to every key: sequence number and kind.
const KEY_TRAILER_BYTES: u64 = 8;

impl TableProperties {
    /// Bytes of keys and values as the user gave them.
    pub fn user_bytes(&self) -> u64 {
        self.raw_bytes.saturating_sub(self.entries.saturating_mul(KEY_TRAILER_BYTES))
    }
}

const MAGIC: u64 = 0x88e2_41b7_85f4_cff7;
const FOOTER_BYTES: usize = 53;
/// From this version on the footer has the metaindex's size, which stands right before it.
const VERSION_METAINDEX_BEFORE_FOOTER: u32 = 6;
/// A block of properties is a few kilobytes.
const BLOCK_BYTES_MAX: u64 = 1 << 20;

/// Reads the properties of a table file.
///
/// # Errors
/// The operating system's; a file that is no table of the known versions.
pub fn read(path: &Path) -> io::Result<TableProperties> {
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    let footer_at =
        size.checked_sub(FOOTER_BYTES as u64).ok_or_else(|| damaged("shorter than a footer"))?;
    let mut footer = [0; FOOTER_BYTES];
    file.read_exact_at(&mut footer, footer_at)?;
    let handle = metaindex(&footer, footer_at)?;
    let metaindex = block(&file, handle, footer_at)?;
    let mut place = None;
    for (key, value) in entries(&metaindex) {
        if key == b"rocksdb.properties" {
            place = handle_of(&value);
        }
    }
    let place = place.ok_or_else(|| damaged("no properties in the metaindex"))?;
    Ok(properties(&block(&file, place, footer_at)?))
}

/// Offset and size of the metaindex.
fn metaindex(footer: &[u8; FOOTER_BYTES], footer_at: u64) -> io::Result<(u64, u64)> {
    let fixed32 =
        |at: usize| footer[at..].first_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes));
    let magic = footer.last_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    if magic != MAGIC {
        return Err(damaged("no table with blocks"));
    }
    let version = fixed32(FOOTER_BYTES - 12);
    if version < VERSION_METAINDEX_BEFORE_FOOTER {
        return handle_of(&footer[1..]).ok_or_else(|| damaged("no place of the metaindex"));
    }
    // Checksum type, extended magic, checksum of the footer, checksum context.
    let size = u64::from(fixed32(1 + 4 + 4 + 4));
    let offset = footer_at.checked_sub(size + TRAILER_BYTES);
    offset.map(|offset| (offset, size)).ok_or_else(|| damaged("a metaindex larger than the file"))
}

fn block(file: &File, (offset, size): (u64, u64), end: u64) -> io::Result<Vec<u8>> {
    let fits = offset.checked_add(size).is_some_and(|block_end| block_end < end);
    if !fits || size > BLOCK_BYTES_MAX {
        return Err(damaged("a block outside of the file or too large"));
    }
    let mut bytes = vec![0; size as usize + 1];
    file.read_exact_at(&mut bytes, offset)?;
    match bytes.pop() {
        Some(0) => Ok(bytes),
        _ => Err(damaged("a compressed block where none is expected")),
    }
}

fn properties(block: &[u8]) -> TableProperties {
    let mut properties = TableProperties::default();
    let mut options = String::new();
    for (key, value) in entries(block) {
        match key.as_slice() {
            b"rocksdb.compression" => {
                properties.codec = String::from_utf8_lossy(&value).into_owned();
            }
            b"rocksdb.compression_options" => {
                options = String::from_utf8_lossy(&value).into_owned();
            }
            b"rocksdb.num.entries" => {
                properties.entries = varint(&mut value.as_slice()).unwrap_or(0);
            }
            b"rocksdb.raw.key.size" | b"rocksdb.raw.value.size" => {
                let size = varint(&mut value.as_slice()).unwrap_or(0);
                properties.raw_bytes = properties.raw_bytes.saturating_add(size);
            }
            _ => {}
        }
    }
    let level = options.split(';').map(str::trim).find(|part| part.starts_with("level="));
    // The library's default, which is no effort that was asked for.
    if let Some(level) = level.filter(|level| *level != "level=32767")
        && !properties.codec.is_empty()
    {
        properties.codec.push_str(&format!(" {level}"));
    }
    properties
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(shared: u8, own: &[u8], value: &[u8]) -> Vec<u8> {
        let mut bytes = vec![shared, own.len() as u8, value.len() as u8];
        bytes.extend_from_slice(own);
        bytes.extend_from_slice(value);
        bytes
    }

    fn finished(mut block: Vec<u8>) -> Vec<u8> {
        block.extend_from_slice(&[0, 0, 0, 0, 1, 0, 0, 0]);
        block
    }

    /// A file with properties and metaindex and the footer of a version.
    fn table(version: u32) -> Vec<u8> {
        let mut block = entry(0, b"rocksdb.compression", b"ZSTD");
        block.extend(entry(19, b"_options", b"level=1; strategy=0; "));
        block.extend(entry(8, b"num.entries", &[3]));
        block.extend(entry(8, b"raw.key.size", &[0x80, 0x01]));
        block.extend(entry(12, b"value.size", &[2]));
        let block = finished(block);
        let mut file = block.clone();
        file.extend_from_slice(&[0; 5]);
        let metaindex = finished(entry(0, b"rocksdb.properties", &[0, block.len() as u8]));
        let metaindex_at = file.len() as u8;
        file.extend_from_slice(&metaindex);
        file.extend_from_slice(&[0; 5]);
        let mut footer = [0; FOOTER_BYTES];
        if version < VERSION_METAINDEX_BEFORE_FOOTER {
            // Both are below 128: one byte each.
            footer[1..3].copy_from_slice(&[metaindex_at, metaindex.len() as u8]);
        } else {
            footer[13] = metaindex.len() as u8;
        }
        footer[41..45].copy_from_slice(&version.to_le_bytes());
        footer[45..].copy_from_slice(&MAGIC.to_le_bytes());
        file.extend_from_slice(&footer);
        file
    }

    fn read_bytes(bytes: &[u8]) -> io::Result<TableProperties> {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("1.sst");
        std::fs::write(&path, bytes).expect("is written");
        read(&path)
    }

    #[test]
    fn properties_of_both_footers() {
        let expected = TableProperties { codec: "ZSTD level=1".into(), raw_bytes: 130, entries: 3 };
        assert_eq!(expected.user_bytes(), 106);
        assert_eq!(read_bytes(&table(7)).expect("is read"), expected);
        assert_eq!(read_bytes(&table(5)).expect("is read"), expected);
    }

    #[test]
    fn damage_is_an_error_or_nothing() {
        let whole = table(7);
        for cut in 0..whole.len() {
            assert!(read_bytes(&whole[..cut]).is_err(), "cut at {cut}");
        }
        for place in 0..whole.len() {
            for byte in [0, 1, 0x7f, 0x80, 0xff] {
                let mut changed = whole.clone();
                changed[place] = byte;
                // It may not be noticed here; it must not panic.
                let _ = read_bytes(&changed);
            }
        }
    }
}
