//! A data block on its way from one table into another, as it is stored.
//!
//! 1. The scanner has read it, compared its checksum with its place and decoded it.
//! 2. A [`Survey`] walks its keys, because the new table's filter needs their hashes and its
//!    bounds the last of them. Values are not touched.
//! 3. The builder appends the stored bytes; only the checksum is another.
//!
//! What is saved is the merge of its rows and the encoding; what is still paid is the decoding,
//! which for most codecs is a fraction of it.
//!
//! It does not decide whether the rules of a compaction allow the copy: the caller asks what a
//! block says of itself, and knows the other inputs.

use super::data_block::DataBlock;
use super::filter::hash_key;
use super::index::{FLAG_SEQUENCES_ZERO, IndexRecord};
use crate::base::{SequenceNumber, ValueKind};
use crate::codec::HeldDictionary;
use crate::format::Checksum;
use crate::{Error, Result};
use std::path::Path;
use std::sync::Arc;

/// A data block as it is stored, and decoded.
pub(crate) struct StoredBlock<'a> {
    /// With its trailer.
    pub(super) stored: &'a [u8],
    /// The checksum before the place goes into it.
    pub(super) of_bytes: Checksum,
    /// What it is encoded with.
    pub(super) dictionary: Option<&'a Arc<HeldDictionary>>,
    pub(super) data: DataBlock<'a>,
    pub(super) record: IndexRecord,
    pub(super) first_key: &'a [u8],
    pub(super) separator: &'a [u8],
    /// The file that it is in.
    pub(super) path: &'a Path,
}

impl StoredBlock<'_> {
    /// Its first user key.
    pub(crate) fn first_key(&self) -> &[u8] {
        self.first_key
    }

    /// A key that is not before its last one, and before the first one of the block behind it.
    pub(crate) fn separator(&self) -> &[u8] {
        self.separator
    }

    /// Whether all its sequence numbers are 0.
    pub(crate) fn sequences_are_zero(&self) -> bool {
        self.record.flags & FLAG_SEQUENCES_ZERO != 0
    }

    /// None of its sequence numbers is smaller.
    pub(crate) fn smallest_sequence(&self) -> SequenceNumber {
        self.data.sequence_base()
    }

    pub(crate) fn entry_count(&self) -> u64 {
        u64::from(self.record.entry_count)
    }

    /// Bytes before encoding.
    pub(crate) fn raw_size(&self) -> usize {
        self.record.raw_size as usize
    }

    /// Bytes in the file, its trailer included.
    pub(crate) fn stored_size(&self) -> u64 {
        self.stored.len() as u64
    }
}

/// What a walk over the entries of a block has found. Kept for the next one.
#[derive(Default)]
pub(super) struct Survey {
    pub(super) hashes: Vec<u64>,
    pub(super) last_key: Vec<u8>,
    pub(super) key_bytes: u64,
    pub(super) value_bytes: u64,
    pub(super) smallest_sequence: SequenceNumber,
    pub(super) largest_sequence: SequenceNumber,
    key: Vec<u8>,
}

impl Survey {
    /// Walks a block; false if it has two entries of one key, of which one may have to go. With
    /// `hashes_keys` the hashes of its keys are gathered, and of their prefixes of
    /// `prefix_length` if that is not 0.
    pub(super) fn walk(
        &mut self,
        block: &StoredBlock<'_>,
        hashes_keys: bool,
        prefix_length: usize,
    ) -> Result<bool> {
        self.walk_entries(block, hashes_keys, prefix_length)
            .map_err(|error| error.at(block.path, block.record.handle.offset))
    }

    fn walk_entries(
        &mut self,
        block: &StoredBlock<'_>,
        hashes_keys: bool,
        prefix_length: usize,
    ) -> Result<bool> {
        self.hashes.clear();
        (self.key_bytes, self.value_bytes) = (0, 0);
        (self.smallest_sequence, self.largest_sequence) = (SequenceNumber::MAX, 0);
        self.last_key.clear();
        let mut place = block.data.first(&mut self.key)?;
        loop {
            let trailer = block.data.trailer(place.index())?;
            if trailer.kind() != Some(ValueKind::Put) {
                return Err(Error::corruption("a block of puts has another entry"));
            }
            if place.index() > 0 && self.key <= self.last_key {
                return if self.key == self.last_key { Ok(false) } else { Err(unordered()) };
            }
            if hashes_keys {
                self.hash(prefix_length, place.index() == 0);
            }
            self.key_bytes += self.key.len() as u64;
            self.value_bytes += place.value_range().len() as u64;
            self.smallest_sequence = self.smallest_sequence.min(trailer.sequence());
            self.largest_sequence = self.largest_sequence.max(trailer.sequence());
            self.last_key.clear();
            self.last_key.extend_from_slice(&self.key);
            match block.data.next(&place, &mut self.key)? {
                Some(next) => place = next,
                None if &self.last_key[..] > block.separator => return Err(unordered()),
                None => return Ok(true),
            }
        }
    }

    #[inline]
    fn hash(&mut self, prefix_length: usize, is_first: bool) {
        self.hashes.push(hash_key(&self.key));
        if prefix_length > 0
            && let Some(prefix) = self.key.get(..prefix_length)
            && (is_first || self.last_key.get(..prefix_length) != Some(prefix))
        {
            self.hashes.push(hash_key(prefix));
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.hashes.capacity() * size_of::<u64>() + self.key.capacity() + self.last_key.capacity()
    }
}

#[cold]
fn unordered() -> Error {
    Error::corruption("entries do not ascend")
}
