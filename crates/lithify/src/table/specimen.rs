//! Data blocks of a table that is being written, kept aside to be encoded in other ways.
//!
//! A [`Tap`] copies a few consecutive blocks before they are encoded; a [`Specimen`] cuts their rows
//! anew at any size, as a table of that size would have them.

use super::TableOptions;
use super::data_block_builder::DataBlockBuilder;
use super::parts::visit_entries;
use crate::base::{KEY_SIZE_MAX, Trailer, VALUE_SIZE_MAX, ValueKind};
use crate::{Error, Result};

/// What is taken aside of a table at hand.
#[derive(Debug, Default)]
pub(super) struct Tap {
    /// Blocks that pass first.
    skip: u64,
    /// Raw bytes that are wanted; 0 if none.
    wanted_bytes: usize,
    taken: Vec<Vec<u8>>,
    taken_bytes: usize,
}

impl Tap {
    /// Wants so many bytes of blocks, after `skip` of them.
    pub(super) fn open(&mut self, wanted_bytes: usize, skip: u64) {
        *self = Tap { skip, wanted_bytes, ..Tap::default() };
    }

    /// A block passes.
    #[inline]
    pub(super) fn pass(&mut self, raw: &[u8]) {
        if self.taken_bytes >= self.wanted_bytes {
            return;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return;
        }
        self.taken_bytes += raw.len();
        self.taken.push(raw.to_vec());
    }

    /// The specimen, once it is there, or if the table has ended and there is at least half of it.
    pub(super) fn take(&mut self, has_ended: bool) -> Option<Specimen> {
        let needed = if has_ended { self.wanted_bytes / 2 } else { self.wanted_bytes };
        if self.wanted_bytes == 0 || self.taken_bytes < needed.max(1) {
            return None;
        }
        let tap = std::mem::take(self);
        Some(Specimen { blocks: tap.taken, raw_bytes: tap.taken_bytes })
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.taken_bytes
    }
}

/// Consecutive raw data blocks.
#[derive(Debug)]
pub(crate) struct Specimen {
    blocks: Vec<Vec<u8>>,
    raw_bytes: usize,
}

impl Specimen {
    /// Of one block, whatever it has.
    #[cfg(test)]
    pub(crate) fn of_block(block: Vec<u8>) -> Self {
        Specimen { raw_bytes: block.len(), blocks: vec![block] }
    }

    /// Bytes of its blocks as the table has them.
    pub(crate) fn raw_bytes(&self) -> usize {
        self.raw_bytes
    }

    /// Its blocks as the table has them.
    pub(crate) fn into_blocks(self) -> Vec<Vec<u8>> {
        self.blocks
    }

    /// Its rows in blocks of another size, as a table would cut them.
    ///
    /// # Errors
    /// None of blocks that a builder made.
    pub(crate) fn cut(
        &self,
        block_size_bytes: usize,
        restart_interval: u16,
    ) -> Result<Vec<Vec<u8>>> {
        let mut cutter = Cutter::new(block_size_bytes, restart_interval);
        for raw in &self.blocks {
            visit_entries(raw, &mut |key, trailer, value| {
                cutter.add(key, trailer, value);
                Ok(())
            })?;
        }
        Ok(cutter.finish().into_iter().map(|(block, _)| block).collect())
    }
}

/// Entries in blocks of a size, as a table cuts them.
struct Cutter {
    builder: DataBlockBuilder,
    block_size_bytes: usize,
    entries: usize,
    cut: Vec<(Vec<u8>, usize)>,
}

impl Cutter {
    fn new(block_size_bytes: usize, restart_interval: u16) -> Self {
        let builder = DataBlockBuilder::new(restart_interval);
        Cutter { builder, block_size_bytes, entries: 0, cut: Vec::new() }
    }

    fn add(&mut self, key: &[u8], trailer: Trailer, value: &[u8]) {
        let relation = self.builder.relation(key, trailer);
        let size_with = self.builder.raw_size_with(relation, key, value);
        if ends_before(self.builder.raw_size(), size_with, self.block_size_bytes) {
            self.end_block();
        }
        self.builder.add(relation, key, trailer, value);
        self.entries += 1;
    }

    fn end_block(&mut self) {
        if !self.builder.is_empty() {
            self.cut.push((self.builder.encode().0.to_vec(), std::mem::take(&mut self.entries)));
            self.builder.clear();
        }
    }

    fn finish(mut self) -> Vec<(Vec<u8>, usize)> {
        self.end_block();
        self.cut
    }
}

/// Rows in ascending order as blocks before they are encoded, as the bottom level of a database with
/// default options has them, and how many rows each block holds.
///
/// # Errors
/// A key or value is longer than the engine takes.
pub fn cut_rows<'a>(
    rows: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    block_size_bytes: usize,
) -> Result<Vec<(Vec<u8>, usize)>> {
    let mut cutter = Cutter::new(block_size_bytes, TableOptions::default().restart_interval);
    let bottom = Trailer::new(0, ValueKind::Put);
    for (key, value) in rows {
        if key.len() > KEY_SIZE_MAX || value.len() > VALUE_SIZE_MAX {
            let most = format_args!("at most {KEY_SIZE_MAX} and {VALUE_SIZE_MAX}");
            let found = format_args!("{} and {}", key.len(), value.len());
            return Err(Error::limit("bytes of a key and its value").expected(most, found));
        }
        cutter.add(key, bottom, value);
    }
    Ok(cutter.finish())
}

/// Whether a block of `size` bytes ends before an entry with which it would have `size_with`: where it
/// would be too large, unless it is less than 9/10 full and nearer to its size with the entry. So it
/// is never twice its size, and large rows share blocks: rows of 2.6 KB that shrink to a fiftieth took
/// 1.34 times as much in blocks of 4 KiB, one row in each.
pub(super) fn ends_before(size: usize, size_with: usize, target_size: usize) -> bool {
    if size_with <= target_size {
        return false;
    }
    let (excess, shortage) = (size_with - target_size, target_size.saturating_sub(size));
    shortage <= target_size / 10 || excess >= shortage
}
