//! The envelope of every block: a payload and a trailer of 16 bytes that says how the payload is
//! encoded and proves that it is whole and in its place.
//!
//! ```text
//! payload | layout 1 | codec 1 | reserved 2 | dictionary 4 | raw size 4 | checksum 4
//! ```

use super::dictionaries::DICTIONARY_BLOCK_SIZE_MAX;
use crate::base::{KEY_SIZE_MAX, TableId, VALUE_SIZE_MAX};
use crate::codec::CodecId;
use crate::format::{Checksum, Decoder, put_u16, put_u32};
use crate::{Error, ErrorKind, Result};

/// Bytes behind every payload.
pub(super) const TRAILER_SIZE: usize = 16;

/// The largest data block: one value and one key of the largest size; the slack holds header,
/// lengths, word and restart of that one entry many times over.
const DATA_RAW_SIZE_MAX: usize = VALUE_SIZE_MAX + (KEY_SIZE_MAX + 1) + (64 << 10);

/// How the bytes of a block are laid out. The numbers are part of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Layout {
    Data = 1,
    FlatIndex = 2,
    BlockedBloom = 3,
    Tombstones = 4,
    Properties = 5,
    IndexPartition = 6,
    TopIndex = 7,
    Dictionary = 8,
}

impl Layout {
    fn is_known(byte: u8) -> bool {
        (Layout::Data as u8..=Layout::Dictionary as u8).contains(&byte)
    }

    /// The bound on decoded bytes, checked before they are allocated.
    pub(super) fn raw_size_max(self) -> usize {
        match self {
            Layout::Data => DATA_RAW_SIZE_MAX,
            Layout::FlatIndex | Layout::TopIndex | Layout::BlockedBloom | Layout::Tombstones => {
                256 << 20
            }
            // A partition of one record has two keys at most.
            Layout::Properties | Layout::IndexPartition => 1 << 20,
            Layout::Dictionary => DICTIONARY_BLOCK_SIZE_MAX - TRAILER_SIZE,
        }
    }
}

/// Where a block lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockHandle {
    pub(crate) offset: u64,
    /// With the trailer.
    pub(crate) stored_size: u32,
}

impl BlockHandle {
    /// The first byte behind the block; `None` if that is over 64 bits.
    pub(super) fn end(self) -> Option<u64> {
        self.offset.checked_add(u64::from(self.stored_size))
    }
}

impl BlockHandle {
    /// Refuses a size that no block of this layout has, before memory is taken for it: a block is
    /// stored in no more bytes than it has.
    pub(super) fn check_size(self, layout: Layout) -> Result<()> {
        let size_max = layout.raw_size_max() + TRAILER_SIZE;
        if self.stored_size as usize <= size_max {
            return Ok(());
        }
        Err(Error::corruption("stored size of a block is over its bound")
            .expected(format_args!("at most {size_max}"), self.stored_size))
    }
}

/// How a payload is encoded, as its trailer says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Encoding {
    pub(super) codec: CodecId,
    /// The id of a dictionary; 0: none.
    pub(super) dictionary: u32,
    pub(super) raw_size: u32,
}

/// Appends the trailer to a payload that starts at `payload_start` in `output` and at `offset`
/// in the file.
pub(super) fn seal(
    output: &mut Vec<u8>,
    payload_start: usize,
    layout: Layout,
    encoding: Encoding,
    place: (&TableId, u64),
) {
    output.extend_from_slice(&[layout as u8, encoding.codec as u8]);
    put_u16(output, 0);
    put_u32(output, encoding.dictionary);
    put_u32(output, encoding.raw_size);
    let of_bytes = Checksum::new().bytes(&output[payload_start..]);
    put_u32(output, in_place(of_bytes, place));
}

/// Mixes the place into the checksum of a payload and its trailer.
fn in_place(of_bytes: Checksum, (table_id, offset): (&TableId, u64)) -> u32 {
    of_bytes.bytes(table_id).u64(offset).value()
}

/// Appends a block as it is stored elsewhere, with the checksum of its new place. That goes on
/// from the one that was compared when the block was read, so damage since then does not get a
/// checksum that fits it.
pub(super) fn transplant(
    output: &mut Vec<u8>,
    stored: &[u8],
    of_bytes: Checksum,
    place: (&TableId, u64),
) {
    output.extend_from_slice(&stored[..stored.len().saturating_sub(4)]);
    put_u32(output, in_place(of_bytes, place));
}

