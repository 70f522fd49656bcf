//! What can be chosen: methods (codec, effort, encoder, with or without a dictionary) and sizes.

use crate::codec::{CodecId, Compression, Encoder};
use std::fmt;

/// A way to encode blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Method {
    /// Codec, effort and encoder.
    pub compression: Compression,
    /// Whether with the dictionary of the level.
    pub has_dictionary: bool,
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.compression, if self.has_dictionary { "+dictionary" } else { "" })
    }
}

/// The best that may be expected of a method before it was tried, as multiples of the reference.
/// A method whose cost would not be the least even so is not tried.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    /// Stored bytes.
    pub(super) ratio: f64,
    /// CPU time of encoding.
    pub(super) compress: f64,
    /// CPU time of decoding.
    pub(super) decompress: f64,
}

const fn method(codec: CodecId, effort: i32, encoder: Encoder, has_dictionary: bool) -> Method {
    Method { compression: Compression { codec, effort, encoder }, has_dictionary }
}

macro_rules! methods {
    ($($codec:ident $effort:literal $encoder:ident $dictionary:literal:
       $ratio:literal $compress:literal $decompress:literal;)+) => {
        /// All methods; the first stores blocks as they are. Others refer to them by index.
        pub const METHODS: &[Method] =
            &[$(method(CodecId::$codec, $effort, Encoder::$encoder, $dictionary),)+];

        /// What may be expected of each.
        pub(super) const BOUNDS: &[Bound] =
            &[$(Bound { ratio: $ratio, compress: $compress, decompress: $decompress },)+];
    };
}

// Bounds: the least of what `benches/codecs.rs` measures on blocks of 2 to 32 KiB of rows, log lines
// and text, with a tenth to spare.
methods! {
    None     0 Reference false: 1.0  0.0  0.0;
    Zstd     1 Reference false: 1.0  1.0  1.0;
    Lz4      1 Reference false: 1.0  0.10 0.08;
    Snappy   0 Reference false: 1.0  0.15 0.12;
    Lz4      9 Reference false: 0.90 1.2  0.08;
    Zstd    -3 Reference false: 1.0  0.45 0.35;
    Zstd     3 Reference false: 0.85 1.0  0.8;
    Zstd     6 Reference false: 0.75 1.6  0.7;
    Zstd    12 Reference false: 0.70 4.0  0.7;
    Zlib     1 Fast      false: 0.85 0.7  0.7;
    Zlib     6 Fast      false: 0.75 1.3  0.7;
    Lz4      1 Reference true:  0.50 0.10 0.06;
    Zstd     1 Reference true:  0.40 0.5  0.4;
    Zstd     3 Reference true:  0.38 0.6  0.4;
    Zstd     6 Reference true:  0.36 1.0  0.4;
}

/// The index of zstd-1, with which all others are compared.
pub const REFERENCE: usize = 1;

/// The index of the method that stores blocks as they are.
pub(super) const RAW: usize = 0;

/// The index of the fast one that is always measured too.
pub(super) const FAST: usize = 2;

/// What is chosen for a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Choice {
    /// How blocks are encoded.
    pub method: Method,
    /// The target size of blocks before that, in bytes.
    pub block_size_bytes: usize,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, size_text(self.block_size_bytes))
    }
}

pub(super) fn size_text(bytes: usize) -> String {
    match bytes.is_multiple_of(1024) {
        true => format!("{}k", bytes >> 10),
        false => bytes.to_string(),
    }
}

/// The sizes of blocks that can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// One.
    Fixed(usize),
    /// 1 to 64 KiB. It begins with, and where reads are not known stays at, this one.
    Chosen {
        /// In bytes.
        start_bytes: usize,
    },
}

impl Sizes {
    const ALL: [usize; 7] = [1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10];
    const ANCHORS: [usize; 3] = [2 << 10, 8 << 10, 32 << 10];

    /// Every size.
    pub fn all(&self) -> &[usize] {
        match self {
            Sizes::Fixed(size) => std::slice::from_ref(size),
            Sizes::Chosen { .. } => &Sizes::ALL,
        }
    }

    /// The sizes at which methods are measured; between and beyond them is interpolated.
    pub fn anchors(&self) -> &[usize] {
        match self {
            Sizes::Fixed(size) => std::slice::from_ref(size),
            Sizes::Chosen { .. } => &Sizes::ANCHORS,
        }
    }

    /// Where it begins.
    pub fn start_bytes(&self) -> usize {
        match self {
            Sizes::Fixed(size) => *size,
            Sizes::Chosen { start_bytes } => *start_bytes,
        }
    }
}
