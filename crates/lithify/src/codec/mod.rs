//! Floor 1: how blocks are compressed. Knows codecs and efforts, and no level.
//!
//! Owns: the registry of codec numbers, the names of compressions in options and reports, one
//! encoder and one decoder per codec, the pool of their reused contexts, and dictionaries: their
//! names, the store of them that a process has, and how they are made of samples.
//!
//! Promises: what an encoder wrote decodes to the same bytes, with every version of the format;
//! the same input, [`Compression`] and [`Dictionary`] give the same bytes, whatever the context did
//! before; a
//! decoder given damaged bytes returns an error or wrong bytes of the right length, and never
//! panics, never writes outside its target and never allocates more than the caller asked for.
//! (Codecs do not detect damage: the caller checks its checksum first.)
//!
//! Threads: a [`Compressor`] or [`Decompressor`] belongs to one thread at a time; a
//! [`ContextPool`] may be called from any. The room never blocks on anything but the pool's lock.
//!
//! A new codec is a module with its functions, a row of [`CodecId`]'s list below, its library in
//! `Cargo.toml`, and its number, limits and a sample in `docs/format/codec.md`, which tests compare
//! with the list. Nothing else lists codecs: options, statistics and the laboratory take them from
//! here.
//!
//! It does not choose a codec, keep a block raw when it did not shrink, or add checksums and
//! lengths: that is for the table that stores the blocks.

mod block_format;
mod compression;
mod compressor;
mod decompressor;
mod dictionary;
mod libdeflate;
mod lz4;
mod lz4_dictionary;
mod pool;
mod snappy;
mod training;
mod zlib;
mod zstd;

#[cfg(test)]
mod dictionary_tests;
#[cfg(test)]
mod tests;

pub use block_format::{BlockFormat, FormatMismatch, StoredFormat};
pub use compression::{Compression, Encoder, UnknownCodec};
pub use compressor::Compressor;
pub use decompressor::Decompressor;
pub use dictionary::{DICTIONARY_SIZE_MAX, DICTIONARY_SIZE_MIN, Dictionary, DictionaryHash};
pub use pool::{ContextPool, HeldDictionary, PooledCompressor, PooledDecompressor};
pub use training::train;

use crate::Result;
use compressor::BlockEncoder;
use decompressor::BlockDecoder;
use std::ops::RangeInclusive;

/// The longest raw buffer that is compressed or decompressed at once, in bytes. It is above the
/// longest value and far below the limits of every codec's library.
pub const RAW_SIZE_MAX: usize = 256 << 20;

/// The longest stored form that is looked at, in bytes: no encoder makes twice of its input.
const STORED_SIZE_MAX: usize = 2 * RAW_SIZE_MAX;

/// Makes a decoder with its context.
type NewDecoder = fn() -> Result<Box<dyn BlockDecoder>>;

/// Makes an encoder of an effort with its context.
type NewEncoder = fn(i32) -> Result<Box<dyn BlockEncoder>>;

/// A codec beside its number and name.
struct CodecRow {
    /// The most raw bytes that a byte of payload can hold.
    expansion_max: usize,
    takes_dictionary: bool,
    /// `None` where blocks are stored as they are.
    decoder: Option<NewDecoder>,
    /// A faster decoder of the same format, where there is one.
    fast_decoder: Option<NewDecoder>,
    /// The reference encoder first.
    encoders: &'static [EncoderRow],
}

/// An encoder of a codec.
struct EncoderRow {
    /// In options.
    name: &'static str,
    encoder: Encoder,
    /// 0 is valid only for the codecs that have no effort.
    efforts: fn() -> RangeInclusive<i32>,
    /// What the name alone means.
    effort_of_bare_name: Option<i32>,
    /// `None` where blocks are stored as they are.
    new: Option<NewEncoder>,
    /// Its library with its version.
    library: fn() -> String,
}

