//! Floor 1: how blocks are compressed. Knows codecs and efforts, and no level.

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

/// Which program encodes; both write the same format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoder {
    /// The codec's reference implementation.
    Reference,
    /// A faster one of the same format (deflate: libdeflate).
    Fast,
}

/// A codec with its strength ("effort": zstd 3, zlib 6, lz4 1; negative is faster and weaker).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Compression {
    /// The format.
    pub codec: CodecId,
    /// The strength; 0 for codecs that have none.
    pub effort: i32,
    /// Which encoder.
    pub encoder: Encoder,
}

impl Compression {
    /// Blocks are stored as they are.
    pub const NONE: Compression =
        Compression { codec: CodecId::None, effort: 0, encoder: Encoder::Reference };
    /// LZ4, fast mode.
    pub const LZ4: Compression =
        Compression { codec: CodecId::Lz4, effort: 1, encoder: Encoder::Reference };
}
