//! The last 104 bytes of a table: what it is, whether it can be read, where its parts lie.

use super::TABLE_FORMAT_VERSION;
use super::block::{BlockHandle, Layout, TRAILER_SIZE};
use super::dictionaries::{DICTIONARIES_MAX, DICTIONARY_BLOCK_SIZE_MAX, NAME_SIZE};
use crate::base::TableId;
use crate::codec::DICTIONARY_SIZE_MIN;
use crate::format::{Checksum, Decoder, Features, put_u32, put_u64};
use crate::{Error, Result};

pub(crate) const FOOTER_SIZE: usize = 104;
pub(crate) const MAGIC: &[u8; 8] = b"lithtabl";
const CHECKSUM_OFFSET: usize = 92;

/// The incompatible bit of a table whose index has two levels.
const TWO_LEVEL_INDEX: u32 = 1;

/// The incompatible bit of a table whose data blocks use dictionaries.
const DICTIONARIES: u32 = 2;

/// What this program can read.
const KNOWN: Features = Features { incompatible: TWO_LEVEL_INDEX | DICTIONARIES, ..Features::NONE };

/// The first version, without any feature.
const FIRST_VERSION: u32 = 1;

/// The first version with an index of two levels.
const TWO_LEVEL_VERSION: u32 = 2;

/// See docs/format/table.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Footer {
    pub(crate) table_id: TableId,
    pub(crate) filter: Option<BlockHandle>,
    pub(crate) tombstones: Option<BlockHandle>,
    pub(crate) index: BlockHandle,
    pub(crate) properties: BlockHandle,
    pub(crate) file_size: u64,
    pub(crate) features: Features,
    pub(crate) version: u32,
    /// Bytes of all dictionaries, which end where the properties start.
    pub(crate) dictionaries_size: u32,
}

impl Footer {
    /// The features of a table, and the first version that has them: a table that needs nothing
    /// new is what an older program would have written.
    pub(super) fn features_of(
        has_two_level_index: bool,
        has_dictionaries: bool,
    ) -> (Features, u32) {
        let mut features = Features::NONE;
        let mut version = FIRST_VERSION;
        if has_two_level_index {
            features.incompatible |= TWO_LEVEL_INDEX;
            version = TWO_LEVEL_VERSION;
        }
        if has_dictionaries {
            features.incompatible |= DICTIONARIES;
            version = TABLE_FORMAT_VERSION;
        }
        (features, version)
    }

    /// Where all dictionaries lie together.
    pub(super) fn dictionaries(&self) -> Option<BlockHandle> {
        if self.features.incompatible & DICTIONARIES == 0 {
            return None;
        }
        let stored_size = self.dictionaries_size;
        let offset = self.properties.offset.saturating_sub(u64::from(stored_size));
        Some(BlockHandle { offset, stored_size })
    }

    /// Whether the index has two levels.
    pub(crate) fn has_two_level_index(&self) -> bool {
        self.features.incompatible & TWO_LEVEL_INDEX != 0
    }

    /// How the index block is laid out.
    pub(crate) fn index_layout(&self) -> Layout {
        if self.has_two_level_index() { Layout::TopIndex } else { Layout::FlatIndex }
    }

    pub(super) fn encode(&self, target: &mut Vec<u8>) {
        let start = target.len();
        target.extend_from_slice(&self.table_id);
        let handles = [
            self.filter.unwrap_or_default(),
            self.tombstones.unwrap_or_default(),
            self.index,
            self.properties,
        ];
        for handle in handles {
            put_u64(target, handle.offset);
            put_u32(target, handle.stored_size);
        }
        put_u64(target, self.file_size);
        self.features.encode(target);
        put_u32(target, self.version);
        put_u32(target, self.dictionaries_size);
        let checksum = Checksum::of(&target[start..]);
        put_u32(target, checksum);
        target.extend_from_slice(MAGIC);
    }

    /// Decodes the footer of a file of `file_size` bytes.
    pub(super) fn decode(bytes: &[u8; FOOTER_SIZE], file_size: u64) -> Result<Self> {
        let footer = Footer::parse(bytes)?;
        footer.check_readable()?;
        footer.check(file_size)?;
        Ok(footer)
    }

    /// Reads a whole footer of any version, whatever it demands and wherever it points.
    pub(super) fn parse(bytes: &[u8; FOOTER_SIZE]) -> Result<Self> {
        let (covered, end) = bytes.split_at(CHECKSUM_OFFSET);
        let mut end = Decoder::new(end);
        let (checksum, magic) = (end.u32()?, end.array::<8>()?);
        if &magic != MAGIC {
            return Err(Error::corruption("not a table, or its end is missing").expected(
                format_args!("{:?}", MAGIC.escape_ascii().to_string()),
                format_args!("{:?}", magic.escape_ascii().to_string()),
            ));
        }
        let found = Checksum::of(covered);
        if checksum != found {
            return Err(Error::corruption("footer checksum")
                .expected(format_args!("{checksum:#010x}"), format_args!("{found:#010x}")));
        }
        let mut decoder = Decoder::new(covered);
        let table_id = decoder.array()?;
        let mut handles = [BlockHandle::default(); 4];
        for handle in &mut handles {
            *handle = BlockHandle { offset: decoder.u64()?, stored_size: decoder.u32()? };
        }
        Ok(Footer {
            table_id,
            filter: Some(handles[0]).filter(|handle| *handle != BlockHandle::default()),
            tombstones: Some(handles[1]).filter(|handle| *handle != BlockHandle::default()),
            index: handles[2],
            properties: handles[3],
            file_size: decoder.u64()?,
            features: Features::decode(&mut decoder)?,
            version: decoder.u32()?,
            dictionaries_size: decoder.u32()?,
        })
    }

    pub(super) fn check_readable(&self) -> Result<()> {
        let (version, own) = (self.version, TABLE_FORMAT_VERSION);
        self.features.check_readable(KNOWN, "table", version, own)
    }

    pub(super) fn check(&self, file_size: u64) -> Result<()> {
        if self.file_size != file_size {
            return Err(Error::corruption("size of the table").expected(self.file_size, file_size));
        }
        let limit = file_size - FOOTER_SIZE as u64;
        let handles = [self.filter, self.tombstones, Some(self.index), Some(self.properties)];
        for handle in handles.into_iter().flatten() {
            let inside = handle.end().is_some_and(|end| end <= limit);
            if !inside || (handle.stored_size as usize) < TRAILER_SIZE {
                return Err(Error::corruption("footer points outside the table"));
            }
        }
        match self.dictionaries() {
            Some(handle) => self.check_dictionaries(handle),
            None => Ok(()),
        }
    }

    fn check_dictionaries(&self, handle: BlockHandle) -> Result<()> {
        let size = handle.stored_size as usize;
        let sizes = NAME_SIZE + DICTIONARY_SIZE_MIN + TRAILER_SIZE
            ..=DICTIONARIES_MAX * DICTIONARY_BLOCK_SIZE_MAX;
        if !sizes.contains(&size) || handle.end() != Some(self.properties.offset) {
            let what = "size of the dictionaries of a table";
            return Err(Error::corruption(what)
                .expected(format_args!("{} to {}", sizes.start(), sizes.end()), size));
        }
        Ok(())
    }
}
