//! LZ4 block format through `lzzzz` (liblz4): fast mode, acceleration, and high compression.
//!
//! The library's hash tables are kept by `lzzzz` once per thread and mode and never given back.
//! An encoder is charged for one; as many encoders as threads are in use at a time, so the sum
//! is right even though the places differ.

use super::compressor::BlockEncoder;
use super::decompressor::BlockDecoder;
use super::dictionary::{Dictionary, EncoderDigest, takes_none};
use super::{CodecId, Compression, Encoder, lz4_dictionary};
use crate::{Error, Result};
use std::ffi::{c_char, c_int};
use std::ops::RangeInclusive;

/// 1 is fast mode, 2 to 12 high compression, -n fast mode with acceleration n (up to the
/// library's `LZ4_ACCELERATION_MAX`). 0 is refused: the library takes it for 1.
pub(super) const EFFORTS: RangeInclusive<i32> = -65_537..=12;

/// The size of the table of fast mode: 16 KiB and a head.
const FAST_STATE_BYTES: usize = 16 * 1024 + 32;

/// The size of the tables of high compression: 128 KiB each, and a head.
const HIGH_STATE_BYTES: usize = 256 * 1024 + 56;

#[expect(unsafe_code, reason = "the safe wrapper cannot decode into memory that was never set")]
unsafe extern "C" {
    /// Defined by the library that `lzzzz` links.
    fn LZ4_decompress_safe(
        source: *const c_char,
        target: *mut c_char,
        source_size: c_int,
        target_capacity: c_int,
    ) -> c_int;
}

pub(super) fn library_name_and_version() -> String {
    format!("lz4 {}", lzzzz::version_string())
}

pub(super) struct Lz4Encoder {
    effort: i32,
    /// The state that blocks with a dictionary are encoded by; empty before the first.
    working: Vec<u64>,
}

impl Lz4Encoder {
    pub(super) fn new(effort: i32) -> Self {
        Lz4Encoder { effort, working: Vec::new() }
    }
}

impl BlockEncoder for Lz4Encoder {
    fn encode(&mut self, raw: &[u8], target: &mut Vec<u8>) -> Result<()> {
        let encoded = if self.effort >= 2 {
            lzzzz::lz4_hc::compress_to_vec(raw, target, self.effort)
        } else {
            lzzzz::lz4::compress_to_vec(raw, target, self.effort.saturating_abs())
        };
        encoded
            .map(drop)
            .map_err(|error| Error::limit("lz4 cannot compress the block").because(error))
    }

    fn encode_with(
        &mut self,
        dictionary: &Dictionary,
        raw: &[u8],
        target: &mut Vec<u8>,
    ) -> Result<()> {
        let (codec, encoder) = (CodecId::Lz4, Encoder::Reference);
        let digest = dictionary.encoder(Compression { codec, effort: self.effort, encoder })?;
        match &*digest {
            EncoderDigest::Lz4(state) => state.encode(&mut self.working, raw, target),
            EncoderDigest::Zstd(_) => Err(takes_none(codec)),
        }
    }

    fn memory_bytes(&self) -> usize {
        let own = if self.effort >= 2 { HIGH_STATE_BYTES } else { FAST_STATE_BYTES };
        own + self.working.capacity() * size_of::<u64>()
    }
}

#[derive(Default)]
pub(super) struct Lz4Decoder;

impl BlockDecoder for Lz4Decoder {
    fn decode(&mut self, stored: &[u8], raw: &mut [u8]) -> Result<usize> {
        lzzzz::lz4::decompress(stored, raw)
            .map_err(|error| Error::corruption("lz4 block").because(error))
    }

    fn decode_append(
        &mut self,
        stored: &[u8],
        raw_len: usize,
        target: &mut Vec<u8>,
    ) -> Result<usize> {
        let (Ok(stored_size), Ok(raw_size)) =
            (c_int::try_from(stored.len()), c_int::try_from(raw_len))
        else {
            return Err(Error::limit("lz4 block is longer than the library takes"));
        };
        target.reserve_exact(raw_len);
        let room = target.spare_capacity_mut();
        #[expect(unsafe_code, reason = "a foreign function")]
        // SAFETY: the library reads `stored_size` bytes of `stored` and writes at most `raw_size`
        // bytes from the start of `room`, which has at least that many.
        let count = unsafe {
            LZ4_decompress_safe(
                stored.as_ptr().cast(),
                room.as_mut_ptr().cast(),
                stored_size,
                raw_size,
            )
        };
        let count = usize::try_from(count).map_err(|_| Error::corruption("lz4 block"))?;
        #[expect(unsafe_code, reason = "the foreign function has set the bytes")]
        // SAFETY: the library returned that it set `count` bytes, at most `raw_size`.
        unsafe {
            target.set_len(target.len() + count.min(raw_len));
        }
        Ok(count)
    }

    fn decode_append_with(
        &mut self,
        dictionary: &Dictionary,
        stored: &[u8],
        raw_len: usize,
        target: &mut Vec<u8>,
    ) -> Result<usize> {
        lz4_dictionary::decode_append(stored, raw_len, dictionary.content(), target)
    }

    fn memory_bytes(&self) -> usize {
        0
    }
}
