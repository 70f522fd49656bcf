//! How the data blocks of a table are made: the format that is asked for, the format that a table
//! has, and what differs between the two.
//!
//! A [`BlockFormat`] is one value and is compared as a whole: by what decides whether a table owes a
//! rewrite, and by what decides whether a stored block may be copied. A new property of blocks is a
//! field here, and [`BlockFormat::mismatch`] is the only comparison.

use super::{Compression, DictionaryHash};

/// The format that a table's data blocks are to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockFormat {
    /// Codec, effort and encoder.
    pub compression: Compression,
    /// The target size of a block before compression.
    pub block_size_bytes: usize,
    /// The name of the dictionary that blocks are compressed with, if with one.
    pub dictionary: Option<DictionaryHash>,
}

/// The format that the data blocks of an existing table have, as far as it is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StoredFormat {
    /// Codec, effort and encoder; `None` if this version does not know them.
    pub compression: Option<Compression>,
    /// The target size of its blocks; `None` if it is not recorded, as in tables of older versions.
    pub block_size_bytes: Option<usize>,
    /// The dictionary that its blocks were to have, `None` inside if none; `None` if that is not
    /// recorded.
    pub dictionary: Option<Option<DictionaryHash>>,
}

/// The first property in which a stored format is not the one asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FormatMismatch {
    /// Another codec.
    Codec,
    /// The same codec with another encoder.
    Encoder,
    /// The same codec and encoder with another effort.
    Effort,
    /// Another target size of blocks.
    BlockSize,
    /// Another dictionary, or one where none is asked for.
    Dictionary,
}

impl BlockFormat {
    /// Blocks of a codec and size, without a dictionary.
    pub fn new(compression: Compression, block_size_bytes: usize) -> Self {
        BlockFormat { compression, block_size_bytes, dictionary: None }
    }

    /// What keeps blocks stored as `stored` from being of this format; `None` if they are. A
    /// property that is not recorded is no mismatch.
    pub fn mismatch(&self, stored: &StoredFormat) -> Option<FormatMismatch> {
        let wanted = self.compression;
        let Some(found) = stored.compression.filter(|found| found.codec == wanted.codec) else {
            return Some(FormatMismatch::Codec);
        };
        let is_other_size = |size| size != self.block_size_bytes;
        if found.encoder != wanted.encoder {
            Some(FormatMismatch::Encoder)
        } else if found.effort != wanted.effort {
            Some(FormatMismatch::Effort)
        } else if stored.block_size_bytes.is_some_and(is_other_size) {
            Some(FormatMismatch::BlockSize)
        } else if stored.dictionary.is_some_and(|dictionary| dictionary != self.dictionary) {
            Some(FormatMismatch::Dictionary)
        } else {
            None
        }
    }
}

impl StoredFormat {
    /// The format of a table that is known by its codec alone.
    pub fn of_compression(compression: Compression) -> Self {
        StoredFormat { compression: Some(compression), block_size_bytes: None, dictionary: None }
    }
}
