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
pub struct Codec(Compression);

impl Codec {
    /// Stored as it is.
    pub const NONE: Codec = Codec(Compression::NONE);
    /// LZ4, fast mode.
    pub const LZ4: Codec = Codec(Compression::LZ4);
    /// Zstandard with effort 1.
    pub const ZSTD_1: Codec =
        Codec(Compression { codec: CodecId::Zstd, effort: 1, encoder: Encoder::Reference });

    /// Format, encoder and effort.
    pub fn compression(self) -> Compression {
        self.0
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
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
        text.parse().map(Codec).map_err(|error| format!("codec \"{text}\": {error}"))
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
