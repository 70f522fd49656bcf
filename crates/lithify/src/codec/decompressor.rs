//! The decoders' one face. See the module head for threads and promises.

use super::dictionary::{Dictionary, takes_none};
use super::{COUNT, CodecId, RAW_SIZE_MAX, STORED_SIZE_MAX};
use crate::{Error, Result};

/// One codec's decoder with its context. Neither `stored` nor `raw` is ever empty or over its
/// limit. A decoder returns how many bytes it made; a length other than the wanted one is
/// reported by the caller.
pub(super) trait BlockDecoder: Send {
    /// Decodes into the start of `raw`.
    fn decode(&mut self, stored: &[u8], raw: &mut [u8]) -> Result<usize>;

    /// Decodes behind what is in `target`, which has room for `raw_len` more bytes. The decoders
    /// that can write into memory that was never set do so here. After an error, `target` may
    /// hold more bytes than before.
    fn decode_append(
        &mut self,
        stored: &[u8],
        raw_len: usize,
        target: &mut Vec<u8>,
    ) -> Result<usize> {
        let start = target.len();
        target.resize(start + raw_len, 0);
        self.decode(stored, &mut target[start..])
    }

    /// Like [`BlockDecoder::decode_append`] with a dictionary. Called of codecs that take one.
    fn decode_append_with(
        &mut self,
        _dictionary: &Dictionary,
        _stored: &[u8],
        _raw_len: usize,
        _target: &mut Vec<u8>,
    ) -> Result<usize> {
        Err(Error::invalid("the decoder takes no dictionary"))
    }

    /// The memory that the context holds, in bytes.
    fn memory_bytes(&self) -> usize;
}

/// Decompresses blocks of every codec; contexts are made when first needed and reused.
#[derive(Default)]
pub struct Decompressor {
    prefers_fast: bool,
    /// By the codec's number.
    decoders: [Option<Box<dyn BlockDecoder>>; COUNT],
}

impl Decompressor {
    /// A decompressor that uses each codec's reference implementation.
    pub fn new() -> Self {
        Decompressor::default()
    }

    /// A decompressor that reads [`CodecId::Zlib`] through libdeflate if `fast_zlib` is set. Both
    /// return the same for what either encoder wrote; libdeflate overlooks bytes after the end.
    pub fn with_fast_zlib(fast_zlib: bool) -> Self {
        Decompressor { prefers_fast: fast_zlib, ..Decompressor::default() }
    }

    /// Decompresses `stored` into `raw` and fills it exactly. Fails with
    /// [`crate::ErrorKind::Corruption`] if `stored` is damaged or is not of that length; what is
    /// in `raw` is undefined then.
    pub fn decompress(&mut self, codec: CodecId, stored: &[u8], raw: &mut [u8]) -> Result<()> {
        if codec == CodecId::None {
            check_length(codec, raw.len(), stored.len())?;
            raw.copy_from_slice(stored);
            return Ok(());
        }
        if !check_sizes(codec, stored.len(), raw.len())? {
            return Ok(());
        }
        let count = self.decoder(codec)?.decode(stored, raw)?;
        check_length(codec, raw.len(), count)
    }

    /// Appends the `raw_len` bytes that `stored` holds to `target`, without setting them twice
    /// where the codec allows it. Fails like [`Decompressor::decompress`], and with
    /// [`crate::ErrorKind::LimitExceeded`] if there is no memory for `raw_len` bytes; an error
    /// leaves `target` as it was. The caller has bounded `raw_len`: it is allocated.
    pub fn decompress_into(
        &mut self,
        codec: CodecId,
        stored: &[u8],
        raw_len: usize,
        target: &mut Vec<u8>,
    ) -> Result<()> {
        if codec == CodecId::None {
            check_length(codec, raw_len, stored.len())?;
        } else if !check_sizes(codec, stored.len(), raw_len)? {
            return Ok(());
        }
        make_room(target, raw_len)?;
        if codec == CodecId::None {
            target.extend_from_slice(stored);
            return Ok(());
        }
        let start = target.len();
        self.decoder(codec)?
            .decode_append(stored, raw_len, target)
            .and_then(|count| check_length(codec, raw_len, count))
            .inspect_err(|_| target.truncate(start))
    }

    /// [`Decompressor::decompress_into`] of what was compressed with a dictionary. With another one
    /// it fails or makes other bytes. Fails with [`crate::ErrorKind::InvalidArgument`] if the codec
    /// [takes none](CodecId::takes_dictionary).
    pub fn decompress_with(
        &mut self,
        codec: CodecId,
        dictionary: &Dictionary,
        stored: &[u8],
        raw_len: usize,
        target: &mut Vec<u8>,
    ) -> Result<()> {
        if !codec.takes_dictionary() {
            return Err(takes_none(codec));
        }
        if !check_sizes(codec, stored.len(), raw_len)? {
            return Ok(());
        }
        make_room(target, raw_len)?;
        let start = target.len();
        self.decoder(codec)?
            .decode_append_with(dictionary, stored, raw_len, target)
            .and_then(|count| check_length(codec, raw_len, count))
            .inspect_err(|_| target.truncate(start))
    }

    /// The memory that the contexts hold, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.decoders.iter().flatten().map(|decoder| decoder.memory_bytes()).sum()
    }

    fn decoder(&mut self, codec: CodecId) -> Result<&mut dyn BlockDecoder> {
        match &mut self.decoders[codec as usize] {
            Some(decoder) => Ok(&mut **decoder),
            slot => {
                let row = codec.row();
                let fast = row.fast_decoder.filter(|_| self.prefers_fast);
                let Some(new) = fast.or(row.decoder) else {
                    return Err(Error::invalid(format!("codec '{}' has no decoder", codec.name())));
                };
                Ok(&mut **slot.insert(new()?))
            }
        }
    }
}

fn make_room(target: &mut Vec<u8>, raw_len: usize) -> Result<()> {
    target.try_reserve_exact(raw_len).map_err(|error| {
        Error::limit(format!("no memory for a block of {raw_len} bytes")).because(error)
    })
}

/// Whether there is anything to decode; an error if the sizes are impossible or over a limit.
fn check_sizes(codec: CodecId, stored_len: usize, raw_len: usize) -> Result<bool> {
    if raw_len > RAW_SIZE_MAX || stored_len > STORED_SIZE_MAX {
        return Err(Error::limit(format!("bytes to decompress at once with {}", codec.name()))
            .expected(
                format_args!("at most {RAW_SIZE_MAX} raw and {STORED_SIZE_MAX} stored"),
                format_args!("{raw_len} and {stored_len}"),
            ));
    }
    match (stored_len, raw_len) {
        (0, 0) => Ok(false),
        (0, _) => Err(Error::corruption(format!("{} block is empty", codec.name()))
            .expected(format_args!("{raw_len} raw bytes"), "none")),
        (_, 0) => Err(Error::corruption(format!("{} block is not empty", codec.name()))
            .expected("no bytes", format_args!("{stored_len} stored bytes"))),
        _ => Ok(true),
    }
}

fn check_length(codec: CodecId, expected: usize, found: usize) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    Err(Error::corruption(format!("length of a decompressed {} block", codec.name()))
        .expected(format_args!("{expected} bytes"), format_args!("{found} bytes")))
}
