//! The dictionaries of a table: those that its data blocks are encoded with lie in it.
//!
//! A reader loads all of them when it opens the table, compares each with its name, and shares their
//! digests with all other tables of the process. A builder has one of its own, for the blocks that
//! it encodes, and carries along those of blocks that are copied.

use super::block::{self, BlockHandle, Layout, TRAILER_SIZE};
use super::footer::Footer;
use crate::codec::{
    CodecId, Compression, ContextPool, DICTIONARY_SIZE_MAX, Dictionary, DictionaryHash,
    HeldDictionary,
};
use crate::format::put_u32;
use crate::fs::{File, read_exact_at};
use crate::stats::WorkMeter;
use crate::{Error, ErrorKind, Result};
use std::sync::Arc;

/// The most dictionaries that a table has.
pub(super) const DICTIONARIES_MAX: usize = 4;

/// Bytes of a name.
pub(super) const NAME_SIZE: usize = 16;

/// The largest dictionary block, trailer included.
pub(super) const DICTIONARY_BLOCK_SIZE_MAX: usize = NAME_SIZE + DICTIONARY_SIZE_MAX + TRAILER_SIZE;

/// Where `raw_size` stands in a trailer.
const RAW_SIZE_OFFSET: usize = 8;

/// Where `dictionary_id` stands in a trailer.
const ID_OFFSET: usize = 4;

/// The dictionaries of an open table, with their blocks' places.
#[derive(Default)]
pub(super) struct TableDictionaries(Vec<(BlockHandle, Arc<HeldDictionary>)>);

impl TableDictionaries {
    /// Loads what the table has. What is wrong with one is returned, and the others are there.
    pub(super) fn load(
        file: &dyn File,
        footer: &Footer,
        pool: &ContextPool,
        meter: &mut WorkMeter,
    ) -> (Self, Option<Error>) {
        let mut dictionaries = TableDictionaries::default();
        let Some(handle) = footer.dictionaries() else {
            return (dictionaries, None);
        };
        let bytes = match read_exact_at(file, handle.offset, handle.stored_size as usize) {
            Ok(bytes) => bytes,
            Err(error) => return (dictionaries, Some(error)),
        };
        meter.read(bytes.len());
        let mut damage = None;
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let Some(start) = start_of_last(rest) else {
                let error = named(Error::corruption("a dictionary block is cut off"), rest);
                damage.get_or_insert(error.at(file.path(), handle.offset));
                break;
            };
            let (before, stored) = rest.split_at(start);
            let offset = handle.offset + start as u64;
            let taken = dictionaries.take(stored, (footer, offset), pool);
            if let Err(error) = taken {
                damage.get_or_insert(named(error, stored).at(file.path(), offset));
            }
            rest = before;
        }
        dictionaries.0.reverse();
        (dictionaries, damage)
    }

    fn take(
        &mut self,
        stored: &[u8],
        (footer, offset): (&Footer, u64),
        pool: &ContextPool,
    ) -> Result<()> {
        let block = block::open(stored, Layout::Dictionary, (&footer.table_id, offset))?;
        let Some((name, content)) = block.payload.split_first_chunk::<NAME_SIZE>() else {
            return Err(Error::corruption("a dictionary is smaller than its name"));
        };
        let name = DictionaryHash(*name);
        let dictionary = Dictionary::new(content)
            .map_err(|error| Error::corruption("content of a dictionary").because(error))?;
        if dictionary.hash() != name || dictionary.id() != block.dictionary {
            return Err(Error::corruption("content of a dictionary is not what its name says")
                .expected(name, dictionary.hash()));
        }
        if self.iter().any(|known| known.id() == dictionary.id()) {
            return Err(Error::corruption("two dictionaries of a table have one id"));
        }
        if self.0.len() == DICTIONARIES_MAX {
            return Err(Error::corruption("a table has more than four dictionaries"));
        }
        let handle = BlockHandle { offset, stored_size: stored.len() as u32 };
        self.0.push((handle, pool.hold(&dictionary)));
        Ok(())
    }

    /// Makes what decoding needs now, rather than at the first read.
    pub(super) fn prepare_decoding(&self, codec: u64) {
        for (_, dictionary) in &self.0 {
            if let Some(codec) = u8::try_from(codec).ok().and_then(CodecId::from_u8) {
                dictionary.prepare_decoding(codec);
            }
        }
    }

    /// The dictionary of that id.
    pub(super) fn find(&self, id: u32) -> Result<&Arc<HeldDictionary>> {
        if planted!(WrongDictionaryUsed) {
            return self.0.first().map(|(_, first)| first).ok_or_else(|| missing(id));
        }
        let found = self.0.iter().find(|(_, known)| known.id() == id);
        found.map(|(_, known)| known).ok_or_else(|| missing(id))
    }

    /// In the order of the file.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Dictionary> {
        self.0.iter().map(|(_, held)| &***held)
    }

    /// Where each lies.
    pub(super) fn placed(&self) -> impl Iterator<Item = (BlockHandle, &Dictionary)> {
        self.0.iter().map(|(handle, held)| (*handle, &***held))
    }
}

