//! Snappy, raw format, through the `snap` crate.

use super::compressor::BlockEncoder;
use super::decompressor::BlockDecoder;
use crate::{Error, Result};

/// `snap` cannot tell its version at run time; a test holds this against the lock file.
pub(super) const LIBRARY_VERSION: &str = "1.1.2";

/// What the crate documents: two hash tables of 16-bit words, 1 Ki and up to 16 Ki of them.
const ENCODER_BYTES: usize = 2 * (1024 + 16 * 1024);

pub(super) fn library_name_and_version() -> String {
    format!("snap {LIBRARY_VERSION}")
}

pub(super) struct SnappyEncoder {
    encoder: snap::raw::Encoder,
}

impl SnappyEncoder {
    pub(super) fn new() -> Self {
        SnappyEncoder { encoder: snap::raw::Encoder::new() }
    }
}

impl BlockEncoder for SnappyEncoder {
    fn encode(&mut self, raw: &[u8], target: &mut Vec<u8>) -> Result<()> {
        let start = target.len();
        target.resize(start + snap::raw::max_compress_len(raw.len()), 0);
        let count = self
            .encoder
            .compress(raw, &mut target[start..])
            .map_err(|error| Error::limit("snappy cannot compress the block").because(error))?;
        target.truncate(start + count);
        Ok(())
    }

    fn memory_bytes(&self) -> usize {
        ENCODER_BYTES
    }
}

#[derive(Default)]
pub(super) struct SnappyDecoder;

impl BlockDecoder for SnappyDecoder {
    fn decode(&mut self, stored: &[u8], raw: &mut [u8]) -> Result<usize> {
        snap::raw::Decoder::new()
            .decompress(stored, raw)
            .map_err(|error| Error::corruption("snappy block").because(error))
    }

    fn memory_bytes(&self) -> usize {
        0
    }
}
