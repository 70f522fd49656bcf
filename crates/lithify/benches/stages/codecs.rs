//! The codecs alone, on the data blocks of tables that the engine wrote.

use crate::measure::cpu_ns;
use lithify::base::MemoryBudget;
use lithify::codec::{CodecId, Compressor, ContextPool, Decompressor};
use lithify::fs::{Advice, File, SystemEnvironment, SystemFileSystem};
use lithify::inspect::{LevelsOptions, read_levels};
use lithify::manifest::FileName;
use lithify::table::{ReadContext, TableReader};
use lithify::{Compression, Error, Result};
use std::collections::BTreeSet;
use std::hint::black_box;
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Bytes behind the payload of a block; docs/format/table.md says what they are.
const TRAILER_SIZE: usize = 16;
const DATA_LAYOUT: u8 = 1;

/// A data block as it is stored, and as it is raw.
struct Block {
    codec: CodecId,
    payload: Vec<u8>,
    raw: Vec<u8>,
}

/// The live tables of the open database in a directory; files that wait for their removal, some of
/// them cut short already, are none.
pub fn tables_in(directory: &Path) -> Result<BTreeSet<PathBuf>> {
    let levels = read_levels(&SystemFileSystem, directory, &LevelsOptions::default())?;
    let tables = levels.families.iter().flat_map(|family| &family.tables);
    Ok(tables.map(|table| FileName::Table(table.metadata.number).path(directory)).collect())
}

/// The data blocks of some tables.
#[derive(Default)]
pub struct Blocks(Vec<Block>);

impl Blocks {
    /// Of these tables.
    pub fn of_tables<'p>(paths: impl Iterator<Item = &'p PathBuf>) -> Result<Self> {
        let mut blocks = Blocks::default();
        for path in paths {
            let failed = |error| Error::io("cannot read the table", path, error);
            blocks.add_table(std::fs::read(path).map_err(failed)?)?;
        }
        Ok(blocks)
    }

    /// Verifying a table reads each of its data blocks once: that is how they are found.
    fn add_table(&mut self, bytes: Vec<u8>) -> Result<()> {
        let file = Arc::new(RecordingFile { bytes, reads: Mutex::default() });
        let pool = ContextPool::new(MemoryBudget::new(64 << 20));
        let reader = TableReader::open(file.clone(), None, pool)?;
        let expected = reader.verify(&mut ReadContext::new(&SystemEnvironment))?.data_blocks;
        let mut decompressor = Decompressor::new();
        let mut found = 0;
        for stored in file.take_reads() {
            let Some((payload, trailer)) = stored.split_last_chunk::<TRAILER_SIZE>() else {
                continue;
            };
            let [layout, codec, _, _, _, _, _, _, a, b, c, d, ..] = *trailer;
            let Some(codec) = CodecId::from_u8(codec).filter(|_| layout == DATA_LAYOUT) else {
                continue;
            };
            let mut raw = Vec::new();
            let raw_size = u32::from_le_bytes([a, b, c, d]) as usize;
            decompressor.decompress_into(codec, payload, raw_size, &mut raw)?;
            self.0.push(Block { codec, payload: payload.to_vec(), raw });
            found += 1;
        }
        if found != expected {
            return Err(Error::corruption("data blocks found").expected(expected, found));
        }
        Ok(())
    }

    /// Nanoseconds of decoding all of them, the least of some rounds.
    pub fn decompress_ns(&self) -> Result<f64> {
        let mut decompressor = Decompressor::new();
        let mut raw = Vec::new();
        least_ns(|| {
            for block in self.0.iter().filter(|block| block.codec != CodecId::None) {
                raw.clear();
                let size = block.raw.len();
                decompressor.decompress_into(block.codec, &block.payload, size, &mut raw)?;
                black_box(&raw);
            }
            Ok(())
        })
    }

    /// Nanoseconds of encoding all of them, the least of some rounds.
    pub fn compress_ns(&self, compression: Compression) -> Result<f64> {
        if compression.codec == CodecId::None {
            return Ok(0.0);
        }
        let mut compressor = Compressor::new(compression)?;
        let mut stored = Vec::new();
        least_ns(|| {
            for block in &self.0 {
                stored.clear();
                compressor.compress(&block.raw, &mut stored)?;
                black_box(&stored);
            }
            Ok(())
        })
    }
}

fn least_ns(mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut least = f64::INFINITY;
    for _ in 0..3 {
        let (ns, result) = cpu_ns(&mut work);
        result?;
        least = least.min(ns);
    }
    Ok(least)
}

/// A file in memory that keeps a copy of everything read from it.
struct RecordingFile {
    bytes: Vec<u8>,
    reads: Mutex<Vec<Vec<u8>>>,
}

impl RecordingFile {
    fn take_reads(&self) -> Vec<Vec<u8>> {
        self.reads.lock().map(|mut reads| std::mem::take(&mut *reads)).unwrap_or_default()
    }
}

fn read_only() -> Error {
    Error::invalid("this file is only read")
}

impl File for RecordingFile {
    fn path(&self) -> &Path {
        Path::new("recorded.sst")
    }
    fn length(&self) -> Result<u64> {
        Ok(self.bytes.len() as u64)
    }
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let rest = self.bytes.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        if let Ok(mut reads) = self.reads.lock() {
            reads.push(buffer[..count].to_vec());
        }
        Ok(count)
    }
    fn write_at(&self, _: &[IoSlice<'_>], _: u64) -> Result<()> {
        Err(read_only())
    }
    fn append(&self, _: &[IoSlice<'_>]) -> Result<u64> {
        Err(read_only())
    }
    fn sync_data(&self) -> Result<()> {
        Ok(())
    }
    fn sync_range(&self, _: u64, _: u64) -> Result<()> {
        Ok(())
    }
    fn preallocate(&self, _: u64, _: u64) -> Result<()> {
        Err(read_only())
    }
    fn truncate(&self, _: u64) -> Result<()> {
        Err(read_only())
    }
    fn advise(&self, _: u64, _: u64, _: Advice) -> Result<()> {
        Ok(())
    }
    fn direct_io_alignment(&self) -> Option<usize> {
        None
    }
}
