//! The encoders' one face. See the module head for threads and promises.

use super::dictionary::{Dictionary, takes_none};
use super::{Compression, RAW_SIZE_MAX};
use crate::{Error, Result};

/// One codec's encoder with its context. It is given 1 byte to [`RAW_SIZE_MAX`] bytes.
pub(super) trait BlockEncoder: Send {
    /// Appends the encoded form of `raw` to `target`. After an error, `target` may hold more
    /// bytes than before, and the encoder can still be used.
    fn encode(&mut self, raw: &[u8], target: &mut Vec<u8>) -> Result<()>;

    /// Like [`BlockEncoder::encode`] with a dictionary. Called of codecs that take one.
    fn encode_with(
        &mut self,
        _dictionary: &Dictionary,
        _raw: &[u8],
        _target: &mut Vec<u8>,
    ) -> Result<()> {
        Err(Error::invalid("the encoder takes no dictionary"))
    }

    /// The memory that the context holds, in bytes.
    fn memory_bytes(&self) -> usize;
}

/// Compresses blocks with one [`Compression`], reusing its context from block to block.
pub struct Compressor {
    compression: Compression,
    /// `None` stores blocks as they are.
    encoder: Option<Box<dyn BlockEncoder>>,
}

impl Compressor {
    /// A compressor. Fails with [`crate::ErrorKind::InvalidArgument`] if the compression is not
    /// [valid](Compression::validate), with [`crate::ErrorKind::LimitExceeded`] if there is no
    /// memory for its context.
    pub fn new(compression: Compression) -> Result<Self> {
        compression.validate()?;
        let new = compression.encoder_row().and_then(|row| row.new);
        let encoder = new.map(|new| new(compression.effort)).transpose()?;
        Ok(Compressor { compression, encoder })
    }

    /// What it compresses with.
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// Appends the stored form of `raw` to `target`, which an error leaves as it was. Nothing is
    /// stored as nothing, whatever the codec. Fails with [`crate::ErrorKind::LimitExceeded`] if
    /// `raw` is longer than [`RAW_SIZE_MAX`].
    pub fn compress(&mut self, raw: &[u8], target: &mut Vec<u8>) -> Result<()> {
        self.compress_with(None, raw, target)
    }

    /// [`Compressor::compress`] with a dictionary, which the decompressor has to be given too.
    /// Fails with [`crate::ErrorKind::InvalidArgument`] if the codec
    /// [takes none](crate::codec::CodecId::takes_dictionary), or not this one.
    pub fn compress_with(
        &mut self,
        dictionary: Option<&Dictionary>,
        raw: &[u8],
        target: &mut Vec<u8>,
    ) -> Result<()> {
        if dictionary.is_some() && !self.compression.codec.takes_dictionary() {
            return Err(takes_none(self.compression.codec));
        }
        if raw.len() > RAW_SIZE_MAX {
            return Err(Error::limit("bytes to compress at once")
                .expected(format_args!("at most {RAW_SIZE_MAX}"), format_args!("{}", raw.len())));
        }
        let Some(encoder) = &mut self.encoder else {
            target.extend_from_slice(raw);
            return Ok(());
        };
        if raw.is_empty() {
            return Ok(());
        }
        let start = target.len();
        let encoded = match dictionary {
            None => encoder.encode(raw, target),
            Some(dictionary) => encoder.encode_with(dictionary, raw, target),
        };
        encoded.inspect_err(|_| target.truncate(start))
    }

    /// The memory that the context holds, in bytes. It may grow with the blocks it has seen.
    pub fn memory_bytes(&self) -> usize {
        self.encoder.as_ref().map_or(0, |encoder| encoder.memory_bytes())
    }
}
