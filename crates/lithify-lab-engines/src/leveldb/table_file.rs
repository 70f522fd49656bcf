//! What a table file of LevelDB is compressed with.
//!
//! A table says nothing about itself, so its index is read and a few of its blocks are looked at:
//! the byte behind each names its codec, and a compressed block begins with its raw size.
//!
//! Promises: no content of a file makes it panic or allocate more than [`INDEX_BYTES_MAX`].

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::sorted_blocks::{TRAILER_BYTES, damaged, entries, handle_of, varint};

/// What the blocks of a file that were looked at have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableBlocks {
    /// Blocks compressed with Snappy.
    pub snappy: u64,
    /// Blocks stored as they are.
    pub raw: u64,
    /// Stored bytes of them.
    pub stored_bytes: u64,
    /// Bytes of them before compression.
    pub raw_bytes: u64,
}

impl TableBlocks {
    /// The codec of the file: LevelDB stores a block as it is when it hardly shrinks.
    pub fn codec(&self) -> &'static str {
        if self.snappy > 0 { "snappy" } else { "none" }
    }
}

const MAGIC: u64 = 0xdb47_7524_8b80_fb57;
const FOOTER_BYTES: usize = 48;
/// The index of a table of a gigabyte with small blocks is a few megabytes.
const INDEX_BYTES_MAX: u64 = 16 << 20;
/// Blocks that are looked at, evenly spread over the file.
const SAMPLES: usize = 16;
/// A raw size takes no more bytes than this.
const SIZE_BYTES_MAX: usize = 5;

const RAW: u8 = 0;
const SNAPPY: u8 = 1;

/// Looks at the blocks of a table file.
///
/// # Errors
/// The operating system's; a file that is no table.
pub fn read(path: &Path) -> io::Result<TableBlocks> {
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    let footer_at =
        size.checked_sub(FOOTER_BYTES as u64).ok_or_else(|| damaged("shorter than a footer"))?;
    let mut footer = [0; FOOTER_BYTES];
    file.read_exact_at(&mut footer, footer_at)?;
    if footer.last_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes)) != Some(MAGIC) {
        return Err(damaged("no table of LevelDB"));
    }
    // The handle of the metaindex, then that of the index.
    let mut handles = footer.as_slice();
    let index = (varint(&mut handles).zip(varint(&mut handles)))
        .and_then(|_| handle_of(handles))
        .ok_or_else(|| damaged("no place of the index"))?;
    let index = index_block(&file, index, footer_at)?;
    let blocks: Vec<(u64, u64)> =
        entries(&index).iter().filter_map(|(_, handle)| handle_of(handle)).collect();
    let mut found = TableBlocks::default();
    for block in blocks.iter().step_by(blocks.len().div_ceil(SAMPLES).max(1)) {
        look_at(&file, *block, footer_at, &mut found)?;
    }
    Ok(found)
}

/// The end of a block and its trailer, if it is in the file.
fn end_of((offset, size): (u64, u64), file_end: u64) -> io::Result<u64> {
    offset
        .checked_add(size)
        .filter(|end| end.checked_add(TRAILER_BYTES).is_some_and(|end| end <= file_end))
        .ok_or_else(|| damaged("a block outside of the file"))
}

fn index_block(file: &File, handle: (u64, u64), file_end: u64) -> io::Result<Vec<u8>> {
    end_of(handle, file_end)?;
    if handle.1 > INDEX_BYTES_MAX {
        return Err(damaged("an index that is too large"));
    }
    let mut bytes = vec![0; handle.1 as usize + 1];
    file.read_exact_at(&mut bytes, handle.0)?;
    match bytes.pop() {
        Some(RAW) => Ok(bytes),
        Some(SNAPPY) => {
            let raw = snap::raw::decompress_len(&bytes).unwrap_or(usize::MAX);
            if raw as u64 > INDEX_BYTES_MAX {
                return Err(damaged("an index that is too large"));
            }
            snap::raw::Decoder::new()
                .decompress_vec(&bytes)
                .map_err(|_| damaged("an index that cannot be decompressed"))
        }
        _ => Err(damaged("an unknown codec")),
    }
}

fn look_at(
    file: &File,
    block: (u64, u64),
    file_end: u64,
    found: &mut TableBlocks,
) -> io::Result<()> {
    let end = end_of(block, file_end)?;
    let mut codec = [0];
    file.read_exact_at(&mut codec, end)?;
    let (offset, size) = block;
    let raw_size = match codec {
        [RAW] => {
            found.raw += 1;
            size
        }
        [SNAPPY] => {
            found.snappy += 1;
            let mut start = [0; SIZE_BYTES_MAX];
            file.read_exact_at(&mut start, offset)?;
            varint(&mut start.as_slice()).ok_or_else(|| damaged("no raw size of a block"))?
        }
        _ => return Err(damaged("an unknown codec")),
    };
    found.stored_bytes = found.stored_bytes.saturating_add(size);
    found.raw_bytes = found.raw_bytes.saturating_add(raw_size);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with one compressed block and one that is not, and their index.
    fn table() -> Vec<u8> {
        let compressed = snap::raw::Encoder::new().compress_vec(&[7; 100]).expect("compresses");
        let mut file = compressed.clone();
        file.extend_from_slice(&[SNAPPY, 0, 0, 0, 0]);
        let raw_at = file.len() as u8;
        file.extend_from_slice(&[9; 20]);
        file.extend_from_slice(&[RAW, 0, 0, 0, 0]);
        let index_at = file.len() as u8;
        let mut index = vec![0, 1, 2, b'a', 0, compressed.len() as u8];
        index.extend_from_slice(&[0, 1, 2, b'b', raw_at, 20]);
        index.extend_from_slice(&[0, 0, 0, 0, 1, 0, 0, 0]);
        file.extend_from_slice(&index);
        file.extend_from_slice(&[RAW, 0, 0, 0, 0]);
        let mut footer = [0; FOOTER_BYTES];
        footer[..4].copy_from_slice(&[0, 0, index_at, index.len() as u8]);
        footer[40..].copy_from_slice(&MAGIC.to_le_bytes());
        file.extend_from_slice(&footer);
        file
    }

    fn read_bytes(bytes: &[u8]) -> io::Result<TableBlocks> {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("1.ldb");
        std::fs::write(&path, bytes).expect("is written");
        read(&path)
    }

    #[test]
    fn codecs_and_sizes_of_blocks() {
        let found = read_bytes(&table()).expect("is read");
        assert_eq!((found.snappy, found.raw, found.raw_bytes), (1, 1, 120));
        assert!(found.stored_bytes < 60, "{found:?}");
        assert_eq!((found.codec(), TableBlocks::default().codec()), ("snappy", "none"));
    }

    #[test]
    fn damage_is_an_error_or_nothing() {
        let whole = table();
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
