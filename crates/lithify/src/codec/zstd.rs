//! Zstandard through `zstd-safe`: frames without magic number, content size, checksum and
//! dictionary id, since the block's envelope has all four.
//!
//! Unsafe: the wrapper lets a context refer to a dictionary for as long as the context lives. Here
//! it does so for one call, so that contexts are reused and dictionaries end.

use super::compressor::BlockEncoder;
use super::decompressor::BlockDecoder;
use super::dictionary::{Dictionary, EncoderDigest, takes_none};
use super::{CodecId, Compression, Encoder};
use crate::{Error, Result};
use std::io::Cursor;
use std::ops::RangeInclusive;
use std::sync::Arc;
use zstd_safe::{CCtx, CParameter, DCtx, DParameter, FrameFormat, ResetDirective, get_error_name};

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
    effort: i32,
}

/// Appends the encoded form of `raw`.
fn append(context: &mut CCtx<'_>, raw: &[u8], target: &mut Vec<u8>) -> Result<()> {
    let start = target.len();
    target.reserve(zstd_safe::compress_bound(raw.len()));
    let mut end = Cursor::new(target);
    end.set_position(start as u64);
    context.compress2(&mut end, raw).map(drop).map_err(|code| {
        Error::limit(format!("zstd cannot compress the block: {}", get_error_name(code)))
    })
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
        Ok(ZstdEncoder { context, effort })
    }
}

impl BlockEncoder for ZstdEncoder {
    fn encode(&mut self, raw: &[u8], target: &mut Vec<u8>) -> Result<()> {
        append(&mut self.context, raw, target)
    }

    fn encode_with(
        &mut self,
        dictionary: &Dictionary,
        raw: &[u8],
        target: &mut Vec<u8>,
    ) -> Result<()> {
        let (codec, encoder) = (CodecId::Zstd, Encoder::Reference);
        let compression = Compression { codec, effort: self.effort, encoder };
        let digest = dictionary.encoder(compression)?;
        let EncoderDigest::Zstd(of_zstd) = &*digest else { return Err(takes_none(codec)) };
        let context = &raw mut self.context;
        #[expect(unsafe_code, reason = "the reference ends before the context does")]
        // SAFETY: the same context, whose parameter is a lifetime only. What it is made to refer to
        // here it does not refer to behind the end of this function, or that is never freed.
        let context = unsafe { &mut *context.cast::<CCtx<'_>>() };
        let encoded = context
            .ref_cdict(of_zstd)
            .map_err(set_up_failed)
            .and_then(|_| append(context, raw, target));
        let ended =
            context.reset(ResetDirective::SessionOnly).and_then(|_| context.disable_dictionary());
        if ended.is_err() {
            std::mem::forget(Arc::clone(&digest));
        }
        encoded
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

    fn decode_append_with(
        &mut self,
        dictionary: &Dictionary,
        stored: &[u8],
        _raw_len: usize,
        target: &mut Vec<u8>,
    ) -> Result<usize> {
        let start = target.len();
        let mut end = Cursor::new(target);
        end.set_position(start as u64);
        self.context.decompress_using_ddict(&mut end, stored, dictionary.zstd()?).map_err(damaged)
    }

    fn memory_bytes(&self) -> usize {
        self.context.sizeof()
    }
}
