//! Floor 1: how blocks are compressed. Knows codecs and efforts, and no level.
//!
//! Owns: the registry of codec numbers, the names of compressions in options and reports, one
//! encoder and one decoder per codec, and the pool of their reused contexts.
//!
//! Promises: what an encoder wrote decodes to the same bytes, with every version of the format;
//! the same input and [`Compression`] give the same bytes, whatever the context did before; a
//! decoder given damaged bytes returns an error or wrong bytes of the right length, and never
//! panics, never writes outside its target and never allocates more than the caller asked for.
//! (Codecs do not detect damage: the caller checks its checksum first.)
//!
//! Threads: a [`Compressor`] or [`Decompressor`] belongs to one thread at a time; a
//! [`ContextPool`] may be called from any. The room never blocks on anything but the pool's lock.
//!
//! It does not choose a codec, keep a block raw when it did not shrink, or add checksums and
//! lengths: that is for the table that stores the blocks.

mod compression;
mod compressor;
mod decompressor;
mod libdeflate;
mod lz4;
mod pool;
mod snappy;
mod zlib;
mod zstd;

#[cfg(test)]
mod tests;

pub use compression::{Compression, Encoder, UnknownCodec};
pub use compressor::Compressor;
pub use decompressor::Decompressor;
pub use pool::{ContextPool, PooledCompressor, PooledDecompressor};

/// The longest raw buffer that is compressed or decompressed at once, in bytes. It is above the
/// longest value and far below the limits of every codec's library.
pub const RAW_SIZE_MAX: usize = 256 << 20;

/// The longest stored form that is looked at, in bytes: no encoder makes twice of its input.
const STORED_SIZE_MAX: usize = 2 * RAW_SIZE_MAX;

/// A codec's number in every format on disk. 0 to 127 are this registry, 128 to 255 are
/// reserved for codecs that a user registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum CodecId {
    /// Stored as it is.
    None = 0,
    /// Snappy, raw format.
    Snappy = 1,
    /// Deflate (RFC 1951) without the zlib header and checksum.
    Zlib = 2,
    /// LZ4 block format.
    Lz4 = 3,
    /// Zstandard frames without the magic number.
    Zstd = 4,
}

impl CodecId {
    /// All codecs of the registry.
    pub const ALL: [CodecId; 5] =
        [CodecId::None, CodecId::Snappy, CodecId::Zlib, CodecId::Lz4, CodecId::Zstd];

    /// The codec with that number.
    pub fn from_u8(byte: u8) -> Option<Self> {
        CodecId::ALL.into_iter().find(|codec| *codec as u8 == byte)
    }

    /// The most raw bytes that a payload of so many can hold, by the form of its elements: 64
    /// bytes take three in Snappy, 258 take two bits in Deflate, 255 a length byte in LZ4, and a
    /// block of 128 KiB takes four in Zstandard.
    pub fn raw_size_max(self, payload_size: usize) -> usize {
        let expansion = match self {
            CodecId::None => 1,
            CodecId::Snappy => 22,
            CodecId::Zlib => 1032,
            CodecId::Lz4 => 255,
            CodecId::Zstd => 32 << 10,
        };
        payload_size.saturating_mul(expansion)
    }

    /// Its name in options, reports and dumps.
    pub fn name(self) -> &'static str {
        match self {
            CodecId::None => "none",
            CodecId::Snappy => "snappy",
            CodecId::Zlib => "zlib",
            CodecId::Lz4 => "lz4",
            CodecId::Zstd => "zstd",
        }
    }
}

/// The library that encodes with `compression` and its version, such as `"zlib 1.3.1"`; `"none"`
/// where nothing is encoded. Read from the library at run time wherever it can tell.
pub fn library_name_and_version(compression: Compression) -> String {
    match (compression.codec, compression.encoder) {
        (CodecId::None, _) => "none".to_string(),
        (CodecId::Snappy, _) => snappy::library_name_and_version(),
        (CodecId::Zlib, Encoder::Reference) => zlib::library_name_and_version(),
        (CodecId::Zlib, Encoder::Fast) => libdeflate::library_name_and_version(),
        (CodecId::Lz4, _) => lz4::library_name_and_version(),
        (CodecId::Zstd, _) => zstd::library_name_and_version(),
    }
}