/// A block whose checksum was right, not yet decoded.
#[derive(Clone, Copy, Debug)]
pub(super) struct CheckedBlock<'a> {
    pub(super) payload: &'a [u8],
    pub(super) codec: CodecId,
    /// The id of the dictionary that it is encoded with; 0: none.
    pub(super) dictionary: u32,
    /// Within the layout's bound.
    pub(super) raw_size: usize,
    /// The checksum before the place goes into it.
    pub(super) of_bytes: Checksum,
}

/// Checks stored bytes against their trailer and place. `stored` is payload and trailer.
pub(super) fn open<'a>(
    stored: &'a [u8],
    layout: Layout,
    place: (&TableId, u64),
) -> Result<CheckedBlock<'a>> {
    let Some((covered, stored_checksum)) = stored.split_last_chunk::<4>() else {
        return Err(Error::corruption("block is smaller than its trailer"));
    };
    let expected = u32::from_le_bytes(*stored_checksum);
    let of_bytes = Checksum::new().bytes(covered);
    let found = in_place(of_bytes, place);
    let mut is_intact = expected == found;
    if planted!(DataChecksumIgnored) && matches!(layout, Layout::Data) {
        is_intact = true;
    }
    if planted!(FilterChecksumIgnored) && matches!(layout, Layout::BlockedBloom) {
        is_intact = true;
    }
    if planted!(IndexChecksumIgnored)
        && matches!(layout, Layout::FlatIndex | Layout::TopIndex | Layout::IndexPartition)
    {
        is_intact = true;
    }
    if !is_intact {
        return Err(Error::corruption("block checksum")
            .expected(format_args!("{expected:#010x}"), format_args!("{found:#010x}")));
    }
    let Some((payload, trailer)) = covered.split_last_chunk::<{ TRAILER_SIZE - 4 }>() else {
        return Err(Error::corruption("block is smaller than its trailer"));
    };
    let mut decoder = Decoder::new(trailer);
    let found_layout = decoder.u8()?;
    if found_layout != layout as u8 {
        return Err(wrong_layout(layout, found_layout));
    }
    let codec_number = decoder.u8()?;
    let codec = CodecId::from_u8(codec_number)
        .ok_or_else(|| unsupported(format!("block is encoded with codec {codec_number}")))?;
    if decoder.u16()? != 0 {
        return Err(unsupported("block trailer has reserved bits set"));
    }
    let dictionary = decoder.u32()?;
    if dictionary != 0 {
        check_dictionary(layout, codec, dictionary)?;
    }
    let raw_size = decoder.u32()? as usize;
    if raw_size > layout.raw_size_max() {
        return Err(Error::corruption("raw size of a block is over its bound")
            .expected(format_args!("at most {}", layout.raw_size_max()), raw_size));
    }
    if raw_size > codec.raw_size_max(payload.len()) {
        return Err(Error::corruption("raw size of a block is more than its codec can make")
            .expected(format_args!("at most {}", codec.raw_size_max(payload.len())), raw_size));
    }
    if codec == CodecId::None && raw_size != payload.len() {
        return Err(
            Error::corruption("size of a block stored raw").expected(raw_size, payload.len())
        );
    }
    Ok(CheckedBlock { payload, codec, dictionary, raw_size, of_bytes })
}

/// Refuses a dictionary where there can be none.
#[inline(never)]
fn check_dictionary(layout: Layout, codec: CodecId, id: u32) -> Result<()> {
    let can_be = match layout {
        Layout::Data => codec.takes_dictionary(),
        Layout::Dictionary => codec == CodecId::None,
        _ => false,
    };
    match can_be {
        true => Ok(()),
        false => Err(Error::corruption(format!(
            "block has dictionary {id:08x}, and is of a kind that has none"
        ))),
    }
}

#[cold]
fn wrong_layout(expected: Layout, found: u8) -> Error {
    if Layout::is_known(found) {
        Error::corruption("block layout").expected(expected as u8, found)
    } else {
        unsupported(format!("block has layout {found}"))
    }
}

#[cold]
fn unsupported(what: impl Into<String>) -> Error {
    let what = what.into();
    Error::new(ErrorKind::Unsupported, format!("{what}, which this version does not know"))
}
