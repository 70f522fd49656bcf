//! Zstandard through `zstd-safe`: frames without magic number, content size, checksum and
//! dictionary id, since the block's envelope has the first three and there are no dictionaries.

use super::compressor::BlockEncoder;
use super::decompressor::BlockDecoder;
use crate::{Error, Result};
use std::io::Cursor;
use std::ops::RangeInclusive;
use zstd_safe::{CCtx, CParameter, DCtx, DParameter, FrameFormat, get_error_name};

/// The efforts that the library takes; 0 among them is refused, as it stands for another one.
pub(super) fn efforts() -> RangeInclusive<i32> {
    zstd_safe::min_c_level()..=zstd_safe::max_c_level()
}

pub(super) fn library_name_and_version() -> String {
    format!("zstd {}", zstd_safe::version_string())
}

fn set_up_failed(code: zstd_safe::ErrorCode) -> Error {
    Error::invalid(format!("zstd refuses a parameter: {}", get_error_name(code)))
}

pub(super) struct ZstdEncoder {
    context: CCtx<'static>,
}

impl ZstdEncoder {
    pub(super) fn new(effort: i32) -> Result<Self> {
        let mut context =
            CCtx::try_create().ok_or_else(|| Error::limit("no memory for a zstd encoder"))?;
        for parameter in [
            CParameter::CompressionLevel(effort),
            CParameter::Format(FrameFormat::Magicless),
            CParameter::ContentSizeFlag(false),
            CParameter::ChecksumFlag(false),
            CParameter::DictIdFlag(false),
        ] {
            context.set_parameter(parameter).map_err(set_up_failed)?;
        }
        Ok(ZstdEncoder { context })
    }
}

impl BlockEncoder for ZstdEncoder {
    fn encode(&mut self, raw: &[u8], target: &mut Vec<u8>) -> Result<()> {
        let start = target.len();
        target.reserve(zstd_safe::compress_bound(raw.len()));
        let mut end = Cursor::new(target);
        end.set_position(start as u64);
        self.context.compress2(&mut end, raw).map_err(|code| {
            Error::limit(format!("zstd cannot compress the block: {}", get_error_name(code)))
        })?;
        Ok(())
    }

    fn memory_bytes(&self) -> usize {
        self.context.sizeof()
    }
}

pub(super) struct ZstdDecoder {
    context: DCtx<'static>,
}

impl ZstdDecoder {
    pub(super) fn new() -> Result<Self> {
        let mut context =
            DCtx::try_create().ok_or_else(|| Error::limit("no memory for a zstd decoder"))?;
        context.set_parameter(DParameter::Format(FrameFormat::Magicless)).map_err(set_up_failed)?;
        Ok(ZstdDecoder { context })
    }
}

fn damaged(code: zstd_safe::ErrorCode) -> Error {
    Error::corruption(format!("zstd block: {}", get_error_name(code)))
}

impl BlockDecoder for ZstdDecoder {
    fn decode(&mut self, stored: &[u8], raw: &mut [u8]) -> Result<usize> {
        self.context.decompress(raw, stored).map_err(damaged)
    }

    /// The target may have more room than `raw_len`, so a damaged block may come out longer.
    fn decode_append(
        &mut self,
        stored: &[u8],
        _raw_len: usize,
        target: &mut Vec<u8>,
    ) -> Result<usize> {
        let start = target.len();
        let mut end = Cursor::new(target);
        end.set_position(start as u64);
        self.context.decompress(&mut end, stored).map_err(damaged)
    }

    fn memory_bytes(&self) -> usize {
        self.context.sizeof()
    }
}