/// The numbers with their rows; the numbers ascend from 0.
macro_rules! codecs {
    ($($(#[doc = $doc:literal])+ $codec:ident = $number:literal, $name:literal: $row:expr;)+) => {
        /// A codec's number in every format on disk. 0 to 127 are this registry, 128 to 255 are
        /// reserved for codecs that a user registers.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum CodecId { $($(#[doc = $doc])+ $codec = $number,)+ }

        /// How many codecs there are.
        const COUNT: usize = [$($number,)+].len();

        impl CodecId {
            /// All codecs of the registry.
            pub const ALL: [CodecId; COUNT] = [$(CodecId::$codec,)+];

            /// Their names, in the order of their numbers.
            pub(crate) const NAMES: [&str; COUNT] = [$($name,)+];
        }

        static ROWS: [CodecRow; COUNT] = [$($row,)+];
    };
}

codecs! {
    /// Stored as it is.
    None = 0, "none": CodecRow {
        expansion_max: 1,
        takes_dictionary: false,
        decoder: None,
        fast_decoder: None,
        encoders: &[EncoderRow {
            name: "none",
            encoder: Encoder::Reference,
            efforts: || 0..=0,
            effort_of_bare_name: Some(0),
            new: None,
            library: || "none".to_string(),
        }],
    };
    /// Snappy, raw format.
    Snappy = 1, "snappy": CodecRow {
        // 64 bytes take three.
        expansion_max: 22,
        takes_dictionary: false,
        decoder: Some(|| Ok(Box::new(snappy::SnappyDecoder))),
        fast_decoder: None,
        encoders: &[EncoderRow {
            name: "snappy",
            encoder: Encoder::Reference,
            efforts: || 0..=0,
            effort_of_bare_name: Some(0),
            new: Some(|_| Ok(Box::new(snappy::SnappyEncoder::new()))),
            library: snappy::library_name_and_version,
        }],
    };
    /// Deflate (RFC 1951) without the zlib header and checksum.
    Zlib = 2, "zlib": CodecRow {
        // 258 bytes take two bits.
        expansion_max: 1032,
        takes_dictionary: false,
        decoder: Some(|| Ok(Box::new(zlib::ZlibDecoder::new()?))),
        fast_decoder: Some(|| Ok(Box::new(libdeflate::LibdeflateDecoder::new()))),
        encoders: &[
            EncoderRow {
                name: "zlib",
                encoder: Encoder::Reference,
                efforts: || 1..=9,
                effort_of_bare_name: None,
                new: Some(|effort| Ok(Box::new(zlib::ZlibEncoder::new(effort)?))),
                library: zlib::library_name_and_version,
            },
            EncoderRow {
                name: "libdeflate",
                encoder: Encoder::Fast,
                efforts: || libdeflate::EFFORTS,
                effort_of_bare_name: None,
                new: Some(|effort| Ok(Box::new(libdeflate::LibdeflateEncoder::new(effort)?))),
                library: libdeflate::library_name_and_version,
            },
        ],
    };
    /// LZ4 block format.
    Lz4 = 3, "lz4": CodecRow {
        // A length byte.
        expansion_max: 255,
        takes_dictionary: true,
        decoder: Some(|| Ok(Box::new(lz4::Lz4Decoder))),
        fast_decoder: None,
        encoders: &[EncoderRow {
            name: "lz4",
            encoder: Encoder::Reference,
            efforts: || lz4::EFFORTS,
            effort_of_bare_name: Some(1),
            new: Some(|effort| Ok(Box::new(lz4::Lz4Encoder::new(effort)))),
            library: lz4::library_name_and_version,
        }],
    };
    /// Zstandard frames without the magic number.
    Zstd = 4, "zstd": CodecRow {
        // A block of 128 KiB takes four bytes.
        expansion_max: 32 << 10,
        takes_dictionary: true,
        decoder: Some(|| Ok(Box::new(zstd::ZstdDecoder::new()?))),
        fast_decoder: None,
        encoders: &[EncoderRow {
            name: "zstd",
            encoder: Encoder::Reference,
            efforts: zstd::efforts,
            effort_of_bare_name: None,
            new: Some(|effort| Ok(Box::new(zstd::ZstdEncoder::new(effort)?))),
            library: zstd::library_name_and_version,
        }],
    };
}

impl CodecId {
    fn row(self) -> &'static CodecRow {
        &ROWS[self as usize]
    }

    /// The codec with that number.
    pub fn from_u8(byte: u8) -> Option<Self> {
        CodecId::ALL.get(usize::from(byte)).copied()
    }

    /// Its name in options, reports and dumps.
    pub fn name(self) -> &'static str {
        CodecId::NAMES[self as usize]
    }

    /// Whether blocks can be compressed with a dictionary.
    pub fn takes_dictionary(self) -> bool {
        self.row().takes_dictionary
    }

    /// The most raw bytes that a payload of so many can hold, by the form of its elements.
    pub fn raw_size_max(self, payload_size: usize) -> usize {
        payload_size.saturating_mul(self.row().expansion_max)
    }
}

/// All encoders, in the order of the codecs.
fn encoders() -> impl Iterator<Item = (CodecId, &'static EncoderRow)> {
    let of_codec = |codec: CodecId| codec.row().encoders.iter().map(move |row| (codec, row));
    CodecId::ALL.into_iter().flat_map(of_codec)
}

/// The names of the encoders in options, in the order of the codecs.
pub fn encoder_names() -> impl Iterator<Item = &'static str> {
    encoders().map(|(_, row)| row.name)
}

/// The name in options of the encoder of `compression`, without its effort; that of the codec where
/// it has no such encoder.
pub fn encoder_name(compression: Compression) -> &'static str {
    compression.encoder_row().map_or(compression.codec.name(), |row| row.name)
}

/// The library that encodes with `compression` and its version, such as `"zlib 1.3.1"`; `"none"`
/// where nothing is encoded. Read from the library at run time wherever it can tell.
pub fn library_name_and_version(compression: Compression) -> String {
    compression.encoder_row().map_or_else(String::new, |row| (row.library)())
}
