//! Codecs by name, `none`, `snappy`, `lz4`, `lz4-9`, `zlib-6`, `libdeflate-6`, `zstd-1`, and
//! ladders of them by distance from the bottom of a tree. Names and efforts are the engine's own.

use std::fmt;
use std::str::FromStr;

use lithify::Compression;
use lithify::codec::{CodecId, Encoder};
use serde::{Deserialize, Serialize};

/// A codec with its strength ("effort").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Codec {
    /// Stored as it is.
    None,
    /// Snappy.
    Snappy,
    /// LZ4, fast mode.
    Lz4,
    /// LZ4 with an effort: 2 to 12 is stronger, negative is faster and weaker.
    Lz4Effort(i32),
    /// Deflate by reference zlib, effort 1 to 9.
    Zlib(i32),
    /// Deflate by a faster encoder of the same format, effort 1 to 12.
    ZlibFast(i32),
    /// Zstandard, effort up to 22 without 0, negative is faster and weaker.
    Zstd(i32),
}

impl Codec {
    /// The kinds of codec there are.
    pub const KINDS: [&str; 6] = ["none", "snappy", "lz4", "zlib", "libdeflate", "zstd"];

    /// Which of [`Codec::KINDS`] it is, whatever its effort.
    pub fn kind(self) -> &'static str {
        let [none, snappy, lz4, zlib, libdeflate, zstd] = Codec::KINDS;
        match self {
            Codec::None => none,
            Codec::Snappy => snappy,
            Codec::Lz4 | Codec::Lz4Effort(_) => lz4,
            Codec::Zlib(_) => zlib,
            Codec::ZlibFast(_) => libdeflate,
            Codec::Zstd(_) => zstd,
        }
    }

    /// A codec of that kind with an effort that every engine with the kind has; `None` when there
    /// is no such kind.
    pub fn of_kind(kind: &str) -> Option<Codec> {
        [Codec::None, Codec::Snappy, Codec::Lz4, Codec::Zlib(6), Codec::ZlibFast(6), Codec::Zstd(1)]
            .into_iter()
            .find(|codec| codec.kind() == kind)
    }
}

impl From<Codec> for Compression {
    fn from(codec: Codec) -> Compression {
        let (codec, effort, encoder) = match codec {
            Codec::None => return Compression::NONE,
            Codec::Snappy => (CodecId::Snappy, 0, Encoder::Reference),
            Codec::Lz4 => return Compression::LZ4,
            Codec::Lz4Effort(effort) => (CodecId::Lz4, effort, Encoder::Reference),
            Codec::Zlib(effort) => (CodecId::Zlib, effort, Encoder::Reference),
            Codec::ZlibFast(effort) => (CodecId::Zlib, effort, Encoder::Fast),
            Codec::Zstd(effort) => (CodecId::Zstd, effort, Encoder::Reference),
        };
        Compression { codec, effort, encoder }
    }
}

impl TryFrom<Compression> for Codec {
    type Error = String;

    /// An error for a codec that the engine has and the laboratory does not compare yet.
    fn try_from(compression: Compression) -> Result<Codec, String> {
        let effort = compression.effort;
        Ok(match (compression.codec, compression.encoder) {
            (CodecId::None, _) => Codec::None,
            (CodecId::Snappy, _) => Codec::Snappy,
            (CodecId::Lz4, _) if compression == Compression::LZ4 => Codec::Lz4,
            (CodecId::Lz4, _) => Codec::Lz4Effort(effort),
            (CodecId::Zlib, Encoder::Reference) => Codec::Zlib(effort),
            (CodecId::Zlib, Encoder::Fast) => Codec::ZlibFast(effort),
            (CodecId::Zstd, _) => Codec::Zstd(effort),
            _ => return Err(format!("the laboratory does not know {compression}")),
        })
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Compression::from(*self).fmt(f)
    }
}

impl From<Codec> for String {
    fn from(codec: Codec) -> Self {
        codec.to_string()
    }
}

impl TryFrom<String> for Codec {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl FromStr for Codec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.parse::<Compression>().map_err(|error| error.to_string());
        parsed.and_then(Codec::try_from).map_err(|error| format!("codec \"{text}\": {error}"))
    }
}

/// The codecs of a tree by distance from the bottom, written `none,lz4,zstd-1`; one codec stands
/// for all levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ladder {
    /// Of level 0 and of levels at distance 2 and more from the bottom.
    pub small: Codec,
    /// Of the level above the bottom.
    pub middle: Codec,
    /// Of the bottom level.
    pub bottom: Codec,
}

impl Ladder {
    /// It as part of the name of a file.
    pub fn file_name(&self) -> String {
        format!("{}+{}+{}", self.small, self.middle, self.bottom)
    }
}

impl fmt::Display for Ladder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},{}", self.small, self.middle, self.bottom)
    }
}

impl FromStr for Ladder {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let codecs: Vec<Codec> = text.split(',').map(str::parse).collect::<Result<_, _>>()?;
        match codecs[..] {
            [all] => Ok(Ladder { small: all, middle: all, bottom: all }),
            [small, middle, bottom] => Ok(Ladder { small, middle, bottom }),
            _ => Err(format!(
                "a ladder takes 3 codecs separated by commas, or one for all levels; {} were given",
                codecs.len()
            )),
        }
    }
}
