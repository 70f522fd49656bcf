//! Deflate by libdeflate: the fast encoder and decoder of [`super::CodecId::Zlib`].

use super::compressor::BlockEncoder;
use super::decompressor::BlockDecoder;
use crate::{Error, Result};
use std::ops::RangeInclusive;

/// The efforts of the encoder.
pub(super) const EFFORTS: RangeInclusive<i32> = 1..=12;

/// libdeflate cannot tell its version at run time; a test holds this against the lock file.
pub(super) const LIBRARY_VERSION: &str = "1.26";

/// The size of the decoder's one allocation, measured (libdeflate 1.26, x86-64).
const DECODER_BYTES: usize = 11_568;

/// The size of the encoder's one allocation, measured likewise.
fn encoder_bytes(effort: i32) -> usize {
    match effort {
        ..=1 => 202_720,
        2..=9 => 668_256,
        _ => 9_011_712,
    }
}

pub(super) fn library_name_and_version() -> String {
    format!("libdeflate {LIBRARY_VERSION}")
}

pub(super) struct LibdeflateEncoder {
    encoder: libdeflater::Compressor,
    effort: i32,
}

impl LibdeflateEncoder {
    pub(super) fn new(effort: i32) -> Result<Self> {
        let level = libdeflater::CompressionLvl::new(effort)
            .map_err(|_| Error::invalid("effort of libdeflate").expected("1 to 12", effort))?;
        Ok(LibdeflateEncoder { encoder: libdeflater::Compressor::new(level), effort })
    }
}

impl BlockEncoder for LibdeflateEncoder {
    fn encode(&mut self, raw: &[u8], target: &mut Vec<u8>) -> Result<()> {
        let start = target.len();
        target.resize(start + self.encoder.deflate_compress_bound(raw.len()), 0);
        let count = self
            .encoder
            .deflate_compress(raw, &mut target[start..])
            .map_err(|error| Error::limit("libdeflate cannot compress the block").because(error))?;
        target.truncate(start + count);
        Ok(())
    }

    fn memory_bytes(&self) -> usize {
        encoder_bytes(self.effort)
    }
}

pub(super) struct LibdeflateDecoder {
    decoder: libdeflater::Decompressor,
}

impl LibdeflateDecoder {
    pub(super) fn new() -> Self {
        LibdeflateDecoder { decoder: libdeflater::Decompressor::new() }
    }
}

impl BlockDecoder for LibdeflateDecoder {
    fn decode(&mut self, stored: &[u8], raw: &mut [u8]) -> Result<usize> {
        self.decoder
            .deflate_decompress(stored, raw)
            .map_err(|error| Error::corruption("zlib block").because(error))
    }

    fn memory_bytes(&self) -> usize {
        DECODER_BYTES
    }
}