/// Where the last block of a span starts, as its trailer says.
fn start_of_last(span: &[u8]) -> Option<usize> {
    let raw_size = trailer_word(span, RAW_SIZE_OFFSET)?;
    span.len().checked_sub(TRAILER_SIZE)?.checked_sub(raw_size as usize)
}

/// A number of the trailer at the end of a block.
fn trailer_word(block: &[u8], at: usize) -> Option<u32> {
    let trailer = block.last_chunk::<TRAILER_SIZE>()?;
    trailer[at..].first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

#[cold]
fn missing(id: u32) -> Error {
    Error::corruption(format!(
        "block is encoded with dictionary {id:08x}, which its table does not have"
    ))
}

/// Names the id that the block's trailer has.
#[cold]
fn named(error: Error, block: &[u8]) -> Error {
    let id = trailer_word(block, ID_OFFSET).unwrap_or_default();
    let kind = match error.kind() {
        ErrorKind::Unsupported => ErrorKind::Unsupported,
        _ => ErrorKind::Corruption,
    };
    Error::new(kind, format!("dictionary {id:08x}")).because(error)
}

/// The dictionaries of a table that is being made.
#[derive(Default)]
pub(super) struct DictionaryWriter {
    /// What blocks are encoded with.
    own: Option<Arc<HeldDictionary>>,
    own_is_used: bool,
    /// Those of copied blocks.
    carried: Vec<Arc<HeldDictionary>>,
}

impl DictionaryWriter {
    /// Has blocks be encoded with a dictionary from now on.
    pub(super) fn set_own(
        &mut self,
        dictionary: Arc<HeldDictionary>,
        compression: Compression,
    ) -> Result<()> {
        dictionary.prepare_encoding(compression)?;
        self.own = Some(dictionary);
        Ok(())
    }

    /// What blocks are encoded with.
    pub(super) fn own(&self) -> Option<&Dictionary> {
        self.own.as_ref().map(|held| &***held)
    }

    /// A block was encoded with the own one.
    pub(super) fn note_own(&mut self) {
        self.own_is_used = true;
    }

    fn known(&self) -> impl Iterator<Item = &Arc<HeldDictionary>> {
        self.own.iter().chain(&self.carried)
    }

    /// Whether a block with that dictionary can be taken in.
    pub(super) fn admits(&self, dictionary: &Dictionary) -> bool {
        let Some(known) = self.known().find(|known| known.id() == dictionary.id()) else {
            return self.known().count() < DICTIONARIES_MAX;
        };
        if planted!(DictionaryIdCollisionAccepted) {
            return true;
        }
        known.hash() == dictionary.hash()
    }

    /// A block with that dictionary, which was admitted, was taken in.
    pub(super) fn carry(&mut self, dictionary: &Arc<HeldDictionary>) {
        if planted!(DictionaryNotCarried) {
            return;
        }
        if self.own.as_ref().is_some_and(|own| own.id() == dictionary.id()) {
            self.own_is_used = true;
        } else if !self.carried.iter().any(|known| known.id() == dictionary.id()) {
            self.carried.push(Arc::clone(dictionary));
        }
    }

    /// Those that a block of the table needs.
    pub(super) fn used(&self) -> impl Iterator<Item = &Arc<HeldDictionary>> {
        self.own.iter().filter(|_| self.own_is_used).chain(&self.carried)
    }
}

/// The property that names dictionaries.
pub(super) fn property_of<'a>(dictionaries: impl Iterator<Item = &'a Dictionary>) -> Vec<u8> {
    let mut property = Vec::new();
    for dictionary in dictionaries {
        property.extend_from_slice(&dictionary.hash().0);
        put_u32(&mut property, dictionary.content().len() as u32);
    }
    property
}
